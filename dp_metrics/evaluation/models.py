"""Train the models of the experiments on public data and predict the held-out part.

Tables: xgboost with default parameters on an 80/20 split. Images come with a split of their own: a
perceptron for MNIST, a small convolutional network for CIFAR-10 (see `vision`).
"""

import sys
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dp_metrics.evaluation.datasets import Dataset, import_extra

__all__ = [
    "LOGIT_BOUND",
    "MODEL_SEED",
    "VISION_LOGIT_BOUND",
    "Evaluation",
    "evaluate_model",
    "largest_log_loss",
]

LOGIT_BOUND = 10.0
"""Margins of binary models are clipped to [-10, 10], as in the paper: a public cap on the log loss."""

VISION_LOGIT_BOUND = 25.0
"""Each logit of an image model is clipped to [-25, 25], as in the paper."""

MODEL_SEED = 0
"""Seed of the networks' weights and batches; xgboost's defaults draw nothing."""


def largest_log_loss(classes: int, bound: float) -> float:
    """Return the largest log loss of one record with this many logits in [-bound, bound].

    One logit of a binary model stands for two, the other of them 0.
    """
    return float(np.log1p(np.exp(bound)) if classes == 2 else np.log1p((classes - 1) * np.exp(2.0 * bound)))


@dataclass(frozen=True, eq=False)
class Evaluation:
    """A trained model's view of its test split: all that the metrics need.

    Attributes
    ----------
    dataset : Dataset
        Description of the data.
    y_test : ndarray of shape (n_test,)
        Targets of the test split: floats, or class numbers from 0.
    prediction : ndarray of shape (n_test,) or (n_test, n_classes)
        Predicted values (regression), probabilities of class 1 (binary) or of
        each class (multiclass), float64.
    n_train : int
        Number of training records.
    max_loss : float or None
        Public cap on one record's log loss that follows from clipped margins; None: the metric's default.
    """

    dataset: Dataset
    y_test: NDArray[Any]
    prediction: NDArray[np.float64]
    n_train: int
    max_loss: float | None = None


def _progress_callback(bar: Any) -> Any:
    training_callback = import_extra("xgboost").callback.TrainingCallback

    def after_iteration(self: Any, model: Any, epoch: int, evals_log: Any) -> bool:
        bar.update()
        return False  # go on training

    # Made at run time, because its base class must not be imported before it is needed.
    return type("ProgressCallback", (training_callback,), {"after_iteration": after_iteration})()


def _fit(model_class: Any, features: Any, target: NDArray[Any], *, label: str, progress: bool) -> Any:
    rounds = 100  # what xgboost's default n_estimators=None means; given here to size the progress bar
    tqdm = import_extra("tqdm").tqdm
    with tqdm(
        total=rounds, desc=f"training on {label}", unit="round", file=sys.stderr, disable=not progress
    ) as bar:
        # One thread: the data are small, and on a busy machine more of them only wait for each other.
        model = model_class(n_estimators=rounds, n_jobs=1, device="cpu", callbacks=[_progress_callback(bar)])
        return model.fit(features, target)


def _softmax(margin: NDArray[np.float64]) -> NDArray[np.float64]:
    weight = np.exp(margin - margin.max(axis=1, keepdims=True))
    return np.asarray(weight / weight.sum(axis=1, keepdims=True), dtype=np.float64)


def _mlp_logits(x_train: Any, y_train: Any, x_test: Any, *, progress: bool) -> NDArray[np.float64]:
    """Train one hidden layer of 128 relu units for 5 epochs; return the logits of the test images.

    `predict_proba` rounds small probabilities to float32, so the logits are computed from the fitted
    weights, in float64.
    """
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.neural_network import MLPClassifier

    scaled = np.asarray(x_train.reshape(len(x_train), -1) / np.float32(255), dtype=np.float32)
    if progress:
        print("training a perceptron, 5 epochs", file=sys.stderr, flush=True)
    model = MLPClassifier(hidden_layer_sizes=(128,), activation="relu", max_iter=5, random_state=MODEL_SEED)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # 5 epochs are what is asked for
        model.fit(scaled, y_train)
    layer = x_test.reshape(len(x_test), -1) / 255.0
    for weights, biases in zip(model.coefs_[:-1], model.intercepts_[:-1], strict=True):
        layer = np.maximum(layer @ weights.astype(np.float64) + biases, 0.0)
    return np.asarray(layer @ model.coefs_[-1].astype(np.float64) + model.intercepts_[-1])


def _split(dataset: Dataset, features: Any, target: NDArray[Any], split_seed: int) -> tuple[Any, ...]:
    from sklearn.model_selection import train_test_split

    if dataset.train_rows is not None:
        here = dataset.train_rows
        return features[:here], features[here:], target[:here], target[here:]
    return tuple(train_test_split(features, target, test_size=0.2, random_state=split_seed))


def evaluate_model(
    dataset: Dataset, features: Any, target: NDArray[Any], *, split_seed: int = 0, progress: bool = True
) -> Evaluation:
    """Train the model of a data set on its training part and predict the others.

    Parameters
    ----------
    dataset : Dataset
        Description of the data.
    features : array-like or pandas.DataFrame of shape (n_samples, ...)
        Numeric features.
    target : ndarray of shape (n_samples,)
        Target values, or class numbers from 0.
    split_seed : int, default=0
        Seed of the split. The split is public; it has nothing to do with the noise of a release.
    progress : bool, default=True
        Whether to show progress on standard error.

    Returns
    -------
    Evaluation
        Test targets and predictions. Regression predictions are clipped to the public bounds, if any;
        binary margins are clipped to [-10, 10], logits of image models to [-25, 25].

    Raises
    ------
    MissingExtraError
        If a package that the model needs is missing.
    """
    x_train, x_test, y_train, y_test = _split(dataset, features, target, split_seed)
    if dataset.model != "xgboost":
        if dataset.model == "mlp":
            logits = _mlp_logits(x_train, y_train, x_test, progress=progress)
        else:
            from dp_metrics.evaluation.vision import cnn_logits

            logits = cnn_logits(x_train, y_train, x_test, seed=MODEL_SEED, progress=progress)
        proba = _softmax(np.clip(logits, -VISION_LOGIT_BOUND, VISION_LOGIT_BOUND))
        cap = largest_log_loss(proba.shape[1], VISION_LOGIT_BOUND)
        return Evaluation(dataset, y_test, proba, len(y_train), cap)
    xgboost = import_extra("xgboost")
    regression = dataset.task == "regression"
    model = _fit(
        xgboost.XGBRegressor if regression else xgboost.XGBClassifier,
        x_train,
        y_train,
        label=dataset.name,
        progress=progress,
    )
    # Margins, not probabilities, of a classifier: xgboost's probabilities are float32 and reach 0 and 1.
    prediction = np.asarray(
        model.predict(x_test) if regression else model.predict(x_test, output_margin=True), dtype=np.float64
    )
    max_loss = None
    if regression:
        if dataset.bounds is not None:
            prediction = np.clip(prediction, *dataset.bounds)
    elif dataset.task == "binary":
        prediction = 1.0 / (1.0 + np.exp(-np.clip(prediction, -LOGIT_BOUND, LOGIT_BOUND)))
        max_loss = largest_log_loss(2, LOGIT_BOUND)
    else:
        prediction = _softmax(prediction)
    return Evaluation(dataset, y_test, prediction, len(y_train), max_loss)
