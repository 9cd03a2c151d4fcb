"""What a caller may hand in: NumPy arrays, and whatever speaks DLPack or `__array__`."""

from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

from refkernels.arithmetic import formats


def as_float_array(value: Any, name: str) -> npt.NDArray[Any]:
    """`value` as a NumPy array of float16, bfloat16, float32 or float64, on the host.

    Python numbers and lists of them become float64. Never a copy where a view will do.
    Raises TypeError, naming `name`, for integer, complex, boolean and object dtypes and
    for masked arrays.
    """
    array = _to_numpy(value, name)
    if array.dtype not in formats._BY_DTYPE:
        raise TypeError(
            f"{name} has dtype {array.dtype}, but an oracle takes float16, bfloat16, float32 or "
            "float64: convert it first, so that the rounding is yours and visible."
        )
    return array


def to_float64(array: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    """The same values as float64: exact for every supported dtype."""
    with np.errstate(invalid="ignore"):  # a signalling NaN is data here
        return np.asarray(array, dtype=np.float64)


def _to_numpy(value: Any, name: str) -> npt.NDArray[Any]:
    if isinstance(value, np.ma.MaskedArray):
        raise TypeError(
            f"{name} is a masked array, and an oracle has no rule for what a mask hides: pass "
            f"{name}.filled(...) or {name}.compressed()."
        )
    if isinstance(value, np.ndarray | np.generic):
        array = np.asarray(value)
        return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))
    if isinstance(value, float):
        return np.asarray(value)
    if isinstance(value, list | tuple):
        array = np.asarray(value)
        return array.astype(np.float64) if array.dtype.kind in "iu" or not array.size else array
    if type(value).__module__.split(".")[0] == "torch":
        return _from_torch(value)
    for convert in (np.asarray, np.from_dlpack):
        try:
            array = convert(value)
        except (TypeError, ValueError, RuntimeError, BufferError, AttributeError):
            continue
        if array.dtype != object:
            return array
    raise TypeError(
        f"{name} is a {type(value).__name__}, which gives no array: pass a NumPy array or "
        "something with __array__ or __dlpack__."
    )


def _from_torch(tensor: Any) -> npt.NDArray[Any]:
    """A torch tensor on any device; NumPy has no bfloat16, so its bits travel as int16."""
    host = tensor.detach().cpu().resolve_conj().resolve_neg()
    if str(host.dtype) == "torch.bfloat16":
        import torch

        return host.contiguous().view(torch.int16).numpy().view(ml_dtypes.bfloat16)
    return host.numpy()
