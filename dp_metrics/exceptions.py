"""Exceptions and warnings of the package."""

import sys
import warnings
from typing import Any

__all__ = [
    "LargeEpsilonWarning",
    "NoisyReleaseWarning",
    "PrivacyBudgetError",
    "SeededReleaseWarning",
    "StoredReleaseWarning",
    "TrainingFoldsWarning",
    "warn_caller",
    "warn_of_large_epsilon",
    "within",
]

_LARGEST_EPSILON: float = 10


class PrivacyBudgetError(ValueError):
    """More epsilon was asked for than is left of a budget; nothing was released or recorded."""


class SeededReleaseWarning(UserWarning):
    """A release was drawn from a seed, so it is reproducible and therefore not private."""


class NoisyReleaseWarning(UserWarning):
    """A release of so few records at so small an epsilon is mostly noise, whatever the data."""


class StoredReleaseWarning(UserWarning):
    """A release was asked for again under its name: the stored one was returned, and no record was read."""


class LargeEpsilonWarning(UserWarning):
    """A release costs an epsilon above 10, which hardly protects anybody; nothing is spent yet."""


class TrainingFoldsWarning(UserWarning):
    """A cross-validation releases scores, which protect nobody among the training records of a fold."""


def warn_of_large_epsilon(epsilon: Any) -> None:
    """Warn of an epsilon, which is public, that is too large to protect anybody."""
    if epsilon > _LARGEST_EPSILON:
        warn_caller(
            f"epsilon={float(epsilon):g} is hardly private: an attacker who thinks 50 : 50 of two records of "
            "a person may be more than 99.99 % sure of one after this release. Common advice is 1 or less.",
            LargeEpsilonWarning,
        )


def warn_caller(message: str, category: type[Warning]) -> None:
    """Warn, naming the line that called the package."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith(f"{__package__}."):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)


def within(*packages: str) -> bool:
    """Return whether some function of one of these packages is being carried out."""
    frame = sys._getframe(1)
    while frame.f_back is not None:
        frame = frame.f_back
        if f"{frame.f_globals.get('__name__', '')}.".startswith(tuple(f"{one}." for one in packages)):
            return True
    return False
