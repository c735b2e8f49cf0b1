"""The single path of a release: terms -> plan -> read -> spend -> draw.

Of several plans together all are prepared, one spend pays for them, and all are drawn.
Everything that can fail for a reason in the data happens before the spend: records are validated as they are
read, and the output bounds are ready when epsilon is recorded. What follows is arithmetic that cannot
raise.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import chain, groupby
from typing import Any, Self, TypeVar

import numpy as np

from dp_metrics._random import Entropy, OSEntropy, check_entropy, discrete_laplace
from dp_metrics.accounting import (
    Claim,
    PrivacyAccountant,
    answer_named,
    check_accountant,
    claimed,
    use_name,
)
from dp_metrics.exceptions import (
    NoisyReleaseWarning,
    StoredReleaseWarning,
    warn_caller,
    warn_of_large_epsilon,
)
from dp_metrics.inputs.options import Relation, check_neighboring, check_spend_name, exact_epsilon
from dp_metrics.mechanisms import Mechanism, get_mechanism
from dp_metrics.mechanisms._base import Draw
from dp_metrics.release.plan import KnownParts, Part, Plan, Share, Together
from dp_metrics.release.released import ReleasedNumbers, ResultNoise, bias_of, clipped_share, has_note
from dp_metrics.release.result import PrivateResult, deployment
from dp_metrics.release.stored_answers import (
    NOT_STORED,
    answer_json,
    is_kept,
    noted,
    restored,
    summary_json,
)
from dp_metrics.release.stored_questions import Call, differences, question_json


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
    entropy: Entropy = field(default_factory=OSEntropy)
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
        exact, relation = exact_epsilon(epsilon), check_neighboring(neighboring)
        chosen = None if mechanism is None else get_mechanism(mechanism)
        check_accountant(accountant)
        name = check_spend_name(spend_name)
        return cls(exact, relation, chosen, accountant, check_entropy(random_state), name)

    @property
    def is_repeatable(self) -> bool:
        """Whether the noise can be drawn again, so that nothing can be promised of it."""
        return not isinstance(self.entropy, OSEntropy)


# this share of epsilon pays for a private number of records, where it is needed
COUNT_SHARE = Fraction(1, 20)
_LARGEST_COUNT = 1 << 53

T = TypeVar("T")


def drawn_by(draws: Iterable[Draw]) -> str:
    """Return what draws a release, for the accountant's history."""
    return ", ".join(dict.fromkeys([draw.drawn_by for draw in draws]))


class Release:
    """What one call releases, under which name and on which terms.

    Parameters
    ----------
    metric : str
        Name of what is released.
    terms : Terms
        The checked settings.
    default : str or None, default=None
        Name of the mechanism where none was chosen; None: all that is released has noise of its own.
    disclosing : sequence of str, default=()
        Options of the call that would give a private number of records away.
    call : Call or None, default=None
        What else is public of the call, with which the release is stored; None: it is not.

    Raises
    ------
    ValueError
        If the terms do not suit the options.
    """

    def __init__(
        self,
        metric: str,
        terms: Terms,
        *,
        default: str | None = None,
        disclosing: Sequence[str] = (),
        call: Call | None = None,
    ) -> None:
        terms.relation.refuse(disclosing)
        self.metric, self.terms, self._call = metric, terms, call
        # a part with noise of its own asks no mechanism
        self.mechanism = get_mechanism(default or "geometric") if terms.mechanism is None else terms.mechanism

    def answer(self, read: Callable[[], tuple[Any, Any, Any]], make: Callable[[Any], T]) -> T:
        """Return the stored release of this question, or else read the records and release.

        Parameters
        ----------
        read : callable
            Returns a plan, or several together, what it has to know of the records, and the public form of
            these. The one that looks at them: it is not called where there is a stored release.
        make : callable
            What the caller returns, of the `PrivateResult` of a plan, or of what several combine to.

        Raises
        ------
        PrivacyBudgetError
            If the budget is too small; nothing is drawn.
        ValueError
            If the plan cannot be carried out, the name of the spend was used in this session, or another
            question was asked under it; nothing is spent.

        Notes
        -----
        A stored release costs nothing. Proof: which of the two happens follows from the public question and
        from the ledger, and what is returned from what was released before: post-processing.
        """
        if (stored := self.stored()) is not None:
            found: T = stored
            return found
        plan, known, form = read()
        # whoever made NumPy raise or warn of overflows would learn of the data, perhaps after the spend
        with np.errstate(all="ignore"):
            relation = None if isinstance(plan, Plan) else plan.relation
            claim, results = self._results(self.prepare_all(plan, known), relation or self.terms.relation)
            return self._kept(claim, results, form, lambda found: make(_combined(plan, found)))

    def run(self, plan: Plan, known: KnownParts) -> PrivateResult[Any]:
        """Release what is planned of the records that are known, as `answer` does, with no form to store."""
        return self.answer(lambda: (plan, known, None), _as_it_is)

    def _question(self) -> str | None:
        """Return all that is public of the call, as JSON; no private record is read for it."""
        if self._call is None:
            return None
        # nobody asks again without a name, and of a private number of records nothing is public
        is_asked = self.terms.spend_name is not None and not self.terms.relation.private_n
        return question_json(
            self._call,
            of_records=self._call.of_records() if is_asked else None,
            metric=self.metric,
            epsilon=self.terms.epsilon,
            neighboring=self.terms.relation.value,
            mechanism=self.terms.mechanism,
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
        with np.errstate(all="ignore"):
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
        use_name(budget, name)
        warn_caller(
            f"{name!r} was stored on {when}: that release is returned, at no cost; records and predictions "
            "were not read. New data and new models need a new spend_name.",
            StoredReleaseWarning,
        )
        return found

    def _kept(
        self,
        claim: Claim | None,
        results: list[PrivateResult[Any]],
        form: Any,
        make: Callable[[list[PrivateResult[Any]]], T],
    ) -> T:
        """Return what is made of results, stored in the budget, or else with a note that it is not."""
        made = make(results)
        budget = self.terms.accountant
        if claim is None or budget is None or budget.path is None or self.terms.is_repeatable:
            return made

        def written() -> tuple[str | None, str]:
            is_whole = self._call is not None and self._call.can_be_made_again(claim.question)
            answer = answer_json(self._call.kind, form, results) if self._call and is_whole else None
            return answer, summary_json(made.value if isinstance(made, PrivateResult) else made)

        if is_kept(budget, claim, written):
            return made
        return make([noted(one, NOT_STORED) for one in results])

    def divided(self, plan: Plan) -> tuple[list[Mechanism], list[Fraction], Fraction]:
        """Return the mechanism and the epsilon of each part, and the epsilon that pays for the count.

        This depends on what kinds of parts there are, not on the records.

        Raises
        ------
        ValueError
            If epsilon is too small to be divided.
        """
        is_chosen = self.terms.mechanism is not None
        own = (None,) * len(plan.parts) if is_chosen or not plan.mechanisms else plan.mechanisms
        rules = [self.mechanism if name is None else get_mechanism(name) for name in own]
        epsilon, for_count = self.terms.epsilon / plan.most_records, Fraction(0)
        if self.terms.relation.private_n and any(
            part.needs_count(rule) for part, rule in zip(plan.parts, rules, strict=True)
        ):
            for_count = epsilon * COUNT_SHARE
        epsilons = plan.epsilons(epsilon - for_count)
        if 0.0 in map(float, epsilons):
            raise ValueError("epsilon is too small to be divided among the releases of this call.")
        return rules, epsilons, for_count

    def prepare(self, plan: Plan, known: KnownParts) -> tuple[list[Draw], list[Mechanism], Fraction]:
        """Return what is left to draw, by which mechanisms, and the part of epsilon that pays for the count.

        Nothing is spent and nothing drawn; what expects an error of a release starts here too.

        Raises
        ------
        ValueError
            If the plan cannot be carried out.
        """
        if self.terms.relation.private_n and plan.unstated is not None:
            raise ValueError(plan.unstated)
        rules, epsilons, for_count = self.divided(plan)
        draws = [
            one.prepare(rule, epsilon, relation=self.terms.relation)
            for one, rule, epsilon in zip(known.parts, rules, epsilons, strict=True)
        ]
        for draw in draws:
            draw.rehearse()
        return draws, rules, for_count

    def prepare_all(self, plan: Plan | Together, known: Any) -> list["PreparedPlan"]:
        """Return what is left to draw of a plan, or of each of several; see `prepare`."""
        if isinstance(plan, Plan):
            return [PreparedPlan.of(self, plan, known, None)]
        pairs = zip(plan.shares, known, strict=True)
        return [PreparedPlan.of(self._of(one), one.plan, of_one, one.mean_size) for one, of_one in pairs]

    def _of(self, share: Share) -> "Release":
        """Return the release of a share, for which this one pays."""
        epsilon, entropy = self.terms.epsilon * share.epsilon, self.terms.entropy
        return Release(share.metric, Terms(epsilon, share.relation, entropy=entropy))

    def _results(
        self, prepared: Sequence["PreparedPlan"], relation: Relation
    ) -> tuple[Claim | None, list[PrivateResult[Any]]]:
        """Warn, spend and draw: the one path of all releases."""
        warn_of_large_epsilon(self.terms.epsilon)
        for _, alike in groupby(prepared, key=lambda one: one.release.metric):
            any(one.warns_of_noise() for one in alike)  # once
        claim = None
        if self.terms.accountant is not None:
            name = self.metric if self.terms.spend_name is None else self.terms.spend_name
            mechanism = drawn_by(draw for one in prepared for draw in one.draws)
            # nobody can ask for what is drawn from a seed
            is_named = self.terms.spend_name is not None and not self.terms.is_repeatable
            question = None if self.terms.accountant.path is None else self._question()
            claim = claimed(self.terms.accountant, question, is_named=is_named)
            self.terms.accountant.spend(
                self.terms.epsilon,
                name,
                mechanism=mechanism,
                neighboring=relation.value,
                claim=claim,
            )
        return claim, [one.release.draw(one.plan, one.known, one.draws, one.for_count) for one in prepared]

    def released(self, plan: Plan, known: KnownParts, values: Sequence[Any]) -> ReleasedNumbers:
        """Return released numbers with what is public about them."""
        n = None if self.terms.relation.private_n else known.n
        weight = None if self.terms.relation.private_n else known.total_weight
        return ReleasedNumbers(values, n, weight, self.terms.epsilon, self.terms.relation, plan.most_records)

    def result(self, plan: Plan, known: KnownParts, values: Sequence[Any]) -> Any:
        """Return what released numbers become."""
        return plan.postprocess(self.released(plan, known, values))

    def draw(
        self, plan: Plan, known: KnownParts, draws: Sequence[Draw], for_count: Fraction
    ) -> PrivateResult[Any]:
        """Draw what has been prepared, after the spend; the rest is post-processing."""
        drawn: dict[str, Any] = {}
        count = None
        if for_count:
            # the count sets nothing but the resolution; the clamps are post-processing
            count = min(max(known.n + discrete_laplace(self.terms.entropy, for_count), 1), _LARGEST_COUNT)
            drawn["count"] = count
        values, others = zip(*[draw(self.terms.entropy, count) for draw in draws], strict=True)
        for name in dict.fromkeys(chain.from_iterable(others)):
            drawn[name] = others[0][name] if len(others) == 1 else [other.get(name) for other in others]
        described = [
            draw.noise(value, other, count) for draw, value, other in zip(draws, values, others, strict=True)
        ]
        shares = zip(plan.parts, described, strict=True)
        clipped = tuple(clipped_share(noise) if part.may_be_heavy else 0.0 for part, noise in shares)
        released = replace(self.released(plan, known, values), clipped=clipped)
        told = [
            part.records_told(draw, value, other, count) if self.terms.relation.private_n else None
            for part, draw, value, other in zip(plan.parts, draws, values, others, strict=True)
        ]
        notes = [plan.postprocess.note(described, released)] if has_note(plan.postprocess) else []
        if not any(notes):  # the width of limits tells more than the number of records
            notes = [self._note(*one) for one in zip(plan.parts, draws, others, told, strict=True)]
        by, epsilon, promised = drawn_by(draws), float(self.terms.epsilon), None
        if not self.terms.is_repeatable:  # nothing can be promised of noise that can be repeated
            promised = deployment(draws, epsilon=epsilon, neighboring=self.terms.relation.value, drawn_by=by)
        return PrivateResult(
            value=plan.postprocess(released),
            epsilon=epsilon,
            n=released.public_n,
            neighboring=self.terms.relation.value,
            mechanism=by,
            drawn=drawn,
            metric=self.metric,
            spend_name=self.terms.spend_name,
            note=" ".join(dict.fromkeys(filter(None, notes))) or None,
            bias=bias_of(plan.postprocess, released),
            deployment=promised,
            noise=ResultNoise.of(
                plan.postprocess, described, released, next((one for one in told if one is not None), None)
            ),
        )

    def _note(self, part: Part, draw: Draw, drawn: Mapping[str, Any], records: Fraction | None) -> str | None:
        """Return what released numbers tell of one of them that is mostly noise, or biased."""
        if (bias := draw.note(drawn)) is not None:
            return bias
        said = None if records is None else part.too_noisy(draw, records)
        return None if said is None else f"By the noisy number of records {said}"


def _as_it_is(released: Any) -> Any:
    return released


def _combined(plan: Plan | Together, results: list[PrivateResult[Any]]) -> Any:
    """Return the one result of a plan, or what several combine to."""
    return results[0] if isinstance(plan, Plan) else plan.combine(results)


@dataclass(frozen=True, repr=False, eq=False)
class PreparedPlan:
    """Private: a plan with all checks done, ready to be drawn.

    Parameters
    ----------
    release : Release
        Its settings.
    plan, known
        What is released, and what is known of the records.
    draws, for_count
        What `Release.prepare` returned.
    records : Fraction or None
        A public number of records, or of groups, or the mean number; None where there is none.
    """

    release: Release
    plan: Plan
    known: KnownParts
    draws: Sequence[Draw]
    for_count: Fraction
    records: Fraction | None

    @classmethod
    def of(
        cls, release: Release, plan: Plan, known: KnownParts, mean_size: Fraction | None
    ) -> "PreparedPlan":
        """Return a plan with all checks done."""
        draws, _, for_count = release.prepare(plan, known)
        records = mean_size if release.terms.relation.private_n else Fraction(known.parts[0].size)
        return cls(release, plan, known, draws, for_count, records)

    def warns_of_noise(self) -> bool:
        """Warn if public numbers alone tell that a release will be mostly noise; return whether they do."""
        if self.records is None:
            return False
        for part, draw in zip(self.plan.parts, self.draws, strict=True):
            said = part.too_noisy(draw, self.records)
            if said is not None:
                warn_caller(f"{self.release.metric}: {said}", NoisyReleaseWarning)
                return True
        return False
