"""Find the user's objects: ``package.module:Class``, ``path/to/file.py::Class``.

A file is imported as pytest does it: the directory above its outermost package is put at the front
of `sys.path`, and the module gets the name that it has from there. So its own imports work, and
what it defines can be found by name in another process.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import importlib
import importlib.util
import os
import re
import signal
import sys
import sysconfig
import threading
import traceback
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from swarmtest.core.errors import UserError, did_you_mean


def split_reference(text: str) -> tuple[str, str]:
    """Return the module or file, and the object in it, that a reference names.

    >>> split_reference("tests/stack.py::StackMachine")
    ('tests/stack.py', 'StackMachine')
    >>> split_reference("stack:Stack")
    ('stack', 'Stack')
    >>> split_reference("stack.py")
    ('stack.py', '')
    """
    mark = "::" if "::" in text else ":"
    where, _, name = text.partition(mark)
    return where, name


_importing: list[str] = []
"""The modules that are being imported, the innermost last."""


def refuse_during_import() -> None:
    """Raise an error if a module starts a campaign while it is imported as a subject.

    Workers import the subject too, so each of them would start a campaign with workers of its own.
    """
    if _importing:
        raise UserError(
            f"{_importing[-1]} starts a campaign when it is imported: "
            "put that part under `if __name__ == '__main__':`"
        )


_LIMIT_VARIABLE = "SWARMTEST_IMPORT_SECONDS"
_USUAL_LIMIT = 60.0
_THREAD_SECONDS = 5.0
"""How long threads that a module started may take to end when the program does."""
_isolated = False


def isolate_imports() -> None:
    """From now on, import a module in a fork first: it may end, crash or block its process.

    For a program whose user waits for an answer. Workers need not do that again.
    """
    global _isolated
    _isolated = True


def load_module(where: str) -> ModuleType:
    """Import a module by its dotted name or by its file's path."""
    if Path(where).is_dir():
        raise UserError(f"{where} is a directory: name a file, or a module by its dotted name")
    if where.endswith(".py") or "/" in where:
        return _load_file(Path(where))
    _search_here()
    return _imported(where, where)


def load_object(reference: str, what: str, fits: Callable[[Any], bool] | None = None) -> Any:
    """Return the object that a reference names.

    `fits` selects the names that an error message may suggest.

    >>> load_object("collections:OrderedDict", "class").__name__
    'OrderedDict'
    >>> load_object("collections:OrderedDcit", "class")
    Traceback (most recent call last):
    ...
    swarmtest.UserError: collections has no class 'OrderedDcit'; did you mean 'OrderedDict'?
    """
    where, name = split_reference(reference)
    if not name:
        raise UserError(f"{reference!r} names no {what}: write {where}:NAME")
    value: Any = load_module(where)
    for part in name.split("."):
        if not hasattr(value, part):
            names = [
                name
                for name in dir(value)
                if not name.startswith("_") and (fits is None or fits(getattr(value, name)))
            ]
            raise UserError(f"{where} has no {what} {part!r}{did_you_mean(part, names)}")
        value = getattr(value, part)
    return value


def is_module(name: str) -> bool:
    """Return whether a name without dots is that of a module, without importing it.

    >>> is_module("collections"), is_module("not-a-module")
    (True, False)
    """
    _search_here()
    try:
        return importlib.util.find_spec(name) is not None
    except (ImportError, ValueError):
        return name in sys.modules


def entry_point(group: str, name: str) -> Any:
    """Return the object that an installed package offers under a name; None if there is none.

    The metadata of all installed packages is read for it, so ask only if a name is not known.

    >>> entry_point("swarmtest.strategies", "not-installed") is None
    True
    """
    if not re.fullmatch(r"[\w.-]+", name):
        return None
    from importlib import metadata

    for found in metadata.entry_points(group=group, name=name):
        try:
            return found.load()
        except UserError:
            raise
        except Exception as error:
            raise UserError(
                f"cannot load {name!r} (entry point {found.value} in group {group}): "
                f"{_one_line(error)}"
            ) from None
    return None


def entry_point_module(group: str, name: str) -> str:
    """Return the module of what an entry point offers, without importing it; empty if unknown.

    >>> entry_point_module("swarmtest.subjects", "not-installed")
    ''
    """
    from importlib import metadata

    return next((found.module for found in metadata.entry_points(group=group, name=name)), "")


def entry_point_names(group: str) -> list[str]:
    """Return the names that installed packages offer in a group of entry points.

    >>> entry_point_names("swarmtest.no-such-group")
    []
    """
    from importlib import metadata

    return sorted({found.name for found in metadata.entry_points(group=group)})


def _search_here() -> None:
    """Let modules in the current directory be imported."""
    if "" not in sys.path and str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))


def _load_file(path: Path) -> ModuleType:
    if path.is_dir():
        raise UserError(f"{path} is a directory: name a file, or a module by its dotted name")
    if not path.exists():
        raise UserError(f"no such file: {path}{_near(path)}")
    if "." in path.stem:
        raise UserError(f"{path} cannot be imported: a module's name has no dots; rename the file")
    path = path.resolve()
    root, parts = path.parent, [path.stem]
    while (root / "__init__.py").exists():
        parts.insert(0, root.name)
        root = root.parent
    if parts[-1] == "__init__" and len(parts) > 1:
        parts.pop()
    if str(root) not in sys.path:
        sys.path.insert(0, str(root))
    name = ".".join(parts)
    module = _imported(name, str(path))
    if module.__file__ is None or Path(module.__file__).resolve() != path:
        raise UserError(
            f"{path} cannot be imported as {name!r}: that name is taken by "
            f"{module.__file__}; rename the file"
        )
    return module


def _near(path: Path) -> str:
    siblings = [p.name for p in path.parent.glob("*.py")] if path.parent.is_dir() else []
    return did_you_mean(path.name, siblings)


def _imported(name: str, shown: str) -> ModuleType:
    if _isolated and name not in sys.modules and not _importing:
        _end_strays_at_exit()
        _try_import(name, shown)
    return _import(name, shown)


@functools.cache
def _end_strays_at_exit() -> None:
    """When this program ends, end the processes that imported modules started and left running."""
    from swarmtest.processes.tree import Supervision

    supervision, process = Supervision(), os.getpid()

    def end() -> None:
        if os.getpid() == process:
            supervision.end()

    atexit.register(end)


def _try_import(name: str, shown: str) -> None:
    """Import a module in a fork; raise `UserError` if this process would not survive that."""
    from swarmtest.processes.fork import NoAnswer, in_fork

    seconds = _import_limit()
    try:
        left = in_fork(lambda: _threads_left_by(name, shown), seconds)
    except NoAnswer as error:
        hint = f" ({_LIMIT_VARIABLE} sets the limit)" if "not over" in str(error) else ""
        raise UserError(f"cannot import {shown}: {error}{hint}") from None
    if left:
        raise UserError(
            f"cannot import {shown}: it starts a thread that never ends ({left}), and so the "
            "program would not either: start it with daemon=True"
        )


def _import_limit() -> float:
    text = os.environ.get(_LIMIT_VARIABLE, "")
    try:
        seconds = float(text) if text else _USUAL_LIMIT
    except ValueError:
        seconds = 0.0
    if not seconds > 0:
        raise UserError(f"{_LIMIT_VARIABLE} is a number of seconds above 0, not {text!r}")
    return seconds


def _threads_left_by(name: str, shown: str) -> str:
    """Import a module; return a thread that would keep the program from ending, if any."""
    before = {*threading.enumerate()}
    _import(name, shown)
    started = [thread for thread in threading.enumerate() if thread not in before]
    if all(thread.daemon for thread in started):
        return ""

    def give_up(*_: object) -> None:
        raise TimeoutError

    signal.signal(signal.SIGALRM, give_up)
    # Again and again: from Python 3.13 on, an exception ends only the wait for one thread.
    signal.setitimer(signal.ITIMER_REAL, _THREAD_SECONDS, _THREAD_SECONDS / 10)
    with contextlib.suppress(TimeoutError):
        # What the interpreter does at its end: thread pools let their threads go then.
        threading._shutdown()  # type: ignore[attr-defined]
        signal.setitimer(signal.ITIMER_REAL, 0)
    return next((t.name for t in started if t.is_alive() and not t.daemon), "")


def _import(name: str, shown: str) -> ModuleType:
    _importing.append(shown)
    try:
        return importlib.import_module(name)
    except (UserError, KeyboardInterrupt):
        raise
    except SyntaxError as error:
        where = f"{error.filename}:{error.lineno}" if error.filename else shown
        raise UserError(f"cannot import {where}: {error.msg}") from None
    except BaseException as error:
        missing = isinstance(error, ModuleNotFoundError) and error.name
        if missing and (name == missing or name.startswith(f"{missing}.")):
            raise UserError(f"no module named {name!r} (looked from {Path.cwd()})") from None
        line = _line_of(error)
        raise UserError(f"cannot import {shown}{line}: {_one_line(error)}") from None
    finally:
        _importing.pop()


def _one_line(error: BaseException) -> str:
    try:
        text = str(error).strip()
    except Exception:
        text = "(its message cannot be printed)"
    first = text.splitlines()[0] if text else ""
    if isinstance(error, SystemExit):
        return "it ends the program (sys.exit)"
    return f"{type(error).__name__}: {first}" if first else type(error).__name__


def _line_of(error: BaseException) -> str:
    """Return where an import failed: the innermost line that is not in a library."""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if f.filename != __file__]
    libraries = tuple(sysconfig.get_paths()[key] for key in ("stdlib", "purelib", "platlib"))
    own = [f for f in frames if not f.filename.startswith((*libraries, "<frozen"))]
    return f" ({own[-1].filename}:{own[-1].lineno})" if own else ""
