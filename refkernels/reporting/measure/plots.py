"""The figures: error / bound, and the growth of the errors."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from refkernels.reporting.figures import drawing
from refkernels.reporting.figures.drawing import LARGEST, Drawn, finish, legend, look_of
from refkernels.reporting.measure.scores import Block, falling
from refkernels.reporting.measure.series import GrowthPlot, SeriesLine
from refkernels.reporting.words.numerals import count, joined
from refkernels.reporting.words.numerals import figure as shown

BOUNDS = "error-over-bound"  # the name of its plot
MOST_ROWS = 60  # of the plot of error / bound; more would not be readable
Ratios = dict[str, float | None]  # by subject


def draw_bounds(blocks: list[Block], subjects: list[str]) -> Drawn | None:
    """Error / bound of every op, pass and format: one row each, one marker per subject."""
    labelled = [
        (f"{block.title} {row.dtype}", {n: s.bound for n, s in row.scores.items()})
        for block in blocks
        for row in block.rows
        if any(_drawable(score.bound) for score in row.scores.values())
    ]
    if not labelled:
        return None
    rows = _largest_bounds(labelled)
    selection = f" The {len(rows)} largest of {len(labelled)} rows." * (rows != labelled)
    beyond = [[size for size in _values([ratios.values()]) if size > LARGEST] for _, ratios in rows]
    if any(beyond):
        selection += f" Ratios above {drawing.AT_THE_EDGE}"
    with mpl.rc_context(drawing.STYLE):
        height = 0.25 * len(rows) + drawing.legend_height(len(subjects)) + 0.8
        figure = Figure(figsize=(9.6, height), layout="constrained")
        axes = figure.add_subplot()
        for place, sizes in enumerate(beyond):
            if sizes:
                axes.text(1.01, place, drawing.beyond(sizes, "→"), fontsize=7.5, va="center",
                          transform=axes.get_yaxis_transform())  # fmt: skip
        values = [1.0]
        for number, subject in enumerate(subjects):
            # Side by side, so that equal ratios do not hide one another.
            aside = 0.8 * ((number + 0.5) / len(subjects) - 0.5)
            for place, (_, ratios) in enumerate(rows):
                if (size := ratios.get(subject)) and _drawable(size):
                    values.append(min(size, LARGEST))
                    axes.plot(
                        values[-1], place + aside, markersize=5.2, markeredgecolor=drawing.PAPER,
                        markeredgewidth=0.6, clip_on=False, zorder=3, **look_of(number),
                    )  # fmt: skip
        drawing.log_axis(axes, "x", values, None, most=10)
        _bound_line(axes, "x")
        axes.set_yticks(range(len(rows)), [label for label, _ in rows])
        axes.tick_params(axis="y", length=0, labelcolor=drawing.INK)
        axes.grid(True, axis="y")
        axes.spines["left"].set_visible(False)
        axes.set_ylim(len(rows) - 0.4, -0.6)
        axes.set_xlabel("largest error / bound over all cases")
        legend(figure, subjects, subjects)
        return finish(
            figure,
            BOUNDS,
            "Largest error / bound",
            "Left of 1: rounding, the error is within the bound of the op's named forms in this "
            "precision on the same inputs. Right of 1: beyond rounding. Zeros are not drawn."
            + selection,
        )


def _largest_bounds(rows: list[tuple[str, Ratios]]) -> list[tuple[str, Ratios]]:
    """At most MOST_ROWS rows, those with the largest error / bound, in their own order."""
    sizes = [max(map(falling, ratios.values())) for _, ratios in rows]
    largest = set(sorted(range(len(rows)), key=lambda i: -sizes[i])[:MOST_ROWS])
    return [row for i, row in enumerate(rows) if i in largest]


def draw_growth(plot: GrowthPlot, subjects: list[str]) -> Drawn | None:
    """Max ulp (above) and error / bound (below) against the regime's parameter."""
    all_lines = [line for lines in plot.panels.values() for line in lines]
    tops = [
        ("largest error in ulp", _values(line.ulp for line in all_lines)),
        ("largest error / bound", [*_values(line.bound for line in all_lines), 1.0]),
    ]
    rows = [(label, values) for label, values in tops if any(value > 0 for value in values)]
    xs = sorted(set(_values(line.x for line in all_lines)))
    if not rows or not any(x > 0 for x in xs):
        return None
    names = {line.subject for line in all_lines}
    with mpl.rc_context(drawing.STYLE):
        height = 2.2 * len(rows) + drawing.legend_height(len(names)) + 0.5
        figure = Figure(figsize=(0.75 + 2.25 * len(plot.panels), height), layout="constrained")
        grid = figure.subplots(
            len(rows), len(plot.panels), sharex=True, sharey="row", squeeze=False
        )
        for (label, values), in_row in zip(rows, grid, strict=True):
            zero = _y_axis(in_row[0], values)
            in_row[0].set_ylabel(label)
            for axes, ((*_, dtype), lines) in zip(in_row, plot.panels.items(), strict=True):
                axes.grid(True, axis="y")
                is_bound = label.endswith("bound")
                _draw_lines(axes, lines, is_bound, xs, zero, subjects)
                if is_bound:
                    _bound_line(axes, "y")
                else:
                    drawing.no_digit_line(axes, (y for line in lines for y in line.ulp), dtype)
        for axes, (direction, output, dtype) in zip(grid[0], plot.panels, strict=True):
            axes.set_title(f"{direction} {output}, {dtype}")
        step = -(-len(xs) // 5)
        ticks = range((len(xs) - 1) % step, len(xs), step)
        grid[0, 0].set_xticks(ticks, [drawing.tick_label(xs[i]) for i in ticks])
        figure.supxlabel(plot.label, fontsize=9.0)
        legend(figure, names, subjects)
        title = f"{plot.op}: error against {plot.label}"
        left_out = f" {joined(list(plot.left_out))}: see the tables." if plot.left_out else ""
        caption = (
            f"{count(plot.cases, 'case')} of the regime {plot.regime}; where several cases "
            "share an x, the largest error is drawn. Their x are equally far apart; errors have a "
            f"logarithmic axis. The lines differ in width, so that none hides another.{left_out}"
        )
        if any(y and y != drawing.capped(y) for _, values in rows for y in values):
            caption += f" Values below {shown(drawing.SMALLEST, 0)} or above {drawing.AT_THE_EDGE}"
        return finish(figure, plot.name, title, caption)


def _y_axis(axes: Axes, values: list[float]) -> float | None:
    """A logarithmic axis over the values of a row of panels; where 0 is drawn, if it is."""
    positive = [drawing.capped(value) for value in values if value > 0]
    # Below the smallest, so far that the labels of both have room.
    apart = max(8.0, (max(positive) / min(positive)) ** 0.07)
    zero = min(positive) / apart if 0 in values else None
    drawing.log_axis(axes, "y", positive, zero, most=6)
    return zero


def _draw_lines(
    axes: Axes,
    lines: list[SeriesLine],
    is_bound: bool,
    xs: list[float],
    zero: float | None,
    subjects: list[str],
) -> None:
    """One output's lines. The first are the widest, so that none hides another."""
    beyond: dict[tuple[int, float], list[float]] = defaultdict(list)  # by the place at the edge
    for place, line in enumerate(lines):
        points: list[tuple[int, float]] = []
        for x, y in zip(line.x, line.bound if is_bound else line.ulp, strict=True):
            if y is not None and math.isfinite(y):
                point = xs.index(x), drawing.capped(y) if y else zero or y
                points.append(point)
                if y and y != point[1]:
                    beyond[point].append(y)
        width = 1.1 + 0.7 * (len(lines) - 1 - place)
        if points:
            axes.plot(
                *zip(*points, strict=True), linewidth=width, markersize=width + 2.5,
                markeredgewidth=0, clip_on=False, **look_of(subjects.index(line.subject)),
            )  # fmt: skip
    for (x, edge), sizes in beyond.items():
        up = edge == LARGEST
        axes.annotate(
            drawing.beyond(sizes, "↑" if up else "↓"), (x, edge), (-10, -2 if up else 2),
            textcoords="offset points", ha="right", va="top" if up else "bottom", fontsize=7.5,
        )  # fmt: skip


def _bound_line(axes: Axes, which: str) -> None:
    """The bound at 1, and a faint tint beyond it."""
    line, span, limits, set_limits, place = (
        (axes.axvline, axes.axvspan, axes.get_xlim, axes.set_xlim, axes.get_xaxis_transform)
        if which == "x"
        else (axes.axhline, axes.axhspan, axes.get_ylim, axes.set_ylim, axes.get_yaxis_transform)
    )
    low, high = limits()
    set_limits(low, max(high, 3.0))
    line(1.0, color=drawing.LIMIT, linewidth=1.1)
    span(1.0, max(high, 3.0), color=drawing.LIMIT, alpha=0.06, linewidth=0)
    corner = (1.0, 1.0) if which == "x" else (0.01, 1.0)
    axes.text(*corner, " bound", color=drawing.LIMIT, fontsize=8, va="bottom", transform=place())


def _drawable(value: float | None) -> bool:
    return value is not None and math.isfinite(value) and value > 0


def _values(groups: Iterable[Iterable[float | None]]) -> list[float]:
    return [
        value for group in groups for value in group if value is not None and math.isfinite(value)
    ]
