"""Records of people in groups, and frames of them, which the tests of this folder share."""

from functools import partial

import numpy as np

import dp_metrics as dp

RNG = np.random.default_rng(0)
N = 1500
LABELS = ["a", "b", "c"]
BY = RNG.choice(LABELS, N, p=[0.6, 0.3, 0.1])
Y = (RNG.random(N) < 0.4).astype(int)
PRED = np.where(RNG.random(N) < 0.8, Y, 1 - Y)
PROBA = np.clip(0.5 * Y + 0.5 * RNG.random(N), 0, 1)
HAZARD = partial(dp.private_roc_auc_score, mechanism="hazard")  # not read from a table of scores
MAE = partial(dp.private_mae, bounds=(0, 1))


def frame(metrics, p=PRED, *, y=Y, by=BY, **settings):
    settings = {"group_labels": LABELS, "epsilon": 1.0, **settings}
    return dp.PrivateMetricFrame(metrics=metrics, y_true=y, y_pred=p, sensitive_features=by, **settings)
