"""The real frameworks: layouts, dtypes and quirks."""

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest

from refkernels.frameworks import catalog
from refkernels.frameworks.adapters import ops_of
from refkernels.frameworks.gateway import Reply, Session

SessionFor = Callable[[str], Session]
Array = npt.NDArray[Any]
NAMES = ("numpy", "torch", "paddle", "oneflow", "mindspore")
CPU_DTYPES = {
    "numpy": {"float16", "float32", "float64"},
    "torch": {"float16", "bfloat16", "float32", "float64"},
    "paddle": {"float32", "float64"},
    "oneflow": {"float32", "float64"},
    "mindspore": {"float16", "float32", "float64"},
}
each = pytest.mark.parametrize("name", NAMES)


def answered(reply: Reply) -> dict[str, Array]:
    assert reply.ok, reply.reason
    return reply.outputs


def arrays(seed: int, dtype: Any = np.float64, **shapes: tuple[int, ...]) -> dict[str, Array]:
    rng = np.random.default_rng(seed)
    return {name: rng.standard_normal(shape).astype(dtype) for name, shape in shapes.items()}


def gamma(k: int, u: float) -> float:
    """k u / (1 - k u): the bound on k roundings in any order (Higham 2002, Lemma 3.1)."""
    return k * u / (1 - k * u)


@each
def test_its_dtypes_on_the_cpu_are_the_known_ones(name: str, session_for: SessionFor) -> None:
    session = session_for(name)
    ops = session.info["capabilities"]["cpu"]
    reasons = ops_of(catalog.get(name).framework.adapter)
    unlike = {}
    for op, directions in ops.items():
        supported = {dtype for dtype, reason in directions["forward"].items() if reason is None}
        known = CPU_DTYPES[name] if reasons[op] is None else set()
        if name == "mindspore":
            conv = known - {"float64"}
            known = {"rms_norm": set(), "conv1d": conv, "conv2d": conv}.get(op, known)
        if name == "torch":
            lacking = {op: {"float16", "bfloat16"} for op in ("fft", "rfft", "irfft")}
            lacking["grouped_matmul"] = {"float64"}
            known = known - lacking.get(op, set())
        if (name, op) == ("paddle", "rms_norm"):  # where the CPU has AVX-512
            known = supported & {"float32"}
        if supported != known:
            unlike[op] = supported
        assert all(reason is None or reason for reason in directions["backward"].values())
    assert unlike == {}


def test_bfloat16_keeps_every_bit_in_torch(session_for: SessionFor) -> None:
    session = session_for("torch")
    x = np.arange(65536, dtype=np.uint16).view(ml_dtypes.bfloat16)
    identity = np.ones((1, 1), ml_dtypes.bfloat16)
    with np.errstate(invalid="ignore"):
        finite = x[np.isfinite(x)]
    y = answered(session.run("linear", "forward", {"x": finite[:, None], "weight": identity}))["y"]
    # x * 1 is x, and the sum that starts at +0 makes +0 of -0.
    subnormal = np.abs(finite.astype(float)) < 2.0**-126
    kept = ~subnormal & (finite != 0)
    assert kept.sum() == 2 * 254 * 128
    assert np.array_equal(y[:, 0][kept].view(np.uint16), finite[kept].view(np.uint16))


@each
def test_layernorm_gives_only_statistics_that_are_what_they_are_called(
    name: str, session_for: SessionFor
) -> None:
    x = arrays(9, np.float32, x=(3, 2, 5))["x"] * 3 + 1
    params = {"eps": 1e-5, "normalized_shape": (2, 5)}
    out = answered(session_for(name).run("layernorm", "forward", {"x": x}, params))
    known = {"numpy": {"mean", "rstd"}, "torch": {"mean", "rstd"}, "mindspore": {"mean"}}
    assert set(out) == {"y"} | known.get(name, set())
    wide = x.reshape(3, 10).astype(np.float64)
    exact = {"mean": wide.mean(1), "rstd": 1 / np.sqrt(wide.var(1) + 1e-5)}
    magnitude = {
        "mean": np.abs(wide).mean(1),
        "rstd": exact["rstd"] * (1 + exact["rstd"] ** 2 * (wide**2).mean(1)),
    }
    for key in set(out) - {"y"}:
        assert out[key].shape == (3,)
        assert np.all(np.abs(out[key] - exact[key]) <= gamma(40, 2.0**-24) * magnitude[key]), key


@each
def test_inputs_are_never_modified_and_outputs_belong_to_the_caller(
    name: str, session_for: SessionFor
) -> None:
    session = session_for(name)
    x = arrays(11, np.float32, x=(300, 301))["x"]
    before = x.copy()
    x.flags.writeable = False
    first = answered(session.run("sin", "forward", {"x": x}))["y"]
    kept = first.copy()
    first += 1
    first -= 1
    second = answered(session.run("sin", "forward", {"x": x * 2}))["y"]
    assert np.array_equal(x, before)
    assert not np.shares_memory(first, second)
    again = answered(session.run("sin", "forward", {"x": x}))["y"]
    assert np.array_equal(again, kept)


@each
def test_strided_scalar_and_empty_arrays_go_through(name: str, session_for: SessionFor) -> None:
    session = session_for(name)
    wide = arrays(12, np.float32, x=(8, 10))["x"]
    for view in (wide[::2, ::-3], wide.T, wide[0, 0], wide[:0], np.float32(0.5)):
        view = np.asarray(view)
        y = answered(session.run("cos", "forward", {"x": view}))["y"]
        assert (y.shape, y.dtype) == (view.shape, view.dtype)
        assert np.all(np.abs(y - np.cos(view.astype(float))) <= 2.0**-22)
    strided = answered(session.run("matmul", "forward", {"a": wide.T, "b": wide}))["c"]
    dense = answered(session.run("matmul", "forward", {"a": wide.T.copy(), "b": wide}))["c"]
    assert np.array_equal(strided, dense)


@each
def test_an_exception_in_an_op_is_one_sentence_and_the_next_op_works(
    name: str, session_for: SessionFor
) -> None:
    session = session_for(name)
    starts = session.starts
    reply = session.run("matmul", "forward", {"a": np.ones((3, 4)), "b": np.ones((3, 4))})
    assert reply.status == "error"
    assert str(reply.reason).startswith(f"{name}: matmul forward on cpu raised ")
    assert "\n" not in str(reply.reason)
    y = answered(session.run("cos", "forward", {"x": np.zeros(3)}))["y"]
    assert np.array_equal(y, np.ones(3))
    assert session.starts == starts


@each
def test_out_of_memory_is_reported_and_survived(name: str, session_for: SessionFor) -> None:
    session = session_for(name)
    column = np.ones((1 << 21, 1), np.float32)
    reply = session.run("matmul", "forward", {"a": column, "b": column.T})
    assert reply.status == "oom", reply.reason
    assert session.run("cos", "forward", {"x": np.zeros(3)}).ok


def test_a_pair_of_vectors_is_refused_by_oneflow_with_a_reason(session_for: SessionFor) -> None:
    reply = session_for("oneflow").run("matmul", "forward", {"a": np.ones(3), "b": np.ones(3)})
    assert reply.status == "unsupported"
    assert "takes no two vectors" in str(reply.reason)


def test_threads_set_before_the_start_are_in_the_record(session_for: SessionFor) -> None:
    session_for("torch")
    settings = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "num_interop_threads": "1"}
    with Session("torch", settings=settings) as session:
        environment = session.info["environment"]
    assert environment["threads"] == 1
    assert environment["flags"]["num_interop_threads"] == "1"
    assert environment["settings"] == settings


@each
def test_the_environment_says_what_computed(name: str, session_for: SessionFor) -> None:
    environment = session_for(name).info["environment"]
    assert environment["framework"] == name
    assert {"version", "python", "numpy", "platform", "cpu", "flags"} <= set(environment)
    assert environment["devices"][0] == "cpu"
    assert environment["threads"] >= 1
    assert environment["cpus"] >= 1
    assert environment["blas"]


def test_paddles_limit_on_eps_is_data_with_a_reason(session_for: SessionFor) -> None:
    x = np.ones((2, 3), np.float32)
    reply = session_for("paddle").run("layernorm", "forward", {"x": x}, {"eps": 0.1})
    assert reply.status == "unsupported"
    assert "refuses eps=0.1" in str(reply.reason)


def test_a_setting_that_torch_drops_is_refused() -> None:
    """Its name would be untrue: torch takes the CPU's best capability, and the usual precision."""
    with Session("torch@ATEN_CPU_CAPABILITY=AVX2") as session:
        if session.status == "not_installed":
            pytest.skip(str(session.reason))
        assert "torch does not take ATEN_CPU_CAPABILITY=AVX2 and uses" in str(session.reason)
    with Session("torch@float32_matmul_precision=lowest") as session:
        assert session.status == "error"
        assert "has no effect: it is highest" in str(session.reason)
    with Session("torch@ATEN_CPU_CAPABILITY=default,float32_matmul_precision=highest") as session:
        assert session.status == "ok", session.reason
