# The metrics that are here have the signatures of those in memory.
from . import *  # noqa: F403
from .streaming._collections import summarised as summarised
