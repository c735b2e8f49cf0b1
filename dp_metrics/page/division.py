"""How one epsilon is divided among the releases of a page, by public numbers alone."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from dp_metrics._html import HtmlRepr, card
from dp_metrics.inputs.options import as_real
from dp_metrics.release.noise import MOST_ERROR, in_words
from dp_metrics.release.stored.codec import storable

_DOUBLINGS = 200


@dataclass(frozen=True)
class Portion:
    """A release that a page may hold.

    Parameters
    ----------
    name : str
        What `split` calls the release.
    about : str
        What the release tells.
    weight : int
        Its part of epsilon, relative to the parts of the others.
    error : callable
        Of its epsilon and a number of records, the expected error of a typical share that it tells, with
        classes and groups of equal sizes; a tenth is mostly noise.
    between : callable or None, default=None
        Of the same, that error with light tails and with heavy ones; None: it does not depend on tails.
    without : Portion or None, default=None
        What to release where there are too few records for this.
    """

    name: str
    about: str
    weight: int
    error: Callable[[float, float], float]
    without: Portion | None = None
    between: Callable[[float, float], tuple[float, float]] | None = None

    def needed(self, epsilon: float) -> float:
        """Return the number of records from which on the release is not mostly noise."""
        low, high = 0.0, 1.0
        for _ in range(_DOUBLINGS):
            if self.error(epsilon, high) <= MOST_ERROR:
                break
            low, high = high, 2 * high
        for _ in range(_DOUBLINGS):
            middle = (low + high) / 2
            low, high = (low, middle) if self.error(epsilon, middle) <= MOST_ERROR else (middle, high)
        return float(math.ceil(high))


@storable("Planned")
@dataclass(frozen=True)
class PagePart:
    """A release of a page.

    Parameters
    ----------
    name, about : str
        What `split` calls the release, and what it tells.
    epsilon : Fraction
        What it costs.
    expected_error : float or None
        The expected error of a typical share that it tells; None without a number of records.
    expected_range : tuple of float or None, default=None
        Of errors without limit, as a part of them, that error with light tails and with heavy ones.
    """

    name: str
    about: str
    epsilon: Fraction
    expected_error: float | None
    expected_range: tuple[float, float] | None = None

    @property
    def in_words(self) -> str:
        """The expected error as text, or the range of it."""
        ends = self.expected_range or (self.expected_error,)
        return " to ".join(f"{end:.2g}" for end in ends if end is not None)


@storable("LeftOut")
@dataclass(frozen=True)
class Omission:
    """What a page does not hold.

    Parameters
    ----------
    about : str
        What is not told.
    why : str
        The reason, and what it would take.
    """

    about: str
    why: str


@storable("EvaluationPlan")
@dataclass(frozen=True)
class EvaluationPlan(HtmlRepr):
    """What a page releases, before anything is spent: public, for it follows from public numbers alone.

    Parameters
    ----------
    epsilon : Fraction
        What all of it costs.
    n : int or None
        The number of records that the plan was made for: the public one, or a guess.
    parts : tuple of PagePart
        The releases.
    left_out : tuple of Omission
        What is not released.
    """

    epsilon: Fraction
    n: int | None
    parts: tuple[PagePart, ...]
    left_out: tuple[Omission, ...] = ()

    def __getitem__(self, name: str) -> PagePart:
        return next(part for part in self.parts if part.name == name)

    def __contains__(self, name: object) -> bool:
        return any(part.name == name for part in self.parts)

    def __repr__(self) -> str:
        lines = [f"EvaluationPlan(epsilon={float(self.epsilon):g}, n={self.n})"]
        lines += [f"  {' | '.join(row)}" for row in self.rows()]
        lines += [f"  left out: {one.about}. {one.why}" for one in self.left_out]
        return "\n".join(lines)

    def rows(self) -> list[list[str]]:
        """Return what each release is called, costs and tells, and its expected error, as text."""
        return [[part.name, f"{float(part.epsilon):.4g}", part.about, part.in_words] for part in self.parts]

    def _repr_html_(self) -> str:
        facts = {"epsilon": float(self.epsilon), "records": self.n}
        left = {f"left out: {one.about}": one.why for one in self.left_out}
        return card(type(self).__name__, facts | left, ["release", "epsilon", "tells", "expected error"],
                    self.rows())  # fmt: skip


def divided(
    portions: Sequence[Portion], epsilon: Fraction, n: int | None, split: Mapping[str, Any] | None = None
) -> EvaluationPlan:
    """Return which of these releases a page holds, and what each costs.

    Parameters
    ----------
    portions : sequence of Portion
        What the page could hold.
    epsilon : Fraction
        What all of it costs.
    n : int or None
        Number of records, where it is public or somebody guessed it. None: nothing is left out.
    split : mapping or None, default=None
        Relative parts of epsilon by name: these releases and no others, whatever n is.

    Raises
    ------
    ValueError
        If the split is invalid, or no release would be more than noise.
    """
    weights: Mapping[str, Fraction] = {}
    if split is not None:
        portions, weights = _chosen(portions, split)
    chosen, left = list(portions), []
    while True:
        parts = [Fraction(weights.get(one.name, one.weight)) for one in chosen]
        costs = [epsilon * part / sum(parts) for part in parts]
        if not all(map(float, costs)):
            raise ValueError("epsilon is too small to be divided among the releases of this page.")
        errors = [
            None if n is None else one.error(float(cost), n) for one, cost in zip(chosen, costs, strict=True)
        ]
        if split is not None or n is None:
            break
        worst = max(range(len(chosen)), key=lambda at: errors[at] or 0.0)
        if (errors[worst] or 0.0) <= MOST_ERROR:
            break
        dropped = chosen[worst]
        takes = dropped.needed(float(costs[worst]))
        why = (
            f"With {in_words(n)} records this part of epsilon, {float(costs[worst]):.2g}, would give mostly "
            f"noise: it takes about {in_words(takes)} records, or {takes / n:.2g} times the epsilon."
        )
        if len(chosen) == 1 and dropped.without is None:
            raise ValueError(f"Nothing could be told of these records. {dropped.about}: {why}")
        left.append(Omission(dropped.about, why))
        chosen[worst : worst + 1] = [] if dropped.without is None else [dropped.without]
    rows = zip(chosen, costs, errors, strict=True)
    planned = tuple(
        PagePart(
            one.name, one.about, cost, error,
            None if n is None or one.between is None else one.between(float(cost), n),
        )
        for one, cost, error in rows
    )  # fmt: skip
    return EvaluationPlan(epsilon, n, planned, tuple(left))


def _chosen(portions: Sequence[Portion], split: Any) -> tuple[list[Portion], dict[str, Fraction]]:
    names = [one.name for one in portions]
    if not isinstance(split, Mapping) or not split or not {*split} <= {*names}:
        raise ValueError(f"split must be a mapping of relative parts of epsilon to some of {names}.")
    numbers = {name: as_real(value) for name, value in split.items()}
    if not all(math.isfinite(value) and value > 0 for value in numbers.values()):
        raise ValueError("The parts in split must be positive numbers.")
    weights = {name: Fraction(value) for name, value in numbers.items()}
    return [one for one in portions if one.name in weights], weights
