"""Write the parts of the sources that follow from others, or check them.

`python docs/sources.py --write` brings the files up to date; `--check` prints what that would change, and
fails unless it is nothing. Written are:

- the shared parts of the docstrings of the public metrics: parameters in `BLOCKS`, Raises, Warns, the
  guarantee and the sentence on `with_result`. Whoever adds a metric writes the rest: the summary, its own
  parameters, Returns, References and Examples;
- the methods of `ReleasedConfusion`, one for each metric of labels;
- what follows the docstring of a public metric, and of the `release` of a summary: one call that passes each
  argument on by its name, and the value of what it returns. A count of lines may leave it out;
- the table of metrics, `docs/metric_table.inc`.
"""

import ast
import difflib
import inspect
import re
import sys
import textwrap
from importlib import import_module
from pathlib import Path

import metric_table

from dp_metrics.metrics import FUNCTIONS, METRICS, Metric
from dp_metrics.metrics._catalogue import PERSONS
from dp_metrics.metrics.labels.counts import Confusion

ROOT = Path(__file__).parents[1]
METRIC_FILES = sorted((ROOT / "dp_metrics" / "metrics").rglob("[!_]*.py"))
SUMMARIES = [
    ROOT / "dp_metrics" / "streaming" / f"{name}.py" for name in ("confusion_summary", "scores", "summaries")
]
WIDTH = 110
ROWS = {
    row.name: name
    for path in METRIC_FILES
    for name, row in vars(import_module(".".join(path.relative_to(ROOT).with_suffix("").parts))).items()
    if isinstance(row, Metric)
}
"""The variable that holds the row of each metric."""

BLOCKS = {
    "y_true": """array-like of shape (n_samples,) or (n_samples, n_outputs)
        True targets, finite.""",
    "y_pred": """array-like of shape (n_samples,) or (n_samples, n_outputs)
        Predictions of a model that was not trained on these records.""",
    "y_true, one label": """array-like of shape (n_samples,)
        True labels, each one of `labels`.""",
    "y_true, counts": """array-like of shape (n_samples,)
        True labels, each one of `labels`.""",
    "y_pred, counts": """array-like of shape (n_samples,)
        Labels predicted by a model that was not trained on these records, each one of `labels`.""",
    "y_true, labels": """array-like of shape (n_samples,) or (n_samples, n_outputs)
        True labels: whole numbers, strings, dates, members of an `enum.Enum` or anything else that can be
        compared. Dates, times and durations are equal in any unit and container, a date and its midnight too;
        times with a time zone are refused beside times without. With several outputs a record is right if all
        of them are.""",
    "y_pred, labels": """array-like of shape (n_samples,) or (n_samples, n_outputs)
        Labels predicted by a model that was not trained on these records.""",
    "y_proba": """array-like of shape (n_samples,), (n_samples, 1) or (n_samples, n_classes)
        Probabilities in [0, 1], one column per label in sorted order as `predict_proba` gives them, or named
        by the labels in any order; a single column holds the probability of the second label. They are used
        as they are: rows need not sum to 1, and no warning tells whether they do.""",
    "y_score, two classes": """array-like of shape (n_samples,), (n_samples, 1) or (n_samples, 2)
        Scores of the positive class, probabilities in [0, 1] unless `edges` are given. Of two columns, as
        from `predict_proba`, the one of the positive class is used.""",
    "y_proba, two classes": """array-like of shape (n_samples,), (n_samples, 1) or (n_samples, 2)
        Probabilities of the positive class, in [0, 1]. Of two columns, such as those of `predict_proba`, the
        one of the positive class is used.""",
    "x": """array-like of shape (n_samples,)
        One finite number per record.""",
    "epsilon": """float
        Privacy parameter, > 0: smaller is more private and less accurate.""",
    "bounds": """tuple of float or None
        Public range (lower, upper) of targets and predictions, in their units. Both are clipped into it, so
        with values outside it the answer differs from scikit-learn's. None: unbounded. Never read it from
        the data; how much it clips is private, so nothing warns of a range that is too narrow. If few errors
        are as large as it allows, and make most of the result, see `mechanism`.""",
    "bounds, column": """tuple of float or None
        Public range (lower, upper) of the values, in their units; values are clipped into it. None:
        unbounded. Never read it from the data; how much it clips is private, so nothing warns of a range
        that is too narrow. If a few values reach it and make most of the result, see `mechanism`.""",
    "max_loss": """float or None
        Public cap of one record's loss, in the units of the loss; larger losses are clipped to it. None:
        unbounded. Never read it from the data; how much it clips is private, so nothing warns. If a few
        losses reach it and make most of the result, see `mechanism`.""",
    "labels": """array-like of shape (n_classes,) or None
        The public label set. None: 0 and 1 for one column, 0 .. K-1 for K columns. Never inferred from
        `y_true`. Members of an `enum.Enum` without an order of their own are sorted as it defines them.""",
    "labels, counts": """array-like of shape (n_classes,) or None
        The public label set, in the order of the results. None: 0 and 1. Every true and predicted label must
        be one of them; they are never inferred from the data. scikit-learn's other use of this argument, to
        average over some of the labels, is not served.""",
    "labels, two classes": """array-like of shape (2,) or None
        The two public labels. None: 0 and 1. Never inferred from `y_true`.""",
    "pos_label, two classes": """label or None
        The positive one of the labels; None: the second in sorted order.""",
    "edges": """array-like of shape (n_bins + 1,) or None
        Public edges of the bins of scores, strictly increasing; scores outside are counted in the first or
        last bin. None: bins of [0, 1], narrower at both ends, and scores outside are refused. Never read them
        from the data.""",
    "bins": """{2, 4, 8, 16, 32, 64, 128} or None
        Public number of bins of [0, 1]. None: the power of two next to 1.5 (n epsilon)^(1/3), from 8 on; from
        n epsilon = 10,000 on next to 0.9 (n epsilon)^(1/2), up to 128; 32 where n is private.""",
    "pos_label": """label
        The label that counts as positive for ``average="binary"``.""",
    "average": """{"binary", "macro", "weighted", "micro"} or None
        "binary": of `pos_label`, for two labels. "macro": the mean over all of `labels`; "weighted": weighted
        by how often each is the true one; "micro": of all labels together. None: one for each label.""",
    "zero_division": """float or "warn"
        The value of 0/0 among the noisy counts: 0 or 1; for a mean also NaN, which leaves such labels out.
        "warn" means 0 here, because a warning would tell of the data.""",
    "sample_weight, refused": """None
        Must be None: {reason}.""",
    "normalize": """bool
        If false, return the sum over the records: the private mean times the public total weight.""",
    "ddof": """float
        Delta degrees of freedom, as in `numpy.var`: the private population variance times n / (n - ddof).
        Must be below the public n.""",
    "sample_weight": """array-like of shape (n_samples,) or None
        Public, non-negative weights. They must not be computed from these records: class weights, for
        example, give labels away.""",
    "multioutput": """{"uniform_average", "raw_values"} or array-like
        How several outputs make one number: their mean, or a mean with public, non-negative weights, one
        for each output.
        "raw_values" returns each of the k outputs at epsilon / k. scikit-learn's "variance_weighted" is
        refused, because those weights are private. Where the number of records is private, empty lists are
        one output: an array of shape (0, n_outputs) tells more.""",
    "groups": """array-like of shape (n_samples,) or None
        Public label of the person (or other unit) that each record belongs to. The guarantee then covers
        all records of one group together. None: each record is a person of its own.""",
    "groups, persons": """array-like of shape (n_samples,) or None
        Public label of the person (or other unit) that each record belongs to. The guarantee then covers
        all records of one group together, by noise as many times larger as one has records at most. None:
        each record is a person of its own.""",
    "max_records": """int or None
        Keep the first so many records of each group, in their order, which is public: it pays where a few
        groups have many. None: all. Needs `groups`.""",
    "neighboring": """{"replace_one", "add_or_remove_one"}
        What one person can change: the contents of a record ("replace_one": their number is public), or
        whether it is there ("add_or_remove_one": less accurate, no weights or groups).""",
    "neighboring, counts": """{"replace_one", "add_or_remove_one"}
        What one person can change: the contents of a record ("replace_one": their number is public), or
        whether it is there ("add_or_remove_one": less noise, as it changes one count, not two, and no
        groups).""",
    "mechanism": """str or mechanism object
        "adaptive" (usually too low if a few records have most of the loss), "hazard", "above_threshold"; with
        a public limit ({limit}) also "geometric", "inverse_sensitivity", "piecewise_laplace", "laplace"; or
        an object such as `AboveThreshold.paper()`. Name "geometric" if you know beforehand that about
        3 / epsilon to 60 / epsilon records reach the limit and make most of the result: the default may
        miss them, and err up to 100 times as much.""",
    "mechanism, geometric": """str or mechanism object
        "geometric" is the most accurate for a result that is as likely near one end of its range as near the
        other. The others are those of `private_mae`.""",
    "mechanism, hazard": """str or mechanism object
        "hazard" or "above_threshold"; with a public limit ({limit}) also "geometric", "inverse_sensitivity",
        "piecewise_laplace" or "laplace"; or an object such as `AboveThreshold.paper()`.""",
    "accountant": """PrivacyAccountant or None
        Budget that pays epsilon for this release, before it is drawn.""",
    "random_state": """None, int, RandomState or Generator
        None draws fresh randomness from the operating system. Anything else makes the release
        reproducible and therefore NOT private.""",
    "spend_name": """str or None
        The name of this release in the accountant's history; None: the name of the metric. A name of
        an earlier session returns what was released then, at no cost.""",
}
"""Type and meaning of parameters by name; after a comma, of a variant that `VARIANTS` chooses."""

ERRORS = {
    "ValueError, TypeError": """If an input is invalid, as in scikit-learn, or an option, or if the accountant
        counts releases under another neighbouring relation.""",
    "PrivacyBudgetError": "If the accountant has less than epsilon left; nothing is drawn.",
}
WARNINGS = {
    "SeededReleaseWarning": "If `random_state` is given.",
    "LargeEpsilonWarning": "If epsilon is above 10.",
    "NoisyReleaseWarning": "If public numbers alone tell that a release will be mostly noise.",
}
RESULT = "`with_result` gives the `PrivateResult`, which holds all that may be published."
GUARANTEE = """Guarantee: replacing any one record{groups} changes the probability of any result by at most a
    factor exp(epsilon), given the model, the number of records and the arguments, which are public."""
OF_GROUPS = ", or with `groups` all records of any one group,"
PRIVATE_N = """ With neighboring="add_or_remove_one" the same holds when any one record is added or removed,
    and the number of records is not public."""

OWN = ""  # the entry that stands in the docstring stays as it is
_PROBABILITIES = {"y_true": "y_true, one label"}
_TWO_CLASSES = {
    "y_true": "y_true, one label",
    **{name: f"{name}, two classes" for name in ("y_score", "y_proba", "labels", "pos_label")},
    "y_prob": "y_proba, two classes",
}
_LABELS = {"y_true": "y_true, labels", "y_pred": "y_pred, labels"}
_COLUMN = {"bounds": "bounds, column"}

VARIANTS: dict[str, dict[str, str]] = {
    "private_r2_score": {"sample_weight": OWN},
    "private_mean_squared_log_error": {"bounds": OWN},
    "private_mean_poisson_deviance": {"y_true": OWN, "y_pred": OWN},
    "private_log_loss": {**_PROBABILITIES, "max_loss": OWN},
    "private_brier_score_loss": _PROBABILITIES,
    "private_top_k_accuracy_score": {**_PROBABILITIES, "y_score": OWN},
    **dict.fromkeys(
        (
            "private_average_precision_score",
            "private_calibration_curve",
            "private_expected_calibration_error",
            "private_precision_recall_curve",
            "private_roc_curve",
        ),
        _TWO_CLASSES,
    ),
    "private_confusion_matrix": {"normalize": OWN},
    "private_zero_one_loss": _LABELS,
    "private_accuracy_score": _LABELS,
    "private_roc_auc_score": {
        "y_true": "y_true, one label",
        **dict.fromkeys(("average", "labels", "sample_weight", "mechanism"), OWN),
    },
    "private_variance": _COLUMN,
    "private_std": _COLUMN,
    "private_mean": {"bounds": OWN},
    "private_quantile": {"bounds": OWN, "limit": "pass an upper bound"},
    "private_median_absolute_error": {"y_true": OWN, "y_pred": OWN},
    "private_classification_report": {"zero_division": OWN},
    "ConfusionSummary.release": {"neighboring": "neighboring, counts", "Returns": OWN},
    "ScoreSummary.release": {"neighboring": "neighboring, counts", "Returns": OWN},
    "LossSummary.release": {"mechanism": OWN, "Raises": OWN, "Warns": OWN},
    "VarianceSummary.release": {"limit": "give the summary `bounds`", "Raises": OWN, "Warns": OWN},
}
"""What is not as usual: by function, the variant of a block, or the detail that a block names."""

SECTIONS = ("Parameters", "Returns", "Raises", "Warns", "See Also", "Notes", "References", "Examples")


def wrapped(text: str, width: int, indent: str = "") -> str:
    """Return a paragraph in lines of at most this width."""
    options = {"break_on_hyphens": False, "break_long_words": False}
    return textwrap.fill(
        " ".join(text.split()), width, initial_indent=indent, subsequent_indent=indent, **options
    )


def entry(head: str, text: str, width: int) -> str:
    """Return an entry of a numpydoc section."""
    return f"{head}\n{wrapped(text, width, '    ')}"


def defaults_of(node: ast.FunctionDef) -> dict[str, str]:
    """Return the default of each argument by its name, as in the source; "" for none."""
    several = [*node.args.args, *node.args.kwonlyargs]
    given = [*node.args.defaults, *node.args.kw_defaults]
    defaults = [None] * (len(several) - len(given)) + given
    return {
        argument.arg: "" if default is None else ast.unparse(default).replace("'", '"')
        for argument, default in zip(several, defaults, strict=True)
        if argument.arg != "self"
    }


def parameter(name: str, function: str, default: str, written: dict[str, str], width: int) -> str:
    """Return the entry of a parameter: the shared one, or the one that is written."""
    variants, row = VARIANTS.get(function, {}), METRICS.get(function)
    own = f"{name}, {row.mechanism}" if name == "mechanism" and row is not None else name
    if row is not None:
        if name in row.refused:
            own = f"{name}, refused"
        elif name == "groups" and "max_records" in row.options:
            own = f"{name}, persons"
        elif isinstance(row.usual.postprocess, Confusion) or (
            row.mechanism is None and name == "neighboring"
        ):
            own = f"{name}, counts"
    block = BLOCKS.get(variants.get(name, own if own in BLOCKS else name))
    if block is None:
        if name not in written:
            raise ValueError(f"{function} does not describe {name}.")
        return written[name]
    limit = f"pass `{next(iter(row.limit))}`" if row and row.limit else "this metric always has one"
    reason = row.refused.get(name, "") if row else ""
    kind, text = (
        block.replace("{reason}", reason).replace("{limit}", variants.get("limit", limit)).split("\n", 1)
    )
    return entry(f"{name} : {kind}" + (f", default={default}" if default else ""), text, width)


def with_shared_parts(doc: str, function: str, defaults: dict[str, str], width: int) -> str:
    """Return a docstring with its shared parts as they should be."""
    head, *rest = re.split(r"^(\w[\w ]*)\n-+\n", doc, flags=re.MULTILINE)
    parts = {title: body.strip("\n") for title, body in zip(rest[::2], rest[1::2], strict=True)}
    written = {text.split(" :")[0]: text for text in re.split(r"\n(?=\S)", parts.get("Parameters", ""))}
    parts["Parameters"] = "\n".join(
        parameter(name, function, default, written, width) for name, default in defaults.items()
    )
    if "Returns" not in VARIANTS.get(function, {}):
        parts["Returns"] = parts["Returns"].removesuffix(f"\n    {RESULT}") + f"\n    {RESULT}"
    for title, block in (("Raises", ERRORS), ("Warns", WARNINGS)):
        if title not in VARIANTS.get(function, {}):
            parts[title] = "\n".join(entry(name, text, width) for name, text in block.items())
    own = [text for text in parts.get("Notes", "").split("\n\n") if not text.startswith("Guarantee:")]
    guarantee = GUARANTEE.replace("{groups}", OF_GROUPS if "groups" in defaults else "")
    guarantee += PRIVATE_N if "neighboring" in defaults else ""
    parts["Notes"] = "\n\n".join([wrapped(guarantee, width), *filter(None, own)])
    if parts.keys() - SECTIONS:
        raise ValueError(f"{function} has unknown sections: {parts.keys() - SECTIONS}")
    body = [f"{title}\n{'-' * len(title)}\n{parts[title]}" for title in SECTIONS if title in parts]
    return "\n\n".join([head.strip(), *body])


def releases(source: str) -> dict[str, ast.FunctionDef]:
    """Return the functions and methods of a module that return a release, by name."""
    found = {}
    for node in ast.parse(source).body:
        if isinstance(node, ast.FunctionDef) and node.name in METRICS:
            found[node.name] = node
        for method in node.body if isinstance(node, ast.ClassDef) else ():
            if isinstance(method, ast.FunctionDef) and method.name == "release":
                found[f"{node.name}.release"] = method
    return found


def call_of(function: str, node: ast.FunctionDef, indent: str) -> list[str]:
    """Return the lines that release: a search for an argument leads from the signature to where it goes."""
    release = f"{ROWS[function]}.release" if function in METRICS else "self._release"
    arguments = ", ".join(f"{name}={name}" for name in defaults_of(node)) + ","
    return [
        f"{indent}result: PrivateResult[{ast.unparse(node.returns)}] = {release}(",
        *wrapped(arguments, WIDTH, indent + "    ").split("\n"),
        f"{indent})  # fmt: skip",
        f"{indent}return result.value",
    ]


def completed(source: str) -> str:
    """Return a module with the shared parts of its docstrings, and the calls behind, as they should be."""
    lines = source.split("\n")
    for name, node in reversed(releases(source).items()):  # from the end: line numbers before stay true
        place = slice(node.body[0].lineno - 1, node.body[0].end_lineno)
        start, text, end = "\n".join(lines[place]).split('"""')
        indent = " " * node.body[0].col_offset
        doc = with_shared_parts(inspect.cleandoc(text), name, defaults_of(node), WIDTH - len(indent))
        if "Returns" not in VARIANTS.get(name, {}):  # a release of one value, not of all that a table tells
            lines[place.stop : node.end_lineno] = call_of(name, node, indent)
        lines[place] = f'{start}"""{textwrap.indent(doc, indent).lstrip()}\n{indent}"""{end}'.split("\n")
    return "\n".join(lines)


METHODS = re.compile(r"(?<=for each metric\.\n\n).*?(?=\n\Z)", re.DOTALL)
"""The written methods of `ReleasedConfusion`: from the comment that says so to the end of the file."""


def fitted(start: str, parts: list[str], end: str, indent: str) -> str:
    """Return a call or a signature as it is formatted: in one line, in three, or a line for each part."""
    flat, inner = ", ".join(parts), f"{indent}    "
    if len(one_line := f"{indent}{start}{flat}{end}") <= WIDTH:
        return one_line
    listed = [f"{inner}{flat}"] if len(inner + flat) <= WIDTH else [f"{inner}{part}," for part in parts]
    return "\n".join([indent + start, *listed, indent + end])


def method(row: Metric) -> str:
    """Return the method that tells a metric from counts that are released already, as source."""
    function = FUNCTIONS[row.name]
    signature = inspect.signature(function)
    names = [name for name in row.options if name not in ("labels", *PERSONS)]
    options = [
        f"{name}: {parameter.annotation} = {parameter.default!r}".replace("'", '"')
        for name, parameter in signature.parameters.items()
        if name in names
    ]
    parts = ["self", *(["*", *options] if options else [])]
    head = fitted(
        f"def {row.name.removeprefix('private_')}(", parts, f") -> {signature.return_annotation}:", " " * 4
    )
    doc = f'        """Return what `{row.name}` makes of the counts{", with its options" * bool(options)}."""'
    metric = f"{function.__module__.rpartition('.')[2]}.{row.name}"
    call = fitted("return self._score(", [metric, *(f"{name}={name}" for name in names)], ")", " " * 8)
    return "\n".join([head, doc, call])


def with_methods(source: str) -> str:
    """Return the module of `ReleasedConfusion` with its methods, and its docstrings, as they should be."""
    rows = sorted(
        (row for row in METRICS.values() if isinstance(row.usual.postprocess, Confusion)),
        key=lambda row: row.name,
    )
    methods = "\n\n".join(map(method, rows))
    return completed(METHODS.sub(lambda _: methods, source))


GENERATED = {
    **dict.fromkeys([*METRIC_FILES, *SUMMARIES], completed),
    ROOT / "dp_metrics" / "metrics" / "labels" / "released_confusion.py": with_methods,
    ROOT / "docs" / "metric_table.inc": lambda _: metric_table.rst(),
}
"""Files, and what makes of each what it should be."""


def main(arguments: list[str]) -> int:
    """Write or check all files; return the exit code."""
    if arguments not in (["--write"], ["--check"]):
        print(__doc__)
        return 2
    is_stale = False
    for path, update in GENERATED.items():
        written = path.read_text(encoding="utf-8") if path.exists() else ""
        updated, name = update(written), str(path.relative_to(ROOT))
        if updated == written:
            continue
        if arguments == ["--write"]:
            path.write_text(updated, encoding="utf-8")
        else:
            is_stale = True
            print(*difflib.unified_diff(written.splitlines(), updated.splitlines(), name, name), sep="\n")
    return int(is_stale)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
