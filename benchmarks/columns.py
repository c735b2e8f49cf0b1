"""The columns of numbers on which rules for means and variances are judged: `rules.py` measures on them.

The set was fixed before anything was run on it. Most columns are made to break rules that draw the scale of
the noise from the data: clusters, few records that are not zero, heavy tails, bounds far from the data. The
others are tame, or real. With replacement, a real column gives any number of records.
"""

import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits

from dp_metrics.evaluation.datasets import read_column

SEED = 20_261_123

Floats = NDArray[np.float64]
Make = Callable[[int, np.random.Generator], Floats]
Bounds = tuple[float, float] | None


@dataclass(frozen=True)
class Column:
    """A column of numbers.

    Attributes
    ----------
    kind : str
        What it stands for.
    make : callable
        Makes so many values with a generator of random numbers.
    bounds : tuple of float or None
        The public bounds of the values.
    sizes : tuple of int
        The numbers of records to measure with.
    """

    kind: str
    make: Make
    bounds: Bounds
    sizes: tuple[int, ...] = (100, 300, 1_000, 3_000, 10_000, 100_000)

    def values(self, name: str, n: int) -> Floats:
        """Return n values, clipped into the bounds; the same in every call with this name."""
        values = self.make(n, np.random.default_rng([SEED, zlib.crc32(name.encode()), n, 0]))
        return values if self.bounds is None else np.clip(values, *self.bounds)


def clusters(
    shares: Sequence[float], places: Sequence[float], spread: float, n: int, rng: np.random.Generator
) -> Floats:
    """Return clusters of exactly these shares of the records, each of one record at least."""
    sizes = [max(round(share * n), 1) for share in shares]
    sizes[0] += n - sum(sizes)
    return np.repeat(np.array(places, dtype=np.float64), sizes) + spread * rng.normal(size=n)


def ones(count: int, n: int, rng: np.random.Generator) -> Floats:
    """Return so many ones, half of the records at most, and zeros."""
    return (np.arange(n) < min(count, n // 2)).astype(np.float64)


def sparse(count: int, n: int, rng: np.random.Generator) -> Floats:
    """Return so many lognormal numbers of either sign, half of the records at most, and zeros."""
    return ones(count, n, rng) * signed(rng.lognormal(size=n), rng)


def signed(sizes: Floats, rng: np.random.Generator) -> Floats:
    """Return numbers of these sizes with random signs."""
    found: Floats = sizes * rng.choice([-1.0, 1.0], sizes.size)
    return found


def mixed(share: float, n: int, rng: np.random.Generator, first: Floats, second: Floats) -> Floats:
    """Return the first numbers, but about this share of the second."""
    return np.where(rng.random(n) < share, second, first)


def points(shares: Sequence[float], places: Sequence[float], bounds: Bounds) -> Column:
    return Column("clusters", partial(clusters, shares, places, 0.0), bounds)


def groups(shares: Sequence[float], places: Sequence[float], bounds: Bounds) -> Column:
    return Column("clusters", partial(clusters, shares, places, 1.0), bounds)


def few_ones(count: int) -> Column:
    return Column("sparse", partial(ones, count), (0.0, 10.0))


def few(count: int) -> Column:
    return Column("sparse", partial(sparse, count), None)


def normal(kind: str, mean: float, deviation: float, bounds: Bounds) -> Column:
    return Column(kind, lambda n, rng: rng.normal(mean, deviation, n), bounds)


def real(values: Callable[[], Floats], bounds: Bounds) -> Column:
    return Column("real", lambda n, rng: rng.choice(np.asarray(values(), dtype=np.float64), n), bounds)


def of_data(dataset: str, column: str, bounds: Bounds) -> Column:
    return real(partial(read_column, dataset, column), bounds)


THIRDS, FIFTHS = (1 / 3,) * 3, (0.2,) * 5

COLUMNS: dict[str, Column] = {
    # clusters: points, and groups of standard deviation 1
    "two points .5/.5, in their bounds": points((0.5, 0.5), (0, 1), (0.0, 1.0)),
    "two points .5/.5, wide": points((0.5, 0.5), (0, 1), (-10.0, 10.0)),
    "two points .5/.5": points((0.5, 0.5), (0, 1), None),
    "two points .51/.49, wide": points((0.51, 0.49), (0, 1), (-2.0, 3.0)),
    "two points .9/.1": points((0.9, 0.1), (0, 1), (0.0, 1.0)),
    "two points .99/.01": points((0.99, 0.01), (0, 1), (0.0, 1.0)),
    "two points .78/.22, wide": points((0.78, 0.22), (0, 1), (0.0, 20.0)),
    "two points .76/.24": points((0.76, 0.24), (0, 1), None),
    "three points .5/.25/.25": points((0.5, 0.25, 0.25), (0, -1, 1), (-5.0, 5.0)),
    "three points .54/.23/.23": points((0.54, 0.23, 0.23), (0, -1, 1), None),
    "three points .56/.22/.22": points((0.56, 0.22, 0.22), (0, -1, 1), (-5.0, 5.0)),
    "three points .98/.01/.01": points((0.98, 0.01, 0.01), (0, -1, 1), (-5.0, 5.0)),
    "two groups .5/.5": groups((0.5, 0.5), (0, 20), (-20.0, 40.0)),
    "two groups .9/.1": groups((0.9, 0.1), (0, 20), None),
    "two groups .99/.01": groups((0.99, 0.01), (0, 100), (-10.0, 200.0)),
    "three groups, equal": groups(THIRDS, (0, 20, 100), None),
    "three groups .7/.2/.1": groups((0.7, 0.2, 0.1), (0, 20, 200), (-100.0, 500.0)),
    "five groups, equal": groups(FIFTHS, (0, 10, 30, 70, 150), (-50.0, 300.0)),
    "five groups, unequal": groups((0.6, 0.2, 0.1, 0.07, 0.03), (0, 10, 30, 100, 1000), None),
    # few records that are not zero
    "5 ones": few_ones(5),
    "20 ones": few_ones(20),
    "50 ones": few_ones(50),
    "100 ones": few_ones(100),
    "300 ones": few_ones(300),
    "20 lognormal": few(20),
    "100 lognormal": few(100),
    "300 lognormal": few(300),
    # heavy tails
    "lognormal 1, bounded": Column("heavy", lambda n, rng: rng.lognormal(0, 1, n), (0.0, 50.0)),
    "lognormal 1": Column("heavy", lambda n, rng: rng.lognormal(0, 1, n), None),
    "lognormal 2, bounded": Column("heavy", lambda n, rng: rng.lognormal(0, 2, n), (0.0, 1e4)),
    "lognormal 2": Column("heavy", lambda n, rng: rng.lognormal(0, 2, n), None),
    "lognormal 1, two-sided": Column("heavy", lambda n, rng: signed(rng.lognormal(0, 1, n), rng), None),
    "Pareto 1.5, bounded": Column("heavy", lambda n, rng: rng.pareto(1.5, n), (0.0, 1e3)),
    "Pareto 1.5": Column("heavy", lambda n, rng: rng.pareto(1.5, n), None),
    "Pareto 2.5": Column("heavy", lambda n, rng: rng.pareto(2.5, n), None),
    "Pareto 2.5, two-sided": Column("heavy", lambda n, rng: signed(rng.pareto(2.5, n), rng), (-1e3, 1e3)),
    "t, 2 degrees": Column("heavy", lambda n, rng: rng.standard_t(2, n), None),
    "t, 3 degrees": Column("heavy", lambda n, rng: rng.standard_t(3, n), (-1e3, 1e3)),
    "t, 5 degrees": Column("heavy", lambda n, rng: rng.standard_t(5, n), None),
    "Cauchy, clipped": Column("heavy", lambda n, rng: rng.standard_cauchy(n), (-100.0, 100.0)),
    # almost constant
    "normal .001 in 10": normal("near-constant", 5.0, 1e-3, (0.0, 10.0)),
    "normal .1 in 2000": normal("near-constant", 100.0, 0.1, (-1e3, 1e3)),
    "normal 1 at a million": normal("near-constant", 1e6, 1.0, None),
    "constant but 1 %": Column(
        "near-constant", lambda n, rng: clusters((0.99, 0.01), (1, 1.01), 0.0, n, rng), (0.0, 10.0)
    ),
    # whole numbers
    "ages": Column("whole", lambda n, rng: np.rint(np.clip(rng.normal(42, 18, n), 18, 95)), (0.0, 120.0)),
    "ages, years of school": Column("whole", lambda n, rng: rng.integers(6, 19, n).astype(np.float64), None),
    "Poisson .1": Column("whole", lambda n, rng: rng.poisson(0.1, n).astype(np.float64), (0.0, 50.0)),
    "Poisson 3": Column("whole", lambda n, rng: rng.poisson(3.0, n).astype(np.float64), (0.0, 50.0)),
    "geometric .1": Column("whole", lambda n, rng: rng.geometric(0.1, n).astype(np.float64), None),
    # mixtures
    "normal, 1 % ten times wider": Column(
        "mixture", lambda n, rng: mixed(0.01, n, rng, rng.normal(size=n), rng.normal(0, 10, n)), None
    ),
    "normal, 1 % far": Column(
        "mixture", lambda n, rng: mixed(0.01, n, rng, rng.normal(size=n), rng.normal(30, 1, n)), (-50.0, 50.0)
    ),
    "normal, 5 % far on both sides": Column(
        "mixture",
        lambda n, rng: mixed(0.05, n, rng, rng.normal(size=n), signed(rng.normal(30, 1, n), rng)),
        None,
    ),
    "box, half of it a far point": Column(
        "mixture", lambda n, rng: np.where(np.arange(n) % 2 == 0, rng.random(n), 20.0), (-20.0, 60.0)
    ),
    "point, half of it lognormal": Column(
        "mixture", lambda n, rng: ones(n, n, rng) * rng.lognormal(size=n), None
    ),
    "point, a tenth exponential": Column(
        "mixture", lambda n, rng: mixed(0.1, n, rng, np.zeros(n), rng.exponential(10, n)), (0.0, 1e3)
    ),
    # light tails
    "uniform in its bounds": Column("light", lambda n, rng: rng.random(n), (0.0, 1.0)),
    "uniform": Column("light", lambda n, rng: rng.random(n), None),
    "beta .5 .5": Column("light", lambda n, rng: rng.beta(0.5, 0.5, n), (0.0, 1.0)),
    "normal, tight": normal("light", 0.0, 1.0, (-3.0, 3.0)),
    "normal, wide": normal("light", 0.0, 1.0, (-100.0, 100.0)),
    "normal": normal("light", 0.0, 1.0, None),
    # real
    "diamonds price": of_data("diamonds", "price", (0.0, 50_000.0)),
    "abalone age": of_data("abalone", "Rings", (0.0, 50.0)),
    "bike rentals": of_data("bike", "cnt", (0.0, 5_000.0)),
    "adult age": of_data("adult", "age", (0.0, 125.0)),
    "adult hours": of_data("adult", "hours-per-week", (0.0, 168.0)),
    "adult capital gain": of_data("adult", "capital-gain", (0.0, 100_000.0)),
    "smooth signal": of_data("synthetic", "y", None),
    "diabetes body mass": real(lambda: load_diabetes().data[:, 2], None),
    "diabetes progress": real(lambda: load_diabetes().target, (0.0, 500.0)),
    "digits, a pixel": real(lambda: load_digits().data[:, 36], (0.0, 16.0)),
    "digits, which": real(lambda: load_digits().target, (0.0, 9.0)),
    "breast cancer, area": real(lambda: load_breast_cancer().data[:, 3], None),
}
