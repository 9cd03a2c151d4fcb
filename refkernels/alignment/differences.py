"""What differs between two runs before any number is judged: data, weights, hyper-parameters.

Differences come in the order of suspicion. Those that make two runs different trainings are
decisive; others, such as versions, threads and devices, are only noted.
"""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from refkernels import registry
from refkernels.alignment import updates
from refkernels.alignment.kinds import kind_of, settings_of, synonyms
from refkernels.alignment.matching import Matched, permuted, unequal
from refkernels.alignment.rates import compared, intervals
from refkernels.alignment.run import Layer, Rank, Run, StepLine
from refkernels.alignment.shifts import moved
from refkernels.alignment.suspect import Suspect, Topic
from refkernels.alignment.tensors import grouped, norm
from refkernels.arithmetic import formats
from refkernels.op import Op

_COMPARED = (*updates.ABSENT, "beta1", "beta2", "eps", "alpha", "rho", "lr_decay")
_OPEN = ("eps", "scale")  # None means the framework's default, which the oracle judges
_NOT_COMPARED = {"inplace", "training", "name", "device", "dtype", "full_name", "cls_name"}
_LISTED = 5  # how many parameters without a partner are listed


def differences(a: Run, b: Run, matched: Matched) -> tuple[Suspect, ...]:
    """All differences, in the order of suspicion."""
    first, second = a.first, b.first
    shared_rows = [*_ranks(a), *_ranks(b)]
    if len(shared_rows) == 2 and shared_rows[0].kind == shared_rows[1].kind:  # both share theirs
        shared_rows = [*shards(a), *shards(b)]
    shared = any(difference.decisive for difference in shared_rows)
    return (
        *_data(a, b, shared),
        *shared_rows,
        *_weights(first, second, matched),
        *_untied(first, second, matched),
        *_model(first, second, matched),
        *_layers(first, second, matched),
        *_optimizer(first, second, matched),
        *_moved(first, second, matched),
        *_states(first, second, matched),
        *_schedule(first, second, matched),
        *_updates(a, b),
        *_lost(first, "A", second),
        *_lost(second, "B", first),
        *_setup(a, b),
    )


def notes(run: Run) -> tuple[Suspect, ...]:
    """What one run shows beside its answers."""
    return (*shards(run), *_lost(run.first, "A"))


def judged_by_calls(found: tuple[Suspect, ...], same: bool) -> tuple[Suspect, ...]:
    """The differences, where the steps' calls show what the models compute: other layers, names of
    weights and orders of their rows are notes then, and other settings where calls are the same."""
    notes = ("model", "layer", "weights") if same else ("model",)
    return tuple(
        replace(one, decisive=False) if one.topic in notes or one.details.get("permuted") else one
        for one in found
    )


def _shared_lines(a: Rank, b: Rank) -> Iterator[tuple[StepLine, StepLine]]:
    lines_b = {line.step: line for line in b.lines}
    return ((line, lines_b[line.step]) for line in a.lines if line.step in lines_b)


def shards(run: Run) -> tuple[Suspect, ...]:
    """Rows that ranks of one run share. Tensor-parallel runs rightly share them: only noted."""
    return tuple(replace(difference, decisive=False) for difference in _ranks(run))


def _data(a: Run, b: Run, shared: bool) -> Iterator[Suspect]:
    """The first step in which batches differ, by their hashes; the rows of all ranks together may
    be the same, in another order or on other ranks. `shared`: ranks read one another's rows, and so
    miss their own: those of one run may be part of the other's."""
    sides = [_rows(run) for run in (a, b)]
    alike = len(a.ranks) == len(b.ranks)
    for step in (step for step in sides[0] if step in sides[1]):
        (hashes_a, rows_a), (hashes_b, rows_b) = (side[step] for side in sides)
        if None in (*hashes_a, *hashes_b) or hashes_a == hashes_b:
            continue
        known = bool(rows_a and rows_b)
        reordered = known and sorted(rows_a) == sorted(rows_b)
        within = shared and known and (set(rows_a) <= set(rows_b) or set(rows_b) <= set(rows_a))
        if within or (not alike and (reordered or not known)):
            continue
        hashes = [{step: side[step][0] for step in side} for side in sides]
        rule = {} if reordered else moved(hashes[0], hashes[1], operator.eq, 2)
        own = [moved(one, one, operator.eq, 2) for one in hashes]
        periods = [one["steps"] if one.get("moved") == "late" else 0 for one in own]
        if 0 in periods and max(periods):
            run = "A" if periods[0] else "B"
            rule = {"moved": "again", "run": run, "steps": max(periods)}
        kind = "reordered" if reordered else "batch"
        yield Suspect("data", "batch", step=step, decisive=not reordered, kind=kind, details=rule)
        return


def _rows(run: Run) -> dict[int, tuple[tuple[str | None, ...], list[str]]]:
    """By step that all ranks have: their batches' hashes, and the rows of all ranks, if known."""
    rows = {}
    for step, lines in run.lines.items():
        if len(lines) == len(run.ranks):
            known = all(line.rows for line in lines)
            listed = [row for line in lines for row in line.rows or () if known]
            rows[step] = tuple(line.batch_hash for line in lines), listed
    return rows


def _ranks(run: Run) -> Iterator[Suspect]:
    """Ranks that read the same rows: they train on one shard, or shards overlap."""
    for first, second in itertools.combinations(run.ranks, 2):
        for line, other in _shared_lines(first, second):
            rows = set(line.rows or ()), set(other.rows or ())
            if shared := len(rows[0] & rows[1]):
                numbers = {"one": first.rank, "other": second.rank, "shared": shared}
                kind = "same_rows" if rows[0] == rows[1] else "shared_rows"
                yield Suspect("ranks", run.folder.name, step=line.step, kind=kind, details=numbers)
                return


def _weights(a: Rank, b: Rank, matched: Matched) -> Iterator[Suspect]:
    """Initial weights, from the first step that both captured; by hash if there is none."""
    if a.framework == b.framework and a.initial_parameters == b.initial_parameters:
        return
    steps = sorted(set(a.steps) & set(b.steps))
    if not steps or steps[0] != min((line.step for line in a.lines), default=0):
        if a.framework == b.framework:
            alike = not (a.perturbed or b.perturbed)
            yield Suspect("weights", "", decisive=alike, kind="all_weights")
        return
    sides = a.tensors(steps[0]), b.tensors(steps[0])
    for name, first, second, apart in unequal(*sides, matched.parameters):
        if first.shape != second.shape:
            shapes = str(first.shape), str(second.shape)
            yield Suspect("weights", name, *shapes, steps[0], kind="shape")
            continue
        moved = (a.perturbed or {}, name), (b.perturbed or {}, matched.parameters[name])
        expected = sum(perturbed.get("parameter") == of for perturbed, of in moved)
        details = {"apart": apart, "elements": first.size, "permuted": permuted(first, second)}
        yield Suspect("weights", name, "", "", steps[0], apart > expected, "weights", details)


def _untied(a: Rank, b: Rank, matched: Matched) -> Iterator[Suspect]:
    """Weights that one run shares between two places and the other holds twice: the gradient of the
    shared one is the sum of theirs."""
    back = {other: name for name, other in matched.parameters.items()}
    for step in sorted(set(a.steps) & set(b.steps))[:1]:
        first, second = a.tensors(step), b.tensors(step)
        for run, other, shares, holds, lone, partner in (
            ("A", "B", first, second, matched.lone_b, back),
            ("B", "A", second, first, matched.lone_a, matched.parameters),
        ):
            for name, twin in itertools.product(lone, partner):
                whole = shares.gradient(partner[twin], "backward")
                one, two = holds.gradient(name, "backward"), holds.gradient(twin, "backward")
                if whole is None or one is None or two is None or not np.any(one):
                    continue
                if whole.shape == one.shape == two.shape:
                    apart = one.astype(np.float64) + two.astype(np.float64) - whole
                    if norm(apart) <= 2.0 ** (-formats.of(whole).p / 2) * norm(whole):
                        details = {"run": run, "other": other, "twin": twin}
                        yield Suspect("weights", name, step=step, kind="untied", details=details)


def _model(a: Rank, b: Rank, matched: Matched) -> Iterator[Suspect]:
    for run, parameters in (("A", matched.lone_a), ("B", matched.lone_b)):
        for name in parameters[:_LISTED]:
            yield Suspect("model", name, kind="lone_parameter", details={"run": run})
    pairs = matched.parameters.items()
    dtypes = {name: (a.parameters[name].dtype, b.parameters[other].dtype) for name, other in pairs}
    for pair, alike in grouped(dtypes, dtypes.__getitem__).items():
        if pair[0] != pair[1]:
            yield Suspect("dtype", alike[0], *pair, details={"more": len(alike) - 1})
    for name, partner in matched.parameters.items():
        parameter_a, parameter_b = a.parameters[name], b.parameters[partner]
        if parameter_a.trainable != parameter_b.trainable:
            frozen = "B" if parameter_a.trainable else "A"
            yield Suspect("optimizer", name, kind="frozen", details={"run": frozen})


def _layers(a: Rank, b: Rank, matched: Matched) -> Iterator[Suspect]:
    """The settings of matched layers: the params of their ops, as these take them; of two of one
    type of one framework all others that were recorded too, else the rate of dropout."""
    for name, partner in matched.layers.items():
        layers = a.layers[name], b.layers[partner]
        known = list(filter(None, map(_op_and_params, (a, b), layers)))
        others, module = {"p"}, layers[0].module
        if module == layers[1].module and {a.framework, b.framework} == {module.split(".")[0]}:
            words = {w for op, _ in known[:1] for param in op.params for w in synonyms(param)}
            shared = layers[0].hyperparameters.keys() & layers[1].hyperparameters.keys()
            others = shared - _NOT_COMPARED - words
        pairs = {n: [one.hyperparameters.get(n) for one in layers] for n in sorted(others)}
        pairs = {n: pair for n, pair in pairs.items() if None not in pair}
        names, params = {op.name: op for op, _ in known}, [side for _, side in known]
        if len(known) == 2 and len(names) == 1 and None not in params:
            defaults = known[0][0].params
            for n in dict.fromkeys(n for side in params for n in side or ()):
                pair = [(side or {}).get(n, defaults.get(n)) for side in params]
                if n != "normalized_shape" and not (n in _OPEN and None in pair):
                    pairs[n] = pair
        for n, pair in pairs.items():
            if not _alike(*pair):
                yield Suspect("layer", f"{name}: {n}", _shown(pair[0]), _shown(pair[1]))
        if len(names) == 2:
            yield Suspect("layer", name, known[0][0].name, known[1][0].name)


def _op_and_params(rank: Rank, layer: Layer) -> tuple[Op, dict[str, Any] | None] | None:
    """A layer's op, with its params by the settings of its first captured call; None for none."""
    calls = rank.tensors(rank.steps[0]).calls(layer.name) if rank.steps else ()
    settings = settings_of(rank, layer, next(iter(calls), None))
    kind = kind_of(layer, settings)
    if isinstance(kind, str):
        return None
    params = kind.params(settings)
    return registry.get(kind.op), None if isinstance(params, str) else params


def _optimizer(a: Rank, b: Rank, matched: Matched) -> Iterator[Suspect]:
    """Types, and each parameter's settings; one difference for all parameters that share it."""
    if a.optimizer is None or b.optimizer is None:
        return
    types = a.optimizer.type, b.optimizer.type
    if types[0] != types[1]:
        same = updates.definition(a.optimizer) == updates.definition(b.optimizer)
        redefined = updates.KINDS.keys() >= {*types} and not same
        yield Suspect("optimizer", "type", *types, decisive=redefined)
    changed: dict[tuple[str, str, str], list[str]] = {}
    not_updated: dict[tuple[str, Topic], list[str]] = {}
    settings = _settings(a), _settings(b)
    for name, partner in matched.parameters.items():
        if name not in settings[0] or partner not in settings[1]:
            if (name in settings[0]) != (partner in settings[1]):
                run = "B" if name in settings[0] else "A"
                not_updated.setdefault((run, "optimizer"), []).append(name)
            continue
        for run, still in (("A", _still(a, name, b, partner)), ("B", _still(b, partner, a, name))):
            if still:
                not_updated.setdefault((run, "gradient"), []).append(name)
        settings_a, settings_b = settings[0][name], settings[1][partner]
        decays = settings_a.get("weight_decay") and settings_b.get("weight_decay")
        coupled = ("decoupled_weight_decay",) if types[0] == types[1] and decays else ()
        for param in (*_COMPARED, *coupled):
            pair = [side.get(param, updates.ABSENT.get(param)) for side in (settings_a, settings_b)]
            if None not in pair and not _alike(*pair):
                changed.setdefault((param, _shown(pair[0]), _shown(pair[1])), []).append(name)
    for (run, topic), names in not_updated.items():
        details = {"run": run, "more": len(names) - 1}
        its = [matched.parameters[name] for name in names] if run == "B" else names
        if not updates.changes(b if run == "B" else a, its):
            yield Suspect(topic, names[0], kind="not_updated", details=details)
    for (param, value_a, value_b), names in changed.items():
        details = {"param": param, "more": len(names) - 1}
        yield Suspect("optimizer", names[0], value_a, value_b, kind="setting", details=details)


def _still(rank: Rank, name: str, other: Rank, partner: str) -> bool:
    """Whether no step that both captured updates a parameter by a gradient, and the other's do."""
    steps = [rank.tensors(step) for step in set(rank.steps) & set(other.steps)]
    received = [one.received(name) for one in steps if one.parameter(name, "after") is not None]
    return bool(received) and all(g is None for g in received) and updates.changes(other, [partner])


def _states(a: Rank, b: Rank, matched: Matched) -> Iterator[Suspect]:
    """What the optimizers hold before the first step, as after a resumption; before a later one
    that both reach by as many updates, their counters, in whole numbers. What is absent is 0.
    Frameworks begin with other values."""
    if a.framework != b.framework or not a.lines or a.lines[0].step != b.lines[0].step:
        return
    found: dict[str, list[tuple[str, str, str]]] = {}
    for line, other in _shared_lines(a, b):
        if line.updates != other.updates or a.skipped(line) != b.skipped(other):
            return
        at_first = line is a.lines[0]
        pairs = (*matched.parameters.items(), ("", ""))
        for name, partner in pairs if {line.step} <= {*a.steps} & {*b.steps} else ():
            states = a.tensors(line.step).state(name), b.tensors(line.step).state(partner)
            for word in dict.fromkeys((*states[0], *states[1])):
                held = [np.asarray(state.get(word, 0.0), np.float64) for state in states]
                comparable = held[0].shape == held[1].shape or not all(one.ndim for one in held)
                counts = all(one.size == 1 and not np.any(one % 1.0) for one in held)
                if comparable and (at_first or counts) and np.any(held[0] != held[1]):
                    norm_a, norm_b = (_shown(float(np.linalg.norm(one))) for one in held)
                    found.setdefault(word, []).append((name or b.model, norm_a, norm_b))
        for word, places in found.items():
            details = {"param": word, "more": len(places) - 1}
            yield Suspect("optimizer", *places[0], line.step, kind="state", details=details)
        if found:
            return


def _settings(rank: Rank) -> dict[str, dict[str, Any]]:
    """Each parameter's settings."""
    assert rank.optimizer is not None
    return {
        name: {**group.hyperparameters, **({"weight_decay": 0.0} if name in group.exempt else {})}
        for group in rank.optimizer.groups
        for name in group.parameters
    }


def _alike(a: Any, b: Any) -> bool:
    """Whether two values are equal, or equal in float32; a number applies to every axis."""
    if a == b:
        return True
    if any(value is None or isinstance(value, bool | str) for value in (a, b)):
        return False
    try:
        x, y = np.broadcast_arrays(np.asarray(a, np.float32), np.asarray(b, np.float32))
        return np.array_equal(x, y)
    except (TypeError, ValueError):
        return False


def _shown(value: Any) -> str:
    return f"{value:.9g}" if isinstance(value, float) else str(value)


def _schedule(a: Rank, b: Rank, matched: Matched) -> Iterator[Suspect]:
    """The first step whose learning rates differ by more than a float32 rounding, by parameter
    group."""
    partners = matched.parameters.items()
    groups = dict.fromkeys((a.parameters[n].group, b.parameters[its].group) for n, its in partners)
    pairs = _shared_lines(a, b)
    skips = [line.step for line, other in pairs if a.skipped(line) != b.skipped(other)]
    for group_a, group_b in groups:
        seen: list[dict[int, float]] = []
        updates: list[list[float]] = []
        for rank, group in ((a, group_a), (b, group_b)):
            rated = [
                (line, line.lr[group])
                for line in rank.lines
                if line.lr is not None and group is not None and group < len(line.lr)
            ]
            seen.append({line.step: rate for line, rate in rated})
            updates.append([r for line, r in rated if line.updates and not rank.skipped(line)])
        shared = [step for step in seen[0] if step in seen[1]]
        apart = [step for step in shared if not _close(seen[0][step], seen[1][step])]
        # Where an update is skipped a schedule may pause: rates agree from update to update then.
        if not apart or (skips and apart[0] > skips[0] and all(map(_close, *updates))):
            continue
        found = compared(*map(intervals, seen))
        told = {"schedules": found["runs"], **(found["parted"] or {}).get("moved", {})}
        own, its = (_shown(side[apart[0]]) for side in seen)
        yield Suspect("schedule", str(group_a), own, its, apart[0], kind="rate", details=told)


def _close(a: float, b: float) -> bool:
    return math.isclose(a, b, rel_tol=2.0**-23)  # a rounding to float32


def _lost(rank: Rank, run: str, other: Rank | None = None) -> Iterator[Suspect]:
    """Groups whose weights a decay cannot change, decisive where the other run's can."""
    decisive = other is not None and not any(updates.lost_decays(other))
    for names, decay, format in updates.lost_decays(rank):
        details = {"run": run, "decay": f"{decay:.3g}", "format": format, "more": len(names) - 1}
        yield Suspect("optimizer", names[0], "", "", 0, decisive, "decay_lost", details)


def _updates(a: Run, b: Run) -> Iterator[Suspect]:
    """The first step in which one run updates its weights more often than the other; and before
    it, the first in which a loss scaler skipped one run's update."""
    if a.first.optimizer is None or b.first.optimizer is None:
        return
    skipped = False
    for line_a, line_b in _shared_lines(a.first, b.first):
        skips = a.first.skipped(line_a), b.first.skipped(line_b)
        if skips[0] != skips[1]:
            if not skipped:
                run, at = {"run": "A" if skips[0] else "B"}, line_a.step
                yield Suspect("schedule", "updates", "", "", at, False, "skipped", run)
            skipped = True
        elif line_a.updates != line_b.updates and not skips[0]:
            counts = str(line_a.updates), str(line_b.updates)
            yield Suspect("schedule", "updates", *counts, line_a.step, kind="updates")
            return


def _moved(a: Rank, b: Rank, matched: Matched) -> Iterator[Suspect]:
    """The first step for which one run alone changes weights, or a state of the optimizer, after
    the optimizer did."""
    partner = {name: other for other, name in matched.parameters.items()}
    steps = map(updates.moved_outside, (a, b))
    moved = [{(name, w, s) for s, w, names in side for name in names} for side in steps]
    moved[1] = {(partner[name], word, step) for name, word, step in moved[1] if name in partner}
    for run, alone in zip("AB", (moved[0] - moved[1], moved[1] - moved[0]), strict=True):
        first, word = min(((step, word) for _, word, step in alone), default=(0, ""))
        names = [name for name in matched.parameters if (name, word, first) in alone]
        if names:
            details = {"run": run, "more": len(names) - 1, "param": word}
            kind = "state_moved" if word else "moved"
            yield Suspect("optimizer", names[0], step=first, kind=kind, details=details)


def _setup(a: Run, b: Run) -> Iterator[Suspect]:
    """Differences that do not make another training: only noted."""
    first, second = a.first, b.first
    same = first.framework == second.framework
    versions = first.versions.keys() & second.versions.keys()
    flags = sorted(first.flags.keys() & second.flags.keys()) if same else ()
    pairs = {
        "ranks": (first.world_size, second.world_size),
        "framework": (first.framework, second.framework),
        **{f"version of {name}": (first.versions[name], second.versions[name])
           for name in versions},
        **{name: (first.flags[name], second.flags[name]) for name in flags},
        "finished steps": (len(first.lines), len(second.lines)),
    }  # fmt: skip
    for where, pair in pairs.items():
        if pair[0] != pair[1]:
            yield Suspect("setup", where, str(pair[0]), str(pair[1]), decisive=False)
