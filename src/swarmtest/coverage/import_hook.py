"""The import hook, which loads modules of the program under test with probes in them.

The hook is the first finder on `sys.meta_path`. It lets the finders after it find the module as
usual, and replaces the loader if the module is chosen and has Python source. So it needs no code of
its own for packages, namespace packages, zip files, editable installs and relative imports.

Instrumented code is cached on disk beside Python's bytecode, so that weaving is done once. A cache
file is found by the path of the source and the options, and used only if it was made from the same
source by the same version of the weaver, and if nobody else could have written it. As with
bytecode, a cache that cannot be read or written is no error: the work is done again.
"""

from __future__ import annotations

import ast
import contextlib
import functools
import hashlib
import importlib.util
import marshal
import os
import sys
import tempfile
from collections.abc import Callable, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import (
    ExtensionFileLoader,
    ModuleSpec,
    SourceFileLoader,
    SourcelessFileLoader,
)
from pathlib import Path
from types import CodeType, ModuleType

from swarmtest.core.targets import Source
from swarmtest.coverage.file_probes import cells_key
from swarmtest.coverage.scope import Scope, shown_path
from swarmtest.coverage.weaving.implications import ProbePlan
from swarmtest.coverage.weaving.snippets import CELLS
from swarmtest.coverage.weaving.weaver import weave, woven_tree
from swarmtest.processes.caches import why_unsafe

# The cache of instrumented code.

FORMAT = b"swarmtest\n"
_DIGEST = 16
refused: dict[str, None] = {}
"""Why caches were not used, one line each."""


def _is_ours(cache: Path) -> bool:
    """Return whether only the user could have written a cache file; otherwise keep the reason."""
    unsafe = why_unsafe(cache)
    if unsafe:
        refused[f"code with probes is not cached: {unsafe}"] = None
    return not unsafe


def _digest(content: bytes) -> bytes:
    """Return a hash that tells if a file was damaged."""
    return hashlib.blake2b(content, digest_size=_DIGEST).digest()


def stamp(source: bytes, file: str, kinds: tuple[str, ...]) -> bytes:
    """Return a hash (32 bytes) of everything that instrumented code is made from."""
    python = (sys.version_info[:3], sys.flags.optimize)
    options = repr((file, kinds, python, _weaver_hash())).encode()
    return hashlib.blake2b(FORMAT + options + b"\0" + source, digest_size=32).digest()


def load(path: str, kinds: tuple[str, ...], made_from: bytes) -> tuple[CodeType, ProbePlan] | None:
    """Return the cached code and plan of a source; None if there is none with this stamp."""
    try:
        cache = _cache_path(path, kinds)
        data = cache.read_bytes()
        head = FORMAT + made_from
        content = data[len(head) + _DIGEST :]
        if data[: -len(content) or None] != head + _digest(content) or not _is_ours(cache):
            return None
        code, plan = marshal.loads(content)
        return code, ProbePlan.from_plain(plan)
    except (OSError, EOFError, ValueError, TypeError, NotImplementedError):
        return None


def keep(
    path: str, kinds: tuple[str, ...], made_from: bytes, code: CodeType, plan: ProbePlan
) -> None:
    """Write code and plan to the cache; another process never sees half of them."""
    if sys.dont_write_bytecode:
        return
    with contextlib.suppress(OSError, NotImplementedError):  # a Python may have no bytecode cache
        cache = _cache_path(path, kinds)
        cache.parent.mkdir(parents=True, exist_ok=True)
        if not _is_ours(cache):
            return
        fd, temporary = tempfile.mkstemp(dir=cache.parent)
        try:
            with os.fdopen(fd, "wb") as out:
                content = marshal.dumps((code, plan.to_plain()))
                out.write(FORMAT + made_from + _digest(content) + content)
            os.replace(temporary, cache)
        except OSError:
            os.unlink(temporary)


@functools.cache
def _weaver_hash() -> str:
    """Return a hash of the code that weaves, because each version may weave differently."""
    digest = hashlib.blake2b(digest_size=16)
    here = Path(__file__).parent
    for module in sorted([*here.glob("*.py"), *here.glob("weaving/*.py")]):
        digest.update(module.read_bytes())
    return digest.hexdigest()


def _cache_path(path: str, kinds: tuple[str, ...]) -> Path:
    options = hashlib.blake2b(repr(kinds).encode(), digest_size=4).hexdigest()
    beside = Path(importlib.util.cache_from_source(path))
    return beside.with_name(f"{beside.name.removesuffix('.pyc')}.swarmtest-{options}.pyc")


# Finding and loading modules.

Register = Callable[[Source, ProbePlan, str], None]


class Hook(MetaPathFinder):
    """Finds modules as the other finders do, with a loader from `loader_for` for chosen ones."""

    def __init__(self, scope: Scope, loader_for: Callable[[ModuleSpec], Loader | None]) -> None:
        self._scope = scope
        self._loader_for = loader_for

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the module's spec with our loader; None leaves it to the other finders."""
        if not self._scope.may_choose(fullname):
            return None
        spec = self._find_with_others(fullname, path, target)
        if spec is None or spec.origin is None or spec.loader is None:
            return None
        if not self._scope.chooses(fullname, spec.origin):
            return None
        loader = self._loader_for(spec)
        if loader is None:
            return None
        spec.loader = loader
        return spec

    def _find_with_others(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None
    ) -> ModuleSpec | None:
        # Only the finders after this one: those before it have been asked already, and could call
        # this one again without end.
        for finder in sys.meta_path[sys.meta_path.index(self) + 1 :]:
            find = getattr(finder, "find_spec", None)
            if find is None:
                continue
            spec: ModuleSpec | None = find(fullname, path, target)
            if spec is not None:
                return spec
        return None


class ProbingLoader(SourceFileLoader):
    """Loads a source file with probes woven in."""

    def __init__(self, name: str, path: str, kinds: tuple[str, ...], register: Register) -> None:
        super().__init__(name, path)
        self._kinds = kinds
        self._register = register

    def tells(self, register: Register) -> bool:
        """Return whether this loader reports to `register`."""
        return self._register == register

    def exec_module(self, module: ModuleType) -> None:
        """Execute the module, then make its cells the last of its names.

        At exit the interpreter deletes names in their order, and functions may still be called.
        """
        super().exec_module(module)
        cells_last(module)

    def woven_tree(self, fullname: str) -> ast.Module:
        """Return the module's syntax tree with probes, for callers that weave in more.

        The plan is registered.
        """
        path = self.get_filename(fullname)
        text = importlib.util.decode_source(self.get_data(path))
        source = Source(shown_path(path), text, path)
        tree, plan = woven_tree(text, path, cells_key(source, self._kinds), self._kinds)
        self._register(source, plan, path)
        return tree

    def get_code(self, fullname: str) -> CodeType:
        """Return the module's code with probes; its plan is registered before the code runs."""
        path = self.get_filename(fullname)
        data = self.get_data(path)
        text = importlib.util.decode_source(data)
        source = Source(shown_path(path), text, path)
        key = cells_key(source, self._kinds)
        made_from = stamp(data, f"{path}\0{key}", self._kinds)
        woven = load(path, self._kinds, made_from)
        if woven is None:
            woven = weave(text, path, key, self._kinds)
            keep(path, self._kinds, made_from, *woven)
        code, plan = woven
        self._register(source, plan, path)
        return code


def cells_last(module: ModuleType) -> None:
    """Make a module's cells the last of its names."""
    names = module.__dict__
    for name in CELLS:
        if name in names:
            names[name] = names.pop(name)


def has_source(spec: ModuleSpec) -> bool:
    """Return whether a module is an ordinary source file."""
    return isinstance(spec.loader, SourceFileLoader)


def is_test_module(spec: ModuleSpec) -> bool:
    """Return whether pytest rewrites a module's assertions: it holds tests, not the program."""
    return type(spec.loader).__module__.startswith("_pytest.")


def has_bytecode_only(spec: ModuleSpec) -> bool:
    """Return whether a module is a ``.pyc`` file without its source."""
    return isinstance(spec.loader, SourcelessFileLoader)


def is_extension(spec: ModuleSpec) -> bool:
    """Return whether a module is compiled to machine code."""
    return isinstance(spec.loader, ExtensionFileLoader)
