"""Where programs come from: Python objects, and FILE.py:NAME in the framework's interpreter."""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from refkernels.frameworks import catalog, environments
from refkernels.programs.operators import OPERATORS
from refkernels.programs.program import ProgramError, TorchProgram, read

REMOTE = Path(catalog.__file__).parent / "remote" / "exporter.py"
SHRINKING = REMOTE.with_name("smaller.py")
READING = 300.0  # seconds, in which torch is imported and a program exported


def of_object(function: Any, inputs: Sequence[Any], named: Mapping[str, Any]) -> TorchProgram:
    """The program of a torch function or module, exported in this process."""
    from refkernels.frameworks.remote import exporter

    name = getattr(function, "__name__", type(function).__name__)
    try:
        document, arrays = exporter.exported(function, inputs, named, frozenset(OPERATORS))
    except exporter.NotExported as error:
        raise ProgramError(f"{name}: {error}.") from error.__cause__
    return read(json.loads(json.dumps(document)), arrays, name)


def of_file(
    path: Path, name: str, inputs: Mapping[str, npt.NDArray[Any]] | None, most: int | None = None
) -> TorchProgram:
    """The program of FILE.py:NAME, exported in an interpreter with torch. `inputs`: example arrays
    by name; by default those of the file's get_inputs(). `most`: as for `smaller.py`.

    Raises ProgramError for what cannot be exported, FrameworkError if there is no such interpreter.
    """
    interpreter = environments.find("torch")
    with tempfile.TemporaryDirectory() as folder:
        request, out = Path(folder) / "request.json", Path(folder) / "program"
        asked: dict[str, Any] = {
            "file": str(path.absolute()), "name": name, "kept": sorted(OPERATORS),
            "arrays": None, "dtypes": {}, "most": most, "shrinking": str(SHRINKING) if most else "",
        }  # fmt: skip
        if inputs is not None:
            asked["arrays"] = str(Path(folder) / "inputs.npz")
            asked["dtypes"] = {key: array.dtype.name for key, array in inputs.items()}
            plain = {k: a.view(np.int16) if a.dtype.kind == "V" else a for k, a in inputs.items()}
            np.savez(asked["arrays"], **plain)  # type: ignore[arg-type]
        request.write_text(json.dumps(asked), encoding="utf-8")
        try:
            completed = subprocess.run(
                [interpreter.python, str(REMOTE), str(request), str(out)],
                stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, timeout=READING, check=False,
                text=True, errors="replace",
            )  # fmt: skip
            document = json.loads(out.with_suffix(".json").read_text(encoding="utf-8"))
        except subprocess.TimeoutExpired:
            raise ProgramError(f"{path}:{name} was not exported in {READING:g} s.") from None
        except (OSError, ValueError):
            last = (completed.stderr.strip().splitlines() or ["it ended"])[-1]
            raise ProgramError(f"{path}:{name} was not exported ({last[:200]}).") from None
        arrays: dict[str, Any] = {}
        if "error" not in document:
            with np.load(out.with_suffix(".npz"), allow_pickle=False) as stored:
                arrays = {key: stored[key] for key in stored.files}
    return read(document, arrays, f"{path.name}:{name}")
