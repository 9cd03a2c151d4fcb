"""A revealed order of summation: its tree, as lines or as a drawing, and its consequences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from refkernels.reporting.figures.drawing import Drawn
from refkernels.reporting.figures.trees import draw_tree, tree_lines
from refkernels.reporting.words.numerals import count, figure
from refkernels.target_names import framework_of

Record = Mapping[str, Any]


def order_lines(order: Record) -> list[str]:
    """Title, tree and facts."""
    names = {order["leaves"] - 1: "bias"} if order["bias"] else {}
    tree = tree_lines(order["leaves"], order["nodes"], order["fused"], names)
    return [title(order), "", *tree, "", *facts(order)]


def title(order: Record) -> str:
    """torch 2.13.0 on cpu: matmul of (32, 64) by (64, 32), float32, element (0, 0)."""
    framework = " ".join(filter(None, (framework_of(order["framework"]), order["version"])))
    (_, rows), *columns = order["inputs"].items()
    if order["direction"] == "backward":
        subject = (
            f"{order['op']}'s {order['output']}, {order['k']} equal indices, of {_shape(rows)}"
        )
    elif columns:
        subject = f"{order['op']} of {_shape(rows)}" + "".join(_with(*column) for column in columns)
    else:
        of_op = f"{order['op']}'s {order['output']}" if order["output"] else order["op"]
        subject = f"{of_op} over the last axis of {_shape(rows)}"
    subject += " and a bias" if order["bias"] else ""
    matrix = order["products"] or order["direction"] == "backward"
    place = f"({order['row']}, {order['column']})" if matrix else order["row"]
    return f"{framework} on {order['device']}: {subject}, {order['dtype']}, element {place}"


def _shape(shape: Sequence[int]) -> str:
    return f"({', '.join(map(str, shape))})"


def _with(name: str, shape: Sequence[int]) -> str:
    """The second operand, with its name if that is longer than a letter."""
    return f" by {_shape(shape)}" if len(name) == 1 else f" with a {name} of {_shape(shape)}"


def facts(order: Record) -> list[str]:
    """The order's name, depth and bound, and how far the tree is proven."""
    lines = [f"order      {order['name'] or 'none that has a name here'}"]
    products = order["products"]
    if products and order["dtype"] in ("float32", "float64"):
        fused = len(order["fused"])
        lines.append(f"FMA        {_fused(fused, order)}")
    depth = f"{count(order['depth'], 'addition')} at most between a value and the sum"
    lines.append(f"depth      {depth}")
    if order["bound"] is not None:
        terms = "sum |a_i b_i|" if products else "sum |x_i|"
        lines.append(
            f"bound      |error| <= gamma({order['roundings']}) {terms} = "
            f"{figure(order['bound'])} {terms}"
        )
    lines.append(f"proof      {_proof(order['replay'])}")
    lines.append(f"questions  {order['questions']:,}")
    return lines


def draw_order(order: Record) -> Drawn:
    """The tree as a drawing."""
    return draw_tree(order["leaves"], order["nodes"], "order", title(order), order["fused"])


def _fused(fused: int, order: Record) -> str:
    if not fused:
        return "no product enters its addition unrounded"
    return f"{fused:,} of {order['k']:,} products enter their addition unrounded"


def _proof(replay: Mapping[str, Any]) -> str:
    if not replay["outputs"]:
        return "none: a replay runs in float32 and float64, additions of two values"
    share = f"{replay['equal']:,} of {count(replay['outputs'], 'output')} of random data"
    if replay["equal"] == replay["outputs"]:
        return f"replayed in {replay['accumulator']}, it gives {share} bit for bit"
    accumulator = replay["accumulator"]
    return f"replayed in {accumulator}, it gives {share}: other elements add in another order"
