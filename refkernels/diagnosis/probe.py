"""Finds inputs on which the surviving explanations of an answer differ the most.

Out of many random inputs of the same shapes, it keeps those on which most pairs of survivors
differ; for functions of one variable, the arguments on which their values lie furthest apart. The
user runs the kernel on these inputs and asks `explain` again.
"""

from __future__ import annotations

import functools
import itertools
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from refkernels.arguments import as_path
from refkernels.arithmetic.mode import with_default_fenv
from refkernels.arithmetic.scalars import as_count
from refkernels.diagnosis import accumulators, evidence, models, orders, products, sources
from refkernels.diagnosis.explain import explain_kernel, one_kernel
from refkernels.diagnosis.fit import bits
from refkernels.diagnosis.hypothesis import Candidate, Hypothesis, scaled
from refkernels.diagnosis.problem import Array, Problem
from refkernels.metrology import ulp_distance
from refkernels.metrology.worst import text
from refkernels.op import Direction, Op
from refkernels.records.words import SCHEMA

_DRAWS = 12
_POOL = 4096  # arguments of a function to choose from
_KEPT = 64  # arguments that are kept
_SHOWN = 3
RIGHT = "right"  # the survivor that always exists: the right answer, rounded


@dataclass(frozen=True)
class Probe:
    """`inputs` to run next, and each survivor's prediction of `output` on them, by name; "right" is
    the correctly rounded answer."""

    op: str
    direction: Direction
    params: dict[str, Any]
    inputs: dict[str, Array]
    output: str
    predictions: dict[str, Array]

    @property
    def apart(self) -> dict[tuple[str, str], int]:
        """The number of elements in which each pair of survivors differs."""
        return {
            (a, b): evidence.apart(self.predictions[a], self.predictions[b])
            for a, b in itertools.combinations(self.predictions, 2)
        }

    def places(self) -> list[tuple[int, ...]]:
        """The elements that separate the most survivors."""
        patterns = np.stack([bits(output) for output in self.predictions.values()])
        sorted_patterns = np.sort(patterns.reshape(len(patterns), -1), axis=0)
        distinct = 1 + np.count_nonzero(np.diff(sorted_patterns, axis=0), axis=0)
        shape = next(iter(self.predictions.values())).shape
        best = np.argsort(-distinct, kind="stable")[:_SHOWN]
        return [tuple(map(int, np.unravel_index(place, shape))) for place in best]

    def to_dict(self) -> dict[str, Any]:
        """Strict JSON: the survivors, with their predictions of a few elements."""
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
            "apart": [{"a": a, "b": b, "elements": count} for (a, b), count in self.apart.items()],
        }

    def save(self, path: str | os.PathLike[str]) -> list[Path]:
        """Write the inputs into one .npz, or each as NAME.npy into a folder; no pickle.

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


@with_default_fenv
@np.errstate(all="ignore")  # infinities and NaN in inputs are data
def probe(
    op: str | Op,
    inputs: Mapping[str, Any],
    outputs: Mapping[str, Any],
    params: Mapping[str, Any] | None = None,
    direction: Direction = "forward",
    seed: int = 0,
) -> Probe:
    """Inputs on which the fitting explanations of one kernel's answer differ the most.

    Takes the arguments of `explain`, for one kernel. Raises ValueError where nothing fits, or where
    all that fits has equal bits on all drawn inputs; otherwise as `explain`.
    """
    seeds = as_count(seed, "seed", least=0)
    problem, answers = one_kernel(op, inputs, outputs, params, direction)
    candidates = explain_kernel(problem, answers).candidates
    fitting = [c for c in candidates if not c.ruled_out and c.evidence is not None]
    fitting = fitting or [c for c in candidates if c.exact and c.model]
    if not fitting:
        raise ValueError("Nothing that was tried fits the output, so there is nothing to probe.")
    output = fitting[0].output
    survivors = {
        _name(candidate): candidate for candidate in reversed(fitting) if candidate.output == output
    }

    def asked(drawn_inputs: dict[str, Array]) -> Probe:
        drawn = replace(problem, inputs=drawn_inputs)
        predictions = _predictions(drawn, output, dict(reversed(survivors.items())))
        settings = dict(problem.params)
        return Probe(problem.op.name, direction, settings, drawn_inputs, output, predictions)

    probes = map(asked, _draws(problem, np.random.default_rng(seeds)))
    single = problem.op.elementwise
    best = _sharpest(next(probes)) if single else max(probes, key=_separation)
    if not any(best.apart.values()):
        raise ValueError("All that fits has the same bits on every drawn input.")
    return best


def _separation(drawn: Probe) -> tuple[int, ...]:
    """How well the inputs separate survivors: pairs that differ, then the closest such pair."""
    counts = sorted(count for count in drawn.apart.values() if count)
    return (len(counts), *counts[:1])


def _name(candidate: Candidate) -> str:
    """A survivor's name: its cause with its model, or with its numbers."""
    if candidate.model:
        return f"{candidate.cause}: {candidate.model}"
    numbers = ", ".join(
        f"{name} {value}"
        for name, value in candidate.details.items()
        if isinstance(value, str | float | bool)
    )
    return f"{candidate.cause}: {numbers}" if numbers else candidate.cause


def _draws(problem: Problem, rng: np.random.Generator) -> Iterator[dict[str, Array]]:
    """Random inputs of the problem's shapes and formats."""
    largest = min(2.0**10, problem.format.max / 2.0**6)
    for _ in range(_DRAWS):
        drawn = {}
        for name, array in problem.inputs.items():
            shape = _shape(problem, name, array)
            values = rng.standard_normal(shape)
            if problem.op.elementwise and name == "x":
                size = np.exp2(rng.uniform(-4.0, np.log2(largest), shape))
                values = np.where(rng.random(shape) < 0.5, 2.0 * values, np.sign(values) * size)
            elif name in ("x", "a"):
                size = np.exp2(rng.uniform(-6.0, 3.0, (*shape[:-1], 1)))
                values = size * (values + rng.choice([0.0, 0.0, 1.0, 30.0]))
            # Where no given number is negative, as in sums of squares, no drawn one is.
            values = values if (array < 0).any() else np.abs(values)
            drawn[name] = values.astype(array.dtype)
        yield drawn


def _shape(problem: Problem, name: str, array: Array) -> tuple[int, ...]:
    """Functions get a pool of arguments, and some ops more rows. Products keep their shapes: they
    decide the order that a library chooses."""
    if problem.op.elementwise:
        return (_POOL,)
    rows, by_row = models.of(problem.op).rows, (*problem.op.row_inputs, problem.op.cotangent)
    if array.ndim == 2 and name in by_row:
        return (max(rows, array.shape[0]), array.shape[1])
    return array.shape


def _sharpest(drawn: Probe) -> Probe:
    """The arguments on which pairs of survivors lie furthest apart, one pair after the other."""
    ranked = []
    for a, b in itertools.combinations(drawn.predictions.values(), 2):
        distances = ulp_distance(a, b)
        ranked.append(np.argsort(distances)[::-1][: min(_KEPT, int(np.count_nonzero(distances)))])
    chosen: dict[int, None] = {}
    for places in itertools.zip_longest(*ranked):
        chosen.update({int(place): None for place in places if place is not None})
        if len(chosen) >= _KEPT:
            break
    kept = sorted(list(chosen)[:_KEPT])
    return replace(
        drawn,
        inputs={name: array[kept] for name, array in drawn.inputs.items()},
        predictions={name: bits[kept] for name, bits in drawn.predictions.items()},
    )


def _predictions(
    problem: Problem, output: str, survivors: Mapping[str, Candidate]
) -> dict[str, Array]:
    rounded_answers = {
        name: answer.round(problem.format_of(name))[0]
        for name, answer in problem.truth.reference.items()
    }
    right = rounded_answers[output]
    predictions = {RIGHT: right}
    variants = functools.cache(lambda: list(sources.variants(problem, rounded_answers)))
    for name, candidate in survivors.items():
        bits = predict(problem, candidate, right, variants)
        if bits is not None and bits.shape == right.shape:
            predictions[name] = bits
    return predictions


def predict(
    problem: Problem, candidate: Candidate, right: Array, again: Callable[[], Iterable[Hypothesis]]
) -> Array | None:
    """A kernel's answer to another question if a candidate is its cause; None where the cause does
    not determine it, as for a pattern in one answer."""
    if candidate.model is not None:
        return _by_model(problem, candidate, right)
    details = candidate.details
    name = details.get("param", details.get("solved"))
    if name in problem.op.params and "with" not in details:
        answer = problem.ask(params={name: details[details["solved"]]})
        return _rounded(answer, problem, candidate)
    if candidate.cause in ("scale_factor", "sign_error"):
        return _rounded(scaled(problem, candidate.output, _factor(candidate)), problem, candidate)
    for variant in again():
        same = variant.cause == candidate.cause and dict(variant.details) == dict(candidate.details)
        prediction = variant.predicts(candidate.output)
        if same and prediction is not None and prediction.answer is not None:
            return _rounded(prediction.answer, problem, candidate)
    return None


def _rounded(answer: Any, problem: Problem, candidate: Candidate) -> Array:
    values: Array = answer.reference[candidate.output].round(problem.format_of(candidate.output))[0]
    return values


def _factor(candidate: Candidate) -> float:
    try:
        return float(Fraction(str(candidate.details["factor"])))
    except ValueError:  # 1/sqrt(96)
        return float(np.mean(candidate.details["interval"]))


def _by_model(problem: Problem, candidate: Candidate, like: Array) -> Array | None:
    known = models.of(problem.op)
    if known.run is not None:
        return known.run(problem, candidate, like)
    product = products.of(problem, candidate.output)
    if product is None:
        return None
    empty = np.zeros(0, problem.format.storage)
    for order in orders.candidates(product.terms, product.bias is not None):
        if order.name == candidate.model:
            return orders.run(order, product, empty).reshape(like.shape)
    how = accumulators.by_name(str(candidate.model), product)
    return None if how is None else accumulators.run(how, product, empty).reshape(like.shape)
