"""Findings: what the sentences say must be what the rows hold."""

import pytest

from dp_metrics.evaluation.findings import find
from dp_metrics.evaluation.studies import BETAS
from dp_metrics.evaluation.summary import summarise

ERRORS = {
    "hazard": 0.1,
    "above_threshold": 0.2,
    "paper": 0.3,
    "inverse_sensitivity": 3.0,
    "laplace": 1.0,
    "clipped_mean": 0.5,
}


def errors(make_row, changes=(), **fields):
    """Return rows in which each mechanism has one relative error."""
    table = ERRORS | dict(changes)
    return [
        make_row(mechanism=m, epsilon=e, repeat=i, release=2.0 - 2.0 * x / e, **fields)
        for m, x in table.items()
        for e in (1.0, 2.0)
        for i in range(2)
    ]


def the(findings, heading):
    (found,) = [f for f in findings if heading in f.heading]
    return found


def test_summary_by_hand(make_row):
    releases = (2.0, 3.0, 2.5, 0.1, 50.0)
    (line,) = summarise([make_row(repeat=i, release=x) for i, x in enumerate(releases)]).itertuples()
    assert (line.repeats, line.n, line.bounded) == (5, 1000, 1)
    assert line.mean == line.raw_mean == pytest.approx((0 + 1 + 0.5 + 1.9 + 48) / 5 / 2)
    assert line.median == pytest.approx(0.5)
    assert line.bias == pytest.approx((0 + 1 + 0.5 - 1.9 + 48) / 5 / 2)
    assert line.high - line.mean == pytest.approx(line.mean - line.low)
    assert (line.stopped, line.overshot) == (0.2, 0.2)
    assert line.exact == pytest.approx(0.2)
    assert line.sampling == pytest.approx(0.05)


def test_errors_without_bounds_are_capped(make_row):
    (line,) = summarise(
        [make_row(bounded=0, repeat=i, release=x) for i, x in enumerate((3.0, 1e300))]
    ).itertuples()
    assert line.mean == pytest.approx((0.5 + 10) / 2)
    assert line.bias == pytest.approx((0.5 + 10) / 2)
    assert line.raw_mean > 1e299


def test_who_wins(make_row):
    findings = find(errors(make_row))
    against = the(findings, "against inverse sensitivity")
    assert against.verdict == "agrees with the paper"
    assert "2 of 2 cases" in against.sentences[0]
    assert "10 times as large" in against.sentences[0]
    assert against.table.rows == (("bike, MSE", "10", "10"),)
    assert "30 times as large" in against.sentences[2]
    gain = the(findings, "What hazard gains")
    assert "in 2 of 2 cases" in gain.sentences[0]
    assert "2 (AboveThreshold (our settings)), 3 (AboveThreshold (paper preset))" in gain.sentences[-1]


def test_who_loses(make_row):
    rows = errors(make_row, {"inverse_sensitivity": 0.05})
    findings = find(rows)
    against = the(findings, "against inverse sensitivity")
    assert against.verdict == "differs from the paper"
    assert "0 of 2 cases" in against.sentences[0]
    assert "It does not win for: bike, MSE at epsilon 1 (0.17 times)" in against.sentences[1]
    gain = the(findings, "What hazard gains")
    assert "in 0 of 2 cases" in gain.sentences[0]
    assert "bike, MSE at epsilon 1, 2: inverse sensitivity is up to 2 times better" in gain.sentences[1]


def test_sampling_error_is_the_yardstick(make_row):
    found = the(find(errors(make_row)), "Does privacy cost anything")
    assert "0 of 1 tasks at epsilon 1, 0 of 1 tasks at epsilon 2" in found.sentences[0]
    found = the(find(errors(make_row, sampling_error=0.15)), "Does privacy cost anything")
    assert "0 of 1 tasks at epsilon 1, 1 of 1 tasks at epsilon 2" in found.sentences[0]
    assert found.table.rows == (("bike, MSE", "1.3", "0.67"),)


def test_early_stops(make_row):
    rows = errors(make_row, {"paper": 0.95})
    found = the(find(rows), "100 ranks are too few at epsilon 1")
    assert "in 100 to 100 % of the runs" in found.sentences[0]
    assert found.table.rows == (("bike, MSE", "100 %", "0 %", "0 %"),)


def test_overshoots(make_row):
    rows = [
        make_row(figure="unbounded-losses", bounded=bounded, setting=setting, mechanism=m, repeat=i,
                 release=x, overshoot=chance)
        for setting, bounded in (("bounded", 1), ("unbounded", 0))
        for m, chance in (("paper", 1e-3), ("above_threshold", 1e-6), ("hazard", 1e-9))
        for i, x in enumerate((2.1, 2.2, 2e9 if m == "paper" and not bounded else 2.1))
    ]  # fmt: skip
    findings = find(rows)
    found = the(findings, "overshoot")
    assert "1.0e-03" in found.sentences[0]
    assert found.table.rows[0][:3] == ("MSE, MAE: AboveThreshold (paper preset)", "1 of 3", "1.0e-03")
    assert found.table.rows[1][1] == "0 of 3"
    without = the(findings, "MSE and MAE without public bounds")
    assert without.verdict == "differs from the paper"


def test_beta(make_row):
    rows = [
        make_row(figure="beta", metric="variance", column="cnt", mechanism="paper", setting=f"beta={beta:g}",
                 repeat=i, release=2.0 + x)
        for beta, x in zip(BETAS, (0.4, 0.3, 0.2, 0.1, 0.2, 0.3), strict=True)
        for i in range(2)
    ]  # fmt: skip
    found = the(find(rows), "beta")
    assert "by 0.5" in found.sentences[0]
    assert "a factor of 4, the best being 1.01" in found.sentences[1]
    assert found.verdict == "agrees in part"


@pytest.mark.parametrize(("sign", "verdict"), [(1, "agrees with the paper"), (-1, "differs from the paper")])
def test_asymmetry(make_row, sign, verdict):
    rows = [
        make_row(figure="asymmetry", dataset="simulated", metric=("uniform", "heavy-tailed")[i % 2], repeat=i,
                 mechanism=m, setting=f"asymmetry={i / 60:.6f}", expected_error=x)
        for i in range(30)
        for m, x in (("inverse_sensitivity", 2.0 ** (sign * i)), ("paper", 1.0), ("hazard", 0.5))
    ]  # fmt: skip
    assert the(find(rows), "What asymmetry is worth").verdict == verdict


def test_a_partial_run_has_partial_findings(make_row):
    assert find([make_row(figure="illustrations")]) == []
    only = find([make_row()])
    assert [finding.heading[:12] for finding in only] == ["What hazard ", "Does privacy"]
