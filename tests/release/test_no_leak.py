"""Nothing public shows a value of the data, and what holds private values does not show its fields."""

import pkgutil
from dataclasses import is_dataclass
from importlib import import_module

import numpy as np
from helpers import loss_query, variance_query

import dp_metrics as dp
from dp_metrics import quantities, release
from dp_metrics.mechanisms import Hazard
from dp_metrics.quantities.base import Noise, Quantity

SENTINEL = 987654.25


def test_representations_and_pickles_of_public_objects_hold_no_value_of_the_data():
    x = np.array([SENTINEL, 1.0, 2.0])
    for query in (loss_query(x), variance_query(x)):
        bounds = query.output_bounds(Hazard())
        law = Hazard().output_distribution(bounds, 1.0)
        assert "987654" not in repr(bounds) + str(bounds) + repr(law) + repr(law.runs)
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
        "CountsNoise", "HazardByClass", "Totals", "PublicWeights", "Query", "Share", "Together", "Terms",
        "Call", "Answer", "Interval", "KeptCounts", "Monotone", "PopulationQuestion", "Result",
        "ReleasedNumbers", "NoisyRatio",
    }  # fmt: skip
