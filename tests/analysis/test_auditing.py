"""The auditor accepts what the package ships and rejects deliberately broken mechanisms."""

import math
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

import dp_metrics as dp
from dp_metrics import auditing
from dp_metrics.analysis.audited import AUDITED, FRAMES, PLANS, run_audit, to_table
from dp_metrics.analysis.simulation import loss_output_bounds, variance_output_bounds
from dp_metrics.cli.main import main
from dp_metrics.mechanisms import AboveThreshold, Hazard
from dp_metrics.metrics import METRICS
from dp_metrics.release.together import Share, Together
from dp_metrics.sensitivity.exact import BLOCK

ONES = np.ones(10)
ZEROS = np.zeros(10)


def test_every_metric_is_audited_without_a_limit_and_with_every_mechanism():
    plain = {
        audited.metric
        for audited in AUDITED.values()
        if not (audited.options or audited.bounded or audited.adds)
    }
    bounded = {audited.metric for audited in AUDITED.values() if audited.bounded}
    assert plain == {name for name, row in METRICS.items() if row.limit is not None}
    assert bounded == METRICS.keys()
    assert any(audited.adds for audited in FRAMES.values())


@pytest.mark.parametrize("monotonic", [True, False])
def test_hazard_loss_is_the_largest_ratio_of_the_exact_output_law(monotonic):
    mechanism, epsilon, rng = Hazard(resolution=40.0), 1.0, np.random.default_rng(0)
    largest = 0.0
    for _ in range(30):
        a = rng.integers(0, 4, size=6) / 3
        b = a.copy()
        b[0] = rng.integers(0, 4) / 3
        make = loss_output_bounds if monotonic else variance_output_bounds
        options = {"max_loss": 1.0} if monotonic else {"bounds": (0.0, 1.0)}
        bounds = [make(x, mechanism=mechanism, epsilon=epsilon, **options) for x in (a, b)]
        laws = [mechanism.output_distribution(each, epsilon) for each in bounds]
        p, q = (rational_law(law) for law in laws)
        brute = max(abs(math.log(x / y)) for x, y in zip(p, q, strict=True))
        exact = auditing.privacy_loss(mechanism, *bounds, epsilon=epsilon)
        # the loss of the crossing point bounds that of the grid point, and is close to it
        assert brute <= exact * (1 + 1e-12)
        largest = max(largest, brute / exact if exact else 0.0)
    assert largest > 0.9


def rational_law(law):
    """Return P(number = k) for every k, as rational numbers."""
    q, total, h = Fraction(law.q), Fraction(0), [Fraction(0)]
    for run, (start, end) in enumerate(pairwise(law.runs.edges.tolist())):
        for _ in range(end - start):
            total += q ** -int(law.runs.levels[run])
            x = total / 256
            h.append(law.below * x**law.power if x <= 1 else 1 - (1 - law.below) / x**3)
    return [after - before for before, after in pairwise([*h, Fraction(1)])]


def test_candidate_probabilities_agree_with_the_law_of_above_threshold():
    bounds = loss_output_bounds(
        np.linspace(0, 1, 20), max_loss=1.0, mechanism=AboveThreshold(beta=1.3), epsilon=1.0
    )
    law = AboveThreshold(beta=1.3).output_distribution(bounds, 1.0)
    from dp_metrics.analysis._law_comparison import _candidate_probabilities

    probabilities = _candidate_probabilities(law)
    numbers = np.arange(law.grid.first, law.grid.last + 1)
    np.testing.assert_allclose(np.cumsum(probabilities), law.index_cdf(numbers), atol=1e-11)


# --- what must be rejected -------------------------------------------------------------------


@pytest.mark.parametrize("neighboring", ["replace_one", "add_or_remove_one"])
def test_a_metric_of_ones_own_loses_what_the_metric_inside_it_loses(neighboring):
    """In two stages, and with noisy sizes of the classes: all that the mechanism prepares counts."""
    x, labels = np.array([0.3, 0.0, 1.0, 1.0]), np.array([1, 0, 1, 0])
    other = x[:-1] if neighboring == "add_or_remove_one" else np.r_[x[:-1], 0.0]
    for metric, a, b, mechanism in (
        (dp.private_mean_loss, [x], [other], dp.Adaptive(threshold=1e-9)),
        (dp.private_roc_auc_score, [labels, x], [labels[: other.size], other], dp.Hazard()),
        (dp.private_mean_loss, [x], [other], dp.Geometric()),
    ):
        options = {"epsilon": 3.0, "mechanism": mechanism, "neighboring": neighboring}
        if metric is dp.private_mean_loss:
            options["max_loss"] = 1.0
        own = auditing.metric_loss(
            lambda *data, metric=metric, **given: metric(*data, **given), a, b, **options
        )
        assert own == auditing.metric_loss(metric, a, b, **options) > 0


def test_rejects_above_threshold_without_threshold_noise():
    rng, eps2, size = np.random.default_rng(1), 1 / 3, 200_000
    # 60 candidates at distance 7 under one data set and 8 under its neighbour, then the metric
    a, b = (np.minimum(rng.geometric(math.exp(-eps2 * (distance - 0.5)), size), 61) for distance in (7, 8))
    assert auditing.loss_lower_bound(a, b) > 1.0


def test_rejects_noise_drawn_once_for_all_queries():
    rng, epsilon, size = np.random.default_rng(2), 1.0, 50_000
    z = rng.exponential(2 / epsilon, size) - rng.exponential(2 / epsilon, size)
    # the scores of neighbours, each a step apart: candidate 1 can never be the first to pass under a
    a, b = (
        (z[:, np.newaxis] > np.array(scores)).sum(axis=1) for scores in ([-0.5, -0.5, 0.5], [-1.5, -0.5, 0.5])
    )
    assert auditing.loss_lower_bound(a, b) > 1.0


def test_rejects_a_fixed_cut_off_of_the_cumulative_hazard():
    mechanism, epsilon, size = Hazard(scale=1e-9), 1.0, 50_000
    rng, outputs = np.random.default_rng(3), []
    for losses in (np.full(20, 0.5), np.r_[np.full(19, 0.5), 1.0]):
        bounds = loss_output_bounds(losses, max_loss=1.0, mechanism=mechanism, epsilon=epsilon)
        law = mechanism.output_distribution(bounds, epsilon)
        u = rng.random(size)
        number = law.crossing(law.level(u, 1 - u))
        cut = law.crossing(np.array([300.0]))
        outputs.append(np.minimum(number, cut))
    assert auditing.loss_lower_bound(*outputs) > epsilon


@pytest.mark.filterwarnings("ignore::dp_metrics.SeededReleaseWarning")
def test_rejects_a_seeded_scorer():
    a, b = ZEROS, np.r_[1.0, ZEROS[1:]]
    samples = [[dp.private_mse(ZEROS, x, epsilon=1.0, random_state=0) for _ in range(200)] for x in (a, b)]
    assert auditing.loss_lower_bound(*samples) > 1.0


def test_rejects_a_mean_over_what_is_not_nan_with_noise_for_n():
    rng, n, size = np.random.default_rng(4), 1000, 2000
    a, b = np.full(n, np.nan), np.full(n, np.nan)
    a[0], b[0] = 0.0, 1.0
    samples = [np.nanmean(x) + rng.laplace(0, 1 / (n * 1.0), size) for x in (a, b)]
    assert auditing.loss_lower_bound(*samples) > 1.0


def best_score_law(high, *, gamma, cap=None):
    """Return the law of the best of a geometric number of scores, each 1 with probability `high`, else 0."""
    if cap is None:
        none = gamma * (1 - high) / (1 - (1 - gamma) * (1 - high))
    else:  # what drawing without replacement from `cap` candidates does
        trials = np.arange(1, cap)
        none = np.sum(gamma * (1 - gamma) ** (trials - 1) * (1 - high) ** trials)
        none += (1 - gamma) ** (cap - 1) * (1 - high) ** cap
    return [none, 1 - none]


def test_rejects_a_search_without_replacement():
    e, gamma = 1.0, 1e-4
    likely = math.exp(e) / (1 + math.exp(e))  # randomised response: each score is exactly e-DP
    searches = {
        cap: auditing.finite_loss(
            *(best_score_law(high, gamma=gamma, cap=cap) for high in (likely, 1 - likely))
        )
        for cap in (None, 10)
    }
    assert searches[None] <= 3 * e
    assert searches[10] > 3 * e


# --- the black box ---------------------------------------------------------------------------


def test_black_box_bound_stays_below_the_true_loss():
    # false-alarm rate 0.001 for each of 40 seeds
    p = np.array([0.5, 0.3, 0.2])
    q = np.array([0.2, 0.3, 0.5])
    true = auditing.finite_loss(p, q)
    found = []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        found.append(auditing.loss_lower_bound(rng.choice(3, 20_000, p=p), rng.choice(3, 20_000, p=q)))
    assert max(found) <= true
    assert min(found) > 0.8 * true


def test_black_box_bound_of_equal_laws_is_near_zero():
    rng = np.random.default_rng(0)
    assert auditing.loss_lower_bound(rng.normal(size=10_000), rng.normal(size=10_000)) < 0.2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [(([1.0], [1.0] * 9), "at least 4"), (([1.0] * 9, [1.0] * 9, 1.5), "confidence")],
)
def test_black_box_refuses_bad_arguments(arguments, message):
    a, b, *confidence = arguments
    with pytest.raises(ValueError, match=message):
        auditing.loss_lower_bound(a, b, **({"confidence": confidence[0]} if confidence else {}))


# --- one support -----------------------------------------------------------------------------


@pytest.mark.parametrize("make", [loss_output_bounds, variance_output_bounds])
def test_releases_of_neighbours_share_one_support(make):
    mechanism, epsilon = Hazard(), 1.0
    rng = np.random.default_rng(5)
    x = rng.lognormal(size=500)
    y = x.copy()
    y[0] = 1e6
    laws = [
        mechanism.output_distribution(make(each, mechanism=mechanism, epsilon=epsilon), epsilon)
        for each in (x, y)
    ]
    assert laws[0].grid == laws[1].grid
    u = rng.random(100_000)
    for law, other in (laws, laws[::-1]):
        numbers = np.unique(law.crossing(law.level(u, 1 - u)))
        assert (law.grid.points(numbers) <= np.finfo(float).max).all()
        # each cell has a positive hazard under the neighbour, so each output is possible there
        hazard = other._hazard(numbers)
        assert (hazard > other._hazard(np.maximum(numbers - 1, 0))).sum() == numbers.size - (numbers[0] == 0)


# --- interface -------------------------------------------------------------------------------


def test_report_names_claim_finding_and_pair():
    result = auditing.AuditResult("m", 1.0, 0.5, (np.zeros(3), np.array([0, 2.0, 0])), 7)
    assert "PASS" in str(result)
    assert "record 1 replaced by 2" in str(result)
    assert "FAIL" in str(replace(result, worst=1.5))
    assert replace(result, worst=1.0 + 1e-10, tolerance=1e-9).passed


def test_laws_of_different_kinds_cannot_be_compared():
    bounds = loss_output_bounds(np.ones(5), max_loss=1.0, mechanism=Hazard(), epsilon=1.0)
    from dp_metrics.analysis._law_comparison import law_loss

    with pytest.raises(TypeError, match="No exact comparison"):
        law_loss(Hazard().output_distribution(bounds, 1.0), AboveThreshold().output_distribution(bounds, 1.0))


def test_too_many_candidates_for_an_exact_comparison_are_refused():
    bounds = loss_output_bounds(np.ones(5), mechanism=AboveThreshold(), epsilon=1.0)
    with pytest.raises(TypeError, match="2000 candidates"):
        auditing.privacy_loss("above_threshold", bounds, bounds, epsilon=1.0)


def test_data_of_more_than_a_block_keep_the_claim():
    x = np.ones(BLOCK + 1)
    y = np.r_[0.0, x[1:]]
    assert auditing.metric_loss(dp.private_mean_loss, [x], [y], epsilon=5.0, max_loss=1.0) <= 5.0


@pytest.mark.slow
def test_table_of_the_audit_has_a_row_per_metric():
    # by the last mechanism of each, the geometric one where there is a limit: the others are audited above
    findings = run_audit(
        [4.0], n=4, steps=0, progress=lambda plan: {claim[0]: claim for claim in plan}.values()
    )
    assert {finding.mechanism for finding in findings} == {"hazard", "geometric", "noisy counts"}
    table = to_table(findings).splitlines()
    assert len(table) == 2 + len(AUDITED) + len(FRAMES) + len(PLANS)
    assert all(finding.result.passed for finding in findings)


@pytest.mark.slow
@pytest.mark.weekly(reason="minutes; the sample has each of its rows, by one mechanism")
def test_full_audit_of_the_command_line_passes(capsys):
    assert main(["audit"]) == 0
    report = capsys.readouterr().out
    assert "FAIL" not in report
    assert "PASS" in report


def test_audit_command_prints_json(capsys, monkeypatch):
    few = ("private_mae", "private_mae, bounds")
    monkeypatch.setattr("dp_metrics.analysis.audited.AUDITED", {name: AUDITED[name] for name in few})
    assert main(["audit", "--epsilon", "4", "--records", "3", "--steps", "0", "--json"]) == 0
    assert '"passed": true' in capsys.readouterr().out


@pytest.mark.parametrize("labels", [2, 4])
def test_public_sizes_that_differ_are_an_infinite_loss(labels):
    """Rows filtered by a private column, whatever the noise: independent, or with sum 0."""
    options = {"labels": range(labels), "average": "macro", "epsilon": 1.0}
    rows = ([0, 1], [0, 1]), ([0, 1, 1], [0, 1, 1])
    assert auditing.metric_loss(dp.private_f1_score, *rows, **options) == math.inf
    moved = ([0, 1, 1], [0, 1, 1], [0, 0, 1]), ([0, 1, 1], [0, 1, 1], [0, 1, 1])
    public = {"group_labels": [0, 1], "epsilon": 1.0, "membership": "public"}
    assert auditing.frame_loss(dp.private_f1_score, *moved, **public) == math.inf


def halves(records):
    """Return the records of the lower and of the upper half of the unit interval."""
    (x,) = records.arrays
    return [replace(records, arrays=(half,)) for half in (x[x < 0.5], x[x >= 0.5])]


@pytest.mark.parametrize(("private_n", "epsilon"), [(True, 1), (True, 2), (False, 1)])
def test_several_plans_together_lose_what_their_shares_say(private_n, epsilon):
    """Sums of two halves, between which a record moves: a share for each, or infinite."""

    def together(shape):
        row = METRICS["private_mean"]
        plan = row.planned(replace(shape, n=None), {"bounds": (0, 1)}, private_n=private_n)
        plan = replace(plan, mechanisms=("geometric",))
        share = Share(plan, Fraction(epsilon, 2), private_n, "half")
        return Together((share, share), halves, tuple)

    a, b = np.array([0.25, 0.25, 0.75, 1.0]), np.array([0.75, 0.25, 0.75, 1.0])
    loss = auditing.plan_loss(together, [a], [b], epsilon=1.0)
    assert loss == (pytest.approx(epsilon) if private_n else math.inf)


def test_plans_that_differ_have_an_infinite_loss():
    """A limit that is taken from the records, in one plan or in one of several."""
    x = np.array([0.25, 0.25, 0.75, 1.0])

    def limited(shape, cap):
        return METRICS["private_mean"].planned(shape, {"bounds": (0, cap)}, private_n=False)

    def together(shape, cap):
        return Together((Share(limited(shape, cap), Fraction(1), False, ""),), lambda all: [all], tuple)

    for make in (limited, together):
        caps = iter((1, 2))
        assert auditing.plan_loss(
            lambda s, caps=caps, make=make: make(s, next(caps)), [x], [x], epsilon=1.0
        ) == (math.inf)
