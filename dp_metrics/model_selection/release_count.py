"""How many releases a plan will make, to be asked before the first of them."""

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.model_selection import (
    GridSearchCV,
    ParameterGrid,
    ParameterSampler,
    RandomizedSearchCV,
)
from sklearn.utils import get_tags

from dp_metrics._random import preserved_global_generators
from dp_metrics.inputs.arrays import rows_of
from dp_metrics.inputs.floats import own_error_state
from dp_metrics.model_selection._within_fit import (
    check_callbacks,
    count_private_scorers,
    refuse_iterator,
    releases_of_fit,
    scores_within_fit,
    splitter_of,
)
from dp_metrics.model_selection.search import PrivateRandomizedSearch

_SEARCH_SETTINGS = ("estimator", "scoring", "cv", "refit", "return_train_score")


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
        A search, fitted or not: `GridSearchCV`, `RandomizedSearchCV`, `HalvingGridSearchCV`,
        `HalvingRandomSearchCV` or `PrivateRandomizedSearch`. Or another estimator that scores while it is
        fitted: `RFECV`, `SequentialFeatureSelector`, `HistGradientBoostingClassifier` or
        `HistGradientBoostingRegressor`. Or the `cv` of `cross_val_score`, `cross_validate` or
        `learning_curve`: None means 5 folds, as it does there.
    X : array-like of shape (n_samples, n_features) or None, default=None
        Records. Needed where the count depends on their number or that of their features: successive
        halving, leave-one-out, fractions of a learning curve, selection of features,
        boosting with ``early_stopping="auto"``.
    y : array-like of shape (n_samples,) or (n_samples, n_outputs) or None, default=None
        Targets; needed where splits or successive halving depend on them.
    groups : array-like of shape (n_samples,) or None, default=None
        Group labels of the records, for splitters that use them.
    estimator : estimator object or None, default=None
        What is cross-validated. Needed for nested cross-validation, where it is a search or another
        estimator that scores while it is fitted.
    scoring : PrivateScorer, dict, int or None, default=None
        Scorers of the cross-validation, or the number of private ones; None: one. A search has its own.
    return_train_score : bool, default=False
        Whether `cross_validate` scores the training records too. A search has its own.
    train_sizes : array-like or None, default=None
        If given, count those of `learning_curve`, which scores the training records too.

    Returns
    -------
    int
        The number of releases; fewer are made only if a fit or a score fails, or where boosting, or a
        sequential selection with a `tol`, stops early. A `PrivateRandomizedSearch` counts as one, of its
        whole epsilon. Boosting that is given an `X_val` in `fit` must have a `validation_fraction`.

    Raises
    ------
    ValueError
        If the number cannot be known: a scoring function that is not made by `make_private_scorer`, any
        other estimator that scores within `fit`, callbacks that do, missing X, y or groups; and for
        `TunedThresholdClassifierCV`, which refuses private scorers.

    See Also
    --------
    PrivacyAccountant.require : Refuses a plan that does not fit into the budget.

    Notes
    -----
    Guarantee: nothing is released, fitted or spent here, and the count depends on public settings only, and
    on X and y only as far as the splitter does.

    With several private scorers each makes an equal share of the releases. A plan that was admitted by
    ``accountant.require(count * epsilon)`` is carried out to its end, if nothing else spends from the budget.
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
    >>> from dp_metrics import PrivacyAccountant, count_releases, get_private_scorer
    >>> accountant = PrivacyAccountant(1.0)
    >>> scorer = get_private_scorer("neg_private_mse", epsilon=0.1, accountant=accountant)
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
    if hasattr(search_or_cv, "fit"):
        if not (estimator is None and scoring is None and train_sizes is None):
            raise ValueError("A search has its own estimator and scoring; pass nothing but X, y and groups.")
        is_private, releases = scores_within_fit(search_or_cv), 0
        if is_private or hasattr(search_or_cv, "scoring"):
            releases = _of_fit(search_or_cv, X, y, groups)
        if not is_private:
            raise ValueError("The estimator has no private scorer; make one with make_private_scorer.")
        return releases
    scorers = 1 if scoring is None else count_private_scorers(scoring)
    if scorers < 1:
        raise ValueError("scoring holds no private scorer; make one with make_private_scorer.")
    with preserved_global_generators():  # a splitter may draw from them
        return _of_cross_validation(
            search_or_cv, X, y, groups, estimator, scorers, return_train_score, train_sizes
        )


def _of_fit(estimator: Any, X: Any, y: Any, groups: Any) -> int:
    if isinstance(estimator, PrivateRandomizedSearch):
        return 1
    with preserved_global_generators():  # a splitter may draw from them
        is_search = all(hasattr(estimator, name) for name in _SEARCH_SETTINGS)
        count = _of_search if is_search else releases_of_fit
        return count(estimator, X, y, groups)


def _of_search(search: Any, X: Any, y: Any, groups: Any) -> int:
    check_callbacks(search)
    if scores_within_fit(search.estimator):
        raise ValueError(
            "The estimator of the search makes private releases of its own in every fit; they can be counted "
            "only for a search that is itself cross-validated."
        )
    per_split = count_private_scorers(search.scoring) * (2 if search.return_train_score else 1)
    if per_split == 0:
        return 0
    if type(search) is GridSearchCV:
        candidates = len(ParameterGrid(search.param_grid))
    elif type(search) is RandomizedSearchCV:
        # the grid is smaller than n_iter where all parameters are lists and have few values
        candidates = len(ParameterSampler(search.param_distributions, search.n_iter))
    else:
        return per_split * _rehearse(search, X, y, groups)
    splitter = splitter_of(search.cv, y, search.estimator)
    return per_split * candidates * int(splitter.get_n_splits(X, y, groups))


def _rehearse(search: Any, X: Any, y: Any, groups: Any) -> int:
    """Run a search on a model that learns nothing; return its number of candidates times splits."""
    if X is None:
        raise ValueError(f"X and y are needed to count the releases of a {type(search).__name__}.")
    refuse_iterator(search.cv)
    rehearsal = clone(search).set_params(
        estimator=_StandIn(search.estimator),
        scoring=_nothing,
        refit=False,
        return_train_score=False,
        error_score="raise",
        n_jobs=None,
        verbose=0,
    )
    rehearsal.fit(X, y, **({} if groups is None else {"groups": groups}))
    return len(rehearsal.cv_results_["params"]) * int(rehearsal.n_splits_)


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
    splitter = splitter_of(cv, y, estimator)
    splits = int(splitter.get_n_splits(X, y, groups))
    inner = 0
    if scores_within_fit(estimator):
        if train_sizes is not None:
            raise ValueError(
                "The estimator makes private releases within fit that cannot be counted: use one without."
            )
        if X is None or isinstance(estimator, PrivateRandomizedSearch):
            inner = splits * _of_fit(estimator, None, None, None)
        else:
            inner = sum(
                _of_fit(estimator, *(_rows(part, train) for part in (X, y, groups)))
                for train, _ in splitter.split(X, y, groups)
            )
    if train_sizes is not None:
        sizes = np.unique(_absolute_sizes(train_sizes, splitter, X, y, groups)).size
        return scorers * splits * int(sizes) * 2
    return inner + scorers * splits * (2 if return_train_score else 1)


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


def _nothing(estimator: Any, X: Any, y: Any = None) -> float:
    return 0.0


class _StandIn(BaseEstimator):
    """Stands for an estimator where nothing but its settings matters."""

    def __init__(self, estimator: Any) -> None:
        self.estimator = estimator

    def get_params(self, deep: bool = True) -> Any:
        return self.estimator.get_params(deep=deep)

    def set_params(self, **params: Any) -> "_StandIn":
        self.estimator.set_params(**params)
        return self

    def __sklearn_clone__(self) -> "_StandIn":
        return _StandIn(clone(self.estimator))

    def fit(self, X: Any, y: Any = None) -> "_StandIn":
        return self

    def __sklearn_tags__(self) -> Any:
        return get_tags(self.estimator)
