"""Fused kernels as the calls of their formulas: what two programs do inside can be compared then.

    attention           S = Q Kᵀ · scale, masked;  P = softmax(S);  O = P V
    grouped products    of the rows, or columns, of each group (an expert's tokens)
    a layer's LSTM      the gates of each step
    others              those that torch itself decomposes, where the programs part there

A fused kernel's own intermediate results are nowhere; some have no float64, and the exponentials of
others are float32's even where their inputs are float64's.
"""

import copy
import math
from functools import partial

import edits
import in_torch
import torch
from in_torch import TensorNumber as Tensor
from in_torch import is_view
from torch._decomp import decomposition_table
from torch._decomp.decompositions import one_layer_lstm
from torch.utils._python_dispatch import _disable_current_modes
from torch.utils._pytree import tree_flatten, tree_map

FUSED = "scaled_dot_product_attention"
LAYER, LSTM = "mkldnn_rnn_layer", 2  # and its mode
ATTENTION, BACKWARD = "_scaled_dot_product_", "_backward"


def attention(is_causal, scale, query, key, value, mask):
    """Attention's result; heads of keys may be fewer than those of queries."""
    repeats = query.shape[-3] // key.shape[-3]
    if repeats > 1:
        key, value = (part.repeat_interleave(repeats, -3) for part in (key, value))
    scores = query @ key.mT * (query.shape[-1] ** -0.5 if scale is None else scale)
    if is_causal:
        seen = torch.ones(scores.shape[-2:], dtype=torch.bool, device=query.device).tril()
        scores = scores.masked_fill(~seen, -math.inf)
    if mask is not None and mask.dtype == torch.bool:
        scores = scores.masked_fill(~mask, -math.inf)
    elif mask is not None:
        scores = scores + mask
    with _disable_current_modes():
        blind = bool((scores == -math.inf).all(-1).any())
    if not blind:
        return [scores.softmax(-1) @ value]
    masked = (scores == -math.inf).all(-1, keepdim=True)  # a query that sees no key has 0
    return [scores.masked_fill(masked, 0).softmax(-1).masked_fill(masked, 0) @ value]


def refused(key, value):
    """All values are known."""
    raise KeyError(key)


def lstm(x, w, u, b, d, h, c, reverse):
    """A layer's outputs, and its last h and c; of the steps in the other order, if `reverse`."""
    y, last = one_layer_lstm(x, (h, c), (w, u, b, d), b is not None, reverse)
    return y, *last


def unfused(call, entered):
    """The calls that a call consists of: itself, or those of its formula. `entered`: the value of a
    number, in float64."""
    name = call.function._schema.name.split("::")[1]
    items = [item for item in (*call.args, *call.kwargs.values()) if isinstance(item, Tensor)]
    if name == "_grouped_mm" and len(items) == 3:
        values = [entered(item.number).detach() for item in items]
        return parts(call, values, items, lambda: [in_torch.grouped(*values)])
    given = {name: value for _, name, value in edits.arguments(call)}
    if name.startswith(ATTENTION) and not given.get("dropout_p"):
        words = "query", "key", "value", "attn_mask" if "attn_mask" in given else "attn_bias"
        cotangent = "grad_out_" if "grad_out_" in given else "grad_out"
        formula = partial(attention, bool(given.get("is_causal")), given.get("scale"))
        return through(call, entered, given, words, [cotangent], formula)
    if name.startswith(LAYER) and given["mode"] == LSTM and not given["batch_sizes"]:
        return through(
            call, entered, given, list(given)[:7], ("grad_output", "grad_hy", "grad_cy"),
            partial(lstm, reverse=given["reverse"]),
        )  # fmt: skip
    return [call]


def through(call, entered, given, words, cotangents, formula):
    """The calls of a formula of the arguments `words`; in a backward pass those of its gradients by
    all but a mask, by the cotangents of its results."""
    backward, of = BACKWARD in call.name, [word for word in words if word[:5] != "attn_"]
    tensors = {
        word: entered(item.number).detach().requires_grad_(backward and word in of)
        for word in (*words, *cotangents)
        if isinstance(item := given.get(word), Tensor)
    }
    inputs = [tensors.get(word) for word in words]

    def made():
        with torch.set_grad_enabled(backward):
            results = formula(*inputs)
            if not backward:
                return results
            pairs = [(y, c) for y, c in zip(results, map(tensors.get, cotangents)) if c is not None]
            by = [tensors[word] for word in of]
            return torch.autograd.grad([y for y, _ in pairs], by, [c for _, c in pairs])

    return parts(call, tensors.values(), [given[word] for word in tensors], made)


def decomposed(call, entered):
    """The calls of torch's own decomposition: the call itself where it is one operation."""
    formula = decomposition_table.get(call.function)
    if formula is None or call.fused or call.writes or is_view(call.function):
        return [call]
    values = {number: entered(number).detach() for number in call.numbers}
    args, kwargs = tree_map(
        lambda item: values[item.number] if isinstance(item, Tensor) else item,
        (call.args, call.kwargs),
    )
    items = [Tensor(number) for number in values]
    results = lambda: tree_flatten(formula(*args, **kwargs))[0]  # noqa: E731
    try:
        made = parts(call, values.values(), items, results)
    except (RuntimeError, TypeError, AttributeError, KeyError, AssertionError):
        return [call]
    return made if len({one.word for one in made if not is_view(one.function)}) > 1 else [call]


def parts(call, values, items, made):
    """The calls that `made` makes its results by, of `values`, which the call knows as `items`."""
    leaves = [(item.number, value) for value, item in zip(values, items)]
    with in_torch.tracer(torch)(refused, leaves=leaves) as trace:
        results = made()
    named = dict(trace.leaves)
    named |= {trace.number(value): to for value, to in zip(results, call.results) if to is not None}
    word = call.name.split(".")[1].strip("_") if not call.name.count(ATTENTION) else FUSED
    record = trace.record()
    calls = [in_torch.RecordedCall(0, one, record["places"]) for one in record["calls"]]
    return [part_of(call, word, one, named) for one in calls]


def part_of(call, fused, one, named):
    """A call that a fused one consists of. `named`: the fused one's numbers of tensors."""

    def name(item):
        known = named.setdefault(item.number, object()) if isinstance(item, Tensor) else None
        return item if known is None else Tensor(known)

    part = copy.copy(call)
    part.name, part.fused, part.norms = one.name, fused, [None] * len(one.results)
    part.results = [named.setdefault(number, object()) for number in one.results]
    part.of, part.ends = call, not set(call.results).isdisjoint({*part.results} - {None})
    part.takes(one.function, *tree_map(name, (one.args, one.kwargs)))
    return part
