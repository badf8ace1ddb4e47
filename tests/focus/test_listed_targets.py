"""Targets are listed in a file: by people, by linters, and by analysers that write SARIF."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from swarmtest.core.errors import UserError
from swarmtest.focus.listed_targets import from_file
from swarmtest.languages.places import ResolvedTargets

CART = '''\
"""A cart."""
import subprocess


def load(name, extra=[]):
    # reads it
    subprocess.call("ls " + name,
                    shell=True)
    return name


def risky(text):
    try:
        eval(text)
    except Exception:
        pass
'''

BANDIT = """
{"runs": [{"tool": {"driver": {"name": "Bandit", "organization": "PyCQA", "rules": [{"id": "B602",
"name": "subprocess_popen_with_shell_equals_true"}], "version": "1.8.6"}},
"invocations": [{"executionSuccessful": true}], "properties": {"metrics": {}},
"results": [{"message": {"text": "subprocess call with shell=True identified"}, "level": "error",
"locations": [{"physicalLocation": {"region": {"snippet": {"text": "    subprocess.call("},
"endColumn": 31, "endLine": 8, "startColumn": 5, "startLine": 7},
"artifactLocation": {"uri": "shop/my%20cart.py"},
"contextRegion": {"endLine": 9, "startLine": 6}}}],
"properties": {"issue_confidence": "HIGH", "issue_severity": "HIGH"},
"ruleId": "B602", "ruleIndex": 0}]}],
"version": "2.1.0", "$schema": "https://json.schemastore.org/sarif-2.1.0.json"}
"""
"""As bandit 1.8 wrote it, shortened."""

SEMGREP = """
{"version": "2.1.0", "runs": [{"invocations": [{"executionSuccessful": true}], "results": [
{"fingerprints": {"matchBasedId/v1": "requires login"}, "locations": [{"physicalLocation":
{"artifactLocation": {"uri": "shop/my cart.py", "uriBaseId": "%SRCROOT%"}, "region":
{"endColumn": 19, "endLine": 14, "snippet": {"text": "        eval(text)"}, "startColumn": 9,
"startLine": 14}}}], "message": {"text": "eval"}, "properties": {}, "ruleId": "no-eval"}],
"tool": {"driver": {"name": "Semgrep OSS", "rules": [{"id": "no-eval"}]}}}]}
"""
"""As semgrep 1 wrote it, shortened."""


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with `shop/my cart.py` and `shop/cart.py`; the current directory is its top."""
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop/my cart.py").write_text(CART)
    (tmp_path / "shop/cart.py").write_text(CART)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def listed(text: str | bytes | dict[str, Any], name: str = "targets.txt") -> ResolvedTargets:
    content = json.dumps(text) if isinstance(text, dict) else text
    Path(name).write_bytes(content if isinstance(content, bytes) else content.encode())
    return from_file(name)


def places(found: ResolvedTargets) -> list[tuple[str, int]]:
    return [(os.path.basename(one.place), one.line) for one in found.wanted]


def sarif(*locations: dict[str, Any], **run: Any) -> dict[str, Any]:
    results = [{"ruleId": "R1", "locations": [{"physicalLocation": one}]} for one in locations]
    return {"version": "2.1.0", "runs": [{"tool": {}, "results": results} | run]}


def location(uri: str, line: int, **more: Any) -> dict[str, Any]:
    return {"artifactLocation": {"uri": uri} | more, "region": {"startLine": line}}


def test_a_list_names_lines_ranges_functions_and_other_targets(shop: Path) -> None:
    found = listed(
        """
        # what the review asked for
        shop/cart.py:9
        shop/cart.py:12-16

        shop.cart:load
        line:shop/my cart.py:9
        fault:3f2a99
        event:stack was full: twice
        branch:shop/cart.py:13->15
        mutant:cart-12
        """
    )
    assert places(found) == [
        ("cart.py", 9),
        *(("cart.py", line) for line in (13, 14, 15, 16)),
        ("cart.py", 7),
        ("my cart.py", 9),
    ]
    assert found.names == (
        "fault:3f2a99",
        "event:stack was full: twice",
        "branch:shop/cart.py:13->15",
        "mutant:cart-12",
    )
    assert {one.why for one in found.wanted} == {"--targets-from targets.txt"}


def test_lines_as_compilers_and_linters_print_them_are_understood(shop: Path) -> None:
    found = listed(
        "shop/cart.py:9:5: R1 something: else\nshop/cart.py:14: warning: eval\nshop/cart.py:16:1\n"
    )
    assert places(found) == [("cart.py", 9), ("cart.py", 14), ("cart.py", 16)]


def test_names_alone_are_enough(shop: Path) -> None:
    assert listed("fault:1\n") == ResolvedTargets(names=("fault:1",))


def test_what_is_no_target_any_more_is_told_as_long_as_others_are(shop: Path) -> None:
    found = listed("shop/cart.py:9\nshop/cart.py:6\nshop/crat.py:3\nshop.cart:laod\n")
    assert places(found) == [("cart.py", 9)]
    assert found.unusable == (
        "targets.txt:2: cart.py:6 is a comment; the nearest statements are 2 and 7",
        "targets.txt:3: there is no file shop/crat.py; did you mean 'shop/cart.py'?",
        "targets.txt:4: cart.py has no function 'laod'; did you mean 'load'?",
    )


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (
            "shop/cart.py:9\nnonsense\n",
            "targets.txt:2: 'nonsense' is not a target; write FILE:LINE",
        ),
        (":9\n", "targets.txt:1: ':9' is not a target"),
        ("fault:\n", "targets.txt:1: 'fault:' is not a target"),
        ("", "--targets-from targets.txt: it lists no target"),
        ("# only\n\n", "--targets-from targets.txt: it lists no target"),
        ("shop/cart.py:6\n", "no target of it can be used: targets.txt:1: cart.py:6 is a comment"),
        (b"\xff\xfe\0\xd8", "--targets-from targets.txt: it is not text"),
        (b"\x80\x81:3\n", "--targets-from targets.txt: it is not text (UTF-8)"),
        ("{", "targets.txt begins like SARIF (JSON), but is not: Expecting property name"),
        ("[1, 2]", "targets.txt is JSON, but not SARIF: it has no list of runs"),
        ('{"runs": 3}', "targets.txt is JSON, but not SARIF: it has no list of runs"),
        ("[" * 100_000, "targets.txt is nested too deeply to be SARIF"),
        ('{"runs": []}', "--targets-from targets.txt: no finding of it lies in code"),
    ],
)
def test_a_list_that_cannot_be_used_is_refused_in_one_line(
    shop: Path, text: str | bytes, why: str
) -> None:
    with pytest.raises(UserError) as refused:
        listed(text)
    assert why in str(refused.value)
    assert len(str(refused.value).splitlines()) == 1


def test_a_list_that_is_not_there_is_refused(shop: Path) -> None:
    with pytest.raises(UserError, match=r"--targets-from none.txt: there is no such file"):
        from_file("none.txt")
    with pytest.raises(UserError, match=r"--targets-from shop: it is a directory"):
        from_file("shop")


def test_a_list_that_another_system_wrote_is_read(shop: Path) -> None:
    text = "shop/cart.py:9\r\nshop/cart.py:14\r\n"
    assert places(listed(text.encode("utf-16"))) == [("cart.py", 9), ("cart.py", 14)]
    assert places(listed(text.encode("utf-8-sig"))) == [("cart.py", 9), ("cart.py", 14)]


@pytest.mark.parametrize(("text", "line"), [(BANDIT, 7), (SEMGREP, 14)], ids=["bandit", "semgrep"])
def test_findings_of_analysers_are_targets(shop: Path, text: str, line: int) -> None:
    assert places(listed(text, "found.sarif")) == [("my cart.py", line)]


def test_what_ruff_really_writes_is_read(shop: Path) -> None:
    ruff = Path(sys.executable).with_name("ruff")
    program = str(ruff) if ruff.exists() else shutil.which("ruff")
    if program is None:
        pytest.skip("ruff is not installed: pip install ruff")
    arguments = ("check", "--isolated", "--no-cache", "--select", "S307,B006,BLE001,D103,E501,S602")
    done = subprocess.run(
        [program, *arguments, "--output-format", "sarif", "shop"], capture_output=True, text=True
    )
    found = listed(done.stdout, "ruff.sarif")
    # B006 is in the header of `load`, which means its first statement, line 7; as do D103 and S602.
    # D103 of `risky` means its `try`, S307 is its `eval`, and BLE001 its `except`.
    expected = [7, 13, 14, 15]
    assert sorted(line for name, line in places(found) if name == "cart.py") == expected
    assert sorted(line for name, line in places(found) if name == "my cart.py") == expected
    assert found.unusable == ()


def test_a_path_is_below_the_base_that_it_names_and_bases_below_bases(shop: Path) -> None:
    bases = {
        "ROOT": {"uri": f"file://{shop}/"},
        "SRC": {"uri": "shop/", "uriBaseId": "ROOT"},
        "LOOP": {"uri": "shop", "uriBaseId": "LOOP"},
    }
    found = listed(
        sarif(
            location("cart.py", 9, uriBaseId="SRC"),
            location("shop/cart.py", 14, uriBaseId="ROOT"),
            location("shop/cart.py", 16, uriBaseId="UNKNOWN"),
            location("nothing.py", 7, uriBaseId="LOOP"),
            originalUriBaseIds=bases,
        )
    )
    assert places(found) == [("cart.py", 9), ("cart.py", 14), ("cart.py", 16)]
    assert len(found.unusable) == 1


def test_a_file_may_be_named_by_its_number_among_the_artifacts(shop: Path) -> None:
    physical = {"artifactLocation": {"index": 1}, "region": {"startLine": 9}}
    artifacts = [{"location": {"uri": "a.py"}}, {"location": {"uri": "shop/cart.py"}}]
    assert places(listed(sarif(physical, artifacts=artifacts))) == [("cart.py", 9)]


def test_a_file_that_was_analysed_on_another_machine_is_found_here(shop: Path) -> None:
    found = listed(sarif(location("file:///home/runner/work/shop/shop/shop/cart.py", 9)))
    assert places(found) == [("cart.py", 9)]


def test_a_region_means_its_statements_and_ends_before_its_last_column(shop: Path) -> None:
    physical = location("shop/cart.py", 7)
    physical["region"] |= {"endLine": 14, "endColumn": 1}
    assert places(listed(sarif(physical))) == [("cart.py", 7), ("cart.py", 9), ("cart.py", 13)]


def test_findings_that_are_suppressed_gone_or_no_findings_are_left_out(shop: Path) -> None:
    document = sarif(*(location("shop/cart.py", line) for line in (7, 9, 13, 14, 15)))
    results = document["runs"][0]["results"]
    results[0]["suppressions"] = [{"kind": "inSource"}]
    results[1]["suppressions"] = [{"kind": "external", "status": "rejected"}]
    results[2]["baselineState"] = "absent"
    results[3]["kind"] = "pass"
    assert places(listed(document)) == [("cart.py", 9), ("cart.py", 15)]


def test_findings_outside_of_code_are_told(shop: Path) -> None:
    (shop / "README.md").write_text("text\n")
    found = listed(
        sarif(
            location("shop/cart.py", 9),
            location("README.md", 1),
            location("shop/none.py", 1),
            location("shop/cart.py", 3),
            {"artifactLocation": {"uri": "shop/cart.py"}},
            location("shop/cart.py", 900),
        )
    )
    assert places(found) == [("cart.py", 9)]
    assert found.unusable == (
        "R1 at README.md:1: not code that is watched",
        "R1 at shop/none.py:1: there is no such file here",
        "R1 at shop/cart.py:3: there is no statement in cart.py:3; the nearest statements are 2 "
        "and 7",
        "R1 at shop/cart.py: it is about the whole file, not about a line",
        "R1 at shop/cart.py:900: there is no line 900; cart.py has lines 1 to 16",
    )


@pytest.mark.parametrize(
    "odd",
    [
        None,
        "text",
        7,
        {"locations": None},
        {"locations": ["x"]},
        {"locations": [{"physicalLocation": "x"}]},
        {"locations": [{"physicalLocation": {"artifactLocation": {"index": 99}}}]},
        {"locations": [{"physicalLocation": location("shop/cart.py", -4)}]},
        {"locations": [{"physicalLocation": {"region": {"startLine": 9}}}]},
        {"suppressions": "no", "rule": [], "locations": [{}]},
    ],
)
def test_odd_results_do_not_stop_the_others(shop: Path, odd: Any) -> None:
    document = sarif(location("shop/cart.py", 9))
    document["runs"][0]["results"].insert(0, odd)
    document["runs"].append(odd)
    assert places(listed(document)) == [("cart.py", 9)]
