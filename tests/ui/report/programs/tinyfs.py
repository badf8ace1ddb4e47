"""A small file system in memory, with four bugs."""


class FileSystem:
    """Files and directories, descriptors, and a cache."""

    max_open = 16

    def __init__(self):
        self.files = {}
        self.open_files = {}
        self.directories = {"/"}
        self.next = 3
        self.dirty = 0
        self.links = {}
        self.burnt = 0

    def open(self, name):
        if len(self.open_files) >= self.max_open:
            if self.dirty > 4:
                raise RuntimeError("descriptor table is full and the cache is dirty")
            raise OSError("too many open files")
        self.files.setdefault(name, "")
        descriptor = self.next
        self.next += 1
        self.open_files[descriptor] = name
        return descriptor

    def close(self, descriptor):
        del self.open_files[descriptor]

    def write(self, descriptor, text):
        name = self.open_files[descriptor]
        if name not in self.files:
            raise KeyError("written to a file that was unlinked")
        self.files[name] += text
        self.dirty += 1
        if len(self.files[name]) > 40:
            self.files[name] = self.files[name][:40]

    def sync(self):
        if self.dirty:
            self.dirty = 0
            self.burnt = max(self.burnt - 1, 0)

    def mkdir(self, name):
        if len(self.directories) > 6:
            raise OSError("no space for directories")
        self.directories.add(name)

    def rmdir(self, name):
        if name == "/":
            raise OSError("the root stays")
        self.directories.discard(name)
        self.burnt = 0

    def chmod(self, name):
        self.burnt += 1
        if self.burnt > 12 and len(self.directories) > 3:
            raise AssertionError("block marked dirty twice")

    def unlink(self, name):
        if name in self.files:
            del self.files[name]

    def rename(self, old, new):
        if old in self.files:
            self.files[new] = self.files.pop(old)
            if old == new:
                return
            for descriptor, name in self.open_files.items():
                if name == old:
                    self.open_files[descriptor] = new

    def link(self, old, new):
        if old in self.files:
            self.links[new] = old
            if self.links.get(old) == new:
                raise RecursionError("links in a circle")

    def freespace(self):
        if self.dirty > 30:
            return 0
        return 1000 - sum(map(len, self.files.values()))
