"""Dimensions and constraints make a space; a space that cannot be is refused with the reason."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from swarmtest import (
    Choice,
    Feature,
    Flag,
    Integer,
    Space,
    Test,
    UserError,
    at_least_one_of,
    excludes,
    mandatory,
    requires,
)
from swarmtest.core.dimensions import Dimension

examples = settings(derandomize=True, deadline=None, max_examples=40)


def refusal(make):
    """The one line with which something is refused."""
    with pytest.raises(UserError) as refused:
        make()
    line = str(refused.value)
    assert "\n" not in line
    return line


def test_names_alone_make_a_space_of_features():
    assert Space(["push", "pop"]) == Space([Feature("push"), Feature("pop")])


def test_a_space_keeps_the_order_of_its_dimensions():
    space = Space([Flag("fsync"), Feature("write"), Integer("size", 1, 9), Feature("read")])
    assert space.feature_names == ("write", "read")
    assert space.setting_names == ("fsync", "size")


def test_a_required_feature_has_to_be_in():
    space = Space([Feature("open"), Feature("close", requires=["open"])])
    assert space.configuration(["open"])
    assert "'close' requires 'open'" in refusal(lambda: space.configuration(["close"]))


def test_excluded_features_cannot_meet():
    space = Space([Feature("read-only", excludes=["write"]), Feature("write")])
    both = ["read-only", "write"]
    assert "'read-only' excludes 'write'" in refusal(lambda: space.configuration(both))


def test_at_least_one_of_a_few_has_to_be_in():
    space = Space(["read", "write", "seek"], [at_least_one_of("read", "write")])
    line = refusal(lambda: space.configuration(["seek"]))
    assert "at least one of 'read', 'write'" in line


def test_a_mandatory_feature_is_always_in():
    space = Space([Feature("main", mandatory=True), Feature("loop")])
    assert "'main' is mandatory" in refusal(lambda: space.configuration(["loop"]))


def test_a_configuration_is_never_empty():
    assert "never empty" in refusal(lambda: Space(["push", "pop"]).configuration([]))


def test_constraints_can_be_written_beside_the_features():
    rules = [requires("close", "open"), excludes("open", "pipe"), mandatory("open")]
    space = Space(["open", "close", "pipe"], rules)
    assert space.violated(0b100) == ["'open' is mandatory"]
    assert space.violated(0b110) == ["'close' requires 'open'", "'open' is mandatory"]
    assert space.violated(0b011) == []


def test_a_space_whose_constraints_clash_is_refused_and_names_them():
    line = refusal(
        lambda: Space(
            [
                Feature("a", mandatory=True, requires=["b"]),
                Feature("b", requires=["c"]),
                Feature("c"),
                Feature("d", mandatory=True, excludes=["c"]),
            ]
        )
    )
    for guilty in (
        "'a' is mandatory",
        "'a' requires 'b'",
        "'b' requires 'c'",
        "'d' is mandatory",
        "'d' excludes 'c'",
    ):
        assert guilty in line


def test_constraints_that_have_no_part_in_the_clash_are_not_named():
    innocent = [requires("x", "y"), excludes("y", "z"), at_least_one_of("x", "z"), mandatory("z")]
    line = refusal(
        lambda: Space(["a", "b", "x", "y", "z"], [*innocent, mandatory("a"), excludes("a", "a")])
    )
    assert line == "these constraints cannot all be met: 'a' is mandatory; 'a' excludes 'a'"


def test_a_clash_that_takes_thought_is_found_too():
    rules = [at_least_one_of("a", "b"), excludes("a", "b"), requires("a", "b"), requires("b", "a")]
    line = refusal(lambda: Space(["a", "b", "c"], rules))
    assert all(str(rule) in line for rule in rules)


def test_a_space_in_which_every_feature_is_forbidden_is_refused():
    line = refusal(lambda: Space(["a", "b"], [excludes("a", "a"), excludes("b", "b")]))
    assert "'a' excludes 'a'" in line
    assert "'b' excludes 'b'" in line


def test_a_feature_may_require_itself_since_that_says_nothing():
    space = Space([Feature("a", requires=["a"]), Feature("b")])
    assert str(space.configuration(["b"])) == "-a b"


@pytest.mark.parametrize(
    "make",
    [
        lambda: Space([Feature("open"), Feature("close", requires=["opne"])]),
        lambda: Space([Feature("open"), Feature("close", excludes=["opne"])]),
        lambda: Space(["open", "close"], [mandatory("opne")]),
        lambda: Space(["open", "close"], [at_least_one_of("close", "opne")]),
    ],
)
def test_a_typo_in_a_constraint_is_answered_with_the_nearest_name(make):
    line = refusal(make)
    assert "'opne'" in line
    assert "did you mean 'open'?" in line


def test_constraints_speak_of_features_not_of_settings():
    line = refusal(lambda: Space(["write", Flag("fsync")], [requires("write", "fsync")]))
    assert "'write' requires 'fsync'" in line


def test_a_typo_in_a_configuration_is_answered_with_the_nearest_name():
    assert "did you mean 'push'?" in refusal(lambda: Space(["push"]).configuration(["psuh"]))


def test_the_default_configuration_has_everything_on_and_settings_at_their_defaults():
    space = Space(["push", "pop", Flag("fsync", default=True), Integer("size", 4, 8)])
    assert str(space.default()) == "push pop fsync=True size=4"


def test_a_space_without_a_default_configuration_says_why_and_what_to_do():
    space = Space([Feature("a", excludes=["b"]), Feature("b")])
    line = refusal(space.default)
    assert "'a' excludes 'b'" in line
    assert "coin" in line


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: Space([]), "at least one dimension"),
        (lambda: Space(["push", "push"]), "push"),
        (lambda: Space(["push", Flag("push")]), "push"),
        (lambda: Feature(""), "non-empty"),
        (lambda: Feature(" push"), "' push'"),
        (lambda: Feature("*push"), "'*push'"),
        (lambda: Feature("-push"), "'-push'"),
        (lambda: Feature(7), "7"),  # type: ignore[arg-type]
        (lambda: Feature("push", rate=1.5), "1.5"),
        (lambda: Feature("push", rate=float("nan")), "nan"),
        (lambda: Feature("push", rate="often"), "often"),  # type: ignore[arg-type]
        (lambda: Feature("push", requires="open"), "['open']"),
        (lambda: Integer("size", 9, 1), "9..1"),
        (lambda: Integer("size", 1, 9, step=0), "step"),
        (lambda: Integer("size", 1, 9, default=10), "10"),
        (lambda: Choice("level", []), "level"),
        (lambda: Choice("level", ["-O0", "-O0"]), "twice"),
        (lambda: Choice("level", ["-O0"], default="-O9"), "'-O9'"),
        (lambda: Choice("level", [["-O0"]]), "level"),  # type: ignore[list-item]
        (lambda: Choice("level", [("-O0", "-g")]), "level"),  # type: ignore[list-item]
        (lambda: Choice("level", "abc"), "level"),
        (lambda: Test("test", []), "test"),
        (lambda: Space(["a"]).configuration({"a": 1.5}), "1.5"),
        (lambda: Space(["a"]).configuration({"a": -0.1}), "-0.1"),
        (lambda: Space(["a"]).configuration({"a": float("nan")}), "nan"),
        (lambda: Space(["a"]).configuration({"a": "on"}), "'on'"),
        (lambda: Space(["a", Flag("f")]).configuration({"a": 1, "f": "x"}), "'x'"),
        (lambda: Space(["a", Integer("n", 0, 9, 3)]).configuration({"a": 1, "n": 4}), "4"),
        (lambda: Space.from_json({"dimensions": [{"kind": "flog", "name": "x"}]}), "flog"),
    ],
)
def test_bad_input_gets_one_clear_line(make, says):
    assert says in refusal(make)


names = st.sampled_from(["push", "pop", "add", "open file", "café", "x=1", "2"])
rates = st.none() | st.floats(0, 1)
scalars = st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | names


@st.composite
def spaces(draw):
    chosen = draw(st.lists(names, min_size=1, unique=True))
    count = draw(st.integers(1, len(chosen)))
    features = [
        Feature(
            name,
            rate=draw(rates),
            group=draw(st.none() | names),
            requires=chosen[: draw(st.integers(0, at))],
            mandatory=draw(st.booleans()),
        )
        for at, name in enumerate(chosen[:count])
    ]
    choices = st.lists(scalars, min_size=1, max_size=4, unique_by=lambda v: v)
    settings: list[Dimension] = []
    for name in chosen[count:]:
        match draw(st.integers(0, 3)):
            case 0:
                settings.append(Flag(name, draw(st.booleans())))
            case 1:
                low = draw(st.integers(-9, 9))
                settings.append(Integer(name, low, low + draw(st.integers(0, 99)), step=3))
            case 2:
                values = draw(choices)
                default = draw(st.sampled_from(values))
                settings.append(Choice(name, values, draw(st.booleans()), default))
            case _:
                settings.append(Test(name, draw(choices)))
    dimensions = draw(st.permutations([*features, *settings]))
    rules = [at_least_one_of(*chosen[:count])] * draw(st.booleans())
    return Space(dimensions, rules)


@examples
@given(spaces())
def test_a_space_comes_back_from_json(space):
    again = Space.from_json(json.loads(json.dumps(space.to_json())))
    assert again == space
    assert hash(again) == hash(space)
    assert [repr(d) for d in again.dimensions] == [repr(d) for d in space.dimensions]


def test_spaces_with_other_constraints_are_other_spaces():
    assert Space(["a", "b"]) != Space(["a", "b"], [mandatory("a")])
    assert Space(["a", "b"]) != Space(["b", "a"])
    assert Space(["a"]) != "a"
