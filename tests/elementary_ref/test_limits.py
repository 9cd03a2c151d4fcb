"""The declared limits: the best known implementation of a function keeps them."""

import gzip
import json
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest

from refkernels import registry
from refkernels.arithmetic import formats
from refkernels.testing import assert_kernel

RESULTS = Path(__file__).parents[2] / "benchmarks" / "results"


def largest_errors() -> dict[tuple[str, str, str], list[float]]:
    """Of all float32 and float16 inputs, by machine, function and format: the largest error in ulp
    of each library."""
    errors: dict[tuple[str, str, str], list[float]] = defaultdict(list)
    for path in (*RESULTS.glob("*/sweeps.jsonl"), *RESULTS.glob("*/sweeps.jsonl.gz")):
        with gzip.open(path, "rt") if path.suffix == ".gz" else path.open() as lines:
            for record in map(json.loads, lines):
                largest = (record.get("ulp") or {}).get("max")
                if record["kind"] == "sweep" and largest is not None:
                    key = path.parent.name, record["op"], record["dtype"]
                    errors[key].append(float(largest))
    return errors


def test_on_every_machine_some_library_keeps_each_limit() -> None:
    errors = largest_errors()
    assert len(errors) > 20
    for (machine, name, dtype), largest in errors.items():
        op = registry.get(name)
        if op.limit is not None:
            assert min(largest) <= op.limit, (machine, name, dtype)


@pytest.mark.parametrize(
    ("x", "y"),
    [
        ("-0x1.bf9d64p+1", "-0x1.afe0dcp-11"),
        ("-0x1.761d28p+1", "-0x1.4c3812p-8"),
        ("-0x1.b13e5ep+1", "-0x1.3bdcdcp-10"),
    ],
)
def test_what_pytorch_gives_for_gelu_is_rounding(x: str, y: str) -> None:
    """PyTorch 2.13's F.gelu of float32 on a CPU."""
    arrays = (np.array([float.fromhex(digits)], np.float32) for digits in (x, y))
    argument, result = arrays
    assert_kernel("gelu", {"x": argument}, result, max_over_plain=np.inf)


@pytest.mark.parametrize("name", ["erf", "erfc"])
def test_gelu_may_take_any_function_that_keeps_its_limit(name: str) -> None:
    """x (1 + erf(x / sqrt 2)) / 2 and x erfc(-x / sqrt 2) / 2 in float32, with a function that is
    off by nearly its limit."""
    op = registry.get(name)
    assert op.limit is not None
    x = np.random.default_rng(1).uniform(-6.0, 6.0, 20000).astype(np.float32)
    z = x / np.sqrt(np.float32(2)) if name == "erf" else -x / np.sqrt(np.float32(2))
    exact = np.asarray(op.evaluate("forward", {"x": z}, {})["y"])
    sign = np.random.default_rng(2).choice([-1.0, 1.0], x.size)
    off = (op.limit - 0.5) * sign * np.spacing(np.abs(exact).astype(np.float32)).astype(np.float64)
    value = formats.round_to(exact + off, formats.BINARY32)
    value = np.clip(value, *((-1, 1) if name == "erf" else (0, 2)))
    y = x * (1 + value) / 2 if name == "erf" else x * value / 2
    assert_kernel("gelu", {"x": x}, y.astype(np.float32), max_over_plain=np.inf)
