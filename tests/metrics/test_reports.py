"""Several metrics from one budget."""

import math
from fractions import Fraction

import numpy as np
import pytest
from sklearn import metrics as sk

import dp_metrics as dp
from dp_metrics._random import SeededEntropy
from dp_metrics.auditing import metric_loss

rng = np.random.default_rng(0)
Y = rng.normal(size=300)
P = Y + rng.normal(size=300) / 2
CODES, PROBA = rng.integers(0, 3, 300), rng.dirichlet([1, 1, 1], 300)


def as_dict(report, *data, epsilon=1e9, **options):
    return report(*data, epsilon=epsilon, output_dict=True, **options)


@pytest.mark.parametrize("options", [{}, {"bounds": (-9, 9)}, {"neighboring": "add_or_remove_one"}])
def test_the_regression_report_agrees_with_scikit_learn_at_a_huge_epsilon(options):
    report = as_dict(dp.private_regression_report, Y, P, **options)
    expected = {
        "mse": sk.mean_squared_error(Y, P),
        "rmse": sk.root_mean_squared_error(Y, P),
        "mae": sk.mean_absolute_error(Y, P),
        "r2": sk.r2_score(Y, P),
        "variance": np.var(Y),
    }
    assert {name: row["value"] for name, row in report.items() if name != "total"} == pytest.approx(expected)
    assert report["total"]["neighboring"] == options.get("neighboring", "replace_one")


@pytest.mark.parametrize("options", [{}, {"mechanism": "hazard"}, {"neighboring": "add_or_remove_one"}])
def test_the_classification_report_agrees_with_scikit_learn_at_a_huge_epsilon(options):
    names = np.array(["a", "b", "c"])
    for y, p, labels in (
        (CODES, PROBA, None),
        (names[CODES], PROBA, ["a", "b", "c"]),
        (CODES > 0, PROBA[:, 0], None),
    ):
        report = as_dict(dp.private_probability_report, y, p, labels=labels, **options)
        predicted = p > 0.5 if p.ndim == 1 else np.unique(y)[p.argmax(axis=1)]
        assert report["accuracy"]["value"] == pytest.approx(sk.accuracy_score(y, predicted))
        assert report["log_loss"]["value"] == pytest.approx(sk.log_loss(y, p))
        brier = dp.private_brier_score_loss(y, p, labels=labels, epsilon=1e9)
        assert report["brier_score_loss"]["value"] == pytest.approx(brier)


@pytest.mark.parametrize(
    ("options", "drawn_by"),
    [
        ({}, "Geometric(), Adaptive()"),
        ({"mechanism": dp.Hazard(scale=0.1)}, "Hazard(scale=0.1)"),
        ({"neighboring": "add_or_remove_one"}, "Geometric(), Adaptive()"),
    ],
)
def test_the_accuracy_of_a_report_is_drawn_by_a_mechanism_of_its_own_unless_one_is_chosen(options, drawn_by):
    accountant = dp.PrivacyAccountant(1.0)
    dp.private_probability_report(CODES, PROBA, epsilon=1.0, accountant=accountant, **options)
    assert [spend.mechanism for spend in accountant.history] == [drawn_by]


def test_costs_add_up_exactly_and_are_paid_once(monkeypatch):
    seen = []

    class Spy(dp.Hazard):
        def release(self, output_bounds, epsilon, rng=None):
            seen.append(epsilon)
            return super().release(output_bounds, epsilon, rng)

    accountant = dp.PrivacyAccountant(1)
    report = as_dict(dp.private_regression_report, Y, P, epsilon=0.1, mechanism=Spy(), accountant=accountant)
    assert seen == [Fraction(1, 30)] * 3
    assert sum(row["epsilon"] for row in report.values()) == pytest.approx(0.2)  # the rows and their total
    assert [spend.epsilon for spend in accountant.history] == [0.1]
    seen.clear()
    split = {"mse": 2, "mae": 0.5, "variance": 1}
    report = as_dict(dp.private_regression_report, Y, P, epsilon=0.7, split=split, mechanism=Spy())
    assert seen == [Fraction(7, 10) * Fraction(part) / Fraction("3.5") for part in (2, Fraction(1, 2), 1)]
    assert sum(seen) == Fraction(7, 10)
    assert report["rmse"]["epsilon"] == report["r2"]["epsilon"] == 0


@pytest.mark.parametrize("mechanism", [dp.Hazard(), "piecewise_laplace"])
def test_the_exact_privacy_loss_of_a_whole_report_is_at_most_epsilon(mechanism, monkeypatch):
    worst = 0.0
    for n in (1, 3, 20):
        for _ in range(4):
            y, p = rng.uniform(0, 9, (2, n))
            y2, p2 = y.copy(), p.copy()
            y2[0], p2[0] = rng.choice([0.0, 9.0], 2)
            options = {"mechanism": mechanism, "bounds": (0, 9), "epsilon": 1.0}
            worst = max(worst, metric_loss(dp.private_regression_report, [y, p], [y2, p2], **options))
            codes, proba = rng.integers(0, 2, n), rng.random(n)
            codes2, proba2 = codes.copy(), proba.copy()
            codes2[0], proba2[0] = 1 - codes[0], rng.choice([0.0, 1.0])
            pair = ([codes, proba], [codes2, proba2])
            report = dp.private_probability_report
            worst = max(worst, metric_loss(report, *pair, mechanism=mechanism, epsilon=1.0))
    assert 0.5 < worst <= 1 + 1e-9


def test_the_table():
    text = dp.private_regression_report(Y, P, epsilon=1.5, digits=3, random_state=SeededEntropy(0))
    report = as_dict(dp.private_regression_report, Y, P, epsilon=1.5, random_state=SeededEntropy(0))
    table, biases = text.split("\n\n", 3)[:3], text.split("\n\n", 3)[3]
    rows = [line.split() for part in table for line in part.splitlines()]
    assert [line.split(":")[0] for line in biases.splitlines() if line] == ["mse, rmse, variance", "r2"]
    assert rows[0] == ["value", "epsilon"]
    assert [row[0] for row in rows[1:]] == list(report)
    assert rows[-1] == ["total", "1.5"]
    assert rows[1] == ["mse", f"{report['mse']['value']:.3g}", "0.5"]
    text = dp.private_probability_report(CODES, PROBA, epsilon=1.5)
    assert {"accuracy", "log_loss", "brier_score_loss", "total"} <= set(text.split())


def test_no_records_where_their_number_is_private():
    relation = {"neighboring": "add_or_remove_one"}
    report = as_dict(dp.private_regression_report, [], [], epsilon=1.0, **relation)
    assert all(math.isfinite(row["value"]) for name, row in report.items() if name != "total")
    assert dp.private_probability_report([], [], labels=[0, 1], epsilon=1.0, **relation).split()[0] == "value"
    assert dp.private_classification_report([], [], epsilon=1.0, **relation).split()[0] == "precision"
