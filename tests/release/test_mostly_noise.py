"""What is said of releases that are mostly noise: a warning before the spend, a note of what is released."""

import contextlib
import functools
import json
import math
import pickle
import warnings
from fractions import Fraction

import numpy as np
import pytest
from cases import CASES, KINDS, valid
from helpers import MAX, NoEntropy, loop_over, seeded, slow_but
from sklearn.metrics import average_precision_score, roc_auc_score

import dp_metrics as dp
from dp_metrics.mechanisms.geometric import expected_noise
from dp_metrics.metrics import METRICS
from dp_metrics.metrics.scores.area_limits import BINNED, area_limits
from dp_metrics.metrics.scores.table import _CLEAR
from dp_metrics.release.noise import WIDEST, CountsNoise, few_records, too_few
from dp_metrics.release.parts.ranking_loss import HazardByClass, RankingDraw

ADD = {"neighboring": "add_or_remove_one"}
COUNTED = [name for name, case in CASES.items() if case.row.mechanism in (None, "geometric")]
each_counted = pytest.mark.parametrize("name", slow_but(KINDS, COUNTED))


def binary(n, positives=0.5):
    """Return true labels, predictions that are right nine times in ten, and scores of an area near .8."""
    rng = np.random.default_rng(0)
    y = (np.arange(n) < positives * n).astype(int)
    return y, np.where(rng.random(n) < 0.9, y, 1 - y), 1 / (1 + np.exp(-rng.normal(size=n) - 1.2 * y))


@pytest.fixture
def as_errors():
    """Make an error of the warning, as `python -W error` does, so that nothing may have been spent."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", dp.NoisyReleaseWarning)
        yield dp.PrivacyAccountant(1.0)


@pytest.mark.parametrize("rate", [0.001, 0.1, 1.0, 5.0])
def test_the_expected_noise_is_that_of_its_law(rate):
    k = np.arange(1.0, 100_000.0)
    q = math.exp(-rate)
    assert expected_noise(rate) == pytest.approx(2 * (k * q**k).sum() * (1 - q) / (1 + q))
    assert expected_noise(Fraction(0)) == math.inf
    assert expected_noise(1e300) == 0


def test_two_counts_with_the_sum_0_share_one_noise():
    one, two = (CountsNoise((0,) * size, ((size, Fraction(1, 2)),), True) for size in (3, 2))
    assert one.expected == expected_noise(0.5)
    assert two.expected == expected_noise(1.0)


@each_counted
def test_tables_and_shares_warn_before_the_spend(name, as_errors):
    case = CASES[name]
    with pytest.raises(dp.NoisyReleaseWarning, match="mostly noise"):
        case(*valid(case, 12_000), epsilon=1e-4, accountant=as_errors, random_state=NoEntropy())
    assert as_errors.spent == 0


@each_counted
def test_they_do_not_in_ordinary_use_nor_where_the_number_of_records_is_private(name, as_errors):
    case = CASES[name]
    case(*valid(case, 1000), epsilon=1.0, accountant=as_errors)
    case(*valid(case, 5), epsilon=0.01, **ADD)


def test_the_threshold_is_a_tenth_of_the_range_of_a_share(as_errors):
    y, pred, score = binary(1000)

    def warns(function, n, *data, **options):
        try:
            function(*(column[:n] for column in data), epsilon=1.0, **options)
        except dp.NoisyReleaseWarning:
            return True
        return False

    # noise of size 1 / sinh(1), 0.85, on a share of n records
    assert [warns(dp.private_accuracy_score, n, y, pred) for n in (8, 9)] == [True, False]
    # 1.92 on each of four counts, of which two hold n / 2 records on average
    assert [warns(dp.private_confusion_matrix, n, y, pred) for n in (38, 39)] == [True, False]
    assert [warns(dp.private_roc_curve, n, y, score, bins=8) for n in (153, 154)] == [True, False]
    # the error of calibration moves by 2 / n
    error = dp.private_expected_calibration_error
    assert [warns(error, n, y, score) for n in (19, 21)] == [True, False]
    # nothing else tells how many records there are
    assert [warns(dp.private_mae, n, y, pred, bounds=(0, 1), mechanism="laplace") for n in (9, 11)] == [
        True,
        False,
    ]


def test_summaries_warn_as_a_call_does(as_errors):
    y, pred, score = binary(1000)
    for summary in (dp.ConfusionSummary().update(y, pred), dp.ScoreSummary().update(y, score)):
        with pytest.raises(dp.NoisyReleaseWarning):
            summary.release(1e-3, accountant=as_errors)
        assert as_errors.spent == 0
        summary.release(1.0)
        summary.release(1e-3, **ADD)


FRAMED = (dp.private_recall_score, dp.private_accuracy_score, dp.private_roc_auc_score, dp.private_mae)


@pytest.mark.parametrize("metric", FRAMED)
@pytest.mark.parametrize("membership", ["private", "public"])
def test_frames_warn_by_the_number_of_groups(metric, membership, as_errors):
    y, pred, score = binary(2000)
    group = np.arange(2000) % 100
    records = {"y_true": y, "y_pred": score if metric is dp.private_roc_auc_score else pred}

    def make(groups, **options):
        return dp.PrivateMetricFrame(
            metrics=metric,
            sensitive_features=group % groups,
            group_labels=list(range(groups)),
            **{"membership": membership, "epsilon": 0.4, "random_state": seeded(), **records, **options},
        )

    make(2, epsilon=1.0)
    with pytest.raises(dp.NoisyReleaseWarning, match="mostly noise"):
        make(100, accountant=as_errors, random_state=NoEntropy())
    assert as_errors.spent == 0
    if membership == "private":
        make(100, **ADD)  # nothing public tells the number of records


def released(function, *data, **options):
    return dp.with_result(function)(*data, random_state=seeded(), **options)


@pytest.mark.parametrize(
    ("share", "said"),
    [(10, "more than half"), (110, "a fifth to a half"), (200, "up to a fifth"), (400, None)],
)
@pytest.mark.parametrize("relation", ["replace_one", "add_or_remove_one"])
def test_an_area_says_how_much_its_bias_may_hide(share, said, relation):
    y, _, score = binary(4000, positives=0.05)
    options = {"epsilon": share / 200, "neighboring": relation}
    notes = [
        dp.with_result(dp.private_roc_auc_score)(y, score, random_state=seeded(seed), **options).note
        for seed in range(9)
    ]
    tiers = [note and note.rpartition(" of 1 - AUC may be hidden")[0] for note in notes]
    assert sum(tier is None if said is None else str(tier).endswith(said) for tier in tiers) >= 5
    assert all(note is None or note.startswith("Biased towards 1: ") for note in notes)


def test_the_noise_of_a_size_is_reckoned_with():
    """The noisy size times epsilon is 20 off on average: a class of 13 may come out as one of 60."""
    draw = RankingDraw(None, HazardByClass(0.01, Fraction(1), 10_000), (0,))
    notes = {size: draw.note({"positives": size}) for size in (-50, 13, 60, 110, 240, 250, 9_990)}
    assert ["more than half" in str(notes[size]) for size in (-50, 13, 60, 9_990)] == [True] * 4
    assert "a fifth to a half" in notes[110]
    assert "up to a fifth" in notes[240]
    assert notes[250] is None
    # the same counts of a hundredth of epsilon hide more
    small = RankingDraw(None, HazardByClass(0.01, Fraction(1, 100), 10_000), (0,))
    assert "more than half" in small.note({"positives": 250})


def test_a_note_of_several_areas_has_the_epsilon_of_each():
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], [4000, 30, 3000])
    score = rng.random((y.size, 3))
    options = {"multi_class": "ovr", "average": None}
    result = released(dp.private_roc_auc_score, y, score, epsilon=3.0, **options)
    assert result.note.count("Biased towards 1") == 1
    assert "at epsilon 1 more than half" in result.note
    assert released(dp.private_roc_auc_score, y % 2, score[:, 1], epsilon=60.0).note is None


@loop_over("options", [{}, {"average": "macro"}, {"average": None}])
@pytest.mark.parametrize("name", ["recall", "precision", "f1", "jaccard"])
def test_a_ratio_of_few_records_says_so(name, options):
    function = getattr(dp, f"private_{name}_score")
    y, pred, _ = binary(10_000, positives=0.0003)
    few = released(function, y, np.where(y == 1, pred, 0), epsilon=1.0, **options)
    assert "Mostly noise" in few.note
    assert "records by the noisy counts, off by " in few.note
    enough, pred, _ = binary(10_000)
    assert released(function, enough, pred, epsilon=1.0, **options).note is None


@loop_over("average", ["binary", "macro", None])
def test_a_specificity_of_few_negatives_says_so(average):
    y, pred, _ = binary(10_000, positives=0.0006)
    few = released(
        dp.private_specificity_score, 1 - y, np.where(y == 1, 1 - pred, 1), epsilon=1.0, average=average
    )
    assert "Mostly noise" in few.note
    enough, pred, _ = binary(10_000)
    assert released(dp.private_specificity_score, enough, pred, epsilon=1.0, average=average).note is None


def test_what_else_is_made_of_counts_says_so_too():
    y, pred, score = binary(10_000, positives=0.0006)
    pred = np.where(y == 1, pred, 0)
    normalized = functools.partial(dp.private_confusion_matrix, normalize="true")
    for function in (
        dp.private_balanced_accuracy_score,
        dp.private_matthews_corrcoef,
        dp.private_cohen_kappa_score,
        dp.private_classification_report,
        normalized,
    ):
        assert "Mostly noise in part" in released(function, y, pred, epsilon=1.0).note
    for function in (dp.private_roc_curve, dp.private_average_precision_score):
        assert "Mostly noise: " in released(function, y, score, epsilon=1.0).note
    curve = released(dp.private_calibration_curve, y, np.minimum(score, 0.2 + 0.5 * y), epsilon=1.0)
    assert "Mostly noise in part" in curve.note
    assert released(dp.private_confusion_matrix, y, pred, epsilon=1.0).note is None  # counts are no shares


PRIVATE_SIZES = {
    "a share": functools.partial(dp.private_accuracy_score),
    "a table": dp.private_confusion_matrix,
    "a curve": dp.private_roc_curve,
    "two stages": dp.private_mae,
    "hazard": functools.partial(dp.private_mae, mechanism="hazard"),
    "sums": functools.partial(dp.private_mae, mechanism="geometric", bounds=(0, 1)),
}


@pytest.mark.parametrize("name", PRIVATE_SIZES)
def test_a_noisy_number_of_records_may_tell_that_all_is_noise(name):
    y, pred, score = binary(2000)
    if name == "a curve":
        pred = score
    few = released(PRIVATE_SIZES[name], y[:4], pred[:4], epsilon=0.3, **ADD)
    if "count" in few.drawn and few.drawn["count"] > 40:  # noise of size 67 of a count of 4
        assert (few.note is None) == (few.drawn["count"] * few.epsilon * 0.95 >= 50)
    else:
        by_width = name in ("a share", "a curve", "sums")
        assert few.note.startswith("Mostly noise: " if by_width else "By the noisy number of records ")
    assert released(PRIVATE_SIZES[name], y, pred, epsilon=1.0, **ADD).note is None


def scored(n, share, seed=0):
    """Return labels and scores of an area of about .85, of which no positive lies far out."""
    rng = np.random.default_rng(seed)
    y = (np.arange(n) < share * n).astype(int)
    return y, np.clip(rng.normal(0.4 + 0.22 * y, 0.15, n), 0, 1)


@pytest.mark.parametrize("share", [0.5, 0.1])
@pytest.mark.parametrize(
    ("function", "exact"),
    [(dp.ScoreSummary, roc_auc_score), (dp.private_average_precision_score, average_precision_score)],
)
def test_the_width_of_limits_tells_of_areas_and_average_precision(function, exact, share):
    """What is flagged may be off by a tenth, and what is not hardly is: 95 % of 40 errors, by size."""
    for n in (300, 1000, 5000, 20_000):
        y, score = scored(n, share)
        if function is dp.ScoreSummary:
            summary = function().update(y, score)
            found = [summary.release(1.0, random_state=seeded(seed)) for seed in range(40)]
            values, notes = zip(*((one.roc_auc_score(), one.result.note) for one in found), strict=True)
        else:
            found = [
                dp.with_result(function)(y, score, epsilon=1.0, random_state=seeded(seed))
                for seed in range(40)
            ]
            values, notes = zip(*((one.value, one.note) for one in found), strict=True)
        far = np.quantile(np.abs(np.array(values) - exact(y, score)), 0.95)
        flagged = np.mean([str(note).startswith("Mostly noise") for note in notes])
        assert far > 0.1 or flagged < 0.5
        assert far < 0.16 or flagged > 0.5


def test_limits_of_areas_of_large_classes_need_not_be_computed():
    """Where the shortcut is taken, at its edge, they are closer than a fifth."""
    rng, widths = np.random.default_rng(0), []
    for _ in range(300):
        bins, rate = int(rng.choice([2, 8, 32, 128])), float(rng.choice([0.05, 0.5, 3.0]))
        added = expected_noise(rate) * math.sqrt(bins)
        sizes = _CLEAR * added * np.array([1.0, rng.choice([1.0, 3.0, 100.0])]) + 1
        lie = rng.dirichlet(np.full(bins, rng.choice([0.05, 1.0, 20.0])), 2)
        noise = rng.geometric(-np.expm1(-rate), (2, 2, bins))
        noisy = np.rint(rng.permuted(sizes)[:, np.newaxis] * lie).astype(int) + noise[0] - noise[1]
        made = CountsNoise(tuple(noisy.ravel().tolist()), ((2 * bins, Fraction(rate)),), False)
        found = area_limits(made, 0.025, ties=BINNED, among_people=False)
        widths.append(math.inf if found is None else found[1] - found[0])
    assert max(widths) <= WIDEST
    assert max(widths) > WIDEST / 4


@pytest.mark.parametrize("relation", ["replace_one", "add_or_remove_one"])
def test_the_width_of_limits_tells_of_a_mean_with_a_public_limit(relation):
    options = {"epsilon": 0.5, "neighboring": relation, "max_loss": 4.0, "mechanism": "geometric"}
    noted = {}
    for n in (20, 40, 100, 1000):
        result = released(dp.private_mean_loss, np.linspace(0, 3, n), **options)
        lower, upper = result.noise_interval()
        noted[n] = str(result.note).startswith("Mostly noise: limits")
        # where limits are as wide as the range a sum ends them
        assert noted[n] == (upper - lower > 0.2 * 4.0)
    assert noted[20]
    assert not noted[1000]


def test_areas_of_groups_and_of_all_are_judged_by_their_own_width():
    """13 groups of about 200 records, 30 of which are positive: each tells little, all together enough."""
    y, score = scored(2600, 0.15)
    frame = dp.PrivateMetricFrame(
        metrics=dp.private_roc_auc_score, y_true=y, y_pred=score, epsilon=1.5, random_state=seeded(),
        sensitive_features=np.arange(2600) % 13, group_labels=list(range(13)),
    )  # fmt: skip
    assert sum("Mostly noise" in str(note) for note in frame.note.values()) >= 11
    assert "Mostly noise" not in str(frame.overall_note)


def test_the_note_is_public_and_a_function_of_what_was_released():
    y, pred, _ = binary(10_000, positives=0.0006)
    result = released(dp.private_recall_score, y, pred, epsilon=1.0)
    assert json.loads(result.to_json())["note"] == result.to_dict()["note"] == result.note
    assert pickle.loads(pickle.dumps(result)).note == result.note
    made = result.noise
    assert made.result.note(made.parts, made.released) == result.note


@pytest.mark.parametrize("name", slow_but(KINDS, [name for name in CASES if len(CASES[name].row.data) == 2]))
@loop_over("epsilon", [5e-324, 1e-300, 1e-5, 1e300, MAX])
@loop_over("relation", ["replace_one", "add_or_remove_one"])
def test_a_note_never_raises_and_is_no_warning(name, epsilon, relation):
    case = CASES[name]
    options = {"epsilon": epsilon, "accountant": dp.PrivacyAccountant(MAX)}
    if "neighboring" in case.parameters:
        options["neighboring"] = relation
    result = None
    # an epsilon may be too small to be divided: that is before the spend
    with np.errstate(all="raise"), contextlib.suppress(ValueError):
        result = dp.with_result(case.function)(*valid(case, 10), **options, **case.options)
    assert options["accountant"].spent == (0 if result is None else epsilon)
    assert result is None or result.note is None or isinstance(result.note, str)


def test_shares_of_nothing_are_noise_and_no_shares_are_not():
    assert too_few(0.5, np.array([0.0])).all()
    assert not too_few(0.0, np.array([0.0])).any()
    assert not too_few(math.inf, np.empty(0)).any()
    few = too_few(1.0, np.array([29.0, 31.0]))
    assert "1 rest" in few_records(1.0, np.array([29.0, 31.0]), few)


def groups_of_areas(metric, **options):
    """Return a frame of 5,000 records, of whose group "few" 33 are positive."""
    rng = np.random.default_rng(1)
    y = np.r_[np.ones(33), np.zeros(967), np.ones(2000), np.zeros(2000)].astype(int)
    score = rng.normal(size=y.size) + 1.57 * y  # an area of .867
    return dp.PrivateMetricFrame(
        metrics=metric,
        y_true=y,
        y_pred=score if isinstance(metric, functools.partial) else (score > 1).astype(int),
        sensitive_features=np.repeat(["few", "many"], [1000, 4000]),
        **{"group_labels": ["few", "many"], "epsilon": 1.0, **options},
    )


@pytest.mark.parametrize("seed", range(5))
def test_the_area_of_a_group_with_few_positives_has_its_note(seed):
    by_hazard = functools.partial(dp.private_roc_auc_score, mechanism="hazard")
    made = groups_of_areas(by_hazard, random_state=seeded(seed))
    assert made.by_group["few"] > 0.9
    assert "Biased towards 1" in made.note["few"]
    assert "more than half of 1 - AUC may be hidden" in made.note["few"]
    assert made.note["many"] is None
    assert "Biased towards 1" in repr(made)


def test_notes_of_a_frame_have_the_form_of_its_values():
    several = {"recall": dp.private_recall_score, "accuracy": dp.private_accuracy_score}
    made = groups_of_areas(several, epsilon=0.4, random_state=seeded())
    assert [*made.note] == [*made.by_group]
    assert {*made.note["few"]} == {*made.overall_note} == {"recall", "accuracy"}
    assert "Mostly noise: this rests on about " in made.note["few"]["recall"]
    assert made.note["many"] == made.overall_note == {"recall": None, "accuracy": None}
    silent = groups_of_areas(dp.private_accuracy_score)
    assert silent.overall_note is None
    assert "note" not in repr(silent)
    public = groups_of_areas(several, membership="public", group_labels=["few", "many", "none"])
    assert public.note["none"]["recall"] == public.note["none"]["accuracy"] == "This group has no records."


def test_a_private_group_that_is_empty_says_that_it_is_noise():
    made = groups_of_areas(dp.private_accuracy_score, group_labels=["few", "many", "none"])
    assert "Mostly noise" in made.note["none"]
    assert METRICS["private_accuracy_score"].mechanism == "geometric"


OF_COUNTS = (
    "recall",
    "precision",
    "f1",
    "jaccard",
    "specificity",
    "matthews_corrcoef",
    "accuracy",
    "zero_one_loss",
)


@pytest.mark.parametrize("relation", ["replace_one", "add_or_remove_one"])
@pytest.mark.parametrize("name", OF_COUNTS)
def test_a_ratio_is_mostly_noise_where_limits_of_its_noise_are_a_fifth_of_the_range_apart(name, relation):
    """Of 12 to 3,000 records; some have notes and some have none, and each follows from its limits."""
    function, flagged = metric_of(name), []
    for seed in range(24):
        y, pred, _ = binary((12, 24, 60, 90, 130, 200, 300, 600, 3000)[seed % 9])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", dp.NoisyReleaseWarning)
            result = dp.with_result(function)(
                y, pred, epsilon=0.7, random_state=seeded(seed), neighboring=relation
            )
        lower, upper = result.noise_interval()
        widest = 0.4 if name == "matthews_corrcoef" else 0.2
        assert (result.note is not None and "Mostly noise" in result.note) == (upper - lower > widest)
        flagged.append(result.note is not None)
    assert 2 < sum(flagged) < 22


def metric_of(name):
    return getattr(dp, f"private_{name}", None) or getattr(dp, f"private_{name}_score")


@pytest.mark.parametrize("way", [{}, {"membership": "public"}, ADD], ids=str)
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
