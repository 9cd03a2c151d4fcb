"""The views of a judgement's record: lines for one screen, and a page in Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from refkernels.reporting.answer.facts import says
from refkernels.reporting.answer.markdown import folded, grid
from refkernels.reporting.words.escaping import escaped
from refkernels.reporting.words.forms import avoidable
from refkernels.reporting.words.judgement import VERDICT_WORDS, WORDS, reason
from refkernels.reporting.words.process import flushing
from refkernels.reporting.words.report import words_of

MARKS = {"right": "✓", "lower_precision": "≈", "range_limited": "∞", "not_enough_shown": "?"}
_SHOWN = 3  # reasons


def lines(record: Mapping[str, Any], replay: str, lang: str = "en") -> list[str]:
    """One screen: the verdict, its reasons, what was shown, and how to repeat the judgement."""
    words = WORDS[lang]
    if "why" in record:
        why = words.get(record["why"], record["why"])
        reasons = because(record.get("reasons", ()), lang, "refused")[:_SHOWN]
        return [why, *(f"  {reason}" for reason in reasons), f"  {words['replay']}: {replay}"]
    head = words["of"].format(
        kernel=record["kernel"], op=record["op"], direction=record["direction"],
        dtype=record["dtype"], verdict=VERDICT_WORDS[lang][record["verdict"]],
    )  # fmt: skip
    body = [f"{MARKS.get(record['verdict'], '✗')} {head}"]
    body += [f"  {line}" for line in (*_reasons(record, lang), *_shown(record, lang))]
    return [*body, f"  {words['replay']}: {replay}"]


def markdown(record: Mapping[str, Any], replay: str, lang: str = "en") -> str:
    """The page: the same, with every reason, family and mutant."""
    words = WORDS[lang]
    title, *facts = (escaped(line.strip(), 4000) for line in lines(record, replay, lang)[:-1])
    parts = [f"# {title}", "\n".join(f"- {line}" for line in facts)]
    if "why" in record:
        return "\n\n".join(parts) + "\n"
    if further := because(record["reasons"], lang)[_SHOWN:]:
        items = "\n".join(f"- {escaped(sentence, 4000)}" for sentence in further)
        parts.append(folded(words["reasons"], items))
    rows = [
        [name, str(family["asked"]), str(family["telling"])]
        for name, family in record["families"].items()
    ]
    parts.append(grid(words["families"], rows, "l--"))
    killed = record["mutants"]["killed"]
    if killed:
        parts.append(folded(words["mutants"], "\n".join(f"- `{name}`" for name in killed)))
    return "\n\n".join([*parts, f"{words['replay']}:\n\n    {replay}"]) + "\n"


def _reasons(record: Mapping[str, Any], lang: str) -> Iterator[str]:
    words, reasons = WORDS[lang], because(record["reasons"], lang)
    yield from reasons[:_SHOWN]
    if len(reasons) > _SHOWN:
        yield words("more", count=len(reasons) - _SHOWN)
    if (cause := record["cause"]) and cause.get("cause"):
        yield _cause(cause, lang)


def _cause(explained: Mapping[str, Any], lang: str) -> str:
    """The cause that `explain` found, as a sentence."""
    name = explained["cause"]
    best = next(
        (candidate for candidate in explained["candidates"] if candidate["cause"] == name), None
    )
    sure = words_of(lang).get(f"confidence:{explained['confidence']}", explained["confidence"])
    sentence = says(best, lang) if best else name
    return WORDS[lang]("cause", says=sentence, confidence=sure)


def time_of(seconds: float) -> str:
    """`4.13 ms`, `87.2 µs`, `1.2 s`: three digits."""
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 1e-6:.3g} µs"


def because(faults: Iterable[Mapping[str, Any]], lang: str, lead: str = "because") -> list[str]:
    """A sentence for each reason, with the challenges that showed it: the first few of many."""
    words = WORDS[lang]
    challenges: dict[str, list[str]] = {}
    for fault in faults:
        challenges.setdefault(reason(fault, lang), []).extend(filter(None, [fault["challenge"]]))
    sentences = []
    for text, places in challenges.items():
        named = words["between"].join(places[:_SHOWN]) + (" …" if len(places) > _SHOWN else "")
        key = lead if places else f"{lead}_alone"
        sentences.append(words(key, reason=text, challenge=named))
    return sentences


def _shown(record: Mapping[str, Any], lang: str) -> Iterator[str]:
    words, families = WORDS[lang], record["families"].values()

    def listed(**names: Iterable[Any]) -> Iterator[str]:
        for key, parts in names.items():
            if joined := words["join"].join(map(str, parts)):
                yield words(key, names=joined, dtype=record["dtype"])

    asked, telling = (sum(family[key] for family in families) for key in ("asked", "telling"))
    yield words("shown", challenges=asked, telling=telling, longest=f"{record['longest_axis']:,}")
    mutants = record["mutants"]
    if mutant_count := len(mutants["killed"]) + len(mutants["alive"]):
        yield words("killed", killed=len(mutants["killed"]), all=mutant_count)
    yield from listed(alive=mutants["alive"])
    if smallest := record["smallest_error_ulp"]:
        outputs = (
            words("of_output", ulp=f"{float(ulp):.3g}", output=name)
            for name, ulp in smallest.items()
        )
        yield words("smallest", outputs=words["join"].join(outputs))
    if timed := record["time"]:
        yield words["timed"].format(
            seconds=time_of(timed["seconds"]), calls=timed["calls"], inputs=timed["inputs"]
        )
    lengths = (f"{axis}={','.join(map(str, n))}" for axis, n in record["lengths"].items())
    yield from listed(declined=record["declined"], lengths=lengths, left_out=record["left_out"])
    yield from listed(axes=record["leading_axes"])
    if found := record.get("avoidable"):
        yield words("avoidable", clause=avoidable(found, found["format"], lang), **found)
    if (since := record.get("flushes")) is not None:
        yield flushing(since, lang, "there")
    for flag in record["flags"]:
        yield words(flag, widened=words["join"].join(record.get("widened", ())))
