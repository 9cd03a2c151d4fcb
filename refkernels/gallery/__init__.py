"""The gallery: reported discrepancies as data, which `explain` explains.

    names() -> ("acos-at-one", ...)      load(name) -> Entry      Entry.explain() -> Explanation

An entry is a JSON file in `entries/`, its larger arrays in an .npz of the same name.
"""

from refkernels.gallery.entry import Entry, EntryError, load, names

__all__ = ["Entry", "EntryError", "load", "names"]
