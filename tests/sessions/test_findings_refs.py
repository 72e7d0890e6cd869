"""What a ref is called decides nothing: ambiguous names, symbolic refs, namespaces, config from elsewhere."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.sessions.test_commit_hooks import said
from tests.world import Answer, Repo

pytestmark = pytest.mark.turns(3)

POLICY = '[policy]\ndeny_prefixes = ["runs"]\n'
THERE = "refs/remotes/origin/main"
KEY = "patchgate.trustRef"


def served(folder: Path, *, hooks: bool = True) -> tuple[Repo, Repo]:
    """Make a server with a policy, and a repository that pushes to it; the server alone judges."""
    dev = Repo.create(folder)
    server = dev.at(folder / "srv.git")
    dev.git("init", "-q", "-b", "main", "--bare", str(server.path))
    server.git("config", "receive.denyDeleteCurrent", "ignore")
    dev.policy(POLICY)
    dev.git("remote", "add", "origin", str(server.path))
    dev.git("push", "-q", "-u", "origin", "main")
    if hooks:
        assert server.run("install", "--server", cwd=server.path).code == 0
    return dev, server


def denied(repo: Repo, *, onto: str = "HEAD") -> str:
    """Make a commit that the policy denies; no ref names it."""
    blob = repo.git("hash-object", "-w", "--stdin", stdin=b"evil\n").decode().strip()
    index = str(repo.path / ".git" / "planted")
    repo.git("read-tree", onto, GIT_INDEX_FILE=index)
    repo.git("update-index", "--add", "--cacheinfo", f"100644,{blob},runs/record", GIT_INDEX_FILE=index)
    tree = repo.git("write-tree", GIT_INDEX_FILE=index).decode().strip()
    return repo.ask("commit-tree", "-p", onto, "-m", "Evil", tree)


# --- finding 2: a name that fits more than one ref


@pytest.fixture
def ci(tmp_path: Path) -> Repo:
    """The clone of a CI machine, on a branch with a denied change, and a tag with the name of the base."""
    dev, server = served(tmp_path, hooks=False)
    bad = denied(dev)
    dev.git("push", "-q", "origin", f"{bad}:refs/heads/feature", f"{bad}:refs/tags/origin/main")
    clone = dev.at(tmp_path / "ci")
    dev.git("clone", "-q", "-b", "feature", str(server.path), str(clone.path))
    return clone


def is_ambiguous(answer: Answer, other: str = "refs/tags/origin/main", own: str = THERE) -> bool:
    return answer.code == 2 and other in answer.error["message"] and own in answer.error["message"]


def test_the_line_of_ci_is_not_answered_from_a_tag(ci: Repo) -> None:
    assert is_ambiguous(ci.check("--policy-from", "origin/main", "origin/main..HEAD"))
    full = ci.check("--policy-from", THERE, f"{THERE}..HEAD")
    assert (full.code, full.errors) == (1, ["deny-prefix"])


COMMANDS = (
    "check --policy-from origin/main HEAD",
    "check --policy-from origin/main",
    "check --policy-from origin/main --all",
    "check --policy-from origin/main --worktree",
    "check --policy-from origin/main~0 HEAD",
    "check --policy-from origin/main^{tree} HEAD",
    "check origin/main",
    "check origin/main..",
    "check ..origin/main",
    "check HEAD~1..origin/main",
    "check origin/main@{0}..HEAD",
    "check --base origin/main --edits edits.json",
    "check --base origin/main --patch a.patch",
    "apply --base origin/main a.patch",
    "approve origin/main --sign --reason WHY",
    "approve HEAD --policy-from origin/main --sign --reason WHY",
    "explain --path a --policy-from origin/main",
    "policy show --policy-from origin/main",
    "verify HEAD --base origin/main",
    "verify origin/main",
    "claim --tree origin/main claim.json",
    "install --trust-ref origin/main",
)


@pytest.mark.parametrize("line", COMMANDS)
def test_every_command_refuses_an_ambiguous_name_with_both_refs(ci: Repo, line: str) -> None:
    (ci.path / "edits.json").write_text("{}")
    (ci.path / "claim.json").write_text('{"passed": true, "reason_code": "x", "deliverables": ["a"]}')
    (ci.path / "a.patch").write_bytes(ci.git("diff", "HEAD~1", "HEAD"))
    words = ["vendored from upstream 2.1" if word == "WHY" else word for word in line.split(" ")]
    answer = ci.cli(*words)
    assert answer.code == 2, answer.out + answer.err
    assert "refs/tags/origin/main" in answer.out + answer.err
    assert "refs/remotes/origin/main" in answer.out + answer.err


def test_a_branch_of_that_name_is_refused_and_a_tag_of_the_full_name_is_not_taken(ci: Repo) -> None:
    ci.git("tag", "-d", "origin/main")
    ci.git("update-ref", "refs/heads/origin/main", "HEAD")
    answer = ci.check("--policy-from", "origin/main", "origin/main..HEAD")
    assert is_ambiguous(answer, "refs/heads/origin/main")
    ci.git("update-ref", f"refs/tags/{THERE}", "HEAD")
    assert ci.check("--policy-from", THERE, f"{THERE}..HEAD").errors == ["deny-prefix"]
    # Nor where the base was not fetched.
    ci.git("symbolic-ref", "-d", "refs/remotes/origin/HEAD")
    ci.git("update-ref", "-d", THERE)
    assert ci.check("--policy-from", THERE, f"{THERE}..HEAD").code == 2


def test_an_empty_range_names_both_commits_and_in_a_shallow_clone_it_is_undecided(
    ci: Repo, tmp_path: Path
) -> None:
    base, head = ci.ask("rev-parse", THERE), ci.head()
    answer = ci.check(f"HEAD..{THERE}")
    assert (answer.code, answer.changes) == (0, [])
    (warning,) = answer.report["warnings"]
    assert ("empty" in warning, base in warning, head in warning) == (True, True, True)
    text = ci.cli("check", f"HEAD..{THERE}")
    assert base in text.out + text.err
    assert head in text.out + text.err
    shallow = ci.at(tmp_path / "shallow")
    ci.git("clone", "-q", "--depth=1", f"file://{tmp_path}/srv.git", str(shallow.path))
    for line in ("HEAD..HEAD", f"{THERE}..HEAD", f"..{THERE}"):
        answer = shallow.check(line)
        assert answer.code == 3
        assert "shallow" in answer.error["message"]
        assert answer.error["hint"] == "git fetch --unshallow"


# --- finding 9: config from elsewhere


def written(repo: Repo, place: Path) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(f"[patchgate]\n\ttrustRef = {THERE}\n", encoding="utf-8")


def at_home(repo: Repo) -> None:
    written(repo, Path(repo.env["HOME"]) / ".gitconfig")


def in_xdg(repo: Repo) -> None:
    written(repo, Path(repo.env["XDG_CONFIG_HOME"]) / "git" / "config")


def included(repo: Repo) -> None:
    written(repo, Path(repo.env["HOME"]) / "shared.inc")
    repo.git("config", "include.path", str(Path(repo.env["HOME"]) / "shared.inc"))


def included_if(repo: Repo) -> None:
    written(repo, repo.path / ".git" / "shared.inc")
    repo.git("config", "--global", f"includeIf.gitdir:{repo.path}/.path", f"{repo.path}/.git/shared.inc")


def in_worktree(repo: Repo) -> None:
    repo.git("config", "extensions.worktreeConfig", "true")
    repo.git("config", "--worktree", KEY, THERE)


@pytest.mark.parametrize("place", [at_home, in_xdg, included, included_if, in_worktree])
def test_a_trusted_ref_counts_wherever_git_reads_it(tmp_path: Path, place: object) -> None:
    repo = Repo.create(tmp_path)
    repo.policy("[policy]\n")
    strict = repo.policy(POLICY)
    repo.git("update-ref", THERE, strict)
    repo.git("reset", "-q", "--hard", "HEAD~1")
    repo.install()
    # A clean commit, by which the fast path gets ready, under the policy of the branch.
    for name in ("a", "b"):
        repo.stage({name: "1\n"})
        repo.git("commit", "-q", "-m", f"Add {name}")
    assert callable(place)
    place(repo)
    assert repo.ask("config", "--get", KEY) == THERE
    repo.stage({"runs/record": "evil\n"})
    assert repo.check().errors == ["deny-prefix"]
    done = repo.try_git("commit", "-q", "-m", "Evil")
    assert done.returncode != 0
    assert "deny-prefix" in said(done)
    done = repo.try_git("update-ref", "refs/heads/main", denied(repo))
    assert done.returncode != 0
    assert "deny-prefix" in said(done)


def test_a_trusted_ref_that_a_tracked_file_names_is_refused_by_name(tmp_path: Path) -> None:
    repo = Repo.create(tmp_path)
    repo.policy(POLICY)
    repo.git("update-ref", THERE, "HEAD")
    written(repo, repo.path / ".gitconfig")
    repo.git("config", "include.path", "../.gitconfig")
    answer = repo.check("HEAD")
    assert answer.code == 3
    assert ".gitconfig" in answer.error["message"]
    assert KEY in answer.error["hint"]
    linked = repo.at(tmp_path / "linked")
    repo.git("worktree", "add", "-q", str(linked.path))
    assert linked.check("HEAD").code == 3
    # What the repository's own config says last counts, whatever the file says.
    repo.git("config", KEY, THERE)
    assert repo.check("HEAD").code == 0


def test_the_trusted_ref_is_resolved_once_and_means_no_tag_of_its_name(tmp_path: Path) -> None:
    repo = Repo.create(tmp_path)
    strict = repo.policy(POLICY)
    loose = repo.policy("[policy]\n")
    repo.git("update-ref", THERE, strict)
    repo.git("config", KEY, THERE)
    repo.git("update-ref", f"refs/tags/{THERE}", loose)
    repo.stage({"runs/record": "evil\n"})
    answer = repo.check()
    assert answer.errors == ["deny-prefix"]
    assert answer.change["policy"]["from"] == f"{THERE}:patchgate.toml"
    repo.git("update-ref", "-d", THERE)
    assert repo.check().code == 3


def test_install_names_the_config_that_counts_more(tmp_path: Path) -> None:
    repo = Repo.create(tmp_path)
    repo.policy(POLICY)
    repo.git("update-ref", THERE, "HEAD")
    repo.git("config", "extensions.worktreeConfig", "true")
    repo.git("config", "--worktree", KEY, "refs/heads/main")
    answer = repo.cli("install", "--trust-ref", THERE)
    assert answer.code == 3
    assert "refs/heads/main" in answer.err


# --- findings 3 and 13: symbolic refs


@pytest.fixture
def aliased(tmp_path: Path) -> tuple[Repo, Repo]:
    """A server where `latest` is another name of main, and `older` one of `latest`."""
    dev, server = served(tmp_path)
    server.git("symbolic-ref", "refs/heads/latest", "refs/heads/main")
    server.git("symbolic-ref", "refs/heads/older", "refs/heads/latest")
    server.git("symbolic-ref", "refs/side/main", "refs/heads/main")
    return dev, server


ALIASES = ("refs/heads/latest", "refs/heads/older", "refs/side/main")


def refuses(dev: Repo, server: Repo, *arguments: str, rule: str) -> None:
    """A push is refused by a rule, and the server's refs stay as they are."""
    before = server.ask("for-each-ref")
    done = dev.try_git("push", "-q", "origin", *arguments)
    assert done.returncode != 0
    assert rule in said(done)
    assert "Traceback" not in said(done)
    assert server.ask("for-each-ref") == before


def test_another_name_of_main_is_judged_as_main(aliased: tuple[Repo, Repo]) -> None:
    dev, server = aliased
    # On a branch of their own the policy is loosened first: that branch follows it, main does not.
    dev.git("switch", "-q", "-c", "x")
    dev.policy("[policy]\n")
    dev.git("push", "-q", "origin", "x")
    dev.git("reset", "-q", "--hard", denied(dev))
    dev.git("push", "-q", "origin", "x")
    refuses(dev, server, "x:main", rule="deny-prefix")
    for name in ALIASES:
        refuses(dev, server, f"x:{name}", rule="deny-prefix")
        refuses(dev, server, f":{name}", rule="ref-deleted")
    dev.git("reset", "-q", "--hard", "main")
    dev.commit({"a": "1\n"}, "Another history", "--amend")
    for name in ALIASES:
        refuses(dev, server, "--force", f"x:{name}", rule="ref-forced")
    # What is good lands, and it is said where.
    dev.git("reset", "-q", "--hard", "main")
    good = dev.commit({"a": "1\n"})
    done = dev.try_git("push", "-q", "origin", "x:refs/heads/older")
    assert done.returncode == 0, said(done)
    assert "writes refs/heads/main" in said(done)
    assert server.ask("rev-parse", "main") == good


def test_a_name_that_leads_nowhere_or_in_a_circle_is_judged_or_refused(tmp_path: Path) -> None:
    dev, server = served(tmp_path)
    bad = denied(dev)
    server.git("symbolic-ref", "refs/heads/next", "refs/heads/gone")
    server.git("symbolic-ref", "refs/heads/one", "refs/heads/two")
    server.git("symbolic-ref", "refs/heads/two", "refs/heads/one")
    for number in range(6):
        to = f"refs/heads/c{number - 1}" if number else "refs/heads/main"
        server.git("symbolic-ref", f"refs/heads/c{number}", to)
    refuses(dev, server, f"{bad}:refs/heads/next", rule="deny-prefix")
    for name in ("one", "c5"):
        refuses(dev, server, f"{bad}:refs/heads/{name}", rule="symbolic ref")
    refuses(dev, server, f"{bad}:refs/heads/c3", rule="deny-prefix")
    dev.git("push", "-q", "origin", "main:refs/heads/next")
    assert server.ask("rev-parse", "gone") == dev.ask("rev-parse", "main")


def test_a_protected_name_protects_what_it_names_and_head_may_go_round(tmp_path: Path) -> None:
    dev, server = served(tmp_path)
    dev.policy(POLICY + '[push]\nprotected_refs = ["refs/heads/latest"]\n')
    dev.git("push", "-q", "origin", "main", "main:refs/heads/trunk")
    server.git("symbolic-ref", "refs/heads/latest", "refs/heads/trunk")
    refuses(dev, server, ":trunk", rule="ref-deleted")
    refuses(dev, server, ":latest", rule="ref-deleted")
    refuses(dev, server, "--force", "main~1:trunk", rule="ref-forced")


def test_the_default_branch_is_what_head_leads_to(tmp_path: Path) -> None:
    dev, server = served(tmp_path)
    dev.git("push", "-q", "origin", "main:refs/heads/trunk")
    server.git("symbolic-ref", "refs/heads/latest", "refs/heads/trunk")
    server.git("symbolic-ref", "HEAD", "refs/heads/latest")
    for name in ("trunk", "latest"):
        refuses(dev, server, f":{name}", rule="ref-deleted")
    # Nor does main become free where it is only a name, and HEAD names nothing.
    server.git("update-ref", "-d", "refs/heads/main")
    server.git("symbolic-ref", "refs/heads/main", "refs/heads/trunk")
    server.git("symbolic-ref", "HEAD", "refs/heads/none")
    for name in ("trunk", "main"):
        refuses(dev, server, f":{name}", rule="ref-deleted")


def test_pre_push_knows_the_names_of_a_server_in_a_folder(aliased: tuple[Repo, Repo]) -> None:
    dev, server = aliased
    (server.path / "hooks" / "pre-receive").unlink()
    dev.install()
    for name in ("refs/heads/latest", "refs/heads/older"):
        refuses(dev, server, f":{name}", rule="ref-deleted")
    dev.git("remote", "set-url", "origin", f"file://{server.path}")
    refuses(dev, server, ":refs/heads/latest", rule="ref-deleted")


def test_a_local_name_outside_the_branches_moves_no_branch_past_the_hooks(tmp_path: Path) -> None:
    repo = Repo.create(tmp_path)
    repo.policy(POLICY)
    repo.install()
    bad, before = denied(repo), repo.ask("rev-parse", "main")
    names = ("refs/side/x", "refs/heads/y", "refs/worktree/x", "refs/remotes/origin/HEAD", "SIDE_HEAD")
    for packed in (False, True):
        for name in names:
            repo.git("symbolic-ref", name, "refs/heads/main")
            repo.git("symbolic-ref", "refs/side/z", name) if name.startswith("refs/") else None
            for ref in (name, "refs/side/z"):
                done = repo.try_git("update-ref", ref, bad)
                assert done.returncode != 0
                assert "deny-prefix" in said(done)
        done = repo.try_git("update-ref", "--stdin", stdin=f"update refs/side/x {bad}\n".encode())
        assert done.returncode != 0
        assert repo.ask("rev-parse", "main") == before
        if not packed:
            repo.git("pack-refs", "--all")
    # A name of a branch that is not there yet.
    repo.git("symbolic-ref", "refs/side/new", "refs/heads/new")
    assert repo.try_git("update-ref", "refs/side/new", bad).returncode != 0
    assert repo.try_git("rev-parse", "--verify", "refs/heads/new").returncode != 0
    # With one around, what is good is committed as ever.
    repo.stage({"a": "1\n"})
    done = repo.try_git("commit", "-q", "-m", "Add a")
    assert done.returncode == 0
    assert said(done) == ""


def told_by_doctor(repo: Repo) -> str:
    done = repo.cli("doctor")
    return done.out + done.err


def test_a_branch_that_became_a_name_is_told_by_the_next_gate_and_by_doctor(tmp_path: Path) -> None:
    repo = Repo.create(tmp_path)
    repo.policy(POLICY)
    repo.install()
    assert "symbolic" not in told_by_doctor(repo)
    repo.git("update-ref", "refs/heads/draft", denied(repo), PATCHGATE_SKIP="a draft that is looked at later")
    repo.git("symbolic-ref", "refs/heads/main", "refs/heads/draft")
    sentence = "refs/heads/main is a symbolic ref to refs/heads/draft"
    doctor = told_by_doctor(repo)
    assert sentence in doctor
    assert "update-ref --no-deref refs/heads/main refs/heads/main" in doctor
    repo.git("read-tree", "-m", "-u", "HEAD")
    repo.stage({"a": "1\n"})
    done = repo.try_git("commit", "-q", "-m", "Add a")
    assert sentence in said(done)
    remote = tmp_path / "remote.git"
    repo.git("init", "-q", "--bare", str(remote))
    done = repo.try_git("push", "-q", str(remote), "main")
    assert done.returncode != 0
    assert sentence in said(done)
    assert "deny-prefix" in said(done)
    repo.git("update-ref", "--no-deref", "refs/heads/main", "refs/heads/main")
    assert "symbolic" not in told_by_doctor(repo)


def test_names_that_git_makes_itself_are_no_news(tmp_path: Path) -> None:
    dev, server = served(tmp_path)
    clone = dev.at(tmp_path / "clone")
    dev.git("clone", "-q", str(server.path), str(clone.path))
    assert clone.ask("symbolic-ref", "refs/remotes/origin/HEAD") == THERE
    clone.install()
    assert "symbolic" not in told_by_doctor(clone)


# --- finding 8: namespaces


@pytest.mark.sweep(3)
@pytest.mark.parametrize("line", ["--force {other}:trunk", ":trunk", "{bad}:trunk", "{bad}:new", "main:new"])
def test_a_push_into_a_namespace_is_undecided(tmp_path: Path, line: str) -> None:
    dev, server = served(tmp_path, hooks=False)
    dev.git("push", "-q", str(server.path), "main:refs/heads/trunk", GIT_NAMESPACE="team")
    server.git("symbolic-ref", "refs/namespaces/team/HEAD", "refs/namespaces/team/refs/heads/trunk")
    assert server.run("install", "--server", cwd=server.path).code == 0
    before = server.ask("for-each-ref")
    other = dev.ask("commit-tree", "-m", "Alone", dev.ask("rev-parse", "main^{tree}"))
    words = line.format(other=other, bad=denied(dev)).replace(":new", ":refs/heads/new").split(" ")
    url = f"ext::env GIT_NAMESPACE=team git %s {server.path}"
    for done in (
        dev.try_git("push", str(server.path), *words, GIT_NAMESPACE="team"),
        dev.try_git("-c", "protocol.ext.allow=always", "push", url, *words),
    ):
        assert done.returncode != 0
        assert "namespace team" in said(done)
    assert server.ask("for-each-ref") == before
    # Without one, what is good is received.
    dev.git("push", "-q", "origin", "main:refs/heads/new")


@pytest.mark.parametrize("place", ["server.git/worktrees/www", "www"])
def test_a_push_by_the_path_of_a_worktree_is_undecided(tmp_path: Path, place: str) -> None:
    dev, server = served(tmp_path)
    linked = server.path.parent / "www"
    server.git("worktree", "add", "-q", "-b", "open", str(linked), "main")
    (server.path.parent / "server.git").symlink_to(server.path)
    before = server.ask("for-each-ref")
    done = dev.try_git("push", str(server.path.parent / place), "main:refs/heads/new")
    assert (done.returncode != 0, "worktree" in said(done)) == (True, True)
    assert server.ask("for-each-ref") == before
    # By its own path, whatever that is called, what is good is received.
    dev.git("push", "-q", str(server.path.parent / "server.git"), "main:refs/heads/new")


@pytest.mark.parametrize(
    ("name", "refused"),
    [("refs/heads/release", "HEAD"), ("refs/tags/v1", "HEAD"), ("refs/remotes/topic", "objects/a")],
)
def test_refs_do_not_make_their_folder_a_repository_without_hooks(
    tmp_path: Path, name: str, refused: str
) -> None:
    dev, server = served(tmp_path)
    made = {each: f"main:{name}/{each}" for each in ("HEAD", "objects/a", "refs/b")}
    done = dev.try_git("push", "origin", *made.values())
    assert (done.returncode != 0, f"{name}/{refused}" in said(done)) == (True, True)
    del made[refused]
    dev.git("push", "-q", "origin", *made.values(), "main:refs/remotes/origin/HEAD")
    assert dev.try_git("push", str(server.path / name), "main:refs/heads/9").returncode != 0


@pytest.mark.parametrize("name", ["refs/heads/HEAD/x", "refs/heads/gro\u0308\u00dfe"])
def test_a_new_ref_has_a_name_that_is_one_in_every_clone_and_file_system(tmp_path: Path, name: str) -> None:
    dev, server = served(tmp_path)
    before = server.ask("for-each-ref")
    assert dev.try_git("push", "origin", f"main:{name}").returncode != 0
    assert server.ask("for-each-ref") == before
    dev.git("push", "-q", "origin", "main:refs/heads/gr\u00f6\u00dfe")
    # What is there already may move.
    server.git("update-ref", name, "HEAD")
    dev.commit({"a.txt": "more\n"})
    dev.git("push", "-q", "origin", f"main:{name}")


def test_a_trusted_ref_is_no_note(tmp_path: Path) -> None:
    """The built-in rules alone judge notes, so anybody may push them."""
    repo = Repo.create(tmp_path)
    repo.policy(POLICY)
    repo.git("update-ref", "refs/notes/policy", "HEAD")
    repo.git("config", KEY, "refs/notes/policy")
    answer = repo.check("HEAD")
    assert (answer.code, "refs/notes/policy" in answer.error["message"]) == (3, True)
