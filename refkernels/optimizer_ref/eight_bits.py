"""AdamW whose states are codes of 8 bits, block by block: places in a table of numbers, beside the
largest magnitude of the block.

    m = m_table[code_m] scale_m,  v = v_table[code_v] scale_v,  (w', m', v') as `adamw` has them,
    scale' = max |m'|,  code' = the place of the number of m_table nearest to m' / scale'

and v' likewise. w' depends on m' and v' before they become codes.

Source: Dettmers et al. (2022), "8-bit optimizers via block-wise quantization", arXiv:2110.02861.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from refkernels.op import Direction
from refkernels.ops import Prepared
from refkernels.ops.cases import Arrays, listed
from refkernels.optimizer_ref import formulas
from refkernels.quantization_ref.formulas import check_table, coded, looked_up

STATES = ("m", "v")
WAYS = {"torch": 0, "mixture": None}
SIGNATURE = (
    "param[... b], grad[... b], m[... b]:int, v[... b]:int, m_scale[...], v_scale[...], "
    "m_table[t], v_table[u] -> param[... b], m[... b]:low, v[... b]:low, m_scale[... 1], "
    "v_scale[... 1]"
)


def with_numbers(prepare: Any, inputs: dict[str, Any], params: Any, way: Direction) -> Prepared:
    """The states as the numbers of their tables."""
    for name in STATES:
        check_table(inputs[f"{name}_table"], f"{name}_table")
    ready = prepare({name: inputs[name] for name in ("param", "grad", *STATES)}, params, way)
    states = {name: looked_up(inputs[name], inputs[f"{name}_table"]) for name in STATES}

    def restore(name: str, array: Any) -> Any:
        return array[..., 0] if name.endswith("_scale") else array

    return Prepared({**inputs, **states}, ready.params, restore)


def adamw(
    xp: Any, param: Any, grad: Any, m: Any, v: Any, m_scale: Any, v_scale: Any, m_table: Any,
    v_table: Any, **params: Any,
) -> Any:  # fmt: skip
    of_blocks = (xp.reshape(scale, (*scale.shape, 1)) for scale in (m_scale, v_scale))
    old = {name: x * scale for name, x, scale in zip("mv", (m, v), of_blocks, strict=True)}
    moved, *new, _ = formulas.adamw(xp, param, grad, **old, **params)
    kept = [coded(xp, x, table) for x, table in zip(new, (m_table, v_table), strict=True)]
    return moved, *(code for code, _ in kept), *(scale for _, scale in kept)


def _coded(rows: int, b: int, rng: np.random.Generator, dtype: str) -> Arrays:
    """Tables as bitsandbytes' dynamic ones: as many numbers between two powers of two as between
    any others."""
    positive, finer = (
        np.outer(2.0 ** np.arange(-15, 1), np.arange(n + 1, 2 * n + 1) / (2 * n)).reshape(-1)
        for n in (8, 16)
    )
    tables = {"m": np.concatenate([-positive[-2::-1], [0.0], positive]), "v": finer}
    arrays: Arrays = {name: rng.standard_normal((rows, b)) for name in ("param", "grad")}
    for name, table in tables.items():
        arrays[name] = rng.integers(0, 256, (rows, b)).astype(np.uint8)
        arrays[f"{name}_scale"] = rng.uniform(0.5, 2.0, rows)
        arrays[f"{name}_table"] = table
    return arrays


cases = listed(
    "adamw_8bit",
    ("blocks", {"of": 64}, partial(_coded, 5, 64)),
    ("length", {"of": 256}, partial(_coded, 2, 256)),
    ("later", {"step": 7}, partial(_coded, 5, 32), {"step": 7, "weight_decay": 0.1}),
    ("invariance", {"rows": 37}, partial(_coded, 37, 8)),
    directions=("forward",),
)
