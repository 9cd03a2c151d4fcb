"""The roles of printed tensors: by the options, by the names in the text, else by shapes.

A name gives a role if one of its words is an input's (x, weight, input, labels), an output's (y,
mean, dx) or an answer's (expected, got, torch output), or if it is a call of the op. The remaining
tensors are assigned by shape, if exactly one assignment fits the op's shapes, or if one alone has a
right answer.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from refkernels.op import Direction, Op
from refkernels.printed import digits
from refkernels.printed.digits import called
from refkernels.printed.text import Printed
from refkernels.suggestion import did_you_mean

_MOST_UNNAMED = 6  # unnamed tensors, which are tried in every order
_MOST_ASSIGNED = 24  # ways that fit, of which one may have a right answer
_CHOICE = re.compile(r"(?:(?P<kernel>[^:=]+):)?(?P<name>[^:=]+)=(?P<number>\d{1,9})")
_SYNONYMS = {
    "weight": {"w", "gamma", "kernel"},
    "bias": {"b", "beta"},
    "target": {"targets", "label", "labels"},
    "mask": {"masks"},
}
_FIRST_INPUT = {"input", "inputs", "inp", "输入"}
_ANSWERS = {
    "out", "output", "outputs", "result", "results", "res", "expected", "expect", "want", "actual",
    "got", "ours", "theirs", "reference", "ref", "answer", "y", "输出", "结果", "期望", "实际",
}  # fmt: skip
_OWNERS = _ANSWERS - {"out", "output", "outputs", "result", "results", "res", "y", "输出", "结果"}
_FRAMEWORKS = {
    "torch": "torch",
    "pytorch": "torch",
    "pt": "torch",
    "paddle": "paddle",
    "pd": "paddle",
    "oneflow": "oneflow",
    "flow": "oneflow",
    "mindspore": "mindspore",
    "ms": "mindspore",
    "numpy": "numpy",
    "np": "numpy",
    "jax": "jax",
    "tf": "tensorflow",
    "tensorflow": "tensorflow",
}
_GRADIENTS = {"grad", "gradient", "grads", "梯度"}
_PROSE = 4  # a name of so many words is prose, in which a single letter gives no role


@dataclass
class Roles:
    """The tensors by input, and by kernel and output."""

    inputs: dict[str, Printed] = field(default_factory=dict)
    outputs: dict[str, dict[str, Printed]] = field(default_factory=dict)

    def taken(self) -> set[int]:
        """The numbers of the tensors that have a role."""
        answers = [tensor for outputs in self.outputs.values() for tensor in outputs.values()]
        return {tensor.number for tensor in [*self.inputs.values(), *answers]}


def assign(
    op: Op,
    direction: Direction,
    tensors: Sequence[Printed],
    inputs: Sequence[str] = (),
    outputs: Sequence[str] = (),
    params: Mapping[str, Any] | None = None,
    has_right_answer: Callable[[Roles], bool] = lambda roles: False,
) -> Roles:
    """Assign each tensor its role. `inputs` (x=1) and `outputs` (torch=3, torch:dx=3) name tensors
    by their places in the text.

    Raises ValueError, one sentence, which lists the tensors if the roles are not clear.
    """
    roles = Roles()
    for text in inputs:
        name, _, tensor = _parsed_choice("--input", text, tensors)
        if name not in op.takes(direction):
            meant = did_you_mean(name, op.takes(direction), "it takes")
            raise ValueError(f"{op.name} {direction} takes no {name!r}: {meant}.")
        if name in roles.inputs:
            raise ValueError(f"--input gives {name!r} twice: leave one of them out.")
        roles.inputs[name] = tensor
    for text in outputs:
        name, kernel, tensor = _parsed_choice("--output", text, tensors)
        names = op.names(direction)
        if kernel and name not in names:
            raise ValueError(f"{op.name} {direction} gives {', '.join(names)}, not {name!r}.")
        output = name if name in names else names[0]
        _add_output(roles, kernel or ("kernel" if name in names else name), output, tensor)
    bare = [tensor for tensor in tensors if tensor.bare]
    _by_names(op, direction, [t for t in tensors if not t.bare], roles, bool(outputs))
    if not roles.outputs:  # an answer of one number may be printed as such
        _by_names(op, direction, [t for t in bare if _is_answer(op, direction, t)], roles, False)
    if (
        any(name not in roles.inputs for name in _required_inputs(op, direction))
        or not roles.outputs
    ):
        unclear = [tensor for tensor in tensors if not tensor.bare]
        return _by_shapes(op, direction, unclear, roles, params or {}, has_right_answer)
    return roles


def _is_answer(op: Op, direction: Direction, tensor: Printed) -> bool:
    role = _role(op, direction, tensor)
    return role is not None and role[1] is not None


def _parsed_choice(
    option: str, text: str, tensors: Sequence[Printed]
) -> tuple[str, str | None, Printed]:
    parts = _CHOICE.fullmatch(text)
    if parts is None:
        example = "x=1" if option == "--input" else "torch=3"
        raise ValueError(
            f"{option} {text!r} is not NAME=NUMBER: with --pasted it gives a tensor's place in the "
            f"text, such as {example}."
        )
    number = int(parts["number"])
    if not 1 <= number <= len(tensors):
        raise ValueError(f"{option} {text!r}: there is no tensor {number}. {_list_of(tensors)}")
    return parts["name"], parts["kernel"], tensors[number - 1]


def _required_inputs(op: Op, direction: Direction) -> list[str]:
    return [name for name in op.takes(direction) if name not in op.optional]


def _add_output(roles: Roles, kernel: str, output: str, tensor: Printed) -> None:
    """Add an output under its kernel's name; a second one of that name gets its number too."""
    known = roles.outputs.get(kernel, {}).get(output)
    if known is not None:
        if known.texts == tensor.texts and known.shape == tensor.shape:
            return
        kernel = f"{kernel} ({tensor.number})"
    roles.outputs.setdefault(kernel, {})[output] = tensor


def _by_names(
    op: Op, direction: Direction, tensors: Sequence[Printed], roles: Roles, outputs_given: bool
) -> None:
    taken = roles.taken()
    fixed = set(roles.inputs)
    for tensor in tensors:
        if tensor.number in taken:
            continue
        role = _role(op, direction, tensor)
        if role is None:
            continue
        name, kernel = role
        if kernel is not None:
            if not outputs_given:
                _add_output(roles, kernel, name, tensor)
        elif name not in roles.inputs:
            roles.inputs[name] = tensor
        elif name not in fixed and not _same_numbers(roles.inputs[name], tensor):
            rivals = f"{called(roles.inputs[name])} and {called(tensor)}"
            raise ValueError(
                f"Tensors {rivals} may both be {name}: say which with --input {name}=NUMBER. "
                f"{_list_of(tensors)}"
            )


def _same_numbers(a: Printed, b: Printed) -> bool:
    return (a.texts, a.shape, a.scale) == (b.texts, b.shape, b.scale)


def _role(op: Op, direction: Direction, tensor: Printed) -> tuple[str, str | None] | None:
    """(input, None), (output, kernel), or None if the name gives neither."""
    if not tensor.name:
        return None
    words = [word.lower() for word in re.findall(r"[A-Za-z]+|[\u4e00-\u9fff]+", tensor.name)]
    telling = {word for word in words if len(word) > 1 or len(words) < _PROSE}
    telling |= {part for word in words for part in (*_FIRST_INPUT, *_ANSWERS) if not part.isascii()
              and part in word}  # fmt: skip
    takes, gives = op.takes(direction), op.names(direction)
    kernel = next((_FRAMEWORKS[word] for word in words if word in _FRAMEWORKS), "")
    sides = [word for word in words if word in _OWNERS]
    own = tensor.name if tensor.bare else ""
    owner = kernel or (sides[0] if sides else "") or tensor.framework or own or "kernel"
    if telling & _GRADIENTS or re.search(r"梯度", tensor.name):
        source = next((name for name in op.inputs if _means(op, name, telling)), None)
        if source is not None and f"d{source}" in gives:
            return f"d{source}", owner
        return None
    call = re.search(r"([A-Za-z]\w*)\(", tensor.name)
    if call and call[1].lower().replace("_", "").removeprefix("my") == op.name.replace("_", ""):
        return gives[0], owner
    for name in takes:
        if name in telling or (_means(op, name, telling) and not telling & {"output", "out"}):
            return name, None
    for name in gives:
        if name in telling:
            return name, owner
    if direction == "forward" and (telling & _ANSWERS or kernel):
        return gives[0], owner
    return None


def _means(op: Op, name: str, words: set[str]) -> bool:
    first = _FIRST_INPUT if name == op.inputs[0] else set()
    return bool(({name} | _SYNONYMS.get(name, set()) | first) & words)


def _by_shapes(
    op: Op,
    direction: Direction,
    tensors: Sequence[Printed],
    roles: Roles,
    params: Mapping[str, Any],
    has_right_answer: Callable[[Roles], bool],
) -> Roles:
    """The roles, with the remaining tensors in the only way that fits."""
    taken = roles.taken()
    remaining: list[Printed] = []
    for tensor in tensors:
        if tensor.number not in taken and not any(
            _same_numbers(tensor, other) for other in remaining
        ):
            remaining.append(tensor)
    unnamed = [tensor for tensor in remaining if not tensor.name] or remaining
    if any(tensor.shape is None for tensor in unnamed):
        digits.intervals(next(tensor for tensor in unnamed if tensor.shape is None))  # raises
    assigned: list[Roles] = []
    for inputs, answers in (
        _assignments(op, direction, unnamed, roles, params) if _few_enough(unnamed) else ()
    ):
        outputs = {kernel: {**by_output} for kernel, by_output in roles.outputs.items()}
        assigned.append(Roles({**roles.inputs, **inputs}, outputs))
        for tensor in answers:
            kernel = tensor.framework or "kernel"
            _add_output(assigned[-1], kernel, op.names(direction)[0], tensor)
    if 1 < len(assigned) <= _MOST_ASSIGNED:
        right = list(filter(has_right_answer, assigned))
        assigned = right if len(right) == 1 else assigned
    if len(assigned) != 1:
        missing = [name for name in _required_inputs(op, direction) if name not in roles.inputs]
        how_many = "several ways fit" if assigned else "nothing fits"
        cause = f"{how_many} the op's shapes"
        if not _few_enough(unnamed):
            cause = "they are too many to try"
        options = [*(f"--input {name}=NUMBER" for name in missing)]
        if not roles.outputs:
            options.append("--output torch=NUMBER")
        raise ValueError(
            f"It is unclear which tensor is which, {cause}: name them with "
            f"{' and '.join(options)}. {_list_of(tensors)}"
        )
    return assigned[0]


def _few_enough(tensors: Sequence[Printed]) -> bool:
    return len(tensors) <= _MOST_UNNAMED


def _assignments(
    op: Op,
    direction: Direction,
    remaining: Sequence[Printed],
    roles: Roles,
    params: Mapping[str, Any],
) -> Iterator[tuple[dict[str, Printed], list[Printed]]]:
    """Every assignment of roles to all remaining tensors: the inputs by name, and the answers."""
    missing = [name for name in _required_inputs(op, direction) if name not in roles.inputs]
    spare = [name for name in op.takes(direction) if name in op.optional]
    spare = [name for name in spare if name not in roles.inputs]
    for count in range(len(spare) + 1):
        for added in itertools.combinations(spare, count):
            names = [*missing, *added]
            if len(names) > len(remaining) - (not roles.outputs):
                continue
            for chosen in itertools.permutations(remaining, len(names)):
                answers = [tensor for tensor in remaining if tensor not in chosen]
                inputs = dict(zip(names, chosen, strict=True))
                shape = _shape(op, direction, {**roles.inputs, **inputs}, params)
                first = op.names(direction)[0]
                known = [
                    by_output[first] for by_output in roles.outputs.values() if first in by_output
                ]
                fits = all(tensor.shape == shape for tensor in (*answers, *known))
                if shape is not None and fits:
                    yield inputs, answers


def _shape(
    op: Op, direction: Direction, inputs: Mapping[str, Printed], params: Mapping[str, Any]
) -> tuple[int, ...] | None:
    """The first output's shape; None if the inputs do not fit."""
    first = op.names(direction)[0]
    try:
        intervals = {name: digits.intervals(tensor) for name, tensor in inputs.items()}
        arrays = {
            name: interval.mid if interval.format else interval.middle
            for name, interval in intervals.items()
        }
        if op.definition is None:
            shapes = {array.shape for array in arrays.values()}
            return next(iter(shapes)) if len(shapes) == 1 else None
        question = op.definition.question(direction, arrays, {**op.params, **params})
        whole = np.zeros(question.shapes[first])
        return tuple(question.restore(first, whole).shape)
    except (ValueError, TypeError, AttributeError):
        return None


def _list_of(tensors: Sequence[Printed]) -> str:
    """The list of tensors, for a choice."""
    shown = "; ".join(map(str, tensors[:20]))
    more = f"; and {len(tensors) - 20} more" if len(tensors) > 20 else ""
    return f"The text has {shown}{more}."
