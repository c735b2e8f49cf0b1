"""Data sets: a file and OpenML give the same, and one clear line says everything that can be wrong."""

import dataclasses
import gzip
import os

import numpy as np
import pandas as pd
import pytest
import sklearn.datasets
from helpers import loop_over
from sklearn.utils import Bunch

from dp_metrics._packages import import_extra
from dp_metrics.evaluation.datasets import DATA_VARIABLE, DATASETS, load_dataset, read_column


@pytest.fixture
def write(tmp_path, monkeypatch):
    """Return a function that writes a small file in place of a real one, and expects its rows."""

    def write(name, content, rows=3):
        small = dataclasses.replace(DATASETS[name], rows=rows)
        monkeypatch.setitem(DATASETS, name, small)
        packed = content if isinstance(content, bytes) else gzip.compress(content.encode())
        (tmp_path / small.file_name).write_bytes(packed)
        return tmp_path

    return write


@pytest.fixture
def openml(monkeypatch):
    """Serve frames instead of OpenML, and expect as many rows as they have."""
    monkeypatch.delenv(DATA_VARIABLE, raising=False)
    asked = []

    def serve(name, frame, **changes):
        def fetch(**query):
            asked.append(query)
            return Bunch(frame=frame)

        monkeypatch.setattr(sklearn.datasets, "fetch_openml", fetch)
        monkeypatch.setitem(
            DATASETS, name, dataclasses.replace(DATASETS[name], **{"rows": len(frame), **changes})
        )
        return asked

    return serve


def test_embedded_data_are_fixed():
    assert [load_dataset("digits")[0].shape, {*load_dataset("digits")[1]}] == [(1797, 64), {*range(10)}]
    x, y = load_dataset("synthetic")
    assert (x.shape, y.shape, DATASETS["synthetic"].bounds) == ((20_000, 8), (20_000,), None)
    assert np.array_equal(y, load_dataset("synthetic")[1])
    assert np.array_equal(y, read_column("synthetic", "y"))
    noise = y - (10 * np.sin(np.pi * x[:, 0] * x[:, 1]) + 8 * x[:, 2] ** 2 + 5 * x[:, 3] + 3 * x[:, 4])
    assert np.mean(noise**4) / np.mean(noise**2) ** 2 > 4  # 3 for a normal law


def categories(values, ordered=None):
    return pd.Categorical(values, categories=ordered or sorted({v for v in values if v == v}))


DIAMONDS = "carat,cut,price\n0.2,Ideal,300\n0.3,Good [x] <1,400\n0.4,Ideal,500\n"
ABALONE = "Sex,Length,Whole weight,Rings\nM,0.455,0.514,15\nF,0.53,0.677,9\n"
ADULT = "age,workclass,hours-per-week,income\n39,?,40,<=50K\n50,Private,13,>50K\n"
BIKE = pd.DataFrame(
    {
        "season": categories(["spring", "winter"]), "year": [0, 1], "month": [1, 12], "hour": [0, 23],
        "holiday": categories(["False", "True"]), "weekday": [6, 1],
        "workingday": categories(["False", "True"]), "weather": categories(["clear", "heavy_rain"]),
        "temp": [9.84, 10.66], "feel_temp": [14.395, 13.635], "humidity": [0.81, 0.8],
        "windspeed": [0.0, 6.0], "count": [16, 40],
    }
)  # fmt: skip
# the file, a query and what OpenML has, and what both are
BOTH = {
    "diamonds": (
        DIAMONDS,
        {"data_id": 42225},
        {
            "carat": [0.2, 0.3, 0.4],
            # an order of its own
            "cut": categories(["Ideal", "Good [x] <1", "Ideal"], ["Ideal", "Good [x] <1", "Fair"]),
            "price": [300, 400, 500],
        },
        ["carat", "cut_Good (x) lt 1", "cut_Ideal"],  # for xgboost
        [300, 400, 500],
    ),
    "abalone": (
        ABALONE,
        {"data_id": 183},
        {
            "Sex": categories(["M", "F"]), "Length": [0.455, 0.53], "Whole_weight": [0.514, 0.677],
            "Class_number_of_rings": categories(["15", "9"]),
        },
        ["Length", "Whole weight", "Sex_F", "Sex_M"],
        [16.5, 10.5],  # an age: rings and a half
    ),
    "adult": (
        ADULT,
        {"data_id": 1590},
        {
            "age": [39, 50], "workclass": categories([np.nan, "Private"]), "hours-per-week": [40, 13],
            "class": categories(["<=50K", ">50K"]),
        },
        ["age", "hours-per-week", "workclass_?", "workclass_Private"],
        [0, 1],
    ),
    "bike": (
        "instant,dteday,season,yr,mnth,hr,holiday,weekday,workingday,weathersit,temp,atemp,hum,windspeed,"
        "casual,registered,cnt\n1,2011-01-01,1,0,1,0,0,6,0,1,9.84,14.395,0.81,0.0,3,13,16\n"
        "2,2011-01-01,4,1,12,23,1,1,1,4,10.66,13.635,0.8,6.0,8,32,40\n",
        {"name": "Bike_Sharing_Demand", "version": 2},
        BIKE,
        # without what gives the target away
        [
            "season", "yr", "mnth", "hr", "holiday", "weekday", "workingday", "weathersit", "temp", "atemp",
            "hum", "windspeed",
        ],
        [16, 40],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BOTH)
def test_a_file_is_read_and_what_openml_has_comes_out_as_the_file_does(openml, write, name, monkeypatch):
    text, query, frame, columns, target = BOTH[name]
    asked = openml(name, pd.DataFrame(frame))
    folder = write(name, text, rows=len(target))
    from_openml, from_file = load_dataset(name), load_dataset(name, folder)
    assert from_file[0].columns.tolist() == columns
    assert from_file[0].to_numpy().dtype.kind in "if"
    pd.testing.assert_frame_equal(from_openml[0], from_file[0], check_dtype=False, check_like=True)
    monkeypatch.setenv(DATA_VARIABLE, str(folder))
    for _, found in (from_openml, from_file, load_dataset(name)):
        assert found.tolist() == target
    assert asked == [{**query, "as_frame": True}]


def test_a_column_is_read_and_that_of_the_target_shifted_like_it(write):
    folder = write("abalone", ABALONE, rows=2)
    assert read_column("abalone", "Rings", folder).tolist() == [16.5, 10.5]
    write("adult", ADULT, rows=2)
    assert read_column("adult", "hours-per-week", folder).tolist() == [40.0, 13.0]
    with pytest.raises(match="column workclass holds unexpected values"):
        read_column("adult", "workclass", folder)


def test_without_a_file_or_network_it_says_what_to_do(monkeypatch, capsys, tmp_path):
    monkeypatch.delenv(DATA_VARIABLE, raising=False)
    network = r"can't be fetched from OpenML \(no network.*as diamonds.csv.gz.* --data-dir .* DP_METRICS_DATA"
    for name, folder, message in (
        ("diamonds", None, network),
        *((name, folder, f"'{name}': there is no file .*{DATASETS[name].file_name}; get it from .* --data-di")
          for name in ("diabetes", "cifar10") for folder in (None, tmp_path)),  # which OpenML has not got
        ("diamonds", tmp_path / "nowhere", r"there is no data folder .*nowhere"),
    ):  # fmt: skip
        with pytest.raises(match=message):
            load_dataset(name, folder)
    assert "asking OpenML" in capsys.readouterr().err


PACKED = gzip.compress(DIAMONDS.encode(), mtime=0)
DAMAGED = [
    "", "a,b\n1,2,3,4\n1,2,3,4,5\n", b"not a gzip file", gzip.compress(b"caf\xe9\n"),
    PACKED[:40], PACKED[:40] + b"\xff" * 9 + PACKED[40:],
]  # fmt: skip
WRONG = [
    ("diamonds", DIAMONDS + "0.5,Ideal,600\n", "has 4 rows, expected 3"),
    ("bike", "hr,cnt\n0,1\n1,2\n2,3\n", "has no column casual, registered, instant, dteday"),
    ("diamonds", "carat,price\n1,300\n2,\n3,500\n", "has empty cells"),
    ("diamonds", "carat,price\n1,300\n2,dear\n3,500\n", "column price holds unexpected values"),
    ("adult", ADULT.replace(">50K", ">50K.") + "9,?,9,>50K\n", "column income holds unexpected values"),
    ("diabetes", "age,diabetes\n1,0\n2,1\n3,2\n", "column diabetes holds unexpected values"),
    *(("diamonds", content, "damaged or unreadable") for content in DAMAGED),
]


def digits_frame(labels=("5", "0", "4")):
    pixels = np.arange(len(labels) * 784).reshape(-1, 784) % 256
    frame = pd.DataFrame(pixels, columns=[f"pixel{i}" for i in range(1, 785)])
    return frame.assign(**{"class": categories(list(labels))})


WRONG += [  # the rest is what OpenML has
    ("bike", BIKE.iloc[[0, 1, 1]].assign(weather=categories(["clear", "frogs", "clear"])), "has empty cells"),
    ("bike", BIKE, "OpenML has 2 rows, expected 3"),
    ("bike", BIKE.drop(columns="count"), "OpenML has no column cnt"),
    ("mnist", digits_frame(("5", "x", "4")), "unexpected values"),
    ("mnist", digits_frame().drop(columns="class"), "unexpected values .*class"),
    ("mnist", digits_frame(("5", "10", "4")), "unexpected labels"),
]


@loop_over(("name", "content", "message"), WRONG)
def test_wrong_contents_are_refused(write, openml, name, content, message):
    folder = None
    if isinstance(content, pd.DataFrame):
        openml(name, content, rows=3)
    else:
        folder = write(name, content)
    with pytest.raises(match=f"'{name}'.*{message}"):
        load_dataset(name, folder)


def test_images_are_read_and_a_damaged_file_of_them_is_refused(openml, tmp_path):
    asked = openml("mnist", digits_frame(), train_rows=2)
    x, y = load_dataset("mnist")
    assert asked == [{"name": "mnist_784", "version": 1, "as_frame": True}]
    assert (x.shape, y.tolist()) == ((3, 28, 28), [5, 0, 4])
    path = tmp_path / "mnist.npz"
    right = {"x_train": x[:2], "y_train": y[:2], "x_test": x[2:], "y_test": y[2:]}
    np.savez(path, **right)
    for array, expected in zip(load_dataset("mnist", tmp_path), (x, y), strict=True):
        assert np.array_equal(array, expected)
    whole = path.read_bytes()
    for changes, message in (
        (whole[: len(whole) // 2], "damaged or unreadable"),
        (b"", "damaged or unreadable"),
        ({"x_train": x[:1], "y_train": y[:1], "x_test": x[1:], "y_test": y[1:]}, "has 1 training rows, exp"),
        ({"x_test": x[:0], "y_test": y[:0]}, "has 2 rows, expected 3"),
        ({"x_train": x[:2, :5]}, "damaged or unreadable"),
        ({"y_test": None}, "damaged or unreadable .*y_test"),
    ):
        if isinstance(changes, bytes):
            path.write_bytes(changes)
        else:
            np.savez(path, **{k: v for k, v in {**right, **changes}.items() if v is not None})
        with pytest.raises(match=message):
            load_dataset("mnist", tmp_path)


def test_an_extra_that_cannot_be_imported_is_told_from_a_missing_one(tmp_path, monkeypatch):
    (tmp_path / "broken_extra_package.py").write_text("raise OSError('no libgomp')")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ImportError, match="installed but can't be imported: no libgomp"):
        import_extra("broken_extra_package")


REAL = {
    "diamonds": (26, 3932.799722, 15915334.362577),
    "abalone": (10, 11.433684, 10.392777),
    "bike": (12, 189.463088, 32899.567931),
    "adult": (108, 0.239282, 0.182026),
    "diabetes": (15, 0.085, 0.077775),
}


@pytest.mark.skipif(not os.environ.get(DATA_VARIABLE), reason=f"{DATA_VARIABLE} names no folder of the data")
@pytest.mark.parametrize("name", REAL)
def test_real_files(name):
    (features, target), dataset = load_dataset(name), DATASETS[name]
    columns, mean, variance = REAL[name]
    assert features.shape == (dataset.rows, columns)
    assert (target.mean(), target.var()) == pytest.approx((mean, variance), rel=1e-6, abs=1e-6)
    if dataset.bounds is not None:
        assert dataset.bounds[0] <= target.min() <= target.max() <= dataset.bounds[1]
