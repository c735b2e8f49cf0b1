"""The parts that the docstrings of all public metrics share."""

import inspect
import re
from collections.abc import Callable
from typing import Any, TypeVar

__all__ = ["documented"]

Function = TypeVar("Function", bound=Callable[..., Any])

_BLOCKS = {
    "y_true": """
y_true : array-like of shape (n_samples,) or (n_samples, n_outputs)
    True targets, finite.""",
    "y_pred": """
y_pred : array-like of shape (n_samples,) or (n_samples, n_outputs)
    Predictions of a model that was not trained on these records.""",
    "labels_true": """
y_true : array-like of shape (n_samples,)
    True labels, each one of `labels`.""",
    "y_proba": """
y_proba : array-like of shape (n_samples,), (n_samples, 1) or (n_samples, n_classes)
    Probabilities in [0, 1], one column per label in sorted order as `predict_proba` gives them; a single
    column holds the probability of the second label. They are used as they are: rows need not sum to 1,
    and no warning tells whether they do.""",
    "labels": """
labels : array-like of shape (n_classes,) or None, default=None
    The public label set. None: 0 and 1 for one column, 0 .. K-1 for K columns. Never inferred from
    `y_true`.""",
    "class_true": """
y_true : array-like of shape (n_samples,) or (n_samples, n_outputs)
    True labels: whole numbers, strings or anything else that can be compared. With several outputs a
    record is right if all of them are.""",
    "class_pred": """
y_pred : array-like of shape (n_samples,) or (n_samples, n_outputs)
    Labels predicted by a model that was not trained on these records.""",
    "normalize": """
normalize : bool, default=True
    If false, return the sum over the records: the private mean times the public total weight.""",
    "count_mechanism": """
mechanism : str, mechanism object or None, default=None
    None: "geometric", the most accurate one for a result that is as likely near one end of its range as
    near the other, or "hazard" where the number of records is private. Others as for `private_mae`.""",
    "x": """
x : array-like of shape (n_samples,)
    One finite number per record.""",
    "x_bounds": """
bounds : tuple of float or None, default=None
    Public range (lower, upper) of the values, in their units; values are clipped into it. None:
    unbounded. Never read it from the data.""",
    "ddof": """
ddof : float, default=0
    Delta degrees of freedom, as in `numpy.var`: the private population variance times n / (n - ddof).
    Must be below the public n.""",
    "epsilon": """
epsilon : float
    Privacy parameter, > 0: smaller is more private and less accurate.""",
    "bounds": """
bounds : tuple of float or None, default=None
    Public range (lower, upper) of targets and predictions, in their units. Both are clipped into it, so
    with values outside it the answer differs from scikit-learn's. None: unbounded. Never read it from
    the data.""",
    "max_loss": """
max_loss : float or None, default=None
    Public cap of one record's loss, in the units of the loss; larger losses are clipped to it. None:
    unbounded. Never read it from the data.""",
    "sample_weight": """
sample_weight : array-like of shape (n_samples,) or None, default=None
    Public, non-negative weights. They must not be computed from these records: class weights, for
    example, give labels away.""",
    "multioutput": """
multioutput : {"uniform_average", "raw_values"} or array-like of shape (n_outputs,), default="uniform_average"
    How several outputs make one number: their mean, or a mean with these public, non-negative weights.
    "raw_values" returns each of the k outputs at epsilon / k. scikit-learn's "variance_weighted" is
    refused, because those weights are private.""",
    "groups": """
groups : array-like of shape (n_samples,) or None, default=None
    Public label of the person (or other unit) that each record belongs to. The guarantee then covers
    all records of one group together. None: each record is a person of its own.""",
    "neighboring": """
neighboring : {"replace_one", "add_or_remove_one"}, default="replace_one"
    What one person can change: a record's contents, the number of records being public; or whether it
    is there at all. The second costs accuracy, and takes neither weights nor groups.""",
    "mechanism": """
mechanism : str or mechanism object, default="hazard"
    "hazard", "above_threshold", or, for a metric with a public limit ({limit}), "inverse_sensitivity",
    "piecewise_laplace", "laplace" or "geometric"; or an object such as `AboveThreshold.paper()`.""",
    "accountant": """
accountant : PrivacyAccountant or None, default=None
    Budget that pays epsilon for this release, before it is drawn.""",
    "random_state": """
random_state : None, int, RandomState or Generator, default=None
    None draws fresh randomness from the operating system. Anything else makes the release
    reproducible and therefore NOT private.""",
    "raises": """
Raises
------
ValueError, TypeError
    If an input is invalid, as in scikit-learn, or an option is, or if the accountant counts releases under
    another neighbouring relation.
PrivacyBudgetError
    If the accountant has less than epsilon left; nothing is drawn.

Warns
-----
SeededReleaseWarning
    If `random_state` is given.""",
    "guarantee": """
Guarantee: replacing any one record changes the probability of any result by at most a factor
exp(epsilon), given the model, the number of records and the arguments, which are public.""",
    "guarantee_groups": """
Guarantee: replacing any one record, or with `groups` all records of any one group, changes the
probability of any result by at most a factor exp(epsilon), given the model, the number of records and
the arguments, which are public. With neighboring="add_or_remove_one" the same holds when any one record
is added or removed, and the number of records is not public.""",
    "guarantee_no_groups": """
Guarantee: replacing any one record changes the probability of any result by at most a factor
exp(epsilon), given the model, the number of records and the arguments, which are public. With
neighboring="add_or_remove_one" the same holds when any one record is added or removed, and the number of
records is not public.""",
    "paper": """
D. Durfee, "Instance-Specific Asymmetric Sensitivity in Differential Privacy", arXiv:2311.14681,
{section}.""",
}

_PLACE = re.compile(r"^( *)\{(\w+)(?:: ([^}]*))?\}$", re.MULTILINE)


def documented(function: Function) -> Function:
    """Fill the places `{name}` or `{name: detail}`, each on its own line, of a docstring."""

    def block(place: re.Match[str]) -> str:
        indent, name, detail = place.groups()
        lines = re.sub(r"\{\w+\}", lambda _: detail, _BLOCKS[name].strip("\n")).split("\n")
        return "\n".join(indent + line if line else "" for line in lines)

    if function.__doc__ is not None:
        function.__doc__ = _PLACE.sub(block, inspect.cleandoc(function.__doc__))
    return function
