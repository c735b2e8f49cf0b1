"""Scorers: private metrics in the form that scikit-learn's model-selection tools call."""

from __future__ import annotations

import inspect
import reprlib
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Any, ClassVar, TypeAlias

from sklearn.base import BaseEstimator
from sklearn.utils.metadata_routing import UNUSED

from dp_metrics.accounting.accountant import PrivacyAccountant, check_accountant, numbering
from dp_metrics.exceptions import TrainingFoldsWarning, callers, models_are_fitted, module_of, warn_caller
from dp_metrics.inputs.models import has_method, known_labels, named_by_labels, response_method, response_of
from dp_metrics.inputs.options import ByName, Function, Relation, check_epsilon
from dp_metrics.metrics import metric_named, metric_of, unwrapped
from dp_metrics.metrics.scores.table import ScoreTable

PrivateMetric: TypeAlias = Function
"""A private metric: of this package, a partial of one, or somebody's own function."""

_NOT_FIXED = {
    "random_state": "a seed would give every fold the same noise, and no privacy",
    "accountant": "pass it as accountant",
    "epsilon": "pass it as epsilon, for each call",
    "sample_weight": "pass it with the records, in the call",
}


def check_metric(metric: Any, params: ByName) -> None:
    """Check that a metric is private, and that it takes these keywords.

    Raises
    ------
    TypeError
        If it is not a function of (y_true, y_pred, *, epsilon, accountant), or does not take a keyword.
    ValueError
        If a keyword cannot be the same in every call.
    """
    bound = metric.keywords if isinstance(metric, partial) else {}
    fixed = {**bound, **params}
    for name, reason in _NOT_FIXED.items():
        if name in fixed:
            raise ValueError(f"{name} can't be fixed in a scorer: {reason}.")
    multioutput = fixed.get("multioutput")
    if isinstance(multioutput, str) and multioutput == "raw_values":
        raise ValueError("multioutput='raw_values' gives several numbers, but a score is one number.")
    if fixed.get("average", "") is None:
        raise ValueError("average=None gives several numbers, but a score is one number.")
    row, why = metric_of(metric), ""
    try:
        signature = inspect.signature(metric)  # somebody's own function has no row to ask
        signature.bind(None, None, epsilon=1.0, accountant=None, **params)
        is_private = {"epsilon", "accountant"} <= signature.parameters.keys()
    except (TypeError, ValueError) as error:
        is_private, why = False, f": {error}"
    # a report or a quantile is no score
    if not is_private or (row is not None and row.greater_is_better is None):
        raise TypeError(
            "metric must be a private metric, a function of (y_true, y_pred) with the keywords epsilon "
            f"and accountant such as private_mse, and what is passed to it; got {name_of(metric)}{why}."
        )


def takes(metric: PrivateMetric, parameter: str) -> bool:
    """Return whether a metric has this parameter."""
    return parameter in inspect.signature(metric).parameters


def usual_responses(metric: partial[Any]) -> tuple[str, ...]:
    """Return the responses of an estimator that a metric judges, the best first."""
    row = metric_of(metric)
    if row is not None:
        # scikit-learn takes probabilities for areas of one class against the rest
        return row.responses[::-1] if metric.keywords.get("multi_class") == "ovr" else row.responses
    return ("predict_proba",) if takes(metric, "y_proba") else ("predict",)


def wants_probabilities(metric: partial[Any]) -> bool:
    """Return whether a metric judges probabilities: scores with public edges of their own need not be."""
    row = metric_of(metric)
    if row is not None and isinstance(row.usual.reading, ScoreTable):
        return metric.keywords.get("edges") is None
    return takes(metric, "y_proba")


def name_of(metric: Any) -> str:
    """Return the name of a metric for people to read."""
    plain = unwrapped(metric_named(metric))
    return str(getattr(plain, "__name__", None) or reprlib.repr(plain))


_RESPONSES = ("predict", "predict_proba", "decision_function")


@dataclass(eq=False, repr=False)
class PrivateScorer(BaseEstimator):
    """A scorer that releases one private number each time it is called; see `make_private_scorer`.

    Parameters
    ----------
    metric : callable or str
        A private metric of (y_true, y_pred) that takes `epsilon` and `accountant`, or its name.
    epsilon : float
        Cost of each call.
    accountant : PrivacyAccountant or None, default=None
        Budget that pays for each call.
    response_method : str, sequence of str or None, default=None
        What of the estimator is judged.
    greater_is_better : bool or None, default=None
        Whether the metric is a score (true) or a loss.
    metric_params : dict or None, default=None
        Other keywords of the metric.

    Notes
    -----
    Guarantee: replacing any one of the records that a call scores changes the probability of any result by
    at most a factor exp(epsilon), given the fitted estimator and the arguments, which are public.

    Examples
    --------
    >>> from dp_metrics import private_mae
    >>> from dp_metrics.model_selection.scorers import PrivateScorer
    >>> PrivateScorer(private_mae, epsilon=0.5, metric_params={"bounds": (0, 10)})
    PrivateScorer(private_mae, epsilon per call=0.5, bounds=(0, 10))
    """

    # Metadata routing can request the arguments of `score`, but not the metric's own, such as epsilon.
    __metadata_request__score: ClassVar[dict[str, str]] = {"estimator": UNUSED}

    _has_warned = False  # of training folds

    metric: PrivateMetric | str
    _: KW_ONLY
    epsilon: float
    accountant: PrivacyAccountant | None = None
    response_method: str | Sequence[str] | None = None
    greater_is_better: bool | None = None
    metric_params: ByName | None = None

    def score(self, estimator: Any, X: Any, y: Any, *, sample_weight: Any = None) -> float:
        """Release a private score of a fitted estimator, at the cost of epsilon.

        Parameters
        ----------
        estimator : object
            A fitted estimator, which must not have been trained on these records.
        X : array-like of shape (n_samples, n_features)
            Evaluation records.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Their true targets.
        sample_weight : array-like of shape (n_samples,) or None, default=None
            Public weights of the records, for a metric that takes them.

        Returns
        -------
        float
            The private metric, negated if it is a loss: greater is better.

        Raises
        ------
        PrivacyBudgetError
            If the accountant has less than epsilon left; nothing is drawn. Within `sklearn.model_selection`
            `dp_metrics.exceptions.SearchInterrupt`, which is no `Exception`.
        ValueError, TypeError
            If a setting or an input is invalid, if the estimator cannot predict, or if the values of records
            are dealt out to others; nothing is spent.
        """
        methods = self.check()[0]
        require_labels(self)
        if _rearranges_records():
            raise ValueError(
                "A private scorer cannot be called here: shuffled records cost more than epsilon. One "
                "replaced record changes two rows where its values are dealt out to others, so each score "
                "would cost twice what is charged. Score the records as they are."
            )
        if takes(self.function, "edges") and not any(has_method(estimator, one) for one in methods):
            raise AttributeError(
                f"{type(estimator).__name__} has no predict_proba. To judge its decisions pass "
                "response_method='decision_function' and edges=[...], public edges of bins for its scores."
            )
        method = response_method(estimator, methods)
        if not self._has_warned and models_are_fitted():
            warn_caller(
                "These scores protect people as evaluation records only: of each fold's model those who are "
                "among its training records get no guarantee, whatever the total. Score one fixed model on "
                "held-out records, or use PrivateRandomizedSearch.",
                TrainingFoldsWarning,
            )
            self._has_warned = True
        labels = labels_for(self, lambda: known_labels(estimator))
        response = response_of(estimator, method, X, y, labels=labels, relation=relation_of(self))
        return release_score(self, labels, method, response, y, sample_weight)

    __call__ = score

    @property
    def function(self) -> partial[Any]:
        """The metric, with the keywords of every call."""
        return partial(metric_named(self.metric), **(self.metric_params or {}))

    def check(self) -> tuple[tuple[str, ...], int]:
        """Check the settings, which scikit-learn lets people change after construction.

        Returns
        -------
        methods : tuple of str
            The responses of the estimator to look for, the best first.
        sign : {1, -1}
            Factor that makes greater better.

        Raises
        ------
        ValueError, TypeError
            If a setting is not what it should be.
        """
        check_epsilon(self.epsilon)
        check_accountant(self.accountant)
        check_metric(metric_named(self.metric), self.metric_params or {})
        row, greater_is_better = metric_of(self.function), self.greater_is_better
        if greater_is_better is None and row is not None:
            greater_is_better = row.greater_is_better
        if greater_is_better is None:
            raise ValueError(f"greater_is_better must be given for {name_of(self.metric)}: true or false.")
        methods = self.response_method or usual_responses(self.function)
        methods = (methods,) if isinstance(methods, str) else tuple(methods)
        if not set(methods) <= set(_RESPONSES):
            raise ValueError(f"response_method must be None, one of {_RESPONSES} or several of them.")
        return methods, 1 if greater_is_better else -1

    @property
    def __name__(self) -> str:
        # scikit-learn's displays of curves call an axis so, once all scores are paid for
        return f"{'neg_' if self.check()[1] < 0 else ''}{name_of(self.metric)}"

    @property
    def _score_func(self) -> Any:
        # scikit-learn's TunedThresholdClassifierCV asks for this, and calls the metric at each threshold. An
        # AttributeError lets hasattr still say no.
        raise AttributeError(
            "A private scorer cannot tune a threshold: TunedThresholdClassifierCV would release a number "
            "for each threshold and fold, and by default its thresholds come from the scores of the "
            "records. Release one private_precision_recall_curve, and choose the threshold from that: no "
            "more is spent."
        )

    def _accept_sample_weight(self) -> bool:
        # scikit-learn asks its scorers this before it passes weights on
        return takes(self.function, "sample_weight")

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        parts = [name_of(self.metric), f"epsilon per call={self.epsilon!r}"]
        parts += [f"{name}={reprlib.repr(value)}" for name, value in self.function.keywords.items()]
        for name in ("response_method", "greater_is_better", "accountant"):
            if getattr(self, name) is not None:
                parts.append(f"{name}={getattr(self, name)!r}")
        return f"{type(self).__name__}({', '.join(parts)})"


def make_private_scorer(
    metric: PrivateMetric | str,
    *,
    epsilon: float,
    accountant: PrivacyAccountant | None = None,
    response_method: str | Sequence[str] | None = None,
    greater_is_better: bool | None = None,
    **metric_kwargs: Any,
) -> PrivateScorer:
    """Make a scorer from a private metric, for scikit-learn's model-selection tools.

    Parameters
    ----------
    metric : callable or str
        A private metric such as `private_mse`, or its name, with or without "private", also as
        scikit-learn calls its scorer: "roc_auc", "f1_macro", "neg_log_loss"; the error for an unknown name
        lists them. Greater is better for all: losses are negated. Or your own function of
        (y_true, y_pred) that takes the keywords `epsilon` and `accountant` and returns one number.
    epsilon : float
        Privacy parameter of each call, > 0. A cross-validation with k folds makes k calls; `count_releases`
        tells how many a search makes.
    accountant : PrivacyAccountant or None, default=None
        Budget that pays epsilon for each call. With ``n_jobs`` > 1 it needs a path.
    response_method : str, sequence of str or None, default=None
        "predict", "predict_proba" or "decision_function": what of the estimator is judged; of several, the
        first that it has. None: what the metric judges; of your own metric "predict_proba" if it has a
        parameter `y_proba`, else "predict".
    greater_is_better : bool or None, default=None
        Whether the metric is a score (true) or a loss (false: the scorer negates it). None: known for the
        metrics of this package, required for a metric of your own.
    **metric_kwargs : additional arguments
        Public keywords of the metric, the same in every call: `bounds`, `labels`, `max_loss`, `mechanism` ...

    Returns
    -------
    PrivateScorer
        A scorer to be called as ``scorer(estimator, X, y, *, sample_weight=None)``.

    Raises
    ------
    TypeError
        If the metric is not private, or does not take a keyword.
    ValueError
        If a setting is invalid, among them a seed: with one, every fold would have the same noise; or if the
        metric counts over all labels, and `labels` are not given.

    See Also
    --------
    count_releases : The number of calls that a search or a cross-validation will make.

    Notes
    -----
    Guarantee: replacing any one of the records that a call scores changes the probability of its result by
    at most a factor exp(epsilon), given the fitted estimator and the arguments, which are public. With
    ``neighboring="add_or_remove_one"`` the number of records is private, and may be 0: the estimator is not
    asked then, and probabilities of every type are judged as float64, because an estimator that is not asked
    has no type. A metric of your own that has a private number of records within itself should do so too.

    The estimator must respond to each record by that record alone. One whose response to a record depends on
    the others, as that of a scaler fitted on the records that are scored, or that remembers those it was
    asked about before, lets one of them change every prediction: then nothing is promised. An exception of
    the estimator becomes one `ValueError` that tells nothing of it, and its warnings are dropped.

    **Shuffled or repeated records cost more.** Where the values of a record are dealt out to others before
    they are scored, one replaced record changes two rows: the cost is 2 epsilon, and k epsilon where a record
    stands in k rows of a bootstrap. No budget knows of it. In `sklearn.inspection` and
    `permutation_test_score` a scorer refuses to be called.

    **Labels.** Where the metric takes `labels`, the sorted ``estimator.classes_`` are passed unless labels
    are given. Metrics that count over all labels (balanced accuracy, kappa, `average="macro"`, an area of
    several classes) need `labels`, because the estimator of a fold may lack one. Of a label that it lacks
    its probability is 0.

    **What a total means.** The total of an accountant after a cross-validation or a search protects people
    in their role as *evaluation* records, given the fitted models. Who is also among the training records of
    another fold gets no such protection: changing one record changes the models of all other folds, and with
    them all their scores; a `TrainingFoldsWarning` says so, once for each scorer. Scores on training records
    (`return_train_score`, `learning_curve`) cost epsilon and protect nobody. The clean claim is that of one
    fixed model scored on held-out records.

    **An exhausted budget.** Searches and cross-validations turn any `Exception` of a scorer into the score
    NaN and go on. A budget that ends within them raises `dp_metrics.exceptions.SearchInterrupt`, which is
    none.
    Ask before the first fit whether the query fits, as in the second example below.

    Only `sample_weight` can be requested through metadata routing; an epsilon for one call is refused.

    References
    ----------
    C. Dwork and A. Roth, "The Algorithmic Foundations of Differential Privacy", 2014, Theorem 3.16
    (composition), doi:10.1561/0400000042.

    Examples
    --------
    >>> import warnings
    >>> from sklearn.datasets import make_regression
    >>> from sklearn.linear_model import Ridge
    >>> from sklearn.model_selection import cross_val_score
    >>> from dp_metrics import PrivacyAccountant, make_private_scorer
    >>> from dp_metrics.exceptions import TrainingFoldsWarning
    >>> warnings.simplefilter("ignore", TrainingFoldsWarning)  # we know what the total means
    >>> X, y = make_regression(n_samples=500, random_state=0)
    >>> accountant = PrivacyAccountant(1.0)
    >>> scorer = make_private_scorer("neg_mse", epsilon=0.2, accountant=accountant)
    >>> scores = cross_val_score(Ridge(), X, y, cv=5, scoring=scorer, error_score="raise")
    >>> scores.shape, accountant.spent
    ((5,), 1.0)

    Nothing is fitted if the query does not fit into the budget:

    >>> from fractions import Fraction
    >>> from dp_metrics import count_releases
    >>> accountant.require(count_releases(5, scoring=scorer) * Fraction("0.2"))  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    dp_metrics.exceptions.PrivacyBudgetError: epsilon=1.0 was asked for, but 1.0 of the total...
    """
    scorer = PrivateScorer(
        metric_named(metric),
        epsilon=epsilon,
        accountant=accountant,
        response_method=response_method,
        greater_is_better=greater_is_better,
        metric_params=metric_kwargs or None,
    )
    scorer.check()
    require_labels(scorer)
    return scorer


def _rearranges_records() -> bool:
    """Return whether what calls deals the values of a record out to others, as far as scikit-learn does."""
    return any(
        module_of(frame).startswith("sklearn.inspection.") or frame.f_code.co_name == "permutation_test_score"
        for frame in callers()
    )


def require_labels(scorer: PrivateScorer) -> None:
    """Raise if the metric of a scorer counts over labels that are not given."""
    row, keywords = metric_of(scorer.function), scorer.function.keywords
    if row is not None and row.is_over_labels(keywords) and keywords.get("labels") is None:
        raise ValueError(
            f"{name_of(scorer.metric)} counts over all labels, and a fold may lack one: pass labels=[...], "
            "all that may occur."
        )


def relation_of(scorer: PrivateScorer) -> Relation:
    """Return the neighbouring relation that the metric of a scorer is called with."""
    return Relation.told_by(scorer.function.keywords)


def release_score(
    scorer: PrivateScorer, labels: Any, method: str, response: Any, y: Any, sample_weight: Any = None
) -> float:
    """Release a private score of a response to the records, by one of the methods of an estimator.

    The labels are those of `labels_for`, read before the estimator was shown a record: what it says of itself
    afterwards may depend on the records.
    """
    _, sign = scorer.check()
    metric, keywords = scorer.function, {}
    if sample_weight is not None:
        if not takes(metric, "sample_weight"):
            raise TypeError(f"{name_of(metric)} takes no sample_weight; score the records without it.")
        keywords["sample_weight"] = sample_weight
    if takes(metric, "labels"):
        keywords["labels"] = labels
        if metric_of(metric) is not None:  # a metric of somebody else may take nothing but an array
            response = named_by_labels(response, method, labels)
    # one name for all calls is none for each: a fold must never have the score of another one
    budget = numbering(scorer.accountant)
    return sign * float(metric(y, response, epsilon=scorer.epsilon, accountant=budget, **keywords))


def labels_for(scorer: PrivateScorer, known: Callable[[], Any]) -> Any:
    """Return the public labels that a scorer judges by: its own, or else those that are known."""
    if not takes(scorer.function, "labels"):
        return None
    given = scorer.function.keywords.get("labels")
    return known() if given is None else given
