"""Stored intents: what was written comes back, and nothing else counts; markers, holders, activity."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import patchgate
from patchgate.errors import UndecidedError
from patchgate.git.path import RepoPath
from patchgate.intents.intent import Intent, IntentOwner, IntentScope, Moment, State
from patchgate.intents.intent_file import (
    FORM,
    MARKER,
    DamagedError,
    add_to_marker,
    marked_ids,
    moment_from,
    moment_text,
    parse,
    remove_from_marker,
    serialize,
)
from patchgate.intents.stored_intents import (
    StoredIntents,
    current_moment,
    declared_digest,
    host_name,
    is_alive,
    is_running,
)
from patchgate.ledger.ledger import Ledger
from patchgate.storage.owner import Owner, parent_of

OID = "a" * 40
BOOT = "0b1c2d3e-0000-4000-8000-000000000000"
NAME = "i-0123456789"

texts = st.text(max_size=20)
paths = st.binary(min_size=1, max_size=12).map(RepoPath)
numbers = st.floats(-1e9, 1e10, allow_nan=False)
oids = st.sampled_from([OID, "0123456789abcdef" * 4])
moments = st.builds(Moment, numbers, st.sampled_from(["", BOOT]), numbers)
scopes = st.builds(
    IntentScope,
    st.lists(paths, min_size=1, max_size=3).map(tuple),
    *[st.lists(paths, max_size=2).map(tuple)] * 2,
)
intents = st.builds(
    Intent,
    id=st.just(NAME),
    reason=texts,
    scope=scopes,
    work_tree=texts,
    git_dir=texts,
    base=st.none() | oids,
    tree=oids,
    declared=moments,
    ttl=st.integers(60, 86400),
    lease=st.integers(1, 86400),
    dirty=st.dictionaries(paths, st.lists(st.none() | oids, min_size=1, max_size=2).map(tuple), max_size=3),
    analyses=texts,
    state=st.sampled_from(State),
    renewed=st.none() | moments,
    seen=st.none() | moments,
    owner=st.none() | st.builds(IntentOwner, texts, st.integers(1, 2**31 - 1), st.just(BOOT), texts),
    before=st.none() | st.just("sha256:" + "0" * 64),
)


def at(seconds: float) -> Moment:
    # Whole numbers are as good as others, and a digest tells them apart.
    return Moment(1_700_000_000 + seconds, BOOT, 1000.5 + seconds)


def intent_of(git_dir: Path | str = "/nowhere", name: str = NAME, **values: Any) -> Intent:
    scope = IntentScope((RepoPath(b"src/a.py"),))
    plain: dict[str, Any] = {
        "id": name,
        "reason": "why",
        "scope": scope,
        "work_tree": "/w",
        "git_dir": str(git_dir),
        "base": OID,
        "tree": OID,
        "declared": at(0),
        "ttl": 3600,
        "lease": 300,
        "seen": at(0),
    }
    return Intent(**(plain | values))


def stored(folder: Path, intent: Intent) -> StoredIntents:
    """Store an intent as one does: its marker first."""
    found = StoredIntents(str(folder))
    add_to_marker(intent.git_dir, intent.id)
    found.write(intent)
    return found


def place_of(folder: Path, name: str = NAME, end: str = "json") -> Path:
    return folder / "patchgate" / "intents" / f"{name}.{end}"


def resealed(value: object) -> bytes:
    body = json.dumps(value).encode("ascii")
    return hashlib.sha256(f"{FORM}\n".encode() + body).hexdigest().encode() + b"\n" + body + b"\n"


@given(intents)
def test_what_was_written_comes_back(intent: Intent) -> None:
    assert parse(serialize(intent), NAME) == intent


@given(st.binary(max_size=200) | st.text(max_size=200).map(resealed))
def test_no_bytes_are_more_than_damaged(raw: bytes) -> None:
    with pytest.raises(DamagedError):
        parse(raw, NAME)


@given(intents, st.integers(0), st.integers(1, 255))
def test_an_intent_in_which_one_byte_is_another_is_damaged(intent: Intent, place: int, change: int) -> None:
    raw = bytearray(serialize(intent))
    raw[place % len(raw)] ^= change
    with pytest.raises(DamagedError):
        parse(bytes(raw), NAME)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=4),
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
        max_leaves=6,
    ),
    st.data(),
)
def test_a_value_of_another_kind_under_a_good_seal_is_damaged(value: object, data: st.DataObject) -> None:
    whole = json.loads(
        serialize(intent_of(owner=IntentOwner("h", 7, BOOT, "9"), dirty={RepoPath(b"x"): (OID, None)})).split(
            b"\n"
        )[1]
    )
    inner = data.draw(st.sampled_from(["declaration", ""]))
    target = whole[inner] if inner else whole
    key = data.draw(st.sampled_from(sorted(target)))
    was = target[key]
    target[key] = value
    try:
        intent = parse(resealed(whole), NAME)
    except DamagedError:
        return
    # What is not covered by the digest may be another good value; nothing that is covered may.
    assert value == was or (not inner and key in {"state", "renewed", "seen", "holder", "before"})
    assert parse(serialize(intent), NAME) == intent


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("state", "paused", "state"),
        ("renewed", [1, BOOT], "moment"),
        ("renewed", [True, BOOT, 0], "time"),
        ("seen", [1e300, BOOT, 0], "time"),
        ("seen", [10**400, BOOT, 0], "time"),
        ("seen", [float("nan"), BOOT, 0], "time"),
        ("seen", [0, BOOT, float("-inf")], "time"),
        ("holder", ["h", 0, BOOT, "9"], "owner"),
        ("holder", ["h", 2**31, BOOT, "9"], "owner"),
        ("before", "sha256:0", "id"),
        ("digest", "sha256:" + "0" * 64, "digest"),
        ("more", 1, "key"),
    ],
)
def test_what_is_wrong_with_a_sealed_file_is_said(key: str, value: object, said: str) -> None:
    whole = json.loads(serialize(intent_of()).split(b"\n")[1])
    with pytest.raises(DamagedError, match=said):
        parse(resealed(whole | {key: value}), NAME)


def test_what_is_too_deep_is_damage() -> None:
    body = b"[" * 100_000
    raw = hashlib.sha256(FORM.encode() + b"\n" + body).hexdigest().encode() + b"\n" + body + b"\n"
    with pytest.raises(DamagedError):
        parse(raw, NAME)


def test_nothing_is_made_before_the_first_intent(tmp_path: Path) -> None:
    found = StoredIntents(str(tmp_path))
    assert (found.all(), found.names(), found.of(str(tmp_path)), found.get(NAME)) == ((), (), (), None)
    found.touch(intent_of(), at(1000))
    assert os.listdir(tmp_path) == []


def test_intents_are_found_by_id_and_by_worktree_the_oldest_first(tmp_path: Path) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir()
    there.mkdir()
    late = intent_of(here, "i-00000001", declared=at(9))
    early = intent_of(here, "i-00000002")
    other = intent_of(there, "i-00000003", declared=at(1))
    for each in (late, early, other):
        found = stored(tmp_path, each)
    assert found.all() == (early, other, late)
    assert found.of(str(here)) == (early, late)
    assert found.of(str(there)) == (other,)
    assert found.get("i-00000003") == other
    (tmp_path / "patchgate" / "other.json").write_bytes(b"no intent")
    assert found.get("../other") is None
    found.remove(late.id)
    found.remove(late.id)
    assert (found.all(), found.of(str(here))) == ((early, other), (early,))


@pytest.mark.parametrize("damage", ["cut", "folder", "link", "pipe", "renamed"])
def test_a_file_that_is_no_intent_is_never_none(tmp_path: Path, damage: str) -> None:
    found, place = stored(tmp_path, intent_of(tmp_path)), place_of(tmp_path)
    whole = place.read_bytes()
    place.unlink()
    if damage == "cut":
        place.write_bytes(whole[:-9])
    elif damage == "folder":
        place.mkdir()
    elif damage == "link":
        place.symlink_to(tmp_path / "elsewhere")
    elif damage == "pipe":
        os.mkfifo(place)
    else:
        place.write_bytes(serialize(intent_of(tmp_path, "i-ffffffff")))
    for ask in (found.all, lambda: found.of(str(tmp_path)), lambda: found.get(NAME)):
        with pytest.raises(UndecidedError) as info:
            ask()
        assert str(place) in info.value.message
        step = "remove that folder" if damage == "folder" else f"intent clear {NAME}"
        assert step in (info.value.hint or "")
    assert found.names() == (NAME,)


def test_a_damaged_intent_of_another_worktree_is_not_looked_at(tmp_path: Path) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir()
    there.mkdir()
    stored(tmp_path, intent_of(there, "i-00000001"))
    found = stored(tmp_path, intent_of(here))
    place_of(tmp_path, "i-00000001").write_bytes(b"?")
    assert [each.id for each in found.of(str(here))] == [NAME]
    with pytest.raises(UndecidedError):
        found.of(str(there))


def test_a_marker_names_the_intents_of_its_worktree_and_goes_with_the_last(tmp_path: Path) -> None:
    git_dir = str(tmp_path)
    add_to_marker(git_dir, "i-00000001")
    add_to_marker(git_dir, "i-00000002")
    add_to_marker(git_dir, "i-00000001")
    assert (tmp_path / MARKER).read_bytes() == b"i-00000001\ni-00000002\n"
    # Nothing was ever stored under these ids: whoever marked them was killed before that.
    assert StoredIntents(git_dir).of(git_dir) == ()
    remove_from_marker(git_dir, "i-00000003")
    remove_from_marker(git_dir, "i-00000001")
    assert marked_ids(git_dir) == ("i-00000002",)
    remove_from_marker(git_dir, "i-00000002")
    assert os.listdir(tmp_path) == []
    remove_from_marker(git_dir, "i-00000002")
    remove_from_marker(str(tmp_path / "gone"), "i-00000002")
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    "content", [b"i-00000001", b"i-00000001\nx\n", b"\n", b"\xff\n", b"i-00000001\n" * 200_000]
)
def test_a_marker_that_holds_something_else_is_not_passed_by(tmp_path: Path, content: bytes) -> None:
    (tmp_path / MARKER).write_bytes(content)
    with pytest.raises(UndecidedError, match="damaged"):
        StoredIntents(str(tmp_path)).of(str(tmp_path))
    with pytest.raises(UndecidedError, match="damaged"):
        add_to_marker(str(tmp_path), NAME)
    assert (tmp_path / MARKER).read_bytes() == content


def test_an_empty_marker_names_none(tmp_path: Path) -> None:
    (tmp_path / MARKER).touch()
    assert StoredIntents(str(tmp_path)).of(str(tmp_path)) == ()


def test_an_activity_renews_the_lease_and_is_written_once_in_a_tenth_of_it(tmp_path: Path) -> None:
    found, place = stored(tmp_path, intent_of(tmp_path)), place_of(tmp_path, end="seen")
    before = place_of(tmp_path).read_bytes()
    (intent,) = found.of(str(tmp_path))
    found.touch(intent, at(29))
    assert not place.exists()
    found.touch(intent, at(30))
    (seen,) = found.of(str(tmp_path))
    assert seen == replace(intent, seen=at(30))
    assert (intent.has_lease(at(301)), seen.has_lease(at(301)), seen.has_lease(at(331))) == (
        False,
        True,
        False,
    )
    for each in (seen, intent):
        found.touch(each, at(59))
    assert place.read_bytes() == moment_text(at(30))
    assert place_of(tmp_path).read_bytes() == before
    assert sorted(os.listdir(place.parent)) == [f"{NAME}.json", f"{NAME}.seen"]


def test_an_activity_neither_undoes_a_change_nor_brings_back_what_was_cleared(tmp_path: Path) -> None:
    found = stored(tmp_path, intent_of(tmp_path))
    (old,) = found.all()
    changed = replace(old, before="sha256:" + "1" * 64)
    found.write(changed)
    found.touch(old, at(100))
    assert found.all() == (replace(changed, seen=at(100)),)
    found.write(replace(changed, seen=at(200)))
    assert found.all() == (replace(changed, seen=at(200)),)
    found.touch(old, at(300))
    found.remove(old.id)
    found.touch(old, at(400))
    assert (found.all(), os.listdir(found.folder)) == ((), [])


def test_the_later_activity_counts_also_after_the_clock_was_set_back(tmp_path: Path) -> None:
    found = stored(tmp_path, intent_of(tmp_path))
    (intent,) = found.all()
    later = Moment(at(0).wall - 5000, BOOT, at(100).boot)
    found.touch(intent, later)
    assert found.all()[0].seen == later
    place_of(tmp_path, end="seen").write_bytes(moment_text(Moment(at(50).wall, "", 0)))
    assert found.all()[0].seen == Moment(at(50).wall, "", 0)
    place_of(tmp_path, end="seen").write_bytes(moment_text(Moment(at(-50).wall, "", 0)))
    assert found.all()[0].seen == at(0)
    # Whoever writes it knows better: the clock was set back, and nobody counts since the boot.
    place_of(tmp_path, end="seen").write_bytes(moment_text(Moment(at(50).wall, "", 0)))
    found.write(replace(intent, seen=Moment(at(-50).wall, "", 0)))
    assert found.all()[0].seen == Moment(at(-50).wall, "", 0)


@given(st.binary(max_size=40) | moments.map(moment_text))
def test_what_was_seen_is_a_moment_or_nothing(raw: bytes) -> None:
    found = moment_from(raw)
    assert found is None or moment_from(moment_text(found)) == found


def test_a_last_activity_that_cannot_be_read_is_none(tmp_path: Path) -> None:
    found = stored(tmp_path, intent_of(tmp_path))
    place_of(tmp_path, end="seen").write_bytes(b"[1,2")
    assert found.all() == (intent_of(tmp_path),)


def test_the_newest_record_that_declares_says_by_which_digest_an_intent_is_known(tmp_path: Path) -> None:
    ledger = Ledger(str(tmp_path))
    assert declared_digest(ledger, NAME) is None
    for action, name, digest in (
        ("declared", NAME, "one"),
        ("promoted", NAME, "two"),
        ("declared", "i-ffffffff", "other"),
        ("renewed", NAME, "three"),
        ("cleared", NAME, "four"),
    ):
        ledger.record("intent", {"action": action, "id": name, "digest": digest, "reason": f"not {NAME}"})
    assert (declared_digest(ledger, NAME), declared_digest(ledger, "i-ffffffff")) == ("two", "other")


def test_a_ledger_that_cannot_be_read_is_no_missing_record(tmp_path: Path) -> None:
    ledger = Ledger(str(tmp_path))
    ledger.path.mkdir(parents=True)
    with pytest.raises(UndecidedError, match="Is a directory"):
        declared_digest(ledger, NAME)


def test_a_holder_is_one_process_of_one_boot_on_one_host() -> None:
    ours = Owner.current()
    owner = IntentOwner(host_name(), ours.pid, ours.boot_id, ours.started)
    assert is_running(owner)
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    for other in (
        replace(owner, started="1"),
        replace(owner, host="elsewhere"),
        replace(owner, boot_id=BOOT),
        replace(owner, pid=ended.pid),
        None,
    ):
        assert not is_running(other)
    assert Owner.of(ended.pid) is None
    assert Owner.of(0) is None
    assert Owner.of(2**40) is None
    assert Owner.of(ours.pid) == ours


def test_a_process_is_told_its_parent_whatever_its_name_is(tmp_path: Path) -> None:
    program = tmp_path / "a) b (c"
    program.symlink_to(sys.executable)
    with subprocess.Popen(
        [program, "-c", "input()"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL
    ) as child:
        assert parent_of(child.pid) == (os.getpid(), "a) b (c")
        child.communicate(b"\n")
    assert parent_of(2**30) is None


def test_an_intent_lives_by_its_lease_or_its_holder_and_never_past_its_time() -> None:
    ours = Owner.current()
    held = intent_of(owner=IntentOwner(host_name(), ours.pid, ours.boot_id, ours.started))
    left = replace(held, owner=replace(held.owner, started="1") if held.owner else None)
    assert (is_alive(held, at(299)), is_alive(left, at(299))) == (True, True)
    assert (is_alive(held, at(301)), is_alive(left, at(301))) == (True, False)
    assert (is_alive(held, at(3601)), is_alive(left, at(3601))) == (False, False)


def test_now_is_told_by_the_wall_and_since_the_boot() -> None:
    first, second = current_moment(), current_moment()
    assert first.boot_id == second.boot_id == Owner.current().boot_id
    since = first.until(second)
    assert since is not None
    assert since >= 0
    assert (first.boot > 0) == bool(first.boot_id)


def test_reading_an_intent_loads_nothing_that_a_commit_does_not_have(tmp_path: Path) -> None:
    """Every commit hook of a worktree that has an intent does this."""
    found = stored(tmp_path, intent_of(tmp_path))
    package = str(Path(patchgate.__file__).parent.parent)
    script = (
        "import sys; sys.path.append(sys.argv[1])\n"
        "from patchgate.intents.stored_intents import StoredIntents, current_moment\n"
        "found = StoredIntents(sys.argv[2])\n"
        "(intent,) = found.of(sys.argv[2])\n"
        "found.touch(intent, current_moment())\n"
        "print(intent.id, *sys.modules, sep='\\n')\n"
    )
    argv = [sys.executable, "-I", "-S", "-c", script, package, str(tmp_path)]
    done = subprocess.run(argv, capture_output=True, text=True, check=True)
    name, *loaded = done.stdout.splitlines()
    assert name == found.names()[0]
    assert sorted(each for each in loaded if each.startswith("patchgate.")) == [
        *(
            "patchgate.errors",
            "patchgate.exit_codes",
            "patchgate.git",
            "patchgate.git.path",
            "patchgate.git.quoting",
        ),
        *("patchgate.intents", "patchgate.intents.intent"),
        *("patchgate.intents.intent_file", "patchgate.intents.stored_intents"),
        *("patchgate.storage", "patchgate.storage.owner", "patchgate.values"),
    ]
    heavy = {
        "dataclasses",
        "pydantic",
        "pygit2",
        "click",
        "pathspec",
        "subprocess",
        "pathlib",
        "tempfile",
        "random",
        "typing",
    }
    assert not heavy.intersection(loaded)


def test_what_could_not_be_read_again_is_not_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("patchgate.intents.stored_intents.MOST_BYTES", 2000)
    found = stored(tmp_path, intent_of(tmp_path))
    many = {RepoPath(b"%d" % number): (OID,) for number in range(50)}
    with pytest.raises(UndecidedError, match="50 files are dirty"):
        found.write(intent_of(tmp_path, dirty=many))
    assert found.all() == (intent_of(tmp_path),)


def test_two_writers_take_turns(tmp_path: Path) -> None:
    found = StoredIntents(str(tmp_path))

    with found.lock():
        stored(tmp_path, intent_of(tmp_path))

        from patchgate.storage.lock import acquire

        with pytest.raises(UndecidedError), acquire(os.path.join(found.folder, ".lock"), timeout_seconds=0):
            raise AssertionError("two at once")
    with found.lock():
        assert found.all() == (intent_of(tmp_path),)


def test_an_activity_does_not_bring_a_dead_one_to_life(tmp_path: Path) -> None:
    found = stored(tmp_path, intent_of(tmp_path))
    (intent,) = found.all()
    found.touch(intent, at(301))
    assert not place_of(tmp_path, end="seen").exists()
    found.touch(intent, at(300))
    assert place_of(tmp_path, end="seen").exists()
