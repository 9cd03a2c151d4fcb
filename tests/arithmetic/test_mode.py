"""The answers have the same bits in every floating-point mode."""

import importlib
import inspect
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hunting import HUNT
from mode_digests import digests, questions
from modes import KNOWN, MODES, set_mode

import refkernels
from refkernels import registry
from refkernels.arithmetic import mode
from refkernels.arithmetic.blocks import each, each_block, spread
from refkernels.arithmetic.enclosure import Enclosure
from refkernels.schedule_ref import Schedule

HERE = Path(__file__).parent
settable = pytest.mark.skipif(not KNOWN, reason="how to set this machine's mode is not known")


@pytest.fixture(autouse=True)
def _default_mode_afterwards() -> Iterator[None]:
    yield
    if KNOWN:
        set_mode("default")


@settable
@pytest.mark.parametrize("name", MODES)
def test_a_function_runs_in_the_default_mode_and_restores_the_old_mode(name: str) -> None:
    set_mode(name)
    defaults = [mode.is_default(), mode.with_default_fenv(mode.is_default)(), mode.is_default()]
    set_mode("default")
    assert defaults == [False, True, False]
    assert mode.is_default()


@settable
def test_the_mode_comes_back_after_an_exception() -> None:
    @mode.with_default_fenv
    def fail() -> None:
        raise KeyError("mine")

    set_mode("up")
    with pytest.raises(KeyError, match="mine"):
        fail()
    kept = mode.is_default()
    set_mode("default")
    assert not kept


@settable
@pytest.mark.parametrize("name", MODES)
def test_the_pools_threads_work_in_the_default_mode(name: str) -> None:
    def of_each_pool() -> list[tuple[bool, str]]:
        """Whether each task ran in the default mode, and on which thread."""
        tasks: list[tuple[bool, str]] = []

        together = threading.Barrier(2)  # so that more than one thread gets tasks

        def look(*_: Any) -> None:
            together.wait()
            tasks.append((mode.is_default(), threading.current_thread().name))

        each_block(look, 8, block=1)
        spread(8, look, block=1)
        each(look, [(i,) for i in range(8)])
        return tasks

    set_mode(name)
    tasks = of_each_pool()  # the threads start in this mode, and the calling one works too
    set_mode("default")
    helpers = [right for right, thread in tasks if thread != threading.current_thread().name]
    assert len(tasks) == 24
    assert len(helpers) >= 6
    assert all(helpers)


def test_where_the_mode_cannot_be_set_any_other_mode_is_refused_in_a_sentence(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(mode, "_environment", lambda: (None, None, None))
    assert mode.with_default_fenv(lambda: 3)() == 3
    monkeypatch.setattr(mode, "is_default", lambda: False)
    with pytest.raises(RuntimeError, match=r"set_flush_denormal.*fesetround"):
        refkernels.ulp_error(1.0, 1.0)


@settable
@pytest.mark.parametrize("turn", range(10 if HUNT > 1 else 1))
def test_every_op_answers_with_the_same_bits_in_every_mode(turn: int) -> None:
    """The first of the modes is set before the package is imported. A run tries one direction of
    each op in one format and mode; a hunt all."""
    modes = "flush", "up", "flush", "down", "zero"
    printed = subprocess.run(
        [sys.executable, str(HERE / "mode_digests.py"), str(turn), *modes],
        capture_output=True, text=True, check=True,
    ).stdout.splitlines()  # fmt: skip
    assert len(printed) >= len(registry.ops())
    assert printed == digests(questions(), turn)


@settable
@pytest.mark.parametrize("name", MODES)
def test_an_enclosure_prints_and_answers_the_same_in_every_mode(name: str) -> None:
    enclosure = Enclosure(np.array([5e-324, 1.0, 3e-310]), 0.0, np.array([5e-324, 0.0, 1e-310]))

    def answer() -> tuple[Any, ...]:
        inside = enclosure.contains(0, Fraction(1, 2**1074))
        return (
            enclosure.lower_upper(0),
            enclosure.lower_upper(2),
            inside,
            repr(enclosure),
            enclosure._repr_markdown_(),
        )

    wanted = answer()
    set_mode(name)
    under_mode = answer()
    set_mode("default")
    assert under_mode == wanted
    assert wanted[2]


@settable
def test_the_examples_that_went_wrong() -> None:
    from refkernels import matmul_ref
    from refkernels.trig_ref import sin

    a = np.array([[1e-200, 1.0]])
    b = np.array([[1e-120], [-1e-310]])
    exact = matmul_ref.forward(a, b)
    truth = matmul_ref.forward(a, b, certify=("rounding", "float64"))
    set_mode("flush")
    flushed = matmul_ref.forward(a, b)
    error = refkernels.ulp_error(np.float64(1e-310), np.float64(2e-310))
    set_mode("up")
    upward = sin(np.arange(1.0, 51.0))
    set_mode("default")
    assert flushed.hi.tobytes() == exact.hi.tobytes() == truth.hi.tobytes()
    assert flushed.radius.tobytes() == exact.radius.tobytes()
    assert abs(error.value) > 1e12
    assert upward.lo.tobytes() == sin(np.arange(1.0, 51.0)).lo.tobytes()


class EnteredError(BaseException):
    """Told by the guard itself, through whatever turns errors into sentences."""


ROWS = np.ones((2, 3), np.float32)
SQUARE = {"a": ROWS, "b": ROWS.T, "dc": np.ones((2, 2), np.float32)}
NAMED: dict[str, Any] = {
    **dict.fromkeys(("table", "m_table", "v_table", "m_scale", "v_scale"), ROWS[0]),
    **SQUARE,
    "x": ROWS, "dy": ROWS, "weight": ROWS[0], "bias": ROWS[0], "format": "float32", "name": "sin",
    "algorithm": "naive", "step": np.arange(3), "min_lr": 0.0, "max_lr": 1.0, "decay_steps": 10,
    "cosine_error": 0.0, "lr": np.ones(3), "got": ROWS, "reference": ROWS, "bound": ROWS,
    "max_ulp": 1.0, "op": "sin", "inputs": {"x": ROWS}, "outputs": {"y": ROWS}, "plain": ROWS,
    "elementwise": True, "direction": "forward", "output": "y", "params": {}, "array": ROWS,
    "z": ROWS, "plan": None, "directory": None, "index": 0, "limit": 1.0, "dtype": None,
    "cotangent": ROWS, "hi": ROWS, "flat_indices": [0], "other": Enclosure(ROWS[0, :1]), "value": 1,
    "indices": [0], "target": ROWS, "weights": ROWS, "dloss": 1.0, "num_groups": 1, "param": ROWS,
    "grad": ROWS, "m": ROWS, "v": ROWS, "accum": ROWS, "buf": ROWS, "update": ROWS, "right": ROWS,
    "q": ROWS, "k": ROWS, "position": [0, 1], "exponent": ROWS, "grads": [ROWS], "tensor": 0,
    "scale_a": 1.0, "scale_b": 1.0, "schedule": Schedule(1.0), "kernel": "kernels.py:sin",
    "residual": ROWS, "lora_a": ROWS, "lora_b": ROWS, "scale": 1.0, "decay": np.zeros(3),
    "row": ROWS[0], "col": ROWS[0], "dt": ROWS, "A": ROWS, "B": ROWS, "C": ROWS, "left": ROWS,
    "logits": ROWS, "rows": [[0, 1]], "experts": [[0, 1]], "dweights": ROWS,
    "beta": ROWS, "u": ROWS[0], "g": np.zeros(3),
}  # fmt: skip
ROOMS = (*registry.families(), "metrology", "testing", "runs.measurement", "runs.sweeps")
NOT_NUMBERS = {  # they list and name, and compute nothing
    "cases", "select", "plan", "shape", "size", "ndim", "__len__", "columns", "reshape",
    "with_instruction_sets", "junit",
}  # fmt: skip


def public() -> Iterator[tuple[str, Callable[..., Any]]]:
    for room in ROOMS:
        module = importlib.import_module(f"refkernels.{room}")
        for name in module.__all__:
            function = getattr(module, name)
            if inspect.isroutine(function) and name not in NOT_NUMBERS:
                yield f"{room}.{name}", function
    yield "explain", refkernels.explain
    enclosure = Enclosure(np.ones(1))
    for name, member in vars(Enclosure).items():
        if name.startswith("_") and not name.endswith("_"):
            continue
        if isinstance(member, property) and name not in NOT_NUMBERS:
            yield f"Enclosure.{name}", lambda name=name: getattr(enclosure, name)
        elif inspect.isroutine(member) and name not in NOT_NUMBERS:
            yield f"Enclosure.{name}", getattr(enclosure, name)
    explanation = refkernels.explain("sin", {"x": ROWS}, {"y": ROWS})
    yield "Explanation.summary", lambda: explanation.summary
    yield "Explanation.to_markdown", explanation.to_markdown
    yield "Explanation._repr_markdown_", explanation._repr_markdown_
    for op in registry.ops().values():
        yield f"{op.name}'s case", lambda op=op: op.cases()[0].build("float32")


def test_every_public_function_enters_the_default_mode(monkeypatch: pytest.MonkeyPatch) -> None:
    def entered() -> None:
        raise EnteredError

    functions = dict(public())
    monkeypatch.setattr(mode, "is_default", entered)
    unguarded = [name for name, function in functions.items() if not enters(name, function)]
    assert not unguarded
    assert len(functions) > 90


def enters(name: str, function: Callable[..., Any]) -> bool:
    """Whether a call of it comes upon the guard."""
    parameters = inspect.signature(function).parameters.values()
    needed = [
        parameter.name
        for parameter in parameters
        if parameter.default is parameter.empty and parameter.kind is not parameter.VAR_POSITIONAL
    ]
    lacking = [argument for argument in needed if argument not in NAMED]
    assert not lacking, f"{name}: say in NAMED what {lacking} may be"
    arguments = {argument: NAMED[argument] for argument in needed}
    if "name" in arguments:
        arguments["name"] = {"elementary_ref": "exp"}.get(name.split(".")[0], "sin")
    try:
        function(**arguments)
    except EnteredError:
        return True
    return False
