"""Summaries for the metrics that can be read in chunks, with the bits of a call with all records."""

from collections.abc import Mapping
from typing import Any

from dp_metrics.inputs.shape import Shape
from dp_metrics.metrics import Metric
from dp_metrics.metrics._catalogue import WEIGHTS
from dp_metrics.release.parts.variance import VarianceOf
from dp_metrics.streaming._summary import Summary

__all__ = ["summary_of"]


def summary_of(
    row: Metric, options: Mapping[str, Any], settings: Mapping[str, Any], epsilon: float, shape: Shape
) -> Summary | None:
    """Return an empty summary, or None where the metric needs all records at once; raise for a bad option.

    Parameters
    ----------
    row : Metric
        The metric.
    options, settings : mapping
        The public options that were given, those that name columns too; mechanism, neighbouring relation and
        name of the spend.
    epsilon : float
        Of the release: it tells how many ranks a summary must keep.
    shape : Shape
        Of the columns of the file.
    """
    release = row.settings(epsilon=epsilon, **settings, options=options)
    plan = row.planned(shape, options, private_n=release.private_n)
    # two stages need all values of a variance, and a summary has but its capacity of them
    has_stages = VarianceOf in plan.kinds and settings.get("mechanism", row.mechanism) == "adaptive"
    if not plan.merges or has_stages or options.get("groups") is not None:
        return None
    of_records = {name: value for name, value in options.items() if name not in WEIGHTS}
    return Summary.for_release(row, of_records, shape, release)
