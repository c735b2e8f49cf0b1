"""Forged summaries with a checksum that fits: refused in a sentence, or no worse than one of other records.

What needs no search is in test_format.
"""

import hashlib
import json
import math
import random
import struct
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pytest

import dp_metrics as dp
from dp_metrics import ConfusionSummary, LossSummary, PrivacyAccountant, ScoreSummary, VarianceSummary
from dp_metrics.sensitivity.exact import in_units

# it follows from public numbers
pytestmark = pytest.mark.filterwarnings("ignore:.*the summary keeps")

FRONT = struct.Struct(">8sII")
MAGIC, DIGEST = b"DPMSUM\r\n", 32
CLEAR = ("These bytes are not", "The bytes of this summary", "This summary has version")
PUBLIC = (
    "needs a ",
    "cannot be used with ",
    "options of the summary leave open",
)  # reasons for which a release is refused, whatever the records


@dataclass(frozen=True)
class Parts:
    """What the bytes of a summary are made of."""

    header: dict[str, Any]
    body: bytes

    @classmethod
    def of(cls, data: bytes) -> "Parts":
        """Take bytes apart."""
        _, _, length = FRONT.unpack_from(data)
        return cls(json.loads(data[16 : 16 + length]), data[16 + length : -DIGEST])

    def joined(self) -> bytes:
        """Return bytes with a checksum that fits."""
        text = json.dumps(self.header).encode()
        return sealed(FRONT.pack(MAGIC, 2, len(text)) + text + self.body)


def sealed(content: bytes) -> bytes:
    """Return bytes with their checksum."""
    return content + hashlib.sha256(content).digest()


@cache
def genuine() -> tuple[Any, ...]:
    """Return summaries of all kinds, of few and of many records."""
    rng = np.random.default_rng(0)
    y, p = rng.normal(size=300), rng.normal(size=300)
    weights, classes = rng.uniform(0.1, 2.0, 300), rng.integers(0, 3, 300)
    proba = rng.dirichlet([1.0, 1.0, 1.0], 300)
    few = slice(5)
    return (
        LossSummary.from_data(dp.private_mae, y, p, bounds=(-4, 4), capacity=32),
        LossSummary.from_data(dp.private_mae, y[few], p[few], bounds=(-4, 4), capacity=32),
        LossSummary.from_data(dp.private_mae, y[:40], p[:40], bounds=(-4, 4), capacity=32),
        LossSummary.from_data(dp.private_mse, y, p, capacity=32),
        LossSummary.from_data(dp.private_mse, y.reshape(100, 3), p.reshape(100, 3), capacity=128),
        LossSummary.from_data(dp.private_zero_one_loss, classes, np.roll(classes, 1), capacity=32),
        LossSummary.from_data(dp.private_log_loss, classes, proba, labels=[0, 1, 2], capacity=32),
        LossSummary.from_data(dp.private_mean_loss, p**2, sample_weight=weights, max_loss=9, capacity=32),
        LossSummary.from_data(dp.private_mse, y, p, sample_weight=weights, capacity=32),
        VarianceSummary.from_data(y, capacity=32),
        VarianceSummary.from_data(y, capacity=400),
        VarianceSummary.from_data(y[:40], capacity=32),
        VarianceSummary.from_data(y, bounds=(-2, 2), capacity=32),
        ConfusionSummary.from_data(classes > 0, p > 0),
        ConfusionSummary.from_data(classes, np.roll(classes, 1), labels=[0, 1, 2]),
        ScoreSummary.from_data(classes > 0, proba[:, 0]),
        ScoreSummary.from_data(classes > 0, p, edges=[-1.0, 0.0, 1.0]),
    )


BIG = [10**3, 2**31, 2**53, 2**53 + 1, 2**63, 2**64, 10**30, 10**400, 1 << 2200, 1 << 20_000]
FLOATS = [
    *(0.0, -0.0, 5e-324, -5e-324, 2.2e-308, 1e-200, 0.5, 1.0, 1.0 + 2**-52, -1.0, 4.0, 1e16, 2.0**53),
    *(2.0**62, 2.0**63, 1e154, 1e300, 1.7976931348623157e308, -1.7976931348623157e308, math.inf, -math.inf),
    math.nan,
]
STRANGE = [None, True, False, -1, 0, 1, 3, 0.5, 1e300, math.inf, math.nan]
STRANGE += ["", "x", "0x2", "-0x1", [], {}, [1]]


def sealed_bits(rng: random.Random, data: bytes) -> bytes:
    damaged = bytearray(data[:-DIGEST])
    for _ in range(rng.randint(1, 8)):
        damaged[rng.randrange(len(damaged))] ^= 1 << rng.randrange(8)
    return sealed(bytes(damaged))


def spliced(rng: random.Random, data: bytes) -> bytes:
    one, other = Parts.of(data), Parts.of(rng.choice(genuine()).to_bytes())
    field = rng.choice([*one.header, "body", "a number"])
    if field == "body":
        return Parts(one.header, other.body).joined()
    if field == "a number":
        name = rng.choice([*one.header["numbers"]])
        one.header["numbers"][name] = other.header["numbers"].get(name, "0x1")
    else:
        one.header[field] = other.header[field]
    return Parts(one.header, rng.choice([one.body, other.body])).joined()


def numbers(rng: random.Random, data: bytes) -> bytes:
    parts = Parts.of(data)
    numbers = parts.header["numbers"]
    for name in rng.sample([*numbers], rng.randint(1, min(2, len(numbers)))):
        numbers[name] = other_number(rng, numbers[name])
    return parts.joined()


def other_number(rng: random.Random, old: Any) -> Any:
    if isinstance(old, list) and old and rng.random() < 0.8:  # the sums by level, or bounds
        new = list(old)
        place = rng.randrange(len(new))
        if isinstance(new[place], list) and rng.random() < 0.7:
            field = rng.randrange(3)
            new[place] = [other_number(rng, v) if k == field else v for k, v in enumerate(new[place])]
            return new
        return rng.choice([new[:place] + new[place + 1 :], [*new, new[place]], new[::-1]])
    if isinstance(old, str) and old.startswith("0x") and rng.random() < 0.6:
        value = int(old, 16)
        near = [value + 1, value - 1, value * 2, value // 2, -value, value + (1 << 1074), value ^ 1 << 1060]
        return hex(rng.choice(near))
    return rng.choice([*map(hex, BIG), *STRANGE, *FLOATS])


def contents(rng: random.Random, data: bytes) -> bytes:
    parts = Parts.of(data)
    values = np.frombuffer(parts.body, "<f8").copy()
    for _ in range(rng.randint(1, 3) if values.size else 0):
        place, other = rng.randrange(values.size), rng.randrange(values.size)
        values[place] = rng.choice([*FLOATS, values[other], np.nextafter(values[place], 9), -values[place]])
    return Parts(parts.header, values.tobytes()).joined()


def settings(rng: random.Random, data: bytes) -> bytes:
    parts = Parts.of(data)
    place = parts.header["settings"]
    while True:
        key = rng.choice([*place]) if isinstance(place, dict) else rng.randrange(len(place))
        if not isinstance(place[key], dict | list) or not place[key] or rng.random() < 0.3:
            break
        place = place[key]
    names = ["private_mse", "private_variance", "private_quantile", "private_log_loss", "LossSummary"]
    place[key] = rng.choice([*STRANGE, *BIG[:6], *names, [0, 1], [1, 0], {"bounds": [0, 1]}])
    return parts.joined()


def capacity(rng: random.Random, data: bytes) -> bytes:
    parts = Parts.of(data)
    lie = rng.choice([1, 2, 31, 33, 64, 10**6, 10**12, 2**63, 10**30])
    for place, written in ((parts.header["settings"], lie), (parts.header["numbers"], hex(lie))):
        if rng.random() < 0.8:
            place["capacity"] = written
    return parts.joined()


def consistent(rng: random.Random, data: bytes) -> bytes:
    """Change extremes, sums and counts together, so that much of it fits."""
    parts = Parts.of(data)
    numbers, sizes = parts.header["numbers"], parts.header["arrays"]
    values = np.frombuffer(parts.body, "<f8").copy()
    if "counts" in sizes:
        values[rng.randrange(values.size)] = rng.choice([0.0, 1.0, 2.0**53, 2.0**60, 2.0**63, 1e30, 1e300])
        numbers["n"] = hex(sum(map(int, values.tolist())))
        return Parts(parts.header, values.tobytes()).joined()
    choice = rng.randrange(4)
    if choice == 0:  # another extreme, and sums that follow
        place = rng.randrange(max(values.size // 2, 1))
        change = units(values[place] * rng.choice([0.5, 0.999, 1.001, 2.0])) - units(values[place])
        values[place] += change / (1 << 1074)
        numbers["total"] = hex(int(numbers["total"], 16) + change)
    elif choice == 1:  # other squares
        name = "squares" if "squares" in numbers else "total"
        percent = rng.choice([rng.randint(1, 200), rng.uniform(99, 101)])
        numbers[name] = hex(int(numbers[name], 16) * round(1000 * percent) // 100_000)
    elif choice == 2:  # another end
        end = slice(sizes["largest"], None)
        values[end] = values[end] * rng.choice([0.0, 0.5, 0.9, 1.1])
    else:  # a record more in one of the levels
        levels = numbers.get("by_level") or [["0x3ff0", "0x1", "0x10000000000000"]]
        level = rng.choice(levels)
        count, total = int(level[1], 16), int(level[2], 16)
        mean = total // count
        level[1], level[2] = hex(count + 1), hex(total + mean)
        numbers["n"] = hex(int(numbers["n"], 16) + 1)
        numbers["total"] = hex(int(numbers["total"], 16) + in_units(int(level[0], 16), mean))
    return Parts(parts.header, values.tobytes()).joined()


def units(value: float) -> int:
    numerator, denominator = float(value).as_integer_ratio()
    return (numerator << 1074) // denominator


FORGERS: dict[str, Callable[[random.Random, bytes], bytes]] = {
    "bits flipped, with a new checksum": sealed_bits,
    "spliced from two": spliced,
    "other counts and sums": numbers,
    "other extremes": contents,
    "other settings": settings,
    "another capacity": capacity,
    "changed consistently": consistent,
}


RULES = [None, "adaptive", "hazard", "above_threshold", "geometric", "laplace", "inverse_sensitivity"]


def assert_released_like_any_other(summary: Any, rng: random.Random) -> None:
    """Check that a release gives finite numbers, or is refused for a public reason before the spend."""
    budget = PrivacyAccountant(1000)
    options: dict[str, Any] = {
        "epsilon": rng.choice([0.1, 1.0, 10.0]),
        "neighboring": rng.choice(["replace_one", "add_or_remove_one"]),
    }
    if isinstance(summary, LossSummary | VarianceSummary):
        options["mechanism"] = rng.choice(RULES)
    refusal = ""
    try:
        released = summary.release(accountant=budget, **options)
    except ValueError as error:
        refusal = str(error)
    if refusal:
        assert any(reason in refusal for reason in PUBLIC), (options, refusal)
        assert budget.spent == 0
    elif isinstance(released, float):
        assert 0 <= released < math.inf, options
    else:
        assert np.isfinite(released.result.value).all(), options


def assert_harmless(kind: type[Any], data: bytes, base: Any, rng: random.Random) -> bool:
    """Read a forgery, merge and release it; return whether it was taken for a summary."""
    summary, refusal = None, ""
    try:
        summary = kind.from_bytes(data)
    except ValueError as error:
        refusal = str(error)
    if summary is None:
        assert refusal.startswith(CLEAR)
        return False
    assert summary.to_bytes() == data
    assert_released_like_any_other(summary, rng)
    try:
        merged = base.merge(summary)
    except ValueError:  # of other settings
        return True
    assert_released_like_any_other(merged, rng)
    return True


def test_a_genuine_summary_is_taken_apart_joined_and_harmless():
    for summary in genuine():
        assert Parts.of(summary.to_bytes()).joined() == summary.to_bytes()
    assert assert_harmless(LossSummary, genuine()[0].to_bytes(), genuine()[0], random.Random(0))


@pytest.mark.slow
@pytest.mark.parametrize("name", FORGERS)
def test_a_forged_summary_is_refused_in_a_sentence_or_released_like_any_other(name):
    rng, changed, taken = random.Random(0), 0, 0
    for _ in range(300):
        base = rng.choice(genuine())
        original = base.to_bytes()
        data = FORGERS[name](rng, original)
        if data != original:
            changed += 1
            taken += assert_harmless(type(base), data, base, rng)
    assert taken < changed
    assert taken > 0 or name == "spliced from two"
