"""Types that the public metrics share."""

from collections.abc import Sequence
from typing import Literal, Required, TypeAlias, TypedDict

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dp_metrics._random import RandomState
from dp_metrics.accounting import PrivacyAccountant
from dp_metrics.mechanisms import Mechanism

__all__ = ["Average", "BoundedOptions", "CappedOptions", "Floats", "PinballOptions", "R2Options"]

Floats = NDArray[np.float64]

Average: TypeAlias = Literal["uniform_average"] | Sequence[float] | Floats
"""A `multioutput` that makes one number of several outputs."""


class _Options(TypedDict, total=False):
    epsilon: Required[float]
    neighboring: str
    mechanism: str | Mechanism
    accountant: PrivacyAccountant | None
    random_state: RandomState


class _MeanOptions(_Options, total=False):
    sample_weight: ArrayLike | None
    groups: ArrayLike | None


class BoundedOptions(_MeanOptions, total=False):
    """Options of a mean loss whose targets may have bounds."""

    bounds: tuple[float, float] | None


class CappedOptions(_MeanOptions, total=False):
    """Options of a mean loss that may have a cap."""

    max_loss: float | None


class PinballOptions(BoundedOptions, total=False):
    """Options of the pinball loss."""

    alpha: float


class R2Options(_Options, total=False):
    """Options of R^2."""

    bounds: tuple[float, float] | None
    sample_weight: None
    error_share: float
