"""The message gate at commit-msg and over commits, with real git: what it says is what the commit holds."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from patchgate.check import commit_message as room
from patchgate.check.commit_message import check_message
from patchgate.errors import UndecidedError, UsageError
from patchgate.git.repository import open_repository
from patchgate.report.verdict import Report
from tests.world import Repo

STRICT = '[message]\nlevel = "error"\n'
SCISSORS = "# ------------------------ >8 ------------------------"
VAGUE = "Mend the others as needed"


class Session:
    """A repository with our commit-msg hook and an editor that puts what is typed above what is there."""

    def __init__(self, folder: Path) -> None:
        self.repo = Repo.create(folder)
        self.typed = folder / "typed"
        self.repo.write(
            "../editor",
            f'#!/bin/sh\n{{ cat {self.typed} "$1"; }} > "$1.x"; mv "$1.x" "$1"\n',
            executable=True,
        )
        hook = '#!/bin/sh\nexec git-patchgate hook commit-msg "$1" >&2\n'
        self.repo.write(".git/hooks/commit-msg", hook, executable=True)

    def commit(self, *arguments: str, typed: str | None = None, config: str = "") -> tuple[int, list[str]]:
        """Commit; give git's exit code and what the hook said, as `level rule line`."""
        editor = ":"
        if typed is not None:
            self.typed.write_text(typed, encoding="utf-8")
            editor = shlex.quote(str(self.typed.with_name("editor")))
        options = ["-c", config] if config else []
        done = self.repo.try_git(*options, "commit", "-q", "--allow-empty", *arguments, GIT_EDITOR=editor)
        told = done.stderr.decode("utf-8")
        assert "Traceback" not in told
        found = re.findall(
            r"^(error|warning|note)\[([a-z-]+)\]: .*\n(?: +--> message:(\d+)\n)?", told, re.MULTILINE
        )
        return done.returncode, [" ".join(part for part in each if part) for each in found]

    @property
    def message(self) -> str:
        """The message of HEAD."""
        return self.repo.git("log", "-1", "--format=%B").decode()


@pytest.fixture
def session(tmp_path: Path) -> Session:
    """A repository whose hook tells, under the built-in policy."""
    made = Session(tmp_path)
    made.repo.commit({"a": "one\n"}, "First")
    return made


@pytest.fixture
def strict(session: Session) -> Session:
    """A repository whose policy refuses messages."""
    session.repo.policy(STRICT)
    return session


def judged(repo: Repo, text: bytes, *, edited: bool = True) -> Report:
    """Check a message file in this process."""
    file = repo.path / "message"
    file.write_bytes(text)
    return check_message(open_repository(repo.env, str(repo.path)), str(file), edited=edited)


def rules(report: Report) -> list[tuple[str, int | None]]:
    (change,) = report.changes
    return [(finding.rule, finding.line) for finding in change.findings]


def test_a_good_message_is_passed_in_silence(session: Session) -> None:
    done = session.repo.try_git("commit", "-q", "--allow-empty", "-m", "Add the parser")
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_by_default_it_only_warns(session: Session) -> None:
    assert session.commit("-m", VAGUE, "-m", "a.") == (0, ["warning message-vague 1"])
    assert session.message.startswith(VAGUE)


def test_where_the_policy_says_so_it_refuses_and_tells_where_the_message_is(strict: Session) -> None:
    before = strict.repo.head()
    done = strict.repo.try_git("commit", "--allow-empty", "-m", VAGUE + ".")
    assert done.returncode == 1
    assert strict.repo.head() == before
    told = done.stderr.decode()
    assert "error[message-subject-period]: " in told
    assert "\n --> message:1\n" in told
    assert ".git/COMMIT_EDITMSG" in told
    assert (strict.repo.path / ".git/COMMIT_EDITMSG").read_text(encoding="utf-8") == VAGUE + ".\n"


FORMS = {
    "editor": ([], "Subject\n\n# as needed\nas needed\n", "", 3),
    "editor, blanks above": ([], "\n\n# note\nSubject\n\n\n\nas needed\n", "", 3),
    "verbose": (["-v"], "Subject\n\nas needed\n", "", 3),
    "verbose by config": ([], "Subject\n\nas needed\n", "commit.verbose=true", 3),
    "scissors": (["--cleanup=scissors"], "Subject\n\n# Heading\nas needed\n", "", 4),
    "scissors, verbose": (["--cleanup=scissors", "-v"], "Subject\n\n# Heading\nas needed\n", "", 4),
    "character of one command": (
        [],
        "Subject\n\n; as needed\nas needed\n",
        "core.commentChar=;",
        3,
    ),
    "automatic character": ([], "Subject\n\n# as needed\nas needed\n", "core.commentChar=auto", 3),
    "given": (["-m", "Subject", "-m", "# Heading\nas needed"], None, "", 4),
    "a number that is no comment": (["-m", "#12 is mended", "-m", "as needed"], None, "", 3),
    "verbatim": (["--cleanup=verbatim", "-m", "Subject", "-m", "as needed"], None, "", 3),
    "stripped": (["--cleanup=strip", "-m", "Subject", "-m", "as needed"], None, "", 3),
    "signed off": (["-s", "-m", "Subject", "-m", "as needed"], None, "", 3),
    "edited after being given": (["-e", "-m", "as needed"], "Subject\n\n", "", 3),
}


@pytest.mark.parametrize(("arguments", "typed", "config", "line"), FORMS.values(), ids=FORMS)
def test_the_hook_names_the_line_that_the_commit_will_have(
    session: Session, arguments: list[str], typed: str | None, config: str, line: int
) -> None:
    # What git shows below the message holds vague phrases too, and is no part of it.
    session.repo.stage({"as needed": "best practice\n"})
    assert session.commit(*arguments, typed=typed, config=config) == (0, [f"warning message-vague {line}"])
    assert session.message.splitlines()[line - 1] == "as needed"
    assert "best practice" not in session.message


def test_a_message_from_a_file_and_an_amend(session: Session) -> None:
    session.typed.write_text(f"Subject\n\n# kept\n{VAGUE}\n", encoding="utf-8")
    assert session.commit("-F", str(session.typed)) == (0, ["warning message-vague 4"])
    assert session.commit("--amend", "--no-edit") == (0, ["warning message-vague 4"])
    assert session.commit("--amend", "-m", "Better") == (0, [])
    assert session.commit("--amend", typed="Best\n\n") == (0, [])
    assert session.message == "Best\n\nBetter\n\n"


def test_a_character_that_git_chose_by_itself(session: Session) -> None:
    session.repo.git("config", "core.commentChar", "auto")
    assert session.commit("-m", "Subject", "-m", "# kept\nas needed") == (0, ["warning message-vague 4"])
    # Now a line begins with #, so git takes the next character for its own.
    assert session.commit("--amend", typed="") == (0, ["warning message-vague 4"])
    assert session.commit("--amend", "-v", typed="; as needed\n") == (0, ["warning message-vague 4"])


def test_a_message_without_a_body_that_ends_the_commit_is_left_to_git(strict: Session) -> None:
    assert strict.commit(typed="") == (1, [])
    assert strict.commit("-s", typed="# note\n") == (1, [])
    assert strict.commit("-m", "#12 is mended") == (0, [])


def test_messages_that_git_makes_are_not_refused(strict: Session) -> None:
    repo = strict.repo
    repo.git("switch", "-q", "-c", "side-" + "x" * 90)
    repo.commit({"b": "b\n"}, "Aside." + "x" * 80)
    repo.git("switch", "-q", "main")
    repo.commit({"c": "c\n"}, "Ahead")
    repo.git("merge", "-q", "--no-ff", "--no-edit", "side-" + "x" * 90)
    assert strict.commit("--fixup=HEAD~1") == (0, [])
    repo.git("revert", "--no-edit", "HEAD^^2")
    repo.git("commit", "-q", "--amend", "--no-edit")
    assert strict.message.startswith('Revert "Aside.xxx')


def test_a_squashed_branch_with_bad_subjects_can_be_described_by_its_author(strict: Session) -> None:
    repo = strict.repo
    repo.git("switch", "-q", "-c", "side")
    repo.commit({"b": "b\n"}, "Follow best practices, etc.")
    repo.git("switch", "-q", "main")
    repo.git("merge", "-q", "--squash", "side")
    assert strict.commit("--no-edit") == (0, [])


@pytest.mark.parametrize(
    ("setting", "text", "expected"),
    [
        (("core.commentChar", ";"), "Subject\n\n; as needed\n# as needed\n", []),
        (("core.commentChar", ";"), "Subject\n\n; as needed\nas needed\n", [("message-vague", 3)]),
        (("commit.cleanup", "scissors"), f"Subject\n\n# x\nas needed\n{SCISSORS}\nas needed\n", 4),
        (("commit.cleanup", "whitespace"), "Subject\n\n# x\nas needed\n", 4),
        (("commit.cleanup", "verbatim"), "\n\nSubject\n\n\n\nas needed\n", 7),
        (("commit.cleanup", "strip"), "Subject\n\n# x\nas needed\n", 3),
        (("commit.verbose", "2"), f"Subject\n{SCISSORS}\nas needed\n", []),
        (("commit.verbose", "no"), f"Subject\n\n{SCISSORS}\nas needed\n", 3),
        (("core.commentString", "//"), "Subject\n\n// x\nas needed\n", 4),
        (("i18n.commitEncoding", "ISO-8859-1"), b"\xe9" * 73 + b"\n", [("message-subject-too-long", 1)]),
        (("i18n.commitEncoding", "Shift_JIS"), ("漢" * 72).encode("shift_jis"), []),
        (("core.commentChar", "#"), b"\xef\xbb\xbfSubject\r\n\r\n# as needed\r\nas needed\r\n", 3),
    ],
)
def test_the_config_of_git_is_honoured(
    session: Session, setting: tuple[str, str], text: str | bytes, expected: object
) -> None:
    session.repo.git("config", *setting)
    expected = [("message-vague", expected)] if isinstance(expected, int) else expected
    found = judged(session.repo, text.encode() if isinstance(text, str) else text)
    assert rules(found) == expected


def test_a_comment_string_counts_where_git_knows_the_key(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(room, "_KNOWS_STRINGS", (2, 39))
    text = b"Subject\n\n// as needed\n# as needed\nx\n#as needed\n/ as needed\n"
    session.repo.git("config", "core.commentChar", ";")
    session.repo.git("config", "core.commentString", "//")
    assert rules(judged(session.repo, text)) == [("message-vague", 6)]


def test_the_policy_is_that_of_before_the_commit(strict: Session) -> None:
    strict.repo.stage({"patchgate.toml": '[message]\nlevel = "off"\n'})
    assert strict.commit("-m", VAGUE) == (1, ["error message-vague 1"])
    strict.repo.git("commit", "-q", "-n", "-m", "Let go")
    assert strict.commit("-m", VAGUE) == (0, [])
    assert judged(strict.repo, VAGUE.encode()) == Report(())


def test_the_first_policy_judges_its_own_message(session: Session) -> None:
    session.repo.stage({"pyproject.toml": '[tool.patchgate.message]\nlevel = "error"\n'})
    assert session.commit("-m", VAGUE) == (1, ["error message-vague 1"])
    (change,) = judged(session.repo, VAGUE.encode()).changes
    assert change.policy.origin == "this change:pyproject.toml"


def test_a_first_commit_has_a_message_too(tmp_path: Path) -> None:
    session = Session(tmp_path)
    session.repo.stage({"patchgate.toml": STRICT})
    assert session.commit("-m", VAGUE) == (1, ["error message-vague 1"])
    assert session.commit("-m", "Begin") == (0, [])


def test_a_broken_policy_is_mended_under_its_own(session: Session) -> None:
    session.repo.policy("[message]\nlevel = 3\n")
    with pytest.raises(UndecidedError, match="cannot be read"):
        judged(session.repo, b"Subject\n")
    assert session.commit("-m", "Subject") == (1, [])
    session.repo.stage({"patchgate.toml": STRICT})
    assert session.commit("-m", VAGUE) == (1, ["error message-vague 1"])
    assert session.commit("-m", "Mend the policy") == (0, [])


def test_another_version_does_not_judge(session: Session) -> None:
    session.repo.policy('required_version = ">=99"\n')
    with pytest.raises(UndecidedError, match="requires patchgate"):
        judged(session.repo, b"Subject\n")
    session.repo.policy('required_version = ">=99"\n' + STRICT)
    session.repo.commit({"b": "b\n"}, VAGUE)
    answer = session.repo.check("HEAD")
    assert (answer.verdict, answer.rules) == ("undecided", [])
    assert answer.change["context_gates"][0]["outcome"] == "undecided"


def test_a_single_rule_is_set_by_rules(session: Session) -> None:
    session.repo.policy('[message]\nlevel = "off"\n[rules]\nmessage-vague = "error"\n')
    assert session.commit("-m", VAGUE + ".") == (1, ["error message-vague 1"])
    assert session.commit("-m", "Mend the others.") == (0, [])


def test_where_messages_are_only_observed_the_commit_goes_on(session: Session) -> None:
    session.repo.policy(STRICT + '[hooks]\nmode = "observe"\n')
    assert session.commit("-m", VAGUE) == (0, ["error message-vague 1"])


def test_a_message_that_cannot_be_read_is_told_in_a_sentence(session: Session) -> None:
    repository = open_repository(session.repo.env, str(session.repo.path))
    os.mkfifo(session.repo.path / "pipe")
    for name in ("absent", ".", "a\0b", str(session.repo.path / "absent\x1b")):
        with pytest.raises(UsageError) as told:
            check_message(repository, name)
        assert "\x1b" not in told.value.message
    (change,) = check_message(repository, str(session.repo.path / "pipe")).changes
    assert change.findings == ()


def test_a_message_that_is_too_long_to_read_is_undecided(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(room, "BIG_FILE", 1000)
    monkeypatch.setattr(room, "_MOST_READ", 2000)
    for text in (b"S\n\n" + b"x" * 1000, b"S\n\n" + b"# x\n" * 1000):
        with pytest.raises(UndecidedError):
            judged(session.repo, text)
    diff = f"S\n# x\n#\n{SCISSORS}\n# Do not\n".encode() + b"+ line\n" * 1000
    assert rules(judged(session.repo, diff)) == []


def test_a_good_message_costs_no_pydantic(strict: Session) -> None:
    assert rules(judged(strict.repo, b"Subject\n")) == []
    script = (
        "import os, sys; from patchgate.git.repository import open_repository;"
        "from patchgate.check.commit_message import check_message;"
        "r = check_message(open_repository(os.environ, '.'), 'message');"
        "assert r.verdict == 'accepted' and len(r.changes) == 1;"
        "print([m for m in ('pydantic', 'pygit2', 'click', 'pathspec') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=strict.repo.path,
        env=strict.repo.env,
        capture_output=True,
        check=True,
    )
    assert done.stdout == b"[]\n"


def test_nothing_is_written(strict: Session) -> None:
    judged(strict.repo, b"Subject\n")
    git_dir = strict.repo.path / ".git"

    def state() -> dict[str, tuple[int, bytes]]:
        return {
            str(file): (file.stat().st_mtime_ns, file.read_bytes())
            for file in git_dir.rglob("*")
            if file.is_file()
        }

    before = state()
    judged(strict.repo, VAGUE.encode())
    assert state() == before


def test_commits_that_walked_past_the_hook_are_held_against_the_message_gate(strict: Session) -> None:
    repo = strict.repo
    start = repo.head()
    repo.commit({"b": "b\n"}, "Fine")
    repo.commit({"b": "c\n"}, f"Subject\n\n# as needed\n{VAGUE}")
    repo.git("commit", "-q", "-n", "--allow-empty", "--allow-empty-message", "-m", "")
    answer = repo.check(f"{start}..HEAD")
    assert answer.code == 1
    assert [change["verdict"] for change in answer.changes] == ["accepted", "rejected", "rejected"]
    assert [change["context_gates"][0]["outcome"] for change in answer.changes] == ["pass", "fail", "fail"]
    assert [(row["rule"], row["line"]) for row in answer.findings] == [
        ("message-vague", 4),
        ("message-subject-missing", None),
    ]
    assert answer.changes[1]["code"] == "MESSAGE_REFUSED"
    assert all("message" not in {gate["gate"] for gate in change["gates"]} for change in answer.changes)
    text = repo.cli("check", f"{start}..HEAD").out
    assert " --> message:4\n" in text


def test_the_message_never_enters_the_verdict_id(strict: Session) -> None:
    repo = strict.repo
    repo.commit({"b": "b\n"}, "Fine")
    fine = repo.check("HEAD").change
    repo.git("commit", "-q", "--amend", "-n", "-m", VAGUE)
    vague = repo.check("HEAD").change
    assert (fine["verdict"], vague["verdict"]) == ("accepted", "rejected")
    assert (fine["id"], fine["change_id"]) == (vague["id"], vague["change_id"])


def test_by_default_the_messages_of_commits_are_not_read(session: Session) -> None:
    session.repo.commit({"b": "b\n"}, VAGUE)
    change = session.repo.check("HEAD").change
    assert (change["verdict"], change["findings"], change["context_gates"]) == ("accepted", [], [])


def test_a_policy_judges_the_messages_of_the_commits_after_it(session: Session) -> None:
    repo = session.repo
    start = repo.head()
    repo.commit({"b": "b\n"}, VAGUE)
    repo.commit({"patchgate.toml": '[rules]\nmessage-vague = "error"\n'}, "Set the policy as needed")
    repo.commit({"b": "c\n"}, "Mend it as needed")
    repo.commit({"b": "d\n"}, "Mend it.")
    answer = repo.check(f"{start}..HEAD")
    verdicts = [(change["verdict"], len(change["context_gates"])) for change in answer.changes]
    # The first policy judges its own commit.
    assert verdicts == [("accepted", 0), ("rejected", 1), ("rejected", 1), ("accepted", 1)]
    assert [(row["rule"], row["level"]) for row in answer.changes[3]["findings"]] == [
        ("message-subject-period", "warning")
    ]


def test_what_the_hook_says_is_what_the_push_says(strict: Session) -> None:
    repo = strict.repo
    for text in (
        "Mend it.\nas needed\n\n> as needed\n    as needed\n",
        "x" * 80,
        "Fine\n\n#1 etc.\n\n",
        "A\n\netc.",
    ):
        said = rules(judged(repo, text.encode(), edited=False))
        repo.git("commit", "-q", "-n", "--allow-empty", "-F", "-", stdin=text.encode())
        assert [(row["rule"], row["line"]) for row in repo.check("HEAD").findings] == said


def test_a_commit_in_another_encoding_and_one_with_nul_are_judged(strict: Session) -> None:
    repo = strict.repo
    text = ("漢" * 72 + "\n\nas needed\n").encode("shift_jis")
    repo.git(
        "-c", "i18n.commitEncoding=Shift_JIS", "commit", "-q", "-n", "--allow-empty", "-F", "-", stdin=text
    )
    assert repo.check("HEAD").rules == ["message-vague"]
    raw = repo.git("cat-file", "commit", "HEAD").replace(b"as needed", b"\0 as needed")
    oid = repo.git("hash-object", "-t", "commit", "-w", "--stdin", "--literally", stdin=raw).decode().strip()
    assert repo.check(oid).rules == ["message-vague"]


def test_a_message_too_large_to_read_leaves_the_commit_undecided(
    strict: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(raw: bytes) -> object:
        raise UndecidedError("object 9af3 has 99 bytes, more than 3 are not read")

    strict.repo.commit({"b": "b\n"}, "Fine")
    monkeypatch.setattr(room, "message_of", refuse)
    answer = strict.repo.check("HEAD")
    assert (answer.code, answer.verdict) == (3, "undecided")
    assert answer.change["context_gates"][0]["outcome"] == "undecided"


def test_a_hundred_thousand_lines_are_judged(strict: Session) -> None:
    text = b"Subject\n\n" + b"A line of no interest\n# as needed\n" * 50_000 + b"as needed\n"
    assert rules(judged(strict.repo, text)) == [("message-vague", 50_003)]


def test_the_ref_that_is_trusted_judges_the_message(session: Session) -> None:
    repo = session.repo
    repo.policy(STRICT)
    repo.git("update-ref", "refs/remotes/origin/main", "HEAD")
    repo.policy('[message]\nlevel = "off"\n')
    assert session.commit("-m", VAGUE) == (0, [])
    repo.git("config", "patchgate.trustRef", "refs/remotes/origin/main")
    assert session.commit("-m", VAGUE) == (1, ["error message-vague 1"])
    (change,) = judged(repo, VAGUE.encode()).changes
    assert change.policy.origin == "refs/remotes/origin/main:patchgate.toml"
