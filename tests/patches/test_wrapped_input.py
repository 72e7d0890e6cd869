"""What is around a patch, or before each of its lines: the refusal says what to leave out."""

from __future__ import annotations

import json

import pytest

from patchgate.patches.patch_parser import parse
from patchgate.patches.proposals import RefusedProposal, read_proposal

ENVELOPE = "```\n*** Begin Patch\n*** Update File: a.txt\n@@\n-two\n+2\n*** End Patch\n```\n"
DIFF = "diff --git a/a.txt b/a.txt\n--- a/a.txt\n+++ b/a.txt\n@@ -1,2 +1,2 @@\n one\n-two\n+2\n"


def test_an_envelope_inside_json_is_refused_for_the_json() -> None:
    raw = json.dumps({"patch": ENVELOPE}).encode()
    found = read_proposal(raw, "envelope", lambda _: None, repair=False)
    assert isinstance(found, RefusedProposal)
    (fault,) = found.faults
    assert (fault.rule, "JSON" in fault.message) == ("input-invalid", True)


@pytest.mark.parametrize("prefix", ["    ", "> ", ">", "\t"])
def test_a_diff_with_a_prefix_before_every_line_is_refused_for_the_prefix(prefix: str) -> None:
    raw = "".join(f"{prefix}{line}\n" for line in DIFF.splitlines()).encode()
    faults = parse(raw)
    assert isinstance(faults, tuple)
    assert faults[0].rule == "not-a-unified-diff"
    assert "every line begins with" in (faults[0].hint or "")
