"""The data sets of the experiments: datasets.toml says what they are, and `load_dataset` reads any of them.

They are public data, read for study; nothing here is private or needs to be.

Whatever is wrong with a file is one clear error; nothing is ever read short without one.
"""

import io
import os
import sys
import tomllib
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np

from dp_metrics._packages import import_extra
from dp_metrics.inputs.options import Array, ByName

DATA_VARIABLE = "DP_METRICS_DATA"
"""Environment variable that names the folder of the data files."""

Loaded: TypeAlias = tuple[Any, Array]
Folder: TypeAlias = str | os.PathLike[str] | None


@dataclass(frozen=True)
class Dataset:
    """What is publicly known about a data set, and how to read it."""

    name: str  # users type this name
    task: Literal["regression", "binary", "multiclass"]  # the kind of target that a model predicts
    target: str  # a column of the file, if there is one
    rows: int  # a file with another number of records is refused
    source: str
    licence: str
    loader: "Callable[[Dataset, Folder], Loaded]"  # (dataset, folder) -> (features, target)
    bounds: tuple[float, float] | None = None  # public range of a regression target
    file_name: str | None = None  # inside the data folder; None for embedded data
    drop: tuple[str, ...] = ()  # columns that are not features, apart from the target
    classes: tuple[str, ...] | None = None  # spelling of class 0, class 1, ... in the file
    shift: float = 0.0  # public constant added to a numeric target
    model: Literal["xgboost", "mlp", "cnn"] = "xgboost"  # the model that is trained on it
    train_rows: int | None = None  # number of first records for training; None: a random split
    shape: tuple[int, ...] = ()  # shape of one image; empty for a table
    # arguments of `sklearn.datasets.fetch_openml`, the source of a file that is not there
    openml: ByName | None = None
    rename: Mapping[str, str] = field(default_factory=dict)  # the file's name of a column, by OpenML's
    # the file's number for each value that OpenML spells out, by the file's name of the column
    codes: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    missing: str = ""  # how the file writes a missing value
    # public bounds of the columns whose variance is studied
    columns: Mapping[str, tuple[float, float]] = field(default_factory=dict)

    def fault(self, message: str) -> ValueError:
        """Return the error that says what is wrong with these data."""
        return ValueError(f"data set {self.name!r}: {message}")

    @contextmanager
    def reading(self, problem: str, advice: str = "") -> Iterator[None]:
        """Turn whatever pandas, numpy or the network raise into the error that says what is wrong."""
        try:
            yield
        except (OSError, EOFError, ValueError, TypeError, KeyError, zlib.error, zipfile.BadZipFile) as error:
            raise self.fault(f"{problem} ({error}){advice}") from error


def find_file(dataset: Dataset, data_dir: Folder) -> Path | None:
    """Return the path of the file of a data set, or None if OpenML must serve.

    A `ValueError` says that the folder does not exist, or that OpenML has not got the data either.
    """
    folder = data_dir or os.environ.get(DATA_VARIABLE)
    path = Path(folder or "", str(dataset.file_name))
    if folder and not Path(folder).is_dir():
        raise ValueError(f"there is no data folder {folder}")
    if folder and path.is_file():
        return path
    if dataset.openml is not None:
        return None
    raise dataset.fault(f"there is no file {path}{_advice(dataset)}")


def _advice(dataset: Dataset) -> str:
    return (
        f"; get it from {dataset.source}, save it as {dataset.file_name} in a folder, and name the folder "
        f"with --data-dir or the environment variable {DATA_VARIABLE}"
    )


def table_of(dataset: Dataset, data_dir: Folder) -> Any:
    """Return the table of a data set as a DataFrame in the form of the file, checked."""
    path = find_file(dataset, data_dir)
    needed = [dataset.target, *dataset.columns]
    if path is None:
        # what OpenML has as the file would be read; categories become numbers where they are
        origin, table = "OpenML", _frame(dataset).rename(columns=dict(dataset.rename))
        for name, codes in dataset.codes.items():
            if name in table.columns:
                # an unheard-of spelling becomes an empty cell
                table[name] = table[name].astype(str).map(dict(codes))
        text = table.to_csv(index=False, na_rep=dataset.missing)
        table = import_extra("pandas").read_csv(io.StringIO(text), skipinitialspace=True)
    else:
        origin = str(path)
        needed += dataset.drop  # OpenML's copy has no column that would have to be dropped
        with dataset.reading(f"{origin} is damaged or unreadable"):
            table = import_extra("pandas").read_csv(path)
    missing = [column for column in dict.fromkeys(needed) if column not in table.columns]
    if missing:
        raise dataset.fault(f"{origin} has no column {', '.join(missing)}")
    if len(table) != dataset.rows:
        raise dataset.fault(f"{origin} has {len(table)} rows, expected {dataset.rows}")
    if table.isna().to_numpy().any():
        raise dataset.fault(f"{origin} has empty cells")
    return table


def _frame(dataset: Dataset) -> Any:
    """Fetch a DataFrame from OpenML, or from scikit-learn's own cache of it."""
    import_extra("pandas")
    from sklearn import datasets

    assert dataset.openml is not None
    print(f"{dataset.name}: no file {dataset.file_name}, asking OpenML (kept in its cache)", file=sys.stderr)
    with dataset.reading("can't be fetched from OpenML", _advice(dataset)):
        return datasets.fetch_openml(**dataset.openml, as_frame=True).frame


def read_table_data(dataset: Dataset, data_dir: Folder) -> Loaded:
    """Load a table: one-hot encoded features, and the target as a float or class number."""
    pandas = import_extra("pandas")
    table = table_of(dataset, data_dir)
    column = table[dataset.target]
    with dataset.reading(f"column {dataset.target} holds unexpected values"):
        if dataset.classes is None:
            target = column.to_numpy(dtype=np.float64) + dataset.shift
        else:
            numbers = {name: number for number, name in enumerate(dataset.classes)}
            target = column.astype(str).map(numbers).astype(np.int64).to_numpy()
    features = table.drop(columns=[dataset.target, *dataset.drop], errors="ignore")
    features = pandas.get_dummies(features, dtype=np.float64)
    # xgboost refuses these three characters in feature names.
    safe = str.maketrans({"[": "(", "]": ")", "<": "lt "})
    features.columns = [str(column).translate(safe) for column in features.columns]
    return features, target


def read_image_data(dataset: Dataset, data_dir: Folder) -> Loaded:
    """Load images and their labels, the training part first."""
    path = find_file(dataset, data_dir)
    if path is None:
        origin, frame = "OpenML", _frame(dataset)
        with dataset.reading(f"{origin} holds unexpected values"):
            labels = frame[dataset.target].astype(np.int64).to_numpy()
            images = frame.drop(columns=dataset.target).to_numpy(dtype=np.uint8).reshape(-1, *dataset.shape)
    else:
        origin = str(path)
        with (
            dataset.reading(f"{origin} is damaged or unreadable"),
            path.open("rb") as stream,
            np.load(stream, allow_pickle=False) as arrays,
        ):
            found = len(arrays["x_train"])
            images, labels = (np.concatenate([arrays[f"{x}_train"], arrays[f"{x}_test"]]) for x in "xy")
            labels = labels.astype(np.int64)
        if found != dataset.train_rows:
            raise dataset.fault(f"{origin} has {found} training rows, expected {dataset.train_rows}")
    if images.shape != (dataset.rows, *dataset.shape) or labels.shape != (dataset.rows,):
        raise dataset.fault(f"{origin} has {len(labels)} rows, expected {dataset.rows}")
    if not np.isin(labels, range(10)).all():
        raise dataset.fault(f"{origin} holds unexpected labels")
    return images, labels


def _make_synthetic(dataset: Dataset, data_dir: Folder) -> Loaded:
    # The seed makes a fixed public data set; private releases never draw from this generator.
    rng = np.random.default_rng(20_231_114)
    x = rng.uniform(-1.0, 1.0, size=(dataset.rows, 8))
    signal = 10.0 * np.sin(np.pi * x[:, 0] * x[:, 1]) + 8.0 * x[:, 2] ** 2 + 5.0 * x[:, 3] + 3.0 * x[:, 4]
    # Five degrees of freedom: heavy tails, yet a finite fourth moment, so that an MSE has a sampling error.
    noise = 2.0 * rng.standard_t(5, size=dataset.rows)
    return x, signal + noise


def _bundled_digits(dataset: Dataset, data_dir: Folder) -> Loaded:
    from sklearn.datasets import load_digits

    x, y = load_digits(return_X_y=True)
    return x, y.astype(np.int64)


_LOADERS = {
    "table": read_table_data,
    "images": read_image_data,
    "synthetic": _make_synthetic,
    "digits": _bundled_digits,
}


def _with_tuples(told: Any) -> Any:
    """Return what a file of TOML says, with tuples in the place of lists."""
    if isinstance(told, dict):
        return {name: _with_tuples(one) for name, one in told.items()}
    return tuple(told) if isinstance(told, list) else told


_TOLD = tomllib.loads(Path(__file__).with_name("datasets.toml").read_text(encoding="utf-8"))
DATASETS = {
    name: Dataset(name, **told | {"loader": _LOADERS[told.get("loader", "table")]})
    for name, told in _with_tuples(_TOLD).items()
}
EMBEDDED = tuple(name for name, d in DATASETS.items() if d.file_name is None)  # these need no file


def get_dataset(name: str) -> Dataset:
    """Return the description of a data set; the error for an unknown name lists those that exist."""
    try:
        return DATASETS[name]
    except KeyError:
        raise ValueError(f"unknown data set {name!r}; there are: {', '.join(DATASETS)}") from None


def read_column(name: str, column: str, data_dir: Folder = None) -> Any:
    """Return one numeric column, float64, with the public shift if it is the target.

    `column` is one of the table, or the target of embedded data.
    """
    dataset = get_dataset(name)
    if dataset.file_name is None:
        return np.asarray(load_dataset(name)[1], dtype=np.float64)
    values = table_of(dataset, data_dir)[column]
    with dataset.reading(f"column {column} holds unexpected values"):
        return values.to_numpy(dtype=np.float64) + (dataset.shift if column == dataset.target else 0.0)


def load_dataset(name: str, data_dir: Folder = None) -> Loaded:
    """Load features and target of a data set.

    The folder of the data files is by default the environment variable ``DP_METRICS_DATA``; without the file,
    OpenML is asked. Features are numeric, of shape (n_samples, n_features); categories are one-hot encoded;
    images are uint8, of shape (n_samples, height, width, ...). The target is float64 for regression, class
    numbers from 0 otherwise. A `ValueError` says what is wrong with the name or the file.

    Examples
    --------
    >>> features, target = load_dataset("synthetic")
    >>> features.shape, target.shape
    ((20000, 8), (20000,))
    """
    dataset = get_dataset(name)
    return dataset.loader(dataset, data_dir)
