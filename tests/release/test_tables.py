"""Tables of counts: their sensitivity by enumeration, the exact loss of their noise, and plausible counts."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from helpers import loop_over
from hypothesis import given, settings
from hypothesis import strategies as st

import dp_metrics as dp
from dp_metrics._random import SeededEntropy
from dp_metrics.analysis._law_comparison import draw_loss
from dp_metrics.mechanisms import Geometric
from dp_metrics.metrics import METRICS
from dp_metrics.metrics.labels.count_formulas import ratio
from dp_metrics.metrics.labels.layouts import (
    Counts,
    matrix_layout,
    of_each_label,
    of_one_label,
    right_or_wrong,
    whole,
)
from dp_metrics.release.draws import VectorDraw
from dp_metrics.release.parts.count_table import CountTable, plausible_counts

LAYOUTS = {
    "right or wrong": lambda k: right_or_wrong(),
    "matrix": whole,
    "all of each label": lambda k: of_each_label(k, "missed", "wrong"),
    "recall": lambda k: of_each_label(k, "missed"),
    "precision": lambda k: of_each_label(k, "wrong"),
    "errors of both kinds": lambda k: of_each_label(k, "either"),
    "recall of one": lambda k: of_one_label(1, "missed"),
    "precision of one": lambda k: of_one_label(1, "wrong"),
    "f1 of one": lambda k: of_one_label(k - 1, "either"),
    "usual": matrix_layout,
}


def counts_of(layout, labels, *records):
    matrix = np.zeros((labels, labels), dtype=np.int64)
    for record in records:
        matrix[record] += 1
    return layout.of(matrix)


def weights_of(layout):
    return [weight for size, weight in layout.cells for _ in range(size)]


@loop_over("labels", [2, 3, 4])
@pytest.mark.parametrize("name", LAYOUTS)
def test_a_record_moves_the_weighted_counts_by_two_if_replaced_and_by_one_if_added(name, labels):
    layout = LAYOUTS[name](labels)
    weights = weights_of(layout)
    records = list(itertools.product(range(labels), repeat=2))

    def distance(x, y):
        return sum(w * abs(int(a) - int(b)) for w, a, b in zip(weights, x, y, strict=True))

    alone = [counts_of(layout, labels, record) for record in records]
    assert max(distance(x, 0 * x) for x in alone) == 1
    assert max(distance(x, y) for x, y in itertools.product(alone, repeat=2)) == 2
    if layout.is_partition:
        assert {int(x.sum()) for x in alone} == {1}
        assert set(weights) == {1}
    # what is read of exact counts is what the matrix says
    several = [(0, 0), (1, 1), (0, 1), (labels - 1, 0), (1, 1)]
    read = layout.read(counts_of(layout, labels, *several).astype(float))
    assert read.n == len(several)


@pytest.mark.parametrize("n", [0, 12, 500, None])
def test_as_many_records_are_missed_as_are_wrong(n):
    """A record that is wrong is both; where n is public, the supports of all labels add up to it."""
    layout, rng = of_each_label(5, "missed", "wrong"), np.random.default_rng(0)
    for spread in (1.0, 30.0, 1e15):
        noisy = [int(z) for z in rng.normal(20, spread, 15)]
        counts = layout.counts(noisy, n)
        assert min(counts.right.min(), counts.missed.min(), counts.wrong.min()) >= 0
        assert counts.missed.sum() == pytest.approx(counts.wrong.sum())
        for of_labels in (counts.true, counts.predicted):
            assert of_labels.sum() == pytest.approx(counts.n if n is None else n)


def test_equal_sums_make_mean_recalls_more_accurate():
    matrix = np.full((10, 10), 1) + np.diag(np.full(10, 90))
    layout, rng = of_each_label(10, "missed", "wrong"), np.random.default_rng(0)
    exact, n = layout.of(matrix), int(matrix.sum())
    rates = np.repeat([0.5, 0.25], [10, 20])
    errors = []
    for z in np.rint(rng.laplace(scale=1 / rates, size=(500, 30))):
        noisy = plausible_counts(exact + z, layout.cells, n).reshape(3, 10)
        as_they_are = Counts(right=noisy[0], missed=noisy[1], wrong=noisy[2], n=n)
        recalls = [ratio(c, kind="recall") for c in (layout.counts(exact + z, n), as_they_are)]
        errors.append(np.abs(np.array(recalls) - 0.91))
    ours, theirs = np.mean(errors, axis=0)
    assert ours < 0.8 * theirs


@loop_over("epsilon", [Fraction(1, 10), Fraction(1), Fraction(3)])
@loop_over("private_n", [False, True])
@pytest.mark.parametrize("name", LAYOUTS)
def test_the_exact_loss_of_a_table_is_epsilon_and_no_more(name, private_n, epsilon):
    layout, labels = LAYOUTS[name](3), 3
    records = list(itertools.product(range(labels), repeat=2))

    def draw(*chosen):
        counts = counts_of(layout, labels, (0, 0), (1, 2), *chosen)
        table = CountTable(counts, 2 + len(chosen), layout.cells, layout.is_partition)
        return table.prepare(Geometric(), epsilon, private_n=private_n)

    pairs = [((a,), ()) for a in records] if private_n else itertools.combinations([(a,) for a in records], 2)
    losses = [draw_loss(draw(*a), draw(*b), 1) for a, b in pairs]
    assert 0.99 * float(epsilon) <= max(losses) <= float(epsilon)


def test_independent_noise_at_the_whole_rate_is_rejected():
    """Four cells, each with noise of rate epsilon: a replaced record costs twice what is claimed."""
    a, b = ((3, 1, 0, 2), (2, 2, 0, 2))
    claimed = ((4, Fraction(1)),)
    assert draw_loss(VectorDraw(a, claimed), VectorDraw(b, claimed), 1) == 2
    # with the sum 0, data sets of different size have different outputs
    half = ((4, Fraction(1, 2)),)
    assert draw_loss(VectorDraw(a, half, True), VectorDraw((3, 1, 0, 3), half, True), 1) == math.inf
    assert draw_loss(VectorDraw(a, half, True), VectorDraw(b, half, True), 1) == 1
    assert draw_loss(VectorDraw(a, half, True), VectorDraw(b, half, False), 1) == math.inf


@pytest.mark.parametrize("cells", [2, 3, 4])
def test_the_worst_ratio_of_zero_sum_noise_is_e_to_the_epsilon_over_all_outputs(cells):
    """Over the lattice of outputs with the sum n, in exact rationals with q in place of exp(-epsilon / 2)."""
    q, radius = Fraction(3, 5), 6
    outputs = [z for z in itertools.product(range(-radius, radius + 1), repeat=cells) if sum(z) == 0]

    def weight(z, x):
        return q ** sum(abs(a - b) for a, b in zip(z, x, strict=True))

    zero, moved = (0,) * cells, (1, -1, *(0,) * (cells - 2))
    ratios = [weight(z, zero) / weight(z, moved) for z in outputs]
    assert max(ratios) == q**-2
    assert min(ratios) == q**2


@pytest.mark.parametrize(("cells", "zero_sum"), [(256, True), (257, False)])
def test_many_cells_have_independent_noise(cells, zero_sum):
    table = CountTable(np.ones(cells, dtype=np.int64), cells, ((cells, Fraction(1)),), True)
    draw = table.prepare(Geometric(), Fraction(1), private_n=False)
    assert draw.zero_sum == zero_sum
    (noisy, drawn), total = draw(SeededEntropy(0), None), cells
    assert drawn == {"counts": list(noisy)}
    assert (sum(noisy) == total) == zero_sum
    assert not table.prepare(Geometric(), Fraction(1), private_n=True).zero_sum


def noise_of_parts(draw, parts):
    """Return the noise of many draws, summed over equal parts of the numbers."""
    entropy = SeededEntropy(3)
    noisy = np.array([draw(entropy, None)[0] for _ in range(300)])
    return (noisy - np.array(draw.values)).reshape(300, parts, -1).sum(axis=2)


def test_zero_sum_noise_goes_over_the_whole_table_however_its_cells_are_listed():
    """Noise with the sum 0 in each run of cells would show the exact number of records of a group."""
    rate = Fraction(1, 2)
    draw = VectorDraw((3, 1, 2, 5, 0, 4), ((3, rate), (3, rate)), zero_sum=True)
    sums = noise_of_parts(draw, 2)
    assert not sums.sum(axis=1).any()
    # the law of one run: P(sum of three of six = 0) is 0.13, and 0.99 < 1 - 0.13^300 of seeds show another
    assert 0.05 < (sums[:, 0] == 0).mean() < 0.3
    one_run = noise_of_parts(VectorDraw(draw.values, ((6, rate),), zero_sum=True), 2)
    np.testing.assert_array_equal(sums, one_run)


@pytest.mark.parametrize("cells", [((2, Fraction(1)),), ((1, Fraction(1)), (3, Fraction(1)))])
def test_each_number_has_noise_of_its_own_law(cells):
    """Beyond the auditor, which takes a draw at its word: every value that noise can have, it has."""
    size = sum(number for number, _ in cells)
    draw = CountTable(np.full(size, 9), 9 * size, cells, True).prepare(
        Geometric(), Fraction(1), private_n=False
    )
    assert draw.zero_sum
    entropy = SeededEntropy(4)
    drawn = np.array([draw(entropy, None)[0] for _ in range(500)])
    assert (drawn.sum(axis=1) == 9 * size).all()
    assert np.linalg.matrix_rank(drawn - 9) == size - 1  # no other sum is fixed


COUNTS = st.lists(st.integers(-40, 60), min_size=2, max_size=8)
WEIGHTS = st.sampled_from([Fraction(1), Fraction(1, 2)])


@given(COUNTS, st.integers(1, 80), WEIGHTS)
@settings(max_examples=200, deadline=None)
def test_plausible_counts_are_the_nearest_that_can_be(noisy, n, weight):
    size = len(noisy)
    cells = ((1, Fraction(1)), (size - 1, weight))
    w = np.array([1.0] + [float(weight)] * (size - 1))
    x = plausible_counts(noisy, cells, n)
    assert (x >= 0).all()
    assert w @ x == pytest.approx(n, rel=1e-12)
    # the optimum: what is left at 0 would have to fall, and all others moved by one weighted amount
    moved = w * (np.array(noisy) - x)
    kept = x > 1e-9
    assert np.ptp(moved[kept]) == pytest.approx(0, abs=1e-9)
    assert (moved[~kept] <= moved[kept].max() + 1e-9).all()
    if size > 4:  # where n is private, the sum is the noisy one
        expected = plausible_counts(noisy, cells, max(round(w @ np.array(noisy)), 0))
    else:
        expected = np.maximum(noisy, 0)
    np.testing.assert_array_equal(plausible_counts(noisy, cells, None), expected)


def test_plausible_counts_of_no_record_and_of_any_size():
    cells = ((3, Fraction(1)),)
    np.testing.assert_array_equal(plausible_counts([5, -3, 0], cells, 0), np.zeros(3))
    for noisy in ([10**400, -(10**400), 3], [2**52, 2**52, -(2**60)], [-(10**300)] * 3):
        x = plausible_counts(noisy, cells, 7)
        assert np.isfinite(x).all()
        assert x.sum() == pytest.approx(7)
    assert np.isfinite(plausible_counts([10**400, 1, -5], cells, None)).all()


def test_the_noisy_counts_are_part_of_what_may_be_published():
    y, p = [0, 1, 1, 0] * 50, [0, 1, 0, 0] * 50
    result = dp.with_result(dp.private_confusion_matrix)(y, p, epsilon=1.0)
    noisy = result.drawn["counts"]
    assert sum(noisy) == 200
    assert all(type(count) is int for count in noisy)
    assert result.mechanism == "two-sided geometric noise with sum 0"
    assert result.value.sum() == pytest.approx(200)
    for metric in (dp.private_recall_score, dp.private_f1_score):
        assert len(dp.with_result(metric)(y, p, epsilon=1.0).drawn["counts"]) == 3


@pytest.mark.parametrize("name", [name for name, row in METRICS.items() if row.mechanism is None])
def test_what_follows_from_noisy_counts_does_not_know_a_private_number_of_records(name):
    """The same noisy counts give the same result, whatever the true number was."""
    row, results = METRICS[name], []
    for n in (40, 90):
        plan, known = row.read(row.from_unit(np.linspace(0, 1, n)), {}, private_n=True)
        release = row.settings(epsilon=1, neighboring="add_or_remove_one", options={})
        draw = known.parts[0].prepare(Geometric(), Fraction(1), private_n=True)
        noisy = tuple(range(5, 5 + len(draw.values)))
        results.append(release.result(plan, known, [noisy]))
    np.testing.assert_equal(*results)


def test_the_sum_of_released_counts_is_noisy_where_the_number_of_records_is_private():
    y, p = [0, 1, 1, 0, 2] * 8, [0, 1, 0, 0, 2] * 8
    private = {"epsilon": 1.0, "labels": [0, 1, 2], "neighboring": "add_or_remove_one"}
    sums = {
        round(dp.private_confusion_matrix(y, p, **private, random_state=SeededEntropy(seed)).sum())
        for seed in range(20)
    }
    assert len(sums) > 5


@pytest.mark.parametrize("order", [1, -1])
def test_each_number_has_noise_of_its_own_rate(order):
    rates = [(2, Fraction(100)), (2, Fraction(1, 1000))][
        ::order
    ]  # none but with probability exp(-100); about 1,000
    noise, _ = VectorDraw((0,) * 4, tuple(rates))(SeededEntropy(0), None)
    assert [z == 0 for z in noise] == [True, True, False, False][::order]
