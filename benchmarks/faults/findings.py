"""What a fault showed: numbers, and promises that were kept or broken."""

import multiprocessing
from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dp_metrics._random import SeededEntropy

__all__ = ["QUICK", "Fault", "Finding", "Size", "Skipped", "Watched", "held", "print_findings", "processes"]


class Finding(NamedTuple):
    """A line of a table; `is_kept` is None for a number that nothing was promised about."""

    what: str
    found: object
    is_kept: bool | None = None


def held(what: str, is_kept: bool) -> Finding:
    """Return the line of a promise without a number."""
    return Finding(what, "yes" if is_kept else "no", is_kept)


class Size(NamedTuple):
    """How much is done."""

    seconds: float = 600.0
    kills: int = 300
    free_pages: int = 40
    jumps: int = 1000
    forgeries: int = 100_000
    releases: int = 1_000_000
    spends: int = 100_000
    deaths: int = 10


QUICK = Size(
    seconds=2.0, kills=6, free_pages=16, jumps=50, forgeries=400, releases=1200, spends=200, deaths=1
)

Fault: TypeAlias = Callable[[Size], list[Finding]]


class Skipped(Exception):
    """Raised where a machine cannot make the fault."""


class Watched(SeededEntropy):
    """Reproducible entropy, which warns of nothing and knows whether anything was drawn from it."""

    was_asked = False

    def words(self, size: int) -> NDArray[np.uint64]:
        """Return the next `size` words of the seeded stream."""
        self.was_asked = True
        return super().words(size)


def processes() -> Any:
    """Return a context whose children are forked from a process without threads."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["dp_metrics"])
    return context


def print_findings(title: str, findings: list[Finding]) -> None:
    """Print a table."""
    words = {None: "", True: "kept", False: "**BROKEN**"}
    lines = ["| what | found | promise |", "| --- | --- | --- |"]
    lines += [f"| {f.what} | {f.found} | {words[f.is_kept]} |" for f in findings]
    print(f"\n{title}\n", *lines, sep="\n", flush=True)
