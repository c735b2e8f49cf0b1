"""The trials of a private search: drawn independently, and observed by nobody.

The training records are public. A record that no model of them can predict, because it holds text where they
hold numbers, or because something is missing, is refused before anything is spent. The refusal reveals that
there is such a record, and no more.

A list is never made an array at once: one record's text would make text of every number, one float a rounded
number of every large integer, and one row of another length would make the whole unreadable. An array has a
type of its own, which says nothing of a record.
"""

import copy
import logging
import math
import numbers
import os
import sys
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout, suppress
from fractions import Fraction
from functools import partial
from itertools import chain
from operator import itemgetter
from typing import Any, TypeVar

import numpy as np
from scipy.sparse import issparse
from sklearn.base import clone, is_classifier
from sklearn.model_selection import ParameterSampler

from dp_metrics._random import (
    Entropy,
    fresh_random_state,
    geometric,
    preserved_global_generators,
    reseed_global_generators,
)
from dp_metrics.inputs import arrays
from dp_metrics.inputs.labels import as_listed, places_among, sorted_labels
from dp_metrics.inputs.models import FAR, as_float64, ask, columns_by_label, no_response, response_method
from dp_metrics.inputs.options import Array, ByName, Relation
from dp_metrics.metrics import metric_of
from dp_metrics.metrics.labels.confusion import Confusion
from dp_metrics.model_selection.scorers import PrivateScorer, relation_of, release_score, wants_probabilities

_MISSING, _TOO_LARGE = "missing", "too large"
_ODD = {_MISSING, _TOO_LARGE}
_LARGEST = FAR  # trees of scikit-learn refuse to predict for larger numbers
_KINDS: dict[str, type | tuple[type, ...]] = {
    "text": str,
    "bytes": bytes,
    "complex number": (complex, np.complexfloating),
    "time span": np.timedelta64,  # which is a number to NumPy
    "number": (numbers.Number, np.number, np.bool_),
}


def check_records(X: Any, X_val: Any, *, allow_nan: bool) -> None:
    """Check that each validation record is of the kind of the training records.

    Parameters
    ----------
    X : array-like of shape (n_samples, ...)
        Training records, at least one; public.
    X_val : array-like of shape (n_validation, ...)
        Validation records.
    allow_nan : bool
        Whether missing values are allowed even if X has none.

    Raises
    ------
    ValueError
        If the columns differ, or a record holds what X holds nowhere in that column: text, numbers, other
        objects; or something missing, or infinite or beyond 3.4e38, though nothing is in X.
    """
    known, new = _as_table(X), _as_table(X_val)
    if new.shape != (0,) and known.shape[1:] != new.shape[1:]:  # a list of no records has no columns
        if known.ndim == new.ndim == 2:
            raise ValueError(f"X_val has {new.shape[1]} features, but X has {known.shape[1]} features.")
        raise ValueError("The records of X_val should have the shape of those of X.")
    are_named = hasattr(X, "columns") and hasattr(X_val, "columns")
    if are_named and arrays.names_of(X) != arrays.names_of(X_val):
        raise ValueError("The feature names of X_val should match those of X, in the same order.")
    allowed, given = (
        [
            _held(arrays.array_of(one))
            for one in ([table.data] if issparse(table) else arrays.columns_of(table))
        ]
        for table in (known, new)
    )
    odd = set().union(*given) - set().union(*allowed)
    # a matrix has one type for all columns
    pairs = np.broadcast(*(np.fromiter(held, dtype=object) for held in (allowed, given)))
    if any(there - _ODD and not here - _ODD <= there for there, here in pairs):
        raise ValueError("X_val should hold what X holds in the same column: numbers, text or other objects.")
    if _MISSING in odd and not allow_nan:
        raise ValueError(
            "Input X_val contains NaN or something else that is missing, and X does not: drop such records, "
            "or fill them in, before you split the data."
        )
    if _TOO_LARGE in odd:
        raise ValueError(
            "Input X_val contains infinity or a value too large for dtype('float32'), and X does not."
        )


def _as_table(records: Any) -> Any:
    """Return records as a data frame, a sparse matrix or an array; of a list, each element as it is."""
    if issparse(records):
        return records.tocsr()
    if hasattr(records, "columns"):
        return records
    if hasattr(records, "dtype"):
        return np.asarray(records)
    with suppress(Exception):  # records of several shapes, or an object that raises what it likes
        return np.asarray(records, dtype=object)  # one string would make all other elements strings
    return np.fromiter(records, dtype=object, count=len(records))


def _held(column: Array) -> set[str]:
    """Return the kinds of what a column holds, and whether something is missing or too large."""
    kind = column.dtype.kind
    if kind == "O":
        elements = column.ravel().tolist()
        held = {_MISSING if arrays.is_missing(one) else _kind(type(one)) for one in elements}
        return held | {_TOO_LARGE for one in elements if abs(_number(one)) > _LARGEST}
    held = {_kind(column.dtype.type)}
    if kind in "fcmM" and np.isnan(column).any():
        held.add(_MISSING)
    if kind in "fc" and (np.abs(column) > _LARGEST).any():
        held.add(_TOO_LARGE)
    return held


def _kind(of: type) -> str:
    """Return of which kind the objects of a type are."""
    return next((name for name, types in _KINDS.items() if issubclass(of, types)), of.__name__)


_NO_NUMBERS = (str, bytes, complex, np.complexfloating)


def read_response(response: Any, method: str, classes: Any, y: Any) -> Any:
    """Return a model's response to records as an array, with what cannot be read made None or NaN.

    Parameters
    ----------
    response : array-like
        What the model responded. A sparse matrix is no array of records, and every metric refuses it.
    method : str
        By which of its methods.
    classes : ndarray or None
        Those of the model, or else the public ones, which tell how many columns a list of rows should have.
    y : array-like
        Public targets, which tell the columns of predictions.
    """
    records = response
    if not isinstance(response, list | tuple):
        records = np.asarray(response)
        if records.dtype.kind != "O" or records.ndim == 0:
            return records
    shape = no_response(method, classes, np.asarray(y)).shape[1:]
    columns = math.prod(shape)
    if method == "predict" and columns == 1:
        shape = ()
    elements = chain.from_iterable(_elements(record, columns) for record in records)
    # of an iterator NumPy looks into no element
    array = np.fromiter(elements, dtype=object).reshape(len(records), *shape)
    return array if method == "predict" else _numbers(array).astype(arrays.type_of_floats(response, array))


def _elements(record: Any, columns: int) -> list[Any]:
    """Return what a record consists of; one probability is that of the second of two classes."""
    found = [record]
    if isinstance(record, list | tuple | np.ndarray):
        found = record.ravel().tolist() if isinstance(record, np.ndarray) else list(record)
    if len(found) == 1 and columns == 2:
        second = _number(found[0])
        return [1.0 - second, second]
    return found if len(found) == columns else [None] * columns


def _number(element: Any) -> float:
    if isinstance(element, _NO_NUMBERS):
        return math.nan
    try:
        try:
            return float(element)
        except OverflowError:
            return math.inf if element > 0 else -math.inf
    except Exception:  # an object may raise what it likes, and its message may hold what it likes
        return math.nan


_numbers = np.vectorize(_number, otypes=[np.float64])
"""Returns objects as float64, each by itself; NaN for what is no number."""


def valid_response(metric: partial[Any], response: Any, y: Any, labels: Any = None) -> Any:
    """Return a model's response to records with each that the metric would refuse made valid.

    Each element is judged by itself. Numbers are moved to the nearest that the metric takes. NaN, and what is
    no number, which are near to none, become a number that no target is near to, or the probability 0.

    Parameters
    ----------
    metric : functools.partial
        A metric with its keywords. Of a metric that is not of this package nothing is known but whether it
        takes `y_proba`; any other gets finite numbers of any size, and what is not a float as it is.
    response : ndarray of shape (n_samples,) or (n_samples, n_columns)
        What `read_response` returned.
    y : array-like
        Public targets, which tell whether labels are text.
    labels : array-like or None, default=None
        The public label set, for a metric that takes no other labels: those become its first. None: 0 and 1.
    """
    row = metric_of(metric)
    array = np.asarray(response)
    if wants_probabilities(metric):
        array = _numbers(array) if array.dtype.kind == "O" else array
        return np.clip(np.nan_to_num(array, nan=0.0, posinf=1.0, neginf=0.0), 0.0, 1.0)
    if row is not None and isinstance(row.usual.reading, Confusion):
        known = as_listed([0, 1] if labels is None else labels, "labels")
        # any other becomes the first
        return known[np.maximum(places_among(array.ravel(), known), 0)].reshape(array.shape)
    if row is not None and row.predicts_labels:
        return _valid_labels(array, np.asarray(y))
    if array.dtype.kind == "O" and (row is not None or np.asarray(y).dtype.kind in "biuf"):
        array = _numbers(array)
    if row is not None and array.dtype.kind in "biuf":
        array = array.astype(np.float64)
    if array.dtype.kind != "f":
        return array
    array = array.astype(np.promote_types(array.dtype, np.float32))  # float32 holds FAR
    array = np.nan_to_num(array, nan=FAR, posinf=FAR, neginf=-FAR)
    return array if row is None else np.maximum(array, row.lowest_prediction)


def _valid_labels(labels: Array, y: Array) -> Array:
    is_text = y.dtype.kind == "U" or (y.dtype.kind == "O" and isinstance(y.ravel()[0], str))
    if labels.dtype.kind in ("U" if is_text else "biu"):
        return labels
    if labels.dtype.kind == "f" and not is_text:
        return np.where(labels == np.floor(np.nan_to_num(labels, nan=0.5, posinf=0.5)), labels, FAR)
    valid: Array = np.vectorize(partial(_valid_label, is_text=is_text), otypes=[object])(labels)
    return valid


def _valid_label(label: Any, is_text: bool) -> Any:
    if is_text:
        return label if isinstance(label, str) else ""
    if isinstance(label, int | np.integer | np.bool_):
        return int(label)
    number = _number(label)
    return number if number.is_integer() else FAR


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
    first = trial()  # before their number, as releases from a seed have been
    others = (trial() for _ in range(geometric(entropy, success) - 1))
    return max(chain([first], others), key=itemgetter(0))


def check_candidates(estimator: Any, distributions: Any, methods: tuple[str, ...]) -> None:
    """Raise if a name or a distribution does not work, or no candidate has one of these methods.

    Parameters
    ----------
    estimator : estimator object
        What is searched.
    distributions : dict or list of dicts
        Lists or distributions by name of parameter.
    methods : tuple of str
        Responses, one of which a candidate must have.
    """
    several = isinstance(distributions, list | tuple)
    if not several and not isinstance(distributions, Mapping):
        raise TypeError("param_distributions must be a dict or a list of dicts.")
    if several and not distributions:
        raise ValueError("param_distributions must hold at least one dict.")
    # each name and distribution is tried once, so that no candidate fails for a typing error
    for distribution in distributions if several else [distributions]:
        unfitted(estimator, _drawn(distribution))
    drawn = (unfitted(estimator, draw(distributions)) for _ in range(_RESPONSE_ATTEMPTS))
    if not any(hasattr(model, method) for model in chain([estimator], drawn) for method in methods):
        raise TypeError(f"The metric needs an estimator with {' or '.join(methods)}.")


def draw(distributions: Any) -> ByName:
    """Draw one candidate's parameters, independently of all others, and let its fit draw so too."""
    reseed_global_generators()
    return _drawn(distributions)


def _drawn(distributions: Any) -> ByName:
    # The sampler is of one setting: one of several would draw from lists without replacement. The copy keeps
    # what a distribution may remember of this draw from the next one.
    sampler = ParameterSampler(copy.deepcopy(distributions), 1, random_state=fresh_random_state())
    return dict(next(iter(sampler)))


def unfitted(estimator: Any, params: ByName) -> Any:
    """Return a candidate that is not fitted yet."""
    # an estimator among the parameters is cloned too, or it would be fitted in place
    return clone(estimator).set_params(**clone(params, safe=False))


def score_of(
    estimator: Any,
    params: ByName,
    methods: tuple[str, ...],
    scorer: PrivateScorer,
    data: tuple[Any, ...],
    known: Any,
    labels: Any,
) -> float:
    """Fit a candidate on X, y and return its private score on X_val, y_val, or -inf if it fails.

    The data are those of `check_data`. The known classes are public, and a response of theirs has been scored
    with the labels before the spend: a candidate may know fewer, and then one validation record of another
    one would decide whether it fails.
    """
    try:
        # an overflow in one record's prediction must stay secret, whatever NumPy's settings, and what one
        # trial makes of them is kept from the next, and from whoever searches
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            # a candidate may change them in place
            X, y, X_val, y_val, sample_weight_val = copy.deepcopy(data)
            model = unfitted(estimator, params).fit(X, y)
            method = response_method(model, methods)
            response = ask(model, method, X_val)
            classes = getattr(model, "classes_", None)
            if not isinstance(classes, np.ndarray):
                classes = known
            targets = data[1]  # as nobody has changed them
            response = read_response(response, method, classes, targets)
            if method != "predict" and known is not None:
                response = columns_by_label(response, method, classes, known)
            response = valid_response(scorer.function, response, targets, labels)
            if relation_of(scorer).private_n:
                response = as_float64(response)
            if arrays.number_of_records(y_val) == 0:
                # the metric refuses of one record what it would refuse of any
                release_score(scorer, labels, method, response, _first(_sliceable(y), 1))
                response = response[1:]
            score = release_score(scorer, labels, method, response, y_val, sample_weight_val)
    except KeyboardInterrupt:  # the user interrupts, and sees where the search was
        raise
    except BaseException:  # every error is silent: which candidates failed, and why, is secret
        return -math.inf
    return -math.inf if math.isnan(score) else score


def public_classes(estimator: Any, y: Any, methods: tuple[str, ...], labels: Any = None) -> Array | None:
    """Return the sorted labels that are public in a search; None of numbers.

    Parameters
    ----------
    estimator : estimator object
        What is searched.
    y : array-like of shape (n_samples,) or (n_samples, n_outputs)
        Targets of the training records.
    methods : tuple of str
        Responses that the metric takes.
    labels : array-like or None, default=None
        The public labels that the metric is given; None for those in y.

    Raises
    ------
    ValueError
        If the metric needs several classes and y has one.
    """
    if "predict" in methods and not is_classifier(estimator):
        return None
    classes = np.unique(np.asarray(y)) if labels is None else sorted_labels(as_listed(labels, "labels"))
    if classes.size < 2 and "predict" not in methods:
        raise ValueError("The metric needs a y with at least two classes, but y has 1 class.")
    return classes


def public_response(method: str, classes: Any, y: Any, n: int) -> Array:
    """Return one response to n records alike, so that a metric can judge their targets by themselves.

    It predicts ones, which every metric of numbers takes, or the first class; of each class the same
    probability, or the score 0.
    """
    if method == "predict":
        one = 1.0 if classes is None else classes[0]
    else:
        one = 1.0 / classes.size if method == "predict_proba" else 0.0
    return np.full((n, *no_response(method, classes, np.asarray(y)).shape[1:]), one)


def check_data(
    X: Any, y: Any, X_val: Any, y_val: Any, sample_weight_val: Any, *, allow_nan: bool
) -> tuple[Any, ...]:
    """Return X, y, X_val, y_val and the weights, which belong together, and can be copied.

    Without validation records one training record, which is public, is in place of X_val: candidates respond
    to it, and the response is dropped, so that its type and its columns are those that they always are. Most
    estimators refuse to respond to no record at all.

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
    of_validation = {"X_val": X_val, "y_val": y_val, "sample_weight_val": sample_weight_val}
    for several in ({"X": X, "y": y}, of_validation):
        arrays.check_same_length(several, relation=Relation.ADD_OR_REMOVE_ONE)  # n may be private
    n_samples, n_validation = arrays.number_of_records(y), arrays.number_of_records(y_val)
    if n_samples == 0:
        raise ValueError("Found array with 0 sample(s) while a minimum of 1 is required: X and y are empty.")
    check_records(X, X_val, allow_nan=allow_nan)
    if n_validation == 0:
        X_val, y_val = _first(X, 1), _first(_sliceable(y), 0)
    data = X, y, X_val, y_val, sample_weight_val
    if arrays.quietly(copy.deepcopy, data) is None:
        raise TypeError("X, y, X_val, y_val and the weights must be such that copy.deepcopy can copy them.")
    return data


def _first(records: Any, count: int) -> Any:
    """Return the first records, in the form in which they came."""
    if hasattr(records, "iloc"):
        return records.iloc[:count]
    return (records.tocsr() if issparse(records) else records)[:count]


def _sliceable(y: Any) -> Any:
    return y if hasattr(y, "shape") else np.asarray(y)


def _ignore(*args: Any, **options: Any) -> None:
    pass


def _replace(owner: Any, name: str, value: Any, effects: ExitStack) -> None:
    """Replace an attribute of a class or an object until the stack is closed, if it can be."""
    with suppress(AttributeError, TypeError):  # a stream of a type that allows no attributes
        own, before = name in vars(owner), getattr(owner, name)
        setattr(owner, name, value)
        effects.callback(*((setattr, owner, name, before) if own else (delattr, owner, name)))


_LOCK = threading.Lock()
_SILENCES: list[ExitStack] = []  # one and the same for each search that is running


@contextmanager
def unobserved() -> Iterator[None]:
    """Leave no trace of what trials warn of, log, print or draw from global generators, in whatever thread.

    All of these are global: searches in several threads share one silence, which ends with the last of them.
    """
    with _LOCK:
        _SILENCES.append(_SILENCES[0] if _SILENCES else _silence())
    try:
        yield
    finally:
        with _LOCK:
            silence = _SILENCES.pop()
            if not _SILENCES:
                silence.close()


def _silence() -> ExitStack:
    """Discard warnings, logs and prints until what is returned is closed."""
    with ExitStack() as effects:  # the stack ends what was begun if the rest fails
        enter = effects.enter_context
        enter(preserved_global_generators())
        enter(warnings.catch_warnings())
        warnings.simplefilter("ignore")
        # an estimator may have filters of its own, and whoever records warnings does so in this function
        warnings.showwarning = _ignore
        nowhere = enter(open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115 - the stack closes it
        # an estimator may keep a standard stream from before the search; of one that comes twice the stack
        # puts back last what was first
        for stream in (sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__):
            _replace(stream, "write", nowhere.write, effects)
        enter(redirect_stdout(nowhere))
        enter(redirect_stderr(nowhere))
        effects.callback(logging.disable, logging.root.manager.disable)
        logging.disable(logging.CRITICAL)
        # CRITICAL is not the highest level, and an estimator may enable logging
        _replace(logging.Logger, "handle", _ignore, effects)
        return effects.pop_all()
