"""The data sets of the experiments: one table, and `load_dataset` to read any of them.

They are public data, read for study; nothing here is private or needs to be.
"""

import gzip
import importlib
import os
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "DATASETS",
    "DATA_VARIABLE",
    "EMBEDDED",
    "Dataset",
    "DatasetError",
    "MissingExtraError",
    "get_dataset",
    "import_extra",
    "load_dataset",
    "read_table",
]

DATA_VARIABLE = "DP_METRICS_DATA"
"""Environment variable that names the folder of the data files."""

Loaded: TypeAlias = tuple[Any, NDArray[Any]]


class DatasetError(Exception):
    """A data set is unknown, missing, damaged or not the one that was expected."""


class MissingExtraError(ImportError):
    """A package of the `evaluation` extra is missing or can't be imported."""


def import_extra(name: str) -> Any:
    """Import a package of the `evaluation` extra, or say how to install it.

    Parameters
    ----------
    name : str
        Module name, such as ``"pandas"`` or ``"matplotlib.figure"``.

    Returns
    -------
    module
        The imported module.

    Raises
    ------
    MissingExtraError
        If it can't be imported.
    """
    try:
        return importlib.import_module(name)
    except ImportError as error:
        package = name.partition(".")[0]
        raise MissingExtraError(
            f'{package} is needed and can\'t be imported; run: pip install "dp_metrics[evaluation]"'
        ) from error
    except (OSError, ValueError) as error:
        # Installed, but broken: xgboost without the OpenMP library, or built for another numpy.
        raise MissingExtraError(f"{name} is installed but can't be imported: {error}") from error


@dataclass(frozen=True)
class Dataset:
    """What is publicly known about a data set, and how to read it.

    Attributes
    ----------
    name : str
        Name typed by users.
    task : {"regression", "binary", "multiclass"}
        What a model predicts.
    target : str
        Name of the target (a column of the file, if there is one).
    rows : int
        Number of records; a file with another number is refused.
    source, licence : str
        Where it comes from and under which terms.
    loader : callable
        ``loader(dataset, data_dir) -> (features, target)``.
    bounds : tuple of float or None
        Public range of a regression target; None if there is none.
    file_name : str or None
        Name inside the data folder; None for embedded data.
    drop : tuple of str
        Columns that are not features, apart from the target.
    classes : tuple of str or None
        Spelling of class 0, class 1, ... in the file.
    shift : float
        Public constant added to a numeric target.
    """

    name: str
    task: Literal["regression", "binary", "multiclass"]
    target: str
    rows: int
    source: str
    licence: str
    loader: "Callable[[Dataset, Path | None], Loaded]"
    bounds: tuple[float, float] | None = None
    file_name: str | None = None
    drop: tuple[str, ...] = ()
    classes: tuple[str, ...] | None = None
    shift: float = 0.0


def _make_synthetic(dataset: Dataset, data_dir: Path | None) -> Loaded:
    # The seed makes a fixed public data set; private releases never draw from this generator.
    rng = np.random.default_rng(20_231_114)
    x = rng.uniform(-1.0, 1.0, size=(dataset.rows, 8))
    signal = 10.0 * np.sin(np.pi * x[:, 0] * x[:, 1]) + 8.0 * x[:, 2] ** 2 + 5.0 * x[:, 3] + 3.0 * x[:, 4]
    # Five degrees of freedom: heavy tails, yet a finite fourth moment, so that the sampling error of an
    # MSE or a variance, which the table prints as the yardstick, exists.
    noise = 2.0 * rng.standard_t(5, size=dataset.rows)
    return x, signal + noise


def _bundled_digits(dataset: Dataset, data_dir: Path | None) -> Loaded:
    from sklearn.datasets import load_digits

    x, y = load_digits(return_X_y=True)
    return x, y.astype(np.int64)


def _path_of(dataset: Dataset, data_dir: Path | None) -> Path:
    if data_dir is None:
        if not os.environ.get(DATA_VARIABLE):
            raise DatasetError(
                f"data set {dataset.name!r} is read from {dataset.file_name}: give the folder of that file "
                f"with --data-dir or the environment variable {DATA_VARIABLE}"
            )
        data_dir = Path(os.environ[DATA_VARIABLE])
    path = data_dir / str(dataset.file_name)
    if not path.is_file():
        raise DatasetError(f"data set {dataset.name!r}: there is no file {path}")
    return path


def read_table(name: str, data_dir: str | os.PathLike[str] | None = None) -> Any:
    """Read the file of a data set, as it is, and check that it is the expected one.

    Parameters
    ----------
    name : str
        A name in `DATASETS` that has a file.
    data_dir : path-like, default=None
        Folder of the files; None: the environment variable ``DP_METRICS_DATA``.

    Returns
    -------
    pandas.DataFrame
        All columns, target included.

    Raises
    ------
    DatasetError
        If the file is missing, damaged, or lacks a column or rows.
    """
    dataset = get_dataset(name)
    if dataset.file_name is None:
        raise DatasetError(f"data set {name!r} is embedded and has no file")
    path = _path_of(dataset, None if data_dir is None else Path(data_dir))
    pandas = import_extra("pandas")
    try:
        with gzip.open(path, "rt", encoding="utf-8", newline="") as stream:
            table = pandas.read_csv(stream)
    # ValueError covers what pandas raises on text that is no table, and undecodable bytes.
    except (OSError, EOFError, zlib.error, ValueError) as error:
        raise DatasetError(f"data set {name!r}: {path} is damaged or unreadable ({error})") from error
    missing = [column for column in (dataset.target, *dataset.drop) if column not in table.columns]
    if missing:
        raise DatasetError(f"data set {name!r}: {path} has no column {', '.join(missing)}")
    if len(table) != dataset.rows:
        raise DatasetError(f"data set {name!r}: {path} has {len(table)} rows, expected {dataset.rows}")
    if table.isna().to_numpy().any():
        raise DatasetError(f"data set {name!r}: {path} has empty cells")
    return table


def _read_csv(dataset: Dataset, data_dir: Path | None) -> Loaded:
    pandas = import_extra("pandas")
    table = read_table(dataset.name, data_dir)
    column = table[dataset.target]
    if dataset.classes is not None:
        target = pandas.Index(dataset.classes).get_indexer(column.astype(str))
        known = bool((target >= 0).all())
    else:
        known = bool(pandas.api.types.is_numeric_dtype(column))
        target = column.to_numpy(dtype=np.float64) + dataset.shift if known else None
    if not known:
        raise DatasetError(f"data set {dataset.name!r}: column {dataset.target} holds unexpected values")
    features = pandas.get_dummies(table.drop(columns=[dataset.target, *dataset.drop]), dtype=np.float64)
    # xgboost refuses these three characters in feature names.
    safe = str.maketrans({"[": "(", "]": ")", "<": "lt "})
    features.columns = [str(column).translate(safe) for column in features.columns]
    return features, target


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
        _read_csv, bounds=(0.0, 50_000.0), file_name="diamonds.csv.gz",
    ),
    Dataset(
        "abalone", "regression", "Rings", 4_177, "UCI no. 1, doi 10.24432/C55C7W", "CC BY 4.0",
        _read_csv, bounds=(0.0, 50.0), file_name="abalone.csv.gz", shift=1.5,
    ),
    Dataset(
        "bike", "regression", "cnt", 17_379, "UCI no. 275, doi 10.24432/C5W894", "CC BY 4.0",
        _read_csv, bounds=(0.0, 5_000.0), file_name="bike_hour.csv.gz",
        # casual + registered == cnt in every row: keeping them would give the target away.
        drop=("casual", "registered", "instant", "dteday"),
    ),
    Dataset(
        "adult", "binary", "income", 48_842, "UCI no. 2, doi 10.24432/C5XW20", "CC BY 4.0",
        _read_csv, file_name="adult.csv.gz", classes=("<=50K", ">50K"),
    ),
    Dataset(
        "diabetes", "binary", "diabetes", 100_000, "Kaggle `Diabetes prediction dataset`", "not confirmed",
        _read_csv, file_name="diabetes.csv.gz", classes=("0", "1"),
    ),
)  # fmt: skip

DATASETS: dict[str, Dataset] = {dataset.name: dataset for dataset in _ALL}
"""Every data set by name."""

EMBEDDED: tuple[str, ...] = tuple(dataset.name for dataset in _ALL if dataset.file_name is None)
"""Names of those that need no file."""


def get_dataset(name: str) -> Dataset:
    """Return the description of a data set.

    Parameters
    ----------
    name : str
        A name in `DATASETS`.

    Returns
    -------
    Dataset
        Its description.

    Raises
    ------
    DatasetError
        If there is none of that name; the message lists those that exist.
    """
    try:
        return DATASETS[name]
    except KeyError:
        raise DatasetError(f"unknown data set {name!r}; there are: {', '.join(DATASETS)}") from None


def load_dataset(name: str, data_dir: str | os.PathLike[str] | None = None) -> Loaded:
    """Load features and target of a data set.

    Parameters
    ----------
    name : str
        A name in `DATASETS`.
    data_dir : path-like, default=None
        Folder of the data files; None: the environment variable ``DP_METRICS_DATA``.
        Not used for embedded data.

    Returns
    -------
    features : ndarray or pandas.DataFrame of shape (n_samples, n_features)
        Numeric; categories are one-hot encoded.
    target : ndarray of shape (n_samples,)
        float64 for regression, class numbers from 0 otherwise.

    Raises
    ------
    DatasetError
        If the data set is unknown, or its file is missing, damaged or not the expected one.
    MissingExtraError
        If pandas is needed and missing.

    Examples
    --------
    >>> from dp_metrics.evaluation.datasets import load_dataset
    >>> features, target = load_dataset("synthetic")
    >>> features.shape, target.shape
    ((20000, 8), (20000,))
    """
    dataset = get_dataset(name)
    return dataset.loader(dataset, None if data_dir is None else Path(data_dir))
