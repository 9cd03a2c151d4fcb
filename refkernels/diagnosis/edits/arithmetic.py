"""Arithmetic: constants of a formula, rounded (sqrt(2 / pi) as 0.79788, or held in a narrower
format); one result in a narrower format than all others, or rounded to a grid otherwise; sums by
groups of terms in 16 bits, and sums of whole numbers in integers of few bits.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from typing import Any, get_args

import numpy as np

from refkernels.arithmetic import formats
from refkernels.arithmetic.arrays import LOW
from refkernels.arithmetic.formats import Format
from refkernels.arithmetic.grids import NumberGrid, Ties, grid
from refkernels.contexts.graph import Edits, Node, apply
from refkernels.contexts.working import data
from refkernels.diagnosis.edits.catalogue import XP, Edit, Program, by, is_number, rule
from refkernels.diagnosis.edits.exponentials import parts_of
from refkernels.diagnosis.edits.reductions import length_of, over_some

FORMATS = ("bfloat16", "float16", "tf32", "float32")
_DIGITS = range(1, 13)
_PURE = ("number", "pi", "add", "subtract", "multiply", "divide", "square", "power", "function")
_FEW = 4  # statistics of a row
_LEAST = 2.0**-48  # relative: what shows in any format


@rule("rounded_constants", "constant")  # one constant or its inverse, or all of them
def rounded_constants(program: Program) -> Iterator[Any]:
    values = dict(_constants(program))
    for inverse, to in itertools.product((False, True), (*FORMATS, *_DIGITS)):
        if inverse:
            held = {node: 1 / h for node, v in values.items() if (h := _held(1 / v, to))}
        else:
            held = {node: _held(value, to) for node, value in values.items()}
        alone = [{node: value} for node, value in held.items()]
        for rounded in alone if inverse or len(values) == 1 else (held, *alone):
            new = {n: v for n, v in rounded.items() if abs(v - values[n]) > abs(v) * _LEAST}
            changes = {n: by()(lambda xp, v=v: xp.number(v)) for n, v in new.items()}
            told = ", ".join(f"{float(v):.12g}" for v in {**values, **new}.values())
            named = {"format": to} if isinstance(to, str) else {}
            if new:
                yield next(iter(new)), changes, {"constants": told, **named}


def parts(program: Program) -> dict[Node, Any]:
    """The values in float64 of the parts of a formula that depend on no input."""
    known: dict[Node, Any] = {}
    for node in program.nodes:
        if not node.shape and node.op in _PURE and all(part in known for part in node.operands):
            known[node] = apply(node, XP, [known[part] for part in node.operands])
    return known


def _constants(program: Program) -> Iterator[tuple[Node, Fraction]]:
    """The largest such parts that are numbers, and that float32 does not hold."""
    known = {node: value for node, value in parts(program).items() if np.isfinite(data(value))}
    for node, value in known.items():
        exact = Fraction(node.option if node.op == "number" else float(data(value)))
        inside = all(user in known for user in program.users.get(node, ()))
        if not inside and exact and exact != _held(exact, "float32"):
            yield node, exact


def _held(value: Fraction, to: str | int) -> Fraction:
    """The value rounded; itself where the format has no number as large."""
    if isinstance(to, int):
        return Fraction(f"{float(value):.{to - 1}e}")
    rounded = float(formats.round_to(np.array(float(value)), formats.get(to)))
    return Fraction(rounded) if np.isfinite(rounded) else value


_EXACT = {
    *("move", "broadcast", "store", "saved", "narrow", "stop", "pick", "negative"),
    *("absolute", "item", "welford", "max", "pivot", "maximum", "where", "either", "step"),
}


@rule("intermediate_rounded", "arithmetic")  # v -> v in 16 bits
def narrowed(program: Program) -> Iterator[Any]:
    constants = parts(program)
    for node in program.nodes:
        inexact = node.op not in _EXACT and not is_number(node) and node not in constants
        for to in map(formats.get, FORMATS if inexact else ()):
            rounded = by(node)(functools.partial(_rounded, format=to))
            yield node, {node: rounded}, {"part": node, "format": to.name}


@rule("low_precision_statistics", "arithmetic")  # all numbers of a row that its elements read
def narrowed_statistics(program: Program) -> Iterator[Any]:
    """Of the right ones: the variance does not read the narrowed mean; or each of narrowed ones."""

    @functools.cache
    def apart(node: Node) -> Node:
        return replace(node, operands=tuple(map(apart, node.operands)))

    nodes = program.statistics
    for to in map(formats.get, FORMATS if 1 < len(nodes) <= _FEW else ()):
        rounded = functools.partial(_rounded, format=to)
        yield nodes[-1], {n: by(apart(n))(rounded) for n in nodes}, {"format": to.name}
        yield nodes[-1], {n: by(n)(rounded) for n in program.of_rows}, {"format": to.name}


def _rounded(xp: Any, value: Any, format: Format) -> Any:
    """Numbers beyond the format's range are left: what overflows has causes of its own."""
    size, least = abs(value), xp.number(format.min_subnormal / 2.0)
    within = xp.less(size, xp.number(format.max)) & ~xp.less(size, least)
    return xp.where(within, xp.narrow(value, format.name), value)


@rule("rounded_otherwise", "arithmetic")  # round(v) -> trunc(v), floor(v), ...
def other_ties(program: Program) -> Iterator[Any]:
    for node, own in _rounded_to(program):
        for ties in (ties for ties in get_args(Ties) if ties != own.ties):
            yield node, _stepped(node, replace(own, ties=ties)), {"rounding": ties, "own": own.ties}


@rule("other_format", "arithmetic")  # float8_e4m3fn(v) -> float8_e5m2(v)
def other_formats(program: Program) -> Iterator[Any]:
    for node, own in _rounded_to(program):
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
        if node.option.is_integer:
            changes = {node: by(*node.operands)(functools.partial(_modulo, own=node.option))}
            yield node, changes, {"to": node.option.name}


def _modulo(xp: Any, value: Any, own: NumberGrid) -> Any:
    """The last bits of whole numbers."""
    whole = xp.step(value, replace(own, least=-math.inf, largest=math.inf))
    span = xp.number(own.largest - own.least + 1.0)
    return whole - span * xp.floor((whole - xp.number(own.least)) / span)


_OF_TWO = ("add", "subtract")
_PARTS, _STEPS = 512, 256  # of a sum, and of a running one, at most
_GROUPS = (1, 2, 4, 8, 16, 32, 64, 96, 128, 256)


def whole_sums(program: Program, value_of: Callable[..., Any], *also: str) -> Iterator[Node]:
    """The sums of whole numbers, or of products of such, but for counts; `also` such primitives."""
    for node in program.of("sum", "matmul", *also):
        values = [value_of(part) for part in node.operands]
        if np.any(np.abs(values[0]) > 1) and all(np.array_equal(v, np.rint(v)) for v in values):
            yield node


_ENDS = ("sum_wraps", "sum_saturates", "sum_saturates_at_each_step")


def sums_in_few_bits(program: Program, value_of: Callable[..., Any]) -> Iterator[Edit]:
    """Such a sum in an accumulator of few bits: all of it, or so many terms at a time."""
    for node in whole_sums(program, value_of, *_OF_TWO):
        n = 1 if node.op in _OF_TWO else length_of(node)
        parts = (1 << k for k in range((n - 1).bit_length()) if n >> k <= _PARTS)
        for way, to, length in itertools.product(_ENDS, ("int16", "int8", "int32"), (n, *parts)):
            changes = {node: by(*node.operands)(functools.partial(_added, node, way, to, length))}
            if not np.array_equal(value_of(node, changes), value_of(node)):
                details = {"to": to, "length": str(length), "whole": length == n}
                yield Edit(way, "threshold", node, changes, details)


def _added(node: Node, way: str, to: str, length: int, xp: Any, *terms: Any) -> Any:
    """The sum of so many terms becomes a number of the format, and these are added in a wide one;
    or the running sum does with each of them, as instructions that saturate add."""
    own, total = grid(to), xp.number(0)
    end = functools.partial(_modulo, xp) if way == _ENDS[0] else xp.step
    if node.op in _OF_TWO:
        return end(apply(node, xp, terms), own)
    for start in range(0, n := length_of(node), length):
        part = over_some(node, np.arange(start, min(start + length, n)), 0).rule(xp, *terms)
        total = end(total + part, own) if way == _ENDS[2] else total + end(part, own)
    return total


@rule("sums_by_groups_rounded", "arithmetic")  # of rows r with r % 4 = 0, 1, 2, 3, in 16 bits
def rounded_groups(program: Program) -> Iterator[Any]:
    for node in program.of("sum", "mean"):
        for groups in (k for k in _GROUPS if k < length_of(node) <= _STEPS * k):
            for format in ("float16", "bfloat16"):
                rounded = functools.partial(_in_groups, node, groups, format)
                details = {"groups": groups, "format": format, "part": node.operands[0]}
                yield node, {node: by(*node.operands)(rounded)}, details


def _in_groups(node: Node, groups: int, format: str, xp: Any, a: Any) -> Any:
    """The sum, or mean, by some running sums, each of every so many-th term."""
    axis, n = node.option, length_of(node)
    more = (*a.shape[:axis], -n % groups, *a.shape[axis:][1:])
    padded = xp.concatenate([a, xp.broadcast(xp.number(0), more)], axis)
    total = xp.number(0)
    for terms in parts_of(xp, padded, groups, axis):
        total = _rounded(xp, total + terms, formats.get(format))
    return xp.sum(total, axis) / xp.number(n if node.op == "mean" else 1)


def _rounded_to(program: Program) -> Iterator[tuple[Node, NumberGrid]]:
    """What is rounded to a grid, and what a kernel keeps in a format of 8 bits."""
    yield from ((node, node.option) for node in program.of("step"))
    kept = (node for node in program.of("narrow") if str(node.option) not in FORMATS)
    yield from ((node, grid(str(node.option))) for node in kept)


def _stepped(node: Node, other: NumberGrid) -> Edits:
    return {node: by(*node.operands)(lambda xp, value: xp.step(value, other))}
