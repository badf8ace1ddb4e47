"""What programs print when they fail: families of messages, and the signature in each."""

from swarmtest.messages.recognisers import (
    RECOGNISERS,
    Recognised,
    Recogniser,
    recognise,
    recogniser_named,
)
from swarmtest.messages.telling_lines import telling_line

__all__ = [
    "RECOGNISERS",
    "Recognised",
    "Recogniser",
    "recognise",
    "recogniser_named",
    "telling_line",
]
