"""The public names of `swarmtest.strategies`, each with the module that defines it."""

from swarmtest.core.sampling import Proposal as Proposal
from swarmtest.core.sampling import rates_for as rates_for
from swarmtest.core.sampling import toss as toss
from swarmtest.core.sampling import weigh as weigh
from swarmtest.core.seeds import Stream as Stream
from swarmtest.strategies.covering import Covering as Covering
from swarmtest.strategies.directed.adaptive import Adaptive as Adaptive
from swarmtest.strategies.directed.aim import Aim as Aim
from swarmtest.strategies.directed.aim import Goal as Goal
from swarmtest.strategies.directed.directed import Directed as Directed
from swarmtest.strategies.directed.directed import Portfolio as Portfolio
from swarmtest.strategies.hedged import Hedged as Hedged
from swarmtest.strategies.layered import Layered as Layered
from swarmtest.strategies.mixture import Mixture as Mixture
from swarmtest.strategies.simple import Activation as Activation
from swarmtest.strategies.simple import AllOn as AllOn
from swarmtest.strategies.simple import Coin as Coin
from swarmtest.strategies.simple import CoinByTime as CoinByTime
from swarmtest.strategies.simple import Complete as Complete
from swarmtest.strategies.simple import Default as Default
from swarmtest.strategies.simple import Sized as Sized
from swarmtest.strategies.strategy import LearningStrategy as LearningStrategy
from swarmtest.strategies.strategy import Strategy as Strategy
from swarmtest.strategies.strategy import parse_strategy as parse_strategy
from swarmtest.strategies.strategy import strategy_names as strategy_names
from swarmtest.strategies.strategy import strategy_text as strategy_text
