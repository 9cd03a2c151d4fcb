"""The discrete Fourier transform, with its gradient, certified.

    fft(x, inverse=False, norm="backward") -> Enclosure    y_k = c sum_j x_j e^(-2 pi i j k / n)
    rfft(x, norm="backward")        of real x, the first n // 2 + 1 of y
    irfft(x, n=None, norm="backward")            the n real numbers of which it is the transform

A transform of n = p m numbers is p of m numbers each, one for every p-th of them, turned by the
twiddle factors e^(-2 pi i r k / n) and joined by transforms of p numbers (Cooley and Tukey). `OPS`
lists the ops.
"""

from __future__ import annotations

from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from refkernels.arithmetic.scalars import as_count
from refkernels.arithmetic.wording import shown
from refkernels.op import Direction
from refkernels.ops import Prepared, formula_op
from refkernels.ops.cases import drawn, listed, with_specials
from refkernels.ops.letters import Signature
from refkernels.ops.public import enclosure_of, gradients_of, public_names

LARGEST_PRIME = 509  # a prime factor of n costs its square
NORMS = ("backward", "ortho", "forward")
_ULP = 1  # of a twiddle factor, which tables hold


def _prepare(inputs: dict[str, Any], params: dict[str, Any], direction: Direction) -> Prepared:
    _check(inputs["x"], params, True, inputs["x"].shape[-2:][0] if inputs["x"].ndim else 0)
    return Prepared(inputs, params)


def _check(x: Any, params: dict[str, Any], pairs: bool, n: int) -> None:
    """Raises ValueError for another norm, x without axes for n numbers and their parts, or n with
    a prime factor that is too large."""
    if params["norm"] not in NORMS:
        raise ValueError(f"norm is {shown(params['norm'])}: it must be one of {NORMS}.")
    if x.ndim < 1 + pairs or (pairs and x.shape[-1] != 2):
        wanted = (
            "x[... n 2], the real and the imaginary parts of n numbers" if pairs else "x[... n]"
        )
        raise ValueError(f"x has shape {x.shape}: it must be {wanted}.")
    if (largest := _primes(n)[-1]) > LARGEST_PRIME:
        raise ValueError(
            f"n is {n}, a multiple of the prime {largest}: at most {LARGEST_PRIME} is supported."
        )


def _prepare_real(
    inverse: bool, inputs: dict[str, Any], params: dict[str, Any], direction: Direction
) -> Prepared:
    """y's shape is another one than x's."""
    x, options = inputs["x"], dict(params)
    n = x.shape[-1 - inverse] if x.ndim > inverse else 0
    if inverse:
        n = max(2 * n - 2, 1) if params["n"] is None else as_count(params["n"], "n")
        if x.ndim > 1 and x.shape[-2] != n // 2 + 1:
            raise ValueError(
                f"x has shape {x.shape}: n is {n}, so it must be x[... {n // 2 + 1} 2]."
            )
    _check(x, params, inverse, n)
    if not n:
        raise ValueError(f"x has shape {x.shape}, and a transform has one number or more.")
    text = f"x[... m 2] -> y[... {n}]" if inverse else f"x[... n] -> y[... {n // 2 + 1} 2]"
    signature = Signature.parse(text, "m" if inverse else "n")
    if direction == "backward":
        signature = signature.backward({"dy": "y"}, {"dx": "x"})
    return Prepared(inputs, {**options, **({"n": n} if inverse else {})}, signature=signature)


def _primes(n: int) -> list[int]:
    """The prime factors of n in order; 1 for 1."""
    found, p = [], 2
    while p * p <= n:
        if n % p:
            p += 1
        else:
            found.append(p)
            n //= p
    return [*found, n] if n > 1 or not found else found


def _turn(xp: Any, name: str, numerators: Any, n: int) -> Any:
    """The cosine, or the sine, of 2 pi numerators / n: exactly at quarters of a turn."""
    exact, quarters = 4 * numerators % n == 0, 4 * numerators // n % 4
    known = np.array([1.0, 0.0, -1.0, 0.0])[(quarters - (name == "sin")) % 4]

    def angled(xp: Any, numerator: Any) -> Any:
        return xp.function(name, xp.pi() * (numerator * 2 / n))

    others = xp.array(np.where(exact, 1, numerators).astype(np.float64))
    return xp.where(exact, xp.array(known), xp.library(angled, _ULP, (others,)))


def _turned(xp: Any, re: Any, im: Any, numerators: Any, n: int, product: Any) -> Any:
    """Times e^(-2 pi i numerators / n)."""
    cos, sin = (_turn(xp, name, numerators, n) for name in ("cos", "sin"))
    return product(re, cos) + product(im, sin), product(im, cos) - product(re, sin)


def _direct(xp: Any, re: Any, im: Any) -> Any:
    """Transforms of p numbers, the last axis of (rows, lines, p)."""
    p = re.shape[-1]
    if p == 2:
        halves = [[xp.take(part, np.array([k]), axis=-1) for k in (0, 1)] for part in (re, im)]
        return tuple(xp.concatenate([a + b, a - b]) for a, b in halves)
    numerators = np.outer(np.arange(p), np.arange(p))[None] % p
    return _turned(xp, re, im, numerators, p, xp.matmul)


def _transform(xp: Any, re: Any, im: Any, factor: int) -> Any:
    """Transforms along the last axis of (rows, lines, n). `factor`: the place, among those
    of n, of the one whose transforms come last."""
    rows, lines, n = re.shape
    p = _primes(n)[factor]
    if p == n:
        return _direct(xp, re, im) if n > 1 else (re, im)
    m = n // p

    def crossed(part: Any, first: int, last: int) -> Any:
        """The numbers of each line, (first, last), as (last, first)."""
        return xp.transpose(xp.reshape(part, (rows, lines, first, last)), (0, 1, 3, 2))

    def joined(part: Any, many: int, of: int) -> Any:
        return xp.reshape(part, (rows, many, of))

    re, im = (joined(crossed(part, m, p), lines * p, m) for part in (re, im))
    re, im = (xp.reshape(part, (rows, lines, p, m)) for part in _transform(xp, re, im, factor))
    re, im = _turned(xp, re, im, np.outer(np.arange(p), np.arange(m)), n, lambda a, b: a * b)
    re, im = (joined(crossed(part, p, m), lines * m, p) for part in (re, im))
    return tuple(joined(crossed(part, m, p), lines, n) for part in _direct(xp, re, im))


def _fft(xp: Any, x: Any, factor: int, inverse: bool, norm: str) -> Any:
    if not x.shape[-2]:
        return x
    re, im = _parts(xp, x)
    return xp.concatenate(_scaled(xp, re, im, factor, inverse, norm))


def _parts(xp: Any, x: Any) -> Any:
    """The real and the imaginary parts of (rows, n, 2), each (rows, n, 1)."""
    return [xp.take(x, np.array([k]), axis=-1) for k in (0, 1)]


def _scaled(xp: Any, re: Any, im: Any, factor: int, inverse: bool, norm: str) -> Any:
    """The inverse exchanges the real and the imaginary parts before and after."""
    rows, n, _ = re.shape
    pair = [xp.reshape(part, (rows, 1, n)) for part in ((im, re) if inverse else (re, im))]
    parts = _transform(xp, pair[0], pair[1], factor)
    pair = [xp.reshape(part, (rows, n, 1)) for part in parts]
    if norm == "ortho":
        root = xp.sqrt(xp.number(n))
        pair = [xp.either(part / root, part * (1 / root)) for part in pair]
    elif (norm == "forward") is not inverse:
        pair = [xp.either(part / n, part * xp.number(Fraction(1, n))) for part in pair]
    return pair[::-1] if inverse else pair


def _by_factors(formula: Any) -> dict[str, Any]:
    """What is exactly 0 in one order of the factors is rounded in another."""
    return {
        form: partial(formula, factor=factor)
        for form, factor in (("mixed_radix", 0), ("descending_radix", -1))
    }


def _rfft(xp: Any, x: Any, factor: int, norm: str) -> Any:
    re = xp.reshape(x, (*x.shape, 1))
    pair = _scaled(xp, re, xp.array(np.zeros(re.shape)), factor, False, norm)
    return xp.take(xp.concatenate(pair), np.arange(x.shape[-1] // 2 + 1), axis=-2)


def _irfft(xp: Any, x: Any, factor: int, n: int, norm: str) -> Any:
    """x_(n - k) is the conjugate of x_k; the imaginary part of what is its own plays no part."""
    k = np.arange(n)
    signs = xp.array(np.sign(n - 2.0 * k)[None, :, None] * (k > 0)[:, None])
    re, im = (xp.take(part, np.minimum(k, n - k), axis=-2) for part in _parts(xp, x))
    return xp.reshape(_scaled(xp, re, im * signs, factor, True, norm)[0], (x.shape[0], n))


def _lines(rows: int, n: int, size: float = 1.0, **specials: float) -> Any:
    return with_specials(drawn(dy=(rows, n, 2), x=(rows, n, 2), x_size=size), **specials)


def _real(rows: int, n: int, size: float = 1.0) -> Any:
    return drawn(dy=(rows, n // 2 + 1, 2), x=(rows, n), x_size=size)


def _half(rows: int, n: int, size: float = 1.0) -> Any:
    return drawn(dy=(rows, n), x=(rows, n // 2 + 1, 2), x_size=size)


_CASES = listed(
    "fft",
    ("length", {"n": 8}, _lines(5, 8)),
    ("length", {"n": 12}, _lines(5, 12)),
    ("length", {"n": 17}, _lines(3, 17)),
    ("length", {"n": 1024}, _lines(2, 1024)),
    ("inverse", {"n": 30}, _lines(3, 30), {"inverse": True}),
    ("norm", {"norm": "ortho"}, _lines(3, 16), {"norm": "ortho"}),
    ("norm", {"norm": "forward"}, _lines(3, 16), {"norm": "forward"}),
    ("size", {"size": 1e4}, _lines(3, 64, 1e4)),
    ("specials", {}, _lines(3, 8, x=np.inf)),
    ("invariance", {"rows": 37}, _lines(37, 16)),
)
_REAL_CASES, _HALF_CASES = (
    listed(
        op,
        ("length", {"n": 8}, of(5, 8)),
        ("length", {"n": 15}, of(5, 15), odd),
        ("length", {"n": 256}, of(2, 256)),
        ("norm", {"norm": "ortho"}, of(3, 16), {"norm": "ortho"}),
        ("size", {"size": 1e4}, of(3, 60, 1e4)),
        ("invariance", {"rows": 37}, of(37, 16)),
    )
    for op, of, odd in (("rfft", _real, {}), ("irfft", _half, {"n": 15}))
)
OPS = (
    formula_op(
        "fft",
        "x[... n 2] -> y[... n 2]",
        "n 2",
        params={"inverse": False, "norm": "backward"},
        prepare=_prepare,
        forms=_by_factors(_fft),
        cases=_CASES,
    ),
    formula_op(
        "rfft",
        "x[... n] -> y[... n 2]",
        "n",
        params={"norm": "backward"},
        prepare=partial(_prepare_real, False),
        forms=_by_factors(_rfft),
        cases=_REAL_CASES,
    ),
    formula_op(
        "irfft",
        "x[... n 2] -> y[... n]",
        "n",
        params={"n": None, "norm": "backward"},
        prepare=partial(_prepare_real, True),
        forms=_by_factors(_irfft),
        cases=_HALF_CASES,
    ),
)
__all__ = ["OPS", *public_names(OPS)]
_enclosure = enclosure_of(OPS)


@_enclosure
def fft() -> None:
    """y_k = c sum_j x_j e^(-2 pi i j k / n), n being the length of the last axis but one.

    x         (..., n, 2), the real and the imaginary parts, as `torch.view_as_real` gives them:
              float16, bfloat16, float32 or float64 (NumPy, DLPack, `__array__`)
    inverse   True: e^(+2 pi i j k / n)
    norm      "backward": c is 1, of the inverse 1 / n; "forward": the other way round; "ortho":
              1 / sqrt(n) for both
    certify   the question (`refkernels.Enclosure`)

    The bound of a float32 kernel is about 4 log2(n) 2^-24 sum |x_j|, proven for mixed radices, the
    factors of n in either order, with twiddle factors within an ulp; n that is a prime is a sum of
    n products. Raises TypeError for other dtypes, ValueError for other shapes and for n with a
    prime factor above 509.
    Source: Cooley and Tukey (1965), doi:10.1090/S0025-5718-1965-0178586-1.

    Gradient: dx = the transform of dy with the other sign and the same c. dy has x's shape.
    """


@_enclosure
def rfft() -> None:
    """y_k = c sum_j x_j e^(-2 pi i j k / n) for k = 0 ... n // 2; the others are their conjugates.

    x is (..., n), y (..., n // 2 + 1, 2). Otherwise as `fft`. Source: NumPy's documentation.

    Gradient: dx_j = c sum_k Re(dy_k e^(+2 pi i j k / n)).
    """


@_enclosure
def irfft() -> None:
    """y_j = c sum_k x_k e^(+2 pi i j k / n), with x_(n - k) the conjugate of x_k.

    x is (..., n // 2 + 1, 2), y (..., n); by default n is even. The imaginary part of x_0, and of
    x_(n / 2), plays no part. Otherwise as `fft`. Source: NumPy's documentation.

    Gradient: dx_k = c w_k sum_j dy_j e^(-2 pi i j k / n), w_k being 2 where x_k stands for two.
    """


__getattr__ = gradients_of(OPS, globals())
