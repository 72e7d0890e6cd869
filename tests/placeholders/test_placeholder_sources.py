"""The placeholder gate on real repositories: every source, what moves, what git calls binary, the hook."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from patchgate.git.model import Change, Entry, FileChange, Line
from patchgate.git.objects import Objects
from patchgate.git.path import RepoPath
from patchgate.git.repository import open_repository
from patchgate.placeholders import placeholder_search
from patchgate.policy.policy import Policy, Profile
from patchgate.policy.settings import Config
from tests.proposals import addition, check, moved
from tests.world import Answer, Content, Repo

pytestmark = pytest.mark.turns(3)

POLICY = '[placeholders]\nlevel = "error"\n'
TODO = "# TODO: read the file\n"
BODY = "def total(rows):\n    return sum(rows)\n\n\ndef later(rows):\n    pass\n"
OWN = '[claims]\nmarkers = [{ name = "ticket", pattern = "ABC-0000", example = "see ABC-0000" }]\n'


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    """A repository whose policy refuses new placeholders, with an old one."""
    repo = Repo.create(tmp_path)
    repo.policy(POLICY)
    repo.commit({"old.py": f"{TODO}x = 1\n", "clean.py": "y = 1\n"})
    return repo


def told(answer: Answer) -> list[tuple[str, str, int]]:
    """Give rule, path and line of each finding."""
    return [(each["rule"], each["path"], each["line"]) for each in answer.findings]


def pending(repo: Repo, files: dict[str, Content], *arguments: str) -> Answer:
    repo.stage(files)
    return repo.check(*arguments)


# ---- sources ----------------------------------------------------------------------------------------------

NEW = {"new.py": BODY, "notes.md": "# Notes\n\nOwner: [TBD]\n"}
FOUND = [("placeholder-body", "new.py", 6), ("placeholder-bracket", "notes.md", 3)]


def test_staged_worktree_commit_range_and_everything_tracked_are_judged_alike(repo: Repo) -> None:
    start = repo.head()
    for name, content in NEW.items():
        repo.write(name, content)
    answers = {"worktree": repo.check("--worktree")}
    answers["staged"] = pending(repo, {})
    repo.commit()
    answers["commit"] = repo.check("HEAD")
    answers["range"] = repo.check(f"{start}..HEAD")
    for kind, answer in answers.items():
        assert (answer.code, told(answer)) == (1, FOUND), kind
        assert answer.change["code"] == "PLACEHOLDER_FOUND"
    assert len({answer.change["id"] for answer in answers.values()}) == 1
    everything = repo.check("--all")
    assert told(everything) == [*FOUND[:1], FOUND[1], ("placeholder-word", "old.py", 1)]
    assert everything.code == 1


def test_patches_and_edits_are_judged_by_their_effect(repo: Repo) -> None:
    """A body is empty only where the whole file is seen: the patch brings one line of it."""
    repo.commit({"f.py": "def later(rows):\n    return rows\n"})
    patch = (
        b"diff --git a/f.py b/f.py\n--- a/f.py\n+++ b/f.py\n"
        b"@@ -1,2 +1,2 @@\n def later(rows):\n-    return rows\n+    pass\n"
    )
    answer = check(repo, patch)
    assert (answer.code, told(answer)) == (1, [("placeholder-body", "f.py", 2)])
    edit = {"path": "f.py", "start": 2, "end": 2, "new_text": "    pass\n"}
    answer = check(repo, json.dumps({"patch": {"edits": [edit]}}).encode(), option="--edits")
    assert (answer.code, told(answer)) == (1, [("placeholder-body", "f.py", 2)])
    harmless = patch.replace(b"+    pass", b"+    return list(rows)")
    assert check(repo, harmless).verdict == "accepted"


def test_a_patch_that_does_not_fit_is_judged_by_its_lines(repo: Repo) -> None:
    patch = (
        b"diff --git a/clean.py b/clean.py\n--- a/clean.py\n+++ b/clean.py\n"
        b"@@ -1 +1,2 @@\n-z = 3\n+z = 4\n+# TODO: read it\n"
    )
    answer = check(repo, patch)
    assert answer.code == 1
    assert ("placeholder-word", "clean.py", 2) in told(answer)
    assert "hunk-mismatch" in answer.rules


def test_an_apply_is_refused_by_placeholders_alone(repo: Repo) -> None:
    (repo.path.parent / "p.patch").write_bytes(addition(b"a.py", b"# TODO: read it"))
    answer = repo.cli("apply", "--format", "json", str(repo.path.parent / "p.patch"))
    assert (answer.code, answer.change["code"]) == (1, "PLACEHOLDER_FOUND")
    assert not (repo.path / "a.py").exists()


def test_a_push_is_refused(repo: Repo) -> None:
    repo.git("init", "-q", "--bare", "../remote.git")
    repo.git("remote", "add", "origin", "../remote.git")
    repo.git("push", "-q", "origin", "main")
    repo.commit(NEW)
    head = repo.head()
    before = repo.ask("rev-parse", "HEAD~1")
    line = f"refs/heads/main {head} refs/heads/main {before}\n".encode()
    done = repo.run("hook", "pre-push", "origin", "../remote.git", stdin=line)
    assert done.code == 1
    assert "placeholder-body" in done.out


def test_agents_commits_in_a_range_are_warned_and_those_of_people_are_not(tmp_path: Path) -> None:
    """One walk reads commits of both profiles; the first of them has no say in what is read of the others."""
    repo = Repo.create(tmp_path)
    start = repo.policy("[policy]\n")
    repo.commit({"a.py": TODO})
    repo.commit({"b.py": TODO}, "Change\n\nPatchgate-Run: 1")
    repo.commit({"c.py": TODO})
    answer = repo.check(f"{start}..HEAD")
    assert (answer.code, told(answer)) == (0, [("placeholder-word", "b.py", 1)])
    assert [each["level"] for each in answer.findings] == ["warning"]


def test_a_merge_is_judged_by_what_it_adds_itself(repo: Repo) -> None:
    repo.git("switch", "-q", "-c", "side")
    repo.commit({"side.py": TODO})
    repo.git("switch", "-q", "main")
    repo.commit({"main.py": "m = 1\n"})
    repo.git("merge", "-q", "--no-ff", "--no-commit", "side")
    assert repo.check().verdict == "accepted"
    repo.write("main.py", "m = 1\n# TODO: second\n")
    assert told(pending(repo, {})) == [("placeholder-word", "main.py", 2)]


def test_a_policy_that_brings_its_own_markers_is_judged_by_both(repo: Repo) -> None:
    """C4; the file itself is a control file, and exempt."""
    answer = pending(repo, {"patchgate.toml": POLICY + OWN})
    assert (answer.code, answer.findings) == (0, [])
    repo.commit()
    answer = pending(repo, {"a.md": "see ABC-0000\n"})
    assert told(answer) == [("placeholder-marker", "a.md", 1)]
    assert answer.findings[0]["details"]["key"] == "claims.markers[0]"


# ---- only added lines -------------------------------------------------------------------------------------


def test_legacy_placeholders_stay(repo: Repo) -> None:
    assert pending(repo, {"old.py": f"{TODO}x = 2\n"}).findings == []
    assert pending(repo, {"old.py": f"{TODO}x = 2\n# FIXME: y\n"}).rules == ["placeholder-word"]


def test_a_line_that_is_moved_or_indented_anew_is_not_new(repo: Repo) -> None:
    assert pending(repo, {"old.py": f"x = 1\nif x:\n    {TODO}    y = 2\n"}).findings == []
    again = pending(repo, {"old.py": f"x = 1\nif x:\n    {TODO}    y = 2\n{TODO}"})
    assert told(again) == [("placeholder-word", "old.py", 5)]


def test_a_line_that_is_moved_between_files_is_not_new(repo: Repo) -> None:
    assert pending(repo, {"old.py": "x = 1\n", "clean.py": f"y = 1\n{TODO}"}).findings == []
    copied = pending(repo, {"old.py": f"{TODO}x = 1\n"})
    assert told(copied) == [("placeholder-word", "clean.py", 2)]


def test_a_file_that_is_renamed_and_edited_keeps_its_old_placeholders(repo: Repo) -> None:
    repo.git("mv", "old.py", "renamed.py")
    assert pending(repo, {"renamed.py": f"{TODO}x = 2\n"}).findings == []
    more = pending(repo, {"renamed.py": f"{TODO}x = 2\n# TODO: another\n"})
    assert told(more) == [("placeholder-word", "renamed.py", 3)]


def test_an_exact_rename_lends_nothing_to_another_file(repo: Repo) -> None:
    repo.git("mv", "old.py", "renamed.py")
    assert told(pending(repo, {"clean.py": f"y = 1\n{TODO}"})) == [("placeholder-word", "clean.py", 2)]


def test_what_another_file_keeps_excuses_nothing(repo: Repo) -> None:
    """The other file loses a line, and its placeholder stays where it is."""
    answer = pending(repo, {"old.py": TODO, "clean.py": f"y = 1\n{TODO}"})
    assert told(answer) == [("placeholder-word", "clean.py", 2)]


def test_a_function_that_is_moved_with_its_empty_body_is_not_new(repo: Repo) -> None:
    repo.commit({"a.py": BODY, "b.py": "b = 1\n"})
    kept, _, empty = BODY.partition("\n\n\n")
    assert pending(repo, {"a.py": f"{kept}\n", "b.py": f"b = 1\n\n\n{empty}"}).findings == []


@pytest.mark.parametrize(
    ("before", "after", "line"),
    [
        ("def a():\n    pass\n", "def b():\n    pass\n\n\ndef a():\n    return 1\n", 1),
        ("x\n\ntry:\n    x()\nexcept E:\n    pass\n\ny()\n", "x\n\ndef a():\n    pass\n\ny()\n", 3),
        ("class E(B):\n    pass\n\n\ny = 1\n", "async def g():\n    pass\n\n\ny = 1\n", 1),
        ("class E(B):\n    pass\n", "def g(\n    x,\n):\n    pass\n", 1),
        ("@overload\ndef f(x: int): ...\n", "def f(x: int): ...\n", None),
        ("def f(a):\n    pass\n", "def f(a: int):\n    pass\n", None),
    ],
    ids=["stub", "handler", "async", "long", "decorator", "annotation"],
)
def test_a_function_whose_header_is_added_is_new_though_its_body_is_aligned_with_an_old_line(
    repo: Repo, before: str, after: str, line: int | None
) -> None:
    """What only removed lines make is not seen."""
    repo.stage({"a.py": before})
    repo.git("commit", "-q", "--no-verify", "-m", "Base")
    found = [] if line is None else [("placeholder-body", "a.py", line)]
    assert told(pending(repo, {"a.py": after})) == found


@pytest.mark.parametrize(
    ("name", "before", "after"),
    [
        ("a.py", "x = 1  # TODO: y\n", "x = 2 # TODO: y\n"),
        ("a.py", "x = 1\t# TODO: y\n", "x = 1  # TODO: y  \r\n"),
        ("a.md", "- TODO write\n", "* TODO write\n"),
        ("a.c", "x; // TODO: y\n", "/* TODO: y */\n"),
        ("a.md", "See [TBD].\n", "Look at [TBD].\n"),
        ("a.md", "Dear <your name>,\n", "Hello <your name>,\n"),
        ("a.py", "def f(a): pass\n", "def f(a: int): pass\n"),
        ("a.py", "def f(a, b): pass\n", "def f(\n    a,\n    b,\n):\n    pass\n"),
        ("a.js", 'throw new Error("not implemented")\n', 'throw new Error("not implemented");\n'),
        ("a.md", ("\ufeff- TODO write\n").encode("utf-16-le"), "- TODO write\n"),
        ("a.py", "# \xe9 TODO: y\n".encode("latin-1"), "# \xe9 TODO: y\n"),
    ],
)
def test_an_old_placeholder_whose_line_is_touched_for_another_reason_stays(
    repo: Repo, name: str, before: Content, after: Content
) -> None:
    repo.stage({name: before})
    assert repo.check().code == 1
    repo.git("commit", "-q", "--no-verify", "-m", "Base")
    assert told(pending(repo, {name: after})) == []


def test_a_patch_moves_a_line_from_file_to_file(repo: Repo) -> None:
    patch = (
        b"diff --git a/clean.py b/clean.py\n--- a/clean.py\n+++ b/clean.py\n"
        b"@@ -1 +1,2 @@\n y = 1\n+# TODO: read the file\n"
        b"diff --git a/old.py b/old.py\n--- a/old.py\n+++ b/old.py\n"
        b"@@ -1,2 +1 @@\n-# TODO: read the file\n x = 1\n"
    )
    assert check(repo, patch).verdict == "accepted"
    # Made of a section more, which does not fit: what old.py held is not told of either.
    assert check(repo, patch + moved(b"absent", b"b.py")).rules == ["target-missing"]


# ---- bytes ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_a_file_of_utf_16_is_judged_by_what_it_holds_more_than_before(repo: Repo, encoding: str) -> None:
    """Git calls it binary, so it has no added lines."""
    mark = "\ufeff"
    repo.commit({"doc.md": f"{mark}# Notes\r\n\r\n- TODO\r\n".encode(encoding)})
    assert pending(repo, {"doc.md": f"{mark}# Notes\r\n\r\nText\r\n- TODO\r\n".encode(encoding)}).rules == []
    text = f"{mark}# Notes\r\n\r\n- TODO\r\n[TBD]\r\n- TODO\r\n"
    answer = pending(repo, {"doc.md": text.encode(encoding)})
    assert told(answer) == [("placeholder-bracket", "doc.md", 4), ("placeholder-word", "doc.md", 5)]


def test_utf_16_that_git_takes_for_text_is_judged_too(repo: Repo) -> None:
    """No NUL is among the first 8,000 bytes of a text without ASCII."""
    text = "\ufeff" + "\u65e5\u672c" * 3000 + "\n- TODO\n"
    answer = pending(repo, {"doc.md": text.encode("utf-16-le")})
    assert not answer.files["doc.md"]["binary"]
    assert told(answer) == [("placeholder-word", "doc.md", 2)]


@pytest.mark.parametrize("defect", [b"\n", b"\0\xd8\n\0", b"\0\0\n\0"], ids=["odd", "surrogate", "NUL"])
def test_utf_16_with_a_defect_is_judged_by_what_can_be_read(repo: Repo, defect: bytes) -> None:
    text = "\ufeff# Notes\n- TODO: x\n".encode("utf-16-le")
    files: dict[str, Content] = {"a.txt": text + defect, "b.txt": text[:4] + defect[:-2] + text[4:]}
    assert told(pending(repo, files)) == [
        ("placeholder-word", "a.txt", 2),
        ("placeholder-word", "b.txt", 2),
    ]


def test_a_binary_file_is_no_text_and_an_older_encoding_is(repo: Repo) -> None:
    answer = pending(repo, {"a.bin": b"\0\n# TODO: x\n", "b.py": b"# \xe9\n# TODO: x\n"})
    assert told(answer) == [("placeholder-word", "b.py", 2)]


def test_a_binary_file_that_goes_excuses_nothing_and_a_text_of_utf_16_does(repo: Repo) -> None:
    repo.commit({"a.bin": b"\0\n" + TODO.encode(), "b.py": ("\ufeff" + TODO).encode("utf-16-le")})
    repo.git("rm", "-q", "a.bin")
    assert told(pending(repo, {"clean.py": f"y = 1\n{TODO}"})) == [("placeholder-word", "clean.py", 2)]
    repo.git("rm", "-q", "b.py")
    assert pending(repo, {}).findings == []


def test_attributes_hide_nothing(repo: Repo) -> None:
    repo.commit({".gitattributes": "*.py -diff\n"})
    assert told(pending(repo, {"clean.py": f"y = 1\n{TODO}"})) == [("placeholder-word", "clean.py", 2)]


def test_a_file_above_what_git_diffs_is_judged_by_its_lines(
    repo: Repo, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(placeholder_search, "BIG_FILE", 20)
    answer = pending(repo, {"large.py": f"x = 1\n{TODO}def f():\n    pass\n"})
    assert told(answer) == [("placeholder-word", "large.py", 2)]
    wide = pending(repo, {"large.py": ("\ufeff" + TODO).encode("utf-16-le")})
    gate = next(each for each in wide.change["gates"] if each["gate"] == "placeholders")
    assert (wide.code, gate["outcome"]) == (3, "undecided")
    assert "UTF-16" in gate["reason"]


def test_a_name_that_is_no_text_is_told_safely(repo: Repo) -> None:
    repo.stage({"a\x1b[2J.py": TODO})
    answer = repo.cli("check")
    assert "error[placeholder-word]" in answer.out
    assert "\x1b" not in answer.out


def test_an_object_that_is_missing_leaves_the_gate_undecided(repo: Repo) -> None:
    repository = open_repository(repo.env, str(repo.path))
    gone = FileChange(RepoPath(b"gone.py"), Entry("100644", "1" * 40), None, 0, 1)
    with Objects(repository) as objects:
        new = Entry("100644", repo.ask("rev-parse", "HEAD:old.py"))
        file = FileChange(RepoPath(b"new.py"), None, new, 2, 0, watched=(Line(1, TODO.strip().encode()),))
        change = Change(objects.empty_tree, "", (gone, file))
        facts = placeholder_search.gather_placeholders(objects, change, Policy(Config()), Profile.AGENT)
    assert facts is not None
    assert "1" * 40 in str(facts.fault)


def test_where_the_policy_says_nothing_of_them_nothing_is_loaded_for_them(tmp_path: Path) -> None:
    repo = Repo.create(tmp_path)
    repo.policy("[policy]\n")
    repo.stage({"a.py": TODO})
    program = (
        "import sys; from patchgate.cli import program; code = program.run(['hook', 'pre-commit']); "
        "print(code, sorted(each for each in sys.modules if 'placeholder' in each or 'markers' in each))"
    )
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, cwd=repo.path, env=repo.env, stdout=subprocess.PIPE, check=True)
    assert done.stdout.strip() == b"0 ['patchgate.placeholders', 'patchgate.placeholders.judging']"


def test_a_commit_is_recognised_or_handed_on_where_the_policy_speaks_to_people(repo: Repo) -> None:
    """The fast path knows what to hand on; what it recognises leaves its receipt without the full tier."""
    repo.install()
    repo.stage({"clean.py": "y = 2\n"})
    repo.git("commit", "-q", "-m", "Go on")
    for files in (
        {"clean.py": f"y = 2\n{TODO}"},
        {"new.py": BODY.removesuffix("\n")},
        {"doc.md": "\ufeff- TODO\r\n".encode("utf-16-le")},
    ):
        repo.stage(files)
        refused = repo.try_git("commit", "-m", "Change it")
        assert refused.returncode == 1
        assert b"error[placeholder-" in refused.stdout + refused.stderr
        repo.git("reset", "-q", "--hard")
    repo.stage({"old.py": f"{TODO}x = 2\n"})
    repo.git("commit", "-q", "-m", "Leave the old one where it is")


# ---- the hook of the frameworks ---------------------------------------------------------------------------


def hook(repo: Repo, *names: str, **env: str) -> Answer:
    return repo.cli("hook", "placeholders", "--", *names, cwd=None, **env)


def test_the_hook_judges_the_named_files_alone_as_errors_where_the_policy_says_nothing(
    tmp_path: Path,
) -> None:
    repo = Repo.create(tmp_path)
    repo.commit({"a.py": TODO})
    repo.stage({"a.py": f"{TODO}x = 1\n# FIXME: y\n", "b.py": TODO, "-c.py": TODO})
    answer = hook(repo, "a.py")
    assert answer.code == 1
    assert "error[placeholder-word]" in answer.out
    assert "a.py:3" in answer.out
    assert "b.py" not in answer.out.replace("a.py", "")
    assert "approve" not in answer.out
    assert hook(repo, "-c.py").code == 1
    (repo.path / "sub").mkdir()
    assert repo.cli("hook", "placeholders", "--", "../b.py", cwd=repo.path / "sub").code == 1
    assert hook(repo, "clean.py").code == 0
    repo.git("reset", "-q", "--hard")
    assert (hook(repo, "a.py").code, hook(repo).code) == (0, 0)


def test_a_folder_that_is_named_stands_for_the_files_below_it(repo: Repo) -> None:
    repo.stage({"sub/deep/b.py": TODO, "subway.py": TODO})
    answer = hook(repo, "sub")
    assert (answer.code, "sub/deep/b.py:1" in answer.out, "subway" in answer.out) == (1, True, False)
    assert hook(repo, "deep").code == 0


def test_the_hook_speaks_at_the_level_of_the_policy(repo: Repo) -> None:
    for level, code in (("warning", 0), ("off", 0), ("error", 1)):
        repo.policy(f'[placeholders]\nlevel = "{level}"\n')
        repo.stage({"clean.py": f"y = 1\n{TODO}"})
        answer = hook(repo, "clean.py")
        assert answer.code == code
        assert ("placeholder-word" in answer.out) == (level != "off")
        repo.git("reset", "-q", "--hard")
    repo.policy('[rules]\nplaceholder-word = "note"\n')
    repo.stage({"clean.py": f"y = 1\n{TODO}[TBD]\n"})
    answer = hook(repo)
    assert "note[placeholder-word]" in answer.out
    assert "error[placeholder-bracket]" in answer.out


def test_the_hook_sees_what_moves_in_the_whole_change(repo: Repo) -> None:
    repo.stage({"old.py": "x = 1\n", "clean.py": f"y = 1\n{TODO}"})
    assert hook(repo, "clean.py").code == 0


def test_the_hook_judges_a_first_commit_and_a_merge(tmp_path: Path) -> None:
    repo = Repo.create(tmp_path)
    repo.stage({"a.py": TODO})
    assert hook(repo, "a.py").code == 1
    repo.commit()
    repo.git("switch", "-q", "-c", "side")
    repo.commit({"side.py": TODO})
    repo.git("switch", "-q", "main")
    repo.commit({"main.py": "m = 1\n"})
    repo.git("merge", "-q", "--no-ff", "--no-commit", "side")
    assert hook(repo, "side.py", "main.py").code == 0
    repo.stage({"main.py": "m = 1\n# TODO: second\n"})
    assert hook(repo, "side.py", "main.py").code == 1


def test_the_hook_judges_no_other_gate(repo: Repo) -> None:
    key = "-----BEGIN " + "PRIVATE KEY-----\n"
    repo.stage({"key.pem": key})
    assert (hook(repo, "key.pem").code, repo.check().code) == (0, 1)


def test_the_hook_judges_a_range_as_one_change(tmp_path: Path) -> None:
    """What one commit adds and a later one takes out is not there any more."""
    repo = Repo.create(tmp_path)
    start = repo.commit({"a.py": "a = 1\n"})
    held = repo.commit({"a.py": "a = 1\n# FIXME: the first\n"})
    gone = repo.commit({"a.py": "a = 1\n"})
    left = repo.commit({"b.py": TODO})
    other = repo.commit({"c.py": TODO})
    about = {"PRE_COMMIT": "1", "PRE_COMMIT_FROM_REF": start}
    assert hook(repo, "a.py", PRE_COMMIT_TO_REF=gone, **about).code == 0
    answer = hook(repo, "a.py", "b.py", PRE_COMMIT_TO_REF=left, **about)
    assert (answer.code, "b.py:1" in answer.out) == (1, True)
    # From where the two part: what the first has lost since then the second does not bring.
    repo.git("switch", "-q", "-c", "side", held)
    side = repo.commit({"d.py": "d = 1\n"})
    ends = {"PRE_COMMIT": "1", "PRE_COMMIT_FROM_REF": other, "PRE_COMMIT_TO_REF": side}
    assert hook(repo, "a.py", "d.py", **ends).code == 0
    unknown = hook(repo, "a.py", PRE_COMMIT="1", PRE_COMMIT_FROM_REF="nowhere", PRE_COMMIT_TO_REF=side)
    assert (unknown.code, "unknown revision" in unknown.err) == (2, True)
    # Only a framework speaks this way.
    assert hook(repo, "b.py", PRE_COMMIT_FROM_REF=start, PRE_COMMIT_TO_REF=left).code == 0


def test_a_person_who_skips_the_hooks_skips_this_one(repo: Repo) -> None:
    repo.stage({"clean.py": f"y = 1\n{TODO}"})
    assert hook(repo, "clean.py", PATCHGATE_SKIP="a demo").code == 0
    assert hook(repo, "clean.py", PATCHGATE_SKIP="").code == 2


def test_a_policy_that_only_tells_stops_nothing(repo: Repo) -> None:
    repo.policy(f'{POLICY}[hooks]\nmode = "observe"\n')
    repo.stage({"clean.py": f"y = 1\n{TODO}"})
    answer = hook(repo, "clean.py")
    assert (answer.code, "placeholder-word" in answer.out) == (0, True)
