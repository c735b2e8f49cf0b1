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
from dp_metrics.mechanisms import Mechanism, OutputLaw, get_mechanism
from dp_metrics.quantities.noises import Observed
from dp_metrics.sensitivity.output_bounds import OutputBounds

__all__ = ["bounds_seen", "density", "output_law", "success_rate"]

Floats = NDArray[np.float64]


class _Watcher(Mechanism):
    """A mechanism that keeps the output bounds that it sees, and releases the number itself."""

    def __init__(self, inner: Mechanism) -> None:
        self.inner = inner
        self.bounds: list[OutputBounds] = []

    def count_ranks(self, epsilon: Any, **public: Any) -> int:
        return self.inner.count_ranks(epsilon, **public)

    def output_distribution(self, output_bounds: OutputBounds, epsilon: Any) -> Any:
        return self.inner.output_distribution(output_bounds, epsilon)

    def release(self, output_bounds: OutputBounds, epsilon: Any, rng: Any = None) -> float:
        self.bounds.append(output_bounds)
        return output_bounds.value


def bounds_seen(
    metric: Callable[..., float], *data: Any, mechanism: str | Mechanism = "hazard", **options: Any
) -> OutputBounds:
    """Return what the mechanism of a private metric sees of these data."""
    watcher = _Watcher(get_mechanism(mechanism))
    _call(metric, *data, mechanism=watcher, **options)
    [bounds] = watcher.bounds
    return bounds


def output_law(
    metric: Callable[..., float], *data: Any, mechanism: str | Mechanism = "hazard", **options: Any
) -> OutputLaw:
    """Return the exact law of what a private metric that makes one release would release of these data."""
    observed = Observed(get_mechanism(mechanism))
    _call(metric, *data, mechanism=observed, **options)
    [one] = observed.seen
    law: OutputLaw = one.law(one.n)
    return law


def _call(metric: Callable[..., float], *data: Any, **options: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NoisyReleaseWarning)
        metric(*data, **options)


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
