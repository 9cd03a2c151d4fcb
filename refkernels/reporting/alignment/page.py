"""The Markdown page of an alignment: the verdict first, then its evidence.

Everything comes from the record that `Alignment.to_dict` returns.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from refkernels.reporting.answer.facts import says
from refkernels.reporting.answer.markdown import folded, grid
from refkernels.reporting.words.catalogues import Texts, by_language
from refkernels.reporting.words.escaping import code, escaped

Record = Mapping[str, Any]
words_of = by_language("alignment").__getitem__
CUT_OFF = {"unreadable", "stopped"}  # reasons for which the question cannot be answered
_LISTED = 20  # most suspects or causes on the page; the record has all


def markdown(alignment: Record, lang: str = "en") -> str:
    """The whole page."""
    words = words_of(lang)
    parts = [
        brief(alignment, lang).rstrip(),
        _by_run(alignment, words["null_directions"], alignment["null_directions"], code),
        *(
            _by_run(alignment, words[key], [local[key] for local in alignment["local"]], shown)
            for key, shown in (("unjudged", _gap), ("not_captured", escaped))
        ),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def brief(alignment: Record, lang: str = "en") -> str:
    """The page without its folded parts."""
    words = words_of(lang)
    parts = [
        f"# {words[f'title{_alone(alignment)}']}",
        headline(alignment, lang),
        _section(words["runs"], _runs(alignment, words)),
        _suspects(alignment, words),
        _section(words["curve"], _curve(alignment, words)),
        _section(words["clips"], _clips(alignment, words)),
        _section(words["local"], _local(alignment, words)),
        _causes(alignment, words),
        _notes(alignment, words),
        _section(
            words["remarks"], "\n".join(f"- {escaped(remark)}" for remark in alignment["remarks"])
        ),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def headline(alignment: Record, lang: str = "en") -> str:
    """The verdict in a sentence or two."""
    words, verdict, end = words_of(lang), alignment["verdict"], _alone(alignment)
    if verdict["word"] == "same":
        beyond = any(op["wrong"] for local in alignment["local"] for op in local["ops"])
        return words["same_beyond" if beyond else f"same{end}"]
    if verdict["word"] == "different":
        first = suspect(verdict["suspects"][0], words)
        return words(f"different{end}", first=first) + words["stop"]
    reasons = [_reason(reason, words) for reason in verdict["reasons"]]
    sentence = words("undecidable", reasons=words["and"].join(reasons))
    missing = {reason["word"] for reason in verdict["reasons"]}
    helps = not end and not missing & {"saturated", "few", *CUT_OFF}
    fix = "fix:curves" if "curves" in missing else "fix:null"
    return f"{sentence} {words[fix]}" if helps else sentence


def _reason(reason: Record, words: Texts) -> str:
    details = reason["details"]
    if reason["word"] == "beyond" and details["cause"] is not None:
        cause = _cause({**details, "details": details["of_cause"]}, words)
        return words("reason:beyond_for", **{**_escaped(details), **cause})
    return words(f"reason:{reason['word']}", **_escaped(details))


def suspect(suspected: Record, words: Texts) -> str:
    """One suspect as a clause, with its step and its run."""
    run = words("in_run", run=suspected["run"]) if suspected["run"] else ""
    step = words("at_step", step=suspected["step"])
    kind = suspected["kind"]
    if kind == "judgement":
        others = suspected["places"] - 1
        more = words("place" if others == 1 else "places", count=others) if others else ""
        return step + _judged(suspected["details"], words, run) + more
    if kind == "parted":
        return step + _parted(suspected, words)
    if kind.startswith("calls:"):
        back = words["in_backward"] if suspected["topic"] in ("backward", "gradient") else ""
        return step + back + _called(suspected, words)
    if suspected["topic"] == "clip":
        details = suspected["details"]
        a, b = (_clip(*side, words) for side in zip("AB", details["clips"], strict=True))
        early = words("cause:before_unscale", **details) if "scale" in details else ""
        return step + words("difference:clip", a=a, b=b) + early
    return step + difference(suspected, words)


def _called(difference: Record, words: Texts) -> str:
    """Where the calls of two programs part."""
    details = dict(difference["details"])
    if "calls" in details:
        details["calls"] = ", ".join(code(call) for call in details["calls"])
    seen = {name: code(details[name]) for name in ("at", "at_call") if name in details}
    details |= {name: escaped(difference[name]) for name in ("a", "b")}
    details |= {"where": code(difference["where"]), "call": code(details.get("call", ""))}
    told = words(difference["kind"], **details)
    return told + (words("calls:seen", **seen) if seen else "")


def _parted(suspected: Record, words: Texts) -> str:
    departure = suspected["details"]
    subject = words(f"parted:{departure['what']}", where=code(suspected["where"]))
    factor, cause = departure["factor"], departure["cause"]
    if factor is not None:
        shown = {name: departure[name] for name in ("parted", "places")}
        subject = words("parted_factor", what=subject, factor=_whole(factor), **shown)
    elif cause is None:
        last = words("parted:last", last=code(departure["last"])) if departure["last"] else ""
        return words("parted", what=subject, apart=_short(departure["apart"])) + last
    if cause is None:
        return subject
    why = words(f"cause:{cause['word']}", run=cause["run"], **_several(cause["details"], words))
    why += "" if cause["sure"] else words("unsure", other="AB".replace(cause["run"], ""))
    return subject + why


def _whole(factor: float) -> str:
    """A factor as n or 1/n for a whole number n, if it is one to 1e-3; else with six digits."""
    for value, form in ((factor, "{:.0f}"), (1 / factor if factor else 0.0, "1/{:.0f}")):
        if abs(value) > 1.5 and math.isclose(value, round(value), rel_tol=1e-3):
            return form.format(round(value))
    return f"{factor:.6g}"


def difference(differing: Record, words: Texts) -> str:
    """A difference found before any number was judged, as a clause."""
    details = _several(differing["details"], words)
    named = {name: escaped(str(differing[name])) for name in ("where", "a", "b")}
    said = words(f"difference:{differing['kind']}", step=differing["step"], **named, **details)
    runs = differing["details"].get("schedules", ())
    shown = [_schedule(run, words, _roundest) for run in runs]
    moved = _moved(differing["details"], words)
    if not moved and len(set(shown)) > 1 and all(numbers != "–" for _, numbers in shown):
        for run, (schedule, numbers) in zip("AB", shown, strict=True):
            said += words("follows", run=run, schedule=schedule, numbers=numbers)
    return said + moved


def _moved(rule: Record, words: Texts) -> str:
    """Which steps of two runs belong together, as the end of a clause; "" where none are known."""
    if "moved" not in rule:
        return ""
    steps = words["steps:1"] if rule["steps"] == 1 else words("steps", count=rule["steps"])
    return words(f"moved:{rule['moved']}", **{**rule, "steps": steps})


def _judged(judgement: Record, words: Texts, run: str) -> str:
    named = {"worst": code(judgement["worst"]), "stage": words[judgement["stage"]], "run": run}
    place = words("judged_at", type=judgement["type"], **named)
    if judgement["cause"] is None:
        ratio = _short(judgement["over_bound"])
        return words("unexplained", where=place, output=judgement["output"], ratio=ratio)
    sentence = words("explained", where=place, **_cause(judgement, words))
    multiplied = judgement["cause"] == "scale_factor" and judgement["stage"] == "backward"
    return sentence + words["multiplied"] if multiplied else sentence


def _cause(judgement: Record, words: Texts) -> dict[str, str]:
    candidate = {"cause": judgement["cause"], "details": judgement["details"], "model": None}
    confidence = words[judgement["confidence"] or "assumed"]
    return {"cause": says(candidate, words.lang), "confidence": confidence}


def _alone(alignment: Record) -> str:
    """The end of the words' keys for one run."""
    return "" if len(alignment["runs"]) > 1 else "_alone"


def _section(title: str, body: str) -> str:
    return f"## {title}\n\n{body}" if body else ""


def _runs(alignment: Record, words: Texts) -> str:
    rows = []
    for name, run in zip("AB", alignment["runs"], strict=False):
        steps = str(run["steps"])
        steps = steps if run["complete"] else words("unfinished", steps=steps)
        captured = ", ".join(map(str, run["captured"][:8])) or "–"
        captured += ", …" if len(run["captured"]) > 8 else ""
        named = f"{name}: {escaped(run['name'])}", escaped(f"{run['framework']} {run['version']}")
        model = escaped(run["model"]), escaped(run["optimizer"] or "–"), str(run["ranks"])
        rows.append([*named, *model, steps, captured])
    return grid(words["run_columns"], rows, "llll--l")


def _suspects(alignment: Record, words: Texts) -> str:
    listed = alignment["verdict"]["suspects"]
    if len(listed) < 2:
        return ""
    lines = [f"{k}. {suspect(one, words)}" for k, one in enumerate(listed[:_LISTED], 1)]
    return _section(words[f"suspects{_alone(alignment)}"], "\n".join(lines))


def _curve(alignment: Record, words: Texts) -> str:
    curve = alignment["curve"]
    if curve is None:
        return ""
    sentences = [
        words["curve_text"].format(
            statistic=_short(curve["statistic"]), step=curve["step"], p=_short(curve["p"]),
            runs=curve["runs"], least=_short(curve["least_p"]),
        )
    ]  # fmt: skip
    if curve["p_normal"] is not None:
        sentences.append(words("curve_normal", p=_short(curve["p_normal"])))
    if curve["growth"] is not None:
        growth = _short(math.exp(100 * curve["growth"]))
        sentences.append(words("curve_growth", growth=growth))
    change = curve["least_rate_change"]
    power = words["curve_no_power"] if change is None else words["curve_power"]
    sentences.append(power.format(change="" if change is None else f"{100 * change:.2g} %"))
    if curve["undecidable_after"] is not None:
        sentences.append(words("curve_after", step=curve["undecidable_after"]))
    noise = alignment["noise"] or {"known": True, "invalid": "", "wider": 1.0}
    if noise["invalid"]:
        sentences.append(words("curve_invalid", where=escaped(noise["invalid"])))
    elif not noise["known"]:
        sentences.append(words["curve_unknown"])
    elif noise["wider"] > 1.0:
        wider = {"where": escaped(noise["where"]), "wider": _short(noise["wider"])}
        sentences.append(words("curve_wider", **wider))
    return " ".join(sentences)


def _clips(alignment: Record, words: Texts) -> str:
    sides = zip("AB", alignment["clips"], strict=False)
    return "\n".join(f"- {_clip(run, clip, words)}{words['stop']}" for run, clip in sides if clip)


def _clip(run: str, clip: Record, words: Texts) -> str:
    """What a run does to its gradients, as a clause."""
    numbers = words["and_also"].join(map(str, clip["divisors"]))
    if numbers:
        return words("clip:divided", run=run, numbers=numbers)
    if clip["scope"] in ("none", "other"):
        return words(f"clip:{clip['scope']}", run=run)
    if clip["scope"] == "value":
        return words("clip:value", run=run, limit=_short(clip["limit"]))
    if clip["constant"] is not None:
        return words("clip:constant", run=run, low=_roundest(*clip["constant"]))
    others = ", ".join(map(escaped, clip["left_out"][:3]))
    scope = words(f"scope:{'others' if others else clip['scope']}", names=others)
    if clip["threshold"] is None:
        return words("clip:unknown", run=run, scope=scope)
    threshold = _roundest(*clip["threshold"])
    return words("clip:threshold", run=run, scope=scope, threshold=threshold)


def _within(low: float, high: float) -> str:
    """An interval, with the number of fewest digits in it."""
    return f"{low:.6g}" if low == high else f"{_roundest(low, high)} ({low:.6g} – {high:.6g})"


def _roundest(low: float, high: float) -> str:
    """The number with the fewest digits in an interval."""
    if low <= 0.0 <= high:
        return "0"
    middle = (low + high) / 2
    for digits in range(1, 17):
        text = f"{middle:.{digits}g}"
        if low <= float(text) <= high:
            return text if digits > 6 else f"{float(text):g}"
    return f"{middle:.17g}"


def _local(alignment: Record, words: Texts) -> str:
    rows = []
    for name, local in zip("AB", alignment["local"], strict=False):
        for op in local["ops"]:
            verdict = words["fine"]
            if op["wrong"]:
                verdict = "**" + words("beyond", count=op["wrong"]) + "**"
            elif counted := [
                words(word, count=op[word])
                for word in ("negligible", "unattributed", "unusual", "one_sided")
                if op[word]
            ]:
                verdict = words["and_also"].join([verdict, *counted])
            rows.append(
                [
                    name, escaped(op["type"]), op["op"], words[op["stage"]],
                    str(op["outputs"]), f"{op['elements']:,}", _short(op["over_bound"]), verdict,
                ]
            )  # fmt: skip
    return grid(words["local_columns"], rows, "llll---l") if rows else ""


def layers_table(alignment: Record, words: Texts) -> str:
    """Every layer that was judged, at its worst step."""
    rows = []
    for name, local in zip("AB", alignment["local"], strict=False):
        for layer in local["layers"]:
            finding = words["fine"]
            if layer["cause"]:
                finding = "{cause} ({confidence})".format(**_cause(layer, words))
            elif layer["wrong"]:
                finding = words("beyond", count=layer["wrong"])
            finding = f"**{finding}**" if layer["wrong"] else finding
            rows.append(
                [
                    name, code(layer["name"]), escaped(layer["type"]), words[layer["stage"]],
                    str(layer["step"]), _short(layer["over_bound"]), finding,
                ]
            )  # fmt: skip
    return grid(words["layer_columns"], rows, "llll--l") if rows else ""


def _causes(alignment: Record, words: Texts) -> str:
    """Each cause once, where it first appeared."""
    lines: dict[tuple[str, str, str, str], str] = {}
    for name, local in zip("AB", alignment["local"], strict=False):
        for judgement in local["unordinary"]:
            key = (name, judgement["op"], judgement["stage"], str(judgement["cause"]))
            if key not in lines and (judgement["cause"] or judgement["wrong"]):
                run = "" if _alone(alignment) else words("in_run", run=name)
                step = words("at_step", step=judgement["step"])
                lines[key] = "- " + step + _judged(judgement, words, run)
    return _section(words["causes"], "\n".join(list(lines.values())[:_LISTED]))


def _notes(alignment: Record, words: Texts) -> str:
    noted = [one for one in alignment["differences"] if not one["decisive"]]
    lines = [f"- {difference(one, words)}" for one in noted]
    return _section(words[f"notes{_alone(alignment)}"], "\n".join(lines))


def _by_run(
    alignment: Record, title: str, found: Iterable[Iterable[Any]], shown: Callable[[Any], str]
) -> str:
    """A folded list of what was found in each run."""
    sides = zip("AB", found, strict=False)
    lines = [f"- {name}: {shown(one)}" for name, listed in sides for one in listed]
    return folded(title, "\n".join(dict.fromkeys(lines))) if lines else ""


def _gap(gap: Record) -> str:
    return f"{escaped(gap['name'])} ({escaped(gap['type'])}): {escaped(gap['reason'])}"


def _short(value: Any) -> str:
    if value is None or isinstance(value, str):
        return str(value or "–")
    return f"{value:.2g}" if abs(value) < 100 else f"{value:.3g}"


def _several(details: Mapping[str, Any], words: Texts) -> dict[str, Any]:
    """The details, escaped, and how many `more` there are."""
    more = int(details.get("more", 0))
    count = more + ("and" not in words["several"])
    return {**_escaped(details), "several": words("several", count=count) if more else ""}


def _escaped(details: Mapping[str, Any]) -> dict[str, Any]:
    return {key: escaped(v) if isinstance(v, str) else v for key, v in details.items()}


def metric(scores: Record, lang: str = "en") -> str:
    """Whether two scores differ by more than sampling, in a sentence or two."""
    words = words_of(lang)
    meaning = words["metric:more" if scores["p"] < 0.05 else "metric:chance"]
    test = "metric_graded" if scores["graded"] else "metric_paired"
    return words[test if scores["paired"] else "metric"].format(
        **{**scores, "p": _short(scores["p"])}, meaning=meaning
    )


def rates(record: Record, lang: str = "en") -> str:
    """The schedules of printed learning rates, and the first step at which two runs part."""
    words = words_of(lang)
    shown = (_schedule(run, words, _within) for run in record["runs"])
    rows = [[name, *cells] for name, cells in zip("AB", shown, strict=False)]
    table = grid(words["rates_columns"], rows, "lll")
    if "parted" not in record:
        return table
    found = {"shared": record["shared"], **(record["parted"] or {"moved": {}})}
    found["moved"] = _moved(found["moved"], words)
    return words("rates_part" if record["parted"] else "rates_same", **found) + "\n\n" + table


def _schedule(run: Record, words: Texts, number: Callable[..., str]) -> tuple[str, str]:
    """The schedule of a run's rates, and the numbers that fit, of intervals."""
    own = {"step": "gamma", "exponential": "gamma", "polynomial": "power"}
    schedule = run.get("schedule", {"decay": "unknown"})
    names = run.get("convention", "as_asked").split(" and ")
    said = [words[f"rates:{one}"] for one in (schedule["decay"], *names)]
    if others := [words[f"rates:{one}"] for one in run.get("also", ())]:
        said.append(words("rates_also", decays=words["and_also"].join(others)))
    shown = [f"`{key}` {number(*ends)}" for key, ends in run.get("intervals", {}).items()]
    keys = own.get(schedule["decay"], ""), "milestones", "restarts", "cosine_warmup"
    held = {key: schedule[key] for key in keys if schedule.get(key)}
    shown += [f"`{k}` {f'{v:.4g}' if isinstance(v, float) else v}" for k, v in held.items()]
    return words["and_also"].join(filter(None, said)), "; ".join(shown) or "–"
