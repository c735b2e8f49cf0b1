"""Forty columns made to break rules that draw the scale of the noise from the data.

The set was fixed before anything was run on it, and chose no constant of the package. `rules.py` measures on
these columns, as on those of `columns.py`.
"""

from collections.abc import Sequence
from functools import partial

import numpy as np
from columns import Bounds, Column, Floats, Make, clusters, mixed, ones, signed

LARGE = (100_000, 1_000_000)
USUAL = (1_000, 3_000, 10_000, 100_000)


def light(make: Make, bounds: Bounds = None) -> Column:
    return Column("light", make, bounds, LARGE)


def atoms(shares: Sequence[float], places: Sequence[float], bounds: Bounds = None) -> Column:
    return Column("atoms", partial(clusters, shares, places, 0.0), bounds, USUAL)


def u_shape(make: Make, bounds: Bounds = None) -> Column:
    return Column("U-shape", make, bounds, USUAL)


def far(make: Make, bounds: Bounds = None) -> Column:
    return Column("one far per cent", make, bounds, USUAL)


def wide(shares: Sequence[float], places: Sequence[float], bounds: Bounds) -> Column:
    return Column("clusters in wide bounds", partial(clusters, shares, places, 1.0), bounds, USUAL)


def answers(shares: Sequence[float], places: Sequence[float], bounds: Bounds = None) -> Column:
    def drawn(n: int, rng: np.random.Generator) -> Floats:
        found: Floats = rng.choice(np.array(places, dtype=np.float64), n, p=np.array(shares) / sum(shares))
        return found

    return Column("discrete answers", drawn, bounds, USUAL)


def days_unwell(n: int, rng: np.random.Generator) -> Floats:
    """Return answers like "on how many of 30 days": mostly 0, a few days, a peak at 30."""
    some = np.minimum(rng.geometric(0.25, n), 29).astype(np.float64)
    return mixed(0.07, n, rng, mixed(0.25, n, rng, np.zeros(n), some), np.full(n, 30.0))


HARD_COLUMNS: dict[str, Column] = {
    "light: uniform": light(lambda n, rng: rng.random(n)),
    "light: uniform in bounds": light(lambda n, rng: rng.random(n), (0.0, 1.0)),
    "light: beta 2 2": light(lambda n, rng: rng.beta(2, 2, n), (0.0, 1.0)),
    "light: beta 1 5": light(lambda n, rng: rng.beta(1, 5, n), (0.0, 1.0)),
    "light: normal": light(lambda n, rng: rng.normal(size=n)),
    "light: normal, wide": light(lambda n, rng: rng.normal(size=n), (-1e4, 1e4)),
    "light: squares of normal": light(lambda n, rng: rng.normal(size=n) ** 2),
    "light: exponential": light(lambda n, rng: rng.exponential(size=n)),
    "light: gamma 4": light(lambda n, rng: rng.gamma(4.0, 1.0, n), (0.0, 100.0)),
    "light: logistic": light(lambda n, rng: rng.logistic(size=n)),
    "atoms: .5/.5 at the ends": atoms((0.5, 0.5), (0, 1), (0.0, 1.0)),
    "atoms: .97/.03": atoms((0.97, 0.03), (0, 1), (0.0, 1.0)),
    "atoms: .999/.001": atoms((0.999, 0.001), (0, 1)),
    "atoms: .6/.4, wide": atoms((0.6, 0.4), (0, 1), (-100.0, 100.0)),
    "atoms: .4/.2/.4": atoms((0.4, 0.2, 0.4), (-1, 0, 1), (-1.0, 1.0)),
    "atoms: .98/.015/.005": atoms((0.98, 0.015, 0.005), (0, 1, 100), (0.0, 1000.0)),
    "atoms: .8/.199/.001": atoms((0.8, 0.199, 0.001), (0, 1, 30)),
    "U: beta .1 .1": u_shape(lambda n, rng: rng.beta(0.1, 0.1, n), (0.0, 1.0)),
    "U: beta .5 .5": u_shape(lambda n, rng: rng.beta(0.5, 0.5, n)),
    "U: beta .2 .05, wide": u_shape(lambda n, rng: rng.beta(0.2, 0.05, n), (-5.0, 5.0)),
    "U: ends and uniform": u_shape(
        lambda n, rng: mixed(0.6, n, rng, rng.random(n), rng.integers(0, 2, n).astype(np.float64)), (0.0, 1.0)
    ),
    "U: cosine": u_shape(lambda n, rng: np.cos(rng.uniform(0, np.pi, n))),
    "far: 1 % at 30": far(lambda n, rng: mixed(0.01, n, rng, rng.normal(size=n), np.full(n, 30.0))),
    "far: 1 % at the bound": far(
        lambda n, rng: mixed(0.01, n, rng, rng.random(n), np.full(n, 100.0)), (0.0, 100.0)
    ),
    "far: 1 % at 1000": far(lambda n, rng: mixed(0.01, n, rng, rng.exponential(size=n), np.full(n, 1e3))),
    "far: 1 % Pareto": far(lambda n, rng: mixed(0.01, n, rng, rng.normal(size=n), 20 * rng.pareto(2.5, n))),
    "far: 1 % on both sides": far(
        lambda n, rng: mixed(0.01, n, rng, rng.normal(size=n), signed(np.full(n, 50.0), rng)), (-50.0, 50.0)
    ),
    "far: 1 % uniform to 200": far(
        lambda n, rng: mixed(0.01, n, rng, rng.normal(size=n), rng.uniform(0, 200, n)), (-200.0, 200.0)
    ),
    "clusters: .5/.3/.2": wide((0.5, 0.3, 0.2), (0, 10, 30), (-1e3, 1e3)),
    "clusters: .9/.09/.01": wide((0.9, 0.09, 0.01), (0, 10, 100), (-1e4, 1e4)),
    "clusters: .5/.5": wide((0.5, 0.5), (-30, 30), (-1e4, 1e4)),
    "clusters: .78/.22": wide((0.78, 0.22), (0, 40), (-1e3, 1e3)),
    "clusters: eight": wide((0.125,) * 8, (0, 3, 9, 27, 81, 243, 729, 2187), (0.0, 1e5)),
    "clusters: half, half uniform": Column(
        "clusters in wide bounds",
        lambda n, rng: ones(n, n, rng) * rng.uniform(50, 60, n),
        (-1e3, 1e3),
        USUAL,
    ),
    "answers: days unwell of 30": Column("discrete answers", days_unwell, (0.0, 30.0), USUAL),
    "answers: 1 to 5, most at the ends": answers((0.35, 0.1, 0.1, 0.1, 0.35), range(1, 6), (1.0, 5.0)),
    "answers: pain from 0 to 10": answers((50, 6, 6, 6, 4, 12, 4, 4, 4, 1, 3), range(11), (0.0, 10.0)),
    "answers: hours a week": answers(
        (1, 4, 6, 45, 12, 8, 4, 1), (5, 20, 30, 40, 45, 50, 60, 99), (0.0, 168.0)
    ),
    "answers: visits to a doctor": answers(
        (500, 250, 120, 60, 30, 25, 10, 4, 1), (0, 1, 2, 3, 4, 6, 12, 24, 52)
    ),
    "answers: 1, 2, or 9": answers((0.52, 0.45, 0.03), (1, 2, 9), (0.0, 99.0)),
}
