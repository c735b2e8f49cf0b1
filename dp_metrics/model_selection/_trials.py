"""The trials of a private search: drawn independently, and observed by nobody."""

import contextlib
import copy
import logging
import math
import sys
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from itertools import chain
from typing import Any, NamedTuple, TypeVar

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.model_selection import ParameterSampler

from dp_metrics._random import (
    Entropy,
    fresh_random_state,
    geometric,
    preserved_global_generators,
    reseed_global_generators,
)
from dp_metrics.inputs.arrays import check_one_number, number_of_records, rows_of
from dp_metrics.inputs.labels import as_listed, sorted_labels
from dp_metrics.inputs.models import as_float64, ask, columns_by_label, response_method
from dp_metrics.inputs.options import Relation
from dp_metrics.model_selection._responses import read_response, valid_response
from dp_metrics.model_selection._validation_set import check_records
from dp_metrics.model_selection.scorers import PrivateScorer, labels_for, relation_of, release_score

T = TypeVar("T")

COST = 3  # epsilon-private trials, repeated a geometric number of times, are 3 epsilon-private
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
    exact = epsilon / COST
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
        self._estimator, self._methods = estimator, methods
        several = isinstance(distributions, list | tuple)
        if not several and not isinstance(distributions, Mapping):
            raise TypeError("param_distributions must be a dict or a list of dicts.")
        if several and not distributions:
            raise ValueError("param_distributions must hold at least one dict.")
        self._distributions = distributions
        # each name and distribution is tried once, so that no candidate fails for a typing error
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
        # The sampler is of one setting: one of several would draw from lists without replacement. The copy
        # keeps what a distribution may remember of this draw from the next one.
        sampler = ParameterSampler(copy.deepcopy(distributions), 1, random_state=fresh_random_state())
        params: dict[str, Any] = next(iter(sampler))
        return params

    def make(self, params: dict[str, Any]) -> Any:
        """Return an unfitted candidate."""
        # an estimator among the parameters is cloned too, or it would be fitted in place
        return clone(self._estimator).set_params(**clone(params, safe=False))

    def score(
        self, params: dict[str, Any], scorer: PrivateScorer, data: "Data", public_model: "PublicModel"
    ) -> float:
        """Fit a candidate on X, y and return its private score on X_val, y_val, or -inf if it fails.

        The classes are those of the public model, which has been scored before the spend: a candidate may
        know fewer, and then one validation record of another class would decide whether it fails.
        """
        try:
            with _settings_kept():
                own = copy.deepcopy(data)  # a candidate may change them in place
                model = self.make(params).fit(own.X, own.y)
                method = response_method(model, self._methods)
                response = ask(model, method, own.X_val)
                response = read_response(response, method, model, public_model, data.y)
                classes, known = (getattr(one, "classes_", None) for one in (model, public_model))
                if method != "predict" and isinstance(classes, np.ndarray) and known is not None:
                    response = columns_by_label(response, method, classes, known)
                labels = labels_for(scorer, public_model)
                response = valid_response(scorer.function, response, data.y, labels)
                if relation_of(scorer).private_n:
                    response = as_float64(response)
                if data.is_empty:
                    # the metric refuses of one record what it would refuse of any
                    release_score(scorer, labels, method, response, rows_of(_sliceable(own.y), slice(1)))
                    response = response[1:]
                score = release_score(scorer, labels, method, response, own.y_val, own.sample_weight_val)
        except KeyboardInterrupt:  # the user interrupts, and sees where the search was
            raise
        except BaseException:  # every error is silent: which candidates failed, and why, is secret
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
    labels : array-like or None, default=None
        The public labels that the metric is given; None for those in y.

    Raises
    ------
    ValueError
        If the metric needs several classes and y has one.
    """

    def __init__(
        self, estimator: Any, y: Any, n_validation: int, methods: tuple[str, ...], labels: Any = None
    ) -> None:
        y = np.asarray(y)
        self._shape = (n_validation, *y.shape[1:])
        if is_classifier(estimator) or "predict" not in methods:
            self.classes_ = np.unique(y) if labels is None else sorted_labels(as_listed(labels, "labels"))
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


class Data(NamedTuple):
    """The checked arguments of a search's `fit`.

    A search without validation records has one training record, which is public, in place of X_val:
    candidates respond to it, and the response is dropped, so that its type and its columns are those that
    they always are. Most estimators refuse to respond to no record at all.
    """

    X: Any
    y: Any
    X_val: Any
    y_val: Any
    sample_weight_val: Any
    is_empty: bool


def check_data(X: Any, y: Any, X_val: Any, y_val: Any, sample_weight_val: Any, *, allow_nan: bool) -> Data:
    """Check that X, y, X_val, y_val and the weights belong together, and can be copied.

    Parameters
    ----------
    X, y, X_val, y_val, sample_weight_val : array-like
        Arguments of the search's `fit`.
    allow_nan : bool
        Whether missing values are allowed in X_val even if X has none.

    Raises
    ------
    ValueError, TypeError
        If they do not; shapes are public, but for the number of validation records.
    """
    for name, given in {"X": X, "y": y, "X_val": X_val, "y_val": y_val}.items():
        if given is None:
            what = name if name.startswith("X") else f"the target {name}"
            raise ValueError(f"The search requires {name} to be passed, but {what} is None.")
    of_training, of_validation = {"X": X, "y": y}, {"X_val": X_val, "y_val": y_val}
    if sample_weight_val is not None:
        of_validation["sample_weight_val"] = sample_weight_val
    for several in (of_training, of_validation):
        lengths = {name: number_of_records(one) for name, one in several.items()}
        check_one_number(lengths, relation=Relation.ADD_OR_REMOVE_ONE)  # n may be private
    n_samples, n_validation = number_of_records(y), number_of_records(y_val)
    if n_samples == 0:
        raise ValueError("Found array with 0 sample(s) while a minimum of 1 is required: X and y are empty.")
    check_records(X, X_val, allow_nan=allow_nan)
    if n_validation == 0:
        X_val, y_val = rows_of(X, slice(1)), rows_of(_sliceable(y), slice(0))
    data = Data(X, y, X_val, y_val, sample_weight_val, n_validation == 0)
    try:
        copy.deepcopy(data)
    except Exception:
        copied = False
    else:
        copied = True
    if not copied:  # raising outside the handler does not chain the original
        raise TypeError("X, y, X_val, y_val and the weights must be such that copy.deepcopy can copy them.")
    return data


def _sliceable(y: Any) -> Any:
    return y if hasattr(y, "shape") else np.asarray(y)


class _Nowhere:
    """A text stream that keeps nothing."""

    encoding = "utf-8"

    def write(self, text: str) -> int:
        return len(text)

    def flush(self) -> None:
        pass

    def isatty(self) -> bool:
        return False


def _ignore(*args: Any, **options: Any) -> None:
    pass


@contextlib.contextmanager
def _replaced(owner: Any, name: str, value: Any) -> Iterator[None]:
    """Replace an attribute of a class or an object for a while, if it can be."""
    try:
        own, before = name in vars(owner), getattr(owner, name)
        setattr(owner, name, value)
    except (AttributeError, TypeError):  # a stream of a type that allows no attributes
        yield
        return
    try:
        yield
    finally:
        if own:
            setattr(owner, name, before)
        else:
            delattr(owner, name)


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
        with contextlib.ExitStack() as effects:  # the stack ends what was begun if the rest fails
            enter = effects.enter_context
            enter(preserved_global_generators())
            enter(warnings.catch_warnings())
            warnings.simplefilter("ignore")
            # an estimator may have filters of its own, and whoever records warnings does so in this function
            warnings.showwarning = _ignore
            nowhere: Any = _Nowhere()
            # an estimator may keep a standard stream from before the search
            for stream in {
                id(s): s for s in (sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__)
            }.values():
                enter(_replaced(stream, "write", nowhere.write))
            enter(contextlib.redirect_stdout(nowhere))
            enter(contextlib.redirect_stderr(nowhere))
            effects.callback(logging.disable, logging.root.manager.disable)
            logging.disable(logging.CRITICAL)
            # CRITICAL is not the highest level, and an estimator may enable logging
            enter(_replaced(logging.Logger, "handle", _ignore))
            self._effects = effects.pop_all()


unobserved = _Silence()
"""Context in which trials run: what they warn of, log, print or draw from global generators has no trace."""


@contextlib.contextmanager
def _settings_kept() -> Iterator[None]:
    """Keep the settings that one trial makes from the next, and from whoever searches."""
    # an overflow in one record's prediction must stay secret, whatever NumPy's settings
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        yield
