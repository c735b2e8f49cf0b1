"""Whatever a caller sets for scikit-learn, NumPy, pandas or Python: a release and its cost are the same."""

import decimal
import sys
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from functools import cache, partial

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from cases import CASES, KINDS, valid
from helpers import bits, seeded
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import dp_metrics as dp

N = 60
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, 2))
Y, SCORE = (X[:, 0] + RNG.normal(size=N) > 0).astype(int), 1 / (1 + np.exp(-X[:, 0]))
PRED, GROUP = (SCORE > 0.5).astype(int), np.array(["a", "b"])[np.arange(N) % 2]
EPSILON = Fraction(1, 3)  # of no decimal


@contextmanager
def decimals(**settings) -> Iterator[None]:
    with decimal.localcontext(decimal.Context(**settings)):
        yield


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
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        # these say what is public, and come before the spend
        for ours in (dp.NoisyReleaseWarning, dp.TrainingFoldsWarning):
            warnings.simplefilter("ignore", ours)
        yield


SETTINGS = {
    "pandas from transformers": partial(sklearn.config_context, transform_output="pandas"),
    "polars from transformers": partial(sklearn.config_context, transform_output="polars"),
    "metadata routing": partial(sklearn.config_context, enable_metadata_routing=True),
    "nothing is checked": partial(
        sklearn.config_context, assume_finite=True, skip_parameter_validation=True, working_memory=1
    ),
    "short arrays": partial(np.printoptions, precision=1, threshold=2, edgeitems=1, legacy="1.13"),
    "short tables": partial(pd.option_context, "display.precision", 1, "display.max_rows", 1),
    "text as objects": partial(pd.option_context, "future.infer_string", False),
    "one digit": partial(decimals, prec=1, Emax=1, Emin=-1, traps=[*decimal.Context().flags]),
    "few digits": few_digits,
    "warnings": warnings_raise,
}


@cache
def model():
    return make_pipeline(StandardScaler(), LogisticRegression()).fit(X, Y)


def of_metric(name, budget, **settings):
    case = CASES[name]
    function = dp.with_result(case.function)
    data = valid(case, N)
    options = {**case.options, **case.bounded, "random_state": seeded(), "accountant": budget, **settings}
    released = [function(*data, epsilon=EPSILON, **options)]
    try:
        return [*released, released[0].noise_interval()]
    except ValueError as error:
        return [*released, str(error)]


def of_smallest_epsilon(budget):
    return dp.private_confusion_matrix(
        Y, PRED, epsilon=1e-300, accountant=budget, random_state=seeded()
    ).tolist()


def of_containers(budget):
    columns = pd.Series(Y), pd.Series(SCORE), pl.Series(Y), pl.Series(SCORE), Y.tolist(), SCORE.astype(object)
    released = partial(dp.private_log_loss, epsilon=EPSILON, accountant=budget, random_state=seeded())
    return [released(columns[at], columns[at + 1]) for at in (0, 2, 4)]


def of_frame(budget, membership):
    frame = dp.PrivateMetricFrame(
        metrics="recall", y_true=Y, y_pred=PRED, sensitive_features=pd.Series(GROUP), group_labels=["a", "b"],
        epsilon=EPSILON, membership=membership, accountant=budget, random_state=seeded(),
    )  # fmt: skip
    return [*frame.by_group.values(), frame.overall, frame.difference(), frame.by_group.to_frame().to_json()]


def of_page(budget):
    page = dp.private_evaluate(
        model(), X, Y, epsilon=EPSILON, accountant=budget, sensitive_features=GROUP, group_labels=["a", "b"],
        random_state=seeded(),
    )  # fmt: skip
    page.to_html()
    return page.to_json()


def of_comparison(budget, max_difference):
    return dp.private_compare(
        Y, SCORE, 1 - SCORE, loss="brier", max_difference=max_difference, epsilon=EPSILON, accountant=budget,
        random_state=seeded(),
    ).to_json()  # fmt: skip


def of_choice(budget):
    return dp.private_best(
        Y, [PRED, 1 - PRED], metric="accuracy", epsilon=EPSILON, accountant=budget, random_state=seeded()
    ).to_json()


def of_summary(budget):
    summary = dp.VarianceSummary(bounds=(-1e150, 1e150)).update(X[:, 0] * 1e150)
    return (
        type(summary)
        .from_bytes(summary.to_bytes())
        .release(EPSILON, accountant=budget, random_state=seeded())
    )


def of_scorer(budget):
    """Return nothing that is drawn, for a scorer takes no seed: all that is the same is what it costs."""
    scorer = dp.make_private_scorer("roc_auc", epsilon=EPSILON, accountant=budget)
    folds = cross_val_score(model(), X, Y, scoring=scorer, cv=2, error_score="raise")
    return bool(np.isfinite([scorer(model(), X, Y), *folds]).all())


def of_stored_release(budget):
    with tempfile.TemporaryDirectory() as folder:
        budgets = (dp.PrivacyAccountant(1, path=f"{folder}/budget") for _ in range(2))
        first = next(budgets)
        made = dp.with_result(dp.private_mse)(
            Y, SCORE, bounds=(0, 1), epsilon=EPSILON, accountant=first, spend_name="one"
        )
        again = next(budgets)
        return bits(again["one"]) == bits(made), again.spent, len(again.results())


CALLS = {
    **{name: partial(of_metric, name) for name in sorted(KINDS)},
    "private n": partial(of_metric, "mse", neighboring="add_or_remove_one"),
    "weights": partial(of_metric, "mse", sample_weight=np.arange(N) % 3 + 1.0),
    "persons": partial(of_metric, "mse", groups=np.arange(N) // 2),
    "smallest epsilon": of_smallest_epsilon,
    "containers": of_containers,
    "private frame": partial(of_frame, membership="private"),
    "public frame": partial(of_frame, membership="public"),
    "page": of_page,
    "wins": partial(of_comparison, max_difference=None),
    "mean difference": partial(of_comparison, max_difference=0.5),
    "choice": of_choice,
    "summary": of_summary,
    "scorer": of_scorer,
    "stored release": of_stored_release,
}


def outcome(name):
    """Return what a call gives, to the last bit, and what it cost."""
    budget = dp.PrivacyAccountant(10)
    return bits(CALLS[name](budget)), budget.spent


def forget_what_is_cached():
    """Empty the caches of the package, so that what they hold is computed under the setting."""
    modules = [module for name, module in sys.modules.items() if name.startswith("dp_metrics.")]
    for thing in [thing for module in modules for thing in vars(module).values()]:
        if hasattr(thing, "cache_clear"):
            thing.cache_clear()


@cache
def undisturbed():
    return {name: outcome(name) for name in CALLS}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("setting", SETTINGS)
def test_no_setting_changes_a_release_or_what_it_costs(setting):
    expected = undisturbed()
    forget_what_is_cached()
    for name in CALLS:
        with SETTINGS[setting]():
            found = outcome(name)
        assert found == expected[name], name
