"""Commands that release something of a file: `dp-metrics score`, `evaluate`, `compare` and `interval`.

The options of each are the parameters of a public function, some of which are columns of the file. The order
is that of every release: what is public is checked first (options, column names, the budget), then the whole
file is read and checked, then epsilon is spent, then the number is drawn. A metric that a summary knows is
summarised chunk by chunk, in bounded memory; all else, and what has weights or persons, is read whole. The
result is the same, to the bit for the same randomness, as that of the function with the same columns.
"""

import sys
import warnings
from argparse import Namespace
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

from dp_metrics._packages import import_extra
from dp_metrics.accounting import PrivacyAccountant
from dp_metrics.cli import CommandError, Parser, files, tell
from dp_metrics.cli.demonstration import add_data, demonstrate, writable
from dp_metrics.cli.files import Column, Columns, Predictions
from dp_metrics.cli.show import add_limits, add_payer, opened_budget, printed, refusals, show
from dp_metrics.cli.words import SEVERAL, add_option, add_options, flag, given, metrics_typed, value_of
from dp_metrics.exceptions import PrivacyBudgetError
from dp_metrics.fairness.frame import PrivateMetricFrame
from dp_metrics.inference.comparison import private_compare
from dp_metrics.inference.loss_intervals import private_mean_interval, private_quantile_interval
from dp_metrics.inputs.options import ByName, Function, check_confidence
from dp_metrics.metrics import Metric, row_of
from dp_metrics.metrics.summary import Summary
from dp_metrics.page.page import PrivateEvaluation, check_folder, private_evaluate
from dp_metrics.release.query import Terms
from dp_metrics.release.result import Result, with_result
from dp_metrics.release.stored import PER_RECORD, WEIGHTS

_NO_RECORD, _NOTHING = "Found array with 0 sample", 5e-324
_WHETHER_SPENT = "`dp-metrics budget` shows whether epsilon was spent"


def release(
    typed: Namespace,
    name: str,
    call: Function,
    columns: Columns,
    *,
    summarise: Function | None = None,
    check: Callable[[Predictions], object] = lambda records: None,
    write: Callable[[Any], object] = lambda released: None,
) -> Any:
    """Print a release, stored or new, and return it: the one path of all commands.

    Parameters
    ----------
    typed : Namespace
        The file, what the release costs, and who pays.
    name : str
        What the function is called.
    call : callable
        Returns the release, of the columns by their names, the settings and `epsilon`, `accountant` and
        `spend_name`.
    columns : mapping of str to sequence of Column
        The columns of each argument.
    summarise : callable or None, default=None
        The same, of records that come in chunks.
    check : callable, default=nothing
        Raises for what would be refused whatever the records are.
    write : callable, default=nothing
        Writes the release to files, before it is printed: its reader may go away (`| head`).
    """
    if sys.stdout is None:
        raise CommandError("standard output is closed: nobody would see what is paid for")
    for package in ("pyarrow", "tqdm"):
        import_extra(package, "cli")
    with _silent_about_data(), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("ignore")
        records = Predictions(typed.predictions, columns, typed.delimiter, typed.decimal)
        try:  # what is wrong with an option is wrong where there is no record, and before anything is paid
            check(records)
            call(**records.no_records(), epsilon=typed.epsilon, accountant=PrivacyAccountant(_NOTHING))
        except PrivacyBudgetError:
            pass
        except (TypeError, ValueError) as error:
            if not str(error).startswith(_NO_RECORD):
                raise CommandError(str(error)) from None
        budget = opened_budget(typed)
        warnings.simplefilter("always", UserWarning)  # the package's own, which tell public things
        paid = {"epsilon": typed.epsilon, "accountant": budget, "spend_name": typed.spend_name}
        of_each = None
        with refusals():
            if budget is not None and typed.spend_name in budget:  # what is stored, or why it is not served
                is_public = vars(typed).get("membership") == ["public"]
                of_each = PER_RECORD | ({"sensitive_features"} if is_public else set())
            if of_each is None and summarise is not None:
                released = summarise(records, **paid)
            else:
                released = call(**records.whole(of_each), **paid)
    for warning in caught:
        tell("warning", warning.message)
    with printed():
        try:
            write(released)
        finally:
            show(released, name, typed, budget)
    return released


@contextmanager
def _silent_about_data() -> Iterator[None]:
    """Show neither the message nor the traceback of what nobody expected: they could quote the data."""
    try:
        yield
    except (CommandError, OSError, ImportError):
        raise
    except MemoryError:
        raise CommandError(f"there is too little memory for these columns; {_WHETHER_SPENT}") from None
    except Exception as error:
        raise CommandError(
            f"internal error (please report): {type(error).__name__}; its message is hidden because it may "
            f"quote the data; {_WHETHER_SPENT}"
        ) from None


def _columns_of(typed: Namespace, row: Metric, options: ByName) -> Columns:
    """Return how the columns of a metric are read: as labels or as numbers, as it and its labels tell."""
    has_labels = "labels" in row.options
    named = files.columns_typed(typed)
    labelled = named if row.predicts_labels else ["y_true"] if has_labels else []
    return files.columns_of(named, labelled, options.get("labels") if has_labels else ())


# Groups


def _add_groups(parser: Parser) -> None:
    """Add the options of groups.

    Options
    -------
    sensitive_features
        columns of groups: metrics of each group, or of each combination of them
    group_labels
        public labels of these groups; repeated for each column
    """
    add_option(parser, _add_groups, "sensitive_features", "--sensitive-features", "--sensitive")
    more = {"nargs": "+", "action": "append", "default": [], "metavar": "LABEL"}
    add_option(parser, _add_groups, "group_labels", **more)


def _groups(typed: Namespace) -> tuple[dict[str, Any], ...]:
    """Return the columns of groups, and their labels."""
    features = getattr(typed, "sensitive_features", ())
    if len(features) != len(typed.group_labels):
        raise CommandError(
            "--group-labels is needed once for each column of --sensitive-features, in their order: labels "
            "of groups are public, and never read from the data"
        )
    if not features:
        return {}, {}
    labels = [[*value_of(words, "group_labels")] for words in typed.group_labels]
    columns = [Column(name, known) for name, known in zip(features, labels, strict=True)]
    return {"sensitive_features": columns}, {"group_labels": labels[0] if len(labels) == 1 else labels}


# score

_PREDICTED = ("--y-pred", "--y-proba", "--y-prob", "--y-score")


def add_score(parser: Parser) -> None:
    """Release one metric of a file of predictions with epsilon-differential privacy.

    The whole file is checked first, then epsilon is spent, then the number is drawn: exit code 4, with
    nothing spent, if the data or the budget refuse it, 2 if it can't be done as it was asked for.

    Options
    -------
    metric
        'dp-metrics metrics' lists them; with a name, --help shows its columns and options
    """
    row = metrics_typed(parser, "--metric", "mse")[-1]
    add_option(parser, add_score, "metric", required=True, metavar="NAME")
    files.add_file(parser)
    add_options(parser, row.function, **{row.data[-1]: _PREDICTED if len(row.data) == 2 else ["--column"]})
    _add_groups(parser)
    add_limits(parser)
    add_payer(parser, row.function)


def run_score(typed: Namespace) -> None:
    """Print a metric, or a metric by group."""
    row, fixed = row_of(typed.metric)
    options = fixed | given(typed, row.function)
    check_confidence(given(typed, Result.noise_interval).get("confidence", 0.95))
    settings = {"neighboring": options.pop("neighboring")} if "neighboring" in options else {}
    groups, labels = _groups(typed)
    columns = _columns_of(typed, row, options)
    if groups:
        if len(row.data) == 1 or "sample_weight" in columns:
            raise CommandError("--sensitive-features needs --y-true and --y-pred, and no --sample-weight")
        if "sure" in typed.interval:
            raise CommandError("--interval sure is of all records: for groups ask for people, or for noise")
        of_persons = {name: options.pop(name) for name in PER_RECORD & options.keys()}
        metrics = partial(row.function, **options)
        framed = partial(PrivateMetricFrame, metrics=metrics, **labels, **settings, **of_persons)
        named = {"y_pred" if name == row.data[1] else name: read for name, read in columns.items()}
        release(typed, row.name, framed, named | groups)
    else:
        _release_metric(typed, row, options, settings, columns)


def _release_metric(
    typed: Namespace, row: Metric, options: dict[str, Any], settings: dict[str, Any], columns: Columns
) -> None:
    """Print a metric: of a summary of all chunks where it has one, else of all records at once."""
    if row.mechanism is not None:
        # the question is that of the function
        settings["mechanism"] = options.pop("mechanism", row.mechanism)
    # two stages of distances need all values, and a summary has but its capacity of them
    has_stages = row.usual.are_distances and settings["mechanism"] == "adaptive"
    merges = row.usual.merges and not has_stages and not columns.keys() & {*WEIGHTS}

    def check(records: Predictions) -> None:
        terms = Terms.of(epsilon=typed.epsilon, **settings)
        n = None if terms.relation.private_n else sys.maxsize
        row.planned(records.shape(row.data, n), options).most_ranks(terms)

    def summarise(records: Predictions, **paid: Any) -> Any:
        terms = Terms.of(**settings, **paid)
        summary = Summary(row.function, **options).expecting(records.shape(row.data), terms)
        for chunk in chain([records.no_records()], records.chunks()):
            summary.update(*[chunk[name] for name in row.data])
        return summary.released(terms)

    call = with_result(partial(row.function, **options, **settings))
    release(typed, row.name, call, columns, summarise=summarise if merges else None, check=check)


# evaluate

_WRITERS = {
    ".html": PrivateEvaluation.to_html,
    ".md": PrivateEvaluation.to_markdown,
    ".json": PrivateEvaluation.to_json,
}
_EXIT_CODES = {"pass": 0, "fail": 1, "cannot tell": 3}
_PREDICTIONS = {"y_pred", "y_proba", "y_score"}
_OF_DEMONSTRATION = frozenset(("dataset", "data_dir", "epsilon", "output", "json", "about", "run"))
"""What may be typed, or has a default, where there is no file."""


def add_evaluate(parser: Parser) -> None:
    """Release one page about a model from a file of its predictions.

    It tells how good, for whom, how sure, which is better, what is left, for one epsilon. Without a file:
    train models of public data, and release their metrics privately beside the exact ones, with every
    mechanism.

    Options
    -------
    y_true
        column of the true labels or targets
    requirements
        requirement such as 'recall>=0.8': exit code 0 if all pass, 1 if one fails, 3 if nothing tells
    about
        of whom requirements speak: all people like these (default), or these records
    output
        the page (.html, .md or .json; default: evaluation.html); folder of the demonstration
    folder
        new folder for CSV, PNG, JSON, Markdown and checksums of the page, for output checkers
    format
        meds: the columns as MEDS has them: boolean_value, predicted_boolean_probability,
        predicted_boolean_value, subject_id
    """
    own = partial(add_option, parser, add_evaluate)
    files.add_file(parser, "?")
    own("y_true")
    own("requirements", "--require", "--requirements", **SEVERAL, metavar="REQUIREMENT")
    own("about", choices=["people", "records"], default="people")
    _add_groups(parser)
    add_options(parser, private_evaluate)
    several = "privacy parameter of the page: 0.5, or 1/3 exactly; several in the demonstration"
    add_payer(parser, private_evaluate, nargs="+", required=False, help=several)
    add_data(parser)
    own("output", type=Path, metavar="PATH")
    own("folder", type=Path, metavar="PATH")
    own("format", choices=["meds"])


def run_evaluate(typed: Namespace) -> int:
    """Write a page and print its numbers, or demonstrate one; return what requirements say."""
    if typed.predictions is None:
        for name, words in vars(typed).items():
            if words and name not in _OF_DEMONSTRATION:
                raise CommandError(f"{flag(name)} needs a file of predictions: dp-metrics evaluate FILE ...")
        demonstrate(typed)
        return 0
    if typed.dataset:
        raise CommandError("--dataset is of the demonstration, which needs no file of predictions")
    if len(typed.epsilon or ()) != 1:
        raise CommandError("--epsilon is needed once: what the page costs")
    (typed.epsilon,) = typed.epsilon
    output = _output(typed)
    columns, options = _page_of(typed)

    def page_of(y_true: Any, **more: Any) -> Any:
        return private_evaluate(y_true, **options, **more)

    def write(page: PrivateEvaluation) -> None:
        _WRITERS[output.suffix.lower()](page, output)
        if typed.folder:
            page.to_folder(typed.folder)

    page = release(typed, private_evaluate.__name__, page_of, columns, write=write)
    with printed():
        if not typed.json:
            print(f"\npage written to {' and '.join(map(str, filter(None, (output, typed.folder))))}")
    if "requirements" not in options:
        return 0
    found = page.check(about=typed.about)
    if not typed.json:
        print(f"{found!r}\nall requirements: {found.answer}")
    return _EXIT_CODES[found.answer]


def _page_of(typed: Namespace) -> tuple[Columns, dict[str, Any]]:
    """Return the columns of a page, and its options."""
    groups, group_labels = _groups(typed)
    named, options = files.columns_typed(typed), given(typed, private_evaluate) | group_labels
    if typed.format == "meds":  # a column that is named counts more than the format
        there = Predictions(typed.predictions, {}, typed.delimiter, typed.decimal).there
        taken = {*named, *(_PREDICTIONS if named.keys() & _PREDICTIONS else ())}
        named |= {name: [one] for name, one in files.MEDS.items() if name not in taken and one in there}
    predictions = named.keys() & _PREDICTIONS
    if "y_true" not in named or not predictions:
        raise CommandError("a page needs --y-true, and --y-pred, --y-score or --y-proba")
    if predictions == {"y_pred"} and not options.keys() & {"labels", "task"}:
        raise CommandError(
            "--y-pred alone does not tell whether it holds labels or targets: add --labels LABEL ... for "
            "labels, all that there may be, or --task regression for targets; probabilities are passed by "
            "--y-score or --y-proba"
        )
    # a baseline is what the first of the predictions is
    labelled = ["y_true", "y_pred", *(["baseline"] if "y_pred" in named else [])]
    return files.columns_of(named, labelled, options.get("labels")) | groups, options


def _output(typed: Namespace) -> Path:
    """Return where the page goes, if it can be written there, before anything is spent."""
    path = typed.output or Path("evaluation.html")
    suffix = path.suffix.lower()
    if suffix not in _WRITERS:
        raise CommandError(f"--output takes a file that ends in {', '.join(_WRITERS)}, not {path}")
    needed = {"jinja2", "matplotlib"} if suffix == ".html" else set[str]()
    if typed.folder is not None:
        needed |= {"matplotlib", "pandas"}
        check_folder(typed.folder)
    for package in sorted(needed):
        import_extra(package, "report")
    return writable(path)


# compare and interval


def add_compare(parser: Parser) -> None:
    """Tell which of two models, A and B, is better on a file, with epsilon-differential privacy.

    On more records, by a sign test; or, with --max-difference, by the mean loss. What is checked when, and
    what the exit codes say, is as for `score`.
    """
    files.add_file(parser)
    add_options(parser, private_compare)
    for row in metrics_typed(parser, "--loss", "zero_one"):
        if len(row.data) == 2:  # any other loss is refused, whatever its options are
            add_options(parser, row.function, row.options.keys() - {*WEIGHTS, "normalize"})
    add_payer(parser, private_compare)


def run_compare(typed: Namespace) -> None:
    """Print which model is better."""
    asked = given(typed, private_compare)
    row, fixed = row_of(asked.pop("loss", "zero_one"), "loss")
    options = fixed | given(typed, row.function)
    call = partial(private_compare, **{**options, **asked, "loss": row.name})
    release(typed, private_compare.__name__, call, _columns_of(typed, row, options))


def add_interval(parser: Parser) -> None:
    """Release an interval for the mean, or a quantile, of a loss, with epsilon-differential privacy.

    It is about all people like the records of a file, one record per person. For a metric that `score`
    releases, `score --interval people` costs nothing more.
    """
    files.add_file(parser)
    add_options(parser, private_mean_interval, losses=["--column"])
    add_option(parser, private_quantile_interval, "q", "--quantile", required=False)
    add_payer(parser, private_mean_interval)


def run_interval(typed: Namespace) -> None:
    """Print an interval for a mean or a quantile."""
    function = private_quantile_interval if "q" in typed else private_mean_interval
    if "q" in typed and "cap" in typed:
        raise CommandError("--cap is of the mean: an interval for a quantile needs no cap")
    call = partial(function, **given(typed, function))
    release(typed, function.__name__, call, files.columns_of(files.columns_typed(typed)))
