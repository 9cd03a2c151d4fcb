"""Names: which edits have a cause of their own.

`names.json` is a table: an edit of a kind, at a place where the details are as given, has the cause
of the first entry that fits; what the table lacks is named by its kind, with the formula of its
place. A `*` in an entry stands for any text. An entry may keep only some details, or give them
other names; a `usual` one is tried without a search (`usual`), in the `outputs` that it changes.

A node is shown as a formula that a person reads: `sqrt(mean(x²) + eps)`. What is too deep is an
ellipsis. Movements, storage and a second way to compute a number are left out, as a paper would.
"""

from __future__ import annotations

import functools
import json
import math
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from fractions import Fraction
from importlib import resources
from math import prod
from typing import Any

from refkernels.contexts.graph import Node
from refkernels.diagnosis.edits.catalogue import through

_DEPTH, _MOST = 4, 3  # of a formula, and operands that are written out
_BINARY = {"add": "{} + {}", "subtract": "{} - {}", "multiply": "{} {}", "divide": "{} / {}"}
_LOOSE = ("add", "subtract")
_TIGHT = ("multiply", "divide", "negative")


@functools.cache
def _table() -> list[dict[str, Any]]:
    text = resources.files(__package__).joinpath("names.json").read_text(encoding="utf-8")
    table: list[dict[str, Any]] = json.loads(text)
    return table


def fits(entry: Mapping[str, Any], kind: str, details: Mapping[str, Any]) -> bool:
    """Whether an entry is about an edit with these details."""
    return entry["kind"] == kind and all(
        fnmatchcase(str(details.get(name)), wanted)
        if isinstance(wanted, str)
        else details.get(name) == wanted
        for name, wanted in entry.get("where", {}).items()
    )


def usual(where: Mapping[str, str]) -> Iterator[dict[str, Any]]:
    """The usual entries for an op and a pass; of the forward pass, if they name none."""
    for entry in _table():
        wanted = {"pass": "forward", **entry.get("where", {})}
        if entry.get("usual") and all(
            fnmatchcase(where[key], wanted.get(key, "*")) for key in where
        ):
            yield entry


def named(
    kind: str, details: Mapping[str, Any], where: Mapping[str, str]
) -> tuple[str, dict[str, Any]]:
    """The cause of an edit, and the details that its words need. `where`: the op and the passes."""
    for entry in _table():
        if fits(entry, kind, {**details, **where}):
            rename = entry.get("rename", {})
            kept = entry.get("details", [*details])
            taken = rename.values() - rename.keys()
            kept = [name for name in kept if name not in taken]
            renamed = {rename.get(name, name): details[name] for name in kept}
            if "solved" in renamed:
                renamed["solved"] = rename.get(details["solved"], details["solved"])
            return entry["cause"], renamed
    return kind, dict(details)


def causes() -> set[str]:
    """The causes of the table."""
    return {entry["cause"] for entry in _table()}


def axis_of(
    array: tuple[int, ...], seen: tuple[int, ...], axis: int
) -> int | tuple[int, ...] | str:
    """Which axis of a user's array an axis of a formula's is, whose leading axes may be cut, others
    joined or split: perhaps several, or one that only the formula has, as of patches."""
    behind = prod(seen[axis % len(seen) + 1 :])
    ends = [{prod(shape[k:]) for k in range(1, len(shape) + 1)} for shape in (array, seen)]
    low = max(end for end in ends[0] & ends[1] if end <= behind)
    high = min((end for end in ends[0] & ends[1] if end > behind), default=math.inf)
    of_array, of_formula = (
        tuple(k for k, n in enumerate(shape) if n > 1 and low <= prod(shape[k + 1 :]) < high)
        for shape in (array, seen)
    )
    if len(of_array) == 1:
        return of_array[0]
    return of_array if len(of_formula) == 1 else f"{axis % len(seen)}: {seen}"


def formula_of(node: Node, depth: int = _DEPTH) -> str:
    """The node as text."""
    node = _shown(node)
    parts = node.operands
    if node.op == "input":
        return str(node.option)
    if node.op == "number":
        value: Fraction = node.option
        return str(value) if value.denominator < 1000 else f"{float(value):.6g}"
    if node.op in ("pi", "known", "array", "truth"):
        return {"pi": "π", "known": "c", "array": "constants", "truth": "mask"}[node.op]
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
        "scatter_add": "sum",
        "move": "concat",  # of one operand, it is left out
    }
    shown = [formula_of(part, depth - 1) for part in parts[:_MOST]]
    inside = ", ".join([*shown, *["…"] * (len(parts) > _MOST)])
    return f"{name.get(node.op, node.op)}({inside})"


def _shown(node: Node) -> Node:
    node = through(node)
    moved = node.op == "scatter_add" and prod(node.operands[0].shape) == prod(node.shape)
    return _shown(node.operands[0]) if moved or node.op == "either" else node


def _within(node: Node, part: Node, depth: int) -> str:
    """An operand, in brackets where it binds less."""
    op, text = _shown(part).op, formula_of(part, depth - 1)
    right = part is node.operands[-1] and node.op in ("subtract", "divide", "negative")
    loose = op in _LOOSE and (node.op in _TIGHT or right)
    return f"({text})" if loose or (op in _TIGHT and right and node.op == "divide") else text


def _factor(part: Node, depth: int) -> str:
    text = formula_of(part, depth - 1)
    return text if _shown(part).op in ("input", "number") else f"({text})"
