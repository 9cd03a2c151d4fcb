"""Where two runs part: what B's results depend on without a partner in A; and the edits."""

import math

import torch

import edits
import in_torch
from matching import Index, alike, assembled, leading, sums
from replay import RecordedProgram, Unseen
from sides import Pair, Side, in_pieces, makers, place, unseen

NEAR = 16.0  # roundings of its format, by which a stored table may be off
ROUNDS = 24  # differences that are looked for, one behind the other; of gradients, only LAST
LAST = 3
WORDS = 6  # operators that are named for one difference
FAR = 4000  # calls behind an edit that are run to count what it makes
PLACES = 24  # calls behind the place where the programs part that an edit may change
REACH = 24  # calls behind an edit that are run to see what it makes
TRIALS = 3000  # edits that are tried for one difference
NULL = 1e-9  # of the largest gradient: below it a gradient is rounding
KINDS = {
    "omitted": edits.operands, "constant": edits.constants, "number": edits.constants,
    "left_out": edits.left_out, "literal": edits.constants, "exchanged": edits.operands,
    "transposed": edits.operands, "order": edits.operands, "regrouped": edits.regrouped,
    "reordered": edits.reordered, "swapped": edits.swapped, "function": edits.functions,
    "reused": edits.reused, "operand": edits.operands,
}  # fmt: skip
SAME = {"constant": ("constant", "number", "literal"), "order": ("order", "regrouped", "reordered")}
CHOSEN = ("function", "left_out", "operand", "swapped")  # whose value one other has by chance
MORE = ("left_out", "swapped")  # can make more than any one value in the place of another


def varied(told):
    """Whether a value has numbers that differ: sums of others meet by chance."""
    count, _, squares, total = told[:4]
    return count > 1 and squares * count > total * total * (1 + 1e-9)


def search(pair, side, other, sinks, sinks_of_other, kinds, like=None):
    """(description, edits) of the edit of `side` that makes most of `other`'s values, or None;
    `like`: only of calls of this one's function and line, as the next block makes them again.

    None can make more than `other`'s own value in its place: an edit that makes as many ends the
    search, and where none does, that replacement is what is known. One behind which `side` cannot
    be run to its end is told where there is no other."""
    mine, its = pair.without(side, sinks), pair.without(other, sinks_of_other)
    shown = makers(other, its)[:PLACES]
    read = {s for call in shown for s in other.run.needs[call.index] if s not in its}
    heard, values = other.indexed(s for s in read if varied(other.told[s])), side.run.values
    found = (heard.find(*told) for told in zip(side.told, values))
    listened = {slot: set(slots) for slot, slots in enumerate(found) if slots}
    own = sorted(makers(side, mine), key=lambda call: listened.keys().isdisjoint(
        side.run.needs[call.index]))  # fmt: skip
    same = like and (like.function, like.file, like.line)
    calls = [c for c in own[:PLACES] if same in (None, (c.function, c.file, c.line))]
    if not calls or not shown:
        return None
    stop = max(side.run.made[s][0] for s in sinks if isinstance(side.run.made[s], tuple)) + 1
    several = any(varied(other.told[slot]) for slot in its)
    tells = varied if several else lambda told: told[0] == 1 and told[3] % 1.0 != 0.0  # no count
    wanted = other.indexed(s for s in its if s in sinks_of_other or tells(other.told[s]))
    functions = {call.function for call in shown}

    def made(edit, reach=FAR):
        fresh, whole = side.run.again(edit, reach, stop)
        kept = {s for s in fresh if fresh[s].shape == values[s].shape}
        changed = [side.program.calls[k] for k in edit if not kept.issuperset(side.run.slots[k])]
        # where it calls no such function, a result of another shape is told by what follows
        unmade = set().union(*(listened[s] for s in fresh if s in listened))
        kept_up = set().union(*(listened[s] for s in listened if s not in fresh)) if unmade else ()
        if unmade.difference(kept_up, *(heard.find_value(v) for v in fresh.values() if unmade)):
            return (), whole  # B reads what it unmakes
        odd = any(not in_torch.is_view(c.function) and c.function not in functions for c in changed)
        return {
            h for s in (kept if odd else fresh) for h in wanted.find_value(fresh[s], values[s])
        }, whole

    leaves = list(side.run.at_leaf.values())
    lone = {  # by slot of a leaf without partner: other leaves of its shape
        one: [(s, values[s]) for s in leaves if s != one and values[s].shape == values[one].shape]
        for one in leaves if not side.paired[one] and values[one].numel() > 1
    }  # fmt: skip
    runs, values_near = (side.run, other.run), edits.boundary(side, other, its, shown)
    near = edits.Near(side, runs, shown, values_near, lone)

    equal, lines = {}, {}  # calls that compute the same from the same, and those of one line
    for call in own:
        needs = (side.told[slot] for slot in side.run.needs[call.index])
        equal.setdefault((call.function, str(edits.constants_of(call)), *needs), []).append(call)
    for call in calls:
        lines.setdefault((call.function, place(call)), []).append(call)
    groups = [some for some in equal.values() if not {*calls}.isdisjoint(some)]
    groups += [some for some in lines.values() if len(some) > 1]

    def edits_of(kind):
        """Edits of calls that values cannot tell apart, and of those that one line makes alike."""
        proposed = KINDS.get(kind, edits.operands)
        for some in groups:
            for several in zip(*(proposed(kind, call, near) for call in some)):
                told = {**several[0][0], "call": some[0]}
                yield told, {k: edit for _, one in several for k, edit in one.items()}

    replaced, most = replacement(pair, side, other, calls, shown, its, made)
    if not several:  # too many numbers explain the one number of a loss
        kinds = sorted(kinds, key=("number", "literal").__contains__)
    turn = {kind: -k for k, kind in enumerate(kinds)}  # of edits that make as many, the first
    # The best edit with what it makes, by whether `side` can be run to its end behind it.
    bests = {whole: (None, (most or 1, -len(kinds))) for whole in (True, False)}
    goal, trials = None, 0
    for kind in sorted(kinds, key=lambda kind: kind not in MORE):
        if goal is None and kind not in MORE:
            goal = bests[True][1][0] if most or bests[True][0] else math.inf
        for told, edit in edits_of(kind):
            trials += goal is not None
            if goal and (trials > TRIALS or bests[True][1] >= (goal, turn[kind])):
                break
            hits, whole = made(edit) if made(edit, REACH)[0] else ((), False)
            told_first = other.told[min(hits)] if hits else None
            behind = (s in sinks_of_other or not alike(other.told[s], told_first) for s in hits)
            if kind in CHOSEN and not any(behind):  # nor is it a result
                continue
            if (score := (len(hits), turn[kind])) > bests[whole][1]:
                bests[whole] = (told, edit), score
    return bests[True][0] or bests[False][0] or replaced


def replacement(pair, side, other, calls, shown, its, made):
    """(description and edit, values made) of the first value of `other` that makes further ones
    where it stands in the place of one of `calls`; (None, 0) where there is none. It makes more
    than it makes superfluous: a number may stand elsewhere by chance."""
    lost = {call.index: len(chain(pair, side, call)) for call in calls}
    for given in shown:
        for slot in other.run.slots[given.index]:
            if slot is None or slot not in its or not varied(other.told[slot]):
                continue
            value, best = other.run.values[slot], (None, 0)
            for call in calls:
                target = side.run.slots[call.index][0] if side.run.slots[call.index] else None
                if target is None or side.run.values[target].shape != value.shape:
                    continue
                edit = {call.index: edits.with_result(value)}
                hits, _ = made(edit)
                further = any(not alike(other.told[hit], other.told[slot]) for hit in hits)
                if further and len(hits) > max(best[1], lost[call.index]):
                    told = {"edit": "replaced", "call": call, "given": given, "value": slot}
                    best = (told, edit), len(hits)
            if best[0]:
                return best
    return None, 0


def tables(pair, sinks_a, sinks_b, others=True):
    """Settle leaves of B without a partner: what is A's value but for a rounding, or (`others`)
    another table. Yields what differs; None for a rounding."""
    a, b = pair.a, pair.b
    mine, its = pair.without(a, sinks_a), pair.without(b, sinks_b)
    leaves = [s for s in sorted(its) if not isinstance(b.run.made[s], tuple)]
    for slot in leaves:
        value, number = b.run.values[slot], b.run.made[slot]
        if not value.is_floating_point():
            continue
        alikes = [
            s for s in sorted(mine)
            if a.run.values[s].shape == value.shape and a.run.values[s].is_floating_point()
        ]  # fmt: skip
        size, dtype = float(value.norm()) or 1.0, b.program.recorded(number).dtype
        far = [(float((a.run.values[s] - value).norm()) / size, s) for s in alikes]
        if far and min(far)[0] <= NEAR * torch.finfo(dtype).eps / 2:
            b.tables[number] = a.run.values[min(far)[1]].clone()
            yield None
            continue
        stored = [s for s in alikes if not isinstance(a.run.made[s], tuple)]
        if len(stored) != 1 or not others:
            continue
        other, name = a.run.values[stored[0]], b.named(slot)
        b.tables[number] = other.clone()
        yield {"edit": "table", "a": leading(other), "b": leading(value), "where": name}


def gradients(pair):
    """(B's names, slots) of gradients without the same numbers in A."""
    a, b = pair.a, pair.b
    sources = {n: a.run.values[a.run.state[k]] for n, k in a.program.gradients.items()}
    sizes = {n: float(value.norm()) for n, value in sources.items()}
    null = NULL * max(sizes.values(), default=0.0)
    tiny = {sources[name].numel() for name, size in sizes.items() if size <= null}
    index = Index((name, sums(value)) for name, value in sources.items())
    reads_back = any("scalar_dense" in call.name for one in (a, b) for call in one.program.calls)
    lost = []
    for name, number in b.program.gradients.items():
        slot = b.run.state.get(number)
        if slot is None or index.find(b.told[slot]):
            continue
        value = b.run.values[slot]
        if float(value.norm()) <= null and value.numel() in tiny:
            continue
        limit = NEAR * 2.0**-24 * float(value.norm())  # of factors that were rounded, read back
        alikes = [v for v in sources.values() if v.shape == value.shape] if reads_back else ()
        if any(float((v - value).norm()) <= limit for v in alikes):
            continue
        made = assembled(sources, pair.joins[name]) if name in pair.joins else None
        if made is not None:
            rounding = max(float(made.norm()), float(value.norm())) <= null
            if rounding or alike(sums(made), b.told[slot]):
                continue
        lost.append((name, slot))
    return lost


def compare(path_a, path_b):
    """What differs between two recorded programs, in the order in which they compute."""
    record = {"differences": [], "unseen": [], "complete": False}
    sides = []
    for run, path in (("A", path_a), ("B", path_b)):
        try:
            sides.append(Side(RecordedProgram(path), run == "A"))
            record["unseen"] += [{"run": run, "reason": reason} for reason in unseen(sides[-1])]
        except Unseen as reason:
            record["unseen"].append({"run": run, "reason": str(reason)})
    if len(sides) < 2:
        return record
    pair = Pair(*sides)
    leaves = (side.run.at_leaf.values() for side in sides)
    if list(tables(pair, *leaves, others=False)):  # one ulp of a weight is no other program
        pair.refresh(pair.b)
    losses = [side.told[slot] for side in sides for slot in side.slots([side.program.loss])]
    same_loss = len(losses) < 2 or alike(*losses)  # a term without a gradient is another's loss
    if same_loss and all(side.program.gradients for side in sides) and not gradients(pair):
        record["complete"] = True
        return record
    if in_pieces(pair):
        return record
    lone = (makers(side, pair.without(side, side.results())) for side in sides)
    if all(any(call.draws for call in calls) for calls in lone):  # both begin with random numbers
        record["differences"] += drawn_otherwise(pair)
        record["unseen"].append({"run": "B", "reason": "it drew other random numbers than A"})
        return record
    found, behind, names = record["differences"], [side.cut() for side in sides], ()
    pair.match()
    try:
        record["complete"] = differences(pair, lambda side: side.results(), found)
        for side, calls in zip(sides, behind) if record["complete"] and not found else ():
            side.program.calls += calls
            pair.refresh(side)
        if record["complete"] and not found and (names := {n for n, _ in gradients(pair)}):
            record["complete"] = False
            record["complete"] = differences(pair, lambda side: side.slots(
                n for name, n in side.program.gradients.items()
                if side is pair.a or name in names), found, LAST)  # fmt: skip
    except Unseen as reason:  # an edit that makes B's values, and no program
        if not found:
            record["unseen"].append({"run": "A", "reason": str(reason)})
    found[:] = [{**one, "stage": "backward"} for one in found] if names else found
    return record


def drawn_otherwise(pair):
    """Constants with which all calls of a function draw in A, and others with which all of B's do,
    as the rate of a dropout."""
    calls = [side.program.calls for side in (pair.a, pair.b)]
    for function in dict.fromkeys(call.function for call in calls[0] if call.draws):
        mine, its = ([c for c in some if c.function is function] for some in calls)
        if all(len({str(edits.constants_of(c)) for c in some}) == 1 for some in (mine, its)):
            near = edits.Near(pair.a, (pair.a.run, pair.b.run), its[:1], (), {})
            for told, _ in edits.constants("constant", mine[0], near):
                yield described(pair, pair.a, {**told, "call": mine[0]}, its[0])
                break


def differences(pair, sinks_of, found, rounds=ROUNDS):
    """Append the differences to `found`, one behind the other. Whether the sinks have partners
    then."""
    a, b, again = pair.a, pair.b, None
    for _ in range(rounds):
        sinks_a, sinks_b = sinks_of(a), sinks_of(b)
        its, mine = pair.without(b, sinks_b), pair.without(a, sinks_a)
        results = a.indexed(sinks_a)
        if all(results.find(b.told[slot]) for slot in sinks_b):
            return True
        if not sinks_a or not sinks_b:
            return False
        if not its or not mine:  # one goes on from what the other ends with
            side, more, edit = (a, mine, "left_out") if mine else (b, its, "added")
            calls = makers(side, more)
            if not calls:
                return False
            made = makers(side, {s for s in more if next(side.origins(s)) == s})  # not only moved
            its = {(one.function, place(one)) for one in (b if side is a else a).program.calls}
            alone = [one for one in made if (one.function, place(one)) not in its]
            named = words(alone) or words(made) or [calls[0].word]
            told = {"edit": edit, "calls": named, "call": calls[0]}
            found.append(described(pair, side, told, calls[0]))
            return True
        settled = list(tables(pair, sinks_a, sinks_b))
        if settled:
            found += [{"stage": "forward", **one} for one in settled if one is not None]
            pair.refresh(b)
            continue
        first, forms = first_of(b, its), {a: None, b: None}
        if again is not None:  # a loop's next step or the next block, most often
            side, other = (a, b) if again[0] is a else (b, a)
            forms[side] = search(pair, side, other, sinks_of(side), sinks_of(other), *again[1:])
        if all(map(is_replacement, forms.values())):
            forms[a] = search(pair, a, b, sinks_a, sinks_b, KINDS)
        best = forms[a]
        if best is not None and best[0]["edit"] == "replaced":
            value, call = b.run.values[best[0].pop("value")].double(), best[0]["call"]
            apart = float((a.run.values[a.run.slots[call.index][0]].double() - value).norm())
            if apart <= NEAR * 2.0**-24 * float(value.norm()):  # a constant that one rounds, say
                a.edits.update(best[1])
                pair.refresh(a)
                continue
        if all(map(is_replacement, forms.values())):
            if opened(pair, mine, its):
                continue
            forms[b] = search(pair, b, a, sinks_b, sinks_a, ("left_out", *SAME["order"]))
        if not is_replacement(forms[b]):
            told, edit = forms[b]
            kind = told["edit"]
            one = described(pair, b, {**told, "edit": kind.replace("left_out", "added")}, first)
            found += [one] if one not in found else []
            again = b, SAME.get(kind, (kind,)), told["call"]
            b.edits.update(edit)
            pair.refresh(b)
            continue
        if best is None:
            named = [words(makers(side, some)) for side, some in ((a, mine), (b, its))]
            alone = [[w for w in named[k] if w not in named[1 - k]] for k in (0, 1)]
            told = {"edit": "parts", "call": first, "a": ", ".join(alone[0] or named[0])}
            told["b"] = ", ".join(alone[1] or named[1])
            found.append(described(pair, b, told, first))
            return False
        told, edit = best
        kind = told["edit"]
        again = None if kind == "replaced" else (a, SAME.get(kind, (kind,)), told["call"])
        if kind == "replaced":
            chains = chain(pair, a, told["call"]), chain(pair, b, told.pop("given"))
            named = [[", ".join(words(calls, k)) for calls in chains] for k in range(3)]
            told["a"], told["b"] = next((pair for pair in named if pair[0] != pair[1]), named[0])
        a.edits.update(edit)
        found += [one for one in [described(pair, a, told, first)] if one not in found]
        pair.refresh(a)
    return False


def opened(pair, mine, its):
    """Run calls that only one program makes here as those of their formulas, if they have any."""
    sides = [(pair.a, makers(pair.a, mine)[:PLACES]), (pair.b, makers(pair.b, its)[:PLACES])]
    functions = [{call.function for call in calls} for _, calls in sides]
    before = [len(side.program.calls) for side, _ in sides]
    for (side, calls), others in zip(sides, functions[::-1]):
        side.refresh([call for call in calls if call.function not in others])
    pair.match()
    return [len(side.program.calls) for side, _ in sides] != before


def is_replacement(found):
    return found is None or found[0]["edit"] == "replaced"


def chain(pair, side, call):
    """The calls without partner that a call's result is made by, in order."""
    return makers(side, pair.without(side, side.run.made_by(call)))


def dropped(side, call, kept):
    """The calls that only serve a call's result for the program's own, if a value `kept` takes its
    place."""
    run, readers, gone, left = side.run, {}, {call.index}, side.results()
    while left:
        made = run.made[left.pop()]
        for slot in run.needs[made[0]] if isinstance(made, tuple) else ():
            left += [] if slot in readers else [slot]
            readers.setdefault(slot, set()).add(made[0])
    for one in reversed(side.program.calls[: call.index]):
        reads = [readers.get(slot, set()) for slot in run.slots[one.index]]
        if any(reads) and kept not in run.slots[one.index] and gone.issuperset(set().union(*reads)):
            gone.add(one.index)
    return [side.program.calls[index] for index in sorted(gone)]


def words(calls, detail=0):
    """The operators of calls, but for those that move numbers: a fused one whose result is among
    theirs, or (`detail`) its parts; then with all of their numbers."""
    calls = [call for call in calls if not in_torch.is_view(call.function)]
    ended = {call.of for call in calls if call.ends and not detail}
    whole = detail == 2
    named = (edits.called(one.of if one.of in ended else one, whole) for one in calls)
    return list(dict.fromkeys(named))[:WORDS]


def first_of(side, slots):
    """The first call that makes one of the slots and reads others, or what no call reads."""
    calls, needs = makers(side, slots), side.run.needs
    filled = {s for call in calls if not needs[call.index] for s in side.run.slots[call.index]}
    for call in calls:
        if needs[call.index] and not (slots - filled) & set(needs[call.index]):
            return call
    return next(iter(calls), None)


def described(pair, side, told, first):
    """An edit without anything of torch; `first`: B's first call without partner."""
    told, other = dict(told), pair.b if side is pair.a else pair.a
    call, edit = told.pop("call"), told["edit"]
    if isinstance(told.get("b"), int) and edit in ("left_out", "added"):
        calls = dropped(side, call, told["b"])[::-1]  # the last of them are at this place
        alone = [one for one in calls if not all(side.paired[s] for s in side.run.made_by(one))]
        told["calls"] = words(alone or calls)[::-1] or [call.word]
    for key in ("a", "b") if edit not in ("constant", "function", "replaced") else ():
        slot = told.get(key)
        if isinstance(slot, (int, tuple)):
            told[key] = other.named(slot[1]) if isinstance(slot, tuple) else side.named(slot)
    if edit == "swapped":
        told["a"], told["b"] = sorted((told["a"], told["b"]))
    shown = [one for one in (call, first) if one is not None]
    names = [(": ".join(filter(None, (c.fused, c.word))), place(c)) for c in shown]
    told |= dict(zip(("call", "where"), names[0])) if names else {}
    told |= dict(zip(("at_call", "at"), names[1])) if len(set(names)) > 1 else {}
    return {"stage": "forward", **told}
