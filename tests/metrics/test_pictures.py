"""Pictures of released scores and confusion matrices: scikit-learn's displays, of released numbers only."""

import ast
import inspect

import numpy as np
import pytest
from helpers import all_of_labels, all_of_scores, beta_scores, loop_over, seeded
from matplotlib.figure import Figure
from sklearn.calibration import CalibrationDisplay
from sklearn.metrics import ConfusionMatrixDisplay, PrecisionRecallDisplay, RocCurveDisplay

from dp_metrics.metrics import _pictures
from dp_metrics.metrics._pictures import COLOURS

Y, SCORE = beta_scores(2000)
DISPLAYS = {
    "roc": RocCurveDisplay,
    "precision_recall": PrecisionRecallDisplay,
    "calibration": CalibrationDisplay,
}


def axes_of():
    return Figure(figsize=(4, 3.4), layout="constrained").subplots()


def released(n=2000, epsilon=1.0, bins=None, **how):
    return all_of_scores(bins=bins).update(Y[:n], SCORE[:n]).release(epsilon, random_state=seeded(), **how)


def labels_in(axes):
    return [text.get_text() for text in axes.get_legend().get_texts()]


@loop_over("kind", DISPLAYS)
def test_a_display_is_made_of_what_was_released(kind):
    scores, axes = released(), axes_of()
    display = scores.plot(kind, axes)
    assert isinstance(display, DISPLAYS[kind])
    assert display.ax_ is axes
    first, second, *_ = getattr(scores, f"{kind}_curve")()
    expected = (first, second) if kind == "roc" else (second, first)
    np.testing.assert_array_equal(display.line_.get_data(), expected)
    assert display.line_.get_color() == COLOURS["value"]
    axes.figure.draw_without_rendering()
    assert all(one.get_window_extent().width > 0 for one in (axes.xaxis.label, axes.yaxis.label))


def test_bands_are_those_of_the_release_and_can_be_left_out():
    scores = released(bins=8)
    (band,) = scores.plot("roc", axes_of(), confidence=0.9).ax_.patches
    lower = scores.roc_band(0.9).lower
    np.testing.assert_allclose(band.get_xy()[: lower.fpr.size], np.column_stack(lower[:2]))
    (band,) = scores.plot("precision_recall", axes_of(), confidence=0.9).ax_.collections
    limits, (path,) = scores.precision_recall_band(0.9), band.get_paths()
    corners = np.array([path.get_extents().min, path.get_extents().max])
    np.testing.assert_allclose(corners, [(0, limits.lower.min()), (1, limits.upper.max())])
    display = scores.plot("calibration", axes_of())
    assert display.y_prob.size == pytest.approx(2000, abs=50)
    assert display.y_prob.mean() == pytest.approx(SCORE.mean(), abs=0.02)
    axes = display.ax_
    limits = scores.calibration_band(n_bins=5)
    ends = [(bar.get_y(), bar.get_y() + bar.get_height()) for bar in axes.patches]
    np.testing.assert_allclose(ends, np.c_[limits.lower, limits.upper])
    for kind in DISPLAYS:
        axes = scores.plot(kind, axes_of(), confidence=None).ax_
        assert not [*axes.patches, *axes.collections]


def test_what_is_mostly_noise_is_grey():
    few, many = released(150, 0.5), released(2000, 100.0)
    for kind in ("precision_recall", "calibration"):
        assert "mostly noise" in labels_in(few.plot(kind, axes_of()).ax_)
    assert "mostly noise" not in labels_in(many.plot("calibration", axes_of()).ax_)
    axes = released(2000, 0.5).plot("precision_recall", axes_of()).ax_
    (grey,) = (line for line in axes.lines if line.get_color() == COLOURS["noise"])
    is_grey = ~np.isnan(grey.get_xdata())
    assert is_grey[-1]
    assert not is_grey[0]
    assert np.all(np.diff(is_grey.astype(int)) >= 0)


def test_a_confusion_matrix_is_drawn_with_its_limits():
    summary = all_of_labels(["no", "yes"])
    summary.update(np.where(Y, "yes", "no"), np.where(SCORE > 0.5, "yes", "no"))
    confusion = summary.release(1.0, random_state=seeded())
    matrix, limits = confusion.confusion_matrix(), confusion.noise_interval("confusion_matrix")
    display = confusion.plot(axes_of())
    assert isinstance(display, ConfusionMatrixDisplay)
    np.testing.assert_array_equal(display.confusion_matrix, matrix)
    count, low, high = (of[1, 1] for of in (matrix, limits.lower, limits.upper))
    assert display.text_[1, 1].get_text() == f"{count:,.0f}\n{low:,.0f}–{high:,.0f}"
    shares = confusion.plot(axes_of(), normalize="true", confidence=None)
    assert shares.text_[0, 0].get_text() == f"{confusion.confusion_matrix(normalize='true')[0, 0]:.2f}"
    at = released().at_threshold(0.5)
    np.testing.assert_array_equal(at.plot(axes_of()).confusion_matrix, at.confusion_matrix())
    tiny = all_of_labels().update([0] * 500, [0] * 500).release(1.0, random_state=seeded())
    assert [text.get_style() for text in tiny.plot(axes_of()).text_.ravel()] == ["normal"] + 3 * ["italic"]


def test_labels_of_users_are_shortened_and_are_no_formulas():
    names = ["$x^$", "a" * 200]
    summary = all_of_labels(names).update(names * 50, names * 50)
    axes = summary.release(1.0, random_state=seeded()).plot(axes_of()).ax_
    axes.figure.draw_without_rendering()  # raises where a formula is wrong
    shown = [text.get_text() for text in axes.get_yticklabels()]
    assert shown[0] == r"\$x^\$"
    assert max(map(len, shown)) < 35


def test_drawing_code_imports_nothing_that_knows_records():
    tree = ast.parse(inspect.getsource(_pictures))
    imported = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    own = {name.removeprefix("dp_metrics.") for name in imported if name.startswith("dp_metrics")}
    of_scores = {"metrics.scores.bands", "metrics.scores.curve_formulas"}
    assert own <= {"_packages", "inputs.options", "release.released", *of_scores}
