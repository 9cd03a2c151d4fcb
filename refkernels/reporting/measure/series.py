"""The data of the growth plots: one figure per regime and op, one line per subject.

The x axis is the numeric parameter that has the most values in the regime's cases. A regime is
drawn if these are enough, and if an error grows.
"""

from __future__ import annotations

import json
import math
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

from refkernels.reporting.measure.scores import largest
from refkernels.reporting.measure.study import Measurement, Study, as_number
from refkernels.reporting.words.numerals import drawn_ulp
from refkernels.reporting.words.vocabulary import rank_of_direction, rank_of_dtype

LABELS: dict[str, str] = json.loads(Path(__file__).with_name("axes.json").read_text("utf-8"))
"""What a parameter is, by its name; others are shown by their names."""
FEWEST_POINTS = 3
MOST_PLOTS = 20
MOST_OPS = 2  # of one regime: those whose errors grow most
LEAST_GROWTH = 10.0  # of some error, from one end of its line to the other


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

    op: str
    regime: str
    parameter: str
    panels: dict[tuple[str, str, str], list[SeriesLine]]  # by pass, output, format
    cases: int
    left_out: tuple[str, ...]  # formats that are not drawn

    @property
    def name(self) -> str:
        """The file name without its suffix."""
        return safe_name(f"growth-{self.op}-{self.regime}")

    @property
    def label(self) -> str:
        """What the x axis shows."""
        return LABELS.get(self.parameter, self.parameter)


def growth_plots(study: Study) -> list[GrowthPlot]:
    """The figures: the regimes with the largest growth, by name; in each the ops whose errors grow
    most, by name."""
    groups: dict[tuple[str, str], list[Measurement]] = defaultdict(list)
    for m in study.measurements:
        groups[m.regime, m.op].append(m)
    by_regime: dict[str, list[tuple[float, GrowthPlot]]] = defaultdict(list)
    for (regime, op), members in groups.items():
        parameter = _varying(members)
        if parameter is None:
            continue
        drawn = _chosen_formats({m.dtype for m in members})
        panels: dict[tuple[str, str, str], list[SeriesLine]] = {}
        for direction in sorted({m.direction for m in members}, key=rank_of_direction):
            of_pass = [m for m in members if m.direction == direction]
            output = of_pass[0].output  # the op's main output comes first in its records
            for dtype in drawn:
                shown = [m for m in of_pass if m.output == output and m.dtype == dtype]
                if lines := _lines(parameter, shown):
                    panels[direction, output, dtype] = lines
        left_out = tuple(sorted({m.dtype for m in members} - set(drawn), key=rank_of_dtype))
        if (grown := _grown(panels)) > LEAST_GROWTH:
            cases = len({m.case for m in members})
            plot = GrowthPlot(op, regime, parameter, panels, cases, left_out)
            by_regime[regime].append((grown, plot))
    chosen = [
        entry
        for plots in by_regime.values()
        for entry in sorted(plots, key=lambda entry: (-entry[0], entry[1].op))[:MOST_OPS]
    ]
    chosen.sort(key=lambda entry: (-entry[0], entry[1].name))
    return sorted((p for _, p in chosen[:MOST_PLOTS]), key=lambda plot: (plot.regime, plot.op))


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


def _varying(measurements: list[Measurement]) -> str | None:
    """The parameter with the most values, of several the last."""
    values: dict[str, set[float]] = defaultdict(set)
    for m in measurements:
        for name, value in m.parameters.items():
            number = as_number(value)
            if number is not None and math.isfinite(number):
                values[name].add(number)
    most = max(reversed(values), key=lambda name: len(values[name]), default=None)
    return most if most is not None and len(values[most]) >= FEWEST_POINTS else None


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
