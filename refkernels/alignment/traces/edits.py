"""Edits of one traced program that another program's calls suggest.

None knows an operator: constants, functions and operands are those that the other program's calls
have near the place where the two part. Each edit is (a description, {call's index: what runs in
its place}), and gives (function, arguments, keywords, result in place of the call's own).
"""

import torch
from torch.utils._pytree import tree_flatten, tree_map

from replay import Tensor


def numbers_of(calls):
    """The constants of calls, as they come."""
    found = []
    for call in calls:
        for value in tree_flatten((call.args, call.kwargs))[0]:
            if isinstance(value, int | float) and not isinstance(value, bool):
                found.append(value)
    return list(dict.fromkeys(found))


def constants_of(call):
    """What a call is given but tensors, as text."""
    leaves = tree_flatten((call.args, call.kwargs))[0]
    return [str(leaf) for leaf in leaves if not isinstance(leaf, Tensor)]


def arguments(call):
    """(key, name, value) for each argument, defaults included."""
    for k, argument in enumerate(call.function._schema.arguments):
        if k < len(call.args):
            yield k, argument.name, call.args[k]
        elif argument.name in call.kwargs or argument.has_default_value():
            yield argument.name, argument.name, call.kwargs.get(argument.name,
                                                                argument.default_value)  # fmt: skip


def with_argument(key, value):
    """The call, another value for one argument. A tensor stands for itself."""

    def edit(run, function, args, kwargs):
        if isinstance(key, int):
            args = [*args[:key], value, *args[key + 1 :]]
        else:
            kwargs = {**kwargs, key: value}
        return function, args, kwargs, None

    return edit


def with_result(value):
    def edit(run, function, args, kwargs):
        return function, args, kwargs, value

    return edit


def constants(call, others):
    """Another value of a constant: that of the same argument in another call, or any number."""
    numbers, schema = numbers_of(others), call.function._schema.arguments
    required = [
        k for k, value in enumerate(call.args)
        if not schema[k].has_default_value() and not isinstance(value, Tensor)
    ]  # fmt: skip
    alone = required[0] if len(required) == 1 else None  # the number of `x * number` needs no name
    for key, name, value in arguments(call):
        if isinstance(value, Tensor) or any(
            isinstance(item, Tensor) for item in tree_flatten(value)[0]
        ):
            continue
        seen = []
        for other in others:
            if other.function is call.function or other.word == call.word:
                seen += [w for _, n, w in arguments(other) if n == name]
        if isinstance(value, int | float) and not isinstance(value, bool):
            seen += numbers
        if isinstance(value, bool):
            seen.append(not value)
        tried = []
        for new in seen:
            if new in tried or same_constant(value, new) or isinstance(new, Tensor):
                continue
            if isinstance(new, list) and any(isinstance(item, Tensor) for item in new):
                continue
            tried.append(new)
            told = {"edit": "constant", "a": plain(value), "b": plain(new)}
            told["argument"] = None if key == alone else name
            yield told, {call.index: with_argument(key, new)}


def same_constant(a, b):
    """Whether two constants are one but for a rounding to float32."""
    numbers = isinstance(a, int | float) and isinstance(b, int | float)
    if numbers and not isinstance(a, bool) and not isinstance(b, bool):
        return abs(a - b) <= 2.0**-23 * abs(a)
    return type(a) is type(b) and a == b


def plain(value):
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)


def functions(call, others):
    """The same operands, another call's function and constants."""
    tensors = [value for _, _, value in arguments(call) if isinstance(value, Tensor)]
    tried = set()
    for other in others:
        places = [key for key, _, value in arguments(other) if isinstance(value, Tensor)]
        key = other.function, str(other.args), str(other.kwargs)
        if other.function is call.function or len(places) != len(tensors) or not tensors:
            continue
        if other.writes or other.name in tried or len(other.results) != len(call.results):
            continue
        tried.add(key[0])

        def edit(run, function, args, kwargs, other=other, places=places):
            new, words = list(other.args), dict(other.kwargs)
            given = [
                value for value in tree_flatten((args, kwargs))[0] if isinstance(value, Tensor)
            ]
            for place, value in zip(places, given, strict=True):
                if isinstance(place, int):
                    new[place] = value
                else:
                    words[place] = value
            return other.function, new, words, None

        yield {"edit": "function", "a": call.word, "b": other.word}, {call.index: edit}


def operands(run, call, near):
    """Another operand: the next one of the call, itself transposed, or one of the slots `near`."""
    given = [(k, n, v) for k, n, v in arguments(call) if isinstance(v, Tensor)]
    slots = dict(zip(call.numbers, run.needs[call.index], strict=False))
    for j, (key, name, value) in enumerate(given):
        mine = run.values[slots[value.number]]
        for other_key, _, other in given[j + 1 :]:
            pair = {"edit": "exchanged", "argument": name}
            yield pair, {call.index: both(with_argument(key, other),
                                          with_argument(other_key, value))}  # fmt: skip
        if mine.dim() >= 2 and mine.shape[-1] == mine.shape[-2]:
            told = {"edit": "transposed", "argument": name, "a": slots[value.number]}
            yield told, {call.index: with_argument(key, mine.mT)}
        for slot, made in near:
            if slot == slots[value.number] or made.dtype != mine.dtype:
                continue
            fits = made.shape == mine.shape
            if not fits and made.numel() == mine.numel():
                continue
            if not fits and not spreads(made, mine):
                continue
            told = {"edit": "operand", "argument": name, "a": slots[value.number], "b": slot}
            yield told, {call.index: with_argument(key, made)}


def swapped(run, call, near):
    """Two values in each other's place, whoever reads them: an operand and one of the slots."""
    slots = dict(zip(call.numbers, run.needs[call.index], strict=False))
    for _, name, value in arguments(call):
        slot = slots[value.number] if isinstance(value, Tensor) else None
        for other, made in near if slot is not None else ():
            mine = run.values[slot]
            if isinstance(other, int) and other != slot and made.shape == mine.shape:
                edit = {}
                for reader in run.program.calls:
                    needs = run.needs[reader.index]
                    if slot in needs or other in needs:
                        edit[reader.index] = exchanging(run, reader, {slot: made, other: mine})
                yield {"edit": "swapped", "argument": name, "a": slot, "b": other}, edit


def exchanging(run, call, values):
    """The call, other values for slots that it reads."""
    slots = dict(zip(call.numbers, run.needs[call.index], strict=False))

    def other(item):
        number = item.number if isinstance(item, Tensor) else None
        return values.get(slots.get(number), item)

    def edit(run, function, args, kwargs):
        return function, *tree_map(other, (args, kwargs)), None

    return edit


def spreads(made, mine):
    """Whether a tensor may stand in another's place, spread to its shape or wider."""
    try:
        torch.broadcast_shapes(made.shape, mine.shape)
    except RuntimeError:
        return False
    return made.dim() == mine.dim()


def both(first, second):
    def edit(run, function, args, kwargs):
        function, args, kwargs, _ = first(run, function, args, kwargs)
        return second(run, function, args, kwargs)

    return edit


def left_out(run, call, depth=6):
    """The call's result is one of the values that it was made of, some calls before."""
    target = next((slot for slot in run.slots[call.index] if slot is not None), None)
    if target is None:
        return
    shape, seen, level = run.values[target].shape, {target}, [call.index]
    words = [call.word]
    for _ in range(depth):
        slots = [slot for index in level for slot in run.needs[index] if slot not in seen]
        seen.update(slots)
        for slot in dict.fromkeys(slots):
            value = run.values[slot]
            if value.shape == shape and value.dtype == run.values[target].dtype:
                told = {"edit": "left_out", "calls": list(words), "b": slot}
                yield told, {call.index: with_result(value)}
        level = [run.made[slot][0] for slot in slots if isinstance(run.made[slot], tuple)]
        words += [run.program.calls[index].word for index in level]
