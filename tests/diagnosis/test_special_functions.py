"""Fast functions of a GPU: an H100's answers, from CUDA C with --use_fast_math and from Triton; and
kernels of sqrt, which must be rounded correctly, that only nearly are."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from unit_tables import arguments, table

import refkernels
from refkernels import registry
from refkernels.arithmetic import formats
from refkernels.contexts import special_functions
from refkernels.contexts.special_functions import FAST, cos, ex2, rcp, sin
from refkernels.diagnosis.edits.screen import Screen
from refkernels.diagnosis.models import compiled
from refkernels.diagnosis.problem import Problem

F = np.float32
KEPT = json.loads(Path(__file__).with_name("special_functions_of_an_h100.json").read_text())
ALL = FAST | {
    "tan": (lambda x: sin(x) * rcp(cos(x)),),
    "reciprocal": (rcp,),
    "sigmoid": (lambda x: rcp(F(1) + ex2(-x * F(1.442695))),),
    "silu": (lambda x: x * rcp(F(1) + ex2(-x * F(1.442695))),),
}
ORDINARY = {"exp2", "reciprocal", "rsqrt", "sigmoid", "silu"}  # these err by what rounding gives


def answers(op: str) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
    x, y = (np.frombuffer(bytes.fromhex(KEPT[op][name]), ">u4").astype("u4") for name in "xy")
    return x.view(F), y.view(F)


@pytest.mark.parametrize("op", KEPT)
def test_every_bit_of_a_fast_function_is_known_and_it_is_proven(op: str) -> None:
    x, y = answers(op)
    for function in ALL[op]:
        np.testing.assert_array_equal(function(x).view("u4"), y.view("u4"))
    found = refkernels.explain(op, {"x": x}, {"y": y})
    told = (found.cause, found.confidence) == ("special_function_unit", "proven")
    assert told or op in ORDINARY


@pytest.mark.parametrize("op", ["exp", "tanh", "sin"])
def test_another_function_is_none_of_a_gpu(op: str) -> None:
    """Right, or with errors of its own: 2^-18 of each result."""
    x, _ = answers(op)
    right = getattr(np, op)(x.astype(np.float64))
    off = 1 + 2.0**-18 * np.random.default_rng(0).uniform(-1, 1, x.shape)
    for y in (right.astype(F), (right * off).astype(F)):
        candidates = refkernels.explain(op, {"x": x}, {"y": y}).candidates
        assert "special_function_unit" not in {c.cause for c in candidates if c.confidence}


def question(dtype: str, n: int = 800) -> tuple[Any, ...]:
    """x, sqrt(x), and the other float next to the exact root."""
    x = np.random.default_rng(41).uniform(0.5, 8.0, n).astype(dtype)
    root = registry.get("sqrt").forward(x)
    y = np.sqrt(x)
    low_part = (root.hi - y.astype(np.float64)) + root.lo
    other = np.where(low_part > 0, np.nextafter(y, np.inf), np.nextafter(y, y.dtype.type(0)))
    return x, y, other


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_roots_that_are_not_rounded_correctly_are_named(dtype: str) -> None:
    """A few neighbours, as of MKL's vmsSqrt and vmdSqrt on Intel's processors, which PyTorch calls;
    all cut off; one of another size."""
    x, y, other = question(dtype)
    place = np.arange(y.size)
    wrong = [(place % 2 == 1) & (place >= 5) & (place < 5 + 2 * n) for n in (1, 3, 40)]
    for got, told in (
        *((np.where(few, other, y), ("fast_approximation", "consistent")) for few in wrong),
        (np.minimum(y, other), ("truncated_output", "proven")),
        (np.where(place == 7, 1.5 * y, y), ("corrupted_elements", "")),
    ):
        found = refkernels.explain("sqrt", {"x": x}, {"y": got})
        assert found.verdict in ("exceeds_bound", "invariant_violated")
        assert (found.cause, told[1] and found.confidence) == told
        cut = any(c.cause == "truncated_output" for c in found.candidates if not c.ruled_out)
        assert cut == (told[0] == "truncated_output")


@pytest.mark.parametrize(("unit", "function"), [("rcp", np.reciprocal), ("tanh", np.tanh)])
def test_a_table_gives_what_was_measured(
    unit: str, function: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = table(unit, function(arguments(unit)))
    monkeypatch.setattr(special_functions, "_table", lambda name: kept)
    x = arguments(unit)[::999]
    np.testing.assert_array_equal(getattr(special_functions, unit)(x), function(x))


@pytest.mark.parametrize("op", ["softmax", "rms_norm", "logsumexp", "swiglu"])
@pytest.mark.parametrize("direction", ["forward", "backward"])
def test_arithmetics_that_are_read_as_one_have_the_same_bits(op: str, direction: Any) -> None:
    known = registry.get(op)
    case = next(case for case in known.cases() if "float32" in case.dtypes)
    arrays, params = case.build("float32")
    inputs = {name: arrays[name] for name in known.takes(direction) if name in arrays}
    problem = Problem(known, direction, inputs, {**known.params, **params}, formats.BINARY32)
    screen = Screen(problem, problem.truth.plain, elements=1 << 11)
    bits, alike = dict[Any, bytes](), 0
    for reading, graph, changes in compiled._readings(problem, screen):
        answer = screen.computed(graph, reading.xp, changes)
        own = b"".join(array.tobytes() for array in answer.values())
        alike += reading.distinct in bits
        assert bits.setdefault(reading.distinct, own) == own
    assert alike
