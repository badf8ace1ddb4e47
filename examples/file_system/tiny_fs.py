"""A file system in memory with a table of open files, and a machine that tests it."""

from swarmtest import Machine, Pool, action, integers, sampled_from


class FileSystem:
    """The program under test."""

    most_open = 16

    def __init__(self):
        self.files = {}
        self.table = []  # what each descriptor reads and writes; None is free

    def open(self, name):
        data = self.files.setdefault(name, bytearray())
        for descriptor, entry in enumerate(self.table):
            if entry is None:
                self.table[descriptor] = data
                return descriptor
        if len(self.table) > self.most_open:  # the bug: there is room for one more
            raise OSError("too many open files")
        self.table.append(data)
        return len(self.table) - 1

    def write(self, descriptor, data):
        self.table[descriptor] += data

    def close(self, descriptor):
        self.table[descriptor] = None

    def unlink(self, name):
        self.files.pop(name, None)


names = sampled_from(["a", "b", "c"])


class FileSystemMachine(Machine):
    steps = 80
    opened = Pool()

    def start(self):
        self.system = FileSystem()

    @action(name=names, into=opened, raises=OSError)
    def open(self, name):
        descriptor = self.system.open(name)
        assert len(self.system.table) <= self.system.most_open, "more files open than allowed"
        return descriptor

    @action(descriptor=opened, count=integers(0, 9))
    def write(self, descriptor, count):
        if self.system.table[descriptor] is not None:
            self.system.write(descriptor, b"x" * count)

    @action(descriptor=opened)
    def close(self, descriptor):
        self.system.close(descriptor)

    @action(name=names)
    def unlink(self, name):
        self.system.unlink(name)
