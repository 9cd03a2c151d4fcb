"""Replays sums of products in every order.

Every order replays a sample of elements first. The orders that add the bias last come first:
another place for the bias is a cause only where its bits differ from theirs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from refkernels.arithmetic import formats
from refkernels.diagnosis import evidence, orders, products
from refkernels.diagnosis.fit import Fit
from refkernels.diagnosis.hypothesis import ORDER, Claim, Outcome, Prediction
from refkernels.diagnosis.orders import Order
from refkernels.diagnosis.problem import Array, Arrays, Problem
from refkernels.diagnosis.products import Product
from refkernels.diagnosis.summation import replay

_SIDE = 8  # rows and columns of the sample
_NAMED = 8  # reported orders that reproduce all bits


class SampledSum(NamedTuple):
    """The product of an output, the kernel's answer, and those of the sample."""

    product: Product
    got: Array  # (M, N)
    rows: Array
    columns: Array
    sample: Product
    sampled: Array


def find(problem: Problem, outputs: Arrays, fits: Mapping[str, Fit]) -> Iterator[Claim]:
    """The orders of summation that have a kernel's bits; where none has, the nearest."""
    for name, got in outputs.items():
        product = products.of(problem, name)
        if product is not None and np.isfinite(got).any():
            yield from _ordered(product, got, name)


def _exact(claim: Claim, got: Array) -> bool:
    bits = claim.prediction.bits
    return bits is not None and bool(evidence.same(got, bits).all())


def sampled(product: Product, got: Array) -> SampledSum:
    """The sum and its sample: rows and columns spread over the whole, first and last included."""
    m, n = len(product.a), product.b.shape[1]
    rows, columns = (
        np.unique(np.linspace(0, size - 1, min(size, side)).astype(int))
        for size, side in ((m, _SIDE if n > 1 else 64), (n, _SIDE if m > 1 else 64))
    )
    a, b = product.a[rows], np.ascontiguousarray(product.b[:, columns])
    sample = Product(a, b, product.bias if product.bias is None else product.bias[columns])
    whole = got.reshape(m, n)
    return SampledSum(product, whole, rows, columns, sample, whole[np.ix_(rows, columns)])


def _ordered(product: Product, got: Array, output: str) -> list[Claim]:
    """The orders that have all bits; where none has, the order nearest on the sample, ruled out."""
    bias = product.bias is not None and bool(np.any(product.bias))
    sampled_sum = sampled(product, got)
    misses: dict[bytes, tuple[float, Order]] = {}
    claims: list[Claim] = []
    tried = 0
    for order in orders.candidates(product.terms, bias):
        tried += 1
        model = run(order, sampled_sum.sample, got)
        share = float(evidence.same(sampled_sum.sampled, model).mean())
        if share < 1.0:
            misses.setdefault(model.tobytes(), (share, order))
        elif len(claims) < _NAMED:
            claims += _replayed(product, order, got, output)
    claims = [claim for claim in claims if _exact(claim, got)] or claims[:1]
    shares = [share for share, _ in misses.values()]
    alike = [evidence.agreement(shares, count) for count in (1, got.size)]
    if not claims and misses:
        share, order = max(misses.values(), key=lambda pair: pair[0])
        outcome = Outcome(False, round(share * sampled_sum.sampled.size), sampled_sum.sampled.size)
        claims = [Claim(ORDER, output, Prediction(outcome=outcome), {"sampled": True}, order.name)]
    claims = [claim.beside(alike[claim.prediction.against is None]) for claim in claims]
    return [replace(claim, trials=0 if k else tried) for k, claim in enumerate(claims)]


def _replayed(product: Product, order: Order, got: Array, output: str) -> list[Claim]:
    """One order on all elements. Where it adds the bias earlier than last, and the bits show it,
    there is a second claim, of that cause."""
    model = run(order, product, got).reshape(got.shape)
    details = {"order": order.products, "bias": order.bias}
    claims = [Claim(ORDER, output, Prediction(bits=model), details, order.name)]
    if order.bias in ("first", "start") and _exact(claims[0], got):
        last = run(order.bias_last, product, got).reshape(got.shape)
        if evidence.apart(model, last):
            early = Prediction(bits=model, against=last)
            claims.append(Claim("bias_first", output, early, details, order.name))
    return claims


def run(order: Order, product: Product, got: Array) -> Array:
    """The product in that order, (M, N), in the format of the kernel's answer. Formats narrower
    than float32 are summed in float32 and rounded at the end."""
    format = formats.of(got)
    kind = np.float64 if format.name == "float64" else np.float32
    with np.errstate(over="ignore", invalid="ignore"):
        a, b = product.a.astype(kind), product.b.astype(kind)
        if order.bias:
            assert product.bias is not None
            a = np.hstack([a, np.ones((len(a), 1), kind)])
            b = np.vstack([b, product.bias.astype(kind)])
        return replay(order.tree, a, b).astype(format.storage)
