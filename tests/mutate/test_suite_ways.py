"""A test of a pytest suite ends on a mutant as pytest says, whichever way it is written."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Any

import pytest

from swarmtest.mutate.kill_matrix import FAILED, PASSED, KillMatrix
from swarmtest.mutate.loaded_files import without_links
from swarmtest.mutate.pytest_suites import mutate_pytest

PROGRAM = """
    import logging

    def total(a, b):
        if a > b:
            print("swapped")
            logging.getLogger("adding").warning("swapped %s", a)
        return a + b
    """
NEGATED = "if not a > b:"


def outcomes(program: Any, tmp_path: Path, text: str, conftest: str = "") -> dict[str, int]:
    """How each test of a suite ends on the mutant that negates the only decision."""
    matrix = mutated(program, tmp_path, text, conftest)
    (mutant,) = matrix.mutants
    assert mutant.after.strip() == NEGATED
    assert not matrix.left_out
    names = [name.partition("::")[2] for name in matrix.tests]
    return dict(zip(names, matrix.outcomes[0].tolist(), strict=True))


def mutated(program: Any, tmp_path: Path, text: str, conftest: str = "") -> KillMatrix:
    made, suite = program(PROGRAM), tmp_path / "test_total.py"
    suite.write_text(f"from {made.path.stem} import total\n" + textwrap.dedent(text))
    (tmp_path / "conftest.py").write_text(textwrap.dedent(conftest))
    return mutate_pytest([str(suite)], [str(made.path)], operators="negate", first_kill=False)


def test_what_was_printed_or_logged_can_be_asked_for(program: Any, tmp_path: Path) -> None:
    found = outcomes(
        program,
        tmp_path,
        """
        def test_printed(capsys):
            total(1, 2)
            assert capsys.readouterr().out == ""

        def test_logged(caplog):
            total(1, 2)
            assert not caplog.get_records("call")

        def test_printed_as_asked_in_between(request):
            capsys = request.getfixturevalue("capsys")
            total(2, 1)
            assert capsys.readouterr().out == "swapped\\n"

        def test_neither():
            total(1, 2)
        """,
    )
    assert found == {
        "test_printed": FAILED,
        "test_logged": FAILED,
        "test_printed_as_asked_in_between": FAILED,
        "test_neither": PASSED,
    }


def test_a_log_message_that_cannot_be_formatted_fails(program: Any, tmp_path: Path) -> None:
    found = outcomes(
        program,
        tmp_path,
        """
        class Unspeakable(int):
            def __str__(self):
                raise ValueError("no")

        def test_logged():
            total(Unspeakable(1), 2)
        """,
    )
    assert found == {"test_logged": FAILED}


def test_fixtures_live_as_long_as_their_scope_says(program: Any, tmp_path: Path) -> None:
    found = outcomes(
        program,
        tmp_path,
        """
        import pytest

        alive = []

        @pytest.fixture(scope="module", params=["x", "y"])
        def kept(request):
            alive.append(request.param)
            yield alive
            alive.remove(request.param)

        @pytest.fixture
        def checked(capsys):
            yield
            assert "swapped" not in capsys.readouterr().out

        def test_first(kept):
            total(1, 2)
            assert len(kept) == 1

        def test_second(kept):
            total(1, 2)
            assert len(kept) == 1

        def test_its_teardown_fails(checked):
            total(1, 2)

        class TestOfAClass:
            def setup_method(self):
                self.sums = []

            def test_it(self, tmp_path):
                self.sums.append(total(1, 2))
                (tmp_path / "sum").write_text(str(self.sums))
                assert self.sums == [3]
        """,
    )
    assert found.pop("test_its_teardown_fails") == FAILED
    assert set(found.values()) == {PASSED}
    assert len(found) == 5


def test_cases_of_unittest_and_subtests_count(program: Any, tmp_path: Path) -> None:
    found = outcomes(
        program,
        tmp_path,
        """
        import contextlib
        import io
        import unittest

        def printed(a, b):
            with contextlib.redirect_stdout(io.StringIO()) as output:
                total(a, b)
            return output.getvalue()

        class Totals(unittest.TestCase):
            def setUp(self):
                self.cleaned = []
                self.addCleanup(self.cleaned.append, 1)

            def test_one(self):
                self.assertEqual(printed(1, 2), "")

            def test_some(self):
                for first in (1, 2):
                    with self.subTest(first=first):
                        self.assertEqual(printed(first, 9), "")

            def test_other(self):
                self.assertEqual(total(1, 2), 3)
        """,
    )
    assert found == {
        "Totals::test_one": FAILED,
        "Totals::test_some": FAILED,
        "Totals::test_other": PASSED,
    }


def test_marks_and_warnings_decide_how_a_test_ends(program: Any, tmp_path: Path) -> None:
    found = outcomes(
        program,
        tmp_path,
        """
        import contextlib
        import io
        import warnings
        import pytest

        def swapped(a, b):
            with contextlib.redirect_stdout(io.StringIO()) as output:
                total(a, b)
            return bool(output.getvalue())

        @pytest.mark.xfail(strict=False)
        def test_passes_although_it_need_not():
            assert not swapped(1, 2)

        @pytest.mark.filterwarnings("error")
        def test_a_warning_is_an_error():
            if swapped(1, 2):
                warnings.warn("swapped")

        def test_skips_itself():
            if swapped(1, 2):
                pytest.skip("swapped")

        def test_marks_itself(request):
            if swapped(1, 2):
                request.node.add_marker(pytest.mark.xfail(strict=True))

        def test_leaves():
            if swapped(1, 2):
                pytest.exit("swapped")
        """,
    )
    assert set(found.values()) == {FAILED}
    assert len(found) == 5


def test_a_warning_that_is_ignored_kills_nothing(program: Any, tmp_path: Path) -> None:
    found = outcomes(
        program,
        tmp_path,
        """
        import contextlib
        import io
        import warnings
        import pytest

        @pytest.mark.filterwarnings("ignore")
        def test_a_warning_is_none():
            with contextlib.redirect_stdout(io.StringIO()) as output:
                total(1, 2)
            if output.getvalue():
                warnings.warn("swapped")
        """,
    )
    assert found == {"test_a_warning_is_none": PASSED}


def test_what_a_conftest_does_to_tests_is_done(program: Any, tmp_path: Path) -> None:
    found = outcomes(
        program,
        tmp_path,
        """
        def test_it(capsys):
            total(1, 2)
            assert capsys.readouterr().out == ""

        def test_reported(reported):
            total(1, 2)
            assert reported
        """,
        """
        import pytest

        seen = []

        @pytest.fixture
        def reported():
            return seen

        def pytest_runtest_logreport(report):
            seen.append(report.when)

        def pytest_runtest_logstart(nodeid):
            seen.append("start")

        @pytest.hookimpl(wrapper=True)
        def pytest_runtest_makereport(item, call):
            report = yield
            if item.name == "test_it":
                report.outcome = "passed"
            return report
        """,
    )
    assert found == {"test_it": PASSED, "test_reported": PASSED}


def test_a_plugin_that_runs_tests_itself_runs_them(program: Any, tmp_path: Path) -> None:
    found = outcomes(
        program,
        tmp_path,
        """
        tries = []

        def test_second_try():
            tries.append(1)
            total(1, 2)
            assert len(tries) % 2 == 0
        """,
        """
        from _pytest.runner import runtestprotocol

        def pytest_runtest_protocol(item, nextitem):
            runtestprotocol(item, log=False, nextitem=nextitem)
            for report in runtestprotocol(item, log=False, nextitem=nextitem):
                item.ihook.pytest_runtest_logreport(report=report)
            return True
        """,
    )
    assert found == {"test_second_try": PASSED}


@pytest.mark.parametrize("links", [False, True])
def test_a_file_is_found_through_links(tmp_path: Path, links: bool) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "a.py").touch()
    (tmp_path / "linked").symlink_to("real")
    (tmp_path / "real" / "b.py").symlink_to("a.py")
    file = tmp_path / ("linked/b.py" if links else "real/a.py")
    assert without_links(str(file)) == str((tmp_path / "real" / "a.py").resolve())
