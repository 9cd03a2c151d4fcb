"""The inputs on which attention and rotary embedding are measured, by regime."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from refkernels.op import Case
from refkernels.ops.cases import Arrays, case

Generator = np.random.Generator
Build = Callable[[Generator, str], Arrays]


def attention_cases() -> list[Case]:
    """All cases of attention. Appended, never changed."""
    make = partial(case, "attention")
    return [
        make("small", {"keys": 7}, _drawn((2, 3), 5, 7, 8)),
        make("length", {"keys": 1}, _drawn((2, 3), 5, 1, 8)),
        make("length", {"keys": 64}, _drawn((1, 2), 17, 64, 16)),
        make("length", {"keys": 4096}, _drawn((1, 1), 3, 4096, 16), dtypes=("float32",)),
        *(
            make("logits", {"size": size}, _drawn((1, 2), 7, 33, 16, size))
            for size in (1e-3, 30.0, 1e4)
        ),
        make("scale", {"scale": 1.0, "d": 16}, _drawn((1, 2), 7, 33, 16), {"scale": 1.0}),
        make("values", {"of": "offset", "offset": 1e3}, _offset(1e3)),
        make("causal", {"keys": 9}, _drawn((2, 2), 9, 9, 8), {"causal": "top_left"}),
        make(
            "causal", {"queries": 5, "keys": 9, "corner": "top_left"},
            _drawn((2, 2), 5, 9, 8), {"causal": "top_left"},
        ),
        make(
            "causal", {"queries": 5, "keys": 9, "corner": "bottom_right"},
            _drawn((2, 2), 5, 9, 8), {"causal": "bottom_right"},
        ),
        make("masked", {"of": "additive"}, _additive),
        make("masked", {"of": "bool"}, _half),
        make("masked", {"of": "-inf"}, _infinite),
        make("masked", {"of": "row"}, _whole_row),
        make("lengths", {"keys": 12}, _lengths),
        make("grouped", {"heads": 6, "key_heads": 2}, _drawn((2, 6), 5, 7, 8, key_heads=2)),
        make("grouped", {"heads": 4, "key_heads": 1}, _drawn((2, 4), 5, 7, 8, key_heads=1)),
        make("specials", {}, _specials),
        make(
            "causal", {"keys": 9, "size": 1e4}, _drawn((2, 2), 9, 9, 8, 1e4), {"causal": "top_left"}
        ),
        make("invariance", {"rows": 37, "keys": 11}, _drawn((37, 2), 5, 11, 8)),
        make("masked", {"of": "-10000"}, _finite),
        make("values", {"width": 5}, _drawn((2, 3), 5, 7, 8, width=5)),
        make("combined", {}, _combined, {"causal": "bottom_right", "scale": 0.3}),
        make("masked", {"of": "row 37 of 64"}, _one_row),
        make("softcap", {"softcap": 5.0}, _drawn((1, 2), 7, 13, 16, 30.0), {"softcap": 5.0}),
        make(
            "window", {"left": 3}, _drawn((2, 2), 9, 9, 8),
            {"causal": "top_left", "window": (3, 0)},
        ),
        make("window", {"left": 2, "right": 1}, _drawn((2, 2), 5, 9, 8), {"window": (2, 1)}),
        make("sinks", {"heads": 4}, _with_sinks((2, 4), 5, 7, 8, key_heads=2)),
        make(
            "decode", {"keys": 12}, _with_sinks((2, 4), 1, 12, 8, key_heads=2),
            {"causal": "bottom_right", "window": (7, 0), "softcap": 4.0},
        ),
        make("alibi", {"heads": 4}, _with_slopes, {"causal": "top_left"}),
        make("prefix", {"keys": 9}, _with_prefix, {"causal": "top_left"}),
        make(
            "causal", {"keys": 12, "block": 4}, _drawn((2, 2), 12, 12, 8),
            {"causal": "bottom_right", "causal_block": 4},
        ),
        make("packed", {"sequences": 3}, _packed, {"causal": "bottom_right", "layout": "bshd"}),
        make(
            "paged", {"page": 4}, _paged, {"causal": "bottom_right", "layout": "bshd"},
            directions=("forward",),
        ),
    ]  # fmt: skip


def _drawn(
    leading: tuple[int, ...], m: int, n: int, d: int, size: float = 1.0, *,
    key_heads: int | None = None, width: int | None = None,
) -> Build:  # fmt: skip
    """Scores of about `size`; values of `width` numbers, d by default."""

    def build(rng: Generator, dtype: str) -> Arrays:
        heads = leading if key_heads is None else (*leading[:-1], key_heads)
        root, e = size**0.5, d if width is None else width
        return {
            "dy": rng.standard_normal((*leading, m, e)),
            "q": root * rng.standard_normal((*leading, m, d)),
            "k": root * rng.standard_normal((*heads, n, d)),
            "v": rng.standard_normal((*heads, n, e)),
        }

    return build


_few = _drawn((2, 3), 5, 12, 8)


def _with_sinks(leading: tuple[int, ...], *sizes: int, key_heads: int) -> Build:
    """A sink of each head, some larger than the scores."""

    def build(rng: Generator, dtype: str) -> Arrays:
        arrays = _drawn(leading, *sizes, key_heads=key_heads)(rng, dtype)
        return {**arrays, "sinks": 2.0 * rng.standard_normal(leading[-1])}

    return build


def _with_slopes(rng: Generator, dtype: str) -> Arrays:
    arrays = _drawn((2, 4), 9, 9, 8, key_heads=2)(rng, dtype)
    return {**arrays, "alibi_slopes": np.array([0.5, 0.25, 0.125, 0.0625])}


def _with_prefix(rng: Generator, dtype: str) -> Arrays:
    return {**_drawn((2, 2), 9, 9, 8)(rng, dtype), "prefix": np.array([[3], [6]])}


def _packed(rng: Generator, dtype: str) -> Arrays:
    """The second sequence has one query, and keys before it."""
    arrays = _drawn((4,), 11, 14, 8, key_heads=2)(rng, dtype)
    long = {name: np.swapaxes(array, -2, -3) for name, array in arrays.items()}
    ends = {"cu_seqlens_q": np.array([0, 4, 5, 11]), "cu_seqlens_k": np.array([0, 4, 8, 14])}
    return {**long, **ends}


def _paged(rng: Generator, dtype: str) -> Arrays:
    """Pages of 4 keys, in no order, and two that belong to no sequence."""
    return {
        "q": rng.standard_normal((2, 2, 4, 8)),
        "k": rng.standard_normal((7, 4, 2, 8)),
        "v": rng.standard_normal((7, 4, 2, 8)),
        "block_table": np.array([[5, 1, -1], [0, 6, 3]]),
        "lengths": np.array([6, 11]),
    }


def _offset(offset: float) -> Build:
    """v lies so far from 0 that dp - D cancels."""

    def build(rng: Generator, dtype: str) -> Arrays:
        arrays = _drawn((1, 2), 7, 33, 16)(rng, dtype)
        return {**arrays, "v": offset + arrays["v"]}

    return build


def _additive(rng: Generator, dtype: str) -> Arrays:
    """A bias for each distance, as in ALiBi, and half of the keys at -inf."""
    arrays = _few(rng, dtype)
    distance = np.abs(np.arange(5)[:, None] - np.arange(12)) * -0.25
    return {**arrays, "mask": np.where(rng.random((5, 12)) < 0.5, distance, -np.inf)}


def _half(rng: Generator, dtype: str) -> Arrays:
    keep = rng.random((2, 1, 5, 12)) < 0.5
    keep[..., 0] = True
    return {**_few(rng, dtype), "keep": np.broadcast_to(keep, (2, 3, 5, 12)).copy()}


def _one_row(rng: Generator, dtype: str) -> Arrays:
    """One query among many sees no key, as in padding: it must not change the others' answers."""
    keep = rng.random((1, 1, 64, 12)) < 0.5
    keep[..., 0] = True
    keep[..., 37, :] = False
    return {**_drawn((1, 1), 64, 12, 8)(rng, dtype), "keep": keep}


def _infinite(rng: Generator, dtype: str) -> Arrays:
    """For each query, all keys but one are at -inf."""
    mask = np.full((2, 3, 5, 12), -np.inf)
    np.put_along_axis(mask, rng.integers(0, 12, (2, 3, 5, 1)), 0.0, -1)
    return {**_few(rng, dtype), "mask": mask}


def _finite(rng: Generator, dtype: str) -> Arrays:
    """Half of the keys at -10000, as in BERT; for one query all of them, which hides nothing."""
    mask = np.where(rng.random((2, 1, 5, 12)) < 0.5, 0.0, -1e4)
    mask[..., 0], mask[:, :, 2] = 0.0, -1e4
    return {**_few(rng, dtype), "mask": mask}


def _combined(rng: Generator, dtype: str) -> Arrays:
    """Grouped heads, two kinds of mask, lengths and a causal mask; key 0 always takes part."""
    arrays = _drawn((2, 4), 5, 7, 8, key_heads=2, width=3)(rng, dtype)
    keep = rng.random((2, 4, 5, 7)) < 0.7
    keep[..., 0] = True
    mask = rng.standard_normal((5, 7))
    return {**arrays, "mask": mask, "keep": keep, "lengths": np.array([[4], [7]])}


def _whole_row(rng: Generator, dtype: str) -> Arrays:
    """For one query, no key takes part."""
    keep = rng.random((2, 3, 5, 12)) < 0.5
    keep[..., 0], keep[:, :, 2] = True, False
    return {**_few(rng, dtype), "keep": keep}


def _lengths(rng: Generator, dtype: str) -> Arrays:
    return {**_few(rng, dtype), "lengths": np.array([[4], [12]])}


def _specials(rng: Generator, dtype: str) -> Arrays:
    """NaN and infinities in q, k and v, each in a head of its own."""
    arrays = _drawn((2, 2), 3, 5, 4)(rng, dtype)
    arrays["q"][0, 0, 1, 2] = np.nan
    arrays["k"][0, 1, 2, 0], arrays["v"][1, 0, 4, 1] = np.inf, -np.inf
    arrays["v"][1, 1, 0, 3] = np.nan
    return arrays


def rotary_cases() -> list[Case]:
    """All cases of rotary embedding. Appended, never changed."""
    make = partial(case, "rotary")
    return [
        make("positions", {"from": 0, "d": 8}, _rotated(0, (2, 3), 9, 8)),
        *(
            make("positions", {"from": first, "d": 64}, _rotated(first, (2,), 9, 64))
            for first in (250, 4000, 131000, 1000000)
        ),
        make("interleaved", {"from": 0, "d": 8}, _rotated(0, (2, 3), 9, 8), _INTERLEAVED),
        make("interleaved", {"from": 4000, "d": 64}, _rotated(4000, (2,), 9, 64), _INTERLEAVED),
        make("base", {"base": 5e5, "d": 64}, _rotated(8000, (2,), 9, 64), {"base": 5e5}),
        make("partial", {"dim": 4, "d": 10}, _rotated(100, (2,), 9, 10), {"dim": 4}),
        make("size", {"size": 1e4, "d": 8}, _rotated(100, (2,), 9, 8, 1e4)),
        make("invariance", {"rows": 37, "d": 16}, _rotated(0, (), 37, 16)),
        *(
            make(
                "scaling",
                {"of": of},
                _rotated(8000, (2,), 5, 64),
                {**long, "scaling": json.dumps(scaling)},
            )
            for of, long, scaling in (
                ("linear", {}, {"rope_type": "linear", "factor": 4.0}),
                ("llama3", {"base": 5e5}, _LLAMA3),
                ("yarn", {}, _YARN),
            )
        ),
    ]


_LLAMA3 = {
    "rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
    "original_max_position_embeddings": 8192,
}  # fmt: skip
_YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 4096}


_INTERLEAVED: dict[str, Any] = {"layout": "interleaved"}


def _rotated(first: int, leading: tuple[int, ...], rows: int, d: int, size: float = 1.0) -> Build:
    def build(rng: Generator, dtype: str) -> Arrays:
        shape = (*leading, rows, d)
        return {
            "dy": rng.standard_normal(shape),
            "x": size * rng.standard_normal(shape),
            "position": np.broadcast_to(np.arange(first, first + rows), shape[:-1]).copy(),
        }

    return build
