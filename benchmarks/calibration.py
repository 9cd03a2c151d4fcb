"""How often a right kernel is blamed for a cause: the calibration of the bits of evidence.

    python benchmarks/calibration.py [--kernels 100000] [--first 0] [--workers 2] [--out FILE]

Each kernel is right: sums in lanes, blocks, chains of FMAs or random trees, in any order; functions
rounded after errors of a hundredth of an ulp to an ulp; LayerNorm by two passes, Welford and
float64. Some results may be off by one ulp, as in libraries. It answers 1 to 100 elements. A proven
or matched cause is false where it blames the kernel, or where every model that it names differs
from the kernel in more than a tenth of the elements of fresh answers. (A twin differs in about a
hundredth: LayerNorm's two passes with and without Chan's correction.) Prints the rates and the
false causes; FILE keeps the records, so that `--first` resumes the run.
"""

from __future__ import annotations

import argparse
import collections
import json
import math
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
import planted
from planted import Array, Arrays

import refkernels
from refkernels.diagnosis import evidence, orders, products, sums
from refkernels.diagnosis.explain import one_kernel
from refkernels.diagnosis.models.layernorm import MODELS
from refkernels.diagnosis.summation import SummationTree, replay

ORDERS = ("summation_order", "bias_first")
MOST = 100  # elements
TWIN = 0.9  # share of equal bits from which two algorithms count as one
DTYPES = tuple(map(np.dtype, ("f4", "f4", "f4", "f2", ml_dtypes.bfloat16, "f8")))
Answer = Callable[[Arrays], Arrays]
Generator = np.random.Generator


@dataclass(frozen=True)
class Right:
    """A right kernel: `draw` makes inputs of one shape, `answer` answers them; `share` of its
    results are then moved by an ulp."""

    op: str
    direction: Any
    draw: Callable[[Generator], Arrays]
    answer: Answer
    share: float = 0.0


def right(seed: int) -> Right:
    """The kernel of that number."""
    rng = np.random.default_rng([2000, seed])
    dtype = DTYPES[int(rng.integers(len(DTYPES)))]
    build = (_product, _product, _linear_backward, _norm, _norm, _function, _function)
    return build[seed % len(build)](rng, dtype)


def _values(rng: Generator, shape: tuple[int, ...], dtype: Any, kind: int) -> Array:
    values = rng.standard_normal(shape)
    if kind == 1:
        values = rng.uniform(0, 1, shape)
    elif kind == 2:
        values = values * np.exp(2 * rng.standard_normal(shape))
    elif kind == 3:
        values = values + 10.0
    elif kind == 4:
        values = rng.integers(-3, 4, shape)
    return values.astype(dtype)


def _sizes(rng: Generator) -> tuple[int, int]:
    """Rows and columns of 1 to 100 elements."""
    rows = int(np.exp(rng.uniform(0, math.log(MOST))))
    return rows, max(1, int(np.exp(rng.uniform(0, math.log(MOST / rows)))))


def _tree(rng: Generator, terms: int) -> SummationTree:
    """Any binary tree over the terms in any order; some with a chain of FMAs for its leaves."""
    free = list(rng.permutation(terms))
    nodes: list[tuple[int, ...]] = []
    chained = bool(rng.integers(2))
    while len(free) > 1:
        pair = [0, 1] if chained else rng.choice(len(free), 2, replace=False)
        picked = tuple(int(free[k]) for k in pair)
        free = [leaf for k, leaf in enumerate(free) if k not in pair]
        nodes.append(picked)
        free.insert(0, terms + len(nodes) - 1)
    return SummationTree.of(terms, nodes)


def _multiplied(rng: Generator, terms: int) -> Callable[[Array, Array], Array]:
    """A way to multiply matrices with sums of so many terms, (M, K) x (K, N)."""
    kind = int(rng.integers(3))
    kernel = planted.Kernel(rng)
    if kind == 0:
        return kernel.product
    if kind == 1:
        tree = _tree(rng, terms)
    else:
        named_orders = list(orders.candidates(terms, False))
        tree = named_orders[int(rng.integers(len(named_orders)))].tree
    return lambda a, b: replay(tree, np.ascontiguousarray(a), np.ascontiguousarray(b))


def _nudge(rng: Generator, array: Array, share: float) -> Array:
    """Some elements moved by one ulp, except in formats that are rounded once from float32."""
    if not share or array.dtype.itemsize < 4:
        return array
    up = np.where(rng.integers(2, size=array.shape), np.inf, -np.inf).astype(array.dtype)
    moved = np.nextafter(array, up)
    keep = (rng.random(array.shape) >= share) | ~np.isfinite(moved) | (array == 0)
    return np.where(keep, array, moved)


def _share(rng: Generator) -> float:
    return float(rng.choice([0.0, 0.0, 0.0, 0.03, 0.3]))


def _product(rng: Generator, dtype: Any) -> Right:
    """matmul, or linear with a bias added last, first, or not at all."""
    m, n = _sizes(rng)
    k, kind = int(np.exp(rng.uniform(0, math.log(200)))), int(rng.integers(5))
    share, multiply, late = _share(rng), _multiplied(rng, k), bool(rng.integers(2))
    wide = planted.working(dtype)
    small = float(rng.choice([1.0, 1.0, 1e-3, 1e-6]))

    def draw(rng: Generator) -> Arrays:
        x, w = (_values(rng, shape, dtype, kind) for shape in ((m, k), (n, k)))
        if late:
            return {
                "x": x,
                "weight": w,
                "bias": (small * _values(rng, (n,), dtype, 0)).astype(dtype),
            }
        return {"a": x, "b": np.ascontiguousarray(w.T)}

    def answer(inputs: Arrays) -> Arrays:
        a, b = (inputs["x"], inputs["weight"].T) if late else (inputs["a"], inputs["b"])
        total = multiply(a.astype(wide), b.astype(wide))
        if late:
            total = total + inputs["bias"].astype(wide)
        return {"y" if late else "c": total.astype(dtype)}

    return Right("linear" if late else "matmul", "forward", draw, answer, share)


def _linear_backward(rng: Generator, dtype: Any) -> Right:
    m, n = _sizes(rng)
    k = int(np.exp(rng.uniform(0, math.log(max(2, MOST / max(m, n))))))
    share, kind = _share(rng), int(rng.integers(5))
    multiply = {
        "dx": _multiplied(rng, n),
        "dweight": _multiplied(rng, m),
        "dbias": _multiplied(rng, m),
    }
    wide = planted.working(dtype)

    def draw(rng: Generator) -> Arrays:
        shapes = {"dy": (m, n), "x": (m, k), "weight": (n, k), "bias": (n,)}
        return {name: _values(rng, shape, dtype, kind) for name, shape in shapes.items()}

    def answer(inputs: Arrays) -> Arrays:
        dy, x, w = (inputs[name].astype(wide) for name in ("dy", "x", "weight"))
        gradients = {
            "dx": multiply["dx"](dy, w),
            "dweight": multiply["dweight"](dy.T, x),
            "dbias": multiply["dbias"](np.ones((1, m), wide), dy)[0],
        }
        return {name: v.astype(dtype) for name, v in gradients.items()}

    return Right("linear", "backward", draw, answer, share)


def _norm(rng: Generator, dtype: Any) -> Right:
    rows, n = _sizes(rng)
    n = max(n, 2)
    backward, affine = bool(rng.integers(2)), bool(rng.integers(2))
    offset = float(rng.choice([0.0, 1.0, 10.0, 100.0])) if dtype.itemsize > 2 else 0.0
    options: dict[str, Any] = {"variance": str(rng.choice(["two_pass", "welford", "corrected"]))}
    if rng.integers(4) == 0:
        options["statistics"] = np.float64
    share, kernel = _share(rng), planted.Kernel(rng)
    size = float(np.exp2(rng.uniform(-5, 5)))

    def draw(rng: Generator) -> Arrays:
        scale = size * np.exp(rng.uniform(-1, 1, (rows, 1)))
        inputs = {"x": (scale * (rng.standard_normal((rows, n)) + offset)).astype(dtype)}
        inputs["weight"] = np.ones(n, dtype)
        inputs["bias"] = np.zeros(n, dtype)
        if affine:
            inputs["weight"] = (1 + 0.5 * rng.standard_normal(n)).astype(dtype)
            inputs["bias"] = rng.standard_normal(n).astype(dtype)
        if backward:
            inputs["dy"] = rng.standard_normal((rows, n)).astype(dtype)
        return inputs

    def answer(inputs: Arrays) -> Arrays:
        return kernel.layernorm(inputs, **options)

    return Right("layernorm", "backward" if backward else "forward", draw, answer, share)


def _function(rng: Generator, dtype: Any) -> Right:
    """fl(f(x) + e ulp), as of a library whose error before rounding is e ulp."""
    names = ("sin", "cos", "tan", "sin", "cos", *planted.FUNCTIONS)
    name = str(rng.choice(names))
    size = int(np.exp(rng.uniform(0, math.log(MOST))))
    width = float(rng.choice([0.003, 0.03, 0.1, 0.5, 1.0]))
    high = float(rng.choice([1.0, 4.0, 100.0])) if name in ("sin", "cos", "tan") else 4.0
    low = 0.0 if name == "log1p" else -high

    def draw(rng: Generator) -> Arrays:
        return {"x": rng.uniform(low, high, size).astype(dtype)}

    def answer(inputs: Arrays) -> Arrays:
        x = inputs["x"]
        rounded = planted.exact(name, x)
        with np.errstate(all="ignore"):
            value = planted.FUNCTIONS[name](x.astype(np.longdouble))
            ulp = np.abs(np.spacing(rounded.astype(x.dtype))).astype(np.longdouble)
            value = value + ulp * rng.uniform(-width, width, x.shape)
        y = value.astype(np.float64).astype(x.dtype) if dtype != np.float64 else rounded
        if dtype == np.float64:
            y = _nudge(rng, rounded, min(1.0, width))
        largest = 1.0 if name in ("sin", "cos", "tanh", "erf", "sigmoid") else np.inf
        return {"y": np.clip(y, -largest, largest).astype(x.dtype)}

    return Right(name, "forward", draw, answer)


def examine(seed: int) -> dict[str, Any]:
    """One right kernel explained."""
    kernel = right(seed)
    rng = np.random.default_rng([3000, seed])
    inputs = kernel.draw(rng)
    outputs = {n: _nudge(rng, array, kernel.share) for n, array in kernel.answer(inputs).items()}
    explanation = refkernels.explain(kernel.op, inputs, outputs, direction=kernel.direction)
    best = explanation.candidates[0] if explanation.cause else None
    record = {
        "seed": seed,
        "op": kernel.op,
        "direction": kernel.direction,
        "elements": sum(array.size for array in outputs.values()),
        "verdict": explanation.verdict,
        "flags": list(explanation.flags),
        "cause": explanation.cause,
        "confidence": explanation.confidence,
        "bits": best.evidence.bits if best and best.evidence else None,
        "wrong": False,
    }
    if explanation.confidence in ("proven", "matched"):
        named = [
            candidate
            for candidate in explanation.candidates
            if (candidate.cause, candidate.confidence)
            == (explanation.cause, explanation.confidence)
        ]
        record["model"] = named[0].model
        record["fresh"] = 0.0
        if explanation.cause in ORDERS:
            record["fresh"] = max(_fresh(kernel, c.output, str(c.model), rng) for c in named)
        record["wrong"] = record["fresh"] < TWIN
    return record


def _fresh(kernel: Right, output: str, model: str, rng: Generator) -> float:
    """The share of elements of fresh answers in which a model has the kernel's bits."""
    equal = elements = 0
    for _ in range(8):
        inputs = kernel.draw(rng)
        answers = kernel.answer(inputs)
        got = answers[output]
        problem, _ = one_kernel(kernel.op, inputs, answers, {}, kernel.direction)
        if kernel.op == "layernorm":
            norm = next(known for known in MODELS if known.name == model)
            outputs = norm.run(problem.inputs, problem.params, kernel.direction, problem.format)
            bits = outputs[output]
        else:
            product = products.of(problem, output)
            assert product is not None
            named_orders = orders.candidates(product.terms, product.bias is not None)
            order = next(known for known in named_orders if known.name == model)
            bits = sums.run(order, product, got).reshape(got.shape)
        equal += int(np.count_nonzero(evidence.same(got, bits)))
        elements += got.size
    return equal / elements


def run(seeds: range, workers: int) -> Iterator[dict[str, Any]]:
    """All records."""
    if workers < 2:
        yield from map(examine, seeds)
        return
    with ProcessPoolExecutor(workers) as pool:
        yield from pool.map(examine, seeds, chunksize=50)


def report(records: list[dict[str, Any]]) -> str:
    """The rates, and what is false."""
    counts = collections.Counter((str(r["cause"]), str(r["confidence"])) for r in records)
    lines = [
        f"{len(records)} right kernels",
        "",
        "| cause | confidence | kernels |",
        "|---|---|--:|",
    ]
    lines += [f"| {cause} | {sure} | {n} |" for (cause, sure), n in counts.most_common()]
    twins = sum(r.get("fresh", 1.0) < 1.0 and not r["wrong"] for r in records)
    lines += ["", f"Twins of what is named: {twins}"]
    for sure in ("proven", "matched"):
        wrong = [r for r in records if r["wrong"] and r["confidence"] == sure]
        lines += ["", f"False {sure}: {len(wrong)}"]
        lines += [f"- {json.dumps(r)}" for r in wrong[:20]]
    return "\n".join(lines) + "\n"


def main() -> int:
    """0 where nothing false is proven."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kernels", type=int, default=100_000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    records = []
    seeds = range(arguments.first, arguments.first + arguments.kernels)
    for record in run(seeds, arguments.workers):
        records.append(record)
        if arguments.out is not None:
            with arguments.out.open("a", encoding="utf-8") as file:
                file.write(json.dumps(record) + "\n")
    print(report(records))
    return int(any(r["wrong"] and r["confidence"] == "proven" for r in records))


if __name__ == "__main__":
    sys.exit(main())
