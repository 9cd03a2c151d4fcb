"""Compares an oracle's certified roundings with MPFR's, bit for bit, and prints the counts.

    python tools/compare_with_mpfr.py sin 10000000 [--format float32] [--seed 0]

The inputs are COUNT random bit patterns of the format, both ends of every binade, and the op's own
cases (the hard ones among them), or every pattern where the format has no more than COUNT. MPFR, by
gmpy2, rounds correctly into the format, subnormals included. Arb computes the functions that MPFR
lacks, in balls narrow enough to round. Exits with 1 if a single bit differs or a rounding is not
certified.
Source: Fousse, Hanrot, Lefevre, Pelissier, Zimmermann (2007), "MPFR", doi:10.1145/1236463.1236468.
"""

import argparse
import math
import sys
from collections.abc import Callable
from typing import Any

import flint
import gmpy2
import numpy as np

from refkernels import registry
from refkernels.arithmetic import formats, tiers

MPFR: dict[str, Callable[[Any], Any]] = {
    **{
        name: getattr(gmpy2, name)
        for name in (
            *("sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "exp", "exp2"),
            *("expm1", "log", "log2", "log10", "log1p", "sqrt", "erf", "erfc"),
        )
    },
    "rsqrt": gmpy2.rec_sqrt,
    "reciprocal": lambda x: 1 / x,
}
ARB: dict[str, Callable[[Any], Any]] = {
    "sinpi": lambda x: x.sin_pi(),
    "cospi": lambda x: x.cos_pi(),
    "sigmoid": lambda x: 1 / (1 + (-x).exp()),
    "silu": lambda x: x / (1 + (-x).exp()),
    "softplus": lambda x: x.exp().log1p(),
    "gelu": lambda x: x / 2 * (-x / flint.arb(2).sqrt()).erfc(),
    "gelu_tanh": lambda x: x / (1 + (-2 * _inner(x)).exp()),
}
_PRECISIONS = (200, 800, 3200)  # of Arb; the first decides all but inputs very near a midpoint
CHUNK = 1 << 20


def _inner(x: Any) -> Any:
    x = x if x > -1024 else flint.arb(-1024)  # far below every format either way
    return (2 / flint.arb.pi()).sqrt() * (x + flint.arb(44715) / 1000000 * x**3)


def context(format: formats.Format) -> Any:
    """MPFR's numbers are f 2^e with 1/2 <= f < 1."""
    return gmpy2.context(
        precision=format.p,
        emax=format.emax + 1,
        emin=format.emin - format.p + 2,
        subnormalize=True,
    )


def rounded(name: str, x: np.ndarray, format: formats.Format) -> np.ndarray:
    """f(x), correctly rounded by MPFR or Arb, as float64."""
    arguments = [gmpy2.mpfr(v, 53) for v in x.tolist()]  # of any size, whatever the format
    with gmpy2.context(context(format)):
        if name in MPFR:
            values = [MPFR[name](v) for v in arguments]
        else:
            values = [_by_arb(ARB[name], v) for v in x.tolist()]
            if name == "sinpi":  # IEEE 754-2019: sinpi(-n) = -0
                pairs = zip(x.tolist(), values, strict=True)
                values = [math.copysign(0.0, v) if y == 0 else y for v, y in pairs]
        return np.array([float(value) for value in values])


def _by_arb(function: Callable[[Any], Any], x: float) -> Any:
    if not np.isfinite(x) or x == 0.0:
        raise ValueError("x must be finite and not zero.")
    for precision in _PRECISIONS:
        flint.ctx.prec = precision
        ball = function(flint.arb(x))
        ends = [_number(end) for end in (ball.lower(), ball.upper())]
        if ends[0] == ends[1]:
            return ends[0]
    raise ArithmeticError(f"Arb does not decide f({x.hex()})")


def _number(end: Any) -> Any:
    """An exact Arb number, rounded once to the current context."""
    mantissa, exponent = (int(part) for part in end.man_exp())
    exponent = max(exponent, -(1 << 39))  # MPFR's have 62 bits; both are far below every format
    with gmpy2.context(gmpy2.get_context(), precision=5000, subnormalize=False) as wide:
        wide.emax, wide.emin = 1 << 40, -(1 << 40)
        exact = (
            gmpy2.mul_2exp(gmpy2.mpfr(mantissa), exponent)
            if exponent >= 0
            else (gmpy2.div_2exp(gmpy2.mpfr(mantissa), -exponent))
        )
    return gmpy2.get_context().plus(exact)


def inputs(name: str, format: formats.Format, count: int, seed: int) -> np.ndarray:
    """The inputs, finite and not zero, in the format."""
    bits = 8 * format.storage.itemsize
    if count >= 1 << bits:
        words = np.arange(1 << bits, dtype=np.uint64)
    else:
        words = np.random.default_rng(seed).integers(0, 1 << bits, count, dtype=np.uint64)
    step = 1 << (format.p - 1)
    edges = np.arange(step, 1 << (bits - 1), step, dtype=np.uint64)
    edges = np.concatenate([edges - 1, edges, edges + 1])
    words = np.concatenate([words, edges, edges | np.uint64(1 << (bits - 1))])
    x = words.astype(format.bits_dtype).view(format.storage)
    cases = [
        case.build(format.name)[0]["x"]
        for case in registry.get(name).cases()
        if format.name in case.dtypes
    ]
    x = np.concatenate([x, *cases])
    with np.errstate(invalid="ignore"):
        wide = x.astype(np.float64)
    return x[np.isfinite(wide) & (wide != 0.0)]


def compare(name: str, x: np.ndarray, format: formats.Format) -> tuple[np.ndarray, int, dict]:
    """The inputs whose roundings differ, the number not certified, and the count of each tier."""
    different, uncertified = [], 0
    with tiers.counted() as tally:
        for start in range(0, x.size, CHUNK):
            part = x[start : start + CHUNK]
            answer = registry.get(name).forward(part, certify=("rounding", format))
            values, certified = answer.round(format)
            wide, truth = values.astype(np.float64), rounded(name, part.astype(np.float64), format)
            equal = (wide == truth) & (np.signbit(wide) == np.signbit(truth))
            equal |= np.isnan(wide) & np.isnan(truth)
            different.append(part[~equal])
            uncertified += int((~certified).sum())
    return np.concatenate(different), uncertified, dict(tally)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("function", choices=[*MPFR, *ARB])
    parser.add_argument("count", type=int)
    parser.add_argument("--format", default="float32")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    format = formats.get(arguments.format)
    x = inputs(arguments.function, format, arguments.count, arguments.seed)
    different, uncertified, tally = compare(arguments.function, x, format)
    truth = "MPFR" if arguments.function in MPFR else "Arb"
    print(
        f"{arguments.function} {format}: {x.size} inputs, {different.size} differ from {truth}, "
        f"{uncertified} not certified; answered by tier: {tally}"
    )
    for value in different[:10].astype(np.float64):
        print("   ", float(value).hex())
    sys.exit(1 if different.size or uncertified else 0)


if __name__ == "__main__":
    main()
