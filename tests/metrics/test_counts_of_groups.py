"""Counts of several groups in one table tell of all records what one table of all records tells."""

from fractions import Fraction

import numpy as np
import pytest
from helpers import loop_over

from dp_metrics.metrics.labels.confusion import ratio_cells
from dp_metrics.metrics.labels.layouts import Layout, matrix_layout, right_or_wrong, whole
from dp_metrics.quantities.tables import NoisyCounts
from dp_metrics.release.count_limits import NoisyRatio, noisy_ratio

RATIOS = {
    "recall": lambda x: (x.right, x.missed),
    "precision": lambda x: (x.right, x.wrong),
    "f1": lambda x: (2 * x.right, x.missed + x.wrong),
    "accuracy": lambda x: (x.right.sum(keepdims=True), x.missed.sum(keepdims=True)),
}


@loop_over("labels", [2, 3, 5])
@loop_over("n", [None, 40])
def test_noisy_counts_of_groups_are_added_up_before_any_is_made_plausible(labels, n):
    layout, groups = matrix_layout(labels), 4
    noisy = np.random.default_rng(labels).integers(-6, 9, (groups, layout.good.size))
    assert layout.in_groups(groups).good.size == noisy.size
    found = layout.in_groups(groups).counts(noisy.ravel().tolist(), n)
    wanted = layout.counts(noisy.sum(axis=0).tolist(), n)
    for kind in ("right", "missed", "wrong", "n"):
        assert getattr(found, kind) == pytest.approx(getattr(wanted, kind))


LAYOUTS = [
    *(Layout(("right", *kinds), 4) for kinds in (["missed"], ["wrong"], ["errors"], ["missed", "wrong"])),
    *(Layout(("right", kind, "rest"), place=2) for kind in ("missed", "wrong", "errors")),
    *(Layout((kind, "rest"), place=1) for kind in ("true", "predicted")),
    *map(right_or_wrong, (0, 1)),
]


@loop_over("layout", LAYOUTS)
def test_counts_of_a_matrix_are_read_as_what_they_are(layout):
    matrix = np.random.default_rng(0).integers(0, 90, (4, 4))
    told, known = (one.read(one.of(matrix).astype(float)) for one in (layout, whole(4)))
    here = slice(None) if layout.place is None else [layout.place]
    assert told.n == known.n
    if "correct" in layout.kinds:  # one number of the others
        exact = known.right.sum()
        assert told.right.tolist() == [exact]
        assert (layout.of(matrix)[layout.good < 0] == matrix.sum() - exact).all()
        assert told.missed.tolist() == told.wrong.tolist() == [matrix.sum() - exact]
        return
    for kind in {*layout.kinds} - {"rest"}:
        assert getattr(told, kind).tolist() == getattr(known, kind)[here].tolist()


@loop_over("layout", LAYOUTS)
def test_counts_of_a_matrix_are_exact_beyond_the_whole_numbers_of_floats(layout):
    """Units of persons may be more than 2^53 together."""
    few, many = np.random.default_rng(0).integers(0, 90, (4, 4)), np.full((4, 4), 1 << 57)
    assert (layout.of(few + many) - layout.of(many) == layout.of(few)).all()


@loop_over("ratio", RATIOS)
def test_a_ratio_of_all_groups_is_that_of_the_sums_of_their_counts(ratio):
    """Of two groups in one table, whose counts have the noise of sums of two."""
    own = ratio_cells(whole(2).in_groups(2), lambda x: tuple(part[-1:] for part in RATIOS[ratio](x)))
    counts = (9, 4, 3, 12, 8, 5, 2, 14)
    right = [0, 3] if ratio == "accuracy" else [3]
    wrong = {"recall": [2], "precision": [1]}.get(ratio, [1, 2])
    a, b = ([*side, *(place + 4 for place in side)] for side in (right, wrong))
    wanted = NoisyRatio(
        sum(counts[at] for at in a), sum(counts[at] for at in b), (len(a), len(b)), (Fraction(1),) * 2,
        8 - len(a) - len(b), None, (2.0, 1.0) if ratio == "f1" else (1.0, 1.0),
    )  # fmt: skip
    ((of_a, of_b, weights),) = own
    assert noisy_ratio(NoisyCounts(counts, ((8, Fraction(1)),), 8), of_a, of_b, None, weights) == wanted


def test_records_are_counted_twice_within_a_group_only():
    """Of four labels a record that is wrong is in two counts, so that not every ratio has the law of one."""
    layout = matrix_layout(4)
    assert ratio_cells(layout, RATIOS["accuracy"]) is not None
    for groups in (1, 2):
        both = ratio_cells(layout.in_groups(groups), lambda x: (x.right, x.missed + x.wrong[::-1]))
        assert both is None
