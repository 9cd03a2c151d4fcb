"""Steps of optimizers for a matrix of m rows and n columns: Muon, and SOAP in given eigenbases.

    muon    b' = mu b + (1 - mu) g;  u = mu b' + (1 - mu) g (Nesterov) or b'
            X = u / max(|u|, eps), then so many times  X = a X + (b A + c A²) X,  A = X Xᵀ
            w' = w (1 - lr wd) - r X,  r = lr √max(1, m / n) or lr 0.2 √max(m, n)
    soap    m' = b1 m + (1 - b1) g,  v' = b2 v + (1 - b2) (Lᵀ g R)²
            s = w - lr √c2 / c1 L (Lᵀ m' R / (√v' + eps)) Rᵀ,  c_i = 1 - b_i^step;  w' = s - lr wd s

|u| is Frobenius' norm. X is turned where m > n, so that A is the smaller product.

Sources: Jordan et al. (2024), "Muon: an optimizer for hidden layers in neural networks", with the
scales of `torch.optim.Muon`; Vyas et al. (2024), arXiv:2409.11321, as in
its authors' code.
"""

from __future__ import annotations

import re
from functools import partial
from typing import Any

import numpy as np

from refkernels.arguments import as_flag, as_text
from refkernels.arithmetic.scalars import as_count
from refkernels.op import Case, Direction, Op
from refkernels.ops import Fault, Prepared, formula_op
from refkernels.ops.cases import Arrays, case
from refkernels.ops.domains import BELOW_ONE, NOT_NEGATIVE, POSITIVE
from refkernels.optimizer_ref.formulas import Way, blend, blend_squares, corrections, decayed, pick

SCALES = ("original", "match_rms_adamw")
MOST = 10  # steps of Newton and Schulz


def _prepare(inputs: dict[str, Any], params: dict[str, Any], direction: Direction) -> Prepared:
    """Raises ValueError for params that are not allowed."""
    as_count(params.get("step", 1), "step")
    given = {**params, "weight_decay": params["weight_decay"] or None}
    if "scale" in params:
        given["nesterov"] = as_flag(params["nesterov"], "nesterov")
        if as_text(params["scale"], "scale") not in SCALES:
            raise ValueError(f"scale is {params['scale']!r}: it must be {' or '.join(SCALES)}.")
        if as_count(params["ns_steps"], "ns_steps") > MOST:
            raise ValueError(f"ns_steps is {params['ns_steps']}: it must be at most {MOST}.")
    return Prepared(inputs, given)


def _turned(xp: Any, a: Any) -> Any:
    return xp.transpose(a, (0, 2, 1))


def _in_steps(xp: Any, x: Any, a: Any, b: Any, c: Any, steps: int, format: str) -> Any:
    """Newton and Schulz, each value of which is kept in a format."""
    x = xp.narrow(x, format)
    for _ in range(steps):
        gram = xp.narrow(xp.matmul(x, _turned(xp, x)), format)
        factor = xp.narrow(b * gram + c * xp.matmul(gram, gram), format)
        x = xp.narrow(a * x + xp.matmul(factor, x), format)
    return x


def muon(
    xp: Any, param: Any, grad: Any, buf: Any, *, lr: Any, momentum: Any, weight_decay: Any,
    nesterov: bool, ns_a: Any, ns_b: Any, ns_c: Any, eps: Any, ns_steps: int, scale: str,
    way: Way = 0, format: str = "",
) -> Any:  # fmt: skip
    m, n = param.shape[-2:]
    if not m * n:
        return param, buf
    w, g, buf = (xp.reshape(x, (1, m, n)) for x in (param, grad, buf))
    buf = blend(xp, way, buf, g, momentum)
    u = blend(xp, way, buf, g, momentum) if nesterov else buf
    x = u if m <= n else _turned(xp, u)
    x = xp.narrow(x, format) if format else x
    norm = xp.norm(xp.reshape(x, (1, 1, m * n)))
    x = x / xp.maximum(xp.narrow(norm, format) if format else norm, eps)
    numbers = x, ns_a, ns_b, ns_c, ns_steps
    x = _in_steps(xp, *numbers, format) if format else xp.newton_schulz(*numbers)
    x = x if m <= n else _turned(xp, x)
    rms = scale == "match_rms_adamw"
    factor = xp.number(max(m, n)) / 25 if rms else xp.maximum(xp.number(m) / n, xp.number(1))
    shrink = None if weight_decay is None else lr * weight_decay
    return decayed(w, shrink) - lr * xp.sqrt(factor) * x, buf


def soap(
    xp: Any, param: Any, grad: Any, m: Any, v: Any, left: Any, right: Any, *, lr: Any, beta1: Any,
    beta2: Any, eps: Any, weight_decay: Any, step: int, way: Way = 0,
) -> Any:  # fmt: skip
    w, g, m, v, left, right = (
        xp.reshape(x, (1, *x.shape[-2:])) for x in (param, grad, m, v, left, right)
    )

    def product(a: Any, b: Any, c: Any) -> Any:
        """A B C, of which either product may be first."""
        first = lambda: xp.matmul(xp.matmul(a, b), c)  # noqa: E731
        return pick(xp, way, first, lambda: xp.matmul(a, xp.matmul(b, c)))

    m = blend(xp, way, m, g, beta1)
    v = blend_squares(xp, way, v, product(_turned(xp, left), g, right), beta2)
    u = product(_turned(xp, left), m, right) / (xp.sqrt(v) + eps)
    c1, root = corrections(xp, beta1, beta2, step)
    moved = w - lr * root / c1 * product(left, u, _turned(xp, right))
    return moved if weight_decay is None else moved - lr * weight_decay * moved, m, v


def _arrays(
    takes: str, kind: str, shape: tuple[int, int], rng: np.random.Generator, dtype: str
) -> Arrays:
    """param, of which a quarter is 0, grad and the states; left and right are orthogonal."""
    lengths = dict(zip("mnpq", (*shape, *shape), strict=True))
    arrays: Arrays = {}
    for name, letters in re.findall(r"(\w+)\[([a-z ]+)\]", takes):
        drawn = rng.standard_normal([lengths[letter] for letter in letters.split()])
        squared = name in ("v", "row", "col")
        turned = name in ("left", "right")
        arrays[name] = np.linalg.qr(drawn)[0] if turned else drawn**2 if squared else drawn
    arrays["param"].flat[::4] = 0.0
    if kind in ("zeros", "small"):
        arrays["grad"] *= 0.0 if kind == "zeros" else 1e-9
    if kind == "specials":
        arrays["grad"][1, 2], arrays["param"][2, 0] = np.nan, np.inf
    return arrays


def _cases(
    op: str, takes: str, later: dict[str, Any], variants: tuple[dict[str, Any], ...]
) -> list[Case]:
    """All cases. Appended, never changed."""

    def make(regime: str, kind: str = "", shape: Any = (5, 7), **changed: Any) -> Case:
        parameters = {"m": shape[0], "n": shape[1], **changed}
        build = partial(_arrays, takes, kind, shape)
        given = {} if regime == "wide" else {**later, **changed}
        return case(op, regime, parameters, build, given, directions=("forward",))

    return [
        make("wide"),
        make("tall", shape=(9, 4)),
        make("row", shape=(1, 6)),
        make("small_gradient", "small"),
        make("zero_gradient", "zeros"),
        make("specials", "specials"),
        *(make("variants", **changed) for changed in variants),
        make("invariance", shape=(7, 5)),
    ]


def matrix_op(
    name: str, signature: str, formula: Any, ways: str, params: dict[str, Any],
    domains: dict[str, Any], later: dict[str, Any], variants: tuple[dict[str, Any], ...],
    **described: Any,
) -> Op:  # fmt: skip
    """A step of an optimizer for a matrix. `later`: params of its cases besides the defaults,
    changed one by one in `variants`."""
    *single, mixture = ways.split()
    forms = {form: partial(formula, way=way) for way, form in enumerate(single)}
    return formula_op(
        name,
        signature,
        "m n",
        gradients=(),
        params=params,
        domains=domains,
        prepare=_prepare,
        forms={**forms, mixture: partial(formula, way=None)},
        truth=partial(formula, way=1),
        widest=mixture,
        scalars="binary64",
        cases=partial(_cases, name, signature.split(" -> ")[0], later, variants),
        **described,
    )


OPS = (
    matrix_op(
        "muon",
        "param[m n], grad[m n], buf[m n] -> param[m n], buf[m n]",
        muon,
        "torch textbook mixture",
        {
            "lr": 1e-3, "momentum": 0.95, "weight_decay": 0.1, "nesterov": True, "ns_a": 3.4445,
            "ns_b": -4.775, "ns_c": 2.0315, "eps": 1e-7, "ns_steps": 5, "scale": "original",
        },
        {"eps": POSITIVE},
        {"lr": 0.02},
        ({"nesterov": False}, {"scale": "match_rms_adamw"}, {"ns_steps": 3}),
        faults=(
            Fault(
                "narrow_newton_schulz",
                partial(muon, format="bfloat16"),
                unstable=True,
                outputs=("param",),
            ),
        ),
    ),
    matrix_op(
        "soap",
        "param[m n], grad[m n], m[m n], v[p q], left[m p], right[n q] "
        "-> param[m n], m[m n], v[p q]",
        soap,
        "left_first right_first mixture",
        {
            "lr": 3e-3, "beta1": 0.95, "beta2": 0.95, "eps": 1e-8, "weight_decay": 0.01, "step": 1,
        },
        {"eps": NOT_NEGATIVE, "beta1": BELOW_ONE, "beta2": BELOW_ONE},
        {"step": 7, "weight_decay": 0.1},
        ({"weight_decay": 0.0}, {"step": 1000}),
    ),
)  # fmt: skip
