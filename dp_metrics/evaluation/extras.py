"""Packages that only the experiments need, imported when they are needed."""

import importlib
from typing import Any

__all__ = ["MissingExtraError", "import_extra"]

_VISION = ("torch",)


class MissingExtraError(ImportError):
    """A package of the extras `evaluation` or `vision` is missing or can't be imported."""


def import_extra(name: str) -> Any:
    """Import a package of the extras `evaluation` or `vision`, or say how to install it.

    Parameters
    ----------
    name : str
        Module name, such as ``"pandas"`` or ``"matplotlib.figure"``.

    Returns
    -------
    module
        The imported module.

    Raises
    ------
    MissingExtraError
        If it can't be imported.
    """
    try:
        return importlib.import_module(name)
    except ImportError as error:
        package = name.partition(".")[0]
        extra = "vision" if package in _VISION else "evaluation"
        raise MissingExtraError(
            f'{package} is needed and can\'t be imported; run: pip install "dp_metrics[{extra}]"'
        ) from error
    except (OSError, ValueError) as error:
        # Installed, but broken: xgboost without the OpenMP library, or built for another numpy.
        raise MissingExtraError(f"{name} is installed but can't be imported: {error}") from error
