"""Changes to owned paths land on a protected branch only with their owners' signed approvals."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from patchgate.approvals.approvals import Statement, read_lines
from patchgate.approvals.grants import Grant
from patchgate.approvals.owners import _different_people
from patchgate.approvals.signers import read_signers
from patchgate.errors import UsageError
from patchgate.ledger.timestamps import parse_span
from tests.approvals.owners_world import GOVERNED, ID, OWNED, Team, key_of
from tests.signing import AT, REF, SIGNERS, Key, anchor, needs_ssh_keygen, put_note
from tests.world import Repo

pytestmark = [needs_ssh_keygen, pytest.mark.turns(4)]
RULE = "owner-approval-missing"
LOOSER = GOVERNED + "[content]\nsecrets = false\n"
INFRA = '[policy]\n[[owners]]\npaths = ["infra/**"]\nsigners = ["alice@example.com", "bob@example.com"]\n'


def refused(team: Team, *refs: str) -> str:
    """Push, which the server must refuse by the rule; give what it said."""
    before = team.server.ask("for-each-ref", "refs/heads")
    answer = team.push(*refs)
    assert answer.code != 0
    assert RULE in answer.err
    assert team.server.ask("for-each-ref", "refs/heads") == before
    return answer.err


def landed(team: Team, commit: str, *refs: str) -> None:
    """Push, which the server must accept."""
    answer = team.push(*refs)
    assert (answer.code, team.head()) == (0, commit), answer.err


def test_a_change_of_the_policy_needs_the_approval_of_a_signer(tmp_path: Path) -> None:
    team = Team.make(tmp_path)
    change = team.dev.policy(LOOSER)
    for is_real in (True, False):
        answer = team.push(is_real=is_real)
        assert (answer.code, team.head() == change) == (1, False)
        assert RULE in answer.err
        # Another commit may be made to have the same first digits.
        assert f"approve {change} --for refs/heads/main --repository {ID}" in answer.err
    assert team.approve("alice").code == 0
    assert team.push(is_real=True).code == 0
    assert team.head() == change


def test_what_nobody_owns_needs_no_approval(tmp_path: Path) -> None:
    team = Team.make(tmp_path)
    landed(team, team.dev.commit({"a": "2\n"}))


def test_a_key_that_the_push_itself_adds_approves_nothing(tmp_path: Path) -> None:
    team = Team.make(tmp_path)
    team.dev.commit({SIGNERS: team.keys["mallory"].allowed("mallory@example.com")})
    team.approve("mallory")
    team.dev.policy(LOOSER)
    team.approve("mallory")
    refused(team)


def test_a_change_of_the_signers_is_approved_by_a_key_from_before_it(tmp_path: Path) -> None:
    team = Team.make(tmp_path, "[policy]\n")
    keys = team.keys["alice"].allowed("alice@example.com") + team.keys["bob"].allowed("bob@example.com")
    change = team.dev.commit({SIGNERS: keys})
    team.approve("bob")
    refused(team)
    assert team.approve("alice").code == 0
    landed(team, change)
    loose = team.dev.commit({SIGNERS: team.keys["bob"].allowed("bob@example.com")})
    assert team.approve("bob").code == 0
    landed(team, loose)


@pytest.mark.parametrize("named", [True, False])
def test_the_first_signers_come_from_the_command_line_of_the_server(tmp_path: Path, named: bool) -> None:
    team = Team.make(tmp_path, "[policy]\n", signers=(), server_signers=("alice",) if named else ())
    change = team.dev.commit({SIGNERS: team.keys["bob"].allowed("bob@example.com")})
    assert "install --server --signer" in refused(team) or named
    team.approve("bob")
    refused(team)
    team.approve("alice")
    if named:
        landed(team, change)
    else:
        refused(team)


def test_a_lost_last_key_is_replaced_on_the_server(tmp_path: Path) -> None:
    team = Team.make(tmp_path)
    change = team.dev.commit({SIGNERS: team.keys["bob"].allowed("bob@example.com")})
    team.approve("bob")
    refused(team)
    team.install("--signer", f"{team.keys['bob'].public} bob@example.com")
    team.dev.git("update-ref", "-d", "refs/notes/patchgate-approvals")
    team.approve("bob")
    landed(team, change)


def test_as_many_owners_must_approve_as_the_table_asks_for(tmp_path: Path) -> None:
    team = Team.make(tmp_path, INFRA + "approvals = 2\n", signers=("alice", "bob", "mallory"))
    change = team.dev.commit({"infra/main.tf": "2\n"})
    team.approve("alice")
    team.approve("mallory")
    said = refused(team)
    assert "has 1" in said, said
    assert "mallory@example.com approved, but is not an owner" in said
    team.approve("alice")
    refused(team)
    team.approve("bob")
    landed(team, change)


@pytest.mark.parametrize("approvals", [1, 2])
@pytest.mark.parametrize("named", [True, False])
def test_a_signer_whom_only_the_server_names_owns_other_paths_where_a_table_names_him(
    tmp_path: Path, named: bool, approvals: int
) -> None:
    signers = 'signers = ["alice@example.com", "bob@example.com"]\n' if named else ""
    table = f'[[owners]]\npaths = ["infra/**"]\n{signers}approvals = {approvals}\n'
    team = Team.make(tmp_path, GOVERNED + table, signers=("alice", "mallory"), server_signers=("bob",))
    change = team.dev.commit({"infra/main.tf": "2\n"})
    assert team.approve("alice").code == 0
    note = team.dev.ask("notes", "--ref", REF, "list").split()[0]
    (signed,), _ = read_lines(team.dev.git("cat-file", "-p", note))
    if approvals == 1:
        team.dev.git("update-ref", "-d", REF)
    mine = team.keys["bob"].sign(replace(signed.statement, by="bob <bob@example.com>"))
    lines = mine.to_line() + (signed.to_line() if approvals == 2 else b"")
    put_note(team.dev, signed.statement.change_id, lines)
    if named:
        landed(team, change)
    else:
        refused(team)


def test_one_key_under_two_names_is_one_owner(tmp_path: Path) -> None:
    team = Team.make(tmp_path, INFRA + "approvals = 2\n", signers=())
    team.install("--signer", f"{team.keys['alice'].public} alice@example.com")
    team.dev.commit({SIGNERS: team.keys["alice"].allowed("*@example.com")})
    team.approve("alice")
    landed(team, team.dev.head())
    team.dev.git("fetch", "-q", "origin")
    team.dev.commit({"infra/main.tf": "2\n"})
    team.approve("alice")
    team.keys["bob"] = team.keys["alice"]
    assert team.approve("bob").code == 0
    assert "has 1" in refused(team)


@pytest.mark.parametrize(
    ("lines", "people"),
    [
        ("team,alice:alice team,bob:bob", 2),
        ("team,alice:alice team,bob:bob team:mallory", 2),
        ("alice:alice bob:bob alice,bob:mallory", 2),
        ("team:alice team:bob", 1),
        ("alice:alice alice:bob", 1),
        ("alice:alice alice,al:bob", 1),
        ("alice:alice bob:alice", 1),
        ("team,alice:alice team,alice:bob bob:alice", 1),
    ],
)
def test_two_keys_are_of_two_people_if_each_has_a_name_that_the_other_lacks(
    tmp_path: Path, lines: str, people: int
) -> None:
    team = Team.make(tmp_path, '[policy]\n[[owners]]\npaths = ["infra/**"]\napprovals = 2\n', signers=())
    team.install("--signer", f"{team.keys['mallory'].public} root@example.com")
    found = [line.partition(":") for line in lines.split()]
    addresses = [",".join(f"{name}@example.com" for name in names.split(",")) for names, _, _ in found]
    listed = [team.keys[key].allowed(each) for each, (_, _, key) in zip(addresses, found, strict=True)]
    start = team.dev.commit({SIGNERS: "".join(listed)})
    team.approve("mallory")
    landed(team, start)
    team.dev.git("fetch", "-q", "origin")
    team.install()
    (team.server.path / "patchgate/allowed_signers").unlink()
    change = team.dev.commit({"infra/main.tf": "2\n"})
    for key in dict.fromkeys(key for _, _, key in found):
        assert team.approve(key).code == 0
    if people == 2:
        landed(team, change)
    else:
        assert "has 1" in refused(team)


def grant(key: str, **known: Any) -> Grant:
    return Grant(
        Statement("sha256:" + "0" * 64, "sha256:" + "0" * 64, (RULE,), "x", key, AT),
        "x",
        True,
        key,
        **known,
    )


@pytest.mark.parametrize(
    ("one", "other", "is_another"),
    [
        ({"in_base": ("a",), "from_base": True}, {"in_base": ("b",), "from_base": True}, True),
        # The server names the keys of one person by her machines.
        (
            {"in_base": ("a",), "from_base": True, "in_server": ("x",), "from_server": True},
            {"in_base": ("a",), "from_base": True, "in_server": ("y",), "from_server": True},
            False,
        ),
        (
            {"in_base": ("a",), "from_base": True, "in_server": ("server",), "from_server": True},
            {"in_base": ("b",), "from_base": True, "in_server": ("server",), "from_server": True},
            True,
        ),
        # A pattern names nobody, whatever its signers call themselves.
        ({"from_base": True}, {"from_base": True}, False),
        ({"in_base": ("a",), "from_base": True}, {"from_base": True}, False),
        ({"in_base": ("a",), "from_base": True}, {"in_server": ("b",), "from_server": True}, True),
    ],
)
def test_two_keys_are_told_apart_by_the_lists_that_have_both(
    one: dict[str, Any], other: dict[str, Any], is_another: bool
) -> None:
    found = _different_people([grant("1", **one), grant("2", **other)])
    assert len(found) == (2 if is_another else 1)


@pytest.mark.parametrize(
    ("names", "people"),
    [
        ("a,b b,c c,a", 2),
        ("a,b b,c c,a d", 3),
        ("a,b b,c c,d", 2),
        ("a,b b,c c,d e,d", 3),
        ("a b c", 3),
        ("a,team b,team c,team", 3),
        ("team team,a team,b team,a,b", 2),
    ],
)
def test_each_of_several_people_has_a_name_that_none_of_the_others_has(names: str, people: int) -> None:
    keys = [
        grant(str(n), in_base=tuple(each.split(",")), from_base=True) for n, each in enumerate(names.split())
    ]
    assert len(_different_people(keys)) == people


@pytest.mark.parametrize("end", ["\u2028", "\u0085", "\f", "\v", "\x1c"])
def test_a_comment_names_no_second_signer(tmp_path: Path, end: str) -> None:
    keys = [key_of(name) for name in ("bob", "mallory")]
    named = f"bob@example.com {keys[0].public} laptop{end}alice@example.com {keys[1].public}\n"
    (tmp_path / "signers").write_text(named)
    assert read_signers([str(tmp_path / "signers")]).count(b"\n") == 1


@pytest.mark.parametrize(
    ("names", "people"),
    [
        ("a,m1 a,m2", 1),
        ("a,m1 b,m2", 2),
        ("a,m1 a,m2 b,m1", 2),
        ("a,m1 m2", 1),
        ("m1 m2", 1),
        ("m1", 1),
        ("a,b a", 1),
    ],
)
def test_where_a_table_names_signers_only_these_names_tell_its_owners_apart(names: str, people: int) -> None:
    keys = [
        grant(str(n), in_base=tuple(each.split(",")), from_base=True) for n, each in enumerate(names.split())
    ]
    assert len(_different_people(keys, frozenset({"a", "b"}))) == people


def test_a_key_with_more_names_than_are_looked_at_approves_nothing(tmp_path: Path) -> None:
    """Who it is might be told by one that is not looked at."""
    team = Team.make(tmp_path, INFRA, signers=("alice", "bob"))
    others = ",".join(f"a{n}@example.com" for n in range(20))
    key = team.keys["mallory"]
    team.dev.commit({SIGNERS: team.keys["bob"].allowed("bob@example.com") + key.allowed(others)})
    team.server.git("fetch", "-q", str(team.dev.path), "main:main", "--update-head-ok")
    team.dev.git("fetch", "-q", "origin")
    more = team.dev.commit({SIGNERS: key.allowed(f"alice@example.com,{others}")})
    team.dev.commit({"infra/main.tf": "2\n"})
    answer = team.approve("mallory")
    assert (answer.code, "more than 20 principals" in answer.err) == (2, True)
    team.dev.git("reset", "-q", "--hard", f"{more}^")
    team.dev.commit({"infra/main.tf": "2\n"})
    assert team.approve("mallory").code == 0


@pytest.mark.parametrize("name", ["infra/main.tf", "infra/new", "INFRA/x", "infra/sub/deep"])
def test_owned_paths_are_owned_whatever_is_done_to_them(tmp_path: Path, name: str) -> None:
    team = Team.make(tmp_path, INFRA, signers=("alice", "bob"))
    if name == "infra/main.tf":
        team.dev.git("mv", "infra/main.tf", "elsewhere")
        team.dev.commit()
    else:
        team.dev.commit({name: "x\n"})
    refused(team)


def test_the_owners_are_those_of_the_base(tmp_path: Path) -> None:
    team = Team.make(tmp_path)
    team.dev.policy('[policy]\n[[owners]]\npaths = ["@policy"]\nsigners = ["mallory@example.com"]\n')
    team.approve("mallory")
    refused(team)
    team.dev.git("reset", "-q", "--hard", "origin/main")
    team.dev.policy(f'[policy]\n[governance]\nid = "{ID}"\n')
    refused(team)


def test_another_branch_is_pushed_with_a_warning_and_merged_with_an_approval(tmp_path: Path) -> None:
    team = Team.make(tmp_path)
    team.dev.git("switch", "-q", "-c", "topic")
    change = team.dev.policy(LOOSER)
    answer = team.push("topic")
    assert answer.code == 0
    assert "has owners" in answer.err
    refused(team, "topic:main")
    team.approve("alice")
    landed(team, change, "topic:main")


def test_a_commit_that_an_open_branch_gets_too_still_needs_its_approval(tmp_path: Path) -> None:
    team = Team.make(tmp_path)
    team.dev.policy(LOOSER)
    refused(team, "main:refs/heads/aaa", "main")


def test_the_signature_of_a_commit_is_no_approval(tmp_path: Path) -> None:
    team = Team.make(tmp_path)
    team.dev.git("config", "gpg.format", "ssh")
    team.dev.git("config", "user.signingKey", str(team.keys["alice"].path))
    team.dev.write("patchgate.toml", LOOSER)
    team.dev.git("commit", "-q", "-a", "-S", "-m", "Loosen the policy")
    refused(team)


def test_a_commit_warns_whom_the_server_will_ask(tmp_path: Path) -> None:
    team = Team.make(tmp_path, INFRA, signers=("alice",))
    team.dev.stage({"infra/main.tf": "2\n"})
    answer = team.dev.check()
    assert (answer.code, answer.verdict) == (0, "accepted")
    (warning,) = answer.report["warnings"]
    assert "infra/main.tf" in warning
    assert "alice@example.com" in warning
    assert "bob@example.com" in warning


def test_the_installed_hooks_warn_at_the_commit_and_refuse_the_push(tmp_path: Path) -> None:
    team = Team.make(tmp_path, INFRA, signers=("alice",))
    team.dev.install()
    team.dev.stage({"infra/main.tf": "2\n"})
    done = team.dev.try_git("commit", "-q", "-m", "Change the infrastructure")
    assert done.returncode == 0
    assert done.stderr.count(b"infra/main.tf has owners") == 1
    refusal = team.dev.try_git("push", "origin", "main")
    assert refusal.returncode != 0
    assert RULE.encode() in refusal.stdout
    team.approve("alice")
    assert team.dev.try_git("push", "-q", "origin", "main", "refs/notes/*:refs/notes/*").returncode == 0


def test_a_refusal_names_the_owner_that_codeowners_of_the_base_has(tmp_path: Path) -> None:
    team = Team.make(tmp_path, INFRA, signers=("alice",))
    team.dev.commit({".github/CODEOWNERS": "/infra/ @platform\n"})
    assert team.push().code == 0
    team.dev.commit({"infra/main.tf": "2\n", ".github/CODEOWNERS": "/infra/ @mallory\n"})
    asked = ("--policy-from", "refs/remotes/origin/main", "HEAD")
    (finding,) = team.dev.check(*asked).findings
    assert (finding["rule"], finding["details"]["owner"]) == (RULE, ["@platform"])
    assert "owner: @platform" in team.dev.cli("check", *asked).out


# What an approval of control files is bound to.


def test_an_approval_from_before_the_rules_moved_does_not_count_again(tmp_path: Path) -> None:
    team = Team.make(tmp_path)
    loose = team.dev.policy(LOOSER)
    team.approve("alice")
    landed(team, loose)
    back = team.dev.policy(GOVERNED)
    team.dev.git("fetch", "-q", "origin")
    assert team.approve("alice").code == 0
    landed(team, back)
    team.dev.policy(LOOSER)
    said = refused(team)
    assert f"{back[:12]} changed them last" in said


def test_an_approval_for_another_branch_does_not_count(tmp_path: Path) -> None:
    policy = GOVERNED + '[push]\nprotected_refs = ["refs/heads/main", "refs/heads/next"]\n'
    team = Team.make(tmp_path, policy)
    team.dev.git("push", "-q", "--no-verify", "origin", "main:next")
    team.dev.git("fetch", "-q", "origin")
    change = team.dev.policy(policy + "[content]\nsecrets = false\n")
    assert team.approve("alice", "HEAD", "--for", "refs/heads/next").code == 0
    said = refused(team)
    assert "next" in said
    assert "main" in said
    refused(team, "main:next", "main")
    assert team.push("main:next").code == 0
    team.approve("alice")
    landed(team, change)


def test_an_approval_of_another_repository_does_not_count(tmp_path: Path) -> None:
    team = Team.make(tmp_path)
    change = team.dev.policy(LOOSER)
    assert team.approve("alice").code == 0
    (judged,) = team.dev.check("HEAD").changes
    line = team.dev.git("notes", "--ref", REF, "show", anchor(team.dev, judged["change_id"]))
    ((signed,), _) = read_lines(line)
    for other in ("repository-2", None):
        elsewhere = replace(signed.statement, repository=other)
        put_note(team.dev, judged["change_id"], team.keys["alice"].sign(elsewhere).to_line())
        refused(team)
    put_note(team.dev, judged["change_id"], line)
    landed(team, change)


@pytest.mark.parametrize("identity", ['id = "repository-2"', ""])
def test_no_approval_names_the_repository_that_the_change_names(tmp_path: Path, identity: str) -> None:
    """It would count there, where the same policy and the same change may be."""
    team = Team.make(tmp_path)
    team.dev.policy(GOVERNED.replace(f'id = "{ID}"', identity))
    team.dev.commit({"infra/a": "2\n"})
    # By the policy of its parent, and by the same one as CI may name it.
    for place in ((), ("--policy-from", "HEAD~")):
        assert team.approve("alice", "HEAD", "--for", "refs/heads/main", *place).code == 2


@pytest.mark.parametrize("policy", [GOVERNED, GOVERNED.replace(OWNED, "")], ids=["owned", "not owned"])
@pytest.mark.parametrize("named", ['id = "repository-2"', "", None])
def test_a_protected_branch_keeps_the_id_of_its_repository(
    tmp_path: Path, policy: str, named: str | None
) -> None:
    """Else whoever may push could bring the id of a fork, with the approval that this change had there."""
    team = Team.make(tmp_path, policy)
    if named is None:
        team.dev.git("rm", "-q", "patchgate.toml")
        team.dev.commit({})
    else:
        team.dev.policy(policy.replace(f'id = "{ID}"', named))
    team.approve("alice")
    assert "would get another [governance] id" in refused(team)


@pytest.mark.parametrize("is_owned", [True, False])
@pytest.mark.parametrize("has", ["nothing", "another id", "no policy that can be read", "no default policy"])
def test_an_approval_is_for_the_repository_that_the_default_branch_names(
    tmp_path: Path, has: str, *, is_owned: bool
) -> None:
    """Whoever may push other branches writes what these name, and what stands below a change."""
    denied = f'[policy]\ndeny = ["infra/**"]\n{OWNED}[governance]\nid = "{ID}"\n'
    team = Team.make(tmp_path, GOVERNED + '[[owners]]\npaths = ["infra/**"]\n' if is_owned else denied)
    dev = team.dev
    other = dev.git("show", "HEAD:patchgate.toml").decode().replace(ID, "repository-2")
    if has == "no policy that can be read":
        broken = dev.policy("[policy\n")
        dev.git("update-ref", "refs/remotes/origin/main", broken)
    if has == "no default policy":
        dev.git("update-ref", "refs/remotes/origin/main", "HEAD~2")
    before = dev.head()
    dev.policy(other)
    change = dev.commit({"infra/a": "2\n"})
    why = "names no repository" if has == "no default policy" else "another repository"
    for release in ("HEAD~", before):
        dev.git("update-ref", "refs/remotes/origin/release", release)
        for place in ((), ("--policy-from", "HEAD~"), ("--policy-from=HEAD~", "--repository=repository-2")):
            for branch in ("--for=refs/heads/release", "--for=refs/heads/main", "--expires=30d"):
                answer = team.approve("alice", change, *place, branch)
                assert (answer.code, why in answer.err) == (2, True), answer.err
    # Nor do the rules of another branch name it themselves.
    dev.git("update-ref", "refs/remotes/origin/release", "HEAD")
    rules = dev.policy(other + "# new\n")
    answer = team.approve("alice", rules, "--for=refs/heads/release", "--policy-from=HEAD~")
    assert (answer.code, why in answer.err) == (2, True), answer.err


def test_an_approval_is_for_the_repository_that_the_printed_line_names(tmp_path: Path) -> None:
    """The line may be pasted in a clone of another one, which has the commit, too."""
    team = Team.make(tmp_path)
    change = team.dev.policy(LOOSER)
    for wanted, code in (("repository-2", 2), ("", 2), (ID, 0)):
        answer = team.approve("alice", change, "--repository", wanted)
        assert answer.code == code
        assert f"for: {ID}, refs/heads/main" in answer.err or code == 2
    landed(team, change)


def test_what_is_signed_is_named_by_whole_ids(tmp_path: Path) -> None:
    """Two commits with the same first digits are made in a minute, and a clone may have only one of them."""
    team = Team.make(tmp_path)
    change = team.dev.policy(LOOSER)
    base = team.head()
    for name, place in ((change[:12], base), (change[:-1], base), (change, base[:12])):
        answer = team.approve("alice", name, "--policy-from", place)
        assert (answer.code, "is the beginning of an id" in answer.err) == (2, True)
    assert team.approve("alice", "HEAD", "--policy-from", base).code == 0
    landed(team, change)


def test_an_approval_ends(tmp_path: Path) -> None:
    team = Team.make(tmp_path)
    change = team.dev.policy(LOOSER)
    assert team.approve("alice", "HEAD", "--expires", "30d").code == 0
    (judged,) = team.dev.check("HEAD").changes
    line = team.dev.git("notes", "--ref", REF, "show", anchor(team.dev, judged["change_id"]))
    ((signed,), _) = read_lines(line)
    past = replace(signed.statement, expires="2024-01-31T00:00:00Z")
    put_note(team.dev, judged["change_id"], team.keys["alice"].sign(past).to_line())
    assert "expired at 2024-01-31T00:00:00Z" in refused(team)
    put_note(team.dev, judged["change_id"], line)
    landed(team, change)


@pytest.mark.parametrize("text", ["", "30", "0d", "d", "-1d", "99999999w", "1y", "٣d"])
def test_a_span_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(UsageError) as refusal:
        parse_span(text)
    assert refusal.value.hint


# Bad input.


def forged(line: bytes, **other: object) -> bytes:
    """Change a statement after it was signed."""
    value = json.loads(line)
    value["statement"].update(other)
    return json.dumps(value).encode("ascii") + b"\n"


FORGERIES: dict[str, Callable[[bytes], bytes]] = {
    "another branch": lambda line: forged(line, ref="refs/heads/main"),
    "another time": lambda line: forged(line, expires="2999-01-01T00:00:00Z"),
    "no signature": lambda line: json.dumps({"statement": json.loads(line)["statement"]}).encode() + b"\n",
    "an empty signature": lambda line: json.dumps({**json.loads(line), "signature": ""}).encode() + b"\n",
    "an older form": lambda line: forged(line, schema="patchgate.approval/1"),
    "half a line": lambda line: line[: len(line) // 2],
    "10 MB": lambda line: line + b"x" * (10 << 20),
    "nothing": lambda _: b"\0",
    "an open list": lambda _: b"[" * 60_000,
}


@pytest.mark.sweep(4)
@pytest.mark.parametrize("name", FORGERIES)
def test_a_note_that_was_tampered_with_approves_nothing(tmp_path: Path, name: str) -> None:
    team = Team.make(tmp_path)
    team.dev.policy(LOOSER)
    (change,) = team.dev.check("HEAD").changes
    team.dev.git("branch", "next", "origin/main")
    team.dev.git("push", "-q", "--no-verify", "origin", "next")
    team.dev.git("fetch", "-q", "origin")
    assert team.approve("alice", "HEAD", "--for", "refs/heads/next", "--expires", "2d").code == 0
    line = team.dev.git("notes", "--ref", REF, "show", anchor(team.dev, change["change_id"]))
    put_note(team.dev, change["change_id"], FORGERIES[name](line))
    refused(team)


def test_of_two_notes_in_conflict_the_whole_lines_count(tmp_path: Path) -> None:
    team = Team.make(tmp_path, INFRA + "approvals = 2\n", signers=("alice", "bob"))
    change = team.dev.commit({"infra/main.tf": "2\n"})
    (judged,) = team.dev.check("HEAD").changes
    lines = []
    for who in ("alice", "bob"):
        team.approve(who)
        lines.append(team.dev.git("notes", "--ref", REF, "show", anchor(team.dev, judged["change_id"])))
        team.dev.git("update-ref", "-d", REF)
    put_note(team.dev, judged["change_id"], b"<<<<<<< ours\n" + lines[0] + b"=======\n" + lines[1][:50])
    assert "has 1" in refused(team)
    put_note(team.dev, judged["change_id"], b"=======\n".join(lines))
    landed(team, change)


@pytest.mark.sweep(2)
@pytest.mark.parametrize("text", ["", "\0", "alice@example.com\n", "# nobody\n", "a" * (2 << 20)])
def test_where_the_signers_cannot_be_read_nobody_approves(tmp_path: Path, text: str) -> None:
    team = Team.make(tmp_path, INFRA, signers=())
    team.dev.commit({SIGNERS: text})
    # As an administrator does, past the hook.
    team.server.git("fetch", "-q", str(team.dev.path), "main:main", "--update-head-ok")
    team.dev.git("fetch", "-q", "origin")
    team.dev.commit({"infra/main.tf": "2\n"})
    team.approve("alice")
    before = team.head()
    answer = team.push()
    assert (answer.code != 0, team.head()) == (True, before)
    assert "Traceback" not in answer.err


# In CI.


def test_ci_asks_for_the_approval_by_the_signers_of_the_base(tmp_path: Path) -> None:
    team = Team.make(tmp_path)
    team.dev.policy(LOOSER)
    asked = ("--policy-from", "refs/remotes/origin/main", "refs/remotes/origin/main..HEAD")
    answer = team.dev.check(*asked, CI="true")
    assert (answer.code, answer.errors) == (1, [RULE])
    (finding,) = answer.findings
    assert finding["path"] == "patchgate.toml"
    assert finding["details"]["ref"] == "refs/heads/main"
    assert finding["details"]["table"] == "owners[0]"
    assert any(REF in warning for warning in answer.report["warnings"])
    team.approve("alice")
    assert team.dev.check(*asked, CI="true").verdict == "accepted"


def test_ci_accepts_the_first_signers_by_a_key_of_its_command_line(tmp_path: Path) -> None:
    team = Team.make(tmp_path, "[policy]\n", signers=())
    team.dev.commit({SIGNERS: team.keys["bob"].allowed("bob@example.com")})
    asked = ("--policy-from", "refs/remotes/origin/main", "HEAD")
    team.approve("alice")
    assert team.dev.check(*asked, CI="true").errors == [RULE]
    key = f"{team.keys['alice'].public} alice@example.com"
    assert team.dev.check(*asked, "--signer", key, CI="true").verdict == "accepted"
    other = team.keys["mallory"].public
    assert team.dev.check(*asked, "--signer", other, CI="true").errors == [RULE]


def test_a_policy_of_no_branch_lets_no_approval_count(tmp_path: Path) -> None:
    team = Team.make(tmp_path)
    team.dev.policy(LOOSER)
    team.approve("alice")
    answer = team.dev.check("--policy-from", team.head(), "HEAD", CI="true")
    assert answer.errors == [RULE]


NO_SIGNERS = [
    "",
    "no-such-file",
    "0xDEADBEEFDEADBEEF",
    "ssh-ed25519 not-base64",
    "ssh-rsa AAAAC3NzaC1lZDI1NTE5AAAAIA==",
    "a\0b",
    "alice@example.com",
]


@pytest.mark.parametrize("text", NO_SIGNERS)
def test_a_signer_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(UsageError) as refusal:
        read_signers([text])
    assert refusal.value.hint


@pytest.mark.parametrize(
    "raw", [b"", b"# nobody\n", b"\0", b"-----BEGIN PGP PUBLIC KEY-----\n", b"a" * (2 << 20)]
)
def test_a_file_without_signers_is_refused(tmp_path: Path, raw: bytes) -> None:
    (tmp_path / "keys").write_bytes(raw)
    with pytest.raises(UsageError):
        read_signers([str(tmp_path / "keys")])


def test_signers_are_keys_and_files_of_either_form(tmp_path: Path) -> None:
    one, two = Key.make(tmp_path, "one"), Key.make(tmp_path, "two")
    line = two.allowed("bob@example.com", 'namespaces="patchgate",valid-before="20990101"')
    (tmp_path / "keys").write_text(f"# both\n{line}\n{one.public} alice@example.com\n", encoding="ascii")
    assert read_signers([str(tmp_path / "keys")]).decode() == f"{line}alice@example.com {one.public}\n"
    assert read_signers([one.public]).decode() == f"server {one.public}\n"
    assert read_signers([f"{line}{one.public} alice@example.com\n"]) == read_signers([str(tmp_path / "keys")])


def test_the_command_line_refuses_what_goes_nowhere(tmp_path: Path) -> None:
    repo = Repo.create(tmp_path)
    repo.commit({"a": "1\n"})
    assert repo.check("--signer", "x").code == 2
    assert repo.check("--policy-from", "HEAD", "--signer", "x").code == 2
    assert repo.cli("install", "--signer", "x").code == 2
    assert repo.cli("approve", "HEAD", "--reason", "vendored from upstream", "--for", "main").code == 2
