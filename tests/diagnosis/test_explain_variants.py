"""What is said of wrong answers: factors, their digits, values of eps, several kernels, nothing."""

import itertools
import json
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest
from hunting import one_in
from numpy_kernels import normal

import refkernels
from refkernels import gallery

Array = npt.NDArray[Any]
RNG = np.random.default_rng(7)
X = RNG.standard_normal((48, 96)).astype(np.float32)
WEIGHT, BIAS, DY = (RNG.standard_normal(s).astype(np.float32) for s in (96, 96, (48, 96)))
SQUARE = RNG.standard_normal((96, 96)).astype(np.float32)
AFFINE = {"x": X, "weight": WEIGHT, "bias": BIAS}
LINEAR = {"x": X, "weight": SQUARE, "bias": BIAS}


def statistics(x: Array, eps: float = 1e-5, ddof: int = 0) -> tuple[Array, Array]:
    """x - mean and rstd, by two passes in float32."""
    centred = x - x.mean(axis=1, keepdims=True, dtype=np.float32)
    total = np.sum(centred * centred, axis=1, keepdims=True, dtype=np.float32)
    variance = total / np.float32(x.shape[1] - ddof)
    return centred, np.float32(1) / np.sqrt(variance + np.float32(eps))


def layernorm(x: Array = X, weight: Array = WEIGHT, bias: Array = BIAS, **options: Any) -> Array:
    centred, rstd = statistics(x, **options)
    return centred * rstd * weight + bias


def linear(x: Array = X, weight: Array = SQUARE, bias: Array = BIAS) -> Array:
    return x @ weight.T + bias


def test_an_error_that_nothing_explains_stays_unexplained() -> None:
    y = layernorm() + RNG.normal(0, 1e-3, X.shape).astype(np.float32)
    explanation = refkernels.explain("layernorm", AFFINE, {"y": y})
    assert explanation.verdict == "exceeds_bound"
    assert explanation.cause is None
    assert explanation.confidence is None
    assert len([c for c in explanation.candidates if c.ruled_out]) == len(explanation.candidates)


def test_several_kernels_are_judged_and_compared() -> None:
    right = linear()
    outputs = {"torch": {"y": right}, "paddle": right, "mine": {"y": linear(bias=2 * BIAS)}}
    explanation = refkernels.explain("linear", LINEAR, outputs)
    assert explanation.cause == "doubled_bias"
    assert explanation.kernels["torch"].cause in (None, "summation_order")
    assert explanation.differences["torch", "paddle"].equal
    assert explanation.differences["torch", "paddle"].cause is None
    apart = explanation.differences["torch", "mine"]
    assert not apart.equal
    assert apart.cause == "doubled_bias"
    assert apart.outputs["y"]["max_abs_difference"] > 0.1


def test_an_explanation_is_strict_json() -> None:
    found = refkernels.explain("linear", LINEAR, {"a": {"y": linear()}, "b": {"y": -linear()}})
    record = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert record["kernels"]["b"]["cause"] == "sign_error"
    assert record["differences"][0]["cause"] == "sign_error"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"op": "sine"}, "no op 'sine'"),
        ({"direction": "up"}, "'forward' or 'backward'"),
        ({"inputs": {"x": X, "w": WEIGHT}}, "takes no 'w': it takes x, weight, bias"),
        ({"inputs": {"weight": WEIGHT}}, "needs 'x'"),
        ({"params": {"epsilon": 1e-5}}, r"no parameter 'epsilon': did you mean 'eps'\? It"),
        ({"outputs": {}}, "outputs is empty"),
        ({"outputs": {"a": {}}}, "a answers nothing"),
        ({"outputs": {"y": X, "z": X}}, "gives y, mean, rstd, not 'z'"),
        ({"outputs": {"y": X, "b": {"y": X}}}, "mixes arrays and kernels"),
        ({"outputs": {"y": X[:3]}}, r"y has shape \(3, 96\)"),
        ({"outputs": {"a": {"y": X}, "b": {"y": X.astype(float)}}}, "about one format"),
    ],
)
def test_a_question_that_makes_no_sense_is_one_sentence(
    arguments: dict[str, Any], said: str
) -> None:
    question = {"op": "layernorm", "inputs": AFFINE, "outputs": {"y": X}, **arguments}
    with pytest.raises(ValueError, match=said):
        refkernels.explain(**question)


def test_noise_of_the_size_of_a_narrow_accumulator_s_errors_is_not_taken_for_one() -> None:
    rng = np.random.default_rng(3)
    x, weight = (rng.standard_normal(shape).astype(np.float32) for shape in ((16, 64), (24, 64)))
    bias = rng.standard_normal(24).astype(np.float32)
    inputs = {"x": x, "weight": weight, "bias": bias}
    noise = 0.1 * rng.standard_normal((16, 24)).astype(np.float32)
    noisy = refkernels.explain("linear", inputs, {"y": x @ weight.T + bias + noise})
    assert (noisy.verdict, noisy.cause) == ("exceeds_bound", None)
    total = np.zeros((16, 24), ml_dtypes.bfloat16)
    for k in range(64):
        step = x[:, k : k + 1].astype(np.float64) * weight[:, k].astype(np.float64)
        total = (total.astype(np.float64) + step).astype(ml_dtypes.bfloat16)
    narrow = refkernels.explain("linear", inputs, {"y": total.astype(np.float32) + bias})
    assert narrow.cause == "bf16_accumulation"


def test_a_zero_is_no_evidence_of_a_narrower_format() -> None:
    pi = np.array([np.pi], np.float32)
    explanation = refkernels.explain("sin", {"x": pi}, {"y": np.zeros(1, np.float32)})
    assert "wrong_dtype" not in {candidate.cause for candidate in explanation.candidates}


def test_single_wrong_elements_among_unusual_ones_are_not_called_corrupted() -> None:
    entry = gallery.load("linear-tf32")
    (explanation,) = entry.explain().kernels.values()
    assert explanation.cause == "tf32_inputs"
    assert "corrupted_elements" not in {candidate.cause for candidate in explanation.candidates}


def test_every_model_that_two_numbers_cannot_separate_is_found() -> None:
    x = np.array([[-1.83965693, -1.82964566]], np.float32)
    y = np.array([[-0.84543723, 0.84541708]], np.float32)
    explanation = refkernels.explain("layernorm", {"x": x}, {"y": y}, {"eps": 1e-5})
    models = {candidate.model for candidate in explanation.candidates if not candidate.ruled_out}
    assert models >= {"paddle CPU", "mindspore CPU", "oneflow CPU"}
    assert not any(str(model).startswith("torch") for model in models)
    assert (explanation.cause, explanation.candidates[0].confidence) == (None, "consistent")
    evidence = explanation.candidates[0].evidence
    assert (evidence.units, evidence.needed) == (1, None)  # no number of pairs shows an order


def test_an_output_without_elements_is_refused() -> None:
    with pytest.raises(ValueError, match="y has no elements"):
        refkernels.explain("sin", {"x": np.zeros(0, np.float32)}, {"y": np.zeros(0, np.float32)})


def test_a_right_kernel_that_has_a_faulty_model_s_mean_is_not_blamed_by_comparison() -> None:
    x = (np.random.default_rng(9).standard_normal((64, 512)) + 1000).astype(np.float32)
    mean = x.mean(axis=1)  # as NumPy's naive variance has it too
    centred = x - mean[:, None]
    rstd = 1 / np.sqrt((centred * centred).mean(axis=1) + np.float32(1e-5))
    two_pass = {"y": centred * rstd[:, None], "mean": mean, "rstd": rstd}
    sums = np.add.accumulate(x, axis=1)[:, -1:]
    sequential = {"mean": (sums / np.float32(512)).reshape(-1), "y": two_pass["y"], "rstd": rstd}
    explanation = refkernels.explain(
        "layernorm", {"x": x}, {"a": two_pass, "b": sequential}, {"eps": 1e-5}
    )
    assert explanation.differences["a", "b"].cause in (None, "summation_order")
    assert "naive" not in explanation.to_markdown().split("<details>")[0]
    assert list(explanation.kernels["b"].evidence["outputs"]) == ["y", "mean", "rstd"]


def right(op: str, dtype: Any, rng: np.random.Generator) -> tuple[dict[str, Array], Array]:
    """Inputs and a right answer, computed in float64 and rounded."""
    if op == "sin":
        x = rng.uniform(-3, 3, (24, 65)).astype(dtype)
        return {"x": x}, np.sin(x.astype(np.float64))
    x, weight = (rng.standard_normal(shape).astype(dtype) for shape in ((24, 65), (40, 65)))
    return {"x": x, "weight": weight}, x.astype(np.float64) @ weight.T.astype(np.float64)


FACTORS: tuple[tuple[float, str | None, str], ...] = (
    (0.6173921, None, ""),
    (-0.037, "-0.037", ""),
    (24.0, "24", "x.shape[0]"),
    (1 / 23, "1/23", "x.shape[0] - 1"),
    (24 / 23, "24/23", "x.shape[0] / (x.shape[0] - 1)"),
    (1 / np.log(2), "1/ln(2)", "a logarithm to base 2"),
    (1 / np.sqrt(65), "1/sqrt(65)", "x.shape[1]"),
    (0.25, "1/4", ""),
)
MULTIPLES = itertools.product(("linear", "sin"), (np.float16, np.float32, np.float64), FACTORS)


@pytest.mark.parametrize(("op", "dtype", "fitted"), one_in(3, MULTIPLES))
def test_any_factor_is_found_with_the_digits_that_the_output_supports(
    op: str, dtype: Any, fitted: tuple[float, str | None, str]
) -> None:
    factor, text, named = fitted
    inputs, y = right(op, dtype, np.random.default_rng(11))
    explanation = refkernels.explain(op, inputs, {"y": (y * factor).astype(dtype)})
    assert explanation.cause == "scale_factor"
    details = explanation.candidates[0].details
    low, high = details["interval"]
    assert low <= factor <= high
    assert (high - low) / abs(factor) < 32 * np.finfo(dtype).eps
    assert details["named"] == named
    assert details["factor"] == text if text else low <= float(details["factor"]) <= high


def test_a_factor_of_a_narrower_format_is_named_as_such() -> None:
    inputs, y = right("linear", np.float64, np.random.default_rng(12))
    explanation = refkernels.explain("linear", inputs, {"y": y * float(np.float32(0.7301))})
    assert explanation.candidates[0].details["factor"] == "0.7301"
    assert explanation.candidates[0].details["named"] == "a number of float32"


@pytest.mark.parametrize("op", ["linear", "sin"])
def test_one_size_of_answers_is_no_evidence_of_a_factor(op: str) -> None:
    inputs, y = right(op, np.float32, np.random.default_rng(13))
    alone = {
        name: array[:1] if name == "weight" else array[:1, :65] for name, array in inputs.items()
    }
    if op == "sin":
        alone = {"x": np.full(3, 0.5, np.float32)}
    answer = (np.full(3, np.sin(0.5)) if op == "sin" else y[:1, :1]) * 0.37
    explanation = refkernels.explain(op, alone, {"y": answer.astype(np.float32)})
    assert explanation.verdict in ("exceeds_bound", "invariant_violated")
    assert "scale_factor" not in {c.cause for c in explanation.candidates if not c.ruled_out}


def test_a_factor_that_fits_goes_after_a_cause_with_nothing_to_fit() -> None:
    row = np.random.default_rng(14).standard_normal((1, 96)).astype(np.float32)
    for options, cause in (({"eps": 1e-3}, "eps_differs"), ({"ddof": 1}, "unbiased_variance")):
        centred, rstd = statistics(row, **options)
        explanation = refkernels.explain("layernorm", {"x": row}, {"y": centred * rstd})
        assert explanation.cause == cause
        assert "scale_factor" in {c.cause for c in explanation.candidates if not c.ruled_out}


def test_different_factors_separate_two_kernels() -> None:
    outputs = {"a": {"y": linear() * np.float32(0.3)}, "b": {"y": linear() * np.float32(0.7)}}
    difference = refkernels.explain("linear", LINEAR, outputs).differences["a", "b"]
    assert difference.cause == "scale_factor"
    assert difference.details["factor"] == "0.3 (a), 0.7 (b)"


def test_an_eps_with_many_digits_needs_rows_that_agree() -> None:
    rng = np.random.default_rng(16)
    scales = np.exp(rng.uniform(-3, 0, (8, 1)))
    x = (rng.standard_normal((8, 96)) * scales).astype(np.float32)
    explanation = refkernels.explain(
        "layernorm", {**AFFINE, "x": x}, {"y": layernorm(x, eps=0.0271828)}
    )
    assert explanation.cause == "eps_differs"
    assert explanation.candidates[0].details["eps"] == pytest.approx(0.0271828, rel=1e-4)
    off = np.exp(rng.uniform(-0.1, 0.1, (8, 1))).astype(np.float32)  # no eps makes this
    y = layernorm(x, bias=np.zeros(96, np.float32)) * off + BIAS
    assert refkernels.explain("layernorm", {**AFFINE, "x": x}, {"y": y}).cause is None


@pytest.mark.parametrize(
    ("factor", "named"), [(2.0, "2"), (1 / np.log(2), "1/ln(2)"), (-1.0, "-1"), (1.2345, None)]
)
def test_a_single_number_has_a_factor_only_if_it_has_a_name(
    factor: float, named: str | None
) -> None:
    x, target = normal(60), normal(60, seed=1)
    d = np.abs(x - target).astype(float)
    loss = np.where(d <= 1, d * d / 2, d - 0.5).mean()
    answer = refkernels.explain(
        "huber", {"x": x, "target": target}, {"loss": np.float32(loss * factor)}
    )
    assert answer.cause == (named and ("sign_error" if factor < 0 else "scale_factor"))
    if named:
        assert answer.candidates[0].details["factor"] == named


def test_an_error_of_a_few_ulp_is_no_factor() -> None:
    x = normal(15, 6)
    got = (x.astype(float).prod(-1) * (1 + 5e-7)).astype(np.float32)
    assert refkernels.explain("prod", {"x": x}, {"y": got}).cause is None


def test_elements_that_are_exact_do_not_hide_the_others() -> None:
    x, target, dloss = normal(3, 259)
    dx = np.where(abs(x - target) < 1, 2 * (x - target), np.sign(x - target)) * dloss
    inputs = {"dloss": dloss, "x": x, "target": target}
    found = refkernels.explain("huber", inputs, {"dx": dx}, {"reduction": "none"}, "backward")
    assert found.cause in ("term_doubled", "factor_missing")  # (x - target)² / 2 without its half
    assert found.confidence == "proven"
