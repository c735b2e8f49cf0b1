"""What each record of a person weighs where every person counts once: whole units, with one public sum."""

import math
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

_MOST_UNITS = 1 << 20


def person_units(sizes: Iterable[int]) -> tuple[int, list[NDArray[np.int64]]]:
    """Return the units of a person, and for each person the units of its records, in their order.

    Parameters
    ----------
    sizes : iterable of int
        The public numbers of records of all persons, each at least 1.

    Notes
    -----
    The sum is the least common multiple of the sizes, so that the records of a person weigh the same; from
    2^20 on it is 2^20, and some records of a person weigh one unit more than others.
    """
    known, total = [int(size) for size in sizes], 1
    for size in sorted(set(known)):
        total = math.lcm(total, size)
        if total > _MOST_UNITS:
            total = _MOST_UNITS
            break
    return total, [total // size + (np.arange(size) < total % size).astype(np.int64) for size in known]


def unit_rate(epsilon: float, units: int, *, with_products: bool = False) -> float:
    """Return the rate of the noise of each unit in a table in which persons have this many units.

    Notes
    -----
    If a person is replaced, its units move from some cells to others: the sum of the absolute changes is 2
    `units` at most, and noise of rate epsilon / (2 units) is epsilon-differentially private. It may have the
    sum 0, as the number of units is public. With products see `product_rate`.
    """
    return epsilon / ((2.25 if with_products else 2) * units)


def product_rate(epsilon: float, units: int) -> float:
    """Return the rate of the noise of sums over persons of products A B, A C and B C of their units.

    A and B are those of one ratio A / (A + B), and C all others: one partition of the units of a person.

    Notes
    -----
    With x, y and z the parts of a person's units in A, B and C, abs(dx) + abs(dy) + abs(dz) + abs(d xy) +
    abs(d xz) + abs(d yz) is at most 2.25 when a person is replaced, as from (1, 0, 0) to (0, 1/2, 1/2). That
    holds for three cells: the six products of four may move by .5 and more.
    """
    return epsilon / (2.25 * units**2)
