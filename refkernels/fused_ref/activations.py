"""The formulas of gated linear units and of biased GELU, and wrong ways to compute them."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from refkernels.activation_ref import formulas
from refkernels.arguments import as_text
from refkernels.op import Direction
from refkernels.ops import Prepared
from refkernels.ops.formula import derived


def _cdf(xp: Any, x: Any) -> Any:
    """Φ(x) by erfc or, as in PyTorch, by 1 + erf, which cancels where x is far below 0."""
    root = xp.sqrt(xp.number(2))
    scaled = xp.either(x / root, x * (1 / root))
    return xp.either(xp.erfc(-x / root) / 2, (1 + xp.erf(scaled)) / 2)


def _gelu_slope(xp: Any, kept: Any, x: Any) -> Any:
    return _cdf(xp, x) + x * (xp.exp(-xp.square(x) / 2) / xp.sqrt(2 * xp.pi()))


def _inner(xp: Any, x: Any) -> Any:
    return xp.sqrt(2 / xp.pi()) * (x + xp.number(CUBIC) * (x * xp.square(x)))


def _gate(xp: Any, z: Any) -> Any:
    """σ(2 z) = (1 + tanh z) / 2."""
    return xp.either(formulas.sigmoid(xp, 2 * z), (1 + xp.tanh(z)) / 2)


def _gelu_tanh_slope(xp: Any, kept: Any, x: Any) -> Any:
    z = _inner(xp, x)
    inner_slope = xp.sqrt(2 / xp.pi()) * (1 + 3 * xp.number(CUBIC) * xp.square(x))
    both = formulas.sigmoid(xp, 2 * z) * formulas.sigmoid(xp, -2 * z)
    return _gate(xp, z) + x / 2 * xp.either(4 * both, 1 - xp.square(xp.tanh(z))) * inner_slope


def _sigmoid_slope(xp: Any, kept: Any, x: Any) -> Any:
    y = kept(formulas.sigmoid(xp, x))
    return y * xp.either(formulas.sigmoid(xp, -x), 1 - y)


ACTIVATIONS: dict[str, Any] = {
    "sigmoid": formulas.sigmoid,
    "silu": formulas.silu,
    "gelu": lambda xp, x: x * _cdf(xp, x),
    "gelu_tanh": lambda xp, x: x * _gate(xp, _inner(xp, x)),
    "relu": lambda xp, x: xp.maximum(x, xp.number(0)),
}
APPROXIMATIONS = {"none": "gelu", "tanh": "gelu_tanh"}
CUBIC = Fraction(44715, 10**6)


def prepare_glu(inputs: dict[str, Any], params: dict[str, Any], direction: Direction) -> Prepared:
    name = as_text(params["activation"], "activation")
    if name not in ACTIVATIONS:
        raise ValueError(f"activation is {name!r}: it must be one of {', '.join(ACTIVATIONS)}.")
    return formulas.limits(inputs, {"activation": name}, direction, "a")


def gated(xp: Any, a: Any, b: Any, activation: str) -> Any:
    return ACTIVATIONS[activation](xp, a) * b


def gated_stored(xp: Any, a: Any, b: Any, activation: str) -> Any:
    return xp.store(ACTIVATIONS[activation](xp, a)) * b


SLOPES: dict[str, Any] = {
    "sigmoid": _sigmoid_slope,
    "silu": lambda xp, kept, x: formulas.silu_slope(xp, x),
    "gelu": _gelu_slope,
    "gelu_tanh": _gelu_tanh_slope,
}


def _times_slope(activation: str, xp: Any, kept: Any, dy: Any, x: Any) -> Any:
    """dy times the activation's slope; at a kink any of both sides'."""
    if activation in SLOPES:
        return dy * SLOPES[activation](xp, kept, x)
    slope = derived(ACTIVATIONS[activation], ("y",), {"dy": "y"}, ("x",))
    return slope(xp, dy=dy, x=x)[0]


def gated_gradient(keep: str, xp: Any, dy: Any, a: Any, b: Any, activation: str) -> Any:
    """`keep`: the method of xp for what the parts give."""
    kept = getattr(xp, keep)
    da = _times_slope(activation, xp, kept, kept(dy * b), a)
    return da, dy * kept(ACTIVATIONS[activation](xp, a))


def other_activation(of: str, xp: Any, a: Any, b: Any, activation: str) -> Any:
    return gated(xp, a, b, of)


def quick_gelu(xp: Any, a: Any, b: Any, activation: str) -> Any:
    """The sigmoid's approximation of GELU."""
    return a * formulas.sigmoid(xp, xp.number(1.702) * a) * b


def prepare_bias_gelu(
    inputs: dict[str, Any], params: dict[str, Any], direction: Direction
) -> Prepared:
    name = as_text(params["approximate"], "approximate")
    if name not in APPROXIMATIONS:
        raise ValueError(f"approximate is {name!r}, not {' or '.join(map(repr, APPROXIMATIONS))}.")
    return Prepared(inputs, {"activation": APPROXIMATIONS[name]})


def biased(xp: Any, x: Any, bias: Any, activation: str) -> Any:
    return ACTIVATIONS[activation](xp, x + bias)


def biased_stored(xp: Any, x: Any, bias: Any, activation: str) -> Any:
    return ACTIVATIONS[activation](xp, xp.store(x + bias))


def biased_gradient(keep: str, xp: Any, dy: Any, x: Any, bias: Any, activation: str) -> Any:
    """`keep`: the method of xp for what the parts give."""
    kept = getattr(xp, keep)
    dx = _times_slope(activation, xp, kept, dy, kept(x + bias))
    return dx, xp.sum(kept(dx), axis=0)


def biased_after(xp: Any, x: Any, bias: Any, activation: str) -> Any:
    return ACTIVATIONS[activation](xp, x) + bias
