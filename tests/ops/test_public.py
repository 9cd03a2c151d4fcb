"""Public functions that are made of their ops."""

import inspect

import numpy as np
import pytest

from refkernels import experts_ref, loss_ref, optimizer_ref
from refkernels.arithmetic.enclosure import Enclosure

X = np.ones((2, 3), np.float32)


def test_the_signature_is_the_op_s() -> None:
    assert list(inspect.signature(optimizer_ref.narrow_step).parameters) == [
        *("param", "update", "comp", "draws", "to", "certify")
    ]
    backward = inspect.signature(loss_ref.mse_backward)
    assert next(iter(backward.parameters)) == "dloss"
    assert backward.parameters["reduction"].kind is inspect.Parameter.KEYWORD_ONLY
    assert isinstance(experts_ref.router(X, k=2), Enclosure)
    assert type(optimizer_ref.narrow_step(X, X)).__name__ == "NarrowStep"


def test_a_wrong_call_is_told_with_the_function_s_name() -> None:
    with pytest.raises(TypeError, match=r"^router\(\) got an unexpected keyword argument 'groop'"):
        experts_ref.router(X, groop=1)
    with pytest.raises(TypeError, match=r"^narrow_step\(\) missing a required argument: 'update'"):
        optimizer_ref.narrow_step(X)
