"""Creating a `Campaign` has no effects: everything happens in `run`."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent

import pytest

from swarmtest import Campaign, UserError, open_store
from swarmtest.coverage import CoverageOptions

SUBJECT = """
    import untouched_program
    from swarmtest import Machine, action

    class Counter(Machine):
        def start(self): self.n = 0
        @action
        def up(self): self.n = untouched_program.next_number(self.n)
        @action
        def down(self): self.n -= 1
"""
PROGRAM = """
    def next_number(n):
        return n + 1
"""
STRATEGY = """
    class Everything:
        def ask(self, space, trial, rng):
            return space.configuration(space.feature_names)
"""
EXECUTOR = """
    from swarmtest.campaign import Executor

    class Never(Executor):
        pass
"""

CREATE = """
    import json, os, pathlib, subprocess, sys, threading
    from swarmtest import Campaign
    from swarmtest.coverage import CoverageOptions

    def state():
        return {
            "hooks": [repr(hook) for hook in sys.meta_path],
            "path": sys.path[:],
            "modules": sorted(sys.modules),
            "files": sorted(map(str, pathlib.Path(".").rglob("*"))),
            "processes": pathlib.Path(f"/proc/self/task/{os.getpid()}/children").read_text(),
            "descriptors": len(os.listdir("/proc/self/fd")),
            "threads": threading.active_count(),
            "directory": os.getcwd(),
        }

    before = state()
    campaigns = [
        Campaign("untouched_subject.py", workers=0, coverage="line", store="a.db"),
        Campaign("untouched_subject.py::Counter", "coin", 5, store="a.db"),
        Campaign("untouched_subject:Counter", "untouched_strategy.py:Everything", 5, workers=2),
        Campaign("untouched_subject.py", workers=3, coverage=CoverageOptions(("branch",))),
        Campaign("untouched_subject.py", executor="untouched_executor.py:Never", coverage="line"),
        Campaign("untouched_subject.py", executor="dask://127.0.0.1:1"),
    ]
    print(json.dumps([before, state()]))
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    texts = {"subject": SUBJECT, "program": PROGRAM, "strategy": STRATEGY, "executor": EXECUTOR}
    for name, text in texts.items():
        (tmp_path / f"untouched_{name}.py").write_text(dedent(text))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    yield tmp_path
    for name in texts:
        sys.modules.pop(f"untouched_{name}", None)


def test_creating_campaigns_has_no_effects(project):
    # The first line imports swarmtest's own modules, so that only the user's are in question.
    words = [sys.executable, "-c", dedent(CREATE)]
    child = subprocess.run(words, capture_output=True, text=True, check=True)
    before, after = json.loads(child.stdout)
    assert after == before


def test_running_with_coverage_in_this_process_leaves_no_hook(project):
    hooks = list(sys.meta_path)
    with open_store("store.db") as store:
        campaign = Campaign(
            "untouched_subject.py", "coin", 10, workers=0, coverage="line", store=store
        )
        assert sys.meta_path == hooks
        watched = store.watched_targets(campaign.run().campaign)
    assert sys.meta_path == hooks
    assert {target.file for target in watched.values()} == {"untouched_program.py"}


def test_a_subject_that_cannot_be_loaded_leaves_no_hook(project):
    hooks = list(sys.meta_path)
    campaign = Campaign("untouched_nowhere.py", "coin", 10, workers=0, coverage="line")
    with pytest.raises(UserError, match=r"no such file: untouched_nowhere\.py"):
        campaign.run()
    assert sys.meta_path == hooks


def test_a_campaign_that_cannot_run_leaves_no_hook(project):
    hooks = list(sys.meta_path)
    campaign = Campaign("untouched_subject.py", "coni", 10, workers=0, coverage="line")
    assert campaign.subject.name == "untouched_subject.py::Counter"  # loaded, with its probes
    with pytest.raises(UserError, match="unknown strategy 'coni'"):
        campaign.run()
    assert sys.meta_path == hooks


def test_the_subject_is_loaded_when_it_is_asked_for(project):
    campaign = Campaign("untouched_subject.py", store=":memory:", workers=1)
    assert "untouched_subject" not in sys.modules
    assert campaign.subject.space.feature_names == ("up", "down")
    assert "untouched_subject" in sys.modules
    assert campaign.subject is campaign.subject
    assert campaign.strategy is campaign.strategy


def test_what_needs_no_import_is_refused_at_once(project):
    with pytest.raises(UserError, match="7 cannot be tested"):
        Campaign(7)  # type: ignore[arg-type]
    with pytest.raises(UserError, match="is not a strategy"):
        Campaign("untouched_subject.py", 7)  # type: ignore[arg-type]
    with pytest.raises(UserError, match="workers must be 0"):
        Campaign("untouched_subject.py", workers=-1)
    with pytest.raises(UserError, match="there is no module 'untuched_program'"):
        Campaign("untouched_subject.py", coverage=CoverageOptions(cover=("untuched_program",)))
