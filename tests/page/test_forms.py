"""The page as HTML, Markdown, JSON and a data frame: the same content, and nothing of it is executed."""

import copy
import itertools
import json
import math
import pickle
import re
import sys
from html import unescape
from importlib.resources import files

import jsonschema
import numpy as np
import pytest
from helpers import loop_over
from pages import page

import dp_metrics as dp
from dp_metrics.page.page import _template

SCHEMA = json.loads(files("dp_metrics.page").joinpath("evaluation.schema.json").read_text(encoding="utf-8"))


KINDS = ["scores", "names", "labels", "targets"]


@pytest.fixture(scope="module", params=KINDS)
def shown(request):
    return page(request.param)


@pytest.fixture(scope="module")
def html(shown):
    return shown.to_html()


def test_a_notebook_shows_the_page_and_without_jinja2_its_repr(monkeypatch):
    found = page("labels", 300)
    assert "dp-page" in found._repr_html_()
    _template.cache_clear()
    monkeypatch.setitem(sys.modules, "jinja2", None)
    assert found._repr_html_() is None


@pytest.mark.gate
def test_json_has_its_schema_and_comes_back(shown, html, tmp_path):
    text = shown.to_json()
    content = json.loads(text)
    jsonschema.validate(content, SCHEMA)
    content["numbers"][0]["records"] = [1, 2, 3]
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(content, SCHEMA)
    again = dp.PrivateEvaluation.from_json(text)
    assert again.to_json() == text
    assert again.to_html() == html
    assert again.to_markdown() == shown.to_markdown()
    for write, name in ((shown.to_markdown, "a.md"), (shown.to_json, "a.json")):
        assert write(tmp_path / name) == (tmp_path / name).read_text(encoding="utf-8")
    assert dp.PrivateEvaluation.from_json(tmp_path / "a.json").to_json() == text


UNITS = {
    "replace_one": "one record of the first is replaced by any other valid record.",
    "replace_one_within_groups": "one record of the first is replaced by any other valid record. The other "
    "record is of the same group: groups and their sizes are public.",
    "add_or_remove_one": "one of them has one record more.",
}


@loop_over(("kind", "split"), [("targets", "absolute error by group"), ("scores", "scores by group")])
def test_the_unit_of_a_deployment_is_that_of_the_page_whatever_is_released_first(kind, split):
    """The loss of each private group is released as if its records came and went; the page promises more."""
    for relation, unit in UNITS.items():
        options = {"membership": "public"} if relation == "replace_one_within_groups" else {}
        neighboring = relation.removesuffix("_within_groups")
        made = page(kind, split={split: 1}, neighboring=neighboring, **options)
        assert made.relation == relation
        (written,) = {json.dumps(one) for one in (made.deployment, json.loads(made.to_json())["deployment"])}
        told = json.loads(written)["privacy_loss"]
        assert told["privacy_unit"] == "record"
        assert told["privacy_unit_details"] == f"Test sets are adjacent if {unit}"
        assert told["privacy_parameters"] == {"epsilon": 2.0}


def test_all_forms_hold_the_same_numbers(shown, html):
    names = [*shown]
    frame, content = shown.frame(), shown.to_dict()
    assert [*frame.index] == names == [row["name"] for row in content["numbers"]]
    for row in content["numbers"]:
        assert row["value"] == shown[row["name"]].value
    markdown, html = unescape(shown.to_markdown()).replace("\\", ""), unescape(html)
    for section in shown.sections:
        assert f"## {section.title}" in markdown
        assert f"<h2>{section.title}</h2>" in html
        rows = itertools.chain.from_iterable(table.rows for table in section.tables)
        for cell in itertools.chain.from_iterable(row[1:] for row in rows):
            text = cell.text.split(" [")[0].split(" (")[0]
            assert text in markdown
            assert text in html


def test_pages_frames_and_released_tables_of_labels_and_scores_have_one_table_of_numbers():
    of_page = page("scores", labels=[0, 1])
    both, whole = of_page.released["labels by group"], of_page.frame()
    by_group = both.frame()
    assert [*whole.columns] == [*by_group.columns, "section", "release", "feature", "shown", "concluded"]
    # on a page limits of largest differences hold all at once
    for table, names in (
        (both.released_labels().frame(), ["accuracy", "recall", "recall of 0", "prevalence"]),
        (by_group, [name for name in by_group.index if " in " in name]),
        (by_group[["metric", "value"]], [name for name in by_group.index if name.endswith("difference")]),
        (of_page.released["scores"].frame(), ["roc auc", "observed over expected"]),
    ):
        rows = (one.loc[names, table.columns].astype(object) for one in (table, whole))
        here, there = (one.where(one.notna(), None).to_dict("index") for one in rows)
        assert here == there


def test_text_of_users_is_text(shown, html):
    assert "<script" not in html + shown.to_markdown()
    assert "&lt;script&gt;" in html
    assert len(html) < 1_000_000
    for outside in ("http://", "https://", 'src="//', "@import", "url("):
        assert outside not in html


def test_words_of_users_are_text_in_every_form():
    names = ["title", "model_name", "data_description", "score_name", "positive_meaning", "person_name"]
    words = {name: f"<script>{name}</script> [a](b) | *c*" for name in names}
    unit = ("<script>one</script>", "<script>*many*</script>")
    worded = page(**words, baseline_name="<script>", unit_name=unit)
    markdown = worded.to_markdown()
    assert "<script" not in worded.to_html() + markdown
    assert not re.search(r"(?<!\\)(\*[a-z]|\[a\])", markdown.replace("**", ""))


def test_a_seeded_page_says_that_it_is_not_private():
    with pytest.warns(dp.exceptions.SeededReleaseWarning):
        seeded = page("targets", random_state=1)
    assert seeded.is_seeded
    assert seeded.deployment is None
    assert seeded.summary[4].startswith("These numbers were drawn from a seed: they are NOT private")
    assert json.loads(seeded.to_json())["promise"] == seeded.summary[4]
    assert seeded.header["Protected"] == "nobody"
    assert seeded.header["Privacy"].startswith("none")
    for text in (seeded.to_html(), seeded.to_markdown()):
        assert "NOT private" in text
        assert not re.search("right at most|protects each|epsilon-differential privacy", text)


def test_pictures_are_those_of_scikit_learn():
    from matplotlib.figure import Figure
    from sklearn.metrics import ConfusionMatrixDisplay, PrecisionRecallDisplay, RocCurveDisplay

    shown = page()
    ax = Figure().subplots()
    assert isinstance(shown.plot("roc", ax=ax), RocCurveDisplay)
    assert ax.lines
    assert isinstance(shown.plot(), ConfusionMatrixDisplay)
    for name in ("precision_recall", "precision recall"):  # as `ReleasedScores.plot` calls it, or in words
        assert isinstance(shown.plot(name, ax=ax), PrecisionRecallDisplay)


def looked_at(page):
    """Return what a page gives in its quick forms; it is seen by all that there is afterwards."""
    if page:
        page.check([f"{name} >= 0.5" for name in [*page][:3]])
    return repr(page), page.to_markdown(), page.to_json(), page.frame().to_csv()


PARTS = {
    "scores": ["labels by group", "scores", "scores by group", "loss", "comparison"],
    "names": ["scores"],
    "labels": ["labels by group"],
    "targets": ["errors", "absolute error by group", "median error", "sides by group"],
}


@pytest.mark.gate
@pytest.mark.filterwarnings("ignore")
@loop_over(("kind", "epsilon"), [("scores", 1e-160), *itertools.product(KINDS, [1e-300, 1e-320])])
def test_a_page_can_be_written_copied_and_looked_at_whatever_it_cost(kind, epsilon):
    """What was paid for is never lost: by the releases together, and by each alone."""
    options = {"epsilon": epsilon, "random_state": 1}
    for split in (dict.fromkeys(PARTS[kind], 1), *({part: 1} for part in PARTS[kind][1:])):
        made = page(kind, 300, **options, split=split)
        found = looked_at(made)
        jsonschema.validate(json.loads(found[2]), SCHEMA)
        assert dp.PrivateEvaluation.from_json(found[2]).to_json() == found[2]
        assert repr(pickle.loads(pickle.dumps(made))) == repr(copy.deepcopy(made)) == found[0]
        for number in made.values():
            same = pickle.loads(pickle.dumps(number))
            assert same == number or (math.isnan(number.value) and repr(same) == repr(number))
    if kind == "scores" and epsilon == 1e-300:
        assert page(kind, 300, **options, split={"scores": 1, "labels by group": 1}).to_html()


def test_a_page_of_the_comparison_alone_has_a_frame_without_rows():
    made = page(split={"comparison": 1})
    assert [*made] == []
    assert [*made.frame().columns] == [*page(split={"loss": 1}).frame().columns]
    assert made.to_html()


@loop_over("kind", ["scores", "labels", "targets"])
def test_nothing_is_told_of_a_group_that_is_publicly_empty(kind):
    """Metrics by group have a number of it, which is none; it widens no difference, and sizes are exact."""
    groups = {"group_labels": ["a", "b", "never"], "membership": "public"}
    made = page(kind, epsilon=20.0, sensitive_features=np.repeat(["a", "b"], [1901, 1099]), **groups)
    of_nobody = [one for one in made.values() if one.group == "never"]
    gaps = [one for one in made.values() if one.name.endswith("difference")]
    assert {one.metric for one in of_nobody} == {one.metric for one in gaps}
    assert all(math.isnan(one.value) and one.note == "This group has no records." for one in of_nobody)
    assert all(one.note is None and one.noise_interval().lower >= 0.0 for one in gaps)
    metric = gaps[0].metric
    assert [*made.check([f"{metric} in each group >= 0.01"])] == [f"{metric} in 'a'", f"{metric} in 'b'"]
    assert made.check([f"{metric} in 'never' >= 0.01"]).answer == "cannot tell"
    assert "| a | 1,901 | " in made.to_markdown()
    assert "| never | 0 | none | " in made.to_markdown()


def test_a_sure_difference_is_one_of_groups_with_records():
    y, sex = np.tile([0, 0, 1, 1], 500), np.repeat(["a", "b"], 1000)
    groups = {"sensitive_features": sex, "group_labels": ["a", "b", "never"], "membership": "public"}
    made = dp.private_evaluate(y, np.where(sex == "a", y, 1 - y), labels=[0, 1], epsilon=20.0, **groups)
    concluded = made.frame().loc["recall difference", "concluded"]
    assert concluded == "A sure difference: lower in 'b'. It does not tell why."
