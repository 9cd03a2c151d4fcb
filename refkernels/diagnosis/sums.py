"""Sums of products replayed: in which order, with which inputs, in which accumulator.

A sample of elements is replayed in every order first; all elements only where the sample has the
kernel's bits. The orders that add the bias last come first: another place for it is a cause only
where its bits tell it from them.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np

from refkernels.arithmetic import formats
from refkernels.diagnosis import evidence, orders, products
from refkernels.diagnosis.fit import Fit
from refkernels.diagnosis.hypothesis import Candidate
from refkernels.diagnosis.orders import Order
from refkernels.diagnosis.problem import Array, Arrays, Problem
from refkernels.diagnosis.products import Product
from refkernels.diagnosis.summation import replay
from refkernels.diagnosis.variants.precision import CAUSES, rounded

_SIDE = 8  # rows and columns of the sample
_SHORT = 8  # orders that are tried for inputs of another precision where nothing is wrong


@dataclass(frozen=True)
class _Asked:
    """The product that a kernel may have computed, `right` the one it should have, where that is
    another one, and the cause that this would be."""

    cause: str
    product: Product
    right: Product | None = None
    details: dict[str, object] = field(default_factory=dict)


@dataclass(frozen=True)
class _Sum:
    """One product of an output, what the kernel said, and the sample of it."""

    product: Product
    got: Array  # (M, N)
    rows: Array
    columns: Array

    @property
    def sample(self) -> Product:
        whole = self.product
        bias = None if whole.bias is None else whole.bias[self.columns]
        a, b = whole.a[self.rows], np.ascontiguousarray(whole.b[:, self.columns])
        return Product(a, b, bias, (len(a), b.shape[1]))

    @property
    def sampled(self) -> Array:
        return np.asarray(self.got[np.ix_(self.rows, self.columns)])


def find(problem: Problem, outputs: Arrays, fits: dict[str, Fit]) -> list[Candidate]:
    """The orders of summation that have a kernel's bits; the best of those that do not."""
    found: list[Candidate] = []
    for name, got in outputs.items():
        product = products.of(problem, name)
        if product is None or not np.isfinite(got).any():
            continue
        found += _of(problem, product, got, fits[name])
    return found


def _of(problem: Problem, product: Product, got: Array, truth: Fit) -> Iterator[Candidate]:
    asked = _Asked("summation_order", product)
    candidate = _ordered(asked, got, truth)
    if candidate is not None:
        yield candidate
    if problem.format.name != "float32" or (candidate is not None and candidate.share == 1.0):
        return
    for cause, format in CAUSES.items():
        narrow = replace(product, a=rounded(product.a, format), b=rounded(product.b, format))
        if np.array_equal(narrow.a, product.a) and np.array_equal(narrow.b, product.b):
            continue
        short = _SHORT if truth.ordinary else None
        other = _ordered(_Asked(cause, narrow, product, {"format": format}), got, truth, short)
        if other is not None and not other.ruled_out:
            yield other
            return


def _sum(product: Product, got: Array) -> _Sum:
    """The sample: rows and columns spread over the whole, the first and the last among them."""
    m, n = len(product.a), product.b.shape[1]
    sides = [
        np.unique(np.linspace(0, size - 1, min(size, side)).astype(int))
        for size, side in ((m, _SIDE if n > 1 else 64), (n, _SIDE if m > 1 else 64))
    ]
    return _Sum(product, got.reshape(m, n), *sides)


def _ordered(asked: _Asked, got: Array, truth: Fit, most: int | None = None) -> Candidate | None:
    """The first order with all bits, or the one with most bits of the sample, ruled out."""
    product = asked.product
    bias = product.bias is not None and bool(np.any(product.bias))
    one = _sum(product, got)
    best: Candidate | None = None
    for order in itertools.islice(orders.candidates(product.terms, bias), most):
        equal = evidence.same(one.sampled, run(order, one.sample, got))
        if best is None or equal.mean() > best.share:
            best = Candidate(
                asked.cause,
                truth.output,
                None,
                int(np.count_nonzero(equal)),
                equal.size,
                details={**asked.details, "sampled": True},
                model=order.name,
            )
        if equal.all():
            candidate = _whole(asked, order, got, truth)
            if candidate.equal == candidate.elements:
                return candidate
    return best


def _whole(asked: _Asked, order: Order, got: Array, truth: Fit) -> Candidate:
    """One order on all elements. Where few elements tell it from the bias added last, it is an
    order like any other; where few tell rounded inputs from the right ones, these are no cause."""
    cause, enough = asked.cause, True
    model = run(order, asked.product, got).reshape(got.shape)
    if asked.right is not None:
        right = run(order, asked.right, got).reshape(got.shape)
        enough = evidence.telling(model, right) >= evidence.TELLING
    elif order.bias in ("first", "start"):
        last = run(order.bias_last, asked.product, got).reshape(got.shape)
        if evidence.telling(model, last) >= evidence.TELLING:
            cause = "bias_first"
    details = {**asked.details, "order": order.products, "bias": order.bias}
    return evidence.reproduced(cause, truth, got, model, order.name, details, enough)


def run(order: Order, product: Product, got: Array) -> Array:
    """The product in that order, (M, N), in the format of what the kernel said. Formats narrower
    than float32 are summed in float32 and rounded at the end."""
    format = formats.of(got)
    kind = np.float64 if format.name == "float64" else np.float32
    a, b = product.a.astype(kind), product.b.astype(kind)
    if order.bias:
        assert product.bias is not None
        a = np.hstack([a, np.ones((len(a), 1), kind)])
        b = np.vstack([b, product.bias.astype(kind)])
    with np.errstate(over="ignore", invalid="ignore"):
        return replay(order.tree, a, b).astype(format.storage)
