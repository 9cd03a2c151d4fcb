"""Edits of one traced program that another program's calls suggest.

None knows an operator: constants, functions and operands are those that the other program's calls
have near the place where the two part. Each edit is (a description, {call's index: what runs in
its place}), and gives (function, arguments, keywords, result in place of the call's own).
"""

import itertools
import math
import sys

from collections import namedtuple

import in_torch
import torch
from in_torch import TensorNumber as Tensor
from torch.utils._pytree import tree_flatten, tree_map


# What is near the place where two programs part: this `side`, the `runs` of both, the other's
# `calls`, (place, value) of what may stand elsewhere, and by slot what may for a `lone` leaf.
Near = namedtuple("Near", "side runs calls values lone")


def numbers_of(calls):
    """The constants of calls, as they come."""
    leaves = [leaf for call in calls for leaf in tree_flatten((call.args, call.kwargs))[0]]
    return list(dict.fromkeys(leaf for leaf in leaves if type(leaf) in (int, float)))


def constants_of(call):
    """What a call is given but tensors, as text."""
    leaves = tree_flatten((call.args, call.kwargs))[0]
    return [str(leaf) for leaf in leaves if not isinstance(leaf, Tensor)]


def arguments(call, run=None):
    """(key, name, value) for each argument, defaults included; of a `run`, a count that was
    computed stands for its tensor."""
    slots = {} if run is None else dict(zip(call.numbers, run.needs[call.index], strict=False))
    for k, argument in enumerate(call.function._schema.arguments):
        name, given = argument.name, k < len(call.args)
        if given or name in call.kwargs or argument.has_default_value():
            value = call.args[k] if given else call.kwargs.get(name, argument.default_value)
            slot = slots.get(value.number) if isinstance(value, Tensor) else None
            if slot is not None and run.values[slot].numel() == 1:
                number = run.values[slot].item()
                value = number if number % 1.0 == 0.0 else value
            yield k if given else name, name, value


def with_arguments(changes):
    """The call, other values for arguments by key. A tensor stands for a copy of itself, since the
    call may write to it."""

    def edit(run, function, args, kwargs):
        args, kwargs = list(args), dict(kwargs)
        for key, value in changes.items():
            place = args if isinstance(key, int) else kwargs
            place[key] = value.clone() if isinstance(value, torch.Tensor) else value
        return function, args, kwargs, None

    return edit


def with_result(value):
    def edit(run, function, args, kwargs):
        return function, args, kwargs, value

    return edit


def constants(kind, call, near):
    """Other values of constants: those of the same arguments in another call, all and one by one; a
    "number" of the other calls that any call of this operator takes, or any "literal" of theirs."""
    others, runs = near.calls, near.runs
    alone = sole_constant(call)  # the number of `x * number` needs no name
    anywhere = kind != "constant"
    own, its = (None, None) if anywhere else runs
    same = numbers_of(c for c in runs[1].program.calls if c.word == call.word and anywhere)
    mine = [(key, name, value) for key, name, value in arguments(call, own) if constant(value)]
    named = [
        {name: value for _, name, value in arguments(other, its) if constant(value)}
        for other in others
        if other.function is call.function or other.word == call.word
    ]
    changes = [
        [(key, name, value, new[name]) for key, name, value in mine
         if name in new and not same_constant(value, new[name])]
        for new in named if not anywhere
    ]  # fmt: skip
    changes += [[one] for several in changes for one in several]
    for key, name, value in mine if anywhere else ():
        if isinstance(value, int | float):
            news = [n for n in numbers_of(others) if n in same or kind == "literal"]
            news = [not value] if isinstance(value, bool) else news
            changes += [[(key, name, value, new)] for new in news if not same_constant(value, new)]
    tried = []
    for several in changes:
        if not several or several in tried:
            continue
        tried.append(several)
        edit = with_arguments({key: new for key, _, _, new in several})
        columns = zip(*((name, plain(a), plain(b)) for _, name, a, b in several))
        shown = (c[0] if len(c) == 1 else ", ".join(map(str, c)) for c in columns)
        told = {"edit": "constant", **dict(zip(("argument", "a", "b"), shown))}
        if len(several) == 1 and several[0][0] == alone:
            told["argument"] = None
        yield told, {call.index: edit}


def sole_constant(call):
    """The place of the one constant that a call must be given; None where there is another."""
    schema = call.function._schema.arguments
    required = [
        k for k, value in enumerate(call.args)
        if not schema[k].has_default_value() and not isinstance(value, Tensor)
    ]  # fmt: skip
    return required[0] if len(required) == 1 else None


def called(call, whole=False):
    """An operator, with its number if it takes one, or (`whole`) with all of its numbers."""
    place = sole_constant(call)
    given = numbers_of([call]) if whole else [] if place is None else [call.args[place]]
    return " ".join([call.word, *("%.7g" % one for one in given if type(one) in (int, float))])


def constant(value):
    return not any(isinstance(item, Tensor) for item in tree_flatten(value)[0])


def same_constant(a, b):
    """Whether two constants are one but for a rounding to float32."""
    numbers = isinstance(a, int | float) and isinstance(b, int | float)
    if numbers and not isinstance(a, bool) and not isinstance(b, bool):
        return a == b or abs(a - b) <= 2.0**-23 * abs(a) < math.inf
    return type(a) is type(b) and a == b


def plain(value):
    if value == sys.maxsize:
        return "the end"
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)


def functions(kind, call, near):
    """The same operands, another call's function and constants."""
    tried = set()
    for other in near.calls:
        key = other.function, str(other.args), str(other.kwargs)
        alike = len(other.numbers) == len(call.numbers) and len(other.results) == len(call.results)
        same = other.function is call.function
        if same or not alike or not call.numbers or other.writes or key in tried:
            continue
        tried.add(key)

        def edit(run, function, args, kwargs, other=other):
            own = (leaf for leaf in tree_flatten((args, kwargs))[0] if isinstance(leaf, Tensor))
            given = tree_map(
                lambda leaf: next(own) if isinstance(leaf, Tensor) else leaf,
                (other.args, other.kwargs),
            )
            return other.function, *given, None

        yield {"edit": "function", "a": call.word, "b": other.word}, {call.index: edit}


def operands(kind, call, near):
    """Another operand: none, the next one of the call, itself transposed, in another order or with
    one of the values near added to it, or one of these; of a leaf that the other program does not
    have, another leaf; in the place of none, one of its leaves."""
    run = near.runs[0]
    given = [(k, n, v) for k, n, v in arguments(call) if isinstance(v, Tensor)]
    slots = dict(zip(call.numbers, run.needs[call.index], strict=False))
    for key, name, value in arguments(call) if kind == "operand" else ():
        for place, made in near.values if value is None else ():
            if isinstance(place, tuple) and place[0] == "other":
                told = {"edit": kind, "argument": name, "a": "None", "b": place}
                yield told, {call.index: with_arguments({key: made})}
    for j, (key, name, value) in enumerate(given):
        slot = slots[value.number]
        mine = run.values[slot]
        told, others = {"edit": kind, "argument": name, "a": slot}, []
        leaf = mine.is_floating_point() and not isinstance(run.made[slot], tuple)
        # kernels of norms read as much of the one as of the other, and check neither
        paired = [run.values[s].shape for s in slots.values()].count(mine.shape) > 1
        if kind == "omitted" and leaf:
            others = [torch.zeros_like(mine), torch.ones_like(mine)]
        elif kind == "transposed" and mine.dim() >= 2 and mine.shape[-1] == mine.shape[-2]:
            others = [mine.mT]
        elif kind == "order":
            others = [made for place, made in near.values if place == ("order", slot)]
        for other in others:
            edit = {call.index: with_arguments({key: other})}
            if kind == "order":  # whoever reads it
                edit = wherever(run, {slot: other})
                told["order"] = order(near.side, mine, other)
            yield told, edit
        for other_key, _, other in given[j + 1 :] if kind == "exchanged" else ():
            pair = {"edit": kind, "argument": name}
            yield pair, {call.index: with_arguments({key: other, other_key: value})}
        for place, made in near.values if kind == "summed" else ():
            if isinstance(place, int) and made.shape == mine.shape and made.dtype == mine.dtype:
                yield {**told, "b": place}, {call.index: with_arguments({key: mine + made})}
        for place, made in (*near.values, *near.lone.get(slot, ())) if kind == "operand" else ():
            ordered = isinstance(place, tuple) and place[0] != "other"
            if place == slot or ordered or made.dtype != mine.dtype:
                continue
            if made.shape == mine.shape or (
                made.numel() != mine.numel() and made.dim() == mine.dim() and not paired
            ):
                yield {**told, "b": place}, {call.index: with_arguments({key: made})}


def reordered(kind, call, near):
    """All values that the other program reads in another order: heads of queries, keys, values."""
    run = near.runs[0]
    places = [(p[1], v) for p, v in near.values if isinstance(p, tuple) and p[0] == "order"]
    same = {id(v) for s, v in places if torch.equal(v, run.values[s])}  # in some view of them
    orders = {s: v for s, v in places if id(v) not in same and v.shape == run.values[s].shape}
    for slot in run.needs[call.index] if len(orders) > 1 else ():
        for mine in orders.keys() & near.side.origins(slot):
            shown = order(near.side, run.values[mine], orders[mine])
            yield {"edit": "order", "a": mine, "order": shown}, wherever(run, orders)


def order(side, mine, its):
    """How one axis of `its` reads that of `mine`, or its shape, as text; in B, that of A's."""
    mine, its = (mine, its) if side.first else (its, mine)
    for axis in range(mine.dim()) if mine.shape == its.shape else ():
        x, y = (v.double().movedim(axis, 0).reshape(v.shape[axis], -1) for v in (mine, its))
        far = torch.cdist(y, x, compute_mode="donot_use_mm_for_euclid_dist")
        nearest, index = far.min(1)
        if len(x) > 1 and float(nearest.max()) <= 1e-9 * float(x.norm()):
            shown = ", ".join(map(str, index[:8].tolist())) + (", ..." if len(x) > 8 else "")
            return "axis %d: %s" % (axis, shown)
    return "several axes" if mine.shape == its.shape else "shape %s" % (tuple(its.shape),)


def swapped(kind, call, near):
    """Two values in each other's place, whoever reads them: where an operand comes from, and where
    one of those near does."""
    side, run = near.side, near.runs[0]
    slots = dict(zip(call.numbers, run.needs[call.index], strict=False))
    for _, name, value in arguments(call):
        others = [other for other, _ in near.values if isinstance(other, int)]
        for other in others if isinstance(value, Tensor) else ():
            slot = slots[value.number]
            for mine, its in itertools.product(side.origins(slot), side.origins(other)):
                values = run.values[mine], run.values[its]
                if mine != its and values[0].shape == values[1].shape:
                    told = {"edit": "swapped", "argument": name, "a": mine, "b": its}
                    yield told, wherever(run, {mine: values[1], its: values[0]})
                    break


def wherever(run, values, but=lambda function: False):
    """Other values for slots, whoever reads them, `but` for some functions."""
    readers = (one for one in run.program.calls if values.keys() & run.needs[one.index])
    return {one.index: exchanging(run, one, values) for one in readers if not but(one.function)}


def exchanging(run, call, values):
    """The call, other values for slots that it reads."""
    slots = dict(zip(call.numbers, run.needs[call.index], strict=False))

    def other(item):
        slot = slots.get(item.number) if isinstance(item, Tensor) else None
        return values[slot].clone() if slot in values else item  # the call may write to it

    def edit(run, function, args, kwargs):
        return function, *tree_map(other, (args, kwargs)), None

    return edit


def reused(kind, call, near):
    """The weights of another block, in the place of those of one that the other program does not
    have: of the same names but for one part, which is the same for all."""
    run, owner, blocks = near.runs[0], near.side.program.owner, {}
    for slot, others in near.lone.items():
        for other, value in others:
            names = [(owner(run.made[leaf]) or "").split(".") for leaf in (slot, other)]
            apart = [k for k, pair in enumerate(zip(*names)) if pair[0] != pair[1]]
            if len(names[0]) == len(names[1]) and len(apart) == 1:
                key = tuple(".".join(name[: apart[0] + 1]) for name in names)
                blocks.setdefault(key, {})[slot] = value
    for (block, other), values in blocks.items():
        if len(values) > 1 and values.keys() & run.needs[call.index]:
            yield {"edit": kind, "a": block, "b": other}, wherever(run, values)


def regrouped(kind, call, near):
    """Other parts of a value, in the place of all that views take of it."""
    run = near.runs[0]
    for place, values in near.values:
        parts = isinstance(place, tuple) and place[0] == "parts"
        if parts and values.keys() & run.needs[call.index]:
            told = {"edit": "order", "a": place[1], "order": place[2]}
            yield told, wherever(run, values, but=in_torch.is_view)


def left_out(kind, call, near, depth=6):
    """The call's result is one of the values that it was made of, some calls before; or all of a
    value of which it takes a part."""
    run = near.runs[0]
    target = next((slot for slot in run.slots[call.index] if slot is not None), None)
    if target is None:
        if run.changed.get(call.index):  # its operands are as they were
            kept = run.needs[call.index][0]
            yield {"edit": "left_out", "b": kept}, {call.index: with_result(run.values[kept])}
        return
    shape, seen, level = run.values[target].shape, {target}, [call.index]
    for slot in run.needs[call.index] if in_torch.is_view(call.function) else ():
        if run.values[slot].numel() > run.values[target].numel():
            yield {"edit": "left_out", "b": slot}, {call.index: with_result(run.values[slot])}
    for _ in range(depth):
        slots = [slot for index in level for slot in run.needs[index] if slot not in seen]
        seen.update(slots)
        for slot in dict.fromkeys(slots):
            value = run.values[slot]
            wide = all(n in (1, m) for n, m in zip(value.shape[::-1], shape[::-1]))
            fits = value.shape == shape or (wide and 0 < value.dim() <= len(shape))
            if fits and value.dtype == run.values[target].dtype:
                whole = value.expand(shape)
                yield {"edit": "left_out", "b": slot}, {call.index: with_result(whole)}
        level = [run.made[slot][0] for slot in slots if isinstance(run.made[slot], tuple)]


def boundary(side, other, its, shown):
    """(slot, value) of what the other's first calls without partner read: partners of it, the same
    numbers in the other's order, and its leaves that have none, moved or not."""
    found, moved = {}, {s for s in its if not isinstance(other.run.made[s], tuple)}
    for call in shown:
        if in_torch.is_view(call.function) and moved.issuperset(other.run.needs[call.index]):
            moved.update(other.run.slots[call.index])
        for slot in other.run.needs[call.index]:
            value = other.run.values[slot]
            value = torch.cat((value.real, value.imag), -1) if value.is_complex() else value
            if slot not in its:
                by_shape = {}
                for mine in side.index.find(other.told[slot], value):
                    by_shape.setdefault(side.run.values[mine].shape, mine)
                    if value.dtype in (torch.float64, torch.bool):
                        found.setdefault(("order", mine), value)
                found.update((mine, side.run.values[mine]) for mine in by_shape.values())
                if by_shape and value.shape not in by_shape:  # as the other reads it
                    found[next(iter(by_shape.values()))] = value
                if value.shape in by_shape and (parts := in_parts(other, slot, value)) is not None:
                    found[("order", by_shape[value.shape])] = parts
            elif slot in moved:
                found.setdefault(("other", slot), value)
    return [*found.items(), *regroupings(side, other)]


def regroupings(side, other):
    """(("parts", a value, columns of the first part), values by slot): the parts that views take of
    it in this program, and those that they take in the other."""
    mine, its = (taken(one) for one in (side, other))
    for (whole, parts), (same, others) in itertools.product(mine.items(), its.items()):
        values = [other.run.values[slot] for slot in others]
        alike = [side.run.values[slot].shape for slot in parts] == [v.shape for v in values]
        if alike and len(parts) > 1 and same in other.index.find(side.told[whole]):
            line = side.run.values[whole].flatten(0, -2)[0]
            columns = torch.isin(line.clone(), values[0].flatten()).nonzero().flatten().tolist()
            starts = [k for k in columns if k - 1 not in columns]
            ends = [k for k in columns if k + 1 not in columns]
            shown = ", ".join("%d-%d" % ends for ends in zip(starts[:8], ends))
            yield ("parts", whole, "first its columns " + shown), dict(zip(parts, values))


def taken(side):
    """By slot of a value with a partner: slots without one that views alone make of it, and that
    other calls read."""
    run, found = side.run, {}
    for call in side.program.calls:
        for slot in run.needs[call.index] if not in_torch.is_view(call.function) else ():
            whole = slot
            while isinstance(run.made[whole], tuple) and not side.paired[slot]:
                maker = side.program.calls[run.made[whole][0]]
                if not in_torch.is_view(maker.function):
                    break
                whole = run.needs[maker.index][0]
            if side.paired[whole] and whole != slot:
                found.setdefault(whole, {})[slot] = None
    return found


def in_parts(side, slot, value):
    """A value with the parts that calls take of it one behind the other; None where they do not
    take all of it along one axis."""
    takers = [c for c in side.program.calls if slot in side.run.needs[c.index]]
    parts = [side.run.values[s] for c in takers if in_torch.is_view(c.function)
             for s in side.run.slots[c.index]]  # fmt: skip
    axes = [k for k in range(value.dim())
            if all(len(p.shape) > k and p.shape[k] < value.shape[k] for p in parts)]  # fmt: skip
    if len(parts) < 2 or len(axes) != 1 or sum(part.numel() for part in parts) != value.numel():
        return None
    whole = torch.cat(parts, axes[0])
    return whole if whole.shape == value.shape and not torch.equal(whole, value) else None
