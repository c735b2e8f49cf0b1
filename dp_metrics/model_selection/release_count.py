"""How many releases a plan will make, to be asked before the first of them."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.model_selection import (
    GridSearchCV,
    ParameterGrid,
    ParameterSampler,
    RandomizedSearchCV,
    check_cv,
)

from dp_metrics._random import preserved_global_generators
from dp_metrics.inputs.arrays import rows_of
from dp_metrics.inputs.options import own_error_state
from dp_metrics.metrics import metric_of
from dp_metrics.model_selection.scorers import PrivateScorer
from dp_metrics.model_selection.search import PrivateRandomizedSearch

_WITHIN_FIT = (
    "The estimator makes private releases within fit that cannot be counted: use one without, or search its "
    "parameters with GridSearchCV or RandomizedSearchCV."
)


@own_error_state
def count_releases(
    search_or_cv: Any,
    X: Any = None,
    y: Any = None,
    *,
    groups: Any = None,
    estimator: Any = None,
    scoring: Any = None,
    return_train_score: bool = False,
    train_sizes: Any = None,
) -> int:
    """Count the private releases that a search or a cross-validation will make, without making any.

    Parameters
    ----------
    search_or_cv : estimator object, int, splitter, iterable or None
        A search, fitted or not: `GridSearchCV`, `RandomizedSearchCV` or `PrivateRandomizedSearch`. Or the
        `cv` of `cross_val_score`, `cross_validate` or `learning_curve`: None means 5 folds, as it does there.
    X : array-like of shape (n_samples, n_features) or None, default=None
        Records. Needed where the count depends on their number: leave-one-out, fractions of a learning curve.
    y : array-like of shape (n_samples,) or (n_samples, n_outputs) or None, default=None
        Targets; needed where splits depend on them.
    groups : array-like of shape (n_samples,) or None, default=None
        Group labels of the records, for splitters that use them.
    estimator : estimator object or None, default=None
        What is cross-validated. Needed for nested cross-validation, where it is a search.
    scoring : PrivateScorer, dict, int or None, default=None
        Scorers of the cross-validation, or the number of private ones; None: one. A search has its own.
    return_train_score : bool, default=False
        Whether `cross_validate` scores the training records too. A search has its own.
    train_sizes : array-like or None, default=None
        If given, count those of `learning_curve`, which scores the training records too.

    Returns
    -------
    int
        The number of releases; fewer are made only if a fit or a score fails. A `PrivateRandomizedSearch`
        counts as one, of its whole epsilon.

    Raises
    ------
    ValueError
        If the number cannot be known from public parameters: a scoring function that is not made by
        `make_private_scorer`, any other estimator with a private scorer or metric among its parameters, such
        as successive halving, `RFECV` or boosting that stops early; missing X, y or groups.

    See Also
    --------
    PrivacyAccountant.require : Refuses a plan that does not fit into the budget.

    Notes
    -----
    Guarantee: nothing is released, fitted or spent here, and the count depends on public settings only, and
    on X and y only as far as the splitter does.

    With several private scorers each makes an equal share of the releases. A plan that was admitted by
    ``accountant.require(count * epsilon)`` is carried out to its end, if nothing else spends from the budget.
    Callbacks, and what `fit` itself is given, are not seen: what they release is paid for, but not counted.
    What shuffles records costs more than its releases, and is not counted: see `make_private_scorer`.

    What the total means: protection of the evaluation records given the fitted models; nothing for people who
    are also in training data. See `make_private_scorer`.

    References
    ----------
    C. Dwork and A. Roth, "The Algorithmic Foundations of Differential Privacy", 2014, Theorem 3.16
    (composition), doi:10.1561/0400000042.

    Examples
    --------
    >>> from fractions import Fraction
    >>> from sklearn.linear_model import Ridge
    >>> from sklearn.model_selection import GridSearchCV
    >>> from dp_metrics import PrivacyAccountant, count_releases, make_private_scorer
    >>> accountant = PrivacyAccountant(1.0)
    >>> scorer = make_private_scorer("neg_private_mse", epsilon=0.1, accountant=accountant)
    >>> search = GridSearchCV(Ridge(), {"alpha": [0.1, 1.0, 10.0]}, scoring=scorer, cv=3)
    >>> count_releases(search)
    9
    >>> accountant.require(count_releases(search) * Fraction("0.1"))

    A learning curve of three sizes, scored on training and on test records:

    >>> count_releases(5, scoring=scorer, train_sizes=[100, 200, 400])
    30
    """
    if isinstance(search_or_cv, PrivateRandomizedSearch):
        return 1
    with preserved_global_generators():  # a splitter may draw from them
        if not hasattr(search_or_cv, "fit"):
            scorers = 1 if scoring is None else _count_scorers(scoring)
            if scorers < 1:
                raise ValueError("scoring holds no private scorer; make one with make_private_scorer.")
            return _of_cross_validation(
                search_or_cv, X, y, groups, estimator, scorers, return_train_score, train_sizes
            )
        if not (estimator is None and scoring is None and train_sizes is None):
            raise ValueError("A search has its own estimator and scoring; pass nothing but X, y and groups.")
        releases = _of_fit(search_or_cv, X, y, groups)
    if not releases:
        raise ValueError("The estimator has no private scorer; make one with make_private_scorer.")
    return releases


def _of_fit(estimator: Any, X: Any, y: Any, groups: Any) -> int:
    """Return how many private releases a fit makes; raise where its public parameters do not tell."""
    if isinstance(estimator, PrivateRandomizedSearch):
        return 1
    if type(estimator) is GridSearchCV:
        candidates = len(ParameterGrid(estimator.param_grid))
    elif type(estimator) is RandomizedSearchCV:
        # the grid is smaller than n_iter where all parameters are lists and have few values
        candidates = len(ParameterSampler(estimator.param_distributions, estimator.n_iter))
    elif _is_private_within(estimator):
        raise ValueError(_WITHIN_FIT)
    else:
        return 0
    if _is_private_within(estimator.estimator):
        raise ValueError(
            "The estimator of the search makes private releases of its own in every fit; they can be counted "
            "only for a search that is itself cross-validated."
        )
    per_split = _count_scorers(estimator.scoring) * (2 if estimator.return_train_score else 1)
    splitter = _splitter_of(estimator.cv, y, estimator.estimator)
    return per_split * candidates * int(splitter.get_n_splits(X, y, groups)) if per_split else 0


def _count_scorers(scoring: Any) -> int:
    """Return how many private scorers a `scoring` holds; raise where that cannot be known."""
    if isinstance(scoring, int) and not isinstance(scoring, bool):
        return scoring
    if isinstance(scoring, PrivateScorer):
        return 1
    if isinstance(scoring, dict):
        return sum(map(_count_scorers, scoring.values()))
    if scoring is None or isinstance(scoring, str):
        return 0
    if isinstance(scoring, list | tuple | set) and all(isinstance(name, str) for name in scoring):
        return 0
    raise ValueError(
        "Only scorers of make_private_scorer can be counted: what other scoring functions release is unknown."
    )


def _is_private_within(estimator: Any) -> bool:
    """Return whether fitting an estimator makes private releases, as far as its parameters tell."""
    if not hasattr(estimator, "get_params"):
        return False
    return isinstance(estimator, PrivateRandomizedSearch) or any(
        map(_is_private, estimator.get_params(deep=True).values())
    )


def _is_private(setting: Any) -> bool:
    if isinstance(setting, dict | list | tuple):
        return any(map(_is_private, setting.values() if isinstance(setting, dict) else setting))
    # a metric itself, or a partial of one, is what xgboost takes as eval_metric
    is_private = isinstance(setting, PrivateScorer | PrivateRandomizedSearch)
    return is_private or (callable(setting) and metric_of(setting) is not None)


def _of_cross_validation(
    cv: Any,
    X: Any,
    y: Any,
    groups: Any,
    estimator: Any,
    scorers: int,
    return_train_score: bool,
    train_sizes: Any,
) -> int:
    splitter = _splitter_of(cv, y, estimator)
    splits = int(splitter.get_n_splits(X, y, groups))
    if X is None or not _is_private_within(estimator) or isinstance(estimator, PrivateRandomizedSearch):
        inner = splits * _of_fit(estimator, None, None, None)
    else:
        inner = sum(
            _of_fit(estimator, *(_rows(part, train) for part in (X, y, groups)))
            for train, _ in splitter.split(X, y, groups)
        )
    if train_sizes is None:
        return inner + scorers * splits * (2 if return_train_score else 1)
    if inner:
        raise ValueError(_WITHIN_FIT)
    return scorers * splits * 2 * int(np.unique(_absolute_sizes(train_sizes, splitter, X, y, groups)).size)


def _splitter_of(cv: Any, y: Any, estimator: Any) -> Any:
    """Return the splitter that scikit-learn makes of a `cv`."""
    if isinstance(cv, Iterator):
        raise ValueError("cv is an iterator, which counting would use up; pass a list of its splits.")
    return check_cv(cv, y, classifier=estimator is not None and is_classifier(estimator))


def _absolute_sizes(train_sizes: Any, splitter: Any, X: Any, y: Any, groups: Any) -> Any:
    sizes = np.asarray(train_sizes)
    if not np.issubdtype(sizes.dtype, np.floating):
        return sizes
    if X is None:
        raise ValueError("X is needed to tell which fractions of a learning curve are the same size.")
    most = len(next(iter(splitter.split(X, y, groups)))[0])
    return np.clip((sizes * most).astype(int), 1, most)


def _rows(data: Any, rows: Any) -> Any:
    return None if data is None else rows_of(data, rows)
