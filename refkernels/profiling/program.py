"""profile(): a block of code, a function or a file under the trace of `in_torch`."""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from refkernels import rendering
from refkernels.frameworks import environments
from refkernels.records.files import write_whole

IN_TORCH = Path(__file__).with_name("in_torch.py")


class Profile:
    """What a program's calls contribute to the error of its result. `record`: all of it, as JSON;
    str() is the table."""

    def __init__(self, record: dict[str, Any]) -> None:
        self.record = record

    def __str__(self) -> str:
        return self.markdown()

    def markdown(self, lang: str = "en") -> str:
        """The tables, in English or Chinese ("zh")."""
        return rendering.profile(self.record, lang)

    def write(self, folder: str | Path) -> list[Path]:
        """Write profile.html, profile.md (both also in Chinese) and profile.json; return them."""
        Path(folder).mkdir(parents=True, exist_ok=True)
        texts = {
            **rendering.profile_pages(self.record),
            "profile.json": json.dumps(self.record, ensure_ascii=False) + "\n",
        }
        for name, text in texts.items():
            write_whole(Path(folder) / name, text)
        return [Path(folder) / name for name in texts]


class TracedBlock(Profile):
    """A `with` block whose calls are traced. `record` is there when the block has ended."""

    def __init__(self) -> None:
        from refkernels.profiling import in_torch  # which imports torch

        super().__init__({})
        self._trace, self._results = in_torch.Trace(), None

    def result(self, tensors: Any) -> Any:
        """Say which tensors are the program's result; without it, it is what the last module
        returned. Returns them."""
        self._results = tensors
        return tensors

    def __enter__(self) -> TracedBlock:
        self._trace.__enter__()
        return self

    def __exit__(self, kind: object, error: object, traceback: object) -> None:
        self._trace.__exit__(kind, error, traceback)
        if error is None:
            results = self._trace.last if self._results is None else self._results
            self.record = self._trace.profile(results)


def profile(function: Callable[..., Any] | None = None, *inputs: Any, **named: Any) -> Profile:
    """Which calls of a PyTorch program cost its accuracy.

        with refkernels.profile() as p:          p = refkernels.profile(model, x)
            y = model(x)                         print(p); p.write("here")

    function    what is called with the inputs; its result's tensors are the program's result.
                Without one, a block whose result is what its last module returned, or what
                `p.result(y)` names

    Every ATen call is repeated in float64 on its own inputs: its local error e_k. With s_k, the
    derivative of a random linear functional of the result by that call's output, the call
    contributes c_k = s_k . e_k to the functional's error; its share is the mean of c_k² over 16
    functionals, as a part of all. The gain of a place is measured: the program runs again with that
    place's calls in float64. The program's bits are the same as without the trace. The result's
    error is an estimate by float64, not a proof.

    Raises ImportError without torch, and ValueError for a program that cannot be profiled: one that
    computes in float64, or whose result no call of PyTorch made that was seen.
    """
    block = TracedBlock()
    if function is None:
        return block
    with block:
        block.result(function(*inputs, **named))
    return block


def of_file(program: str, arguments: Sequence[str] = (), framework: str = "torch") -> Profile:
    """The profile of FILE.py:function, or of a script up to its first backward(), in torch's
    interpreter.

    Raises ValueError, in one sentence, for a program that cannot be profiled or ends with an error;
    `NotInstalled` without torch.
    """
    path = Path(program.rpartition(":")[0] or program)
    if not path.is_file():
        raise ValueError(f"There is no file {str(path)!r}: give FILE.py:function or a script.")
    try:
        return Profile(written_by(IN_TORCH, program, *arguments, framework=framework))
    except ValueError as error:
        raise ValueError(f"{program}: {error}") from None


def written_by(script: Path, *arguments: str, framework: str = "torch") -> dict[str, Any]:
    """The JSON that a script writes to its first argument, in torch's interpreter. Raises
    ValueError with the script's last words where it fails; `NotInstalled` without torch."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "written.json"
        command = [environments.find(framework).python, str(script), str(out), *arguments]
        done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        if done.returncode or not out.exists():
            lines = [line for line in done.stderr.splitlines() if line.strip()]
            raise ValueError(lines[-1] if lines else "it ended without a result.")
        return dict(json.loads(out.read_text("utf-8")))
