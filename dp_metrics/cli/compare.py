"""`dp-metrics compare` and `dp-metrics interval`: what a file of predictions says of all people like these.

The order is that of `dp-metrics score`: what is public is checked first, then the whole file is read and
checked, then epsilon is spent, then the numbers are drawn. The columns are held in memory.
"""

import argparse
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from dp_metrics.accounting import PrivacyAccountant
from dp_metrics.cli._common import CommandError, add_option, keywords, mistakes, refusals, several
from dp_metrics.cli._output import add_payer, interval_fields, print_json, printed, terms
from dp_metrics.cli.predictions import (
    ColumnSpec,
    Kind,
    Predictions,
    Progress,
    add_file,
    column_of,
    options_of,
)
from dp_metrics.cli.score import bought, check_name
from dp_metrics.inference.comparison import (
    Comparison,
    comparison_options,
    comparison_query,
    paired_losses,
    private_compare,
)
from dp_metrics.inference.loss_intervals import (
    population_release,
    private_mean_interval,
    private_quantile_interval,
)
from dp_metrics.inputs.arrays import Shape
from dp_metrics.inputs.options import Relation
from dp_metrics.inputs.readers import asked_of_persons
from dp_metrics.metrics import row_of
from dp_metrics.release.release import Release
from dp_metrics.release.released import Interval
from dp_metrics.release.terms import Terms

T = TypeVar("T", bound="Comparison | Interval")

_RELATION = Relation.REPLACE_ONE.value
_MODELS = ("pred_a", "pred_b")


def _bought(
    typed: argparse.Namespace,
    columns: Mapping[str, ColumnSpec],
    function: Callable[..., T],
    arguments: Mapping[str, Any],
    public: Mapping[str, Any],
    check: Callable[[Predictions], object],
) -> tuple[T, PrivacyAccountant | None]:
    """Return what a function gives for these columns, and the budget that paid for it.

    Parameters
    ----------
    typed : Namespace
        The file, the cost and the budget.
    columns : mapping of str to ColumnSpec
        The columns of each argument.
    function : callable
        The function.
    arguments : mapping
        Its other arguments.
    public : mapping
        The same, without columns, as the function describes its question to the budget.
    check : callable
        Raises if the public forms of the columns do not fit the arguments.
    """
    check_name(typed)
    paid = keywords(typed, "epsilon", "spend_name")

    def asked(budget: PrivacyAccountant, of_records: Mapping[str, Any]) -> Release:
        terms = Terms.of(**paid, accountant=budget)
        return population_release(function.__name__, terms, {**of_records, **public})

    def prepared(records: Predictions) -> Callable[[PrivacyAccountant | None, Progress], T]:
        check(records)

        def draw(budget: PrivacyAccountant | None, progress: Progress) -> T:
            data = records.whole(progress)
            with refusals():
                return function(**data, **arguments, **paid, accountant=budget)

        return draw

    return bought(typed, columns, asked, prepared)


def _compare(typed: argparse.Namespace) -> None:
    with mistakes():
        row, fixed = row_of(typed.loss, "loss")
        persons = asked_of_persons(typed.groups, typed.max_records)
    if len(row.data) == 1:
        raise CommandError(f"{row.name} is of one column: compare takes a loss of --y-true and predictions")
    options = {**fixed, **options_of(row, typed.option)}
    arguments = keywords(typed, "max_difference", "confidence")
    columns = {"y_true": column_of(row, row.data[0], typed.y_true, options)}
    columns |= {name: column_of(row, row.data[1], getattr(typed, name), options) for name in _MODELS}
    of_persons = keywords(typed, "max_records") if persons else {}
    of_each = {"groups": ColumnSpec([typed.groups], Kind.LABEL)} if persons else {}

    def check(records: Predictions) -> None:
        forms = records.forms()
        shape = Shape(tuple(forms[name] for name in columns))
        with mistakes():
            comparison_query(paired_losses(row.name, shape, options), None, **arguments)

    found, budget = _bought(
        typed, columns | of_each, private_compare, {"loss": row.name, **arguments, **of_persons, **options},
        {**comparison_options(row.name, options, **arguments), **of_persons}, check,
    )  # fmt: skip
    models = keywords(typed, *_MODELS)
    fields = {"metric": private_compare.__name__, "spend_name": typed.spend_name, "neighboring": _RELATION}
    about = f"A is {', '.join(typed.pred_a)}; B is {', '.join(typed.pred_b)}"
    _show(found, {**fields, **models, **found.to_dict(), "better": found.better}, typed, budget, about)


def _show(
    found: Comparison | Interval,
    fields: Mapping[str, Any],
    typed: argparse.Namespace,
    budget: PrivacyAccountant | None,
    *about: str,
) -> None:
    """Print what was released: as JSON these fields; else its cost, what it is about, and its sentence."""
    with printed():
        if typed.json:
            print_json(fields, budget)
            return
        n = getattr(found, "n", None)
        print(f"{fields['metric']} {terms(float(typed.epsilon), _RELATION, budget, n)}")
        print(*about, found, sep="\n")


def _interval(typed: argparse.Namespace) -> None:
    public = keywords(typed, "max_loss", "confidence")
    function: Callable[..., Interval] = private_quantile_interval
    if typed.q is not None:
        public["q"] = typed.q
        if typed.cap is not None:
            raise CommandError("--cap is of the mean: an interval for a quantile needs no cap")
    else:
        function, public["cap"] = private_mean_interval, typed.cap
        if (typed.max_loss is None) == (typed.cap is None):
            raise CommandError(
                "an interval for the mean needs --max-loss, a public cap, or --cap private, which buys one; "
                "one for --quantile Q needs none"
            )
    columns = {"losses": ColumnSpec([typed.losses], Kind.NUMBER)}
    # all that is public was checked as it was typed
    found, budget = _bought(typed, columns, function, public, public, lambda records: None)
    fields = {"metric": function.__name__, "epsilon": float(typed.epsilon), "spend_name": typed.spend_name}
    about = {"neighboring": _RELATION, "about": found.about, "estimate": found.estimate}
    _show(found, {**fields, **about, **(interval_fields(found) or {})}, typed, budget)


def add_compare(parser: argparse.ArgumentParser) -> None:
    """Describe the command and its options."""
    parser.description = (
        "Tell which of two models, A and B, is better on the records of a file, with epsilon-differential "
        "privacy: on more records, by a sign test; or, with --max-difference, by the mean loss. What is "
        "checked when, and what the exit codes say, is as for `score`."
    )
    add_file(parser)
    for name in ("y_true", *_MODELS):
        add_option(parser, private_compare, name, **several(metavar="COL"))
    add_option(parser, private_compare, "loss")
    add_option(parser, private_compare, "groups", metavar="COL")
    for name in ("max_records", "max_difference", "confidence"):
        add_option(parser, private_compare, name)
    option = 'public option of the loss, such as bounds=[0,100] or labels=["no","yes"]'
    parser.add_argument("--option", action="append", default=[], metavar="NAME=VALUE", help=option)
    add_payer(parser, private_compare)
    parser.set_defaults(run=_compare)


def add_interval(parser: argparse.ArgumentParser) -> None:
    """Describe the command and its options."""
    parser.description = (
        "Release an interval for the mean, or a quantile, of a loss among all people like the records of a "
        "file, one record per person, with epsilon-differential privacy. For a metric that `score` releases, "
        "`score --interval people` costs nothing more."
    )
    add_file(parser)
    add_option(parser, private_mean_interval, "losses", "--column", metavar="COL")
    add_option(parser, private_quantile_interval, "max_loss")
    add_option(parser, private_mean_interval, "confidence")
    add_option(parser, private_mean_interval, "cap", choices=["private"])
    add_option(parser, private_quantile_interval, "q", "--quantile", required=False)
    add_payer(parser, private_mean_interval)
    parser.set_defaults(run=_interval)
