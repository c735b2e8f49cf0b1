"""Tables of counts: their noise, plausible counts, and tables of too many cells.

What each of them costs at most, `tests/test_privacy.py` says.
"""

import itertools
import math
import tracemalloc
from fractions import Fraction
from functools import partial
from types import SimpleNamespace

import dask.array as da
import numpy as np
import pytest
from helpers import Known, all_of_labels, all_of_scores, loop_over
from hypothesis import given, strategies as st

import dp_metrics as dp
from dp_metrics._random import SeededEntropy
from dp_metrics.inputs.options import Relation
from dp_metrics.mechanisms import Geometric
from dp_metrics.metrics.labels.layouts import Counts, Layout, Ratio
from dp_metrics.quantities import tables
from dp_metrics.quantities.base import Totals
from dp_metrics.quantities.tables import TableLaw, TableNoise, TableOf


def law_of(counts, cells, is_partition, epsilon=Fraction(1), relation=Relation.REPLACE_ONE):
    """Return the law of a table of these counts."""
    table = Known(TableOf(cells, is_partition, lambda records: records.arrays[0]), counts)
    noise, stats = table.prepared(None, epsilon, relation=relation)
    return noise.law(stats)


def test_as_many_records_are_missed_as_are_wrong_which_makes_mean_recalls_more_accurate():
    """A record that is wrong is both; where n is public, the supports of all labels add up to it."""
    layout, rng = Layout(("right", "missed", "wrong"), 5), np.random.default_rng(0)
    for n, spread in itertools.product((0, 12, 500, None), (1.0, 30.0, 1e15)):
        counts = layout.counts([int(z) for z in rng.normal(20, spread, 15)], n)
        assert min(counts.right.min(), counts.missed.min(), counts.wrong.min()) >= 0
        assert counts.missed.sum() == pytest.approx(counts.wrong.sum())
        for of_labels in (counts.true, counts.predicted):
            assert of_labels.sum() == pytest.approx(counts.n if n is None else n)
    matrix = np.full((10, 10), 1) + np.diag(np.full(10, 90))
    layout, errors = Layout(("right", "missed", "wrong"), 10), []
    exact, n = layout.of(matrix), int(matrix.sum())
    for z in np.rint(rng.laplace(scale=np.repeat([2.0, 4.0], [10, 20]), size=(500, 30))):
        noisy = tables.plausible_counts(exact + z, layout.cells, n).reshape(3, 10)
        as_they_are = Counts(right=noisy[0], missed=noisy[1], wrong=noisy[2], n=n)
        recalls = [Ratio("recall")(c) for c in (layout.counts(exact + z, n), as_they_are)]
        errors.append(np.abs(np.array(recalls) - 0.91))
    ours, theirs = np.mean(errors, axis=0)
    assert ours < 0.8 * theirs


@loop_over(("cells", "zero_sum"), [(256, True), (257, False)])
def test_many_cells_have_independent_noise(cells, zero_sum):
    of = np.ones(cells, dtype=np.int64), ((cells, Fraction(1)),), True
    law = law_of(*of)
    assert law.zero_sum == zero_sum
    assert (sum(law.release(SeededEntropy(0))) == cells) == zero_sum
    assert not law_of(*of, relation=Relation.ADD_OR_REMOVE_ONE).zero_sum


def noise_of_parts(law, parts):
    """Return the noise of many draws, summed over equal parts of the numbers."""
    entropy = SeededEntropy(3)
    noisy = np.array([law.release(entropy) for _ in range(300)])
    return (noisy - np.array(law.values)).reshape(300, parts, -1).sum(axis=2)


def test_whole_numbers_have_noise_of_their_sensitivity_and_none_where_records_are_added():
    numbers = tables.integers_of(lambda records: records.arrays[0], 2, 5)
    noise = numbers.noise(Geometric(), Totals.of(7), Fraction(1, 2))
    assert noise.rates == ((2, Fraction(1, 10)),)
    assert noise.in_sum is None
    with pytest.raises(ValueError, match="need a public number of records"):
        numbers.noise(Geometric(), None, Fraction(1, 2))


def test_zero_sum_noise_goes_over_the_whole_table_however_its_cells_are_listed():
    """Noise with the sum 0 in each run of cells would show the exact number of records of a group."""
    rate = Fraction(1, 2)
    law = TableLaw((3, 1, 2, 5, 0, 4), ((3, rate), (3, rate)), zero_sum=True)
    sums = noise_of_parts(law, 2)
    assert not sums.sum(axis=1).any()
    # the law of one run: P(sum of three of six = 0) is 0.13, and 0.99 < 1 - 0.13^300 of seeds show another
    assert 0.05 < (sums[:, 0] == 0).mean() < 0.3
    one_run = noise_of_parts(TableLaw(law.values, ((6, rate),), zero_sum=True), 2)
    np.testing.assert_array_equal(sums, one_run)


@loop_over("cells", [((2, Fraction(1)),), ((1, Fraction(1)), (3, Fraction(1)))])
def test_each_number_has_noise_of_its_own_law(cells):
    """Beyond the auditor, which takes a law at its word: every value that noise can have, it has."""
    size = sum(number for number, _ in cells)
    law = law_of(np.full(size, 9), cells, True)
    assert law.zero_sum
    entropy = SeededEntropy(4)
    drawn = np.array([law.release(entropy) for _ in range(500)])
    assert (drawn.sum(axis=1) == 9 * size).all()
    assert np.linalg.matrix_rank(drawn - 9) == size - 1  # no other sum is fixed


COUNTS = st.lists(st.integers(-40, 60), min_size=2, max_size=8)
WEIGHTS = st.sampled_from([Fraction(1), Fraction(1, 2)])


@given(COUNTS, st.integers(1, 80), WEIGHTS)
def test_plausible_counts_are_the_nearest_that_can_be(noisy, n, weight):
    size = len(noisy)
    cells = ((1, Fraction(1)), (size - 1, weight))
    w = np.array([1.0] + [float(weight)] * (size - 1))
    x = tables.plausible_counts(noisy, cells, n)
    assert (x >= 0).all()
    assert w @ x == pytest.approx(n, rel=1e-12)
    # the optimum: what is left at 0 would have to fall, and all others moved by one weighted amount
    moved = w * (np.array(noisy) - x)
    kept = x > 1e-9
    assert np.ptp(moved[kept]) == pytest.approx(0, abs=1e-9)
    assert (moved[~kept] <= moved[kept].max() + 1e-9).all()
    if size > 4:  # where n is private, the sum is the noisy one
        expected = tables.plausible_counts(noisy, cells, max(round(w @ np.array(noisy)), 0))
    else:
        expected = np.maximum(noisy, 0)
    np.testing.assert_array_equal(tables.plausible_counts(noisy, cells, None), expected)


def test_plausible_counts_of_no_record_and_of_any_size():
    cells = ((3, Fraction(1)),)
    np.testing.assert_array_equal(tables.plausible_counts([5, -3, 0], cells, 0), np.zeros(3))
    for noisy in ([10**400, -(10**400), 3], [2**52, 2**52, -(2**60)], [-(10**300)] * 3):
        x = tables.plausible_counts(noisy, cells, 7)
        assert np.isfinite(x).all()
        assert x.sum() == pytest.approx(7)
    assert np.isfinite(tables.plausible_counts([10**400, 1, -5], cells, None)).all()


def test_each_number_has_noise_of_its_own_rate():
    rates = (2, Fraction(1, 1000)), (2, Fraction(100)), (1, Fraction(1, 1000))
    noise = TableLaw((0,) * 5, rates).release(SeededEntropy(0))
    assert [z == 0 for z in noise] == [False, False, True, True, False]


# ---- tables whose columns nest -----------------------------------------------------------------------------


def test_the_columns_are_the_power_of_two_that_is_nearest_to_the_rule():
    sizes = (1, 30, 100, 300, 1000, 3000, 10_000, 30_000, 10**5, 10**6, 10**9)
    for size, by_group in itertools.product(sizes, (False, True)):
        rule = 0.9 * size**0.5 if by_group or size >= 10_000 else 1.5 * size ** (1 / 3)
        wanted = min(max(2 ** round(math.log2(rule)), 8), 128)
        assert tables.columns_for(size, Fraction(1), by_group=by_group) == wanted, size
        assert tables.columns_for(10 * size, Fraction(1, 10), by_group=by_group) == wanted
    for size, epsilon, wanted in (
        (1000, Fraction(1, 10**300), 8),
        (1000, Fraction(10**300), 128),
        (None, 1, 32),
    ):
        assert tables.columns_for(size, epsilon) == wanted


@pytest.mark.parametrize(
    ("relation", "rate"),
    [(Relation.REPLACE_ONE, Fraction(1, 4)), (Relation.ADD_OR_REMOVE_ONE, Fraction(1, 2))],
)
def test_a_record_counts_once_whatever_the_columns(relation, rate):
    def law_in(columns, epsilon):
        cells, table = ((256, Fraction(1)),), np.ones((2, 128), dtype=np.int64)
        nested = Known(TableOf(cells, True, lambda records: table, finest=128, columns=columns), np.ones(256))
        noise, stats = nested.prepared(None, epsilon, relation=relation)
        return noise.law(stats)

    law, columns = law_in(None, Fraction(1, 2)), 32 if relation.private_n else 8
    assert law.rates == ((2 * columns, rate),)
    assert law.values == (128 // columns,) * (2 * columns)
    assert law.zero_sum is not relation.private_n
    assert len(law_in(64, Fraction(1)).values) == 128
    noise, table = TableNoise(((4, Fraction(1)),), Fraction(1), columns=2), np.arange(16).reshape(2, 8)
    assert noise.law(SimpleNamespace(found=table)).values == (6, 22, 38, 54)
    cells = ((3, Fraction(1, 2)),)
    # of 3.5: 4, which is even
    for noisy, total in (([5, -2, 4], 4), ([-5, -2, 4], 0), ([10**400, 0, 0], 2**50)):
        assert tables.noisy_total(noisy, cells) == total


# ---- tables of too many cells ------------------------------------------------------------------------------

MANY = range(20_000)  # 4e8 cells, 3 GB
RECORDS = np.arange(200) % 7
MATRIX = (
    r"confusion matrix of 20,000 labels.* 400,000,000 cells; the limit is 10,000,000\. private_accuracy_score"
)
EDGES = np.arange(6_000_001)
OF_LABELS = {"y_true": RECORDS, "y_pred": RECORDS, "labels": MANY}
FRAME = partial(dp.PrivateMetricFrame, y_true=RECORDS, y_pred=RECORDS, sensitive_features=RECORDS)
TOO_MANY = [
    (MATRIX, partial(dp.private_recall_score, **OF_LABELS, average="macro")),
    (
        "table of 2,000 groups and 100 labels has 20,000,000 cells; the limit is 10,000,000",
        partial(
            FRAME, metrics=partial(dp.private_confusion_matrix, labels=range(100)), group_labels=range(2000)
        ),
    ),
    (
        "combinations of group_labels has 1,000,000,000,000 cells; the limit is 10,000,000",
        partial(
            dp.PrivateMetricFrame,
            metrics="accuracy", y_true=RECORDS, y_pred=RECORDS, group_labels=[range(10)] * 12,
            sensitive_features=np.stack([RECORDS] * 12, axis=1),
        ),
    ),
    (
        r"these edges has 12,000,000 cells; the limit is 10,000,000\. Pass fewer edges",
        partial(dp.private_roc_curve, RECORDS % 2, RECORDS, edges=EDGES),
    ),
    # summaries say so before the first record
    (MATRIX, lambda **settings: all_of_labels(labels=MANY)),
    ("12,000,000 cells", lambda **settings: all_of_scores(edges=EDGES)),
]  # fmt: skip


@loop_over(("message", "release"), TOO_MANY)
def test_too_many_cells_are_refused_before_they_are_made_and_paid_for(message, release):
    accountant = dp.PrivacyAccountant(1.0)
    for relation in ("replace_one", "add_or_remove_one"):
        tracemalloc.start()
        try:
            with pytest.raises(ValueError, match=message):
                release(epsilon=0.5, neighboring=relation, accountant=accountant)
            assert tracemalloc.get_traced_memory()[1] < 150e6  # of which 6,000,001 edges are checked
        finally:
            tracemalloc.stop()
    assert accountant.spent == 0


def test_too_many_cells_of_collections_are_refused_before_anything_is_computed():
    def fail(block):
        raise AssertionError("computed")

    records = da.from_array(RECORDS, chunks=50).map_blocks(fail, dtype=int, meta=np.array((), dtype=int))
    with pytest.raises(ValueError, match=MATRIX):
        dp.private_recall_score(records, records, epsilon=1.0, labels=MANY, average="macro")


def test_what_the_message_names_needs_fewer_and_the_limit_is_served(monkeypatch):
    assert 0 <= dp.private_accuracy_score(MANY, MANY, epsilon=1.0) <= 1
    of_seven = partial(dp.private_confusion_matrix, RECORDS, RECORDS, epsilon=1.0, labels=range(7))
    monkeypatch.setattr(tables, "MOST_CELLS", 49)
    assert of_seven().shape == (7, 7)
    monkeypatch.setattr(tables, "MOST_CELLS", 48)
    with pytest.raises(ValueError, match="49 cells; the limit is 48"):
        of_seven()
