"""The single path of a release: terms -> query -> totals -> noises -> stats -> spend -> draw.

Of several queries together all are prepared, one spend pays for them, and all are drawn.
Everything that can fail for a reason in the data happens before the spend: records are validated as they are
read, and each draw is ready when epsilon is recorded. What follows is arithmetic that cannot raise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from itertools import groupby
from typing import Any, Self, TypeAlias, TypeVar

import numpy as np

from dp_metrics._random import discrete_laplace
from dp_metrics.accounting.accountant import answer_named, use_name
from dp_metrics.accounting.ledgers import Claim
from dp_metrics.exceptions import NoisyReleaseWarning, StoredReleaseWarning, warn_caller
from dp_metrics.inputs.options import Relation, warn_of_large_epsilon
from dp_metrics.quantities.base import MOST_COUNT, Draw, Noise, Output
from dp_metrics.release.query import Query, Source, Terms, Together
from dp_metrics.release.result import AnyResult, Result, drawn_by
from dp_metrics.release.stored import (
    NOT_STORED,
    Call,
    answer_json,
    differences,
    is_kept,
    question_json,
    restored,
    summary_json,
)

T = TypeVar("T")

Releases: TypeAlias = "list[tuple[Query | Together, list[PreparedQuery]]]"
"""Private: what each of several releases asks, and what it is ready to draw."""

_seen: ContextVar[Releases | None] = ContextVar("what an audit sees", default=None)


@contextmanager
def prepared_releases() -> Iterator[Releases]:
    """Collect, for an audit of made-up records, what each release in the block is ready to draw."""
    seen: Releases = []
    before = _seen.set(seen)
    try:
        yield seen
    finally:
        _seen.reset(before)


class Release:
    """What one call releases, under which name and on which terms.

    Parameters
    ----------
    metric : str
        Name of what is released.
    terms : Terms
        The checked settings.
    disclosing : sequence of str, default=()
        Options of the call that would give a private number of records away.
    call : callable
        Returns what else is public of the call, with which the release is stored.

    Raises
    ------
    ValueError
        If the terms do not suit the options.
    """

    def __init__(
        self, metric: str, terms: Terms, *, disclosing: Sequence[str] = (), call: Callable[[], Call]
    ) -> None:
        terms.relation.refuse(disclosing)
        self.metric, self.terms, self._call = metric, terms, cache(call)

    def answer(self, read: Callable[[], tuple[Any, Any, Any]], make: Callable[[Any], T]) -> T:
        """Return the stored release of this question, or else read the records and release.

        Parameters
        ----------
        read : callable
            Returns a query, or several together, the source of its stats, or one for each, and the public
            form of the records. It is not called where there is a stored release.
        make : callable
            What the caller returns, of the `Result` of a query, or of what several combine to.

        Raises
        ------
        PrivacyBudgetError
            If the budget is too small; nothing is drawn.
        ValueError
            If the query cannot be carried out, the name of the spend was used in this session, or another
            question was asked under it; nothing is spent.

        Notes
        -----
        A stored release costs nothing. Proof: which of the two happens follows from the public question and
        from the ledger, and what is returned from what was released before: post-processing.
        """
        # whoever made NumPy raise or warn of overflows would learn of the data, perhaps after the spend
        with np.errstate(all="ignore"):
            stored: T | None = self.stored()
            if stored is not None:
                return stored
            query, source, form = read()
            prepared = prepare_all(self.metric, self.terms, query, source)
            if (seen := _seen.get()) is not None:
                seen.append((query, prepared))
            # of what public numbers tell, once for each metric
            warn_of_large_epsilon(self.terms.epsilon)
            for metric, alike in groupby(prepared, key=lambda one: one.metric):
                for said in filter(None, map(PreparedQuery.too_noisy, alike)):
                    warn_caller(f"{metric}: {said}", NoisyReleaseWarning)
                    break
            claim = self._spend(prepared, query.relation)
            results = list(map(PreparedQuery.draw, prepared))
            return self._kept(claim, results, form, lambda found: make(query.combine(found)))

    def _question(self) -> str | None:
        """Return all that is public of the call, as JSON; no private record is read for it."""
        # nobody asks again without a name, and of a private number of records nothing is public
        terms, call = self.terms, self._call()
        is_asked = terms.spend_name is not None and not terms.relation.private_n
        return question_json(
            call,
            of_records=call.of_records() if is_asked else None,
            metric=self.metric,
            epsilon=terms.epsilon,
            neighboring=terms.relation.value,
            mechanism=terms.mechanism,
        )

    def stored(self) -> Any:
        """Return the stored release of this question, with a warning; None if its name is free.

        Raises
        ------
        ValueError
            If the name of the spend was used in this session or given to another question, or its value was
            not stored.
        """
        budget, name = self.terms.accountant, self.terms.spend_name
        if budget is None or name is None or self.terms.is_repeatable:
            return None
        if (kept := answer_named(budget, name)) is None:
            return None
        when = f"{kept.stored:%Y-%m-%d %H:%M} UTC"
        differs = differences(kept.question, self._question())
        if differs is not None:
            raise ValueError(
                f"spend_name={name!r} was given to another question, stored on {when}: {differs}. Nothing is "
                "spent. Choose another spend_name; budget[name] returns what is stored."
            )
        if not budget.reuse:
            raise ValueError(
                f"spend_name={name!r} was given before, stored on {when}, and this budget has reuse=False. "
                "Nothing is spent. Choose another spend_name; budget[name] returns what is stored."
            )
        found = restored(kept.question, kept.answer or "")
        warn_caller(
            f"{name!r} was stored on {when}: that release is returned, at no cost; records and predictions "
            "were not read. New data and new models need a new spend_name.",
            StoredReleaseWarning,
        )
        use_name(budget, name)  # not where somebody has made the warning an error: nothing was returned
        return found

    def _kept(
        self, claim: Claim | None, results: list[AnyResult], form: Any, make: Callable[[list[AnyResult]], T]
    ) -> T:
        """Return what is made of results, stored in the budget, or else with a note that it is not."""
        made = make(results)
        budget = self.terms.accountant
        if claim is None or budget is None or budget.path is None or self.terms.is_repeatable:
            return made

        def written() -> tuple[str | None, str]:
            value = made.value if isinstance(made, Result) else made
            kind = self._call().kind
            if kind == "value" or (claim.question is None and kind == "metric"):
                answer = answer_json("value", value, [])
            else:
                answer = None if claim.question is None else answer_json(kind, form, results)
            return answer, summary_json(value)

        if is_kept(budget, claim, written):
            return made
        return make([replace(one, more=NOT_STORED) for one in results])

    def _spend(self, prepared: Sequence[PreparedQuery], relation: Relation | None) -> Claim | None:
        """Record the spend; return what is to be stored under its name."""
        terms, name = self.terms, self.terms.spend_name
        if terms.accountant is None:
            return None
        question = None if terms.accountant.path is None else self._question()
        # nobody can ask for what is drawn from a seed
        claim = Claim(question, is_named=name is not None and not terms.is_repeatable)
        terms.accountant.spend(
            terms.epsilon,
            self.metric if name is None else name,
            mechanism=drawn_by(noise for one in prepared for noise in one.noises),
            neighboring=(relation or terms.relation).value,
            claim=claim,
        )
        return claim


@dataclass(frozen=True, repr=False, eq=False)
class PreparedQuery:
    """Private: a query with all checks done, ready to be drawn.

    Parameters
    ----------
    metric : str
        Name of what is released.
    terms : Terms
        Those of the release.
    query, source
        What is released, and of what.
    noises : sequence of Noise
        How each part is drawn.
    stats : sequence of Stats
        What the noises know of the records.
    draws : sequence of callable
        What is left of each part.
    for_count : Fraction
        The part of epsilon that pays for a noisy number of records.
    records : Fraction or None
        A public number of records, or of groups, or the mean number; None where there is none.
    """

    metric: str
    terms: Terms
    query: Query
    source: Source
    noises: Sequence[Noise]
    stats: Sequence[Any]
    draws: Sequence[Draw]
    for_count: Fraction
    records: Fraction | None

    @classmethod
    def of(
        cls, metric: str, terms: Terms, query: Query, source: Source, mean_size: Fraction | None = None
    ) -> Self:
        """Look at the records; raise for whatever cannot be released."""
        noises, for_count = query.noises(terms, source.totals, source.capacity)
        looks = zip(source.looks, noises, strict=True)
        stats = [look(noise.ranks) for look, noise in looks]
        draws = [noise.prepare(one) for noise, one in zip(noises, stats, strict=True)]
        records = mean_size if terms.relation.private_n else Fraction(source.totals[0].size)
        return cls(metric, terms, query, source, noises, stats, draws, for_count, records)

    def laws(self, count: int) -> list[Any]:
        """Return the exact law of each part, given a noisy number of records: what audits compare."""
        return [noise.law(one, count) for noise, one in zip(self.noises, self.stats, strict=True)]

    def too_noisy(self) -> str | None:
        """Return what public numbers alone tell of a release that will be mostly noise."""
        if self.records is None:
            return None
        return next(filter(None, [noise.too_noisy(self.records) for noise in self.noises]), None)

    def draw(self) -> AnyResult:
        """Draw what has been prepared, after the spend; the rest is post-processing."""
        count = None
        if self.for_count:
            # the count sets nothing but the resolution; the clamps are post-processing
            noisy = self.source.n + discrete_laplace(self.terms.entropy, self.for_count)
            count = min(max(noisy, 1), MOST_COUNT)
        return self.result([draw(self.terms.entropy, count) for draw in self.draws])

    def result(self, outputs: Sequence[Output]) -> AnyResult:
        """Return the result of what was drawn."""
        source = self.source
        return self.query.result(
            self.metric, self.terms, source.totals, source.capacity, self.noises, outputs
        )


def prepare_all(
    metric: str, terms: Terms, query: Query | Together, source: Source | Sequence[Source]
) -> list[PreparedQuery]:
    """Return what is left to draw of a query, or of each of several; nothing is spent, nothing drawn."""
    sources = [source] if isinstance(source, Source) else source
    return [
        PreparedQuery.of(name, on, one, known, size)
        for (name, on, one, size), known in zip(query.each(metric, terms), sources, strict=True)
    ]
