"""Random queries for the differential test: records, options, epsilon and mechanism of a call."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import partial
from typing import Any

import model
import model_noise as noise
import numpy as np
from modelled import MAX, Query, Records, fractions, mean_records, variance_records

from dp_metrics import Adaptive, Geometric, Hazard
from dp_metrics.sensitivity.output_bounds import BoundsFacts

HOSTILE = [5e-324, 1e-310, 1e-160, 1e154, 1e300, MAX]
NUMBERS = [0.0, 1e-9, 0.1, 0.25, 1 / 3, 0.5, 0.7, 1.0, 1.5, 2.0, 3.3, 10.0, 123.456, 1e4]
EPSILONS = [0.1, 0.3, 0.7, 1, 1.1, 2, 2.3, 3, 5, 8.7, 17, 60]


def shifted(value: float, low: float, high: float) -> float:
    """Return what lies so far above a public lower bound."""
    return min(low + value, high)


def complement(value: float) -> float:
    """Return the score of a loss."""
    return 1.0 - value


def some_numbers(rng: random.Random, n: int) -> list[float]:
    """Return numbers of very different sizes, with ties; a few times the worst of floats."""
    if rng.random() < 0.1:
        return [rng.choice(HOSTILE + NUMBERS) for _ in range(n)]
    drawn = (rng.lognormvariate(0, 2) if rng.random() < 0.6 else rng.choice(NUMBERS) for _ in range(n))
    return [min(v, 1e6) for v in drawn]


def some_mechanism(rng: random.Random, *, bounded: bool, share_like: bool = False) -> Any:
    """Return a mechanism with a grid of which every point can be visited."""
    resolution = rng.choice([0.3, 0.5, 0.77, 1.3, 2.5]) if bounded else rng.choice([20.0, 35.5, 60.0])
    kinds = ["hazard", "scaled", "adaptive"]
    if bounded:
        kinds += ["default", "one stage", "adaptive", *["geometric"] * (6 if share_like else 3)]
    kind = rng.choice(kinds)
    if kind == "adaptive" and not bounded and rng.random() < 0.95:  # its grid has half a million points
        kind = "hazard"
    return {
        "hazard": Hazard(resolution),
        "scaled": Hazard(resolution, rng.choice([1e-3, 0.01, 0.5])),
        "adaptive": Adaptive(threshold=rng.choice([1e-9, 20.0, None]), share=rng.choice([None, None, 0.3])),
        "one stage": Adaptive(threshold=1e9),
        "default": Hazard(),
        "geometric": Geometric(),
    }[kind]


def some_weights(rng: random.Random, n: int) -> dict[str, Any]:
    options: dict[str, Any] = {}
    if rng.random() < 0.4:
        options["sample_weight"] = [1.0, *(rng.choice([0.0, 0.5, 1.0, 0.1, 3.7]) for _ in range(n - 1))]
    if rng.random() < 0.4:
        options["groups"] = [rng.randrange(max(n // 2, 1)) for _ in range(n)]
    return options


def mean_query(rng: random.Random, metric: str) -> Query:
    private_n = rng.random() < 0.4
    n = rng.choice([1, 2, 3, 7, 15, 30, 300]) if not private_n else rng.choice([0, 1, 2, 5, 12, 40])
    options = {} if private_n else some_weights(rng, n)
    finish: Callable[[float], float] = float
    a, b = some_numbers(rng, n), some_numbers(rng, n)
    cap: float | None = None
    if metric == "private_mean_loss":
        cap = rng.choice([None, 1.0, 0.1, 50.0])
        data, losses = (a,), a
        options |= {"max_loss": cap}
    elif metric == "private_mean":
        low, high = rng.choice([(-1.0, 2.5), (0.0, 0.1), (-7.0, 1e3)])
        data, losses = ([x - 1 for x in a],), [min(max(x - 1, low), high) - low for x in a]
        cap, options = high - low, options | {"bounds": (low, high)}
        finish = partial(shifted, low=low, high=high)
    elif metric == "private_log_loss":
        p = [rng.random() if rng.random() < 0.9 else rng.choice([0.0, 1.0, 0.5]) for _ in range(n)]
        true = [rng.randrange(2) for _ in range(n)]
        tiny, cap = float(np.finfo(float).eps), rng.choice([None, 3.0, 10.0])
        of_true = [x if y else 1.0 - x for x, y in zip(p, true, strict=True)]
        losses = [float(-np.log(np.float64(min(max(x, tiny), 1 - tiny)))) for x in of_true]
        data, options = (true, np.array(p)), options | {"max_loss": cap}  # whose shape states one column
        cap = float(-np.log(np.float64(tiny))) if cap is None else cap
    elif metric in SHARES:
        true, guess = ([rng.choice("abc") for _ in range(n)] for _ in range(2))
        data, cap, losses = (true, guess), 1.0, [float(x != y) for x, y in zip(true, guess, strict=True)]
        if metric == "private_accuracy_score":
            finish = complement
    else:
        limits = rng.choice([None, (0.0, 10.0), (-0.5, 1.1)])
        if limits:
            options["bounds"] = limits
        clip = (lambda v: min(max(v, limits[0]), limits[1])) if limits else float
        errors = [clip(y) - clip(x) for x, y in zip(a, b, strict=True)]
        is_square = metric == "private_mse"
        losses = [e * e if is_square else abs(e) for e in errors]
        width = limits[1] - limits[0] if limits else 0.0
        data, cap = (a, b), (width * width if is_square else width) if limits else None
    known = mean_records(
        losses,
        cap,
        options.get("sample_weight"),
        options.get("groups"),
        private_n=private_n,
        is_count=metric in SHARES,
    )
    mechanism = some_mechanism(rng, bounded=cap is not None, share_like=metric in SHARES)
    return Query(metric, metric, data, rng.choice(EPSILONS), options, private_n, known, finish, mechanism)


def variance_query(rng: random.Random) -> Query:
    private_n = rng.random() < 0.4
    n = rng.choice([1, 2, 3, 6, 12, 30]) if not private_n else rng.choice([0, 1, 2, 5, 9, 20])
    limits = rng.choice([None, (0.0, 10.0), (-0.3, 3.3)])
    x = [v - rng.choice([0.0, 1.0]) for v in some_numbers(rng, n)]
    known = variance_records(x, limits, private_n=private_n)
    mechanism = some_mechanism(rng, bounded=limits is not None)
    options = {"bounds": limits}
    return Query(
        "private_variance",
        "private_variance",
        (x,),
        rng.choice(EPSILONS),
        options,
        private_n,
        known,
        mechanism=mechanism,
    )


def quantile_query(rng: random.Random) -> Query:
    n, q = rng.choice([1, 2, 9, 30]), rng.choice([0, 0.1, 0.5, 0.9, 1])
    low, high = rng.choice([(0.0, 10.0), (-2.0, 3.3), (0.0, None)])
    x, top = some_numbers(rng, n), MAX if high is None else high
    above = [min(max(v, low), top) - low for v in x]
    t_max = min(top - low, MAX)
    k = max(math.ceil(n * q - 1), 0) + 1  # in floats, as NumPy has it
    known = Records(
        lambda c: model.order_bounds(fractions(above), k, t_max, c),
        t_max,
        n,
        True,
        sensitivity=None if high is None else t_max,
    )
    mechanism = some_mechanism(rng, bounded=high is not None)
    mechanism = Hazard(0.9) if isinstance(mechanism, Adaptive) and high else mechanism
    mechanism = Hazard(40.0) if isinstance(mechanism, Adaptive) else mechanism
    options = {"q": q, "bounds": (low, high)}
    finish = partial(shifted, low=low, high=top)
    return Query(
        "private_quantile",
        "private_quantile",
        (x,),
        rng.choice(EPSILONS),
        options,
        False,
        known,
        finish,
        mechanism,
    )


def auc_query(rng: random.Random) -> Query:
    private_n, n = rng.random() < 0.4, rng.choice([1, 2, 4, 8, 14])
    n = 0 if private_n and rng.random() < 0.1 else n
    true = [rng.randrange(2) for _ in range(n)]
    scores = [rng.choice([0.0, -0.0, 0.2, 0.5, 0.9, rng.random()]) + 0.3 * y * rng.random() for y in true]
    sides = [[s for s, y in zip(scores, true, strict=True) if y == side] for side in (1, 0)]
    known = Records(lambda c: model.auc_bounds(*sides, c, private_n), 1.0, n, False, most_ranks=4096)
    mechanism = rng.choice([Hazard(), Hazard(scale=0.1), Hazard(0.9), Hazard(0.3, 0.05)])
    follows = mechanism.resolution is None
    sizes = tuple(map(len, sides)) if private_n else (len(sides[0]),)
    finish = complement
    return Query(
        "private_roc_auc_score",
        "private_roc_auc_score",
        (true, scores),
        rng.choice(EPSILONS),
        {},
        private_n,
        known,
        finish,
        mechanism,
        classes=sizes if follows else (),
    )


def ratio_of(above: Any, below: Any) -> float:
    return float(above / below) if below else 0.0


def table_query(rng: random.Random, metric: str) -> Query:
    """Return a query of counts of true and predicted labels."""
    private_n, n = rng.random() < 0.4, rng.choice([1, 5, 20, 60])
    labels = (
        2
        if metric not in ("private_confusion_matrix", "private_balanced_accuracy_score")
        else rng.choice([2, 3])
    )
    labels = 4 if metric == "macro F1" else labels
    true, guess = ([rng.randrange(labels) for _ in range(n)] for _ in range(2))
    matrix = [
        [sum(t == i and g == j for t, g in zip(true, guess, strict=True)) for j in range(labels)]
        for i in range(labels)
    ]
    right = [matrix[i][i] for i in range(labels)]
    missed = [sum(matrix[i]) - right[i] for i in range(labels)]
    wrong = [sum(row[i] for row in matrix) - right[i] for i in range(labels)]
    one = {"private_recall_score": missed[1], "private_precision_score": wrong[1]}.get(
        metric, missed[1] + wrong[1]
    )
    weights = [Fraction(1)] * 3
    options: dict[str, Any] = {"labels": list(range(labels))} if labels > 2 else {}
    factor = 2 if "f1" in metric else 1
    partition = True

    def of_counts(x: Sequence[Any]) -> Any:
        return ratio_of(factor * x[0], factor * x[0] + x[1])

    counts = [right[1], one, n - right[1] - one]
    if metric == "private_confusion_matrix":
        counts = [count for row in matrix for count in row]

        def of_counts(x: Sequence[Any]) -> Any:
            return np.array([float(v) for v in x]).reshape(labels, labels)

    elif metric == "private_balanced_accuracy_score":
        counts = right + missed

        def of_counts(x: Sequence[Any]) -> Any:
            return sum(ratio_of(x[i], x[i] + x[labels + i]) for i in range(labels)) / labels

    elif metric == "macro F1":
        counts, partition = right + [a + b for a, b in zip(missed, wrong, strict=True)], False
        options |= {"average": "macro"}
        weights = [Fraction(1)] * labels + [Fraction(1, 2)] * labels

        def of_counts(x: Sequence[Any]) -> Any:
            return sum(ratio_of(2 * x[i], 2 * x[i] + x[labels + i]) for i in range(labels)) / labels

    weights = weights if not partition else [Fraction(1)] * len(counts)
    rate = Fraction(1) if private_n else Fraction(1, 2)

    def of_noisy(noisy: Sequence[int]) -> Any:
        return of_counts(noise.nearest_counts(noisy, weights, None if private_n else n))

    name = "private_f1_score" if metric == "macro F1" else metric
    return Query(
        metric,
        name,
        (true, guess),
        rng.choice(EPSILONS),
        options,
        private_n,
        None,
        counts=counts,
        rates=[rate * w for w in weights],
        zero_sum=partition and not private_n,
        of_counts=of_noisy,
    )


def tied_query(rng: random.Random) -> Query:
    """Return a query whose metric and bounds are points of its own grid: n equal records, or 0."""
    resolution, n = rng.choice([0.5, 1.3]), rng.choice([1, 2, 4, 8])
    grid = (
        Hazard(resolution, 0.01)
        .output_distribution(BoundsFacts(output_range=(0.0, 1.0), monotonic=True, n=1).widest(), 1.0)
        .grid
    )
    value = float(grid.points(np.array([rng.randrange(grid.last + 1)]))[0])
    query = mean_query_of([value] * n, 1.0, rng)
    query.mechanism = Hazard(resolution, 0.01)
    return query


def mean_query_of(losses: list[float], cap: float, rng: random.Random) -> Query:
    known = mean_records(losses, cap, None, None, private_n=False)
    return Query(
        "tied losses", "private_mean_loss", (losses,), rng.choice(EPSILONS), {"max_loss": cap}, False, known
    )


MEANS = ["private_mse", "private_mae", "private_log_loss", "private_mean_loss", "private_mean"]
SHARES = ["private_accuracy_score", "private_zero_one_loss"]
TABLES = ["private_recall_score", "private_precision_score", "private_f1_score", "macro F1"]
TABLES += ["private_confusion_matrix", "private_balanced_accuracy_score"]
MAKERS: list[Callable[[random.Random], Query]] = [
    *(lambda rng, m=m: mean_query(rng, m) for m in MEANS for _ in range(2)),
    *(lambda rng, m=m: mean_query(rng, m) for m in SHARES),
    *[variance_query] * 3,
    quantile_query,
    *[auc_query] * 2,
    *(lambda rng, m=m: table_query(rng, m) for m in TABLES),
    tied_query,
]


def random_query(number: int) -> Query:
    """Return the query with this number: each kind in turn."""
    return MAKERS[number % len(MAKERS)](random.Random(number))
