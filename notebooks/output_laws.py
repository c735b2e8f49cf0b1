"""Exact output laws of private metrics, for studies on PUBLIC data: nothing here is private.

They are those of hazard selection unless another mechanism is asked for. The default of most metrics is the
same below a public n * epsilon; above, its law is a mixture that is known to within a part in a hundred only.
"""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dp_metrics.exceptions import NoisyReleaseWarning
from dp_metrics.mechanisms import Mechanism, OutputLaw
from dp_metrics.mechanisms._laws import mean_absolute_error
from dp_metrics.release.release import PreparedQuery, prepared_releases
from dp_metrics.sensitivity.output_bounds import OutputBounds

__all__ = ["bounds_seen", "density", "expected_error", "output_law", "success_rate"]

Floats = NDArray[np.float64]


def bounds_seen(
    metric: Callable[..., float], *data: Any, mechanism: str | Mechanism = "hazard", **options: Any
) -> OutputBounds:
    """Return what the mechanism of a private metric sees of these data."""
    one = _prepared(metric, *data, mechanism=mechanism, **options)
    [noise], [stats] = one.noises, one.stats
    bounds: OutputBounds = noise.bounds(stats)  # type: ignore[attr-defined]
    return bounds


def output_law(
    metric: Callable[..., float], *data: Any, mechanism: str | Mechanism = "hazard", **options: Any
) -> OutputLaw:
    """Return the exact law of what a private metric that makes one release would release of these data."""
    one = _prepared(metric, *data, mechanism=mechanism, **options)
    law: OutputLaw
    [law] = one.laws(one.source.n)
    return law


def _prepared(metric: Callable[..., float], *data: Any, **options: Any) -> PreparedQuery:
    """Return what a metric is ready to draw."""
    with warnings.catch_warnings(), prepared_releases() as releases:
        warnings.simplefilter("ignore", NoisyReleaseWarning)
        metric(*data, **options)
    [(_, [prepared])] = releases
    return prepared


def expected_error(law: OutputLaw, value: float) -> float:
    """Return the mean absolute error / the value; single errors count as at most ten times the value."""
    return mean_absolute_error(law, value, 10 * value) / value


def density(law: OutputLaw, edges: Floats) -> Floats:
    """Return the probability per unit between consecutive edges."""
    return np.diff(law.cdf(edges)) / np.diff(edges)


def success_rate(law_a: OutputLaw, law_b: OutputLaw, points: int = 20_000) -> float:
    """Return how often the best attacker tells two equally likely data sets apart from one release.

    It is 1/2 + TV/2, TV being the total variation distance of the laws, and at most
    exp(epsilon) / (1 + exp(epsilon)) if they are those of neighbours. The outputs are cut at quantiles of
    both laws; what the attacker could still learn inside a piece is below 1e-4.
    """
    p = np.linspace(0.0, 1.0, points)
    edges = np.unique(np.concatenate([law_a.quantile(p), law_b.quantile(p)]))
    masses = [np.diff(law.cdf(edges), prepend=0.0, append=1.0) for law in (law_a, law_b)]
    return 0.5 + 0.25 * float(np.abs(masses[0] - masses[1]).sum())
