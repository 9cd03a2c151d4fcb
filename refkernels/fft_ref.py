"""The discrete Fourier transform, with its gradient, certified.

    fft(x, inverse=False, norm="backward") -> Enclosure    y_k = c sum_j x_j e^(-2 pi i j k / n)

A transform of n = p m numbers is p of m numbers each, one for every p-th of them, turned by the
twiddle factors e^(-2 pi i r k / n) and joined by transforms of p numbers (Cooley and Tukey). `OPS`
lists the op.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from refkernels.arithmetic.wording import shown
from refkernels.op import Direction
from refkernels.ops import Prepared, formula_op
from refkernels.ops.cases import drawn, listed, with_specials
from refkernels.ops.public import enclosure_of, gradients_of, public_names

LARGEST_PRIME = 509  # a prime factor of n costs its square
NORMS = ("backward", "ortho", "forward")
_ULP = 1  # of a twiddle factor, which tables hold


def _prepare(inputs: dict[str, Any], params: dict[str, Any], direction: Direction) -> Prepared:
    if params["norm"] not in NORMS:
        raise ValueError(f"norm is {shown(params['norm'])}: it must be one of {NORMS}.")
    x = inputs["x"]
    if x.ndim < 2 or x.shape[-1] != 2:
        raise ValueError(
            f"x has shape {x.shape}: it must be x[... n 2], the real and the imaginary parts of n "
            "numbers."
        )
    if (largest := _primes(x.shape[-2])[-1]) > LARGEST_PRIME:
        raise ValueError(
            f"n is {x.shape[-2]}, a multiple of the prime {largest}: at most {LARGEST_PRIME} is "
            "supported."
        )
    return Prepared(inputs, params)


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


def _transform(xp: Any, re: Any, im: Any) -> Any:
    """Transforms along the last axis of (rows, lines, n)."""
    rows, lines, n = re.shape
    p = _primes(n)[0]
    if p == n:
        return _direct(xp, re, im) if n > 1 else (re, im)
    m = n // p

    def crossed(part: Any, first: int, last: int) -> Any:
        """The numbers of each line, (first, last), as (last, first)."""
        return xp.transpose(xp.reshape(part, (rows, lines, first, last)), (0, 1, 3, 2))

    def joined(part: Any, many: int, of: int) -> Any:
        return xp.reshape(part, (rows, many, of))

    re, im = (joined(crossed(part, m, p), lines * p, m) for part in (re, im))
    re, im = (xp.reshape(part, (rows, lines, p, m)) for part in _transform(xp, re, im))
    re, im = _turned(xp, re, im, np.outer(np.arange(p), np.arange(m)), n, lambda a, b: a * b)
    re, im = (joined(crossed(part, p, m), lines * m, p) for part in (re, im))
    return tuple(joined(crossed(part, m, p), lines, n) for part in _direct(xp, re, im))


def _fft(xp: Any, x: Any, inverse: bool, norm: str) -> Any:
    """The inverse exchanges the real and the imaginary parts before and after."""
    rows, n, _ = x.shape
    if not n:
        return x
    order = [1, 0] if inverse else [0, 1]
    parts = (xp.reshape(xp.take(x, np.array([k]), axis=-1), (rows, 1, n)) for k in order)
    re, im = _transform(xp, *parts)
    pair = (im, re) if inverse else (re, im)
    y = xp.concatenate([xp.reshape(part, (rows, n, 1)) for part in pair])
    if norm == "ortho":
        root = xp.sqrt(xp.number(n))
        return xp.either(y / root, y * (1 / root))
    if (norm == "forward") is inverse:
        return y
    return xp.either(y / n, y * xp.number(Fraction(1, n)))


def _lines(rows: int, n: int, size: float = 1.0, **specials: float) -> Any:
    return with_specials(drawn(dy=(rows, n, 2), x=(rows, n, 2), x_size=size), **specials)


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
OPS = (
    formula_op(
        "fft",
        "x[... n 2] -> y[... n 2]",
        "n 2",
        params={"inverse": False, "norm": "backward"},
        prepare=_prepare,
        forms={"mixed_radix": _fft},
        cases=_CASES,
    ),
)
__all__ = ["OPS", *public_names(OPS)]
_enclosure = enclosure_of(OPS)


@_enclosure
def fft() -> None:
    """y_k = c sum_j x_j e^(-2 pi i j k / n), n being the length of the last axis but one.

    x         (..., n, 2), the real and the imaginary parts, as `torch.view_as_real` gives them:
              float16, bfloat16, float32 or float64 (NumPy, DLPack, `__array__`); of real numbers,
              as rfft takes and irfft gives them, the second parts are 0
    inverse   True: e^(+2 pi i j k / n)
    norm      "backward": c is 1, of the inverse 1 / n; "forward": the other way round; "ortho":
              1 / sqrt(n) for both
    certify   the question (`refkernels.Enclosure`)

    The bound of a float32 kernel is about 4 log2(n) 2^-24 sum |x_j|, proven for mixed radices with
    twiddle factors within an ulp; n that is a prime is a sum of n products. Raises TypeError for
    other dtypes, ValueError for other shapes and for n with a prime factor above 509.
    Source: Cooley and Tukey (1965), doi:10.1090/S0025-5718-1965-0178586-1.

    Gradient: dx = the transform of dy with the other sign and the same c. dy has x's shape.
    """


__getattr__ = gradients_of(OPS, globals())
