"""The models against the installed frameworks: every bit of every row, at row lengths 1 to 4096 and
means of 0 to a million deviations.

A framework that is not installed is a skip that says why, or with REFKERNELS_REQUIRE a failure.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hunting import HUNT
from presence import missing

from refkernels.arithmetic import formats
from refkernels.diagnosis.models.layernorm import (
    Model,
    mindspore_cpu,
    oneflow_cpu,
    paddle_cpu,
    torch_cpu,
)
from refkernels.frameworks import catalog
from refkernels.frameworks.gateway import Session

Arrays = dict[str, npt.NDArray[Any]]
SessionFor = Callable[[str], Session]
# Of one framework: on this processor, in this format, one of them is right.
MODELS: dict[str, tuple[Model, ...]] = {
    "torch": torch_cpu.MODELS,
    "paddle": paddle_cpu.MODELS,
    "mindspore": mindspore_cpu.MODELS,
    "oneflow": (oneflow_cpu.MODEL,),
}
PAIRS = [
    ("torch", "float32"),
    ("torch", "float64"),
    ("torch", "float16"),
    ("torch", "bfloat16"),
    ("paddle", "float32"),
    ("paddle", "float64"),
    ("mindspore", "float32"),
    ("mindspore", "float64"),
    ("mindspore", "float16"),
    ("oneflow", "float32"),
    ("oneflow", "float64"),
]
LENGTHS = (1, 2, 3, 5, 7, 8, 9, 13, 16, 17, 31, 64, 100, 127, 129, 768, 1000, 1024, 3001, 4096)
RATIOS = (0.0, 1.0, 10.0, 1e2, 1e3, 1e4, 1e6)  # mean / deviation
ROWS = 16 * HUNT  # for each length and ratio


@pytest.fixture
def pinned(session_for: SessionFor) -> SessionFor:
    """Sessions of the versions that the models reproduce."""

    def get(name: str) -> Session:
        session = session_for(name)
        wanted = catalog.get(name).framework.version
        if wanted and str(session.info["version"]).split("+")[0] != wanted:
            pytest.skip(f"the models are of {name} {wanted}")
        return session

    return get


def inputs_of(n: int, dtype: str, shape: tuple[int, ...] = ()) -> Arrays:
    """x has the ratios' rows one after the other; float16 leaves out what it cannot hold."""
    rng = np.random.default_rng(n)
    storage = formats.get(dtype).storage
    ratios = [ratio for ratio in RATIOS if ratio < formats.get(dtype).max / 2]
    means = np.repeat(ratios, ROWS)[:, None] if not shape else np.full(shape, 10.0)
    x = rng.standard_normal(shape or (means.shape[0], n)) + means
    last = x.shape[1:]
    drawn = {
        "x": x,
        "weight": rng.standard_normal(last),
        "bias": rng.standard_normal(last),
        "dy": rng.standard_normal(x.shape),
    }
    return {name: values.astype(storage) for name, values in drawn.items()}


def same_bits(a: npt.NDArray[Any], b: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """All NaNs count as equal."""
    assert (a.dtype, a.shape) == (b.dtype, b.shape)
    unsigned = f"u{a.itemsize}"
    return (a.view(unsigned) == b.view(unsigned)) | (np.isnan(a) & np.isnan(b))


def differences(
    session: Session, models: tuple[Model, ...], inputs: Arrays, dtype: str, **params: Any
) -> dict[str, dict[str, int]]:
    """Differing elements of each output, in both directions, by model: of those that speak of every
    output, of which there is one at least."""
    threads = session.info["environment"].get("threads") or 1
    table: dict[str, dict[str, int]] = {}
    for direction in ("forward", "backward"):
        taken = {k: v for k, v in inputs.items() if direction == "backward" or k != "dy"}
        reply = session.run("layernorm", direction, taken, params)
        assert reply.ok, reply.reason
        for model in models:
            answers = model.run(taken, {**params, "threads": threads}, direction, dtype)
            if set(reply.outputs) <= set(answers):
                counts = table.setdefault(model.name, {})
                for name, got in reply.outputs.items():
                    counts[name] = int((~same_bits(got, answers[name].reshape(got.shape))).sum())
        assert table
    return table


@pytest.mark.parametrize(("name", "dtype"), PAIRS)
def test_every_bit_of_a_framework_s_layernorm_is_reproduced(
    name: str, dtype: str, pinned: SessionFor
) -> None:
    """y, mean, rstd, dx, dweight and dbias, by one and the same model at all lengths and means."""
    session = pinned(name)
    rows = 0
    total: dict[str, dict[str, int]] = {}
    for n in LENGTHS:
        inputs = inputs_of(n, dtype)
        for model, counts in differences(session, MODELS[name], inputs, dtype, eps=1e-5).items():
            into = total.setdefault(model, {})
            for output, count in counts.items():
                into[output] = into.get(output, 0) + count
        rows += inputs["x"].shape[0]
    assert rows == (120 if dtype == "float16" else 140) * ROWS
    best = min(total.values(), key=lambda counts: sum(counts.values()))
    assert {"y", "dx", "dweight", "dbias"} <= set(best)
    assert not any(best.values()), total


def test_a_float16_mean_is_rounded_twice_where_the_framework_does(pinned: SessionFor) -> None:
    """The mean of this row is 2^-30 below the middle of two float16 numbers."""
    x = np.array([*[1.0] * 62, 2.96875, -(2.0**-24)], np.float16)[None]
    ones = {name: np.ones(64, np.float16) for name in ("weight", "bias")}
    inputs = {"x": x, "dy": np.ones_like(x), **ones}
    table = differences(pinned("mindspore"), MODELS["mindspore"], inputs, "float16", eps=1e-5)
    assert not any(table["mindspore CPU, float16"].values()), table


@pytest.mark.parametrize("affine", [("weight",), ("bias",), ()], ids=lambda kept: "-".join(kept))
@pytest.mark.parametrize("name", MODELS)
def test_absent_affine_parameters_another_eps_and_more_axes_are_reproduced_too(
    name: str, affine: tuple[str, ...], pinned: SessionFor
) -> None:
    session = pinned(name)
    for shape, normalized in (((5, 3, 41), (41,)), ((6, 3, 7), (3, 7)), ((1, 300), (300,))):
        inputs = inputs_of(0, "float32", shape)
        first = inputs["x"].ndim - len(normalized)
        drop = (0,) * (first - 1)  # of the axes that the affine parameters lack
        kept = {k: inputs[k] for k in ("x", "dy")} | {k: inputs[k][drop] for k in affine}
        table = differences(
            session, MODELS[name], kept, "float32", eps=1e-4, normalized_shape=normalized
        )
        best = min(table.values(), key=lambda counts: sum(counts.values()))
        assert not any(best.values()), (shape, table)


def special_rows(kind: str, n: int, dtype: str) -> Arrays:
    inputs = inputs_of(n, dtype, (33, n))
    x = inputs["x"] - inputs["x"].dtype.type(10)
    tiny, huge = np.finfo(x.dtype).tiny, np.finfo(x.dtype).max
    if kind == "infinite":
        x[::2, n // 2] = np.inf
    elif kind == "nan":
        x[::3, n // 3] = np.nan
    elif kind == "overflowing":
        x *= huge / 8
    elif kind == "subnormal":
        x *= tiny / 16
    elif kind == "constant":
        x[:] = x[:, :1]
    elif kind == "zero":
        x[:] = 0
    else:  # E[x^2] - mean^2 is negative in every other row
        x = 1000 + x * x.dtype.type(1e-5)
    return {**inputs, "x": x}


KINDS = ("infinite", "nan", "overflowing", "subnormal", "constant", "zero", "nearly constant")


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", MODELS)
def test_rows_of_special_values_are_reproduced_down_to_the_sign_of_zero(
    name: str, dtype: str, pinned: SessionFor
) -> None:
    session = pinned(name)
    for kind in KINDS:
        for n in (7, 101):
            inputs = special_rows(kind, n, dtype)
            table = differences(session, MODELS[name], inputs, dtype, eps=1e-3)
            best = min(table.values(), key=lambda counts: sum(counts.values()))
            assert not any(best.values()), (kind, n, table)


def test_torch_without_vector_instructions_and_on_one_thread_is_reproduced() -> None:
    """One thread adds the rows of dweight and dbias in one go, several in one go each."""
    settings = {"ATEN_CPU_CAPABILITY": "default", "num_threads": "1"}
    with Session("torch", settings=settings) as session:
        if session.status != "ok":
            missing("torch", f"torch: {session.status}: {session.reason}")
        assert session.info["environment"]["threads"] == 1
        (model,) = (m for m in torch_cpu.MODELS if "no vector" in m.name)
        for n in (5, 9, 100, 768):
            inputs = inputs_of(n, "float32")
            (counts,) = differences(session, (model,), inputs, "float32", eps=1e-5).values()
            assert not any(counts.values()), (n, counts)
