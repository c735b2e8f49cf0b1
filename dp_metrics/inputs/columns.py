"""Names of columns: where they contradict the order in which columns are read, nothing is read.

Columns are read by position, as scikit-learn does. The names of a data frame are public, and tell when that
is not what its owner meant. They are never used to put columns into order: the same numbers without names
would then give another result.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["check_columns_of_labels", "check_same_columns"]


def check_columns_of_labels(data: Any, labels: NDArray[Any], name: str, positive: Any = None) -> None:
    """Raise if columns, one for each label, are named like the labels but stand in another order.

    One column is that of one of two labels, and must not be named like the other. That is checked of text
    only: a column named 0 may just as well be the first column of a file.

    Parameters
    ----------
    data : array-like
        What the caller gave; only its names are looked at.
    labels : ndarray of shape (n_classes,)
        The public labels, sorted.
    name : str
        What the argument is called.
    positive : object, default=None
        The label that one column belongs to; None: the second.
    """
    names, in_order = _names(data), labels.tolist()
    if len(names) == 1 and len(in_order) == 2:
        other = in_order[1] if positive == in_order[0] else in_order[0]
        if isinstance(names[0], str) and names[0] == other:
            raise ValueError(
                f"The one column of {name} is named like the negative label. Pass that of the positive "
                "label (the second of the sorted labels, or pos_label), or one column for each label."
            )
        return
    found, wanted = [[_key(one) for one in several] for several in (names, in_order)]
    if found != wanted and sorted(found) == sorted(wanted):
        raise ValueError(
            f"The columns of {name} are named like the labels, but stand in another order than the sorted "
            f"labels, in which they are read: pass {name}[sorted(labels)]."
        )


def check_same_columns(y_true: Any, y_pred: Any) -> None:
    """Raise if the columns of true and of predicted targets have the same names in another order."""
    true, pred = ([_key(one) for one in _names(data)] for data in (y_true, y_pred))
    if true != pred and sorted(true) == sorted(pred):
        raise ValueError(
            "The columns of y_true and y_pred have the same names in another order, but are compared in the "
            "order in which they stand: pass y_pred[list(y_true.columns)]."
        )


def _names(data: Any) -> Sequence[Any]:
    """Return the names of the columns of a data frame, or of one column; none if there are no names."""
    if isinstance(data, np.ndarray | list | tuple):
        return []
    # The type is asked, because an attribute of a pandas object may be one of its columns. In pyarrow, where
    # the columns are the data themselves, the names are column_names; pandas and polars have columns only.
    for attribute in ("column_names", "columns"):
        if hasattr(type(data), attribute):
            return list(getattr(data, attribute))
    name = getattr(data, "name", None) if hasattr(type(data), "name") else None
    return [] if name is None else [name]


def _key(name: Any) -> str:
    """Return what a label and the name of a column have in common: files know names of text only."""
    if isinstance(name, float | np.floating) and name.is_integer():
        return str(int(name))
    return str(name)
