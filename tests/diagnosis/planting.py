"""Faults that NumPy kernels plant in an op, and what `explain` must say of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partialmethod
from typing import Any, NamedTuple

import numpy as np
import pytest
from hunting import one_in
from numpy_kernels import F

import refkernels
from refkernels import registry
from refkernels.diagnosis.explanation import Explanation
from refkernels.op import Op

RIGHT = ("exact", "correctly_rounded", "rounding")


class Planted(NamedTuple):
    """A kernel that computes in the format `kind`, and what is claimed of a cause; None of a right
    one. Its answers have the inputs' format."""

    op: str | Op
    inputs: Mapping[str, Any]
    params: Mapping[str, Any]
    kind: Any
    cause: str | None
    kernel: Callable[..., Any]
    details: dict[str, Any]
    claim: str = "proven"

    def explained(self) -> Explanation:
        op = registry.get(self.op) if isinstance(self.op, str) else self.op
        floats = {name: a for name, a in self.inputs.items() if a.dtype.kind not in "iub"}
        used = {name: array.astype(self.kind) for name, array in floats.items()}
        with np.errstate(all="ignore"):
            got = self.kernel(**{**self.inputs, **used})
        direction = "backward" if op.cotangent in self.inputs else "forward"
        if not isinstance(got, dict):
            parts = got if isinstance(got, tuple) else (got,)
            got = dict(zip(op.names(direction), parts, strict=False))
        own = next(iter(floats.values())).dtype
        outputs = {name: np.asarray(array).astype(own) for name, array in got.items()}
        return refkernels.explain(self.op, self.inputs, outputs, self.params, direction)

    def check(self) -> None:
        found = self.explained()
        if self.claim in ("never", "unsure"):
            sure = {c.cause for c in found.candidates if c.confidence in ("proven", "matched")}
            assert self.cause not in sure | ({found.cause} if self.claim == "never" else set())
            return
        if self.cause is None:
            assert found.verdict in RIGHT
            assert found.cause in (None, "summation_order")
            return
        assert (found.cause, found.confidence) == (self.cause, self.claim)
        told = found.candidates[0].details
        expected = dict(self.details)
        if "interval" in expected:
            ends = {**told, **told.get("with_details", {})}
            low, high = ends.get("interval", (ends.get("eps"),) * 2)
            assert low <= expected.pop("interval") <= high
        assert {name: told[name] for name in expected} == expected


def named(*question: Any, **more: Any) -> tuple[Any, Any, Any]:
    """The cause that is told, its confidence and details."""
    found = refkernels.explain(*question, **more)
    return found.cause, found.confidence, dict(found.candidates[0].details) if found.cause else {}


def name(planted: Planted) -> str:
    """Of its test."""
    op = planted.op if isinstance(planted.op, str) else planted.op.name
    return f"{op}-{planted.cause or 'right'}-{planted.claim}"


def each(planted: list[Planted]) -> Any:
    """A test of them. A run tries each claim of a cause on one op, and each op's right kernel.
    Other causes of an op: tests/ops/test_formula_explanations.py."""

    def kind(one: Planted) -> tuple[str, str]:
        return one.cause or name(one).partition("-")[0], one.claim

    return pytest.mark.parametrize("planted", one_in(len(planted), planted, kind), ids=name)


class Asked:
    """What adds kernels of an op to a list, each with its cause and some of the details that are
    told: "interval" is a number that lies in it. A right kernel's cause is None."""

    def __init__(
        self, planted: list[Planted], op: str | Op, inputs: Mapping[str, Any], kind: Any = F,
        **params: Any,
    ) -> None:  # fmt: skip
        self.planted, self.question = planted, (op, inputs, params, kind)

    def _add(
        self, claim: str, cause: str | None, kernel: Callable[..., Any], **details: Any
    ) -> None:
        self.planted.append(Planted(*self.question, cause, kernel, details, claim))

    __call__ = partialmethod(_add, "proven")
    matched = partialmethod(_add, "matched")  # it is nearly sure
    consistent = partialmethod(_add, "consistent")  # it is named first, and not sure
    never = partialmethod(_add, "never")  # it is not told
    unsure = partialmethod(_add, "unsure")  # it is neither proven nor matched
