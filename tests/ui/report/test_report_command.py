"""`swarmtest report`: what it writes, what it refuses, and that its numbers can be had again."""

from __future__ import annotations

import html
import json
import re
import shlex
import sqlite3
import subprocess
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from swarmtest.core.configuration import Configuration
from swarmtest.core.space import Space
from swarmtest.core.targets import Source, pack_hits
from swarmtest.store import open_store
from swarmtest.store.records import CampaignRecord, TrialRecord, pack_counts, pack_floats
from swarmtest.ui.report.page import make_page, report_html
from swarmtest.ui.report.reproduce import run_command

Command = Callable[..., subprocess.CompletedProcess[str]]
COMMAND = re.compile(r'<p class="command"><code>(.*?)</code></p>')


def written(swarmtest: Command, place: Path, *arguments: object) -> str:
    """The report that a command wrote."""
    done = swarmtest("report", *arguments, cwd=place)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    name = done.stdout.partition(":")[0]
    assert f"file://{place.resolve()}" in done.stdout
    return (place / name).read_text()


def words_of(page: str) -> str:
    """The text of a page, without the elements that colour code."""
    return html.unescape(re.sub(r"<[^>]*>", "", page))


def test_the_newest_campaign_is_reported_and_the_file_named(
    filesystem: Path, swarmtest: Command
) -> None:
    text = written(swarmtest, filesystem)
    assert "hostile.py::Evil" in text
    assert (filesystem / "report.html").exists()


def test_several_campaigns_are_compared_where_strategies_differ(
    filesystem: Path, swarmtest: Command
) -> None:
    text = written(swarmtest, filesystem, "1-3", 4, "-o", "four.html")
    assert "At equal tests: the first 600 of each run" in text
    assert "At equal CPU time" in text
    assert "To the first detection" in text
    one = written(swarmtest, filesystem, 1, "-o", "one.html")
    assert 'id="comparison"' not in one


def test_every_command_that_a_report_tells_works(filesystem: Path, swarmtest: Command) -> None:
    text = written(swarmtest, filesystem, 1, 2, 3, 4, "-o", "commands.html")
    commands = [html.unescape(found) for found in COMMAND.findall(text)]
    names = {command.split()[1] for command in commands}
    assert {"run", "report", "replay", "roles", "growth", "compare"} <= names
    different = {re.sub(r"\S*\d\S*", "#", command): command for command in commands}
    for command in different.values():
        _, *words = shlex.split(command)
        elsewhere = ["-q", "--store", "elsewhere.db"] if words[0] == "run" else []
        done = swarmtest(*words, *elsewhere, cwd=filesystem)
        assert done.returncode in (0, 1), f"{command}\n{done.stderr}"


def test_a_campaign_run_again_by_its_command_is_the_same(
    filesystem: Path, store: Path, swarmtest: Command, rows: Callable[..., list[dict[str, Any]]]
) -> None:
    with open_store(store, must_exist=True, read_only=True) as opened:
        command = run_command(opened.campaign(3), opened.summary(3)["trials"])
    assert "--seed 1" in command
    done = swarmtest(*shlex.split(command)[1:], "-q", "--store", "again.db", cwd=filesystem)
    assert done.returncode == 1
    assert rows(filesystem / "again.db") == rows(store, 3)


def test_what_was_never_left_to_chance_is_said_and_amounts_remain(
    filesystem: Path, swarmtest: Command
) -> None:
    text = written(swarmtest, filesystem, 2, "-o", "all-on.html")
    assert "No variation in the data." in text
    assert "does it matter how much of it there is?" in text
    assert "figure-intervals" not in text
    assert 'id="f1L' in text or "id=f1L" in text


def test_tests_are_shown_without_their_subject(
    workshop: Callable[..., Path], swarmtest: Command
) -> None:
    place = workshop("fs_machine.py --strategy coin --tests 60")
    (place / "fs_machine.py").write_text("raise SystemExit('the subject was loaded')")
    text = written(swarmtest, place, "-o", "gone.html")
    assert "machine.open('" in words_of(text)


def test_tests_of_older_stores_are_shown_without_their_subject(
    workshop: Callable[..., Path], swarmtest: Command
) -> None:
    place = workshop("fs_machine.py --strategy coin --tests 60")
    (place / "fs_machine.py").unlink()
    with closing(
        sqlite3.connect(place / ".swarmtest" / "swarmtest.db", isolation_level=None)
    ) as store:
        store.execute("UPDATE faults SET code = ''")
        store.execute("UPDATE reductions SET code = ''")
    store.close()
    text = written(swarmtest, place, "-o", "gone.html")
    assert "machine.open('" in words_of(text)


def test_figures_come_beside_the_report(filesystem: Path, swarmtest: Command) -> None:
    pytest.importorskip("matplotlib")
    done = swarmtest("report", 2, "--figures", "deep/figures", cwd=filesystem)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    files = list((filesystem / "deep" / "figures").iterdir())
    assert f"deep/figures: {len(files)} files" in done.stdout
    assert {path.suffix for path in files} == {".pdf", ".png", ".svg", ".csv"}


def test_bad_input_gets_one_line(
    filesystem: Path, swarmtest: Command, refused: Callable[..., str], tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    cases: list[tuple[list[object], list[str]]] = [
        ([99], ["99"]),
        ([1, 5], ["different subjects", "Evil"]),
        ([1, "-o", "nowhere/report.html"], ["there is no directory nowhere"]),
        ([1, "-o", tmp_path], ["is a directory"]),
        ([1, "--figures", tmp_path / "file"], ["--figures", "file"]),
        ([1, "--confidence", 1.5], ["confidence"]),
        ([1, "--store", "no.db"], ["no store at no.db"]),
        (["one"], ["one"]),
        (["4-1"], ["4-1"]),
    ]
    for arguments, words in cases:
        refused(swarmtest("report", *arguments, cwd=filesystem), *words)


def test_coverage_of_another_tool_has_nothing_to_report(
    filesystem: Path, swarmtest: Command, refused: Callable[..., str]
) -> None:
    swarmtest("coverage", 1, "-o", "other.json", cwd=filesystem)
    done = swarmtest("import-coverage", "other.json", "--store", "other.db", cwd=filesystem)
    assert done.returncode == 0, done.stderr
    refused(swarmtest("report", "--store", "other.db", cwd=filesystem), "no features")


def test_names_cannot_break_out_of_the_page(filesystem: Path, swarmtest: Command) -> None:
    title = "</title><script>alert(0)</script>"
    text = written(swarmtest, filesystem, 5, "-o", "evil.html", "--title", title)
    scripts = re.findall(r"<script[^>]*>", text)
    assert scripts == ['<script type="application/json" id="data">', "<script>"]
    assert "<img" not in text
    assert "<b>" not in text
    assert not re.search("[\x00-\x08\u202e]", text)
    assert "{{ 7*7 }}" in html.unescape(text)


def test_a_report_asks_nothing_of_the_network(filesystem: Path, swarmtest: Command) -> None:
    text = written(swarmtest, filesystem, 1, "-o", "offline.html")
    assert "default-src 'none'" in text
    links = re.findall(r"""(?:src|href)=["']?([^"'\s>]+)""", text)
    assert links
    assert all(link.startswith("#") for link in links)


def test_twenty_thousand_lines_make_a_page_of_a_few_megabytes() -> None:
    with open_store(":memory:") as store:
        page = make_page(store, [large_campaign(store, files=42)])
    text = report_html(page)
    assert len(text.encode()) < 5e6
    assert text.count("<tr id=f") > 15_000
    assert "2 files without a listing" in text


def large_campaign(store: Any, files: int) -> int:
    """Files of 500 lines each, reached by tests with this or that feature."""
    names = [f"feature_{i}" for i in range(12)]
    described = {"dimensions": [{"kind": "feature", "name": name} for name in names]}
    options = {"budget": {"tests": 200}, "coverage": {"kinds": ["line"]}}
    campaign = store.add_campaign(
        CampaignRecord("big.py::Big", "coin", 0, described, options, "finished")
    )
    by_feature: list[list[int]] = [[] for _ in names]
    for number in range(files):
        text = "".join(f"    value_{i} = compute({i}) or nothing\n" for i in range(500))
        source = Source(f"package/module_{number}.py", text)
        store.add_sources(campaign, [source])
        targets = [source.target("line", str(i + 1), i + 1) for i in range(500) if i % 5]
        for place, id in enumerate(store.target_ids(targets)):
            by_feature[place % len(names)].append(id)
    space = Space.from_json(described)
    trials = []
    for trial in range(200):
        bits = (trial * 2654435761 >> 3) & 0xFFF or 1
        on = [bits >> i & 1 for i in range(12)]
        hits = [id for i, ids in enumerate(by_feature) if on[i] for id in ids]
        trials.append(
            TrialRecord(
                trial,
                Configuration(space, bits).to_bytes(),
                pack_floats([0.5]),
                seed=trial,
                steps=9,
                used=pack_counts(on),
                hits=pack_hits(hits),
                cpu_ns=1000,
            )
        )
    store.record(campaign, trials)
    return int(campaign)


def test_the_data_of_a_page_is_plain_json(filesystem: Path, swarmtest: Command) -> None:
    text = written(swarmtest, filesystem, 5, "-o", "data.html")
    found = re.search(r'id="data">(.*?)</script>', text, re.DOTALL)
    assert found
    data = json.loads(found[1])
    assert len(data["features"]) == 3
    assert data["files"]["f1"]["path"] == "hostile.py"
