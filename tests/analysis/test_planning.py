"""Planning from public data: the error to expect of any metric, and what it takes for a wanted one."""

import functools
import itertools
import math

import numpy as np
import pytest
from cases import PRIVATE_N, records
from helpers import loop_over, slow_but
from sklearn import metrics as sklearn_metrics

import dp_metrics as dp
from dp_metrics._random import SeededEntropy
from dp_metrics.metrics import METRICS

rng = np.random.default_rng(0)
LOSSES = rng.exponential(size=800)
N = 40
TRUE = rng.standard_normal(N)
PRED = TRUE + rng.standard_t(3, N) / 2
TWO = (np.column_stack([TRUE, PRED]), np.column_stack([PRED, PRED[::-1]]))
LABELS = (rng.integers(0, 3, N), rng.integers(0, 3, N))
TWO_LABELS = tuple(1 * (labels > 0) for labels in LABELS)
BINARY = (rng.integers(0, 2, N), rng.uniform(0.1, 0.9, N))
WEIGHTS = rng.integers(0, 5, N) / 2
WEIGHTED = {"sample_weight": WEIGHTS, "normalize": False}
WITHIN = {"bounds": (-6, 6)}
PERSONS = np.arange(N) % 25  # some have two records

SIMULATED = {
    "mse": ("mean_squared_error", (TRUE, PRED), {**WITHIN, "mechanism": "geometric"}),
    "mae": ("mean_absolute_error", (TRUE, PRED), {"mechanism": dp.mechanisms.AboveThreshold(beta=1.3)}),
    "mae, private n": ("mean_absolute_error", (TRUE, PRED), PRIVATE_N),
    "rmse, private n": ("root_mean_squared_error", (TRUE, PRED), {**WITHIN, **PRIVATE_N}),
    "rmse, two outputs": ("root_mean_squared_error", TWO, {}),
    "r2_score": ("r2_score", (TRUE, PRED), {"error_share": 0.2, **WITHIN}),
    "r2_score, private n": ("r2_score", (TRUE, PRED), {**WITHIN, **PRIVATE_N}),
    "accuracy_score, private n": ("accuracy_score", LABELS, PRIVATE_N),
    "zero_one_loss": ("zero_one_loss", LABELS, WEIGHTED),
    "log_loss": ("log_loss", BINARY, WEIGHTED),
    "recall_score": ("recall_score", TWO_LABELS, {}),
    "f1_score, private n": ("f1_score", TWO_LABELS, PRIVATE_N),
    "precision_score, persons": (
        functools.partial(sklearn_metrics.precision_score, sample_weight=1 / np.bincount(PERSONS)[PERSONS]),
        TWO_LABELS,
        {"groups": PERSONS, "equal_groups": True},
    ),
    "std": (functools.partial(np.std, ddof=1), (PRED,), {"ddof": 1}),
    "variance, private n": (np.var, (PRED,), PRIVATE_N),
    "roc_auc_score": ("roc_auc_score", BINARY, {}),
    "quantile": (
        functools.partial(np.quantile, q=0.75, method="inverted_cdf"), (TRUE,), {"q": 0.75, **WITHIN},
    ),
}  # fmt: skip
"""Of a metric its twin in scikit-learn or NumPy, data, and options; the matrix has the usual ones."""


@pytest.mark.gate
@pytest.mark.parametrize(
    "name",
    slow_but(
        {"mse", "quantile", "recall_score", "precision_score, persons", "accuracy_score, private n"},
        SIMULATED,
    ),
)
def test_the_expected_error_is_that_of_releases(name):
    """Of 1,000 releases: false alarms of the 12 comparisons at 4.5 standard errors: 7e-5 for each case."""
    twin, data, options = SIMULATED[name]
    metric = getattr(dp, f"private_{name.partition(',')[0]}")
    if isinstance(twin, str):
        common = {key: value for key, value in options.items() if key in ("sample_weight", "normalize")}
        twin = functools.partial(getattr(sklearn_metrics, twin), **common)
    epsilon, size = 2.0, 1000
    expected = dp.plan_release(metric, guess=data, epsilon=epsilon, **options)
    entropy, truth = SeededEntropy(0), float(twin(*data))
    errors = np.array([metric(*data, epsilon=epsilon, random_state=entropy, **options) for _ in range(size)])
    errors -= truth
    capped = np.clip(errors, -10 * abs(truth), 10 * abs(truth))
    # a private n is estimated, which moves the error a little
    slack = max(expected.off_by / expected.error, 0.01 if "private n" in name else 0.001)
    assert slack < 0.15
    for simulated, planned in ((capped, expected.bias), (np.abs(capped), expected.error)):
        margin = 4.5 * simulated.std() / math.sqrt(size) + slack * expected.error
        assert abs(simulated.mean() - planned) < margin
    assert list(expected.quantiles) == [0.05, 0.25, 0.5, 0.75, 0.95]
    for p, quantile in expected.quantiles.items():
        margin = 4.5 * math.sqrt(p * (1 - p) / size) + slack
        assert np.mean(errors <= quantile + 1e-9) > p - margin
        assert np.mean(errors < quantile - 1e-9) < p + margin


FAST = {"private_f1_score", "private_accuracy_score", "private_mean", "private_log_loss", "private_roc_curve"}


@pytest.mark.gate
@pytest.mark.parametrize("name", slow_but(FAST, METRICS))
def test_no_error_to_expect_is_0_and_none_rises_with_epsilon(name):
    row = METRICS[name]
    data, options = (
        row.from_unit(np.random.default_rng(0).uniform(0.2, 0.8, 40)),
        {**row.options, **row.required},
    )
    if "report" in name or "curve" in name or name == "private_confusion_matrix":
        with pytest.raises(ValueError, match="one metric, at a time"):
            dp.plan_release(name, guess=data, epsilon=1.0, **options)
        return
    options |= row.limit or {}
    told = [
        dp.plan_release(name, guess=data, epsilon=epsilon, **options) for epsilon in (0.5, 7.2, 40.0, 1e4)
    ]
    errors = [one.error for one in told]
    assert 0 < min(errors) <= max(errors) < math.inf
    assert all(one.error + 2 * one.off_by > other.error for one, other in itertools.pairwise(told))
    for one in told:
        assert abs(one.bias) <= 1.001 * one.error
        assert sorted(one.quantiles.values()) == [*one.quantiles.values()]


def exact_error(metric, data, epsilon, reach, **options):
    """Return the mean absolute error of a metric of a table, over all noise of its counts up to a size."""
    result = dp.with_result(metric)(*data, epsilon=300.0, random_state=SeededEntropy(0), **options)
    (noise,), formula, released = result.parts, result.reading, result.released
    counts = np.array(noise.noisy)  # at such an epsilon without noise
    rates = np.repeat([float(rate) for _, rate in noise.rates], [size for size, _ in noise.rates])
    total = mean = 0.0
    for away in itertools.product(range(-reach, reach + 1), repeat=counts.size):
        if noise.in_sum and sum(away):
            continue
        mass = math.exp(-epsilon / 300 * float(rates @ np.abs(away)))
        error = abs(formula(released.of([tuple((counts + away).tolist())])) - result.value)
        total, mean = total + mass, mean + mass * error
    return mean / total


TABLES = {
    "recall": (dp.private_recall_score, {}),
    "f1, private n": (dp.private_f1_score, PRIVATE_N),
    "matthews": (dp.private_matthews_corrcoef, {}),
    "jaccard": (dp.private_jaccard_score, {}),
    "zero-one, private n": (dp.private_zero_one_loss, PRIVATE_N),
}
FIVE_TIMES = tuple(np.tile(labels, 5) for labels in TWO_LABELS)


@pytest.mark.gate
@loop_over(("epsilon", "reach"), [(5.0, 3), (7.2, 2), (12.0, 2), (40.0, 1), (200.0, 1)])
@pytest.mark.parametrize("name", slow_but(["recall", "zero-one, private n"], TABLES))
@pytest.mark.filterwarnings("ignore:epsilon=300.0 is far above")
def test_a_simulated_error_is_that_of_all_noise_however_rare(name, epsilon, reach):
    metric, options = TABLES[name]
    exact = exact_error(metric, FIVE_TIMES, epsilon, reach, **options)
    planned = dp.plan_release(metric, guess=FIVE_TIMES, epsilon=epsilon, **options)
    assert planned.error == pytest.approx(exact, rel=0.1)


@pytest.mark.gate
@pytest.mark.parametrize("error", slow_but([1e-9], [1e-4, 1e-9, 1e-14]))
@pytest.mark.filterwarnings("ignore:epsilon=300.0 is far above")
def test_the_epsilon_for_a_small_error_is_enough_by_all_noise(error):
    epsilon = dp.plan_release("recall", guess=FIVE_TIMES, error=error).epsilon
    assert exact_error(dp.private_recall_score, FIVE_TIMES, epsilon, 2) <= error
    assert exact_error(dp.private_recall_score, FIVE_TIMES, 0.8 * epsilon, 2) > error


@pytest.mark.slow
def test_the_error_of_a_table_of_scores_includes_what_its_bins_hide():
    y = np.array([0, 1] * 500)
    score = np.where(y == 1, 0.60, 0.59)  # in one of 8 bins, and in two of 128
    expected = dp.plan_release("average_precision", guess=(y, score), epsilon=100.0, bins=8)
    assert -0.52 < expected.bias < -0.3
    fine = dp.plan_release("average_precision", guess=(y, score), epsilon=100.0, bins=128)
    assert abs(fine.bias) < 0.01


def test_the_truth_of_a_plan_is_that_of_records_without_noise():
    """An average precision is smoothed as far as there is noise; its bias is that of 400 releases."""
    data, entropy = records("average precision", 200), SeededEntropy(0)
    metric = functools.partial(dp.private_average_precision_score, *data, random_state=entropy)
    released = [metric(epsilon=0.5) for _ in range(400)]
    planned = dp.plan_release("average_precision", guess=data, epsilon=0.5).bias
    assert planned == pytest.approx(np.mean(released) - metric(epsilon=1e6), abs=np.std(released) / 4)


def test_the_error_of_a_bounded_mean_of_a_private_number_of_records_is_that_of_two_sums():
    """Noises L of scale 1 / epsilon move A / (A + B) = q by (1 - q) L - q L', each over n."""
    q, n, epsilon = 0.3, 2000, 0.5
    planned = dp.plan_release("mean", guess=q, n=n, epsilon=epsilon, bounds=(0, 1), **PRIVATE_N)
    assert planned.error == pytest.approx((q**2 + q * (1 - q) + (1 - q) ** 2) / (n * epsilon), rel=0.02)


def test_single_errors_are_capped_in_the_means_and_not_in_the_quantiles():
    free = dp.plan_release(dp.private_mse, guess=(TRUE, PRED), epsilon=0.2)
    capped = dp.plan_release(dp.private_mse, guess=(TRUE, PRED), epsilon=0.2, error_cap=0.01)
    limit = 0.01 * sklearn_metrics.mean_squared_error(TRUE, PRED)
    assert 0.9 * limit < capped.error <= limit < free.error
    assert abs(capped.bias) <= limit
    assert capped.quantiles == free.quantiles


GUESSES = {
    "mean_loss": {"guess": (LOSSES,)},
    "rmse": {"guess": (np.zeros_like(LOSSES), LOSSES)},
    **{name: {"guess": 0.7, "n": 3000} for name in ("f1", "mae", "roc_auc", "r2_score")},
}


@pytest.mark.parametrize("error", slow_but([0.1], [0.3, 0.1, 0.02]))
@pytest.mark.parametrize("name", slow_but(["mean_loss", "rmse", "f1"], GUESSES))
def test_the_epsilon_of_a_plan_is_enough_and_one_step_less_is_not(name, error):
    plan = dp.plan_release(name, error=error, **GUESSES[name])
    assert dp.plan_release(name, epsilon=plan.epsilon, **GUESSES[name]) == plan
    assert plan.error + plan.off_by <= error
    assert float(f"{plan.epsilon:.2g}") == plan.epsilon
    step = 10.0 ** (math.floor(math.log10(plan.epsilon)) - 1)
    least = dp.plan_release(name, epsilon=plan.epsilon - step, **GUESSES[name])
    assert least.error + least.off_by > error or plan.epsilon == 1e-4  # the first that is tried


@pytest.mark.parametrize("name", slow_but(["mean_loss"], ["mean_loss", "rmse", "roc_auc"]))
def test_the_number_of_records_of_a_plan_is_enough_and_hardly_more(name):
    guess = {"mean_loss": (LOSSES,), "rmse": (TRUE, PRED), "roc_auc": 0.8}[name]
    plan = dp.plan_release(name, guess=guess, epsilon=1.0, error=0.02)
    assert dp.plan_release(name, guess=guess, epsilon=1.0, n=plan.n) == plan
    assert plan.error + plan.off_by <= 0.02
    fewer = dp.plan_release(name, guess=guess, epsilon=1.0, n=int(0.85 * plan.n))
    assert fewer.error + fewer.off_by > 0.02
    assert int(f"{plan.n:.2g}".replace("e+0", "e").partition("e")[0].replace(".", "")) < 100


@loop_over("n", [17, N, 150])
def test_data_weights_and_groups_are_repeated_or_cut_to_n(n):
    rows = np.arange(n) % N
    plan = functools.partial(dp.plan_release, dp.private_mse, epsilon=1.0)
    whole, part = (TRUE.tolist(), PRED), (TRUE[rows], PRED[rows])
    plain = plan(guess=whole, n=n)
    assert plain == plan(guess=part)
    weighted = plan(guess=whole, n=n, sample_weight=WEIGHTS)
    assert weighted == plan(guess=part, sample_weight=WEIGHTS[rows]) != plain
    groups = np.arange(N) // 3
    people = [f"{group} of copy {copy}" for group, copy in zip(groups[rows], np.arange(n) // N, strict=True)]
    grouped = plan(guess=whole, n=n, groups=groups)
    assert grouped == plan(guess=part, groups=people) != plain
    assert plan(guess=TWO, n=n) == plan(guess=(TWO[0][rows], TWO[1][rows]))


@loop_over("persons", [{}, {"equal_groups": True}, {"max_records": 1}])
def test_the_number_of_a_plan_is_that_of_records_and_not_of_persons(persons):
    plan = functools.partial(dp.plan_release, "recall", guess=TWO_LABELS, epsilon=1.0, groups=PERSONS)
    assert [plan(**persons).n, plan(n=150, **persons).n] == [N, 150]


def test_beyond_the_ends_of_what_is_searched_there_is_an_end():
    plan = functools.partial(dp.plan_release, dp.private_mean_loss, guess=(LOSSES,))
    assert plan(error=1e6).epsilon == 1e-4
    assert plan(error=0.05, n=8000).epsilon < 0.5 * plan(error=0.05).epsilon
    assert dp.plan_release("mean_loss", guess=(np.zeros(100),), epsilon=1.0, max_loss=1.0).error < 1e-3
    assert dp.plan_release("std", guess=(np.zeros(100),), epsilon=1.0, bounds=(0, 1)).error < 0.2
