"""groups: what a person costs and counts for, which records are kept, and persons in chunks."""

import itertools
import math
import pickle
from dataclasses import replace
from fractions import Fraction
from functools import partial

import dask.array as da
import numpy as np
import pytest
from helpers import frame_loss, known_of, later, loop_over, seeded
from hypothesis import given, strategies as st
from sklearn import metrics as sklearn_metrics

import dp_metrics as dp
from dp_metrics.analysis.auditing import law_loss
from dp_metrics.inference.comparison import comparison_query
from dp_metrics.inputs.arrays import Records, first_records, units_of_persons
from dp_metrics.inputs.options import Relation
from dp_metrics.metrics import METRICS
from dp_metrics.quantities.base import Totals
from dp_metrics.release.count_limits import NoisyRatio, person_limits
from dp_metrics.release.query import Terms

SEVERAL = [name for name, row in METRICS.items() if "max_records" in row.options]
ONCE = [name for name, row in METRICS.items() if "equal_groups" in row.options]
OF_LABELS = [name for name in ONCE if METRICS[name].predicts_labels]
PERSONS = np.repeat(np.arange(300), np.arange(300) % 4 + 1)
PLACE = np.arange(PERSONS.size) - np.searchsorted(PERSONS, PERSONS)  # among the records of a person
Y = (np.arange(PERSONS.size) * 7 % 10 < 4).astype(int)
P = np.where(np.arange(PERSONS.size) * 3 % 11 < 2, 1 - Y, Y)
EQUAL = {"groups": PERSONS, "max_records": 3, "equal_groups": True}


def result(function, *data, **options):
    return dp.with_result(function)(*data, **{"epsilon": 1.0, "random_state": seeded(), **options})


def released(name, rows=..., **public):
    row = METRICS[name]
    columns = (Y, P if row.predicts_labels else 0.8 * P + 0.1)[-len(row.data) :]
    data, options = (np.array(column)[rows] for column in columns), {**row.required, **public}
    return result(row.function, *data, **options)


# ---- what a person costs: the exact loss of single metrics is in tests/test_privacy.py

FEW = [0, 1, 0, 2, 1, 2, 1]  # person 0 has the records at 0 and 2, person 1 has three
OTHERS = {1: (0, 0.1), 3: (1, 0.9), 4: (1, 0.3), 5: (0, 0.6), 6: (1, 0.8)}
KINDS = [(0, 0.05), (0, 0.95), (1, 0.05), (1, 0.95)]
MSE = partial(dp.private_mse, bounds=(0, 1), mechanism="piecewise_laplace")


def data_of(first, second, *, scores=False):
    """Return the data where person 0 has these two records."""
    records = {**OTHERS, 0: first, 2: second}
    true, score = (np.array(column) for column in zip(*(records[at] for at in range(7)), strict=True))
    return true, score if scores else (score > 0.5).astype(int)


@pytest.mark.gate
@loop_over("membership", ["private", "public"])
@loop_over("metric", ["recall", "roc_auc", "accuracy", MSE])
def test_a_person_in_several_groups_of_a_frame_costs_epsilon_at_most(metric, membership):
    public = {"epsilon": 0.5, "group_labels": [0, 1], "membership": membership}
    ends = KINDS[0], KINDS[2]  # right and missed
    each = itertools.product(ends, (0, 1))
    contents = list(itertools.combinations_with_replacement(each, 2))  # the order of records is of no account
    if membership == "public":  # each record stays in its group, and the two of person 0 in different ones
        contents = [((kind, 0), (other, 1)) for kind in KINDS for other in ends]

    def data(first, second):
        groups = np.array([first[1], 0, second[1], 1, 1, 0, 1])
        return *data_of(first[0], second[0], scores=metric == "roc_auc"), groups

    losses = [
        frame_loss(metric, data(*a), data(*b), **public, groups=FEW, max_records=2)
        for a, b in itertools.combinations(contents, 2)
    ]
    assert (0.15 if metric is MSE else 0.499) < max(losses) <= 0.5 * (1 + 1e-9)
    if metric == "recall" and membership == "private":  # without the persons it costs more
        sides = data((KINDS[2], 0), (KINDS[2], 0)), data((KINDS[1], 0), (KINDS[3], 0))
        assert frame_loss(metric, *sides, **public, groups=FEW) < 0.5 < frame_loss(metric, *sides, **public)


@loop_over("mechanism", ["hazard", "adaptive", "geometric"])
def test_a_noisy_count_is_paid_for_by_all_records_of_a_person(mechanism):
    """Where membership is private the groups of a frame are released as if their sizes were."""
    row = METRICS["private_mse"]
    terms = Terms.of(epsilon=1.0, neighboring="add_or_remove_one", mechanism=mechanism)
    query = row.planned(row.form(), {"bounds": (0, 1)})
    for k in (1, 3):
        (noise,), for_count = replace(query, most_records=k).noises(terms, [Totals.of(9)])
        assert noise.epsilon + for_count == Fraction(1, k)
        assert (for_count > 0) == (mechanism != "geometric")


@loop_over("public", [{}, {"max_difference": 1.0}])
def test_a_person_has_one_vote_in_a_comparison_however_many_records(public):
    laws = []
    for content in itertools.product(KINDS, repeat=2):
        shape, records = Records.of((*data_of(*content), 1 - np.arange(7) % 2), relation=Relation.REPLACE_ONE)
        query = comparison_query("zero_one", shape, {}, persons=3, **public)
        source = query.read(replace(records, groups=np.array(FEW)))
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


# ---- which records are kept


@loop_over("name", SEVERAL)
def test_a_release_is_that_of_the_kept_records(name):
    kept, one = np.flatnonzero(PLACE < 2), np.flatnonzero(PLACE == 0)
    cut = released(name, groups=PERSONS, max_records=2)
    np.testing.assert_equal(cut.value, released(name, kept, groups=PERSONS[kept]).value)
    assert cut.n == kept.size
    # with one record of each a release is as if there were no persons
    np.testing.assert_equal(released(name, groups=PERSONS, max_records=1).value, released(name, one).value)


# ---- equal_groups: each person counts once, whatever the number of records


def test_limits_of_f1_among_people_who_count_once_are_those_of_the_jaccard_score_on_its_own_scale():
    asked = {"groups": PERSONS, "equal_groups": True, "epsilon": 10.0}
    results = [released(f"private_{name}_score", **asked) for name in ("f1", "jaccard")]
    f1, jaccard = (result.population_interval() for result in results)
    assert [*f1] == pytest.approx([2 * end / (1 + end) for end in jaccard])
    assert f1.lower < f1.estimate < f1.upper


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


OWN = {
    "private_selection_rate": lambda y, p, sample_weight: np.average(p, weights=sample_weight),
    "private_prevalence": lambda y, p, sample_weight: np.average(y, weights=sample_weight),
    "private_specificity_score": partial(sklearn_metrics.recall_score, pos_label=0),
}
"""What scikit-learn has not, or under another name."""


@loop_over("name", OF_LABELS)
def test_a_metric_is_that_of_records_weighted_by_their_person(name):
    """The order of records does not matter, for no units are left over."""
    row, shuffled = METRICS[name], np.random.default_rng(0).permutation(Y.size)
    shown = {"output_dict": True} if "output_dict" in row.options else {}
    public = {"epsilon": 1e5, "groups": PERSONS[shuffled], "equal_groups": True, **shown}  # no noise
    found = result(row.function, Y[shuffled], P[shuffled], **public).value
    exact = OWN.get(name) or getattr(sklearn_metrics, row.exact_function.rpartition(".")[2])
    expected = exact(Y, P, sample_weight=1 / np.bincount(PERSONS)[PERSONS], **shown)
    if isinstance(expected, dict):
        found, expected = ({**one["1"], "accuracy": one["accuracy"]} for one in (found, expected))
        assert found == pytest.approx(expected)
    else:
        np.testing.assert_allclose(found, expected, rtol=1e-9)


SCORE = np.random.default_rng(1).beta(2 + 2 * P, 4 - P)


def scores_of(rows=slice(None), **public):
    return dp.ReleasedScores.of(result(dp.private_roc_curve, Y[rows], SCORE[rows], **public))


@loop_over("public", [{}, {"edges": np.linspace(0, 1, 1001)}])
def test_scores_are_those_of_records_weighted_by_their_person(public):
    told = scores_of(groups=PERSONS, equal_groups=True, epsilon=1e5, **public)
    weighted = {"y_true": Y, "y_score": SCORE, "sample_weight": 1 / np.bincount(PERSONS)[PERSONS]}
    for metric in ("roc_auc", "average_precision"):
        exact = getattr(sklearn_metrics, f"{metric}_score")(**weighted)
        sure = partial(told.noise_interval, sure=True)
        for interval in (sure, told.noise_interval, told.population_interval):
            lower, upper = interval(metric=metric)
            assert lower <= exact <= upper
        assert getattr(told, f"{metric}_score")() == pytest.approx(exact, abs=0.01)
    assert told.counts.n == pytest.approx(told.result.n) == 300
    at = told.at_threshold(0.5)
    predicted = weighted.pop("y_score") >= at.threshold
    assert at.recall_score() == pytest.approx(sklearn_metrics.recall_score(y_pred=predicted, **weighted))
    # as few records, of persons of their own, tell as much of all people
    sizes, rng = np.bincount(PERSONS), np.random.default_rng(2)
    alone = scores_of(np.cumsum(sizes) - sizes + rng.integers(0, sizes), epsilon=1e5, **public)
    for metric in ("roc_auc", "average_precision"):
        widths = [np.ptp([*one.population_interval(metric=metric)]) for one in (told, alone)]
        assert widths[0] == pytest.approx(widths[1], rel=0.2)


@loop_over("kept", [{}, {"groups": PERSONS}, EQUAL, {"neighboring": "add_or_remove_one"}])
def test_the_noise_that_curves_allow_for_is_that_of_the_counts(kept):
    told = scores_of(epsilon=5.0, **kept)
    assert told.counts.noise == told.result.parts[0].expected
    if "neighboring" not in kept:
        by = {"sensitive_features": PERSONS % 2, "group_labels": [0, 1], "random_state": seeded()}
        frame = dp.PrivateMetricFrame(metrics="roc_auc", y_true=Y, y_pred=SCORE, epsilon=5.0, **by, **kept)
        for one in frame.released_scores().values():
            assert one.counts.noise == one.result.parts[0].expected


@loop_over("most", [4, 30])  # of 12 units, and of 2**20, which three records share unevenly
def test_a_calibration_curve_is_that_of_records_weighted_by_their_person(most):
    weights, bins = 1 / np.bincount(PERSONS)[PERSONS], (SCORE * 4).astype(int)
    public = {"groups": PERSONS, "equal_groups": True, "max_records": most, "n_bins": 4}
    found = result(dp.private_calibration_curve, Y, SCORE, epsilon=1e5, **public)
    of_bins = np.bincount(bins, weights)
    for curve, numbers in zip(found.value, (Y, SCORE), strict=True):
        np.testing.assert_allclose(curve, np.bincount(bins, weights * numbers) / of_bins, atol=2e-4)
    assert found.n == 300
    noisy = result(dp.private_calibration_curve, Y, SCORE, epsilon=0.2, **public)
    assert "rest on too few persons" in noisy.note


def test_limits_of_scores_among_people_cover_persons_whose_records_differ():
    """A person has a risk, and one to three records of it. Of 150 draws more than 18 miss with 3e-4."""
    rng, entropy, missed = np.random.default_rng(3), seeded(), 0
    many = rng.integers(1, 4, 60_000)
    ids = np.repeat(np.arange(many.size), many)
    risk = rng.normal(size=many.size)[ids] + 0.5 * rng.normal(size=ids.size)
    true, score = rng.random(ids.size) < 1 / (1 + np.exp(1 - 1.5 * risk)), 1 / (1 + np.exp(1 - risk))
    exact = sklearn_metrics.average_precision_score(true, score, sample_weight=1 / many[ids])
    starts = np.cumsum(many) - many
    for _ in range(150):
        drawn = rng.integers(0, many.size, 800)
        rows = np.concatenate([np.arange(starts[one], starts[one] + many[one]) for one in drawn])
        found = result(
            dp.private_average_precision_score, true[rows].astype(int), score[rows], epsilon=4.0,
            groups=np.repeat(np.arange(800), many[drawn]), equal_groups=True, random_state=entropy,
        )  # fmt: skip
        lower, upper = found.population_interval()
        missed += not lower <= exact <= upper
    assert missed <= 18


def test_what_is_told_are_persons():
    told = released("private_confusion_matrix", **EQUAL)
    assert told.n == 300
    assert float(np.sum(told.value)) == pytest.approx(300)
    assert sum(told.drawn["counts"]) == pytest.approx(300)
    lower, upper = told.noise_interval()
    assert (lower <= told.value).all()
    assert (told.value <= upper).all()
    assert (upper - lower).max() < 20  # the noise has a standard deviation of 2.8 persons
    few = {"groups": PERSONS[:40], "equal_groups": True}
    with pytest.warns(dp.exceptions.NoisyReleaseWarning, match="in a cell are 5.33 on average"):
        dp.private_recall_score(Y[:40], P[:40], epsilon=0.2, **few)


def test_limits_among_people_take_a_person_for_a_draw():
    """They are wider than if each record were of a person of its own."""
    persons = {"groups": PERSONS, "equal_groups": True}
    once, plain = (released("private_recall_score", epsilon=2.0, **one) for one in (persons, {}))
    interval, noise, records = once.population_interval(), once.noise_interval(), plain.population_interval()
    assert "approximate" in interval.about
    assert interval.lower <= noise.lower < noise.upper <= interval.upper
    assert interval.upper - interval.lower > records.upper - records.lower
    shares = released("private_confusion_matrix", normalize="true", **EQUAL).population_interval()
    assert shares.lower.shape == shares.upper.shape == shares.estimate.shape == (2, 2)
    assert (shares.lower <= shares.estimate).all()


def test_exchange_mirrors_and_what_tells_nothing_leaves_the_range():
    def ratio(a, b):
        return NoisyRatio(a, b, (1, 1), (Fraction(1, 12),) * 2, 1, None)

    lower, upper = person_limits(6, ratio(4000, 1200), 0.025)
    assert person_limits(6, ratio(1200, 4000), 0.025) == pytest.approx((1 - upper, 1 - lower))
    # about 1.96 standard deviations of 867 persons, .0143, and of the noise, .003
    assert (lower, upper) == pytest.approx((0.73964, 0.79646), abs=1e-5)
    assert person_limits(6, ratio(-30, -2), 0.025) == (0.0, 1.0)


@loop_over("name", [name for name, row in METRICS.items() if name not in ONCE])
def test_what_does_not_count_units_is_not_read_by_them(name):
    """Else all records of a person would be released with the noise of one."""
    row = METRICS[name]
    data = row.from_unit(np.linspace(0.0, 1.0, PERSONS.size))
    shape, records, _ = first_records(
        data, names=row.data, relation=Relation.REPLACE_ONE, groups=PERSONS, max_records=2, equal_groups=True
    )
    with pytest.raises(ValueError, match="in counts of labels and scores only"):
        row.planned(shape, {**row.required, **(row.limit or {})}).read(records)


# ---- summaries and Dask collections: all records of a person are in one chunk

ENDS = [*np.searchsorted(PERSONS, [0, 90, 250, 251]), PERSONS.size]
CHUNKS = [*itertools.pairwise(ENDS)]
FALLING = sorted(CHUNKS, key=lambda ends: ends[0] - ends[1])  # in the last one nobody has four records
WAYS = {
    "mse": {"bounds": (0, 1)},
    "mae": {},
    "accuracy_score": {},
    "recall_score": {"max_records": 2},
    "f1_score": {},
    "confusion_matrix": {"max_records": 3, "equal_groups": True},
    "roc_curve": {"max_records": 2},
    "average_precision_score": {"max_records": 3, "equal_groups": True},
    "precision_score": {"max_records": 1, "equal_groups": True},
    "expected_calibration_error": {"max_records": 3},
}


def summary_of(name, chunks=CHUNKS):
    summary = dp.Summary(name, **WAYS[name])
    for start, end in chunks:
        summary = summary.update(Y[start:end], P[start:end], groups=PERSONS[start:end])
    return summary


@loop_over("name", WAYS)
def test_persons_in_chunks_are_released_as_in_one_call(name):
    metric = getattr(dp, f"private_{name}")
    whole = result(metric, Y, P, groups=PERSONS, **WAYS[name])
    empty = dp.Summary(name, **WAYS[name]).update([], [], groups=[])
    first, second = summary_of(name, CHUNKS[2:]), summary_of(name, CHUNKS[:2])
    merged = empty.merge(first).merge(second)
    several = [summary_of(name, FALLING), first.merge(second), merged, pickle.loads(pickle.dumps(merged))]
    lengths = (tuple(end - start for start, end in CHUNKS),)
    y, p, persons = (da.from_array(one, chunks=lengths) for one in (Y, P, PERSONS))
    of_dask = result(metric, y, p, groups=persons, **WAYS[name])
    for one in [of_dask, *(result(summary.release) for summary in several)]:
        assert one.outputs == whole.outputs
        np.testing.assert_equal(one.value, whole.value)
        assert (one.n, one.released) == (whole.n, whole.released)


@loop_over("most", [1, 2, 17, 40])
def test_persons_who_have_one_record_each_are_released_as_in_one_call(most):
    """A chunk does not tell how many records persons have in others."""
    options = {"max_records": most, "equal_groups": True}
    whole = result(dp.private_recall_score, Y, P, groups=np.arange(Y.size), **options)
    summary = dp.Summary("recall", **options).update(Y, P, groups=np.arange(Y.size))
    assert result(summary.release).outputs == whole.outputs


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


def test_chunks_without_records_tell_nothing_of_persons():
    summary = summary_of("mse").update([], []).update([], [], groups=[])
    assert result(summary.release).outputs == result(summary_of("mse").release).outputs
    plain = dp.Summary("mse").update(Y, P).update([], [], groups=[])
    assert plain.release(epsilon=1.0, neighboring="add_or_remove_one") >= 0


def test_persons_are_part_of_the_question(tmp_path):
    def ask(summary):
        budget = later(tmp_path / "budget.db", 5.0)
        return summary.release(1.0, accountant=budget, spend_name="matrix")

    first = ask(summary_of("confusion_matrix"))
    with pytest.warns(dp.exceptions.StoredReleaseWarning):
        np.testing.assert_equal(ask(summary_of("confusion_matrix", CHUNKS[::-1])), first)
    with pytest.raises(ValueError, match="number of persons was 300 and is 210"):
        ask(summary_of("confusion_matrix", CHUNKS[1:]))


def test_notes_say_persons_where_these_are_counted():
    asked = {**EQUAL, "epsilon": 0.01}
    for metric in (dp.private_recall_score, dp.private_roc_curve):
        result = dp.with_result(metric)(Y, Y, **asked)
        note = result.note or ""
        assert "persons by the noisy counts" in note, metric.__name__
