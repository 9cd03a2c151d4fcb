"""Sweeps drawn along the number line: largest error and share of wrong roundings per binade.

The inputs lie on one line from the most negative to the largest, one step per binade, with the
subnormals in the middle.
"""

from __future__ import annotations

import math

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from refkernels.reporting.figures import drawing
from refkernels.reporting.figures.drawing import Drawn, colour_of, finish
from refkernels.reporting.measure.series import safe_name
from refkernels.reporting.reading import Record
from refkernels.reporting.sweep.rows import SweepRow
from refkernels.reporting.words.numerals import all_digits, lost

_LOGARITHMIC = 8.0  # ulp: larger errors need a logarithmic axis


def draw_sweeps(op: str, dtype: str, sweeps: list[SweepRow], subjects: list[str]) -> Drawn | None:
    """The plot of one function and format; None if nothing was swept."""
    swept = [row for row in sweeps if row.swept]
    if not swept:
        return None
    low, high = _exponents(swept)
    with mpl.rc_context(drawing.STYLE):
        figure = Figure(figsize=(9.6, 5.0), layout="constrained")
        errors, shares = figure.subplots(2, 1)
        lines = {row.subject: _line(row, low) for row in swept}
        largest = [max(size for _, size, _ in line) for line in lines.values() if line]
        for axes, place in ((errors, 1), (shares, 2)):
            for subject, line in lines.items():
                points = [(point[0], point[place]) for point in line]
                _steps(axes, points, subject, subjects.index(subject))
            _number_line(axes, swept, low, high)
        _error_axis(errors, largest)
        drawing.no_digit_line(errors, largest, dtype)
        largest_share = max((share for line in lines.values() for *_, share in line), default=0.0)
        shares.set_ylim(0, next(top for top in (1, 2, 5, 10, 20, 50, 100) if top >= largest_share))
        shares.set_ylabel("not correctly\nrounded, %")
        errors.set_title(f"{op} {dtype}: largest error in ulp, binade by binade")
        pair = len(swept[0].takes) > 1
        shares.set_xlabel(f"{swept[0].takes[0]}, with any other input" if pair else "input")
        _names(figure, errors, swept)
        caption = (
            "Each step is one binade, with all its inputs tried. Above: the largest error in it. "
            "Below: the share of inputs whose answer is not correctly rounded. The dashed line is "
            "0.5 ulp: correct rounding never exceeds it."
        )
        if any(row.search for row in swept):
            caption = (
                "Each step is one binade. Above: the largest error that the search found in it (a "
                "lower bound). Below: the share of the tried inputs whose answer is not correctly "
                "rounded."
            )
        return finish(figure, safe_name(f"sweep-{op}-{dtype}"), f"{op} {dtype}", caption)


def _steps(axes: Axes, points: list[tuple[float, float]], label: str, number: int) -> None:
    """A step one binade wide for each point; binades that were not swept are gaps."""
    x: list[float] = []
    y: list[float] = []
    for place, value in points:
        if x and place - 0.5 > x[-1]:
            x.append(x[-1])
            y.append(math.nan)
        x += [place - 0.5, place + 0.5]
        y += [value, value]
    axes.plot(
        x, y, label=label, linewidth=1.3, alpha=0.9, solid_joinstyle="miter",
        color=colour_of(number), linestyle=("-", ":", "--")[number // len(drawing.SERIES) % 3],
    )  # fmt: skip


def _exponents(swept: list[SweepRow]) -> tuple[int, int]:
    """The least and the largest exponent of all binades; (0, 0) if none has an exponent."""
    exponents = [binade.get("exponent") for row in swept for binade in row.record["binades"]]
    finite = [exponent for exponent in exponents if exponent is not None]
    return min(finite, default=0), max(finite, default=0)


def _place(binade: Record, low: int) -> float:
    """Where a binade lies: 1, 2, ... to the right of zero and to the left of it."""
    return float(binade["sign"] * (binade["exponent"] - low + 1))


def _line(row: SweepRow, low: int) -> list[tuple[float, float, float]]:
    """(place, largest error, per cent not correctly rounded), from left to right."""
    points = [
        (
            _place(binade, low),
            min(float(binade.get("max", math.nan)), all_digits(row.dtype)),
            100.0 * (1.0 - binade.get("correct", 0) / binade["inputs"]),
        )
        for binade in row.record["binades"]
        if binade.get("exponent") is not None
    ]
    return sorted(points)


def _error_axis(axes: Axes, largest: list[float]) -> None:
    top = max([value for value in largest if math.isfinite(value)], default=1.0)
    if top > _LOGARITHMIC:
        drawing.log_axis(axes, "y", [0.1, top], None, most=6)
    else:
        axes.set_ylim(0.0, max(1.0, 1.1 * top))
    axes.axhline(0.5, color=drawing.MUTED, linewidth=0.8, linestyle=(0, (3, 2)), zorder=0)
    axes.set_ylabel("max error, ulp")


def _number_line(axes: Axes, swept: list[SweepRow], low: int, high: int) -> None:
    """Ticks at powers of two, on the sides that were swept."""
    signs = {binade["sign"] for row in swept for binade in row.record["binades"]}
    length = high - low + 1
    steps = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)
    step = next(step for step in steps if length / step <= 6)
    exponents = [exponent for exponent in range(low + 1, high + 1) if exponent % step == 0] or [low]
    places: list[float] = [0.0] if signs == {-1, 1} else []
    labels = ["0"] if places else []
    for sign in sorted(signs):
        for exponent in exponents:
            places.append(sign * (exponent - low + 1.0))
            power = str(exponent).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
            labels.append(f"{'−' if sign < 0 else ''}2{power}")
    axes.set_xticks(places, labels)
    axes.set_xlim(-(length + 1.0) if -1 in signs else 0.0, (length + 1.0) if 1 in signs else 0.0)
    axes.grid(True, axis="y")
    if signs == {-1, 1}:
        axes.axvline(0.0, color=drawing.GRID, linewidth=0.9, zorder=0)


def _names(figure: Figure, axes: Axes, swept: list[SweepRow]) -> None:
    """The subjects with their largest errors, on the right, the worst one on top."""
    drawn = {line.get_label(): line for line in axes.lines}
    rows = sorted(swept, key=lambda row: -(row.ulp.get("max") or 0.0))
    names = []
    for row in rows:
        unit = "" if lost(row.ulp.get("max"), row.dtype) else " ulp"
        name = row.subject if len(row.subject) <= 19 else row.subject[:18] + "…"
        names.append(f"{name}\n{row.largest}{unit}, {row.wrong} wrong")
    figure.legend(
        [drawn[row.subject] for row in rows], names, loc="outside right upper", frameon=False,
        fontsize=8.5, labelspacing=1.0,
    )  # fmt: skip
