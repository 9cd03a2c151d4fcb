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
from refkernels.ops import Fault, Prepared
from refkernels.ops.cases import Arrays, listed
from refkernels.optimizer_ref import formulas
from refkernels.quantization_ref import formulas as quantizers

STATES = ("m", "v")
SIGNATURE = (
    "param[... b], grad[... b], m[... b]:int, v[... b]:int, m_scale[...], v_scale[...], "
    "m_table[t], v_table[u] -> param[... b], m[... b]:low, v[... b]:low, m_scale[...], v_scale[...]"
)


def prepare(uncoded: Any, inputs: dict[str, Any], params: Any, direction: Direction) -> Prepared:
    """The codes, checked, and the places of the tables' numbers in order."""
    ready = uncoded({n: inputs[n] for n in ("param", "grad", *STATES)}, params, direction)
    more = {}
    for name in STATES:
        codes, table = inputs[name], inputs[f"{name}_table"]
        more[f"{name}_places"] = quantizers.places(table, f"{name}_table")
        if ((codes < 0) | (codes >= len(table))).any():
            raise ValueError(f"{name} holds numbers that are no places in a table of {len(table)}.")
    return Prepared(inputs, {**ready.params, **more})


def coded(
    formula: Any, xp: Any, param: Any, grad: Any, code: Any = quantizers.by_table, **arguments: Any
) -> Any:
    """The step of an optimizer, its states decoded before and coded after."""
    tables, old = {}, {}
    for name in STATES:
        codes, scale = arguments.pop(name), arguments.pop(f"{name}_scale")
        tables[name] = arguments.pop(f"{name}_table"), arguments.pop(f"{name}_places")
        numbers = xp.reshape(xp.take(tables[name][0], codes, axis=-1), codes.shape)
        old[name] = numbers * xp.reshape(scale, (*scale.shape, 1))
    moved, *new, _ = formula(xp, param=param, grad=grad, **old, **arguments)
    pairs = zip(new, tables.values(), strict=True)
    codes, scales = zip(*(code(xp, x, *table) for x, table in pairs), strict=True)
    return moved, *codes, *scales


_DOWN = partial(
    coded, partial(formulas.adamw, way=None), code=partial(quantizers.by_table, down=True)
)
CODED_DOWN = Fault(
    "rounded_otherwise",
    _DOWN,
    details={"rounding": "down", "own": "even", "formula": "m / m_scale, v / v_scale"},
)


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
    ("later", {"step": 7}, partial(_coded, 3, 32), {"step": 7, "weight_decay": 0.1}),
    ("invariance", {"rows": 37}, partial(_coded, 37, 8)),
    directions=("forward",),
)
