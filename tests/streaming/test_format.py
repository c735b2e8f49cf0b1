"""The byte format of summaries: what is not one is refused, whatever it is, and nothing of it is shown.

It goes with the format. Frozen releases hold the bytes of summaries of all kinds.
"""

import hashlib
import json
import math
import pickle
import random
import struct
import tracemalloc

import numpy as np
import pytest
from cases import RELATIONS
from helpers import aggregate_of, hostile_losses, hostile_values, loop_over
from hypothesis import given, settings, strategies as st

import dp_metrics as dp
from dp_metrics import ConfusionSummary, LossSummary, PrivacyAccountant, ScoreSummary, VarianceSummary

# it follows from public numbers
pytestmark = pytest.mark.filterwarnings("ignore:.*the summary keeps")

FRONT, MAGIC, DIGEST = struct.Struct(">8sII"), b"DPMSUM\r\n", 32
UNIT = 1 << 1074
KINDS = (LossSummary, VarianceSummary, ConfusionSummary, ScoreSummary)
CLEAR = ("These bytes are not", "The bytes of this summary", "This summary has version")


def losses(x, **options):
    return LossSummary.from_data(dp.private_mean_loss, x, **options)


LOSS = LossSummary.from_data(dp.private_mae, [0.5, 1.0, 2.0], [0.25, 3.0, 0.5], bounds=(0, 4), capacity=2)
WEIGHTED = losses([0.5, 0.1, 2.0], sample_weight=[0.3, 2.0, 0.1], max_loss=1.5, capacity=2)
UNBOUNDED = LossSummary.from_data(dp.private_mse, [0.5, 1.0], [1.0, 4.0], sample_weight=[1.0, 2.0])
LOG = LossSummary.from_data(dp.private_log_loss, ["b"], np.float32([[0.2, 0.8]]), labels=["a", "b"])
VARIANCE = VarianceSummary.from_data([0.5, -1.0, 2.0], capacity=2)
CLIPPED = VarianceSummary.from_data([0.5, -1.0, 2.0], bounds=(-0.3, 3.3), capacity=9)
COUNTS = ConfusionSummary.from_data([0, 1], [0, 1])
SUMMARIES = {
    "loss": LOSS,
    "weighted": WEIGHTED,
    "weighted, unbounded": UNBOUNDED,
    "log loss": LOG,
    "variance": VARIANCE,
    "variance, bounds": CLIPPED,
    "counts": COUNTS,
    "scores": ScoreSummary.from_data([0, 1], [0.5, 2.0], edges=[-1.0, 0.0, 1.0]),
    "of no record": LossSummary.from_data(dp.private_mae, [], []),
    "of no value": VarianceSummary.from_data([]),
}


def sealed(content):
    return content + hashlib.sha256(content).digest()


def split(data):
    """Return the header and the arrays of the bytes of a summary."""
    end = 16 + FRONT.unpack_from(data)[2]
    return json.loads(data[16:end]), data[end:-DIGEST]


def joined(header, body, version=2, magic=MAGIC):
    """Return bytes with a digest that fits."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return sealed(FRONT.pack(magic, version, len(text)) + text + body)


def forged(summary, change=None, body=None, **front):
    """Return the bytes of a summary with a changed header and other arrays."""
    header, old_body = split(summary.to_bytes())
    changed = None if change is None else change(header)
    return joined(header if changed is None else changed, old_body if body is None else body, **front)


def put(value, *path):
    def change(header):
        for key in path[:-1]:
            header = header[key]
        header[path[-1]] = value

    return change


def doubles(*values):
    return struct.pack(f"<{len(values)}d", *values)


def assert_refused(data, what=None, kinds=(LossSummary, VarianceSummary, ConfusionSummary)):
    for kind in kinds:
        try:
            read = kind.from_bytes(data)
        except ValueError as caught:
            error = caught
        else:
            pytest.fail(f"{what!r} was read as {read}.")
        while error is not None:  # neither the message nor what it is chained to shows anything
            assert str(error).startswith(CLEAR), what
            error = error.__cause__ or error.__context__


# What is a summary


@loop_over("name", SUMMARIES)
def test_what_is_written_is_read_again_and_by_no_other_kind(name):
    summary, data = SUMMARIES[name], SUMMARIES[name].to_bytes()
    for form in (data, bytearray(data), memoryview(data), forged(summary)):
        read = type(summary).from_bytes(form)
        assert read.to_bytes() == data
        assert repr(read) == repr(summary)
    assert read.merge(summary).to_bytes() == summary.merge(read).to_bytes()
    assert_refused(data, name, [kind for kind in KINDS if kind is not type(summary)])
    for more in (b"\0", b"\n", data, data[-DIGEST:], bytes(8)):
        assert_refused(data + more)
        assert_refused(more + data)


def test_the_layout_is_what_the_module_says():
    """An independent reader, from the table in the module's docstring."""
    data = LOSS.to_bytes()
    magic, version, length = struct.unpack(">8sII", data[:16])
    assert (magic, version) == (b"DPMSUM\r\n", 2)
    header = json.loads(data[16 : 16 + length].decode("utf-8"))
    assert header["settings"] == {
        "summary": "LossSummary",
        "metric": "private_mae",
        "options": {"bounds": [0, 4]},
        "capacity": 2,
        "form": [],
        "is_open": False,
    }
    numbers = header["numbers"]
    assert (header["aggregate"], numbers["cap"]) == ("LossAggregate", 4.0)
    assert [int(numbers[name], 16) for name in ("n", "total", "capacity")] == [3, 15 * UNIT // 4, 2]
    assert header["arrays"] == {"largest": 2, "smallest": 2}
    assert struct.unpack("<4d", data[16 + length : -32]) == (2.0, 1.5, 0.25, 1.5)
    assert data[-32:] == hashlib.sha256(data[:-32]).digest()


@settings(max_examples=25)
@given(data=st.data(), capacity=st.integers(1, 6))
def test_whatever_records_there_are_their_summary_is_read(data, capacity):
    x = data.draw(st.lists(hostile_losses, max_size=12))
    weights = np.abs(data.draw(st.lists(hostile_losses, min_size=len(x), max_size=len(x))))
    cap = data.draw(st.sampled_from([None, 0.3, 3.0, 1e308]))
    values = data.draw(st.lists(hostile_values, max_size=12) | st.just([-1.7e308, 1.7e308]))
    bounds = data.draw(st.sampled_from([None, (-1.0, 3.0), (0.3, 1e300)]))
    half = len(x) // 2
    made = [VarianceSummary.from_data(values, bounds=bounds, capacity=capacity)]
    made += [ScoreSummary.from_data([x > 1 for x in values], values, edges=[-1.0, 0.0, 1.0])]
    for weight in (np.full(len(x), None), weights):
        first, second = (
            losses(
                x[part],
                sample_weight=None if None in weight else weight[part],
                max_loss=cap,
                capacity=capacity,
            )
            for part in (slice(half), slice(half, None))
        )
        made += [first, first.merge(second)]
    for summary in made:
        written = summary.to_bytes()
        assert type(summary).from_bytes(written).to_bytes() == written


# What is not


@pytest.mark.parametrize("summary", [LOSS, VARIANCE], ids=["loss", "variance"])
def test_every_flip_of_a_byte_and_every_truncation_is_refused(summary):
    data = summary.to_bytes()
    for position in range(len(data)):
        before, byte, after = data[:position], data[position], data[position + 1 :]
        flipped = [before + bytes([byte ^ flip]) + after for flip in (1, 0x80, 0x20)]
        for damaged in (*flipped, before, after, before + after):
            assert_refused(damaged, position, [type(summary)])


def test_foreign_bytes_are_refused():
    data = LOSS.to_bytes()
    for foreign in (b"", b"\0", MAGIC, MAGIC + b"\xff" * 500, pickle.dumps(LOSS), data.hex().encode()):
        assert_refused(foreign)
    assert_refused(data.replace(b"\r\n", b"\n"))
    assert_refused(forged(LOSS, magic=b"DPMSUM\n\n"))
    with pytest.raises(ValueError, match="damaged or incomplete"):
        LossSummary.from_bytes(data[:-1])
    for version in (0, 1, 3, 2**32 - 1):
        with pytest.raises(ValueError, match=f"^This summary has version {version} of the format"):
            LossSummary.from_bytes(forged(LOSS, version=version))
    for wrong in (None, "DPMSUM", 3, [1], np.zeros(3), object()):
        with pytest.raises(TypeError, match=r"^data must be bytes"):
            LossSummary.from_bytes(wrong)


VALUES = [None, True, -1, 0, 1, 2, 3, 1.0, 0.5, 1e300, 10**30, 10**400, "x", "", "0x2", "-0x1", [], {}, [1]]
# of these some values are possible, or all that are finite
FREE = {"n", "weight", "limits", "squares", "total"}


def places(header):
    """Return the paths of what stands in a header."""
    parts = ("settings", "numbers", "arrays")
    inner = [(part, key) for part in parts for key in header[part]]
    return [*((part,) for part in header), *inner]


@pytest.mark.gate
@loop_over("name", ["loss", "weighted", "weighted, unbounded", "variance", "variance, bounds"])
def test_a_header_with_any_other_value_or_a_missing_field_is_refused(name):
    summary = SUMMARIES[name]
    for path in places(split(summary.to_bytes())[0]):
        for value in VALUES:
            is_possible = (
                (path[-1] == "is_open" and type(value) is bool)
                or (path[-1] in FREE and name != "loss" and value in ("0x2", 1.0, 0.5))
                or (path[-1] == "largest_limit" and value in (0, 1, 2, 3, 1e300, 0.5))
            )  # fmt: skip
            data = forged(summary, put(value, *path))
            if not is_possible and data != summary.to_bytes():
                assert_refused(data, (path, value))

        def drop(header, path=path):
            for key in path[:-1]:
                header = header[key]
            del header[path[-1]]

        assert_refused(forged(summary, drop), path)


def text(old, new):
    return lambda header: json.dumps(header).replace(old, new).encode()


def more(part, key, value):
    return lambda header: {**header, part: {**header[part], key: value}}


HEADERS = {
    "not JSON": lambda header: b"{",
    "a list": lambda header: b"[]",
    "nested deeply": lambda header: b"[" * 100_000,
    "nested settings": text('"LossSummary"', "[" * 900 + "]" * 900),
    "other spaces": lambda header: json.dumps(header, indent=1).encode(),
    "fields in another order": lambda header: dict(reversed(header.items())),
    "a field twice": text('{"settings"', '{"x": 1, "settings"'),
    "a field more": lambda header: {**header, "comment": "987654.25"},
    "a setting more": more("settings", "comment", 1),
    "an array more": more("arrays", "comment", 0),
    "an array named n": more("arrays", "n", 0),
    "hexadecimal in capitals": text('"0x3"', '"0X3"'),
    "another capacity": put(3, "settings", "capacity"),
    "the other capacity": put("0x3", "numbers", "capacity"),
    "another metric with one more argument": put("private_mean_loss", "settings", "metric"),
    "a metric that is none": put("private_variance", "settings", "metric"),
    "an option for a call": put({"epsilon": 1}, "settings", "options"),
    "options that the metric refuses": put({"bounds": [4, 0]}, "settings", "options"),
    "options that give another cap": put({"bounds": [0, 5]}, "settings", "options"),
    "no options, but a cap": put({}, "settings", "options"),
    "n less than the records": put("0x1", "numbers", "n"),
    "sizes that are too large": put({"largest": 10**18, "smallest": 2}, "arrays"),
    "a sum below the largest": put(hex(UNIT), "numbers", "total"),
    "columns without end": put([10**25], "settings", "form"),
    **{
        f"a cap of {cap}": text('"cap": 4.0', f'"cap": {cap}')
        for cap in ("NaN", "Infinity", "1e999", "-1.0", "4")
    },
}


@loop_over("kind", HEADERS)
def test_a_made_up_header_is_refused(kind):
    assert_refused(forged(LOSS, HEADERS[kind]), kind)


def test_few_bytes_do_not_ask_for_much_memory():
    """A matrix of 20,000 labels is one of 3.2 GB."""
    data = forged(LOSS, put([2], "settings", "form"))  # of two outputs, which is possible
    assert LossSummary.from_bytes(data).to_bytes() == data
    two_labels = LossSummary.from_data("log_loss", [1], [[0.2, 0.8]])
    assert_refused(forged(two_labels, put([10**17], "settings", "form")))
    many = forged(COUNTS, put([*range(20_000)], "settings", "labels"))
    tracemalloc.start()
    assert_refused(many, kinds=[ConfusionSummary])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 50 * len(many)


def test_a_log_loss_keeps_the_cap_of_its_float_type():
    batch = ["a"], np.float32([[0.5, 0.5]])
    whole = LOG.merge(LossSummary.from_data(dp.private_log_loss, *batch, labels=["a", "b"])).to_bytes()
    assert LossSummary.from_bytes(LOG.to_bytes()).update(*batch).to_bytes() == whole
    assert_refused(forged(LOG, put(17.5, "numbers", "cap")))


BODIES = [
    (LOSS, (2.0, 1.5, 0.25)),
    (LOSS, (2.0, 1.5, 0.25, 1.5, 1.0)),
    (LOSS, (1.5, 2.0, 0.25, 1.5)),
    (LOSS, (2.0, 1.5, 1.5, 0.25)),
    (LOSS, (math.nan, 1.5, 0.25, 1.5)),
    (LOSS, (2.0, 1.5, -math.inf, 1.5)),
    (LOSS, (2.0, -1.5, 0.25, 1.5)),
    (LOSS, (4.5, 1.5, 0.25, 1.5)),
    (LOSS, (2.0, 1.875, 0.25, 1.5)),
    (LOSS, (2.0, 0.75, 0.25, 1.5)),
    (LOSS, (2.0, 1.5, -0.25, 1.5)),
    (LOSS, (2.0, 1.5, 0.25, 1.25)),
    (CLIPPED, (2.0, 0.5, -0.3, -1.0, 0.5, 2.0)),
    (CLIPPED, (5.0, 0.5, -0.3, -0.3, 0.5, 2.0)),
    (CLIPPED, (2.0, 0.5, -1.0, -0.3, 0.5, 2.0)),
    (VARIANCE, (2.0, 0.5, -1.0)),
    (VARIANCE, (0.5, 2.0, -1.0, 0.5)),
    (VARIANCE, (2.0, 0.5, 0.5, -1.0)),
    (WEIGHTED, (*aggregate_of(WEIGHTED).largest, 2.8, -0.1, 0.0, 0.0)),
    (WEIGHTED, (0.2, 0.15, 2.8, math.inf, 0.0, 0.0)),
    (UNBOUNDED, (-1.0, -2.0)),
    (COUNTS, (1.5, 0.0, 0.0, 0.5)),
]


def test_arrays_that_are_no_extremes_are_refused():
    for summary, body in BODIES:
        assert_refused(forged(summary, body=doubles(*body)), body)
    assert_refused(forged(LOSS, body=split(LOSS.to_bytes())[1] + b"\0"))


# What no records give


def mantissa(value):
    return int(np.float64(value).view(np.int64)) & ((1 << 52) - 1) | (1 << 52)


def levels(summary, *changes):
    """Return the sums by level after adding counts and sums of mantissas to the levels of some values."""
    header, _ = split(summary.to_bytes())
    by_level = {one[0]: [int(number, 16) for number in one[1:]] for one in header["numbers"]["by_level"]}
    for value, count, part in changes:
        level = by_level[hex(int(np.float64(value).view(np.int64)) >> 48)]
        level[0], level[1] = level[0] + count, level[1] + part
    return [[level, hex(count), hex(part)] for level, (count, part) in by_level.items() if count]


def numbers(**changed):
    """Return a change of the counts and sums in a header."""
    spelled = {name: hex(value) if isinstance(value, int) else value for name, value in changed.items()}
    return lambda header: header["numbers"].update(spelled)


LEAF = 1 << 40  # of a mantissa
ROOM = losses([0.5, 0.1, 2.0, 0.3], sample_weight=[1.0] * 4, max_loss=2.5, capacity=2)
MANY = losses([1.01, 2.0, 3.05, 3.3, 6.1, 7.1, 5.1], max_loss=9, capacity=2)
ALL = LossSummary.from_data(dp.private_mae, [0.5, 1.0, 2.0], [0.25, 3.0, 0.5], bounds=(0, 4), capacity=5)
HALVES = VarianceSummary.from_data([-3.0, 2.0, 2.5, 4.0], capacity=2)
CLOSE = losses([1.001, 1.002, 1.003, 1.004], max_loss=9, capacity=2)
ONE_LEVEL = losses([0.01, 1.03, 1.05, 1.5, 1.74, 3.01, 3.05, 3.1], max_loss=9, capacity=2)
OWN_LIMITS = losses([0.1, 0.2, 0.3, 2.25], sample_weight=[1, 1, 1, 4], max_loss=2.5, capacity=2)
SMALL_ROOM = losses([2.0, 2.0, 2.0, 0.025], sample_weight=[1, 1, 1, 4], max_loss=2.5, capacity=2)
WIDE = VarianceSummary.from_data([-3.0, -1.0, 0.5, 1.0, 2.5, 4.0], capacity=2)
BETWEEN = VarianceSummary.from_data([-3.0, 0.5, 1.0, 4.0], capacity=1)
FAR = LossSummary.from_data(dp.private_mae, [0.5, 1.0, 2.0], [0.25, 7.0, 0.5], bounds=(0, 8), capacity=2)

OF_LOSS = split(LOSS.to_bytes())[0]["settings"]
IMPOSSIBLE = {
    "more records than a noisy count can be": (WIDE, numbers(n=(1 << 53) + 1)),
    "a number of records beyond all floats": (WIDE, numbers(n=1 << 20_000)),
    "other values at either end": (ALL, None, (2.0, 1.5, 0.25, 0.25, 1.25, 2.0)),
    "ends that overlap too little": (WIDE, None, (4.0, 2.5, -3.0, 3.0)),
    "fewer extremes than the capacity holds": (
        LOSS, put({"largest": 1, "smallest": 2}, "arrays"), (2.0, 0.25, 1.5),
    ),
    "losses above the cap, and all sums fit them": (
        FAR, lambda header: numbers(cap=4.0)(header) or put(OF_LOSS, "settings")(header),
    ),
    "smallest values above the largest": (
        HALVES, numbers(total=13 * UNIT // 2, squares=161 * UNIT**2 // 4), (4.0, 2.5, -3.0, 3.0),
    ),
    "a sum that the known values do not have": (
        CLOSE,
        numbers(total=aggregate_of(CLOSE).total + (LEAF << 1022), by_level=levels(CLOSE, (1.001, 0, LEAF))),
    ),
    "a value above the least of the largest, in its level": (
        ONE_LEVEL, numbers(by_level=levels(ONE_LEVEL, (3.01, 0, 3 << 45), (1.74, 0, -3 << 46))),
    ),
    "a value below the largest of the smallest, in its level": (
        ONE_LEVEL, numbers(by_level=levels(ONE_LEVEL, (1.05, 0, -1 << 47), (1.5, 0, 1 << 47))),
    ),
    "a record of 5.1 that is one of 7.1 in the sums, and not among the largest": (
        MANY,
        numbers(
            by_level=levels(MANY, (7.1, 1, mantissa(7.1)), (5.1, -1, -mantissa(5.1))),
            total=aggregate_of(MANY).total + ((mantissa(7.1) - mantissa(5.1)) << 1024),
        ),
    ),
    "a level with less than its largest": (
        MANY, numbers(by_level=levels(MANY, (7.1, 0, -LEAF), (5.1, 0, LEAF))),
    ),
    "a level with less than its smallest": (
        MANY, numbers(by_level=levels(MANY, (1.01, 0, LEAF), (3.3, 0, -LEAF >> 1))),
    ),
    "squares too small for the extremes": (WIDE, numbers(squares=9 * UNIT**2), (4.0, 2.5, -3.0, -1.0)),
    "squares too small for what is between": (BETWEEN, numbers(squares=26 * UNIT**2)),
    "squares too large for what is between": (BETWEEN, numbers(squares=60 * UNIT**2)),
    "a term above its limit": (OWN_LIMITS, numbers(largest_limit=8.5)),
    "room above all limits": (SMALL_ROOM, numbers(largest_limit=9.5)),
    "limits above all terms and rooms": (ROOM, numbers(largest_limit=2.45)),
    "a limit that is infinite": (ROOM, numbers(largest_limit=math.inf)),
    "a limit that is no number": (ROOM, numbers(largest_limit=math.nan)),
    "a limit above the sum of all": (ROOM, numbers(largest_limit=11.0)),
    "a term above every limit": (ROOM, numbers(largest_limit=1.5)),
    "limits that leave more room": (ROOM, numbers(limits=12 * UNIT)),
    "limits that leave less room": (ROOM, numbers(limits=7 * UNIT)),
    "room whose rest is no rest": (ROOM, None, (2.0, 0.5, 2.4, 2.2, 0.5, 0.0)),
    "no weight, but a sum": (ROOM, numbers(weight=0)),
    "weights beyond all floats": (ROOM, numbers(weight=1 << 4000)),
    "a limit of unbounded terms": (UNBOUNDED, numbers(largest_limit=2.0)),
    "a label that is infinite": (LOG, put(["a", math.inf], "settings", "options", "labels")),
    "numbers as labels, one of them infinite": (COUNTS, put([0, math.inf], "settings", "options", "labels")),
    "counts beyond all floats": (COUNTS, numbers(n=2**63 + 1), (2.0**63, 0.0, 0.0, 1.0)),
}  # fmt: skip


@loop_over("kind", IMPOSSIBLE)
def test_what_no_records_give_is_refused(kind):
    summary, change, *body = IMPOSSIBLE[kind]
    assert_refused(forged(summary, change, doubles(*body[0]) if body else None), kind)


def test_the_numbers_that_are_made_impossible_are_possible_as_they_are():
    for summary in {summary for summary, *_ in IMPOSSIBLE.values()}:
        assert type(summary).from_bytes(forged(summary)).to_bytes() == summary.to_bytes()
    moved = levels(MANY, (3.05, 0, LEAF), (3.3, 0, -LEAF))  # of records that are at neither end
    assert LossSummary.from_bytes(forged(MANY, numbers(by_level=moved))).capacity == 2


def test_an_aggregate_of_another_summary_is_refused():
    # of one capacity or number of counts, both with a limit or without one: nothing tells them apart
    possible = ({"of no record", "weighted, unbounded"}, {"loss", "weighted"}, {"counts", "scores"})
    for name, summary in SUMMARIES.items():
        for other, stranger in SUMMARIES.items():
            if name != other and {name, other} not in possible:
                own, _ = split(summary.to_bytes())
                assert_refused(forged(stranger, put(own["settings"], "settings")), (name, other), KINDS)


# Forgeries are refused in a sentence, or no worse than summaries of other records


FLOATS = [
    0.0, -0.0, 5e-324, -5e-324, 2.2e-308, 0.5, 1.0, 1.0 + 2**-52, -1.0, 1e16, 2.0**53, 2.0**63, 1e154, 1e300,
    1.7976931348623157e308, -1.7976931348623157e308, math.inf, -math.inf, math.nan,
]  # fmt: skip
BIG = [10**3, 2**53, 2**53 + 1, 2**63, 10**30, 10**400, 1 << 2200, 1 << 20_000]
STRANGE = [*VALUES, *FLOATS, *map(hex, BIG), *BIG[:6], "private_mse", "LossSummary", {"bounds": [0, 1]}]


def anything(rng, header, body):
    """Change something in the header, whole numbers by a little as well."""
    place = header
    while True:
        key = rng.choice([*place]) if isinstance(place, dict) else rng.randrange(len(place))
        if not isinstance(place[key], dict | list) or not place[key] or rng.random() < 0.1:
            break
        place = place[key]
    old = place[key]
    if isinstance(old, str) and old.startswith("0x") and rng.random() < 0.6:
        value = int(old, 16)
        near = [value + 1, value - 1, value * 2, value // 2, -value, value + UNIT, value ^ 1 << 1060]
        place[key] = hex(rng.choice(near))
    else:
        place[key] = rng.choice(STRANGE)
    return joined(header, body)


def extremes(rng, header, body):
    values = np.frombuffer(body, "<f8").copy()
    for _ in range(rng.randint(1, 3) if values.size else 0):
        place, other = rng.randrange(values.size), rng.randrange(values.size)
        values[place] = rng.choice([*FLOATS, values[other], np.nextafter(values[place], 9), -values[place]])
    return joined(header, values.tobytes())


# reasons for which a release is refused, whatever the records
PUBLIC = ("needs a ", "cannot be used with ", "options of the summary leave open", "0 sample")
RULES = [None, "adaptive", "hazard", "above_threshold", "geometric", "laplace", "inverse_sensitivity"]


@pytest.mark.slow
@pytest.mark.parametrize("forge", [anything, extremes])
def test_a_forged_summary_is_refused_in_a_sentence_or_released_like_any_other(forge):
    rng, refused, taken = random.Random(0), [], 0
    bases = [*SUMMARIES.values(), ROOM, MANY, ALL, WIDE, OWN_LIMITS]
    for _ in range(400):
        base, budget, refusal = rng.choice(bases), PrivacyAccountant(1000), ""
        data = forge(rng, *split(base.to_bytes()))
        try:
            summary = type(base).from_bytes(data)
        except ValueError as error:
            refused.append(str(error))
            continue
        assert summary.to_bytes() == data
        taken += data != base.to_bytes()
        options = {"epsilon": rng.choice([0.1, 10.0]), "neighboring": rng.choice(RELATIONS)}
        if isinstance(summary, LossSummary | VarianceSummary):
            options["mechanism"] = rng.choice(RULES)
        try:
            released = summary.release(accountant=budget, **options)
        except ValueError as error:
            refusal = str(error)
        if refusal:
            assert any(reason in refusal for reason in PUBLIC), (options, refusal)
            assert budget.spent == 0
        else:
            value = released if isinstance(released, float) else released.result.value
            assert np.isfinite(value).all(), options
    assert all(refusal.startswith(CLEAR) for refusal in refused)
    assert 0 < taken < len(refused)
