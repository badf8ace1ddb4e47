"""The standard library's decimal arithmetic in Python (`_pydecimal`) as a subject with 61 features.

Two numbers are kept; an operation replaces one of them, others set special values or the precision.
Used by `merging.py`, which wants the roles that features of a real program have.
"""

import _pydecimal as decimal
from collections.abc import Callable
from typing import Any

from swarmtest import Machine, action

# fmt: off
OF_ONE = [
    "copy_abs", "copy_negate", "exp", "ln", "log10", "logb", "next_minus", "next_plus",
    "normalize", "number_class", "sqrt", "to_integral_exact", "to_eng_string", "is_normal",
    "canonical", "logical_invert", "__int__", "__float__", "__hash__", "__str__", "__neg__",
    "__abs__", "as_tuple", "as_integer_ratio",
]
OF_TWO = [
    "__add__", "__sub__", "__mul__", "__truediv__", "__floordiv__", "__mod__", "__divmod__",
    "compare", "compare_signal", "compare_total", "max", "min", "max_mag", "min_mag",
    "next_toward", "quantize", "remainder_near", "rotate", "same_quantum", "scaleb", "shift",
    "copy_sign", "logical_and", "logical_or", "logical_xor", "__eq__", "__lt__",
]
# fmt: on
SPECIAL = {
    "nan": "NaN",
    "signalling_nan": "sNaN",
    "infinity": "-Infinity",
    "zero": "0",
    "big": "1E+30",
    "tiny": "1E-30",
    "negative": "-7.25",
    "bits": "1101",
}


def _operation(name: str, operands: int) -> Callable[[Any], None]:
    def operate(self: Any) -> None:
        try:
            found = getattr(self.one, name)(*([self.other] if operands == 2 else []))
        except (decimal.DecimalException, ValueError, OverflowError):
            return
        if isinstance(found, decimal.Decimal):
            self.one, self.other = found, self.one

    return action(operate)


def _set_value(text: str) -> Callable[[Any], None]:
    def set_value(self: Any) -> None:
        self.other = decimal.Decimal(text)

    return action(set_value)


def _set_precision(digits: int) -> Callable[[Any], None]:
    def set_precision(self: Any) -> None:
        decimal.getcontext().prec = digits

    return action(set_precision)


def _start(self: Any) -> None:
    context = decimal.getcontext()
    context.prec = 12
    for signal in context.traps:
        context.traps[signal] = False
    self.one, self.other = decimal.Decimal("1.5"), decimal.Decimal(3)


DecimalMachine = type(
    "DecimalMachine",
    (Machine,),
    {
        "__module__": __name__,
        "__doc__": "Decimal arithmetic with two numbers.",
        "steps": 25,
        "start": _start,
        **{f"one_{name.strip('_')}": _operation(name, 1) for name in OF_ONE},
        **{f"two_{name.strip('_')}": _operation(name, 2) for name in OF_TWO},
        **{f"set_{name}": _set_value(text) for name, text in SPECIAL.items()},
        "low_precision": _set_precision(3),
        "high_precision": _set_precision(30),
    },
)
