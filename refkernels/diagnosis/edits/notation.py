"""Notation: a node as a formula that a person reads: `sqrt(mean(x²) + eps)`.

What is too deep is an ellipsis. Movements, storage and a second way to compute a number are left
out, as a paper would.
"""

from __future__ import annotations

from fractions import Fraction

from refkernels.contexts.graph import Node
from refkernels.diagnosis.edits.catalogue import through

_DEPTH = 4
_BINARY = {"add": "{} + {}", "subtract": "{} - {}", "multiply": "{} {}", "divide": "{} / {}"}
_LOOSE = ("add", "subtract")
_TIGHT = ("multiply", "divide", "negative")


def formula_of(node: Node, depth: int = _DEPTH) -> str:
    """The node as text."""
    node = _shown(node)
    parts = node.operands
    if node.op == "input":
        return str(node.option)
    if node.op == "number":
        return _number(node.option)
    if node.op in ("pi", "known", "array"):
        return {"pi": "π", "known": "c", "array": "constants"}[node.op]
    if not depth:
        return "…"
    if node.op == "negative":
        return f"-{_within(node, parts[0], depth)}"
    squared = node.op == "square" or (node.op == "multiply" and parts[0] is parts[1])
    if squared or node.op == "power":
        raised = "²" if squared else f"^{node.option}"
        return f"{_factor(parts[0], depth)}{raised}"
    if node.op in _BINARY:
        return _BINARY[node.op].format(*(_within(node, part, depth) for part in parts))
    if node.op == "absolute":
        return f"|{formula_of(parts[0], depth - 1)}|"
    if node.op == "where":
        return f"where(…, {formula_of(parts[2], depth - 1)}, {formula_of(parts[3], depth - 1)})"
    name = {
        "function": str(node.option),
        "maximum": "max",
        "pivot": "max",
        "library": "f",
        "step": "round",
    }
    inside = ", ".join(formula_of(part, depth - 1) for part in parts)
    return f"{name.get(node.op, node.op)}({inside})"


def _shown(node: Node) -> Node:
    node = through(node)
    return _shown(node.operands[0]) if node.op == "either" else node


def _within(node: Node, part: Node, depth: int) -> str:
    """An operand, in brackets where it binds less."""
    op, text = _shown(part).op, formula_of(part, depth - 1)
    right = part is node.operands[-1] and node.op in ("subtract", "divide", "negative")
    loose = op in _LOOSE and (node.op in _TIGHT or right)
    return f"({text})" if loose or (op in _TIGHT and right and node.op == "divide") else text


def _factor(part: Node, depth: int) -> str:
    text = formula_of(part, depth - 1)
    return text if _shown(part).op in ("input", "number") else f"({text})"


def _number(value: Fraction) -> str:
    return str(value) if value.denominator < 1000 else f"{float(value):.6g}"
