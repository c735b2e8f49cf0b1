"""The data sets of the experiments: one table, and `load_dataset` to read any of them.

They are public data, read for study; nothing here is private or needs to be.
"""

import os
from pathlib import Path
from typing import Any

import numpy as np

from dp_metrics._packages import import_extra
from dp_metrics.evaluation.sources import (
    Dataset,
    DatasetError,
    Loaded,
    OpenML,
    read_image_data,
    read_table_data,
    table_of,
)


def _make_synthetic(dataset: Dataset, data_dir: Path | None) -> Loaded:
    # The seed makes a fixed public data set; private releases never draw from this generator.
    rng = np.random.default_rng(20_231_114)
    x = rng.uniform(-1.0, 1.0, size=(dataset.rows, 8))
    signal = 10.0 * np.sin(np.pi * x[:, 0] * x[:, 1]) + 8.0 * x[:, 2] ** 2 + 5.0 * x[:, 3] + 3.0 * x[:, 4]
    # Five degrees of freedom: heavy tails, yet a finite fourth moment, so that an MSE has a sampling error.
    noise = 2.0 * rng.standard_t(5, size=dataset.rows)
    return x, signal + noise


def _bundled_digits(dataset: Dataset, data_dir: Path | None) -> Loaded:
    from sklearn.datasets import load_digits

    x, y = load_digits(return_X_y=True)
    return x, y.astype(np.int64)


_YES = {"True": 1.0, "False": 0.0, "1": 1.0, "0": 0.0}
_BIKE = OpenML(
    {"name": "Bike_Sharing_Demand", "version": 2},
    rename={
        "year": "yr", "month": "mnth", "hour": "hr", "weather": "weathersit", "feel_temp": "atemp",
        "humidity": "hum", "count": "cnt",
    },
    codes={
        "season": {"spring": 1.0, "summer": 2.0, "fall": 3.0, "winter": 4.0},
        "weathersit": {"clear": 1.0, "misty": 2.0, "rain": 3.0, "heavy_rain": 4.0},
        "holiday": _YES,
        "workingday": _YES,
    },
)  # fmt: skip
_ABALONE = OpenML(
    {"data_id": 183},
    rename={
        "Whole_weight": "Whole weight", "Shucked_weight": "Shucked weight",
        "Viscera_weight": "Viscera weight", "Shell_weight": "Shell weight", "Class_number_of_rings": "Rings",
    },
)  # fmt: skip
_ALL = (
    Dataset(
        "synthetic", "regression", "y", 20_000, "generated: smooth signal, Student-t noise", "BSD-3-Clause",
        _make_synthetic,
    ),
    Dataset(
        "digits", "multiclass", "digit", 1_797, "scikit-learn load_digits (UCI no. 80, doi 10.24432/C50P49)",
        "CC BY 4.0", _bundled_digits,
    ),
    Dataset(
        "diamonds", "regression", "price", 53_940, "ggplot2 table `diamonds`", "MIT (of ggplot2)",
        read_table_data, bounds=(0.0, 50_000.0), file_name="diamonds.csv.gz",
        openml=OpenML({"data_id": 42225}), columns=(("price", (0.0, 50_000.0)),),
    ),
    Dataset(
        "abalone", "regression", "Rings", 4_177, "UCI no. 1, doi 10.24432/C55C7W", "CC BY 4.0",
        read_table_data, bounds=(0.0, 50.0), file_name="abalone.csv.gz", shift=1.5, openml=_ABALONE,
        columns=(("Rings", (0.0, 50.0)),),
    ),
    Dataset(
        "bike", "regression", "cnt", 17_379, "UCI no. 275, doi 10.24432/C5W894", "CC BY 4.0",
        read_table_data, bounds=(0.0, 5_000.0), file_name="bike_hour.csv.gz",
        # casual + registered == cnt in every row: keeping them would give the target away.
        drop=("casual", "registered", "instant", "dteday"), openml=_BIKE,
        columns=(("cnt", (0.0, 5_000.0)),),
    ),
    Dataset(
        "adult", "binary", "income", 48_842, "UCI no. 2, doi 10.24432/C5XW20", "CC BY 4.0",
        read_table_data, file_name="adult.csv.gz", classes=("<=50K", ">50K"),
        openml=OpenML({"data_id": 1590}, rename={"class": "income"}, missing="?"),
        columns=(("age", (0.0, 125.0)), ("hours-per-week", (0.0, 168.0))),
    ),
    Dataset(
        "diabetes", "binary", "diabetes", 100_000,
        "Kaggle, `Diabetes prediction dataset` of iammustafatz (diabetes_prediction_dataset.csv, gzipped)",
        "not confirmed", read_table_data, file_name="diabetes.csv.gz", classes=("0", "1"),
    ),
    Dataset(
        "mnist", "multiclass", "class", 70_000, "yann.lecun.com/exdb/mnist (arrays x_train, y_train, ...)",
        "CC BY-SA 3.0", read_image_data, file_name="mnist.npz", model="mlp", train_rows=60_000,
        shape=(28, 28), openml=OpenML({"name": "mnist_784", "version": 1}),
    ),
    Dataset(
        "cifar10", "multiclass", "class", 30_000,
        "www.cs.toronto.edu/~kriz/cifar.html (batches 1 and 2 as x_train, y_train; 5 as x_test, y_test)",
        "none stated; cite Krizhevsky 2009", read_image_data, file_name="cifar10_subset.npz", model="cnn",
        train_rows=20_000, shape=(32, 32, 3),
    ),
)  # fmt: skip

DATASETS: dict[str, Dataset] = {dataset.name: dataset for dataset in _ALL}
EMBEDDED: tuple[str, ...] = tuple(d.name for d in _ALL if d.file_name is None)  # these need no file
TABULAR: tuple[str, ...] = tuple(d.name for d in _ALL if d.file_name and not d.shape)  # the paper's tables


def get_dataset(name: str) -> Dataset:
    """Return the description of a data set; the error for an unknown name lists those that exist."""
    try:
        return DATASETS[name]
    except KeyError:
        raise DatasetError(f"unknown data set {name!r}; there are: {', '.join(DATASETS)}") from None


def read_column(name: str, column: str, data_dir: str | os.PathLike[str] | None = None) -> Any:
    """Return one numeric column, float64, with the public shift if it is the target.

    `column` is one of the table, or the target of embedded data.
    """
    dataset = get_dataset(name)
    if dataset.file_name is None:
        return np.asarray(load_dataset(name)[1], dtype=np.float64)
    values = table_of(dataset, None if data_dir is None else Path(data_dir))[column]
    if not import_extra("pandas").api.types.is_numeric_dtype(values):
        raise dataset.fault(f"column {column} holds unexpected values")
    return values.to_numpy(dtype=np.float64) + (dataset.shift if column == dataset.target else 0.0)


def load_dataset(name: str, data_dir: str | os.PathLike[str] | None = None) -> Loaded:
    """Load features and target of a data set.

    The folder of the data files is by default the environment variable ``DP_METRICS_DATA``; without the file,
    OpenML is asked. Features are numeric, of shape (n_samples, n_features); categories are one-hot encoded;
    images are uint8, of shape (n_samples, height, width, ...). The target is float64 for regression, class
    numbers from 0 otherwise. A `DatasetError` says what is wrong with the name or the file.

    Examples
    --------
    >>> features, target = load_dataset("synthetic")
    >>> features.shape, target.shape
    ((20000, 8), (20000,))
    """
    dataset = get_dataset(name)
    return dataset.loader(dataset, None if data_dir is None else Path(data_dir))
