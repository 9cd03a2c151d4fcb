"""Every adapter keeps the contract, by its source: no framework need be installed."""

import ast
import sys
import types
from collections.abc import Callable
from pathlib import Path
from unittest import mock

import numpy as np
import pytest

from refkernels import experts_ref, explain, fused_ref, registry
from refkernels.frameworks import adapters as adapters_of
from refkernels.frameworks import catalog, gateway
from refkernels.frameworks.catalog import Framework
from refkernels.frameworks.gateway import Session

ATTENTION = ("attention", "rotary")
FUSED = {
    "selective_log_softmax",
    "gated_delta_rule",
    "sampling_softmax",
    "spectral_norm",
    "weight_norm",
    *(op.name for op in (*fused_ref.OPS, *experts_ref.OPS)),
}
SCANS = ("linear_attention", "selective_scan")
OPS = {name: op.outputs[0] for name, op in registry.ops().items()}
LOSSES = (
    "cross_entropy", "nll", "soft_cross_entropy", "masked_lm_loss", "mse", "l1", "huber",
    "smooth_l1", "kl_div", "bce_with_logits",
)  # fmt: skip
adapters = pytest.mark.parametrize("framework", catalog.BUILTIN, ids=lambda f: f.name)


def tree(framework: Framework) -> ast.Module:
    return ast.parse(framework.source(), feature_version=(3, 8))


@adapters
def test_an_op_is_in_the_table_with_its_main_output(framework: Framework) -> None:
    table = adapters_of.table_of(framework.adapter, "OPS")
    assert all(isinstance(value, ast.Tuple) for value in table.values())
    listed = {op: ast.literal_eval(value.elts[0]) for op, value in table.items()}  # type: ignore[attr-defined]
    assert len(listed) > 20
    assert listed.items() <= OPS.items()


def test_what_is_read_of_numpy_s_table_is_what_it_is_when_it_runs() -> None:
    exec(catalog.get("numpy").framework.source(), adapter := {})
    reasons = adapters_of.ops_of(catalog.get("numpy").framework.adapter)
    functions = {op: function for op, (_, function) in adapter["OPS"].items()}
    assert reasons == {
        op: function if isinstance(function, str) else None for op, function in functions.items()
    }
    assert functions["tanh"](x=np.float64(0.5)) == np.tanh(0.5)


@adapters
def test_an_adapter_needs_numpy_its_framework_and_the_standard_library(
    framework: Framework,
) -> None:
    import sys

    imported = set()
    for node in ast.walk(tree(framework)):
        if isinstance(node, ast.Import):
            imported |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            imported.add(str(node.module).split(".")[0])
    allowed = {"numpy", framework.module, *sys.stdlib_module_names}
    # Of an Ascend build; what compiles libm's loop where it happens to be there; what JAX and
    # TensorFlow require themselves; and what writes the graphs.
    allowed |= {
        "torch": {"torch_npu"},
        "libm": {"numba"},
        "jax": {"jaxlib", "ml_dtypes"},
        "tensorflow": {"keras"},
        "onnxruntime": {"onnx"},
    }.get(framework.name, set())
    assert imported <= allowed


@adapters
def test_flags_are_lower_case_and_can_be_read_without_running(framework: Framework) -> None:
    flags = adapters_of.flags_of(framework.adapter)
    assert all(flag == flag.lower() for flag in flags)
    assert bool(flags) == (framework.name not in ("numpy", "libm"))


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_numpy_s_layernorm_is_the_usual_formula_and_is_reported_as_one(dtype: str) -> None:
    x, weight, bias = np.random.default_rng(1).standard_normal((3, 4, 6)).astype(dtype) + 3
    mean, var = x.mean(axis=-1, keepdims=True), x.var(axis=-1, keepdims=True)
    y = (x - mean) / np.sqrt(var + 1e-5) * weight[0] + bias[0]
    inputs = {"x": x, "weight": weight[0], "bias": bias[0]}
    with gateway.Session("numpy") as session:
        outputs = session.run("layernorm", "forward", inputs, {"eps": 1e-5}).outputs
        of_formulas = ("scaled_matmul", "conv1d", "conv2d", *ATTENTION, *SCANS)
        composed = ("linear", "layernorm", "rms_norm", *LOSSES, *of_formulas)
        formulas = dict.fromkeys(composed, "NumPy formula")
        assert session.info["formulas"] == formulas
    assert outputs["y"].tobytes() == y.tobytes()
    assert outputs["mean"].tobytes() == mean.tobytes()
    assert np.array_equal(outputs["rstd"], (1 / np.sqrt(var + 1e-5)).reshape(4))


def test_what_an_adapter_composes_is_called_composed() -> None:
    """Of the others, attention, rotary embedding and fusions alone, where they have no kernel."""
    composed = {}
    for framework in catalog.BUILTIN:
        namespace = {}
        for node in tree(framework).body:
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "FORMULAS":
                namespace = eval(ast.unparse(node.value))
        composed[framework.name] = tuple(name for name in namespace if name in ATTENTION)
        if framework.name not in ("numpy", "jax", "onnxruntime", "tensorflow"):
            assert set(namespace) <= {*ATTENTION, *FUSED}
            assert all(name.endswith(" ops") for name in namespace.values())
    assert composed == {
        "numpy": ATTENTION, "libm": (), "torch": ("rotary",), "paddle": ("rotary",),
        "oneflow": ATTENTION, "mindspore": ATTENTION, "jax": ("rotary",),
        "onnxruntime": ("rotary",), "tensorflow": ("rotary",),
    }  # fmt: skip


@pytest.mark.parametrize("text", ["import numpy", "OPS = [1]"])
def test_an_adapter_without_ops_is_refused(tmp_path: Path, text: str) -> None:
    adapter = tmp_path / "partial_adapter.py"
    adapter.write_text(text)
    with Session(Framework("partial", adapter, "numpy", python=sys.executable)) as session:
        assert session.status == "error"
        assert "partial_adapter.py has no OPS {op:" in str(session.reason)


WHOLE = """
import numpy as np
OPS = {"sin": ("y", lambda x: np.sin(x)), "cos": ("y", "there is no cosine")}
"""


def test_what_an_adapter_may_leave_out_has_a_meaning(tmp_path: Path) -> None:
    adapter = tmp_path / "whole_adapter.py"
    adapter.write_text(WHOLE)
    x = np.ones(3, np.float32)
    with Session(Framework("whole", adapter, "numpy", python=sys.executable)) as session:
        assert session.run("sin", "forward", {"x": x}).outputs["y"].tobytes() == np.sin(x).tobytes()
        assert session.run("cos", "forward", {"x": x}).reason == "whole: there is no cosine"
        backward = session.run("sin", "backward", {"dy": x, "x": x})
        assert (session.info["version"], session.info["devices"]) == (np.__version__, ["cpu"])
    assert backward.status == "unsupported"
    assert "no automatic differentiation" in str(backward.reason)
    assert adapters_of.flags_of(adapter) == set()


@pytest.mark.parametrize(
    ("right", "wrong", "reason"),
    [
        ("OPS =", "def version(): 1 / 0\nOPS =", "its version() raised ZeroDivisionError"),
        ("np.sin(x)", "{'x': x}", "returned no y: it returned only x"),
        ("np.sin(x)", "3", "y is a builtins.int, which is not read"),
    ],
)
def test_what_an_adapter_returns_against_its_contract_is_named(
    tmp_path: Path, right: str, wrong: str, reason: str
) -> None:
    adapter = tmp_path / "whole_adapter.py"
    assert right in WHOLE
    adapter.write_text(WHOLE.replace(right, wrong))
    with Session(Framework("whole", adapter, "numpy", python=sys.executable)) as session:
        reply = session.run("sin", "forward", {"x": np.ones(3, np.float32)})
    assert reply.status == "error"
    assert reason in str(reply.reason)


def test_mindspore_launches_and_waits_whatever_its_version(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before 2.5 it had no `runtime`."""
    code = compile(catalog.get("mindspore").framework.source(), "an_adapter", "exec")
    for names, called in (({}, "runtime.launch_blocking"), ({"runtime": object()}, "set_context")):
        mindspore = mock.MagicMock(**names)
        monkeypatch.setitem(sys.modules, "mindspore", mindspore)
        exec(code, adapter := {})
        assert called in [call[0] for call in mindspore.method_calls]
        assert adapter["information"]()["launch"] == "blocking"


def test_libm_without_numba_gives_the_same_bits(session_for: Callable[[str], Session]) -> None:
    adapter = types.ModuleType("adapter")
    source = catalog.get("libm").framework.source()
    exec(compile(source.replace("import numba", "raise ImportError"), "adapter", "exec"),
         adapter.__dict__)  # fmt: skip
    assert adapter.numba is None
    for dtype in (np.float32, np.float64):
        x = np.array([[0.5, -1.25, np.inf], [-0.0, 1e-30, np.nan]], dtype)
        plain = adapter.forward("expm1", {"x": x}, {})
        compiled = session_for("libm").run("expm1", "forward", {"x": x}).outputs["y"]
        assert plain.dtype == dtype
        np.testing.assert_array_equal(plain, compiled)
        assert np.signbit(plain[1, 0])


def test_oneflow_s_slopes_of_pow_are_named(session_for: Callable[[str], Session]) -> None:
    numbers = [0.0, -0.0, 2.0, -2.0, 0.5, 1e30, 1e-30]
    x, e = (grid.reshape(-1) for grid in np.meshgrid(numbers, [0.0, 1.0, 2.0, 3.0]))
    inputs = {"dy": np.ones(x.size), "x": x, "exponent": e}
    inputs = {name: array.astype(np.float32) for name, array in inputs.items()}
    reply = session_for("oneflow").run("pow", "backward", inputs)
    assert reply.ok, reply.reason
    square = reply.outputs["dx"][(e == 2.0) & ((x == 1e30) | (x == 1e-30))]
    np.testing.assert_allclose(square, [2e30, 2e-30], rtol=1e-6)
    for output, cause in (("dx", "zero_times_infinity"), ("dexponent", "negative_base_ignored")):
        outputs = {output: reply.outputs[output]}
        explanation = explain("pow", inputs, outputs, direction="backward")
        assert (explanation.verdict, explanation.cause) == ("special_value_mismatch", cause)
