"""The auditor accepts what the package ships and rejects deliberately broken mechanisms."""

import math
from dataclasses import replace
from fractions import Fraction
from functools import partial
from itertools import pairwise

import numpy as np
import pytest
from helpers import loss_query, variance_query

import dp_metrics as dp
from dp_metrics.analysis import auditing
from dp_metrics.analysis.auditing import AUDITED, law_loss
from dp_metrics.cli.main import main
from dp_metrics.mechanisms import MECHANISMS, AboveThreshold, Hazard
from dp_metrics.mechanisms.adaptive import Stages
from dp_metrics.mechanisms.comparators import LaplaceLaw
from dp_metrics.metrics import METRICS


def test_every_metric_is_audited_without_a_limit_and_with_every_mechanism():
    for name, row in METRICS.items():
        plain, limited = (
            AUDITED[key][2].keys()
            for key in (name, name if row.limit is None else f"{name}, {', '.join(row.limit)}")
        )
        assert limited == (MECHANISMS.keys() if row.mechanism else {"noisy counts"})
        assert plain == (limited if row.limit is None else limited & {"adaptive", "hazard"})
    assert any(
        released.func is dp.PrivateMetricFrame and "neighboring" in released.keywords
        for released, _, _ in AUDITED.values()
    )


@pytest.mark.parametrize("monotonic", [True, False])
def test_hazard_loss_is_the_largest_ratio_of_the_exact_output_law(monotonic):
    mechanism, epsilon, rng = Hazard(resolution=40.0), 1.0, np.random.default_rng(0)
    shares = []
    for _ in range(30):
        a = rng.integers(0, 4, size=6) / 3
        b = a.copy()
        b[0] = rng.integers(0, 4) / 3
        make, limit = (loss_query, 1.0) if monotonic else (variance_query, (0.0, 1.0))
        bounds = [make(x, limit).output_bounds(mechanism, epsilon) for x in (a, b)]
        laws = [mechanism.output_distribution(each, epsilon) for each in bounds]
        p, q = (rational_law(law) for law in laws)
        brute = max(abs(math.log(x / y)) for x, y in zip(p, q, strict=True))
        exact = auditing.privacy_loss(mechanism, *bounds, epsilon=epsilon)
        # the loss of the crossing point bounds that of the grid point, and is close to it
        assert brute <= exact * (1 + 1e-12)
        shares += [brute / exact] if exact else []
    assert min(shares) > 0.95


@pytest.mark.parametrize("centres", [(0.3, 0.9), (0.0, 1.0), (1.0, 0.4), (0.5, 0.5)])
def test_laplace_loss_is_the_largest_ratio_of_the_cells_and_the_ends_of_the_range(centres):
    laws = [LaplaceLaw(centre, 0.25, (0.0, 1.0)) for centre in centres]
    cells = [np.diff(law.cdf(np.linspace(0.0, 1.0, 201)), prepend=0.0) for law in laws]  # with both ends
    assert law_loss(*laws) == pytest.approx(auditing.finite_loss(*cells), rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("epsilon", [0.1, 4.0])
@pytest.mark.parametrize(("make", "limit"), [(loss_query, 1.0), (variance_query, (0.0, 1.0))])
def test_above_threshold_loss_is_the_largest_ratio_of_the_candidates(make, limit, epsilon):
    mechanism, x = AboveThreshold(beta=1.05), np.array([0.0, 0.2, 0.2, 0.6, 1.0, 1.0])
    bounds = [make(each, limit).output_bounds(mechanism, epsilon) for each in (x, np.r_[x[:-1], 0.1])]
    laws = [mechanism.output_distribution(each, epsilon) for each in bounds]
    of_law = [np.diff(law.index_cdf(np.arange(-1, law.grid.last + 1))) for law in laws]  # by its quadrature
    exact = auditing.privacy_loss(mechanism, *bounds, epsilon=epsilon)
    assert exact == pytest.approx(auditing.finite_loss(*of_law), rel=1e-6)


def rational_law(law):
    """Return P(number = k) for every k, as rational numbers."""
    q, total, h = Fraction(law.q), Fraction(0), [Fraction(0)]
    for run, (start, end) in enumerate(pairwise(law.edges.tolist())):
        for _ in range(end - start):
            total += q ** (law.counts.size // 2 - run)
            x = total / 256
            h.append(law.below * x**law.power if x <= 1 else 1 - (1 - law.below) / x**3)
    return [after - before for before, after in pairwise([*h, Fraction(1)])]


# --- what must be rejected -------------------------------------------------------------------


@pytest.mark.parametrize("neighboring", ["replace_one", "add_or_remove_one"])
def test_a_metric_of_ones_own_loses_what_the_metric_inside_it_loses(neighboring):
    """In two stages, and with noisy sizes of the classes: all that the mechanism prepares counts."""
    x, labels = np.array([0.3, 0.0, 1.0, 1.0]), np.array([1, 0, 1, 0])
    other = x[:-1] if neighboring == "add_or_remove_one" else np.r_[x[:-1], 0.0]
    for metric, a, b, mechanism in (
        (dp.private_mean_loss, [x], [other], dp.mechanisms.Adaptive(threshold=1e-9)),
        (dp.private_roc_auc_score, [labels, x], [labels[: other.size], other], dp.mechanisms.Hazard()),
        (dp.private_mean_loss, [x], [other], dp.mechanisms.Geometric()),
    ):
        options = {"epsilon": 3.0, "mechanism": mechanism, "neighboring": neighboring}
        if metric is dp.private_mean_loss:
            options["max_loss"] = 1.0
        own = auditing.release_loss(
            lambda *data, metric=metric, **given: metric(*data, **given), a, b, **options
        )
        assert own == auditing.release_loss(metric, a, b, **options) > 0


# --- interface -------------------------------------------------------------------------------


def test_report_names_claim_finding_and_pair():
    result = auditing.AuditResult("m", 1.0, 0.5, (np.zeros(3), np.array([0, 2.0, 0])), 7)
    assert "PASS" in str(result)
    assert "record 1 replaced by 2" in str(result)
    assert "FAIL" in str(replace(result, worst=1.5))
    assert replace(result, worst=1.0 + 1e-10, tolerance=1e-9).passed


def test_what_has_no_exact_comparison_is_refused():
    bounds = loss_query(np.ones(5), 1.0).output_bounds(Hazard())
    laws = [mechanism.output_distribution(bounds, 1.0) for mechanism in (Hazard(), AboveThreshold())]
    with pytest.raises(TypeError, match="No exact comparison"):
        law_loss(*laws)
    bounds = loss_query(np.ones(5)).output_bounds(AboveThreshold())
    with pytest.raises(TypeError, match="2000 candidates"):
        auditing.privacy_loss("above_threshold", bounds, bounds, epsilon=1.0)


@pytest.mark.slow
@pytest.mark.weekly(reason="minutes; the sample has each of its rows, by one mechanism")
def test_full_audit_of_the_command_line_passes(capsys):
    assert main(["audit"]) == 0
    report = capsys.readouterr().out
    assert "FAIL" not in report
    assert "PASS" in report


@pytest.mark.gate
def test_audit_command_prints_json(capsys, monkeypatch):
    few = ("private_mae", "private_mae, bounds")
    monkeypatch.setattr("dp_metrics.analysis.auditing.AUDITED", {name: AUDITED[name] for name in few})
    assert main(["audit", "--epsilon", "4", "--records", "3", "--steps", "0", "--json"]) == 0
    assert '"passed": true' in capsys.readouterr().out


@pytest.mark.parametrize("labels", [2, 4])
def test_public_sizes_that_differ_are_an_infinite_loss(labels):
    """Rows filtered by a private column, whatever the noise: independent, or with sum 0."""
    options = {"labels": range(labels), "average": "macro", "epsilon": 1.0}
    rows = ([0, 1], [0, 1]), ([0, 1, 1], [0, 1, 1])
    assert auditing.release_loss(dp.private_f1_score, *rows, **options) == math.inf


def limited(x, **settings):
    return dp.private_mean(x, bounds=(0, max(x)), **settings)


def limited_for_each_group(x, **settings):
    metric, same = partial(dp.private_mse, bounds=(0, max(x))), np.ones_like(x)
    data = {"y_true": x, "y_pred": x, "sensitive_features": same}
    dp.PrivateMetricFrame(metrics=metric, **data, group_labels=[0.0, 1.0], **settings)


@pytest.mark.parametrize("limited", [limited, limited_for_each_group])
def test_a_limit_that_is_taken_from_the_records_is_an_infinite_loss(limited):
    x = np.array([0.25, 0.25, 0.75, 1.0])
    assert auditing.release_loss(limited, [x], [np.append(x[:-1], 0.9)], epsilon=1.0) == math.inf


def test_all_releases_of_a_function_are_added_up():
    def twice(x, **settings):
        return [dp.private_mean(x, bounds=(0, 1), **settings) for _ in range(2)]

    pair = [[0.0, 0.0, 1.0]], [[0.0, 0.0, 0.0]]
    once = auditing.release_loss(dp.private_mean, *pair, epsilon=1.0, bounds=(0, 1))
    assert auditing.release_loss(twice, *pair, epsilon=1.0) == 2 * once > 1


def test_what_only_one_of_two_data_sets_releases_is_an_infinite_loss():
    def if_large(x, **settings):
        return dp.private_mean(x, bounds=(0, 1), **settings) if max(x) == 1 else 0.0

    assert auditing.release_loss(if_large, [[0.5, 1.0]], [[0.5, 0.5]], epsilon=1.0) == math.inf


def test_an_outcome_of_one_law_only_is_an_infinite_loss():
    certain, either, other = [1.0, 0.0, 0.0], [0.5, 0.5, 0.0], [0.0, 1.0, 0.0]
    for pair in ((certain, either), (either, certain), (certain, other)):
        assert auditing.finite_loss(*pair) == math.inf
    assert auditing.finite_loss(either, either) == 0  # what neither law gives counts for nothing


def test_losses_whose_ratios_are_no_floats_are_compared():
    """The least hazard ratio is the smallest float; a record moves a likelihood by four factors of it."""
    x = [5.0] * 6
    pair = [x], [[*x[:-1], 0.0]]
    loss = auditing.release_loss(dp.private_mean_loss, *pair, epsilon=3000.0, mechanism="hazard")
    assert loss == pytest.approx(-4 * math.log(math.ulp(0.0)))


def test_a_defect_that_only_a_large_noisy_count_shows_is_found(monkeypatch):
    def with_little_noise(self, clipped, private_n, of=Stages.second_law):
        return of(replace(self, epsilon=1000 * self.epsilon), clipped, private_n)

    pair = ([0.0, 1.0, 2.0, 9.0],), ([0.0, 1.0, 2.0],)
    loss = partial(auditing.release_loss, "mean_loss", *pair, epsilon=1.0, neighboring="add_or_remove_one")
    assert 0.9 < loss() <= 1 + 1e-9
    monkeypatch.setattr(Stages, "second_law", with_little_noise)
    assert loss() > 100


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("bounds", [(0.0, 1.0), (0.0, 1e-200)])
def test_what_never_changes_loses_nothing(mechanism, bounds):
    """The variance of one record is 0, and so is the largest that such narrow bounds allow, as a float."""
    rule = AboveThreshold(beta=1.2, max_candidates=300) if mechanism == "above_threshold" else mechanism
    loss = partial(auditing.release_loss, "variance", epsilon=1.0, bounds=bounds, mechanism=rule)
    assert loss([[0.0]], [[1.0]]) <= 1.0
    if mechanism == "laplace" or bounds[1] < 1.0:
        assert loss([[0.0]], [[1.0]]) == 0.0
