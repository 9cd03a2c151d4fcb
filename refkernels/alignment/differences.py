"""What differs between two runs before any number is judged: data, weights, hyper-parameters.

In the order in which they are to be suspected. What makes two runs different trainings is told
apart from what is only noted: versions, threads, devices.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np

from refkernels import registry
from refkernels.alignment.kinds import LayerKind, kind_of, settings_of
from refkernels.alignment.matching import Matched, equal, oriented
from refkernels.alignment.run import Group, Layer, Rank, Run, StepLine
from refkernels.alignment.updates import definition

Topic = Literal[
    "data", "ranks", "weights", "model", "layer", "dtype", "optimizer", "schedule", "loss", "setup"
]  # fmt: skip


@dataclass(frozen=True)
class RunDifference:
    """One thing that is not the same. `where`: what it is of; `a`, `b`: what each run says, ""
    where it says nothing; `step`: where it is first seen; `decisive`: whether the runs are
    different trainings for it; `kind`: in which words it is told, with the numbers of `details`."""

    topic: Topic
    where: str
    a: str = ""
    b: str = ""
    step: int = 0
    decisive: bool = True
    kind: str = "value"
    details: Mapping[str, Any] = field(default_factory=dict)


# Hyper-parameters by what they mean where they are absent.
_ABSENT: dict[str, Any] = {
    "momentum": 0.0, "dampening": 0.0, "nesterov": False, "weight_decay": 0.0, "amsgrad": False,
    "maximize": False, "do_bias_correction": True, "lazy_mode": False, "centered": False,
}  # fmt: skip
_COMPARED = (*_ABSENT, "beta1", "beta2", "eps", "alpha", "rho", "lr_decay")
_OPEN = ("eps", "scale")  # None: the framework's own, which the oracle judges
_FRAMEWORKS = ("torch", "paddle", "oneflow", "mindspore")
_UNSAID = {"inplace", "training", "name", "device", "dtype", "full_name", "cls_name"}
_LISTED = 5  # layers or parameters without a partner
_ALIASES = {"use_nesterov": "nesterov"}


def differences(a: Run, b: Run, matched: Matched) -> tuple[RunDifference, ...]:
    """All of them, in the order of suspicion."""
    first, second = a.first, b.first
    read_alike = _shards(a, b)
    told = any(one.decisive for one in read_alike)  # then later ranks' batches differ for it
    found = [
        *_data(a, b, told),
        *read_alike,
        *_weights(first, second, matched),
        *_model(first, second, matched),
        *_layers(first, second, matched),
        *_optimizer(first, second, matched),
        *_schedule(first, second, matched),
        *_updates(a, b),
        *_setup(a, b),
    ]
    return tuple(found)


def _shared(a: Rank, b: Rank) -> Iterator[tuple[StepLine, StepLine]]:
    other = {line.step: line for line in b.lines}
    return ((line, other[line.step]) for line in a.lines if line.step in other)


def shards(run: Run) -> tuple[RunDifference, ...]:
    """What the ranks of one run read alike: for tensor-parallel runs as it should be, so noted."""
    return tuple(replace(one, decisive=False) for one in _ranks(run))


def _shards(a: Run, b: Run) -> tuple[RunDifference, ...]:
    """What ranks read alike; no difference where both runs do it."""
    found = [tuple(_ranks(run)) for run in (a, b)]
    if all(found) and found[0][0].kind == found[1][0].kind:
        return (*shards(a), *shards(b))
    return (*found[0], *found[1])


def _data(a: Run, b: Run, shared: bool) -> Iterator[RunDifference]:
    """Batches, rank by rank; of other numbers of ranks, the rows that all of them read. `shared`:
    ranks read one another's rows, and miss their own for it."""
    if len(a.ranks) != len(b.ranks):
        yield from _rows(a, b, shared)
        return
    for one, other in zip(a.ranks[:1] if shared else a.ranks, b.ranks, strict=False):
        for found in _batches(one, other):
            yield found
            return


def _rows(a: Run, b: Run, shared: bool) -> Iterator[RunDifference]:
    """The first step whose rows, of all ranks together, are others; where ranks share theirs, whose
    rows the other run does not read."""
    mine, other = (_rows_by_step(run) for run in (a, b))
    for step in sorted(mine.keys() & other.keys()):
        sets = set(mine[step]), set(other[step])
        within = shared and (sets[0] <= sets[1] or sets[1] <= sets[0])
        if not within and sorted(mine[step]) != sorted(other[step]):
            yield RunDifference("data", "batch", step=step, kind="batch")
            return


def _rows_by_step(run: Run) -> dict[int, list[str]]:
    """Of the steps whose rows every rank recorded."""
    found: dict[int, list[list[str]]] = {}
    for rank in run.ranks:
        for line in rank.lines:
            if line.rows is not None:
                found.setdefault(line.step, []).append(list(line.rows))
    whole = {step: rows for step, rows in found.items() if len(rows) == len(run.ranks)}
    return {step: list(itertools.chain(*rows)) for step, rows in whole.items()}


def _batches(a: Rank, b: Rank) -> Iterator[RunDifference]:
    """Batches by their hashes: of other rows, or of the same in another order."""
    for mine, other in _shared(a, b):
        if mine.batch_hash is None or other.batch_hash is None:
            continue
        if mine.batch_hash != other.batch_hash:
            same = bool(mine.rows and other.rows and sorted(mine.rows) == sorted(other.rows))
            late = {} if same else _late_batches(a, b)
            kind = "reordered" if same else "late_batch" if late else "batch"
            yield RunDifference(
                "data", "batch", step=mine.step, decisive=not same, kind=kind, details=late
            )
            return


def _late_batches(a: Rank, b: Rank) -> dict[str, Any]:
    """Whether one run trains on the batches of the other, some steps late."""
    mine, other = ([line.batch_hash for line in rank.lines] for rank in (a, b))
    for by in (1, -1, 2, -2):
        ahead, behind = (mine, other[by:]) if by > 0 else (mine[-by:], other)
        pairs = list(zip(ahead, behind, strict=False))
        if len(pairs) > 1 and len(set(mine)) > 1 and all(one == late for one, late in pairs):
            return {"run": "B" if by > 0 else "A", "steps": abs(by)}
    return {}


def _ranks(run: Run) -> Iterator[RunDifference]:
    """Ranks that read the same rows: all of them train on one shard, or shards overlap."""
    ranks = [rank for rank in run.ranks if rank.lines]
    for one, other in itertools.combinations(ranks, 2):
        for mine, theirs in _shared(one, other):
            rows = set(mine.rows or ()), set(theirs.rows or ())
            if shared := len(rows[0] & rows[1]):
                same = shared == len(rows[0]) == len(rows[1])
                told = {"one": one.rank, "other": other.rank, "shared": shared}
                kind = "same_rows" if same else "shared_rows"
                yield RunDifference(
                    "ranks", run.folder.name, step=mine.step, kind=kind, details=told
                )
                return


def _weights(a: Rank, b: Rank, matched: Matched) -> Iterator[RunDifference]:
    """Initial weights, of the first step that both captured; by hash where none was."""
    if a.framework == b.framework and a.initial_parameters == b.initial_parameters:
        return
    steps = sorted(set(a.steps) & set(b.steps))
    if not steps or steps[0] != min((line.step for line in a.lines), default=0):
        if a.framework == b.framework:
            alike = not (a.perturbed or b.perturbed)
            yield RunDifference("weights", "", decisive=alike, kind="all_weights")
        return
    mine, other = a.tensors(steps[0]), b.tensors(steps[0])
    for name, partner in matched.parameters.items():
        one, two = mine.parameter(name), other.parameter(partner)
        if one is None or two is None or equal(one, two):
            continue
        if sorted(one.shape) != sorted(two.shape):
            shapes = str(one.shape), str(two.shape)
            yield RunDifference("weights", name, *shapes, steps[0], kind="shape")
            continue
        turned = oriented(one, two)
        apart = _apart(one.astype(np.float64), turned.astype(np.float64))
        expected = _moved(a, name) + _moved(b, partner)
        yield RunDifference(
            "weights", name, step=steps[0], decisive=apart > expected, kind="weights",
            details={"apart": apart, "elements": int(one.size)},
        )  # fmt: skip


def _moved(rank: Rank, name: str) -> int:
    """How many of a parameter's elements a perturbation has moved."""
    return int(rank.perturbed is not None and rank.perturbed.get("parameter") == name)


def _apart(one: Any, two: Any) -> int:
    return int(np.count_nonzero(one != two))


def _model(a: Rank, b: Rank, matched: Matched) -> Iterator[RunDifference]:
    for which, names, rank in (("A", matched.only_a, a), ("B", matched.only_b, b)):
        judged = [
            name
            for name in names
            if isinstance(kind_of(rank.layers[name], rank.layers[name].hyperparameters), LayerKind)
        ]
        for name in judged[:_LISTED]:
            told = {"run": which, "type": rank.layers[name].type}
            yield RunDifference("model", name, kind="lone_layer", details=told)
    for which, names in (("A", matched.lone_a), ("B", matched.lone_b)):
        for name in names[:_LISTED]:
            yield RunDifference("model", name, kind="lone_parameter", details={"run": which})
    for name, partner in matched.parameters.items():
        one, two = a.parameters[name], b.parameters[partner]
        if one.dtype != two.dtype:
            yield RunDifference("dtype", name, one.dtype, two.dtype)
        if one.trainable != two.trainable:
            frozen = "B" if one.trainable else "A"
            yield RunDifference("model", name, kind="frozen", details={"run": frozen})


def _layers(a: Rank, b: Rank, matched: Matched) -> Iterator[RunDifference]:
    """Params of the same layers, as their ops take them."""
    settings = _settings_of_layers(a), _settings_of_layers(b)
    for name, partner in matched.layers.items():
        one = kind_of(a.layers[name], settings[0][name])
        two = kind_of(b.layers[partner], settings[1][partner])
        if isinstance(one, str) or isinstance(two, str):
            yield from _declared(a.layers[name], b.layers[partner], a.framework == b.framework)
            continue
        if one.op != two.op:
            yield RunDifference("layer", name, one.op, two.op)
            continue
        mine, other = one.params(settings[0][name]), two.params(settings[1][partner])
        if isinstance(mine, str) or isinstance(other, str):
            continue
        absent = registry.get(one.op).params
        for param in dict.fromkeys((*mine, *other)):
            pair = mine.get(param, absent.get(param)), other.get(param, absent.get(param))
            if param in _OPEN and None in pair:
                continue
            if param != "normalized_shape" and not _alike(*pair):
                yield RunDifference("layer", f"{name}: {param}", _shown(pair[0]), _shown(pair[1]))


def _declared(one: Layer, two: Layer, same: bool) -> Iterator[RunDifference]:
    """What layers without an oracle say of themselves: a framework's own type, in one framework;
    how much is dropped, in any."""
    mine, other = one.hyperparameters, two.hyperparameters
    own = same and one.module == two.module and one.module.partition(".")[0] in _FRAMEWORKS
    names = sorted(mine.keys() & other.keys() - _UNSAID) if own else ["p"]
    for name in names:
        pair = mine.get(name), other.get(name)
        if None not in pair and not _alike(*pair):
            yield RunDifference("layer", f"{one.name}: {name}", _shown(pair[0]), _shown(pair[1]))


def _settings_of_layers(rank: Rank) -> dict[str, dict[str, Any]]:
    """With what the first captured step's calls were given."""
    tensors = rank.tensors(rank.steps[0]) if rank.steps else None
    calls = {name: tensors.calls(name) if tensors else () for name in rank.layers}
    return {
        name: settings_of(rank, layer, next(iter(calls[name]), None))
        for name, layer in rank.layers.items()
    }


def _optimizer(a: Rank, b: Rank, matched: Matched) -> Iterator[RunDifference]:
    """Types, and each parameter's own settings; said once for all parameters that share it."""
    if a.optimizer is None or b.optimizer is None:
        return
    types = a.optimizer.type, b.optimizer.type
    if types[0] != types[1]:
        redefined = definition(a.optimizer) != definition(b.optimizer)
        yield RunDifference("optimizer", "type", *types, decisive=redefined)
    found: dict[tuple[str, str, str], list[str]] = {}
    lone: dict[str, list[str]] = {}
    settings = _settings(a), _settings(b)
    for name, partner in matched.parameters.items():
        if name not in settings[0] or partner not in settings[1]:
            if (name in settings[0]) != (partner in settings[1]):
                lone.setdefault("B" if name in settings[0] else "A", []).append(name)
            continue
        mine, other = settings[0][name], settings[1][partner]
        decays = mine.get("weight_decay") and other.get("weight_decay")
        coupled = ("decoupled_weight_decay",) if types[0] == types[1] and decays else ()
        for param in (*_COMPARED, *coupled):
            pair = mine.get(param, _ABSENT.get(param)), other.get(param, _ABSENT.get(param))
            if None not in pair and not _alike(*pair):
                found.setdefault((param, _shown(pair[0]), _shown(pair[1])), []).append(name)
    for run, names in lone.items():
        more = {"run": run, "more": len(names) - 1}
        yield RunDifference("optimizer", names[0], kind="not_updated", details=more)
    for (param, one, two), names in found.items():
        more = {"param": param, "more": len(names) - 1}
        yield RunDifference("optimizer", names[0], one, two, kind="setting", details=more)


def _settings(rank: Rank) -> dict[str, Mapping[str, Any]]:
    assert rank.optimizer is not None
    return {name: _of(group, name) for group in rank.optimizer.groups for name in group.parameters}


def _of(group: Group, name: str) -> Mapping[str, Any]:
    own = {_ALIASES.get(key, key): value for key, value in group.hyperparameters.items()}
    return {**own, "weight_decay": 0.0} if name in group.exempt else own


def _alike(one: Any, two: Any) -> bool:
    """Equal, or equal as float32 holds them."""
    if isinstance(one, list | tuple) or isinstance(two, list | tuple):
        return _alike_in_each(one, two)
    if isinstance(one, bool | str) or isinstance(two, bool | str) or one is None or two is None:
        return bool(one == two)
    try:
        return float(one) == float(two) or np.float32(one) == np.float32(two)
    except (TypeError, ValueError):
        return bool(one == two)


def _alike_in_each(one: Any, two: Any) -> bool:
    """A number stands for every axis."""
    count = max(len(value) for value in (one, two) if isinstance(value, list | tuple))
    several = [
        tuple(value) if isinstance(value, list | tuple) else (value,) * count
        for value in (one, two)
    ]
    if len(several[0]) != len(several[1]):
        return False
    return all(_alike(*pair) for pair in zip(*several, strict=True))


def _shown(value: Any) -> str:
    return f"{value:.9g}" if isinstance(value, float) else str(value)


def _schedule(a: Rank, b: Rank, matched: Matched) -> Iterator[RunDifference]:
    """The first step whose learning rates differ by more than float32 rounds them, by the groups
    that parameters are in."""
    groups = dict.fromkeys(
        (a.parameters[name].group, b.parameters[partner].group)
        for name, partner in matched.parameters.items()
    )
    skips = [mine.step for mine, other in _shared(a, b) if a.skipped(mine) != b.skipped(other)]
    told = set()
    for mine, other in _shared(a, b):
        for one, two in groups:
            left, right = _rate(mine, one), _rate(other, two)
            if left is None or right is None or (one, two) in told:
                continue
            if not math.isclose(left, right, rel_tol=2.0**-23):
                if skips and mine.step > skips[0] and _alike_by_update(a, b, one, two):
                    continue
                told.add((one, two))
                late = _late(a, b, one, two)
                kind = "late" if late else "rate"
                rates = _shown(left), _shown(right)
                yield RunDifference(
                    "schedule", f"{one}", *rates, mine.step, kind=kind, details=late
                )


def _alike_by_update(a: Rank, b: Rank, one: int | None, two: int | None) -> bool:
    """Whether the rates are the same from update to update: a schedule may wait with a skipped
    one."""
    mine = [_rate(line, one) for line in a.lines if line.updates and not a.skipped(line)]
    other = [_rate(line, two) for line in b.lines if line.updates and not b.skipped(line)]
    return all(
        left is None or right is None or math.isclose(left, right, rel_tol=2.0**-23)
        for left, right in zip(mine, other, strict=False)
    )


def _updates(a: Run, b: Run) -> Iterator[RunDifference]:
    """The first step in which one run updates its weights more often than the other; and before it,
    the first in which a loss scaler skipped the update of one."""
    if a.first.optimizer is None or b.first.optimizer is None:
        return
    skipped = False
    for mine, other in _shared(a.first, b.first):
        skips = a.first.skipped(mine), b.first.skipped(other)
        if skips[0] != skips[1]:
            if not skipped:
                run = "A" if skips[0] else "B"
                yield RunDifference(
                    "schedule", "updates", step=mine.step, decisive=False, kind="skipped",
                    details={"run": run},
                )  # fmt: skip
            skipped = True
        elif mine.updates != other.updates and not skips[0]:
            counts = str(mine.updates), str(other.updates)
            yield RunDifference("schedule", "updates", *counts, mine.step, kind="updates")
            return


def _rate(line: StepLine, group: int | None) -> float | None:
    known = line.lr is not None and group is not None and group < len(line.lr)
    return line.lr[group] if known and line.lr is not None and group is not None else None


def _late(a: Rank, b: Rank, one: int | None, two: int | None) -> dict[str, Any]:
    """Whether one schedule is the other, some steps late."""
    mine = [rate for line in a.lines if (rate := _rate(line, one)) is not None]
    other = [rate for line in b.lines if (rate := _rate(line, two)) is not None]
    for by in (1, -1, 2, -2):
        # B has at step t what A had at step t - by.
        ahead, behind = (mine, other[by:]) if by > 0 else (mine[-by:], other)
        pairs = list(zip(ahead, behind, strict=False))
        moves = len({rate for rate, _ in pairs}) > 1
        alike = (math.isclose(rate, late, rel_tol=2.0**-22) for rate, late in pairs)
        if len(pairs) > 2 and moves and all(alike):
            run, steps = ("B", by) if by > 0 else ("A", -by)
            return {"run": run, "steps": steps}
    return {}


def _setup(a: Run, b: Run) -> Iterator[RunDifference]:
    """What does not make another training: noted."""
    first, second = a.first, b.first
    if len(a.ranks) != len(b.ranks) or first.world_size != second.world_size:
        yield RunDifference(
            "setup", "ranks", f"{first.world_size}", f"{second.world_size}", decisive=False
        )
    if first.framework != second.framework:
        yield RunDifference("setup", "framework", first.framework, second.framework, decisive=False)
    for name in first.versions.keys() & second.versions.keys():
        if first.versions[name] != second.versions[name]:
            yield RunDifference(
                "setup", f"version of {name}", first.versions[name], second.versions[name],
                decisive=False,
            )  # fmt: skip
    if first.framework == second.framework:
        for name in sorted(first.flags.keys() & second.flags.keys()):
            if first.flags[name] != second.flags[name]:
                flags = str(first.flags[name]), str(second.flags[name])
                yield RunDifference("setup", name, *flags, decisive=False)
    steps = str(len(first.lines)), str(len(second.lines))
    if steps[0] != steps[1]:
        yield RunDifference("setup", "finished steps", *steps, decisive=False)
