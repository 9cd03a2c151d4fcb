"""What is timed: matrix products, LayerNorm, elementwise functions, statistics, and starting up."""

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import peers
from stopwatch import Row, Work, race

from refkernels import layernorm_ref, matmul_ref, registry
from refkernels.arithmetic import tiers
from refkernels.arithmetic.enclosure import Enclosure
from refkernels.arithmetic.question import Question
from refkernels.metrology import summarise

Array = np.ndarray
BASE_GEMM = "NumPy float64 @"
BLAS_SPINS = 0.15  # seconds; OpenBLAS keeps a core busy for 0.11 after a product
FUNCTIONS = ("sin", "cos", "exp", "log", "tanh", "erf")


def told(run: Callable[[], Any], format: str) -> str:
    """The tiers that answered, and the enclosures' width in ulp of the format."""
    with tiers.counted() as tally:
        answer = run()
    parts = answer if isinstance(answer, tuple) else (answer,)
    widths = np.concatenate([part.uncertainty(format).reshape(-1) for part in parts])
    usable = widths[np.isfinite(widths)]
    width = f"median {np.median(usable):.1e}, max {usable.max():.1e} ulp" if usable.size else ""
    return ", ".join([*(f"{tier} {count}" for tier, count in tally.items()), width])


def _told_last(row: Row, run: Callable[[], Any], format: str) -> None:
    if row.missing is None:
        row.note = told(run, format)


def matmul(n: int, seconds: float) -> Iterator[Row]:
    """float32 and float64 products of order n beside NumPy's float64 @; slow peers on corners."""
    rng = np.random.default_rng(n)
    even = [rng.uniform(0.5, 1.0, (n, n)).astype(np.float32) for _ in "ab"]
    normal = [rng.standard_normal((n, n)).astype(np.float32) for _ in "ab"]
    wide = [rng.standard_normal((n, n)) for _ in "ab"]
    bars = n == 1024
    ours = {
        "0.01 ulp of float32, well-conditioned": (even, ("ulp", "float32", 0.01), 1.5, "float32"),
        "0.01 ulp of float32, normal": (normal, ("ulp", "float32", 0.01), None, "float32"),
        "float32 rounding certified": (normal, ("rounding", "float32"), 4.5, "float32"),
        "float64 to double-double": (wide, "enclosure", 12.0, "float64"),
    }
    double = [array.astype(np.float64) for array in normal]
    contestants: dict[str, tuple[Row, Work]] = {}

    def row(work: str, who: str, elements: int, **rest: Any) -> Row:
        return Row("matmul", work, f"{n} x {n}", who, elements, base=BASE_GEMM, **rest)

    contestants[BASE_GEMM] = row("product", BASE_GEMM, n * n), lambda: _none(double[0] @ double[1])
    runs: dict[str, Callable[[], Any]] = {}
    for work, (pair, question, bar, _) in ours.items():
        runs[work] = lambda pair=pair, question=question: matmul_ref.forward(
            *pair, certify=question
        )
        held = row(work, "refkernels", n * n, bar=bar if bars else None)
        contestants[work] = held, lambda run=runs[work]: _none(run())
    race(contestants, seconds, rest=BLAS_SPINS)
    for work, (_, _, _, format) in ours.items():
        _told_last(contestants[work][0], runs[work], format)
    slow = {}
    for who, m in peers.MATMUL.items():
        held = row("product", who, min(m, n) ** 2)
        slow[who] = held, peers.product(who, *wide)
    race(slow, seconds / 5, rounds=3)
    base = contestants[BASE_GEMM][0].per_second
    for held, _ in slow.values():
        held.ratios = [base / (held.elements / s) for s in held.seconds] if base else []
    yield from (held for held, _ in (contestants | slow).values())


def layernorm(shape: tuple[int, int], torch: peers.Torch, seconds: float) -> Iterator[Row]:
    """Forward, and forward and backward, of float32 rows beside torch's and NumPy's float64."""
    rng = np.random.default_rng(shape[0])
    x, dy = (rng.standard_normal(shape).astype(np.float32) for _ in "xy")
    weight, bias = (rng.standard_normal(shape[1]).astype(np.float32) for _ in "wb")
    inputs = {"x": x, "weight": weight, "bias": bias}
    size, n = f"{shape[0]} x {shape[1]}", x.size
    bar = 1.0 if shape == (8192, 1024) else None

    def forward() -> Any:
        return layernorm_ref.forward(x, weight, bias)

    def both() -> Any:
        return forward()[0], *layernorm_ref.backward(dy, x, weight)

    wide = {name: array.astype(np.float64) for name, array in inputs.items()}

    def by_numpy() -> None:
        centred = wide["x"] - wide["x"].mean(axis=1, keepdims=True)
        rstd = 1 / np.sqrt(np.mean(centred * centred, axis=1, keepdims=True) + 1e-5)
        centred * rstd * wide["weight"] + wide["bias"]

    contestants: dict[str, tuple[Row, Work]] = {}
    for work, run, direction, given in (
        ("forward", forward, "forward", inputs),
        ("forward + backward", both, "backward", {**inputs, "dy": dy}),
    ):
        base = f"torch float64 {work}"
        held = Row("layernorm", work, size, "refkernels", n, base=base, bar=bar)
        theirs = Row("layernorm", work, size, base, n, base=base)
        contestants[work] = held, lambda run=run: _none(run())
        contestants[base] = theirs, torch.work("layernorm", direction, given)
    held = Row("layernorm", "forward", size, "NumPy float64", n, base="torch float64 forward")
    contestants["numpy"] = held, by_numpy
    race(contestants, seconds)
    _told_last(contestants["forward"][0], forward, "float32")
    _told_last(contestants["forward + backward"][0], both, "float32")
    yield from (held for held, _ in contestants.values())


def inputs_of(op: str, n: int) -> Array:
    """float32 inputs: all magnitudes for sin, cos and log; where something happens for the rest."""
    rng = np.random.default_rng(n)
    if op in ("sin", "cos", "log"):
        bits = rng.integers(0, 0x7F800000, n, dtype=np.uint32)
        return bits.view(np.float32)
    reach = {"exp": 80.0, "tanh": 10.0, "erf": 5.0}[op]
    return rng.uniform(-reach, reach, n).astype(np.float32)


def elementwise(op: str, n: int, torch: peers.Torch, seconds: float) -> Iterator[Row]:
    """One function's throughput with its certificate, beside torch's float64 cos and the others."""
    x, size = inputs_of(op, n), f"{n:,}".replace(",", " ")
    base = "torch float64 cos"
    waves = op in ("sin", "cos") and n >= 1_000_000
    known = registry.get(op)
    contestants: dict[str, tuple[Row, Work]] = {}

    def row(who: str, elements: int = n, **rest: Any) -> Row:
        held = Row("elementwise", op, size, who, elements, base=base, at_least=True, **rest)
        return held

    def enclosed() -> Any:
        return known.forward(x)

    def rounded() -> Any:
        return known.forward(x, certify=("rounding", "float32"))

    held = row("refkernels", bar=2.0 if waves else None)
    contestants["enclosure"] = held, lambda: _none(enclosed())
    contestants["rounding"] = row("refkernels, rounding certified"), lambda: _none(rounded())
    if known.fast is not None:
        hi, kernel = np.empty(n), known.fast.kernel
        contestants["kernel"] = row("refkernels, kernel, 1 thread"), lambda: kernel(x, hi)
    contestants[base] = row(base), torch.work("cos", "forward", {"x": inputs_of("cos", n)})
    if op != "cos":
        contestants["torch"] = row(f"torch float64 {op}"), torch.work(op, "forward", {"x": x})
    wide = x.astype(np.float64)
    if hasattr(np, op):
        contestants["numpy"] = row("NumPy float64"), lambda: _none(getattr(np, op)(wide))
    race(contestants, seconds)
    _told_last(contestants["enclosure"][0], enclosed, "float32")
    _told_last(contestants["rounding"][0], rounded, "float32")
    yield from (held for held, _ in contestants.values())
    if n >= 1_000_000:
        yield from _slow_functions(op, x, size, contestants[base][0].per_second, seconds / 4)


def _slow_functions(
    op: str, x: Array, size: str, base: float | None, seconds: float
) -> Iterator[Row]:
    slow = {}
    for who in peers.CALLS:
        if who == "NumPy longdouble" and not hasattr(np, op):
            continue
        few, work = peers.function(who, op, x)
        held = Row("elementwise", op, size, who, few, base="torch float64 cos", at_least=True)
        slow[who] = held, lambda work=work: _none(work())
    race(slow, seconds, rounds=3)
    for held, _ in slow.values():
        held.ratios = [held.elements / s / base for s in held.seconds] if base else []
        yield held


def statistics(n: int, seconds: float) -> Iterator[Row]:
    """ULP statistics, and the decision which roundings are certain; NumPy's shortest beside."""
    rng = np.random.default_rng(n)
    hi = rng.standard_normal(n) * 2.0 ** rng.integers(-20, 20, n)
    got = (hi * (1 + rng.choice([0.0, 2.0**-23, -(2.0**-24)], n))).astype(np.float32)
    exact = Enclosure(hi, 0.0, np.abs(hi) * 2.0**-48)
    bound, question = np.abs(hi) * 2.0**-20, Question.parse(("rounding", "float32"))

    def by_numpy() -> None:
        errors = np.abs(got - hi) / np.spacing(np.abs(hi.astype(np.float32)))
        errors.max(), errors.mean(), np.percentile(errors, (50, 99, 99.9))

    size, large = f"{n:,}".replace(",", " "), n >= 10_000_000
    rows = {
        "ULP statistics": lambda: _none(summarise(got, exact)),
        "ULP statistics and bound": lambda: _none(summarise(got, exact, bound)),
        "undecided roundings": lambda: _none(question.undecided(exact)),
    }
    bars = {"ULP statistics": 300.0, "undecided roundings": 200.0}
    contestants: dict[str, tuple[Row, Work]] = {}
    for work, run in rows.items():
        bar = bars.get(work) if large else None
        held = Row("statistics", work, size, "refkernels", n, bar=bar, at_least=True, unit="M/s")
        contestants[work] = held, run
    held = Row("statistics", "ULP statistics", size, "NumPy float64", n, unit="M/s", at_least=True)
    contestants["numpy"] = held, by_numpy
    race(contestants, seconds)
    yield from (held for held, _ in contestants.values())


FIRST_CALLS = {
    "matmul, 0.01 ulp": "matmul_ref as m; run = lambda: m.forward(a, a, certify=('ulp', f, 0.01))",
    "matmul, rounding": "matmul_ref as m; run = lambda: m.forward(a, a, certify=('rounding', f))",
    "matmul, float64": "matmul_ref as m; run = lambda: m.forward(a + 0.0 * d, a + 0.0 * d)",
    "layernorm": "layernorm_ref as m; run = lambda: m.forward(a)",
    "layernorm backward": "layernorm_ref as m; run = lambda: m.backward(a, a)",
    **{op: f"trig_ref as m; run = lambda: m.{op}(a)" for op in ("sin", "tan", "asin", "sinpi")},
    **{op: f"elementary_ref as m; run = lambda: m.{op}(a)"
       for op in ("exp", "log", "tanh", "erf", "gelu", "sigmoid")},
    "exp backward": "elementary_ref as m; run = lambda: m.backward('exp', a, a)",
    "ULP statistics": "metrology as m; run = lambda: m.summarise(a, m.summary.Enclosure(d))",
}  # fmt: skip
_FIRST = """
import time, numpy as np
a = np.random.default_rng(1).uniform(0.1, 0.9, (300, 300)).astype(np.float32)
d, f = a.astype(np.float64), "float32"
import refkernels.metrology.summary
from refkernels import {code}
began = time.perf_counter(); run(); print(time.perf_counter() - began)
"""


def startup(seconds: float) -> Iterator[Row]:
    """Import, help, and the first call of kernels in a new process whose cache is warm."""
    python = [sys.executable, "-c"]
    rows: dict[str, tuple[Row, Work]] = {}

    def process(command: list[str], less: float = 0.0) -> Work:
        def run() -> float:
            began = time.perf_counter()
            subprocess.run(command, check=True, capture_output=True)
            return max(time.perf_counter() - began - less, 0.0)

        return run

    def itself(code: str) -> Work:
        def run() -> float:
            done = subprocess.run([*python, code], check=True, capture_output=True, text=True)
            return float(done.stdout)

        return run

    imported = (
        "import time; t = time.perf_counter(); import refkernels; print(time.perf_counter() - t)"
    )
    help_command = [sys.executable, "-m", "refkernels", "--help"]
    for work, run, bar in (
        ("import refkernels", itself(imported), 0.1),
        ("refkernels --help", process(help_command), 0.4),
        ("python itself", process([*python, "pass"]), None),
    ):
        rows[work] = Row("startup", work, "", "refkernels", 1, bar=bar, unit="s"), run
    rows["python itself"][0].who = "Python"
    race(rows, seconds, rounds=7)
    first = {
        work: (
            Row("startup", f"first call: {work}", "300 x 300", "refkernels", 1, bar=1.0, unit="s"),
            itself(_FIRST.format(code=code)),
        )
        for work, code in FIRST_CALLS.items()
    }
    for held, run in first.values():
        held.seconds = _twice_if_slow(held, run)
    yield from (held for held, _ in (rows | first).values())


def _twice_if_slow(row: Row, run: Work) -> list[float]:
    """A call that is quick had its cache; a slow one has made it, and is asked again."""
    try:
        taken = run()
        if taken is not None and taken > 0.5:
            taken = run()
        return [] if taken is None else [taken]
    except subprocess.CalledProcessError as error:
        row.missing = (error.stderr.strip().splitlines() or [str(error)])[-1][:160]
        return []


def _none(_: Any) -> None:
    """The result is not the seconds."""
