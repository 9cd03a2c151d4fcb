"""Fused kernels as the calls of their formulas: what two programs do inside can be compared then.

    attention           S = Q Kᵀ · scale, masked;  P = softmax(S);  O = P V
    grouped products    of the rows, or columns, of each group (an expert's tokens)
    others              those that torch itself decomposes, where the programs part there

A fused kernel's own intermediate results are nowhere; some have no float64, and the exponentials of
others are float32's even where their inputs are float64's.
"""

import copy
import math

import edits
import in_torch
import torch
from in_torch import TensorNumber as Tensor
from in_torch import is_view
from torch._decomp import decomposition_table
from torch.utils._pytree import tree_flatten, tree_map

FUSED = "scaled_dot_product_attention"
ATTENTION, BACKWARD = "_scaled_dot_product_", "_backward"


def formula(query, key, value, mask, is_causal, scale):
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
    return scores.softmax(-1) @ value


class Recorder(in_torch.tracer(torch)):
    """Records the calls that are made within it, of known values only."""

    def __init__(self, leaves):
        super().__init__(self._refused, leaves=leaves)

    def _refused(self, key, value):
        raise KeyError(key)


def unfused(call, entered):
    """The calls that a call consists of: itself, or those of its formula. `entered`: the value of a
    number, in float64."""
    name = call.function._schema.name.split("::")[1]
    items = [item for item in (*call.args, *call.kwargs.values()) if isinstance(item, Tensor)]
    if name == "_grouped_mm" and len(items) == 3:
        values = [entered(item.number).detach() for item in items]
        return parts(call, values, items, lambda: [in_torch.grouped(*values)])
    return attention_parts(call, entered) if name.startswith(ATTENTION) else [call]


def attention_parts(call, entered):
    backward = BACKWARD in call.name
    given = {name: value for _, name, value in edits.arguments(call)}
    if given.get("dropout_p"):
        return [call]
    tensors = {
        word: entered(item.number)
        .detach()
        .requires_grad_(backward and word in ("query", "key", "value"))
        for word in ("query", "key", "value", "attn_mask", "attn_bias", "grad_out", "grad_out_")
        if isinstance(item := given.get(word), Tensor)
    }
    inputs = [tensors[word] for word in ("query", "key", "value")]
    mask = tensors.get("attn_mask", tensors.get("attn_bias"))

    def made():
        with torch.set_grad_enabled(backward):
            result = formula(*inputs, mask, bool(given.get("is_causal")), given.get("scale"))
            if not backward:
                return [result]
            cotangent = tensors.get("grad_out", tensors.get("grad_out_"))
            return list(torch.autograd.grad(result, inputs, cotangent))

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
    try:
        made = parts(
            call, values.values(), items, lambda: tree_flatten(formula(*args, **kwargs))[0]
        )
    except (RuntimeError, TypeError, AttributeError, KeyError, AssertionError):
        return [call]
    return made if len({one.word for one in made if not is_view(one.function)}) > 1 else [call]


def parts(call, values, items, made):
    """The calls that `made` makes its results by, of `values`, which the call knows as `items`."""
    with Recorder([(item.number, value) for value, item in zip(values, items)]) as trace:
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
    part.takes(one.function, *tree_map(name, (one.args, one.kwargs)))
    return part
