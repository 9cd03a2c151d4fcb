"""The same faults on every op that can have them: which does `explain` name?

    python benchmarks/fault_matrix.py [--ops softmax ...] --journal FILE

A fault is an edit of the op's recorded program, made by rules of its own or by the package's, and
planted at the first of its places (in a drawn order) where it shows: outside the bound. The kernel
computes in float32, its sums in a random order. Inputs have the shapes and params of one of the
op's cases, about 10^3 elements. An answer that names another cause is asked for again on two more
cases: a cause that explains all three, or that of an edit which is the planted program on other
inputs too, is another description, and any other is wrong. One that is not sure gets the evidence
of seven more cases.

FILE has a line for each cell; a run with the same FILE leaves out those that it has. Writes
docs/fault-matrix.md from it.
"""

from __future__ import annotations

import argparse
import functools
import json
import math
import sys
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))

from refkernels import registry
from refkernels.arithmetic import formats
from refkernels.contexts.graph import Edits, Graph
from refkernels.diagnosis import several_cases
from refkernels.diagnosis.edits import identities, reductions
from refkernels.diagnosis.edits.catalogue import Edit, Program, by, is_number, through
from refkernels.diagnosis.edits.rules import edits_of
from refkernels.diagnosis.edits.search import formulas_of
from refkernels.diagnosis.explain import one_kernel
from refkernels.ops.edits import edited
from refkernels.ops.function_formulas import definition
from refkernels.truth import Truth

PAGE = Path(__file__).parent.parent / "docs" / "fault-matrix.md"
SIZE, TRIES = 1200, 6
_NOISE = 2.0**-30  # of the largest size: what is no larger is zeros that are rounded
ROWS = 24  # at least, so that there are bits enough to prove anything
SUMS = ("sum", "mean", "norm", "max", "matmul")


def by_rule(*kinds: str, **where: Any) -> Callable[[Program], Iterator[Edits]]:
    """The edits of these kinds that the package's own rules propose, where the details are as
    given, or a function of them is true."""

    def fits(edit: Edit) -> bool:
        values = ((edit.details.get(name), is_) for name, is_ in where.items())
        return all(is_(value) if callable(is_) else value == is_ for value, is_ in values)

    def places(program: Program) -> Iterator[Edits]:
        edits = (edit for edit in edits_of(program, kinds) if "use" not in edit.details)
        return (edit.changes for edit in edits if fits(edit))

    return places


def one_pass(program: Program) -> Iterator[Edits]:
    """mean((x - mean(x))²) -> mean(x²) - mean(x)²"""
    found = identities.identities(program)
    return ({way.node: way.replacement} for way in found if way.kind == "variance")


def _without(part: Callable[[int], tuple[int, int]]) -> Callable[[Program], Iterator[Edits]]:
    """The sums that leave out the terms from start to stop, of n."""

    def places(program: Program) -> Iterator[Edits]:
        for nodes in reductions.over_one_length(program):
            start, stop = part(reductions.length_of(nodes[0]))
            if start < stop:
                yield reductions.with_terms(nodes, start, stop)[0]

    return places


def clamped(program: Program) -> Iterator[Edits]:
    for node in program.nodes:
        if node.op in (*SUMS, "multiply", "divide", "function", "input") and node.shape:
            yield {node: by(node)(lambda xp, v: xp.minimum(v, xp.number(0.75)))}
            yield {node: by(node)(lambda xp, v: xp.maximum(v, xp.number(0.25)))}


LOST = "terms_left_out dropped_tail part_of_sum_left_out"
TERM = (
    "term_missing term_doubled sign_wrong factor_missing factor_twice scale_factor part_multiplied"
)
FAULTS: dict[str, tuple[Callable[[Program], Iterator[Edits]], str]] = {
    "eps outside root": (
        by_rule("constant_outside_root"),
        "eps_outside_sqrt constant_outside_root",
    ),
    "n - 1": (
        by_rule("divisor_differs", by="n - 1"),
        "unbiased_variance divisor_differs scale_factor sum_for_mean",
    ),
    "one pass": (one_pass, "naive_variance"),
    "no weight or bias": (
        by_rule(
            "term_missing",
            "factor_missing",
            part=lambda node: through(node).op == "input" and node.shape[:1] == (1,),
        ),
        f"{TERM} missing_bias weight_missing_in_dx stop_gradient",
    ),
    "wrong axis": (by_rule("other_axis"), "other_axis wrong_axes axes_exchanged"),
    "window ± 1": (
        by_rule("mask_differs", how=lambda how: how in ("wider", "narrower")),
        "mask_too_wide mask_too_narrow mask_shifted",
    ),
    "first for all": (by_rule("index_differs", how="first"), "first_for_all index_differs"),
    "lost tail": (_without(lambda n: (n - max(n // 5, 1), n)), LOST),
    "lost block": (_without(lambda n: (n // 8 * 3, n // 8 * 4)), LOST),
    "term twice": (by_rule("term_doubled"), f"{TERM} doubled_bias"),
    "exchanged": (
        by_rule("inputs_exchanged", "exchanged_operands"),
        "inputs_exchanged exchanged_operands sign_error factor_inverted",
    ),
    "no scale": (
        by_rule("factor_missing", part=lambda node: is_number(through(node))),
        f"{TERM} scale_missing sum_for_mean divisor_differs constant_differs param_differs",
    ),
    "stop-gradient": (by_rule("stop_gradient"), "stop_gradient constant_statistics constant_mean"),
    "narrow value": (
        by_rule("intermediate_rounded", format="bfloat16"),
        "narrow_intermediates intermediate_rounded bf16_inputs wrong_dtype",
    ),
    "clamped value": (clamped, "floored capped cut beyond_threshold constant_differs"),
}


def question(op: Any, direction: Any, rng: Any) -> tuple[dict[str, Any], Any]:
    """New numbers in the shapes, and between the extremes, of the case that is nearest in size and
    has many outputs; with more rows where it has few."""
    best, nearest = None, math.inf
    for case in op.cases():
        if "float32" not in case.dtypes or direction not in case.directions:
            continue
        inputs, params = case.build("float32")
        arrays = {name: inputs[name] for name in op.takes(direction) if name in inputs}
        if not all(np.isfinite(a).all() for a in arrays.values() if a.dtype.kind == "f"):
            continue
        grown = _with_rows(op, direction, arrays)
        away = abs(math.log(sum(map(np.size, arrays.values())) / SIZE))
        outputs = op.plain(direction, arrays, {**op.params, **params}, "float32")
        away += 2.0 * max(math.log(64 / max(map(np.size, outputs.values()))), 0.0)
        if away < nearest and sum(map(np.size, grown.values())) <= 10 * SIZE:
            best, nearest = (grown, params), away
    assert best is not None
    return {name: _fresh(array, rng) for name, array in best[0].items()}, best[1]


def _with_rows(op: Any, direction: Any, arrays: dict[str, Any]) -> dict[str, Any]:
    takes = definition(op).of(direction).signature.takes

    def first(name: str, array: Any) -> tuple[str, tuple[int, ...]]:
        """The letter of the first axis, and its length."""
        own = takes[name].own
        return "..." if array.ndim > len(own) else own[0] if own else "", array.shape[:1]

    largest = max(arrays, key=lambda name: arrays[name].size)
    alike = {n for n, a in arrays.items() if first(n, a) == first(largest, arrays[largest])}
    times = -(-ROWS // len(arrays[largest])) if arrays[largest].ndim > 1 else 1
    return {n: np.concatenate([a] * times) if n in alike else a for n, a in arrays.items()}


def _fresh(array: Any, rng: Any) -> Any:
    if array.dtype.kind != "f":
        return array
    low, high = np.clip([array.min(initial=0.0), array.max(initial=0.0)], -3.0, 3.0)
    low = max(low, 0.05) if array.size and array.min() > 0.0 else low
    return rng.uniform(low, max(high, low + 0.5), array.shape).astype(np.float32)


def plantings(op: Any, direction: Any, places: Any) -> Iterator[Callable[[int | None], Any]]:
    """By program: the formula with the fault at one of its places, by number; None: without it."""
    formulas = definition(op)
    if direction == "backward":
        derive = formulas.derive
        for form in formulas.forward.forms.values():
            yield lambda k, form=form: derive(edited(form, _chosen(places, k)))
    for form in formulas.of(direction).forms.values():
        yield lambda k, form=form: edited(form, _chosen(places, k))


def _chosen(places: Any, number: int | None) -> Callable[[Graph], Edits]:
    """The edit at the place of this number, in a drawn order; IndexError if there are fewer."""

    def rule(graph: Graph) -> Edits:
        if number is None:
            return {}
        every = list(places(Program(graph)))
        return every[np.random.default_rng(len(every)).permutation(len(every))[number]]

    return rule


def shown(op: Any, direction: Any, formula: Any, asked: Any, rounds: bool, seed: int) -> Any:
    """The answer of a kernel that computes the formula; None where it is inside the bound, or one
    number throughout, or, unless the fault is one that `rounds`, where float64 has it so."""
    truth = Truth(op, direction, *asked, formats.BINARY32)
    with np.errstate(all="ignore"):
        in_both = [
            definition(op).computed(direction, formula, *asked, format, order="random", seed=seed)
            for format in ("float32", *([] if rounds else ["float64"]))
        ]
        for name, bound in truth.bound().items():
            exact, each = np.asarray(truth.reference[name]), [y[name] for y in in_both]
            if any(y.shape != exact.shape or not np.isfinite(y).all() for y in each):
                return None
            least = _NOISE * np.max(np.abs(exact), initial=0.0)
            if all(
                np.any(np.abs(y.astype(np.float64) - exact) > 4.0 * bound)
                and np.max(np.abs(y)) > least
                and (y.size == 1 or np.ptp(y) > least)
                for y in each
            ):
                return in_both[0]
    return None


def cell(op: Any, direction: Any, fault: str) -> dict[str, Any]:
    """What `explain` says of the fault where it shows; `state` says whether it is named."""
    places, causes = FAULTS[fault]
    seed = zlib.crc32(f"{op.name} {direction} {fault}".encode())
    asked, state = drawn(op, direction, fault, seed), "not applicable"
    rounds = fault == "one pass"
    for planting in plantings(op, direction, places):
        for number in (None, *range(TRIES)):
            planted = functools.partial(shown, op, direction, planting(number), seed=seed)
            try:
                outputs = planted(asked, rounds=rounds or number is None)
            except (ValueError, TypeError, IndexError):  # no such place, or its shapes do not fit
                continue
            if number is None and outputs is not None:
                break  # a form that is wrong by itself
            if number is not None:
                state = "cannot show"
            if outputs is None:
                continue
            cases = [(asked, outputs)]
            found = explained(op, direction, cases, causes)
            if found["state"] not in MARKS:
                others = (drawn(op, direction, fault, seed + k) for k in range(1, 8))
                answers = ((a, planted(a, rounds=rounds)) for a in others)
                cases += [case for case in answers if case[1] is not None]
            if found["state"] == "unnamed":  # one number tells little in one case
                found = explained(op, direction, cases, causes)
            if found["state"] == "otherwise":
                more = [explained(op, direction, [c], found["cause"])["state"] for c in cases[1:3]]
                alike = more and all(state in MARKS for state in more)
                fresh = [drawn(op, direction, fault, seed + k) for k in (8, 9)]
                asked = op, direction, planting(number), fresh, cases[0], found["cause"]
                found["state"] = "equivalent" if alike or is_same(*asked) else "wrong"
            return found
    return {"state": state}


def drawn(op: Any, direction: Any, fault: str, seed: int) -> tuple[Any, Any]:
    """Inputs and params on which the fault may show."""
    inputs, params = question(op, direction, np.random.default_rng(seed))
    if fault == "one pass":
        inputs = {n: x + np.float32(100) if n == "x" else x for n, x in inputs.items()}
    eps = {"eps": 0.01} if fault == "eps outside root" and "eps" in op.params else {}
    return inputs, {**op.params, **params, **eps}


def explained(op: Any, direction: Any, cases: list[Any], causes: str) -> dict[str, Any]:
    """The state of one kernel's answers: named as one of these causes, otherwise, or not."""
    found = several_cases.jointly(op, direction, [(a[0], y, a[1]) for a, y in cases])
    sure = found.confidence in ("proven", "matched")
    right = sure and found.cause in causes.split()
    return {
        "state": str(found.confidence) if right else "otherwise" if sure else "unnamed",
        "cause": found.cause,
    }


def is_same(op: Any, direction: Any, planted: Any, fresh: Any, case: Any, cause: str) -> bool:
    """Whether an edit of this cause that explains the case is the planted program, on other inputs
    too: it may have several names."""
    (inputs, params), outputs = case
    edits = formulas_of(*one_kernel(op, inputs, outputs, params, direction), 0.0)
    computed = functools.partial(definition(op).computed, direction, format="float64")
    for formula in (formula for name, _, formula in edits if name == cause):
        pairs = [[computed(f, *asked) for f in (planted, formula)] for asked in fresh]
        if all(np.allclose(a[n], b[n], 1e-9, 0.0) for a, b in pairs for n in a):
            return True
    return False


MARKS = {"proven": "proven", "matched": "matched", "equivalent": "proven"}
BLANK = {"not applicable": "–", "cannot show": "", "?": "?"}


def page(cells: dict[str, dict[str, Any]]) -> str:
    """The matrix as Markdown."""
    states = [entry["state"] for entry in cells.values() if "cause" in entry]
    named = sum(state in MARKS for state in states)
    lines = [
        "# Which faults are named, by op",
        "",
        f"By `benchmarks/fault_matrix.py`. Of {len(states)} faults that show, {named} are named, "
        f"{states.count('wrong')} wrongly. Blank: inside the bound wherever it was planted; –: no "
        "place for it; ?: not asked.",
        "",
        f"| op | pass | {' | '.join(FAULTS)} |",
        f"|---|---|{'---|' * len(FAULTS)}",
    ]
    for op in registry.ops().values():
        for direction in op.directions:
            row = [_mark(cells, f"{op.name} {direction} {fault}") for fault in FAULTS]
            lines.append(f"| {op.name} | {direction} | {' | '.join(row)} |")
    return "\n".join(lines) + "\n"


def _mark(cells: dict[str, dict[str, Any]], name: str) -> str:
    entry = cells.get(name, {"state": "?"})
    other = f"**{entry['state']}**: {entry.get('cause')}"
    return (MARKS | BLANK).get(entry["state"], other)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ops", nargs="*", default=list(registry.ops()))
    parser.add_argument("--journal", type=Path, required=True)
    parser.add_argument("--again", nargs="*", default=(), help="states to ask again")
    given = parser.parse_args()
    lines = given.journal.read_text().splitlines() if given.journal.exists() else []
    cells = {entry.pop("name"): entry for entry in map(json.loads, lines)}
    for op in map(registry.get, given.ops):
        for direction in op.directions:
            for fault in FAULTS:
                name = f"{op.name} {direction} {fault}"
                if name in cells and cells[name]["state"] not in given.again:
                    continue
                entry = cell(op, direction, fault)
                cells[name] = entry
                with given.journal.open("a", encoding="utf-8") as file:
                    file.write(json.dumps({"name": name, **entry}) + "\n")
    PAGE.write_text(page(cells), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
