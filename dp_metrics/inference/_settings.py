"""The settings that functions share which speak of all people like the records."""

from collections.abc import Mapping
from typing import Any

from dp_metrics._random import RandomState
from dp_metrics.accounting import PrivacyAccountant
from dp_metrics.inputs.options import check_neighboring
from dp_metrics.release.release import Release
from dp_metrics.release.result import PrivateResult
from dp_metrics.release.stored.questions import Call

_ONE_PERSON = "the records must be independent draws from one population, one person each"


def population_release(
    name: str,
    *,
    epsilon: Any,
    sample_weight: Any,
    groups: Any,
    neighboring: Any,
    accountant: PrivacyAccountant | None,
    random_state: RandomState,
    spend_name: str | None,
    arguments: Mapping[str, Any],
) -> Release:
    """Return the checked public settings of a call with these arguments; raise for unknown ones."""
    if sample_weight is not None:
        raise ValueError(f"{name} takes no sample_weight: {_ONE_PERSON}, and each counts alike.")
    if groups is not None:
        raise ValueError(f"{name} takes no groups: {_ONE_PERSON}.")
    if check_neighboring(neighboring).private_n:
        raise ValueError(
            f"{name} needs neighboring='replace_one': the width depends on the number of records."
        )
    return Release(
        name,
        epsilon=epsilon,
        accountant=accountant,
        random_state=random_state,
        neighboring=neighboring,
        spend_name=spend_name,
        call=Call.of("value", arguments),
    )


def value_of(result: PrivateResult[Any]) -> Any:
    """Return the value of a result, all that a function returns of it."""
    return result.value
