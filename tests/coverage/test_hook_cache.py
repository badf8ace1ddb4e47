"""Woven code is kept beside bytecode, and used only for what it was made from."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

TEXT = "def f(x):\n    if x:\n        return 1\n    return 2\n"


def kept(project) -> list[Path]:
    return sorted((project.root / "__pycache__").glob("kept.*swarmtest*"))


def test_woven_code_is_kept_and_used(project, reached):
    project.write(kept=TEXT)
    project.watch("kept").uninstall()
    first = project.watch("kept")
    project.load("kept")
    first.uninstall()
    (file,) = kept(project)
    made = file.stat().st_mtime_ns
    coverage = project.watch("kept")
    module = project.load("kept")
    assert kept(project)[0].stat().st_mtime_ns == made
    assert reached(coverage, lambda: module.f(0)) == ["line:kept.py:2", "line:kept.py:4"]


def test_code_that_was_kept_for_another_text_is_not_used(project, reached):
    project.write(kept=TEXT)
    project.watch("kept")
    project.load("kept")
    stamp = os.stat(project.root / "kept.py")
    project.write(kept=TEXT.replace("2", "3"))
    os.utime(project.root / "kept.py", ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
    assert project.load("kept").f(0) == 3


def test_each_choice_of_kinds_keeps_code_of_its_own(project, reached):
    project.write(kept=TEXT)
    for kinds in (("line",), ("branch",), ("line",)):
        coverage = project.watch("kept", kinds=kinds)
        module = project.load("kept")
        hit = reached(coverage, lambda module=module: module.f(0))
        assert {name.partition(":")[0] for name in hit} == set(kinds)
        coverage.uninstall()
    assert len(kept(project)) == 2


@pytest.mark.parametrize("damage", [b"", b"nonsense", None])
def test_a_damaged_file_is_made_again(project, reached, damage):
    project.write(kept=TEXT)
    project.watch("kept")
    project.load("kept")
    (file,) = kept(project)
    data = file.read_bytes()
    file.write_bytes(data[: len(data) // 2] if damage is None else damage)
    assert project.load("kept").f(0) == 2
    assert kept(project)[0].read_bytes() == data


def test_a_place_that_cannot_be_written_is_no_error(project, reached):
    project.write(kept=TEXT)
    (project.root / "__pycache__").write_text("a file where a directory should be")
    coverage = project.watch("kept")
    module = project.load("kept")
    assert len(reached(coverage, lambda: module.f(0))) == 2


def test_nothing_is_kept_if_python_may_not_write_bytecode(project, monkeypatch):
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    project.write(kept=TEXT)
    project.watch("kept")
    project.load("kept")
    assert kept(project) == []


def test_two_processes_at_once_see_whole_files_only(project):
    project.write(kept=TEXT + "\n".join(f"def g{i}(): return {i}" for i in range(300)) + "\n")
    text = (
        "import shutil, sys\n"
        "from swarmtest.coverage.watch import Coverage\n"
        "with Coverage('line,branch', cover=['kept']) as c:\n"
        "    for _ in range(15):\n"
        "        import kept; c.reset(); assert kept.f(0) == 2; assert c.take().targets()\n"
        "        del sys.modules['kept']; shutil.rmtree('__pycache__', ignore_errors=True)\n"
    )
    env = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    command = [sys.executable, "-c", text]
    running = [
        subprocess.Popen(command, cwd=project.root, env=env, stderr=subprocess.PIPE)
        for _ in range(2)
    ]
    assert [process.communicate(timeout=60)[1] for process in running] == [b"", b""]
    left = [p.name for p in (project.root / "__pycache__").glob("*") if "swarmtest" not in p.name]
    assert [name for name in left if not name.endswith(".pyc")] == []


def test_code_that_others_could_have_written_is_not_used_and_told(project, reached):
    project.write(kept=TEXT)
    project.watch("kept").uninstall()
    first = project.watch("kept")
    project.load("kept")
    first.uninstall()
    (file,) = kept(project)
    head = file.read_bytes()
    file.parent.chmod(0o777)
    file.write_bytes(head[: len(head) // 2])
    coverage = project.watch("kept")
    module = project.load("kept")
    coverage.begin()
    assert module.f(0) == 2
    assert file.read_bytes() == head[: len(head) // 2]  # neither read nor written
    assert f"code with probes is not cached: others can write {file.parent}" in coverage.problems


def test_a_flipped_byte_is_noticed(project):
    project.write(kept=TEXT)
    project.watch("kept")
    project.load("kept")
    (file,) = kept(project)
    data = bytearray(file.read_bytes())
    data[-5] ^= 1
    file.write_bytes(bytes(data))
    assert project.load("kept").f(0) == 2
    assert file.read_bytes() != bytes(data)
