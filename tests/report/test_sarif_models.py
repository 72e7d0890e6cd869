"""The report as SARIF 2.1.0, held against models of the standard's schema that others wrote."""

from __future__ import annotations

import pytest
from sarif_pydantic import Sarif

from patchgate.report import sarif
from patchgate.report.verdict import Report
from tests.report.verdict_reports import HOSTILE, commits, finding, hostile, judged, report

REPORTS = {
    "clean": report(),
    "no change": Report(()),
    "refused": report(finding("deny-prefix"), finding("max-files")),
    "a range": commits((), (finding("secret"),)),
    "undecided": Report((judged(),)),
    **{f"hostile {name}": hostile(raw) for name, raw in HOSTILE.items()},
}


@pytest.mark.parametrize("name", REPORTS)
def test_the_models_of_the_schema_read_every_report(name: str) -> None:
    written = sarif.render(REPORTS[name])
    read = Sarif.model_validate_json(written)
    assert read.version == "2.1.0"
    assert sum(len(run.results or []) for run in read.runs) == sum(
        len(change.findings) for change in REPORTS[name].changes
    )
