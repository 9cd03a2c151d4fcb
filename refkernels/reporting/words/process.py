"""What a process does to the numbers that are computed in it."""

from refkernels.reporting.words.catalogues import by_language

_WORDS = by_language("process")


def flushing(since: str, lang: str = "en", process: str = "here") -> str:
    """That a process flushes subnormal numbers, which its kernels are blamed for. `since`: the last
    import that began before, "" if there was none; `process`: this one ("here") or the kernel's
    ("there")."""
    words = _WORDS[lang]
    began = words("since", name=since) if since else words["always"]
    return words("flushes", process=words[process], began=began)
