"""What an interval shows of itself."""

import math

import numpy as np
import pytest
from helpers import MAX, loop_over

import dp_metrics as dp
from dp_metrics.page.requirements import Verdict, Verdicts
from dp_metrics.release.released import Interval


def test_an_interval_unpacks_and_says_what_it_is_about():
    interval = Interval(
        0.25, float("inf"), 0.95, "The exact mean of these records.", "No upper limit exists."
    )
    assert tuple(interval) == (0.25, float("inf"))
    assert len(interval) == 2
    assert (interval[0], interval[1], interval[-1]) == (0.25, float("inf"), float("inf"))
    assert interval[:] == (0.25, float("inf"))
    with pytest.raises(IndexError):
        interval[2]
    assert str(interval) == (
        "[0.25, no limit] with confidence 95 %. The exact mean of these records. No upper limit exists."
    )


@loop_over(
    ("confidence", "text"),
    [(0.95, "95"), (0.29, "29"), (0.9999999, "99.99999"), (1 - 1e-12, "99.9999999999")],
)
def test_a_confidence_below_1_is_not_said_to_be_100(confidence, text):
    assert f" with confidence {text} %. " in str(Interval(0.0, 1.0, confidence, "It."))


@loop_over("lower", [0.25, -MAX, -np.inf])
@loop_over("upper", [0.5, MAX, np.inf])
def test_a_limit_at_the_largest_float_is_none_wherever_it_is_shown(lower, upper):
    """By an interval, as numbers, and as text; a page, the command line and requirements ask it."""
    interval = Interval(lower, upper, 0.95, "The exact mean of these records.")
    several = Interval(np.array([lower, 0.0]), np.array([upper, 1.0]), 0.95, "The means.")
    has = lower == 0.25, upper == 0.5
    assert np.isfinite(tuple(interval)).tolist() == [*has]
    assert [np.isfinite(end[0]) for end in several] == [*has]
    assert (several.lower[1], several.upper[1]) == (0.0, 1.0)
    words = {(True, True): "0.25 to 0.5", (True, False): "at least 0.25", (False, True): "at most 0.5"}
    checked = Verdict("mse <= 1", "cannot tell", interval, "")
    result = Verdicts({"mse": checked}, "people", 0.95)
    for text in (interval.in_words(), result.rows()[0][2]):
        assert text == words.get(has, "no limit")
    for text in (str(interval), str(several)):
        assert ("no limit" in text) == (not all(has))
    for text in (str(interval), repr(interval), repr(result)):
        assert "e+308" not in text


def test_limits_in_words_still_hold():
    interval = Interval(0.12345678, 0.98765432, 0.95, "It.")
    assert interval.in_words() == "0.123456 to 0.987655"
    assert interval.in_words("{:.2f}".format) == "0.12 to 0.99"
    assert Interval(-1 / 3, math.inf, 0.95, "It.").in_words() == "at least -0.333334"


def test_a_limit_that_is_the_largest_float_from_above_stays():
    """A lower limit that large says much; it is cut at the largest float, below which it still holds."""
    assert Interval(MAX, MAX, 0.95, "").lower == MAX
    assert Interval(-MAX, -MAX, 0.95, "").upper == -MAX


def test_limits_of_several_numbers_say_that_they_hold_at_once():
    rng = np.random.default_rng(0)
    y, called = rng.integers(3, size=(2, 900))
    options = {"epsilon": 1.0, "labels": [0, 1, 2]}
    each = dp.with_result(dp.private_recall_score)(y, called, average=None, **options)
    one = dp.with_result(dp.private_recall_score)(y, called, average="macro", **options)
    for ask in ("noise_interval", "population_interval"):
        assert "95 %, all at once." in str(getattr(each, ask)())
        assert "95 %." in str(getattr(one, ask)())
