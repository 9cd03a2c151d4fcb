"""What tolerances accept: the share of elements within atol + rtol |y|, atol = rtol, and within
benchdnn's thresholds for float32 (oneDNN): t |y|, or t where |y| is at most 1e-5.

    python benchmarks/allclose.py [--draws 8]        writes allclose.json beside the results
    python benchmarks/allclose.py --plot             draws plots/judging-tolerances.png of it

Several draws of wrong answers and of one right kernel; y is computed in float64. benchdnn chooses
its own inputs: products of small integers, whose bits must be right. Its threshold for a product
says nothing about other numbers.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from refkernels.records.files import write_whole

OUT = Path(__file__).parent / "results" / "cpu-x86_64-linux" / "allclose.json"
TOLERANCES = (1e-2, 1e-4)
BENCHDNN = {"softmax": 10 * 2.0**-23, "LayerNorm": 5e-7, "gelu": 4e-6}
LENGTHS = tuple(2**k for k in range(4, 20))
Answers = tuple[Any, Any]  # a kernel's, and the truth


def zeros(rng: np.random.Generator) -> Iterator[Answers]:
    x = np.exp(rng.random(393_216))
    yield np.zeros_like(x), x / x.sum()


def half_inputs(rng: np.random.Generator) -> Iterator[Answers]:
    a, b = rng.random((64, 1024)), rng.random((1024, 64))
    yield a.astype(np.float16).astype(float) @ b.astype(np.float16).astype(float), a @ b


def constant(rng: np.random.Generator) -> Iterator[Answers]:
    k = 524_288
    y = rng.random((32, k)) @ rng.random((k, 32))
    yield np.full_like(y, k / 4), y


def fixed_statistics(rng: np.random.Generator) -> Iterator[Answers]:
    x = rng.standard_normal(1 << 22)
    yield x / math.sqrt(1.0 + 1e-5), (x - x.mean()) / np.sqrt(x.var() + 1e-5)


def tanh_form(rng: np.random.Generator) -> Iterator[Answers]:
    x = rng.random(20_000)
    y = [0.5 * value * (1.0 + math.erf(value / math.sqrt(2.0))) for value in x]
    yield 0.5 * x * (1.0 + np.tanh(math.sqrt(2.0 / math.pi) * (x + 0.044715 * x**3))), np.array(y)


def one_by_one(rng: np.random.Generator) -> Iterator[Answers]:
    """Right: float32 products added in order."""
    for _ in range(25):
        a, b = rng.standard_normal((2, 16, 131_072)).astype(np.float32)
        y = (a.astype(float) * b).sum(axis=1)
        yield np.cumsum(a * b, axis=1, dtype=np.float32)[:, -1], y


KERNELS: dict[str, Callable[[np.random.Generator], Iterator[Answers]]] = {
    "softmax of 393,216 numbers of [0, 1): zeros": zeros,
    "matmul of numbers of [0, 1), K = 1,024: inputs rounded to float16": half_inputs,
    "matmul of numbers of [0, 1), K = 524,288: the constant K/4": constant,
    "LayerNorm of 4,194,304 normal numbers: mean 0 and variance 1 for every row": fixed_statistics,
    "gelu on [0, 1): the tanh form for the erf form": tanh_form,
    "a *right* float32 matmul of normal numbers, K = 131,072, added one by one": one_by_one,
}


def shares(kernel: Callable[[np.random.Generator], Iterator[Answers]], seed: int) -> list[float]:
    """For each tolerance, the share of elements that it accepts in one draw; benchdnn's comes last,
    where it has one for the op."""
    answers = list(kernel(np.random.default_rng(seed)))
    got, exact = (np.concatenate([np.ravel(pair[part]) for pair in answers]) for part in (0, 1))
    error, size = np.abs(got - exact), np.abs(exact)
    allowed = [t + t * size for t in TOLERANCES]
    name = next(name for name, known in KERNELS.items() if known is kernel)
    allowed += [
        t * np.where(size > 1e-5, size, 1.0)
        for op, t in BENCHDNN.items()
        if name.startswith(op)
    ]  # fmt: skip
    return [float(np.mean(error <= limit)) for limit in allowed]


def used(error: Any, exact: Any, t: float) -> float:
    """The largest error, as a share of what the tolerance allows there."""
    return float(np.max(np.abs(error) / (t + t * np.abs(exact))))


def curves() -> dict[str, list[float]]:
    """The share of a tolerance that a kernel uses, by length; a test passes it up to 1."""
    rng = np.random.default_rng(0)
    used_shares: dict[str, list[float]] = {name: [] for name in CURVES}
    for n in LENGTHS:
        x = rng.random(n)
        y = np.exp(x) / np.exp(x).sum()
        for t in TOLERANCES:
            used_shares[f"zeros for softmax, {t:g}"].append(used(y, y, t))
        a, b = rng.standard_normal((2, 64, n)).astype(np.float32)
        wide = a.astype(float)
        exact = (wide * b).sum(axis=1)
        sums = np.cumsum(a * b, axis=1, dtype=np.float32)[:, -1]
        used_shares["a right float32 product, added one by one, 0.0001"].append(
            used(sums - exact, exact, 1e-4)
        )
        a, b = rng.random((2, 64, n))
        exact = (a * b).sum(axis=1)
        half = (a.astype(np.float16).astype(float) * b.astype(np.float16)).sum(axis=1)
        used_shares["a product of inputs rounded to float16, 0.01"].append(
            used(half - exact, exact, 1e-2)
        )
    return used_shares


CURVES = (
    "zeros for softmax, 0.01",
    "zeros for softmax, 0.0001",
    "a product of inputs rounded to float16, 0.01",
    "a right float32 product, added one by one, 0.0001",
)  # the kernel and the tolerance; all kernels but the last are wrong


def plot(curves: dict[str, list[float]]) -> bytes:
    """The curves: below 1 a test passes."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    from refkernels.reporting.figures import drawing

    with mpl.rc_context(drawing.STYLE):
        figure = Figure(figsize=(7.6, 4.8))
        axes = figure.add_axes((0.09, 0.32, 0.88, 0.61))
        axes.grid(axis="y")
        for i, (name, shares) in enumerate(curves.items()):
            right = name.startswith("a right")
            axes.plot(
                LENGTHS, shares, color=drawing.colour_of(i), marker=drawing.marker_of(i),
                markersize=4, linewidth=1.8 if right else 1.0, label=name.rpartition(", ")[0]
                + f", atol = rtol = {name.rpartition(', ')[2]}",
            )  # fmt: skip
        axes.axhline(1.0, color=drawing.LIMIT, linewidth=0.8)
        axes.text(16, 0.8, "below: it passes", color=drawing.LIMIT, fontsize=8, va="top")
        drawing.log_axis(axes, "x", LENGTHS, None)
        drawing.log_axis(axes, "y", [s for shares_ in curves.values() for s in shares_], None)
        axes.set_xlabel("elements in a row, terms in a sum")
        axes.set_title("The largest error, as a share of what allclose allows")
        figure.legend(loc="lower left", bbox_to_anchor=(0.07, 0.0), frameon=False, fontsize=8)
        return drawing.finish(figure, "judging-tolerances", "", "").png


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=8)
    parser.add_argument("--plot", action="store_true", help="draw the curves that are kept")
    arguments = parser.parse_args()
    if arguments.plot:
        kept_curves = json.loads(OUT.read_text(encoding="utf-8"))["curves"]
        write_whole(OUT.parent / "plots" / "judging-tolerances.png", plot(kept_curves))
        return
    shares_ = {
        name: [shares(kernel, seed) for seed in range(arguments.draws)]
        for name, kernel in KERNELS.items()
    }
    record = {"tolerances": TOLERANCES, "shares": shares_, "curves": curves()}
    write_whole(OUT, json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
