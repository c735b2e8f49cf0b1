"""The byte format of summaries: versioned, checked, and free of code that runs when it is read.

====================  =====================================================================================
bytes                 content
====================  =====================================================================================
8                     the letters ``DPMSUM`` and the bytes 13 and 10, which a transfer as text would damage
4                     version of the format, now 1, big-endian
4                     length of the header, big-endian
as long as that       header: JSON in UTF-8 with the public settings, the counts and sums of the aggregate
                      (whole numbers as hexadecimal strings) and the length of each array
8 for each number     the arrays of the aggregate one after the other, float64, little-endian
32                    SHA-256 of all that stands before
====================  =====================================================================================

The checksum finds damage, not malice: whoever can write to where summaries are kept can forge them.
"""

import dataclasses
import hashlib
import json
import struct
import types
import typing
from typing import Any

import numpy as np

from dp_metrics._aggregates import LossAggregate, VarianceAggregate, WeightedLossAggregate

__all__ = ["Aggregate", "pack", "unpack"]

Aggregate: typing.TypeAlias = LossAggregate | WeightedLossAggregate | VarianceAggregate

_MAGIC = b"DPMSUM\r\n"
_VERSION = 1
_FRONT = struct.Struct(">8sII")
_DIGEST = 32
_KINDS: dict[str, type[Aggregate]] = {
    kind.__name__: kind for kind in (LossAggregate, WeightedLossAggregate, VarianceAggregate)
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
            numbers[field.name] = hex(value) if isinstance(value, int) else value
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
    try:
        header = json.loads(content[_FRONT.size : _FRONT.size + length])
        return header["settings"], _aggregate(header, content[_FRONT.size + length :])
    except (ValueError, TypeError, KeyError, AttributeError):
        pass
    # raised here, not in the handler: the original, which may quote the data, is not chained to it
    raise ValueError("These bytes are not a consistent summary.")


def _aggregate(header: dict[str, Any], body: bytes) -> Aggregate:
    kind = _KINDS[header["aggregate"]]
    sizes: dict[str, int] = header["arrays"]
    numbers = np.frombuffer(body, dtype="<f8").astype(np.float64)
    pieces = np.split(numbers, np.cumsum(list(sizes.values())))
    if pieces.pop().size or not np.isfinite(numbers).all():
        raise ValueError
    values: dict[str, Any] = dict(zip(sizes, pieces, strict=True))
    hints = typing.get_type_hints(kind)
    for name, value in header["numbers"].items():
        values[name] = _number(value, hints[name])
    aggregate = kind(**values)
    _check_consistent(aggregate)
    return aggregate


def _number(value: Any, hint: Any) -> Any:
    """Return a whole number, a float, None, or a pair of floats, whichever its field holds."""
    if value is None and types.NoneType in typing.get_args(hint):
        return None
    if hint is int or int in typing.get_args(hint):
        return int(value, 16)
    if isinstance(value, list):
        low, high = value
        return float(low), float(high)
    return float(value)


def _check_consistent(aggregate: Aggregate) -> None:
    """Raise unless the arrays are as long as the counts say, and in order."""
    n, capacity = aggregate.n, aggregate.capacity
    if n < 0 or capacity < 1:
        raise ValueError
    falling = [aggregate.largest]
    kept = min(n, capacity)
    if isinstance(aggregate, WeightedLossAggregate):
        falling.append(aggregate.room)
        if aggregate.room.size != aggregate.room_rest.size or aggregate.weight < 0:
            raise ValueError
        kept_low = 0 if aggregate.limits is None else kept
        low = aggregate.room
    else:
        low = aggregate.smallest
        falling.append(-low)
        kept_low = 0 if isinstance(aggregate, LossAggregate) and aggregate.cap is None else kept
    if aggregate.largest.size != kept or low.size != kept_low:
        raise ValueError
    if any((np.diff(array) > 0).any() for array in falling):
        raise ValueError
