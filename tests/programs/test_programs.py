"""A function of PyTorch is read as a program, whose op has a truth, a bound and gradients."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import refkernels
from refkernels import programs
from refkernels.arithmetic import formats
from refkernels.op import Op
from refkernels.programs.program import ProgramError, read
from refkernels.programs.spread import StatisticalWarning
from refkernels.testing import assert_kernel

FILE = Path(__file__).parent / "programs_of_users.py"
torch = pytest.mark.framework("torch")


def drawn(seed: int, **shapes: tuple[int, ...]) -> dict[str, np.ndarray[Any, Any]]:
    rng = np.random.default_rng(seed)
    return {name: rng.standard_normal(s).astype(np.float32) for name, s in shapes.items()}


def op_of(name: str, inputs: dict[str, Any]) -> Op:
    return programs.named(f"{FILE}:{name}", inputs)


def document(**changes: Any) -> dict[str, Any]:
    """y = relu(x w), as the exporter writes it."""
    tensor = {"shape": [2, 3], "dtype": "float32"}
    node = {"line": "f.py:1", "several": False, "value": None, "gives": [tensor]}
    w = {"node": "w", "name": "w", "kind": "parameter", "array": "0", "shape": [2, 3]}
    return {
        "schema": 1, "torch": "2.13.0", "custom_gradients": [], "outputs": ["relu"],
        "inputs": [{"node": "x", "name": "x", "kind": "input", "array": "0", **tensor},
                   {**w, "dtype": "float32"}],
        "nodes": [{"name": "mul", "operator": "aten.mul.Tensor",
                   "arguments": [{"node": "x"}, {"node": "w"}], **node},
                  {"name": "relu", "operator": "aten.relu.default",
                   "arguments": [{"node": "mul"}], **node}],
        **changes,
    }  # fmt: skip


ARRAYS = {"0": np.full((2, 3), 3, np.float32)}


def test_a_program_computes_what_its_nodes_say() -> None:
    from refkernels.programs.program_op import op_of as op_of_program

    op = op_of_program(read(document(), ARRAYS, "f"), "f")
    x = np.array([[1, -2, 0], [0.1, 7, -1]], np.float32)
    y = op.evaluate("forward", {"x": x}, {})["y"]
    assert np.array_equal(y.hi, np.maximum(3.0 * x.astype(np.float64), 0))
    assert op.formulas
    assert getattr(op.formulas.first("forward"), "steps", "") is None  # bounds stay proven
    gradients = op.evaluate("backward", {"x": x, "dy": np.ones_like(x)}, {})
    assert np.array_equal(gradients["dx"].hi[x != 0], np.where(x > 0, 3.0, 0.0)[x != 0])
    assert np.array_equal(gradients["dw"].hi[x > 0], x[x > 0].astype(np.float64))
    assert op.evaluate("forward", {"x": x, "w": x}, {})["y"].hi[1, 1] == 49.0


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"schema": 2}, "schema 2, but this version reads 1"),
        ({"error": "it is complex"}, "f: it is complex"),
        ({"outputs": ["gelu"]}, "no node is the output gelu"),
        ({"nodes": [*document()["nodes"], document()["nodes"][0]]}, "mul is defined twice"),
        ({"nodes": document()["nodes"][::-1]}, "relu takes mul, which no node before it gives"),
        ({"inputs": [{**document()["inputs"][0], "dtype": "complex64"}]}, "x is complex64"),
        ({"inputs": [{**document()["inputs"][0], "shape": [-1]}]}, r"x has the shape \[-1\]"),
        ({"inputs": [{**document()["inputs"][1], "array": "7"}]}, "w has no array 7"),
        ({"inputs": [{**document()["inputs"][1], "shape": [3]}]}, r"the array of w is float32"),
        ({"inputs": "x"}, "is no program: TypeError"),
    ],
)
def test_a_program_that_is_not_whole_is_refused_in_one_sentence(
    changes: dict[str, Any], said: str
) -> None:
    with pytest.raises(ProgramError, match=said) as refused:
        read(document(**changes), ARRAYS, "f")
    assert str(refused.value).count(". ") == 0


def test_a_view_of_a_storage_is_read_by_the_strides_of_its_operand() -> None:
    from refkernels.programs.program_op import op_of as op_of_program

    node = {"name": "y", "line": "f.py:1", "several": False, "value": None,
            "operator": "aten.as_strided.default",
            "gives": [{"shape": [2, 2], "dtype": "float32"}]}  # fmt: skip
    given = [{"node": "x"}, [2, 2], [1, 2], 1, [1, 2], 0]  # x lies by columns
    reads = document(nodes=[{**node, "arguments": given}], outputs=["y"])
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    y = op_of_program(read(reads, ARRAYS, "f"), "f").evaluate("forward", {"x": x}, {})["y"]
    expected = np.lib.stride_tricks.as_strided(x.T.copy().ravel()[1:], (2, 2), (4, 8))
    assert np.array_equal(y.hi, expected)
    given[2] = [1, 6]
    with pytest.raises(ProgramError, match="elements that its operand does not have"):
        op_of_program(read(reads, ARRAYS, "f"), "f").evaluate("forward", {"x": x}, {})


@torch
def test_a_right_kernel_passes_and_a_wrong_one_fails(recwarn: pytest.WarningsRecorder) -> None:
    inputs = drawn(1, x=(7, 5), weight=(5, 3), bias=(3,))
    op = op_of("fused", inputs)
    assert (op.inputs, op.gradients) == (("x", "weight", "bias"), ("dx", "dweight", "dbias"))

    def kernel(eps: float = 1e-5, last: float = 0.044715) -> Any:
        x, weight, bias = (a.astype(np.longdouble) for a in inputs.values())
        z = x @ weight + bias
        z = (z - z.mean(-1, keepdims=True)) / np.sqrt(z.var(-1, keepdims=True) + eps)
        inner = np.sqrt(2 / np.pi) * (z + last * z**3)
        return 0.05 * z * (1 + np.tanh(inner))

    y = op.evaluate("forward", inputs, {}, ("ulp", "float32", 2.0**-10))["y"]
    bound = op.bound("forward", inputs, {}, formats.BINARY32)["y"]
    rms = float(np.sqrt(np.mean(y.hi**2)))
    assert np.all(bound < 1e-3 * rms)
    assert np.all(np.abs(y.hi - kernel()) < 1e-7 * rms)  # 0.1 is a float32 number in the program
    assert_kernel(op, inputs, kernel().astype(np.float32))
    for wrong in (kernel(eps=1e-2), kernel(last=0.1)):
        with pytest.raises(AssertionError, match="exceeds_bound"):
            assert_kernel(op, inputs, wrong.astype(np.float32))
    inputs["x"][3] = np.nan, *range(4)
    odd = op.bound("forward", inputs, {}, formats.BINARY32)["y"]
    assert np.array_equal(np.delete(odd, 3, 0), np.delete(bound, 3, 0))  # a row of NaN widens none
    assert not {warning.category for warning in recwarn} & {StatisticalWarning}


@torch
def test_a_block_is_certified_with_its_gradients() -> None:
    inputs = drawn(2, x=(2, 5, 12))
    op = op_of("Block", inputs)
    assert (op.inputs[0], "qkv.weight" in op.optional) == ("x", True)
    goal = ("ulp", "float32", 0.01)
    y = op.evaluate("forward", inputs, {}, goal)["y"]
    ulp = np.spacing(np.abs(y.hi).astype(np.float32)).astype(np.float64)
    assert np.all(y.radius <= 0.01 * ulp)
    dy = drawn(3, dy=(2, 5, 12))
    gradients = op.evaluate("backward", {**inputs, **dy}, {}, goal)
    moved = {"x": inputs["x"] + np.float32(2.0**-6) * drawn(4, d=(2, 5, 12))["d"]}
    change = op.evaluate("forward", moved, {})["y"].hi - y.hi
    slope = np.sum(gradients["dx"].hi * (moved["x"] - inputs["x"]).astype(np.float64))
    assert abs(np.sum(change * dy["dy"]) - slope) < 0.1 * abs(slope)


@torch
def test_a_vague_bound_is_replaced_by_the_spread_of_readings() -> None:
    inputs = drawn(8, x=(2, 40, 12))
    op = op_of("Deep", inputs)
    assert op.formulas is not None
    arrays = op.formulas.question("forward", inputs, {}).arrays
    weights = {name: array[0] for name, array in arrays.items() if array is not None}
    with pytest.warns(StatisticalWarning, match=r"y \(scaled_dot_product_attention\) is"):
        limit = op.bound("forward", inputs, {}, formats.BINARY32)["y"]
    y = op.evaluate("forward", inputs, {}, ("ulp", "float32", 0.01))["y"]
    assert np.sqrt(np.mean(limit**2)) < 1e-5 * np.sqrt(np.mean(y.hi**2))
    for dtype, least, most in ((np.float32, 0.01, 1.0), (np.float16, 2.0, 1e4)):
        x = inputs["x"]
        for k in range(4):
            x = _block(x, {n[9:]: w for n, w in weights.items() if n[7:8] == f"{k}"}, dtype)
        error = np.abs(x - y.hi)
        assert least < np.max(error / limit) < most


def _block(x: Any, w: dict[str, Any], dtype: Any) -> Any:
    """The block in NumPy, every step in the dtype."""
    w, x = {name: array.astype(dtype) for name, array in w.items()}, x.astype(dtype)
    z = x - x.mean(-1, keepdims=True, dtype=dtype)
    z = z / np.sqrt((z * z).mean(-1, keepdims=True, dtype=dtype) + dtype(1e-5))
    z = (z * w["norm.weight"] + w["norm.bias"]) @ w["qkv.weight"].T + w["qkv.bias"]
    q, k, v = (p.reshape(2, 40, 3, 4).transpose(0, 2, 1, 3) for p in np.split(z, 3, axis=-1))
    s = np.where(np.tri(40, dtype=bool), q @ k.transpose(0, 1, 3, 2) / dtype(2), -np.inf)
    e = np.exp((s - s.max(-1, keepdims=True)).astype(dtype))
    a = (e / e.sum(-1, keepdims=True)) @ v
    x = x + a.transpose(0, 2, 1, 3).reshape(x.shape) @ w["out.weight"].T + w["out.bias"]
    u = x @ w["up.weight"].T + w["up.bias"]
    erf = np.vectorize(math.erf)(u / math.sqrt(2)).astype(dtype)
    h = dtype(0.5) * u * (dtype(1) + erf)
    return (x + h @ w["down.weight"].T + w["down.bias"]).astype(np.float64)


@torch
def test_masked_scores_take_no_part() -> None:
    x = drawn(5, x=(6, 4))["x"]
    keep = np.tri(6, dtype=bool)
    y = op_of("masked", {"x": x, "keep": keep}).evaluate("forward", {"x": x, "keep": keep}, {})["y"]
    wide = x.astype(np.float64)
    scores = np.where(keep, wide @ wide.T / 2, -np.inf)
    e = np.exp(scores - scores.max(-1, keepdims=True))
    assert np.max(np.abs(y.hi - e / e.sum(-1, keepdims=True) @ wide) + y.radius) < 1e-12


@torch
def test_a_fault_of_a_program_is_proven() -> None:
    x, keep = drawn(8, x=(16, 4))["x"], np.tri(16, dtype=bool)
    inputs = {"x": x, "keep": keep}
    e = np.exp(x @ x.T / 2)
    wrong = (e / e.sum(-1, keepdims=True) @ x).astype(np.float32)
    found = refkernels.explain(op_of("masked", inputs), inputs, wrong)
    assert (found.confidence, "another mask" in found.summary) == ("proven", True)


@torch
@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("branches", "branches.*programs_of_users.py:\\d+"),
        ("reads_a_number", "depends on data.*programs_of_users.py:\\d+"),
        ("uncovered", "bessel_j0.*is not covered.*formula in xp"),
        ("drops", "active dropout.*programs_of_users.py:\\d+"),
        ("is_complex", "complex.*programs_of_users.py:\\d+"),
        ("missing", "has no function missing"),
    ],
)
def test_what_cannot_be_read_is_told_with_the_users_line(name: str, said: str) -> None:
    with pytest.raises(ProgramError, match=said) as refused:
        op_of(name, drawn(6, x=(3, 4)))
    assert "\n" not in str(refused.value)


@torch
def test_a_gradient_of_ones_own_has_no_oracle() -> None:
    op = op_of("own_gradient", drawn(7, x=(3,)))
    assert op.directions == ("forward",)


def masked(operator: str) -> dict[str, Any]:
    """y = f(where(w = 0, -inf, x)), whose mask is a buffer of floats."""
    tensor, truth = {"shape": [2, 3], "dtype": "float32"}, {"shape": [2, 3], "dtype": "bool"}
    node = {"line": "f.py:1", "several": False, "value": None}
    where = [{"node": "eq"}, {"float": "-inf"}, {"node": "x"}]
    steps = [("eq", "eq.Scalar", [{"node": "w"}, 0], truth), ("cut", "where.self", where, tensor),
             ("y", operator, [{"node": "cut"}], tensor)]  # fmt: skip
    nodes = [{"name": n, "operator": f"aten.{o}", "arguments": a, "gives": [g], **node}
             for n, o, a, g in steps]  # fmt: skip
    return document(nodes=nodes, outputs=["y"])


@pytest.mark.parametrize("operator", ["relu.default", "exp.default", "sigmoid.default"])
def test_a_mask_may_be_a_buffer_and_a_function_has_its_limit_there(operator: str) -> None:
    from refkernels.programs.program_op import op_of as op_of_program

    op = op_of_program(read(masked(operator), ARRAYS, "f"), "f")
    x, w = np.full((2, 3), 2, np.float32), np.array([[1, 0, 1], [0, 1, 2]], np.float32)
    y = op.evaluate("forward", {"x": x, "w": w}, {})["y"].hi
    value = {"relu": 2.0, "exp": math.exp(2), "sigmoid": 1 / (1 + math.exp(-2))}
    assert np.allclose(y[w != 0], value[operator.partition(".")[0]], rtol=1e-15, atol=0)
    assert not y[w == 0].any()
