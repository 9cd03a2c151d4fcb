"""The answer to paste: why these numbers differ, in a sentence and in Markdown, in two languages.

Everything is made of an explanation as `Explanation.to_dict` gives it: every number is there.
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
from refkernels.reporting.answer.scripts import script_parts
from refkernels.reporting.answer.sentences import summary, words_of
from refkernels.reporting.measure.pages import environment_lines
from refkernels.reporting.words.causes import NO_BUG
from refkernels.reporting.words.escaping import clipped, code, escaped
from refkernels.reporting.words.model_names import model_name, statement
from refkernels.reporting.words.numerals import lost, ulp_figure

_RULED_OUT = 12  # rows for each kernel
_ORDERS = ("summation_order", "bias_first")
_LONGEST = 60_000  # characters: GitHub and Gitee refuse comments of 65,536
_PRIVATE = ("executable", "interpreter")  # paths on somebody's machine


def markdown(answer: Record, lang: str = "en", sources: Mapping[str, str] | None = None) -> str:
    """The answer to paste into a thread: a minute to read, details folded.

    `sources`: the adapters' texts by framework, of which the scripts are made.
    """
    words = words_of(lang)
    kernels = kernels_of(answer)
    parts = _open(answer, lang)
    parts.append(folded(words["elements"], _elements(answer, words)))
    ruled_out = _ruled_out(kernels, words, lang)
    if ruled_out:
        parts.append(folded(words["ruled_out"], ruled_out))
    end = []
    environment = _environment(answer)
    if environment:
        end.append(folded(words["environment"], environment))
    version = answer["evidence"].get("refkernels")
    if version:
        end.append(words["footer"].format(version=version))
    room = _LONGEST - sum(map(len, [*parts, *end]))
    parts += [*script_parts(answer, kernels, words, sources or {}, room), *end]
    return "\n\n".join(part for part in parts if part) + "\n"


def brief(answer: Record, lang: str = "en") -> str:
    """The part of it that is not folded, for a terminal."""
    return "\n\n".join(part for part in _open(answer, lang) if part) + "\n"


def _open(answer: Record, lang: str) -> list[str]:
    words = words_of(lang)
    kernels = kernels_of(answer)
    parts = [f"**{escaped(summary(answer, lang), 4000)}**", _table(kernels, words, lang)]
    if answer["differences"]:
        parts.append(_pairs(answer, words))
    return [*parts, *_paragraphs(kernels, words, lang), *_told(answer, words)]


def _table(kernels: list[ExplainedKernel], words: Mapping[str, str], lang: str) -> str:
    rows = []
    colon = ": " if lang == "en" else "："
    for one in kernels:
        model = one.model
        bits = "–"
        if model is None and one.best is not None and one.best["confidence"] == "proven":
            model = one.best
        if model is not None:
            share = words["of"].format(equal=show(model["equal"]), elements=show(model["elements"]))
            who = model_name(model["model"], lang) if model["model"] else str(model["cause"])
            if "order" in model["details"] and model["cause"] not in _ORDERS:
                who = f"{model['cause']}, {who}"
            also = words["and_others"] if model is one.best and len(one.models) > 1 else ""
            bits = f"{escaped(who)}{also}{colon}{share}"
        verdict = words["verdict:" + ("unusual" if one.unusual else one.verdict)]
        name = one.name or words["The kernel"]
        rows.append(
            [escaped(name), verdict, _ulp(one, lang), show_ratio(one.bound), show(one.plain), bits]
        )
    return grid(words["columns"], rows, "ll---l")


def _ulp(one: ExplainedKernel, lang: str) -> str:
    return ulp_figure(number(one.ulp), one.format, lang)


def _absolute(one: ExplainedKernel, words: Mapping[str, str]) -> str:
    """What is lost, where the value is so tiny that no digit of it is right."""
    size = number((one.measured["worst"] or {}).get("error"))
    gone = lost(number(one.ulp), one.format) and size is not None
    return words["absolute"].format(size=show(size)) if gone else ""


def _pairs(answer: Record, words: Mapping[str, str]) -> str:
    rows = []
    for one in answer["differences"]:
        fine = all(
            ExplainedKernel(one[key], answer["kernels"][one[key]]).fine for key in ("a", "b")
        )
        for output, figures in one["outputs"].items():
            equal = words["of"].format(
                equal=show(figures["equal_bits"]), elements=show(figures["elements"])
            )
            same = figures["equal_bits"] == figures["elements"]
            why = words["same"] if same else escaped(_why(one, words, fine))
            pair = f"{escaped(one['a'])} – {escaped(one['b'])}, {output}"
            far = show(figures["max_abs_difference"])
            rows.append([pair, equal, far, show(figures["max_ulp_distance"]), why])
    return grid(words["pairs"], rows, "l---l")


def _why(one: Record, words: Mapping[str, str], fine: bool) -> str:
    if one["cause"] is None:
        return words["rounding_only" if fine else "unknown"]
    confidence = f", {words[one['confidence']]}" if one["confidence"] else ""
    return f"{one['cause']}{confidence}"


def _paragraphs(kernels: list[ExplainedKernel], words: Mapping[str, str], lang: str) -> list[str]:
    """Cause, evidence and advice of each kernel; what is said of several is said once."""
    found: dict[str, list[str]] = {}
    todo: dict[str, list[str]] = {}
    for one in kernels:
        for line in _cause(one, words, lang):
            found.setdefault(line, []).append(one.name)
        bad = one.best is None and not one.fine
        harmless = one.best is None and one.fine
        if harmless and one.verdict == "correctly_rounded":
            continue
        told = NO_BUG[lang] if harmless else advice(str(one.cause), lang)
        todo.setdefault(words["todo:unexplained"] if bad else told, []).append(one.name)
    colon = ": " if lang == "en" else "："
    parts = [_bullets(found, colon)]
    if len(todo) == 1:
        parts.append(f"**{words['todo']}**{colon}{next(iter(todo))}")
    elif todo:
        parts.append(f"**{words['todo']}**{colon.strip()}\n\n{_bullets(todo, colon)}")
    return parts


def _bullets(told: Mapping[str, list[str]], colon: str) -> str:
    """One line for each text, the kernels of which it is true before it."""
    lines = []
    for text, names in told.items():
        who = ", ".join(escaped(name) for name in names if name)
        lines.append(f"- {who}{colon}{text}" if who else f"- {text}")
    return "\n".join(lines)


def _cause(one: ExplainedKernel, words: Mapping[str, str], lang: str) -> list[str]:
    lines = []
    best = one.best
    colon = ": " if lang == "en" else "："
    if best is None:
        if one.verdict == "correctly_rounded":
            return [f"**{words['no_cause']}**{colon}{words['flawless']}"]
        if one.fine:
            parts = [words["ordinary"], *_fits_too(one, words, lang)]
            lines.append(f"**{words['no_cause']}**{colon}{_space(lang).join(parts)}")
        else:
            lines.append(f"**{words['unexplained']}**{colon}{_nearest(one, words)}")
    else:
        among = len(one.models) > 1
        text = f"**{escaped(says(best, lang, among))}**{colon}{_evidence(one, best, words, lang)}"
        if "statement" in best["details"]:
            said = statement(best["model"], best["details"]["statement"], lang)
            text += _space(lang) + escaped(said)
        if among and best["cause"] == "summation_order":
            text += _space(lang) + _alike(one.models, words, lang)
        for rival in one.rivals:
            text += _space(lang) + words["also"].format(
                says=escaped(says(rival, lang)), cause=rival["cause"]
            )
        lines.append(text)
    if one.place is not None and (one.ulp is not None or one.verdict == "special_value_mismatch"):
        amplified = one.fine and one.condition is not None
        condition = show(one.condition) if amplified else ""
        special = one.verdict == "special_value_mismatch"
        key = "element_special" if special else "element" if amplified else "element_bare"
        told = words[key].format(
            ulp=one.ulps(lang),
            place=f"`{one.place}`",
            condition=condition,
            absolute=_absolute(one, words),
        )
        lines[0] += _space(lang) + told
    return lines


def _evidence(one: ExplainedKernel, best: Record, words: Mapping[str, str], lang: str) -> str:
    """Why the cause is named, and how many bits of evidence that is."""
    model = words["that_model" if best["model"] else "that_answer"]
    if best["model"] and best["cause"] != "summation_order":  # which is told by its model
        model = words["model"].format(model=escaped(model_name(best["model"], lang)))
    truth = one.outputs[best["output"]]
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
    text = words["evidence"].format(cause=best["cause"], confidence=confidence, why=why)
    return text + ("" if best["bits"] is None else _space(lang) + _bits(one, best, words, lang))


def _kind(best: Record) -> str:
    if best["bits"] is None:
        return "size"
    if best["equal"] == best["elements"]:
        return "reproduced"
    return "pattern" if best["over_bound"] is None else "variant"


def _bits(one: ExplainedKernel, best: Record, words: Mapping[str, str], lang: str) -> str:
    """The evidence, and how much more it would take."""
    thresholds = {key: show(value) for key, value in one.record["evidence"]["thresholds"].items()}
    if best["confidence"] != "consistent":
        return words["bits"].format(bits=show(best["bits"]), **thresholds)
    text = words["few"].format(bits=show(best["bits"]), **thresholds)
    if best["needed"] is None:
        return text
    would = words["would"].format(needed=show(best["needed"]), units=show(best["units"]))
    return text + _space(lang) + would


def _fits_too(one: ExplainedKernel, words: Mapping[str, str], lang: str) -> list[str]:
    """What a right output would also be, if more elements said so."""
    lines = []
    for alike in one.undecided:
        best = alike[0]
        told = words["fits_too"].format(says=escaped(says(best, lang)), cause=best["cause"])
        models = list(dict.fromkeys(str(each["model"]) for each in alike if each["model"]))
        if len(models) > 1:
            told += _space(lang) + _alike(models, words, lang)
        lines.append(told + _space(lang) + _bits(one, best, words, lang))
    return lines


def _alike(models: list[str], words: Mapping[str, str], lang: str) -> str:
    """Models with the same bits."""
    names = (escaped(model_name(model, lang)) for model in models)
    return words["models"].format(models=words["list"].join(names))


def _space(lang: str) -> str:
    return " " if lang == "en" else ""


def _nearest(one: ExplainedKernel, words: Mapping[str, str]) -> str:
    left = [c for c in one.ruled_out if c["over_plain"] is not None]
    if not left:
        return words["tried_bare"].format(tried=show(one.tried))
    best = min(left, key=lambda c: (_left(c["over_plain"]), _left(c["over_bound"])))
    bound = best["over_bound"]
    return words["tried"].format(
        tried=show(one.tried),
        cause=best["cause"],
        plain=show(best["over_plain"]),
        bound="" if bound is None else words["tried_bound"].format(bound=show_ratio(bound)),
    )


def _told(answer: Record, words: Mapping[str, str]) -> list[str]:
    """What a thread reported, and where."""
    lines = []
    evidence = answer["evidence"]
    if evidence.get("reported") is not None:
        reported = evidence["reported"]
        if isinstance(reported, Mapping):
            reported = ", ".join(f"{name} {value}" for name, value in reported.items())
        lines.append(words["reported"].format(reported=escaped(str(reported))))
    if evidence.get("source"):
        # Whoever wrote the file wrote this: it is told, and is no link.
        lines.append(words["source"].format(source=code(str(evidence["source"]))))
    return ["  \n".join(lines)] if lines else []


def _elements(answer: Record, words: Mapping[str, str]) -> str:
    rows = []
    for one in answer["evidence"]["question"]["elements"]:
        place = f"`{place_of(one['output'], one['index'])}`"
        exact = one["exact"]
        rows.append([place, words["exact_value"], exact["decimal"], f"`{exact['hex']}`"])
        for name, got in one["got"].items():
            who = escaped(name) if answer["kernels"] else words["The kernel"]
            rows.append(["", who, got["decimal"], f"`{got['hex']}`"])
    return grid(words["elements_columns"], rows, "llll")


def _ruled_out(kernels: list[ExplainedKernel], words: Mapping[str, str], lang: str) -> str:
    rows = []
    more = False
    for one in kernels:
        ruled_out = sorted(one.ruled_out, key=lambda c: _left(c["over_plain"]))
        more = more or len(ruled_out) > _RULED_OUT
        for candidate in ruled_out[:_RULED_OUT]:
            name = f"`{candidate['cause']}`"
            if candidate["model"]:
                name += f" ({escaped(model_name(candidate['model'], lang))})"
            if one.name:
                name = f"{escaped(one.name)}: {name}"
            equal = words["of"].format(
                equal=show(candidate["equal"]), elements=show(candidate["elements"])
            )
            left = [show_ratio(candidate["over_bound"]), show(candidate["over_plain"])]
            rows.append([name, candidate["output"], *left, equal])
    notes = [words["more"]] if more else []
    if any(row[2] == show_ratio(None) for row in rows):
        notes.insert(0, words["no_bound"])
    table = [grid(words["ruled_out_columns"], rows, "ll---")] if rows else []
    return "\n\n".join([*table, *([_space(lang).join(notes)] if notes else [])])


def _left(value: Any) -> float:
    left = number(value)
    return math.inf if left is None or math.isnan(left) else left


def _environment(answer: Record) -> str:
    lines = []
    for name, record in (answer["evidence"].get("environment") or {}).items():
        public = {key: value for key, value in record.items() if key not in _PRIVATE}
        told = ", ".join(f"{key} {clipped(value, 200)}" for key, value in environment_lines(public))
        lines.append(f"- {escaped(name)}: {escaped(told, 1500)}")
    return "\n".join(lines)
