"""Membership attack: two exact errors tell who is in a test set, and how ill; the private ones do not.

Run `python notebooks/membership_attack.py PICTURE.png`: it prints the numbers and draws the picture.
"""

import sys
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from output_laws import density, output_law, success_rate
from sklearn.datasets import load_diabetes
from sklearn.linear_model import Ridge
from sklearn.metrics import mean_squared_error
from sklearn.model_selection import train_test_split

from dp_metrics import private_mse

__all__ = ["EPSILONS", "Study", "best_rate", "draw", "learn_target", "make_study", "success_rates"]

EPSILONS = (0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0)
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Study:
    """A test set of diabetes patients, the predictions of a fixed model, and one of the patients, Ada.

    Attributes
    ----------
    target, prediction : ndarray
        Progression of each patient's illness after a year, and what the model predicts.
    ada : int
        Her position.
    stand_in : tuple of float
        Target and prediction of a patient who could have been there in her place.
    """

    target: Floats
    prediction: Floats
    ada: int
    stand_in: tuple[float, float]

    def without_ada(self) -> tuple[Floats, Floats]:
        """Return the test set after Ada withdrew."""
        return np.delete(self.target, self.ada), np.delete(self.prediction, self.ada)

    def replaced(self) -> tuple[Floats, Floats]:
        """Return the test set with the stand-in instead of Ada."""
        target, prediction = self.target.copy(), self.prediction.copy()
        target[self.ada], prediction[self.ada] = self.stand_in
        return target, prediction


def make_study(percentile: float = 100.0) -> Study:
    """Return the study; Ada's error is at this percentile, the largest of all by default."""
    X, y = load_diabetes(return_X_y=True)
    X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.5, random_state=0)
    prediction = Ridge(alpha=0.1).fit(X_train, y_train).predict(X_test)
    order = np.argsort(np.abs(y_test - prediction))
    ada = int(order[round(percentile / 100 * (order.size - 1))])
    best = int(order[0])  # a patient whom the model predicts well
    return Study(y_test, prediction, ada, (float(y_test[best]), float(prediction[best])))


def learn_target(mse_with: float, mse_without: float, n: int, prediction: float) -> tuple[float, float]:
    """Return the two targets that the errors of n records, and of n - 1 without one, leave possible."""
    error = np.sqrt(max(n * mse_with - (n - 1) * mse_without, 0.0))
    return prediction - error, prediction + error


def best_rate(epsilon: Any) -> Any:
    """Return the highest success rate that epsilon-differential privacy lets any attacker have."""
    return 1.0 / (1.0 + np.exp(-np.asarray(epsilon, dtype=float)))


def success_rates(study: Study, epsilons: tuple[float, ...] = EPSILONS) -> list[float]:
    """Return, by epsilon, how often the best attacker tells from a private MSE whether Ada is there.

    The attacker knows the model, all other records, Ada's and the stand-in's, and that either is as likely.
    """
    return [
        success_rate(
            output_law(private_mse, study.target, study.prediction, epsilon=epsilon),
            output_law(private_mse, *study.replaced(), epsilon=epsilon),
        )
        for epsilon in epsilons
    ]


def draw(figure: Any, study: Study, typical: Study, epsilons: tuple[float, ...] = EPSILONS) -> None:
    """Draw what an attacker sees, and how often the best one is right."""
    left, right = figure.subplots(1, 2)
    pairs = ((study.target, study.prediction), study.replaced())
    exact = [mean_squared_error(*pair) for pair in pairs]
    laws = [output_law(private_mse, *pair, epsilon=1.0) for pair in pairs]
    edges = np.linspace(0.75 * exact[0], 1.45 * exact[0], 71)
    for law, value, colour, line, name in zip(
        laws, exact, ("#D55E00", "#0072B2"), ("-", "--"), ("with Ada", "without her"), strict=True
    ):
        left.axvline(value, color=colour, linestyle=line, linewidth=1)
        left.plot(
            (edges[1:] + edges[:-1]) / 2,
            density(law, edges),
            color=colour,
            linestyle=line,
            linewidth=2,
            label=name,
        )
    left.set_xlabel("published mean squared error")
    left.set_yticks([])
    left.set_title("exact (thin) and private, epsilon 1 (curves)")
    left.legend(frameon=False, title="test set")
    right.axhline(1.0, color="black", linewidth=2, label="exact MSE")
    grid = np.geomspace(epsilons[0], epsilons[-1], 60)
    right.plot(grid, best_rate(grid), color="0.5", linestyle=":", label="limit of epsilon")
    right.plot(
        epsilons, success_rates(study, epsilons), "o-", color="#009E73", label="private, largest error"
    )
    right.plot(
        epsilons, success_rates(typical, epsilons), "s--", color="#CC79A7", label="private, median error"
    )
    right.axhline(0.5, color="0.8", linewidth=1)
    right.text(epsilons[-1], 0.505, "coin flip", color="0.5", ha="right", va="bottom")
    right.set_xscale("log")
    right.set_xticks(epsilons, [f"{epsilon:g}" for epsilon in epsilons])
    right.set_xticks([], minor=True)
    right.set_ylim(0.48, 1.03)
    right.set_yticks([0.5, 0.6, 0.7, 0.8, 0.9, 1.0], ["50 %", "60 %", "70 %", "80 %", "90 %", "100 %"])
    right.set_xlabel("epsilon")
    right.set_title("how often the best attacker is right")
    right.legend(frameon=False, loc="upper left", bbox_to_anchor=(0.0, 0.95))
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)


def main(path: str | None = None) -> None:
    """Print the numbers of the attack, and draw the picture if there is a path for it."""
    study, typical = make_study(), make_study(50.0)
    n, ada = study.target.size, study.ada
    with_ada = mean_squared_error(study.target, study.prediction)
    without = mean_squared_error(*study.without_ada())
    guesses = learn_target(with_ada, without, n, study.prediction[ada])
    print(f"exact MSE of {n} patients {with_ada:.4f}, of {n - 1} after Ada withdrew {without:.4f}")
    print(f"her target is {guesses[0]:.4f} or {guesses[1]:.4f}; in truth {study.target[ada]:.4f}")
    print("\nsuccess of the best attacker    " + "".join(f"{epsilon:>8g}" for epsilon in EPSILONS))
    for name, rates in (
        ("exact MSE", [1.0] * len(EPSILONS)),
        ("limit of epsilon", best_rate(EPSILONS)),
        ("private, largest error", success_rates(study)),
        ("private, median error", success_rates(typical)),
    ):
        print(f"{name:<32}" + "".join(f"{rate:>8.1%}" for rate in rates))
    if path is not None:
        from matplotlib.figure import Figure

        figure = Figure(figsize=(9, 3.6), layout="constrained")
        draw(figure, study, typical)
        figure.savefig(path, dpi=130)


if __name__ == "__main__":
    main(*sys.argv[1:2])
