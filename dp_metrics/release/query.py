"""What is asked: the terms of a call, and its query, made of options and of the public form of the records.

A `Query` holds public things only, so that it may be kept with a result, compared and sent to a worker.
`Query.read` is the one door to the records: it returns a `Source`, which is private, and whose stats the
noises of the query ask for. Several queries with one spend are a `Together` of `Share`s.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from fractions import Fraction
from functools import partial
from itertools import islice
from types import MethodType
from typing import Any, ClassVar, Self, TypeAlias

import numpy as np

from dp_metrics._random import Entropy, check_entropy
from dp_metrics.accounting.accountant import PrivacyAccountant, check_accountant
from dp_metrics.exceptions import warn_caller
from dp_metrics.inputs.arrays import Records
from dp_metrics.inputs.options import NEIGHBORING, Function, Relation, check_choice, exact_epsilon
from dp_metrics.mechanisms import Mechanism
from dp_metrics.quantities.base import Noise, Output, Quantity, Totals, get_mechanism, noise_of
from dp_metrics.release.result import AnyResult, Monotone, Reading, ReleasedNumbers, Result, only
from dp_metrics.sensitivity.exact import UNIT_BITS, rounded_quotient

COUNT_SHARE = Fraction(1, 20)
"""This share of epsilon pays for a private number of records, where it is needed."""

_MANY_RECORDS = 1 << 40  # nobody has more


@dataclass(frozen=True, eq=False)
class Terms:
    """Public: on which terms something is released.

    Parameters
    ----------
    epsilon : Fraction
        Privacy parameter of everything that is released, together.
    relation : Relation, default=Relation.REPLACE_ONE
        The neighbouring relation.
    mechanism : Mechanism or None, default=None
        The one that was chosen; None: what is released says by which.
    accountant : PrivacyAccountant or None, default=None
        Budget that pays.
    entropy : Entropy
        Source of randomness.
    spend_name : str or None, default=None
        What the accountant's history shows; None for the name of the metric.
    """

    epsilon: Fraction
    relation: Relation = Relation.REPLACE_ONE
    mechanism: Mechanism | None = None
    accountant: PrivacyAccountant | None = None
    entropy: Entropy = field(default_factory=Entropy)
    spend_name: str | None = None

    @classmethod
    def of(
        cls,
        *,
        epsilon: Any,
        neighboring: Any = "replace_one",
        mechanism: Any = None,
        accountant: Any = None,
        random_state: Any = None,
        spend_name: Any = None,
    ) -> Self:
        """Return the terms that a caller named.

        Raises
        ------
        ValueError, TypeError
            If one of them is not what it should be.

        Warns
        -----
        SeededReleaseWarning
            If there is a random state.
        """
        exact = exact_epsilon(epsilon)
        check_choice(neighboring, "neighboring", NEIGHBORING)
        chosen = None if mechanism is None else get_mechanism(mechanism)
        if accountant is not None:
            check_accountant(accountant)
        if not isinstance(spend_name, str | None):
            raise TypeError("spend_name must be None or a string.")
        return cls(exact, Relation(neighboring), chosen, accountant, check_entropy(random_state), spend_name)

    @property
    def is_repeatable(self) -> bool:
        """Whether the noise can be drawn again, so that nothing can be promised of it."""
        return type(self.entropy) is not Entropy


Look: TypeAlias = Function
"""Returns the stats of one part, of `ranks` of its noise: the one step that looks at records."""


@dataclass(frozen=True, repr=False, eq=False)
class Source:
    """Private: where the stats of a query come from, which are records or a summary of them.

    Parameters
    ----------
    totals : tuple of Totals
        Those of each part; they are public where the number of records is.
    looks : tuple of callable
        One for each part.
    capacity : int or None, default=None
        How many extreme records a summary keeps: public; None for records.
    """

    totals: tuple[Totals, ...]
    looks: tuple[Look, ...]
    capacity: int | None = None

    @property
    def n(self) -> int:
        """Number of records."""
        return self.totals[0].n

    @classmethod
    def of_stats(cls, stats: Sequence[Any], capacity: int) -> Source:
        """Return the source of a summary."""
        looks = tuple(partial(_kept, one, capacity) for one in stats)
        return cls(tuple(one.totals for one in stats), looks, capacity)


def _kept(stats: Any, capacity: int, ranks: int) -> Any:
    """Return stats that are known; warn if a noise could use more ranks, which depends on public numbers."""
    if stats.capacity is not None and ranks > capacity:
        warn_caller(
            f"A release at this epsilon uses {ranks} ranks, but the summary keeps {capacity}. The release "
            "is as private, but less accurate, and useless if fewer than half of the ranks are kept. Make "
            "the summary with a larger capacity.",
            UserWarning,
        )
    return stats


_ONE_NUMBER = Monotone(only)


Each: TypeAlias = "list[tuple[str, Terms, Query, Fraction | None]]"
"""The name, terms and query of each release, and the mean size of one whose number of records is private."""


@dataclass(frozen=True, eq=False)
class Query:
    """Public: what one call releases, and how its result follows; equal where all that it holds is equal.

    Parameters
    ----------
    quantities : tuple of Quantity
        What to release about the same records, at epsilon together.
    reader : callable
        Checks the form of `Records`, and returns those that the quantities look at.
    reading : callable, default=the one number that is released
        The result of a `ReleasedNumbers`; if it has `limits`, so has the result, of its noise: see result.py.
    shares : tuple of Fraction or None, default=None
        Positive parts of epsilon, with sum 1; None for equal ones.
    mechanisms : tuple of (str, Mechanism or None), default=()
        Mechanisms of those parts that have one of their own, unless the caller chooses.
    unstated : str or None, default=None
        Why the query cannot be carried out with a private number of records: the form of the call leaves open
        what would then follow from whether there are records. None: it can.
    most_records : int, default=1
        How many records, k, one person has at most: a release spends 1 / k of its epsilon on one record.
    default : str, default="geometric"
        The mechanism of all other parts, unless the caller chooses; those with noise of their own ask none.

    Notes
    -----
    **Privacy of persons.** Let k be `most_records`, and two data sets differ in all records of one person,
    whose number is public. Replacing these one by one leads from one to the other over at most k - 1 data
    sets, each valid as each record is. What is epsilon / k-differentially private where one record is
    replaced changes its probabilities by at most a factor exp(epsilon / k) at each step, so by exp(epsilon)
    over all. For a table that is noise of rate epsilon / (2 k), which k records that move to other cells use
    up; of a number that has output bounds each rank costs a k-th part, so that k ranks cost what one does.

    References
    ----------
    C. Dwork and A. Roth, "The Algorithmic Foundations of Differential Privacy", 2014, Theorem 2.2 (group
    privacy), doi:10.1561/0400000042.
    """

    relation: ClassVar[None] = None
    """As in `Together`: one query alone is as several of which there is one."""

    quantities: tuple[Quantity, ...]
    reader: Callable[[Records], Records]
    reading: Reading = _ONE_NUMBER
    shares: tuple[Fraction, ...] | None = None
    mechanisms: tuple[str | Mechanism | None, ...] = ()
    unstated: str | None = None
    most_records: int = 1
    default: str = "geometric"

    def __post_init__(self) -> None:
        if self.shares is not None and not (min(self.shares) > 0 and sum(self.shares) == 1):
            raise ValueError("shares must be positive parts of epsilon with sum 1.")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Query) and made_of(self) == made_of(other)

    def __hash__(self) -> int:
        return hash(made_of(self))

    @property
    def are_distances(self) -> bool:
        """Whether some quantity ranks distances: two stages of these need all values at once."""
        return any(part.are_distances for part in self.quantities)

    @property
    def merges(self) -> bool:
        """Whether stats of pieces of the records tell those of all."""
        return all(part.merges for part in self.quantities)

    @property
    def ranges(self) -> tuple[Any, ...]:
        """The kind of each part, with the upper end of its range if it has one."""
        return tuple((type(part), part.is_share, part.upper_end) for part in self.quantities)

    def merges_with(self, other: Query) -> bool:
        """Return whether stats for both merge: of records of one form, and of numbers of one range."""
        return self.ranges == other.ranges and made_of(self.reader) == made_of(other.reader)

    def noises(
        self, terms: Terms, totals: Sequence[Totals], capacity: int | None = None
    ) -> tuple[list[Noise], Fraction]:
        """Return the noise of each part, and the epsilon that pays for a noisy number of records.

        With a private number of records the totals are not read.

        Parameters
        ----------
        terms : Terms
            Those of the release.
        totals : sequence of Totals
            Of each part.
        capacity : int or None, default=None
            As in `noise_of`.

        Raises
        ------
        ValueError
            If the query cannot be carried out on these terms.
        """
        private_n, count = terms.relation.private_n, len(self.quantities)
        if private_n and self.unstated is not None:
            raise ValueError(self.unstated)
        own = self.mechanisms or (None,) * count
        rules = [get_mechanism(terms.mechanism or name or self.default) for name in own]
        shares = self.shares or (Fraction(1, count),) * count
        public = [None] * count if private_n else totals
        of_record = terms.epsilon / self.most_records

        def at(epsilon: Fraction) -> list[Noise]:
            each = [epsilon * share for share in shares]
            if 0.0 in map(float, each):
                raise ValueError("epsilon is too small to be divided among the releases of this call.")
            parts = zip(rules, self.quantities, public, each, strict=True)
            return [noise_of(rule, part, known, capacity, cost) for rule, part, known, cost in parts]

        noises, for_count = at(of_record), Fraction(0)
        # a number of records that is public costs nothing
        if private_n and any(noise.needs_count for noise in noises):
            for_count = of_record * COUNT_SHARE
            noises = at(of_record - for_count)
        return noises, for_count

    def most_ranks(self, terms: Terms, capacity: int | None = None) -> int:
        """Return how many ranks a release of however many records uses; ValueError if it would be refused."""
        many = [one.plain(_MANY_RECORDS) for one in self.quantities]
        noises, _ = replace(self, unstated=None).noises(terms, many, capacity)
        return max(noise.ranks for noise in noises)

    def read(self, records: Records) -> Source:
        """Return where the stats of records come from: the one door to them.

        Raises
        ------
        TypeError, ValueError
            If their form is invalid; of a record that is invalid, when the stats are asked for.
        """
        checked = self.checked(records)
        totals = tuple(part.totals(checked) for part in self.quantities)
        parts = zip(self.quantities, totals, strict=True)
        return Source(totals, tuple(partial(part.stats, checked, known) for part, known in parts))

    def checked(self, records: Records) -> Records:
        """Return records of a valid form, that the quantities look at."""
        # whose units are ignored by a quantity, or not paid for, would move it by all of its records
        if records.units is not None and any(part.units == 1 for part in self.quantities):
            raise ValueError(
                "Each person can count once (equal_groups=True) in counts of labels and scores only."
            )
        return self.reader(records)

    def each(self, metric: str, terms: Terms) -> Each:
        """Return the one release, of which no mean size is known."""
        return [(metric, terms, self, None)]

    def combine(self, results: Sequence[AnyResult]) -> AnyResult:
        """Return the one result."""
        return results[0]

    def result(
        self,
        metric: str,
        terms: Terms,
        totals: Sequence[Totals],
        capacity: int | None,
        noises: Sequence[Noise],
        outputs: Sequence[Output],
    ) -> AnyResult:
        """Return the result of what was drawn; of the records nothing enters but public totals."""
        values = tuple(noise.number(output) for noise, output in zip(noises, outputs, strict=True))
        return Result(
            metric=metric,
            reading=self.reading,
            noises=tuple(noises),
            outputs=tuple(outputs),
            released=self.released(terms, totals, values),
            totals=None if terms.relation.private_n else tuple(totals),
            capacity=capacity,
            spend_name=terms.spend_name,
            is_repeatable=terms.is_repeatable,
        )

    def released(self, terms: Terms, totals: Sequence[Totals], values: Sequence[Any]) -> ReleasedNumbers:
        """Return released numbers with what is public about them."""
        n = weight = None
        if not terms.relation.private_n:
            n, weight = totals[0].n, rounded_quotient(totals[0].weight, 1 << UNIT_BITS)
        return ReleasedNumbers(values, n, weight, terms.epsilon, terms.relation, self.most_records)


@dataclass(frozen=True)
class Share:
    """Public: one of several queries, and on which terms it is carried out.

    Parameters
    ----------
    query : Query
        What is released.
    part : Fraction
        Its part of epsilon, from 0 to 1: how the parts add up is for whoever makes them to prove.
    relation : Relation
        The neighbouring relation under which it is released.
    metric : str
        Name of what is released.
    mean_size : Fraction or None, default=None
        The public mean number of records, where the number of its own is private.
    """

    query: Query
    part: Fraction
    relation: Relation
    metric: str
    mean_size: Fraction | None = None


@dataclass(frozen=True, eq=False)
class Together:
    """Public: several queries that one spend pays for.

    Parameters
    ----------
    shares : tuple of Share
        The queries, in the order in which they are drawn.
    reader : callable
        The `Records` of each share, of all `Records`, or of what `of` prepares of them.
    combine : callable
        The result, of the `Result` of each share.
    relation : Relation or None, default=None
        The neighbouring relation that the accountant counts; None: that of the release.
    """

    shares: tuple[Share, ...]
    reader: Callable[[Any], Sequence[Records]]
    combine: Callable[[Sequence[AnyResult]], Any]
    relation: Relation | None = None

    @classmethod
    def of(
        cls, blocks: Sequence[Together], prepare: Callable[[Records], Any], relation: Relation | None
    ) -> Self:
        """Return several as one, which combines to the list of what each of them does.

        Parameters
        ----------
        blocks : sequence of Together
            In the order in which they are drawn.
        prepare : callable
            What the readers of the blocks have, of all `Records`.
        relation : Relation or None
            As for the class.
        """
        shares = tuple(share for one in blocks for share in one.shares)
        reader = partial(_read_each, prepare=prepare, blocks=blocks)
        return cls(shares, reader, partial(_combine_each, blocks=blocks), relation)

    def at(self, part: Fraction, most_records: int) -> Self:
        """Return the same at a part of epsilon, of persons with so many records at most."""
        shares = tuple(
            replace(one, part=one.part * part, query=replace(one.query, most_records=most_records))
            for one in self.shares
        )
        return replace(self, shares=shares)

    def then(self, last: Callable[[Any], Any]) -> Self:
        """Return the same, with a last step behind what it combines to."""
        return replace(self, combine=partial(_in_turn, first=self.combine, last=last))

    def each(self, metric: str, terms: Terms) -> Each:
        """Return the releases; each share has a name of its own."""
        return [
            (
                one.metric,
                Terms(terms.epsilon * one.part, one.relation, entropy=terms.entropy),
                one.query,
                one.mean_size,
            )
            for one in self.shares
        ]

    def read(self, records: Records) -> tuple[Source, ...]:
        """Return where the stats of each share come from; see `Query.read`."""
        pieces = self.reader(records)
        return tuple(share.query.read(piece) for share, piece in zip(self.shares, pieces, strict=True))


def _in_turn(results: Sequence[AnyResult], *, first: Function, last: Function) -> Any:
    return last(first(results))


def _read_each(
    records: Records, *, prepare: Callable[[Records], Any], blocks: Sequence[Together]
) -> list[Records]:
    prepared = prepare(records)
    return [piece for one in blocks for piece in one.reader(prepared)]


def _combine_each(results: Sequence[AnyResult], *, blocks: Sequence[Together]) -> list[Any]:
    left = iter(results)
    return [one.combine(list(islice(left, len(one.shares)))) for one in blocks]


def made_of(value: Any) -> object:
    """Return what a public value is made of: equal, and of one hash, where all of that is equal."""
    if is_dataclass(value) and not isinstance(value, type):
        return type(value), *(made_of(getattr(value, one.name)) for one in fields(value) if one.compare)
    if isinstance(value, partial):
        return partial, made_of(value.func), made_of(value.args), made_of(value.keywords)
    if isinstance(value, MethodType):
        return MethodType, value.__func__, made_of(value.__self__)
    if isinstance(value, np.ndarray):
        return value.dtype.str, value.shape, made_of(value.ravel().tolist())
    if isinstance(value, Mapping):
        return dict, *sorted((name, made_of(held)) for name, held in value.items())
    if isinstance(value, tuple | list):
        return list, *map(made_of, value)
    if isinstance(value, float) and math.isnan(value):
        return float, "nan"
    return type(value), value
