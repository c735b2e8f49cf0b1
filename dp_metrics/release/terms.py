"""The terms of a release: all settings that every release has, checked once."""

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Self

from dp_metrics._random import Entropy, OSEntropy, check_entropy
from dp_metrics.accounting import PrivacyAccountant, check_accountant
from dp_metrics.inputs.options import Relation, check_neighboring, check_spend_name, exact_epsilon
from dp_metrics.mechanisms import Mechanism, get_mechanism


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
        if accountant is not None:
            check_accountant(accountant)
        name = check_spend_name(spend_name)
        return cls(exact, relation, chosen, accountant, check_entropy(random_state), name)

    @property
    def is_repeatable(self) -> bool:
        """Whether the noise can be drawn again, so that nothing can be promised of it."""
        return not isinstance(self.entropy, OSEntropy)
