"""A page as lists, mappings, numbers and text."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from dp_metrics._packages import __version__
from dp_metrics.inference.comparison import Comparison
from dp_metrics.inputs.options import Relation
from dp_metrics.page.contents import CONFIDENCE, promise
from dp_metrics.page.numbers import Number, PageFacts

_WITHIN = " The other record is of the same group: groups and their sizes are public."


def rows_of(page: PageFacts) -> list[dict[str, Any]]:
    """Return the numbers of a page with their limits."""
    return [_number(one) for one in page.numbers.values()]


def as_dict(page: PageFacts, rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Return all that a page says with these numbers, without the release that it was made of."""
    found = page.released.get("comparison")
    return {
        "made_by": f"dp_metrics {__version__}",
        "epsilon": page.epsilon,
        "neighboring": page.relation,
        "n": page.n,
        "is_seeded": page.is_seeded,
        "promise": promise(page.epsilon, page.relation),
        "confidence": CONFIDENCE,
        "numbers": rows,
        "comparison": found.to_dict() if isinstance(found, Comparison) else None,
        "plan": [
            {"name": one.name, "about": one.about, "epsilon": float(one.epsilon),
             "expected_error": _finite(one.expected_error),
             "expected_range": one.expected_range and [_finite(end) for end in one.expected_range]}
            for one in page.plan.parts
        ],
        "left_out": [{"about": one.about, "why": one.why} for one in page.plan.left_out],
        "budget": page.budget,
        "deployment": deployment_of(page),
    }  # fmt: skip


def _number(number: Number) -> dict[str, Any]:
    limits = {"noise": number.noise_interval, "people": number.population_interval}
    row: dict[str, Any] = {
        "name": number.name, "value": _finite(number.value), "section": number.section,
        "metric": number.metric, "label": _text(number.label), "group": _text(number.group),
        "release": number.release, "rests_on": _finite(number.rests_on), "note": number.note,
        "bias": number.bias,
    }  # fmt: skip
    for kind, asked in limits.items():
        try:
            found = asked(CONFIDENCE)
        except (TypeError, ValueError) as error:
            row |= {kind: None, f"{kind}_note": str(error)}
        else:
            row |= {kind: [_finite(found.lower), _finite(found.upper)], f"{kind}_note": found.note or None}
    return row


def _finite(number: Any) -> float | None:
    return None if number is None or not math.isfinite(number) else float(number)


def _text(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_text(one) for one in value]
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)


def deployment_of(page: PageFacts) -> dict[str, Any] | None:
    """Return what the OpenDP deployment registry asks for; None where nothing can be promised."""
    parts = [result.deployment for result in page.evaluated.results]
    if any(one is None for one in parts):
        return None
    whole: dict[str, Any] = _thawed(parts[0])
    whole["privacy_loss"]["privacy_parameters"] = {"epsilon": page.epsilon}
    by = dict.fromkeys(one["implementation"]["mechanisms"] for one in parts if one is not None)
    whole["implementation"]["mechanisms"] = " ".join(by)
    if page.relation == Relation.WITHIN_GROUPS:
        whole["privacy_loss"]["privacy_unit_details"] += _WITHIN
    return whole


def _thawed(value: Any) -> Any:
    return {name: _thawed(one) for name, one in value.items()} if isinstance(value, Mapping) else value
