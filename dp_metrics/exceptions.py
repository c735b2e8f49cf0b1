"""Exceptions and warnings of the package."""

import sys
import warnings
from collections.abc import Iterator
from types import FrameType
from typing import Any

_PACKAGE = f"{__package__}."
_SEARCHES = "sklearn.model_selection."
# what fits models in processes of its own, where no `fit` is on the stack
_FITTING = (_SEARCHES, "sklearn.utils.parallel.")


class PrivacyBudgetError(ValueError):
    """More epsilon was asked for than is left of a budget; nothing was released or recorded."""


class SearchInterrupt(BaseException):
    """The budget ended within `sklearn.model_selection`.

    It is no `PrivacyBudgetError`, because scikit-learn makes the score NaN of any `Exception` there.
    """


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


def warn_caller(message: str, category: type[Warning]) -> None:
    """Warn, naming the line that called the package."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and module_of(frame).startswith(_PACKAGE):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)


def callers() -> Iterator[FrameType]:
    """Yield the frames of all functions that are being carried out, the innermost first."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        yield frame
        frame = frame.f_back


def models_are_fitted() -> bool:
    """Return whether scikit-learn, or an estimator with its interface, is fitting models.

    That is so within the `fit` of an object with `get_params`, and within cross-validation. A search that is
    only asked for its score fits nothing. What this package fits itself does not count.
    """
    for frame in callers():
        module, name = module_of(frame), frame.f_code.co_name
        if module.startswith(_PACKAGE):
            continue
        own = _owner(frame) if name in ("fit", "score") else None
        is_ours = any(f"{kind.__module__}.".startswith(_PACKAGE) for kind in type(own).__mro__)
        if own is not None and (name == "score" or is_ours):
            continue
        if own is not None or module.startswith(_FITTING):
            return True
    return False


def _owner(frame: FrameType) -> Any:
    """Return the estimator whose method is carried out, or None."""
    code = frame.f_code
    first = frame.f_locals.get(code.co_varnames[0]) if code.co_argcount else None
    return first if hasattr(type(first), "get_params") else None


def budget_error(message: str) -> BaseException:
    """Return what to raise where more is asked of a budget than is left.

    Searches and cross-validations of scikit-learn make NaN of the score where any `Exception` was raised, and
    go on; whatever else fits models passes it on.
    """
    is_lost = any(
        module_of(frame).startswith(_SEARCHES) and frame.f_code.co_name != "score" for frame in callers()
    )
    return SearchInterrupt(message) if is_lost else PrivacyBudgetError(message)


def module_of(frame: FrameType) -> str:
    """Return the name of the module whose function is carried out, and a point."""
    return f"{frame.f_globals.get('__name__', '')}."
