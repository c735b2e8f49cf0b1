"""Nothing but the release tells of the data: a documented error before the spend, or a public number."""

import pkgutil
import warnings
from dataclasses import is_dataclass
from functools import partial
from importlib import import_module

import numpy as np
import pytest
from helpers import loss_query, variance_query
from hypothesis import HealthCheck, given, settings, strategies as st
from hypothesis.extra import numpy as hnp

import dp_metrics as dp
from dp_metrics import quantities, release
from dp_metrics.quantities.base import Noise, Quantity

SENTINEL = 987654.25
MAX = np.finfo(np.float64).max

floats = st.one_of(
    st.floats(width=64),
    st.sampled_from([0.0, -0.0, 5e-324, 2.2e-308, 1e308, MAX, -MAX, np.inf, -np.inf, np.nan, 0.1, 1.0]),
)
scalars = st.one_of(
    floats,
    st.integers(-(2**70), 2**70),
    st.booleans(),
    st.none(),
    st.text(max_size=3),
    st.complex_numbers(),
    st.lists(floats, max_size=2),
)
dtypes = st.sampled_from(
    [np.float64, np.float32, np.float16, np.longdouble, np.int8, np.int64, np.uint64, np.bool_, np.complex128]
)


@st.composite
def nan_payloads(draw):
    bits = draw(hnp.arrays(np.uint64, st.integers(0, 6)))
    return bits.view(np.float64)


def masked(array):
    return np.ma.masked_array(array, mask=np.arange(array.size).reshape(array.shape) % 2 == 0)


arrays = st.one_of(
    hnp.arrays(np.float64, hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=5), elements=floats),
    dtypes.flatmap(lambda dtype: hnp.arrays(dtype, hnp.array_shapes(max_dims=2, max_side=6))),
    hnp.arrays(object, st.integers(0, 5), elements=scalars),
    st.lists(scalars, max_size=6),
    st.lists(st.floats(0, 1), min_size=1, max_size=8),
    nan_payloads(),
    hnp.arrays(np.float64, st.integers(1, 6), elements=st.floats(0, 1)).map(masked),
    hnp.arrays("U3", st.integers(1, 4)),
    hnp.arrays("datetime64[s]", st.integers(1, 4)),
)

CALLS = {
    "mse": dp.private_mse,
    "mae, bounded": partial(dp.private_mae, bounds=(0, 1)),
    "log loss": dp.private_log_loss,
    "log loss, strings": partial(dp.private_log_loss, labels=["a", "b"]),
    "mean loss": lambda a, b, **options: dp.private_mean_loss(a, max_loss=2.5, **options),
    "variance": lambda a, b, **options: dp.private_variance(a, **options),
    "quantile": lambda a, b, **options: dp.private_quantile(a, 0.5, bounds=(0, MAX), **options),
    "summary": lambda a, b, **options: dp.Summary("mse").update(a, b).release(**options),
    "summary of values": lambda a, b, **options: dp.Summary("variance").update(a).release(**options),
}


@pytest.mark.gate
@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(a=arrays, b=arrays, same=st.booleans(), epsilon=st.sampled_from([1e-12, 0.1, 1.0, 30.0, 1e9]))
@pytest.mark.parametrize("name", CALLS)
def test_documented_error_before_the_spend_or_a_finite_number(name, a, b, same, epsilon):
    budget = dp.PrivacyAccountant(epsilon)
    with warnings.catch_warnings(), np.errstate(all="raise"):
        warnings.simplefilter("error")  # a warning would tell of the data too
        warnings.simplefilter("ignore", dp.exceptions.NoisyReleaseWarning)  # which reads public numbers only
        try:
            result = CALLS[name](a, a if same else b, epsilon=epsilon, accountant=budget)
        except (ValueError, TypeError):
            assert budget.spent == 0
            return
    assert type(result) is float
    assert 0 <= result <= MAX
    assert budget.spent == epsilon


def test_representations_and_pickles_of_public_objects_hold_no_value_of_the_data():
    x = np.array([SENTINEL, 1.0, 2.0])
    for query in (loss_query(x), variance_query(x)):
        bounds = query.output_bounds(dp.mechanisms.Hazard())
        law = dp.mechanisms.Hazard().output_distribution(bounds, 1.0)
        assert "987654" not in repr(bounds) + str(bounds) + repr(law)
        for private in (query.stats(2), query.stats(2, forget=True)):
            assert "987654" not in repr(private) + str(private)
    budget = dp.PrivacyAccountant(1)
    dp.private_mse(x, x, epsilon=1.0, accountant=budget)
    assert "987654" not in repr(budget) + repr(budget.history)


def test_what_holds_private_values_does_not_show_its_fields():
    rooms = ((quantities, "dp_metrics.quantities"), (release, "dp_metrics.release"))
    modules = [f"{name}.{one.name}" for room, name in rooms for one in pkgutil.iter_modules(room.__path__)]
    things = [thing for name in modules for thing in vars(import_module(name)).values()]
    defined = {thing for thing in things if isinstance(thing, type) and is_dataclass(thing)}
    showing = {c for c in defined if c.__module__ in modules and c.__repr__ is not object.__repr__}
    named = {c.__name__ for c in showing if not issubclass(c, Quantity | Noise)}
    # all others hold public facts
    assert named == {
        "NoisyCounts", "Totals", "PublicWeights", "Query", "Share", "Together", "Terms",
        "Call", "Interval", "KeptCounts", "Monotone", "PopulationQuestion", "Result",
        "ReleasedNumbers", "NoisyRatio", "NoiseTable", "Number",
    }  # fmt: skip
