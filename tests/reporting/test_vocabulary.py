"""Every word that a record may hold has its meaning for a reader, and one order."""

from refkernels.records import words
from refkernels.reporting.words import vocabulary
from refkernels.reporting.words.report import listed, some_of, words_of


def test_every_word_of_a_record_has_a_meaning() -> None:
    assert tuple(verdict.name for verdict in vocabulary.LEVEL_WORDS) == words.LEVELS
    meanings = {kind: tuple(by_name["en"]) for kind, by_name in vocabulary.MEANINGS.items()}
    assert sorted(meanings.pop("meaning")) == sorted(words.LEVELS)
    kinds = ("flag", "status", "property")
    expected = (words.FLAGS, words.FAULTS, words.PROPERTIES)
    assert meanings == dict(zip(kinds, expected, strict=True))


def test_ranks_follow_the_levels_and_leave_room_for_the_unknown() -> None:
    ranks = [verdict.rank for verdict in vocabulary.LEVEL_WORDS]
    assert ranks == sorted(set(ranks))
    unknown = vocabulary.verdict("a_verdict_of_tomorrow").rank
    assert vocabulary.verdict("exceeds_bound").rank < unknown < vocabulary.UNUSUAL.rank


def test_a_list_in_chinese_sets_latin_words_and_figures_off_by_a_space() -> None:
    targets = ["paddle 3.3.1", "torch 2.13.0", "numpy"]
    assert listed(words_of("en"), targets) == "paddle 3.3.1, torch 2.13.0 and numpy"
    for names, expected in (
        (targets, "paddle 3.3.1、torch 2.13.0 和 numpy"),
        (["前向", "反向"], "前向和反向"),
        (["线程数（torch）", "numpy"], "线程数（torch）和 numpy"),
        (["torch", "另外两个"], "torch 和另外两个"),
        (["torch"], "torch"),
        ([], ""),
    ):
        assert listed(words_of("zh"), names) == expected


def test_more_ops_than_fit_are_counted() -> None:
    ops = ["sin", "cos", "tan", "exp"]
    assert some_of(words_of("en"), ops, 3) == "sin, cos and 2 more"
    assert some_of(words_of("zh"), ops, 3) == "sin、cos 及其他 2 个算子"
    assert some_of(words_of("zh"), ops, 4) == "sin、cos、tan 和 exp"


def test_exact_is_one_word_in_chinese() -> None:
    rounded = vocabulary.short_of(vocabulary.verdict("correctly_rounded"), "zh")
    assert rounded == words_of("zh")["term:correct"] == "正确舍入"
    for key in ("all_fine", "some_bad"):
        assert rounded in words_of("zh")[key]
