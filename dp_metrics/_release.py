"""The single path of a release: records -> summary -> output bounds -> spend -> draw -> float.

Everything that can fail for a reason in the data happens before the spend: the inputs are validated by
the metric, and the output bounds are ready when epsilon is recorded. What follows is arithmetic that
cannot raise.
"""

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dp_metrics._exact import BLOCK
from dp_metrics._random import RandomState, check_entropy
from dp_metrics._validation import MAX_FLOAT, check_epsilon
from dp_metrics.accounting import PrivacyAccountant
from dp_metrics.bounds import OutputBounds, mean_loss_bounds, variance_bounds
from dp_metrics.losses import clamp, mean_over_outputs
from dp_metrics.mechanisms import Mechanism, get_mechanism
from dp_metrics.summaries import LossSummary, VarianceSummary

__all__ = ["Release", "loss_output_bounds", "variance_output_bounds"]

Floats = NDArray[np.float64]

_MOST_VARIANCE_RANKS = 4096  # the windows of c ranks number c^2 / 2


class Release:
    """The checked public settings of one release.

    Parameters
    ----------
    label : str
        What is released, for the accountant.
    epsilon : float
        Privacy parameter.
    mechanism : str or Mechanism
        Name or object.
    accountant : PrivacyAccountant or None
        Budget that pays for the release.
    random_state : None, int, RandomState or Generator
        Source of randomness.

    Raises
    ------
    ValueError, TypeError
        If one of them is not what it should be.
    """

    def __init__(
        self,
        label: str,
        epsilon: Any,
        mechanism: str | Mechanism,
        accountant: PrivacyAccountant | None,
        random_state: RandomState,
    ) -> None:
        self.epsilon = check_epsilon(epsilon)
        self.mechanism = get_mechanism(mechanism)
        if not (accountant is None or isinstance(accountant, PrivacyAccountant)):
            raise TypeError("accountant must be None or a PrivacyAccountant.")
        self._label, self._accountant = label, accountant
        self._entropy = check_entropy(random_state)

    def of_mean_loss(
        self,
        kernel: Callable[..., Floats],
        records: tuple[NDArray[Any], ...],
        *,
        cap: float | None,
        paper_scale: float = 1.0,
    ) -> float:
        """Release the mean of kernel(*records), a loss per record clamped to [0, cap]."""
        output_bounds = _mean_loss(kernel, records, cap, self.mechanism, self.epsilon, paper_scale)
        return self._draw(output_bounds)

    def of_variance(self, x: Floats, bounds: tuple[float, float] | None) -> float:
        """Release the population variance of x, clipped into the bounds."""
        return self._draw(
            variance_output_bounds(x, bounds=bounds, mechanism=self.mechanism, epsilon=self.epsilon)
        )

    def _draw(self, output_bounds: OutputBounds) -> float:
        if self._accountant is not None:
            self._accountant.spend(self.epsilon, self._label, mechanism=repr(self.mechanism))
        return self.mechanism.release(output_bounds, self.epsilon, self._entropy)


def loss_output_bounds(
    losses: Floats,
    *,
    max_loss: float | None = None,
    mechanism: Mechanism,
    epsilon: float,
    paper_scale: float = 1.0,
) -> OutputBounds:
    """Return what a mechanism sees of a mean loss; for studies of its output law on public data."""
    return _mean_loss(lambda block: block, (losses,), max_loss, mechanism, epsilon, paper_scale)


def variance_output_bounds(
    x: Floats, *, bounds: tuple[float, float] | None = None, mechanism: Mechanism, epsilon: float
) -> OutputBounds:
    """Return what a mechanism sees of a variance; for studies of its output law on public data."""
    limit = MAX_FLOAT
    if bounds is not None:
        x = np.clip(x, *bounds)
        with np.errstate(over="ignore"):
            limit = float(np.minimum(np.square(np.float64(bounds[1]) - bounds[0]), MAX_FLOAT))
    ranks = mechanism.count_ranks(epsilon, n=x.size, monotonic=False, output_range=(0.0, limit))
    return variance_bounds(
        VarianceSummary.from_data(x, capacity=min(ranks, _MOST_VARIANCE_RANKS), bounds=bounds)
    )


def _mean_loss(
    kernel: Callable[..., Floats],
    records: tuple[NDArray[Any], ...],
    cap: float | None,
    mechanism: Mechanism,
    epsilon: float,
    paper_scale: float,
) -> OutputBounds:
    limit = MAX_FLOAT if cap is None else cap
    ranks = mechanism.count_ranks(epsilon, n=len(records[0]), monotonic=True, output_range=(0.0, limit))
    summary = LossSummary.from_blocks(_loss_blocks(kernel, records, cap), capacity=ranks, cap=cap)
    return mean_loss_bounds(summary, paper_scale=paper_scale)


def _loss_blocks(
    kernel: Callable[..., Floats], records: tuple[NDArray[Any], ...], cap: float | None
) -> Iterable[Floats]:
    for start in range(0, len(records[0]), BLOCK):
        with np.errstate(all="ignore"):  # an overflow is clamped; a warning would tell of it
            yield clamp(mean_over_outputs(kernel(*(a[start : start + BLOCK] for a in records))), cap)
