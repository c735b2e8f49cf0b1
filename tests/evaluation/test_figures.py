"""Figures: a panel for every task, one colour for one mechanism, nothing on top of anything else."""

import dataclasses
import itertools

import pytest
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

from dp_metrics.evaluation.engine import MECHANISM_RIVALS, RIVALS, STUDIES, Study, asymmetry_of, frame_of
from dp_metrics.evaluation.population import title_of
from dp_metrics.evaluation.reproduce import (
    draw_evaluation,
    draw_figure,
    draw_figures,
    illustration_bounds,
    panels_of,
)


@pytest.fixture
def figures(monkeypatch):
    """Collect the figures that are made."""
    made = []

    class Recorded(Figure):
        def __init__(self, *args, **kwargs):
            super().__init__(*args, **kwargs)
            made.append(self)

    monkeypatch.setattr("matplotlib.figure.Figure", Recorded)
    return made


def evaluation(make_row, bounded=True, true_value=2.0, epsilons=(0.1, 1.0), metrics=("mse", "mae")):
    """Return the study of `dp-metrics evaluate`, and rows of it."""
    study = Study("evaluate", "bike", tuple(("bike", "", m) for m in metrics), MECHANISM_RIVALS, "whole")
    rows = [
        make_row(figure="evaluate", metric=metric, mechanism=rival.mechanism, epsilon=epsilon,
                 bounded=int(bounded), true_value=true_value, expected_error=0.1 * (i + 1) / epsilon)
        for metric in metrics
        for epsilon in epsilons
        for i, rival in enumerate(MECHANISM_RIVALS)
        if bounded or not rival.needs_bounds
    ]  # fmt: skip
    return study, rows


def check_layout(figure, panels, *, legend=True):
    figure.draw_without_rendering()
    page = figure.bbox
    shown = [axes for axes in figure.axes if axes.axison]
    legends = [axes.get_legend() for axes in figure.axes if not axes.axison and axes.get_legend()]
    boxes = [axes.get_tightbbox() for axes in shown]
    boxes += [found.get_window_extent() for found in (*legends, *figure.legends)]
    assert len(boxes) == panels + legend
    if figure._suptitle:
        boxes.append(figure._suptitle.get_window_extent())
    for i, box in enumerate(boxes):
        assert page.x0 - 1 <= box.x0 < box.x1 <= page.x1 + 1
        assert page.y0 - 1 <= box.y0 < box.y1 <= page.y1 + 1
        assert not any(box.overlaps(other) for other in boxes[i + 1 :])
    for axes in shown:
        assert axes.lines or axes.collections or axes.patches
        labels = [text.get_window_extent() for text in axes.get_xticklabels() if text.get_text()]
        assert not any(a.overlaps(b) for a, b in itertools.pairwise(labels))


@pytest.mark.parametrize(
    ("name", "tasks"),
    [("variance", 1), ("unbounded", 3),
     *(pytest.param(name, None, marks=pytest.mark.slow) for name in STUDIES if name != "mae")],
)  # fmt: skip
def test_nothing_overlaps_and_one_mechanism_has_one_colour(study_rows, figures, name, tasks):
    study = STUDIES[name]
    panels = panels_of(study, frame_of(study_rows(name, tasks)))
    if study.kind == "drawn":
        assert list(panels) == [title_of(task) for task in study.tasks[:tasks]]
    draw_figure(study, panels)  # written nowhere
    check_layout(figures[0], len(panels), legend=study.kind != "simulated")
    for axes in figures[0].axes:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            for rival in RIVALS.values():
                if label.startswith(rival.title) and name != "beta":
                    get = getattr(handle, "get_color", None) or handle.get_edgecolor
                    assert to_hex(get()) == rival.colour.lower()


@pytest.mark.parametrize("metrics", [("log_loss",), ("mse", "mae", "variance")])
@pytest.mark.parametrize("bounded", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_nothing_overlaps_in_an_evaluation(make_row, figures, tmp_path, metrics, bounded):
    study, rows = evaluation(make_row, bounded, metrics=metrics)
    draw_evaluation(study, rows, tmp_path / "plot.png")
    assert (tmp_path / "plot.png").read_bytes().startswith(b"\x89PNG")
    check_layout(figures[0], len(metrics))


def test_an_evaluation_shows_expected_errors(make_row, figures, tmp_path):
    draw_evaluation(*evaluation(make_row, bounded=False), tmp_path / "plot.png")
    lines = {line.get_label(): line for line in figures[0].axes[0].lines}
    assert list(lines) == [RIVALS[n].title for n in ("adaptive", "hazard", "above_threshold", "paper")] + [
        "sampling standard error"
    ]
    first = RIVALS["adaptive"]
    assert lines[first.title].get_color() == first.colour
    assert lines[first.title].get_ydata().tolist() == pytest.approx([0.5, 0.05])
    assert lines["sampling standard error"].get_ydata() == pytest.approx([0.05, 0.05])
    assert "need public bounds: inverse_sensitivity, piecewise_laplace, laplace" in figures[0].get_suptitle()
    assert "capped at 10 x the true value" in figures[0].get_suptitle()
    assert figures[0].axes[0].get_ylabel() == "expected |error| / true value"


def test_curves_show_the_capped_mean_without_an_error_of_zero(make_row, figures):
    rows = [make_row(repeat=i, release=x, bounded=0) for i, x in enumerate((3.0, 1e300))]
    rows += [make_row(release=2.0, epsilon=2.0, bounded=0)]
    draw_figure(STUDIES["mse"], panels_of(STUDIES["mse"], frame_of(rows)))
    lines = {line.get_label(): line for line in figures[-1].axes[0].lines}
    assert list(lines) == ["hazard", "sampling standard error"]
    assert lines["hazard"].get_xdata().tolist() == [1.0]
    assert lines["hazard"].get_ydata() == pytest.approx([(0.5 + 10) / 2])


@pytest.mark.slow
def test_a_run_on_a_part_of_the_rivals_draws_all_that_there_are_the_same_each_time(study_rows, tmp_path):
    studies = [STUDIES[name] for name in ("mse", "asymmetry", "illustrations", "beta")]
    studies[0] = dataclasses.replace(studies[0], rivals=(), tasks=())
    rows = frame_of(study_rows("mse", 1) + study_rows("asymmetry"))
    paths = draw_figures(studies, rows, tmp_path)
    assert [path.name for path in paths] == ["mse.png", "asymmetry.png", "illustrations.png"]
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in paths)
    written = paths[0].with_suffix(".svg").read_text()
    assert written.startswith("<?xml")
    draw_figures(studies[:1], rows, tmp_path)
    assert paths[0].with_suffix(".svg").read_text() == written


def test_illustrations_are_what_they_say():
    assert asymmetry_of(illustration_bounds(1.0, 1.0), 1.0) < 0.01
    assert asymmetry_of(illustration_bounds(0.2, 3.0), 1.0) > 0.4
