"""Requirements: pass, fail or cannot tell, right at once with the confidence."""

import numpy as np
import pytest

import dp_metrics as dp
from dp_metrics.page.requirements import parsed

Y = np.array([0, 1] * 2000)
PRED = np.where(np.arange(4000) % 10 == 0, 1 - Y, Y)


@pytest.fixture(scope="module")
def page():
    return dp.private_evaluate(Y, y_pred=PRED, labels=[0, 1], epsilon=2.0)


def test_verdicts(page):
    found = page.check({"accuracy": (">=", 0.8), "recall": ("<", 0.5), "precision": (">", 0.8)})
    assert {name: one.answer for name, one in found.items()} == {
        "accuracy": "pass",
        "recall": "fail",
        "precision": "pass",
    }
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


def test_of_these_records(page):
    interval = page.check({"recall": (">=", 0.8)}, about="records")["recall"].interval
    assert tuple(interval) == tuple(page["recall"].noise_interval(0.95))


def test_a_number_without_limits_cannot_tell():
    score = np.where(PRED == 1, 0.9, 0.2)
    page = dp.private_evaluate(Y, score, labels=[0, 1], epsilon=2.0)
    verdict = page.check({"average precision": (">=", 0.1)})["average precision"]
    assert verdict.answer == "cannot tell"
    assert verdict.note


@pytest.mark.parametrize(
    "asked",
    [{}, [], {"nothing": (">=", 1)}, {"recall": 0.5}, {"recall": ("==", 0.5)}, {"recall": (">=", "a")}],
)
def test_what_is_no_requirement_is_refused(page, asked):
    with pytest.raises(ValueError, match=r"requirement|no number of this page"):
        page.check(asked)


def test_parsed():
    assert parsed("recall>=0.8") == ("recall", (">=", 0.8))
    assert parsed(" recall in 'a' < .5 ") == ("recall in 'a'", ("<", 0.5))
    for wrong in ("recall", "recall=0.5", ">=1", "recall>=x"):
        with pytest.raises(ValueError, match="no requirement"):
            parsed(wrong)
