"""Whether the placeholders in a TOML file stand for something, each where it is."""

from __future__ import annotations

from collections.abc import Sequence

from swarmtest.errors import did_you_mean
from swarmtest.subjects.command.specification import Call, Generate, Specification
from swarmtest.subjects.command.toml_section import Place, TomlFile
from swarmtest.subjects.command.words import look_alikes, placeholders


def check_placeholders(file: TomlFile, spec: Specification) -> None:
    """Refuse what is in braces and stands for nothing, and a generator that gets no seed."""
    settings = {f"setting:{name}" for name in spec.space.setting_names}
    common = {"test", "dir", "here"} | settings
    generate = spec.generate
    if generate.call is not None:
        own = {f"feature:{name}" for name in spec.space.feature_names}
        _check_forms(file, spec, common | {"seed"})
        known = common | own | {"seed", "features"}
        known |= {"config"} if generate.config else set()
        known |= {"source"} if generate.source else set()
        _check_call(file, ("generate",), "command", generate.call, known)
        _check_seed(file, generate)
        if generate.config is not None:
            for name in placeholders([generate.config.text]):
                if ":" in name and name not in known:
                    raise file.error(
                        ("generate", "config"),
                        f"[generate.config] has {{{name}}}{did_you_mean(name, own | settings)}",
                    )
        for key, thing in (("config", generate.config), ("source", generate.source)):
            if thing is not None and key not in placeholders(generate.call.words):
                raise file.error(
                    ("generate", "command"),
                    f"[generate] command: has no {{{key}}}, the file that [generate.{key}] makes",
                )
    for number, step in enumerate(spec.steps):
        _check_call(file, ("steps", number), "run", step.call, common)


def _check_forms(file: TomlFile, spec: Specification, known: set[str]) -> None:
    """The words and variables of features may have placeholders too, but not each other's."""
    for form in spec.forms:
        texts = {"on": form.on, "off": form.off, "weight": form.weight}
        texts |= {"env": (*form.env.values(),), "env_off": (*form.env_off.values(),)}
        for key, words in texts.items():
            weight = {"weight", "percent"} if key in ("weight", "env") else set()
            _check_texts(file, ("features", form.name, key), key, words, known | weight)


def _check_seed(file: TomlFile, generate: Generate) -> None:
    """Without a seed every test of a configuration would be the same, or none could be repeated."""
    assert generate.call is not None
    texts = [*generate.call.words, *generate.call.env.values(), generate.call.stdin]
    texts += [generate.config.text] if generate.config else []
    if generate.seeded and "seed" not in placeholders(texts):
        raise file.error(
            ("generate", "command"),
            "[generate] command: has no {seed}, so tests could not be made again; add it, as in "
            '--seed={seed}, or say seed = "none" if the generator draws nothing at random',
        )


def _check_call(file: TomlFile, place: Place, key: str, call: Call, known: set[str]) -> None:
    texts = {key: call.words, "env": (*call.env.values(),), "cwd": (call.cwd,)}
    texts["stdin"] = (call.stdin,)
    for where, words in texts.items():
        _check_texts(file, (*place, where), where, words, known)


def _check_texts(
    file: TomlFile, place: Place, key: str, texts: Sequence[str], known: set[str]
) -> None:
    wrong = [name for name in placeholders(texts) if name not in known]
    wrong += look_alikes(texts, known)
    if wrong:
        near = did_you_mean(wrong[0].lower(), known)
        raise file.error(
            place,
            f"{key}: no placeholder {{{wrong[0]}}}{near} (double the braces for plain text)",
        )
