"""Plots: which are drawn, their axes and their words."""

from __future__ import annotations

import copy
import warnings
from typing import Any

import numpy as np
import pytest
import synthetic
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Text

from refkernels import registry
from refkernels.reporting.figures import drawing
from refkernels.reporting.figures.drawing import LARGEST, SMALLEST
from refkernels.reporting.measure import plots
from refkernels.reporting.measure.scores import Block, Score, ScoreRow
from refkernels.reporting.measure.series import (
    LABELS,
    MOST_OPS,
    GrowthPlot,
    SeriesLine,
    growth_plots,
)
from refkernels.reporting.measure.study import Study
from refkernels.reporting.words.vocabulary import verdict


@pytest.mark.parametrize("parameter", LABELS)
def test_every_label_is_of_a_parameter_that_some_plot_may_have(parameter: str) -> None:
    cases = [case for op in registry.ops().values() for case in op.cases()]
    assert len({case.parameters[parameter] for case in cases if parameter in case.parameters}) > 2


def test_the_ops_whose_errors_grow_most_in_a_regime_are_drawn() -> None:
    of_sin = [record for record in synthetic.records() if record.get("op") == "sin"]
    measured = [record for record in of_sin if record["kind"] == "measurement"]
    ranges = [record for record in measured if record["case"]["regime"] == "range"]
    names = [f"op{k}" for k in range(MOST_OPS + 2)]
    records = []
    for k, name in enumerate(names):
        for record in copy.deepcopy(ranges):
            record["op"] = name
            high = record["case"]["parameters"]["high"]
            if record.get("ulp"):
                record["ulp"]["max"] = 10.0**k if high > 1.0 else 1.0
            records.append(record)
    drawn = [plot.op for plot in growth_plots(Study.of(records)) if plot.regime == "range"]
    assert drawn == names[-MOST_OPS:]


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


def test_every_subject_of_a_plot_has_a_look_of_its_own() -> None:
    assert len({tuple(drawing.look_of(number).values()) for number in range(64)}) == 64
    names = [f"target {number}" for number in range(20)]
    scores = {name: Score(verdict("rounding"), False, 0, 0, 1.0, 1.0, 0.5) for name in names}
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # of a figure that is too small
        block = Block("op", "forward", [ScoreRow("float32", scores, {})])
        drawn = plots.draw_bounds([block], names)
    assert drawn is not None
    assert all(f">{name}<" in drawn.svg for name in names)


def texts_of(
    monkeypatch: pytest.MonkeyPatch, *question: Any, draw: Any = plots.draw_growth
) -> tuple[list[Any], Any]:
    """The boxes of the texts of a plot, and the box of the figure."""
    monkeypatch.setattr(plots, "finish", lambda figure, *_: figure)
    figure: Any = draw(*question)
    renderer = FigureCanvasAgg(figure).get_renderer()
    figure.draw(renderer)
    shown = [text for text in figure.findobj(Text) if text.get_visible() and text.get_text()]
    return [(text.get_text(), text.get_window_extent(renderer)) for text in shown], figure.bbox


def growth_to(smallest: float, largest: float) -> GrowthPlot:
    """A plot of two subjects whose errors reach these sizes."""
    lines = [
        SeriesLine("torch", [1.0, 10.0, 100.0], [1.0, 2.0, smallest], [0.5, 1e3, largest]),
        SeriesLine("numpy", [1.0, 10.0, 100.0], [1.0, 2.0, 0.0], [0.5, 0.0, smallest]),
    ]
    panels = {("forward", "y", "float32"): lines, ("forward", "y", "float64"): lines}
    return GrowthPlot("op", "range", "high", panels, 3, ())


def test_errors_of_hundreds_of_decades_are_drawn_at_the_edge_with_their_size(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    names = ["numpy", "torch"]
    drawn = plots.draw_growth(growth_to(3e-203, 2e293), names)
    assert drawn is not None
    assert "below 1e−8 or above 1e16 are drawn at the edge" in drawn.caption
    boxes, page = texts_of(monkeypatch, growth_to(3e-203, 2e293), names)
    shown = [text for text, _ in boxes]
    assert [shown.count(text) for text in ("↓ 3e−203", "↑ 2e293")] == [4, 2]
    assert all(page.x0 <= box.x0 and box.x1 <= page.x1 for _, box in boxes)
    for axes in plots.draw_growth(growth_to(3e-203, 2e293), names).axes:  # type: ignore[union-attr]
        assert axes.get_ylim()[0] > SMALLEST / 1e4
        assert axes.get_ylim()[1] < LARGEST * 1e4


def test_errors_inside_the_limits_are_drawn_as_before() -> None:
    drawn = plots.draw_growth(growth_to(1e-7, 1e15), ["numpy", "torch"])
    assert drawn is not None
    assert "edge" not in drawn.caption
    assert not set("↓↑") & set(drawn.svg)


def test_the_ratios_of_a_row_beyond_every_digit_are_written_beside_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sizes = {"numpy": 0.3, "torch": 8e22, "oneflow": 2e26}
    scores = {
        name: Score(verdict("rounding"), False, 0, 0, 1.0, 1.0, size)
        for name, size in sizes.items()
    }
    block = Block("op", "forward", [ScoreRow("float32", scores, {})])
    drawn = plots.draw_bounds([block], list(sizes))
    assert drawn is not None
    assert "Ratios above 1e16 are drawn at the edge" in drawn.caption
    boxes, page = texts_of(monkeypatch, [block], list(sizes), draw=plots.draw_bounds)
    ((_, box),) = [pair for pair in boxes if pair[0] == "→ 8e22…2e26"]
    assert box.x1 <= page.x1
