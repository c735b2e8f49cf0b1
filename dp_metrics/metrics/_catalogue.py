"""One row for each public metric: what everything that serves a metric is derived from."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dp_metrics.inputs.floats import Floats
from dp_metrics.release.release import Plan, Release

__all__ = ["OUTPUTS", "UNIT", "UNWEIGHTED", "WEIGHTS", "Metric"]

WEIGHTS: Mapping[str, Any] = {"sample_weight": None, "groups": None}
"""Options, with their defaults, of every mean of a loss per record."""

OUTPUTS: Mapping[str, Any] = {"multioutput": "uniform_average", **WEIGHTS}
"""Options of a mean of losses that takes several outputs."""

UNWEIGHTED: Mapping[str, str] = {
    "sample_weight": "a weighted record would count more than once, and need more noise to match",
    "groups": "a person with several records would count more than once, and need more noise to match",
}
"""Options that a metric made of counts takes as None only, each with the reason."""

UNIT: Mapping[str, Any] = {"bounds": (0, 1)}
"""The limit of a metric that takes bounds, for values from 0 to 1."""


def _predictions(x: Floats) -> tuple[Any, ...]:
    return np.zeros_like(x), x


@dataclass(frozen=True, kw_only=True, eq=False)
class Metric:
    r"""All that is public about a metric.

    Parameters
    ----------
    name : str
        Name of the public function.
    exact_function : str
        The function without privacy, of scikit-learn or NumPy.
    plan : callable
        The `Plan` of (\*data, private_n, \*\*options), from valid records; raises for others.
    data : tuple of str
        The arguments that hold a value per record.
    options : mapping
        The public options that the function takes, with their defaults; None for those of `required`.
    refused : mapping of str to str
        Options of scikit-learn's function or of other metrics that must be None, each with the reason.
    required : mapping
        The options without a default, for values from 0 to 1.
    greater_is_better : bool or None
        Whether the metric is a score (true) or a loss; None: it does not judge a model, or is no one number.
    mechanism : str or None
        Name of the default mechanism; None: the metric has noise of its own, and the function takes no
        mechanism. "geometric" where a result near one end of the range is as likely as
        near the other, "hazard" where there is no order statistic to draw the scale from.
    is_mean_loss : bool
        Whether one mean of a loss per record is released, so that a summary of bounded size knows it.
    is_variance : bool
        Whether a variance or a function of one is released, so that a summary of bounded size knows it.
    is_confusion : bool
        Whether counts of true and predicted labels are released, so that a `ConfusionSummary` knows it.
    is_score_table : bool
        Whether counts of labels and scores are released, so that a `ScoreSummary` knows it.
    is_binned : bool
        Whether sums by public bin of scores are released, which those of pieces of the records tell.
    is_joint : bool
        Whether several means of losses and variances share epsilon; summaries of bounded size know each.
    discloses_n : mapping
        Options that would disclose a private number of records, each with the truth value that does not.
    limit : mapping or None
        Options that give the metric a public upper limit, for values from 0 to 1; None: it has one anyway.
    from_unit : callable
        Valid data made from numbers from 0 to 1, a record each: what audits are made of.
    responses : tuple of str
        Methods of an estimator whose response the metric judges, the best first.
    lowest_prediction : float
        The least prediction in the domain of the metric.
    predicts_labels : bool
        Whether the predictions are labels.
    """

    name: str
    exact_function: str
    plan: Callable[..., Plan]
    data: tuple[str, ...] = ("y_true", "y_pred")
    options: Mapping[str, Any]
    required: Mapping[str, Any] = field(default_factory=dict)
    refused: Mapping[str, str] = field(default_factory=dict)
    greater_is_better: bool | None = None
    mechanism: str | None = "adaptive"
    is_mean_loss: bool = False
    is_variance: bool = False
    is_confusion: bool = False
    is_score_table: bool = False
    is_binned: bool = False
    is_joint: bool = False
    discloses_n: Mapping[str, bool] = field(default_factory=dict)
    limit: Mapping[str, Any] | None = None
    from_unit: Callable[[Floats], tuple[Any, ...]] = _predictions
    responses: tuple[str, ...] = ("predict",)
    lowest_prediction: float = -np.inf
    predicts_labels: bool = False

    @property
    def is_summarised(self) -> bool:
        """Whether summaries of bounded size of pieces of the records tell the metric."""
        has_ranks = self.is_mean_loss or self.is_variance or self.is_joint
        return has_ranks or self.is_confusion or self.is_score_table or self.is_binned

    def disclosing(self, options: Mapping[str, Any]) -> list[str]:
        """Return the options that would give a private number of records away, as they were typed."""
        found = [name for name in ("sample_weight", "groups") if options.get(name) is not None]
        return found + [
            f"{name}={options[name]!r}"
            for name, harmless in self.discloses_n.items()
            if name in options and bool(options[name]) != harmless
        ]

    def settings(
        self,
        *,
        epsilon: Any,
        mechanism: Any = None,
        accountant: Any = None,
        random_state: Any = None,
        neighboring: Any = "replace_one",
        label: Any = None,
        options: Mapping[str, Any],
    ) -> Release:
        """Return the checked public settings of a call."""
        return Release(
            self.name,
            epsilon=epsilon,
            mechanism=mechanism,
            default=self.mechanism,
            accountant=accountant,
            random_state=random_state,
            neighboring=neighboring,
            label=label,
            disclosing=self.disclosing(options),
        )

    def release(self, arguments: Mapping[str, Any]) -> Any:
        """Check, spend and draw: what a call of the public function with these arguments does.

        Parameters
        ----------
        arguments : mapping
            All arguments of the function by name.

        Returns
        -------
        float, ndarray, str, dict or PrivateResult
            What the function returns.
        """
        data, options, settings = self.sorted_arguments(arguments)
        return_result = settings.pop("return_result")
        release = self.settings(**settings, options=options)
        result = release.run(self.planned([*data.values()], options, private_n=release.private_n))
        return result if return_result else result.value

    def sorted_arguments(
        self, arguments: Mapping[str, Any]
    ) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
        """Return the data, the options and the settings of a call, each by name.

        Raises
        ------
        ValueError
            If an option that must be None is not.
        """
        settings = dict(arguments)
        data = {name: settings.pop(name) for name in self.data}
        for name, reason in self.refused.items():
            if settings.pop(name) is not None:
                raise ValueError(f"{self.name} takes no {name}: {reason}.")
        options = {name: settings.pop(name) for name in self.options}
        return data, options, settings

    def made_up(self, n: int, options: Mapping[str, Any]) -> tuple[Any, ...]:
        """Return valid data of n made-up records: what is public about a release follows from any data."""
        data = self.from_unit(np.zeros(n))
        if options.get("labels") is None:
            return data
        known = np.unique(options["labels"])
        true = np.full(n, known[0])
        if self.predicts_labels:
            return true, true
        return true, np.zeros((n, known.size)) if known.size > 2 else np.zeros(n)

    def planned(self, data: Sequence[Any], options: Mapping[str, Any], *, private_n: bool) -> Plan:
        """Return what a call releases, or raise if the data or the options are invalid."""
        # whoever made NumPy raise or warn of overflows would learn of the data
        with np.errstate(all="ignore"):
            return self.plan(*data, private_n=private_n, **{**self.options, **options})
