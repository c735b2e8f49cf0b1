"""The only source of randomness in the package.

Every random number is made from 64-bit words. By default they come from the operating system's
generator, asked anew for every draw: there is no state, so nothing can be predicted from earlier
outputs and a forked worker cannot repeat its parent's noise. A seed gives reproducible numbers,
which are by the same token not private; asking for one warns.
"""

import os
import warnings
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dp_metrics.exceptions import SeededReleaseWarning

__all__ = ["Entropy", "LazyUniform", "OSEntropy", "RandomState", "SeededEntropy", "check_entropy", "uniforms"]

RandomState: TypeAlias = "int | np.integer | np.random.RandomState | np.random.Generator | Entropy | None"


class Entropy(Protocol):
    """A stream of independent uniform 64-bit words."""

    def words(self, size: int) -> NDArray[np.uint64]:
        """Return the next `size` words."""
        ...


class OSEntropy:
    """Words from the operating system's cryptographic generator."""

    def words(self, size: int) -> NDArray[np.uint64]:
        """Return `size` fresh words."""
        return np.frombuffer(os.urandom(8 * size), dtype=np.uint64)


class SeededEntropy:
    """Words from a seeded NumPy generator: reproducible, hence not private."""

    def __init__(self, seed: "int | np.integer | np.random.RandomState | np.random.Generator"):
        if isinstance(seed, np.random.RandomState | np.random.Generator):
            self._generator = seed
        else:
            self._generator = np.random.default_rng(seed)

    def words(self, size: int) -> NDArray[np.uint64]:
        """Return the next `size` words of the seeded stream."""
        if isinstance(self._generator, np.random.Generator):
            return self._generator.integers(0, 2**64, size=size, dtype=np.uint64)
        return self._generator.randint(0, 2**64, size=size, dtype=np.uint64)


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
        For anything else.

    Warns
    -----
    SeededReleaseWarning
        If the numbers will be reproducible.
    """
    if random_state is None:
        return OSEntropy()
    if isinstance(random_state, int | np.integer | np.random.RandomState | np.random.Generator):
        if isinstance(random_state, int | np.integer) and random_state < 0:
            raise ValueError("random_state must be a non-negative integer.")
        warnings.warn(
            "random_state was given: the release is reproducible and therefore not private. "
            "Use it for tests and studies only.",
            SeededReleaseWarning,
            stacklevel=4,
        )
        return SeededEntropy(random_state)
    if hasattr(random_state, "words"):
        return random_state
    raise TypeError("random_state must be None, an int, a numpy RandomState or a numpy Generator.")


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


def uniforms(entropy: Entropy, size: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Draw uniform numbers u in (0, 1), and 1 - u to the same relative precision.

    Both come from one 64-bit word, w, as (w + 1/2) / 2^64 and (2^64 - 1 - w + 1/2) / 2^64, so that
    neither tail is cut off at the spacing of floats near 1, and neither is ever 0.

    Returns
    -------
    u, one_minus_u : ndarray of shape (size,)
    """
    words = entropy.words(size)
    return _unit(words), _unit(~words)


def _unit(words: NDArray[np.uint64]) -> NDArray[np.float64]:
    # 2^64 - 1 would round up to exactly 1: keep the largest value one float below it.
    return np.minimum((words.astype(np.float64) + 0.5) * 2.0**-64, 1.0 - 2.0**-53)
