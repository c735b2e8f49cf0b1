"""Train xgboost on a public 80/20 split and predict the held-out part."""

import sys
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dp_metrics.evaluation.datasets import Dataset, import_extra

__all__ = ["LOGIT_BOUND", "Evaluation", "evaluate_model"]

LOGIT_BOUND = 10.0
"""Margins of binary models are clipped to [-10, 10], as in the paper: a public cap on the log loss."""


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


def evaluate_model(
    dataset: Dataset, features: Any, target: NDArray[Any], *, split_seed: int = 0, progress: bool = True
) -> Evaluation:
    """Train xgboost with default parameters on 80 % of the records and predict the others.

    Parameters
    ----------
    dataset : Dataset
        Description of the data.
    features : array-like or pandas.DataFrame of shape (n_samples, n_features)
        Numeric features.
    target : ndarray of shape (n_samples,)
        Target values, or class numbers from 0.
    split_seed : int, default=0
        Seed of the split. The split is public; it has nothing to do with the noise of a release.
    progress : bool, default=True
        Whether to show a progress bar on standard error.

    Returns
    -------
    Evaluation
        Test targets and predictions. Regression predictions are clipped to the public bounds, if any;
        binary margins are clipped to [-10, 10].

    Raises
    ------
    MissingExtraError
        If xgboost or tqdm is missing.
    """
    from sklearn.model_selection import train_test_split

    xgboost = import_extra("xgboost")
    x_train, x_test, y_train, y_test = train_test_split(
        features, target, test_size=0.2, random_state=split_seed
    )
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
        max_loss = float(np.log1p(np.exp(LOGIT_BOUND)))
    else:
        prediction = _softmax(prediction)
    return Evaluation(dataset, y_test, prediction, len(y_train), max_loss)
