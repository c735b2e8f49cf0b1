"""The ten calls that matter, on two numbers of records and for both relations; records are made up."""

import warnings

import numpy as np

import dp_metrics as dp

SIZES = [10_000, 1_000_000]


class Records:
    """What the calls are about."""

    param_names = ("records", "relation")
    timeout = 300

    def setup(self, n: int, relation: str) -> None:
        """Make the records."""
        warnings.simplefilter("ignore")
        rng = np.random.default_rng(0)
        self.y = rng.normal(size=n)
        self.near, self.far = self.y + rng.standard_t(3, size=n), self.y + rng.standard_t(3, size=n)
        self.ill = (rng.random(n) < 0.3).astype(int)
        self.score = np.clip(0.3 * rng.random(n) + 0.4 * self.ill, 0.01, 0.99)
        self.found = ((self.score > 0.35) ^ (rng.random(n) < 0.1)).astype(int)
        names = ["a", "b", "c"]
        self.by_group = {"sensitive_features": np.array(names)[rng.integers(0, 3, n)], "group_labels": names}
        self.public = {"epsilon": 1.0, "neighboring": relation}
        self.labelled = {"labels": [0, 1], **self.public}


class BothRelations(Records):
    """Calls that know both relations."""

    params = (SIZES, ["replace_one", "add_or_remove_one"])

    def time_mse(self, *_: object) -> None:
        dp.private_mse(self.y, self.near, **self.public)

    def time_mae(self, *_: object) -> None:
        dp.private_mae(self.y, self.near, **self.public)

    def time_log_loss(self, *_: object) -> None:
        dp.private_log_loss(self.ill, self.score, **self.labelled)

    def time_recall(self, *_: object) -> None:
        dp.private_recall_score(self.ill, self.found, **self.labelled)

    def time_roc_auc(self, *_: object) -> None:
        dp.private_roc_auc_score(self.ill, self.score, **self.labelled)

    def time_summary_and_curve(self, *_: object) -> None:
        summary = dp.Summary("roc_curve", labels=[0, 1]).update(self.ill, self.score)
        summary.release(**self.public)

    def time_frame(self, *_: object) -> None:
        recall = dp.private_recall_score
        dp.PrivateMetricFrame(
            metrics=recall, y_true=self.ill, y_pred=self.found, **self.by_group, **self.public
        )

    def time_page(self, *_: object) -> None:
        dp.private_evaluate(self.ill, y_score=self.score, **self.by_group, **self.labelled)

    def time_result_and_intervals(self, *_: object) -> None:
        # of a new result each time: limits of one result are computed once
        result = dp.with_result(dp.private_recall_score)(self.ill, self.found, **self.labelled)
        result.noise_interval()
        result.population_interval()


class OneRelation(Records):
    """The call that knows one relation."""

    params = (SIZES, ["replace_one"])

    def time_compare(self, *_: object) -> None:
        dp.private_compare(self.y, self.near, self.far, loss="mae", **self.public)
