"""What `allclose` lets through: the share of elements within atol + rtol |y|, atol = rtol.

    python benchmarks/allclose.py [--draws 8]        writes allclose.json beside the results

Each wrong answer, and one right kernel, on several draws; y is computed in float64.
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
    y = [0.5 * one * (1.0 + math.erf(one / math.sqrt(2.0))) for one in x]
    yield 0.5 * x * (1.0 + np.tanh(math.sqrt(2.0 / math.pi) * (x + 0.044715 * x**3))), np.array(y)


def one_by_one(rng: np.random.Generator) -> Iterator[Answers]:
    """Right: float32 products added in order."""
    for _ in range(25):
        a, b = rng.standard_normal((2, 16, 131_072)).astype(np.float32)
        y = (a.astype(float) * b).sum(axis=1)
        yield np.cumsum(a * b, axis=1, dtype=np.float32)[:, -1], y


KERNELS: dict[str, Callable[[np.random.Generator], Iterator[Answers]]] = {
    "softmax of 393,216 numbers of [0, 1): zeros": zeros,
    "matmul of numbers of [0, 1), K = 1,024: inputs cut to float16": half_inputs,
    "matmul of numbers of [0, 1), K = 524,288: the constant K/4": constant,
    "LayerNorm of 4,194,304 normal numbers: mean 0 and variance 1 for every row": fixed_statistics,
    "gelu on [0, 1): the tanh form for the erf form": tanh_form,
    "a *right* float32 matmul of normal numbers, K = 131,072, added one by one": one_by_one,
}


def shares(kernel: Callable[[np.random.Generator], Iterator[Answers]], seed: int) -> list[float]:
    """Per tolerance, the share of elements that it lets through in one draw."""
    answers = list(kernel(np.random.default_rng(seed)))
    got, exact = (np.concatenate([np.ravel(one[part]) for one in answers]) for part in (0, 1))
    return [float(np.mean(np.abs(got - exact) <= t + t * np.abs(exact))) for t in TOLERANCES]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=8)
    draws = range(parser.parse_args().draws)
    kept = {name: [shares(kernel, seed) for seed in draws] for name, kernel in KERNELS.items()}
    write_whole(OUT, json.dumps({"tolerances": TOLERANCES, "shares": kept}, indent=1) + "\n")


if __name__ == "__main__":
    main()
