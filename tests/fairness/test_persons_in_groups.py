"""Frames in which each person counts once, whatever the number and the groups of the records."""

import itertools

import numpy as np
import pytest
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
BY = {"sensitive_features": np.column_stack([SEX, AGE]), "group_labels": [[0, 1], [0, 1, 2]]}
ONCE = {"groups": PERSONS, "equal_groups": True}


def frame_of(metrics="recall", **options):
    return dp.PrivateMetricFrame(
        **{"metrics": metrics, "y_true": Y, "y_pred": P, "random_state": seeded()} | BY | ONCE | options
    )


def recall_of(some):
    return recall_score(Y[some], P[some], sample_weight=WEIGHTS[some])


def test_values_are_those_of_records_weighted_by_their_person():
    frame = frame_of({"recall": "recall", "accuracy": "accuracy"}, epsilon=EXACT)
    for (sex, age), found in frame.by_group.items():
        some = (sex == SEX) & (age == AGE)
        assert found["recall"] == pytest.approx(recall_of(some))
        assert found["accuracy"] == pytest.approx(np.average(Y[some] == P[some], weights=WEIGHTS[some]))
        assert frame.group_sizes[sex, age] == pytest.approx(WEIGHTS[some].sum())
    assert frame.overall["recall"] == pytest.approx(recall_of(slice(None)))
    for sex, found in frame.margin(0).by_group.items():
        assert found["recall"] == pytest.approx(recall_of(sex == SEX))
    for found in (frame, frame.margin(1)):
        for group, interval in found.noise_interval("recall").items():
            assert interval.lower - 1e-12 <= found.by_group[group]["recall"] <= interval.upper + 1e-12


def test_areas_are_those_of_records_weighted_by_their_person():
    score = np.random.default_rng(0).beta(2 + 2 * P, 4 - P)
    frame = frame_of({"auc": "roc_auc", "ap": "average_precision"}, y_pred=score, epsilon=EXACT)
    for (sex, age), found in frame.by_group.items():
        some = (sex == SEX) & (age == AGE)
        assert found["auc"] == pytest.approx(
            roc_auc_score(Y[some], score[some], sample_weight=WEIGHTS[some]), abs=0.01
        )
        assert frame.group_sizes[sex, age] == pytest.approx(WEIGHTS[some].sum())
    assert frame.overall["auc"] == pytest.approx(roc_auc_score(Y, score, sample_weight=WEIGHTS), abs=0.005)
    noise, people = (frame_of("average_precision", y_pred=score, epsilon=2.0) for _ in range(2))
    for group, interval in people.population_interval().items():
        assert interval.lower <= noise.noise_interval()[group].lower
        assert "persons." in interval.note
    gap = people.population_interval(of=((0, 0), (1, 0)))
    each = [people.population_interval()[group] for group in ((0, 0), (1, 0))]
    assert gap.upper >= each[0].upper - each[1].lower
    assert {*frame.overall_note.values()} == {None}  # the noise of all records is told in persons


OWNERS = [0, 0, 1, 1, 1]
OTHERS = ([1, 0, 1], [1, 1, 0], [0, 1, 1])


@pytest.mark.parametrize("metrics", ["recall", {"accuracy": "accuracy", "selection": "selection_rate"}])
def test_the_exact_loss_of_all_records_of_a_person_is_epsilon(metrics):
    """Truth, prediction and group of both records of person 0 may be any."""
    contents = list(itertools.product([(0, 0), (0, 1), (1, 0), (1, 1)], [0, 1]))

    def released(y_true, y_pred, sex, **settings):
        return dp.PrivateMetricFrame(
            metrics=metrics, y_true=y_true, y_pred=y_pred, sensitive_features=sex, group_labels=[0, 1],
            groups=OWNERS, equal_groups=True, **settings,
        )  # fmt: skip

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
    frame = frame_of(epsilon=4.0, **{"sensitive_features": SEX, "group_labels": [0, 1]})
    each = frame.population_interval(confidence=0.975)
    gap = frame.population_interval(of=(0, 1))
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
