"""People of whom `coverage.py` draws records: tasks on which no rule for limits was chosen.

They are new: other benchmarks and the choice of rules used none of them. Bundled with scikit-learn are breast
cancers (scores of a forest: fiftieths, with ties), digits (even or odd, and ten labels) and the progress of
diabetes; the others are made up. What is said of a person comes from a model that was trained without it.
"""

from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, make_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import cross_val_predict
from sklearn.naive_bayes import GaussianNB

GROUPS = 3
Floats = NDArray[np.float64]


class People(NamedTuple):
    """What is true of people, what a model says of them, their scores, another model's, and their groups."""

    true: NDArray
    said: NDArray
    score: Floats
    rival: Floats
    group: NDArray


class Losses(NamedTuple):
    """A loss of each person, at most 1."""

    loss: Floats


class Persons(NamedTuple):
    """The units of each person that are in a, in b, and in neither: `PERSON_UNITS` together."""

    units: NDArray


def _thirds(feature: Floats) -> NDArray:
    return np.searchsorted(np.quantile(feature, [1 / 3, 2 / 3]), feature)


@cache
def classes() -> dict[str, People]:
    """Return tasks of two classes: 37 %, 50 % and 3 % are positive."""
    x, benign = load_breast_cancer(return_X_y=True)
    y, forest = 1 - benign, RandomForestClassifier(50, max_depth=4, random_state=0)
    score = cross_val_predict(forest, x[:, 10:20], y, method="predict_proba")[:, 1]
    rival = cross_val_predict(GaussianNB(), x[:, 10:12], y, method="predict_proba")[:, 1]
    found = {
        "breast cancer": People(y, 1 * (score > 0.5), np.round(50 * score) / 50, rival, _thirds(x[:, 1]))
    }
    x, digit = load_digits(return_X_y=True)
    y, linear = 1 - digit % 2, LogisticRegression(max_iter=2_000)
    score, rival = (
        cross_val_predict(linear, x[:, :most] / 16, y, method="predict_proba")[:, 1] for most in (64, 24)
    )
    found["even digits"] = People(y, 1 * (score > 0.5), score, rival, _thirds(x.sum(axis=1)))
    x, y = make_classification(24_000, 10, n_informative=4, weights=[0.975], flip_y=0.01, random_state=5)
    score, rival = (
        GaussianNB().fit(x[:4_000, :most], y[:4_000]).predict_proba(x[4_000:, :most])[:, 1]
        for most in (10, 5)
    )
    found["rare"] = People(y[4_000:], 1 * (score > 0.2), score, rival, _thirds(x[4_000:, 0]))
    return found


@cache
def ten_labels() -> dict[str, People]:
    """Return the digits."""
    x, digit = load_digits(return_X_y=True)
    said, nothing = cross_val_predict(GaussianNB(), x, digit), np.zeros(digit.size)
    return {"ten digits": People(digit, said, nothing, nothing, digit)}


@cache
def targets() -> dict[str, People]:
    """Return tasks of regression, in units of the public bound: light tails, a heavy one, and many zeros."""
    x, y = load_diabetes(return_X_y=True)
    said, rival = (cross_val_predict(Ridge(), x[:, :most], y / 400).clip(0, 1) for most in (10, 4))
    found = {"progress of diabetes": People(y / 400, said, said, rival, _thirds(x[:, 0]))}
    rng, size = np.random.default_rng(6), 20_000
    price, group = np.exp(rng.normal(size=size)) / 60, rng.integers(0, GROUPS, size)
    said, rival = (np.minimum(price * np.exp(spread * rng.normal(size=size)), 1) for spread in (0.3, 0.5))
    found["prices"] = People(np.minimum(price, 1), said, said, rival, group)
    mean = rng.uniform(0, 0.2, size)
    claim = np.where(rng.random(size) < 0.6, 0, rng.gamma(1, mean)).clip(0, 1)
    found["claims"] = People(claim, 0.4 * mean, 0.4 * mean, np.full(size, 0.04), group)
    return found


@cache
def losses() -> dict[str, Losses]:
    """Return Brier losses and absolute errors."""
    squares = {name: Losses((people.score - people.true) ** 2) for name, people in classes().items()}
    return squares | {name: Losses(np.abs(people.said - people.true)) for name, people in targets().items()}


@cache
def few_losses() -> dict[str, Losses]:
    """Return losses that are 1, their cap, for one person in 150 and else 0: for two of 300."""
    return {"few": Losses(1.0 * (np.arange(150) == 0))}


PERSON_UNITS = 12  # which one to four records of a person share evenly


@cache
def persons() -> dict[str, Persons]:
    """Return people with one to four records, which are right alike or not, and of whom half count."""
    found, rng, size = {}, np.random.default_rng(8), 4_000
    for name, alike in (("alike", (0.5, 0.2)), ("unlike", (9.0, 3.0))):
        sizes, share = rng.integers(1, 5, size), rng.beta(*alike, size)
        each = np.arange(4) < sizes[:, np.newaxis]
        place = np.where(rng.random((size, 4)) < 0.5, rng.random((size, 4)) >= share[:, np.newaxis], 2)
        units = [(each & (place == cell)).sum(axis=1) * PERSON_UNITS // sizes for cell in range(3)]
        found[name] = Persons(np.stack(units, axis=1))
    return found
