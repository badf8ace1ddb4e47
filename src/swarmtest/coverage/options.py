"""The options of coverage, as plain data; importing them does not import the probes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from swarmtest.core.errors import UserError
from swarmtest.coverage.kinds import DEFAULT_KINDS, monitoring_is_possible
from swarmtest.coverage.scope import Scope, parse_scope

PROBES = ("auto", "ast", "monitoring")


@dataclass(frozen=True)
class CoverageOptions:
    """What to watch. Plain data, because every worker process receives it.

    >>> CoverageOptions(kinds=("line", "branch"), cover=("shop",)).probes
    'auto'
    """

    kinds: tuple[str, ...] = DEFAULT_KINDS
    cover: tuple[str, ...] = ()
    """Modules and paths; empty: what the subject's file imports, and the code beside it."""
    probes: str = "auto"
    """``ast`` weaves probes into source, ``monitoring`` uses `sys.monitoring`; ``auto`` weaves
    where there is source, and monitors where there is none."""
    beside: str = ""
    """The directory of the subject, if it was named by its file."""
    package: str = ""
    """The package of the subject, if it was named by its module."""
    imports: tuple[str, ...] = ()
    """The modules that the subject's file imports: the program, if `cover` is empty."""
    left_out: tuple[str, ...] = ()
    """Installed packages that the subject's file imports and that are not watched."""
    harness: str = ""
    """The subject's own file; empty if it is not known."""

    def check(self, names: bool = True) -> None:
        """Raise `UserError` for options that are impossible.

        With `names`, also for a name in `cover` that no module has.
        """
        if self.probes not in PROBES:
            raise UserError(f"--probes {self.probes}: choose from {', '.join(PROBES)}")
        if self.probes == "monitoring" and not monitoring_is_possible(self.kinds):
            raise UserError(
                "--probes monitoring needs Python 3.12 or newer and sees lines only: "
                "use --probes ast, or --coverage line"
            )
        parse_scope(self.cover, self.beside, self.package, check_names=names)

    def scope(self) -> Scope:
        """Return which modules are watched."""
        return parse_scope(self.cover, self.beside, self.package, imports=self.imports)

    def to_plain(self) -> dict[str, Any]:
        """Return the options as data for JSON and `from_plain`."""
        return {
            "kinds": list(self.kinds),
            "cover": list(self.cover),
            "probes": self.probes,
            "beside": self.beside,
            "package": self.package,
            "imports": list(self.imports),
            "left_out": list(self.left_out),
            "harness": self.harness,
        }

    @classmethod
    def from_plain(cls, data: dict[str, Any]) -> CoverageOptions:
        """Return the options that `to_plain` described."""
        kinds, cover = tuple(data["kinds"]), tuple(data["cover"])
        imports, left_out = tuple(data.get("imports", ())), tuple(data.get("left_out", ()))
        place = data["beside"], data["package"]
        return cls(kinds, cover, data["probes"], *place, imports, left_out, data.get("harness", ""))
