"""What a page says first: its heading, about what it is, and five sentences."""

import dataclasses
import json
import math
import re
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from cases import PRIVATE_N
from helpers import loop_over
from pages import sections

import dp_metrics as dp
from dp_metrics.page import contents
from dp_metrics.page.in_short import check_words

rng = np.random.default_rng(0)
N = 4000
Y = (rng.random(N) < 0.2).astype(int)
SCORE = 1 / (1 + np.exp(-(rng.normal(size=N) + 2.5 * Y - 2)))
OTHER = np.where(rng.random(N) < 0.3, 1 - SCORE, SCORE)
SEX = np.where(rng.random(N) < 0.5, "f", "m")
SKEWED = np.where(SEX == "f", SCORE, rng.random(N))
TARGET = 50 + 10 * rng.standard_normal(N)
BY_SEX = {"sensitive_features": SEX, "group_labels": ["f", "m"]}
WORDS = {
    "title": "Readmission <within> 30 days", "model_name": "Readmit *2*", "data_description": "Stays of 2025",
    "baseline_name": "LACE", "score_name": "risk", "positive_meaning": "come back within 30 days",
    "unit_name": ("stay", "stays"), "person_name": "patient",
}  # fmt: skip


def page_of(score=SCORE, **options):
    return dp.private_evaluate(Y, y_score=score, **{"epsilon": 3.0, **options})


def test_every_form_of_a_page_has_the_same_heading_and_sentences():
    page = page_of(baseline=OTHER, accountant=dp.PrivacyAccountant(10.0), **WORDS)
    html, text, document = page.to_html(), page.to_markdown(), json.loads(page.to_json())
    assert document["header"] == page.header
    assert document["summary"] == page.summary
    assert (document["title"], document["description"]) == (WORDS["title"], WORDS["data_description"])
    assert "<h1>Readmission &lt;within&gt; 30 days</h1>" in html
    assert text.startswith("# Readmission &lt;within&gt; 30 days\n")
    assert f"{page.released_at:%Y-%m-%d, %H:%M} UTC" in html
    for sentence in page.summary:
        assert sentence.replace("'", "&#39;") in html
        assert re.sub(r"([\\`*_{}\[\]()#+!|~$])", r"\\\1", sentence) in text
    assert page.header["Decision"] == "positive if the risk is 0.5 or more"
    assert page.header["Positive label"] == "1: stays that come back within 30 days"
    how_good, for_whom, how_sure, which, cost = page.summary
    assert re.match(
        r"Of 100 stays that come back within 30 days, Readmit \*2\* flags about \d+ \(\d+ to \d+\);", how_good
    )
    assert for_whom == "No groups of people were given."
    # nobody is told that all ranges hold at once
    said = "about all stays like these, noise and chance included, with 95 % confidence for itself"
    assert how_sure == f"Each range is {said}: of 20 ranges about 1 may be wrong."
    assert which.startswith("Readmit *2* beats LACE: of 100 stays, it does better for about ")
    assert (
        "epsilon 3 (7 of 10 are left), and promises each patient, for one stay, epsilon-differential privacy:"
        in cost
    )


def test_public_numbers_have_all_digits_that_were_given():
    page = page_of(threshold=0.123456789)
    assert page.header["Decision"] == "positive if the score is 0.123456789 or more"
    options = {"task": "regression", "epsilon": 3.0, "tolerance": 1234567.25}
    targets = dp.private_evaluate(1e7 * TARGET, 1e7 * TARGET, **options)
    assert targets.header["Tolerance"] == "1234567.25"
    assert "are within 1234567.25" in targets.summary[0]


def test_a_header_without_words_tells_what_there_is():
    told = ["Decision", "Positive label", "Records", "Protected", "Privacy", "Released"]
    assert [*page_of().header] == told


@loop_over(
    ("unit", "units"),
    [("stay", "stays"), ("diagnosis", "diagnoses"), ("study", "studies"), ("class", "classes"),
     ("box", "boxes"), ("batch", "batches"), ("dish", "dishes"), ("house", "houses")],
)  # fmt: skip
def test_a_unit_has_the_plural_of_its_ending_if_none_was_given(unit, units):
    assert check_words({"unit_name": unit})["unit_name"] == (unit, units)
    assert check_words({"unit_name": (unit, "many")})["unit_name"] == (unit, "many")


LACE = {"baseline": OTHER, "baseline_name": "LACE"}
IN_PAIRS, PUBLIC = {"groups": np.arange(N) // 2}, {**BY_SEX, "membership": "public"}


@loop_over(
    ("epsilon", "options", "whose"),
    [
        *((epsilon, {}, "whether your record or another one was used is") for epsilon in (0.1, 1, 1.5, 3, 9)),
        (1e-9, PRIVATE_N, "whether your record was among the records is"),
        (1.0, PUBLIC, "whether your record or another one of its group was used is"),
        (1.5, {**PUBLIC, **IN_PAIRS}, "whether your records or other ones of their groups were used is"),
        (3.0, IN_PAIRS, "whether your records or other ones were used is"),
    ],
)
def test_the_promise_is_rounded_up_and_about_what_neighbours_are(epsilon, options, whose):
    part = "labels by group" if "membership" in options else "labels"
    page = dp.private_evaluate(Y, y_score=SCORE, epsilon=epsilon, split={part: 1}, **options)
    promised = int(re.search(rf"{whose} right at most (\d+) of 100 times", page.summary[4])[1])
    assert promised / 100 >= 1 / (1 + math.exp(-epsilon)) > (promised - 1) / 100
    assert page.to_dict()["promise"] == page.summary[4]


GOOD, WHOM, SURE, BETTER, _ = range(5)  # the sentences
NOISE = {"epsilon": 0.0015}


@loop_over(
    ("only", "options", "sentence", "said"),
    [
        (None, {}, GOOD, "Of 100 records that have the label 1, the model flags about "),
        ("labels", NOISE, GOOD, r"All is too noisy to tell how good the model is\.$"),
        ("labels", NOISE, SURE, ".*numbers are too noisy to tell"),
        ("scores", {}, GOOD, r"The roc auc is about 0\.\d+ \(0\.\d+ to [01]\.\d+\)\.$"),
        ("loss", {}, GOOD, r"The brier score is about 0\.\d+ \(0\.\d+ to 0\.\d+\)\.$"),
        ("comparison", LACE, GOOD, r"Nothing was released that tells how good the model is\.$"),
        ("loss", BY_SEX, WHOM, r"Groups of people were given, but nothing was released about them\.$"),
        (None, PRIVATE_N, SURE, r".*; but those of the Brier score are about these records only\.$"),
        (None, {}, BETTER, r"No other model was given, so nothing is compared\.$"),
        (None, LACE | PRIVATE_N, BETTER, "LACE was given, but nothing was released that compares the two"),
        ("labels", {"baseline": OTHER}, BETTER, "The other model was given"),
    ],
)
def test_a_sentence_says_what_there_is_and_not_that_what_was_left_out_is_missing(
    only, options, sentence, said
):
    page = page_of(**options, split=None if only is None else {only: 1})
    assert re.match(said, page.summary[sentence])


@pytest.mark.filterwarnings("ignore::dp_metrics.exceptions.SeededReleaseWarning")
def test_groups_differ_surely_or_nothing_is_said_of_them():
    groups = {**BY_SEX, "random_state": 1}
    alike, apart = page_of(**groups).summary[1], page_of(SKEWED, **groups).summary[1]
    assert alike.startswith("No sure difference between groups")
    assert re.match(r"Groups surely differ: the largest gap in .* is about [\d.]+ points of 100 \(", apart)
    both = pd.DataFrame({"sex": SEX, "side": np.where(np.arange(N) % 2, "left", "right")})
    page = page_of(
        SKEWED, sensitive_features=both, group_labels=[["f", "m"], ["left", "right"]], crossed=False
    )
    assert re.match(r"Groups surely differ: the largest gap in [a-z ]+ by sex is about ", page.summary[1])
    # no share: how many are positive over how many are expected
    y, score, sex = (np.tile(one, 5) for one in (Y, np.where(SEX == "f", SCORE, SCORE / 2), SEX))
    options = {**groups, "sensitive_features": sex, "split": {"scores by group": 1}}
    scored = dp.private_evaluate(y, y_score=score, epsilon=3.0, **options).summary[1]
    assert re.match(
        r"Groups surely differ: the largest gap in observed over expected is about \d\.\d+ \(", scored
    )


def test_the_sentence_about_ranges_is_true_of_all_that_are_shown():
    options = {"task": "regression", "epsilon": 3.0, **PRIVATE_N}
    targets = dp.private_evaluate(TARGET, TARGET + rng.standard_normal(N), **options)
    assert "the median error" not in targets.summary[2]  # it is not told
    assert re.search("; 1 of 5 numbers is too noisy to tell", targets.summary[2])
    once = "; those in which each patient counts once are about all like these"
    ways = {"equal_groups": True}, {"baseline": OTHER}, {}
    persons, compared, of_records = (page_of(**IN_PAIRS, person_name="patient", **way) for way in ways)
    assert [once in one.summary[2] for one in (persons, compared, of_records)] == [True, True, False]
    intro = sections(persons)["How good"].sentence
    assert "among all people like these, noise and chance included, unless a note says otherwise." in intro


@pytest.mark.filterwarnings("ignore::dp_metrics.exceptions.SeededReleaseWarning")
def test_other_kinds_of_pages_have_sentences_too():
    labels = rng.integers(0, 5, N)
    many = dp.private_evaluate(labels, labels, labels=range(5), epsilon=1.0, random_state=0)
    assert re.match(
        r"Of 100 records, the model reads about [\d.]+ \([\d.]+ to 100[.0]*\) rightly", many.summary[0]
    )
    guess = TARGET + 3 * rng.standard_normal(N)
    of_targets = {"task": "regression", "epsilon": 2.0, "random_state": 0}
    targets = dp.private_evaluate(TARGET, guess, **of_targets, target_unit="days", tolerance=3)
    off, within, high = targets.summary[0].split("; ")
    assert re.fullmatch(r"Half of the predictions are off by less than about [\d.]+ days \([\d. to]+\)", off)
    assert re.fullmatch(r"of 100 predictions about 6\d \(6\d to 7\d\) are within 3 days", within)
    assert re.fullmatch(r"of 100 predictions about [45]\d \(4\d to 5\d\) are too high.", high)
    assert targets.header["Tolerance"] == "3 days"
    assert targets.to_dict()["tolerance"] == 3
    assert "but those of mean errors are about these records only" in targets.summary[2]
    few = "come out too low if a few records make up much of them"  # as the table says of squared errors
    assert f"; means may have no upper limit, and {few}" in targets.summary[2]
    within = dp.private_evaluate(TARGET, guess, **of_targets, bounds=(0, 100))
    assert f"; means {few}" in within.summary[2]
    # as pages were divided before there were limits of the median
    shares = {"errors": 2, "absolute error": 1, "median error": 1}
    before = dp.private_evaluate(TARGET, guess, **of_targets, split=shares)
    assert re.search(r"off by less than about [\d.]+ \(at least [\d.]+\)\.$", before.summary[0])
    assert "those of the median error and mean errors are about these records only" in before.summary[2]


def test_models_are_called_by_their_names_where_they_are_compared():
    page = page_of(baseline=OTHER, **WORDS)
    (_, first), *_ = sections(page)["Which is better"].lines
    verb = {"A": "beats", "B": "loses to"}[page.released["comparison"].better]
    assert first == page.summary[3]
    assert first.startswith(f"Readmit *2* {verb} LACE: of 100 stays, it does ")
    unsure = "Cannot tell whether Readmit *2* or LACE is better: no difference is sure. "
    said = page_of(baseline=SCORE, **WORDS).summary[3]
    range_ = (
        r"Of 100 stays, Readmit \*2\* does better for about \S+ \(-\S+ to \S+\) more than it does worse for"
    )
    assert re.fullmatch(re.escape(unsure) + range_ + r"\.", said)


def test_a_page_says_so_where_the_range_of_a_comparison_does_not_decide():
    page = page_of(baseline=OTHER, **WORDS)
    found = dataclasses.replace(page.released["comparison"], note="The p-value decides.")
    page.released = {**page.released, "comparison": found}
    (told,) = (one for one in contents.sections_of(page) if one.title == "Which is better")
    assert ("", "The p-value decides.") in told.lines


@loop_over(("epsilon", "said"), [(0.1, "0.1"), (Fraction(1, 3), "0.333334"), (2, "2")])
def test_no_smaller_epsilon_is_promised_than_is_spent(epsilon, said):
    page = dp.private_evaluate(Y, y_score=SCORE, epsilon=epsilon)
    assert page.header["Privacy"] == f"epsilon {said} for this whole page"
    assert page.summary[4].startswith(f"The page cost epsilon {said}, and promises")
    assert json.loads(page.to_json())["promise"] == page.summary[4]


def test_who_counts_persons_is_promised_privacy_for_a_record():
    """The caller calls a record a person, of whom some may have several all the same."""
    page = dp.private_evaluate(Y, y_score=SCORE, unit_name=("person", "people"), epsilon=1.0)
    told = page.summary[4]
    assert "promises each person, for one record, epsilon-differential privacy" in told
    assert "Who has k records among these has k times the epsilon." in told
