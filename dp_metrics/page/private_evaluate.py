"""The function that evaluates a model: validate, divide epsilon, spend once, draw, and show the page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Literal, overload

from dp_metrics._random import RandomState
from dp_metrics.accounting import PrivacyAccountant
from dp_metrics.fairness.groups import Groups, public_groups
from dp_metrics.inputs.arrays import columns_of
from dp_metrics.inputs.floats import own_error_state
from dp_metrics.inputs.options import Relation
from dp_metrics.inputs.readers import named_records
from dp_metrics.inputs.shape import Records
from dp_metrics.page.division import EvaluationPlan
from dp_metrics.page.page import PrivateEvaluation
from dp_metrics.page.page_plan import PageForm, plan_of_page, planned
from dp_metrics.page.setting import Setting, given
from dp_metrics.release.plan import KnownParts, Together
from dp_metrics.release.release import Release
from dp_metrics.release.stored.answers import Answer, read_result, read_shape, restores
from dp_metrics.release.stored.codec import DAMAGED
from dp_metrics.release.stored.questions import Call, public_records
from dp_metrics.release.terms import Terms

_NAMES = {
    **dict.fromkeys(("labels", "targets"), "y_pred"),
    "scores": "y_score",
    "probabilities": "y_proba",
    "feature": "sensitive_features",
}
"""What the columns of a page are called as arguments, where that is something else."""


@overload
def private_evaluate(*data: Any, dry_run: Literal[True], **options: Any) -> EvaluationPlan: ...
@overload
def private_evaluate(*data: Any, dry_run: Literal[False] = False, **options: Any) -> PrivateEvaluation: ...
@own_error_state  # type: ignore[misc]
def private_evaluate(  # noqa: PLR0913 - options of a whole page
    *data: Any,
    epsilon: float,
    y_pred: Any = None,
    y_proba: Any = None,
    y_score: Any = None,
    labels: Any = None,
    task: str | None = None,
    pos_label: Any = None,
    threshold: float = 0.5,
    edges: Any = None,
    bounds: tuple[float, float] | None = None,
    sensitive_features: Any = None,
    group_labels: Any = None,
    membership: str = "private",
    baseline: Any = None,
    split: Mapping[str, float] | None = None,
    n: int | None = None,
    dry_run: bool = False,
    neighboring: str = "replace_one",
    accountant: PrivacyAccountant | None = None,
    random_state: RandomState = None,
    spend_name: str | None = None,
) -> PrivateEvaluation | EvaluationPlan:
    """Evaluate a model with epsilon-differential privacy for the test records, on one page.

    How good, for whom, how sure, which is better, and what is left: from as few releases as tell it.

    Parameters
    ----------
    *data : array-like
        ``private_evaluate(y_true, y_pred, ...)``, or ``private_evaluate(model, X_test, y_test, ...)`` of a
        fitted estimator. Probabilities and scores are passed by name. There are labels where `labels`,
        `y_proba`, `y_score`, `task` or a classifier say so, and targets where `task` or a regressor do:
        nothing is concluded from values or types.
    epsilon : float
        Privacy parameter of all of the page, > 0.
    y_pred : array-like of shape (n_samples,), default=None
        Predicted labels or targets; labels also together with one of the next two.
    y_proba : array-like of shape (n_samples, n_classes), default=None
        Probabilities, by name, with a column for each label: those of a data frame in any order, if they are
        named like the labels; else in the order of the sorted labels.
    y_score : array-like of shape (n_samples,), default=None
        Scores of the positive one of two labels, by name.
    labels : array-like or None, default=None
        The public label set, never inferred from `y_true`. None: 0 and 1, or 0 .. K-1 for K columns of
        probabilities; of an estimator its `classes_`.
    task : {"regression", "classification"} or None, default=None
        Whether targets or labels are predicted, where nothing else says so.
    pos_label : label or None, default=None
        The positive one of two labels, to which `y_score` belongs; None: the second in sorted order, where
        `labels` are sorted.
    threshold : float, default=0.5
        A score from here on makes the positive label, where no labels are passed.
    edges : array-like or None, default=None
        Public edges of bins of scores that are no probabilities; see `ScoreSummary`.
    bounds : tuple of float or None, default=None
        Public range of targets, to which these and predictions are clipped; None: unbounded.
    sensitive_features : array-like or data frame, default=None
        The group of each record, such as sex, by which the page compares; several columns make a group of
        each combination. (The `groups` of other functions are persons.)
    group_labels : array-like, or list of array-like, default=None
        The public labels of the groups.
    membership : {"private", "public"}, default="private"
        Whether the group of each record is private; see `PrivateMetricFrame`.
    baseline : array-like or estimator, default=None
        Predictions of another model, with which this one is compared, as `y_pred` if there is one, else as
        `y_proba` or `y_score`; or that model.
    split : mapping of str to float or None, default=None
        Relative parts of epsilon by the names of the releases, as in ``page.plan``: these and no others.
        None: measured parts; what would be mostly noise is left out, and said.
    n : int or None, default=None
        A public guess of the number of records, where it is private: with it the plan leaves out what would
        be mostly noise.
    dry_run : bool, default=False
        Return the plan, and spend nothing.
    neighboring : {"replace_one", "add_or_remove_one"}, default="replace_one"
        What one person can change: a record's contents, the number of records being public; or whether it is
        there at all.
    accountant : PrivacyAccountant or None, default=None
        Budget that pays epsilon, before anything is drawn.
    random_state : None, int, RandomState or Generator, default=None
        None draws fresh randomness from the operating system. Anything else makes the release reproducible
        and therefore NOT private.
    spend_name : str or None, default=None
        The name in the accountant's history; None: "private_evaluate". A name of an earlier session returns
        the page of then, at no cost.

    Returns
    -------
    PrivateEvaluation or EvaluationPlan
        The page, which shows itself in notebooks; with `dry_run` how epsilon would be divided.

    Raises
    ------
    ValueError, TypeError
        If an argument or a record is invalid, or nothing would be more than noise; nothing is spent.
    PrivacyBudgetError
        If the accountant has less than epsilon left; nothing is drawn.

    Warns
    -----
    SeededReleaseWarning
        If `random_state` is given.
    LargeEpsilonWarning
        If epsilon is above 10.

    Notes
    -----
    Guarantee: replacing any one record, its group included, changes the probability of any page by at most a
    factor exp(epsilon), given the models, the number of records and the arguments, which are public. With
    neighboring="add_or_remove_one" the same holds when any one record is added or removed, and with
    membership="public" when a record is replaced by one of the same group. An estimator must respond to each
    record by that record alone, and remember none.

    Proof: the parts of epsilon add up to it, each release has the guarantee with its part (sequential
    composition), and which releases there are follows from public numbers. Everything else is made of what
    was released.

    References
    ----------
    C. Dwork and A. Roth, "The Algorithmic Foundations of Differential Privacy", 2014, Theorem 3.16
    (composition), doi:10.1561/0400000042.

    Examples
    --------
    >>> import numpy as np
    >>> from dp_metrics import private_evaluate
    >>> y_true, y_score = np.array([0, 0, 1, 1] * 500), np.array([0.1, 0.6, 0.4, 0.9] * 500)
    >>> page = private_evaluate(y_true, y_score=y_score, epsilon=2.0)
    >>> 0.4 < page["accuracy"].value < 0.6  # exactly 0.5
    True
    >>> private_evaluate(y_true, y_score=y_score, epsilon=2.0, dry_run=True).parts[0].name
    'labels'
    """
    features = () if sensitive_features is None else tuple(columns_of(sensitive_features))
    named = {"y_pred": y_pred, "y_proba": y_proba, "y_score": y_score}
    asked = given(
        data, named, labels=labels, pos_label=pos_label, task=task, features=features, baseline=baseline
    )
    setting = Setting(
        asked.columns,
        asked.baseline,
        asked.labels,
        asked.pos_label,
        edges,
        threshold,
        bounds,
        group_labels,
        membership,
        split,
        n,
    )
    terms = Terms.of(
        epsilon=epsilon, neighboring=neighboring, accountant=accountant, random_state=random_state,
        spend_name=spend_name,
    )  # fmt: skip
    records = {**asked.records, "sensitive_features": sensitive_features}
    release = page_release(setting, terms, records, features)

    def form_of() -> tuple[PageForm, Records]:
        names = [_NAMES.get(column, column) for column in asked.columns]
        data = asked.read(relation=terms.relation)
        shape, records = named_records(data, names=names, relation=terms.relation)
        sizes = _sizes(setting, records)
        return PageForm(setting, shape, terms.relation, sizes, terms.epsilon), records

    def read() -> tuple[Together, tuple[KnownParts, ...], Any]:
        form, records = form_of()
        division = planned(form)
        plan = plan_of_page(form, division)
        return plan, plan.read(records), {"shape": form.shape, "sizes": form.sizes, "plan": division}

    if dry_run:
        form, _ = form_of()
        division = planned(form)
        plan_of_page(form, division)  # what could not be released is refused here too
        return division
    return release.answer(read, PrivateEvaluation).with_budget(accountant)


def page_release(
    setting: Setting, terms: Terms, data: Mapping[str, Any], features: Sequence[Any] = ()
) -> Release:
    """Return the release of a page; of its data no more than is public."""
    public = None
    if setting.membership == "public" and setting.has_groups:
        public = partial(public_groups, features, setting.group_labels)
    call = Call("page", {"page": setting.asked()}, partial(public_records, data, public))
    release = Release("private_evaluate", terms, call=call)
    if setting.membership == "public" and terms.relation.private_n:
        raise ValueError("membership='public' tells the number of records: use neighboring='replace_one'.")
    return release


def _sizes(setting: Setting, records: Records) -> tuple[int, ...] | None:
    """Return the sizes of groups, where these are public."""
    if setting.membership != "public" or not setting.has_groups:
        return None
    places = setting.places("feature")
    groups = Groups.of(setting.group_labels, len(places))
    return groups.public_sizes(records.of_arguments(0, 0, *places))


@restores("page")
def _restored(answer: Answer) -> PrivateEvaluation:
    asked, form = answer.asked, answer.form
    options = dict(asked["page"])
    setting = Setting(**{**options, "columns": tuple(options["columns"])})
    shape, sizes = read_shape(form["shape"]), form["sizes"]
    page = PageForm(
        setting,
        shape,
        Relation(asked["neighboring"]),
        None if sizes is None else tuple(sizes),
        asked["epsilon"],
    )
    division = form["plan"]
    if not isinstance(division, EvaluationPlan):
        raise ValueError(DAMAGED)
    plan = plan_of_page(page, division)
    results = [
        read_result(written, share.plan.postprocess)
        for written, share in zip(answer.results, plan.shares, strict=True)
    ]
    return PrivateEvaluation(plan.combine(results))
