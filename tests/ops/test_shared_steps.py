"""Sharing steps between forms changes no bound."""

from collections import Counter
from typing import Any

import numpy as np
import pytest

from refkernels import registry
from refkernels.contexts.bound import Bound
from refkernels.op import Direction


@pytest.mark.parametrize("direction", ["forward", "backward"])
@pytest.mark.parametrize(
    ("name", "regime"),
    [
        ("attention", "causal"),
        ("batch_norm", "offset"),
        ("conv1d", "stride"),
        ("cross_entropy", "smoothing"),
        ("rms_norm", "scale"),
        ("softmax", "masked"),
        ("softmax", "invariance"),  # of 9,509 elements
    ],
)
def test_shared_steps_change_no_bound_and_are_computed_once(
    name: str, regime: str, direction: Direction, monkeypatch: pytest.MonkeyPatch
) -> None:
    op = registry.get(name)
    formulas = op.definition
    assert formulas is not None
    case = next(case for case in op.cases() if case.regime == regime)
    arrays, params = case.build("float32")
    inputs = {taken: arrays[taken] for taken in op.takes(direction) if taken in arrays}
    calls: Counter[str] = Counter()
    for primitive in ("function", "divide", "sum", "matmul"):
        compute = getattr(Bound, primitive)

        def counted(self: Bound, *operands: Any, __compute: Any = compute, **options: Any) -> Any:
            calls[type(self).__name__] += 1
            return __compute(self, *operands, **options)

        monkeypatch.setattr(Bound, primitive, counted)
    question = direction, inputs, params
    together = formulas.form_bounds(*question, "float32")
    shared = calls.total()
    forms = formulas.of(direction).forms
    assert len(together) == len(forms) > 1
    for form, formula in forms.items():
        alone = formulas.bounded(direction, formula, inputs, params, "float32")
        assert alone.keys() == together[form].keys()
        for output, bound in alone.items():
            np.testing.assert_array_equal(bound, together[form][output])
    assert 0 < shared < calls.total() - shared
