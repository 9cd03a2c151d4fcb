"""The scripts of an answer: one for each of its frameworks."""

from __future__ import annotations

from collections.abc import Mapping

from refkernels.reporting.answer.facts import ExplainedKernel, Record, place_of
from refkernels.reporting.answer.markdown import folded
from refkernels.reporting.answer.script import blank_script, script
from refkernels.reporting.words.escaping import escaped
from refkernels.target_names import framework_of


def script_parts(
    answer: Record,
    kernels: list[ExplainedKernel],
    words: Mapping[str, str],
    sources: Mapping[str, str],
    room: int,
) -> list[str]:
    """The scripts that fit into a comment, in order; the first in any case."""
    question = answer["evidence"]["question"]
    environments = answer["evidence"].get("environment") or {}
    texts: dict[str, str] = {}
    for kernel in kernels:
        environment = environments.get(kernel.name) or {}
        framework = str(environment.get("framework") or framework_of(kernel.name))
        text = (
            script(question, framework, sources[framework], environment)
            if framework in sources
            else ""
        )
        if text:
            texts[framework] = text
    titled = {_title(name, words): text for name, text in texts.items()}
    if not titled:
        titled[words["script_blank"]] = blank_script(question)
    note = _note(question, words)
    parts: list[str] = []
    left_out: list[str] = []
    for (title, text), name in zip(titled.items(), texts or titled, strict=True):
        body = "\n\n".join(part for part in (note, f"```python\n{text}```") if part)
        part = folded(title, body)
        if parts and sum(map(len, parts)) + len(part) > room:
            left_out.append(name)
        else:
            parts.append(part)
    if left_out:
        parts.append(words["script_left_out"].format(frameworks=", ".join(left_out)))
    return parts


def _title(framework: str, words: Mapping[str, str]) -> str:
    key = "script_numpy" if framework == "numpy" else "script"
    return words[key].format(framework=escaped(framework))


def _note(question: Record, words: Mapping[str, str]) -> str:
    """The note about inputs that a script cuts or does not hold."""
    if question["inputs"] is None:
        return words["script_large"]
    if question["whole"] or not question["elements"]:
        return ""
    first = question["elements"][0]
    place = place_of(first["output"], first["index"])
    return words["script_cut"].format(place=f"`{place}`")
