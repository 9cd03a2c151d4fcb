"""LayerNorm's models run on the question, and their bits compared with the kernel's."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np

from refkernels.diagnosis import evidence
from refkernels.diagnosis.fit import LIKE, Fit, fit, sized
from refkernels.diagnosis.hypothesis import (
    HARMLESS,
    ORDER,
    Candidate,
    Claim,
    Outcome,
    Prediction,
)
from refkernels.diagnosis.models.layernorm.catalogue import MODELS, NUMERICAL
from refkernels.diagnosis.models.layernorm.model import Model
from refkernels.diagnosis.models.layernorm.rowwise import normalized_shape
from refkernels.diagnosis.problem import Array, Arrays, Problem

_THREADS = (1, 2, 4)  # some gradients' sums are cut by thread
_ROWS = ("y", "dx")
_SUMS_ALONE = ("mean", "dbias")  # plain sums: their bits say nothing of what comes after them
_AFTER_SUMS = {
    "naive_variance", "unbiased_variance", "eps_outside_sqrt", "eps_rounded",
    "folded_normalisation", "constant_statistics",
}  # fmt: skip
ONE_ALGORITHM = 0.9  # two with so many equal bits: no few bits tell them apart
_ORDERS = 8  # of summation, at random


def find(problem: Problem, outputs: Arrays, fits: Mapping[str, Fit]) -> list[Claim]:
    """For each output every model that has its bits or its errors; of the others the nearest.

    A model with nothing to blame is an order of summation, and all of them that fit are found, as
    few rows tell few models apart. One with a cause is named only where no such model has all bits,
    and where enough rows tell it from them or something is wrong.
    """
    family: list[evidence.Tried] = []
    honest: dict[str, list[Array]] = {name: [] for name in outputs}
    open_ = set(outputs)
    for model, threads, answer in _answers(problem, list(outputs)):
        for name in [name for name in answer if name in (honest if model.cause is None else open_)]:
            got, bits = outputs[name], answer[name]
            if bits.shape != got.shape or bits.dtype != got.dtype:
                continue
            if name in _SUMS_ALONE and model.cause in _AFTER_SUMS:
                continue
            tried = evidence.tried(_claim(model, threads, name, bits), fits[name], got)
            if model.cause is None:
                if tried.fits:
                    tried = tried.beside(_shuffled(problem, model, threads, name, bits))
                honest[name].append(bits)
                if tried.share == 1.0:
                    open_.discard(name)
            elif tried.share == 1.0:
                tried = tried.against(_nearest(bits, honest[name], name))
            elif model in NUMERICAL and not fits[name].ordinary:
                tried = _alike(problem, got, tried)
            family.append(tried)
    alike = {name: _alike_to(outputs[name], honest[name], name) for name in outputs}
    claims = evidence.nearest(family, beside_fits=True)
    return [claim.beside(alike[claim.output][claim.cause in HARMLESS]) for claim in claims]


def _claim(model: Model, threads: int, name: str, bits: Array) -> Claim:
    details: dict[str, object] = {"statement": model.statement}
    if name in ("dweight", "dbias") and threads > 1:
        details["threads"] = threads
    return Claim(model.cause or ORDER, name, Prediction(bits=bits), details, model.name)


def run(problem: Problem, candidate: Candidate, like: Array) -> Array | None:
    """The bits that a candidate's model gives."""
    model = next((model for model in MODELS if model.name == candidate.model), None)
    if model is None:
        return None
    params = {**problem.params, "threads": candidate.details.get("threads", 1)}
    answer = model.run(problem.inputs, params, problem.direction, problem.format)
    return answer.get(candidate.output)


def _answers(problem: Problem, wanted: list[str]) -> Iterator[tuple[Model, int, dict[str, Array]]]:
    """Every model's answer; other numbers of threads only where the gradients depend on them. An
    eps that float32 holds is not rounded by a model that rounds it."""
    sums = {"dweight", "dbias"} & set(wanted)
    eps = float(problem.params["eps"])
    for one in MODELS:
        idle = one.cause == "eps_rounded" and float(np.float32(eps)) == eps
        model = replace(one, cause=None) if idle else one
        seen: list[dict[str, Array]] = []
        for threads in _THREADS if sums and model.name.startswith("torch") else (1,):
            params = {**problem.params, "threads": threads}
            answer = model.run(problem.inputs, params, problem.direction, problem.format)
            if threads > 1:
                answer = {name: answer[name] for name in answer if name in sums}
            if answer and answer not in seen:
                yield model, threads, answer


def _nearest(bits: Array, honest: list[Array], name: str) -> Array | None:
    """The answer without a fault that differs from a model's in the fewest rows."""
    rows = name in _ROWS
    return min(honest, key=lambda one: evidence.apart(bits, one, rows), default=None)


def _alike_to(got: Array, honest: list[Array], name: str) -> tuple[float, float]:
    """How often a model without a fault has the kernel's bits of a row, those left out that have
    them all: of those listed, for what blames; and of any, for a model of sums, by the rule of
    succession, for there are more right ways to sum than are listed."""
    distinct = {one.tobytes(): one for one in honest}.values()
    units = _units(got, name)
    wrong = [evidence.apart(got, one, name in _ROWS) for one in distinct]
    shares = [1.0 - n / units for n in wrong if n]
    return evidence.agreement(shares), (sum(shares) + 1.0) / (len(shares) + 2.0)


def _shuffled(problem: Problem, model: Model, threads: int, name: str, bits: Array) -> float:
    """How often the model has its own bits of a unit where the terms of its sums come in other
    orders: the rows, for a gradient of a parameter; the columns, for what is a row's. No list has
    every order, and one that is not listed has many of the same bits of few rows. 0 where orders
    hardly matter: then they are one algorithm."""
    x, params = problem.inputs["x"], {**problem.params, "threads": threads}
    columns = math.prod(normalized_shape(problem))
    flat = {k: a.reshape(-1, columns) for k, a in problem.inputs.items()}
    summed, rng = name in ("dweight", "dbias"), np.random.default_rng(0)
    shares = []
    for _ in range(_ORDERS):
        order = rng.permutation(x.size // columns if summed else columns)
        moved = {
            k: (a if summed and len(a) < len(order) else a[order] if summed else a[:, order])
            for k, a in flat.items()
        }
        given = {k: a.reshape(problem.inputs[k].shape) for k, a in moved.items()}
        again = model.run(given, params, problem.direction, problem.format)[name]
        if name in _ROWS:
            again = again.reshape(-1, columns)[:, np.argsort(order)].reshape(again.shape)
        shares.append(1.0 - evidence.apart(bits, again, name in _ROWS) / _units(bits, name))
    share = evidence.agreement(shares)
    return share if share <= ONE_ALGORITHM else 0.0


def _units(array: Array, name: str) -> int:
    """How many observations an output is: rows of y and dx, elements of others."""
    rows = name in _ROWS and array.ndim > 0
    return max(array.size // array.shape[-1] if rows else array.size, 1)


def _alike(problem: Problem, got: Array, tried: evidence.Tried) -> evidence.Tried:
    """Consistent: the errors are as large as the model's, within judge's factor either way, and the
    model's are more than rounding."""
    name, model = tried.claim.output, tried.claim.prediction.bits
    assert model is not None
    rounding = fit(problem, name, model, problem.truth)
    assert rounding is not None
    if rounding.ordinary:
        return tried
    result = sized(problem, name, got, model)
    if not 1.0 / LIKE <= result.over_plain <= LIKE:
        return tried
    equal = round(tried.share * got.size)
    outcome = Outcome(True, equal, got.size, result.over_bound, result.over_plain)
    claim = replace(tried.claim, prediction=Prediction(outcome=outcome))
    return replace(tried, claim=claim, fits=True)
