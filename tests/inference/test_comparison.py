"""What a private comparison of two models releases, for what losses, and how it is refused."""

import json

import numpy as np
import pytest
from cases import CASES, valid
from helpers import MAX, kind_of, loop_over, result_as_if

import dp_metrics as dp
from dp_metrics.inference.comparison import (
    COMPARABLE,
    Comparison,
    comparison_query,
    paired_losses,
    private_compare,
)
from dp_metrics.inputs.arrays import ArgumentShape, Records, Shape
from dp_metrics.inputs.options import Relation
from dp_metrics.metrics import METRICS

NO_NOISE = 1e6  # epsilon at which noise is 0, but for a probability below 1e-200000


COMPARED = {key: case for key, case in CASES.items() if case.row in COMPARABLE.values()}


@pytest.mark.gate
@loop_over("key", COMPARED)
def test_every_loss_is_that_of_its_metric(key):
    """Each record alone is given to scikit-learn; of means the difference is clipped."""
    case = COMPARED[key]
    y, a = valid(case, 100)
    b = valid(case, 100, seed=1)[1]
    public = {**case.options, **case.bounded, "loss": case.function, "epsilon": NO_NOISE}
    public |= {"labels": range(3)} if key == "log loss, 3 labels" else {}
    cap = case.limit if "max_loss" in public else np.inf
    losses = [[case.exact_function(y[[i]], p[[i]]) for i in range(100)] for p in (a, b)]
    wins = private_compare(y, a, b, **public)
    means = private_compare(y, a, b, max_difference=0.25, **public)
    (difference,) = np.diff(np.minimum(losses, cap), axis=0)
    is_decided = abs(difference) > 1e-12
    assert wins.noisy_decided == is_decided.sum() > 0
    assert wins.estimate == pytest.approx(np.sign(difference)[is_decided].sum() / 100)
    assert means.estimate == pytest.approx(np.clip(difference, -0.25, 0.25).mean(), abs=2e-6)


def test_losses_are_compared_within_their_cap():
    a, b = np.linspace(0, 1, 20), np.linspace(1, 0, 20) ** 0.5
    capped = {"loss": "mean_absolute_percentage_error", "max_loss": 0.1}
    found = private_compare(np.ones(20), 1 + a, 1 + b, **capped, epsilon=NO_NOISE)
    of_a, of_b = (np.minimum(x, 0.1) for x in (a, b))
    assert found.noisy_difference == np.sum(of_a < of_b) - np.sum(of_a > of_b)
    assert found.noisy_decided == np.sum(of_a != of_b) < 20


HOSTILE = {
    "one record": ([1.0], [1.0], [0.0]),
    "ties": ([1.0] * 9, [2.0] * 9, [2.0] * 9),
    "overflow": ([-MAX, MAX, 0.0], [MAX, -MAX, 0.0], [0.0, MAX, 5e-324]),
    "tiny": ([0.0, 0.0], [5e-324, 1e-310], [0.0, 5e-324]),
    "all won": ([0.0] * 40, [0.0] * 40, [1.0] * 40),
}


@loop_over("max_difference", [None, 5e-324, 1.0, MAX])
@loop_over("epsilon", [5e-324, 1e-300, 1e-5, 1.0, 1e6, MAX / 4])
@loop_over("name", HOSTILE)
def test_nothing_fails_or_warns_after_the_spend(name, epsilon, max_difference):
    data, accountant = HOSTILE[name], dp.PrivacyAccountant(MAX)
    with np.errstate(all="raise"):
        for loss in ("mae", "mse"):
            found = private_compare(
                *data, loss=loss, epsilon=epsilon, max_difference=max_difference, accountant=accountant
            )
            assert -1 <= found.estimate / (max_difference or 1.0) <= 1
            assert found.lower <= found.upper
            assert json.loads(found.to_json())["n"] == len(data[0])
            assert str(found)
            if max_difference is None:
                lower, upper = found.noise_interval()
                assert -1 <= lower <= upper <= 1
    assert len(accountant.history) == 2


def test_blocks_of_records_are_compared_one_by_one():
    n = 40_000
    y = np.arange(n) % 2
    sure, both = np.where(y == 1, 0.75, 0.25), np.full((n, 2), 0.5)
    sure[:10_000] = 1 - sure[:10_000]
    found = private_compare(y, sure, both, loss="brier_score", epsilon=NO_NOISE)
    assert (found.noisy_difference, found.noisy_decided) == (20_000, n)
    both[:10_000] = np.column_stack([y, 1 - y])[:10_000]  # where A is bad, B is worse
    found = private_compare(y, sure, both, loss="brier_score", epsilon=NO_NOISE)
    assert (found.noisy_difference, found.noisy_decided) == (n, n)


def test_no_difference_of_losses_is_beyond_the_cap():
    of_two_types = np.array([0.5], dtype=np.float32), np.array([0.5])
    for predictions, public, most in (
        (([1.0], [0.0]), {"loss": "mae", "bounds": (0, 2)}, 2.0),
        (([1.0], [0.0]), {"loss": "mae"}, 50.0),
        (of_two_types, {"loss": "log_loss"}, 36.04),  # 15.94 is the cap of float32
    ):
        found = private_compare([0.0], *predictions, max_difference=50, epsilon=1.0, **public)
        assert found.max_difference == pytest.approx(most, abs=0.01)


def result(**values):
    known = {
        "statistic": "wins", "estimate": 1 / 15, "lower": 0.00145, "upper": 0.13, "p_value": 0.0302,
        "confidence": 0.95, "epsilon": 1.0, "n": 300, "loss": "zero_one_loss",
        "noisy_difference": 20, "noisy_decided": 60,
    }  # fmt: skip
    return Comparison(**{**known, **values})


MEANS = {
    "statistic": "mean difference", "p_value": None, "loss": "mae", "max_difference": 2.0,
    "noisy_difference": None, "noisy_decided": None,
}  # fmt: skip


@loop_over(
    ("values", "better", "words"),
    [
        ({}, "A", "A is better on more records than B (300 records, p = 0.0302; at this epsilon wins on all"),
        ({"estimate": -0.1}, "B", "B is better on more records than A ("),
        ({"p_value": 0.0502}, None, "No difference shown between A and B ("),
        ({"lower": -0.01}, "A", "A is better on"),  # the p-value decides
        ({"p_value": 0.06, "confidence": 0.9}, "A", "A is better on"),
        ({"loss": "mae"}, "A", "A is better on"),
        ({**MEANS, "lower": 0.01}, "A", "With clipped differences A has the lower mean loss (300 records)"),
        ({**MEANS, "lower": -0.2, "upper": -0.01}, "B", "With clipped differences B has the lower mean loss"),
        ({**MEANS, "lower": -0.01}, None, "No difference shown between A and B ("),
    ],
)
def test_a_comparison_says_who_is_better(values, better, words):
    found = result(**values)
    assert found.better == better
    assert str(found).startswith(words)
    if found.statistic == "wins":  # which are no means but of zero-one losses
        assert ("is the accuracy of A less that of B" in str(found)) == (found.loss == "zero_one_loss")
        assert ("It is no mean loss" in str(found)) == (found.loss == "mae")
    assert Comparison(**json.loads(found.to_json())) == Comparison(**found.to_dict()) == found


@loop_over(("n", "epsilon", "least"), [(300, 1.0, 0.001), (20, 0.1, 0.388), (2, 1.0, 0.583)])
def test_the_least_p_value_is_that_of_a_model_that_won_everywhere(n, epsilon, least):
    found = result(n=n, epsilon=epsilon, p_value=1.0)
    assert found.least_p_value == pytest.approx(least, rel=1e-2)
    assert f"at this epsilon wins on all give about {least})" in str(found)
    assert result(**MEANS).least_p_value is None


def test_limits_of_the_noise_of_wins():
    """Noise of rate 1/2 is beyond 6 with probability 3.8 %, beyond 5 with 6.2 %."""
    assert tuple(result().noise_interval()) == (14 / 300, 26 / 300)
    assert tuple(result().noise_interval(0.93)) == (15 / 300, 25 / 300)
    for found, sure, words in ((result(), 1, "confidence"), (result(**MEANS), 0.9, "Only wins have limits")):
        with pytest.raises(ValueError, match=words):
            found.noise_interval(sure)


@loop_over(
    ("counts", "n", "epsilon", "better", "is_clear"),
    [
        ((20, 60), 300, 1.0, "A", True),  # the reference whose p is 0.03
        ((0, 60), 300, 1.0, None, False),
        ((19, 60), 300, 1.0, "A", False),
        ((9, 20), 20, 30.0, None, True),  # there are no ties, and n has another parity
    ],
)
def test_a_p_value_and_an_interval_that_disagree_are_explained(counts, n, epsilon, better, is_clear):
    shape, ties = Records.of(np.ones((3, n)), relation=Relation.REPLACE_ONE)
    query = comparison_query("zero_one", shape, {})
    found = result_as_if(query, query.read(ties), [counts], epsilon).value
    assert (found.better, found.lower > 0) == (better, is_clear)
    assert ("p-value decides" in found.note) == ((better is not None) != is_clear) == bool(found.note)


def test_the_catalogue_says_which_metrics_are_means_of_a_loss():
    """A metric that is new and not plain must be refused by name, as the root is."""
    of_means = {name for name, row in METRICS.items() if kind_of(row) == "mean"}
    assert of_means - {row.name for row in COMPARABLE.values()} == {
        "private_rmse", "private_accuracy_score", "private_top_k_accuracy_score", "private_mean",
        "private_mean_loss",
    }  # fmt: skip
    shape = Shape((ArgumentShape(),) * 3)
    for name, row in COMPARABLE.items():
        for loss in (name, row.name, name.removesuffix("_loss"), METRICS[row.name].function):
            assert paired_losses(loss, shape, {})[0] == name
