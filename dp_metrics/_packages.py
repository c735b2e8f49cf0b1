"""The version of this package, and the packages of its extras, imported when they are needed."""

import importlib
from importlib.metadata import PackageNotFoundError, version
from typing import Any

try:
    __version__ = version("dp_metrics")
except PackageNotFoundError:  # the package runs from its source and is not installed
    __version__ = "unknown"


def import_extra(name: str, extra: str = "evaluation") -> Any:
    """Import a module of one of the extras; the ImportError says which one to install, or what is broken."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        package = name.partition(".")[0]
        extra = "vision" if package == "torch" else extra
        raise ImportError(
            f'{package} is needed and can\'t be imported; run: pip install "dp_metrics[{extra}]"'
        ) from error
    except (OSError, ValueError) as error:
        # The package is installed but broken: xgboost without the OpenMP library, or built for another numpy.
        raise ImportError(f"{name} is installed but can't be imported: {error}") from error
