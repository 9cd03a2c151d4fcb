"""How often a right kernel is blamed for a cause: the calibration of the bits of evidence.

    python benchmarks/calibration.py [--kernels 10000] [--first 0] [--workers 2] [--journal FILE]

Each kernel is right: it computes a named form of an op, either pass, its sums in a random or a
named order, with or without FMA; or it rounds the function's value after an error of a hundredth of
an ulp to an ulp. Some results are moved by an ulp, as in libraries. Ops, params, shapes, layouts,
formats and scales are drawn (`drawn`).

A kernel is blamed where a cause is matched or proven. An order of summation is no blame; it is
false for sums in a random order, unless some order also has nine tenths of the bits of fresh
answers. An overflow is true where the kernel's own arithmetic left the range of its format; and
statistics in 16 bits where its form saves them so, and has other bits without. The evidence of a
kernel is the largest of all causes that blame it falsely; of N, at most 2^-b N may have b bits.

FILE has a line for each kernel; a run with the same FILE leaves out those that it has. The results
are kept: calibration.json, of which `tools/write_readme.py` makes a table.
"""

from __future__ import annotations

import argparse
import collections
import json
import sys
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
import drawn

import refkernels
from refkernels import registry
from refkernels.arithmetic import formats
from refkernels.arithmetic.formats import Format
from refkernels.contexts.working import RoundedArithmetic
from refkernels.diagnosis.hypothesis import HARMLESS
from refkernels.op import Direction, Op
from refkernels.records.files import write_whole
from refkernels.records.words import SOUND

RESULTS = Path(__file__).parent / "results" / "cpu-x86_64-linux" / "calibration.json"
WAYS = [(op, direction) for op in registry.ops().values() for direction in op.directions]
ORDERS = ("random", "random", "sequential", "pairwise", "reversed")
RANGE = ("early_overflow", "flush_to_zero")  # true where a kernel leaves its format's range
SAVED = ("low_precision_statistics",)  # true where a kernel saves them so
TWIN = 0.9  # share of equal bits from which two algorithms count as one
BITS = range(11)
Generator = np.random.Generator
Array = np.ndarray
Arrays = dict[str, Any]


class Unsaved(RoundedArithmetic):
    """What the forward pass saves is not rounded."""

    def saved(self, a: Any) -> Any:
        return a


@dataclass(frozen=True)
class Right:
    """A right kernel. `form` and `options` are those of `Formulas.computed`; a function's has an
    error of `width` ulp instead. `share` of the results are then moved by an ulp."""

    op: Op
    direction: Direction
    params: dict[str, Any]
    dtype: np.dtype[Any]
    form: str
    options: dict[str, Any]
    width: float
    share: float

    def answer(self, inputs: Arrays, rng: Generator) -> Arrays:
        """Its answer. Raises ValueError where the op refuses the inputs."""
        arrays = {name: np.asarray(array) for name, array in inputs.items()}
        definition = self.op.definition
        with np.errstate(all="ignore"):
            if definition is None:
                exact = self.truth(arrays)
                rounded = {
                    name: y.round(self.format)[0].astype(self.dtype) for name, y in exact.items()
                }
                answers = {name: self._near(y, rng) for name, y in exact.items()}
            else:
                form = definition.of(self.direction).forms[self.form]
                question = (self.direction, form, arrays, self.settings, self.dtype.name)
                rounded = answers = definition.computed(*question, **self.options)
            answers = {name: self._moved(y, rng) for name, y in answers.items()}
        for invariant in self.op.invariants:  # right kernels satisfy them
            name = invariant.output
            if invariant.direction == self.direction and name in answers:
                wrong = invariant.violated(answers[name], arrays, self.settings)
                answers[name] = np.where(wrong, rounded[name], answers[name])
        return answers

    @property
    def format(self) -> Format:
        return formats.get(self.dtype.name)

    @property
    def settings(self) -> dict[str, Any]:
        return {**self.op.params, **self.params}

    def saves(self, inputs: Arrays) -> bool:
        """Whether it has other bits where what its forward pass saves is not rounded."""
        definition = self.op.definition
        if definition is None or self.dtype.itemsize > 2:
            return False
        arrays = {name: np.asarray(array) for name, array in inputs.items()}
        form = definition.of(self.direction).forms[self.form]
        question = (self.direction, form, arrays, self.settings, self.dtype.name)
        options = {**self.options, "scalars": definition.scalars}
        xp = Unsaved(formats.working_format(self.format), self.format, **options)
        with np.errstate(all="ignore"):
            exact, own = (
                definition.computed(*question, xp),
                definition.computed(*question, **self.options),
            )
        return any(not np.array_equal(exact[name], own[name], equal_nan=True) for name in own)

    def truth(self, inputs: Arrays) -> Arrays:
        arrays = {name: np.asarray(array) for name, array in inputs.items()}
        return self.op.evaluate(self.direction, arrays, self.settings)

    def _near(self, exact: Any, rng: Generator) -> Array:
        """fl(y + e ulp), as of a library whose error before rounding is e ulp; formats of 16 bits
        as in a library that works in float32."""
        working = np.dtype("f4") if self.dtype.itemsize == 2 else self.dtype
        right = exact.round(formats.get(working.name))[0].astype(working)
        error = np.abs(np.spacing(right)) * rng.uniform(-self.width, self.width, right.shape)
        if working == np.float64:
            near = np.where(np.abs(error) > 0.5 * np.abs(np.spacing(right)), right + error, right)
        else:
            near = (np.asarray(exact) + error).astype(working)
        keep = ~np.isfinite(right) | ~np.isfinite(near) | (right == 0)
        return np.where(keep, right, near).astype(self.dtype)

    def _moved(self, right: Array, rng: Generator) -> Array:
        """Some elements moved by one ulp, except in formats that are rounded once from float32."""
        if not self.share or right.dtype.itemsize < 4:
            return right
        up = np.where(rng.integers(2, size=right.shape), np.inf, -np.inf).astype(right.dtype)
        moved = np.nextafter(right, up)
        keep = (rng.random(right.shape) >= self.share) | ~np.isfinite(moved) | (right == 0)
        return np.where(keep, right, moved)


def right(seed: int) -> Right:
    """The kernel of that number."""
    rng = np.random.default_rng([2000, seed])
    op, direction = WAYS[seed % len(WAYS)]
    forms = [""] if op.definition is None else list(op.definition.of(direction).forms)
    options = {"order": str(rng.choice(ORDERS)), "seed": seed, "fma": bool(rng.integers(2))}
    return Right(
        op,
        direction,
        drawn.params(rng, op),
        drawn.DTYPES[rng.integers(len(drawn.DTYPES))],
        str(rng.choice(forms)),
        options,
        min(float(rng.choice([0.003, 0.03, 0.1, 0.5, 1.0])), (op.limit or 1.0) - 0.5),
        float(rng.choice([0.0, 0.0, 0.0, 0.03, 0.3])),
    )


def examine(seed: int) -> dict[str, Any] | None:
    """One right kernel explained; None where its op refuses what was drawn."""
    kernel, rng = right(seed), np.random.default_rng([3000, seed])
    asked = (kernel.op, kernel.direction, kernel.params, kernel.dtype)
    inputs = drawn.inputs(rng, *asked)
    start = time.process_time()
    try:
        outputs = kernel.answer(inputs, rng)
        explanation = refkernels.explain(
            kernel.op, inputs, outputs, kernel.params, kernel.direction
        )
    except ValueError:
        return None
    inside = in_range(kernel, inputs, outputs)
    true = (*HARMLESS, *(() if inside else RANGE), *(SAVED if kernel.saves(inputs) else ()))
    blaming = [c for c in explanation.candidates if c.cause not in true]
    record = {
        "seed": seed,
        "op": kernel.op.name,
        "direction": kernel.direction,
        "dtype": kernel.dtype.name,
        "form": kernel.form,
        "moved": kernel.share > 0.0,
        "elements": sum(np.size(array) for array in outputs.values()),
        "verdict": explanation.verdict,
        "flags": list(explanation.flags),
        "in_range": inside,
        "true": explanation.cause in true,
        "cause": explanation.cause,
        "confidence": explanation.confidence,
        "bits": max((c.evidence.bits for c in blaming if c.evidence), default=None),
        "fresh": None,
    }
    if explanation.cause in HARMLESS and explanation.confidence in ("proven", "matched"):
        output = next(c.output for c in explanation.candidates if c.cause == explanation.cause)
        named = kernel.options["order"] != "random"
        record["fresh"] = 1.0 if named else _fresh(kernel, inputs, output, rng)
    record["seconds"] = round(time.process_time() - start, 2)
    return record


def in_range(kernel: Right, inputs: Arrays, outputs: Arrays) -> bool:
    """Whether no infinity, zero or subnormal number is left of what is none."""
    truth = kernel.truth(inputs)
    for name, answer in outputs.items():
        right, got = np.asarray(truth[name]), np.asarray(answer).astype(np.float64)
        out = np.isfinite(right) & ~np.isfinite(got)
        out |= (right != 0) & (np.abs(got) < kernel.format.min_normal)
        if out.any():
            return False
    return True


def _fresh(kernel: Right, inputs: Arrays, output: str, rng: Generator) -> float:
    """The share of elements of fresh answers in which some order has the kernel's bits; 1 where all
    of them are correctly rounded, so that nothing tells orders apart."""
    kernel = replace(kernel, share=0.0)
    equal = elements = 0
    for _ in range(8):
        again = {name: _like(rng, np.asarray(array)) for name, array in inputs.items()}
        answers = kernel.answer(again, rng)
        explanation = refkernels.explain(kernel.op, again, answers, kernel.params, kernel.direction)
        if explanation.evidence["outputs"][output]["verdict"] == "rounding":
            found = [
                c.equal
                for c in explanation.candidates
                if c.output == output and c.cause in HARMLESS
            ]
            equal += max(found, default=0)
            elements += np.size(answers[output])
    return equal / elements if elements else 1.0


def _like(rng: Generator, array: Array) -> Array:
    """Other numbers of the same sizes and signs."""
    if array.dtype.kind in "iub":
        return array
    factors = rng.uniform(0.5, 1.0, array.shape)
    return (array.astype(np.float64) * factors).astype(array.dtype)


def false(record: dict[str, Any]) -> bool:
    """Whether a cause is matched or proven that the kernel does not have."""
    if record["confidence"] not in ("proven", "matched"):
        return False
    if record["fresh"] is not None:
        return record["fresh"] < TWIN
    return not record["true"]


def run(seeds: Iterable[int], workers: int) -> Iterator[dict[str, Any]]:
    """The records of all kernels that answer."""
    if workers < 2:
        yield from filter(None, map(examine, seeds))
        return
    with ProcessPoolExecutor(workers) as pool:
        yield from filter(None, pool.map(examine, seeds, chunksize=10))


def exceeding(records: list[dict[str, Any]]) -> list[int]:
    """How many kernels have at least 0, 1, ... bits of evidence against them."""
    bits = [r["bits"] for r in records if r["bits"] is not None]
    return [sum(of_kernel >= least for of_kernel in bits) for least in BITS]


def report(records: list[dict[str, Any]]) -> str:
    """The rates of evidence against them, what is false, and what is worse than rounding."""
    still = (r for r in records if r["in_range"] and not r["moved"])
    parts = {
        "False causes": [r for r in records if false(r)],
        "Verdicts worse than rounding": [r for r in still if r["verdict"] not in SOUND],
    }
    lines = [f"{len(records)} right kernels", "", "| bits | kernels | at most |", "|--:|--:|--:|"]
    found_by_bits = enumerate(exceeding(records))
    lines += [f"| {b} | {n} | {len(records) / 2**b:.1f} |" for b, n in found_by_bits]
    for title, found in parts.items():
        lines += ["", f"{title}: {len(found)}", *(f"- {json.dumps(r)}" for r in found)]
    return "\n".join(lines)


def summary(records: list[dict[str, Any]]) -> dict[str, Any]:
    """What is kept: the evidence, by op, direction and format, and what is false."""
    evidence: dict[str, Any] = collections.defaultdict(lambda: {"kernels": 0, "bits": []})
    for record in records:
        seen = evidence[f"{record['op']} {record['direction']} {record['dtype']}"]
        seen["kernels"] += 1
        seen["bits"] += [] if record["bits"] is None else [round(record["bits"], 1)]
    return {
        "schema": 1,
        "kind": "calibration",
        "kernels": len(records),
        "in_range": sum(record["in_range"] for record in records),
        "exceeding": exceeding(records),
        "false": [record for record in records if false(record)],
        "evidence": dict(sorted(evidence.items())),
    }


def kept(journal: Path | None) -> list[dict[str, Any]]:
    """The records of a journal, without a last line that was cut off."""
    if journal is None or not journal.exists():
        return []
    lines = journal.read_text().splitlines(keepends=True)
    return [json.loads(line) for line in lines if line.endswith("\n")]


def main() -> int:
    """0 where nothing false is proven or matched."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kernels", type=int, default=10_000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--journal", type=Path)
    arguments = parser.parse_args()
    records = kept(arguments.journal)
    if arguments.journal is not None:
        write_whole(arguments.journal, "".join(json.dumps(r) + "\n" for r in records))
    done = {record["seed"] for record in records}
    seeds = range(arguments.first, arguments.first + arguments.kernels)
    for record in run([seed for seed in seeds if seed not in done], arguments.workers):
        records.append(record)
        if arguments.journal is not None:
            with arguments.journal.open("a", encoding="utf-8") as file:
                file.write(json.dumps(record) + "\n")
        if false(record):
            print(json.dumps(record), file=sys.stderr, flush=True)
        if len(records) % 100 == 0:
            print(f"{len(records)} kernels, {sum(map(false, records))} false", file=sys.stderr)
    print(report(records))
    write_whole(RESULTS, json.dumps(summary(records)) + "\n")
    return int(any(map(false, records)))


if __name__ == "__main__":
    sys.exit(main())
