"""TorchProgram: a function or module of a framework as data, and its strict reading.

    read(document, arrays)        of what `frameworks/remote/exporter.py` writes

A program has inputs, nodes in the order in which they are computed, and outputs. A node is one
call of an operator with the shapes and dtypes of what it gives and the line of the user's code.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from refkernels.arithmetic import formats
from refkernels.suggestion import quoted

Array = npt.NDArray[Any]
SCHEMA = 1
LERP = "aten.lerp.Tensor"
KINDS = ("input", "parameter", "buffer", "constant", "cotangent")
WHOLE = ("bool", "uint8", "int8", "int16", "int32", "int64")


class ProgramError(ValueError):
    """A program that cannot be read or has no oracle, in one sentence."""


class Ref(NamedTuple):
    """The result of another node, as an argument."""

    node: str


class Dtype(NamedTuple):
    """A dtype as an argument."""

    name: str


@dataclass(frozen=True)
class Tensor:
    """The shape and the dtype of a result."""

    shape: tuple[int, ...]
    dtype: str

    @property
    def is_float(self) -> bool:
        return self.dtype not in WHOLE


@dataclass(frozen=True, eq=False)
class ProgramInput:
    """An array that a program takes: `kind` as in KINDS, `array` the value that it has unless it is
    given; of an input, which must be given, an example. Of a cotangent it is 0."""

    node: str
    name: str
    kind: str
    tensor: Tensor
    array: Array


@dataclass(frozen=True, eq=False)
class Step:
    """One call. `gives`: what it gives, several where `several`; `value`: the result, where it is
    known beforehand."""

    name: str
    operator: str
    arguments: tuple[Any, ...]
    gives: tuple[Tensor | None, ...]
    several: bool
    line: str
    value: Array | None

    @property
    def tensor(self) -> Tensor:
        """What it gives, the first of several."""
        return next(tensor for tensor in self.gives if tensor is not None)

    @property
    def place(self) -> str:
        """For messages: the node, and the line of the user's code."""
        return f"{self.name}, {self.line}" if self.line else self.name

    @property
    def needs(self) -> list[str]:
        """The nodes whose results it takes."""
        return list(_refs(self.arguments))


class Larger(NamedTuple):
    """A task's file at its own sizes, or with some of its integers made smaller: `text`, `sizes`
    as in a program; `terms`: how many numbers one of its results adds."""

    text: str
    sizes: Mapping[str, int]
    terms: int


@dataclass(frozen=True, eq=False)
class TorchProgram:
    """A program. `custom_gradients`: what it computes the gradient of by rules of its own; `joint`:
    the framework's program of the gradients, whose inputs have the names of these and whose outputs
    are the gradients of the inputs `gradients`, or why there is none; `sizes`: the integers of its
    file that were made smaller, and `text` the file with them; `larger`: those at which a machine
    can run it."""

    name: str
    inputs: tuple[ProgramInput, ...]
    nodes: tuple[Step, ...]
    outputs: tuple[str, ...]
    framework: str
    custom_gradients: tuple[str, ...] = ()
    tensors: Mapping[str, Tensor] = field(default_factory=dict)
    sizes: Mapping[str, int] = field(default_factory=dict)
    text: str = ""
    larger: tuple[Larger, ...] = ()
    joint: TorchProgram | str = ""
    gradients: tuple[str, ...] = ()

    @property
    def dtype(self) -> str:
        """The dtype of its first input of floats, or of its first parameter."""
        floats = [item for item in self.inputs if item.tensor.is_float]
        ordered = sorted(floats, key=lambda item: KINDS.index(item.kind))
        return ordered[0].tensor.dtype if ordered else "float32"

    @cached_property
    def widened(self) -> TorchProgram:
        """The same for inputs in float64: what is float32 is float64, and so are its scalars."""

        def wide(given: Any) -> Any:
            if isinstance(given, tuple):
                return tuple(map(wide, given))
            return replace(given, dtype="float64") if given and given.dtype == "float32" else given

        tensors = {name: wide(given) for name, given in self.tensors.items()}
        nodes = tuple(replace(node, gives=wide(node.gives)) for node in self.nodes)
        inputs = tuple(replace(item, tensor=wide(item.tensor)) for item in self.inputs)
        return replace(self, inputs=inputs, nodes=nodes, tensors=tensors)


def _refs(arguments: Iterable[Any]) -> Iterator[str]:
    for item in arguments:
        if isinstance(item, Ref):
            yield item.node
        elif isinstance(item, list):
            yield from _refs(item)


def read(document: Mapping[str, Any], arrays: Mapping[str, Array], name: str) -> TorchProgram:
    """The program of a document and its arrays. Raises ProgramError, which says what is wrong."""
    if "error" in document:
        raise ProgramError(f"{name}: {document['error']}.")
    if document.get("schema") != SCHEMA:
        raise ProgramError(
            f"{name} was exported by schema {document.get('schema')}, but this version reads "
            f"{SCHEMA}: export it again."
        )
    try:
        return _Reader(name, arrays).program(document)
    except (KeyError, TypeError, AttributeError, IndexError) as error:
        raise ProgramError(
            f"{name} is no program: {type(error).__name__} at {quoted(str(error))}."
        ) from None


class _Reader:
    def __init__(self, name: str, arrays: Mapping[str, Array]) -> None:
        self.name, self.arrays = name, arrays
        self.tensors: dict[str, Any] = {}
        self.steps: dict[Any, Step] = {}

    def fail(self, said: str) -> ProgramError:
        return ProgramError(f"{self.name} is no program: {said}.")

    def program(self, document: Mapping[str, Any]) -> TorchProgram:
        inputs = tuple(self.input(item) for item in document["inputs"])
        names = [item.name for item in inputs]
        if twice := {name for name in names if names.count(name) > 1}:
            raise self.fail(f"two inputs are called {min(twice)}")
        nodes = tuple(self.node(item) for item in document["nodes"])
        outputs = tuple(map(self.known, document["outputs"]))
        sizes = {str(k): int(v) for k, v in document.get("sizes", {}).items()}
        custom = tuple(map(str, document["custom_gradients"]))
        larger = tuple(Larger(*item) for item in document.get("larger", ()))
        joint, gradients = document.get("joint", {}), tuple(document.get("gradients", ()))
        own = _Reader(f"{self.name}'s gradient", self.arrays)
        joint = own.program(joint) if "schema" in joint else str(joint.get("error", ""))
        read = self.name, inputs, nodes, outputs, f"torch {document['torch']}", custom
        text = str(document.get("text", ""))
        return TorchProgram(*read, self.tensors, sizes, text, larger, joint, gradients)

    def tensor(self, item: Mapping[str, Any], where: str) -> Tensor:
        shape, dtype = tuple(item["shape"]), item["dtype"]
        if not all(type(length) is int and length >= 0 for length in shape):
            raise self.fail(f"{where} has the shape {list(shape)}")
        if dtype not in WHOLE and dtype not in formats.FORMATS:
            raise ProgramError(f"{self.name}: {where} is {dtype}, which no oracle takes.")
        return Tensor(shape, dtype)

    def array(self, number: Any, tensor: Tensor, where: str) -> Array:
        if number not in self.arrays:
            raise self.fail(f"{where} has no array {number}")
        dtype = np.dtype(tensor.dtype) if tensor.dtype in WHOLE else formats.get(tensor.dtype).dtype
        array = self.arrays[number]
        if dtype is None or array.dtype.itemsize != dtype.itemsize or array.shape != tensor.shape:
            raise self.fail(f"the array of {where} is {array.dtype}{list(array.shape)}")
        return array if array.dtype == dtype else array.view(dtype)

    def known(self, name: Any) -> str:
        if name not in self.tensors:
            raise self.fail(f"nothing before gives {name}")
        return str(name)

    def defined(self, name: Any, given: Any) -> str:
        if not isinstance(name, str) or name in self.tensors:
            raise self.fail(f"{name} is defined twice")
        self.tensors[name] = given
        return name

    def input(self, item: Mapping[str, Any]) -> ProgramInput:
        name, kind, tensor = item["name"], item["kind"], self.tensor(item, item["name"])
        if kind not in KINDS:
            raise self.fail(f"{name} is of the kind {kind}")
        if kind == "cotangent":
            array = np.zeros(tensor.shape, formats.get(tensor.dtype).dtype)
        else:
            array = self.array(item["array"], tensor, name)
        return ProgramInput(self.defined(item["node"], tensor), name, kind, tensor, array)

    def node(self, item: Mapping[str, Any]) -> Step:
        name = str(item["name"])
        arguments = tuple(self.argument(part, name) for part in item["arguments"])
        operator, line, several = str(item["operator"]), str(item["line"]), bool(item["several"])
        place = f"{name} ({line})" if item["line"] else name
        gives = tuple(part and self.tensor(part, place) for part in item["gives"])
        value = self.array(item["value"], gives[0], name) if item["value"] is not None else None
        self.defined(name, gives if several else gives[0])
        self.steps[Ref(name)] = Step(name, operator, arguments, gives, several, line, value)
        return self.interpolated(Ref(name))

    def interpolated(self, call: Ref) -> Step:
        """A step; x + t (y - x) is one operator, which other kernels compute as two products."""
        step = self.steps[call]
        for x, product in self.operands("add", call):
            for difference, t in self.operands("mul", product):
                for y, start in self.operands("sub", difference)[:1]:
                    if start == x and step.tensor.is_float:
                        return replace(step, operator=LERP, arguments=(x, y, t, product))
        return step

    def operands(self, name: str, call: Any) -> list[tuple[Any, Any]]:
        """Both orders of the two operands of a call, if it is of this operator."""
        step = self.steps.get(call)
        if step is None or step.operator != f"aten.{name}.Tensor" or step.value is not None:
            return []
        a, b, *factor = step.arguments
        return [(a, b), (b, a)] if factor in ([], [1]) else []

    def argument(self, item: Any, where: str) -> Any:
        if isinstance(item, list):
            return [self.argument(part, where) for part in item]
        if not isinstance(item, Mapping):
            return item
        ((kind, value),) = item.items()
        if kind == "node":
            return Ref(self.known(value))
        if kind == "dtype":
            return Dtype(value)
        if kind == "float" and value in ("inf", "-inf", "nan"):
            return float(value)
        raise self.fail(f"{where} takes an argument of the kind {kind} {value}")
