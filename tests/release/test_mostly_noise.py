"""What is said of releases that are mostly noise: a warning before the spend, a note of what is released."""

import functools
import math
import warnings
from fractions import Fraction

import numpy as np
import pytest
from cases import CASES, PRIVATE_N, RELATIONS, each_way, valid
from helpers import NoEntropy, all_of_labels, all_of_scores, loop_over, seeded

import dp_metrics as dp
from dp_metrics.mechanisms._laws import Staircase
from dp_metrics.metrics import metric_named
from dp_metrics.quantities.tables import few_records, too_few


def binary(n, positives=0.5):
    """Return true labels, predictions that are right nine times in ten, and scores of an area near .8."""
    rng = np.random.default_rng(0)
    y = (np.arange(n) < positives * n).astype(int)
    return y, np.where(rng.random(n) < 0.9, y, 1 - y), 1 / (1 + np.exp(-rng.normal(size=n) - 1.2 * y))


@pytest.fixture
def as_errors():
    """Make an error of the warning, as `python -W error` does, so that nothing may have been spent."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", dp.exceptions.NoisyReleaseWarning)
        yield dp.PrivacyAccountant(1.0)


def test_of_nothing_expected_noise_is_much():
    assert Staircase(Fraction(0)).expected == math.inf
    assert too_few(0.5, np.array([0.0])).all()
    assert not too_few(0.0, np.array([0.0])).any()
    few = too_few(1.0, np.array([29.0, 31.0]))
    assert "1 rest" in few_records(1.0, np.array([29.0, 31.0]), few)


@loop_over("name", [name for name, case in CASES.items() if case.row.mechanism in (None, "geometric")])
def test_tables_and_shares_warn_before_the_spend_and_not_in_ordinary_use(name, as_errors):
    case = CASES[name]
    with pytest.raises(dp.exceptions.NoisyReleaseWarning, match="mostly noise"):
        case(*valid(case, 12_000), epsilon=1e-4, accountant=as_errors, random_state=NoEntropy())
    assert as_errors.spent == 0
    case(*valid(case, 1000), epsilon=1.0)
    case(*valid(case, 5), epsilon=0.01, **PRIVATE_N)  # nothing public tells the number of records


def of_outputs(y, pred, **settings):
    return dp.private_mse(
        *(np.stack([x, x], axis=1) for x in (y, pred)), multioutput="raw_values", **settings
    )


def of_persons(y, pred, **settings):
    return dp.private_mae(y, pred, groups=np.arange(len(y)) // 4, **settings)


def of_values(y, values, **settings):
    return dp.private_variance(values, **settings)


def test_so_few_records_are_warned_of_before_the_spend_and_more_are_not(as_errors):
    y, pred, score = binary(1000)
    bounded = functools.partial(dp.private_mae, bounds=(0, 1))
    for words, few, enough, function, values in (
        # noise of size 1 / sinh(1), 0.85, on a share of n records, of which a tenth of the range is much
        ("mostly noise", 8, 10, dp.private_accuracy_score, pred),
        # 1.92 on each of four counts, of which two hold n / 2 records on average
        ("mostly noise", 38, 40, dp.private_confusion_matrix, pred),
        ("mostly noise", 153, 155, functools.partial(dp.private_roc_curve, bins=8), score),
        # the error of calibration moves by 2 / n
        ("mostly noise", 19, 21, dp.private_expected_calibration_error, score),
        # nothing else tells how many records there are
        ("mostly noise", 9, 11, functools.partial(bounded, mechanism="laplace"), pred),
        ("of its public range", 10, 11, functools.partial(bounded, mechanism="geometric"), pred),
        # where the size of the noise is drawn, what counts is the number times epsilon
        (r"n \* epsilon is 49", 49, 50, dp.private_mse, pred),
        (r"is 99.*Below 100", 99, 100, of_values, score),
        ("is 40", 80, 100, of_outputs, pred),  # epsilon is halved
        ("is 20", 80, 200, of_persons, pred),  # 20 people
    ):
        with pytest.raises(dp.exceptions.NoisyReleaseWarning, match=words):
            function(y[:few], values[:few], epsilon=1.0, accountant=as_errors)
        function(y[:enough], values[:enough], epsilon=1.0)
    assert as_errors.spent == 0


FRAMED = (dp.private_recall_score, dp.private_accuracy_score, dp.private_roc_auc_score, dp.private_mae)


@pytest.mark.parametrize("membership", ["private", "public"])
def test_frames_and_summaries_warn_as_a_call_does(membership, as_errors):
    y, pred, score = binary(2000)
    for metric in FRAMED:
        records = {"y_true": y, "y_pred": score if metric is dp.private_roc_auc_score else pred}

        def make(groups, records=records, metric=metric, **options):
            return dp.PrivateMetricFrame(
                metrics=metric,
                sensitive_features=np.arange(2000) % groups,
                group_labels=list(range(groups)),
                **{"membership": membership, "epsilon": 0.4, "random_state": seeded(), **records, **options},
            )

        make(2, epsilon=1.0)
        with pytest.raises(dp.exceptions.NoisyReleaseWarning, match="mostly noise"):
            make(100, accountant=as_errors, random_state=NoEntropy())
        if membership == "private":
            make(100, **PRIVATE_N)
    for summary in (all_of_labels().update(y, pred), all_of_scores().update(y, score)):
        with pytest.raises(dp.exceptions.NoisyReleaseWarning):
            summary.release(1e-3, accountant=as_errors)
        summary.release(1.0)
        summary.release(1e-3, **PRIVATE_N)
    assert as_errors.spent == 0


def released(function, *data, **options):
    return dp.with_result(function)(*data, random_state=seeded(), **options)


@pytest.mark.parametrize("relation", RELATIONS)
def test_an_area_says_how_much_its_bias_may_hide(relation):
    y, _, score = binary(4000, positives=0.05)
    for share, said in (
        (10, "more than half"),
        (110, "a fifth to a half"),
        (200, "up to a fifth"),
        (400, None),
    ):
        options = {"epsilon": share / 200, "neighboring": relation}
        notes = [
            dp.with_result(dp.private_roc_auc_score)(y, score, random_state=seeded(seed), **options).note
            for seed in range(9)
        ]
        tiers = [note and note.rpartition(" of 1 - AUC may be hidden")[0] for note in notes]
        assert sum(tier is None if said is None else str(tier).endswith(said) for tier in tiers) >= 5
        assert all(note is None or note.startswith("Biased towards 1: ") for note in notes)


PRIVATE_SIZES = {
    "a share": functools.partial(dp.private_accuracy_score),
    "a table": dp.private_confusion_matrix,
    "a curve": dp.private_roc_curve,
    "two stages": dp.private_mae,
    "hazard": functools.partial(dp.private_mae, mechanism="hazard"),
    "sums": functools.partial(dp.private_mae, mechanism="geometric", bounds=(0, 1)),
}


@loop_over("name", PRIVATE_SIZES)
def test_a_noisy_number_of_records_may_tell_that_all_is_noise(name):
    y, pred, score = binary(2000)
    if name == "a curve":
        pred = score
    few = released(PRIVATE_SIZES[name], y[:4], pred[:4], epsilon=0.3, **PRIVATE_N)
    if "count" in few.drawn and few.drawn["count"] > 40:  # noise of size 67 of a count of 4
        # by that count there are many, but the number itself may tell that all of it is noise
        if few.drawn["count"] * few.epsilon * 0.95 >= 50:
            assert few.note is None or few.note.startswith("Mostly noise: all of it")
        else:
            assert few.note is not None
    else:
        by_width = name in ("a share", "a curve", "sums")
        by_count = "By the noisy number of records ", "Mostly noise: all of it may be noise."
        assert few.note.startswith("Mostly noise: " if by_width else by_count)
    assert released(PRIVATE_SIZES[name], y, pred, epsilon=1.0, **PRIVATE_N).note is None


def test_notes_of_a_frame_have_the_form_of_its_values():
    y = np.r_[np.ones(33), np.zeros(967), np.ones(2000), np.zeros(2000)].astype(int)
    frame = functools.partial(
        dp.PrivateMetricFrame, y_true=y, y_pred=np.where(np.arange(5000) % 5, y, 1 - y),
        sensitive_features=np.repeat(["few", "many"], [1000, 4000]),
    )  # fmt: skip
    several = {"recall": dp.private_recall_score, "accuracy": dp.private_accuracy_score}
    two, three = {"group_labels": ["few", "many"]}, {"group_labels": ["few", "many", "none"]}
    made = frame(metrics=several, **two, epsilon=0.4, random_state=seeded())
    assert [*made.note] == [*made.by_group]
    assert {*made.note["few"]} == {*made.overall_note} == {"recall", "accuracy"}
    assert "Mostly noise: this rests on about " in made.note["few"]["recall"]
    assert made.note["many"] == made.overall_note == {"recall": None, "accuracy": None}
    silent = frame(metrics="accuracy", **two, epsilon=1.0)
    assert silent.overall_note is None
    assert "note" not in repr(silent)
    assert "Mostly noise" in frame(metrics="accuracy", **three, epsilon=1.0).note["none"]
    public = frame(metrics=several, **three, membership="public", epsilon=1.0)
    assert public.note["none"]["recall"] == public.note["none"]["accuracy"] == "This group has no records."


@pytest.mark.gate
@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize(
    "name", ["recall_score", "f1_score", "jaccard_score", "matthews_corrcoef", "zero_one_loss"]
)
def test_a_ratio_is_mostly_noise_where_limits_of_its_noise_are_a_fifth_of_the_range_apart(name, relation):
    """Of 12 to 3,000 records; some have notes and some have none, and each follows from its limits."""
    function, flagged = dp.with_result(getattr(dp, f"private_{name}")), []
    for seed in range(24):
        y, pred, _ = binary((12, 24, 60, 90, 130, 200, 300, 600, 3000)[seed % 9])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", dp.exceptions.NoisyReleaseWarning)
            result = function(y, pred, epsilon=0.7, random_state=seeded(seed), neighboring=relation)
        lower, upper = result.noise_interval()
        widest = 0.4 if name == "matthews_corrcoef" else 0.2
        assert ("Mostly noise" in str(result.note)) == (upper - lower > widest)
        flagged.append(result.note is not None)
    assert 2 < sum(flagged) < 22


@each_way
def test_a_group_is_mostly_noise_by_the_same_limits(way):
    y, pred, _ = binary(4000)
    group = np.repeat(np.arange(8), [2000, 1000, 500, 250, 125, 63, 32, 30])
    made = dp.PrivateMetricFrame(
        metrics={"recall": "recall", "accuracy": "accuracy"}, y_true=y[np.argsort(np.arange(4000) % 7)],
        y_pred=pred[np.argsort(np.arange(4000) % 7)], sensitive_features=group, group_labels=range(8),
        epsilon=0.5, random_state=seeded(), **way,
    )  # fmt: skip
    for metric, intervals in made.noise_interval().items():
        wide = {at: one.upper - one.lower > 0.2 for at, one in intervals.items()}
        assert wide == {at: made.note[at][metric] is not None for at in wide}
        assert 0 < sum(wide.values()) < 8


@loop_over("metric", ["mse", "rmse", "r2", "variance"])
def test_a_number_of_which_nothing_is_known_says_so(metric):
    """Sizes far below the least outputs, and their squares."""
    y = np.linspace(-1, 1, 5000)
    data = (y,) if metric == "variance" else (y, y + 0.3)
    released = dp.with_result(metric_named(metric))
    for unit, is_known in ((1.0, True), (1e-13, False)):
        result = released(*(unit * one for one in data), epsilon=10.0)
        assert (result.note is None) == is_known
    assert result.note.startswith("Mostly noise: all of it may be noise.")
