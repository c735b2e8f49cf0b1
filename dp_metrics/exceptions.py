"""Exceptions and warnings of the package."""

__all__ = ["PrivacyBudgetError", "SeededReleaseWarning"]


class PrivacyBudgetError(ValueError):
    """More epsilon was asked for than is left of a budget; nothing was released or recorded."""


class SeededReleaseWarning(UserWarning):
    """A release was drawn from a seed, so it is reproducible and therefore not private."""
