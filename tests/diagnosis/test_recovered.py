"""Statistics of rows are recovered from the output, and tell how they were computed."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from planting import named

import refkernels
from refkernels import registry
from refkernels.diagnosis.explain import one_kernel
from refkernels.diagnosis.fit import Fit
from refkernels.diagnosis.recovered import find

F, CLOSE = np.float32, ("intermediate_rounded",)
KINDS: dict[str, Any] = {"float32": F, "float16": np.float16, "bfloat16": ml_dtypes.bfloat16}
NORMS = {
    "layernorm": ((12, 200), (1,), {}),
    "group_norm": ((3, 8, 60), (2, 3), {"num_groups": 4}),
    "batch_norm": ((5, 12, 40), (0, 2), {}),
    "instance_norm": ((3, 4, 150), (2,), {}),
}
"""By op: the shape, the axes of a row (of group norm's groups), and params."""


def statistics(x: Any, axes: tuple[int, ...], how: str) -> tuple[Any, Any]:
    """Mean and variance in float32: by two passes, also of rows that are padded to a power of two,
    by one, also in a narrow format, or by one with an FMA."""
    mean, n = x.mean(axes, keepdims=True, dtype=F), np.prod([x.shape[axis] for axis in axes])
    if how in ("two passes", "padded"):
        lanes = (1 << int(n - 1).bit_length()) - n if how == "padded" else 0
        return mean, np.square(x - mean).mean(axes, keepdims=True, dtype=F) + mean**2 * F(lanes / n)
    squares = np.square(x).mean(axes, keepdims=True, dtype=F)
    if how in KINDS:
        mean, squares = mean.astype(KINDS[how]), squares.astype(KINDS[how])
    if how in ("one pass", *KINDS):
        return mean, squares - mean * mean
    return mean, (squares.astype(float) - mean.astype(float) ** 2).astype(F)


def kernel(op: str, x: Any, how: str, kept: Any = (F, F), dy: Any = None) -> Any:
    """The norm of x, or its gradient, in x's format; mean and rstd are kept in others."""
    kind, axes = x.dtype, NORMS[op][1]
    grouped = (3, 4, 2, 60) if op == "group_norm" else x.shape
    mean, variance = statistics(x.astype(F).reshape(grouped), axes, how)
    rstd = F(1) / np.sqrt(variance + F(1e-5))
    mean, rstd = mean.astype(kept[0]).astype(F), rstd.astype(kept[1]).astype(F)
    y = (x.astype(F).reshape(grouped) - mean) * rstd
    if dy is not None:
        g = dy.astype(F).reshape(grouped)
        dot = (g * y).mean(axes, keepdims=True, dtype=F)
        y = rstd * (g - g.mean(axes, keepdims=True, dtype=F) - y * dot)
    return y.reshape(x.shape).astype(kind)


def drawn(op: str, kind: str, mean: float, seed: int = 0) -> Any:
    rng, shape = np.random.default_rng(seed), NORMS[op][0]
    return (rng.standard_normal(shape) + mean).astype(KINDS[kind])


def asked(op: str, x: Any, got: Any, dy: Any = None) -> tuple[Any, ...]:
    """The question as `explain` takes it."""
    inputs, direction = ({"x": x}, "forward") if dy is None else ({"dy": dy, "x": x}, "backward")
    return op, inputs, {registry.get(op).names(direction)[0]: got}, NORMS[op][2], direction


@pytest.mark.parametrize("op", NORMS)
def test_a_variance_by_one_pass_is_proven_in_any_order_of_sums(op: str) -> None:
    """With an FMA or without, in a gradient too; and in 16 bits, where no digit may be left."""
    x, dy = drawn(op, "float32", 300.0), drawn(op, "float32", 0.0, seed=1)
    how = "one pass with an FMA" if op in ("layernorm", "batch_norm") else "one pass"
    dy = dy if op in ("layernorm", "instance_norm") else None
    assert named(*asked(op, x, kernel(op, x, how, dy=dy), dy))[:2] == ("naive_variance", "proven")
    x, narrow = drawn(op, "bfloat16", 30.0), (KINDS["bfloat16"],) * 2
    found = named(*asked(op, x, kernel(op, x, "bfloat16", narrow)))
    assert found[:2] == ("low_precision_statistics", "proven")


@pytest.mark.parametrize("op", NORMS)
def test_padding_that_a_variance_counts_is_proven(op: str) -> None:
    x = drawn(op, "bfloat16", 1.0)
    assert named(*asked(op, x, kernel(op, x, "padded")))[:2] == ("padded_variance", "proven")


@pytest.mark.parametrize(("op", "kind"), [*zip(NORMS, ["float16", "bfloat16"] * 2, strict=True)])
def test_statistics_that_are_kept_in_16_bits_are_proven(op: str, kind: str) -> None:
    mean = 0.0 if op == "instance_norm" else 1.0
    x, narrow = drawn(op, kind, mean), KINDS[kind]
    for kept, causes, least in (((narrow,) * 2, (), "proven"), ((F, narrow), CLOSE, "matched")):
        found = refkernels.explain(*asked(op, x, kernel(op, x, "two passes", kept)))
        assert found.cause in ("low_precision_statistics", *causes)
        assert found.confidence in ("proven", least)
        named = [c for c in found.candidates if c.confidence == found.confidence]
        assert all(kind in c.details.get("format", kind).split(" or ") for c in named)


def test_a_gradient_that_rounding_could_explain_proves_its_statistics() -> None:
    dy, x = np.random.default_rng(3).standard_normal((2, 40, 300)).astype(np.float16)
    dx = kernel("layernorm", x, "two passes", (np.float16,) * 2, dy)
    found = refkernels.explain(*asked("layernorm", x, dx, dy))
    assert (found.verdict, found.cause) == ("rounding", "low_precision_statistics")
    assert found.confidence == "proven"


def claims(*question: Any) -> list[Any]:
    problem, outputs = one_kernel(*question)
    not_ordinary = Fit(next(iter(outputs)), "exceeds_bound", (), 2.0, 9.0, 1, 0)
    return list(find(problem, outputs, dict.fromkeys(outputs, not_ordinary)))


@pytest.mark.parametrize("op", NORMS)
def test_right_statistics_show_nothing(op: str) -> None:
    """Nor where the data are of few digits, so that right variances are too; nor do wrong ones that
    are not on a grid."""
    for seed, kind in enumerate((*KINDS, "float32")):
        for mean, digits in ((0.0, 1.0), (30.0, 8.0), (1000.0, None)):
            x, dy = drawn(op, kind, mean, seed), drawn(op, kind, 0.0, seed + 9)
            x = x if digits is None else (np.rint(x.astype(F) * digits) / digits).astype(x.dtype)
            y = kernel(op, x, "two passes")
            dx = kernel(op, x, "two passes", dy=dy)
            for got, given in ((y, None), (y * x.dtype.type(2), None), (dx, dy)):
                shown = claims(*asked(op, x, got, given))
                assert sum(np.sum(claim.prediction.bits_gained) for claim in shown) < 10.0


@pytest.mark.parametrize("kind", ["float16", "bfloat16"])
def test_a_sum_in_16_bits_is_proven_also_where_each_term_was_rounded(kind: str) -> None:
    """From one number of each row too; a sum in float32 shows nothing."""
    x = (3 * np.random.default_rng(1).standard_normal((40, 200))).astype(KINDS[kind])
    wide, target = x.astype(F), np.arange(40)
    shift = wide.max(-1, keepdims=True)
    e = np.exp(wide - shift)
    narrow = np.add.accumulate(e.astype(x.dtype), axis=-1)[:, -1:].astype(F)
    proven, right = ("low_precision_statistics", "proven"), e.sum(-1)[:, None]
    for total, told in ((narrow, proven), (right, None)):
        lse = (shift + np.log(total))[:, 0]
        loss = {"x": wide, "target": target}, lse - wide[target, target], {"reduction": "none"}
        assert named("softmax", {"x": x}, (e / total).astype(x.dtype))[:2] == (told or (None, None))
        assert named("logsumexp", {"x": wide}, lse)[:2] == (told or (None, None))
        assert named("cross_entropy", *loss)[:2] == (told or (None, None))
