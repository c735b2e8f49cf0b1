"""The only source of randomness in the package.

Every random number is made from 64-bit words. By default they come from the operating system's
generator, asked anew for every draw: there is no state, so nothing can be predicted from earlier
outputs and a forked worker cannot repeat its parent's noise. A seed gives reproducible numbers,
which are by the same token not private; asking for one warns. Simulations of what has been released
already protect nobody: `made_up` has a seed.
"""

import math
import os
import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from decimal import MAX_EMAX, MIN_EMIN, ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dp_metrics.exceptions import SeededReleaseWarning, warn_caller

RandomState: TypeAlias = "int | np.integer | np.random.RandomState | np.random.Generator | Entropy | None"

Generator: TypeAlias = np.random.Generator
"""What draws numbers about nobody; see `made_up`."""

_FEW_CELLS = 8
_FEW = 24  # arrays of fewer integers cost more than they save
_LARGEST_TERM = 1 << 55  # 64 bits suffice for rates with denominators up to this
_MOST_WHOLE = 127
_AT_ONCE = 1 << 16  # so many long integers take a few megabytes


class Entropy:
    """A stream of independent uniform 64-bit words, from the operating system's cryptographic generator."""

    def words(self, size: int) -> NDArray[np.uint64]:
        """Return `size` fresh words."""
        return np.frombuffer(os.urandom(8 * size), dtype=np.uint64)


class SeededEntropy(Entropy):
    """Words from a seeded NumPy generator instead: reproducible, hence not private."""

    def __init__(self, seed: "int | np.integer | np.random.RandomState | np.random.Generator"):
        # a Generator stays what it is
        self._integers = (
            seed.randint if isinstance(seed, np.random.RandomState) else np.random.default_rng(seed).integers
        )

    def words(self, size: int) -> NDArray[np.uint64]:
        """Return the next `size` words of the seeded stream."""
        return self._integers(0, 2**64, size=size, dtype=np.uint64)


def check_entropy(random_state: RandomState) -> Entropy:
    """Turn a `random_state` into a source of words.

    Parameters
    ----------
    random_state : None, int, RandomState, Generator or Entropy
        None means the operating system's generator. An `Entropy` is returned as it is, without a
        second warning.

    Raises
    ------
    TypeError
        For anything else, among them a bool: true is no seed.
    ValueError
        For a negative int.

    Warns
    -----
    SeededReleaseWarning
        If the numbers will be reproducible.
    """
    if random_state is None:
        return Entropy()
    if isinstance(random_state, Entropy):
        return random_state
    kinds = int | np.integer | np.random.RandomState | np.random.Generator
    if isinstance(random_state, bool) or not isinstance(random_state, kinds):
        raise TypeError("random_state must be None, an int, a numpy RandomState or a numpy Generator.")
    if isinstance(random_state, int | np.integer) and random_state < 0:
        raise ValueError("random_state must be a non-negative integer.")
    warn_caller(
        "random_state was given: the release is reproducible and therefore not private. "
        "Use it for tests and studies only.",
        SeededReleaseWarning,
    )
    return SeededEntropy(random_state)


class LazyUniform:
    """A uniform number in [0, 1) whose bits are drawn when they are asked for.

    Parameters
    ----------
    entropy : Entropy
        Source of the bits.
    """

    def __init__(self, entropy: Entropy) -> None:
        self._entropy = entropy
        self._value = self._bits = 0

    def prefix(self, bits: int) -> int:
        """Return the first `bits` bits as an integer; the same ones however often it is called."""
        while self._bits < bits:
            self._value = (self._value << 64) | int(self._entropy.words(1)[0])
            self._bits += 64
        return self._value >> (self._bits - bits)


def discrete_laplace(entropy: Entropy, rate: Fraction) -> int:
    """Draw an integer k with probability proportional to exp(-rate |k|), exactly.

    Parameters
    ----------
    entropy : Entropy
        Source of the bits.
    rate : Fraction
        A positive rational number, s / t.

    Notes
    -----
    Algorithm 2 of Canonne, Kamath and Steinke, "The Discrete Gaussian for Differential Privacy",
    arXiv:2004.00010: only integers and fair bits, no float anywhere. With k = floor((u + t v) / s), the
    remainder u < t is kept with probability exp(-u/t), and v counts successes of probability exp(-1).
    """
    while True:
        size = _geometric_size(entropy, rate)
        if _below(entropy, 2):
            return size
        if size > 0:  # zero would count twice otherwise
            return -size


def _geometric_size(entropy: Entropy, rate: Fraction) -> int:
    """Draw a number that is at least k with probability exp(-rate k), for k = 0, 1, ..."""
    s, t = rate.numerator, rate.denominator
    while True:
        u = _below(entropy, t)
        if not _bernoulli_exp(entropy, u, t):
            continue
        v = 0
        while _bernoulli_exp(entropy, 1, 1):
            v += 1
        return (u + t * v) // s


def staircase(entropy: Entropy, epsilon: Fraction, steps: int, half: int) -> int:
    """Draw an integer k with probability proportional to exp(-epsilon floor((|k| + steps - half) / steps)).

    Parameters
    ----------
    entropy : Entropy
        Source of the bits.
    epsilon : Fraction
        A positive rational number.
    steps : int
        The width of a stair, at least 1.
    half : int
        From 1 to `steps`: the middle stair reaches from 1 - half to half - 1.

    Notes
    -----
    The middle stair has m = 2 * half - 1 places, each of weight 1. All later stairs, on both sides, have
    2 * steps / (e^epsilon - 1) together, and the numbers of stairs on the way are geometric. A uniform number
    tells the middle stair from the later ones. Its bits are drawn until rational bounds of e^epsilon decide,
    so the choice is exact, and so is all else: integers and fair bits.
    """
    middle = 2 * half - 1
    if not _is_later(entropy, epsilon, middle, 2 * steps):
        return _below(entropy, middle) - (half - 1)
    stair, place = _geometric_size(entropy, epsilon), _below(entropy, 2 * steps)
    size = half + stair * steps + place % steps
    return size if place < steps else -size


def _is_later(entropy: Entropy, epsilon: Fraction, middle: int, stair: int) -> bool:
    """Return True with probability stair / (stair + middle (e^epsilon - 1)), exactly."""
    uniform, bits = LazyUniform(entropy), 64
    while True:
        # of a huge power a lower bound is enough
        lower, upper = exp_bounds(min(epsilon, Fraction(bits)), 10 + bits // 3)
        first, limit = uniform.prefix(bits), stair << bits
        if first * _weight(stair, middle, lower) >= limit * lower.denominator:
            return False
        if epsilon <= bits and (first + 1) * _weight(stair, middle, upper) <= limit * upper.denominator:
            return True
        bits *= 2


def _weight(stair: int, middle: int, power: Fraction) -> int:
    """Return (stair + middle (power - 1)) times the denominator of the power."""
    return stair * power.denominator + middle * (power.numerator - power.denominator)


@lru_cache(maxsize=256)
def exp_bounds(exponent: Fraction, digits: int) -> tuple[Fraction, Fraction]:
    """Return rational numbers around e^exponent, for a positive exponent, that are closer with more digits.

    `Decimal.exp` is correctly rounded, to the nearest, so the decimals before and after its result are
    bounds.
    """
    down = Context(prec=digits, rounding=ROUND_FLOOR, Emax=MAX_EMAX, Emin=MIN_EMIN, traps=[])
    up = Context(prec=digits, rounding=ROUND_CEILING, Emax=MAX_EMAX, Emin=MIN_EMIN, traps=[])
    ends = Decimal(exponent.numerator), Decimal(exponent.denominator)
    lower, upper = down.exp(down.divide(*ends)), up.exp(up.divide(*ends))
    return Fraction(down.next_minus(lower)), Fraction(up.next_plus(upper))


def is_chosen(entropy: Entropy, probability: Fraction) -> bool:
    """Return True with this probability, exactly: a coin whose probability is public."""
    return _below(entropy, probability.denominator) < probability.numerator


def discrete_laplaces(entropy: Entropy, rate: Fraction, size: int) -> list[int]:
    """Draw independent integers, each as `discrete_laplace` does, and as exactly.

    Parameters
    ----------
    entropy : Entropy
        Source of the bits.
    rate : Fraction
        A positive rational number.
    size : int
        How many.

    Notes
    -----
    Many at once take the same algorithm on arrays of 64-bit integers, or of Python's where the rate has many
    digits. Only a few integers are drawn one after the other.
    """
    if size < _FEW:
        return [discrete_laplace(entropy, rate) for _ in range(size)]
    most = size if rate.denominator <= _LARGEST_TERM else _AT_ONCE
    drawn: list[int] = []
    while len(drawn) < size:
        sizes = _laplace_sizes(entropy, rate, min(size - len(drawn), most))
        negative = _belows(entropy, 2, len(sizes)).tolist()
        # a negative zero is drawn again, else zero would count twice
        drawn += [-k if minus else k for k, minus in zip(sizes, negative, strict=True) if k or not minus]
    return drawn


def _laplace_sizes(entropy: Entropy, rate: Fraction, most: int) -> list[int]:
    """Return at most this number of sizes of integers, whose sign is still to be drawn."""
    s, t = rate.numerator, rate.denominator
    u = _belows(entropy, t, most)
    u = u[_are_exp(entropy, u, t)]
    v = _whole_parts(entropy, u.size)
    # 64 bits would overflow; if not because of the rate, with a probability of exp(-128)
    if t > _LARGEST_TERM or v.max(initial=0) > _MOST_WHOLE:
        return [(a + t * b) // s for a, b in zip(u.tolist(), v.tolist(), strict=True)]
    # the dividend is below 2^63, so that any larger divisor gives 0 as well
    sizes: list[int] = ((u + np.uint64(t) * v) // np.uint64(min(s, 1 << 63))).tolist()
    return sizes


def _whole_parts(entropy: Entropy, size: int) -> NDArray[np.uint64]:
    """Return how often draws of probability exp(-1) succeed before the first that fails."""
    v = np.zeros(size, dtype=np.uint64)
    running = np.arange(size)
    while running.size:
        running = running[_are_exp(entropy, np.ones(running.size, dtype=np.uint64), 1)]
        v[running] += 1
    return v


def zero_sum_laplaces(entropy: Entropy, rate: Fraction, size: int) -> list[int]:
    """Draw integers with sum 0 and probability proportional to exp(-rate (|z_1| + |z_2| + ...)), exactly.

    Parameters
    ----------
    entropy : Entropy
        Source of the bits.
    rate : Fraction
        A positive rational number.
    size : int
        How many, at least 2.

    Notes
    -----
    All but the last are drawn independently, and kept with probability exp(-rate |their sum|): the last is
    minus their sum. The number of tries, about 1.8 sqrt(size), does not depend on any data.
    """
    tries = math.isqrt(4 * size) if size > _FEW_CELLS else 1  # several at once save time, whatever is drawn
    while True:
        drawn = discrete_laplaces(entropy, rate, tries * (size - 1))
        for start in range(0, len(drawn), size - 1):
            kept = drawn[start : start + size - 1]
            last = -sum(kept)
            if _is_exp(entropy, abs(last) * rate.numerator, rate.denominator):
                return [*kept, last]


def permute_and_flip(entropy: Entropy, exponents: Sequence[Fraction]) -> int:
    """Draw the place of one of several numbers, the smaller the number the likelier, exactly.

    Parameters
    ----------
    entropy : Entropy
        Source of the bits.
    exponents : sequence of Fraction
        Numbers x_i of at least 0, one of which is 0.

    Notes
    -----
    Places are visited in random order until the coin of one shows heads, which has probability exp(-x_i):
    McKenna and Sheldon, "Permute-and-Flip", arXiv:2010.12603. A place with 0 ends the search. The law of
    place i is the integral of exp(-x_i) prod_(j != i) (1 - t exp(-x_j)) over t from 0 to 1.
    """
    left = list(range(len(exponents)))
    while True:
        place = left.pop(_below(entropy, len(left)))
        if _is_exp(entropy, exponents[place].numerator, exponents[place].denominator):
            return place


def geometric(entropy: Entropy, success: Fraction) -> int:
    """Draw the number of independent trials up to the first success, exactly.

    Parameters
    ----------
    entropy : Entropy
        Source of the bits.
    success : Fraction
        Probability p of a success, in (0, 1].

    Returns
    -------
    int
        j = 1, 2, ... with probability p (1 - p)^(j-1).
    """
    trials = 1
    while not is_chosen(entropy, success):
        trials += 1
    return trials


def _bernoulli_exp(entropy: Entropy, numerator: int, denominator: int) -> bool:
    """Return True with probability exp(-numerator / denominator), for a quotient of at most 1.

    The number of successes with probabilities x, x/2, x/3, ... before the first failure is even with
    probability exp(-x).
    """
    tries = 1
    while _below(entropy, denominator * tries) < numerator:
        tries += 1
    return tries % 2 == 1


def _is_exp(entropy: Entropy, numerator: int, denominator: int) -> bool:
    """Return True with probability exp(-numerator / denominator), for any quotient of at least 0."""
    whole, rest = divmod(numerator, denominator)
    ones = all(_bernoulli_exp(entropy, 1, 1) for _ in range(whole))
    return ones and _bernoulli_exp(entropy, rest, denominator)


def _below(entropy: Entropy, limit: int) -> int:
    """Return a uniform integer in [0, limit)."""
    bits = (limit - 1).bit_length()
    words = -(-bits // 64)
    while True:
        value = 0
        for word in entropy.words(words).tolist() if words else ():
            value = (value << 64) | word
        value >>= 64 * words - bits
        if value < limit:
            return value


def _are_exp(entropy: Entropy, numerators: NDArray[Any], denominator: int) -> NDArray[np.bool_]:
    """Return for each numerator what `_bernoulli_exp` does.

    A success has probability x / tries = (1 / tries) x: two draws, so that no product grows.
    """
    tries = np.ones(numerators.size, dtype=np.uint64)
    running, number = np.arange(numerators.size), 1
    while running.size:
        running = running[_belows(entropy, number, running.size) == 0]
        running = running[_belows(entropy, denominator, running.size) < numerators[running]]
        tries[running] += np.uint64(1)
        number += 1
    odd: NDArray[np.bool_] = tries % 2 == 1
    return odd


def _belows(entropy: Entropy, limit: int, size: int) -> NDArray[Any]:
    """Return uniform integers in [0, limit): of 64 bits for a limit of at most 2^63, of Python's above."""
    bits = (limit - 1).bit_length()
    words = -(-bits // 64)
    values = np.zeros(size, dtype=np.uint64 if bits < 64 else object)
    missing = np.arange(size if bits else 0)
    while missing.size:
        drawn = entropy.words(words * missing.size)
        if bits > 63:  # each integer is made of several words
            drawn = np.array([*map(int.from_bytes, drawn.view(f"V{8 * words}").tolist())], dtype=object)
        values[missing] = drawn >> (64 * words - bits)
        missing = missing[values[missing] >= limit]
    return values


def uniforms(entropy: Entropy, size: int) -> NDArray[np.float64]:
    """Draw uniform numbers in (0, 1): of a 64-bit word, w, is made (w + 1/2) / 2^64."""
    # 2^64 - 1 would round up to exactly 1: keep the largest value one float below it.
    return np.minimum((entropy.words(size).astype(np.float64) + 0.5) * 2.0**-64, 1.0 - 2.0**-53)


def made_up(seed: int = 0) -> Generator:
    """Return a seeded NumPy generator for simulations of public and released numbers; never for a release."""
    return np.random.default_rng(seed)


def fresh_random_state() -> np.random.RandomState:
    """Return a NumPy generator for scikit-learn, seeded with 256 bits of the operating system."""
    return np.random.RandomState(Entropy().words(4).view(np.uint32))


def reseed_global_generators() -> None:
    """Seed NumPy's and Python's global generators from the operating system.

    What an estimator draws from them then depends neither on a seed that the user set nor on what was drawn
    before.
    """
    np.random.seed(Entropy().words(4).view(np.uint32))  # noqa: NPY002
    random.seed(Entropy().words(4).tobytes())


@contextmanager
def preserved_global_generators() -> Iterator[None]:
    """Put NumPy's and Python's global generators back afterwards: no later draw tells what was drawn here."""
    numpy_state, python_state = np.random.get_state(), random.getstate()  # noqa: NPY002
    try:
        yield
    finally:
        np.random.set_state(numpy_state)  # noqa: NPY002
        random.setstate(python_state)
