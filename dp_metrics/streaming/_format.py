"""The byte format of summaries: versioned, checked, and free of code that runs when it is read.

====================  =====================================================================================
bytes                 content
====================  =====================================================================================
8                     the letters ``DPMSUM`` and the bytes 13 and 10, which a transfer as text would damage
4                     version of the format, now 1, big-endian
4                     length of the header, big-endian
as long as that       header: JSON in UTF-8 with the public settings, the counts and sums of the aggregate
                      (whole numbers as hexadecimal strings, those by level as [level, count, mantissas]) and
                      the length of each array
8 for each number     the arrays of the aggregate one after the other, float64, little-endian
32                    SHA-256 of all that stands before
====================  =====================================================================================

Only the very bytes that the summary would be written as again are read. The checksum finds damage, not
malice: whoever can write to where summaries are kept can forge them.
"""

import contextlib
import dataclasses
import hashlib
import json
import struct
import types
import typing
from itertools import accumulate, pairwise
from typing import Any

import numpy as np

from dp_metrics.inputs.floats import MAX_FLOAT
from dp_metrics.sensitivity.aggregates import (
    ByLevel,
    CountAggregate,
    LossAggregate,
    VarianceAggregate,
    WeightedLossAggregate,
)
from dp_metrics.sensitivity.exact import LEVELS, in_units, level_units, to_units

__all__ = ["INCONSISTENT", "MALFORMED", "Aggregate", "pack", "unpack"]

Aggregate: typing.TypeAlias = CountAggregate | LossAggregate | WeightedLossAggregate | VarianceAggregate

INCONSISTENT = "These bytes are not a consistent summary."
MALFORMED = (
    ValueError,
    TypeError,
    KeyError,
    AttributeError,
    OverflowError,
    RecursionError,
    MemoryError,
)
"""What reading a header can raise that somebody has made up."""

_MAGIC = b"DPMSUM\r\n"
_VERSION = 1
_FRONT = struct.Struct(">8sII")
_DIGEST = 32
_KINDS: dict[str, type[Aggregate]] = {
    kind.__name__: kind for kind in (CountAggregate, LossAggregate, WeightedLossAggregate, VarianceAggregate)
}


def pack(settings: dict[str, Any], aggregate: Aggregate) -> bytes:
    """Return public settings, of JSON types, and an aggregate as bytes."""
    numbers: dict[str, Any] = {}
    arrays: dict[str, np.ndarray[Any, Any]] = {}
    for field in dataclasses.fields(aggregate):
        value = getattr(aggregate, field.name)
        if isinstance(value, np.ndarray):
            arrays[field.name] = value
        else:
            numbers[field.name] = _written(value)
    header = json.dumps(
        {
            "settings": settings,
            "aggregate": type(aggregate).__name__,
            "numbers": numbers,
            "arrays": {name: array.size for name, array in arrays.items()},
        },
        allow_nan=False,
    ).encode()
    body = b"".join(array.astype("<f8").tobytes() for array in arrays.values())
    data = _FRONT.pack(_MAGIC, _VERSION, len(header)) + header + body
    return data + hashlib.sha256(data).digest()


def _written(value: Any) -> Any:
    """Return a field as types of JSON."""
    if isinstance(value, dict):
        return [[hex(level), hex(count), hex(total)] for level, (count, total) in value.items()]
    return hex(value) if isinstance(value, int) else value


def unpack(data: bytes) -> tuple[dict[str, Any], Aggregate]:
    """Return what was packed.

    Raises
    ------
    ValueError
        If the bytes are not those of a summary, are damaged, or have a version that is not known.
    """
    if not isinstance(data, bytes | bytearray | memoryview):
        raise TypeError("data must be bytes.")
    data = bytes(data)
    if len(data) < _FRONT.size + _DIGEST or not data.startswith(_MAGIC):
        raise ValueError("These bytes are not a summary of dp_metrics.")
    _, version, length = _FRONT.unpack_from(data)
    content = data[:-_DIGEST]
    if hashlib.sha256(content).digest() != data[-_DIGEST:]:
        raise ValueError("The bytes of this summary are damaged or incomplete.")
    if version != _VERSION:
        raise ValueError(f"This summary has version {version} of the format; known is {_VERSION}.")
    with contextlib.suppress(*MALFORMED):
        header = json.loads(content[_FRONT.size : _FRONT.size + length])
        if isinstance(header["settings"], dict):
            return header["settings"], _aggregate(header, content[_FRONT.size + length :])
    # raised here, not in a handler: the original, which may quote the data, is not chained to it
    raise ValueError(INCONSISTENT)


def _aggregate(header: dict[str, Any], body: bytes) -> Aggregate:
    kind = _KINDS[header["aggregate"]]
    hints = typing.get_type_hints(kind)
    sizes: dict[str, int] = header["arrays"]
    numbers: dict[str, Any] = header["numbers"]
    if any(typing.get_origin(hints[name]) is not np.ndarray for name in sizes):
        raise ValueError
    data = np.frombuffer(body, dtype="<f8").astype(np.float64)
    if sum(sizes.values()) != data.size or min(sizes.values()) < 0 or not np.isfinite(data).all():
        raise ValueError
    ends = list(accumulate(sizes.values(), initial=0))
    values: dict[str, Any] = {name: _number(value, hints[name]) for name, value in numbers.items()}
    values |= {name: data[start:end] for name, (start, end) in zip(sizes, pairwise(ends), strict=True)}
    aggregate = kind(**values)
    _check_consistent(aggregate)
    return aggregate


def _number(value: Any, hint: Any) -> Any:
    """Return a whole number, a float, None, a pair of floats, or sums by level, whichever its field holds."""
    if value is None and types.NoneType in typing.get_args(hint):
        return None
    if ByLevel in typing.get_args(hint):
        return {int(level, 16): (int(count, 16), int(total, 16)) for level, count, total in value}
    if hint is int or int in typing.get_args(hint):
        return int(value, 16)
    if isinstance(value, list):
        low, high = value
        return float(low), float(high)
    return float(value)


def _check_consistent(aggregate: Aggregate) -> None:
    """Raise unless the arrays are as long as the counts say, in order, in range, and fit the sums."""
    if isinstance(aggregate, CountAggregate):
        counts = aggregate.counts
        if not (counts >= 0).all() or (counts % 1).any() or sum(map(int, counts.tolist())) != aggregate.n:
            raise ValueError
        return
    n, total, largest = aggregate.n, aggregate.total, aggregate.largest
    kept = min(n, aggregate.capacity)
    low, high, least = 0.0, MAX_FLOAT, 0
    if isinstance(aggregate, WeightedLossAggregate):
        falling, bounded = aggregate.headroom, aggregate.limits is not None
        fits = aggregate.headroom_rest.size == falling.size and bool((falling >= 0).all())
        fits &= aggregate.weight >= 0 and (aggregate.limits is None or total <= aggregate.limits)
    else:
        falling = -aggregate.smallest
        if isinstance(aggregate, LossAggregate):
            bounded, high, fits = aggregate.cap is not None, aggregate.limit, True
        else:
            low, high = aggregate.bounds or (-MAX_FLOAT, MAX_FLOAT)
            least = sum(to_units(aggregate.smallest[:1]))
            bounded, fits = True, total**2 <= n * aggregate.squares
        fits &= bool(((aggregate.smallest >= low) & (aggregate.smallest <= high)).all())
    fits &= n >= 0 and largest.size == kept and falling.size == (kept if bounded else 0)
    fits &= bool(((largest >= low) & (largest <= high)).all())
    # compared, not subtracted: a difference of finite floats can overflow
    fits &= all(bool((array[1:] <= array[:-1]).all()) for array in (largest, falling))
    if not isinstance(aggregate, VarianceAggregate):
        fits &= aggregate.by_level is not None and _levels_fit(aggregate.by_level, n, total)
    units = to_units(largest)
    # what is not kept lies between the least value and the last that is kept
    fits &= (n - kept) * least <= total - sum(units) <= (n - kept) * sum(units[-1:])
    if not fits:
        raise ValueError


def _levels_fit(by_level: ByLevel, n: int, total: int) -> bool:
    """Return whether the sums by level are in order, add up, and lie between their levels."""
    numbers = list(by_level)
    return (
        all(a < b for a, b in pairwise(numbers))
        and all(0 <= number < LEVELS for number in numbers)
        and sum(count for count, _ in by_level.values()) == n
        and sum(in_units(number, part) for number, (_, part) in by_level.items()) == total
        and all(
            count > 0
            and count * level_units(number) <= in_units(number, part) < count * level_units(number + 1)
            for number, (count, part) in by_level.items()
        )
    )
