"""What a mechanism sees of public data, and noise in floats: for studies, never for private records."""

import numpy as np

from dp_metrics.inputs.epsilon import Epsilon, exact_epsilon
from dp_metrics.inputs.floats import Floats
from dp_metrics.inputs.losses import RecordLoss, identity
from dp_metrics.mechanisms import Mechanism
from dp_metrics.release.draws import VectorDraw
from dp_metrics.release.noise import COUNT_LIMIT
from dp_metrics.release.queries.mean_loss import MeanLoss
from dp_metrics.release.queries.variance import Variance
from dp_metrics.sensitivity.output_bounds import OutputBounds

__all__ = ["loss_output_bounds", "simulated_noise", "variance_output_bounds"]


def _as_it_is(block: Floats) -> Floats:
    return block


def loss_output_bounds(
    losses: Floats, *, max_loss: float | None = None, mechanism: Mechanism, epsilon: Epsilon
) -> OutputBounds:
    """Return what a mechanism sees of a mean loss."""
    query = MeanLoss(RecordLoss(identity, reads=(_as_it_is,), cap=max_loss), (losses,))
    return query.output_bounds(mechanism, exact_epsilon(epsilon), private_n=False)


def variance_output_bounds(
    x: Floats, *, bounds: tuple[float, float] | None = None, mechanism: Mechanism, epsilon: Epsilon
) -> OutputBounds:
    """Return what a mechanism sees of a variance."""
    return Variance(x, bounds).output_bounds(mechanism, exact_epsilon(epsilon), private_n=False)


def simulated_noise(draw: VectorDraw, times: int, seed: int = 0) -> Floats:
    """Return draws of the noise of a table, a row each: of the law of a release, but in floats."""
    rng = np.random.default_rng(seed)
    rates = np.repeat([float(rate) for _, rate in draw.rates], [size for size, _ in draw.rates])
    kept: list[Floats] = []
    while sum(map(len, kept)) < times:
        # the difference of two geometric numbers has the two-sided law
        sizes = np.floor(rng.exponential(size=(2, times, rates.size)) / rates)
        noise = np.minimum(sizes[0], COUNT_LIMIT) - np.minimum(sizes[1], COUNT_LIMIT)
        if draw.zero_sum:  # the last number is what the others lack to 0, as in a release
            noise[:, -1] = -noise[:, :-1].sum(axis=1)
            noise = noise[rng.exponential(size=times) > rates[-1] * np.abs(noise[:, -1])]
        kept.append(noise)
    return np.concatenate(kept)[:times]
