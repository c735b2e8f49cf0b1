"""How many releases a plan will make, to be asked before the first of them."""

from typing import Any

from sklearn import model_selection

from dp_metrics._random import preserved_global_generators
from dp_metrics.inputs.options import as_whole, own_error_state
from dp_metrics.metrics import metric_of
from dp_metrics.model_selection.scorers import PrivateScorer
from dp_metrics.model_selection.search import PrivateRandomizedSearch

_UNKNOWN = (
    "{} makes releases that cannot be counted: what is counted is cross_validate, GridSearchCV and "
    "RandomizedSearchCV of an estimator that makes none of its own."
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
) -> int:
    """Count the private releases that a search or a cross-validation will make, without making any.

    Parameters
    ----------
    search_or_cv : estimator object, int, splitter, iterable or None
        A search, fitted or not: `GridSearchCV`, `RandomizedSearchCV` or `PrivateRandomizedSearch`. Or the
        `cv` of `cross_val_score` or `cross_validate`: None means 5 folds, as it does there.
    X : array-like of shape (n_samples, n_features) or None, default=None
        Records. Needed where the count depends on their number, as of leave-one-out.
    y : array-like of shape (n_samples,) or (n_samples, n_outputs) or None, default=None
        Targets; needed where splits depend on them.
    groups : array-like of shape (n_samples,) or None, default=None
        Group labels of the records, for splitters that use them.
    estimator : estimator object or None, default=None
        What is cross-validated: refused if it makes releases of its own. A search has its own.
    scoring : PrivateScorer, dict, int or None, default=None
        Scorers of the cross-validation, or the number of private ones; None: one. A search has its own.
    return_train_score : bool, default=False
        Whether `cross_validate` scores the training records too. A search has its own.

    Returns
    -------
    int
        The number of releases; fewer are made only if a fit or a score fails. A `PrivateRandomizedSearch`
        counts as one, of its whole epsilon.

    Raises
    ------
    ValueError
        If the number cannot be known from public parameters: a scoring function that is not made by
        `make_private_scorer`; an estimator with a private scorer, search or metric among its parameters, such
        as a search that is cross-validated, successive halving, `RFECV` or boosting that stops early; missing
        X, y or groups.

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
    >>> count_releases(5, scoring=scorer, return_train_score=True)
    10
    """
    if isinstance(search_or_cv, PrivateRandomizedSearch):
        return 1
    candidates, cv = 1, search_or_cv
    if hasattr(search_or_cv, "fit"):
        if not (estimator is None and scoring is None):
            raise ValueError("A search has its own estimator and scoring; pass nothing but X, y and groups.")
        if type(search_or_cv) is model_selection.GridSearchCV:
            candidates = len(model_selection.ParameterGrid(search_or_cv.param_grid))
        elif type(search_or_cv) is model_selection.RandomizedSearchCV:
            distributions, n_iter = search_or_cv.param_distributions, search_or_cv.n_iter
            # the grid is smaller than n_iter where all parameters are lists and have few values
            candidates = len(model_selection.ParameterSampler(distributions, n_iter))
        else:
            raise ValueError(_UNKNOWN.format(type(search_or_cv).__name__))
        estimator, scoring, cv = search_or_cv.estimator, search_or_cv.scoring, search_or_cv.cv
        return_train_score = search_or_cv.return_train_score
    elif scoring is None:
        scoring = 1
    if hasattr(estimator, "get_params") and _is_private([estimator.get_params(deep=True), estimator]):
        raise ValueError(_UNKNOWN.format(type(estimator).__name__))
    scorers = _count_scorers(scoring)
    if hasattr(cv, "__next__"):
        raise ValueError("cv is an iterator, which counting would use up; pass a list of its splits.")
    with preserved_global_generators():  # a splitter may draw from them
        splits = int(model_selection.check_cv(cv, y).get_n_splits(X, y, groups))
    return scorers * candidates * splits * (2 if return_train_score else 1)


def _count_scorers(scoring: Any) -> int:
    """Return how many private scorers a `scoring` holds; raise where nobody can know, or if it is none."""
    each = scoring.values() if isinstance(scoring, dict) else [scoring]
    if any(callable(one) and not isinstance(one, PrivateScorer) for one in each):
        raise ValueError("Only scorers of make_private_scorer count: what others release is unknown.")
    count = as_whole(scoring) or sum(isinstance(one, PrivateScorer) for one in each)
    if count < 1:
        raise ValueError("scoring holds no private scorer; make one with make_private_scorer.")
    return count


def _is_private(setting: Any) -> bool:
    if isinstance(setting, dict | list | tuple):
        return any(map(_is_private, setting.values() if isinstance(setting, dict) else setting))
    # a metric itself, or a partial of one, is what xgboost takes as eval_metric
    is_private = isinstance(setting, PrivateScorer | PrivateRandomizedSearch)
    return is_private or (callable(setting) and metric_of(setting) is not None)
