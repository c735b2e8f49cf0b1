"""The exact audit of whole pages: what neighbouring records change of the joint law of all that is drawn.

What is audited is the call itself, from its arguments to what it is about to draw.
"""

import math
from dataclasses import replace
from fractions import Fraction
from functools import partial
from unittest import mock

import numpy as np
import pytest
from cases import WAYS
from helpers import loop_over

import dp_metrics as dp
from dp_metrics.analysis.auditing import _loss_of_prepared, release_loss
from dp_metrics.page import page_plan
from dp_metrics.release.query import made_of
from dp_metrics.release.release import Release, prepare_all

EPSILON, PAIRS = 3.0, 12
UNIT = np.linspace(0, 1, 5)
THIRDS = np.array([[1, 0, 0], [0, 1, 0], [0, 0, 1], [0.5, 0.5, 0], [0.2, 0.3, 0.5]])
GROUPS = ["a", "b", "c"]
BY_GROUP = {"sensitive_features": "group", "group_labels": GROUPS}
APART = {"sensitive_features": "two groups", "group_labels": [GROUPS, ["a", "d"]], "crossed": False}
TWO = {"labels": [0, 1]}
LABELS, TARGETS = "labels by group", {"y_pred": "score", "task": "regression"}


def of_each(release):
    """Return the names of a release by each of two features."""
    return f"{release} by feature 1", f"{release} by feature 2"


# the arguments of each kind of page, and the releases that need no public number of records
KINDS = {
    "scores": (
        {"y_score": "score", "baseline": "other score", **TWO, **BY_GROUP},
        (LABELS, "scores", "scores by group", "loss"),
    ),
    "scores and labels": ({"y_score": "score", "y_pred": "pred", **TWO}, ("labels", "scores", "loss")),
    "edges": ({"y_score": "score", "edges": [0, 0.3, 0.6, 1], **TWO, **BY_GROUP}, (LABELS, "scores")),
    "probabilities": (
        {"y_proba": "proba", "baseline": "other proba", "labels": [0, 1, 2], **BY_GROUP},
        (LABELS, "loss"),
    ),
    "labels": ({"y_pred": "pred", "baseline": "other pred", **TWO, **BY_GROUP}, (LABELS,)),
    "five labels": ({"y_pred": "pred", "labels": range(5), **BY_GROUP}, (LABELS,)),
    "targets": (
        {**TARGETS, "baseline": "other score", "tolerance": 0.3, **BY_GROUP},
        ("sides by group", "absolute error by group", "errors"),
    ),
    "scores apart": (
        {"y_score": "score", **TWO, **APART},
        (*of_each("labels"), "scores", *of_each("scores"), "loss"),
    ),
    "targets apart": (
        {**TARGETS, "tolerance": 0.3, **APART},
        (*of_each("sides"), *of_each("absolute error"), "errors"),
    ),
    "bounded targets": (
        {**TARGETS, "bounds": (0, 1), "tolerance": 0.3},
        ("sides", "absolute error", "errors"),
    ),
}
PER_RECORD = {"y_pred", "y_score", "y_proba", "baseline", "sensitive_features"}


class Held(Exception):
    """What a call is about to release."""


def held(release, read, make):
    raise Held(release, *read())


def records(kind, rng, n):
    """Return records made at random."""
    labels = {"probabilities": 3, "five labels": 5}.get(kind, 2)
    return {
        "y_true": rng.choice(UNIT, n) if "targets" in kind else rng.integers(0, labels, n),
        "pred": rng.integers(0, labels, n),
        "other pred": rng.integers(0, labels, n),
        "score": rng.choice(UNIT, n),
        "other score": rng.choice(UNIT, n),
        "proba": THIRDS[rng.integers(0, 5, n)],
        "other proba": THIRDS[rng.integers(0, 5, n)],
        "group": rng.choice(GROUPS, n),
        "two groups": np.column_stack([rng.choice(GROUPS, n), rng.choice(["a", "d"], n)]),
    }


# right for all, and the baseline wrong; then wrong for the first, who is of another group
RIGHT = {
    "y_true": np.zeros(3), "pred": np.zeros(3), "other pred": np.ones(3), "score": np.zeros(3),
    "other score": np.ones(3),
    "proba": THIRDS[:3], "other proba": THIRDS[:3], "group": np.array(["a", "a", "a"]),
    "two groups": np.array([["a", "a"]] * 3),
}  # fmt: skip
WRONG = {name: values[:1] for name, values in RIGHT.items()} | {
    "y_true": np.ones(1), "group": np.array(["b"]), "two groups": np.array([["b", "d"]])
}  # fmt: skip


def neighbours(kind, way, pairs):
    """Yield records and what they are when the first is another one, or is not there."""
    rng = np.random.default_rng(7)
    for number in range(pairs):
        a, other = records(kind, rng, 1 + number % 3), records(kind, rng, 1)
        if number == 0:  # for this pair the loss of most releases is all they cost
            a, other = {name: values.copy() for name, values in RIGHT.items()}, {**WRONG}
            if way == "add or remove":
                a = {name: np.concatenate([other[name], values[1:]]) for name, values in a.items()}
        if way == "add or remove":
            yield a, {name: values[1:] for name, values in a.items()}
        else:
            if way == "public":
                other |= {name: a[name][:1] for name in ("group", "two groups")}
            yield a, {name: np.concatenate([other[name], values[1:]]) for name, values in a.items()}


def arguments(kind, way, data):
    """Return the arguments of a page that holds all it can, and the names of its releases."""
    given, names = KINDS[kind]
    options = {name: data[value] if name in PER_RECORD else value for name, value in given.items()}
    if way != "add or remove":
        names = ("median error",) * ("task" in given) + names + ("comparison",) * ("baseline" in given)
    return data["y_true"], {**options, **WAYS[way]}, names


def about_to_draw(kind, way, data):
    """Return what a page is about to draw, and all that it tells besides."""
    y_true, options, names = arguments(kind, way, data)
    with mock.patch.object(Release, "answer", held), pytest.raises(Held) as caught:
        dp.private_evaluate(y_true, **options, epsilon=EPSILON, split=dict.fromkeys(names, 1))
    release, plan, known, form = caught.value.args
    with np.errstate(all="ignore"):
        of_any_time = {name: value for name, value in form.items() if name != "released"}
        drawn = prepare_all(release.metric, release.terms, plan, known)
        return drawn, made_of((plan, of_any_time, release._question()))


def losses(kind, way, pairs):
    """Yield the loss of all that a page tells, of pairs of neighbours."""
    for a, b in neighbours(kind, way, pairs):
        (drawn_a, told_a), (drawn_b, told_b) = (about_to_draw(kind, way, data) for data in (a, b))
        assert told_a == told_b  # public: the same for neighbours
        with np.errstate(all="ignore"):
            yield math.fsum(map(_loss_of_prepared, drawn_a, drawn_b))


AUDITED = [
    (kind, way)
    for kind, (given, _) in KINDS.items()
    for way in WAYS
    if way != "public" or "group_labels" in given
]


@pytest.mark.gate
@pytest.mark.parametrize(("kind", "way"), AUDITED)
@pytest.mark.filterwarnings("ignore:.*mostly noise")
def test_the_exact_loss_of_a_page_is_at_most_epsilon(kind, way):
    # comparing the laws of unbounded losses takes a second
    loss = max(losses(kind, way, pairs=1 if "targets" in kind else PAIRS))
    assert loss <= EPSILON * (1 + 1e-12)
    assert loss >= (0.75 if "targets" in kind else 0.9999) * EPSILON  # counts attain it


@loop_over(("n", "epsilon"), [(50, 3.0), (60, 1.0), (200, 0.5)])
@loop_over(("place", "other"), [(0, 1.0), (-1, 0.0)])
def test_the_limits_of_a_median_cost_epsilon_and_no_more(n, epsilon, place, other):
    """Pages of fewer records have none, so that others of this audit lack them."""

    def released(y_pred, **settings):
        options = {"task": "regression", "bounds": (0, 1), "split": {"median limits": 1}, **settings}
        return dp.private_evaluate(np.zeros(n), y_pred, **options)

    predicted = np.repeat([0.0, 1.0], n // 2)
    changed = predicted.copy()
    changed[place] = other
    loss = release_loss(released, {"y_pred": predicted}, {"y_pred": changed}, epsilon=epsilon)
    assert 0.9 * epsilon < loss <= epsilon * (1 + 1e-9)
    # of a person both records change, which are next to each other
    changed[2 * (place % n // 2) :][:2] = other
    of_persons = partial(released, groups=np.repeat(np.arange(n // 2), 2), max_records=2)
    loss = release_loss(of_persons, {"y_pred": predicted}, {"y_pred": changed}, epsilon=epsilon)
    assert 0.8 * epsilon < loss <= epsilon * (1 + 1e-9)


def plan_with(place, times):
    """Return the plan of pages of which one share costs more than is said."""

    def inflated(form, division, query_of_page=page_plan.query_of_page):
        plan = query_of_page(form, division)
        shares = [*plan.shares]
        shares[place] = replace(shares[place], part=shares[place].part * times)
        return replace(plan, shares=tuple(shares))

    return inflated


PLANTED = [
    *(("scores", way, place) for way in ("private", "add or remove") for place in range(4)),
    ("scores", "private", 4),
    ("probabilities", "private", 1),
    ("five labels", "private", 0),
]


@pytest.mark.filterwarnings("ignore:.*mostly noise")
@loop_over(("kind", "way", "place"), PLANTED)
def test_the_audit_finds_a_share_that_costs_more_than_is_said(kind, way, place):
    with mock.patch.object(page_plan, "query_of_page", plan_with(place, Fraction(11, 10))):
        assert any(loss > EPSILON for loss in losses(kind, way, PAIRS))


@pytest.mark.gate
@pytest.mark.filterwarnings("ignore:.*mostly noise")
@loop_over(("kind", "way"), AUDITED)
def test_one_spend_pays_for_the_page(kind, way):
    """The parts of epsilon add up to it exactly, whatever it is; the budget says under which relation."""
    y_true, options, names = arguments(kind, way, records(kind, np.random.default_rng(0), 30))
    split = dict(zip(names, np.resize([0.3, 1 / 3, 7, 1e-3], len(names)), strict=True))
    options |= {"epsilon": Fraction(1, 7), "accountant": (budget := dp.PrivacyAccountant(1)), "split": split}
    page = dp.private_evaluate(y_true, **options)
    assert [part.name for part in page.plan.parts] == [*names]
    assert sum(part.epsilon for part in page.plan.parts) == Fraction(1, 7)
    (spend,) = budget.history
    assert budget.spent == spend.epsilon == 1 / 7
    within = "replace_one_within_groups" if way == "public" else "replace_one"
    assert spend.neighboring == WAYS[way].get("neighboring", within)


@loop_over(
    ("record", "kind", "options"),
    [
        ((1, 0.3), "y_score", {"labels": [0, 1]}),
        ((1, 2), "y_pred", {"labels": [0, 1, 2]}),
        ((1, [0.2, 0.3, 0.5]), "y_proba", {"labels": [0, 1, 2]}),
    ],
)
def test_a_page_of_lists_asks_the_same_without_a_record(record, kind, options):
    """An empty list has no columns, so that these would tell whether there are records."""

    def page(y, predictions, **more):
        return dp.private_evaluate(y, **{kind: predictions}, **options, **more)

    for n, other in ((1, 0), (2, 1)):
        some, fewer = ([[one] * size for one in record] for size in (n, other))
        loss = release_loss(page, some, fewer, epsilon=1.0, neighboring="add_or_remove_one")
        assert loss <= 1.0 + 1e-9
