"""Every op can be judged, forward and backward: its plain algorithm and its named forms are right
on the inputs that are drawn for it, and enough families of them refuse every decoy. A run tries
forward for one op and backward for the next, and one op in twenty on all inputs; a hunt, all."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pytest
from hunting import HUNT, one_in, one_way

from refkernels import registry
from refkernels.arithmetic.mode import with_default_fenv
from refkernels.judging.challenges import Drawer
from refkernels.judging.data import Numbers
from refkernels.judging.findings import FAMILIES_NEEDED
from refkernels.judging.standard import Challenge
from refkernels.judging.wrong_answers import decisive_outputs

SEED = 7
OVERFLOWS = {("linear_attention", "chunked"), ("selective_scan", "chunked"), ("prod", "quotient")}
OVERFLOWS |= {("gated_delta_rule", form) for form in ("plain", "recurrent")}
OVERFLOWS |= {("hardswish", form) for form in ("clipped", "multiplied")}
"""Forms that may overflow where another does not: e^(G_t) of a state, x (x + 3), two products."""
ASKED = one_way((name, way) for name, op in registry.ops().items() for way in op.directions)
WHOLE = one_in(20, ASKED)


def drawn(drawer: Drawer) -> Iterator[Challenge]:
    rng = np.random.default_rng(SEED)
    for family in drawer.families:
        if family.name not in ("graded", "shifted"):
            yield from drawer.some(family, rng, 0)
    for other in drawer._other_inputs:
        yield from drawer.some(Numbers("special", "nan_in", (other,)), rng, 0)
    yield from (challenge for challenge in drawer._other_params(rng) if challenge.has_answer)
    yield from drawer.wide(rng)
    yield from drawer.alike(rng) if drawer.free else ()
    if drawer.roles.first:
        yield from drawer.some(Numbers("throughout", "throughout"), rng, 0)


@with_default_fenv
def right(challenge: Challenge) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Answers of right kernels: rounded once, the plain algorithm, and each named form."""
    yield "rounded", challenge.standard().rounded
    question = challenge.inputs, challenge.params, challenge.format
    yield "plain", challenge.op.plain(challenge.direction, *question)
    if (definition := challenge.op.definition) is not None:
        for name, form in definition.of(challenge.direction).forms.items():
            yield name, definition.computed(challenge.direction, form, *question)


@pytest.mark.parametrize(("name", "direction"), ASKED)
@np.errstate(all="ignore")
def test_right_answers_to_every_op_are_right_and_decoys_are_not(name: str, direction: Any) -> None:
    op = registry.get(name)
    drawer = Drawer(op, direction, "float32")
    families = set[str]()
    for challenge in drawn(drawer):
        if len(families) == FAMILIES_NEEDED and (name, direction) not in WHOLE:
            break
        for form, outputs in right(challenge):
            fault = challenge.fault(outputs)
            overflows = fault is not None and fault.kind == "wrong_avoidable_range"
            assert fault is None or (overflows and (name, form) in OVERFLOWS), (
                form,
                challenge.name,
            )
        if challenge.family not in families and len(families) < FAMILIES_NEEDED:
            decisive = op.names(direction)[0] in decisive_outputs(challenge)
            families |= {challenge.family} if decisive else set()
    assert len(families) == FAMILIES_NEEDED


WITH_OPTIONAL = [name for name, op in registry.ops().items() if op.gradients and op.optional]


@pytest.mark.parametrize("name", WITH_OPTIONAL)
def test_the_gradient_of_an_input_that_is_absent_is_not_owed(name: str) -> None:
    """Nor for an op whose oracle gives it, as layernorm's dweight; each choice of them once."""
    op = registry.get(name)
    drawer = Drawer(op, "backward", "float32")
    asked = set[tuple[str, ...]]()
    for challenge in drawer._hard(0):
        absent = tuple(n for n in op.optional if n not in challenge.inputs)
        if absent and (HUNT > 1 or absent not in asked) and challenge.has_answer:
            right = challenge.standard().rounded
            outputs = {n: right[n] for n in right if n[1:] in challenge.inputs}
            assert challenge.fault(outputs, frozenset(op.gradients)) is None, challenge.name
            asked.add(absent)
    # All of whose cases have the input.
    assert asked or name in ("linear", "add_rms_norm", "lora_linear")
