"""Functions that a program computes in steps, recognised by their values, and others for them.

GELU is x (1 + erf(x / sqrt(2))) / 2 in one program, a choice of two such forms in another: a rule
that looks for a pattern misses one of them. A node whose values are f of another node's, for a
function f of the table of functions, is f, however it is written.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from refkernels.contexts.doubles import on_plain_arrays
from refkernels.contexts.graph import Edits, Graph, Node
from refkernels.diagnosis.edits.catalogue import CONDITIONS, Edit, Program, by, is_number, through
from refkernels.diagnosis.edits.names import formula_of
from refkernels.diagnosis.problem import Array
from refkernels.elementary_ref.functions import FUNCTIONS

KIND = "function_for_another"
_XP = on_plain_arrays()
_OTHERS: dict[str, Callable[[Any, Any], Any]] = {
    "x": lambda xp, x: x,
    "max(x, 0)": lambda xp, x: xp.maximum(x, xp.number(0)),
    "max(x, 0.01 x)": lambda xp, x: xp.maximum(x, x * xp.number(0.01)),
    "x σ(1.702 x)": lambda xp, x: x / (1 + xp.exp(x * xp.number(-1.702))),  # arXiv:1606.08415
}
_OF_EACH = frozenset(
    (
        *("add", "subtract", "multiply", "divide", "negative", "absolute", "square", "power"),
        *("function", "maximum", "where"),
    )
)
_NAMES = tuple(function.name for function in FUNCTIONS)
_SAMPLE, _FEWEST = 256, 8  # elements
_BEHIND = 16  # steps from a function to its argument, at most
_NEAR, _CANCELLED = 1e-9, 2.0**-44  # relative to a value, and to the largest
_ALIKE = 2.0**-20  # a few roundings of float32, of all elements together


def others(program: Program, value_of: Callable[[Node], Array]) -> Iterator[Edit]:
    """Every other function in the place of each that is recognised; its argument alone; and usual
    functions that are none of the table. A function that is its argument here, as softplus is of
    large numbers, is told as that."""
    for node, argument, name, images in _recognised(program, value_of):
        sample = _sample(value_of(argument))
        images = images | {n: f(_XP, sample) for n, f in _OTHERS.items()}
        size = _ALIKE * np.linalg.norm(sample)
        alike = {n for n, image in images.items() if np.linalg.norm(image - sample) <= size} - {"x"}
        constant = {n for n in _OTHERS if np.ptp(images[n]) == 0.0}  # as 0 in place of a function
        for other in (*_OTHERS, *_NAMES):
            if other not in {name, *alike, *constant}:
                details = {"part": argument, "function": name, "other": other}
                yield Edit(KIND, "function", node, _changes(node, argument, other), details)


def there(edits: Iterable[Edit], places: Mapping[Node, int], graph: Graph) -> Iterator[Edit]:
    """The edits in another graph of their formula."""

    def at(node: Any) -> Any:
        return graph.nodes[places[node]] if isinstance(node, Node) else node

    for edit in edits:
        details = {name: at(value) for name, value in edit.details.items()}
        changes = {at(n): by(*map(at, new.operands))(new.rule) for n, new in edit.changes.items()}
        yield replace(edit, place=at(edit.place), changes=changes, details=details)


def _changes(node: Node, argument: Node, other: str) -> Edits:
    """The node as another function of its argument."""
    return {node: by(argument)(_OTHERS.get(other, lambda xp, x: xp.function(other, x)))}


def _recognised(
    program: Program, value_of: Callable[[Node], Array]
) -> Iterator[tuple[Node, Node, str, dict[str, Array]]]:
    """Node, argument, function, of each of these two the last such node; the argument's images."""
    numbers = (node for node in program.nodes if node.shape and node.op != "welford")  # a pair
    sampled = {node: _sample(value_of(node)) for node in numbers}
    known: dict[Node, dict[str, Array]] = {}
    near: dict[Node, tuple[Array, Array]] = {}  # images, and how far from them
    found: dict[tuple[Node, str], Node] = {}
    for node in (node for node, values in sampled.items() if values.size >= _FEWEST):
        for argument in _behind(node):
            if argument.shape == node.shape and argument in sampled:
                if argument not in known:
                    known[argument] = _images(sampled[argument])
                    stacked = np.array([*known[argument].values()])
                    every = stacked.reshape(-1, sampled[argument].size)
                    lost = _CANCELLED * np.abs(every).max(axis=1, keepdims=True, initial=0.0)
                    near[argument] = every, lost + _NEAR * np.abs(every)
                (every, apart), some = near[argument], np.s_[..., :_FEWEST]  # those first
                if (np.abs(sampled[node][some] - every[some]) <= apart[some]).all(axis=1).any():
                    alike = (np.abs(sampled[node] - every) <= apart).all(axis=1)
                    for name in itertools.compress(known[argument], alike):
                        found[argument, name] = node
    for (argument, name), node in found.items():
        yield node, argument, name, known[argument]
    for node, argument in _piecewise(program):
        if argument in sampled and sampled[argument].size >= _FEWEST:
            yield node, argument, formula_of(node), _images(sampled[argument])


def _piecewise(program: Program) -> Iterator[tuple[Node, Node]]:
    """The functions of one node that choose, such as a leaky ReLU and its square; and the node."""
    found: dict[Node, Node] = {}
    for node in program.of(*_OF_EACH):
        behind = [found[part] for part in node.operands if part in found]
        behind += _behind(node) if node.op in ("where", "maximum") else ()
        alike = (n for n in behind if n.shape == node.shape and not is_number(through(n)))
        argument = next((n for n in alike if _is_function_of(n, node)), None)
        if argument is not None:
            found[node] = argument
            yield node, argument


def _is_function_of(argument: Node, node: Node) -> bool:
    """Whether it is computed from that node and numbers alone, each element by itself."""
    waiting, seen = [node], {argument}
    while waiting:
        new = set(waiting.pop().operands) - seen
        if not all(is_number(through(n)) or n.op in _OF_EACH | CONDITIONS - {"truth"} for n in new):
            return False
        waiting, seen = [*waiting, *new], seen | new
    return True


def _behind(node: Node) -> list[Node]:
    """The nodes that a node depends on, nearest first, for some steps."""
    seen, level = dict.fromkeys(node.operands), list(node.operands)
    for _ in range(_BEHIND):
        level = [operand for below in level for operand in below.operands if operand not in seen]
        seen |= dict.fromkeys(level)
    return list(seen)


def _sample(values: Array) -> Array:
    return np.asarray(values, np.float64).reshape(-1)[:_SAMPLE]


def _images(values: Array) -> dict[str, Array]:
    """The functions of some numbers, those that are finite there and not constant."""
    with np.errstate(all="ignore"):
        images = {name: _XP.function(name, values) for name in _NAMES}
    return {
        name: image
        for name, image in images.items()
        if np.isfinite(image).all() and np.ptp(image) > 0.0
    }
