"""Requirements: pass, fail or cannot tell, right at once with the confidence."""

import numpy as np
import pytest

import dp_metrics as dp
from dp_metrics.page.numbers import METRICS, parsed

Y = np.array([0, 1] * 2000)
PRED = np.where(np.arange(4000) % 10 == 0, 1 - Y, Y)


@pytest.fixture(scope="module")
def page():
    return dp.private_evaluate(Y, y_pred=PRED, labels=[0, 1], epsilon=2.0)


def test_verdicts(page):
    found = page.check({"accuracy": (">=", 0.8), "recall": ("<", 0.5), "precision": (">", 0.8)})
    assert [one.answer for one in found.values()] == ["pass", "fail", "pass"]
    assert found.answer == "fail"
    assert page.check({"accuracy": (">=", 0.8)}).answer == "pass"
    near = page["accuracy"].value
    assert page.check({"accuracy": (">=", near), "recall": (">=", 0.1)}).answer == "cannot tell"
    assert "accuracy >= 0.8: pass" in repr(found)
    assert "Requirements" in found._repr_html_()


def test_requirements_share_the_miss(page):
    one = page.check({"accuracy": (">=", 0.8)})["accuracy"].interval
    assert one == page["accuracy"].population_interval(0.95)
    two = page.check({"accuracy": (">=", 0.8), "recall": (">=", 0.8)}, confidence=0.9)["accuracy"].interval
    assert two.confidence == pytest.approx(0.95)
    assert tuple(two) == pytest.approx(tuple(one))
    of_these = page.check({"recall": (">=", 0.8)}, about="records")["recall"].interval
    assert tuple(of_these) == tuple(page["recall"].noise_interval(0.95))


def test_a_number_without_limits_cannot_tell():
    target = np.random.default_rng(0).normal(size=4000)
    page = dp.private_evaluate(target, y_pred=target + 1.0, task="regression", epsilon=2.0)
    verdict = page.check({"mae": ("<=", 10.0)})["mae"]
    assert verdict.answer == "cannot tell"
    assert verdict.note


def test_an_area_that_bins_hide_is_not_said_to_be_too_small():
    """Boosted trees of few rounds have scores near 1/2: here the area is .92, and that of their bins .84."""
    score = np.random.default_rng(0).normal(Y, 0.5, size=Y.size)
    near = 0.5 + 0.01 * np.tanh(score - 0.5)
    page = dp.private_evaluate(Y, y_score=near, labels=[0, 1], epsilon=2.0)
    found = page.check({"roc auc": (">=", 0.91)})["roc auc"]
    assert found.answer == "cannot tell"
    assert "Bins too coarse" in found.interval.note
    for kind in ("noise_interval", "population_interval"):
        low, high = getattr(page["roc auc"], kind)()
        assert low < 0.91 < high
        low, high = getattr(page["average precision"], kind)()
        assert 0.0 < low < high <= 1.0


def test_all_metrics_of_pages_can_be_required():
    rng = np.random.default_rng(0)
    truth, score = np.arange(3000) % 2, np.linspace(0.01, 0.99, 3000)
    several, target = np.arange(3000) % 3, rng.normal(size=3000)
    shown = set()
    for data, options in (
        ((truth,), {"y_score": score}),
        ((several, several), {"labels": [0, 1, 2]}),
        ((target, target), {"bounds": (-3, 3), "task": "regression"}),
        ((truth,), {"y_score": score, "sensitive_features": truth, "group_labels": [0, 1]}),
    ):
        numbers = dp.private_evaluate(*data, epsilon=20, **options).numbers
        shown |= {one.metric for one in numbers.values()}
        assert parsed(f"{name}>=0" for name in numbers).keys() == numbers.keys()
    assert shown == METRICS
    asked = parsed([" recall in 'a' < .5 ", "f1 (macro)>0", "roc auc difference <= .1"])
    assert [*asked.values()] == [("<", 0.5), (">", 0.0), ("<=", 0.1)]
