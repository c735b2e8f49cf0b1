"""The choice among fitted models: its exact law between all neighbours, and what is refused."""

import itertools
import json
import math
import warnings
from collections import Counter
from fractions import Fraction
from functools import cache, partial

import numpy as np
import pytest
from helpers import new_session
from scipy.stats import chisquare
from sklearn.linear_model import LinearRegression, LogisticRegression

from dp_metrics import (
    PrivacyAccountant,
    PrivacyBudgetError,
    private_accuracy_score,
    private_best,
    private_brier_score_loss,
    private_log_loss,
    private_mae,
)
from dp_metrics._random import SeededEntropy
from dp_metrics.exceptions import LargeEpsilonWarning, SeededReleaseWarning, StoredReleaseWarning
from dp_metrics.inputs.shape import Records
from dp_metrics.mechanisms import Geometric
from dp_metrics.metrics import row_of
from dp_metrics.model_selection.best import best_plan

REPLACE, ADD = "replace_one", "add_or_remove_one"
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


def exponents_of(metric, records, epsilon, private_n=False, models=2, **options):
    """Return what is drawn from for records, each a truth and a prediction of each model."""
    table = np.array(records, dtype=float).reshape(len(records), models + 1)
    data = list(table.T.astype(int)) if metric == "accuracy" else [table[:, 0].astype(int), *table[:, 1:].T]
    row, _ = row_of(metric)
    shape, private = Records.of(data, private_n=private_n)
    plan = best_plan(row, shape, [{**row.options, **options}] * models, private_n=private_n)
    (known,) = plan.read(private).parts
    return known.prepare(Geometric(), Fraction(epsilon), private_n=private_n).exponents


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


def largest_ratio(metric, domain, n, tail, relation, charged=None, **options):
    """Return the largest ratio of probabilities between neighbours, for exp(-epsilon / 8) = tail."""

    @cache
    def of(records):
        units = [PARTS * x for x in exponents_of(metric, records, 1, (charged or relation) == ADD, **options)]
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


@pytest.mark.parametrize("name", ["accuracy", "clipped errors"])
def test_a_replaced_record_needs_half_the_rate(name):
    metric, domain, n, options = CASES[name]
    tail = Fraction(4, 5)
    assert largest_ratio(metric, domain, n, tail, REPLACE, charged=ADD, **options) > tail**-PARTS


def test_the_law_over_all_orders_is_that_of_exponential_noise():
    # the integral of heads_i prod (1 - t heads_j) over t, as the docstring says, term by term
    heads = [Fraction(1, 3), Fraction(1), Fraction(4, 5), Fraction(1, 7)]
    law = law_of(heads)
    assert sum(law) == 1
    for place, own in enumerate(heads):
        others = heads[:place] + heads[place + 1 :]
        terms = [
            Fraction((-1) ** size, size + 1) * math.prod(some)
            for size in range(len(heads))
            for some in itertools.combinations(others, size)
        ]
        assert law[place] == own * sum(terms)


def test_a_call_draws_from_that_law():
    # one false alarm in 10^4 for another seed
    generator, draws = np.random.default_rng(1), 3000
    true, data = Y[:20], [p[:20] for p in LABELS]
    with pytest.warns(SeededReleaseWarning):
        found = Counter(
            private_best(true, data, metric="accuracy", epsilon=0.1, random_state=generator)
            for _ in range(draws)
        )
    expected = law("accuracy", np.stack([true, *data], axis=1), "0.1", models=3)
    assert chisquare([found[k] for k in range(3)], draws * np.array(expected)).pvalue > 1e-4


@pytest.mark.parametrize("neighboring", [REPLACE, ADD])
@pytest.mark.parametrize(
    ("metric", "data", "options"),
    [
        ("accuracy", LABELS, {}),
        (private_accuracy_score, [p.astype(str) for p in LABELS], {}),
        ("neg_log_loss", SCORES, {"max_loss": 5}),
        (partial(private_mae, bounds=(0, 1)), SCORES, {}),
        ("rmse", SCORES, {"bounds": (0, 1)}),
        (private_brier_score_loss, SCORES, {}),
        ("mean_poisson_deviance", [one + 0.5 for one in SCORES], {"max_loss": 3}),
        ("mean_squared_log_error", SCORES, {"bounds": (0, 1)}),
        ("mae", [np.stack([one, one], axis=1) for one in SCORES], {"bounds": (0, 1)}),
        ("top_k_accuracy", [np.eye(2)[labels] for labels in LABELS], {"k": 1}),
    ],
)
def test_the_best_is_chosen_where_it_is_clear(metric, data, options, neighboring):
    true = Y.astype(str) if data[0].dtype.kind == "U" else Y
    if metric == "mean_poisson_deviance":
        true = Y + 0.5
    if metric == "mae":
        true = np.stack([Y, Y], axis=1)
    ask = partial(private_best, metric=metric, epsilon=50, neighboring=neighboring, **options)
    for order in itertools.permutations(range(3)):
        assert order[ask(true, [data[place] for place in order])] == 1


def test_areas_are_compared_by_their_wrong_pairs():
    assert private_best(Y, SCORES, metric="roc_auc", epsilon=50) == 1
    assert private_best(Y, [1 - one for one in SCORES], metric="roc_auc", epsilon=50) == 0


def test_models_are_asked_for_what_the_metric_judges():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 2))
    y = np.where(X[:, 0] > 0, "yes", "no")
    models = [LogisticRegression().fit(X[:, [k, k]], y) for k in (1, 0)]
    models = [type("First", (), {
        "classes_": one.classes_, "predict": lambda self, X, one=one, k=k: one.predict(X[:, [k, k]]),
        "predict_proba": lambda self, X, one=one, k=k: one.predict_proba(X[:, [k, k]]),
    })() for one, k in zip(models, (1, 0), strict=True)]  # fmt: skip
    ask = partial(private_best, y, models, X=X, epsilon=50)
    assert {ask(metric=name) for name in ("accuracy", "log_loss", "brier", "roc_auc")} == {1}
    assert ask(metric="brier", neighboring=ADD) == 1
    empty = private_best(y[:0], models, X=X[:0], metric="log_loss", epsilon=1, neighboring=ADD)
    assert empty in (0, 1)
    target = X[:, 0]
    fitted = [LinearRegression().fit(X, X[:, k]) for k in (0, 1)]
    assert private_best(target, fitted, X=X, metric="mse", bounds=(-4, 4), epsilon=50) == 0


def test_a_choice_is_an_index():
    names = ["a", "b", "c"]
    choice = private_best(Y, LABELS, metric="accuracy", epsilon=50, neighboring=ADD)
    assert (names[choice], np.array(names)[choice], int(choice), hash(choice)) == ("b", "b", 1, hash(1))
    assert choice == 1 == choice
    assert choice == private_best(Y, LABELS, metric="brier", epsilon=50)
    assert choice != 0 != choice
    assert json.loads(choice.to_json()) == choice.to_dict() == {
        "index": 1, "candidates": 3, "metric": "private_accuracy_score", "epsilon": 50.0, "neighboring": ADD
    }  # fmt: skip
    assert str(choice) == "Candidate 1 (from 0) of 3, chosen by private_accuracy_score at epsilon 50"
    assert str(choice) in choice._repr_html_()


def test_one_model_is_the_best_and_ties_are_fair():
    budget = PrivacyAccountant(2)
    assert private_best(Y, LABELS[:1], metric="accuracy", epsilon=1, accountant=budget) == 0
    assert budget.spent == 1
    assert private_best([], [[], []], metric="accuracy", epsilon=1, neighboring=ADD) in (0, 1)
    assert law("accuracy", [(1, 1, 1)], 1) == law("roc_auc", [(1, 0.5, 0.1)], 1) == [0.5, 0.5]
    assert law("accuracy", [], 1, private_n=True) == [0.5, 0.5]


def test_caps_of_several_types_count_as_the_largest():
    single = [SCORES[0].astype(np.float32), SCORES[1]]
    row, _ = row_of(private_log_loss)
    shape, _ = Records.of((Y, *single), private_n=False)
    (part,) = best_plan(row, shape, [row.options] * 2, private_n=False).parts
    (wide,) = best_plan(
        row, Records.of((Y, *SCORES), private_n=False)[0], [row.options] * 3, private_n=False
    ).parts
    assert part.step == wide.step


def test_the_budget_pays_before_anything_is_drawn():
    budget = PrivacyAccountant(1.5)

    class Watched:
        asked = 0

        def words(self, size):
            assert budget.spent == 1
            self.asked += 1
            return SeededEntropy(1).words(size)

    private_best(Y, LABELS, metric="accuracy", epsilon=1, accountant=budget, random_state=Watched())
    (spend,) = budget.history
    assert (spend.mechanism, spend.neighboring) == ("permute-and-flip", REPLACE)
    watched = Watched()
    with pytest.raises(PrivacyBudgetError):
        private_best(Y, LABELS, metric="accuracy", epsilon=1, accountant=budget, random_state=watched)
    assert not watched.asked


def test_a_name_that_was_given_returns_what_was_chosen(tmp_path):
    path = tmp_path / "budget.sqlite"
    ask = partial(private_best, epsilon=1, spend_name="choice")
    first = ask(Y, LABELS, metric="accuracy", accountant=PrivacyAccountant(3, path))
    new_session()
    budget = PrivacyAccountant(3, path)
    ask = partial(ask, accountant=budget)
    with pytest.warns(StoredReleaseWarning):
        assert ask([None] * len(Y), [None] * 3, metric=private_accuracy_score) == first
    assert budget.spent == 1
    for other in ({"metric": "recall"}, {"metric": "accuracy", "epsilon": 2}):
        with pytest.raises(ValueError, match="another question"):
            ask(Y, LABELS, **other)
    with pytest.raises(ValueError, match="another question"):
        ask(Y, LABELS[:2], metric="accuracy")


@pytest.mark.parametrize("neighboring", [REPLACE, ADD])
@pytest.mark.parametrize(("metric", "width"), [("mse", 1e-200), ("rmse", 1e-162)])
def test_a_limit_too_small_for_a_float_makes_all_models_alike(metric, width, neighboring):
    budget = PrivacyAccountant(100)
    ask = partial(private_best, metric=metric, bounds=(0, width), neighboring=neighboring, accountant=budget)
    true = np.array([0.0, width])
    found = {int(ask(true, [true[::-1], true], epsilon=1)) for _ in range(40)}
    assert found == {0, 1}  # only one of them by chance: once in 10^11


@pytest.mark.parametrize("epsilon", [1e-300, 1e9])
def test_extreme_settings_raise_nothing_after_the_spend(epsilon):
    ask = partial(private_best, Y, epsilon=epsilon)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LargeEpsilonWarning)
        found = {
            ask(LABELS, metric="accuracy"),
            ask([Y * 1e300, Y - 1e-300], metric="mae", bounds=(-1e300, 1e300)),
        }
    assert found <= {0, 1, 2}


class OfColumns:
    """Takes the columns of its records by their names."""

    classes_ = np.array([0, 1])

    def predict(self, X):
        return X["a"]


def test_models_that_take_columns_by_name_have_a_stored_choice_too(tmp_path):
    y, X = np.arange(40) % 2, dict.fromkeys("abc", np.arange(40) % 2)
    ask = partial(private_best, y, [OfColumns()] * 2, X=X, metric="accuracy", epsilon=1.0, spend_name="x")
    chosen = ask(accountant=PrivacyAccountant(1, tmp_path / "budget"))
    new_session()
    with pytest.warns(StoredReleaseWarning):
        assert ask(accountant=PrivacyAccountant(1, tmp_path / "budget")).index == chosen.index
