"""A kernel's outputs: their names, their shapes, and the format that each is judged in.

**Formats.** Each output is judged in its own format F, by the op's bound for F on the inputs as
given. That bound is proven for kernels that compute in W (binary32 where F has 16 bits, otherwise F
itself) and round once to F.

- *Inputs narrower than F* (bfloat16 in, float32 out) are exact in W, like any others. F's bound
  allows no rounding to the inputs' format on the way, because F needs none.
- *Inputs wider than F* (float32 in, bfloat16 out; float64 in, float32 out). A kernel that computes
  in the inputs' format, with an error of at most B', and rounds once keeps to F's bound B. Where
  W != F, B is an error in W rounded once to F, and B' is no larger than that error. Where W = F, u'
  of the inputs' format is at most 2^-29 u. The bound of matmul or linear is B = K u P + ..., with
  |z| <= P, and the rounding is at most u / (1 + u) (|z| + B') with B' = K u' P + ...: as
  u^2 P > 2 u' P, this and B' are at most B for K = 1, and for K > 1 the other K - 1 terms are far
  larger. LayerNorm's bounds hold 4 u |z|. A library limit of L ulp is raised to half an ulp and L
  ulp of the finer format, where that is more (`elementwise.bounds`). Every other bound is read from
  a formula, and counts u |z| for a rounding. A rounding takes u / (1 + u) |z| of it at most. More
  than 2 u' |z| remains, which covers the same rounding in the inputs' format; earlier errors are at
  most 2^-29 of those in F. Where an op rounds nothing (relu, hardswish beyond 3), B is the rounding
  of its input to F, u |x|, and 0 where F holds the input: the answer is then one of F's numbers.
  A result that is subnormal in F loses up to half a subnormal, which is added
  (`truth.with_underflow`). A kernel that first rounds its inputs to F answers another question, and
  is judged by this one.
- *Outputs of several formats* (y in bfloat16, mean and rstd in float32, as in Triton's tutorial).
  LayerNorm's bound for y in 16 bits assumes statistics in binary32, whatever format their copies
  are stored in, so it stays the same; statistics in float32 have binary32's bound. dx in 16 bits
  may come from statistics stored in 16 bits, whatever dweight's format: its bound allows for that,
  and that of dweight in float32 does not.

**Shapes.** Statistics may keep the axes that they are taken over: (4, 1) for (4,).
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from refkernels.arithmetic.enclosure import Enclosure
from refkernels.arithmetic.formats import Format
from refkernels.op import Arrays, Direction, Op
from refkernels.range_limits import RangeLimits
from refkernels.suggestion import nearest
from refkernels.truth import Truth

Array = npt.NDArray[Any]
_NUMBERS = (bool, int, float, complex, str, bytes, np.generic)


@dataclass(frozen=True)
class Asked:
    """The truth of each output in its own format; outputs of one format share one truth."""

    truths: Mapping[str, Truth]

    @property
    def reference(self) -> dict[str, Enclosure]:
        """The certified answers."""
        return {name: truth.reference[name] for name, truth in self.truths.items()}

    @property
    def bound(self) -> dict[str, npt.NDArray[np.float64]]:
        """The error bounds of stable kernels."""
        return {name: truth.bound()[name] for name, truth in self.truths.items()}

    @property
    def limits(self) -> dict[str, RangeLimits]:
        """What limits the answers besides rounding."""
        return {name: truth.range_limits() for name, truth in self.truths.items()}

    @property
    def plain(self) -> dict[str, Array]:
        """The plain algorithm's answers."""
        return {name: truth.plain()[name] for name, truth in self.truths.items()}

    def right(self, output: str) -> Iterator[Array]:
        """Right answers to compare an output's error with: `Truth.right`."""
        return self.truths[output].right(output)

    def attainable(self, output: str) -> tuple[Mapping[str, npt.NDArray[np.float64]], ...]:
        """The bounds by which an output's errors are avoidable: `Truth.attainable`."""
        return self.truths[output].attainable(output)

    @property
    def condition(self) -> dict[str, npt.NDArray[np.float64]]:
        """Condition numbers, of all outputs of the op."""
        return dict(next(iter(self.truths.values())).condition)


def named(op: Op, direction: Direction, outputs: Any) -> dict[str, Array]:
    """The outputs as arrays, by name, in the op's order.

    `outputs`: a mapping or a NamedTuple by name; a tuple (or a list of arrays) in the op's order;
    one array, the first output. None stands for an absent output.
    Raises ValueError for unknown names, for too many outputs and for none; TypeError for anything
    but a float array.
    """
    names = op.names(direction)
    arrays_by_name = _by_name(op, direction, outputs)
    given_arrays = {name: value for name, value in arrays_by_name.items() if value is not None}
    gives = f"{op.name} {direction} gives {', '.join(names)}"
    if unknown := [name for name in given_arrays if name not in names]:
        suggestion = nearest(str(unknown[0]), names)
        hint = f": did you mean {suggestion!r}?" if suggestion else "."
        raise ValueError(f"{gives}, not {str(unknown[0])!r}{hint}")
    if not given_arrays:
        raise ValueError(f"{gives}, but none of them was given.")
    return {name: op.output(name, given_arrays[name]) for name in names if name in given_arrays}


def _by_name(op: Op, direction: Direction, outputs: Any) -> Mapping[Any, Any]:
    names = op.names(direction)
    if isinstance(outputs, Mapping):
        return outputs
    if isinstance(outputs, tuple) and hasattr(outputs, "_asdict"):
        fields: Mapping[str, Any] = outputs._asdict()
        return fields
    if not in_order(outputs):
        return {names[0]: outputs}
    items = list(outputs)
    if len(items) > len(names):
        raise ValueError(
            f"{op.name} {direction} gives {', '.join(names)} in this order, but {len(items)} "
            "outputs were given."
        )
    return dict(zip(names, items, strict=False))


def in_order(outputs: Any) -> bool:
    """Whether these are several outputs in the op's order, not the numbers of one output."""
    if not isinstance(outputs, list | tuple):
        return False
    items = list(outputs)
    if isinstance(outputs, tuple):
        return not items or not all(isinstance(item, bool | int | float) for item in items)
    return not all(isinstance(item, (list, tuple, *_NUMBERS)) for item in items)


def without_kept_axes(
    op: Op,
    direction: Direction,
    outputs: Mapping[str, Array],
    shapes: Mapping[str, tuple[int, ...]],
) -> dict[str, Array]:
    """The outputs without the kept axes of statistics (the forward outputs after the first)."""
    first = op.names(direction)[0]
    statistics = op.outputs[1:] if direction == "forward" else ()
    return {
        name: array.reshape(shapes[name])
        if name in statistics and array.shape == _with_kept_axes(shapes[name], len(shapes[first]))
        else array
        for name, array in outputs.items()
    }


def _with_kept_axes(shape: tuple[int, ...], axes: int) -> tuple[int, ...]:
    return shape + (1,) * (axes - len(shape))


def ask(
    op: Op,
    direction: Direction,
    inputs: Arrays,
    params: Mapping[str, Any],
    formats_of: Mapping[str, Format],
) -> Asked:
    """The truth that each output is judged by, in its own format from `formats_of`."""
    truths = {
        format: Truth(op, direction, inputs, params, format)
        for format in dict.fromkeys(formats_of.values())
    }
    judged = {name: truths[format] for name, format in formats_of.items()}
    # An op has no output for some absent inputs.
    return Asked({name: truth for name, truth in judged.items() if name in truth.reference})
