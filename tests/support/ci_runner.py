"""Runs the steps of a composite GitHub action, and the script of a GitLab job, without a container.

Scripts run as the CI systems run them: by bash, with the variables that these systems set, in the
directory of the checkout. What refers to another action (``uses:``) is not run, only listed.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import yaml

TOP = Path(__file__).parents[2]
Values = dict[str, str]


@dataclass
class ActionRun:
    """What a run of an action did."""

    log: str = ""
    failed: str = ""
    """The name of the step that failed; the steps after it did not run."""
    used: list[str] = field(default_factory=list)
    outputs: Values = field(default_factory=dict)
    summary: str = ""


def run_action(inputs: Values, environment: Values, checkout: Path, temporary: Path) -> ActionRun:
    """Run the action of this repository in a checkout."""
    action = yaml.safe_load((TOP / "action.yml").read_text())
    unknown = inputs.keys() - action["inputs"].keys()
    assert not unknown, f"no inputs of the action: {unknown}"
    missing = [
        name
        for name, described in action["inputs"].items()
        if described.get("required") and name not in inputs
    ]
    assert not missing, f"missing inputs: {missing}"
    context = {
        "github.token": environment.get("GITHUB_TOKEN", ""),
        "github.run_id": "1",
        "github.run_attempt": "1",
    }
    for name, described in action["inputs"].items():
        given = inputs.get(name, described.get("default", ""))
        context[f"inputs.{name}"] = _filled(given, context)
    run = ActionRun()
    summary = temporary / "summary.md"
    for number, step in enumerate(action["runs"]["steps"]):
        if "uses" in step:
            run.used.append(step["uses"])
            continue
        output = temporary / f"output-{number}"
        output.touch()
        variables = {
            **os.environ,
            **{name: value for name, value in environment.items() if name != "GITHUB_TOKEN"},
            "GITHUB_ACTIONS": "true",
            "GITHUB_ACTION_PATH": str(TOP),
            "GITHUB_WORKSPACE": str(checkout),
            "GITHUB_OUTPUT": str(output),
            "GITHUB_STEP_SUMMARY": str(summary),
            "RUNNER_TEMP": str(temporary),
            **{name: _filled(value, context) for name, value in step.get("env", {}).items()},
        }
        # A script that contains an expression could be made to run the text of an input.
        assert "${{" not in step["run"]
        folder = checkout / _filled(step.get("working-directory", "."), context)
        assert step["shell"] == "bash"
        done = subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
            cwd=folder,
            env=variables,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        run.log += done.stdout
        for line in output.read_text().splitlines():
            name, _, value = line.partition("=")
            context[f"steps.{step['id']}.outputs.{name}"] = value
        if done.returncode:
            run.failed = step["name"]
            break
    run.outputs = {
        name: _filled(described["value"], context) for name, described in action["outputs"].items()
    }
    run.summary = summary.read_text() if summary.exists() else ""
    return run


def _filled(text: str, context: Values) -> str:
    """Return a text with its expressions replaced; an unknown one is an error."""
    return re.sub(r"\$\{\{\s*([\w.-]+)\s*\}\}", lambda match: context[match[1]], str(text))


@dataclass(frozen=True)
class JobRun:
    """What a run of a GitLab job did."""

    status: int
    log: str
    reports: dict[str, Path]


def run_component(inputs: Values, environment: Values, checkout: Path) -> JobRun:
    """Run the job of this repository's GitLab component in a checkout."""
    header, jobs = yaml.safe_load_all((TOP / "templates" / "focus.yml").read_text())
    described = header["spec"]["inputs"]
    assert inputs.keys() <= described.keys()
    values = {
        name: inputs[name] if name in inputs else facts["default"]
        for name, facts in described.items()
    }
    job = _interpolated(jobs["swarmtest-focus"], values)
    variables = {
        **os.environ,
        **environment,
        "GITLAB_CI": "true",
        "CI_PROJECT_DIR": str(checkout),
        **{name: str(value) for name, value in job["variables"].items()},
    }
    # GitLab runs all lines in one shell that ends at the first failure.
    script = "\n".join(job["script"])
    done = subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script],
        cwd=checkout,
        env=variables,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    reports = {name: checkout / path for name, path in job["artifacts"]["reports"].items()}
    return JobRun(done.returncode, done.stdout, reports)


def _interpolated(part: Any, values: Values) -> Any:
    """Return part of a template with its inputs filled in: GitLab does this after parsing."""
    if isinstance(part, dict):
        return {name: _interpolated(value, values) for name, value in part.items()}
    if isinstance(part, list):
        return [_interpolated(value, values) for value in part]
    if isinstance(part, str):
        return re.sub(r"\$\[\[\s*inputs\.(\w+)\s*\]\]", lambda match: values[match[1]], part)
    return part


@dataclass
class Comments:
    """The comments of one request, and how they were changed."""

    url: str = ""
    texts: dict[int, str] = field(default_factory=dict)
    requests: list[tuple[str, str]] = field(default_factory=list)
    tokens: set[str] = field(default_factory=set)
    refuse: int = 0
    """An HTTP status that every request gets."""


@contextmanager
def comment_server() -> Iterator[Comments]:
    """Serve comments on loopback as GitHub and GitLab do."""
    comments = Comments()

    class Handler(BaseHTTPRequestHandler):
        def _answer(self) -> None:
            path, _, query = self.path.partition("?")
            comments.requests.append((self.command, path))
            token = self.headers.get("Authorization") or self.headers.get("PRIVATE-TOKEN") or ""
            comments.tokens.add(token)
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            status, answer = self._result(path, query, json.loads(body)["body"] if body else "")
            data = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def _result(self, path: str, query: str, text: str) -> tuple[int, Any]:
            if comments.refuse:
                return comments.refuse, {"message": "Resource not accessible by integration"}
            if self.command == "GET":
                page = int(re.search(r"\bpage=(\d+)", query)[1]) - 1  # type: ignore[index]
                every = [{"id": id, "body": text} for id, text in comments.texts.items()]
                return 200, every[100 * page : 100 * page + 100]
            if self.command == "POST":
                number = max(comments.texts, default=0) + 1
            else:
                number = int(path.rsplit("/", 1)[1])
            comments.texts[number] = text
            return 200, {"id": number}

        do_GET = do_POST = do_PUT = do_PATCH = _answer

        def log_message(self, format: str, *arguments: object) -> None:
            """Print nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        comments.url = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield comments
        finally:
            server.shutdown()
            thread.join()
