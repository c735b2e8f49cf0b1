"""The settings that functions share which speak of all people like the records."""

from collections.abc import Mapping
from typing import Any

from dp_metrics.release.release import Release
from dp_metrics.release.result import PrivateResult
from dp_metrics.release.stored.questions import Call
from dp_metrics.release.terms import Terms

_ONE_PERSON = "the records must be independent draws from one population, one person each"


def population_release(
    name: str, terms: Terms, arguments: Mapping[str, Any], *, sample_weight: Any = None, groups: Any = None
) -> Release:
    """Return the release of a call with these arguments; raise for those that suit no population."""
    if sample_weight is not None:
        raise ValueError(f"{name} takes no sample_weight: {_ONE_PERSON}, and each counts alike.")
    if groups is not None:
        raise ValueError(f"{name} takes no groups: {_ONE_PERSON}.")
    if terms.relation.private_n:
        raise ValueError(
            f"{name} needs neighboring='replace_one': the width depends on the number of records."
        )
    return Release(name, terms, call=Call.of("value", arguments))


def value_of(result: PrivateResult[Any]) -> Any:
    """Return the value of a result, all that a function returns of it."""
    return result.value
