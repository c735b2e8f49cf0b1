"""An interval for the mean of a bounded loss among all people like the records."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dp_metrics._random import RandomState
from dp_metrics.accounting import PrivacyAccountant
from dp_metrics.inference._settings import population_release, value_of
from dp_metrics.inference.mean_interval_plan import capped_mean_plan, mean_interval_plan
from dp_metrics.inputs.arrays import loss_block
from dp_metrics.inputs.floats import limit_of, own_error_state
from dp_metrics.inputs.options import Relation, check_choice, check_max_loss
from dp_metrics.inputs.readers import vector
from dp_metrics.inputs.shape import Records
from dp_metrics.release.interval import Interval
from dp_metrics.release.plan import KnownParts, Plan
from dp_metrics.release.released import POPULATION_NOTE
from dp_metrics.release.terms import Terms

_NAME = "private_mean_interval"


@own_error_state
def private_mean_interval(  # noqa: PLR0913 - data, options, and settings of a release
    losses: ArrayLike,
    *,
    max_loss: float | None = None,
    cap: str | None = None,
    epsilon: float,
    confidence: float = 0.95,
    sample_weight: None = None,
    groups: None = None,
    neighboring: str = "replace_one",
    accountant: PrivacyAccountant | None = None,
    random_state: RandomState = None,
    spend_name: str | None = None,
) -> Interval:
    r"""Interval for the mean loss of all people like the records, with epsilon-differential privacy.

    It allows for both the chance by which these records were drawn, independently from one population, and
    the noise of the release.

    Parameters
    ----------
    losses : array-like of shape (n_samples,)
        One finite, non-negative loss per person, each computed from that person's record and public numbers
        only.
    max_loss : float or None, default=None
        Public cap of one record's loss, in the units of the loss; larger losses are clipped to it, and the
        interval is for the mean of the clipped loss. Never read it from the data. None: `cap` buys one, for
        without a cap there is no upper limit.
    cap : {"private"} or None, default=None
        "private", instead of `max_loss`: a third of epsilon buys a cap c near the 99 % quantile of the losses
        of these records. The interval is then for the mean of the loss clipped to c, and says so. For a cap
        of use n * epsilon should be above 100, where n counts the losses above 0 only.
    epsilon : float
        Privacy parameter, > 0: smaller is more private and makes a wider interval.
    confidence : float, default=0.95
        Probability, strictly between 0 and 1, with which the interval is to cover the mean: approximate, see
        Notes.
    sample_weight : None, default=None
        Refused: the records must be independent draws that count alike.
    groups : None, default=None
        Refused: each record must be a person of its own.
    neighboring : {"replace_one"}, default="replace_one"
        What one person can change: a record's contents. The number of records is public.
    accountant : PrivacyAccountant or None, default=None
        Budget that pays epsilon for this release, before it is drawn.
    random_state : None, int, RandomState or Generator, default=None
        None draws fresh randomness from the operating system. Anything else makes the release reproducible
        and therefore NOT private.
    spend_name : str or None, default=None
        The name of this release in the accountant's history; None: the name of this function.
        A name of an earlier session returns what was released then, at no cost.

    Returns
    -------
    Interval
        The limits, from 0 to the cap; it unpacks as ``lower, upper``. Its `estimate` is a private mean of
        these records, which lies in the interval.

    Raises
    ------
    ValueError, TypeError
        If an input is invalid, as in scikit-learn, or an option is.
    PrivacyBudgetError
        If the accountant has less than epsilon left; nothing is drawn.

    Warns
    -----
    NoisyReleaseWarning
        With a private cap, if n * epsilon is below 100: the cap may come out far too low.
    SeededReleaseWarning
        If `random_state` is given.

    See Also
    --------
    private_mean_loss : The mean loss of these records, without an interval.
    private_quantile_interval : An interval for a quantile, which needs no cap.
    accuracy_interval : An interval for an accuracy that has already been released, free of cost.
    PrivateResult.population_interval : An interval for a mean that has been released; the "sure" one holds
        for every loss and number of records.

    Notes
    -----
    Guarantee: replacing any one record changes the probability of any result by at most a factor
    exp(epsilon), given the model, the number of records and the arguments, which are public.

    A private cap is the 99 % quantile of the records, released by ``Hazard(resolution=0.4)`` at a third of
    epsilon, to three digits. It is public from there on, and the rest is done at two thirds of epsilon: the
    two add up. With six losses on real data a nominal 95 % came out as 95 to 97 % (1000 runs each at n =
    2,000 and epsilon 1), at 0.9 to 1.1 times the width of Student's t for the unclipped mean, and the mean
    of the clipped loss was 88 to 100 % of that mean. With n * epsilon at 500 it was 96 % or more where
    losses are spread, but 38 and 55 % where most lie next to 0, as the Brier score and the log loss of a
    rare label. Where hardly any loss is above 0, c comes out near 0, and the interval with it; a note says
    so below 1e-5.

    Let v be the loss divided by the cap. Two sums are released, of v and of v (1 - v), with
    two-sided geometric noise on a lattice of 2^20 steps. A record that changes from u to w moves them by
    abs(u - w) (1 + abs(1 - u - w)) together, which is abs((1-u)^2 - (1-w)^2) or abs(u^2 - w^2): at most 1, no
    more than the first sum alone can move. So the spread costs nothing. The half-width h is that for which a
    normal variable with the noisy variance, plus a Laplace variable with the scale of the noise, exceeds h
    in size with probability 1 - confidence. For the noise in the variance, that is enlarged by
    3.2718 / (n epsilon), which the noise exceeds with probability 5 %. The confidence is that of the normal
    approximation: with ten losses on real data, 300 to 10,000 records and an epsilon of 0.1 to 3, a nominal
    95 % came out as 94.5 % or more (2000 runs each, standard error 0.5 %). It is lower where the mean rests
    on few records: 88 % with 1,000 records, epsilon 3, and losses at the cap for one person in 500, else 0.
    With fewer than 100 records it can be far lower: where one loss in ten is at the cap, else 0, it is 71 %
    with 10 records at epsilon 10, and below 1 % for a fair coin with one record at epsilon 100. Release the
    mean there instead, by `private_mean_loss` with ``mechanism="geometric"``: its `population_interval` is
    wider, and sure.

    References
    ----------
    A. Ghosh, T. Roughgarden and M. Sundararajan, "Universally Utility-Maximizing Privacy Mechanisms", 2012,
    doi:10.1137/09076828X, for the noise.

    Examples
    --------
    >>> import numpy as np
    >>> from dp_metrics import private_mean_interval
    >>> losses = np.linspace(0, 1, 1000)
    >>> lower, upper = private_mean_interval(losses, max_loss=1.0, epsilon=1.0)
    >>> 0.4 < lower < upper < 0.6
    True
    """
    terms = Terms.of(
        epsilon=epsilon, neighboring=neighboring, accountant=accountant, random_state=random_state,
        spend_name=spend_name,
    )  # fmt: skip
    release = population_release(
        _NAME,
        terms,
        sample_weight=sample_weight,
        groups=groups,
        arguments={"losses": losses, "max_loss": max_loss, "cap": cap, "confidence": confidence},
    )
    plan = mean_plan(max_loss=max_loss, cap=cap, confidence=confidence)

    def read() -> tuple[Plan, KnownParts, Any]:
        _, records = Records.of((losses,), relation=Relation.REPLACE_ONE)
        return plan, plan.read(records), None

    interval: Interval = release.answer(read, value_of)
    return interval


def mean_plan(*, max_loss: Any = None, cap: Any = None, confidence: Any = 0.95) -> Plan:
    """Return the plan of an interval for the mean of losses, or raise if an argument is invalid."""
    check_choice(cap, "cap", ("private", None))
    limit = check_max_loss(max_loss)
    if (limit is None) == (cap is None):
        given = "neither" if cap is None else "both"
        raise ValueError(
            f"{_NAME} needs max_loss, a public limit of one loss, or cap='private', which buys one; {given} "
            "was given. private_quantile_interval needs none."
        )
    reader = partial(_clipped, limit=limit_of(limit))
    if limit is None:
        return capped_mean_plan(reader, confidence=confidence)
    about = f"The mean of the loss, clipped to max_loss, {POPULATION_NOTE}"
    return mean_interval_plan(reader, confidence=confidence, about=about, limit=limit, high=limit)


def _clipped(records: Records, *, limit: float) -> Records:
    """Return losses, clipped to a public limit."""
    (losses,) = vector(records, name="losses").arrays
    return replace(records, arrays=(np.minimum(loss_block(losses), limit),))
