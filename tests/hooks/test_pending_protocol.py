"""The shim of reference-transaction: what it settles in sh, and what it hands to patchgate.

The pending receipts are written by hand, as pre-commit would leave them, and the commits are made without
pre-commit, so that every difference between the two is the test's own.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from patchgate import __version__
from tests.hooks.hook_world import Recorder, install
from tests.world import Repo

pytestmark = pytest.mark.turns(3)

RAW = ("--raw", "-z", "--no-renames", "--no-abbrev", "--ignore-submodules=none")
SHELLS = [name for name in ("dash", "bash") if shutil.which(name)]


class Session:
    """A repository with one commit, the shims, and a recorder."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        self.repo = Repo.create(folder / "a 'quoted' \"place\"", *arguments)
        self.recorder = Recorder(folder)
        self.repo.commit({"a": "1\n", "b": "1\n"}, "First")
        install(self.repo, self.recorder)

    @property
    def git_dir(self) -> Path:
        """Git's folder of this worktree."""
        return Path(self.repo.git_dir)

    @property
    def receipts(self) -> str:
        """What stands in the receipts."""
        place = Path(self.repo.common_dir, "patchgate/receipts")
        return place.read_text(encoding="ascii") if place.exists() else ""

    def leave(
        self,
        *,
        status: str = "accepted",
        head: str | None = None,
        ref: str = "refs/heads/main",
        version: str = __version__,
        policy: str = "- -",
        raw: bytes | None = None,
    ) -> None:
        """Write the pending receipt of what is staged."""
        head = head or self.repo.head()
        if raw is None:
            raw = self.repo.git("diff-index", "--cached", *RAW, "HEAD")
        tree = self.repo.ask("write-tree")
        text = f"patchgate.pending/2 {version} {status} {tree}\n{head} {ref}\n{policy}\n"
        (self.git_dir / "patchgate-pending").write_bytes(text.encode("utf-8") + raw)

    def commit(self, *arguments: str, message: str = "Second") -> str:
        """Commit what is staged, without pre-commit."""
        self.repo.git("commit", "-q", "--no-verify", "--allow-empty", "-m", message, *arguments)
        return self.repo.head()

    def left(self) -> list[str]:
        """What of the protocol is still lying in git's folder; an empty file is used up."""
        return sorted(each.name for each in self.git_dir.glob("patchgate-*") if each.stat().st_size)

    def line_of(self, commit: str) -> str:
        """The receipt that a commit should have."""
        tree, _, parent = self.repo.ask("log", "-1", "--format=%T-%P", commit).partition("-")
        return f"{commit} {tree} {parent or '-'}\n"


@pytest.fixture
def session(tmp_path: Path) -> Session:
    """One staged change."""
    made = Session(tmp_path)
    made.repo.stage({"a": "2\n", "name with\nnewline": "x\n"})
    return made


def test_what_pre_commit_has_judged_gets_its_receipt_without_patchgate(session: Session) -> None:
    session.leave()
    commit = session.commit()
    assert session.recorder.asked == []
    assert session.receipts == session.line_of(commit)
    assert session.left() == []


def test_one_commit_after_another_gets_a_line_each(session: Session) -> None:
    session.leave()
    first = session.commit()
    session.repo.stage({"b": "2\n"})
    session.leave()
    second = session.commit()
    assert session.recorder.asked == []
    assert session.receipts == session.line_of(first) + session.line_of(second)


def test_what_was_told_only_passes_without_a_receipt(session: Session) -> None:
    session.leave(status="told")
    session.commit()
    assert session.recorder.asked == []
    assert session.receipts == ""
    assert session.left() == []


def test_an_empty_change_is_a_change_like_any_other(tmp_path: Path) -> None:
    session = Session(tmp_path)
    session.leave()
    commit = session.commit()
    assert session.recorder.asked == []
    assert session.receipts == session.line_of(commit)


@pytest.mark.parametrize("object_format", ["sha1", "sha256"])
def test_a_root_commit_is_compared_with_the_empty_tree(tmp_path: Path, object_format: str) -> None:
    repo = Repo.create(tmp_path, f"--object-format={object_format}")
    session = Session.__new__(Session)
    session.repo, session.recorder = repo, Recorder(tmp_path)
    install(repo, session.recorder)
    repo.stage({"a": "1\n"})
    empty = repo.ask("hash-object", "-t", "tree", "/dev/null")
    raw = repo.git("diff-index", "--cached", *RAW, empty)
    session.leave(head="0" * len(empty), raw=raw)
    root = session.commit()
    assert session.recorder.asked == []
    assert session.receipts == session.line_of(root)
    repo.stage({"a": "2\n"})
    session.leave()
    second = session.commit()
    assert session.recorder.asked == []
    assert session.receipts == session.line_of(root) + session.line_of(second)


def test_in_a_linked_worktree_the_receipt_goes_to_the_common_folder(tmp_path: Path) -> None:
    session = Session(tmp_path)
    linked = session.repo.path.parent / "linked"
    session.repo.git("worktree", "add", "-q", "-b", "side", str(linked))
    session.recorder.forget()
    main, session.repo = session.repo, session.repo.at(linked)
    session.repo.stage({"a": "2\n"})
    session.leave(ref="refs/heads/side")
    commit = session.commit()
    assert session.recorder.asked == []
    assert (main.path / ".git/patchgate/receipts").read_text() == session.line_of(commit)
    assert session.left() == []


def test_from_a_subfolder_it_is_the_same(session: Session) -> None:
    session.repo.stage({"deep/er/c": "1\n"})
    session.leave()
    session.repo.git("commit", "-q", "-n", "-m", "x", cwd=session.repo.path / "deep" / "er")
    assert session.recorder.asked == []
    assert session.receipts == session.line_of(session.repo.head())


JUDGED = ["reference-transaction prepared"]


def is_handed_on(session: Session) -> bool:
    """Tell whether patchgate was asked, for no receipt and nothing left behind by the shim."""
    assert session.receipts == ""
    assert session.left() == []
    return session.recorder.asked == JUDGED


def test_without_a_pending_receipt_patchgate_judges(session: Session) -> None:
    session.commit()
    assert is_handed_on(session)
    (call,) = session.recorder.calls
    assert call.replaces_nothing
    # Newer git no longer names HEAD beside the branch that it is.
    names = [line.split(" ")[2] for line in call.stdin.splitlines()]
    assert [name for name in names if name != "HEAD"] == ["refs/heads/main"]


def test_one_byte_of_difference_is_judged(session: Session) -> None:
    raw = session.repo.git("diff-index", "--cached", *RAW, "HEAD")
    for other in (
        raw.replace(b"M\0a\0", b"M\0b\0"),
        raw[:-1],
        raw + b"\0",
        b"",
        raw.replace(b"\0", b"\n", 1),
    ):
        assert other != raw
        session.leave(raw=other)
        session.commit()
        assert is_handed_on(session)
        session.recorder.forget()
        session.repo.git("reset", "-q", "--soft", "HEAD~1")
        session.recorder.forget()


@pytest.mark.parametrize(
    "wrong",
    [
        {"ref": "refs/heads/other"},
        {"ref": "refs/heads/mai"},
        {"version": "0.0.0"},
        {"head": "1" * 40},
        {"head": "0" * 40},
        {"status": "refused"},
        {"status": ""},
        {"policy": "refs/heads/main:patchgate.toml " + "1" * 40},
        {"policy": "refs/heads/main:a " + "1" * 40},
        {"policy": ""},
    ],
)
def test_a_pending_receipt_of_something_else_is_none(session: Session, wrong: dict[str, str]) -> None:
    session.leave(**wrong)  # type: ignore[arg-type]
    session.commit()
    assert session.receipts == ""
    assert session.recorder.asked == JUDGED


def test_a_pending_receipt_cut_short_is_none(session: Session) -> None:
    session.leave()
    place = session.git_dir / "patchgate-pending"
    whole = place.read_bytes()
    for length in (0, 10, 60, 80, whole.index(b"- -\n") + 3, len(whole) - 3):
        place.write_bytes(whole[:length])
        session.commit()
        assert session.recorder.asked == JUDGED, length
        assert session.receipts == ""
        session.repo.git("reset", "-q", "--soft", "HEAD~1")
        session.recorder.forget()


def test_the_trusted_policy_counts_as_it_was_read(session: Session) -> None:
    blob = session.repo.ask("rev-parse", "HEAD:b")
    session.leave(policy=f"refs/heads/main:b {blob}")
    commit = session.commit()
    assert session.recorder.asked == []
    assert session.receipts == session.line_of(commit)


@pytest.mark.parametrize(
    "message",
    [
        "Second\n\nPatchgate-Intent: 12",
        "Second\n\npatchgate-run: x",
        "PATCHGATE-INTENT: 12",
        "Second\n\nText\nPATCHGATE-Intent:12\nMore",
    ],
)
def test_a_trailer_of_ours_is_judged(session: Session, message: str) -> None:
    session.leave()
    session.commit(message=message)
    assert is_handed_on(session)


def test_a_word_of_ours_within_a_line_is_no_trailer(session: Session) -> None:
    session.leave()
    session.commit(message="Try patchgate-intent\n\n patchgate-run: indented")
    assert session.recorder.asked == []


def test_another_encoding_is_judged(session: Session) -> None:
    session.leave()
    session.repo.git("-c", "i18n.commitEncoding=latin1", "commit", "-q", "-n", "-m", "Zweite")
    assert is_handed_on(session)


def test_nothing_of_a_message_is_evaluated(session: Session, tmp_path: Path) -> None:
    mark = tmp_path / "evaluated"
    session.leave()
    text = f"$(touch '{mark}') `touch '{mark}'` ${{IFS}} %s %n \\n * ? [a] \\\n'\"\n-n\n--\nEOF\nEND\n$lines"
    commit = session.commit(message=text)
    assert session.recorder.asked == []
    assert session.receipts == session.line_of(commit)
    assert not mark.exists()


@pytest.mark.parametrize(
    "branch", ["a;touch$IFS'evaluated'", 'x"$(touch${IFS}evaluated)`', "-n", "ünï", "%s%n", "a&b|c>d<e!f#g"]
)
def test_nothing_of_a_name_is_evaluated(session: Session, branch: str) -> None:
    session.repo.git("symbolic-ref", "HEAD", f"refs/heads/{branch}")
    session.repo.git("update-ref", f"refs/heads/{branch}", "main")
    session.recorder.forget()
    session.leave(ref=f"refs/heads/{branch}")
    commit = session.commit()
    assert session.recorder.asked == []
    assert session.receipts == session.line_of(commit)
    assert [each for each in session.repo.path.rglob("*") if each.name == "evaluated"] == []


def test_a_merge_is_judged(session: Session) -> None:
    session.repo.git("reset", "-q", "--hard")
    session.repo.git("branch", "side")
    session.repo.stage({"a": "3\n"})
    session.commit()
    session.repo.git("switch", "-q", "side")
    session.repo.stage({"b": "3\n"})
    session.commit()
    session.repo.git("merge", "-q", "--no-commit", "main")
    session.recorder.forget()
    session.leave(ref="refs/heads/side")
    session.repo.git("commit", "-q", "-n", "--no-edit")
    assert is_handed_on(session)


def test_a_branch_that_has_moved_since_is_judged(session: Session) -> None:
    session.leave()
    new = session.repo.ask("commit-tree", "-p", "HEAD", "-m", "x", session.repo.ask("write-tree"))
    other = session.repo.ask("commit-tree", "-p", "HEAD", "-m", "x", "HEAD^{tree}")
    hooks = session.repo.path / ".git/hooks"
    hooks.rename(hooks.with_name("away"))
    session.repo.git("update-ref", "refs/heads/main", other)
    hooks.with_name("away").rename(hooks)
    session.repo.git("update-ref", "refs/heads/main", new)
    assert is_handed_on(session)


def test_an_amend_is_judged(session: Session) -> None:
    session.leave()
    session.repo.git("commit", "-q", "-n", "--amend", "-m", "First again")
    assert is_handed_on(session)


@pytest.mark.parametrize(
    ("name", "value"), [("PATCHGATE_SKIP", ""), ("PATCHGATE_SKIP", "why"), ("PATCHGATE_FULL", "1")]
)
def test_a_skip_and_the_full_tier_are_asked_for_by_name(session: Session, name: str, value: str) -> None:
    session.leave()
    session.repo.env[name] = value
    session.repo.git("commit", "-q", "-n", "-m", "Second")
    assert is_handed_on(session)


def test_a_refusal_of_patchgate_stops_git_and_changes_nothing(session: Session) -> None:
    head = session.repo.head()
    session.recorder.say(1)
    done = session.repo.try_git("commit", "-q", "-n", "-m", "Second")
    assert done.returncode != 0
    assert session.repo.head() == head
    assert session.recorder.asked == JUDGED


def test_a_child_that_fails_does_not_equal_an_empty_change(tmp_path: Path) -> None:
    session = Session(tmp_path)
    head = session.repo.head()
    text = f"tree {'1' * 40}\nparent {head}\nauthor A <a@b> 1 +0000\ncommitter A <a@b> 1 +0000\n\nx\n"
    broken = session.repo.git(
        "hash-object", "-t", "commit", "-w", "--stdin", "--literally", stdin=text.encode()
    )
    session.leave(raw=b"")
    session.repo.git("update-ref", "refs/heads/main", broken.decode().strip())
    assert is_handed_on(session)


def test_a_replacement_does_not_hide_a_commit(session: Session) -> None:
    session.leave()
    good = session.repo.ask("commit-tree", "-p", "HEAD", "-m", "x", session.repo.ask("write-tree"))
    session.repo.stage({"evil": "x\n"})
    bad = session.repo.ask("commit-tree", "-p", "HEAD", "-m", "x", session.repo.ask("write-tree"))
    session.repo.git("replace", bad, good)
    session.repo.git("update-ref", "refs/heads/main", bad)
    assert is_handed_on(session)


def test_a_tag_does_not_pass_for_the_branch_that_is_made(session: Session) -> None:
    commit = session.repo.ask("commit-tree", "-p", "HEAD", "-m", "x", session.repo.ask("write-tree"))
    session.repo.git("update-ref", "refs/tags/refs/heads/new", commit)
    session.recorder.forget()
    session.repo.git("update-ref", "refs/heads/new", commit)
    assert session.recorder.asked == JUDGED


def transaction(session: Session, *lines: str) -> list[str]:
    """Update refs at once, and say what patchgate was asked."""
    session.repo.git("update-ref", "--stdin", stdin="".join(f"{line}\n" for line in lines).encode())
    return session.recorder.asked


def test_refs_other_than_branches_end_in_sh(session: Session) -> None:
    new = session.repo.ask("commit-tree", "-p", "HEAD", "-m", "x", session.repo.ask("write-tree"))
    names = ("tags/t", "remotes/origin/x", "notes/n", "stash", "original/refs/heads/main", "x/refs/heads/y")
    assert transaction(session, *(f"create refs/{name} {new}" for name in names)) == []
    session.repo.git("checkout", "-q", "--detach", "-f")
    session.repo.git("commit", "-q", "-n", "--allow-empty", "-m", "Detached")
    assert session.recorder.asked == []


def test_deletions_and_unchanged_branches_end_in_sh(session: Session) -> None:
    commit = session.commit()
    session.repo.git("branch", "gone")
    session.recorder.forget()
    assert transaction(session, "delete refs/heads/gone") == []
    assert transaction(session, f"update refs/heads/main {commit}") == []
    session.repo.git("reset", "-q", "--hard", "HEAD")
    assert session.recorder.asked == []


def test_two_branches_at_once_are_judged_at_once(session: Session) -> None:
    session.leave()
    new = session.repo.ask("commit-tree", "-p", "HEAD", "-m", "x", session.repo.ask("write-tree"))
    assert transaction(session, f"create refs/heads/x {new}", f"update refs/heads/main {new}") == JUDGED
    (call,) = session.recorder.calls
    assert len(call.stdin.splitlines()) >= 2


def test_a_branch_among_many_other_refs_is_found(session: Session) -> None:
    new = session.repo.ask("commit-tree", "-p", "HEAD", "-m", "x", session.repo.ask("write-tree"))
    assert transaction(session, *(f"create refs/tags/t{number:05} {new}" for number in range(2000))) == []
    more = [f"create refs/tags/u{number:05} {new}" for number in range(2000)]
    assert transaction(session, *more, f"create refs/heads/z {new}") == JUDGED
    (call,) = session.recorder.calls
    assert len(call.stdin.splitlines()) == 2001


def feed(session: Session, shell: str, state: str, *lines: str) -> subprocess.CompletedProcess[bytes]:
    """Run the shim itself, as git does."""
    return subprocess.run(
        [shell, ".git/hooks/reference-transaction", state],
        input="".join(f"{line}\n" for line in lines).encode(),
        cwd=session.repo.path,
        env=session.repo.env,
        capture_output=True,
        check=False,
    )


@pytest.mark.parametrize("shell", SHELLS)
def test_both_shells_take_the_same_way(session: Session, shell: str) -> None:
    head = session.repo.head()
    new = session.repo.ask("commit-tree", "-p", "HEAD", "-m", "x", session.repo.ask("write-tree"))
    lines = (f"{head} {new} HEAD", f"{head} {new} refs/heads/main")
    session.leave()
    done = feed(session, shell, "prepared", *lines)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert session.left() == ["patchgate-landing", "patchgate-pending"]
    assert session.receipts == ""
    done = feed(session, shell, "committed", *lines)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert session.left() == []
    assert session.receipts == session.line_of(new)
    session.leave(raw=b"x")
    assert feed(session, shell, "prepared", *lines).returncode == 0
    assert session.recorder.asked == JUDGED


def test_a_chained_hook_that_fails_too_late_costs_no_receipt(session: Session) -> None:
    previous = session.repo.path / ".git/hooks/reference-transaction.patchgate-prev"
    previous.write_text("#!/bin/sh\n[ $1 != committed ]\n", encoding="utf-8")
    previous.chmod(0o755)
    session.leave()
    commit = session.commit()
    assert session.receipts == session.line_of(commit)


def test_an_aborted_transaction_leaves_no_receipt(session: Session) -> None:
    head = session.repo.head()
    new = session.repo.ask("commit-tree", "-p", "HEAD", "-m", "x", session.repo.ask("write-tree"))
    session.leave()
    assert feed(session, "sh", "prepared", f"{head} {new} refs/heads/main").returncode == 0
    assert feed(session, "sh", "aborted", f"{head} {new} refs/heads/main").returncode == 0
    assert session.left() == ["patchgate-pending"]
    assert session.receipts == ""


def test_a_landing_of_another_commit_gives_no_receipt(session: Session) -> None:
    (session.git_dir / "patchgate-landing").write_text(f"{'1' * 40} {'2' * 40} {'3' * 40}\n")
    session.commit()
    assert session.receipts == ""


def test_a_phase_that_only_newer_git_has_ends_in_sh(session: Session) -> None:
    new = session.repo.ask("commit-tree", "-p", "HEAD", "-m", "x", session.repo.ask("write-tree"))
    assert feed(session, "sh", "preparing", f"{'0' * 40} {new} refs/heads/main").returncode == 0
    assert session.recorder.asked == []


def test_a_receipt_that_cannot_be_written_is_a_warning(session: Session) -> None:
    (session.git_dir / "patchgate/receipts").mkdir(parents=True)
    session.leave()
    done = session.repo.try_git("commit", "-q", "-n", "-m", "Second")
    assert done.returncode == 0
    (line,) = done.stderr.decode().splitlines()
    assert line.startswith("patchgate: warning: no receipt ")


def test_a_landing_that_cannot_be_written_is_a_warning(session: Session) -> None:
    (session.git_dir / "patchgate-landing").mkdir()
    session.leave()
    done = session.repo.try_git("commit", "-q", "-n", "-m", "Second")
    assert done.returncode == 0
    assert b"warning: no receipt " in done.stderr
    assert session.recorder.asked == []


def alone(session: Session, state: str, *lines: str) -> tuple[int, bytes]:
    """Run the shim where no child can be started, and give how it ends and what it says."""
    session.repo.env["PATH"] = "/nowhere"
    done = feed(session, "/bin/sh", state, *lines)
    return done.returncode, done.stdout + done.stderr


def test_stash_fetch_and_tag_start_no_child_in_any_state(session: Session) -> None:
    head, zero = session.repo.head(), "0" * 40
    session.recorder.remove()
    for state in ("preparing", "prepared", "committed", "aborted"):
        for lines in (
            [f"{zero} {head} refs/stash"],
            [f"{head} {head} HEAD", f"{head} {head} refs/heads/main"],
            [f"{zero} {zero} refs/stash"],
            [f"{head} {zero} refs/tags/gone"],
            [f"{zero} {head} refs/remotes/origin/b{number}" for number in range(15)],
            [],
        ):
            assert alone(session, state, *lines) == (0, b"")


def test_a_used_commit_starts_no_child_after_the_refs_are_written(session: Session) -> None:
    head = session.repo.head()
    new = session.repo.ask("commit-tree", "-p", "HEAD", "-m", "x", session.repo.ask("write-tree"))
    git_dir, line = session.git_dir, session.line_of(new)
    session.leave()
    (git_dir / "patchgate-landing").write_text(line)
    (git_dir / "patchgate").mkdir(exist_ok=True)
    lines = (f"{head} {new} HEAD", f"{head} {new} refs/heads/main")
    assert alone(session, "committed", *lines) == (0, b"")
    assert (git_dir / "patchgate/receipts").read_text() == line
    assert [(git_dir / f"patchgate-{name}").read_bytes() for name in ("landing", "pending")] == [b"", b""]


def test_what_is_used_up_serves_no_other_commit(session: Session) -> None:
    session.leave()
    session.commit()
    session.recorder.forget()
    receipts = session.receipts
    session.commit("--amend", message="Second again")
    assert session.recorder.asked == JUDGED
    assert session.receipts == receipts


def test_a_stash_while_a_message_is_written_leaves_the_pending_receipt(session: Session) -> None:
    session.leave()
    session.repo.write("b", "unstaged\n")
    session.repo.git("stash", "-q", "--keep-index")
    assert session.left() == ["patchgate-pending"]
    commit = session.commit()
    assert session.recorder.asked == []
    assert session.receipts == session.line_of(commit)


def test_an_unchanged_branch_does_not_hide_another_one(session: Session) -> None:
    head = session.repo.head()
    new = session.repo.ask("commit-tree", "-p", "HEAD", "-m", "x", session.repo.ask("write-tree"))
    feed(session, "sh", "prepared", f"{head} {head} refs/heads/main", f"{'0' * 40} {new} refs/heads/x")
    assert session.recorder.asked == JUDGED


def activate(session: Session, line: str) -> None:
    """Write which patchgate is at work here."""
    place = session.git_dir / "patchgate/fast/active"
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(line, encoding="utf-8")


def test_after_an_upgrade_the_old_shim_takes_what_the_new_patchgate_left(session: Session) -> None:
    activate(session, f"1 99.1.0rc1 {shutil.which('sh')}\n")
    session.leave(version="99.1.0rc1")
    commit = session.commit()
    assert session.recorder.asked == []
    assert session.receipts == session.line_of(commit)


@pytest.mark.parametrize(
    "line", ["1 99.0 {}\n", "2 {version} {}\n99\n", "1 99.0 sh\n", "1\n", "", "1 ../.. {}\n"]
)
def test_a_pending_receipt_of_another_version_than_the_one_at_work_is_judged(
    session: Session, line: str
) -> None:
    activate(session, line.format(shutil.which("sh"), version="99.2"))
    session.leave(version="99.2")
    session.commit()
    assert session.recorder.asked == JUDGED
    assert session.receipts == ""


HOSTILE = {
    "color.ui": "always",
    "color.diff": "always",
    "log.showSignature": "true",
    "i18n.logOutputEncoding": "utf-16",
    "format.pretty": "oneline",
    "diff.renames": "copies",
    "diff.relative": "true",
    "diff.ignoreSubmodules": "all",
    "core.abbrev": "4",
    "notes.displayRef": "refs/notes/*",
}


def test_no_setting_changes_how_a_commit_is_told(session: Session) -> None:
    for name, value in HOSTILE.items():
        session.repo.git("config", name, value)
    session.repo.git("notes", "add", "-m", "patchgate-run: a note", "HEAD")
    session.recorder.forget()
    session.leave()
    commit = session.commit(message="Second\n\n\nBody\n\n\n    indented\n\ttab\n")
    session.repo.git("config", "--unset", "i18n.logOutputEncoding")
    assert session.recorder.asked == []
    assert session.receipts == session.line_of(commit)
    session.repo.stage({"a": "9\n"})
    session.leave()
    session.commit(message="Third\n\n\n\nPatchgate-Run: 1")
    assert session.recorder.asked == JUDGED


@pytest.mark.parametrize("verbatim", ["", "\n", "\n\n", "\n\nSubject\n\n\n\nBody\n\n", "Subject"])
@pytest.mark.parametrize("raw", [True, False])
def test_a_message_of_an_odd_shape_is_no_part_of_the_change(
    session: Session, verbatim: str, raw: bool
) -> None:
    if raw:
        session.repo.git("reset", "-q", "--hard")
    session.leave()
    commit = session.commit("--allow-empty-message", "--cleanup=verbatim", message=verbatim)
    # A commit without a message may be judged once more, but never gets a wrong receipt.
    assert session.receipts in ("", session.line_of(commit))
    assert (session.receipts == "") is (session.recorder.asked == JUDGED)
    assert session.receipts or not verbatim.strip()
