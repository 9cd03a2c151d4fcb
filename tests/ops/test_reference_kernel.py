"""oracle(): a formula of one's own is a reference kernel."""

from __future__ import annotations

import math
from typing import Any

import flint
import ml_dtypes
import numpy as np
import pytest

import refkernels
from refkernels.ops import Fault, Oracle, Prepared, formula_op
from refkernels.ops.letters import Signature
from refkernels.testing import assert_kernel


def relu_squared(xp: Any, x: Any) -> Any:
    return xp.square(xp.maximum(x, xp.number(0)))


def tempered(xp: Any, x: Any, scale: Any = None, *, temperature: Any) -> Any:
    """softmax(x / temperature) scale, and the log of its sum."""
    z = x / temperature
    e = xp.exp(z - xp.pivot(z))
    y = e / xp.sum(e)
    return (y if scale is None else y * scale), xp.log(xp.sum(e)) + xp.pivot(z)


def no_shift(xp: Any, x: Any, scale: Any = None, *, temperature: Any) -> Any:
    e = xp.exp(x / temperature)
    y = e / xp.sum(e)
    return (y if scale is None else y * scale), xp.log(xp.sum(e))


def clipped(xp: Any, grads: Any, *, limit: Any) -> Any:
    norm = xp.norm(grads)
    return grads * xp.minimum(limit / norm, xp.number(1)), norm


def cross_entropy(xp: Any, x: Any, target: Any, *, reduction: str, count: int) -> Any:
    shifted = x - xp.pivot(x)
    loss = xp.log(xp.sum(xp.exp(shifted))) - xp.take_along_axis(shifted, target)
    return loss if reduction == "none" else xp.sum(loss, axis=0) / count


def reduced(inputs: Any, params: Any, direction: str) -> Prepared:
    """The mean has no rows: a param decides what the op gives."""
    rows = int(np.prod(inputs["x"].shape[:-1]))
    outputs = "loss[...]" if params["reduction"] == "none" else "loss[]"
    signature = Signature.parse(f"x[... n], target[...]:int -> {outputs}", "n")
    if direction == "backward":
        signature = signature.backward({"dloss": "loss"}, {"dx": "x"})
    return Prepared(inputs, {**params, "count": rows}, signature=signature)


ENTROPY = Oracle(
    formula_op(
        "cross_entropy",
        "x[... n], target[...]:int -> loss[...]",
        "n",
        forms={"shifted": cross_entropy},
        params={"reduction": "mean"},
        prepare=reduced,
    )
)
SQUARED = refkernels.oracle(relu_squared, "x[...] -> y[...]")
TEMPERED = refkernels.oracle(
    tempered,
    "x[... n], scale[n]? -> y[... n], logsum[...]",
    "n",
    params={"temperature": 1.0},
    faults=(Fault("no_shift", no_shift, unstable=True),),
)
CLIPPED = refkernels.oracle(
    clipped, "grads[n]* -> grads[n]*, norm[]", "n", params={"limit": 1.0}, gradients=()
)


def asked(formula: Any) -> Any:
    return refkernels.oracle(formula, "x[n] -> y[n]").forward(np.ones(2))


def test_a_numpy_number_on_the_left_of_a_value_is_taken_as_on_its_right() -> None:
    two = np.int64(2)
    pairs = [
        (lambda xp, x: two + x, lambda xp, x: x + two),
        (lambda xp, x: two - x, lambda xp, x: -(x - two)),
        (lambda xp, x: two * x, lambda xp, x: x * two),
        (lambda xp, x: two / x, lambda xp, x: 1 / (x / two)),
        (lambda xp, x: xp.where(two < x, x, -x), lambda xp, x: xp.where(x > two, x, -x)),
        (lambda xp, x: xp.where(two > x, x, -x), lambda xp, x: xp.where(x < two, x, -x)),
        (lambda xp, x: xp.where(two <= x, x, -x), lambda xp, x: xp.where(x >= two, x, -x)),
        (lambda xp, x: xp.where(two >= x, x, -x), lambda xp, x: xp.where(x <= two, x, -x)),
    ]
    x = np.array([1.0, 2.0, 4.0])
    for left, right in pairs:
        values = [refkernels.oracle(f, "x[n] -> y[n]").forward(x).hi for f in (left, right)]
        assert np.array_equal(*values)


def test_values_and_gradients_of_a_formula_are_certified() -> None:
    x = np.array([-1.5, 0.0, 1.1, 3e20], np.float32)
    y = SQUARED.forward(x, certify=("rounding", "float32"))
    np.testing.assert_array_equal(y.round("float32")[0], np.maximum(x, 0) ** 2)
    dx = SQUARED.backward(np.ones(4, np.float32), x)
    np.testing.assert_array_equal(np.asarray(dx), 2.0 * np.maximum(x.astype(float), 0))


def test_several_outputs_are_a_named_tuple() -> None:
    x = np.linspace(-3, 3, 12).reshape(3, 4)
    answer = TEMPERED.forward(x, temperature=0.7)
    assert answer._fields == ("y", "logsum")
    assert answer.y.shape == (3, 4)
    assert answer.logsum.shape == (3,)
    exact = [flint.arb(float(v)) / flint.arb(0.7) for v in x[1]]
    whole = sum((value.exp() for value in exact), flint.arb(0))
    assert abs(float(whole.log()) - float(np.asarray(answer.logsum)[1])) < 1e-15
    back = TEMPERED.backward(np.ones((3, 4)), x)
    assert back._fields == ("dx", "dscale")
    assert back.dscale is None


def test_axes_broadcast_and_inputs_go_by_name() -> None:
    x = np.ones((2, 1, 4), np.float32)
    y = TEMPERED.forward(x=x, scale=np.arange(4.0)).y
    np.testing.assert_allclose(np.asarray(y)[0, 0], np.arange(4) / 4)


def test_a_list_of_arrays_is_one_row() -> None:
    grads = [np.full((2, 3), 3.0), np.array(4.0), np.zeros((0, 5))]
    clipped = CLIPPED.forward(grads)
    norm = np.sqrt(9.0 * 6 + 16)
    assert [grad.shape for grad in clipped.grads] == [(2, 3), (), (0, 5)]
    np.testing.assert_allclose(np.asarray(clipped.norm), norm, rtol=1e-15)
    np.testing.assert_allclose(np.asarray(clipped.grads[0]), 3.0 / norm, rtol=1e-15)


def test_integers_choose_and_a_word_reduces() -> None:
    x = np.random.default_rng(1).standard_normal((2, 3, 5)).astype(np.float32)
    target = np.array([[0, 4, 2], [1, 1, 3]])
    each = ENTROPY.forward(x, target, reduction="none")
    assert each.shape == (2, 3)
    for place in np.ndindex(2, 3):
        row = [flint.arb(float(v)) for v in x[place]]
        total = sum((value.exp() for value in row), flint.arb(0)).log() - row[target[place]]
        assert abs(float(total) - float(np.asarray(each)[place])) < 1e-14
    mean = ENTROPY.forward(x, target)
    assert mean.shape == ()
    assert abs(float(np.asarray(mean)) - np.asarray(each).mean()) < 1e-14
    dx = ENTROPY.backward(np.ones((), np.float32), x, target)
    p = np.exp(x.astype(float))
    p /= p.sum(-1, keepdims=True)
    np.put_along_axis(p, target[..., None], np.take_along_axis(p, target[..., None], -1) - 1, -1)
    np.testing.assert_allclose(np.asarray(dx), p / 6, atol=1e-15)
    bound = ENTROPY.forward_bound(x, target, format="float32")
    plain = ENTROPY.forward_plain(x, target, format="float32")
    assert abs(float(plain) - float(np.asarray(mean))) <= bound
    with pytest.raises(TypeError, match="whole numbers"):
        ENTROPY.forward(x, target.astype(float))


def test_a_user_s_own_op_is_asserted_and_explained() -> None:
    x = np.random.default_rng(0).uniform(-100, 100, (8, 30)).astype(np.float32)
    with np.errstate(all="ignore"):
        e = np.exp(x)
        wrong = e / e.sum(-1, keepdims=True)
        e = np.exp(x - x.max(-1, keepdims=True))
        right = e / e.sum(-1, keepdims=True)
    assert_kernel(TEMPERED.op, {"x": x}, {"y": right})
    with pytest.raises(AssertionError, match="nan"):
        assert_kernel(TEMPERED.op, {"x": x}, {"y": wrong})
    explanation = refkernels.explain(TEMPERED.op, {"x": x}, {"y": wrong})
    assert (explanation.cause, explanation.confidence) == ("no_shift", "proven")


def test_a_script_carries_the_rows_that_an_element_depends_on() -> None:
    x = np.random.default_rng(0).uniform(-100, 100, (40, 30)).astype(np.float32)
    y = np.asarray(TEMPERED.forward(x).y).astype(np.float32)
    y[17, 3] += 1
    question = refkernels.explain(TEMPERED.op, {"x": x}, {"y": y}).evidence["question"]
    assert not question["whole"]
    assert question["elements"][0]["index"] == [17, 3]
    (part,) = question["inputs"]["x"]["parts"]
    assert part["index"] == [17, ":"]
    assert bytes.fromhex(part["hex"]) == x[17].tobytes()


def test_an_own_op_has_cases_that_its_formula_takes() -> None:
    """Whole numbers below every length; optional inputs given and left out; no root of -1."""
    chosen = refkernels.oracle(
        lambda xp, x, at: xp.take_along_axis(x, at), "x[... n], at[...]:int -> y[...]", "n"
    )
    for case in chosen.op.cases():
        inputs, params = case.build("bfloat16")
        chosen.op.evaluate("backward", inputs, params)
        assert inputs["x"].dtype == ml_dtypes.bfloat16
        assert inputs["at"].max() > 0
    built = [case.build("float32") for case in TEMPERED.op.cases()]
    assert [("scale" in inputs, params) for inputs, params in built] == [
        (given, {"temperature": 1.0}) for given in (True, True, False)
    ]
    rooted = refkernels.oracle(lambda xp, x: xp.sqrt(x), "x[n] -> y[n]").op
    assert all(case.build("float32")[0]["x"].min() >= 0 for case in rooted.cases())
    assert CLIPPED.op.cases() == []


@pytest.mark.parametrize(
    ("call", "kind", "said"),
    [
        (lambda: SQUARED.forward(), ValueError, "needs 'x'"),
        (lambda: SQUARED.forward(1.0, 2.0), TypeError, "takes x, but 2 arrays"),
        (lambda: SQUARED.forward(np.ones(2), x=np.ones(2)), TypeError, "given twice"),
        (lambda: SQUARED.forward(np.ones(2), y=np.ones(2)), ValueError, "takes no 'y'"),
        (lambda: SQUARED.forward(np.ones(2, int)), TypeError, "int64"),
        (lambda: TEMPERED.forward(np.ones(2), np.ones(3)), ValueError, "whose n is 3"),
        (lambda: TEMPERED.forward(np.ones(2), temperature="a"), TypeError, "temperature"),
        (lambda: CLIPPED.forward(np.ones(2)), TypeError, "list of arrays"),
        (lambda: CLIPPED.backward([np.ones(2)]), ValueError, "no backward pass"),
        (lambda: refkernels.oracle(3, "x[...] -> y[...]"), TypeError, "f\\(xp, x"),  # type: ignore[arg-type]
        (lambda: refkernels.oracle(relu_squared, "x -> y"), ValueError, "not an array"),
        (lambda: asked(lambda xp, x: xp.take(x, [0, 1, 1], -1)), ValueError, "shape .3,.: by its"),
        (lambda: asked(lambda x: x), TypeError, "write def formula\\(xp, x\\)"),
        (lambda: asked(lambda xp, z: z), TypeError, "missing a required argument: 'z'"),
        (lambda: asked(lambda xp, x, *, eps: x), TypeError, "required .*argument: 'eps'"),
        (lambda: asked(lambda xp, x: np.exp(x)), TypeError, "np.exp is xp.exp there"),
        (lambda: asked(lambda xp, x: np.sum(x)), TypeError, "np.sum is xp.sum there"),
        (lambda: asked(lambda xp, x: np.int64(1) == x), TypeError, "not compared with =="),
        (lambda: asked(lambda xp, x: math.exp(x)), TypeError, "xp.exp for math.exp"),
        (lambda: asked(lambda xp, x: x - x.mean()), AttributeError, "xp.mean.x. for x.mean"),
    ],
)  # fmt: skip
def test_arguments_that_do_not_fit_are_refused_in_a_sentence(
    call: Any, kind: Any, said: str
) -> None:
    with pytest.raises(kind, match=said) as caught:
        call()
    assert "\n" not in str(caught.value)
