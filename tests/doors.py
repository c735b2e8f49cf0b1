"""The doors to a number, a line or a few each: what is renamed inside the package is renamed here only.

A door takes a case of `cases.py`, its data and the settings of a release, and returns what the case is about,
or None where the metric has no such door. All but files take `random_state`.
"""

import io
import json
from contextlib import redirect_stderr, redirect_stdout
from functools import partial

import dask.array as da
import numpy as np
import pandas as pd
from cases import CASES, valid
from helpers import ClassifyingEcho, Echo, system_of
from sklearn.dummy import DummyClassifier

import dp_metrics as dp
from dp_metrics.cli.main import main

CUTS = (0, 70, 75, 200)  # where chunks begin
# cases that have another name on a page
ON_A_PAGE = {"median error": "median absolute error", "macro f1": "f1 (macro)", "brier": "brier score"}


def picked(case, result):
    return result if case.pick is None else case.pick(result)


def call(case, data, **settings):
    return case(*data, **settings)


def result(case, data, **settings):
    return dp.with_result(case.function)(*data, **{**case.options, **settings})


def dask(case, data, **settings):
    if not case.row.usual.merges:
        return None
    *chunked, weights = [
        None if array is None else da.from_array(array, chunks=(70, *array.shape[1:]))
        for array in (*data, settings.pop("sample_weight", None))
    ]
    options = {**case.options, **settings} | ({} if weights is None else {"sample_weight": weights})
    return picked(case, case.function(*chunked, **options))


def chunks(case, data, *, epsilon, random_state, sample_weight=None, **settings):
    """Return a metric of records that are read in chunks."""
    options = {**case.options, **settings}
    chosen = {name: options.pop(name) for name in ("neighboring", "mechanism") if name in options}
    if not case.row.usual.merges:
        return None
    parts = []
    for start, end in zip(CUTS, [*CUTS[1:], len(data[0])], strict=True):
        weights = {} if sample_weight is None else {"sample_weight": sample_weight[start:end]}
        made = dp.Summary(case.function, **options)
        parts.append(made.update(*(array[start:end] for array in data), **weights))
    merged = parts[0].merge(parts[1]).merge(parts[2].merge(parts[3]))
    return picked(case, merged.release(epsilon, random_state=random_state, **chosen))


def scorer(case, data, *, random_state, **settings):
    """Return the score of a model that predicts the second argument: of a loss, as the loss."""
    if case.row.greater_is_better is None or case.pick is not None:
        return None
    judges_classes = case.row.predicts_labels or "predict_proba" in case.row.responses
    options = {**case.options, **settings}
    if case.row.is_over_labels(options):
        options = {"labels": np.unique(data[0]), **options}
    made = dp.make_private_scorer(case.function, **options)
    given = np.reshape(data[1], (len(data[1]), -1))
    model = (ClassifyingEcho() if judges_classes else Echo()).fit(given, data[0])
    with system_of(random_state):
        score = made(model, given, data[0])
    return score if case.row.greater_is_better else -score


def frame(case, data, *, random_state, epsilon, **settings):
    """Return the metric of one of two groups that have the same records."""
    if len(case.row.data) == 1 or case.pick is not None:
        return None
    y_true, y_pred = (np.concatenate([array, array]) for array in data)
    released = dp.PrivateMetricFrame(
        metrics=partial(case.function, **{**case.options, **settings}),
        y_true=y_true,
        y_pred=y_pred,
        sensitive_features=np.repeat(["f", "m"], len(data[0])),
        group_labels=["f", "m"],
        membership="public",
        epsilon=epsilon,
        random_state=random_state,
    )
    return released.by_group["m"]


def command(*words):
    """Return what the command line prints, or None if it fails."""
    with redirect_stdout(io.StringIO()) as printed, redirect_stderr(io.StringIO()):
        code = main([str(word) for word in words])
    return printed.getvalue() if code == 0 else None


def columns_of(data):
    """Return columns of a file that hold the data, and the words that name them."""
    flags = ("--column",) if len(data) == 1 else ("--y-true", "--y-pred")
    columns, words = {}, []
    for flag, array in zip(flags, data, strict=True):
        several = np.reshape(array, (len(array), -1)).T
        named = {f"{flag[2:]} {place}": column for place, column in enumerate(several)}
        columns |= named
        words += [flag, *named]
    return columns, words


def typed_options(options):
    """Return options as they are typed: text as it is, tuples in Python, everything else in JSON."""

    def spelled(value):
        if isinstance(value, str):
            return value
        return repr(value) if isinstance(value, tuple) else json.dumps(value)

    return [
        word for name, value in options.items() for word in (f"--{name.replace('_', '-')}", spelled(value))
    ]


def file(case, data, folder, *, epsilon, random_state, **settings):
    """Return the number of `dp-metrics score` for the same records in a CSV file."""
    if case.pick is not None:
        return None
    path, (columns, named) = folder / "records.csv", columns_of(data)
    pd.DataFrame(columns).to_csv(path, index=False)
    words = (*named, *typed_options({**case.options, **settings}), "--epsilon", epsilon, "--json")
    with system_of(random_state):
        return json.loads(command("score", path, "--metric", case.name, *words))["value"]


def page(case, data, **settings):
    """Return the page of a model with the predictions of a case."""
    y_true, given = data
    labels = range(int(y_true.max()) + 1)
    if case.row.predicts_labels:
        return dp.private_evaluate(y_true, given, labels=labels, **settings)
    if case.row.responses == ("predict",):
        return dp.private_evaluate(y_true, given, task="regression", **settings)
    kind = "y_score" if given.ndim == 1 else "y_proba"
    return dp.private_evaluate(y_true, labels=labels, **{kind: given}, **settings)


def number_of_page(case, data, **settings):
    """Return the number of a case on the page of its predictions, or None where it tells none."""
    name = ON_A_PAGE.get(case.key, case.key)
    if len(case.row.data) == 1 or case.pick is not None or data[0].ndim > 1:
        return None
    if case.key == "top-k":  # whose scores are no probabilities, which a page takes
        return None
    told = page(case, data, **settings)
    return told[name].value if name in told else None


def stored(case, data, path, **settings):
    """Return what a release says, and what the budget that paid for it answers in a later session."""
    first = result(
        case, data, accountant=dp.PrivacyAccountant(1e6, path=path), spend_name="number", **settings
    )
    return first, dp.PrivacyAccountant(1e6, path=path)["number"]


def limits(released, **options):
    return released.noise_interval(**options)


def plan(case, data, **settings):
    return dp.plan_release(case.function, guess=tuple(data), **{**case.options, **settings})


# ---- everything that releases but the metrics themselves --------------------------------------------------


def people(n=300, *, alike=False):
    """Return records of two models and of groups: mixed ones, or all alike."""
    rng = np.random.default_rng(0)
    y, group, x = rng.integers(0, 2, n), rng.integers(0, 2, n), rng.normal(size=n)
    a, b = (np.where(rng.random(n) < wrong, 1 - y, y) for wrong in (0.1, 0.3))
    p, q = (np.clip(0.2 + 0.6 * one + 0.1 * rng.normal(size=n), 0, 1) for one in (a, b))
    made = {"y": y, "a": a, "b": b, "p": p, "q": q, "x": x, "z": x / 2, "group": group}
    if alike:
        made = {name: np.repeat(column[:1], n) for name, column in made.items()}
    return pd.DataFrame({**made, "person": np.arange(n) // 2})


BY_GROUP = {"group_labels": [0, 1]}
TRAINING = people(50)


def frame_of_labels(d, **settings):
    metrics = {"recall": "recall", "rate": "selection_rate"}
    return dp.PrivateMetricFrame(
        metrics=metrics, y_true=d.y, y_pred=d.a, sensitive_features=d.group, **BY_GROUP, **settings
    )


def page_of_labels(d, **settings):
    required = {"requirements": ["recall >= 0.7", "recall in each group >= 0.5"]}
    grouped = {"sensitive_features": d.group, **BY_GROUP}
    return dp.private_evaluate(d.y, d.a, labels=[0, 1], baseline=d.b, **grouped, **required, **settings)


def page_of_persons(d, **settings):
    return dp.private_evaluate(d.y, d.a, y_score=d.p, labels=[0, 1], groups=d.person, **settings)


def frame_of_persons(d, **settings):
    return dp.PrivateMetricFrame(
        metrics={"recall": "recall", "accuracy": "accuracy"}, y_true=d.y, y_pred=d.a, groups=d.person,
        equal_groups=True, sensitive_features=d.group, **BY_GROUP, **settings,
    )  # fmt: skip


def page_of_targets(d, **settings):
    grouped = {"sensitive_features": d.group, **BY_GROUP}
    return dp.private_evaluate(d.x, d.z, task="regression", **grouped, **settings)


def summary(metric, *columns):
    def release(d, *, epsilon, **settings):
        parts = [[d[name][part] for name in columns] for part in (slice(0, 100), slice(100, None))]
        first, second = (dp.Summary(metric).update(*part) for part in parts)
        return first.merge(second).release(epsilon, **settings)

    return release


def searched(d, *, spend_name=None, **settings):
    grid = {"strategy": ["prior", "stratified", "uniform"]}
    tried = dp.PrivateRandomizedSearch(DummyClassifier(), grid, metric="accuracy", **settings)
    tried.fit(TRAINING[["p"]], TRAINING.y, X_val=d[["p"]], y_val=d.y)
    return tried.best_score_, tried.best_params_


def scored(d, *, spend_name=None, **settings):
    model = DummyClassifier().fit(TRAINING[["p"]], TRAINING.y)
    return dp.make_private_scorer("accuracy", **settings)(model, d[["p"]], d.y)


BOTH = {
    "frame": frame_of_labels,
    "page of labels": page_of_labels,
    "page of scores": lambda d, **settings: dp.private_evaluate(d.y, y_score=d.p, baseline=d.q, **settings),
    "page of targets": page_of_targets,
    "summary of losses": summary("mae", "x", "z"),
    "summary of values": summary("variance", "x"),
    "summary of labels": summary("confusion_matrix", "y", "a"),
    "summary of scores": summary("roc_curve", "y", "p"),
}
PUBLIC_N = {
    "page of persons": page_of_persons,
    "page of persons who count once": partial(page_of_persons, equal_groups=True),
    "frame of persons who count once": frame_of_persons,
    "wins": lambda d, **settings: dp.private_compare(d.y, d.a, d.b, **settings),
    "difference": lambda d, **settings: dp.private_compare(d.y, d.a, d.b, max_difference=1, **settings),
    "choice": lambda d, **settings: dp.private_best(d.y, [d.a, d.b], metric="accuracy", **settings),
    "mean interval": lambda d, **settings: dp.private_mean_interval(d.p, max_loss=1, **settings),
    "capped interval": lambda d, **settings: dp.private_mean_interval(abs(d.x), cap="private", **settings),
    "quantile interval": lambda d, **settings: dp.private_quantile_interval(abs(d.x), 0.5, **settings),
    "search": searched,
    "scorer": scored,
}
"""What has no private number of records."""

RELEASES = BOTH | PUBLIC_N
"""Whatever releases but the metrics themselves, of records as `people` makes them."""

UNSEEDED = {"search", "scorer"}
"""What takes no `random_state`."""


def release_of(name):
    """Return what releases with given settings: one of these, or a metric of the tests' table."""
    if name in RELEASES:
        return partial(RELEASES[name], people(1200))
    case = CASES[name]
    return partial(case.function, *valid(case, 60), **case.options, **case.bounded)
