"""The LayerNorm models match their descriptions; no framework is needed."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from refkernels import layernorm_ref
from refkernels.arithmetic import formats
from refkernels.diagnosis.models.layernorm import MODELS, Model
from refkernels.diagnosis.models.layernorm.catalogue import HONEST, NUMERICAL
from refkernels.diagnosis.models.layernorm.torch_moments import moments

Arrays = dict[str, npt.NDArray[Any]]
FORMATS = ("float16", "bfloat16", "float32", "float64")
CAUSES = {
    "narrow_intermediates",
    "naive_variance",
    "folded_normalisation",
    "float32_statistics",
    "float32_cast",
    "eps_rounded",
    "low_precision_statistics",
    "fp16_accumulation",
    "bf16_accumulation",
    "flush_to_zero",
}
TWO_PASSES = HONEST[0]


def named(name: str) -> Model:
    (model,) = (model for model in MODELS if model.name == name)
    return model


def inputs_of(dtype: str, rows: int = 6, n: int = 37, mean: float = 0.0, seed: int = 0) -> Arrays:
    rng = np.random.default_rng(seed)
    drawn = {
        "x": rng.standard_normal((rows, n)) + mean,
        "weight": rng.standard_normal(n),
        "bias": rng.standard_normal(n),
        "dy": rng.standard_normal((rows, n)),
    }
    storage = formats.get(dtype).storage
    return {name: values.astype(storage) for name, values in drawn.items()}


def run(model: Model, inputs: Arrays, dtype: str, direction: str = "forward", eps: float = 1e-5):
    return model.run(inputs, {"eps": eps}, direction, dtype)  # type: ignore[arg-type]


def test_names_are_unique_and_statements_are_one_sentence() -> None:
    assert len({model.name for model in MODELS}) == len(MODELS)
    for model in MODELS:
        assert model.statement.endswith(".")
        assert "\n" not in model.statement


def test_causes_are_the_known_identifiers_and_honest_algorithms_have_none() -> None:
    assert {model.cause for model in MODELS} - {None} == CAUSES
    assert {model.cause for model in HONEST} == {None}
    assert all(model.cause for model in NUMERICAL)


@pytest.mark.parametrize("dtype", FORMATS)
def test_answers_have_the_caller_s_shapes_and_dtype(dtype: str) -> None:
    flat = inputs_of(dtype, rows=6, n=15)
    whole = {"x": (2, 3, 5, 3), "dy": (2, 3, 5, 3), "weight": (5, 3), "bias": (5, 3)}
    inputs = {name: flat[name].reshape(shape) for name, shape in whole.items()}
    shapes = {"y": (2, 3, 5, 3), "dx": (2, 3, 5, 3), "dweight": (5, 3), "dbias": (5, 3)}
    spoke = 0
    for model in MODELS:
        for direction in ("forward", "backward"):
            answers = model.run(inputs, {"normalized_shape": (5, 3)}, direction, dtype)  # type: ignore[arg-type]
            spoke += bool(answers)
            for name, values in answers.items():
                assert values.shape == shapes.get(name, (2, 3)), (model.name, name)
                if name in shapes:
                    assert values.dtype == formats.get(dtype).storage, (model.name, name)
    assert spoke > len(MODELS)


def test_a_task_without_dy_or_with_a_wrong_shape_is_refused() -> None:
    inputs = inputs_of("float32")
    del inputs["dy"]
    with pytest.raises(ValueError, match="no dy"):
        run(TWO_PASSES, inputs, "float32", "backward")
    with pytest.raises(ValueError, match="does not end x's shape"):
        TWO_PASSES.run(inputs, {"normalized_shape": (6,)}, "forward", "float32")


@pytest.mark.parametrize("mean", [0.0, 3.0, 1e3])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_models_without_a_cause_stay_inside_the_rounding_bound(dtype: str, mean: float) -> None:
    inputs = inputs_of(dtype, mean=mean)
    forward = {name: inputs[name] for name in ("x", "weight", "bias")}
    backward = {name: inputs[name] for name in ("dy", "x", "weight", "bias")}
    exact = {"y": layernorm_ref.forward(**forward).y}
    bound = {"y": layernorm_ref.forward_bound(**forward, format=dtype).y}
    exact.update(layernorm_ref.backward(**backward)._asdict())
    bound.update(layernorm_ref.backward_bound(**backward, format=dtype)._asdict())
    compared = 0
    for model in MODELS:
        if model.cause is not None:
            continue
        for direction in ("forward", "backward"):
            for name, got in run(model, inputs, dtype, direction).items():
                if name in exact:
                    error = np.abs(got.astype(np.float64) - np.asarray(exact[name]))
                    assert np.all(error <= bound[name]), (model.name, name)
                    compared += 1
    assert compared >= 4 * len(HONEST[:5])


def test_the_seed_s_recorded_answer_is_the_naive_variance_of_torch_1_9() -> None:
    """The thread prints -0.8428 where -0.8454 is true, and a gradient of exactly 0."""
    inputs = {"x": np.array([[-1.83965693, -1.82964566]], np.float32)}
    y = run(named("naive variance, folded"), inputs, "float32")["y"]
    assert [f"{value:.4f}" for value in y[0]] == ["-0.8428", "0.8428"]
    inputs["dy"] = np.ones_like(inputs["x"])
    dx = run(named("naive variance, folded"), inputs, "float32", "backward")["dx"]
    assert np.all(dx == 0)
    for model in HONEST:
        honest = run(model, inputs, "float32").get("y")
        assert honest is None or f"{honest[0, 0]:.4f}" == "-0.8454"


def test_the_naive_variance_alone_exceeds_the_bound_of_a_large_mean() -> None:
    inputs = inputs_of("float32", mean=1e4)
    forward = {name: inputs[name] for name in ("x", "weight", "bias")}
    exact = np.asarray(layernorm_ref.forward(**forward).y)
    bound = layernorm_ref.forward_bound(**forward, format="float32").y
    for model in MODELS:
        y = run(model, inputs, "float32").get("y")
        if y is not None and model.cause in (None, "naive_variance"):
            inside = np.all(np.abs(y - exact) <= bound)
            assert inside == (model.cause is None), model.name


def test_eps_in_float32_is_two_passes_where_float32_holds_eps() -> None:
    inputs = inputs_of("float64")
    for eps, equal in ((2.0**-17, True), (1e-5, False)):
        honest, rounded = (run(m, inputs, "float64", eps=eps)["rstd"]
                           for m in (TWO_PASSES, named("eps in float32")))  # fmt: skip
        assert np.array_equal(honest, rounded) is equal


def test_statistics_in_float32_leave_float64_a_float32_s_accuracy() -> None:
    inputs = inputs_of("float64")
    honest = run(TWO_PASSES, inputs, "float64")["y"]
    for name in ("float32 statistics", "stored in float32", "computed in float32"):
        error = np.abs(run(named(name), inputs, "float64")["y"] - honest).max()
        assert 2.0**-40 < error < 2.0**-20, name
        assert run(named(name), inputs_of("float32"), "float32") == {}


@pytest.mark.parametrize("name", ["two passes", "two passes, divided", "oneflow CPU"])
def test_backward_is_the_derivative_of_what_forward_computes(name: str) -> None:
    """Central differences in float64."""
    model, step = named(name), 2.0**-17
    inputs = inputs_of("float64", rows=2, n=7)
    inputs["x"] *= 0.01  # so that eps weighs
    loss = 0.0
    slopes = np.empty_like(inputs["x"])
    for index in np.ndindex(slopes.shape):
        sides = []
        for sign in (1, -1):
            x = inputs["x"].copy()
            x[index] += sign * step * 0.01
            moved = run(model, {**inputs, "x": x}, "float64", eps=1e-4)["y"]
            sides.append(float((moved * inputs["dy"]).sum()))
        slopes[index] = (sides[0] - sides[1]) / (2 * step * 0.01)
        loss += abs(sides[0])
    dx = run(model, inputs, "float64", "backward", eps=1e-4)["dx"]
    # The difference quotient's own errors: truncation step^2, rounding u / step.
    assert np.abs(dx - slopes).max() <= 1e-6 * np.abs(slopes).max()
    assert loss > 0


def test_flush_to_zero_changes_subnormals_and_nothing_else() -> None:
    plain, flushed = TWO_PASSES, named("flush to zero")
    inputs = inputs_of("float32")
    for direction in ("forward", "backward"):
        ours = run(plain, inputs, "float32", direction)
        for name, values in run(flushed, inputs, "float32", direction).items():
            assert np.array_equal(values, ours[name])
    inputs["weight"] *= np.float32(2.0**-130)
    inputs["bias"][:] = 0
    assert np.all(run(flushed, inputs, "float32")["y"] == 0)
    assert np.any(run(plain, inputs, "float32")["y"] != 0)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_sums_in_a_narrow_format_lose_its_digits(dtype: str) -> None:
    """2048 ones and more do not fit float16's significand, 256 not bfloat16's."""
    p = formats.get(dtype).p
    inputs = {"x": np.zeros((3, 2), formats.get(dtype).storage)}
    inputs["x"] = np.repeat(np.float32([[1.0], [2.0], [3.0]]), 3 * 2**p, axis=1).astype(
        inputs["x"].dtype
    )
    narrow = run(named(f"{dtype} accumulation"), inputs, dtype)["mean"]
    assert np.array_equal(run(TWO_PASSES, inputs, dtype)["mean"].astype(float), [1.0, 2.0, 3.0])
    assert float(narrow[0]) == pytest.approx(1 / 3, rel=2.0**-p)


@pytest.mark.parametrize("lanes", [1, 3, 8])
@pytest.mark.parametrize("halves", [1, 2])
@pytest.mark.parametrize("n", [1, 2, 17, 100, 16 * 8, 16 * 8 * 7 + 5, 5000])
def test_a_cascade_of_any_width_counts_every_element_once(lanes: int, halves: int, n: int) -> None:
    """Of small integers, float64 gives the moments to a few units of rounding."""
    x = np.random.default_rng(n).integers(-8, 8, (3, n)).astype(np.float64)
    mean, var = moments(x, lanes=lanes, halves=halves)
    assert np.allclose(mean, x.mean(1), rtol=0, atol=1e-13)
    assert np.allclose(var, x.var(1), rtol=1e-12, atol=0)


def test_rows_are_independent_except_in_oneflow() -> None:
    inputs = inputs_of("float32", rows=300, n=257)
    alone = {**inputs, "x": inputs["x"][:1], "dy": inputs["dy"][:1]}
    differing = set()
    for model in MODELS:
        together, single = (run(model, arrays, "float32") for arrays in (inputs, alone))
        for name in single:
            if not np.array_equal(together[name][:1], single[name]):
                differing.add(model.name)
    assert differing == {"oneflow CPU"}
