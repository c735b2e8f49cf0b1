"""Oracles written from the definitions, not from the package, and neighbouring data sets to try them on."""

import functools
import importlib.util
import inspect
import io
import itertools
import math
import pickle
import re
import subprocess
import sys
import threading
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Sequence, Set
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, fields
from fractions import Fraction
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest import mock

import numpy as np
import pytest
from hypothesis import strategies as st
from scipy.special import betaincinv
from scipy.stats import norm
from sklearn import metrics
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin

import dp_metrics as dp
from dp_metrics import PrivacyAccountant
from dp_metrics._random import Entropy, SeededEntropy
from dp_metrics.accounting import ledgers
from dp_metrics.analysis.auditing import release_loss
from dp_metrics.inputs.arrays import Records, in_blocks
from dp_metrics.inputs.losses import RecordLoss, identity
from dp_metrics.inputs.options import Floats, Relation, exact_epsilon
from dp_metrics.metrics.labels.confusion import Confusion
from dp_metrics.metrics.scores.curve_formulas import ScoreCounts
from dp_metrics.quantities.base import OneStage, Output, noise_of
from dp_metrics.quantities.mean import MeanOf
from dp_metrics.quantities.ranks import CalibrationOf, OrderOf, RankingOf
from dp_metrics.quantities.tables import TableOf
from dp_metrics.quantities.variance import VarianceOf
from dp_metrics.release.query import Terms
from dp_metrics.release.result import Result
from dp_metrics.sensitivity.exact import VarianceAggregate, exact_sum
from dp_metrics.sensitivity.output_bounds import BoundsFacts, OutputBounds, Ranks
from dp_metrics.sensitivity.variance_bounds import far_distances, variance_bounds

MAX = sys.float_info.max
REFUSED = (ValueError, TypeError)
BOTH_RELATIONS = (Relation.REPLACE_ONE, Relation.ADD_OR_REMOVE_ONE)

# Equal values, values one rounding apart, subnormals, values whose squares overflow or underflow.
HOSTILE = [
    0.0, 5e-324, sys.float_info.min, 1e-200, 1e-16, 0.1, 0.2, 0.3, 1 / 3, 0.7, 1.0, 1 + 2**-52,
    math.nextafter(3.0, 0.0), 3.0, 3.3, 1e16, 1e154, 1e308, MAX,
]  # fmt: skip
hostile_losses = st.sampled_from(HOSTILE) | st.floats(0, MAX)
hostile_values = st.sampled_from(HOSTILE + [-v for v in HOSTILE]) | st.floats(-MAX, MAX)


def assert_same(found: Any, wanted: Any) -> None:
    """Compare nested results by values, and with NumPy 2 by the types and shapes of arrays too."""
    strict = {"strict": True} if int(np.__version__.partition(".")[0]) > 1 else {}
    np.testing.assert_equal(found, wanted, **strict)


def bits(value: Any) -> Any:
    """Return what a result is made of, to be compared to the last bit."""
    if isinstance(value, Result):
        return bits({**value.to_dict(), "deployment": None})
    if isinstance(value, dict):
        return {name: bits(part) for name, part in value.items()}
    if isinstance(value, list | tuple | np.ndarray) or hasattr(value, "__iter__"):
        return value if isinstance(value, str) else [bits(part) for part in value]
    return value.hex() if isinstance(value, float) else repr(value)


def nearest(value: Fraction) -> float:
    """Return a rational number rounded once, saturated at the largest float."""
    try:
        return float(value)
    except OverflowError:
        return MAX if value > 0 else -MAX


def mean(values: Sequence[float]) -> Fraction:
    """Return the exact mean, which is 0 of no values."""
    return sum(map(Fraction, values)) / len(values) if values else Fraction(0)


def variance(values: Sequence[float]) -> Fraction:
    centre = mean(values)
    return mean([(Fraction(v) - centre) ** 2 for v in values])


def multisets(domain: Sequence[float], n: int) -> list[tuple[float, ...]]:
    return list(itertools.combinations_with_replacement(domain, n))


def distance(a: Sequence[float], b: Sequence[float]) -> int:
    """Return how many records of a must be replaced to make b, in whatever order they come."""
    return len(a) - sum((Counter(a) & Counter(b)).values())


def neighbour_pairs(domain: Sequence[float], n: int) -> Iterator[tuple[tuple[float, ...], tuple[float, ...]]]:
    """Yield all unordered pairs of data sets that differ in one record."""
    for a, b in itertools.combinations(multisets(domain, n), 2):
        if distance(a, b) == 1:
            yield a, b


def replaced(records: Sequence[float], position: int, record: float) -> list[float]:
    other = list(records)
    other[position % len(other)] = record
    return other


def facts_of(bounds: OutputBounds) -> BoundsFacts:
    """Return all that is public of output bounds."""
    return BoundsFacts(**{field.name: getattr(bounds, field.name) for field in fields(BoundsFacts)})


def loss_bounds(
    losses: Iterable[float], *, capacity: int | None = None, cap: float | None = None, private_n: bool = False
) -> OutputBounds:
    losses = np.array(losses, dtype=float)
    ranks = losses.size if capacity is None else capacity
    return loss_query(losses, cap).stats(ranks).bounds(ranks, private_n)


def aggregate_of(x: Floats, capacity: int, bounds: tuple[float, float] | None = None) -> VarianceAggregate:
    return VarianceAggregate.from_blocks(in_blocks(x), capacity=capacity, bounds=bounds)


def var_bounds(
    x: Iterable[float],
    *,
    capacity: int | None = None,
    bounds: tuple[float, float] | None = None,
    private_n: bool = False,
) -> OutputBounds:
    x = np.array(x, dtype=float)
    capacity = x.size if capacity is None else capacity
    return variance_bounds(aggregate_of(x, capacity, bounds), capacity, private_n=private_n)


def distances_of(x: Floats, *public: Any) -> Ranks:
    """Return the distances of values that are in order as far as they have to be."""
    return far_distances(x, exact_sum(x), *public)


def kind_of(row) -> str:
    """Return what a metric of the catalogue releases: of its parts, the kind of the only one."""
    plan = row.usual
    kinds = [type(one) for one in plan.quantities]
    if len(kinds) > 1:
        return "joint"
    (kind,) = kinds
    if kind is TableOf and plan.quantities[0].finest is not None:
        return "scores"
    if kind is TableOf:
        return "confusion" if isinstance(plan.reading, Confusion) else "bins"
    return {
        MeanOf: "mean",
        VarianceOf: "variance",
        CalibrationOf: "bins",
    }.get(kind, "other")


class Known:
    """A quantity of some records, and what a release has to know of them."""

    def __init__(self, quantity, *arrays, **public) -> None:
        self.quantity, self.records = quantity, Records(tuple(map(np.asarray, arrays)), **public)
        self.totals = quantity.totals(self.records)

    def stats(self, ranks=0, *, forget=False):
        return self.quantity.stats(self.records, self.totals, ranks, forget=forget)

    def noise(self, mechanism, epsilon=1.0, *, relation=Relation.REPLACE_ONE, capacity=None):
        totals = None if relation.private_n else self.totals
        return noise_of(mechanism, self.quantity, totals, capacity, exact_epsilon(epsilon))

    def prepared(self, mechanism, epsilon=1.0, *, relation=Relation.REPLACE_ONE):
        """Return how a mechanism draws the quantity, and what that has to know of the records."""
        noise = self.noise(mechanism, epsilon, relation=relation)
        return noise, self.stats(noise.ranks)

    def output_bounds(self, mechanism, epsilon=1.0, *, relation=Relation.REPLACE_ONE) -> OutputBounds:
        """Return the output bounds for a release in one stage."""
        totals = None if relation.private_n else self.totals
        one = OneStage(self.quantity, mechanism, totals, None, exact_epsilon(epsilon))
        return one.bounds(self.stats(one.ranks))

    def draw(self, mechanism, epsilon, entropy, count=None, *, relation=Relation.REPLACE_ONE):
        """Return the noise, and an output of it."""
        noise, stats = self.prepared(mechanism, epsilon, relation=relation)
        return noise, noise.prepare(stats)(entropy, count)

    def prepare(self, mechanism, epsilon=1.0, *, relation=Relation.REPLACE_ONE) -> "Prepared":
        return Prepared(self, *self.prepared(mechanism, epsilon, relation=relation))


class Prepared:
    """The release of a quantity, ready to be drawn."""

    def __init__(self, known: Known, noise, stats) -> None:
        self.known, self.noise, self.stats = known, noise, stats

    def __call__(self, entropy, count=None):
        return self.noise.prepare(self.stats)(entropy, count)

    def law(self, count=None):
        return self.noise.law(self.stats, count)

    def limits(self, released, miss=0.05, count=None, **drawn):
        """Return limits of the number, if this had been released, and drawn."""
        return self.noise.limits(Output(released, drawn, count), miss)

    @property
    def value(self) -> float:
        """The number without the noise."""
        return self.stats.bounds(0, False).value


def loss_query(values, cap=None, weights=None, groups=None, *, loss=identity, is_share=False) -> Known:
    """Return the mean of losses, one for each value."""
    record_loss = RecordLoss(loss, reads=(np.asarray,), cap=cap)
    return Known(MeanOf(record_loss, is_share=is_share), values, sample_weight=weights, groups=groups)


EXAMPLES = {
    "mean": loss_bounds([0.0, 0.3, 0.7, 1.1]),
    "capped mean": loss_bounds([0.0, 0.3, 0.7, 1.1], cap=2.0),
    "capped mean, few ranks": loss_bounds([0.0, 0.3, 0.7, 1.1], cap=2.0, capacity=1),
    "zero": loss_bounds([0.0, 0.0, 0.0], cap=2.0),
    "at the cap": loss_bounds([2.0, 2.0, 2.0], cap=2.0),
    "saturated": loss_bounds([MAX, MAX]),
    "variance": var_bounds([0.0, 0.3, 0.7, 1.1]),
    "bounded variance": var_bounds([0.0, 0.3, 0.7, 1.1], bounds=(0.0, 2.0)),
}
"""Output bounds on which laws are tried."""


def weighted_bounds(losses, weights, cap=None, groups=None, capacity: int = 10**6) -> OutputBounds:
    """Return the output bounds of a mean of losses with weights, or of groups of records."""
    losses = np.clip(np.array(losses, dtype=float), 0, MAX if cap is None else cap)
    weights = None if weights is None else np.array(weights, dtype=float)
    query = loss_query(losses, cap, weights, None if groups is None else np.array(groups))
    ranks = min(query.totals.size, capacity)
    output_bounds = query.stats(ranks).bounds(ranks, False)
    # public: known before the data are seen
    assert output_bounds.output_range == query.quantity.facts(query.totals, ranks).output_range
    return output_bounds


def check_neighbours(a: OutputBounds, b: OutputBounds) -> None:
    """Check that the output bounds of neighbours are interleaved, and no score moves by more than 1."""
    for one, other in ((a, b), (b, a)):
        assert other.lower[0] <= one.value <= other.upper[0]
        assert (one.upper[:-1] <= other.upper[1:]).all()
        assert (one.lower[:-1] >= other.lower[1:]).all()
    change = scores(b, t := critical_points(a, b)) - scores(a, t)
    assert np.abs(change).max() <= 1
    if a.monotonic:
        assert (change >= 0).all() or (change <= 0).all()
        assert (b.lower >= a.lower).all() or (b.lower <= a.lower).all()


def scores(output_bounds: OutputBounds, t: np.ndarray) -> np.ndarray:
    """Return the reflective inverse sensitivity s(x; t), from its definition."""
    ladders = (np.append(output_bounds.value, rungs) for rungs in (output_bounds.lower, output_bounds.upper))
    lower, upper = (ladder.reshape(-1, *[1] * np.ndim(t)) for ladder in ladders)
    within = (lower <= t) & (t <= upper)
    length = np.where(within.any(axis=0), within.argmax(axis=0), output_bounds.ranks + 1)
    return np.where(t >= output_bounds.value, np.maximum(length, 1) - 0.5, 0.5 - length)


def critical_points(*several: OutputBounds) -> np.ndarray:
    """Return where any score can change, with the floats just below and above."""
    edges = np.concatenate(
        [np.concatenate([b.lower, [b.value], b.upper, b.output_range]) for b in several] + [[0.0]]
    )
    with np.errstate(over="ignore"):
        low, high = np.nextafter(edges, -np.inf), np.nextafter(edges, np.inf)
    return np.unique(np.concatenate([low, edges, high]))


class Words(Entropy):
    """Entropy that hands out given words, and one filling word for ever after."""

    def __init__(self, words: Sequence[int], filling: int = 0) -> None:
        self._words, self._filling = list(words), filling

    def words(self, size: int) -> np.ndarray:
        taken, self._words = self._words[:size], self._words[size:]
        return np.array(taken + [self._filling] * (size - len(taken)), dtype=np.uint64)


class NoEntropy(Entropy):
    """Entropy that must not be used."""

    class Drawn(Exception):
        """Something was drawn."""

    def words(self, size: int) -> np.ndarray:
        raise NoEntropy.Drawn


def seeded(seed: int = 5) -> SeededEntropy:
    """Return reproducible entropy, which warns of nothing."""
    return SeededEntropy(seed)


def frame_loss(metrics, *sides, **options) -> float:
    """Return the exact privacy loss of a frame, of y_true, y_pred and sensitive_features of two data sets."""
    names = ("y_true", "y_pred", "sensitive_features")
    data = [dict(zip(names, side, strict=True)) for side in sides]
    return release_loss(dp.PrivateMetricFrame, *data, metrics=metrics, **options)


def messages(error: BaseException | None) -> Iterator[str]:
    """Yield everything that a traceback of this exception would print of it."""
    while error is not None:
        yield f"{error} {error.args!r}"
        error = error.__cause__ or error.__context__


def telling(*names: str) -> Any:
    """Return an object that quotes a record whatever of these it is asked."""

    def fail(self, *_, **__):
        raise RuntimeError("987654.25")

    return object.__new__(type("Tells", (), {f"__{name}__": fail for name in names}))


def new_session() -> None:
    """Let budget files that are opened from now on begin a session, as in a new process."""
    ledgers._SESSIONS.clear()


def later(path, total=9, **options) -> PrivacyAccountant:
    """Return the budget in a file as another session has it."""
    new_session()
    return PrivacyAccountant(total, path, **options)


def in_threads(work, arguments) -> list[BaseException]:
    """Call ``work(argument)`` in a thread for each argument, all at once; return the errors."""
    barrier = threading.Barrier(len(arguments))

    def run(argument):
        barrier.wait()
        work(argument)

    with ThreadPoolExecutor(len(arguments)) as pool:
        made = [pool.submit(run, argument) for argument in arguments]
    return [one.exception() for one in made if one.exception()]


def assert_refused(metric, data, expected=REFUSED, match=None, **settings) -> None:
    """Check that data raise, before anything is spent or drawn, without a word of the data."""
    accountant = PrivacyAccountant(1.0)
    with pytest.raises(expected, match=match) as caught:
        metric(*data, **{"random_state": NoEntropy(), "accountant": accountant, **settings})
    assert accountant.spent == 0
    for message in messages(caught.value):
        assert "98765" not in message


def slow_but(fast: Container[Any], values: Iterable[Any]) -> list[Any]:
    """Return the values of a parametrized test, of which those that are not `fast` are slow tests."""
    # processes of one parallel run order a set differently, and pytest-xdist then refuses to run
    assert not isinstance(values, Set), "the values of a test need an order"
    return [pytest.param(value, marks=() if value in fast else pytest.mark.slow) for value in values]


def loop_over(names: str | Sequence[str], values: Iterable[Any]) -> Callable[[Any], Any]:
    """Parametrize a test within one case of pytest, for many values that take little time.

    All fail with the first; what it raises names the value.
    """
    names = (names,) if isinstance(names, str) else names
    values = [value if len(names) > 1 else (value,) for value in values]

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(test)
        def loop(*args: Any, **fixtures: Any) -> None:
            for value in values:
                settings = dict(zip(names, value, strict=True))
                try:
                    test(*args, **fixtures, **settings)
                except BaseException as error:
                    error.add_note(f"This was tried with {settings}.")
                    raise

        signature = inspect.signature(test)
        kept = [parameter for name, parameter in signature.parameters.items() if name not in names]
        loop.__signature__ = signature.replace(parameters=kept)
        return loop

    return decorate


def objects(values: Sequence[Any]) -> np.ndarray:
    """Return values in an array of objects, none of which NumPy takes apart."""
    return np.fromiter(values, dtype=object, count=len(values))


def load_script(path: Path, name: str = "") -> ModuleType:
    """Import a file that lies in no package, such as a script beside notebooks, by this name or its own."""
    spec = importlib.util.spec_from_file_location(name or path.stem, path)
    sys.modules[spec.name] = module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def printed_by(*command: Any, code: int = 0, **options: Any) -> str:
    """Return what a program prints; fail with all that it says unless it ends with this code."""
    done = subprocess.run([*map(str, command)], capture_output=True, encoding="utf-8", **options)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout


def draw_many(mechanism, output_bounds: OutputBounds, epsilon: float, size: int, seed: int) -> np.ndarray:
    entropy = SeededEntropy(seed)
    return np.array([mechanism.release(output_bounds, epsilon, entropy) for _ in range(size)])


def assert_follows(samples: np.ndarray, law, false_alarm: float = 1e-6) -> None:
    """Fail unless the samples follow the law; a right sampler fails with at most this probability.

    Dvoretzky-Kiefer-Wolfowitz with Massart's constant, which holds for laws with atoms too.
    """
    samples = np.sort(samples)
    size = samples.size
    allowed = math.sqrt(math.log(2 / false_alarm) / (2 * size))
    values, counts = np.unique(samples, return_counts=True)
    up_to = np.cumsum(counts) / size
    before = up_to - counts / size
    assert np.abs(law.cdf(values) - up_to).max() <= allowed
    assert np.abs(law.cdf(np.nextafter(values, -np.inf)) - before).max() <= allowed


@dataclass(frozen=True)
class OfWhole:
    """The law of whole numbers: the distribution function of a law on them, of any number."""

    of_whole: Callable[[np.ndarray], np.ndarray]

    def cdf(self, t):
        return self.of_whole(np.floor(t))


def clopper_pearson(a, b, miss=0.025) -> tuple[float, float]:
    """Return limits of a share, of which a records and b others were seen; each misses as often as this."""
    return betaincinv(a, b + 1, miss) if a else 0.0, betaincinv(a + 1, b, 1 - miss) if b else 1.0


def two_sided(rate: float, reach: int) -> tuple[np.ndarray, np.ndarray]:
    """Return whole numbers on both sides of 0, and how likely two-sided geometric noise is each of them."""
    places = np.arange(-reach, reach + 1)
    return places, math.tanh(rate / 2) * np.exp(-rate * np.abs(places))


def first_of(numbers: range, condition: Callable[[int], bool]) -> int:
    """Return the first of some numbers from which on a condition holds, or the one behind the last."""
    return numbers.start + bisect_left(numbers, True, key=condition)


def list_table(path: Path) -> list[list[str]]:
    """Return the cells of the list-table of a page."""
    rows: list[list[str]] = []
    for line in path.read_text(encoding="utf-8").splitlines():
        found = re.match(r"   (\* -|  -) (.*)", line)
        if found:
            if found[1] == "* -":
                rows.append([])
            rows[-1].append(found[2])
    return rows


def variance_query(x, bounds=None) -> Known:
    """Return the variance of values."""
    return Known(VarianceOf(bounds), x)


def order_query(x, k, limit) -> Known:
    """Return the k-th smallest of values."""
    return Known(OrderOf(np.asarray, lambda n: k, limit), x)


def ranking_query(is_positive, scores) -> Known:
    """Return the ranking loss of records of two classes."""
    return Known(RankingOf(1), np.asarray(is_positive).astype(np.intp), scores)


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


def system_of(entropy):
    """Give dp_metrics this entropy for the operating system's, where it takes none."""
    return mock.patch.object(Entropy, "words", entropy.words)


def known_of(plan, source, epsilon=1, relation=Relation.REPLACE_ONE):
    """Return the noises of a plan, and the stats that they ask for."""
    noises, _ = plan.noises(Terms(Fraction(epsilon), relation), source.totals, source.capacity)
    looks = zip(source.looks, noises, strict=True)
    return noises, [look(noise.ranks) for look, noise in looks]


def result_as_if(plan, source, values, epsilon=1, metric="private_compare") -> Result:
    """Return the result of a plan, had its noise made these values."""
    terms = Terms(Fraction(epsilon), Relation.REPLACE_ONE)
    noises, _ = plan.noises(terms, source.totals)
    outputs = [Output(value, {}) for value in values]
    return plan.result(metric, terms, source.totals, None, noises, outputs)


def bits_of(summary):
    """Return all that a summary holds, as bytes that do not tell which of it is held twice."""
    file = io.BytesIO()
    pickler = pickle.Pickler(file)
    pickler.fast = True
    pickler.dump(summary)
    return file.getvalue()


class _AllOf:
    """A summary of a table, whose release is read as all that the table tells."""

    def __init__(self, kind, summary) -> None:
        self._kind, self.summary = kind, summary

    def update(self, *data):
        self.summary.update(*data)
        return self

    def merge(self, other):
        return _AllOf(self._kind, self.summary.merge(other.summary))

    def release(self, epsilon, **settings):
        return self._kind.of(dp.with_result(self.summary.release)(epsilon, **settings))


def all_of_labels(labels=None, metric=None):
    usual = "confusion_matrix" if labels is None or len(labels) <= 3 else "classification_report"
    metric = metric or usual
    return _AllOf(dp.ReleasedConfusion, dp.Summary(metric, labels=labels))


def all_of_scores(**options):
    return _AllOf(dp.ReleasedScores, dp.Summary("roc_curve", **options))


def counts_without_noise(edges, negative, positive):
    """Return counts of scores that are as they are."""
    return ScoreCounts(edges, negative, positive, np.stack([negative, positive]), 0.0)


def normal_scores(n, share=0.3, apart=1.8, seed=0):
    """Return labels, and scores in [0, 1] that are normal within each class before they are put there."""
    rng = np.random.default_rng(seed)
    y = (rng.random(n) < share).astype(int)
    return y, norm.cdf(0.7 * (rng.normal(size=n) + apart * (y - 0.5)))


def beta_scores(n):
    """Return labels, and scores with a Beta law in each class."""
    rng = np.random.default_rng(0)
    y = (rng.random(n) < 0.3).astype(int)
    return y, np.where(y, rng.beta(4, 2, n), rng.beta(2, 5, n))


def labels_of(matrix):
    """Return true and predicted labels, of which this is the confusion matrix."""
    return tuple(np.repeat(np.indices(matrix.shape)[axis].ravel(), matrix.ravel()) for axis in (0, 1))


def specificity_score(y, p, *, labels, average, zero_division):
    """Return the specificity that scikit-learn's matrices of one label against the others tell."""
    matrices = metrics.multilabel_confusion_matrix(y, p, labels=labels)
    found, wrong = matrices[:, 0, 0], matrices[:, 0, 1]
    if average == "micro":
        return found.sum() / (found.sum() + wrong.sum())
    shares = np.array([f / (f + w) if f + w else zero_division for f, w in zip(found, wrong, strict=True)])
    weights = np.array(
        [(y == label).sum() for label in labels] if average == "weighted" else [1] * len(labels)
    )
    defined = ~np.isnan(shares)
    if average == "binary":  # of the second label
        return shares[1]
    return shares if average is None else np.average(shares[defined], weights=weights[defined])
