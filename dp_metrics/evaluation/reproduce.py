"""What `dp-metrics evaluate` and `dp-metrics reproduce` do: from data sets to rows, figures and a report."""

import base64
import io
import math
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from dp_metrics._packages import import_extra
from dp_metrics.evaluation import engine, population
from dp_metrics.evaluation.datasets import DATASETS, Dataset, find_file, get_dataset
from dp_metrics.evaluation.engine import ERROR_CAP, PANEL, RIVALS, ResultRow, Study
from dp_metrics.evaluation.population import title_of
from dp_metrics.inputs.options import Floats
from dp_metrics.mechanisms._laws import GridLaw
from dp_metrics.sensitivity.output_bounds import BoundsFacts, OutputBounds

Panels: TypeAlias = Mapping[str, Callable[[Any], None]]
"""What draws a picture on axes, by the title of the picture."""

_STYLE = {
    "font.size": 8, "axes.titlesize": 9, "axes.labelsize": 8, "legend.fontsize": 8, "legend.frameon": False,
    "axes.grid": True, "axes.axisbelow": True, "grid.color": "0.9", "grid.linewidth": 0.6,
    "axes.spines.top": False, "axes.spines.right": False, "svg.hashsalt": "dp",
    "axes.formatter.min_exponent": 5,  # labels are 0.01, 0.1, 1, as people write them
}  # fmt: skip


def panels_of(study: Study, rows: Any) -> Panels:
    """Return the panels of a study for which there are rows, in the order of its tasks."""
    rows = rows[rows["figure"] == study.name]
    if study.kind == "illustration":
        return {
            "distances of an output": _draw_distances,
            "symmetric sensitivities": partial(_draw_laws, down=1.0, up=1.0, window=(84.0, 116.0)),
            "asymmetric sensitivities": partial(_draw_laws, down=0.2, up=3.0, window=(90.0, 130.0)),
        }
    if study.kind == "simulated":
        points = {RIVALS[name]: scatter_points(rows, name) for name in ("paper", "hazard")}
        return {
            f"against {rival.title}": partial(_draw_scatter, points=some, colour=rival.colour)
            for rival, some in points.items()
            if len(some)
        }
    lines = dict(iter(engine.summarise(rows).groupby(PANEL)))
    return {
        title_of(task): partial(_draw_errors, study=study, lines=lines[task])
        for task in study.tasks
        if task in lines
    }


def _draw_errors(axes: Any, *, study: Study, lines: Any) -> None:
    value = "exact" if study.kind == "whole" else "mean"
    axes.set(xscale="log", yscale="log")
    for rival in study.rivals:
        points = lines[(lines["mechanism"] == rival.mechanism) & (lines["setting"] == rival.setting)]
        points = points[points[value] > 0].sort_values("epsilon")  # a logarithmic axis has no place for 0
        if not len(points):
            continue
        x, y = points["epsilon"], points[value]
        axes.plot(
            x, y, label=rival.title, color=rival.colour, marker=rival.marker, linestyle=rival.line,
            markerfacecolor=rival.face or rival.colour, markersize=4, linewidth=1.3,
        )  # fmt: skip
        if value == "mean":
            low = np.maximum(points["low"], y / 10)
            axes.fill_between(x, low, points["high"], color=rival.colour, alpha=0.15, linewidth=0)
    if (lines["sampling"] > 0).any():
        mean = lines["sampling"].mean()
        axes.axhline(mean, label="sampling standard error", color="0.35", linestyle="-.", linewidth=1)
    ticks = sorted(set(lines["epsilon"]))
    if len(ticks) <= 8:  # more labels would overlap
        axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
        axes.set_xticks([], minor=True)
    axes.set(xlabel="epsilon", ylabel=f"{'mean' if value == 'mean' else 'expected'} |error| / true value")


def scatter_points(rows: Any, mechanism: str) -> Any:
    """Return simulations: their asymmetry, and the error of inverse sensitivity / that of a mechanism."""
    wide = rows.pivot(index=["repeat", "metric", "setting"], columns="mechanism", values="expected_error")
    ratio = wide.reindex(columns=["inverse_sensitivity", mechanism])
    points = (ratio["inverse_sensitivity"] / ratio[mechanism]).rename("ratio").dropna().reset_index()
    return points.assign(asymmetry=points["setting"].str.removeprefix("asymmetry=").astype(float))


def _draw_scatter(axes: Any, *, points: Any, colour: str) -> None:
    for kind, marker, face in (("uniform", "o", colour), ("heavy-tailed", "^", "none")):
        some = points[points["metric"] == kind]
        axes.scatter(
            some["asymmetry"], some["ratio"], label=f"{kind} upper bounds", s=14, marker=marker,
            facecolors=face, edgecolors=colour, linewidths=0.8,
        )  # fmt: skip
    axes.axhline(1.0, color="black", linewidth=1, linestyle=":", label="equal errors")
    axes.set(yscale="log", xlim=(-0.01, 0.51))
    axes.set(xlabel="asymmetry  |P(ISM > f) - 1/2|", ylabel="error ISM / error")
    axes.legend(loc="upper left")


_VALUE, _RANKS, _RECORDS, _EPSILON = 100.0, 80, 1000, 1.0  # the illustrations show these made-up numbers


def illustration_bounds(step_down: float, step_up: float) -> OutputBounds:
    """Return output bounds with equal steps on each side of 100."""
    ranks = np.arange(1.0, _RANKS + 1)
    upper = _VALUE + step_up * ranks
    lower = np.maximum(_VALUE - step_down * ranks, 0.0)
    public = BoundsFacts(output_range=(0.0, float(upper[-1]) + step_up), monotonic=True, n=_RECORDS)
    return public.bounds(_VALUE, lower, upper)


def _draw_distances(axes: Any) -> None:
    # one rank per unit: an output at t is ceil(|t - f|) records away
    t = np.linspace(-4.0, 4.0, 801)
    length = np.ceil(np.abs(t))
    reflective = np.where(t >= 0, np.maximum(length, 1.0) - 0.5, 0.5 - length)
    for name, label, distance in (
        ("inverse_sensitivity", RIVALS["inverse_sensitivity"].title, length),
        ("paper", "reflective inverse sensitivity (first picture)", reflective),
    ):
        axes.step(t, distance, where="mid", color=RIVALS[name].colour, linewidth=1.5, label=label)
    axes.axhline(0.0, color="0.6", linewidth=0.8)
    axes.set_xticks(range(-4, 5), ["L4", "L3", "L2", "L1", "f", "U1", "U2", "U3", "U4"])
    axes.set(xlabel="output", ylabel="distance in records", ylim=(-4.0, 4.4))
    axes.grid(visible=False)


def _draw_laws(axes: Any, *, down: float, up: float, window: tuple[float, float]) -> None:
    output_bounds = illustration_bounds(down, up)
    for name, stride in (("inverse_sensitivity", 1), ("paper", 1), ("hazard", 24)):
        rival = RIVALS[name]
        law: Any = rival.make(1.0).output_distribution(output_bounds, _EPSILON)
        edges = np.linspace(*window, 321)
        if isinstance(law, GridLaw):
            # the probability of each output (of each few, where they are dense) spread over the gap below it
            first, last = law.grid.index_at_least(np.array(window))
            edges = law.grid.points(np.arange(first, last, stride))
        axes.stairs(
            np.diff(law.cdf(edges)) / np.diff(edges), edges, baseline=None, color=rival.colour,
            label=rival.title, linewidth=1.3,
        )  # fmt: skip
    axes.axvline(_VALUE, color="0.6", linewidth=0.8)
    ticks = {_VALUE - down * i: f"L{i}" if down > 0.5 else "" for i in (4, 8, 12)}
    ticks |= {_VALUE: "f"} | {_VALUE + up * i: f"U{i}" for i in (4, 8, 12)}
    axes.set_xticks(list(ticks), list(ticks.values()))
    axes.set_ylim(bottom=0.0)
    axes.set(xlim=window, xlabel=f"output, epsilon = {_EPSILON:g}", ylabel="density")
    axes.grid(visible=False)


def draw_figure(study: Study, panels: Panels, *streams: Any, title: str = "") -> None:
    """Write all panels, three in a row, with one legend: as PNG to a path, as SVG to a path or stream."""
    columns = min(3, len(panels))
    lines = -(-len(panels) // columns)
    height = 2.35 * lines + (0.17 * (1 + title.count("\n")) + 0.05 if title else 0.0)
    with import_extra("matplotlib").rc_context(_STYLE):
        # The Figure needs no pyplot: no global state, and no window system is ever looked for.
        figure = import_extra("matplotlib.figure").Figure((7.2, height), dpi=200, layout="constrained")
        grid = figure.subplots(lines, columns, squeeze=False).ravel()
        for axes, (name, draw) in zip(grid, panels.items(), strict=False):
            draw(axes)
            axes.set_title(name)
            if study.kind in ("drawn", "whole") and axes.get_subplotspec().colspan.start:
                axes.set_ylabel("")
        for axes in grid[len(panels) :]:
            axes.set_axis_off()
        if title:
            figure.suptitle(title, fontsize=9)
        if study.kind != "simulated":  # whose panels have their own legends
            pairs = (zip(*axes.get_legend_handles_labels(), strict=True) for axes in grid)
            entries = {label: handle for some in pairs for handle, label in some}
            per_line = 2 if max(map(len, entries), default=0) > 30 or columns == 1 else 3
            figure.set_size_inches(7.2, height + 0.17 * -(-len(entries) // per_line) + 0.2)
            figure.legend(entries.values(), entries.keys(), loc="outside lower center", ncols=per_line)
        for stream in streams:
            png = str(stream).endswith(".png")
            figure.savefig(stream, **({} if png else {"format": "svg", "metadata": {"Date": None}}))


def draw_figures(studies: Sequence[Study], rows: Any, output: Path) -> list[Path]:
    """Write every figure for which there are rows as PNG and SVG; return the PNG files."""
    paths = []
    # a figure is of the whole study, whatever part was run
    for study in (engine.STUDIES[part.name] for part in studies):
        if panels := panels_of(study, rows):
            paths.append(output / f"{study.name}.png")
            draw_figure(study, panels, paths[-1], paths[-1].with_suffix(".svg"))
    return paths


def draw_evaluation(study: Study, rows: Sequence[ResultRow], path: Path) -> None:
    """Write the plot of `dp-metrics evaluate`: the expected error of every metric of one data set."""
    frame = engine.frame_of(rows)
    title = f"{study.title}: error that privacy adds, {rows[0].n:,} test records"
    if not frame["bounded"].all():
        names = [rival.mechanism for rival in study.rivals]
        absent = ", ".join(name for name in names if name not in set(frame["mechanism"]))
        title += f"; errors capped at {ERROR_CAP:g} x the true value"
        title += f"\nleft out, since they need public bounds: {absent}" if absent else ""
    draw_figure(study, panels_of(study, frame), path, title=title)


_COMPARED = ("variance", "cross-entropy", "mse", "mae")
_DEFAULT = "adaptive"
_RIVALS = ("hazard", "above_threshold", "paper", "inverse_sensitivity", "laplace", "clipped_mean")
_SEARCHES = ("paper", "above_threshold", "hazard", _DEFAULT)
_ASYMMETRIES = {"0 to 0.1": 0.0, "0.1 to 0.3": 0.1, "0.3 to 0.45": 0.3, "above": 0.45}  # from where on


def _number(value: float) -> str:
    return f"{value:,.0f}" if 100 <= abs(value) < 1e5 else f"{value:.2g}"


def _geometric_mean(values: Any) -> float:
    values = np.asarray(values, dtype=np.float64)
    values = values[np.isfinite(values) & (values > 0)]
    return float(np.exp(np.log(values).mean())) if values.size else math.nan


def _frame(rows: Any, index: str) -> Any:
    return import_extra("pandas").DataFrame.from_dict(rows, orient="index").rename_axis(columns=index)


def _pivot(lines: Any, value: str, columns: str = "mechanism") -> Any:
    """Return one line per panel and epsilon, with a column for each mechanism (or setting)."""
    return lines.pivot_table(index=[*PANEL, "epsilon"], columns=columns, values=value, sort=False)


def _by_panel(values: Any) -> Any:
    """Return a table of panels and epsilons, with the geometric means of its columns."""
    wide = values.dropna().unstack("epsilon", sort=False).sort_index(axis="columns")
    wide.index = [*map(title_of, wide.index)]
    wide.loc["geometric mean"] = wide.agg(_geometric_mean)
    return wide


def tables_of(study: Study, rows: Any) -> dict[str, Any]:
    """Return the tables of one study, for which there are rows: DataFrames by title."""
    rows = rows[rows["figure"] == study.name]
    if not len(rows):
        return {}
    if study.kind == "simulated":
        title = "Expected error of inverse sensitivity / that of a mechanism, medians by asymmetry"
        return {title: _asymmetries(rows)}
    lines = engine.summarise(rows)
    if "unbounded" in set(lines["setting"]):
        return {"With and without bounds": _without_bounds(lines)}
    wide = _pivot(lines, "mean", "setting" if study.name == "beta" else "mechanism")
    if "beta=1.005" in wide.columns:
        ratios = wide.div(wide["beta=1.005"], axis=0).groupby(level="epsilon").agg(_geometric_mean)
        return {"Mean error / mean error with beta = 1.005, geometric means over panels": ratios.T}
    if {"inverse_sensitivity", "paper"} <= set(wide.columns):
        title = "Mean error of inverse sensitivity / mean error of the paper preset"
        return {title: _by_panel(wide["inverse_sensitivity"] / wide["paper"])}
    return {}


def overall_tables(rows: Any) -> dict[str, Any]:
    """Return the tables over all panels of variance, cross-entropy, MSE and MAE: DataFrames by title."""
    lines = engine.summarise(rows[rows["figure"].isin(_COMPARED)])
    if _DEFAULT not in set(lines["mechanism"]):
        return {}
    wide = _pivot(lines, "mean")
    ratios = wide.filter(items=_RIVALS).div(wide[_DEFAULT], axis=0)
    ratios = ratios.rename(columns={name: rival.title for name, rival in RIVALS.items()})
    groups = ratios.groupby(level="epsilon")
    own = lines[(lines["mechanism"] == _DEFAULT) & (lines["sampling"] > 0)].set_index([*PANEL, "epsilon"])
    smallest = lines["epsilon"].min()
    stopped = _pivot(lines[lines["epsilon"] == smallest], "stopped").filter(items=_SEARCHES)
    stopped.index = [title_of(panel[:3]) for panel in stopped.index]
    return {
        f"Mean error / mean error of {_DEFAULT}, geometric means over panels": groups.agg(_geometric_mean).T,
        "Share of panels in which this is above 1": groups.agg(lambda part: (part.dropna() > 1).mean()).T,
        f"Mean error of {_DEFAULT} / sampling standard error": _by_panel(own["mean"] / own["sampling"]),
        f"Share of releases below a tenth of the true value, at epsilon {smallest:g}": stopped,
    }


def _without_bounds(lines: Any) -> Any:
    table = {}
    for name in _SEARCHES:
        part = lines[lines["mechanism"] == name]
        if set(part["setting"]) == {"bounded", "unbounded"}:
            median, mean = (_pivot(part, value, "setting") for value in ("median", "mean"))
            free, ratio = part[part["setting"] == "unbounded"], mean["unbounded"] / mean["bounded"]
            table[RIVALS[name].title] = {
                "medians, without / with": _geometric_mean(median["unbounded"] / median["bounded"]),
                f"means, capped at {ERROR_CAP:g} x truth, without / with": _geometric_mean(ratio),
                "the largest of these": ratio.max(),
                "without: releases above 10 x truth": (free["overshot"] * free["repeats"]).sum(),
                "of": free["repeats"].sum(),
                "their exact chance": free["overshoot_chance"].mean(),
                "largest mean / truth, not capped": free["raw_mean"].max(),
            }
    return _frame(table, "mechanism")


def _asymmetries(rows: Any) -> Any:
    table, edges = {}, [*_ASYMMETRIES.values(), 1.0]
    for name in ("paper", "hazard"):
        points = scatter_points(rows, name)
        if len(points) > 1:
            part = import_extra("pandas").cut(points["asymmetry"], edges, right=False, labels=[*_ASYMMETRIES])
            ranks = points["asymmetry"].corr(points["ratio"], method="spearman")
            medians = points["ratio"].groupby(part, observed=False).median().to_dict()
            sizes = {"rank correlation": ranks, "simulations": len(points)}
            table[RIVALS[name].title] = medians | sizes
    return _frame(table, "mechanism")


def _html(frame: Any) -> str:
    with import_extra("pandas").option_context("display.max_colwidth", None):
        return str(frame.to_html(float_format=_number, na_rep="", border=0))


def _numbers(study: Study, rows: Any) -> Any:
    if study.kind != "drawn":
        return None
    lines = engine.summarise(rows[rows["figure"] == study.name])
    panels = [*map(title_of, lines[PANEL].itertuples(index=False))]
    names = ["repeats", "mean", "low", "high", "exact", "median", "q95", "bias"]
    return lines[["mechanism", "setting", "epsilon", *names]].set_axis(panels)


def _settings(rows: Any) -> list[Any]:
    drawn = rows[rows["dataset"] != "simulated"]
    settings = {
        "epsilons": drawn["epsilon"].map("{:g}".format),
        "repeats": [str(drawn["repeat"].max() + 1) if len(drawn) else "0"],
        "records per repeat": [f"{engine.SAMPLE_SIZE} without replacement (all of them if there are fewer)"],
        "seeds of splits": rows["split_seed"][rows["split_seed"] >= 0].astype(str),
        "versions": rows["versions"].str.replace(";", "; "),
        "git revision": rows["revision"],
    }
    about = {
        d.name: {"rows": f"{d.rows:,}", "source": d.source, "licence": d.licence}
        for d in map(get_dataset, drawn["dataset"].unique())
    }
    values = {name: {"value": ", ".join(sorted({*value}))} for name, value in settings.items()}
    return [_frame(values, "setting"), _frame(about, "data set")]


def report_page(rows: Any) -> str:
    """Return the HTML page about some results."""
    text = Path(__file__).with_name("report.html").read_text(encoding="utf-8")
    spaces = {"trim_blocks": True, "keep_trailing_newline": True}
    template = import_extra("jinja2").Template(text, autoescape=True, **spaces)
    sections = []
    for study in engine.STUDIES.values():
        if panels := panels_of(study, rows):
            stream = io.BytesIO()
            draw_figure(study, panels, stream)
            picture = base64.b64encode(stream.getvalue()).decode()
            sections.append((study, picture, tables_of(study, rows), _numbers(study, rows)))
    tables = {"table": _html, "overall": overall_tables(rows), "settings": _settings(rows)}
    numbers = {"cap": ERROR_CAP, "exact_repeats": engine.EXACT_REPEATS}
    return str(template.render(sections=sections, **tables, **numbers))


def write_report(results: Path) -> Path:
    """Write ``report.html`` beside a file of results, or into their folder; return its path."""
    path = results / engine.FILE_NAME if results.is_dir() else results
    rows = engine.read_results(path)
    if not len(rows):
        raise ValueError(f"there are no results in {path}; make some with: dp-metrics reproduce")
    page = path.with_name("report.html")
    page.write_text(report_page(rows), encoding="utf-8")
    return page


def _say(message: str) -> None:
    print(message, file=sys.stderr, flush=True)


def check_extras() -> None:
    """Import what every experiment needs, or say what is missing."""
    for package in ("pandas", "xgboost", "tqdm", "matplotlib"):
        import_extra(package)


def evaluate(
    dataset: Dataset, target: Any, prediction: Floats, epsilons: Sequence[float]
) -> tuple[Study, list[ResultRow]]:
    """Release every metric of a model of a data set once with every mechanism that can.

    All test records are used, and the releases are drawn from the operating system's entropy.
    """
    found = population.populations_of(dataset, target, prediction)
    by_task = {(dataset.name, "", metric): values for metric, values in found.items()}
    study = Study("evaluate", dataset.name, tuple(by_task), engine.MECHANISM_RIVALS, "whole")
    work = engine.plan(study, by_task, (epsilons, 1), set())
    rows = [row for made in engine.run(work, by_task, jobs=1) for row in made]
    return study, rows


def default_datasets(quick: bool) -> list[str]:
    """Return the paper's data sets that can be used here: the five tables, and unless `quick` the images."""
    return [
        d.name
        for d in DATASETS.values()
        if d.file_name and not (quick and d.shape) and (d.model != "cnn" or find_spec("torch"))
    ]


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
    studies = engine.select_studies(figures, datasets or default_datasets(quick), mechanisms)
    check_extras()  # after names that are not known
    tasks = list(dict.fromkeys(task for study in studies for task in study.tasks))
    for name, *_ in tasks:
        dataset = get_dataset(name)
        if dataset.model == "cnn":
            import_extra("torch")
        if dataset.file_name is not None:
            find_file(dataset, data_dir)
    path = output / engine.FILE_NAME
    rows = engine.read_results(path, mend=True)
    versions = ";".join(f"{name}={version}" for name, version in population.package_versions().items())
    stamp = {"versions": versions, "revision": engine.git_revision()}
    if ((rows["versions"] != versions) | (rows["revision"] != stamp["revision"])).any():
        _say(f"note: {path} holds rows of other versions, which are kept; delete it to start afresh")
    populations = {task: population.load_population(task, data_dir, output / "losses") for task in tasks}
    protocol, done = engine.QUICK if quick else engine.FULL, engine.keys_of(rows)
    work = [one for study in studies for one in engine.plan(study, populations, protocol, done)]
    total = sum(len(study.rivals) for study, _, _ in work)
    if done:
        _say(f"{len(done)} releases are in {path} already; {total} are left to do")
    tqdm = import_extra("tqdm").tqdm
    with tqdm(total=total, desc="releases", unit="release", file=sys.stderr, disable=not total) as bar:
        for made in engine.run(work, populations, jobs):
            engine.append_results(path, made, **stamp)
            bar.set_postfix_str(made[0].figure, refresh=False)
            bar.update(len(made))
    return draw_figures(studies, engine.read_results(path), output)
