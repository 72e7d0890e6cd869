"""A protected ref that is new: CI and the server ask for the same approvals, which name that ref."""

from __future__ import annotations

import json
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.approvals.owners_world import GOVERNED, ID, Team, key_of
from tests.approvals.test_owner_attacks import DENIED, INFRA, clean_merge, commit_of, land, on_server, refused
from tests.signing import REF, SIGNERS, needs_ssh_keygen
from tests.world import Repo

pytestmark = [needs_ssh_keygen, pytest.mark.turns(4)]

LISTED = '[push]\nprotected_refs = ["refs/heads/main", "refs/heads/release/*", "refs/tags/v*"]\n'
LOOSER = "[content]\nsecrets = false\n"
BRANCH, TAG = "refs/heads/release/9", "refs/tags/v9"
ZEROES = "0" * 40


def in_ci(team: Team, ref: str, new: str) -> tuple[int, list[str]]:
    """Say what a clone in CI answers to the first push of a ref."""
    said = {
        "GITLAB_CI": "true",
        "CI": "true",
        "CI_PIPELINE_SOURCE": "push",
        "CI_COMMIT_SHA": new,
        "CI_DEFAULT_BRANCH": "main",
        "CI_COMMIT_BEFORE_SHA": ZEROES,
        "CI_COMMIT_REF_PROTECTED": "true",
    }
    if ref == TAG:
        said["CI_COMMIT_TAG"] = ref.removeprefix("refs/tags/")
    else:
        said["CI_COMMIT_BRANCH"] = ref.removeprefix("refs/heads/")
    team.dev.git("checkout", "-q", "--detach", new)
    answer = team.dev.check("--ci", cwd=team.dev.path, **said)
    team.dev.git("checkout", "-q", "main")
    return answer.code, answer.errors


@pytest.mark.parametrize("ref", [BRANCH, TAG])
@pytest.mark.parametrize("is_owned", [True, False])
def test_an_approval_for_main_is_none_for_a_new_protected_ref(
    tmp_path: Path, is_owned: bool, ref: str
) -> None:
    policy = (GOVERNED if is_owned else DENIED) + LISTED
    team = Team.make(tmp_path, policy)
    files = {"patchgate.toml": policy + LOOSER} if is_owned else {"infra/main.tf": "2\n"}
    rule = "owner-approval-missing" if is_owned else "deny-pattern"
    change = commit_of(team.dev, team.head(), dict(files))
    assert team.approve("alice", change, "--for", "refs/heads/main").code == 0
    assert in_ci(team, ref, change) == (1, [rule])
    refused(team, f"{change}:{ref}", rule=rule)
    assert team.approve("alice", change, "--for", ref).code == 0
    assert in_ci(team, ref, change) == (0, [])
    assert team.push(f"{change}:{ref}").code == 0


@pytest.mark.parametrize(("is_whole", "is_old"), [(True, False), (False, False), (False, True)])
def test_a_new_protected_branch_is_not_partly_as_main_is_and_partly_as_it_was(
    tmp_path: Path, is_whole: bool, is_old: bool
) -> None:
    """An old approval that touches the other part makes no difference."""
    team = Team.make(tmp_path, INFRA + LISTED)
    begin, guard = land(team, {"infra/door": "1\n"}), {"infra/guard": "1\n"}
    old = commit_of(team.dev, begin, dict(guard))
    assert team.approve("alice", old).code == 0
    assert team.push(f"{old}:refs/heads/main").code == 0
    land(team, {"infra/guard": "2\n", "infra/door": "2\n"})
    child = commit_of(team.dev, old, {"x": "1\n"})
    taken = {"infra/door": "2\n", "infra/guard": "2\n"} if is_whole else {"infra/door": "2\n"}
    tip = commit_of(team.dev, child, dict(taken), old, child)
    if is_old:
        again = commit_of(team.dev, commit_of(team.dev, begin, {"y": "1\n"}), dict(guard))
        tip = commit_of(team.dev, tip, {"y": "1\n"}, tip, again)
    team.dev.git("fetch", "-q", str(team.server.path), "+main:refs/remotes/origin/main")
    if is_whole:
        assert in_ci(team, BRANCH, tip) == (0, [])
        assert team.push(f"{tip}:{BRANCH}").code == 0
    else:
        assert in_ci(team, BRANCH, tip) == (1, ["owner-approval-missing"])
        assert "infra/door" in refused(team, f"{tip}:{BRANCH}")


def test_a_new_protected_branch_has_no_rule_of_long_ago_beside_an_approved_part(tmp_path: Path) -> None:
    policy = INFRA + LISTED
    both = "".join(key_of(name).allowed(f"{name}@example.com") for name in ("alice", "mallory"))
    team = Team.make(tmp_path, policy)
    only = {SIGNERS: key_of("alice").allowed("alice@example.com")}
    old = land(team, {SIGNERS: both})
    team.dev.git("fetch", "-q", str(team.server.path), "+main:refs/remotes/origin/main")
    now = land(team, dict(only))
    team.dev.git("fetch", "-q", str(team.server.path), "+main:refs/remotes/origin/main")
    change = commit_of(team.dev, now, {"patchgate.toml": policy + LOOSER, SIGNERS: both})
    assert team.approve("alice", change, "--for", BRANCH).code == 0
    child = commit_of(team.dev, old, {"x": "1\n"})
    half = commit_of(team.dev, change, {"patchgate.toml": policy, "x": "1\n"}, child, change)
    assert SIGNERS in refused(team, f"{half}:{BRANCH}")
    assert in_ci(team, BRANCH, half) == (1, ["owner-approval-missing"])
    assert team.push(f"{change}:{BRANCH}").code == 0


@pytest.mark.parametrize("annotated", [(), ("-a", "-m", "Nine")])
def test_an_approval_for_a_new_tag_may_be_given_when_the_clone_has_the_tag(
    tmp_path: Path, annotated: tuple[str, ...]
) -> None:
    team = Team.make(tmp_path, GOVERNED + LISTED)
    change = commit_of(team.dev, team.head(), {"patchgate.toml": GOVERNED + LISTED + LOOSER})
    team.dev.git("tag", *annotated, "v9", commit_of(team.dev, change, {"a": "2\n"}))
    assert team.approve("alice", change, "--for", TAG).code == 0
    assert in_ci(team, TAG, team.dev.ask("rev-parse", "v9^{commit}")) == (0, [])
    assert team.push(TAG).code == 0


def test_an_approval_for_a_tag_that_is_moved_is_for_the_rules_that_the_tag_has(tmp_path: Path) -> None:
    policy = GOVERNED + LISTED + '[rules]\nref-forced = "warning"\n'
    team = Team.make(tmp_path, policy)
    assert team.push(f"main:{TAG}").code == 0
    team.dev.git("tag", "v9", "main")
    newer = commit_of(team.dev, team.head(), {"patchgate.toml": policy + "# newer\n"})
    on_server(team, "main", newer)
    team.dev.git("update-ref", "refs/remotes/origin/main", newer)
    change = commit_of(team.dev, team.dev.ask("rev-parse", "v9"), {"patchgate.toml": policy + LOOSER})
    assert team.approve("alice", change, "--for", TAG).code == 0
    assert team.push(f"+{change}:{TAG}").code == 0


def test_a_tag_that_began_long_ago_is_not_moved_by_the_rules_of_then(tmp_path: Path) -> None:
    """It may be made at any commit that the default branch has, also at one without owners."""
    warned = '[rules]\nref-forced = "warning"\n'
    team = Team.make(tmp_path, "[policy]\n" + LISTED + warned, signers=("alice", "mallory"))
    old = team.head()
    today = {
        "patchgate.toml": INFRA + LISTED + warned,
        SIGNERS: team.keys["alice"].allowed("alice@example.com"),
    }
    newer = commit_of(team.dev, old, today)
    on_server(team, "main", newer)
    team.dev.git("update-ref", "refs/remotes/origin/main", newer)
    assert team.push(f"{old}:{TAG}").code == 0
    for base in (old, newer):
        moved = commit_of(team.dev, base, {"infra/main.tf": "2\n"})
        for by in ("refs/remotes/origin/main", old):
            team.approve("mallory", moved, "--for", TAG, "--policy-from", by)
        refused(team, f"+{moved}:{TAG}")
        assert "owner-approval-missing" in in_github(team, TAG, old, moved)[1]


def test_without_the_default_branch_of_the_remote_a_new_tag_is_not_approved(tmp_path: Path) -> None:
    team = Team.make(tmp_path, GOVERNED + LISTED)
    change = commit_of(team.dev, team.head(), {"patchgate.toml": GOVERNED + LISTED + LOOSER})
    team.dev.git("tag", "v9", change)
    team.dev.git("symbolic-ref", "--delete", "refs/remotes/origin/HEAD")
    assert team.approve("alice", change, "--for", TAG).code == 2


def test_a_new_protected_branch_with_the_rules_of_long_ago_is_refused_in_ci_too(tmp_path: Path) -> None:
    team = Team.make(tmp_path, "[policy]\n" + LISTED)
    fork = team.head()
    on_server(team, "main", commit_of(team.dev, fork, {"patchgate.toml": INFRA + LISTED}))
    team.dev.git("fetch", "-q", str(team.server.path), "main:refs/remotes/origin/main")
    code, rules = in_ci(team, BRANCH, fork)
    assert (code, {*rules}) == (1, {"owner-approval-missing"})
    refused(team, f"{fork}:{BRANCH}")


def test_the_first_policy_of_a_protected_branch_has_the_id_of_the_default_branch(tmp_path: Path) -> None:
    team = Team.make(tmp_path, GOVERNED + LISTED)
    plain = commit_of(team.dev, team.head(), {"patchgate.toml": None})
    on_server(team, BRANCH.removeprefix("refs/heads/"), plain)
    judged_by = ("--policy-from", "refs/remotes/origin/main")
    for policy in (GOVERNED.replace(ID, "repository-2"), GOVERNED):
        change = commit_of(team.dev, plain, {"patchgate.toml": policy})
        assert team.approve("alice", change, "--for", BRANCH, *judged_by).code == 0
        if policy != GOVERNED:
            assert "would get another [governance] id" in refused(team, f"{change}:{BRANCH}")
    answer = team.push(f"{change}:{BRANCH}")
    assert answer.code == 0, answer.err


def test_what_began_before_the_branch_had_an_id_is_checked_in_ci(tmp_path: Path) -> None:
    team = Team.make(tmp_path, INFRA.replace(f'id = "{ID}"', ""))
    began = team.head()
    on_server(team, "main", commit_of(team.dev, began, {"patchgate.toml": INFRA}))
    team.dev.git("checkout", "-q", "--detach", commit_of(team.dev, began, {"a": "2\n"}))
    asked = ("--policy-from", "refs/remotes/origin/main", "refs/remotes/origin/main..HEAD")
    assert team.dev.check(*asked, CI="true").verdict == "accepted"


@pytest.mark.parametrize("made", ["1\n", None])
def test_what_began_with_two_ids_brings_neither_back(tmp_path: Path, made: str | None) -> None:
    """Git merges what two histories share first: an id from before the last change of it may win then."""
    named = "[policy]\n" + LISTED + f'[governance]\nid = "{ID}"\n'
    old = named.replace(ID, "repository-0")
    team = Team.make(tmp_path, old)
    began = team.head()
    renamed, other = (
        commit_of(team.dev, began, files) for files in ({"patchgate.toml": named}, {"b": "1\n"})
    )
    on_server(team, "main", commit_of(team.dev, renamed, {"b": "1\n"}, renamed, other))
    head = commit_of(team.dev, other, {} if made is None else {"c": made}, other, renamed)
    team.dev.git("checkout", "-q", "--detach", head)
    asked = ("--policy-from", "refs/remotes/origin/main", "refs/remotes/origin/main..HEAD")
    answer = team.dev.check(*asked, CI="true")
    assert (answer.code, "another [governance] id" in answer.out) == (3, True)
    refused(team, f"{began}:{BRANCH}")
    assert team.push(f"{team.head()}:{BRANCH}").code == 0


def test_a_merge_of_two_texts_brings_no_other_id(tmp_path: Path) -> None:
    """Git joins lines: what main has written since may stand in a text that nobody reads."""
    named = f'[policy]\n# a\n# b\n[governance]\nid = "{ID}"\n# c\n# d\n'
    old = named.replace(ID, "repository-0")
    team = Team.make(tmp_path, old)
    began = team.head()
    on_server(team, "main", commit_of(team.dev, began, {"patchgate.toml": named}))
    hidden = old.replace(
        "# a\n", '# a\n[governance]\nid = "repository-0"\n[environment]\npython_path = """\n'
    )
    head = commit_of(team.dev, began, {"patchgate.toml": hidden.replace("# c\n", '# c\n"""\n')})
    merge = clean_merge(team.dev, team.head(), head)
    team.dev.git("checkout", "-q", "--detach", head)
    asked = ("--policy-from", "refs/remotes/origin/main", "refs/remotes/origin/main..HEAD")
    answer = team.dev.check(*asked, CI="true")
    assert (answer.code, "another [governance] id" in answer.out) == (3, True)
    refused(team, f"{merge}:refs/heads/main")


@pytest.mark.parametrize("how", ["union", "directory"])
def test_a_host_makes_no_policy_of_two_files_that_are_none(tmp_path: Path, how: str) -> None:
    """Another file of the project may become one, with lines of both sides or in another folder."""
    team = Team.make(tmp_path, INFRA)
    text = '[tool.a]\nx = """\nbase\n# """\n\n[tool.b]\nz = 1\n'
    table = "[tool.patchgate.policy]\n"
    names = ("pyproject.toml", "other") if how == "union" else ("sub/p", "sub/q")
    files = {".gitattributes": "pyproject.toml merge=union\n", **dict.fromkeys(names, text)}
    began = commit_of(team.dev, team.head(), files)
    if how == "union":
        ours: dict[str, str | None] = {"pyproject.toml": text.replace("base\n", 'o"""\n')}
        theirs = {"pyproject.toml": text.replace("base\n", table)}
    else:
        ours = {"sub/p": None, "sub/q": None, "p": text, "q": text}
        theirs = {"sub/pyproject.toml": table}
    on_server(team, "main", commit_of(team.dev, began, ours))
    head = commit_of(team.dev, began, theirs)
    team.dev.git("checkout", "-q", "--detach", head)
    asked = ("--policy-from", "refs/remotes/origin/main", "refs/remotes/origin/main..HEAD")
    answer = team.dev.check(*asked, CI="true")
    assert answer.code != 0, answer.out


@pytest.mark.parametrize("attributes", ["* -diff\n", "# none\n"])
def test_a_host_finds_no_other_rename_by_attributes(tmp_path: Path, attributes: str) -> None:
    """Of a file that counts as text git leaves out each CR before an LF, but not of its size."""

    def text(top: str, bottom: str) -> str:
        return f"{top}\r\n" + "\r\n" * 200 + f"{bottom}\r\n"

    team = Team.make(tmp_path, INFRA)
    began = commit_of(team.dev, team.head(), {".gitattributes": attributes, "x/f": text("top", "bottom")})
    moved = {"x/f": None, "infra/f": text("top and more than that, which makes it a longer line", "bottom")}
    on_server(team, "main", commit_of(team.dev, began, moved))
    head = commit_of(team.dev, began, {"x/f": text("top", "bottom, and mallory's")})
    team.dev.git("checkout", "-q", "--detach", head)
    asked = ("--policy-from", "refs/remotes/origin/main", "refs/remotes/origin/main..HEAD")
    assert team.dev.check(*asked, CI="true").code == 3


@pytest.mark.parametrize(
    ("had", "ours", "theirs", "code"),
    [
        ({"x/f": "1\n", "x/g": "1\n"}, {"x/f": None, "x/g": None, "infra/f": "1\n"}, {"x/g": "2\n"}, 3),
        ({"x/f": "1\n"}, {"x/f": None, "y/f": "1\n", "infra/f": "1\n"}, {"x/f": "2\n"}, 3),
        ({"x/f": "1\n"}, {"x/f": None, "pyproject.toml": "a = 1\n"}, {"x/f": "2\n"}, 3),
        ({"x/f": "1\n"}, {"x/f": None, "y/g": "3\n"}, {"x/f": "2\n"}, 0),
        ({"x/f": "1\n"}, {"x/f": None, "y/f": "1\n"}, {"x/f": "2\n"}, 0),
        ({"d/s/f": "1\n"}, {"d/s/f": None, "e/s/f": "2\n"}, {"d/new": "3\n"}, 3),
        ({"d/s/f": "1\n"}, {"d/s/f": None, "d": "1\n", "e/s/f": "2\n"}, {"d/new": "3\n"}, 3),
        ({"d/s/f": "1\n", "d/g": "1\n"}, {"d/s/f": None, "e/s/f": "2\n"}, {"d/new": "3\n"}, 0),
    ],
)
def test_a_file_that_one_side_has_and_the_other_moves_may_be_another_rename(
    tmp_path: Path,
    had: dict[str, str],
    ours: dict[str, str | None],
    theirs: dict[str, str],
    code: int,
) -> None:
    team = Team.make(tmp_path, INFRA)
    began = commit_of(team.dev, team.head(), had)
    on_server(team, "main", commit_of(team.dev, began, ours))
    team.dev.git("checkout", "-q", "--detach", commit_of(team.dev, began, theirs))
    asked = ("--policy-from", "refs/remotes/origin/main", "refs/remotes/origin/main..HEAD")
    assert team.dev.check(*asked, CI="true").code == code


def test_owned_lines_that_both_sides_have_changed_may_be_joined_to_others(tmp_path: Path) -> None:
    """Git takes what main has, which is more than the head; by another program a line may come twice."""
    team = Team.make(tmp_path, INFRA)
    lines = [f"{number}\n" for number in range(20)]
    began = commit_of(team.dev, team.head(), {"infra/f": "".join(lines)})
    same = {"infra/f": "".join([*lines[:3], "new\n", *lines[3:]])}
    on_server(team, "main", commit_of(team.dev, began, {"infra/f": f"{same['infra/f']}more\n"}))
    head = commit_of(team.dev, began, same)
    assert team.approve("alice", head, "--for", "refs/heads/main").code == 0
    team.dev.git("checkout", "-q", "--detach", head)
    asked = ("--policy-from", "refs/remotes/origin/main", "refs/remotes/origin/main..HEAD")
    answer = team.dev.check(*asked, CI="true")
    assert (answer.code, "infra/f" in answer.out) == (3, True)


@pytest.mark.parametrize("name", ["main", "master"])
@pytest.mark.parametrize("is_new", [True, False])
def test_a_new_main_beside_another_default_branch_has_its_owners(
    tmp_path: Path, name: str, *, is_new: bool
) -> None:
    """Without a list its own policy protects it as soon as it is there: with the signers of who made it."""
    team = Team.make(tmp_path, GOVERNED)
    team.server.git("branch", "-m", "main", "develop")
    team.server.git("symbolic-ref", "HEAD", "refs/heads/develop")
    keys = {SIGNERS: key_of("mallory").allowed("mallory@example.com")}
    if not is_new:
        # It is from before the policy.
        on_server(team, name, team.dev.ask("rev-list", "--max-parents=0", "HEAD"))
    change = commit_of(team.dev, team.head("develop"), keys)
    refused(team, f"{change}:refs/heads/{name}")
    for each in ("main", "master"):
        team.dev.try_git("update-ref", "-d", f"refs/remotes/origin/{each}")
    team.dev.git("update-ref", "refs/remotes/origin/develop", team.head("develop"))
    team.dev.git("remote", "set-head", "origin", "develop")
    assert team.approve("alice", change, "--for", "refs/heads/develop").code == 0
    refused(team, f"{change}:refs/heads/{name}")
    team.dev.git("checkout", "-q", "--detach", change)
    said = {"GITLAB_CI": "true", "CI_PIPELINE_SOURCE": "push", "CI_COMMIT_SHA": change}
    said |= {"CI_DEFAULT_BRANCH": "develop", "CI_COMMIT_BRANCH": name, "CI_COMMIT_BEFORE_SHA": ZEROES}
    if is_new:
        assert "owner-approval-missing" in team.dev.check("--ci", cwd=team.dev.path, **said).errors
        assert team.push(f"{team.head('develop')}:refs/heads/{name}").code == 0


def test_without_a_table_a_default_branch_with_signers_is_not_deleted(tmp_path: Path) -> None:
    """It could be made again without them. Git refuses it by default, where it is the current branch."""
    team = Team.make(tmp_path, '[policy]\n[push]\nprotected_refs = ["refs/heads/release/*"]\n')
    answer = team.server.answer_hook("pre-receive", f"{team.head()} {ZEROES} refs/heads/main\n".encode())
    assert (answer.code, "ref-deleted" in answer.out + answer.err) == (1, True)


def test_where_it_is_not_known_which_repository_this_is_no_approval_counts(tmp_path: Path) -> None:
    team = Team.make(tmp_path, INFRA.replace(f'id = "{ID}"', ""))
    on_server(team, "release/9", team.head())
    change = commit_of(team.dev, team.head(), {"infra/main.tf": "2\n"})
    judged_by = ("--policy-from", "refs/remotes/origin/release/9")
    assert team.approve("alice", change, "--for", BRANCH, *judged_by).code == 0
    team.dev.git("checkout", "-q", "--detach", change)
    asked = (*judged_by, "refs/remotes/origin/release/9..HEAD")
    assert team.dev.check(*asked, CI="true").code == 0
    # An approval that names no repository does not count in one that has a name.
    on_server(team, "main", commit_of(team.dev, team.head(), {"patchgate.toml": INFRA}))
    assert team.dev.check(*asked, CI="true").code == 1
    team.dev.git("symbolic-ref", "--delete", "refs/remotes/origin/HEAD")
    for _ in range(2):
        answer = team.dev.check(*asked, CI="true")
        assert (answer.code, "default branch of the remote is not known" in answer.out) == (3, True)
        # A branch of that name may be anybody's.
        named = commit_of(team.dev, change, {"patchgate.toml": INFRA.replace(ID, "repository-2")})
        team.dev.git("update-ref", "refs/remotes/origin/HEAD", named)
    # Of several remotes none is the usual one, and without any it is main.
    team.dev.git("update-ref", BRANCH, "refs/remotes/origin/release/9")
    asked = ("--policy-from", BRANCH, f"{BRANCH}..HEAD")
    team.dev.git("remote", "rename", "origin", "one")
    assert team.dev.check(*asked, CI="true").code == 3
    team.dev.git("remote", "add", "two", str(team.server.path))
    assert team.dev.check(*asked, CI="true").code == 3
    for name in ("one", "two"):
        team.dev.git("remote", "remove", name)
    assert team.dev.check(*asked, CI="true").code == 0
    team.dev.git("branch", "-f", "main", team.head())
    assert team.dev.check(*asked, CI="true").code == 1
    team.dev.git("branch", "-D", "main")
    assert team.dev.check(*asked, CI="true").code == 3


def test_in_ci_a_new_protected_branch_is_not_merged_into_the_default_branch(tmp_path: Path) -> None:
    team = Team.make(tmp_path, "[policy]\n" + LISTED, signers=())
    fork = team.head()
    on_server(team, "main", commit_of(team.dev, fork, {"patchgate.toml": "[policy]\n" + LISTED + "# a\n"}))
    team.dev.git("fetch", "-q", str(team.server.path), "main:refs/remotes/origin/main")
    change = commit_of(team.dev, fork, {"patchgate.toml": "[policy]\n" + LISTED + "# b\n"})
    assert in_ci(team, BRANCH, change) == (0, [])
    assert team.push(f"{change}:{BRANCH}").code == 0


def in_github(team: Team, ref: str, before: str, new: str) -> tuple[int, list[str]]:
    """Say what a clone on GitHub answers to a push that moves a protected ref."""
    event = {"ref": ref, "before": before, "after": new, "repository": {"default_branch": "main"}}
    (team.dev.path.parent / "event.json").write_text(json.dumps(event))
    said = {
        "GITHUB_ACTIONS": "true",
        "CI": "true",
        "GITHUB_EVENT_NAME": "push",
        "GITHUB_EVENT_PATH": str(team.dev.path.parent / "event.json"),
        "GITHUB_REF": ref,
        "GITHUB_SHA": new,
        "GITHUB_REF_PROTECTED": "true",
    }
    team.dev.git("checkout", "-q", "--detach", new)
    answer = team.dev.check("--ci", cwd=team.dev.path, **said)
    return answer.code, [each["rule"] for each in answer.findings] if answer.code != 3 else []


def test_a_protected_tag_that_was_moved_is_refused_in_ci_too(tmp_path: Path) -> None:
    team = Team.make(tmp_path, "[policy]\n" + LISTED)
    old = team.head()
    on_server(team, "main", commit_of(team.dev, old, {"a": "2\n"}))
    new = team.head()
    team.dev.git("fetch", "-q", str(team.server.path), "main:refs/remotes/origin/main")
    assert in_github(team, TAG, old, new) == (1, ["ref-forced"])
    assert in_github(team, TAG, ZEROES, new) == (0, [])


@pytest.mark.parametrize("is_crossed", [False, True])
def test_a_forced_push_takes_no_approved_change_back_in_ci(tmp_path: Path, is_crossed: bool) -> None:
    warned = '[rules]\nref-forced = "warning"\n'
    team = Team.make(tmp_path, INFRA + LISTED + warned)
    start = team.head()
    left, right = (commit_of(team.dev, start, {name: "1\n"}) for name in ("f", "g"))
    old = commit_of(team.dev, left, {"f": "1\n", "g": "1\n", "infra/main.tf": "2\n"}, left, right)
    parents = (right, left) if is_crossed else (right,)
    new = commit_of(team.dev, right, {"f": "1\n", "g": "1\n"}, *parents)
    team.dev.git("update-ref", "refs/remotes/origin/main", new)
    assert in_github(team, "refs/heads/main", old, new) == (1, ["ref-forced", "owner-approval-missing"])


def test_a_forced_push_of_the_default_branch_is_judged_by_what_it_had(tmp_path: Path) -> None:
    warned = '[rules]\nref-forced = "warning"\n'
    team = Team.make(tmp_path, "[policy]\n" + LISTED + warned, signers=())
    start = team.head()
    old = commit_of(team.dev, start, {"a": "2\n"})
    new = commit_of(team.dev, start, {"patchgate.toml": "[policy]\n" + LISTED})
    team.dev.git("update-ref", "refs/remotes/origin/main", new)
    assert in_github(team, "refs/heads/main", old, new) == (0, ["ref-forced"])


def test_without_the_default_branch_it_is_not_known_whether_a_branch_may_be_forced(tmp_path: Path) -> None:
    team = Team.make(tmp_path, "[policy]\n" + LISTED, signers=())
    old, new = (commit_of(team.dev, team.head(), {"a": f"{number}\n"}) for number in (2, 3))
    assert in_github(team, BRANCH, old, new) == (1, ["ref-forced"])
    team.dev.git("update-ref", "-d", "refs/remotes/origin/main")
    assert in_github(team, BRANCH, old, new) == (3, [])


def test_where_the_history_of_the_rules_is_cut_off_an_approved_change_is_undecided(tmp_path: Path) -> None:
    team = Team.make(tmp_path, GOVERNED)
    for number in range(2):
        team.dev.commit({"b": f"{number}\n"})
    assert team.push().code == 0
    team.dev.policy(GOVERNED + LOOSER)
    assert team.approve("alice").code == 0
    other = team.dev.at(tmp_path / "shallow")
    team.dev.git("clone", "-q", "--depth=2", "--branch=main", team.dev.path.as_uri(), str(other.path))
    notes = "refs/notes/patchgate-approvals"
    other.git("fetch", "-q", "origin", f"{notes}:{notes}")
    base = "refs/remotes/origin/main"
    other.git("update-ref", base, "HEAD~1")
    answer = other.check("--policy-from", base, f"{base}..HEAD", cwd=other.path)
    assert (answer.code, answer.errors) == (3, [])


def test_a_moved_tag_is_compared_with_what_it_had(tmp_path: Path) -> None:
    warned = '[rules]\nref-forced = "warning"\n'
    team = Team.make(tmp_path, INFRA + LISTED + warned)
    start = team.head()
    fixed = commit_of(team.dev, start, {"infra/main.tf": "2\n"})
    assert in_github(team, TAG, fixed, start) == (1, ["ref-forced", "owner-approval-missing"])
    newer = commit_of(team.dev, start, {"patchgate.toml": INFRA + LISTED + warned + "# newer\n"})
    team.dev.git("update-ref", "refs/remotes/origin/main", newer)
    older = team.dev.ask("rev-parse", f"{start}~1")
    assert team.dev.ask("show", f"{older}:patchgate.toml") == team.dev.ask("show", f"{start}:patchgate.toml")
    assert in_github(team, TAG, start, older)[1][:1] == ["ref-forced"]


def test_an_approval_for_a_branch_that_is_not_there_says_so(tmp_path: Path) -> None:
    team = Team.make(tmp_path, INFRA)
    change = team.dev.commit({"infra/main.tf": "new\n"})
    known = team.approve("alice", change, "--for", "refs/heads/main")
    mistyped = team.approve("alice", change, "--for", "refs/heads/mian")
    assert (known.code, "that is new" in known.err) == (0, False)
    assert (mistyped.code, "refs/heads/mian here" in mistyped.err) == (0, True)


@pytest.mark.parametrize(
    "name",
    [
        "refs/remotes/origin/main",
        "refs/",
        "refs/heads/",
        "main~1",
        "refs/heads/*",
        "a..b",
        "",
        "refs/heads/m:a",
    ],
)
def test_what_no_push_can_move_gets_no_approval(tmp_path: Path, name: str) -> None:
    team = Team.make(tmp_path, INFRA)
    change = team.dev.commit({"infra/main.tf": "new\n"})
    assert team.approve("alice", change, f"--for={name}").code == 2


def test_an_owner_whose_origin_is_a_fork_approves_for_the_branch_of_the_remote_that_is_named(
    tmp_path: Path,
) -> None:
    team = Team.make(tmp_path, GOVERNED)
    dev, start = team.dev, team.head()
    moved = dev.policy(GOVERNED + "# 1\n")
    assert team.approve("alice", moved).code == 0
    assert team.push().code == 0
    change = dev.policy(GOVERNED + "# 2\n")
    dev.git("remote", "add", "upstream", str(team.server.path))
    dev.git("update-ref", "refs/remotes/upstream/main", moved)
    dev.git("update-ref", "refs/remotes/origin/main", start)
    warned = team.approve("alice", change, "--for", "refs/heads/main")
    assert (warned.code, "refs/remotes/upstream/main" in warned.err) == (0, True)
    refused(team, rule="owner-approval-missing")
    named = ("--for", "refs/heads/main", "--policy-from", "refs/remotes/upstream/main")
    unknown = team.approve("alice", change, *named)
    assert (unknown.code, "git remote set-head upstream --auto" in unknown.err) == (2, True)
    dev.git("symbolic-ref", "refs/remotes/upstream/HEAD", "refs/remotes/upstream/main")
    again = team.approve("alice", change, *named)
    assert (again.code, "differ" in again.err) == (0, False)
    assert team.push().code == 0


def test_the_command_that_a_range_prints_for_an_owner_signs_for_the_branch_of_its_remote(
    tmp_path: Path,
) -> None:
    """The name of a remote may have a slash, and `main` of `team/server` is not `server/main` of `team`."""
    team = Team.make(tmp_path, INFRA)
    dev, place = team.dev, "refs/remotes/team/server/main"
    dev.git("remote", "rename", "origin", "team/server")
    dev.commit({"infra/main.tf": "2\n"})
    asked = ("--policy-from", place, f"{place}..HEAD")
    answer = dev.check(*asked)
    words = shlex.split(answer.report["approve"])
    assert (answer.errors, words[-1]) == (["owner-approval-missing"], "--sign")
    assert "refs/heads/main" in words
    assert team.approve("alice", *words[3 : words.index("--reason")]).code == 0
    assert dev.check(*asked).code == 0


def solved(dev: Repo) -> tuple[str, str, str]:
    """Make two changes of a denied file, and the merge that joins them."""
    start = dev.commit({"infra/x": "1\n"})
    left, right = (commit_of(dev, start, {"infra/x": f"{side}\n"}) for side in "23")
    return left, right, commit_of(dev, left, {"infra/x": "23\n"}, left, right)


def test_a_tag_that_is_named_like_an_id_chooses_no_policy_in_a_printed_line(tmp_path: Path) -> None:
    team = Team.make(tmp_path, DENIED)
    dev = team.dev
    left, right, merge = solved(dev)
    assert f" --policy-from {left} " in dev.check(merge, CI="true").report["approve"]
    dev.git("update-ref", f"refs/tags/{left[:12]}", right)
    assert f" --policy-from {left[:12]} " in dev.check(merge, CI="true").report["approve"]
    assert team.approve("alice", merge, "--policy-from", left[:12]).code == 2


def test_what_is_named_as_the_branch_is_what_the_branch_has(tmp_path: Path) -> None:
    """A branch of this clone may be ahead of what the remote has."""
    team = Team.make(tmp_path, DENIED)
    dev = team.dev
    left, _, merge = solved(dev)
    dev.git("update-ref", "refs/heads/main", left)
    asked = ("--policy-from", "main", f"main..{merge}")
    for _ in range(2):
        words = shlex.split(dev.check(*asked).report["approve"])
        assert team.approve("alice", *words[3 : words.index("--reason")]).code == 0
    assert dev.check(*asked).code == 0


@pytest.mark.parametrize("path", ["inf\u200cra/main.tf", "INFRA/other", "in\u200dfra/other"])
def test_a_name_that_a_file_system_takes_for_an_owned_one_is_owned(tmp_path: Path, path: str) -> None:
    """HFS+ ignores some letters, as `next_hfs_char` of git's utf8.c lists them."""
    team = Team.make(tmp_path, INFRA)
    refused(team, f"{commit_of(team.dev, team.head(), {path: 'x'})}:refs/heads/main")


FORGED = (
    "--format=%(if:equals=refs/heads/main)%(refname)%(then){}%20refs/heads/main"
    "%(else)%(objectname)%20%(refname)%(end)"
)
"""As an option of `git for-each-ref`: main has another commit."""


def raw_push(server: Repo, dev: Repo, *commands: tuple[str, str, str]) -> bytes:
    """Push by git's protocol (gitprotocol-pack), which takes any text for the name of a ref."""
    wanted = "".join(f"{new}\n" for _, new, _ in commands if new != ZEROES).encode()
    pack = dev.git("pack-objects", "--revs", "--stdout", "-q", stdin=wanted) if wanted else b""
    lines = [f"{old} {new} {name}".encode() for old, new, name in commands]
    lines[0] += b"\0report-status"
    sent = b"".join(b"%04x%b" % (len(line) + 4, line) for line in lines) + b"0000" + pack
    return server.try_git("receive-pack", str(server.path), stdin=sent).stdout


@pytest.mark.parametrize(
    "name",
    [
        FORGED,
        "--count=1",
        "refs/heads/x\n{} {} --count=1",
        "refs/heads/*",
        "main",
    ],
)
def test_the_name_of_a_pushed_ref_is_no_option_of_git(tmp_path: Path, name: str) -> None:
    """Git looks at names only after the hook, and refuses this one alone."""
    team = Team.make(tmp_path, INFRA + LISTED)
    dev, server = team.dev, team.server
    loose = commit_of(dev, None, {"patchgate.toml": "[policy]\n"})
    assert team.push(f"{loose}:refs/heads/open", is_real=True).code == 0
    change = commit_of(dev, team.head(), {"infra/main.tf": "2\n"})
    before = server.ask("for-each-ref")
    odd = ZEROES, loose, name.format(loose, loose)
    said = raw_push(server, dev, (ZEROES, change, TAG), (ZEROES, loose, "refs/heads/other"), odd)
    assert (b"unpack ok" in said, server.ask("for-each-ref")) == (True, before)
    assert b"ok refs/heads/other" in raw_push(server, dev, (ZEROES, loose, "refs/heads/other"))


def test_a_tag_with_the_full_name_of_the_notes_stops_no_approval(tmp_path: Path) -> None:
    team = Team.make(tmp_path, INFRA)
    team.dev.git("update-ref", f"refs/tags/{REF}", "HEAD")
    change = commit_of(team.dev, team.head(), {"infra/main.tf": "2\n"})
    for _ in range(2):
        answer = team.approve("alice", change, "--for", "refs/heads/main")
        assert answer.code == 0, answer.err
    assert team.push(f"{change}:refs/heads/main").code == 0


@pytest.mark.parametrize("name", [f"refs/tags/{REF}", "refs/heads/refs/heads/main", "refs/remotes/refs/x"])
def test_no_new_ref_has_the_full_name_of_another_one(tmp_path: Path, name: str) -> None:
    team = Team.make(tmp_path, INFRA)
    assert b"pre-receive hook declined" in raw_push(team.server, team.dev, (ZEROES, team.head(), name))
    plain = name.replace("/refs/", "/x/refs/")
    assert f"ok {plain}".encode() in raw_push(team.server, team.dev, (ZEROES, team.head(), plain))


def test_a_name_of_thousands_of_folders_stops_nobody(tmp_path: Path) -> None:
    """Git cannot write such a ref, and leaves its folders behind."""
    team = Team.make(tmp_path, INFRA)
    change = commit_of(team.dev, team.head(), {"a": "2\n"})
    long = "refs/heads/" + "a/" * 3000 + "a"
    folder = team.server.path / "refs/heads/a"
    try:
        said = raw_push(team.server, team.dev, (ZEROES, change, long))
        was_there = folder.exists()
        # As a server has it that was pushed to without the hook.
        team.server.try_git("update-ref", long, team.head())
        is_there = folder.exists()
        other = raw_push(team.server, team.dev, (ZEROES, change, "refs/heads/other"))
    finally:
        # Python cannot remove so many folders in each other.
        subprocess.run(["rm", "-rf", folder], check=True)
    assert (b"pre-receive hook declined" in said, was_there, is_there) == (True, False, True)
    assert b"ok refs/heads/other" in other


def test_no_branch_is_a_tag_which_git_would_refuse_while_it_lands_the_rest(tmp_path: Path) -> None:
    team = Team.make(tmp_path, INFRA)
    team.dev.git("tag", "-a", "-m", "x", "v1", "HEAD")
    tag, change = team.dev.ask("rev-parse", "v1"), commit_of(team.dev, team.head(), {"a": "2\n"})
    before = team.server.ask("for-each-ref")
    refs = (ZEROES, change, "refs/heads/one"), (ZEROES, tag, "refs/heads/two")
    said = raw_push(team.server, team.dev, *refs)
    assert (b"unpack ok" in said, team.server.ask("for-each-ref")) == (True, before)
    assert b"ok refs/tags/v1" in raw_push(team.server, team.dev, (ZEROES, tag, "refs/tags/v1"))


def test_no_push_from_a_shallow_clone_cuts_off_the_history_of_the_server(tmp_path: Path) -> None:
    team = Team.make(tmp_path, INFRA + LISTED)
    server = team.server
    team.dev.commit({"a": "2\n"})
    team.dev.commit({"a": "3\n"})
    assert team.push("main", "main:other", is_real=True).code == 0
    team.dev.git(
        "clone", "-q", "--depth=1", "--branch=main", f"file://{server.path}", str(tmp_path / "shallow")
    )
    shallow = team.dev.at(tmp_path / "shallow")
    shallow.commit({"a": "4\n"})
    assert shallow.try_git("push", "origin", "HEAD:main").returncode == 0
    server.git("config", "receive.shallowUpdate", "true")
    shallow.commit({"a": "5\n"})
    said = shallow.try_git("push", "origin", "HEAD:main").stderr
    assert b"git fetch --unshallow" in said
    assert not (server.path / "shallow").exists()
    assert team.push("main:another", is_real=True).code == 0


@pytest.mark.parametrize("ref", ["refs/heads/release/1", "refs/heads/other", "refs/notes/x"])
def test_what_is_not_there_is_not_deleted(tmp_path: Path, ref: str) -> None:
    """Git would delete it without a look at its old value (receive-pack): also what was made meanwhile."""
    team = Team.make(tmp_path, INFRA + LISTED)
    said = raw_push(team.server, team.dev, (ZEROES, ZEROES, ref))
    assert b"ng " + ref.encode() in said
    assert b"unpack ok" in said


@pytest.mark.parametrize(
    ("files", "code"),
    [({"patchgate.toml": INFRA + LISTED}, 3), ({SIGNERS: None}, 3), ({"a": "2\n"}, 0), (None, 3)],
)
@pytest.mark.parametrize("trusted", ["HEAD", "refs/heads/trusted"])
def test_a_push_is_judged_by_the_rules_of_its_end(
    tmp_path: Path, files: dict[str, str | None] | None, code: int, trusted: str
) -> None:
    """It may take minutes, and who pushes has an influence on that."""
    team = Team.make(tmp_path, INFRA)
    dev, server = team.dev, team.server
    server.git("update-ref", "refs/heads/trusted", team.head())
    if trusted != "HEAD":
        assert server.cli("install", "--server", "--trust-ref", trusted).code == 0
    (server.path / "objects" / "info" / "alternates").write_text(f"{dev.git_dir}/objects\n")
    change = commit_of(dev, team.head(), {"infra/main.tf": "2\n"})
    meanwhile = ZEROES if files is None else commit_of(dev, team.head(), files)
    words = f"-d {trusted}" if files is None else f"{trusted} {meanwhile}"
    line = f"{ZEROES} {change} refs/heads/release/1\n".encode()
    path = path_that_updates(tmp_path, server, words)
    answer = server.run("hook", "pre-receive", stdin=line, PATH=path)
    assert answer.code == code, answer.err


def test_of_two_first_pushes_to_a_server_none_makes_another_default_branch(tmp_path: Path) -> None:
    team = Team.make(tmp_path, INFRA + LISTED)
    dev, server = team.dev, team.server
    (server.path / "objects" / "info" / "alternates").write_text(f"{dev.git_dir}/objects\n")
    server.git("symbolic-ref", "HEAD", "refs/heads/master")
    server.git("update-ref", "-d", "refs/heads/main")
    loose = commit_of(dev, None, {"patchgate.toml": "[policy]\n"})
    line = f"{ZEROES} {loose} refs/heads/master\n".encode()
    assert server.run("hook", "pre-receive", stdin=line).code == 0
    path = path_that_updates(tmp_path, server, f"refs/heads/main {dev.head()}")
    answer = server.run("hook", "pre-receive", stdin=line, PATH=path)
    assert (answer.code, "git symbolic-ref HEAD" in answer.out + answer.err) == (3, True)


def path_that_updates(folder: Path, server: Repo, words: str) -> str:
    """Write a `git` that updates a ref of the server while it judges; give a PATH that begins with it."""
    git, flag = shutil.which("git"), folder / "done"
    script = folder / "bin" / "git"
    script.parent.mkdir()
    script.write_text(
        f"""#!/bin/sh
case "$*" in
*diff-tree*)
    [ -e {flag} ] || env -u GIT_QUARANTINE_PATH {git} --git-dir={server.path} update-ref {words}
    : >{flag}
esac
exec {git} "$@"
"""
    )
    script.chmod(0o755)
    return f"{script.parent}:{server.env['PATH']}"


@pytest.mark.parametrize("ref", [BRANCH, TAG])
def test_who_sets_head_does_not_say_what_a_new_ref_begins_with_beside_a_trusted_branch(
    tmp_path: Path, ref: str
) -> None:
    """The settings of a host may let others than the owners choose the default branch."""
    team = Team.make(tmp_path, INFRA + LISTED)
    dev, server = team.dev, team.server
    assert server.cli("install", "--server", "--trust-ref", "refs/heads/main").code == 0
    there, change = team.head(), commit_of(dev, team.head(), {"infra/main.tf": "2\n"})
    loose = commit_of(dev, change, {"patchgate.toml": "[policy]\n"})
    assert team.push(f"{loose}:refs/heads/develop").code == 0
    server.git("symbolic-ref", "HEAD", "refs/heads/develop")
    refused(team, f"{loose}:{ref}")
    refused(team, f"{change}:{ref}")
    assert team.push(f"{there}:{ref}").code == 0
