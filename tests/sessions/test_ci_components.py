"""`check --ci` says of components what a server says of the same push."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.components.test_push_tips import STRICT, ZERO, Pushed, circle
from tests.sessions.test_ci import Host

pytestmark = pytest.mark.turns(3)


def built(pushed: Pushed, commit: str) -> Host:
    """Use the developer's repository as the clone of an engine, with a commit checked out."""
    pushed.repo.git("checkout", "-q", "-f", "--detach", commit)
    return Host(pushed.repo, pushed.server, pushed.repo, commit)


def test_a_circle_is_told_of_a_first_push_too(tmp_path: Path) -> None:
    pushed = circle(tmp_path)
    head = pushed.repo.head()
    pushed.repo.git("update-ref", "refs/remotes/origin/main", head)
    host = built(pushed, head)
    for before in (pushed.old, ZERO):
        answer = host.check(host.pushed("refs/heads/main", before, head))
        assert (answer.code, set(answer.errors)) == (1, {"dependency-cycle"})


def test_a_tag_of_an_old_commit_is_not_asked_for_fresh_components(tmp_path: Path) -> None:
    listed = '[push]\nprotected_refs = ["refs/heads/main", "refs/tags/v*"]\n'
    pushed = Pushed(tmp_path, "a", more=STRICT + listed)
    repo = pushed.repo
    old = repo.on(5, {"README": "text\n"})
    today = int((time.time() - repo.at_day(0)) // 86_400)
    tests = repo.ask("show", "HEAD:tests/a/test_a.py") + "\n\n\nx = 1\n"
    repo.on(today, {"tests/a/test_a.py": tests})
    repo.git("update-ref", "refs/remotes/origin/main", repo.on(today, repo.captured("a")))
    host = built(pushed, old)
    assert "baseline-stale" in host.check(host.pushed("refs/heads/main", pushed.old, old)).errors
    for name in ("v1", "other"):
        assert host.check(host.pushed(f"refs/tags/{name}", ZERO, old)).code == 0
