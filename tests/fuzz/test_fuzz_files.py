"""Files of strangers (arrays, case files, journals): used, or refused in a sentence."""

import ast
import io
import json
import re
import zipfile
from pathlib import Path
from typing import Any

import mutations
import numpy as np
import pytest

from refkernels.diagnosis.casefile import CaseFile, CaseFileError, load, save
from refkernels.records.array_files import ArrayFileError, load_npy, load_npz
from refkernels.records.journal import JournalError
from refkernels.runs.measurement.journal import MeasurementJournal
from refkernels.runs.sweeps.journal import SweepJournal
from refkernels.runs.sweeps.run import _question, plan

X = np.linspace(-3, 3, 6).astype(np.float32).reshape(2, 3)
TOLD = {
    "framework": "numpy",
    "version": "2.4",
    "device": "cpu",
    "settings": {"OMP_NUM_THREADS": "1", "flag": "on"},
}
CASES = {
    "sin": CaseFile(
        "sin", "forward", {"x": X}, {"numpy": {"y": np.sin(X)}}, {}, {"numpy": TOLD},
        {"numpy": "-0.84"}, "https://example.org/1",
    ),
    "layernorm": CaseFile(
        "layernorm", "forward", {"x": X}, {"a": {"y": X}, "torch==2.6.0": {"y": 2 * X}},
        {"eps": 1e-5, "normalized_shape": [3]}, {"a": TOLD},
    ),
}  # fmt: skip
QUESTION = {"frameworks": ["numpy"], "settings": {}, "units": ["a", "b"]}
RECORD = {"kind": "measurement", "framework": "numpy", "status": "ok", "case": {"name": "a"}}
TALLY = {
    "format": "float16",
    "takes": 1,
    "arrays": {k: [[3], [4]] for k in ("counts", "distances", "worst", "worst_bits", "firsts")},
    "invariants": {"odd": [1, 2, 3]},
    "borders": {"16": {"before": [1, None]}},
    "tiers": {"float64": 9},
    "seconds": {"total": 1.0},
}
CHUNK = {"status": "ok", "reason": None, "version": "2.4", "tally": TALLY}


def sentence(error: Exception) -> str:
    message = str(error)
    assert message
    assert "\n" not in message
    return message


def opened(path: Path) -> bool:
    """Whether a case file is one; then every answer is made of it, and every script is code."""
    try:
        case = load(path)
    except CaseFileError as error:
        return path.name not in sentence(error)
    try:
        explanation = case.explain()
    except (ValueError, TypeError) as error:
        sentence(error)
        return False
    for lang in ("en", "zh"):
        text = explanation.to_markdown(lang)
        assert text.encode()
        assert not set(text) & {"\0", "\x1b", "\u202e"}
        assert "](http" not in text
        for script in re.findall(r"^```python\n(.*?)^```", text, re.S | re.M):
            ast.parse(script)
    json.dumps(explanation.to_dict(), allow_nan=False).encode()
    return True


def rezipped(members: dict[str, bytes]) -> bytes:
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as file:
        for name, content in members.items():
            file.writestr(name, content)
    return archive.getvalue()


def altered(members: dict[str, bytes], random: np.random.Generator) -> bytes:
    """The case with its meta, an array's bytes or the archive's own bytes altered."""
    members = dict(members)
    what = random.random()
    if what < 0.7:
        meta = json.loads(np.load(io.BytesIO(members["meta.npy"])).tobytes())
        for _ in range(int(random.integers(1, 3))):
            meta = mutations.mutated(meta, random)
        buffer = io.BytesIO()
        np.save(buffer, np.frombuffer(mutations.line(meta).encode(), np.uint8))
        members["meta.npy"] = buffer.getvalue()
    elif what < 0.9:
        name = str(random.choice(list(members)))
        members[name] = mutations.damaged(members[name], random)
    content = rezipped(members)
    return mutations.damaged(content, random) if what >= 0.9 else content


@pytest.mark.parametrize("op", CASES)
def test_case_files_are_explained_or_refused_in_a_sentence(
    hunt: Any, tmp_path: Path, op: str
) -> None:
    path = save(tmp_path / "case.npz", CASES[op])
    assert opened(path)
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    for number, random in hunt.cases(20):
        path.write_bytes(altered(members, random))
        try:
            opened(path)
        except Exception as error:
            raise AssertionError(hunt.replay(number)) from error
    assert hunt.run > 0


@pytest.mark.parametrize("kind", ["npy", "npz"])
def test_arrays_are_read_or_refused_in_a_sentence(hunt: Any, tmp_path: Path, kind: str) -> None:
    content = io.BytesIO()
    np.save(content, X) if kind == "npy" else np.savez_compressed(content, x=X, y=X[0])
    path = tmp_path / f"x.{kind}"
    for number, random in hunt.cases(100):
        path.write_bytes(mutations.damaged(content.getvalue(), random))
        message = path.name
        try:
            load_npy(path) if kind == "npy" else load_npz(path)
        except ArrayFileError as error:
            message = sentence(error)
        except Exception as error:
            raise AssertionError(hunt.replay(number)) from error
        assert path.name in message, hunt.replay(number)
    assert hunt.run > 0


def journals(folder: Path, kind: str) -> tuple[Path, list[Any], Any]:
    """(the journal's file, its lines, what opens it again) of a run or of a sweep."""
    if kind == "run":
        lines = [{"unit": key, "records": [RECORD]} for key in ("environments", "a", "b")]
        return folder / "journal.jsonl", lines, lambda: MeasurementJournal(folder, QUESTION, True)
    question = _question(plan(["sin"], ["numpy"], ["float16"]))
    lines = [{"chunk": "sin numpy cpu float16 0x0-0xff", "result": CHUNK}]
    answer = {"status": "ok", "reason": None, "version": "2.4", "environment": TOLD}
    lines.append({"chunk": "sin numpy cpu float16 environment", "result": answer})
    return folder / "sweep-journal.jsonl", lines, lambda: SweepJournal(folder, question, True)


@pytest.mark.parametrize("kind", ["run", "sweep"])
def test_edited_journals_are_resumed_or_their_line_is_named(
    hunt: Any, tmp_path: Path, kind: str
) -> None:
    path, lines, again = journals(tmp_path, kind)
    first = MeasurementJournal(tmp_path, QUESTION, False) if kind == "run" else None
    if first is None:
        SweepJournal(tmp_path, _question(plan(["sin"], ["numpy"], ["float16"])), False)
    manifest = next(tmp_path.glob("*.json"))
    intact = manifest.read_bytes()
    path.write_text("".join(mutations.line(line) + "\n" for line in lines))
    assert len(again().done) == len(lines)
    for number, random in hunt.cases(100):
        changed = [mutations.mutated(line, random) for line in lines]
        content = "".join(mutations.line(line) + "\n" for line in changed).encode()
        path.write_bytes(mutations.damaged(content, random) if random.random() < 0.3 else content)
        manifest.write_bytes(mutations.damaged(intact, random) if random.random() < 0.1 else intact)
        message = tmp_path.name
        try:
            done = again().done
            assert all(isinstance(key, str) for key in done)
        except JournalError as error:
            message = sentence(error)
        except Exception as error:
            raise AssertionError(hunt.replay(number)) from error
        assert tmp_path.name in message, hunt.replay(number)
    assert hunt.run > 0
