"""No attribute, setting or variable that a repository brings changes what is read of a change, at any door.

The attack: `*.py -diff` in the attributes, then a new file with a key. Git calls the file binary, and whoever
believes that reads no line of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import pytest

from patchgate.git.repository import open_repository
from patchgate.hooks.pre_receive import judge_receive
from patchgate.report.verdict import Report
from tests.check.push_world import Local
from tests.world import Answer, Content, Repo

pytestmark = pytest.mark.turns(3)

SECRET = "key = 'AKIA" + "QYLPMN5HHHFPZQXW'\n"
POLICY = """\
[policy]
deny_classes = ["binary"]
[message]
level = "off"
"""
# Each line says of one kind of file what git may believe: it is binary, it is text, its bytes are others.
ATTRIBUTES = """\
*.a -diff
*.b binary
*.c diff=odd
*.d -text merge=odd conflict-marker-size=1 whitespace=cr-at-eol
*.e text eol=crlf ident
*.f filter=odd working-tree-encoding=UTF-8
*.bin diff
"""
TEXTS = {f"s.{kind}": SECRET for kind in "abcdef"}
FILES: dict[str, Content] = {**TEXTS, "x.bin": b"\0\n" + SECRET.encode()}
EXPECTED = {**dict.fromkeys(TEXTS, "secret"), "x.bin": "deny-class"}

Variables = Mapping[str, str]
Arrange = Callable[[Local], Variables]


def tracked(repo: Local) -> Variables:
    return {}


def info(repo: Local) -> Variables:
    repo.write(".git/info/attributes", ATTRIBUTES)
    return {}


def in_git_folder(repo: Local) -> Variables:
    repo.write(".git/.gitattributes", ATTRIBUTES)
    return {}


def setting(key: str, value: str, *where: str) -> Arrange:
    def arrange(repo: Local) -> Variables:
        repo.write(".git/attributes", ATTRIBUTES)
        repo.git("config", "extensions.worktreeConfig", "true")
        repo.git("config", *where, key, value.replace("TOP", str(repo.path)))
        return {}

    return arrange


def variable(**variables: str) -> Arrange:
    def arrange(repo: Local) -> Variables:
        repo.write(".git/attributes", ATTRIBUTES)
        return {name: value.replace("TOP", str(repo.path)) for name, value in variables.items()}

    return arrange


def given(key: str, value: str) -> Arrange:
    return variable(GIT_CONFIG_COUNT="1", GIT_CONFIG_KEY_0=key, GIT_CONFIG_VALUE_0=value)


PLACES: dict[str, Arrange] = {
    "tracked": tracked,
    "info/attributes": info,
    "a file in git's folder": in_git_folder,
    "core.attributesFile": setting("core.attributesFile", "TOP/.git/attributes"),
    "core.attributesFile of the user": setting("core.attributesFile", "TOP/.git/attributes", "--global"),
    "core.attributesFile in the environment": given("core.attributesFile", "TOP/.git/attributes"),
    "attr.tree": setting("attr.tree", "HEAD"),
    "attr.tree of the user": setting("attr.tree", "HEAD", "--global"),
    "attr.tree of the worktree": setting("attr.tree", "refs/heads/main", "--worktree"),
    "attr.tree in the environment": given("attr.tree", "HEAD"),
    "GIT_ATTR_SOURCE": variable(GIT_ATTR_SOURCE="HEAD"),
    # Every submodule has this setting.
    "core.worktree": setting("core.worktree", "TOP"),
    "core.worktree of the worktree": setting("core.worktree", "TOP", "--worktree"),
    "core.worktree, relative": setting("core.worktree", ".."),
    "core.bare in the environment": given("core.bare", "true"),
    "GIT_LITERAL_PATHSPECS": variable(GIT_LITERAL_PATHSPECS="1"),
}
# What these places name is read from HEAD, or from the files around it.
SETTINGS = (
    "diff.odd.binary=true",
    "diff.odd.algorithm=patience",
    "diff.odd.xfuncname=(x+)+",
    "merge.odd.driver=false",
)


def made(folder: Path, *arguments: str) -> Local:
    """Make a repository with attributes and a policy; what is judged is staged."""
    made = Repo.create(folder, *arguments)
    repo = Local(made.path, made.env)
    for each in SETTINGS:
        repo.git("config", *each.split("=", 1))
    repo.commit({".gitattributes": ATTRIBUTES, "keep": "1\n"}, "Start")
    repo.policy(POLICY)
    repo.stage(FILES)
    return repo


def found(answer: Answer | Report) -> dict[str, str]:
    """Give the rule that each file broke."""
    if isinstance(answer, Report):
        errors = [
            each for change in answer.changes for each in change.findings if each.level.value == "error"
        ]
        return {each.path.raw.decode(): each.rule for each in errors if each.path is not None}
    assert answer.code == 1, answer.out + answer.err
    # A patch has a budget too, which speaks of no file.
    rows = [each for each in answer.findings if each["level"] == "error" and each["path"] is not None]
    return {each["path"]: each["rule"] for each in rows}


def doors(repo: Local, variables: Variables) -> Iterable[tuple[str, Answer | Report]]:
    """Judge the staged change at each door, under these variables; it is committed on the way."""
    judged = Local(repo.path, {**repo.env, **variables})
    place = repo.path.parent / "change.patch"
    place.write_bytes(repo.git("diff", "--cached", "--text", "--", ".", ":!x.bin"))
    yield "staged", judged.check()
    yield "working tree", judged.check("--worktree")
    yield "every file", judged.check("--all")
    yield "patch", judged.check("--patch", str(place))
    yield "patch on a base", judged.check("--patch", str(place), "--base", "HEAD")
    old = repo.head()
    repo.git("commit", "-q", "--no-verify", "-m", "Add files")
    new = repo.head()
    yield "commit", judged.check("HEAD")
    yield "range", judged.check(f"{old}..{new}")
    yield "trusted policy", judged.check("--policy-from", old, f"{old}..{new}")
    yield "push", judged.judge(f"refs/heads/main {new} refs/heads/main {old}")
    repo.git("update-ref", "refs/heads/main", old)
    received = open_repository(judged.env, str(repo.path))
    yield "received", judge_receive(received, f"{old} {new} refs/heads/main\n".encode())


@pytest.mark.sweep(6)
@pytest.mark.parametrize("place", PLACES)
def test_what_git_calls_binary_is_judged_by_its_bytes_at_each_door(tmp_path: Path, place: str) -> None:
    repo = made(tmp_path)
    variables = PLACES[place](repo)
    for door, answer in doors(repo, variables):
        expected = EXPECTED if not door.startswith("patch") else dict.fromkeys(TEXTS, "secret")
        assert found(answer) == expected, door


@pytest.mark.parametrize("place", ["HEAD", "info/attributes", "core.attributesFile", "attr.tree"])
@pytest.mark.parametrize("form", ["sha1", "sha256"])
def test_a_bare_server_reads_what_its_attributes_hide(tmp_path: Path, place: str, form: str) -> None:
    repo = made(tmp_path, f"--object-format={form}")
    old = repo.head()
    server = repo.at(tmp_path / "server.git")
    repo.git("clone", "-q", "--bare", ".", str(server.path))
    repo.git("commit", "-q", "--no-verify", "-m", "Add files")
    new = repo.head()
    repo.git("push", "-q", str(server.path), "HEAD:refs/heads/side")
    server.git("update-ref", "-d", "refs/heads/side")
    # Git 2.43 to 2.45 read the attributes of HEAD in a bare repository without being asked to.
    (server.path / "attributes").write_text(ATTRIBUTES, encoding="ascii")
    if place == "info/attributes":
        (server.path / "info").mkdir(exist_ok=True)
        (server.path / place).write_text(ATTRIBUTES, encoding="ascii")
    elif place != "HEAD":
        server.git("config", place, "HEAD" if place == "attr.tree" else str(server.path / "attributes"))
    received = judge_receive(
        open_repository(server.env, str(server.path)), f"{old} {new} refs/heads/main\n".encode()
    )
    assert found(received) == EXPECTED


def test_the_middle_of_a_binary_file_is_no_text_in_a_patch(tmp_path: Path) -> None:
    """The patch shows plain lines; the bytes of the file that it changes make it binary."""
    repo = made(tmp_path)
    info(repo)
    many = b"".join(b"%d\n" % number for number in range(20))
    repo.commit({"y.bin": b"\0\n" + many})
    repo.write("y.bin", b"\0\n" + many.replace(b"10\n", b"more\n"))
    place = tmp_path / "change.patch"
    place.write_bytes(repo.git("diff", "--text"))
    repo.git("checkout", "-q", "y.bin")
    patched = repo.check("--patch", str(place))
    repo.git("apply", "--index", str(place))
    for answer in (patched, repo.check("--profile", "agent")):
        assert answer.errors == ["deny-class"]
        assert answer.files["y.bin"]["binary"] is True
        assert answer.files["y.bin"]["added_lines"] is None


def is_since(repo: Repo, major: int, minor: int) -> bool:
    """Tell whether the git of these tests is at least so new."""
    words = repo.ask("version").split(" ")[2].split(".")
    return (int(words[0]), int(words[1])) >= (major, minor)


def test_no_hook_that_config_names_runs_in_a_check(tmp_path: Path) -> None:
    repo = made(tmp_path)
    if not is_since(repo, 2, 54):
        pytest.skip("this git knows no hooks in its config")
    mark = tmp_path / "ran"
    repo.git("config", "hook.mine.command", f"touch '{mark}'; true")
    for event in ("post-index-change", "reference-transaction"):
        repo.git("config", "--add", "hook.mine.event", event)
    for _, answer in [("staged", repo.check()), ("working tree", repo.check("--worktree"))]:
        assert answer.code == 1
    assert not mark.exists()
    repo.stage({"z": "z\n"})
    assert mark.exists()
