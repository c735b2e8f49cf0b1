"""Private metrics by group, with the attributes of fairlearn's `MetricFrame`."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from numpy.typing import ArrayLike

from dp_metrics._random import RandomState
from dp_metrics.accounting import PrivacyAccountant
from dp_metrics.fairness import frame_query
from dp_metrics.fairness.frame_query import Entry, FrameCell, FrameMetric, FrameResult
from dp_metrics.fairness.groups import Groups, public_groups
from dp_metrics.fairness.intervals import GroupLimits, check_what
from dp_metrics.inputs.arrays import columns_of, first_records
from dp_metrics.inputs.options import (
    ByName,
    Function,
    Relation,
    as_whole,
    check_choice,
    check_confidence,
    own_error_state,
)
from dp_metrics.metrics._pictures import draw_groups
from dp_metrics.metrics.labels.released_confusion import ReleasedConfusion
from dp_metrics.metrics.scores.released_scores import OVER_EXPECTED, ReleasedScores, over_expected_numbers
from dp_metrics.metrics.scores.table import ScoreTable
from dp_metrics.release.query import Source, Terms, Together
from dp_metrics.release.release import Release
from dp_metrics.release.released import Interval, Number, PopulationQuestion, table_of
from dp_metrics.release.result import counts_persons
from dp_metrics.release.stored import Call, Results, read_shape

GAP = " difference"
"""The end of the name of the largest difference between groups."""
_METHODS = ("between_groups", "to_overall")


@own_error_state
class PrivateMetricFrame:
    """Metrics of each group and overall, with epsilon-differential privacy for all of it together.

    Parameters
    ----------
    metrics : callable, str or dict of them
        Private metrics of this package that take y_true and y_pred, such as `private_recall_score`, or their
        names, such as "recall"; options as ``functools.partial(private_recall_score, pos_label="yes",
        labels=["no", "yes"])``. Several have equal parts of epsilon.
    y_true, y_pred : array-like of shape (n_samples,) or as the metrics take them
        The records. `y_pred` holds probabilities or scores for metrics that take these.
    sensitive_features : array-like of shape (n_samples,), or data frame or array of several columns
        The group of each record, such as sex, by which the metrics are compared: private, unless `membership`
        says otherwise. Several columns make a group of each combination. Whose a record is, `groups` say.
    group_labels : array-like, or list of array-like for several columns
        The public labels of the groups; all of them appear in the results, whether or not they have records.
        Never inferred from the data.
    epsilon : float
        Privacy parameter of everything together, > 0.
    membership : {"private", "public"}, default="private"
        Whether the group of each record is private. With "public" the groups and their sizes may be
        published: neighbours keep their group, and each group has the whole epsilon. The accountant counts
        that as a relation of its own, "replace_one_within_groups".
    overall_share : float, default=0.2
        Part of epsilon for the overall value of metrics that are not made of counts of labels, from 0 (no
        overall value) to below 1. Metrics of labels have it for nothing: noisy counts are added up over the
        groups. A release of its own, at part f of epsilon, makes the overall value more accurate from f of
        2 / (n_groups + 1) on, and groups 1 / (1 - f) times less: it does not pay up to 10 groups.
    groups : array-like of shape (n_samples,) or None, default=None
        Public label of the person (or other unit) that each record belongs to, not of a group to compare. The
        guarantee then covers all records of one person together, in whatever groups of the frame they lie, by
        noise as many times larger as one has records at most. None: each record is a person of its own.
    max_records : int or None, default=None
        Keep the first so many records of each person, in their order, which is public: it pays where a few
        have many. None: all. Needs `groups`.
    equal_groups : bool, default=False
        Whether each person counts once, whatever the number of records: of m records each counts 1 / m, in
        its group. The noise is then that of one record a person. All sizes and numbers of records are those
        of persons. Needs `groups`, metrics of labels, and private membership.
    neighboring : {"replace_one", "add_or_remove_one"}, default="replace_one"
        What one person can change: a record's contents, the number of records being public; or whether it is
        there at all (no `groups`).
    accountant : PrivacyAccountant or None, default=None
        Budget that pays epsilon, before anything is drawn.
    random_state : None, int, RandomState or Generator, default=None
        None draws fresh randomness from the operating system. Anything else makes the release reproducible
        and therefore NOT private.
    spend_name : str or None, default=None
        The name in the accountant's history; None: "PrivateMetricFrame". A name of an earlier session returns
        what was released then, at no cost.

    Attributes
    ----------
    overall : float or dict
        The value for all records, or one for each metric.
    by_group : dict
        Group -> its value, or a dict of one for each metric.
    rests_on : dict
        How many records count for each value, in the form of `by_group`: those with the label for a recall,
        those predicted to have it for a precision, the smaller class for an AUC, all of the group for most
        others; of a metric that is made of several shares the fewest. By the noisy counts that the value is
        made of, and at least 0; exact where it is the public size of the group; None where nothing that is
        released tells.
    note : dict
        What released numbers tell of the values, in the form of `by_group`: a sentence where a value is
        mostly noise or biased, and so says nothing; else None. An AUC of a small group is biased towards 1.
    bias : dict
        Which way each value usually errs, in the form of `by_group`: a sentence for a mean loss by the
        default, which is usually too low, and for R^2, which is too high; else None. See `Result`.
    overall_note, overall_bias : str, None or dict
        The same of the overall value.
    group_sizes : dict or None
        The number of records of each group: exact where membership is public; else noisy, off by a few
        records where one of the metrics is made of counts of labels, and by about 50 / epsilon of the
        releases where they were drawn for losses only. None where nothing that is released tells. Read the
        values of small groups with care: nothing hides them.
    epsilon, neighboring, membership
        As given; `neighboring` is the relation that the accountant counts.

    Raises
    ------
    ValueError, TypeError
        If an argument or a record is invalid; nothing is spent.
    PrivacyBudgetError
        If the accountant has less than epsilon left; nothing is drawn.

    Warns
    -----
    SeededReleaseWarning
        If `random_state` is given.
    NoisyReleaseWarning
        If public numbers alone tell that a release will be mostly noise.

    See Also
    --------
    private_recall_score : Metrics to pass.

    Notes
    -----
    Guarantee: replacing any one record, its group included, or with `groups` all records of any one person,
    changes the probability of any result by at most a factor exp(epsilon), given the models, the number of
    records, the group labels and the other arguments, which are public. With
    neighboring="add_or_remove_one" the same holds when any one record is added or removed. With
    membership="public" it holds when a record is replaced by one of the same group.

    **How.** Metrics of labels come from one table, groups by counts, in which a replaced record changes two
    cells, in one group or in two. So do areas of scores of two classes, in [0, 1]: from groups by classes by
    bins (`released_scores` has the curves). Any other metric is released for each group under
    add_or_remove_one at epsilon / 2: a replaced record is one less in one group and one more in the same or
    another one, which costs epsilon in all, however many groups there are.

    **Filtered rows have no such guarantee.** ``private_accuracy_score(y[g == 1], p[g == 1], epsilon=1)``
    shows the exact number of records of the group, which one record can change: its loss is infinite.

    **A group without records** is in the results too. Where membership is private nobody is told, and its
    value is a noisy one as of any other group. Where it is public nothing is drawn: a metric of labels is
    what its formula gives for counts of 0 (`zero_division` for a recall), any other is NaN, in each number of
    an array or a report; ``difference()``, ``ratio()`` and the like leave the group out.

    **Gaps err upwards.** The largest difference between groups of noisy values is larger on average than
    that of the exact ones, and the more so the smaller the smallest group is: `population_interval` tells
    what the gap may be among all people.

    References
    ----------
    C. Dwork and A. Roth, "The Algorithmic Foundations of Differential Privacy", 2014, Theorem 3.16
    (composition), doi:10.1561/0400000042; H. Weerts et al., "Fairlearn: Assessing and Improving Fairness of
    AI Systems", JMLR 24 (2023), for the interface.

    Examples
    --------
    >>> from dp_metrics import PrivateMetricFrame, private_recall_score
    >>> y_true, y_pred = [1, 1, 0, 0] * 500, [1, 0, 0, 0, 1, 1, 0, 0] * 250
    >>> sex = ["female", "female", "male", "male"] * 250 + ["male"] * 1000
    >>> frame = PrivateMetricFrame(
    ...     metrics=private_recall_score, y_true=y_true, y_pred=y_pred, sensitive_features=sex,
    ...     group_labels=["female", "male"], epsilon=1.0,
    ... )
    >>> sorted(frame.by_group), 0 <= frame.difference() <= 1
    (['female', 'male'], True)
    """

    def __init__(  # noqa: PLR0913 - data, groups, and settings of a release
        self,
        *,
        metrics: Function | str | Mapping[str, Function | str],
        y_true: ArrayLike,
        y_pred: ArrayLike,
        sensitive_features: Any,
        group_labels: Any,
        epsilon: float,
        membership: str = "private",
        overall_share: float = 0.2,
        groups: ArrayLike | None = None,
        max_records: int | None = None,
        equal_groups: bool = False,
        neighboring: str = "replace_one",
        accountant: PrivacyAccountant | None = None,
        random_state: RandomState = None,
        spend_name: str | None = None,
    ) -> None:
        terms = Terms.of(
            epsilon=epsilon, neighboring=neighboring, accountant=accountant, random_state=random_state,
            spend_name=spend_name,
        )  # fmt: skip
        chosen = frame_query.frame_metrics(metrics)
        asked = {
            "metrics": [vars(one) for one in chosen], "y_true": y_true, "y_pred": y_pred,
            "sensitive_features": sensitive_features, "group_labels": group_labels, "membership": membership,
            "overall_share": overall_share, "groups": groups, "max_records": max_records,
            "equal_groups": equal_groups, "is_single": not isinstance(metrics, Mapping),
        }  # fmt: skip
        # of its data no more than is public
        places = partial(public_groups, sensitive_features, group_labels) if membership == "public" else None
        call = partial(Call.of, "frame", asked, places)
        disclosing = [] if groups is None else ["groups"]
        release = Release(PrivateMetricFrame.__name__, terms, disclosing=disclosing, call=call)

        def read() -> tuple[Together, tuple[Source, ...], dict[str, Any]]:
            share = frame_query.check_frame(
                membership, overall_share, relation=terms.relation, equal_groups=equal_groups
            )
            columns = columns_of(sensitive_features)
            shape, records, _ = first_records(
                (y_true, y_pred, *columns),
                names=("y_true", "y_pred", *["sensitive_features"] * len(columns)),
                relation=terms.relation,
                groups=groups,
                max_records=max_records,
                equal_groups=equal_groups,
            )
            by = Groups.of(group_labels, len(columns))
            if membership == "public":  # the features are as public as the number of records
                by = by.with_sizes(records)
            query = frame_query.query_of_frame(chosen, shape, by, overall_share=share)
            return query, query.read(records), {"shape": shape, "sizes": by.sizes}

        made = partial(frame_of, epsilon=float(terms.epsilon))
        vars(self).update(vars(release.answer(read, made)))  # a stored frame, or a new one

    def _show(self, result: FrameResult, epsilon: float) -> None:
        """Set the attributes."""
        self._result, (self._entries, sizes, relation) = result, result
        self._is_single = [*self._entries] == [""]
        self._groups = [*next(iter(self._entries.values())).groups]
        self.epsilon = epsilon
        self.neighboring = relation.value
        self.membership = "public" if relation is Relation.WITHIN_GROUPS else "private"
        self.by_group = self._by_group("value")
        self.rests_on = self._by_group("rests_on")
        self.note = self._by_group("note")
        self.bias = self._by_group("bias")
        self.overall = self._each(lambda entry: entry.overall.value)
        self.overall_note = self._each(lambda entry: entry.overall.note)
        self.overall_bias = self._each(lambda entry: entry.overall.bias)
        self.group_sizes = None if sizes is None else dict(sizes)

    def __repr__(self) -> str:
        shown = (
            f"overall={self.overall!r}, by_group={dict(self.by_group)!r}, rests_on={dict(self.rests_on)!r}"
        )
        cells = [cell for entry in self._entries.values() for cell in entry.cells]
        if any(cell.note for cell in cells):
            shown += f", note={dict(self.note)!r}, overall_note={self.overall_note!r}"
        if any(cell.bias for cell in cells):
            shown += f", bias={dict(self.bias)!r}, overall_bias={self.overall_bias!r}"
        shown += f", epsilon={self.epsilon!r}, neighboring={self.neighboring!r}"
        return f"PrivateMetricFrame({shown}, membership={self.membership!r})"

    @property
    def counts_persons(self) -> bool:
        """Whether each person counts once, so that all sizes are numbers of persons, not of records."""
        return any(counts_persons(cell.result) for one in self._entries.values() for cell in one.cells)

    def _entry(self, metric: str) -> Entry:
        """Return what there is of a metric by its name."""
        if metric not in self._entries:
            raise ValueError(f"metric must be one of {', '.join(map(repr, self._entries))}.")
        return self._entries[metric]

    def _each(self, value: Callable[[Entry], Any]) -> Any:
        """Return a value for each metric, or the value of the only one."""
        each = {name: value(entry) for name, entry in self._entries.items()}
        return each[""] if self._is_single else each

    def _by_group(self, told: str) -> dict[Hashable, Any]:
        """Return what cells have by this name, by group; for each metric, or the only one."""
        return {
            group: self._each(lambda entry, group=group: getattr(entry.groups[group], told))  # type: ignore[misc]
            for group in self._groups
        }

    def margin(self, feature: int) -> PrivateMetricFrame:
        """Return the frame by one of several features, whatever the others are; it costs no more epsilon.

        Parameters
        ----------
        feature : int
            The place of the feature among `sensitive_features`, from 0.

        Returns
        -------
        PrivateMetricFrame
            With the labels of that feature as groups, and all that a frame has: differences, limits, notes.

        Raises
        ------
        ValueError
            If there is one feature only, or no such one, or a metric is not read from counts of labels.

        Notes
        -----
        The noisy counts of groups that differ in the other features are added up, as they were drawn.

        Examples
        --------
        >>> import numpy as np
        >>> from dp_metrics import PrivateMetricFrame, private_recall_score
        >>> sick, told = np.ones(4000, dtype=int), np.tile([1, 1, 1, 0], 1000)
        >>> sex, age = np.tile(["f", "m"], 2000), np.repeat(["-40", "40-"], 2000)
        >>> frame = PrivateMetricFrame(
        ...     metrics=private_recall_score, y_true=sick, y_pred=told, epsilon=2.0,
        ...     sensitive_features=np.column_stack([sex, age]), group_labels=[["f", "m"], ["-40", "40-"]],
        ... )
        >>> {sex: round(recall, 1) for sex, recall in frame.margin(0).by_group.items()}
        {'f': 1.0, 'm': 0.5}
        """
        first = self._groups[0]
        several = len(first) if isinstance(first, tuple) else 0
        if as_whole(feature) not in range(several):
            features = f"from 0 to {several - 1}" if several else "of several: this frame has one"
            raise ValueError(f"feature must be the place of one of the features, {features}.")
        return frame_of(frame_query.margin_of(self._result, feature), self.epsilon)

    def numbers(self) -> dict[str, Number]:
        """Return the numbers of the frame with their limits, by name.

        Returns
        -------
        dict of Number
            Of each metric that is one number, such as "recall": the value of all records ("recall"), of each
            group ("recall in 'f'"), the largest difference and the smallest ratio ("recall difference",
            "recall ratio"). Where a table of scores was released, also "observed over expected in 'f'", its
            difference and ratio. Limits follow when they are asked for.
        """
        found = [one for name, entry in self._entries.items() for one in _numbers_of(name, entry)]
        scores: Mapping[Hashable, ReleasedScores] = {}
        with contextlib.suppress(ValueError):  # no metric is read from a table of scores
            scores = self.released_scores()
        return {one.name: one for one in (*found, *_over_expected(self._groups, scores))}

    def frame(self) -> Any:
        """Return the numbers of the frame as a table, a row each; this imports pandas.

        Returns
        -------
        pandas.DataFrame
            By name the columns "metric", "label", "group", "value", the limits at 95 % among all people
            ("people_lower", "people_upper") and of the exact number ("noise_lower", "noise_upper"),
            "rests_on", "note", "bias", and what is to be said of the limits ("people_note", "noise_note").
        """
        return table_of(one.row() for one in self.numbers().values())

    def plot(self, metric: str | None = None, ax: Any = None, *, confidence: float | None = 0.95) -> Any:
        """Draw a bar for each group, with the limits of its noise; this imports matplotlib.

        Parameters
        ----------
        metric : str or None, default=None
            The name of one of several metrics; None: the first.
        ax : matplotlib Axes or None, default=None
            Where to draw; None: a new figure of pyplot.
        confidence : float or None, default=0.95
            Of the limits of `noise_interval`, of each group for itself; None draws none. A metric that has
            none is drawn without them.

        Returns
        -------
        matplotlib Axes
            The bars; grey and hatched where a value is mostly noise, and none for a group that is NaN. The
            overall value is a dashed line.

        Raises
        ------
        ValueError
            If an argument is invalid.
        TypeError
            If the metric is not one number.
        ImportError
            If matplotlib is missing.
        """
        name = next(iter(self._entries)) if metric is None else metric
        entry = self._entry(name)
        entry.numbers  # noqa: B018 - whether they are numbers
        limits: dict[Hashable, Interval] = {}
        if confidence is not None:
            sure = check_confidence(confidence)
            with contextlib.suppress(ValueError):  # a metric may have none
                limits = self.noise_interval(name, confidence=sure)
        ends, cells = [limits.get(group) for group in self._groups], entry.groups.values()
        values, is_noise = [cell.value for cell in cells], [cell.note is not None for cell in cells]
        title = f"{name or entry.metric.removeprefix('private_')}, epsilon {self.epsilon:g}"
        return draw_groups(self._groups, values, ends, is_noise, entry.overall.value, title, ax)

    def released_scores(self, metric: str | None = None) -> dict[Hashable, ReleasedScores]:
        """Return the curves and areas of each group, with limits and bands; they cost no more epsilon.

        Parameters
        ----------
        metric : str or None, default=None
            The name of one of several metrics that a table of scores tells, such as an area under a ROC or
            precision-recall curve; None: the first of these.

        Returns
        -------
        dict of ReleasedScores
            By group, without those that are publicly empty. Here the noisy counts of a group are made
            plausible by themselves, and in `by_group` those of all groups together: values differ a little.

        Raises
        ------
        ValueError
            If the metric is not read from a table of scores.
        """
        for name, entry in self._entries.items():
            known = {group: cell.result for group, cell in entry.known.items()}
            if metric in (None, name) and all(isinstance(one.reading, ScoreTable) for one in known.values()):
                return {g: ReleasedScores.of(replace(one, metric=entry.metric)) for g, one in known.items()}
        raise ValueError(
            "No such metric of this frame is read from a table of scores: pass private_roc_auc_score, with "
            "no mechanism, or private_average_precision_score, of two classes."
        )

    def released_labels(self) -> ReleasedConfusion:
        """Return the metrics of labels of all records, with limits; they cost no more epsilon.

        Returns
        -------
        ReleasedConfusion
            Of the counts of all groups together.

        Raises
        ------
        ValueError
            If no metric is read from counts that tell all metrics of labels.
        """
        released = [one.overall.result for one in self._entries.values() if one.overall.result is not None]
        positive = [getattr(one.reading, "positive", None) for one in released]
        for of_all in released:
            with contextlib.suppress(TypeError):
                told = ReleasedConfusion.of(of_all)
                return replace(told, positive=next((one for one in positive if one is not None), None))
        raise ValueError("No metric of this frame is read from counts that tell all metrics of labels.")

    def group_max(self) -> Any:
        """Return the largest value of a group, for each metric; it errs upwards."""
        return self._each(lambda entry: max(entry.numbers, default=math.nan))

    def group_min(self) -> Any:
        """Return the smallest value of a group, for each metric; it errs downwards."""
        return self._each(lambda entry: min(entry.numbers, default=math.nan))

    def difference(self, a: Any = None, b: Any = None, *, method: str = "between_groups") -> Any:
        """Return the largest difference between groups, of a group to the overall value, or of two groups.

        Parameters
        ----------
        a, b : group, default=None
            The value of `a` less that of `b`, with its sign. None: as `method` says. One of its words in the
            place of `a`, with no `b`, is taken as the method, as fairlearn's first argument is.
        method : {"between_groups", "to_overall"}, default="between_groups"
            What is compared where no groups are named.

        Returns
        -------
        float or dict
            Of two groups a number of either sign, NaN if one is, or is publicly empty. Else at least 0: it
            errs upwards, the more the smaller a group is; groups that are NaN or publicly empty are left out,
            and it is NaN if all are. Costs nothing: `population_interval` and `noise_interval` tell how sure
            it is.

        Raises
        ------
        ValueError
            If the groups or the method are not known, or there is no overall value.
        """
        if b is None and isinstance(a, str) and a in _METHODS:
            a, method = None, a
        check_choice(method, "method", _METHODS)
        if a is not None or b is not None:
            if not (a in self._groups and b in self._groups):
                raise ValueError(f"Pass two of the groups: {', '.join(map(repr, self._groups))}.")
            return self._each(lambda entry: entry.less(a, b))
        return self._each(partial(Entry.difference, method=method))

    def ratio(self, method: str = "between_groups") -> Any:
        """Return the smallest ratio of two groups, or of a group and the overall value.

        Parameters
        ----------
        method : {"between_groups", "to_overall"}, default="between_groups"
            What is compared.

        Returns
        -------
        float or dict
            Between 0 and 1, for metrics that are at least 0; 1 where both are 0. It errs downwards. Groups
            that are NaN or publicly empty are left out; NaN if all are. Costs nothing.
        """
        check_choice(method, "method", _METHODS)
        return self._each(partial(Entry.ratio, method=method))

    def population_interval(
        self,
        metric: str | None = None,
        *,
        of: Any = "groups",
        confidence: float = 0.95,
        sure: bool = False,
        simultaneous: bool = False,
    ) -> Any:
        """Return limits of what groups, or the gap between them, are among all people like the records.

        They cost nothing, and allow for the noise and for which people became records. Where noise is all
        there is they are far apart: then the values say nothing.

        Parameters
        ----------
        metric : str or None, default=None
            The name of one of several metrics; None: of all that have such limits.
        of : {"groups", "overall", "difference", "ratio"} or pair of groups, default="groups"
            Of each group; of all records, where that is known; or of what `difference` or `ratio` returns,
            ("a", "b") of ``difference("a", "b")``.
        confidence : float, default=0.95
            Between 0 and 1. Of several groups or metrics each interval has it for itself, unless they are
            `simultaneous`; an interval of the difference or the ratio speaks of all groups at once.
        sure : bool, default=False
            True: proved limits only. False: approximate ones where they are known to hold, of differences,
            areas and means over labels; `about` says which.
        simultaneous : bool, default=False
            Whether all intervals that are returned, of groups and metrics, are to hold at once with this
            confidence, for which each has an equal part of the probability to miss.

        Returns
        -------
        Interval, dict of Interval, or dict of these
            With "groups" a dictionary from group to `Interval`, whose `note` says on how many records the
            value rests; else an `Interval`, whose `note` says which gap would be released if the groups were
            alike. For several metrics and None a dictionary of that by metric. Groups that are publicly empty
            are left out.

        Raises
        ------
        ValueError
            If there are none, with the reason, or an argument is invalid.
        TypeError
            If the values of groups cannot be compared.
        """
        return self._intervals(metric, of, confidence, sure, simultaneous, of_people=True)

    def noise_interval(
        self,
        metric: str | None = None,
        *,
        of: Any = "groups",
        confidence: float = 0.95,
        sure: bool = False,
        simultaneous: bool = False,
    ) -> Any:
        """Return limits of the exact metric of the groups of these records, or of the gap between them.

        They cost nothing, and allow for the noise alone: they say nothing of other people.

        Parameters
        ----------
        metric : str or None, default=None
            The name of one of several metrics; None: of all that have such limits.
        of : {"groups", "overall", "difference", "ratio"} or pair of groups, default="groups"
            As in `population_interval`.
        confidence : float, default=0.95
            As in `population_interval`.
        sure : bool, default=False
            True: proved limits only. False: approximate ones of areas; their note says so.
        simultaneous : bool, default=False
            As in `population_interval`.

        Returns
        -------
        Interval, dict of Interval, or dict of these
            As `population_interval` does. A limit that cannot be told is infinite or the end of the public
            range.

        Raises
        ------
        ValueError
            If there are none, with the reason, or an argument is invalid.
        TypeError
            If the values of groups cannot be compared.
        """
        return self._intervals(metric, of, confidence, sure, simultaneous, of_people=False)

    def _intervals(
        self,
        metric: str | None,
        of: Any,
        confidence: float,
        sure: bool,
        simultaneous: bool,
        *,
        of_people: bool,
    ) -> Any:
        asked, what = PopulationQuestion.of("", confidence, sure), check_what(of, self._groups)
        chosen = self._entries if metric is None else {metric: self._entry(metric)}
        together = 0
        if simultaneous:
            together = len(chosen) * (len(next(iter(chosen.values())).known) if what == "groups" else 1)
        found, refused = dict[str, Any](), list[Exception]()
        for name, entry in chosen.items():
            limits = GroupLimits(replace(asked, metric=entry.metric), entry, of_people, together)
            try:
                found[name] = limits.of(what)
            except (TypeError, ValueError) as error:
                refused.append(error)
        if not found:
            raise refused[0]
        return found if metric is None and not self._is_single else next(iter(found.values()))


def _numbers_of(key: str, entry: Entry) -> Iterator[Number]:
    """Return the numbers of a metric; none of one that is more than one number."""
    if not entry.is_number:
        return
    name = (key or entry.metric.removeprefix("private_").removesuffix("_score")).replace("_", " ")
    if (of_all := entry.overall).value is not None:
        limits = _limits(entry, GroupLimits.of, "overall")
        yield Number(name, float(of_all.value), name, of_all.note, of_all.bias, **limits)
    for group, cell in entry.groups.items():
        yield Number(
            f"{name} in {group_in_words(group)}", float(cell.value), name, cell.note, cell.bias,
            group=group, rests_on=cell.rests_on, **_limits(entry, GroupLimits.of_group, group),
        )  # fmt: skip
    yield from _gaps(name, entry, next((cell.note for cell in entry.known.values() if cell.note), None))


def _gaps(name: str, entry: Entry, note: str | None = None) -> Iterator[Number]:
    """Return how far groups differ in a metric."""
    for of, value in (("difference", entry.difference()), ("ratio", entry.ratio())):
        yield Number(f"{name} {of}", value, name, note, **_limits(entry, GroupLimits.of, of))


def _limits(entry: Entry, ask: Callable[..., Interval], of: Any) -> dict[str, Any]:
    """Return what has the limits of a number, as its arguments: those of records and of people are asked."""
    ends = partial(_range, entry, ask, of)
    return {"_noise": partial(ends, False), "_people": partial(ends, True)}


def _range(
    entry: Entry, ask: Callable[..., Interval], of: Any, of_people: bool, confidence: float
) -> Interval:
    asked = PopulationQuestion.of(entry.metric, confidence, sure=False)
    return ask(GroupLimits(asked, entry, of_people), of)


def _over_expected(groups: Sequence[Hashable], scores: Mapping[Hashable, ReleasedScores]) -> Iterator[Number]:
    """Return how many are positive over how many scores expect, of each group, and how far groups differ."""
    known = {group: number for group, one in scores.items() for number in over_expected_numbers(one)}
    if not known:
        return
    empty = Number("", math.nan, OVER_EXPECTED, frame_query.NO_RECORDS, rests_on=0)
    for group in groups:
        one = known.get(group, empty)
        yield replace(one, name=f"{one.metric} in {group_in_words(group)}", group=group)
    cells = {group: FrameCell(one.value, result=one) for group, one in known.items()}
    yield from _gaps(OVER_EXPECTED, Entry("observed_over_expected", cells, FrameCell(None)))


def group_in_words(group: Hashable) -> str:
    """Return how the name of a number calls a group."""
    return " and ".join(map(repr, group)) if isinstance(group, tuple) else repr(group)


def frame_of(result: FrameResult, epsilon: float) -> PrivateMetricFrame:
    """Return the frame of a result, which cost so much."""
    frame = object.__new__(PrivateMetricFrame)
    frame._show(result, epsilon)
    return frame


def restored_frame(asked: ByName, form: ByName, results: Results) -> PrivateMetricFrame:
    """Return a stored release again."""
    options, shape = asked["options"], read_shape(form["shape"])
    groups = Groups.of(options["group_labels"], len(shape.arguments) - 2)
    query = frame_query.query_of_frame(
        [FrameMetric(**one) for one in options["metrics"]],
        shape,
        replace(groups, sizes=form["sizes"]),
        overall_share=frame_query.check_frame(
            options["membership"], options["overall_share"], relation=shape.relation
        ),
    )
    return frame_of(query.combine(results(query)), float(asked["epsilon"]))
