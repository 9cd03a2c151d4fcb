"""Settings that change bits: each target is compared with the target that shares most settings."""

from typing import Any

from rich.console import Console

from refkernels.reporting import terminal_table
from refkernels.reporting.measure.headline import headline
from refkernels.reporting.measure.settings import SettingEffect, setting_effects
from refkernels.reporting.measure.study import Study
from refkernels.reporting.words.numerals import share
from refkernels.reporting.words.report import words_of


def record(op: str, digest: str, **settings: str) -> dict[str, Any]:
    return {
        "kind": "measurement", "op": op, "direction": "forward", "framework": "torch",
        "version": "2.13.0", "device": "cpu", "dtype": "float32", "output": "y", "status": "ok",
        "case": {"name": f"{op}/one", "regime": "one"}, "settings": settings, "digest": digest,
        "verdict": "rounding",
    }  # fmt: skip


RECORDS = [
    record("exp", "a"), record("sin", "b"),
    record("exp", "a", CBWR="AVX2"), record("sin", "c", CBWR="AVX2"),
    record("exp", "a", CBWR="AVX2", OMP="1"), record("sin", "c", CBWR="AVX2", OMP="1"),
]  # fmt: skip


def test_a_target_is_held_to_the_one_with_the_most_of_its_settings() -> None:
    two_settings, one_setting = "torch@CBWR=AVX2,OMP=1", "torch@CBWR=AVX2"
    assert sorted(setting_effects(Study.of(RECORDS)), key=lambda effect: effect.subject) == [
        SettingEffect(one_setting, "torch", 2, 1, ("sin",)),
        SettingEffect(two_settings, one_setting, 2, 0, ()),
    ]


def test_the_first_paragraph_says_which_settings_change_bits() -> None:
    for lang in ("en", "zh"):
        paragraph = " ".join(headline(Study.of(RECORDS), words_of(lang)))
        change, keep = words_of(lang)["settings_change"], words_of(lang)["settings_keep"]
        sentence = change.format(who="torch@CBWR=AVX2", base="torch", share=share(1, 2), ops="sin")
        assert sentence in paragraph
        assert keep.format(who="torch@CBWR=AVX2,OMP=1") in paragraph
        console = Console(width=200, record=True)
        console.print(terminal_table(RECORDS, lang))
        assert sentence in " ".join(console.export_text().split())
