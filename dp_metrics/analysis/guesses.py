"""Public example data made from a rough guess of a metric: no record of anybody is read."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit, ndtri, stdtrit

from dp_metrics._random import made_up
from dp_metrics.inputs.options import (
    Array,
    ByName,
    Floats,
    as_real,
    as_whole,
    check_bounds,
    check_choice,
    check_share,
)
from dp_metrics.metrics import Metric

LAWS = ("normal", "heavy")
"""Laws of errors: light tails, and Student's t with 3 degrees of freedom."""
_FEW = 10_000
MOST_RECORDS = 1_000_000
"""So many are made of a guess at most."""

Data: TypeAlias = tuple[Array, ...]
Hints: TypeAlias = tuple[str, ...]


@dataclass(frozen=True)
class Guess:
    """What is guessed of a metric: its value, and what its records are like.

    Raises
    ------
    ValueError
        If something is guessed that no data have.
    """

    value: float
    n: int
    positives: float | None = None
    classes: int | None = None
    law: str | None = None
    predicted_positives: float | None = None
    bounds: Any = None  # public, of the numbers: an option of the metric

    def __post_init__(self) -> None:
        if not math.isfinite(as_real(self.value)):
            raise ValueError("guess must be a finite number.")
        if not 1 < (as_whole(self.n) or 0) <= MOST_RECORDS:
            raise ValueError(
                "With a guess, n must be from 2 to 1,000,000. Beyond, errors fall about as 1 / n."
            )
        for name in ("positives", "predicted_positives"):
            share = getattr(self, name)
            if share is not None:
                check_share(share, name)
        if self.predicted_positives is not None and (self.classes or 2) > 2:
            raise ValueError("predicted_positives is for 2 labels: leave out classes.")
        if self.classes is not None and not 2 <= (as_whole(self.classes) or 0) <= 1000:
            raise ValueError("classes must be a whole number from 2 to 1,000.")
        check_choice(self.law, "law", (None, *LAWS))

    @property
    def shares(self) -> Floats:
        """The share of each label: of label 1 as guessed, and the others alike."""
        classes = self.classes or 2
        if self.positives is None:
            return np.full(classes, 1.0 / classes)
        shares = np.full(classes, (1.0 - self.positives) / (classes - 1))
        shares[1] = self.positives
        return shares

    def middle(self, centre: float) -> tuple[float, float]:
        """Return the middle of the bounds and a sixth of their width; without bounds, the centre and 1."""
        if (bounds := check_bounds(self.bounds)) is None:
            return centre, 1.0
        lower, upper = bounds
        return (lower + upper) / 2, (upper - lower) / 6


Family: TypeAlias = tuple[Callable[[Guess, float], Data], tuple[float, float], str, Hints]
"""Data that depend on one number, its span, what is assumed, and what can be guessed of them besides.

Data are made of the guess and that number: along its span the metric rises, or falls, all the way.
"""

_IN_WORDS = {
    "normal": {"law": "normal", "odds": "the probabilities that follow from them"},
    "heavy": {
        "law": "heavy-tailed (Student's t, 3 degrees)",
        "odds": "probabilities with log odds twice too large",
    },
}


def _where(
    wanted: float, span: tuple[float, float], make: Callable[[float], Data], value: Callable[[Data], float]
) -> tuple[float | None, list[float]]:
    """Return where along its span data have a wanted metric, or None; and the metric at both ends."""

    def away(place: float) -> float:
        difference = value(make(place)) - wanted
        return difference / (abs(difference) + abs(wanted)) if difference else 0.0  # from -1 to 1

    ends = [value(make(end)) for end in span]
    if not min(ends) <= wanted <= max(ends):
        return None, ends
    from scipy.optimize import brentq

    return float(brentq(away, *span, xtol=1e-7)), ends


def _quantiles(law: str | None, p: Floats) -> Floats:
    found: Floats = stdtrit(3.0, p) if law == "heavy" else ndtri(p)
    return found


def _even(n: int) -> Floats:
    """Return the probabilities in the middle of n cells."""
    return (np.arange(n) + 0.5) / n


def _errors(guess: Guess, place: float) -> Floats:
    return _quantiles(guess.law, _even(guess.n)) * float(10.0**place)


def _about(guess: Guess, place: float, *, centre: float = 0.0) -> Data:
    true = np.full(guess.n, guess.middle(centre)[0])
    return true, true + _errors(guess, place)


def _logarithmic(guess: Guess, place: float) -> Data:
    predicted = np.full(guess.n, guess.middle(100.0)[0])
    moved = np.log1p(predicted) + _errors(guess, place)
    return np.expm1(np.clip(moved, 0.0, 700.0)), predicted


def _counted(guess: Guess, place: float) -> Data:
    return np.maximum(100.0 + _errors(guess, place), 0.0), np.full(guess.n, 100.0)


def _explained(guess: Guess, place: float) -> Data:
    centre, spread = guess.middle(0.0)
    true = centre + spread * _quantiles("normal", _even(guess.n))
    return true, true + made_up().permutation(spread * _errors(guess, place))


def _moved(guess: Guess, place: float) -> Data:
    centre, spread = guess.middle(0.0)
    return (centre + 6 * spread * place + spread * _errors(guess, 0.0),)


def _sized(guess: Guess, place: float) -> Data:
    sizes = _quantiles(guess.law, (1.0 + _even(guess.n)) / 2) * float(10.0**place)
    lower, _ = check_bounds(guess.bounds, may_be_open=True) or (0.0, 0.0)
    return (lower + sizes,)


def _whole(shares: Floats, n: int) -> NDArray[np.int64]:
    """Return numbers of records with these shares and the sum n, those rounded up that are cut most."""
    counts = np.floor(shares * n)
    most_cut = np.argsort((counts - shares * n).ravel(), kind="stable")
    counts.ravel()[most_cut[: n - int(counts.sum())]] += 1
    return counts.astype(np.int64)


def _labelled(table: Floats, n: int) -> Data:
    """Return true and predicted labels with the shares of a table."""
    counts = _whole(table, n).ravel()
    return tuple(np.repeat(labels.ravel(), counts) for labels in np.indices(table.shape))


def _as_predicted(guess: Guess, place: float) -> Data:
    """Labels of which a guessed share is predicted to be label 1, as many of them right as can be at most."""
    true, predicted = float(guess.shares[1]), guess.predicted_positives or 0.0
    least, most = max(0.0, true + predicted - 1.0), min(true, predicted)
    right = least + (1.0 - place) * (most - least)
    missed, wrong = true - right, predicted - right
    return _labelled(np.array([[1.0 - true - wrong, wrong], [missed, right]]), guess.n)


def _by_chance(guess: Guess, place: float) -> Data:
    shares = guess.shares
    return _labelled((1.0 - place) * np.diag(shares) + place * np.outer(shares, shares), guess.n)


def _as_often(guess: Guess, place: float) -> Data:
    shares = guess.shares
    wrong = place * np.tile(shares[:, np.newaxis] / (len(shares) - 1), len(shares))
    np.fill_diagonal(wrong, (1.0 - place) * shares)
    return _labelled(wrong, guess.n)


def _listed_at_the_end(guess: Guess, place: float) -> Data:
    classes = len(guess.shares)
    true = np.repeat(np.arange(classes), _whole(guess.shares, guess.n))
    is_first = np.diff(np.floor(np.arange(guess.n + 1) * place)) == 0
    scores = np.tile(np.linspace(0.4, 0.6, classes), (guess.n, 1))
    scores[np.arange(guess.n), true] = is_first  # 1, or 0
    return true, scores


def _scored(guess: Guess, place: float) -> Data:
    """Labels with their probabilities given a normal score, which is higher for the label by `place`."""
    counts, shares, size = _whole(guess.shares, guess.n), guess.shares, abs(place)
    true = np.repeat(np.arange(len(shares)), counts)
    if len(shares) > 2:
        scores = made_up().standard_normal((guess.n, len(shares)))
        scores[np.arange(guess.n), true] += place
        logits = _stretch(guess) * (size * scores + np.log(shares))
        odds = np.exp(logits - logits.max(axis=1, keepdims=True))
        return true, odds / odds.sum(axis=1, keepdims=True)
    score = np.concatenate([_quantiles("normal", _even(count)) for count in counts])
    score += size * (true == int(place > 0))
    return true, expit(_stretch(guess) * (size * score - size**2 / 2 + np.log(shares[1] / shares[0])))


def _stretch(guess: Guess) -> float:
    """Return by which factor log odds are too large: of overconfident models few losses make up most."""
    return 2.0 if guess.law == "heavy" else 1.0


def _shifted(guess: Guess, place: float) -> Data:
    true, proba = _scored(guess, 1.0)
    return true, expit(logit(proba) + place)


_SCALES, _SHARES, _DISTANCES = (-9.0, 9.0), (0.0, 1.0), (-8.0, 8.0)
_LAW, _LABELS, _POSITIVES = ("law",), ("positives", "classes"), ("positives",)
_PREDICTED_LABELS = (*_LABELS, "predicted_positives")


def _of_errors(make: Callable[..., Data], assumes: str) -> tuple[Family]:
    return ((make, _SCALES, f"{assumes}, and no heap of records at a bound", _LAW),)


_ANEW = "labels that are right or drawn anew as often as they occur: each is predicted as often as it occurs"
_ALIKE = "labels that are wrong equally often, whatever they are"
_LISTED: tuple[Family, ...] = (
    (_by_chance, _SHARES, _ANEW, _PREDICTED_LABELS),
    (_as_often, _SHARES, _ALIKE, _PREDICTED_LABELS),
)
_GIVEN: Family = (_as_predicted, _SHARES, "{predicted:.3g} % predicted to have it", _PREDICTED_LABELS)
_NORMAL = "normal scores that differ by label in their mean, and {odds}"

# of every metric but those that judge predicted labels beside true ones
_FAMILIES: Mapping[str, tuple[Family, ...]] = {
    **dict.fromkeys(
        (f"private_{name}" for name in ("mse", "rmse", "mae", "mean_pinball_loss", "median_absolute_error")),
        _of_errors(_about, "{law} errors of mean 0"),
    ),
    "private_r2_score": _of_errors(_explained, "normal targets, and {law} errors apart from them"),
    "private_mean_absolute_percentage_error": _of_errors(
        partial(_about, centre=1.0), "{law} relative errors of mean 0"
    ),
    "private_mean_squared_log_error": _of_errors(_logarithmic, "{law} errors of the logarithms, of mean 0"),
    "private_mean_poisson_deviance": _of_errors(
        _counted, "{law} errors about predictions of 100, targets >= 0"
    ),
    "private_log_loss": ((_scored, _DISTANCES, f"{_NORMAL}, none of them 0", (*_LABELS, "law")),),
    "private_brier_score_loss": ((_scored, _DISTANCES, _NORMAL, _LABELS),),
    **dict.fromkeys(
        ("private_roc_auc_score", "private_average_precision_score"),
        ((_scored, _DISTANCES, _NORMAL, _POSITIVES),),  # an area per label is several numbers
    ),
    "private_expected_calibration_error": (
        (_shifted, (0.0, 20.0), "scores with an AUC of 0.76, and odds too high by one factor", _POSITIVES),
    ),
    **dict.fromkeys(
        ("private_selection_rate", "private_prevalence"),
        (
            (
                lambda guess, place: _labelled(np.diag([1.0 - place, place]), guess.n),
                _SHARES,
                "labels of which the share is known",
                (),
            ),
        ),
    ),
    "private_top_k_accuracy_score": (
        (_listed_at_the_end, _SHARES, "scores that put the label first or last", _LABELS),
    ),
    **dict.fromkeys(
        ("private_variance", "private_std"),
        _of_errors(lambda guess, place: (guess.middle(0.0)[0] + _errors(guess, place),), "{law} numbers"),
    ),
    "private_mean": ((_moved, (-0.5, 0.5), "{law} numbers with a scale of a sixth of the bounds", _LAW),),
    "private_mean_loss": _of_errors(_sized, "losses that are the sizes of {law} errors of mean 0"),
    "private_quantile": _of_errors(_sized, "{law} numbers of mean 0 without sign, above the lower bound"),
}


def _told(guess: Guess, assumes: str, hints: Hints) -> str:
    """Return in words what the example data assume."""
    predicted = 100 * (guess.predicted_positives or 0.0)
    words = assumes.format(predicted=predicted, **_IN_WORDS[guess.law or "normal"])
    told = [f"{guess.n:,} records"]
    if "classes" in hints and len(guess.shares) > 2:
        told.append(f"{len(guess.shares)} labels")
    if "positives" in hints:
        told.append(f"{100 * guess.shares[1]:.3g} % with label 1")
    return f"{', '.join(told)}; {words}"


def hints_of(row: Metric) -> Hints:
    """Return what can be guessed of the records of a metric besides its value and n."""
    families = _families_of(row)
    return families[0][-1] if families else ()


def _families_of(row: Metric) -> tuple[Family, ...]:
    return _FAMILIES.get(row.name, _LISTED if row.predicts_labels else ())


def examples_of(
    row: Metric,
    options: ByName,
    guess: Guess,
    value_of: Callable[[ByName, Data], float],
) -> tuple[Data, ByName, str]:
    """Return public example data of a metric, made from a guess.

    Parameters
    ----------
    row : Metric
        The metric.
    options : mapping
        Its public options.
    guess : Guess
        What is guessed.
    value_of : callable
        The metric with options of data, without noise.

    Returns
    -------
    tuple
        The data, the options they take and in words what they assume: the same for the same guess. The metric
        is the guess up to one record, or for n above 10,000 to
        within a few per cent, because only so many records are used to find the data.

    Raises
    ------
    ValueError
        If no such data have the guessed value, or the metric returns several numbers.
    """
    families = _families_of(row)
    if guess.predicted_positives is not None and families is _LISTED:
        families = (_GIVEN,)
    if not families:
        raise ValueError(f"{row.name} releases several numbers: a guess is of one number.")
    allowed = hints_of(row)
    for name in ("positives", "classes", "law", "predicted_positives"):
        if getattr(guess, name) is not None and name not in allowed:
            raise ValueError(f"{row.name} needs no {name}: it takes {' and '.join(allowed)}.")
    for name in ("sample_weight", "groups", "labels", "pos_label"):
        if options.get(name) is not None:
            raise ValueError(
                f"{name} needs data: with a guess the labels are 0, 1, ... and no record differs."
            )
    if "labels" in row.options:
        options = {**options, "labels": list(range(len(guess.shares)))}
    guess = replace(guess, bounds=options.get("bounds"))
    reached, few = [], replace(guess, n=min(guess.n, _FEW))
    for make, span, assumes, hints in families:
        found, ends = _where(guess.value, span, partial(make, few), partial(value_of, options))
        if found is not None:
            return make(guess, found), options, _told(guess, assumes, hints)
        reached += ends
    low, high = min(reached), max(reached)
    raise ValueError(f"guess must be from {low:.3g} to {high:.3g} for {row.name} of such records.")
