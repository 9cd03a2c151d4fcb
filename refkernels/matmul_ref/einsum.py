"""Sums of products by an equation: einsum of two or three operands.

    "ij,jk->ik"    y_ik = Σ_j a_ij b_jk            "bqd,bkd->bqk", "i,j->ij", "...i,...i->..."

A kernel of three operands may multiply any two of them first, or all at once. Letters that only one
operand has, and y has not, are summed before.

Source: NumPy documentation, `numpy.einsum`.
"""

from __future__ import annotations

import math
import re
from functools import partial, reduce
from typing import Any

from refkernels.arguments import as_text
from refkernels.op import Direction
from refkernels.ops import Prepared, formula_op
from refkernels.ops.cases import drawn, listed, with_specials
from refkernels.ops.letters import Signature

Term = tuple[Any, str]  # a value and the letters of its axes after the rows
LARGEST = 1 << 22  # products of three operands, which a kernel may form at once
_EQUATION = re.compile(r"((?:\.\.\.)?[A-Za-z]*,){1,2}(\.\.\.)?[A-Za-z]*->(\.\.\.)?[A-Za-z]*")


def prepare(inputs: dict[str, Any], params: dict[str, Any], direction: Direction) -> Prepared:
    """The equation's own signature. Raises ValueError where it is not one of these arrays."""
    text = as_text(params["equation"], "equation").replace(" ", "")
    present = [name for name in "abc" if inputs.get(name) is not None]
    *terms, result = text.replace("->", ",").split(",")
    if not _EQUATION.fullmatch(text) or len(terms) != len(present):
        raise ValueError(
            f"equation is {text!r}: it must be that of {len(present)} operands and their result, "
            "such as ij,jk->ik."
        )
    letters = [term.replace("...", "") for term in (*terms, result)]
    repeated = any(len(set(own)) < len(own) for own in letters)
    if repeated or not set(letters[-1]) <= set("".join(letters[:-1])):
        raise ValueError(f"equation is {text!r}: a term has a letter once, and y no other letters.")
    shown = [f"[{' '.join(['...'] * (term[:1] == '.') + [*own])}]" for term, own in
             zip((*terms, result), letters, strict=True)]  # fmt: skip
    takes = ", ".join(
        f"{name}{own}" for name, own in zip("abc", [*shown[:-1], "[]?"], strict=False)
    )
    signature = Signature.parse(f"{takes} -> y{shown[-1]}")
    lengths = {x: n for name, own in zip(present, letters, strict=False)
               for x, n in zip(own[::-1], inputs[name].shape[::-1], strict=False)}  # fmt: skip
    if len(present) > 2 and math.prod(lengths.values()) > LARGEST:
        raise ValueError(f"{text} has {math.prod(lengths.values())} products: at most {LARGEST}.")
    if direction == "backward":
        signature = signature.backward({"dy": "y"}, {f"d{name}": name for name in "abc"})
    return Prepared(inputs, {"terms": tuple(letters)}, signature=signature)


def _arranged(xp: Any, term: Term, groups: tuple[str, ...]) -> Any:
    """The value with its letters in these groups, each one axis."""
    value, own = term
    letters = "".join(groups)
    value = xp.transpose(value, (0, *(1 + own.index(x) for x in letters)))
    lengths = dict(zip(letters, value.shape[1:], strict=True))
    joined = (math.prod(lengths[x] for x in group) for group in groups)
    return xp.reshape(value, (value.shape[0], *joined))


def _without(xp: Any, term: Term, kept: str) -> Term:
    """The sum over the letters that are not kept."""
    value, own = term
    if not (summed := "".join(x for x in own if x not in kept)):
        return term
    rest = "".join(x for x in own if x in kept)
    lengths = [value.shape[1 + own.index(x)] for x in rest]
    total = xp.sum(_arranged(xp, term, (rest, summed)))
    return xp.reshape(total, (value.shape[0], *lengths)), rest


def _product(xp: Any, kept: str, a: Term, b: Term) -> Term:
    """One product of matrices, with the letters that are kept."""
    a, b = (_without(xp, one, kept + other[1]) for one, other in ((a, b), (b, a)))
    both = "".join(x for x in a[1] if x in b[1] and x in kept)
    summed = "".join(x for x in a[1] if x in b[1] and x not in kept)
    rows, columns = ("".join(x for x in one if x not in other) for one, other in
                     ((a[1], b[1]), (b[1], a[1])))  # fmt: skip
    lengths = {x: term[0].shape[1 + k] for term in (a, b) for k, x in enumerate(term[1])}
    left, right = _arranged(xp, a, (both, rows, summed)), _arranged(xp, b, (both, summed, columns))
    y = xp.matmul(left, right)
    letters = both + rows + columns
    return xp.reshape(y, (y.shape[0], *(lengths[x] for x in letters))), letters


def _in_order(order: str, xp: Any, terms: tuple[str, ...], **operands: Any) -> Any:
    """Two operands, or three, of which the first two of `order` meet first."""
    of = {name: (operands[name], own) for name, own in zip("abc", terms[:-1], strict=False)}
    found = [of[name] for name in order if name in of]
    while len(found) > 1:
        kept = terms[-1] + "".join(own for _, own in found[2:])
        found[:2] = [_product(xp, kept, *found[:2])]
    value, own = _without(xp, found[0], terms[-1])
    return xp.transpose(value, (0, *(1 + own.index(x) for x in terms[-1])))


def _at_once(xp: Any, terms: tuple[str, ...], **operands: Any) -> Any:
    """The sum of all products, of three factors."""
    if len(terms) < 4:
        return _in_order("abc", xp, terms, **operands)
    letters = "".join(dict.fromkeys(terms[-1] + "".join(terms)))
    factors = []
    for name, own in zip("abc", terms[:-1], strict=False):
        inside = "".join(x for x in letters if x in own)
        value = _arranged(xp, (operands[name], own), tuple(inside))
        lengths = iter(value.shape[1:])
        shape = (value.shape[0], *(next(lengths) if x in own else 1 for x in letters))
        factors.append(xp.reshape(value, shape))
    product = reduce(xp.multiply, factors)
    shape = product.shape[: 1 + len(terms[-1])]
    return xp.reshape(xp.sum(xp.reshape(product, (*shape, -1))), shape)


_CASES = listed(
    "einsum",
    *(
        (regime, {"of": of}, drawn(dy=y, a=a, b=b, **c), {"equation": of})
        for regime, of, y, a, b, c in (
            ("product", "ij,jk->ik", (5, 7), (5, 33), (33, 7), {}),
            ("attention", "bqhd,bkhd->bhqk", (2, 3, 5, 7), (2, 5, 3, 16), (2, 7, 3, 16), {}),
            ("attention", "bhqk,bkhd->bqhd", (2, 5, 3, 6), (2, 3, 5, 17), (2, 17, 3, 6), {}),
            ("rows", "...i,ij->...j", (4, 3, 5), (4, 3, 8), (8, 5), {}),
            ("outer", "i,j->ij", (9, 8), (9,), (8,), {}),
            ("inner", "ijk,ijk->", (), (5, 6, 7), (5, 6, 7), {}),
            ("one_sided", "ijk,l->il", (4, 3), (4, 5, 6), (3,), {}),
            ("three", "bi,ij,bj->b", (5,), (5, 6), (6, 7), {"c": (5, 7)}),
            ("three", "ij,jk,kl->il", (3, 5), (3, 8), (8, 6), {"c": (6, 5)}),
            ("invariance", "...ik,...kj->...ij", (37, 2, 3), (37, 2, 9), (37, 9, 3), {}),
        )
    ),
    ("specials", {}, with_specials(drawn(dy=(4, 3), a=(4, 5), b=(5, 3)), a=math.inf, b=math.nan)),
)
EINSUM = formula_op(
    "einsum",
    "a[... i k], b[... k j], c[...]? -> y[... i j]",
    params={"equation": "...ik,...kj->...ij"},
    prepare=prepare,
    forms={
        "in_order": partial(_in_order, "abc"),
        "last_first": partial(_in_order, "bca"),
        "outer_first": partial(_in_order, "acb"),
        "at_once": _at_once,
    },
    cases=_CASES,
)
