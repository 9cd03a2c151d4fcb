"""Attention: queries without keys, one key, large logits, refused arguments."""

from typing import Any

import numpy as np
import pytest

from refkernels.attention_ref import attention, attention_backward
from refkernels.attention_ref.cases import attention_cases

RNG = np.random.default_rng(20)
Q, DY = (RNG.standard_normal((2, 4, 3, 5)).astype(np.float32) for _ in range(2))
K, V = (RNG.standard_normal((2, 2, 7, 5)).astype(np.float32) for _ in range(2))
MASK = RNG.standard_normal((3, 7)).astype(np.float32)
KEEP = RNG.random((2, 4, 3, 7)) < 0.6
KEEP[..., 0] = True


def test_a_query_without_keys_gives_zero_and_has_no_gradient() -> None:
    keep = KEEP.copy()
    keep[1, 2, 1] = False
    y = attention(Q, K, V, keep=keep)
    back = attention_backward(DY, Q, K, V, keep=keep)
    for enclosure in (y, back.dq):
        assert np.all(enclosure.hi[1, 2, 1] == 0.0)
        assert np.all(enclosure.radius[1, 2, 1] == 0.0)
    others = attention_backward(
        np.where(keep.any(-1)[..., None], DY, np.float32(9)), Q, K, V, keep=keep
    )
    np.testing.assert_array_equal(others.dv.hi, back.dv.hi)


def test_one_key_is_copied_and_has_no_gradient_of_scores() -> None:
    y = attention(Q, K[:, :, :1], V[:, :, :1], certify=("rounding", "float32"))
    wanted = np.broadcast_to(np.repeat(V[:, :, :1], 2, axis=1), y.shape)
    np.testing.assert_array_equal(y.round("float32")[0], wanted)
    back = attention_backward(DY, Q, K[:, :, :1], V[:, :, :1])
    assert not np.any(back.dq.hi)
    assert not np.any(back.dq.radius)


def test_a_case_of_large_logits_is_answered_in_every_format() -> None:
    (case,) = [entry for entry in attention_cases() if "logits[size=10000" in entry.name]
    for dtype in case.dtypes:
        inputs, params = case.build(dtype)
        gradients = attention_backward(**inputs, **params, certify=("ulp", dtype, 0.01))
        assert all(np.isfinite(gradient.radius).all() for gradient in gradients)


@pytest.mark.parametrize(
    ("given", "kind", "said"),
    [
        ({"k": K[:, :, :, :4]}, ValueError, r"q\[\.\.\. m d\]"),
        ({"q": Q[:, :3]}, ValueError, "a multiple of k's"),
        ({"q": Q[0, 0, 0]}, ValueError, r"it must be q\[\.\.\. m d\]"),
        ({"k": K[:, :, :0], "v": V[:, :, :0]}, ValueError, "no key for q"),
        ({"mask": MASK[:, :6]}, ValueError, "does not broadcast"),
        ({"lengths": np.array([[8], [1]])}, ValueError, "lengths has 8, and k has 7 keys"),
        ({"causal": "left"}, ValueError, "one of none, top_left, bottom_right"),
        ({"causal": True}, TypeError, "causal is True"),
        ({"scale": "1"}, TypeError, "scale is '1'"),
        ({"keep": MASK}, TypeError, "keep has dtype float32"),
        ({"q": Q.astype(int)}, TypeError, "int64"),
    ],
)  # fmt: skip
def test_arguments_that_do_not_fit_are_refused_in_a_sentence(
    given: Any, kind: Any, said: str
) -> None:
    with pytest.raises(kind, match=said) as caught:
        attention(**{"q": Q, "k": K, "v": V, **given})
    assert "\n" not in str(caught.value)


def test_a_cotangent_has_the_shape_of_y() -> None:
    with pytest.raises(ValueError, match=r"dy has shape \(2, 4, 3, 4\) and y \(2, 4, 3, 5\)"):
        attention_backward(DY[..., :4], Q, K, V)
