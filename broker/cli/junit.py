"""The results of a replay as JUnit XML, which CI systems read."""

from __future__ import annotations

from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET  # written only, nothing is parsed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from broker.cli.replay import Verdict


def junit_xml(verdicts: Sequence[Verdict]) -> str:
    """Return one test suite with a test case for each recording."""
    suite = ET.Element(
        "testsuite",
        name="codemode replay",
        tests=str(len(verdicts)),
        failures=str(sum(verdict.result == "different" for verdict in verdicts)),
        errors=str(sum(verdict.result == "unusable" for verdict in verdicts)),
        time=f"{sum(verdict.seconds for verdict in verdicts):.3f}",
    )
    for verdict in verdicts:
        case = ET.SubElement(suite, "testcase", classname="recordings", name=_legal(verdict.name))
        case.set("time", f"{verdict.seconds:.3f}")
        if verdict.result != "same":
            kind = "failure" if verdict.result == "different" else "error"
            element = ET.SubElement(case, kind, message=_legal(verdict.detail.partition("\n")[0]))
            element.text = _legal(verdict.detail)
    ET.indent(suite)
    return ET.tostring(suite, encoding="unicode", xml_declaration=True) + "\n"


def _legal(text: str) -> str:
    """XML has no way to write most control characters."""
    return "".join(char if char in "\t\n" or char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in text)
