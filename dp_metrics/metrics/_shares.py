"""Shares of records that are right, or wrong: what a mean of 0 and 1 tells of all people."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from dp_metrics.mechanisms import Geometric
from dp_metrics.mechanisms._base import BoundsNoise, Limits, Noise
from dp_metrics.mechanisms.geometric import SumsNoise
from dp_metrics.metrics._probabilities import mean_or_sum
from dp_metrics.release.interval import Interval
from dp_metrics.release.noise import SHOWN, far_apart
from dp_metrics.release.noisy_binomial import noisy_binomial_limits
from dp_metrics.release.ratio_limits import NoisyRatio, noise_limits, ratio_limits
from dp_metrics.release.released import Monotone, PopulationQuestion, ReleasedNumbers

_CLEAR = 200  # records times the rate of the noise: from there on limits are closer than `WIDEST`


@dataclass(frozen=True)
class ShareOfRecords(Monotone):
    """The share of the records that a loss of 0 or 1 counts, or of the others, or their number.

    Parameters
    ----------
    of_what : str
        What records the share is of.
    is_mean : bool
        Whether the result is the share, not the number.
    """

    of_what: str = "records"
    is_mean: bool = True

    def limits(self, parts: Sequence[Noise], released: ReleasedNumbers, miss: float) -> Limits:
        """Return limits of the result: of a share of a private number of records those of a noisy ratio."""
        (part,) = parts
        ratio = self._ratio(part) if self.is_mean else None
        if ratio is None:
            return super().limits(parts, released, miss)
        return Limits(*noise_limits(ratio, miss / 2, miss / 2)).within(0.0, 1.0)

    def note(self, parts: Sequence[Noise], released: ReleasedNumbers) -> str | None:
        """Return what to say of a share by counts if limits of its noise are too far apart; see `WIDEST`."""
        (part,), n = parts, released.public_n
        ratio = self._ratio(part)
        if ratio is not None:
            is_clear = ratio.rates[0] * (ratio.a + ratio.b) > _CLEAR
        elif isinstance(part, BoundsNoise) and isinstance(part.mechanism, Geometric) and n is not None:
            is_clear = part.facts.steps == n and part.epsilon * n > _CLEAR
        else:
            return None
        if is_clear or not self.is_mean:
            return None
        lower, upper, _ = self.limits(parts, released, 1 - SHOWN)
        return far_apart(lower, upper)

    def _ratio(self, part: Noise) -> NoisyRatio | None:
        """Return the noisy counts of a share of a private number of records; None of any other share."""
        if not (isinstance(part, SumsNoise) and part.fineness == 1):
            return None
        a, b = part.noisy if self.rises else part.noisy[::-1]  # wrong and right records
        return NoisyRatio(a, b, (1, 1), (part.rate, part.rate), None, None)

    def population(
        self, parts: Sequence[Noise], released: ReleasedNumbers, asked: PopulationQuestion
    ) -> Interval:
        """Return the interval of the share among all people, even if the result is a number of records.

        Raises
        ------
        ValueError
            If the law of the released number is not known.
        """
        (part,), miss = parts, asked.miss
        ratio = self._ratio(part)
        if ratio is not None:
            lower, upper = ratio_limits(ratio, miss, miss)
            share = self(released)
        elif isinstance(part, BoundsNoise) and isinstance(part.mechanism, Geometric):
            n = released.public_n
            if n is None or part.facts.steps != n:
                raise ValueError(
                    f"{asked.metric} with weights or groups has no interval for all people: the records "
                    "must be independent draws from one population, one person each, that count alike."
                )
            wrong = round(part.released * n)
            count = wrong if self.rises else n - wrong
            lower, upper = noisy_binomial_limits(count, n, float(part.epsilon), miss_low=miss, miss_high=miss)
            share = count / n
        else:
            raise ValueError(
                f"{asked.metric} has an interval for all people by mechanism='geometric', its default: no "
                "other adds noise of a known size to the number of records."
            )
        return asked.interval(lower, upper, share, of=f"The share of {self.of_what}")


def share_of_records(normalize: Any, of_what: str, *, is_score: bool = False) -> ShareOfRecords:
    """Return what makes a result of the share of the records that a loss counts, as `mean_or_sum` does."""
    mean = mean_or_sum(normalize, is_score=is_score)
    return ShareOfRecords(mean.result, mean.rises, of_what, bool(normalize))
