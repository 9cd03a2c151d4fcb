"""Arguments of calls: usual arrays and unusual ones."""

import array
import collections
import ctypes
import datetime
import decimal
import tempfile
import types
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

from refkernels.arithmetic.enclosure import Enclosure, Relative
from refkernels.arithmetic.formats import BFLOAT16, TF32
from refkernels.arithmetic.question import Question
from refkernels.diagnosis.explanation import Explanation
from refkernels.op import Op

Generator = np.random.Generator
DTYPES = (np.float16, ml_dtypes.bfloat16, np.float32, np.float64)
SPECIAL = (
    0.0,
    -0.0,
    np.inf,
    -np.inf,
    np.nan,
    5e-324,
    -1e-310,
    1e308,
    -1.7e308,
    1e-45,
    65504.0,
    1.0,
)


def floats(rng: Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Numbers of one of the supported dtypes, special ones among them, in some memory layout."""
    values = rng.standard_normal(shape) * 10.0 ** rng.integers(-3, 4)
    if rng.random() < 0.4:
        where = rng.random(shape) < 0.3
        values = np.where(where, rng.choice(SPECIAL, shape), values)
    with np.errstate(all="ignore"):
        array = np.asarray(values).astype(DTYPES[rng.integers(len(DTYPES))])
    layout = rng.integers(8)
    if layout == 0:
        array = np.asfortranarray(array)
    elif layout == 1 and array.ndim:
        array = array[::-1].copy()[::-1]
    elif layout == 2 and array.ndim:
        array = np.repeat(array, 2, axis=-1)[..., ::2]
    elif layout == 3 and array.dtype != ml_dtypes.bfloat16:
        array = array.astype(array.dtype.newbyteorder())
    elif layout == 4:
        array.flags.writeable = False
    elif layout == 5 and array.size:
        array = np.broadcast_to(array.reshape(-1)[0], array.shape)
    return array


def any_shape(rng: Generator) -> tuple[int, ...]:
    return tuple(int(n) for n in rng.integers(0, 4, rng.integers(0, 4)))


def endless() -> list[Any]:
    """A list that holds itself."""
    nested: list[Any] = []
    nested.append(nested)
    return nested


def memmap() -> np.ndarray:
    with tempfile.TemporaryFile() as file:
        return np.memmap(file, np.float32, "w+", shape=(2, 3))


def deep(levels: int) -> Any:
    nested: Any = 1.0
    for _ in range(levels):
        nested = [nested]
    return nested


ODD: tuple[Callable[[], Any], ...] = (
    lambda: None, lambda: True, lambda: np.True_, lambda: 0, lambda: -1, lambda: 3,
    lambda: 2**53 + 1, lambda: 10**400, lambda: -(10**5000), lambda: 1.5, lambda: -1.0,
    lambda: float("nan"), lambda: float("inf"), lambda: 1j, lambda: "", lambda: "float32",
    lambda: "1e-5", lambda: "sin", lambda: "\ud800", lambda: b"1", lambda: bytearray(b"12"),
    lambda: (), list, dict, lambda: set(), lambda: {1.0, 2.0}, lambda: {"x": 1.0},
    lambda: {"x": np.ones(3)}, lambda: range(3), lambda: iter([1.0]), lambda: (x for x in [1.0]),
    lambda: [1.0, 2.0], lambda: [1, 2, 3], lambda: (3,), lambda: (3.9,), lambda: (2, 3),
    lambda: [[1.0], [2.0, 3.0]], lambda: [1.0, "2"], lambda: [None], lambda: [True, 1.0],
    lambda: [2**53 + 1, 0.5], lambda: [2**70], lambda: [1j], lambda: [[]], lambda: [[], [1.0]],
    endless, lambda: deep(31), lambda: deep(32), lambda: deep(40), lambda: deep(500),
    object,
    lambda: int, lambda: np, lambda: len, lambda: (lambda x: x), lambda: NotImplemented,
    lambda: Ellipsis, lambda: slice(None),
    lambda: types.SimpleNamespace(shape=(2, 3), dtype=float), lambda: Fraction(1, 3),
    lambda: decimal.Decimal("0.1"), lambda: datetime.date.today(),
    lambda: array.array("d", [1.0, 2.0]), lambda: array.array("i", [1]), lambda: memoryview(b"12"),
    lambda: memoryview(np.ones(3)), lambda: (ctypes.c_double * 3)(1, 2, 3),
    lambda: ctypes.c_float(1), lambda: np.ma.masked_array([1.0, 2.0, 3.0], [True, False, False]),
    lambda: [np.ma.masked_array([1.0, 2.0], [True, False])], lambda: np.ma.masked,
    lambda: [np.ma.masked, 1.0], lambda: Enclosure([1.0, 2.0, 3.0], radius=1e-3),
    lambda: [Enclosure(1.0), Enclosure(2.0)], lambda: Enclosure(np.ones((2, 3))),
    lambda: np.arange(3), lambda: np.ones((2, 3), complex), lambda: np.ones(3, bool),
    lambda: np.array(["a"]), lambda: np.array([None]), lambda: np.array([object()]),
    lambda: np.zeros(3, "M8[s]"), lambda: np.zeros(3, "m8[s]"), lambda: np.zeros(2, "f8,f4"),
    lambda: np.zeros(2, "V8"), lambda: np.zeros(2, "S4"), lambda: np.longdouble(1) / 3,
    lambda: np.ones(3, np.longdouble), lambda: np.ones(3, ml_dtypes.float8_e4m3fn),
    lambda: np.ones(3, ml_dtypes.int4), lambda: ml_dtypes.bfloat16(1.5), lambda: np.float32(1e-5),
    lambda: np.int64(3), lambda: np.uint64(2**64 - 1), lambda: np.array(3), lambda: np.array(1e-5),
    lambda: np.ones((1,) * 32), lambda: np.ones((1,) * 33), lambda: np.ones((1,) * 64),
    lambda: np.ones((0, 3)), lambda: np.ones((2, 0)), lambda: np.ones((0,)),
    lambda: np.ones((1, 2, 3)), lambda: np.broadcast_to(1.0, (2, 3)),
    lambda: np.ones((2, 3)).view(np.recarray),
    lambda: np.array([0x7FF0000000000001], "u8").view("f8"),
    lambda: np.array([0x7F800001], "u4").view("f4"), lambda: np.array([0x7F81], "u2").view("e"),
    lambda: np.array([0x7F81], "u2").view(ml_dtypes.bfloat16), lambda: np.full(3, 5e-324),
    lambda: TF32, lambda: BFLOAT16, lambda: np.float32, lambda: float, lambda: np.dtype("f4"),
    lambda: Question("rounding", BFLOAT16), lambda: Question("nonsense"),
    lambda: ("rounding", None), lambda: ("rounding", "float32"), lambda: ("ulp", "float32", 1e-3),
    lambda: ("ulp", "tf32", 10**400), lambda: ("ulp", "float64", True),
    lambda: (np.ones(3), "float32"),
    lambda: ("ulp", np.ones(3), np.ones(3)), lambda: {"eps": 1e-5}, lambda: {"eps": "1e-5"},
    lambda: {1: 2}, lambda: {"y": None}, lambda: {"y": np.ones((2, 3))}, lambda: {None: None},
    lambda: {("x",): 1.0}, lambda: {"x": np.ones((2, 3)), 3: 1}, lambda: {"": {}},
    lambda: {"a": {}},
    lambda: {"a": {"y": np.ones((2, 3))}, "b": {"y": np.ones((2, 3), "f4")}}, lambda: {"eps": [1]},
    lambda: {"eps": 10**400}, lambda: {"eps": Fraction(1, 3)}, lambda: {"normalized_shape": "3"},
    lambda: 2**31, lambda: -(2**31), lambda: 2**62, lambda: 2**63 - 1, lambda: np.uint64(2**63),
    lambda: "nan", lambda: "\0", lambda: "a\nb", lambda: "x" * 300, lambda: b"\xff",
    lambda: Fraction(10**400), lambda: decimal.Decimal("sNaN"), lambda: np.complex64(1j),
    lambda: np.datetime64("NaT"), lambda: np.timedelta64(1, "s"), lambda: np.str_("sin"),
    lambda: np.bytes_(b"1"), lambda: np.void(b"12"), lambda: np.array(["2020"], "M8[D]"),
    lambda: np.asmatrix(np.ones((2, 3))), lambda: np.ones((2, 3))[::-1, ::-1],
    lambda: np.ones((2, 3), ">f4"), lambda: np.zeros(3, [("x", ">f4"), ("y", "O")]),
    lambda: np.zeros(3, ">i2"), lambda: np.zeros(3, [("x", "f8", (2, 2))]), lambda: np.ones(3, "O"),
    lambda: np.ma.masked_all((2, 3)), lambda: np.ma.masked_array(np.zeros(2, "f8,f4")),
    lambda: np.array([Fraction(1, 3), 1.0], object), lambda: np.array(None),
    lambda: np.zeros((3, 0, 2)),
    lambda: np.ones((2, 3), np.clongdouble), lambda: np.ones(3, ml_dtypes.float8_e8m0fnu),
    lambda: np.ones(3, ml_dtypes.uint2), lambda: np.ones(3, ml_dtypes.float4_e2m1fn),
    lambda: ml_dtypes.float8_e5m2(1), lambda: np.char.array(["a"]), lambda: memmap(),
    lambda: np.broadcast_to(np.float32(1), (2, 3)), lambda: np.zeros((0, 2**20)),
    lambda: (x for x in "ab"), lambda: collections.deque([1.0, 2.0]), lambda: map(float, "12"),
    lambda: np.nditer(np.ones(3)), lambda: np.dtype("f4,f4"), lambda: np.dtype("O"), lambda: "V3",
    lambda: ("rounding",), lambda: ("ulp", "float32", np.nan), lambda: ("ulp", "float32", -1.0),
    lambda: Enclosure([np.nan, np.inf, 0.0], radius=[0.0, 0.0, 1.0]),
    lambda: Enclosure(np.ones((2, 3)), radius=np.inf), lambda: Enclosure(1.0, scale=2**30),
    lambda: Relative(0.5), lambda: Relative(-1.0), lambda: Path("."), lambda: Path("missing/x.npz"),
    lambda: Op, lambda: Explanation, lambda: BaseException(), lambda: zip(), lambda: 3 .__add__,
)  # fmt: skip


def their(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function as the caller's own code, from which its failures come."""

    def called(*arguments: Any) -> Any:
        return function(*arguments)

    return called


def odd(rng: Generator) -> Any:
    """Something from the list, or a list, tuple or mapping of such things."""
    chosen = ODD[rng.integers(len(ODD))]()
    how = rng.integers(12)
    if how == 0:
        return [chosen, ODD[rng.integers(len(ODD))]()]
    if how == 1:
        return (chosen,)
    if how == 2:
        return {"x": chosen}
    return chosen
