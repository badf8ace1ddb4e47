"""Programs in any language write their hits to the file that SWARMTEST_HITS names."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from native_programs import lines

from swarmtest import Campaign, generator, open_store
from swarmtest.core.errors import UserError
from swarmtest.coverage.native.program import Program, ProgramRun
from swarmtest.coverage.options import CoverageOptions
from swarmtest.ui.terminal.coverage import campaign_tally, coverage_lines

SHELL = """\
#!/bin/sh
read word
echo "run.sh:2" >> "$SWARMTEST_HITS"
if [ "$word" = yes ]; then
  echo "run.sh:5" >> "$SWARMTEST_HITS"
  echo "event:said yes" >> "$SWARMTEST_HITS"
fi
[ "$word" != die ] || kill -9 $$
"""


@pytest.fixture
def harness(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The shell script above: a harness that reports its own hits."""
    return executable(tmp_path, monkeypatch, SHELL)


def executable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> Path:
    monkeypatch.chdir(tmp_path)
    script = tmp_path / "run.sh"
    script.write_text(text)
    script.chmod(0o755)
    return script


def names(run: ProgramRun) -> list[str]:
    assert run.hits is not None, run.missing
    return sorted(map(str, run.hits.targets()))


def test_each_line_of_the_file_is_a_hit(harness: Path) -> None:
    with Program([harness], coverage="hits") as program:
        assert names(program.run(b"no\n")) == ["line:run.sh:2"]
        assert names(program.run(b"yes\n")) == ["event:said yes", "line:run.sh:2", "line:run.sh:5"]
        assert names(program.run(b"no\n")) == ["line:run.sh:2"]


def test_a_line_has_its_source_and_content(harness: Path) -> None:
    with Program([harness], coverage="hits") as program:
        run = program.run(b"no\n")
        assert run.hits
        (target,) = run.hits.targets()
        assert (target.file, target.line) == ("run.sh", 2)
        assert program.catalogue.sources[target.source].text == SHELL


def test_sources_that_do_not_matter_are_left_out(harness: Path) -> None:
    with Program([harness], coverage="hits", sources=["lib"]) as program:
        assert names(program.run(b"yes\n")) == ["event:said yes"]


def test_what_was_written_before_a_kill_counts(harness: Path) -> None:
    with Program([harness], coverage="hits") as program:
        run = program.run(b"die\n")
        assert run.signal == 9
        assert lines(run) == {2}


def test_a_line_cut_by_a_kill_does_not_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cut = '#!/bin/sh\nprintf "a.rb:1\\na.rb:2" > "$SWARMTEST_HITS"\nkill -9 $$\n'
    with Program([executable(tmp_path, monkeypatch, cut)], coverage="hits") as program:
        run = program.run(b"")
        assert lines(run) == {1}
        assert run.missing == "partial: killed by signal 9 as it wrote"


def test_a_program_that_writes_nothing_has_missing_coverage() -> None:
    with Program(["true"], coverage="hits") as program:
        run = program.run(b"")
        assert run.hits is None
        assert run.missing == (
            "the program ended (exit status 0) without writing to SWARMTEST_HITS"
        )


def test_kind_and_name_may_be_anything(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "# a comment\n\nline:Makefile:7\nbranch:a.rb:3-4\n./Makefile:8\nstate:12\n"
    script = f"#!/bin/sh\ncat > $SWARMTEST_HITS <<'END'\n{text}END\n"
    with Program([executable(tmp_path, monkeypatch, script)], coverage="hits") as program:
        assert names(program.run(b"")) == [
            "branch:a.rb:3-4",
            "line:Makefile:7",
            "line:Makefile:8",
            "state:12",
        ]


def test_a_line_that_is_no_hit_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = '#!/bin/sh\nprintf "a.rb:1\\nwhat is this\\n" > "$SWARMTEST_HITS"\n'
    with (
        Program([executable(tmp_path, monkeypatch, script)], coverage="hits") as program,
        pytest.raises(UserError, match=r"line 2 of .*run.sh .*'what is this', not path/file.ext"),
    ):
        program.run(b"")


LCOV = """\
TN:
SF:lib/parser.rb
FN:1,parse
FN:7,fail
DA:2,5
DA:3,0
DA:8,1
end_of_record
"""


def test_lcov_counts_say_what_was_hit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = f"#!/bin/sh\ncat > $SWARMTEST_HITS <<'END'\n{LCOV}END\n"
    with Program([executable(tmp_path, monkeypatch, script)], coverage="lcov") as program:
        run = program.run(b"")
        assert run.hits
        hit = [(t.name, t.function) for t in run.hits.targets()]
        assert hit == [("lib/parser.rb:2", "parse"), ("lib/parser.rb:8", "fail")]
        assert "lib/parser.rb:3" in {target.name for target in program.catalogue.targets}


def test_lcov_that_a_kill_cut_counts_up_to_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cut = "SF:a.rb\\nXX:1\\nFNDA:1,unknown\\nDA:1,1\\nDA:2,1\\nDA:3"
    script = f'#!/bin/sh\nprintf "{cut}" > "$SWARMTEST_HITS"\nkill -9 $$\n'
    with Program([executable(tmp_path, monkeypatch, script)], coverage="lcov") as program:
        run = program.run(b"")
        assert lines(run) == {1, 2}
        assert run.missing == "partial: killed by signal 9 as it wrote"


def test_broken_lcov_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = '#!/bin/sh\nprintf "SF:a.rb\\nDA:x\\n" > "$SWARMTEST_HITS"\n'
    with (
        Program([executable(tmp_path, monkeypatch, script)], coverage="lcov") as program,
        pytest.raises(
            UserError, match=r"run.sh wrote to SWARMTEST_HITS:2: 'DA:x' should be DA:<line>,"
        ),
    ):
        program.run(b"")


def test_branches_are_not_measured_in_c_and_that_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("calc.c").write_text("int one;\nint two;\n")
    script = Path("calc.sh")
    script.write_text('#!/bin/sh\necho calc.c:2 >> "$SWARMTEST_HITS"\n')
    script.chmod(0o755)
    program = Program(["./calc.sh"], coverage="hits")

    @generator(features=["any"], run=program)
    def texts(rng: random.Random, features: object) -> str:
        return ""

    options = CoverageOptions(("branch",))
    with open_store(":memory:") as store:
        Campaign(texts, "coin", 2, workers=0, store=store, coverage=options).run()
        tally = campaign_tally(store, 1)
        asked = store.campaign(1).options["coverage"]
    said = coverage_lines(tally, "swarmtest coverage 1", asked)
    assert said[0] == "coverage: line 1 of 1 (100%)"
    assert "  C and C++ are measured by lines only, not by branch" in said
