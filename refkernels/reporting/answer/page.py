"""The answer to paste: why these numbers differ, in a sentence and in Markdown, in two languages.

Every number comes from the record that `Explanation.to_dict` returns.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from refkernels.reporting.answer.facts import (
    ExplainedKernel,
    Record,
    advice,
    kernels_of,
    number,
    place_of,
    says,
    show,
    show_ratio,
)
from refkernels.reporting.answer.markdown import folded, grid
from refkernels.reporting.answer.script import script_parts
from refkernels.reporting.answer.sentences import summary, words_of
from refkernels.reporting.templating import environment_lines
from refkernels.reporting.words.catalogues import Texts
from refkernels.reporting.words.causes import NO_BUG
from refkernels.reporting.words.escaping import clipped, code, escaped
from refkernels.reporting.words.forms import avoiding_advice
from refkernels.reporting.words.model_names import model_name, statement
from refkernels.reporting.words.numerals import lost, ulp_figure
from refkernels.reporting.words.process import flushing

_RULED_OUT = 12  # the most rows for each kernel
_ORDERS = ("summation_order", "bias_first")
_LONGEST = 60_000  # characters: GitHub and Gitee refuse comments of 65,536
_PRIVATE = ("executable", "interpreter")  # paths on a user's machine


def markdown(answer: Record, lang: str = "en", sources: Mapping[str, str] | None = None) -> str:
    """The answer to paste into a thread: it reads in a minute, with details folded.

    `sources`: the adapters' texts by framework, from which the scripts are made.
    """
    words = words_of(lang)
    kernels = kernels_of(answer)
    parts = _unfolded_parts(answer, lang)
    parts.append(folded(words["elements"], _elements(answer, words)))
    ruled_out = _ruled_out(kernels, words)
    if ruled_out:
        parts.append(folded(words["ruled_out"], ruled_out))
    end = []
    environment = _environment(answer)
    if environment:
        end.append(folded(words["environment"], environment))
    version = answer["evidence"].get("refkernels")
    if version:
        end.append(words("footer", version=version))
    room = _LONGEST - sum(map(len, [*parts, *end]))
    parts += [*script_parts(answer, kernels, words, sources or {}, room), *end]
    return "\n\n".join(part for part in parts if part) + "\n"


def brief(answer: Record, lang: str = "en") -> str:
    """The part of the answer that is not folded, for a terminal."""
    return "\n\n".join(part for part in _unfolded_parts(answer, lang) if part) + "\n"


def _unfolded_parts(answer: Record, lang: str) -> list[str]:
    words = words_of(lang)
    kernels = kernels_of(answer)
    parts = [f"**{escaped(summary(answer, lang), 4000)}**", _table(kernels, words)]
    if answer["differences"]:
        parts.append(_pairs(answer, words))
    since = answer["evidence"].get("flushes")
    process = [] if since is None else [escaped(flushing(since, lang), 4000)]
    return [*parts, *process, *_paragraphs(kernels, words), *_reported(answer, words)]


def _table(kernels: list[ExplainedKernel], words: Texts) -> str:
    rows = []
    for kernel in kernels:
        model = kernel.model
        bits = "–"
        if model is None and kernel.best is not None and kernel.best["confidence"] == "proven":
            model = kernel.best
        if model is not None:
            share = words("of", equal=show(model["equal"]), elements=show(model["elements"]))
            model_text = (
                model_name(model["model"], words.lang) if model["model"] else str(model["cause"])
            )
            if "order" in model["details"] and model["cause"] not in _ORDERS:
                model_text = f"{model['cause']}, {model_text}"
            also = words["and_others"] if model is kernel.best and len(kernel.models) > 1 else ""
            bits = f"{escaped(model_text)}{also}{words['colon']}{share}"
        flag = "unusual" if kernel.unusual else "avoidable" if kernel.avoidable else ""
        verdict = words[f"verdict:{flag or kernel.verdict}"]
        name = kernel.name or words["The kernel"]
        rows.append(
            [
                escaped(name),
                verdict,
                _ulp(kernel, words.lang),
                show_ratio(kernel.bound),
                show(kernel.plain),
                bits,
            ]
        )
    return grid(words["columns"], rows, "ll---l")


def _ulp(kernel: ExplainedKernel, lang: str) -> str:
    return ulp_figure(number(kernel.ulp), kernel.format, lang)


def _absolute(kernel: ExplainedKernel, words: Texts) -> str:
    """The absolute error, if the value is so tiny that no digit of it is right."""
    size = number((kernel.measured["worst"] or {}).get("error"))
    no_digit = lost(number(kernel.ulp), kernel.format) and size is not None
    return words("absolute", size=show(size)) if no_digit else ""


def _pairs(answer: Record, words: Texts) -> str:
    rows = []
    for difference in answer["differences"]:
        fine = all(
            ExplainedKernel(difference[key], answer["kernels"][difference[key]]).fine
            for key in ("a", "b")
        )
        for output, figures in difference["outputs"].items():
            equal = words["of"].format(
                equal=show(figures["equal_bits"]), elements=show(figures["elements"])
            )
            all_equal = figures["equal_bits"] == figures["elements"]
            why = words["same"] if all_equal else escaped(_why(difference, words, fine))
            pair = f"{escaped(difference['a'])} – {escaped(difference['b'])}, {output}"
            largest_difference = show(figures["max_abs_difference"])
            rows.append([pair, equal, largest_difference, show(figures["max_ulp_distance"]), why])
    return grid(words["pairs"], rows, "l---l")


def _why(difference: Record, words: Texts, fine: bool) -> str:
    if difference["cause"] is None:
        return words["rounding_only" if fine else "unknown"]
    confidence = f", {words[difference['confidence']]}" if difference["confidence"] else ""
    return f"{difference['cause']}{confidence}"


def _paragraphs(kernels: list[ExplainedKernel], words: Texts) -> list[str]:
    """Cause, evidence and advice for each kernel; a text that kernels share appears once."""
    causes: dict[str, list[str]] = {}
    todo: dict[str, list[str]] = {}
    for kernel in kernels:
        for line in _cause(kernel, words):
            causes.setdefault(line, []).append(kernel.name)
        if kernel.unsure and kernel.best is None:
            todo.setdefault(words[f"todo:{kernel.verdict}"], []).append(kernel.name)
            continue
        bad = kernel.best is None and not kernel.explained_by_rounding
        harmless = kernel.best is None and kernel.explained_by_rounding
        if harmless and kernel.verdict == "correctly_rounded":
            continue
        kernel_advice = NO_BUG[words.lang] if harmless else advice(str(kernel.cause), words.lang)
        if kernel.avoidable and kernel_advice == NO_BUG[words.lang]:
            kernel_advice = avoiding_advice(kernel.avoidable, kernel.format, words.lang)
        todo.setdefault(words["todo:unexplained"] if bad else kernel_advice, []).append(kernel.name)
    parts = [_bullets(causes, words)]
    if len(todo) == 1:
        parts.append(f"**{words['todo']}**{words['colon']}{next(iter(todo))}")
    elif todo:
        parts.append(f"**{words['todo']}**{words['colon'].strip()}\n\n{_bullets(todo, words)}")
    return parts


def _bullets(names_by_text: Mapping[str, list[str]], words: Texts) -> str:
    """One line for each text, after the names of its kernels."""
    lines = []
    for text, names in names_by_text.items():
        kernels = ", ".join(escaped(name) for name in names if name)
        lines.append(f"- {kernels}{words['colon']}{text}" if kernels else f"- {text}")
    return "\n".join(lines)


def _cause(kernel: ExplainedKernel, words: Texts) -> list[str]:
    lines = []
    best, colon, space = kernel.best, words["colon"], words["space"]
    if best is None:
        if kernel.verdict == "correctly_rounded":
            return [f"**{words['no_cause']}**{colon}{words['flawless']}"]
        if kernel.unsure:
            return [f"**{words['no_cause']}**{colon}{words[f'nothing:{kernel.verdict}']}"]
        if kernel.explained_by_rounding:
            size = words["form_avoidable" if kernel.avoidable else "ordinary"]
            parts = [size, *_fits_too(kernel, words)]
            lines.append(f"**{words['no_cause']}**{colon}{space.join(parts)}")
        else:
            lines.append(f"**{words['unexplained']}**{colon}{_nearest(kernel, words)}")
    else:
        among = len(kernel.models) > 1
        text = (
            f"**{escaped(says(best, words.lang, among))}**{colon}{_evidence(kernel, best, words)}"
        )
        if "statement" in best["details"]:
            model_sentence = statement(best["model"], best["details"]["statement"], words.lang)
            text += space + escaped(model_sentence)
        if among and best["cause"] == "summation_order":
            text += space + _alike(kernel.models, words)
        for rival in kernel.rivals:
            text += space + words(
                "also", says=escaped(says(rival, words.lang)), cause=rival["cause"]
            )
        lines.append(text)
    if kernel.place is not None and (
        kernel.ulp is not None or kernel.verdict == "special_value_mismatch"
    ):
        amplified = kernel.fine and kernel.condition is not None
        condition = show(kernel.condition) if amplified else ""
        special = kernel.verdict == "special_value_mismatch"
        key = "element_special" if special else "element" if amplified else "element_bare"
        element_sentence = words[key].format(
            ulp=kernel.ulps(words.lang),
            place=f"`{kernel.place}`",
            condition=condition,
            absolute=_absolute(kernel, words),
        )
        lines[0] += space + element_sentence
    return lines


def _evidence(kernel: ExplainedKernel, best: Record, words: Texts) -> str:
    """The reason for the named cause, and its evidence in bits."""
    model = words["that_model" if best["model"] else "that_answer"]
    if best["model"] and best["cause"] != "summation_order":
        model = words("model", model=escaped(model_name(best["model"], words.lang)))
    truth = kernel.outputs[best["output"]]
    why = words[f"why:{_kind(best)}"].format(
        model=model,
        output=best["output"],
        equal=show(best["equal"]),
        elements=show(best["elements"]),
        wrong=show(best["details"].get("wrong")),
        bound=show_ratio(best["over_bound"]),
        plain=show(best["over_plain"]),
        truth_bound=show_ratio(truth["bound"]["max_ratio"]),
        truth_plain=show(truth["plain"]["ratio"]),
    )
    confidence = words[best["confidence"]]
    parts = [words("evidence", cause=best["cause"], confidence=confidence, why=why)]
    parts += [] if best["bits"] is None else [_bits(kernel, best, words)]
    if part := kernel.record["evidence"].get("part"):
        parts.append(words("of_part", **{name: show(n) for name, n in part.items()}))
    return words["space"].join(parts)


def _kind(best: Record) -> str:
    if best["bits"] is None:
        return "size"
    if best["equal"] == best["elements"]:
        return "reproduced"
    return "pattern" if best["over_bound"] is None else "variant"


def _bits(kernel: ExplainedKernel, best: Record, words: Texts) -> str:
    """The evidence, and how much more is needed."""
    needed = kernel.record["evidence"]["thresholds"]
    thresholds = {confidence: show(bits) for confidence, bits in needed.items()}
    if best["confidence"] != "consistent":
        return words("bits", bits=show(best["bits"]), **thresholds)
    text = words("few", bits=show(best["bits"]), **thresholds)
    if best["needed"] is None:
        return text
    would = words("would", needed=show(best["needed"]), units=show(best["units"]))
    return text + words["space"] + would


def _fits_too(kernel: ExplainedKernel, words: Texts) -> list[str]:
    """The causes that a right output also fits, which more elements might confirm."""
    lines = []
    for alike in kernel.undecided:
        best = alike[0]
        sentence = words("fits_too", says=escaped(says(best, words.lang)), cause=best["cause"])
        models = list(
            dict.fromkeys(str(candidate["model"]) for candidate in alike if candidate["model"])
        )
        if len(models) > 1:
            sentence += words["space"] + _alike(models, words)
        lines.append(sentence + words["space"] + _bits(kernel, best, words))
    return lines


def _alike(models: list[str], words: Texts) -> str:
    """Models with the same bits."""
    names = (escaped(model_name(model, words.lang)) for model in models)
    return words("models", models=words["list"].join(names))


def _nearest(kernel: ExplainedKernel, words: Texts) -> str:
    measured = [candidate for candidate in kernel.ruled_out if candidate["over_plain"] is not None]
    if not measured:
        return words("tried_bare", tried=show(kernel.tried), seconds=show(kernel.seconds))
    sizes = ("over_plain", "over_bound")
    best = min(measured, key=lambda one: tuple(_error_left(one[size]) for size in sizes))
    bound = best["over_bound"]
    return words["tried"].format(
        tried=show(kernel.tried),
        seconds=show(kernel.seconds),
        cause=best["cause"],
        plain=show(best["over_plain"]),
        bound="" if bound is None else words("tried_bound", bound=show_ratio(bound)),
    )


def _reported(answer: Record, words: Texts) -> list[str]:
    """The ratio that a thread reported, and the thread."""
    lines = []
    evidence = answer["evidence"]
    if evidence.get("reported") is not None:
        reported = evidence["reported"]
        if isinstance(reported, Mapping):
            reported = ", ".join(f"{name} {value}" for name, value in reported.items())
        lines.append(words("reported", reported=escaped(str(reported))))
    if evidence.get("source"):
        # The file's author wrote this: it is shown as text, not as a link.
        lines.append(words("source", source=code(str(evidence["source"]))))
    return ["  \n".join(lines)] if lines else []


def _elements(answer: Record, words: Texts) -> str:
    rows = []
    for element in answer["evidence"]["question"]["elements"]:
        place = f"`{place_of(element['output'], element['index'])}`"
        exact = element["exact"]
        rows.append([place, words["exact_value"], exact["decimal"], f"`{exact['hex']}`"])
        for name, got in element["got"].items():
            kernel_name = escaped(name) if answer["kernels"] else words["The kernel"]
            rows.append(["", kernel_name, got["decimal"], f"`{got['hex']}`"])
    return grid(words["elements_columns"], rows, "llll")


def _ruled_out(kernels: list[ExplainedKernel], words: Texts) -> str:
    rows = []
    more = False
    for kernel in kernels:
        ruled_out = sorted(
            kernel.ruled_out, key=lambda candidate: _error_left(candidate["over_plain"])
        )
        more = more or len(ruled_out) > _RULED_OUT
        for candidate in ruled_out[:_RULED_OUT]:
            name = f"`{candidate['cause']}`"
            if candidate["model"]:
                name += f" ({escaped(model_name(candidate['model'], words.lang))})"
            if kernel.name:
                name = f"{escaped(kernel.name)}: {name}"
            equal = words["of"].format(
                equal=show(candidate["equal"]), elements=show(candidate["elements"])
            )
            ratios = [show_ratio(candidate["over_bound"]), show(candidate["over_plain"])]
            rows.append([name, candidate["output"], *ratios, equal])
    notes = [words["more"]] if more else []
    if any(row[2] == show_ratio(None) for row in rows):
        notes.insert(0, words["no_bound"])
    table = [grid(words["ruled_out_columns"], rows, "ll---")] if rows else []
    return "\n\n".join([*table, *([words["space"].join(notes)] if notes else [])])


def _error_left(value: Any) -> float:
    size = number(value)
    return math.inf if size is None or math.isnan(size) else size


def _environment(answer: Record) -> str:
    lines = []
    for name, record in (answer["evidence"].get("environment") or {}).items():
        public = {key: value for key, value in record.items() if key not in _PRIVATE}
        settings = ", ".join(
            f"{key} {clipped(value, 200)}" for key, value in environment_lines(public)
        )
        lines.append(f"- {escaped(name)}: {escaped(settings, 1500)}")
    return "\n".join(lines)
