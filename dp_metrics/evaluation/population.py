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
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

from dp_metrics.analysis.simulation import loss_draw, variance_draw
from dp_metrics.evaluation.datasets import get_dataset, load_dataset, read_column
from dp_metrics.evaluation.sources import Dataset, find_file
from dp_metrics.evaluation.trained_models import MODEL_SEED, SPLIT_SEED, Evaluation, evaluate_model
from dp_metrics.inputs import losses
from dp_metrics.inputs.floats import Floats
from dp_metrics.mechanisms import Mechanism
from dp_metrics.release.draws import NumberDraw

_FORMAT = 2  # version of the files of losses: raise it whenever they are computed differently
_LABELS = {"mse": "MSE", "mae": "MAE", "log_loss": "log loss", "variance": "variance"}


@dataclass(frozen=True)
class Task:
    """One panel of a figure: a metric of a data set."""

    dataset: str
    metric: str  # variance, mse, mae or log_loss
    column: str = ""  # the column of a variance; empty for losses

    @property
    def title(self) -> str:
        """Heading of the panel."""
        names = {"Rings": "age", "cnt": "rentals", "hours-per-week": "hours"}
        column = f" {names.get(self.column, self.column)}" if self.column else ""
        return f"{self.dataset}{column}, {_LABELS[self.metric]}"


@dataclass(frozen=True, eq=False)
class Population:
    """All values that a task draws its records from, with what is public about them."""

    metric: str
    values: Floats  # a column, or one loss per test record
    bounds: tuple[float, float] | None  # public range of one value; None: at least 0

    def draw(self, size: int, rng: np.random.Generator) -> Floats:
        """Return some records drawn without replacement: all of them if there are no more."""
        return rng.choice(self.values, min(size, self.values.size), replace=False)

    def prepared(
        self, sample: Floats, mechanism: Mechanism, epsilon: float, *, bounded: bool = True
    ) -> NumberDraw:
        """Return what a mechanism makes of the metric of a sample."""
        bounds = self.bounds if bounded else None
        if self.metric == "variance":
            return variance_draw(sample, bounds=bounds, mechanism=mechanism, epsilon=epsilon)
        cap = None if bounds is None else bounds[1]
        return loss_draw(sample, max_loss=cap, mechanism=mechanism, epsilon=epsilon)

    def paper_unit(self, size: int) -> float:
        """Return the unit of the paper's preset: the paper sums cross-entropy, and averages the others."""
        return 1.0 / size if self.metric == "log_loss" else 1.0

    def truth(self, sample: Floats) -> tuple[float, float]:
        """Return the metric of a sample, and the standard error it has because the records are a sample."""
        terms = np.square(sample - np.mean(sample)) if self.metric == "variance" else sample
        return math.fsum(terms) / len(terms), float(np.std(terms)) / math.sqrt(len(terms))


def populations_of(evaluation: Evaluation) -> dict[str, Population]:
    """Return every metric of a trained model: its losses per test record and, of a regressor, the targets."""
    y, prediction, bounds = evaluation.y_test, evaluation.prediction, evaluation.dataset.bounds
    found = {}
    if evaluation.dataset.task == "regression":
        y = y if bounds is None else np.clip(y, *bounds)  # the metrics clip as well
        for metric, loss in (("mse", losses.squared_error), ("mae", losses.absolute_error)):
            cap = None if bounds is None else losses.largest_error(loss, bounds)
            values = losses.clamp(loss(y, prediction), cap)
            found[metric] = Population(metric, values, None if cap is None else (0.0, cap))
        return found | {"variance": Population("variance", y, bounds)}
    # Clipped logits are the public cap where there are any, not the rounding of probabilities near 0 and 1.
    floats = np.finfo(np.float64)
    resolution = float(floats.eps if evaluation.max_loss is None else floats.tiny)
    cap = losses.log_loss_cap(resolution, evaluation.max_loss)
    columns = prediction if prediction.ndim == 2 else prediction[:, np.newaxis]
    values = losses.clamp(losses.log_loss(y, columns, resolution), cap)
    return {"log_loss": Population("log_loss", values, (0.0, cap))}


def package_versions(dataset: Dataset | None = None) -> dict[str, str]:
    """Return the versions of the installed packages that results, or one data set's losses, depend on."""
    models = {"xgboost": "xgboost", "cnn": "torch"}
    used = models.values() if dataset is None else [models[dataset.model]] if dataset.model in models else []
    found = {}
    for name in ("dp_metrics", "numpy", "scikit-learn", *used):
        with suppress(PackageNotFoundError):
            found[name] = version(name)
    return found


def _metadata(dataset: Dataset, data_dir: Path | None) -> dict[str, Any]:
    path = None if dataset.file_name is None else find_file(dataset, data_dir)
    data = dataset.source
    if path is not None:
        with path.open("rb") as stream:
            data = hashlib.file_digest(stream, "sha256").hexdigest()
    return {
        "format": _FORMAT, "dataset": dataset.name, "data": data,
        "bounds": None if dataset.bounds is None else list(dataset.bounds),
        "split_seed": SPLIT_SEED, "model_seed": MODEL_SEED, "versions": package_versions(dataset),
    }  # fmt: skip


def _read_cache(path: Path, metadata: Mapping[str, Any]) -> dict[str, Population] | None:
    try:
        with path.open("rb") as stream, np.load(stream, allow_pickle=False) as arrays:
            stored = json.loads(str(arrays["metadata"]))
            if stored["of"] != metadata:
                return None
            return {
                metric: Population(metric, arrays[metric], None if bounds is None else tuple(bounds))
                for metric, bounds in stored["ranges"].items()
            }
    # A file that can't be read is made again, like one of other versions.
    except (OSError, EOFError, KeyError, ValueError, zipfile.BadZipFile):
        return None


def _write_cache(path: Path, metadata: Mapping[str, Any], populations: Mapping[str, Population]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    stored = {"of": metadata, "ranges": {metric: found.bounds for metric, found in populations.items()}}
    arrays = {metric: found.values for metric, found in populations.items()}
    with tempfile.NamedTemporaryFile(dir=path.parent, suffix=".part", delete=False) as stream:
        np.savez(stream, allow_pickle=False, metadata=np.array(json.dumps(stored)), **arrays)
    os.replace(stream.name, path)  # whole or not at all


def model_populations(
    dataset: Dataset, data_dir: Path | None, cache: Path, *, progress: bool = True
) -> dict[str, Population]:
    """Return `populations_of` the model of a data set, from a fitting file in `cache` or by training it."""
    metadata = _metadata(dataset, data_dir)
    path = cache / f"{dataset.name}.npz"
    populations = _read_cache(path, metadata)
    if populations is None:
        populations = populations_of(
            evaluate_model(dataset, *load_dataset(dataset.name, data_dir), progress=progress)
        )
        _write_cache(path, metadata, populations)
    return populations


def load_population(task: Task, data_dir: Path | None, cache: Path, *, progress: bool = True) -> Population:
    """Return the population of a task; trains its model if its losses are not cached."""
    dataset = get_dataset(task.dataset)
    if task.metric != "variance":
        return model_populations(dataset, data_dir, cache, progress=progress)[task.metric]
    bounds = dict(dataset.columns).get(task.column, dataset.bounds)
    values = read_column(task.dataset, task.column, data_dir)
    return Population("variance", values if bounds is None else np.clip(values, *bounds), bounds)
