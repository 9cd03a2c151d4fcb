"""Pieces of work by name, each timed in a process of its own: what `against.py` compares.

    python benchmarks/workloads.py NAME     prints {"processor": seconds, "wall": ..., "calls": ...}

They use public names that every version has. No NumPy twin stands in for a kernel: all kernels are
compiled. The first call is not counted, except for whole processes; then as many follow as fit into
a fifth of a second of processor time, of all threads and of finished child processes. The figures
are means over these calls.
"""

import gzip
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

SECONDS = 0.2
SHAPES = ((256, 256), (2048, 768), (8192, 1024))
RECORDS = Path(__file__).parent / "results" / "cpu-x86_64-linux" / "records.jsonl.gz"
Run = Callable[[], Any]
Array = np.ndarray


def _normal(*shape: int, seed: int = 1) -> Array:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def _product(n: int, certify: Any) -> Run:
    from refkernels import matmul_ref

    a, b = _normal(n, n), _normal(n, n, seed=2)
    return lambda: matmul_ref.forward(a, b, certify=certify)


def _norm(shape: tuple[int, int], backward: bool) -> Run:
    from refkernels import layernorm_ref

    x, dy = _normal(*shape), _normal(*shape, seed=2)
    weight, bias = _normal(shape[1], seed=3), _normal(shape[1], seed=4)

    def run() -> None:
        layernorm_ref.forward(x, weight, bias)
        if backward:
            layernorm_ref.backward(dy, x, weight)

    return run


def _function(op: str, n: int) -> Run:
    from refkernels import registry

    x, known = 4 * _normal(n), registry.get(op)
    return lambda: known.forward(x=x)


def _statistics(n: int, bounded: bool) -> Run:
    from refkernels.arithmetic.enclosure import Enclosure
    from refkernels.metrology import summarise

    hi = _normal(n).astype(np.float64) * (1 + 2.0**-25)
    got, exact = hi.astype(np.float32), Enclosure(hi, 0.0, np.abs(hi) * 2.0**-48)
    bound = (np.abs(hi) * 2.0**-20,) if bounded else ()
    return lambda: summarise(got, exact, *bound)


def _small(op: str, direction: Any = "forward") -> tuple[dict[str, Array], dict[str, Array]]:
    """Inputs of a few rows, and what NumPy answers in float32."""
    from refkernels import registry

    x, weight = _normal(16, 48), _normal(48, seed=2)
    if op == "matmul":
        b = _normal(48, 24, seed=3)
        return {"a": x, "b": b}, {"c": x @ b}
    if op == "layernorm":
        inputs = {"x": x, "weight": weight, "bias": _normal(48, seed=4)}
        centred = x - x.mean(axis=1, keepdims=True)
        rstd = 1 / np.sqrt((centred * centred).mean(axis=1, keepdims=True) + np.float32(1e-5))
        return inputs, {"y": centred * rstd * weight + inputs["bias"]}
    inputs = {"x": x}
    return inputs, {"y": np.asarray(registry.get(op).forward(x=x)).astype(np.float32)}


def _asserted(op: str) -> Run:
    from refkernels import registry
    from refkernels.testing import assert_kernel

    known = registry.get(op)
    inputs, outputs = _small(op)
    return lambda: assert_kernel(known, inputs, outputs)


def _explained(op: str) -> Run:
    import refkernels

    inputs, outputs = _small(op)
    return lambda: refkernels.explain(op, inputs, outputs)


def _read() -> Run:
    from refkernels.reporting.reading import read_records

    # For versions that read no compressed files. The function keeps it alive.
    file = tempfile.NamedTemporaryFile(suffix=".jsonl")  # noqa: SIM115
    file.write(gzip.decompress(RECORDS.read_bytes()))
    file.flush()
    return lambda: read_records(Path(file.name))


class Process:
    """Python with these arguments, from its start to its end; OUT among them is a new folder."""

    def __init__(self, *arguments: str) -> None:
        self.arguments = arguments

    def __call__(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            arguments = [folder if word == "OUT" else word for word in self.arguments]
            # Not in this folder: Python looks for `refkernels` in the working folder first.
            command = [sys.executable, *arguments]
            completed = subprocess.run(command, capture_output=True, text=True, cwd=folder)
        expected = (0, 1) if "OUT" in self.arguments else (0,)  # 1: measure found faults
        if completed.returncode not in expected:
            raise RuntimeError(completed.stderr.strip()[-300:])


def workloads() -> dict[str, Callable[[], Run]]:
    """By name: a function that makes the inputs and returns the work."""
    named: dict[str, Callable[[], Run]] = {
        "import refkernels": lambda: Process("-c", "import refkernels"),
        "refkernels --help": lambda: Process("-m", "refkernels", "--help"),
        "first layernorm": lambda: Process(
            "-c", "import numpy; from refkernels import layernorm_ref as m; m.forward(numpy.eye(9))"
        ),
    }
    for n in (256, 1024):
        demands = {"0.01 ulp": ("ulp", "float32", 0.01), "rounding": ("rounding", "float32")}
        for name, certify in demands.items():
            named[f"matmul {n}, {name}"] = lambda n=n, certify=certify: _product(n, certify)
    for shape in SHAPES:
        for both in (False, True):
            work = "forward + backward" if both else "forward"
            name = f"layernorm {shape[0]} x {shape[1]}, {work}"
            named[name] = lambda shape=shape, both=both: _norm(shape, both)
    for op in ("sin", "exp", "erf", "gelu"):
        for n in (1000, 100_000, 4_000_000):
            named[f"{op} {n}"] = lambda op=op, n=n: _function(op, n)
    for n in (1000, 100_000, 4_000_000):
        named[f"ULP statistics {n}"] = lambda n=n: _statistics(n, bounded=False)
    named["ULP statistics and bound 4000000"] = lambda: _statistics(4_000_000, bounded=True)
    for op in ("layernorm", "matmul", "sin"):
        named[f"assert_kernel {op}"] = lambda op=op: _asserted(op)
        named[f"explain {op}"] = lambda op=op: _explained(op)
    named["read records"] = _read
    command = ("-m", "refkernels", "measure", "--dtype", "float32", "--framework", "numpy")
    for op in ("layernorm", "sin"):
        named[f"measure {op}"] = lambda op=op: Process(*command, "--op", op, "--out", "OUT")
    return named


def _processor() -> float:
    try:
        import resource
    except ImportError:  # Windows: without the processes that were started
        return time.process_time()
    whose = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    usages = map(resource.getrusage, whose)
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def timed(run: Run, warm: bool) -> dict[str, float]:
    """The times of one call."""
    if warm:
        run()
    calls = 0
    began, processor = time.perf_counter(), _processor()
    while _processor() - processor < SECONDS:
        run()
        calls += 1
    processor, wall = _processor() - processor, time.perf_counter() - began
    return {"processor": processor / calls, "wall": wall / calls, "calls": calls}


def _without_twins() -> None:
    """Forbid the NumPy twins, which stand in for kernels that are not compiled yet."""
    try:
        from refkernels.arithmetic import small
    except ImportError:  # older versions have none
        return
    small.allowance.elements = 0


def main() -> None:
    _without_twins()
    run = workloads()[sys.argv[1]]()
    print(json.dumps(timed(run, warm=not isinstance(run, Process))))


if __name__ == "__main__":
    main()
