"""What `judge` and the usual rules say about the same kernels: cheats, and right ones.

    python benchmarks/judging.py [--seeds 1]        tables in Markdown

The rules see what public harnesses show a kernel: uniform numbers of [0, 1) in one shape, compared
with NumPy's answer in float32. `judge` draws its own inputs, for each seed anew.

    1e-2, 1e-4      allclose with rtol = atol
    1e-5            allclose with torch's defaults for float32: rtol 1.3e-6, atol 1e-5
    2 x             FlashAttention's: the largest error is at most twice NumPy's
"""

from __future__ import annotations

import argparse
import ast
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from refkernels import registry
from refkernels.arithmetic.formats import BINARY32
from refkernels.frameworks import catalog, environments
from refkernels.frameworks.cells import Call, Cell
from refkernels.judging.examination import Examination
from refkernels.judging.judge import judge
from refkernels.truth import Truth

KERNELS = Path(__file__).parent.parent / "tests" / "judge"
SHAPES = {
    "matmul": {"a": (48, 256), "b": (256, 48)},
    "softmax": {"x": (64, 768)},
    "layernorm": {"x": (64, 768), "weight": (768,), "bias": (768,)},
    "gelu": {"x": (64, 768)},
}
RULES = ("1e-2", "1e-4", "1e-5", "2 x")


def kernels(folder: str) -> Iterator[tuple[Path, str, str]]:
    """File, function and op."""
    for path in sorted((KERNELS / folder).glob("*.py")):
        for part in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(part, ast.FunctionDef) and part.name[0] != "_":
                yield path, part.name, part.name.rpartition("_")[2]


def passed(path: Path, function: str, op: str) -> dict[str, bool]:
    """The rules that the kernel passes."""
    rng = np.random.default_rng(42)
    inputs = {n: rng.random(shape).astype(np.float32) for n, shape in SHAPES[op].items()}
    spec, _ = catalog.seat(f"{path}:{function}@op={op}")
    call = Call("forward", inputs, {})
    with Cell(spec.framework, environments.find(spec)) as cell:
        cell.writable = True
        with cell.session() as session:
            reply = session.call(call)
    known = registry.get(op)
    first = known.outputs[0]
    if reply.status != "ok" or first not in reply.outputs:
        return dict.fromkeys(RULES, False)
    truth = Truth(known, "forward", inputs, known.params, BINARY32)
    exact, theirs = np.asarray(truth.reference[first]), truth.plain()[first]
    got = reply.outputs[first]
    with np.errstate(invalid="ignore"):
        errors = [np.max(np.abs(one - exact)) for one in (got, theirs)]
    return {
        "1e-2": np.allclose(got, theirs, 1e-2, 1e-2),
        "1e-4": np.allclose(got, theirs, 1e-4, 1e-4),
        "1e-5": np.allclose(got, theirs, 1.3e-6, 1e-5),
        "2 x": bool(errors[0] <= 2 * errors[1]),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=1, help="how many draws of each kernel")
    seeds = range(parser.parse_args().seeds)
    examinations = {
        (op, seed): Examination(registry.get(op), "forward", "float32", seed)
        for op in SHAPES
        for seed in seeds
    }
    for folder in ("cheats", "right"):
        print(f"\n| {folder} | op | judge | {' | '.join(RULES)} |")
        print(f"|---|---|---|{'---|' * len(RULES)}", flush=True)
        runs, refused = 0, 0
        for path, function, op in kernels(folder):
            rules = passed(path, function, op)
            verdicts = [
                judge(
                    f"{path}:{function}", op, level="quick", seed=seed, causes=False,
                    examination=examinations[op, seed],
                ).verdict
                for seed in seeds
            ]  # fmt: skip
            runs, refused = runs + len(verdicts), refused + sum(v != "right" for v in verdicts)
            name = path.stem if folder == "cheats" else function
            told = ", ".join(dict.fromkeys(verdicts))
            marks = " | ".join("passes" if rules[rule] else "fails" for rule in RULES)
            print(f"| {name} | {op} | {told} | {marks} |", flush=True)
        print(f"\n{refused} of {runs} runs are not right.", flush=True)


if __name__ == "__main__":
    main()
