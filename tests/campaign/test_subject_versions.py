"""Which packages a version names: by the package that installed the module, wherever it is."""

import sys
from pathlib import Path

import pytest

from swarmtest.campaign.subject_version import is_older, subject_version
from swarmtest.subjects.loading import SubjectReference

MACHINE = """
import opening_hours

from swarmtest import Machine, action


class Shop(Machine):
    @action
    def look(self):
        pass
"""


def install(target: Path, *, package: str, module: str, version: str) -> None:
    """Write what `pip install --target` leaves behind."""
    (target / module).mkdir(parents=True)
    (target / module / "__init__.py").write_text("")
    info = target / f"{package.replace('-', '_')}-{version}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: {version}\n")
    (info / "RECORD").write_text(f"{module}/__init__.py,,\n{info.name}/METADATA,,\n")


@pytest.mark.parametrize("package", ["opening_hours", "python-opening-hours"])
@pytest.mark.parametrize("folder", ["site-packages", "old"])
def test_a_version_names_the_package_that_installed_a_module(
    package: str, folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(tmp_path / folder, package=package, module="opening_hours", version="1.2")
    install(tmp_path / folder, package="another", module="elsewhere", version="9")
    machine = tmp_path / "shop_machine.py"
    machine.write_text(MACHINE)
    monkeypatch.syspath_prepend(tmp_path / folder)
    monkeypatch.delitem(sys.modules, "opening_hours", raising=False)
    subject = SubjectReference(str(machine)).load()
    try:
        assert subject_version(subject) == f"{package} 1.2"
    finally:
        sys.modules.pop("opening_hours", None)


def test_a_module_of_the_project_is_no_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "opening_hours.py").write_text("__version__ = '3'\n")
    machine = tmp_path / "shop_machine.py"
    machine.write_text(MACHINE)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "opening_hours", raising=False)
    subject = SubjectReference(str(machine)).load()
    try:
        assert subject_version(subject) == ""
    finally:
        sys.modules.pop("opening_hours", None)


@pytest.mark.parametrize(
    ("version", "fix", "older"),
    [
        ("shop 1.9", "shop 1.10", True),
        ("shop 1.10", "shop 1.9", False),
        ("shop 1.9", "shop 1.9", False),
        ("3f2a1bc40d17+changes, shop 1.9", "3f2a1bc40d17, shop 2.0", True),
        ("shop 1.9, till 2", "shop 1.10, till 1", False),  # neither is older
        ("shop 1.9", "till 1.10", False),
        ("shop 1.9rc1", "shop 1.10", False),  # its order is not known
        ("", "shop 1.10", False),
        ("", "", False),
    ],
)
def test_an_older_release_of_a_package_is_older(version: str, fix: str, older: bool) -> None:
    assert is_older(version, fix, ".") == older
