"""Strategies by name, with parameters; and a strategy of one's own in ten lines."""

import re
import subprocess
import sys
from textwrap import dedent
from typing import Any

import pytest
from installed_packages import install

from swarmtest import Campaign, Configuration, Space, Strategy, UserError, strategies
from swarmtest.core.strategy_names import current_strategy_text
from swarmtest.strategies import (
    Coin,
    CoinByTime,
    Covering,
    Layered,
    LearningStrategy,
    Proposal,
    Stream,
    parse_strategy,
    strategy_names,
    strategy_text,
)
from swarmtest.strategies.strategy import describe_strategies

SPACE = Space(["push", "pop", "add"])


@pytest.fixture(autouse=True)
def _forget_imports(monkeypatch):
    """Modules of one test are unknown to the next."""
    monkeypatch.setattr(sys, "path", sys.path[:])
    known = set(sys.modules)
    yield
    for name in set(sys.modules) - known:
        if not name.startswith("swarmtest"):
            del sys.modules[name]


@pytest.fixture
def own(tmp_path):
    """A file with strategies of one's own."""
    path = tmp_path / "my_strategies.py"
    path.write_text(
        dedent(
            '''
            from dataclasses import dataclass

            from swarmtest.strategies import Proposal


            class OnlyOne:
                """One feature at a time."""

                def __init__(self, name="push", times=1, loud=False):
                    self.name, self.times, self.loud = name, times, loud

                def ask(self, space, trial, rng):
                    return space.configuration([self.name])


            @dataclass
            class Leaning:
                heavy: str = "push"
                weight: float = 0.25

                def ask(self, space, trial, rng):
                    weights = dict.fromkeys(space.feature_names, self.weight) | {self.heavy: 1}
                    return Proposal(space.configuration(weights), (1.0,), "leaning")


            class Learner:
                told = 0

                def ask(self, space, trial, rng):
                    return space.default()

                def tell(self, result):
                    self.told += 1


            class NeedsMore:
                def __init__(self, size):
                    self.size = size

                def ask(self, space, trial, rng):
                    return space.default()


            class Broken:
                def __init__(self):
                    self.table = {}["missing"]

                def ask(self, space, trial, rng):
                    return space.default()


            class NoStrategy:
                pass


            NUMBER = 7
            '''
        )
    )
    return path


def test_the_names_are_those_of_the_documentation():
    assert strategy_names() == [
        "activation",
        "all-on",
        "bandit",
        "coin",
        "complete",
        "covering",
        "hedged",
        "layered",
        "mixture",
        "repeat",
        "sized",
    ]


@pytest.mark.parametrize("name", strategy_names())
def test_every_strategy_is_described_in_a_line(name):
    described = {n: text for n, _, text in describe_strategies()}
    assert described[name].endswith(".")


@pytest.mark.parametrize(
    ("old", "now"),
    [
        (" default ", "all-on"),
        ("mixture:default=0.1,coin(p=0.3)=0.9", "mixture:all-on=0.1,coin(p=0.3)=0.9"),
        ("mixture(default=1, mixture(coin=1, default=1)=1)",
         "mixture:all-on=0.5,mixture(coin=0.5,all-on=0.5)=0.5"),
    ],
)  # fmt: skip
def test_the_old_name_of_a_strategy_is_accepted(old, now):
    assert strategy_text(parse_strategy(old)) == now


def test_the_old_name_of_the_class_is_accepted():
    assert strategies.Default is strategies.AllOn
    assert isinstance(parse_strategy("default"), strategies.AllOn)


@pytest.mark.parametrize(
    "text",
    [
        "mine.py:Mine:default=3",
        "mixture:mine.py:Mine(default=3)=1,coin=1",
        "default.py:Mine",
        "coin",
    ],
)
def test_only_names_of_strategies_are_replaced(text):
    assert current_strategy_text(text) == text


def test_parameters_follow_a_colon_or_stand_in_parentheses():
    expected = Coin(p=0.3, n=100)
    for text in ("coin:p=0.3,n=100", "coin(p=0.3, n=100)", " coin:n = 100 , p = .3 "):
        assert parse_strategy(text) == expected


def test_a_name_alone_has_the_defaults():
    assert parse_strategy("coin") == parse_strategy("coin:") == parse_strategy("coin()") == Coin()


def test_parameters_get_the_type_of_their_defaults():
    assert parse_strategy("covering:t=3,fill=include") == Covering(3, "include")
    coin: Any = parse_strategy("coin:p=random")
    assert coin.p == "random"
    assert isinstance(parse_strategy("coin:n=5,by=time"), CoinByTime)
    for word, value in (("yes", True), ("no", False), ("True", True), ("off", False), ("0", False)):
        assert parse_strategy(f"layered:renormalise={word}") == Layered(value)


@pytest.mark.parametrize(
    "text",
    [
        "all-on",
        "coin",
        "coin:p=0.3",
        "coin:p=random",
        "coin:n=100",
        "coin:p=random,n=7",
        "coin:n=100,by=time",
        "coin:p=0.3,n=7,by=time",
        "sized",
        "sized:low=2,high=5",
        "complete",
        "covering",
        "covering:t=4,fill=exclude",
        "activation",
        "activation:renormalise=True",
        "layered",
        "layered:renormalise=False",
        "mixture:all-on=0.1,coin(p=0.3)=0.9",
    ],
)
def test_the_text_of_a_strategy_names_it_again(text):
    strategy = parse_strategy(text)
    written = strategy_text(strategy)
    again = parse_strategy(written)
    assert type(again) is type(strategy)
    assert strategy_text(again) == written
    assert set(written.partition(":")[2].split(",")) == set(text.partition(":")[2].split(","))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("cion", "unknown strategy 'cion'; did you mean 'coin'?"),
        ("cion:p=0.3", "did you mean 'coin'?"),
        ("xyzzy", "known: activation, all-on, bandit"),
        ("", "unknown strategy"),
        ("coin:q=0.3", "strategy 'coin' has no parameter 'q'"),
        ("covering:fil=coin", "did you mean 'fill'?"),
        ("coin:p", "NAME=VALUE"),
        ("coin:0.3", "NAME=VALUE"),
        ("sized:low=few", "low is a number, not 'few'"),
        ("activation:renormalise=perhaps", "renormalise is yes or no, not 'perhaps'"),
        ("all-on:p=1", "no parameter 'p'"),
        ("coin(p=0.3", "coin"),
        ("coin:p=0.3)", "coin"),
        ("coin:p=(0.3", "coin"),
        ("coin:p=0.3,p=0.5", "p"),
        ("nosuchmodule:Mine", "nosuchmodule"),
        ("collections:Nothing", "collections"),
        ("math:pi", "math:pi"),
        ("nosuchfile.py:Mine", "no such file"),
    ],
)
def test_a_name_that_cannot_be_understood_gets_one_clear_line(text, says):
    with pytest.raises(UserError) as refused:
        parse_strategy(text)
    assert says in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_strategy_of_ones_own_is_named_by_its_file(own):
    strategy = parse_strategy(f"{own}:OnlyOne")
    answer = strategy.ask(SPACE, 0, Stream())
    assert isinstance(strategy, Strategy)
    assert isinstance(answer, Configuration)
    assert str(answer) == "push -pop -add"


def test_a_strategy_of_ones_own_is_named_by_its_module(own, monkeypatch):
    monkeypatch.chdir(own.parent)
    strategy: Any = parse_strategy("my_strategies:Leaning")
    assert str(strategy.ask(SPACE, 0, Stream()).configuration) == "push pop=0.25 add=0.25"


def test_a_strategy_may_be_named_like_a_machine_with_two_colons(own):
    strategy: Any = parse_strategy(f"{own}::OnlyOne")
    assert strategy.name == "push"


@pytest.mark.parametrize(
    "form", ["{}:OnlyOne:name=pop,times=3,loud=yes", "{}:OnlyOne(name=pop,times=3,loud=yes)"]
)
def test_a_strategy_of_ones_own_has_parameters(own, form):
    strategy: Any = parse_strategy(form.format(own))
    assert (strategy.name, strategy.times, strategy.loud) == ("pop", 3, True)


def test_only_a_strategy_with_tell_learns(own):
    assert isinstance(parse_strategy(f"{own}:Learner"), LearningStrategy)
    assert not isinstance(parse_strategy(f"{own}:OnlyOne"), LearningStrategy)


def test_a_strategy_of_ones_own_can_be_in_a_mixture(own):
    mixture = parse_strategy(f"mixture:{own}:OnlyOne(name=pop)=0.5,all-on=0.5")
    asked: list[Any] = [mixture.ask(SPACE, trial, Stream(0, trial)) for trial in range(20)]
    assert all(isinstance(q, Proposal) for q in asked)
    assert {str(q.configuration) for q in asked} == {"-push pop -add", "push pop add"}


@pytest.mark.parametrize(
    ("tail", "says"),
    [
        ("OnlyOen", "did you mean 'OnlyOne'?"),
        ("OnlyOne:nmae=pop", "no parameter 'nmae'; did you mean 'name'?"),
        ("OnlyOne:times=often", "times is a number, not 'often'"),
        ("NoStrategy", "no method ask"),
        ("NUMBER", "NUMBER"),
        ("NeedsMore", "size"),
        ("Broken", "Broken"),
    ],
)
def test_a_mistake_in_ones_own_strategy_gets_one_clear_line(own, tail, says):
    with pytest.raises(UserError) as refused:
        parse_strategy(f"{own}:{tail}")
    assert says in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    "tail", ["OnlyOne", "Leaning", "Leaning:heavy=pop,weight=0.5", "OnlyOne:name=pop"]
)
def test_the_stored_text_of_ones_own_strategy_is_enough_to_resume_in_another_process(
    own, tail, tmp_path
):
    strategy = parse_strategy(f"{own}:{tail}")
    resume = dedent(
        """
        import sys
        from swarmtest import Space
        from swarmtest.strategies import Stream, parse_strategy
        answer = parse_strategy(sys.argv[1]).ask(Space(["push", "pop", "add"]), 0, Stream())
        print(getattr(answer, "configuration", answer))
        """
    )
    child = subprocess.run(
        [sys.executable, "-c", resume, strategy_text(strategy)],
        capture_output=True,
        text=True,
        cwd=tmp_path.parent,
    )
    answer = strategy.ask(SPACE, 0, Stream())
    expected = str(getattr(answer, "configuration", answer))
    assert child.stdout.strip() == expected, child.stderr


def test_the_text_of_a_mixture_with_ones_own_strategy_names_it_again(own):
    mixture: Any = parse_strategy(f"mixture:{own}:Leaning(heavy=pop)=0.5,all-on=0.5")
    again: Any = parse_strategy(strategy_text(mixture))
    asked = [
        [m.ask(SPACE, t, Stream(0, t)).configuration for t in range(20)] for m in (mixture, again)
    ]
    assert asked[0] == asked[1]


ONE = """
    class OnlyOne:
        def __init__(self, name="push"):
            self.name = name

        def ask(self, space, trial, rng):
            return space.configuration([self.name])
    """


def test_an_installed_package_offers_strategies_by_name(tmp_path, monkeypatch):
    install(tmp_path, "swarmtest.strategies", "only-one = offered:OnlyOne", offered=ONE)
    monkeypatch.syspath_prepend(tmp_path)
    strategy = parse_strategy("only-one:name=pop")
    assert strategy.ask(SPACE, 0, Stream(1)) == SPACE.configuration(["pop"])
    assert strategy_text(strategy) == "only-one:name=pop"
    with pytest.raises(UserError, match="unknown strategy 'only-two'; did you mean 'only-one'"):
        parse_strategy("only-two")


def test_an_entry_point_that_cannot_be_loaded_says_where_it_is(tmp_path, monkeypatch):
    install(tmp_path, "swarmtest.strategies", "only-one = offered_badly:Missing", offered_badly=ONE)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(
        UserError, match=r"'only-one' \(entry point offered_badly:Missing in group sw"
    ):
        parse_strategy("only-one")


def test_entry_points_are_not_looked_up_for_built_in_names_or_for_files(own, monkeypatch):
    import importlib.metadata

    def refuse(**selection):
        raise AssertionError(f"looked up {selection}")

    monkeypatch.setattr(importlib.metadata, "entry_points", refuse)
    for name in strategy_names():
        if name != "mixture":
            parse_strategy(name)
    parse_strategy(f"{own}:OnlyOne")


class Deaf:
    def tell(self, result):
        pass


class Askable:
    ask = "configuration"


class Wishful:
    wants = frozenset({"event:full"})

    def ask(self, space, trial, rng):
        return space.default()


WRITE_ASK = re.escape(
    "write def ask(self, space, trial, rng), which returns a Proposal or a configuration"
)


@pytest.mark.parametrize(
    ("strategy", "message"),
    [
        (Deaf(), rf"^Deaf: an incomplete strategy, it has no method ask: {WRITE_ASK}$"),
        (Askable(), rf"^Askable: an incomplete strategy, it has no method ask: {WRITE_ASK}$"),
        (
            Wishful(),
            r"^Wishful: an incomplete strategy, it has no method tell: write def tell\(self",
        ),
        (Coin, r"^'Coin' is a class: write Coin\(\) for a strategy of its kind$"),
    ],
)
def test_a_campaign_says_what_its_strategy_lacks(strategy, message):
    with pytest.raises(UserError, match=message):
        Campaign("examples/stack.py", strategy, 10, store=":memory:")


def test_a_class_that_derives_from_strategy_and_lacks_a_method_is_told_which(tmp_path):
    (tmp_path / "unfinished.py").write_text(
        dedent(
            """
            from swarmtest import Strategy
            from swarmtest.strategies import LearningStrategy

            class Mute(Strategy):
                def asks(self, space, trial, rng):
                    return space.default()

            class Deaf(LearningStrategy):
                def ask(self, space, trial, rng):
                    return space.default()
            """
        )
    )
    with pytest.raises(UserError, match=f":Mute: an incomplete .* no method ask: {WRITE_ASK}$"):
        parse_strategy(f"{tmp_path / 'unfinished.py'}:Mute")
    with pytest.raises(UserError, match=r":Deaf: an incomplete .* no method tell: write def tell"):
        parse_strategy(f"{tmp_path / 'unfinished.py'}:Deaf")


def test_a_name_that_is_not_of_a_class_is_no_strategy(tmp_path):
    (tmp_path / "settings_of_mine.py").write_text("FAVOURITE = 'push'\n")
    with pytest.raises(UserError, match="is not a strategy: name a class, or a function that make"):
        parse_strategy(f"{tmp_path / 'settings_of_mine.py'}:FAVOURITE")


@pytest.mark.parametrize(
    "text",
    [
        "os:system:command=exit",
        "os:makedirs:name=made",
        "subprocess:Popen:args=true",
        "numpy:load:file=x",
        "mixture:os:abort=1,coin=1",
    ],
)
def test_what_makes_no_strategy_is_not_called(text, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError):
        parse_strategy(text)
    assert not list(tmp_path.iterdir())
