"""What `dp-metrics evaluate` and `dp-metrics reproduce` do: from data sets to rows and pictures."""

import sys
from collections.abc import Sequence
from pathlib import Path

from dp_metrics._packages import MissingExtraError, import_extra
from dp_metrics.evaluation.compared import MECHANISM_RIVALS
from dp_metrics.evaluation.datasets import DATASETS, EMBEDDED, TABULAR, get_dataset
from dp_metrics.evaluation.engine import plan, run_chunks
from dp_metrics.evaluation.figures import draw_figures
from dp_metrics.evaluation.population import Task, load_population, package_versions, populations_of
from dp_metrics.evaluation.results_file import FILE_NAME, ResultRow, ResultsFile, git_revision, key_of
from dp_metrics.evaluation.sources import Dataset, Loaded, find_file
from dp_metrics.evaluation.studies import FULL, QUICK, Study, select_studies
from dp_metrics.evaluation.trained_models import Evaluation, evaluate_model

_CACHE = "losses"  # folder of the models' losses, inside the output folder


def _say(message: str) -> None:
    print(message, file=sys.stderr, flush=True)


def check_extras() -> None:
    """Import what every experiment needs, or say what is missing."""
    for package in ("pandas", "xgboost", "tqdm", "matplotlib"):
        import_extra(package)


def evaluate(
    dataset: Dataset, loaded: Loaded, epsilons: Sequence[float]
) -> tuple[Study, list[ResultRow], Evaluation]:
    """Train the model of a data set; release every metric of it once with every mechanism that can.

    All test records are used, and the releases are drawn from the operating system's entropy.
    """
    evaluation = evaluate_model(dataset, *loaded)
    populations = populations_of(evaluation)
    by_task = {Task(dataset.name, metric): population for metric, population in populations.items()}
    study = Study("evaluate", dataset.name, tuple(by_task), MECHANISM_RIVALS, "whole")
    chunks = plan(study, by_task, epsilons, 1, set())
    rows = run_chunks(chunks, by_task, {"versions": "", "revision": ""}, jobs=1)
    return study, [row for part in rows for row in part], evaluation


def default_datasets(quick: bool) -> list[str]:
    """Return the paper's data sets that can be used here: the five tables, and unless `quick` the images."""
    names = [*TABULAR] if quick else [name for name in DATASETS if name not in EMBEDDED]
    if "cifar10" in names:
        try:
            import_extra("torch")
        except MissingExtraError as error:
            _say(f"cifar10 is left out: {error}")
            names.remove("cifar10")
    return names


def reproduce(
    figures: Sequence[str],
    datasets: Sequence[str],
    mechanisms: Sequence[str],
    *,
    data_dir: Path | None,
    output: Path,
    jobs: int = 1,
    quick: bool = False,
) -> list[Path]:
    """Run the experiments, going on where an earlier run stopped, and draw their figures.

    Empty sequences: everything. `output` is an existing folder, for the results, the models' losses and the
    pictures, whose paths are returned. `quick`: 10 repeats and 3 epsilons on the five tables, instead of 100
    and 6, and no images. What can't be done is an error before any model is trained, wherever possible.
    """
    studies = select_studies(figures, datasets or list(DATASETS), mechanisms)  # unknown names first
    check_extras()
    if not datasets:
        studies = select_studies(figures, default_datasets(quick), mechanisms)
    tasks = list(dict.fromkeys(task for study in studies for task in study.tasks))
    for dataset in map(get_dataset, dict.fromkeys(task.dataset for task in tasks)):
        if dataset.model == "cnn":
            import_extra("torch")
        if dataset.file_name is not None:
            find_file(dataset, data_dir)
    results = ResultsFile(output / FILE_NAME)
    for problem in results.problems:
        _say(f"warning: {problem}")
    results.prepare()
    versions = ";".join(f"{name}={version}" for name, version in package_versions().items())
    stamp = {"versions": versions, "revision": git_revision()}
    if {(row.versions, row.revision) for row in results.rows} - {(versions, stamp["revision"])}:
        _say(f"note: {results.path} holds rows of other versions, which are kept; delete it to start afresh")
    populations = {task: load_population(task, data_dir, output / _CACHE) for task in tasks}
    epsilons, repeats = QUICK if quick else FULL
    done = {key_of(row) for row in results.rows}
    chunks = [chunk for study in studies for chunk in plan(study, populations, epsilons, repeats, done)]
    total = sum(chunk.releases for chunk in chunks)
    if done:
        _say(f"{len(done)} releases are in {results.path} already; {total} are left to do")
    tqdm = import_extra("tqdm").tqdm
    with tqdm(total=total, desc="releases", unit="release", file=sys.stderr, disable=not total) as bar:
        for rows in run_chunks(chunks, populations, stamp, jobs):
            results.append(rows)
            bar.set_postfix_str(rows[0].figure, refresh=False)
            bar.update(len(rows))
    return draw_figures(studies, results.rows, output)
