"""formula_op(): an op from its formulas; formulas_of(): the formulas alone, for an op that also has
an oracle of its own."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from refkernels.arithmetic.enclosure import Enclosure
from refkernels.arithmetic.fast import Fast
from refkernels.arithmetic.formats import BINARY64
from refkernels.arithmetic.mode import with_default_fenv
from refkernels.arithmetic.question import Certify, Question
from refkernels.kernels.answers import screened
from refkernels.op import DIRECTIONS, Case, Invariant, Op
from refkernels.ops.domains import Domain
from refkernels.ops.formula import Fault, Formula, derived
from refkernels.ops.formulas import Forms, Formulas, Pass, Prepare, Tier
from refkernels.ops.letters import Signature
from refkernels.ops.signs import Reading, sign_of_zero


def formula_op(
    name: str,
    signature: str,
    coupled: str = "",
    *,
    invariants: tuple[Invariant, ...] = (),
    cases: Callable[[], list[Case]] = list,
    total: Any = "",
    factors: tuple[str, ...] = (),
    scatter: tuple[str, str] | None = None,
    fast: Fast | None = None,
    spread: bool = False,
    **described: Any,
) -> Op:
    """The op of these formulas. `spread`: `prepare` spreads elements of one input over blocks of
    another. `described`: options of `formulas_of`; the others are fields of `Op`."""
    formulas = formulas_of(name, signature, coupled, **described)
    takes, gives = formulas.forward.signature.takes, formulas.forward.signature.gives
    reverse = formulas.backward
    backward_signature = formulas.forward.signature if reverse is None else reverse.signature
    above = [name for name in backward_signature.takes if name not in takes]
    below = (
        {} if reverse is None else {gradient: gradient[1:] for gradient in backward_signature.gives}
    )
    op = Op(
        name=name,
        inputs=tuple(takes),
        optional=tuple(argument.name for argument in takes.values() if argument.optional),
        outputs=tuple(gives),
        cotangent=next(iter(above), f"d{next(iter(gives))}"),
        gradients=tuple(below),
        params=dict(formulas.params),
        **{
            f"{direction}{suffix}": _reading(formulas, direction, method, options)
            for direction in DIRECTIONS
            for suffix, (method, options) in _READINGS.items()
        },  # type: ignore[arg-type]
        cases=cases,
        invariants=(*invariants, *_signs_of_zero(formulas)),
        total=total,
        factors=factors,
        scatter=scatter,
        fast=fast,
        elementwise=not spread
        and not any(argument.own for argument in takes.values())
        and all(argument.rows for argument in gives.values()),
        kinds={
            argument.name: argument.kind for argument in takes.values() if argument.kind != "float"
        },
        low_outputs=tuple(argument.name for argument in gives.values() if argument.kind == "low"),
        row_inputs=tuple(argument.name for argument in takes.values() if argument.rows),
        row_gradients=tuple(g for g, source in below.items() if takes[source].rows),
        define=lambda: formulas,
        formulas=formulas,
    )
    return op if fast is None else replace(op, forward=_screened(fast, op.forward))


def _screened(fast: Fast, settled: Callable[..., dict[str, Any]]) -> Callable[..., dict[str, Any]]:
    """The forward pass of an op of one input and one output, by its float64 tier first."""

    @with_default_fenv
    def forward(x: Any, *, certify: Certify = "enclosure") -> dict[str, Any]:
        def later(left: Any, question: Question) -> Enclosure:
            return settled(x=left, certify=question)["y"]

        return {"y": screened(fast, x, certify, later)}

    return forward


def formulas_of(
    name: str,
    signature: str,
    coupled: str = "",
    *,
    forms: Forms,
    backward: Forms | None = None,
    truth: Formula | None = None,
    backward_truth: Formula | None = None,
    cotangents: Sequence[str] = (),
    gradients: Sequence[str] | None = None,
    faults: tuple[Fault, ...] = (),
    prepare: Prepare | None = None,
    params: Mapping[str, Any] | None = None,
    scalars: str = "working",
    everywhere: str = "",
    widest: str = "",
    domains: Mapping[str, Domain] | None = None,
    conventions: tuple[Fault, ...] = (),
    limited: bool = False,
    tier: Tier | None = None,
) -> Formulas:
    """An op's formulas, with its backward pass.

    signature       "x[... n], weight[n]? -> y[... n]" (`letters`); coupled: its coupled letters
    forms           the stable ways to compute it, by name, the definition first
    backward        those of the backward pass; left out, the gradients of the forms. They take the
                    cotangents in front of the inputs
    truth           the certified formula, where it is not the definition: a form whose structure
                    shows exact zeros; backward_truth likewise
    cotangents      the outputs that have one: the first by default
    gradients       the inputs that get one: all of floating point by default; () for an op that has
                    no backward pass
    faults          the wrong and unstable ways to compute it
    prepare         see `canonical.Prepared`
    params          defaults by name; a float is a number of the formula's context
    domains         the values that such a param may take, where restricted: `domains.Domain`
    everywhere      the inputs whose every row matters to all rows: `letters.Signature`
    scalars         "binary64" where kernels hold params in it and combine them there
    widest          the form, if any, that covers the others: its bound holds for all
    conventions     formulas that differ in special values alone, where libraries disagree: `judge`
                    accepts theirs too
    limited         whether all that `prepare` does is to replace infinities, so that values are
                    limits
    tier            a tuned first tier: `formulas.Formulas`
    """
    read_signature = Signature.parse(signature, coupled, everywhere)
    above = {f"d{output}": output for output in cotangents or list(read_signature.gives)[:1]}
    floats = [taken.name for taken in read_signature.takes.values() if taken.kind == "float"]
    below = {f"d{source}": source for source in (floats if gradients is None else gradients)}
    definition = truth or next(iter(forms.values()))
    reverse = derive = None
    if below:
        derive = functools.partial(
            derived,
            outputs=tuple(read_signature.gives),
            cotangents=above,
            inputs=tuple(below.values()),
        )
        backward_forms = backward or {form: derive(formula) for form, formula in forms.items()}
        exact = backward_truth or (
            next(iter(backward_forms.values())) if backward else derive(definition)
        )
        faults = tuple(
            replace(fault, backward=derive(fault.forward))
            if fault.derived and fault.forward
            else fault
            for fault in faults
        )
        reverse = Pass(read_signature.backward(above, below), backward_forms, exact)
    forward = Pass(read_signature, forms, definition)
    return Formulas(
        name, params or {}, forward, reverse, faults, prepare, scalars, widest, domains or {},
        conventions, limited, derive, tier,
    )  # fmt: skip


def _signs_of_zero(formulas: Formulas) -> Iterator[Invariant]:
    def readings(inputs: Any, params: Any) -> Iterator[Reading]:
        asked = inputs, {**formulas.params, **params}, BINARY64

        def read(form: Formula, made: float) -> Mapping[str, Any]:
            return formulas.computed("forward", form, *asked, "signed zeros", made=made)

        for form in formulas.forward.forms.values():
            yield functools.partial(read, form)

    for output in formulas.forward.signature.gives:
        yield sign_of_zero(output, readings)


_READINGS = {
    "": ("evaluate", ("certify",)),
    "_bound": ("bound", ("format",)),
    "_condition": ("condition", ()),
    "_plain": ("plain", ("format",)),
}


def _reading(
    formulas: Formulas, direction: Any, method: str, options: tuple[str, ...]
) -> Callable[..., dict[str, Any]]:
    """One of an `Op`'s callables, which take inputs and params by name."""

    def read(**arguments: Any) -> dict[str, Any]:
        chosen = {name: arguments.pop(name) for name in options if name in arguments}
        params = {name: arguments.pop(name) for name in formulas.params if name in arguments}
        outputs: dict[str, Any] = getattr(formulas, method)(direction, arguments, params, **chosen)
        return outputs

    return read
