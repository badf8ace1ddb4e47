"""A module that does not survive its own import costs one line, and not the command."""

from __future__ import annotations

import pytest

LAMP = """
from swarmtest import Machine, action

class Lamp(Machine):
    steps = 3

    @action
    def switch(self): pass
"""
HOSTILE = {
    "exit": ("import os\nos._exit(7)\n", "it ended its process with exit status 7"),
    "exit_0": ("import os\nos._exit(0)\n", "it ended its process with exit status 0"),
    "crash": ("import ctypes\nctypes.string_at(0)\n", "it was killed by SIGSEGV"),
    "kill": ("import os\nos.kill(os.getpid(), 9)\n", "it was killed by SIGKILL"),
    "kill_parent": ("import os\nos.kill(os.getppid(), 9)\n", "it killed its parent"),
    "hang": ("while True: pass\n", "it was not over after 2 s"),
    "hang_in_c": ("pow(3, 10**9)\n", "it was not over after 2 s"),
    "thread": (
        "import threading, time\nthreading.Thread(target=time.sleep, args=(9999,)).start()\n",
        "it starts a thread that never ends",
    ),
}


@pytest.mark.parametrize("what", HOSTILE)
@pytest.mark.parametrize("command", ["run", "check", "init --api"])
def test_it_is_refused_with_one_line(command, what, swarmtest, refused, tmp_path):
    text, words = HOSTILE[what]
    (tmp_path / "lamps.py").write_text(LAMP + text)
    seconds = "2" if "hang" in what else "60"
    named = "lamps.py:Lamp" if command == "init --api" else "lamps.py"
    done = swarmtest(*command.split(), named, cwd=tmp_path, SWARMTEST_IMPORT_SECONDS=seconds)
    refused(done, "cannot import", "lamps.py", words)


@pytest.mark.parametrize(
    "text",
    [
        "import threading, time\nthreading.Thread(target=time.sleep, args=(0.1,)).start()\n",
        "import threading, time\n"
        "threading.Thread(target=time.sleep, args=(9999,), daemon=True).start()\n",
        "from concurrent.futures import ThreadPoolExecutor\n"
        "pool = ThreadPoolExecutor(2)\npool.submit(int)\n",
    ],
    ids=["short", "daemon", "pool"],
)
def test_threads_that_end_with_the_program_are_welcome(text, swarmtest, tmp_path):
    (tmp_path / "lamps.py").write_text(LAMP + text)
    done = swarmtest("run", "lamps.py", "-n", 5, cwd=tmp_path)
    assert done.returncode == 0, done.stderr


def test_a_limit_that_is_no_number_is_refused(swarmtest, refused, tmp_path):
    (tmp_path / "lamps.py").write_text(LAMP)
    done = swarmtest("check", "lamps.py", cwd=tmp_path, SWARMTEST_IMPORT_SECONDS="soon")
    refused(done, "SWARMTEST_IMPORT_SECONDS is a number of seconds above 0, not 'soon'")


def test_a_process_that_an_import_started_ends_with_the_command(start, family, tmp_path):
    text = "import subprocess\nsubprocess.Popen(['sleep', '9731'], start_new_session=True)\n"
    (tmp_path / "lamps.py").write_text(text + LAMP)
    for words in (("check", "lamps.py"), ("run", "lamps.py", "-n", 5, "-q")):
        process = start(*words, cwd=tmp_path)
        process.wait(timeout=180)
        assert process.returncode == 0
        assert not family(process)
