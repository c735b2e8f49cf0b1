"""The door to the auditor; see `dp_metrics.analysis.auditing`."""

from dp_metrics.analysis.auditing import *  # noqa: F403
from dp_metrics.analysis.auditing import __all__ as __all__
