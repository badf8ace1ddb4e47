"""Programs and files that are hostile: imports that do not end, poison tests, files of others.

Used by hostile.py.
"""

# ruff: noqa: E501  # a table is read by its rows

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

from hostile_stores import (
    MACHINE,
    PROGRAM,
    RACE,
    RING,
    SELL,
    TASKS,
    WORDS,
    evil_program,
    payload_arguments,
)

IMPORTS = {
    "ends the process": "import os; os._exit(7)\n",
    "ends the process well": "import os; os._exit(0)\n",
    "crashes": "import ctypes; ctypes.string_at(0)\n",
    "hangs": "import time\nwhile True: time.sleep(1)\n",
    "hangs and ignores signals": (
        "import signal, time\nfor n in (2, 15, 1): signal.signal(n, signal.SIG_IGN)\n"
        "while True: time.sleep(1)\n"
    ),
    "starts a thread that never ends": (
        "import threading, time\nthreading.Thread(target=lambda: time.sleep(10**6)).start()\n"
    ),
    "starts a process that never ends": "import subprocess; subprocess.Popen(['sleep', '9731'])\n",
    "raises what cannot be printed": (
        "class Bad(BaseException):\n    def __str__(self): raise self\n    __repr__ = __str__\n"
        "raise Bad()\n"
    ),
    "raises text with escapes": "raise ValueError('\\x1b]0;owned\\x07\\u202e')\n",
    "exits": "raise SystemExit('\\x1b]0;owned\\x07')\n",
    "is interrupted": "raise KeyboardInterrupt\n",
    "does not parse": "class \x1b]0;owned\x07\n",
    "has a NUL": "x = 1\0\n",
    "is no text": "\udcff\udcfe",
    "recurses": "def f(): f()\nf()\n",
    "closes descriptors": "import os; os.closerange(0, 100)\n",
    "kills its parent": "import os, signal; os.kill(os.getppid(), signal.SIGKILL)\n",
    "replaces built-ins": (
        "import builtins\nfor n in ('len', 'open', 'isinstance', 'print'):\n"
        "    setattr(builtins, n, None)\n"
    ),
    "writes much": "import os\nfor _ in range(200): os.write(1, b'much ' * 1000)\n",
}
"""First lines of a file, before a machine; ``SWARMTEST_IMPORT_SECONDS`` is short in these."""

POISON = {
    "hostile __getattribute__": """
class Bad(Exception):
    def __getattribute__(self, name): raise ValueError("no attribute for you")
raise Bad()
""",
    "hostile __str__ and __repr__": """
class Bad(Exception):
    def __str__(self): os._exit(3)
    __repr__ = __str__
raise Bad()
""",
    "hostile __class__": """
class Bad(Exception):
    @property
    def __class__(self): raise ValueError("no class for you")
raise Bad()
""",
    "hostile metaclass": """
class Meta(type):
    def __getattribute__(cls, name): raise ValueError("no name for you")
    def __repr__(cls): raise ValueError("no text for you")
class Bad(Exception, metaclass=Meta): pass
raise Bad()
""",
    "escapes in a message": "raise ValueError('\\x1b]0;owned\\x07\\u202e\\ud800\\0</script>')\n",
    "a message of 8 MB": "raise ValueError('ab c' * 2_000_000)\n",
    "a cycle of causes": """
one, two = ValueError("one"), ValueError("two")
one.__cause__, two.__cause__ = two, one
raise one
""",
    "closed descriptors": "os.closerange(0, 256)\n",
    "overwritten descriptors": """
null = os.open(os.devnull, os.O_RDWR)
for number in range(3, 64): os.dup2(null, number)
""",
    "junk in descriptors": """
for number in range(3, 64):
    try: os.write(number, b"junk" * 50)
    except OSError: pass
""",
    "replaced built-ins": """
import builtins
for name in ("isinstance", "len", "open", "tuple", "zip"): setattr(builtins, name, None)
""",
    "replaced functions": """
import marshal, time
os.write = os.getpid = time.monotonic_ns = marshal.dumps = None
""",
    "kills its parent": "os.kill(os.getppid(), signal.SIGKILL)\n",
    "ends its parent": "os.kill(os.getppid(), signal.SIGTERM)\n",
    "interrupts its parent": "os.kill(os.getppid(), signal.SIGINT)\n",
    "stops its parent": "os.kill(os.getppid(), signal.SIGSTOP)\n",
    "kills its group": "os.killpg(0, signal.SIGKILL)\n",
    "stops itself": "os.kill(os.getpid(), signal.SIGSTOP)\n",
    "leaves processes": """
import subprocess
for _ in range(3): subprocess.Popen(["sleep", "9732"], start_new_session=True)
""",
    "leaves a daemon": """
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        import time
        time.sleep(9733)
    os._exit(0)
""",
    "leaves threads": """
import threading, time
threading.Thread(target=time.sleep, args=(9734,)).start()
""",
    "exits": "sys.exit(0)\n",
    "ends its process": "os._exit(0)\n",
    "segfaults": "import ctypes; ctypes.string_at(0)\n",
    "interrupts": "raise KeyboardInterrupt\n",
    "removes its directory": "import shutil; shutil.rmtree(os.getcwd(), ignore_errors=True)\n",
    "changes its directory": "os.chdir('/')\n",
    "writes escapes": "os.write(1, b'\\x1b]0;owned\\x07'); os.write(2, b'\\x1b]0;owned\\x07')\n",
    "handles all signals": """
for number in (1, 2, 10, 12, 15): signal.signal(number, lambda *_: None)
while True: pass
""",
    "no recursion": "sys.setrecursionlimit(50)\n",
    "a trace function": "sys.settrace(lambda *_: 1 / 0)\n",
    "no more memory": """
import resource
resource.setrlimit(resource.RLIMIT_AS, (1, 1))
bytearray(10**9)
""",
    "low limits": """
import resource
for name in ("NOFILE", "FSIZE", "NPROC", "STACK", "DATA"):
    resource.setrlimit(getattr(resource, "RLIMIT_" + name), (1, 1))
""",
    "no CPU time": "import resource; resource.setrlimit(resource.RLIMIT_CPU, (1, 1))\n",
    "keeps all memory": """
import resource
resource.setrlimit(resource.RLIMIT_AS, (1, 1))
global hoard
hoard = []
for size in (1 << 20, 1 << 12, 1 << 9, 1 << 6, 8):
    try:
        while True: hoard.append(bytearray(size))
    except MemoryError: pass
""",
    "a directory that is gone": """
import tempfile
with tempfile.TemporaryDirectory() as directory: os.chdir(directory)
""",
    "no new files": "os.umask(0o777)\n",
    "blocks and ignores signals": """
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))
""",
    "an alarm": "signal.setitimer(signal.ITIMER_REAL, 0.05)\n",
    "another user": "os.setgroups([]); os.setgid(65534); os.setuid(65534)\n",
    "another root": "os.chroot('/dev')\n",
    "no environment": "os.environ.clear()\n",
    "no modules": "sys.modules.clear()\n",
    "no path": "sys.path.clear(); sys.meta_path.clear()\n",
    "no streams": "sys.stdin = sys.stdout = sys.stderr = None\n",
    "no hooks": """
import faulthandler, gc, threading
gc.disable(); gc.freeze(); faulthandler.disable()
sys.excepthook = sys.unraisablehook = threading.excepthook = None
""",
    "the lowest priority": "os.nice(19)\n",
    "another locale": "import locale; locale.setlocale(locale.LC_ALL, 'C')\n",
    "prctl": """
import ctypes
for option, value in ((1, 0), (36, 0), (4, 0), (15, b"\\x1b]0;x")): ctypes.CDLL(None).prctl(option, value, 0, 0, 0)
""",
    "seccomp": "import ctypes; ctypes.CDLL(None).prctl(22, 1, 0, 0, 0)\n",
    "another session": "os.setsid() if os.getpgrp() != os.getpid() else os.setpgid(0, os.getpgid(os.getppid()))\n",
    "a thread that strikes later": """
import threading
threading.Timer(0.05, lambda: os._exit(3)).start()
""",
    "an exit handler": "import atexit; atexit.register(os.abort)\n",
    "patched modules": """
import json, resource, select, zlib
resource.getrlimit = resource.setrlimit = json.dumps = zlib.compress = select.select = None
""",
}
"""What an action does in some tests of a campaign."""


def poison_machine(name: str) -> str:
    """Return a machine one of whose actions is poison, in about a third of the tests."""
    body = "".join(f"    {line}\n" for line in POISON[name].strip().splitlines())
    return f"""
import os, signal, sys
from swarmtest import Machine, action, integers

def strike():
{body}
class Poison(Machine):
    steps = 3
    @action(value=integers(0, 9))
    def work(self, value): self.event("worked")
    @action(value=integers(0, 5))
    def poison(self, value):
        if value == 3: strike()
"""


_STRUCK = {
    "ring.py": (RING, "self.items.append(item)", "self.items.append(item) or strike()"),
    "words.py": (
        WORDS,
        "assert sum(map(len, lines)) < 40, lines",
        "sum(map(len, lines)) < 40 or strike()",
    ),
    "tasks.py": (
        TASKS,
        "pages.found = (*known, delay)",
        "pages.found = (*known, delay); delay > 0.01 and strike()",
    ),
    "counter.py": (RACE, "self.value = value + 1", "self.value = value + 1; value and strike()"),
    "air.py": (SELL, "assert not (", "(level == 'high' and strike()); assert not ("),
}
"""Of each program, the place where it strikes."""


def poison_program(file: str, name: str) -> str:
    """Return one of the user's programs, which strikes in some of its runs."""
    if file == "disk.py":
        return poison_machine(name)
    source, before, after = _STRUCK[file]
    assert before in source
    body = "".join(f"    {line}\n" for line in POISON[name].strip().splitlines())
    return f"import os, signal, sys\n\ndef strike():\n{body}\n" + source.replace(before, after)


def hostile_release(name: str) -> bytes:
    """Return the module of a release whose import does something hostile."""
    return (IMPORTS[name] + RING).encode("utf-8", "surrogateescape")


NO_RELEASES = [
    "ringware", "ringware==9", "./ringware-1.0-py3-none-any.whl", "-e .==1", "--index-url=x==1",
    "ringware @ file:///etc/passwd", "ringware==1.0;import os", "../../ringware==1.0", "", "==",
    "ringware==\x1b]0;owned\x07", "ringware==1.0\n-r evil", "ringware[x]==1.0", "a" * 5000 + "==1",
]  # fmt: skip
"""What is given as a release and is none, or one that is not there."""


POISON_TEST = """{"format": "swarmtest machine test 1", "subject": "disk.py::Poison",
 "steps": [["work", [1]], ["poison", [3]], ["work", [2]]]}"""
"""A saved test that strikes."""


def hostile_import(name: str) -> bytes:
    """Return a file with a machine whose import does something hostile."""
    return (IMPORTS[name] + MACHINE).encode("utf-8", "surrogateescape")


ESC = "\x1b]0;owned\x07\u202e"
_STEPS = PROGRAM.partition("[generate]")[2]
_ANY_BUILD = ("run x.toml -n 5 -q", "check x.toml")
_BUILDS = {
    "of a number": "command = 7",
    "of nothing": "",
    "of unknown keys": 'command = "true"\noutput = "prog"\n"\\u001b]0;x" = 1',
    "without output": 'command = "cp prog.sh prog"\nsources = ["prog.sh"]',
    "that writes nothing": 'command = "true"\nsources = ["prog.sh"]\noutput = "prog"',
    "with a compiler that is missing": 'command = "no-such-cc prog.sh -o prog"\nsources = ["prog.sh"]\noutput = "prog"',
    "with a missing compiler as words": 'command = ["no-such-cc", "prog.sh"]\nsources = ["prog.sh"]\noutput = "prog"',
    "with a directory as compiler": 'command = ["/"]\nsources = ["prog.sh"]\noutput = "prog"',
    "of no words": 'command = []\nsources = ["prog.sh"]\noutput = "prog"',
    "of an empty line": 'command = ""\nsources = ["prog.sh"]\noutput = "prog"',
    "with a NUL": 'command = "true\\u0000"\nsources = ["prog.sh"]\noutput = "prog"',
    "with escapes in its command": 'command = "cp prog.sh prog # \\u001b]0;owned\\u0007\\u202e"\nsources = ["prog.sh"]\noutput = "prog"',
    "that prints escapes and fails": 'command = "printf \'error: \\\\033]0;owned\\\\007\\\\n\' >&2; exit 3"\nsources = ["prog.sh"]\noutput = "prog"',
    "that prints much": 'command = "yes much | head -c 30000000; cp prog.sh prog"\nsources = ["prog.sh"]\noutput = "prog"',
    "that hangs": 'command = "sleep 9741"\nsources = ["prog.sh"]\noutput = "prog"\nseconds = 1',
    "that leaves a process": 'command = "sleep 9742 & cp prog.sh prog"\nsources = ["prog.sh"]\noutput = "prog"\nseconds = 10',
    "that leaves a session": 'command = "setsid sleep 9743 & cp prog.sh prog"\nsources = ["prog.sh"]\noutput = "prog"\nseconds = 10',
    "that removes its sources": 'command = "mv prog.sh prog"\nsources = ["prog.sh"]\noutput = "prog"',
    "of sources that are none": 'command = "cp prog.sh prog"\nsources = ["none", ""]\noutput = "prog"',
    "of absolute patterns": 'command = "cp prog.sh prog"\nsources = ["/no/*.c"]\noutput = "prog"',
    "of broken patterns": 'command = "cp prog.sh prog"\nsources = ["**x/[[["]\noutput = "prog"',
    "of sources with a NUL": 'command = "cp prog.sh prog"\nsources = ["a\\u0000b"]\noutput = "prog"',
    "of numbers as sources": 'command = "cp prog.sh prog"\nsources = [1]\noutput = "prog"',
    "of odd files": 'command = "mkfifo x.c; ln -sf nowhere y.c; ln -sf z.c z.c; cp prog.sh prog"\nsources = ["."]\noutput = "prog"',
    "into a directory": 'command = "true"\nsources = ["prog.sh"]\noutput = "."',
    "into a device": 'command = "true"\nsources = ["prog.sh"]\noutput = "/dev/full"',
    "without time": 'command = "true"\nsources = ["prog.sh"]\noutput = "prog"\nseconds = -1',
    "with time that is none": 'command = "true"\nsources = ["prog.sh"]\noutput = "prog"\nseconds = nan',
    "without end": 'command = "cp prog.sh prog"\nsources = ["prog.sh"]\noutput = "prog"\nseconds = inf',
}
_GENERATOR = "from swarmtest import generator\n@generator(features=%s, run=%s)\ndef words(rng, features):\n    %s\n"
_TEXT_FEATURES = "['long', 'short']"
_ANY_GENERATOR = ("run g.py -n 10", "check g.py")
_GENERATORS = {
    "of nothing": _GENERATOR % (_TEXT_FEATURES, "len", "return None"),
    "of numbers": _GENERATOR % (_TEXT_FEATURES, "len", "return [1]"),
    "that raises": _GENERATOR % (_TEXT_FEATURES, "len", "raise ValueError('\\x1b]0;owned\\x07')"),
    "that exits": _GENERATOR % (_TEXT_FEATURES, "len", "raise SystemExit(5)"),
    "that ends its process": _GENERATOR % (_TEXT_FEATURES, "len", "__import__('os')._exit(5)"),
    "that hangs": _GENERATOR.replace("run=%s", "run=%s, seconds=1")
    % (_TEXT_FEATURES, "len", "while True: pass"),
    "of escapes": _GENERATOR % (_TEXT_FEATURES, "int", "return '\\x1b]0;owned\\x07\\u202e'"),
    "of surrogates": _GENERATOR % (_TEXT_FEATURES, "int", "return 'a\\ud800'"),
    "of surrogates for a list": _GENERATOR
    % (_TEXT_FEATURES, "int", "return ['a\\ud800', '\\udcff']"),
    "of much": _GENERATOR % (_TEXT_FEATURES, "int", "return 'x' * 30_000_000"),
    "of many steps": _GENERATOR % (_TEXT_FEATURES, "int", "return ['x'] * 200_000"),
    "of no features": _GENERATOR % ("[]", "len", "return 'a'"),
    "of numbers as features": _GENERATOR % ("[1, 2]", "len", "return 'a'"),
    "of hostile features": _GENERATOR
    % ("['\\x1b]0;owned\\x07', '=1+1', '</script>']", "int", "return 'a'"),
    "of one feature twice": _GENERATOR % ("['a', 'a']", "len", "return 'a'"),
    "that runs nothing": _GENERATOR % (_TEXT_FEATURES, "7", "return 'a'"),
    "whose events are hostile": _GENERATOR
    % (
        _TEXT_FEATURES,
        "lambda text: ['\\x1b]0;owned\\x07', '=1', '<img src=x onerror=y>']",
        "return 'a'",
    ),
    "whose events are none": _GENERATOR
    % (_TEXT_FEATURES, "lambda text: [1, None, [2]]", "return 'a'"),
    "whose run is odd": _GENERATOR
    % (
        _TEXT_FEATURES,
        "lambda text: type('R', (), {'fault': lambda self: 7, 'hits': 1, 'missing': 2})()",
        "return 'a'",
    ),
    "with a library that is none": "from swarmtest.coverage import Library\nlibrary = Library('cov.info')\n"
    + _GENERATOR % (_TEXT_FEATURES, "len", "return 'a'"),
    "with a library that is missing": "from swarmtest.coverage import Library\nlibrary = Library('\\x1b]0;x\\x07.so')\n"
    + _GENERATOR % (_TEXT_FEATURES, "len", "return 'a'"),
    "with a program that is missing": "from swarmtest.coverage import Program\n"
    + _GENERATOR % (_TEXT_FEATURES, "Program(['./none'])", "return 'a'"),
    "with a program that is none": "from swarmtest.coverage import Program\n"
    + _GENERATOR % (_TEXT_FEATURES, "Program(['./cov.info'])", "return 'a'"),
    "with a program that is built badly": "from swarmtest.coverage import Program\n"
    + _GENERATOR
    % (_TEXT_FEATURES, "Program(['./prog'], build='no-such-cc \\x1b]0;x')", "return 'a'"),
}
_SAVED = '{"format": "swarmtest machine test 1", "subject": "disk.py::Disk", "steps": %s}'
FILES: dict[str, tuple[str, str | bytes, tuple[str, ...]]] = {
    "no JSON": ("t.json", "{", ("replay t.json", "reduce t.json --time 2s")),
    "deep JSON": ("t.json", "[" * 100_000, ("replay t.json --no-run", "reduce t.json --time 2s")),
    "deep steps": ("t.json", _SAVED % ("[" * 900 + "]" * 900), ("replay t.json",)),
    "steps that are none": ("t.json", _SAVED % '[1, null, {"a": 1}]', ("replay t.json", "replay t.json --no-run", "reduce t.json --time 2s")),
    "an action with escapes": ("t.json", _SAVED % json.dumps([[ESC, []]]), ("replay t.json", "replay t.json --no-run")),
    "an action that is private": ("t.json", _SAVED % '[["__init__", []], ["__class__", []]]', ("replay t.json", "replay t.json --no-run")),
    "too many arguments": ("t.json", _SAVED % '[["write", [1, 2, 3, 4]]]', ("replay t.json",)),
    "huge numbers": ("t.json", _SAVED % ('[["write", [' + "9" * 6000 + "]]]"), ("replay t.json", "replay t.json --no-run")),
    "a surrogate": ("t.json", _SAVED % '[["write", ["\\ud800"]]]', ("replay t.json", "replay t.json --no-run")),
    "a subject with escapes": ("t.json", _SAVED.replace("disk.py::Disk", "\\u001b]0;x\\u0007.py::A") % "[]", ("replay t.json", "replay t.json --no-run")),
    "a huge range": ("t.json", _SAVED % '[["write", [{"$range": [0, 1e400, 1]}]]]', ("replay t.json", "replay t.json --no-run")),
    "a huge decimal": ("t.json", _SAVED % '[["write", [{"$decimal": "1e999999999999999999"}]]]', ("replay t.json", "replay t.json --no-run")),
    "an expensive pattern": ("t.json", _SAVED % '[["write", [{"$pattern": "(((((a{1,50}){1,50}){1,50}){1,50}){1,50}", "flags": 999}]]]', ("replay t.json", "replay t.json --no-run")),
    "a zone outside": ("t.json", _SAVED % '[["write", [{"$zone": "../../etc/passwd"}]]]', ("replay t.json", "replay t.json --no-run")),
    "an array of all memory": ("t.json", _SAVED % '[["write", [{"$array": "<f8", "shape": [100000000000], "items": [1]}]]]', ("replay t.json", "replay t.json --no-run")),
    "an unknown tag": ("t.json", _SAVED % '[["write", [{"$evil\\u001b": 1}]]]', ("replay t.json", "replay t.json --no-run")),
    "bytes": ("t.json", b"\xff\xfe\x00\x80", ("replay t.json", "reduce t.json --time 2s")),
    "TOML that is none": ("x.toml", "[[[", ("run x.toml -n 5", "check x.toml", "search run x.toml", "run disk.py -n 5 --executor x.toml")),
    "TOML with escapes": ("x.toml", '"\\u001b]0;x\\u0007" = 1\n[steps]\n', ("run x.toml -n 5", "check x.toml", "features x.toml", "search run x.toml", "run disk.py -n 5 --executor x.toml")),
    "TOML of wrong types": ("x.toml", 'description = 5\nfeatures = "all"\nsteps = [1, 2]\ngenerate = []\n', ("run x.toml -n 5", "check x.toml", "features x.toml", "plan x.toml --ways 2")),
    "a space of wrong types": ("x.toml", "dimensions = [1]\ntests = 7\n", ("search run x.toml",)),
    "a space without end": ("x.toml", '[dimensions]\na = { kind = "integer", low = 0, high = 99999999999999999999 }\nb = { kind = "integer", low = 5, high = 1 }\n', ("search run x.toml --points 3",)),
    "a space that names os": ("x.toml", '[dimensions]\ntest = { kind = "test", values = ["a"] }\n[tests.a]\nrun = "os::abort"\n', ("search run x.toml --points 3",)),
    "deep TOML": ("x.toml", "a = " + "[" * 5000, ("run x.toml -n 5", "search run x.toml")),
    "no UTF-8": ("x.toml", b"a = '\xff'", ("run x.toml -n 5", "search run x.toml", "check x.toml")),
    "an executor that is not there": ("x.toml", 'executor = "nowhere:Evil"\n', ("run disk.py -n 5 --executor x.toml",)),
    "LCOV that is none": ("c.info", "SF:\x1b]0;x\x07\nDA:x,y\nBRDA:1\nend_of_record", ("import-coverage c.info --store n.db",)),
    "LCOV of negative lines": ("c.info", "SF:a.c\nDA:-5,-7\nDA:99999999999999999999,1\nend_of_record\n", ("import-coverage c.info --store n.db", "coverage --store n.db")),
    "coverage XML with an entity": ("c.xml", '<!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/passwd"><!ENTITY y "&x;&x;&x;">]><coverage><packages>&y;</packages></coverage>', ("import-coverage c.xml --store n.db",)),
    "coverage XML that grows": ("c.xml", "<!DOCTYPE a [" + "".join(f'<!ENTITY e{n} "{f"&e{n - 1};" * 10 if n else "x" * 100}">' for n in range(12)) + "]><coverage>&e11;</coverage>", ("import-coverage c.xml --store n.db",)),
    "coverage JSON of wrong types": ("c.json", '{"files": [1], "meta": null}', ("import-coverage c.json --store n.db",)),
    "deep coverage JSON": ("c.json", '{"files":' + "[" * 100_000, ("import-coverage c.json --store n.db",)),
    "a coverage database that is none": (".coverage", b"SQLite format 3\0" + b"\xff" * 500, ("import-coverage .coverage --store n.db",)),
    "targets that are none": ("targets", f"{ESC}\nline:x:y:z\n\0\nline:disk.py:999999999999999999999\n", ("focus disk.py --targets-from targets -n 20 --baseline-tests 20",)),
    "SARIF of wrong types": ("t.sarif", '{"runs": [{"results": [{"locations": 7}, null]}]}', ("focus disk.py --targets-from t.sarif -n 20 --baseline-tests 20",)),
    "a state that is none": ("state", "\0\xff{", ("reduce FAULT --state state --time 2s",)),
    "a state of wrong types": ("state", '{"steps": 7, "test": [], "format": null}', ("reduce FAULT --state state --time 2s",)),
    "a suite of somebody": ("suite_test.py", "# not written by swarmtest\n", ("suite 1 -o suite_test.py --no-reduce",)),
    "a grammar that is none": ("g.g4", f"grammar {ESC}; a : ( b ", ("run g.g4 -n 5", "check g.g4", "features g.g4")),
    "a grammar without end": ("g.g4", "grammar G;\na : a a ;\n", ("run g.g4 -n 5", "check g.g4", "features g.g4")),
    "a grammar with code": ("g.g4", "grammar G;\n@members { import os; os.abort() }\na : 'x' { os.abort() } ;\n", ("run g.g4 -n 5", "check g.g4")),
    "a plain file as a test": ("plain.txt", b"\x1b]0;owned\x07\n" * 20, ("reduce plain.txt --keep true --time 2s", "replay plain.txt")),
    "a directory as a machine": ("dir/x", "", ("run dir -n 5", "check dir", "features dir", "race dir", "mutate dir")),
    "a C file that is none": ("x.c", "int main( {", ("cc gcc x.c -o x", "mutate x.c --pytest none")),
    **{f"a build {name}": ("x.toml", f"[build]\n{lines}\n[generate]{_STEPS}", _ANY_BUILD) for name, lines in _BUILDS.items()},
    **{f"a generator {name}": ("g.py", source, _ANY_GENERATOR) for name, source in _GENERATORS.items()},
    "a generated test of others": ("t.json", json.dumps({"format": "swarmtest generated test 1", "subject": "words.py::words", "steps": [ESC, "=1"], ESC: ESC}), ("replay t.json", "replay t.json --no-run", "reduce t.json --time 2s")),
    "a generated test of wrong types": ("t.json", '{"format": "swarmtest generated test 1", "subject": "words.py::words", "steps": [1], "base64": 7}', ("replay t.json", "replay t.json --no-run", "reduce t.json --time 2s")),
    "a class with hostile names": ("api.py", "class A: pass\nfor name in ('\\x1b]0;x\\x07', '=1+1', '</script>', 'a\\nb', ''): setattr(A, name, lambda self, x: 1 / 0)\n", ("init --api api:A", "run api:A --api -n 10", "check api:A --api", "run api:A --like list -n 10")),
    "a class with a hostile metaclass": ("api.py", "class M(type):\n    def __getattribute__(cls, name): raise ValueError('\\x1b]0;x')\nclass A(metaclass=M): pass\n", ("init --api api:A", "run api:A --api -n 10", "check api:A --api", "run api:A --like list -n 10")),
    "a class that is none": ("api.py", "A = 7\n", ("init --api api:A", "run api:A --api -n 10", "run api:A --like list -n 10", "run api:A --like nothing -n 10")),
    "a race that is none": ("api.py", "async def a(): pass\ndef b(x): pass\nc = 7\n", ("race api.py::a -n 3 --control", "race api.py::b -n 3", "race api.py::c -n 3 --control")),
    "tasks that do not end": ("api.py", "import asyncio\nasync def f():\n    while True: await asyncio.sleep(0)\ndef a(): asyncio.run(f())\n", ("race api.py::a -n 3 --control --timeout 2s", "race api.py::a -n 3 --timeout 2s")),
}  # fmt: skip
"""A file, what is in it, and the commands that read it."""


def write_file(place: Path, name: str, content: str | bytes) -> None:
    """Write a file of somebody else."""
    path = place / name
    path.parent.mkdir(exist_ok=True)
    data = content if isinstance(content, bytes) else content.encode("utf-8", "surrogatepass")
    path.write_bytes(data)


def pickled_file(place: Path) -> None:
    """Write a saved test with a pickle in it."""
    steps = [["write", payload_arguments(place, "pickled file")]]
    (place / "t.json").write_text(_SAVED % json.dumps(steps))


def evil_file(place: Path) -> None:
    """Write a saved test whose subject is a program with a payload."""
    (place / "evil.py").write_text(evil_program(place, "subject of a file"))
    (place / "t.json").write_text(_SAVED.replace("disk.py::Disk", "evil.py::Disk") % "[]")


# Caches.


def cache_of(kind: str) -> Callable[[Path], None]:
    """Return what makes the cache directory of a user unusual; it lies beside the directory."""

    def prepare(place: Path) -> None:
        cache = place.parent / "cache"
        if kind == "a file":
            cache.write_text("")
        elif kind == "a loop":
            cache.symlink_to(cache)
        elif kind == "world-writable":
            cache.mkdir()
            os.chmod(cache, 0o777)
        elif kind == "full of code":
            os.chmod(place.parent, 0o777)
            for folder in ("woven", "mutants", "probes", "race", "native", "symbols"):
                (cache / "swarmtest" / folder).mkdir(parents=True)
                program = evil_program(place, f"cache {folder}")
                (cache / "swarmtest" / folder / "disk.py").write_text(program)
            os.chmod(cache, 0o777)
        elif kind == "unwritable":
            cache.mkdir()
            os.chmod(cache, 0o500)

    return prepare
