"""Arithmetic: one result in a narrower format than all others, or rounded to a grid otherwise."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, get_args

from refkernels.arithmetic import formats
from refkernels.arithmetic.arrays import LOW
from refkernels.arithmetic.formats import Format
from refkernels.arithmetic.grids import NumberGrid, Ties, grid
from refkernels.contexts.graph import Edits, Node
from refkernels.diagnosis.edits.catalogue import Program, by, is_number, rule
from refkernels.diagnosis.edits.constants import FORMATS, parts

_EXACT = frozenset(
    (
        *("array", "move", "broadcast", "store", "saved", "narrow", "stop", "pick", "negative"),
        *("absolute", "item", "welford", "max", "pivot", "maximum", "where", "either", "step"),
    )
)


@rule("intermediate_rounded", "arithmetic")  # v -> v in 16 bits
def narrowed(program: Program) -> Iterator[Any]:
    constants = parts(program)
    for node in program.nodes:
        inexact = node.op not in _EXACT and not is_number(node) and node not in constants
        for format in FORMATS if inexact else ():
            to = formats.get(format)
            rounded = by(node)(lambda xp, v, to=to: _rounded(xp, v, to))
            yield node, {node: rounded}, {"part": node, "format": format}


def _rounded(xp: Any, value: Any, format: Format) -> Any:
    """Numbers beyond the format's range are left: what overflows or vanishes has causes of its
    own."""
    size = abs(value)
    held = xp.where(xp.less(size, xp.number(format.max)), xp.narrow(value, format.name), value)
    return xp.where(xp.less(size, xp.number(format.min_subnormal / 2.0)), value, held)


@rule("rounded_otherwise", "arithmetic")  # round(v) -> trunc(v), floor(v), ...
def other_ties(program: Program) -> Iterator[Any]:
    for node in program.of("step"):
        own: Ties = node.option.ties
        for ties in (ties for ties in get_args(Ties) if ties != own):
            details = {"rounding": ties, "own": own}
            yield node, _stepped(node, replace(node.option, ties=ties)), details


@rule("other_format", "arithmetic")  # float8_e4m3fn(v) -> float8_e5m2(v)
def other_formats(program: Program) -> Iterator[Any]:
    for node in program.of("step"):
        own: NumberGrid = node.option
        for to in sorted({kind.name for kind in LOW} - {own.name} if own.name else ()):
            yield node, _stepped(node, grid(to, own.ties)), {"to": to, "own": own.name}


@rule("other_ends", "threshold")  # int8(v) -> within ±127, or without an end
def other_ends(program: Program) -> Iterator[Any]:
    for node in program.of("step"):
        own: NumberGrid = node.option
        ends = {own.largest / 2, own.largest, math.inf, *(grid(kind.name).largest for kind in LOW)}
        for largest in sorted(ends):
            other = replace(own, least=-largest if own.least < 0.0 else own.least, largest=largest)
            if other != own:
                details = {"least": other.least, "largest": largest, "own": own.largest}
                yield node, _stepped(node, other), details


@rule("wraps_around", "threshold")  # int8(v) -> the last 8 bits of v
def wrapped(program: Program) -> Iterator[Any]:
    for node in program.of("step"):
        own = node.option
        span = own.largest - own.least + 1.0
        if own.is_integer:

            def modulo(xp: Any, value: Any, own: NumberGrid = own, span: float = span) -> Any:
                whole = xp.step(value, replace(own, least=-math.inf, largest=math.inf))
                turns = xp.floor((whole - xp.number(own.least)) / xp.number(span))
                return whole - xp.number(span) * turns

            yield node, {node: by(*node.operands)(modulo)}, {"to": own.name}


def _stepped(node: Node, other: NumberGrid) -> Edits:
    return {node: by(*node.operands)(lambda xp, value: xp.step(value, other))}
