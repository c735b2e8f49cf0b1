"""`dp-metrics reproduce`: from data sets to a file of results and pictures."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dp_metrics.evaluation.datasets import DATASETS, EMBEDDED, TABULAR, get_dataset, import_extra
from dp_metrics.evaluation.extras import MissingExtraError
from dp_metrics.evaluation.figures import draw_figures
from dp_metrics.evaluation.population import Population, Task, load_population, package_versions
from dp_metrics.evaluation.protocol import Chunk, plan, run_chunks
from dp_metrics.evaluation.results import FILE_NAME, ResultsFile, git_revision
from dp_metrics.evaluation.simulate import plan_simulations
from dp_metrics.evaluation.sources import find_file
from dp_metrics.evaluation.studies import (
    EPSILONS,
    QUICK_EPSILONS,
    QUICK_REPEATS,
    REPEATS,
    STUDIES,
    Study,
    select_studies,
    tasks_of,
)

__all__ = ["CACHE_NAME", "default_datasets", "reproduce"]

CACHE_NAME = "losses"
"""Folder of the models' losses, inside the output folder."""


def _say(message: str) -> None:
    print(message, file=sys.stderr, flush=True)


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

    Parameters
    ----------
    figures, datasets, mechanisms : sequence of str
        What to do; empty: everything.
    data_dir : Path or None
        Folder of the data files; None: the environment variable, or OpenML.
    output : Path
        An existing folder, for the results, the models' losses and the pictures.
    jobs : int, default=1
        Number of processes.
    quick : bool, default=False
        10 repeats and 3 epsilons on the five tables, instead of 100, 6 and the images too.

    Returns
    -------
    list of Path
        The pictures.

    Raises
    ------
    StudyError, DatasetError, ResultsError, MissingExtraError, OSError
        If it can't be done; known before any model is trained, wherever possible.
    """
    studies = select_studies(figures, datasets or list(DATASETS), mechanisms)  # unknown names first
    for package in ("pandas", "xgboost", "tqdm", "matplotlib"):
        import_extra(package)
    if not datasets:
        studies = select_studies(figures, default_datasets(quick), mechanisms)
    tasks = tasks_of(studies)
    for dataset in map(get_dataset, dict.fromkeys(task.dataset for task in tasks)):
        if dataset.model == "cnn":
            import_extra("torch")
        if dataset.file_name is not None:
            find_file(dataset, data_dir)
    results = ResultsFile(output / FILE_NAME)
    for problem in results.problems:
        _say(f"warning: {problem}")
    results.prepare()
    stamp = {
        "versions": ";".join(f"{name}={version}" for name, version in package_versions().items()),
        "revision": git_revision(),
    }
    others = {(row.versions, row.revision) for row in results.rows} - {(stamp["versions"], stamp["revision"])}
    if others:
        _say(f"note: {results.path} holds rows of other versions, which are kept; delete it to start afresh")
    populations: dict[Task, Population] = {
        task: load_population(task, data_dir, output / CACHE_NAME) for task in tasks
    }
    _run(studies, populations, results, stamp, jobs=jobs, quick=quick)
    return draw_figures(studies, results.rows, output)


def _run(
    studies: Sequence[Study],
    populations: dict[Task, Population],
    results: ResultsFile,
    stamp: dict[str, str],
    *,
    jobs: int,
    quick: bool,
) -> None:
    epsilons, repeats = (QUICK_EPSILONS, QUICK_REPEATS) if quick else (EPSILONS, REPEATS)
    done = results.keys()
    chunks: list[Chunk] = []
    for study in studies:
        if study.kind == "simulated":
            chunks += plan_simulations(study, 3 * repeats, done)
        else:
            chunks += plan(study, populations, epsilons, repeats, done)
    total = sum(chunk.releases for chunk in chunks)
    if done:
        _say(f"{len(done)} releases are in {results.path} already; {total} are left to do")
    tqdm: Any = import_extra("tqdm").tqdm
    with tqdm(total=total, desc="releases", unit="release", file=sys.stderr, disable=not total) as bar:
        for rows in run_chunks(chunks, populations, stamp, jobs):
            results.append(rows)
            bar.set_postfix_str(STUDIES[rows[0].figure].name, refresh=False)
            bar.update(len(rows))
