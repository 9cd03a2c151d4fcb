"""Every word that a record may hold has its meaning for a reader, and one order."""

from refkernels.records import words
from refkernels.reporting.words import vocabulary


def test_every_word_of_a_record_has_a_meaning() -> None:
    assert tuple(verdict.name for verdict in vocabulary.VERDICTS) == words.LEVELS
    assert tuple(vocabulary.FLAGS) == words.FLAGS
    assert tuple(vocabulary.STATUSES) == words.FAULTS
    assert tuple(vocabulary.PROPERTIES) == words.PROPERTIES


def test_ranks_follow_the_levels_and_leave_room_for_the_unknown() -> None:
    ranks = [verdict.rank for verdict in vocabulary.VERDICTS]
    assert ranks == sorted(set(ranks))
    unknown = vocabulary.verdict("a_verdict_of_tomorrow").rank
    assert vocabulary.verdict("exceeds_bound").rank < unknown < vocabulary.UNUSUAL.rank
