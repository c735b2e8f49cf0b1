"""What an interval shows of itself."""

import pytest

from dp_metrics.inputs.options import check_confidence
from dp_metrics.release.interval import Interval


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
        "[0.25, inf] with confidence 95 %. The exact mean of these records. No upper limit exists."
    )


@pytest.mark.parametrize(
    ("confidence", "text"),
    [(0.95, "95"), (0.29, "29"), (0.9999999, "99.99999"), (1 - 1e-12, "99.9999999999")],
)
def test_a_confidence_below_1_is_not_said_to_be_100(confidence, text):
    assert f" with confidence {text} %. " in str(Interval(0.0, 1.0, confidence, "It."))


@pytest.mark.parametrize("confidence", [0, 1, -0.1, 95, float("nan"), "0.95", None])
def test_a_confidence_lies_between_0_and_1(confidence):
    with pytest.raises((ValueError, TypeError)):
        check_confidence(confidence)
    assert check_confidence(0.5) == 0.5
