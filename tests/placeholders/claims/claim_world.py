"""One repository whose files hold, or do not hold, what a claim may be about; and claims against it.

What holds a placeholder that a scan can read lies in `build/`, which the fallback passes by: so the other
tracked files are clean, and one repository serves for nearly all.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from patchgate.git.repository import Repository, open_repository
from patchgate.ledger.adjudications import KIND, AdjudicationRecord, read_adjudications
from patchgate.ledger.ledger import Ledger
from patchgate.placeholders.claims.adjudicate import adjudicate
from patchgate.placeholders.claims.claim import Adjudication, Claim
from patchgate.placeholders.claims.claim_reader import read_claim
from patchgate.placeholders.claims.claim_source import SourceOptions
from tests.world import Content, Repo

CODE = "incomplete_deliverable_placeholder"
MARK = "# TODO: write this\n"
LARGE = "All of this line is written.\n" * 14_000 + MARK
LARGE_LINE = 14_001
FILES: Mapping[str, Content] = {
    "docs/out.md": "# Report\n\nIt is all here.\n",
    "docs/more.md": "# More\n\nThis too.\n",
    "docs/last.md": "# Last\n",
    "build/out.md": "# Report\n\n" + MARK,
    "build/clean.md": "# Report\n",
    "build/large.md": LARGE,
    "build/wide.md": ("﻿# Report\r\n" + MARK).encode("utf-16-le"),
    "build/binary.md": b"# TODO: write this\0\n",
    "src/main.go": "package main\n\n// TODO: write this\n",
    "Makefile": MARK,
}


def make_world(folder: Path) -> Repo:
    """Make the repository: the policy, then the files, then a commit that changes nothing."""
    repo = Repo.create(folder)
    repo.policy("[policy]\n")
    repo.write(b"docs/na\xc3\xafve \xff.md", "# Odd\n")
    repo.link("docs/passwd.md", "/etc/passwd")
    repo.link("docs/linked", "../build")
    repo.stage(FILES)
    repo.gitlink("docs/module")
    repo.git("commit", "-q", "--no-verify", "-m", "Write")
    repo.git("commit", "-q", "--no-verify", "--allow-empty", "-m", "Nothing more")
    return repo


def make_small(folder: Path) -> Repo:
    """Make a small repository, for one test that changes it."""
    repo = Repo.create(folder)
    repo.commit({"docs/out.md": "# Report\n", "docs/more.md": "# More\n", "notes.md": "# Notes\n"})
    return repo


def opened(repo: Repo) -> Repository:
    """Open a repository as a surface does."""
    return open_repository(repo.env, str(repo.path))


def claim(code: str | None = CODE, *deliverables: str, **keys: Any) -> Claim:
    """Make a claim as a verifier would write it."""
    written = {"passed": False, "reason_code": code, "deliverables": [*deliverables]} | keys
    return read_claim(json.dumps(written).encode("utf-8"), "verdict.json")


def adjudged(repo: Repo, said: Claim, asked: SourceOptions | None = None, **keys: Any) -> Adjudication:
    """Hold a claim against the files."""
    return adjudicate(opened(repo), said, asked or SourceOptions(), **keys)


def reasons(found: Adjudication) -> tuple[str, ...]:
    """Why the coverage was insufficient."""
    assert found.coverage is not None
    assert found.coverage.is_sufficient is not bool(found.coverage.reasons)
    return found.coverage.reasons


def places(found: Adjudication) -> list[str]:
    """Where placeholders were found."""
    assert found.scan is not None
    return [f"{each.path.quoted}:{each.line}" for each in found.scan.placeholders]


def scanned(found: Adjudication) -> dict[str, str]:
    """What was scanned whole, each with its tier."""
    assert found.scan is not None
    return {each.path.quoted: each.tier.value for each in found.scan.scanned if each.path}


def skipped(found: Adjudication) -> dict[str, str]:
    """What was not, each with the reason."""
    assert found.scan is not None
    return {
        each.candidate.path.quoted if each.candidate.path else each.candidate.given: each.reason.value
        for each in found.scan.skipped
    }


def remembered(repo: Repo) -> list[AdjudicationRecord]:
    """What the ledger has of adjudications."""
    return read_adjudications(Ledger(opened(repo).common_dir).find_events({KIND}))
