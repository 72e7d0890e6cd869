"""Every refusal that an agent can mend mechanically is mended in one step, by what its JSON says alone."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from patchgate.check.selftest_case import ProposalKind
from patchgate.cli.selftest import CASES as SELFTEST
from patchgate.cli.selftest import GOOD, SHARED
from patchgate.patches.patch_parser import Patch, parse
from patchgate.patches.path_selection import choose_paths, read_path_option, select_paths
from patchgate.report.rules import RULES, Stage
from patchgate.report.rules.scope import PLACEHOLDER_RULES
from tests.components.component_rule_cases import CONTRACTS, DRIFT
from tests.proposals import addition, change_of, check, deletion, moved
from tests.sessions.scripted_fixer import mend, mend_edits
from tests.world import Repo

BROKEN = {case.rule: case for case in SELFTEST}
OTHER = b"diff --git a/README.md b/README.md\n--- a/README.md\n+++ b/README.md\n@@ -1 +1 @@\n-hello\n+hallo\n"
HEADERS = b"--- a/src/app.py\n+++ b/src/app.py\n"
REPEATED = b"diff --git a/src/repeated.py b/src/repeated.py\n--- a/src/repeated.py\n+++ b/src/repeated.py\n"
_NEW = addition(b"src/new.py", b"x = 1")
_TWO = addition(b"a", b"1").replace(b"+1 @@\n+1\n", b"+1,2 @@\n+1\n+2\n")


def _beside(rule: str, *, after: bytes = GOOD) -> bytes:
    """Give the selftest's proposal, with a good section that has to stay."""
    return BROKEN[rule].proposal + after


# What is sent, and the policy where it is not the selftest's. Behind a colon: which case of the rule.
CASES: dict[str, bytes | tuple[bytes, str]] = {
    "prose-around-patch": b"Here is the patch:\n\n```diff\n" + GOOD + OTHER + b"```\nThat is all.",
    "prose-around-patch: mail": b"From 1234\nSubject: [PATCH] x\n\n---\n f | 2 +-\n\n"
    + GOOD
    + b"-- \n2.39.5\n",
    "invalid-unified-diff": GOOD.replace(HEADERS, b"index 0000000..1234567 100644\n" + HEADERS),
    "invalid-unified-diff: no /dev/null": _NEW.replace(b"--- /dev/null", b"--- a/src/new.py"),
    "invalid-unified-diff: a mode of another system": _NEW.replace(b"100644", b"100664"),
    "invalid-unified-diff: context without its space": GOOD.replace(b"\n one", b"\none"),
    "invalid-unified-diff: a hunk that changes nothing": GOOD + b"@@ -5 +5 @@\n five\n",
    "missing-file-header": _beside("missing-file-header", after=OTHER),
    "missing-file-header: diff -u": b"--- src/app.py\t2024-01-01 10:00\n+++ src/app.py\t2024-01-02 10:00\n"
    + GOOD.partition(HEADERS)[2]
    + b"--- /dev/null\t1970-01-01\n+++ b/src/new.py\t2024-01-02\n@@ -0,0 +1 @@\n+x\n",
    "missing-file-header: no new file mode": _NEW.replace(b"new file mode 100644\n", b""),
    "missing-hunk": _NEW.replace(b"@@ -0,0 +1 @@\n", b""),
    "hunk-count-mismatch": GOOD.replace(b"-1,3 +1,3", b"-1,2 +1,2"),
    "blank-context-line": REPEATED + b"@@ -4,4 +4,4 @@\n x = 1\n\n-y = 2\n+y = 3\n x = 1\n",
    "carriage-return-in-header": GOOD.replace(b"\n", b"\r\n", 4) + _NEW,
    "duplicate-section": GOOD + OTHER + GOOD,
    "newline-missing": GOOD.removesuffix(b"\n"),
    "range-invalid": _NEW.replace(b"@@ -0,0 +1 @@", b"@@ -1,0 +1,1 @@"),
    "range-invalid: hunks out of order": GOOD.replace(
        b"@@ -1,3 +1,3 @@\n one\n-two\n+TWO\n three\n",
        b"@@ -4,2 +4,2 @@\n four\n-five\n+FIVE\n@@ -1,3 +1,3 @@\n one\n-two\n+TWO\n three\n",
    ),
    "path-missing": GOOD.replace(b"--- a/src/app.py", b"---"),
    "encoding-unsupported": b"\xef\xbb\xbf" + GOOD,
    "multi-file-diff": BROKEN["multi-file-diff"].proposal,
    "effect-mismatch": BROKEN["effect-mismatch"].proposal,
    "effect-mismatch: the mode of an index line": GOOD.replace(
        HEADERS, b"index 1111111..2222222 100755\n" + HEADERS
    ),
    "hunk-mismatch": GOOD.replace(
        b"@@ -1,3 +1,3 @@\n one\n-two\n+TWO\n three\n", b"@@ -1,3 +1,3 @@\n two\n-three\n+THREE\n four\n"
    ),
    "hunk-mismatch: white space in the context": GOOD.replace(b"\n three\n", b"\n three \n").replace(
        b"@@ -1,3 +1,3 @@\n", b"@@ -1,4 +1,4 @@\n"
    )
    + b" four\n",
    "hunk-mismatch: it is there already": GOOD.replace(b"-two\n+TWO", b"-zwei\n+two") + OTHER,
    "hunk-ambiguous": REPEATED + b"@@ -4,4 +9,4 @@\n x = 1\n \n-y = 2\n+y = 3\n x = 1\n",
    "eol-mixed": BROKEN["eol-mixed"].proposal,
    "target-missing": deletion(b"src/absent.py") + GOOD,
    "target-missing: a new file": _NEW.replace(b"new file mode 100644\n", b"").replace(
        b"--- /dev/null", b"--- a/src/new.py"
    ),
    "already-exists": addition(b"README.md", b"hello") + GOOD,
    **{
        rule: _beside(rule)
        for rule in (
            *("path-empty", "path-absolute", "path-drive-letter", "path-traversal", "path-git-dir"),
            *("path-control", "path-symlink", "path-collision", "path-colon", "path-backslash"),
            *("path-too-long", "outside-allow-roots", "deny-prefix", "deny-pattern", "deny-suffix"),
            *("deny-class", "symlink", "gitlink"),
        )
    },
    "max-files": BROKEN["max-files"].proposal,
    "max-added-lines": (_TWO + _NEW + addition(b"src/old.py"), "[policy.agent]\nmax_added_lines = 2\n"),
    "max-file-bytes": (
        addition(b"large", b"x" * 40) + GOOD,
        '[policy]\nmax_file_bytes = 30\n\n[rules]\nmax-file-bytes = "error"\n',
    ),
    "mode-change": BROKEN["mode-change"].proposal,
    "conflict-marker": BROKEN["conflict-marker"].proposal.replace(b"+1 @@\n", b"+1,2 @@\n+x = 1\n"),
    "deny-content": BROKEN["deny-content"].proposal.replace(b"+1 @@\n", b"+1,2 @@\n+x = 1\n"),
    "policy-change-not-alone": BROKEN["policy-change-not-alone"].proposal,
}

NOT_MECHANICAL = {
    "not-a-unified-diff": "nothing of a diff was sent",
    "combined-diff": "it has no single base; only `git diff A B` makes another patch",
    "patch-too-large": "where to cut is the author's choice",
    "invalid-patch-schema": "reading something near what was written would change other lines",
    "patch-truncated": "what was cut off or left out is not known",
    "patch-repaired": "it is a note",
    "command-bypasses-hooks": "it is about a shell command, not about a patch",
    "agent-settings": "only a maintainer changes these files",
    "input-invalid": "which of several readings was meant only its author knows",
    "binary-payload": "a patch without its binary file would be half of the change",
    "anchor-mismatch": "which lines were meant only the author of the edit knows",
    "anchor-missing": "what the edit was to replace only its author knows",
    "git-refused": "git's own words are the only ones there are",
    "base-conflict": "both sides changed the same lines; only the author knows what is meant",
    "policy-invalid": "what the policy was to say only its author knows",
    "index-differs": "not the patch is at fault; the index or the option is",
    "lint-failed": "what the command found is not in the patch contract",
    "build-failed": "what the command found is not in the patch contract",
    "duplicate-patch": "nothing has to be mended",
    "retry-not-a-diff": "another thing than a patch was sent",
    "retry-identical": "the patch itself is to be mended, by the refusal before",
    **dict.fromkeys(CONTRACTS, "what the component is to promise only its author knows"),
    **dict.fromkeys(DRIFT, "contract, tests or implementation: which of them is right only the author knows"),
    **{rule.id: "what is to stand there only its author knows" for rule in PLACEHOLDER_RULES},
    "hunk-offset": "a note, which refuses nothing",
    "eol-adapted": "a note, which refuses nothing",
    "lock-without-manifest": "a note, which refuses nothing by itself",
    "policy-repaired": "a note, which refuses nothing",
    "failed-before": "what fails without the patch is not the patch's",
    "command-changed-files": "the command of the policy is to be changed",
    "command-side-effects": "the command of the policy is to be changed",
}
"""The rules that no script can mend honestly, each with the reason."""
NOT_BY_AN_AGENT = frozenset({"secret", "policy-removed", "retry-exhausted"})
"""The rules of which a person has to take notice, whatever becomes of the patch."""
_CIRCUMSTANCES = frozenset({"owners", "refs", "reply", "staleness", "scope", "verify"})
"""Gates that speak of more than a patch."""


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    """What every case of the selftest finds."""
    repo = Repo.create(tmp_path)
    for name, (mode, content) in SHARED.items():
        if mode == "120000":
            repo.link(name, content.decode())
        else:
            repo.write(name, content)
    repo.commit()
    return repo


@pytest.mark.parametrize("name", CASES)
def test_a_refusal_is_mended_in_one_step_by_what_it_says(repo: Repo, name: str) -> None:
    rule = name.partition(":")[0]
    given = CASES[name]
    sent, policy = given if isinstance(given, tuple) else (given, BROKEN[rule].policy)
    repo.policy(policy)
    option = "--edits" if BROKEN[rule].kind is ProposalKind.EDITS and rule == "multi-file-diff" else "--patch"
    refused = check(repo, sent, option=option)
    assert refused.code == 1, refused.out
    assert rule in refused.errors
    assert all(finding["who_can_fix"] == "agent" for finding in refused.findings if finding["rule"] == rule)
    # Through JSON text, as an agent gets it.
    report = json.loads(refused.out)
    mended = mend_edits(sent, report) if option == "--edits" else mend(sent, report)
    assert mended != sent
    answer = check(repo, mended, option=option)
    assert (answer.code, answer.errors) == (0, []), mended.decode("utf-8", "replace")
    assert answer.change["files"]


def test_a_hunk_is_put_where_found_at_says(repo: Repo) -> None:
    repo.policy("[policy]\n")
    sent = CASES["hunk-mismatch"]
    assert isinstance(sent, bytes)
    report: Any = json.loads(check(repo, sent).out)
    (finding,) = report["changes"][0]["findings"]
    assert finding["details"]["found_at"] == [2]
    finding["fix"] = None
    assert check(repo, mend(sent, report)).verdict == "accepted"


def test_every_rule_that_an_agent_can_mend_has_a_case_or_a_reason(repo: Repo) -> None:
    mended = {name.partition(":")[0] for name in CASES}
    assert not mended & NOT_MECHANICAL.keys()
    assert not (mended | NOT_MECHANICAL.keys()) & NOT_BY_AN_AGENT
    for rule in RULES.values():
        if rule.stage is Stage.MESSAGE or rule.gate in _CIRCUMSTANCES or rule.undecided:
            continue
        assert rule.id in mended | NOT_MECHANICAL.keys() | NOT_BY_AN_AGENT, rule.id
    assert mended | NOT_MECHANICAL.keys() | NOT_BY_AN_AGENT <= RULES.keys()


@pytest.mark.parametrize("rule", sorted(NOT_BY_AN_AGENT & BROKEN.keys()))
def test_what_a_person_has_to_know_of_says_so(repo: Repo, rule: str) -> None:
    repo.policy(BROKEN[rule].policy)
    found = [each for each in check(repo, BROKEN[rule].proposal).findings if each["rule"] == rule]
    assert [each["who_can_fix"] for each in found] == ["person"]


@pytest.mark.sweep(3)
@pytest.mark.parametrize("seed", range(6))
def test_the_parts_of_a_split_are_the_whole_and_each_is_accepted(repo: Repo, seed: int) -> None:
    """Each list, given to `--only`, is a patch of its own: renames whole, deletions and lock files too."""
    chance = random.Random(seed)
    repo.policy(
        "[policy]\ngenerated = ['gen/**']\n\n[policy.agent]\nmax_files = 3\nmax_added_lines = 6\n"
        "deny_classes = []\n\n[[overrides]]\npaths = ['docs/**']\nmax_files = 1\n"
    )
    names = [f"{folder}/{letter}.txt" for folder in ("a", "docs", "gen", "z") for letter in "abcdef"]
    repo.commit({name: f"a\nb\nc\n{name}\n" for name in names})
    sections: list[bytes] = []
    for number, name in enumerate(chance.sample(names, 18)):
        path = name.encode()
        target = b"%s/moved-%d.txt" % (chance.choice([b"a", b"docs", b"z"]), number)
        sections.append(
            chance.choice(
                [
                    change_of(path).replace(b"@@ -1,3 +1,3 @@", b"@@ -1,4 +1,4 @@") + b" " + path + b"\n",
                    moved(path, target),
                    moved(path, target).replace(b"100%", b"75%")
                    + b"--- a/%b\n+++ b/%b\n@@ -1,4 +1,4 @@\n a\n-b\n+B\n c\n %b\n" % (path, target, path),
                    b"diff --git a/%b b/%b\ndeleted file mode 100644\n--- a/%b\n+++ /dev/null\n"
                    b"@@ -1,4 +0,0 @@\n-a\n-b\n-c\n-%b\n" % (path, path, path, path),
                    addition(b"new-%d/uv.lock" % number) + addition(b"z/new-%d.py" % number),
                ]
            )
        )
    patch = b"".join(sections)
    refused = check(repo, patch)
    assert set(refused.errors) <= {"max-files", "max-added-lines"}
    details = refused.findings[0]["details"]
    assert details["too_large"] == []
    parsed = parse(patch)
    assert isinstance(parsed, Patch)
    parts = [
        select_paths(parsed, choose_paths(parsed, [read_path_option(path) for path in part]))
        for part in details["split"]
    ]
    assert sorted(_texts(b"".join(parts))) == sorted(_texts(patch))
    for part in parts:
        answer = check(repo, part)
        assert answer.verdict == "accepted", answer.findings


def _texts(patch: bytes) -> list[bytes]:
    return patch.split(b"diff --git ")[1:]
