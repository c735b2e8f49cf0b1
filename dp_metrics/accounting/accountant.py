"""A budget of epsilon that is never overspent, and whose epsilons all mean the same."""

import os
import sys
from contextlib import suppress
from dataclasses import fields
from decimal import Decimal
from fractions import Fraction
from typing import Any

from dp_metrics.accounting.ledgers import Claim, Ledger, Spend, StoredResult, StoredResults, name_used
from dp_metrics.exceptions import module_of, warn_caller
from dp_metrics.inputs.options import check_flag, did_you_mean, exact_epsilon, rounded_down


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
        accountant cannot be pickled and refuses to spend in a forked child; made again, as in a notebook cell
        that is run twice, it is a new budget, which knows of no spend before.
    reuse : bool, default=True
        Whether a release that another session asks for again under its `spend_name` is the stored one, at no
        cost, with a warning. False: it is refused. See Notes.

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
    Releases under both "replace_one" and "add_or_remove_one" need an accountant each. One relation is part of
    another: whatever protects a record that is replaced by any other, "replace_one", protects one that is
    replaced by another of its public groups, "replace_one_within_groups". So a budget whose first spend is
    under the latter, the weaker promise, takes both. One that has promised the former is never weakened
    afterwards. It also needs the same records, which nobody can check for you: people of whom nobody is
    among the others need a budget of their own, which costs these nothing.

    Spending is never undone, even if the release it paid for fails. Copies (`copy.copy`, `copy.deepcopy`,
    `sklearn.base.clone`) are the same object, because a copied budget could be spent twice. With `path`, a
    spend is on the disk before `spend` returns, so a process killed at any moment leaves no release
    unrecorded. Whoever can write or replace the file can reset the budget: protect it like the data. What a
    process has seen of the file it does not forget: an older copy in its place is refused, until it ends.

    **A name is bought once.** With `path`, what was released is stored with its spend: `results` lists it,
    and ``budget[spend_name]`` returns it. In a later session the same public question under the same
    `spend_name` has the stored answer: no record is read, nothing is spent or drawn. So the answer is about
    the records and predictions of its day, and new ones need a new name. The question is the metric with its
    options, epsilon and relation, and what is public of the records: their number, weights, which of them are
    of one person (not who), groups of public membership; under "add_or_remove_one" none of this. Another
    question under the name is a ValueError. This is post-processing: what is returned follows from public
    arguments and from what was released before, whatever the private records are now.

    A session begins when a process first opens the file; pickled copies and forks belong to it, also a copy
    that is kept on a disk: after a restart open the file instead, or its names count as used. Within a
    session a name is used once, so that no two folds, or rounds of a loop, have one number: again it is
    refused. Releases without a `spend_name` or with a `random_state` are never used again. Scorers number
    their names, and are never served. A worker that opens the file itself has a session of its own.

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

    _is_numbering = False

    def __init__(
        self,
        epsilon: float | Fraction | Decimal,
        path: str | os.PathLike[str] | None = None,
        *,
        reuse: bool = True,
    ) -> None:
        total = exact_epsilon(epsilon)
        self.reuse = check_flag(reuse, "reuse")
        if path is None:
            _warn_of_reruns()
        self._ledger = Ledger(total, path)

    def spend(
        self,
        epsilon: float | Fraction | Decimal,
        spend_name: str,
        *,
        mechanism: str | None = None,
        neighboring: str = "replace_one",
        claim: Claim | None = None,
    ) -> None:
        """Record a spend, durably and for good; call it before anything is drawn.

        Parameters
        ----------
        epsilon : float, int, Fraction or Decimal
            What the release costs, finite and > 0; a float stands for the decimal that is typed.
        spend_name : str
            What is released. Public: never put data into it.
        mechanism : str, default=None
            The mechanism that will draw the release.
        neighboring : str, default="replace_one"
            The neighbouring relation under which the release is epsilon-differentially private: one for the
            whole budget, but for the pair in the Notes of the class.
        claim : Claim or None, default=None
            What the spend buys, as the releases of this package say; leave it out.

        Raises
        ------
        PrivacyBudgetError
            If more is asked for than remains; nothing is recorded. Within `sklearn.model_selection` it is
            `dp_metrics.exceptions.SearchInterrupt`, which is no `Exception`.
        ValueError, TypeError
            If an argument is invalid, if neighboring is not that of the spends before, or if the budget file
            was replaced, damaged or given a second hard link; nothing is recorded.
        OSError
            If the budget file is gone, cannot be written or stays locked for a minute (`TimeoutError`).
        RuntimeError
            If an accountant without `path` is used in a forked child.
        """
        asked = exact_epsilon(epsilon)
        drawn_by = "" if mechanism is None else mechanism
        texts = {"spend_name": spend_name, "mechanism": drawn_by, "neighboring": neighboring}
        for name, text in texts.items():
            if not isinstance(text, str):
                raise TypeError(f"{name} must be a str.")
        self._ledger.record(asked, spend_name, mechanism, neighboring, claim, is_numbering=self._is_numbering)

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
        self._ledger.require(exact_epsilon(epsilon))

    def results(self) -> StoredResults:
        """Return all that was bought, oldest first; looking costs nothing.

        Returns
        -------
        sequence of StoredResult
            Name, time, epsilon and value of each spend, of what is no number a short form; its `result` is
            the whole release, as `budget[name]` returns it. With ``to_frame()``. A spend without a value was
            made by hand or by an earlier version, or its process ended before the value was stored, or the
            budget has no path: it counts all the same.

        Examples
        --------
        >>> import os, tempfile
        >>> from dp_metrics import PrivacyAccountant, private_mae
        >>> budget = PrivacyAccountant(1.0, os.path.join(tempfile.mkdtemp(), "budget.sqlite"))
        >>> number = private_mae(
        ...     [3.0, 5.0] * 500, [2.5, 5.0] * 500, epsilon=0.5, accountant=budget, spend_name="mae, week 47"
        ... )
        >>> [(one.spend_name, one.epsilon, one.value == number) for one in budget.results()]
        [('mae, week 47', 0.5, True)]
        >>> budget["mae, week 47"].value == number
        True
        """
        return self._ledger.kept()

    def __getitem__(self, spend_name: str) -> Any:
        """Return the release of the name that was given as its `spend_name`; it costs nothing.

        Parameters
        ----------
        spend_name : str
            The name.

        Returns
        -------
        Result, PrivateMetricFrame, Comparison, Interval, ReleasedConfusion or ReleasedScores
            What it was, with all of its methods; of a metric its `Result`.

        Raises
        ------
        KeyError
            If no release was given this name.
        ValueError
            If several spends have it, no value was stored, or what is stored is damaged.
        """
        if not isinstance(spend_name, str):
            raise TypeError("The name of a release is a string: results() lists all.")
        kept = self._ledger.found(spend_name)
        if kept is None:
            meant = did_you_mean(spend_name, [one.spend_name for one in self.results() if one.is_named])
            raise KeyError(f"No release was given the name {spend_name!r}; results() lists all.{meant}")
        return kept.result

    def __contains__(self, spend_name: object) -> bool:
        return any(one.is_named and one.spend_name == spend_name for one in self.results())

    __iter__ = None  # a budget is no sequence, whose items Python would ask for by number

    @property
    def total(self) -> float:
        """The whole budget."""
        return float(self._ledger.total)

    @property
    def spent(self) -> float:
        """What is spent so far, rounded to the nearest float."""
        return float(self._ledger.spent())

    @property
    def remaining(self) -> float:
        """What is left, rounded down: ``spend(remaining)`` fits unless it is zero."""
        return rounded_down(self._ledger.total - self._ledger.spent())

    @property
    def history(self) -> tuple[Spend, ...]:
        """Every spend, oldest first: time, name, epsilon, mechanism and neighbouring relation.

        ``pandas.DataFrame(accountant.history)`` has a column for each.
        """
        names = [one.name for one in fields(Spend)]
        return tuple(Spend(*[getattr(one, name) for name in names]) for one in self._ledger.kept())

    @property
    def path(self) -> str | None:
        """The absolute path of the budget file, or None."""
        return self._ledger.path

    def __copy__(self) -> "PrivacyAccountant":
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> "PrivacyAccountant":
        return self

    __sklearn_clone__ = __copy__

    def __repr__(self) -> str:
        place = "no path: made again, it begins anew" if self.path is None else f"path={self.path!r}"
        told = ""
        with suppress(OSError, ValueError):  # a repr survives a file that cannot be read
            told = f", spent {self.spent}, left {self.remaining}, releases {len(self.history)}"
        return f"PrivacyAccountant(epsilon={self.total!r}{told}, {place})"


_TOLD: list[bool] = []  # empty until somebody was told


def _warn_of_reruns() -> None:
    """Warn, once in a process, that a budget without a file begins anew in a notebook."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    makes_its_own = module_of(sys._getframe(2)).startswith("dp_metrics.")  # as a search does
    if getattr(shell, "kernel", None) is not None and not _TOLD and not makes_its_own:
        _TOLD.append(True)
        warn_caller(
            "This budget is kept in memory: when its cell is run again it starts anew, and what is released "
            "twice costs twice. With path='budget.sqlite' a file keeps the budget, and what it has bought, "
            "over reruns.",
            UserWarning,
        )


def numbering(accountant: PrivacyAccountant | None) -> PrivacyAccountant | None:
    """Return the same budget for calls that one name is given to several times, such as those of a scorer.

    Each spend gets a number behind its name, and no stored answer is used: no two folds share a score.
    """
    if accountant is None:
        return None
    same = object.__new__(type(accountant))
    vars(same).update(vars(accountant), _is_numbering=True)
    return same


def answer_named(accountant: PrivacyAccountant, spend_name: str) -> StoredResult | None:
    """Return what an earlier session stored under a name; None if the name is free.

    Raises
    ------
    ValueError
        If the name was used in this session, or no value was stored.
    """
    if accountant._is_numbering:
        return None
    kept = accountant._ledger.found(spend_name)
    if kept is not None and not kept.may_be_served:
        raise name_used(spend_name, accountant._ledger)
    if kept is not None and kept.answer is None:
        raise ValueError(kept.no_value)
    return kept


def use_name(accountant: PrivacyAccountant, spend_name: str) -> None:
    """Note that a stored answer is served; raise ValueError if it was before in this session."""
    accountant._ledger.serve(spend_name)


def keep(accountant: PrivacyAccountant, claim: Claim, answer: str | None, summary: str) -> None:
    """Store what was released for a claim that has been paid."""
    if claim.number is not None:
        accountant._ledger.keep(claim.number, answer, summary)


def exactly_spent(accountant: PrivacyAccountant) -> Fraction:
    """Return what is spent so far, not rounded."""
    return accountant._ledger.spent()


def check_accountant(accountant: Any) -> None:
    """Raise unless this is a budget, or None."""
    if not isinstance(accountant, PrivacyAccountant | None):
        raise TypeError("accountant must be None or a PrivacyAccountant.")
