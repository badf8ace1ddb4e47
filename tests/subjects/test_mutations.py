"""Inputs from a corpus directory and a dictionary, and tests as files for fuzzers."""

from __future__ import annotations

import random
from pathlib import Path

import click
import pytest

from swarmtest import Campaign, generator, open_store
from swarmtest.core.configuration import Configuration
from swarmtest.core.errors import UserError
from swarmtest.processes.limits import own_memory_limit
from swarmtest.subjects.input_files import add_to_corpus, input_of_test
from swarmtest.subjects.mutations import Mutations, read_corpus, read_dictionary
from swarmtest.ui.cli import group
from swarmtest.ui.run_options import own_memory_option

DICTIONARY = """\
# AFL dictionary

tag_open="<a"
tag_deep@2="<b>"
"\\x00\\xff"
quote="\\"\\\\"
"""


def test_a_dictionary_has_names_levels_and_escapes(tmp_path: Path) -> None:
    file = tmp_path / "xml.dict"
    file.write_text(DICTIONARY)
    assert read_dictionary(file) == {
        "tag_open": b"<a",
        "tag_deep": b"<b>",
        "word_5": b"\x00\xff",
        "quote": b'"\\',
    }


@pytest.mark.parametrize("line", ["tag=<a>", 'tag="<a>', "only words"])
def test_a_line_that_is_no_word_is_named(tmp_path: Path, line: str) -> None:
    file = tmp_path / "xml.dict"
    file.write_text(f"# first\n{line}\n")
    with pytest.raises(UserError, match=r"xml.dict:2: .* is not name=.word."):
        read_dictionary(file)


def test_a_corpus_is_read_in_the_order_of_names_without_long_files(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    for name, content in {"b": b"2", "a": b"1", "deep/c": b"3", "long": b"x" * 99}.items():
        (tmp_path / name).write_bytes(content)
    assert read_corpus(tmp_path, most=50) == [b"1", b"2", b"3"]
    with pytest.raises(UserError, match="no file of at most 0 bytes"):
        read_corpus(tmp_path, most=0)
    with pytest.raises(UserError, match="there is no corpus directory"):
        read_corpus(tmp_path / "missing")


def test_only_the_chosen_changes_and_words_are_used() -> None:
    changes = Mutations(words={"one": b"ONE", "two": b"TWO"})
    made = {changes.mutated(random.Random(n), {"insert", "word_one"}) for n in range(200)}
    assert any(b"ONE" in data for data in made)
    assert not any(b"T" in data or b"W" in data for data in made)
    assert changes.mutated(random.Random(1), set()) == b""
    assert changes.mutated(random.Random(1), {"word_one"}) == b"", "no way to use it is on"


def test_every_change_changes_and_none_makes_an_input_too_long() -> None:
    changes = Mutations(words={"w": b"word"}, longest=300)
    changes.corpus = [b"12 some text 345", b"another one 6"]
    for name in set(changes.features) - {"insert", "overwrite", "word_w"}:
        made = [changes.mutated(random.Random(n), {name}) for n in range(100)]
        assert any(data not in changes.corpus for data in made), name
        assert max(map(len, made)) <= 300


def test_the_same_seed_gives_the_same_input() -> None:
    changes = Mutations(words={"w": b"word"})
    everything = changes.features
    for seed in range(30):
        first, second = (changes.mutated(random.Random(seed), everything) for _ in range(2))
        assert first == second


def test_inputs_are_added_to_a_corpus_once(tmp_path: Path) -> None:
    tests = [{"format": "swarmtest generated test 1", "text": text} for text in ("a", "b", "a")]
    assert add_to_corpus(tmp_path / "new", tests) == 2
    assert add_to_corpus(tmp_path / "new", tests) == 0
    files = list((tmp_path / "new").iterdir())
    assert sorted(file.read_bytes() for file in files) == [b"a", b"b"]
    assert {len(file.name) for file in files} == {40}


def test_a_series_of_calls_is_no_input() -> None:
    with pytest.raises(UserError, match="not one input for a program"):
        input_of_test({"format": "swarmtest machine test 1", "subject": "m", "steps": []})


def test_the_inputs_of_faults_are_written_with_what_is_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)

    def tested(text: str) -> None:
        assert "!" not in text, "a bang"

    @generator(features=["bang", "dot"], run=tested)
    def texts(rng: random.Random, features: Configuration) -> str:
        return "x!" if "bang" in features else "x"

    with open_store("tests.db") as store:
        campaign = Campaign(texts, "coin", 20, workers=0, store=store).run()
    [fault] = campaign.faults
    group.main(["faults", "--inputs", "crashes", "--store", "tests.db"], standalone_mode=False)
    assert f"crashes/{fault.id}  AssertionError: a bang" in capsys.readouterr().out
    assert b"!" in Path("crashes", fault.id).read_bytes()
    about = Path("crashes", f"{fault.id}.txt").read_text()
    assert about.startswith("exception: AssertionError: a bang")
    assert f"swarmtest replay {fault.id}" in about or "swarmtest replay 1#" in about


NEVER = """
from swarmtest import NoTest, generator
@generator(features=["a"], run=len)
def texts(rng, features) -> str:
    raise NoTest("a needs b")
"""


def test_check_runs_a_generator(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("never.py").write_text(NEVER)
    said = "no test was generated in 5 attempts with all features on: a needs b"
    with pytest.raises(UserError, match=said):
        group.main(["check", "never.py"], standalone_mode=False)
    assert group.main(["check", "never.py", "--quick"], standalone_mode=False) == 0


def test_the_memory_limit_of_a_command_ends_with_it() -> None:
    before = own_memory_limit()
    seen = []

    @click.command()
    @own_memory_option
    def command() -> None:
        seen.append(own_memory_limit())

    command.main(["--memory", "4GB"], standalone_mode=False)
    command.main([], standalone_mode=False)
    assert seen == [4 << 30, before]
    assert own_memory_limit() == before
    with pytest.raises(UserError, match="at least 64MB"):
        command.main(["--memory", "1MB"], standalone_mode=False)
