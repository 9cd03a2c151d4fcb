"""A large question is explained by a part of it, which is a question of the same kind."""

from typing import Any

import numpy as np
import pytest
from hunting import one_in

import refkernels
from refkernels import registry
from refkernels.diagnosis import formulas, part, sources
from refkernels.diagnosis.explain import one_kernel
from refkernels.diagnosis.fit import fit_to_truth
from refkernels.op import Direction

X = np.random.default_rng(0).standard_normal((64, 40)).astype(np.float32)
WAYS = [(name, way) for name, op in registry.ops().items() for way in op.directions]


@pytest.fixture(autouse=True)
def _small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, size in {"LARGEST": 512, "_MOST": 600, "_FEWEST": 4}.items():
        monkeypatch.setattr(part, name, size)


@pytest.mark.parametrize(("name", "direction"), [*one_in(6, WAYS), ("embedding", "forward")])
def test_a_right_kernel_is_right_in_every_part(name: str, direction: Direction) -> None:
    op = registry.get(name)
    for case in [c for c in op.cases() if direction in c.directions and "float32" in c.dtypes][:3]:
        arrays, params = case.build("float32")
        inputs = {n: arrays[n] for n in op.takes(direction) if n in arrays}
        if sum(map(np.size, inputs.values())) <= 20_000:
            with np.errstate(all="ignore"):
                plain = op.plain(direction, inputs, {**op.params, **params}, "float32")
            problem, outputs = one_kernel(name, inputs, plain, params, direction)
            smaller = part.of(problem, outputs)
            for output, got in smaller[1].items() if smaller else ():
                fit = fit_to_truth(smaller[0], output, got)
                assert fit is not None
                assert fit.fine or not fit_to_truth(problem, output, outputs[output]).fine


def test_a_fault_of_a_large_array_is_named_and_the_part_told() -> None:
    x = np.random.default_rng(0).standard_normal(20_000).astype(np.float32)
    y = 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi, dtype="f") * (x + np.float32(0.044715) * x**3)))
    found = refkernels.explain("gelu", {"x": x}, {"y": y})
    assert (found.cause, found.confidence) == ("tanh_gelu", "proven")
    assert found.evidence["part"] == {"elements": 39, "of": 20_000}
    assert "on a part of the question, 39 of its 20,000 input elements" in found.to_markdown()


def test_what_depends_on_its_place_is_not_cut() -> None:
    q, k, v = np.random.default_rng(0).standard_normal((3, 64, 8)).astype(np.float32)
    question: Any = {"q": q, "k": k, "v": v}, {"y": q}
    smaller = part.of(*one_kernel("attention", *question))
    assert smaller is not None
    assert smaller[0].inputs["q"].shape[0] < smaller[0].inputs["k"].shape[0] == 64
    causal = {"causal": "bottom_right"}
    assert part.of(*one_kernel("attention", *question, causal)) is None
    heads = {name: np.stack([array] * 4) for name, array in question[0].items()}
    of_head = part.of(*one_kernel("attention", heads, {"y": heads["q"]}, causal))
    assert of_head[0].inputs["k"].shape == (1, 64, 8)


def test_what_its_place_in_the_whole_tells_is_not_cut() -> None:
    right = registry.get("softmax").plain("forward", {"x": X}, {}, "float32")["y"]
    y = np.concatenate([right[:40], right[:1].repeat(24, axis=0)])  # the first row for the last
    assert part.of(*one_kernel("softmax", {"x": X}, {"y": y})) is None
    right[50, 3] = 7.0
    found = refkernels.explain("softmax", {"x": X}, {"y": right})
    assert (found.cause, "part" in found.evidence) == ("corrupted_elements", False)
    assert found.candidates[0].details["first"] == [[50, 3]]


def test_what_tells_nothing_in_a_part_is_not_asked_of_the_whole(monkeypatch: Any) -> None:
    asked: list[int] = []
    monkeypatch.setattr(sources, "READABLE", 512)
    monkeypatch.setattr(formulas, "find", lambda problem, *_: asked.append(problem.size) or [])
    assert refkernels.explain("softmax", {"x": X}, 0.02 + 0.01 * np.sin(X)).cause is None
    assert 0 < max(asked) < X.size
