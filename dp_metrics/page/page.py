"""The page: what was released of an evaluation, what it says, and the function that makes it."""

from __future__ import annotations

import hashlib
import io
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from functools import cached_property, lru_cache, partial
from html import escape
from pathlib import Path
from typing import Any, Literal, Self, overload

import numpy as np

from dp_metrics._packages import __version__, import_extra
from dp_metrics._random import RandomState, SeededEntropy
from dp_metrics.accounting import PrivacyAccountant
from dp_metrics.fairness.frame import PrivateMetricFrame
from dp_metrics.fairness.frame_query import check_frame
from dp_metrics.fairness.groups import Groups, public_groups
from dp_metrics.inputs import arrays
from dp_metrics.inputs.arrays import Records
from dp_metrics.inputs.options import ByName, Relation, check_flag, did_you_mean, own_error_state
from dp_metrics.metrics.scores.released_scores import ReleasedScores
from dp_metrics.page import page_plan
from dp_metrics.page.contents import Section, Table, concluded, sections_of
from dp_metrics.page.in_short import SEEDED, PageFacts, check_words, in_digits, promise, words_of
from dp_metrics.page.page_numbers import Numbers, is_gap, is_told, numbers_of
from dp_metrics.page.page_plan import EvaluationPlan, PageForm
from dp_metrics.page.requirements import Verdicts, checked, needed_releases, spelled
from dp_metrics.page.setting import LABELS, PROBABILITIES, SCORES, TARGETS, Setting, given, names_of_features
from dp_metrics.release import stored
from dp_metrics.release.query import Source, Terms, Together
from dp_metrics.release.release import Release, prepare_all
from dp_metrics.release.released import CONFIDENCE, Number, finite, table_of
from dp_metrics.release.result import unit_of_persons
from dp_metrics.release.stored import Call, Results


def rendered(page: PrivateEvaluation, *, is_whole: bool = True) -> str:
    """Return the page as a whole file, or to stand in another one."""
    text: str = _template().render(page=page, words=words_of(page), is_whole=is_whole, version=__version__)
    return text


@lru_cache(maxsize=1)
def _template() -> Any:
    jinja2 = import_extra("jinja2", "report")
    loader = jinja2.PackageLoader("dp_metrics.page", "")
    environment = jinja2.Environment(loader=loader, autoescape=True, undefined=jinja2.StrictUndefined,
                                     trim_blocks=True, lstrip_blocks=True)  # fmt: skip
    return environment.get_template("page.html")


_MEANING = re.compile(r"([\\`*_{}\[\]()#+!|~$])")


def markdown(page: PrivateEvaluation) -> str:
    """Return the page as Markdown."""
    words = words_of(page)
    lines = [f"# {_escaped(words.title)}", ""]
    if words.data_description:
        lines += [_escaped(words.data_description), ""]
    lines += [f"- {_escaped(name)}: {_escaped(fact)}" for name, fact in page.header.items()]
    lines.append("")
    for section in page.sections:
        lines += [f"## {section.title}", "", *([section.sentence, ""] if section.sentence else [])]
        for head, line in section.lines:
            lines += [f"**{_escaped(head)}** {_escaped(line)}" if head else _escaped(line), ""]
        for table in section.tables:
            lines += _table(table)
    return "\n".join(lines)


def _table(table: Table) -> Iterator[str]:
    yield from (f"**{_escaped(table.caption)}**", "")
    yield _row(table.columns)
    yield f"|{' --- |' * len(table.columns)}"
    for row in table.rows:
        yield _row([f"{cell.text}: {cell.small}" if cell.small else cell.text for cell in row])
    yield ""
    for at, note in enumerate(table.notes, 1):
        yield from (f"\\[{at}\\] {_escaped(note)}", "")


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(map(_escaped, cells))} |"


def _escaped(text: str) -> str:
    """Return text from users as text: nothing in it is a sign of Markdown or of HTML."""
    return _MEANING.sub(r"\\\1", escape(" ".join(text.split()), quote=False))


_MOST_WITH_BAND = 30_000
_BY_GROUP = {LABELS: ("recall", "precision", "accuracy"), SCORES: ("",), "absolute error": ("",)}
"""The metrics of what is released by group, of which two at most are drawn."""
_ONLY = {SCORES: "roc auc", "absolute error": "mae"}


def pictures_of(page: PageFacts) -> dict[str, Callable[[Any], Any]]:
    """Return what draws each picture of a page on Axes, by its name."""
    pictures: dict[str, Callable[[Any], Any]] = {}
    if (labels := page_plan.matrix_of(page.released)) is not None:
        pictures["confusion matrix"] = labels.plot
    for release, told in page.released.items():
        about, _, by = release.partition(" by ")
        if isinstance(told, PrivateMetricFrame):
            for metric in [name for name in _BY_GROUP.get(about, ()) if name in told._entries][:2]:
                pictures[f"{_ONLY.get(about, metric)} by {by}"] = partial(told.plot, metric or None)
        elif isinstance(told, ReleasedScores):
            # the band of very many records takes long, and is too narrow to be seen; of persons there is none
            has_band = page.most_records == 1 and told.counts.total.sum() <= _MOST_WITH_BAND
            plot = partial(told.plot, confidence=CONFIDENCE if has_band else None)
            for kind in ["roc", "precision_recall", *["calibration"] * (page.public.setting.edges is None)]:
                pictures[kind.replace("_", " ")] = partial(plot, kind)
    return pictures


@own_error_state
class PrivateEvaluation(PageFacts, Mapping[str, Number]):
    """The evaluation of a model with epsilon-differential privacy: a mapping of names to numbers, and a page.

    Made by `private_evaluate`; all of it may be published. In a notebook it shows itself.

    Parameters
    ----------
    public, plan, released, results, released_at
        What was released; see `PageFacts`.

    Attributes
    ----------
    numbers : dict of Number
        By name, such as "recall", "recall of 'spam'", "recall in 'female'" and "recall difference". A number
        has a `value`, a `note` where it is mostly noise, ``noise_interval()`` and ``population_interval()``.
    plan : EvaluationPlan
        How epsilon was divided, and what was left out.
    released : dict
        What was released, by the names of the plan: `ReleasedConfusion`, `ReleasedScores`,
        `PrivateMetricFrame`, `Result` and `Comparison`, with all that these offer for nothing.
    epsilon : float
        What all of it cost.
    budget : dict or None
        What was "spent" and "remaining" of the budget when the page was made or read again.
    released_at : datetime or None
        When it was released, in UTC; None of a page that was stored by an earlier version.
    is_returned : bool
        Whether a budget returned the page, which had been released before.
    header : dict of str
        About what the page is: the model, the decision, the time of the release.
    summary : list of str
        Five sentences: how good, for whom, how sure, which is better, cost and promise.
    verdicts : Verdicts or None
        Whether the requirements that were stated before the spend are met; None where there are none.
    """

    def with_budget(self, accountant: PrivacyAccountant | None) -> Self:
        """Note what the budget has, and return the page."""
        with suppress(OSError, ValueError):  # the file may have gone since: the page is paid for all the same
            if accountant is not None:
                self.budget = {"spent": accountant.spent, "remaining": accountant.remaining}
        return self

    @cached_property
    def _rows(self) -> list[dict[str, Any]]:
        return [
            one.row()
            | {
                "section": one.section,
                "release": one.release,
                "feature": one.feature,
                "shown": is_told(one),
                "concluded": concluded(one, self.numbers) if is_gap(one) else None,
            }
            for one in self.numbers.values()
        ]

    @cached_property
    def sections(self) -> list[Section]:
        """What the page says."""
        return [*sections_of(self)]

    def __getitem__(self, name: str) -> Number:
        """Return a number by its name."""
        if name not in self.numbers:
            raise KeyError(
                f"The page has no number {name!r}; list(page) has all names."
                f"{did_you_mean(name, self.numbers)}"
            )
        return self.numbers[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.numbers)

    def __len__(self) -> int:
        return len(self.numbers)

    def __repr__(self) -> str:
        shown = ", ".join(f"{one.name}={one.value:.4g}" for one in self.numbers.values())
        return f"PrivateEvaluation({shown}, epsilon={self.epsilon:g})"

    def _repr_html_(self) -> str | None:
        """Return the page for notebooks; None without jinja2, an extra: then they show the repr."""
        try:
            return rendered(self, is_whole=False)
        except ImportError:
            return None

    def check(self, requirements: Any = None, *, about: str = "people", confidence: float = 0.95) -> Verdicts:
        """Return whether requirements are met: pass, fail or cannot tell, from limits; it costs nothing.

        Parameters
        ----------
        requirements : str, sequence of str or None, default=None
            Such as ``["recall >= 0.8", "recall in each group >= 0.7", "recall difference <= 0.1"]``; each
            group is each that may have records. None: those that were stated before the spend.
        about : {"people", "records"}, default="people"
            Whether the requirement is about all people like these, or these records.
        confidence : float, default=0.95
            Least probability with which all verdicts but "cannot tell" are right; they share the rest.

        Returns
        -------
        Verdicts
            A mapping of the names to `Verdict`; its `answer` is that of all together.

        Raises
        ------
        ValueError
            If a name or a requirement is not known.
        """
        asked = self.public.setting.requirements if requirements is None else spelled(requirements)
        return checked(self.numbers, asked, about=about, confidence=confidence)

    def frame(self) -> Any:
        """Return the numbers with their limits as a data frame, a row each; this imports pandas.

        Returns
        -------
        pandas.DataFrame
            The columns of ``to_json()``'s numbers, of which "name" is the index. Where "shown" is False the
            page does not show the number: it is too noisy to tell anything. The limits of largest differences
            hold all at once, as on the page.
        """
        return table_of(self._rows, ("section", "release", "feature", "shown", "concluded"))

    def plot(self, name: str | None = None, *, ax: Any = None) -> Any:
        """Draw a picture of the page; this imports matplotlib.

        Parameters
        ----------
        name : str or None, default=None
            One of "confusion_matrix", "roc", "precision_recall", "calibration" and "recall by group" or the
            like, with "_" or spaces; None: the first that the page has.
        ax : matplotlib Axes or None, default=None
            Where to draw; None: a new figure.

        Returns
        -------
        display
            scikit-learn's display of the curve or matrix, or the Axes of bars.

        Raises
        ------
        ValueError
            If the page has no such picture.
        """
        pictures = pictures_of(self)
        asked = next(iter(pictures), "") if name is None else str(name).replace("_", " ")
        if asked not in pictures:
            raise ValueError(f"This page has the pictures {', '.join(map(repr, pictures)) or 'none'}.")
        return pictures[asked](ax)

    def to_html(self, path: str | Path | None = None) -> str:
        """Return the page as one HTML file without network and scripts, and write it if there is a path.

        Parameters
        ----------
        path : str, Path or None, default=None
            Where to write the file.

        Returns
        -------
        str
            The file.
        """
        return _written(rendered(self), path)

    def to_markdown(self, path: str | Path | None = None) -> str:
        """Return the page as Markdown, without pictures, and write it if there is a path."""
        return _written(markdown(self), path)

    def to_dict(self) -> dict[str, Any]:
        """Return all that the page says as lists, mappings, numbers and text; NaN and infinity are None."""
        words, compared = words_of(self), self.released.get(page_plan.COMPARISON)
        return {
            "schema": "dp_metrics.evaluation",
            "version": 2,
            "title": words.title,
            "description": words.data_description,
            "header": self.header,
            "summary": self.summary,
            "made_by": f"dp_metrics {__version__}",
            "epsilon": self.epsilon,
            "neighboring": self.relation,
            "n": self.n,
            "is_seeded": self.is_seeded,
            "is_returned": self.is_returned,
            "promise": promise(self),
            "most_records": self.most_records,
            "confidence": CONFIDENCE,
            "tolerance": self.public.setting.tolerance,
            "numbers": [dict(row) for row in self._rows],
            "requirements": None if self.verdicts is None else self.verdicts.to_dict(),
            "comparison": None if compared is None else compared.to_dict(),
            "plan": [
                {"name": one.name, "about": one.about, "epsilon": float(one.epsilon),
                 "expected_error": finite(one.expected_error),
                 "expected_range": one.expected_range and [finite(end) for end in one.expected_range]}
                for one in self.plan.parts
            ],
            "left_out": [{"about": one.about, "why": one.why} for one in self.plan.left_out],
            "budget": self.budget,
            "deployment": self.deployment,
        }  # fmt: skip

    def to_json(self, path: str | Path | None = None) -> str:
        """Return all that the page says as JSON, and write it if there is a path.

        `from_json` makes the page of it again. The form is that of ``evaluation.schema.json`` in the package.
        """
        public = self.public
        question = stored.question_json(
            Call("page", {"page": public.setting.asked()}), metric=page_plan.PAGE, epsilon=public.epsilon,
            neighboring=public.shape.relation.value, mechanism=None,
        )  # fmt: skip
        answer = stored.answer_json("page", _stored_form(public, self.plan, self.released_at), self.results)
        release = None if question is None or answer is None else [json.loads(question), json.loads(answer)]
        return _written(json.dumps({**self.to_dict(), "release": release}, allow_nan=False, indent=1), path)

    def to_folder(self, path: str | Path) -> list[Path]:
        """Write the page as a folder of plain files, for whoever checks what leaves a secure environment.

        Parameters
        ----------
        path : str or Path
            The folder: a new one, or an empty one.

        Returns
        -------
        list of Path
            The files: the numbers as CSV, the page as Markdown and as JSON, a PNG of each picture, a text
            that says what they are, and their SHA-256 checksums. They need pandas and matplotlib.

        Raises
        ------
        FileExistsError
            If there is something in the folder.
        """
        folder = Path(path)
        check_folder(folder)
        promise = SEEDED if self.is_seeded else _NOISY.format(in_digits(self.public.epsilon))
        texts = {
            "README.txt": _ABOUT.format(title=words_of(self).title, promise=promise),
            "numbers.csv": self.frame().to_csv(lineterminator="\n"),
            "page.md": self.to_markdown(),
            "page.json": self.to_json(),
        }
        files = {name: text.encode() for name, text in texts.items()}
        files |= {f"{name.replace(' ', '_')}.png": _png(draw) for name, draw in pictures_of(self).items()}
        sums = [f"{hashlib.sha256(content).hexdigest()}  {name}\n" for name, content in files.items()]
        files[_CHECKSUMS] = "".join(sums).encode()
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in files.items():
            (folder / name).write_bytes(content)
        return [folder / name for name in files]

    @classmethod
    def from_json(cls, text: str | Path) -> PrivateEvaluation:
        """Return the page that was written as JSON: its text, or the path of its file.

        Raises
        ------
        ValueError
            If the text is no such page, or was damaged.
        """
        if isinstance(text, Path):
            text = text.read_text(encoding="utf-8")
        try:
            content = json.loads(text)
            question, answer = content["release"]
            budget, is_returned = content["budget"], content.get("is_returned", False)
        except (TypeError, LookupError, ValueError):
            raise ValueError(
                "This is no page that to_json wrote, or not all of it: pass its whole text, or a Path."
            ) from None
        page: PrivateEvaluation = stored.restored(json.dumps(question), json.dumps(answer))
        page.budget, page.is_returned = budget, is_returned
        return page

    @property
    def deployment(self) -> dict[str, Any] | None:
        """What the OpenDP deployment registry asks for; None where nothing can be promised."""
        parts: list[Any] = [result.deployment for result in self.results]
        if None in parts:
            return None
        whole: dict[str, Any] = parts[0]
        by = dict.fromkeys(one["implementation"]["mechanisms"] for one in parts)
        whole["implementation"]["mechanisms"] = " ".join(by)
        loss = whole["privacy_loss"]
        loss["privacy_parameters"] = {"epsilon": self.epsilon}
        if self.most_records > 1:  # of a comparison alone nothing tells that it is one of persons
            loss |= unit_of_persons(self.most_records)
        if self.relation == Relation.WITHIN_GROUPS:
            more = " The other record is of the same group: groups and their sizes are public."
            loss["privacy_unit_details"] += more
        return whole


def _written(text: str, path: str | Path | None) -> str:
    if path is not None:
        Path(path).write_text(text, encoding="utf-8")
    return text


@overload
def private_evaluate(*data: Any, dry_run: Literal[True], **options: Any) -> EvaluationPlan: ...
@overload
def private_evaluate(*data: Any, dry_run: Literal[False] = False, **options: Any) -> PrivateEvaluation: ...
@own_error_state  # type: ignore[misc]
def private_evaluate(  # noqa: PLR0913 - options of a whole page
    *data: Any,
    epsilon: float,
    y_pred: Any = None,
    y_proba: Any = None,
    y_score: Any = None,
    labels: Any = None,
    task: str | None = None,
    pos_label: Any = None,
    threshold: float = 0.5,
    edges: Any = None,
    bounds: tuple[float, float] | None = None,
    sensitive_features: Any = None,
    group_labels: Any = None,
    membership: str = "private",
    crossed: bool = True,
    baseline: Any = None,
    split: Mapping[str, float] | None = None,
    n: int | None = None,
    groups: Any = None,
    max_records: int | None = None,
    equal_groups: bool = False,
    title: str | None = None,
    model_name: str | None = None,
    data_description: str | None = None,
    baseline_name: str | None = None,
    score_name: str | None = None,
    positive_meaning: str | None = None,
    unit_name: str | tuple[str, str] | None = None,
    person_name: str | None = None,
    target_unit: str | None = None,
    tolerance: float | None = None,
    requirements: Any = None,
    dry_run: bool = False,
    neighboring: str = "replace_one",
    accountant: PrivacyAccountant | None = None,
    random_state: RandomState = None,
    spend_name: str | None = None,
) -> PrivateEvaluation | EvaluationPlan:
    """Evaluate a model with epsilon-differential privacy for the test records, on one page.

    How good, for whom, how sure, which is better, and what is left: from as few releases as tell it.

    Parameters
    ----------
    *data : array-like
        ``private_evaluate(y_true, y_pred, ...)``, or ``private_evaluate(model, X_test, y_test, ...)`` of a
        fitted estimator. Probabilities and scores are passed by name. There are labels where `labels`,
        `y_proba`, `y_score`, `task` or a classifier say so, and targets where `task` or a regressor do:
        nothing is concluded from values or types.
    epsilon : float
        Privacy parameter of all of the page, > 0.
    y_pred : array-like of shape (n_samples,), default=None
        Predicted labels or targets; labels also together with one of the next two.
    y_proba : array-like of shape (n_samples, n_classes), default=None
        Probabilities, by name, with a column for each label: those of a data frame in any order, if they are
        named like the labels; else in the order of the sorted labels.
    y_score : array-like of shape (n_samples,), default=None
        Scores of the positive one of two labels, by name.
    labels : array-like or None, default=None
        The public label set, never inferred from `y_true`. None: 0 and 1, or 0 .. K-1 for K columns of
        probabilities; of an estimator its `classes_`.
    task : {"regression", "classification"} or None, default=None
        Whether targets or labels are predicted, where nothing else says so.
    pos_label : label or None, default=None
        The positive one of two labels, to which `y_score` belongs; None: the second in sorted order, where
        `labels` are sorted.
    threshold : float, default=0.5
        A score from here on makes the positive label, where no labels are passed; between the `edges`.
    edges : array-like or None, default=None
        Public edges of bins of scores that are no probabilities; see `private_roc_curve`.
    bounds : tuple of float or None, default=None
        Public range of targets, to which these and predictions are clipped; None: unbounded.
    sensitive_features : array-like or data frame, default=None
        The group of each record, such as sex, by which the page compares; several columns make a group of
        each combination, and are called by their names if they have any. (`groups` are persons.)
    group_labels : array-like, or list of array-like, default=None
        The public labels of the groups.
    membership : {"private", "public"}, default="private"
        Whether the group of each record is private; see `PrivateMetricFrame`.
    crossed : bool, default=True
        Whether several features make a group of each combination, of which the page tells each feature alone
        too. False: of each feature alone there is a table of its own, with a part of epsilon, and nothing is
        told of combinations: better where there are many.
    baseline : array-like or estimator, default=None
        Predictions of another model, with which this one is compared, as `y_pred` if there is one, else as
        `y_proba` or `y_score`; or that model. With `groups` persons are compared, each by his or her mean
        loss.
    split : mapping of str to float or None, default=None
        Relative parts of epsilon by the names of the releases, as in ``page.plan``: these and no others.
        None: measured parts; what would be mostly noise is left out, and said.
    n : int or None, default=None
        A public guess of the number of records, where it is private: with it the plan leaves out what would
        be mostly noise.
    groups : array-like of shape (n_samples,) or None, default=None
        Public ids of the persons whose records they are: each is protected with all of her or his records. A
        record then has the epsilon of the person / the most records of one. None: each record is a person.
    max_records : int or None, default=None
        Of each person the first so many records are kept; None: all.
    equal_groups : bool, default=False
        Whether there are metrics of labels too in which each person counts once, however many records there
        are: of all people, and by group, by a release of their own, with the noise of one record a person.
        Needs `groups`.
    title : str or None, default=None
        The heading of the page; None: "Private evaluation". Like all words below it must not follow from the
        records, and is shown as it is.
    model_name : str or None, default=None
        What the page calls the model; None: "the model".
    data_description : str or None, default=None
        One line about the test records: whose they are, from where and when.
    baseline_name : str or None, default=None
        What the page calls the baseline; None: "the other model".
    score_name : str or None, default=None
        What the scores are, such as "risk"; None: "score".
    positive_meaning : str or None, default=None
        What records with the positive label do, such as "come back within 30 days".
    unit_name : str, tuple of str or None, default=None
        What a record is, such as "patient", or ("stay", "stays"); None: "record".
    person_name : str or None, default=None
        Who is promised privacy, such as "patient"; None: "person".
    target_unit : str or None, default=None
        The unit of targets, such as "days".
    tolerance : float or None, default=None
        How far a prediction may be off, > 0, in the unit of the targets: the page tells the share of records
        that it is within. None: it does not. It must not follow from the records.
    requirements : str, sequence of str or None, default=None
        What numbers of the page have to be, such as ``["recall >= 0.8", "recall in each group >= 0.7"]``;
        see `PrivateEvaluation.check`. The page has a verdict of each, right all at once with 95 %, and the
        releases that they need have a larger part of epsilon. They must not follow from the records.
    dry_run : bool, default=False
        Return the plan, and spend nothing.
    neighboring : {"replace_one", "add_or_remove_one"}, default="replace_one"
        What one person can change: a record's contents, the number of records being public; or whether it is
        there at all.
    accountant : PrivacyAccountant or None, default=None
        Budget that pays epsilon, before anything is drawn.
    random_state : None, int, RandomState or Generator, default=None
        None draws fresh randomness from the operating system. Anything else makes the release reproducible
        and therefore NOT private.
    spend_name : str or None, default=None
        The name in the accountant's history; None: "private_evaluate". A name of an earlier session returns
        the page of then, at no cost.

    Returns
    -------
    PrivateEvaluation or EvaluationPlan
        The page, which shows itself in notebooks; with `dry_run` how epsilon would be divided.

    Raises
    ------
    ValueError, TypeError
        If an argument or a record is invalid, `groups` come with a private number of records, or nothing
        would be more than noise; nothing is spent.
    PrivacyBudgetError
        If the accountant has less than epsilon left; nothing is drawn.

    Warns
    -----
    SeededReleaseWarning
        If `random_state` is given.
    LargeEpsilonWarning
        If epsilon is above 10.

    Notes
    -----
    Guarantee: replacing any one record, its group included, changes the probability of any page by at most a
    factor exp(epsilon), given the models, the number of records and the arguments, which are public. With
    neighboring="add_or_remove_one" the same holds when any one record is added or removed, and with
    membership="public" when a record is replaced by one of the same group. An estimator must respond to each
    record by that record alone, and remember none.

    With `groups` it holds when all records of one person are replaced.

    Proof: the parts of epsilon add up to it, each release has the guarantee with its part (sequential
    composition), and which releases there are follows from public numbers. Of a person with up to k records
    each release is private with its part / k for one of them, and these are replaced one by one (group
    privacy); where each person counts once the release is private for all records of one as it is, see
    `private_recall_score`. Everything else is made of what was released.

    References
    ----------
    C. Dwork and A. Roth, "The Algorithmic Foundations of Differential Privacy", 2014, Theorem 3.16
    (composition), doi:10.1561/0400000042.

    Examples
    --------
    >>> import numpy as np
    >>> from dp_metrics import private_evaluate
    >>> y_true, y_score = np.array([0, 0, 1, 1] * 500), np.array([0.1, 0.6, 0.4, 0.9] * 500)
    >>> page = private_evaluate(y_true, y_score=y_score, epsilon=2.0)
    >>> 0.4 < page["accuracy"].value < 0.6  # exactly 0.5
    True
    >>> private_evaluate(y_true, y_score=y_score, epsilon=2.0, dry_run=True).parts[0].name
    'labels'
    """
    features = () if sensitive_features is None else tuple(arrays.columns_of(sensitive_features))
    named = {"y_pred": y_pred, "y_proba": y_proba, "y_score": y_score}
    predicted, held, passed = given(
        data, named, labels=labels, pos_label=pos_label, task=task, features=features, baseline=baseline
    )
    words = {
        "title": title, "model_name": model_name, "data_description": data_description,
        "baseline_name": baseline_name, "score_name": score_name, "positive_meaning": positive_meaning,
        "unit_name": unit_name, "person_name": person_name, "target_unit": target_unit,
    }  # fmt: skip
    setting = Setting(
        **predicted, edges=edges, threshold=threshold, bounds=bounds, group_labels=group_labels,
        membership=membership, split=split, n=n, max_records=max_records, words=check_words(words),
        requirements=spelled(requirements), tolerance=tolerance, equal_groups=equal_groups,
        crossed=check_flag(crossed, "crossed"), feature_names=names_of_features(sensitive_features),
    )  # fmt: skip
    # asked of new pages only: a stored page opens whatever its threshold is
    if edges is not None and not min(edges) < threshold < max(edges):
        raise ValueError(
            f"threshold={float(threshold):g} lies outside of edges: pass the score that makes a label."
        )
    at = datetime.now(UTC).replace(microsecond=0)
    terms = Terms.of(
        epsilon=epsilon, neighboring=neighboring, accountant=accountant, random_state=random_state,
        spend_name=spend_name,
    )  # fmt: skip
    arrays.asked_of_persons({"groups": groups, "max_records": max_records, "equal_groups": equal_groups})
    records = {**passed, "sensitive_features": sensitive_features, "groups": groups}
    is_public = setting.membership == "public"
    # of its data no more than is public
    public = partial(public_groups, sensitive_features, group_labels) if is_public else None
    call = partial(Call, "page", {"page": setting.asked()}, partial(stored.public_records, records, public))
    release = Release(page_plan.PAGE, terms, disclosing=[] if groups is None else ["groups"], call=call)
    check_frame(membership, overall_share=0, relation=terms.relation)

    def query_and_records() -> tuple[Together, Records, dict[str, Any]]:
        columns = held(relation=terms.relation)
        shape, records, persons = arrays.first_records(
            columns, names=setting.names, relation=terms.relation, groups=groups, max_records=max_records
        )
        several = None
        if shape.n == 0 and groups is not None:  # refused below: until then as if persons had several
            shape = replace(shape, most_records=max_records or 2)
        if persons is not None and shape.most_records > 1:
            records, several = replace(records, groups=persons), arrays.number_of_persons(persons)
            if equal_groups:
                shape, records = arrays.with_units(shape, records, persons, max_records)
        sizes, places = None, setting.places("feature")
        if is_public:
            by = Groups.of(group_labels, len(places))
            sizes = by.with_sizes(records.of_arguments(0, 0, *places)).sizes
        form = PageForm(setting, shape, sizes, terms.epsilon, several)
        division = page_plan.planned(form)
        if setting.requirements:  # they have more of epsilon
            numbers = rehearsed(form, division)
            division = page_plan.planned(form, needed_releases(numbers, setting.requirements, division))
        query = page_plan.query_of_page(form, division)
        if shape.n == 0:  # once the options are known to be right
            raise ValueError("Found array with 0 sample(s) while a minimum of 1 is required.")
        return query, records, _stored_form(form, division, at)

    def read() -> tuple[Together, tuple[Source, ...], dict[str, Any]]:
        query, records, form = query_and_records()
        return query, query.read(records), form

    if dry_run:
        # what could not be released is refused here too
        division: EvaluationPlan = query_and_records()[-1]["plan"]
        return division
    page = release.answer(read, lambda told: PrivateEvaluation(**told, released_at=at))
    return page.with_budget(accountant)


def rehearsed(public: PageForm, plan: EvaluationPlan) -> Numbers:
    """Return the numbers of a page of this plan about one made-up record of the first group.

    They tell which there are, as all groups are named. No record is read for it, and what is drawn is thrown
    away: names must be known before the spend.
    """
    setting, labels = public.setting, public.labels
    values: dict[str | None, Any] = {
        **dict.fromkeys((TARGETS, SCORES), np.zeros(1)),  # beyond bounds or edges is no error
        PROBABILITIES: np.full((1, labels.size), 1 / labels.size),
        LABELS: labels.in_order[:1],
    }
    values["y_true"] = values[TARGETS if setting.is_regression else LABELS]
    values["baseline"] = values.get(setting.baseline)
    columns = [values[kind] for kind in setting.columns if kind != "feature"]
    columns += [known.in_order[:1] for groups in public.by.values() for known in groups.sets]
    _, records = Records.of(columns, relation=public.shape.relation)
    n = None if public.shape.n is None else 1
    sizes = None if public.sizes is None else (1, *[0] * (len(public.sizes) - 1))
    # one record has no limits of a median, which are no number of their own
    plan = replace(plan, parts=tuple(part for part in plan.parts if part.name != page_plan.MEDIAN_LIMITS))
    together = page_plan.query_of_page(replace(public, shape=replace(public.shape, n=n), sizes=sizes), plan)
    terms = Terms(public.epsilon, public.shape.relation, entropy=SeededEntropy(0))
    prepared = prepare_all(page_plan.PAGE, terms, together, together.read(records))
    return numbers_of(setting, together.combine([one.draw() for one in prepared])["released"])


def _stored_form(public: PageForm, plan: EvaluationPlan, released_at: datetime | None) -> dict[str, Any]:
    """Return what is stored of a page besides its question and what was drawn: `restored_page` reads it."""
    return {
        "shape": public.shape, "sizes": public.sizes, "persons": public.persons, "plan": plan,
        "released": released_at,
    }  # fmt: skip


def restored_page(asked: ByName, form: ByName, results: Results) -> PrivateEvaluation:
    """Return a stored release again."""
    setting, shape = Setting.of(asked["page"]), stored.read_shape(form["shape"])
    page = PageForm(setting, shape, form["sizes"], asked["epsilon"], form.get("persons"))
    if not isinstance(form["plan"], EvaluationPlan):
        raise ValueError(stored.DAMAGED)
    query = page_plan.query_of_page(page, form["plan"])
    found = PrivateEvaluation(**query.combine(results(query)), released_at=form.get("released"))
    found.is_returned = True
    return found


# ---- as a folder of plain files, for those who decide what may leave a secure environment ----

_CHECKSUMS = "SHA256SUMS"
_ABOUT = f"""\
{{title}}

{{promise}}

numbers.csv  all numbers with their limits and notes, a row each; where "shown" is False the number is too
             noisy to tell anything
page.md      the page as text
page.json    the page with all that was released, as `PrivateEvaluation.from_json` reads it
*.png        the pictures
{_CHECKSUMS}   SHA-256 of each of these files; `sha256sum --check {_CHECKSUMS}` compares them
"""


_NOISY = """\
Every number in these files is a noisy one, released with differential privacy at epsilon = {}. Rules for
small counts are made for exact ones: here a small or a negative count tells of a person no more than that
epsilon allows, as any other number does. Nothing was suppressed."""


def check_folder(path: Path) -> None:
    """Raise unless a folder can be made here, or is empty.

    Raises
    ------
    FileExistsError
        If something is there already: no file is written over, and none may be taken for one of the page.
    """
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise FileExistsError(f"{path} is not an empty folder: a page is written to a folder of its own.")


def _png(draw: Callable[[Any], object]) -> bytes:
    figure = import_extra("matplotlib.figure", "report").Figure(layout="constrained")
    draw(figure.subplots())
    with io.BytesIO() as file:
        figure.savefig(file, format="png", dpi=150, metadata={"Software": None})
        return file.getvalue()
