"""Inputs that tell apart what fits: where the surviving explanations of an answer differ the most.

Of many random inputs of the same shapes, those are kept on which each pair of survivors differs in
the most elements; for functions of one variable, the arguments on which their values lie furthest
apart. The user runs his kernel on them, and asks `explain` again.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from refkernels.arguments import as_path
from refkernels.arithmetic import formats
from refkernels.arithmetic.mode import in_default_mode
from refkernels.arithmetic.scalars import as_count
from refkernels.diagnosis import accumulators, evidence, models, orders, products, sources, sums
from refkernels.diagnosis.explain import explain_kernel, one_kernel
from refkernels.diagnosis.hypothesis import Candidate, Hypothesis, scaled
from refkernels.diagnosis.problem import Array, Problem
from refkernels.diagnosis.variants.precision import CAUSES, rounded
from refkernels.metrology import ulp_distance
from refkernels.metrology.worst import text
from refkernels.op import Direction, Op
from refkernels.records.words import SCHEMA

_DRAWS = 12
_POOL = 4096  # arguments of a function to choose from
_KEPT = 64  # of them
_SHOWN = 3
RIGHT = "right"  # the survivor that a right answer always has: it merely rounds


@dataclass(frozen=True)
class Probe:
    """`inputs` to run next, and what each survivor says there: `predictions` of `output` by name,
    "right" the correctly rounded answer."""

    op: str
    direction: Direction
    params: dict[str, Any]
    inputs: dict[str, Array]
    output: str
    predictions: dict[str, Array]

    @property
    def apart(self) -> dict[tuple[str, str], int]:
        """In how many elements each pair of survivors differs."""
        return {
            (a, b): evidence.apart(self.predictions[a], self.predictions[b])
            for a, b in itertools.combinations(self.predictions, 2)
        }

    def places(self) -> list[tuple[int, ...]]:
        """The elements that tell most survivors apart."""
        several = np.stack([evidence.bits(one) for one in self.predictions.values()])
        ordered = np.sort(several.reshape(len(several), -1), axis=0)
        kinds = 1 + np.count_nonzero(np.diff(ordered, axis=0), axis=0)
        shape = next(iter(self.predictions.values())).shape
        best = np.argsort(-kinds, kind="stable")[:_SHOWN]
        return [tuple(map(int, np.unravel_index(one, shape))) for one in best]

    def to_dict(self) -> dict[str, Any]:
        """Strict JSON: the survivors, and what they say in a few elements."""
        places = self.places()
        return {
            "schema": SCHEMA,
            "kind": "probe",
            "op": self.op,
            "direction": self.direction,
            "output": self.output,
            "inputs": {name: list(array.shape) for name, array in self.inputs.items()},
            "elements": int(next(iter(self.predictions.values())).size),
            "places": [list(place) for place in places],
            "survivors": [
                {"name": name, "says": [text(bits[place]) for place in places]}
                for name, bits in self.predictions.items()
            ],
            "apart": [{"a": a, "b": b, "elements": n} for (a, b), n in self.apart.items()],
        }

    def save(self, path: str | os.PathLike[str]) -> list[Path]:
        """Write the inputs: into one .npz, or NAME.npy each into a folder; no pickle.

        Raises OSError where they cannot be written."""
        target = as_path(path, "path")
        if target.suffix == ".npz":
            target.parent.mkdir(parents=True, exist_ok=True)
            arrays: dict[str, Any] = dict(self.inputs)
            np.savez(target, **arrays)
            return [target]
        target.mkdir(parents=True, exist_ok=True)
        for name, array in self.inputs.items():
            np.save(target / f"{name}.npy", array, allow_pickle=False)
        return [target / f"{name}.npy" for name in self.inputs]


@in_default_mode
@np.errstate(all="ignore")  # infinities and NaN in inputs are data
def probe(
    op: str | Op,
    inputs: Mapping[str, Any],
    outputs: Mapping[str, Any],
    params: Mapping[str, Any] | None = None,
    direction: Direction = "forward",
    seed: int = 0,
) -> Probe:
    """Inputs on which the explanations of one kernel's answer that fit differ the most.

    Takes what `explain` takes, of one kernel. Raises ValueError where nothing that was tried fits,
    or where what fits has the same bits on everything that was drawn; else as `explain`.
    """
    seeds = as_count(seed, "seed", least=0)
    problem, answers = one_kernel(op, inputs, outputs, params, direction)
    found = explain_kernel(problem, answers)
    named = [one for one in found.candidates if not one.ruled_out and one.evidence is not None]
    named = named or [one for one in found.candidates if one.exact and one.model]
    if not named:
        raise ValueError("Nothing that was tried fits the output, so there is nothing to probe.")
    output = named[0].output
    survivors = {_name(one): one for one in reversed(named) if one.output == output}
    rng = np.random.default_rng(seeds)
    best: Probe | None = None
    for inputs_ in _draws(problem, rng):
        drawn = replace(problem, inputs=inputs_)
        predictions = _predictions(drawn, output, dict(reversed(survivors.items())))
        one = Probe(problem.op.name, direction, dict(problem.params), inputs_, output, predictions)
        if problem.op.elementwise:
            return _apart(_sharpest(one))
        if best is None or _telling(one) > _telling(best):
            best = one
    assert best is not None
    return _apart(best)


def _apart(one: Probe) -> Probe:
    """The probe, where survivors differ on it."""
    if not any(one.apart.values()):
        raise ValueError("What fits has the same bits on all inputs that were drawn.")
    return one


def _telling(one: Probe) -> tuple[int, ...]:
    """How well the inputs tell survivors apart: pairs that differ, then the closest such pair."""
    counts = sorted(n for n in one.apart.values() if n)
    return (len(counts), *counts[:1])


def _name(one: Candidate) -> str:
    """What a survivor is called: its model, or its cause with its numbers."""
    if one.model:
        return f"{one.cause}: {one.model}"
    numbers = ", ".join(
        f"{k} {v}" for k, v in one.details.items() if isinstance(v, str | float | bool)
    )
    return f"{one.cause}: {numbers}" if numbers else one.cause


def _draws(problem: Problem, rng: np.random.Generator) -> Iterator[dict[str, Array]]:
    """Random inputs of the problem's shapes and formats."""
    most = min(2.0**10, problem.format.max / 2.0**6)
    for _ in range(_DRAWS):
        found = {}
        for name, array in problem.inputs.items():
            shape = _shape(problem, name, array)
            values = rng.standard_normal(shape)
            if problem.op.elementwise and name == "x":
                size = np.exp2(rng.uniform(-4.0, np.log2(most), shape))
                values = np.where(rng.random(shape) < 0.5, 2.0 * values, np.sign(values) * size)
            elif name in ("x", "a"):
                size = np.exp2(rng.uniform(-6.0, 3.0, (*shape[:-1], 1)))
                values = size * (values + rng.choice([0.0, 0.0, 1.0, 30.0]))
            # Where no number is negative, as in sums of squares, none may be.
            values = values if (array < 0).any() else np.abs(values)
            found[name] = values.astype(array.dtype)
        yield found


def _shape(problem: Problem, name: str, array: Array) -> tuple[int, ...]:
    """Functions get a pool of arguments, some ops more rows; products keep their shapes, by which
    libraries choose their order."""
    if problem.op.elementwise:
        return (_POOL,)
    rows, by_row = models.of(problem.op).rows, (*problem.op.row_inputs, problem.op.cotangent)
    if array.ndim == 2 and name in by_row:
        return (max(rows, array.shape[0]), array.shape[1])
    return array.shape


def _sharpest(one: Probe) -> Probe:
    """The arguments on which pairs of survivors lie furthest apart, by turns."""
    ranked = []
    for a, b in itertools.combinations(one.predictions.values(), 2):
        far = ulp_distance(a, b)
        ranked.append(np.argsort(far)[::-1][: min(_KEPT, int(np.count_nonzero(far)))])
    chosen: dict[int, None] = {}
    for places in itertools.zip_longest(*ranked):
        chosen.update({int(place): None for place in places if place is not None})
        if len(chosen) >= _KEPT:
            break
    kept = sorted(list(chosen)[:_KEPT])
    return replace(
        one,
        inputs={name: array[kept] for name, array in one.inputs.items()},
        predictions={name: bits[kept] for name, bits in one.predictions.items()},
    )


def _predictions(
    problem: Problem, output: str, survivors: Mapping[str, Candidate]
) -> dict[str, Array]:
    rounded_ = {
        name: answer.round(problem.format_of(name))[0]
        for name, answer in problem.truth.reference.items()
    }
    right = rounded_[output]
    predictions = {RIGHT: right}
    again = _Again(sources.variants(problem, rounded_))
    for name, one in survivors.items():
        bits = predict(problem, one, right, again)
        if bits is not None and bits.shape == right.shape:
            predictions[name] = bits
    return predictions


class _Again:
    """The variants of a question, each made once, however many survivors look for theirs."""

    def __init__(self, variants_: Iterator[Hypothesis]) -> None:
        self._left, self._made = variants_, list[Hypothesis]()

    def __iter__(self) -> Iterator[Hypothesis]:
        yield from self._made
        for one in self._left:
            self._made.append(one)
            yield one


def predict(
    problem: Problem, one: Candidate, right: Array, again: Iterable[Hypothesis]
) -> Array | None:
    """What a kernel says of another question if a candidate is its cause; None where that is not
    known, as of a pattern in one answer."""
    if one.model is not None:
        return _by_model(problem, one, right)
    if one.cause == "eps_differs":
        return _rounded(problem.ask(params={"eps": float(one.details["eps"])}), problem, one)
    if one.cause in ("scale_factor", "sign_error"):
        return _rounded(scaled(problem, one.output, _factor(one)), problem, one)
    for variant in again:
        same = variant.cause == one.cause and dict(variant.details) == dict(one.details)
        prediction = variant.predicts(one.output)
        if same and prediction is not None and prediction.answer is not None:
            return _rounded(prediction.answer, problem, one)
    return None


def _rounded(answer: Any, problem: Problem, one: Candidate) -> Array:
    values: Array = answer.reference[one.output].round(problem.format_of(one.output))[0]
    return values


def _factor(one: Candidate) -> float:
    try:
        return float(Fraction(str(one.details["factor"])))
    except ValueError:  # 1/sqrt(96)
        return float(np.mean(one.details["interval"]))


def _by_model(problem: Problem, one: Candidate, like: Array) -> Array | None:
    known = models.of(problem.op)
    if known.run is not None:
        return known.run(problem, one, like)
    product = products.of(problem, one.output)
    if product is None:
        return None
    run = _runner(problem, one, product)
    return None if run is None else run().reshape(like.shape)


def _runner(
    problem: Problem, one: Candidate, product: products.Product
) -> Callable[[], Array] | None:
    like = np.zeros(0, problem.format.storage)
    if one.cause in CAUSES:
        narrow = CAUSES[one.cause]
        product = replace(product, a=rounded(product.a, narrow), b=rounded(product.b, narrow))
    for order in orders.candidates(product.terms, product.bias is not None):
        if order.name == one.model:
            return lambda: sums.run(order, product, like)
    for format in (formats.BINARY16, formats.BFLOAT16):
        for accumulator in accumulators.known(format.name, problem.format.name):
            if accumulator.name == one.model:
                return lambda: accumulator.run(product, problem.format.name)
    return None
