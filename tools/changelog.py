"""Join the files of ``changes/`` into CHANGELOG.md, for a release.

    python tools/changelog.py 0.2.0 2026-12-01            # show the section
    python tools/changelog.py 0.2.0 2026-12-01 --write    # write it, and delete the files

A file is one change: ``changes/NAME.KIND.md``, where KIND is added, changed, fixed or removed. With
one file per change, two branches never edit the same line. If the newest section of the changelog
is "(unreleased)", the changes go to its end, and it gets the date.
"""

from __future__ import annotations

import argparse
import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
KINDS = {"added": "Added", "changed": "Changed", "fixed": "Fixed", "removed": "Removed"}
LINK = re.compile(r"\]\((?!\w+:|#)([^)#\s]+)")
UNRELEASED = re.compile(r"^## \S+ \(unreleased\)$", re.MULTILINE)


def read_changes(folder: Path) -> dict[Path, str]:
    """Return the text of each change, as an item of a list; raise SystemExit for a bad file."""
    changes = {}
    for path in sorted(folder.glob("*")):
        if path.name == "README.md":
            continue
        _, *kind, suffix = path.name.split(".")
        text = path.read_text().strip()
        if suffix != "md" or kind not in [[known] for known in KINDS]:
            raise SystemExit(f"{path}: name it NAME.KIND.md, with KIND one of {', '.join(KINDS)}")
        if not text or text.startswith(("-", "#")):
            raise SystemExit(f"{path}: write sentences, without a bullet or a heading")
        for link in LINK.findall(text):
            if not (folder.parent / link).exists():
                raise SystemExit(f"{path}: {link} is not there: links begin beside CHANGELOG.md")
        changes[path] = "- " + text.replace("\n", "\n  ")
    return changes


def section_text(changes: dict[Path, str]) -> str:
    """Return the changes under a line for each kind."""
    parts = []
    for kind, title in KINDS.items():
        items = [text for path, text in changes.items() if path.name.endswith(f".{kind}.md")]
        if items:
            parts.append(f"{title}:\n\n" + "\n".join(items) + "\n")
    return "\n".join(parts)


def joined(changelog: str, section: str, version: str, date: str) -> str:
    """Return the changelog with a section for the release."""
    title, _, rest = changelog.partition("\n## ")
    heading = f"## {version} ({date})"
    if not UNRELEASED.match(f"## {rest.splitlines()[0]}" if rest else ""):
        older = f"\n## {rest}" if rest else ""
        return f"{title.rstrip()}\n\n{heading}\n\n{section}{older}"
    newest, *older = re.split(r"^(?=## )", f"## {rest}", flags=re.MULTILINE)[1:]
    newest = UNRELEASED.sub(heading, newest).rstrip() + "\n"
    return f"{title.rstrip()}\n\n{newest}\n{section}" + "".join(f"\n{text}" for text in older)


def main(arguments: list[str] | None = None, root: Path = ROOT) -> None:
    """Show or write the section of a release."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("version")
    parser.add_argument("date")
    parser.add_argument("--write", action="store_true", help="write it, and delete the files")
    options = parser.parse_args(arguments)
    changes = read_changes(root / "changes")
    section = section_text(changes)
    print(f"## {options.version} ({options.date})\n\n{section}", end="")
    if options.write:
        path = root / "CHANGELOG.md"
        path.write_text(joined(path.read_text(), section, options.version, options.date))
        for change in changes:
            change.unlink()


if __name__ == "__main__":
    main()
