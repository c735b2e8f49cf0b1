"""Data from OpenML, with frames shaped like the real ones, must come out as the files do."""

import dataclasses
import gzip

import numpy as np
import pandas as pd
import pytest
import sklearn.datasets
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


def same_as_file(name, text, tmp_path):
    """Compare with what a file holds."""
    (tmp_path / DATASETS[name].file_name).write_bytes(gzip.compress(text.encode()))
    from_openml, from_file = load_dataset(name), load_dataset(name, tmp_path)
    pd.testing.assert_frame_equal(from_openml[0], from_file[0], check_dtype=False, check_like=True)
    assert np.array_equal(from_openml[1], from_file[1])


def test_diamonds(openml, tmp_path):
    frame = pd.DataFrame(
        {
            "carat": [0.23, 0.21],
            "cut": categories(["Ideal", "Fair"], ["Ideal", "Fair", "Good"]),  # an order of its own
            "price": [326, 327],
        }
    )
    asked = openml("diamonds", frame)
    same_as_file("diamonds", "carat,cut,price\n0.23,Ideal,326\n0.21,Fair,327\n", tmp_path)
    assert asked == [{"data_id": 42225, "as_frame": True}]


def test_abalone(openml, tmp_path):
    frame = pd.DataFrame(
        {
            "Sex": categories(["M", "F"]),
            "Length": [0.455, 0.53],
            "Whole_weight": [0.514, 0.677],
            "Class_number_of_rings": categories(["15", "9"]),
        }
    )
    asked = openml("abalone", frame)
    same_as_file("abalone", "Sex,Length,Whole weight,Rings\nM,0.455,0.514,15\nF,0.53,0.677,9\n", tmp_path)
    assert asked[0]["data_id"] == 183


def test_adult(openml, tmp_path):
    frame = pd.DataFrame(
        {
            "age": [39, 50],
            "workclass": categories(["Private", np.nan]),
            "hours-per-week": [40, 13],
            "class": categories(["<=50K", ">50K"]),
        }
    )
    asked = openml("adult", frame)
    text = "age,workclass,hours-per-week,income\n39,Private,40,<=50K\n50,?,13,>50K\n"
    same_as_file("adult", text, tmp_path)
    assert asked[0]["data_id"] == 1590


BIKE = {
    "season": categories(["spring", "winter"]),
    "year": [0, 1],
    "month": [1, 12],
    "hour": [0, 23],
    "holiday": categories(["False", "True"]),
    "weekday": [6, 1],
    "workingday": categories(["False", "True"]),
    "weather": categories(["clear", "heavy_rain"]),
    "temp": [9.84, 10.66],
    "feel_temp": [14.395, 13.635],
    "humidity": [0.81, 0.8],
    "windspeed": [0.0, 6.0],
    "count": [16, 40],
}


def test_bike(openml, tmp_path):
    asked = openml("bike", pd.DataFrame(BIKE))
    header = "instant,dteday,season,yr,mnth,hr,holiday,weekday,workingday,weathersit,temp,atemp,hum,windspeed"
    text = (
        f"{header},casual,registered,cnt\n1,2011-01-01,1,0,1,0,0,6,0,1,9.84,14.395,0.81,0.0,3,13,16\n"
        "2,2011-01-01,4,1,12,23,1,1,1,4,10.66,13.635,0.8,6.0,8,32,40\n"
    )
    same_as_file("bike", text, tmp_path)
    assert asked[0] == {"name": "Bike_Sharing_Demand", "version": 2, "as_frame": True}


def test_bike_with_weather_nobody_heard_of(openml):
    openml("bike", pd.DataFrame(BIKE | {"weather": categories(["clear", "frogs"])}))
    with pytest.raises(DatasetError, match="'bike': OpenML has empty cells"):
        load_dataset("bike")


def test_too_few_rows_and_missing_columns(openml, monkeypatch):
    openml("bike", pd.DataFrame(BIKE))
    monkeypatch.setitem(DATASETS, "bike", dataclasses.replace(DATASETS["bike"], rows=17_379))
    with pytest.raises(DatasetError, match="OpenML has 2 rows, expected 17379"):
        load_dataset("bike")
    openml("bike", pd.DataFrame(BIKE).drop(columns="count"))
    with pytest.raises(DatasetError, match="OpenML has no column cnt"):
        load_dataset("bike")


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


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        (digits_frame(("5", "x", "4")), "unexpected values"),
        (digits_frame().drop(columns="pixel7"), "unexpected values"),
        (digits_frame().drop(columns="class"), "has no column class"),
        (digits_frame(("5", "10", "4")), "unexpected labels"),
    ],
)
def test_mnist_that_is_not_mnist(openml, frame, message):
    openml("mnist", frame)
    with pytest.raises(DatasetError, match=message):
        load_dataset("mnist")


def test_image_files_that_are_damaged(tmp_path, monkeypatch):
    monkeypatch.setitem(DATASETS, "mnist", dataclasses.replace(DATASETS["mnist"], rows=3, train_rows=2))
    path = tmp_path / "mnist.npz"
    x, y = np.zeros((3, 28, 28), np.uint8), np.zeros(3, np.uint8)

    def fails(message):
        with pytest.raises(DatasetError, match=message):
            load_dataset("mnist", tmp_path)

    np.savez(path, x_train=x[:2], y_train=y[:2], x_test=x[2:], y_test=y[2:])
    whole = path.read_bytes()
    assert load_dataset("mnist", tmp_path)[0].shape == (3, 28, 28)
    path.write_bytes(whole[: len(whole) // 2])
    fails("damaged or unreadable")
    path.write_bytes(b"")
    fails("damaged or unreadable")
    np.savez(path, x_train=x[:2], y_train=y[:2], x_test=x[2:])
    fails("lacks an array")
    np.savez(path, x_train=x[:1], y_train=y[:1], x_test=x[1:], y_test=y[1:])
    fails("has 1 training rows, expected 2")
    np.savez(path, x_train=x[:2], y_train=y[:2], x_test=x[:0], y_test=y[:0])
    fails("has 2 rows, expected 3")
    np.savez(path, x_train=x[:2, :5], y_train=y[:2], x_test=x[2:], y_test=y[2:])
    fails("damaged or unreadable")
