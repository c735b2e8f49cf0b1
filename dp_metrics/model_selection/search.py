"""Private choice among models: one epsilon for all candidates; and how many releases another search makes."""

from __future__ import annotations

import copy
import math
from dataclasses import KW_ONLY, dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from sklearn import model_selection
from sklearn.base import BaseEstimator
from sklearn.utils import get_tags

from dp_metrics._random import Entropy, preserved_global_generators
from dp_metrics.accounting.accountant import PrivacyAccountant, check_accountant, exactly_spent
from dp_metrics.accounting.ledgers import Claim
from dp_metrics.inputs import options
from dp_metrics.inputs.arrays import number_of_records
from dp_metrics.inputs.options import ByName
from dp_metrics.metrics import metric_of
from dp_metrics.model_selection import _trials
from dp_metrics.model_selection.scorers import (
    PrivateMetric,
    PrivateScorer,
    labels_for,
    name_of,
    release_score,
)
from dp_metrics.release.stored import is_kept, search_json, summary_json


def _allows_nan(estimator: Any) -> bool:
    try:
        return bool(get_tags(estimator).input_tags.allow_nan)
    except (AttributeError, TypeError):  # an estimator that scikit-learn knows nothing of
        return False


def _success_probability(expected_iter: Any) -> Fraction:
    if not (math.isfinite(options.as_real(expected_iter)) and expected_iter >= 1):
        raise ValueError("expected_iter must be a finite number, at least 1.")
    return 1 / options.exact_epsilon(expected_iter)


@dataclass(eq=False, repr=False)
class PrivateRandomizedSearch(model_selection.RandomizedSearchCV):
    """Randomized search whose choice, as a whole, is epsilon-differentially private.

    A secret number of candidates is drawn, each independently of the others, fitted on X, y and scored with a
    private metric on X_val, y_val. The best of them and its private score are the result.

    Parameters
    ----------
    estimator : estimator object
        What is searched. It must draw its random numbers from its `random_state` or from NumPy's or Python's
        global generators; these are seeded anew for each candidate, and put back afterwards.
    param_distributions : dict or list of dicts
        Lists, or distributions with a method `rvs`, by name of parameter, as for `RandomizedSearchCV`.
        Lists are sampled with replacement. Public: never made from the validation records.
    metric : callable or str
        A private metric such as `private_mse`, or its name, such as "roc_auc"; see `make_private_scorer`.
    epsilon : float
        Privacy parameter of the whole search, > 0. Each candidate is scored at a third of it.
    expected_iter : float, default=20
        Expected number of candidates, at least 1; public. More cost time but no privacy. Their number is
        geometric with this mean: for 20 it is 1 in 5 % of the searches, and above 59 in another 5 %.
    accountant : PrivacyAccountant or None, default=None
        Budget that pays epsilon, once, before the number of candidates is drawn.
    response_method : str, sequence of str or None, default=None
        What of a candidate is judged; see `make_private_scorer`.
    greater_is_better : bool or None, default=None
        Whether the metric is a score or a loss; known for the metrics of this package.
    metric_params : dict or None, default=None
        Other public keywords of the metric, such as ``{"bounds": (0, 100)}``.
    refit : bool, default=True
        Fit the chosen candidate once more, on X, y only, as `best_estimator_`.

    Attributes
    ----------
    best_params_ : dict
        Parameters of the chosen candidate.
    best_score_ : float
        Its private score, negated if the metric is a loss: greater is better. It is the best of several noisy
        numbers, hence optimistic. -inf if every candidate failed.
    best_estimator_ : estimator
        Only with ``refit=True``.
    classes_ : ndarray of shape (n_classes,)
        Those of `best_estimator_`, if it has them.
    n_features_in_ : int
        That of `best_estimator_`, if it has it.
    feature_names_in_ : ndarray of shape (n_features,)
        Those of `best_estimator_`, if it has them.

    See Also
    --------
    make_private_scorer : For the searches of scikit-learn, where each candidate costs epsilon.

    Notes
    -----
    Guarantee: replacing any one validation record (under the metric's neighbouring relation) changes the
    probability of any result, (`best_params_`, `best_score_`) and all that follows from it, by at most a
    factor exp(epsilon), given X, y and the settings, which are public, for validation sets in which every
    record is valid for the metric and can be predicted by every candidate. With a private number of records,
    ``metric_params={"neighboring": "add_or_remove_one"}``, that includes the empty set.

    What is checked before anything is spent, record by record: targets, by the metric; records of X_val, by
    what X holds. Text or numbers where X has none, infinity and numbers beyond 3.4e38, unless X has some, and
    missing values, unless X has some or the estimator's tags allow them, are refused. A word that an encoder
    refuses is not found: use ``handle_unknown="ignore"``.

    A prediction outside the metric's domain does not fail the candidate; each by itself is moved into it:
    probabilities to [0, 1] (NaN to 0), predictions of a Poisson deviance to 2.2e-16 at least, those of a
    squared logarithmic error above -1, and any other NaN or infinity to 3.4e38 with its sign. A predicted
    label that is not whole, or not text where those of y are, counts as wrong, and what is no number, where
    numbers are needed, is read as NaN. A candidate must respond to each record by that record alone: one
    that looks at all of X_val, as a scaler fitted on it would, or that makes one array of a list with text in
    it, lets one record change every prediction, and there is no guarantee. Of a metric of your own only
    a parameter `y_proba` is known, which gets probabilities in [0, 1]; else it gets finite predictions, and
    must return a number for all of them.

    The total covers people in their role as validation records only: nothing is promised to those in X, y,
    so no person should be in both.

    The argument [1]_ [2]_: if one trial (draw a candidate, fit it, score it) is e-private, then the best of a
    geometric number of independent trials is 3e-private, whatever the mean. It needs every one of these:

    - Candidates are drawn with replacement, from the operating system's generator, so trials are independent
      and alike. There is no `random_state`.
    - The number of candidates is never revealed. No table of candidates, no count and no timings are kept.
      While candidates run, three things are discarded in the whole process, of other threads too: warnings,
      whatever filters an estimator sets; what is passed to a `logging.Logger`, at any level; and text
      written to `sys.stdout` and `sys.stderr`, also by who kept these streams from before.
      Nothing else is: output of compiled code or of another process, bytes written to a file descriptor
      or a stream's `buffer`, other files and handlers (`verbose`, callbacks, a pipeline's `memory`), hooks
      for uncaught exceptions in threads, and what an estimator counts in variables of its own. Switch
      these off, or run the search where nobody keeps its output. Wall time, memory and energy are outside
      the guarantee, and so is an interruption: who stops a search sees where it was.
    - A candidate whose fit or score fails, or exits, is no exception; it ranks last. If all fail, the first
      is chosen with the score -inf, and refitting it raises its own error.
    - There is no `score` and no `cv_results_`: they would be exact, not private, numbers. Call a private
      metric, on new records.

    Fit parameters are not passed on, since an `eval_set` of validation records would evade the guarantee.

    References
    ----------
    .. [1] J. Liu and K. Talwar, "Private Selection from Private Candidates", 2019, arXiv:1811.07971.
    .. [2] N. Papernot and T. Steinke, "Hyperparameter Tuning with Renyi Differential Privacy", 2022,
       arXiv:2110.03620.

    Examples
    --------
    >>> from sklearn.datasets import make_regression
    >>> from sklearn.linear_model import Ridge
    >>> from dp_metrics import PrivacyAccountant, PrivateRandomizedSearch, private_mse
    >>> X, y = make_regression(n_samples=600, n_features=5, noise=10, random_state=0)
    >>> accountant = PrivacyAccountant(3.0)
    >>> search = PrivateRandomizedSearch(
    ...     Ridge(), {"alpha": [0.1, 1.0, 10.0]}, metric=private_mse, epsilon=3.0, accountant=accountant
    ... ).fit(X[:300], y[:300], X_val=X[300:], y_val=y[300:])
    >>> accountant.spent
    3.0
    >>> search.best_params_["alpha"] in (0.1, 1.0, 10.0)
    True
    >>> search.predict(X[300:]).shape
    (300,)
    """

    estimator: Any
    param_distributions: Any
    _: KW_ONLY
    metric: PrivateMetric | str
    epsilon: float
    expected_iter: float = 20
    accountant: PrivacyAccountant | None = None
    response_method: Any = None
    greater_is_better: bool | None = None
    metric_params: ByName | None = None
    refit: bool = True

    def fit(
        self, X: Any, y: Any, *, X_val: Any, y_val: Any, sample_weight_val: Any = None
    ) -> PrivateRandomizedSearch:
        """Search, at the cost of epsilon.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Training records.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Their targets.
        X_val : array-like of shape (n_validation, n_features)
            Validation records, which the search protects.
        y_val : array-like of shape (n_validation,) or (n_validation, n_outputs)
            Their targets.
        sample_weight_val : array-like of shape (n_validation,) or None, default=None
            Public weights of the validation records, for a metric that takes them.

        Returns
        -------
        PrivateRandomizedSearch
            The fitted search.

        Raises
        ------
        PrivacyBudgetError
            If the accountant has less than epsilon left; nothing is fitted.
        ValueError, TypeError
            If a setting or an input is invalid, or the metric spends more than it is given; nothing is spent.
        """
        total, success = options.exact_epsilon(self.epsilon), _success_probability(self.expected_iter)
        check_accountant(self.accountant)
        # the search is charged once, not here: a record of each trial would tell their number
        scorer = self._scorer(total)
        methods = scorer.check()[0]
        with _trials.unobserved():
            _trials.check_candidates(self.estimator, self.param_distributions, methods)
        data = _trials.check_data(
            X, y, X_val, y_val, sample_weight_val, allow_nan=_allows_nan(self.estimator)
        )
        # Rehearse with a public response: every error of the validation records shows now, before the spend.
        # The number is not released, so it costs nothing; from here on no record makes anything fail.
        known = _trials.public_classes(self.estimator, y, methods, scorer.function.keywords.get("labels"))
        labels = labels_for(scorer, lambda: known)
        # the budget of the rehearsal tells under which relation the metric is private, and what it costs
        rehearsal = PrivacyAccountant(options.MAX_FLOAT)
        options.warn_of_large_epsilon(total)
        *_, y_val, sample_weight_val = data
        response = _trials.public_response(methods[0], known, y, number_of_records(y_val))
        rehearsed = self._scorer(total).set_params(accountant=rehearsal)
        release_score(rehearsed, labels, methods[0], response, y_val, sample_weight_val)
        claim = Claim(None, is_named=False)
        self._spend(total, rehearsal, claim)

        def trial() -> tuple[float, ByName]:
            params = _trials.draw(self.param_distributions)
            return _trials.score_of(self.estimator, params, methods, scorer, data, known, labels), params

        with _trials.unobserved():
            self.best_score_, self.best_params_ = _trials.best_of_geometric(trial, success, Entropy())
        if self.accountant is not None:
            score, params = self.best_score_, self.best_params_
            # parameters write themselves down, and may fail to
            is_kept(
                self.accountant,
                claim,
                lambda: (search_json(score, params), summary_json(f"{score:.6g} by {params!r}")),
            )
        self.__dict__.pop("best_estimator_", None)
        if self.refit:
            self.best_estimator_ = _trials.unfitted(self.estimator, self.best_params_).fit(X, y)
        return self

    def _scorer(self, total: Fraction) -> PrivateScorer:
        share = options.rounded_down(total / _trials.COST)
        if share == 0.0:
            raise ValueError("epsilon is too small to be divided by 3.")
        return PrivateScorer(
            self.metric,
            epsilon=share,
            response_method=self.response_method,
            greater_is_better=self.greater_is_better,
            metric_params=self.metric_params,
        )

    def _spend(self, total: Fraction, rehearsal: PrivacyAccountant, claim: Claim) -> None:
        # the floats of a history may be less than what was spent
        if exactly_spent(rehearsal) * _trials.COST > total:
            raise ValueError("The metric spends more than the epsilon that it is given.")
        if self.accountant is None:
            return
        rehearsed = rehearsal.history
        relation = (self.metric_params or {}).get("neighboring", "replace_one")
        drawn_by = dict.fromkeys(spend.mechanism for spend in rehearsed if spend.mechanism is not None)
        self.accountant.spend(
            total,
            f"PrivateRandomizedSearch of {name_of(self.metric)}",
            mechanism=", ".join(["best of a geometric number", *drawn_by]),
            neighboring=rehearsed[0].neighboring if rehearsed else relation,
            claim=claim,
        )

    get_metadata_routing = BaseEstimator.get_metadata_routing  # there is no cv to route to

    @property
    def score(self) -> Any:
        """There is none: it would be an exact, not a private, number."""
        raise AttributeError("A private search only predicts: to score it call a private metric.")

    transform = inverse_transform = set_callbacks = score

    @property
    def feature_names_in_(self) -> Any:
        """Names of the features that `best_estimator_` was fitted on."""
        return self.best_estimator_.feature_names_in_

    def __sklearn_tags__(self) -> Any:
        tags, inner = super().__sklearn_tags__(), get_tags(self.estimator)
        tags.target_tags, tags.input_tags = copy.deepcopy((inner.target_tags, inner.input_tags))
        tags.array_api_support = False
        return tags


_UNKNOWN = (
    "{} makes releases that cannot be counted: what is counted is cross_validate, GridSearchCV and "
    "RandomizedSearchCV of an estimator that makes none of its own."
)


@options.own_error_state
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
        `make_private_scorer`; an estimator with a private scorer, search or metric among its parameters, or
        among those that a search tries, such as a search that is cross-validated, successive halving, `RFECV`
        or boosting that stops early; missing X, y or groups.

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
    candidates, cv, tried = 1, search_or_cv, {}
    if hasattr(search_or_cv, "fit"):
        if not (estimator is None and scoring is None):
            raise ValueError("A search has its own estimator and scoring; pass nothing but X, y and groups.")
        if type(search_or_cv) is model_selection.GridSearchCV:
            tried = search_or_cv.param_grid
            candidates = len(model_selection.ParameterGrid(tried))
        elif type(search_or_cv) is model_selection.RandomizedSearchCV:
            tried = search_or_cv.param_distributions
            # the grid is smaller than n_iter where all parameters are lists and have few values
            candidates = len(model_selection.ParameterSampler(tried, search_or_cv.n_iter))
        else:
            raise ValueError(_UNKNOWN.format(type(search_or_cv).__name__))
        estimator, scoring, cv = search_or_cv.estimator, search_or_cv.scoring, search_or_cv.cv
        return_train_score = search_or_cv.return_train_score
    elif scoring is None:
        scoring = 1
    if _is_private([estimator, tried]):
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
    count = options.as_whole(scoring) or sum(isinstance(one, PrivateScorer) for one in each)
    if count < 1:
        raise ValueError("scoring holds no private scorer; make one with make_private_scorer.")
    return count


def _is_private(setting: Any) -> bool:
    """Return whether a setting makes releases, or one of its own settings does."""
    if isinstance(setting, np.ndarray):
        setting = setting.tolist()
    if isinstance(setting, dict | list | tuple):
        return any(map(_is_private, setting.values() if isinstance(setting, dict) else setting))
    # a metric itself, or a partial of one, is what xgboost takes as eval_metric
    is_private = isinstance(setting, PrivateScorer | PrivateRandomizedSearch)
    if is_private or (callable(setting) and metric_of(setting) is not None):
        return True
    has_params = hasattr(setting, "get_params") and not isinstance(setting, type)
    return has_params and _is_private(setting.get_params(deep=True))
