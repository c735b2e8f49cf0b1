"""How many private releases one fit of an estimator makes that scores while it is fitted."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.model_selection import check_cv

from dp_metrics.inputs.arrays import number_of_records
from dp_metrics.inputs.options import as_whole
from dp_metrics.metrics import metric_of
from dp_metrics.model_selection.scorers import NO_THRESHOLDS, PrivateScorer
from dp_metrics.model_selection.search import PrivateRandomizedSearch

_PRIVATE = (PrivateScorer, PrivateRandomizedSearch)
_FROM_RECORDS = 10_000  # early_stopping="auto" is true above this


def count_private_scorers(scoring: Any) -> int:
    """Return how many private scorers a `scoring` holds; raise where that cannot be known."""
    if isinstance(scoring, int) and not isinstance(scoring, bool):
        return scoring
    if isinstance(scoring, PrivateScorer):
        return 1
    if isinstance(scoring, dict):
        return sum(map(count_private_scorers, scoring.values()))
    if scoring is None or isinstance(scoring, str):
        return 0
    if isinstance(scoring, list | tuple | set) and all(isinstance(name, str) for name in scoring):
        return 0
    raise ValueError(
        "Only scorers of make_private_scorer can be counted: what other scoring functions release is unknown."
    )


def scores_within_fit(estimator: Any) -> bool:
    """Return whether fitting an estimator makes private releases, as far as its settings tell."""
    if isinstance(estimator, PrivateRandomizedSearch):
        return True
    if not hasattr(estimator, "get_params"):
        return False
    settings = list(estimator.get_params(deep=True).values())
    settings += [several for value in [estimator, *settings] for several in _callbacks(value)]
    return any(map(_is_private, settings))


def _is_private(setting: Any) -> bool:
    if isinstance(setting, dict | list | tuple):
        return any(map(_is_private, setting.values() if isinstance(setting, dict) else setting))
    # a metric itself, or a partial of one, is what xgboost takes as eval_metric
    return isinstance(setting, _PRIVATE) or (callable(setting) and metric_of(setting) is not None)


def _callbacks(estimator: Any) -> list[Any]:
    """Return what the callbacks of an estimator hold; they are no parameters of it.

    scikit-learn has no public way to ask for them, so all attributes are looked through.
    """
    own = getattr(estimator, "__dict__", {}) if hasattr(estimator, "get_params") else {}
    lists = [value for value in own.values() if isinstance(value, list | tuple)]
    callbacks = [one for several in lists for one in several if hasattr(type(one), "on_fit_task_end")]
    return [held for callback in callbacks for held in getattr(callback, "__dict__", {}).values()]


def check_callbacks(estimator: Any) -> None:
    """Raise if callbacks of an estimator make private releases."""
    if any(map(_is_private, _callbacks(estimator))):
        raise ValueError(
            "A callback scores after every iteration, and on training records, which no epsilon protects: "
            "give it a scorer of scikit-learn's, and release one number after the fit."
        )


def releases_of_fit(estimator: Any, X: Any, y: Any, groups: Any) -> int:
    """Return how many private releases a fit makes, or at most makes if it may stop early.

    Raises
    ------
    ValueError
        If that cannot be known.
    """
    # scikit-learn itself loads these only when they are used
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
    from sklearn.feature_selection import RFECV, SequentialFeatureSelector
    from sklearn.model_selection import TunedThresholdClassifierCV

    if isinstance(estimator, TunedThresholdClassifierCV):
        raise ValueError(NO_THRESHOLDS)
    check_callbacks(estimator)
    if callable(metric := getattr(estimator, "eval_metric", None)) and metric_of(metric) is not None:
        raise ValueError(
            "eval_metric makes a release in each round for each set in the eval_set of fit: at most "
            "the number of rounds times that of sets."
        )
    counts = {
        RFECV: _of_elimination,
        SequentialFeatureSelector: _of_sequential,
        HistGradientBoostingClassifier: _of_boosting,
        HistGradientBoostingRegressor: _of_boosting,
    }
    count = counts.get(type(estimator))
    inner = getattr(estimator, "estimator", None)
    if count is None or scores_within_fit(inner):
        raise ValueError(
            "The estimator makes private releases within fit that cannot be counted: use one without."
        )
    per_score = count_private_scorers(estimator.scoring)
    return int(per_score * count(estimator, X, y, groups))


def _of_elimination(selector: Any, X: Any, y: Any, groups: Any) -> int:
    """Return how many subsets of the features recursive elimination scores, times the splits."""
    features = _number_of_columns(X, selector)
    last = min(selector.min_features_to_select, features)
    step = int(max(1, selector.step * features)) if 0.0 < selector.step < 1.0 else int(selector.step)
    subsets = 1 + int(-(-(features - last) // step))
    return subsets * _splits(selector, X, y, groups)


def _of_sequential(selector: Any, X: Any, y: Any, groups: Any) -> int:
    """Return how many features a selection of one at a time tries at most, times the splits."""
    features, wanted = _number_of_columns(X, selector), selector.n_features_to_select
    automatic = isinstance(wanted, str)
    if automatic:
        chosen = features // 2 if selector.tol is None else features - 1
    else:
        whole = as_whole(wanted)
        chosen = int(features * wanted) if whole is None else whole
    rounds = chosen if automatic or selector.direction == "forward" else features - chosen
    return sum(features - done for done in range(rounds)) * _splits(selector, X, y, groups)


def _of_boosting(model: Any, X: Any, y: Any, groups: Any) -> int:
    """Return how often boosting scores at most: before the first and after each of its iterations."""
    stops = model.early_stopping
    if isinstance(stops, str):
        if X is None:
            raise ValueError("X is needed to tell whether boosting stops early: with over 10,000 records.")
        stops = number_of_records(X) > _FROM_RECORDS
    if not stops:
        return 0
    sets = 1 if model.validation_fraction is None else 2  # the training records are scored too
    return sets * (1 + int(model.max_iter))


def _number_of_columns(X: Any, estimator: Any) -> int:
    if X is None:
        raise ValueError(f"X and y are needed to count the releases of a {type(estimator).__name__}.")
    return int(np.shape(X)[1])


def _splits(selector: Any, X: Any, y: Any, groups: Any) -> int:
    return int(splitter_of(selector.cv, y, selector.estimator).get_n_splits(X, y, groups))


def splitter_of(cv: Any, y: Any, estimator: Any) -> Any:
    """Return the splitter that scikit-learn makes of a `cv`."""
    refuse_iterator(cv)
    return check_cv(cv, y, classifier=estimator is not None and is_classifier(estimator))


def refuse_iterator(cv: Any) -> None:
    """Raise for splits that can be read only once."""
    if isinstance(cv, Iterator):
        raise ValueError("cv is an iterator, which counting would use up; pass a list of its splits.")
