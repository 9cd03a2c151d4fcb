"""Whatever a public function is handed, only TypeError and ValueError come out, in a sentence.

Each call has arguments that fit, but for some that do not. Beside the exceptions, no call may
change what it is handed, the floating-point mode or NumPy's error state, or warn of its own
arithmetic.
"""

import importlib
import inspect
import itertools
import traceback
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from call_values import DTYPES, any_shape, floats, odd

import refkernels
from refkernels import registry
from refkernels.arithmetic import mode
from refkernels.arithmetic.enclosure import Enclosure

ROOMS = (*registry.families(), "metrology")
METHODS = (
    "round", "undecided", "uncertainty", "wider_than",
    "__array__", "__repr__", "_repr_markdown_", "__eq__", "__add__",
)  # fmt: skip
SHAPES: dict[str, dict[str, tuple[int, ...]]] = {
    "matmul": {"a": (2, 3), "b": (3, 4), "dc": (2, 4)},
    "linear": {"x": (2, 3), "weight": (4, 3), "bias": (4,), "dy": (2, 4)},
    "layernorm": {"x": (2, 3), "weight": (3,), "bias": (3,), "dy": (2, 3)},
}
ALLOWED = (TypeError, ValueError)


def targets() -> Iterator[tuple[str, Callable[..., Any]]]:
    for room in ROOMS:
        module = importlib.import_module(f"refkernels.{room}")
        for name in module.__all__:
            function = getattr(module, name)
            if inspect.isroutine(function):
                yield f"{room}.{name}", function
    yield "registry.get", registry.get
    yield "Enclosure", Enclosure
    for name in METHODS:
        yield f"Enclosure.{name}", getattr(Enclosure, name)


TARGETS = dict(targets())


def shapes_of(target: str) -> dict[str, tuple[int, ...]]:
    if target.startswith("matmul_ref"):
        return SHAPES["linear" if "linear" in target else "matmul"]
    return SHAPES["layernorm"] if target.startswith("layernorm_ref") else {}


def fitting(rng: np.random.Generator, target: str, parameter: str) -> Any:
    """A value as the parameter wants it, for most functions that have it."""
    family = target.split(".")[0]
    if parameter == "self":
        shape = any_shape(rng)
        parts = (rng.standard_normal(shape), rng.standard_normal(shape) * 2.0**-60)
        return Enclosure(*parts, rng.random(shape) * 2.0**-100, rng.integers(-2000, 2000, shape))
    names = ("exp", "gelu", "log2") if family == "elementary_ref" else ("sin", "atan", "cospi")
    op = ("sin", "matmul", "layernorm", "gelu", "linear")[rng.integers(5)]
    choices: dict[str, tuple[Any, ...]] = {
        "format": ("float32", "bfloat16", "tf32", *DTYPES),
        "certify": ("enclosure", ("rounding", "float32"), ("ulp", "float64", 1e-3)),
        "name": names,
        "eps": (1e-5, 0.0, 1, np.float32(1e-12)),
        "normalized_shape": (None, 3, (3,), [2, 3], (2, 3)),
        "algorithm": ("naive", "welford", "chunked_welford", "pairwise"),
        "form": ("centred", "folded", "divided"),
        "lanes": (1, 4), "chunk": (1, 16), "clamp": (True, False), "limit": (4.0, 1),
        "step": (3, np.arange(5), [1, 2, 10]), "min_lr": (0.0, 1e-4), "max_lr": (1e-3, 1),
        "decay_steps": (10, 7), "cosine_error": (0.0, 1e-7), "cosine": (np.cos,), "sine": (np.sin,),
        "lr": (np.linspace(1, 0, 5), np.ones(5, np.float32)),
        "bound": (np.ones((2, 3)), 1.0), "op": (op, registry.get(op)),
        "direction": ("forward", "backward"), "output": registry.get(op).outputs,
        "params": ({}, {"eps": 1e-5}), "elementwise": (True, False), "condition": (1.0, None),
        "inputs": ({name: floats(rng, s) for name, s in SHAPES.get(op, {"x": (2, 3)}).items()},),
        "reference": (Enclosure(rng.standard_normal((2, 3)), radius=1e-9), floats(rng, (2, 3))),
        "dtype": (None, "f4"), "copy": (None, True),
        "other": (1.0, None),
        "hi": (1.0, np.ones(3)), "lo": (0.0,), "radius": (0.0, 1e-9), "scale": (0, 3),
    }  # fmt: skip
    if parameter in choices:
        return choices[parameter][rng.integers(len(choices[parameter]))]
    shape = shapes_of(target).get(parameter, (2, 3))
    return floats(rng, any_shape(rng) if rng.random() < 0.15 else shape)


def arguments(rng: np.random.Generator, target: str) -> tuple[list[Any], dict[str, Any]]:
    """Most fit, some do not; what is optional is left out now and then."""
    strange = rng.choice([0.0, 0.15, 0.4])
    first, named = [], {}
    for parameter in inspect.signature(TARGETS[target]).parameters.values():
        if parameter.default is not parameter.empty and rng.random() < 0.6:
            continue
        name = parameter.name
        own = name == "self"
        value = odd(rng) if rng.random() < strange and not own else fitting(rng, target, name)
        if own or parameter.kind in (parameter.POSITIONAL_ONLY, parameter.VAR_POSITIONAL):
            first.append(value)
        elif parameter.kind is not parameter.VAR_KEYWORD:
            named[name] = value
    return first, named


def contents(value: Any) -> bytes:
    return value.tobytes() if type(value) is np.ndarray and value.dtype.kind in "fV" else b""


def outcome(target: str, first: list[Any], named: dict[str, Any]) -> tuple[bool, str | None]:
    """Calls the target; whether it answered, and what it did that it may not do."""
    given = [*first, *named.values()]
    before, state = [contents(value) for value in given], np.geterr()
    answered, fault = False, None
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        try:
            TARGETS[target](*first, **named)
            answered = True
        except ALLOWED as failure:
            if not str(failure).strip():
                fault = "a failure without a sentence"
        except Exception as failure:
            fault = "".join(traceback.format_exception(failure, limit=-4))
    if [contents(value) for value in given] != before:
        fault = fault or "an input was changed"
    if np.geterr() != state or not mode.is_default():
        fault = fault or "NumPy's error state or the floating-point mode was changed"
    return answered, fault


def told(value: Any) -> str:
    try:
        return repr(value)[:200]
    except Exception:
        return f"a {type(value).__name__}"


@pytest.fixture(scope="module", autouse=True)
def _compiled() -> None:
    """Kernels are compiled before the seconds are counted."""
    for target, seed in itertools.product(TARGETS, range(4)):
        outcome(target, *arguments(np.random.default_rng(seed), target))


def test_only_type_errors_and_value_errors_come_out_of_calls(hunt: Any) -> None:
    names = list(TARGETS)
    answers = 0
    for number, rng in hunt.cases(least=2 * len(names)):
        target = names[rng.integers(len(names))]
        first, named = arguments(rng, target)
        answered, fault = outcome(target, first, named)
        call = ", ".join([*map(told, first), *(f"{key}={told(named[key])}" for key in named)])
        assert fault is None, f"{target}({call})\n{fault}\n{hunt.replay(number)}"
        answers += answered
    assert hunt.only is not None or answers > hunt.run / 5  # most calls are nearly right
    assert refkernels.ulp_error(1.0, 1.0).value == 0.0  # what came before left nothing behind
