"""Read a TOML file as a `Specification`, and check what can be checked from the file alone.

`read_specification` reads the sections in turn; ``[features]`` and ``[settings]`` are read in
`features`. Last, it checks that each placeholder stands for something where it is used.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from swarmtest.core.dimensions import Dimension, Feature
from swarmtest.core.errors import UserError, did_you_mean
from swarmtest.core.messages.crashes import RECOGNISERS
from swarmtest.core.space import Space
from swarmtest.coverage.native.build import Build
from swarmtest.subjects.command.features import read_feature, read_features, read_settings
from swarmtest.subjects.command.specification import (
    COVER,
    EXTERNAL,
    MEANINGS,
    CommandCall,
    ConfigFile,
    FeatureForm,
    GenerateSection,
    MarkedSource,
    MutateSection,
    OracleSection,
    Pattern,
    ReduceSection,
    Specification,
    StepSection,
)
from swarmtest.subjects.command.toml_reader import (
    Place,
    TomlFile,
    TomlSection,
    look_alikes,
    nearest_file,
    placeholders,
)

if TYPE_CHECKING:
    from swarmtest.subjects.grammar.generator import GrammarGenerator

_DEEPEST = 1_000_000
"""The largest `depth` that the file may ask a grammar for."""


def read_specification(path: Path) -> Specification:
    """Read a TOML file; raise `UserError` with the file, line and key for a mistake in it."""
    file = TomlFile(path)
    top = file.top()
    description = top.text("description")
    here = path.resolve().parent
    generate = _read_generate(top.section("generate"), here)
    settings = read_settings(top.section("settings"))
    forms: tuple[FeatureForm, ...] = ()
    if generate.grammar is not None:
        features = grammar_features(top.section("features"), generate.grammar)
    else:
        features, forms = read_features(top.section("features"), generate)
    meanings = step_meanings(top.section("oracle"))
    steps = _read_steps(top, meanings)
    oracle = read_oracle(top.section("oracle"), [step.name for step in steps])
    reduce = _read_reduce(top.section("reduce"))
    build = _read_build(top.section("build"), here) if "build" in top else None
    line = build.line if build else ""
    mutate = _read_mutate(top.section("mutate"), line) if "mutate" in top else MutateSection()
    top.close()
    space = _space(file, generate, features, settings)
    spec = Specification(
        path, description, generate, forms, space, steps, oracle, reduce, mutate, build
    )
    check_placeholders(file, spec)
    return spec


def _space(
    file: TomlFile, generate: GenerateSection, features: list[Feature], settings: list[Dimension]
) -> Space:
    if not features:
        raise UserError(
            f"{file.path}: no features: list under [features] what the generator can leave out, "
            'like loops = "--loops"'
        )
    constraints = generate.grammar.constraints if generate.grammar else ()
    try:
        return Space([*features, *settings], constraints)
    except UserError as error:
        raise file.error(("features",), f"[features]: {error}") from None


def _read_call(section: TomlSection, key: str) -> CommandCall:
    words = section.words(key)
    call = CommandCall(
        words,
        section.number("timeout", CommandCall.timeout, least=0.001),
        section.size("memory"),
        section.mapping("env"),
        section.text("cwd"),
        section.text("stdin"),
        _read_expect(section),
    )
    if not words:
        raise section.missing(key, "the command to run, as a list of words or a text")
    return call


def _read_expect(section: TomlSection) -> tuple[int, ...]:
    if section.raw("expect") == "any":
        return ()
    statuses = section.integers("expect", (0,))
    if not all(0 <= status <= 255 for status in statuses):
        raise section.error("expect", f'exit statuses from 0 to 255, or "any", not {statuses}')
    return statuses


def _read_generate(section: TomlSection, here: Path) -> GenerateSection:
    if "grammar" in section:
        path = _existing_file(section, "grammar", here)
        generate = GenerateSection(None, _read_suffix(section), grammar=read_grammar(section, path))
    else:
        generate = GenerateSection(
            _read_call(section, "command"),
            _read_suffix(section),
            section.integer("seed_bits", 32, low=1, high=63),
            section.text("separator", " "),
            _read_config(section.section("config"), here) if "config" in section else None,
            _read_source(section.section("source"), here) if "source" in section else None,
            seeded=section.one_of("seed", ("given", "none"), "given") == "given",
        )
    section.close()
    return generate


def _read_suffix(section: TomlSection) -> str:
    """Return the ending of a file name; refuse a path, and a plain word like "c"."""
    suffix = section.text("suffix")
    if suffix.isalnum() or "/" in suffix or "\0" in suffix:
        raise section.error("suffix", f'how a file name ends, like ".c", not {suffix!r}')
    return suffix


def _existing_file(section: TomlSection, key: str, here: Path) -> Path:
    path = here / section.text(key)
    if not path.is_file():
        near = nearest_file(path)
        raise section.error(key, f"no such file: {path.name} (looked in {path.parent}){near}")
    return path


def _read_config(section: TomlSection, here: Path) -> ConfigFile:
    inline, suffix = section.text("text"), _read_suffix(section)
    if "template" in section:
        if inline:
            raise section.error("text", "a config file needs either a template or a text")
        template = _existing_file(section, "template", here)
        inline, suffix = _read_text(section, "template", template), suffix or template.suffix
    section.close()
    if not any(name.startswith("feature") for name in placeholders([inline])):
        raise section.error("text", "has neither {features} nor {feature:NAME}: nothing to change")
    return ConfigFile(inline, suffix)


def _read_text(section: TomlSection, key: str, path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise section.error(key, f"cannot read {path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise section.error(key, f"{path} is not UTF-8 text") from None


def _read_source(section: TomlSection, here: Path) -> MarkedSource:
    path = _existing_file(section, "file", here)
    marker = section.text("marker", MarkedSource.marker)
    if marker.count("NAME") != 1:
        raise section.error("marker", f"has the word NAME once, as {MarkedSource.marker!r} has")
    section.close()
    return MarkedSource(path, marker)


def _read_steps(top: TomlSection, meanings: dict[str, str]) -> tuple[StepSection, ...]:
    sections = top.sections("steps")
    if not sections:
        raise UserError(
            f"{top.file.path}: no steps: write under [[steps]] what to run on each test, like "
            'run = "./program {test}"'
        )
    steps: list[StepSection] = []
    for section in sections:
        step = _read_step(section, meanings, len(steps) + 1)
        earlier = [other.name for other in steps]
        if step.name in earlier:
            raise section.error("name", f"two steps have the name {step.name!r}")
        for other in step.needs:
            if other not in earlier:
                raise section.error(
                    "needs", f"no step {other!r} before this one{did_you_mean(other, earlier)}"
                )
        steps.append(step)
    return tuple(steps)


def _read_step(section: TomlSection, meanings: dict[str, str], number: int) -> StepSection:
    call = _read_call(section, "run")
    cover = section.raw("cover")
    if isinstance(cover, bool):
        cover = "auto" if cover else ""
    elif cover is not None:
        cover = section.one_of("cover", COVER, "auto")
    on = {key: section.one_of(f"on_{key}", MEANINGS, meanings[key]) for key in meanings}
    step = StepSection(
        _read_name(section, number),
        call,
        section.texts("needs"),
        on["crash"],
        on["exit"],
        on["timeout"],
        cover or "",
        section.texts("sources") if "sources" in section else None,
    )
    section.close()
    return step


def _read_name(section: TomlSection, number: int) -> str:
    name = section.text("name", f"step{number}")
    if not name.isprintable() or name != name.strip() or not name:
        raise section.error("name", f"a name in one line, without outer spaces, not {name!r}")
    return name


def _read_reduce(section: TomlSection) -> ReduceSection:
    command = section.words("command")
    if command and {"script", "test"} - set(placeholders(command)):
        raise section.error("command", "has {script} and {test}, like cvise {script} {test}")
    reduce = ReduceSection(
        section.one_of("external", EXTERNAL, ReduceSection.external),
        command,
        section.number("seconds", ReduceSection.seconds),
    )
    section.close()
    return reduce


def _read_build(section: TomlSection, here: Path) -> Build:
    raw = section.raw("command")
    command = raw if isinstance(raw, str) else section.words("command")
    build = Build(
        command,
        section.texts("sources"),
        section.text("output"),
        here,
        section.number("seconds", Build.seconds, least=0.001),
    )
    if not command:
        raise section.missing("command", 'how the program is built, like "make"')
    if not build.output:
        raise section.missing("output", 'the file that the command writes, like "prog"')
    section.close()
    return build


def _read_mutate(section: TomlSection, line: str) -> MutateSection:
    """Read ``[mutate]``; `line` is the command of ``[build]``, with which mutants can be built."""
    build = section.text("build", line)
    mutate = MutateSection(
        build, section.texts("files"), section.number("seconds", MutateSection.seconds)
    )
    if not build.strip():
        raise section.missing("build", 'how the program is built, like "gcc -O2 -o prog prog.c"')
    section.close()
    return mutate


# [oracle]: what a failure is.


def step_meanings(section: TomlSection) -> dict[str, str]:
    """Return what a crash, an unexpected exit status and a timeout mean if a step does not say."""
    crash = section.raw("crash")
    if isinstance(crash, bool):
        meaning = "fail" if crash else "ignore"
    else:
        meaning = section.one_of("crash", MEANINGS, "fail")
    return {
        "crash": meaning,
        "exit": section.one_of("exit", MEANINGS, "fail"),
        "timeout": section.one_of("timeout", MEANINGS, "fail"),
    }


def read_oracle(section: TomlSection, steps: Sequence[str]) -> OracleSection:
    """Read the rest of ``[oracle]``: patterns, recognisers, differential groups, the function."""
    step_meanings(section)  # so that its keys are not reported as unknown
    recognise = section.texts("recognise")
    for name in recognise:
        if name not in RECOGNISERS:
            near = did_you_mean(name, RECOGNISERS)
            raise section.error("recognise", f"no recogniser {name!r}{near}")
    oracle = OracleSection(
        tuple(_read_pattern(inner, steps) for inner in section.sections("patterns")),
        recognise,
        _read_differential(section, steps),
        section.text("python"),
    )
    # Without a colon it is the name of an entry point.
    if oracle.python.count(":") > 1 or oracle.python.endswith(".py"):
        raise section.error("python", "must name a function or class, such as oracle.py:check")
    section.close()
    return oracle


def _read_pattern(section: TomlSection, steps: Sequence[str]) -> Pattern:
    regex, name, searched = section.pattern("regex"), section.text("name"), section.texts("steps")
    if regex is None:
        raise section.missing("regex", "the regular expression to look for")
    pattern = Pattern(name, regex, searched)
    for step in pattern.steps:
        if step not in steps:
            raise section.error("steps", f"no step {step!r}{did_you_mean(step, steps)}")
    section.close()
    return pattern


def _read_differential(section: TomlSection, steps: Sequence[str]) -> tuple[tuple[str, ...], ...]:
    value = section.raw("differential")
    if value is None:
        return ()
    if not isinstance(value, list) or not value:
        raise section.error("differential", "a list of steps whose output must agree")
    groups = value if all(isinstance(member, list) for member in value) else [value]
    for group in groups:
        for name in group:
            if name not in steps:
                near = did_you_mean(str(name), steps)
                raise section.error("differential", f"no step {name!r}{near}")
            if group.count(name) > 1:
                raise section.error("differential", f"step {name!r} is in the group twice")
        if len(group) < 2:
            raise section.error("differential", "needs two steps or more to compare")
    return tuple(tuple(group) for group in groups)


# [generate] grammar: tests that come from a grammar instead of a command.


def read_grammar(section: TomlSection, path: Path) -> GrammarGenerator:
    """Return the generator for a grammar, with the start, depth and length of the TOML file."""
    from swarmtest.subjects.grammar.generator import DEPTH, LENGTH, load_grammar

    start = section.text("start")
    depth = section.integer("depth", DEPTH, low=1, high=_DEEPEST)
    length = section.integers("length", LENGTH)
    if len(length) not in (1, 2):
        raise section.error("length", f"a number of tokens, or a range like [5, 100], not {length}")
    try:
        return load_grammar(path, start, depth, (length[0], length[-1]))
    except UserError as error:
        raise section.error("grammar", str(error)) from None


def grammar_features(section: TomlSection, grammar: GrammarGenerator) -> list[Feature]:
    """Return the grammar's features, with what the TOML file says about some, like a rate."""
    described = {}
    names = [feature.name for feature in grammar.features]
    for name in section.names():
        if name not in names:
            raise section.error(name, f"the grammar has no such feature{did_you_mean(name, names)}")
        inner = section.section(name)
        described[name] = read_feature(name, inner)
        inner.close()
    return [described.get(feature.name, feature) for feature in grammar.features]


# Placeholders: which of them have a value depends on where they are used.


def check_placeholders(file: TomlFile, spec: Specification) -> None:
    """Raise if a placeholder stands for nothing, or if the generator gets no seed."""
    settings = {f"setting:{name}" for name in spec.space.setting_names}
    common = {"test", "dir", "here"} | settings
    generate = spec.generate
    if generate.call is not None:
        features = {f"feature:{name}" for name in spec.space.feature_names}
        _check_forms(file, spec, common | {"seed"})
        allowed = common | features | {"seed", "features"}
        allowed |= {"config"} if generate.config else set()
        allowed |= {"source"} if generate.source else set()
        _check_call(file, ("generate",), "command", generate.call, allowed)
        _check_seed(file, generate)
        if generate.config is not None:
            for name in placeholders([generate.config.text]):
                if ":" in name and name not in allowed:
                    near = did_you_mean(name, features | settings)
                    raise file.error(
                        ("generate", "config"),
                        f"[generate.config] has {{{name}}}{near}",
                    )
        for key, value in (("config", generate.config), ("source", generate.source)):
            if value is not None and key not in placeholders(generate.call.words):
                raise file.error(
                    ("generate", "command"),
                    f"[generate] command: has no {{{key}}}, the file that [generate.{key}] makes",
                )
    for number, step in enumerate(spec.steps):
        _check_call(file, ("steps", number), "run", step.call, common)


def _check_forms(file: TomlFile, spec: Specification, allowed: set[str]) -> None:
    """Check the words and variables of features: they may not use those of other features."""
    for form in spec.forms:
        texts = {"on": form.on, "off": form.off, "weight": form.weight}
        texts |= {"env": (*form.env.values(),), "env_off": (*form.env_off.values(),)}
        for key, words in texts.items():
            weight = {"weight", "percent"} if key in ("weight", "env") else set()
            _check_texts(file, ("features", form.name, key), key, words, allowed | weight)


def _check_seed(file: TomlFile, generate: GenerateSection) -> None:
    """Raise if the generator gets no seed.

    All tests of a configuration would be the same then, or none could be generated again.
    """
    assert generate.call is not None
    texts = [*generate.call.words, *generate.call.env.values(), generate.call.stdin]
    texts += [generate.config.text] if generate.config else []
    if generate.seeded and "seed" not in placeholders(texts):
        raise file.error(
            ("generate", "command"),
            "[generate] command: has no {seed}, so tests could not be made again; add it, as in "
            '--seed={seed}, or say seed = "none" if the generator draws nothing at random',
        )


def _check_call(
    file: TomlFile, place: Place, key: str, call: CommandCall, allowed: set[str]
) -> None:
    texts = {key: call.words, "env": (*call.env.values(),), "cwd": (call.cwd,)}
    texts["stdin"] = (call.stdin,)
    for where, words in texts.items():
        _check_texts(file, (*place, where), where, words, allowed)


def _check_texts(
    file: TomlFile, place: Place, key: str, texts: Sequence[str], allowed: set[str]
) -> None:
    wrong = [name for name in placeholders(texts) if name not in allowed]
    wrong += look_alikes(texts, allowed)
    if wrong:
        near = did_you_mean(wrong[0].lower(), allowed)
        raise file.error(
            place,
            f"{key}: no placeholder {{{wrong[0]}}}{near} (double the braces for plain text)",
        )
