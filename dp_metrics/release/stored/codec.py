"""JSON of what is public about a release, and back, by a closed table of types: reading it runs no code.

Numbers, strings and lists stand for themselves. Anything else is an object with one key, which says what it
is; the types and functions that it may name are those that were entered here, and never found by their name.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from datetime import date, datetime, timedelta
from fractions import Fraction
from functools import lru_cache, partial
from types import FunctionType, UnionType
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

import numpy as np

from dp_metrics.inputs.options import Relation
from dp_metrics.mechanisms import MECHANISMS
from dp_metrics.mechanisms._base import BoundsNoise
from dp_metrics.mechanisms.adaptive import AdaptiveNoise, SecondStage, _Stages
from dp_metrics.mechanisms.geometric import SpreadNoise, SumsNoise
from dp_metrics.release.interval import Interval
from dp_metrics.release.noise import CountsNoise
from dp_metrics.release.parts.ranking_loss import HazardByClass, RankingNoise
from dp_metrics.release.released import ReleasedNumbers
from dp_metrics.sensitivity.calibration_bounds import _share
from dp_metrics.sensitivity.noisy_sums import _bezier_variance, _ratio
from dp_metrics.sensitivity.output_bounds import BoundsFacts

DAMAGED = "What is stored of this release is damaged, or was written by another version of dp_metrics."
MALFORMED = (
    ArithmeticError,
    AttributeError,
    LookupError,
    RecursionError,
    TypeError,
    ValueError,
)
"""What reading damaged JSON, or making something of it, may raise."""

Kind = TypeVar("Kind", bound=type)

_KINDS: tuple[Any, ...] = (
    AdaptiveNoise,
    BoundsFacts,
    BoundsNoise,
    CountsNoise,
    HazardByClass,
    Interval,
    RankingNoise,
    SecondStage,
    SpreadNoise,
    SumsNoise,
    _Stages,
    *MECHANISMS.values(),
)
_ADDED: Mapping[str, set[str]] = {
    "Released": {"most_records", "clipped"},
    "Comparison": {"unit"},
    "Planned": {"expected_range"},
}
_NAMES: dict[Any, str] = {kind: kind.__name__ for kind in _KINDS} | {ReleasedNumbers: "Released"}
"""How each type is called in what is stored, whatever its name in the code is."""
_TYPES: dict[str, Any] = {name: kind for kind, name in _NAMES.items()}
_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "ratio": _ratio,
    "variance": _bezier_variance,
    "calibration error": _share,
}
_DTYPES = frozenset("biufUmM")


def storable(name: str) -> Callable[[Kind], Kind]:
    """Return a decorator that enters a frozen dataclass or named tuple of public things under this name."""

    def entered(kind: Kind) -> Kind:
        _NAMES[kind], _TYPES[name] = name, kind
        return kind

    return entered


def encoded(value: Any) -> Any:
    """Return a public value as JSON can hold it.

    Raises
    ------
    TypeError
        If it is, or holds, a thing of a type that is not in the table.
    """
    if value is None or type(value) in (bool, int, str):
        return value
    if isinstance(value, Relation):
        return value.value
    if type(value) is float:
        return value if math.isfinite(value) else {"float": repr(value)}
    if type(value) in (date, datetime):
        return {type(value).__name__: value.isoformat()}
    if type(value) is timedelta:
        return {"timedelta": [value.days, value.seconds, value.microseconds]}
    if isinstance(value, Fraction):  # hexadecimal, for Python refuses to convert long decimals
        return {"fraction": f"{value.numerator:#x}/{value.denominator:#x}"}
    if type(value) is list:
        return [encoded(one) for one in value]
    if type(value) is tuple:
        return {"tuple": [encoded(one) for one in value]}
    if isinstance(value, Mapping):
        if all(type(key) is str for key in value):
            return {"dict": {key: encoded(one) for key, one in value.items()}}
        return {"pairs": [[encoded(key), encoded(one)] for key, one in value.items()]}
    if isinstance(value, np.ndarray | np.generic):
        return _encoded_array(np.asarray(value), "array" if isinstance(value, np.ndarray) else "scalar")
    if isinstance(value, partial):
        return {"partial": [_name_of(value.func), encoded(list(value.args)), encoded(value.keywords)]}
    if isinstance(value, FunctionType):
        return {"function": _name_of(value)}
    kind: Any = type(value)
    if (name := _NAMES.get(kind)) is None:
        raise TypeError(f"{kind.__name__} is no type that can be stored.")
    return {"type": name, "fields": {field: encoded(getattr(value, field)) for field in _fields(kind)}}


def _encoded_array(array: np.ndarray[Any, Any], kind: str) -> Any:
    if array.dtype.kind not in _DTYPES:
        raise TypeError(f"Arrays of {array.dtype} cannot be stored.")
    values = array.astype(np.int64) if array.dtype.kind in "mM" else array
    return {kind: [array.dtype.str, list(array.shape), encoded(values.ravel().tolist())]}


def _name_of(function: Any) -> str:
    for name, known in _FUNCTIONS.items():
        if known is function:
            return name
    raise TypeError("A function that is not in the table cannot be stored.")


def decoded(json: Any) -> Any:
    """Return what `encoded` made such JSON of; raises one of `MALFORMED` for any other."""
    if json is None or isinstance(json, bool | int | float | str):
        return json
    if isinstance(json, list):
        return [decoded(one) for one in json]
    if set(json) == {"type", "fields"}:
        return _made(_TYPES[json["type"]], {name: decoded(one) for name, one in json["fields"].items()})
    ((kind, content),) = json.items()
    return _READERS[kind](content)


def _made(kind: Any, values: dict[str, Any]) -> Any:
    """Return a dataclass or a named tuple with these fields, each of which has to be of its type.

    What earlier versions wrote lacks the fields of `_ADDED`, and has their defaults.
    """
    if {*values} | _ADDED.get(_NAMES[kind], set()) != {*_fields(kind)}:
        raise ValueError(DAMAGED)
    for name, hint in _hints(kind).items():
        if hint is Relation:
            values[name] = Relation(values[name])
        if name in values and not _fits(values[name], hint):
            raise ValueError(DAMAGED)
    return kind(**values)


def _array(content: Any) -> np.ndarray[Any, Any]:
    name, shape, values = content
    dtype = np.dtype(name)
    if dtype.kind not in _DTYPES:
        raise ValueError(DAMAGED)
    found = np.array(decoded(values), dtype=np.int64 if dtype.kind in "mM" else dtype).astype(dtype)
    # a shape that asks for more than there is fails
    return found.reshape([int(size) for size in shape])


def _partial(content: Any) -> Any:
    name, args, keywords = content
    return partial(_FUNCTIONS[name], *decoded(args), **decoded(keywords))


def _fraction(text: Any) -> Fraction:
    return Fraction(*(int(part, 16) for part in str.split(text, "/")))


def _float(text: Any) -> float:
    return {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}[text]


_READERS: Mapping[str, Callable[[Any], Any]] = {
    "date": date.fromisoformat,
    "datetime": datetime.fromisoformat,
    "timedelta": lambda content: timedelta(*content),
    "float": _float,
    "fraction": _fraction,
    "tuple": lambda content: tuple(map(decoded, content)),
    "dict": lambda content: {key: decoded(value) for key, value in content.items()},
    "pairs": lambda content: {decoded(key): decoded(value) for key, value in content},
    "array": _array,
    "scalar": lambda content: _array(content)[()],
    "partial": _partial,
    "function": _FUNCTIONS.__getitem__,
}


@lru_cache(maxsize=256)
def _fields(kind: type) -> tuple[str, ...]:
    named: Any = kind
    return tuple(one.name for one in fields(named)) if is_dataclass(named) else named._fields


@lru_cache(maxsize=256)
def _hints(kind: Any) -> Mapping[str, Any]:
    return get_type_hints(kind)


def _fits(value: Any, hint: Any) -> bool:
    """Return whether a value is of an annotated type, as far as it and the tuples in it show."""
    origin = get_origin(hint)
    if origin in (Union, UnionType):
        return any(_fits(value, one) for one in get_args(hint))
    if hint is Any:
        return True
    kind = origin or hint
    if isinstance(value, str):
        return kind is type(value)
    if kind is float:
        return isinstance(value, float | int) and not isinstance(value, bool)
    if kind is int:
        return isinstance(value, int) and not isinstance(value, bool)
    if isinstance(kind, type) and not isinstance(value, kind):
        return False
    if kind is not tuple:
        return True
    inner = get_args(hint)
    inner = inner[:1] * len(value) if inner[1:] == (...,) else inner
    return len(inner) == len(value) and all(map(_fits, value, inner))
