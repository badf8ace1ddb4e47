"""Cobertura reports: as their DTD has them, those of other tools, and those that are broken."""

from __future__ import annotations

import time
import xml.etree.ElementTree as ET

import pytest

from swarmtest.core.errors import UserError
from swarmtest.coverage.interchange.cobertura import read_cobertura, write_cobertura
from swarmtest.coverage.interchange.formats import FileCoverage, unnamed

CART = FileCoverage(
    "shop/cart.py",
    {1: 3, 2: 3, 3: 0, 9: 1},
    {(2, 3): 0, (2, -1): 3, (9, unnamed(0)): 1},
    {"add": (1, 3), "Cart.<locals>.drop": (7, 0)},
)
MAIN = FileCoverage("main.py", {1: 1}, {}, {})

RATES = {"line-rate", "branch-rate", "complexity"}
DTD: dict[str, tuple[list[str], set[str]]] = {
    "coverage": (
        ["sources", "packages"],
        RATES
        | {"version", "timestamp", "lines-covered", "lines-valid"}
        | {"branches-covered", "branches-valid"},
    ),
    "sources": (["source*"], set()),
    "source": ([], set()),
    "packages": (["package*"], set()),
    "package": (["classes"], RATES | {"name"}),
    "classes": (["class*"], set()),
    "class": (["methods", "lines"], RATES | {"name", "filename"}),
    "methods": (["method*"], set()),
    "method": (["lines"], RATES | {"name", "signature"}),
    "lines": (["line*"], set()),
    "line": (["conditions*"], {"number", "hits"}),
    "conditions": (["condition*"], set()),
    "condition": ([], {"number", "type", "coverage"}),
}
"""Element -> its children, in order, and the attributes that it must have (coverage-04.dtd)."""
OPTIONAL = {"line": {"branch", "condition-coverage"}}


def assert_valid(element: ET.Element) -> None:
    children, attributes = DTD[element.tag]
    found = [child.tag for child in element]
    if children and children[0].endswith("*"):
        assert set(found) <= {children[0][:-1]}
    else:
        assert found == children
    assert attributes <= set(element.attrib) <= attributes | OPTIONAL.get(element.tag, set())
    for child in element:
        assert_valid(child)


def report(line: str, *, root: str = "coverage") -> str:
    classes = f"<classes><class filename='a.py'><lines>{line}</lines></class></classes>"
    return f"<{root}>\n<packages><package>\n{classes}</package></packages></{root}>"


def test_a_report_is_as_the_dtd_has_it() -> None:
    text = write_cobertura([CART, MAIN], sources=["/project"])
    assert '<!DOCTYPE coverage SYSTEM "http://cobertura.sourceforge.net/xml/' in text
    assert_valid(ET.fromstring(text))


def test_a_report_has_the_totals() -> None:
    top = ET.fromstring(write_cobertura([CART, MAIN], timestamp=5))
    totals = {name: value for name, value in top.attrib.items() if name != "version"}
    assert totals == {
        "line-rate": "0.8",
        "branch-rate": "0.6667",
        "lines-covered": "4",
        "lines-valid": "5",
        "branches-covered": "2",
        "branches-valid": "3",
        "complexity": "0",
        "timestamp": "5",
    }


def test_a_report_without_a_time_is_of_now() -> None:
    top = ET.fromstring(write_cobertura([]))
    assert abs(int(top.attrib["timestamp"]) / 1000 - time.time()) < 60


def test_a_rate_is_one_only_if_nothing_is_missing() -> None:
    nearly = FileCoverage("a.py", {line: int(line > 1) for line in range(1, 30_000)}, {}, {})
    assert ET.fromstring(write_cobertura([nearly])).attrib["line-rate"] == "0.9999"


def test_directories_are_packages() -> None:
    top = ET.fromstring(write_cobertura([CART, MAIN]))
    assert [package.attrib["name"] for package in top.iter("package")] == [".", "shop"]


def test_sources_are_where_paths_are_seen_from() -> None:
    top = ET.fromstring(write_cobertura([CART], sources=["/project"]))
    assert [source.text for source in top.iter("source")] == ["/project"]


def test_control_characters_in_names_leave_the_report_readable() -> None:
    [file] = read_cobertura(write_cobertura([FileCoverage("a\x00<&\n.py", {1: 1}, {}, {})]))
    assert file.path == "a?<&?.py"


def test_a_line_that_has_only_branches_is_written_too() -> None:
    [file] = read_cobertura(write_cobertura([FileCoverage("a.c", {}, {(5, unnamed(0)): 2}, {})]))
    assert file.lines == {5: 2}


def test_a_decision_of_coverage_py_names_the_branches_that_were_missed() -> None:
    line = (
        '<line number="5" hits="1" branch="true" condition-coverage="33% (1/3)" '
        'missing-branches="9,exit"/>'
    )
    [file] = read_cobertura(report(line))
    assert file.branches == {(5, unnamed(0)): 1, (5, unnamed(1)): 0, (5, 9): 0}


def test_a_decision_of_cobertura_itself_has_only_numbers() -> None:
    line = (
        '<line number="5" hits="4" branch="true" condition-coverage="50% (1/2)"><conditions>'
        '<condition number="0" type="jump" coverage="50%"/></conditions></line>'
    )
    [file] = read_cobertura(report(line))
    assert file.branches == {(5, unnamed(0)): 1, (5, unnamed(1)): 0}


def test_classes_of_one_file_are_put_together() -> None:
    text = report('<line number="1" hits="2"/>').replace(
        "</classes>",
        "<class filename='a.py'><methods><method name='f'><lines><line number='7' hits='3'/>"
        "<line number='8' hits='0'/></lines></method></methods>"
        "<lines><line number='7' hits='3'/></lines></class></classes>",
    )
    assert read_cobertura(text) == [FileCoverage("a.py", {1: 2, 7: 3}, {}, {"f": (7, 3)})]


def test_bytes_are_read_in_the_encoding_that_they_declare() -> None:
    text = report('<line number="1" hits="2"/>').replace("a.py", "\u00e4.py")
    latin = b'<?xml version="1.0" encoding="ISO-8859-1"?>\n' + text.encode("latin-1")
    assert read_cobertura(latin)[0].path == "\u00e4.py"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "report.xml:1: not well-formed XML: no element found"),
        ("no xml", "report.xml:1: not well-formed XML: syntax error"),
        (b"<?xml version='1.0' encoding='x'?>", "report.xml:1: in an encoding that cannot be read"),
        (report("")[:-20], "report.xml:3: not well-formed XML: "),
        (
            report("", root="report"),
            "report.xml:1: not a Cobertura report: it starts with <report>",
        ),
        (
            "<coverage clover='4'><project/></coverage>",
            "report.xml: not a Cobertura report: it has",
        ),
        (report('<line number="1"/>'), "report.xml:3: <line> has no 'hits'"),
        (
            report('<line number="1" hits="-1"/>'),
            "report.xml:3: <line> has hits='-1', which is not",
        ),
        ("<coverage>\n<line number='1' hits='1'/></coverage>", "report.xml:2: a <line> outside of"),
    ],
)
def test_what_is_broken_is_refused_with_its_place(text: str | bytes, message: str) -> None:
    with pytest.raises(UserError) as refused:
        read_cobertura(text, "report.xml")
    assert str(refused.value).startswith(message)


def test_a_bomb_of_entities_is_refused() -> None:
    entities = "".join(
        f'<!ENTITY e{n} "{f"&e{n - 1};" * 10 if n else "x" * 100}">' for n in range(9)
    )
    with pytest.raises(UserError, match="not well-formed XML"):
        read_cobertura(f"<!DOCTYPE coverage [{entities}]><coverage>&e8;</coverage>")
