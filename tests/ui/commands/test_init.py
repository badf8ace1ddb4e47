"""``swarmtest init``: templates to start from."""

from __future__ import annotations

import pytest

from swarmtest.subjects.command.check import template_names, template_text
from swarmtest.subjects.command.subject import load_command_subject


def test_without_a_name_the_templates_are_listed(swarmtest, tmp_path):
    done = swarmtest("init", cwd=tmp_path)
    assert done.returncode == 0
    listed = [line.split()[0] for line in done.stdout.partition("\n\n")[0].splitlines()]
    assert listed == template_names()
    assert "A generator of your own with a switch for each feature" in done.stdout
    assert list(tmp_path.iterdir()) == []


def test_a_template_is_written_once_and_runs_as_it_is(swarmtest, tmp_path):
    done = swarmtest("init", "script", cwd=tmp_path)
    assert done.stdout == (
        "script.toml is written; next: swarmtest check script.toml, swarmtest run script.toml\n"
    )
    assert swarmtest("check", "script.toml", cwd=tmp_path).returncode == 0
    ran = swarmtest("run", "script.toml", "--tests", "60", cwd=tmp_path)
    assert ran.returncode == 1
    assert "message: sh: division by" in ran.stdout
    again = swarmtest("init", "script", cwd=tmp_path)
    assert again.returncode == 2
    assert again.stderr == "swarmtest: script.toml exists already: name another file with -o\n"


def test_a_file_can_be_named_and_a_wrong_name_suggests_the_right_one(swarmtest, tmp_path):
    assert swarmtest("init", "script", "-o", "mine.toml", cwd=tmp_path).returncode == 0
    assert (tmp_path / "mine.toml").read_text() == template_text("script")
    wrong = swarmtest("init", "scrip", cwd=tmp_path)
    assert wrong.returncode == 2
    assert "no template 'scrip'; did you mean 'script'?" in wrong.stderr
    nowhere = swarmtest("init", "script", "-o", "no/where.toml", cwd=tmp_path)
    assert nowhere.returncode == 2
    assert "cannot write no/where.toml: No such file or directory" in nowhere.stderr


@pytest.mark.parametrize("name", template_names())
def test_every_template_can_be_read(name, tmp_path):
    path = tmp_path / "subject.toml"
    path.write_text(template_text(name))
    subject = load_command_subject(str(path))
    assert subject.space.features
    subject.close()
