"""The data of the growth plots: one figure per regime and op, one line per subject.

A regime is drawn if exactly one numeric parameter varies in its cases. If several vary, `PLOTS`
names the parameter; it also labels the axis. A new op adds at most one line to it.
"""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass

from refkernels.reporting.measure.scores import largest
from refkernels.reporting.measure.study import Measurement, Study, as_number
from refkernels.reporting.words.numerals import drawn_ulp
from refkernels.reporting.words.vocabulary import rank_of_direction, rank_of_dtype


@dataclass(frozen=True)
class Growth:
    """One regime's x axis: the parameter and its label."""

    regime: str
    parameter: str
    label: str


PLOTS = (
    Growth("k_sweep", "K", "K, number of terms in each sum"),
    Growth("ill_conditioned", "condition", "condition number of the dot product"),
    Growth("mean_over_std", "ratio", "mean / standard deviation of a row"),
    Growth("range", "high", "|x|, upper end of the range"),
    Growth("row_length", "n", "n, number of elements in a row"),
    Growth("spread", "spread", "half the range of the logits"),
    Growth("length", "keys", "number of keys"),
    Growth("logits", "size", "size of queries and keys"),
    Growth("rows", "rows", "number of rows in a loss"),
    Growth("elements", "n", "n, number of elements"),
    Growth("products", "products", "number of products in each sum"),
    Growth("positions", "from", "first position"),
)
FEWEST_POINTS = 3
MOST_PLOTS = 20
MOST_OPS = 2  # of one regime: those whose errors grow most
LEAST_GROWTH = 100.0  # a regime that PLOTS does not name is drawn if errors grow more than this


@dataclass(frozen=True, eq=False)
class SeriesLine:
    """One subject's points: x, max ulp (`drawn_ulp`) and max error / bound, each the largest over
    the cases."""

    subject: str
    x: list[float]
    ulp: list[float | None]
    bound: list[float | None]


@dataclass(frozen=True, eq=False)
class GrowthPlot:
    """One figure: a panel per pass and format, a line per subject."""

    growth: Growth
    op: str
    panels: dict[tuple[str, str, str], list[SeriesLine]]  # by pass, output, format
    cases: int
    left_out: tuple[str, ...]  # formats that are not drawn

    @property
    def name(self) -> str:
        """The file name without its suffix."""
        return safe_name(f"growth-{self.op}-{self.growth.regime}")


def growth_plots(study: Study) -> list[GrowthPlot]:
    """The figures: regimes of `PLOTS` in its order, then others by name; in each the ops whose
    errors grow most, by name."""
    groups: dict[tuple[str, str], list[Measurement]] = defaultdict(list)
    for m in study.measurements:
        groups[m.op, m.regime].append(m)
    by_regime: dict[str, list[tuple[float, GrowthPlot]]] = defaultdict(list)
    for (op, regime), members in groups.items():
        growth = _axis(regime, members)
        if growth is None:
            continue
        drawn = _chosen_formats({m.dtype for m in members})
        panels: dict[tuple[str, str, str], list[SeriesLine]] = {}
        for direction in sorted({m.direction for m in members}, key=rank_of_direction):
            of_pass = [m for m in members if m.direction == direction]
            output = of_pass[0].output  # the op's main output comes first in its records
            for dtype in drawn:
                shown = [m for m in of_pass if m.output == output and m.dtype == dtype]
                lines = _lines(growth.parameter, shown)
                if lines:
                    panels[direction, output, dtype] = lines
        left_out = tuple(sorted({m.dtype for m in members} - set(drawn), key=rank_of_dtype))
        declared, grown = any(growth is plotted for plotted in PLOTS), _grown(panels)
        if panels and (declared or grown > LEAST_GROWTH):
            cases = len({m.case for m in members})
            by_regime[regime].append((grown, GrowthPlot(growth, op, panels, cases, left_out)))
    rank = {growth.regime: number for number, growth in enumerate(PLOTS)}
    chosen: list[GrowthPlot] = []
    for regime in sorted(by_regime, key=lambda growth: (rank.get(growth, len(PLOTS)), growth)):
        grown_most = sorted(by_regime[regime], key=lambda item: (-item[0], item[1].op))[:MOST_OPS]
        chosen += sorted((plot for _, plot in grown_most), key=lambda plot: plot.op)
    return chosen[:MOST_PLOTS]


def _chosen_formats(dtypes: set[str]) -> list[str]:
    """At most two formats: float32 and float64 if they were measured, else the first ones."""
    wide = sorted(dtypes & {"float32", "float64"})
    return wide or sorted(dtypes, key=rank_of_dtype)[:2]


def _grown(panels: dict[tuple[str, str, str], list[SeriesLine]]) -> float:
    """The largest factor between a line's first and last errors: how much a plot would show."""
    factor = 1.0
    for lines in panels.values():
        for line in lines:
            errors = [y for y in line.ulp if y is not None and math.isfinite(y) and y > 0]
            if errors:
                factor = max(factor, errors[0] / errors[-1], errors[-1] / errors[0])
    return factor


def _axis(regime: str, measurements: list[Measurement]) -> Growth | None:
    for growth in PLOTS:
        if growth.regime == regime and any(growth.parameter in m.parameters for m in measurements):
            return growth
    values: dict[str, set[float]] = defaultdict(set)
    for m in measurements:
        for name, value in m.parameters.items():
            number = as_number(value)
            if number is not None and math.isfinite(number):
                values[name].add(number)
    varying = [name for name, distinct in values.items() if len(distinct) > 1]
    if len(varying) != 1 or len(values[varying[0]]) < FEWEST_POINTS:
        return None
    return Growth(regime, varying[0], varying[0])


def _lines(parameter: str, measurements: list[Measurement]) -> list[SeriesLine]:
    points: dict[str, dict[float, list[Measurement]]] = defaultdict(lambda: defaultdict(list))
    for m in measurements:
        x = as_number(m.parameters.get(parameter))
        if x is not None and math.isfinite(x) and x >= 0:
            points[m.subject][x].append(m)
    lines = []
    for subject in sorted(points):
        by_x = points[subject]
        if len(by_x) > 1:
            places = sorted(by_x)
            ulp = [
                largest(drawn_ulp(m.ulp_max, m.dtype) for m in by_x[x_value]) for x_value in places
            ]
            bound = [
                largest(m.number("bound", "max_ratio") for m in by_x[x_value]) for x_value in places
            ]
            lines.append(SeriesLine(subject, places, ulp, bound))
    return lines


def safe_name(text: str) -> str:
    """`text` as a file name: anything but ASCII letters, digits, dashes and underscores is `_`."""
    return "".join(
        character if character.isascii() and (character.isalnum() or character in "-_") else "_"
        for character in text
    )
