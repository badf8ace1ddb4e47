"""From a TOML file to a `Specification`: what can be seen from the file alone is checked here."""

from __future__ import annotations

from pathlib import Path

from swarmtest.errors import UserError, did_you_mean
from swarmtest.space import Dimension, Feature, Space
from swarmtest.subjects.command.reading_features import read_features, read_settings
from swarmtest.subjects.command.reading_grammar import grammar_features, read_grammar
from swarmtest.subjects.command.reading_oracle import read_oracle, step_meanings
from swarmtest.subjects.command.reading_placeholders import check_placeholders
from swarmtest.subjects.command.specification import (
    COVER,
    EXTERNAL,
    MEANINGS,
    Call,
    ConfigFile,
    FeatureForm,
    Generate,
    MarkedSource,
    Mutate,
    Reduce,
    Specification,
    Step,
)
from swarmtest.subjects.command.toml_section import Section, TomlFile, nearest_file
from swarmtest.subjects.command.words import placeholders


def read_specification(path: Path) -> Specification:
    """What a file says; a mistake in it is one line with the file, the line and the key."""
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
    mutate = _read_mutate(top.section("mutate")) if "mutate" in top else Mutate()
    top.close()
    space = _space(file, generate, features, settings)
    spec = Specification(path, description, generate, forms, space, steps, oracle, reduce, mutate)
    check_placeholders(file, spec)
    return spec


def _space(
    file: TomlFile, generate: Generate, features: list[Feature], settings: list[Dimension]
) -> Space:
    if not features:
        raise UserError(
            f"{file.path}: no features: name under [features] what the generator can leave out, "
            'like loops = "--loops"'
        )
    constraints = generate.grammar.constraints if generate.grammar else ()
    try:
        return Space([*features, *settings], constraints)
    except UserError as error:
        raise file.error(("features",), f"[features]: {error}") from None


def _read_call(section: Section, key: str) -> Call:
    words = section.words(key)
    call = Call(
        words,
        section.number("timeout", Call.timeout, least=0.001),
        section.size("memory"),
        section.mapping("env"),
        section.text("cwd"),
        section.text("stdin"),
        _read_expect(section),
    )
    if not words:
        raise section.missing(key, "the command to run, as a list of words or a text")
    return call


def _read_expect(section: Section) -> tuple[int, ...]:
    if section.raw("expect") == "any":
        return ()
    statuses = section.integers("expect", (0,))
    if not all(0 <= status <= 255 for status in statuses):
        raise section.error("expect", f'exit statuses from 0 to 255, or "any", not {statuses}')
    return statuses


def _read_generate(section: Section, here: Path) -> Generate:
    if "grammar" in section:
        path = _existing(section, "grammar", here)
        generate = Generate(None, _read_suffix(section), grammar=read_grammar(section, path))
    else:
        generate = Generate(
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


def _read_suffix(section: Section) -> str:
    """How a file's name ends; a name, not a path."""
    suffix = section.text("suffix")
    if suffix.isalnum() or "/" in suffix or "\0" in suffix:
        raise section.error("suffix", f'how a file name ends, like ".c", not {suffix!r}')
    return suffix


def _existing(section: Section, key: str, here: Path) -> Path:
    path = here / section.text(key)
    if not path.is_file():
        near = nearest_file(path)
        raise section.error(key, f"no such file: {path.name} (looked in {path.parent}){near}")
    return path


def _read_config(section: Section, here: Path) -> ConfigFile:
    inline, suffix = section.text("text"), _read_suffix(section)
    if "template" in section:
        if inline:
            raise section.error("text", "a config file has either a template or a text")
        template = _existing(section, "template", here)
        inline, suffix = _text_of(section, "template", template), suffix or template.suffix
    section.close()
    if not any(name.startswith("feature") for name in placeholders([inline])):
        raise section.error("text", "has neither {features} nor {feature:NAME}: nothing to change")
    return ConfigFile(inline, suffix)


def _text_of(section: Section, key: str, path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise section.error(key, f"cannot read {path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise section.error(key, f"{path} is not UTF-8 text") from None


def _read_source(section: Section, here: Path) -> MarkedSource:
    path = _existing(section, "file", here)
    marker = section.text("marker", MarkedSource.marker)
    if marker.count("NAME") != 1:
        raise section.error("marker", f"has the word NAME once, as {MarkedSource.marker!r} has")
    section.close()
    return MarkedSource(path, marker)


def _read_steps(top: Section, meanings: dict[str, str]) -> tuple[Step, ...]:
    sections = top.sections("steps")
    if not sections:
        raise UserError(
            f"{top.file.path}: no steps: say under [[steps]] what is run on each test, like "
            'run = "./program {test}"'
        )
    steps: list[Step] = []
    for section in sections:
        step = _read_step(section, meanings, len(steps) + 1)
        known = [one.name for one in steps]
        if step.name in known:
            raise section.error("name", f"two steps have the name {step.name!r}")
        for other in step.needs:
            if other not in known:
                raise section.error(
                    "needs", f"no step {other!r} before this one{did_you_mean(other, known)}"
                )
        steps.append(step)
    return tuple(steps)


def _read_step(section: Section, meanings: dict[str, str], number: int) -> Step:
    call = _read_call(section, "run")
    cover = section.raw("cover")
    if isinstance(cover, bool):
        cover = "auto" if cover else ""
    elif cover is not None:
        cover = section.one_of("cover", COVER, "auto")
    own = {key: section.one_of(f"on_{key}", MEANINGS, meanings[key]) for key in meanings}
    step = Step(
        _read_name(section, number),
        call,
        section.texts("needs"),
        own["crash"],
        own["exit"],
        own["timeout"],
        cover or "",
        section.texts("sources") if "sources" in section else None,
    )
    section.close()
    return step


def _read_name(section: Section, number: int) -> str:
    name = section.text("name", f"step{number}")
    if not name.isprintable() or name != name.strip() or not name:
        raise section.error("name", f"a name in one line, without outer spaces, not {name!r}")
    return name


def _read_reduce(section: Section) -> Reduce:
    command = section.words("command")
    if command and {"script", "test"} - set(placeholders(command)):
        raise section.error("command", "has {script} and {test}, like cvise {script} {test}")
    reduce = Reduce(
        section.one_of("external", EXTERNAL, Reduce.external),
        command,
        section.number("seconds", Reduce.seconds),
    )
    section.close()
    return reduce


def _read_mutate(section: Section) -> Mutate:
    build = section.text("build")
    mutate = Mutate(build, section.texts("files"), section.number("seconds", Mutate.seconds))
    if not build.strip():
        raise section.missing("build", 'how the program is built, like "gcc -O2 -o prog prog.c"')
    section.close()
    return mutate
