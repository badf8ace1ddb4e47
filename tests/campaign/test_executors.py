"""The names of executors, and the parts of the cluster's executor that need no cluster."""

from __future__ import annotations

import os
import pickle
import socket
import stat
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

from swarmtest.campaign.campaign import Campaign
from swarmtest.campaign.executors.block_batch import SentBlock, pack_batch
from swarmtest.campaign.executors.dask.executor import Definitions
from swarmtest.campaign.executors.dask.packages import (
    UnpackedBundle,
    files_below,
    pack_files,
    reason_to_refuse,
    requirements_of,
    unpack_files,
    version_mismatch,
    versions_of,
)
from swarmtest.campaign.executors.dask.worker_side import RemoteHost
from swarmtest.campaign.executors.executor import parse_executor
from swarmtest.campaign.executors.host import HostSetup
from swarmtest.campaign.executors.host_start import Interpreter, job_maker, spawn
from swarmtest.campaign.executors.worker import BatchMessage
from swarmtest.core.errors import UserError
from swarmtest.core.result import Fault
from swarmtest.coverage.options import CoverageOptions
from swarmtest.store.blocks.codec import unpack_block
from swarmtest.store.loose_blocks import BlockLayout
from swarmtest.store.records import TrialRecord
from swarmtest.strategies.strategy import parse_strategy
from swarmtest.subjects.loading import SubjectReference

STEADY = Path(__file__).with_name("steady.py")


@pytest.mark.parametrize(
    ("text", "options", "words"),
    [
        ("slrum", (), ("--executor slrum", "local, slurm, pbs", "did you mean 'slurm'?")),
        ("dask://ant", (), ("--executor dask://ant", "dask://HOST:PORT")),
        ("dask://ant:123456", (), ("dask://HOST:PORT",)),
        ("dask://user:secret@ant:1", (), ("dask://HOST:PORT",)),
        ("dask://ant:1", ("patiense=3s",), ("patiense", "did you mean 'patience'?")),
        ("dask://ant:1", ("connect=soon",), ("--executor-option connect: 'soon'", "write 30s")),
        ("dask://ant:1", ("patience=nan",), ("--executor-option patience: 'nan'", "write 30s")),
        ("dask://ant:1", ("connect=[1]",), ("--executor-option connect: '[1]'", "write 30s")),
        ("local", ("jobs=3",), ("jobs", "the local executor has no options")),
        ("slurm", ("jobs",), ("--executor-option jobs", "KEY=VALUE")),
        ("nowhere.toml", (), ("no such file: nowhere.toml",)),
    ],
)
def test_a_mistake_in_the_name_of_an_executor_is_one_clear_line(text, options, words):
    with pytest.raises(UserError) as refused:
        parse_executor(text, options)
    assert all(word in str(refused.value) for word in words), refused.value


def test_a_file_may_say_everything(tmp_path):
    file = tmp_path / "cluster.toml"
    file.write_text('executor = "slurm"\njobs = 4\nmemory = "8GB"\n')
    choice = parse_executor(str(file), ["jobs=2"])
    assert (choice.kind, choice.options) == ("slurm", {"jobs": 2, "memory": "8GB"})
    file.write_text("jobs = 4\n")
    with pytest.raises(UserError, match="say which executor"):
        parse_executor(str(file))
    file.write_text("jobs = \n")
    with pytest.raises(UserError, match=r"cluster\.toml"):
        parse_executor(str(file))


def test_unreachable_schedulers_are_named_with_what_was_tried(tmp_path, swarmtest, refused):
    (tmp_path / "steady.py").write_text(STEADY.read_text())
    words = ("run", "steady.py::Steady", "-n", 5, "-q", "--executor-option", "connect=0.5s")
    done = swarmtest(*words, "--executor", "dask://127.0.0.1:1", cwd=tmp_path)
    refused(done, "no Dask scheduler answers at tcp://127.0.0.1:1", "tried for 0.5 s", "onnect")
    done = swarmtest(*words, "--executor", "tls://127.0.0.1:1", cwd=tmp_path)
    refused(done, "tls://127.0.0.1:1", "--executor-option tls-ca=FILE")
    done = swarmtest(*words, "--executor", "dask://127.0.0.1:1", "-j", 2, cwd=tmp_path)
    refused(done, "--workers", "dask://127.0.0.1:1")


def test_something_else_that_listens_is_not_waited_for(tmp_path, swarmtest, refused):
    (tmp_path / "steady.py").write_text(STEADY.read_text())
    words = ("run", "steady.py::Steady", "-n", 5, "-q", "--executor-option", "connect=0.5s")
    with socket.create_server(("127.0.0.1", 0)) as silent:
        place = f"127.0.0.1:{silent.getsockname()[1]}"
        done = swarmtest(*words, "--executor", f"dask://{place}", cwd=tmp_path)
    refused(done, f"no Dask scheduler answers at tcp://{place}", "what listens there is not")


@pytest.mark.parametrize(
    ("executor", "options", "words"),
    [
        ("slurm", (), ("no sbatch on this machine",)),
        ("pbs", (), ("no qsub on this machine",)),
        ("kubernetes", (), ("dask-kubernetes", "swarmtest[kubernetes]")),
    ],
)
def test_a_batch_system_that_is_not_there_is_named(
    executor, options, words, tmp_path, swarmtest, refused
):
    (tmp_path / "steady.py").write_text(STEADY.read_text())
    done = swarmtest(
        "run", "steady.py::Steady", "-n", 5, "-q", "--executor", executor, cwd=tmp_path
    )
    refused(done, *words)


def test_without_dask_the_package_to_install_is_named(tmp_path, monkeypatch):
    (tmp_path / "steady.py").write_text(STEADY.read_text())
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setitem(sys.modules, "distributed", None)
    campaign = Campaign("steady.py::Steady", store=":memory:", executor="dask://127.0.0.1:1")
    with pytest.raises(UserError, match=r"needs Dask: pip install 'swarmtest\[dask\]'"):
        campaign.run()


def test_the_options_of_a_batch_system_are_checked(tmp_path, monkeypatch):
    from swarmtest.campaign.executors.dask.scheduler import JobQueue

    (tmp_path / "qsub").write_text("#!/bin/sh\n")
    (tmp_path / "qsub").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    for options, said in (
        (["memory=1GB"], "cores=4"),
        (["cors=1"], "did you mean 'cores'"),
        (["jobs=none"], "write a number of jobs"),
    ):
        with pytest.raises(UserError, match=said):
            JobQueue(parse_executor("pbs", options))


def test_a_subject_that_cannot_be_imported_elsewhere_does_not_go_there():
    from swarmtest import Machine, action

    class Here(Machine):
        @action
        def act(self):
            pass

    campaign = Campaign(Here, "coin", 5, store=":memory:", executor="dask://127.0.0.1:1")
    with pytest.raises(UserError, match=r"cannot be tested at dask://127\.0\.0\.1:1"):
        campaign.run()


def test_a_pack_has_content_and_modes_and_its_hash_follows_from_them(tmp_path):
    (tmp_path / "pkg").mkdir()
    (tmp_path / "pkg" / "code.py").write_text("x = 1\n")
    script = tmp_path / "run.sh"
    script.write_text("#!/bin/sh\n")
    script.chmod(0o755)
    for left_out in (".secret", "kept.db", "pkg/code.pyc"):
        (tmp_path / left_out).write_text("not for others")
    first, pack = pack_files(files_below(str(tmp_path)))
    found = {
        os.path.relpath(name, tmp_path): (mode, text) for name, mode, text in unpack_files(pack)
    }
    assert found.keys() == {"pkg/code.py", "run.sh"}
    assert found["run.sh"] == (0o755, b"#!/bin/sh\n")
    assert pack_files(files_below(str(tmp_path)))[0] == first
    (tmp_path / "pkg" / "code.py").write_text("x = 2\n")
    assert pack_files(files_below(str(tmp_path)))[0] != first


def test_too_much_to_send_is_refused(tmp_path):
    with open(tmp_path / "large", "wb") as file:
        file.truncate(65 << 20)
    with pytest.raises(UserError, match="larger than 64 MB"):
        pack_files(files_below(str(tmp_path)))


def test_what_arrives_lies_at_its_path_below_a_prefix(tmp_path):
    home = tmp_path / "home"
    (home / "project").mkdir(parents=True)
    (home / "project" / "tool").write_text("#!/bin/sh\n")
    (home / "project" / "tool").chmod(0o700)
    digest, pack = pack_files(files_below(str(home)))
    bundle = {
        "hash": digest,
        "pack": pack,
        "path": [str(home)],
        "directory": str(home / "project"),
        "project": str(home),
        "coverage": {"beside": str(home / "project"), "cover": ["json"]},
    }
    (tmp_path / "worker").mkdir()
    unpacked = UnpackedBundle(bundle, str(tmp_path / "worker"))
    tool = Path(unpacked.directory) / "tool"
    assert stat.S_IMODE(tool.stat().st_mode) == 0o700
    assert str(tool) == unpacked.prefix + str(home / "project" / "tool")
    assert unpacked.coverage == {"beside": unpacked.directory, "cover": ["json"]}


@pytest.fixture
def bundle(tmp_path):
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "shop.py").write_text("PRICE = 7\n")
    (tmp_path / "worker").mkdir()
    digest, pack = pack_files(files_below(str(tmp_path / "home")))
    home = str(tmp_path / "home")
    return {
        "hash": digest, "pack": pack, "path": [home], "directory": home, "project": home,
        "coverage": None,
    }  # fmt: skip


def unpacked_text(bundle, tmp_path):
    unpacked = UnpackedBundle(bundle, str(tmp_path / "worker"))
    assert stat.S_IMODE(os.stat(unpacked.prefix).st_mode) == 0o700
    return unpacked.prefix, (Path(unpacked.directory) / "shop.py").read_text()


def test_processes_of_a_worker_share_an_unpacked_bundle(bundle, tmp_path):
    first, second = (unpacked_text(bundle, tmp_path) for _ in range(2))
    assert first == second
    assert len(list((tmp_path / "worker").iterdir())) == 1


@pytest.mark.parametrize("attack", ["other content", "others may write", "a link", "a file"])
def test_an_unpacked_bundle_that_others_could_have_written_is_not_loaded(attack, bundle, tmp_path):
    prefix, _ = unpacked_text(bundle, tmp_path)
    shop = Path(prefix + str(tmp_path / "home" / "shop.py"))
    if attack == "other content":
        shop.write_text("import os; os.abort()\n")
    elif attack == "others may write":
        os.chmod(prefix, 0o777)
    else:
        os.rename(prefix, tmp_path / "elsewhere")
        if attack == "a link":
            os.symlink(tmp_path / "elsewhere", prefix)
        else:
            Path(prefix).touch()
    place, text = unpacked_text(bundle, tmp_path)
    assert place != prefix
    assert text == "PRICE = 7\n"


def test_packages_that_the_subject_uses_go_by_their_versions(tmp_path, monkeypatch):
    (tmp_path / "uses_click.py").write_text(
        "import click, json\nfrom swarmtest import Machine, action\n"
        "class M(Machine):\n    @action\n    def a(self): click.style('x')\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    reference = SubjectReference("uses_click.py")
    reference.load()
    requirements = requirements_of(reference)
    assert str(tmp_path) in requirements.paths
    assert str(tmp_path) in requirements.path
    assert requirements.packages["click"] == metadata.version("click")
    assert not {"json", "swarmtest"} & requirements.packages.keys()


def test_another_python_swarmtest_or_package_is_refused():
    ours = versions_of({})
    assert reason_to_refuse(ours) == ""
    assert "has Python 3.9, and the campaign" in version_mismatch(ours, {"python": "3.9.2.final.0"})
    told = {"python": ours["python"] + ".1.final.0", "swarmtest": None}
    assert version_mismatch(ours, told).startswith("has no swarmtest: install swarmtest")
    assert "has pytest" in reason_to_refuse(versions_of({"pytest": "1.0"}))
    assert "has no no-such-package" in reason_to_refuse(versions_of({"no-such-package": "1.0"}))


def row(trial, fault=None):
    return TrialRecord(trial, b"", verdict=int(fault is not None), fault=fault, steps=1)


def test_a_message_of_a_worker_arrives_as_it_was_sent():
    fault = ("abc", "exit", "exit", "", 7, 7, 1, ["push"])
    rows = [row(7, "abc"), row(8)]
    message = BatchMessage(rows, [b"set"], [(0,), ()], ([], [], b"", []), [fault], [(8, "test")])
    arrived = BatchMessage.unpack(message.pack())
    assert arrived == message
    assert [type(trial) for trial in arrived.rows] == [TrialRecord, TrialRecord]


def as_block(message):
    """The same trials in a block, as hosts pack them."""
    block = pack_batch(message.rows, [], [()] * len(message.rows), [], BlockLayout(0, 11))
    return message._replace(rows=[], sets=[], set_indices=[], block=tuple(block))


@pytest.mark.parametrize("form", [lambda message: message, as_block], ids=["rows", "block"])
def test_a_batch_that_ran_twice_counts_once_and_its_faults_only_with_a_trial(form):
    definitions = Definitions()
    fault = ("abc", "exit", "exit", "", 7, 7, 1, None)
    news: Any = ([("key",)], [], b"", [])
    copy = form(BatchMessage([row(7, "abc")], [b"set"], [(0,)], news, [fault], [(7, "test")]))
    answer = {"host": "tcp://ant:1/5-1", "last_message": 1}
    assert definitions.accept(answer, [copy], with_rows=False) == [
        ([], [], [], news, [], [], (), None)
    ]
    later = form(BatchMessage([row(9, "abc")], [], [()], ([], [], b"", []), [], []))
    (told,) = definitions.accept(answer | {"last_message": 2}, [later], with_rows=True)
    assert told == later._replace(faults=[fault])
    assert definitions.received_from(["tcp://ant:1"]) == {"tcp://ant:1/5-1": 2}
    assert definitions.received_from([]) == {}


def start_host(directory, subject, coverage=None, moved_below=""):
    """A host as a Dask worker starts it, in a directory that has the subject's file."""
    make = job_maker(SubjectReference(subject), subject, parse_strategy("coin"), 11, False)
    interpreter = Interpreter(sys.path, (), str(directory))
    setup = pickle.dumps(HostSetup(make, 10.0, 0, packs_blocks=True))
    spawned = spawn(interpreter, setup, coverage, moved_below=moved_below)
    return RemoteHost("ant/1-1", spawned, moved_below)


def rows_of(results, features):
    """All trials that a host has sent, as rows or in blocks."""
    rows = []
    for message in map(BatchMessage.unpack, results.messages):
        rows += message.rows
        if message.block is not None:
            columns = SentBlock._make(message.block).columns
            rows += unpack_block(columns, BlockLayout(features, 11)).without_hits().records()
    return rows


@pytest.fixture
def remote_host(tmp_path, monkeypatch):
    monkeypatch.setenv("NAP", "20")
    (tmp_path / "steady.py").write_text(STEADY.read_text())
    made = start_host(tmp_path, "steady.py::Steady")
    yield made
    made.close()


LOADED = """
import sys
from swarmtest import Machine, action

class Loaded(Machine):
    @action
    def look(self):
        assert "numpy" in sys.modules
"""


def test_what_children_need_for_many_trials_is_imported_once_before_the_first(tmp_path):
    (tmp_path / "loaded.py").write_text(LOADED)
    host = start_host(tmp_path, "loaded.py::Loaded")
    try:
        results = host.run(list(range(20)), None, 60.0, lambda: False)
    finally:
        host.close()
    assert [row.fault for row in rows_of(results, 1)] == [None] * 20


LOST = """
from swarmtest import Machine, action

class Lost(Machine):
    steps = 2

    @action
    def look(self):
        raise RuntimeError(f"nothing at {__file__}")
"""


def test_a_host_on_another_machine_packs_blocks_without_that_machines_paths(tmp_path):
    (tmp_path / "lost.py").write_text(LOST)
    coverage = CoverageOptions(kinds=("line",), beside=str(tmp_path)).to_plain()
    host = start_host(tmp_path, "lost.py::Lost", coverage, moved_below=str(tmp_path))
    try:
        results = host.run(list(range(600)), None, 60.0, lambda: False)
    finally:
        host.close()
    messages = list(map(BatchMessage.unpack, results.messages))
    assert any(message.block is not None for message in messages)
    assert [row.trial for row in rows_of(results, 1)] == list(range(600))
    faults = [fault for message in messages for fault in message.faults]
    assert faults
    for id, kind, signature, details, *_ in faults:
        assert "nothing at /lost.py" in details
        assert str(tmp_path) not in signature + details
        assert id == Fault(kind, signature).of_subject("lost.py::Lost").id
    assert {row.fault for row in rows_of(results, 1)} == {faults[0][0]}
    assert {place for message in messages for *_, place in message.news[1]} == {"/lost.py"}


def test_what_is_wrong_with_a_subject_on_another_machine_is_told_without_its_paths(tmp_path):
    (tmp_path / "broken.py").write_text("raise RuntimeError(f'nothing at {__file__}')")
    host = start_host(tmp_path, "broken.py::Broken", moved_below=str(tmp_path))
    try:
        results = host.run([0], None, 60.0, lambda: False)
    finally:
        host.close()
    assert "nothing at /broken.py" in results.error
    assert str(tmp_path) not in results.error


def test_a_slow_worker_gives_back_in_time_what_it_cannot_do(remote_host):
    results = remote_host.run(list(range(1000)), None, 0.3, lambda: False)
    assert remote_host.alive
    assert 1 <= results.done <= 40  # in 0.3 s there is time for 15, and then a piece is under way
    rows = [row for message in results.messages for row in BatchMessage.unpack(message).rows]
    assert [row.trial for row in rows] == list(range(results.done))


def test_what_a_host_tells_once_is_told_again_until_it_was_heard(remote_host):
    remote_host.run(list(range(40)), None, 60.0, lambda: False)
    unconfirmed = [BatchMessage.unpack(message) for message in remote_host.unconfirmed()]
    assert unconfirmed
    assert all(message.rows == [] for message in unconfirmed)
    assert any(message.faults for message in unconfirmed)
    remote_host.confirm(remote_host.last_message)
    assert remote_host.unconfirmed() == []


def test_a_host_that_is_told_to_stop_tells_what_is_done(remote_host):
    asked: list[Any] = []

    def stopped():
        asked.append(None)
        return len(asked) > 12

    results = remote_host.run(list(range(1000)), None, 60.0, stopped)
    rows = [row for message in results.messages for row in BatchMessage.unpack(message).rows]
    assert len(rows) == results.done < 1000


def test_a_host_that_is_killed_keeps_its_finished_rows(remote_host):
    remote_host.run([0, 1, 2], None, 60.0, lambda: False)
    remote_host._process.kill()
    results = remote_host.run(list(range(3, 50)), None, 60.0, lambda: False)
    assert not remote_host.alive
    assert results.done < 47
