"""A configuration: one value per dimension, for good."""

import itertools
import json
import pickle

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from swarmtest import Choice, Configuration, Feature, Flag, Integer, Space, Test, UserError
from swarmtest.core.configuration import RENORMALISED
from swarmtest.core.dimensions import Dimension
from swarmtest.strategies import Layered

examples = settings(derandomize=True, deadline=None, max_examples=50)


@pytest.fixture
def stack():
    return Space(["push", "pop", "add"])


def test_it_prints_what_is_on_what_is_off_and_what_is_between(stack):
    assert str(stack.configuration({"push": 1, "pop": 0.25})) == "push pop=0.25 -add"
    assert repr(stack.configuration(["pop"])) == "<Configuration -push pop -add>"


def test_it_prints_its_settings():
    space = Space(["write", Flag("fsync"), Choice("mode", ["r", "w"])])
    assert str(space.configuration({"write": 1, "mode": "w"})) == "write fsync=False mode=w"


def test_it_prints_that_weights_are_proportions(stack):
    configuration = stack.configuration({"push": 1, "pop": 0.5, RENORMALISED: True})
    assert str(configuration) == "push pop=0.5 -add (renormalised)"


def test_a_feature_is_in_when_its_weight_is_above_zero(stack):
    configuration = stack.configuration({"push": 1, "pop": 0.001})
    assert "push" in configuration
    assert "pop" in configuration
    assert "add" not in configuration
    assert configuration.included == ("push", "pop")


def test_a_setting_is_always_in():
    assert "fsync" in Space(["write", Flag("fsync")]).configuration(["write"])


def test_asking_for_an_unknown_name_is_an_error_not_false(stack):
    with pytest.raises(UserError, match="did you mean 'push'"):
        _ = "psuh" in stack.default()
    with pytest.raises(UserError, match="did you mean 'push'"):
        _ = stack.default()["psuh"]


def test_values_are_read_by_name():
    space = Space(["write", "read", Integer("size", 1, 9)])
    configuration = space.configuration({"write": 0.5, "size": 3})
    assert configuration["write"] == pytest.approx(0.5, abs=1 / 65535)
    assert configuration["read"] == 0.0
    assert configuration["size"] == 3


def test_a_weight_above_zero_never_becomes_zero(stack):
    assert "pop" in stack.configuration({"pop": 1e-12})


@pytest.mark.parametrize("name", ["space", "bits", "renormalised"])
def test_it_cannot_be_changed(stack, name):
    configuration = stack.configuration(["push"])
    with pytest.raises(AttributeError):
        setattr(configuration, name, getattr(configuration, name))


def test_its_settings_are_handed_out_as_a_copy():
    configuration = Space(["write", Flag("fsync")]).configuration(["write"])
    configuration.settings["fsync"] = True
    assert configuration["fsync"] is False


def test_it_can_be_a_key_and_equals_another_with_the_same_values(stack):
    same = Space(["push", "pop", "add"]).configuration(["push"])
    assert stack.configuration(["push"]) == same
    assert {stack.configuration(["push"]): "seen"}[same] == "seen"


def test_other_values_and_other_spaces_make_other_configurations(stack):
    one = stack.configuration(["push"])
    assert one != stack.configuration(["pop"])
    assert one != stack.configuration({"push": 0.5})
    assert one != Space(["push", "pop", "sub"]).configuration(["push"])
    assert one != "push"
    half = {"push": 1, "pop": 0.5}
    assert stack.configuration(half) != stack.configuration(half | {RENORMALISED: True})


def test_on_and_off_take_one_bit_per_feature():
    space = Space([f"f{i}" for i in range(171)])
    assert len(space.default().to_bytes()) == 1 + 22
    assert len(space.configuration({"f0": 0.5}).to_bytes()) == 1 + 2 * 171


def test_weights_of_zero_and_one_are_on_and_off(stack):
    floats = stack.configuration({"push": 1.0, "pop": 0.0, "add": True})
    assert floats == stack.configuration(["push", "add"])
    assert not floats.fractional


def test_a_setting_has_its_declared_value_however_it_was_written():
    space = Space(["write", Flag("fsync"), Integer("size", 1, 9)])
    configuration = space.configuration({"write": 1, "fsync": 1, "size": 3.0})
    assert str(configuration) == "write fsync=True size=3"


values = (
    st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
)
weights = st.sampled_from([0, 1]) | st.floats(0, 1)


@st.composite
def configurations(draw):
    features = [Feature(f"f{i}") for i in range(draw(st.integers(1, 20)))]
    choices = draw(st.lists(values, min_size=1, max_size=4, unique_by=lambda v: v))
    settings: list[Dimension] = [
        Flag("fsync"),
        Integer("size", -5, 50, step=5),
        Choice("mode", choices),
        Test("test", ["test_push", "test_pop"]),
    ]
    space = Space([*features, *settings[: draw(st.integers(0, 4))]])
    chosen = {f.name: draw(weights) for f in features}
    if not any(chosen.values()):
        chosen["f0"] = 1
    for setting in space.settings:
        chosen[setting.name] = draw(st.sampled_from(list(setting.values)))
    if draw(st.booleans()):
        chosen[RENORMALISED] = True
    return space.configuration(chosen)


def typed(configuration):
    return [(name, type(value), value) for name, value in configuration.settings.items()]


@examples
@given(configurations())
def test_it_comes_back_from_json(configuration):
    data = json.loads(json.dumps(configuration.to_json()))
    again = configuration.space.configuration(data)
    assert again == configuration
    assert hash(again) == hash(configuration)
    assert typed(again) == typed(configuration)
    assert again.to_json() == configuration.to_json()


@examples
@given(configurations())
def test_it_comes_back_from_bytes(configuration):
    again = Configuration.from_bytes(configuration.space, configuration.to_bytes())
    assert again == configuration
    assert typed(again) == typed(configuration)
    assert again.to_bytes() == configuration.to_bytes()


@examples
@given(configurations())
def test_it_travels_to_another_process(configuration):
    again = pickle.loads(pickle.dumps(configuration))
    assert again == configuration
    assert again.weights == configuration.weights


@examples
@given(configurations())
def test_its_views_agree(configuration):
    names = configuration.space.feature_names
    assert configuration.weights == tuple(configuration[name] for name in names)
    assert configuration.included == tuple(n for n in names if n in configuration)
    assert all(
        (w > 0) == (n in configuration) for n, w in zip(names, configuration.weights, strict=True)
    )
    assert configuration.fractional == any(0 < w < 1 for w in configuration.weights)


@pytest.mark.parametrize("count", [3, 64, 65, 300])
def test_its_running_weights_are_the_sums_of_all_weights(count):
    space = Space([f"f{i}" for i in range(count)])
    weights = {f"f{i}": (i * 7 % 11) / 10.5 for i in range(count)}
    for values in (weights, {name: float(weight > 0.5) for name, weight in weights.items()}):
        configuration = space.configuration(values)
        sums = list(itertools.accumulate(configuration.weights))
        assert list(configuration.running_weights()) == sums


@pytest.mark.parametrize("count", [3, 100, 101, 300])
def test_the_running_weights_of_a_batch_are_those_of_each_configuration(count):
    space = Space([f"f{i}" for i in range(count)])
    proposals = Layered().ask_many(space, range(400), 5)
    assert proposals is not None
    fractional = [p.configuration for p in proposals if p.configuration.fractional]
    assert len(fractional) > 100
    for configuration in fractional:
        sums = list(itertools.accumulate(configuration.weights))
        assert list(configuration.running_weights()) == sums


def test_a_space_without_features_has_no_weights():
    assert Space([Flag("fast")]).configuration().weights == ()
