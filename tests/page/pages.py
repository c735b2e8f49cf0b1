"""Pages about made data, and where things stand on a page, for the tests of this folder."""

import numpy as np

import dp_metrics as dp

LABELS = ["<script>alert(1)</script>", "$m$ | `x`"]


def page(kind="scores", size=3000, *, groups=LABELS, **options):
    """Return a page about made data of these groups."""
    generator = np.random.default_rng(0)
    group = np.array(groups)[generator.integers(0, len(groups), size)]
    options = {"epsilon": 2.0, "sensitive_features": group, "group_labels": groups, **options}
    if kind == "targets":
        y_true = generator.normal(size=size)
        return dp.private_evaluate(y_true, y_true + generator.normal(size=size), task="regression", **options)
    if kind == "labels":
        y_true = generator.integers(0, 5, size)
        y_pred = np.where(generator.random(size) < 0.7, y_true, generator.integers(0, 5, size))
        return dp.private_evaluate(y_true, y_pred, labels=range(5), **options)
    y_true = generator.random(size) < 0.3
    y_score = 1 / (1 + np.exp(-generator.normal(size=size) - 2 * y_true + 1))
    if kind == "names":  # text of users as labels
        y_true = np.array(LABELS)[y_true.astype(int)]
        return dp.private_evaluate(y_true, y_score=y_score, labels=LABELS, pos_label=LABELS[1], **options)
    options = {"y_score": y_score, "baseline": generator.random(size), **options}
    return dp.private_evaluate(y_true.astype(int), **options)


def sections(page):
    """Return the sections of a page by their titles."""
    return {one.title: one for one in page.sections}


def tables_of(page, title):
    """Return the tables of a section by the first words of their captions."""
    return {table.caption.partition(",")[0]: table for table in sections(page)[title].tables}


def column(table, place):
    """Return the text of a column of a table, by that of the first one."""
    return {row[0].text: row[place].text for row in table.rows}


def values(page):
    """Return the numbers of a page by their names."""
    return {name: one.value for name, one in page.items()}
