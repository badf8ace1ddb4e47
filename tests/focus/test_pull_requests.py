"""The GitHub action and the GitLab component, run step by step, and the comments they write."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from xml.etree import ElementTree

import pytest
from ci_runner import ActionRun, Comments, comment_server, run_action, run_component
from git_repository import Repository, needs_git, repository  # noqa: F401
from shop_in_a_repository import WITH_REBATE, open_shop

from swarmtest.core.errors import UserError
from swarmtest.focus.comments import Discussion, NoComment, comment_text, find_discussion

Environment = dict[str, str]
FAULT = WITH_REBATE.splitlines().index('            assert total < 45, "too much"') + 1
"""The line of the cart that fails."""


@pytest.fixture
def comments() -> Iterator[Comments]:
    with comment_server() as served:
        yield served


@pytest.fixture
def shop(repository: Repository, monkeypatch: pytest.MonkeyPatch) -> Repository:  # noqa: F811
    """A shop on a branch, with a change that brings a fault, and a main branch to compare with."""
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:/usr/local/bin:/usr/bin:/bin")
    made = open_shop(repository)
    made.git("update-ref", "refs/remotes/origin/main", "HEAD")
    made.write("shop/cart.py", WITH_REBATE)
    made.commit("a rebate")
    return made


def pull_request(comments: Comments, folder: Path) -> Environment:
    event = folder / "event.json"
    event.write_text(json.dumps({"pull_request": {"number": 7}}))
    return {
        "GITHUB_ACTIONS": "true",
        "GITHUB_API_URL": comments.url,
        "GITHUB_REPOSITORY": "me/shop",
        "GITHUB_EVENT_PATH": str(event),
        "GITHUB_BASE_REF": "main",
        "GITHUB_TOKEN": "secret",
    }


def merge_request(comments: Comments) -> Environment:
    return {
        "GITLAB_CI": "true",
        "CI_API_V4_URL": comments.url,
        "CI_PROJECT_ID": "12",
        "CI_MERGE_REQUEST_IID": "7",
        "GITLAB_TOKEN": "secret",
    }


Act = Callable[..., ActionRun]


@pytest.fixture
def act(shop: Repository, comments: Comments, tmp_path: Path) -> Act:
    """Run the action; swarmtest is installed already, so pip has nothing to do."""

    def run(**inputs: str) -> ActionRun:
        usual = {
            "machines": "machine.py",
            "requirement": "swarmtest",
            "options": "-n 500 -j 1 --baseline-tests 500 --no-reduce",
            "time": "1h",
        }
        return run_action(usual | inputs, pull_request(comments, tmp_path), shop.place, tmp_path)

    return run


@needs_git
def test_the_action_annotates_a_new_fault_comments_and_fails(act: Act, comments: Comments):
    run = act()
    assert run.failed == "Test what was changed", run.log
    assert run.outputs["status"] == "1"
    assert f"::error file=shop/cart.py,line={FAULT},title=new fault" in run.log
    assert "swarmtest focus: 1 new fault" in run.summary
    (text,) = comments.texts.values()
    assert "swarmtest focus: 1 new fault" in text
    assert comments.tokens == {"Bearer secret"}
    assert [*Path(run.outputs["sarif"]).glob("*.sarif")]
    assert "secret" not in run.log


@needs_git
def test_the_next_run_updates_the_comment(act: Act, comments: Comments, shop: Repository):
    act()
    shop.write("shop/cart.py", WITH_REBATE.replace("assert total < 45", "assert total < 450"))
    shop.commit("fixed")
    run = act()
    assert run.failed == "", run.log
    assert run.outputs["status"] == "0"
    (text,) = comments.texts.values()
    assert "no fault" in text
    assert "updated the comment of the run before" in run.log


@needs_git
def test_an_input_of_the_action_is_never_executed(act: Act, tmp_path: Path):
    payload = f"$(touch {tmp_path}/executed)`touch {tmp_path}/executed`;touch {tmp_path}/executed"
    run = act(machines=payload, base=payload, comment="false")
    assert run.outputs["status"] == "2"
    assert not (tmp_path / "executed").exists()


@needs_git
def test_the_action_tests_every_machine_and_reports_the_worst(act: Act, shop: Repository):
    run = act(machines="nothing.py\n\nmachine.py", comment="false", options="-n 50 -j 1")
    assert "nothing.py" in run.log
    assert "focus on machine.py::CartMachine" in run.log
    assert run.outputs["status"] == "2"


@needs_git
def test_the_action_without_a_machine_says_so(act: Act):
    run = act(machines="\n")
    assert "machines is empty: name what to test" in run.log
    assert run.outputs["status"] == "2"


@needs_git
def test_the_gitlab_component_reports_a_new_fault(shop: Repository, comments: Comments):
    base = shop.git("rev-parse", "HEAD~1")
    job = run_component(
        {
            "machine": "machine.py",
            "options": "-n 500 -j 1 --baseline-tests 500 --no-reduce",
            "install": "true",
            "time": "1h",
        },
        merge_request(comments) | {"CI_MERGE_REQUEST_DIFF_BASE_SHA": base},
        shop.place,
    )
    assert job.status == 1, job.log
    (entry,) = json.loads(job.reports["codequality"].read_text())
    assert entry["location"] == {"path": "shop/cart.py", "lines": {"begin": FAULT}}
    assert entry["severity"] == "critical"
    assert "AssertionError" in entry["description"]
    suite = ElementTree.parse(job.reports["junit"]).getroot()
    assert suite.get("failures") == "1"
    (text,) = comments.texts.values()
    assert "swarmtest focus: 1 new fault" in text
    assert comments.tokens == {"secret"}


def test_a_comment_beyond_the_first_page_is_found(comments: Comments, tmp_path: Path):
    comments.texts = dict.fromkeys(range(1, 251), "a remark")
    text = comment_text("first", "machine.py")
    comments.texts[230] = text
    find_discussion(pull_request(comments, tmp_path)).write(comment_text("second", "machine.py"))
    assert comments.texts[230] == comment_text("second", "machine.py")
    assert len(comments.texts) == 250
    assert comments.requests[-1] == ("PATCH", "/repos/me/shop/issues/comments/230")


def test_each_machine_has_a_comment_of_its_own(comments: Comments):
    discussion = find_discussion(merge_request(comments))
    assert discussion.write(comment_text("one", "a.py")) == "wrote a comment"
    assert discussion.write(comment_text("two", "b.py")) == "wrote a comment"
    assert comments.requests[-1] == ("POST", "/projects/12/merge_requests/7/notes")
    discussion.write(comment_text("three", "a.py"))
    assert [text.splitlines()[1] for text in comments.texts.values()] == ["three", "two"]
    assert comments.requests[-1] == ("PUT", "/projects/12/merge_requests/7/notes/1")


def test_a_mark_in_the_middle_of_a_remark_is_left_alone(comments: Comments):
    comments.texts = {1: f"I quote: {comment_text('one', 'a.py')}"}
    find_discussion(merge_request(comments)).write(comment_text("two", "a.py"))
    assert len(comments.texts) == 2


@pytest.mark.parametrize("status", [401, 403, 404])
def test_a_token_without_rights_is_explained(comments: Comments, status: int):
    comments.refuse = status
    with pytest.raises(NoComment, match="may not write comments"):
        find_discussion(merge_request(comments)).write("text")


def test_a_server_that_does_not_answer_is_no_traceback():
    nobody = Discussion("http://127.0.0.1:9/x", "http://127.0.0.1:9/x", "PUT", {})
    with pytest.raises(NoComment, match="does not answer as expected"):
        nobody.write("text")


def test_a_push_is_no_pull_request(comments: Comments, tmp_path: Path):
    environment = pull_request(comments, tmp_path)
    Path(environment["GITHUB_EVENT_PATH"]).write_text("{}")
    with pytest.raises(NoComment, match="does not belong to a pull request"):
        find_discussion(environment)


def test_a_missing_token_is_named(comments: Comments, tmp_path: Path):
    with pytest.raises(NoComment, match="GITHUB_TOKEN is not set"):
        find_discussion(pull_request(comments, tmp_path) | {"GITHUB_TOKEN": ""})
    with pytest.raises(NoComment, match="GITLAB_TOKEN is not set"):
        find_discussion(merge_request(comments) | {"GITLAB_TOKEN": ""})


def test_a_comment_needs_a_ci_system():
    with pytest.raises(UserError, match="GitHub Actions or GitLab CI"):
        find_discussion({})
