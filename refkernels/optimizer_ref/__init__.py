"""One step of an optimizer, certified: sgd, adam, adamw, lamb, adagrad, rmsprop, lion, adafactor,
muon, soap; and narrow_step, which adds an update to parameters of a narrow format.

    adamw(param, grad, m, v, step=3)     -> Adamw(param, m, v, vmax)    of Enclosures

The ops take the state and return the new one; step counts from 1, and the state of step 1 is zeros.
An optional state that is left out (vmax: amsgrad's; buf: momentum's; mean: a centred RMSprop's) is
None in the answer. Hyper-parameters are taken exactly, as binary64; the bound is for kernels that
hold them so. These ops have no backward pass.

`formulas` holds the formulas. `faults` holds other definitions, by which `refkernels.explain`
answers "which Adam is this?". `OPS` lists the ops.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import lru_cache, partial
from typing import Any

import numpy as np

from refkernels.arguments import as_flag, as_text
from refkernels.arithmetic.scalars import as_count
from refkernels.op import Direction, Op
from refkernels.ops import Fault, Prepared, formula_op
from refkernels.ops.domains import BELOW_ONE, NOT_NEGATIVE, PROBABILITY, REAL
from refkernels.ops.public import enclosures_of, public_names
from refkernels.optimizer_ref import adafactor as factored
from refkernels.optimizer_ref import eight_bits, faults, formulas, matrices, narrow
from refkernels.optimizer_ref.cases import cases_of
from refkernels.optimizer_ref.narrow import lost_updates

_BLOCK = 1 << 16  # steps of a power that is multiplied out


@np.errstate(over="ignore", under="ignore")
def _in_float32(params: Mapping[str, Any]) -> dict[str, dict[str, float]]:
    """The numbers of kernels that hold hyper-parameters in float32: these params; `shrink`, lr wd;
    and for Adam c1, `root` of c2 and `rate`, lr / c1, from the exact `betas` (OneFlow 0.9), those
    in float32 (`rounded`: PyTorch's fused), or from their `powers`, multiplied step by step in
    float32 (Paddle, MindSpore), or by one step too many (`late`)."""
    held = {name: _float32(value) for name, value in params.items() if isinstance(value, float)}
    if "weight_decay" in held:
        held["shrink"] = _float32(held["lr"] * held["weight_decay"])
    by_source = dict.fromkeys(("betas", "rounded", "powers", "late"), held)
    if {"beta2", "eps", "step"} <= params.keys():
        betas, step = (params["beta1"], params["beta2"]), int(params["step"])
        for source, used in (("betas", betas), ("rounded", map(_float32, betas))):
            left = (1.0 - float(np.float64(beta) ** step) for beta in used)
            by_source[source] = held | _corrections(held["lr"], *left)
        for source, n in (("powers", step), ("late", step + 1)):
            left = (1.0 - _power_in_float32(beta, n) for beta in betas)
            by_source[source] = held | _corrections(held["lr"], *left)
    return by_source


def _corrections(lr: float, c1: float, c2: float) -> dict[str, float]:
    c1, root = _float32(c1), _float32(math.sqrt(max(_float32(c2), 0.0)))
    return {"c1": c1, "root": root, "rate": _float32(lr / c1) if c1 else 0.0}


def _power_in_float32(base: float, n: int) -> float:
    """base^n, rounded to float32 after each multiplication. The power is final once a block of
    steps leaves it unchanged: at 0, 1, infinity or a subnormal."""
    return math.copysign(_size_of_power(abs(base), n), base if n % 2 else 1.0)


@lru_cache(maxsize=16)  # a base near 1 takes seconds, and each part of an answer needs the power
def _size_of_power(base: float, n: int) -> float:
    factors, power = np.full(_BLOCK, base, np.float32), np.float32(1.0)
    for start in range(0, n, _BLOCK):
        factors[0] = power * np.float32(base)
        before, power = power, factors[: n - start].cumprod(dtype=np.float32)[-1]
        if power == before:
            break
    return float(power)


def _float32(value: float) -> float:
    return float(np.float32(value))


def _prepare(
    inputs: dict[str, Any], params: dict[str, Any], direction: Direction, whole: bool = False
) -> Prepared:
    """A weight decay of 0 becomes None, and the parameter's name plays no part. `whole`: the op's
    letter runs over the whole tensor."""
    shapes = {name: array.shape for name, array in inputs.items() if array is not None}
    if misshapen := [name for name, shape in shapes.items() if shape != shapes["param"]]:
        raise ValueError(
            f"{misshapen[0]} has shape {shapes[misshapen[0]]} and param {shapes['param']}: they "
            "must be equal."
        )
    as_count(params.get("step", 1), "step")
    as_text(params.get("name", ""), "name")
    formula_params: dict[str, Any] = {**params, "float32": _in_float32(params)}
    formula_params["weight_decay"] = params["weight_decay"] or None
    formula_params.pop("name", None)
    if "nesterov" in params:
        formula_params["nesterov"] = as_flag(params["nesterov"], "nesterov")
    if not whole:
        return Prepared(inputs, formula_params)
    flat = {name: None if value is None else value.reshape(-1) for name, value in inputs.items()}
    return Prepared(flat, formula_params, lambda name, array: array.reshape(shapes["param"]))


def _with_tail(inputs: dict[str, Any], params: dict[str, Any], direction: Direction) -> Prepared:
    """As `_prepare`, with a mask of the elements that a loop over blocks of 8 leaves over."""
    ready = _prepare(inputs, params, direction)
    places = np.arange(inputs["param"].size).reshape(inputs["param"].shape)
    tail = places >= places.size // 8 * 8
    return Prepared({**ready.inputs, "tail": tail}, ready.params)


def _with_untouched(
    inputs: dict[str, Any], params: dict[str, Any], direction: Direction
) -> Prepared:
    """As `_prepare`, with a mask of the elements in rows without a gradient, and whether there are
    any. A row is one index of the first of two or more axes: an array of one axis has no rows."""
    ready, grad = _prepare(inputs, params, direction), inputs["grad"]
    without_gradient = np.all(grad == 0, axis=tuple(range(1, grad.ndim)), keepdims=True) & (
        grad.ndim > 1
    )
    untouched = np.array(np.broadcast_to(without_gradient, grad.shape))
    formula_params = {**ready.params, "sparse": bool(untouched.any())}
    return Prepared({**ready.inputs, "untouched": untouched}, formula_params)


def _by_any_way(fault: Fault) -> Fault:
    """The fault, whose bound allows any order of operations, as the op's does."""
    formula = fault.forward
    assert formula is not None
    return replace(fault, forward=partial(formula, way=None))


def _optimizer(
    name: str,
    states: str,
    formula: Callable[..., Any],
    faults: tuple[Fault, ...],
    params: Mapping[str, Any],
    shown: Mapping[str, Any],
    more: tuple[Any, ...] = (),
    *,
    ways: str = "torch textbook mixture",
    letters: str = "...",
    **described: Any,
) -> Op:
    """The op. `states`: "m v vmax?"; `shown`, `more`: see `cases`; `ways`: the names of the
    formula's ways, the last for any mixture of them."""
    names = states.replace("?", "").split()
    states_text = ", ".join(
        f"{word.strip('?')}[{letters}]" + "?" * word.count("?") for word in states.split()
    )
    inputs_text = ", ".join(f"{word}[{letters}]" for word in ("param", *names))
    *single, mixture = ways.split()
    forms = {form: partial(formula, way=way) for way, form in enumerate(single)}
    usual = " ".join(
        word for word in states.split() if "?" not in word or name in ("sgd", "momentum")
    )
    return formula_op(
        name,
        f"param[{letters}], grad[{letters}], {states_text} -> {inputs_text}",
        gradients=(),
        params=params,
        domains={param: _DOMAINS.get(param, REAL) for param in params if param not in _NO_NUMBERS},
        forms={**forms, mixture: partial(formula, way=None)},
        truth=partial(formula, way=1),
        widest=mixture,
        faults=tuple(map(_by_any_way, faults)),
        scalars="binary64",
        cases=partial(cases_of, name, usual.replace("?", ""), shown, more),
        **{"prepare": _prepare, **described},
    )


_NAMED: dict[str, Any] = {"name": "weight"}  # of the parameter: MindSpore decays by it
_AS_BIAS = {"name": "norm.beta"}
_MOMENTUM = {"lr": 0.01, "momentum": 0.9, "weight_decay": 0.0, "nesterov": False}
_NESTEROV = ("nesterov", "buf", {"nesterov": True, "dampening": 0.0})
_ADAM = {"lr": 1e-3, "beta1": 0.9, "beta2": 0.999, "eps": 1e-8, "weight_decay": 0.0, "step": 1}
_LATER = {"step": 7, "weight_decay": 0.1}
_AMSGRAD: tuple[Any, ...] = (("amsgrad", "m v vmax", {}),)
_NO_NUMBERS = ("step", "nesterov", "name")  # a count, a truth value and a text
_DOMAINS = {
    **dict.fromkeys(("beta1", "beta2"), BELOW_ONE), "rho": PROBABILITY,
    **dict.fromkeys(("eps", "lr_decay"), NOT_NEGATIVE),
}  # fmt: skip
_ADAM_WAYS = "torch paddle textbook divided_first mixture"

OPS = (
    _optimizer(
        "sgd", "buf?", formulas.sgd, faults.SGD,
        {**_MOMENTUM, "dampening": 0.0, "step": 1, **_NAMED}, {**_LATER, "dampening": 0.25},
        (
            ("undampened", "buf", {"dampening": 0.0}), _NESTEROV, ("no_momentum", "", {}),
            ("named", "buf", _AS_BIAS),
        ),
    ),
    _optimizer(
        "momentum", "buf", formulas.sgd, faults.MOMENTUM, {**_MOMENTUM, **_NAMED},
        {"weight_decay": 0.1},
        (("nesterov", "buf", {"nesterov": True}), ("named", "buf", _AS_BIAS)),
    ),
    _optimizer(
        "adam", "m v vmax?", formulas.adam, faults.ADAM, {**_ADAM, **_NAMED}, _LATER,
        (
            *_AMSGRAD, ("untouched_rows", "m v", {}), ("untouched_eps", "m v", {"eps": 1e-4}),
            ("named", "m v", _AS_BIAS),
        ),
        ways=_ADAM_WAYS, prepare=_with_untouched,
    ),
    _optimizer(
        "adamw", "m v vmax?", formulas.adamw, faults.ADAMW,
        {**_ADAM, "weight_decay": 0.01, **_NAMED}, _LATER,
        (*_AMSGRAD, ("named", "m v", _AS_BIAS)), ways=_ADAM_WAYS,
    ),
    _optimizer(
        "lamb", "m v", formulas.lamb, faults.LAMB, {**_ADAM, "eps": 1e-6, "weight_decay": 0.01},
        {"step": 7, "weight_decay": 0.02},
        letters="n", coupled="n", prepare=partial(_prepare, whole=True),
    ),
    _optimizer(
        "adagrad", "accum", formulas.adagrad, faults.ADAGRAD,
        {"lr": 0.01, "lr_decay": 0.0, "eps": 1e-10, "weight_decay": 0.0, "step": 1}, _LATER,
        (("lr_decay", "accum", {"lr_decay": 0.01}),),
    ),
    _optimizer(
        "rmsprop", "accum mean? buf?", formulas.rmsprop, faults.RMSPROP,
        {"lr": 0.01, "rho": 0.99, "eps": 1e-8, "momentum": 0.9, "weight_decay": 0.0},
        {"weight_decay": 0.1},
        (
            ("momentum", "accum buf", {}), ("centred", "accum mean", {}),
            ("centred_momentum", "accum mean buf", {}),
        ),
        prepare=_with_tail,
    ),
    _optimizer(
        "lion", "m", formulas.lion, faults.LION,
        {"lr": 1e-4, "beta1": 0.9, "beta2": 0.99, "weight_decay": 0.0}, {"weight_decay": 0.1},
    ),
    formula_op(
        "adamw_8bit", eight_bits.SIGNATURE, "b", gradients=(),
        params={**_ADAM, "weight_decay": 0.01},
        domains={name: _DOMAINS.get(name, REAL) for name in _ADAM if name not in _NO_NUMBERS},
        forms={
            "torch": partial(eight_bits.coded, partial(formulas.adamw, way=0)),
            "mixture": partial(eight_bits.coded, partial(formulas.adamw, way=None)),
        },
        truth=partial(eight_bits.coded, partial(formulas.adamw, way=1)), widest="mixture",
        faults=(
            *(
                replace(fault, forward=partial(eight_bits.coded, _by_any_way(fault).forward))
                for fault in faults.ADAMW
            ),
            eight_bits.CODED_DOWN,
        ),
        scalars="binary64", prepare=partial(eight_bits.prepare, _prepare), cases=eight_bits.cases,
    ),
    factored.OP,
    *matrices.OPS,
    narrow.OP,
)  # fmt: skip
__all__ = ["OPS", "lost_updates", *public_names(OPS)]
_step = enclosures_of(OPS)


@_step
def sgd() -> None:
    """(param, buf) after a step of SGD, with momentum where there is a buf.

        g' = g + wd w,  b' = mu b + (1 - dampening) g' (step 1: b' = g'),  w' = w - lr b'

    With nesterov w' = w - lr (g' + mu b'); without a buf w' = w - lr g'.

    params      lr=0.01, momentum=0.9, dampening=0.0, weight_decay=0.0, nesterov=False, step=1;
                in step 1 buf becomes the gradient, as in PyTorch. name="weight" is the parameter's
                name, here and in `momentum`, `adam` and `adamw`; as it should, it has no effect
    certify     the question (`refkernels.Enclosure`)

    Arrays are of one shape, float16, bfloat16, float32 or float64. The bound (`OPS`) is proven for
    the forms of `formulas`, elementwise. Raises TypeError for other dtypes and for params that are
    not numbers, ValueError for shapes that do not fit and for a step below 1.
    Sources: PyTorch documentation, `torch.optim.SGD`; Polyak (1964),
    doi:10.1016/0041-5553(64)90137-5; with nesterov Sutskever et al. (2013), PMLR 28(3).
    """


@_step
def momentum() -> None:
    """(param, buf) after a step as in `sgd` without dampening, with a buf that starts at 0:
    lr=0.01, momentum=0.9, weight_decay=0.0, nesterov=False. Otherwise as `sgd`.

        g' = g + wd w,  b' = mu b + g',  w' = w - lr b'   (nesterov: w' = w - lr (g' + mu b'))

    Source: PaddlePaddle documentation, `paddle.optimizer.Momentum`.
    """


@_step
def adam() -> None:
    """(param, m, v, vmax) after a step of Adam: lr=1e-3, beta1=0.9, beta2=0.999, eps=1e-8,
    weight_decay=0.0 (coupled), step=1. It is dense: a row without a gradient moves too, which a
    sparse or lazy Adam's does not (`refkernels.explain` says `lazy_rows`). Otherwise as `sgd`.

        g' = g + wd w,  m' = beta1 m + (1 - beta1) g',  v' = beta2 v + (1 - beta2) g'²
        w' = w - lr (m' / c1) / (sqrt(v') / sqrt(c2) + eps),  c_i = 1 - beta_i^step

    Where there is a vmax (AMSGrad), max(vmax, v') takes the place of v' in w'.

    Source: Kingma and Ba (2015), arXiv:1412.6980; AMSGrad: Reddi, Kale and Kumar (2018),
    arXiv:1904.09237.
    """


@_step
def adamw() -> None:
    """(param, m, v, vmax) after a step of AdamW: weight_decay=0.01, decoupled. Otherwise as
    `adam`.

        w' = w (1 - lr wd) - lr (m' / c1) / (sqrt(v') / sqrt(c2) + eps),  with g for g' in m' and v'

    Source: Loshchilov and Hutter (2019), arXiv:1711.05101.
    """


@_step
def adamw_8bit() -> None:
    """(param, m, v, m_scale, v_scale) after a step of `adamw` whose states are codes of 8 bits.

    param, grad  blocks of elements, (..., b); bitsandbytes has b = 256
    m, v         the codes, whole numbers: places in m_table and v_table, 256 numbers that rise to 1
    m_scale, v_scale    the largest magnitude of each block's m and v, (...)

    m = m_table[m] m_scale, v likewise. Of the new ones m_scale is the largest magnitude of the
    block, and m the place of the number of m_table nearest to m / m_scale; param is that of m and v
    before. The bound of a code is 0, or 1 where a kernel's roundings may carry it over the middle
    between two numbers. Otherwise as `adam`. Source: Dettmers et al. (2022), arXiv:2110.02861.
    """


@_step
def lamb() -> None:
    """(param, m, v) after a step of LAMB, whose trust ratio is that of the whole array; eps=1e-6.
    Otherwise as `adamw`.

        r = (m' / c1) / (sqrt(v' / c2) + eps),  u = r + wd w,  w' = w - lr (|w| / |u|) u

    The norms are Euclidean, and the trust ratio |w| / |u| is 1 where either of them is 0.

    Source: You et al. (2020), arXiv:1904.00962.
    """


@_step
def adagrad() -> None:
    """(param, accum) after a step of Adagrad: lr=0.01, lr_decay=0.0, eps=1e-10, weight_decay=0.0,
    step=1. Otherwise as `sgd`.

        g' = g + wd w,  a' = a + g'²
        w' = w - lr / (1 + (step - 1) lr_decay) g' / (sqrt(a') + eps)

    Source: Duchi, Hazan and Singer (2011).
    """


@_step
def rmsprop() -> None:
    """(param, accum, mean, buf) after a step of RMSprop, centred where there is a mean, with
    momentum where there is a buf: lr=0.01, rho=0.99, eps=1e-8, momentum=0.9, weight_decay=0.0.
    Otherwise as `sgd`.

        g' = g + wd w,  a' = rho a + (1 - rho) g'²,  mean' = rho mean + (1 - rho) g'
        b' = mu b + g' / (sqrt(a' - mean'²) + eps),  w' = w - lr b'

    Without a mean the root is that of a'; without a buf mu b is left out.

    Sources: Tieleman and Hinton (2012), "Neural networks for machine learning", lecture 6.5; with
    a mean: Graves (2013), arXiv:1308.0850.
    """


@_step
def lion() -> None:
    """(param, m) after a step of Lion: lr=1e-4, beta1=0.9, beta2=0.99, weight_decay=0.0. Where the
    sign of beta1 m + (1 - beta1) g is in doubt the bound covers both. Otherwise as `sgd`.

        w' = w (1 - lr wd) - lr sign(beta1 m + (1 - beta1) g),  m' = beta2 m + (1 - beta2) g

    Source: Chen et al. (2023), arXiv:2302.06675.
    """


@_step
def adafactor() -> None:
    """(param, row, col) after a step of Adafactor for a matrix: lr=0.01, beta2_decay=-0.8,
    eps1=1e-7 (PyTorch's default is the eps of the parameter's format), eps2=1e-3, d=1.0,
    weight_decay=0.0, step=1.

        b = step^beta2_decay,  row' = (1 - b) row + b mean_j(g²),  col' = (1 - b) col + b mean_i(g²)
        v = row'_i col'_j / max(mean row', eps1),  u = g / √max(v, eps1²)
        a = max(eps2, rms w) min(lr, 1 / √step),  w' = w (1 - lr wd) - a u / max(1, rms u / d)

    param and grad have shape (m, n), row (m,), col (n,). The bound holds for sums in any order.
    Otherwise as `sgd`. Source: Shazeer and Stern (2018), arXiv:1804.04235.
    """


@_step
def muon() -> None:
    """(param, buf) after a step of Muon for a matrix: lr=1e-3, momentum=0.95, weight_decay=0.1,
    nesterov=True, ns_a=3.4445, ns_b=-4.775, ns_c=2.0315, eps=1e-7, ns_steps=5 (at most 10),
    scale="original" or "match_rms_adamw".

        b' = mu b + (1 - mu) g,  u = mu b' + (1 - mu) g   (without nesterov b')
        X = u / max(|u|, eps), then ns_steps times  X = a X + (b A + c A²) X with A = X Xᵀ
        w' = w (1 - lr wd) - lr √max(1, m / n) X   ("match_rms_adamw": 0.2 √max(m, n))

    The bound is that of X as a whole (`contexts.newton_schulz`): about 0.02 lr in float32 for
    13 x 17, growing with the size; it says nothing of steps in bfloat16 (`explain`:
    narrow_newton_schulz). Otherwise as `sgd`. Source: Jordan et al. (2024), "Muon: an optimizer
    for hidden layers in neural networks".
    """


@_step
def soap() -> None:
    """(param, m, v) after a step of SOAP for a matrix, in the eigenbases left (m, p) and right
    (n, q), usually p = m and q = n: lr=3e-3, beta1=0.95, beta2=0.95, eps=1e-8, weight_decay=0.01,
    step=1.

        m' = beta1 m + (1 - beta1) g,  v' = beta2 v + (1 - beta2) (Lᵀ g R)²
        s = w - lr √c2 / c1 L (Lᵀ m' R / (√v' + eps)) Rᵀ,  c_i = 1 - beta_i^step,  w' = s - lr wd s

    v has shape (p, q). The bases are taken as given, orthogonal or not. Otherwise as `sgd`.
    Source: Vyas et al. (2024), arXiv:2409.11321.
    """


@_step
def narrow_step() -> None:
    """(param, comp): a parameter after an update, in the format `to`.

        w' = g(w + t),  t = u + comp,  comp' = t - (w' - w)

    param     w, float16, bfloat16, float32 or float64 (NumPy, DLPack, `__array__`)
    update    u, of param's shape: what an optimizer adds to it
    comp      Kahan's compensation, or None: then t = u, and there is no comp'
    draws     of param's shape, from [0, 1): g rounds upward where a draw is less than w + t's place
              between its neighbours; by default g rounds to the nearest, ties to even
    to        the format of the parameters, as `quantization_ref.cast` has it

    The bound of w' is 0, or a step of the format where a kernel's own roundings of t, which it
    may keep in the arrays' format, and of w + t may carry the sum over a tie; that of comp' has the
    same step; `lost_updates` counts the w' that are w. Raises TypeError for other dtypes,
    ValueError for shapes that differ, other draws and another format. Sources: Kahan (1965),
    doi:10.1145/363707.363723; Zamirai et al. (2021), arXiv:2010.06192.
    """
