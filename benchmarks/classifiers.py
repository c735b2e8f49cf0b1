"""Print accuracy and speed of private metrics of classifiers on real data.

Run it with `DP_METRICS_DATA=path/to/data python benchmarks/classifiers.py [--only NAME]`:

- auc: the area under the ROC curve, from exact output laws.
- limits: limits of the noise of an area and of a log loss, beside the width of the releases.
- scores: average precision, curves and calibration.
- precision: bias and error of average precision, also with counts that are made plausible one by one.
- bins: other numbers of bins of a table of scores.
- counts: F1, recall, precision, MCC; with ten classes macro F1, macro recall, kappa, accuracy.
- groups: gaps between groups of people.
- rules: public rules beside others, also on tasks that played no part when they were chosen.
- speed: times beside scikit-learn; this reads no data.

Models are xgboost with 100 rounds, trained on 60 % of each data set. Errors are those of releases from
subsamples of the other 40 %, against the metric of the same records. The noise of tables is simulated in
floats with the law of the releases, but for groups, whose releases are real ones. Beside a number stands the
reference of the specification, which used other subsamples; a "*" marks those more than 25 % apart.
"""

import argparse
import warnings

from classification.areas import areas, noise_limits
from classification.counts import counts
from classification.curves import bins, calibration, curves, precision
from classification.groups import groups
from classification.rules import rules
from classification.speed import speed

FAMILIES = {
    "auc": [areas],
    "limits": [noise_limits],
    "scores": [curves, calibration],
    "precision": [precision],
    "bins": [bins],
    "counts": [counts],
    "groups": [groups],
    "rules": [rules],
    "speed": [speed],
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--only", choices=FAMILIES, help="print one family of tables")
    only = parser.parse_args().only
    warnings.simplefilter("ignore")
    for name in [only] if only else FAMILIES:
        for table in FAMILIES[name]:
            table()


if __name__ == "__main__":
    main()
