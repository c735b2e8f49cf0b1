"""groups in summaries and Dask collections: all records of a person are in one chunk."""

import itertools
import pickle

import dask.array as da
import numpy as np
import pytest
from helpers import loop_over, new_session, seeded

import dp_metrics as dp
from dp_metrics.analysis.auditing import release_loss

PERSONS = np.repeat(np.arange(400), np.arange(400) % 3 + 1)
Y = (np.arange(PERSONS.size) * 7 % 10 < 4).astype(int)
P = np.where(np.arange(PERSONS.size) * 3 % 11 < 2, 1 - Y, Y)
ENDS = [*np.searchsorted(PERSONS, [0, 90, 250, 251]), PERSONS.size]
CHUNKS = [*itertools.pairwise(ENDS)]
LENGTHS = (tuple(end - start for start, end in CHUNKS),)
WAYS = {
    "mse": {"bounds": (0, 1)},
    "mae": {},
    "accuracy_score": {},
    "recall_score": {"max_records": 2},
    "f1_score": {},
    "confusion_matrix": {"max_records": 3, "equal_groups": True},
    "roc_curve": {"max_records": 2},
    "expected_calibration_error": {"max_records": 3},
}


def summary_of(name, chunks=CHUNKS):
    summary = dp.Summary(name, **WAYS[name])
    for start, end in chunks:
        summary = summary.update(Y[start:end], P[start:end], groups=PERSONS[start:end])
    return summary


def result(function, *data, **options):
    return dp.with_result(function)(*data, epsilon=1.0, random_state=seeded(), **options)


@loop_over("name", WAYS)
def test_persons_in_chunks_are_released_as_in_one_call(name):
    metric = getattr(dp, f"private_{name}")
    whole = result(metric, Y, P, groups=PERSONS, **WAYS[name])
    empty = dp.Summary(name, **WAYS[name]).update([], [], groups=[])
    first, second = summary_of(name, CHUNKS[2:]), summary_of(name, CHUNKS[:2])
    merged = first.merge(second)
    summaries = [
        summary_of(name),
        merged,
        empty.merge(first).merge(second),
        pickle.loads(pickle.dumps(merged)),
    ]
    several = [result(one.release) for one in summaries]
    y, p, persons = (da.from_array(one, chunks=LENGTHS) for one in (Y, P, PERSONS))
    several.append(result(metric, y, p, groups=persons, **WAYS[name]))
    for one in several:
        assert one.outputs == whole.outputs
        np.testing.assert_equal(one.value, whole.value)
        assert (one.n, one.released) == (whole.n, whole.released)


@loop_over("name", WAYS)
def test_a_person_in_two_chunks_is_refused(name):
    summary = summary_of(name)
    before = result(summary.release)
    with pytest.raises(ValueError, match="Some person has records in two chunks"):
        summary.update(Y[:2], P[:2], groups=[-1, 250.0])
    with pytest.raises(ValueError, match="Some person has records in two chunks"):
        summary.merge(summary_of(name, CHUNKS[1:2]))
    with pytest.raises(ValueError, match="for all chunks, or for none"):
        summary.update(Y[:2], P[:2])
    assert result(summary.release).outputs == before.outputs
    budget = dp.PrivacyAccountant(1.0)
    y, p, persons = (da.from_array(one, chunks=int(ENDS[1]) + 1) for one in (Y, P, PERSONS))
    with pytest.raises(ValueError, match="Some person has records in two chunks"):
        getattr(dp, f"private_{name}")(y, p, groups=persons, epsilon=1.0, accountant=budget, **WAYS[name])
    assert budget.spent == 0


def test_chunks_without_records_tell_nothing_of_persons():
    summary = summary_of("mse").update([], []).update([], [], groups=[])
    assert result(summary.release).outputs == result(summary_of("mse").release).outputs
    plain = dp.Summary("mse").update(Y, P).update([], [], groups=[])
    assert plain.release(epsilon=1.0, neighboring="add_or_remove_one") >= 0


@loop_over("name", WAYS)
def test_the_exact_loss_of_a_person_is_at_most_epsilon(name):
    """The first person has three records in the first of two chunks."""
    persons, others = [7, 7, 7, 8], ([0, 1, 1], [1, 1, 0])

    def release(first, *, epsilon):
        true, predicted = zip(*first, (0, 1), strict=True)
        summary = dp.Summary(name, **WAYS[name]).update(true, predicted, groups=persons)
        return summary.update(*others, groups=[1, 1, 2]).release(epsilon)

    contents = list(itertools.product([(0, 0), (0, 1), (1, 1)], repeat=3))
    losses = [release_loss(release, (contents[0],), (one,), epsilon=0.8) for one in contents[1:]]
    assert 0.1 < max(losses) <= 0.8 * (1 + 1e-9)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: dp.Summary("recall_score", equal_groups=True), "needs max_records"),
        (lambda: dp.Summary("recall_score", max_records=0), "max_records must be"),
        (lambda: dp.Summary("mse", max_records=2), "unexpected keyword"),
        (lambda: dp.Summary("variance").update(Y, groups=PERSONS), "takes no groups"),
        (lambda: dp.Summary("recall_score", max_records=2).update(Y, P).release(1.0), "needs groups"),
        (lambda: dp.Summary("mse").update(Y, P, groups=[{}] * Y.size), "groups must be hashable labels"),
        (lambda: dp.Summary("mse").update(Y, P, groups=[None] * Y.size), "groups contains NaN"),
        (lambda: summary_of("mse").release(1.0, neighboring="add_or_remove_one"), "cannot be used with"),
    ],
)
def test_wrong_options_are_refused(make, message):
    with pytest.raises((TypeError, ValueError), match=message):
        make()


def test_persons_are_part_of_the_question(tmp_path):
    def ask(summary):
        new_session()
        budget = dp.PrivacyAccountant(5.0, path=tmp_path / "budget.db")
        return summary.release(1.0, accountant=budget, spend_name="matrix")

    first = ask(summary_of("confusion_matrix"))
    with pytest.warns(dp.exceptions.StoredReleaseWarning):
        np.testing.assert_equal(ask(summary_of("confusion_matrix", CHUNKS[::-1])), first)
    with pytest.raises(ValueError, match="number of persons was 400 and is 310"):
        ask(summary_of("confusion_matrix", CHUNKS[1:]))
