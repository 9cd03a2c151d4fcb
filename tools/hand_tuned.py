"""Compares each hand-tuned oracle with `settle`'s reading of its formula, which could replace it:
how many elements each decides, and the reading's processor time over the oracle's.

    python tools/hand_tuned.py [OP ...] [--runs 5]

A tier by hand stays only where the reading decides less, or takes more than 1.05 of its time. The
questions reach all tiers: 0.01 ulp of float32 and of float64, the correct rounding to float32, and
the correct rounding to float64 of ties and of sums that cancel.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Iterator
from typing import Any

import numpy as np

from refkernels import registry
from refkernels.arithmetic import tiers
from refkernels.arithmetic.question import Question
from refkernels.op import Direction, Op
from refkernels.ops.formulas import Formulas
from refkernels.ops.function_formulas import definition

BAR = 1.05


def formulas(op: Op) -> Formulas:
    """The formulas whose reading would replace the op's own oracle."""
    return definition(op)


def hand_tuned() -> list[str]:
    """The ops whose oracle is not the reading of their formulas."""
    return [name for name, op in registry.ops().items() if op.formulas is None]


def decided(op: Op, answers: dict[str, Any], question: Any) -> int:
    """The elements whose interval is as narrow as the question asks."""
    goal = Question.parse(question)
    return sum(
        answer.size - int(np.count_nonzero(goal.undecided(answer))) for answer in answers.values()
    )


def inputs_of(op: Op, direction: Direction, dtype: str, side: int) -> dict[str, Any]:
    """Random inputs: products and rows of `side`, as many elements of a function."""
    rng = np.random.default_rng(0)

    def drawn(*shape: int) -> Any:
        return rng.standard_normal(shape).astype(dtype)

    shapes = {"weight": (side,), "bias": (side,)} if op.name == "layernorm" else {"bias": (side,)}
    arrays = {name: drawn(*shapes.get(name, (side, side))) for name in op.takes(direction)}
    if op.real_function is not None:
        inside = np.abs(arrays["x"]) / (1 + np.abs(arrays["x"]))  # in every function's domain
        arrays["x"] = np.maximum(inside, np.asarray(2.0**-20, dtype)).astype(dtype)
    return arrays


def questions(op: Op) -> Iterator[tuple[str, Direction, Any, dict[str, Any]]]:
    """(the question in words, direction, question, inputs)."""
    side = 128 if op.elementwise else 512
    for direction in ("forward", "backward"):
        narrow = inputs_of(op, direction, "float32", side)
        yield "0.01 ulp of float32", direction, ("ulp", "float32", 0.01), narrow
        yield "rounding to float32", direction, ("rounding", "float32"), narrow
        wide = inputs_of(op, direction, "float64", side // 2)
        yield "0.01 ulp of float64", direction, ("ulp", "float64", 0.01), wide
        hard = inputs_of(op, direction, "float64", 24)
        yield "rounding of ties", direction, ("rounding", "float64"), _hard(op, hard)


def _hard(op: Op, arrays: dict[str, Any]) -> dict[str, Any]:
    """Inputs of few bits beside ones that cancel: exact zeros and ties."""
    rng, hard = np.random.default_rng(1), {}
    for name, array in arrays.items():
        if op.real_function is not None:
            steps = 8 if name == "dy" else 64
            hard[name] = np.round(array * steps) / steps
            if name == "x":
                hard[name] = np.maximum(hard[name], 1 / steps)
            continue
        small = rng.integers(-3, 4, array.shape).astype(array.dtype)
        half = array.shape[-1] // 2
        small[..., half:] = -small[..., :half] if name in ("a", "x") else small[..., :half]
        small[..., 0] += 2.0**-53 if name in ("a", "x") else 0.0
        hard[name] = small
    return hard


def compared(name: str, runs: int) -> Iterator[list[str]]:
    op = registry.get(name)
    replacement = formulas(op)
    for wording, direction, question, inputs in questions(op):
        question_asked = direction, inputs, {}, question
        with tiers.counted() as oracle_tiers:  # compiles, too
            oracle_answers = op.evaluate(*question_asked)
        with tiers.counted() as reading_tiers:
            reading_answers = replacement.evaluate(*question_asked)
        ratios = []
        for _ in range(runs):
            begun = time.process_time()
            op.evaluate(*question_asked)
            between = time.process_time()
            replacement.evaluate(*question_asked)
            ratios.append((time.process_time() - between) / (between - begun))
        by_tier = [decided(op, answers, question) for answers in (oracle_answers, reading_answers)]
        ratio = statistics.median(ratios)
        better = by_tier[1] >= by_tier[0] and ratio <= BAR
        used = [
            " ".join(sorted(tally, key=tiers.NAMES.index))
            for tally in (oracle_tiers, reading_tiers)
        ]
        yield [
            name, direction, wording, *used, *(f"{n:,}" for n in by_tier), f"{ratio:.2f}",
            "reading" * better,
        ]  # fmt: skip


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("ops", nargs="*", default=hand_tuned())
    parser.add_argument("--runs", type=int, default=5)
    options = parser.parse_args()
    print(
        "| op | direction | asked | oracle's tiers | reading's tiers | oracle decides "
        "| reading decides | time of reading / oracle | better |"
    )
    print(f"|{' --- |' * 9}")
    for op_name in options.ops:
        for row in compared(op_name, options.runs):
            print(f"| {' | '.join(row)} |", flush=True)
