"""A question that is kept is the one that was asked: same op, direction, arrays and params."""

import numpy as np
import pytest

from refkernels import registry
from refkernels.ops import kept_questions
from refkernels.ops.kept_questions import questions_kept

SOFTMAX = registry.get("softmax").definition
assert SOFTMAX is not None
X = np.random.default_rng(5).normal(size=(3, 4)).astype(np.float32)


def test_a_question_is_read_again_from_its_arrays_unless_it_is_kept() -> None:
    inputs = {"x": X.copy()}
    before = SOFTMAX.question("forward", inputs, {})
    inputs["x"][0, 0] = 7.0
    after = SOFTMAX.question("forward", inputs, {})
    assert before is not after
    assert float(np.max(after.arrays["x"])) == 7.0
    with questions_kept():
        kept = SOFTMAX.question("forward", inputs, {})
        assert SOFTMAX.question("forward", dict(inputs), {}) is kept
    assert SOFTMAX.question("forward", inputs, {}) is not kept


def test_every_other_question_is_another() -> None:
    inputs = {"x": X}
    log_softmax = registry.get("log_softmax").definition
    assert log_softmax is not None
    with questions_kept():
        kept = SOFTMAX.question("forward", inputs, {})
        others = [
            SOFTMAX.question("forward", {"x": X.copy()}, {}),
            SOFTMAX.question("forward", inputs, {"axis": 0}),
            SOFTMAX.question("forward", inputs, {"axis": -1}),
            SOFTMAX.question("backward", {"x": X, "dy": X}, {}),
            log_softmax.question("forward", inputs, {}),
        ]
        assert len({id(question) for question in (kept, *others)}) == 6
        with pytest.raises(ValueError, match="no parameter 'axes'"):
            SOFTMAX.question("forward", inputs, {"axes": 0})
        with questions_kept():  # explain within explain
            assert SOFTMAX.question("forward", inputs, {}) is kept


def test_the_latest_are_kept_and_no_large_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_questions, "_MOST", 2)
    many = [{"x": X + i} for i in range(3)]
    with questions_kept():
        first, second, _ = (SOFTMAX.question("forward", inputs, {}) for inputs in many)
        assert SOFTMAX.question("forward", many[1], {}) is second
        assert SOFTMAX.question("forward", many[0], {}) is not first
        monkeypatch.setattr(kept_questions, "_LARGEST", 11)
        large = SOFTMAX.question("forward", {"x": X}, {})
        assert SOFTMAX.question("forward", {"x": X}, {}) is not large
