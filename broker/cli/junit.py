"""The results of a replay as JUnit XML, which CI systems read."""

from __future__ import annotations

from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET  # written only, nothing is parsed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from broker.cli.replay import ReplayedTarget


def junit_xml(replayed: Sequence[ReplayedTarget]) -> str:
    """Return one test suite with a test case for each recording."""
    suite = ET.Element(
        "testsuite",
        name="codemode replay",
        tests=str(len(replayed)),
        failures=str(sum(target.result == "different" for target in replayed)),
        errors=str(sum(target.result == "unusable" for target in replayed)),
        time=f"{sum(target.seconds for target in replayed):.3f}",
    )
    for target in replayed:
        case = ET.SubElement(suite, "testcase", classname="recordings", name=_legal(target.name))
        case.set("time", f"{target.seconds:.3f}")
        if target.result != "same":
            kind = "failure" if target.result == "different" else "error"
            element = ET.SubElement(case, kind, message=_legal(target.detail.partition("\n")[0]))
            element.text = _legal(target.detail)
    ET.indent(suite)
    return ET.tostring(suite, encoding="unicode", xml_declaration=True) + "\n"


def _legal(text: str) -> str:
    """XML has no way to write most control characters."""
    return "".join(char if char in "\t\n" or char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in text)
