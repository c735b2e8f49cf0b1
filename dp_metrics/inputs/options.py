"""Public options of a call: a checker for each, and epsilon, the exact number that it stands for.

Here, in the lowest file of the package, are the numbers too that everything is computed in, and the error
state of NumPy in which it is.

What counts as a real number, as a whole one or as one of several names is told here, for all checkers alike.
"""

import difflib
import math
import numbers
import operator
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from enum import StrEnum
from fractions import Fraction
from functools import cached_property, lru_cache, reduce, wraps
from types import FunctionType
from typing import Any, Literal, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from dp_metrics.exceptions import LargeEpsilonWarning, warn_caller

Array: TypeAlias = NDArray[Any]
Floats: TypeAlias = NDArray[np.float64]
Codes: TypeAlias = NDArray[np.intp]
"""Whole numbers that stand for labels or persons, or for their places."""

Range: TypeAlias = tuple[float, float]
"""The lower and the upper end, such as bounds or limits."""

ByName: TypeAlias = Mapping[str, Any]
"""Values by what they are called, such as keywords."""

Function: TypeAlias = Callable[..., Any]

MAX_FLOAT = sys.float_info.max
"""The largest finite float64: where sums saturate, and the public limit of a metric that has no other."""
_Public = TypeVar("_Public", bound=Function)

Epsilon: TypeAlias = "float | Fraction | Decimal"
"""A float stands for the decimal that people type; a share of it is an exact fraction."""
MultiOutput: TypeAlias = Literal["raw_values", "uniform_average"] | Sequence[float] | Floats
"""How several outputs make one number, or "raw_values" for a number each."""
OR_NO_LIMIT = "{} must be None or a positive, finite number."


def as_real(value: Any) -> float:
    """Return a real number as a float; NaN for anything else, booleans and too large numbers included."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        return math.nan
    try:
        return float(value)
    except OverflowError:
        return math.nan


def as_whole(value: Any) -> int | None:
    """Return a whole number as an int; None for anything else, booleans included."""
    is_whole = isinstance(value, numbers.Integral) and not isinstance(value, bool)
    return int(value) if is_whole else None


_OTHER_WORDS = {"sensitivity": "recall", "acc": "accuracy", "mape": "mean_absolute_percentage_error"}
"""Other names of metrics, which are spelled like those of wrong ones: specificity is no sensitivity."""


def did_you_mean(name: Any, known: Iterable[str]) -> str:
    """Return a question that offers the known name closest to a wrong one, or nothing if none is close.

    Parameters
    ----------
    name : object
        What was typed; a public option. What is no string is close to nothing.
    known : iterable of str
        The names that would have been right.

    Returns
    -------
    str
        Such as " Did you mean 'hazard'?", to follow a sentence; or "".
    """
    if not isinstance(name, str):
        return ""
    names = {one.lower(): one for one in known}
    other = _OTHER_WORDS.get(name.lower())
    closest = [other] if other in names else difflib.get_close_matches(name.lower(), names, n=1)
    return f" Did you mean {names[closest[0]]!r}?" if closest else ""


def check_positive(value: Any, name: str, message: str = "{} must be a positive, finite number.") -> float:
    """Return a positive, finite real number as a float, or raise with a message that begins with its name."""
    number = as_real(value)
    if not 0 < number < math.inf:
        raise ValueError(message.format(name))
    return number


def check_epsilon(epsilon: Any) -> float:
    """Return epsilon as a float; it must be a finite, positive real number."""
    return float(exact_epsilon(epsilon))


def exact_epsilon(epsilon: Epsilon) -> Fraction:
    """Return epsilon as the decimal number that people typed; a Fraction or a Decimal stands for itself."""
    if isinstance(epsilon, Decimal) and epsilon.is_finite():  # a signaling NaN has no float
        check_positive(float(epsilon), "epsilon")
        return Fraction(epsilon)
    value = check_positive(epsilon, "epsilon")
    if isinstance(epsilon, numbers.Rational):
        return Fraction(int(epsilon.numerator), int(epsilon.denominator))
    return _decimal(value)


@lru_cache(maxsize=256)
def _decimal(value: float) -> Fraction:
    return Fraction(repr(value))


_LARGEST_EPSILON = 10


def warn_of_large_epsilon(epsilon: Any) -> None:
    """Warn of an epsilon, which is public, that is too large to protect anybody."""
    if epsilon > _LARGEST_EPSILON:
        warn_caller(
            f"epsilon={float(epsilon):g} is hardly private: an attacker who thinks 50 : 50 of two records of "
            "a person may be more than 99.99 % sure of one after this release. Common advice is 1 or less.",
            LargeEpsilonWarning,
        )


class Relation(StrEnum):
    """Which two data sets are neighbours, so that no release may tell them apart; users type the value."""

    REPLACE_ONE = "replace_one"
    ADD_OR_REMOVE_ONE = "add_or_remove_one"
    WITHIN_GROUPS = "replace_one_within_groups"
    """Each record stays in its public group, as in a table by group: budgets record it, no call takes it."""

    @classmethod
    def told_by(cls, keywords: ByName) -> "Relation":
        """Return the relation of a call with these keywords; whoever is called refuses a wrong name."""
        is_private = keywords.get("neighboring") == cls.ADD_OR_REMOVE_ONE
        return cls.ADD_OR_REMOVE_ONE if is_private else cls.REPLACE_ONE

    @property
    def private_n(self) -> bool:
        """Whether the number of records is private."""
        return self is Relation.ADD_OR_REMOVE_ONE

    def refuse(self, disclosing: Sequence[str]) -> None:
        """Raise if there are options of a call that would give a private number of records away."""
        if self.private_n and disclosing:
            raise ValueError(
                f"{' and '.join(disclosing)} cannot be used with neighboring='add_or_remove_one': the "
                "number of records, which is private then, would be given away."
            )


NEIGHBORING = (Relation.REPLACE_ONE.value, Relation.ADD_OR_REMOVE_ONE.value)


def rounded_down(exact: Fraction) -> float:
    """Return the largest float whose decimal is at most a number."""
    value = float(exact)
    while Fraction(repr(value)) > exact:
        value = math.nextafter(value, 0.0)
    return value


def check_bounds(bounds: Any, *, may_be_open: bool = False) -> Range | None:
    """Return public bounds as two floats, or None for unbounded data.

    Where they may be open, the upper one may be None or infinite, which is the largest float then.
    """
    if bounds is None:
        return None
    is_ordered = isinstance(bounds, tuple | list) or getattr(bounds, "ndim", 0) == 1
    given = [*bounds] if is_ordered and len(bounds) == 2 else [math.nan, math.nan]
    if may_be_open and (given[1] is None or as_real(given[1]) == math.inf):
        given[1] = MAX_FLOAT
    lower, upper = map(as_real, given)
    if not -math.inf < lower < upper < math.inf:
        raise ValueError("bounds must be None or a pair (lower, upper) of finite numbers with lower < upper.")
    return lower, upper


def check_max_loss(max_loss: Any) -> float | None:
    """Return the public cap of one record's loss as a float, or None for unbounded losses."""
    return None if max_loss is None else check_positive(max_loss, "max_loss", OR_NO_LIMIT)


def check_choice(value: Any, name: str, choices: Sequence[str | None]) -> None:
    """Raise unless the value is one of these strings, or None where that is among them."""
    if not (isinstance(value, str | None) and value in choices):
        known = [choice for choice in choices if choice is not None]
        raise ValueError(f"{name} must be one of {tuple(choices)}.{did_you_mean(value, known)}")


def check_flag(value: Any, name: str) -> bool:
    """Return what is True or False; any other value is a mistake."""
    if not isinstance(value, bool):
        raise TypeError(f"{name} must be True or False.")
    return value


def check_average(average: Any, labels: int) -> None:
    """Raise unless this is a way to average over so many labels."""
    if isinstance(average, str) and average == "samples":
        raise ValueError("average='samples' is for several labels a record, which are not supported.")
    check_choice(average, "average", ("binary", "micro", "macro", "weighted", None))
    if average == "binary" and labels != 2:
        raise ValueError(
            "Target is multiclass but average='binary'. Please choose another average setting, one of "
            f"[None, 'micro', 'macro', 'weighted']: labels has {labels} of them."
        )


def check_zero_division(zero_division: Any, *, is_mean: bool) -> float:
    """Return what 0/0 becomes; NaN, to be left out, only if the result is a mean."""
    if isinstance(zero_division, str) and zero_division == "warn":
        return 0.0  # scikit-learn does the same and warns, which would tell of the data
    value = as_real(zero_division)
    if isinstance(zero_division, float) and math.isnan(zero_division):
        if is_mean:
            return math.nan
        raise ValueError(
            "zero_division can be NaN only for average='macro' or 'weighted': a result is finite."
        )
    if value not in (0.0, 1.0):
        raise ValueError("zero_division must be 0, 1, 'warn' or NaN.")
    return value


def check_ddof(ddof: Any) -> float:
    """Return the delta degrees of freedom."""
    value = as_real(ddof)
    if not math.isfinite(value):
        raise ValueError("ddof must be a finite number.")
    return value


def check_confidence(confidence: Any) -> float:
    """Return the confidence of an interval, strictly between 0 and 1."""
    return float(check_share(confidence, "confidence"))


def check_count(number: Any, name: str, most: float = math.inf, least: int = 1) -> int:
    """Return a public number of things from 1, or another least one, perhaps up to a limit."""
    count = as_whole(number)
    if count is None or not least <= count <= most:
        allowed = f"of at least {least}" if most == math.inf else f"from {least} to {most}"
        raise ValueError(f"{name} must be an integer {allowed}.")
    return count


def check_share(share: Any, name: str) -> Fraction:
    """Return a share strictly between 0 and 1 as the decimal that people typed."""
    value = as_real(share)
    if not 0 < value < 1:
        raise ValueError(f"{name} must lie strictly between 0 and 1.")
    return share if isinstance(share, Fraction) else Fraction(repr(value))


def limit_of(cap: float | None) -> float:
    """Return a public cap, or the largest finite float without one."""
    return MAX_FLOAT if cap is None else float(cap)


def sum_in_order(values: Iterable[float]) -> float:
    """Return the sum, added from the left: `sum` rounds otherwise from Python 3.12 on."""
    return reduce(operator.add, values, 0.0)


def own_error_state(public: _Public) -> _Public:
    """Let a function, or all that is public of a class, ignore what NumPy says of overflows and the like.

    Whoever makes NumPy raise or warn of them would learn of the data, or lose a number that is right. The
    state of the caller is back when the function returns. Name, signature and pickles stay as they are.

    Parameters
    ----------
    public : function or class
        A class is changed in place.

    Returns
    -------
    function or class
        What to call instead; the class itself.

    Notes
    -----
    As a decorator `numpy.errstate` itself would put a frame of NumPy between the caller and a warning, which
    names the line that called the package.
    """
    if isinstance(public, type):
        for name, member in list(vars(public).items()):
            if name.startswith("_"):
                continue
            if isinstance(member, classmethod):
                setattr(public, name, classmethod(own_error_state(member.__func__)))
            elif isinstance(member, FunctionType):
                setattr(public, name, own_error_state(member))
            elif isinstance(member, property) and member.fget is not None:
                setattr(public, name, member.getter(own_error_state(member.fget)))
            elif isinstance(member, cached_property):
                member.func = own_error_state(member.func)
        return public

    @wraps(public)
    def in_own_state(*args: Any, **kwargs: Any) -> Any:
        with np.errstate(all="ignore"):
            return public(*args, **kwargs)

    return in_own_state  # type: ignore[return-value]
