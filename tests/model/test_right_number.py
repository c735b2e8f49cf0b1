"""Is it the right number? The auditor sees how private a law is, and not what it is the law of.

Definitions, in fractions and from the records alone, stand beside public calls. At a huge epsilon a release
is its metric, as `test_matrix.py` says, and all that is drawn besides is what it is said to be. Where most of
that epsilon is left for the second of two stages, the release is the metric of records that are clipped at
the scale that was drawn.
"""

import itertools
import random
import warnings
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from cases import ADD_OR_REMOVE as ADD, REPLACE
from helpers import mean, variance

import dp_metrics as dp
from dp_metrics.mechanisms import Adaptive

HUGE = 1e9
NUMBERS = [0.0, 1e-9, 0.1, 0.25, 1 / 3, 0.5, 0.7, 1.0, 1.5, 2.0, 3.3, 10.0, 123.456, 1e4]


# ---- definitions -------------------------------------------------------------------------------------------


def fractions(values):
    return [Fraction(float(value)) for value in values]


def person_terms(losses, weights=None, persons=None):
    """Return what each person adds to the mean of losses, times the number of people."""
    weights = fractions(weights) if weights is not None else [Fraction(1)] * len(losses)
    terms = Counter()
    for person, weight, loss in zip(persons or range(len(losses)), weights, fractions(losses), strict=True):
        terms[person] += weight * loss
    return [term * len(terms) / sum(weights) for term in terms.values()]


def clipped_variance(x, cost):
    """Return the least mean cost about a centre: the squared distance, at most so much for each value."""
    x = sorted(fractions(x))
    n, costs = len(x), []
    for first, last in itertools.combinations(range(n + 1), 2):
        centre = mean(x[first:last])
        costs.append(sum((t - centre) ** 2 for t in x[first:last]) + (n - last + first) * cost)
    return min(costs) / n


def some(rng, n):
    """Return numbers of very different sizes, with ties."""
    return [
        min(rng.lognormvariate(0, 2), 1e6) if rng.random() < 0.6 else rng.choice(NUMBERS) for _ in range(n)
    ]


def of_people(rng, n, relation):
    """Return public weights and persons, some of whom have several records."""
    if relation == ADD:
        return {}
    options = {}
    if rng.random() < 0.5:
        options["sample_weight"] = [1.0, *(rng.choice([0.0, 0.5, 1.0, 3.7]) for _ in range(n - 1))]
    if rng.random() < 0.5:
        options["groups"] = [rng.randrange(max(n // 2, 1)) for _ in range(n)]
    return options


def released(metric, data, options, **settings):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of seeds and of noise
        return dp.with_result(metric)(*map(np.array, data), **options, **settings)


@pytest.mark.parametrize("relation", [REPLACE, ADD])
def test_what_is_drawn_besides_is_what_it_is_said_to_be(relation):
    y, p, x = [0, 1, 1, 0, 1], [0, 1, 0, 0, 1], [0.0, 0.25, 0.5, 0.5, 1.0]
    settings = {"epsilon": HUGE, "random_state": 0, "neighboring": relation}

    def drawn(metric, *data, **options):
        return released(metric, data, options, **settings).drawn

    counts = drawn(dp.private_confusion_matrix, y, p, labels=[0, 1])["counts"]
    assert [*np.ravel(counts)] == [2, 0, 1, 2]
    sizes = {"positives": 3, **({"negatives": 2} if relation == ADD else {})}
    assert drawn(dp.private_roc_auc_score, y, x, mechanism="hazard") == sizes
    if relation == REPLACE:
        spread = drawn(dp.private_mean, x, bounds=(0, 1), mechanism="geometric")["spread"]
        assert spread == pytest.approx(float(mean([v * (1 - v) for v in fractions(x)])), abs=1e-3)
    else:
        assert drawn(dp.private_mean_loss, x, max_loss=1.0, mechanism="hazard")["count"] == 5
        wrong, right = drawn(dp.private_accuracy_score, y, p, mechanism="geometric")["counts"]
        assert (wrong, right) == (1, 4)


def two_stages(epsilon):
    """Return the mechanism whose first stage has a few units of epsilon, and the second all the rest."""
    return Adaptive(threshold=1e-9, share=epsilon / HUGE)


@pytest.mark.parametrize("relation", [REPLACE, ADD])
@pytest.mark.parametrize("kind", ["mean", "mean in pieces", "variance"])
def test_it_is_that_of_records_clipped_at_the_drawn_scale(kind, relation):
    """Pieces keep few of the largest records; of the others they keep sums by level."""
    rng, below = random.Random(relation), 0
    for number in range(50):
        x, people, first = some(rng, 12 if kind == "variance" else 30), {}, 1.0
        release, data = dp.private_mean_loss, (x,)
        if kind == "variance":
            x, first = [value - rng.choice([0.0, 5.0]) for value in x], 4.0
            release, data = dp.private_variance, (x,)
        elif kind == "mean":
            people = of_people(rng, len(x), relation)
        else:
            parts = [dp.Summary(dp.private_mean_loss, capacity=12) for _ in range(3)]
            for place, part in enumerate(parts):
                part.update(np.array(x[place::3]))
            release, data = parts[0].merge(parts[1]).merge(parts[2]).release, ()
        settings = {"mechanism": two_stages(first), "neighboring": relation, "random_state": number}
        result = released(release, data, people, epsilon=HUGE, **settings)
        scale = Fraction(result.drawn["scale"])
        if kind == "variance":
            exact, whole = clipped_variance(x, scale), variance(x)
        else:
            terms = person_terms(x, *map(people.get, ("sample_weight", "groups")))
            exact, whole = mean([min(term, scale) for term in terms]), mean(terms)
        assert result.value == pytest.approx(float(exact), rel=1e-6, abs=1e-6 * float(scale))
        below += exact < whole
    assert below > 10
