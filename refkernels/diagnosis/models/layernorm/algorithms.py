"""Runs LayerNorm's models on the question, and compares their bits with the kernel's."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np

from refkernels.diagnosis import evidence, formulas
from refkernels.diagnosis.fit import Fit
from refkernels.diagnosis.hypothesis import HARMLESS, ORDER, Candidate, Claim, Prediction
from refkernels.diagnosis.models.layernorm import MODELS, Model
from refkernels.diagnosis.problem import Array, Arrays, Problem

_THREADS = (1, 2, 4)  # some gradients' sums are cut by thread
_ROWS = ("y", "dx")
_SUMS_ALONE = ("mean", "dbias")  # plain sums: their bits do not show the steps after them
_AFTER_SUMS = {"naive_variance", "eps_rounded", "folded_normalisation"}


def find(problem: Problem, outputs: Arrays, fits: Mapping[str, Fit]) -> list[Claim]:
    """For each output, every model that has its bits or errors; of the others the nearest.

    A model without a fault is an order of summation. All those that fit are kept, because few rows
    distinguish few models. A model with a fault is tried only where none of them has all bits, and
    named where enough rows distinguish it from them or the output is wrong.
    """
    family: list[evidence.Tried] = []
    faultless = list(formulas.right_answers(problem))
    unexplained = set(outputs)
    for model, threads, answer in _answers(problem, list(outputs)):
        names = outputs.keys() if model.cause is None else set(unexplained)
        for name, bits in answer.items():
            same_format = name in names and bits.dtype == outputs[name].dtype
            if not same_format or bits.shape != outputs[name].shape:
                continue
            if name in _SUMS_ALONE and model.cause in _AFTER_SUMS:
                continue
            trial = evidence.tried(_claim(model, threads, name, bits), fits[name], outputs[name])
            if model.cause is None:
                if trial.fits:
                    trial = trial.beside(_order_agreement(problem, model, threads, name, bits))
                faultless.append({name: bits})
                if trial.share == 1.0:
                    unexplained.discard(name)
            elif trial.share == 1.0:
                trial = trial.against(_nearest(bits, faultless, name))
            family.append(trial)
    alike = {n: formulas.chance_agreement(problem, got, faultless, n) for n, got in outputs.items()}
    claims = evidence.nearest(family, beside_fits=True)
    return [claim.beside(alike[claim.output][claim.cause in HARMLESS]) for claim in claims]


def _claim(model: Model, threads: int, name: str, bits: Array) -> Claim:
    details: dict[str, object] = {"statement": model.statement, **model.details}
    if name in ("dweight", "dbias") and threads > 1:
        details["threads"] = threads
    return Claim(model.cause or ORDER, name, Prediction(bits=bits), details, model.name)


def run(problem: Problem, candidate: Candidate, like: Array) -> Array | None:
    """The bits that the model of a candidate gives."""
    model = next((model for model in MODELS if model.name == candidate.model), None)
    if model is None:
        return None
    params = {**problem.params, "threads": candidate.details.get("threads", 1)}
    answer = model.run(problem.inputs, params, problem.direction, problem.format)
    return answer.get(candidate.output)


def _answers(problem: Problem, wanted: list[str]) -> Iterator[tuple[Model, int, dict[str, Array]]]:
    """Every model's answer; with other numbers of threads only where gradients depend on them. A
    model that rounds eps has no fault where float32 holds eps."""
    sums = {"dweight", "dbias"} & set(wanted)
    eps = float(problem.params["eps"])
    for listed_model in MODELS:
        harmless = listed_model.cause == "eps_rounded" and float(np.float32(eps)) == eps
        model = replace(listed_model, cause=None) if harmless else listed_model
        for threads in _THREADS if sums and model.name.startswith("torch") else (1,):
            params = {**problem.params, "threads": threads}
            answer = model.run(problem.inputs, params, problem.direction, problem.format)
            if threads > 1:
                answer = {name: answer[name] for name in answer if name in sums}
            if answer:
                yield model, threads, answer


def _nearest(bits: Array, faultless: list[dict[str, Array]], name: str) -> Array | None:
    """The faultless model's answer that differs from these bits in the fewest rows."""
    known, rows = (answer[name] for answer in faultless if name in answer), name in _ROWS
    return min(known, key=lambda answer: evidence.apart(bits, answer, rows), default=None)


def _order_agreement(problem: Problem, model: Model, threads: int, name: str, bits: Array) -> float:
    """How often the model keeps its bits of a unit when its sums take their terms in other orders:
    the rows, for a gradient of a parameter; the columns, for a row's results."""
    x, params = problem.inputs["x"], {**problem.params, "threads": threads}
    shape = problem.params.get("normalized_shape") or problem.inputs["x"].shape[-1:]
    columns = math.prod((shape,) if isinstance(shape, int) else shape)
    flat = {n: array.reshape(-1, columns) for n, array in problem.inputs.items()}
    axis, rng = 0 if name in ("dweight", "dbias") else 1, np.random.default_rng(0)
    shares = []
    for _ in range(evidence.RANDOM_ORDERS):
        order = rng.permutation((x.size // columns, columns)[axis])
        inputs = {
            n: array if array.shape[axis] < order.size else np.take(array, order, axis)
            for n, array in flat.items()
        }
        inputs = {n: array.reshape(problem.inputs[n].shape) for n, array in inputs.items()}
        rerun = model.run(inputs, params, problem.direction, problem.format)[name]
        if name in _ROWS:
            rerun = rerun.reshape(-1, columns)[:, np.argsort(order)].reshape(rerun.shape)
        shares.append(1.0 - evidence.apart(bits, rerun, name in _ROWS) / _units(bits, name))
    return evidence.agreement(shares, _units(bits, name))


def _units(array: Array, name: str) -> int:
    """The number of observations in an output: rows of y and dx, elements of others."""
    rows = name in _ROWS and array.ndim > 0
    return max(array.size // array.shape[-1] if rows else array.size, 1)
