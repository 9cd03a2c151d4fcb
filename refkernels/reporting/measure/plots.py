"""The figures: error / bound, and the growth of the errors."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from refkernels.reporting.figures import drawing
from refkernels.reporting.figures.drawing import Drawn, colour_of, finish, marker_of
from refkernels.reporting.measure.scores import Block, Score, falling
from refkernels.reporting.measure.series import GrowthPlot, SeriesLine
from refkernels.reporting.words.numerals import count, joined
from refkernels.reporting.words.numerals import figure as shown

BOUNDS = "error-over-bound"  # the name of its plot
MOST_ROWS = 60  # of the plot of error / bound; more would not be readable
Numbers = dict[str, int]  # subject -> its number, which gives colour and marker


def draw_bounds(blocks: list[Block], subjects: list[str]) -> Drawn | None:
    """Error / bound of every op, pass and format: one row each, one marker per subject."""
    labelled = [
        (f"{block.title} {row.dtype}", row.scores)
        for block in blocks
        for row in block.rows
        if any(_drawable(score.bound) for score in row.scores.values())
    ]
    if not labelled:
        return None
    rows = _largest_bounds(labelled)
    selection = f" The {len(rows)} largest of {len(labelled)} rows." * (rows != labelled)
    beyond = [_beyond(scores) for _, scores in rows]
    if any(beyond):
        selection += f" Ratios above {drawing.AT_THE_EDGE}"
    numbers = {subject: i for i, subject in enumerate(subjects)}
    with mpl.rc_context(drawing.STYLE):
        height = 1.15 + 0.25 * len(rows)
        figure = Figure(figsize=(9.6, height))
        axes = figure.add_axes(
            (0.235, 0.5 / height, 0.675 if any(beyond) else 0.74, (height - 1.15) / height)
        )
        values = [1.0]
        for place, (_, scores) in enumerate(rows):
            axes.axhline(place, color=drawing.GRID, linewidth=0.7, zorder=0)
            if beyond[place]:
                axes.text(1.01, place, drawing.beyond(beyond[place], "→"), fontsize=7.5,
                          va="center", transform=axes.get_yaxis_transform())  # fmt: skip
            for subject, score in scores.items():
                if score.bound is not None and _drawable(score.bound):
                    values.append(min(score.bound, drawing.LARGEST))
                    # Side by side, so that equal ratios do not hide one another.
                    aside = 0.8 * ((numbers[subject] + 0.5) / len(subjects) - 0.5)
                    _mark(axes, values[-1], place + aside, numbers[subject])
        drawing.log_axis(axes, "x", values, None, most=10)
        _bound_line(axes, "x")
        axes.set_yticks(range(len(rows)), [label for label, _ in rows])
        axes.tick_params(axis="y", length=0, labelcolor=drawing.INK)
        axes.spines["left"].set_visible(False)
        axes.set_ylim(len(rows) - 0.4, -0.6)
        axes.set_xlabel("largest error / bound over all cases")
        _legend(figure, subjects, numbers, height)
        return finish(
            figure,
            BOUNDS,
            "Largest error / bound",
            "Left of 1: rounding, the error is within the bound of the op's named forms in this "
            "precision on the same inputs. Right of 1: beyond rounding. Zeros are not drawn."
            + selection,
        )


def _largest_bounds(
    rows: list[tuple[str, dict[str, Score]]],
) -> list[tuple[str, dict[str, Score]]]:
    """At most MOST_ROWS rows, those with the largest error / bound, in their own order."""
    sizes = [max(falling(score.bound) for score in scores.values()) for _, scores in rows]
    largest = set(sorted(range(len(rows)), key=lambda i: -sizes[i])[:MOST_ROWS])
    return [row for i, row in enumerate(rows) if i in largest]


def draw_growth(plot: GrowthPlot, subjects: list[str]) -> Drawn | None:
    """Max ulp (above) and error / bound (below) against the regime's parameter."""
    numbers = {subject: i for i, subject in enumerate(subjects)}
    all_lines = [line for lines in plot.panels.values() for line in lines]
    tops = [
        ("largest error in ulp", _values(line.ulp for line in all_lines)),
        ("largest error / bound", [*_values(line.bound for line in all_lines), 1.0]),
    ]
    rows = [(label, values) for label, values in tops if any(value > 0 for value in values)]
    xs = _values(line.x for line in all_lines)
    if not rows or not any(x > 0 for x in xs):
        return None
    names = {_short(line.subject) for line in all_lines}
    across = 2.2 + max(0.75, 0.07 * max(map(len, names)))  # a panel and the names on its right
    with mpl.rc_context(drawing.STYLE):
        width, height = 0.75 + across * len(plot.panels), 0.6 + 2.2 * len(rows)
        figure = Figure(figsize=(width, height))
        for column, ((direction, output, dtype), lines) in enumerate(plot.panels.items()):
            for row, (label, values) in enumerate(rows):
                left = (0.75 + across * column) / width
                bottom = (0.5 + 2.2 * (len(rows) - 1 - row)) / height
                axes = figure.add_axes((left, bottom, 2.0 / width, 1.85 / height))
                _growth_panel(axes, lines, numbers, label, values, xs)
                if row == 0:
                    drawing.no_digit_line(axes, (y for line in lines for y in line.ulp), dtype)
                    axes.set_title(f"{direction} {output}, {dtype}")
                if column == 0:
                    axes.set_ylabel(label)
                else:  # all columns share one scale
                    axes.tick_params(labelleft=False)
                if row == len(rows) - 1:
                    axes.set_xlabel(plot.growth.label)
                else:
                    axes.tick_params(labelbottom=False)
        title = f"{plot.op}: error against {plot.growth.label}"
        left_out = f" {joined(list(plot.left_out))}: see the tables." if plot.left_out else ""
        caption = (
            f"{count(plot.cases, 'case')} of the regime {plot.growth.regime}; where several cases "
            f"share an x, the largest error is drawn. Both axes are logarithmic.{left_out}"
        )
        if any(y and y != drawing.capped(y) for _, values in rows for y in values):
            caption += f" Values below {shown(drawing.SMALLEST, 0)} or above {drawing.AT_THE_EDGE}"
        return finish(figure, plot.name, title, caption)


def _growth_panel(
    axes: Axes,
    lines: list[SeriesLine],
    numbers: Numbers,
    label: str,
    values: list[float],
    xs: list[float],
) -> None:
    places = _places(xs)
    positive = [drawing.capped(value) for value in values if value > 0]
    # Below the smallest, so far that the labels of both have room.
    apart = max(8.0, (max(positive) / min(positive)) ** 0.07)
    zero = min(positive) / apart if 0 in values else None
    _x_axis(axes, xs)
    drawing.log_axis(axes, "y", positive, zero, most=6)
    axes.grid(True, axis="y")
    ends: list[tuple[float, float, str]] = []
    is_bound = label.endswith("bound")
    drawn: dict[str, list[tuple[float, float]]] = {}
    beyond: dict[tuple[float, float], list[float]] = defaultdict(list)  # by the place at the edge
    for line in lines:
        points = []
        for x, y in zip(line.x, line.bound if is_bound else line.ulp, strict=True):
            if y is not None and math.isfinite(y):
                place = places[x], drawing.capped(y) if y else zero or y
                points.append(place)
                if y and y != place[1]:
                    beyond[place].append(y)
        if points:
            drawn[line.subject] = points
            ends.append((*points[-1], line.subject))
    for subject, points in drawn.items():
        together = [name for name, other_points in drawn.items() if _coincide(points, other_points)]
        number, turn = numbers[subject], together.index(subject)
        # Lines that coincide alternate their dashes, so that every colour is seen.
        dashes = (5.0 * turn, (5.0, 5.0 * (len(together) - 1))) if len(together) > 1 else "solid"
        axes.plot(
            [x for x, _ in points], [y for _, y in points], color=colour_of(number),
            marker=marker_of(number), markersize=3.6 if turn == 0 else 2.4, linewidth=1.4,
            linestyle=dashes, dash_capstyle="butt", clip_on=False, markeredgewidth=0,
            zorder=2 + 0.1 * turn,
        )  # fmt: skip
    for (x, edge), sizes in beyond.items():
        up = edge == drawing.LARGEST
        axes.annotate(
            drawing.beyond(sizes, "↑" if up else "↓"), (x, edge), (-10, -2 if up else 2),
            textcoords="offset points", ha="right", va="top" if up else "bottom", fontsize=7.5,
        )  # fmt: skip
    if is_bound:
        _bound_line(axes, "y")
    _direct_labels(axes, ends, numbers)


def _far_apart(xs: list[float]) -> bool:
    """Whether a logarithmic axis would crowd its points; if so, they are drawn equally spaced."""
    positive = [x for x in xs if x > 0]
    return math.log10(max(positive)) - math.log10(min(positive)) > 30


def _places(xs: list[float]) -> dict[float, float]:
    """Where each x is drawn."""
    if _far_apart(xs):
        return {x: float(i) for i, x in enumerate(sorted(set(xs)))}
    zero = min(x for x in xs if x > 0) / 20
    return {x: x or zero for x in xs}


def _x_axis(axes: Axes, xs: list[float]) -> None:
    if not _far_apart(xs):
        positive = [x for x in xs if x > 0]
        drawing.log_axis(axes, "x", positive, min(positive) / 20 if 0 in xs else None, most=4)
        return
    values = sorted(set(xs))
    step = 1 if len(values) <= 5 else 2
    ticks = range((len(values) - 1) % step, len(values), step)
    labels = [drawing.power_label(round(math.log10(values[i]))) if values[i] else "0"
              for i in ticks]  # fmt: skip
    axes.set_xticks(list(ticks), labels)
    axes.set_xlim(-0.2, len(values) - 0.8)


def _coincide(points: list[tuple[float, float]], other_points: list[tuple[float, float]]) -> bool:
    """Whether two lines cannot be told apart: within 2 % at every point of both."""
    if [x for x, _ in points] != [x for x, _ in other_points]:
        return False
    pairs = zip(points, other_points, strict=True)
    return all(
        abs(first - second) <= 0.02 * max(abs(first), abs(second))
        for (_, first), (_, second) in pairs
    )


def _direct_labels(axes: Axes, ends: list[tuple[float, float, str]], numbers: Numbers) -> None:
    """Each line's name at its right end, moved apart where they would overlap."""
    low, high = axes.get_xlim()
    even = axes.get_xscale() == "linear"
    places = [
        (
            (x - low) / (high - low) if even else _fraction(x, (low, high)),
            _fraction(y, axes.get_ylim()),
        )
        for x, y, _ in ends
    ]
    heights = drawing.spaced([y for _, y in places], 0.085, 0.03, 0.97)
    for (_, _, subject), (x, y), height in zip(ends, places, heights, strict=True):
        colour = colour_of(numbers[subject])
        axes.text(1.06, height, _short(subject), color=colour, fontsize=8.5, va="center_baseline",
                  transform=axes.transAxes)  # fmt: skip
        axes.plot([x + 0.015, 1.0, 1.05], [y, y, height], color=colour, linewidth=0.6,
                  transform=axes.transAxes, clip_on=False, alpha=0.7,
                  scalex=False, scaley=False)  # fmt: skip


def _fraction(value: float, limits: tuple[float, float]) -> float:
    """Where `value` lies between the limits of a logarithmic axis, from 0 to 1."""
    low, high = (math.log10(limit) for limit in limits)
    return (math.log10(value) - low) / (high - low)


def _bound_line(axes: Axes, which: str) -> None:
    """The bound at 1, and a faint tint beyond it."""
    line, span = (axes.axvline, axes.axvspan) if which == "x" else (axes.axhline, axes.axhspan)
    low, high = axes.get_xlim() if which == "x" else axes.get_ylim()
    if high < 1.5:
        (axes.set_xlim if which == "x" else axes.set_ylim)(low, 3.0)
        high = 3.0
    line(1.0, color=drawing.LIMIT, linewidth=1.1)
    span(1.0, high, color=drawing.LIMIT, alpha=0.06, linewidth=0)
    if which == "x":
        axes.text(1.0, 1.0, " bound", color=drawing.LIMIT, fontsize=8, va="bottom",
                  transform=axes.get_xaxis_transform())  # fmt: skip
    else:
        axes.text(0.01, 1.0, "bound", color=drawing.LIMIT, fontsize=8, va="bottom",
                  transform=axes.get_yaxis_transform())  # fmt: skip


def _mark(axes: Axes, x: float, y: float, number: int) -> None:
    axes.plot(
        [x], [y], color=colour_of(number), marker=marker_of(number), markersize=5.2,
        markeredgecolor=drawing.PAPER, markeredgewidth=0.6, clip_on=False, zorder=3,
    )  # fmt: skip


def _legend(figure: Figure, subjects: list[str], numbers: Numbers, height: float) -> None:
    """Subjects in a row at the top, each with its marker."""
    per_row = 6
    for place, subject in enumerate(subjects[: 2 * per_row]):
        x = 0.03 + 0.16 * (place % per_row)
        y = 1 - (0.2 + 0.2 * (place // per_row)) / height
        figure.text(x + 0.012, y, _short(subject), fontsize=8.5, va="center",
                    color=colour_of(numbers[subject]), fontweight="bold")  # fmt: skip
        axes = figure.add_axes((x - 0.005, y - 0.08 / height, 0.012, 0.16 / height))
        axes.set_axis_off()
        axes.plot([0], [0], color=colour_of(numbers[subject]), marker=marker_of(numbers[subject]),
                  markersize=5.5, markeredgewidth=0)  # fmt: skip


def _short(subject: str) -> str:
    return subject if len(subject) <= 16 else subject[:15] + "…"


def _beyond(scores: dict[str, Score]) -> list[float]:
    """The ratios of a row that are drawn at the edge."""
    return [
        bound
        for bound in _values([[score.bound for score in scores.values()]])
        if bound > drawing.LARGEST
    ]


def _drawable(value: float | None) -> bool:
    return value is not None and math.isfinite(value) and value > 0


def _values(groups: Iterable[Iterable[float | None]]) -> list[float]:
    return [
        value for group in groups for value in group if value is not None and math.isfinite(value)
    ]
