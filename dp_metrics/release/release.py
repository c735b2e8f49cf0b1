"""The single path of a release: plan -> output bounds -> spend -> draw -> result.

Everything that can fail for a reason in the data happens before the spend: the inputs are validated when the
plan is made, and the output bounds are ready when epsilon is recorded. What follows is arithmetic that cannot
raise.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import chain
from typing import Any

import numpy as np

from dp_metrics._random import OSEntropy, RandomState, check_entropy, discrete_laplace
from dp_metrics.accounting import PrivacyAccountant, check_accountant
from dp_metrics.exceptions import NoisyReleaseWarning, warn_caller
from dp_metrics.inputs.epsilon import exact_epsilon
from dp_metrics.inputs.options import check_label, check_neighboring
from dp_metrics.mechanisms import Mechanism, get_mechanism
from dp_metrics.release.draws import Draw
from dp_metrics.release.queries.query import Query
from dp_metrics.release.queries.ranking_loss import RankingDraw
from dp_metrics.release.released import Monotone, Released, ResultNoise, WithNote, only
from dp_metrics.release.result import PrivateResult, deployment

__all__ = ["COUNT_SHARE", "Plan", "Release", "drawn_by"]

# this share of epsilon pays for a private number of records, where it is needed
COUNT_SHARE = Fraction(1, 20)
_LARGEST_COUNT = 1 << 53


@dataclass(frozen=True, repr=False, eq=False)
class Plan:
    """What one call releases, and how its result follows.

    Parameters
    ----------
    queries : tuple of Query
        What to release about the same records, at epsilon together.
    postprocess : callable, default=the one number that is released
        The result of a `Released`; a `WithLimits` one has limits of its noise too.
    shares : tuple of Fraction or None, default=None
        Positive parts of epsilon, with sum 1; None for equal ones.
    mechanisms : tuple of (str, Mechanism or None), default=()
        Mechanisms of those queries that have one of their own, unless the caller chooses.
    unstated : str or None, default=None
        Why the plan cannot be carried out with a private number of records: the form of the call leaves open
        what would then follow from whether there are records. None: it can.
    """

    queries: tuple[Query, ...]
    postprocess: Callable[[Released], Any] = field(default_factory=lambda: Monotone(only))
    shares: tuple[Fraction, ...] | None = None
    mechanisms: tuple[str | Mechanism | None, ...] = ()
    unstated: str | None = None

    def epsilons(self, epsilon: Fraction) -> list[Fraction]:
        """Return the part of epsilon of each query."""
        shares = self.shares or (Fraction(1, len(self.queries)),) * len(self.queries)
        return [epsilon * share for share in shares]


def drawn_by(draws: Iterable[Draw]) -> str:
    """Return what draws a release, for the accountant's history."""
    return ", ".join(dict.fromkeys(draw.drawn_by for draw in draws))


class Release:
    """The checked public settings of one call.

    Parameters
    ----------
    metric : str
        Name of what is released.
    epsilon : float or Fraction
        Privacy parameter of everything that the call releases, together.
    mechanism : str, Mechanism or None
        Name or object; None: what the plan says, or else the default.
    default : str or None
        Name of the default mechanism; None: all that is released has noise of its own.
    accountant : PrivacyAccountant or None
        Budget that pays for the release.
    random_state : None, int, RandomState or Generator
        Source of randomness.
    neighboring : {"replace_one", "add_or_remove_one"}
        The neighbouring relation.
    label : str or None
        What the accountant's history shows; None for the name of the metric.
    disclosing : sequence of str, default=()
        Options of the call that would give a private number of records away.

    Attributes
    ----------
    metric : str
        Name of what is released.
    private_n : bool
        Whether the number of records is private.

    Raises
    ------
    ValueError, TypeError
        If one of them is not what it should be.
    """

    def __init__(
        self,
        metric: str,
        *,
        epsilon: Any,
        mechanism: str | Mechanism | None,
        default: str | None,
        accountant: PrivacyAccountant | None,
        random_state: RandomState,
        neighboring: str,
        label: str | None = None,
        disclosing: Sequence[str] = (),
    ) -> None:
        self.epsilon = exact_epsilon(epsilon)
        self.private_n = check_neighboring(neighboring, disclosing)
        # a query with noise of its own asks no mechanism
        self.mechanism = get_mechanism((default or "geometric") if mechanism is None else mechanism)
        check_accountant(accountant)
        self._is_chosen = mechanism is not None
        self.metric, self._label = metric, check_label(label)
        self._accountant, self._neighboring = accountant, neighboring
        self._entropy = check_entropy(random_state)

    def run(self, plan: Plan) -> PrivateResult:
        """Release what is planned.

        Raises
        ------
        PrivacyBudgetError
            If the budget is too small; nothing is drawn.
        ValueError
            If the plan cannot be carried out; nothing is spent.
        """
        # whoever made NumPy raise or warn of overflows would learn of the data, perhaps after the spend
        with np.errstate(all="ignore"):
            return self._run(plan)

    def divided(self, plan: Plan) -> tuple[list[Mechanism], list[Fraction], Fraction]:
        """Return the mechanism and the part of epsilon of each query, and the part that pays for the count.

        This depends on what kinds of queries there are, not on the records.

        Raises
        ------
        ValueError
            If epsilon is too small to be divided.
        """
        queries = plan.queries
        own = (None,) * len(queries) if self._is_chosen or not plan.mechanisms else plan.mechanisms
        rules = [self.mechanism if name is None else get_mechanism(name) for name in own]
        for_count = Fraction(0)
        if self.private_n and any(q.needs_count(rule) for q, rule in zip(queries, rules, strict=True)):
            for_count = self.epsilon * COUNT_SHARE
        epsilons = plan.epsilons(self.epsilon - for_count)
        if 0.0 in map(float, epsilons):
            raise ValueError("epsilon is too small to be divided among the releases of this call.")
        return rules, epsilons, for_count

    def prepare(self, plan: Plan) -> tuple[list[Draw], list[Mechanism], Fraction]:
        """Return what is left to draw, by which mechanisms, and the part of epsilon that pays for the count.

        Nothing is spent and nothing drawn; what expects an error of a release starts here too.

        Raises
        ------
        ValueError
            If the plan cannot be carried out.
        """
        if self.private_n and plan.unstated is not None:
            raise ValueError(plan.unstated)
        rules, epsilons, for_count = self.divided(plan)
        draws = [
            query.prepare(rule, epsilon, private_n=self.private_n)
            for query, rule, epsilon in zip(plan.queries, rules, epsilons, strict=True)
        ]
        for draw in draws:
            draw.rehearse()
        return draws, rules, for_count

    def released(self, plan: Plan, values: Sequence[Any]) -> Released:
        """Return released numbers with what is public about them."""
        query = plan.queries[0]
        n = None if self.private_n else query.n
        weight = None if self.private_n else getattr(query, "total_weight", None)
        return Released(values, n, weight, self.epsilon, self._neighboring)

    def result(self, plan: Plan, values: Sequence[Any]) -> Any:
        """Return what released numbers become."""
        return plan.postprocess(self.released(plan, values))

    def warn_of_noise(self, plan: Plan, draws: Sequence[Draw], records: Fraction | None = None) -> bool:
        """Warn before the spend if public numbers alone tell that a release will be mostly noise.

        Parameters
        ----------
        plan, draws
            What is released.
        records : Fraction or None, default=None
            A public number of records; None: that of the queries, unless it is private.

        Returns
        -------
        bool
            Whether it warned.
        """
        if self.private_n and records is None:
            return False
        for query, draw in zip(plan.queries, draws, strict=True):
            said = query.too_noisy(draw, Fraction(query.size) if records is None else records)
            if said is not None:
                warn_caller(f"{self.metric}: {said}", NoisyReleaseWarning)
                return True
        return False

    def _run(self, plan: Plan) -> PrivateResult:
        draws, _, for_count = self.prepare(plan)
        self.warn_of_noise(plan, draws)
        if self._accountant is not None:
            label = self.metric if self._label is None else self._label
            self._accountant.spend(
                self.epsilon, label, mechanism=drawn_by(draws), neighboring=self._neighboring
            )
        return self.draw(plan, draws, for_count)

    def draw(self, plan: Plan, draws: Sequence[Draw], for_count: Fraction) -> PrivateResult:
        """Draw what has been prepared, after the spend; the rest is post-processing."""
        queries = plan.queries
        drawn: dict[str, Any] = {}
        count = None
        if for_count:
            # the count sets nothing but the resolution; the clamps are post-processing
            count = min(max(queries[0].n + discrete_laplace(self._entropy, for_count), 1), _LARGEST_COUNT)
            drawn["count"] = count
        values, others = zip(*(draw(self._entropy, count) for draw in draws), strict=True)
        for name in dict.fromkeys(chain.from_iterable(others)):
            drawn[name] = others[0][name] if len(others) == 1 else [other.get(name) for other in others]
        released = self.released(plan, values)
        described = [
            draw.noise(value, other, count) for draw, value, other in zip(draws, values, others, strict=True)
        ]
        notes = [self._note(*part, count) for part in zip(queries, draws, values, others, strict=True)]
        if isinstance(plan.postprocess, WithNote):
            notes.append(plan.postprocess.note(described, released))
        return PrivateResult(
            value=plan.postprocess(released),
            epsilon=float(self.epsilon),
            n=None if self.private_n else queries[0].n,
            neighboring=self._neighboring,
            mechanism=drawn_by(draws),
            drawn=drawn,
            metric=self.metric,
            label=self._label,
            note=" ".join(dict.fromkeys(note for note in notes if note)) or None,
            deployment=self._deployment(draws),
            noise=ResultNoise.of(plan.postprocess, described, released),
        )

    def _note(
        self, query: Query, draw: Draw, value: Any, drawn: Mapping[str, Any], count: int | None
    ) -> str | None:
        """Return what released numbers tell of one of them that is mostly noise, or biased."""
        if isinstance(draw, RankingDraw):
            return draw.note(drawn)
        records = query.records_told(value, drawn, count) if self.private_n else None
        said = None if records is None else query.too_noisy(draw, records)
        return None if said is None else f"By the noisy number of records {said}"

    def _deployment(self, draws: Sequence[Draw]) -> dict[str, Any] | None:
        """Return what can be promised of a release; nothing of one whose noise can be repeated."""
        if not isinstance(self._entropy, OSEntropy):
            return None
        return deployment(
            draws, epsilon=float(self.epsilon), neighboring=self._neighboring, drawn_by=drawn_by(draws)
        )
