"""Why a kernel failed: the answer of `refkernels.explain`, within limits of size and time.

A failing test must not hang. Of large arrays only the rows with the worst elements are explained,
with some others from all over the array; large arrays that cannot be cut by rows are not explained.
A process that has spent `SECONDS` on explanations (a property-based test that shrinks its examples)
looks for no more causes.
"""

import os
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from refkernels.op import Direction, Op

Array = npt.NDArray[Any]
Arrays = Mapping[str, Array]

ROWS = 2**16  # elements of all inputs that have rows
SHARED = 2**22  # elements of all inputs that the rows share, such as a weight
SECONDS = 60.0
_WORST = 16  # rows that hold the worst elements
_LARGE = (
    "  Cause: not looked for, as the arrays are large and cannot be cut by rows: call "
    "refkernels.explain."
)

_spent = 0.0
_said: dict[tuple[str, ...], tuple[int, Any]] = {}  # explanations by test, output and cause


@dataclass(frozen=True)
class FailedQuestion:
    """A kernel's inputs and answers, of which `output` failed."""

    op: Op
    direction: Direction
    inputs: Arrays
    params: Mapping[str, Any]
    outputs: Arrays
    output: str

    def cause(self, places: list[int]) -> str:
        """The lines that give the cause with its confidence and its advice, or the reason why there
        is none. `places`: the worst elements of the output."""
        global _spent
        if _spent >= SECONDS:
            return (
                f"  Cause: not looked for, as this process has spent {SECONDS:g} s on causes: call "
                "refkernels.explain."
            )
        cut, kept_rows, all_rows = self._excerpt(places)
        if cut is None:
            return _LARGE
        scope = "" if kept_rows == all_rows else f" (found in {kept_rows} of {all_rows} rows)"
        start = time.perf_counter()
        try:
            return _cause_lines(cut, scope)
        except Exception as error:  # a failure here must not hide the assertion
            if kept_rows < all_rows and isinstance(error, ValueError):  # some rows make no question
                return _LARGE
            said = next(iter(str(error).splitlines()), "")[:200]
            said = f"{type(error).__name__}: {said}".removesuffix(": ")
            return f"  Cause: not found, as refkernels.explain failed ({said})."
        finally:
            _spent += time.perf_counter() - start

    def _excerpt(self, places: list[int]) -> "tuple[FailedQuestion | None, int, int]":
        """A small question itself, or some rows of a large one, with their number and the number of
        all rows; None for a large question that cannot be cut by rows."""
        flat = self._flat() if self.op.elementwise else self
        rowed_names = {*self.op.row_inputs, self.op.cotangent} & set(flat.inputs)
        sizes = {name: flat.inputs[name].size for name in flat.inputs}
        rowed = sum(sizes[name] for name in rowed_names)
        if sum(sizes.values()) - rowed > SHARED:
            return None, 0, 0
        if rowed <= ROWS:
            return self, 0, 0
        all_rows = flat._rows(rowed_names)
        kept_rows = ROWS * all_rows // rowed
        if not all_rows or not kept_rows:
            return None, 0, 0
        shape = flat.outputs[self.output].shape
        worst = np.unravel_index(np.asarray(places, np.intp), shape)[0]
        worst_rows = list(dict.fromkeys(int(row) for row in worst))[: min(_WORST, kept_rows)]
        spread = np.linspace(0, all_rows - 1, kept_rows - len(worst_rows)).astype(int)
        rows = np.unique(np.concatenate([np.asarray(worst_rows, int), spread]))
        cut = replace(
            flat,
            inputs={n: a[rows] if n in rowed_names else a for n, a in flat.inputs.items()},
            outputs={n: flat.outputs[n][rows] for n in flat._by_row() if n in flat.outputs},
        )
        return cut, len(rows), all_rows

    def _flat(self) -> "FailedQuestion":
        inputs = {name: array.reshape(-1) for name, array in self.inputs.items()}
        outputs = {name: array.reshape(-1) for name, array in self.outputs.items()}
        return replace(self, inputs=inputs, outputs=outputs)

    def _by_row(self) -> tuple[str, ...]:
        return self.op.outputs if self.direction == "forward" else self.op.row_gradients

    def _rows(self, rowed_names: set[str]) -> int:
        """The number of rows, the first axis of the inputs and of the failing output; 0 if that
        axis does not count rows that the op treats independently."""
        shapes = [self.inputs[name].shape for name in rowed_names]
        shapes += [array.shape for name, array in self.outputs.items() if name in self._by_row()]
        axes = max(len(self.inputs[name].shape) for name in rowed_names)
        shared = [self.inputs[name].ndim for name in self.inputs if name not in rowed_names]
        if self.output not in self._by_row() or not all(shapes) or self._may_use_other_axes():
            return 0
        if not self.op.elementwise and (axes < 2 or any(n >= max(axes, 3) for n in shared)):
            return 0  # one row, or a batch axis that other inputs have too
        rows = {shape[0] for shape in shapes}
        return rows.pop() if len(rows) == 1 else 0

    def _may_use_other_axes(self) -> bool:
        """Whether a param may name other axes than the op's default ones."""
        lettered = self.op.formulas is not None and not self.op.elementwise
        usual = self.op.params.items() if lettered else ()
        return any(
            self.params.get(name, default) != default
            for name, default in usual
            if isinstance(default, int)
        )


def _cause_lines(question: FailedQuestion, scope: str) -> str:
    # Imported here because a passing test does not need it.
    from refkernels.diagnosis.explain import explain
    from refkernels.reporting.answer.facts import ExplainedKernel, advice, says

    explanation = explain(
        question.op, question.inputs, question.outputs, question.params, question.direction
    )
    explanation, cases = _with_earlier(question, explanation)
    kernel = ExplainedKernel("", explanation.to_dict())
    if kernel.best is None and kernel.fine:
        return (
            f"  Cause: rounding{scope}: every element is inside the op's bound, and the errors are "
            "of the usual size."
        )
    if kernel.best is None:
        return f"  Cause: unknown{scope}: none of {kernel.tried:,} hypotheses fits."
    perhaps = "perhaps " if explanation.confidence == "consistent" else ""
    text = says(kernel.best, "en", len(kernel.models) > 1)
    where = "this case" if cases == 1 else f"{cases} failures of this test"
    return (
        f"  Cause: {perhaps}{explanation.cause}, {explanation.confidence}{scope}: in {where} the "
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
