"""Wrong kernels that the inputs of a judge refuse, and what does not count as one."""

from __future__ import annotations

import numpy as np
import pytest
from hunting import one_in, seed_of

from refkernels import registry
from refkernels.judging.examination import KernelExamination
from refkernels.op import Direction


@pytest.mark.parametrize("asked", ["dropout float32", "dropout float64", "clip_by_norm float32"])
def test_a_mutant_that_errs_as_right_kernels_do_does_not_count(asked: str) -> None:
    op, dtype = asked.split()
    examination = KernelExamination(registry.get(op), "forward", dtype, 5)
    shown = examination.shown(examination.round(0))
    assert ("float32_scale" in shown.killed, shown.alive) == (dtype == "float64", ())
    assert len(shown.killed) > 10


QUESTIONS = [(name, way) for name, op in registry.ops().items() for way in op.directions]
REFUSING = [("clip_by_norm", "forward"), ("dropout", "forward"), ("max", "backward")]


@pytest.mark.parametrize(("name", "direction"), dict.fromkeys([*REFUSING, *one_in(48, QUESTIONS)]))
def test_no_mutant_raises(name: str, direction: Direction) -> None:
    """Norm_type 2.02 and p = 1.008 are refused; no number is the largest of an empty tile."""
    op = registry.get(name)
    examination = KernelExamination(op, direction, "float32", seed_of(7))
    with np.errstate(all="ignore"):
        asked = [c for c in examination.round(0) if c.plain or c.family == "hard"]
        tried = one_in(4, (c for c in asked if c.has_answer), lambda c: c.family)
        assert examination.shown(tried, 2.0).killed
