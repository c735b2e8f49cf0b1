"""Where data come from: files in a folder, or OpenML.

Whatever is wrong with a file is one clear error; nothing is ever read short without one.
"""

import gzip
import os
import sys
import zipfile
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dp_metrics._packages import import_extra

DATA_VARIABLE = "DP_METRICS_DATA"
"""Environment variable that names the folder of the data files."""

Loaded: TypeAlias = tuple[Any, NDArray[Any]]


class DatasetError(Exception):
    """A data set is unknown, missing, damaged or not the one that was expected."""


@dataclass(frozen=True)
class OpenML:
    """How to get a data set from OpenML and turn it into the form of the file."""

    query: Mapping[str, Any]  # arguments of `sklearn.datasets.fetch_openml`
    rename: Mapping[str, str] = field(default_factory=dict)  # the file's name of a column, by OpenML's
    # the file's number for each value that OpenML spells out, by the file's name of the column
    codes: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    missing: str | None = None  # how the file writes a missing value


@dataclass(frozen=True)
class Dataset:
    """What is publicly known about a data set, and how to read it."""

    name: str  # users type this name
    task: Literal["regression", "binary", "multiclass"]  # the kind of target that a model predicts
    target: str  # a column of the file, if there is one
    rows: int  # a file with another number of records is refused
    source: str
    licence: str
    loader: "Callable[[Dataset, Path | None], Loaded]"  # (dataset, folder) -> (features, target)
    bounds: tuple[float, float] | None = None  # public range of a regression target
    file_name: str | None = None  # inside the data folder; None for embedded data
    drop: tuple[str, ...] = ()  # columns that are not features, apart from the target
    classes: tuple[str, ...] | None = None  # spelling of class 0, class 1, ... in the file
    shift: float = 0.0  # public constant added to a numeric target
    model: Literal["xgboost", "mlp", "cnn"] = "xgboost"  # the model that is trained on it
    train_rows: int | None = None  # number of first records for training; None: a random split
    shape: tuple[int, ...] = ()  # shape of one image; empty for a table
    openml: OpenML | None = None  # source of a file that is not there
    columns: tuple[tuple[str, tuple[float, float]], ...] = ()  # variances studied, and public bounds

    def fault(self, message: str) -> DatasetError:
        """Return the error that says what is wrong with these data."""
        return DatasetError(f"data set {self.name!r}: {message}")


def find_file(dataset: Dataset, data_dir: Path | None) -> Path | None:
    """Return the path of the file of a data set, or None if OpenML must serve.

    A `DatasetError` says that the folder does not exist, or that OpenML has not got the data either.
    """
    if data_dir is None and os.environ.get(DATA_VARIABLE):
        data_dir = Path(os.environ[DATA_VARIABLE])
    name = str(dataset.file_name)
    if data_dir is not None:
        if not data_dir.is_dir():
            raise DatasetError(f"there is no data folder {data_dir}")
        if (data_dir / name).is_file():
            return data_dir / name
    if dataset.openml is not None:
        return None
    raise dataset.fault(f"there is no file {name if data_dir is None else data_dir / name}{_advice(dataset)}")


def _advice(dataset: Dataset) -> str:
    return (
        f"; get it from {dataset.source}, save it as {dataset.file_name} in a folder, and name the folder "
        f"with --data-dir or the environment variable {DATA_VARIABLE}"
    )


def table_of(dataset: Dataset, data_dir: Path | None) -> Any:
    """Return the table of a data set as a DataFrame in the form of the file, checked."""
    path = find_file(dataset, data_dir)
    table = _fetched(dataset) if path is None else _read_csv(dataset, path)
    needed = [dataset.target, *(column for column, _ in dataset.columns)]
    if path is not None:
        needed += dataset.drop  # OpenML's copy has no column that would have to be dropped
    origin = "OpenML" if path is None else str(path)
    missing = [column for column in dict.fromkeys(needed) if column not in table.columns]
    if missing:
        raise dataset.fault(f"{origin} has no column {', '.join(missing)}")
    if len(table) != dataset.rows:
        raise dataset.fault(f"{origin} has {len(table)} rows, expected {dataset.rows}")
    if table.isna().to_numpy().any():
        raise dataset.fault(f"{origin} has empty cells")
    return table


def _read_csv(dataset: Dataset, path: Path) -> Any:
    pandas = import_extra("pandas")
    try:
        with gzip.open(path, "rt", encoding="utf-8", newline="") as stream:
            return pandas.read_csv(stream)
    # ValueError covers what pandas raises on text that is no table, and undecodable bytes.
    except (OSError, EOFError, zlib.error, ValueError) as error:
        raise dataset.fault(f"{path} is damaged or unreadable ({error})") from error


def _frame(dataset: Dataset) -> Any:
    """Fetch a DataFrame from OpenML, or from scikit-learn's own cache of it."""
    import_extra("pandas")
    from sklearn import datasets

    assert dataset.openml is not None
    print(f"{dataset.name}: no file {dataset.file_name}, asking OpenML (kept in its cache)", file=sys.stderr)
    try:
        return datasets.fetch_openml(**dataset.openml.query, as_frame=True).frame
    except (OSError, EOFError, ValueError) as error:
        raise dataset.fault(f"can't be fetched from OpenML ({error}){_advice(dataset)}") from error


def _fetched(dataset: Dataset) -> Any:
    pandas = import_extra("pandas")
    assert dataset.openml is not None
    table = _frame(dataset).rename(columns=dict(dataset.openml.rename)).copy()
    for name in table.columns:
        column = table[name]
        if pandas.api.types.is_numeric_dtype(column):
            continue
        text = column.astype(object)
        text = text.where(column.notna(), dataset.openml.missing).astype(str).str.strip()
        if name in dataset.openml.codes:
            table[name] = text.map(dict(dataset.openml.codes[name]))  # an unheard-of spelling: an empty cell
            continue
        try:
            table[name] = pandas.to_numeric(text)  # such as abalone's rings, which OpenML calls categories
        except ValueError:
            table[name] = text
    return table


def read_table_data(dataset: Dataset, data_dir: Path | None) -> Loaded:
    """Load a table: one-hot encoded features, and the target as a float or class number."""
    pandas = import_extra("pandas")
    table = table_of(dataset, data_dir)
    column = table[dataset.target]
    if dataset.classes is not None:
        target = pandas.Index(dataset.classes).get_indexer(column.astype(str))
        known = bool((target >= 0).all())
    else:
        known = bool(pandas.api.types.is_numeric_dtype(column))
        target = column.to_numpy(dtype=np.float64) + dataset.shift if known else None
    if not known:
        raise dataset.fault(f"column {dataset.target} holds unexpected values")
    dropped = [name for name in (dataset.target, *dataset.drop) if name in table.columns]
    features = pandas.get_dummies(table.drop(columns=dropped), dtype=np.float64)
    # xgboost refuses these three characters in feature names.
    safe = str.maketrans({"[": "(", "]": ")", "<": "lt "})
    features.columns = [str(column).translate(safe) for column in features.columns]
    return features, target


def read_image_data(dataset: Dataset, data_dir: Path | None) -> Loaded:
    """Load images and their labels, the training part first."""
    path = find_file(dataset, data_dir)
    if path is None:
        origin, frame = "OpenML", _frame(dataset)
        if dataset.target not in frame.columns:
            raise dataset.fault(f"{origin} has no column {dataset.target}")
        try:
            labels = frame[dataset.target].astype(np.int64).to_numpy()
            images = frame.drop(columns=[dataset.target]).to_numpy(dtype=np.uint8)
            images = images.reshape(len(frame), *dataset.shape)
        except ValueError as error:
            raise dataset.fault(f"{origin} holds unexpected values") from error
    else:
        origin = str(path)
        images, labels = _read_npz(dataset, path)
    if images.shape != (dataset.rows, *dataset.shape) or labels.shape != (dataset.rows,):
        raise dataset.fault(f"{origin} has {len(labels)} rows, expected {dataset.rows}")
    if not ((labels >= 0) & (labels <= 9)).all():
        raise dataset.fault(f"{origin} holds unexpected labels")
    return images, labels


def _read_npz(dataset: Dataset, path: Path) -> Loaded:
    try:
        with path.open("rb") as stream, np.load(stream, allow_pickle=False) as arrays:
            x_train, y_train = arrays["x_train"], arrays["y_train"]
            x_test, y_test = arrays["x_test"], arrays["y_test"]
        if len(x_train) != dataset.train_rows or len(y_train) != dataset.train_rows:
            raise dataset.fault(f"{path} has {len(x_train)} training rows, expected {dataset.train_rows}")
        return np.concatenate([x_train, x_test]), np.concatenate([y_train, y_test]).astype(np.int64)
    except KeyError as error:
        raise dataset.fault(f"{path} lacks an array: {error.args[0]}") from error
    except (OSError, EOFError, ValueError, TypeError, zlib.error, zipfile.BadZipFile) as error:
        raise dataset.fault(f"{path} is damaged or unreadable ({error})") from error
