"""Print how far one call walks: its own calls, their functions and modules, and how deep they go.

Run `python benchmarks/walk.py [METRIC ...]`. A reader who follows an argument through the package walks the
same way. A second call is counted, so that what is kept from a first one is not. A comprehension is no call:
since Python 3.12 it has no frame.
"""

import argparse
import sys
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

import numpy as np

import dp_metrics

PACKAGE = str(Path(dp_metrics.__file__).parent)
COMPREHENSIONS = {"<listcomp>", "<setcomp>", "<dictcomp>"}


class Walk(NamedTuple):
    """What one call does within the package."""

    calls: int
    functions: int
    modules: list[str]
    depth: int


def walk_of(call: Callable[[], Any]) -> Walk:
    """Return how far a call walks."""
    seen: list[tuple[str, str]] = []
    depth = deepest = 0

    def note(frame: FrameType, event: str, _: Any) -> None:
        nonlocal depth, deepest
        if frame.f_code.co_name in COMPREHENSIONS:
            return
        if event in ("call", "return") and frame.f_code.co_filename.startswith(PACKAGE):
            depth += 1 if event == "call" else -1
            deepest = max(deepest, depth)
            if event == "call":
                seen.append((frame.f_code.co_filename, frame.f_code.co_qualname))

    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(None)
    modules = sorted({Path(name).relative_to(PACKAGE).as_posix() for name, _ in seen})
    return Walk(len(seen), len({*seen}), modules, deepest)


def main() -> None:
    """Print a line for each metric."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("metric", nargs="*", default=["private_mse", "private_accuracy_score"])
    parser.add_argument("--modules", action="store_true", help="name the modules")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    truth = np.arange(1000) % 2
    for name in options.metric:
        call = partial(getattr(dp_metrics, name), truth, truth[::-1].copy(), epsilon=1.0)
        call()
        found = walk_of(call)
        print(
            f"{name}: {found.calls} calls of {found.functions} functions in {len(found.modules)} modules, "
            f"{found.depth} deep"
        )
        if options.modules:
            print(*(f"  {module}" for module in found.modules), sep="\n")


if __name__ == "__main__":
    main()
