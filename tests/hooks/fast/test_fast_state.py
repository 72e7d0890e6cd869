"""What a repository keeps for the fast path: what is written, what it is bound to, when it is made anew."""

from __future__ import annotations

import marshal
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from patchgate import __version__
from patchgate.git.model import Entry
from patchgate.git.repository import Repository, open_repository
from patchgate.hooks.fast.cache_files import (
    active_in,
    is_copy_current,
    is_policy_current,
    is_whole_copy,
    key_of,
    policy_in,
    read_copy,
    sealed_policy,
    stamp,
    tool,
)
from patchgate.hooks.fast.renewal import (
    MOST_POLICIES,
    remove_copy,
    renew,
    renew_all,
    renew_at_head,
    save_policy,
    write_copy,
)
from patchgate.policy.compiled_policy import compile_policy
from patchgate.policy.config import parse
from patchgate.policy.policy import Policy
from patchgate.values import fields
from tests.world import Repo

ROOT = Path(__file__).parents[3]
KEY = f"100644.{'a' * 40}-none"
DENIES = b'[policy]\ndeny_prefixes = ["runs"]\n'


def policy(text: bytes = DENIES) -> Policy:
    return Policy(parse(text, "patchgate.toml"), "patchgate.toml", text)


def copied(folder: Path) -> Path:
    """Make a copy in a folder that stands for a git directory; give where all of it lies."""
    assert write_copy(str(folder), sys.executable) is None
    return folder / "patchgate" / "fast"


def everything(folder: Path) -> dict[str, tuple[int, int, bytes]]:
    return {
        str(place.relative_to(folder)): (
            stat.S_IMODE(place.stat().st_mode),
            place.stat().st_mtime_ns,
            place.read_bytes(),
        )
        for place in sorted(folder.rglob("*"))
        if place.is_file()
    }


def opened(repo: Repo) -> Repository:
    return open_repository(repo.env, str(repo.path))


# The copy


def test_the_copy_runs_by_itself_and_recognises_nothing_unasked(tmp_path: Path) -> None:
    place = copied(tmp_path) / __version__ / "recognise.pyc"
    done = subprocess.run([sys.executable, "-I", "-S", place], capture_output=True, check=False, stdin=-3)
    assert done.returncode not in {0, 99}
    assert b"magic number" not in done.stderr


def test_active_is_one_line_that_a_shell_parts_into_three_words(tmp_path: Path) -> None:
    folder = copied(tmp_path)
    assert (folder / "active").read_text() == f"1 {__version__} {sys.executable}\n"
    script = 'read -r meaning version python <"$1"; printf "%s|%s|%s" "$meaning" "$version" "$python"'
    said = subprocess.run(["sh", "-c", script, "sh", folder / "active"], capture_output=True, check=True)
    assert said.stdout.decode() == f"1|{__version__}|{sys.executable}"


def test_what_is_kept_may_be_read_by_its_owner_alone(tmp_path: Path) -> None:
    folder = copied(tmp_path)
    save_policy(str(tmp_path), KEY, policy())
    assert {mode for mode, _, _ in everything(folder).values()} == {0o600}
    for place in (folder.parent, folder, folder / __version__):
        assert stat.S_IMODE(place.stat().st_mode) == 0o700


def test_the_copy_names_no_place_of_this_machine(tmp_path: Path) -> None:
    content = read_copy(str(copied(tmp_path).parents[1]), __version__)
    assert marshal.loads(content[16:]).co_filename == "patchgate/hooks/fast/recognise.py"
    assert os.fsencode(ROOT) not in content


def test_a_copy_that_is_current_is_told_from_any_other(tmp_path: Path) -> None:
    folder = copied(tmp_path)
    assert is_copy_current(str(tmp_path))
    write_copy(str(tmp_path), "/bin/sh")
    assert not is_copy_current(str(tmp_path))
    write_copy(str(tmp_path), sys.executable)
    (folder / "active").write_text(f"1 0.0.1 {sys.executable}\n")
    assert not is_copy_current(str(tmp_path))
    assert not is_copy_current(str(tmp_path / "elsewhere"))


@given(st.data())
def test_a_copy_that_was_cut_or_changed_anywhere_is_not_whole(data: st.DataObject) -> None:
    assert is_whole_copy(COPY)
    at = data.draw(st.integers(0, len(COPY) - 1))
    changed = COPY[:at] + bytes([COPY[at] ^ data.draw(st.integers(1, 255))]) + COPY[at + 1 :]
    assert not is_whole_copy(changed)
    assert not is_whole_copy(COPY[:at])
    assert not is_whole_copy(COPY + b"\0")


def _made() -> tuple[bytes, bytes]:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        copied(Path(folder))
        save_policy(folder, KEY, policy())
        place = Path(folder, "patchgate", "fast", __version__, KEY)
        return read_copy(folder, __version__), place.read_bytes()


COPY, KEPT = _made()


@pytest.mark.parametrize("interpreter", ["", "python3", "/no/such/python", "/bin", "/bin/sh\0"])
def test_an_interpreter_that_a_shim_could_not_start_is_not_recorded(tmp_path: Path, interpreter: str) -> None:
    warning = write_copy(str(tmp_path), interpreter)
    assert warning is not None
    assert "full check" in warning
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["python\n", "python ", "python\t", "py\nthon"])
def test_an_interpreter_whose_name_a_shim_would_read_otherwise_is_not_recorded(
    tmp_path: Path, name: str
) -> None:
    (tmp_path / name).symlink_to(sys.executable)
    warning = write_copy(str(tmp_path), str(tmp_path / name))
    assert warning is not None
    assert "\n" not in warning
    assert not (tmp_path / "patchgate").exists()


def test_a_path_with_a_space_is_recorded_and_read_as_it_is(tmp_path: Path) -> None:
    odd = tmp_path / "a  b" / "pyth\udce4on"
    odd.parent.mkdir()
    odd.symlink_to(sys.executable)
    assert write_copy(str(tmp_path), str(odd)) is None
    active = active_in(str(tmp_path))
    assert active is not None
    assert active.interpreter == str(odd)


def test_where_nothing_can_be_written_there_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "patchgate").write_text("in the way")
    warning = write_copy(str(tmp_path), sys.executable)
    assert warning is not None
    assert "could not be written (" in warning


def test_the_copies_of_other_versions_go_and_nothing_else_does(tmp_path: Path) -> None:
    folder = tmp_path / "patchgate" / "fast"
    for name in ("0.0.1", "0.0.2.dev1+gabc", "0.0.3", "notes", "v1"):
        (folder / name).mkdir(parents=True)
        (folder / name / "recognise.pyc").write_bytes(b"old")
        (folder / name / KEY).write_bytes(b"old")
    (folder / "0.0.3" / "letter").write_text("mine")
    (tmp_path / "aside").mkdir()
    (tmp_path / "aside" / "recognise.pyc").write_bytes(b"mine")
    (folder / "0.0.4").symlink_to(tmp_path / "aside")
    copied(tmp_path)
    assert sorted(each.name for each in folder.iterdir()) == sorted(
        ["0.0.3", "0.0.4", __version__, "active", "notes", "v1"]
    )
    assert [each.name for each in (folder / "0.0.3").iterdir()] == ["letter"]
    assert (tmp_path / "aside" / "recognise.pyc").exists()
    remove_copy(str(tmp_path))
    assert sorted(each.name for each in folder.iterdir()) == ["0.0.3", "0.0.4", "notes", "v1"]


def test_what_was_dropped_is_gone_altogether_and_dropping_twice_is_like_once(tmp_path: Path) -> None:
    folder = copied(tmp_path)
    save_policy(str(tmp_path), KEY, policy())
    remove_copy(str(tmp_path))
    assert not folder.exists()
    remove_copy(str(tmp_path))


def test_a_copy_that_is_made_anew_takes_no_policies_over(tmp_path: Path) -> None:
    folder = copied(tmp_path) / __version__
    save_policy(str(tmp_path), KEY, policy())
    copied(tmp_path)
    assert [each.name for each in folder.iterdir()] == ["recognise.pyc"]


# The compiled policy


def test_a_policy_is_kept_as_its_suspicion_with_what_it_is_bound_to(tmp_path: Path) -> None:
    copied(tmp_path)
    assert save_policy(str(tmp_path), KEY, policy())
    held = policy_in(str(tmp_path), __version__, KEY)
    suspicion = compile_policy(policy())
    assert held is not None
    assert suspicion is not None
    expected = {each.name: getattr(suspicion, each.name) for each in fields(suspicion)}
    assert held == {**expected, "commit_commands": (), "tool": tool(), "stamp": stamp()}
    assert (tool()[0], tool()[2]) == (__version__, sys.hexversion)
    assert stamp()[0] == str(ROOT / "patchgate" / "__init__.py")


@given(st.data())
def test_a_policy_that_was_cut_or_changed_anywhere_is_damaged(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    folder = tmp_path_factory.getbasetemp() / "damaged"
    place = folder / "patchgate" / "fast" / __version__ / KEY
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes(KEPT)
    assert is_policy_current(str(folder), KEY)
    at = data.draw(st.integers(0, len(KEPT) - 1))
    byte = bytes([KEPT[at] ^ data.draw(st.integers(1, 255))])
    for damaged in (KEPT[:at], KEPT[:at] + byte + KEPT[at + 1 :], KEPT + b"\0"):
        place.write_bytes(damaged)
        assert policy_in(str(folder), __version__, KEY) is None
        assert not is_policy_current(str(folder), KEY)


@pytest.mark.parametrize("key", ["tool", "stamp"])
@pytest.mark.parametrize("position", range(4))
def test_a_policy_is_bound_to_the_tool_and_to_this_very_installation(
    tmp_path: Path, key: str, position: int
) -> None:
    place = copied(tmp_path) / __version__ / KEY
    save_policy(str(tmp_path), KEY, policy())
    held = dict(policy_in(str(tmp_path), __version__, KEY) or {})
    bound = list({"tool": tool(), "stamp": stamp()}[key])
    if position < len(bound):
        bound[position] = f"{bound[position]}0" if position == 0 else int(bound[position]) + 1
    else:
        bound = []
    place.write_bytes(sealed_policy({**held, key: tuple(bound)}))
    assert not is_policy_current(str(tmp_path), KEY)
    place.write_bytes(sealed_policy(held))
    assert is_policy_current(str(tmp_path), KEY)


def test_where_nothing_can_be_recognised_none_is_kept_and_a_stale_one_goes(tmp_path: Path) -> None:
    place = copied(tmp_path) / __version__ / KEY
    save_policy(str(tmp_path), KEY, policy())
    assert not save_policy(str(tmp_path), KEY, policy(b'required_version = "<0.0.1"\n'))
    assert not place.exists()


@pytest.mark.parametrize("key", ["../active", "active", "", "none", f"{KEY}.new"])
def test_what_is_no_key_is_no_name_of_a_file(tmp_path: Path, key: str) -> None:
    before = everything(copied(tmp_path))
    assert not save_policy(str(tmp_path), key or "none-", policy())
    assert {name for name in before if "active" not in name} == {
        name for name in everything(tmp_path / "patchgate" / "fast") if "active" not in name
    }


def test_at_most_the_newest_are_kept(tmp_path: Path) -> None:
    folder = copied(tmp_path) / __version__
    keys = [f"100644.{number:040x}-none" for number in range(MOST_POLICIES + 3)]
    for number, key in enumerate(keys[:-1]):
        (folder / key).write_bytes(b"old")
        os.utime(folder / key, (number, number))
    (folder / "letter").write_text("mine")
    save_policy(str(tmp_path), keys[-1], policy())
    assert sorted(each.name for each in folder.iterdir()) == sorted(
        [*keys[-MOST_POLICIES:], "letter", "recognise.pyc"]
    )


def test_a_key_names_mode_and_bytes_of_both_files_that_can_hold_a_policy() -> None:
    config, project = Entry("100644", "a" * 40), Entry("120000", "b" * 64)
    assert key_of({}) == "none-none"
    assert key_of({b"patchgate.toml": config, b"a": project}) == f"100644.{'a' * 40}-none"
    assert key_of({b"pyproject.toml": project}) == f"none-120000.{'b' * 64}"


# Kept ready for the next commit


def test_where_no_hook_of_ours_runs_nothing_is_kept(tmp_path: Path) -> None:
    repo = Repo.create(tmp_path)
    repo.policy(DENIES.decode())
    renew_at_head(opened(repo))
    assert not (repo.path / ".git/patchgate/fast").exists()


def test_where_a_hook_of_ours_runs_the_first_commit_keeps_what_the_next_needs(tmp_path: Path) -> None:
    repo = Repo.create(tmp_path)
    repo.policy(DENIES.decode())
    repo.cli("install")
    remove_copy(str(repo.path / ".git"))
    renew_at_head(opened(repo))
    (kept,) = (repo.path / ".git/patchgate/fast" / __version__).glob("*-*")
    blob = repo.ask("rev-parse", "HEAD:patchgate.toml")
    assert kept.name == f"100644.{blob}-none"
    assert is_copy_current(str(repo.path / ".git"))


def test_what_is_current_is_not_written_again(tmp_path: Path) -> None:
    repo = Repo.create(tmp_path)
    repo.policy(DENIES.decode())
    repo.cli("install")
    renew_at_head(opened(repo))
    before = everything(repo.path / ".git/patchgate/fast")
    renew_at_head(opened(repo))
    assert renew_all(opened(repo)).has_copy is False
    assert everything(repo.path / ".git/patchgate/fast") == before


def test_all_of_it_is_kept_once_for_all_worktrees(tmp_path: Path) -> None:
    repo = Repo.create(tmp_path)
    repo.policy(DENIES.decode())
    repo.git("worktree", "add", "-q", "../linked", "-b", "side")
    linked = repo.at(tmp_path / "linked")
    linked.cli("install")
    renew_at_head(opened(linked))
    assert (renew_all(opened(repo)).has_copy, renew_all(opened(repo)).has_policy) == (False, False)
    assert (repo.path / ".git/patchgate/fast/active").exists()


@pytest.mark.parametrize("text", ["not = [toml\n", 'required_version = "<0.0.1"\n'])
def test_under_a_policy_that_cannot_be_used_none_is_kept(tmp_path: Path, text: str) -> None:
    repo = Repo.create(tmp_path)
    repo.policy(text)
    repo.cli("install")
    renew_at_head(opened(repo))
    assert is_copy_current(str(repo.path / ".git"))
    assert list((repo.path / ".git/patchgate/fast" / __version__).glob("*-*")) == []


def test_before_the_first_commit_there_is_a_copy_and_no_policy(tmp_path: Path) -> None:
    repo = Repo.create(tmp_path)
    repo.cli("install")
    renew_at_head(opened(repo))
    assert is_copy_current(str(repo.path / ".git"))
    assert renew_all(opened(repo)).has_policy is False


def test_renewing_never_stops_anything(tmp_path: Path) -> None:
    repo = Repo.create(tmp_path)
    repo.policy(DENIES.decode())
    repo.cli("install")
    folder = repo.path / ".git/patchgate/fast"
    remove_copy(str(repo.path / ".git"))
    folder.write_text("in the way")
    renew_at_head(opened(repo))
    renew(opened(repo), KEY, policy())
    assert folder.read_text() == "in the way"
    assert renew_all(opened(repo)).warning is not None


def test_in_a_push_that_is_received_nothing_is_written(tmp_path: Path) -> None:
    repo = Repo.create(tmp_path)
    repo.policy(DENIES.decode())
    repo.cli("install")
    remove_copy(str(repo.path / ".git"))
    environ = repo.env | {"GIT_QUARANTINE_PATH": str(tmp_path)}
    renew_at_head(open_repository(environ, str(repo.path)))
    assert not (repo.path / ".git/patchgate/fast").exists()


def test_install_makes_the_copy_and_uninstall_removes_all_of_it(tmp_path: Path) -> None:
    repo = Repo.create(tmp_path)
    repo.policy(DENIES.decode())
    repo.cli("install")
    assert is_copy_current(str(repo.path / ".git"))
    renew_at_head(opened(repo))
    (repo.path / ".git/patchgate/fast/active").unlink()
    told = repo.cli("install").out
    assert told.startswith("the hooks in .git/hooks are up to date; rebuilt ")
    assert is_copy_current(str(repo.path / ".git"))
    repo.cli("uninstall")
    assert not (repo.path / ".git/patchgate/fast").exists()


def test_a_server_gets_no_copy(tmp_path: Path) -> None:
    repo = Repo.create(tmp_path, "--bare")
    assert repo.cli("install", "--server").code == 0
    assert not (repo.path / "patchgate/fast").exists()


def test_install_warns_where_the_copy_cannot_be_made_and_the_hooks_are_in(tmp_path: Path) -> None:
    repo = Repo.create(tmp_path)
    (repo.path / ".git/patchgate").mkdir()
    (repo.path / ".git/patchgate/fast").write_text("in the way")
    answer = repo.cli("install")
    assert answer.code == 0
    assert answer.err.startswith("warning: ")
    assert "could not be written (" in answer.err
    assert (repo.path / ".git/hooks/pre-commit").exists()
