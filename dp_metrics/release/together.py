"""Several plans with one spend: what each may cost, and how one result follows from all of theirs."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from dp_metrics.inputs.options import Relation
from dp_metrics.inputs.shape import Records
from dp_metrics.release.plan import Comparable, KnownParts, Plan
from dp_metrics.release.result import PrivateResult


@dataclass(frozen=True)
class Share:
    """Public: one of several plans, and on which terms it is carried out.

    Parameters
    ----------
    plan : Plan
        What is released.
    epsilon : Fraction
        Its part of epsilon: how the parts add up is for whoever makes them to prove.
    relation : Relation
        The neighbouring relation under which it is released.
    metric : str
        Name of what is released.
    mean_size : Fraction or None, default=None
        The public mean number of records, where the number of its own is private.
    """

    plan: Plan
    epsilon: Fraction
    relation: Relation
    metric: str
    mean_size: Fraction | None = None


@dataclass(frozen=True, eq=False)
class Together(Comparable):
    """Public: several plans that one spend pays for.

    Parameters
    ----------
    shares : tuple of Share
        The plans, in the order in which they are drawn.
    reader : callable
        The `Records` of each share, of all `Records`.
    combine : callable
        The result, of the `PrivateResult` of each share.
    relation : Relation or None, default=None
        The neighbouring relation that the accountant counts; None: that of the release.
    """

    shares: tuple[Share, ...]
    reader: Callable[[Records], Sequence[Records]]
    combine: Callable[[Sequence[PrivateResult[Any]]], Any]
    relation: Relation | None = None

    def read(self, records: Records) -> tuple[KnownParts, ...]:
        """Return what each share has to know of its records; see `Plan.read`."""
        with np.errstate(all="ignore"):
            pieces = self.reader(records)
            return tuple(share.plan.read(piece) for share, piece in zip(self.shares, pieces, strict=True))
