"""Clipping of gradients, certified: by the norm of all tensors, by each tensor's norm, by value.

    clip_by_global_norm   c = min(1, M / (n + eps))         way="eps": PyTorch, OneFlow
                          c = M / max(n, M)                 way="max": Paddle, MindSpore, TensorFlow
    clip_by_norm          the same c, way="max" by default, n of each tensor by itself
    clip_by_value         min(max(g, -M), M)

and the clipped gradients are g c. The gradients are one array, tensor after tensor; `tensor` holds,
for each element, the number of its tensor, from 0. Groups of parameters that are clipped
separately, as by OneFlow's optimizers, are clip_by_norm with group numbers in `tensor`. n is
(Σ g²)^(1/2), or max |g| for norm_type=inf. A norm of 0 clips nothing. For an infinite norm c is 0:
infinite elements become NaN, all others 0. If an element is NaN, all are. A max_norm of 0 gives
zeros, except for way="max" with n = 0: 0 / 0 = NaN.

Source: Pascanu, Mikolov and Bengio (2013), arXiv:1211.5063.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from refkernels.arguments import as_text
from refkernels.arithmetic import formats
from refkernels.arithmetic.enclosure import Enclosure
from refkernels.arithmetic.scalars import as_real
from refkernels.op import Case, Direction
from refkernels.ops import Fault, Prepared, formula_op
from refkernels.ops.cases import Arrays, case
from refkernels.ops.domains import NOT_NEGATIVE
from refkernels.ops.public import enclosure_of, enclosures_of, public_names

WAYS = ("eps", "max")
_LISTED = "grads[n], tensor[n]:int"


class Clipped(NamedTuple):
    """The clipped gradients, and the norm before clipping."""

    clipped: Enclosure
    norm: Enclosure


def _prepare(inputs: dict[str, Any], params: dict[str, Any], direction: Direction) -> Prepared:
    """The formula's params. `largest`: whether the norm is the largest magnitude; `count`: how many
    tensors there are."""
    formula_params = dict(params)
    if "way" in formula_params and as_text(formula_params["way"], "way") not in WAYS:
        raise ValueError(f"way is {formula_params['way']!r}, not {' or '.join(map(repr, WAYS))}.")
    if "norm_type" in formula_params:
        norm_type = as_real(formula_params.pop("norm_type"), "norm_type")
        if norm_type not in (2.0, math.inf):
            raise ValueError(f"norm_type is {norm_type!r}: it must be 2 or inf.")
        formula_params["largest"] = norm_type == math.inf
    if "tensor" in inputs:
        tensor = inputs["tensor"]
        if inputs["grads"].shape != tensor.shape or tensor.ndim != 1:
            raise ValueError(
                f"grads has shape {inputs['grads'].shape} and tensor {tensor.shape}: both "
                "must have one axis, of the same length."
            )
        if tensor.size and not 0 <= tensor.min() <= tensor.max() < tensor.size:
            raise ValueError("tensor must hold whole numbers from 0, below its own length.")
        formula_params["count"] = int(tensor.max()) + 1 if tensor.size else 0
    return Prepared(inputs, formula_params)


# --- norms -------------------------------------------------------------------------------------


def _tensor_norms(xp: Any, grads: Any, tensor: Any, count: int, largest: bool = False) -> Any:
    """The norm of each tensor, (1, count)."""
    if largest:
        masks = (tensor == k for k in range(count))
        norms = [xp.max(xp.where(mask, abs(grads), xp.number(0))) for mask in masks]
        return xp.concatenate(norms, -1)
    squares = xp.reshape(xp.square(grads), (-1, 1))
    sums = xp.scatter_add(squares, tensor.reshape(-1), count)
    return xp.sqrt(xp.reshape(sums, (1, count)))


def _global_norm(xp: Any, grads: Any, largest: bool) -> Any:
    return xp.max(abs(grads)) if largest else xp.norm(grads)


def _norm_of_norms(xp: Any, grads: Any, tensor: Any, count: int, largest: bool) -> Any:
    """The norm of the tensors' norms, each stored in the arrays' format."""
    return xp.store(
        _global_norm(xp, xp.store(_tensor_norms(xp, grads, tensor, count, largest)), largest)
    )


# --- factors -----------------------------------------------------------------------------------


def _eps_factor(xp: Any, n: Any, max_norm: Any, eps: Any, keep: Any = lambda a: a) -> Any:
    return xp.minimum(keep(max_norm / keep(n + eps)), xp.number(1))


def _max_factor(xp: Any, n: Any, max_norm: Any, eps: Any = None) -> Any:
    return max_norm / xp.maximum(n, max_norm)


def _factor(xp: Any, n: Any, max_norm: Any, way: str, eps: Any) -> Any:
    return _eps_factor(xp, n, max_norm, eps) if way == "eps" else _max_factor(xp, n, max_norm)


def _clipped(xp: Any, grads: Any, n: Any, max_norm: Any, way: str, eps: Any, stored: bool) -> Any:
    if way == "eps":
        return grads * _eps_factor(xp, n, max_norm, eps, *([xp.store] if stored else []))
    c = _max_factor(xp, n, max_norm)
    product = grads * (xp.store(c) if stored else c)
    return xp.either(product, grads * max_norm / xp.maximum(n, max_norm))


def _by_global_norm(
    xp: Any, grads: Any, tensor: Any, *, max_norm: Any, eps: Any, way: str, largest: bool,
    count: int, listed: bool = False,
) -> Any:  # fmt: skip
    """`listed`: by the norm of the tensors' norms, with each step stored in the arrays' format."""
    if not grads.shape[-1]:
        return grads, xp.number(0)
    norm = (
        _norm_of_norms(xp, grads, tensor, count, largest)
        if listed
        else _global_norm(xp, grads, largest)
    )
    return _clipped(xp, grads, norm, max_norm, way, eps, listed), norm


def _by_norm(
    xp: Any, grads: Any, tensor: Any, *, max_norm: Any, eps: Any, way: str, largest: bool,
    count: int, stored: bool,
) -> Any:  # fmt: skip
    if not grads.shape[-1]:
        return grads
    n = _tensor_norms(xp, grads, tensor, count, largest)
    if not stored:
        c = _factor(xp, n, max_norm, way, eps)
    elif way == "eps":
        c = _eps_factor(xp, xp.store(n), max_norm, eps, xp.store)
    else:
        c = xp.store(_max_factor(xp, xp.store(n), max_norm))
    return grads * xp.take(c, tensor.reshape(-1), -1)


def _by_value(xp: Any, grads: Any, *, max_value: Any) -> Any:
    return xp.minimum(xp.maximum(grads, -max_value), max_value)


# --- faults ------------------------------------------------------------------------------------


def _global_fault(
    cause: str, factor: Callable[..., Any], norm: Any = None, details: Any = None
) -> Fault:
    """A fault with another factor, and another norm if `norm` is given."""

    def formula(xp: Any, grads: Any, tensor: Any, largest: bool, count: int, **params: Any) -> Any:
        n = _global_norm(xp, grads, largest)
        if norm is not None:
            n = norm(xp, grads, tensor, count, largest)
        return grads * factor(xp, n, **params), n

    return Fault(cause, formula, outputs=("clipped",) if norm is None else (), details=details)


def _per_tensor(xp: Any, grads: Any, tensor: Any, count: int, largest: bool, **params: Any) -> Any:
    c = _factor(xp, _tensor_norms(xp, grads, tensor, count, largest), **params)
    return grads * xp.take(c, tensor.reshape(-1), -1), _global_norm(xp, grads, largest)


def _other_way(xp: Any, n: Any, max_norm: Any, way: str, eps: Any) -> Any:
    """The other way: without eps for way="eps", with eps for way="max"."""
    return _max_factor(xp, n, max_norm) if way == "eps" else _eps_factor(xp, n, max_norm, eps)


def _unlimited(xp: Any, n: Any, max_norm: Any, way: str, eps: Any) -> Any:
    return max_norm / (n + eps) if way == "eps" else max_norm / n


def _eps_beside_max(xp: Any, n: Any, max_norm: Any, way: str, eps: Any) -> Any:
    return max_norm / (xp.maximum(n, max_norm) + eps)


_GLOBALLY = (
    Fault("clipped_per_tensor", _per_tensor, outputs=("clipped",)),
    _global_fault("clip_eps_differs", _other_way),
    _global_fault("clip_eps_always", _eps_beside_max),
    _global_fault("always_rescaled", _unlimited),
    _global_fault("clipping_left_out", lambda xp, n, **_: xp.number(1)),
    _global_fault(
        "norm_not_rooted", _factor,
        lambda xp, grads, _, count, largest: xp.square(_global_norm(xp, grads, largest)),
    ),
    _global_fault(
        "sum_of_norms", _factor,
        lambda xp, *arrays: xp.sum(_tensor_norms(xp, *arrays)),
    ),
    _global_fault(
        "other_norm", _factor, lambda xp, grads, *_: _global_norm(xp, grads, True), {"norm": "max"},
    ),
    _global_fault(
        "other_norm", _factor, lambda xp, grads, *_: _global_norm(xp, grads, False), {"norm": "2"},
    ),
)  # fmt: skip


def _tensor_fault(cause: str, factor: Callable[..., Any]) -> Fault:
    """A fault with another factor for each tensor."""

    def formula(xp: Any, grads: Any, tensor: Any, largest: bool, count: int, **params: Any) -> Any:
        n = _tensor_norms(xp, grads, tensor, count, largest)
        return grads * xp.take(factor(xp, n, **params), tensor.reshape(-1), -1)

    return Fault(cause, formula)


def _by_one_norm(xp: Any, grads: Any, tensor: Any, largest: bool, count: int, **params: Any) -> Any:
    return grads * _factor(xp, _global_norm(xp, grads, largest), **params)


_PER_TENSOR = (
    Fault("clipped_globally", _by_one_norm),
    _tensor_fault("clip_eps_differs", _other_way),
    _tensor_fault("always_rescaled", _unlimited),
    _tensor_fault("clipping_left_out", lambda xp, n, **_: 1 + 0 * n),
    _tensor_fault("norm_not_rooted", lambda xp, n, **params: _factor(xp, xp.square(n), **params)),
)


# --- cases -------------------------------------------------------------------------------------

SIZES = (5, 98, 100)
_TENSOR = np.repeat(np.arange(len(SIZES)), SIZES)


def _drawn(norm: float, kind: str, rng: np.random.Generator, dtype: str) -> Arrays:
    """Gradients of this norm, before `kind` changes them; the second tensor's elements are smaller
    by a factor of 20."""
    grads = rng.standard_normal(_TENSOR.size) * np.where(_TENSOR == 1, 0.05, 1.0)
    grads *= norm / np.linalg.norm(grads)
    format = formats.get(dtype)
    if kind == "zero":
        grads *= 0.0
    elif kind == "large":
        grads *= format.max**0.75
    elif kind == "tiny":
        grads *= format.min_normal
    elif kind == "infinite":
        grads[7] = -np.inf
    elif kind == "nan":
        grads[150] = np.nan
    elif kind == "exact":
        grads = np.where(np.arange(grads.size) == 2, 3.0, 0.0)
        grads[100] = 4.0
    return {"grads": grads, "tensor": _TENSOR}


def _cases(op: str, settings: tuple[tuple[str, dict[str, Any]], ...]) -> list[Case]:
    """The cases of one op: its regimes for each setting."""
    regimes = (
        ("clipped", "", 5.0, 1.0), ("barely", "", 1.01, 1.0), ("not_clipped", "", 0.7, 1.0),
        ("norm_is_max", "exact", 5.0, 5.0), ("zero", "zero", 1.0, 1.0),
        ("large", "large", 1.0, 1.0), ("tiny", "tiny", 1.0, 2.0**-20),
        ("infinite", "infinite", 5.0, 1.0), ("nan", "nan", 5.0, 1.0), ("invariance", "", 5.0, 1.0),
        ("max_is_zero", "", 5.0, 0.0),
    )  # fmt: skip
    cases = []
    for label, params_of_setting in settings:
        for regime, kind, norm, max_norm in regimes:
            if label and regime not in ("clipped", "not_clipped", "norm_is_max", "infinite", "nan"):
                continue
            shown: dict[str, float | str] = {
                "norm": norm,
                **{name: str(value) for name, value in params_of_setting.items()},
            }
            params, build = {"max_norm": max_norm, **params_of_setting}, partial(_drawn, norm, kind)
            cases.append(case(op, regime, shown, build, params, directions=("forward",)))
    return cases


def _by_value_cases() -> list[Case]:
    def make(regime: str, values: Callable[[np.random.Generator], Any], max_value: float) -> Case:
        def build(rng: np.random.Generator, _: str) -> Arrays:
            return {"grads": values(rng)}

        params = {"max_value": max_value}
        return case("clip_by_value", regime, params, build, params, directions=("forward",))

    def normal(rng: np.random.Generator) -> Any:
        return rng.standard_normal(259)

    specials = np.array([0.0, -0.0, 1.0, -1.0, 2.0, np.inf, -np.inf, np.nan])
    return [
        make("clipped", normal, 0.1),
        make("some", normal, 1.0),
        make("decimal", lambda rng: np.repeat([0.3, -0.3, 0.30078125], 20), 0.3),
        make("specials", lambda rng: specials, 1.0),
        make("invariance", normal, 0.5),
    ]


OPS = (
    formula_op(
        "clip_by_global_norm",
        f"{_LISTED} -> clipped[n], norm[]",
        "n",
        gradients=(),
        params={"max_norm": 1.0, "eps": 1e-6, "way": "eps", "norm_type": 2.0},
        domains={"max_norm": NOT_NEGATIVE},
        forms={"one_sum": _by_global_norm, "norm_of_norms": partial(_by_global_norm, listed=True)},
        faults=_GLOBALLY,
        prepare=_prepare,
        cases=partial(
            _cases,
            "clip_by_global_norm",
            (("", {}), ("max", {"way": "max"}), ("inf", {"norm_type": math.inf})),
        ),
    ),
    formula_op(
        "clip_by_norm",
        f"{_LISTED} -> clipped[n]",
        "n",
        gradients=(),
        params={"max_norm": 1.0, "eps": 1e-6, "way": "max", "norm_type": 2.0},
        domains={"max_norm": NOT_NEGATIVE},
        forms={
            "one_sum": partial(_by_norm, stored=False),
            "stored": partial(_by_norm, stored=True),
        },
        faults=_PER_TENSOR,
        prepare=_prepare,
        cases=partial(
            _cases,
            "clip_by_norm",
            (("", {}), ("eps", {"way": "eps"}), ("inf", {"way": "eps", "norm_type": math.inf})),
        ),
    ),
    formula_op(
        "clip_by_value",
        "grads[...] -> clipped[...]",
        gradients=(),
        params={"max_value": 1.0},
        domains={"max_value": NOT_NEGATIVE},
        forms={"clipped": _by_value},
        faults=(Fault("clipping_left_out", lambda xp, grads, **_: grads + 0),),
        prepare=_prepare,
        cases=_by_value_cases,
    ),
)
__all__ = ["OPS", "Clipped", *public_names(OPS)]
_enclosure, _clipped_and_norm = enclosure_of(OPS), enclosures_of(OPS, Clipped)


@_clipped_and_norm
def clip_by_global_norm() -> None:
    """(clipped, norm) = (c g, n): the gradients g clipped by their common norm n, and n. c is
    min(1, M / (n + eps)), or M / max(n, M) for way="max", with M = max_norm; see the module.

    grads       g, float16, bfloat16, float32 or float64, one axis: tensor after tensor
    tensor      whole numbers from 0, of the same shape: the tensor of each element; or its rank,
                where each rank has the norm of its own part
    params      max_norm=1.0, eps=1e-6, way="eps", norm_type=2.0 (or inf)
    certify     the question (`refkernels.Enclosure`)

    The bound (`OPS`) is proven for one sum of squares and for the norm of the tensors' norms, its
    steps stored in the arrays' format or not, with sums in any order, if no square overflows.
    Raises TypeError for other dtypes, ValueError for invalid params and shapes that differ.
    Source: Pascanu, Mikolov and Bengio (2013), arXiv:1211.5063, algorithm 1.
    """


@_enclosure
def clip_by_norm() -> None:
    """clipped = c g, with the c of each tensor's own norm; way="max" by default. Otherwise like
    `clip_by_global_norm`. Source: TensorFlow documentation, `tf.clip_by_norm`.
    """


@_enclosure
def clip_by_value() -> None:
    """clipped = min(max(g, -max_value), max_value), of any shape; NaN stays NaN. The bound is half
    an ulp of max_value if the format cannot represent it, else 0. Otherwise as
    `clip_by_global_norm`. Source: PyTorch documentation, `torch.nn.utils.clip_grad_value_`.
    """
