"""The metrics beyond the first four: bounds by brute force, exact privacy, agreement with the twins."""

import inspect
import math
import re
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from helpers import MAX, NoEntropy, assert_follows, critical_points, multisets, neighbour_pairs, scores
from scipy import stats
from sklearn import metrics as sk

import dp_metrics as dp
from dp_metrics import losses
from dp_metrics._aggregates import OrderAggregate
from dp_metrics._queries import MeanLoss
from dp_metrics._random import SeededEntropy, discrete_laplace
from dp_metrics._release import loss_output_bounds
from dp_metrics._targets import r2_from_parts
from dp_metrics.auditing import metric_loss
from dp_metrics.bounds import order_statistic_bounds
from dp_metrics.mechanisms import get_mechanism

# --- quantiles


def order_bounds(x, k, limit=MAX, capacity=10):
    return order_statistic_bounds(
        OrderAggregate.from_data(np.array(x, dtype=float), k, capacity=capacity, limit=limit)
    )


@pytest.mark.parametrize("k", [1, 2, 3, 4])
def test_order_statistic_bounds_are_the_extremes_over_all_data_sets_within_reach(k):
    domain, limit = (0.0, 0.1, 0.7, 3.3), 3.3
    everything = multisets(domain, 4)
    for x in everything:
        bounded, unbounded = order_bounds(x, k, limit), order_bounds(x, k)
        assert bounded.value == sorted(x)[k - 1]
        np.testing.assert_array_equal(bounded.lower, unbounded.lower)
        for rank in range(1, 5):
            reach = [sorted(y)[k - 1] for y in everything if _distance(x, y) <= rank]
            assert bounded.lower[rank - 1] == min(reach)
            assert bounded.upper[rank - 1] == max(reach)
            assert unbounded.upper[rank - 1] == (sorted(x)[k + rank - 1] if k + rank <= 4 else MAX)


def _distance(a, b):
    b = list(b)
    for value in a:
        if value in b:
            b.remove(value)
    return len(b)


@pytest.mark.parametrize("capacity", [1, 2, 10])
def test_order_statistics_of_neighbours(capacity):
    for x, y in neighbour_pairs((0.0, 0.1, 0.7, 3.3), 4):
        for k in (1, 2, 4):
            a, b = (order_bounds(data, k, 3.3, capacity) for data in (x, y))
            change = scores(b, t := critical_points(a, b)) - scores(a, t)
            assert np.abs(change).max() <= 1
            assert (change >= 0).all() or (change <= 0).all()


@pytest.mark.parametrize("method_n", [1, 2, 3, 10, 101])
def test_quantiles_are_those_of_numpy(method_n):
    x = np.random.default_rng(0).normal(size=method_n) * 10
    for q in (0, 0.1, 0.25, 1 / 3, 0.5, 0.7, 0.99, 1):
        expected = np.quantile(x, q, method="inverted_cdf")
        for bounds in ((-100, None), (-100, math.inf), (-100, 100)):
            assert dp.private_quantile(x, q, epsilon=1e9, bounds=bounds) == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize("mechanism", [dp.Hazard(), dp.AboveThreshold(beta=3.0)])
def test_privacy_of_quantiles(mechanism):
    rng = np.random.default_rng(0)
    worst = 0.0
    for n in (1, 3, 20):
        for q in (0.0, 0.5, 0.9):
            x = rng.lognormal(0, 2, n)
            y = x.copy()
            y[rng.integers(n)] = rng.choice([0.0, 1e6])
            options = {"q": q, "bounds": (0, None), "mechanism": mechanism, "epsilon": 1.0}
            worst = max(worst, metric_loss(dp.private_quantile, [x], [y], **options))
    assert 0.5 < worst <= 1 + 1e-9


def test_quantile_arguments():
    for q in (-0.1, 1.1, math.nan, "0.5", None, True, [0.5]):
        with pytest.raises(ValueError, match="Quantiles"):
            dp.private_quantile([1.0], q, epsilon=1.0, bounds=(0, 1), random_state=NoEntropy())
    for bounds in (None, (None, 1), (-math.inf, 1), (1, 0), (math.nan, None), 3, (0, math.nan)):
        with pytest.raises(ValueError, match="bounds"):
            dp.private_quantile([1.0], 0.5, epsilon=1.0, bounds=bounds, random_state=NoEntropy())
    with pytest.raises(ValueError, match="upper limit"):
        dp.private_quantile(
            [1.0], 0.5, epsilon=1.0, bounds=(0, None), mechanism="laplace", random_state=NoEntropy()
        )
    assert dp.private_quantile([1.0], 0.5, epsilon=1e9, bounds=(-MAX, MAX)) <= MAX


# --- counts and the geometric mechanism


@pytest.mark.parametrize("rate", [Fraction(1, 3), Fraction(2), Fraction(7, 5)])
def test_discrete_laplace_has_the_exact_law(rate):
    entropy, size = SeededEntropy(0), 20_000
    draws = np.array([discrete_laplace(entropy, rate) for _ in range(size)])
    p = math.exp(-rate)
    values = np.arange(-6, 7)
    expected = (1 - p) / (1 + p) * p ** np.abs(values)
    observed = np.array([(draws == v).sum() for v in values])
    rest = size - observed.sum()
    statistic = ((observed - size * expected) ** 2 / (size * expected)).sum()
    statistic += (rest - size * (1 - expected.sum())) ** 2 / (size * (1 - expected.sum()) + 1e-9)
    assert statistic < stats.chi2(13).isf(1e-6)


def test_discrete_laplace_of_extreme_rates():
    assert discrete_laplace(SeededEntropy(0), Fraction(10**400)) == 0
    assert abs(discrete_laplace(SeededEntropy(0), Fraction(1, 10**400))) > 10**390


def _law(metric_query, epsilon=1.0):
    mechanism = get_mechanism("geometric")
    return mechanism.output_distribution(
        metric_query.output_bounds(mechanism, epsilon, private_n=False), epsilon
    )


@pytest.mark.parametrize("n", [1, 2, 7, 1000, 12345])
def test_a_count_is_released_on_its_own_lattice_at_full_epsilon(n):
    rng = np.random.default_rng(n)
    for _ in range(20):
        wrong = rng.random(n) < rng.random()
        other = wrong.copy()
        other[0] = not other[0]
        a, b = (
            _law(MeanLoss(losses.zero_one_loss, (w,), 1.0, counts=True), Fraction(3, 10))
            for w in (wrong, other)
        )
        assert a.centre == wrong.sum()
        assert abs(a.centre - b.centre) * a.rate == Fraction(3, 10)  # the exact loss
        np.testing.assert_array_equal(a.grid.points(np.arange(n + 1)), np.arange(n + 1) / n)


def test_the_exact_loss_of_the_geometric_mechanism_elsewhere():
    rng = np.random.default_rng(0)
    worst = Fraction(0)
    for n in (1, 2, 9, 300):
        weights = rng.lognormal(0, 2, n)
        for options in (
            (None, None),
            (weights, None),
            (None, np.arange(n) // 2),
            (weights, np.arange(n) // 2),
        ):
            x = rng.random(n) * 3.3
            y = np.where((np.arange(n) // 2 == 0) if options[1] is not None else np.arange(n) == 0, 3.3, x)
            x = np.where(y == 3.3, 0.0, x)
            a, b = (_law(MeanLoss(losses.identity, (v,), 3.3, *options)) for v in (x, y))
            worst = max(worst, abs(a.centre - b.centre) * a.rate)
    assert Fraction(99, 100) < worst <= 1


def test_geometric_draws_follow_the_law():
    mechanism = get_mechanism("geometric")
    for query in (
        MeanLoss(losses.zero_one_loss, (np.arange(30) < 3,), 1.0, counts=True),
        MeanLoss(losses.identity, (np.linspace(0, 1, 30),), 1.0),
    ):
        output_bounds = query.output_bounds(mechanism, 0.5, private_n=False)
        entropy = SeededEntropy(0)
        draws = np.array([mechanism.release(output_bounds, 0.5, entropy) for _ in range(4000)])
        assert_follows(draws, mechanism.output_distribution(output_bounds, 0.5))


def test_the_geometric_mechanism_is_the_best_for_accuracy():
    # mean absolute error in units of one record over epsilon: hazard aims at relative accuracy, for other
    # metrics; Laplace and piecewise Laplace come close, but not where epsilon exceeds 1, and not exactly
    table = {}
    for n in (200, 1000, 5000):
        for accuracy in (0.55, 0.9, 0.99):
            wrong = np.arange(n) >= round(accuracy * n)
            value = wrong.mean()
            for epsilon in (0.1, 1.0, 4.0):
                query = MeanLoss(losses.zero_one_loss, (wrong,), 1.0, counts=True)
                row = {}
                for name in ("geometric", "laplace", "piecewise_laplace", "inverse_sensitivity", "hazard"):
                    mechanism = get_mechanism(name)
                    output_bounds = query.output_bounds(mechanism, epsilon, private_n=False)
                    law = mechanism.output_distribution(output_bounds, epsilon)
                    row[name] = law.mean_absolute_error(value) * n * epsilon
                table[n, accuracy, epsilon] = row
    best = [min(row.values()) / row["geometric"] for row in table.values()]
    assert np.exp(np.mean(np.log(best))) > 0.85  # hazard wins where a guess of "none wrong" does
    assert table[1000, 0.9, 1.0]["geometric"] == pytest.approx(0.851, abs=0.002)
    assert table[1000, 0.9, 4.0]["geometric"] < 0.16
    for rival in ("laplace", "piecewise_laplace", "inverse_sensitivity", "hazard"):
        gain = [row[rival] / row["geometric"] for key, row in table.items() if key[1] < 0.99]
        assert np.exp(np.mean(np.log(gain))) > 1.5


FORMS = {
    "lists of strings": (["a", "b", "c", "a"], ["a", "b", "b", "a"]),
    "mixed types": (["a", 1, None, 2], ["b", 1.0, None, 2]),
    "integers": (np.array([0, 1, 2, 0]), np.array([0, 1, 1, 0])),
    "whole floats and integers": (np.array([0.0, 1, 2, 0]), np.array([0, 1, 1, 0])),
    "strings in arrays": (np.array(["a", "bb", "c", "a"]), np.array(["a", "bb", "b", "a"])),
    "categories": (pd.Series(["a", "b", "c", "a"], dtype="category"), ["a", "b", "b", "a"]),
    "nullable": (pd.Series([0, 1, 2, 0], dtype="Int64"), pd.Series([0, 1, 1, 0], dtype="Int64")),
    "pandas strings": (pd.Series(["a", "b", "c", "a"], dtype="string"), ["a", "b", "b", "a"]),
    "booleans": ([True, False, True, True], [1, 0, 0, 1]),
    "columns": (np.array([[0], [1], [2], [0]]), [0, 1, 1, 0]),
    "several outputs": ([[0, 1], [1, 1], [1, 0], [0, 0]], [[0, 1], [1, 1], [1, 1], [0, 0]]),
}


@pytest.mark.parametrize("form", FORMS)
def test_labels_of_any_kind(form):
    y_true, y_pred = FORMS[form]
    assert dp.private_zero_one_loss(y_true, y_pred, epsilon=1e6) == 0.25
    assert dp.private_accuracy_score(y_true, y_pred, epsilon=1e6) == 0.75
    assert dp.private_accuracy_score(y_true, y_pred, epsilon=1e6, normalize=False) == 3


def test_one_label_cannot_change_how_another_is_read():
    # np.asarray of [1, 2, "x"] would turn 1 and 2 into strings, and every record into an error
    assert dp.private_zero_one_loss([1, 2, "x"], [1, 2, "y"], epsilon=1e6) == pytest.approx(1 / 3)
    assert dp.private_zero_one_loss([1, 2, "x"], np.array([1, 2, "y"], dtype=object), epsilon=1e6) < 0.4


@pytest.mark.parametrize(
    ("y_true", "y_pred"),
    [
        ([0.5, 1], [0, 1]),
        ([math.inf, 1], [0, 1]),
        (["1", "2"], [1, 2]),
        (np.array(["1", "2"]), np.array([1, 2])),
        ([1, 2, "x"], [1, 2, 3]),
        ([[]], [[]]),
        (np.array([0.5, 1]), np.array([0, 1])),
        ([math.nan, 1], [0, 1]),
        (np.array([math.nan, 1]), [0, 1]),
        (pd.Series([0, None], dtype="Int64"), [0, 1]),
        ([0, 1], [0, 1, 2]),
        ([], []),
        (np.array([]), np.array([])),
        ([[0, 1], [1]], [[0, 1], [1]]),
        ([{1}, {2}], [{1}, {2}]),
        ([[0, 1], [1, 1]], [0, 1]),
        (np.zeros((2, 2, 2)), np.zeros((2, 2, 2))),
        (3, 3),
        (None, None),
    ],
)
def test_labels_that_are_none_are_refused(y_true, y_pred):
    accountant = dp.PrivacyAccountant(1)
    with pytest.raises((ValueError, TypeError)):
        dp.private_accuracy_score(
            y_true, y_pred, epsilon=1.0, accountant=accountant, random_state=NoEntropy()
        )
    assert accountant.spent == 0


# --- Brier score


def test_brier_score_loss_agrees_with_scikit_learn():
    rng = np.random.default_rng(0)
    y, p = rng.integers(0, 2, 200), rng.random(200)
    names = np.where(y == 1, "spam", "ham")
    options = {"epsilon": 1e9}
    expected = sk.brier_score_loss(y, p)
    assert dp.private_brier_score_loss(y, p, **options) == pytest.approx(expected)
    assert dp.private_brier_score_loss(y, p[:, np.newaxis], **options) == pytest.approx(expected)
    assert dp.private_brier_score_loss(y, 1 - p, pos_label=0, **options) == pytest.approx(expected)
    assert dp.private_brier_score_loss(names, p, labels=["ham", "spam"], **options) == pytest.approx(expected)
    columns = np.column_stack([1 - p, p])
    assert dp.private_brier_score_loss(y, columns, **options) == pytest.approx(expected)
    assert dp.private_brier_score_loss(y, columns, scale_by_half=False, **options) == pytest.approx(
        2 * expected
    )
    assert dp.private_brier_score_loss(y, p, scale_by_half=False, **options) == pytest.approx(2 * expected)
    labels, proba = rng.integers(0, 3, 200), rng.dirichlet([1, 1, 1], 200)
    expected = ((proba - np.eye(3)[labels]) ** 2).sum(axis=1).mean()
    assert dp.private_brier_score_loss(labels, proba, **options) == pytest.approx(expected)
    for bad in ({"pos_label": 2}, {"scale_by_half": "yes"}, {"scale_by_half": None}, {"labels": [0, 1, 2]}):
        with pytest.raises(ValueError, match=r"label|scale_by_half"):
            dp.private_brier_score_loss(y, p, epsilon=1.0, random_state=NoEntropy(), **bad)


# --- R^2, and losses with a domain


def test_r2_is_always_finite():
    assert r2_from_parts(0.0, 0.0) == 1.0
    assert r2_from_parts(1.0, 0.0) == 0.0
    assert r2_from_parts(MAX, 5e-324) == -MAX
    rng = np.random.default_rng(0)
    for n in (1, 2, 50):
        for y in (np.zeros(n), np.full(n, 1e308), rng.normal(size=n)):
            for multioutput in ("uniform_average", "raw_values"):
                pair = np.column_stack([y, -y])
                r2 = dp.private_r2_score(pair, pair[::-1], epsilon=1e-3, multioutput=multioutput)
                assert np.isfinite(r2).all()
                assert np.max(r2) <= 1


def test_r2_splits_epsilon_as_it_is_told():
    seen = []

    class Spy(dp.Hazard):
        def release(self, output_bounds, epsilon, rng=None):
            seen.append(epsilon)
            return super().release(output_bounds, epsilon, rng)

    y = np.arange(20.0).reshape(10, 2)
    dp.private_r2_score(y, y, epsilon=0.3, error_share=0.7, mechanism=Spy())
    assert seen == [Fraction(21, 200)] * 2 + [Fraction(9, 200)] * 2
    assert sum(seen) == Fraction(3, 10)
    for share in (0, 1, -1, math.nan, "0.5", None):
        with pytest.raises(ValueError, match="error_share"):
            dp.private_r2_score(y, y, epsilon=0.3, error_share=share, random_state=NoEntropy())


def test_losses_with_a_domain_refuse_what_lies_outside_without_values():
    cases = [
        (dp.private_mean_poisson_deviance, [-987.5, 1.0], [1.0, 1.0]),
        (dp.private_mean_poisson_deviance, [1.0, 1.0], [1.0, 0.0]),
        (dp.private_mean_squared_log_error, [-987.5, 1.0], [1.0, 1.0]),
        (dp.private_mean_squared_log_error, [1.0, 1.0], [1.0, -1.0]),
    ]
    for metric, y, p in cases:
        with pytest.raises(ValueError, match="used") as caught:
            metric(y, p, epsilon=1.0, random_state=NoEntropy())
        assert "987" not in str(caught.value)
    with pytest.raises(ValueError, match="bounds"):
        dp.private_mean_squared_log_error([1.0], [1.0], epsilon=1.0, bounds=(-1, 1), random_state=NoEntropy())
    with pytest.raises(ValueError, match="1d"):
        dp.private_mean_poisson_deviance(
            np.ones((2, 2)), np.ones((2, 2)), epsilon=1.0, random_state=NoEntropy()
        )
    for alpha in (-0.1, 1.1, math.nan, "a", None, True):
        with pytest.raises(ValueError, match="alpha"):
            dp.private_mean_pinball_loss([1.0], [1.0], epsilon=1.0, alpha=alpha, random_state=NoEntropy())
    with pytest.raises(ValueError, match="bounds"):
        dp.private_mean([1.0], epsilon=1.0, bounds=None, random_state=NoEntropy())


@pytest.mark.parametrize("y", [0.0, 5e-324, 1e-300, 1.0, 1e300, MAX])
@pytest.mark.parametrize("p", [5e-324, 1e-300, 1.0, 1e300, MAX])
def test_kernels_never_give_nan(y, p):
    with np.errstate(all="ignore"):
        for kernel in (losses.poisson_deviance, losses.squared_log_error, losses.absolute_percentage_error):
            assert not np.isnan(losses.clamp(kernel(np.array([y]), np.array([p])), None)).any()
        deviance = losses.clamp(losses.poisson_deviance(np.array([y]), np.array([p])), None)[0]
    if y < p / 1e20 and p < 1e300:
        assert deviance == pytest.approx(2 * p, rel=1e-9)


@pytest.mark.parametrize(
    ("metric", "options"),
    [
        (dp.private_mean_squared_log_error, {"bounds": (0, 9)}),
        (dp.private_mean_pinball_loss, {"bounds": (0, 9), "alpha": 0.1}),
        (dp.private_mean_pinball_loss, {"bounds": (0, 9), "alpha": 0.9}),
        (dp.private_mean_absolute_percentage_error, {"max_loss": 2}),
        (dp.private_mean_poisson_deviance, {"max_loss": 20}),
        (dp.private_rmse, {"bounds": (0, 9)}),
        (dp.private_r2_score, {"bounds": (0, 9)}),
        (dp.private_r2_score, {}),
    ],
)
@pytest.mark.parametrize("mechanism", [dp.Hazard(), "piecewise_laplace"])
def test_the_exact_privacy_loss_is_at_most_epsilon(metric, options, mechanism):
    if mechanism == "piecewise_laplace" and not options:
        pytest.skip("needs bounds")
    rng = np.random.default_rng(0)
    worst = 0.0
    for n in (1, 2, 10):
        for _ in range(6):
            y, p = rng.uniform(0.1, 9, (2, n))
            y2, p2 = y.copy(), p.copy()
            y2[0], p2[0] = rng.choice([0.1, 9.0], 2)
            worst = max(
                worst, metric_loss(metric, [y, p], [y2, p2], epsilon=1.0, mechanism=mechanism, **options)
            )
    assert 0.3 < worst <= 1 + 1e-9


def test_mean_and_its_bounds():
    x = np.random.default_rng(0).normal(5, 2, 500)
    assert dp.private_mean(x, epsilon=1e6, bounds=(-100, 100)) == pytest.approx(x.mean(), abs=1e-5)
    assert dp.private_mean(x, epsilon=1e6, bounds=(6, 8)) == pytest.approx(np.clip(x, 6, 8).mean(), abs=1e-5)
    for bounds in ((-MAX / 4, MAX / 4), (-1e-300, 1e-300)):
        for mechanism in (None, "hazard"):
            assert (
                bounds[0] <= dp.private_mean(x, epsilon=1e-9, bounds=bounds, mechanism=mechanism) <= bounds[1]
            )


def test_what_an_output_law_says_of_a_mean_loss():
    law = get_mechanism("geometric").output_distribution(
        loss_output_bounds(np.ones(100), max_loss=2.0, mechanism=get_mechanism("geometric"), epsilon=1.0), 1.0
    )
    # two-sided noise of scale 2 / (100 epsilon)
    assert law.mean_absolute_error(1.0) == pytest.approx(0.02, rel=0.01)
    assert law.median() == pytest.approx(1.0, rel=1e-5)


PUBLIC = [getattr(dp, name) for name in dp.__all__ if name.startswith("private_")]


@pytest.mark.parametrize("metric", PUBLIC, ids=lambda f: f.__name__)
def test_docstrings_are_filled_in(metric):
    text = metric.__doc__
    assert not re.search(r"\{\w+(: [^}]*)?\}", re.sub(r"\{(\"\w+\"(, )?)+\}|\{\"hazard\".*?\}", "", text))
    documented = set(re.findall(r"^(\w+) : ", text, re.MULTILINE))
    assert documented >= set(inspect.signature(metric).parameters)
    for section in ("Parameters", "Returns", "Raises", "Warns", "Notes", "References", "Examples"):
        assert f"\n{section}\n{'-' * len(section)}\n" in text
    assert "Guarantee: replacing any one record" in text
