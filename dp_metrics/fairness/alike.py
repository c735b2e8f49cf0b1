"""Which gap between groups would be released if there was none: made-up records, and made-up noise."""

from collections.abc import Sequence

import numpy as np

from dp_metrics._random import Generator, made_up
from dp_metrics.inputs.floats import Floats
from dp_metrics.metrics.labels.counts import Confusion
from dp_metrics.metrics.labels.label_limits import ratio_cells
from dp_metrics.release.noise import CountsNoise, as_floats
from dp_metrics.release.ratio_limits import RatioCells
from dp_metrics.release.released import ResultNoise

_TIMES = 1_000
_NUMBERS = 100_000  # so many at most are drawn, but for a hundred times


def gap_where_alike(noises: Sequence[ResultNoise], compared: Sequence[int]) -> str:
    """Return a sentence about the gap that would be released if the compared groups were alike.

    Parameters
    ----------
    noises : sequence of ResultNoise
        Of all groups that have records.
    compared : sequence of int
        Places of the groups.
    """
    gaps = gaps_where_alike(noises, compared)
    if gaps is None:
        return (
            "Which gap would be released if the groups were alike is not known: that takes more than the "
            "released numbers."
        )
    alike = "both groups" if len(compared) == 2 else "all groups"
    return (
        f"Were {alike} alike, a gap of {np.mean(gaps):.2g} would be released on average, and one below "
        f"{np.quantile(gaps, 0.95):.2g} in 95 of 100 releases."
    )


def gaps_where_alike(noises: Sequence[ResultNoise], compared: Sequence[int]) -> Floats | None:
    """Return simulated gaps between groups, largest value less smallest, that have one ratio in common.

    Only released and public numbers are used, and a seed, so that the same release has the same gaps. The
    numbers of records on which the ratios rest are taken to be those that the noisy counts tell.

    Returns
    -------
    ndarray or None
        None if the metric is not one ratio of counts.
    """
    result = noises[0].result
    cells = ratio_cells(result.layout, result.parts_of) if isinstance(result, Confusion) else None
    if not isinstance(result, Confusion) or cells is None or len(cells) != 1:
        return None
    counts = [part for one in noises for part in one.parts if isinstance(part, CountsNoise)]
    told = np.array([as_floats(one.noisy) for one in counts])
    generator = made_up()
    records = _of_sides(np.maximum(told, 0.0), cells[0])[:, compared]  # in a, and in b
    share = records[0].sum() / max(records.sum(), 1.0)
    sizes = np.round(records.sum(axis=0)).astype(np.int64)
    noise = _of_sides(_noise(counts, told.shape, generator)[:, compared], cells[0])
    right = generator.binomial(sizes, share, size=noise.shape[1:])
    a, b = np.maximum(np.stack([right, sizes - right]) + noise, 0.0) * np.reshape(cells[0].weights, (2, 1, 1))
    undefined = float(result.formula(result.layout.read(np.zeros(told.shape[1]))))
    values = np.divide(a, a + b, out=np.full_like(a, undefined), where=a + b > 0)
    gaps: Floats = values.max(axis=1) - values.min(axis=1)
    return gaps


def _of_sides(counts: Floats, cells: RatioCells) -> Floats:
    """Return the sums of the counts in a, and of those in b."""
    return np.stack([counts[..., side].sum(axis=-1) for side in (cells.a, cells.b)])


def _noise(counts: Sequence[CountsNoise], form: tuple[int, int], generator: Generator) -> Floats:
    """Return draws of the noise of all counts of each group: an array of draws, groups and counts."""
    times = max(min(_TIMES, _NUMBERS // counts[0].together), 100)
    if counts[0].others:
        size = counts[0].together
        all_counts = CountsNoise((0,) * size, ((size, counts[0].rates[0][1]),), zero_sum=True)
        return all_counts.simulated(generator, times).reshape(times, *form)
    return np.stack([one.simulated(generator, times) for one in counts], axis=1)
