"""The exact law of a private selection on toy problems."""

import functools
import itertools
import math
from fractions import Fraction

import numpy as np
from helpers import Words, loss_bounds

from dp_metrics._random import geometric
from dp_metrics.mechanisms import Hazard
from dp_metrics.model_selection import _trials
from dp_metrics.model_selection._trials import best_of_geometric

EPSILON = 0.5
CLAIM = 3 * EPSILON
BINS = 30


def log_ratio(p, q):
    """Return the privacy loss between two laws on the same outcomes."""
    possible = (p > 0) | (q > 0)
    with np.errstate(divide="ignore"):
        return float(np.abs(np.log(p[possible]) - np.log(q[possible])).max())


# Laws of one trial. A toy is a pair of arrays of shape (candidates, scores), worst score first: the law of
# each candidate's score on two neighbouring validation sets.


@functools.cache
def hazard_law(*losses):
    """Return the exact law of a negated private mean loss, on 30 bins of its grid; losses are ascending."""
    law = Hazard(resolution=0.5).output_distribution(loss_bounds(losses, cap=1.0), EPSILON)
    ends = np.linspace(law.grid.first, law.grid.last, BINS + 1).astype(int)[1:]
    return np.diff(law.index_cdf(ends), prepend=0.0)[::-1]


def hazard_toys():
    """Yield candidates whose losses on a record of kind 0 or 1 are 0 or 1, on all pairs of 1 to 3 records."""
    kinds = [(0.0, 0.0), (0.0, 1.0), (1.0, 0.0), (1.0, 1.0)]
    for candidates in itertools.combinations_with_replacement(kinds, 3):
        for n in (1, 2, 3):
            for others in itertools.combinations_with_replacement([0, 1], n - 1):
                yield tuple(
                    np.array(
                        [hazard_law(*sorted(losses[r] for r in (*others, record))) for losses in candidates]
                    )
                    for record in (0, 1)
                )


def extreme_toy(candidates):
    """Return candidates that all score low or high, with probabilities as different as epsilon allows."""
    low = 1.0 / (1.0 + math.exp(EPSILON))
    law = np.tile([low, 1.0 - low], (candidates, 1))
    return law, law[:, ::-1]


def tight_toy():
    """Return the toy on which the three factors of the bound are extreme together."""
    rare, high, e = 1e-9, 1e-3, math.exp(EPSILON)
    one = [1.0 - rare - high, rare, high]
    other = [1.0 - rare * e - high / e, rare * e, high / e]
    return np.array([one]), np.array([other])


TOYS = [*hazard_toys(), *map(extreme_toy, range(1, 7)), tight_toy()]


# Laws of selections, of shape (candidates, scores) or more


def law_of_best(p, success):
    """Return the law that the package claims, from its closed form."""
    q = p / len(p)
    at_least = np.append(np.cumsum(q.sum(axis=0)[::-1])[::-1], 0.0)  # no cancellation: 1 - F is its own sum
    factor = success + (1 - success) * at_least
    return success * q / (factor[:-1] * factor[1:])


def law_with_count_shown(p, success, length):
    """Return the law of (J, candidate, score)."""
    q = p / len(p)
    up_to = np.cumsum(q.sum(axis=0))
    below = np.append(0.0, up_to[:-1])
    return np.array(
        [
            success
            * (1 - success) ** (j - 1)
            * sum(below ** (i - 1) * q * up_to ** (j - i) for i in range(1, j + 1))
            for j in range(1, length + 1)
        ]
    )


def test_the_best_of_a_geometric_number_costs_three_epsilon_of_a_trial_and_no_less():
    for p, q in TOYS:
        np.testing.assert_allclose([p.sum(axis=1), q.sum(axis=1)], 1.0)
        assert log_ratio(p, q) <= EPSILON * (1 + 1e-9)
        for success in (1.0, 0.5, 0.05, 1e-3, 1e-9):
            laws = law_of_best(p, success), law_of_best(q, success)
            np.testing.assert_allclose([law.sum() for law in laws], 1.0)
            assert log_ratio(*laws) <= CLAIM * (1 + 1e-9)
    p, q = tight_toy()
    assert log_ratio(law_of_best(p, 1e-9), law_of_best(q, 1e-9)) > 0.999 * CLAIM


# The code has that law


def law_of_the_code(p, count, monkeypatch):
    """Return the law of the code if J is `count`, by running it on every sequence of trials."""
    monkeypatch.setattr(_trials, "geometric", lambda entropy, success: count)
    q = p / len(p)
    outcomes = [(score, candidate) for candidate in range(len(p)) for score in range(p.shape[1])]
    law = np.zeros_like(p)
    for sequence in itertools.product(outcomes, repeat=count):
        score, candidate = best_of_geometric(iter(sequence).__next__, Fraction(1, 2), None)
        law[candidate, score] += math.prod(q[c, s] for s, c in sequence)
    return law


def test_the_code_has_the_law_of_the_proof(monkeypatch):
    p = np.array([[0.5, 0.3, 0.2], [0.1, 0.2, 0.7]])
    success = 0.3
    total = np.zeros_like(p)
    by_count = law_with_count_shown(p, success, 200)
    for count in range(1, 6):
        law = law_of_the_code(p, count, monkeypatch) * success * (1 - success) ** (count - 1)
        np.testing.assert_allclose(law, by_count[count - 1])
        total += law
    np.testing.assert_allclose(by_count.sum(axis=0), law_of_best(p, success))
    assert (total < law_of_best(p, success)).all()


# The number of trials


def test_the_geometric_draw_compares_integers():
    # a uniform integer below 3 is made of the two highest bits of a word; 3 is thrown away, 0 is success
    for bits, success, count in (
        ([0], "1/3", 1), ([1, 2, 3, 0], "1/3", 3), ([1, 2], "2/3", 1), ([2, 1], "2/3", 2), ([], 1, 1)
    ):  # fmt: skip
        assert geometric(Words([word << 62 for word in bits]), Fraction(success)) == count
