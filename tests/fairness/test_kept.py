"""What frames keep of their releases: limits of the noise, numbers of records, gaps where there are none."""

import itertools
import math
import pickle
from fractions import Fraction
from functools import cache, partial

import numpy as np
import pytest
from helpers import seeded
from sklearn import metrics as sk

import dp_metrics as dp
from dp_metrics._random import SeededEntropy
from dp_metrics.fairness.alike import gaps_where_alike
from dp_metrics.fairness.intervals import InRecords
from dp_metrics.metrics.labels.counts import Confusion
from dp_metrics.metrics.labels.layouts import of_each_label, right_or_wrong
from dp_metrics.release.noise import CountsNoise
from dp_metrics.release.released import Released, ResultNoise

RNG = np.random.default_rng(0)
N = 900
Y = (RNG.random(N) < 0.3).astype(int)
PRED = np.where(RNG.random(N) < 0.8, Y, 1 - Y)
PROBA = np.clip(0.5 * Y + 0.5 * RNG.random(N), 0, 1)
BY = np.array(["a", "b", "c"])[RNG.choice(3, N, p=[0.6, 0.3, 0.1])]
LABELS = ["a", "b", "c"]
NO_NOISE = 1e7


def frame(metrics, p=PRED, labels=LABELS, **settings):
    settings = {"epsilon": 1.0, **settings}
    return dp.PrivateMetricFrame(
        metrics=metrics, y_true=Y, y_pred=p, sensitive_features=BY, group_labels=labels, **settings
    )


EVERY = pytest.mark.parametrize(
    "way", [{}, {"membership": "public"}, {"neighboring": "add_or_remove_one"}], ids=str
)
FIVE = {"labels": range(5)}
OF_LABELS = {
    "recall": (dp.private_recall_score, sk.recall_score),
    "precision": (dp.private_precision_score, sk.precision_score),
    "f1": (dp.private_f1_score, sk.f1_score),
    "balanced": (dp.private_balanced_accuracy_score, sk.balanced_accuracy_score),
    "mcc": (dp.private_matthews_corrcoef, sk.matthews_corrcoef),
    "accuracy": (dp.private_accuracy_score, sk.accuracy_score),
    "wrong": (dp.private_zero_one_loss, sk.zero_one_loss),
    "micro f1 of five": (
        partial(dp.private_f1_score, average="micro", **FIVE),
        partial(sk.f1_score, average="micro"),
    ),
    "precision of five": (
        partial(dp.private_precision_score, average="macro", **FIVE),
        lambda y, p: sk.precision_score(y, p, average="macro") * 2 / 5,
    ),
}


HAZARD = partial(dp.private_roc_auc_score, mechanism="hazard")
"""An area that is not read from a table of scores."""


@EVERY
def test_the_exact_values_lie_between_the_limits_of_the_noise(way):
    """Hundreds of limits at 99.9999 %: a single miss is an alarm, by chance less than once in 1,000 runs."""
    pairs = list(itertools.combinations(LABELS, 2))
    for seed in range(3):
        metrics = {name: metric for name, (metric, _) in OF_LABELS.items()}
        made = frame(metrics, epsilon=8.0, random_state=SeededEntropy(seed), **way)
        found = made.noise_interval(confidence=0.999999)
        gaps = made.noise_interval(of="difference", confidence=0.999999)
        ratios = made.noise_interval(of="ratio", confidence=0.999999)
        signed = {pair: made.noise_interval(of=pair, confidence=0.999999) for pair in pairs}
        assert found.keys() == gaps.keys() == OF_LABELS.keys()
        for name, (_, twin) in OF_LABELS.items():
            exact = {group: twin(Y[group == BY], PRED[group == BY]) for group in LABELS}
            low, high = min(exact.values()), max(exact.values())
            within = [(found[name][group], exact[group]) for group in LABELS]
            within += [(gaps[name], high - low), (ratios[name], low / high)]
            within += [(signed[a, b][name], exact[a] - exact[b]) for a, b in pairs]
            for interval, value in within:
                assert interval.lower - 1e-12 <= value <= interval.upper + 1e-12
            assert found[name]["a"].upper - found[name]["a"].lower < 0.7
            assert found[name]["a"].estimate == made.by_group["a"][name]
            assert "exact " in found[name]["a"].about


@pytest.mark.parametrize(
    ("metric", "p"),
    [
        (dp.private_recall_score, PRED),
        (dp.private_f1_score, PRED),
        (dp.private_balanced_accuracy_score, PRED),
        (dp.private_brier_score_loss, PROBA),
        (HAZARD, PROBA),
        (partial(dp.private_mae, bounds=(0, 1)), PROBA),
    ],
)
def test_limits_of_a_group_are_those_of_the_metric_alone(metric, p):
    """With public membership the first group is released as its records alone are."""
    made = frame(metric, p, membership="public", overall_share=0, random_state=SeededEntropy(3))
    rows = BY == "a"
    alone = dp.with_result(metric)(Y[rows], p[rows], epsilon=1.0, random_state=SeededEntropy(3))
    assert made.by_group["a"] == alone.value
    assert tuple(made.noise_interval()["a"]) == tuple(alone.noise_interval())
    assert tuple(made.noise_interval(confidence=0.5)["a"]) == tuple(alone.noise_interval(0.5))
    assert made.noise_interval()["a"].note.endswith(alone.noise_interval().note)


SHARE = Confusion(right_or_wrong(), lambda x: float(x.right[0] / x.n) if x.n else 0.0, None, lambda x: x.true)
OF_SHARE = Confusion(
    right_or_wrong(), SHARE.formula, None, SHARE.rests_on, parts_of=lambda x: (x.right, x.false_negatives)
)


@pytest.mark.parametrize("confusion", [SHARE, OF_SHARE], ids=["at corners", "as a ratio"])
def test_the_exact_probability_that_limits_of_noise_miss(confusion):
    """All noise of two groups of two counts each, with the sum 0, up to 12 either way; 1e-4 is left out."""
    counts, rate, sure = np.array([3, 2, 6, 1]), 1.0, 0.8
    exact = {"a": 3 / 5, "b": 6 / 7}

    @cache
    def ends(noise, confidence):
        public = Released([noise.noisy], None, None, Fraction(1), "replace_one")
        return ResultNoise(confusion, (noise,), public).interval("share", confidence)

    class Cached(ResultNoise):
        def interval(self, metric, confidence):
            return ends(self.parts[0], confidence)

    total, missed = 0.0, {"a": 0.0, "b": 0.0, "largest": 0.0, "pair": 0.0, "ratio": 0.0}
    for noise in itertools.product(range(-12, 13), repeat=3):
        drawn = (*noise, -sum(noise))
        weight = math.exp(-rate * sum(map(abs, drawn)))
        if weight < 1e-11:
            continue
        total += weight
        noisy = (counts + drawn).tolist()
        of_groups = CountsNoise(tuple(noisy), ((2, Fraction(rate)),) * 2, True).split(2)
        kept = {g: Cached(confusion, (one,), None) for g, one in zip("ab", of_groups, strict=True)}
        limits = InRecords("share", kept, exact, {"a": 5, "b": 7}, sure)
        found = limits.of_groups() | {
            "largest": limits.of_range("difference", 0.0),
            "ratio": limits.of_range("ratio", 0.0),
            "pair": limits.of_pair(("a", "b"), 0.0),
        }
        gap = exact["b"] - exact["a"]
        truths = exact | {"largest": gap, "pair": -gap, "ratio": exact["a"] / exact["b"]}
        for name, (low, high) in found.items():
            missed[name] += weight * (not low - 1e-12 <= truths[name] <= high + 1e-12)
    for name, miss in missed.items():
        assert miss / total <= 1 - sure, name
    assert missed["a"] / total > 0.01  # and the limits are not trivial


def test_limits_of_gaps_follow_from_those_of_groups_at_parts_of_the_miss():
    made = frame(dp.private_recall_score)

    def limits(miss):
        noise = (one.interval("", 1 - miss) for one in made._entries[""].noise)
        return list(zip(*noise, strict=True))

    low, high = limits(0.1)  # of counts, either limit misses with half of this
    pair = made.noise_interval(of=("a", "c"), confidence=0.8)
    assert tuple(pair) == pytest.approx((low[0] - high[2], high[0] - low[2]))
    least, most = limits(0.1 / 3)
    gap = made.noise_interval(of="difference", confidence=0.8)
    assert tuple(gap) == pytest.approx((max(0, max(least) - min(most)), max(high) - min(low)))
    for metric, p in ((dp.private_brier_score_loss, PROBA), (dp.private_matthews_corrcoef, PRED)):
        made = frame(metric, p)  # and others with all of it
        (low, high), (least, most) = limits(0.05), limits(0.1 / 3)
        gap = made.noise_interval(of="difference", confidence=0.8)
        assert tuple(gap) == pytest.approx((max(0, max(least) - min(most)), max(high) - min(low)))
    of_people = made.population_interval(of="difference", confidence=0.8)  # the last metric is MCC
    each = made.population_interval(confidence=0.95)
    upper = max(one.upper for one in each.values()) - min(one.lower for one in each.values())
    assert of_people.upper == pytest.approx(upper)


def test_limits_at_corners_take_each_count_for_itself():
    """Errors are not moved to a common sum: in truth a label may have all that its limit allows."""
    layout = of_each_label(4, "missed", "wrong")
    recall = Confusion(layout, lambda x: float(x.right[0] / x.true[0]), None, lambda x: x.true)
    noise = CountsNoise((20, *[5] * 3, 10, *[0] * 7), ((4, Fraction(1)), (8, Fraction(1, 2))), False)
    public = Released([noise.noisy], None, None, Fraction(1), "replace_one")
    interval = ResultNoise(recall, (noise,), public).interval("recall", 0.9)
    low, high, _ = noise.limits(0.1)
    assert tuple(interval) == pytest.approx((low[0] / (low[0] + high[4]), high[0] / (high[0] + low[4])))


def test_several_metrics_of_which_some_have_no_limits():
    none = partial(dp.private_precision_score, average="weighted")
    made = frame({"recall": dp.private_recall_score, "weighted": none})
    assert made.noise_interval().keys() == made.noise_interval(of="difference").keys() == {"recall"}
    assert made.noise_interval("recall").keys() == {*LABELS}


def test_groups_that_are_publicly_empty_have_no_limits():
    made = frame(dp.private_recall_score, labels=[*LABELS, "nobody"], membership="public")
    for ask in (made.noise_interval, made.population_interval):
        assert ask().keys() == {*LABELS}
        assert ask(of="difference").upper < 1
        with pytest.raises(ValueError, match="'nobody' has no records"):
            ask(of=("a", "nobody"))
    assert math.isnan(frame(
        dp.private_accuracy_score, labels=[*LABELS, "nobody"], membership="public"
    ).difference("a", "nobody"))  # fmt: skip


def test_a_frame_with_all_that_it_kept_can_be_pickled():
    for metric, p in ((dp.private_recall_score, PRED), (dp.private_roc_auc_score, PROBA)):
        made = frame(metric, p)
        again = pickle.loads(pickle.dumps(made))
        assert again.noise_interval() == made.noise_interval()
        assert dict(again.rests_on) == dict(made.rests_on)


@EVERY
def test_values_rest_on_the_records_that_count_for_them(way):
    metrics = {
        "recall": dp.private_recall_score,
        "precision": dp.private_precision_score,
        "accuracy": dp.private_accuracy_score,
        "macro": partial(dp.private_recall_score, average="macro"),
        "matrix": dp.private_confusion_matrix,
    }
    made = frame(metrics, epsilon=NO_NOISE, **way)
    for group in LABELS:
        y, p = Y[group == BY], PRED[group == BY]
        assert made.rests_on[group] == {
            "recall": y.sum(), "precision": p.sum(), "accuracy": y.size,
            "macro": min(y.sum(), y.size - y.sum()), "matrix": y.size,
        }  # fmt: skip
        interval = made.population_interval("recall")[group]
        assert interval.note.startswith(f"It rests on about {y.sum()} records. It holds")


@EVERY
@pytest.mark.parametrize(
    ("metric", "told"),
    [
        (dp.private_roc_auc_score, True),
        (HAZARD, True),
        (dp.private_brier_score_loss, True),
        (dp.private_log_loss, True),
        (dp.private_average_precision_score, True),
        (partial(dp.private_mae, bounds=(0, 1)), True),
        (partial(dp.private_mae, mechanism=dp.Hazard(resolution=0.1)), False),
    ],
)
def test_losses_by_group_tell_their_numbers_of_records(metric, told, way):
    made = frame(metric, PROBA, epsilon=NO_NOISE, **way)
    told = told or "membership" in way
    sizes = {group: int((group == BY).sum()) for group in LABELS}
    smaller = {group: min(Y[group == BY].sum(), (1 - Y)[group == BY].sum()) for group in LABELS}
    assert made.group_sizes == (sizes if told else None)
    of_classes = (dp.private_roc_auc_score, HAZARD, dp.private_average_precision_score)
    expected = smaller if metric in of_classes else sizes
    assert dict(made.rests_on) == (expected if told else dict.fromkeys(LABELS))


def test_numbers_of_records_of_losses_are_noisy_and_at_least_0():
    drawn = [frame(HAZARD, PROBA, epsilon=0.3, random_state=SeededEntropy(seed)) for seed in range(20)]
    assert len({made.rests_on["b"] for made in drawn}) > 5
    assert min(made.rests_on[group] for made in drawn for group in LABELS) == 0
    assert min(made.group_sizes[group] for made in drawn for group in LABELS) >= 0


def test_sizes_come_from_a_table_if_there_is_one():
    made = frame({"brier": dp.private_brier_score_loss, "recall": dp.private_recall_score})
    assert sum(made.group_sizes.values()) == pytest.approx(N)
    areas = frame({"brier": dp.private_brier_score_loss, "auc": dp.private_roc_auc_score}, PROBA)
    assert sum(areas.group_sizes.values()) == pytest.approx(N)
    made = frame({"brier": dp.private_brier_score_loss, "auc": HAZARD}, PROBA)
    assert made.group_sizes == {group: made.rests_on[group]["brier"] for group in LABELS}


def test_an_area_that_misleads_shows_on_how_little_it_rests():
    """33 ill among 1,000 in a group of a survey: the smaller class is printed beside the area."""
    rng = np.random.default_rng(1)
    y = (np.arange(2000) % 1000 < 33).astype(int)
    score = np.clip(0.3 * y + 0.7 * rng.random(2000), 0, 1)
    made = dp.PrivateMetricFrame(
        metrics=HAZARD, y_true=y, y_pred=score, sensitive_features=np.arange(2000) // 1000,
        group_labels=[0, 1], epsilon=4.0,
    )  # fmt: skip
    assert max(made.rests_on.values()) < 200
    assert "Biased towards 1" in made.note[0]
    assert "rests_on={0: " in repr(made)


def test_the_data_frame_has_all_that_was_released():
    one = frame(dp.private_recall_score)
    table = one.to_frame()
    assert list(table.columns) == ["value", "rests_on", "note", "bias", "group_size"]
    assert list(table.index) == LABELS
    assert table["value"].to_dict() == dict(one.by_group)
    assert table["rests_on"].to_dict() == dict(one.rests_on)
    assert table["group_size"].to_dict() == one.group_sizes
    several = frame({"recall": dp.private_recall_score, "auc": HAZARD}, epsilon=0.1)
    table = several.to_frame()
    assert list(table.columns) == [
        "recall", "recall_rests_on", "recall_note", "recall_bias",
        "auc", "auc_rests_on", "auc_note", "auc_bias", "group_size",
    ]  # fmt: skip
    assert table["auc_note"].str.startswith("Biased").all()
    untold = frame(partial(dp.private_mae, mechanism=dp.Hazard(resolution=0.1)), PROBA).to_frame()
    assert untold["group_size"].isna().all()


def test_the_difference_of_two_groups_has_a_sign():
    made = frame({"recall": dp.private_recall_score, "f1": dp.private_f1_score})
    for name in ("recall", "f1"):
        expected = made.by_group["a"][name] - made.by_group["b"][name]
        assert made.difference("a", "b")[name] == expected == -made.difference("b", "a")[name]
        assert made.difference(a="a", b="a")[name] == 0
    assert made.difference() == made.difference("between_groups") == made.difference(method="between_groups")
    assert made.difference("to_overall") == made.difference(method="to_overall")


def test_a_gap_says_which_gap_would_be_released_if_there_was_none():
    made = frame(dp.private_recall_score, random_state=seeded())
    again = frame(dp.private_recall_score, random_state=seeded())
    gap = made.population_interval(of="difference")
    assert gap == again.population_interval(of="difference")  # simulations have a seed of their own
    gaps = gaps_where_alike(made._entries[""].noise, [0, 1, 2])
    mean, most = gaps.mean(), np.quantile(gaps, 0.95)
    assert gap.note == (
        f"Were all groups alike, a gap of {mean:.2g} would be released on average, and one below {most:.2g} "
        "in 95 of 100 releases."
    )
    assert 0 < mean < most < 1
    assert "Were both groups alike, " in str(made.population_interval(of=("a", "c")))
    assert gaps_where_alike(made._entries[""].noise, [0, 1]).mean() < 0.6 * mean  # c is small
    assert "alike" not in made.noise_interval(of="difference").note
    balanced = frame(dp.private_balanced_accuracy_score).population_interval(of="difference")
    assert "alike is not known" in balanced.note


@pytest.mark.slow
@EVERY
@pytest.mark.parametrize("metric", [dp.private_recall_score, dp.private_zero_one_loss, dp.private_f1_score])
def test_simulated_gaps_have_the_law_of_released_ones(metric, way):
    """Of 300 data sets without a gap; the means are within 15 %, five of their standard errors."""
    rng, released, simulated, below = np.random.default_rng(4), [], [], 0
    for seed in range(300):
        group = rng.choice(3, 1000, p=[0.6, 0.3, 0.1])
        y = (rng.random(1000) < 0.4).astype(int)
        made = dp.PrivateMetricFrame(
            metrics=metric, y_true=y, y_pred=np.where(rng.random(1000) < 0.8, y, 1 - y),
            sensitive_features=group, group_labels=range(3), epsilon=1.0, random_state=SeededEntropy(seed),
            **way,
        )  # fmt: skip
        gaps = gaps_where_alike(made._entries[""].noise, [0, 1, 2])
        released.append(made.difference())
        simulated.append(gaps.mean())
        below += made.difference() <= np.quantile(gaps, 0.95)
    assert np.mean(simulated) == pytest.approx(np.mean(released), rel=0.15)
    assert 264 <= below <= 300  # 285 on average; fewer by chance less than once in 10,000 times


def test_noise_with_the_sum_0_is_simulated_with_all_that_has_it():
    whole = CountsNoise((0,) * 6, ((2, Fraction(1, 2)),) * 3, True)
    parts = whole.split(3)
    assert [one.together for one in parts] == [6, 6, 6]
    assert [one.noisy for one in CountsNoise((1, 2, 3, 4), ((1, 1), (1, 2)) * 2, False).split(2)] == [
        (1, 2),
        (3, 4),
    ]
    with pytest.raises(ValueError, match="sum 0"):
        parts[0].simulated(None, 10)
    drawn = whole.simulated(np.random.default_rng(0), 4000)
    assert (drawn.sum(axis=1) == 0).all()
