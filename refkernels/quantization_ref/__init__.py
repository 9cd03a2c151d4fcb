"""Casts, quantizers and dequantizers of narrow formats, certified.

    cast(x, to="float8_e4m3fn", ...)              -> Enclosure
    quantize(x, scale, zero_point=None, ...)      -> Enclosure
    dequantize(x, scale, zero_point=None)         -> Enclosure
    block_quantize(x, block=None, ...)            -> Quantized(y, scale)

Each answer is a number of the narrow format: a kernel may give it in that format, or in any format
that holds it. `formulas` holds the formulas; `OPS` lists the ops.
"""

from __future__ import annotations

from typing import NamedTuple

from refkernels.arithmetic.enclosure import Enclosure
from refkernels.ops import formula_op
from refkernels.ops.public import enclosure_of, enclosures_of, public_names
from refkernels.quantization_ref import cases, formulas

OPS = (
    formula_op(
        "cast",
        "x[...], draws[...]? -> y[...]:low",
        params={"to": "float8_e4m3fn", "ties": "even", "overflow": "special"},
        prepare=formulas.prepare_cast,
        forms={"rounded": formulas.cast},
        gradients=(),
        cases=cases.cast_cases,
    ),
    formula_op(
        "quantize",
        "x[...], scale[...]:low, zero_point[...]?:int -> y[...]:low",
        params={"to": "int8", "ties": "even"},
        prepare=formulas.prepare_quantize,
        forms={"rounded": formulas.quantize},
        gradients=(),
        spread=True,
        cases=cases.quantize_cases,
    ),
    formula_op(
        "dequantize",
        "x[...]:low, scale[...]:low, zero_point[...]?:int -> y[...]",
        prepare=formulas.prepare_dequantize,
        forms={"offset_first": formulas.offset_first, "offset_after": formulas.offset_after},
        gradients=(),
        spread=True,
        cases=cases.dequantize_cases,
    ),
    formula_op(
        "block_quantize",
        "x[... b], tensor_scale[...]? -> y[... b]:low, scale[... 1]:low",
        "b",
        params={
            "to": "float8_e4m3fn", "block": None, "scales": "float32", "rule": "nearest",
            "eps": 0.0,
        },
        prepare=formulas.prepare_blocks,
        forms={"rounded": formulas.blocks},
        faults=formulas.OTHER_RULES,
        gradients=(),
        cases=cases.block_cases,
    ),
    formula_op(
        "table_quantize",
        "x[... b], table[t] -> y[... b]:low, scale[...]",
        "b",
        prepare=formulas.prepare_table,
        forms={"nearest": formulas.by_table},
        faults=(formulas.CODED_DOWN,),
        gradients=(),
        cases=cases.table_cases,
    ),
)  # fmt: skip
__all__ = ["OPS", "Quantized", *public_names(OPS)]
_enclosure = enclosure_of(OPS)


class Quantized(NamedTuple):
    """y has x's shape, scale one number for each block."""

    y: Enclosure
    scale: Enclosure


@_enclosure
def cast() -> None:
    """y = the number of the format `to` that x is rounded to, element by element.

    x           float16, bfloat16, float32 or float64 (NumPy, DLPack, `__array__`)
    draws       of x's shape, from [0, 1): stochastic rounding, upward where a draw is less than x's
                place between its neighbours; none by default
    to          a dtype of NumPy or `ml_dtypes`: float8_e4m3fn, float8_e5m2, float8_e4m3fnuz,
                float6_e2m3fn, float4_e2m1fn, float8_e8m0fnu, bfloat16, int8, uint8, int4, ...
    ties        to the nearest, of two the "even" one, the one "away" from zero or the upper one
                ("half_up"); or toward "zero", "down" or "up"
    overflow    "special": numbers beyond the format become its infinity, or NaN where it has none;
                "saturate", and of integers: its largest number, infinities too

    Integers have no NaN, which becomes 0. The bound is 0 but for the rounding to the format in
    which y is given; a kernel may give y in `to` itself. Raises TypeError for other dtypes,
    ValueError for shapes that differ and for another format. Sources: Micikevicius et al. (2022),
    arXiv:2209.05433; Croci et al. (2022), doi:10.1098/rsos.211631.
    """


@_enclosure
def quantize() -> None:
    """y = clip(round(x / scale) + zero_point) to the integers of `to`, or x / scale rounded to a
    format of floats, with saturation.

    x           float16, bfloat16, float32 or float64
    scale       one number, or one for each row or block: each of its axes, the last ones of x, has
                length 1 or a divisor of x's; floats, or float8 numbers
    zero_point  whole numbers, arranged as scale; none by default

    The bound is proven for x / scale and x (1 / scale): it is 0, or one step of the format where a
    kernel's own rounding may carry the quotient over a tie. Otherwise as `cast`. Source: Jacob et
    al. (2018), arXiv:1712.05877.
    """


@_enclosure
def dequantize() -> None:
    """y = (x - zero_point) scale; x float8, float6, float4, int8, int4 or any format of floats.

    scale and zero_point are arranged as in `quantize`. The bound is proven for (x - zero_point)
    scale and for x scale - zero_point scale. Otherwise as `quantize`. Source: Jacob et al. (2018),
    arXiv:1712.05877.
    """


_quantized = enclosures_of(OPS, Quantized)


@_quantized
def block_quantize() -> None:
    """scale = round(max(max |x|, eps) / M) to the format `scales`, y = x / scale rounded to `to`,
    for each block of the last axis; M is the largest number of `to`.

    x             float16, bfloat16, float32 or float64
    tensor_scale  a scale of all blocks, by which x is divided as well (NVFP4); none by default
    block         how many elements of the last axis are a block: all by default
    scales        the format of the scales
    rule          "nearest": the scale is rounded to the nearest; "ceil": up; "floor": toward zero,
                  and M is the largest power of two of `to`

    MXFP8, MXFP6 and MXFP4 are block=32, scales="float8_e8m0fnu", rule="floor". NVFP4 is
    to="float4_e2m1fn", block=16, scales="float8_e4m3fn". A block whose scale is 0 has y = 0. The
    bound is that of `quantize`, also for the scale. Otherwise as `cast`. Source: Rouhani et al.
    (2023), OCP Microscaling Formats (MX) Specification 1.0.
    """


@_quantized
def table_quantize() -> None:
    """(y, scale): scale = max |x| and y, the place of the number of a table nearest to x / scale.

    x        blocks of numbers, (..., b): QLoRA has b = 64, bitsandbytes' states b = 256
    table    numbers in any order: of NF4, of FP4, of codes of 8 bits

    `dequantize(table[y], scale[..., None])` undoes it. Of two numbers that are equally near, the
    lesser is taken. The bound is that of `quantize`: 0, or where a kernel's roundings may carry
    x / scale over the middle between two numbers, how far apart their places are. Otherwise as
    `cast`. Source: Dettmers et al. (2023), arXiv:2305.14314.
    """
