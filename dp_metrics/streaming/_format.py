"""The byte format of summaries: versioned, checked, and free of code that runs when it is read.

====================  =====================================================================================
bytes                 content
====================  =====================================================================================
8                     the letters ``DPMSUM`` and the bytes 13 and 10, which a transfer as text would damage
4                     version of the format, now 2, big-endian
4                     length of the header, big-endian
as long as that       header: JSON in UTF-8 with the public settings, the counts and sums of the aggregate
                      (whole numbers as hexadecimal strings, those by level as [level, count, mantissas]) and
                      the length of each array
8 for each number     the arrays of the aggregate one after the other, float64, little-endian
32                    SHA-256 of all that stands before
====================  =====================================================================================

Only the very bytes that the summary would be written as again are read, and only if their sums and extremes
fit together. The checksum finds damage, not malice: whoever can write to where summaries are kept can forge
them.

A release relies on these checks: what no records give can make one fail, even after the spend. The checks are
necessary for that, not always sufficient: with sums of squares, for instance, they are those of real numbers.
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

from dp_metrics.inputs.floats import MAX_FLOAT, Floats
from dp_metrics.sensitivity.aggregates import (
    ByLevel,
    CountAggregate,
    LossAggregate,
    VarianceAggregate,
    WeightedLossAggregate,
)
from dp_metrics.sensitivity.exact import LEVELS, LevelSums, in_blocks, in_units, level_units, to_units

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
_VERSION = 2
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
    # raising outside the handler does not chain the original, which may quote the data
    raise ValueError(INCONSISTENT)


def _aggregate(header: dict[str, Any], body: bytes) -> Aggregate:
    kind = _KINDS[header["aggregate"]]
    hints = typing.get_type_hints(kind)
    sizes: dict[str, int] = header["arrays"]
    numbers: dict[str, Any] = header["numbers"]
    if any(hints[name] != Floats for name in sizes):
        raise ValueError
    data = np.frombuffer(body, dtype="<f8").astype(np.float64)
    if sum(sizes.values()) != data.size or min(sizes.values()) < 0 or not np.isfinite(data).all():
        raise ValueError
    ends = list(accumulate(sizes.values(), initial=0))
    values: dict[str, Any] = {name: _number(value, hints[name]) for name, value in numbers.items()}
    values |= {name: data[start:end] for name, (start, end) in zip(sizes, pairwise(ends), strict=True)}
    aggregate = kind(**values)
    if not is_possible(aggregate):
        raise ValueError
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


_MOST_RECORDS = 1 << 53
_NONE = np.empty(0)


def is_possible(
    aggregate: CountAggregate | LossAggregate | WeightedLossAggregate | VarianceAggregate,
) -> bool:
    """Return whether the arrays are as long as the counts say, in order, in range, and fit the sums."""
    if not 0 <= aggregate.n <= _MOST_RECORDS:
        return False
    if isinstance(aggregate, CountAggregate):
        return _are_counts(aggregate.counts, aggregate.n)
    if isinstance(aggregate, LossAggregate):
        return _are_losses(aggregate)
    if isinstance(aggregate, WeightedLossAggregate):
        return _are_weighted(aggregate)
    low, high = aggregate.bounds or (-MAX_FLOAT, MAX_FLOAT)
    kept = min(aggregate.n, aggregate.capacity)
    return (
        _are_falling(aggregate.largest, kept, low, high)
        and _are_falling(-aggregate.smallest, kept, -high, -low)
        and _is_sum(aggregate.n, aggregate.total, aggregate.largest, aggregate.smallest, aggregate.squares)
    )


def _are_counts(counts: Floats, n: int) -> bool:
    are_whole = bool((counts >= 0).all()) and not (counts % 1).any()
    return are_whole and sum(map(int, counts.tolist())) == n


def _are_losses(aggregate: LossAggregate) -> bool:
    kept = min(aggregate.n, aggregate.capacity)
    is_bounded = aggregate.cap is not None
    return (
        _are_falling(aggregate.largest, kept, 0.0, aggregate.limit)
        and _are_falling(-aggregate.smallest, kept if is_bounded else 0, -aggregate.limit, 0.0)
        and _is_sum(aggregate.n, aggregate.total, aggregate.largest, aggregate.smallest)
        and _are_levels(aggregate.by_level, aggregate.n, aggregate.total)
        and _is_end(aggregate.by_level, aggregate.largest, is_top=True)
        and _is_end(aggregate.by_level, aggregate.smallest, is_top=False)
    )


def _are_weighted(aggregate: WeightedLossAggregate) -> bool:
    n, weight, limits = aggregate.n, aggregate.weight, aggregate.limits
    limit = MAX_FLOAT if limits is None else aggregate.largest_limit
    return (
        0 <= weight <= n * _unit(MAX_FLOAT)
        and (weight > 0 or not (aggregate.total or limits))
        and _are_falling(aggregate.largest, min(n, aggregate.capacity), 0.0, limit)
        and _is_sum(n, aggregate.total, aggregate.largest, _NONE)
        and _are_levels(aggregate.by_level, n, aggregate.total)
        and _is_end(aggregate.by_level, aggregate.largest, is_top=True)
        and _is_room(aggregate)
    )


def _is_room(aggregate: WeightedLossAggregate) -> bool:
    """Return whether the limits of the terms, and what is left to them, fit together."""
    n, room, rest = aggregate.n, aggregate.headroom, aggregate.headroom_rest
    if aggregate.limits is None:
        return room.size == rest.size == aggregate.largest_limit == 0
    kept, largest = min(n, aggregate.capacity), aggregate.largest_limit
    if not largest <= MAX_FLOAT:  # nan fails this as well
        return False
    if not (_are_falling(room, kept, 0.0, largest) and rest.size == kept and (room + rest == room).all()):
        return False
    exact = [a + b for a, b in zip(to_units(room), to_units(rest), strict=True)]
    left = aggregate.limits - aggregate.total - sum(exact)
    is_sum = min(n, 1) * _unit(largest) <= aggregate.limits <= n * _unit(largest)
    return is_sum and 0 <= left <= (n - kept) * sum(exact[-1:])


def _are_falling(values: Floats, size: int, low: float, high: float) -> bool:
    """Return whether this is the right number of values in a range, each at most the one before."""
    # a comparison cannot overflow, as the difference of finite floats can
    is_falling = bool((values[1:] <= values[:-1]).all())
    return values.size == size and is_falling and bool(((values >= low) & (values <= high)).all())


def _is_sum(n: int, total: int, largest: Floats, smallest: Floats, squares: int | None = None) -> bool:
    """Return whether n values can have these extremes, this sum, and this sum of squares.

    Where no smallest ones are known, all are at least 0.
    """
    both = max(largest.size + smallest.size - n, 0)  # so many values are at both ends
    ends = largest[largest.size - both :], smallest[smallest.size - both :]
    if not np.array_equal(ends[0][::-1], ends[1]):
        return False
    known = to_units(np.concatenate([largest, smallest[: smallest.size - both]]))
    rest, left = n - len(known), total - sum(known)
    least, most = sum(to_units(smallest[-1:])), sum(to_units(largest[-1:]))
    if not ((both or least <= most) and rest * least <= left <= rest * most):
        return False
    if squares is None:
        return True
    square = squares - sum(value * value for value in known)
    return left**2 <= rest * square and 0 <= square <= (least + most) * left - rest * least * most


def _are_levels(by_level: ByLevel | None, n: int, total: int) -> bool:
    """Return whether the sums by level are in order, add up, and lie between their levels."""
    if by_level is None:
        return False
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


def _is_end(by_level: ByLevel | None, values: Floats, *, is_top: bool) -> bool:
    """Return whether the levels at the top, or at the bottom, hold these values and no others."""
    if by_level is None or values.size == 0:
        return True
    sums = LevelSums()
    for block in in_blocks(values):
        sums.add(block)
    found = sums.found()
    edge = min(found) if is_top else max(found)
    beyond = {k: v for k, v in by_level.items() if (k > edge if is_top else k < edge)}
    if edge not in by_level or beyond != {k: v for k, v in found.items() if k != edge}:
        return False
    count, part = (a - b for a, b in zip(by_level[edge], found[edge], strict=True))
    last = _unit(values[-1])
    low, high = (level_units(edge), last) if is_top else (last, level_units(edge + 1))
    return count * low <= in_units(edge, part) <= count * high


def _unit(value: float) -> int:
    """Return a float in units."""
    return to_units(np.array([value]))[0]
