"""The summary of a focus as a comment on a pull request (GitHub) or merge request (GitLab).

A run on a new commit of the same request replaces the comment of the run before, so that a request
has one comment per subject. The comment is found by its first line, a mark that readers do not see.

What to write to comes from the variables that the CI system sets. A comment that cannot be written
is a line in the log, never a failed job: requests from forks have no right to write comments.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import quote
from urllib.request import Request, urlopen

from swarmtest.core.errors import UserError

_SECONDS = 30
"""Time limit of one request to the CI system."""
_PAGE, _MOST_PAGES = 100, 50


class NoComment(Exception):
    """No comment can be written here; the message says why."""


@dataclass(frozen=True)
class Discussion:
    """The comments of one request, as the CI system's interface has them."""

    comments: str
    """The address that lists comments and takes new ones."""
    comment: str
    """The address of one comment; its number follows."""
    update: str
    """The HTTP method that replaces the text of a comment."""
    headers: Mapping[str, str]

    def write(self, text: str) -> str:
        """Write a comment, or replace the one with the same first line; return what was done."""
        mark = text.splitlines()[0]
        for comment in self._listed():
            if str(comment.get("body", "")).startswith(mark):
                self._send(self.update, f"{self.comment}/{int(comment['id'])}", {"body": text})
                return "updated the comment of the run before"
        self._send("POST", self.comments, {"body": text})
        return "wrote a comment"

    def _listed(self) -> Iterator[dict[str, Any]]:
        for page in range(1, _MOST_PAGES + 1):
            comments = self._send("GET", f"{self.comments}?per_page={_PAGE}&page={page}")
            yield from comments
            if len(comments) < _PAGE:
                return

    def _send(self, method: str, address: str, data: dict[str, str] | None = None) -> Any:
        body = None if data is None else json.dumps(data).encode()
        headers = {**self.headers, "Content-Type": "application/json", "User-Agent": "swarmtest"}
        try:
            with urlopen(Request(address, body, headers, method=method), timeout=_SECONDS) as got:
                return json.load(got)
        except HTTPError as error:
            with error:
                raise NoComment(_refusal(error.code)) from None
        except (URLError, OSError, ValueError) as error:
            reason = getattr(error, "reason", error)
            raise NoComment(f"the CI system does not answer as expected: {reason}") from None


def _refusal(status: int) -> str:
    if status in (401, 403, 404):
        return (
            f"the token may not write comments (HTTP status {status}), as in a request from a fork"
        )
    return f"the CI system answers with HTTP status {status}"


def comment_text(summary: str, subject: str) -> str:
    """Return a summary with the mark by which a later run finds it.

    >>> comment_text("Hello", "machine.py").splitlines()
    ['<!-- swarmtest focus 06fcb459 -->', 'Hello']
    """
    # Not the subject's name itself: it may contain the end of an HTML comment.
    name = hashlib.sha256(subject.encode(errors="replace")).hexdigest()[:8]
    return f"<!-- swarmtest focus {name} -->\n{summary}"


def find_discussion(environment: Mapping[str, str]) -> Discussion:
    """Return where comments go, by the variables of the CI system.

    Raise `NoComment` if this job belongs to no request, or has no token.
    """
    if environment.get("GITHUB_ACTIONS"):
        return _on_github(environment)
    if environment.get("GITLAB_CI"):
        return _on_gitlab(environment)
    raise UserError(
        "--comment works in a job of GitHub Actions or GitLab CI; elsewhere use --markdown FILE"
    )


def _on_github(environment: Mapping[str, str]) -> Discussion:
    token = environment.get("GITHUB_TOKEN")
    if not token:
        raise NoComment("GITHUB_TOKEN is not set: pass it with `env:` in the workflow")
    api = environment.get("GITHUB_API_URL") or "https://api.github.com"
    issues = f"{api}/repos/{environment.get('GITHUB_REPOSITORY', '')}/issues"
    return Discussion(
        comments=f"{issues}/{_pull_request_number(environment)}/comments",
        comment=f"{issues}/comments",
        update="PATCH",
        headers={"Authorization": f"Bearer {token}", "Accept": "application/vnd.github+json"},
    )


def _pull_request_number(environment: Mapping[str, str]) -> int:
    try:
        event = json.loads(Path(environment["GITHUB_EVENT_PATH"]).read_text(encoding="utf-8"))
        return int(event["pull_request"]["number"])
    except (KeyError, TypeError):
        raise NoComment("this job does not belong to a pull request") from None
    except (OSError, ValueError) as error:
        raise NoComment(f"GITHUB_EVENT_PATH cannot be read: {error}") from None


def _on_gitlab(environment: Mapping[str, str]) -> Discussion:
    request = environment.get("CI_MERGE_REQUEST_IID")
    if not request:
        raise NoComment("this job does not belong to a merge request")
    token = environment.get("GITLAB_TOKEN")
    if not token:
        # GitLab's CI_JOB_TOKEN has no right to write notes.
        raise NoComment(
            "GITLAB_TOKEN is not set: make it a masked CI/CD variable with an access token of the "
            "project, scope api"
        )
    project = quote(environment.get("CI_PROJECT_ID", ""), safe="")
    api = environment.get("CI_API_V4_URL") or "https://gitlab.com/api/v4"
    notes = f"{api}/projects/{project}/merge_requests/{quote(request, safe='')}/notes"
    return Discussion(notes, notes, "PUT", {"PRIVATE-TOKEN": token})
