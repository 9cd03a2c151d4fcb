"""Each op of each real framework is the op of that name, in both passes, with every param that its
cases have: a wrong function, form, axis or order of arguments is seen, not how accurate it
is. Formats beside float32 take turns over ops and frameworks; a hunt tries all."""

import functools
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hunting import one_in

from refkernels import registry
from refkernels.frameworks.gateway import Session
from refkernels.op import DTYPES, Direction, Op

NAMES = ("numpy", "libm", "torch", "paddle", "oneflow", "mindspore")
LARGEST = 3000  # elements of a question
SLOPPY = 2.0**-18
"""Relative to the larger of 1 and the value: far below any other function's distance (GELU's two
forms are 2e-4 apart), and above what float32 arithmetic inside a float64 op costs."""
DIFFERS = {  # seen in the pinned versions, and checked to be so still
    ("numpy", "cross_entropy"): "smoothing has no weights of classes",
    ("torch", "muon"): "the steps of Newton and Schulz are in bfloat16",
    ("torch", "adafactor"): "a threshold d below 1 is refused",
    ("paddle", "cross_entropy"): "a smoothed row has its labels' mean weight",
    ("paddle", "clip_by_norm"): "a largest norm of 0 is refused",
    ("paddle", "dropout"): "an array of one axis is refused",
    ("paddle", "embedding"): "padding_idx gives zeros forward, too",
    ("paddle", "soft_cross_entropy"): "labels are taken to be probabilities",
    ("paddle", "batch_norm"): "the biased variance is kept",
    ("paddle", "group_norm"): "the gradient without a weight is wrong",
    ("paddle", "lamb"): "no trust ratio where nothing decays",
    ("paddle", "rmsprop"): "decay is not part of the gradient",
    ("oneflow", "sgd"): "decay is dampened otherwise",
    ("oneflow", "lamb"): "the norm of the update leaves decay out",
    ("mindspore", "attention"): "a query without keys leaves later rows unwritten",
    ("mindspore", "layernorm"): "a gradient that raises, and float32 inside float64",
    ("mindspore", "soft_cross_entropy"): "no kernel for some labels",
    ("mindspore", "ctc_loss"): "zero_infinity leaves a row without a path its loss",
    ("mindspore", "batch_norm"): "statistics of float16 are kept in float16",
    **{
        ("mindspore", op): "what decays, and how, is its own"
        for op in ("sgd", "momentum", "adam", "adamw", "rmsprop")
    },
}
UNSAFE = {("paddle", "nll"): "an ignored label is read beyond the array: the process may end"}
Question = tuple[dict[str, Any], dict[str, Any]]


@functools.cache
def questions(op: str, direction: Direction) -> list[Question]:
    """Numbers between 0 and 1 in the shapes of the smallest case of each choice of params and of
    inputs, labels and masks as they are; the first has the op's own params. No axis is of length 1:
    after a gradient of softmax along such a one MindSpore's others are wrong."""
    known, rng, smallest = registry.get(op), np.random.default_rng(7), dict[str, Question]()
    for case in known.cases():
        arrays, params = case.build(case.dtypes[0])
        inputs = {name: arrays[name] for name in known.takes(direction) if name in arrays}
        size, of = sum(array.size for array in inputs.values()), repr((params, sorted(inputs)))
        usual = direction in case.directions and case.regime != "specials"
        wide = all(min(a.shape[-2:], default=2) > 1 for a in inputs.values() if a.dtype.kind == "f")
        if not usual or not wide or not 8 <= size <= LARGEST:
            continue
        given = {name: arrays[name] for name in known.inputs if name in arrays}
        forward = known.evaluate("forward", given, params).values()
        if any(np.isnan(enclosure.hi).any() for enclosure in forward):
            continue  # no answer is right: labels that are no class may end a process
        if of not in smallest or size < sum(a.size for a in smallest[of][0].values()):
            smallest[of] = inputs, params
    assert smallest
    return [
        (
            {
                name: array if array.dtype.kind in "iub" else rng.uniform(0.05, 0.95, array.shape)
                for name, array in inputs.items()
            },
            params,
        )
        for inputs, params in sorted(smallest.values(), key=lambda question: len(question[1]))
    ]


def kind_of(dtype: str) -> Any:
    return np.dtype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)


@functools.cache
def answered(op: str, direction: Direction, number: int, dtype: str) -> Any:
    """The inputs in the format, the answer, and how far from it a kernel may be."""
    known, (arrays, params) = registry.get(op), questions(op, direction)[number]
    inputs = {
        name: array.astype(kind_of(dtype)) if array.dtype.kind == "f" else array
        for name, array in arrays.items()
    }
    right = known.evaluate(direction, inputs, params)
    bounds = known.bound(direction, inputs, params, dtype)
    u = max(SLOPPY, 8 * float(ml_dtypes.finfo(kind_of(dtype)).eps))
    exact = {name: np.asarray(enclosure) for name, enclosure in right.items()}
    most = {n: np.maximum(8 * bounds[n], u * np.maximum(1.0, np.abs(y))) for n, y in exact.items()}
    return inputs, exact, most


@pytest.mark.parametrize("name", NAMES)  # one op's after the other: what is right is kept
@pytest.mark.parametrize("op", registry.ops().values(), ids=lambda op: op.name)
def test_it_is_the_op_of_its_name(name: str, op: Op, session_for: Callable[[str], Session]) -> None:
    if (name, op.name) in UNSAFE:
        pytest.skip(UNSAFE[name, op.name])
    session, apart, turn = session_for(name), [], NAMES.index(name) + len(op.name)
    lists = session.info["capabilities"]["cpu"].get(op.name)
    every = one_in(4, (*DTYPES[turn % 4 :], *DTYPES[: turn % 4]))
    dtypes = DTYPES if (name, op.name) in DIFFERS else sorted({"float32", *every})
    for direction in op.directions:
        for number, (_, params) in enumerate(questions(op.name, direction)):
            for dtype in ("float32",) if number else dtypes:
                inputs, exact, most = answered(op.name, direction, number, dtype)
                reply = session.run(op.name, direction, inputs, params, leaves=op.differentiated)
                if lists is None or lists[direction][dtype] is not None:
                    assert reply.status == "unsupported"
                if reply.status == "unsupported":
                    assert reply.reason
                    continue
                told = direction, dtype, params, reply.reason
                apart += [] if reply.ok else [told]
                for output, got in reply.outputs.items():
                    assert got.dtype in (kind_of(dtype), int) or output in op.outputs[1:]
                    off = np.abs(got.astype(float) - exact[output])
                    apart += [(output, *told)] if np.any(off > most[output]) else []
    assert bool(apart) == ((name, op.name) in DIFFERS), apart
