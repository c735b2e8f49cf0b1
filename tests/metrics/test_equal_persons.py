"""equal_groups=True: each person counts once, whatever the number of records."""

import itertools
import math

import numpy as np
import pytest
from helpers import loop_over, new_session, seeded
from hypothesis import given, strategies as st
from sklearn import metrics as sklearn_metrics

import dp_metrics as dp
from dp_metrics.analysis.auditing import release_loss
from dp_metrics.inputs.arrays import first_records, units_of_persons
from dp_metrics.inputs.options import Relation
from dp_metrics.metrics import METRICS

ONCE = [name for name, row in METRICS.items() if "equal_groups" in row.options]
EXACT = 1e5  # so large an epsilon that no noise is left
PERSONS = np.repeat(np.arange(300), np.arange(300) % 4 + 1)
Y = (np.arange(PERSONS.size) * 7 % 10 < 4).astype(int)
P = np.where(np.arange(PERSONS.size) * 3 % 11 < 2, 1 - Y, Y)
WEIGHTS = 1 / np.bincount(PERSONS)[PERSONS]


@given(st.lists(st.integers(1, 40), min_size=1, max_size=8))
def test_every_person_has_all_units_and_each_record_some(sizes):
    codes = np.repeat(np.arange(len(sizes)), sizes)
    total, units = units_of_persons(codes, max(sizes))
    assert total == min(math.lcm(*range(1, max(sizes) + 1)), 1 << 20)
    assert np.bincount(codes, units).tolist() == [total] * len(sizes)
    of_each = np.split(units, np.cumsum(sizes)[:-1])
    assert all(one.min() >= 1 and one.max() - one.min() <= (total == 1 << 20) for one in of_each)


def test_a_person_of_more_records_than_units_has_all_units():
    total, units = units_of_persons(np.zeros((1 << 20) + 3, dtype=np.intp), (1 << 20) + 3)
    assert (total, units.sum(), units.min(), units.max()) == (1 << 20, 1 << 20, 0, 1)


# options of the private metric and of scikit-learn's
OPTIONS = {
    "private_classification_report": ({"output_dict": True}, {"output_dict": True}),
    "private_multilabel_confusion_matrix": ({}, {"labels": [0, 1]}),
    "private_specificity_score": ({}, {"pos_label": 0}),
}
OWN = {
    "private_selection_rate": lambda y, p, sample_weight: np.average(p, weights=sample_weight),
    "private_prevalence": lambda y, p, sample_weight: np.average(y, weights=sample_weight),
    "private_specificity_score": sklearn_metrics.recall_score,
}
"""What scikit-learn has not, or under another name."""


@loop_over("name", ONCE)
def test_a_metric_is_that_of_records_weighted_by_their_person(name):
    """The order of records does not matter, for no units are left over."""
    row, shuffled = METRICS[name], np.random.default_rng(0).permutation(Y.size)
    public, of_exact = OPTIONS.get(name, ({}, {}))
    public = {"epsilon": EXACT, "random_state": seeded(), "groups": PERSONS[shuffled], **public}
    found = row.function(Y[shuffled], P[shuffled], equal_groups=True, **public)
    exact = OWN.get(name) or getattr(sklearn_metrics, row.exact_function.rpartition(".")[2])
    expected = exact(Y, P, sample_weight=WEIGHTS, **of_exact)
    if isinstance(expected, dict):
        found, expected = ({**one["1"], "accuracy": one["accuracy"]} for one in (found, expected))
        assert found == pytest.approx(expected)
    else:
        np.testing.assert_allclose(found, expected, rtol=1e-9)


CONTENTS = list(itertools.product([(0, 0), (0, 1), (1, 0), (1, 1)], repeat=3))
OWNERS = [0, 0, 0, 1, 2, 2]


def records_of(first):
    """Return the data where person 0 has these three records."""
    true, predicted = zip(*first, (1, 1), (0, 1), (1, 0), strict=True)
    return true, predicted


@loop_over("name", ONCE)
@loop_over("max_records", [None, 2])
def test_the_exact_loss_of_all_records_of_a_person_is_epsilon(name, max_records):
    public = {"epsilon": 0.7, "groups": OWNERS, "max_records": max_records, "equal_groups": True}
    function = METRICS[name].function
    losses = [
        release_loss(function, records_of(CONTENTS[0]), records_of(other), **public) for other in CONTENTS[1:]
    ]
    assert max(losses) == pytest.approx(0.7, rel=1e-9)
    assert max(losses) <= 0.7 * (1 + 1e-9)


@loop_over("name", ONCE)
def test_persons_of_one_record_are_plain(name):
    ids = np.arange(Y.size)[::-1]
    plain, once = (
        dp.with_result(METRICS[name].function)(Y, P, epsilon=1.0, random_state=seeded(), **persons)
        for persons in ({}, {"groups": ids, "equal_groups": True})
    )
    np.testing.assert_equal(once.value, plain.value)
    assert once.outputs == plain.outputs


def test_noise_is_that_of_so_many_persons():
    """A third of what protecting up to three records costs; 400 draws of the mean size of noise."""
    once = {"groups": PERSONS, "max_records": 3, "equal_groups": True}
    several = {"groups": PERSONS, "max_records": 3}
    widths = {}
    for name, persons in (("once", once), ("several", several), ("plain", {})):
        result = dp.with_result(dp.private_confusion_matrix)(
            Y, P, random_state=seeded(), epsilon=0.5, **persons
        )
        lower, upper = result.noise_interval()
        widths[name] = float(np.max(upper - lower))
    assert widths["several"] == pytest.approx(3 * widths["plain"], rel=0.1)
    assert widths["once"] == pytest.approx(widths["plain"], rel=0.1)


def test_what_is_told_are_persons():
    persons = {"groups": PERSONS, "max_records": 3, "equal_groups": True}
    result = dp.with_result(dp.private_confusion_matrix)(Y, P, random_state=seeded(), epsilon=1.0, **persons)
    assert result.n == 300
    assert float(np.sum(result.value)) == pytest.approx(300)
    assert sum(result.drawn["counts"]) == pytest.approx(300)
    few = {"groups": PERSONS[:40], "equal_groups": True}
    with pytest.warns(dp.exceptions.NoisyReleaseWarning, match="in a cell are 5.33 on average"):
        dp.private_recall_score(Y[:40], P[:40], epsilon=0.2, **few)


def test_limits_among_people_take_a_person_for_a_draw():
    """They are wider than if each record were of a person of its own."""
    persons = {"groups": PERSONS, "equal_groups": True}
    result = dp.with_result(dp.private_recall_score)(Y, P, random_state=seeded(), epsilon=2.0, **persons)
    interval, noise = result.population_interval(), result.noise_interval()
    assert "approximate" in interval.about
    assert interval.lower <= noise.lower < noise.upper <= interval.upper
    records = dp.with_result(dp.private_recall_score)(
        Y, P, random_state=seeded(), epsilon=2.0
    ).population_interval()
    assert interval.upper - interval.lower > records.upper - records.lower
    with pytest.raises(ValueError, match="leave out sure"):
        result.population_interval(sure=True)
    with pytest.raises(ValueError, match="made of ratios"):
        dp.with_result(dp.private_matthews_corrcoef)(Y, P, epsilon=2.0, **persons).population_interval()


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"equal_groups": True}, "equal_groups needs groups"),
        ({"groups": PERSONS, "equal_groups": 1}, "equal_groups must be True or False"),
        (
            {"groups": PERSONS, "equal_groups": True, "neighboring": "add_or_remove_one"},
            "cannot be used with",
        ),
    ],
)
def test_wrong_options_cost_nothing(wrong, message):
    budget = dp.PrivacyAccountant(1.0)
    with pytest.raises((TypeError, ValueError), match=message):
        dp.private_recall_score(Y, P, epsilon=1.0, accountant=budget, **wrong)
    assert budget.spent == 0


def test_a_stored_release_counts_persons_again(tmp_path):
    persons = {
        "epsilon": 1.0,
        "groups": PERSONS,
        "max_records": 3,
        "equal_groups": True,
        "spend_name": "recall",
    }
    path = tmp_path / "budget.db"
    first = dp.with_result(dp.private_recall_score)(
        Y, P, accountant=dp.PrivacyAccountant(5.0, path=path), **persons
    )
    new_session()
    budget = dp.PrivacyAccountant(5.0, path=path)
    stored = budget["recall"]
    assert (stored.value, stored.n, dict(stored.drawn)) == (first.value, 300, dict(first.drawn))
    assert stored.population_interval() == first.population_interval()
    with pytest.raises(ValueError, match="another question"):
        dp.private_recall_score(Y, P, accountant=budget, **{**persons, "equal_groups": False})
    new_session()
    with pytest.warns(dp.exceptions.StoredReleaseWarning):
        again = dp.private_recall_score(Y, P, accountant=dp.PrivacyAccountant(5.0, path=path), **persons)
    assert again == first.value


@loop_over("name", [name for name, row in METRICS.items() if name not in ONCE])
def test_what_does_not_count_units_is_not_read_by_them(name):
    """Else all records of a person would be released with the noise of one."""
    row = METRICS[name]
    data = row.from_unit(np.linspace(0.0, 1.0, PERSONS.size))
    shape, records, _ = first_records(
        data, names=row.data, relation=Relation.REPLACE_ONE, groups=PERSONS, max_records=2, equal_groups=True
    )
    with pytest.raises(ValueError, match="in counts of labels only"):
        row.planned(shape, {**row.required, **(row.limit or {})}).read(records)
