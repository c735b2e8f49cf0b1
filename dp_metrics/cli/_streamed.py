"""Summaries for the metrics that can be read in chunks, with the bits of a call with all records."""

from collections.abc import Mapping
from typing import Any

from numpy.typing import NDArray

from dp_metrics.metrics import FUNCTIONS, Metric
from dp_metrics.streaming._capacity import capacity_for
from dp_metrics.streaming.confusion_summary import ConfusionSummary
from dp_metrics.streaming.scores import ScoreSummary
from dp_metrics.streaming.summaries import LossSummary, VarianceSummary

__all__ = ["check_options", "summary_of"]

# These errors are about records, of which there are none yet: they say nothing of the options.
_FOR_WANT_OF_RECORDS = ("Found array with 0 sample(s)", "where the number of records is private")


def check_options(
    row: Metric,
    options: Mapping[str, Any],
    settings: Mapping[str, Any],
    epsilon: float,
    no_records: Mapping[str, NDArray[Any]],
) -> None:
    """Raise if an option or setting is wrong, before the file is read; arguments as in `summary_of`."""
    columns = {name: True for name in ("sample_weight", "groups") if name in no_records}
    row.settings(epsilon=epsilon, **settings, options={**options, **columns})
    try:
        row.planned([no_records[name] for name in row.data], options, private_n=True)
    except ValueError as error:
        if not any(part in str(error) for part in _FOR_WANT_OF_RECORDS):
            raise


def summary_of(
    row: Metric,
    options: Mapping[str, Any],
    settings: Mapping[str, Any],
    epsilon: float,
    no_records: Mapping[str, NDArray[Any]],
) -> Any:
    """Return a summary of no records, or None where the metric needs them all at once.

    Parameters
    ----------
    row : Metric
        The metric.
    options, settings : mapping
        The public options that were given; mechanism, neighbouring relation and label.
    epsilon : float
        Of the release: it tells how many ranks a summary must keep.
    no_records : mapping
        Arrays without records.
    """
    data = [no_records[name] for name in row.data]
    if row.is_confusion:
        return ConfusionSummary(options.get("labels")).update(*data)
    if row.is_score_table:
        own = {name: options.get(name) for name in ("labels", "pos_label", "edges")}
        return ScoreSummary(**own).update(*data)
    if not (row.is_mean_loss or row.is_variance):
        return None
    asked = row.settings(epsilon=epsilon, **settings, options=options)
    # two stages need all values of a variance, and a summary has but its capacity of them
    if row.is_variance and settings.get("mechanism", row.mechanism) == "adaptive":
        return None
    plan = row.planned(data, options, private_n=True)
    if len(plan.queries) > 1 or options.get("multioutput") == "raw_values":
        return None
    capacity = capacity_for(asked, plan)
    if row.is_variance:
        return VarianceSummary(bounds=options.get("bounds"), capacity=capacity).update(*data)
    return LossSummary(FUNCTIONS[row.name], capacity=capacity, **options).update(*data)
