"""A formula: one way to compute an op, written once and read in every context.

    def softmax(xp, x):                               a function of the context and of its arrays
        e = xp.exp(x - xp.pivot(x))
        return e / xp.sum(e)

It gives one Value, or a tuple of them in the order of the op's outputs (None for the gradient of an
input that is absent). A formula in two stages separates the work per row from the work per element,

    TwoStage(statistics, finish)    statistics(xp, **arrays) -> values of one element a row
                                  finish(xp, statistics, **arrays) -> the outputs, by elements

so that an answer for some elements needs only the statistics of their rows, computed once, and the
elements themselves. In `finish` an output is elementwise in the rows' arrays and in the statistics;
the last operation of an output without rows (the gradient of a weight) is the sum over the rows. A
formula whose outputs share no work is

    PerOutput((dx, dweight, dbias))   a formula for each, which names the arrays that it takes

so that an answer for some elements of one output reads the slices of these arrays at the elements'
rows and free letters, and nothing else. A formula in which the indices of a free letter are not
independent has `sliced` False and reads whole rows. One whose rows depend on each other, as an edit
may make them, is `Whole`.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from refkernels.contexts.context import Context
from refkernels.contexts.value import Value

Formula = Callable[..., Any]
Values = tuple[Any, ...]  # a Value each, or None for an absent one


@dataclass(frozen=True)
class TwoStage:
    """A formula in two stages; the module's header explains it."""

    statistics: Callable[..., Any]
    finish: Callable[..., Any]

    def __call__(self, xp: Context, /, **arguments: Any) -> Any:
        return self.finish(xp, several(self.statistics(xp, **arguments)), **arguments)


@dataclass(frozen=True)
class Sliced:
    """A formula that may be read for some indices of the op's free letters only: from arrays cut to
    these indices it gives the outputs, cut likewise."""

    formula: Formula

    def __call__(self, xp: Context, /, **arguments: Any) -> Any:
        return self.formula(xp, **arguments)


@dataclass(frozen=True)
class Whole(Sliced):
    """A formula that is read for all rows at once. `work`: how many numbers it computes."""

    work: int = 0


@dataclass(frozen=True)
class PerOutput:
    """A formula for each output, None for one that is not wanted; the module's header explains
    it."""

    formulas: tuple[Formula | None, ...]
    sliced: bool = True

    def __call__(self, xp: Context, /, **arguments: Any) -> Any:
        return tuple(formula and formula(xp, **arguments) for formula in self.formulas)

    def restricted(self, outputs: Iterable[bool]) -> PerOutput:
        """The formulas of some of the outputs."""
        pairs = zip(self.formulas, outputs, strict=True)
        return replace(
            self, formulas=tuple(formula if wanted else None for formula, wanted in pairs)
        )

    @functools.cached_property
    def takes(self) -> frozenset[str]:
        """The arrays and params that its formulas name."""
        named = (inspect.signature(formula).parameters for formula in self.formulas if formula)
        return frozenset(name for parameters in named for name in parameters)


COMPUTED_IN_FLOAT32 = ("float16", "bfloat16", "float32")
"""The dtypes of inputs with which a right kernel may compute in float32."""


@dataclass(frozen=True)
class Fault:
    """A wrong or unstable way to compute an op, under the name of its cause (`diagnosis`).

    `unstable`: in exact arithmetic it equals the op, and only its rounding errors differ.
    `backward` None: the backward pass has no such fault, or with `derived` that of `forward`, as
    `formulas_of` derives it. `outputs`: those that it changes, all by
    default. `right_in`: the dtypes in which it does nothing that a right form may not do, so that
    no input can show it.
    """

    cause: str
    forward: Formula | None = None
    backward: Formula | None = None
    unstable: bool = False
    details: Mapping[str, Any] | None = None
    outputs: tuple[str, ...] = ()
    right_in: tuple[str, ...] = ()
    derived: bool = False

    def changed(self, outputs: Mapping[str, Any]) -> dict[str, Any]:
        """The items, by output, of the outputs that the fault changes."""
        return {
            name: item for name, item in outputs.items() if not self.outputs or name in self.outputs
        }


def several(result: Any) -> Values:
    """A formula's results as a tuple."""
    return result if isinstance(result, tuple) else (result,)


def by_output(outputs: Collection[str], result: Any) -> dict[str, Any]:
    """A formula's results by output. Raises ValueError if their number is wrong, TypeError for
    anything that is not a value of a context."""
    results = several(result)
    if len(results) != len(outputs):
        raise ValueError(
            f"The formula gives {len(results)} outputs, but its signature names {len(outputs)}: "
            f"{', '.join(outputs)}."
        )
    for name, value in zip(outputs, results, strict=True):
        if not isinstance(value, Value | None) or all(result is None for result in results):
            raise TypeError(
                f"The formula's {name} is of type {type(value).__name__}: a formula returns values "
                "of xp, and xp.number(...) makes one from a number."
            )
    return dict(zip(outputs, results, strict=True))


def derived(
    formula: Formula,
    outputs: tuple[str, ...],
    cotangents: Mapping[str, str],
    inputs: tuple[str, ...],
) -> Formula:
    """The backward pass of a formula: the gradients of the inputs that are present.

    `cotangents`: the output that each belongs to. An absent input has no gradient.
    """

    def backward(xp: Context, /, **arguments: Any) -> Values:
        from refkernels.contexts.gradient import Gradient, Taped

        tape = getattr(xp, "tape", Gradient)(xp)  # a context may keep one for many readings
        above = {output: arguments.pop(name) for name, output in cotangents.items()}
        nodes = {
            name: tape.leaf(value) if isinstance(value, Value) else value
            for name, value in arguments.items()
        }
        results = dict(zip(outputs, several(formula(tape, **nodes)), strict=False))
        present = [name for name in inputs if isinstance(nodes.get(name), Taped)]
        leaves = [nodes[name] for name in present]
        total: list[Value] | None = None
        for output, cotangent in above.items():
            if cotangent is None:
                continue
            pulled = tape.pull(results[output], cotangent, leaves)
            total = pulled if total is None else list(map(xp.add, total, pulled))
        gradients = dict(zip(present, total or (), strict=True))
        return tuple(gradients.get(name) for name in inputs)

    return backward
