"""What the dashboard refuses: foreign names, foreign pages, no token, paths out of its files."""

from __future__ import annotations

import base64
import http.client
import json
import os
import pickle
import pty
import re
import signal
import stat
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from swarmtest.core.errors import UserError
from swarmtest.core.space import Space
from swarmtest.store import open_store
from swarmtest.store.records import CampaignRecord, FaultRecord, TrialRecord, pack_floats
from swarmtest.ui.dashboard.commands import focus_command, run_command
from swarmtest.ui.dashboard.context import COOKIE, POLICY


def test_every_answer_has_a_strict_policy(client: httpx.Client) -> None:
    for path in ("/", "/campaigns/1", "/static/dashboard.js", "/nowhere", "/campaigns/77"):
        headers = client.get(path).headers
        assert headers["content-security-policy"] == POLICY
        assert "unsafe" not in POLICY
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"


@pytest.mark.parametrize("name", ["evil.example", "evil.example:80", "127.0.0.1.evil.example", ""])
def test_a_foreign_name_that_leads_here_gets_nothing(client: httpx.Client, name) -> None:
    answer = client.get("/", headers={"Host": name})
    assert answer.status_code == 421
    assert "TinyFs" not in answer.text


@pytest.mark.parametrize(
    "path",
    [
        "/static/../app.py",
        "/static/%2e%2e/app.py",
        "/static/..%2f..%2fpyproject.toml",
        "/static//etc/passwd",
        "/campaigns/1/source/..%2f..%2ftinyfs.py",
        "/campaigns/1/source/%2fetc%2fpasswd",
        "/campaigns/1/faults/..%2f..%2f..%2fetc%2fpasswd",
    ],
)
def test_no_path_leads_out(client: httpx.Client, path) -> None:
    client.get("/campaigns/1/source")
    answer = client.get(path)
    if "source" in path:  # it may still be computing, which it says
        assert "root:" not in answer.text
        assert "def open" not in answer.text
    else:
        assert answer.status_code == 404


START = {"subject": "slow.py", "tests": "5", "workers": "1"}


@pytest.mark.parametrize(
    ("headers", "form"),
    [
        ({}, START),
        ({}, START | {"csrf": "guessed"}),
        ({"Origin": "http://evil.example"}, START),
        ({"Origin": "http://["}, START),
        ({"Sec-Fetch-Site": "cross-site"}, START),
        ({"Sec-Fetch-Site": "same-site"}, START),
    ],
)
def test_another_site_cannot_start_anything(client: httpx.Client, csrf, headers, form) -> None:
    sent = form if "csrf" in form or not headers else form | {"csrf": csrf}
    assert client.post("/start", data=sent, headers=headers).status_code == 403
    assert "slow.py --tests 5" not in client.get("/commands").text


def test_what_is_posted_is_small_and_nothing_else_is_understood(client: httpx.Client) -> None:
    assert client.post("/start", content=b"x" * 100_000).status_code == 413
    assert client.put("/start").status_code == 405
    assert client.get("/start").status_code in (404, 405)


def test_numbers_and_forms_beyond_reason_are_refused_in_one_line(client: httpx.Client) -> None:
    for path in ("/campaigns/", "/campaigns/1/trials/", "/commands/"):
        assert client.get(path + "9" * 5000).status_code == 414
        assert client.get(path + "9" * 1000).status_code == 404
    answer = client.post("/start", data={f"field{n}": "x" for n in range(1000)})
    assert answer.status_code == 400
    assert "at most 50 fields" in answer.text


def test_a_read_only_dashboard_has_no_buttons_and_does_nothing(site: Path, serve) -> None:
    with serve(site, "--read-only").admitted() as client:
        for path in ("/", "/campaigns/1", "/campaigns/1/faults", "/campaigns/1/roles", "/commands"):
            assert 'method="post"' not in client.get(path).text
        assert '<button type="submit"' not in client.get("/campaigns/1").text
        for path in ("/start", "/campaigns/1/stop", "/campaigns/1/resume", "/commands/1/stop"):
            assert client.post(path, data=START).status_code == 403


def test_other_machines_need_the_token(site: Path, serve) -> None:
    """The token comes once in the address, and is a cookie from then on."""
    address = serve(site, "--host", "0.0.0.0")
    check_token(re.sub(r"//[^:]+", "//127.0.0.1", address.rstrip("/")), address.token)


def test_so_does_this_machine(site: Path, serve) -> None:
    """Other people may have accounts on it."""
    address = serve(site)
    check_token(address.rstrip("/"), address.token)


def check_token(base: str, token: str) -> None:
    """Nothing is shown without the token, which moves from the address into a cookie."""
    assert len(token) >= 32
    port = base.rpartition(":")[2]
    with httpx.Client(base_url=base, timeout=60) as client:
        assert client.get("/").status_code == 403
        assert client.get("/events").status_code == 403
        assert client.get("/?token=wrong").status_code == 403
        assert client.get("/static/dashboard.js").status_code == 403
        answer = client.get(f"/campaigns/1?token={token}")
        assert (answer.status_code, answer.headers["location"]) == (303, "/campaigns/1")
        cookie = answer.headers["set-cookie"]
        assert cookie.startswith(f"{COOKIE}_{port}={token};")
        assert "HttpOnly" in cookie
        assert "samesite=strict" in cookie.lower()
        assert client.get("/").status_code == 200
        assert token not in client.get("/").text
    plain = http.client.HTTPConnection(base.removeprefix("http://"), timeout=60)
    plain.request("GET", f"//evil.example/?token={token}")
    assert plain.getresponse().headers["location"] == "/evil.example/"
    plain.close()


def test_the_token_is_in_no_list_of_processes_and_no_log(site: Path, serve) -> None:
    served = serve(site)
    assert served.entry
    assert stat.S_IMODE(served.entry.parent.stat().st_mode) == 0o700
    for name in ("cmdline", "environ"):
        assert served.token.encode() not in Path(f"/proc/{served.pid}/{name}").read_bytes()
    assert served.token not in served  # what was printed where it is not a terminal


def test_the_token_is_printed_on_a_terminal(site: Path) -> None:
    ours, theirs = pty.openpty()
    program = "from swarmtest.ui.cli import main; main()"
    words = [sys.executable, "-P", "-c", program, "dashboard", "--port", "0"]
    server = subprocess.Popen(words, cwd=site, stdout=theirs)
    os.close(theirs)
    try:
        shown = b""
        while b"Ctrl-C" not in shown:
            shown += os.read(ours, 1000)
        token = re.search(rb"/\?token=([\w-]{32,})", shown)
        assert token
        assert token[1] not in Path(f"/proc/{server.pid}/cmdline").read_bytes()
    finally:
        server.send_signal(signal.SIGINT)
        server.wait(60)
        os.close(ours)


def test_a_browser_that_comes_from_the_file_is_led_on(site: Path, serve, visit) -> None:
    """It would not send the cookie along with a redirect, because a file is another site."""
    served = serve(site)
    visitor = visit(served.rstrip("/"))
    visitor.page.goto(served.entry.as_uri())
    visitor.page.locator("#live.on").wait_for()
    assert visitor.page.url == served


def test_two_dashboards_on_one_machine_keep_their_cookies(site: Path, serve) -> None:
    first, second = serve(site), serve(site)
    with first.admitted() as client:
        client.get(f"{second}?token={second.token}")
        assert client.get(str(first)).status_code == 200
        assert client.get(str(second)).status_code == 200


def test_no_token_is_asked_for_on_request(site: Path, serve) -> None:
    assert httpx.get(serve(site, "--no-token"), timeout=60).status_code == 200


def test_commands_for_everybody_on_a_network_are_refused(site: Path, swarmtest) -> None:
    done = swarmtest("dashboard", "--host", "0.0.0.0", "--no-token", cwd=site)
    assert done.returncode == 2
    assert "add --read-only, or omit --no-token" in done.stderr


def test_a_form_cannot_smuggle_in_an_option() -> None:
    with pytest.raises(UserError, match="name what to test"):
        run_command({"subject": "--help"})
    words = run_command({"subject": "a.py; rm -rf /", "strategy": "--store=/etc/x"}).words()
    assert words == ["run", "a.py; rm -rf /", "--strategy=--store=/etc/x"]
    for field, bad in (("tests", "1 --store x"), ("time", "5s -q"), ("seed", "$(id)")):
        with pytest.raises(UserError, match=field):
            run_command({"subject": "a.py", field: bad})
    record = CampaignRecord("a", "coin", 0, {}, {"subject": {"text": "a.py"}})
    with pytest.raises(UserError, match="focus on one of"):
        focus_command(record, {"aim": "junit", "where": "/etc/passwd"})


def test_what_a_command_prints_is_only_text(client: httpx.Client, csrf, until) -> None:
    form = {"subject": "<b>no such file</b>.py", "csrf": csrf}
    answer = client.post("/start", data=form)
    assert answer.status_code == 303
    place = answer.headers["location"]
    until(lambda: "refused" in client.get(place).text, "the command has ended")
    page = client.get(place).text
    assert "&lt;b&gt;no such file&lt;/b&gt;" in page
    assert "<b>no such" not in page


def test_a_campaign_of_somebody_else_is_stopped_if_its_process_is_known(
    site: Path, client: httpx.Client, csrf, start, until
) -> None:
    running = start("run", "slow.py", "--tests", 100_000, "-q", "-j", 1, cwd=site)

    def newest() -> str:
        return client.get("/").text

    until(lambda: 'class="badge running"' in newest(), "it runs")
    number = re.search(r'href="/campaigns/(\d+)"', newest())
    assert number
    page = f"/campaigns/{number[1]}"
    until(lambda: 'class="badge working"' in client.get(page).text, "its worker is known")
    assert client.post(f"{page}/stop", data={"csrf": csrf}).status_code == 303
    assert running.wait(30) == 130
    again = client.post(f"{page}/stop", data={"csrf": csrf})
    assert again.status_code == 400
    assert "there is nothing to stop" in again.text


class Trap:
    """What a careless reader would run."""

    def __reduce__(self) -> tuple[object, ...]:
        return open, ("harmed", "w")


def test_no_subject_is_imported_and_nothing_is_unpickled(tmp_path: Path, serve, until) -> None:
    """A store from anybody: reading all its pages runs none of what it names."""
    (tmp_path / "trap.py").write_text("open('harmed', 'w')")
    space = Space(["a", "b"])
    poison = {"$pickle": base64.b64encode(pickle.dumps(Trap())).decode(), "repr": "<Trap>"}
    test = {"format": "swarmtest machine test 1", "subject": "trap.py::T"}
    whole = json.dumps(test | {"steps": [["a", [poison]]]})
    fault = FaultRecord("0badc0de", "exception", "Boom", "", 1, 1, 1, whole)
    options = {"subject": {"text": "trap.py"}, "budget": {"tests": 9}}
    trials = [
        TrialRecord(
            i,
            space.configuration(["ab"[i % 2]]).to_bytes(),
            pack_floats([0.5]),
            verdict=i % 2,
            fault="0badc0de" if i % 2 else None,
        )
        for i in range(40)
    ]
    with open_store(tmp_path / "s.db") as store:
        record = CampaignRecord("trap.py::T", "trap.py:S", 0, space.to_json(), options, "finished")
        store.record(store.add_campaign(record), trials, [fault])

    with serve(tmp_path, "--store", "s.db").admitted() as client:
        for path in ("", "/faults", "/faults/0badc0de", "/roles", "/source", "/trials/1"):
            page = f"/campaigns/1{path}"
            until(lambda page=page: "computing" not in client.get(page).text, f"{page} is there")
            assert client.get(page).status_code == 200
        assert (
            "machine.a(&lt;not shown: needs --trust&gt;)"
            in client.get("/campaigns/1/faults/0badc0de").text
        )
        assert "suppressors: a" in client.get("/campaigns/1/roles").text
    assert not (tmp_path / "harmed").exists()
