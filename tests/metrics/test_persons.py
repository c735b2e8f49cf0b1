"""groups and max_records: all records of one person, by brute force and by the exact laws of releases."""

import itertools
from dataclasses import replace
from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from helpers import loop_over, new_session

import dp_metrics as dp
from dp_metrics._random import SeededEntropy
from dp_metrics.analysis._law_comparison import draw_loss
from dp_metrics.auditing import frame_loss, metric_loss
from dp_metrics.inference.comparison import comparison_plan
from dp_metrics.inference.paired_losses import paired_losses
from dp_metrics.inputs.options import check_groups, first_of_each
from dp_metrics.inputs.shape import Records
from dp_metrics.mechanisms import Geometric
from dp_metrics.metrics import FUNCTIONS, METRICS
from dp_metrics.release.stored.codec import decoded, encoded

SEVERAL = [name for name, row in METRICS.items() if "max_records" in row.options]
TABLES = [name for name in SEVERAL if METRICS[name].mechanism is None]
PERSONS = [0, 1, 0, 2, 1, 2, 1]  # person 0 has the records at 0 and 2, person 1 has three
OTHERS = {1: (0, 0.1), 3: (1, 0.9), 4: (1, 0.3), 5: (0, 0.6), 6: (1, 0.8)}
MORE = [(1, 0.9), (0, 0.9), (0, 0.1), (1, 0.9), (0, 0.2), (1, 0.3)]  # of a person each
KINDS = [(0, 0.05), (0, 0.95), (1, 0.05), (1, 0.95)]
Y = np.tile([1, 1, 0, 1, 0, 0], 60)
P = np.where(np.arange(Y.size) % 5 == 0, 1 - Y, Y)
OF_THREE = np.arange(Y.size) // 3


def data_of(name, first, second, more=()):
    """Return the data where person 0 has these two records."""
    records = {**OTHERS, 0: first, 2: second}
    true, score = (np.array(column) for column in zip(*(records[at] for at in range(7)), *more, strict=True))
    return true, (score > 0.5).astype(int) if METRICS[name].predicts_labels else score


def pairs_of_contents(some):
    """Return pairs of what person 0 may have."""
    contents = list(itertools.product(KINDS, repeat=2))
    return list(itertools.combinations(contents, 2))[:: 17 if some else 1]


@pytest.mark.parametrize("name", SEVERAL)
def test_over_all_that_one_person_can_change_the_exact_loss_is_epsilon_at_most(name):
    more = [] if name in TABLES else MORE  # bounds of few records are soon those of all data
    persons = [*PERSONS, *range(3, 3 + len(more))]
    public = {"epsilon": 0.5, "groups": persons, "max_records": 2}
    if (mechanism := METRICS[name].mechanism) is not None:
        public["mechanism"] = mechanism
    found = []
    for a, b in pairs_of_contents(name not in TABLES):
        data = data_of(name, *a, more), data_of(name, *b, more)
        found.append((metric_loss(name, *data, **public), data))
    worst = max(loss for loss, _ in found)
    assert worst <= 0.5 * (1 + 1e-9)
    # without the persons the same neighbours cost more, of a table twice what is promised
    del public["groups"], public["max_records"]
    alone = max(metric_loss(name, *data, **public) for _, data in found)
    assert alone > 1.5 * worst
    if name in TABLES:
        assert worst >= 0.5 * (1 - 1e-9)
        assert alone >= 2 * 0.5 * (1 - 1e-9)


MSE = partial(dp.private_mse, bounds=(0, 1), mechanism="piecewise_laplace")
IN_FRAMES = {
    "recall": "private_recall_score",
    "roc_auc": "private_roc_auc_score",
    "accuracy": None,
    MSE: None,
}


@loop_over("membership", ["private", "public"])
@pytest.mark.parametrize("metric", IN_FRAMES, ids=lambda one: str(getattr(one, "keywords", one)))
def test_a_person_in_several_groups_of_a_frame_costs_epsilon_at_most(metric, membership):
    public = {"epsilon": 0.5, "group_labels": [0, 1], "membership": membership}
    ends = KINDS[0], KINDS[2]  # right and missed
    contents = list(itertools.product([(kind, group) for kind in ends for group in (0, 1)], repeat=2))
    if membership == "public":  # each record stays in its group, and the two of person 0 in different ones
        contents = [((kind, 0), (other, 1)) for kind in KINDS for other in ends]

    def data(first, second):
        groups = np.array([first[1], 0, second[1], 1, 1, 0, 1])
        return *data_of(IN_FRAMES[metric] or "private_recall_score", first[0], second[0]), groups

    losses = [
        frame_loss(metric, data(*a), data(*b), **public, groups=PERSONS, max_records=2)
        for a, b in itertools.combinations(contents, 2)
    ]
    assert (0.15 if metric is MSE else 0.499) < max(losses) <= 0.5 * (1 + 1e-9)


@loop_over("mechanism", ["hazard", "adaptive", "geometric"])
def test_a_noisy_count_is_paid_for_by_all_records_of_a_person(mechanism):
    """Where membership is private the groups of a frame are released as if their sizes were."""
    row = METRICS["private_mse"]
    options = {"epsilon": 1.0, "neighboring": "add_or_remove_one", "mechanism": mechanism}
    release = row.settings(options={}, **options)
    plan = row.planned(row.form(), {"bounds": (0, 1)}, private_n=True)
    for k in (1, 3):
        _, epsilons, for_count = release.divided(replace(plan, most_records=k))
        assert sum(epsilons) + for_count == Fraction(1, k)
        assert (for_count > 0) == (mechanism != "geometric")


def test_a_frame_without_the_persons_costs_more():
    a = data_of("private_recall_score", KINDS[2], KINDS[2]), data_of("private_recall_score", *KINDS[1::2])
    sides = [(*one, [0, 0, 1, 1, 1, 0, 1]) for one in a]
    public = {"epsilon": 0.5, "group_labels": [0, 1]}
    assert (
        frame_loss("recall", *sides, **public, groups=PERSONS) < 0.5 < frame_loss("recall", *sides, **public)
    )


def compared(first, second, **public):
    """Return the draw of a comparison where person 0 has these two records, and the plan."""
    true, labels = data_of("private_recall_score", first, second)
    shape, records = Records.of((true, labels, 1 - np.arange(7) % 2), private_n=False)
    plan = comparison_plan(paired_losses("zero_one", shape, {}), 3, unit="persons", **public)
    known = plan.read(replace(records, groups=np.array(PERSONS)))
    return known.parts[0].prepare(Geometric(), Fraction(1, 2), private_n=False)


@pytest.mark.parametrize("public", [{}, {"max_difference": 1.0}])
def test_a_person_has_one_vote_in_a_comparison_however_many_records(public):
    draws = [compared(*content, **public) for content in itertools.product(KINDS, repeat=2)]
    losses = [draw_loss(a, b, 3) for a, b in itertools.combinations(draws, 2)]
    assert 0.5 * (1 - 1e-5) <= max(losses) <= 0.5


def test_the_loss_of_a_person_is_the_mean_over_all_records():
    """Person 0 has A wrong once in three, B twice; person 1 one record, on which B is right and A wrong."""
    true, a, b = [1, 1, 1, 1], [0, 1, 1, 0], [0, 0, 1, 1]
    found = dp.private_compare(true, a, b, epsilon=100.0, groups=["x", "x", "x", "y"])
    assert (found.n, found.unit, found.noisy_difference, found.noisy_decided) == (2, "persons", 0, 2)
    found = dp.private_compare(true, a, b, epsilon=1e4, groups=["x", "x", "x", "y"], max_difference=1)
    assert found.estimate == pytest.approx((1 / 3 - 1) / 2, abs=0.01)
    first = dp.private_compare(true, a, b, epsilon=100.0, groups=["x", "x", "x", "y"], max_records=1)
    assert (first.noisy_difference, first.noisy_decided) == (-1, 1)
    assert "2 persons" in str(found)
    assert "accuracy of A" not in str(first)


def test_the_first_records_of_each_are_kept_in_their_order():
    rows, codes, most = first_of_each(check_groups(["b", "a", "b", "b", "a"]), 2)
    assert (rows.tolist(), codes.tolist(), most) == ([0, 1, 2, 4], [0, 1, 0, 1], 2)
    rows, _, most = first_of_each(check_groups(["b", "a", "b", "b", "a"]), None)
    assert (rows.tolist(), most) == ([0, 1, 2, 3, 4], 3)
    assert first_of_each(check_groups(["b", "a", "c"]), 9)[2] == 1


def released(name, rows=..., **public):
    data = (np.array(column)[rows] for column in (Y, P if METRICS[name].predicts_labels else 0.8 * P + 0.1))
    return dp.with_result(FUNCTIONS[name])(*data, epsilon=1.0, random_state=SeededEntropy(3), **public)


@pytest.mark.parametrize("name", SEVERAL)
def test_a_release_is_that_of_the_kept_records(name):
    kept, one = np.flatnonzero(np.arange(Y.size) % 3 < 2), np.flatnonzero(np.arange(Y.size) % 3 == 0)
    cut = released(name, groups=OF_THREE, max_records=2)
    whole = released(name, kept, groups=OF_THREE[kept])
    np.testing.assert_equal(cut.value, whole.value)
    assert cut.n == kept.size
    # with one record of each a release is as if there were no persons
    np.testing.assert_equal(released(name, groups=OF_THREE, max_records=1).value, released(name, one).value)


@pytest.mark.parametrize("name", TABLES)
def test_the_noise_of_a_table_has_the_rate_of_all_records_of_a_person(name):
    (noise,) = released(name, groups=OF_THREE).noise.parts
    (alone,) = released(name).noise.parts
    assert {rate for _, rate in noise.rates} == {rate / 3 for _, rate in alone.rates}


def test_limits_of_the_noise_are_wider_and_those_of_all_people_refused():
    several, alone = (released("private_recall_score", **one) for one in ({"groups": OF_THREE}, {}))
    widths = [np.ptp([*one.noise_interval()]) for one in (several, alone)]
    assert 2 * widths[1] < widths[0] < 4 * widths[1]
    one = released("private_recall_score", groups=OF_THREE, max_records=1)
    assert one.population_interval().upper <= 1
    frame = dp.PrivateMetricFrame(
        metrics="recall", y_true=Y, y_pred=P, sensitive_features=Y, group_labels=[0, 1], epsilon=1.0,
        groups=OF_THREE,
    )  # fmt: skip
    with pytest.raises(ValueError, match="up to 3 records of each person"):
        frame.population_interval()


def test_limits_of_a_number_are_those_of_its_result():
    result = released("private_expected_calibration_error", groups=OF_THREE, max_records=2)
    alone = dp.noise_interval(
        result.value, metric="expected_calibration_error", epsilon=1.0, groups=OF_THREE, max_records=2
    )
    assert tuple(alone) == pytest.approx(tuple(result.noise_interval()), abs=1e-12)


def test_the_expected_noise_of_a_curve_knows_the_persons():
    several, alone = (
        released("private_average_precision_score", bins=8, **one) for one in ({"groups": OF_THREE}, {})
    )
    noises = [one.noise.result.counts(one.noise.released).noise for one in (several, alone)]
    assert noises[0] == pytest.approx(several.noise.parts[0].expected)
    assert 2.5 < noises[0] / noises[1] < 3.5


def test_a_stored_release_knows_its_persons_and_an_older_one_has_none(tmp_path):
    path, public = tmp_path / "budget.sqlite", {"epsilon": 1.0, "groups": OF_THREE}
    recall = partial(dp.with_result(dp.private_recall_score), Y, P, spend_name="one", **public)
    frame = {"metrics": "recall", "y_true": Y, "y_pred": P, "sensitive_features": Y, "group_labels": [0, 1]}
    by_group = partial(dp.PrivateMetricFrame, **frame, spend_name="two", **public)
    budget = dp.PrivacyAccountant(3.0, path)
    first, found = recall(accountant=budget), by_group(accountant=budget)
    new_session()
    budget = dp.PrivacyAccountant(3.0, path)
    with pytest.raises(ValueError, match="max_records was None and is 2"):
        recall(accountant=budget, max_records=2)
    with pytest.warns(dp.StoredReleaseWarning):
        again = recall(accountant=budget)
    assert (again.value, again.noise.released.most_records, budget.spent) == (first.value, 3, 2)
    with pytest.warns(dp.StoredReleaseWarning):
        kept = by_group(accountant=budget)
    assert dict(kept.by_group) == dict(found.by_group)
    assert kept.noise_interval() == found.noise_interval()
    compared = encoded(dp.private_compare(Y, P, 1 - P, epsilon=1.0))
    del compared["fields"]["unit"]
    assert decoded(compared).unit == "records"
    written = encoded(first.noise.released)
    del written["fields"]["most_records"]
    assert decoded(written).most_records == 1
    del written["fields"]["epsilon"]
    with pytest.raises(ValueError, match="damaged"):
        decoded(written)
