"""Figures: a panel for every task, one colour for one mechanism, nothing on top of anything else."""

import io
import itertools

import pytest
from matplotlib.colors import to_hex

from dp_metrics.evaluation import figures
from dp_metrics.evaluation.figures import Panel, draw_figure, draw_figures, panels_of, save_panel
from dp_metrics.evaluation.illustrations import illustration_bounds
from dp_metrics.evaluation.plots import MECHANISM_NAMES, MECHANISM_STYLES
from dp_metrics.evaluation.simulate import asymmetry_of
from dp_metrics.evaluation.studies import STUDIES


@pytest.fixture
def study_rows(make_row):
    """Return a function that makes rows of every panel and curve of a study."""

    def rows(name, tasks=None):
        study = STUDIES[name]
        if study.kind == "simulated":
            return [
                make_row(figure=name, metric=("uniform", "heavy-tailed")[i % 2], mechanism=curve.mechanism,
                         setting=f"asymmetry={i / 40:.3f}", repeat=i, expected_error=2.0**-k * (1 + i))
                for i in range(20)
                for k, curve in enumerate(study.curves)
            ]  # fmt: skip
        return [
            make_row(
                figure=name, dataset=task.dataset, metric=task.metric, column=task.column, epsilon=epsilon,
                mechanism=curve.mechanism, setting=curve.setting, bounded=int(curve.bounded), repeat=repeat,
                release=2.0 + 10.0 ** (k / 3) / epsilon + 0.1 * repeat,
            )
            for task in study.tasks[:tasks]
            for k, curve in enumerate(study.curves)
            for epsilon in (0.1, 0.25, 0.5, 1.0, 2.0, 4.0)
            for repeat in range(2)
        ]  # fmt: skip

    return rows


@pytest.mark.parametrize("tasks", [1, 2, 3, 4, 5, 6])
@pytest.mark.parametrize("name", ["variance", "beta", "unbounded"])
def test_nothing_overlaps(study_rows, name, tasks):
    study = STUDIES[name]
    panels = panels_of(study, study_rows(name, tasks))
    assert [panel.title for panel in panels] == [task.title for task in study.tasks[:tasks]]
    check_layout(study, panels)


@pytest.mark.parametrize("name", ["cross-entropy", "mse", "unbounded-losses", "asymmetry", "illustrations"])
def test_nothing_overlaps_in_the_others(study_rows, name):
    panels = panels_of(STUDIES[name], [] if name == "illustrations" else study_rows(name))
    assert panels
    check_layout(STUDIES[name], panels)


def check_layout(study, panels):
    import matplotlib

    with matplotlib.rc_context(figures._FONT):
        figure = draw_figure(study, panels)
        figure.savefig(io.BytesIO(), format="png")
        page = figure.bbox
        boxes = [axes.get_tightbbox() for axes in figure.axes if axes.axison]
        boxes += [
            axes.get_legend().get_window_extent()
            for axes in figure.axes
            if not axes.axison and axes.get_legend()
        ]
        boxes += [legend.get_window_extent() for legend in figure.legends]
        assert len(boxes) >= len(panels) + (study.kind != "simulated")
        for i, box in enumerate(boxes):
            assert page.x0 - 1 <= box.x0 < box.x1 <= page.x1 + 1
            assert page.y0 - 1 <= box.y0 < box.y1 <= page.y1 + 1
            assert not any(box.overlaps(other) for other in boxes[i + 1 :])
        for axes in figure.axes:
            if axes.axison:
                assert axes.lines or axes.collections or axes.patches
                labels = [text.get_window_extent() for text in axes.get_xticklabels() if text.get_text()]
                assert not any(a.overlaps(b) for a, b in itertools.pairwise(labels))


def test_one_colour_for_one_mechanism(study_rows):
    for name in ("variance", "mse", "unbounded", "illustrations"):
        panels = panels_of(STUDIES[name], [] if name == "illustrations" else study_rows(name))
        entries = {}
        for panel in panels:
            entries |= save_panel(panel, io.StringIO())
        for label, handle in entries.items():
            for mechanism, text in MECHANISM_NAMES.items():
                if label.startswith(text):
                    colour = handle.get_color() if hasattr(handle, "get_color") else handle.get_edgecolor()
                    assert to_hex(colour) == MECHANISM_STYLES[mechanism][0].lower()


def test_curves_show_the_capped_mean(study_rows, make_row):
    rows = [make_row(repeat=i, release=x, bounded=0) for i, x in enumerate((3.0, 1e300))]
    (panel,) = panels_of(STUDIES["mse"], rows)
    entries = save_panel(panel, io.StringIO())
    assert list(entries) == ["hazard (our default)", "sampling standard error"]
    assert entries["hazard (our default)"].get_ydata() == pytest.approx([(0.5 + 10) / 2])


def test_an_error_of_zero_is_left_out(make_row, tmp_path):
    rows = [make_row(release=2.0), make_row(release=2.5, epsilon=2.0)]
    (panel,) = panels_of(STUDIES["mse"], rows)
    assert save_panel(panel, io.StringIO())["hazard (our default)"].get_xdata().tolist() == [2.0]


def test_files(study_rows, tmp_path):
    studies = [STUDIES[name] for name in ("mse", "asymmetry", "illustrations", "beta")]
    paths = draw_figures(studies, study_rows("mse") + study_rows("asymmetry"), tmp_path)
    assert [path.name for path in paths] == ["mse.png", "asymmetry.png", "illustrations.png"]
    for path in paths:
        assert path.read_bytes().startswith(b"\x89PNG")
        assert path.with_suffix(".svg").read_text().startswith("<?xml")


def test_the_same_rows_give_the_same_svg(study_rows):
    (panel, *_) = panels_of(STUDIES["mse"], study_rows("mse", 1))
    first, second = io.StringIO(), io.StringIO()
    assert isinstance(panel, Panel)
    save_panel(panel, first)
    save_panel(panel, second)
    assert first.getvalue() == second.getvalue()


def test_illustrations_are_what_they_say():
    assert asymmetry_of(illustration_bounds(1.0, 1.0), 1.0) < 0.01
    assert asymmetry_of(illustration_bounds(0.2, 3.0), 1.0) > 0.4
