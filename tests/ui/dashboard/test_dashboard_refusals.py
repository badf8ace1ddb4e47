"""`swarmtest dashboard` with what it cannot use: one line each."""

from __future__ import annotations

import re
import signal
import socket
import subprocess
import sys
from pathlib import Path

import httpx

from swarmtest.store import open_store


def test_a_port_in_use(tmp_path: Path, swarmtest, refused) -> None:
    open_store(tmp_path / "s.db").close()
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = swarmtest("dashboard", "--store", "s.db", "--port", port, cwd=tmp_path)
    refused(done, f"port {port} is in use", "--port 0")


def test_no_store_and_no_such_address(tmp_path: Path, swarmtest, refused) -> None:
    refused(swarmtest("dashboard", cwd=tmp_path), "no store at .swarmtest/swarmtest.db")
    open_store(tmp_path / "s.db").close()
    words = ("dashboard", "--store", "s.db")
    refused(swarmtest(*words, "--port", 70000, cwd=tmp_path), "--port", "65535")
    refused(swarmtest(*words, "--host", "no.such.name.invalid", cwd=tmp_path), "--host")
    refused(swarmtest(*words, "--host", "192.0.2.1", cwd=tmp_path), "cannot listen on 192.0.2.1")


def test_the_extra_is_missing(tmp_path: Path, refused) -> None:
    program = "import sys; sys.modules['uvicorn'] = None; from swarmtest.ui.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", program, "dashboard"],
        cwd=tmp_path, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    refused(done, "needs uvicorn", "pip install 'swarmtest[dashboard]'")


def test_ending_it_ends_what_it_started(site: Path, start, until) -> None:
    """A campaign that was started from a page is interrupted, not orphaned."""
    server = start("dashboard", "--port", 0, "--no-token", cwd=site)
    address = re.search(r"http://\S+", server.stdout.readline())
    assert address
    with httpx.Client(base_url=address[0], timeout=60) as client:
        csrf = re.search(r'name="csrf" value="([^"]+)"', client.get("/").text)
        assert csrf
        form = {"subject": "slow.py", "tests": "50000", "seed": "5", "csrf": csrf[1]}
        assert client.post("/start", data=form).status_code == 303
        until(lambda: 'class="badge running"' in client.get("/").text, "it runs")
    server.send_signal(signal.SIGINT)
    out, err = server.communicate(timeout=60)
    assert (server.returncode, err) == (0, "")
    assert "ended" in out
    with open_store(site / ".swarmtest" / "swarmtest.db", read_only=True) as store:
        mine = [one for one in store.campaigns() if one.seed == 5]
        assert [one.status for one in mine] == ["interrupted"]
