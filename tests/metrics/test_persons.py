"""groups and max_records: what a person costs in frames and comparisons, and which records are kept."""

import itertools
from dataclasses import replace
from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from helpers import frame_loss, known_of, loop_over, seeded

import dp_metrics as dp
from dp_metrics.analysis.auditing import law_loss
from dp_metrics.inference.comparison import comparison_query, paired_losses
from dp_metrics.inputs.arrays import Records
from dp_metrics.inputs.options import Relation
from dp_metrics.metrics import METRICS
from dp_metrics.quantities.base import Totals
from dp_metrics.release.query import Terms

SEVERAL = [name for name, row in METRICS.items() if "max_records" in row.options]
PERSONS = [0, 1, 0, 2, 1, 2, 1]  # person 0 has the records at 0 and 2, person 1 has three
OTHERS = {1: (0, 0.1), 3: (1, 0.9), 4: (1, 0.3), 5: (0, 0.6), 6: (1, 0.8)}
KINDS = [(0, 0.05), (0, 0.95), (1, 0.05), (1, 0.95)]
Y = np.tile([1, 1, 0, 1, 0, 0], 60)
P = np.where(np.arange(Y.size) % 5 == 0, 1 - Y, Y)
OF_THREE = np.arange(Y.size) // 3


def data_of(first, second, *, scores=False):
    """Return the data where person 0 has these two records."""
    records = {**OTHERS, 0: first, 2: second}
    true, score = (np.array(column) for column in zip(*(records[at] for at in range(7)), strict=True))
    return true, score if scores else (score > 0.5).astype(int)


MSE = partial(dp.private_mse, bounds=(0, 1), mechanism="piecewise_laplace")


@pytest.mark.gate
@loop_over("membership", ["private", "public"])
@loop_over("metric", ["recall", "roc_auc", "accuracy", MSE])
def test_a_person_in_several_groups_of_a_frame_costs_epsilon_at_most(metric, membership):
    public = {"epsilon": 0.5, "group_labels": [0, 1], "membership": membership}
    ends = KINDS[0], KINDS[2]  # right and missed
    contents = list(itertools.product([(kind, group) for kind in ends for group in (0, 1)], repeat=2))
    if membership == "public":  # each record stays in its group, and the two of person 0 in different ones
        contents = [((kind, 0), (other, 1)) for kind in KINDS for other in ends]

    def data(first, second):
        groups = np.array([first[1], 0, second[1], 1, 1, 0, 1])
        return *data_of(first[0], second[0], scores=metric == "roc_auc"), groups

    losses = [
        frame_loss(metric, data(*a), data(*b), **public, groups=PERSONS, max_records=2)
        for a, b in itertools.combinations(contents, 2)
    ]
    assert (0.15 if metric is MSE else 0.499) < max(losses) <= 0.5 * (1 + 1e-9)
    if metric == "recall" and membership == "private":  # without the persons it costs more
        sides = data((KINDS[2], 0), (KINDS[2], 0)), data((KINDS[1], 0), (KINDS[3], 0))
        assert (
            frame_loss(metric, *sides, **public, groups=PERSONS) < 0.5 < frame_loss(metric, *sides, **public)
        )


@loop_over("mechanism", ["hazard", "adaptive", "geometric"])
def test_a_noisy_count_is_paid_for_by_all_records_of_a_person(mechanism):
    """Where membership is private the groups of a frame are released as if their sizes were."""
    row = METRICS["private_mse"]
    terms = Terms.of(epsilon=1.0, neighboring="add_or_remove_one", mechanism=mechanism)
    query = row.planned(row.form(), {"bounds": (0, 1)})
    for k in (1, 3):
        (noise,), for_count = replace(query, most_records=k).noises(terms, [Totals.of(9)])
        epsilon = noise.one.epsilon if mechanism == "adaptive" else noise.epsilon
        assert epsilon + for_count == Fraction(1, k)
        assert (for_count > 0) == (mechanism != "geometric")


@loop_over("public", [{}, {"max_difference": 1.0}])
def test_a_person_has_one_vote_in_a_comparison_however_many_records(public):
    laws = []
    for content in itertools.product(KINDS, repeat=2):
        shape, records = Records.of((*data_of(*content), 1 - np.arange(7) % 2), relation=Relation.REPLACE_ONE)
        query = comparison_query(paired_losses("zero_one", shape, {}), 3, unit="persons", **public)
        source = query.read(replace(records, groups=np.array(PERSONS)))
        (noise,), (stats,) = known_of(query, source, Fraction(1, 2))
        laws.append(noise.law(stats, None))
    losses = [law_loss(a, b) for a, b in itertools.combinations(laws, 2)]
    assert 0.5 * (1 - 1e-5) <= max(losses) <= 0.5


def test_the_loss_of_a_person_is_the_mean_over_all_records():
    """Person 0 has A wrong once in three, B twice; person 1 one record, on which B is right and A wrong."""
    data = [1, 1, 1, 1], [0, 1, 1, 0], [0, 0, 1, 1]
    of = partial(dp.private_compare, *data, groups=["x", "x", "x", "y"])
    found = of(epsilon=100.0)
    assert (found.n, found.unit, found.noisy_difference, found.noisy_decided) == (2, "persons", 0, 2)
    assert "2 persons" in str(found)
    assert of(epsilon=1e4, max_difference=1).estimate == pytest.approx((1 / 3 - 1) / 2, abs=0.01)
    first = of(epsilon=100.0, max_records=1)
    assert (first.noisy_difference, first.noisy_decided) == (-1, 1)
    assert "accuracy of A" not in str(first)


def released(name, rows=..., **public):
    row = METRICS[name]
    columns = (Y, P if row.predicts_labels else 0.8 * P + 0.1)[-len(row.data) :]
    data, options = (np.array(column)[rows] for column in columns), {**row.required, **public}
    return dp.with_result(row.function)(*data, epsilon=1.0, random_state=seeded(), **options)


@loop_over("name", SEVERAL)
def test_a_release_is_that_of_the_kept_records(name):
    kept, one = np.flatnonzero(np.arange(Y.size) % 3 < 2), np.flatnonzero(np.arange(Y.size) % 3 == 0)
    cut = released(name, groups=OF_THREE, max_records=2)
    np.testing.assert_equal(cut.value, released(name, kept, groups=OF_THREE[kept]).value)
    assert cut.n == kept.size
    # with one record of each a release is as if there were no persons
    np.testing.assert_equal(released(name, groups=OF_THREE, max_records=1).value, released(name, one).value)


def test_noise_and_its_limits_are_wider_by_the_records_of_a_person():
    for name, options in (("private_recall_score", {}), ("private_average_precision_score", {"bins": 8})):
        several, alone = (released(name, **options, **one) for one in ({"groups": OF_THREE}, {}))
        rates = [{rate for _, rate in one.parts[0].rates} for one in (several, alone)]
        assert rates[0] == {rate / 3 for rate in rates[1]}
        assert 2.5 < several.parts[0].expected / alone.parts[0].expected < 3.5
        widths = [np.ptp([*one.noise_interval()]) for one in (several, alone)]
        assert 1.3 * widths[1] < widths[0] < 4 * widths[1]
    one = released("private_recall_score", groups=OF_THREE, max_records=1)
    assert one.population_interval().upper <= 1
