"""The numbers that everything is computed in, and the error state of NumPy in which it is.

This is the lowest file of the package.
"""

import operator
import sys
from collections.abc import Callable, Iterable
from functools import reduce, wraps
from types import FunctionType
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]
MAX_FLOAT = sys.float_info.max
"""The largest finite float64: where sums saturate, and the public limit of a metric that has no other."""
_Public = TypeVar("_Public", bound=Callable[..., Any])


def limit_of(cap: float | None) -> float:
    """Return a public cap, or the largest finite float without one."""
    return MAX_FLOAT if cap is None else float(cap)


def sum_in_order(values: Iterable[float]) -> float:
    """Return the sum, added from the left: `sum` rounds otherwise from Python 3.12 on."""
    return reduce(operator.add, values, 0.0)


def own_error_state(public: _Public) -> _Public:
    """Let a function, or each public method of a class, ignore what NumPy says of overflows and the like.

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
        return public

    @wraps(public)
    def in_own_state(*args: Any, **kwargs: Any) -> Any:
        with np.errstate(all="ignore"):
            return public(*args, **kwargs)

    return in_own_state  # type: ignore[return-value]
