"""Gradients: a part that was taken for a constant."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from refkernels.diagnosis.edits.catalogue import Program, by, is_number, rule


@rule("stop_gradient", "gradient")  # f(g(x)) with g(x) constant
def stopped(program: Program) -> Iterator[Any]:
    for node in program.nodes:
        if not is_number(node) and node.op not in ("array", "pivot", "item", "welford"):
            yield node, {node: by(node)(lambda xp, v: xp.stop(v))}, {"part": node}
    reductions = list(program.of("mean", "sum", "norm"))
    if len(reductions) > 1:
        stopped = {node: by(node)(lambda xp, v: xp.stop(v)) for node in reductions}
        yield reductions[-1], stopped, {"part": reductions[-1], "every": len(stopped)}
