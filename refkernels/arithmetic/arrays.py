"""What a caller may hand in: NumPy arrays, and whatever speaks DLPack or `__array__`.

Nothing is changed in silence: what no supported dtype holds exactly is refused, and so is what
carries more than numbers (a mask, a radius).
"""

import sys
from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

from refkernels.arithmetic import formats
from refkernels.arithmetic.enclosure import Enclosure
from refkernels.arithmetic.scalars import as_real

MOST_AXES = 32  # what NumPy 1 and Numba can have


def as_float_array(value: Any, name: str) -> npt.NDArray[Any]:
    """`value` as a NumPy array of float16, bfloat16, float32 or float64, on the host.

    Python numbers and lists of them become float64. Never a copy where a view will do.
    Raises TypeError, naming `name`, for integer, complex, boolean and object dtypes, for masked
    arrays and for Enclosures; ValueError for ragged lists, for integers that float64 does not hold
    and for more than 32 axes.
    """
    return _checked(value, name, 0)


def to_float64(array: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    """The same values as float64: exact for every supported dtype."""
    with np.errstate(invalid="ignore"):  # a signalling NaN is data here
        return np.asarray(array, dtype=np.float64)


def as_whole_numbers(value: Any, name: str) -> npt.NDArray[np.int64]:
    """`value` as an array of int64. Raises TypeError, naming `name`, for any other dtype than an
    integer one and for masked arrays, ValueError for ragged lists and beyond int64."""
    try:
        given = np.asarray(value)
    except ValueError:
        raise ValueError(
            f"{name} is a list whose items do not fit together as one array."
        ) from None
    except Exception as failure:  # of the caller's own object
        raise TypeError(f"{name} is a {type(value).__name__}, which gives no array.") from failure
    whole = given.dtype.kind in "iu" or (not given.size and given.dtype.kind == "f")
    if not whole or isinstance(value, np.ma.MaskedArray):
        raise TypeError(
            f"{name} has dtype {given.dtype}, but it must be whole numbers, an integer dtype"
            f"{', unmasked' if whole else ''}."
        )
    if given.dtype == np.uint64 and given.size and int(given.max()) >= 2**63:
        raise ValueError(f"{name} has the element {given.max()}, which int64 does not hold.")
    return given.astype(np.int64)


def _checked(value: Any, name: str, depth: int) -> npt.NDArray[Any]:
    array = _to_numpy(value, name, depth)
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    if array.dtype not in formats._BY_DTYPE:
        raise TypeError(
            f"{name} has dtype {array.dtype}, but an oracle takes float16, bfloat16, float32 or "
            "float64: convert it first, so that the rounding is yours and visible."
        )
    if array.ndim > MOST_AXES:
        raise ValueError(f"{name} has {array.ndim} axes, but at most {MOST_AXES} are supported.")
    return array


def _to_numpy(value: Any, name: str, depth: int) -> npt.NDArray[Any]:
    if isinstance(value, Enclosure):
        raise TypeError(
            f"{name} is an Enclosure, whose radius would be lost: functions take exact numbers. "
            f"Pass np.asarray({name}) to take its float64 values as exact."
        )
    if isinstance(value, np.ma.MaskedArray):
        raise TypeError(
            f"{name} is a masked array, and an oracle has no rule for what a mask hides: pass "
            f"{name}.filled(...) or {name}.compressed()."
        )
    if isinstance(value, int | np.integer) and not isinstance(value, bool):
        return np.asarray(as_real(value, name))
    if isinstance(value, np.ndarray | np.generic | float):
        return np.asarray(value)
    if isinstance(value, list | tuple):
        return _from_list(value, name, depth)
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(value, getattr(torch, "Tensor", ())):
        return _from_torch(value, name)
    for convert in (np.asarray, np.from_dlpack):
        try:
            array = convert(value)
        except Exception:  # of the caller's own object
            continue
        if array.dtype != object:
            return array
    raise TypeError(
        f"{name} is a {type(value).__name__}, which gives no array: pass a NumPy array or "
        "something with __array__ or __dlpack__."
    )


def _from_list(values: Sequence[Any], name: str, depth: int) -> npt.NDArray[Any]:
    """Lists and tuples of numbers and arrays, to any depth; float64 where they differ in dtype."""
    if depth == MOST_AXES:
        raise ValueError(f"{name} is a list nested more than {MOST_AXES} deep.")
    if all(type(v) is float or (type(v) is int and abs(v) <= 2**53) for v in values):
        return np.asarray(values, np.float64)
    items = [_checked(value, f"{name}[{i}]", depth + 1) for i, value in enumerate(values)]
    if len({item.shape for item in items}) > 1:
        raise ValueError(f"{name} is a list whose items differ in shape: they make no array.")
    same = len({item.dtype for item in items}) == 1
    return np.asarray(items if same else [to_float64(item) for item in items])


def _from_torch(tensor: Any, name: str) -> npt.NDArray[Any]:
    """A torch tensor on any device; NumPy has no bfloat16, so its bits travel as int16."""
    import torch

    try:
        host = tensor.detach().cpu().resolve_conj().resolve_neg()
        if host.dtype == torch.bfloat16:
            return host.contiguous().view(torch.int16).numpy().view(ml_dtypes.bfloat16)
        array: npt.NDArray[Any] = host.numpy()
    except Exception as failure:  # meta, nested, sparse and quantised tensors, each in its own way
        raise TypeError(
            f"{name} is a {tensor.layout} tensor of {tensor.dtype} on {tensor.device}, which gives "
            f"no dense array of numbers: {str(failure).partition(chr(10))[0][:100]}"
        ) from failure
    return array
