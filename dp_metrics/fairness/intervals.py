"""Limits of metrics of groups, and of the gap between them: in these records, or among all people.

All follow from the noise of each group, which is public. Limits of a gap combine limits of groups.
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np

from dp_metrics.fairness.frame_query import NO_RECORDS, Entry, FrameCell
from dp_metrics.inputs.options import Floats, Range
from dp_metrics.mechanisms._laws import Limits
from dp_metrics.metrics.labels.confusion import Confusion
from dp_metrics.metrics.scores.table import ScoreTable
from dp_metrics.quantities.tables import in_words
from dp_metrics.release.released import (
    APPROXIMATE,
    POPULATION_NOTE,
    Interval,
    Number,
    PopulationQuestion,
    how_sure,
)
from dp_metrics.release.result import AnyResult, Result, counts_persons

Pair: TypeAlias = tuple[Hashable, Hashable]
"""Two groups, of which the second is taken from the first."""

_WHAT = ("groups", "overall", "difference", "ratio")


def check_what(of: Any, groups: Sequence[Hashable]) -> "str | Pair":
    """Return what is asked for: one of the words, or two of the groups."""
    if isinstance(of, str) and of in _WHAT:
        return of
    is_pair = isinstance(of, tuple | list) and len(of) == 2 and of[0] != of[1]
    if is_pair and all(group in groups for group in of):
        return of[0], of[1]
    raise ValueError(f"of must be one of {', '.join(map(repr, _WHAT))}, or a pair of two groups.")


@dataclass(frozen=True)
class GroupLimits:
    """Limits of a metric by group, and of how far groups differ.

    Parameters
    ----------
    asked : PopulationQuestion
        The metric, and the confidence of each interval, or of all of them together where they are several.
    entry : Entry
        Its cells; the result of each is a `Result`, or a `Number` that has limits of its own.
    of_people : bool, default=False
        Whether the limits are of what the metric is among all people like the records; else of the exact
        ones of these records, which the noise may have moved.
    together : int, default=0
        How many intervals are to hold at once; 0: each holds for itself.
    """

    asked: PopulationQuestion
    entry: Entry
    of_people: bool = False
    together: int = 0

    @property
    def results(self) -> list[Any]:
        """What has the limits of each group."""
        return [one.result for one in self.entry.known.values()]

    @property
    def miss(self) -> float:
        """Probability with which an interval may miss."""
        return (1 - self.asked.confidence) / max(self.together, 1)

    def told(self, result: AnyResult | Number, confidence: float) -> Interval:
        """Return the interval that the result of a group tells."""
        if not isinstance(result, Result):
            ask = result.population_interval if self.of_people else result.noise_interval
            return ask(confidence)
        if self.of_people:
            return result.among_people(replace(self.asked, confidence=confidence))
        if not self.asked.is_sure and isinstance(result.reading, ScoreTable):
            result = replace(result, reading=replace(result.reading, is_sure=False))
        return result.noise_interval(confidence)

    def is_even(self, result: AnyResult | Number) -> bool:
        """Return whether either limit of that is known to miss with at most half of the probability.

        Those of the noise of a number that a mechanism released may have all of it on one side.
        """
        if not isinstance(result, Result):
            return False
        if isinstance(result.reading, Confusion):
            return not result.reading.is_agreement
        return self.of_people or isinstance(result.reading, ScoreTable)

    def interval(self, ends: Interval | Limits, what: str, estimate: Any, *notes: str) -> Interval:
        """Return the interval of this with these limits, and with what is to be said of them."""
        about = f"The exact {what} of these records, without the noise."
        if self.of_people:
            about = f"The {what} {POPULATION_NOTE} {how_sure(ends.note)}"
        note = " ".join(filter(None, notes))
        return Interval(ends.lower, ends.upper, self.asked.confidence, about, note, estimate)

    def limits(self, miss: float, *, one_side: bool = False) -> list[Interval]:
        """Return two limits of each group; `miss`: that one of the two is wrong, or that a given one is."""
        return [
            self.told(one, 1 - (2 * miss if one_side and self.is_even(one) else miss)) for one in self.results
        ]

    def of(self, what: "str | Pair") -> Any:
        """Return the interval of each group, or the one of all records, of a gap or of a pair."""
        if what == "groups":
            return {group: self.of_group(group) for group in self.entry.known}
        if what != "overall":
            return self.of_gap(what)
        overall = self.entry.overall
        if overall.result is None:
            raise ValueError(
                f"{self.asked.name} of all records has no limits: nothing that was released tells them."
            )
        return self._of(overall, self.asked.name, self._scope() if self.together > 1 else "")

    def of_group(self, group: Hashable) -> Interval:
        """Return the interval of a group, and say whether those of all hold at once."""
        cell = self.entry.known.get(group)
        if cell is None:
            raise ValueError(NO_RECORDS)
        counted, records = "persons" if counts_persons(cell.result) else "records", cell.rests_on
        rests = "" if records is None else f"It rests on about {in_words(records)} {counted}."
        return self._of(cell, f"{self.asked.name} of the group {group!r}", rests, self._scope())

    def _of(self, cell: FrameCell, what: str, *notes: str) -> Interval:
        """Return the interval of a cell, with these notes before its own."""
        one = self.told(cell.result, 1 - self.miss)
        return self.interval(one, what, cell.value, *notes, one.note)

    def _scope(self) -> str:
        """Return whether the intervals hold at once."""
        if self.together > 1:
            return f"All {self.together} intervals hold at once with this confidence."
        alone = "It holds with this confidence for itself, not at once with those of other groups."
        return alone if len(self.results) > 1 else ""

    def of_gap(self, of: "str | Pair") -> Interval:
        """Return the interval of a gap, with what else is to be said of it; see `ends`."""
        here = self
        if isinstance(of, tuple):
            for group in of:
                if group not in self.entry.known:
                    raise ValueError(f"The group {group!r} has no records: it has no interval.")
            pair = self.entry._replace(groups={group: self.entry.groups[group] for group in of})
            here = replace(self, entry=pair)
            what = f"{self.asked.name} of {of[0]!r} less that of {of[1]!r}"
            estimate = self.entry.less(*of)
        elif of == "difference":
            what, estimate = f"largest difference of the {self.asked.name}", self.entry.difference()
        else:
            what, estimate = f"smallest ratio of the {self.asked.name}", self.entry.ratio()
        ends = here.ends(of)
        return self.interval(ends, what, estimate, ends.note, self._scope() if self.together > 1 else "")

    def ends(self, of: "str | Pair") -> Limits:
        """Return limits of the largest value of a group less the smallest, of their ratio, or of a pair.

        Those among all people are the hull with limits of the noise, which hold as well: people's limits
        within those of the noise would puzzle. Numbers that have limits of their own are not moved.
        """
        if not self.of_people or not all(isinstance(one, Result) for one in self.results):
            return self.by_limits(of)
        ends = self.by_squares(of) or self.by_limits(of)
        try:
            low, high, note = replace(self, of_people=False).by_limits(of)
        except ValueError:
            return ends
        return Limits(min(ends.lower, low), max(ends.upper, high), ends.note or note)

    def by_limits(self, of: "str | Pair") -> Limits:
        """Return limits of a gap that follow from those of groups.

        Notes
        -----
        Sure for any number K of groups. How far apart the groups are at most follows from two limits only,
        the upper one of the group that is the largest in truth and the lower one of the smallest: each limit
        misses with a quarter of the probability, whichever these groups are. How far apart they are at least
        follows from all 2 K limits: those of a group have their part of one half.
        """
        if isinstance(of, tuple):
            # the difference is missed only where one of the four limits is wrong
            a, b = self.limits(self.miss / 2)
            return Limits(a.lower - b.upper, a.upper - b.lower, _approximate(a, b))
        near, wide = self.limits(self.miss / 4, one_side=True), self.limits(self.miss / 2 / len(self.results))
        # the largest value is at least the largest lower limit, and the smallest at most the least upper one
        least = max(low for low, _ in wide), min(high for _, high in wide)
        most = max(high for _, high in near), min(low for low, _ in near)
        note = _approximate(*near, *wide)
        if of == "difference":
            return Limits(max(least[0] - least[1], 0.0), most[0] - most[1], note)
        upper = min(least[1] / least[0], 1.0) if least[0] > 0 else 1.0
        return Limits(most[1] / most[0] if most[0] else 1.0, upper, note)

    def by_squares(self, of: "str | Pair") -> Limits | None:
        """Return approximate limits of a difference: what chance does to both values is added up in squares.

        None of a ratio, and where each person counts once, who may have records in both groups: chance moves
        both then.

        The difference is that of the pair that is farthest apart, of whose limits the upper one has to hold
        for one pair only, and the lower one for all K (K - 1).
        """
        if of == "ratio" or self.asked.is_sure or any(map(counts_persons, self.results)):
            return None
        pairs = ~np.eye(len(self.results), dtype=bool)
        if isinstance(of, tuple):
            pairs = np.triu(pairs)
        if not pairs.any():
            return None
        near = wide = self._least_gaps(self.miss)
        if near[pairs].max() > 0:  # else wider limits, which take time, leave no gap either
            wide = self._least_gaps(self.miss / np.count_nonzero(pairs))
        # how far one is above another at most is how far this is below it at least
        lower, upper = (max(gaps[pairs].tolist()) for gaps in (wide, -near.T))
        return Limits(max(0.0, lower) if of == "difference" else lower, upper, APPROXIMATE)

    def _least_gaps(self, miss: float) -> Floats:
        """Return a lower limit of the value of each group, in rows, less that of each other one, in columns.

        Notes
        -----
        Let x be the least and y the largest value that counts tell of the two groups: what they do not tell
        may move both at once. Chance moves the one down to its lower limit l, and the other up to its upper
        one u. That adds up in squares: x - y - ((x - l)^2 + (u - y)^2)^(1/2); see `combined_limits`.
        """
        told = zip(*map(_told_by_counts, self.entry.known.values()), strict=True)
        lower, upper = np.transpose([tuple(one) for one in self.limits(miss)])
        x, y = (np.clip(ends, lower, upper) for ends in told)
        chance: Floats = np.add.outer((x - lower) ** 2, (upper - y) ** 2) ** 0.5
        return np.subtract.outer(x, y) - chance


def _told_by_counts(cell: FrameCell) -> Range:
    """Return between which values the metric of a group lies where nothing has moved its counts.

    That is one value, but for an area: how scores lie within their bins is not told.
    """
    reading = cell.result.reading
    if isinstance(reading, ScoreTable):
        return reading.between(reading.counts(cell.result.released))
    return cell.value, cell.value


def _approximate(*told: Interval) -> str:
    """Return the note of limits that follow from these."""
    return APPROXIMATE if any(APPROXIMATE in one.note for one in told) else ""
