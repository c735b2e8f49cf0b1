"""Whoever types a wrong name is told the one that was meant."""

from dp_metrics.inputs.names import did_you_mean


def test_the_closest_name_is_offered_and_no_far_one():
    known = ["hazard", "laplace", "geometric"]
    assert did_you_mean("Laplase", known) == " Did you mean 'laplace'?"
    assert did_you_mean("hazard_", known) == " Did you mean 'hazard'?"
    for far in ("gauss", "", 3, None, ["hazard"]):
        assert did_you_mean(far, known) == ""
    assert did_you_mean("hazard", []) == ""
