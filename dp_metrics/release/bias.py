"""Which way a release usually errs: told by public settings and by what was released alone.

Hazard selection and the two stages clip what the records furthest off add, so that a mean loss or a variance
of which a few records make up much comes out too low. Noise that is added leaves either way alike.
"""

from collections.abc import Mapping
from fractions import Fraction

from dp_metrics.mechanisms import Adaptive, Hazard
from dp_metrics.mechanisms._base import BoundsNoise, Noise
from dp_metrics.mechanisms.adaptive import AdaptiveNoise

_AT_1000, _FALL = 0.19, 0.3
"""The share at n * epsilon of 1,000, and the power with which it falls: see ``docs/median_table.py``."""
_RANK = 2  # hazard selection clips about so many records / epsilon
_NEGLIGIBLE = 0.01
_MOST_TIMES = 10**7  # n * epsilon from which on the share is negligible

_BIAS = (
    "Usually too {} if a few records make up much of {}: what these add is clipped. With heavy tails "
    "(Student's law with 3 degrees of freedom) a mean square comes out about {:g} % too low."
)


def clipped_share(noise: Noise) -> float:
    """Return about what share of a mean of squares with heavy tails clipping takes off; 0 if hardly any.

    Squares are those of numbers with Student's law of 3 degrees of freedom. With a public limit no more can
    be missing than the clipped records may add.
    """
    if isinstance(noise, AdaptiveNoise):
        times, most, clipped = noise.times, noise.second.largest, noise.first.rank / max(noise.second.n, 1)
        if noise.drawn["scale"] >= most:
            return 0.0
    elif isinstance(noise, BoundsNoise) and isinstance(noise.mechanism, Adaptive | Hazard):
        if noise.facts.n is None:
            return 0.0
        times, most = noise.facts.n * noise.epsilon, noise.facts.output_range[1]
        clipped = float(_RANK / max(times, Fraction(1)))
    else:
        return 0.0
    if times > _MOST_TIMES:
        return 0.0
    here = float(max(times, Fraction(1)))
    share = min(_AT_1000 * (1000 / here) ** _FALL, 1.0)
    if noise.released > 0:
        share = min(share, clipped * (most / noise.released))
    return share if share >= _NEGLIGIBLE else 0.0


def usual_bias(share: float, *, rises: bool = True) -> str | None:
    """Return in words which way a result errs, given what share of a mean is missing.

    Parameters
    ----------
    share : float
        As `clipped_share` tells.
    rises : bool, default=True
        Whether the result rises with the mean: R^2 falls with the squared error.
    """
    if not share:
        return None
    way, of_what = ("low", "it") if rises else ("high", "the squared error in it")
    return _BIAS.format(way, of_what, float(f"{100 * share:.1g}"))


def biases_in_words(biases: Mapping[str, str | None]) -> list[str]:
    """Return each sentence once, behind the names of the numbers that it is about."""
    names: dict[str, list[str]] = {}
    for name, bias in biases.items():
        if bias is not None:
            names.setdefault(bias, []).append(name)
    return [f"{', '.join(about)}: {bias[0].lower()}{bias[1:]}" for bias, about in names.items()]
