"""The choice among fitted models: its exact law between all neighbours, and what is refused."""

import itertools
import json
import math
from collections import Counter
from fractions import Fraction
from functools import cache, partial

import numpy as np
import pytest
from cases import ADD_OR_REMOVE as ADD, REPLACE
from helpers import NoEntropy, known_of, later, loop_over, new_session
from scipy.stats import chisquare

import dp_metrics as dp
from dp_metrics.inputs.arrays import Records
from dp_metrics.inputs.options import Relation
from dp_metrics.metrics import row_of
from dp_metrics.model_selection.best import best_query

Y = np.arange(300) % 2
WRONG = [np.arange(300) < 50 * k for k in (3, 1, 2)]
LABELS = [Y ^ wrong for wrong in WRONG]
SCORES = [np.where(wrong, 0.5, Y) for wrong in WRONG]


def law_of(heads):
    """Return the law of permute-and-flip with these coins, over all orders: exact if the coins are."""
    law = [0] * len(heads)
    orders = list(itertools.permutations(range(len(heads))))
    for order in orders:
        left = 1
        for place in order:
            law[place] += left * heads[place] / len(orders)
            left *= 1 - heads[place]
    return law


def exponents_of(metric, records, epsilon, relation=Relation.REPLACE_ONE, models=2, **options):
    """Return what is drawn from for records, each a truth and a prediction of each model."""
    table = np.array(records, dtype=float).reshape(len(records), models + 1)
    data = list(table.T.astype(int)) if metric == "accuracy" else [table[:, 0].astype(int), *table[:, 1:].T]
    row, _ = row_of(metric)
    shape, private = Records.of(data, relation=relation)
    query = best_query(row, shape, {**row.options, **options})
    (noise,), (stats,) = known_of(query, query.read(private), epsilon, relation)
    return noise.prepare(stats).args[0]


def law(*args, **kwargs):
    return law_of([math.exp(-x) for x in exponents_of(*args, **kwargs)])


# All exponents below are whole multiples of epsilon / 8. With a rational number for exp(-epsilon / 8) the law
# and its ratios are rational: no rounding.
PARTS = 8
LABELS_OF_TWO = list(itertools.product((0, 1), repeat=3))
CASES = {
    "accuracy": ("accuracy", LABELS_OF_TWO, 3, {}),
    "three models": ("accuracy", [(0, *wrong) for wrong in LABELS_OF_TWO], 3, {"models": 3}),
    "clipped errors": (
        "mae",
        [(0, a, b) for a in (0, 0.25, 1, 7) for b in (0, 0.25, 1, 7)],
        2,
        {"bounds": (0, 1)},
    ),
    "squares": ("brier", [(y, a, b) for y in (0, 1) for a in (0, 0.5, 1) for b in (0, 0.5, 1)], 2, {}),
    "area": ("roc_auc", list(itertools.product((0, 1), (0, 1, 2), (0, 1, 2))), 3, {}),
}


def largest_ratio(metric, domain, n, tail, relation, **options):
    """Return the largest ratio of probabilities between neighbours, for exp(-epsilon / 8) = tail."""

    @cache
    def of(records):
        units = [PARTS * x for x in exponents_of(metric, records, 1, Relation(relation), **options)]
        assert all(unit.denominator == 1 for unit in units)
        return law_of([tail ** int(unit) for unit in units])

    worst = 0
    for others in itertools.combinations_with_replacement(domain, n - 1):
        several = [of(tuple(sorted((*others, one)))) for one in domain]
        pairs = itertools.permutations(several, 2)
        if relation == ADD:
            pairs = [pair for one in several for pair in ((of(others), one), (one, of(others)))]
        worst = max(worst, *(p / q for here, there in pairs for p, q in zip(here, there, strict=True)))
    return worst


@pytest.mark.gate
@pytest.mark.parametrize(
    ("name", "relation"), [(name, r) for name in CASES for r in (REPLACE, ADD) if (name, r) != ("area", ADD)]
)
@pytest.mark.parametrize("tail", [Fraction(30, 31), Fraction(4, 5)])  # epsilon 0.26 and 1.8
def test_no_neighbour_changes_a_probability_by_more_than_exp_epsilon(name, relation, tail):
    metric, domain, n, options = CASES[name]
    worst = largest_ratio(metric, domain, n, tail, relation, **options)
    assert worst <= tail**-PARTS
    # an area of three records has no pair of neighbours as bad as its proof allows
    assert worst > tail ** -(PARTS // 3 if name == "area" else PARTS - 1)


@pytest.mark.gate
def test_a_call_draws_from_that_law():
    # one false alarm in 10^4 for another seed
    generator, draws = np.random.default_rng(1), 3000
    true, data = Y[:20], [p[:20] for p in LABELS]
    with pytest.warns(dp.exceptions.SeededReleaseWarning):
        found = Counter(
            dp.private_best(true, data, metric="accuracy", epsilon=0.1, random_state=generator)
            for _ in range(draws)
        )
    expected = law("accuracy", np.stack([true, *data], axis=1), "0.1", models=3)
    assert chisquare([found[k] for k in range(3)], draws * np.array(expected)).pvalue > 1e-4


CLEAR = [
    ("accuracy", Y, LABELS, {}),
    (dp.private_accuracy_score, Y.astype(str), [p.astype(str) for p in LABELS], {}),
    ("neg_log_loss", Y, SCORES, {"max_loss": 5}),
    (partial(dp.private_mae, bounds=(0, 1)), Y, SCORES, {}),
    ("rmse", Y, SCORES, {"bounds": (0, 1)}),
    ("brier", Y, SCORES, {}),
    ("mean_poisson_deviance", Y + 0.5, [one + 0.5 for one in SCORES], {"max_loss": 3}),
    ("mae", np.stack([Y, Y], axis=1), [np.stack([one, one], axis=1) for one in SCORES], {"bounds": (0, 1)}),
    ("top_k_accuracy", Y, [np.eye(2)[labels] for labels in LABELS], {"k": 1}),
    ("roc_auc", Y, SCORES, {}),
]


@loop_over(("metric", "true", "data", "options"), CLEAR)
def test_the_best_is_chosen_where_it_is_clear(metric, true, data, options):
    for order, relation in itertools.product(itertools.permutations(range(3)), (REPLACE, ADD)):
        if (metric, relation) != ("roc_auc", ADD):
            ask = partial(dp.private_best, metric=metric, epsilon=50, neighboring=relation, **options)
            assert order[ask(true, [data[place] for place in order])] == 1


def test_a_choice_is_an_index():
    names = ["a", "b", "c"]
    choice = dp.private_best(Y, LABELS, metric="accuracy", epsilon=50, neighboring=ADD)
    assert (names[choice], np.array(names)[choice], int(choice), hash(choice)) == ("b", "b", 1, hash(1))
    assert choice == 1 == choice
    assert choice == dp.private_best(Y, LABELS, metric="brier", epsilon=50)
    assert choice != 0 != choice
    assert json.loads(choice.to_json()) == choice.to_dict() == {
        "index": 1, "candidates": 3, "metric": "private_accuracy_score", "epsilon": 50.0, "neighboring": ADD
    }  # fmt: skip


def test_one_model_is_the_best_and_ties_are_fair():
    budget = dp.PrivacyAccountant(1.5)
    assert dp.private_best(Y, LABELS[:1], metric="accuracy", epsilon=1, accountant=budget) == 0
    (spend,) = budget.history
    assert (spend.epsilon, spend.mechanism, spend.neighboring) == (1, "permute-and-flip", REPLACE)
    with pytest.raises(dp.PrivacyBudgetError):
        dp.private_best(Y, LABELS, metric="accuracy", epsilon=1, accountant=budget, random_state=NoEntropy())
    assert dp.private_best([], [[], []], metric="accuracy", epsilon=1, neighboring=ADD) in (0, 1)
    assert law("accuracy", [(1, 1, 1)], 1) == law("roc_auc", [(1, 0.5, 0.1)], 1) == [0.5, 0.5]
    assert law("accuracy", [], 1, relation=Relation.ADD_OR_REMOVE_ONE) == [0.5, 0.5]


def test_caps_of_several_types_count_as_the_largest():
    row, _ = row_of(dp.private_log_loss)
    single = [SCORES[0].astype(np.float32), SCORES[1]]
    steps = []
    for data in (single, SCORES):
        shape, _ = Records.of((Y, *data), relation=Relation.REPLACE_ONE)
        steps.append(best_query(row, shape, row.options).quantities[0].step)
    assert steps[0] == steps[1]


def test_a_name_that_was_given_returns_what_was_chosen(tmp_path):
    path, ask = tmp_path / "budget.sqlite", partial(dp.private_best, epsilon=1, spend_name="choice")
    # the length of records by the names of their columns is not their number
    columns = dict.fromkeys("abcd", Y)
    of_columns = type("OfColumns", (), {"classes_": [0, 1], "predict": lambda self, X: X["a"]})
    models, budget = [of_columns()] * 3, dp.PrivacyAccountant(3, path)
    first = ask(Y, models, X=columns, metric="accuracy", accountant=budget)
    for again in ({"candidates": models, "X": columns}, {"candidates": [None] * 3}):
        budget = later(path, 3)
        with pytest.warns(dp.exceptions.StoredReleaseWarning):
            assert ask(Y, metric=dp.private_accuracy_score, accountant=budget, **again).index == first.index
    assert budget.spent == 1
    new_session()  # in which the name was not served yet
    budget = dp.PrivacyAccountant(3, path)
    for other in ({"metric": "recall"}, {"epsilon": 2}, {"candidates": LABELS[:2]}):
        with pytest.raises(ValueError, match="another question"):
            ask(Y, accountant=budget, **{"candidates": LABELS, "metric": "accuracy", **other})


def test_extreme_settings_raise_nothing_after_the_spend():
    for epsilon in (1e-300, 1e9):
        ask = partial(dp.private_best, Y, epsilon=epsilon)
        assert ask(LABELS, metric="accuracy") in (0, 1, 2)
        assert ask([Y * 1e300, Y - 1e-300], metric="mae", bounds=(-1e300, 1e300)) in (0, 1)


def test_the_truth_is_kept_once_for_all_candidates():
    row, _ = row_of("roc_auc")
    shape, records = Records.of((Y, *SCORES), relation=Relation.REPLACE_ONE)
    held = best_query(row, shape, row.options).checked(records).arrays
    assert len(held) == 6
    assert len({id(array) for array in held}) == 4
