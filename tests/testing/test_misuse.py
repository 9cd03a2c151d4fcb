"""Every misuse of the assertions is one clear sentence: TypeError, ValueError or AssertionError."""

import math
import random
import re
from typing import Any
from unittest import SkipTest

import ml_dtypes
import numpy as np
import pytest

from refkernels.testing import assert_kernel, assert_rounding, assert_ulp

X = np.linspace(0.25, 1.75, 6, dtype=np.float32).reshape(2, 3)
Y = np.sin(X)
HUGE = 10**400


class Opaque:
    """An object that is nothing to anybody."""


ODD: list[Any] = [
    None, True, 0, -1, HUGE, 1.5, math.nan, math.inf, 1j, "", "sin", "y", b"sin", (), [], {}, set(),
    {"x": X}, {"y": Y}, {"y": None}, {None: X}, {3: X}, (Y, Y), [Y], (None,), [[1.0], [2.0, 3.0]],
    X, Y, X[:1], X[0, 0], np.zeros((0, 3), np.float32), np.array(0.5), np.full((2, 3), np.nan),
    X.astype(np.int8), X.astype(complex), X.astype(object), X > 1, np.array(["a"]), np.float32(2),
    X.astype(ml_dtypes.float8_e4m3fn), X.astype(ml_dtypes.float8_e5m2), X.astype(ml_dtypes.int4),
    np.datetime64("2020-01-01"), np.ma.masked_array(X, X > 1), np.dtype(np.float32), np.float16,
    Opaque(), Opaque, len, lambda: 1, iter([1.0]), slice(3), Ellipsis, "forward", "backward",
    ("y", 2), (Y, HUGE), (Y, None), (Y, 1, 2), (X[:1], 1), (None, 1), "bfloat16", "rounding",
]  # fmt: skip


def one_sentence(error: BaseException) -> bool:
    """A failing kernel's message has figures below it; every other is one clear line."""
    text = str(error)
    if isinstance(error, AssertionError) and "\n" in text:
        return re.match(r"\w+( \w+)?: |\d+ of \d+ elements", text) is not None
    return 20 <= len(text) <= 500 and "\n" not in text and text.rstrip().endswith((".", "?"))


def calls(random_: random.Random) -> tuple[Any, tuple[Any, ...], dict[str, Any]]:
    """A call that is right in all but one to three places."""
    which = random_.randrange(4)
    if which == 0:
        function, arguments = assert_ulp, [Y, Y, 1]
    elif which == 1:
        function, arguments = assert_rounding, [Y, Y, 1e-6]
    else:
        function, arguments = assert_kernel, ["sin", {"x": X}, Y, {}, "forward"]
        if random_.random() < 0.3:
            arguments[:4] = ["layernorm", {"x": X}, (X, X[:, 0]), {"eps": random_.choice(ODD)}]
    names = ("verdict", "max_ulp", "max_over_plain", "max_over_baseline", "dtype")
    stated = {
        name: random_.choice(ODD)
        for name in (names if function is assert_kernel else ())
        if random_.random() < 0.15
    }
    for _ in range(random_.randrange(1, 3)):
        arguments[random_.randrange(len(arguments))] = random_.choice(ODD)
    if isinstance(arguments[1], dict) and random_.random() < 0.3:
        arguments[1] = {"x": random_.choice(ODD)}
    return function, tuple(arguments), stated


# NumPy's own words for what it cannot convert are one line too, but end as they like.
@pytest.mark.filterwarnings("ignore")
def test_misuse_is_one_sentence() -> None:
    random_, refused, wrong, skipped = random.Random(20), 0, [], set()
    for _ in range(4000):
        function, arguments, stated = calls(random_)
        try:
            function(*arguments, **stated)
        except SkipTest as error:
            skipped.add(str(error))
        except (TypeError, ValueError, AssertionError) as error:
            refused += 1
            own = arguments[2] is len and str(error) == "object of type 'float' has no len()"
            if not own and not one_sentence(error):  # len is a kernel here, with words of its own
                wrong.append((function, arguments, stated, str(error)))
        except Exception as error:
            wrong.append((function, arguments, stated, repr(error)))
    assert wrong == []
    assert skipped == {
        f"unsupported: {name} takes no x" for name in ("<lambda>", "Opaque", "float16")
    }
    assert refused > 2000


@pytest.mark.parametrize("odd", range(len(ODD)), ids=lambda place: f"{place}")
def test_each_odd_value_in_each_place_alone_is_one_sentence(odd: int) -> None:
    value, tried, wrong = ODD[odd], 0, []
    kernel = {"op": "sin", "inputs": {"x": X}, "outputs": Y, "params": None, "direction": "forward"}
    for name in (*kernel, "verdict", "max_ulp", "max_over_plain", "max_over_baseline", "dtype"):
        try:
            assert_kernel(**{**kernel, name: value})
        except SkipTest as error:  # a kernel of another sort
            if (name, str(error)) != ("outputs", f"unsupported: {value.__name__} takes no x"):
                wrong.append((name, str(error)))
        except (TypeError, ValueError, AssertionError) as error:
            if not one_sentence(error):
                wrong.append((name, str(error)))
        tried += 1
    assert wrong == []
    assert tried == 10


@pytest.mark.parametrize(
    ("stated", "error", "words"),
    [
        ({"op": None}, TypeError, "Give an op's name, not a NoneType"),
        ({"inputs": None}, ValueError, "sin forward needs 'x' among its inputs"),
        ({"outputs": None}, ValueError, "sin forward gives y, but none of them was given"),
        ({"params": [1]}, TypeError, "params must map names to values, and is of type list"),
        ({"max_ulp": "4"}, TypeError, "max_ulp is of type str: it must be a number >= 0"),
        ({"max_ulp": -1}, ValueError, "max_ulp is -1: it must be a number >= 0"),
        ({"max_over_plain": math.nan}, ValueError, "max_over_plain is nan"),
        ({"max_over_plain": 0.0}, ValueError, "max_over_plain is 0: it must be a number > 0"),
        ({"max_over_baseline": (Y, 0)}, ValueError, "factor is 0: it must be a number > 0"),
        ({"max_over_baseline": Y}, TypeError, r"max_over_baseline is \(outputs, factor\)"),
        ({"max_over_baseline": (Y, True)}, TypeError, "max_over_baseline's factor is of type bool"),
        ({"max_over_baseline": (Y[:1], 2)}, ValueError, r"baseline's y has shape \(1, 3\)"),
        ({"direction": Y}, ValueError, "give 'forward' or 'backward'"),
        ({"verdict": None}, ValueError, "verdict is of type NoneType: ask for 'rounding'"),
        ({"outputs": Y.astype(ml_dtypes.float8_e5m2)}, TypeError, "y has dtype float8_e5m2"),
        ({"outputs": Y.astype(np.int8)}, TypeError, "y has dtype int8"),
        ({"inputs": {"x": X.astype(complex)}}, TypeError, "x has dtype complex128"),
    ],
)
def test_what_is_wrong_is_named(stated: dict[str, Any], error: type, words: str) -> None:
    kernel = {"op": "sin", "inputs": {"x": X}, "outputs": Y}
    with pytest.raises(error, match=words):
        assert_kernel(**{**kernel, **stated})
