"""Questions that a target did not answer in time: larger ones of the same kind are not asked.

An op that hangs costs the whole time limit at every question. It is asked again only if an input is
smaller or narrower, or a param differs. Otherwise the record is a timeout too, and names the
smaller question. A question that is answered slowly is asked once: no repetition is made of it. A
larger one is not asked if it would exceed the limit with the smaller one's time per element
(PaddlePaddle's gradient of a maximum takes time in proportion to the square).
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy.typing as npt

from refkernels.frameworks.gateway import Reply

SLOW = 10.0  # seconds of the op itself

Inputs = Mapping[str, npt.NDArray[Any]]


@dataclass(frozen=True)
class TargetQuestion:
    """An op in a direction, with its params and, by name, its inputs' shapes and dtypes."""

    op: str
    direction: str
    params: Mapping[str, Any]
    inputs: Mapping[str, tuple[tuple[int, ...], str, int, int]]

    @staticmethod
    def of(op: str, direction: str, inputs: Inputs, params: Mapping[str, Any]) -> "TargetQuestion":
        sizes = {n: (a.shape, a.dtype.name, a.size, a.itemsize) for n, a in inputs.items()}
        return TargetQuestion(op, direction, dict(params), sizes)

    def covers(self, other: "TargetQuestion") -> bool:
        """Whether `other` is the same question about inputs that are at least as large and wide."""
        same = (self.op, self.direction, self.params, self.inputs.keys()) == (
            other.op, other.direction, other.params, other.inputs.keys(),
        )  # fmt: skip
        return same and all(
            size <= other.inputs[name][2] and width <= other.inputs[name][3]
            for name, (_, _, size, width) in self.inputs.items()
        )

    @property
    def elements(self) -> int:
        """The number in all inputs."""
        return sum(size for _, _, size, _ in self.inputs.values())

    def __str__(self) -> str:
        shown = (f"{n} {list(shape)} {dtype}" for n, (shape, dtype, *_) in self.inputs.items())
        return ", ".join(shown)


@dataclass
class Unanswered:
    """The questions that a target did not answer in time, and those that it answered slowly, with
    its replies."""

    questions: list[tuple[TargetQuestion, Reply]] = field(default_factory=list)
    slow: list[tuple[TargetQuestion, Reply]] = field(default_factory=list)

    def add(self, question: TargetQuestion, reply: Reply) -> None:
        """Remember the question if it ran out of time after the framework had started, or if its
        answer took longer than SLOW."""
        if reply.status == "timeout" and reply.started:
            self.questions.append((question, reply))
        elif reply.seconds > SLOW:
            self.slow.append((question, reply))

    def takes_long(self, question: TargetQuestion) -> bool:
        """Whether a question that is no larger and no wider was answered slowly or not at all."""
        known = (*self.slow, *self.questions)
        return any(smaller.covers(question) for smaller, _ in known)

    def instead(self, question: TargetQuestion, limit: float) -> Reply | None:
        """The reply to give instead of asking; None if the question is to be asked. `limit`: the
        seconds that an answer may take."""
        return next(self._replies(question, limit), None)

    def _replies(self, question: TargetQuestion, limit: float) -> Iterator[Reply]:
        for smaller, reply in self.questions:
            if smaller.covers(question):
                yield Reply("timeout", f"{reply.reason}, with {smaller}; not asked with more")
        for smaller, reply in self.slow:
            if smaller.covers(question):
                expected = reply.seconds * question.elements / max(smaller.elements, 1)
                if expected > limit:
                    yield Reply(
                        "timeout",
                        f"{expected:.0f} s or more are expected, and the limit is {limit:g} s: "
                        f"{reply.seconds:.0f} s with {smaller}; not asked with more",
                    )
