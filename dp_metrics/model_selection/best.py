"""Private choice among models that are fitted: the index of the best, and nothing else."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from functools import partial
from operator import attrgetter
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dp_metrics._random import Entropy, RandomState, permute_and_flip
from dp_metrics.accounting import PrivacyAccountant
from dp_metrics.inputs.arrays import Records, Shape, of_prediction
from dp_metrics.inputs.models import has_method, known_labels, named_by_labels, response_method, response_of
from dp_metrics.inputs.options import Array, ByName, Function, own_error_state
from dp_metrics.mechanisms import Mechanism
from dp_metrics.metrics import Metric, row_of
from dp_metrics.model_selection.scorers import usual_responses
from dp_metrics.quantities.base import Draw, Noise, Output, Quantity, Stats, Totals
from dp_metrics.quantities.mean import MeanOf
from dp_metrics.quantities.ranks import RankingOf
from dp_metrics.release.query import Query, Source, Terms
from dp_metrics.release.release import Release
from dp_metrics.release.result import ReleasedNumbers
from dp_metrics.release.stored import PER_RECORD, Call
from dp_metrics.sensitivity.exact import float_units

_NOT_OPTIONS = {
    **dict.fromkeys(PER_RECORD, "each record counts alike, one for each person"),
    "mechanism": "the choice is drawn by permute-and-flip",
}

_OTHERWISE = (
    "To choose by this metric release it for each model at epsilon / m, or use PrivateRandomizedSearch."
)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Choice:
    """Which model was chosen; all of it may be published. It indexes and compares as its `index` does.

    Parameters
    ----------
    index : int
        The place of the chosen model among the candidates, from 0.
    candidates : int
        How many there were.
    metric : str
        Name of the metric.
    epsilon : float
        What the choice cost.
    neighboring : {"replace_one", "add_or_remove_one"}
        The neighbouring relation of the guarantee.

    Examples
    --------
    >>> from dp_metrics import private_best
    >>> names = ["always 1", "right"]
    >>> choice = private_best([1, 0] * 500, [[1] * 1000, [1, 0] * 500], metric="accuracy", epsilon=1.0)
    >>> names[choice], choice == 1, int(choice)
    ('right', True, 1)
    """

    index: int
    candidates: int
    metric: str
    epsilon: float
    neighboring: str

    def to_dict(self) -> dict[str, Any]:
        """Return the fields by name."""
        return asdict(self)

    def to_json(self) -> str:
        """Return the fields as a JSON object."""
        return json.dumps(self.to_dict(), allow_nan=False)

    def __index__(self) -> int:
        return self.index

    def __eq__(self, other: object) -> bool:
        return self.index == other

    def __hash__(self) -> int:
        return hash(self.index)

    def __repr__(self) -> str:
        return (
            f"Candidate {self.index} (from 0) of {self.candidates}, "
            f"chosen by {self.metric} at epsilon {self.epsilon:g}"
        )


@dataclass(frozen=True, eq=False)
class LeastOf(Quantity):
    """Public: which candidate has the smallest total loss.

    Parameters
    ----------
    losses : tuple of Quantity
        What is released of the metric of each candidate.
    total : callable
        Of what these find in all records, what a candidate loses: private, in whole units.
    step : int
        By how much one more record can raise a total at most; it lowers none.
    """

    losses: tuple[Quantity, ...]
    total: Callable[[Any], int]
    step: int

    merges = False

    def noise(self, mechanism: Mechanism, totals: Totals | None, epsilon: Fraction) -> PermuteAndFlip:
        """Return permute-and-flip, whatever the mechanism; see `private_best` for the proof."""
        # a record that is replaced is one removed and one added
        return PermuteAndFlip(epsilon / (self.step if totals is None else 2 * self.step))

    def find(self, records: Records) -> Array:
        """Return the total of each candidate, of what `read_each` returned."""
        many, found = len(self.losses), []
        for place, (loss, part) in enumerate(zip(self.losses, records.split(many), strict=True), start=1):
            with of_prediction(place, many):
                found.append(self.total(loss.stats(part, loss.totals(part), 0)))
        return np.array(found, dtype=object)


@dataclass(frozen=True)
class PermuteAndFlip(Noise):
    """The place of one number among several, the smaller the number the likelier.

    Parameters
    ----------
    rate : Fraction
        By what the differences of the numbers are multiplied.
    """

    rate: Fraction

    name = "permute-and-flip"

    def too_noisy(self, records: Fraction) -> str | None:
        """Return None: of a choice nothing is said."""
        return None

    def prepare(self, stats: Stats) -> Draw:
        """Return the draw."""
        least = min(stats.found)
        return partial(self._draw, tuple(self.rate * (value - least) for value in stats.found))

    def _draw(self, exponents: tuple[Fraction, ...], entropy: Entropy, count: int | None) -> Output:
        return Output(permute_and_flip(entropy, exponents), {}, count)


def _choice(released: ReleasedNumbers, *, metric: str, candidates: int) -> Choice:
    """Return what was drawn, with what is public of it."""
    return Choice(
        index=int(released.values[0]),
        candidates=candidates,
        metric=metric,
        epsilon=float(released.epsilon),
        neighboring=released.neighboring.value,
    )


def best_query(row: Metric, shape: Shape, options: ByName) -> Query:
    """Return the query of a choice.

    Parameters
    ----------
    row : Metric
        What is compared.
    shape : Shape
        Of y_true and of each candidate's predictions.
    options : mapping
        Public options of the metric.
    """
    queries, reader = row.planned_each(shape, options)
    totals, steps, unstated = zip(*[_total(row, query, shape.n) for query in queries], strict=True)
    choice = partial(_choice, metric=row.name, candidates=len(totals))
    # a limit may be too small for a float, as the square of 1e-200 is: then no total is above 0
    least = LeastOf(tuple(query.quantities[0] for query in queries), totals[0], max(1, *steps))
    return Query((least,), reader, choice, unstated=next(filter(None, unstated), None))


def _total(row: Metric, query: Query, n: int | None) -> tuple[Callable[[Any], int], int, str | None]:
    """Return what tells how much a candidate loses on all records, and by how much one more can raise that.

    The last is why a number of records that is private does not serve; None: it does.
    """
    part, *others = query.quantities
    if row.greater_is_better is not None and not others:
        if isinstance(part, MeanOf):
            if (cap := part.record_loss.cap) is None:
                limits = " or ".join(f"{name}=..." for name in ("bounds", "max_loss") if name in row.options)
                raise ValueError(
                    f"private_best needs a public limit of what one record adds to {row.name}: pass "
                    f"{limits}, never read from the data. {_OTHERWISE}"
                )
            # the exact sum of the losses, each clipped to its cap
            return attrgetter("total"), float_units(cap), query.unstated
        if isinstance(part, RankingOf):
            # twice the number of pairs in the wrong order, equal scores counting half: two for each pair
            why = (
                f"private_best needs a public number of records to choose by {row.name}: one more record is "
                f"in as many pairs as there are others. {_OTHERWISE}"
            )
            return attrgetter("found.total"), 2 * ((n or 1) - 1), why
    raise ValueError(
        f"private_best cannot choose by {row.name}: what one record changes has no public limit that is "
        "proved. What serves is accuracy, log loss, Brier score, the area under the ROC curve, and errors "
        f"with bounds, such as metric='mse' in the place of R^2. {_OTHERWISE}"
    )


@own_error_state
def private_best(  # noqa: PLR0913 - data, options, and settings of a release
    y_true: ArrayLike,
    candidates: Sequence[Any],
    *,
    metric: str | Function,
    epsilon: float,
    X: Any = None,
    neighboring: str = "replace_one",
    accountant: PrivacyAccountant | None = None,
    random_state: RandomState = None,
    spend_name: str | None = None,
    **options: Any,
) -> Choice:
    """Which of several fitted models is the best, with epsilon-differential privacy for the test records.

    One epsilon pays, however many models there are. Their scores are not released.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,) or (n_samples, n_outputs)
        What is true, as the metric takes it.
    candidates : list or tuple
        What each model says, as the metric takes it: labels, targets, probabilities or scores. With `X`, the
        fitted models themselves. None was trained on these records.
    metric : str or callable
        A metric such as `private_brier_score_loss`, a `functools.partial` of one, or a name. Served are means
        of one loss per record that has a public limit (accuracy, top-k accuracy, log loss and Brier score;
        errors by `bounds` or `max_loss`) and, with a public number of records, the area under the ROC curve.
    epsilon : float
        Privacy parameter, > 0: smaller is more private and less accurate.
    X : array-like of shape (n_samples, n_features) or None, default=None
        The records to predict, if candidates are models: by the method whose response the metric judges,
        with all their `classes_` as `labels` unless these are given; of one that a model lacks it says 0.
    neighboring : {"replace_one", "add_or_remove_one"}, default="replace_one"
        What one person can change: a record's contents, their number being public, or whether it is there,
        where the choice is as good at half the epsilon.
    accountant : PrivacyAccountant or None, default=None
        Budget that pays epsilon for this release, before it is drawn.
    random_state : None, int, RandomState or Generator, default=None
        None draws fresh randomness from the operating system. Anything else makes the release reproducible
        and therefore NOT private.
    spend_name : str or None, default=None
        The name of this release in the accountant's history; None: "private_best". A name of an earlier
        session returns what was released then, at no cost.
    **options : Any
        Public options of the metric, such as `bounds`, `max_loss`, `labels` or `k`.

    Returns
    -------
    Choice
        The place of the chosen model among the candidates, from 0, as an index: ``candidates[choice]``.

    Raises
    ------
    ValueError, TypeError
        If an input or an option is invalid, or if one record could change the metric by more than a public
        limit; nothing is spent.
    PrivacyBudgetError
        If the accountant has less than epsilon left; nothing is drawn.

    Warns
    -----
    SeededReleaseWarning
        If `random_state` is given.

    See Also
    --------
    private_compare : Two models, with a p-value.
    PrivateRandomizedSearch : Models that are not fitted yet, by any metric.

    Notes
    -----
    Guarantee: replacing any one record changes the probability of any result by at most a factor
    exp(epsilon), given the models, the number of records and the arguments, which are public. With
    neighboring="add_or_remove_one" the same holds when any one record is added or removed, and the number of
    records is not public. A model must respond to each record by that record alone, and remember none.

    Let L_i be the sum of the losses of model i, each clipped to its limit. For an area it is the number of
    pairs of two classes in the wrong order; all pairs are as many for each model. Permute-and-flip [1]_
    visits the models in random order and stops at model i with probability exp(-rate (L_i - min L)). That is
    to choose the largest of -L_i + E_i with independent exponential noise E_i of this rate [2]_. Given the
    noise of the others, i is chosen if E_i > t, for a t that is L_i less the smallest L_j - E_j of the
    others. One more record raises each L by 0 to `step`, so it moves t by `step` at most; a replaced record,
    which is one removed and one added, by 2 `step`. P(E_i > t), which is 1 or exp(-rate t), then changes by
    at most a factor exp(rate step), or exp(2 rate step): that is exp(epsilon). The step is the limit of one
    loss; for an area it is n - 1 pairs. All sums and draws are exact.

    The chosen model looks better on these records than on others. Nothing says by how much it is the best, or
    that it is: models whose mean losses differ by less than a few times limit / (n epsilon) are chosen almost
    by chance. Of areas the limit is far above what most records change: for these the best of many trials at
    epsilon / 3, as in `PrivateRandomizedSearch`, is about as good; see ``benchmarks/best.py`` of 308a3eb.

    References
    ----------
    .. [1] R. McKenna and D. Sheldon, "Permute-and-Flip: A New Mechanism for Differentially Private
       Selection", 2020, arXiv:2010.12603.
    .. [2] Z. Ding, D. Kifer, S. M. Saghaian, T. Steinke, Y. Wang, Y. Xiao and D. Zhang, "The
       Permute-and-Flip Mechanism is Identical to Report-Noisy-Max with Exponential Noise", 2021,
       arXiv:2105.07260.

    Examples
    --------
    >>> import numpy as np
    >>> from dp_metrics import private_best
    >>> y_true = np.arange(1000) % 2
    >>> wrong = [np.arange(1000) < 100 * k for k in (3, 1, 2)]
    >>> private_best(y_true, [y_true ^ w for w in wrong], metric="accuracy", epsilon=1.0)
    Candidate 1 (from 0) of 3, chosen by private_accuracy_score at epsilon 1
    """
    row, fixed = row_of(metric)
    asked = {**fixed, **options}
    for name, value in asked.items():
        if name in _NOT_OPTIONS:
            if value is not None:
                raise ValueError(f"private_best takes no {name}: {_NOT_OPTIONS[name]}.")
        elif name not in row.options:
            raise TypeError(f"private_best() with this metric got an unexpected keyword argument {name!r}.")
    if not isinstance(candidates, list | tuple) or not candidates:
        raise TypeError("candidates must be a list of predictions, or of fitted models, at least one.")
    public = {name: value for name, value in {**row.options, **asked}.items() if name not in _NOT_OPTIONS}
    terms = Terms.of(
        epsilon=epsilon, neighboring=neighboring, accountant=accountant, random_state=random_state,
        spend_name=spend_name,
    )  # fmt: skip
    release = Release(
        "private_best",
        terms,
        # X is what models take, be it a dictionary of columns: its length may be no number of records
        call=partial(
            Call.of, "value", {"y_true": y_true, **public}, of=row.name, number_of_candidates=len(candidates)
        ),
    )

    def read() -> tuple[Query, Source, Any]:
        if X is None and any(has_method(one, "predict") for one in candidates):
            raise TypeError("Pass X, the records that the models shall predict.")
        predictions, own = list(candidates), public
        if X is not None:
            methods = usual_responses(partial(row.function, **asked))
            if "labels" in public and public["labels"] is None:
                own = {**public, "labels": known_labels(*candidates)}
            predictions, labels = [], own.get("labels")
            for model in candidates:
                method = response_method(model, methods)
                said = response_of(model, method, X, y_true, labels=labels, relation=terms.relation)
                predictions.append(named_by_labels(said, method, labels))
        shape, records = Records.of((y_true, *predictions), relation=terms.relation)
        query = best_query(row, shape, own)
        return query, query.read(records), None

    chosen: Choice = release.answer(read, lambda result: result.value)
    return chosen
