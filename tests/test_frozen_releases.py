"""Not a bit of any release moves while the code is rearranged, nor what a result says of itself.

`GROUPS` holds every release by its group and its name. Most are made of `CASES`: each metric by each
neighbouring relation and mechanism, with each of its options, from summaries, Dask, scorers and frames. A
release makes its data, its seed and its settings anew, so the order of the releases is of no account.

``python tests/test_frozen_releases.py --freeze`` writes what the code gives now, and prints what moved: do
that only where a change of results is meant, and say so in the changelog.
"""

import hashlib
import json
import math
import pickle
import sys
import warnings
import zlib
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path

import dask
import doors
import numpy as np
import pytest
from cases import (
    ADD_OR_REMOVE,
    CALLS,
    CASES,
    LIMITED,
    REPLACE,
    RULES,
    Call,
    made_for,
    persons,
    records,
    variations,
    varied_data,
    weights,
)
from helpers import ClassifyingEcho, Echo, all_of_labels, all_of_scores, kind_of, seeded, system_of
from scipy.special import roots_legendre
from sklearn.model_selection import KFold, cross_val_score

import dp_metrics as dp
from dp_metrics import PrivacyAccountant
from dp_metrics.analysis.auditing import AUDITED, audited_loss
from dp_metrics.mechanisms import MECHANISMS, AboveThreshold
from dp_metrics.metrics import METRICS
from dp_metrics.release.result import Result

TABLE = Path(__file__).parent / "release" / "frozen_releases.json"

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
        *(or_error(result.population_interval, sure=sure) for sure in (True, False)),
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
            data = varied_data(call, variation, n)
            found.append(
                call.release(data, mechanism, epsilon=epsilon, random_state=seed, **made_for(more, n))
            )
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
        return dp.Summary(call.case.function, capacity=capacity, **options)
    if kind_of(row) == "variance":
        return dp.Summary("variance", capacity=capacity, **options)
    if kind_of(row) == "confusion":
        return all_of_labels(options.get("labels"))
    return all_of_scores() if kind_of(row) == "scores" else None


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
    """Return releases of chunks that were summarised, sent and merged."""
    parts = []
    for start in range(0, 300, 70):
        own = slice(start, start + 70)
        weight = {"sample_weight": weights(300)[own]} if weighted else {}
        part = empty_summary(call, capacity).update(*(a[own] for a in records(call.name)), **weight)
        parts.append(pickle.loads(pickle.dumps(part)))
    while len(parts) > 1:
        parts = [*parts[2:], parts[0].merge(parts[1])]
    settings = {"neighboring": call.relation, "random_state": seed}
    rules = SUMMARY_RULES if keeps_ranks(call.case.row) else ("default",)
    found = [parts[0].release(1, **settings, **RULES[rule]) for rule in rules if call.is_served(rule)]
    return [getattr(released, "result", released) for released in found]


def dask_collections():
    for call in LIMITED:
        if call.case.row.usual.merges:
            yield str(call), partial(in_dask, call, False)
            if is_weighted(call):
                yield f"{call}/weights", partial(in_dask, call, True)


def in_dask(call, weighted, seed):
    """Return a release of Dask collections, computed in this thread."""
    weight = {"sample_weight": weights(300)} if weighted else {}
    settings = {**call.options, **call.neighboring, **weight, "epsilon": 1, "random_state": seed}
    with dask.config.set(scheduler="synchronous"):
        return doors.dask(replace(call.case, pick=None), records(call.name), **settings)


# ---- scorers, searches, frames -----------------------------------------------------------------------------

JUDGING = [call for call in CALLS if call.case.row.greater_is_better is not None and call.form == "plain"]


def model_and_data(call):
    y, p = records(call.name)
    row = call.case.row
    is_classifier = row.predicts_labels or "predict_proba" in row.responses
    return (ClassifyingEcho() if is_classifier else Echo()), p.reshape(len(p), -1), y


def scorers():
    for call in JUDGING:
        yield f"{call}/cross-validation", partial(scored, call)
        yield f"{call}/search", partial(searched, call)


def scored(call, seed):
    accountant, (model, X, y) = PrivacyAccountant(5), model_and_data(call)
    settings = {**call.options, **call.neighboring, "accountant": accountant}
    if call.case.row.is_over_labels(settings):
        settings = {"labels": np.unique(y), **settings}
    with system_of(seeded(seed)):
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
        with system_of(seeded(seed)):
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


def inferred(name, epsilon, seed):
    function, settings, drawn = INFERENCE[name]
    losses = records("mean loss", 900)
    data = (*records("mse", 900), *losses) if function is dp.private_compare else losses
    found = function(*data, epsilon=epsilon, random_state=seed, **settings)
    return [getattr(found, one) for one in drawn]


PAGES = {
    "labels": {"y_pred": "labels", "labels": [0, 1, 2, 3]},
    "scores": {"y_score": "shares", "baseline": "others"},
    "targets": {"y_pred": "others", "task": "regression", "baseline": "labels"},
    "targets, tolerance": {"y_pred": "others", "task": "regression", "bounds": (-1, 1), "tolerance": 0.25},
}


def pages():
    """All that a page draws: which releases it has, and what each of them costs."""
    ways = {"of all": {}, "by group": {"sensitive_features": "groups", "group_labels": [0, 1]}}
    ways |= {"private n": {"neighboring": ADD_OR_REMOVE}, "persons": {"groups": "ids", "max_records": 2}}
    for (kind, options), (way, more) in product(PAGES.items(), ways.items()):
        yield f"{kind}/{way}", partial(paged, kind, {**options, **more})


def paged(kind, options, seed):
    rng = np.random.default_rng(5)
    y = rng.integers(0, 4 if kind == "labels" else 2, 900)
    columns = {
        "labels": np.where(rng.random(900) < 0.8, y, 0),
        "shares": rng.random(900),
        "ids": persons(900),
    }
    columns |= {"others": rng.integers(0, 65, 900) / 64, "groups": columns["ids"] % 2}
    options = {name: columns.get(one, one) if isinstance(one, str) else one for name, one in options.items()}
    page = dp.private_evaluate(y, **options, epsilon=8, random_state=seed)
    drawn = [[output.value, output.drawn] for one in page.results for output in one.outputs]
    return [[part.name for part in page.plan.parts], drawn]


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
        dp.plan_release(call.case.name, guess=tuple(data), epsilon=epsilon, **settings).error
        for epsilon in (0.5, 5)
    ]
    if mechanism == "hazard":
        errors.append(dp.plan_release(call.case.name, guess=tuple(data), error=errors[0], **settings).epsilon)
    return rounded(errors)


def guessed(call, seed):
    """Return the error to expect where all that is known is a guess, or why there is none."""
    options = {**call.options, **call.neighboring}
    labels = options.pop("labels", None)
    hints = {} if labels is None or "binary" in call.name else {"classes": len(labels)}
    if call.case.name == "private_top_k_accuracy_score":
        hints = {"classes": 3}
    expected = or_error(dp.plan_release, call.case.name, epsilon=1, n=100, guess=0.25, **hints, **options)
    if isinstance(expected, str):
        return expected
    return rounded([expected.error, round(expected.bias, 12), [*expected.quantiles.values()]])


def audits():
    for name, audited in AUDITED.items():
        released, _, by = audited
        rules = [rule for rule in MECHANISMS if rule in by]
        if None in by.values():
            rules = [None]
        elif "neighboring" in released.keywords:  # one is enough
            rules = [rule for rule in rules if rule == "geometric"]
        if rules:
            yield name, partial(exact_losses, audited, rules)


def exact_losses(audited, rules, seed):
    """Return the privacy losses between eight numbers and the same with the last one replaced, in 12 digits.

    They are sums of floats, which machines round in different ways, and no releases.
    """
    a, coarse = np.linspace(0, 1, 8), {"above_threshold": AboveThreshold(beta=1.2)}
    pair = a, np.append(a[:-1], 0.0)
    losses = [audited_loss(audited, *pair, epsilon=0.75, mechanism=coarse.get(rule, rule)) for rule in rules]
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
    "spends": named((str(call), partial(paid, call)) for call in LIMITED),
    "summaries": named(summaries()),
    "dask": named(dask_collections()),
    "scorers": named(scorers()),
    "frames": named(frames()),
    "inference": named(
        (f"{name}/eps={epsilon}", partial(inferred, name, epsilon))
        for name, epsilon in product(INFERENCE, (0.5, 3))
    ),
    "pages": named(pages()),
    "planning": named(planning()),
    "guesses": named((str(call), partial(guessed, call)) for call in CALLS),
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
    if isinstance(value, Result):
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


# ---- what moved --------------------------------------------------------------------------------------------

SLOW = {
    "limits": pytest.mark.gate,
    "limits of average precision": pytest.mark.slow,
    "planning": pytest.mark.slow,
    "guesses": pytest.mark.slow,
}


def attempt(group, name):
    """Return what a release gives now, or the error that it raises, for the list of what moved."""
    try:
        return evaluate(group, name)
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def moved(frozen, now):
    """Return a line for each release that is not the frozen one."""
    absent = "no such release"
    return [
        f"{name}: frozen {frozen.get(name, absent)}, now {now.get(name, absent)}"
        for name in dict.fromkeys([*frozen, *now])
        if frozen.get(name, absent) != now.get(name, absent)
    ]


@pytest.mark.parametrize(
    "group",
    [pytest.param(group, marks=SLOW.get(group, ())) for group in GROUPS],
)
def test_no_release_has_moved(group):
    table = read_table()
    if table["arithmetic"] != arithmetic():
        pytest.skip("frozen on a machine that rounds otherwise: freeze before your change, compare after it")
    # backwards: nothing depends on the releases that went before
    now = {name: attempt(group, name) for name in reversed(GROUPS[group])}
    lines = moved(table["releases"][group], now)
    assert not lines, f"{len(lines)} of {len(now)} {group} moved:\n" + "\n".join(lines)


def test_the_table_has_every_release():
    releases = read_table()["releases"]
    assert {group: [*frozen] for group, frozen in releases.items()} == {
        group: [*made] for group, made in GROUPS.items()
    }
    assert sum(map(len, releases.values())) > 2000


@pytest.mark.parametrize("name", METRICS)
def test_every_metric_is_frozen_with_every_mechanism_and_option(name):
    row, calls = METRICS[name], [call for call in CALLS if call.case.name == name]
    served = {mechanism for mechanism in MECHANISMS for call in calls if call.is_served(mechanism)}
    assert served == (set() if row.mechanism is None else MECHANISMS.keys())
    tried = {option for call in calls for _, more in variations(call) for option in [*more, *call.options]}
    # each of these two takes one value only, which is the default
    fixed = {"private_r2_score": {"sample_weight"}, "private_calibration_curve": {"strategy"}}
    assert tried == {*row.options, *row.required} - fixed.get(name, set())


def freeze():
    before = read_table()["releases"] if TABLE.exists() else {}
    now = {group: {name: evaluate(group, name) for name in releases} for group, releases in GROUPS.items()}
    for group in dict.fromkeys([*before, *now]):
        for line in moved(before.get(group, {}), now.get(group, {})):
            print(f"{group}: {line}")
    write_table(now)
    print(f"{sum(map(len, now.values()))} releases are frozen in {TABLE.name}.")


if __name__ == "__main__":
    if sys.argv[1:] != ["--freeze"]:
        sys.exit("usage: python tests/test_frozen_releases.py --freeze")
    freeze()
