"""Questions to a kernel, drawn by Hypothesis according to an op's signature.

    from hypothesis import given, settings
    from refkernels.testing import strategies

    @given(strategies.cases("softmax", dtype="float32"))
    @settings(deadline=None)  # the first example loads the compiled kernels
    def test_my_softmax(case):
        case.check(my_softmax(**case.inputs, **case.params))

An axis that several arrays share has one length in all of them. Leading axes are drawn, and so is
the presence of optional inputs. Hypothesis shrinks a failure to few and simple numbers.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from refkernels import registry
from refkernels.arguments import as_mapping
from refkernels.arithmetic import formats
from refkernels.op import Case, Direction, Op
from refkernels.ops.letters import Argument, Signature
from refkernels.suggestion import did_you_mean, quoted
from refkernels.testing.cases import KernelCase

try:
    from hypothesis import assume
    from hypothesis import strategies as st
    from hypothesis.extra.numpy import array_shapes, arrays
except ModuleNotFoundError:
    raise ModuleNotFoundError(
        "refkernels.testing.strategies needs Hypothesis: pip install hypothesis"
    ) from None

Elements = st.SearchStrategy[Any]

_LARGE = 1000.0


def cases(
    op: str | Op,
    dtype: Any = "float32",
    direction: Direction = "forward",
    params: Mapping[str, Any] | None = None,
    *,
    elements: Elements | Mapping[str, Elements] | None = None,
    lengths: Mapping[str, int | Elements] | None = None,
    max_length: int = 8,
) -> st.SearchStrategy[KernelCase]:
    """A strategy of `KernelCase`: inputs of the op's signature, with these params.

    op          a name that `refkernels.registry` knows, or an `Op` of your own
    elements    of the floating inputs, rounded to dtype; or of inputs by name. By default numbers
                up to 1000, and now and then any finite number of the format. Whole numbers are
                drawn below every length (they are classes, rows of a table, positions), unless
                their name is here
    lengths     of axes, by the letter of the signature (docs/ops has it): {"n": 64}
    max_length  of the other axes, which have at least one element

    What the op refuses (an odd length where it takes pairs) is not drawn. Raises ValueError for an
    unknown op, dtype, direction, param, input or letter, and for a `max_length` below 1; TypeError
    for `elements` or `lengths` of another type.
    """
    record, format = registry.get(op), formats.get(dtype).name
    if direction not in record.directions:
        raise ValueError(f"{record.name} has no direction {quoted(str(direction))}.")
    if max_length < 1:
        raise ValueError(f"max_length is {max_length}: an axis has at least one element.")
    signature = _signature(record)
    shared_elements = elements if isinstance(elements, st.SearchStrategy) else None
    by_name = {} if shared_elements is not None else as_mapping(elements, "elements")
    _check_names(by_name, record.takes(direction), "input")
    _check_names(params or {}, record.params, "param")
    letters = {letter for argument in signature.takes.values() for letter in argument.own}
    fixed = as_mapping(lengths, "lengths")
    _check_names(fixed, letters, "letter")
    default = shared_elements if shared_elements is not None else _numbers(format)
    sizes = {letter: _length(fixed.get(letter), max_length) for letter in sorted(letters)}
    settings = {**record.params, **(params or {})}

    @st.composite
    def drawn(draw: st.DrawFn) -> KernelCase:
        leading = draw(array_shapes(min_dims=0, max_dims=2, max_side=max_length))
        shape = {letter: draw(size) for letter, size in sizes.items()}
        inputs: dict[str, npt.NDArray[Any]] = {}
        for name, argument in signature.takes.items():
            if argument.optional and not draw(st.booleans()):
                continue
            rows = leading if argument.rows else ()
            axes = (*rows, *(shape[letter] for letter in argument.own))
            if argument.kind in ("float", "low"):
                values = draw(arrays(np.float64, axes, elements=by_name.get(name, default)))
                inputs[name] = formats.round_to(values, format)
            else:
                integers = by_name.get(name) or _integers(argument, shape)
                kind = np.bool_ if argument.kind == "bool" else np.int64
                inputs[name] = draw(arrays(kind, axes, elements=integers))
        return KernelCase(record, direction, format, case(draw, inputs))

    def case(draw: st.DrawFn, inputs: dict[str, npt.NDArray[Any]]) -> Case:
        try:
            output = record.cotangent[1:] or record.outputs[0]
            plain = record.plain("forward", inputs, settings, formats.get(format))[output]
        except ValueError:  # the op refuses these shapes
            assume(False)
            raise
        if direction == "backward":
            cotangents = by_name.get(record.cotangent, default)
            values = draw(arrays(np.float64, np.shape(plain), elements=cotangents))
            inputs = {record.cotangent: formats.round_to(values, format), **inputs}
        return Case(
            f"{record.name}/drawn", record.name, "drawn", {}, 0, lambda _: (dict(inputs), settings)
        )

    return drawn()


def _signature(op: Op) -> Signature:
    """The op's signature; that of an elementwise op without formulas is its inputs, all alike."""
    if op.definition is not None:
        return op.definition.of("forward").signature
    return Signature({name: Argument(name, ("...",)) for name in op.inputs}, {}, frozenset())


def _numbers(format: str) -> Elements:
    limit = formats.get(format).max
    usual = st.floats(-min(_LARGE, limit), min(_LARGE, limit))
    return usual | usual | usual | st.floats(-limit, limit)


def _integers(argument: Argument, shape: Mapping[str, int]) -> Elements:
    if argument.kind == "bool":
        return st.booleans()
    return st.integers(0, min(shape.values(), default=2) - 1)


def _length(fixed: int | Elements | None, longest: int) -> Elements:
    if fixed is None:
        return st.integers(1, longest)
    return st.just(fixed) if isinstance(fixed, int) else fixed


def _check_names(names: Mapping[str, Any], allowed: Any, kind: str) -> None:
    if unknown := [name for name in names if name not in allowed]:
        advice = did_you_mean(unknown[0], sorted(allowed)) if allowed else "it has none"
        raise ValueError(f"The op has no {kind} {quoted(unknown[0])}: {advice}.")
