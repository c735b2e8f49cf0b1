"""Commands that release something of a file: `dp-metrics score`, `evaluate`, `compare` and `interval`.

The options of each are the parameters of a public function, some of which are columns of the file. The order
is that of every release: what is public is checked first (options, column names, the budget), then the whole
file is read and checked, then epsilon is spent, then the number is drawn. A metric that a summary knows is
summarised chunk by chunk, in bounded memory; all else is read whole. The result is the same, to the bit for
the same randomness, as that of the function with the same columns.
"""

import argparse
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from dp_metrics._packages import import_extra
from dp_metrics.accounting import PrivacyAccountant
from dp_metrics.cli.demonstration import add_data, demonstrate
from dp_metrics.cli.files import (
    MEDS,
    ColumnSpec,
    Kind,
    Predictions,
    Progress,
    add_dialect,
    column_of,
    column_of_labels,
    columns_of_meds,
    open_predictions,
)
from dp_metrics.cli.show import Limits, add_limits, add_payer, opened_budget, printed, show
from dp_metrics.cli.words import (
    CommandError,
    Refusal,
    add_metric,
    add_option,
    add_options,
    given,
    mistakes,
    options_of,
    refusals,
    several,
    tell,
    told_as,
    typed_after,
    value_of,
)
from dp_metrics.exceptions import PrivacyBudgetError
from dp_metrics.fairness.frame import PrivateMetricFrame
from dp_metrics.inference.comparison import private_compare
from dp_metrics.inference.loss_intervals import private_mean_interval, private_quantile_interval
from dp_metrics.inputs.arrays import Shape
from dp_metrics.metrics import Metric, row_of
from dp_metrics.metrics.regression import private_mse
from dp_metrics.metrics.summary import Summary
from dp_metrics.page.folder import check_folder
from dp_metrics.page.page import PrivateEvaluation, private_evaluate
from dp_metrics.page.requirements import spelled
from dp_metrics.release.result import with_result
from dp_metrics.release.stored_questions import PER_RECORD, public_records
from dp_metrics.release.terms import Terms

Columns: TypeAlias = Mapping[str, ColumnSpec]
_FILE = "file: .csv, .parquet or .pq"
_NO_RECORD, _NOTHING = "Found array with 0 sample", 5e-324
_WHETHER_SPENT = "`dp-metrics budget` shows whether epsilon was spent"


@dataclass(frozen=True)
class Request:
    """What a command asks for.

    Parameters
    ----------
    call : callable
        Returns the release, of the columns by their names, the settings and `epsilon`, `accountant` and
        `spend_name`.
    columns : mapping of str to ColumnSpec
        The columns of each argument.
    summarise : callable or None, default=None
        The same, of records that come in chunks.
    check : callable, default=nothing
        Raises for what would be refused whatever the records are.
    """

    call: Callable[..., Any]
    columns: Columns
    summarise: Callable[..., Any] | None = None
    check: Callable[[Predictions], object] = lambda records: None


def bought(typed: argparse.Namespace, request: Request) -> tuple[Any, PrivacyAccountant | None]:
    """Return a release, stored or new, and the budget that paid for it: the one path of all commands."""
    if sys.stdout is None:
        raise CommandError("standard output is closed: nobody would see what is paid for")
    for package in ("pyarrow", "tqdm"):
        import_extra(package, "cli")
    paid = {"epsilon": typed.epsilon, "spend_name": typed.spend_name}
    with _silent_about_data(), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("ignore")
        marks = {"delimiter": typed.delimiter, "decimal": typed.decimal}
        records = open_predictions(typed.predictions, request.columns, **marks)
        try:  # what is wrong with an option is wrong where there is no record, and before anything is paid
            request.check(records)
            request.call(
                **records.no_records(), epsilon=typed.epsilon, accountant=PrivacyAccountant(_NOTHING)
            )
        except PrivacyBudgetError:
            pass
        except (TypeError, ValueError) as error:
            if not str(error).startswith(_NO_RECORD):
                raise CommandError(str(error)) from None
        budget = opened_budget(typed)
        warnings.simplefilter("always", UserWarning)  # the package's own, which tell public things
        with _progress(typed.predictions.name) as progress, refusals():
            if budget is not None and typed.spend_name in budget:  # what is stored, or why it is not served
                released = request.call(**records.public(progress), accountant=budget, **paid)
            elif request.summarise is not None:
                released = request.summarise(records, progress, accountant=budget, **paid)
            else:
                released = request.call(**records.whole(progress), accountant=budget, **paid)
    for warning in caught:
        tell("warning", warning.message)
    return released, budget


@contextmanager
def _progress(name: str) -> Iterator[Progress]:
    """Show which part of the file has been read; the number of rows may be private, so it is not shown."""
    form = "{desc}: {percentage:3.0f}%|{bar}| {elapsed}<{remaining}"
    settings = {"total": 1.0, "desc": name, "bar_format": form, "file": sys.stderr, "leave": False}
    # None shows the bar on a terminal only; there may be no standard error
    with import_extra("tqdm", "cli").tqdm(**settings, disable=True if sys.stderr is None else None) as bar:
        yield bar.update


@contextmanager
def _silent_about_data() -> Iterator[None]:
    """Show neither the message nor the traceback of what nobody expected: they could quote the data."""
    try:
        yield
    except (CommandError, Refusal, OSError, ImportError):
        raise
    except MemoryError:
        raise CommandError(f"there is too little memory for these columns; {_WHETHER_SPENT}") from None
    except Exception as error:
        raise CommandError(
            f"internal error (please report): {type(error).__name__}; its message is hidden because it may "
            f"quote the data; {_WHETHER_SPENT}"
        ) from None


def _add(
    parser: argparse.ArgumentParser,
    function: Callable[..., Any],
    *columns: str,
    run: Callable[..., Any],
    file: Mapping[str, Any] | None = None,
    cost: Mapping[str, Any] | None = None,
) -> None:
    """Add the file, the columns that a function takes, and who pays."""
    parser.add_argument("predictions", type=Path, metavar="PREDICTIONS", **{"help": _FILE, **(file or {})})
    add_dialect(parser)
    for name in columns:
        add_option(parser, function, name, **several(metavar="COL", default=None))
    add_payer(parser, function, **(cost or {}))
    parser.set_defaults(run=run)


# Groups


def _add_groups(parser: argparse.ArgumentParser) -> None:
    sensitive = "columns of groups: metrics of each group, or of each combination of them"
    flags = ("--sensitive-features", "--sensitive")
    parser.add_argument(*flags, **several(default=[], metavar="COL", help=sensitive))
    labels = "public labels of these groups; repeated for each column"
    parser.add_argument(
        "--group-labels", nargs="+", action="append", default=[], metavar="LABEL", help=labels
    )


def _groups(typed: argparse.Namespace) -> tuple[dict[str, ColumnSpec], dict[str, Any]]:
    """Return the columns of groups, each as an argument of its own, and their labels."""
    if len(typed.sensitive_features) != len(typed.group_labels):
        raise CommandError(
            "--group-labels is needed once for each column of --sensitive-features, in their order: labels "
            "of groups are public, and never read from the data"
        )
    labels = [[*value_of(words, "group_labels")] for words in typed.group_labels]
    if_text = " (for groups that are text, --group-labels must be text)"
    pairs = enumerate(zip(typed.sensitive_features, labels, strict=True))
    specs = {f"feature {place}": column_of_labels([name], known, if_text) for place, (name, known) in pairs}
    return specs, {"group_labels": labels[0] if len(labels) == 1 else labels} if specs else {}


def _with_features(call: Callable[..., Any], **columns: Any) -> Any:
    """Call a function of which one argument is a column of groups, or an array of several."""
    features = [columns.pop(name) for name in [*columns] if name.startswith("feature ")]
    # columns of texts and of numbers are one array, of objects
    if features:
        columns["sensitive_features"] = features[0] if len(features) == 1 else np.column_stack(features)
    return call(**columns)


# score


def add_score(parser: argparse.ArgumentParser, words: Sequence[str]) -> None:
    """Describe the command and its options."""
    parser.description = (
        "Release one metric of a file of predictions with epsilon-differential privacy. The whole file is "
        "checked first, then epsilon is spent, then the number is drawn: exit code 4, with nothing spent, if "
        "the data or the budget refuse it, 2 if it can't be done as it was asked for."
    )
    named = "`dp-metrics metrics` lists them; with a name, --help shows its options"
    parser.add_argument("--metric", required=True, metavar="NAME", help=named)
    _add(parser, private_mse, "y_true", "sample_weight", "groups", run=_score)
    predictions = "column of the predictions, or one per label or output"
    names = ("--y-pred", "--y-proba", "--y-prob", "--y-score")
    parser.add_argument(*names, **several(metavar="COL"), dest="y_pred", help=predictions)
    one = "column of a metric of one column, such as private_mean"
    parser.add_argument("--column", **several(metavar="COL", help=one))
    _add_groups(parser)
    add_limits(parser)
    add_metric(parser, typed_after(words, "--metric"))


def _score(typed: argparse.Namespace) -> None:
    with mistakes():
        row, fixed = row_of(typed.metric)
    options = fixed | options_of(typed, row)
    settings = {"neighboring": options.pop("neighboring")} if "neighboring" in options else {}
    groups, labels = _groups(typed)
    columns = _columns_of(typed, row, options, has_groups=bool(groups)) | groups
    if groups:
        metric = partial(row.function, **options)
        y_true, y_pred = row.data
        columns = {"y_true": columns.pop(y_true), "y_pred": columns.pop(y_pred), **columns}
        call = partial(_with_features, partial(PrivateMetricFrame, metrics=metric, **labels, **settings))
        request = Request(call, columns)
    else:
        if row.mechanism is not None:
            # the question is that of the function
            settings["mechanism"] = options.pop("mechanism", row.mechanism)
        summarise = partial(_summarised, row, options, settings) if _merges(row, settings, columns) else None
        metric = partial(row.function, **options, **settings)
        check = partial(_check, row, options, {"epsilon": typed.epsilon, **settings})
        request = Request(with_result(metric), columns, summarise, check)
    released, budget = bought(typed, request)
    show(released, row.name, typed, budget, Limits(typed.interval, typed.confidence))


def _check(
    row: Metric, options: Mapping[str, Any], settings: Mapping[str, Any], records: Predictions
) -> None:
    """Raise if a setting does not suit a metric with these options, of however many records."""
    forms, terms = records.forms(), Terms.of(**settings)
    row.release_on(terms, {**options, **dict.fromkeys(PER_RECORD & forms.keys(), True)})
    n = None if terms.relation.private_n else sys.maxsize
    row.planned(Shape(tuple(forms[name] for name in row.data), n), options).most_ranks(terms)


def _merges(row: Metric, settings: Mapping[str, Any], columns: Columns) -> bool:
    """Return whether records may come in chunks, with the bits of a call with all of them."""
    # two stages of distances need all values, and a summary has but its capacity of them
    has_stages = row.usual.are_distances and settings["mechanism"] == "adaptive"
    return row.usual.merges and not has_stages and "groups" not in columns


def _summarised(
    row: Metric,
    options: Mapping[str, Any],
    settings: Mapping[str, Any],
    records: Predictions,
    progress: Progress,
    **paid: Any,
) -> Any:
    """Return what a summary of all chunks of a file releases."""
    forms, terms = records.forms(), Terms.of(**settings, **paid)
    shape = Shape(tuple(forms[name] for name in row.data))
    summary = Summary(row.function, **options).expecting(shape, terms)
    weights: list[Any] = []
    for chunk in chain([records.no_records()], records.chunks(progress)):
        summary.update(*[chunk[name] for name in row.data], sample_weight=chunk.get("sample_weight"))
        weights.append(chunk.get("sample_weight"))
    if "sample_weight" not in forms:
        return summary.released(terms)
    public = np.concatenate(weights)  # of which the question holds a digest, as that of the function does
    return summary.released(terms, partial(public_records, {row.data[0]: public, "sample_weight": public}))


def _columns_of(
    typed: argparse.Namespace, row: Metric, options: Mapping[str, Any], *, has_groups: bool
) -> dict[str, ColumnSpec]:
    """Return the columns of each argument of a metric, and how they are read."""
    flags, unused = {"--y-true": typed.y_true, "--y-pred": typed.y_pred}, {"--column": typed.column}
    if len(row.data) == 1:
        flags, unused = unused, flags
    if has_groups and len(row.data) == 1:
        raise CommandError(f"{row.name} takes no --sensitive-features: it needs --column only")
    for option, columns in unused.items():
        if columns:
            raise CommandError(f"{row.name} takes no {option}, but {' and '.join(flags)}")
    specs = {}
    for argument, (option, columns) in zip(row.data, flags.items(), strict=True):
        if not columns:
            raise CommandError(f"{row.name} needs {option}, the column of {argument}")
        specs[argument] = column_of(row, argument, columns, options)
    for argument, kind in (("sample_weight", Kind.NUMBER), ("groups", Kind.LABEL)):
        columns, option = getattr(typed, argument), f"--{argument.replace('_', '-')}"
        if columns and has_groups:
            raise CommandError(f"--sensitive-features and {option} can't be used together")
        if columns and argument not in row.options:
            because = f": {row.refused[argument]}" if argument in row.refused else ""
            raise CommandError(f"{row.name} takes no {option}{because}")
        if columns:
            specs[argument] = ColumnSpec(columns, kind)
    return specs


# evaluate

_WRITERS: Mapping[str, Callable[[PrivateEvaluation], str]] = {
    ".html": PrivateEvaluation.to_html,
    ".md": PrivateEvaluation.to_markdown,
    ".json": PrivateEvaluation.to_json,
}
_OPEN = (
    "--y-pred alone does not tell whether it holds labels or targets: add --labels LABEL ... for labels, all "
    "that there may be, or --task regression for targets; probabilities are passed by --y-score or --y-proba"
)
_EXIT_CODES = {"pass": 0, "fail": 1, "cannot tell": 3}
_PREDICTIONS = ("y_pred", "y_proba", "y_score")
_OF_DEMONSTRATION = frozenset(("dataset", "data_dir", "epsilon", "output", "json", "about", "run"))
"""What may be typed, or has a default, where there is no file."""


def add_evaluate(parser: argparse.ArgumentParser, _words: Sequence[str]) -> None:
    """Describe the command and its options."""
    parser.description = (
        "Release one page about a model from a file of its predictions: how good, for whom, how sure, which "
        "is better, what is left, for one epsilon. Without a file: train models of public data, and release "
        "their metrics privately beside the exact ones, with every mechanism."
    )
    file = {"nargs": "?", "help": f"{_FILE}; none for the demonstration"}
    several_costs = "privacy parameter of the page: 0.5, or 1/3 exactly; several in the demonstration"
    cost = {"nargs": "+", "required": False, "help": several_costs}
    _add(parser, private_evaluate, *_PREDICTIONS, "baseline", "groups", run=_evaluate, file=file, cost=cost)
    parser.add_argument("--y-true", nargs=1, metavar="COL", help="column of the true labels or targets")
    _add_groups(parser)
    required = (
        "requirement such as 'recall>=0.8': exit code 0 if all pass, 1 if one fails, 3 if nothing tells"
    )
    parser.add_argument(
        "--require", dest="requirements", **several(default=None), metavar="REQUIREMENT", help=required
    )
    add_options(parser, private_evaluate, requirements="--require")
    about = "of whom requirements speak: all people like these (default), or these records"
    parser.add_argument("--about", choices=["people", "records"], default="people", help=about)
    add_data(parser)
    output = "the page (.html, .md or .json; default: evaluation.html); folder of the demonstration"
    parser.add_argument("--output", type=Path, metavar="PATH", help=output)
    folder = "new folder for CSV, PNG, JSON, Markdown and checksums of the page, for output checkers"
    parser.add_argument("--folder", type=Path, metavar="PATH", help=folder)
    meds = f"meds: of a Parquet file as MEDS has them, the columns {', '.join(MEDS.values())}"
    parser.add_argument("--format", choices=["meds"], help=meds)


def _evaluate(typed: argparse.Namespace) -> int:
    options = given(
        typed, private_evaluate, (*_PREDICTIONS, "baseline", "groups", "sensitive_features", "group_labels")
    )
    if typed.predictions is None:
        for name, words in vars(typed).items():
            if words and name not in _OF_DEMONSTRATION:
                option = "require" if name == "requirements" else name.replace("_", "-")
                raise CommandError(f"--{option} needs a file of predictions: dp-metrics evaluate FILE ...")
        demonstrate(typed)
        return 0
    if typed.dataset:
        raise CommandError("--dataset is of the demonstration, which needs no file of predictions")
    if len(typed.epsilon or ()) != 1:
        raise CommandError("--epsilon is needed once: what the page costs")
    (typed.epsilon,) = typed.epsilon
    with mistakes():
        required = spelled(options.get("requirements"))
    if typed.format == "meds":  # a column that is named counts more than the format
        named = {name for name in ("y_true", "groups", *_PREDICTIONS) if getattr(typed, name)}
        taken = named | ({*_PREDICTIONS} if named & {*_PREDICTIONS} else set())
        columns_there = columns_of_meds(typed.predictions)
        vars(typed).update({name: column for name, column in columns_there.items() if name not in taken})
    predictions = {name: getattr(typed, name) for name in _PREDICTIONS if getattr(typed, name)}
    if not typed.y_true or not predictions:
        raise CommandError("a page needs --y-true, and --y-pred, --y-score or --y-proba")
    if predictions.keys() == {"y_pred"} and not options.keys() & {"labels", "task"}:
        raise CommandError(_OPEN)
    output, (groups, labels) = _output(typed), _groups(typed)
    of_labels = partial(column_of_labels, labels=options.get("labels"))
    scores = partial(ColumnSpec, kind=Kind.NUMBER, is_named=True)
    columns = {name: (of_labels if name == "y_pred" else scores)(one) for name, one in predictions.items()}
    if typed.baseline:  # is what the first of them is
        columns["baseline"] = (of_labels if "y_pred" in columns else scores)(typed.baseline)
    if typed.groups:
        columns["groups"] = ColumnSpec(typed.groups, Kind.LABEL)

    def call(y_true: Any, **more: Any) -> Any:
        return _with_features(partial(private_evaluate, y_true, **options, **labels), **more)

    request = Request(call, {"y_true": of_labels(typed.y_true), **columns, **groups})
    page, budget = bought(typed, request)
    page.with_budget(budget)
    show(page, private_evaluate.__name__, typed, budget)
    with printed():
        output.write_text(_WRITERS[output.suffix.lower()](page), encoding="utf-8")
        if typed.folder:
            page.to_folder(typed.folder)
        if not typed.json:
            print(f"\npage written to {' and '.join(map(str, filter(None, (output, typed.folder))))}")
    if not required:
        return 0
    with mistakes():
        found = page.check(required, about=typed.about)
    if not typed.json:
        print(f"{found!r}\nall requirements: {found.answer}")
    return _EXIT_CODES[found.answer]


def _output(typed: argparse.Namespace) -> Path:
    """Return where the page goes, if it can be written there, before anything is spent."""
    path: Path = typed.output or Path("evaluation.html")
    suffix = path.suffix.lower()
    if suffix not in _WRITERS:
        raise CommandError(f"--output takes a file that ends in {', '.join(_WRITERS)}, not {path}")
    needed = {"jinja2", "matplotlib"} if suffix == ".html" else set[str]()
    if typed.folder is not None:
        needed |= {"matplotlib", "pandas"}
        with told_as(CommandError, FileExistsError):
            check_folder(typed.folder)
    for package in sorted(needed):
        import_extra(package, "report")
    is_new = not path.exists()
    try:
        path.open("a", encoding="utf-8").close()
        if is_new:  # nothing stays where the page is refused
            path.unlink()
    except OSError as error:
        raise CommandError(f"can't write to {path}: {error.strerror or error}") from error
    return path


# compare and interval

_MODELS = ("pred_a", "pred_b")


def add_compare(parser: argparse.ArgumentParser, words: Sequence[str]) -> None:
    """Describe the command and its options."""
    parser.description = (
        "Tell which of two models, A and B, is better on the records of a file, with epsilon-differential "
        "privacy: on more records, by a sign test; or, with --max-difference, by the mean loss. What is "
        "checked when, and what the exit codes say, is as for `score`."
    )
    _add(parser, private_compare, "y_true", *_MODELS, "groups", run=_compare)
    add_options(parser, private_compare)
    add_metric(parser, typed_after(words, "--loss", ["zero_one"]))


def _compare(typed: argparse.Namespace) -> None:
    columns = ("y_true", *_MODELS, "groups")
    for name in columns[:3]:
        if not getattr(typed, name):
            raise CommandError(f"a comparison needs --{name.replace('_', '-')} COL, a column of the file")
    asked = given(typed, private_compare, but=columns)
    with mistakes():
        row, fixed = row_of(asked.pop("loss", "zero_one"), "loss")
    if len(row.data) == 1:
        raise CommandError(f"{row.name} is of one column: compare takes a loss of --y-true and predictions")
    options = {**fixed, **options_of(typed, row, but=(*columns, *asked))}
    specs = {"y_true": column_of(row, row.data[0], typed.y_true, options)}
    specs |= {name: column_of(row, row.data[1], getattr(typed, name), options) for name in _MODELS}
    if typed.groups:
        specs["groups"] = ColumnSpec(typed.groups, Kind.LABEL)
    call = partial(private_compare, loss=row.name, **asked, **options)
    found, budget = bought(typed, Request(call, specs))
    models = {name: getattr(typed, name) for name in _MODELS}
    show(found, private_compare.__name__, typed, budget, more=models)


def add_interval(parser: argparse.ArgumentParser, _words: Sequence[str]) -> None:
    """Describe the command and its options."""
    parser.description = (
        "Release an interval for the mean, or a quantile, of a loss among all people like the records of a "
        "file, one record per person, with epsilon-differential privacy. For a metric that `score` releases, "
        "`score --interval people` costs nothing more."
    )
    _add(parser, private_mean_interval, run=_interval)
    add_option(parser, private_mean_interval, "losses", "--column", nargs=1, metavar="COL", required=True)
    add_option(parser, private_quantile_interval, "q", "--quantile")
    for function in (private_mean_interval, private_quantile_interval):
        add_options(parser, function, ("max_loss", "confidence", "cap"))


def _interval(typed: argparse.Namespace) -> None:
    function: Callable[..., Any] = private_quantile_interval if "q" in typed else private_mean_interval
    if "q" in typed and "cap" in typed:
        raise CommandError("--cap is of the mean: an interval for a quantile needs no cap")
    if "q" not in typed and ("max_loss" in typed) == ("cap" in typed):
        raise CommandError(
            "an interval for the mean needs --max-loss, a public cap, or --cap private, which buys one; "
            "one for --quantile Q needs none"
        )
    call = partial(function, **given(typed, function, but=("losses",)))
    columns = {"losses": ColumnSpec(typed.losses, Kind.NUMBER)}
    found, budget = bought(typed, Request(call, columns))
    show(found, function.__name__, typed, budget)
