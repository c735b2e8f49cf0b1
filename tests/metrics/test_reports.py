"""Several metrics from one budget."""

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
    for y, p in ((CODES, PROBA), (CODES > 0, PROBA[:, 0])):
        report = as_dict(dp.private_probability_report, y, p, **options)
        assert {name: row["value"] for name, row in report.items() if name != "total"} == pytest.approx(
            {
                "accuracy": sk.accuracy_score(y, p > 0.5 if p.ndim == 1 else p.argmax(axis=1)),
                "log_loss": sk.log_loss(y, p),
                "brier_score_loss": dp.private_brier_score_loss(y, p, epsilon=1e9),
            }
        )


def test_the_accuracy_of_a_report_is_drawn_by_a_mechanism_of_its_own_unless_one_is_chosen():
    for options, drawn_by in (
        ({}, "Geometric(), Adaptive()"),
        ({"mechanism": dp.Hazard(scale=0.1)}, "Hazard(scale=0.1)"),
        (ADDS, "Geometric(), Adaptive()"),
    ):
        accountant = dp.PrivacyAccountant(1.0)
        dp.private_probability_report(CODES, PROBA, epsilon=1.0, accountant=accountant, **options)
        assert [spend.mechanism for spend in accountant.history] == [drawn_by]


def test_the_table():
    options = {"epsilon": 1.5, "split": {"mse": 2, "mae": 0.5, "variance": 0.5}}
    text = dp.private_regression_report(Y, P, digits=3, random_state=seeded(), **options)
    report = as_dict(dp.private_regression_report, Y, P, random_state=seeded(), **options)
    costs = {name: row["epsilon"] for name, row in report.items()}
    assert costs == {"mse": 1.0, "rmse": 0, "mae": 0.25, "r2": 0, "variance": 0.25, "total": 1.5}
    *table, biases = text.split("\n\n", 3)
    rows = [line.split() for part in table for line in part.splitlines()]
    of = sorted(line.split(":")[0] for line in biases.splitlines() if line)
    assert of == ["mse, rmse", "r2", "variance"]
    assert rows[:2] == [["value", "epsilon"], ["mse", f"{report['mse']['value']:.3g}", "1"]]
    assert [row[0] for row in rows[1:]] == list(report)
    assert rows[-1] == ["total", "1.5"]
