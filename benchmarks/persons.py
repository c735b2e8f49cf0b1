"""Prints how far noise moves a recall of persons with several records, by what a person may count.

Records are made up: 6,000 of up to 3,000 persons, of whom some have many. The exact number is that of the
records that are kept, or of the persons, so that only the noise is measured.
"""

import argparse
import warnings

import numpy as np
from sklearn.metrics import recall_score

import dp_metrics as dp

WAYS = {
    "all records of a person": {},
    "the first three": {"max_records": 3},
    "each person once": {"equal_groups": True},
    "each person once, by the first three": {"equal_groups": True, "max_records": 3},
}


def main() -> None:
    """Print the mean absolute error of each way."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--records", type=int, default=6000)
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--repeats", type=int, default=400)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    rng = np.random.default_rng(0)
    _, persons = np.unique(rng.integers(0, options.records // 2, options.records), return_inverse=True)
    truth = (rng.random(options.records) < 0.3).astype(int)
    predicted = np.where(rng.random(options.records) < 0.2, 1 - truth, truth)
    order = np.argsort(persons, kind="stable")
    place = np.empty_like(order)
    sizes = np.bincount(persons)
    place[order] = np.arange(persons.size) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    for name, public in WAYS.items():
        kept = place < public.get("max_records", persons.size)
        weights = 1 / np.bincount(persons[kept])[persons[kept]] if "equal_groups" in public else None
        exact = recall_score(truth[kept], predicted[kept], sample_weight=weights)
        asked = {"epsilon": options.epsilon, "groups": persons, **public}
        released = [dp.private_recall_score(truth, predicted, **asked) for _ in range(options.repeats)]
        errors = np.abs(np.array(released) - exact)
        print(f"{name}: {np.mean(errors):.5f}")


if __name__ == "__main__":
    main()
