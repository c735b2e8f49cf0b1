"""Seeded releases of all that the tables of the project name, whose bits must not move with the code.

`GROUPS` holds every release by its group and its name. Most are made of `CASES`: each metric by each
neighbouring relation and mechanism, with each of its options, from summaries, Dask, scorers and frames. A
release makes its data, its seed and its settings anew, so the order of the releases is of no account.
"""

import hashlib
import json
import math
import warnings
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, partial
from itertools import product
from pathlib import Path
from unittest import mock

import dask
import dask.array as da
import numpy as np
from cases import CASES
from helpers import kind_of
from scipy.special import roots_legendre
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.model_selection import KFold, cross_val_score

import dp_metrics as dp
from dp_metrics import AboveThreshold, Hazard, PrivacyAccountant, distributed
from dp_metrics._random import OSEntropy, SeededEntropy
from dp_metrics.analysis.audited import AUDITED, FRAMES, PLANS
from dp_metrics.mechanisms import MECHANISMS

__all__ = [
    "CALLS",
    "GROUPS",
    "LIMITS",
    "TABLE",
    "arithmetic",
    "evaluate",
    "read_table",
    "variations",
    "write_table",
]

TABLE = Path(__file__).with_suffix(".json")
RELATIONS = REPLACE, ADD_OR_REMOVE = "replace_one", "add_or_remove_one"
RULES = {
    "default": {},
    **{name: {"mechanism": name} for name in MECHANISMS},
    "Hazard(resolution=0.1)": {"mechanism": Hazard(resolution=0.1)},
    "AboveThreshold(beta=1.1,split=0.3)": {"mechanism": AboveThreshold(beta=1.1, split=0.3)},
    "AboveThreshold(grid)": {
        "mechanism": AboveThreshold(first=5, scale=0.25, max_candidates=300, ranks=20),
    },
    "AboveThreshold(even)": {"mechanism": AboveThreshold(spacing="even", max_candidates=500)},
    "AboveThreshold.paper": {"mechanism": AboveThreshold.paper()},
    "AboveThreshold.paper(unit)": {"mechanism": AboveThreshold.paper(unit=1 / 300)},
}
NEED_A_LIMIT = {"inverse_sensitivity", "piecewise_laplace", "laplace", "geometric", "AboveThreshold(even)"}


# ---- data and settings -------------------------------------------------------------------------------------


@cache
def records(name, n=300):
    """Return n records of a case: within the same limits, but such that losses and sums have to be rounded.

    Every machine makes the same ones, because each operation is rounded once. Labels stay whole numbers.
    """
    data = CASES[name].data(np.random.default_rng([zlib.crc32(name.encode()), n]), n)
    return tuple(a if (a == np.rint(a)).all() else 0.9 * a + 0.1 * a[..., ::-1] for a in data)


def weights(n):
    """Return public weights, the first of which is positive and some of which are 0."""
    made = np.random.default_rng([1, n]).integers(0, 9, n) / 4
    made[:1] = 1.0
    return made


def persons(n):
    """Return public groups of about three records."""
    return np.random.default_rng([2, n]).integers(0, max(n // 3, 1), n)


@dataclass(frozen=True)
class Call:
    """A case under a neighbouring relation: "plain", or with a limit that many records exceed."""

    name: str
    relation: str
    form: str

    def __str__(self):
        return f"{self.name}/{self.relation}/{self.form}"

    @property
    def case(self):
        return CASES[self.name]

    @property
    def options(self):
        limit = self.case.bounded if self.form == "limited" else {}
        closer = {
            key: value / 16 if key == "max_loss" else tuple(end / 2 for end in value)
            for key, value in limit.items()
        }
        # a private number of records needs the labels where they are several
        labels = {"labels": [0, 1, 2]} if "multi_class" in self.case.options else {}
        return {**self.case.options, **labels, **closer}

    @property
    def neighboring(self):
        return {"neighboring": self.relation} if self.case.name in RELATED else {}

    def is_served(self, mechanism):
        """Tell whether a mechanism releases the metric with these options under this relation."""
        unlimited = self.case.bounded and self.form == "plain"
        if mechanism == "default" or self.case.row.mechanism is None:
            return mechanism == "default"
        if self.relation == ADD_OR_REMOVE and (
            mechanism == "laplace" or (mechanism, self.case.name) == ("geometric", "private_roc_auc_score")
        ):
            return False
        return not (unlimited and mechanism in NEED_A_LIMIT)

    def release(self, data, mechanism="default", **settings):
        settings = {**self.options, **self.neighboring, **RULES[mechanism], **settings}
        return dp.with_result(self.case.function)(*data, **settings)


RELATED = {case.name for case in CASES.values() if "neighboring" in case.parameters}
CALLS = [
    Call(name, relation, form)
    for name, case in CASES.items()
    for relation in (RELATIONS if case.name in RELATED else (REPLACE,))
    for form in (("plain", "limited") if case.bounded else ("plain",))
]
LIMITED = [call for call in CALLS if call.form == "limited" or not call.case.bounded]


# ---- metrics -----------------------------------------------------------------------------------------------


def data_of_cases():
    """Yield the data: where they have moved, so have all releases of the case, whatever the code does."""
    for name in CASES:
        yield name, lambda seed, name=name: [digest(a.tobytes()) for n in (7, 300) for a in records(name, n)]


def metrics():
    for call, mechanism in product(CALLS, RULES):
        if call.is_served(mechanism) and mechanism != call.case.row.mechanism:  # which is the default
            yield f"{call}/{mechanism}", partial(several_sizes, call, mechanism)


def several_sizes(call, mechanism, seed):
    """Return releases of many and few records; of few with little noise, the last bit of one loss shows."""
    sizes = [(300, 1), (30, 50)] if mechanism in ("default", *MECHANISMS) else [(300, 1)]
    if mechanism in ("default", "hazard", "geometric"):
        sizes += [(1 if call.relation == REPLACE else 0, 0.05)]
    if mechanism in ("default", "geometric"):
        sizes += [(20_000, 5), (7, 0.05)]
    return [
        call.release(records(call.name, n), mechanism, epsilon=epsilon, random_state=seed + n)
        for n, epsilon in sizes
    ]


def limits():
    for call, mechanism in product(CALLS, RULES):
        if call.is_served(mechanism) and mechanism != call.case.row.mechanism:
            yield f"{call}/{mechanism}", partial(told_of_sizes, call, mechanism)
        rules = SUMMARY_RULES if keeps_ranks(call.case.row) else ("default",)
        if mechanism in rules and empty_summary(call, 1) is not None and call.is_served(mechanism):
            yield f"{call}/{mechanism}/summary", partial(told_of_summary, call, mechanism)


def told_of_sizes(call, mechanism, seed):
    return [told(result) for result in several_sizes(call, mechanism, seed)]


def told_of_summary(call, mechanism, seed):
    summary = empty_summary(call, 300).update(*records(call.name, 500))
    settings = {"neighboring": call.relation, "random_state": seed, **RULES[mechanism]}
    if keeps_ranks(call.case.row):
        return told(dp.with_result(summary.release)(1, **settings))
    return told(summary.release(1, **settings).result)


def told(result):
    """Return what a result says of itself: limits or why there are none, its note and its bias."""
    limits = [
        or_error(result.noise_interval),
        *(or_error(result.population_interval, method=method) for method in ("sure", "approximate")),
    ]
    return [*limits, getattr(result, "note", None), getattr(result, "bias", None)]


def or_error(function, *args, **settings):
    """Return what a function returns, in the digits that all machines share, or the error that it raises."""
    try:
        return rounded(function(*args, **settings))
    except (ValueError, TypeError) as error:
        return f"{type(error).__name__}: {error}"


def rounded(found):
    if isinstance(found, float | np.floating):
        return f"{found:.7g}"
    if isinstance(found, np.ndarray):
        return rounded(found.tolist())
    if isinstance(found, Mapping):
        return [[str(key), rounded(value)] for key, value in found.items()]
    if hasattr(found, "note") and hasattr(found, "lower"):
        return [*map(rounded, (found.lower, found.upper)), found.note]
    return [rounded(one) for one in found] if isinstance(found, list | tuple) else found


def spends():
    for call in LIMITED:
        yield str(call), partial(paid, call)


def paid(call, seed):
    """Return what an accountant is told of releases by each mechanism."""
    accountant = PrivacyAccountant(10)
    for mechanism in ("default", *MECHANISMS):
        if call.is_served(mechanism):
            data = records(call.name, 7)
            call.release(data, mechanism, epsilon=0.3, accountant=accountant, random_state=seed)
    return ledger(accountant)


def ledger(accountant):
    history = [[s.spend_name, s.mechanism, s.epsilon, s.neighboring] for s in accountant.history]
    return [history, accountant.total, accountant.spent, accountant.remaining]


# ---- options -----------------------------------------------------------------------------------------------

OPTIONS = {
    "sample_weight": [weights],
    "groups": [persons],
    "max_records": [2],
    "bounds": [(0.5, 2.0)],
    "max_loss": [0.75],
    "multioutput": ["raw_values", [0.2, 1.1, 0.7]],
    "alpha": [0.9, 1.0],
    "q": [0, 0.25, 0.9, 1],
    "ddof": [1, -0.5],
    "error_share": [0.3],
    "normalize": [False],
    "scale_by_half": [True, False],
    "average": ["macro", "weighted", "micro", None],
    "zero_division": [1.0],
    "weights": ["linear", "quadratic"],
    "adjusted": [True],
    "edges": [(0.1, 0.25, 0.5, 0.9)],
    "bins": [16],
    "n_bins": [3],
    "k": [1],
    "digits": [3],
    "output_dict": [False],
    "pos_label": [0],
}
OPTIONS_OF = {
    ("private_confusion_matrix", "normalize"): ["true", "pred", "all"],
    ("private_roc_auc_score", "average"): ["macro", None],
    ("private_r2_score", "sample_weight"): [],  # it is refused
    ("private_regression_report", "split"): [{"mse": 2, "mae": 1, "variance": 0.5}],
    ("private_probability_report", "split"): [{"accuracy": 1, "log_loss": 3, "brier_score_loss": 0.1}],
    ("private_classification_report", "target_names"): [["no", "yes"]],
}
TOGETHER = [
    ("sample_weight", "groups"),
    ("normalize", "sample_weight"),
    ("multioutput", "sample_weight", "groups"),
    ("max_loss", "sample_weight", "groups"),
]
NEEDED = {"max_records": {"groups": persons}, "average": {"labels": [0, 1]}, "digits": {"output_dict": False}}
NAMES = np.array(["egg", "ham", "spam", "tea"])


def variations(call):
    """Yield further options of a metric by name; a name also says what becomes of the data."""
    own = {
        option: OPTIONS_OF.get((call.case.name, option), OPTIONS.get(option, []))
        for option in call.case.row.options
    }
    for option, values in own.items():
        added = NEEDED.get(option, {})
        for value in values:
            needed = {k: call.options.get(k, v) if k == "labels" else v for k, v in added.items() if k in own}
            yield f"{option}={getattr(value, '__name__', value)}", {**needed, option: value}
    for options in TOGETHER:
        if own.keys() >= set(options) and all(own[option] for option in options):
            yield ",".join(options), {option: own[option][0] for option in options}
    if "labels" in own:
        listed = NAMES[: int(records(call.name)[0].max()) + 1].tolist()
        # columns without names belong to the sorted labels
        named = {"labels": listed[::-1] if call.case.row.predicts_labels else listed}
        one = {"pos_label": "egg"} if "pos_label" in own and "average" not in call.options else {}
        yield "labels", {**named, **one}
    if "multioutput" in own:
        yield "several outputs", {}
    # the limit of a log loss follows from the type of the probabilities
    yield "float32", {"max_loss": None} if "max_loss" in call.case.options else {}


def varied_data(call, variation, n):
    """Return records for a variation: three outputs, labels that are names, or single precision."""
    data = records(call.name, n)
    if variation == "several outputs" or "multioutput" in variation:
        data = [a if a.ndim > 1 else np.stack([a, a[::-1], np.roll(a, 1)], axis=1) for a in data]
        return [a[:, [0, 1, -1]] for a in data]
    if variation == "labels":
        named = 2 if call.case.row.predicts_labels else 1
        return [NAMES[a.astype(int)] if place < named else a for place, a in enumerate(data)]
    return [a.astype(np.float32) for a in data] if variation == "float32" else data


def options():
    for call in CALLS:
        for variation, more in variations(call):
            # without a limit a private number of records is tried with all mechanisms above
            if call.relation == ADD_OR_REMOVE and call.form == "plain" and call.case.bounded:
                continue
            if call.relation == REPLACE or not call.case.row.disclosing(more):
                yield f"{call}/{variation}", partial(varied, call, variation, more)


def varied(call, variation, more, seed):
    found = []
    for mechanism, n, epsilon in (("default", 300, 1), ("geometric", 300, 1), ("laplace", 30, 50)):
        if call.is_served(mechanism):
            made = {key: value(n) if callable(value) else value for key, value in more.items()}
            data = varied_data(call, variation, n)
            found.append(call.release(data, mechanism, epsilon=epsilon, random_state=seed, **made))
    return found


# ---- pieces: summaries and Dask ----------------------------------------------------------------------------


SUMMARY_RULES = ("default", "hazard", "geometric")


def keeps_ranks(row):
    """Return whether summaries of a metric keep as many of the most extreme records as their capacity."""
    return kind_of(row) == "mean" or kind_of(row) == "variance"


def empty_summary(call, capacity):
    """Return a summary that tells this metric, or None where there is none."""
    row, options = call.case.row, call.options
    if kind_of(row) == "mean" and not (call.case.rooted and records(call.name)[0].ndim > 1):
        if call.relation != REPLACE and "labels" in row.options and "labels" not in options:
            # no chunk may state how many labels there are
            options = {**options, "labels": np.unique(records(call.name)[0])}
        return dp.LossSummary(call.case.function, capacity=capacity, **options)
    if kind_of(row) == "variance":
        return dp.VarianceSummary(capacity=capacity, **options)
    if kind_of(row) == "confusion":
        return dp.ConfusionSummary(options.get("labels"))
    return dp.ScoreSummary() if kind_of(row) == "scores" else None


def is_weighted(call):
    """Tell whether the records of a call may have weights that come in pieces too."""
    row = call.case.row
    return call.relation == REPLACE and kind_of(row) == "mean" and "sample_weight" in row.options


def summaries():
    for call in CALLS:
        if empty_summary(call, 1) is not None:
            yield str(call), partial(summarised, call, 40, False)
            if is_weighted(call):
                yield f"{call}/weights", partial(summarised, call, 1024, True)


def summarised(call, capacity, weighted, seed):
    """Return a digest of the bytes of chunks that were summarised, sent and merged, and their releases."""
    parts = []
    for start in range(0, 300, 70):
        own = slice(start, start + 70)
        weight = {"sample_weight": weights(300)[own]} if weighted else {}
        part = empty_summary(call, capacity).update(*(a[own] for a in records(call.name)), **weight)
        parts.append(type(part).from_bytes(part.to_bytes()))
    while len(parts) > 1:
        parts = [*parts[2:], parts[0].merge(parts[1])]
    settings = {"neighboring": call.relation, "random_state": seed}
    rules = SUMMARY_RULES if keeps_ranks(call.case.row) else ("default",)
    found = [parts[0].release(1, **settings, **RULES[rule]) for rule in rules if call.is_served(rule)]
    return [digest(parts[0].to_bytes()), *(getattr(released, "result", released) for released in found)]


def dask_collections():
    for call in LIMITED:
        if call.case.name in distributed.__all__:
            yield str(call), partial(in_dask, call, False)
            if is_weighted(call):
                yield f"{call}/weights", partial(in_dask, call, True)


def in_dask(call, weighted, seed):
    """Return a release of Dask collections, computed in this thread."""
    data = [da.from_array(array, chunks=(80, *array.shape[1:])) for array in records(call.name)]
    weight = {"sample_weight": da.from_array(weights(300), chunks=80)} if weighted else {}
    settings = {**call.options, **call.neighboring, **weight}
    with dask.config.set(scheduler="synchronous"):
        return getattr(distributed, call.case.name)(*data, epsilon=1, random_state=seed, **settings)


# ---- scorers, searches, frames -----------------------------------------------------------------------------

JUDGING = [call for call in CALLS if call.case.row.greater_is_better is not None and call.form == "plain"]


class Echo(RegressorMixin, BaseEstimator):
    """Predicts its input, plus a number: nothing that is fitted can depend on the machine."""

    def __init__(self, shift=0.0):
        self.shift = shift

    def fit(self, X, y):
        self.n_features_in_, self.classes_ = X.shape[1], np.unique(y)
        return self

    def predict(self, X):
        return (X if X.shape[1] > 1 else X[:, 0]) + self.shift


class ClassifyingEcho(ClassifierMixin, Echo):
    """Takes its input for labels, or for probabilities: one column for those of the second class."""

    def predict(self, X):
        return X[:, 0]

    def predict_proba(self, X):
        return X if X.shape[1] > 1 else np.column_stack([1 - X[:, 0], X[:, 0]])


def model_and_data(call):
    y, p = records(call.name)
    row = call.case.row
    is_classifier = row.predicts_labels or "predict_proba" in row.responses
    return (ClassifyingEcho() if is_classifier else Echo()), p.reshape(len(p), -1), y


def seeded_system(seed):
    """Give dp_metrics a seeded stream for the operating system's, where it takes no seed."""
    return mock.patch.object(OSEntropy, "words", SeededEntropy(seed).words)


def scorers():
    for call in JUDGING:
        yield f"{call}/cross-validation", partial(scored, call)
        yield f"{call}/search", partial(searched, call)


def scored(call, seed):
    accountant, (model, X, y) = PrivacyAccountant(5), model_and_data(call)
    settings = {**call.options, **call.neighboring, "accountant": accountant}
    if call.case.row.is_over_labels(settings):
        settings = {"labels": np.unique(y), **settings}
    with seeded_system(seed):
        scorer = dp.make_private_scorer(call.case.function, epsilon=1, **settings)
        scores = cross_val_score(model, X, y, cv=KFold(3), scoring=scorer, error_score="raise")
        of_all = [scorer(model.fit(X, y), X, y)]
        if is_weighted(call):
            of_all.append(scorer(model, X, y, sample_weight=weights(300)))
    return [scores, of_all, ledger(accountant)]


def searched(call, seed):
    accountant, found, (model, X, y) = PrivacyAccountant(8), [], model_and_data(call)
    for expected_iter, epsilon in ((1, 0.3), (2.5, 3)):
        search = dp.PrivateRandomizedSearch(
            model,
            {"shift": [0.0, 0.5, 1.0]},
            metric=call.case.function,
            epsilon=epsilon,
            expected_iter=expected_iter,
            accountant=accountant,
            metric_params={**call.options, **call.neighboring},
        )
        with seeded_system(seed):
            search.fit(X[:150], y[:150], X_val=X[150:], y_val=y[150:])
        found.append([search.best_params_, search.best_score_])
    return [found, ledger(accountant)]


def frames():
    for call in JUDGING:
        if call.neighboring:
            yield f"{call}/private", partial(framed, call, "private")
        if call.relation == REPLACE:
            yield f"{call}/public", partial(framed, call, "public")


def framed(call, membership, seed):
    y, p = records(call.name)
    frame = dp.PrivateMetricFrame(
        metrics=partial(call.case.function, **call.options),
        y_true=y,
        y_pred=p,
        sensitive_features=persons(300) % 2,
        group_labels=[0, 1],
        epsilon=2,
        membership=membership,
        neighboring=call.relation,
        random_state=seed,
    )
    return [frame.overall, *frame.by_group.values(), frame.group_sizes]


# ---- intervals, comparisons, plans, audits -----------------------------------------------------------------

# The last bits of the limits of means are those of scipy's special functions: what is drawn is frozen.
INFERENCE = {
    "mean": (dp.private_mean_interval, {"max_loss": 4.0}, ["estimate"]),
    "mean, private cap": (dp.private_mean_interval, {"cap": "private"}, ["estimate"]),
    "median": (dp.private_quantile_interval, {"q": 0.5}, ["lower", "upper"]),
    "median, limited": (dp.private_quantile_interval, {"q": 0.5, "max_loss": 4.0}, ["lower", "upper"]),
    "wins": (dp.private_compare, {"loss": "mae"}, ["noisy_difference", "noisy_decided"]),
    "difference": (dp.private_compare, {"loss": "mae", "max_difference": 1.0}, ["estimate"]),
}


def inference():
    for name, epsilon in product(INFERENCE, (0.5, 3)):
        yield f"{name}/eps={epsilon}", partial(inferred, name, epsilon)


def inferred(name, epsilon, seed):
    function, settings, drawn = INFERENCE[name]
    losses = records("mean loss", 900)
    data = (*records("mse", 900), *losses) if function is dp.private_compare else losses
    found = function(*data, epsilon=epsilon, random_state=seed, **settings)
    return [getattr(found, one) for one in drawn]


def planning():
    for call in JUDGING:
        if call.relation == REPLACE and call.name != "roc auc, 3 labels":  # which releases several numbers
            yield str(call), partial(planned, call, "default")
    call = Call("mean loss", REPLACE, "limited")
    for mechanism in MECHANISMS:
        yield f"{call}/{mechanism}", partial(planned, call, mechanism)


def planned(call, mechanism, seed):
    """Return the errors to expect at two epsilons, and the epsilon for the first one of them."""
    data, settings = records(call.name, 60), {**call.options, **call.neighboring, **RULES[mechanism]}
    errors = [
        dp.expected_error(call.case.name, *data, epsilon=epsilon, **settings).mean_absolute
        for epsilon in (0.5, 5)
    ]
    if mechanism == "hazard":
        errors.append(dp.epsilon_for_error(call.case.name, *data, error=errors[0], **settings))
    return errors


def guesses():
    for call in CALLS:
        yield str(call), partial(guessed, call)


def guessed(call, seed):
    """Return the error to expect where all that is known is a guess, or why there is none."""
    options = {**call.options, **call.neighboring}
    labels = options.pop("labels", None)
    hints = {} if labels is None or "binary" in call.name else {"classes": len(labels)}
    if call.case.name == "private_top_k_accuracy_score":
        hints = {"classes": 3}
    expected = or_error(dp.expected_error, call.case.name, epsilon=1, n=100, guess=0.25, **hints, **options)
    if isinstance(expected, str):
        return expected
    return rounded([expected.mean_absolute, expected.bias, [*expected.quantiles.values()]])


def audits():
    for name, audited in {**AUDITED, **FRAMES, **PLANS}.items():
        rules = [rule for rule in MECHANISMS if is_audited(audited, rule)]
        if rules:
            yield name, partial(exact_losses, audited, rules)


def is_audited(audited, mechanism):
    if audited.has_own_noise or audited.adds:  # exact losses of a search for a private n take long
        return mechanism == "geometric" and (audited.has_own_noise or audited.sums)
    return audited.bounded or mechanism in ("adaptive", "hazard")


def exact_losses(audited, rules, seed):
    """Return the privacy losses between eight numbers and the same with the last one replaced, in 12 digits.

    They are sums of floats, which machines round in different ways, and no releases.
    """
    a = np.linspace(0, 1, 8)
    coarse = {"above_threshold": AboveThreshold(beta=1.2)}
    losses = [audited.loss(0.75, coarse.get(rule, rule))(a, np.append(a[:-1], 0.0)) for rule in rules]
    return [float(f"{loss:.12g}") for loss in losses]


# ---- the table ---------------------------------------------------------------------------------------------


def named(releases):
    found = {}
    for name, make in releases:
        if name in found:
            raise ValueError(f"Two releases are named {name}.")
        found[name] = make
    return found


LIMITS = named(limits())
GROUPS = {
    "data": named(data_of_cases()),
    "metrics": named(metrics()),
    "options": named(options()),
    "limits": {name: make for name, make in LIMITS.items() if not name.startswith("average precision")},
    "limits of average precision": {
        name: make for name, make in LIMITS.items() if name.startswith("average precision")
    },
    "spends": named(spends()),
    "summaries": named(summaries()),
    "dask": named(dask_collections()),
    "scorers": named(scorers()),
    "frames": named(frames()),
    "inference": named(inference()),
    "planning": named(planning()),
    "guesses": named(guesses()),
    "audits": named(audits()),
}
"""Every release, by its group and its name."""


def evaluate(group, name):
    """Return the text of what is released now: numbers as `float.hex`, or a digest of many."""
    seed = zlib.crc32(f"{group}: {name}".encode())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # seeds, noise, and summaries of little capacity
        text = json.dumps(encoded(GROUPS[group][name](seed)), separators=(",", ":")).replace('"', "")
    return text if len(text) <= 160 else digest(text.encode())


def encoded(value):
    if isinstance(value, np.ndarray | np.generic):
        return encoded(value.tolist())
    if isinstance(value, dp.PrivateResult):
        return encoded([value.value, value.drawn] if value.drawn else value.value)
    if isinstance(value, list | tuple):
        return [encoded(item) for item in value]
    if isinstance(value, Mapping):
        return [[encoded(key), encoded(item)] for key, item in value.items()]
    if type(value) is float:
        return value.hex()
    if value is None or type(value) in (str, int, bool):
        return value
    raise AssertionError(f"A release gives a {type(value).__name__}.")


def arithmetic():
    """Return a digest of how this machine rounds, and of the streams of NumPy's generators.

    The last bit of a logarithm may differ between kinds of processors and versions of NumPy, and then a few
    releases do too.
    """
    x = np.random.default_rng(0).integers(1, 1 << 20, 4096) / 4096
    parts = [x, np.log(x), np.log1p(x), np.exp(-x), np.expm1(-x / 64), np.sqrt(x), x**1.02, np.cos(x)]
    parts += [np.array([f(-v) for v in x.tolist() for f in (math.exp, math.expm1)])]
    parts += [np.array([f(v) for v in x.tolist() for f in (math.log, math.log1p, math.sqrt)])]
    parts += [x @ np.exp(-x), x.reshape(64, 64) @ np.log(x).reshape(64, 64)]
    parts += [np.exp2(-x), np.log(x.astype(np.float32)), *roots_legendre(16)]
    parts += [np.random.RandomState(0).randint(0, 1 << 30, 64).astype(float)]
    return digest(b"".join(np.asarray(part).tobytes() for part in parts))


def digest(data):
    return hashlib.sha256(data).hexdigest()[:16]


def read_table():
    return json.loads(TABLE.read_text())


def write_table(releases):
    """Write one line a release, so that a diff shows what moved."""
    TABLE.write_text(json.dumps({"arithmetic": arithmetic(), "releases": releases}, indent=0) + "\n")
