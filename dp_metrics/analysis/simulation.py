"""What a mechanism sees of public data, and noise in floats: for studies, never for private records."""

import math
from fractions import Fraction

import numpy as np

from dp_metrics._random import made_up
from dp_metrics.inputs.floats import Floats
from dp_metrics.inputs.losses import RecordLoss, identity
from dp_metrics.inputs.options import Epsilon, Relation, exact_epsilon
from dp_metrics.inputs.shape import Records
from dp_metrics.mechanisms import Mechanism
from dp_metrics.mechanisms._base import KnownNumber
from dp_metrics.release.draws import NumberDraw, VectorDraw
from dp_metrics.release.noise import CountsNoise
from dp_metrics.release.parts.mean_loss import MeanOf
from dp_metrics.release.parts.variance import VarianceOf
from dp_metrics.sensitivity.output_bounds import OutputBounds


def _as_it_is(block: Floats) -> Floats:
    return block


def loss_draw(
    losses: Floats, *, max_loss: float | None = None, mechanism: Mechanism, epsilon: Epsilon
) -> NumberDraw:
    """Return what a mechanism makes of a mean loss."""
    query = MeanOf(RecordLoss(identity, reads=(_as_it_is,), cap=max_loss)).known(Records((losses,)))
    return _prepared(query, mechanism, epsilon)


def variance_draw(
    x: Floats, *, bounds: tuple[float, float] | None = None, mechanism: Mechanism, epsilon: Epsilon
) -> NumberDraw:
    """Return what a mechanism makes of a variance."""
    return _prepared(VarianceOf(bounds).known(Records((x,))), mechanism, epsilon)


def _prepared(query: KnownNumber, mechanism: Mechanism, epsilon: Epsilon) -> NumberDraw:
    draw = mechanism.prepare(query, exact_epsilon(epsilon), relation=Relation.REPLACE_ONE)
    assert isinstance(draw, NumberDraw)
    return draw


def loss_output_bounds(
    losses: Floats, *, max_loss: float | None = None, mechanism: Mechanism, epsilon: Epsilon
) -> OutputBounds:
    """Return what a mechanism sees of a mean loss."""
    return loss_draw(losses, max_loss=max_loss, mechanism=mechanism, epsilon=epsilon).output_bounds


def variance_output_bounds(
    x: Floats, *, bounds: tuple[float, float] | None = None, mechanism: Mechanism, epsilon: Epsilon
) -> OutputBounds:
    """Return what a mechanism sees of a variance."""
    return variance_draw(x, bounds=bounds, mechanism=mechanism, epsilon=epsilon).output_bounds


def simulated_noise(draw: VectorDraw, times: int, seed: int = 0) -> tuple[Floats, Floats]:
    """Return draws of the noise of a table, a row each, and how much each counts; in floats, with the sum 1.

    At a large epsilon draws from the law of a release are all 0, and say nothing of its errors. So they are
    of a law with some noise in every second table or more, and each counts as often as it is drawn by the
    law of a release, relative to that (importance sampling).
    """
    most = Fraction(math.log(len(draw.values) / 0.75))  # noise in about one cell of the table
    rates = tuple((size, min(rate, most)) for size, rate in draw.rates)
    noise = CountsNoise((0,) * len(draw.values), rates, draw.zero_sum).simulated(made_up(seed), times)
    above = np.repeat(
        [float(rate - drawn) for (_, rate), (_, drawn) in zip(draw.rates, rates, strict=True)],
        [size for size, _ in rates],
    )
    rarer = np.abs(noise) @ above
    counts = np.exp(rarer.min() - rarer)
    return noise, counts / counts.sum()
