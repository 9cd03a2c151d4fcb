"""The answer about printed numbers, as far as their digits prove it: Markdown in two languages."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from refkernels.reporting.answer.facts import Record, advice, place_of, says
from refkernels.reporting.answer.markdown import folded, grid
from refkernels.reporting.answer.sentences import summary as summary_of
from refkernels.reporting.words.catalogues import Texts, by_language
from refkernels.reporting.words.escaping import escaped

_WORDS = by_language("printed")
_ALTERNATIVES = 3  # how many causes a sentence names; the page lists all


def summary(answer: Record, lang: str = "en") -> str:
    """The answer in one sentence."""
    words = _WORDS[lang]
    return words["join"].join(_sentences(answer["kernels"], words)) + words["end"]


def page(answer: Record, lang: str = "en") -> str:
    """The answer in Markdown, for a terminal and to paste into the thread."""
    words = _WORDS[lang]
    parts = [f"**{escaped(summary(answer, lang), 4000)}**", _table(answer, words)]
    parts += [
        "\n".join(f"- {escaped(kernel)}{words['colon']}{line}" for line in lines)
        for kernel, lines in _details(answer["kernels"], words)
        if lines
    ]
    todo = dict.fromkeys(
        advice(cause["cause"], lang)
        for _, _, result in _outputs(answer["kernels"])
        for cause in result["causes"][:1]
    )
    parts += [words("todo", todo=line) for line in todo]
    if answer["if_exact"] is not None:
        parts.append(_if_exact(answer["if_exact"], words))
    parts.append(folded(words["read"], _read(answer, words)))
    return "\n\n".join(part for part in parts if part) + "\n"


def brief(answer: Record, lang: str = "en") -> str:
    """The page for a terminal, which folds nothing."""
    return page(answer, lang).split("<details>")[0] + _read(answer, _WORDS[lang]) + "\n"


def _outputs(kernels: Record) -> Iterator[tuple[str, str, Record]]:
    for kernel, record in kernels.items():
        for output, result in record["outputs"].items():
            yield kernel, output, result


def _sentences(kernels: Record, words: Texts) -> Iterator[str]:
    for kernel, output, result in _outputs(kernels):
        text = words(result["verdict"], kernel=kernel, output=output, **_counts(result))
        causes = [
            says({**cause, "model": None}, words.lang) for cause in result["causes"][:_ALTERNATIVES]
        ]
        if causes:
            key = "blamed" if len(result["causes"]) == 1 else "blamed_several"
            text += words(key, says=causes[0])
            text += "".join(words("or", says=cause) for cause in causes[1:])
        yield text


def _counts(result: Record) -> dict[str, str]:
    return {key: f"{result[key]:,}" for key in ("wrong", "elements", "unknown")}


def _table(answer: Record, words: Texts) -> str:
    rows = [
        [
            escaped(kernel),
            output,
            words[f"verdict:{result['verdict']}"],
            words("of", **_counts(result)),
            str(result["digits"]),
        ]
        for kernel, output, result in _outputs(answer["kernels"])
    ]
    return grid(words["columns"], rows, "lll--")


def _details(kernels: Record, words: Texts) -> Iterator[tuple[str, list[str]]]:
    for kernel, output, result in _outputs(kernels):
        yield kernel, list(_lines(output, result, words))


def _lines(output: str, result: Record, words: Texts) -> Iterator[str]:
    for cause in result["causes"]:
        sentence = {
            "says": escaped(says({**cause, "model": None}, words.lang)),
            "cause": cause["cause"],
        }
        yield words("fits", **sentence, **_counts(result))
    if result["verdict"] == "wrong" and not result["causes"]:
        yield words["unexplained"]
    worst = result["worst"]
    if worst is not None:
        (low, high), (least, most) = worst["printed"], worst["truth"]
        yield words["worst"].format(
            place=f"`{place_of(output, worst['index'])}`",
            low=_number(low),
            high=_number(high),
            least=_number(least),
            most=_number(most),
            allowed=f"{float(worst['allowed']):.2g}",
            format=result["format"],
        )
    if result["unknown"]:
        yield words("unknown", **_counts(result))
    for cause in result["undecided"]:
        key = "never" if cause["digits"] is None else "more"
        more = words(key, digits=cause["digits"])
        sentence_on_cause = escaped(says({**cause, "model": None}, words.lang))
        yield words("undecided", says=sentence_on_cause, cause=cause["cause"], more=more)
    if result["digits_for_bound"] is not None:
        yield words("for_bound", digits=result["digits_for_bound"])


def _number(value: Any) -> str:
    return f"{float(value):.9g}"


def _if_exact(answer_if_exact: Record, words: Texts) -> str:
    sentence = words["join"].join(_sentences(answer_if_exact["kernels"], words))
    text = words("if_exact", summary=escaped(sentence, 4000))
    if answer_if_exact["explanation"] is not None:
        exact = escaped(summary_of(answer_if_exact["explanation"], words.lang), 4000)
        text += words("and_explained", summary=exact)
    return text


def _read(answer: Record, words: Texts) -> str:
    rows = [
        [
            str(tensor["number"]),
            str(tensor["line"]),
            escaped(tensor["name"]) or words["aside"],
            words["truncated"] if tensor["shape"] is None else f"{tuple(tensor['shape'])}",
            tensor["dtype"] or words["aside"],
            escaped(tensor["role"]) if tensor["role"] else words["aside"],
        ]
        for tensor in answer["tensors"]
    ]
    return grid(words["tensors"], rows, "--llll")
