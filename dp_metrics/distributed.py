"""The metrics on Dask collections, for data that do not fit into memory; needs the extra `dask`.

Each partition becomes a summary where it is, summaries are merged in a tree, and the client releases from the
one that is left. Any scheduler will do, and the result is, to the bit, that of the metric of the same name
with all records at once, however they are partitioned. A task that is lost with its worker is run again by
Dask; the budget is spent and the release is drawn once, on the client, when all data have been read. Workers
should be of one kind: the last bit of a logarithm may differ between kinds of processors.

`groups` are refused, because the records of one person may lie in several partitions. `private_quantile` and
`private_median_absolute_error` are missing because a summary of bounded size does not know a quantile, and
`private_roc_auc_score` because it compares every record with every other. `summarised` gives a summary, from
which one release tells all metrics of labels, or all curves.

A summary keeps as many of the most extreme records as a release at this epsilon can use, and at least 2,048.
With more records than that, or a private number of them, a variance, and so R^2, is released by `Hazard`
where the metric in memory takes two stages: give both ``mechanism="hazard"`` to get the same bits.
"""

import functools
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from dp_metrics.metrics import FUNCTIONS, METRICS, regression
from dp_metrics.release.result import Result, arguments_of, set_result
from dp_metrics.streaming._collections import released, summarised

P = ParamSpec("P")
R = TypeVar("R")

_DIFFERENCE = """{summary}

As `dp_metrics.{name}`, whose help describes the parameters, with its guarantee and its results, for
Dask collections. What differs:

- The records, and weights where there are any, are arrays, series or data frames of Dask that have the same
  partitions.
- Private data stay where they are: each partition becomes a summary on its worker. Only one summary of all
  records, which is private too, comes to the client, where the budget is spent and the result drawn, once.
- Groups are refused, because the records of one person may lie in several partitions: a person with several
  records is protected record by record only.
"""


def _on_dask(metric: Callable[P, R]) -> Callable[P, R]:
    """Return the function for Dask collections that takes the arguments of a metric."""
    name = metric.__name__
    release = functools.partial(released, METRICS[name])

    @functools.wraps(metric)
    def of_collections(*args: P.args, **kwargs: P.kwargs) -> R:
        result: Result[R] = release(**arguments_of(metric, args, kwargs))
        return result.value

    set_result(of_collections, release)
    of_collections.__module__ = __name__
    of_collections.__doc__ = _DIFFERENCE.format(summary=(metric.__doc__ or "").split("\n")[0], name=name)
    return of_collections


_twins = {name: _on_dask(FUNCTIONS[name]) for name, row in METRICS.items() if row.usual.merges}
_all_names = {name: one.__name__ for name, one in vars(regression).items() if one in FUNCTIONS.values()}
_twins |= {name: _twins[short] for name, short in _all_names.items() if short in _twins}
globals().update(_twins)  # `distributed.pyi` tells type checkers their signatures
__all__ = [*sorted(_twins), "summarised"]
