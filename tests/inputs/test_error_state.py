"""A caller who makes NumPy raise hears nothing of the data from what is public, and gets the same bits."""

import functools
import inspect
import pickle
import warnings

import numpy as np
import pytest
from cases import CASES, KINDS, valid
from helpers import bits, loop_over, seeded, slow_but
from sklearn.dummy import DummyRegressor
from sklearn.linear_model import LinearRegression

import dp_metrics as dp
from dp_metrics import auditing
from dp_metrics.metrics import FUNCTIONS as OF_METRICS
from dp_metrics.metrics import METRICS

N = 60
RNG = np.random.default_rng(0)
Y, PRED = (RNG.random(N) < 0.5).astype(int), (RNG.random(N) < 0.5).astype(int)
SCORE = RNG.random(N)
# squares overflow, and quotients underflow
HUGE, TINY = RNG.random(N) * 1e300, RNG.random(N) * 1e-300
GROUP = np.array(["a", "b"])[np.arange(N) % 2]
RELATIONS = ("replace_one", "add_or_remove_one")


def same_under_any_state(act):
    """Check that an act gives the same bits however NumPy treats errors, and is silent."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = bits(act())
    with np.errstate(all="raise"), warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        assert bits(act()) == expected


@loop_over("relation", RELATIONS)
@loop_over("epsilon", [1e-300, 1.0])
@pytest.mark.parametrize(
    "name", slow_but(KINDS - {"mse, 3 outputs", "log loss", "mean loss", "probability report"}, CASES)
)
def test_metrics_and_limits_of_their_noise(name, epsilon, relation):
    case = CASES[name]
    options = {"neighboring": relation} if "neighboring" in case.parameters else {}
    data = valid(case, N)

    def act():
        try:
            result = dp.with_result(case.function)(
                *data,
                epsilon=epsilon,
                random_state=seeded(),
                **{**case.options, **case.bounded},
                **options,
            )
        except ValueError as error:
            return str(error)
        try:
            return result, result.noise_interval(), dp.noise_interval(result, confidence=0.5)
        except ValueError as error:
            return result, str(error)

    same_under_any_state(act)


NUMBERS = {
    "mae": {},
    "mse": {"bounds": (0, 1)},
    "accuracy": {},
    "zero_one": {"mechanism": "hazard"},
    "rmse": {"bounds": (0, 1)},
    "variance": {"mechanism": "hazard"},
    "quantile": {"q": 0.5, "bounds": (0, 1)},
}


@loop_over("n", [4, 100])
@loop_over("epsilon", [1e-300, 1.0, 1e300])
@pytest.mark.parametrize("metric", NUMBERS)
def test_limits_of_a_number(metric, epsilon, n):
    def act():
        try:
            return dp.noise_interval(0.5, metric=metric, epsilon=epsilon, n=n, **NUMBERS[metric])
        except ValueError as error:
            return str(error)

    same_under_any_state(act)


SCORER = dp.make_private_scorer(dp.private_mae, epsilon=1.0)
FUNCTIONS = {
    "accuracy interval": lambda: dp.accuracy_interval(
        dp.with_result(dp.private_accuracy_score)(Y, PRED, epsilon=1.0, random_state=seeded())
    ),
    "mean interval": lambda: dp.private_mean_interval(
        SCORE, max_loss=1.0, epsilon=1.0, random_state=seeded()
    ),
    "capped mean interval of huge losses": lambda: dp.private_mean_interval(
        HUGE, cap="private", epsilon=5.0, random_state=seeded()
    ),
    "mean interval of tiny losses": lambda: dp.private_mean_interval(
        TINY, max_loss=1e300, epsilon=1e-5, random_state=seeded()
    ),
    "quantile interval": lambda: dp.private_quantile_interval(SCORE, 0.5, epsilon=5.0, random_state=seeded()),
    "quantile interval of huge losses": lambda: dp.private_quantile_interval(
        HUGE, 0.5, epsilon=5.0, random_state=seeded()
    ),
    "comparison": lambda: vars(dp.private_compare(Y, PRED, 1 - PRED, epsilon=1.0, random_state=seeded())),
    "choice by errors": lambda: vars(
        dp.private_best(
            HUGE,
            [TINY, -HUGE],
            metric="mean_absolute_percentage_error",
            max_loss=1e300,
            epsilon=1.0,
            random_state=seeded(),
        )
    ),
    "comparison of errors": lambda: vars(
        dp.private_compare(
            HUGE, TINY, -HUGE, loss="mse", max_difference=1e300, epsilon=1.0, random_state=seeded()
        )
    ),
    "expected error": lambda: vars(dp.expected_error(dp.private_mae, SCORE, TINY, epsilon=1.0)),
    "expected error of a table": lambda: vars(
        dp.expected_error(dp.private_recall_score, Y, PRED, epsilon=1.0)
    ),
    "expected error of an area": lambda: vars(
        dp.expected_error(dp.private_roc_auc_score, Y, SCORE, epsilon=1.0)
    ),
    "epsilon for an error": lambda: dp.epsilon_for_error(dp.private_accuracy_score, Y, PRED, error=0.1),
    "count of releases": lambda: dp.count_releases(5, train_sizes=[100, 200], scoring=SCORER),
    "loss of a metric": lambda: auditing.metric_loss(dp.private_mse, (HUGE, TINY), (TINY, HUGE), epsilon=1.0),
    "loss of an area": lambda: auditing.metric_loss(
        dp.private_roc_auc_score, (Y[:6], SCORE[:6]), (Y[:6], [*SCORE[:5], 0.9]), epsilon=1.0
    ),
    "loss of a frame": lambda: auditing.frame_loss(
        dp.private_accuracy_score, (Y, PRED, GROUP), (Y, Y, GROUP), group_labels=["a", "b"], epsilon=1.0
    ),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_other_functions(name):
    same_under_any_state(FUNCTIONS[name])


@pytest.mark.parametrize("membership", ["private", "public"])
@pytest.mark.parametrize(
    "metric",
    [dp.private_recall_score, dp.private_accuracy_score, dp.private_mse, dp.private_roc_auc_score],
)
def test_frames(metric, membership):
    pred = {dp.private_mse: HUGE, dp.private_roc_auc_score: SCORE}.get(metric, PRED)

    def act():
        made = dp.PrivateMetricFrame(
            metrics=metric,
            y_true=Y,
            y_pred=pred,
            sensitive_features=GROUP,
            group_labels=["a", "b", "nobody"],
            epsilon=1.0,
            membership=membership,
            random_state=seeded(),
        )
        gaps = [
            ask(method)
            for ask in (made.difference, made.ratio)
            for method in ("between_groups", "to_overall")
        ]
        return [
            *made.by_group.values(),
            made.overall,
            *gaps,
            made.group_max(),
            made.group_min(),
            *made.note.values(),
        ]

    same_under_any_state(act)


SUMMARIES = {
    "loss": (functools.partial(dp.LossSummary, dp.private_mse), (HUGE, TINY)),
    "variance": (dp.VarianceSummary, (HUGE,)),
    "confusion": (dp.ConfusionSummary, (Y, PRED)),
    "scores": (dp.ScoreSummary, (Y, SCORE)),
}


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("name", SUMMARIES)
def test_summaries(name, relation):
    make, data = SUMMARIES[name]

    def act():
        first, second = (make().update(*(column[i::2] for column in data)) for i in (0, 1))
        read = type(first).from_bytes(first.merge(second).to_bytes())
        options = {"neighboring": relation, "random_state": seeded()}
        released = read.release(1.0, **options)
        if isinstance(released, float):
            return released
        tells = ("_score", "_curve", "_matrix", "_report", "_corrcoef")
        asked = [name for name in dir(released) if name.endswith(tells) and not name.startswith("_")]
        results = [released.result.noise_interval()]
        for method in (getattr(released, name) for name in asked):
            results.append(method(*[0.5] * ("threshold" in inspect.signature(method).parameters)))
        return results

    same_under_any_state(act)


def test_scorers_and_search():
    X, y = SCORE[:, np.newaxis], SCORE * 1e200
    fitted = LinearRegression().fit(X, SCORE)

    def score():
        scorer = dp.make_private_scorer(dp.private_mse, epsilon=1.0)
        return isinstance(scorer(fitted, X, y), float)

    def search():
        found = dp.PrivateRandomizedSearch(
            DummyRegressor(), {"strategy": ["mean", "median"]}, metric=dp.private_mae, epsilon=1.0
        ).fit(X, y, X_val=X, y_val=y)
        return isinstance(found.best_score_, float)

    for act in (score, search):
        same_under_any_state(act)


def test_signatures_and_pickles_stay():
    assert next(iter(inspect.signature(dp.noise_interval).parameters)) == "result_or_value"
    for name in dp.__all__:
        thing = getattr(dp, name)
        if callable(thing):
            assert getattr(dp, thing.__name__) is thing
            assert pickle.loads(pickle.dumps(thing)) is thing
    assert METRICS["private_mae"].name == "private_mae"


def test_every_public_function_that_computes_has_a_state_of_its_own():
    """A metric has it in `Metric.planned` and `Release.run`; the others call a metric."""
    names = [name for name in dp.__all__ if inspect.isfunction(getattr(dp, name))]
    names = [name for name in names if getattr(dp, name) not in OF_METRICS.values()]
    bare = {name for name in names if not hasattr(getattr(dp, name), "__wrapped__")}
    assert bare == {"make_private_scorer", "get_private_scorer", "get_private_scorer_names", "with_result"}
    for kind in (dp.PrivateResult, dp.ReleasedConfusion, dp.LossSummary, dp.ScoreSummary, dp.Hazard):
        methods = [
            member for name, member in vars(kind).items() if name[0] != "_" and inspect.isfunction(member)
        ]
        assert methods
        assert all(hasattr(method, "__wrapped__") for method in methods)
