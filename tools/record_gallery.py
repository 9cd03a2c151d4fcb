"""Writes the larger arrays of the gallery: answers of the installed frameworks, and reconstructions
of TF32 and bfloat16 products.

    python tools/record_gallery.py refkernels/gallery/entries

The gallery's own arrays come from torch 2.13.0 (CPU) and paddle 3.3.1, one thread, on an x86-64
with AVX-512. Arrays of another machine may differ in bits; they then belong in an entry of their
own.
"""

import sys
from pathlib import Path

import numpy as np
import numpy.typing as npt

from refkernels.diagnosis.variants.precision import rounded
from refkernels.frameworks.gateway import Session
from refkernels.op import Case
from refkernels.registry import get

ROWS, FEATURES = slice(28, 32), slice(96, 160)  # kept of (32, 768) x (768, 768)
Arrays = dict[str, npt.NDArray[np.float32]]


def linear_case(bias: str) -> Case:
    name = f"linear/seed_linear[initialisation=randn,bias={bias},seed=0]"
    return next(case for case in get("linear").cases() if case.name == name)


def answers(framework: str, x: npt.NDArray[np.float32]) -> dict[str, npt.NDArray[np.float32]]:
    recorded = {}
    with Session(framework, settings={"OMP_NUM_THREADS": "1"}) as session:
        for op in ("sin", "cos"):
            recorded[op] = session.run(op, "forward", {"x": x}).outputs["y"]
        for bias in ("uniform", "zero"):
            inputs, _ = linear_case(bias).build("float32")
            arrays = {key: inputs[key] for key in ("x", "weight", "bias")}
            y = session.run("linear", "forward", arrays).outputs["y"]
            recorded[bias] = np.ascontiguousarray(y[ROWS, FEATURES])
    return recorded


def tf32_linear() -> Arrays:
    """A Linear(768, 768) like the thread's, with Xavier uniform weights and no bias, on 4 of its 64
    rows and 8 features: products of TF32 inputs, summed in float64 and rounded once."""
    generator = np.random.default_rng(34763)
    x = generator.standard_normal((64, 768)).astype(np.float32)
    weight = generator.uniform(-0.0625, 0.0625, (768, 768)).astype(np.float32)
    wide = rounded(x, "tf32").astype(np.float64) @ rounded(weight, "tf32").astype(np.float64).T
    error = np.abs(wide - x.astype(np.float64) @ weight.astype(np.float64).T)
    row, column = np.unravel_index(np.argmax(error), error.shape)
    rows, columns = [row, 0, 1, 2], [column, 0, 1, 2, 3, 4, 5, 6]
    print(f"TF32, all of (64, 768): largest error {error.max():.4f}, mean {error.mean():.4f}")
    return {
        "input.x": x[rows],
        "input.weight": weight[columns],
        "output.RTX 3090.y": wide[np.ix_(rows, columns)].astype(np.float32),
    }


def bf16_einsum() -> Arrays:
    """einsum("btd,adr->brta") of the thread's integers as a matrix product, (4, 10) by (10, 32):
    sums of products of inputs rounded to bfloat16."""
    a = np.arange(40, dtype=np.float32).reshape(4, 10)
    b = np.arange(320, dtype=np.float32).reshape(8, 10, 4).transpose(1, 0, 2).reshape(10, 32)
    c = rounded(a, "bfloat16").astype(np.float64) @ rounded(b, "bfloat16").astype(np.float64)
    return {"input.b": b, "output.jax on TPU.c": c.astype(np.float32)}


def main(folder: Path) -> None:
    np.savez_compressed(folder / "linear-tf32.npz", **tf32_linear())
    np.savez_compressed(folder / "einsum-bf16.npz", **bf16_einsum())
    x = np.random.default_rng(78265).standard_normal(1000).astype(np.float32)
    by_framework = {name: answers(name, x) for name in ("torch", "paddle")}
    for entry, key in (("sine-two-libraries", "sin"), ("cosine-two-libraries", "cos")):
        outputs = {f"output.{name}.y": by_case[key] for name, by_case in by_framework.items()}
        np.savez_compressed(folder / f"{entry}.npz", **{"input.x": x}, **outputs)
    for entry, key in (("linear-with-bias", "uniform"), ("linear-without-bias", "zero")):
        outputs = {f"output.{name}.y": by_case[key] for name, by_case in by_framework.items()}
        np.savez_compressed(folder / f"{entry}.npz", **outputs)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
