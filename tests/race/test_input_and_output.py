"""Threads that wait for sockets, pipes, files and other processes hand over to others."""

from __future__ import annotations

import _thread
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from swarmtest.race import racer
from swarmtest.race.control.runner import ControlledRun, controlled_run, minimised_schedule, replay
from swarmtest.race.control.schedulers import POS, RandomWalk
from swarmtest.race.noise_settings import NoiseSettings
from swarmtest.race.race_test import ControlSettings, RaceTest
from swarmtest.race.subject import ThreadsSubject

Load = Callable[[str], ModuleType]

START = """
def run(*works):
    threads = [threading.Thread(target=work) for work in works]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
"""


def runs_of(test: Callable[[], object], many: int = 8) -> list[ControlledRun]:
    """Runs under two schedulers; none of them has a problem."""
    runs = [controlled_run(test, make(seed)) for make in (RandomWalk, POS) for seed in range(many)]
    assert {run.problem for run in runs} == {""}
    return runs


CORRECT = {
    "a socket": """
        import socket, threading
        def test():
            server = socket.create_server(("127.0.0.1", 0))
            got = []
            def serve():
                connection, _ = server.accept()
                with connection:
                    connection.sendall(connection.recv(10) * 2)
            def ask():
                with socket.create_connection(server.getsockname()) as client:
                    client.sendall(b"hi")
                    got.append(client.recv(10))
            run(serve, ask)
            server.close()
            assert got == [b"hihi"]
    """,
    "more than a socket holds": """
        import socket, threading
        def test():
            a, b = socket.socketpair()
            got = []
            def read():
                while len(b"".join(got)) < 1_000_000:
                    got.append(b.recv(65_536))
            run(lambda: a.sendall(b"x" * 1_000_000), read)
            a.close(); b.close()
            assert len(b"".join(got)) == 1_000_000
    """,
    "select": """
        import select, socket, threading
        def test():
            a, b = socket.socketpair()
            got = []
            run(lambda: got.append(select.select([a], [], [], 60)[0]), lambda: b.send(b"x"))
            assert got == [[a]]
            a.close(); b.close()
    """,
    "a time limit": """
        import select, socket, threading, time
        def test():
            a, b = socket.socketpair()
            got = []
            def wait():
                a.settimeout(0.1)
                try:
                    a.recv(1)
                except TimeoutError:
                    got.append(time.monotonic() - begin > 0.09)
            begin = time.monotonic()
            run(wait, lambda: None)
            a.close(); b.close()
            assert got == [True]
    """,
    "a pipe": """
        import os, threading
        def test():
            r, w = os.pipe()
            got = []
            def write():
                with os.fdopen(w, "w") as file:
                    file.write("one\\ntwo\\n")
            def read():
                with os.fdopen(r) as file:
                    got.extend(file)
            run(read, write)
            assert got == ["one\\n", "two\\n"]
    """,
    "a locked file": """
        import fcntl, tempfile, threading
        def test():
            got = []
            with tempfile.NamedTemporaryFile() as file:
                def work():
                    with open(file.name) as again:
                        fcntl.flock(again, fcntl.LOCK_EX)
                        got.append(1)
                        got.append(2)
                run(work, work)
            assert got == [1, 2, 1, 2]
    """,
    "a lock of multiprocessing": """
        import multiprocessing, threading
        def test():
            lock, state = multiprocessing.Lock(), {"n": 0}
            def work():
                with lock:
                    n = state["n"]
                    state["n"] = n + 1
            run(work, work)
            assert state["n"] == 2
    """,
    "a queue of multiprocessing": """
        import multiprocessing, threading
        def test():
            queue, got = multiprocessing.Queue(), []
            run(lambda: got.append(queue.get()), lambda: queue.put("x"))
            queue.close()
            queue.join_thread()
            assert got == ["x"]
    """,
}


@pytest.mark.parametrize("name", CORRECT)
def test_a_thread_that_waits_hands_over(load: Load, name: str) -> None:
    program = load(CORRECT[name].replace("\n        ", "\n") + START)
    assert {run.fault for run in runs_of(program.test)} == {None}


def test_a_race_around_a_socket_is_found_and_replayed(load: Load) -> None:
    program = load("""
        import socket, threading
        total = 0
        def test():
            global total
            total = 0
            a, b = socket.socketpair()
            def work(end):
                global total
                end.sendall(b"x")
                n = total
                end.recv(1)
                total = n + 1
            threads = [threading.Thread(target=work, args=(end,)) for end in (a, b)]
            [thread.start() for thread in threads]
            [thread.join() for thread in threads]
            a.close(); b.close()
            assert total == 2
    """)
    failed = next(run for run in runs_of(program.test) if run.fault)
    assert failed.fault is not None
    small = minimised_schedule(program.test, failed.schedule, failed.fault)
    assert {replay(program.test, small).fault for _ in range(5)} == {failed.fault}


def test_a_server_of_http_answers_its_clients(load: Load) -> None:
    program = load("""
        import http.server, threading, urllib.request
        class Handler(http.server.BaseHTTPRequestHandler):
            seen = 0
            def do_GET(self):
                seen = type(self).seen
                self.send_response(200)
                self.end_headers()
                self.wfile.write(b"hello")
                type(self).seen = seen + 1
            def log_message(self, *words):
                pass
        def test():
            Handler.seen = 0
            server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
            serves = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
            serves.start()
            url = f"http://127.0.0.1:{server.server_port}/"
            def get():
                with urllib.request.urlopen(url) as answer:
                    assert answer.read() == b"hello"
            threads = [threading.Thread(target=get) for _ in range(2)]
            [thread.start() for thread in threads]
            [thread.join() for thread in threads]
            server.shutdown()
            serves.join()
            server.server_close()
            assert Handler.seen == 2
    """)
    runs = [controlled_run(program.test, RandomWalk(seed)) for seed in range(12)]
    assert {run.problem for run in runs} == {""}
    assert 0 < sum(run.fault is not None for run in runs) < len(runs)


def test_a_child_process_is_waited_for_while_others_run(load: Load) -> None:
    program = load("""
        import subprocess, threading
        def test():
            got = []
            def ask():
                child = subprocess.Popen(["cat"], stdin=-1, stdout=-1, text=True)
                writer = threading.Thread(target=lambda: child.communicate("hello"))
                child.stdin.write("one\\n")
                child.stdin.close()
                got.extend(child.stdout)
                child.stdout.close()
                got.append(child.wait())
            def other():
                got.append("other")
            threads = [threading.Thread(target=f) for f in (ask, other)]
            [thread.start() for thread in threads]
            [thread.join() for thread in threads]
            assert [part for part in got if part != "other"] == ["one\\n", 0]
    """)
    runs = [controlled_run(program.test, RandomWalk(seed)) for seed in range(4)]
    assert {(run.problem, run.fault) for run in runs} == {("", None)}


def test_threads_that_wait_for_each_others_input_hang(load: Load) -> None:
    program = load("""
        import socket, threading
        def test():
            a, b = socket.socketpair()
            def work(end):
                end.recv(1)
                end.sendall(b"x")
            threads = [threading.Thread(target=work, args=(end,)) for end in (a, b)]
            with a, b:
                [thread.start() for thread in threads]
                [thread.join() for thread in threads]
    """)
    run = controlled_run(program.test, RandomWalk(0), seconds=0.2)
    assert run.fault is not None
    assert run.fault.kind == "hang"
    assert "main.1 waits in socket.recv, and nothing came before the time limit" in (
        run.fault.details
    )


def test_a_deadlock_of_locks_is_one_although_another_thread_waits_for_input(load: Load) -> None:
    program = load("""
        import socket, threading
        def test():
            a, b = socket.socketpair()
            locks = [threading.Lock(), threading.Lock()]
            def work(first, second):
                with first:
                    with second:
                        pass
            threads = [threading.Thread(target=lambda: a.recv(1), daemon=True)]
            threads += [threading.Thread(target=work, args=pair) for pair in (locks, locks[::-1])]
            with a, b:
                [thread.start() for thread in threads]
                [thread.join() for thread in threads[1:]]
    """)
    runs = [controlled_run(program.test, RandomWalk(seed), seconds=3600) for seed in range(30)]
    assert {run.fault.kind for run in runs if run.fault} == {"deadlock"}


def test_runs_leave_no_thread_behind(load: Load) -> None:
    program = load("""
        import socket, threading
        a, b = socket.socketpair()
        def test():
            threading.Thread(target=lambda: a.recv(1), daemon=True).start()
    """)
    controlled_run(program.test, RandomWalk(0))
    before = _thread._count()
    for seed in range(10):
        assert controlled_run(program.test, RandomWalk(seed)).problem == ""
    program.a.close(), program.b.close()
    assert _thread._count() == before


def test_where_control_is_impossible_all_runs_use_noise(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "blocked.py").write_text(
        """
import os, threading
def test():
    read, write = os.pipe()
    reader = threading.Thread(target=open(read, "rb", 0).read, args=(1,))
    writer = threading.Thread(target=open(write, "wb", 0).write, args=(b"x",))
    reader.start()
    writer.start()
    reader.join()
    writer.join()
"""
    )
    monkeypatch.setattr(racer, "_SOON", 0.5)
    subject = ThreadsSubject("race blocked.py::test")
    asked = ControlSettings("random-walk")
    assert subject.racer.possible(asked) == NoiseSettings()
    assert subject.run(RaceTest("", asked, 0).to_json()).missing == ""
    only = ThreadsSubject("race --control blocked.py::test")
    assert only.racer.possible(asked) == asked
