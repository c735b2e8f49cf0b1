"""Whatever users can call stays as it is recorded, so that a change of it is seen in review.

``python tests/project/test_public_surface.py --record`` records the surface anew, and prints what changed: do
that only where the change is meant, as ``docs/faq.rst`` says, and name it in the changelog.
"""

import functools
import inspect
import re
import sys
from importlib import import_module
from pathlib import Path

RECORD = Path(__file__).parent / "public_surface.txt"
PUBLIC = {
    **{
        name: import_module(name).__all__
        for name in ("dp_metrics", "dp_metrics.analysis.auditing")
    },
    "dp_metrics.mechanisms": [
        "AboveThreshold", "Adaptive", "Geometric", "Hazard", "InverseSensitivity", "Laplace", "Mechanism",
        "OutputLaw", "PiecewiseLaplace",
    ],
    "dp_metrics.exceptions": [
        "LargeEpsilonWarning", "NoisyReleaseWarning", "SearchInterrupt", "SeededReleaseWarning",
        "StoredReleaseWarning", "TrainingFoldsWarning",
    ],
    # what calls return, where it lives
    "dp_metrics.analysis.planning": ["ReleasePlan"],
    "dp_metrics.inference.comparison": ["Comparison"],
    "dp_metrics.model_selection.best": ["Choice"],
    "dp_metrics.model_selection.scorers": ["PrivateScorer"],
    "dp_metrics.page.page_plan": ["EvaluationPlan"],
    "dp_metrics.release.released": ["Interval"],
    "dp_metrics.release.result": ["Result"],
}  # fmt: skip
"""The names that a user can write, by their modules."""

NO_VALUE = inspect.Parameter.empty


def spelled(annotation):
    """Return an annotation without the names of modules, which differ between versions of Python."""
    text = annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
    return re.sub(r"\b(?:[A-Za-z_]\w*\.)+(?=\w)|~(?=\w)", "", text)


def signature(function):
    """Return names, kinds and defaults of the parameters, and what is returned."""
    found = inspect.signature(function)
    bare = [parameter.replace(annotation=NO_VALUE) for parameter in found.parameters.values()]
    returns = "" if found.return_annotation is NO_VALUE else f" -> {spelled(found.return_annotation)}"
    return f"{inspect.Signature(bare)}{returns}"


def own_attributes(thing):
    """Yield name, attribute and function of each public method and property that this package defines."""
    for name in sorted(dir(thing)):
        found = inspect.getattr_static(thing, name)
        function = next(
            (getattr(found, inner) for inner in ("fget", "func", "__func__") if hasattr(found, inner)), found
        )
        own = inspect.isfunction(function) and function.__module__.startswith("dp_metrics")
        if own and not name.startswith("_"):
            yield name, found, function


def of_class(name, thing):
    """Yield a line for a class, and one for each of its public methods and properties."""
    if issubclass(thing, BaseException):
        yield f"{name} is a {' and '.join(base.__name__ for base in thing.__bases__)}"
        return
    yield name + signature(thing).removesuffix(" -> None")
    for attribute, found, function in own_attributes(thing):
        if isinstance(found, property | functools.cached_property):
            yield f"{name}.{attribute}: {signature(function).rpartition(' -> ')[2]}"
        else:
            kind = type(found).__name__ + " " if isinstance(found, classmethod | staticmethod) else ""
            yield f"{kind}{name}.{attribute}{signature(function)}"


def surface():
    """Return the public surface, one line for each name."""
    lines = []
    for module, names in PUBLIC.items():
        for name in sorted(names):
            thing, full = getattr(import_module(module), name), f"{module}.{name}"
            lines += of_class(full, thing) if isinstance(thing, type) else [full + signature(thing)]
    return lines


def changed(recorded, now):
    """Return a line for each line that is only recorded (-), or only there now (+)."""
    gone = [f"- {line}" for line in recorded if line not in now]
    return gone + [f"+ {line}" for line in now if line not in recorded]


def test_the_public_surface_is_the_recorded_one():
    recorded, now = RECORD.read_text(encoding="utf-8").splitlines(), surface()
    lines = changed(recorded, now)
    assert not lines, "if meant, record it anew, and say so in the changelog:\n" + "\n".join(lines)
    assert recorded == now


def record():
    before = RECORD.read_text(encoding="utf-8").splitlines() if RECORD.exists() else []
    now = surface()
    print(*changed(before, now), sep="\n")
    RECORD.write_text("\n".join(now) + "\n", encoding="utf-8", newline="\n")
    print(f"{len(now)} lines are recorded in {RECORD.name}.")


if __name__ == "__main__":
    if sys.argv[1:] != ["--record"]:
        sys.exit("usage: python tests/project/test_public_surface.py --record")
    record()
