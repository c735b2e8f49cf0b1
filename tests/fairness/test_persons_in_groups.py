"""Frames in which each person counts once, whatever the number and the groups of the records."""

import itertools

import numpy as np
import pytest
from frames import frame
from helpers import later, seeded
from sklearn.metrics import recall_score, roc_auc_score

import dp_metrics as dp
from dp_metrics.analysis.auditing import release_loss

EXACT = 1e5  # so large an epsilon that no noise is left
PERSONS = np.repeat(np.arange(600), np.arange(600) % 4 + 1)
Y = (np.arange(PERSONS.size) * 7 % 10 < 4).astype(int)
P = np.where(np.arange(PERSONS.size) * 3 % 11 < 2, 1 - Y, Y)
SEX, AGE = np.arange(PERSONS.size) % 2, np.arange(PERSONS.size) // 5 % 3
WEIGHTS = 1 / np.bincount(PERSONS)[PERSONS]
BY = {"by": np.column_stack([SEX, AGE]), "group_labels": [[0, 1], [0, 1, 2]]}
ONCE = {"groups": PERSONS, "equal_groups": True}


def frame_of(metrics="recall", **options):
    return frame(metrics, **{"p": P, "y": Y, "random_state": seeded(), **BY, **ONCE, **options})


def recall_of(some):
    return recall_score(Y[some], P[some], sample_weight=WEIGHTS[some])


def test_values_are_those_of_records_weighted_by_their_person():
    made = frame_of({"recall": "recall", "accuracy": "accuracy"}, epsilon=EXACT)
    for (sex, age), found in made.by_group.items():
        some = (sex == SEX) & (age == AGE)
        assert found["recall"] == pytest.approx(recall_of(some))
        assert found["accuracy"] == pytest.approx(np.average(Y[some] == P[some], weights=WEIGHTS[some]))
        assert made.group_sizes[sex, age] == pytest.approx(WEIGHTS[some].sum())
    assert made.overall["recall"] == pytest.approx(recall_of(slice(None)))
    for sex, found in made.margin(0).by_group.items():
        assert found["recall"] == pytest.approx(recall_of(sex == SEX))
    for found in (made, made.margin(1)):
        for group, interval in found.noise_interval("recall").items():
            assert interval.lower - 1e-12 <= found.by_group[group]["recall"] <= interval.upper + 1e-12


def test_areas_are_those_of_records_weighted_by_their_person():
    score = np.random.default_rng(0).beta(2 + 2 * P, 4 - P)
    made = frame_of({"auc": "roc_auc", "ap": "average_precision"}, p=score, epsilon=EXACT)
    for (sex, age), found in made.by_group.items():
        some = (sex == SEX) & (age == AGE)
        assert found["auc"] == pytest.approx(
            roc_auc_score(Y[some], score[some], sample_weight=WEIGHTS[some]), abs=0.01
        )
        assert made.group_sizes[sex, age] == pytest.approx(WEIGHTS[some].sum())
    assert made.overall["auc"] == pytest.approx(roc_auc_score(Y, score, sample_weight=WEIGHTS), abs=0.005)
    people = frame_of("average_precision", p=score, epsilon=2.0)
    for group, interval in people.population_interval().items():
        assert interval.lower <= people.noise_interval()[group].lower
        assert "persons." in interval.note
    assert {*made.overall_note.values()} == {None}  # the noise of all records is told in persons


OWNERS = [0, 0, 1, 1, 1]
OTHERS = ([1, 0, 1], [1, 1, 0], [0, 1, 1])


@pytest.mark.parametrize("metrics", ["recall", {"accuracy": "accuracy", "selection": "selection_rate"}])
def test_the_exact_loss_of_all_records_of_a_person_is_epsilon(metrics):
    """Truth, prediction and group of both records of person 0 may be any."""
    contents = list(itertools.product([(0, 0), (0, 1), (1, 0), (1, 1)], [0, 1]))

    def released(y_true, y_pred, sex, **settings):
        settings |= {"groups": OWNERS, "equal_groups": True}
        return frame(metrics, y_pred, y=y_true, by=sex, group_labels=[0, 1], **settings)

    def data_of(*first):
        own = [(*pair, group) for pair, group in first]
        return tuple(np.array([record[at] for record in own] + list(OTHERS[at])) for at in range(3))

    start = data_of(contents[0], contents[0])
    losses = [
        release_loss(released, start, data_of(one, other), epsilon=0.7)
        for one, other in itertools.product(contents, repeat=2)
        if (one, other) != (contents[0], contents[0])
    ]
    assert max(losses) == pytest.approx(0.7, rel=1e-9)
    assert max(losses) <= 0.7 * (1 + 1e-9)


def test_persons_of_one_record_are_plain():
    ids = np.arange(Y.size)
    plain = frame_of(epsilon=1.0, groups=None, equal_groups=False)
    assert frame_of(epsilon=1.0, groups=ids).by_group == plain.by_group


def test_gaps_do_not_take_groups_that_share_persons_for_independent():
    """Limits among people are those of two limits of groups, not of squares."""
    made = frame_of(epsilon=4.0, by=SEX, group_labels=[0, 1])
    each = made.population_interval(confidence=0.975)
    gap = made.population_interval(of=(0, 1))
    assert gap.lower <= each[0].lower - each[1].upper
    assert gap.upper >= each[0].upper - each[1].lower


def test_a_stored_frame_counts_persons_again(tmp_path):
    path = tmp_path / "budget.db"
    settings = {"epsilon": 1.0, "spend_name": "frame", "max_records": 3, "random_state": None}
    first = frame_of(accountant=dp.PrivacyAccountant(5.0, path=path), **settings)
    stored = later(path, 5.0)["frame"]
    assert repr(stored) == repr(first)
    assert stored.noise_interval() == first.noise_interval()
    assert stored.margin(0).noise_interval() == first.margin(0).noise_interval()
