"""Help pages: two examples first, then the options that most people need, on one screen.

A command's docstring has its examples as a block of lines that begin with ``swarmtest``. ``--help``
shows the first two of them, the first paragraph, and the common options. ``--help-all`` shows
everything, with the options in groups.

An option belongs to the same group in every command, because one name means one thing everywhere.
"""

from __future__ import annotations

import inspect
import textwrap

import click

_EXAMPLES_SHOWN = 2
_OPTION_COLUMN = 26
"""Where descriptions of options begin: long options have a line of their own, as in git's help."""

COMMON = {
    "run": "--strategy --tests --time -x --seed --workers --api --coverage --avoid",
    "focus": "--line --function --diff --fault --rare --tests --time --workers",
    "watch": "--time --on-save --dashboard --fail-on --workers",
    "resume": "--tests --time --workers",
    "diff": "--tests --time --seed --api --like --workers",
    "compare": "--strategies --repeat --tests --cpu-time --workers",
    "reduce": "--keep --output --time --coverage --workers",
    "mutate": "--campaign --pytest --sample --diff --output --workers",
    "suite": "--output --keep --keep-parts --kind --time",
    "race": "--tests --time --cover --output --after --timeout --workers",
    "roles": "--kind --summary --output --json",
    "why": "--runs --cpu-time --all --json",
    "coverage": "--show --targets --kind --unreached --output",
    "plan": "--together --ways --tests --chance --strategy",
    "faults": "--all --mark --note --inputs --json",
    "replay": "--output --no-run --pdb --times --faults",
    "search run": "--engine --points --time --workers",
}
"""The options that the short help of a command shows. Commands that are not here show all."""

OLD_NAMES = {
    "suite": {"--kinds": "--kind"},
    "search run": {"-w": "-j"},
    "replay": {"--save": "--output"},
    "race": {"--save": "--output"},
}
"""Options that are accepted under a former name, which no help page shows, until 0.3."""

_GROUPS = {
    "What is tested": "--api --raises --strategy --seed --steps --start --diff --cover --coverage "
    "--probes --lines --operators --keep-tests --allow-unused --like --same --without",
    "When it stops": "--tests --time --cpu-time --stop-after-faults -x --saturation --runs "
    "--points --reach --repeat",
    "Where tests run": "--workers --executor --executor-option --timeout --memory --isolated "
    "--network",
    "When it has ended": "--no-reduce --reduce-time --no-why --fail-on --require-hits",
    "Output and store": "--output --json --quiet --all --store --trust --confidence --junit "
    "--sarif --markdown --code-quality --github --comment --format --title --figures",
}
_GROUP_OF = {name: title for title, names in _GROUPS.items() for name in names.split()}


class HelpfulCommand(click.Command):
    """A command whose ``--help`` fits on a screen and begins with examples.

    >>> @click.command("wait", cls=HelpfulCommand)
    ... @click.option("--time", help="How long.")
    ... def wait(time):
    ...     '''Wait for something.
    ...
    ...     \\b
    ...     swarmtest wait
    ...     '''
    >>> print(wait.get_help(click.Context(wait, info_name="wait")))
    Usage: wait [OPTIONS]
    <BLANKLINE>
      swarmtest wait
    <BLANKLINE>
      Wait for something.
    <BLANKLINE>
    Options:
      --time TEXT  How long.
      --help       Show this message and exit.
    """

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Return the parameters, with ``--help-all`` if the short help leaves options out."""
        parameters = super().get_params(ctx)
        if self.common_options(ctx):
            everything = click.Option(
                ["--help-all"],
                is_flag=True,
                is_eager=True,
                expose_value=False,
                callback=_show_everything,
                help="Show all options and exit.",
            )
            parameters = [*parameters, everything]
        return parameters

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the arguments, with former names of options replaced."""
        renamed = OLD_NAMES.get(ctx.command_path.partition(" ")[2], {})
        end = args.index("--") if "--" in args else len(args)  # the rest is for another program
        words = []
        for arg in args[:end]:
            name, equals, value = arg.partition("=")
            words.append(renamed.get(name, name) + equals + value)
        return super().parse_args(ctx, words + args[end:])

    def common_options(self, ctx: click.Context) -> frozenset[str]:
        """Return the names of the options in the short help; none means all."""
        path = ctx.command_path.partition(" ")[2]
        return frozenset(COMMON.get(path, "").split())

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the short help page."""
        self.write_help(ctx, formatter, complete=not self.common_options(ctx))

    def write_help(
        self, ctx: click.Context, formatter: click.HelpFormatter, *, complete: bool
    ) -> None:
        """Write the help page; a `complete` one has every paragraph and every option."""
        self.format_usage(ctx, formatter)
        examples, paragraphs = _split(self.help or "")
        for block in [examples] if complete else [examples[:_EXAMPLES_SHOWN]]:
            write_examples(formatter, block)
        for paragraph in paragraphs if complete else paragraphs[:1]:
            _write_block(formatter, paragraph)
        self._write_options(ctx, formatter, complete=complete)

    def _write_options(
        self, ctx: click.Context, formatter: click.HelpFormatter, *, complete: bool
    ) -> None:
        common = self.common_options(ctx) | {"--help", "--help-all"}
        groups: dict[str, list[tuple[str, str]]] = {"Options": []}
        groups |= {title: [] for title in _GROUPS} if complete and self.common_options(ctx) else {}
        left_out = 0
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx) if isinstance(parameter, click.Option) else None
            if record is None:
                continue
            names = frozenset(parameter.opts) | frozenset(parameter.secondary_opts)
            if not complete and not names & common:
                left_out += 1
                continue
            title = next((_GROUP_OF[name] for name in names if name in _GROUP_OF), "Options")
            groups[title if title in groups else "Options"].append(record)
        for title, rows in groups.items():
            if rows:
                with formatter.section(title):
                    formatter.write_dl(rows, col_max=_OPTION_COLUMN - 2)
        if left_out:
            formatter.write_paragraph()
            formatter.write_text(f"{left_out} more options: {ctx.command_path} --help-all")


def _show_everything(ctx: click.Context, _parameter: click.Parameter, wanted: bool) -> None:
    """Print the complete help page, and exit."""
    if not wanted or ctx.resilient_parsing or not isinstance(ctx.command, HelpfulCommand):
        return
    formatter = ctx.make_formatter()
    ctx.command.write_help(ctx, formatter, complete=True)
    click.echo(formatter.getvalue().rstrip("\n"))
    ctx.exit()


def _split(text: str) -> tuple[list[str], list[str]]:
    r"""Return the lines of the first block of examples of a docstring, and its paragraphs.

    >>> _split("Wait.\n\n\b\nswarmtest wait  a while\n\nThat is all.")
    (['swarmtest wait  a while'], ['Wait.', 'That is all.'])
    """
    blocks = inspect.cleandoc(text).split("\n\n")
    examples: list[str] = []
    paragraphs = []
    for block in blocks:
        lines = block.split("\n")
        if lines[0] == "\b" and lines[1].startswith("swarmtest ") and not examples:
            examples = lines[1:]
        else:
            paragraphs.append(block)
    return examples, paragraphs


class HelpfulGroup(click.Group):
    """A command with commands of its own, whose help begins with examples, too."""

    def format_help_text(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write examples, and then the purpose of the group."""
        examples, paragraphs = _split(self.help or "")
        write_examples(formatter, examples)
        for paragraph in paragraphs:
            _write_block(formatter, paragraph)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write what each command does, as a whole sentence."""
        commands = {name: self.get_command(ctx, name) for name in self.list_commands(ctx)}
        with formatter.section("Commands"):
            formatter.write_dl(
                [
                    (name, " ".join(_split(command.help or "")[1][0].split()))
                    for name, command in commands.items()
                    if command is not None
                ]
            )


def write_text_of_group(formatter: click.HelpFormatter, text: str) -> None:
    """Write the paragraphs and examples of a group of commands."""
    for block in inspect.cleandoc(text).split("\n\n"):
        lines = block.split("\n")
        if lines[0] == "\b":
            write_examples(formatter, lines[1:])
        else:
            _write_block(formatter, block)


def write_examples(formatter: click.HelpFormatter, lines: list[str]) -> None:
    """Write examples; what does not fit beside its command goes to the line below."""
    room = formatter.width - 2
    lines = [part for line in lines for part in _example_lines(line, room)]
    _write_block(formatter, "\b\n" + "\n".join(lines) if lines else "")


def _example_lines(line: str, room: int) -> list[str]:
    """Return a command, in several lines if it is long, and below it what it does.

    >>> _example_lines("swarmtest run stack.py  until Ctrl-C", 20)
    ['swarmtest run \\\\', '    stack.py', '    until Ctrl-C']
    """
    if len(line) <= room:
        return [line]
    command, _, purpose = line.partition("  ")
    first, *others = textwrap.wrap(
        command, room - 2, subsequent_indent="    ", break_long_words=False, break_on_hyphens=False
    )
    lines = [f"{part} \\" for part in (first, *others)[:-1]] + [(first, *others)[-1]]
    purpose = purpose.strip()
    return lines + ([f"    {purpose}"] if purpose else [])


def _write_block(formatter: click.HelpFormatter, block: str) -> None:
    if block:
        formatter.write_paragraph()
        with formatter.indentation():
            formatter.write_text(block)
