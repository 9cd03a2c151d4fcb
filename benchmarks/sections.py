"""The sections of the benchmark: matrix products, LayerNorm and other ops over rows, elementwise
functions, statistics."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import peers
from stopwatch import Row, Work, race

from refkernels import matmul_ref, registry
from refkernels.arithmetic import tiers
from refkernels.arithmetic.enclosure import Enclosure
from refkernels.arithmetic.question import Certify, Question
from refkernels.metrology import summarise

Array = np.ndarray
BASE_GEMM = "NumPy float64 @"
BLAS_SPINS = 0.15  # seconds; OpenBLAS keeps a core busy for 0.11 after a product
FUNCTIONS = ("sin", "cos", "exp", "log", "tanh", "erf", "hardswish")
FORMULAS = ("softmax", "log_softmax", "rms_norm")
BARRED = {"layernorm": (8192, 1024), "formulas": (4096, 1024)}  # shapes


def certainty(run: Callable[[], Any], format: str) -> str:
    """The tiers that answered, and the enclosures' width in ulp of the format."""
    with tiers.counted() as tally:
        answer = run()
    parts = answer if isinstance(answer, tuple) else (answer,)
    widths = np.concatenate([part.uncertainty(format).reshape(-1) for part in parts])
    usable = widths[np.isfinite(widths)]
    width = f"median {np.median(usable):.1e}, max {usable.max():.1e} ulp" if usable.size else ""
    return ", ".join([*(f"{tier} {count}" for tier, count in tally.items()), width])


def _certainty_last(row: Row, run: Callable[[], Any], format: str) -> None:
    if row.missing is None:
        row.note = certainty(run, format)


def matmul(n: int, seconds: float) -> Iterator[Row]:
    """float32 and float64 products of order n beside NumPy's float64 @. Slow peers compute a
    corner."""
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
        entry = row(work, "refkernels", n * n, bar=bar if bars else None)
        contestants[work] = entry, lambda run=runs[work]: _none(run())
    race(contestants, seconds, pause=BLAS_SPINS)
    for work, (_, _, _, format) in ours.items():
        _certainty_last(contestants[work][0], runs[work], format)
    slow = {}
    for who, m in peers.MATMUL.items():
        entry = row("product", who, min(m, n) ** 2)
        slow[who] = entry, peers.product(who, *wide)
    race(slow, seconds / 5, rounds=3)
    base = contestants[BASE_GEMM][0].per_second
    for entry, _ in slow.values():
        entry.ratios = [base / (entry.elements / s) for s in entry.seconds] if base else []
    yield from (entry for entry, _ in (contestants | slow).values())


def rows(op: str, shape: tuple[int, int], torch: peers.Torch, seconds: float) -> Iterator[Row]:
    """An op over rows of float32, forward, and forward and backward, beside torch's own in float64:
    LayerNorm with its certificate, others to 0.01 ulp."""
    rng, tuned = np.random.default_rng(shape[0]), op == "layernorm"
    found_op, size = registry.get(op), f"{shape[0]} x {shape[1]}"
    inputs = {"x": (3.0 * rng.standard_normal(shape)).astype(np.float32)}
    for name in ("weight", "bias"):
        if name in found_op.inputs:
            inputs[name] = rng.standard_normal(shape[1]).astype(np.float32)
    with_cotangent = {found_op.cotangent: rng.standard_normal(shape).astype(np.float32), **inputs}
    certify: Certify = "enclosure" if tuned else ("ulp", "float32", 0.01)

    def forward() -> Any:
        return tuple(found_op.evaluate("forward", inputs, {}, certify).values())

    def both() -> Any:
        return (*forward(), *found_op.evaluate("backward", with_cotangent, {}, certify).values())

    contestants: dict[str, tuple[Row, Work]] = {}
    runs = {"forward": forward, "forward + backward": both}
    section, bars = ("layernorm", (1.0, 1.0)) if tuned else ("formulas", (3.0, None))
    for (work, run), bar in zip(runs.items(), bars, strict=True):
        label = work if tuned else f"{op} {work}"
        base = f"torch float64 {label}"
        about: dict[str, Any] = {"elements": inputs["x"].size, "base": base}
        entry = Row(section, label, size, "refkernels", **about)
        entry.bar = bar if shape == BARRED[section] else None
        direction, arrays = ("forward", inputs) if run is forward else ("backward", with_cotangent)
        contestants[work] = entry, lambda run=run: _none(run())
        contestants[base] = (
            Row(section, label, size, base, **about), torch.work(op, direction, arrays),
        )  # fmt: skip
    race(contestants, seconds)
    for work, run in runs.items():
        _certainty_last(contestants[work][0], run, "float32")
    yield from (entry for entry, _ in contestants.values())


def inputs_of(op: str, n: int) -> Array:
    """float32 inputs: all magnitudes for sin, cos and log; unsaturated ranges for the rest."""
    rng = np.random.default_rng(n)
    if op in ("sin", "cos", "log"):
        bits = rng.integers(0, 0x7F800000, n, dtype=np.uint32)
        return bits.view(np.float32)
    reach = {"exp": 80.0, "tanh": 10.0, "erf": 5.0, "hardswish": 6.0}[op]
    return rng.uniform(-reach, reach, n).astype(np.float32)


def elementwise(op: str, n: int, torch: peers.Torch, seconds: float) -> Iterator[Row]:
    """One function's throughput with its certificate, beside torch's float64 cos and the others."""
    x, size = inputs_of(op, n), f"{n:,}".replace(",", " ")
    base = "torch float64 cos"
    waves = op in ("sin", "cos") and n >= 1_000_000
    known = registry.get(op)
    contestants: dict[str, tuple[Row, Work]] = {}

    def row(who: str, elements: int = n, **rest: Any) -> Row:
        entry = Row("elementwise", op, size, who, elements, base=base, at_least=True, **rest)
        return entry

    def enclosed() -> Any:
        return known.evaluate("forward", {"x": x}, {})["y"]

    def rounded() -> Any:
        return known.evaluate("forward", {"x": x}, {}, ("rounding", "float32"))["y"]

    entry = row("refkernels", bar=2.0 if waves else None)
    contestants["enclosure"] = entry, lambda: _none(enclosed())
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
    _certainty_last(contestants["enclosure"][0], enclosed, "float32")
    _certainty_last(contestants["rounding"][0], rounded, "float32")
    yield from (entry for entry, _ in contestants.values())
    if n >= 1_000_000 and op in peers.FUNCTIONS:
        yield from _slow_functions(op, x, size, contestants[base][0].per_second, seconds / 4)


def _slow_functions(
    op: str, x: Array, size: str, base: float | None, seconds: float
) -> Iterator[Row]:
    slow = {}
    for who in peers.CALLS:
        if who == "NumPy longdouble" and not hasattr(np, op):
            continue
        few, work = peers.function(who, op, x)
        entry = Row("elementwise", op, size, who, few, base="torch float64 cos", at_least=True)
        slow[who] = entry, lambda work=work: _none(work())
    race(slow, seconds, rounds=3)
    for entry, _ in slow.values():
        entry.ratios = [entry.elements / s / base for s in entry.seconds] if base else []
        yield entry


def statistics(n: int, seconds: float) -> Iterator[Row]:
    """ULP statistics, and the decision which roundings are certain, beside NumPy's pass over the
    same arrays, which is bound by memory, and beside NumPy's shortest statistics."""
    rng = np.random.default_rng(n)
    hi = rng.standard_normal(n) * 2.0 ** rng.integers(-20, 20, n)
    got = (hi * (1 + rng.choice([0.0, 2.0**-23, -(2.0**-24)], n))).astype(np.float32)
    exact = Enclosure(hi, 0.0, np.abs(hi) * 2.0**-48)
    bound, question = np.abs(hi) * 2.0**-20, Question.parse(("rounding", "float32"))

    def by_numpy() -> None:
        errors = np.abs(got - hi) / np.spacing(np.abs(hi.astype(np.float32)))
        errors.max(), errors.mean(), np.percentile(errors, (50, 99, 99.9))

    size, large = f"{n:,}".replace(",", " "), n >= 10_000_000
    third = np.empty(n)
    passes = {
        "np.subtract(got, exact)": (got, hi),
        "np.subtract(exact, radius)": (hi, exact.radius),
    }
    first, second = passes
    rows = {
        "ULP statistics": (lambda: _none(summarise(got, exact)), first, 2.5),
        "ULP statistics and bound": (lambda: _none(summarise(got, exact, bound)), first, None),
        "undecided roundings": (lambda: _none(question.undecided(exact)), second, 1.0),
    }
    contestants: dict[str, tuple[Row, Work]] = {}
    for work, (run, base, bar) in rows.items():
        bar = bar if large else None
        entry = Row("statistics", work, size, "refkernels", n, base=base, bar=bar)
        contestants[work] = entry, run
    for base, pair in passes.items():
        entry = Row("statistics", "a pass over memory", size, base, n, base=base)
        contestants[base] = entry, lambda pair=pair: _none(np.subtract(*pair, out=third))
    entry = Row("statistics", "ULP statistics", size, "NumPy float64", n, base=first)
    contestants["numpy"] = entry, by_numpy
    race(contestants, seconds)
    yield from (entry for entry, _ in contestants.values())


def _none(_: Any) -> None:
    """Drop the result: a Work returns seconds or None."""
