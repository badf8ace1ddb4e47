"""Build the documentation site: `make docs`.

    python tools/site.py [--output DIR]

The pages of docs/ are copied to build/pages, beside pages that are made from the code: the
reference of the command line from the commands, that of the Python API from docstrings. The
changelog and the guide for contributors come from the top of the repository. Sphinx builds
build/site from them, and stops at any warning, such as a broken link or a page in no menu.
"""

from __future__ import annotations

import argparse
import importlib
import inspect
import posixpath
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

import swarmtest
from swarmtest._exports import read_exports
from swarmtest.ui.cli import COMMAND_GROUPS, CommandGroup, group
from swarmtest.ui.help import HelpfulCommand

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = Path(swarmtest.__file__).parent
TOP_PAGES = {"CHANGELOG.md": "changelog.md", "CONTRIBUTING.md": "contributing.md"}
"""Pages at the top of the repository, and what they are called on the site."""
NAVIGATION = {
    "Start": "tutorial tour machines oracles campaigns pytest faq glossary",
    "How to": "howto/class howto/hypothesis_machine howto/c_program howto/threads "
    "howto/pull_request examples/README",
    "Bring what you have": "hypothesis commands compilers grammars native extending",
    "Find and explain": "strategies faults why roles coverage report dashboard notebooks",
    "Aim and keep": "focus reduction suites mutation search",
    "Races": "races native_races free_threading",
    "Measure": "comparing planning papers benchmarks trophies",
    "Large campaigns": "scale stores cluster security",
    "Reference": "reference/cli reference/python changelog",
    "Contribute": "contributing architecture internals/README",
}
"""The menu: its headings, and the pages below each of them."""
WIDTH = 88
"""Columns of a help page: they fit the site's column of text."""
SIGNATURE_WIDTH = 70
LINK = re.compile(r"(?<=\]\()(?!\w+:|#)([^)\s#]+)(#[^)\s]*)?(?=\))")
FENCE = re.compile(r"^(```|~~~).*?^\1\s*$", re.MULTILINE | re.DOTALL)


def main() -> None:
    """Write the pages, and build the site from them."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "--output", type=Path, default=ROOT / "build", metavar="DIR", help="default: build"
    )
    folder = parser.parse_args().output
    pages, site = folder / "pages", folder / "site"
    write_pages(pages)
    options = ["-q", "-W", "--keep-going", "-c", ROOT / "docs", "-d", folder / "doctrees"]
    status = subprocess.call([sys.executable, "-m", "sphinx", *map(str, options), pages, site])
    if status:
        sys.exit("the site was not built: see the warnings above")
    print(f"the site is in {site}: open index.html")


def write_pages(folder: Path) -> None:
    """Write the pages of the site into a folder, with the pictures and files they link to.

    Files that are right already are left alone, so that Sphinx reads only what has changed.
    """
    pages = {"reference/cli.md": cli_page(), "reference/python.md": python_page()}
    pages |= {f"reference/{package}.md": api_page(package) for package in packages()}
    files = {name: (ROOT / source).read_bytes() for source, name in pictures_and_examples().items()}
    for source in repository_pages():
        pages[site_name(source)] = relinked((ROOT / source).read_text(), source)
    for caption, names in NAVIGATION.items():
        pages["index.md"] += menu(names.split(), caption)
    for index in ("internals/README.md", "examples/README.md"):
        folder_of_index = posixpath.dirname(index)
        below = [name for name in pages if name.startswith(folder_of_index) and name != index]
        names = [posixpath.relpath(name, folder_of_index).removesuffix(".md") for name in below]
        pages[index] += menu(sorted(names))
    files |= {name: text.encode() for name, text in pages.items()}
    for path in [path for path in folder.rglob("*") if path.is_file()]:
        if path.relative_to(folder).as_posix() not in files:
            path.unlink()
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists() or path.read_bytes() != content:
            path.write_bytes(content)


def repository_pages() -> list[str]:
    """Return the Markdown files of the repository that are pages of the site."""
    pages = [*(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").rglob("*.md")]
    return sorted([*TOP_PAGES, *(path.relative_to(ROOT).as_posix() for path in pages)])


def pictures_and_examples() -> dict[str, str]:
    """Return the other files that pages show or link to, each with its name on the site."""
    found = [
        *(path for path in (ROOT / "docs" / "pictures").iterdir() if path.suffix != ".py"),
        *(ROOT / "docs" / "notebooks").glob("*.ipynb"),
        *(path for path in (ROOT / "examples").rglob("*") if path.suffix in EXAMPLES),
    ]
    return {source: site_name(source) for source in (str(p.relative_to(ROOT)) for p in found)}


EXAMPLES = frozenset({".py", ".lark", ".toml", ".sh", ".c", ".h"})
"""Files of examples that pages may link to."""


def menu(names: list[str], caption: str = "") -> str:
    """Return the directive that puts pages into the menu.

    >>> print(menu(["why", "roles"], "Explain").strip())
    ```{toctree}
    :hidden:
    :caption: Explain
    <BLANKLINE>
    why
    roles
    ```
    """
    options = ":hidden:\n" + (f":caption: {caption}\n" if caption else "")
    return "\n```{toctree}\n" + options + "\n" + "\n".join(names) + "\n```\n"


def site_name(source: str) -> str:
    """Return what a file of the repository is called on the site.

    >>> site_name("docs/why.md"), site_name("CHANGELOG.md")
    ('why.md', 'changelog.md')
    """
    return TOP_PAGES.get(source, source.removeprefix("docs/"))


def relinked(markdown: str, source: str) -> str:
    """Return a page with its links to files of the repository turned into links of the site.

    >>> relinked("[a](../CONTRIBUTING.md#changelog)", "docs/why.md")
    '[a](contributing.md#changelog)'
    >>> relinked("[a](docs/why.md)", "CHANGELOG.md")
    '[a](why.md)'
    """
    here = posixpath.dirname(site_name(source)) or "."

    def replace(match: re.Match[str]) -> str:
        path = posixpath.normpath(posixpath.join(posixpath.dirname(source), match[1]))
        return posixpath.relpath(site_name(path), here) + (match[2] or "")

    parts = []
    end = 0
    for fence in FENCE.finditer(markdown):
        parts += [LINK.sub(replace, markdown[end : fence.start()]), fence[0]]
        end = fence.end()
    return "".join([*parts, LINK.sub(replace, markdown[end:])])


def packages() -> list[str]:
    """Return the packages with public names, ``swarmtest`` first.

    >>> packages()[0], "swarmtest.roles" in packages()
    ('swarmtest', True)
    """
    stubs = sorted(PACKAGE.rglob("__init__.pyi"))
    return sorted(".".join(stub.parent.relative_to(PACKAGE.parent).parts) for stub in stubs)


# The command line.


def cli_page() -> str:
    """Return the reference of all commands, with every option."""
    context = click.Context(group, info_name="swarmtest")
    parts = [
        "# Commands\n",
        "Every command with every option, as `--help-all` prints them.\n",
        *(f"- **{title}**: {_links(entries)}" for title, entries in COMMAND_GROUPS.items()),
        "\n## swarmtest\n",
        _block(group, context),
    ]
    for entries in COMMAND_GROUPS.values():
        for name in entries:
            parts += _command(group, name, context)
    return "\n".join(parts) + "\n"


def _links(names: Any) -> str:
    return ", ".join(f"[{name}](#swarmtest-{name})" for name in names)


def _command(parent: click.Group, name: str, above: click.Context) -> Iterator[str]:
    """Yield the section of a command, and those of its own commands."""
    command = parent.get_command(above, name)
    assert command is not None, name
    context = click.Context(command, parent=above, info_name=name)
    yield f"\n{'##' if isinstance(parent, CommandGroup) else '###'} {context.command_path}\n"
    yield _block(command, context)
    if isinstance(command, click.Group):
        for child in command.list_commands(context):
            yield from _command(command, child, context)


def _block(command: click.Command, context: click.Context) -> str:
    formatter = click.HelpFormatter(width=WIDTH)
    if isinstance(command, HelpfulCommand):
        command.write_help(context, formatter, complete=True)
    else:
        command.format_help(context, formatter)
    return f"```text\n{formatter.getvalue().rstrip()}\n```"


# The Python API.


def python_page() -> str:
    """Return the page that lists the packages with public names."""
    lines = []
    for package in packages():
        text = (inspect.getdoc(importlib.import_module(package)) or "").partition("\n\n")[0]
        lines.append(f"| [{package}]({package}.md) | {' '.join(text.split())} |")
    head = "# Python\n\nThe packages with public names, and what is in each.\n\n| | |\n|---|---|\n"
    return head + "\n".join(lines) + "\n" + menu(packages())


def api_page(package: str) -> str:
    """Return the reference of a package: each public name with its signature and docstring."""
    module = importlib.import_module(package)
    parts = [f"# {package}\n", markdown_of(inspect.getdoc(module) or "")]
    for name in sorted(read_exports(package)):
        parts += _member(name, getattr(module, name))
    return "\n".join(parts) + "\n"


def _member(name: str, value: Any) -> Iterator[str]:
    """Yield the section of a public name; of a class, also its public methods and properties."""
    yield f"\n## {name}\n"
    if not callable(value):
        yield f"```python\n{name}: {type(value).__name__}\n```"
        return
    word = "class " if inspect.isclass(value) else ""
    yield f"```python\n{word}{name}{signature_of(value)}\n```\n"
    yield markdown_of(inspect.getdoc(value) or "")
    if not inspect.isclass(value):
        return
    for member_name, member in vars(value).items():
        text = inspect.getdoc(member) if _is_documented(member) else None
        if member_name.startswith("_") or not text:
            continue
        yield f"\n### {name}.{member_name}\n"
        if not isinstance(member, property):
            function = member.__func__ if isinstance(member, classmethod | staticmethod) else member
            yield f"```python\n{member_name}{signature_of(function)}\n```\n"
        yield markdown_of(text)


def _is_documented(member: Any) -> bool:
    return inspect.isfunction(member) or isinstance(member, property | classmethod | staticmethod)


def signature_of(value: Any) -> str:
    """Return the signature of a function or class; a long one has a line for each parameter.

    >>> signature_of(relinked)
    '(markdown: str, source: str) -> str'
    """
    try:
        signature = inspect.signature(value)
    except (TypeError, ValueError):
        return "(...)"
    parameters = list(signature.parameters.values())
    if parameters and parameters[0].name in ("self", "cls") and not inspect.ismethod(value):
        signature = signature.replace(parameters=parameters[1:])
    text = re.sub(r"(?<=[:>] )'([^']*)'", r"\1", str(signature))
    text = re.sub(r"<(?:object|function|class|factory)[^>]*>", "...", text)
    if len(text) <= SIGNATURE_WIDTH or not signature.parameters:
        return text
    inside, _, result = text[1:].rpartition(")")
    return "(\n    " + ",\n    ".join(split_at_commas(inside)) + ",\n)" + result


def split_at_commas(text: str) -> list[str]:
    """Split a text at its commas, but not inside of brackets.

    >>> split_at_commas("a: dict[str, int], b=(1, 2)")
    ['a: dict[str, int]', 'b=(1, 2)']
    """
    parts = [""]
    depth = 0
    for character in text:
        depth += (character in "([{") - (character in ")]}")
        if character == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return [part.strip() for part in parts]


def markdown_of(docstring: str) -> str:
    """Return a docstring as Markdown: examples become blocks of code.

    >>> markdown_of("Add ``1``.\\n\\n>>> 1 + 1\\n2")
    'Add `1`.\\n\\n```pycon\\n>>> 1 + 1\\n2\\n```'
    """
    lines: list[str] = []
    in_example = False
    for line in docstring.replace("``", "`").split("\n"):
        if line.startswith(">>>") and not in_example:
            lines.append("```pycon")
            in_example = True
        elif in_example and not line.strip():
            lines.append("```")
            in_example = False
        lines.append("" if line == "<BLANKLINE>" else line)
    return "\n".join([*lines, "```"] if in_example else lines)


if __name__ == "__main__":
    main()
