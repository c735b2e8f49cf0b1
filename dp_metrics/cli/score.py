"""`dp-metrics score`: one private number about a file of predictions.

The order is that of every release: what is public is checked first (options, column names, the budget), then
the whole file is read and checked, then epsilon is spent, then the number is drawn. A metric that a summary
knows is summarised chunk by chunk, in bounded memory; any other is read whole. The result is the same, to the
bit for the same randomness, as that of the function with the same columns.
"""

import argparse
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from typing import Any, TypeVar

from dp_metrics._packages import import_extra
from dp_metrics.accounting import PrivacyAccountant
from dp_metrics.cli._common import CommandError, Refusal, add_option, mistakes, refusals, several, tell
from dp_metrics.cli._output import (
    INTERVALS,
    Limits,
    Payer,
    add_payer,
    printed,
    show_frame,
    show_result,
)
from dp_metrics.cli.catalogue import parameters
from dp_metrics.cli.predictions import (
    ColumnSpec,
    Grouping,
    Kind,
    Predictions,
    Progress,
    add_file,
    add_groups,
    column_of,
    dialect_of,
    open_predictions,
    options_of,
)
from dp_metrics.fairness.frame import PrivateMetricFrame, frame_release
from dp_metrics.fairness.frame_query import FrameOptions
from dp_metrics.fairness.groups import Groups
from dp_metrics.inputs.arrays import Shape
from dp_metrics.inputs.options import NEIGHBORING
from dp_metrics.mechanisms import MECHANISMS
from dp_metrics.metrics import FUNCTIONS, Metric, row_of
from dp_metrics.metrics._metric import WEIGHTS
from dp_metrics.metrics.regression import private_mse
from dp_metrics.metrics.summary import Summary
from dp_metrics.quantities.variance import VarianceOf
from dp_metrics.release.release import Release
from dp_metrics.release.result import Result, with_result
from dp_metrics.release.stored_questions import PER_RECORD, public_records
from dp_metrics.release.terms import Terms

T = TypeVar("T")

_WHETHER_SPENT = "`dp-metrics budget` shows whether epsilon was spent"


@dataclass(frozen=True)
class ScoreRequest:
    """The metric, its cost and its options, all of them public.

    Parameters
    ----------
    row : Metric
        The metric.
    options : dict
        Public options of the metric.
    settings : dict
        What it costs; mechanism, neighbouring relation and name of the spend, where they were given.
    groups : Grouping
        The sensitive columns; none: no frame by group.
    """

    row: Metric
    options: dict[str, Any]
    settings: dict[str, Any]
    groups: Grouping


def release(
    request: ScoreRequest,
    records: Predictions,
    summary: Any,
    accountant: PrivacyAccountant | None,
    progress: Progress,
) -> Result[Any] | PrivateMetricFrame:
    """Read and check all records, spend, and draw.

    Parameters
    ----------
    request : ScoreRequest
        What to release.
    records : Predictions
        The file.
    summary : Summary or None
        An empty one, which is to hold the records; None: they are needed all at once.
    accountant : PrivacyAccountant or None
        Budget that pays.
    progress : callable
        Is told which part of the file has been read.
    """
    row = request.row
    paid = {**request.settings, "accountant": accountant}
    if summary is not None:
        for chunk in chain([records.no_records()], records.chunks(progress)):
            weights = {name: array for name, array in chunk.items() if name == "sample_weight"}
            with refusals():
                summary.update(*(chunk[name] for name in row.data), **weights)
        with refusals():
            released: Result[Any] = summary.released(
                Terms.of(**paid),
                of_records=lambda: public_records(records.public(lambda part: None)),
            )
        return released
    columns = records.whole(progress)
    with refusals():
        if not request.groups.columns:
            one: Result[Any] = with_result(FUNCTIONS[row.name])(**columns, **request.options, **paid)
            return one
        return PrivateMetricFrame(
            metrics=_frame_metric(request, paid),
            y_true=columns[row.data[0]],
            y_pred=columns[row.data[1]],
            sensitive_features=request.groups.features(columns),
            group_labels=request.groups.group_labels,
            **paid,
        )


def asked_release(request: ScoreRequest, accountant: PrivacyAccountant, public: Mapping[str, Any]) -> Release:
    """Return the release that is asked for, which a budget may have already.

    Parameters
    ----------
    request : ScoreRequest
        What to release.
    accountant : PrivacyAccountant
        Budget that pays.
    public : mapping
        What is public of each record; see `Predictions.public`.
    """
    row, paid = request.row, {**request.settings, "accountant": accountant}
    data = {name: public[name] for name in row.data}
    with mistakes():
        if request.groups.columns:
            metric = _frame_metric(request, paid)
            return frame_release(FrameOptions(metric, request.groups.group_labels), Terms.of(**paid), data)
        options = {**row.options, **request.options}
        options |= {name: value for name, value in public.items() if name in PER_RECORD}
        return row.release_on(Terms.of(**paid), options, data)


def _frame_metric(request: ScoreRequest, paid: dict[str, Any]) -> Callable[..., Any]:
    """Return the metric of a frame, with the mechanism, which is taken from the settings of the release."""
    chosen = {name: paid.pop(name) for name in ("mechanism",) if name in paid}
    return partial(FUNCTIONS[request.row.name], **request.options, **chosen)


def summarising(request: ScoreRequest, records: Predictions) -> Summary | None:
    """Return the empty summary of `release`, or None if all records are needed; a bad option fails here.

    A release from a summary has the bits of a call with all records.
    """
    row, forms = request.row, records.forms()
    by_record = {name: True for name in WEIGHTS if name in forms}
    shape = Shape(tuple(forms[name] for name in row.data))
    options = {**request.options, **by_record}
    with mistakes():
        asked = row.release_on(Terms.of(**request.settings), options)
        # of as many records as may be any option can be released, if their number is public
        plan = row.planned(replace(shape, n=None if asked.terms.relation.private_n else sys.maxsize), options)
        # two stages need all values of a variance, and a summary has but its capacity of them
        mechanism = request.settings.get("mechanism", row.mechanism)
        has_stages = VarianceOf in plan.kinds and mechanism == "adaptive"
        of_records = {name: value for name, value in options.items() if name not in PER_RECORD}
        can_merge = plan.merges and not has_stages and options.get("groups") is None
        summary = Summary(row.function, **of_records).expecting(shape, asked.terms) if can_merge else None
        if not request.groups.columns:
            return summary
        Groups.of(request.groups.group_labels, len(request.groups.columns))
        return None


def _columns(typed: argparse.Namespace, request: ScoreRequest) -> dict[str, ColumnSpec]:
    """Return the columns of each argument, and how they are read."""
    row = request.row
    given: tuple[tuple[str, list[str] | None], ...] = (("--y-true", typed.y_true), ("--y-pred", typed.y_pred))
    unused: tuple[tuple[str, list[str] | None], ...] = (("--column", typed.column),)
    if len(row.data) == 1:
        given, unused = unused, given
    for option, columns in unused:
        if columns:
            raise CommandError(f"{row.name} takes no {option}, but {' and '.join(name for name, _ in given)}")
    specs = {}
    for argument, (option, columns) in zip(row.data, given, strict=True):
        if not columns:
            raise CommandError(f"{row.name} needs {option}, the column of {argument}")
        specs[argument] = column_of(row, argument, columns, request.options)
    for argument, column in (("sample_weight", typed.sample_weight), ("groups", typed.groups)):
        if column is None:
            continue
        option = f"--{argument.replace('_', '-')}"
        if request.groups.columns:
            raise CommandError(f"--sensitive and {option} can't be used together")
        if argument not in row.options:
            because = f": {row.refused[argument]}" if argument in row.refused else ""
            raise CommandError(f"{row.name} takes no {option}{because}")
        specs[argument] = ColumnSpec([column], Kind.NUMBER if argument == "sample_weight" else Kind.LABEL)
    return specs | request.groups.specs()


def check_name(typed: argparse.Namespace) -> None:
    """Raise if the name of the spend could not be shown in a history."""
    if typed.spend_name is not None and not typed.spend_name.isprintable():
        raise CommandError("--spend-name takes one line of printable text")


def _request(typed: argparse.Namespace) -> ScoreRequest:
    with mistakes():
        row, fixed = row_of(typed.metric)
    takes = parameters(row)
    settings: dict[str, Any] = {"epsilon": typed.epsilon}
    check_name(typed)
    for name in ("mechanism", "neighboring", "spend_name"):
        value = getattr(typed, name)
        if value is None:
            continue
        if name not in takes:
            raise CommandError(f"{row.name} takes no --{name.replace('_', '-')}")
        settings[name] = value
    if bool(typed.sensitive) != bool(typed.group_labels):
        raise CommandError(
            "--sensitive and --group-labels belong together: the labels of groups are public, and never read "
            "from the data"
        )
    groups = Grouping.typed(typed)
    if groups.columns and len(row.data) == 1:
        raise CommandError(f"{row.name} takes no --sensitive: it needs a metric of --y-true and --y-pred")
    if "mechanism" in takes and not groups.columns:
        settings.setdefault("mechanism", takes["mechanism"].default)  # the question is that of the function
    return ScoreRequest(row, fixed | options_of(row, typed.option), settings, groups)


@contextmanager
def _progress(name: str) -> Iterator[Progress]:
    """Show which part of the file has been read; the number of rows may be private, so it is not shown."""
    tqdm = import_extra("tqdm", "cli").tqdm
    form = "{desc}: {percentage:3.0f}%|{bar}| {elapsed}<{remaining}"
    # None shows the bar on a terminal only; there may be no standard error
    off = True if sys.stderr is None else None
    with tqdm(total=1.0, desc=name, bar_format=form, file=sys.stderr, disable=off, leave=False) as bar:
        yield bar.update


def bought(
    typed: argparse.Namespace,
    columns: Mapping[str, ColumnSpec],
    asked: Callable[[PrivacyAccountant, Mapping[str, Any]], Release],
    prepared: Callable[[Predictions], Callable[[PrivacyAccountant | None, Progress], T]],
) -> tuple[T, PrivacyAccountant | None]:
    """Return a release, stored or new, and the budget that paid for it: the one path of all commands.

    Parameters
    ----------
    typed : Namespace
        The file, the cost and the budget.
    columns : mapping of str to ColumnSpec
        The columns of each argument.
    asked : callable
        Returns the release that is asked of a budget, given what is public of the records.
    prepared : callable
        Checks all that is public of a file, and returns what reads and checks its records, spends and draws.
    """
    if sys.stdout is None:
        raise CommandError("standard output is closed: nobody would see what is paid for")
    for package in ("pyarrow", "tqdm"):
        import_extra(package, "cli")
    payer = Payer.typed(typed)
    with _silent_about_data(), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", UserWarning)  # the package's own, which tell public things
        released, budget = None, payer.known()
        records = open_predictions(typed.predictions, columns, dialect_of(typed))
        if budget is not None and typed.spend_name in budget:
            with _progress(typed.predictions.name) as progress:
                public = records.public(progress)
            with refusals():
                released = asked(budget, public).stored()
        if released is None:
            draw = prepared(records)
            budget = payer.opened(typed.epsilon)
            with _progress(typed.predictions.name) as progress:
                released = draw(budget, progress)
    for warning in caught:
        tell("warning", warning.message)
    return released, budget


def _score(typed: argparse.Namespace) -> None:
    request = _request(typed)
    columns = _columns(typed, request)

    def prepared(records: Predictions) -> Callable[[PrivacyAccountant | None, Progress], Any]:
        summary = summarising(request, records)
        return lambda budget, progress: release(request, records, summary, budget, progress)

    released, budget = bought(typed, columns, partial(asked_release, request), prepared)
    limits = Limits(typed.interval, typed.confidence)
    with printed():
        if isinstance(released, Result):
            show_result(released, budget, limits, as_json=typed.json)
        else:
            name = request.settings.get("spend_name")
            show_frame(released, request.row.name, name, budget, limits, as_json=typed.json)


@contextmanager
def _silent_about_data() -> Iterator[None]:
    """Show neither the message nor the traceback of what nobody expected: they could quote the data."""
    try:
        yield
    except (CommandError, Refusal, OSError):
        raise
    except MemoryError:
        raise CommandError(f"there is too little memory for these columns; {_WHETHER_SPENT}") from None
    except Exception as error:
        raise CommandError(
            f"internal error (please report): {type(error).__name__}; its message is hidden because it may "
            f"quote the data; {_WHETHER_SPENT}"
        ) from None


def add_score(parser: argparse.ArgumentParser) -> None:
    """Describe the command and its options."""
    parser.description = (
        "Release one metric of a file of predictions with epsilon-differential privacy. The "
        "whole file is checked first, then epsilon is spent, then the number is drawn: exit code 1, with "
        "nothing spent, if the data or the budget refuse it, 2 if it can't be done as it was asked for."
    )
    columns = several(metavar="COL")
    add_file(parser)
    parser.add_argument("--metric", required=True, metavar="NAME", help="`dp-metrics metrics` lists them")
    parser.add_argument("--y-true", **columns, help="column of the true values or labels, or one per output")
    names = ("--y-pred", "--y-proba", "--y-prob", "--y-score")
    predictions = "column of the predictions, or one per label or output"
    parser.add_argument(*names, **columns, dest="y_pred", help=predictions)
    one = "column of a metric of one column, such as private_mean"
    parser.add_argument("--column", **columns, help=one)
    add_payer(parser, private_mse)
    option = 'public option of the metric, such as bounds=[0,100], average=macro or labels=["no","yes"]'
    parser.add_argument("--option", action="append", default=[], metavar="NAME=VALUE", help=option)
    for name in ("sample_weight", "groups"):
        add_option(parser, private_mse, name, metavar="COL")
    add_groups(parser)
    interval = (
        "limits to show, which cost nothing: of the noise (default); of what the metric is among all people "
        "like these; the same, proved, which may be wider or missing"
    )
    parser.add_argument("--interval", **several(default=[]), choices=[*INTERVALS], help=interval)
    add_option(parser, Result.noise_interval, "confidence")
    mechanisms = f"one of {', '.join(MECHANISMS)} (default: that of the metric)"
    parser.add_argument("--mechanism", choices=[*MECHANISMS], metavar="NAME", help=mechanisms)
    add_option(parser, private_mse, "neighboring", choices=NEIGHBORING, default=None)
    parser.set_defaults(run=_score)
