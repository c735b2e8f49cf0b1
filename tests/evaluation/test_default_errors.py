"""Exact expected errors of the default on embedded data: best or nearly, and falling with epsilon."""

import numpy as np
import pytest
import sklearn.datasets
from helpers import slow_but

from dp_metrics.evaluation.datasets import EMBEDDED, get_dataset, load_dataset
from dp_metrics.evaluation.population import Population, evaluate_model, populations_of
from dp_metrics.mechanisms import AboveThreshold
from dp_metrics.mechanisms._laws import mean_absolute_error
from dp_metrics.quantities.base import get_mechanism

pytestmark = pytest.mark.usefixtures("own_error_state")

EPSILONS = np.geomspace(0.05, 5.0, 9)


@pytest.fixture(scope="module")
def populations():
    features, target = sklearn.datasets.load_diabetes(return_X_y=True, scaled=False)
    found = [  # progression; age in whole years
        Population("variance", np.tile(values, 5), None) for values in (target, features[:, 0])
    ]
    for name in EMBEDDED:
        dataset = get_dataset(name)
        found += populations_of(dataset, *evaluate_model(dataset, *load_dataset(name))).values()
    assert len(found) == 6
    return found


def error(population, mechanism, epsilon):
    truth, _ = population.truth(population.values)
    (law,) = population.prepared(population.values, mechanism, epsilon).laws(population.values.size)
    return mean_absolute_error(law, truth, 10 * truth) / truth


@pytest.mark.gate
@pytest.mark.parametrize("number", slow_but([1], range(6)))
def test_the_default_is_close_to_the_best_and_its_error_falls_with_epsilon(populations, number):
    """At most 1.3 times the best mechanism that needs no bounds, and no rise by more than 5 %."""
    population = populations[number]
    paper = AboveThreshold.paper(population.paper_unit(population.values.size))
    rivals = [get_mechanism("hazard"), AboveThreshold(), paper]
    found = np.array([error(population, get_mechanism("adaptive"), epsilon) for epsilon in EPSILONS])
    best = [min(error(population, rival, epsilon) for rival in rivals) for epsilon in EPSILONS]
    assert (found <= 1.3 * np.array(best)).all()
    assert (found[1:] <= 1.05 * np.minimum.accumulate(found)[:-1]).all()
