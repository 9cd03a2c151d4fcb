"""JAX, TensorFlow and ONNX Runtime, which are not in the report: `refkernels env create` adds
them."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import refkernels
from refkernels import registry
from refkernels.frameworks.gateway import Session
from refkernels.runs import measurement

BOTH = ("matmul", "linear", "layernorm", "rms_norm", "softmax", "sum", "gelu", "conv2d")
OPS = {"jax": (*BOTH, "rotary"), "tensorflow": (*BOTH, "attention"), "onnxruntime": BOTH}


@pytest.mark.parametrize("name", OPS)
def test_ordinary_inputs_show_rounding_at_most(
    name: str, session_for: Callable[[str], Session], tmp_path: Path
) -> None:
    session_for(name)  # or a visible skip
    first = {op: registry.get(op).cases()[0] for op in OPS[name]}
    plan = measurement.select(OPS[name], ["float32"], [case.name for case in first.values()])
    outcome = measurement.measure(plan, tmp_path / "out", frameworks=[name])
    assert outcome.faults == 0
    judged = {
        (r["op"], r["direction"]): r["verdict"]
        for r in outcome.records
        if r["kind"] == "measurement" and r["status"] == "ok"
    }
    pairs = {(op, way) for op, case in first.items() for way in case.directions}
    assert set(judged) == {
        (op, way) for op, way in pairs if name != "onnxruntime" or way == "forward"
    }
    assert set(judged.values()) <= {"rounding", "correctly_rounded"}, judged


MASKED = (
    "attention/lengths[keys=12,seed=0]",
    "attention/causal[queries=5,keys=9,corner=bottom_right,seed=0]",
)
OFFERED = {
    "jax": MASKED,
    "tensorflow": (*MASKED, "attention/combined[seed=0]"),
    "onnxruntime": (
        *MASKED,
        "attention/combined[seed=0]",
        "cross_entropy/ignored[ignore_index=3,seed=0]",
        "cross_entropy/weighted[n=7,seed=0]",
        "nll/reduction[of=none,seed=0]",
        "nll/weighted[n=7,seed=0]",
        "rotary/positions[from=0,d=8,seed=0]",
        "rotary/interleaved[from=4000,d=64,seed=0]",
        "rotary/partial[dim=4,d=10,seed=0]",
    ),
}


@pytest.mark.parametrize(("name", "case"), [(n, case) for n in OFFERED for case in OFFERED[n]])
def test_what_a_framework_has_under_another_name_is_not_left_out(
    name: str, case: str, session_for: Callable[[str], Session]
) -> None:
    session, op = session_for(name), case.partition("/")[0]
    definition = registry.get(op)
    inputs, params = next(c for c in definition.cases() if c.name == case).build("float32")
    inputs = {key: x for key, x in inputs.items() if key not in ("dy", "dloss")}
    reply = session.run(op, "forward", inputs, params)
    assert reply.ok, reply.reason
    main = definition.outputs[0]
    explanation = refkernels.explain(op, inputs, {main: reply.outputs[main]}, params=params)
    assert explanation.verdict in ("rounding", "correctly_rounded"), explanation


def test_tensorflow_has_bfloat16_and_jit_is_a_flag(session_for: Callable[[str], Session]) -> None:
    import ml_dtypes

    session, x = session_for("tensorflow"), np.linspace(-1, 1, 6).reshape(2, 3)
    reply = session.run("softmax", "forward", {"x": x.astype(ml_dtypes.bfloat16)}, {"axis": -1})
    assert reply.outputs["y"].dtype == ml_dtypes.bfloat16
    reply = session.run("expm1", "backward", {"x": x, "dy": np.ones_like(x)})
    np.testing.assert_allclose(reply.outputs["dx"], np.exp(x), rtol=1e-15)
    with Session("tensorflow@jit=1") as compiled:
        assert compiled.run("layernorm", "forward", {"x": x}, {"eps": 1e-5}).ok


def test_jax_has_float64_and_bfloat16_and_jit_is_a_flag(
    session_for: Callable[[str], Session],
) -> None:
    import ml_dtypes

    session, x = session_for("jax"), np.linspace(-1, 1, 6).reshape(2, 3)
    for dtype in (np.float64, ml_dtypes.bfloat16):
        reply = session.run("softmax", "forward", {"x": x.astype(dtype)}, {"axis": -1})
        assert reply.outputs["y"].dtype == dtype
    with Session("jax@jit=1") as compiled:
        reply = compiled.run("layernorm", "forward", {"x": x}, {"eps": 1e-5})
        assert reply.ok, reply.reason
        assert set(reply.outputs) == {"y", "mean", "rstd"}
