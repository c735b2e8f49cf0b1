"""What a private comparison of two models releases, for what losses, and how it is refused."""

import itertools
import json
import warnings
from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from helpers import MAX, NoEntropy, kind_of, loop_over, seeded

import dp_metrics as dp
from dp_metrics._random import discrete_laplaces
from dp_metrics.analysis.auditing import plan_loss
from dp_metrics.inference.comparison import comparison_plan, private_compare
from dp_metrics.inference.paired_losses import COMPARABLE, paired_losses
from dp_metrics.inputs.losses import RecordLoss
from dp_metrics.inputs.shape import ArgumentShape, Records, Shape
from dp_metrics.metrics import FUNCTIONS, METRICS
from dp_metrics.release.release import Release

WIN, DEFEAT, TIE = (1, 0), (0, 1), (1, 1)  # what A and B predict where 1 is true
NO_NOISE = 1e6  # epsilon at which noise is 0, but for a probability below 1e-200000


def compared(records, **options):
    """Return plan and what is known of records of (prediction of A, prediction of B), where 1 is true."""
    shape, arrays = Records.of(columns(records), private_n=False)
    plan = win_plan(shape, **options)
    return plan, plan.read(arrays)


def columns(records):
    a, b = np.array(records, dtype=float).T
    return np.ones(len(records)), a, b


def win_plan(shape, **options):
    return comparison_plan(paired_losses("zero_one", shape, {}), shape.n, **options)


def counts(records):
    (query,) = compared(records)[1].parts
    return query.values


def neighbours(n):
    """Yield all data sets of n records that win, lose or tie, with all of their neighbours."""
    for records in itertools.product([WIN, DEFEAT, TIE], repeat=n):
        for place, other in itertools.product(range(n), [WIN, DEFEAT, TIE]):
            if records[place] != other:
                yield records, (*records[:place], other, *records[place + 1 :]), records[place], other


@loop_over("n", [1, 2, 3])
def test_the_exact_privacy_loss_is_epsilon_and_never_above(n):
    attained = set()
    for records, other, before, after in neighbours(n):
        difference, decided = np.subtract(counts(records), counts(other))
        moved = abs(int(difference)) + abs(int(decided))
        assert moved <= 2
        loss = plan_loss(win_plan, columns(records), columns(other), epsilon=0.7)
        assert loss == pytest.approx(0.7 * moved / 2, abs=1e-15)
        assert loss <= 0.7
        if loss == 0.7:
            attained.add((before, after))
    assert {(WIN, DEFEAT), (TIE, WIN), (DEFEAT, TIE)} <= attained


def exact_wins(a, b):
    return (np.sum(a < b) - np.sum(a > b)) / len(a), np.sum(a != b)


rng = np.random.default_rng(1)
N = 300
Y = rng.integers(0, 2, N)
A, B = rng.integers(1, 8, (2, N)) / 8
TARGET = rng.normal(size=(N, 2))
GUESS_A, GUESS_B = TARGET + rng.normal(size=(2, N, 2)) * 2
OF_THREE = rng.integers(0, 3, N)
PROBA_A, PROBA_B = rng.dirichlet(np.ones(3), (2, N))
of_true = np.arange(N), OF_THREE


def log_of(p, cap=36.0):
    return np.minimum(-np.log(np.where(Y == 1, p, 1 - p)), cap)


LOSSES = {
    "zero_one": ((Y, A > 0.4, B > 0.3), {}, lambda x: x != Y),
    "zero_one, strings": (
        (np.array(["no", "yes"])[Y], np.where(A > 0.4, "yes", "no"), np.where(B > 0.3, "yes", "no")),
        {"loss": "zero_one_loss"},
        lambda x: x != np.array(["no", "yes"])[Y],
    ),
    "mae": (
        (TARGET[:, 0], GUESS_A[:, 0], GUESS_B[:, 0]),
        {"loss": dp.private_mae},
        lambda x: abs(x - TARGET[:, 0]),
    ),
    "mse, bounds": (
        (TARGET[:, 0], GUESS_A[:, 0], GUESS_B[:, 0]),
        {"loss": "mean_squared_error", "bounds": (-1, 1)},
        lambda x: (np.clip(x, -1, 1) - np.clip(TARGET[:, 0], -1, 1)) ** 2,
    ),
    "mae, two outputs": (
        (TARGET, GUESS_A, GUESS_B),
        {"loss": "mae", "multioutput": [3.0, 1.0]},
        lambda x: abs(x - TARGET) @ [0.75, 0.25],
    ),
    "log_loss": ((Y, A, B), {"loss": "log_loss"}, log_of),
    "log_loss, cap": ((Y, A, B), {"loss": "private_log_loss", "max_loss": 0.9}, lambda p: log_of(p, 0.9)),
    "log_loss, three": (
        (np.array(["x", "y", "z"])[OF_THREE], PROBA_A, PROBA_B),
        {"loss": "log_loss", "labels": ["x", "y", "z"]},
        lambda p: -np.log(p[of_true]),
    ),
    "brier": ((Y, A, B), {"loss": "brier_score", "pos_label": 0}, lambda p: (p - (1 - Y)) ** 2),
    "pinball": (
        (TARGET[:, 0], GUESS_A[:, 0], GUESS_B[:, 0]),
        {"loss": "mean_pinball_loss", "alpha": 0.9},
        lambda x: np.maximum(0.9 * (TARGET[:, 0] - x), 0.1 * (x - TARGET[:, 0])),
    ),
    "percentage": (
        (A, B, 1 - B),
        {"loss": "mean_absolute_percentage_error", "max_loss": 2.0},
        lambda x: np.minimum(abs(x - A) / A, 2.0),
    ),
    "poisson": (
        (A, B, B + 0.5),
        {"loss": "mean_poisson_deviance"},
        lambda x: 2 * (A * np.log(A / x) - A + x),
    ),
    "own": (
        (A, B, 1 - B),
        {"loss": RecordLoss(lambda y, p: np.abs(y - p) ** 3, reads=(np.asarray,) * 2, cap=0.1)},
        lambda x: np.minimum(abs(x - A) ** 3, 0.1),
    ),
}


@loop_over("name", LOSSES)
def test_every_loss_is_that_of_its_metric(name):
    (y, a, b), options, loss = LOSSES[name]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = private_compare(y, a, b, epsilon=NO_NOISE, **options)
    losses = loss(np.asarray(a)), loss(np.asarray(b))
    estimate, decided = exact_wins(*losses)
    assert (found.estimate, found.noisy_decided) == (estimate, decided)
    assert found.estimate != 0
    if name == "log_loss, cap":
        assert decided < exact_wins(log_of(A), log_of(B))[1]  # losses beyond the cap are equal
    means = private_compare(y, a, b, epsilon=NO_NOISE, max_difference=0.25, **options)
    expected = np.clip(losses[1] * 1.0 - losses[0] * 1.0, -0.25, 0.25).mean()
    assert means.estimate == pytest.approx(expected, abs=2e-6)


THREE = Shape((ArgumentShape(),) * 3)


def test_the_names_of_losses():
    assert {*COMPARABLE} == {
        "mse", "mae", "mean_absolute_percentage_error", "mean_squared_log_error", "mean_pinball_loss",
        "mean_poisson_deviance", "log_loss", "brier_score_loss", "zero_one_loss",
    }  # fmt: skip
    for name, row in COMPARABLE.items():
        for loss in (name, row.name, name.removesuffix("_loss"), FUNCTIONS[row.name]):
            assert paired_losses(loss, THREE, {}).name == name
    assert paired_losses("mean_absolute_error", THREE, {}).name == "mae"
    assert paired_losses("brier", THREE, {}).name == "brier_score_loss"


def test_losses_of_one_s_own_are_compared_with_zeros():
    a, b = np.array([0.0, 1.0, 3.0, 1e300]), np.array([0.5, 1.0, 2.0, MAX])
    found = private_compare(np.zeros(4), a, b, loss="mae", epsilon=NO_NOISE)
    assert (found.noisy_difference, found.noisy_decided) == (1, 3)


def test_the_spend_comes_before_the_draw():
    accountant = dp.PrivacyAccountant(1.0)
    paid = partial(private_compare, [0, 1], [0, 1], [1, 1], accountant=accountant)
    for limit in (None, 1.0):  # what is refused for want of budget is a row of tests/test_refusals.py
        with pytest.raises(NoEntropy.Drawn):
            paid(epsilon=0.25, max_difference=limit, random_state=NoEntropy())
    paid(epsilon=0.25, spend_name="mine")
    with pytest.warns(dp.SeededReleaseWarning):
        paid(epsilon=0.25, random_state=0)
    names = [entry.spend_name for entry in accountant.history]
    assert names == ["private_compare", "private_compare", "mine", "private_compare"]
    assert accountant.remaining == 0


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
    with np.errstate(all="raise"), warnings.catch_warnings():
        warnings.simplefilter("error")
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


def test_any_noise_makes_a_result():
    (plan, known), huge = compared([WIN, TIE, DEFEAT]), 10**400
    for values in [(huge, -huge), (-huge, huge), (0, 0), (3, 3), (-7, 2)]:
        released = settings_of(1.0).result(plan, known, [values])
        assert -1 <= released.lower <= released.upper <= 1
        assert released.noisy_difference == values[0]
        json.loads(released.to_json())


def settings_of(epsilon):
    """Return the settings of a call that draws nothing."""
    return Release(
        "private_compare", epsilon=epsilon, mechanism=None, default=None, accountant=None,
        random_state=NoEntropy(), neighboring="replace_one",
    )  # fmt: skip


def test_the_noise_is_two_sided_geometric_with_half_of_epsilon():
    """Both noises are those of the exact sampler at rate epsilon / 2, in this order."""
    found = private_compare([1] * 9, [1] * 9, [1] * 4 + [0] * 5, epsilon=0.3, random_state=seeded(3))
    noise = discrete_laplaces(seeded(3), Fraction(3, 20), 2)
    assert (found.noisy_difference, found.noisy_decided) == (5 + noise[0], 5 + noise[1])
    assert any(noise)


def test_blocks_of_records_are_compared_one_by_one():
    n = 40_000
    y = np.arange(n) % 2
    sure, both = np.where(y == 1, 0.75, 0.25), np.full((n, 2), 0.5)
    sure[:10_000] = 1 - sure[:10_000]
    found = private_compare(y, sure, both, loss="brier_score", epsilon=NO_NOISE)
    assert (found.noisy_difference, found.noisy_decided) == (20_000, n)


def test_no_difference_of_losses_is_beyond_the_cap():
    found = private_compare([0.0], [1.0], [0.0], loss="mae", bounds=(0, 2), max_difference=50, epsilon=1.0)
    assert found.max_difference == 2.0
    found = private_compare([0.0], [1.0], [0.0], loss="mae", max_difference=50, epsilon=1.0)
    assert found.max_difference == 50.0
    several = np.array([0.5], dtype=np.float32), np.array([0.5])
    found = private_compare([1], *several, loss="log_loss", max_difference=50, epsilon=1.0)
    assert found.max_difference == pytest.approx(36.04, abs=0.01)  # 15.94 is the cap of float32


def result(**values):
    known = {
        "statistic": "wins", "estimate": 1 / 15, "lower": 0.00145, "upper": 0.13, "p_value": 0.0302,
        "confidence": 0.95, "epsilon": 1.0, "n": 300, "loss": "zero_one_loss",
        "noisy_difference": 20, "noisy_decided": 60,
    }  # fmt: skip
    return dp.Comparison(**{**known, **values})


def test_what_a_comparison_of_wins_says():
    text = str(result())
    assert text.startswith(
        "A is better on more records than B (300 records, p = 0.0302; at this epsilon wins on all give about "
        "0.001): the share of records won by A less that won by B (zero_one_loss) is 0.06667, "
        "[0.00145, 0.13] with confidence 95 %. The share for whom A is better less the share for whom B is, "
    )
    assert text.endswith("For this loss that is the accuracy of A less that of B.")
    assert "accuracy" not in str(result(loss="mae"))
    assert str(result(estimate=-0.1)).startswith("B is better on more records than A (")
    assert str(result(p_value=0.0502)).startswith("No difference shown between A and B (")
    assert result(lower=-0.01).better == "A"  # the p-value decides
    assert result(p_value=0.06).better is None
    assert result(p_value=0.06, confidence=0.9).better == "A"
    for text in (str(result()), str(result(estimate=-0.1)), str(result(p_value=1.0))):
        assert "lower" not in text
        assert "mean" not in text
    assert str(result(loss="mae")).endswith("It is no mean loss: which mean (mae) is lower does not follow.")
    assert repr(result()) == str(result())


@loop_over(("n", "epsilon", "least"), [(300, 1.0, 0.001), (20, 0.1, 0.388), (2, 1.0, 0.583)])
def test_the_least_p_value_is_that_of_a_model_that_won_everywhere(n, epsilon, least):
    """Where the epsilon is small, no difference can be shown, whatever the records are."""
    found = result(n=n, epsilon=epsilon, p_value=1.0)
    assert found.least_p_value == pytest.approx(least, rel=1e-2)
    assert f"at this epsilon wins on all give about {least})" in str(found)
    assert result(p_value=None, max_difference=1.0, statistic="mean difference").least_p_value is None


def test_a_p_value_and_an_interval_that_disagree_are_explained():
    """The first is the reference whose p is 0.03; the last has no ties, and another parity than n."""

    def note(difference, decided, n, epsilon):
        plan, known = compared([TIE] * n)
        found = settings_of(epsilon).result(plan, known, [(difference, decided)])
        return found.better, found.lower > 0, found.note

    assert note(20, 60, 300, 1.0) == ("A", True, "")
    assert note(0, 60, 300, 1.0) == (None, False, "")
    better, is_clear, text = note(19, 60, 300, 1.0)
    assert (better, is_clear) == ("A", False)
    assert "p-value decides" in text
    better, is_clear, text = note(9, 20, 20, 30.0)
    assert (better, is_clear) == (None, True)
    assert "p-value decides" in text


def test_what_a_comparison_of_means_says():
    means = {
        "statistic": "mean difference", "p_value": None, "loss": "mae", "max_difference": 2.0,
        "estimate": 0.1, "noisy_difference": None, "noisy_decided": None,
    }  # fmt: skip
    found = result(lower=0.01, upper=0.2, **means)
    assert found.better == "A"
    assert str(found).startswith(
        "With clipped differences A has the lower mean loss (300 records): the difference of the clipped "
        "mean losses (mae) is 0.1, [0.01, 0.2] with "
        "confidence 95 %. The mean loss (mae) of B less that of A, each person's difference clipped to "
        "[-2, 2], "
    )
    with pytest.raises(ValueError, match="Only wins have limits"):
        found.noise_interval()
    assert result(lower=-0.2, upper=-0.01, **means).better == "B"
    assert result(lower=-0.01, upper=0.2, **means).better is None
    assert str(result(lower=-0.01, upper=0.2, **means)).startswith("No difference shown between A and B (")


def test_the_parts_of_a_comparison():
    found = result()
    assert tuple(found.interval) == (0.00145, 0.13)
    assert found.interval.estimate == found.estimate
    # noise of rate 1/2 is beyond 6 with probability 3.8 %, beyond 5 with 6.2 %
    assert tuple(found.noise_interval()) == (14 / 300, 26 / 300)
    assert tuple(found.noise_interval(0.93)) == (15 / 300, 25 / 300)
    with pytest.raises(ValueError, match="confidence"):
        found.noise_interval(1.0)
    assert dp.Comparison(**json.loads(found.to_json())) == dp.Comparison(**found.to_dict()) == found


def test_the_catalogue_says_which_metrics_are_means_of_a_loss():
    """A metric that is new and not plain must be refused by name, as the root is."""
    refused = {name for name, row in METRICS.items() if kind_of(row) == "mean"} - {
        row.name for row in COMPARABLE.values()
    }
    assert refused == {
        "private_rmse", "private_accuracy_score", "private_top_k_accuracy_score", "private_mean",
        "private_mean_loss",
    }  # fmt: skip
