from tinyfs import FileSystem

from swarmtest import Machine, action, sampled_from

NAMES = ["a", "b", "c"]


class TinyFs(Machine):
    steps = 60

    def start(self):
        self.fs = FileSystem()
        self.fds = []

    @action(name=sampled_from(NAMES), raises=OSError)
    def open(self, name):
        self.fds.append(self.fs.open(name))
        if len(self.fds) > 10:
            self.event("many files open")

    @action(when=lambda self: self.fds)
    def close(self):
        self.fs.close(self.fds.pop())

    @action(text=sampled_from(["x", "hello"]), when=lambda self: self.fds)
    def write(self, text):
        self.fs.write(self.fds[-1], text)

    @action
    def sync(self):
        self.fs.sync()

    @action(name=sampled_from(["d", "e", "f", "g"]), raises=OSError)
    def mkdir(self, name):
        self.fs.mkdir(name)

    @action(name=sampled_from(["d", "e", "/"]), raises=OSError)
    def rmdir(self, name):
        self.fs.rmdir(name)

    @action(name=sampled_from(NAMES))
    def chmod(self, name):
        self.fs.chmod(name)

    @action(name=sampled_from(NAMES))
    def unlink(self, name):
        self.fs.unlink(name)

    @action(old=sampled_from(NAMES), new=sampled_from(NAMES))
    def rename(self, old, new):
        self.fs.rename(old, new)

    @action(old=sampled_from(NAMES), new=sampled_from(NAMES))
    def link(self, old, new):
        if old != new:
            self.fs.link(old, new)

    @action
    def freespace(self):
        self.fs.freespace()
        if self.fs.dirty > 30:
            self.event("cache very dirty")
