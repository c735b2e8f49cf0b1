"""Plots: written without global state, the same colours everywhere, nothing on top of anything else."""

import subprocess
import sys

import pytest

from dp_metrics.evaluation import plots
from dp_metrics.evaluation.datasets import MissingExtraError
from dp_metrics.evaluation.experiment import MECHANISM_LABELS, Row
from dp_metrics.evaluation.plots import MECHANISM_NAMES, MECHANISM_STYLES, plot_experiment
from dp_metrics.evaluation.studies import CURVES


def rows(
    metrics=("private_mse", "private_mae", "private_variance"),
    bounded=True,
    true_value=2.0,
    epsilons=(0.1, 1.0),
):
    return [
        Row(
            dataset="example",
            metric=metric,
            mechanism=mechanism,
            epsilon=epsilon,
            n_test=1000,
            bounded=bounded,
            release=1.0 if bounded or i < 3 else None,
            expected_error=(i + 1) * 0.1 / epsilon if bounded or i < 3 else None,
            error_cap=None if bounded else 20.0,
            true_value_not_private=true_value,
            sampling_error_not_private=0.05,
        )
        for metric in metrics
        for epsilon in epsilons
        for i, mechanism in enumerate(MECHANISM_LABELS)
    ]


@pytest.fixture
def figures(monkeypatch):
    """Collect the figures that are made."""
    from matplotlib import figure

    made = []

    class Recorded(figure.Figure):
        def __init__(self, *args, **kwargs):
            super().__init__(*args, **kwargs)
            made.append(self)

    monkeypatch.setattr(figure, "Figure", Recorded)
    return made


def test_every_mechanism_has_a_style():
    assert (
        tuple(MECHANISM_STYLES)
        == (*MECHANISM_LABELS, "clipped_mean")
        == tuple(CURVES)
        == tuple(MECHANISM_NAMES)
    )
    colours, markers, _ = zip(*MECHANISM_STYLES.values(), strict=True)
    assert len(set(colours)) == len(set(markers)) == len(MECHANISM_STYLES)


@pytest.mark.parametrize(
    "metrics", [("private_log_loss",), ("private_mse", "private_mae", "private_variance")]
)
def test_one_panel_per_metric_and_nothing_overlaps(tmp_path, figures, metrics):
    path = tmp_path / "plot.png"
    plot_experiment(rows(metrics), path)
    assert path.read_bytes().startswith(b"\x89PNG")
    (figure,) = figures
    assert [axes.get_title() for axes in figure.axes] == [plots.METRIC_TITLES[metric] for metric in metrics]
    (legend,) = figure.legends
    names = [text.get_text() for text in legend.get_texts()]
    assert names == [*MECHANISM_LABELS, "sampling standard error"]
    page = figure.bbox
    boxes = [axes.get_tightbbox() for axes in figure.axes]
    boxes.append(legend.get_window_extent())
    boxes.append(figure._suptitle.get_window_extent())
    for i, box in enumerate(boxes):
        assert page.x0 <= box.x0
        assert box.x1 <= page.x1
        assert page.y0 <= box.y0
        assert box.y1 <= page.y1
        assert not any(box.overlaps(other) for other in boxes[i + 1 :])


def test_lines_without_bounds(tmp_path, figures):
    plot_experiment(rows(("private_mse",), bounded=False), tmp_path / "plot.png")
    (axes,) = figures[0].axes
    lines = {line.get_label(): line for line in axes.lines}
    assert list(lines) == ["hazard", "above_threshold", "paper", "sampling standard error"]
    assert lines["hazard"].get_color() == MECHANISM_STYLES["hazard"][0]
    assert lines["hazard"].get_ydata().tolist() == pytest.approx([0.5, 0.05])
    assert lines["sampling standard error"].get_ydata() == pytest.approx([0.025, 0.025])
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")
    assert "need public bounds: inverse_sensitivity, piecewise_laplace, laplace" in figures[0].get_suptitle()
    assert "capped at 10 x the true value" in axes.get_ylabel()


@pytest.mark.parametrize("epsilons", [(1.0,), tuple(0.1 * 1.5**i for i in range(12))])
def test_any_number_of_epsilons(tmp_path, epsilons):
    plot_experiment(rows(epsilons=epsilons), tmp_path / "plot.png")
    assert (tmp_path / "plot.png").exists()


def test_a_true_value_of_zero_has_no_relative_error(tmp_path):
    plot_experiment(rows(true_value=0.0), tmp_path / "plot.png")
    assert (tmp_path / "plot.png").exists()


def test_no_pyplot(tmp_path):
    # in a fresh interpreter: another test may have imported it
    code = (
        "import sys, dp_metrics.evaluation.plots as p\n"
        # not pandas: scikit-learn imports it itself where it is installed
        "assert not [m for m in sys.modules if m.partition('.')[0] in ('matplotlib', 'xgboost')]\n"
        "p.import_extra('matplotlib.figure')\n"
        "assert 'matplotlib.pyplot' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=tmp_path)


def test_missing_extra(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(MissingExtraError, match="matplotlib"):
        plot_experiment(rows(), tmp_path / "plot.png")
