"""Campaigns on a Dask cluster: real schedulers and workers, as processes on this machine."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import stat
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest
from dask_processes import DaskProcesses, Proxy

from swarmtest.store import open_store

HERE = Path(__file__).parent
TESTS = 300
ARGUMENTS = ("run", "steady.py::Steady", "-n", TESTS, "--seed", 11, "-q", "--no-reduce")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """A scheduler with one worker of two threads."""
    processes = DaskProcesses(tmp_path_factory.mktemp("dask"))
    processes.start_worker(threads=2, NAP="2", STRIKE="segfault", MARK="there")
    yield processes
    processes.end()


@pytest.fixture(scope="module")
def bare(tmp_path_factory):
    """A scheduler without workers."""
    processes = DaskProcesses(tmp_path_factory.mktemp("bare"))
    yield processes
    processes.end()


@pytest.fixture(scope="module")
def here(tmp_path_factory):
    place = tmp_path_factory.mktemp("subject")
    for name in ("steady.py", "nasty.py"):
        (place / name).write_text((HERE / name).read_text())
    return place


@pytest.fixture(scope="module")
def plain(here, swarmtest, rows):
    """What a local run gives."""
    done = swarmtest(*ARGUMENTS, "-j", 2, "--store", "plain.db", cwd=here)
    assert done.returncode == 1, done.stderr
    return rows(here / "plain.db")


def faults_of(store):
    with open_store(str(store), must_exist=True) as opened:
        return opened.faults(1)


def workers_of(store):
    with open_store(str(store), must_exist=True) as opened:
        return opened.workers(1)


def count(store):
    """Trials that are kept so far; 0 while there is no store."""
    if not store.exists():
        return 0
    with contextlib.suppress(Exception), open_store(str(store), read_only=True) as opened:
        return opened.summary(1)["trials"] if opened.campaigns() else 0
    return 0


@pytest.fixture(scope="module")
def there(cluster, here, swarmtest):
    """The store of the same campaign on the cluster."""
    done = swarmtest(*ARGUMENTS, "--executor", cluster.executor, "--store", "there.db", cwd=here)
    assert done.returncode == 1, done.stderr
    return here / "there.db"


def test_the_same_seed_gives_the_same_tests_as_locally(there, here, plain, rows):
    assert rows(there) == plain
    assert faults_of(there) == faults_of(here / "plain.db")


def test_the_store_tells_who_worked(there, here, plain):
    # On a busy machine Dask may restart a worker, which is another one then, or lose it.
    remotely = workers_of(there)
    assert sum(worker.tests for worker in remotely) == TESTS
    assert {worker.state for worker in remotely} <= {"done", "lost"}
    locally = workers_of(here / "plain.db")
    assert sum(one.tests for one in locally) == TESTS
    assert {one.state for one in locally} == {"done"}


def hosts_below(place):
    """The host processes that run tests under a worker's directory."""
    found = []
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if not entry.name.isdigit() or str(place) not in os.readlink(entry / "cwd"):
                continue
            if b"swarmtest.campaign.executors.host" in (entry / "cmdline").read_bytes():
                found.append(int(entry.name))
    return found


def test_a_finished_campaign_leaves_no_process_on_the_workers(there, cluster, until):
    # If the connection was lost at the end, the hosts notice that they get no more batches.
    until(lambda: not hosts_below(cluster.place), "no host is left")


SHELF = """
import os

LIMIT = int(open(os.path.join(os.path.dirname(__file__), "limit.txt")).read())

class Shelf:
    def __init__(self):
        self.items = []

    def put(self, item):
        if len(self.items) > LIMIT:
            raise OverflowError("full")
        self.items.append(item)

    def take(self):
        if self.items:
            return self.items.pop()
"""
HARNESS = """
import os, sys
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from shelves.shelf import Shelf
from swarmtest import Machine, action, integers

class Shelves(Machine):
    def start(self):
        self.shelf = Shelf()

    @action(item=integers(0, 9))
    def put(self, item):
        self.shelf.put(item)

    @action
    def take(self):
        self.shelf.take()
"""


def test_coverage_of_a_program_with_packages_and_data_is_the_same_as_locally(
    cluster, tmp_path, swarmtest, rows
):
    """A harness in one directory, the program in another, named by an absolute path."""
    project = tmp_path / "project"
    for file, text in (
        ("shelves/__init__.py", ""),
        ("shelves/shelf.py", SHELF),
        ("shelves/limit.txt", "6"),
        ("harness/machine.py", HARNESS),
    ):
        (project / file).parent.mkdir(parents=True, exist_ok=True)
        (project / file).write_text(text)
    common: tuple[object, ...]
    common = ("run", project / "harness/machine.py", "-n", 400, "-q", "--no-reduce")
    common = (*common, "--coverage", "line,branch", "--keep-tests")
    stores = []
    for name, executor in (("there", ["--executor", cluster.executor]), ("here", ["-j", 1])):
        done = swarmtest(*common, *executor, "--store", f"{name}.db", cwd=project)
        assert done.returncode == 1, done.stderr
        stores.append(project / f"{name}.db")
    assert rows(stores[0]) == rows(stores[1])
    assert any(row["hits"] for row in rows(stores[0]))
    assert faults_of(stores[0]) == faults_of(stores[1])
    told = []
    for store in stores:
        with open_store(str(store)) as opened:
            campaign = opened.campaign(1)
            outside = set(opened.targets(opened.targets()).values()) if campaign.outside else set()
            tests = [opened.test(1, trial) for trial in range(400)]
            told.append((opened.sources(1), outside, tests))
    assert told[0] == told[1]


def test_a_crash_of_the_program_costs_one_test_and_never_the_worker(cluster, here, swarmtest, rows):
    common = ("run", "nasty.py", "-n", 30, "-q", "--no-reduce")
    done = swarmtest(*common, "--executor", cluster.executor, "--store", "crash.db", cwd=here)
    assert done.returncode == 1, done.stderr
    assert cluster.workers[0].poll() is None
    swarmtest(*common, "-j", 1, "--store", "crash-here.db", cwd=here, STRIKE="segfault")
    assert rows(here / "crash.db") == rows(here / "crash-here.db")
    found, expected = (faults_of(here / f"{name}.db") for name in ("crash", "crash-here"))
    assert [one.signature for one in found] == [one.signature for one in expected]
    assert any("SIGSEGV" in one.signature for one in found)


KILLS_HOSTS = """
import os, signal, time
from pathlib import Path
from swarmtest import Machine, action, integers

ONCE, ALWAYS = 9, 7

class Killer(Machine):
    steps = 3

    @action(value=integers(0, 49))
    def work(self, value):
        if value not in (ONCE, ALWAYS):
            return
        if "MARK" not in os.environ:  # not on the cluster: only say which tests those are
            raise (KeyError if value == ALWAYS else ValueError)("kills its host")
        if value == ALWAYS or not os.path.exists({mark!r}):
            if value == ONCE:
                Path({mark!r}).touch()
            os.kill(os.getppid(), signal.SIGKILL)
            time.sleep(60)
"""


@pytest.fixture(scope="module")
def killer(here):
    """A program that kills its hosts on the cluster, whose workers have MARK."""
    (here / "killer.py").write_text(KILLS_HOSTS.format(mark=str(here / "mark")))
    return ("run", "killer.py", "-n", 20, "--seed", 27, "-q", "--no-reduce")


def test_a_host_that_is_killed_costs_no_verdict_unless_its_test_does_it(
    cluster, here, killer, swarmtest, rows
):
    done = swarmtest(*killer, "-j", 1, "--store", "killer-here.db", cwd=here)
    assert done.returncode == 1, done.stderr
    always, once = sorted(faults_of(here / "killer-here.db"), key=lambda fault: fault.signature)
    assert (always.signature[:8], once.signature[:10]) == ("KeyError", "ValueError")
    done = swarmtest(*killer, "--executor", cluster.executor, "--store", "killer.db", cwd=here)
    assert done.returncode == 1, done.stderr
    (fault,) = faults_of(here / "killer.db")
    assert fault.signature == "the program killed the process that had started it"
    assert (fault.count, fault.first_trial) == (always.count, always.first_trial)
    with open_store(str(here / "killer.db")) as opened:
        assert opened.campaign(1).killed == [once.first_trial]
    assert [row["trial"] for row in rows(here / "killer.db")] == list(range(20))


LEARNING = """
from dataclasses import dataclass, field
from swarmtest.strategies import Proposal
from swarmtest.core.sampling import toss

@dataclass
class Patient:
    heard: list = field(default_factory=list)
    knew: dict = field(default_factory=dict)

    def ask(self, space, trial, rng):
        self.knew[trial] = len(self.heard)
        known = f"knew {len(self.heard)}"
        return Proposal(toss(space, [0.7] * 4, rng).configuration, (0.7,), known)

    def tell(self, result):
        self.heard.append(result.trial)
"""
LEARNER = """
import json, sys
from patient import Patient
from swarmtest import Campaign, open_store

if __name__ == "__main__":
    strategy = Patient()
    with open_store("learning.db") as store:
        Campaign("steady.py::Steady", strategy, 200, store=store, executor=sys.argv[1]).run()
        kept = {trial.trial: trial.origin for trial in store.trials(1)}
    told = {trial: f"knew {count}" for trial, count in strategy.knew.items() if trial in kept}
    print(json.dumps([strategy.heard, kept == told, len(set(kept.values()))]))
"""


def test_a_strategy_that_learns_is_told_each_test_once_and_what_it_knew_is_kept(cluster, here):
    (here / "patient.py").write_text(LEARNING)
    (here / "learner.py").write_text(LEARNER)
    done = subprocess.run(
        [sys.executable, "learner.py", cluster.executor],
        cwd=here,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    heard, kept_what_it_knew, states = json.loads(done.stdout)
    assert sorted(heard) == list(range(200))
    assert kept_what_it_knew
    assert states > 1


def test_ctrl_c_keeps_what_is_done_and_resume_completes_it(
    tmp_path_factory, cluster, here, plain, start, until, swarmtest, rows
):
    store = here / "interrupted.db"
    arguments = [a for a in ARGUMENTS if a != "-q"]
    slow = DaskProcesses(tmp_path_factory.mktemp("slow"))
    try:
        slow.start_worker(NAP="40")
        process = start(*arguments, "--executor", slow.executor, "--store", store.name, cwd=here)
        until(lambda: count(store) >= 20, "20 tests")
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    finally:
        slow.end()
    assert process.returncode == 130
    assert "Traceback" not in err
    assert f"swarmtest resume 1 --executor {slow.executor} --store interrupted.db" in out
    assert 20 <= count(store) < TESTS
    done = swarmtest(
        *("resume", "--executor", cluster.executor, "--store", store.name, "-q", "--no-reduce"),
        cwd=here,
    )
    assert done.returncode == 1, done.stderr
    assert rows(store) == plain


def test_deaths_of_workers_scheduler_and_campaign_lose_and_double_nothing(
    tmp_path_factory, here, start, until, swarmtest, rows
):
    """One campaign; a worker joins, one dies, the scheduler dies, the campaign dies and resumes."""
    store = here / "deaths.db"
    many = ("run", "steady.py::Steady", "-n", 2000, "--seed", 3, "-q", "--no-reduce")
    processes = DaskProcesses(tmp_path_factory.mktemp("dying"))
    common = ("--executor", processes.executor, "--store", store.name)
    try:
        first = processes.start_worker(NAP="30")
        process = start(*many, *common, cwd=here)
        until(lambda: count(store) >= 10, "10 tests")
        processes.start_worker(NAP="3")
        until(lambda: hosts_below(processes.place / "worker1"), "the second one joins")
        os.killpg(first.pid, signal.SIGKILL)
        before = count(store)
        until(lambda: count(store) > before + 20, "the second one goes on")
        processes.scheduler.kill()
        processes.scheduler.wait()
        processes.start_scheduler()
        processes.start_worker(NAP="3")  # Dask's workers end with their scheduler
        before = count(store)
        until(lambda: count(store) > before + 20, "it goes on with another scheduler")
        process.kill()
        process.communicate()
        assert count(store) < 2000
        done = swarmtest("resume", *common, "-q", "--no-reduce", cwd=here)
        assert done.returncode == 1, done.stderr
        until(lambda: not hosts_below(processes.place), "no host is left")
    finally:
        processes.end()
    swarmtest(*many, "-j", 1, "--store", "undisturbed.db", cwd=here)
    assert rows(store) == rows(here / "undisturbed.db")
    assert faults_of(store) == faults_of(here / "undisturbed.db")


def test_tests_can_be_aimed_on_a_cluster(cluster, here, swarmtest):
    words: tuple[object, ...]
    words = ("focus", ARGUMENTS[1], "--target", "event:many numbers", "-n", 300)
    words = (*words, "--baseline-tests", 300, "-q", "--no-reduce", "--store", "aimed.db")
    done = swarmtest(*words, "--executor", cluster.executor, cwd=here)
    assert done.returncode == 1, done.stderr
    with open_store(str(here / "aimed.db")) as store:
        baseline, directed = store.campaigns()
        assert "adaptive" in directed.strategy
        for campaign in (baseline, directed):
            (worker,) = store.workers(campaign.id)
            assert worker.name.startswith("tcp://")
            assert worker.tests == 300


def test_a_scheduler_that_stays_away_is_one_line(tmp_path_factory, here, start, until, refused):
    processes = DaskProcesses(tmp_path_factory.mktemp("leaving"))
    try:
        patience = ("--executor-option", "patience=3s", "--store", "left.db")
        words = ("run", ARGUMENTS[1], "--executor", processes.executor, *patience)
        process = start(*words, cwd=here)
        until((here / "left.db").exists, "the campaign has begun")
        first = process.stdout.readline() + process.stdout.readline()
        assert "no workers at" in first
        processes.scheduler.kill()
        told, errors = process.communicate(timeout=60)
    finally:
        processes.end()
    done = subprocess.CompletedProcess((), process.returncode, told, errors)
    refused(done, f"no connection to tcp://127.0.0.1:{processes.port} for ", "swarmtest resume")


IN_TROUBLE = """
import sys
from swarmtest import Budget, Campaign
from swarmtest.campaign import Limits
from swarmtest.campaign.executors.dask import executor

executor._LONGEST_WAIT = executor._LOADING = 0.5  # do not wait for long in a test

def pause_once(progress, faults, paused=[]):
    if progress.tests and not paused:
        paused.append(progress.tests)
        print("begun", flush=True)
        sys.stdin.readline()

address, tests, store = sys.argv[1:]
Campaign(
    "steady.py::Steady", "layered", Budget(tests=int(tests)), seed=11, store=store,
    executor=address, limits=Limits(seconds=1), on_progress=pause_once,
).run()
"""


@pytest.mark.parametrize("trouble", [Proxy.silence, Proxy.cut_at_results])
def test_a_connection_that_is_silent_or_cut_is_replaced(trouble, cluster, here, plain, rows):
    """Silent: as if a router had forgotten it, or a clock that was set back made Dask wait."""
    store = f"{trouble.__name__}.db"
    proxy = Proxy(cluster.port)
    address = f"dask://127.0.0.1:{proxy.port}"
    process = subprocess.Popen(
        [sys.executable, "-c", IN_TROUBLE, address, str(TESTS), store],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=here,
        text=True,
    )
    with process:
        assert process.stdout
        assert process.stdout.readline() == "begun\n"
        trouble(proxy)
        _, errors = process.communicate("go on\n", timeout=300)
    proxy.close()
    assert process.returncode == 0, errors
    assert rows(here / store) == plain


def test_the_scheduler_never_holds_more_than_a_few_batches(cluster, here, start, until):
    """Two threads: 2 x 2 + 2 batches, and the subject."""
    process = start(
        *("run", "steady.py::Steady", "--time", "10m", "--executor", cluster.executor),
        *("--store", "many.db", "-q"),
        cwd=here,
    )
    until(lambda: count(here / "many.db") >= 20, "20 tests")
    look = (
        "import sys, time\n"
        "from distributed import Client\n"
        "with Client(sys.argv[1], set_as_default=False) as client:\n"
        "    held = []\n"
        "    while len(held) < 60:\n"
        "        held.append(client.run_on_scheduler(lambda dask_scheduler: "
        "len([k for k in dask_scheduler.tasks if 'swarmtest' in str(k)])))\n"
        "        time.sleep(0.02)\n"
        "print(max(held))\n"
    )
    address = cluster.executor.replace("dask", "tcp")
    done = subprocess.run(
        [sys.executable, "-c", look, address], capture_output=True, text=True, timeout=60
    )
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert 3 <= int(done.stdout) <= 7, done.stderr


def installed(place, name, version, code=""):
    """A package as pip would leave it."""
    packages = place / "site-packages"
    about = packages / f"{name}-{version}.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    (about / "top_level.txt").write_text(f"{name}\n")
    (about / "RECORD").write_text(f"{name}/__init__.py,,\n")
    if code:
        (packages / name).mkdir()
        (packages / name / "__init__.py").write_text(code)
    return str(packages)


COUNTER = """
class Counter:
    def __init__(self):
        self.n = 0
    def up(self):
        self.n += 1
    def down(self):
        self.n -= 1
"""


def test_a_campaign_without_workers_says_so_and_gives_up(bare, here, swarmtest, refused):
    words = [word for word in ARGUMENTS if word != "-q"]
    executor = ("--executor", bare.executor, "--executor-option", "patience=1s")
    done = swarmtest(*words, *executor, "--store", "nobody.db", cwd=here)
    assert "no workers at tcp://127.0.0.1:" in done.stdout
    refused(done, "no workers at tcp://127.0.0.1:", "swarmtest resume")


def test_a_worker_with_another_swarmtest_refuses(bare, tmp_path, here, swarmtest, refused):
    worker = bare.start_worker(PYTHONPATH=installed(tmp_path, "swarmtest", "0.0.1"))
    try:
        done = swarmtest(*ARGUMENTS, "--executor", bare.executor, "--store", "old.db", cwd=here)
        ours = metadata.version("swarmtest")
        refused(done, "worker tcp://127.0.0.1:", "swarmtest 0.0.1", f"swarmtest {ours}")
    finally:
        worker.kill()


def test_an_installed_package_travels_by_version_and_another_version_refuses(
    bare, tmp_path, start, refused, until
):
    ours = installed(tmp_path / "ours", "tinycounter", "1.0", COUNTER)
    theirs = installed(tmp_path / "theirs", "tinycounter", "2.0", COUNTER)

    def run(store):
        words = ("run", "--api", "tinycounter:Counter", "-n", 20, "--store", store)
        process = start(*words, "--executor", bare.executor, cwd=tmp_path, PYTHONPATH=ours)
        out, err = process.communicate(timeout=60)
        return subprocess.CompletedProcess([*map(str, words)], process.returncode, out, err)

    bare.start_worker(PYTHONPATH=theirs)
    line = refused(run("a.db"), "worker tcp://127.0.0.1:", "tinycounter 2.0", "tinycounter 1.0")
    assert "results would differ" in line
    log = bare.place / "dask.log"
    before = log.read_text().count("Registered to:")
    bare.start_worker(PYTHONPATH=ours)
    until(lambda: log.read_text().count("Registered to:") > before, "the second worker")
    done = run("b.db")
    assert done.returncode == 0, done.stderr
    assert count(tmp_path / "b.db") == 20


FAKE_SBATCH = """#!/bin/sh
script=$(mktemp -p {place}) && cp "$1" "$script"
setsid sh "$script" > "$script.log" 2>&1 &
echo "Submitted batch job $!"
"""
FAKE_SCANCEL = """#!/bin/sh
for job in "$@"; do kill -TERM -- "-$job"; done
"""


def test_jobs_of_a_batch_system_run_a_campaign(tmp_path, here, plain, swarmtest, rows):
    """A stand-in for Slurm's programs starts the real job script, as a process of this machine."""
    for name, text in (("sbatch", FAKE_SBATCH), ("scancel", FAKE_SCANCEL)):
        file = tmp_path / name
        file.write_text(text.format(place=tmp_path))
        file.chmod(file.stat().st_mode | stat.S_IXUSR)
    (here / "slurm.toml").write_text(
        'executor = "slurm"\ncores = 1\nmemory = "1GB"\nwalltime = "00:10:00"\nhost = "127.0.0.1"\n'
        f'local_directory = "{tmp_path}"\nnanny = false\n'
    )
    path = f"{tmp_path}:{os.environ['PATH']}"
    done = swarmtest(*ARGUMENTS, "--executor", "slurm.toml", "--store", "q.db", cwd=here, PATH=path)
    assert done.returncode == 1, done.stderr
    assert rows(here / "q.db") == plain
    (script,) = [file for file in tmp_path.glob("tmp.*") if file.suffix != ".log"]
    assert "#SBATCH -t 00:10:00" in script.read_text()


CALC = """
import sys

stack = []
for line in open(sys.argv[-1]):
    word, *arguments = line.split()
    if word == "push":
        stack.append(int(arguments[0]))
        assert len(stack) <= 12, "the stack is full"
    elif stack:
        stack.pop()
"""
GENERATE = """
import random
import sys

seed, *switches = sys.argv[1:]
words = [word for word in ("push", "pop") if f"--no-{word}" not in switches]
rng = random.Random(int(seed))
for _ in range(40):
    word = rng.choice(words)
    print(word, rng.randrange(10) if word == "push" else "")
"""
TOML = """
[generate]
command = "python3 -S {here}/generate.py {seed} {features}"

[features]
push = { off = "--no-push", appears = "^push" }
pop = { off = "--no-pop", appears = "^pop" }

[[steps]]
name = "calc"
run = "python3 -S {here}/calc.py {test}"
"""


def test_a_command_travels_with_the_programs_beside_its_file(cluster, tmp_path, swarmtest, rows):
    place = tmp_path / "calculator"
    place.mkdir()
    for name, text in (("calc.py", CALC), ("generate.py", GENERATE), ("calc.toml", TOML)):
        (place / name).write_text(text)
    common = ("run", "calculator/calc.toml", "-n", 12, "-q", "--no-reduce")
    for store, executor in (("there.db", ["--executor", cluster.executor]), ("here.db", ["-j", 1])):
        done = swarmtest(*common, *executor, "--store", store, cwd=tmp_path)
        assert done.returncode == 1, done.stderr
    assert rows(tmp_path / "there.db") == rows(tmp_path / "here.db")
    assert faults_of(tmp_path / "there.db") == faults_of(tmp_path / "here.db")
