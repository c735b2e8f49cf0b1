"""A budget of epsilon that is never overspent, and whose epsilons all mean the same."""

import math
import os
from collections.abc import Set
from decimal import Decimal
from fractions import Fraction
from typing import Any

from dp_metrics.accounting.ledgers import FileLedger, Ledger, MemoryLedger, Spend
from dp_metrics.exceptions import PrivacyBudgetError
from dp_metrics.inputs.epsilon import check_epsilon, exact_epsilon

__all__ = ["PrivacyAccountant", "Spend"]


class PrivacyAccountant:
    """A total budget of epsilon from which every release is paid before it is drawn.

    Guarantee: the epsilons of all recorded spends are under one neighbouring relation, and never add up, in
    exact arithmetic, to more than `epsilon`.

    Parameters
    ----------
    epsilon : float, int, Fraction or Decimal
        The total budget, finite and > 0. A float stands for the decimal that is typed: ten times 0.1 is
        exactly 1. A Fraction or a Decimal stands for itself.
    path : str or os.PathLike, default=None
        A SQLite file on a local disk that holds the budget: created if it does not exist, continued if it
        does. All threads, processes and later runs that open it spend from one budget. In a container, mount
        the folder of the file, not the file (see Notes). None keeps the budget in this process: such an
        accountant cannot be pickled and refuses to spend in a forked child.

    Raises
    ------
    ValueError
        If epsilon is not a finite number > 0, or if the file was created with another total, has a second
        hard link, is damaged or holds something else.
    OSError
        If the file cannot be created, opened or written, or stays locked for a minute (`TimeoutError`).

    Notes
    -----
    A total of epsilon means that the probability of any outcome of all the releases together changes by at
    most a factor exp(epsilon) between neighbouring data sets. Pure epsilons simply add up (basic composition
    [1]_), also when later releases, and their epsilons, depend on earlier answers [2]_.

    That needs one neighbouring relation: the first spend chooses it, and a spend under another is refused.
    Releases under both "replace_one" and "add_or_remove_one" need an accountant each. It also needs the same
    records, which nobody can check for you.

    Spending is never undone, even if the release it paid for fails. Copies (`copy.copy`, `copy.deepcopy`,
    `sklearn.base.clone`) are the same object, because a copied budget could be spent twice. With `path`, a
    spend is on the disk before `spend` returns, so a process killed at any moment leaves no release
    unrecorded. Whoever can write or replace the file can reset the budget: protect it like the data.

    In use, and after a crash, the latest spends are in companions of the file, ``-wal`` and ``-shm``, which
    go by its name. So it must have one name. A symbolic link counts as the name of its target. A file with
    a second hard link is refused. A single file mounted into a container
    (``docker run -v /data/budget.sqlite:/budget.sqlite``) cannot be told from any other, but its companions
    stay in the container, and each container could spend the whole budget: mount the folder, not the file.

    References
    ----------
    .. [1] Dwork, McSherry, Nissim and Smith, "Calibrating Noise to Sensitivity in Private Data Analysis",
       2006, doi:10.1007/11681878_14; Dwork and Roth, 2014, Theorem 3.16, doi:10.1561/0400000042.
    .. [2] Rogers, Roth, Ullman and Vadhan, "Privacy Odometers and Filters: Pay-as-you-Go Composition", 2016,
       arXiv:1605.08294.

    Examples
    --------
    >>> from dp_metrics import PrivacyAccountant
    >>> accountant = PrivacyAccountant(1.0)
    >>> accountant.spend(0.9, "error of the first model")
    >>> accountant.remaining
    0.1
    >>> accountant.spend(0.2, "error of the second model")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    dp_metrics.exceptions.PrivacyBudgetError: epsilon=0.2 was asked for, but 0.9 of the total of 1.0...

    >>> accountant.spend(0.1, "its number too", neighboring="add_or_remove_one")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ValueError: neighboring='add_or_remove_one' was asked for, but this budget is kept under...

    A budget that other processes and later runs share:

    >>> import os, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     PrivacyAccountant(1.0, os.path.join(folder, "budget.sqlite")).spend(0.3, "error")
    ...     PrivacyAccountant(1.0, os.path.join(folder, "budget.sqlite")).spent
    0.3
    """

    def __init__(
        self, epsilon: float | Fraction | Decimal, path: str | os.PathLike[str] | None = None
    ) -> None:
        self._total = _exact(epsilon)
        self._ledger: Ledger = MemoryLedger() if path is None else FileLedger(self._total, path)

    def spend(
        self,
        epsilon: float | Fraction | Decimal,
        label: str,
        *,
        mechanism: str | None = None,
        neighboring: str = "replace_one",
    ) -> None:
        """Record a spend, durably and for good; call it before anything is drawn.

        Parameters
        ----------
        epsilon : float, int, Fraction or Decimal
            What the release costs, finite and > 0; a float stands for the decimal that is typed.
        label : str
            What is released. Public: never put data into it.
        mechanism : str, default=None
            The mechanism that will draw the release.
        neighboring : str, default="replace_one"
            The neighbouring relation under which the release is epsilon-differentially private: one for the
            whole budget.

        Raises
        ------
        PrivacyBudgetError
            If more is asked for than remains; nothing is recorded.
        ValueError, TypeError
            If an argument is invalid, if neighboring is not that of the spends before, or if the budget file
            was replaced, damaged or given a second hard link; nothing is recorded.
        OSError
            If the budget file is gone, cannot be written or stays locked for a minute (`TimeoutError`).
        RuntimeError
            If an accountant without `path` is used in a forked child.
        """
        asked = _exact(epsilon)
        drawn_by = "" if mechanism is None else mechanism
        for name, text in {"label": label, "mechanism": drawn_by, "neighboring": neighboring}.items():
            if not isinstance(text, str):
                raise TypeError(f"{name} must be a str.")

        def check(spent: Fraction, relations: Set[str]) -> None:
            _refuse_another_relation(neighboring, relations)
            _refuse_too_much(asked, spent, self._total)

        self._ledger.record(asked, label, mechanism, neighboring, check)

    def require(self, epsilon: float | Fraction | Decimal) -> None:
        """Raise unless that much is left; nothing is recorded or reserved.

        Parameters
        ----------
        epsilon : float, int, Fraction or Decimal
            The cost of a plan, finite and > 0. Multiply exactly: ``3 * Fraction("0.1")``, because
            ``3 * 0.1`` is a little more than 0.3.

        Raises
        ------
        PrivacyBudgetError
            If less than epsilon remains. Other errors are those of `spend`.
        """
        asked = _exact(epsilon)
        self._ledger.refuse_if_forked()
        _refuse_too_much(asked, self._ledger.spent(), self._total)

    @property
    def total(self) -> float:
        """The whole budget."""
        return float(self._total)

    @property
    def spent(self) -> float:
        """What is spent so far, rounded to the nearest float."""
        return float(self._ledger.spent())

    @property
    def remaining(self) -> float:
        """What is left, rounded down: ``spend(remaining)`` fits unless it is zero."""
        return _rounded_down(self._total - self._ledger.spent())

    @property
    def history(self) -> tuple[Spend, ...]:
        """Every spend, oldest first: time, label, epsilon, mechanism and neighbouring relation."""
        return self._ledger.history()

    @property
    def path(self) -> str | None:
        """The absolute path of the budget file, or None."""
        return self._ledger.path

    def __copy__(self) -> "PrivacyAccountant":
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> "PrivacyAccountant":
        return self

    def __sklearn_clone__(self) -> "PrivacyAccountant":
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpickled, (self._ledger,)

    def __repr__(self) -> str:
        return f"PrivacyAccountant(epsilon={self.total!r}, path={self.path!r})"


def _unpickled(ledger: FileLedger) -> PrivacyAccountant:
    accountant = object.__new__(PrivacyAccountant)
    accountant._total = ledger.total
    accountant._ledger = ledger
    return accountant


def _exact(epsilon: Any) -> Fraction:
    if isinstance(epsilon, Decimal):
        check_epsilon(float(epsilon) if epsilon.is_finite() else math.nan)
        return Fraction(epsilon)
    return exact_epsilon(epsilon)


def _rounded_down(exact: Fraction) -> float:
    value = float(exact)
    while Fraction(repr(value)) > exact:
        value = math.nextafter(value, 0.0)
    return value


def _refuse_too_much(asked: Fraction, spent: Fraction, total: Fraction) -> None:
    if spent + asked > total:
        raise PrivacyBudgetError(
            f"epsilon={float(asked)!r} was asked for, but {float(spent)!r} of the total of {float(total)!r} "
            f"is spent and only {_rounded_down(total - spent)!r} remains."
        )


def _refuse_another_relation(asked: str, kept: Set[str]) -> None:
    if not kept <= {asked}:
        raise ValueError(
            f"neighboring={asked!r} was asked for, but this budget is kept under "
            f"neighboring={' and '.join(sorted(map(repr, kept)))}, and epsilons under different neighbouring "
            "relations don't add up; use another PrivacyAccountant for it."
        )
