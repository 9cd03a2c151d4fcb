"""A function of PyTorch is read as a program, whose op has a truth, a bound and gradients."""

import json
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import documents
import ml_dtypes
import numpy as np
import pytest
from plain_interpreter import PlainInterpreter, in_one_process

import refkernels
from refkernels import programs
from refkernels.arithmetic import formats
from refkernels.judging.examination import KernelExamination
from refkernels.judging.standard import Challenge
from refkernels.op import Op
from refkernels.programs import layers, sources
from refkernels.programs.joint import JointWarning
from refkernels.programs.operators import OPERATORS
from refkernels.programs.program import ProgramError, read
from refkernels.programs.program_op import op_of as op_of_program
from refkernels.programs.spread import StatisticalWarning
from refkernels.testing import assert_kernel

FILE = Path(__file__).parent / "programs_of_users.py"
torch = pytest.mark.framework("torch")


@pytest.fixture(autouse=True)
def one_exporter(monkeypatch: pytest.MonkeyPatch, plain: Callable[..., PlainInterpreter]) -> None:
    """One process exports all programs, as an import takes seconds."""
    monkeypatch.setattr(sources, "subprocess", in_one_process(lambda name: plain(name, "programs")))


def drawn(seed: int, **shapes: tuple[int, ...]) -> dict[str, np.ndarray[Any, Any]]:
    rng = np.random.default_rng(seed)
    return {name: rng.standard_normal(s).astype(np.float32) for name, s in shapes.items()}


def op_of(name: str, inputs: dict[str, Any]) -> Op:
    return programs.named(f"{FILE}:{name}", inputs)


ARRAYS = {"x": np.full((2, 3), 3, np.float32), "w": np.full((2, 3), 3, np.float32)}
LIKE_X = documents.tensor((2, 3))


def calls(*listed: tuple[str, list[Any], str]) -> list[Any]:
    """Each gives an array like x."""
    return [
        documents.call(f"s{k}", f"aten.{operator}", arguments, documents.tensor((2, 3), dtype))
        for k, (operator, arguments, dtype) in enumerate(listed)
    ]


def steps(*listed: tuple[str, list[Any], str]) -> Op:
    """The op of a program of calls."""
    return documents.program(calls(*listed), ARRAYS, ("input", "parameter"))


def document(**changes: Any) -> dict[str, Any]:
    """y = relu(x w)."""
    nodes = [
        documents.call("mul", "aten.mul.Tensor", [{"node": "x"}, {"node": "w"}], LIKE_X),
        documents.call("relu", "aten.relu.default", [{"node": "mul"}], LIKE_X),
    ]
    return {**documents.document(nodes, ARRAYS, ("input", "parameter")), **changes}


def test_a_program_computes_what_its_nodes_say() -> None:
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
        ({"outputs": ["gelu"]}, "nothing before gives gelu"),
        ({"nodes": [*document()["nodes"], document()["nodes"][0]]}, "mul is defined twice"),
        ({"nodes": document()["nodes"][::-1]}, "nothing before gives mul"),
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


def joint(*listed: tuple[str, list[Any]]) -> dict[str, Any]:
    """y = relu(x w) whose gradient by x is computed by these calls."""
    nodes = calls(*((*call, "float32") for call in listed))
    own = documents.document(nodes, ARRAYS, ("input", "parameter"))
    cotangent = {"node": "dy", "name": "cotangent", "kind": "cotangent", "array": None, **LIKE_X}
    return {**own, "inputs": [*own["inputs"], cotangent], "gradients": ["x"]}


def test_gradients_are_the_frameworks_where_they_are_not_the_derivatives() -> None:
    steps = ("mul.Tensor", [{"node": "dy"}, {"node": "w"}]), ("mul.Tensor", [{"node": "s0"}, 1.5])
    x = np.array([[1, 2, 3], [-4, -5, 0]], np.float32)
    asked = {"x": x, "dy": np.ones_like(x)}
    right = np.array([[3, 3, 3], [0, 0, 0]])
    op = op_of_program(read(document(joint=joint(*steps)), ARRAYS, "f"), "f")
    with pytest.warns(JointWarning, match=r"not the derivatives: 6 of dx, 3 of dw"):
        found = op.evaluate("backward", asked, {})
    assert np.array_equal(found["dx"].hi, np.full((2, 3), 4.5))
    assert not found["dw"].hi.any()  # the framework has none
    known = ("relu.default", [{"node": "x"}]), ("gelu_backward", [{"node": "dy"}, {"node": "x"}])
    op = op_of_program(read(document(joint=joint(*known)), ARRAYS, "f"), "f")
    with pytest.warns(JointWarning, match=r"forward program: aten.gelu_backward is not covered\.$"):
        found = op.evaluate("backward", asked, {})
    assert np.array_equal(found["dx"].hi[x != 0], right[x != 0])


def test_any_slope_is_right_at_a_tie_of_a_maximum() -> None:
    x, dy = np.array([[[[1, 4, 4], [2, 5, 3]]]], np.float32), np.ones((1, 1, 2, 1), np.float32)
    reductions = {"amax.default": [[3], True], "max_pool2d_with_indices.default": [[1, 3]]}
    for operator, arguments in reductions.items():
        op = documents.single(operator, ["x", *arguments], dy.shape, x=x)
        dx = op.evaluate("backward", {"x": x, "dy": dy}, {})["dx"]
        assert np.array_equal(dx.hi[0, 0], [[0, 0.5, 0.5], [0, 1, 0]])
        assert np.array_equal(dx.radius[0, 0] >= 0.5, [[False, True, True], [False] * 3])


def test_a_view_of_a_storage_is_read_by_the_strides_of_its_operand() -> None:
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    given = [["x", [2, 2], [1, n], 1, [1, 2], 0] for n in (2, 6)]  # x lies by columns
    ops = [documents.single("as_strided.default", each, (2, 2), x=x) for each in given]
    assert ops[0].evaluate("forward", {"x": x}, {})["y"].hi.tolist() == [[3, 4], [1, 2]]
    with pytest.raises(ProgramError, match="elements that its operand does not have"):
        ops[1].evaluate("forward", {"x": x}, {})


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
@pytest.mark.parametrize(("name", "weight"), [("Block", "qkv.weight"), ("Net", "5.weight")])
def test_a_block_is_certified_with_its_gradients(
    name: str, weight: str, recwarn: pytest.WarningsRecorder
) -> None:
    inputs = drawn(2, x=(2, 5, 12))
    op = op_of(name, inputs)
    assert (op.inputs[0], weight in op.optional) == ("x", True)
    goal = ("ulp", "float32", 0.01)
    y = op.evaluate("forward", inputs, {}, goal)["y"]
    ulp = np.spacing(np.abs(y.hi).astype(np.float32)).astype(np.float64)
    assert np.all(y.radius <= 0.01 * ulp)
    gradients = op.evaluate("backward", {**inputs, **drawn(3, dy=y.shape)}, {}, goal)
    ulp = np.spacing(np.abs(gradients["dx"].hi).astype(np.float32)).astype(np.float64)
    assert np.all(gradients["dx"].radius <= 0.01 * ulp)
    assert not recwarn.list  # torch's own gradient could be read, and agrees


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
def test_masked_scores_take_no_part_and_a_fault_there_is_proven() -> None:
    x, keep = drawn(8, x=(16, 4))["x"], np.tri(16, dtype=bool)
    inputs = {"x": x, "keep": keep}
    op = op_of("masked", inputs)
    wide = x.astype(np.float64)
    e = np.exp(wide @ wide.T / 2)
    right, wrong = (np.float64(p / p.sum(-1, keepdims=True) @ wide) for p in (e * keep, e))
    y = op.evaluate("forward", inputs, {})["y"]
    assert np.max(np.abs(y.hi - right) + y.radius) < 1e-12
    found = refkernels.explain(op, inputs, wrong.astype(np.float32))
    assert (found.confidence, "another mask" in found.summary) == ("proven", True)
    later = e * np.tri(16, k=1)  # a mask that is filled with -inf is that of the softmax too
    y = np.float32(later / later.sum(-1, keepdims=True) @ wide)
    shifted = refkernels.explain(op_of("causal", {"x": x}), {"x": x}, y)
    assert (shifted.cause, shifted.confidence) == ("mask_shifted", "proven")


def rewritten(a: Any, b: Any, c: Any, m: Any) -> Iterator[tuple[str, list[Any], Any]]:
    """A call after a @ b, and what a right kernel may make of both."""
    yield "mm.default", ["ab", "c"], a @ (b @ c)
    yield "mean.dim", ["ab", [0], True], a.mean(0, keepdims=True) @ b
    slope = 1 / np.sqrt(m * m + np.float32(1e-5))
    named = ["ab", None, None, "m", "v", 0.1, 1e-5]
    yield "_native_batch_norm_legit_no_training.default", named, a @ (b * slope) - m * slope
    first, second = np.split(a @ b, 2, axis=1)
    top, higher = (x.max(1, keepdims=True) for x in (first, a @ b))
    e = np.concatenate([np.exp(first - top) * np.exp(top - higher), np.exp(second - higher)], 1)
    yield "_softmax.default", ["ab", 1], e / e.sum(1, keepdims=True)


def test_a_rewrite_is_right() -> None:
    arrays = drawn(11, a=(8, 5), b=(5, 40), c=(40, 3), m=(40,))
    given = {**arrays, "v": arrays["m"] ** 2}
    shape, factors = documents.tensor((8, 40)), [{"node": "a"}, {"node": "b"}]
    first = documents.call("ab", "aten.mm.default", factors, shape)
    for operator, named, y in rewritten(**arrays):
        arguments = [{"node": x} if isinstance(x, str) else x for x in named]
        last = documents.call("y", f"aten.{operator}", arguments, documents.tensor(y.shape))
        op = documents.program([first, last], given)
        error = np.abs(y - op.evaluate("forward", given, {})["y"].hi)
        assert np.all(error <= op.bound("forward", given, {}, formats.BINARY32)["y"])
        assert np.any(error > 0)


def test_a_sigmoid_is_right_where_its_exponential_overflows_and_nowhere_else() -> None:
    x, whole = np.float32([-95, -90, -1, 2]), documents.tensor((4,))
    gate = documents.call("s", "aten.sigmoid.default", [{"node": "x"}], whole)
    product = documents.call("y", "aten.mul.Tensor", [{"node": "x"}, {"node": "s"}], whole)
    op = documents.program([gate, product], {"x": x})
    challenge = Challenge("typical", "", op, "forward", {"x": x}, {})
    y = np.where(x < -89, np.float32(0), x / (1 + np.exp(-np.maximum(x, -80))))
    assert y[0] == y[1] == 0 > challenge.standard().reference["y"].hi[0]
    assert challenge.fault({"y": y}) is None
    assert challenge.fault({"y": np.where(x == -1, 0, y)}) is not None


@torch
def test_places_that_no_input_decides_are_as_they_were_rounded() -> None:
    inputs = drawn(5, x=(1, 1, 3, 5))
    op = op_of("resized", inputs)  # 2 fl(2 / 5) and 5 fl(2 / 5) lie beside whole numbers
    assert np.all(op.bound("forward", inputs, {}, formats.BINARY32)["y"] < 1e-4)


@pytest.mark.parametrize(("rows", "told"), [(130, ("y",)), (600, ())])
def test_a_program_s_answers_are_compared_with_decoys_up_to_2_18(rows: int, told: Any) -> None:
    x = drawn(2, x=(rows, 1))["x"]
    op = documents.single("expand.default", ["x", [rows, rows]], (rows, rows), x=x)
    examination = KernelExamination(op, "forward", "float32", 0)
    challenge = Challenge("typical", "", op, "forward", {"x": x}, {})
    assert examination.decisive_outputs(challenge) == told


def test_an_interpolation_may_be_two_products() -> None:
    op = steps(
        ("sub.Tensor", [{"node": "w"}, {"node": "x"}, 1], "float32"),
        ("mul.Tensor", [{"node": "x"}, {"node": "s0"}], "float32"),
        ("add.Tensor", [{"node": "s1"}, {"node": "x"}, 1], "float32"),
    )
    x = np.abs(drawn(3, x=(2, 3))["x"]) / 4
    y = (1 - x) * x + x * x
    assert np.any(y != x)  # which x + x (w - x) is
    assert_kernel(op, {"x": x, "w": x}, y)


def test_rrelu_in_evaluation_has_one_slope() -> None:
    x, name = np.float32([-2, 4]), "rrelu_with_noise_functional.default"
    op = documents.single(name, ["x", "x", 0.125, 0.375, False], (2,), x=x)
    assert op.evaluate("forward", {"x": x}, {})["y"].hi.tolist() == [-0.5, 4.0]


def test_a_softmax_of_no_numbers_has_none() -> None:
    x = np.zeros((5, 0), np.float32)
    op = documents.single("_softmax.default", ["x", 1, False], x.shape, x=x)
    assert op.evaluate("forward", {"x": x}, {})["y"].hi.shape == x.shape
    assert op.evaluate("backward", {"x": x, "dy": x}, {})["dx"].hi.shape == x.shape


EXPORT = """
import json, sys, torch
_, *sys.path[:0] = sys.argv[:3]
import exporter, programs_of_users as users
documents, kept = {}, frozenset(sys.argv[3].split())
for name in sys.argv[4:]:
    try:
        documents[name] = exporter.exported(getattr(users, name), [torch.ones(3, 4)], {}, kept)[0]
    except exporter.NotExported as error:
        documents[name] = {"error": str(error)}
print(json.dumps(documents))
"""
LINE = r".*\(.*programs_of_users.py:\d+"
TOLD = {
    "branches": "cannot read it" + LINE,
    "reads_a_number": "depends on data" + LINE,
    "uncovered": r"bessel_j0.default is not covered \(.*users.py:\d+\).*formula in xp",
    "drops": "dropout.default draws random numbers" + LINE,
    "no_tensor": r"returns 3.0, and no tensor \(programs_of_users.py:\d+",
    "is_complex": "is complex" + LINE,
    "is_sparse": "is sparse" + LINE,
    "quantises": "is quantised" + LINE,
}


@torch
def test_what_cannot_be_read_is_told_with_the_users_line_and_what_can_is_read(
    plain: Callable[..., PlainInterpreter],
) -> None:
    given = str(FILE.parent), str(sources.REMOTE.parent), " ".join(OPERATORS)
    printed = plain("torch", "programs").run(EXPORT, *given, *TOLD, "autocast", "own_gradient")
    written, array = json.loads(printed), np.ones((3, 4), np.float32)
    for name, said in TOLD.items():
        with pytest.raises(ProgramError, match=said) as refused:
            op_of_program(read(written[name], {"0": array}, name), name)
        assert "\n" not in str(refused.value)
    with pytest.raises(ProgramError, match="has no function missing"):
        op_of("missing", {"x": array})
    # The casts of autocast are a part of the program: a kernel may round where they are.
    op = op_of_program(read(written["autocast"], {"0": array}, "autocast"), "autocast")
    bound = op.bound("forward", {"x": array / np.float32(3)}, {}, formats.BINARY32)["y"]
    assert np.all((bound > 2.0**-9 * 4 / 9) & (bound < 2.0**-5))
    # The rule of an autograd.Function is the gradient, and the export alone would lose it.
    op = op_of_program(read(written["own_gradient"], {"0": array}, "own"), "own")
    dx = op.evaluate("backward", {"x": array, "dy": 2 * array}, {})["dx"]
    assert np.array_equal(dx.hi, np.full((3, 4), 6.0))
    del written["own_gradient"]["joint"]
    op = op_of_program(read(written["own_gradient"], {"0": array}, "own"), "own")
    assert op.directions == ("forward",)


@pytest.mark.parametrize("operator", ["relu.default", "exp.default", "sigmoid.default"])
def test_a_mask_may_be_a_buffer_and_a_function_has_its_limit_there(operator: str) -> None:
    op = steps(
        ("eq.Scalar", [{"node": "w"}, 0], "bool"),
        ("where.self", [{"node": "s0"}, {"float": "-inf"}, {"node": "x"}], "float32"),
        (operator, [{"node": "s1"}], "float32"),
    )
    x, w = np.full((2, 3), 2, np.float32), np.array([[1, 0, 1], [0, 1, 2]], np.float32)
    y = op.evaluate("forward", {"x": x, "w": w}, {})["y"].hi
    value = {"relu": 2.0, "exp": math.exp(2), "sigmoid": 1 / (1 + math.exp(-2))}
    assert np.allclose(y[w != 0], value[operator.partition(".")[0]], rtol=1e-15, atol=0)
    assert not y[w == 0].any()


def test_whole_numbers_made_of_floats_are_exact(recwarn: pytest.WarningsRecorder) -> None:
    op = steps(
        ("gt.Scalar", [{"node": "x"}, 0], "bool"), ("cumsum.default", [{"node": "s0"}, 1], "int64"),
        ("lt.Scalar", [{"node": "s1"}, 2], "bool"), ("floor.default", [{"node": "w"}], "float32"),
        ("mul.Tensor", [{"node": "x"}, {"node": "s2"}], "float32"),
        ("add.Scalar", [{"node": "s3"}, 1], "float32"),
        ("_to_copy.default", [{"node": "s5"}, {"dtype": "int64"}], "int64"),
        ("bitwise_and.Scalar", [{"node": "s6"}, 1], "int64"),
        ("mul.Tensor", [{"node": "s4"}, {"node": "s7"}], "float32"),
    )  # fmt: skip
    x = np.array([[1, -1, 3], [-2, 5, -7]], np.float32)
    inputs = {"x": x, "w": np.array([[4.5, 2.25, 2e3], [-2.5, -2e3, 1.25]], np.float32)}
    y = op.evaluate("forward", inputs, {})["y"]
    assert np.array_equal(y.hi, [[1, -1, 0], [0, 5, 0]])
    assert np.all(op.bound("forward", inputs, {}, formats.BINARY32)["y"] < 2.0**-140)
    assert not recwarn.list


def test_scalars_are_rounded_as_inputs_of_the_format_have_them() -> None:
    op = steps(("add.Scalar", [{"node": "x"}, 0.1], "float32"))
    for dtype in (np.float32, np.float64):
        y = op.evaluate("forward", {"x": np.zeros((2, 3), dtype)}, {})["y"]
        assert np.all(y.hi == dtype(0.1))


def test_places_are_exact_where_the_order_is_certain_and_either_is_right_at_a_tie() -> None:
    nodes = [
        documents.call("p", "aten.mul.Tensor", [{"node": "x"}, {"node": "w"}], LIKE_X),
        documents.call("top", "aten.topk.default", [{"node": "p"}, 2, 1, True, True],
                       *(documents.tensor((2, 2), t) for t in ("float32", "int64")), several=True),
        documents.call("i", "getitem", [{"node": "top"}, 1], documents.tensor((2, 2), "int64")),
        documents.call("g", "aten.gather.default", [{"node": "x"}, 1, {"node": "i"}, False],
                       documents.tensor((2, 2))),
    ]  # fmt: skip
    program = {**documents.document(nodes, ARRAYS, ("input", "parameter")), "outputs": ["g", "i"]}
    op = op_of_program(read(program, ARRAYS, "f"), "f")
    x, right = np.array([[1, 3, 2], [5, 5, 7]], np.float32), np.array([[1, 2], [2, 0]])
    found = op.evaluate("forward", {"x": x}, {})["y1"]
    assert np.array_equal(np.where(found.radius < 0.5, found.hi, -1), [[1, 2], [2, -1]])
    for other in (right, np.array([[1, 2], [2, 1]])):
        assert_kernel(op, {"x": x}, (np.take_along_axis(x, other, 1), other))
    with pytest.raises(AssertionError, match="y1"):
        assert_kernel(op, {"x": x}, (np.take_along_axis(x, right, 1), right[:, ::-1]))
    dx = op.evaluate("backward", {"x": x, "dy0": np.ones((2, 2), np.float32)}, {})["dx"]
    assert np.array_equal(dx.hi[0], [0, 1, 1])


def test_axes_are_counted_from_the_end_too() -> None:
    given = {"x": np.arange(6, dtype=np.float32).reshape(2, 3), "i": np.array([2, 0, 1])}
    op = documents.single("index_select.default", ["x", -1, "i"], (2, 3), **given)
    assert np.array_equal(op.evaluate("forward", given, {})["y"].hi, given["x"][:, [2, 0, 1]])


def test_numbers_that_meet_at_a_place_are_combined() -> None:
    given = {"x": np.float32([4, 5, 6]), "i": np.array([0, 0, 2]), "s": np.float32([3, -7, 2])}
    right = {("mean", True): [0, 5, 4], ("prod", True): [-84, 5, 12], ("amin", True): [-7, 5, 2]}
    right |= {("mean", False): [-2, 5, 2], ("sum", False): [-4, 5, 2], ("amax", False): [3, 5, 2]}
    for way, y in right.items():
        op = documents.single("scatter_reduce.two", ["x", 0, "i", "s", *way], (3,), **given)
        assert op.evaluate("forward", given, {})["y"].hi.tolist() == y, way
    for name, y in {"add": [0, 5, 8], "multiply": [-84, 5, 12]}.items():
        op = documents.single("scatter.reduce", ["x", 0, "i", "s", name], (3,), **given)
        assert op.evaluate("forward", given, {})["y"].hi.tolist() == y, name
    with pytest.raises(ProgramError, match="no such place: index 3 is out of bounds"):
        op.evaluate("forward", {**given, "i": np.array([0, 3, 2])}, {})
    one = {"x": np.array(4, np.float32), "i": np.array([0]), "s": np.float32([3])}
    none = {**one, "i": np.zeros((2, 0), int), "s": np.zeros((2, 0), np.float32)}
    for name, own, total in (("_add.default", one, 7), (".src", one, 3), ("_add.default", none, 4)):
        op = documents.single(f"scatter{name}", ["x", 0, "i", "s"], (), **own)
        assert op.evaluate("forward", own, {})["y"].hi == total


def test_a_number_may_be_the_first_term_of_what_is_added_to_it() -> None:
    given = {"x": np.float32([2**24]), "i": np.array([0, 0]), "s": np.float32([1, -1])}
    op = documents.single("scatter_add.default", ["x", 0, "i", "s"], (1,), **given)
    assert op.evaluate("forward", given, {})["y"].hi == 2**24
    assert_kernel(op, given, np.float32([2**24 - 1]))  # 2^24 + 1 is rounded to 2^24


def test_of_negative_numbers_only_whole_powers_are_numbers() -> None:
    x = np.float32([-2, -2, -3, -1.5, 0, -1.75, np.nan, -np.inf, 2, -2])
    y = np.float32([3, 2, -3, 2.5, 0, 1, 0, 3, 0.5, 2.0**25])
    op = documents.single("pow.Tensor_Tensor", ["x", "w"], (10,), x=x, w=y)
    with np.errstate(all="ignore"):
        assert_kernel(op, {"x": x, "w": y}, np.power(x, y))
    dx = op.evaluate("backward", {"x": x, "w": y, "dy": np.ones_like(x)}, {})["dx"].hi
    assert np.allclose(dx[:3], [12, -4, -1 / 27])


@pytest.mark.parametrize(("name", "negative"), [("log", False), ("relu", True)])
def test_normal_numbers_are_what_the_example_s_answers_need(name: str, negative: bool) -> None:
    op = documents.single(f"{name}.default", ["x"], (64,), x=np.ones(64, np.float32))
    assert (op.cases()[1].build("float32")[0]["x"] < 0).any() == negative


def test_what_takes_no_tensors_is_no_oracle() -> None:
    zeros = documents.call("y", "aten.full.default", [[2], 0.0], documents.tensor((2,)))
    with pytest.raises(ProgramError, match="takes no tensors"):
        documents.program([zeros], {})


def test_a_convolution_by_pieces_has_the_same_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    arrays = drawn(4, x=(2, 4, 9, 7), w=(6, 2, 3, 3), b=(6,))
    given = [*arrays, [2, 1], [1, 1], [1, 1], False, [0, 0], 2]
    op = documents.single("convolution.default", given, (2, 6, 5, 7), **arrays)
    whole = op.plain("forward", arrays, {}, "float32")["y"]
    monkeypatch.setattr(layers, "_COLUMNS", 700)
    assert np.array_equal(op.plain("forward", arrays, {}, "float32")["y"], whole)


def test_a_mean_of_one_number_may_be_folded() -> None:  # r x - r m with FMA
    arrays = {name: np.array([n], np.float32) for name, n in (("x", -0.6), ("w", -4.8))}
    op = documents.single("layer_norm.default", ["x", [1], "w", None, 1e-5, False], (1,), **arrays)
    with pytest.warns(StatisticalWarning):
        bound = op.bound("backward", {**arrays, "dy": np.ones(1, np.float32)}, {}, "float32")
    assert 1e-7 < bound["dw"] < 1e-4


def test_a_score_at_the_end_of_the_range_takes_no_part_in_a_bound() -> None:
    op = steps(
        ("add.Tensor", [{"node": "x"}, {"node": "w"}, 1], "float32"),
        ("_softmax.default", [{"node": "s0"}, 1, False], "float32"),
    )
    w = np.array([[0, 0, np.finfo(np.float32).min]] * 2, np.float32)
    inputs = {"x": np.array([[1, -1, -3], [2, 5, 1e3]], np.float32), "w": w}
    assert np.all(op.bound("forward", inputs, {}, formats.BINARY32)["y"] < 2.0**-19)


def test_a_cast_is_rounding_to_a_statistic_too() -> None:
    op = steps(
        ("_to_copy.default", [{"node": "x"}, {"dtype": "bfloat16"}], "bfloat16"),
        ("sub.Tensor", [{"node": "s0"}, {"node": "w"}, 1], "float32"),
        ("cumsum.default", [{"node": "s1"}, 1], "float32"),
    )
    x = drawn(9, x=(2, 3))["x"]
    inputs = {"x": x, "w": x * np.float32(1 + 2.0**-12)}
    with pytest.warns(StatisticalWarning):
        limit = op.bound("forward", inputs, {}, formats.BINARY32)["y"]
    right = np.cumsum(x.astype(ml_dtypes.bfloat16).astype(np.float32) - inputs["w"], axis=1)
    assert np.all(np.abs(right - op.evaluate("forward", inputs, {})["y"].hi) <= limit)


def test_a_statistic_allows_for_functions_that_are_off_by_two_ulp() -> None:
    """1 + erf(t) of a large negative t shows erf's last digits whole."""
    op = steps(
        ("cumsum.default", [{"node": "x"}, 1], "float32"),
        ("gelu.default", [{"node": "s0"}], "float32"),
    )
    x = np.array([[-5.25, 0.0625, 0.0625], [-5.125, 0.0625, 0.0625]], np.float32)
    total = np.cumsum(x, axis=1)
    off = np.array([[2.0**-23], [-(2.0**-23)]], np.float32)
    erf = np.vectorize(math.erf)(total / 2**0.5).astype(np.float32) + off
    inputs = {"x": x, "w": x}
    with pytest.warns(StatisticalWarning):
        limit = op.bound("forward", inputs, {}, formats.BINARY32)["y"]
    error = np.abs(total / 2 * (1 + erf) - op.evaluate("forward", inputs, {})["y"].hi)
    assert 0.1 < np.max(error / limit) < 1


def test_a_statistic_of_float64_knows_more_than_float64() -> None:
    """All readings of these steps give the same answer, whose errors are not 0."""
    op = steps(
        ("add.Tensor", [{"node": "x"}, {"node": "w"}], "float64"),
        ("sub.Tensor", [{"node": "s0"}, {"node": "w"}], "float64"),
        ("cumsum.default", [{"node": "s1"}, 1], "float64"),
    )
    x = 3.0 * drawn(9, x=(2, 3))["x"].astype(np.float64)
    inputs = {"x": x, "w": np.full((2, 3), 1e16)}
    with pytest.warns(StatisticalWarning):
        limit = op.bound("forward", inputs, {}, formats.BINARY64)["y"]
    right = np.cumsum((x + 1e16) - 1e16, axis=1)  # of even numbers
    error = np.abs(right - op.evaluate("forward", inputs, {})["y"].hi)
    assert error.max() > 0
    assert np.all(error <= limit)


def test_comparisons_and_remainders_know_infinite_numbers() -> None:
    ends = np.array([[-np.inf, 3, np.inf], [np.inf, -2, 0]], np.float32)
    x = np.array([[-5, 3, 5], [5, -7, -0.5]], np.float32)
    for name, rule in {"ne": np.not_equal, "lt": np.less, "ge": np.greater_equal}.items():
        op = steps(
            (f"{name}.Scalar", [{"node": "x"}, {"float": "inf"}], "bool"),
            ("where.self", [{"node": "s0"}, 1.0, 2.0], "float32"),
        )
        y = op.evaluate("forward", {"x": x}, {})["y"]
        assert np.array_equal(y.hi, np.where(rule(x, np.inf), 1, 2))
        y = op.evaluate("forward", {"x": ends}, {})["y"]
        assert np.array_equal(y.radius == 0, np.isfinite(ends))  # 1 or 2
    for name, numpy_rule in {"remainder": np.remainder, "fmod": np.fmod}.items():
        op = steps((f"{name}.Tensor", [{"node": "x"}, {"node": "w"}], "float32"))
        w = np.where(ends == 0, np.float32(2), ends)
        y = op.evaluate("forward", {"x": x, "w": w}, {})["y"]
        known, got = np.isfinite(y.radius), numpy_rule(x, w)
        assert np.array_equal(y.hi[known], got[known])
        assert np.all(known | ~np.isfinite(w))
