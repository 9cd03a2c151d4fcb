"""Plots of an alignment: the loss curves, and their differences."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure

from refkernels.reporting.figures import drawing
from refkernels.reporting.figures.drawing import Drawn, colour_of, finish
from refkernels.reporting.words.catalogues import Texts

_MOST = 2000  # points of a line


def draw_losses(alignment: Mapping[str, Any], words: Texts) -> Drawn | None:
    """The losses. Below them, for two runs, their differences from the null runs' mean, with the
    band of the null runs; without null runs, the difference of B from A. None if a run has fewer
    than two losses."""
    curves = [
        {int(step): float(loss) for step, loss in losses if isinstance(loss, float)}
        for losses in alignment["losses"]
    ]
    if not curves or min(map(len, curves)) < 2:
        return None
    band = {int(step): (low, mean, high) for step, low, mean, high in alignment["band"]}
    pair = len(curves) == 2
    with mpl.rc_context(drawing.STYLE):
        figure = Figure(figsize=(9.6, 5.4 if pair else 2.9))
        falling = figure.add_axes((0.1, 0.57, 0.86, 0.36) if pair else (0.1, 0.18, 0.86, 0.7))
        for number, (name, curve) in enumerate(zip("AB", curves, strict=False)):
            style = "-" if number == 0 else (0, (4, 2))
            falling.plot(*_points(curve), color=colour_of(number), linewidth=1.4, linestyle=style,
                         label=name)  # fmt: skip
        falling.set_title(words["plot:losses"])
        falling.legend(frameon=False, loc="upper right", ncols=2)
        if pair:
            _differences(figure.add_axes((0.1, 0.1, 0.86, 0.34)), curves, band, words)
        for axes in figure.axes:
            axes.grid(axis="y")
            axes.locator_params(axis="x", integer=True)  # there is no half of a step
        figure.axes[-1].set_xlabel(words["plot:step"])
        caption = words["plot:caption" if pair and band else "plot:caption_alone"]
        return finish(figure, "losses", words["curve"], caption)


def _differences(
    axes: Any, curves: list[dict[int, float]], band: Mapping[int, tuple[float, float, float]],
    words: Texts
) -> None:  # fmt: skip
    if band:
        steps = sorted(band)
        low, high = ([band[step][end] - band[step][1] for step in steps] for end in (0, 2))
        axes.fill_between(steps, low, high, color=drawing.GRID, label=words["plot:band"])
        middle = {step: mean for step, (_, mean, _) in band.items()}
        shown = list(enumerate(curves))
    else:
        middle, shown = curves[0], [(1, curves[1])]
    for number, curve in shown:
        differences = {step: loss - middle[step] for step, loss in curve.items() if step in middle}
        axes.plot(*_points(differences), color=colour_of(number), linewidth=1.2, label="AB"[number])
    axes.set_title(words["plot:apart" if band else "plot:apart_from_a"])
    axes.ticklabel_format(axis="y", style="sci", scilimits=(-2, 2))
    axes.legend(frameon=False, loc="upper left", ncols=3)


def _points(curve: Mapping[int, float]) -> tuple[list[int], list[float]]:
    steps = sorted(step for step, value in curve.items() if math.isfinite(value))
    drawn_steps = steps[:: max(1, math.ceil(len(steps) / _MOST))]
    return drawn_steps, [curve[step] for step in drawn_steps]
