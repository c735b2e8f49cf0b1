import math

import pytest
from hypothesis import HealthCheck, settings

from dp_metrics import exceptions

# Tests simulate no noise by a huge epsilon, also where they make errors of all warnings.
_LARGEST_EPSILON, exceptions._LARGEST_EPSILON = exceptions._LARGEST_EPSILON, math.inf


@pytest.fixture
def large_epsilons_warn(monkeypatch):
    """Warn of a large epsilon, as the package does."""
    monkeypatch.setattr(exceptions, "_LARGEST_EPSILON", _LARGEST_EPSILON)


# The same examples in every run: a failure is a change of the code, never of the luck.
settings.register_profile(
    "reproducible",
    derandomize=True,
    database=None,
    deadline=None,
    max_examples=150,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("reproducible")
