"""Is it the right number? The auditor sees how private a law is, and not what it is the law of.

Definitions, in fractions and from the records alone, stand beside public calls. At a huge epsilon a release
is its metric, and all that is drawn besides is what it is said to be. Where most of that epsilon is left for
the second of two stages, the release is the metric of records that are clipped at the scale that was drawn.
"""

import itertools
import math
import random
import warnings
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from cases import ADD_OR_REMOVE as ADD, REPLACE
from helpers import mean

import dp_metrics as dp
from dp_metrics.mechanisms import Adaptive

HUGE = 1e9
NUMBERS = [0.0, 1e-9, 0.1, 0.25, 1 / 3, 0.5, 0.7, 1.0, 1.5, 2.0, 3.3, 10.0, 123.456, 1e4]


# ---- definitions -------------------------------------------------------------------------------------------


def fractions(values):
    return [Fraction(float(value)) for value in values]


def clipped(values, limits):
    low, high = limits or (-math.inf, math.inf)
    return [min(max(float(value), low), high) for value in values]


def person_terms(losses, weights=None, persons=None):
    """Return what each person adds to the mean of losses, times the number of people."""
    weights = fractions(weights) if weights is not None else [Fraction(1)] * len(losses)
    terms = Counter()
    for person, weight, loss in zip(persons or range(len(losses)), weights, fractions(losses), strict=True):
        terms[person] += weight * loss
    return [term * len(terms) / sum(weights) for term in terms.values()]


def variance(x, cost=None):
    """Return the least mean cost about a centre: the squared distance, at most so much for each value."""
    x = sorted(fractions(x))
    n = len(x)
    if n == 0:
        return Fraction(0)
    windows = itertools.combinations(range(n + 1), 2) if cost is not None else [(0, n)]
    costs = []
    for first, last in windows:
        centre = mean(x[first:last])
        costs.append(sum((t - centre) ** 2 for t in x[first:last]) + (n - last + first) * (cost or 0))
    return min(costs) / n


def order_statistic(values, q):
    values = sorted(values)
    return values[max(math.ceil(len(values) * q - 1), 0)]


# ---- queries: a call, and the number that it is to give ----------------------------------------------------


def some(rng, n):
    """Return numbers of very different sizes, with ties."""
    return [
        min(rng.lognormvariate(0, 2), 1e6) if rng.random() < 0.6 else rng.choice(NUMBERS) for _ in range(n)
    ]


def errors(rng, n):
    limits = rng.choice([None, (0.0, 10.0), (-0.5, 1.1)])
    y, p = some(rng, n), some(rng, n)
    return (y, p), limits, [abs(a - b) for a, b in zip(clipped(y, limits), clipped(p, limits), strict=True)]


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


def mean_of_errors(metric, power):
    def query(rng, n, relation):
        data, limits, losses = errors(rng, n)
        people = of_people(rng, n, relation)
        terms = person_terms([loss**power for loss in losses], *map(people.get, ("sample_weight", "groups")))
        return metric, data, {"bounds": limits, **people}, mean(terms)

    return query


def mean_query(rng, n, relation):
    x, limits = [value - 1 for value in some(rng, n)], rng.choice([(-1.0, 2.5), (-7.0, 1e3)])
    return dp.private_mean, (x,), {"bounds": limits}, mean(fractions(clipped(x, limits)))


def variance_query(rng, n, relation):
    x = [value - rng.choice([0, 1]) for value in some(rng, n)]
    limits = rng.choice([None, (0.0, 10.0), (-0.3, 3.3)])
    return dp.private_variance, (x,), {"bounds": limits}, variance(clipped(x, limits))


def r2_query(rng, n, relation):
    (y, p), limits, losses = errors(rng, n)
    spread = variance(clipped(y, limits))
    # a ratio of which either part is next to 0 is not told by any epsilon
    exact = 1 - mean([loss**2 for loss in fractions(losses)]) / spread if spread > 0.01 else None
    return dp.private_r2_score, (y, p), {"bounds": limits}, exact


def quantile_query(rng, n, relation):
    x, q = some(rng, n), rng.choice([0, 0.1, 0.5, 0.9, 1])
    low, high = rng.choice([(0.0, 10.0), (0.2, 3.3), (0.0, None)])
    inside = clipped(x, (low, math.inf if high is None else high))
    return dp.private_quantile, (x,), {"q": q, "bounds": (low, high)}, order_statistic(inside, q)


def share_query(rng, n, relation):
    data = tuple([rng.randrange(3) for _ in range(n)] for _ in range(2))
    people = of_people(rng, n, relation)
    right = [y == p for y, p in zip(*data, strict=True)]
    terms = person_terms(right, *map(people.get, ("sample_weight", "groups")))
    return dp.private_accuracy_score, data, people, mean(terms)


QUERIES = {
    "mean squared error": mean_of_errors(dp.private_mse, 2),
    "mean absolute error": mean_of_errors(dp.private_mae, 1),
    "mean": mean_query,
    "variance": variance_query,
    "r2": r2_query,
    "quantile": quantile_query,
    "accuracy": share_query,
}


NO_RANK = ("quantile", ADD)  # it would tell a private number of records


def released(metric, data, options, **settings):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of seeds and of noise
        return dp.with_result(metric)(*map(np.array, data), **options, **settings)


@pytest.mark.parametrize(
    ("name", "relation"),
    [(name, relation) for name in QUERIES for relation in (REPLACE, ADD) if (name, relation) != NO_RANK],
)
def test_without_noise_a_release_is_its_metric(name, relation):
    rng, tried = random.Random(f"{name}, {relation}"), 0
    for number in range(40):
        metric, data, options, exact = QUERIES[name](rng, rng.choice([1, 2, 3, 7, 15]), relation)
        limited = options.get("bounds", ()) is not None and None not in options.get("bounds", ())
        for mechanism in ("hazard", "adaptive", *(["geometric"] if limited else [])):
            if exact is None:
                continue
            by = {"mechanism": mechanism, **({} if relation == REPLACE else {"neighboring": relation})}
            result = released(metric, data, options, epsilon=HUGE, random_state=number, **by)
            # the lattice of a mean has a million steps; r2 is a ratio of two
            range_of_squares = np.ptp(options["bounds"]) ** 2 if limited and "bounds" in options else 0.0
            allowed = {"rel": 1e-3 if name == "r2" else 1e-5, "abs": 1e-6 * max(range_of_squares, 1.0)}
            assert result.value == pytest.approx(float(exact), **allowed), mechanism
            tried += 1
    assert tried > 30


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
            exact, whole = variance(x, scale), variance(x)
        else:
            terms = person_terms(x, *map(people.get, ("sample_weight", "groups")))
            exact, whole = mean([min(term, scale) for term in terms]), mean(terms)
        assert result.value == pytest.approx(float(exact), rel=1e-6, abs=1e-6 * float(scale))
        below += exact < whole
    assert below > 10
