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
bins of them. A bounded mean is released with its spread.
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
from dp_metrics.inputs.arrays import BLOCK, in_blocks

Floats = NDArray[np.float64]
Call: TypeAlias = Callable[..., Any]

BOUNDS = (-5.0, 5.0)
BUFFERS = np.empty((4, BLOCK))
SIZES = (1_000, 100_000, 1_000_000)


def split(values: Floats, exponent: int, high: Floats, rest: Floats) -> None:
    """Round values to multiples of a power of two, and find what is left."""
    sigma = 1.5 * 2.0**exponent
    np.add(values, sigma, out=high)
    np.subtract(high, sigma, out=high)
    np.subtract(values, high, out=rest)


def passes_of_mse(y: Floats, prediction: Floats) -> None:
    """Make losses, find the largest ones and those too small for one sum, and add up their two parts."""
    for true, predicted in zip(in_blocks(y), in_blocks(prediction), strict=True):
        loss, high, rest = BUFFERS[:3, : true.size]
        np.subtract(predicted, true, out=loss)
        np.multiply(loss, loss, out=loss)
        loss.max(), (loss > 15.0).nonzero(), (loss < 2.0**-30).nonzero()
        split(loss, 10, high, rest)
        high.view(np.int64).sum()
        rest.sum()


def passes_of_variance(y: Floats) -> None:
    """Find the ends, cut three slices, add up them and their products, and count values by size."""
    for block in in_blocks(y):
        scaled, *slices = BUFFERS[:, : block.size]
        first, second, third = slices
        block.min(), block.max()
        split(block, 34, first, third)
        split(third, 11, second, third)
        for place, one in enumerate(slices):
            one.sum()
            for other in slices[place:]:
                np.dot(one, other)
        np.multiply(block, 1000.0, out=scaled)
        np.bincount(scaled.astype(np.int16) + np.int16(1 << 14))


def passes_of_mean(y: Floats) -> None:
    """Find the ends, move values to begin at 0, and add up them, in two parts, and their spread."""
    for block in in_blocks(y):
        moved, high, rest, share = BUFFERS[:, : block.size]
        block.min(), block.max()
        np.subtract(block, BOUNDS[0], out=moved)
        (moved < 2.0**-26).nonzero()
        split(moved, 10, high, rest)
        high.view(np.int64).sum()
        rest.sum()
        np.divide(moved, BOUNDS[1] - BOUNDS[0], out=share)
        np.subtract(1.0, share, out=rest)
        np.multiply(share, rest, out=share)
        np.multiply(share, 2.0**36, out=share)
        np.floor(share, out=share).sum()


def rows(n: int, repeats: int) -> list[list[str]]:
    """Return what the parts of each release take, as ratios."""
    y, error = np.random.default_rng(0).normal(size=(2, n))
    private_mean = partial(dp.private_mean, bounds=BOUNDS)
    of: dict[str, tuple[Call, Call, Call, list[Floats], tuple[float | str, ...]]] = {
        "mean_squared_error": (
            dp.private_mse, passes_of_mse, mean_squared_error, [y, y + error], (1.7, "", 1.3)
        ),
        "numpy.var": (dp.private_variance, passes_of_variance, np.var, [y], (90, "", 6)),
        "numpy.mean": (private_mean, passes_of_mean, np.mean, [y], (120, 35, 10)),
    }  # fmt: skip
    found = []
    for name, (private, passes, plain, data, aims) in of.items():
        few = [values[:10] for values in data]
        releases = [partial(private, *some, epsilon=1.0) for some in (few, data)]
        *parts, twin = medians([partial(passes, *data), *releases, partial(plain, *data)], repeats)
        ratios = [f"{seconds / twin:.3g}" for seconds in parts]
        found.append([f"{n:,}", f"`{name}`", f"{1e3 * twin:.3g}", *ratios, str(aims[SIZES.index(n)])])
    return found


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="1,000 records only, few times")
    sizes = SIZES[:1] if parser.parse_args().quick else SIZES
    warnings.simplefilter("ignore", dp.exceptions.NoisyReleaseWarning)
    header = ("records", "exact function", "ms", "passes", "few records", "release", "aim")
    lines = [row for n in sizes for row in rows(n, 20_000 // n + 20)]
    print_table("Times as ratios to that of the exact function:", header, lines)


if __name__ == "__main__":
    main()
