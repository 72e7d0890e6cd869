"""The verbs of an intent: who gets which files, what is remembered of the worktree, what a kill leaves."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from patchgate.errors import ConfigError, UndecidedError, UsageError
from patchgate.git.path import RepoPath
from patchgate.git.repository import Repository, open_repository
from patchgate.intents.actions import all_intents, clear, declare, find_intents, recover, renew
from patchgate.intents.declaration import DeclareOptions, format_seconds, parse_seconds
from patchgate.intents.intent import Intent, Moment, State
from patchgate.intents.intent_file import MARKER, add_to_marker, marked_ids
from patchgate.intents.intent_status import Caller, IntentAction, IntentOutcome
from patchgate.intents.stored_intents import StoredIntents, declared_digest, is_alive
from patchgate.ledger.ledger import Ledger
from patchgate.policy.command import analyses_digest
from tests.world import EXECUTABLE, Repo

pytestmark = pytest.mark.turns(3)

BOOT = "0b1c2d3e-0000-4000-8000-000000000000"
ANALYSIS = '[analyses.lint]\ncommand = ["lint", "."]\n'
KILLED = """
import os, sys
from patchgate.intents.stored_intents import StoredIntents, current_moment
from patchgate.intents import actions, queue
from patchgate.intents.intent_status import Caller
from patchgate.intents.declaration import DeclareOptions
from patchgate.git.repository import open_repository

def kill(*_):
    os.kill(os.getpid(), 9)

if sys.argv[1] == "before the mark":
    queue.add_to_marker = kill
elif sys.argv[1] == "before the file":
    StoredIntents.write = kill
else:
    queue.IntentQueue._unmark = kill
caller = Caller(os.environ, current_moment())
repository = open_repository(os.environ, os.getcwd())
if sys.argv[1] == "before the marker goes":
    actions.clear(repository, None, caller)
actions.declare(repository, DeclareOptions("why", ["a"]), caller)
"""


def caller(repo: Repo, seconds: float = 0, **environ: str) -> Caller:
    return Caller(repo.env | environ, Moment(1_700_000_000 + seconds, BOOT, 1000 + seconds))


def opened(repo: Repo, folder: str = "") -> Repository:
    return open_repository(repo.env, str(repo.path / folder))


def declared(
    repo: Repo,
    *allowed: str,
    seconds: float = 0,
    queue: bool = False,
    lease: str | None = None,
    **environ: str,
) -> IntentOutcome:
    request = DeclareOptions("the work is due", allowed, queue=queue, lease=lease)
    return declare(opened(repo), request, caller(repo, seconds, **environ))


def intent_in(outcome: IntentOutcome) -> Intent:
    assert outcome.intent is not None
    return outcome.intent


def stored(repo: Repo) -> tuple[Intent, ...]:
    return StoredIntents(opened(repo).common_dir).all()


def actions(repo: Repo) -> list[object]:
    return [event.about["action"] for event in Ledger(opened(repo).common_dir).events()]


def ended() -> str:
    """Give the id of a process that has ended, once it was the owner of something."""
    with subprocess.Popen([sys.executable, "-c", ""]) as child:
        child.wait()
    return str(child.pid)


class Owner:
    """A process that owns an intent until it is told to end."""

    def __enter__(self) -> Owner:
        self._child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
        self.pid = str(self._child.pid)
        return self

    def __exit__(self, *_: object) -> None:
        self._child.communicate(b"\n")


def worktree(repo: Repo, folder: Path, name: str = "other") -> Repo:
    repo.git("worktree", "add", "-q", "-b", name, str(folder / name))
    return repo.at(folder / name)


def quiet(folder: Path, files: Sequence[str] = ("a", "b")) -> Repo:
    repo = Repo.create(folder)
    repo.commit(dict.fromkeys(files, "text\n"), "Begin")
    return repo


def test_an_intent_is_stored_with_what_was_there_and_on_record(tmp_path: Path) -> None:
    repo = quiet(tmp_path)
    head = repo.policy(ANALYSIS)
    repo.write("b", "dirty\n")
    place = repo.path / ".git" / "patchgate-pending"
    place.write_bytes(b"what an earlier hook left")
    request = DeclareOptions(" the work is due ", ["a"], ["tests/new"], ["lib/*"], "2h", "90s")
    intent = intent_in(declare(opened(repo), request, caller(repo)))
    assert (intent.reason, intent.ttl, intent.lease, intent.state) == (
        "the work is due",
        7200,
        90,
        State.ACTIVE,
    )
    assert [path.raw for path in intent.scope.allowed] == [b"a"]
    assert [path.raw for path in intent.scope.related] == [b"tests/new"]
    assert [path.raw for path in intent.scope.forbidden] == [b"lib/*"]
    assert (intent.base, intent.tree) == (head, repo.ask("rev-parse", "HEAD^{tree}"))
    assert dict(intent.dirty) == {RepoPath(b"b"): (repo.ask("hash-object", "b"),)}
    assert (intent.git_dir, intent.work_tree) == (str(repo.path / ".git"), str(repo.path))
    assert intent.analyses not in {"", analyses_digest({})}
    assert (intent.declared, intent.seen) == (caller(repo).now, caller(repo).now)
    assert stored(repo) == (intent,)
    assert marked_ids(str(repo.path / ".git")) == (intent.id,)
    assert declared_digest(Ledger(str(repo.path / ".git")), intent.id) == intent.digest
    assert not place.exists()


def test_an_unborn_branch_and_a_repository_without_analyses_can_have_an_intent(tmp_path: Path) -> None:
    repo = Repo.create(tmp_path)
    repo.write("new")
    intent = intent_in(declared(repo, "a"))
    assert (intent.base, intent.analyses) == (None, analyses_digest({}))
    assert intent.tree == repo.ask("hash-object", "-t", "tree", "/dev/null")
    assert list(intent.dirty) == [RepoPath(b"new")]


def test_dirty_files_are_remembered_as_they_would_be_committed(tmp_path: Path) -> None:
    """Names with quotes, arrows and non-ASCII; untracked folders; deletions; line ends; what is ignored."""
    repo = Repo.create(tmp_path)
    odd = ['q"uo\\te', "a -> b", "naïve é", " space ", "tab\there", "crlf.txt", "gone", "kept", "mode"]
    repo.write(".gitattributes", "*.txt text eol=crlf\n")
    repo.write(".gitignore", "*.log\n")
    repo.commit(dict.fromkeys(odd, "text\n"), "Begin")
    for name in odd[:6]:
        repo.write(name, "changed\r\n")
    repo.write(b"bad \xff name", "new\n")
    repo.write("new/deep/one", "1\n")
    repo.write("new/two", "2\n")
    repo.write("new/x.log", "no\n")
    repo.write("mode", "text\n", executable=True)
    (repo.path / "gone").unlink()
    repo.link("link", "kept")
    intent = intent_in(declared(repo, "kept"))
    aside = str(tmp_path / "index")
    repo.git("read-tree", "HEAD", GIT_INDEX_FILE=aside)
    repo.git("add", "-A", GIT_INDEX_FILE=aside)
    raw = repo.git("diff-index", "--cached", "-z", "--no-abbrev", "HEAD", GIT_INDEX_FILE=aside).split(b"\0")
    oracle = {
        RepoPath(name): (None if about.endswith(b" D") else about.split()[3].decode("ascii"),)
        for about, name in zip(raw[:-1:2], raw[1::2], strict=True)
    }
    assert dict(intent.dirty) == oracle
    assert oracle[RepoPath(b"gone")] == (None,)
    assert {RepoPath(b"new/deep/one"), RepoPath(b"new/two"), RepoPath(b"bad \xff name")} <= oracle.keys()
    assert stored(repo) == (intent,)


def test_what_is_staged_is_dirty_also_where_the_working_tree_is_as_head(tmp_path: Path) -> None:
    repo = quiet(tmp_path)
    repo.stage({"a": "staged\n", "b": "staged\n"})
    staged = repo.ask("rev-parse", ":a")
    repo.write("a", "text\n")
    repo.write("b", "later\n")
    dirty = intent_in(declared(repo, "a")).dirty
    assert dirty == {RepoPath(b"a"): (staged,), RepoPath(b"b"): (staged, repo.ask("hash-object", "b"))}


def test_declaring_changes_neither_index_nor_objects_nor_files(tmp_path: Path) -> None:
    repo = quiet(tmp_path)
    repo.write("new/file", "untracked\n")

    def state() -> list[object]:
        objects = sorted(str(each) for each in (repo.path / ".git" / "objects").rglob("*"))
        return [objects, (repo.path / ".git" / "index").read_bytes(), repo.git("status", "--porcelain")]

    before = state()
    assert declared(repo, "a").exit_code == 0
    assert state() == before


def test_entries_are_relative_to_where_one_stands(tmp_path: Path) -> None:
    repo = quiet(tmp_path, ["src/a", "b"])
    request = DeclareOptions("the work is due", ["a", "./a", "new"], [".//a", "x"])
    scope = intent_in(declare(opened(repo, "src"), request, caller(repo))).scope
    assert [path.raw for path in scope.allowed] == [b"src/a", b"src/new"]
    assert [path.raw for path in scope.related] == [b"src/x"]


@pytest.mark.parametrize(
    ("request_", "said"),
    [
        (DeclareOptions("", ["a"]), "needs"),
        (DeclareOptions(" \n", ["a"]), "needs"),
        (DeclareOptions("two\nlines", ["a"]), "one line"),
        (DeclareOptions("\x1b[31mred", ["a"]), "unprintable"),
        (DeclareOptions("x" * 1001, ["a"]), "1000 characters"),
        (DeclareOptions("due", []), "at least one"),
        (DeclareOptions("due", [], ["a"]), "at least one"),
        (DeclareOptions("due", ["/etc/passwd"]), "absolute"),
        (DeclareOptions("due", ["../a"]), "has \\.\\."),
        (DeclareOptions("due", ["src/../a"]), "has \\.\\."),
        (DeclareOptions("due", ["a"], ["src/../../a"]), "has \\.\\."),
        (DeclareOptions("due", ["a"], [], [".."]), "has \\.\\."),
        (DeclareOptions("due", [".git/config"]), "belongs"),
        (DeclareOptions("due", ["a"], ["src/.GIT/hooks/x"]), "belongs"),
        (DeclareOptions("due", [".patchgate/"]), "control file"),
        (DeclareOptions("due", ["a"], ["src/.git/"]), "belongs"),
        (DeclareOptions("due", ["src"], [], ["src/"]), "both"),
        (DeclareOptions("due", ["patchgate.toml"]), "control file"),
        (DeclareOptions("due", ["a"], [".patchgate/allowed_signers"]), "control file"),
        (DeclareOptions("due", ["src/x"], [], ["src/*"]), "both"),
        (DeclareOptions("due", ["a"] * 1001), "at most 1000"),
        (DeclareOptions("due", ["a"], ttl="59s"), "--ttl .*bounds"),
        (DeclareOptions("due", ["a"], ttl="25h"), "--ttl .*bounds"),
        (DeclareOptions("due", ["a"], lease="0s"), "--lease .*bounds"),
        (DeclareOptions("due", ["a"], ttl="1m", lease="2m"), "--lease .*bounds"),
        (DeclareOptions("due", ["a"], ttl="3600"), "--ttl .*time"),
    ],
)
def test_what_cannot_stand_is_refused_and_nothing_is_made(
    tmp_path: Path, request_: DeclareOptions, said: str
) -> None:
    repo = quiet(tmp_path, ["a", "src/x"])
    repo.write("new/file")
    with pytest.raises(UsageError, match=said) as refused:
        declare(opened(repo), request_, caller(repo))
    assert refused.value.hint
    assert not (repo.path / ".git" / "patchgate" / "intents").exists()
    assert not (repo.path / ".git" / MARKER).exists()


@pytest.mark.parametrize(
    "text", ["", "1", "1d", "-1m", "+1m", "1.5h", "1 h", "1H", "²m", "٣m", "99999999s", "h", "1h\n"]
)
def test_what_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match=r"--ttl .*time"):
        parse_seconds(text, "--ttl", 0, 10**9)


def test_times_are_read_as_they_are_told() -> None:
    for text, seconds in (("90s", 90), ("15m", 900), ("1h", 3600), ("24h", 86400), ("61s", 61)):
        assert (parse_seconds(text, "--ttl", 60, 86400), format_seconds(seconds)) == (seconds, text)
    assert (parse_seconds("60s", "--ttl", 60, 86400), format_seconds(60)) == (60, "1m")


def test_the_lease_is_never_longer_than_the_time(tmp_path: Path) -> None:
    repo = quiet(tmp_path)
    intent = intent_in(declare(opened(repo), DeclareOptions("due now", ["a"], ttl="1m"), caller(repo)))
    assert (intent.ttl, intent.lease) == (60, 60)


def test_a_submodule_is_a_file_to_an_intent(tmp_path: Path) -> None:
    repo = quiet(tmp_path)
    repo.gitlink("sub")
    repo.git("commit", "-q", "-m", "Add it")
    (repo.path / "sub").mkdir(exist_ok=True)
    inner = repo.at(repo.path / "inner")
    inner.path.mkdir()
    inner.git("init", "-q", "-b", "main")
    inner.commit({"x": "1\n"})
    assert declared(repo, "sub", "inner").exit_code == 0


def test_a_vague_reason_is_told_and_stands(tmp_path: Path) -> None:
    repo = quiet(tmp_path)
    repo.install()
    outcome = declare(opened(repo), DeclareOptions("Properly handle it, etc.", ["a"]), caller(repo))
    assert (outcome.exit_code, len(outcome.warnings)) == (0, 2)
    assert declared(repo, "b").warnings == ()


def test_more_files_than_one_commit_may_touch_are_told(tmp_path: Path) -> None:
    repo = quiet(tmp_path)
    assert not any("one commit" in each for each in declared(repo, *"abcde").warnings)
    (said,) = (each for each in declared(repo, *"ghijkl").warnings if "one commit" in each)
    assert said.startswith("6 files ")
    assert " 5 files" in said
    repo.policy("[policy.agent]\nmax_files = 7\n")
    assert not any("one commit" in each for each in declared(repo, *"mnopqrs").warnings)


def test_a_folder_is_an_entry_by_its_name_with_or_without_a_slash(tmp_path: Path) -> None:
    repo = quiet(tmp_path, ["src/a", "b"])
    (repo.path / "empty").mkdir()
    request = DeclareOptions("the work is due", ["src", "empty/", "later/"], ["b"], ["src/no"])
    scope = intent_in(declare(opened(repo), request, caller(repo))).scope
    assert [path.raw for path in scope.allowed] == [b"src/", b"empty/", b"later/"]
    assert ([each.raw for each in scope.related], [each.raw for each in scope.forbidden]) == (
        [b"b"],
        [b"src/no"],
    )
    clear(opened(repo), None, caller(repo))
    # Where one stands is a folder too; the root of the repository is everything.
    whole = intent_in(declare(opened(repo, "src"), DeclareOptions("due now", ["."]), caller(repo))).scope
    assert [path.raw for path in whole.allowed] == [b"src/"]
    clear(opened(repo), None, caller(repo))
    whole = intent_in(declare(opened(repo), DeclareOptions("due now", ["./"]), caller(repo))).scope
    assert [path.raw for path in whole.allowed] == [b"*"]


def test_a_glob_that_takes_other_files_than_one_would_think_is_told(tmp_path: Path) -> None:
    repo = quiet(tmp_path, ["src/a.py", "src/deep/a.py", "pages/[id].tsx", "app/[x].tsx", "app/x.tsx"])
    repo.install()
    assert declared(repo, "src/*.py").warnings == ()
    assert declared(repo, "pages/[id].tsx").warnings == ()
    (warning,) = declared(repo, "app/[x].tsx").warnings
    assert warning.startswith("app/[x].tsx ")
    assert "1 other file (app/x.tsx)" in warning
    (warning,) = declared(repo, "lib/*").warnings
    assert warning.startswith("lib/* matches no file")
    for odd in ("x[", "x[z-a]", "x[!", "x[]"):
        assert declared(repo, odd).exit_code == 0


def test_two_intents_that_could_take_one_file_are_in_conflict(tmp_path: Path) -> None:
    repo = quiet(tmp_path, ["src/a.py"])
    declared(repo, "src/*.py")
    for entry in ("src/a.py", "src/", "src/a*", "src", "*", "src/new/b.py"):
        assert declared(repo, entry, seconds=1).action is IntentAction.REFUSED, entry
    for entry in ("src/a.md", "docs/", "src2/a.py", "src/*.rst"):
        assert declared(repo, entry, seconds=1).action is IntentAction.DECLARED, entry


def test_a_policy_of_head_that_cannot_be_used_ends_the_declaration(tmp_path: Path) -> None:
    repo = quiet(tmp_path)
    repo.policy("[analyses\n")
    with pytest.raises(ConfigError):
        declared(repo, "a")
    assert stored(repo) == ()


def test_a_bare_repository_has_no_intents(tmp_path: Path) -> None:
    repo = Repo.create(tmp_path, "--bare")
    with pytest.raises(UsageError, match="working tree"):
        declared(repo, "a")


def test_a_file_that_another_has_is_refused_and_whoever_has_it_is_named(tmp_path: Path) -> None:
    repo = quiet(tmp_path)
    other = worktree(repo, tmp_path)
    first = intent_in(declared(repo, "a", "src/*.py"))
    for allowed, entries in ((["a", "c"], [b"a"]), (["src/deep/x.py"], [b"src/deep/x.py"]), (["?"], [b"?"])):
        refused = declared(other, *allowed)
        assert (refused.action, refused.exit_code, refused.intent) == (IntentAction.REFUSED, 1, None)
        (conflict,) = refused.conflicts
        assert (conflict.intent, [each.raw for each in conflict.entries]) == (first, entries)
        assert refused.reason
        assert refused.hint
    assert not (other.path / MARKER).exists()
    related = declare(opened(other), DeclareOptions("due now", ["c"], ["a"]), caller(other))
    assert related.action is IntentAction.REFUSED
    assert declared(other, "c").action is IntentAction.DECLARED
    assert declared(repo, "d").action is IntentAction.DECLARED
    assert len(stored(repo)) == 3


def test_a_queued_intent_becomes_active_with_the_base_of_its_declaration_once_its_files_are_free(
    tmp_path: Path,
) -> None:
    repo = quiet(tmp_path)
    other = worktree(repo, tmp_path)
    first = intent_in(declared(repo, "a"))
    waiting = declared(other, "a", "x", seconds=10, queue=True)
    queued = intent_in(waiting)
    assert (waiting.action, waiting.exit_code, queued.state) == (IntentAction.QUEUED, 0, State.QUEUED)
    assert marked_ids(queued.git_dir) == (queued.id,)
    # Nobody has to wait for one that waits itself.
    assert intent_in(declared(repo, "x", seconds=20)).state is State.ACTIVE
    other.commit({"b": "made meanwhile\n"})
    other.write("b", "dirty\n")
    pending = Path(queued.git_dir, "patchgate-pending")
    pending.write_bytes(b"left by a hook")
    done = clear(opened(repo), first.id, caller(repo, 50))
    assert (done.action, done.promoted) == (IntentAction.CLEARED, ())
    done = clear(opened(repo), None, caller(repo, 100))
    (promoted,) = done.promoted
    assert (promoted.id, promoted.state) == (queued.id, State.ACTIVE)
    assert (promoted.base, promoted.tree, promoted.dirty) == (queued.base, queued.tree, {})
    assert promoted.seconds_left(caller(repo, 100).now) == 3600
    assert stored(repo) == (promoted,)
    assert declared_digest(Ledger(str(repo.path / ".git")), promoted.id) == promoted.digest == queued.digest
    assert not (repo.path / ".git" / MARKER).exists()
    assert not pending.exists()
    assert actions(repo) == ["declared", "declared", "declared", "cleared", "cleared", "promoted"]


def test_of_those_that_wait_for_one_file_the_oldest_is_next(tmp_path: Path) -> None:
    repo = quiet(tmp_path)
    first = intent_in(declared(repo, "a", "b"))
    older, newer, beside = (
        intent_in(declared(repo, name, seconds=10 + number, queue=True)) for number, name in enumerate("aab")
    )
    done = clear(opened(repo), first.id, caller(repo, 20))
    assert [each.id for each in done.promoted] == [older.id, beside.id]
    done = clear(opened(repo), older.id, caller(repo, 30))
    assert [each.id for each in done.promoted] == [newer.id]


def test_one_that_waits_is_promoted_when_what_stood_in_its_way_is_over(tmp_path: Path) -> None:
    repo = quiet(tmp_path)
    declared(repo, "a")
    waiting = intent_in(declared(repo, "a", seconds=3000, queue=True))
    assert (
        renew(
            opened(repo),
            waiting.id,
            caller(
                repo,
                3100,
            ),
        ).promoted
        == ()
    )
    done = renew(opened(repo), waiting.id, caller(repo, 4000))
    assert (intent_in(done).state, [each.id for each in done.promoted]) == (State.ACTIVE, [waiting.id])
    # Whoever declares now comes after it.
    assert declared(repo, "a", seconds=4001).action is IntentAction.REFUSED


def test_whoever_declares_comes_after_those_that_wait_for_what_is_over(tmp_path: Path) -> None:
    repo = quiet(tmp_path)
    declared(repo, "a")
    waiting = intent_in(declared(repo, "a", seconds=3000, queue=True))
    late = declared(repo, "a", seconds=4000)
    assert (late.action, [each.id for each in late.promoted]) == (IntentAction.REFUSED, [waiting.id])
    assert [each.intent.id for each in late.conflicts] == [waiting.id]


def test_one_that_waits_too_long_or_without_a_worktree_is_not_promoted(tmp_path: Path) -> None:
    repo = quiet(tmp_path)
    other = worktree(repo, tmp_path)
    first = intent_in(declared(repo, "a", "b"))
    declared(repo, "a", queue=True)
    gone = intent_in(declared(other, "b", seconds=3000, queue=True))
    repo.git("worktree", "remove", "--force", str(other.path))
    repo.git("worktree", "add", "-q", str(other.path), "other")
    done = clear(opened(repo), first.id, caller(repo, 3700))
    assert (done.promoted, done.warnings) == ((), ())
    assert [each.state for each in stored(repo)] == [State.QUEUED, State.QUEUED]
    assert gone in stored(repo)


def test_an_activity_in_its_worktree_keeps_an_intent_alive(tmp_path: Path) -> None:
    repo = quiet(tmp_path)
    other = worktree(repo, tmp_path)
    declared(repo, "a", PATCHGATE_OWNER=str(os.getpid()))
    with Owner() as owner:
        declared(other, "b", seconds=1, PATCHGATE_OWNER=owner.pid)
    assert [each.id for each in find_intents(opened(other), None, caller(repo, 290))] == [stored(repo)[1].id]
    theirs = stored(repo)[1]
    assert (is_alive(theirs, caller(repo, 589).now), is_alive(theirs, caller(repo, 591).now)) == (True, False)
    # To look at it from elsewhere is none.
    all_intents(opened(repo))
    find_intents(opened(repo), theirs.id, caller(repo, 400))
    assert stored(repo)[1] == theirs


def test_to_renew_begins_the_time_anew_and_what_is_over_is_not_renewed(tmp_path: Path) -> None:
    repo = quiet(tmp_path)
    intent = intent_in(declared(repo, "a"))
    done = renew(opened(repo), None, caller(repo, 3599))
    renewed = intent_in(done)
    assert (done.action, renewed.seconds_left(caller(repo, 3600).now)) == (IntentAction.RENEWED, 3599)
    assert (renewed.digest, renewed.declared, renewed.base) == (intent.digest, intent.declared, intent.base)
    assert stored(repo) == (renewed,)
    refused = renew(opened(repo), intent.id, caller(repo, 7199))
    assert (refused.action, refused.exit_code, stored(repo)) == (IntentAction.REFUSED, 1, (renewed,))
    assert f"intent recover {intent.id}" in (refused.hint or "")
    # A clock that goes back, after a boot at which nobody knows for how long.
    early = replace(caller(repo), now=Moment(1_600_000_000, "", 0))
    assert renew(opened(repo), intent.id, early).action is IntentAction.REFUSED
    assert actions(repo) == ["declared", "renewed"]


def test_one_whose_time_is_over_is_taken_over_with_a_new_time_and_owner(tmp_path: Path) -> None:
    repo = quiet(tmp_path)
    with Owner() as owner:
        intent = intent_in(declared(repo, "a", PATCHGATE_OWNER=owner.pid))
        assert (intent.owner.pid if intent.owner else None) == int(owner.pid)
        assert recover(opened(repo), intent.id, caller(repo, 3599)).action is IntentAction.REFUSED
        repo.commit({"a": "work\n"})
        done = recover(opened(repo), intent.id, caller(repo, 3600, PATCHGATE_OWNER=str(os.getpid())))
    taken = intent_in(done)
    assert (done.action, taken.state, taken.digest) == (IntentAction.RECOVERED, State.ACTIVE, intent.digest)
    assert (taken.owner.pid if taken.owner else None) == os.getpid()
    assert taken.seconds_left(caller(repo, 3600).now) == 3600
    assert stored(repo) == (taken,)
    assert declared_digest(Ledger(str(repo.path / ".git")), intent.id) == intent.digest


def test_one_is_dead_when_its_owner_has_ended_and_its_lease_is_over(tmp_path: Path) -> None:
    repo = quiet(tmp_path)
    with Owner() as owner:
        intent = intent_in(declared(repo, "a", PATCHGATE_OWNER=owner.pid))
        refused = recover(opened(repo), intent.id, caller(repo, 301))
        assert (refused.action, refused.exit_code) == (IntentAction.REFUSED, 1)
        assert declared(repo, "a", seconds=301).action is IntentAction.REFUSED
    assert recover(opened(repo), intent.id, caller(repo, 300)).action is IntentAction.REFUSED
    assert declared(repo, "a", seconds=300).action is IntentAction.REFUSED
    assert recover(opened(repo), intent.id, caller(repo, 301)).action is IntentAction.RECOVERED


def test_a_dead_one_stands_in_nobodys_way_and_does_not_come_back_while_another_has_its_files(
    tmp_path: Path,
) -> None:
    repo = quiet(tmp_path)
    repo.install()
    dead = intent_in(declared(repo, "a", "b"))
    outcome = declared(repo, "a", seconds=3700)
    assert (outcome.action, len(outcome.warnings)) == (IntentAction.DECLARED, 1)
    assert dead.id in outcome.warnings[0]
    refused = recover(opened(repo), dead.id, caller(repo, 3701))
    assert (refused.action, [each.intent for each in refused.conflicts]) == (
        IntentAction.REFUSED,
        [outcome.intent],
    )
    clear(opened(repo), intent_in(outcome).id, caller(repo, 3702))
    assert recover(opened(repo), dead.id, caller(repo, 3703)).action is IntentAction.RECOVERED


def test_one_that_waited_is_recovered_with_the_base_of_its_declaration(tmp_path: Path) -> None:
    repo = quiet(tmp_path)
    declared(repo, "a")
    waiting = intent_in(declared(repo, "a", queue=True))
    assert recover(opened(repo), waiting.id, caller(repo, 3599)).action is IntentAction.REFUSED
    repo.commit({"b": "later\n"})
    done = intent_in(recover(opened(repo), waiting.id, caller(repo, 3700)))
    assert (done.state, done.base, done.tree) == (State.ACTIVE, waiting.base, waiting.tree)
    assert declared_digest(Ledger(str(repo.path / ".git")), done.id) == done.digest


def test_work_of_a_worktree_that_is_gone_comes_here_and_other_work_stays(tmp_path: Path) -> None:
    repo = quiet(tmp_path)
    gone, there = worktree(repo, tmp_path), worktree(repo, tmp_path, "there")
    lost, kept = intent_in(declared(gone, "a")), intent_in(declared(there, "b"))
    repo.git("worktree", "remove", str(gone.path))
    repo.write("c", "mine\n")
    moved = intent_in(recover(opened(repo), lost.id, caller(repo, 3700)))
    assert (moved.work_tree, moved.git_dir) == (str(repo.path), str(repo.path / ".git"))
    assert (moved.base, moved.tree, dict(moved.dirty)) == (
        lost.base,
        lost.tree,
        {RepoPath(b"c"): (repo.ask("hash-object", "c"),)},
    )
    assert moved.digest != lost.digest
    assert declared_digest(Ledger(str(repo.path / ".git")), moved.id) == moved.digest
    stays = intent_in(recover(opened(repo), kept.id, caller(repo, 3700)))
    assert (stays.git_dir, stays.digest) == (kept.git_dir, kept.digest)
    assert find_intents(opened(repo), None, caller(repo, 3701)) == (moved,)
    assert find_intents(opened(there), None, caller(repo, 3701)) == (stays,)


def test_a_worktree_made_anew_under_an_old_name_has_no_intent(tmp_path: Path) -> None:
    repo = quiet(tmp_path)
    other = worktree(repo, tmp_path)
    lost = intent_in(declared(other, "a"))
    repo.git("worktree", "remove", str(other.path))
    repo.git("worktree", "add", "-q", str(other.path), "other")
    assert opened(other).git_dir == lost.git_dir
    assert find_intents(opened(other), None, caller(repo)) == ()
    with pytest.raises(UsageError, match="no intent"):
        clear(opened(other), None, caller(repo))
    taken = intent_in(recover(opened(repo), lost.id, caller(repo, 3700)))
    assert taken.git_dir == str(repo.path / ".git")
    assert clear(opened(repo), None, caller(repo, 3701)).intent == taken
    assert stored(repo) == ()


def test_without_an_id_the_active_one_of_this_worktree_is_meant(tmp_path: Path) -> None:
    repo = quiet(tmp_path)
    other = worktree(repo, tmp_path)
    with pytest.raises(UsageError, match="no intent"):
        renew(opened(repo), None, caller(repo))
    with pytest.raises(UsageError, match="i-00000000"):
        clear(opened(repo), "i-00000000", caller(repo))
    with pytest.raises(UsageError, match="unknown"):
        recover(opened(repo), "../../x", caller(repo))
    first = intent_in(declared(repo, "a"))
    waiting = intent_in(declared(repo, "a", queue=True))
    declared(other, "c")
    assert intent_in(renew(opened(repo), None, caller(repo, 1))).id == first.id
    second = intent_in(declared(repo, "b", seconds=2))
    with pytest.raises(UsageError, match="several") as several:
        clear(opened(repo), None, caller(repo, 2))
    assert first.id in (several.value.hint or "")
    assert waiting.id not in (several.value.hint or "")
    clear(opened(repo), second.id, caller(repo, 3))
    assert intent_in(clear(opened(repo), None, caller(repo, 4))).id == first.id


def test_another_worktrees_intent_is_cleared_by_its_id_and_told_to_be_alive(tmp_path: Path) -> None:
    repo = quiet(tmp_path)
    other = worktree(repo, tmp_path)
    intent = intent_in(declared(other, "a"))
    done = clear(opened(repo), intent.id, caller(repo, 1))
    assert (done.exit_code, stored(repo), marked_ids(intent.git_dir)) == (0, (), ())
    assert str(other.path) in done.warnings[0]


def test_a_damaged_intent_stops_declarations_and_can_be_cleared(tmp_path: Path) -> None:
    repo = quiet(tmp_path)
    broken = intent_in(declared(repo, "a"))
    other = worktree(repo, tmp_path)
    whole = intent_in(declared(other, "b"))
    waiting = intent_in(declared(other, "a", seconds=1, queue=True))
    place = repo.path / ".git" / "patchgate" / "intents" / f"{broken.id}.json"
    place.write_bytes(place.read_bytes().replace(b"src", b"lib").replace(b"due", b"new"))
    for call in (
        lambda: declared(repo, "c"),
        lambda: find_intents(opened(repo), None, caller(repo)),
        lambda: clear(opened(repo), None, caller(repo)),
    ):
        with pytest.raises(UndecidedError, match=broken.id):
            call()
    found, damaged = all_intents(opened(repo))
    assert (found, len(damaged)) == ((whole, waiting), 1)
    # What is whole can be changed all the same; nobody is promoted past what nobody can read.
    done = clear(opened(other), whole.id, caller(repo, 1))
    assert (done.exit_code, done.promoted, len(done.warnings)) == (0, (), 1)
    done = clear(opened(other), broken.id, caller(repo, 2))
    assert (done.intent, [each.id for each in done.promoted]) == (None, [waiting.id])
    assert broken.id in done.warnings[0]
    assert not (repo.path / ".git" / MARKER).exists()
    assert not place.exists()


def test_nothing_is_declared_that_cannot_be_recorded(tmp_path: Path) -> None:
    repo = quiet(tmp_path)
    (repo.path / ".git" / "patchgate" / "events.jsonl").mkdir(parents=True)
    with pytest.raises(UndecidedError):
        declared(repo, "a")
    assert stored(repo) == ()
    assert not (repo.path / ".git" / MARKER).exists()


def test_an_intent_that_cannot_be_written_leaves_no_marker(tmp_path: Path) -> None:
    repo = quiet(tmp_path)
    folder = repo.path / ".git" / "patchgate"
    folder.mkdir()
    (folder / "intents").write_text("in the way")
    with pytest.raises(UndecidedError, match="changed") as refused:
        declared(repo, "a")
    assert refused.value.hint
    assert not (repo.path / ".git" / MARKER).exists()


def test_an_intent_that_would_be_too_long_leaves_no_marker(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repo = quiet(tmp_path)
    monkeypatch.setattr("patchgate.intents.stored_intents.MOST_BYTES", 10)
    with pytest.raises(UndecidedError, match="are dirty"):
        declared(repo, "a")
    assert stored(repo) == ()
    assert not (repo.path / ".git" / MARKER).exists()


@pytest.mark.parametrize(
    ("when", "is_marked", "count"),
    [("before the mark", False, 0), ("before the file", True, 0), ("before the marker goes", True, 0)],
)
def test_a_kill_in_between_leaves_no_half_of_an_intent(
    tmp_path: Path, when: str, is_marked: bool, count: int
) -> None:
    repo = quiet(tmp_path)
    if when == "before the marker goes":
        declared(repo, "a")
    argv = [sys.executable, "-c", KILLED, when]
    done = subprocess.run(argv, cwd=repo.path, env=repo.env | {"PYTHONPATH": str(Path.cwd())}, check=False)
    assert done.returncode == -9
    git_dir = repo.path / ".git"
    assert ((git_dir / MARKER).exists(), len(stored(repo))) == (is_marked, count)
    assert find_intents(opened(repo), None, caller(repo)) == ()
    again = declared(repo, "a")
    assert again.action is IntentAction.DECLARED
    assert find_intents(opened(repo), None, caller(repo)) == (again.intent,)
    assert clear(opened(repo), None, caller(repo)).exit_code == 0
    assert stored(repo) == ()


def test_the_marker_of_a_killed_declaration_goes_with_the_next_verb(tmp_path: Path) -> None:
    repo = quiet(tmp_path)
    add_to_marker(str(repo.path / ".git"), "i-00000000")
    with pytest.raises(UsageError, match="no intent"):
        clear(opened(repo), None, caller(repo))
    assert not (repo.path / ".git" / MARKER).exists()
    add_to_marker(str(repo.path / ".git"), "i-00000000")
    intent = intent_in(declared(repo, "a"))
    assert marked_ids(str(repo.path / ".git")) == (intent.id,)


def test_of_several_at_once_one_gets_the_file(tmp_path: Path) -> None:
    repo = quiet(tmp_path)
    worktrees = [repo, *(worktree(repo, tmp_path, f"w{number}") for number in range(3))]
    argv = [str(EXECUTABLE), "intent", "declare", "-m", "the work is due", "--allow", "a"]
    children = [
        subprocess.Popen(argv, cwd=each.path, env=each.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for each in worktrees
    ]
    for child in children:
        child.communicate()
    assert sorted(child.returncode for child in children) == [0, 1, 1, 1]
    assert len(stored(repo)) == 1


def test_one_who_looked_at_the_clock_before_another_was_faster_sees_its_intent(tmp_path: Path) -> None:
    repo = quiet(tmp_path)
    declared(repo, "a", seconds=10)
    assert declared(repo, "a", seconds=1).action is IntentAction.REFUSED
    early = replace(caller(repo), now=Moment(caller(repo).now.wall, "", 0))
    assert declare(opened(repo), DeclareOptions("due now", ["a"]), early).action is IntentAction.REFUSED


def test_the_holder_is_who_called_git_not_git(tmp_path: Path) -> None:
    repo = quiet(tmp_path)
    script = 'echo $$; git patchgate intent declare -m "the work is due" --allow a >&2; true'
    done = subprocess.run(["sh", "-c", script], cwd=repo.path, env=repo.env, capture_output=True, check=True)
    (intent,) = stored(repo)
    assert intent.owner is not None
    assert intent.owner.pid == int(done.stdout)


@pytest.mark.parametrize("owner", ["x", "0", "-1", "²", "9" * 30, "gone"])
def test_an_owner_that_does_not_run_is_refused(tmp_path: Path, owner: str) -> None:
    repo = quiet(tmp_path)
    with pytest.raises(UsageError, match="running"):
        declared(repo, "a", PATCHGATE_OWNER=ended() if owner == "gone" else owner)
    assert stored(repo) == ()


def test_where_no_hook_holds_commits_to_an_intent_it_is_said(tmp_path: Path) -> None:
    repo = quiet(tmp_path, ["a", "b", "c", "d", "e", "f"])
    (said,) = declared(repo, "a").warnings
    assert said.endswith(": git patchgate install")
    repo.install()
    assert declared(repo, "b").warnings == ()
    # Refused, it holds nothing anyway.
    environ = {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "core.hooksPath", "GIT_CONFIG_VALUE_0": "/none"}

    def elsewhere(name: str) -> IntentOutcome:
        return declare(opened(repo), DeclareOptions("the work is due", [name]), caller(repo, 0, **environ))

    assert elsewhere("b").warnings == ()
    assert elsewhere("c").warnings == (said,)
    hooks = repo.path / ".git" / "hooks"
    (hooks / "commit-msg").rename(hooks / "commit-msg.legacy")
    assert declared(repo, "d").warnings == (said,)
    (hooks / "commit-msg").write_text("#!/bin/sh\n# File generated by pre-commit: https://pre-commit.com\n")
    (hooks / "commit-msg").chmod(0o755)
    assert declared(repo, "e").warnings == ()
    (hooks / "reference-transaction").chmod(0o644)
    assert declared(repo, "f").warnings == (said,)


def test_a_worktree_with_hooks_of_its_own_is_looked_at_by_itself(tmp_path: Path) -> None:
    repo = quiet(tmp_path)
    repo.install()
    other = worktree(repo, tmp_path)
    repo.git("config", "extensions.worktreeConfig", "true")
    other.git("config", "--worktree", "core.hooksPath", "/dev/null")
    assert declared(other, "a").warnings != ()
    assert declared(repo, "b").warnings == ()


def test_a_declared_file_that_is_changed_already_is_warned_of(tmp_path: Path) -> None:
    repo = quiet(tmp_path, ["a", "b"])
    repo.install()
    repo.write("a", "begun\n")
    repo.write("b", "begun\n")
    (warning,) = declared(repo, "a").warnings
    assert warning.startswith("a is dirty")
    assert " i-" in warning
    assert declared(repo, "c").warnings == ()
