"""What several cases of one kernel say is told only as far as all of them allow it."""

from typing import Any

import numpy as np
import pytest

import refkernels
from refkernels import question
from refkernels.arithmetic import formats
from refkernels.diagnosis import several_cases
from refkernels.diagnosis.explanation import Explanation

RNG = np.random.default_rng(21)


def explained(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> Explanation:
    return refkernels.explain("matmul", {"a": a, "b": b}, c)


def of_tf32(scale: float) -> Explanation:
    pair = scale * RNG.uniform(0.5, 2.0, (2, 24, 24)).astype(np.float32)
    cut = formats.truncate_to(pair, formats.TF32).astype(np.float32)
    return explained(*pair, np.matmul(*cut))


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


def clipped(seed: int, format: str = "bfloat16") -> Any:
    """Two tensors clipped by norms whose squares are held in 16 bits: few numbers are wrong."""
    grads = np.random.default_rng(seed).uniform(-3, 3, 203).astype(np.float32)
    tensor = np.arange(203) // 102
    squares = np.bincount(tensor, np.square(grads.astype(np.float64)))
    norms = np.sqrt(squares.astype(formats.get(format).storage).astype(np.float32))
    return {"grads": grads, "tensor": tensor}, {"clipped": grads / norms[tensor]}, {}


def clipped_at_once(seed: int, as_first: bool) -> Any:
    """All gradients read as the first, so that they are one number; or by a factor of each case."""
    grads = np.random.default_rng(seed).uniform(-3, 3, 203).astype(np.float32)
    read = np.full_like(grads, grads[0]) if as_first else grads
    by = np.linalg.norm(read) + np.float32(1e-6) if as_first else 3 + seed / 9
    return {"grads": grads, "tensor": np.zeros(203, int)}, {"clipped": read / np.float32(by)}, {}


def slope(seed: int, dropped: int) -> Any:
    """PReLU's gradient in its one weight, in another order, without the last elements."""
    rng = np.random.default_rng(seed)
    x, dy = rng.uniform(-2, 2, (2, 96)).astype(np.float32)
    terms = np.where(x < 0, dy * x, np.float32(0))[rng.permutation(96 - dropped)]
    return {"x": x, "weight": np.float32([0.25]), "dy": dy}, {"dweight": np.cumsum(terms)[-1:]}, {}


def chosen(seed: int, rows: int, format: str) -> Any:
    """A loss's gradient, which is one result in many places."""
    rng = np.random.default_rng(seed)
    target, x = rng.integers(0, 5, 32), rng.standard_normal((32, 5)).astype(np.float32)
    dloss = np.float32(rng.uniform(1, 2))
    there = (target[:, None] == np.arange(5)) & (np.arange(32) < rows)[:, None]
    dx = np.where(there, -formats.round_to(dloss, formats.get(format)), 0).astype(np.float32)
    return {"dloss": dloss, "x": x, "target": target}, {"dx": dx}, {"reduction": "sum"}


def limited_root(seed: int) -> Any:
    """The gradient of max(sqrt(x), 1 / 4), of which a few elements show the limit."""
    x, dy = np.random.default_rng(seed).uniform(0.05, 3, (2, 400)).astype(np.float32)
    root = np.sqrt(x)
    return {"x": x, "dy": dy}, {"dx": np.where(root > 0.25, dy / (2 * root), np.float32(0))}, {}


def not_averaged(seed: int) -> Any:
    """The gradient of sum(lse²) in place of the mean: one factor of all elements."""
    logits = np.random.default_rng(seed).uniform(-2, 2, (11, 5)).astype(np.float32)
    total = np.exp(logits).sum(axis=1, keepdims=True)
    dlogits = 2 * np.log(total) * np.exp(logits) / total
    return {"logits": logits, "dloss": np.float32(1)}, {"dlogits": dlogits}, {}


@pytest.mark.parametrize(
    ("question", "case", "told"),
    [
        ("clip_by_norm forward", clipped, "intermediate_rounded"),
        ("clip_by_norm forward", lambda k: clipped(k, ("bfloat16", "float16")[k == 4]), None),
        ("clip_by_global_norm forward", lambda k: clipped_at_once(k, True), "first_for_all"),
        ("clip_by_global_norm forward", lambda k: clipped_at_once(k, False), None),
        ("prelu backward", lambda k: slope(k, 20), "dropped_tail"),
        ("prelu backward", lambda k: slope(k, 0), None),
        ("prelu backward", lambda k: slope(k, 9 + 8 * k), None),
        ("nll backward", lambda k: chosen(k, 26, "float32"), "dropped_tail"),
        ("nll backward", lambda k: chosen(k, 32, "bfloat16"), "wrong_dtype"),
        ("sqrt backward", limited_root, "floored"),
        ("router_z_loss backward", not_averaged, "scale_factor"),
    ],
)
def test_what_one_case_leaves_open_several_decide(question: str, case: Any, told: Any) -> None:
    op, direction = question.split()
    with pytest.raises(ValueError, match="cases is empty"):
        several_cases.jointly(op, direction, [])  # type: ignore
    agreed = several_cases.jointly(op, direction, [case(seed) for seed in range(5)])  # type: ignore
    assert told == (agreed.cause if several_cases.is_sure(agreed) else None)


X = np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3)


@pytest.mark.parametrize(
    ("other", "said"),
    [
        (np.where(X[1, 0] == X, np.float32(7), X), r"torch and paddle got different inputs: x "
         r"differs in 1 of 6 elements, first at \[1, 0\]: 0\.2\d* and 7\.0"),
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
