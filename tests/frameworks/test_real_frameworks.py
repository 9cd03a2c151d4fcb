"""The real frameworks: layouts, dtypes, gradients, quirks, and the seeds' numbers."""

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest

from refkernels.frameworks import catalog
from refkernels.frameworks.gateway import Reply, Session

SessionFor = Callable[[str], Session]
Array = npt.NDArray[Any]
NAMES = ("numpy", "torch", "paddle", "oneflow", "mindspore")
AUTOGRAD = NAMES[1:]
CPU_DTYPES = {
    "numpy": {"float16", "float32", "float64"},
    "torch": {"float16", "bfloat16", "float32", "float64"},
    "paddle": {"float32", "float64"},
    "oneflow": {"float32", "float64"},
    "mindspore": {"float16", "float32", "float64"},
}
NO_PI = {"sinpi", "cospi"}
ROWS = {
    "dropout",
    "softmax", "log_softmax", "hardswish", "mish", "hardsigmoid", "elu", "selu", "softsign",
    "log_sigmoid", "swiglu",
}  # fmt: skip
NORMS = {"batch_norm", "group_norm", "instance_norm"}
CLIPS = {"clip_by_global_norm", "clip_by_norm", "clip_by_value"}
STEPS = {"sgd", "momentum", "adam", "adamw", "lamb", "adagrad", "rmsprop", "lion"}
LACKING = {
    "numpy": {
        *STEPS,
        "clip_by_global_norm",
        "clip_by_norm",
        *NORMS,
        "logsumexp",
        *NO_PI,
        *ROWS,
        "sigmoid",
        "silu",
        "softplus",
        "erf",
        "erfc",
        "gelu",
        "gelu_tanh",
        "rsqrt",
    },
    "libm": {
        *STEPS,
        *CLIPS,
        *ROWS,
        "rms_norm",
        "sigmoid",
        "silu",
        "softplus",
        "gelu",
        "gelu_tanh",
        "reciprocal",
    },
    "torch": {*NO_PI, "masked_lm_loss", "lamb", "lion"},
    "paddle": {*NO_PI, "scaled_matmul", "masked_lm_loss", "exp2", "erfc", "lion"},
    "oneflow": {*NO_PI, "scaled_matmul", "masked_lm_loss", "huber", "exp2", "lion", "hypot"},
    "mindspore": {
        *NO_PI,
        "scaled_matmul",
        "masked_lm_loss",
        "instance_norm",
        "rms_norm",
        "lamb",
        "lion",
    },
}
U = 2.0**-53
each = pytest.mark.parametrize("name", NAMES)
each_autograd = pytest.mark.parametrize("name", AUTOGRAD)


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
    unlike = {}
    for op, directions in ops.items():
        supported = {dtype for dtype, reason in directions["forward"].items() if reason is None}
        known = set() if op in LACKING[name] else CPU_DTYPES[name]
        if name == "mindspore" and op in ("conv1d", "conv2d"):
            known = known - {"float64"}
        if (name, op) == ("paddle", "rms_norm"):  # where the CPU has AVX-512
            known = supported & {"float32"}
        if supported != known:
            unlike[op] = supported
        assert all(reason is None or reason for reason in directions["backward"].values())
    assert unlike == {}


def _softmax(x: Array, axis: int) -> Array:
    e = np.exp(x - x.max(axis, keepdims=True))
    return np.asarray(e / e.sum(axis, keepdims=True))


@each_autograd
def test_softmax_and_rms_norm_are_those_of_the_axis(name: str, session_for: SessionFor) -> None:
    """Forward and backward, where a wrong axis or argument would show."""
    session, inputs = (
        session_for(name),
        arrays(3, np.float32, x=(3, 4, 5), dy=(3, 4, 5), weight=(5,)),
    )
    x, dy, weight = (inputs[key] for key in ("x", "dy", "weight"))
    for axis in (1, -1):
        y = _softmax(x, axis)
        slopes = {
            "softmax": (y, y * (dy - (y * dy).sum(axis, keepdims=True))),
            "log_softmax": (np.log(y), dy - y * dy.sum(axis, keepdims=True)),
        }
        for op, (value, slope) in slopes.items():
            got = answered(session.run(op, "forward", {"x": x}, {"axis": axis}))["y"]
            np.testing.assert_allclose(got, value, rtol=1e-4, atol=1e-4)
            got = answered(session.run(op, "backward", {"dy": dy, "x": x}, {"axis": axis}))["dx"]
            np.testing.assert_allclose(got, slope, rtol=1e-4, atol=1e-4)
    reply = session.run("rms_norm", "forward", {"x": x, "weight": weight}, {"eps": 0.5})
    if reply.status != "unsupported":
        y = x / np.sqrt(np.mean(x**2, -1, keepdims=True) + 0.5) * weight
        np.testing.assert_allclose(answered(reply)["y"], y, rtol=1e-4, atol=1e-4)


@each
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_the_dtype_of_the_inputs_is_kept_or_refused_with_a_reason(
    name: str, dtype: str, session_for: SessionFor
) -> None:
    session = session_for(name)
    kind = np.dtype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)
    x = np.array([[0.5, -1.25, 2.0], [3.0, 0.0, -0.5]]).astype(kind)
    w, b = x[:, ::-1], x[0, :2]
    questions = {
        ("matmul", "c"): {"a": x, "b": np.asarray(x.T)},
        ("linear", "y"): {"x": x, "weight": w, "bias": b},
        ("layernorm", "y"): {"x": x, "weight": x[0], "bias": x[1]},
        ("sin", "y"): {"x": x},
        ("cos", "y"): {"x": x},
        ("tan", "y"): {"x": x},
    }
    for (op, output), inputs in questions.items():
        for direction in ("forward", "backward"):
            if direction == "backward" and name == "numpy":
                continue
            shape = (2, 2) if op in ("matmul", "linear") else (2, 3)
            with_gradient = {**inputs, "d" + output: np.ones(shape).astype(kind)}
            reply = session.run(op, direction, inputs if direction == "forward" else with_gradient)
            if dtype not in CPU_DTYPES[name]:
                assert reply.status == "unsupported"
                assert dtype in str(reply.reason)
                continue
            outputs = answered(reply)
            expected = [output] if direction == "forward" else [f"d{key}" for key in inputs]
            assert set(expected) <= set(outputs)
            assert {outputs[key].dtype for key in expected} == {kind}


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
def test_linear_takes_its_weight_as_out_by_in(name: str, session_for: SessionFor) -> None:
    q = arrays(1, x=(2, 3, 5), weight=(4, 5), bias=(4,))
    y = answered(session_for(name).run("linear", "forward", q))["y"]
    exact = q["x"] @ q["weight"].T + q["bias"]
    magnitude = np.abs(q["x"]) @ np.abs(q["weight"]).T + np.abs(q["bias"])
    assert y.shape == (2, 3, 4)
    # Ours is rounded too: twice the bound.
    assert np.all(np.abs(y - exact) <= 2 * gamma(6, U) * magnitude)


@each_autograd
@pytest.mark.parametrize("shapes", [((3, 5), (5, 2)), ((1, 5), (5, 4)), ((2, 3, 5), (1, 5, 2))])
def test_matmul_backward_is_the_transposed_products(
    name: str, shapes: tuple[tuple[int, ...], tuple[int, ...]], session_for: SessionFor
) -> None:
    q = arrays(2, a=shapes[0], b=shapes[1])
    q["dc"] = np.random.default_rng(3).standard_normal((q["a"] @ q["b"]).shape)
    out = answered(session_for(name).run("matmul", "backward", q))
    terms = {
        "da": lambda dc, a, b: dc @ np.swapaxes(b, -1, -2),
        "db": lambda dc, a, b: np.swapaxes(a, -1, -2) @ dc,
    }
    for key, product in terms.items():
        target = q[key[1]]
        exact = product(q["dc"], q["a"], q["b"])
        magnitude = product(*(np.abs(q[n]) for n in ("dc", "a", "b")))
        if exact.shape != target.shape:
            exact, magnitude = exact.sum(0, keepdims=True), magnitude.sum(0, keepdims=True)
        assert out[key].shape == target.shape
        assert np.all(np.abs(out[key] - exact) <= 2 * gamma(12, U) * magnitude)


@each_autograd
def test_linear_backward_returns_dweight_as_out_by_in(name: str, session_for: SessionFor) -> None:
    q = arrays(4, x=(3, 5), weight=(4, 5), bias=(4,), dy=(3, 4))
    out = answered(session_for(name).run("linear", "backward", q))
    a = {key: np.abs(value) for key, value in q.items()}
    expected = {
        "dx": (q["dy"] @ q["weight"], a["dy"] @ a["weight"]),
        "dweight": (q["dy"].T @ q["x"], a["dy"].T @ a["x"]),
        "dbias": (q["dy"].sum(0), a["dy"].sum(0)),
    }
    assert set(out) == set(expected)
    for key, (exact, magnitude) in expected.items():
        assert np.all(np.abs(out[key] - exact) <= 2 * gamma(5, U) * magnitude), key


@each_autograd
@pytest.mark.parametrize("shape", [(3, 4), None, (2, 3, 4)])
@pytest.mark.parametrize("affine", [True, False])
def test_layernorm_backward_is_the_derivative(
    name: str, shape: tuple[int, ...] | None, affine: bool, session_for: SessionFor
) -> None:
    """Bound, in the statistics' precision u (float32 for paddle's eps and mindspore): the terms of

    dx = rstd (g - mean(g) - xhat mean(g xhat)), g = dy w, are sums of n products with at most 10
    roundings each around them; |xhat| <= sqrt(n), and an error e of rstd moves dx by e |dx| and by
    e times the term of xhat twice.  Mean / std is below 1 here, which bounds what centring adds.
    """
    params = {"eps": 1e-5, "normalized_shape": shape}
    size = shape or (4,)
    q = arrays(5, x=(2, 3, 4), dy=(2, 3, 4))
    if affine:
        q |= arrays(6, weight=size, bias=size)
    out = answered(session_for(name).run("layernorm", "backward", q, params))
    axes = tuple(range(3 - len(size), 3))
    n = int(np.prod(size))
    x, dy, w = q["x"], q["dy"], q.get("weight", np.ones(size))
    rstd = 1 / np.sqrt(x.var(axis=axes, keepdims=True) + 1e-5)
    xhat = (x - x.mean(axis=axes, keepdims=True)) * rstd
    g = dy * w

    def mean(v: Array) -> Array:
        return v.mean(axis=axes, keepdims=True)

    u = 2.0**-24 if name in ("paddle", "mindspore") else U
    spread = np.abs(x) * rstd + mean(np.abs(x)) * rstd
    size_of_dx = rstd * (np.abs(g) + mean(np.abs(g)) + 3 * spread * mean(np.abs(g) * spread))
    exact = {"dx": (rstd * (g - mean(g) - xhat * mean(g * xhat)), size_of_dx)}
    if affine:
        leading = tuple(range(3 - len(size)))
        exact["dweight"] = ((dy * xhat).sum(axis=leading), (np.abs(dy) * spread).sum(axis=leading))
        exact["dbias"] = (dy.sum(axis=leading), np.abs(dy).sum(axis=leading))
    assert set(out) == set(exact)
    for key, (value, magnitude) in exact.items():
        assert out[key].shape == value.shape
        assert np.all(np.abs(out[key] - value) <= gamma(4 * n + 40, u) * magnitude), key


@each_autograd
@pytest.mark.parametrize("op", ["sin", "cos", "tan"])
def test_trig_backward_is_the_derivative(name: str, op: str, session_for: SessionFor) -> None:
    x = np.random.default_rng(7).uniform(-1, 1, (7, 3))
    dy = np.random.default_rng(8).standard_normal((7, 3))
    dx = answered(session_for(name).run(op, "backward", {"x": x, "dy": dy}))["dx"]
    derivative = {"sin": np.cos(x), "cos": -np.sin(x), "tan": 1 + np.tan(x) ** 2}[op]
    # Each function within 4 ulp (8 u) on [-1, 1], at most two of them and four operations a side.
    assert np.all(np.abs(dx - dy * derivative) <= 2 * gamma(20, U) * np.abs(dy * derivative))


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
def test_layernorm_with_one_of_two_affine_parameters(name: str, session_for: SessionFor) -> None:
    session = session_for(name)
    q = arrays(10, x=(2, 4), w=(4,), b=(4,))
    plain = answered(session.run("layernorm", "forward", {"x": q["x"]}, {"eps": 1e-3}))["y"]
    weighted = answered(
        session.run("layernorm", "forward", {"x": q["x"], "weight": q["w"]}, {"eps": 1e-3})
    )["y"]
    shifted = answered(
        session.run("layernorm", "forward", {"x": q["x"], "bias": q["b"]}, {"eps": 1e-3})
    )["y"]
    # Two ways to the same value, each with at most three more roundings than the other.
    u = 2.0**-24 if name == "mindspore" else U
    assert np.all(np.abs(weighted - plain * q["w"]) <= gamma(6, u) * np.abs(plain * q["w"]))
    room = gamma(6, u) * (np.abs(plain) + np.abs(q["b"]))
    assert np.all(np.abs(shifted - (plain + q["b"])) <= room)


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


SEED_ROW = np.array([[[-1.83965693, -1.82964566]]], np.float32)
# dx for dy = 1, whose exact value is 0, as printed in the threads' reproductions: the last printed
# digit says how far it may be off.
SEED_DX = {
    "torch": (0.0, 0.0),
    "paddle": (0.00143835, 5e-9),
    "oneflow": (0.00143745, 5e-9),
    "mindspore": (0.00143, 5e-6),
}


@each_autograd
def test_the_seeds_layernorm_gradient_is_seen_again(name: str, session_for: SessionFor) -> None:
    session = session_for(name)
    if session.info["version"].split("+")[0] != catalog.get(name).framework.version:
        pytest.skip(f"the numbers are of version {catalog.get(name).framework.version}")
    params = {"eps": 1e-5, "normalized_shape": (1, 1, 2)}
    inputs = {"x": SEED_ROW[None], "dy": np.ones((1, 1, 1, 2), np.float32)}
    dx = answered(session.run("layernorm", "backward", inputs, params))["dx"]
    value, printed = SEED_DX[name]
    assert abs(abs(float(dx.flat[0])) - value) <= printed
    assert dx.flat[0] <= 0 <= dx.flat[1]


@each_autograd
def test_a_normalized_shape_of_the_whole_array_is_taken(name: str, session_for: SessionFor) -> None:
    params = {"eps": 1e-5, "normalized_shape": (1, 1, 2)}
    y = answered(session_for(name).run("layernorm", "forward", {"x": SEED_ROW}, params))["y"]
    assert y.shape == (1, 1, 2)
    # The frameworks are up to 230 ulp (of 2^-24) off here, which is rounding on this row.
    assert np.all(np.abs(np.abs(y) - 0.8454271584) <= 256 * 2.0**-24)


def test_threads_set_before_the_start_are_in_the_record(session_for: SessionFor) -> None:
    session_for("torch")
    settings = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "num_interop_threads": "1"}
    with Session("torch", settings=settings) as session:
        environment = session.info["environment"]
    assert environment["threads"] == 1
    assert environment["flags"]["num_interop_threads"] == "1"
    assert environment["settings"] == settings


def test_torch_computes_with_the_precision_that_is_set(session_for: SessionFor) -> None:
    session_for("torch")
    with Session("torch", settings={"float32_matmul_precision": "medium"}) as session:
        assert session.info["environment"]["flags"]["float32_matmul_precision"] == "medium"


@each
def test_the_environment_says_what_computed(name: str, session_for: SessionFor) -> None:
    environment = session_for(name).info["environment"]
    assert environment["framework"] == name
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
