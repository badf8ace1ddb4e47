"""Read the sections of a TOML file that say what can vary: ``[features]`` and ``[settings]``."""

from __future__ import annotations

from typing import Any

from swarmtest.core.dimensions import Choice, Dimension, Feature, Flag, Integer
from swarmtest.core.errors import UserError, did_you_mean
from swarmtest.subjects.command.generator import SourceLines, marked_names
from swarmtest.subjects.command.specification import FeatureForm, GenerateSection
from swarmtest.subjects.command.toml_reader import TomlSection, placeholders

_SETTING = "a setting is true or false, a list of values, or a table with low and high"


def read_features(
    section: TomlSection, generate: GenerateSection
) -> tuple[list[Feature], tuple[FeatureForm, ...]]:
    """Return the features as dimensions, and what each does to the generator, in the same order.

    Names that mark lines of the generator's source are features too, also without an entry.
    """
    features: list[Feature] = []
    forms: list[FeatureForm] = []
    for name in section.names():
        value = section.raw(name)
        if isinstance(value, str | list):
            features.append(_feature(section, name))
            forms.append(FeatureForm(name, on=section.words(name)))
            continue
        if not isinstance(value, dict):
            raise section.error(
                name, f'the words that it adds, like "--loops", or a table of keys, not {value!r}'
            )
        inner = section.section(name)
        features.append(read_feature(name, inner))
        forms.append(_read_form(name, inner))
        inner.close()
    if generate.source is not None:
        declared = {feature.name for feature in features}
        text = generate.source.path.read_text(errors="surrogateescape")
        marked = marked_names(text, generate.source.marker)
        features += [Feature(name) for name in marked if name not in declared]
        forms += [FeatureForm(name) for name in marked if name not in declared]
    _check_names(section, features)
    _check_forms(section, forms, generate)
    return features, tuple(forms)


def read_feature(name: str, section: TomlSection) -> Feature:
    """Return the dimension of a feature, with the rate, group and constraints of its table."""
    return _feature(
        section,
        name,
        rate=section.raw("rate"),
        group=section.text("group") or None,
        requires=section.texts("requires"),
        excludes=section.texts("excludes"),
        mandatory=section.flag("mandatory"),
    )


def _feature(section: TomlSection, name: str, **options: Any) -> Feature:
    try:
        return Feature(name, **options)
    except UserError as error:
        raise section.file.error(section.place, f"{section.title}: {error}") from None


def _read_form(name: str, section: TomlSection) -> FeatureForm:
    weight = section.words("weight")
    if weight and not {"weight", "percent"} & set(placeholders(weight)):
        raise section.error("weight", "has neither {weight} nor {percent}")
    return FeatureForm(
        name,
        section.words("on"),
        section.words("off"),
        weight,
        section.mapping("env"),
        section.mapping("env_off"),
        section.text("config"),
        section.text("config_off"),
        section.pattern("lines"),
        section.pattern("appears"),
    )


def _check_names(section: TomlSection, features: list[Feature]) -> None:
    """Raise if a feature requires or excludes one that does not exist."""
    existing = [feature.name for feature in features]
    for feature in features:
        for key, names in (("requires", feature.requires), ("excludes", feature.excludes)):
            for name in names:
                if name not in existing:
                    raise section.file.error(
                        (*section.place, feature.name, key),
                        f"feature {feature.name!r} {key}: no feature {name!r}"
                        f"{did_you_mean(name, existing)}",
                    )


def _check_forms(section: TomlSection, forms: list[FeatureForm], generate: GenerateSection) -> None:
    """Raise if a feature changes nothing: it would be noise in every statistic."""
    source = generate.source and SourceLines(generate.source, forms)
    words = placeholders(generate.call.words) if generate.call else []
    for form in forms:
        if generate.call is None:
            continue
        if not form.acts and not (source and form.name in source.used):
            raise section.error(
                form.name,
                "has no effect: give it on, off, weight, env or config"
                + (", or mark lines of the source with its name" if source else ""),
            )
        placed = {"features", f"feature:{form.name}"}
        if (form.on or form.off or form.weight) and not placed & set(words):
            raise section.error(
                form.name, "adds words, but [generate] command has no {features} to put them in"
            )
        if form.config or form.config_off:
            if generate.config is None:
                raise section.error(form.name, "has config, but there is no [generate.config]")
            if not placed & set(placeholders([generate.config.text])):
                raise section.error(
                    form.name, f"has config, but the template has no {{feature:{form.name}}}"
                )


def read_settings(section: TomlSection) -> list[Dimension]:
    """Return the dimensions that are not features; commands use them as ``{setting:NAME}``."""
    settings: list[Dimension] = []
    for name in section.names():
        value = section.raw(name)
        try:
            if isinstance(value, bool):
                settings.append(Flag(name, value))
            elif isinstance(value, list):
                settings.append(Choice(name, tuple(value)))
            elif isinstance(value, dict):
                inner = section.section(name)
                settings.append(_read_setting(name, inner))
                inner.close()
            else:
                raise section.error(name, f"{_SETTING}, not {value!r}")
        except UserError as error:
            if str(error).startswith(str(section.file.path)):
                raise  # the message has its place in the file already
            raise section.error(name, str(error)) from None
    return settings


def _read_setting(name: str, section: TomlSection) -> Dimension:
    default = section.raw("default")
    if "values" in section:
        values = section.raw("values")
        return Choice(name, values, section.flag("ordered"), default)
    bounds = {key: section.raw(key) for key in ("low", "high", "step", "default")}
    for key, value in bounds.items():
        if value is not None and type(value) is not int:
            raise section.error(key, f"a whole number, not {value!r}")
        if value is None and key in ("low", "high"):
            raise section.missing(key, _SETTING)
    low, high, step, default = bounds.values()
    return Integer(name, low, high, 1 if step is None else step, default)
