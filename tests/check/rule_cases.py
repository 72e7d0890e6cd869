"""For every rule a case that breaks it, and the nearest neighbour that does not.

To add a rule that a gate raises: one `_gate(...)`, or `_message(...)` where it judges a message. To add one
that something else raises (a parser, git's check): one `RuleCase` whose two functions give findings. All take
the bytes of a name and put them into the paths or texts that they make, so that every rule is also tried with
hostile names.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from patchgate.check import refs
from patchgate.check.case import Case, Governance
from patchgate.check.message_rules import Message, examine
from patchgate.errors import Mistake
from patchgate.git.model import EXECUTABLE
from patchgate.report.rules import RULES, Level, Stage
from patchgate.report.verdict import Finding
from tests.check.gate_cases import (
    added,
    agents,
    case,
    chmod,
    deleted,
    findings,
    gitlink,
    modified,
    path,
    symlink,
)
from tests.components.component_rule_cases import COMPONENT_CASES
from tests.intents.scope_rule_cases import SCOPE_CASES

Findings = Callable[[bytes], Sequence[Finding]]
Cases = Callable[[bytes], Case]

RAISED_BY_PATCHES = frozenset(
    rule.id
    for rule in RULES.values()
    if rule.stage in {Stage.PARSE, Stage.GIT_CHECK, Stage.APPLY}
    or rule.gate in {"retry", "owners", "commands"}
)
"""Rules that no gate raises: reading a patch, git's check of it, its apply, a push, an agent's command."""
ONLY_IN_PATCHES = frozenset({"path-symlink", "path-colon", "path-backslash"})
"""Rules of the gates that no commit can break, only what a patch or an edit proposes."""
WITHOUT_PATH = frozenset(
    {
        "max-files",
        "max-added-lines",
        "intent-budget",
        "intent-expired",
        "intent-queued",
        "intent-trailer",
        "unverified",
    }
    | {rule.id for rule in RULES.values() if rule.stage is Stage.MESSAGE or rule.gate == "refs"}
)
"""Rules that speak of the change as a whole, of its message, or of a ref."""


@dataclass(frozen=True, slots=True)
class RuleCase:
    """One rule, how to break it, the neighbour that keeps it, and the level at which it speaks."""

    rule: str
    broken: Findings
    kept: Findings
    level: Level


def _gate(rule: str, broken: Cases, kept: Cases, level: Level | None = None) -> RuleCase:
    return RuleCase(
        rule,
        lambda name: findings(broken(name)),
        lambda name: findings(kept(name)),
        level or RULES[rule].level,
    )


def _message(rule: str, broken: Callable[[bytes], bytes], kept: Callable[[bytes], bytes]) -> RuleCase:
    return RuleCase(
        rule,
        lambda name: tuple(examine(Message(broken(name)))),
        lambda name: tuple(examine(Message(kept(name)))),
        RULES[rule].level,
    )


def _ref(rule: str, broken: refs.RefMove, kept: refs.RefMove) -> RuleCase:
    def named(move: refs.RefMove) -> Findings:
        def found(name: bytes) -> Sequence[Finding]:
            return tuple(refs.examine(replace(move, ref=move.ref + name.decode("utf-8", "surrogateescape"))))

        return found

    return RuleCase(rule, named(broken), named(kept), RULES[rule].level)


FAULT = Mistake("patchgate.toml", 3, "policy.deni", "unknown key `deni`", "did you mean `deny`?")


def _proposed(fault: bool) -> Governance:
    return Governance(frozenset({path("patchgate.toml")}), proposed_faults=(FAULT,) * fault)


KEY = b"-----BEGIN " + b"PRIVATE KEY-----"
MARKER = b"<<<<" + b"<<< HEAD"
CONFIG = "patchgate.toml"
OWN_MARKER = 'claims.markers = [{name = "ticket", pattern = "ABC-0000", example = "ABC-0000"}]'
NO_MODES = "[policy.commit]\nallow_modes = false"

CASES: tuple[RuleCase, ...] = (
    _gate("path-empty", lambda n: case(added(b"a//" + n)), lambda n: case(added(b"a/" + n))),
    _gate("path-absolute", lambda n: case(added(b"/etc/" + n)), lambda n: case(added(b"etc/" + n))),
    _gate("path-drive-letter", lambda n: case(added(b"C:/" + n)), lambda n: case(added(b"CC:/" + n))),
    _gate("path-traversal", lambda n: case(added(b"a/../" + n)), lambda n: case(added(b"a/.../" + n))),
    _gate("path-git-dir", lambda n: case(added(b".GIT/" + n)), lambda n: case(added(b".github/" + n))),
    _gate("path-control", lambda n: case(added(n + b"\n")), lambda n: case(deleted(n + b"\n"))),
    _gate(
        "path-collision",
        lambda n: case(added(b"DOCS/" + n), beside=[b"docs/" + n]),
        lambda n: case(added(b"DOCS/" + n), deleted(b"docs/" + n)),
    ),
    _gate(
        "path-colon",
        lambda n: agents(added(b"notes:" + n), from_text=True),
        lambda n: agents(added(b"notes:" + n)),
    ),
    _gate(
        "path-backslash",
        lambda n: agents(added(b"src\\" + n), from_text=True),
        lambda n: agents(added(b"src\\" + n)),
    ),
    _gate(
        "path-symlink",
        lambda n: agents(added(b"link/" + n), blocked={b"link/" + n: b"link"}),
        lambda n: agents(added(b"link/" + n)),
    ),
    _gate(
        "path-too-long",
        lambda n: case(added(n + b"x" * (256 - len(n)))),
        lambda n: case(added(n + b"x" * (255 - len(n)))),
    ),
    _gate(
        "outside-allow-roots",
        lambda n: case(added(b"infra/" + n), toml='policy.allow_roots = ["src"]'),
        lambda n: case(added(b"src/" + n), toml='policy.allow_roots = ["src"]'),
    ),
    _gate(
        "deny-prefix",
        lambda n: case(modified(b"runs/" + n), toml='policy.deny_prefixes = ["runs"]'),
        lambda n: case(modified(b"runs_evil/" + n), toml='policy.deny_prefixes = ["runs"]'),
    ),
    _gate(
        "deny-pattern",
        lambda n: case(modified(n + b".pem"), toml='policy.deny = ["*.pem"]'),
        lambda n: case(modified(n + b".pemx"), toml='policy.deny = ["*.pem"]'),
    ),
    _gate(
        "agent-settings",
        lambda n: agents(modified(b".codex/" + n)),
        lambda n: case(modified(b".codex/" + n)),
    ),
    _gate(
        "deny-suffix",
        lambda n: case(added(n + b".EXE"), toml='policy.deny_suffixes = [".exe"]'),
        lambda n: case(deleted(n + b".EXE"), toml='policy.deny_suffixes = [".exe"]'),
    ),
    _gate(
        "deny-class",
        lambda n: case(added(b"node_modules/" + n)),
        lambda n: case(added(b"my_node_modules/" + n)),
    ),
    _gate(
        "lock-without-manifest",
        lambda n: case(modified(n + b"/uv.lock")),
        lambda n: case(modified(n + b"/uv.lock"), modified(n + b"/pyproject.toml")),
    ),
    _gate(
        "max-files",
        lambda n: case(added(n), added("b"), toml="policy.commit.max_files = 1"),
        lambda n: case(added(n), toml="policy.commit.max_files = 1"),
    ),
    _gate(
        "max-added-lines",
        lambda n: case(added(n, lines=3), toml="policy.commit.max_added_lines = 2"),
        lambda n: case(added(n, lines=2), toml="policy.commit.max_added_lines = 2"),
    ),
    _gate(
        "max-file-bytes",
        lambda n: case(added(n, size=11), toml="policy.max_file_bytes = 10"),
        lambda n: case(added(n, size=10), toml="policy.max_file_bytes = 10"),
    ),
    _gate(
        "mode-change",
        lambda n: case(chmod(n, EXECUTABLE), toml=NO_MODES),
        lambda n: case(modified(n, mode=EXECUTABLE), toml=NO_MODES),
    ),
    _gate(
        "symlink",
        lambda n: case(symlink(b"a/" + n, b"../../etc")),
        lambda n: case(symlink(b"a/" + n, b"../etc")),
    ),
    _gate(
        "gitlink",
        lambda n: case(gitlink(n)),
        lambda n: case(gitlink(n, old=gitlink(n).new)),
    ),
    _gate(
        "policy-change-not-alone",
        lambda n: case(modified(CONFIG), modified(b"src/" + n)),
        lambda n: case(modified(CONFIG), modified(b".patchgate/" + n)),
    ),
    _gate(
        "policy-removed",
        lambda n: case(deleted(CONFIG), governance=Governance(frozenset({path(CONFIG)}), removed=True)),
        lambda n: case(deleted(b"docs/" + n + b"/patchgate.toml")),
    ),
    _gate(
        "policy-invalid",
        lambda n: case(modified(CONFIG), governance=_proposed(True)),
        lambda n: case(modified(CONFIG), governance=_proposed(False)),
    ),
    _gate(
        "policy-repaired",
        lambda n: case(modified(CONFIG), governance=Governance(frozenset({path(CONFIG)}), repaired=True)),
        lambda n: case(modified(CONFIG)),
    ),
    _gate(
        "secret", lambda n: case(added(n, KEY)), lambda n: case(added(n, KEY.replace(b"PRIVATE", b"PUBLIC")))
    ),
    _gate(
        "conflict-marker",
        lambda n: case(added(n, MARKER)),
        lambda n: case(added(n, b"=" * 7)),
    ),
    _gate(
        "deny-content",
        lambda n: case(added(n, "DO NOT COMMIT"), toml='content.deny = ["DO NOT COMMIT"]'),
        lambda n: case(added(n, "DO COMMIT"), toml='content.deny = ["DO NOT COMMIT"]'),
    ),
    _gate(
        "placeholder-word",
        lambda n: agents(added(n + b".py", "# TODO: read the file")),
        lambda n: agents(added(n + b".py", "# a TODO app")),
    ),
    _gate(
        "placeholder-bracket",
        lambda n: agents(added(n, "Owner: [TBD]")),
        lambda n: agents(added(n, "Owner: [TBD](tbd.md)")),
    ),
    _gate(
        "placeholder-hole",
        lambda n: agents(added(n, "Dear <your name>,")),
        lambda n: agents(added(n, "Dear <b>reader</b>,")),
    ),
    _gate(
        "placeholder-filler",
        lambda n: agents(added(n, "Lorem ipsum dolor sit amet")),
        lambda n: agents(added(n, "Lorem and ipsum")),
    ),
    _gate(
        "placeholder-body",
        lambda n: agents(added(n + b".py", "def f():\n    pass")),
        lambda n: agents(added(n + b".py", "class F:\n    pass")),
    ),
    _gate(
        "placeholder-marker",
        lambda n: agents(added(n, "see ABC-0000"), toml=OWN_MARKER),
        lambda n: agents(added(n, "see ABC-0001"), toml=OWN_MARKER),
    ),
    _ref(
        "ref-deleted",
        refs.RefMove("refs/heads/", "1" * 40, None),
        refs.RefMove("refs/heads/", "1" * 40, "2" * 40),
    ),
    _ref(
        "ref-forced",
        refs.RefMove("refs/heads/", "1" * 40, "2" * 40, keeps=False),
        refs.RefMove("refs/heads/", None, "2" * 40, keeps=False),
    ),
    _message("message-subject-missing", lambda n: b"Signed-off-by: " + n[:1], lambda n: b"A subject\n\n" + n),
    _message("message-subject-too-long", lambda n: b"x" * 73 + n, lambda n: b"x" * 72 + b"\n\n" + n),
    _message("message-subject-period", lambda n: b"Add it.\n\n" + n, lambda n: b"Add it\n\n" + n + b"."),
    _message("message-blank-line-missing", lambda n: b"Add it\n" + n, lambda n: b"Add it\n\n" + n),
    _message(
        "message-vague",
        lambda n: b"Add it\n\n" + n + b" as needed\n",
        lambda n: b"Add it\n\n" + n + b" as-needed\n",
    ),
    *(RuleCase(rule, broken, kept, RULES[rule].level) for rule, (broken, kept) in COMPONENT_CASES.items()),
    *(RuleCase(rule, broken, kept, RULES[rule].level) for rule, (broken, kept) in SCOPE_CASES.items()),
)
