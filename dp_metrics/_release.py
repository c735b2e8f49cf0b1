"""The single path of a release: records -> output bounds -> spend -> draw -> float.

Everything that can fail for a reason in the data happens before the spend: the inputs are validated by
the metric, and the output bounds are ready when epsilon is recorded. What follows is arithmetic that
cannot raise.
"""

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dp_metrics._options import check_neighboring
from dp_metrics._queries import MeanLoss, Query, Variance
from dp_metrics._random import RandomState, check_entropy, discrete_laplace
from dp_metrics.accounting import PrivacyAccountant
from dp_metrics.bounds import OutputBounds
from dp_metrics.losses import identity
from dp_metrics.mechanisms import Epsilon, Mechanism, exact_epsilon, get_mechanism, needs_count

__all__ = ["COUNT_SHARE", "Release", "loss_output_bounds", "variance_output_bounds"]

Floats = NDArray[np.float64]

COUNT_SHARE = Fraction(1, 20)  # of epsilon, for the number of records where it is private and needed
_LARGEST_COUNT = 1 << 53


class Release:
    """The checked public settings of one call.

    Parameters
    ----------
    label : str
        What is released, for the accountant.
    epsilon : float or Fraction
        Privacy parameter of everything that the call releases, together.
    mechanism : str or Mechanism
        Name or object.
    accountant : PrivacyAccountant or None
        Budget that pays for the release.
    random_state : None, int, RandomState or Generator
        Source of randomness.
    neighboring : {"replace_one", "add_or_remove_one"}, default="replace_one"
        The neighbouring relation.
    **revealing : object
        Options that would give a private number of records away, by name; None where not used.

    Attributes
    ----------
    neighboring : str
        The neighbouring relation.
    private_n : bool
        Whether the number of records is private.

    Raises
    ------
    ValueError, TypeError
        If one of them is not what it should be.
    """

    def __init__(
        self,
        label: str,
        epsilon: Any,
        mechanism: str | Mechanism,
        accountant: PrivacyAccountant | None,
        random_state: RandomState,
        neighboring: str = "replace_one",
        **revealing: Any,
    ) -> None:
        self.epsilon = exact_epsilon(epsilon)
        self.private_n = check_neighboring(neighboring, **revealing)
        self.mechanism = get_mechanism(mechanism)
        if not (accountant is None or isinstance(accountant, PrivacyAccountant)):
            raise TypeError("accountant must be None or a PrivacyAccountant.")
        self._label, self._accountant, self.neighboring = label, accountant, neighboring
        self._entropy = check_entropy(random_state)

    def draw(self, query: Query) -> float:
        """Release the answer to one query."""
        return self.draw_all([query])[0]

    def draw_all(
        self,
        queries: Sequence[Query],
        shares: Sequence[Fraction] | None = None,
        mechanisms: Sequence[str | None] | None = None,
    ) -> list[float]:
        """Release the answers to several queries about the same records, at epsilon together.

        Parameters
        ----------
        queries : sequence of Query
            What to release.
        shares : sequence of Fraction or None, default=None
            Positive parts of epsilon, with sum 1; None for equal ones.
        mechanisms : sequence of (str or None) or None, default=None
            Mechanisms of those queries that have one of their own.
        """
        # whoever made NumPy raise or warn of overflows would learn of the data, perhaps after the spend
        with np.errstate(all="ignore"):
            return self._draw_all(queries, shares, mechanisms or [None] * len(queries))

    def _draw_all(
        self,
        queries: Sequence[Query],
        shares: Sequence[Fraction] | None,
        mechanisms: Sequence[str | None],
    ) -> list[float]:
        if shares is None:
            shares = [Fraction(1, len(queries))] * len(queries)
        rules = [self.mechanism if name is None else get_mechanism(name) for name in mechanisms]
        for_count = Fraction(0)
        if self.private_n and any(map(needs_count, rules)):
            for_count = self.epsilon * COUNT_SHARE
        costs = [(self.epsilon - for_count) * share for share in shares]
        output_bounds = [
            query.output_bounds(rule, cost, private_n=self.private_n)
            for query, rule, cost in zip(queries, rules, costs, strict=True)
        ]
        if self._accountant is not None:
            drawn_by = ", ".join(dict.fromkeys(map(repr, rules)))
            self._accountant.spend(
                self.epsilon, self._label, mechanism=drawn_by, neighboring=self.neighboring
            )
        if for_count:
            # it sets nothing but the resolution; the clamps are post-processing
            count = queries[0].n + discrete_laplace(self._entropy, for_count)
            output_bounds = [replace(b, n=min(max(count, 1), _LARGEST_COUNT)) for b in output_bounds]
        return [
            rule.release(b, cost, self._entropy)
            for b, rule, cost in zip(output_bounds, rules, costs, strict=True)
        ]


def loss_output_bounds(
    losses: Floats,
    *,
    max_loss: float | None = None,
    mechanism: Mechanism,
    epsilon: Epsilon,
    paper_scale: float = 1.0,
) -> OutputBounds:
    """Return what a mechanism sees of a mean loss; for studies of its output law on public data."""
    query = MeanLoss(identity, (losses,), max_loss)
    output_bounds = query.output_bounds(mechanism, epsilon, private_n=False)
    return replace(output_bounds, paper_scale=paper_scale)


def variance_output_bounds(
    x: Floats, *, bounds: tuple[float, float] | None = None, mechanism: Mechanism, epsilon: Epsilon
) -> OutputBounds:
    """Return what a mechanism sees of a variance; for studies of its output law on public data."""
    return Variance(x, bounds).output_bounds(mechanism, epsilon, private_n=False)
