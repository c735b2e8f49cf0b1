"""Forged summaries: refused with a clear sentence, or no worse than one that was made of other records."""

import hashlib
import json
import math
import random
import resource
import struct
import time
import warnings
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeAlias

import numpy as np
from tqdm import tqdm

import dp_metrics as dp
from dp_metrics import ConfusionSummary, LossSummary, PrivacyAccountant, ScoreSummary, VarianceSummary
from dp_metrics.sensitivity.exact import in_units
from faults.findings import Finding, Size

__all__ = ["FORGERS", "forged", "genuine", "judged", "sealed"]

_FRONT = struct.Struct(">8sII")
_MAGIC, _DIGEST = b"DPMSUM\r\n", 32
_CLEAR = ("These bytes are not", "The bytes of this summary", "This summary has version")
_PUBLIC = ("needs a ", "cannot be used with ")  # reasons for which a release is refused, whatever the records
_SLOW = 5.0  # seconds, for one forgery
_MEMORY = 512  # MiB more than before, for all of them

Header: TypeAlias = dict[str, Any]


@dataclass(frozen=True)
class Parts:
    """What the bytes of a summary are made of."""

    header: Header
    body: bytes
    version: int = 1

    @classmethod
    def of(cls, data: bytes) -> "Parts":
        """Take bytes apart."""
        _, version, length = _FRONT.unpack_from(data)
        return cls(json.loads(data[16 : 16 + length]), data[16 + length : -_DIGEST], version)

    def joined(self) -> bytes:
        """Return bytes with a checksum that fits."""
        text = json.dumps(self.header).encode()
        return sealed(_FRONT.pack(_MAGIC, self.version, len(text)) + text + self.body)


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


_BIG = [10**3, 2**31, 2**53, 2**53 + 1, 2**63, 2**64, 10**30, 10**400, 1 << 2200, 1 << 20_000]
_FLOATS = [
    *(0.0, -0.0, 5e-324, -5e-324, 2.2e-308, 1e-200, 0.5, 1.0, 1.0 + 2**-52, -1.0, 4.0, 1e16, 2.0**53),
    *(2.0**62, 2.0**63, 1e154, 1e300, 1.7976931348623157e308, -1.7976931348623157e308, math.inf, -math.inf),
    math.nan,
]
_STRANGE = [None, True, False, -1, 0, 1, 3, 0.5, 1e300, math.inf, math.nan]
_STRANGE += ["", "x", "0x2", "-0x1", [], {}, [1]]


def _bits(rng: random.Random, data: bytes) -> bytes:
    damaged = bytearray(data)
    for _ in range(rng.randint(1, 8)):
        damaged[rng.randrange(len(damaged))] ^= 1 << rng.randrange(8)
    return bytes(damaged)


def _truncated(rng: random.Random, data: bytes) -> bytes:
    start, end = sorted(rng.choices(range(len(data) + 1), k=2))
    return rng.choice([data[:end], data[start:], data[:start] + data[end:], data + data[start:end]])


def _sealed_bits(rng: random.Random, data: bytes) -> bytes:
    return sealed(_bits(rng, data[:-_DIGEST]))


def _sealed_truncation(rng: random.Random, data: bytes) -> bytes:
    return sealed(_truncated(rng, data[:-_DIGEST]))


def _spliced(rng: random.Random, data: bytes) -> bytes:
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


def _lengths(rng: random.Random, data: bytes) -> bytes:
    if rng.random() < 0.5:
        _, version, length = _FRONT.unpack_from(data)
        lie = rng.choice([0, 1, length - 1, length + 1, length + 8, 2**31, 2**32 - 1])
        return sealed(_FRONT.pack(_MAGIC, version, lie) + data[16:-_DIGEST])
    parts = Parts.of(data)
    name = rng.choice([*parts.header["arrays"]])
    old = parts.header["arrays"][name]
    parts.header["arrays"][name] = rng.choice([-1, 0, old - 1, old + 1, 10**18, float(old), True, str(old)])
    return parts.joined()


def _numbers(rng: random.Random, data: bytes) -> bytes:
    parts = Parts.of(data)
    numbers = parts.header["numbers"]
    for name in rng.sample([*numbers], rng.randint(1, min(2, len(numbers)))):
        numbers[name] = _other_number(rng, numbers[name])
    return parts.joined()


def _other_number(rng: random.Random, old: Any) -> Any:
    if isinstance(old, list) and old and rng.random() < 0.8:  # the sums by level, or bounds
        new = list(old)
        place = rng.randrange(len(new))
        if isinstance(new[place], list) and rng.random() < 0.7:
            field = rng.randrange(3)
            new[place] = [_other_number(rng, v) if k == field else v for k, v in enumerate(new[place])]
            return new
        return rng.choice([new[:place] + new[place + 1 :], [*new, new[place]], new[::-1]])
    if isinstance(old, str) and old.startswith("0x") and rng.random() < 0.6:
        value = int(old, 16)
        near = [value + 1, value - 1, value * 2, value // 2, -value, value + (1 << 1074), value ^ 1 << 1060]
        return hex(rng.choice(near))
    return rng.choice([*map(hex, _BIG), *_STRANGE, *_FLOATS])


def _contents(rng: random.Random, data: bytes) -> bytes:
    parts = Parts.of(data)
    values = np.frombuffer(parts.body, "<f8").copy()
    for _ in range(rng.randint(1, 3) if values.size else 0):
        place, other = rng.randrange(values.size), rng.randrange(values.size)
        values[place] = rng.choice([*_FLOATS, values[other], np.nextafter(values[place], 9), -values[place]])
    return Parts(parts.header, values.tobytes()).joined()


def _settings(rng: random.Random, data: bytes) -> bytes:
    parts = Parts.of(data)
    place = parts.header["settings"]
    while True:
        key = rng.choice([*place]) if isinstance(place, dict) else rng.randrange(len(place))
        if not isinstance(place[key], dict | list) or not place[key] or rng.random() < 0.3:
            break
        place = place[key]
    names = ["private_mse", "private_variance", "private_quantile", "private_log_loss", "LossSummary"]
    place[key] = rng.choice([*_STRANGE, *_BIG[:6], *names, [0, 1], [1, 0], {"bounds": [0, 1]}])
    return parts.joined()


def _capacity(rng: random.Random, data: bytes) -> bytes:
    parts = Parts.of(data)
    lie = rng.choice([1, 2, 31, 33, 64, 10**6, 10**12, 2**63, 10**30])
    for place, written in ((parts.header["settings"], lie), (parts.header["numbers"], hex(lie))):
        if rng.random() < 0.8:
            place["capacity"] = written
    return parts.joined()


def _version(rng: random.Random, data: bytes) -> bytes:
    parts = Parts.of(data)
    if rng.random() < 0.5:
        return Parts(parts.header, parts.body, rng.choice([0, 2, 255, 2**32 - 1])).joined()
    kinds = [f"{kind}Aggregate" for kind in ("Loss", "WeightedLoss", "Variance", "Count", "Order")]
    parts.header["aggregate"] = rng.choice([*kinds, "Path", "", None, 3])
    return parts.joined()


def _bomb(rng: random.Random, data: bytes) -> bytes:
    parts = Parts.of(data)
    settings, numbers = parts.header["settings"], parts.header["numbers"]
    kind = rng.randrange(8)
    if kind == 0:
        settings["labels"] = [*range(rng.choice([5000, 20_000, 100_000]))]
    elif kind == 1:
        settings["edges"] = [*range(rng.choice([10**3, 10**5]))]
    elif kind == 2 and "facts" in settings:
        settings["facts"]["columns"] = [rng.choice([10**6, 10**9, 10**17])] * rng.choice([1, 2, 1000])
    elif kind == 3:
        numbers["n"] = hex(1 << rng.choice([64, 10**4, 10**6]))
    elif kind == 4:
        numbers["total"] = "0x" + "f" * rng.choice([10**4, 10**6])
    elif kind == 5 and "by_level" in numbers:
        numbers["by_level"] = [[hex(level), "0x1", hex(1 << 52)] for level in range(16, 32752)]
    elif kind == 6:
        return sealed(_FRONT.pack(_MAGIC, 1, 10**6) + b"[" * 10**6 + parts.body)
    else:
        return Parts(parts.header, parts.body * rng.choice([2, 1000])).joined()
    return parts.joined()


def _consistent(rng: random.Random, data: bytes) -> bytes:
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
        change = _units(values[place] * rng.choice([0.5, 0.999, 1.001, 2.0])) - _units(values[place])
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


def _units(value: float) -> int:
    numerator, denominator = float(value).as_integer_ratio()
    return (numerator << 1074) // denominator


FORGERS: dict[str, Callable[[random.Random, bytes], bytes]] = {
    "bits flipped": _bits,
    "cut": _truncated,
    "bits flipped, with a new checksum": _sealed_bits,
    "cut, with a new checksum": _sealed_truncation,
    "spliced from two": _spliced,
    "lengths that lie": _lengths,
    "other counts and sums": _numbers,
    "other extremes": _contents,
    "other settings": _settings,
    "another capacity": _capacity,
    "another version or kind": _version,
    "enormous": _bomb,
    "changed consistently": _consistent,
}


@dataclass
class Verdict:
    """What became of one forgery."""

    outcome: str
    is_broken: bool = False
    sentence: str = ""


def judged(kind: type[Any], data: bytes, rng: random.Random, base: Any) -> Verdict:
    """Read a forgery; if it is taken for a summary, merge and release it."""
    try:
        summary = kind.from_bytes(data)
    except ValueError as error:
        return Verdict("refused", not str(error).startswith(_CLEAR), str(error))
    except Exception as error:
        return Verdict("refused", True, repr(error))
    if summary.to_bytes() != data:
        return Verdict("accepted", True, "what is read is written otherwise")
    outcome = _released(summary, rng)
    if outcome.is_broken:
        return outcome
    try:
        merged = base.merge(summary)
    except ValueError:  # of other settings
        return outcome
    after = _released(merged, rng)
    return after if after.is_broken else outcome


_RULES = [None, "adaptive", "hazard", "above_threshold", "geometric", "laplace", "inverse_sensitivity"]


def _released(summary: Any, rng: random.Random) -> Verdict:
    budget = PrivacyAccountant(1000)
    options: dict[str, Any] = {
        "epsilon": rng.choice([0.1, 1.0, 10.0]),
        "neighboring": rng.choice(["replace_one", "add_or_remove_one"]),
    }
    if isinstance(summary, LossSummary | VarianceSummary):
        options["mechanism"] = rng.choice(_RULES)
    try:
        released = summary.release(accountant=budget, **options)
    except Exception as error:
        is_public = type(error) is ValueError and any(reason in str(error) for reason in _PUBLIC)
        is_broken = budget.spent > 0 or not is_public
        return Verdict("accepted, release refused before the spend", is_broken, f"{options} {error!r}")
    is_plain = isinstance(released, float)
    values = [released] if is_plain else released.result.value
    if not all(math.isfinite(value) for value in values) or (is_plain and released < 0):
        return Verdict("accepted", True, f"{options} released {values}")
    return Verdict("accepted and released")


def _memory() -> float:
    """Return the largest memory of this process so far, in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def forged(size: Size) -> list[Finding]:
    """Read, merge and release forged summaries of all kinds."""
    rng, outcomes, broken, slowest = random.Random(0), defaultdict(Counter), [], 0.0
    before = _memory()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for public in (".*is mostly noise", ".*the summary keeps"):  # they follow from public numbers
            warnings.filterwarnings("ignore", public)
        for number in tqdm(range(size.forgeries), desc="forged"):
            name = [*FORGERS][number % len(FORGERS)]
            base = rng.choice(genuine())
            original = base.to_bytes()
            data = FORGERS[name](rng, original)
            if data == original:
                continue
            start = time.monotonic()
            verdict = judged(type(base), data, rng, base)
            slowest = max(slowest, time.monotonic() - start)
            outcomes[name][verdict.outcome] += 1
            if verdict.is_broken:
                broken.append(f"{name}: {verdict.outcome}: {verdict.sentence}")
    grown = _memory() - before
    all_outcomes = sum(outcomes.values(), Counter())
    return [
        Finding("forgeries", f"{all_outcomes.total():,}"),
        Finding("broken promises", ", ".join(sorted({*broken})) or "none", not broken),
        Finding("slowest forgery", f"{slowest:.2f} s", slowest < _SLOW),
        Finding("memory that all of them took", f"{grown:.0f} MiB", grown < _MEMORY),
        *(Finding(outcome, f"{count:,}") for outcome, count in all_outcomes.most_common()),
        *(
            Finding(f"of those with {name}", ", ".join(f"{o} {c:,}" for o, c in outcomes[name].most_common()))
            for name in FORGERS
        ),
    ]
