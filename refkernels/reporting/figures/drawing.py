"""The style of plots and their files: one palette, explicit figures, reproducible bytes.

Colours are those of Okabe and Ito (2008), darkened where they would be faint on paper; every
subject also has its own marker. In the HTML page the same SVG takes the page's colours, light or
dark, because each colour below becomes one CSS variable.
"""

from __future__ import annotations

import io
import math
import re
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from refkernels.reporting.words.numerals import all_digits, lost
from refkernels.reporting.words.numerals import figure as shown

INK, MUTED, GRID, PAPER, LIMIT = "#1b1d22", "#5d626c", "#e3e5e9", "#fffffe", "#b3261e"
SERIES = (
    "#0072b2", "#d55e00", "#008a64", "#b4508a", "#8f6f00", "#4b5563", "#6a4fb3", "#7a4a2b",
)  # fmt: skip
_LEAST, _MOST = -307, 308  # the powers of ten that float64 holds as normal numbers
# Errors and ratios are drawn to scale between these. 1e16 roundings leave no digit of a float64.
SMALLEST, LARGEST = 1e-8, 1e16
AT_THE_EDGE = f"{shown(LARGEST, 0)} are drawn at the edge, with an arrow and their size."
_NAMES_IN_ROW = 6
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
VARIABLES = {
    INK: "--ink", MUTED: "--muted", GRID: "--grid", PAPER: "--paper", LIMIT: "--limit",
    **{colour: f"--s{number}" for number, colour in enumerate(SERIES)},
}  # fmt: skip
STYLE: Any = mpl.rc_params_from_file(
    Path(__file__).with_name("plots.mplstyle"), use_default_template=False
)


@dataclass(frozen=True)
class Drawn:
    """A finished plot: its files' bytes, and the same picture for a page."""

    name: str
    title: str
    caption: str
    svg: str
    png: bytes

    @property
    def inline(self) -> str:
        """The SVG for an HTML page: the page's colours and fonts, ids of its own, a label."""
        body = self.svg[self.svg.index("<svg") :]
        for colour, variable in VARIABLES.items():
            body = body.replace(colour, f"var({variable})")
        body = re.sub(r'\bid="', f'id="{self.name}-', body)
        body = body.replace("url(#", f"url(#{self.name}-").replace(
            'href="#', f'href="#{self.name}-'
        )
        body = re.sub(r"'DejaVu Sans'(, sans-serif)?", "var(--plot-font)", body)
        size = re.search(r'<svg[^>]*? width="([\d.]+)pt"', body)
        width = f"{float(size.group(1)) / 72:.2f}" if size else "10"
        head = f'<svg role="img" style="--w:{width}" '
        return re.sub(r'<svg (?=[^>]*>)', head, body, count=1).replace(
            f' width="{size.group(1)}pt"' if size else " ", " ", 1
        )  # fmt: skip


def colour_of(number: int) -> str:
    """The colour of the subject with this number."""
    return SERIES[number % len(SERIES)]


def look_of(number: int) -> dict[str, Any]:
    """Colour and marker of the subject with this number: no two of 64 have both in common."""
    turn = number + number // len(SERIES)
    return {"color": colour_of(number), "marker": MARKERS[turn % len(MARKERS)]}


def legend_height(number: int) -> float:
    """Inches that the names of so many subjects take."""
    return 0.1 + 0.2 * -(-number // _NAMES_IN_ROW)


def legend(figure: Figure, names: Iterable[str], subjects: Sequence[str]) -> None:
    """Some of the subjects' names, above all that is drawn, in their colours."""
    drawn = [name for name in subjects if name in names]
    looks = [Line2D([], [], linestyle="", **look_of(subjects.index(name))) for name in drawn]
    figure.legend(
        looks, [name if len(name) <= 16 else name[:15] + "…" for name in drawn],
        loc="outside upper left", ncols=_NAMES_IN_ROW, columnspacing=1.2, handlelength=1.0,
        frameon=False, labelcolor="linecolor", fontsize=8.5,
    )  # fmt: skip


def finish(figure: Figure, name: str, title: str, caption: str) -> Drawn:
    """Render `figure` once as SVG and once as PNG; equal figures give equal bytes."""
    svg, png = io.StringIO(), io.BytesIO()
    with mpl.rc_context(STYLE), warnings.catch_warnings():
        # The font may lack a name's writing system; in the SVG the name stays text.
        warnings.filterwarnings("ignore", message="Glyph .* missing")
        plain = {"Date": None, "Creator": None, "Format": None, "Type": None}
        dpi = figure.dpi
        FigureCanvasSVG(figure).print_svg(svg, metadata=plain)
        figure.set_dpi(dpi)  # the SVG canvas has changed it
        FigureCanvasAgg(figure).print_png(png, metadata={"Software": None})
    return Drawn(name, title, caption, svg.getvalue(), png.getvalue())


def power_label(exponent: int) -> str:
    """The label of a tick at a power of ten: 0.01, 1, 100, and 10⁵ beyond."""
    if -3 <= exponent <= 3:
        return f"{10.0**exponent:g}"
    return "10" + str(exponent).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))


def tick_label(value: float) -> str:
    """The label of a tick at any number: 0.5, 20, 4,096, 10⁵."""
    if value >= 1e4 and (exponent := math.log10(value)).is_integer():
        return power_label(int(exponent))
    return f"{value:,g}" if 1e-3 <= value < 1e5 else shown(value, 0)


def log_axis(
    axes: Axes, which: str, values: Sequence[float], zero: float | None, most: int = 7
) -> None:
    """A logarithmic axis over `values`, ticks at powers of ten; `zero` is where 0 is drawn.

    All arithmetic is on exponents: a range may reach to both ends of float64.
    """
    axis = axes.xaxis if which == "x" else axes.yaxis
    axes.autoscale(False, axis="x" if which == "x" else "y")  # its margins may overflow
    (axes.set_xscale if which == "x" else axes.set_yscale)("log")
    low = math.floor(math.log10(min(values)) + 1e-9)
    high = math.ceil(math.log10(max(values)) - 1e-9)
    high = max(high, low + 1)
    step = max(1, math.ceil((high - low) / most))
    first = low + (-low) % step  # so that 1 is a tick wherever it is in range
    exponents = [
        exponent for exponent in range(first, high + 1, step) if _LEAST <= exponent <= _MOST
    ]
    labels = [power_label(exponent) for exponent in exponents]
    ticks = [10.0**exponent for exponent in exponents]
    start = float(low)
    if zero is not None:
        keep = [i for i, tick in enumerate(ticks) if tick > 2.5 * zero]
        ticks, labels = [zero, *[ticks[i] for i in keep]], ["0", *[labels[i] for i in keep]]
        start = min(start, math.log10(zero) - 0.2)
    axis.set_ticks(ticks, labels)
    axis.minorticks_off()
    margin = 0.03 * (high - start)
    limits = [
        10.0 ** min(max(exponent, _LEAST), _MOST) for exponent in (start - margin, high + margin)
    ]
    (axes.set_xlim if which == "x" else axes.set_ylim)(*limits)


def capped(value: float) -> float:
    """A positive value, or the limit of what is drawn to scale."""
    return min(max(value, SMALLEST), LARGEST)


def beyond(values: Iterable[float], arrow: str) -> str:
    """The label of values that are drawn at an edge: an arrow and their size, or their range."""
    sizes = dict.fromkeys(shown(value, 0) for value in sorted(values))
    ends = list(sizes)[:: max(1, len(sizes) - 1)]
    return f"{arrow} {'…'.join(ends)}"


def no_digit_line(axes: Axes, values: Iterable[float | None], dtype: str) -> None:
    """Mark the error at which no digit is right, if some value reaches it."""
    if not any(lost(value, dtype) for value in values):
        return
    top = all_digits(dtype)
    axes.axhline(top, color=LIMIT, linewidth=0.8, linestyle=(0, (1, 2)), zorder=0)
    place = axes.get_yaxis_transform()
    text = "no digit is right"
    axes.text(0.01, top, text, color=LIMIT, fontsize=8, va="bottom", transform=place)
