"""Which commits have changed the rules of a branch: one file counts as long as it names patchgate."""

from __future__ import annotations

from pathlib import Path

import pytest

from patchgate.approvals import binding
from patchgate.approvals.binding import rules_state
from patchgate.check import repository_ids
from patchgate.git.objects import Objects
from tests.approvals.owners_world import OWNED, Team, key_of
from tests.approvals.test_owner_attacks import commit_of, on_server, refused
from tests.component_world import opened
from tests.signing import REF, SIGNERS, needs_ssh_keygen
from tests.world import AskedGit, Repo

pytestmark = pytest.mark.turns(3)

FILE = ".pre-commit-config.yaml"
PLAIN, NAMING = "repos: []\n", "# patchgate\n"


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    """A repository with one commit, that changes no rules."""
    made = Repo.create(tmp_path)
    made.commit({"a": "1\n"})
    return made


def found(repo: Repo, commit: str, **env: str) -> set[str]:
    with Objects(opened(repo, **env)) as objects:
        return set(rules_state(objects, commit).commits)


def line(repo: Repo, number: int) -> str:
    """Make a line of commits, each of which writes the file anew without naming patchgate."""
    data = "".join(
        f"commit refs/heads/line\ncommitter a <a@x> {1700000000 + each} +0000\ndata 2\nc\n\n"
        + (f"from {repo.head()}\n" if each == 0 else "")
        + f"M 100644 inline {FILE}\ndata <<END\n# {each}\nEND\n\n"
        for each in range(number)
    )
    repo.git("fast-import", "--quiet", "--force", stdin=data.encode())
    return repo.ask("rev-parse", "refs/heads/line")


def test_git_is_asked_no_more_often_for_many_commits(repo: Repo, tmp_path: Path) -> None:
    git = AskedGit(tmp_path, repo.env)
    asked = [0]
    for number in (1, 2, 40):
        assert found(repo, line(repo, number), PATH=git.path) == set()
        asked.append(git.total())
    # The first question also asks for git's version.
    assert asked[3] - asked[2] == asked[2] - asked[1]


def test_a_commit_counts_whose_file_names_patchgate_or_that_of_a_parent(repo: Repo) -> None:
    plain = commit_of(repo, repo.head(), {FILE: PLAIN})
    named = commit_of(repo, plain, {FILE: NAMING})
    removed = commit_of(repo, named, {FILE: None})
    again = commit_of(repo, removed, {FILE: PLAIN + "#\n"})
    assert found(repo, again) == {named, removed}
    # Only one parent of the merge names it.
    merge = commit_of(repo, plain, {FILE: PLAIN + "# joined\n"}, plain, named)
    assert found(repo, merge) == {named, merge}


def test_where_both_sides_make_the_same_the_merge_counts_too(repo: Repo) -> None:
    named = [commit_of(repo, repo.head(), {FILE: NAMING, name: "1\n"}) for name in ("b", "c")]
    merge = commit_of(repo, named[0], {"c": "1\n"}, *named)
    assert found(repo, merge) == {*named, merge}


def test_what_is_no_file_names_nothing(repo: Repo) -> None:
    folder = commit_of(repo, repo.head(), {f"{FILE}/x": NAMING})
    blob = repo.git("hash-object", "-w", "--stdin", stdin=b"patchgate").decode().strip()
    tree = repo.git("mktree", stdin=f"120000 blob {blob}\t{FILE}\n".encode()).decode().strip()
    link = repo.ask("commit-tree", tree, "-p", folder, "-m", "Link")
    assert found(repo, link) == set()


def test_files_that_are_too_large_together_count_as_naming_patchgate(
    repo: Repo, monkeypatch: pytest.MonkeyPatch
) -> None:
    small = commit_of(repo, repo.head(), {FILE: PLAIN})
    large = commit_of(repo, small, {FILE: "#" * 1000})
    last = commit_of(repo, large, {FILE: PLAIN + "#\n"})
    assert found(repo, last) == set()
    monkeypatch.setattr(binding, "_MOST_BYTES", 500)
    assert found(repo, last) == {large, last}


@needs_ssh_keygen
@pytest.mark.parametrize("joined", ["nothing", "each other", "its policy", "its table"])
def test_the_first_signers_of_one_repository_are_not_those_of_another(tmp_path: Path, joined: str) -> None:
    """Whoever may push gives a branch without owners the history, the rules and the id of another one."""
    rules = {"patchgate.toml": '[policy]\n[governance]\nid = "repository-2"\n'}
    signers = {SIGNERS: key_of("bob").allowed("bob@example.com")}
    other, team = (
        Team.make(tmp_path / name, "", signers=(), server_signers=("alice",)) for name in ("one", "two")
    )
    began = [commit_of(there.dev, None, {"name": f"{there.dev.path}\n"}) for there in (other, team)]
    on_server(other, "main", began[0])
    on_server(team, "main", began[1])
    for here, there, oid in ((team, other, began[0]), (other, team, began[1])):
        here.dev.git("fetch", "-q", str(there.dev.path), oid)
    if joined == "each other":
        on_server(other, "main", commit_of(other.dev, None, {}, *began))
        on_server(team, "main", commit_of(team.dev, None, {"a": "1\n"}, *began))
    if joined == "its table":
        rules["patchgate.toml"] += OWNED
    if joined in {"its policy", "its table"}:
        on_server(team, "main", commit_of(team.dev, began[1], rules))
        other.dev.git("fetch", "-q", str(team.dev.path), team.head())
        on_server(other, "main", commit_of(other.dev, None, rules, began[0], team.head()))
    else:
        signers |= rules
    change, same = (commit_of(there.dev, there.head(), signers) for there in (team, other))
    assert team.approve("alice", change).code == 0
    other.dev.git("fetch", "-q", str(team.dev.path), f"{REF}:{REF}")
    assert "is for another commit of refs/heads/main" in refused(other, f"{same}:refs/heads/main")
    assert team.push(f"{change}:refs/heads/main").code == 0


NAMELESS = "[policy]\n"
NAMED = f'{NAMELESS}[governance]\nid = "repository-1"\n'
OTHER = NAMED.replace("repository-1", "repository-2")


@needs_ssh_keygen
@pytest.mark.parametrize("had", [None, NAMELESS])
@pytest.mark.parametrize("named_by", ["branch", "server"])
def test_where_anybody_can_sign_the_first_id_is_approved(
    tmp_path: Path, had: str | None, named_by: str
) -> None:
    """Approvals name it from then on: with that of another repository, those that were given there count."""
    signers = {"signers": ()} if named_by == "server" else {"server_signers": ()}
    team = Team.make(tmp_path, "", **{"signers": ("alice",), "server_signers": ("alice",)} | signers)
    if had is not None:
        on_server(team, "main", commit_of(team.dev, team.head(), {"patchgate.toml": had}))
    change = commit_of(team.dev, team.head(), {"patchgate.toml": OTHER})
    assert "patchgate.toml needs 1 signed approval" in refused(team, f"{change}:refs/heads/main")
    assert team.approve("alice", change, "--policy-from", "origin/main").code == 0
    # It is for the branch as it is, which in another repository has other commits.
    on_server(team, "main", commit_of(team.dev, team.head(), {"b": "1\n"}))
    again = commit_of(team.dev, team.head(), {"patchgate.toml": OTHER})
    assert "is for another commit of refs/heads/main" in refused(team, f"{again}:refs/heads/main")
    assert team.approve("alice", again, "--policy-from", "origin/main").code == 0
    assert team.push(f"{again}:refs/heads/main").code == 0


@needs_ssh_keygen
@pytest.mark.parametrize("is_listed", [True, False])
def test_a_protected_branch_without_an_id_has_that_of_the_default_branch(
    tmp_path: Path, *, is_listed: bool
) -> None:
    """A fork may name itself on it, and what is approved there would count here."""
    listed = '[push]\nprotected_refs = ["refs/heads/main", "refs/heads/release/*"]\n'
    own = NAMELESS + (listed if is_listed else "")
    team = Team.make(tmp_path, own)
    on_server(team, "release/1", team.head())
    on_server(team, "main", commit_of(team.dev, team.head(), {"patchgate.toml": NAMED + listed}))
    other = commit_of(team.dev, team.head("release/1"), {"patchgate.toml": OTHER})
    same = commit_of(team.dev, team.head("release/1"), {"patchgate.toml": NAMED + listed})
    place = ("--for", "refs/heads/release/1", "--policy-from", "origin/release/1")
    for change in (other, same):
        answer = team.approve("alice", change, *place)
        assert (answer.code, "for: repository-1, refs/heads/release/1" in answer.err) == (0, True), answer.err
    for change, errors in ((other, ["owner-approval-missing"]), (same, [])):
        for revision in (change, f"origin/release/1..{change}"):
            judged = team.dev.check(revision, "--policy-from", "refs/remotes/origin/release/1")
            assert judged.errors == (errors if ".." in revision else [])
    azure = {"TF_BUILD": "True", "BUILD_REASON": "PullRequest", "BUILD_SOURCEBRANCH": "refs/pull/1/merge"}
    azure |= {"SYSTEM_PULLREQUEST_TARGETBRANCH": "release/1"}
    for change, errors in ((other, ["owner-approval-missing"]), (same, [])):
        team.dev.git("checkout", "-q", "--detach", change)
        judged = team.dev.check("--ci", cwd=team.dev.path, BUILD_SOURCEVERSION=change, **azure)
        assert judged.errors == errors
    assert "would get another [governance] id" in refused(team, f"{other}:refs/heads/release/1")
    assert team.push(f"{same}:refs/heads/release/1").code == 0


@needs_ssh_keygen
@pytest.mark.parametrize("branch", ["main", "release/1"])
@pytest.mark.parametrize("most", [1000, 2])
def test_the_repair_of_a_policy_keeps_the_last_id_that_could_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, branch: str, most: int
) -> None:
    """The repair itself says nothing of the repository: a fork has the same broken policy."""
    monkeypatch.setattr(repository_ids, "_MOST_READ", most)
    listed = '[push]\nprotected_refs = ["refs/heads/main", "refs/heads/release/*"]\n'
    team = Team.make(tmp_path, NAMED + listed)
    broken = commit_of(team.dev, team.head(), {"patchgate.toml": "[policy\n"})
    on_server(team, branch, commit_of(team.dev, broken, {"patchgate.toml": "[[policy\n"}))
    place = ("--for", f"refs/heads/{branch}", "--policy-from", f"origin/{branch}")
    other, same = (
        commit_of(team.dev, team.head(branch), {"patchgate.toml": text + listed}) for text in (OTHER, NAMED)
    )
    answer = team.approve("alice", other, *place)
    if most == 2:
        assert answer.code == (3 if branch == "main" else 2)
        answer = team.push(f"{same}:refs/heads/{branch}", is_real=False)
        assert (answer.code, "are too many to read" in answer.err) == (3, True), answer.err
        return
    assert (answer.code, "another repository" in answer.err) == (2, True), answer.err
    assert "would get another [governance] id" in refused(team, f"{other}:refs/heads/{branch}")
    without = commit_of(team.dev, team.head(branch), {"patchgate.toml": NAMELESS + listed})
    for change in (without, same):
        assert team.approve("alice", change, *place).code == 0
    assert "would get another [governance] id" in refused(team, f"{without}:refs/heads/{branch}")
    assert team.push(f"{same}:refs/heads/{branch}").code == 0


@needs_ssh_keygen
@pytest.mark.parametrize("kind", ["no TOML", "of another version"])
def test_an_id_inside_a_push_is_not_the_last_one_that_could_be_read(tmp_path: Path, kind: str) -> None:
    """Without a table nobody is asked about a policy that the next commit of the push takes back."""
    team = Team.make(tmp_path, NAMED)
    other = commit_of(team.dev, team.head(), {"patchgate.toml": OTHER})
    back = commit_of(team.dev, other, {"patchgate.toml": NAMED})
    assert team.push(f"{back}:refs/heads/main").code == 0
    broken = "[policy\n" if kind == "no TOML" else "later = 1\n" + NAMED
    on_server(team, "main", commit_of(team.dev, back, {"patchgate.toml": broken}))
    for text, code in ((OTHER, 2), (NAMED, 0)):
        repair = commit_of(team.dev, team.head(), {"patchgate.toml": text})
        asked = team.approve("alice", repair, "--policy-from", "origin/main").code
        answer = team.push(f"{repair}:refs/heads/main", is_real=False)
        if kind == "no TOML":
            assert (asked, answer.code, "several repositories" in answer.err) == (3, 3, True), answer.err
        else:
            assert (asked, answer.code) == (code, min(code, 1)), answer.err


@needs_ssh_keygen
@pytest.mark.parametrize("text", [OTHER, "[policy\n"])
def test_a_new_branch_begins_with_no_other_id_nor_with_a_policy_that_had_one(
    tmp_path: Path, text: str
) -> None:
    listed = '[push]\nprotected_refs = ["refs/heads/main", "refs/heads/release/*"]\n'
    team = Team.make(tmp_path, OTHER + listed)
    began = commit_of(team.dev, team.head(), {"patchgate.toml": text + listed})
    plain = commit_of(team.dev, began, {"patchgate.toml": NAMELESS + listed})
    on_server(team, "main", commit_of(team.dev, plain, {"patchgate.toml": NAMED + listed}))
    assert "would get another [governance] id" in refused(team, f"{began}:refs/heads/release/1")
    assert team.push(f"{plain}:refs/heads/release/1").code == 0
