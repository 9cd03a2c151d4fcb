"""Elements of attention and of its gradients, by hand with mpmath, and refused arguments."""

from typing import Any

import mpmath
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
LENGTHS = np.array([[4], [7]])


def close(enclosure: Any, at: tuple[int, ...], value: Any) -> None:
    with mpmath.workprec(200):
        middle = mpmath.mpf(float(enclosure.hi[at])) + mpmath.mpf(float(enclosure.lo[at]))
        off = abs(middle - value)
    assert off <= float(enclosure.radius[at])
    assert float(enclosure.radius[at]) < 1e-12 * max(abs(float(value)), 0.01)


def dot(a: Any, b: Any) -> Any:
    return mpmath.fsum(
        mpmath.mpf(float(x)) * mpmath.mpf(float(y)) for x, y in zip(a, b, strict=True)
    )


def probabilities(b: int, h: int, i: int, sees: Any, scale: Any = None) -> dict[int, Any]:
    """p of the keys that take part, by key: head h of four meets head h // 2 of two."""
    scale = 1 / mpmath.sqrt(5) if scale is None else mpmath.mpf(scale)
    keys = [j for j in range(7) if sees(j)]
    e = {j: mpmath.exp(scale * dot(Q[b, h, i], K[b, h // 2, j]) + ADDED(i, j)) for j in keys}
    total = mpmath.fsum(e.values())
    return {j: term / total for j, term in e.items()}


def nothing_added(i: int, j: int) -> Any:
    return mpmath.mpf(0)


ADDED = nothing_added


def output(p: dict[int, Any], b: int, h: int, column: int) -> Any:
    return mpmath.fsum(share * mpmath.mpf(float(V[b, h // 2, j, column])) for j, share in p.items())


QUESTIONS = {
    "plain": ({}, lambda b, h, i, j: True),
    "scale": ({"scale": 0.3}, lambda b, h, i, j: True),
    "keep": ({"keep": KEEP}, lambda b, h, i, j: KEEP[b, h, i, j]),
    "lengths": ({"lengths": LENGTHS}, lambda b, h, i, j: j < LENGTHS[b, 0]),
    "top left": ({"causal": "top_left"}, lambda b, h, i, j: j <= i),
    "bottom right": ({"causal": "bottom_right"}, lambda b, h, i, j: j <= i + 4),
    "all": (
        {"keep": KEEP, "lengths": LENGTHS, "causal": "bottom_right"},
        lambda b, h, i, j: KEEP[b, h, i, j] and j < LENGTHS[b, 0] and j <= i + 4,
    ),
}


@pytest.mark.parametrize("name", QUESTIONS)
@mpmath.workprec(200)
def test_outputs_of_grouped_heads(name: str) -> None:
    options, sees = QUESTIONS[name]
    answer = attention(Q, K, V, **options)
    assert answer.shape == (2, 4, 3, 5)
    for b, h, i, column in [(0, 0, 0, 0), (1, 3, 2, 4), (0, 1, 1, 2), (1, 2, 0, 3)]:
        p = probabilities(b, h, i, lambda j: sees(b, h, i, j), options.get("scale"))  # noqa: B023
        close(answer, (b, h, i, column), output(p, b, h, column))


@mpmath.workprec(200)
def test_a_mask_is_added_and_minus_infinity_leaves_a_key_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    mask = np.where(KEEP, MASK, np.float32(-np.inf))
    monkeypatch.setitem(globals(), "ADDED", lambda i, j: mpmath.mpf(float(MASK[i, j])))
    answer = attention(Q, K, V, mask=mask)
    p = probabilities(1, 2, 1, lambda j: KEEP[1, 2, 1, j])
    close(answer, (1, 2, 1, 3), output(p, 1, 2, 3))


@mpmath.workprec(200)
def test_gradients_of_grouped_heads_add_up_over_their_queries() -> None:
    gradients = attention_backward(DY, Q, K, V, keep=KEEP)
    b, scale = 1, 1 / mpmath.sqrt(5)

    def ds(h: int, i: int) -> dict[int, Any]:
        p = probabilities(b, h, i, lambda j: KEEP[b, h, i, j])
        dp = {j: dot(DY[b, h, i], V[b, h // 2, j]) for j in p}
        mean = mpmath.fsum(p[j] * dp[j] for j in p)
        return {j: p[j] * (dp[j] - mean) for j in p}

    each = ds(3, 2)
    close(
        gradients.dq, (b, 3, 2, 1),
        scale * mpmath.fsum(value * mpmath.mpf(float(K[b, 1, j, 1])) for j, value in each.items()),
    )  # fmt: skip
    queries = [(h, i) for h in (2, 3) for i in range(3)]
    dk = [ds(h, i).get(4, 0) * mpmath.mpf(float(Q[b, h, i, 0])) for h, i in queries]
    close(gradients.dk, (b, 1, 4, 0), scale * mpmath.fsum(dk))
    dv = [
        probabilities(b, h, i, lambda j: KEEP[b, h, i, j]).get(4, 0)  # noqa: B023
        * mpmath.mpf(float(DY[b, h, i, 2]))
        for h, i in queries
    ]
    close(gradients.dv, (b, 1, 4, 2), mpmath.fsum(dv))


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
