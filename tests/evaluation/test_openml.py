"""Data from OpenML, with frames shaped like the real ones, must come out as the files do."""

import dataclasses
import gzip

import numpy as np
import pandas as pd
import pytest
import sklearn.datasets
from helpers import loop_over
from sklearn.utils import Bunch

from dp_metrics.evaluation.datasets import DATASETS, load_dataset
from dp_metrics.evaluation.sources import DATA_VARIABLE, DatasetError


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
        monkeypatch.setitem(DATASETS, name, dataclasses.replace(DATASETS[name], rows=len(frame), **changes))
        return asked

    return serve


def categories(values, ordered=None):
    return pd.Categorical(values, categories=ordered or sorted({v for v in values if v == v}))


BIKE = pd.DataFrame(
    {
        "season": categories(["spring", "winter"]), "year": [0, 1], "month": [1, 12], "hour": [0, 23],
        "holiday": categories(["False", "True"]), "weekday": [6, 1],
        "workingday": categories(["False", "True"]), "weather": categories(["clear", "heavy_rain"]),
        "temp": [9.84, 10.66], "feel_temp": [14.395, 13.635], "humidity": [0.81, 0.8],
        "windspeed": [0.0, 6.0], "count": [16, 40],
    }
)  # fmt: skip
AS_FILES = {  # a query, what OpenML has, and the file
    "diamonds": (
        {"data_id": 42225},
        {
            "carat": [0.23, 0.21],
            "cut": categories(["Ideal", "Fair"], ["Ideal", "Fair", "Good"]),  # an order of its own
            "price": [326, 327],
        },
        "carat,cut,price\n0.23,Ideal,326\n0.21,Fair,327\n",
    ),
    "abalone": (
        {"data_id": 183},
        {
            "Sex": categories(["M", "F"]), "Length": [0.455, 0.53], "Whole_weight": [0.514, 0.677],
            "Class_number_of_rings": categories(["15", "9"]),
        },
        "Sex,Length,Whole weight,Rings\nM,0.455,0.514,15\nF,0.53,0.677,9\n",
    ),
    "adult": (
        {"data_id": 1590},
        {
            "age": [39, 50], "workclass": categories(["Private", np.nan]), "hours-per-week": [40, 13],
            "class": categories(["<=50K", ">50K"]),
        },
        "age,workclass,hours-per-week,income\n39,Private,40,<=50K\n50,?,13,>50K\n",
    ),
    "bike": (
        {"name": "Bike_Sharing_Demand", "version": 2},
        BIKE,
        "instant,dteday,season,yr,mnth,hr,holiday,weekday,workingday,weathersit,temp,atemp,hum,windspeed,"
        "casual,registered,cnt\n1,2011-01-01,1,0,1,0,0,6,0,1,9.84,14.395,0.81,0.0,3,13,16\n"
        "2,2011-01-01,4,1,12,23,1,1,1,4,10.66,13.635,0.8,6.0,8,32,40\n",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", AS_FILES)
def test_what_openml_has_comes_out_as_the_file_does(openml, tmp_path, name):
    query, frame, text = AS_FILES[name]
    asked = openml(name, pd.DataFrame(frame))
    (tmp_path / DATASETS[name].file_name).write_bytes(gzip.compress(text.encode()))
    from_openml, from_file = load_dataset(name), load_dataset(name, tmp_path)
    pd.testing.assert_frame_equal(from_openml[0], from_file[0], check_dtype=False, check_like=True)
    assert np.array_equal(from_openml[1], from_file[1])
    assert asked == [{**query, "as_frame": True}]


def digits_frame(labels=("5", "0", "4")):
    pixels = np.arange(len(labels) * 784).reshape(-1, 784) % 256
    frame = pd.DataFrame(pixels, columns=[f"pixel{i}" for i in range(1, 785)])
    return frame.assign(**{"class": categories(list(labels))})


def test_mnist(openml, tmp_path):
    asked = openml("mnist", digits_frame(), train_rows=2)
    images, labels = load_dataset("mnist")
    assert asked == [{"name": "mnist_784", "version": 1, "as_frame": True}]
    assert images.shape == (3, 28, 28)
    assert labels.tolist() == [5, 0, 4]
    np.savez(
        tmp_path / "mnist.npz", x_train=images[:2], y_train=labels[:2], x_test=images[2:], y_test=labels[2:]
    )
    from_file = load_dataset("mnist", tmp_path)
    assert np.array_equal(from_file[0], images)
    assert np.array_equal(from_file[1], labels)


@loop_over(
    ("name", "frame", "rows", "message"),
    [
        ("bike", BIKE.assign(weather=categories(["clear", "frogs"])), 2, "'bike': OpenML has empty cells"),
        ("bike", BIKE, 17_379, "OpenML has 2 rows, expected 17379"),
        ("bike", BIKE.drop(columns="count"), 2, "OpenML has no column cnt"),
        ("mnist", digits_frame(("5", "x", "4")), 3, "unexpected values"),
        ("mnist", digits_frame().drop(columns="pixel7"), 3, "unexpected values"),
        ("mnist", digits_frame().drop(columns="class"), 3, "has no column class"),
        ("mnist", digits_frame(("5", "10", "4")), 3, "unexpected labels"),
    ],
)
def test_what_openml_should_not_have_is_refused(openml, monkeypatch, name, frame, rows, message):
    openml(name, frame)
    monkeypatch.setitem(DATASETS, name, dataclasses.replace(DATASETS[name], rows=rows))
    with pytest.raises(DatasetError, match=message):
        load_dataset(name)


def test_image_files_that_are_damaged(tmp_path, monkeypatch):
    monkeypatch.setitem(DATASETS, "mnist", dataclasses.replace(DATASETS["mnist"], rows=3, train_rows=2))
    path = tmp_path / "mnist.npz"
    x, y = np.zeros((3, 28, 28), np.uint8), np.zeros(3, np.uint8)

    def fails(message):
        with pytest.raises(DatasetError, match=message):
            load_dataset("mnist", tmp_path)

    right = {"x_train": x[:2], "y_train": y[:2], "x_test": x[2:], "y_test": y[2:]}
    np.savez(path, **right)
    whole = path.read_bytes()
    assert load_dataset("mnist", tmp_path)[0].shape == (3, 28, 28)
    for damaged in (whole[: len(whole) // 2], b""):
        path.write_bytes(damaged)
        fails("damaged or unreadable")
    for changes, message in (
        ({"x_train": x[:1], "y_train": y[:1], "x_test": x[1:], "y_test": y[1:]}, "has 1 training rows, exp"),
        ({"x_test": x[:0], "y_test": y[:0]}, "has 2 rows, expected 3"),
        ({"x_train": x[:2, :5]}, "damaged or unreadable"),
    ):
        np.savez(path, **{**right, **changes})
        fails(message)
    del right["y_test"]
    np.savez(path, **right)
    fails("lacks an array")
