"""Epsilons that use a budget up exactly, by every door; and what sets of people that share nobody cost."""

import itertools
import math
from fractions import Fraction
from functools import cache, partial
from pathlib import Path

import numpy as np
import pytest
from cases import KINDS
from doors import RELEASES, release_of
from helpers import list_table, loop_over

import dp_metrics as dp
from dp_metrics.analysis import auditing
from dp_metrics.inputs.options import exact_epsilon

OTHER_RELATION = {"neighboring": "add_or_remove_one"}


# Exact shares


@loop_over("door", [*sorted(KINDS), *RELEASES])
def test_every_door_takes_exact_shares(door):
    epsilon = Fraction(7, 30)  # which is no decimal: what is rounded does not fit, or leaves a little
    release, budget = release_of(door), dp.PrivacyAccountant(epsilon)
    release(epsilon=epsilon, accountant=budget)
    assert budget.remaining == 0.0
    assert [spend.epsilon for spend in budget.history] == [float(epsilon)]
    with pytest.raises(dp.exceptions.PrivacyBudgetError):
        release(epsilon=epsilon, accountant=budget)


def test_whole_numbers_of_numpy_make_exact_shares_that_do_not_overflow():
    exact = exact_epsilon(np.int8(3))
    assert exact == 3
    assert {type(exact.numerator), type(exact.denominator)} == {int}
    assert exact / 1000 == Fraction(3, 1000)


# Is it private? Exact losses on all neighbours of a tiny domain

RECORDS = [(0, 0), (0, 1)]  # label and prediction: right and wrong
EPSILON = 0.5


@cache
def loss(part_a, part_b, **options):
    """The exact loss of what is released about one set of people in two data sets."""
    data = (([label for label, _ in part], [guess for _, guess in part]) for part in (part_a, part_b))
    options = {"epsilon": EPSILON, "mechanism": "geometric", **options}
    return auditing.release_loss(dp.private_accuracy_score, *data, **options)


def test_two_sets_together_lose_what_one_loses_unless_a_record_is_in_both():
    data_sets = [*itertools.product(itertools.product(RECORDS, repeat=2), repeat=2)]
    found = {}
    for a, b in itertools.combinations(data_sets, 2):
        changes = tuple(sum(map(tuple.__ne__, part, other)) for part, other in zip(a, b, strict=True))
        found.setdefault(changes, []).append(sum(loss(*parts) for parts in zip(a, b, strict=True)))
    in_one = found[1, 0] + found[0, 1]
    assert len(in_one) == 32
    assert max(in_one) == min(in_one) == pytest.approx(EPSILON, rel=1e-12)  # the dearest set, not the sum
    assert max(found[1, 1]) == pytest.approx(2 * EPSILON, rel=1e-12)  # a person who returns


def test_a_record_that_moves_gives_itself_away_or_costs_both_sets_where_their_sizes_are_private():
    """So sets must never follow from a private column where sizes are public: no epsilon would cover it."""
    first, second = ((0, 0), (0, 1)), ((0, 0),)
    assert loss(first, first[:1]) + loss(second, (*second, first[1])) == math.inf
    missing, moved = [], []
    for record, a, b in itertools.product(RECORDS, repeat=3):
        removed, added = (loss((one, record), (one,), **OTHER_RELATION) for one in (a, b))
        missing += [removed, added]
        moved.append(removed + loss((b,), (b, record), **OTHER_RELATION))
    assert max(missing) <= EPSILON * (1 + 1e-12)
    assert EPSILON < max(moved) <= 2 * EPSILON * (1 + 1e-12)


# The page of the documentation


@pytest.mark.slow
def test_the_errors_of_the_quarterly_report_are_those_to_expect():
    header, *rows = list_table(Path(__file__).parents[2] / "docs" / "measured" / "quarterly.inc")
    sizes = [int(cell.removeprefix("n = ").replace(",", "")) for cell in header[2:]]
    rng = np.random.default_rng(0)
    ill = rng.random(3000) < 0.2
    guess = np.clip(np.where(ill, 0.7, 0.15) + rng.normal(0, 0.2, 3000), 0.01, 0.99)
    metrics = {"accuracy": guess > 0.5, "recall": guess > 0.5, "log loss": guess}
    assert [row[:2] for row in rows] == [[name, epsilon] for name in metrics for epsilon in ("2/3", "1/18")]
    for name, epsilon, *cells in rows:
        plan = partial(
            dp.plan_release, name.replace(" ", "_"), guess=(ill, metrics[name]), epsilon=Fraction(epsilon)
        )
        expected = [plan(n=n).error for n in sizes]
        assert [float(cell) for cell in cells] == pytest.approx(expected, abs=0.0001, rel=0.06)
