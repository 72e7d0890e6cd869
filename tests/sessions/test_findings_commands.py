"""The commands of a push are the client's word: what a ref has is asked of the server itself."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.sessions.test_findings_refs import denied, served
from tests.world import Repo

MAIN = "refs/heads/main"
NONE = "0" * 40
_CAPABILITIES = b"\0report-status agent=test"


def packet(text: bytes) -> bytes:
    return b"%04x" % (len(text) + 4) + text


def push(dev: Repo, server: Repo, *commands: tuple[str, str, str]) -> str:
    """Send these commands (old value, new value, ref) as no git client would; give what the server said."""
    lines = [" ".join(command).encode() for command in commands]
    sent = packet(lines[0] + _CAPABILITIES) + b"".join(map(packet, lines[1:])) + b"0000"
    new = [oid for _, oid, _ in commands if oid != NONE]
    if new:
        sent += dev.git("pack-objects", "--stdout", "--revs", "-q", stdin="\n".join(new).encode())
    done = subprocess.run(
        ["git", "receive-pack", "--stateless-rpc", str(server.path)],
        input=sent,
        env=server.env,
        capture_output=True,
        check=False,
    )
    return (done.stdout + done.stderr).decode("utf-8", "backslashreplace")


@pytest.fixture
def both(tmp_path: Path) -> tuple[Repo, Repo]:
    return served(tmp_path)


def test_the_server_takes_honest_commands(both: tuple[Repo, Repo]) -> None:
    dev, server = both
    old, new = dev.head(), dev.commit({"a": "a\n"})
    assert f"ok {MAIN}" in push(dev, server, (old, new, MAIN))
    assert server.ask("rev-parse", MAIN) == new


def test_a_second_command_for_a_ref_makes_nothing_known(both: tuple[Repo, Repo]) -> None:
    dev, server = both
    old, bad = dev.head(), denied(dev)
    for commands in (
        [(old, bad, MAIN), (bad, bad, MAIN)],
        [(bad, bad, MAIN), (old, bad, MAIN)],
        [(old, bad, MAIN), (bad, NONE, MAIN)],
    ):
        said = push(dev, server, *commands)
        assert f"ok {MAIN}" not in said
        assert server.ask("rev-parse", MAIN) == old
        assert "undecided" in said


def test_a_false_old_value_makes_nothing_known(both: tuple[Repo, Repo]) -> None:
    dev, server = both
    old, bad = dev.head(), denied(dev)
    said = push(dev, server, (NONE, bad, "refs/heads/other"), (bad, bad, MAIN))
    (line,) = (line for line in said.splitlines() if old[:12] in line and bad[:12] in line)
    assert MAIN in line
    assert server.ask("for-each-ref", "--format=%(refname) %(objectname)") == f"{MAIN} {old}"


def test_main_is_not_deleted_by_a_command_that_says_it_is_not_there(both: tuple[Repo, Repo]) -> None:
    dev, server = both
    old = dev.head()
    dev.git("checkout", "-q", "--orphan", "other")
    other = dev.commit({"b": "b\n"}, "Begin anew")
    for commands in ([(NONE, NONE, MAIN)], [(NONE, NONE, MAIN), (NONE, other, MAIN)], [(NONE, other, MAIN)]):
        assert f"ok {MAIN}" not in push(dev, server, *commands)
        assert server.ask("rev-parse", MAIN) == old


def test_a_default_branch_that_head_names_as_a_tag_is_still_protected(both: tuple[Repo, Repo]) -> None:
    dev, server = both
    old = dev.head()
    dev.git("push", "-q", "origin", "main:refs/tags/v1")
    server.git("symbolic-ref", "HEAD", "refs/tags/v1")
    assert dev.try_git("push", "-q", "origin", ":main").returncode != 0
    assert server.ask("rev-parse", MAIN) == old


def test_no_object_is_replaced_by_a_push(both: tuple[Repo, Repo]) -> None:
    dev, server = both
    ref = f"refs/replace/{dev.ask('rev-parse', 'HEAD')}"
    done = dev.try_git("push", "-q", "origin", f"{denied(dev)}:{ref}")
    assert done.returncode != 0
    assert b"refs/replace/" in done.stderr
    assert server.ask("for-each-ref", "refs/replace") == ""
