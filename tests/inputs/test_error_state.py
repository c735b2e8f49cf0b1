"""Whatever a caller sets for NumPy, scikit-learn, pandas or Python: a release and its cost are the same.

A caller who makes NumPy raise hears nothing of the data from what is public.
"""

import decimal
import inspect
import sys
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from fractions import Fraction
from functools import cache, cached_property, partial

import numpy as np
import pandas as pd
import pytest
import sklearn
from cases import CASES, KINDS, valid
from doors import RELEASES, UNSEEDED, people, result, stored
from helpers import bits, seeded
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import dp_metrics as dp
from dp_metrics.analysis import auditing
from dp_metrics.inputs.options import own_error_state
from dp_metrics.metrics import metric_of
from dp_metrics.metrics.labels.released_confusion import ReleasedConfusion
from dp_metrics.release.result import Result

N = 60
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, 2))
Y, SCORE = (X[:, 0] + RNG.normal(size=N) > 0).astype(int), 1 / (1 + np.exp(-X[:, 0]))
PRED, GROUP = (SCORE > 0.5).astype(int), np.array(["a", "b"])[np.arange(N) % 2]
HUGE, TINY = RNG.random(N) * 1e300, RNG.random(N) * 1e-300  # squares overflow, and quotients underflow
PEOPLE = people(1200).assign(x=np.resize(HUGE, 1200), z=np.resize(TINY, 1200))
EPSILON = Fraction(1, 3)  # of no decimal


@contextmanager
def few_digits() -> Iterator[None]:
    """Let Python refuse to write integers of more than 640 digits, the least that it takes."""
    before = sys.get_int_max_str_digits()
    sys.set_int_max_str_digits(640)
    try:
        yield
    finally:
        sys.set_int_max_str_digits(before)


@contextmanager
def warnings_raise() -> Iterator[None]:
    with warnings.catch_warnings(), np.errstate(all="warn"):
        warnings.simplefilter("error")
        # these say what is public, and come before the spend
        for ours in (dp.exceptions.NoisyReleaseWarning, dp.exceptions.TrainingFoldsWarning):
            warnings.simplefilter("ignore", ours)
        yield


SHORT_NUMBERS = (
    partial(np.printoptions, precision=1, threshold=2, edgeitems=1, legacy="1.13"),
    partial(pd.option_context, "display.precision", 1, "display.max_rows", 1),
    partial(decimal.localcontext, decimal.Context(prec=1, Emax=1, Emin=-1, traps=[*decimal.Context().flags])),
    few_digits,
)
OTHER_CONTAINERS = (
    partial(sklearn.config_context, transform_output="pandas", enable_metadata_routing=True),
    partial(sklearn.config_context, assume_finite=True, skip_parameter_validation=True, working_memory=1),
    partial(pd.option_context, "future.infer_string", False),
)
SETTINGS = {  # several at a time, because each takes all calls
    "errors of NumPy, short numbers and other containers": (
        partial(np.errstate, all="raise"), *SHORT_NUMBERS, *OTHER_CONTAINERS,
    ),
    "warnings, and polars from transformers": (
        warnings_raise, partial(sklearn.config_context, transform_output="polars"),
    ),
}  # fmt: skip


@cache
def model():
    return make_pipeline(StandardScaler(), LogisticRegression()).fit(X, Y)


def of_metric(name, **settings):
    released = result(CASES[name], valid(CASES[name], N), **{**CASES[name].bounded, **settings})
    try:
        return released, released.noise_interval(), released.noise_interval(confidence=0.5)
    except ValueError as error:
        return released, str(error)


def of_little_epsilon(metric, *data, **settings):
    released = dp.with_result(metric)(*data, **{**settings, "epsilon": 1e-300})
    return bits(released.value), released.noise_interval()


def of_frame(membership, **paid):
    frame = dp.PrivateMetricFrame(
        metrics="mse", y_true=Y, y_pred=HUGE, sensitive_features=pd.Series(GROUP),
        group_labels=["a", "b", "nobody"], membership=membership, **paid,
    )  # fmt: skip
    gaps = [ask(way) for ask in (frame.difference, frame.ratio) for way in ("between_groups", "to_overall")]
    ends = frame.overall, frame.group_max(), frame.group_min()
    return [*frame.by_group.values(), *gaps, *ends, frame.note, frame.frame().to_json()]


def of_stored(**paid):
    with tempfile.TemporaryDirectory() as folder:
        first, again = stored(CASES["mse"], valid(CASES["mse"], N), f"{folder}/budget", epsilon=EPSILON)
    return bits(again) == bits(first)


def of_scorer(*, accountant, **paid):
    """Return nothing that is drawn, for a scorer takes no seed: all that is the same is what it costs."""
    scorer = dp.make_private_scorer("roc_auc", epsilon=EPSILON, accountant=accountant)
    folds = cross_val_score(model(), X, Y, scoring=scorer, cv=2, error_score="raise")
    return bool(np.isfinite([scorer(model(), X, Y), *folds]).all())


FREE = {
    "expected error": partial(dp.plan_release, dp.private_mae, guess=(SCORE, TINY), epsilon=1.0),
    "epsilon for an error": partial(dp.plan_release, "accuracy", guess=(Y, PRED), error=0.1),
    "loss of a metric": partial(
        auditing.release_loss, dp.private_mse, (HUGE, TINY), (TINY, HUGE), epsilon=1.0
    ),
}
CALLS = {
    **{name: partial(of_metric, name) for name in sorted(KINDS)},
    "private n": partial(of_metric, "mse", neighboring="add_or_remove_one"),
    "weights": partial(of_metric, "mse", sample_weight=np.arange(N) % 3 + 1.0),
    "little epsilon": partial(of_little_epsilon, dp.private_variance, SCORE, mechanism="hazard"),
    "little epsilon, huge errors": partial(of_little_epsilon, dp.private_mse, HUGE, TINY),
    "frame of errors": partial(of_frame, "private"),
    "mean difference": partial(dp.private_compare, HUGE, TINY, -HUGE, loss="mse", max_difference=1e300),
    "choice of errors": partial(
        dp.private_best, HUGE, [TINY, -HUGE], metric="mean_absolute_percentage_error", max_loss=1e300
    ),
    **{name: partial(RELEASES[name], PEOPLE) for name in RELEASES.keys() - UNSEEDED},
    "stored release": of_stored,
    "scorer": of_scorer,
    **{name: lambda call=call, **paid: call() for name, call in FREE.items()},
}


def outcome(name):
    """Return what a call gives, to the last bit, and what it cost."""
    budget = dp.PrivacyAccountant(10)
    found = CALLS[name](epsilon=EPSILON, accountant=budget, random_state=seeded())
    if hasattr(found, "to_html"):
        found.to_html()
        found.released_at = None  # the time of day
    if hasattr(found, "to_json"):
        found = found.to_json()
    return bits(vars(found) if hasattr(found, "__dict__") else found), budget.spent


def forget_what_is_cached():
    """Empty the caches of the package, so that what they hold is computed under the setting."""
    modules = [module for name, module in sys.modules.items() if name.startswith("dp_metrics.")]
    for thing in [thing for module in modules for thing in vars(module).values()]:
        if hasattr(thing, "cache_clear"):
            thing.cache_clear()


@cache
def undisturbed():
    return {name: outcome(name) for name in CALLS}


@pytest.mark.gate
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("setting", SETTINGS)
def test_no_setting_changes_a_release_or_what_it_costs(setting):
    expected = undisturbed()
    forget_what_is_cached()
    for name in CALLS:
        with ExitStack() as entered:
            for one in SETTINGS[setting]:
                entered.enter_context(one())
            found = outcome(name)
        assert found == expected[name], name


def test_every_public_function_that_computes_has_a_state_of_its_own():
    """A metric has it in `Metric.planned`, `Query.read` and `Release.answer`; the others call a metric."""
    public = {name: getattr(dp, name) for name in dp.__all__}
    functions = {name for name, one in public.items() if inspect.isfunction(one) and metric_of(one) is None}
    bare = {name for name in functions if not hasattr(public[name], "__wrapped__")}
    assert bare == {"make_private_scorer", "with_result"}
    for kind in (Result, ReleasedConfusion, dp.Summary, dp.ReleasedScores, dp.mechanisms.Hazard):
        methods = [one for name, one in vars(kind).items() if name[0] != "_" and inspect.isfunction(one)]
        assert methods
        assert all(hasattr(method, "__wrapped__") for method in methods)


@own_error_state
class Doors:
    """Each way in which a class may give out something."""

    def method(self):
        return HUGE * HUGE

    @classmethod
    def of(cls):
        return HUGE * HUGE

    @property
    def told(self):
        return HUGE * HUGE

    @cached_property
    def kept(self):
        return HUGE * HUGE


def test_all_that_is_public_of_a_class_has_its_own_state():
    with np.errstate(all="raise"):
        doors = Doors()
        found = doors.method(), Doors.of(), doors.told, doors.kept, doors.kept
        assert np.isposinf(found).all()
        assert np.geterr()["over"] == "raise"
