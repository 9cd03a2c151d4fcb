"""A logarithmic axis may reach to both ends of float64, and no library warns of that."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from matplotlib.figure import Figure

from refkernels.reporting.figures import drawing


@pytest.mark.parametrize("zero", [None, 1e-310])
@pytest.mark.parametrize("ends", [(1e-300, 1e300), (1.0, 1.7e308), (5e-324, 1e10)])
def test_values_at_the_ends_of_float64_are_drawn_in_silence(
    ends: tuple[float, float], zero: float | None
) -> None:
    figure = Figure(figsize=(4, 3))
    axes = figure.add_subplot()
    axes.plot(ends, ends, "o")  # before the scale is known: matplotlib would scale by itself
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for which in ("x", "y"):
            drawing.log_axis(axes, which, list(ends), zero)
        assert drawing.finish(figure, "name", "title", "caption").svg.startswith("<?xml")
    low, high = axes.get_xlim()
    assert 0.0 < low < high < np.inf
