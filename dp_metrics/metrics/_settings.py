"""The keywords that several metrics take: their types, their defaults, and what they mean.

A metric declares and describes what is its own. Its kind of settings has the rest, and both its signature and
its docstring are completed with them. Whatever a metric describes itself stays as it is.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from typing import Any, Required, TypeAlias, TypedDict, TypeVar, is_typeddict

from numpy.typing import ArrayLike

from dp_metrics._random import RandomState
from dp_metrics.accounting import PrivacyAccountant
from dp_metrics.inputs.options import ByName, Function, MultiOutput
from dp_metrics.mechanisms import Mechanism

F = TypeVar("F", bound=Function)
Bounds: TypeAlias = tuple[float, float] | None

# Of several entries for a name the first one counts whose words in brackets say something of the release:
# another parameter that it takes, or one of the words in `shares_docstring`. The last one has no words.


class Payment(TypedDict, total=False):
    """Keywords of every release.

    Parameters
    ----------
    epsilon : float
        Privacy parameter, > 0: smaller is more private and less accurate.
    accountant : PrivacyAccountant or None
        Budget that pays epsilon for this release, before it is drawn.
    random_state : None, int, RandomState or Generator
        None draws fresh randomness from the operating system. Anything else makes the release reproducible
        and therefore NOT private.
    spend_name : str or None
        The name of this release in the accountant's history; None: the name of the metric. A name of an
        earlier session returns what was released then, at no cost.

    Raises
    ------
    ValueError, TypeError
        If an input is invalid, as in scikit-learn, or an option, or if the accountant counts releases under
        another neighbouring relation.
    PrivacyBudgetError
        If the accountant has less than epsilon left; nothing is drawn.

    Warns
    -----
    SeededReleaseWarning
        If `random_state` is given.
    LargeEpsilonWarning
        If epsilon is above 10.
    NoisyReleaseWarning
        If public numbers alone tell that a release will be mostly noise.

    Notes
    -----
    Guarantee: replacing any one record{groups} changes
    the probability of any result by at most a factor exp(epsilon), given the model, the number of records and
    the arguments, which are public.
    """

    epsilon: Required[float]
    accountant: PrivacyAccountant | None
    random_state: RandomState
    spend_name: str | None


class Settings(Payment, total=False):
    """Keywords of a release of a variance.

    Parameters
    ----------
    neighboring [mechanism] : {"replace_one", "add_or_remove_one"}
        What one person can change: the contents of a record ("replace_one": their number is public), or
        whether it is there ("add_or_remove_one": less accurate, no weights or groups).
    neighboring : {"replace_one", "add_or_remove_one"}
        What one person can change: the contents of a record ("replace_one": their number is public), or
        whether it is there ("add_or_remove_one": less noise, as it changes one count, not two, and no
        groups).
    mechanism [geometric] : str or mechanism object
        "geometric" is the most accurate for a result that is as likely near one end of its range as near the
        other. The others are those of `private_mae`.
    mechanism [hazard] : str or mechanism object
        "hazard" or "above_threshold"; with a public limit ({limit}) also "geometric",
        "inverse_sensitivity", "piecewise_laplace" or "laplace"; or an object such as
        `AboveThreshold.paper()`.
    mechanism : str or mechanism object
        "adaptive" (usually too low if a few records have most of the loss), "hazard", "above_threshold"; with
        a public limit ({limit}) also "geometric", "inverse_sensitivity",
        "piecewise_laplace", "laplace"; or an object such as `AboveThreshold.paper()`. Name "geometric" if you
        know beforehand that about 3 / epsilon to 60 / epsilon records reach the limit and make most of the
        result: the default may miss them, and err up to 100 times as much.
    """

    neighboring: str
    mechanism: str | Mechanism


class MeanSettings(Settings, total=False):
    """Keywords of a release of means, and what the data of metrics are.

    Parameters
    ----------
    x : array-like of shape (n_samples,)
        One finite number per record.
    y_true [labels] : array-like of shape (n_samples,)
        True labels, each one of `labels`.
    y_true [of labels] : array-like of shape (n_samples,) or (n_samples, n_outputs)
        True labels: whole numbers, strings, dates, members of an `enum.Enum` or anything else that can be
        compared. Dates, times and durations are equal in any unit and container, a date and its midnight too;
        times with a time zone are refused beside times without. With several outputs a record is right if all
        of them are.
    y_true : array-like of shape (n_samples,) or (n_samples, n_outputs)
        True targets, finite.
    y_pred [labels] : array-like of shape (n_samples,)
        Labels predicted by a model that was not trained on these records, each one of `labels`.
    y_pred [of labels] : array-like of shape (n_samples,) or (n_samples, n_outputs)
        Labels predicted by a model that was not trained on these records.
    y_pred : array-like of shape (n_samples,) or (n_samples, n_outputs)
        Predictions of a model that was not trained on these records.
    y_proba [n_bins] : array-like of shape (n_samples,), (n_samples, 1) or (n_samples, 2)
        Probabilities of the positive class, in [0, 1]. Of two columns, such as those of `predict_proba`, the
        one of the positive class is used.
    y_proba : array-like of shape (n_samples,), (n_samples, 1) or (n_samples, n_classes)
        Probabilities in [0, 1], one column per label in sorted order as `predict_proba` gives them, or named
        by the labels in any order; a single column holds the probability of the second label. They are used
        as they are: rows need not sum to 1, and no warning tells whether they do.
    max_loss : float or None
        Public cap of one record's loss, in the units of the loss; larger losses are clipped to it. None:
        unbounded. Never read it from the data; how much it clips is private, so nothing warns. If a few
        losses reach it and make most of the result, see `mechanism`.
    normalize : bool
        If false, return the sum over the records: the private mean times the public total weight.
    ddof : float
        Delta degrees of freedom, as in `numpy.var`: the private population variance times n / (n - ddof).
        Must be below the public n.
    sample_weight [refused] : None
        Must be None: {refused}.
    sample_weight : array-like of shape (n_samples,) or None
        Public, non-negative weights. They must not be computed from these records: class weights, for
        example, give labels away.
    groups [max_records] : array-like of shape (n_samples,) or None
        Public label of the person (or other unit) that each record belongs to. The guarantee then covers all
        records of one group together, by noise as many times larger as one has records at most. None: each
        record is a person of its own.
    groups : array-like of shape (n_samples,) or None
        Public label of the person (or other unit) that each record belongs to. The guarantee then covers all
        records of one group together. None: each record is a person of its own.
    """

    sample_weight: ArrayLike | None
    groups: ArrayLike | None


class ErrorSettings(MeanSettings, total=False):
    """Keywords of a release of a mean error of predicted numbers.

    Parameters
    ----------
    bounds [x] : tuple of float or None
        Public range (lower, upper) of the values, in their units; values are clipped into it. None:
        unbounded. Never read it from the data; how much it clips is private, so nothing warns of a range that
        is too narrow. If a few values reach it and make most of the result, see `mechanism`.
    bounds : tuple of float or None
        Public range (lower, upper) of targets and predictions, in their units. Both are clipped into it, so
        with values outside it the answer differs from scikit-learn's. None: unbounded. Never read it from the
        data; how much it clips is private, so nothing warns of a range that is too narrow. If few errors are
        as large as it allows, and make most of the result, see `mechanism`.
    multioutput : {"uniform_average", "raw_values"} or array-like
        How several outputs make one number: their mean, or a mean with public, non-negative weights, one for
        each output. "raw_values" returns each of the k outputs at epsilon / k. scikit-learn's
        "variance_weighted" is refused, because those weights are private. Where the number of records is
        private, empty lists are one output: an array of shape (0, n_outputs) tells more.
    """

    bounds: Bounds
    multioutput: MultiOutput


class OrderSettings(Payment, total=False):
    """Keywords of a release of an order statistic: a record may only be replaced."""

    groups: ArrayLike | None
    max_records: int | None
    mechanism: str | Mechanism


class CountSettings(Payment, total=False):
    """Keywords of a release of counts, which has noise of its own; several may be of one person.

    Parameters
    ----------
    max_records : int or None
        Keep the first so many records of each group, in their order, which is public: it pays where a few
        groups have many. None: all. Needs `groups`.
    """

    sample_weight: None
    groups: ArrayLike | None
    max_records: int | None
    neighboring: str


class RankSettings(CountSettings, total=False):
    """Keywords of a release of ranks or sums of which several records may be of one person."""

    mechanism: str | Mechanism


class LabelSettings(CountSettings, total=False):
    """Keywords of a release of counts of labels.

    Parameters
    ----------
    labels [y_pred] : array-like of shape (n_classes,) or None
        The public label set, in the order of the results. None: 0 and 1. Every true and predicted label must
        be one of them; they are never inferred from the data. scikit-learn's other use of this argument, to
        average over some of the labels, is not served.
    labels [bins, n_bins] : array-like of shape (2,) or None
        The two public labels. None: 0 and 1. Never inferred from `y_true`.
    labels : array-like of shape (n_classes,) or None
        The public label set. None: 0 and 1 for one column, 0 .. K-1 for K columns. Never inferred from
        `y_true`. Members of an `enum.Enum` without an order of their own are sorted as it defines them.
    pos_label [average] : label
        The label that counts as positive for ``average="binary"``.
    pos_label : label or None
        The positive one of the labels; None: the second in sorted order.
    average : {"binary", "macro", "weighted", "micro"} or None
        "binary": of `pos_label`, for two labels. "macro": the mean over all of `labels`; "weighted": weighted
        by how often each is the true one; "micro": of all labels together. None: one for each label.
    zero_division : float or "warn"
        The value of 0/0 among the noisy counts: 0 or 1; for a mean also NaN, which leaves such labels out.
        "warn" means 0 here, because a warning would tell of the data.
    equal_groups : bool
        Whether each group counts once, whatever its number of records: what is counted are groups, each
        divided evenly among its records, and the noise is that of one record a group. It answers another
        question: what share of people, not of records. Needs `groups`.
    """

    labels: ArrayLike | None
    equal_groups: bool


class RatioSettings(LabelSettings, total=False):
    """Keywords of a release of counts of which a ratio is made, or one for each label."""

    pos_label: Any
    average: str | None
    zero_division: float | str


class ScoreSettings(LabelSettings, total=False):
    """Keywords of a release of a table of scores.

    Parameters
    ----------
    y_prob : array-like of shape (n_samples,), (n_samples, 1) or (n_samples, 2)
        Probabilities of the positive class, in [0, 1]. Of two columns, such as those of `predict_proba`, the
        one of the positive class is used.
    y_score : array-like of shape (n_samples,), (n_samples, 1) or (n_samples, 2)
        Scores of the positive class, probabilities in [0, 1] unless `edges` are given. Of two columns, as
        from `predict_proba`, the one of the positive class is used.
    edges : array-like of shape (n_bins + 1,) or None
        Public edges of the bins of scores, strictly increasing; scores outside are counted in the first or
        last bin. None: bins of [0, 1], narrower at both ends, and scores outside are refused. Never read them
        from the data.
    bins : {2, 4, 8, 16, 32, 64, 128} or None
        Public number of bins of [0, 1]. None: the power of two next to 1.5 (n epsilon)^(1/3), from 8 on; from
        n epsilon = 10,000 on next to 0.9 (n epsilon)^(1/2), up to 128; 32 where n is private.
    """

    edges: ArrayLike | None
    bins: int | None


_KINDS: ByName = {f"Unpack[{name}]": kind for name, kind in [*globals().items()] if is_typeddict(kind)}
_DEFAULTS: ByName = {
    "bounds": None,
    "labels": None,
    "pos_label": 1,
    "average": "binary",
    "edges": None,
    "bins": None,
    "zero_division": 0.0,
    "sample_weight": None,
    "multioutput": "uniform_average",
    "groups": None,
    "max_records": None,
    "equal_groups": False,
    "neighboring": "replace_one",
    "mechanism": "adaptive",
    "accountant": None,
    "random_state": None,
    "spend_name": None,
}
"""In the order in which signatures show them; epsilon has none."""


_LEADING = ("bounds", "labels")  # before the options of a metric's own


def completed_signature(body: Function, mechanism: str = "") -> inspect.Signature:
    """Return the whole signature of a function: its own parameters, and one for each of its settings."""
    written, keyword = inspect.signature(body), inspect.Parameter.KEYWORD_ONLY
    *own, kind = written.parameters.values()
    types = _KINDS[kind.annotation].__annotations__
    settings = [
        inspect.Parameter(name, keyword, default=default, annotation=types[name].__forward_arg__)
        for name, default in {**_DEFAULTS, "mechanism": mechanism}.items()
        if name in types
    ]
    first = [one for one in settings if one.name in _LEADING]
    epsilon = inspect.Parameter("epsilon", keyword, annotation="float")
    shown = [one for one in own if one.kind != keyword]
    shown += [epsilon, *first, *own[len(shown) :], *settings[len(first) :]]
    return written.replace(parameters=shown)


RESULT = "    `with_result` gives the `Result`, which holds all that may be published."

_OF_GROUPS = ", or with `groups` all records of any one group,"
_PRIVATE_N = """ With neighboring="add_or_remove_one" the same holds when
any one record is added or removed, and the number of records is not public."""

_SECTIONS = ("Parameters", "Returns", "Raises", "Warns", "See Also", "Notes", "References", "Examples")


def _sections(documented: Any) -> dict[str, str]:
    """Return the sections of a docstring by their titles; what comes first has none."""
    parts = re.split(r"^(\w[\w ]*)\n-+\n", inspect.getdoc(documented) or "", flags=re.MULTILINE)
    return dict(zip(["", *parts[1::2]], (text.strip("\n") for text in parts[::2]), strict=True))


def _entries(section: str) -> Iterator[tuple[str, str]]:
    """Yield what is before each colon behind a name in a section, and all of what follows."""
    for entry in filter(None, re.split(r"\n(?=\S)", section)):
        head, _, rest = entry.partition(" : ")
        yield head, rest


def _read_shared() -> dict[str, list[tuple[set[str], str]]]:
    """Return the shared entries by name: the words that choose each, and all of it behind the name."""
    found: dict[str, list[tuple[set[str], str]]] = {}
    for kind in _KINDS.values():
        for head, rest in _entries(_sections(kind).get("Parameters", "")):
            name, _, words = head.removesuffix("]").partition(" [")
            found.setdefault(name, []).append(({*words.split(", ")}, rest))
    return found


_SHARED = _read_shared()


def shares_docstring(*words: str, **details: str) -> Callable[[F], F]:
    """Complete the docstring of a function that releases something: that of `private_mse`, for example.

    Parameters
    ----------
    *words : str
        What is true of the release, and chooses the entries of some parameters.
    **details : str
        What stands for a name in braces.
    """

    def complete(function: F) -> F:
        if function.__doc__ is not None:  # there is none under `python -OO`
            function.__doc__ = _completed(function, {*words})
            for name, detail in details.items():
                function.__doc__ = function.__doc__.replace(f"{{{name}}}", detail)
        return function

    return complete


def _completed(function: Function, words: set[str]) -> str:
    written, parameters = _sections(function), dict(inspect.signature(function).parameters)
    parameters.pop("self", None)
    own = dict(_entries(written.get("Parameters", "")))
    true = {*words, *parameters, ""}
    of_all_releases = _sections(Payment)
    guarantee = of_all_releases["Notes"].replace("{groups}", _OF_GROUPS if "groups" in parameters else "")
    guarantee += _PRIVATE_N if "neighboring" in parameters else ""
    entries = [f"{name} : {own.get(name) or _entry(one, true)}" for name, one in parameters.items()]
    parts = {
        **of_all_releases,
        **written,
        "Parameters": "\n".join(entries),
        "Returns": f"{written['Returns']}\n{RESULT}",
        "Notes": "\n\n".join(filter(None, (guarantee, written.get("Notes")))),
    }
    sections = [f"{title}\n{'-' * len(title)}\n{parts[title]}" for title in _SECTIONS if title in parts]
    return "\n\n".join([written[""], *sections]) + "\n"


def _entry(parameter: inspect.Parameter, true: set[str]) -> str:
    """Return the first shared entry of a parameter of which one word is true, with the default."""
    kind, _, text = next(rest for words, rest in _SHARED[parameter.name] if words & true).partition("\n")
    if parameter.default is not parameter.empty:
        kind += f", default={parameter.default!r}".replace("'", '"')
    return f"{kind}\n{text}"
