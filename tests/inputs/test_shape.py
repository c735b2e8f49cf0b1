"""What a container states of the floats it holds, whatever they are held in."""

import numpy as np
import pandas as pd
import pytest

from dp_metrics.inputs.shape import type_of_floats
from dp_metrics.model_selection._responses import read_response

CONTAINERS = {
    "list": ([0.5], np.float64),
    "array": (np.array([0.5], np.float32), np.float32),
    "objects": (np.array([0.5], object), np.float64),
    "integers": (np.array([1]), np.float64),
    "Series of objects": (pd.Series([0.5], dtype=object), np.float64),
    "Series": (pd.Series([0.5], dtype="float32"), np.float32),
    "nullable Series": (pd.Series([0.5, pd.NA], dtype="Float32"), np.float32),
    "nullable DataFrame": (pd.DataFrame({"a": [0.5, pd.NA]}, dtype="Float32"), np.float32),
    "DataFrame of two types": (pd.DataFrame({"a": np.float32([0.5]), "b": [0.5]}), np.float64),
}


@pytest.mark.parametrize("name", CONTAINERS)
def test_the_type_of_floats_is_that_of_the_container(name):
    container, expected = CONTAINERS[name]
    assert type_of_floats(container, np.asarray(container)) == expected


def test_objects_in_a_series_are_read_as_a_response():
    class Model:
        classes_ = np.array([0, 1])

    read = read_response(pd.Series([0.25, "x"], dtype=object), "decision_function", Model(), Model(), [0, 1])
    np.testing.assert_array_equal(read, [0.25, np.nan])
