"""What is called but not awaited always passes, so it is refused when the class is read."""

from __future__ import annotations

import subprocess
from textwrap import dedent

import pytest
from pytest_processes import pytest_words

MACHINE = """
    from swarmtest import Machine, action, invariant

    class Lamp(Machine):
        {start} start(self): pass
        {stop} stop(self): pass
        @action(when={when})
        {action} switch(self): {body}
        @invariant
        {invariant} is_well(self): return True
"""
PLAIN = {
    **dict.fromkeys(("start", "stop", "action", "invariant"), "def"),
    "when": "None",
    "body": "pass",
}
WHERE = {
    "start": "Lamp.start",
    "stop": "Lamp.stop",
    "action": "action Lamp.switch",
    "invariant": "invariant Lamp.is_well",
}


def write(place, **parts):
    text = dedent(MACHINE).format(**PLAIN | parts)
    (place / "test_lamp.py").write_text(text)


@pytest.mark.parametrize("which", WHERE)
@pytest.mark.parametrize("command", ["run", "check"])
def test_an_async_method_is_refused(which, command, swarmtest, refused, tmp_path):
    write(tmp_path, **{which: "async def"})
    done = swarmtest(command, "test_lamp.py", cwd=tmp_path)
    refused(done, f"{WHERE[which]} is an async function", "asyncio.run")


def test_an_async_guard_is_refused(swarmtest, refused, tmp_path):
    write(tmp_path, when="ready")
    text = (tmp_path / "test_lamp.py").read_text()
    (tmp_path / "test_lamp.py").write_text("async def ready(machine): return False\n" + text)
    refused(swarmtest("check", "test_lamp.py", cwd=tmp_path), "its guard (when=) is an async")


def test_an_action_with_yield_is_refused(swarmtest, refused, tmp_path):
    write(tmp_path, body="yield 1")
    refused(swarmtest("check", "test_lamp.py", cwd=tmp_path), "switch contains yield")


def test_a_rule_of_hypothesis_is_refused(swarmtest, refused, tmp_path):
    (tmp_path / "lamps.py").write_text(
        dedent("""
        from hypothesis.stateful import RuleBasedStateMachine, rule

        class Lamp(RuleBasedStateMachine):
            @rule()
            async def switch(self): assert False
        """)
    )
    refused(swarmtest("check", "lamps.py", cwd=tmp_path), "Lamp.switch is an async function")


def test_a_class_with_only_async_methods_has_no_api(swarmtest, refused, tmp_path):
    (tmp_path / "lamps.py").write_text("class Lamp:\n    async def switch(self): assert False\n")
    done = swarmtest("run", "--api", "lamps:Lamp", cwd=tmp_path)
    refused(done, "only async methods", "asyncio.run")


def test_pytest_refuses_it_too(tmp_path):
    write(tmp_path, action="async def")
    words = pytest_words("-p", "swarmtest.pytest_plugin", "-p", "no:cacheprovider")
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode != 0
    assert "action Lamp.switch is an async function" in done.stdout
