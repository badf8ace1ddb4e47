"""The templates that `swarmtest init` writes: commented TOML files that run as they are."""

from __future__ import annotations

from importlib.resources import files

from swarmtest.errors import UserError, did_you_mean

_PLACE = files("swarmtest.subjects.command") / "templates"


def template_names() -> list[str]:
    """The templates there are.

    >>> "script" in template_names()
    True
    """
    found = (one.name for one in _PLACE.iterdir() if one.name.endswith(".toml"))
    return sorted(name.removesuffix(".toml") for name in found)


def template_text(name: str) -> str:
    """A template; its first line, a comment, says what it is for."""
    if name not in template_names():
        raise UserError(f"no template {name!r}{did_you_mean(name, template_names())}")
    return (_PLACE / f"{name}.toml").read_text()


def template_purpose(name: str) -> str:
    """What a template is for, in one line.

    >>> template_purpose("script")
    'A generator of your own with a switch for each feature, and a program to test.'
    """
    return template_text(name).partition("\n")[0].lstrip("# ")
