"""The package and a second implementation say the same, and no longer do when the package is broken.

`differential.py` says what is compared, and prints a table of it. The queries are random with fixed seeds, so
these tests always do the same.
"""

import os
import shutil
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest
from differential import TOLERANCE, compare, compared, described
from model import epsilon_of
from modelled_calls import two_stages
from random_queries import random_query

import dp_metrics
from dp_metrics import Geometric

QUERIES = 1000
QUICK = [
    8, 80, 85, 95, 97, 107, 186, 212, 218, 259, 277, 279, 283, 284, 288, 289, 297, 299, 300, 311, 319, 340,
    360, 387, 395, 398, 401, 402, 403, 407, 408, 410, 417, 419, 426, 432, 442, 443, 465, 473, 479,
]  # fmt: skip
"""Numbers of queries that take little time, of all mechanisms and most metrics."""
TESTS = Path(__file__).parent


@pytest.mark.slow
def test_the_model_agrees_on_a_few_queries():
    table = compared(QUICK)
    assert {kind[1:] for kind in table} == {
        (mechanism, relation)
        for mechanism in ("hazard", "adaptive", "geometric", "counts")
        for relation in ("replace", "add or remove")
    }


@pytest.mark.slow
@pytest.mark.parametrize("part", range(10))
def test_the_model_agrees(part):
    table = compared(range(part, QUERIES, 10))
    assert sum(row.decisions for row in table.values()) > 2000


def test_the_model_agrees_on_means_with_a_spread():
    tried = 0
    for number in range(600):
        query = random_query(number)
        is_plain = not query.private_n and query.records is not None and query.records.spread is not None
        if is_plain and isinstance(query.mechanism, Geometric):
            for epsilon in (0.3, 2, 3.7):
                found = compare(replace(query, epsilon=epsilon, made={}), number)
                assert found.distance <= TOLERANCE
                tried += 1
    assert tried >= 20


@pytest.mark.slow
def test_no_kind_of_query_has_vanished():
    queries = [random_query(number) for number in range(QUERIES)]
    kinds = Counter(map(described, queries))
    assert len(kinds) >= 60
    assert min(Counter(query.kind for query in queries).values()) >= 40
    assert min(Counter(described(query)[1:] for query in queries).values()) >= 50
    stages = [query for query in queries if query.records is not None and query.records.stages is not None]
    shares = [Fraction(19, 20) if query.private_n else 1 for query in stages]
    both = [
        two_stages(q, epsilon_of(q.epsilon) * share, q.records.size)
        for q, share in zip(stages, shares, strict=True)
    ]
    assert sum(both) >= 60
    assert sum(query.options.get("sample_weight") is not None for query in queries) >= 50
    assert sum(query.options.get("groups") is not None for query in queries) >= 50


BREAKS = {
    "a lower bound a rank too early": (
        "sensitivity/output_bounds.py",
        "lower = rounded_quotients(_falling(aggregate.total, to_units(aggregate.largest)), scale)",
        "lower = rounded_quotients(_falling(aggregate.total, [0, *to_units(aggregate.largest)][:-1]), scale)",
    ),
    "the paper's index of the upper variance": (
        "sensitivity/output_bounds.py",
        "(spread + rank * rise for rank in range(1, ranks + 1))",
        "(spread + rank * rise for rank in range(ranks))",
    ),
    "a share in floats": (
        "mechanisms/hazard.py",
        "epsilon / (1 + TAIL if monotonic else 2 + TAIL)",
        "Fraction(float(epsilon) / (1 + TAIL if monotonic else 2 + TAIL))",
    ),
    "a hazard ratio rounded to nearest": (
        "mechanisms/_hazard_law.py",
        "if Decimal.from_float(ratio) < bound:",
        "if ratio < 0:",
    ),
    "a tie with the bits drawn so far": (
        "mechanisms/_hazard_law.py",
        "if u + 1 <= low:",
        "if u <= low:",
    ),
    "an output bound on a grid point": (
        "mechanisms/_grid.py",
        "values[ranks + 1 :] = _next_floats(output_bounds.upper)",
        "values[ranks + 1 :] = output_bounds.upper",
    ),
    "another share for the count": (
        "release/release.py",
        "COUNT_SHARE = Fraction(1, 20)",
        "COUNT_SHARE = Fraction(1, 10)",
    ),
    "a clipped sum that is rounded down": (
        "mechanisms/adaptive.py",
        "steps = (2 * fineness * total + most) // (2 * most)",
        "steps = fineness * total // most",
    ),
    "a clipping level too high": (
        "sensitivity/extremes.py",
        "number = min(level_from(at_least), LEVELS)",
        "number = min(level_from(at_least) + 1, LEVELS)",
    ),
    "a lattice without slack": (
        "mechanisms/geometric.py",
        "sensitivity = Fraction(output_bounds.sensitivity) + _rounding(low, high)",
        "sensitivity = Fraction(output_bounds.sensitivity)",
    ),
    "a mean whose spread is not paid for": (
        "mechanisms/geometric.py",
        "return Staircase(epsilon / (change + 1), 1)",
        "return Staircase(epsilon / change, 1)",
    ),
    "a spread without straight lines": (
        "sensitivity/noisy_sums.py",
        "total += (cap - low - high) * in_units(number, mantissas) + low * high * count",
        "total += (cap - low) * in_units(number, mantissas)",
    ),
    "counts with half of the noise": (
        "release/parts/count_table.py",
        "rate = epsilon if private_n else epsilon / 2",
        "rate = epsilon",
    ),
    "a Bernoulli trial with other odds": (
        "_random.py",
        "while _below(entropy, denominator * tries) < numerator:",
        "while _below(entropy, denominator * (tries + 1)) < numerator:",
    ),
    "an AUC with other classes than the best": (
        "sensitivity/ranking_bounds.py",
        "chosen = np.minimum(np.maximum(p - a, n // 2), p + b)",
        "chosen = np.minimum(np.maximum(p - a, n // 3), p + b)",
    ),
}
"""By name: a file of the package, a line of it, and what stands there instead."""


SMALL_QUERIES = """
from differential import compared, is_small, random_query
compared(number for number in range(400) if is_small(random_query(number)))
"""


@pytest.mark.slow
@pytest.mark.parametrize("name", BREAKS)
def test_a_broken_package_disagrees(name, tmp_path):
    file, line, broken = BREAKS[name]
    shutil.copytree(Path(dp_metrics.__file__).parent, tmp_path / "dp_metrics")
    path = tmp_path / "dp_metrics" / file
    text = path.read_text(encoding="utf-8")
    assert text.count(line) == 1
    path.write_text(text.replace(line, broken), encoding="utf-8")
    ran = subprocess.run(
        [sys.executable, "-c", SMALL_QUERIES],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), str(TESTS), str(TESTS.parent)])},
        cwd=tmp_path,  # which Python searches before all else
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 1
    assert "AssertionError: query" in ran.stderr, ran.stderr
    print(name, "|", ran.stderr.strip().splitlines()[-1])
