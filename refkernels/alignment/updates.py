"""The optimizer's step as a question: weights, gradient and state in; weights and state out.

An optimizer is recognised by its type's name. The parameters of a group that decay alike are one
question; where the step depends on a tensor's norm (LAMB), each tensor is one. Of more than _MOST
elements the oracle is asked for that many, at even distances, and for all whose step is far from
that in float64.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from refkernels import registry
from refkernels.alignment.question import CapturedQuestion, NotJudged, Place, Read, Unjudged
from refkernels.alignment.recorded import Optimizer
from refkernels.alignment.run import Rank, Run, StepLine, StepTensors
from refkernels.alignment.tensors import STORED_AS, Array, grouped
from refkernels.arithmetic import formats
from refkernels.arithmetic.arrays import to_float64
from refkernels.op import Op

_Part = tuple[str, dict[str, Array], dict[str, Array]]  # a parameter, before and after
_MOST = 2**15  # elements of a question, but for those that are far from float64's step
_DECOUPLED = "decoupled_weight_decay"
_FEWEST = 64  # of them, in each parameter
_FAR = 4.0  # times the farthest of the elements at even distances
ABSENT: dict[str, Any] = {  # what absent hyper-parameters mean
    "momentum": 0.0, "dampening": 0.0, "nesterov": False, "weight_decay": 0.0, "amsgrad": False,
    "maximize": False, "do_bias_correction": True, "lazy_mode": False, "centered": False,
}  # fmt: skip


@dataclass(frozen=True)
class OptimizerKind:
    """How a type of optimizer is judged, an entry of updates.json. `params`: those of the op that
    are hyper-parameters, under other names where `renamed`; `own`: by framework, the forms that it
    documents as its own definition. No run is blamed for them, although a run with another
    framework's form is another training."""

    op: str
    state: Sequence[str]
    params: Sequence[str]
    renamed: Mapping[str, str] = field(default_factory=dict)
    whole: bool = False  # whether each tensor is a question
    refused: tuple[str, ...] = ("maximize", "lazy_mode")  # settings without an op when true
    own: Mapping[str, Sequence[str]] = field(default_factory=dict)


KINDS = {
    name: OptimizerKind(**entry)
    for name, entry in json.loads(Path(__file__).with_suffix(".json").read_text("utf-8")).items()
}
_OPTIONAL = {"vmax": "amsgrad", "mean": "centered"}  # states, by the setting that uses them


def definition(optimizer: Optimizer) -> str:
    """The op of an optimizer; ops that agree at these settings have one name."""
    kind = KINDS.get(optimizer.type)
    op = optimizer.type if kind is None else kind.op
    decays = any(group.hyperparameters.get("weight_decay") for group in optimizer.groups)
    if op == "adam" and any(g.hyperparameters.get(_DECOUPLED) for g in optimizer.groups):
        op = "adamw"
    if op == "adamw" and not decays:
        return "adam"
    return "sgd" if op == "momentum" else op


def judged_as(run: Run, other: Run) -> Run:
    """The run; an optimizer of the user's own is taken for the other run's: the name of its class
    says nothing, and the oracle sees what it computes."""
    theirs, own = other.first.optimizer, run.first.optimizer
    if theirs is None or own is None or own.type in KINDS:
        return run
    known = replace(own, type=theirs.type)  # of all ranks
    return replace(run, ranks=tuple(replace(rank, optimizer=known) for rank in run.ranks))


def changes(rank: Rank, names: Sequence[str]) -> bool:
    """Whether captured steps find or leave other numbers in a parameter: copies may be updated."""
    times = [(rank.tensors(step), when) for step in rank.steps for when in ("before", "after")]
    held = ([tensors.parameter(name, when) for tensors, when in times] for name in names)
    return any(len({x.tobytes() for x in some if x is not None}) > 1 for some in held)


def lost_decays(rank: Rank) -> Iterator[tuple[list[str], float, str]]:
    """Weights that are the nearest numbers of their format to their decayed values, of a group
    each, with lr * decay and the format: a decay in a step of its own, as AdamW's, is rounded away.
    A weight's distance to the next number is 2 u of it or less, and more than u."""
    optimizer = rank.optimizer
    if optimizer is None or definition(optimizer) != "adamw" or "master" in optimizer.state:
        return
    for index, group in enumerate(optimizer.groups):
        rates = [line.lr[index] for line in rank.lines if line.lr and index < len(line.lr)]
        decay = max(rates, default=0.0) * (group.hyperparameters.get("weight_decay") or 0.0)
        kept = [n for n in group.parameters if n in rank.parameters and n not in group.exempt]
        for dtype, names in grouped(kept, lambda name: rank.parameters[name].dtype).items():
            format = formats.get(STORED_AS[dtype])
            if 0.0 < decay < format.u / 2:
                yield names, decay, format.name


def moved_outside(rank: Rank) -> Iterator[tuple[int, str, list[str]]]:
    """Steps that do not begin with what the update of the step before left, of weights ("") or of a
    state of the optimizer, with its word and the parameters' names: something else has changed
    it, by more than it is rounded. A state that is absent is 0."""
    updated = {line.step for line in rank.lines if line.updates == 1} & set(rank.steps)
    for step in sorted({step + 1 for step in updated} & set(rank.steps)):
        moved: dict[str, list[str]] = {}
        last, now = rank.tensors(step - 1), rank.tensors(step)
        for name in (*rank.parameters, ""):
            old, begin = (one.held(name, "before") for one in (last, now))
            for word, left in last.held(name, "after").items():
                known = word in begin or (word and word in now.state(name, "after"))
                if known and not np.array_equal(left, begin.get(word, 0.0)):
                    half, begun = 2.0 ** (-formats.of(left).p / 2), to_float64(left)
                    ends = (to_float64(np.asarray(one.get(word, 0.0))) for one in (begin, old))
                    apart, change = (np.linalg.norm(end - begun) for end in ends)
                    if apart > half * change:
                        moved.setdefault(word, []).append(name)
        for word, names in moved.items():
            yield step, word, names


def read_updates(rank: Rank, line: StepLine, tensors: StepTensors) -> Read:
    """The questions of a step's update."""
    optimizer = rank.optimizer
    if optimizer is None or not line.updates or rank.skipped(line):
        return
    kind = KINDS.get(optimizer.type)
    if kind is None:
        reason = "no oracle is known for this optimizer"
        yield Unjudged("optimizer", optimizer.type, reason)
        return
    if line.updates > 1:
        reason = f"it was called {line.updates} times in step {line.step}"
        yield Unjudged("optimizer", optimizer.type, reason)
        return
    for order, group in enumerate(optimizer.groups):
        settings = {**group.hyperparameters, **dict(enumerate(line.changed or ())).get(order, {})}
        for exempt in (False, True):
            names = [name for name in group.parameters if (name in group.exempt) == exempt]
            for chosen in [[name] for name in names] if kind.whole else _by_age(tensors, names):
                question = rank, kind, line, tensors, order, settings, chosen, exempt
                try:
                    yield from _questions(*question)
                except NotJudged as reason:
                    name = f"group {order} of the optimizer"
                    yield Unjudged(name, optimizer.type, str(reason))


def _by_age(tensors: StepTensors, names: list[str]) -> list[list[str]]:
    """Parameters grouped by how often they were updated: one without a gradient falls behind."""

    def age(name: str) -> tuple[bytes | None, bool]:
        before, after = tensors.state(name), tensors.state(name, "after")
        step = after.get("step", before.get("step"))
        return None if step is None else step.tobytes(), "buf" in before

    return list(grouped(names, age).values())


def _questions(
    rank: Rank, kind: OptimizerKind, line: StepLine, tensors: StepTensors, order: int,
    settings: Mapping[str, Any], names: list[str], exempt: bool,
) -> Iterator[CapturedQuestion]:  # fmt: skip
    """The update of these parameters, of those that were recorded with a gradient."""
    if refused := [name for name in kind.refused if settings.get(name)]:
        raise NotJudged(f"its {refused[0]} is on")
    if kind.op == "sgd" and not settings.get("momentum"):
        kind = replace(kind, state=())
    if kind.op == "adam" and settings.get(_DECOUPLED):
        kind = KINDS["AdamW"]
    unused = [word for word, setting in _OPTIONAL.items() if settings.get(setting) is False]
    kind = replace(kind, state=tuple(word for word in kind.state if word not in unused))
    if settings.get("loss_scale", 1.0) != 1.0:
        raise NotJudged("it divides its gradients by a loss scale")
    parts = [part for name in names if (part := _tensors(kind, tensors, name)) is not None]
    if not parts:
        return
    layers = (one for one in rank.layers.values() if one.hyperparameters.get("sparse") is True)
    sparse = {name for layer in layers for name in layer.parameters.values()}
    if any(name in sparse for name, _, _ in parts):  # rows are added to the weights one by one
        raise NotJudged("one of its gradients is sparse")
    params = _params(kind, rank, line, tensors, order, settings, names, exempt)
    assert rank.optimizer is not None
    exemption = ", exempt from decay" if exempt else ""
    whole_group = f"group {order} ({len(parts)} parameters{exemption})"
    name = parts[0][0] if kind.whole or len(parts) == 1 else whole_group
    place = Place(line.step, "update", name, order, rank.rank)
    documented = tuple(KINDS[rank.optimizer.type].own.get(rank.framework, ()))
    share = _MOST / sum(before["param"].size for _, before, _ in parts)
    _refuse_mixed(parts)
    states = [_state_in_part(kind, tensors, part, share) for part in parts]
    if share < 1.0 and not kind.whole:
        parts = [_sampled(registry.get(kind.op), params, part, share) for part in parts]
    for asked in (parts, [] if kind.whole else [part for part in states if part[2]]):
        if asked:
            before, after = (_joined(side) for side in list(zip(*asked, strict=True))[1:])
            ends = np.cumsum([old["param"].size for _, old, _ in asked])
            yield CapturedQuestion(
                place, kind.op, "forward", before, params, after, rank.optimizer.type,
                tuple(zip((part for part, _, _ in asked), map(int, ends), strict=True)), documented,
            )  # fmt: skip


def _joined(parts: Sequence[dict[str, Array]]) -> dict[str, Array]:
    """The tensors of all parts that each of them has, one behind the other."""
    known = [word for word in parts[0] if all(word in part for part in parts)]
    return {word: np.concatenate([part[word] for part in parts]) for word in known}


def _state_in_part(kind: OptimizerKind, tensors: StepTensors, part: _Part, share: float) -> _Part:
    """What the update leaves of states of which the capture keeps elements at even distances."""
    name, before, _ = part
    some = _states(kind, tensors.state(name, "sampled"))
    left = {word: some[word] for word in kind.state if word in some}
    size, count = before["param"].size, min((array.size for array in left.values()), default=0)
    chosen = np.linspace(0, count - 1, min(max(_FEWEST, int(share * size)), count), dtype=int)
    places = chosen * (size - 1) // max(count - 1, 1)
    old = {word: array.reshape(-1)[places] for word, array in before.items()}
    return name, old, {word: array[chosen] for word, array in left.items()}


def _refuse_mixed(parts: list[_Part]) -> None:
    """Tensors that are cut into pieces must share one dtype, and each parameter's one size."""
    dtypes = set()
    known = [set.intersection(*({*part[side]} for part in parts)) for side in (1, 2)]
    for name, *sides in parts:
        arrays = [side[word] for side, words in zip(sides, known, strict=True) for word in words]
        dtypes |= {array.dtype for array in arrays}
        if len({array.size for array in arrays}) > 1:
            raise NotJudged(f"the tensors of {name} have several sizes")
    if len(dtypes) > 1:
        raise NotJudged("its tensors have several dtypes")


def _sampled(op: Op, params: Mapping[str, Any], part: _Part, share: float) -> _Part:
    """A share of a parameter's elements, at even distances, and those whose step is _FAR times as
    far from float64's as these are."""
    name, before, after = part
    size = before["param"].size
    even = np.linspace(0, size - 1, min(max(_FEWEST, int(share * size)), size), dtype=int)
    wide = {word: to_float64(array) for word, array in before.items()}
    exact = op.plain("forward", wide, params, formats.get("float64"))
    apart = np.zeros(size)
    with np.errstate(all="ignore"):
        for word, got in after.items():
            error = np.abs(to_float64(got) - exact[word])
            terms = np.abs(exact[word]) + np.abs(wide.get(word, 0.0))
            np.maximum(apart, np.divide(error, terms, out=error, where=error != 0.0), out=apart)
        far = np.flatnonzero(~(apart <= _FAR * np.max(apart[even], initial=0.0)))[:_MOST]
    chosen = np.union1d(even, far)
    old, new = ({word: side[word][chosen] for word in side} for side in (before, after))
    return name, old, new


def _tensors(kind: OptimizerKind, tensors: StepTensors, name: str) -> _Part | None:
    """A parameter's tensors before and after its update, flat unless the op asks for the whole."""
    param, after = tensors.parameter(name), tensors.parameter(name, "after")
    grad = tensors.received(name)
    if param is None or after is None or grad is None:
        return None
    states = (tensors.state(name, when) for when in ("before", "after", "sampled"))
    old, new, some = (_states(kind, state) for state in states)
    if "master" in {*old, *new, *some}:
        raise NotJudged("it keeps a wider copy of its parameters")
    inputs, outputs = {"param": param, "grad": grad}, {"param": after}
    for word in kind.state:
        if word in new or word in some:
            inputs[word] = old.get(word, np.zeros_like(param if word in some else new[word]))
            outputs |= {word: new[word]} if word in new else {}
        elif word not in _OPTIONAL and word != "buf":
            raise NotJudged(f"its state {word} was not recorded")
    if kind.whole:
        return name, inputs, outputs
    flat, new = ({word: side[word].reshape(-1) for word in side} for side in (inputs, outputs))
    return name, flat, new


def _states(kind: OptimizerKind, state: Mapping[str, Array]) -> dict[str, Array]:
    """The state, where the user's names of all that the op needs are not the op's: in its order."""
    missing = [word for word in kind.state if word not in state and word not in _OPTIONAL]
    others = [array for word, array in state.items() if word not in kind.state and array.ndim]
    named = zip(missing, others, strict=True) if len(missing) == len(others) else ()
    return {**state, **dict(named)}


def _params(
    kind: OptimizerKind, rank: Rank, line: StepLine, tensors: StepTensors, order: int,
    settings: Mapping[str, Any], names: list[str], exempt: bool,
) -> dict[str, Any]:  # fmt: skip
    op = registry.get(kind.op)
    params: dict[str, Any] = {}
    for name in kind.params:
        framework_name = kind.renamed.get(name, name)
        value = settings.get(framework_name, settings.get(name, ABSENT.get(name)))
        if name in op.params and value is not None:
            params[name] = bool(value) if isinstance(op.params[name], bool) else float(value)
    if exempt and "weight_decay" in params:
        params["weight_decay"] = 0.0
    lr = line.lr[order] if line.lr is not None and order < len(line.lr) else settings.get("lr")
    if lr is None or not math.isfinite(lr):
        raise NotJudged("its learning rate was not recorded")
    params["lr"] = float(lr)
    if "step" in op.params:
        params["step"] = _step_number(kind, tensors, names, settings, line, rank)
    return params


def _step_number(
    kind: OptimizerKind, tensors: StepTensors, names: list[str], settings: Mapping[str, Any],
    line: StepLine, rank: Rank,
) -> int:  # fmt: skip
    """The number of this step of the optimizer, from 1."""
    for when, steps_to_come in (("after", 0), ("before", 1)):
        for name in (*names, ""):
            step = tensors.state(name, when).get("step")
            if step is not None and step.size == 1 and float(step.item()) + steps_to_come >= 1:
                return int(step.item()) + steps_to_come
    for name in names:
        power = tensors.state(name).get("beta2_power")
        beta = settings.get("beta2")
        if power is not None and power.size == 1 and beta and 0 < float(power.reshape(-1)[0]) < 1:
            return max(round(math.log(float(power.reshape(-1)[0])) / math.log(float(beta))), 1)
    if kind.op == "sgd":  # only step 1 has no buffer yet
        return 1 if all("buf" not in tensors.state(name) for name in names) else 2
    updates = [earlier.updates for earlier in rank.lines if earlier.step <= line.step]
    return max(sum(updates), 1)
