"""The arrays that a caller may pass: NumPy arrays, and objects with DLPack or `__array__`.

Nothing changes silently: numbers that no supported dtype holds exactly are refused, and so are
arrays that carry more than numbers (a mask, a radius).
"""

import sys
from collections.abc import Callable
from typing import Any, Literal

import ml_dtypes
import numpy as np
import numpy.typing as npt

from refkernels.arithmetic import formats
from refkernels.arithmetic.no_arithmetic import NoArithmetic
from refkernels.arithmetic.protocols import read, why_unread
from refkernels.arithmetic.scalars import as_real

Kind = Literal["float", "int", "bool", "low"]
_NARROW = (
    "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "float6_e2m3fn",
    "float6_e3m2fn", "float4_e2m1fn", "float8_e8m0fnu", "int4", "uint4",
)  # fmt: skip
LOW = {np.dtype(getattr(ml_dtypes, name)) for name in _NARROW if hasattr(ml_dtypes, name)}
LOW |= {np.dtype(np.int8), np.dtype(np.uint8)}
"""Of operands that other numbers scale, beside the formats; float32 holds each of their numbers."""
MOST_AXES = 32  # the most that NumPy 1 and Numba support


def as_float_array(value: Any, name: str) -> npt.NDArray[Any]:
    """`value` as a NumPy array of float16, bfloat16, float32 or float64, on the host.

    Python numbers and lists of them become float64. Nothing is copied where a view will do.
    Raises TypeError, naming `name`, for integer, complex, boolean and object dtypes, for masked
    arrays and for Enclosures; ValueError for ragged lists, for integers that float64 does not hold
    and for more than 32 axes.
    """
    return _checked(value, name, 0)


def spread(array: npt.NDArray[Any], shape: tuple[int, ...], name: str) -> npt.NDArray[Any]:
    """The array, if need be as a view that is broadcast to the shape. Raises ValueError, naming
    `name`, where it does not broadcast."""
    if array.shape == shape:  # `np.broadcast_to` costs as much as an operation on a few thousand
        return array
    try:
        return np.broadcast_to(array, shape)
    except ValueError:
        raise ValueError(
            f"{name} has shape {array.shape}, which does not broadcast to {shape}."
        ) from None


def to_float64(array: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    """The same values as float64: exact for every supported dtype."""
    if array.dtype == np.float64:
        return array
    with np.errstate(invalid="ignore"):  # a signalling NaN is data here
        return np.asarray(array, dtype=np.float64)


def as_whole_numbers(value: Any, name: str) -> npt.NDArray[np.int64]:
    """`value` as an array of int64. Raises TypeError, naming `name`, for a dtype that is not an
    integer's and for masked arrays; ValueError for ragged lists and for numbers beyond int64."""
    return _whole(value, name, 0)


def as_truth_values(value: Any, name: str) -> npt.NDArray[np.bool_]:
    """`value` as an array of bool. Raises TypeError, naming `name`, for any other dtype, for masked
    arrays and for what gives no array."""
    try:
        array = np.asarray(value)
    except Exception:  # the caller's own object's
        kind, reason = type(value).__name__, why_unread(value)
        said = f": {reason}" if reason else ""
        raise TypeError(
            f"{name} is a {kind}, which gives no array of truth values{said}."
        ) from None
    if array.dtype.kind != "b" or isinstance(value, np.ma.MaskedArray):
        unmasked = ", unmasked" if array.dtype.kind == "b" else ""
        raise TypeError(
            f"{name} has dtype {array.dtype}, but it must be truth values, bool{unmasked}."
        )
    return array


def as_array_of(kind: Kind, value: Any, name: str) -> npt.NDArray[Any]:
    """`value` as an array of floats, of whole numbers (int64), of truth values or of operands."""
    return _AS_ARRAY[kind](value, name)


def as_operand(value: Any, name: str) -> npt.NDArray[Any]:
    """`value` as an array of numbers of at most 8 bits, else as `as_float_array` gives it."""
    kind = str(getattr(value, "dtype", "")).rpartition(".")[2]
    if kind in _NARROW and hasattr(value, "detach"):
        bits = value.detach().cpu().contiguous().view(sys.modules["torch"].uint8).numpy()
        return np.asarray(bits.view(getattr(ml_dtypes, kind)))
    low = kind in _NARROW or kind in ("int8", "uint8")
    array = read(value) if low and not _masked(value) else value
    if isinstance(array, np.ndarray) and array.dtype in LOW and not _masked(array):
        return np.asarray(array)
    try:
        return as_float_array(value, name)
    except TypeError as refused:
        if kind not in ("", "object") and "an oracle takes" in str(refused):
            raise TypeError(
                f"{name} has dtype {kind}, but an operand is float8_e4m3fn, float8_e5m2, int8, "
                "float16, bfloat16, float32 or float64."
            ) from None
        raise


def _masked(array: npt.NDArray[Any]) -> bool:
    return isinstance(array, np.ma.MaskedArray)


def _whole(value: Any, name: str, depth: int) -> npt.NDArray[np.int64]:
    if isinstance(value, list | tuple):
        return np.asarray(_stack(value, name, depth, _whole), np.int64)
    array = np.asarray(value) if isinstance(value, range) else read(value)
    if issubclass(type(value), int) and not -(2**63) <= int.__index__(value) < 2**63:
        array = np.asarray(None)
    if array is None:
        raise TypeError(f"{name} is a {type(value).__name__}, which gives no array of numbers.")
    beyond = array.dtype == np.uint64 and array.size and int(array.max()) >= 2**63
    if beyond or array.dtype == object:
        raise ValueError(f"{name} has an element that int64 does not hold.")
    integers = array.dtype.kind in "iu" or (not array.size and array.dtype.kind == "f")
    if not integers or isinstance(value, np.ma.MaskedArray):
        raise TypeError(
            f"{name} has dtype {array.dtype}, but it must be whole numbers, an integer dtype"
            f"{', unmasked' if integers else ''}."
        )
    return array.astype(np.int64)


def _checked(value: Any, name: str, depth: int) -> npt.NDArray[Any]:
    array = _to_numpy(value, name, depth)
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    if not formats.is_one(array.dtype):
        first = "convert it first, so that the rounding is yours and visible"
        if array.dtype.kind == "c":
            first = "give its real and imaginary parts, as torch.view_as_real does"
        raise TypeError(
            f"{name} has dtype {array.dtype}, but an oracle takes float16, bfloat16, float32 or "
            f"float64: {first}."
        )
    if array.ndim > MOST_AXES:
        raise ValueError(f"{name} has {array.ndim} axes, but at most {MOST_AXES} are supported.")
    return array


def _to_numpy(value: Any, name: str, depth: int) -> npt.NDArray[Any]:
    if isinstance(value, NoArithmetic):
        raise TypeError(
            f"{name} is an {type(value).__name__}, whose radius would be lost: functions take "
            f"exact numbers. Pass np.asarray({name}) to take its float64 values as exact."
        )
    if isinstance(value, np.ma.MaskedArray):
        raise TypeError(
            f"{name} is a masked array, and an oracle has no rule for what a mask hides: pass "
            f"{name}.filled(...) or {name}.compressed()."
        )
    kind = type(value)  # unlike __class__, no object can fake it
    if issubclass(kind, int | np.integer) and not issubclass(kind, bool | np.timedelta64):
        return np.asarray(as_real(value, name))
    if kind is float or issubclass(kind, np.ndarray | np.generic):
        return np.asarray(value)
    if isinstance(value, list | tuple):
        return _from_list(value, name, depth)
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(value, getattr(torch, "Tensor", ())):
        return _from_torch(value, name)
    cupy = sys.modules.get("cupy")
    if cupy is not None and isinstance(value, getattr(cupy, "ndarray", ())):
        on_device: Any = value
        return np.asarray(on_device.get())  # CuPy refuses to copy implicitly
    array = read(value)
    if array is None:
        if reason := why_unread(value):
            type_name = type(value).__name__
            cure = (
                " (call this outside jax.jit, jax.grad and jax.vmap)"
                if "Tracer" in type_name
                else ""
            )
            raise TypeError(
                f"{name} is a {type_name}, which gives no array of numbers: {reason}{cure}"
            )
        raise TypeError(
            f"{name} is a {type(value).__name__}, which gives no array: pass a NumPy array or "
            "something with __array__ or __dlpack__."
        )
    return _true_bfloat16(array, value)


def _true_bfloat16(array: npt.NDArray[Any], value: Any) -> npt.NDArray[Any]:
    """The array with bfloat16 as ml_dtypes has it: Paddle's tensors give its bits as uint16, and
    MindSpore's an extension type of its own."""
    if array.dtype == ml_dtypes.bfloat16 or array.dtype.name not in ("uint16", "bfloat16"):
        return array
    declared = str(getattr(value, "dtype", "")).rpartition(".")[2].lower()
    if "bfloat16" not in (array.dtype.name, declared):
        return array
    return np.ascontiguousarray(array).view(np.uint16).view(ml_dtypes.bfloat16)


def _from_list(values: list[Any] | tuple[Any, ...], name: str, depth: int) -> npt.NDArray[Any]:
    """Lists and tuples of numbers and arrays, to any depth; float64 where they differ in dtype."""
    plain = all(type(v) is float or (type(v) is int and abs(v) <= 2**53) for v in values)
    if plain and depth < MOST_AXES:
        return np.asarray(tuple(values), np.float64)
    items = _stack(values, name, depth, _checked)
    one_dtype = len({item.dtype for item in items}) == 1
    return np.asarray(items if one_dtype else [to_float64(item) for item in items])


def _stack(
    values: list[Any] | tuple[Any, ...],
    name: str,
    depth: int,
    read_one: Callable[[Any, str, int], npt.NDArray[Any]],
) -> list[npt.NDArray[Any]]:
    """The arrays of the items, all of one shape."""
    if depth == MOST_AXES:
        raise ValueError(f"{name} is a list nested more than {MOST_AXES} deep.")
    items = [read_one(entry, f"{name}[{i}]", depth + 1) for i, entry in enumerate(values)]
    if len({item.shape for item in items}) > 1:
        raise ValueError(f"{name} is a list whose items differ in shape: they make no array.")
    return items


def _from_torch(tensor: Any, name: str) -> npt.NDArray[Any]:
    """A torch tensor on any device; NumPy has no bfloat16, so its bits travel as int16."""
    import torch

    try:
        host = tensor.detach().cpu().resolve_conj().resolve_neg()
        if host.dtype == torch.bfloat16:
            return host.contiguous().view(torch.int16).numpy().view(ml_dtypes.bfloat16)
        array: npt.NDArray[Any] = host.numpy()
    except Exception as failure:  # of many types: meta, nested, sparse and quantised tensors
        raise TypeError(
            f"{name} is a {tensor.layout} tensor of {tensor.dtype} on {tensor.device}, which gives "
            f"no dense array of numbers: {str(failure).partition(chr(10))[0][:100]}"
        ) from failure
    return array


_AS_ARRAY: dict[str, Callable[[Any, str], npt.NDArray[Any]]] = {
    "float": as_float_array,
    "int": as_whole_numbers,
    "bool": as_truth_values,
    "low": as_operand,
}


def distinct(indices: npt.NDArray[np.intp]) -> npt.NDArray[np.intp]:
    """The different indices, in order: `np.unique`, in a tenth of its time where they are nearly in
    order."""
    ordered = np.sort(indices, kind="stable")
    new = np.ones(ordered.size, bool)
    np.not_equal(ordered[1:], ordered[:-1], out=new[1:])
    return ordered[new]
