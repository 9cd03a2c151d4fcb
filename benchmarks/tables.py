"""The times as Markdown: the bars first, then every section by size."""

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from stopwatch import Row, quartiles

TITLES = {
    "matmul": "Matrix products",
    "layernorm": "LayerNorm",
    "formulas": "Ops that are formulas",
    "whole ops": "Attention, a loss and an optimizer's step",
    "elementwise": "Elementwise functions",
    "statistics": "Statistics",
    "sweep": "Sweeps of all float32 inputs",
    "binades": "Judging in sweeps, by the binade of the input",
    "startup": "Starting up",
}


def markdown(rows: Sequence[Row], about: Mapping[str, Any], left_out: Sequence[str]) -> str:
    """The whole report."""
    versions = ", ".join(f"{name} {version}" for name, version in about["versions"].items())
    parts = [
        "# Speed",
        f"{about['cpu']}, {about['threads']} threads, Python {about['python']}; {versions}. "
        f"Measured in {about['seconds']} s; load before: {about['load_at_start']}.",
        "Medians of rounds in which every contestant of a table takes its turn, quartiles in "
        "brackets. Ratios are per element, within a round.",
        "## Bars",
        bars(rows),
        "## Growth with size",
        "Time per element over the base's; of elementwise functions, throughput over the base's.",
        growth(rows),
    ]
    for section, title in TITLES.items():
        chosen = [row for row in rows if row.section == section]
        if chosen:
            parts += [f"## {title}", _table(chosen)]
    parts += (
        [f"## Left out\n\n{chr(10).join(f'- {line}' for line in left_out)}"] if left_out else []
    )
    return "\n\n".join(parts) + "\n"


def bars(rows: Sequence[Row]) -> str:
    """The rows that have a bar: what it is, what was measured, whether it is met."""
    lines = ["| work | size | bar | measured | |", "|---|---|---|---|---|"]
    for row in rows:
        if row.bar is None:
            continue
        sense = ">=" if row.at_least else "<="
        beside = f" of {row.base}" if row.unit == "x" else ""
        figure = "-" if row.figure is None else f"{_short(row.figure)} {row.unit}{_spread(row)}"
        met = {True: "met", False: "MISSED", None: row.missing or "not measured"}[row.met]
        lines.append(
            f"| {row.section}: {row.work} | {row.size} | {sense} {row.bar:g} {row.unit}{beside} "
            f"| {figure} | {met} |"
        )
    return "\n".join(lines)


def growth(rows: Sequence[Row]) -> str:
    """One line for each work of ours that was timed in several sizes, small to large."""
    lines = ["| work | base | sizes: figures |", "|---|---|---|"]
    ours = [row for row in rows if row.who == "refkernels" and row.figure is not None]
    for section, work in dict.fromkeys((row.section, row.work) for row in ours):
        of_it = [row for row in ours if (row.section, row.work) == (section, work)]
        if len(of_it) > 1:
            figures = "; ".join(f"{row.size}: {_short(row.figure or 0.0)}" for row in of_it)
            lines.append(f"| {section}: {work} | {of_it[0].base or ''} | {figures} |")
    return "\n".join(lines)


def _spread(row: Row) -> str:
    spread = quartiles(row.ratios if row.unit == "x" else row.seconds)
    return "" if spread is None else f" [{_short(spread[0])}, {_short(spread[1])}]"


def _table(rows: Sequence[Row]) -> str:
    lines = [
        "| work | size | who | elements | time | per element | ratio | tiers and width |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        if row.median is None:
            lines.append(
                f"| {row.work} | {row.size} | {row.who} | | missing: {row.missing} | | | |"
            )
            continue
        spread = quartiles(row.seconds)
        between = f" [{_time(spread[0])}, {_time(spread[1])}]" if spread else ""
        ratio = "" if not row.ratios else f"{_short(statistics.median(row.ratios))}"
        per_element = "" if row.elements == 1 else _time(row.median / row.elements)
        lines.append(
            f"| {row.work} | {row.size} | {row.who} | {row.elements} "
            f"| {_time(row.median)}{between} | {per_element} | {ratio} | {row.note} |"
        )
    return "\n".join(lines)


def _time(seconds: float) -> str:
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= scale:
            return f"{_short(seconds / scale)} {unit}"
    return f"{_short(seconds / 1e-9)} ns"


def _short(value: float) -> str:
    return (
        f"{value:.3g}"
        if 1e-3 <= abs(value) < 1000 or value == 0
        else (f"{value:.0f}" if 1000 <= abs(value) < 1e6 else f"{value:.2g}")
    )
