"""The contract's own smoke test: raise every rule of the registry from its built-in case.

A case is a policy, and a patch, edits, a message, a push or a reply that break it. It, and the nearest
proposal that keeps the rule, go through the same door as any other, in a throw-away repository.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Mapping

from patchgate.agents.shell.shell_rules import judge_command
from patchgate.apply.selftest_cases import raised_by_applying
from patchgate.check.commits import check_revision
from patchgate.check.hook_decision import ApprovalSources, with_approvals
from patchgate.check.policy_lookup import CheckOptions
from patchgate.check.pushes import judge_push_to
from patchgate.check.selftest_case import ProposalKind, SelftestCase
from patchgate.cli.selftest_intents import commit_stream, make_repository, raised_by_intents
from patchgate.components.selftest_cases import COMPONENT_CASES
from patchgate.git.pushes import Remote, read_pushed
from patchgate.git.repository import Repository
from patchgate.patches.check_patch import check_patch
from patchgate.patches.check_reply import finding_of
from patchgate.patches.reply_actions import read_reply
from patchgate.report.rules import RULES
from patchgate.report.text import describe_finding
from patchgate.report.verdict import Finding, Report
from patchgate.values import dataclass

SHARED: dict[str, tuple[str, bytes]] = {
    "README.md": ("100644", b"hello\n"),
    "src/app.py": ("100644", b"one\ntwo\nthree\nfour\nfive\n"),
    "src/repeated.py": ("100644", b"x = 1\n\ny = 2\n" * 3),
    "src/dos.txt": ("100644", b"one\r\ntwo\r\nthree\r\n"),
    "src/mixed.txt": ("100644", b"one\r\ntwo\nthree\r\n"),
    "uv.lock": ("100644", b"version = 1\n"),
    "link": ("120000", b"src"),
}
"""The files of the repository: mode and content."""


def _change(path: str, old: str, new: str, at: int = 2) -> bytes:
    return (
        f"diff --git a/{path} b/{path}\n--- a/{path}\n+++ b/{path}\n@@ -{at} +{at} @@\n-{old}\n+{new}\n"
    ).encode()


def _context(path: str, lines: str, at: int) -> bytes:
    count = lines.count("\n")
    old = count - sum(line.startswith("+") for line in lines.splitlines())
    new = count - sum(line.startswith("-") for line in lines.splitlines())
    head = f"diff --git a/{path} b/{path}\n--- a/{path}\n+++ b/{path}\n@@ -{at},{old} +{at},{new} @@\n"
    return (head + lines).encode()


def _add(path: str, text: str = "new\n", mode: str = "100644") -> bytes:
    body = "".join(f"+{line}\n" for line in text.removesuffix("\n").split("\n"))
    count = body.count("\n")
    span = "1" if count == 1 else f"1,{count}"
    head = f"diff --git a/{path} b/{path}\nnew file mode {mode}\n--- /dev/null\n+++ b/{path}\n"
    return (head + f"@@ -0,0 +{span} @@\n{body}").encode()


def _add_quoted(path: str) -> bytes:
    head = f'diff --git "a/{path}" "b/{path}"\nnew file mode 100644\n'
    return f'{head}--- /dev/null\n+++ "b/{path}"\n@@ -0,0 +1 @@\n+x\n'.encode()


def _edits(*edits: dict[str, object]) -> bytes:
    return json.dumps({"patch": {"edits": list(edits)}}).encode()


def _edit(**changed: object) -> dict[str, object]:
    return {"path": "src/app.py", "start": 2, "end": 2, "new_text": "TWO\n", **changed}


def _message_case(rule: str, message: bytes, neighbour: bytes | None = None) -> SelftestCase:
    return SelftestCase(
        rule, message, policy='[message]\nlevel = "error"\n', kind=ProposalKind.MESSAGE, neighbour=neighbour
    )


def _reply_case(rule: str, reply: str, neighbour: str | None = None) -> SelftestCase:
    kept = None if neighbour is None else neighbour.encode()
    return SelftestCase(rule, reply.encode(), kind=ProposalKind.REPLY, neighbour=kept)


def _asking(action: str, *values: tuple[str, str]) -> str:
    lines = [f'<param name="{name}">{value}</param>' for name, value in values]
    return f"<function={action}>{''.join(lines)}</function>"


GOOD = _context("src/app.py", " one\n-two\n+TWO\n three\n", 1)
GOOD_EDITS = _edits(_edit())
GOOD_ENVELOPE = b"*** Begin Patch\n*** Update File: src/app.py\n@@\n-two\n+TWO\n*** End Patch\n"
GOOD_MESSAGE = b"Add the parser\n\nIt reads patches.\n"
# What git passes to pre-push; OURS is the case's commit, OTHER one without a common history.
GOOD_PUSH = b"x OURS refs/heads/main OURS\n"
GOOD_REPLY = b"<function=noop></function>"
GOODS = {
    ProposalKind.PATCH: GOOD,
    ProposalKind.EDITS: GOOD_EDITS,
    ProposalKind.ENVELOPE: GOOD_ENVELOPE,
    ProposalKind.MESSAGE: GOOD_MESSAGE,
    ProposalKind.PUSH: GOOD_PUSH,
    ProposalKind.REPLY: GOOD_REPLY,
    ProposalKind.COMMAND: b"git commit",
}
_LINK = _add("out", "/etc/passwd", "120000").rstrip(b"\n") + b"\n\\ No newline at end of file\n"
_GITLINK = _add("sub", "Subproject commit " + "1" * 40, "160000")
_TOKEN = "AK" + "IA" + "ABCDEFGHIJKLMNOP"
_REMOVED = (
    b"diff --git a/patchgate.toml b/patchgate.toml\ndeleted file mode 100644\n"
    b"--- a/patchgate.toml\n+++ /dev/null\n@@ -1 +0,0 @@\n-[policy]\n"
)

_BINARY = (
    b"diff --git a/x.bin b/x.bin\nnew file mode 100644\nGIT binary patch\nliteral 1\nIcmZPo000310RR91\n\n"
)
_COMBINED = (
    b"diff --cc src/app.py\nindex 1111111,2222222..3333333\n--- a/src/app.py\n+++ b/src/app.py\n"
    b"@@@ -1,1 -1,1 +1,1 @@@\n- one\n -two\n++three\n"
)

CASES: tuple[SelftestCase, ...] = (
    SelftestCase("not-a-unified-diff", b"I have changed the file.\n"),
    SelftestCase("prose-around-patch", GOOD + b"That is all.\n"),
    SelftestCase("invalid-unified-diff", GOOD.replace(b"+++ b/src/app.py", b"+++ b/src/other.py")),
    SelftestCase("missing-file-header", GOOD.replace(b"+++ b/src/app.py\n", b"")),
    SelftestCase("missing-hunk", b"\n".join(GOOD.split(b"\n")[:3]) + b"\n"),
    SelftestCase("hunk-count-mismatch", GOOD.replace(b"-1,3 +1,3", b"-1,2 +1,2")),
    SelftestCase("patch-truncated", GOOD.replace(b"-1,3 +1,3", b"-1,9 +1,9")),
    SelftestCase(
        "blank-context-line",
        _context("src/repeated.py", " x = 1\n \n-y = 2\n+y = 3\n", 1).replace(b"\n \n", b"\n\n"),
        neighbour=_context("src/repeated.py", " x = 1\n \n-y = 2\n+y = 3\n x = 1\n", 1),
    ),
    SelftestCase("carriage-return-in-header", GOOD.replace(b"+++ b/src/app.py\n", b"+++ b/src/app.py\r\n")),
    SelftestCase("binary-payload", _BINARY, neighbour=_add("x.txt")),
    SelftestCase(
        "combined-diff",
        _COMBINED,
    ),
    SelftestCase("duplicate-section", GOOD + GOOD),
    SelftestCase("patch-too-large", _add("d" * 140_000), neighbour=_add("d" * 200)),
    SelftestCase(
        "input-invalid",
        GOOD_ENVELOPE + GOOD_ENVELOPE,
        '[apply]\ninputs = ["envelope"]\n',
        kind=ProposalKind.ENVELOPE,
    ),
    SelftestCase("patch-repaired", b"```diff\n" + GOOD + b"```\n", "[apply]\nrepair = true\n"),
    SelftestCase("newline-missing", GOOD.removesuffix(b"\n")),
    SelftestCase("range-invalid", GOOD.replace(b"@@ -1,3 +1,3 @@", b"@@ ... @@")),
    SelftestCase(
        "anchor-mismatch",
        _edits(_edit(old_text="three\n")),
        kind=ProposalKind.EDITS,
        neighbour=_edits(_edit(old_text="two\n")),
    ),
    SelftestCase(
        "anchor-missing",
        _edits(_edit()),
        "[apply]\nrequire_anchor = true\n",
        kind=ProposalKind.EDITS,
        neighbour=_edits(_edit(old_text="two\n")),
    ),
    SelftestCase("path-missing", _edits(_edit(path="")), kind=ProposalKind.EDITS),
    SelftestCase("encoding-unsupported", b"\xef\xbb\xbf" + GOOD),
    SelftestCase(
        "multi-file-diff", _edits(_edit(), _edit(path="README.md", start=1, end=1)), kind=ProposalKind.EDITS
    ),
    SelftestCase("invalid-patch-schema", _edits(_edit(start=1.9)), kind=ProposalKind.EDITS),
    _reply_case("missing-function-tag", "<function=noop>"),
    _reply_case("invalid-multi-block", _asking("noop") + _asking("submit")),
    _reply_case(
        "duplicate-param", _asking("noop", ("reason", "a"), ("reason", "a")), _asking("noop", ("reason", "a"))
    ),
    _reply_case("unknown-param", _asking("noop", ("summary", "a")), _asking("submit", ("summary", "a"))),
    _reply_case("missing-required-param", _asking("explore"), _asking("explore", ("anchors", '["a.py"]'))),
    _reply_case(
        "invalid-json-param",
        _asking("explore", ("anchors", "a.py")),
        _asking("explore", ("anchors", '["a.py"]')),
    ),
    _reply_case("unknown-action", _asking("nop")),
    _reply_case("extra-text", "Done: " + _asking("noop")),
    SelftestCase("effect-mismatch", GOOD.replace(b"--- a/", b"old mode 100755\nnew mode 100644\n--- a/")),
    SelftestCase("hunk-mismatch", _context("src/app.py", " one\n-zwei\n+TWO\n three\n", 1)),
    SelftestCase(
        "hunk-ambiguous",
        _context("src/repeated.py", " x = 1\n \n-y = 2\n+y = 3\n x = 1\n", 5),
        neighbour=_context("src/repeated.py", " x = 1\n \n-y = 2\n+y = 3\n x = 1\n", 4),
    ),
    SelftestCase(
        "hunk-offset",
        _context("src/app.py", " two\n-three\n+3\n four\n", 3),
        neighbour=_context("src/app.py", " two\n-three\n+3\n four\n", 2),
    ),
    SelftestCase(
        "eol-adapted",
        _context("src/dos.txt", " one\n-two\n+2\n three\n", 1),
        neighbour=_context("src/dos.txt", " one\r\n-two\r\n+2\r\n three\r\n", 1),
    ),
    SelftestCase(
        "eol-mixed",
        _context("src/mixed.txt", " one\n-two\n+2\n three\n", 1),
        neighbour=_context("src/mixed.txt", " one\r\n-two\n+2\n three\r\n", 1),
    ),
    SelftestCase(
        "target-missing",
        _change("src/absent.py", "a", "b"),
        neighbour=_change("src/app.py", "two", "TWO").replace(b"@@ -2 +2 @@\n", b"@@ -1,3 +1,3 @@\n one\n")
        + b" three\n",
    ),
    SelftestCase("already-exists", _add("README.md"), neighbour=_add("README.txt")),
    SelftestCase("git-refused", _add("new") + _add("new/below"), neighbour=_add("new") + _add("old/below")),
    SelftestCase("path-empty", _add("docs//page.md")),
    SelftestCase("path-absolute", _add("/etc/passwd")),
    SelftestCase("path-drive-letter", _add("C:/system.ini")),
    SelftestCase("path-traversal", _add("src/../../x")),
    SelftestCase("path-git-dir", _add("src/.GIT/config")),
    SelftestCase("path-control", _add_quoted("a\\001b")),
    SelftestCase("path-symlink", _add("link/new.py")),
    SelftestCase("path-collision", _add("readme.md"), neighbour=_add("readme.txt")),
    SelftestCase("path-colon", _add("notes.txt:hidden")),
    SelftestCase("path-backslash", _add_quoted("src\\\\app.py")),
    SelftestCase("path-too-long", _add("d" * 300)),
    SelftestCase("outside-allow-roots", _add("infra/main.tf"), '[policy]\nallow_roots = ["src"]\n'),
    SelftestCase(
        "deny-prefix", _add("runs/x"), '[policy]\ndeny_prefixes = ["runs"]\n', neighbour=_add("runs_evil")
    ),
    SelftestCase("deny-pattern", _add("server.pem"), '[policy]\ndeny = ["*.pem"]\n'),
    SelftestCase("agent-settings", _add(".claude/settings.json"), neighbour=_add(".claude/settings.md")),
    SelftestCase(
        "command-bypasses-hooks", b"git commit -nm x", kind=ProposalKind.COMMAND, neighbour=b"git commit -m n"
    ),
    SelftestCase("deny-suffix", _add("tool.EXE"), '[policy]\ndeny_suffixes = [".exe"]\n'),
    SelftestCase("deny-class", _add("node_modules/x.js")),
    SelftestCase("lock-without-manifest", _change("uv.lock", "version = 1", "version = 2", 1)),
    SelftestCase("max-files", _add("a") + _add("b"), "[policy.agent]\nmax_files = 1\n", neighbour=_add("a")),
    SelftestCase(
        "max-added-lines",
        _add("a", "1\n2\n"),
        "[policy.agent]\nmax_added_lines = 1\n",
        neighbour=_add("a", "1\n"),
    ),
    SelftestCase(
        "max-file-bytes",
        _add("a", "12345\n"),
        "[policy]\nmax_file_bytes = 5\n",
        neighbour=_add("a", "1234\n"),
    ),
    SelftestCase("mode-change", _add("run.sh", "true\n", "100755"), neighbour=_add("run.sh", "true\n")),
    SelftestCase("symlink", _LINK),
    SelftestCase("gitlink", _GITLINK),
    SelftestCase(
        "secret", _add("a.py", f'key = "{_TOKEN}"\n'), neighbour=_add("a.py", f'key = "{_TOKEN[:-1]}"\n')
    ),
    SelftestCase("conflict-marker", _add("a.py", "<" * 7 + " HEAD\n")),
    SelftestCase("deny-content", _add("a.py", "DO NOT COMMIT\n"), '[content]\ndeny = ["DO NOT COMMIT"]\n'),
    SelftestCase(
        "policy-change-not-alone", _change("patchgate.toml", "[policy]", "[content]", 1) + _add("a")
    ),
    SelftestCase("policy-removed", _REMOVED),
    SelftestCase("policy-invalid", _change("patchgate.toml", "[policy]", "[polizei]", 1)),
    SelftestCase("policy-repaired", _change("patchgate.toml", "[polizei]", "[policy]", 1), "[polizei]\n"),
    SelftestCase(
        "placeholder-word", _add("a.py", "# TODO: read it\n"), neighbour=_add("a.py", "# a TODO app\n")
    ),
    SelftestCase("placeholder-bracket", _add("a.md", "Owner: [TBD]\n")),
    SelftestCase("placeholder-hole", _add("a.md", "Dear <your name>,\n")),
    SelftestCase("placeholder-filler", _add("a.md", "Lorem ipsum dolor sit amet\n")),
    SelftestCase(
        "placeholder-body",
        _add("a.py", "def total(rows):\n    raise NotImplementedError\n"),
        neighbour=_add("a.py", "class Total:\n    pass\n"),
    ),
    SelftestCase(
        "placeholder-marker",
        _add("a.md", "see ABC-0000\n"),
        '[claims]\nmarkers = [{ name = "ticket", pattern = "ABC-0000", example = "see ABC-0000" }]\n',
    ),
    SelftestCase(
        "ref-deleted", b"(delete) " + b"0" * 40 + b" refs/heads/main OURS\n", kind=ProposalKind.PUSH
    ),
    SelftestCase("ref-forced", b"x OTHER refs/heads/main OURS\n", kind=ProposalKind.PUSH),
    SelftestCase(
        "owner-approval-missing",
        b"x OURS refs/heads/main PARENT\n",
        '[policy]\n[[owners]]\npaths = ["src/**"]\n',
        ProposalKind.PUSH,
        neighbour=b"x OURS refs/heads/topic PARENT\n",
        then={"src/app.py": "1\n"},
    ),
    _message_case("message-subject-missing", b"Signed-off-by: A <a@example.com>\n"),
    _message_case("message-subject-too-long", b"x" * 73, b"x" * 72),
    _message_case("message-subject-period", b"Add the parser.\n"),
    _message_case("message-blank-line-missing", b"Add the parser\nIt reads patches.\n"),
    _message_case("message-vague", b"Follow best practices\n", b'Say "best practices" no more\n'),
    *COMPONENT_CASES,
    SelftestCase("base-conflict", GOOD, neighbour=_context("README.md", "-hello\n+hallo\n", 1)),
)
"""One case for each rule; `base-conflict` is applied before the commit that changed the same line."""


@dataclass(frozen=True, slots=True)
class Raised:
    """One rule: the findings of its case, and those of the nearest proposal that keeps the rule."""

    rule: str
    found: tuple[Finding, ...]
    beside: tuple[Finding, ...]

    @property
    def refusal(self) -> Finding | None:
        """The finding that the case is for; None if it was not raised."""
        return next((each for each in self.found if each.rule == self.rule), None)

    @property
    def is_raised(self) -> bool:
        """Whether the case raises the rule and its neighbour does not."""
        return self.refusal is not None and all(each.rule != self.rule for each in self.beside)


def selftest(environ: Mapping[str, str]) -> Iterator[Raised]:
    """Run every case, in the order of the registry; a rule without a case is not raised.

    Raises:
        UndecidedError: git is missing, or could not make the repository.
    """
    cases = {case.rule: case for case in CASES}
    with tempfile.TemporaryDirectory(prefix="patchgate-selftest-") as folder:
        repository = make_repository(environ, folder)
        commits = _commits(repository)
        for rule in RULES:
            case = cases.get(rule)
            if case is None:
                raised = raised_by_applying(rule, environ) or raised_by_intents(rule, environ)
                yield Raised(rule, *(raised or ((), ())))
                continue
            found = _found(repository, case, case.proposal, commits[rule])
            kept = GOODS[case.kind] if case.neighbour is None else case.neighbour
            yield Raised(rule, found, _found(repository, case, kept, commits[rule]))


def _found(repository: Repository, case: SelftestCase, proposal: bytes, commit: str) -> tuple[Finding, ...]:
    if case.kind is ProposalKind.REPLY:
        return tuple(finding_of(fault) for fault in read_reply(proposal).faults)
    if case.kind is ProposalKind.COMMAND:
        return tuple(judge_command(proposal.decode(), lambda path: None).findings)
    base = commit
    if case.rule == "base-conflict":
        base = _move_head_past(repository, commit)
    report = _check(repository, case, proposal, base)
    if case.rule == "base-conflict":
        repository.output("update-ref", "-d", "HEAD")
    return tuple(finding for change in report.changes for finding in change.findings)


def _check(repository: Repository, case: SelftestCase, proposal: bytes, base: str) -> Report:
    if case.kind is ProposalKind.MESSAGE:
        ref = "refs/selftest/message"
        repository.output("fast-import", "--quiet", "--force", stdin=commit_stream(ref, {}, base, proposal))
        return check_revision(repository, ref, CheckOptions())
    if case.kind is ProposalKind.PUSH:
        ref = "refs/selftest/other"
        repository.output("fast-import", "--quiet", "--force", stdin=commit_stream(ref, {}))
        other = repository.output("rev-parse", ref).strip()
        parent = repository.output("rev-parse", f"{base}^@").strip()
        for word, oid in ((b"OURS", base.encode("ascii")), (b"OTHER", other), (b"PARENT", parent)):
            proposal = proposal.replace(word, oid)
        updates = read_pushed(repository, proposal)
        report = judge_push_to(repository, Remote("origin"), updates, CheckOptions()).report
        return with_approvals(repository, report, ApprovalSources(local=False))
    return check_patch(repository, proposal, CheckOptions(), base=base, kind=case.kind.value)


def _commits(repository: Repository) -> dict[str, str]:
    """Make a commit for each case: the shared files and the case's policy. HEAD stays unborn."""
    stream: list[bytes] = []
    for number, case in enumerate(CASES, start=1):
        ref = f"refs/selftest/{number}"
        own = {name: ("100644", text.encode()) for name, text in case.files.items()}
        files = {**SHARED, **own, "patchgate.toml": ("100644", case.policy.encode())}
        stream.append(commit_stream(ref, files, seconds=case.seconds))
        if case.then:
            later = {name: ("100644", text.encode()) for name, text in case.then.items()}
            stream.append(commit_stream(ref, later, seconds=case.seconds))
    repository.output("fast-import", "--quiet", stdin=b"".join(stream))
    listed = repository.output("for-each-ref", "--format=%(refname) %(objectname)", "refs/selftest/").decode()
    named = dict(line.split(" ") for line in listed.splitlines())
    return {case.rule: named[f"refs/selftest/{number}"] for number, case in enumerate(CASES, start=1)}


def _move_head_past(repository: Repository, commit: str) -> str:
    """Let HEAD be a commit after `commit` that changes what the good patch changes."""
    changed = {"src/app.py": ("100644", b"one\nzwei\nthree\nfour\nfive\n")}
    stream = commit_stream("refs/selftest/after", changed, commit)
    repository.output("fast-import", "--quiet", stdin=stream)
    repository.output("update-ref", "HEAD", "refs/selftest/after")
    return commit


def refusals(results: list[Raised]) -> str:
    """Write the refusal of each rule as a user meets it."""
    found = (each.refusal for each in results)
    return "\n\n".join(describe_finding(each) for each in found if each is not None) + "\n"


def summary(results: list[Raised]) -> str:
    """Say what the selftest found, one line a rule, in words."""
    width = max(len(each.rule) for each in results)
    lines: list[str] = []
    for each in results:
        instead = ", ".join(dict.fromkeys(finding.rule for finding in each.found)) or "nothing"
        if each.refusal is not None:
            instead = f"its neighbour raises {each.rule} too"
        lines.append(f"{each.rule:<{width}}  {'raised' if each.is_raised else 'NOT RAISED, but ' + instead}")
    missing = sum(not each.is_raised for each in results)
    lines.append(f"{len(results) - missing} of {len(results)} rules raised from their built-in case")
    return "\n".join(lines) + "\n"
