"""A claim about a framework, and the ways to ask whether it holds.

A `Fact` is a claim with the survey's figure. `see` asks the framework, and says what was seen and
whether that is what the survey says; `because` is the reason where it is not.
"""

from __future__ import annotations

import json
import math
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from refkernels import registry
from refkernels.arithmetic import formats
from refkernels.diagnosis.casefile import CaseFile
from refkernels.frameworks import environments
from refkernels.frameworks.gateway import Reply, Session
from refkernels.metrology import summarise
from refkernels.records.words import SOUND
from refkernels.truth import Truth

Array = npt.NDArray[Any]
Arrays = Mapping[str, Array]
SIZE = 2.0  # figures of inputs that the survey drew and did not keep agree within this factor
DRAWS = 39  # one more draw lies outside the range of so many in one of 20 cases


@dataclass(frozen=True)
class Seen:
    """`ours`: the figure or the cause, as printed; `holds`: whether it is the survey's; `script`:
    whether the answer to paste has a script, None where nothing is explained."""

    ours: str
    holds: bool
    script: bool | None = None


@dataclass(frozen=True)
class Fact:
    section: str
    framework: str
    claim: str
    figure: str
    see: Callable[[Seats, Fact], Seen]
    because: str = ""

    @property
    def name(self) -> str:
        return f"{self.section} {self.framework}: {self.claim}"


class Seats:
    """The frameworks' sessions, each started at its first question."""

    def __init__(self) -> None:
        self._sessions: dict[str, Session] = {}

    def session(self, framework: str) -> Session:
        if framework not in self._sessions:
            self._sessions[framework] = Session(framework)
        return self._sessions[framework]

    def run(self, fact: Fact, op: str, inputs: Arrays, params: Any, direction: Any) -> Reply:
        leaves = registry.get(op).differentiated
        return self.session(fact.framework).run(op, direction, inputs, params, leaves=leaves)

    def close(self) -> None:
        for session in self._sessions.values():
            session.close()


def failed(reply: Reply) -> Seen:
    return Seen(f"no answer: {str(reply.reason).splitlines()[0][:120]}", False)


def explained(
    op: str, inputs: Arrays, params: Any = None, *causes: str, direction: Any = "forward"
) -> Callable[[Seats, Fact], Seen]:
    """Whether `explain` names one of the causes; without causes, whether all is rounding."""

    def see(seats: Seats, fact: Fact) -> Seen:
        reply = seats.run(fact, op, inputs, params or {}, direction)
        if not reply.ok:
            return failed(reply)
        environment = {fact.framework: seats.session(fact.framework).info["environment"]}
        outputs = {fact.framework: reply.outputs}
        case = CaseFile(op, direction, dict(inputs), outputs, params or {}, environment)
        explanation = case.explain()
        ulps = max(
            (o["ulp"] or {}).get("max") or 0.0
            for kernel in explanation.kernels.values()
            for o in kernel.evidence["outputs"].values()
        )
        script = "```python" in explanation.to_markdown()
        if explanation.verdict in SOUND and "unusual" not in explanation.flags:
            return Seen(f"rounding, at most {ulps:.2g} ulp", not causes, script)
        named = f"`{explanation.cause}`" if explanation.cause else "no cause"
        ours = f"{named} ({explanation.confidence}), {ulps:.2g} ulp"
        return Seen(ours, explanation.cause in causes, script)

    return see


def gives(
    op: str,
    inputs: Arrays,
    params: Any,
    expected: Sequence[float],
    *,
    output: str | None = None,
    direction: Any = "forward",
    digits: int = 7,
    places: Any = ...,
) -> Callable[[Seats, Fact], Seen]:
    """Whether the numbers of an output (the first by default) at `places` are the expected ones, in
    so many digits."""

    def see(seats: Seats, fact: Fact) -> Seen:
        reply = seats.run(fact, op, inputs, params, direction)
        if not reply.ok:
            return failed(reply)
        got = reply.outputs[output or next(iter(reply.outputs))]
        return compared(np.ravel(got).astype(np.float64)[places].tolist(), expected, digits)

    return see


def compared(got: Sequence[float], expected: Sequence[float], digits: int) -> Seen:
    """Numbers beside the survey's: equal where they differ by at most a unit of its last printed
    digit."""
    text = ", ".join(f"{value:.{digits}g}" for value in got)
    equal = len(got) == len(expected) and all(map(_same(digits), got, expected))
    return Seen(text, equal)


def _same(digits: int) -> Callable[[float, float], bool]:
    def same(a: float, b: float) -> bool:
        if math.isnan(b) or math.isinf(b) or b == 0:
            return a == b or (math.isnan(a) and math.isnan(b))
        unit = 10.0 ** (math.floor(math.log10(abs(b))) + 1 - digits)
        return abs(a - b) <= unit * (1 + 1e-9)

    return same


def refused(op: str, inputs: Arrays, params: Any, *words: str) -> Callable[[Seats, Fact], Seen]:
    """Whether the framework answers with an error, or has no kernel, in one of these words."""

    def see(seats: Seats, fact: Fact) -> Seen:
        reply = seats.run(fact, op, inputs, params, "forward")
        if reply.ok:
            return Seen("answers", False)
        reason = str(reply.reason).splitlines()[0]
        holds = not words or any(word in str(reply.reason) for word in words)
        return Seen(f"raises: {reason[:100]}", holds)

    return see


def errors(
    op: str, inputs: Arrays, params: Any, output: str, direction: Any = "forward"
) -> Callable[[Seats, Fact], float | str]:
    """The largest error of an output in ulp, or why there is none."""

    def ask(seats: Seats, fact: Fact) -> float | str:
        reply = seats.run(fact, op, inputs, params, direction)
        if not reply.ok:
            return failed(reply).ours
        got = reply.outputs[output]
        truth = Truth(registry.get(op), direction, inputs, params, formats.of(got))
        summary = summarise(got, truth.reference[output], distribution=False)
        if summary.counts["special_value_mismatches"]:
            return "NaN" if np.isnan(got).any() else "wrong infinity"
        return summary.max

    return ask


def ulps(
    ask: Callable[[Seats, Fact], float | str],
    figure: float | str,
    again: Callable[[int], Callable[[Seats, Fact], float | str]] | None = None,
) -> Callable[[Seats, Fact], Seen]:
    """Whether the largest error has the size of the survey's, or both are within an ulp.

    `again(k)` asks about the k-th of more draws: then it is enough that the survey's figure, a draw
    like ours, lies between the smallest and the largest of at most DRAWS draws.
    """

    def see(seats: Seats, fact: Fact) -> Seen:
        got = ask(seats, fact)
        if isinstance(got, str) or isinstance(figure, str):
            return Seen(got if isinstance(got, str) else f"{got:.3g} ulp", got == figure)
        small = got <= 1.0 and figure <= 1.0
        near = figure > 0 and 1 / SIZE <= got / figure <= SIZE
        if small or near or again is None:
            return Seen(f"{got:.3g} ulp", small or near)
        drawn = [got]
        while len(drawn) < DRAWS and not min(drawn) <= figure <= max(drawn):
            size = again(len(drawn))(seats, fact)
            if isinstance(size, str):
                return Seen(size, False)
            drawn.append(size)
        ends = f"{min(drawn):.3g} to {max(drawn):.3g} ulp in {len(drawn)} draws"
        return Seen(ends, min(drawn) <= figure <= max(drawn))

    return see


def printed(code: str, expected: Sequence[float], digits: int) -> Callable[[Seats, Fact], Seen]:
    """Whether a script in the framework's interpreter prints those numbers as JSON."""

    def see(seats: Seats, fact: Fact) -> Seen:
        python = environments.find(fact.framework).python
        ran = subprocess.run([python, "-c", code], capture_output=True, text=True, timeout=300)
        if ran.returncode:
            return Seen(f"no answer: {ran.stderr.strip().splitlines()[-1][:120]}", False)
        return compared(json.loads(ran.stdout.strip().splitlines()[-1]), expected, digits)

    return see
