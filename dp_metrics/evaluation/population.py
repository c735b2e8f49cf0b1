"""The numbers that the experiments draw records from: columns, and the losses of trained models.

Losses are kept in npz files, so that neither a plot nor another run trains a model again.
"""

import hashlib
import json
import math
import os
import tempfile
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from dp_metrics import losses
from dp_metrics._release import loss_output_bounds, variance_output_bounds
from dp_metrics.bounds import OutputBounds
from dp_metrics.evaluation.datasets import Dataset, get_dataset, load_dataset, read_column
from dp_metrics.evaluation.models import MODEL_SEED, Evaluation, evaluate_model
from dp_metrics.evaluation.sources import find_file
from dp_metrics.mechanisms import Mechanism

__all__ = ["SPLIT_SEED", "Population", "Task", "load_population", "package_versions"]

Floats = NDArray[np.float64]

SPLIT_SEED = 0
"""Seed of every 80/20 split."""

_FORMAT = 1  # of the files of losses; to be raised whenever what they hold is computed differently
_LABELS = {"mse": "MSE", "mae": "MAE", "log_loss": "log loss", "variance": "variance"}


@dataclass(frozen=True)
class Task:
    """One panel of a figure: a metric of a data set.

    Attributes
    ----------
    dataset : str
        A name in `DATASETS`.
    metric : {"variance", "mse", "mae", "log_loss"}
        What is released.
    column : str
        The column whose variance is meant; empty for losses.
    """

    dataset: str
    metric: Literal["variance", "mse", "mae", "log_loss"]
    column: str = ""

    @property
    def title(self) -> str:
        """Heading of the panel."""
        names = {"Rings": "age", "cnt": "rentals", "hours-per-week": "hours"}
        column = f" {names.get(self.column, self.column)}" if self.column else ""
        return f"{self.dataset}{column}, {_LABELS[self.metric]}"


@dataclass(frozen=True, eq=False)
class Population:
    """All values that a task draws its records from, with what is public about them.

    Attributes
    ----------
    metric : str
        As in `Task`.
    values : ndarray of shape (n,)
        A column, or one loss per test record.
    bounds : tuple of float or None
        Public range of one value; None: at least 0.
    """

    metric: str
    values: Floats
    bounds: tuple[float, float] | None

    def draw(self, size: int, rng: np.random.Generator) -> Floats:
        """Return some records drawn without replacement: all of them if there are no more."""
        return rng.choice(self.values, min(size, self.values.size), replace=False)

    def output_bounds(
        self, sample: Floats, mechanism: Mechanism, epsilon: float, *, bounded: bool = True
    ) -> OutputBounds:
        """Return what a mechanism sees of the metric of a sample."""
        bounds = self.bounds if bounded else None
        if self.metric == "variance":
            return variance_output_bounds(sample, bounds=bounds, mechanism=mechanism, epsilon=epsilon)
        return loss_output_bounds(
            sample,
            max_loss=None if bounds is None else bounds[1],
            mechanism=mechanism,
            epsilon=epsilon,
            # the paper sums cross-entropy and averages the other losses
            paper_scale=1.0 / len(sample) if self.metric == "log_loss" else 1.0,
        )

    def truth(self, sample: Floats) -> tuple[float, float]:
        """Return the metric of a sample, and the standard error it has because the records are a sample."""
        terms = np.square(sample - np.mean(sample)) if self.metric == "variance" else sample
        return math.fsum(terms) / len(terms), float(np.std(terms)) / math.sqrt(len(terms))


def package_versions(dataset: Dataset | None = None) -> dict[str, str]:
    """Return the versions of the installed packages that results, or one data set's losses, depend on."""
    models = {"xgboost": "xgboost", "cnn": "torch"}
    used = models.values() if dataset is None else [models[dataset.model]] if dataset.model in models else []
    found = {}
    for name in ("dp_metrics", "numpy", "scikit-learn", *used):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def _losses_of(evaluation: Evaluation) -> dict[str, Floats]:
    """Return every loss per record, and under `<metric>_cap` its public cap (nan: none)."""
    y, prediction, bounds = evaluation.y_test, evaluation.prediction, evaluation.dataset.bounds
    arrays: dict[str, Floats] = {}
    if evaluation.dataset.task == "regression":
        y = y if bounds is None else np.clip(y, *bounds)
        for metric, kernel in (("mse", losses.squared_error), ("mae", losses.absolute_error)):
            cap = None if bounds is None else losses.largest_error(kernel, bounds)
            arrays[metric] = losses.clamp(kernel(y, prediction), cap)
            arrays[f"{metric}_cap"] = np.array(math.nan if cap is None else cap)
        return arrays
    # The clipped logits are the public cap here, not the rounding of probabilities near 0 and 1.
    tiny = float(np.finfo(np.float64).tiny if evaluation.max_loss is not None else np.finfo(np.float64).eps)
    cap = losses.log_loss_cap(tiny, evaluation.max_loss)
    columns = prediction if prediction.ndim == 2 else prediction[:, np.newaxis]
    arrays["log_loss"] = losses.clamp(losses.log_loss(y, columns, tiny), cap)
    arrays["log_loss_cap"] = np.array(cap)
    return arrays


def _metadata(dataset: Dataset, data_dir: Path | None) -> dict[str, Any]:
    path = None if dataset.file_name is None else find_file(dataset, data_dir)
    data = dataset.source
    if path is not None:
        with path.open("rb") as stream:
            data = hashlib.file_digest(stream, "sha256").hexdigest()
    return {
        "format": _FORMAT,
        "dataset": dataset.name,
        "data": data,
        "bounds": None if dataset.bounds is None else list(dataset.bounds),
        "split_seed": SPLIT_SEED,
        "model_seed": MODEL_SEED,
        "versions": package_versions(dataset),
    }


def _read_cache(path: Path, metadata: Mapping[str, Any]) -> dict[str, Floats] | None:
    try:
        with path.open("rb") as stream, np.load(stream, allow_pickle=False) as arrays:
            if json.loads(str(arrays["metadata"])) != metadata:
                return None
            return {name: arrays[name] for name in arrays.files if name != "metadata"}
    # A file that can't be read is made again, like one of other versions.
    except (OSError, EOFError, KeyError, ValueError, zipfile.BadZipFile):
        return None


def _write_cache(path: Path, metadata: Mapping[str, Any], arrays: Mapping[str, Floats]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=path.parent, suffix=".part", delete=False) as stream:
        np.savez(stream, allow_pickle=False, metadata=np.array(json.dumps(metadata)), **arrays)
    os.replace(stream.name, path)  # whole or not at all


def model_losses(
    dataset: Dataset, data_dir: Path | None, cache: Path, *, progress: bool = True
) -> dict[str, Floats]:
    """Return the losses of a model on its test part, from the cache or by training it.

    Parameters
    ----------
    dataset : Dataset
        Description of the data.
    data_dir : Path or None
        Folder of the data files.
    cache : Path
        Folder of the files of losses. A file made by other versions, seeds or data is not used.
    progress : bool, default=True
        Whether to show training on standard error.

    Returns
    -------
    dict of ndarray
        Per-record losses by metric, and the public cap of each under ``<metric>_cap``.
    """
    metadata = _metadata(dataset, data_dir)
    path = cache / f"{dataset.name}.npz"
    arrays = _read_cache(path, metadata)
    if arrays is None:
        evaluation = evaluate_model(
            dataset, *load_dataset(dataset.name, data_dir), split_seed=SPLIT_SEED, progress=progress
        )
        arrays = _losses_of(evaluation)
        _write_cache(path, metadata, arrays)
    return arrays


def load_population(task: Task, data_dir: Path | None, cache: Path, *, progress: bool = True) -> Population:
    """Return the population of a task; trains its model if its losses are not cached."""
    dataset = get_dataset(task.dataset)
    if task.metric == "variance":
        bounds = dict(dataset.columns).get(task.column, dataset.bounds)
        values = read_column(task.dataset, task.column, data_dir)
        return Population("variance", values if bounds is None else np.clip(values, *bounds), bounds)
    arrays = model_losses(dataset, data_dir, cache, progress=progress)
    cap = float(arrays[f"{task.metric}_cap"])
    return Population(task.metric, arrays[task.metric], None if math.isnan(cap) else (0.0, cap))
