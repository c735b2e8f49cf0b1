"""`dp-metrics score`: one private number about a file of predictions.

The order is that of every release: what is public is checked first (options, column names, the budget), then
the whole file is read and checked, then epsilon is spent, then the number is drawn. A metric that a summary
knows is summarised chunk by chunk, in bounded memory; any other is read whole. The result is the same, to the
bit for the same randomness, as that of the function with the same columns.
"""

import argparse
import sys
import warnings
from collections.abc import Callable, Container, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

from dp_metrics._packages import import_extra
from dp_metrics.accounting import PrivacyAccountant
from dp_metrics.cli._common import CommandError, Refused, add_json, epsilon, several, tell
from dp_metrics.cli._output import show_frame, show_result
from dp_metrics.cli._streamed import summary_of
from dp_metrics.cli._typed_options import group_labels, options_of
from dp_metrics.cli.budget import known_budget, open_budget, refusals
from dp_metrics.cli.metrics import parameters
from dp_metrics.cli.predictions import ColumnSpec, Kind, Predictions, open_predictions
from dp_metrics.fairness.frame import PrivateMetricFrame, frame_settings
from dp_metrics.inputs.labels import LabelSet
from dp_metrics.inputs.shape import Shape
from dp_metrics.mechanisms import MECHANISMS
from dp_metrics.metrics import FUNCTIONS, Metric, row_of
from dp_metrics.metrics._catalogue import WEIGHTS
from dp_metrics.release.result import PrivateResult
from dp_metrics.release.with_result import with_result

__all__ = ["ScoreRequest", "add_score", "release", "summarising"]

_LARGEST_WHOLE = 2**53
_SENSITIVE = "sensitive_features"
_IF_LABELS_ARE_TEXT = " (for labels that are text, pass --option labels=[...])"
_IF_GROUPS_ARE_TEXT = " (for groups that are text, --group-labels must be text)"
_WHETHER_SPENT = "`dp-metrics budget` shows whether epsilon was spent"


@dataclass(frozen=True)
class ScoreRequest:
    """The metric, its cost and its options, all of them public.

    Parameters
    ----------
    row : Metric
        The metric.
    epsilon : float
        What it may cost.
    options : dict
        Public options of the metric.
    settings : dict
        Mechanism, neighbouring relation and name of the spend, where they were given.
    groups : list or None
        The labels of the sensitive column; None: no frame by group.
    """

    row: Metric
    epsilon: float
    options: dict[str, Any]
    settings: dict[str, Any]
    groups: list[Any] | None = None


def release(
    request: ScoreRequest,
    records: Predictions,
    summary: Any,
    accountant: PrivacyAccountant | None,
    progress: Callable[[float], object],
    random_state: Any = None,
) -> PrivateResult[Any] | PrivateMetricFrame:
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
    random_state : None, int, RandomState or Generator
        For tests: anything but None is not private.
    """
    row = request.row
    paid = {
        **request.settings,
        "epsilon": request.epsilon,
        "accountant": accountant,
        "random_state": random_state,
    }
    if summary is not None:
        for chunk in chain([records.no_records()], records.chunks(progress)):
            weights = {name: array for name, array in chunk.items() if name == "sample_weight"}
            with refusals():
                summary.update(*(chunk[name] for name in row.data), **weights)
        with refusals():
            released: PrivateResult[Any] = summary.released_as(
                row, **{**row.options, **request.options}, **paid
            )
        return released
    columns = records.whole(progress)
    with refusals():
        if request.groups is None:
            one: PrivateResult[Any] = with_result(FUNCTIONS[row.name])(**columns, **request.options, **paid)
            return one
        return PrivateMetricFrame(
            metrics=_frame_metric(request, paid),
            y_true=columns[row.data[0]],
            y_pred=columns[row.data[1]],
            sensitive_features=columns[_SENSITIVE],
            group_labels=request.groups,
            **paid,
        )


def stored_release(
    request: ScoreRequest, given: Container[str], accountant: PrivacyAccountant | None
) -> PrivateResult[Any] | PrivateMetricFrame | None:
    """Return the release that the budget has of this request, before the file is opened; None if it has none.

    Parameters
    ----------
    request : ScoreRequest
        What to release.
    given : container of str
        Which arguments have a column.
    accountant : PrivacyAccountant or None
        Budget that pays.
    """
    if accountant is None or "spend_name" not in request.settings:
        return None
    row, paid = request.row, {**request.settings, "epsilon": request.epsilon, "accountant": accountant}
    try:
        if request.groups is not None:
            metric = _frame_metric(request, paid)
            settings = frame_settings(metric, group_labels=request.groups, random_state=None, **paid)
        else:
            weights = {name: True if name in given else None for name in WEIGHTS if name in row.options}
            settings = row.settings(**paid, options={**row.options, **request.options, **weights})
    except (ValueError, TypeError) as error:
        raise CommandError(str(error)) from None
    with refusals():
        found: PrivateResult[Any] | PrivateMetricFrame | None = settings.stored()
        return found


def _frame_metric(request: ScoreRequest, paid: dict[str, Any]) -> Callable[..., Any]:
    """Return the metric of a frame, with the mechanism, which is taken from the settings of the release."""
    chosen = {name: paid.pop(name) for name in ("mechanism",) if name in paid}
    return partial(FUNCTIONS[request.row.name], **request.options, **chosen)


def summarising(request: ScoreRequest, records: Predictions) -> Any:
    """Return the empty summary of `release`, or None; a bad option fails here."""
    row, forms = request.row, records.forms()
    by_record = {name: True for name in WEIGHTS if name in forms}
    shape = Shape(tuple(forms[name] for name in row.data))
    try:
        summary = summary_of(row, {**request.options, **by_record}, request.settings, request.epsilon, shape)
        if request.groups is not None:
            LabelSet.of(request.groups, "group_labels")
        return None if request.groups is not None else summary
    except (ValueError, TypeError) as error:
        raise CommandError(str(error)) from None


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
        kind = _kind(row, argument, request.options)
        are_labels = _holds_labels(row, argument)
        specs[argument] = ColumnSpec(columns, kind, _IF_LABELS_ARE_TEXT if are_labels else "")
    for argument, column in (("sample_weight", typed.sample_weight), ("groups", typed.groups)):
        if column is None:
            continue
        option = f"--{argument.replace('_', '-')}"
        if request.groups is not None:
            raise CommandError(f"--sensitive and {option} can't be used together")
        if argument not in row.options:
            because = f": {row.refused[argument]}" if argument in row.refused else ""
            raise CommandError(f"{row.name} takes no {option}{because}")
        specs[argument] = ColumnSpec([column], Kind.NUMBER if argument == "sample_weight" else Kind.NAME)
    if request.groups is not None:
        kind = _kind_of_labels(request.groups, "--group-labels")
        specs[_SENSITIVE] = ColumnSpec([typed.sensitive], kind, _IF_GROUPS_ARE_TEXT)
    return specs


def _kind(row: Metric, argument: str, options: Mapping[str, Any]) -> Kind:
    """Return how a column is read, which follows from the metric and from public labels alone."""
    if not _holds_labels(row, argument):
        return Kind.NUMBER
    if "labels" not in row.options:
        return Kind.NAME
    return _kind_of_labels(options.get("labels"), "labels")


def _holds_labels(row: Metric, argument: str) -> bool:
    return row.predicts_labels or ("labels" in row.options and argument == row.data[0])


def _kind_of_labels(labels: Any, name: str) -> Kind:
    known = labels if isinstance(labels, list | tuple) else []
    if any(isinstance(label, str) for label in known):
        return Kind.TEXT
    if any(isinstance(label, int | float) and abs(label) >= _LARGEST_WHOLE for label in known):
        raise CommandError(f"{name}: write numbers as large as these in quotation marks, as text")
    return Kind.NUMBER


def _request(typed: argparse.Namespace) -> ScoreRequest:
    try:
        row, fixed = row_of(typed.metric)
    except ValueError as error:
        raise CommandError(str(error)) from None
    takes = parameters(row)
    settings: dict[str, Any] = {}
    for name in ("mechanism", "neighboring", "spend_name"):
        value = getattr(typed, name)
        if value is None:
            continue
        if name not in takes:
            raise CommandError(f"{row.name} takes no --{name.replace('_', '-')}")
        settings[name] = value
    if (typed.sensitive is None) != (typed.group_labels is None):
        raise CommandError(
            "--sensitive and --group-labels belong together: the labels of groups are public, and never read "
            "from the data"
        )
    groups = None if typed.sensitive is None else group_labels(typed.group_labels)
    if groups is not None and len(row.data) == 1:
        raise CommandError(f"{row.name} takes no --sensitive: it needs a metric of --y-true and --y-pred")
    if "spend_name" in settings and not settings["spend_name"].isprintable():
        raise CommandError("--spend-name takes one line of printable text")
    return ScoreRequest(row, typed.epsilon, fixed | options_of(row, typed.option), settings, groups)


@contextmanager
def _progress(name: str) -> Iterator[Callable[[float], object]]:
    """Show which part of the file has been read; the number of rows may be private, so it is not shown."""
    tqdm = import_extra("tqdm", "cli").tqdm
    form = "{desc}: {percentage:3.0f}%|{bar}| {elapsed}<{remaining}"
    # None shows the bar on a terminal only; there may be no standard error
    off = True if sys.stderr is None else None
    with tqdm(total=1.0, desc=name, bar_format=form, file=sys.stderr, disable=off, leave=False) as bar:
        yield bar.update


def _score(typed: argparse.Namespace) -> None:
    if sys.stdout is None:
        raise CommandError("standard output is closed: nobody would see what is paid for")
    for package in ("pyarrow", "tqdm"):
        import_extra(package, "cli")
    request = _request(typed)
    columns = _columns(typed, request)
    with _silent_about_data(), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", UserWarning)  # the package's own, which tell public things
        budget = known_budget(typed.budget, typed.total)
        released = stored_release(request, columns, budget)
        if released is None:
            records = open_predictions(typed.predictions, columns)
            summary = summarising(request, records)
            budget = open_budget(typed.budget, typed.total, request.epsilon)
            with _progress(typed.predictions.name) as progress:
                released = release(request, records, summary, budget, progress)
    for warning in caught:
        tell("warning", warning.message)
    try:
        if isinstance(released, PrivateResult):
            show_result(released, budget, as_json=typed.json)
        else:
            name = request.settings.get("spend_name")
            show_frame(released, request.row.name, name, budget, as_json=typed.json)
        sys.stdout.flush()
    except OSError as error:  # a full disk, or a reader that went away
        with suppress(OSError):
            sys.stdout.close()  # the end of the process would complain again
        raise CommandError(f"epsilon was spent, but the result can't be written: {error.strerror}") from None


@contextmanager
def _silent_about_data() -> Iterator[None]:
    """Show neither the message nor the traceback of what nobody expected: they could quote the data."""
    try:
        yield
    except (CommandError, Refused, OSError):
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
    parser.add_argument("predictions", type=Path, metavar="PREDICTIONS", help="file: .csv, .parquet or .pq")
    parser.add_argument("--metric", required=True, metavar="NAME", help="`dp-metrics metrics` lists them")
    parser.add_argument("--y-true", **columns, help="column of the true values or labels, or one per output")
    names = ("--y-pred", "--y-proba", "--y-prob", "--y-score")
    parser.add_argument(
        *names, **columns, dest="y_pred", help="column of the predictions, or one per label or output"
    )
    one = "column of a metric of one column, such as private_mean"
    parser.add_argument("--column", **columns, help=one)
    parser.add_argument(
        "--epsilon", type=epsilon, required=True, metavar="E", help="privacy parameter: what it costs"
    )
    parser.add_argument("--budget", type=Path, metavar="FILE", help="budget file that pays for it")
    total = "total of the budget, which creates the file if there is none; else it must be the same"
    parser.add_argument("--total", type=epsilon, metavar="T", help=total)
    option = 'public option of the metric, such as bounds=[0,100], average=macro or labels=["no","yes"]'
    parser.add_argument("--option", action="append", default=[], metavar="NAME=VALUE", help=option)
    weight = "column of public weights, where the metric takes them"
    parser.add_argument("--sample-weight", metavar="COL", help=weight)
    groups = "column of person ids: protects people with several records"
    parser.add_argument("--groups", metavar="COL", help=groups)
    parser.add_argument("--sensitive", metavar="COL", help="column of groups: the metric of each of them")
    labels = "public labels of these groups"
    parser.add_argument("--group-labels", nargs="+", metavar="LABEL", help=labels)
    mechanisms = f"one of {', '.join(MECHANISMS)} (default: that of the metric)"
    parser.add_argument("--mechanism", choices=[*MECHANISMS], metavar="NAME", help=mechanisms)
    relations = ("replace_one", "add_or_remove_one")
    relation = "what one person can change: replace_one (default) or add_or_remove_one"
    parser.add_argument("--neighboring", choices=relations, metavar="RELATION", help=relation)
    parser.add_argument("--spend-name", metavar="TEXT", help="name in the history of the budget; public")
    add_json(parser)
    parser.set_defaults(run=_score)
