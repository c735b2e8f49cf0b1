"""The metrics on Dask collections, for data that do not fit into memory; needs the extra `dask`.

A door: they are defined in `dp_metrics.streaming.dask`, which says what differs from the metrics in memory.
"""

from dp_metrics.streaming.dask import *  # noqa: F403
from dp_metrics.streaming.dask import __all__ as __all__
