"""Any op's output as a sum of products: out = A B (+ bias).

The op gives the index letters of its factors (`op.Sum`): c = a b · y = x weight^T + bias ·
da = dc b^T · db = a^T dc · dx = dy weight · dweight = dy^T x · dbias = 1^T dy. Leading axes
that only one factor has are rows like any other.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from refkernels.diagnosis.problem import Array, Problem
from refkernels.op import Sum


@dataclass(frozen=True)
class Product:
    """a (M, K), b (K, N), bias (N,) or None."""

    a: Array
    b: Array
    bias: Array | None

    @property
    def terms(self) -> int:
        """K: the number of products in an element's sum."""
        return int(self.a.shape[1])


def of(problem: Problem, output: str) -> Product | None:
    """The product that gives an output; None for other ops, for batches of both factors, and for
    empty sums. A plain sum is a product with ones."""
    if problem.op.total == "sum" and (x := summed(problem)) is not None and 0 not in x.shape:
        return Product(x, np.ones((x.shape[1], 1), x.dtype), None)
    product = problem.op.sums.get(output)
    if product is None or not _are_matrices(problem, product):
        return None
    row, column = product.letters[:-1], product.letters[-1]
    a, b, bias = None, None, None
    for name, letters in product.terms.items():
        array = problem.inputs.get(name)
        if letters == column:
            bias = array
        elif array is None:
            return None
        elif row and row in letters:
            a = _matrix(array, transposed=letters[0] != row)
        else:
            b = _matrix(array, transposed=letters[0] == column)
    assert b is not None
    if a is None:  # a sum over rows
        a = np.ones((1, len(b)), b.dtype)
    elements = math.prod(problem.truth.reference[output].shape)
    if 0 in a.shape or 0 in b.shape or len(a) * b.shape[1] != elements:
        return None
    return Product(np.ascontiguousarray(a), np.ascontiguousarray(b), bias)


def summed(problem: Problem) -> Array | None:
    """The terms (M, K) of an op's sums or means of x, over whatever axes."""
    if not problem.op.total or problem.op.formulas is None or problem.direction == "backward":
        return None
    return problem.op.formulas.question("forward", problem.inputs, problem.params).arrays["x"]


def _are_matrices(problem: Problem, product: Sum) -> bool:
    """Whether every input of the op is a matrix, apart from leading axes of rows."""
    by_rows = (*problem.op.row_inputs, problem.op.cotangent)
    for output in (product, problem.op.sums[problem.op.outputs[0]]):
        for name, letters in output.terms.items():
            axes = problem.inputs[name].ndim if name in problem.inputs else len(letters)
            if axes < len(letters) and not output.rows:
                return False
            if axes > len(letters) and name not in by_rows:
                return False
    return True


def _matrix(array: Array, transposed: bool) -> Array:
    rows = array.reshape(math.prod(array.shape[:-1]), array.shape[-1])
    return rows.T if transposed else rows
