"""The engine of every study, the mechanisms that are compared, and the rows of results that a run keeps.

Rows are tidy, in a file that an interrupted run resumes from.

The clipped mean is what a practitioner would otherwise write, the plainest yardstick. It is a function and
not a mechanism, because it needs the records and not only their output bounds.

The releases are seeded, so that a run can be repeated; they are therefore not private, which on public data
protects nobody and harms nobody. Only `dp-metrics evaluate` takes all records, once, and draws its releases
from the operating system.
"""

from __future__ import annotations

import hashlib
import io
import math
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias, get_type_hints

import numpy as np

from dp_metrics._packages import import_extra
from dp_metrics._random import Entropy, SeededEntropy
from dp_metrics.evaluation.datasets import DATASETS, get_dataset
from dp_metrics.evaluation.population import SPLIT_SEED, Population, Task
from dp_metrics.inputs.options import Floats, own_error_state
from dp_metrics.mechanisms import AboveThreshold, InverseSensitivity, Laplace, Mechanism, OutputLaw
from dp_metrics.mechanisms._laws import mean_absolute_error
from dp_metrics.quantities.base import get_mechanism
from dp_metrics.sensitivity.output_bounds import BoundsFacts, OutputBounds, order_statistic_bounds

FILE_NAME = "results.csv"

# Errors of releases without public bounds are capped at this multiple of the true value: rare huge overshoots
# would otherwise rule the mean, which then says nothing.
ERROR_CAP = 10.0

CURVE = ["figure", "dataset", "column", "metric", "setting", "mechanism", "epsilon"]
"""Columns that tell a point of a curve from every other."""

PANEL = CURVE[1:4]
"""Columns that tell a panel from every other: the parts of a `Task`."""


class ResultRow(NamedTuple):
    """One release in one repeat; a line of the file."""

    figure: str
    dataset: str
    column: str = ""
    metric: str = ""
    setting: str = ""  # tells apart settings of one mechanism, such as "beta=1.01"
    mechanism: str = ""
    epsilon: float = math.nan
    repeat: int = 0  # counted from 0
    n: int = 0  # records drawn
    bounded: int = 0  # 1 if the mechanism knew a public range of the values
    draw_seed: int = -1  # seeds the draw of records; -1: all records were taken
    release_seed: int = -1  # -1: none, the operating system's entropy
    split_seed: int = -1  # -1: no split
    true_value: float = math.nan  # the exact metric of the records drawn: NOT private
    release: float = math.nan
    error: float = math.nan  # their distance
    expected_error: float = math.nan  # exact, capped at ERROR_CAP times the true value if not bounded
    overshoot: float = math.nan  # exact chance of a release above ERROR_CAP times the true value
    sampling_error: float = 0.0  # standard error that the metric of so many records has anyway
    versions: str = ""
    revision: str = ""


_HEADER = ",".join(ResultRow._fields) + "\n"
_DTYPES = get_type_hints(ResultRow)


def frame_of(rows: Sequence[ResultRow]) -> Any:
    """Return rows as a DataFrame with a dtype for each column."""
    return import_extra("pandas").DataFrame(rows, columns=ResultRow._fields).astype(_DTYPES)


def keys_of(frame: Any) -> set[tuple[Any, ...]]:
    """Return what tells each row from every other: the point of a curve, and the number of the repeat."""
    return set(frame[[*CURVE, "repeat"]].itertuples(index=False, name=None))


def read_results(path: Path, *, mend: bool = False) -> Any:
    """Return the rows of a file of results, each release once: a DataFrame, empty if there is no file.

    The last line of a run that was stopped may be incomplete. It is left out, with a warning; `mend` takes it
    out of the file too, so that rows can be appended. A `ValueError` says that this is no such file.
    """
    try:
        text = path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""
    except OSError as error:
        raise ValueError(f"can't read the results {path}: {error.strerror or error}") from error
    if text and not text.startswith(_HEADER):
        raise ValueError(f"{path}: line 1 is not the header of a results file of this version")
    whole = text[: text.rfind("\n") + 1] or _HEADER
    if text and whole != text:
        print(
            f"warning: {path}: line {whole.count(chr(10)) + 1} is incomplete and was dropped", file=sys.stderr
        )
    if mend and whole != text:
        part = path.with_suffix(".part")
        part.write_text(whole, encoding="utf-8", newline="\n")
        part.replace(path)
    empty = {"expected_error": [""], "overshoot": [""]}  # the only cells that may be
    options = {"dtype": _DTYPES, "keep_default_na": False, "na_values": empty}
    try:
        frame = import_extra("pandas").read_csv(io.StringIO(whole), skip_blank_lines=False, **options)
    except ValueError as error:
        raise ValueError(f"{path} is damaged: {str(error).strip()}") from error
    return frame.drop_duplicates([*CURVE, "repeat"], ignore_index=True)


def append_results(path: Path, rows: Sequence[ResultRow], **stamp: str) -> None:
    """Add rows at the end: all of them or, if stopped in the middle, one incomplete line at most.

    `stamp` has columns that are the same in all of them: versions and revision.
    """
    form = {"header": False, "index": False, "lineterminator": "\n"}
    frame_of(rows).assign(**stamp).to_csv(path, mode="a", **form)


def git_revision() -> str:
    """Return the git revision of the program, with a mark if it was changed since; "unknown" elsewhere."""
    here = Path(__file__).resolve()
    options: dict[str, Any] = {"cwd": here.parent, "text": True, "timeout": 10, "stderr": subprocess.DEVNULL}
    describe = ["git", "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"]
    try:
        # an installed copy may lie in another repository
        subprocess.check_output(["git", "ls-files", "--error-unmatch", here.name], **options)
        return str(subprocess.check_output(describe, **options).strip())
    except (OSError, subprocess.SubprocessError):
        return "unknown"


# the normal quantile of (1 + 0.9) / 2, for an interval of confidence 0.9
_NORMAL_QUANTILE = 1.6448536269514722


def summarise(rows: Any) -> Any:
    """Average the repeats of a DataFrame of rows, of any studies but the simulated one: a DataFrame.

    It has a line for each curve of each panel and epsilon. In units of the mean true value: `mean`, and `low`
    and `high`, the ends of its 0.9 confidence interval (errors of releases without bounds are capped at 10
    times the true value); `raw_mean`, not capped; `median` and `q95` of the error; `bias`, capped likewise;
    `exact`, the mean exact expected error; `sampling`, the mean sampling standard error. Then `stopped`, the
    share of releases below a tenth of the true value; `overshot`, of those above ten times it, and
    `overshoot_chance`, the mean exact probability of that.
    """
    frame = rows.copy()
    cap = np.where(frame["bounded"] == 1, np.inf, ERROR_CAP * frame["true_value"])
    frame["capped"] = np.minimum(frame["error"], cap)
    frame["signed"] = np.clip(frame["release"] - frame["true_value"], -cap, cap)
    frame["stopped"] = frame["release"] < 0.1 * frame["true_value"]
    frame["overshot"] = frame["release"] > ERROR_CAP * frame["true_value"]
    groups = frame.groupby(CURVE, sort=False)
    lines = groups.agg(
        repeats=("n", "size"), n=("n", "max"), bounded=("bounded", "max"), stopped=("stopped", "mean"),
        overshot=("overshot", "mean"), overshoot_chance=("overshoot", "mean"),
        mean=("capped", "mean"), half=("capped", "std"), raw_mean=("error", "mean"),
        median=("error", "median"), bias=("signed", "mean"), exact=("expected_error", "mean"),
        sampling=("sampling_error", "mean"),
    )  # fmt: skip
    lines["q95"] = groups["error"].quantile(0.95)
    truth, errors = groups["true_value"].mean(), lines.loc[:, "mean":]
    lines[errors.columns] = errors.div(truth.where(truth > 0), axis=0)
    half = _NORMAL_QUANTILE * lines.pop("half").fillna(0.0) / np.sqrt(lines["repeats"])
    return lines.assign(low=lines["mean"] - half, high=lines["mean"] + half).reset_index()


@dataclass(frozen=True)
class Rival:
    """A mechanism in one setting: what a figure compares, and how it is drawn."""

    mechanism: str  # name in tables and on the command line
    title: str  # the same in plain words
    colour: str
    marker: str
    line: str = "-"
    face: str = ""  # inside of a marker; empty: of the same colour
    needs_bounds: bool = False  # true: it only serves a metric with a public range
    beta: float = 1.005  # ratio of consecutive candidates of the paper preset
    setting: str = ""  # tells apart settings of one mechanism; "unbounded": it is not told the public range

    def make(self, unit: float) -> Mechanism:
        """Return the mechanism, for a metric with this unit in the paper; the clipped mean is none."""
        if self.mechanism == "paper":
            return replace(AboveThreshold.paper(unit), beta=self.beta)
        return get_mechanism(self.mechanism)


# Okabe and Ito's palette and a grey, safe for the colour-blind. Dotted lines let what is almost or quite the
# same below them show through: adaptive below hazard, inverse_sensitivity below piecewise_laplace.
RIVALS = {
    rival.mechanism: rival
    for rival in (
        Rival("adaptive", "adaptive (default)", "#D55E00", "o"),
        Rival("hazard", "hazard", "#000000", ".", line=":"),
        Rival("above_threshold", "AboveThreshold (our settings)", "#0072B2", "s"),
        Rival("paper", "AboveThreshold (paper preset)", "#56B4E9", "D"),
        Rival("inverse_sensitivity", "inverse sensitivity", "#009E73", "^", needs_bounds=True),
        Rival("piecewise_laplace", "piecewise Laplace", "#CC79A7", "v", line=":", needs_bounds=True),
        Rival("laplace", "Laplace", "#E69F00", "X", needs_bounds=True),
        Rival("clipped_mean", "clipped mean", "#7A7A7A", "P", needs_bounds=True),
    )
}
"""Everything that is compared, by name, in the order of tables and plots."""

MECHANISM_RIVALS = tuple(rival for rival in RIVALS.values() if rival.mechanism != "clipped_mean")

BETAS = tuple(
    Rival("paper", f"beta = {beta:g}", colour, marker, beta=beta, setting=f"beta={beta:g}")
    for beta, colour, marker in (
        (1.001, "#08306B", "o"), (1.0025, "#08519C", "s"), (1.005, "#2171B5", "D"),
        (1.01, "#56B4E9", "^"), (1.02, "#9ECAE1", "v"), (1.05, "#C2B5E0", "X"),
    )
)  # fmt: skip
"""The paper preset with other ratios of consecutive candidates, in shades of its blue."""


def private_threshold(values: Floats, entropy: Entropy, *, epsilon: float, limit: float) -> float:
    """Release a high quantile of non-negative values, above which a later release clips them.

    It is epsilon-differentially private when one record is replaced. About 1/(3 epsilon) records lie above;
    at three times this epsilon for the mean, clipping one more record costs as much bias as it saves noise.
    """
    mechanism, n = AboveThreshold(), len(values)
    ranks = mechanism.count_ranks(epsilon, n=n, monotonic=True, output_range=(0.0, limit))
    k = max(n - math.ceil(1 / (3 * epsilon)), n // 2 + 1)  # counted from 1, from the bottom
    seen = order_statistic_bounds(np.clip(values, 0.0, limit), k, ranks, limit)
    return mechanism.release(seen, epsilon, entropy)


def clipped_mean(population: Population, sample: Floats, entropy: Entropy, *, epsilon: float) -> float:
    """Release the metric of a sample of non-negative numbers: clip at a private quantile, add Laplace noise.

    It is epsilon-differentially private when one record is replaced; a comparator in floats. A quarter of
    epsilon pays for the quantile, which then is the public cap of the metric; the rest pays for that.
    """
    assert population.bounds is not None  # it needs them
    top = private_threshold(sample, entropy, epsilon=epsilon / 4, limit=population.bounds[1])
    if top == 0.0:
        return top
    capped = replace(population, bounds=(0.0, top)).prepared(sample, Laplace(), 3 * epsilon / 4)
    return float(capped.draws[0](entropy, None).value)


Protocol: TypeAlias = tuple[Sequence[float], int]
"""Epsilons, and the number of repeats at each."""

SAMPLE_SIZE = 1000  # records drawn in each repeat
EXACT_REPEATS = 3  # exact expected errors, slow to compute, are computed in the first repeats only
# simulations are single points: so many are made for a repeat of another study
SIMULATIONS_PER_REPEAT = 3
_VALUE, _RANKS = 1000.0, 100  # the simulated output bounds have this value and number of ranks


Repeat: TypeAlias = "tuple[Study, float, int]"
"""A piece of work: a study of one task, with the rivals still to be computed, its epsilon and its number.

Where output bounds are simulated there is no task, and epsilon is nan; numbers count from 0.
"""


def seed_of(*parts: object) -> int:
    """Return a seed that belongs to these names and numbers."""
    return int.from_bytes(hashlib.blake2b("|".join(map(str, parts)).encode(), digest_size=7).digest(), "big")


def plan(
    study: Study, populations: Mapping[Task, Population], protocol: Protocol, done: set[tuple[Any, ...]]
) -> list[Repeat]:
    """Return what is left to do of a study; `done` has the keys of the rows that there are."""
    epsilons, repeats = protocol
    work = []
    if study.kind == "simulated":
        known = {(key[5], key[7]) for key in done if key[0] == study.name}
        for i in range(SIMULATIONS_PER_REPEAT * repeats):
            left = tuple(rival for rival in study.rivals if (rival.mechanism, i) not in known)
            work.append((replace(study, rivals=left), math.nan, i))
    for task, epsilon, i in product(study.tasks, epsilons, range(repeats)):
        free = populations[task].bounds is None
        left = tuple(
            rival
            for rival in study.rivals
            if not (free and (rival.needs_bounds or rival.setting == "bounded"))
            and (study.name, *task, rival.setting, rival.mechanism, epsilon, i) not in done
        )
        work.append((replace(study, tasks=(task,), rivals=left), epsilon, i))
    return [repeat for repeat in work if repeat[0].rivals]


def run(
    work: Sequence[Repeat], populations: Mapping[Task, Population], jobs: int
) -> Iterator[list[ResultRow]]:
    """Yield the rows of each repeat as it is done, in this process or in several others."""
    joblib = import_extra("joblib")
    calls = (
        joblib.delayed(_drawn)(study, epsilon, number, populations[study.tasks[0]])
        if study.tasks
        else joblib.delayed(_simulated)(study, number)
        for study, epsilon, number in work
    )
    try:
        yield from joblib.Parallel(jobs, return_as="generator_unordered")(calls)
    except BrokenProcessPool as error:
        raise ChildProcessError(
            "a process was killed, perhaps for want of memory; the same command goes on from here"
        ) from error


@own_error_state
def _drawn(study: Study, epsilon: float, number: int, population: Population) -> list[ResultRow]:
    (task,), whole = study.tasks, study.kind == "whole"
    names = (study.name, *task, epsilon, number)
    draw_seed, records = -1, population.values
    if not whole:
        draw_seed = seed_of("draw", *names)
        records = population.draw(SAMPLE_SIZE, np.random.default_rng(draw_seed))
    true_value, sampling_error = population.truth(records)
    rows = []
    for rival in study.rivals:
        told = rival.setting != "unbounded" and population.bounds is not None
        row = ResultRow(
            study.name, *task, rival.setting, rival.mechanism, epsilon, number,
            n=len(records), bounded=int(told), draw_seed=draw_seed,
            release_seed=-1 if whole else seed_of("release", *names, rival.mechanism, rival.setting),
            split_seed=-1 if population.metric == "variance" else SPLIT_SEED,
            true_value=true_value, sampling_error=sampling_error,
        )  # fmt: skip
        law = None
        if rival.mechanism == "clipped_mean":
            release = clipped_mean(population, records, _entropy(row), epsilon=epsilon)
        else:
            mechanism = rival.make(population.paper_unit(len(records)))
            prepared = population.prepared(records, mechanism, epsilon, bounded=told)
            release = prepared.draws[0](_entropy(row), None).value
            law = prepared.laws(row.n)[0] if whole or number < EXACT_REPEATS else None
        rows.append(_released(row, release, law))
    return rows


@own_error_state
def _simulated(study: Study, number: int) -> list[ResultRow]:
    kind, epsilon, output_bounds = simulate_bounds(number)
    row = ResultRow(
        figure=study.name, dataset="simulated", metric=kind, epsilon=epsilon, repeat=number,
        setting=f"asymmetry={asymmetry_of(output_bounds, epsilon):.6f}", n=SAMPLE_SIZE, bounded=1,
        draw_seed=seed_of("simulated bounds", number), true_value=output_bounds.value,
    )  # fmt: skip
    rows = []
    for rival in study.rivals:
        seed = seed_of("simulated release", number, rival.mechanism)
        law = rival.make(1.0).output_distribution(output_bounds, epsilon)
        rival_row = row._replace(mechanism=rival.mechanism, release_seed=seed)
        rows.append(_released(rival_row, law.release(_entropy(rival_row)), law))
    return rows


def _entropy(row: ResultRow) -> Entropy:
    """Return the source of the randomness of a release."""
    return Entropy() if row.release_seed < 0 else SeededEntropy(row.release_seed)


def _released(row: ResultRow, release: float, law: OutputLaw | None) -> ResultRow:
    """Return a row with its release and, where the exact law is given, with two numbers from that."""
    row = row._replace(release=release, error=abs(release - row.true_value))
    if law is None:
        return row
    overshot = ERROR_CAP * row.true_value
    expected = mean_absolute_error(law, row.true_value, math.inf if row.bounded else overshot)
    return row._replace(expected_error=expected, overshoot=1.0 - float(law.cdf(overshot)))


def simulate_bounds(number: int) -> tuple[str, float, OutputBounds]:
    """Return the kind, the epsilon and the output bounds of one simulation (section 4.3 of the paper).

    The lower bounds are uniform over [0, 1000], with 1000 the true value. The upper ones are uniform over a
    range up to 300 times as wide, or have steps from a Pareto law, so that their last ranks reach far
    out and a smaller epsilon means more asymmetry.
    """
    rng = np.random.default_rng(seed_of("simulated bounds", number))
    kind = ("uniform", "heavy-tailed")[number % 2]
    epsilon = float(np.exp(rng.uniform(np.log(0.1), np.log(4.0))))
    width = _VALUE * float(np.exp(rng.uniform(0.0, np.log(300.0))))
    lower = np.sort(rng.uniform(0.0, _VALUE, _RANKS))[::-1]
    if kind == "uniform":
        upper = _VALUE + np.sort(rng.uniform(0.0, width, _RANKS))
    else:
        # the nearest step is like one of the lower bounds; the l-th grows by a random power of l
        steps = (1.0 + rng.pareto(2.0, _RANKS)) * np.arange(1, _RANKS + 1.0) ** rng.uniform(0.0, 3.0)
        upper = _VALUE + np.cumsum(steps) * (_VALUE / _RANKS) / 2
        width = float(upper[-1]) * 1.01 - _VALUE
    public = BoundsFacts(output_range=(0.0, _VALUE + width), monotonic=True, n=SAMPLE_SIZE)
    return kind, epsilon, public.bounds(_VALUE, lower, upper)


def asymmetry_of(output_bounds: OutputBounds, epsilon: float) -> float:
    """Return |P(inverse sensitivity > f) - 1/2|, the paper's measure (section 4.3)."""
    law = InverseSensitivity().output_distribution(output_bounds, epsilon)
    return abs(0.5 - float(law.cdf(output_bounds.value)))


FULL: Protocol = (0.1, 0.25, 0.5, 1.0, 2.0, 4.0), 100
QUICK: Protocol = (0.1, 1.0, 4.0), 10


@dataclass(frozen=True)
class Study:
    """What one figure shows: a panel for each task, and in each panel a curve for each rival.

    A study of kind "drawn" draws records, "whole" takes all of them once, "simulated" makes up output bounds,
    and "illustration" only computes laws.
    """

    name: str  # users type this after --figure
    title: str
    tasks: tuple[Task, ...] = ()
    rivals: tuple[Rival, ...] = ()
    kind: Literal["drawn", "whole", "simulated", "illustration"] = "drawn"


_VARIANCE = (
    *((name, column, "variance") for name, dataset in DATASETS.items() for column in dataset.columns),
    ("synthetic", "y", "variance"),
)
_CLASSIFIED = tuple((name, "", "log_loss") for name in ("adult", "diabetes", "mnist", "cifar10", "digits"))
_REGRESSED = ("diamonds", "abalone", "bike", "synthetic")
_MSE, _MAE = (tuple((name, "", metric) for name in _REGRESSED) for metric in ("mse", "mae"))
_ALL = tuple(RIVALS.values())
_WITH_AND_WITHOUT = tuple(
    replace(rival, setting=setting, title=f"{rival.title}, {setting}", line=line or rival.line, face=face)
    for rival in map(RIVALS.__getitem__, ("adaptive", "hazard", "above_threshold", "paper"))
    for setting, line, face in (("bounded", "", ""), ("unbounded", "--", "white"))
)

STUDIES = {
    study.name: study
    for study in (
        Study("variance", "Variance", _VARIANCE, _ALL),
        Study("cross-entropy", "Cross-entropy (log loss) of classifiers", _CLASSIFIED, _ALL),
        Study("mse", "Mean squared error of regressors", _MSE, _ALL),
        Study("mae", "Mean absolute error of regressors", _MAE, _ALL),
        Study("unbounded", "Variance with and without public bounds", _VARIANCE, _WITH_AND_WITHOUT),
        Study(
            "unbounded-losses", "MSE and MAE with and without public bounds", _MSE + _MAE, _WITH_AND_WITHOUT
        ),
        Study(
            "beta", "AboveThreshold with different ratios beta of consecutive candidates (variance)",
            _VARIANCE, BETAS,
        ),
        Study(
            "asymmetry", "Simulated output bounds: error against the asymmetry of the sensitivities",
            rivals=tuple(RIVALS[name] for name in ("inverse_sensitivity", "paper", "hazard")),
            kind="simulated",
        ),
        Study("illustrations", "How the mechanisms choose an output", kind="illustration"),
    )
}  # fmt: skip
"""Every study by name, in the order of the paper's figures."""


def select_studies(figures: Sequence[str], datasets: Sequence[str], mechanisms: Sequence[str]) -> list[Study]:
    """Return the studies that were asked for, reduced to some data sets and mechanisms.

    No figures or no mechanisms: all. A `ValueError` says that a name is unknown (and lists those that exist)
    or that nothing is left.
    """
    for what, asked, known in (("figure", figures, STUDIES), ("mechanism", mechanisms, RIVALS)):
        unknown = [name for name in asked if name not in known]
        if unknown:
            raise ValueError(f"unknown {what} {unknown[0]!r}; there are: {', '.join(known)}")
    for name in datasets:
        get_dataset(name)
    chosen = []
    for study in (STUDIES[name] for name in STUDIES if not figures or name in figures):
        tasks = tuple(task for task in study.tasks if task[0] in datasets)
        rivals = tuple(rival for rival in study.rivals if not mechanisms or rival.mechanism in mechanisms)
        if study.kind == "illustration" or (rivals and (tasks or study.kind == "simulated")):
            chosen.append(replace(study, tasks=tasks, rivals=rivals))
    if not chosen:
        raise ValueError("none of these figures shows any of these data sets with any of these mechanisms")
    return chosen
