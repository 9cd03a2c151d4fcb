"""Extreme arguments: no answer is false, none that is decidable is left open, and none is slow.

REFKERNELS_HUNT multiplies the elements of the hunt.
"""

import itertools
import multiprocessing
import os
import resource
from typing import Any

import numpy as np
import pytest
import tail_hunt
from anchored import Exact
from hunting import HUNT, one_in
from waiting import HANGS

from refkernels import elementary_ref
from refkernels.op import DTYPES

ELEMENTS = 2 * HUNT
DIRECTIONS = ("forward", "backward")


@pytest.mark.parametrize("name", tail_hunt.OPS)
def test_no_interval_and_no_certified_rounding_is_false_and_none_is_left_open(name):
    """Of all questions a run asks each function a third, the next one another; a hunt all."""
    rng, some = np.random.default_rng(sum(name.encode())), 3 if HUNT == 1 else 1
    questions = [*itertools.product(DIRECTIONS, DTYPES, tail_hunt.QUESTIONS)]
    questions = questions[list(tail_hunt.OPS).index(name) % some :: some]
    enclosures = roundings = 0
    for direction, dtype, certify in questions:
        counts = tail_hunt.hunt(name, direction, dtype, certify, ELEMENTS, rng)
        enclosures += counts["enclosures"]
        roundings += counts["roundings"]
    assert enclosures == len(questions) * ELEMENTS
    assert roundings > enclosures


def test_the_checks_see_what_is_false():
    """Ends that stop short of the value, its midpoint on the wrong side, and its zero too."""
    for side, name in ((-1, "gelu"), (1, "softplus")):
        x = np.array([129.5])
        enclosure = getattr(elementary_ref, name)(x)
        truth = Exact(name, 129.5)
        assert tail_hunt.holds(enclosure, 0, truth)
        enclosure.lo = -enclosure.lo
        assert not tail_hunt.holds(enclosure, 0, truth)
        right, wrong = (129.0, 130.0) if side < 0 else (130.0, 129.0)
        format = tail_hunt.formats.BFLOAT16
        assert tail_hunt.rounds_to(right, format, truth)
        assert not tail_hunt.rounds_to(wrong, format, truth)
    tail = Exact("gelu", -17000.0)
    assert tail_hunt.rounds_to(-0.0, tail_hunt.formats.BINARY64, tail)
    assert not tail_hunt.rounds_to(0.0, tail_hunt.formats.BINARY64, tail)
    narrow = tail_hunt.Enclosure([-1.5], 0.0, [2.0**-72], -193_635_253)
    assert not tail_hunt.holds(narrow, 0, tail)


@pytest.mark.parametrize(("x", "expected"), [(2.0**-53, 1 + 2.0**-52), (-(2.0**-54), 1.0)])
def test_a_float64_midpoint_just_missed_is_decided(x, expected):
    """exp(x) = 1 + x + x^2/2: as near to a midpoint as x^2/2."""
    values, certified = elementary_ref.exp(np.array([x]), certify=("rounding", "float64")).round(
        "float64"
    )
    assert certified.all()
    assert values.tolist() == [expected]


def _worst(connection: Any, bytes_more: int) -> None:
    with open("/proc/self/statm") as pages:
        used = int(pages.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + bytes_more, used + bytes_more))
    failed = ""
    questions = (("rounding", "bfloat16"), ("rounding", "float64"), ("ulp", "float64", 1e-300))
    try:
        every = itertools.product(tail_hunt.OPS, DIRECTIONS, questions, _SIZES, (1.0, -1.0))
        for name, direction, certify, size, sign in one_in(3, every):
            x = tail_hunt.inside(name, np.array([sign * size]), direction)
            arguments = (x,) if direction == "forward" else (np.array([2.0**0 + 2.0**-8]), x)
            getattr(tail_hunt.OPS[name], direction)(*arguments, certify=certify)
    except BaseException as failure:
        failed = str((repr(failure), name, direction, certify, x[0]))
    connection.send(failed)


_SIZES = (
    *(float.fromhex(f"0x1.03p{k}") for k in (-1000, -140, -8, 4, 7, 10, 14, 16, 17, 29, 40, 120)),
    *(2.0**-1074, 36.0, 2.0**600, 3.4028234663852886e38, 1.7976931348623157e308),
)


@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="reads Linux's memory figures")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_no_single_element_takes_much_memory():
    """In a child with 256 MiB more than it has; compiled and imported here before."""
    for name, direction in itertools.product(tail_hunt.OPS, DIRECTIONS):
        rng = np.random.default_rng(0)
        tail_hunt.hunt(name, direction, "float64", ("ulp", "float64", 1e-300), 1, rng)
    context = multiprocessing.get_context("fork")
    here, there = context.Pipe()
    child = context.Process(target=_worst, args=(there, 2**28))
    child.start()
    assert here.poll(HANGS)
    failed = here.recv()
    child.join(HANGS)
    assert not failed
