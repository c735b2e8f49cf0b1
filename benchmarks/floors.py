"""Print which part of the time of a release is a floor: what NumPy alone takes for any such release.

Run `python benchmarks/floors.py`. Each row divides by the time of the exact function of NumPy or scikit-learn
on the same records; all calls take turns in one process, and times are medians.

- *passes*: NumPy passes that no release of this kind can do without, over blocks that stay in the cache and
  into buffers that are there: no checks, no arithmetic of whole numbers, nothing private.
- *few records*: the same release of ten records: checks, spend, law, random bits.
- *release*: the whole of it. Only what exceeds the other two can be saved without a compiled extension, or
  with fewer steps of Python where few records take most.

An exact sum splits a value by a power of two whose sum with it is rounded (see `BlockSums`): one addition, a
sum of the bits, two subtractions that leave the rest, and its sum. Squares need three such slices, and the
sums of six products. The noise of a variance follows values at some places in order, and so needs counts of
bins of them. That of a bounded mean follows its spread, by sums of both halves of the bits of equal sizes.
"""

import argparse
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from peers import medians
from sklearn.metrics import mean_squared_error
from tables import print_table

import dp_metrics as dp
from dp_metrics.sensitivity.exact import BLOCK, in_blocks

Floats = NDArray[np.float64]
Call: TypeAlias = Callable[..., Any]

SIGMA = 1.5 * 2.0**10
FIRST, SECOND = 1.5 * 2.0**34, 1.5 * 2.0**11
BOUNDS = (-5.0, 5.0)
AIMS = {  # for which this is to be no more
    ("mean_squared_error", 1_000): 1.7, ("mean_squared_error", 1_000_000): 1.3,
    ("numpy.var", 1_000): 90, ("numpy.var", 1_000_000): 6,
    ("numpy.mean", 1_000): 120, ("numpy.mean", 1_000_000): 10,
}  # fmt: skip
BUFFERS = np.empty((4, BLOCK))


def passes_of_sum(block: Floats, rest: Floats) -> None:
    """Take the two parts of an exact sum."""
    np.add(block, SIGMA, out=rest)
    np.add.reduce(rest.view(np.int64))
    np.subtract(rest, SIGMA, out=rest)
    np.subtract(block, rest, out=rest)
    np.add.reduce(rest)


def passes_of_mse(y: Floats, prediction: Floats) -> None:
    """Make losses, find the largest, and take the parts of their sum."""
    for true, predicted in zip(in_blocks(y), in_blocks(prediction), strict=True):
        loss, rest = BUFFERS[:2, : true.size]
        np.subtract(predicted, true, out=loss)
        np.multiply(loss, loss, out=loss)
        np.max(loss)
        passes_of_sum(loss, rest)


def passes_of_variance(y: Floats) -> None:
    """Find the ends, cut three slices, add up them and their products, and count values by size."""
    bins = np.empty(y.size, dtype=np.int16)
    for at, block in zip(range(0, y.size, BLOCK), in_blocks(y), strict=True):
        ones, first, second, third = BUFFERS[:, : block.size]
        np.min(block)
        np.max(block)
        for values, sigma, cut, left in ((block, FIRST, first, third), (third, SECOND, second, third)):
            np.add(values, sigma, out=cut)
            np.subtract(cut, sigma, out=cut)
            np.subtract(values, cut, out=left)
        slices = (first, second, third)
        for place, one in enumerate(slices):
            np.add.reduce(one)
            for other in slices[place:]:
                np.dot(one, other)
        np.multiply(block, 1000.0, out=ones)
        bins[at : at + BLOCK] = ones
    np.bincount(bins + np.int16(1 << 14))


def passes_of_mean(y: Floats) -> None:
    """Move values to begin at 0, find the ends, and add up both halves of their bits by size."""
    numbers = np.empty(BLOCK, dtype=np.int64)
    for block in in_blocks(y):
        moved, level = BUFFERS[0, : block.size], numbers[: block.size]
        np.subtract(block, BOUNDS[0], out=moved)
        np.min(moved)
        np.max(moved)
        np.right_shift(moved.view(np.int64), 48, out=level)
        level -= level.min()
        for _ in range(2):
            np.bincount(level, moved)


def rows(n: int, repeats: int) -> list[list[str]]:
    """Return what the parts of each release take, as ratios."""
    rng = np.random.default_rng(0)
    y = rng.normal(size=n)
    prediction = y + rng.normal(size=n)
    private_mean = partial(dp.private_mean, bounds=BOUNDS)
    of: dict[str, tuple[Call, Call, Call, list[Floats]]] = {
        "mean_squared_error": (dp.private_mse, passes_of_mse, mean_squared_error, [y, prediction]),
        "numpy.var": (dp.private_variance, passes_of_variance, np.var, [y]),
        "numpy.mean": (private_mean, passes_of_mean, np.mean, [y]),
    }
    found = []
    for name, (private, passes, plain, data) in of.items():
        few = [values[:10] for values in data]
        releases = [partial(private, *some, epsilon=1.0) for some in (few, data)]
        *parts, twin = medians([partial(passes, *data), *releases, partial(plain, *data)], repeats)
        aim = AIMS.get((name, n))
        ratios = [f"{seconds / twin:.3g}" for seconds in parts]
        found.append([f"{n:,}", f"`{name}`", f"{1e3 * twin:.3g}", *ratios, "" if aim is None else f"{aim:g}"])
    return found


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", type=int, nargs="+", default=[1_000, 1_000_000])
    parser.add_argument("--repeats", type=int, default=25)
    parser.add_argument("--quick", action="store_true", help="1,000 records only, few times")
    arguments = parser.parse_args()
    sizes, repeats = ([1_000], 1) if arguments.quick else (arguments.sizes, arguments.repeats)
    warnings.simplefilter("ignore", dp.exceptions.NoisyReleaseWarning)
    header = ("records", "exact function", "ms", "passes", "few records", "release", "aim")
    lines = [row for n in sizes for row in rows(n, repeats if n > 10_000 else 20 * repeats)]
    print_table("Times as ratios to that of the exact function:", header, lines)


if __name__ == "__main__":
    main()
