"""The trials of a private search: drawn independently, and observed by nobody."""

import contextlib
import copy
import logging
import math
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from itertools import chain
from typing import Any, TypeVar

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.model_selection import ParameterSampler
from sklearn.utils import check_consistent_length

from dp_metrics._random import (
    Entropy,
    fresh_random_state,
    geometric,
    preserved_global_generators,
    reseed_global_generators,
)
from dp_metrics.scorers import PrivateScorer

__all__ = ["Candidates", "PublicModel", "best_of_geometric", "check_data", "share_of_one_trial", "unobserved"]

T = TypeVar("T")

_COST = 3  # epsilon-private trials, repeated a geometric number of times, are 3 epsilon-private
_RESPONSE_ATTEMPTS = 100


def best_of_geometric(
    trial: Callable[[], tuple[float, T]], success: Fraction, entropy: Entropy
) -> tuple[float, T]:
    """Return the best of a geometric number of trials, the first of them among equals.

    Parameters
    ----------
    trial : callable
        Returns a score, which is not NaN, and what has it. Each call must be an independent draw from one
        law, epsilon-differentially private in both together.
    success : Fraction
        1 / the expected number of trials; public.
    entropy : Entropy
        Source of the number of trials, which must remain secret.

    Notes
    -----
    Guarantee: 3 epsilon, whatever `success` is. With p the law of one trial and F the distribution function
    of its score, the result is (s, t) with probability
    success * p(s, t) / ((1 - (1-success) F(s-)) (1 - (1-success) F(s))). All three factors change by at most
    exp(epsilon) between neighbours: p because it is private, and 1 - (1-success) F, which is
    success + (1-success) (1-F), because 1 - F is.
    """
    best = trial()
    for _ in range(geometric(entropy, success) - 1):
        latest = trial()
        if latest[0] > best[0]:
            best = latest
    return best


def share_of_one_trial(epsilon: Fraction) -> float:
    """Return the largest float whose decimal is at most a third of epsilon; 0 if there is none."""
    exact = epsilon / _COST
    share = float(exact)
    while Fraction(repr(share)) > exact:
        share = math.nextafter(share, 0.0)
    return share


class Candidates:
    """Draws, makes and scores candidates.

    Parameters
    ----------
    estimator : estimator object
        What is searched.
    distributions : dict or list of dicts
        Lists or distributions by name of parameter.
    methods : tuple of str
        Responses, one of which a candidate must have.

    Raises
    ------
    ValueError, TypeError
        If a name or a distribution does not work, or no candidate has such a response.
    """

    def __init__(self, estimator: Any, distributions: Any, methods: tuple[str, ...]) -> None:
        self._estimator = estimator
        several = isinstance(distributions, list | tuple)
        if not several and not isinstance(distributions, Mapping):
            raise TypeError("param_distributions must be a dict or a list of dicts.")
        if several and not distributions:
            raise ValueError("param_distributions must hold at least one dict.")
        self._distributions = distributions
        # every name and every distribution is tried once, so that no candidate fails for a typing error
        for distribution in distributions if several else [distributions]:
            self.make(self._draw(distribution))
        drawn = (self.make(self.draw()) for _ in range(_RESPONSE_ATTEMPTS))
        if not any(hasattr(model, method) for model in chain([estimator], drawn) for method in methods):
            raise TypeError(f"The metric needs an estimator with {' or '.join(methods)}.")

    def draw(self) -> dict[str, Any]:
        """Draw one candidate's parameters, independently of all others, and let its fit draw so too."""
        reseed_global_generators()
        return self._draw(self._distributions)

    def _draw(self, distributions: Any) -> dict[str, Any]:
        # A sampler of one setting: asked for several, it would draw from lists without replacement. The copy
        # keeps what a distribution may remember of this draw from the next one.
        sampler = ParameterSampler(copy.deepcopy(distributions), 1, random_state=fresh_random_state())
        params: dict[str, Any] = next(iter(sampler))
        return params

    def make(self, params: dict[str, Any]) -> Any:
        """Return an unfitted candidate."""
        # cloned too: an estimator among the parameters would be fitted in place
        return clone(self._estimator).set_params(**clone(params, safe=False))

    def score(self, params: dict[str, Any], scorer: PrivateScorer, data: tuple[Any, ...]) -> float:
        """Fit a candidate on X, y and return its private score on X_val, y_val, or -inf if it fails."""
        X, y, X_val, y_val, sample_weight_val = copy.deepcopy(data)  # a candidate may change them in place
        try:
            score = scorer(self.make(params).fit(X, y), X_val, y_val, sample_weight=sample_weight_val)
        except Exception:  # whatever it is: which candidates failed, and why, is secret
            return -math.inf
        return -math.inf if math.isnan(score) else score


class PublicModel:
    """Responds to every record alike, so that a metric can judge the validation targets by themselves.

    Parameters
    ----------
    estimator : estimator object
        What is searched.
    y : array-like of shape (n_samples,) or (n_samples, n_outputs)
        Targets of the training records.
    n_validation : int
        Number of validation records.
    methods : tuple of str
        Responses that the metric takes.

    Raises
    ------
    ValueError
        If the metric needs several classes and y has one.
    """

    def __init__(self, estimator: Any, y: Any, n_validation: int, methods: tuple[str, ...]) -> None:
        y = np.asarray(y)
        self._shape = (n_validation, *y.shape[1:])
        if is_classifier(estimator) or "predict" not in methods:
            self.classes_ = np.unique(y)
            if self.classes_.size < 2 and "predict" not in methods:
                raise ValueError("The metric needs a y with at least two classes, but y has 1 class.")

    def predict(self, X: Any) -> Any:
        """Return ones, which every metric of numbers takes, or the first class."""
        if hasattr(self, "classes_"):
            return np.full(self._shape, self.classes_[0])
        return np.ones(self._shape)

    def predict_proba(self, X: Any) -> Any:
        """Return the same probability for each class."""
        return np.full((self._shape[0], self.classes_.size), 1.0 / self.classes_.size)

    def decision_function(self, X: Any) -> Any:
        """Return zeros."""
        columns = () if self.classes_.size == 2 else (self.classes_.size,)
        return np.zeros((self._shape[0], *columns))


def check_data(data: tuple[Any, ...]) -> int:
    """Check that X, y, X_val, y_val and the weights belong together; return the number of validation records.

    Raises
    ------
    ValueError, TypeError
        If they do not; shapes are public.
    """
    X, y, X_val, y_val, sample_weight_val = data
    for name, given in {"y": y, "y_val": y_val}.items():
        if given is None:
            raise ValueError(f"The search requires {name} to be passed, but the target {name} is None.")
    check_consistent_length(X, y)
    check_consistent_length(X_val, y_val, sample_weight_val)
    shapes: list[tuple[int, ...]] = [getattr(records, "shape", ()) for records in (X, X_val)]
    if all(len(shape) == 2 for shape in shapes) and shapes[0][1] != shapes[1][1]:
        raise ValueError(f"X_val has {shapes[1][1]} features, but X has {shapes[0][1]} features.")
    if hasattr(X, "columns") and hasattr(X_val, "columns") and list(X.columns) != list(X_val.columns):
        raise ValueError("The feature names of X_val should match those of X, in the same order.")
    n_samples, n_validation = (int(np.asarray(targets).shape[0]) for targets in (y, y_val))
    if n_samples == 0:
        raise ValueError("Found array with 0 sample(s) while a minimum of 1 is required: X and y are empty.")
    return n_validation


class _Nowhere:
    """A text stream that keeps nothing."""

    encoding = "utf-8"

    def write(self, text: str) -> int:
        return len(text)

    def flush(self) -> None:
        pass

    def isatty(self) -> bool:
        return False


class _Silence:
    """Discards warnings, logs and prints while any search is running, in whatever thread.

    All of these are global: searches in several threads share one silence, which ends with the last of them.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._searches = 0
        self._effects = contextlib.ExitStack()

    @contextlib.contextmanager
    def __call__(self) -> Iterator[None]:
        with self._lock:
            if self._searches == 0:
                self._begin()
            self._searches += 1
        try:
            yield
        finally:
            with self._lock:
                self._searches -= 1
                if self._searches == 0:
                    self._effects.close()

    def _begin(self) -> None:
        enter = self._effects.enter_context
        enter(preserved_global_generators())
        enter(warnings.catch_warnings())
        warnings.simplefilter("ignore")
        nowhere: Any = _Nowhere()
        enter(contextlib.redirect_stdout(nowhere))
        enter(contextlib.redirect_stderr(nowhere))
        self._effects.callback(logging.disable, logging.root.manager.disable)
        logging.disable(logging.CRITICAL)


unobserved = _Silence()
"""Context in which trials run: nothing that they warn of, print, log or draw is seen outside."""
