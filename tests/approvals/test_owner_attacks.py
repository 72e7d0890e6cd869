"""Ways past the owners that were found by attack: merges, other refs, other histories. Each was an accept."""

from __future__ import annotations

import base64
import itertools
import json
import os
import re
import subprocess
import textwrap
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from patchgate.approvals import grants, owners
from patchgate.approvals.approvals import SignedStatement, Statement
from patchgate.approvals.signatures import check_signature
from patchgate.check import push_groups
from patchgate.errors import UndecidedError
from patchgate.git.objects import Objects
from patchgate.git.refs import missing_targets
from patchgate.git.repository import open_repository
from patchgate.policy.tree_policies import TreePolicies
from patchgate.process.cpu_limit import CpuBudget
from tests.amount import IS_LONG
from tests.approvals.owners_world import GOVERNED, OWNED, Team
from tests.component_world import contract, declared
from tests.signing import AT, BY, REF, SIGNERS, Key, needs_ssh_keygen, put_note
from tests.world import AskedGit, Repo

pytestmark = [needs_ssh_keygen, pytest.mark.turns(6)]
RULE = "owner-approval-missing"
LOOSER = GOVERNED + "[content]\nsecrets = false\n"
INFRA = GOVERNED + '[[owners]]\npaths = ["infra/**"]\n'
PROTECTED = '[push]\nprotected_refs = ["refs/heads/main", "refs/heads/release/*"]\n'
LONG = "".join(f"# line {number}\n" for number in range(20))


def commit_of(repo: Repo, base: str | None, files: Mapping[str, str | None], *parents: str) -> str:
    """Make a commit by plumbing: the files of a commit, and others; its parents are that commit or these."""
    index = str(repo.path / ".git" / "other-index")
    repo.git("read-tree", base or "--empty", GIT_INDEX_FILE=index)
    for name, content in files.items():
        if content is None:
            repo.git("update-index", "--force-remove", name, GIT_INDEX_FILE=index)
            continue
        oid = repo.git("hash-object", "-w", "--stdin", stdin=content.encode()).decode().strip()
        repo.git("update-index", "--add", "--cacheinfo", f"100644,{oid},{name}", GIT_INDEX_FILE=index)
    tree = repo.git("write-tree", GIT_INDEX_FILE=index).decode().strip()
    above = parents or ((base,) if base else ())
    return repo.ask("commit-tree", tree, *(word for oid in above for word in ("-p", oid)), "-m", "Change")


def clean_merge(repo: Repo, first: str, second: str) -> str:
    """Merge as git does it by itself, which must be clean."""
    words = ("merge-tree", "--write-tree", "--allow-unrelated-histories", first, second)
    tree = repo.git(*words).decode().split("\n", maxsplit=1)[0]
    return repo.ask("commit-tree", tree, "-p", first, "-p", second, "-m", "Merge")


def refused(team: Team, *refs: str, rule: str = RULE, is_real: bool = IS_LONG) -> str:
    before = team.server.ask("for-each-ref")
    answer = team.push(*refs, is_real=is_real)
    assert answer.code != 0
    assert rule in answer.err
    assert team.server.ask("for-each-ref") == before
    return answer.err


def approved(team: Team, policy: str, *refs: str) -> str:
    """Land a policy, which alice approves if it needs that."""
    commit = team.dev.policy(policy)
    team.approve("alice")
    assert team.push(*refs).code == 0
    team.dev.git("fetch", "-q", "origin")
    return commit


# Merges.


@pytest.mark.parametrize("path", ["patchgate.toml", SIGNERS])
def test_a_clean_merge_carries_no_edit_into_an_owned_path_by_a_rename(tmp_path: Path, path: str) -> None:
    team = Team.make(tmp_path, INFRA + LONG)
    dev, start = team.dev, team.dev.head()
    if path == SIGNERS:
        signers = dev.git("show", f"HEAD:{SIGNERS}").decode()
        other = signers + team.keys["mallory"].allowed("mallory@example.com")
    else:
        other = "[policy]\n" + LONG
    root = commit_of(dev, None, {"x/f": dev.git("show", f"HEAD:{path}").decode()})
    gone = commit_of(dev, clean_merge(dev, start, root), {"x/f": None})
    merge = clean_merge(dev, gone, commit_of(dev, root, {"x/f": other}))
    assert dev.git("show", f"{merge}:{path}").decode() == other
    refused(team, f"{merge}:refs/heads/main")
    asked = ("--policy-from", "refs/remotes/origin/main", f"refs/remotes/origin/main..{merge}")
    assert RULE in dev.check(*asked, CI="true").errors


def test_a_clean_merge_makes_no_file_a_control_file(tmp_path: Path) -> None:
    tools = "# tools\n# of the team\n# and their settings\n[tool.black]\n"
    plain = f'[project]\nname = "x"\n\n{tools}line-length = 88\n'
    table = (
        '[project]\nname = "x"\n\n[[tool.patchgate.owners]]\npaths = ["@policy"]\n'
        f"[tool.patchgate.content]\n{tools}line-length = 88\n"
    )
    team = Team.make(tmp_path, "[policy]\n", people=("alice", "bob"))
    dev = team.dev
    dev.git("rm", "-q", "patchgate.toml")
    fork = dev.commit({"pyproject.toml": plain})
    top = dev.commit({"pyproject.toml": table})
    team.server.git("fetch", "-q", str(dev.path), "main:main", "--update-head-ok")
    dev.git("fetch", "-q", "origin")
    side = commit_of(
        dev, fork, {"pyproject.toml": plain.replace("[tool.black]", "secrets = false\n[tool.black]")}
    )
    merge = clean_merge(dev, top, side)
    assert b"secrets = false" in dev.git("show", f"{merge}:pyproject.toml")
    refused(team, f"{merge}:refs/heads/main")


def test_a_merge_brings_nothing_back_that_was_superseded(tmp_path: Path) -> None:
    team = Team.make(tmp_path)
    start = team.dev.head()
    old = team.dev.policy(LOOSER)
    team.approve("alice")
    assert team.push().code == 0
    new = approved(team, GOVERNED)
    # A conflict, for which a merge may take either side.
    side = commit_of(team.dev, start, {"patchgate.toml": GOVERNED + "# other\n"})
    both = commit_of(team.dev, old, {}, new, side)
    refused(team, f"{both}:refs/heads/main")


def test_a_merge_that_swaps_its_parents_revives_no_approval(tmp_path: Path) -> None:
    team = Team.make(tmp_path)
    start = team.dev.head()
    approved(team, LOOSER)
    back = approved(team, GOVERNED)
    swapped = clean_merge(team.dev, commit_of(team.dev, start, {"side": "1\n"}), back)
    assert team.push(f"{swapped}:refs/heads/main").code == 0
    team.dev.git("reset", "-q", "--hard", swapped)
    team.dev.policy(LOOSER)
    assert "changed them last" in refused(team)


# Other refs.


def test_what_head_names_and_is_missing_cannot_be_made_beside_a_branch_with_owners(tmp_path: Path) -> None:
    team = Team.make(tmp_path)
    team.server.git("symbolic-ref", "HEAD", "refs/heads/master")
    loose = commit_of(team.dev, "origin/main", {"patchgate.toml": "[policy]\n"})
    answer = refused(team, f"{loose}:refs/heads/master", rule="git symbolic-ref HEAD refs/heads/NAME")
    assert "Traceback" not in answer
    refused(team, f"{loose}:refs/heads/main", rule="git symbolic-ref HEAD refs/heads/NAME")


@pytest.mark.parametrize("parked", ["refs/tags/t", "refs/x/y", "refs/heads/topic"])
def test_on_a_new_server_nothing_is_known_from_where_it_was_parked(tmp_path: Path, parked: str) -> None:
    dev = Repo.create(tmp_path)
    server = dev.at(tmp_path / "server.git")
    dev.git("init", "-q", "--bare", "-b", "main", str(server.path))
    dev.git("remote", "add", "origin", str(server.path))
    keys = {name: Key.make(tmp_path, name) for name in ("alice", "mallory")}
    team = Team(server, dev, keys)
    team.install("--signer", f"{keys['alice'].public} alice@example.com")
    dev.commit({SIGNERS: keys["mallory"].allowed("mallory@example.com")})
    team.push(f"main:{parked}")
    refused(team, "main")


def test_the_trusted_ref_has_owners_too(tmp_path: Path) -> None:
    team = Team.make(tmp_path)
    team.dev.git("push", "-q", "--no-verify", "origin", "main:refs/heads/policy")
    team.server.git("config", "patchgate.trustRef", "refs/heads/policy")
    loose = team.dev.policy("[policy]\n")
    refused(team, f"{loose}:refs/heads/policy")


def test_the_default_branch_has_owners_though_no_list_names_it(tmp_path: Path) -> None:
    team = Team.make(tmp_path, INFRA + '[push]\nprotected_refs = ["refs/heads/release"]\n')
    team.dev.git("push", "-q", "--no-verify", "origin", "main:refs/heads/release")
    team.dev.commit({"infra/main.tf": "2\n"})
    refused(team, "main")
    refused(team, "main", "main:refs/heads/release")


def test_what_was_approved_for_one_branch_needs_an_approval_for_another(tmp_path: Path) -> None:
    team = Team.make(tmp_path, GOVERNED + PROTECTED)
    team.dev.git("push", "-q", "--no-verify", "origin", "main:refs/heads/release/1")
    team.dev.git("fetch", "-q", "origin")
    approved(team, LOOSER + PROTECTED)
    refused(team, "main:refs/heads/release/1")
    team.approve("alice", "HEAD", "--for", "refs/heads/release/1")
    assert team.push("main:refs/heads/release/1").code == 0


def test_a_new_protected_branch_has_the_owners_of_the_default_one(tmp_path: Path) -> None:
    team = Team.make(tmp_path, "[policy]\n" + PROTECTED)
    fork = team.dev.head()
    top = approved(team, INFRA + PROTECTED)
    old = commit_of(team.dev, fork, {"infra/main.tf": "2\n"})
    refused(team, f"{old}:refs/heads/release/1")
    assert team.push(f"{top}:refs/heads/release/2").code == 0


def test_a_new_protected_branch_has_the_rules_of_today(tmp_path: Path) -> None:
    team = Team.make(tmp_path, "[policy]\n" + PROTECTED)
    fork = team.dev.head()
    approved(team, INFRA + PROTECTED)
    refused(team, f"{fork}:refs/heads/release/9")


def test_a_signer_who_was_removed_approves_on_no_new_branch(tmp_path: Path) -> None:
    team = Team.make(tmp_path, INFRA + PROTECTED, signers=("alice", "mallory"))
    fork = team.dev.head()
    team.dev.commit({SIGNERS: team.keys["alice"].allowed("alice@example.com")})
    team.approve("alice")
    assert team.push().code == 0
    signers = team.keys["alice"].allowed("alice@example.com")
    team.dev.git("reset", "-q", "--hard", fork)
    team.dev.commit({"infra/main.tf": "2\n"})
    team.approve("mallory")
    team.dev.commit({SIGNERS: signers})
    refused(team, "HEAD:refs/heads/release/9")


@pytest.mark.parametrize("how", ["deleted", "forced"])
def test_what_has_owners_is_neither_deleted_nor_forced_though_no_list_names_it(
    tmp_path: Path, how: str
) -> None:
    team = Team.make(tmp_path, INFRA + '[push]\nprotected_refs = ["refs/heads/release"]\n')
    other = commit_of(team.dev, "HEAD~1", {"a": "2\n"})
    old, new = team.head(), "0" * 40 if how == "deleted" else other
    (team.server.path / "objects" / "info" / "alternates").write_text(f"{team.dev.git_dir}/objects\n")
    answer = team.server.answer_hook("pre-receive", f"{old} {new} refs/heads/main\n".encode())
    assert (answer.code, f"ref-{how}" in answer.out + answer.err) == (1, True)


def test_a_branch_that_is_forced_loses_no_change_of_its_rules(tmp_path: Path) -> None:
    team = Team.make(tmp_path, GOVERNED + '[rules]\nref-forced = "warning"\n')
    start = team.dev.head()
    approved(team, GOVERNED + '[rules]\nref-forced = "warning"\n[content]\nsecrets = false\n')
    refused(team, f"+{start}:refs/heads/main")


def test_an_approval_for_one_table_makes_nothing_of_another(tmp_path: Path) -> None:
    hook = "repos:\n- repo: x/patchgate\n  rev: v1\n  hooks:\n  - id: patchgate\n"
    config = ".pre-commit-config.yaml"
    tables = (
        '[[owners]]\npaths = ["@policy"]\nsigners = ["alice@example.com"]\n'
        '[[owners]]\npaths = ["*.yaml"]\nsigners = ["bob@example.com"]\n'
    )
    team = Team.make(tmp_path, "[policy]\n" + tables, signers=("alice", "bob"))
    team.dev.commit({config: "repos: []\n"})
    team.approve("bob")
    assert team.push().code == 0
    fork = team.dev.head()
    team.dev.commit({config: hook})
    team.approve("alice")
    team.approve("bob")
    assert team.push().code == 0
    top = team.dev.head()
    team.dev.git("reset", "-q", "--hard", fork)
    side = team.dev.commit({config: "repos: [] # none\n"})
    team.approve("bob")
    merge = commit_of(team.dev, side, {}, top, side)
    refused(team, f"{merge}:refs/heads/main")


# Other policies.


def test_who_owns_any_path_is_changed_by_signers_alone(tmp_path: Path) -> None:
    team = Team.make(tmp_path, '[policy]\n[[owners]]\npaths = ["infra/**"]\n')
    team.dev.policy("[policy]\n")
    refused(team)


def test_under_a_broken_policy_only_its_approved_repair_lands(tmp_path: Path) -> None:
    team = Team.make(tmp_path, "[policy]\n")
    fork = team.dev.head()
    approved(team, INFRA)
    broken = commit_of(team.dev, "HEAD", {"patchgate.toml": INFRA + "[content\n"})
    team.server.git("fetch", "-q", str(team.dev.path), f"{broken}:refs/heads/main", "--update-head-ok")
    team.dev.git("fetch", "-q", "origin")
    side = commit_of(team.dev, fork, {"infra/main.tf": "2\n"})
    answer = refused(team, f"{clean_merge(team.dev, side, broken)}:refs/heads/main", rule="owners")
    assert "push its repair alone" in answer or RULE in answer
    team.dev.git("reset", "-q", "--hard", broken)
    repair = team.dev.policy(INFRA)
    refused(team)
    assert team.approve("alice").code == 0
    assert team.push().code == 0
    assert team.head() == repair


# Other keys.


def fields_of(wire: bytes) -> list[bytes]:
    """Take a public key apart: its strings and numbers, with their lengths before them (RFC 4251, 5)."""
    fields = []
    while wire:
        end = 4 + int.from_bytes(wire[:4], "big")
        fields.append(wire[4:end])
        wire = wire[end:]
    return fields


def string(content: bytes) -> bytes:
    """Write a string as in keys and signatures."""
    return len(content).to_bytes(4, "big") + content


def with_key(signed: SignedStatement, old: bytes, new: bytes) -> SignedStatement:
    """Write another key into a signature, which does not cover it."""
    first, *lines, end, rest = signed.signature.split("\n")
    raw = base64.b64decode("".join(lines))
    assert raw.count(string(old)) == 1
    written = base64.b64encode(raw.replace(string(old), string(new))).decode()
    return replace(signed, signature="\n".join([first, *textwrap.wrap(written, 70), end, rest]))


def wire_of(path: Path) -> bytes:
    """Read a public key or a certificate."""
    return base64.b64decode(path.read_text(encoding="ascii").split()[1])


@pytest.mark.parametrize("kind", ["ed25519", "ecdsa", "rsa"])
def test_a_key_has_one_fingerprint_however_it_is_written(tmp_path: Path, kind: str) -> None:
    """OpenSSH reads short names of kinds, numbers after zeros, and names of curves that end with NUL."""
    key, ca = Key.make(tmp_path, kind=kind), Key.make(tmp_path, "ca")
    for serial in ("1", "2"):
        sign = ("ssh-keygen", "-q", "-s", ca.path, "-I", "x", "-n", "me", "-z", serial, tmp_path / "key.pub")
        subprocess.run(sign, check=True)
        (tmp_path / "key-cert.pub").rename(tmp_path / f"cert{serial}")
    old = wire_of(tmp_path / "key.pub")
    name, first, *rest = fields_of(old)
    others = {
        "ed25519": [[b"ED25519", first], [b"ed25519", first]],
        "ecdsa": [[name, first + b"\0", *rest]],
        "rsa": [[b"RSA", first, *rest], [b"rsa-sha2-512", first, *rest], [name, b"\0" + first, *rest]],
    }
    wires = [old, wire_of(tmp_path / "cert1"), wire_of(tmp_path / "cert2")]
    wires += [b"".join(map(string, each)) for each in others[kind]]
    digest = "sha256:" + "0" * 64
    good = key.sign(Statement(digest, digest, ("deny-prefix",), "for the tests", BY, AT))
    signers = (key.allowed("me") + ca.allowed("me", "cert-authority")).encode()
    checks = [check_signature(with_key(good, old, wire), signers, os.environ) for wire in wires]
    assert [each.principal for each in checks[:3]] == ["me"] * 3
    listed = subprocess.run(["ssh-keygen", "-l", "-f", key.path], capture_output=True, check=True, text=True)
    assert {each.key for each in checks if each.principal is not None} == {listed.stdout.split()[1]}


def test_a_key_of_a_pattern_signs_for_no_owner_by_name(tmp_path: Path) -> None:
    team = Team.make(
        tmp_path, '[policy]\n[[owners]]\npaths = ["infra/**"]\nsigners = ["alice@example.com"]\n', signers=()
    )
    team.install("--signer", f"{team.keys['alice'].public} alice@example.com")
    team.dev.commit({SIGNERS: team.keys["bob"].allowed("*@example.com")})
    team.approve("alice")
    assert team.push().code == 0
    team.dev.git("fetch", "-q", "origin")
    team.dev.commit({"infra/main.tf": "2\n"})
    team.keys["alice"] = team.keys["bob"]
    assert team.approve("alice").code == 0
    refused(team)


def test_the_server_s_signer_replaces_a_lost_owner_though_the_base_lists_the_signer(tmp_path: Path) -> None:
    policy = f'[policy]\n{OWNED}signers = ["alice@example.com"]\n'
    team = Team.make(tmp_path, policy, signers=("alice", "bob"))
    change = team.dev.policy(policy.replace("alice", "bob"))
    team.approve("bob")
    refused(team)
    team.install("--signer", f"{team.keys['bob'].public} bob@example.com")
    assert team.push().code == 0
    assert team.head() == change


def test_forged_lines_before_the_right_one_do_not_hide_it(tmp_path: Path) -> None:
    team = Team.make(tmp_path)
    change = team.dev.policy(LOOSER)
    (judged,) = team.dev.check("HEAD").changes
    team.approve("alice")
    listed = team.dev.git("ls-tree", "-r", "--name-only", REF).decode().split()[0]
    line = team.dev.git("show", f"{REF}:{listed}")
    forged = []
    for number in range(20):
        value = json.loads(line)
        value["statement"]["reason"] = f"a reason of its own, number {number}"
        forged.append(json.dumps(value).encode() + b"\n")
    put_note(team.dev, judged["change_id"], b"".join(forged) + line)
    assert team.push().code == 0
    assert team.head() == change


# Found by a third attack.

BODY = "".join(f"line {number}\n" for number in range(20))


def landed(team: Team, text: str) -> str:
    """Land a content of the owned file, which alice approves."""
    commit = team.dev.commit({"infra/main.tf": text})
    team.approve("alice")
    assert team.push().code == 0
    team.dev.git("fetch", "-q", "origin")
    return commit


def carried(dev: Repo, onto: str, path: str, before: str, after: str) -> str:
    """Merge an edit into a path that no commit edits: git follows the rename of a copy."""
    root = commit_of(dev, None, {"x/f": before})
    gone = commit_of(dev, clean_merge(dev, onto, root), {"x/f": None})
    return clean_merge(dev, gone, commit_of(dev, root, {"x/f": after}))


@pytest.mark.parametrize("swapped", [False, True])
def test_what_a_later_merge_hides_is_no_history_that_a_new_branch_may_begin_from(
    tmp_path: Path, swapped: bool
) -> None:
    team = Team.make(tmp_path, INFRA + PROTECTED)
    dev = team.dev
    first = landed(team, BODY)
    second = landed(team, BODY.replace("line 10", "line ten"))
    evil = carried(dev, first, "infra/main.tf", BODY, BODY.replace("line 10", "EVIL"))
    parents = (evil, second) if swapped else (second, evil)
    hidden = commit_of(dev, second, {}, *parents)
    refused(team, f"{hidden}:refs/heads/main")
    refused(team, f"{hidden}:refs/heads/main", f"{evil}:refs/heads/release/1")


@pytest.mark.parametrize("path", ["infra/new.tf", ".patchgate/extra"])
def test_the_merge_that_a_head_will_get_is_asked_of_the_owners(tmp_path: Path, path: str) -> None:
    team = Team.make(tmp_path, INFRA)
    dev = team.dev
    base = dev.commit({"keys": BODY})
    team.approve("alice")
    assert team.push().code == 0
    dev.git("mv", "keys", path)
    dev.commit(message="Move the file")
    dev.git("update-ref", "refs/remotes/origin/main", "HEAD")
    head = commit_of(dev, base, {"keys": BODY.replace("line 10", "EVIL")})
    asked = ("--policy-from", "refs/remotes/origin/main", f"refs/remotes/origin/main..{head}")
    answer = dev.check(*asked, CI="true")
    assert (answer.code, answer.errors) == (1, [RULE])
    assert answer.changes[-1]["files"][0]["path"] == path


@pytest.mark.parametrize("head", ["refs/heads/master", None])
@pytest.mark.parametrize("new", ["main", "master", "other"])
def test_where_head_names_no_branch_none_is_made_beside_one_with_owners(
    tmp_path: Path, head: str | None, new: str
) -> None:
    team = Team.make(tmp_path)
    team.server.git("branch", "-m", "main", "trunk")
    if head is None:
        (team.server.path / "HEAD").write_text(team.head("trunk") + "\n")
    else:
        team.server.git("symbolic-ref", "HEAD", head)
    root = commit_of(team.dev, None, {"README": "x\n"})
    refused(team, f"{root}:refs/heads/{new}", rule="git symbolic-ref HEAD refs/heads/NAME")


@pytest.mark.parametrize("has_usual", [False, True])
def test_where_head_names_no_branch_nothing_moves_beside_one_with_owners(
    tmp_path: Path, *, has_usual: bool
) -> None:
    """What trunk lists is protected by the policy of the default branch, which is not known."""
    listed = '[push]\nprotected_refs = ["refs/heads/trunk", "refs/heads/release/*", "refs/tags/v*"]\n'
    team = Team.make(tmp_path, INFRA + listed)
    root = team.dev.ask("rev-list", "--max-parents=0", "HEAD")
    team.server.git("branch", "-m", "main", "trunk")
    team.server.git("branch", "release/1", root)
    team.server.git("symbolic-ref", "HEAD", "refs/heads/master")
    change = commit_of(team.dev, root, {"infra/main.tf": "2\n"})
    for ref in ("refs/heads/release/1", "refs/tags/v2"):
        refused(team, f"{change}:{ref}", rule="git symbolic-ref HEAD refs/heads/NAME")
    gone = f"{root} {'0' * 40} refs/heads/release/1\n"
    assert team.server.answer_hook("pre-receive", gone.encode()).code == 3
    # An old branch with a usual name is not the default one.
    team.server.git(*(("branch", "main", root) if has_usual else ("branch", "-D", "release/1")))
    plain = commit_of(team.dev, team.head("trunk"), {"b": "2\n"})
    refused(team, f"{plain}:refs/heads/trunk", rule="git symbolic-ref HEAD refs/heads/NAME")
    assert team.push(f"{root}:refs/notes/mine").code == 0
    team.server.git("symbolic-ref", "HEAD", "refs/heads/trunk")
    assert team.push(f"{plain}:refs/heads/trunk").code == 0


def test_in_a_locale_with_another_encoding_a_default_branch_is_known_by_its_name(tmp_path: Path) -> None:
    """Who pushes may choose the locale of the hook, and git is asked for refs by their bytes."""
    branch = "refs/heads/hauptlinie-ü"
    listed = f'[push]\nprotected_refs = ["{branch}", "refs/heads/release/*"]\n'
    team = Team.make(tmp_path, INFRA + listed)
    root = team.dev.ask("rev-list", "--max-parents=0", "HEAD")
    team.server.git("update-ref", branch, "refs/heads/main")
    team.server.git("symbolic-ref", "HEAD", branch)
    team.server.git("update-ref", "-d", "refs/heads/main")
    team.server.git("branch", "release/1", root)
    team.server.git("fetch", "-q", str(team.dev.path), commit_of(team.dev, root, {"infra/main.tf": "2\n"}))
    change = team.server.ask("rev-parse", "FETCH_HEAD")
    line = f"{root} {change} refs/heads/release/1\n".encode()
    for is_utf8 in ("1", "0"):
        answer = team.server.run(
            "hook", "pre-receive", stdin=line, LC_ALL="C", PYTHONUTF8=is_utf8, PYTHONCOERCECLOCALE="0"
        )
        assert (answer.code, "owner-approval-missing" in answer.out + answer.err) == (1, True)


def test_under_a_broken_policy_no_tag_and_no_merge_with_a_change_of_its_own_lands(tmp_path: Path) -> None:
    team = Team.make(tmp_path, INFRA + '[push]\nprotected_refs = ["refs/heads/main", "refs/tags/v*"]\n')
    dev, start = team.dev, team.dev.head()
    broken = dev.policy("[polizei]\n")
    team.server.git("fetch", "-q", str(dev.path), "main:main", "--update-head-ok")
    dev.git("fetch", "-q", "origin")
    evil = commit_of(dev, broken, {"infra/main.tf": "evil\n"})
    refused(team, f"{evil}:refs/tags/v1", rule="undecided")
    dev.policy(INFRA)
    team.approve("alice")
    merge = commit_of(dev, start, {"infra/main.tf": "evil\n"}, dev.head(), start)
    both = commit_of(dev, dev.head(), {}, dev.head(), merge)
    refused(team, f"{both}:refs/heads/main")


def test_a_forged_line_of_any_shape_delays_no_approval(tmp_path: Path) -> None:
    team = Team.make(tmp_path)
    team.dev.policy(LOOSER)
    (change,) = team.dev.check("HEAD").changes
    team.approve("alice")
    (name,) = team.dev.git("ls-tree", "-r", "--name-only", REF).decode().split()
    line = team.dev.git("show", f"{REF}:{name}")
    schemas: list[object] = [[], {}, 1, None]
    for schema in schemas:
        forged = json.loads(line.splitlines()[-1])
        forged["statement"] = {
            key: value
            for key, value in forged["statement"].items()
            if key in {"at", "by", "change_id", "policy", "reason", "rules"}
        } | {"schema": schema}
        line = json.dumps(forged).encode() + b"\n" + line
    put_note(team.dev, change["change_id"], line)
    assert team.push().code == 0


def test_a_signers_file_of_the_command_line_is_no_symlink_of_the_working_tree(tmp_path: Path) -> None:
    team = Team.make(tmp_path)
    outside = tmp_path / "keys"
    outside.write_text(team.keys["mallory"].allowed("mallory@example.com"))
    team.dev.link("ci-signers", "../keys")
    asked = ("--policy-from", "refs/remotes/origin/main", "--signer", "ci-signers")
    assert team.dev.check("HEAD", *asked).code == 2
    assert team.dev.check("HEAD", *asked[:2], "--signer", str(outside)).code == 0


# Found by a fourth attack.


@pytest.mark.parametrize("order", [(0, 1, 2), (1, 0, 2), (2, 1, 0)])
def test_an_octopus_carries_nothing_and_rolls_nothing_back(tmp_path: Path, order: tuple[int, ...]) -> None:
    team = Team.make(tmp_path, INFRA + PROTECTED)
    dev = team.dev
    first = landed(team, BODY)
    second = landed(team, BODY.replace("line 10", "line ten"))
    root = commit_of(dev, None, {"x/f": BODY})
    gone = commit_of(dev, clean_merge(dev, first, root), {"x/f": None})
    edited = commit_of(dev, root, {"x/f": BODY.replace("line 10", "EVIL")})
    heads = [gone, edited, commit_of(dev, root, {"z": "z\n"})]
    evil = {"infra/main.tf": BODY.replace("line 10", "EVIL"), "z": "z\n", "x/f": None}
    octopus = commit_of(dev, gone, evil, *(heads[number] for number in order))
    hidden = commit_of(dev, second, {}, second, octopus)
    refused(team, f"{hidden}:refs/heads/main")
    back = commit_of(dev, second, {"infra/main.tf": BODY}, second, gone, heads[2])
    hidden = commit_of(dev, second, {}, second, back)
    refused(team, f"{hidden}:refs/heads/main")


def test_text_that_a_coming_merge_joins_to_another_policy_is_asked_of_the_owners(tmp_path: Path) -> None:
    filler = "# filler\n# filler\n# filler\n# filler\n"
    black = f"[tool.black]\n{filler}line-length = 88\n"
    table = f"[tool.patchgate.content]\n{filler}secrets = true\n"
    owners = '[[tool.patchgate.owners]]\npaths = ["@policy"]\n'
    team = Team.make(tmp_path, "[policy]\n")
    dev = team.dev
    dev.git("rm", "-q", "patchgate.toml")
    base = dev.commit({"pyproject.toml": owners + black + table + "# end\n"})
    head = commit_of(dev, base, {"pyproject.toml": owners + black + "secrets = false\n" + table + "# end\n"})
    # Main says the same in another order; only both together are another policy.
    dev.commit({"pyproject.toml": owners + table.replace("secrets = true\n", "") + filler + "# end\n"})
    dev.git("update-ref", "refs/remotes/origin/main", "HEAD")
    answer = dev.check(
        "--policy-from", "refs/remotes/origin/main", f"refs/remotes/origin/main..{head}", CI="true"
    )
    assert answer.code != 0


def test_a_trusted_ref_that_is_symbolic_has_owners_under_both_its_names(tmp_path: Path) -> None:
    team = Team.make(tmp_path)
    team.server.git("update-ref", "refs/heads/rules", "refs/heads/main")
    team.server.git("symbolic-ref", "refs/heads/policy", "refs/heads/rules")
    team.server.git("config", "patchgate.trustRef", "refs/heads/policy")
    loose = commit_of(team.dev, team.dev.head(), {"patchgate.toml": "[policy]\n"})
    for name in ("rules", "policy"):
        refused(team, f"{loose}:refs/heads/{name}")


def test_beside_a_branch_whose_policy_cannot_be_read_no_new_one_becomes_the_default(tmp_path: Path) -> None:
    team = Team.make(tmp_path, "[policy]\n", signers=(), server_signers=("alice",))
    dev = team.dev
    old = dev.head()
    dev.policy("[polizei]\n")
    team.server.git("fetch", "-q", str(dev.path), "main:main", "--update-head-ok")
    team.server.git("branch", "-m", "main", "trunk")
    team.server.git("symbolic-ref", "HEAD", "refs/heads/master")
    refused(team, f"{old}:refs/heads/main", rule="git symbolic-ref HEAD refs/heads/NAME")


# Second round: what an approval was for, and what the branch has now.


DENIED = '[policy]\ndeny = ["infra/**"]\n[governance]\nid = "repository-1"\n'


def land(team: Team, files: Mapping[str, str | None], base: str | None = None) -> str:
    """Land an approved commit."""
    commit = commit_of(team.dev, base or team.head(), files)
    assert team.approve("alice", commit, "--for", "refs/heads/main").code == 0
    assert team.push(f"{commit}:refs/heads/main").code == 0
    return commit


@pytest.mark.parametrize("policy", [INFRA, DENIED], ids=["owned", "denied"])
@pytest.mark.parametrize("is_swapped", [False, True])
def test_an_old_approval_brings_nothing_back_through_a_conflict(
    tmp_path: Path, policy: str, is_swapped: bool
) -> None:
    team = Team.make(tmp_path, policy)
    start, rule = team.head(), RULE if policy is INFRA else "deny-pattern"
    hole = {"infra/main.tf": "2 a hole\n"}
    land(team, hole)
    fixed = land(team, {"infra/main.tf": "3 closed\n"})
    # The same change from the same content, so the approval is for it too.
    again = commit_of(team.dev, start, hole)
    parents = (again, fixed) if is_swapped else (fixed, again)
    merge = commit_of(team.dev, fixed, hole, *parents)
    refused(team, f"{merge}:refs/heads/main", rule=rule)
    asked = ("--policy-from", "refs/remotes/origin/main", f"refs/remotes/origin/main..{merge}")
    assert team.dev.check(*asked, CI="true").errors == [rule]
    kept = commit_of(team.dev, fixed, {"other": "x\n"}, *parents)
    assert team.push(f"{kept}:refs/heads/main").code == 0


@pytest.mark.parametrize("policy", [INFRA, DENIED], ids=["owned", "denied"])
def test_an_old_approval_brings_nothing_back_by_a_clean_merge(tmp_path: Path, policy: str) -> None:
    team = Team.make(tmp_path, policy)
    lines = [f"line {number}\n" for number in range(20)]
    rule = RULE if policy is INFRA else "deny-pattern"
    start = land(team, {"infra/main.tf": "".join(lines)})
    hole = {"infra/main.tf": "".join(["hole\n", *lines])}
    land(team, hole)
    land(team, {"infra/main.tf": "".join(lines)})
    moved = land(team, {"infra/main.tf": "".join([*lines, "more\n"])})
    again = commit_of(team.dev, commit_of(team.dev, start, {"other": "x\n"}), hole)
    merge = clean_merge(team.dev, moved, again)
    assert "hole" in team.dev.ask("show", f"{merge}:infra/main.tf")
    refused(team, f"{merge}:refs/heads/main", rule=rule)
    # Not merged yet, where the host merges later.
    asked = ("--policy-from", "refs/remotes/origin/main", f"refs/remotes/origin/main..{again}")
    assert team.dev.check(*asked, CI="true").errors == [rule]


def test_a_conflict_in_a_denied_path_is_not_left_to_the_host(tmp_path: Path) -> None:
    team = Team.make(tmp_path, DENIED)
    start = land(team, {"infra/main.tf": LONG})
    copy = commit_of(team.dev, None, {"copy.tf": LONG})
    gone = clean_merge(team.dev, start, commit_of(team.dev, copy, {"copy.tf": None}))
    assert team.push(f"{gone}:refs/heads/main").code == 0
    land(team, {"infra/main.tf": LONG.replace("line 9", "main")})
    # A host may solve this conflict by itself: `merge=union` in .gitattributes.
    evil = commit_of(team.dev, copy, {"copy.tf": LONG.replace("line 9", "evil")})
    asked = ("--policy-from", "refs/remotes/origin/main", f"refs/remotes/origin/main..{evil}")
    assert "deny-pattern" in team.dev.check(*asked, CI="true").errors


def test_an_exception_that_names_a_branch_counts_for_no_other(tmp_path: Path) -> None:
    team = Team.make(tmp_path, DENIED)
    commit = commit_of(team.dev, team.head(), {"infra/main.tf": "2\n"})
    team.server.git("update-ref", "refs/heads/release", team.head())
    team.dev.git("update-ref", "refs/remotes/origin/release", team.head())
    assert team.approve("alice", commit, "--for", "refs/heads/release").code == 0
    said = refused(team, f"{commit}:refs/heads/main", rule="deny-pattern")
    assert "it is for refs/heads/release" in said
    asked = ("--policy-from", "refs/remotes/origin/main", commit)
    assert team.dev.check(*asked, CI="true").errors == ["deny-pattern"]


def test_a_new_protected_branch_gets_nothing_that_the_rules_of_today_refuse(tmp_path: Path) -> None:
    plain = "[policy]\n" + PROTECTED
    team = Team.make(tmp_path, plain, signers=())
    old = team.head()
    team.dev.policy('[policy]\ndeny = ["secret/**"]\n' + PROTECTED)
    assert team.push().code == 0
    evil = commit_of(team.dev, old, {"secret/x": "x\n"})
    merge = clean_merge(team.dev, evil, team.head())
    refused(team, f"{merge}:refs/heads/release/1", rule="deny-pattern")
    right = commit_of(team.dev, team.head(), {"b": "x\n"})
    assert team.push(f"{right}:refs/heads/release/1").code == 0


def test_a_protected_tag_of_what_has_landed_is_taken_though_the_rules_have_moved(tmp_path: Path) -> None:
    team = Team.make(tmp_path, GOVERNED + '[push]\nprotected_refs = ["refs/heads/main", "refs/tags/v*"]\n')
    old = team.head()
    approved(team, LOOSER + '[push]\nprotected_refs = ["refs/heads/main", "refs/tags/v*"]\n')
    assert team.push(f"{old}:refs/tags/v0").code == 0
    side = commit_of(team.dev, old, {"patchgate.toml": "[policy]\n"})
    refused(team, f"{side}:refs/tags/v1")


def test_what_once_was_a_control_file_moves_the_rules_for_ever(tmp_path: Path) -> None:
    team = Team.make(tmp_path)
    asked = commit_of(team.dev, team.head(), {"patchgate.toml": LOOSER})
    assert team.approve("alice", asked, "--for", "refs/heads/main").code == 0
    named = commit_of(team.dev, team.head(), {".pre-commit-config.yaml": "# patchgate\n"})
    assert team.push(f"{named}:refs/heads/main").code == 0
    land(team, {".pre-commit-config.yaml": None})
    again = commit_of(team.dev, team.head(), {"patchgate.toml": LOOSER})
    said = refused(team, f"{again}:refs/heads/main")
    assert "before the rules changed" in said


@pytest.mark.parametrize("mode", ["100644", "120000", "160000"])
def test_a_file_in_the_place_of_the_baselines_moves_the_rules(tmp_path: Path, mode: str) -> None:
    team = Team.make(tmp_path)
    oid = team.head() if mode == "160000" else team.dev.ask("rev-parse", "HEAD:a")

    def placed() -> str:
        index = str(team.dev.path / ".git" / "other-index")
        team.dev.git("read-tree", team.head(), GIT_INDEX_FILE=index)
        words = ("update-index", "--add", "--cacheinfo", f"{mode},{oid},.patchgate/baselines")
        team.dev.git(*words, GIT_INDEX_FILE=index)
        tree = team.dev.git("write-tree", GIT_INDEX_FILE=index).decode().strip()
        return team.dev.ask("commit-tree", tree, "-p", team.head(), "-m", "Place")

    for change in (placed(), None):
        commit = change or commit_of(team.dev, team.head(), {".patchgate/baselines": None})
        assert team.approve("alice", commit).code == 0
        assert team.push(f"{commit}:refs/heads/main").code == 0
    again = placed()
    assert "before the rules changed" in refused(team, f"{again}:refs/heads/main")


@pytest.mark.parametrize(
    "more", ["", "#bob@example.com,alice@example.com {key}\n", " \t# alice@example.com {key}\n"]
)
def test_the_line_that_names_an_owner_must_allow_his_signature(tmp_path: Path, more: str) -> None:
    table = '[[owners]]\npaths = ["infra/**"]\nsigners = ["alice@example.com"]\n'
    team = Team.make(tmp_path, GOVERNED + table, signers=(), server_signers=("bob",))
    key = team.keys["alice"].public
    lines = f'alice@example.com namespaces="git" {key}\n*@example.com {key}\n' + more.format(key=key)
    signers = commit_of(team.dev, team.head(), {SIGNERS: lines})
    assert team.approve("bob", signers, "--for", "refs/heads/main").code == 0
    assert team.push(f"{signers}:refs/heads/main").code == 0
    change = commit_of(team.dev, signers, {"infra/main.tf": "2\n"})
    team.approve("alice", change, "--for", "refs/heads/main")
    assert "is not an owner" in refused(team, f"{change}:refs/heads/main")


# Third round: what a merge is compared with.


def test_a_merge_is_compared_with_every_branch_that_gets_it(tmp_path: Path) -> None:
    team = Team.make(tmp_path, DENIED)
    start = team.head()
    land(team, {"infra/main.tf": "2 a hole\n"})
    fixed = land(team, {"infra/main.tf": "3 closed\n"})
    again = commit_of(team.dev, start, {"infra/main.tf": "2 a hole\n"})
    assert team.push(f"{again}:refs/heads/aaa").code == 0
    merge = commit_of(team.dev, fixed, {"infra/main.tf": "2 a hole\n"}, again, fixed)
    refused(team, f"{merge}:refs/heads/aaa", f"{merge}:refs/heads/main", rule="deny-pattern")


@pytest.mark.parametrize("policy", [INFRA, DENIED], ids=["owned", "denied"])
@pytest.mark.parametrize("is_octopus", [False, True])
def test_the_author_does_not_choose_what_a_merge_is_compared_with(
    tmp_path: Path, policy: str, is_octopus: bool
) -> None:
    team = Team.make(tmp_path, policy)
    start = team.head()
    land(team, {"infra/main.tf": "2\n"})
    land(team, {"infra/main.tf": "3\n"})
    now = land(team, {"infra/main.tf": "4\n"})
    two = commit_of(team.dev, start, {"infra/main.tf": "2\n"})
    three = commit_of(team.dev, two, {"infra/main.tf": "3\n"})
    # From the first parent it is the change from 2 to 3, which alice has approved.
    parents = (two, three, now) if is_octopus else (two, now)
    merge = commit_of(team.dev, now, {"infra/main.tf": "3\n"}, *parents)
    rule = RULE if policy is INFRA else "deny-pattern"
    refused(team, f"{merge}:refs/heads/main", rule=rule)
    asked = ("--policy-from", "refs/remotes/origin/main", f"refs/remotes/origin/main..{merge}")
    assert team.dev.check(*asked, CI="true").errors == [rule]
    assert team.approve("alice", merge, *asked[:2], "--for", "refs/heads/main").code == 0
    assert team.push(f"{merge}:refs/heads/main").code == 0


# Fourth round: several refs at once, and what lands before the rest.


@pytest.mark.parametrize("policy", [INFRA, DENIED], ids=["owned", "denied"])
def test_another_ref_of_a_push_does_not_say_what_main_has(tmp_path: Path, policy: str) -> None:
    team = Team.make(tmp_path, policy)
    start = team.head()
    land(team, {"infra/main.tf": "2 a hole\n"})
    fixed = land(team, {"infra/main.tf": "3 closed\n"})
    assert team.push(f"{start}:refs/heads/aaa").code == 0
    again = commit_of(team.dev, start, {"infra/main.tf": "2 a hole\n"})
    merge = commit_of(team.dev, fixed, {"infra/main.tf": "2 a hole\n"}, again, fixed)
    rule = RULE if policy is INFRA else "deny-pattern"
    # For `aaa` alone it would be the change from 1 to 2, which was approved.
    refused(team, f"{merge}:refs/heads/aaa", f"{merge}:refs/heads/main", rule=rule)


def test_what_another_protected_branch_has_is_not_known_to_main(tmp_path: Path) -> None:
    policy = (
        '[policy]\ndeny = ["infra/**"]\n[push]\nprotected_refs = ["refs/heads/release"]\n'
        '[governance]\nid = "repository-1"\n'
    )
    team = Team.make(tmp_path, policy)
    start = team.head()
    assert team.push(f"{start}:refs/heads/release").code == 0
    there = commit_of(team.dev, start, {"infra/main.tf": "2\n"})
    assert team.approve("alice", there, "--for", "refs/heads/release").code == 0
    assert team.push(f"{there}:refs/heads/release").code == 0
    more = commit_of(team.dev, there, {"b": "b\n"})
    refused(team, f"{more}:refs/heads/main", f"{more}:refs/heads/release", rule="deny-pattern")


def test_what_a_protected_branch_has_is_not_judged_again_beside_another(tmp_path: Path) -> None:
    policy = f'[policy]\n{PROTECTED}[governance]\nid = "repository-1"\n'
    team = Team.make(tmp_path, policy)
    start = team.head()
    assert team.push(f"{start}:refs/heads/release/1").code == 0
    allowed = commit_of(team.dev, start, {"secret/x": "1\n"})
    assert team.push(f"{allowed}:refs/heads/release/1").code == 0
    stricter = policy.replace("[policy]\n", '[policy]\ndeny = ["secret/**"]\n')
    tip = commit_of(team.dev, allowed, {"patchgate.toml": stricter})
    assert team.push(f"{tip}:refs/heads/release/1").code == 0
    there, here = (commit_of(team.dev, base, {"b": "b\n"}) for base in (tip, start))
    answer = team.push(f"{here}:refs/heads/main", f"{there}:refs/heads/release/1")
    assert answer.code == 0, answer.err


def test_signers_that_are_no_regular_file_are_no_signers_of_another_branch(tmp_path: Path) -> None:
    team = Team.make(tmp_path, DENIED + PROTECTED)
    start = team.head()
    entry = team.dev.ask("ls-tree", start, SIGNERS).split()
    team.dev.git("read-tree", start)
    team.dev.git("update-index", "--cacheinfo", f"120000,{entry[2]},{SIGNERS}")
    linked = team.dev.ask("commit-tree", "-p", start, "-m", "Link", team.dev.ask("write-tree"))
    team.dev.git("read-tree", "HEAD")
    team.dev.git("push", "-q", "--no-verify", "origin", f"{start}:refs/heads/release/1")
    team.server.git("fetch", "-q", str(team.dev.path), linked)
    team.server.git("update-ref", "refs/heads/release/1", linked)
    change = commit_of(team.dev, start, {"infra/main.tf": "2\n"})
    assert team.approve("alice", change).code == 0
    merge = commit_of(team.dev, linked, {"infra/main.tf": "2\n"}, linked, change)
    refused(team, f"{change}:refs/heads/main", f"{merge}:refs/heads/release/1", rule="deny-pattern")


def test_one_commit_that_two_policies_judge_needs_on_each_branch_the_approvals_of_that_branch(
    tmp_path: Path,
) -> None:
    """`main` refuses the path and `release/1` has an owner of it: each verdict counts for its branch."""
    team = Team.make(tmp_path, INFRA + PROTECTED)
    start = team.head()
    assert team.push(f"{start}:refs/heads/release/1").code == 0
    main = land(team, {"patchgate.toml": DENIED + PROTECTED})
    fix = commit_of(team.dev, start, {"infra/main.tf": "2\n"})
    merge = commit_of(team.dev, main, {"infra/main.tf": "2\n"}, main, fix)
    both = (f"{merge}:refs/heads/main", f"{fix}:refs/heads/release/1")
    refused(team, *both)
    assert team.approve("alice", fix, "--for", "refs/heads/release/1").code == 0
    assert "deny-pattern" in refused(team, *both, rule="refs/heads/main")
    answer = team.approve("alice", fix, "--for", "refs/heads/main", "--policy-from", main)
    assert answer.code == 0, answer.err
    answer = team.push(*both)
    assert answer.code == 0, answer.err


def test_a_merge_is_repeated_once_however_many_branches_get_it(tmp_path: Path) -> None:
    policy = f'[policy]\n{PROTECTED}[governance]\nid = "repository-1"\n'
    team = Team.make(tmp_path, policy)
    start = team.head()
    branches = [f"refs/heads/release/{number}" for number in range(3)]
    one, two = (commit_of(team.dev, start, {name: "1\n"}) for name in ("b", "c"))
    had = dict(zip(branches, (start, one, two), strict=True))
    assert team.push(*(f"{commit}:{branch}" for branch, commit in had.items())).code == 0
    merge = commit_of(team.dev, start, {"b": "1\n", "c": "1\n"}, one, two)
    git = AskedGit(tmp_path, team.server.env)
    moves = "".join(f"{commit} {merge} {branch}\n" for branch, commit in had.items())
    (team.server.path / "objects/info/alternates").write_text(f"{team.dev.git_dir}/objects\n")
    answer = team.server.run("hook", "pre-receive", stdin=moves.encode(), PATH=git.path)
    assert answer.code == 0, answer.err
    assert git.times("merge-tree") == 1


def many_branches(team: Team, number: int) -> tuple[dict[str, str], list[str]]:
    """Make protected branches, each with a commit of its own, and two merges that change an owned path."""
    start = team.head()
    had = {
        f"refs/heads/release/{each}": commit_of(team.dev, start, {f"r{each}": "1\n"})
        for each in range(number)
    }
    assert team.push(*(f"{commit}:{branch}" for branch, commit in had.items())).code == 0
    merges = [start]
    for text in ("2\n", "3\n"):
        one, two = (commit_of(team.dev, merges[-1], {name: text}) for name in ("b", "c"))
        merges.append(commit_of(team.dev, one, {"infra/main.tf": text, "c": text}, one, two))
    return had, merges[1:]


def test_what_a_merge_carries_is_found_once_however_many_branches_get_it(tmp_path: Path) -> None:
    team = Team.make(tmp_path, INFRA + PROTECTED)
    had, merges = many_branches(team, 3)
    git = AskedGit(tmp_path, team.server.env)
    (tmp_path / "asked").touch()
    (team.server.path / "objects/info/alternates").write_text(f"{team.dev.git_dir}/objects\n")
    asked = []
    for branches in (list(had)[:1], list(had)):
        tips = {each: commit_of(team.dev, merges[-1], {}, had[each], merges[-1]) for each in branches}
        moves = "".join(f"{had[each]} {tip} {each}\n" for each, tip in tips.items())
        before = git.times("merge-base")
        answer = team.server.run("hook", "pre-receive", stdin=moves.encode(), PATH=git.path)
        assert (answer.code, RULE in answer.out + answer.err) == (1, True)
        asked.append(git.times("merge-base") - before)
    # Each branch asks whether it is forced, and has a merge of its own.
    assert asked[1] - asked[0] <= 4


def test_what_lands_in_part_is_sought_for_few_branches_that_are_refused_anyhow(tmp_path: Path) -> None:
    team = Team.make(tmp_path, f"[policy]\ndeny_prefixes = ['runs']\n{OWNED}{PROTECTED}")
    blob = team.dev.ask("hash-object", "-w", "a")
    lines = "".join(f"100644 {blob}\truns/{each}\n" for each in range(501))
    team.dev.git("update-index", "--index-info", stdin=lines.encode())
    change = team.dev.ask("commit-tree", team.dev.ask("write-tree"), "-p", team.head(), "-m", "Change")
    git = AskedGit(tmp_path, team.server.env)
    (team.server.path / "objects/info/alternates").write_text(f"{team.dev.git_dir}/objects\n")
    asked: list[int] = []
    for n_branches in (2, 12):
        before = git.times("rev-list") if asked else 0
        moves = "".join(f"{'0' * 40} {change} refs/heads/release/{each}\n" for each in range(n_branches))
        answer = team.server.run("hook", "pre-receive", stdin=moves.encode(), PATH=git.path)
        assert (answer.code, "deny-prefix" in answer.out + answer.err) == (1, True)
        asked.append(git.times("rev-list") - before)
    assert asked[0] == asked[1] > 0


def test_commits_that_go_to_too_many_branches_are_undecided(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    team = Team.make(tmp_path, INFRA + PROTECTED)
    had, merges = many_branches(team, 3)
    pushed = [
        f"{commit_of(team.dev, merges[-1], {}, commit, merges[-1])}:{branch}"
        for branch, commit in had.items()
    ]
    monkeypatch.setattr(push_groups, "TIMES_FIRST", 0)
    refused(team, *pushed)
    monkeypatch.setattr(push_groups, "SECONDS_AGAIN", 0)
    # In this process, for the limit is set here.
    assert "push fewer branches at once" in refused(team, *pushed, rule="too long", is_real=False)
    refused(team, pushed[0])


def test_the_approval_of_a_plain_commit_allows_no_merge_with_the_same_change(tmp_path: Path) -> None:
    """The merge has the approved change, and solves a conflict as the side that has what main removed."""
    kept = "a\n" * 3
    team = Team.make(tmp_path, GOVERNED + "[content]\ndeny = []\n")
    begin = commit_of(team.dev, team.head(), {"q": f"{kept}forbidden\n{kept}", "x": "1\n"})
    policy = commit_of(team.dev, begin, {"patchgate.toml": GOVERNED + '[content]\ndeny = ["forbidden"]\n'})
    main = commit_of(team.dev, policy, {"q": f"{kept}from the vault\n{kept}"})
    team.server.git("fetch", "-q", str(team.dev.path), f"{main}:refs/heads/main")
    team.dev.git("fetch", "-q", "origin")
    side = commit_of(team.dev, policy, {"q": f"{kept}forbidden\n{kept}a\n"})
    excepted = {"x": "forbidden, but reviewed\n"}
    plain = commit_of(team.dev, main, excepted)
    assert team.approve("alice", plain, "--for", "refs/heads/main").code == 0
    solved = {"q": team.dev.ask("show", f"{side}:q") + "\n"}
    merge = commit_of(team.dev, main, solved | excepted, main, side)
    said = refused(team, f"{merge}:refs/heads/main", rule="deny-content")
    assert "q:4" in said
    assert team.push(f"{plain}:refs/heads/main").code == 0


def test_a_default_branch_that_no_list_names_is_judged_by_its_own_rules_when_it_is_forced(
    tmp_path: Path,
) -> None:
    listed = '[push]\nprotected_refs = ["refs/heads/release/*"]\n'
    team = Team.make(tmp_path, "[policy]\n" + listed, signers=())
    denied = {"patchgate.toml": '[policy]\ndeny_prefixes = ["docs"]\n' + listed}
    rule = commit_of(team.dev, team.head(), denied)
    lost = commit_of(team.dev, rule, {"b": "1\n"})
    assert team.push(f"{lost}:refs/heads/main").code == 0
    side = commit_of(team.dev, team.dev.ask("rev-parse", f"{rule}^"), {"docs/x": "1\n"})
    merge = commit_of(team.dev, side, denied, side, rule)
    refused(team, f"+{merge}:refs/heads/main", rule="deny-prefix")


def test_a_signed_approval_of_a_merge_is_of_how_it_lands(tmp_path: Path) -> None:
    """What it brings back is seen beside the branch that gets it."""
    team = Team.make(tmp_path, GOVERNED.replace("[policy]\n", '[policy]\ndeny_prefixes = ["runs"]\n'))
    sides = [commit_of(team.dev, team.head(), {name: "1\n"}) for name in ("b", "c")]
    merge = commit_of(team.dev, sides[0], {"c": "1\n", "runs/x": "1\n"}, *sides)
    team.dev.git("update-ref", "refs/heads/main", merge)
    refused(team, "main", rule="deny-prefix")
    assert team.approve("alice", merge, "--for", "refs/heads/main").code == 2
    where = ("--policy-from", "refs/remotes/origin/main")
    assert team.approve("alice", merge, "--for", "refs/heads/main", *where).code == 0
    assert team.push().code == 0


@pytest.mark.parametrize("seen", ["old", "now"])
def test_an_approval_of_a_merge_allows_what_was_shown_of_a_conflict(tmp_path: Path, seen: str) -> None:
    """Whoever approves it beside a main that still has a line is not shown that the merge brings it back."""
    rules = GOVERNED + '[content]\ndeny = ["forbidden"]\n'
    team = Team.make(tmp_path, GOVERNED)
    begin = commit_of(team.dev, team.head(), {"q": "a\nforbidden\n", "x": "1\n"})
    old = commit_of(team.dev, begin, {"patchgate.toml": rules})
    main = commit_of(team.dev, old, {"q": "a\nfrom the vault\n"})
    team.server.git("fetch", "-q", str(team.dev.path), f"{main}:refs/heads/main")
    team.dev.git("update-ref", "refs/remotes/origin/main", {"old": old, "now": main}[seen])
    side = commit_of(team.dev, old, {"q": "A\nforbidden\n"})
    merge = commit_of(team.dev, main, {"q": "A\nforbidden\n", "x": "forbidden, but reviewed\n"}, main, side)
    where = ("--for", "refs/heads/main", "--policy-from", "refs/remotes/origin/main")
    answer = team.approve("alice", merge, *where)
    assert (answer.code, "q:2" in answer.err) == (0, seen == "now")
    if seen == "old":
        assert "q:2" in refused(team, f"{merge}:refs/heads/main", rule="deny-content")
    else:
        assert team.push(f"{merge}:refs/heads/main").code == 0


def test_an_approval_of_a_merge_allows_the_lines_that_were_shown(tmp_path: Path) -> None:
    """The branch has removed another line by the time that the merge lands."""
    rules = GOVERNED + '[content]\ndeny = ["forbidden"]\n'
    team = Team.make(tmp_path, GOVERNED)
    dev, gap = team.dev, "\n" * 6
    both, second = f"forbidden a\n{gap}forbidden b\n", f"vault\n{gap}forbidden b\n"
    begin = commit_of(dev, team.head(), {"q": both})
    old = commit_of(dev, begin, {"patchgate.toml": rules})
    cleaned = commit_of(dev, old, {"q": second})
    team.server.git("fetch", "-q", str(dev.path), f"{cleaned}:refs/heads/main")
    dev.git("update-ref", "refs/remotes/origin/main", cleaned)
    side = commit_of(dev, old, {"q": f"forbidden a (1)\n{gap}forbidden b\n"})
    chosen = {"q": f"forbidden a (1)\n{gap}forbidden b\n", "n": "of the merge\n"}
    merge = commit_of(dev, cleaned, chosen, cleaned, side)
    where = ("--for", "refs/heads/main", "--policy-from", "refs/remotes/origin/main")
    said = team.approve("alice", merge, *where)
    assert (said.code, "q:1" in said.err, "q:8" in said.err) == (0, True, False)
    main = commit_of(dev, cleaned, {"q": f"vault\n{gap}vault\n"})
    assert team.push(f"{main}:refs/heads/main").code == 0
    clean = clean_merge(dev, main, merge)
    assert "q:8: error" in refused(team, f"{clean}:refs/heads/main", rule="deny-content")


def test_an_approval_allows_no_symlink_that_was_not_there(tmp_path: Path) -> None:
    """The same change redirects it out of the repository, on another base."""
    team = Team.make(tmp_path, GOVERNED + '[policy.commit]\nallow_symlinks = "inside"\n')
    start = team.head()
    approved = linked(team.dev, start, "vendor", "../common")
    assert team.approve("alice", approved, "--for", "refs/heads/main").code == 0
    inside = linked(team.dev, start, "link", "vendor/../.ssh/id_rsa")
    assert team.push(f"{inside}:refs/heads/main").code == 0
    again = linked(team.dev, inside, "vendor", "../common")
    assert "the symlink link leaves" in refused(team, f"{again}:refs/heads/main", rule="symlink")
    # Whoever approves both is shown both.
    assert "the symlink link leaves" in team.approve("bob", again, "--for", "refs/heads/main").err
    elsewhere = linked(team.dev, commit_of(team.dev, inside, {"link": None}), "vendor", "../common")
    assert team.push(f"{elsewhere}:refs/heads/main").code == 0


def test_an_approval_allows_no_symlink_that_leads_elsewhere(tmp_path: Path) -> None:
    """The approver was shown that an unchanged link leads into a submodule; by then it leads out."""
    team = Team.make(tmp_path, GOVERNED + '[policy.commit]\nallow_symlinks = "inside"\n')
    dev, start = team.dev, team.head()
    submodule = f"160000 commit {start}\tsub\n".encode()
    tree = dev.git("mktree", stdin=dev.git("ls-tree", start) + submodule).decode().strip()
    begin = dev.ask("commit-tree", tree, "-p", start, "-m", "Submodule")
    begin = linked(dev, begin, "z", "vendor/sub/README")
    team.server.git("fetch", "-q", str(dev.path), f"{begin}:refs/heads/main")
    dev.git("update-ref", "refs/remotes/origin/main", begin)
    approved = linked(dev, begin, "vendor", ".")
    assert "into a submodule" in team.approve("alice", approved, "--for", "refs/heads/main").err
    other = linked(dev, begin, "z", "vendor/../.ssh/id_rsa")
    assert team.push(f"{other}:refs/heads/main").code == 0
    again = linked(dev, other, "vendor", ".")
    refused(team, f"{again}:refs/heads/main", rule="symlink")


def test_an_approval_allows_no_new_symlink_that_was_harmless(tmp_path: Path) -> None:
    """The change has another link, which is shown; this one leaves through a link that comes in between."""
    team = Team.make(tmp_path, GOVERNED + '[policy.commit]\nallow_symlinks = "inside"\n')
    dev, start = team.dev, team.head()

    def change(base: str) -> str:
        tree = f"{linked(dev, linked(dev, base, 'x', '/etc/app.conf'), 'l', 'y/../.ssh/id_rsa')}^{{tree}}"
        return dev.ask("commit-tree", dev.ask("rev-parse", tree), "-p", base, "-m", "Links")

    assert team.approve("alice", change(start), "--for", "refs/heads/main").code == 0
    inside = linked(dev, start, "y", ".")
    assert team.push(f"{inside}:refs/heads/main").code == 0
    assert "l: error symlink" in refused(team, f"{change(inside)}:refs/heads/main", rule="symlink")


@pytest.mark.parametrize("allowed", ['"inside"', "false"])
def test_where_links_are_denied_too_none_is_turned_out_of_the_repository(
    tmp_path: Path, allowed: str
) -> None:
    team = Team.make(tmp_path, "[policy]\n", signers=())
    dev = team.dev
    linked_in = linked(dev, linked(dev, team.head(), "v", "q/b"), "l", "v/../../k")
    team.server.git("fetch", "-q", str(dev.path), f"{linked_in}:refs/heads/main")
    strict = {"patchgate.toml": f"[policy]\n[policy.commit]\nallow_symlinks = {allowed}\n"}
    rules = commit_of(dev, linked_in, strict)
    assert team.push(f"{rules}:refs/heads/main").code == 0
    refused(team, f"{commit_of(dev, rules, {'v': None})}:refs/heads/main", rule="symlink")


def test_a_branch_that_no_approval_can_name_is_refused_in_a_sentence(tmp_path: Path) -> None:
    team = Team.make(tmp_path, INFRA)
    change = team.dev.commit({"infra/main.tf": "2\n"})
    for name in ("a" * 200 + "/" + "b" * 200, "a\u202eb"):
        answer = team.approve("alice", change, "--for", f"refs/heads/{name}")
        assert (answer.code, "no approval can be made" in answer.err) == (2, True)


def test_an_approval_for_one_branch_makes_none_for_every_branch_needless(tmp_path: Path) -> None:
    team = Team.make(tmp_path, GOVERNED + '[content]\ndeny = ["forbidden"]\n')
    change = team.dev.commit({"a": "forbidden\n"})
    assert team.approve("alice", change, "--for", "refs/heads/release/1").code == 0
    refused(team, "main", rule="deny-content")
    assert team.approve("alice", change).code == 0
    assert team.push().code == 0


def test_whoever_signs_is_shown_everything(tmp_path: Path) -> None:
    team = Team.make(tmp_path, INFRA + '[content]\ndeny = ["forbidden"]\n')
    names = [f"infra/{number:02}" for number in range(30)]
    change = team.dev.commit(dict.fromkeys(names, "forbidden\n"))
    said = team.approve("alice", change, "--for", "refs/heads/main").err
    assert all(f"{name}:1\n" in said and f"    {name}\n" in said for name in names)


@pytest.mark.parametrize("asked", [(), ("--profile", "agent")])
def test_what_refuses_an_agent_hides_nothing_that_refuses_others(
    tmp_path: Path, asked: tuple[str, ...]
) -> None:
    """Both are errors of one rule at one path: who approves one is shown the other."""
    links = '[policy.commit]\nallow_symlinks = "inside"\n[policy.agent]\nallow_symlinks = false\n'
    team = Team.make(tmp_path, GOVERNED + links)
    dev = team.dev
    tree = dev.ask("rev-parse", f"{linked(dev, team.head(), 'x', '/etc/passwd')}^{{tree}}")
    message = "Link\n\nPatchgate-Profile: agent"
    made = dev.ask("commit-tree", tree, "-p", team.head(), "-m", message)
    said = team.approve("alice", made, "--for", "refs/heads/main", *asked).err
    assert ("x is a symlink\n" in said, "outside the repository" in said) == (True, True)


def test_an_approval_allows_no_broken_component_that_was_not_there(tmp_path: Path) -> None:
    """What depends on a contract that the change removes depends on the base."""
    names = ("a", "b", "c")
    team = Team.make(tmp_path, GOVERNED + declared(*names))
    dev = team.dev
    begin = dev.commit(
        {f"contracts/{name}/interface.json": contract(name, *"a" * (name == "b")) for name in names}
        | {f"tests/{name}/test_{name}.py": "def test() -> None:\n    assert True\n" for name in names}
        | {f"src/{name}/{name}.py": "x = 1\n" for name in names}
    )
    assert team.push().code == 0
    gone: dict[str, str | None] = {"contracts/a/interface.json": None}
    removed = commit_of(dev, begin, gone)
    assert team.approve("alice", removed, "--for", "refs/heads/main").code == 0
    further = commit_of(dev, begin, {"contracts/c/interface.json": contract("c", "a")})
    assert team.push(f"{further}:refs/heads/main").code == 0
    again = commit_of(dev, further, gone)
    said = refused(team, f"{again}:refs/heads/main", rule="dependency-without-contract")
    assert "contracts/c/interface.json" in said
    elsewhere = commit_of(dev, commit_of(dev, further, {"contracts/c/interface.json": contract("c")}), gone)
    assert team.push(f"{elsewhere}:refs/heads/main").code == 0


def linked(repo: Repo, base: str, name: str, target: str) -> str:
    """Commit a symlink on top of a commit."""
    blob = repo.git("hash-object", "-w", "--stdin", stdin=target.encode()).decode().strip()
    others = [
        line for line in repo.git("ls-tree", base).splitlines() if not line.endswith(f"\t{name}".encode())
    ]
    listed = b"\n".join([*others, f"120000 blob {blob}\t{name}\n".encode()])
    tree = repo.git("mktree", stdin=listed).decode().strip()
    return repo.ask("commit-tree", tree, "-p", base, "-m", "Link")


@pytest.mark.parametrize("policy", ["", "[policy]\n"])
def test_what_a_branch_without_a_policy_has_removed_comes_back_by_no_conflict(
    tmp_path: Path, policy: str
) -> None:
    dev = Repo.create(tmp_path)
    if policy:
        dev.policy(policy)
    secret = "key = AKIA" + "ABCDEFGHIJKLMNOP\n"
    begin = dev.commit({"q": f"a\n{secret}b\n"})
    main = dev.commit({"q": "from the vault\nb\n"})
    server = dev.at(tmp_path / "server.git")
    dev.git("clone", "-q", "--bare", ".", str(server.path))
    assert server.cli("install", "--server").code == 0
    side = commit_of(dev, begin, {"q": f"A\n{secret}b\n"})
    merge = commit_of(dev, main, {"q": f"A\n{secret}b\n"}, main, side)
    (server.path / "objects" / "info" / "alternates").write_text(f"{dev.git_dir}/objects\n")
    answer = server.answer_hook("pre-receive", f"{main} {merge} refs/heads/main\n".encode())
    assert (answer.code, "error secret" in answer.out + answer.err) == (1, True)
    topic = server.answer_hook("pre-receive", f"{'0' * 40} {main} refs/heads/topic\n".encode())
    assert topic.code == 0


def test_the_command_that_a_refused_merge_names_approves_it(tmp_path: Path) -> None:
    team = Team.make(tmp_path, INFRA)
    sides = [commit_of(team.dev, team.head(), {name: "1\n"}) for name in ("b", "c")]
    merge = commit_of(team.dev, sides[0], {"c": "1\n", "infra/main.tf": "2\n"}, *sides)
    team.dev.git("update-ref", "refs/heads/main", merge)
    said = re.search(r"git patchgate approve (\S+ --for \S+ --policy-from \S+)", refused(team, "main"))
    assert said is not None
    assert team.approve("alice", *said[1].split()).code == 0
    assert team.push().code == 0


def test_where_the_base_has_signers_one_of_them_is_asked(tmp_path: Path) -> None:
    team = Team.make(tmp_path, "[policy]\n")
    both = "".join(team.keys[name].allowed(f"{name}@example.com") for name in ("alice", "bob"))
    change = team.dev.commit({SIGNERS: both})
    said = re.search(r"git patchgate approve (\S+ --for [^ ]+)", refused(team, "main"))
    assert said is not None
    assert team.approve("alice", *said[1].split()).code == 0
    assert (team.push().code, team.head()) == (0, change)


def test_the_command_for_a_merge_onto_a_new_branch_names_what_is_there(tmp_path: Path) -> None:
    listed = '[push]\nprotected_refs = ["refs/heads/main", "refs/heads/release/*"]\n'
    team = Team.make(tmp_path, INFRA + listed)
    sides = [commit_of(team.dev, team.head(), {name: "1\n"}) for name in ("b", "c")]
    merge = commit_of(team.dev, sides[0], {"c": "1\n", "infra/main.tf": "2\n"}, *sides)
    pushed = f"{merge}:refs/heads/release/2"
    said = re.search(r"git patchgate approve (\S+ --for \S+ --policy-from \S+)", refused(team, pushed))
    assert said is not None
    assert team.approve("alice", *said[1].split()).code == 0
    assert team.push(pushed).code == 0


def test_old_dates_bring_nothing_of_a_history_before(tmp_path: Path) -> None:
    """Git lists commits that main has had for years where its newest ones have dates from before those."""
    denied = '[policy]\ndeny_prefixes = ["docs"]\n'
    dev = Repo.create(tmp_path)
    dev.commit({"docs/x": "1\n", "a": "1\n"})
    dev.git("rm", "-q", "-r", "docs")
    dev.commit({"patchgate.toml": denied})
    fork = dev.commit({"a": "2\n"})
    for number in range(8):
        date = f"{315532800 + number} +0000"
        tree = dev.ask("rev-parse", f"{commit_of(dev, dev.head(), {'b': f'{number}'})}^{{tree}}")
        old = dev.git("commit-tree", tree, "-p", "HEAD", "-m", "x", GIT_COMMITTER_DATE=date).decode().strip()
        dev.git("reset", "-q", "--hard", old)
    team = Team(dev.at(tmp_path / "server.git"), dev, {})
    dev.git("clone", "-q", "--bare", ".", str(team.server.path))
    dev.git("remote", "add", "origin", str(team.server.path))
    dev.git("fetch", "-q", "origin")
    team.install()
    topic = commit_of(dev, fork, {"c": "1\n"})
    merge = commit_of(dev, dev.head(), {"c": "1\n"}, dev.head(), topic)
    listed = dev.ask("rev-list", merge, "^HEAD").split()
    assert set(listed) > {merge, topic}
    asked = ("--policy-from", "refs/remotes/origin/main", f"refs/remotes/origin/main..{merge}")
    answer = dev.check(*asked, CI="true")
    assert (answer.code, {each["commit"] for each in answer.changes}) == (0, {merge, topic})
    assert team.push(f"{merge}:refs/heads/main").code == 0


def signatures_take(monkeypatch: pytest.MonkeyPatch, seconds: float, *, limit: float) -> None:
    ticks = itertools.count()
    clock = SimpleNamespace(
        monotonic=lambda: seconds * next(ticks), process_time=time.process_time, time=time.time
    )
    monkeypatch.setattr(grants, "time", clock)
    monkeypatch.setattr(grants, "_SECONDS_IN_ALL", limit)


@pytest.mark.parametrize(("seconds", "code"), [(0.1, 0), (10.0, 1)])
def test_approvals_that_count_take_no_time_from_each_other_unless_they_are_slow(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seconds: float, code: int
) -> None:
    team = Team.make(tmp_path, INFRA)
    for number in range(4):
        team.dev.commit({"infra/main.tf": f"{number}\n"})
        assert team.approve("alice").code == 0
    signatures_take(monkeypatch, seconds, limit=seconds * 1.5)
    assert team.push(is_real=False).code == code


def test_approvals_that_count_have_a_limit_in_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    team = Team.make(tmp_path, INFRA)
    for number in range(4):
        team.dev.commit({"infra/main.tf": f"{number}\n"})
        assert team.approve("alice").code == 0
    signatures_take(monkeypatch, 0.1, limit=0.15)
    monkeypatch.setattr(grants, "_SECONDS_GIVEN_BACK_IN_ALL", 0.1)
    assert RULE in team.push(is_real=False).err


def test_open_branches_that_take_too_long_one_by_one_are_judged_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    team = Team.make(tmp_path, INFRA)
    had, merges = many_branches(team, 3)
    pushed = [
        f"{commit_of(team.dev, merges[-1], {}, commit, merges[-1])}:{branch}"
        for branch, commit in had.items()
    ]
    monkeypatch.setattr(push_groups, "TIMES_FIRST", 0)
    monkeypatch.setattr(push_groups, "SECONDS_AGAIN", 0)
    assert team.push(*pushed, is_real=False).code == 0


def test_a_push_of_many_refusals_prints_no_line_for_each(tmp_path: Path) -> None:
    team = Team.make(tmp_path, INFRA + PROTECTED)
    commits = [team.head()]
    for number in range(8):
        commits.append(commit_of(team.dev, commits[-1], {"infra/main.tf": f"{number} new\n"}))
    said = refused(team, *(f"{commits[-1]}:refs/heads/release/{number}" for number in range(8)))
    assert said.count(f"error {RULE}") == 20
    assert len(said.splitlines()) < 60


def test_a_branch_without_a_policy_gets_no_verdict_of_a_branch_that_has_the_change(tmp_path: Path) -> None:
    team = Team.make(tmp_path, "[policy]\n")
    base = commit_of(team.dev, None, {"a": "1\n", "infra/main.tf": "1\n"})
    protects = '[push]\nprotected_refs = ["refs/heads/release/*"]\n'
    policy = commit_of(team.dev, base, {"patchgate.toml": '[policy]\ndeny = ["infra/**"]\n' + protects})
    two = commit_of(team.dev, policy, {"infra/main.tf": "2\n"})
    team.server.git("fetch", "-q", str(team.dev.path), two)
    for name, commit in (("main", base), ("release/1", two)):
        team.server.git("update-ref", f"refs/heads/{name}", commit)
    one, other = (commit_of(team.dev, policy, {name: "1\n"}) for name in ("b", "c"))
    evil = commit_of(team.dev, one, {"infra/main.tf": "2\n", "c": "1\n"}, one, other)
    beside = commit_of(team.dev, two, {"b": "1\n", "c": "1\n"}, two, evil)
    refused(team, f"{evil}:refs/heads/main", rule="deny-pattern")
    refused(team, f"{evil}:refs/heads/main", f"{beside}:refs/heads/release/1", rule="deny-pattern")


def test_one_change_of_the_rules_that_two_branches_get_is_approved_for_each(tmp_path: Path) -> None:
    team = Team.make(tmp_path, GOVERNED + PROTECTED)
    start = team.head()
    assert team.push(f"{start}:refs/heads/release/1").code == 0
    change = commit_of(team.dev, start, {"patchgate.toml": LOOSER + PROTECTED})
    both = (f"{change}:refs/heads/main", f"{change}:refs/heads/release/1")
    assert team.approve("alice", change, "--for", "refs/heads/main").code == 0
    refused(team, *both)
    assert team.approve("alice", change, "--for", "refs/heads/release/1").code == 0
    answer = team.push(*both)
    assert answer.code == 0, answer.err


# Seventh round: names of refs, and whose owners count.


PLAIN = '[policy]\n[governance]\nid = "repository-1"\n'
RELEASE = '[push]\nprotected_refs = ["refs/heads/main", "refs/heads/release"]\n'


def on_server(team: Team, name: str, commit: str) -> None:
    """Give a branch of the server a commit that nobody pushed, and fetch it."""
    team.server.git("fetch", "-q", str(team.dev.path), commit)
    team.server.git("update-ref", f"refs/heads/{name}", commit)
    team.dev.git("update-ref", f"refs/remotes/origin/{name}", commit)


@pytest.mark.parametrize("name", ["refs/heads/prod", "refs/heads/release-3"])
def test_a_protected_name_protects_what_it_names_before_that_exists(tmp_path: Path, name: str) -> None:
    names = '[push]\nprotected_refs = ["refs/heads/main", "refs/heads/prod"]\n'
    team = Team.make(tmp_path, INFRA + names)
    team.server.git("symbolic-ref", "refs/heads/prod", "refs/heads/release-3")
    evil = commit_of(team.dev, team.head(), {"infra/main.tf": "2\n"})
    refused(team, f"{evil}:{name}")
    assert team.push(f"{team.head()}:{name}").code == 0


def test_a_name_that_leads_nowhere_stops_no_push_of_another(tmp_path: Path) -> None:
    team = Team.make(tmp_path, INFRA + PROTECTED)
    refs = team.server.path / "refs" / "heads"
    for name, target in (("one", "two"), ("two", "one"), ("bad..name", "main"), ("x.lock", "main")):
        (refs / name).write_text(f"ref: refs/heads/{target}\n")
    # Only the hook: git's own check of what arrived stops at such a name.
    assert team.push(f"{team.head()}:refs/heads/topic", is_real=False).code == 0


def test_the_names_in_a_list_are_asked_for_one_by_one_where_refs_are_no_files(tmp_path: Path) -> None:
    repo = Repo.create(tmp_path)
    repo.commit({"a": "1\n"})
    repo.git("symbolic-ref", "refs/heads/prod", "refs/heads/release-3")
    (repo.path / ".git/refs/heads/loop").write_text("ref: refs/heads/loop\n")
    names = ("refs/heads/prod", "refs/heads/loop", "refs/heads/main", "refs/heads/*", "HEAD", "/etc/x")
    found = missing_targets(open_repository(repo.env, str(repo.path)), names, {})
    assert found == {"refs/heads/prod": "refs/heads/release-3"}


def test_where_head_names_a_ref_that_is_no_branch_none_is_made_beside_one_with_owners(tmp_path: Path) -> None:
    team = Team.make(tmp_path, INFRA)
    server = team.server
    server.git("branch", "-m", "main", "trunk")
    server.git("update-ref", "refs/meta/config", "refs/heads/trunk")
    server.git("symbolic-ref", "HEAD", "refs/meta/config")
    own = commit_of(team.dev, None, {"patchgate.toml": "[push]\nprotected_refs = []\n"})
    said = refused(team, f"{own}:refs/heads/main", rule="git symbolic-ref HEAD refs/heads/NAME")
    assert "refs/meta/config" in said


def test_where_the_server_names_signers_no_branch_becomes_the_default_beside_another(tmp_path: Path) -> None:
    policy = '[policy]\ndeny = ["secret/**"]\n'
    team = Team.make(tmp_path, policy, signers=(), server_signers=("alice",))
    team.server.git("branch", "-m", "main", "trunk")
    team.server.git("symbolic-ref", "HEAD", "refs/heads/master")
    team.dev.commit({SIGNERS: team.keys["mallory"].allowed("mallory@example.com")})
    refused(team, "main:refs/heads/trunk", rule="git symbolic-ref HEAD refs/heads/NAME")
    own = commit_of(team.dev, "HEAD", {"patchgate.toml": "[push]\nprotected_refs = []\n", SIGNERS: None})
    refused(team, f"{own}:refs/heads/main", rule="git symbolic-ref HEAD refs/heads/NAME")


def trusted(team: Team, policy: str) -> None:
    """Let the server trust a ref that has a policy of its own."""
    on_server(team, "rules", commit_of(team.dev, team.head(), {"patchgate.toml": policy}))
    team.server.git("config", "patchgate.trustRef", "refs/heads/rules")


@pytest.mark.parametrize("how", ["deleted", "forced"])
def test_what_has_the_owners_of_the_trusted_ref_is_neither_deleted_nor_forced(
    tmp_path: Path, how: str
) -> None:
    team = Team.make(tmp_path, f"[policy]\n{RELEASE.replace('refs/heads/main', 'refs/heads/x')}")
    trusted(team, INFRA + RELEASE.replace("refs/heads/main", "refs/heads/x"))
    other = commit_of(team.dev, "HEAD~1", {"a": "2\n"})
    old, new = team.head(), "0" * 40 if how == "deleted" else other
    (team.server.path / "objects" / "info" / "alternates").write_text(f"{team.dev.git_dir}/objects\n")
    answer = team.server.answer_hook("pre-receive", f"{old} {new} refs/heads/main\n".encode())
    assert (answer.code, f"ref-{how}" in answer.out + answer.err) == (1, True)


SECRET = '[policy]\ndeny = ["secret/**"]\n'


@pytest.mark.parametrize("where", ["trusted ref", "default branch", "own"])
def test_an_exception_for_main_lands_on_no_other_branch_whoever_names_its_owners(
    tmp_path: Path, where: str
) -> None:
    governed = SECRET + INFRA.removeprefix("[policy]\n") + RELEASE
    team = Team.make(tmp_path, PLAIN + RELEASE if where == "trusted ref" else governed)
    start = team.head()
    if where == "default branch":
        start = team.dev.ask("rev-list", "--max-parents=0", start)
    on_server(team, "release", start)
    asked = ["--for", "refs/heads/main"]
    if where == "trusted ref":
        trusted(team, governed)
        asked += ["--policy-from", "refs/remotes/origin/rules"]
    else:
        asked += ["--policy-from", "refs/remotes/origin/main"]
    secret = commit_of(team.dev, start, {"secret/x": "1\n"})
    merged = (
        secret
        if start == team.head()
        else commit_of(team.dev, team.head(), {"secret/x": "1\n"}, team.head(), secret)
    )
    assert team.approve("alice", secret, *asked).code == 0
    answer = team.push(f"{merged}:refs/heads/main")
    assert answer.code == 0, answer.err
    refused(team, f"{secret}:refs/heads/release", rule="deny-pattern")
    asked[1] = "refs/heads/release"
    assert team.approve("alice", secret, *asked).code == 0
    answer = team.push(f"{secret}:refs/heads/release")
    assert answer.code == 0, answer.err


@pytest.mark.parametrize("where", ["trusted ref", "default branch"])
def test_what_main_has_lands_elsewhere_with_an_approval_whoever_names_the_owners(
    tmp_path: Path, where: str
) -> None:
    team = Team.make(tmp_path, (PLAIN if where == "trusted ref" else INFRA) + RELEASE)
    start = team.head()
    asked = ["--policy-from", "refs/remotes/origin/main"]
    if where == "trusted ref":
        trusted(team, INFRA + RELEASE)
        asked = ["--policy-from", "refs/remotes/origin/rules"]
    else:
        start = team.dev.ask("rev-list", "--max-parents=0", start)
    on_server(team, "release", start)
    change = commit_of(team.dev, team.head(), {"infra/main.tf": "2\n"})
    assert team.approve("alice", change, *asked, "--for", "refs/heads/main").code == 0
    assert team.push(f"{change}:refs/heads/main").code == 0
    place = asked[1] if where == "trusted ref" else change[:12]
    assert f"--for refs/heads/release --policy-from {place}" in refused(team, f"{change}:refs/heads/release")
    for each in team.dev.ask("rev-list", "--reverse", f"{start}..{change}").split():
        assert team.approve("alice", each, *asked, "--for", "refs/heads/release").code == 0
    answer = team.push(f"{change}:refs/heads/release")
    assert answer.code == 0, answer.err


def test_without_a_table_a_change_of_the_signers_is_approved_for_each_branch(tmp_path: Path) -> None:
    team = Team.make(tmp_path, PLAIN + RELEASE)
    on_server(team, "release", team.head())
    signers = team.dev.git("show", f"HEAD:{SIGNERS}").decode()
    change = land(team, {SIGNERS: signers + team.keys["bob"].allowed("bob@example.com")})
    refused(team, f"{change}:refs/heads/release")
    assert team.approve("alice", change, "--for", "refs/heads/release").code == 0
    answer = team.push(f"{change}:refs/heads/release")
    assert answer.code == 0, answer.err


def test_the_first_signers_are_approved_for_each_branch(tmp_path: Path) -> None:
    team = Team.make(tmp_path, PLAIN + RELEASE, signers=(), server_signers=("alice",))
    on_server(team, "release", team.head())
    change = land(team, {SIGNERS: team.keys["bob"].allowed("bob@example.com")})
    refused(team, f"{change}:refs/heads/release")
    assert team.approve("alice", change, "--for", "refs/heads/release").code == 0
    answer = team.push(f"{change}:refs/heads/release")
    assert answer.code == 0, answer.err


def test_a_policy_for_which_no_time_is_left_is_no_broken_one(tmp_path: Path) -> None:
    team = Team.make(tmp_path, INFRA)
    opened = open_repository(team.dev.env, str(team.dev.path))
    late = replace(opened, expression_time=CpuBudget(-1.0), trusts_caches=False)
    with Objects(late) as objects:
        policies = TreePolicies(objects)
        tree = team.dev.ask("rev-parse", "HEAD^{tree}")
        for _ in range(2):
            with pytest.raises(UndecidedError):
                policies.at(policies.key(tree))


def test_a_large_project_file_without_a_policy_is_read_once(tmp_path: Path) -> None:
    team = Team.make(tmp_path, INFRA)
    tree = team.dev.ask(
        "rev-parse", commit_of(team.dev, "HEAD", {"pyproject.toml": "# patchgate\n"}) + "^{tree}"
    )
    opened = open_repository(team.dev.env, str(team.dev.path))
    with Objects(opened) as objects:
        key = TreePolicies(objects).key(tree)
    # Another question of the same command needs no time for it.
    with Objects(replace(opened, expression_time=CpuBudget(-1.0))) as objects:
        assert TreePolicies(objects).key(tree) == key


@pytest.mark.parametrize("how", ["repair", "force", "delete"])
def test_a_policy_that_cannot_be_read_protects_its_own_branch(tmp_path: Path, how: str) -> None:
    team = Team.make(tmp_path, GOVERNED)
    broken = commit_of(team.dev, "HEAD", {"patchgate.toml": "[polcy]\n"})
    team.server.git("fetch", "-q", str(team.dev.path), f"{broken}:refs/heads/topic")
    repaired = commit_of(team.dev, broken, {"patchgate.toml": "[policy]\n", "infra/a": "evil\n"})
    refs = {"repair": f"{repaired}:refs/heads/topic", "force": "+HEAD:refs/heads/topic", "delete": ":topic"}
    before = team.server.ask("for-each-ref")
    assert team.dev.try_git("push", "--no-verify", "origin", refs[how]).returncode != 0
    assert team.server.ask("for-each-ref") == before


@pytest.mark.parametrize("ref", [":rules", "+HEAD~1:refs/heads/rules"])
def test_the_trusted_ref_is_neither_deleted_nor_forced(tmp_path: Path, ref: str) -> None:
    team = Team.make(tmp_path, "[policy]\n")
    team.dev.commit({"a": "2\n"})
    team.server.git("fetch", "-q", str(team.dev.path), "HEAD:refs/heads/rules")
    team.server.git("config", "patchgate.trustRef", "refs/heads/rules")
    before = team.server.ask("for-each-ref")
    assert team.dev.try_git("push", "--no-verify", "origin", ref).returncode != 0
    assert team.server.ask("for-each-ref") == before


def test_no_history_is_walked_for_each_of_many_refs_that_are_forced(tmp_path: Path) -> None:
    team = Team.make(tmp_path, GOVERNED + PROTECTED)
    git = AskedGit(tmp_path, team.server.env)
    server = Repo(team.server.path, team.server.env | {"PATH": git.path})
    start = team.head()
    walks = [0]
    for number in (6, 12):
        lines = []
        for each in range(number):
            had, new = (commit_of(team.dev, start, {"a": f"{number} {each} {side}\n"}) for side in "ab")
            team.server.git("fetch", "-q", str(team.dev.path), had, new)
            team.server.git("update-ref", f"refs/heads/release/{each}", had)
            lines.append(f"{had} {new} refs/heads/release/{each}\n")
        answer = server.answer_hook("pre-receive", "".join(lines).encode())
        assert (answer.code, "ref-forced" in answer.out) == (1, True)
        walks.append(git.times("--simplify-merges"))
    assert walks[2] - walks[1] == walks[1] > 0


@pytest.mark.parametrize("trusted", [(), ("--trust-ref", "refs/heads/main")], ids=["", "trusted"])
@pytest.mark.parametrize("key", ['allow_roots = ["infra"]\n', '[message]\nlevel = "error"\n'])
def test_no_policy_judges_approvals(tmp_path: Path, trusted: tuple[str, ...], key: str) -> None:
    team = Team.make(tmp_path, INFRA.replace("[policy]\n", f"[policy]\n{key}"))
    team.install(*trusted)
    (team.dev.path / "infra" / "main.tf").write_text("2\n")
    team.dev.git("commit", "-q", "-a", "--no-verify", "-m", "feat: change the infrastructure")
    assert team.approve("alice").code == 0
    assert team.push().code == 0


def test_a_policy_among_the_notes_judges_nothing_and_protects_nothing(tmp_path: Path) -> None:
    team = Team.make(tmp_path, INFRA)
    no = '[policy]\nallow_roots = ["no"]\n[push]\nprotected_refs = ["refs/notes/*"]\n'
    team.dev.git("update-ref", REF, commit_of(team.dev, None, {"patchgate.toml": no}))
    assert team.push(is_real=False).code == 0
    team.dev.commit({"infra/main.tf": "2\n"})
    assert team.approve("alice").code == 0
    assert team.push(is_real=False).code == 0
    team.dev.git("update-ref", REF, commit_of(team.dev, None, {"a": "1\n"}))
    assert team.push("main", is_real=False).code == 0


def test_no_history_is_walked_for_each_of_many_tags_of_what_has_landed(tmp_path: Path) -> None:
    team = Team.make(tmp_path, GOVERNED + '[push]\nprotected_refs = ["refs/heads/main", "refs/tags/*"]\n')
    git = AskedGit(tmp_path, team.server.env)
    server = Repo(team.server.path, team.server.env | {"PATH": git.path})
    lines = "".join(f"{'0' * 40} {team.head()} refs/tags/{each}\n" for each in range(30))
    assert server.answer_hook("pre-receive", lines.encode()).code == 0
    assert git.total() > 0
    assert git.times("merge-base") + git.times("rev-list") < 10


def test_the_rules_of_many_branches_are_compared_for_a_limited_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    team = Team.make(tmp_path, GOVERNED + PROTECTED)
    start, pushed = team.head(), []
    for number in range(2):
        had = commit_of(team.dev, start, {"a": f"{number}\n"})
        on_server(team, f"release/{number}", had)
        change = commit_of(team.dev, had, {".patchgate/x": f"{number}\n"})
        assert team.approve("alice", change, "--for", f"refs/heads/release/{number}").code == 0
        pushed.append(f"{change}:refs/heads/release/{number}")
    monkeypatch.setattr(owners, "_MOST_SECONDS_OF_RULES", 0.0)
    assert "push fewer branches" in team.push(*pushed, is_real=False).err
    assert team.head("release/0") != pushed[0].partition(":")[0]
    monkeypatch.undo()
    assert team.push(*pushed, is_real=False).code == 0


def test_who_signs_is_shown_what_stands_behind_a_long_path(tmp_path: Path) -> None:
    team = Team.make(tmp_path, GOVERNED + '[policy.commit]\nallow_symlinks = "inside"\n')
    folder = "/".join(["p" * 245] * 5)
    team.dev.commit({"a": "2\n"})
    (team.dev.path / "zz").mkdir()
    (team.dev.path / "zz" / "session").symlink_to(f"../{folder}/vendor/x")
    team.dev.stage()
    team.dev.git("commit", "-q", "--no-verify", "-m", "Link")
    assert team.push(is_real=False).code == 0
    (team.dev.path / folder).mkdir(parents=True)
    (team.dev.path / folder / "vendor").symlink_to("/etc")
    team.dev.stage()
    team.dev.git("commit", "-q", "--no-verify", "-m", "Vendor")
    shown = team.approve(
        "alice", "HEAD", "--for", "refs/heads/main", "--policy-from", "refs/remotes/origin/main"
    )
    assert (shown.code, "zz/session" in shown.err) == (0, True)


def test_the_approvals_that_a_push_lacks_are_limited_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    team = Team.make(tmp_path, GOVERNED + '[[owners]]\npaths = ["*"]\n' * 5)
    for number in range(3):
        team.dev.commit({"a": f"{number} new\n"})
    assert team.push(is_real=False).err.count(RULE) == 15
    monkeypatch.setattr(owners, "MOST_FINDINGS", 14)
    assert team.push(is_real=False).code == 3
