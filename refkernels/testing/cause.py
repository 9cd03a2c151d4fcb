"""Why a kernel failed: the answer of `refkernels.explain`, within limits of size and time.

A failing test must not hang: very large arrays are not explained, and a process that has spent
`SECONDS` on explanations (a property-based test that shrinks its examples) looks for no more.
"""

import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy.typing as npt

from refkernels.metrology.outputs import Asked
from refkernels.op import Direction, Op

Array = npt.NDArray[Any]
Arrays = Mapping[str, Array]

LARGEST = 2**22  # elements of all inputs
SECONDS = 60.0

_spent = 0.0
_said: dict[tuple[str, ...], tuple[int, Any]] = {}  # explanations by test, output and cause


@dataclass(frozen=True)
class FailedQuestion:
    """A kernel's inputs and answers, of which `output` failed, and the truth of the question."""

    op: Op
    direction: Direction
    inputs: Arrays
    params: Mapping[str, Any]
    outputs: Arrays
    output: str
    truth: Asked

    def cause(self) -> str:
        """The lines that give the cause with its confidence and its advice, or the reason why there
        is none."""
        global _spent
        large = sum(array.size for array in self.inputs.values()) > LARGEST
        if large or _spent >= SECONDS:
            why = (
                "the arrays are large"
                if large
                else f"this process has spent {SECONDS:g} s on causes"
            )
            return f"  Cause: not looked for, as {why}: call refkernels.explain."
        start = time.perf_counter()
        try:
            return _cause_lines(self)
        except Exception as error:  # a failure here must not hide the assertion
            said = next(iter(str(error).splitlines()), "")[:200]
            said = f"{type(error).__name__}: {said}".removesuffix(": ")
            return f"  Cause: not found, as refkernels.explain failed ({said})."
        finally:
            _spent += time.perf_counter() - start


def _cause_lines(question: FailedQuestion) -> str:
    # Imported here because a passing test does not need it.
    from refkernels.diagnosis.explain import explain_kernel, one_kernel
    from refkernels.reporting.answer.facts import ExplainedKernel, advice, says

    given = question.inputs, question.outputs, question.params, question.direction
    explanation = explain_kernel(*one_kernel(question.op, *given, question.truth))
    explanation, cases = _with_earlier(question, explanation)
    kernel = ExplainedKernel("", explanation.to_dict())
    if kernel.best is None and kernel.fine:
        return (
            "  Cause: rounding: every element is inside the op's bound, and the errors are "
            "of the usual size."
        )
    if kernel.best is None:
        return f"  Cause: unknown: none of {kernel.tried:,} hypotheses fits."
    perhaps = "perhaps " if explanation.confidence == "consistent" else ""
    text = says(kernel.best, "en", len(kernel.models) > 1)
    where = "this case" if cases == 1 else f"{cases} failures of this test"
    return (
        f"  Cause: {perhaps}{explanation.cause}, {explanation.confidence}: in {where} the "
        f"kernel {text}.\n  Next step: {advice(str(explanation.cause), 'en')}"
    )


def _with_earlier(question: FailedQuestion, explanation: Any) -> tuple[Any, int]:
    """What this failure and earlier ones of the running test function, of that cause, allow
    together, and how many they are; this one alone where they exclude each other."""
    from refkernels.diagnosis import several_cases

    test = os.environ.get("PYTEST_CURRENT_TEST", "").rsplit(" ", 1)[0].partition("[")[0]
    key = test, question.op.name, question.direction, question.output, str(explanation.cause)
    cases, earlier = _said.get(key, (0, explanation))
    agreed = several_cases.together(explanation, [earlier])
    if not test or not several_cases.is_sure(agreed) or agreed.cause != explanation.cause:
        return explanation, 1
    _said[key] = cases + 1, agreed
    return agreed, cases + 1
