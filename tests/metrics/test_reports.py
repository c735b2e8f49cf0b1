"""Several metrics from one budget."""

import math
from fractions import Fraction

import numpy as np
import pytest
from helpers import loop_over, seeded
from sklearn import metrics as sk

import dp_metrics as dp

rng = np.random.default_rng(0)
Y = rng.normal(size=300)
P = Y + rng.normal(size=300) / 2
CODES, PROBA = rng.integers(0, 3, 300), rng.dirichlet([1, 1, 1], 300)
ADDS = {"neighboring": "add_or_remove_one"}


def as_dict(report, *data, epsilon=1e9, **options):
    return report(*data, epsilon=epsilon, output_dict=True, **options)


@loop_over("options", [{}, {"bounds": (-9, 9)}, ADDS])
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


@loop_over("options", [{}, {"mechanism": "hazard"}, ADDS])
def test_the_probability_report_agrees_with_scikit_learn_at_a_huge_epsilon(options):
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


def test_the_accuracy_of_a_report_is_drawn_by_a_mechanism_of_its_own_unless_one_is_chosen():
    for options, drawn_by in (
        ({}, "Geometric(), Adaptive()"),
        ({"mechanism": dp.Hazard(scale=0.1)}, "Hazard(scale=0.1)"),
        (ADDS, "Geometric(), Adaptive()"),
    ):
        accountant = dp.PrivacyAccountant(1.0)
        dp.private_probability_report(CODES, PROBA, epsilon=1.0, accountant=accountant, **options)
        assert [spend.mechanism for spend in accountant.history] == [drawn_by]


def test_costs_add_up_exactly():
    seen = []

    class Spy(dp.Hazard):
        def release(self, output_bounds, epsilon, rng=None):
            seen.append(epsilon)
            return super().release(output_bounds, epsilon, rng)

    split = {"mse": 2, "mae": 0.5, "variance": 1}
    for options, shares in (({}, (1, 1, 1)), ({"split": split}, (2, Fraction(1, 2), 1))):
        seen.clear()
        report = as_dict(dp.private_regression_report, Y, P, epsilon=0.7, mechanism=Spy(), **options)
        assert seen == [Fraction(7, 10) * Fraction(share) / sum(map(Fraction, shares)) for share in shares]
        assert [report[name]["epsilon"] for name in split] == pytest.approx([*map(float, seen)])
        assert report["rmse"]["epsilon"] == report["r2"]["epsilon"] == 0
        assert report["total"]["epsilon"] == 0.7


def test_the_table():
    options = {"epsilon": 1.5, "random_state": seeded()}
    text = dp.private_regression_report(Y, P, digits=3, **options)
    report = as_dict(dp.private_regression_report, Y, P, **{**options, "random_state": seeded()})
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
    report = as_dict(dp.private_regression_report, [], [], epsilon=1.0, **ADDS)
    assert all(math.isfinite(row["value"]) for name, row in report.items() if name != "total")
    assert dp.private_probability_report([], [], labels=[0, 1], epsilon=1.0, **ADDS).split()[0] == "value"
    assert dp.private_classification_report([], [], epsilon=1.0, **ADDS).split()[0] == "precision"
