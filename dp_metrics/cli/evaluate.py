"""`dp-metrics evaluate`: one page about the model whose predictions a file holds.

The order is that of `dp-metrics score`: what is public is checked first, then the whole file is read and
checked, then epsilon is spent, then the page is made and written. Without a file: a demonstration.
"""

import argparse
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from dp_metrics._packages import import_extra
from dp_metrics.accounting import PrivacyAccountant
from dp_metrics.cli._common import (
    CommandError,
    add_option,
    keywords,
    label_reader,
    mistakes,
    refusals,
    several,
)
from dp_metrics.cli._output import add_payer, printed, terms
from dp_metrics.cli.catalogue import add_data, demonstrate
from dp_metrics.cli.predictions import (
    ColumnSpec,
    Grouping,
    Kind,
    Predictions,
    Progress,
    add_dialect,
    add_groups,
    column_of_labels,
    group_labels,
)
from dp_metrics.cli.score import bought, check_name
from dp_metrics.inputs.options import NEIGHBORING
from dp_metrics.page.numbers import parsed
from dp_metrics.page.page import PrivateEvaluation, page_release, private_evaluate
from dp_metrics.page.setting import Setting, kinds_of
from dp_metrics.release.release import Release
from dp_metrics.release.released import biases_in_words
from dp_metrics.release.terms import Terms

_WRITERS: Mapping[str, Callable[[PrivateEvaluation], str]] = {
    ".html": PrivateEvaluation.to_html,
    ".md": PrivateEvaluation.to_markdown,
    ".json": PrivateEvaluation.to_json,
}
_OF_A_FILE = ("y_true", "y_pred", "y_score", "y_proba", "labels", "sensitive", "group_labels", "baseline",
              "task", "budget", "total", "spend_name", "require", "bounds")  # fmt: skip
_OPEN = (
    "--y-pred alone does not tell whether it holds labels or targets: add --labels LABEL ... for labels, all "
    "that there may be, or --task regression for targets; probabilities are passed by --y-score or --y-proba"
)
_EXIT_CODES = {"pass": 0, "fail": 1, "cannot tell": 2}
_PREDICTIONS = ("y_pred", "y_proba", "y_score")


def _evaluate(typed: argparse.Namespace) -> int:
    if typed.predictions is None:
        for name in _OF_A_FILE:
            if getattr(typed, name):
                option = name.replace("_", "-")
                raise CommandError(f"--{option} needs a file of predictions: dp-metrics evaluate FILE ...")
        demonstrate(typed)
        return 0
    if typed.dataset:
        raise CommandError("--dataset is of the demonstration, which needs no file of predictions")
    return _page(typed)


def _page(typed: argparse.Namespace) -> int:
    if len(typed.epsilon or ()) != 1:
        raise CommandError("--epsilon is needed once: what the page costs")
    typed.epsilon = typed.epsilon[0]
    check_name(typed)
    with mistakes():
        required = parsed(typed.require)
    output = _output(typed)
    groups = Grouping.typed(typed)
    columns, options = _columns(typed, groups), _options(typed, groups)
    paid = keywords(typed, "epsilon", "neighboring", "spend_name")

    def asked(budget: PrivacyAccountant | None, public: Mapping[str, Any]) -> Release:
        data = {name: one for name, one in public.items() if name == "y_true"}
        with mistakes():
            return page_release(_setting(typed, options), Terms.of(**paid, accountant=budget), data)

    asked(None, {})  # what is wrong with an option is said before a file is opened

    def prepared(records: Predictions) -> Callable[[PrivacyAccountant | None, Progress], PrivateEvaluation]:
        def draw(budget: PrivacyAccountant | None, progress: Progress) -> PrivateEvaluation:
            whole = records.whole(progress)
            with refusals():
                page: PrivateEvaluation = private_evaluate(
                    whole["y_true"],
                    **{name: whole[name] for name in (*_PREDICTIONS, "baseline") if name in whole},
                    sensitive_features=groups.features(whole),
                    **options,
                    **paid,
                    task=typed.task,
                    accountant=budget,
                )
            return page

        return draw

    page, budget = bought(typed, columns, asked, prepared)
    page.with_budget(budget)
    with printed():
        _print(page, budget, as_json=typed.json)
        output.write_text(_WRITERS[output.suffix.lower()](page), encoding="utf-8")
        if not typed.json:
            print(f"\npage written to {output}")
    return _checked(page, required, typed) if required else 0


def _output(typed: argparse.Namespace) -> Path:
    """Return where the page goes, if it can be written there, before anything is spent."""
    path: Path = typed.output or Path("evaluation.html")
    suffix = path.suffix.lower()
    if suffix not in _WRITERS:
        raise CommandError(f"--output takes a file that ends in {', '.join(_WRITERS)}, not {path}")
    for package in ("jinja2", "matplotlib") if suffix == ".html" else ():
        import_extra(package, "report")
    is_new = not path.exists()
    try:
        with path.open("a", encoding="utf-8"):
            pass
        if is_new:  # nothing stays where the page is refused
            path.unlink()
    except OSError as error:
        raise CommandError(f"can't write to {path}: {error.strerror or error}") from error
    return path


def _columns(typed: argparse.Namespace, groups: Grouping) -> dict[str, ColumnSpec]:
    """Return the columns of each argument, and how they are read."""
    given = _predictions(typed)
    if not typed.y_true or not given:
        raise CommandError("a page needs --y-true, and --y-pred, --y-score or --y-proba")
    labels = partial(column_of_labels, labels=_labels(typed))
    scores = partial(ColumnSpec, kind=Kind.NUMBER, is_named=True)
    specs = {"y_true": labels([typed.y_true])}
    specs |= {name: (labels if name == "y_pred" else scores)(columns) for name, columns in given.items()}
    if typed.baseline:  # is what the first of them is
        specs["baseline"] = replace(specs[next(iter(given))], columns=typed.baseline)
    return specs | groups.specs()


def _predictions(typed: argparse.Namespace) -> dict[str, list[str]]:
    """Return the columns of predictions, by the names of the arguments."""
    given = {name: getattr(typed, name) for name in _PREDICTIONS if getattr(typed, name)}
    return {name: [found] if isinstance(found, str) else found for name, found in given.items()}


def _labels(typed: argparse.Namespace) -> list[Any] | None:
    return None if typed.labels is None else group_labels(typed.labels, "--labels")


def _options(typed: argparse.Namespace, groups: Grouping) -> dict[str, Any]:
    """Return the public options of the page."""
    known = _labels(typed)
    positive = typed.pos_label
    if positive is not None:
        there = known or [0, 1]
        positive = label_reader(there)(typed.pos_label)
        if positive not in there:
            names = ", ".join(map(str, there))
            raise CommandError(f"--pos-label {typed.pos_label} is not one of the labels: {names}")
    return {
        "labels": known,
        "pos_label": positive,
        "bounds": None if typed.bounds is None else tuple(typed.bounds),
        "group_labels": groups.group_labels,
        **keywords(typed, "threshold", "n"),
    }


def _setting(typed: argparse.Namespace, options: Mapping[str, Any]) -> Setting:
    """Return the setting of the page that these arguments ask for."""
    given = {name: len(columns) for name, columns in _predictions(typed).items()}
    kinds = [*kinds_of(given, options["labels"], typed.task, _OPEN).values()]
    other = ["baseline"] if typed.baseline else []
    columns = ("y_true", *kinds, *other, *["feature"] * len(typed.sensitive))
    return Setting(columns=columns, baseline=kinds[0] if other else None, **options)


def _print(page: PrivateEvaluation, budget: PrivacyAccountant | None, *, as_json: bool) -> None:
    """Print the numbers, or all of the page as JSON."""
    if as_json:
        print(page.to_json())
        return
    print(f"private_evaluate {terms(page.epsilon, page.evaluated.relation, budget, page.n)}")
    width = max(map(len, page))
    for number in page.numbers.values():
        print(f"  {number.name.ljust(width)}  {number.value:.4g}{'  (mostly noise)' if number.note else ''}")
    for told in biases_in_words({number.name: number.bias for number in page.numbers.values()}):
        print(told)
    for one in page.plan.left_out:
        print(f"left out: {one.about}. {one.why}")


def _checked(page: PrivateEvaluation, required: Mapping[str, Any], typed: argparse.Namespace) -> int:
    """Print whether the requirements are met, and return the exit code."""
    with mistakes():
        found = page.check(required, about=typed.about)
    if not typed.json:
        print(f"{found!r}\nall requirements: {found.answer}")
    return _EXIT_CODES[found.answer]


def add_evaluate(parser: argparse.ArgumentParser) -> None:
    """Describe the command and its options."""
    parser.description = (
        "Release one page about a model from a file of its predictions: how good, for whom, how sure, which "
        "is better, what is left, for one epsilon. Without a file: train models of public data, and release "
        "their metrics privately beside the exact ones, with every mechanism."
    )
    file = "file: .csv, .parquet or .pq; none for the demonstration"
    parser.add_argument("predictions", type=Path, nargs="?", metavar="PREDICTIONS", help=file)
    add_dialect(parser)
    parser.add_argument("--y-true", metavar="COL", help="column of the true labels or targets")
    for name in ("y_pred", "y_score"):
        add_option(parser, private_evaluate, name, metavar="COL")
    for name in ("y_proba", "baseline"):
        add_option(parser, private_evaluate, name, nargs="+", metavar="COL")
    add_option(parser, private_evaluate, "labels", nargs="+")
    add_option(parser, private_evaluate, "task", choices=["regression", "classification"])
    add_option(parser, private_evaluate, "bounds", nargs=2, metavar=("LOW", "HIGH"))
    add_groups(parser)
    add_option(parser, private_evaluate, "neighboring", choices=NEIGHBORING)
    for name in ("pos_label", "threshold", "n"):
        add_option(parser, private_evaluate, name)
    cost = "privacy parameter of the page: 0.5, or 1/3 exactly; several in the demonstration"
    add_payer(parser, private_evaluate, **several(required=False, help=cost))
    required = "requirement such as 'recall>=0.8': exit code 0 if all pass, 1 if one fails, else 2"
    parser.add_argument("--require", **several(default=[]), metavar="REQUIREMENT", help=required)
    about = "of whom requirements speak: all people like these (default), or these records"
    parser.add_argument("--about", choices=["people", "records"], default="people", help=about)
    add_data(parser)
    output = "the page (.html, .md or .json; default: evaluation.html); folder of the demonstration"
    parser.add_argument("--output", type=Path, metavar="PATH", help=output)
    parser.set_defaults(run=_evaluate)
