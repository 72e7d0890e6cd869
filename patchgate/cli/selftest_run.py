"""The contract's own smoke test: raise every rule of the registry from its built-in case.

Each case, and the nearest proposal that keeps its rule, goes through the same door as any other, in a
throw-away repository that git makes.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from patchgate.check.commits import check_revision
from patchgate.check.pushes import judge_push_to
from patchgate.check.selftest_case import Kind, SelftestCase
from patchgate.check.terms import Asked
from patchgate.cli.selftest_cases import CASES, GOODS, SHARED
from patchgate.git.pushes import Remote, read_pushed
from patchgate.git.repository import Repository, open_repository
from patchgate.patches.patches import check_edits, check_patch
from patchgate.patches.reply import read_reply
from patchgate.process import allowed_environment, run
from patchgate.report.rules import RULES
from patchgate.report.verdict import Report

_WHO = "patchgate <selftest@patchgate.invalid>"


@dataclass(frozen=True, slots=True)
class Raised:
    """One rule: what its case raised at all, and what the neighbour that keeps it raised."""

    rule: str
    found: tuple[str, ...]
    beside: tuple[str, ...]

    @property
    def is_raised(self) -> bool:
        """Tell whether the case raises the rule and its neighbour does not."""
        return self.rule in self.found and self.rule not in self.beside


Elsewhere = Callable[[str, Mapping[str, str]], tuple[tuple[str, ...], tuple[str, ...]] | None]
"""Gives what the case of a rule and its neighbour raise, None where it has no case there."""


def selftest(environ: Mapping[str, str], elsewhere: Sequence[Elsewhere] = ()) -> Iterator[Raised]:
    """Run every case, in the order of the registry; a rule without a case is not raised.

    Args:
        elsewhere: the cases of what writes, which this room does not know.

    Raises:
        UndecidedError: git is missing, or could not make the repository.
    """
    cases = {case.rule: case for case in CASES}
    with tempfile.TemporaryDirectory(prefix="patchgate-selftest-") as folder:
        run(["git", "init", "-q", folder], cwd=None, env=allowed_environment(environ))
        plain = {name: value for name, value in environ.items() if not name.startswith("GIT_")}
        repository = open_repository(plain, folder)
        commits = _commits(repository)
        for rule in RULES:
            case = cases.get(rule)
            if case is None:
                told = (each(rule, environ) for each in elsewhere)
                yield Raised(rule, *next((each for each in told if each is not None), ((), ())))
                continue
            found = _found(repository, case, case.proposal, commits[rule])
            kept = GOODS[case.kind] if case.neighbour is None else case.neighbour
            yield Raised(rule, found, _found(repository, case, kept, commits[rule]))


def _found(repository: Repository, case: SelftestCase, proposal: bytes, commit: str) -> tuple[str, ...]:
    if case.kind is Kind.REPLY:
        return tuple(dict.fromkeys(fault.rule for fault in read_reply(proposal).faults))
    base = commit
    if case.rule == "base-conflict":
        base = _move_head_past(repository, commit)
    report = _check(repository, case, proposal, base)
    if case.rule == "base-conflict":
        repository.output("update-ref", "-d", "HEAD")
    return tuple(dict.fromkeys(finding.rule for change in report.changes for finding in change.findings))


def _check(repository: Repository, case: SelftestCase, proposal: bytes, base: str) -> Report:
    if case.kind is Kind.MESSAGE:
        ref = "refs/selftest/message"
        repository.output("fast-import", "--quiet", "--force", stdin=_commit(ref, {}, base, proposal))
        return check_revision(repository, ref, Asked())
    if case.kind is Kind.PUSH:
        ref = "refs/selftest/other"
        repository.output("fast-import", "--quiet", "--force", stdin=_commit(ref, {}))
        other = repository.output("rev-parse", ref).strip()
        lines = proposal.replace(b"OURS", base.encode("ascii")).replace(b"OTHER", other)
        return judge_push_to(repository, Remote("origin"), read_pushed(repository, lines), Asked()).report
    if case.kind is Kind.EDITS:
        return check_edits(repository, proposal, Asked(), base=base)
    return check_patch(repository, proposal, Asked(), base=base)


def _commits(repository: Repository) -> dict[str, str]:
    """Make a commit for each case: the shared files and the case's policy. HEAD stays unborn."""
    stream: list[bytes] = []
    for number, case in enumerate(CASES, start=1):
        ref = f"refs/selftest/{number}"
        own = {name: ("100644", text.encode()) for name, text in case.files.items()}
        files = {**SHARED, **own, "patchgate.toml": ("100644", case.policy.encode())}
        stream.append(_commit(ref, files, seconds=case.seconds))
        if case.then:
            later = {name: ("100644", text.encode()) for name, text in case.then.items()}
            stream.append(_commit(ref, later, seconds=case.seconds))
    repository.output("fast-import", "--quiet", stdin=b"".join(stream))
    listed = repository.output("for-each-ref", "--format=%(refname) %(objectname)", "refs/selftest/").decode()
    named = dict(line.split(" ") for line in listed.splitlines())
    return {case.rule: named[f"refs/selftest/{number}"] for number, case in enumerate(CASES, start=1)}


def _move_head_past(repository: Repository, commit: str) -> str:
    """Let HEAD be a commit after `commit` that changes what the good patch changes."""
    changed = {"src/app.py": ("100644", b"one\nzwei\nthree\nfour\nfive\n")}
    stream = _commit("refs/selftest/after", changed, commit)
    repository.output("fast-import", "--quiet", stdin=stream)
    repository.output("update-ref", "HEAD", "refs/selftest/after")
    return commit


def _commit(
    ref: str,
    files: Mapping[str, tuple[str, bytes]],
    parent: str | None = None,
    message: bytes = b"",
    *,
    seconds: int = 0,
) -> bytes:
    """Write one commit as git-fast-import reads it."""
    head = f"commit {ref}\ncommitter {_WHO} {seconds} +0000\ndata {len(message)}\n"
    lines = [head.encode() + message + b"\n"]
    if parent is not None:
        lines.append(f"from {parent}\n".encode())
    for name, (mode, content) in files.items():
        lines.append(f"M {mode} inline {name}\ndata {len(content)}\n".encode() + content + b"\n")
    return b"".join(lines)


def summary(results: list[Raised]) -> str:
    """Say what the selftest found, one line a rule, in words."""
    width = max(len(each.rule) for each in results)
    lines: list[str] = []
    for each in results:
        instead = ", ".join(each.found) or "nothing"
        if each.rule in each.beside:
            instead = f"its neighbour raises {each.rule} too"
        lines.append(f"{each.rule:<{width}}  {'raised' if each.is_raised else 'NOT RAISED, but ' + instead}")
    missing = sum(not each.is_raised for each in results)
    lines.append(f"{len(results) - missing} of {len(results)} rules raised from their built-in case")
    return "\n".join(lines) + "\n"
