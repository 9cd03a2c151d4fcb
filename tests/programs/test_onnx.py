"""ONNX's own tests of its operators: what they expect, against the exact values of ours."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

import documents
import numpy as np
import pytest
from hunting import HUNT

from refkernels import registry
from refkernels.arithmetic import formats
from refkernels.judging.questions import is_question
from refkernels.programs.operators import OPERATORS

SAMPLE = ("averagepool", "gemm", "softmax")  # every module in a hunt
LEAST = 400 if HUNT > 1 else 15
UNLIKE = {
    "test_averagepool_2d_ceil_last_window_starts_on_pad": "it is written with four digits",
    "test_hardswish": "1 / 6 is rounded to float32 before it multiplies",
    **dict.fromkeys(("test_elu", "test_elu_default", "test_selu_default"), "e^x - 1 cancels"),
}
OTHERS = ("Sum", "Mean", "HardSigmoid")  # of several tensors, and with other slopes


class Unlike(Exception):
    """What ours does not have."""


def unlike() -> NoReturn:
    raise Unlike


def dims(x: Any, given: Any = None, *, axes: Any = None, **options: Any) -> list[int]:
    """The axes of a reduction: all where none are given."""
    chosen = np.atleast_1d([] if given is None and axes is None else axes or given).tolist()
    if not x.size or (options.get("noop_with_empty_axes") and not chosen):
        unlike()
    return chosen or list(range(x.ndim))


def only(axes: list[int]) -> int:
    return axes[0] if len(axes) == 1 else unlike()


def turned(x: Any, axis: Any, reverse: int) -> Any:
    return np.flip(x, int(axis)) if reverse else x


def sides(x: Any, pads: Any) -> list[int]:
    """The padding of each axis, the same at both ends."""
    rank = x.ndim - 2
    pads = pads or [0] * 2 * rank
    return pads[:rank] if pads[:rank] == pads[rank:] else unlike()


def rows(x: Any, axis: int) -> Any:
    return x.reshape(*x.shape[: axis % x.ndim], -1)


def heads(x: Any, number: int) -> Any:
    return x if x.ndim == 4 else x.reshape(*x.shape[:2], number, -1).swapaxes(1, 2)


def start(x: Any, size: int) -> Any:
    return np.zeros((1, x.shape[1], size), x.dtype)


def gates(order: tuple[int, ...], w: Any, r: Any, b: Any) -> list[Any]:
    """The weights with their gates in ATen's order."""
    parts = [w[0], r[0], *([] if b is None else np.split(b[0], 2))]
    return [np.concatenate([np.split(part, len(order))[k] for k in order]) for part in parts]


def rules() -> Iterator[tuple[str, str, Any]]:
    """ONNX's operator, ours, and a function that gives its arguments and params."""
    lines = Path(__file__).with_name("onnx_operators.txt").read_text(encoding="utf-8").splitlines()
    for line in lines:
        if not line.startswith("#"):
            called, name, arguments = line.split(" | ")
            kind, _, signature = called.rstrip(")").partition("(")
            given = "(lambda *arguments, **params: (arguments, params))"
            yield kind, name, eval(f"lambda {signature}: {given}({arguments})", globals())


def calls(kind: str, attributes: dict[str, Any], inputs: list[Any]) -> Iterator[Any]:
    """The operator's name, its arguments and its params, where ours has the call."""
    found = [(name, rule) for ours, name, rule in RULES if ours == kind]
    floats = all(getattr(item, "dtype", np.dtype(int)).kind == "f" for item in inputs)
    if not found and floats and not attributes and kind not in OTHERS:
        ends = ("default", "Tensor")
        for name in (kind.lower(), *(f"aten.{kind.lower()}.{end}" for end in ends)):
            if name in OPERATORS or name in registry.ops():
                yield name, inputs, {}
                return
    for name, rule in found:
        try:
            inspect.signature(rule).bind(*inputs, **attributes)
        except TypeError:  # an input or an attribute that ours does not have
            continue
        try:
            yield name, *rule(*inputs, **attributes)
        except Unlike:
            continue


RULES = list(rules())


def node_tests() -> Iterator[tuple[str, str, Any, Any, Any]]:
    """The name of a test, its node as a call of ours, and what the node gives, floats."""
    nodes = pytest.importorskip("onnx.backend.test.case.node", reason="onnx is not installed")
    from onnx.helper import get_attribute_value

    for module in () if HUNT > 1 else SAMPLE:
        importlib.import_module(f"{nodes.__name__}.{module}")
    for case in nodes.collect_testcases(None) if HUNT > 1 else nodes._NodeTestCases:
        node = case.model.graph.node[0]
        given = {item.name: get_attribute_value(item) for item in node.attribute}
        attributes = {k: v.decode() if isinstance(v, bytes) else v for k, v in given.items()}
        for inputs, (y, *_) in case.data_sets:
            kinds = {a.dtype.kind if isinstance(a, np.ndarray | np.generic) else "" for a in inputs}
            floats = isinstance(y, np.ndarray | np.floating) and y.dtype.kind == "f"
            if len(case.model.graph.node) > 1 or not kinds <= set("fib") or not floats:
                continue
            arrays = map(np.asarray, inputs)
            taken = [next(arrays) if name else None for name in node.input]
            for name, arguments, params in calls(node.op_type, attributes, taken):
                yield case.name, name, arguments, params, np.asarray(y)


@pytest.mark.filterwarnings("ignore::RuntimeWarning:onnx")
def test_exact_values_agree_with_the_tests_of_onnx() -> None:
    agreeing, wrong = 0, []
    for test, name, arguments, params, y in node_tests():
        before = params.pop("before", None)
        y = params.pop("forth", np.asarray)(y)
        inputs: dict[str, Any] = {}
        if name in OPERATORS:
            given = documents.encoded(list(arguments), inputs)
            gives = documents.tensor(y.shape, y.dtype)
            firsts = [documents.tensor(shape, y.dtype) for shape in before or ()]
            several = before is not None
            nodes = [documents.call("call", name, given, *firsts, gives, several=several)]
            if before is not None:
                part = [{"node": "call"}, len(firsts)]
                nodes.append(documents.call("part", "getitem", part, gives))
            op = documents.program(nodes, inputs)
        else:
            op = registry.get(name)
            named = zip(op.inputs, arguments, strict=False)
            inputs = {key: value for key, value in named if value is not None}
        output, dtype = op.outputs[0], formats.get(y.dtype.name)
        if not is_question(op, "forward", inputs, params):  # other shapes than ours
            continue
        exact = op.evaluate("forward", inputs, params)[output]
        bound = op.bound("forward", inputs, params, dtype)[output]
        with np.errstate(all="ignore"):
            scaled = np.ldexp(y.astype(np.float64), -exact.scale)
            error = np.ldexp(np.abs((scaled - exact.hi) - exact.lo), exact.scale)
        known = np.isfinite(y) & np.isfinite(exact.radius)
        agrees = error <= bound + np.ldexp(exact.radius, exact.scale)
        same = agrees[known].all() and (np.isnan(y) == np.isnan(exact.hi))[~known].all()
        agreeing += bool(same)
        wrong += [] if same or test in UNLIKE else [test]
    assert not wrong
    assert agreeing >= LEAST
