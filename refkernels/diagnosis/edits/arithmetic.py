"""Arithmetic: one result in a narrower format than all others."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from refkernels.arithmetic import formats
from refkernels.arithmetic.formats import Format
from refkernels.diagnosis.edits.catalogue import Program, by, is_number, rule
from refkernels.diagnosis.edits.constants import FORMATS, parts

_EXACT = frozenset(
    (
        *("array", "move", "broadcast", "store", "saved", "narrow", "stop", "pick", "negative"),
        *("absolute", "item", "welford", "max", "pivot", "maximum", "where", "either"),
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
