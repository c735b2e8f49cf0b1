"""The numbers that the experiments draw records from: columns, and the losses of trained models.

Tables: xgboost with default parameters on an 80/20 split. Images come with a split of their own: a
perceptron for MNIST, a small convolutional network for CIFAR-10, which needs the `vision` extra (torch).

Losses are kept in a cache of joblib, so that neither a plot nor another run trains a model again.
"""

import hashlib
import math
import sys
import warnings
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from dp_metrics._packages import import_extra
from dp_metrics.evaluation.datasets import Dataset, find_file, get_dataset, load_dataset, read_column
from dp_metrics.inputs import losses
from dp_metrics.inputs.options import Array, Floats, own_error_state
from dp_metrics.mechanisms import Mechanism
from dp_metrics.metrics import METRICS
from dp_metrics.release.query import Terms
from dp_metrics.release.release import PreparedQuery

_LOGIT_BOUND = 10.0  # margins of binary models are clipped to [-10, 10], as in the paper: a public cap
_IMAGE_LOGIT_BOUND = 25.0  # logits of an image model are clipped to [-25, 25]
MODEL_SEED = 0  # it seeds weights and batches of the networks; xgboost's defaults draw nothing
# it seeds every 80/20 split, which is public and has nothing to do with the noise of a release
SPLIT_SEED = 0
_CNN_BATCH, _CNN_EPOCHS = 64, 10


def largest_log_loss(classes: int, spread: float) -> float:
    """Return the largest log loss of one record, with logits that differ by `spread` at most."""
    return float(np.log1p((classes - 1) * np.exp(spread)))


def evaluate_model(dataset: Dataset, features: Any, target: Array) -> tuple[Array, Floats]:
    """Train the model of a data set on its training part; return targets and predictions of the others.

    Predictions are values, or probabilities of class 1, or of each class of several.

    Regression predictions are clipped to the public bounds, if any; binary margins are clipped to [-10, 10],
    logits of image models to [-25, 25]. Progress goes to standard error.
    """
    from sklearn.model_selection import train_test_split

    split: dict[str, Any] = {"test_size": 0.2, "random_state": SPLIT_SEED}
    if dataset.train_rows is not None:
        split = {"train_size": dataset.train_rows, "shuffle": False}
    x_train, x_test, y_train, y_test = train_test_split(features, target, **split)
    if dataset.model != "xgboost":
        logits_of = _mlp_logits if dataset.model == "mlp" else _cnn_logits
        logits = logits_of(x_train, y_train, x_test)
        return y_test, softmax(np.clip(logits, -_IMAGE_LOGIT_BOUND, _IMAGE_LOGIT_BOUND), axis=1)
    xgboost, regression = import_extra("xgboost"), dataset.task == "regression"
    model_class = xgboost.XGBRegressor if regression else xgboost.XGBClassifier
    print(f"training on {dataset.name}", file=sys.stderr, flush=True)
    # One thread: the data are small, and on a busy machine more of them only wait for each other.
    model = model_class(n_jobs=1, device="cpu").fit(x_train, y_train)
    # Margins, not probabilities, of a classifier: xgboost's probabilities are float32 and reach 0 and 1.
    # Those of a regressor are its predictions.
    prediction = np.asarray(model.predict(x_test, output_margin=True), dtype=np.float64)
    if regression:
        return y_test, prediction if dataset.bounds is None else np.clip(prediction, *dataset.bounds)
    if dataset.task == "binary":
        return y_test, 1.0 / (1.0 + np.exp(-np.clip(prediction, -_LOGIT_BOUND, _LOGIT_BOUND)))
    return y_test, softmax(prediction, axis=1)


def _mlp_logits(x_train: Any, y_train: Any, x_test: Any) -> Floats:
    """Train one hidden layer of 128 relu units for 5 epochs; return the logits of the test images.

    `predict_proba` rounds small probabilities to float32, so the logits are computed from the fitted
    weights, in float64.
    """
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.neural_network import MLPClassifier

    scaled = np.asarray(x_train.reshape(len(x_train), -1) / np.float32(255), dtype=np.float32)
    print("training a perceptron, 5 epochs", file=sys.stderr, flush=True)
    model = MLPClassifier(hidden_layer_sizes=(128,), activation="relu", max_iter=5, random_state=MODEL_SEED)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # 5 epochs are what is asked for
        model.fit(scaled, y_train)
    (of_hidden, of_logits), (hidden_bias, logit_bias) = model.coefs_, model.intercepts_
    pixels = x_test.reshape(len(x_test), -1) / 255.0
    hidden = np.maximum(pixels @ of_hidden.astype(np.float64) + hidden_bias, 0.0)
    return np.asarray(hidden @ of_logits.astype(np.float64) + logit_bias)


def _cnn_logits(x_train: Any, y_train: Any, x_test: Any) -> Floats:
    """Train three convolutions and three dense layers; results also depend on the version of torch."""
    torch = import_extra("torch")
    nn = torch.nn

    def images(x: NDArray[np.uint8]) -> Any:
        return torch.from_numpy(np.ascontiguousarray(x.transpose(0, 3, 1, 2))).float() / 127.5 - 1.0

    generator = torch.Generator().manual_seed(MODEL_SEED)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(MODEL_SEED)
        model = nn.Sequential(
            nn.Conv2d(3, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(32, 64, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(64, 64, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
            nn.Flatten(),
            nn.Linear(64 * 4 * 4, 128), nn.ReLU(),
            nn.Linear(128, 64), nn.ReLU(),
            nn.Linear(64, int(y_train.max()) + 1),
        )  # fmt: skip
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    inputs, labels = images(x_train), torch.from_numpy(np.asarray(y_train, dtype=np.int64))
    steps = _CNN_EPOCHS * -(-len(x_train) // _CNN_BATCH)
    with import_extra("tqdm").tqdm(total=steps, desc="training the CNN", file=sys.stderr) as bar:
        for _ in range(_CNN_EPOCHS):
            for batch in torch.randperm(len(x_train), generator=generator).split(_CNN_BATCH):
                optimizer.zero_grad()
                nn.functional.cross_entropy(model(inputs[batch]), labels[batch]).backward()
                optimizer.step()
                bar.update()
    model.eval()
    with torch.no_grad():
        parts = [model(part) for part in images(x_test).split(1000)]
    return np.asarray(torch.cat(parts).double().numpy(), dtype=np.float64)


_FORMAT = 3  # version of the losses that are kept: raise it whenever they are computed differently
_IN_WORDS = {
    "mse": "MSE", "mae": "MAE", "log_loss": "log loss", "Rings": "age", "cnt": "rentals",
    "hours-per-week": "hours",
}  # fmt: skip


Task: TypeAlias = tuple[str, str, str]
"""One panel of a figure: a data set, the column of a variance (empty for losses), and the metric."""


def title_of(task: Task) -> str:
    """Return the heading of a panel."""
    dataset, column, metric = task
    of_column = f" {_IN_WORDS.get(column, column)}" if column else ""
    return f"{dataset}{of_column}, {_IN_WORDS.get(metric, metric)}"


@dataclass(frozen=True, eq=False)
class Population:
    """All values that a task draws its records from, with what is public about them."""

    metric: str
    values: Floats  # a column, or one loss per test record
    bounds: tuple[float, float] | None  # public range of one value; None: at least 0

    def draw(self, size: int, rng: np.random.Generator) -> Floats:
        """Return some records drawn without replacement: all of them if there are no more."""
        return rng.choice(self.values, min(size, self.values.size), replace=False)

    @own_error_state
    def prepared(
        self, sample: Floats, mechanism: Mechanism, epsilon: float, *, bounded: bool = True
    ) -> PreparedQuery:
        """Return what a mechanism has left to draw for the metric of a sample."""
        bounds = self.bounds if bounded else None
        metric, options = METRICS["private_mean_loss"], dict[str, Any](max_loss=bounds and bounds[1])
        if self.metric == "variance":
            metric, options = METRICS["private_variance"], {"bounds": bounds}
        terms = Terms.of(epsilon=epsilon, mechanism=mechanism)
        query, source, _ = metric.read([sample], options, relation=terms.relation)
        return PreparedQuery.of(metric.name, terms, query, source)

    def paper_unit(self, size: int) -> float:
        """Return the unit of the paper's preset: the paper sums cross-entropy, and averages the others."""
        return 1.0 / size if self.metric == "log_loss" else 1.0

    def truth(self, sample: Floats) -> tuple[float, float]:
        """Return the metric of a sample, and the standard error it has because the records are a sample."""
        terms = np.square(sample - np.mean(sample)) if self.metric == "variance" else sample
        return math.fsum(terms) / len(terms), float(np.std(terms)) / math.sqrt(len(terms))


def populations_of(dataset: Dataset, y: Array, prediction: Floats) -> dict[str, Population]:
    """Return every metric of a trained model: its losses per test record and, of a regressor, the targets."""
    bounds = dataset.bounds
    if dataset.task == "regression":
        found = {}
        y = y if bounds is None else np.clip(y, *bounds)  # the metrics clip as well
        for metric, loss in (("mse", losses.squared_error), ("mae", losses.absolute_error)):
            cap = None if bounds is None else losses.largest_error(loss, bounds)
            values = losses.clamp(loss(y, prediction), cap)
            found[metric] = Population(metric, values, None if cap is None else (0.0, cap))
        return found | {"variance": Population("variance", y, bounds)}
    columns = prediction if prediction.ndim == 2 else prediction[:, np.newaxis]
    # Clipped logits are the public cap where there are any, not the rounding of probabilities near 0 and 1.
    resolution, max_loss = float(np.finfo(np.float64).tiny), None
    if dataset.model != "xgboost":
        max_loss = largest_log_loss(columns.shape[1], 2 * _IMAGE_LOGIT_BOUND)
    elif dataset.task == "binary":
        max_loss = largest_log_loss(2, _LOGIT_BOUND)  # a margin is how far one logit is above the other
    else:
        resolution = float(np.finfo(np.float64).eps)
    cap = losses.log_loss_cap(resolution, max_loss)
    values = losses.clamp(losses.log_loss(y, columns, resolution), cap)
    return {"log_loss": Population("log_loss", values, (0.0, cap))}


def package_versions() -> dict[str, str]:
    """Return the versions of the installed packages that results depend on."""
    found = {}
    for name in ("dp_metrics", "numpy", "scikit-learn", "xgboost", "torch"):
        with suppress(PackageNotFoundError):
            found[name] = version(name)
    return found


def _trained(name: str, origin: list[Any], data_dir: Path | None) -> dict[str, Population]:
    dataset = get_dataset(name)
    return populations_of(dataset, *evaluate_model(dataset, *load_dataset(name, data_dir)))


def load_population(task: Task, data_dir: Path | None, cache: Path) -> Population:
    """Return the population of a task; trains its model if its losses are not in the folder `cache`."""
    name, column, metric = task
    dataset = get_dataset(name)
    if metric != "variance":
        path = None if dataset.file_name is None else find_file(dataset, data_dir)
        data = dataset.source if path is None else hashlib.sha256(path.read_bytes()).hexdigest()
        # all that the losses of a model depend on
        origin = [_FORMAT, data, dataset.bounds, SPLIT_SEED, MODEL_SEED, package_versions()]
        kept = import_extra("joblib").Memory(cache, verbose=0).cache(_trained, ignore=["data_dir"])
        found: Population = kept(name, origin, data_dir)[metric]
        return found
    bounds = dataset.columns.get(column, dataset.bounds)
    values = read_column(name, column, data_dir)
    return Population("variance", values if bounds is None else np.clip(values, *bounds), bounds)
