"""Judgements as JUnit's XML, which CI systems read: a test case for each kernel."""

from collections.abc import Mapping, Sequence
from typing import Any
from xml.etree import ElementTree

KINDS = {"right": "", "not_judged": "error"}  # any other verdict is a failure


def document(records: Sequence[Mapping[str, Any]], texts: Sequence[str]) -> str:
    """The XML of judgements and of the texts that say why. What is not judged is an error of the
    test, not a failure of the kernel."""
    suite = ElementTree.Element("testsuite", name="refkernels judge", tests=str(len(records)))
    for record, text in zip(records, texts, strict=True):
        names = {"name": str(record["kernel"]), "classname": str(record["op"])}
        seconds = str(record.get("seconds", 0.0))
        case = ElementTree.SubElement(suite, "testcase", names, time=seconds)
        if kind := KINDS.get(record["verdict"], "failure"):
            ElementTree.SubElement(case, kind, message=record["verdict"]).text = text
    for kind in ("failure", "error"):
        suite.set(f"{kind}s", str(len(suite.findall(f"*/{kind}"))))
    ElementTree.indent(suite)
    return ElementTree.tostring(suite, "unicode", xml_declaration=True) + "\n"
