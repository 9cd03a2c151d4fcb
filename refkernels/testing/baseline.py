"""A kernel beside a baseline: not worse than a framework on the same inputs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from refkernels import question
from refkernels.arithmetic import formats
from refkernels.frameworks import catalog, environments
from refkernels.frameworks.gateway import Reply, Session
from refkernels.metrology import outputs as kernel_outputs
from refkernels.metrology.verdict import verdict
from refkernels.op import Direction, Op
from refkernels.records.words import VERDICTS
from refkernels.testing import limits
from refkernels.testing.assertions import judged
from refkernels.testing.demands import Demands

FACTOR = 2.0
"""One bit, the loss from which on `refkernels compare` says worse."""


class NoBaseline(Exception):
    """The baseline gave no answer; `missing`: because it is not installed or lacks the op."""

    def __init__(self, reason: str, missing: bool) -> None:
        super().__init__(reason)
        self.missing = missing


class Baselines:
    """The frameworks that answer beside a kernel, each in its own interpreter, started when it is
    first asked and kept until `close`."""

    def __init__(self) -> None:
        self._sessions: dict[str, Session] = {}

    def assert_not_worse(
        self,
        op: str | Op,
        inputs: Mapping[str, Any],
        outputs: Any,
        params: Mapping[str, Any] | None = None,
        direction: Direction = "forward",
        *,
        than: str = "torch",
        factor: float = FACTOR,
    ) -> None:
        """Assert that a kernel is not farther from the truth than a baseline on the same inputs.

        than    the name of a target: torch, torch==2.6.0, torch@OMP_NUM_THREADS=1, paddle:gpu:0,
                FILE.py:FUNCTION
        factor  the RMS error of each output is at most factor times the baseline's, or one
                rounding's if that is larger. The default allows the loss of one bit

        No output's verdict is worse than the baseline's, unless it is rounding: where the baseline
        stays inside the op's bound, so must the kernel. The other arguments are `assert_kernel`'s.
        Raises AssertionError if the kernel is worse, NoBaseline if the baseline does not answer,
        ValueError or TypeError for a call that makes no sense.
        """
        __tracebackhide__ = True
        try:
            limit = limits.limit_of(factor, "factor", "> 0")
            record, arrays, settings = question.read(op, inputs, params, direction)
            by_name = kernel_outputs.named(record, direction, outputs)
        except (TypeError, ValueError) as refusal:  # pytest shows the caller alone
            raise refusal.with_traceback(None) from refusal.__cause__
        limits.check_dtype(record, direction, arrays, by_name, None)
        answers = self._answer(than, record, direction, arrays, {**record.params, **settings})
        baseline = {name: array for name, array in answers.items() if name in by_name}
        for output, baseline_output in judged(
            record, direction, arrays, settings, by_name, baseline
        ):
            if baseline_output is None:
                raise ValueError(f"{than} gives no {output.name} to compare with.")
            judged_baseline = replace(
                output, got=baseline_output, format=formats.of(baseline_output)
            )
            baseline_verdict = verdict(judged_baseline.summary.counts, judged_baseline.broken)
            demanded = min(baseline_verdict, "rounding", key=VERDICTS.index)
            demands = Demands(
                demanded, max_over_plain=np.inf, max_over_baseline=limit, baseline=than
            )
            demands.check(output, baseline_output)

    def close(self) -> None:
        """End all interpreters."""
        for session in self._sessions.values():
            session.close()
        self._sessions.clear()

    def _answer(
        self,
        name: str,
        op: Op,
        direction: Direction,
        inputs: Mapping[str, npt.NDArray[Any]],
        params: Mapping[str, Any],
    ) -> dict[str, npt.NDArray[Any]]:
        if name not in self._sessions:
            try:
                self._sessions[name] = Session(name)
            except catalog.UnknownFramework as error:
                raise ValueError(str(error)) from None
        arrays = {
            key: np.ascontiguousarray(array).reshape(array.shape) for key, array in inputs.items()
        }
        session = self._sessions[name]
        reply: Reply = session.run(op.name, direction, arrays, params, leaves=op.differentiated)
        if not reply.ok:
            required = session.spec.name in environments.required()
            missing = reply.status in ("not_installed", "unsupported") and not required
            raise NoBaseline(str(reply.reason), missing)
        return reply.outputs
