"""The formulas of rotary position embedding, and its faults.

    (y_a, y_b) = (x_a cos t - x_b sin t, x_b cos t + x_a sin t),   t = p base^(-2 i / D)

for the pairs i = 0 ... D/2 - 1 of the first D of x's last axis: a, b = i, i + D/2 (`layout` "half":
GPT-NeoX, Llama) or 2 i, 2 i + 1 ("interleaved": GPT-J, RoFormer). The rest of x is unchanged.

The angle is exact, p being an integer. Kernels compute it in float32: the frequency is off by some
roundings, the product by one more, so that t is off by about p 2^-22 base^(-2 i / D) and the bound
grows with the position.

Source: Su et al. (2021), "RoFormer", arXiv:2104.09864.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from refkernels.arithmetic.scalars import as_count
from refkernels.attention_ref.scaling import FrequencyScaling, as_scaling
from refkernels.op import Direction
from refkernels.ops import Fault, Prepared
from refkernels.ops.formula import COMPUTED_IN_FLOAT32

LAYOUTS = ("half", "interleaved")


def prepare(inputs: dict[str, Any], params: dict[str, Any], direction: Direction) -> Prepared:
    """The prepared arrays. Raises ValueError for a dim that x lacks, or that is odd."""
    x, base, layout = inputs["x"], params["base"], params["layout"]
    if not x.ndim:
        raise ValueError("x has shape (): it must be x[... d].")
    d, chosen = x.shape[-1], params["dim"]
    dim = d if chosen is None else as_count(chosen, "dim")
    if dim > d or dim % 2:
        raise ValueError(
            f"x has shape {x.shape}: dim must be an even number of at most {d}, not {dim}."
        )
    if layout not in LAYOUTS:
        raise ValueError(f"layout is {layout!r}: it must be one of {', '.join(LAYOUTS)}.")
    position = inputs["position"]
    if position.size and np.abs(position).max() > 2**53:
        raise ValueError("position has an element beyond 2^53.")
    scaling = as_scaling(params["scaling"], float(base), dim)
    settings = {"base": Fraction(base), "dim": dim, "layout": layout, "scaling": scaling}
    return Prepared(inputs, settings)


def pairs(dim: int, layout: str) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """The places of each pair's first and second elements."""
    if layout == "half":
        return np.arange(dim // 2), np.arange(dim // 2, dim)
    return np.arange(0, dim, 2), np.arange(1, dim, 2)


def _wide(a: Any) -> Any:
    return a


def rotate(
    xp: Any, x: Any, cosine: Any, sine: Any, dim: int, layout: str, keep: Any = _wide
) -> Any:
    """The rotated pairs. `keep` is applied to each product."""
    first, second = pairs(dim, layout)
    unrotated = np.arange(dim, x.shape[-1])
    a, b, beyond = (xp.take(x, indices, axis=-1) for indices in (first, second, unrotated))
    rotated = [
        keep(a * cosine) - keep(b * sine),
        keep(b * cosine) + keep(a * sine),
        beyond,
    ]
    back = np.argsort(np.concatenate([first, second, unrotated]))
    return xp.take(xp.concatenate(rotated), back, axis=-1)


def _exponents(xp: Any, dim: int, of: int | None = None) -> Any:
    """2 i / D."""
    return xp.array(np.arange(0, dim, 2)[None]) / xp.number(of or dim)


def _angles(
    xp: Any,
    position: Any,
    base: Any,
    dim: int,
    scaling: FrequencyScaling | None,
    of: int | None = None,
) -> Any:
    frequency = xp.exp(-(_exponents(xp, dim, of) * xp.log(xp.number(base))))
    frequency = frequency if scaling is None else scaling.frequencies(xp, frequency)
    return xp.array(position) * frequency


def _cosine_and_sine(xp: Any, angles: Any, scaling: FrequencyScaling | None) -> tuple[Any, Any]:
    both = xp.cos(angles), xp.sin(angles)
    if scaling is None:
        return both
    return scaling.magnitude(xp, both[0]), scaling.magnitude(xp, both[1])


def exact(
    xp: Any, x: Any, position: Any, base: Any, dim: int, layout: str,
    scaling: FrequencyScaling | None = None,
) -> Any:  # fmt: skip
    angles = _angles(xp, position, base, dim, scaling)
    return rotate(xp, x, *_cosine_and_sine(xp, angles, scaling), dim, layout)


def tables(
    xp: Any, x: Any, position: Any, base: Any, dim: int, layout: str,
    scaling: FrequencyScaling | None = None,
) -> Any:  # fmt: skip
    """By the frequency 1 / base^(2 i / D), as in Hugging Face's Llama; cosine, sine and their
    products with x are kept in the storage format."""
    frequency = 1 / xp.exp(_exponents(xp, dim) * xp.log(xp.number(base)))
    frequency = frequency if scaling is None else scaling.frequencies(xp, frequency)
    angles = xp.array(position) * frequency
    cosine, sine = map(xp.store, _cosine_and_sine(xp, angles, scaling))
    return rotate(xp, x, cosine, sine, dim, layout, xp.store)


def _turned_back(form: Any, xp: Any, dy: Any, x: Any, position: Any, **params: Any) -> Any:
    """dx is dy, rotated by -t: a kernel has the same angles, and the opposite sign of the sine."""
    return form(xp, x=dy, position=-position, **params)


FORMS = {"exact": exact, "tables": tables}
BACKWARD = {name: partial(_turned_back, form) for name, form in FORMS.items()}


# --- faults -----------------------------------------------------------------------------------


def _other_layout(xp: Any, layout: str, **arguments: Any) -> Any:
    return exact(xp, layout=LAYOUTS[layout == LAYOUTS[0]], **arguments)


def _from_one(xp: Any, position: Any, **arguments: Any) -> Any:
    return exact(xp, position=position + 1, **arguments)


def _usual_base(xp: Any, base: Any, **arguments: Any) -> Any:
    return exact(xp, base=Fraction(10000), **arguments)


def _unscaled(xp: Any, scaling: Any = None, **arguments: Any) -> Any:
    return exact(xp, **arguments)


def _unmagnified(xp: Any, scaling: FrequencyScaling | None = None, **arguments: Any) -> Any:
    """YaRN's frequencies, without its factor of cosines and sines."""
    if scaling is not None and scaling.kind == "yarn":
        scaling = replace(scaling, numbers={**scaling.numbers, "attention_factor": Fraction(1)})
    return exact(xp, scaling=scaling, **arguments)


def _all_divided(xp: Any, scaling: FrequencyScaling | None = None, **arguments: Any) -> Any:
    """All frequencies divided by the factor."""
    scaling = None if scaling is None else FrequencyScaling("linear", scaling.numbers)
    return exact(xp, scaling=scaling, **arguments)


def _of_whole(
    xp: Any, x: Any, position: Any, base: Any, dim: int, layout: str, scaling: Any = None
) -> Any:
    """The exponents are 2 i / d, with d the whole length of x's axis."""
    angles = _angles(xp, position, base, dim, scaling, x.shape[-1])
    return rotate(xp, x, *_cosine_and_sine(xp, angles, scaling), dim, layout)


def _narrow(
    format: str, xp: Any, x: Any, position: Any, base: Any, dim: int, layout: str,
    scaling: FrequencyScaling | None = None,
) -> Any:  # fmt: skip
    """Frequencies, positions, angles, their cosine and sine: each kept in a narrow format."""

    def kept(a: Any) -> Any:
        return xp.narrow(a, format)

    frequency = kept(1 / kept(xp.exp(_exponents(xp, dim) * xp.log(xp.number(base)))))
    frequency = frequency if scaling is None else kept(scaling.frequencies(xp, frequency))
    angles = kept(kept(xp.array(position)) * frequency)
    cosine, sine = map(kept, _cosine_and_sine(xp, angles, scaling))
    return rotate(xp, x, cosine, sine, dim, layout)


def _fault(cause: str, formula: Any, **options: Any) -> Fault:
    return Fault(cause, formula, partial(_turned_back, formula), **options)


# The formats of x in which a right kernel may keep its tables so (form `tables`).
_NARROW = (
    ("float16", ()),
    ("bfloat16", ()),
    ("float32", COMPUTED_IN_FLOAT32),
)
FAULTS = (
    _fault("pairs_of_other_layout", _other_layout),
    _fault("positions_from_one", _from_one),
    _fault("base_ignored", _usual_base),
    _fault("frequencies_of_whole_head", _of_whole),
    _fault("frequencies_unscaled", _unscaled),
    _fault("frequencies_all_divided", _all_divided),
    _fault("yarn_unmagnified", _unmagnified),
    *(
        _fault(f"angles_in_{format}", partial(_narrow, format), unstable=True, right_in=computed)
        for format, computed in _NARROW
    ),
)
