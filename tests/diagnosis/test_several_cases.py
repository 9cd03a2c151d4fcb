"""What several cases of one kernel say is told only as far as all of them allow it."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import refkernels
from refkernels import question
from refkernels.arithmetic import formats
from refkernels.diagnosis import several_cases
from refkernels.diagnosis.explanation import Explanation

Array = npt.NDArray[np.float32]
RNG = np.random.default_rng(21)


def truncated(values: Array) -> Array:
    """To TF32: the low 13 bits are dropped."""
    return (values.view(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32)


def explained(a: Array, b: Array, c: Array) -> Explanation:
    return refkernels.explain("matmul", {"a": a, "b": b}, c)


def of_tf32(scale: float) -> Explanation:
    a, b = (scale * RNG.uniform(0.5, 2.0, (24, 24)).astype(np.float32) for _ in "ab")
    return explained(a, b, truncated(a) @ truncated(b))


def test_formats_that_fit_one_case_alike_are_both_told_and_another_case_decides() -> None:
    """Of numbers near 1, float16 and TF32 keep the same 11 bits; of small ones they do not."""
    first, other = of_tf32(1.0), of_tf32(2.0**-16)
    assert (first.cause, first.confidence) == ("truncated_inputs", "proven")
    assert set(first.candidates[0].details["format"].split(" or ")) == {"float16", "tf32"}
    assert "把输入截断为 tf32 或 float16" in first.to_markdown("zh")
    agreed = several_cases.together(first, [other])
    assert (agreed.cause, agreed.confidence) == ("truncated_inputs", "proven")
    assert agreed.candidates[0].details["format"] == "tf32"
    assert several_cases.together(other, [first]).candidates[0].details["format"] == "tf32"


def test_a_cause_that_another_case_excludes_is_at_most_consistent() -> None:
    first, (a, b) = of_tf32(1.0), RNG.standard_normal((2, 24, 24)).astype(np.float32)
    agreed = several_cases.together(first, [explained(a, b, -(a @ b))])
    assert (agreed.cause, agreed.confidence) == ("truncated_inputs", "consistent")
    assert not [c for c in agreed.candidates if c.confidence in ("proven", "matched")]
    assert several_cases.together(first, [explained(a, b, a @ b)]).confidence == "proven"


@pytest.mark.parametrize("used", [1e-3, 2.0**-10])
def test_the_intervals_of_several_cases_are_intersected(used: float) -> None:
    def case(x: np.ndarray, used: float = used) -> Any:
        wide = x.astype(np.float64)
        y = wide / np.sqrt(np.square(wide).mean(axis=-1, keepdims=True) + used)
        return refkernels.explain("rms_norm", {"x": x}, y.astype(np.float16), {"eps": 1e-5})

    x = RNG.standard_normal((80, 32)).astype(np.float16)
    explanations = [case(x[:30] / 8), case(x[30:] / 32)]
    agreed = several_cases.together(explanations[0], explanations[1:])
    ends = [e.candidates[0].details["interval"] for e in (*explanations, agreed)]
    assert ends[2] == [max(ends[0][0], ends[1][0]), min(ends[0][1], ends[1][1])]
    assert ends[2][0] <= used <= ends[2][1]
    assert agreed.candidates[0].details["eps"] == used or "several" in agreed.candidates[0].details
    few = case(np.float16([[0.03, -0.05, 0.02, 0.06]]), 4e-3)  # elements, to be sure of it
    assert "proven" == explanations[0].confidence != few.confidence
    assert several_cases.together(explanations[0], [few]).confidence == "consistent"


def clipped(seed: int, format: str = "bfloat16") -> Explanation:
    """Two tensors clipped by norms whose squares are held in 16 bits: few numbers are wrong."""
    grads = np.random.default_rng(seed).uniform(-3, 3, 203).astype(np.float32)
    tensor = np.arange(203) // 102
    squares = np.bincount(tensor, np.square(grads.astype(np.float64)))
    norms = np.sqrt(squares.astype(formats.get(format).storage).astype(np.float32))
    inputs = {"grads": grads, "tensor": tensor}
    return refkernels.explain("clip_by_norm", inputs, grads / norms[tensor])


def test_the_bits_of_cases_of_one_number_are_added() -> None:
    first, *others = map(clipped, range(4))
    assert (first.cause, first.confidence) == ("intermediate_rounded", "consistent")
    agreed = several_cases.together(first, others)
    assert (agreed.cause, agreed.confidence) == ("intermediate_rounded", "matched")
    assert several_cases.together(first, others[:1]).confidence == "consistent"
    assert several_cases.together(first, [*others, clipped(9, "float16")]).confidence != "matched"


def slope(seed: int, dropped: int) -> Any:
    """PReLU's gradient in its one weight, in another order, without the last elements."""
    rng = np.random.default_rng(seed)
    x, dy = rng.uniform(-2, 2, (2, 96)).astype(np.float32)
    terms = np.where(x < 0, dy * x, np.float32(0))[rng.permutation(96 - dropped)]
    inputs = {"x": x, "weight": np.float32([0.25]), "dy": dy}
    return inputs, {"dweight": np.cumsum(terms)[-1:]}, {}


@pytest.mark.parametrize(
    ("dropped", "told"),
    [([20] * 6, {("dropped_tail", 20)}), ([0] * 6, set()), (range(9, 50, 8), set())],
)
def test_terms_that_all_cases_lack_are_found_where_each_is_one_number(
    dropped: Any, told: set[Any]
) -> None:
    agreed = several_cases.jointly("prelu", "backward", list(map(slope, range(6), dropped)))
    sure = [c for c in agreed.candidates if c.confidence in ("proven", "matched")]
    assert {(c.cause, c.details["dropped"]) for c in sure} == told


@pytest.mark.parametrize(
    ("rows", "format", "cause"), [(26, "float32", "dropped_tail"), (32, "bfloat16", "wrong_dtype")]
)
def test_one_result_that_stands_in_many_places_is_explained(
    rows: int, format: str, cause: str
) -> None:
    def case(seed: int) -> Any:
        rng = np.random.default_rng(seed)
        target, x = rng.integers(0, 5, 32), rng.standard_normal((32, 5)).astype(np.float32)
        dloss = np.float32(rng.uniform(1, 2))
        chosen = (target[:, None] == np.arange(5)) & (np.arange(32) < rows)[:, None]
        dx = np.where(chosen, -formats.round_to(dloss, formats.get(format)), 0).astype(np.float32)
        return {"dloss": dloss, "x": x, "target": target}, {"dx": dx}, {"reduction": "sum"}

    agreed = several_cases.jointly("nll", "backward", list(map(case, range(4))))
    assert agreed.cause == cause
    assert several_cases.is_sure(agreed)


def test_a_factor_of_each_case_is_none_of_all() -> None:
    grads, tensor = RNG.uniform(-3, 3, (6, 203)).astype(np.float32), np.zeros(203, int)
    of_each = ({"clipped": g * np.float32(0.1 + k / 99)} for k, g in enumerate(grads))
    cases = [({"grads": g, "tensor": tensor}, y, {}) for g, y in zip(grads, of_each, strict=True)]
    assert not several_cases.is_sure(several_cases.jointly("clip_by_global_norm", "forward", cases))


X = np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3)
OTHER = X.copy()
OTHER[1, 0] = 7.0


@pytest.mark.parametrize(
    ("other", "said"),
    [
        (OTHER, r"torch and paddle got different inputs: x differs in 1 of 6 elements, first at "
         r"\[1, 0\]: 0\.2\d* and 7\.0"),
        (X.T.copy(), r"x has shape \(2, 3\) and \(3, 2\)"),
        (X.astype(np.float64), "x has dtype float32 and float64"),
        (np.where(X < -0.9, np.nan, X).astype(np.float32), r"first at \[0, 0\]: -1\.0 and nan"),
    ],
)  # fmt: skip
def test_inputs_that_differ_are_reported_first(other: np.ndarray, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        question.shared({"torch": {"x": X}, "paddle": {"x": other}})


def test_inputs_of_the_same_bits_are_one_question() -> None:
    alike = {"torch": {"x": X}, "paddle": {"x": X.copy(), "weight": None}}
    assert set(question.shared(alike)) == {"x"}
    y = np.abs(X).astype(np.float32)
    apart = refkernels.explain("softsign", alike, {"torch": {"y": y}, "paddle": {"y": y}})
    assert set(apart.kernels) == {"torch", "paddle"}
