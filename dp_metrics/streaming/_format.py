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

from dp_metrics.inputs.floats import Floats
from dp_metrics.sensitivity.aggregates import (
    ByLevel,
    CountAggregate,
    LossAggregate,
    VarianceAggregate,
    WeightedLossAggregate,
)
from dp_metrics.streaming._possible import is_possible

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
