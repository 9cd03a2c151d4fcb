"""Record: the context that makes the nodes of a graph.

Every primitive is a node of its own, so that a reading computes what the formula would. With
`derived=False` a primitive that the others give is written in terms of them, as generated kernels
need it: a mean is a sum and a quotient.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from refkernels.arithmetic.grids import NumberGrid
from refkernels.contexts.ball import Ball
from refkernels.contexts.context import Context, Index, fraction
from refkernels.contexts.graph import (
    Array,
    Graph,
    Library,
    Move,
    Node,
    Shape,
    Untraceable,
    values_of,
)
from refkernels.contexts.value import Mask, Value, not_a_value, taken

_LARGEST = 1 << 16
"""Elements up to which a constant or a movement is compared with others."""


class NodeValue(Value):
    """A node as a formula's value."""

    __slots__ = ("node",)

    def __init__(self, context: Record, node: Node) -> None:
        self.context = context
        self.node = node

    @property
    def shape(self) -> Shape:
        return self.node.shape


class Condition:
    """A node of truth values: half of a Mask."""

    __array_ufunc__ = None

    def __init__(self, record: Record, node: Node) -> None:
        self.record = record
        self.node = node

    @property
    def shape(self) -> Shape:
        return self.node.shape

    def __and__(self, other: Any) -> Condition:
        return self.record.condition("and", self, other)

    def __or__(self, other: Any) -> Condition:
        return self.record.condition("or", self, other)

    __rand__, __ror__ = __and__, __or__

    def __invert__(self) -> Condition:
        return self.record.condition("not", self)

    def __getattr__(self, name: str) -> Any:
        raise Untraceable(f"A formula that reads .{name} of a comparison has no graph.")


def _made(op: str, derived: bool = False, reduces: bool = False) -> Any:
    """The method that makes the node of a primitive; of one that is `derived` from others only
    where the record keeps these."""

    def primitive(self: Record, *values: Any, **options: Any) -> Any:
        if derived and not self.derived:
            return getattr(Context, op)(self, *values, **options)
        return self._reduced(op, *values, **options) if reduces else self._apply(op, *values)

    primitive.__name__ = op
    return primitive


class Record(Context):
    """Makes nodes. `arrays` are constants and inputs in the order in which the formula gets or
    makes them; `nodes` all nodes in the order in which they are made."""

    name = "Record"

    def __init__(self, derived: bool = True) -> None:
        self.derived = derived
        self.arrays: list[Array] = []
        self.nodes: list[Node] = []
        self._known: dict[Any, Any] = {}

    def node(self, op: str, *operands: Node, option: Any = None, shape: Any = None) -> Node:
        """The one node of that kind."""
        if shape is None:
            shape = np.broadcast_shapes(*(operand.shape for operand in operands))
        key = op, tuple(map(id, operands)), option, tuple(shape)
        if key not in self._known:
            self._known[key] = Node(op, operands, option, tuple(shape))
            self.nodes.append(self._known[key])
        node: Node = self._known[key]
        return node

    def _apply(self, op: str, *values: Value, option: Any = None, shape: Any = None) -> NodeValue:
        nodes = (node_of(value) for value in values)
        return NodeValue(self, self.node(op, *nodes, option=option, shape=shape))

    def condition(self, op: str, *operands: Any) -> Condition:
        """The condition `op` of conditions or arrays of truth values."""
        nodes = []
        for operand in operands:
            if not isinstance(operand, Condition):
                operand = self._apply("truth", option=self._keep(operand), shape=operand.shape)
            nodes.append(operand.node)
        return Condition(self, self.node(op, *nodes))

    def _keep(self, values: Array) -> int:
        """The array's number."""
        values = np.asarray(values)
        same = values.tobytes() if values.size <= _LARGEST else id(values)
        key = "array", values.dtype.str, values.shape, same
        if key not in self._known:
            self._known[key] = len(self.arrays)
            self.arrays.append(values)
        number: int = self._known[key]
        return number

    def array(self, values: Array) -> NodeValue:
        values = np.asarray(values)
        if values.dtype.kind in "iu" and not self.derived:
            values = Ball().array(values).mid
        return self._apply("array", option=self._keep(values), shape=values.shape)

    def input(self, name: str, shape: Shape) -> NodeValue:
        """An argument of the formula, whose value a reading is given."""
        return self._apply("input", option=name, shape=shape)

    def number(self, value: Any) -> NodeValue:
        return self._apply("number", option=fraction(value), shape=())

    def pi(self) -> NodeValue:
        return self._apply("pi", shape=())

    def known(self, mid: float, radius: float) -> NodeValue:
        """A number whose ball is known before the kernel runs."""
        return self._apply("known", option=(mid, radius), shape=())

    def unknown(self, name: str) -> NodeValue:
        """A number that no kernel over rows knows; a result that needs it has no such kernel."""
        return self._apply("unknown", option=name, shape=())

    # --- elements ----------------------------------------------------------------------------

    add, multiply, divide, maximum = map(_made, ("add", "multiply", "divide", "maximum"))
    negative, absolute, square = map(_made, ("negative", "absolute", "square"))
    subtract, either = (_made(name, derived=True) for name in ("subtract", "either"))
    store, saved, stop = (_made(name, derived=True) for name in ("store", "saved", "stop"))

    def quotient(self, a: Value, b: Value) -> NodeValue:
        return self._apply("divide", a, b, option="quotient")

    def power(self, a: Value, exponent: int) -> Value:
        """In terms of others by repeated squaring, as in Ball."""
        if self.derived:
            return self._apply("power", a, option=exponent)
        if exponent < 0:
            return self.divide(self.number(1), self.power(a, -exponent))
        if exponent < 2:
            return a if exponent else self.broadcast(self.number(1), a.shape)
        half = self.square(self.power(a, exponent // 2))
        return self.multiply(half, a) if exponent % 2 else half

    def primitive(self, name: str, a: Value) -> NodeValue:
        return self._apply("function", a, option=name)

    def library(
        self, formula: Callable[..., Value], limit: int, inputs: Sequence[Value], *beside: Any
    ) -> Value:
        if not self.derived:
            return super().library(formula, limit, inputs, *beside)
        values = [*inputs, *(item for item in beside if isinstance(item, Value))]
        others = tuple(None if isinstance(item, Value) else item for item in beside)
        shape = np.broadcast_shapes(*(value.shape for value in inputs))
        call = Library(formula, limit, len(inputs), others)
        return self._apply("library", *values, option=call, shape=shape)

    # --- reductions --------------------------------------------------------------------------

    sum, max, pivot = (_made(name, reduces=True) for name in ("sum", "max", "pivot"))
    mean, norm, prod = (_made(name, True, reduces=True) for name in ("mean", "norm", "prod"))

    def _reduced(self, op: str, a: Value, axis: int = -1) -> Value:
        axis = axis % len(taken(a).shape)
        if not self.derived and op != "pivot" and a.shape[axis] == 1:
            return a
        shape = (*a.shape[:axis], 1, *a.shape[axis + 1 :])
        return self._apply(op, a, option=axis - len(a.shape), shape=shape)

    def welford(self, a: Value, axis: int = -1) -> tuple[Value, Value]:
        if not self.derived:
            return super().welford(a, axis)
        moments = self._reduced("welford", a, axis)
        mean, squares = (
            self._apply("item", moments, option=k, shape=moments.shape) for k in range(2)
        )
        return mean, squares

    def share_of_max(self, a: Value, largest: Value, axis: int = -1) -> NodeValue:
        return self._apply("share_of_max", a, largest, option=axis)

    def cumsum(self, a: Value, axis: int = -1) -> NodeValue:
        return self._apply("cumsum", a, option=axis)

    def others(self, a: Value, axis: int = -1) -> Value:
        return self._apply("others", a, option=axis) if self.derived else super().others(a, axis)

    def matmul(self, a: Value, b: Value) -> NodeValue:
        batch = np.broadcast_shapes(taken(a).shape[:-2], taken(b).shape[:-2])
        return self._apply("matmul", a, b, shape=(*batch, a.shape[-2], b.shape[-1]))

    def newton_schulz(self, x: Value, a: Value, b: Value, c: Value, steps: int) -> Value:
        if not self.derived:
            return super().newton_schulz(x, a, b, c, steps)
        return self._apply("newton_schulz", x, a, b, c, option=steps, shape=taken(x).shape)

    def logaddexp(self, a: Value, b: Value, log1p: bool = True) -> Value:
        if not self.derived:
            return super().logaddexp(a, b, log1p)
        return self._apply("logaddexp", a, b, option=log1p)

    def scatter_add(self, a: Value, index: Index, length: int) -> NodeValue:
        shape = (length, *taken(a).shape[np.ndim(index) :])
        return self._apply("scatter_add", a, option=(self._keep(index), length), shape=shape)

    # --- what a kernel may do ----------------------------------------------------------------

    def narrow(self, a: Value, format: str) -> Value:
        return (
            self._apply("narrow", a, option=format) if self.derived else super().narrow(a, format)
        )

    # --- choice ------------------------------------------------------------------------------

    def less(self, a: Value, b: Value) -> Mask:
        """A Mask of conditions: certainly less, and certainly not."""
        nodes = node_of(a), node_of(b)
        sides = [Condition(self, self.node(op, *nodes)) for op in ("less", "not less")]
        return Mask(*cast(Any, sides))

    def where(self, mask: Mask | npt.NDArray[np.bool_], a: Value, b: Value) -> NodeValue:
        if isinstance(mask, Mask):
            yes, no = (self.condition("is", side) for side in (mask.yes, mask.no))
        else:
            yes, no = self.condition("is", mask), self.condition("not", mask)
        return NodeValue(self, self.node("where", yes.node, no.node, node_of(a), node_of(b)))

    def step(self, a: Value, grid: NumberGrid) -> NodeValue:
        return self._apply("step", a, option=grid)

    # --- shape -------------------------------------------------------------------------------

    def reshape(self, a: Value, shape: Any) -> Value:
        shape = tuple(shape)
        if -1 not in shape and _without_ones(shape) == _without_ones(taken(a).shape):
            return self._apply("broadcast", a, shape=shape)
        return super().reshape(a, shape)

    def broadcast(self, a: Value, shape: Any) -> Value:
        return self._apply("broadcast", a, shape=np.broadcast_shapes(taken(a).shape, tuple(shape)))

    def take_along_axis(self, a: Value, index: Index, axis: int = -1) -> Value:
        """One element of each row, by `pick`."""
        last = axis % len(taken(a).shape) == len(a.shape) - 1
        if not last or index.shape != (*a.shape[:-1], 1):
            return super().take_along_axis(a, index, axis)
        length = a.shape[-1]
        if index.size and not -length <= index.min() <= index.max() < length:
            raise IndexError(f"An index of {index.min()} to {index.max()} into rows of {length}.")
        return self._apply("pick", a, option=self._keep(index), shape=index.shape)

    def rearrange(self, change: Any, *values: Value) -> NodeValue:
        shapes = [taken(value).shape for value in values]
        ends = list(itertools.accumulate(int(np.prod(shape)) for shape in shapes))
        if ends[-1] > _LARGEST:
            empty = (np.broadcast_to(np.float64(0.0), shape) for shape in shapes)
            return self._apply(
                "move", *values, option=Move(change, None), shape=change(*empty).shape
            )
        places = np.split(np.arange(ends[-1]), ends[:-1])
        sources = change(*(part.reshape(shape) for part, shape in zip(places, shapes, strict=True)))
        key = "move", sources.tobytes(), sources.shape, *shapes
        move = self._known.setdefault(key, Move(change, sources))
        return self._apply("move", *values, option=move, shape=sources.shape)


def record(formula: Callable[..., Any], arguments: Mapping[str, Any]) -> Graph:
    """The graph of formula(xp, **arguments). Values among the arguments, also in lists, are its
    inputs. Raises Untraceable where the formula does what no graph holds."""
    xp = Record()
    names = {id(value): name for name, value in values_of(arguments)}

    def entered(item: Any) -> Any:
        if isinstance(item, Value):
            return xp.input(names[id(item)], item.shape)
        return type(item)(map(entered, item)) if isinstance(item, list | tuple) else item

    outputs = formula(xp, **{name: entered(item) for name, item in arguments.items()})
    outputs = outputs if isinstance(outputs, tuple) else (outputs,)
    nodes = tuple(None if output is None else node_of(output) for output in outputs)
    return Graph(nodes, xp.nodes, xp.arrays)


def node_of(value: Value) -> Node:
    """The node of a formula's value."""
    if not isinstance(value, NodeValue):
        raise not_a_value(value)
    return value.node


def _without_ones(shape: Shape) -> Shape:
    """The shape from its first axis on that is longer than 1."""
    first = next((k for k, length in enumerate(shape) if length != 1), len(shape))
    return shape[first:]
