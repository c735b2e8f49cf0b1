"""The byte format of summaries: what is not one is refused, whatever it is, and nothing of it is shown."""

import dataclasses
import hashlib
import json
import math
import pickle
import struct
import tracemalloc

import numpy as np
import pytest
from helpers import aggregate_of, hostile_losses, hostile_values, loop_over
from hypothesis import given, settings
from hypothesis import strategies as st

import dp_metrics as dp
from dp_metrics import ConfusionSummary, LossSummary, ScoreSummary, VarianceSummary
from dp_metrics._random import SeededEntropy
from dp_metrics.streaming._format import pack

FRONT, DIGEST = 16, 32
UNIT = 1 << 1074

LOSS = LossSummary.from_data(dp.private_mae, [0.5, 1.0, 2.0], [0.25, 3.0, 0.5], bounds=(0, 4), capacity=2)
WEIGHTED = LossSummary.from_data(
    dp.private_mean_loss, [0.5, 0.1, 2.0], sample_weight=[0.3, 2.0, 0.1], max_loss=1.5, capacity=2
)
UNBOUNDED = LossSummary.from_data(dp.private_mse, [0.5, 1.0], [1.0, 4.0], sample_weight=[1.0, 2.0])
LOG = LossSummary.from_data(dp.private_log_loss, ["b"], np.float32([[0.2, 0.8]]), labels=["a", "b"])
VARIANCE = VarianceSummary.from_data([0.5, -1.0, 2.0], capacity=2)
CLIPPED = VarianceSummary.from_data([0.5, -1.0, 2.0], bounds=(-0.3, 3.3), capacity=9)
SUMMARIES = {
    "loss": LOSS,
    "weighted": WEIGHTED,
    "weighted, unbounded": UNBOUNDED,
    "log loss": LOG,
    "variance": VARIANCE,
    "variance, bounds": CLIPPED,
    "of no record": LossSummary.from_data(dp.private_mae, [], []),
    "of no value": VarianceSummary.from_data([]),
}
each = pytest.mark.parametrize("summary", SUMMARIES.values(), ids=SUMMARIES)


def sealed(front, header, body):
    content = front + header + body
    return content + hashlib.sha256(content).digest()


def split(data):
    """Return the front, the header and the arrays of the bytes of a summary."""
    _, _, length = struct.unpack(">8sII", data[:FRONT])
    return data[:FRONT], json.loads(data[FRONT : FRONT + length]), data[FRONT + length : -DIGEST]


def forged(summary, change=None, body=None, version=2, magic=b"DPMSUM\r\n"):
    """Return the bytes of a summary with a changed header and other arrays, and a digest that fits."""
    _, header, old_body = split(summary.to_bytes())
    if change is not None:
        changed = change(header)
        header = header if changed is None else changed
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    front = struct.pack(">8sII", magic, version, len(text))
    return sealed(front, text, old_body if body is None else body)


def doubles(*values):
    return struct.pack(f"<{len(values)}d", *values)


def assert_refused(data, match=None):
    for kind in (LossSummary, VarianceSummary):
        with pytest.raises(ValueError, match=match) as caught:
            kind.from_bytes(data)
        assert type(caught.value) is ValueError
        error = caught.value
        while error is not None:  # neither the message nor what it is chained to shows anything
            assert str(error).startswith(("These bytes", "The bytes", "This summary has version"))
            error = error.__cause__ or error.__context__


# --- what is a summary -----------------------------------------------------------------------


@each
def test_what_is_packed_is_read_again(summary):
    data = summary.to_bytes()
    for form in (data, bytearray(data), memoryview(data), memoryview(bytearray(data))):
        read = type(summary).from_bytes(form)
        assert read.to_bytes() == data
        assert repr(read) == repr(summary)
    twin = type(summary).from_bytes(data)
    assert twin.merge(summary).to_bytes() == summary.merge(twin).to_bytes()


@each
def test_bytes_of_the_other_type_are_refused(summary):
    other = VarianceSummary if isinstance(summary, LossSummary) else LossSummary
    with pytest.raises(ValueError, match=f"^These bytes are not a {other.__name__}"):
        other.from_bytes(summary.to_bytes())


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
    assert header["aggregate"] == "LossAggregate"
    numbers = header["numbers"]
    assert int(numbers["n"], 16) == 3
    assert int(numbers["total"], 16) == 15 * UNIT // 4
    assert int(numbers["capacity"], 16) == 2
    assert numbers["cap"] == 4.0
    assert header["arrays"] == {"largest": 2, "smallest": 2}
    assert struct.unpack("<4d", data[16 + length : -32]) == (2.0, 1.5, 0.25, 1.5)
    assert data[-32:] == hashlib.sha256(data[:-32]).digest()


GOLDEN = {
    "loss": (
        "44504d53554d0d0a00000002000002ab7b2273657474696e6773223a207b2273756d6d617279223a20224c6f73735375"
        "6d6d617279222c20226d6574726963223a2022707269766174655f6d6165222c20226f7074696f6e73223a207b22626f"
        "756e6473223a205b302c20345d7d2c20226361706163697479223a20322c2022666f726d223a205b5d2c202269735f6f"
        "70656e223a2066616c73657d2c2022616767726567617465223a20224c6f7373416767726567617465222c20226e756d"
        "62657273223a207b226e223a2022307833222c2022746f74616c223a2022307866303030303030303030303030303030"
        "303030303030303030303030303030303030303030303030303030303030303030303030303030303030303030303030"
        "303030303030303030303030303030303030303030303030303030303030303030303030303030303030303030303030"
        "303030303030303030303030303030303030303030303030303030303030303030303030303030303030303030303030"
        "303030303030303030303030303030303030303030303030303030303030303030303030303030303030303030303030"
        "303030303030303030303030303030303030303030303030303030303030303030303030303030303030303030303030"
        "30303030303030303030303030222c20226361706163697479223a2022307832222c2022636170223a20342e302c2022"
        "62795f6c6576656c223a205b5b22307833666430222c2022307831222c20223078313030303030303030303030303022"
        "5d2c205b22307833666638222c2022307831222c202230783138303030303030303030303030225d2c205b2230783430"
        "3030222c2022307831222c202230783130303030303030303030303030225d5d7d2c2022617272617973223a207b226c"
        "617267657374223a20322c2022736d616c6c657374223a20327d7d0000000000000040000000000000f83f0000000000"
        "00d03f000000000000f83fb8c58c2679a9a81dcf5f46a84e67b269bd7f6c46713655536136aafbac6939c9"
    ),
    "weighted": (
        "44504d53554d0d0a00000002000004e97b2273657474696e6773223a207b2273756d6d617279223a20224c6f73735375"
        "6d6d617279222c20226d6574726963223a2022707269766174655f6d65616e5f6c6f7373222c20226f7074696f6e7322"
        "3a207b226d61785f6c6f7373223a20312e357d2c20226361706163697479223a20322c2022666f726d223a205b5d2c20"
        "2269735f6f70656e223a2066616c73657d2c2022616767726567617465223a202257656967687465644c6f7373416767"
        "726567617465222c20226e756d62657273223a207b226e223a2022307833222c2022776569676874223a202230783939"
        "393939393939393939393939383030303030303030303030303030303030303030303030303030303030303030303030"
        "303030303030303030303030303030303030303030303030303030303030303030303030303030303030303030303030"
        "303030303030303030303030303030303030303030303030303030303030303030303030303030303030303030303030"
        "303030303030303030303030303030303030303030303030303030303030303030303030303030303030303030303030"
        "303030303030303030303030303030303030303030303030303030303030303030303030303030303030303030303030"
        "303030303030303030303030303030303030303030303030303030222c2022746f74616c223a20223078323030303030"
        "303030303030303038303030303030303030303030303030303030303030303030303030303030303030303030303030"
        "303030303030303030303030303030303030303030303030303030303030303030303030303030303030303030303030"
        "303030303030303030303030303030303030303030303030303030303030303030303030303030303030303030303030"
        "303030303030303030303030303030303030303030303030303030303030303030303030303030303030303030303030"
        "303030303030303030303030303030303030303030303030303030303030303030303030303030303030303030303030"
        "3030303030303030303030303030303030303030303030222c20226c696d697473223a20223078653636363636363636"
        "363636363630303030303030303030303030303030303030303030303030303030303030303030303030303030303030"
        "303030303030303030303030303030303030303030303030303030303030303030303030303030303030303030303030"
        "303030303030303030303030303030303030303030303030303030303030303030303030303030303030303030303030"
        "303030303030303030303030303030303030303030303030303030303030303030303030303030303030303030303030"
        "303030303030303030303030303030303030303030303030303030303030303030303030303030303030303030303030"
        "3030303030303030303030303030303030303030222c20226c6172676573745f6c696d6974223a20332e302c20226361"
        "706163697479223a2022307832222c202262795f6c6576656c223a205b5b22307833666333222c2022307832222c2022"
        "30783236363636363636363636363637225d2c205b22307833666339222c2022307831222c2022307831393939393939"
        "39393939393961225d5d7d2c2022617272617973223a207b226c617267657374223a20322c202268656164726f6f6d22"
        "3a20322c202268656164726f6f6d5f72657374223a20327d7d9a9999999999c93f343333333333c33f66666666666606"
        "40323333333333d33f000000000000a83c000000000000803cd2cb02ad270db957072df15709276db5848c297f688b63"
        "fd28b2b76ce8ad4728"
    ),
    "variance": (
        "44504d53554d0d0a00000002000004627b2273657474696e6773223a207b2273756d6d617279223a202256617269616e"
        "636553756d6d617279222c20226d6574726963223a2022707269766174655f76617269616e6365222c20226f7074696f"
        "6e73223a207b22626f756e6473223a206e756c6c7d2c20226361706163697479223a20322c2022666f726d223a205b5d"
        "2c202269735f6f70656e223a2066616c73657d2c2022616767726567617465223a202256617269616e63654167677265"
        "67617465222c20226e756d62657273223a207b226e223a2022307833222c2022746f74616c223a202230783630303030"
        "303030303030303030303030303030303030303030303030303030303030303030303030303030303030303030303030"
        "303030303030303030303030303030303030303030303030303030303030303030303030303030303030303030303030"
        "303030303030303030303030303030303030303030303030303030303030303030303030303030303030303030303030"
        "303030303030303030303030303030303030303030303030303030303030303030303030303030303030303030303030"
        "303030303030303030303030303030303030303030303030303030303030303030303030303030303030303030303030"
        "303030303030303030303030303030303030303030303030222c202273717561726573223a2022307835343030303030"
        "303030303030303030303030303030303030303030303030303030303030303030303030303030303030303030303030"
        "303030303030303030303030303030303030303030303030303030303030303030303030303030303030303030303030"
        "303030303030303030303030303030303030303030303030303030303030303030303030303030303030303030303030"
        "303030303030303030303030303030303030303030303030303030303030303030303030303030303030303030303030"
        "303030303030303030303030303030303030303030303030303030303030303030303030303030303030303030303030"
        "303030303030303030303030303030303030303030303030303030303030303030303030303030303030303030303030"
        "303030303030303030303030303030303030303030303030303030303030303030303030303030303030303030303030"
        "303030303030303030303030303030303030303030303030303030303030303030303030303030303030303030303030"
        "303030303030303030303030303030303030303030303030303030303030303030303030303030303030303030303030"
        "303030303030303030303030303030303030303030303030303030303030303030303030303030303030303030303030"
        "303030303030303030303030303030303030303030303030303030303030303030303030303030303030303030303030"
        "303030222c20226361706163697479223a2022307832222c2022626f756e6473223a206e756c6c7d2c20226172726179"
        "73223a207b226c617267657374223a20322c2022736d616c6c657374223a20327d7d0000000000000040000000000000"
        "e03f000000000000f0bf000000000000e03fdd8f90787685cbd3c5c585291016282d7c9e853feb653383c6ec6cd06682"
        "21f0"
    ),
}


@pytest.mark.parametrize("name", GOLDEN)
def test_version_2_does_not_change(name):
    """Files that people keep must be read by later versions; another format needs another number."""
    golden = bytes.fromhex(GOLDEN[name])
    assert SUMMARIES[name].to_bytes() == golden
    read = type(SUMMARIES[name]).from_bytes(golden)
    options = {"epsilon": 2.0, "mechanism": dp.Hazard(resolution=0.5), "random_state": SeededEntropy(1)}
    with pytest.warns(UserWarning, match="the summary keeps 2"):
        released = read.release(**options)
    assert released >= 0


def test_the_order_of_bytes_is_that_of_the_format_on_every_machine():
    for summary in (LOSS, WEIGHTED, VARIANCE, CLIPPED):
        data = summary.to_bytes()
        _, header, _ = split(data)
        aggregate = aggregate_of(summary)
        arrays = {name: getattr(aggregate, name) for name in header["arrays"]}
        for order in "<>":
            other = {name: array.astype(f"{order}f8") for name, array in arrays.items()}
            assert pack(header["settings"], dataclasses.replace(aggregate, **other)) == data
        # numbers that read the same forwards and backwards would hide a mistake
        assert any(struct.pack("<d", v) != struct.pack(">d", v) for a in arrays.values() for v in a)
    read = aggregate_of(LossSummary.from_bytes(LOSS.to_bytes()))
    assert read.largest.dtype == np.dtype("=f8")
    assert read.largest.dtype.isnative


def test_extremes_as_far_apart_as_floats_can_be_are_read_without_a_warning():
    for x in ([-1.7e308, 1.7e308], [1.7e308] * 3 + [-1.7e308] * 3, [5e-324, -5e-324, -0.0]):
        data = VarianceSummary.from_data(x).to_bytes()
        assert VarianceSummary.from_bytes(data).to_bytes() == data


# --- what is not -----------------------------------------------------------------------------


@pytest.mark.parametrize("summary", [LOSS, VARIANCE], ids=["loss", "variance"])
def test_every_flip_of_a_byte_and_every_truncation_is_refused(summary):
    data = summary.to_bytes()
    assert len(data) < 1300
    for position in range(len(data)):
        for flip in (1, 0x80, 0xFF, 0x20):
            damaged = bytearray(data)
            damaged[position] ^= flip
            with pytest.raises(ValueError, match=r"^These bytes|^The bytes"):
                type(summary).from_bytes(bytes(damaged))
        for part in (data[:position], data[position + 1 :], data[:position] + data[position + 1 :]):
            with pytest.raises(ValueError, match=r"^These bytes|^The bytes"):
                type(summary).from_bytes(part)


@each
def test_appended_bytes_are_refused(summary):
    data = summary.to_bytes()
    for more in (b"\0", b"\n", data, data[-DIGEST:], bytes(8)):
        assert_refused(data + more)
        assert_refused(more + data)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\0",
        b"DPMSUM\r\n",
        b"DPMSUM\n" + bytes(60),
        bytes(500),
        b"\xff" * 500,
        b"DPMSUM\r\n" + b"\xff" * 500,
        pickle.dumps([1.0, 2.0]),
        pickle.dumps(LOSS),
        b"a text of somebody else's, long enough to hold a digest and everything that stands before it",
        json.dumps({"settings": {}, "aggregate": "LossAggregate"}).encode(),
        LOSS.to_bytes().replace(b"\r\n", b"\n"),
        LOSS.to_bytes().hex().encode(),
    ],
)
def test_foreign_bytes_are_refused(data):
    assert_refused(data)


@loop_over("data", [None, "DPMSUM", 3, [1], np.zeros(3), object()])
def test_what_is_not_bytes_is_refused(data):
    for kind in (LossSummary, VarianceSummary):
        with pytest.raises(TypeError, match=r"^data must be bytes"):
            kind.from_bytes(data)


@loop_over("version", [0, 1, 3, 256, 2**32 - 1])
def test_another_version_is_refused_by_its_number(version):
    assert_refused(forged(LOSS, version=version), f"^This summary has version {version} of the format")


def test_another_magic_is_refused():
    assert_refused(forged(LOSS, magic=b"DPMSUM\n\n"), "not a summary of dp_metrics")


@each
def test_a_forgery_without_changes_is_a_summary(summary):
    """So it is the change that the next tests see refused."""
    data = summary.to_bytes()
    assert forged(summary) == data
    read = type(summary).from_bytes(forged(summary))
    assert read.to_bytes() == data


def put(value, *path):
    def change(header):
        place = header
        for key in path[:-1]:
            place = place[key]
        place[path[-1]] = value

    return change


def drop(*path):
    def change(header):
        place = header
        for key in path[:-1]:
            place = place[key]
        del place[path[-1]]

    return change


VALUES = [None, True, -1, 0, 1, 2, 3, 1.0, 0.5, 1e300, 10**30, 10**400, "x", "", "0x2", "-0x1", [], {}, [1]]
PATHS = [
    *[("settings", key) for key in ("summary", "metric", "options", "capacity", "form", "is_open")],
    ("settings", "options", "bounds"),
    *[("numbers", key) for key in ("n", "total", "capacity", "cap")],
    *[("arrays", key) for key in ("largest", "smallest")],
    ("settings",),
    ("aggregate",),
    ("numbers",),
    ("arrays",),
]


@pytest.mark.parametrize("path", PATHS, ids=".".join)
def test_a_header_with_any_other_value_or_a_missing_field_is_refused(path):
    _, header, _ = split(LOSS.to_bytes())
    for value in VALUES:
        place = header
        for key in path:
            place = place[key]
        if value == place and type(value) is type(place):
            continue
        if path[-1] == "is_open" and type(value) is bool:  # possible
            continue
        assert_refused(forged(LOSS, put(value, *path)))
    assert_refused(forged(LOSS, drop(*path)))


@pytest.mark.parametrize("name", ["weighted", "weighted, unbounded", "variance", "variance, bounds"])
def test_a_header_of_the_other_kinds_with_any_other_value_or_a_missing_field_is_refused(name):
    summary = SUMMARIES[name]
    _, header, _ = split(summary.to_bytes())
    free = {"n", "weight", "limits", "squares", "largest_limit", "total"}  # some values are possible
    for part in ("numbers", "arrays", "settings"):
        for key, old in header[part].items():
            for value in VALUES:
                if (value == old and type(value) is type(old)) or (
                    key in free and value in ("0x2", 1.0, 0.5)
                ):
                    continue
                if key == "is_open" and type(value) is bool:
                    continue
                if key == "largest_limit" and value in (0, 1, 2, 3, 1e300):
                    continue
                assert_refused(forged(summary, put(value, part, key)))
            assert_refused(forged(summary, drop(part, key)))


@loop_over("text", ["NaN", "Infinity", "-Infinity", "1e999", "-1.0", "0.0", "4", '"4.0"'])
def test_a_cap_that_no_public_option_makes_is_refused(text):
    def change(header):
        return json.dumps(header).replace('"cap": 4.0', f'"cap": {text}').encode()

    data = forged(LOSS, change)
    assert f'"cap": {text}'.encode() in data
    assert_refused(data)


HEADERS = {
    "not JSON": lambda header: b"{",
    "empty": lambda header: b"",
    "no text": lambda header: b"\xff\xfe\xfa",
    "a list": lambda header: b"[]",
    "a number": lambda header: b"1",
    "nested deeply": lambda header: b"[" * 100_000,
    "nested settings": lambda header: (
        json.dumps({**header, "settings": 0}).replace(": 0", ": " + "[" * 900 + "]" * 900).encode()
    ),
    "other spaces": lambda header: json.dumps(header, indent=1).encode(),
    "a space more": lambda header: json.dumps(header).encode() + b" ",
    "fields in another order": lambda header: dict(reversed(header.items())),
    "settings in another order": lambda header: {
        **header,
        "settings": dict(reversed(header["settings"].items())),
    },
    "numbers in another order": lambda header: {
        **header,
        "numbers": dict(reversed(header["numbers"].items())),
    },
    "a field twice": lambda header: json.dumps(header).replace('{"settings"', '{"x": 1, "settings"').encode(),
    "a field more": lambda header: {**header, "comment": "987654.25"},
    "a setting more": lambda header: {**header, "settings": {**header["settings"], "comment": 1}},
    "a number more": lambda header: {**header, "numbers": {**header["numbers"], "comment": "0x1"}},
    "an array more": lambda header: {**header, "arrays": {**header["arrays"], "comment": 0}},
    "an array named n": lambda header: {**header, "arrays": {**header["arrays"], "n": 0}},
    "hexadecimal in capitals": lambda header: json.dumps(header).replace('"0x3"', '"0X3"').encode(),
    "digits without 0x": lambda header: json.dumps(header).replace('"0x3"', '"3"').encode(),
    "an unknown kind": put("OrderAggregate", "aggregate"),
    "another kind": put("VarianceAggregate", "aggregate"),
    "an unhashable kind": put(["LossAggregate"], "aggregate"),
    "another capacity": put(3, "settings", "capacity"),
    "the other capacity": put("0x3", "numbers", "capacity"),
    "another metric with one more argument": put("private_mean_loss", "settings", "metric"),
    "a metric that is none": put("private_variance", "settings", "metric"),
    "an option for a call": put({"epsilon": 1}, "settings", "options"),
    "an option of the class": put({"capacity": 1}, "settings", "options"),
    "an option of another metric": put({"max_loss": 4}, "settings", "options"),
    "options that the metric refuses": put({"bounds": [4, 0]}, "settings", "options"),
    "options that give another cap": put({"bounds": [0, 5]}, "settings", "options"),
    "no options, but a cap": put({}, "settings", "options"),
    "options that are no numbers": put({"bounds": [0, 10**400]}, "settings", "options"),
    "negative n": put("-0x3", "numbers", "n"),
    "n less than the records": put("0x1", "numbers", "n"),
    "sizes that do not fit n": put({"largest": 3, "smallest": 1}, "arrays"),
    "a negative size": put({"largest": 5, "smallest": -1}, "arrays"),
    "sizes that are too large": put({"largest": 10**18, "smallest": 2}, "arrays"),
    "sizes that are no whole numbers": put({"largest": 2.0, "smallest": 2.0}, "arrays"),
    "sizes that are true": put({"largest": True, "smallest": 3}, "arrays"),
    "a sum below the largest": put(hex(UNIT), "numbers", "total"),
    "a negative sum": put(hex(-UNIT), "numbers", "total"),
    "columns of another shape": put([2], "settings", "form"),
    "one number more": put([1, 1, 1], "settings", "form"),
    "columns without end": put([10**25], "settings", "form"),
}


@loop_over("kind", HEADERS)
def test_a_made_up_header_is_refused(kind):
    data = forged(LOSS, HEADERS[kind])
    if kind == "columns of another shape":  # of two outputs: possible for this metric
        assert LossSummary.from_bytes(data).to_bytes() == data
    else:
        assert_refused(data)


@pytest.mark.parametrize(
    ("summary", "body"),
    [
        (LOSS, b""),
        (LOSS, doubles(2.0, 1.5, 0.25)),
        (LOSS, doubles(2.0, 1.5, 0.25, 1.5, 1.0)),
        (LOSS, doubles(2.0, 1.5, 0.25, 1.5) + b"\0"),
        (LOSS, doubles(1.5, 2.0, 0.25, 1.5)),
        (LOSS, doubles(2.0, 1.5, 1.5, 0.25)),
        (LOSS, doubles(math.nan, 1.5, 0.25, 1.5)),
        (LOSS, doubles(math.inf, 1.5, 0.25, 1.5)),
        (LOSS, doubles(2.0, 1.5, 0.25, math.nan)),
        (LOSS, doubles(2.0, 1.5, -math.inf, 1.5)),
        (LOSS, doubles(2.0, -1.5, 0.25, 1.5)),
        (LOSS, doubles(4.5, 1.5, 0.25, 1.5)),
        (LOSS, doubles(2.0, 1.875, 0.25, 1.5)),
        (LOSS, doubles(2.0, 0.75, 0.25, 1.5)),
        (LOSS, doubles(2.0, 1.5, -0.25, 1.5)),
        (LOSS, doubles(2.0, 1.5, 0.25, 4.5)),
        (CLIPPED, doubles(2.0, 0.5, -0.3, -1.0, 0.5, 2.0)),
        (WEIGHTED, doubles(*aggregate_of(WEIGHTED).largest, 2.8, -0.1, 0.0, 0.0)),
        (VARIANCE, doubles(2.0, 0.5, -1.0)),
        (VARIANCE, doubles(0.5, 2.0, -1.0, 0.5)),
        (VARIANCE, doubles(2.0, 0.5, 0.5, -1.0)),
        (VARIANCE, doubles(2.0, math.nan, -1.0, 0.5)),
        (CLIPPED, doubles(5.0, 0.5, -0.3, -0.3, 0.5, 2.0)),
        (CLIPPED, doubles(2.0, 0.5, -1.0, -0.3, 0.5, 2.0)),
        (WEIGHTED, doubles(*range(6))),
        (WEIGHTED, doubles(0.2, 0.15, 2.8, math.inf, 0.0, 0.0)),
        (UNBOUNDED, doubles(-1.0, -2.0)),
    ],
)
def test_arrays_that_are_no_extremes_are_refused(summary, body):
    assert_refused(forged(summary, body=body))


def test_fewer_extremes_than_the_capacity_holds_are_refused():
    assert_refused(forged(LOSS, put({"largest": 1, "smallest": 2}, "arrays"), doubles(2.0, 0.25, 1.5)))


def test_losses_above_the_cap_are_refused_even_if_all_sums_fit_them():
    far = LossSummary.from_data(dp.private_mae, [0.5, 1.0, 2.0], [0.25, 7.0, 0.5], bounds=(0, 8), capacity=2)
    _, own, _ = split(LOSS.to_bytes())

    def change(header):
        header["settings"] = own["settings"]
        header["numbers"]["cap"] = own["numbers"]["cap"]

    assert_refused(forged(far, change))


def test_an_aggregate_of_another_summary_is_refused():
    # of one capacity, and the losses of both have a limit or neither's have: nothing tells them apart
    possible = ({"of no record", "weighted, unbounded"}, {"loss", "weighted"})
    for name, summary in SUMMARIES.items():
        _, own, _ = split(summary.to_bytes())
        for other, stranger in SUMMARIES.items():
            if name != other and {name, other} not in possible:
                assert_refused(forged(stranger, put(own["settings"], "settings")))


def test_more_columns_than_memory_holds_are_refused():
    summary = LossSummary.from_data(dp.private_log_loss, [1], [[0.2, 0.8]])
    assert_refused(forged(summary, put([10**17], "settings", "form")))


def test_a_log_loss_keeps_the_cap_of_its_float_type():
    data = LOG.to_bytes()
    read = LossSummary.from_bytes(data)
    batch = np.float32([[0.5, 0.5]])
    assert (
        read.update(["a"], batch).to_bytes()
        == LOG.merge(LossSummary.from_data(dp.private_log_loss, ["a"], batch, labels=["a", "b"])).to_bytes()
    )
    assert_refused(forged(LOG, put(17.5, "numbers", "cap")))


def test_a_forged_summary_that_is_accepted_still_cannot_fail_after_the_spend():
    """The checksum finds damage, not malice: sums may be made up, but not break a release."""
    budget = dp.PrivacyAccountant(10)
    for total in (15 * UNIT // 4, 4 * UNIT, 100 * UNIT, 12 * UNIT, UNIT << 900):
        data = forged(LOSS, put(hex(total), "numbers", "total"))
        try:
            summary = LossSummary.from_bytes(data)
            with pytest.warns(UserWarning, match="the summary keeps 2"):
                released = summary.release(0.5, accountant=budget)
        except ValueError:
            continue
        assert 0 <= released <= 4
    assert budget.spent % 0.5 == 0


# --- what no records give --------------------------------------------------------------------


def level_of(value):
    """Return the number of the level of a float, as the header spells it."""
    return hex(int(np.float64(value).view(np.int64)) >> 48)


def mantissa(value):
    return int(np.float64(value).view(np.int64)) & ((1 << 52) - 1) | (1 << 52)


def with_levels(summary, *changes):
    """Return the sums by level after adding counts and sums of mantissas to the levels of some values."""
    _, header, _ = split(summary.to_bytes())
    levels = {level: [int(count, 16), int(part, 16)] for level, count, part in header["numbers"]["by_level"]}
    for value, count, part in changes:
        levels[level_of(value)][0] += count
        levels[level_of(value)][1] += part
    return [[level, hex(count), hex(part)] for level, (count, part) in levels.items() if count]


def moved_up():
    """A record of 5.1 that is one of 7.1 in the sums, and not among the largest."""
    _, header, _ = split(MANY.to_bytes())
    numbers = header["numbers"]
    numbers["by_level"] = with_levels(MANY, (7.1, 1, mantissa(7.1)), (5.1, -1, -mantissa(5.1)))
    numbers["total"] = hex(int(numbers["total"], 16) + ((mantissa(7.1) - mantissa(5.1)) << 1024))
    return forged(MANY, put(numbers, "numbers"))


LEAF = 1 << 40  # of a mantissa
ROOM = LossSummary.from_data(
    dp.private_mean_loss, [0.5, 0.1, 2.0, 0.3], sample_weight=[1.0] * 4, max_loss=2.5, capacity=2
)
MANY = LossSummary.from_data(
    dp.private_mean_loss, [1.01, 2.0, 3.05, 3.3, 6.1, 7.1, 5.1], max_loss=9, capacity=2
)
ALL = LossSummary.from_data(dp.private_mae, [0.5, 1.0, 2.0], [0.25, 3.0, 0.5], bounds=(0, 4), capacity=5)
HALVES = VarianceSummary.from_data([-3.0, 2.0, 2.5, 4.0], capacity=2)
CLOSE = LossSummary.from_data(dp.private_mean_loss, [1.001, 1.002, 1.003, 1.004], max_loss=9, capacity=2)
ONE_LEVEL = LossSummary.from_data(
    dp.private_mean_loss, [0.01, 1.03, 1.05, 1.5, 1.74, 3.01, 3.05, 3.1], max_loss=9, capacity=2
)
OWN_LIMITS = LossSummary.from_data(
    dp.private_mean_loss, [0.1, 0.2, 0.3, 2.25], sample_weight=[1, 1, 1, 4], max_loss=2.5, capacity=2
)
WIDE = VarianceSummary.from_data([-3.0, -1.0, 0.5, 1.0, 2.5, 4.0], capacity=2)

IMPOSSIBLE = {
    "more records than a noisy count can be": forged(WIDE, put(hex((1 << 53) + 1), "numbers", "n")),
    "a number of records beyond all floats": forged(WIDE, put(hex(1 << 20_000), "numbers", "n")),
    "other values at either end": forged(ALL, body=doubles(2.0, 1.5, 0.25, 0.25, 1.25, 2.0)),
    "a value at both ends that is not one": forged(LOSS, body=doubles(2.0, 1.5, 0.25, 1.25)),
    "ends that overlap too little": forged(WIDE, body=doubles(4.0, 2.5, -3.0, 3.0)),
    "other values at either end, without levels": forged(
        VarianceSummary.from_data([1.0, 2.0, 4.0], capacity=5), body=doubles(4.0, 2.0, 1.0, 0.5, 2.0, 4.0)
    ),
    "smallest values above the largest": forged(
        HALVES,
        lambda header: header["numbers"].update(total=hex(13 * UNIT // 2), squares=hex(161 * UNIT**2 // 4)),
        body=doubles(4.0, 2.5, -3.0, 3.0),
    ),
    "a sum that the known values do not have": forged(
        CLOSE,
        lambda header: header["numbers"].update(
            total=hex(aggregate_of(CLOSE).total + (LEAF << 1022)),
            by_level=with_levels(CLOSE, (1.001, 0, LEAF)),
        ),
    ),
    "a value above the least of the largest, in its level": forged(
        ONE_LEVEL,
        put(with_levels(ONE_LEVEL, (3.01, 0, 3 << 45), (1.74, 0, -3 << 46)), "numbers", "by_level"),
    ),
    "a value below the largest of the smallest, in its level": forged(
        ONE_LEVEL,
        put(with_levels(ONE_LEVEL, (1.05, 0, -1 << 47), (1.5, 0, 1 << 47)), "numbers", "by_level"),
    ),
    "a term above its limit": forged(OWN_LIMITS, put(8.5, "numbers", "largest_limit")),
    "room above all limits": forged(
        LossSummary.from_data(
            dp.private_mean_loss, [2.0, 2.0, 2.0, 0.025], sample_weight=[1, 1, 1, 4], max_loss=2.5, capacity=2
        ),
        put(9.5, "numbers", "largest_limit"),
    ),
    "limits above all terms and rooms": forged(ROOM, put(2.45, "numbers", "largest_limit")),
    "a limit that is infinite": forged(ROOM, put(math.inf, "numbers", "largest_limit")),
    "a limit that is no number": forged(ROOM, put(math.nan, "numbers", "largest_limit")),
    "a label that is infinite": forged(LOG, put(["a", math.inf], "settings", "options", "labels")),
    "numbers as labels, one of them infinite": forged(
        ConfusionSummary.from_data([0, 1], [0, 1]), put([0, math.inf], "settings", "options", "labels")
    ),
    "a limit above the sum of all": forged(ROOM, put(11.0, "numbers", "largest_limit")),
    "squares too small for the extremes": forged(
        WIDE, put(hex(9 * UNIT**2), "numbers", "squares"), body=doubles(4.0, 2.5, -3.0, -1.0)
    ),
    "squares too small for what is between": forged(
        VarianceSummary.from_data([-3.0, 0.5, 1.0, 4.0], capacity=1),
        put(hex(26 * UNIT**2), "numbers", "squares"),
    ),
    "squares too large for what is between": forged(
        VarianceSummary.from_data([-3.0, 0.5, 1.0, 4.0], capacity=1),
        put(hex(60 * UNIT**2), "numbers", "squares"),
    ),
    "a term above every limit": forged(ROOM, put(1.5, "numbers", "largest_limit")),
    "limits that leave more room": forged(ROOM, put(hex(12 * UNIT), "numbers", "limits")),
    "limits that leave less room": forged(ROOM, put(hex(7 * UNIT), "numbers", "limits")),
    "room whose rest is no rest": forged(ROOM, body=doubles(2.0, 0.5, 2.4, 2.2, 0.5, 0.0)),
    "no weight, but a sum": forged(ROOM, put("0x0", "numbers", "weight")),
    "weights beyond all floats": forged(ROOM, put(hex(1 << 4000), "numbers", "weight")),
    "a limit of unbounded terms": forged(UNBOUNDED, put(2.0, "numbers", "largest_limit")),
    "a level above that is not among the largest": moved_up(),
    "a level with less than its largest": forged(
        MANY, put(with_levels(MANY, (7.1, 0, -LEAF), (5.1, 0, LEAF)), "numbers", "by_level")
    ),
    "a level with less than its smallest": forged(
        MANY, put(with_levels(MANY, (1.01, 0, LEAF), (3.3, 0, -LEAF >> 1)), "numbers", "by_level")
    ),
    "counts beyond all floats": forged(
        ConfusionSummary.from_data([0, 1], [0, 1]),
        put(hex(2**63 + 1), "numbers", "n"),
        body=doubles(2.0**63, 0.0, 0.0, 1.0),
    ),
}


@loop_over("kind", IMPOSSIBLE)
def test_what_no_records_give_is_refused(kind):
    for summary in (ConfusionSummary, LossSummary, VarianceSummary):
        with pytest.raises(ValueError, match=r"^These bytes are not"):
            summary.from_bytes(IMPOSSIBLE[kind])


def test_the_numbers_that_are_made_impossible_are_possible_as_they_are():
    for summary in (LOSS, ROOM, MANY, ALL, WIDE, UNBOUNDED):
        assert type(summary).from_bytes(forged(summary)).to_bytes() == summary.to_bytes()
    moved = with_levels(MANY, (3.05, 0, LEAF), (3.3, 0, -LEAF))  # of records that are at neither end
    assert LossSummary.from_bytes(forged(MANY, put(moved, "numbers", "by_level"))).capacity == 2


def test_a_few_bytes_do_not_ask_for_much_memory():
    """A matrix of 20,000 labels is one of 3.2 GB."""
    data = forged(ConfusionSummary.from_data([0, 1], [0, 1]), put([*range(20_000)], "settings", "labels"))
    tracemalloc.start()
    with pytest.raises(ValueError, match=r"^These bytes are not a consistent summary"):
        ConfusionSummary.from_bytes(data)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 50 * len(data)


@settings(max_examples=25)
@given(data=st.data(), capacity=st.integers(1, 6))
def test_whatever_records_there_are_their_summary_is_read(data, capacity):
    losses = data.draw(st.lists(hostile_losses, max_size=12))
    weights = [abs(w) for w in data.draw(st.lists(hostile_losses, min_size=12, max_size=12))]
    cap = data.draw(st.sampled_from([None, 0.3, 3.0, 1e308]))
    values = data.draw(st.lists(hostile_values, max_size=12))
    bounds = data.draw(st.sampled_from([None, (-1.0, 3.0), (0.3, 1e300)]))
    half = len(losses) // 2

    def of_losses(part, weight):
        options = {"sample_weight": weight, "max_loss": cap, "capacity": capacity}
        return LossSummary.from_data(dp.private_mean_loss, losses[part], **options)

    made = [
        of_losses(slice(None), None),
        of_losses(slice(None), weights[: len(losses)]),
        of_losses(slice(half), None).merge(of_losses(slice(half, None), None)),
        of_losses(slice(half), weights[:half]).merge(
            of_losses(slice(half, None), weights[half : len(losses)])
        ),
        VarianceSummary.from_data(values, bounds=bounds, capacity=capacity),
        ScoreSummary.from_data([x > 1 for x in values], values, edges=[-1.0, 0.0, 1.0]),
    ]
    for summary in made:
        written = summary.to_bytes()
        assert type(summary).from_bytes(written).to_bytes() == written


# --- fuzz ------------------------------------------------------------------------------------


@settings(max_examples=300)
@given(st.binary(max_size=300))
def test_any_bytes_are_refused_with_a_value_error(data):
    for form in (data, b"DPMSUM\r\n" + data, sealed(b"DPMSUM\r\n\0\0\0\1", data[:4], data[4:])):
        assert_refused(form)


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**6), 10**30)
    | st.floats()
    | st.text(max_size=4)
    | st.sampled_from(["0x1", "-0x7", "0xffffffffffffffffff", "private_mse", "LossAggregate", "1e5", "nan"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=5,
)


def paths(value, at=()):
    yield at
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield from paths(inner, (*at, key))


@pytest.mark.slow
@settings(max_examples=600)
@given(data=st.data(), name=st.sampled_from(list(SUMMARIES)))
def test_any_change_of_a_header_is_refused_with_a_value_error_or_read_as_it_is(data, name):
    summary = SUMMARIES[name]
    _, header, body = split(summary.to_bytes())
    for _ in range(data.draw(st.integers(1, 2))):
        path = data.draw(st.sampled_from(list(paths(header))))
        if path:
            put(data.draw(json_values), *path)(header)
        else:
            header = data.draw(json_values)
        if not isinstance(header, dict):
            break
    if data.draw(st.booleans()):
        body = data.draw(
            st.binary(max_size=40) | st.lists(st.floats(), max_size=4).map(lambda v: doubles(*v))
        )
    made = forged(summary, lambda _: json.dumps(header).encode(), body=body)
    for kind in (LossSummary, VarianceSummary):
        try:
            read = kind.from_bytes(made).to_bytes()
        except ValueError as error:
            read = str(error)
        assert read == made or read.startswith("These bytes")
