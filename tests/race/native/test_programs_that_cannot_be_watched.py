"""What cannot work is said in one line, and what to do instead."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from thread_programs import COUNTER, Build, need

from swarmtest.core.errors import UserError
from swarmtest.race.native.library import library
from swarmtest.race.native.runner import NativeThreads, run_native
from swarmtest.race.noise_settings import NoiseSettings


def test_a_program_that_starts_no_thread(build: Build) -> None:
    run = run_native([build("int main(void) { return 0; }")], NoiseSettings(100))
    assert run.missing == "the program started no thread"
    assert run.hits is not None
    assert run.hits.targets() == []


def test_a_statically_linked_program(build: Build) -> None:
    with pytest.raises(UserError, match=r"is statically linked.* link it without -static"):
        NativeThreads([build(COUNTER, "-static")])


def test_a_program_with_a_sanitizer_of_its_own_inside(build: Build) -> None:
    with pytest.raises(UserError, match="has ThreadSanitizer's runtime linked in"):
        NativeThreads([build(COUNTER, "-fsanitize=thread", "-static-libtsan")])


def test_a_program_for_another_machine(build: Build) -> None:
    program = build(COUNTER)
    code = bytearray(program.read_bytes())
    code[18:20] = (0xF3).to_bytes(2, "little")  # RISC-V
    program.write_bytes(code)
    with pytest.raises(UserError, match="built for another machine"):
        NativeThreads([program])


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a program to another user")
def test_a_program_with_rights_of_its_own(build: Build) -> None:
    program = build(COUNTER)
    os.chown(program, 1, 1)
    program.chmod(0o4755)
    with pytest.raises(UserError, match=r"setuid.*: test a copy without them"):
        NativeThreads([program])


def test_a_program_that_is_not_there() -> None:
    with pytest.raises(UserError, match=r"no program './nothing'"):
        NativeThreads(["./nothing"])


def test_no_compiler(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CC", raising=False)
    with pytest.raises(UserError, match="install gcc or clang, or name one in CC"):
        NativeThreads(["/bin/true"])


def test_a_cache_that_cannot_be_named_in_the_environment(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    need("gcc")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "my cache"))
    with pytest.raises(UserError, match="space or a colon"):
        library()


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"frequency": 1001}, "frequency is from 0"),
        ({"strength": 0}, "strength is from 1"),
        ({"kind": ["yield", "sleeps"]}, "did you mean 'sleep'"),
        ({"kind": "yield+sleeps"}, "did you mean 'sleep'"),
        ({"shared_only": ["shared-only"]}, "shared_only is True or False"),
    ],
)
def test_settings_that_mean_nothing(settings: dict[str, object], problem: str) -> None:
    with pytest.raises(UserError, match=problem):
        NoiseSettings(**settings)  # type: ignore[arg-type]


def test_a_heuristic_that_does_not_exist() -> None:
    with pytest.raises(UserError, match="no heuristic 'halt'"):
        NoiseSettings.of_names(100, ["sleep"], 10, ["halt"])


def test_a_program_that_our_library_is_kept_out_of(build: Build) -> None:
    script = build("int main(void) { return 0; }", "-static").with_name("script")
    script.write_text(f"#!{script.with_name('prog')}\n")
    script.chmod(0o755)
    run = NativeThreads([script]).run(NoiseSettings(0), 0)
    assert run.missing.startswith("our library was not loaded into")
    assert run.hits is None
