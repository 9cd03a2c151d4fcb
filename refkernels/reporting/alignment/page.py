"""An alignment as Markdown: the verdict first, then what it rests on.

Everything is made of the record that `Alignment.to_dict` gives.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from refkernels.reporting.alignment.words import WORDS
from refkernels.reporting.answer.facts import says
from refkernels.reporting.answer.markdown import folded, grid
from refkernels.reporting.words.causes import LANGUAGES
from refkernels.reporting.words.escaping import code, escaped
from refkernels.suggestion import instead

Record = Mapping[str, Any]
Words = Mapping[str, str]
_LISTED = 20  # suspects and findings; the rest is in the record


def words_of(lang: str) -> Words:
    """The sentences of a language. Raises ValueError for a language that is not there."""
    if lang not in LANGUAGES:
        raise ValueError(f"There is no language {lang!r}: {instead(lang, LANGUAGES)}.")
    return WORDS[lang]


def markdown(told: Record, lang: str = "en") -> str:
    """The whole page."""
    words = words_of(lang)
    parts = [
        brief(told, lang).rstrip(),
        _folded(words["null_directions"], _null(told)),
        _folded(words["unjudged"], _unjudged(told)),
        _folded(words["not_captured"], _missing(told)),
        _folded(words["remarks"], [f"- {escaped(one)}" for one in told["remarks"]]),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def brief(told: Record, lang: str = "en") -> str:
    """The page without its folded parts."""
    words = words_of(lang)
    parts = [
        f"# {words['title_alone' if _alone(told) else 'title']}",
        headline(told, lang),
        _section(words["runs"], _runs(told, words)),
        _suspects(told, words, lang),
        _section(words["curve"], _curve(told, words)),
        _section(words["clips"], _clips(told, words)),
        _section(words["local"], _local(told, words)),
        _found(told, words, lang),
        _notes(told, words),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def headline(told: Record, lang: str = "en") -> str:
    """The verdict in a sentence or two."""
    words, verdict = words_of(lang), told["verdict"]
    end = "_alone" if _alone(told) else ""
    if verdict["word"] == "same":
        return words[f"same{end}"]
    if verdict["word"] == "different":
        first = suspect(verdict["suspects"][0], words, lang)
        return words[f"different{end}"].format(first=first) + words["stop"]
    reasons = [_reason(one, words, lang) for one in verdict["reasons"]]
    said = words["undecidable"].format(reasons=words["and"].join(reasons))
    missing = {one["word"] for one in verdict["reasons"]}
    cure = words["cure:curves"] if "curves" in missing else words["cure:null"]
    helps = not missing & {"saturated", "few"} and not _alone(told)
    return f"{said} {cure}" if helps else said


def _reason(one: Record, words: Words, lang: str) -> str:
    details = one["details"]
    if one["word"] == "beyond" and details["cause"] is not None:
        candidate = {"cause": details["cause"], "details": details["of_cause"], "model": None}
        named = {"cause": says(candidate, lang), "confidence": words[details["confidence"]]}
        where = {name: escaped(details[name]) for name in ("where", "op")}
        return words["reason:beyond_for"].format(**where, **named)
    return words[f"reason:{one['word']}"].format(**_escaped(details))


def suspect(one: Record, words: Words, lang: str) -> str:
    """One suspect as a clause, with its step and its run."""
    where = words["in_run"].format(run=one["run"]) if one["run"] else ""
    step = words["at_step"].format(step=one["step"])
    if one["source"] == "judgement":
        others = one["places"] - 1
        more = words["place" if others == 1 else "places"].format(count=others) if others else ""
        return step + _judged(one["judgement"], words, lang, where) + more
    if one["source"] == "departure":
        return step + _parted(one, words)
    if one["source"] == "clip":
        early = one["before_unscale"]
        why = "" if early is None else words["cause:before_unscale"].format(**early)
        return step + words["difference:clip"] + why
    return step + difference(one, words)


def _parted(one: Record, words: Words) -> str:
    what = words[f"parted:{one['what']}"].format(where=code(one["where"]))
    factor, cause = one["factor"], one["cause"]
    if cause is not None:
        told = dict(cause["details"])
        if "factor" in told:
            told["factor"] = _whole(told["factor"])
        why = words[f"cause:{cause['word']}"].format(run=cause["run"], **told)
        why += "" if cause["sure"] else words["unsure"].format(other="AB".replace(cause["run"], ""))
        return (_multiple(one, words, what) if factor is not None else what) + why
    if factor is not None:
        return _multiple(one, words, what)
    return words["parted"].format(what=what, apart=_short(one["apart"]))


def _multiple(one: Record, words: Words, what: str) -> str:
    return words["parted_factor"].format(
        what=what, factor=_whole(one["factor"]), parted=one["parted"], places=one["places"]
    )


def _whole(factor: float) -> str:
    """A factor as a whole number, or one over a whole number, where it is one."""
    for value, form in ((factor, "{:.0f}"), (1 / factor if factor else 0.0, "1/{:.0f}")):
        if abs(value) > 1.5 and math.isclose(value, round(value), rel_tol=1e-3):
            return form.format(round(value))
    return f"{factor:.6g}"


def difference(one: Record, words: Words) -> str:
    """A difference before any number, as a clause."""
    details = _escaped(one["details"])
    more = int(one["details"].get("more", 0))
    count = more if "and" in words["several"] else more + 1
    details["several"] = words["several"].format(count=count) if more else ""
    steps = one["details"].get("steps")
    if steps is not None:
        details["steps"] = words["steps:1"] if steps == 1 else words["steps"].format(count=steps)
    named = {name: escaped(str(one[name])) for name in ("where", "a", "b")}
    return words[f"difference:{one['kind']}"].format(step=one["step"], **named, **details)


def _judged(one: Record, words: Words, lang: str, where: str) -> str:
    place = f"{code(one['worst'])} ({one['type']}, {words[one['stage']]}){where}"
    if one["cause"] is None:
        ratio = _short(one["over_bound"])
        return words["unexplained"].format(where=place, output=one["output"], ratio=ratio)
    candidate = {"cause": one["cause"], "details": one["details"], "model": None}
    confidence = words[one["confidence"]] if one["confidence"] else words["assumed"]
    return words["explained"].format(
        where=place, cause=says(candidate, lang), confidence=confidence
    )


def _alone(told: Record) -> bool:
    return len(told["runs"]) == 1


def _names(told: Record) -> Sequence[str]:
    return "AB"[: len(told["runs"])]


def _section(title: str, body: str) -> str:
    return f"## {title}\n\n{body}" if body else ""


def _folded(title: str, lines: list[str]) -> str:
    return folded(title, "\n".join(lines)) if lines else ""


def _runs(told: Record, words: Words) -> str:
    rows = []
    for name, run in zip(_names(told), told["runs"], strict=True):
        steps = str(run["steps"])
        steps = steps if run["complete"] else words["unfinished"].format(steps=steps)
        captured = ", ".join(map(str, run["captured"][:8])) or "–"
        captured += ", …" if len(run["captured"]) > 8 else ""
        rows.append(
            [
                f"{name}: {escaped(run['name'])}",
                escaped(f"{run['framework']} {run['version']}"),
                escaped(run["model"]),
                escaped(run["optimizer"] or "–"),
                str(run["ranks"]),
                steps,
                captured,
            ]
        )
    return grid(words["run_columns"], rows, "llll--l")


def _suspects(told: Record, words: Words, lang: str) -> str:
    listed = told["verdict"]["suspects"]
    if len(listed) < 2:
        return ""
    lines = [f"{at}. {suspect(one, words, lang)}" for at, one in enumerate(listed[:_LISTED], 1)]
    title = words["suspects_alone" if _alone(told) else "suspects"]
    return _section(title, "\n".join(lines))


def _curve(told: Record, words: Words) -> str:
    curve = told["curve"]
    if curve is None:
        return ""
    said = [
        words["curve_text"].format(
            statistic=_short(curve["statistic"]), step=curve["step"], p=_short(curve["p"]),
            runs=curve["runs"], least=_short(curve["least_p"]),
        )
    ]  # fmt: skip
    if curve["p_normal"] is not None:
        said.append(words["curve_normal"].format(p=_short(curve["p_normal"])))
    if curve["growth"] is not None:
        said.append(words["curve_growth"].format(growth=_short(math.exp(100 * curve["growth"]))))
    change = curve["least_rate_change"]
    power = words["curve_no_power"] if change is None else words["curve_power"]
    said.append(power.format(change="" if change is None else f"{100 * change:.2g} %"))
    if curve["undecidable_after"] is not None:
        said.append(words["curve_after"].format(step=curve["undecidable_after"]))
    noise = told["noise"] or {"known": True, "invalid": "", "wider": 1.0}
    if noise["invalid"]:
        said.append(words["curve_invalid"].format(where=escaped(noise["invalid"])))
    elif not noise["known"]:
        said.append(words["curve_unknown"])
    elif noise["wider"] > 1.0:
        wider = {"where": escaped(noise["where"]), "wider": _short(noise["wider"])}
        said.append(words["curve_wider"].format(**wider))
    return " ".join(said)


def _clips(told: Record, words: Words) -> str:
    lines = []
    for name, clip in zip(_names(told), told["clips"], strict=True):
        if clip is not None:
            lines.append("- " + _clip(name, clip, words))
    return "\n".join(lines)


def _clip(run: str, clip: Record, words: Words) -> str:
    if clip["scope"] in ("none", "other"):
        return words[f"clip:{clip['scope']}"].format(run=run)
    if clip["scope"] == "value":
        return words["clip:value"].format(run=run, limit=_short(clip["limit"]))
    if clip["constant"] is not None:
        return words["clip:constant"].format(run=run, low=_roundest(*clip["constant"]))
    scope = words[f"scope:{clip['scope']}"]
    if not clip["thresholds"]:
        return words["clip:unknown"].format(run=run, scope=scope)
    added = "both" if len(clip["thresholds"]) > 1 else next(iter(clip["thresholds"]))
    threshold = _roundest(*next(iter(clip["thresholds"].values())))
    added = words[f"added:{added}"]
    return words["clip:threshold"].format(run=run, scope=scope, threshold=threshold, added=added)


def _roundest(low: float, high: float) -> str:
    """The number with the fewest digits in an interval."""
    middle = (low + high) / 2
    for digits in range(1, 17):
        text = f"{middle:.{digits}g}"
        if low <= float(text) <= high:
            return text
    return f"{middle:.17g}"


def _local(told: Record, words: Words) -> str:
    rows = []
    for name, local in zip(_names(told), told["local"], strict=True):
        for one in local["ops"]:
            verdict = words["fine"]
            if one["wrong"]:
                verdict = "**" + words["beyond"].format(count=one["wrong"]) + "**"
            elif counted := [
                words[word].format(count=one[word])
                for word in ("negligible", "unattributed", "unusual")
                if one[word]
            ]:
                verdict = words["and_also"].join([verdict, *counted])
            rows.append(
                [
                    name, escaped(one["type"]), one["op"], words[one["stage"]],
                    str(one["outputs"]), f"{one['elements']:,}", _short(one["over_bound"]), verdict,
                ]
            )  # fmt: skip
    return grid(words["local_columns"], rows, "llll---l") if rows else ""


def layers_table(told: Record, words: Words, lang: str) -> str:
    """Every layer that was judged, at its worst step."""
    rows = []
    for name, local in zip(_names(told), told["local"], strict=True):
        for one in local["layers"]:
            what = words["fine"]
            if one["cause"]:
                candidate = {"cause": one["cause"], "details": one["details"], "model": None}
                confidence = words[one["confidence"]] if one["confidence"] else words["assumed"]
                what = f"{says(candidate, lang)} ({confidence})"
            elif one["wrong"]:
                what = words["beyond"].format(count=one["wrong"])
            what = f"**{what}**" if one["wrong"] else what
            rows.append(
                [
                    name, code(one["name"]), escaped(one["type"]), words[one["stage"]],
                    str(one["step"]), _short(one["over_bound"]), what,
                ]
            )  # fmt: skip
    return grid(words["layer_columns"], rows, "llll--l") if rows else ""


def usage(lang: str = "en") -> str:
    """What a user would write, after the demonstration."""
    return words_of(lang)["usage"]


def _found(told: Record, words: Words, lang: str) -> str:
    """Each cause once, where it was seen first."""
    lines: dict[tuple[str, str, str, str], str] = {}
    for name, local in zip(_names(told), told["local"], strict=True):
        for one in local["unordinary"]:
            key = (name, one["op"], one["stage"], str(one["cause"]))
            if key not in lines and (one["cause"] or one["wrong"]):
                run = "" if _alone(told) else words["in_run"].format(run=name)
                step = words["at_step"].format(step=one["step"])
                lines[key] = "- " + step + _judged(one, words, lang, run)
    return _section(words["causes"], "\n".join(list(lines.values())[:_LISTED]))


def _notes(told: Record, words: Words) -> str:
    lines = [f"- {difference(one, words)}" for one in told["differences"] if not one["decisive"]]
    return _section(words["notes_alone" if _alone(told) else "notes"], "\n".join(lines))


def _null(told: Record) -> list[str]:
    return [
        f"- {name}: {code(one)}"
        for name, found in zip(_names(told), told["null_directions"], strict=True)
        for one in found
    ]


def _unjudged(told: Record) -> list[str]:
    lines = [
        f"- {name}: {escaped(one['name'])} ({escaped(one['type'])}): {escaped(one['reason'])}"
        for name, local in zip(_names(told), told["local"], strict=True)
        for one in local["unjudged"]
    ]
    return list(dict.fromkeys(lines))


def _missing(told: Record) -> list[str]:
    return [
        f"- {name}: {escaped(one)}"
        for name, local in zip(_names(told), told["local"], strict=True)
        for one in local["not_captured"]
    ]


def _short(value: Any) -> str:
    if value is None or isinstance(value, str):
        return str(value or "–")
    return f"{value:.2g}" if abs(value) < 100 else f"{value:.3g}"


def _escaped(details: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: escaped(value) if isinstance(value, str) else value for name, value in details.items()
    }


def metric(told: Record, lang: str = "en") -> str:
    """Whether two scores differ by more than sampling, in a sentence or two."""
    words = words_of(lang)
    meaning = words["metric:more" if told["p"] < 0.05 else "metric:chance"]
    return words["metric_paired" if told["paired"] else "metric"].format(
        **{**told, "p": _short(told["p"])}, meaning=meaning
    )
