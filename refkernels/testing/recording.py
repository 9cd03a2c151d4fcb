"""Records of what tests asserted, as `refkernels measure` writes them: `--refkernels-report DIR`.

A test function, FILE.py:FUNCTION, is the target, and each of its parameter sets is a case, in the
order of its assertions. Failing outputs are recorded as well, with how wrong they are.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from refkernels.metrology.judgement import judge_by
from refkernels.op import Arrays, Direction, Op
from refkernels.records import codec
from refkernels.records.files import write_whole
from refkernels.records.words import SCHEMA
from refkernels.target_names import KernelPath, TargetName
from refkernels.truth import Truth

_ALONE = "python.py:python"  # outside a test


@dataclass
class Recording:
    """The lines of records.jsonl; nothing is kept unless `on`."""

    on: bool = False
    lines: list[str] = field(default_factory=list)
    _asserted: dict[tuple[str, str], int] = field(default_factory=dict)

    def add(
        self,
        op: Op,
        direction: Direction,
        inputs: Arrays,
        params: Mapping[str, Any],
        outputs: Arrays,
        truths: Mapping[str, Truth],
    ) -> None:
        """Keep the outputs of one assertion."""
        if not self.on:
            return
        test = target, parameters = _test()
        number = self._asserted[test] = self._asserted.get(test, 0) + 1
        case = {
            "name": f"{op.name}/{parameters or 'test'}" + (f" #{number}" if number > 1 else ""),
            "regime": "test",
            "parameters": {},
            "seed": 0,
            "shapes": {name: list(array.shape) for name, array in inputs.items()},
            "params": {**op.params, **params},
        }
        first = truths[next(iter(outputs))].format.name
        for name, got in outputs.items():
            truth = truths[name]
            record = {
                "schema": SCHEMA,
                "kind": "measurement",
                "op": op.name,
                "direction": direction,
                "framework": target,
                "version": None,
                "device": "cpu",
                "dtype": first,
                "case": case,
                "settings": {},
                "environment": "",
                "formula": None,
                "output": name,
                "status": "ok",
                "reason": None,
                **judge_by(truth, name, got),
                "oracle": {"tiers": dict(truth.tiers)},
            }
            self.lines.append(codec.dumps(record))


RECORDING = Recording()


def write(directory: Path, lines: Iterable[str]) -> Path:
    """Write the records and their report; return the path of its page."""
    from refkernels import reporting

    write_whole(directory / "records.jsonl", "".join(f"{line}\n" for line in sorted(lines)))
    return reporting.write_report(directory)[1]


def _test() -> tuple[str, str]:
    """The target and the parameters of the running test: tests/test_mine.py::test_ln[x] (call)."""
    test = os.environ.get("PYTEST_CURRENT_TEST", "").rsplit(" ", 1)[0]
    name, _, parameters = test.partition("[")
    file, *functions = name.split("::")
    if not functions:
        return _ALONE, ""
    return str(TargetName(kernel=KernelPath(file, functions[-1]))), parameters.rstrip("]")
