"""A day with coding agents in a project with a past: what models send, what lands, whose regression it is."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from tests.component_world import FILES, TESTS, TEXT_OF_TESTS, capture
from tests.component_world import POLICY as COMPONENTS
from tests.proposals import addition, deletion, edits_of, moved
from tests.sessions.past import clone, told
from tests.sessions.scripted_fixer import mend
from tests.world import Answer, Repo

pytestmark = pytest.mark.turns(3)

CART, PRICE = "src/shop/cart.py", "src/shop/price.py"
NEW = b"src/shop/new.py"
BINARY = b"""\
diff --git a/x b/x
new file mode 100644
index 0000000..1111111
GIT binary patch
literal 3
KcmZQzWMT#Y01f~L

literal 0
HcmV?d00001

"""
MAIL = b"From 1111111111111111111111111111111111111111 Mon Sep 17 00:00:00 2001\nSubject: [PATCH] x\n\n---\n"
V4A = b"*** Begin Patch\n*** Update File: %b\n@@\n-a\n+b\n*** End Patch\n" % PRICE.encode()
BLOCKS = b"<<<<<<< SEARCH\n    return n + 1\n=======\n    return n + 10\n>>>>>>> REPLACE\n"


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    """The clone, on a branch of its own."""
    repo = clone(tmp_path)
    repo.env["XDG_CACHE_HOME"] = str(tmp_path / "cache")
    repo.git("switch", "-q", "-c", "agents")
    return repo


def diff_of(repo: Repo, *replaced: tuple[str, str], path: str = PRICE) -> bytes:
    """Let git write the patch that replaces texts of a file; leave the file as it was."""
    text = before = (repo.path / path).read_text()
    for old, new in replaced:
        assert old in text
        text = text.replace(old, new)
    repo.write(path, text)
    patch = repo.git("diff", "--", path)
    repo.write(path, before)
    return patch


def sent(repo: Repo, command: str, content: bytes | object, *arguments: str) -> Answer:
    """Check or apply a patch, or edits where it is no patch."""
    is_patch = isinstance(content, bytes)
    file = repo.path.parent / "sent"
    file.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
    option = {"check": "--patch", "apply": "--"}[command] if is_patch else "--edits"
    answer = repo.cli(command, "--format", "json", *arguments, option, str(file))
    assert answer.code in {0, 1, 3}, answer.out
    return answer


# What models send: the rules of its errors, the line of the first, whether the fixes make the whole patch.


def damaged(good: bytes) -> dict[str, tuple[bytes, list[str], int | None, bool]]:
    """Damage a patch of two hunks as models do."""
    lines = good.split(b"\n")
    headers, hunks = b"\n".join(lines[:2]) + b"\n", b"\n".join(lines[4:])
    names = b"\n".join(lines[2:4]) + b"\n"
    fence, mismatch, count = "prose-around-patch", "hunk-mismatch", "hunk-count-mismatch"
    return {
        "prose and a fence": (b"Here it is:\n\n```diff\n" + good + b"```\n", [fence] * 2, 1, True),
        "a fence": (b"```diff\n" + good + b"```\n", [fence] * 2, 1, True),
        "an e-mail": (MAIL + good + b"-- \n2.39\n", [fence] * 2, 1, True),
        # Of two hunks both are reported.
        "wrong counts": (re.sub(rb"@@ -(\d+),\d+", rb"@@ -\1,3", good), [count] * 2, 5, True),
        "no diff --git": (names + hunks, ["missing-file-header"], 1, True),
        "no prefixes": (
            names.replace(b" a/", b" ").replace(b" b/", b" ") + hunks,
            ["missing-file-header"],
            1,
            True,
        ),
        "empty context": (good.replace(b"\n \n", b"\n\n"), ["blank-context-line"] * 3, 6, True),
        "the file twice": (good + good, ["duplicate-section"], 20, True),
        "an apostrophe": (good.replace(b"def price_2", b"def price\xe2\x80\x99_2"), [mismatch], 13, True),
        "tabs": (good.replace(b"    ", b"\t"), [mismatch] * 2, 9, False),
        "an elision": (good.replace(lines[7], b"..."), ["patch-truncated"], 8, False),
        "cut off": (b"\n".join(lines[:-6]) + b"\n", ["patch-truncated"], 14, False),
        "a line left out": (good.replace(lines[7] + b"\n", b"", 1), [count], 5, False),
        "no ranges": (re.sub(rb"@@ .* @@.*", b"@@", good), ["range-invalid"] * 2, 5, False),
        "no a/ and b/": (
            (headers + names).replace(b" a/", b" ").replace(b" b/", b" ") + hunks,
            ["invalid-unified-diff"],
            1,
            True,
        ),
        "absolute": (good.replace(b" a/", b" /").replace(b" b/", b" /"), ["invalid-unified-diff"], 1, False),
        "another tool's patch": (V4A, ["not-a-unified-diff"], 1, False),
        "search and replace": (BLOCKS, ["not-a-unified-diff"], 1, False),
        "nothing": (b"", ["not-a-unified-diff"], 1, False),
        "a binary file": (BINARY, ["binary-payload"], 4, False),
    }


def test_what_models_send_is_accepted_mended_by_its_own_fix_or_explained(repo: Repo) -> None:
    """A fix makes what the whole patch makes, and what is lost has none."""
    good = diff_of(repo, ("n + 1", "n + 10"), ("n + 4", "n + 40"))
    whole = sent(repo, "check", good).change["after"]
    for name, patch in {
        "as it is": good,
        "other lines": good.replace(b"@@ -6,7 +6,7", b"@@ -4,7 +4,7"),
        "another index": re.sub(rb"index \w+\.\.\w+", b"index 1111111..2222222", good),
        "CR LF": good.replace(b"\n", b"\r\n"),
    }.items():
        assert sent(repo, "check", patch).change["after"] == whole, name
    for name, (patch, rules, line, leads_on) in damaged(good).items():
        answer = sent(repo, "check", patch)
        assert (answer.code, answer.errors) == (1, rules), name
        first = answer.findings[0]
        assert first["details"].get("patch_line", line) == line, name
        assert f"patch line {line}:" in first["message"], name
        mended = mend(patch, answer.report)
        if leads_on:
            assert sent(repo, "check", mended).change["after"] == whole, name
        else:
            assert all(each["fix"] is None for each in answer.findings), name


def test_new_gone_and_moved_files_that_models_send(repo: Repo) -> None:
    """What is not a change of lines, and what no agent may send."""
    new, gone = addition(NEW), deletion(b"CHANGES.md", b"Released.")
    for name, patch in {
        "new": new,
        "gone": gone,
        "renamed": moved(b"CHANGES.md", b"NEWS.md"),
        "unicode": addition("docs/\u00fcber.md".encode(), "\u2713".encode()),
        "edits": edits_of((12, 12, "def price_2(n, m):\n"), path=PRICE),
    }.items():
        assert sent(repo, "check", patch).code == 0, name
    for patch, whole in (
        (new.replace(b"new file mode 100644\n", b""), new),
        (new.split(b"\n", 2)[2], new),
        (gone.replace(b"deleted file mode 100644\n", b""), gone),
    ):
        answer = sent(repo, "check", patch)
        assert (answer.code, answer.errors) == (1, ["missing-file-header"])
        mended = sent(repo, "check", mend(patch, answer.report))
        assert mended.change["after"] == sent(repo, "check", whole).change["after"]
    cut = (
        b"diff --git a/n b/n\nnew file mode 100644\n--- /dev/null\n+++ b/n\n@@ -0,0 +1,60 @@\n" + b"+x\n" * 9
    )
    edits = edits_of((1, 1, "x\n"), path=PRICE)
    edits["patch"]["edits"].append({"path": CART, "start": 1, "end": 1, "new_text": "x\n"})
    for content, rule in (
        (cut, "patch-truncated"),
        (addition(b"src/l", b"/etc/passwd", b"120000", b"\\ No newline at end of file\n"), "symlink"),
        (addition(b"docs/logo.png"), "deny-class"),
        (addition(b"build/out.txt"), "deny-class"),
        (addition(b"tool.sh", mode=b"100755"), "mode-change"),
        (edits, "multi-file-diff"),
        ({"patch": {"edits": [], "old_string": "a"}}, "invalid-patch-schema"),
    ):
        answer = sent(repo, "check", content)
        assert (answer.code, answer.errors, answer.findings[0]["fix"]) == (1, [rule], None), rule
        assert answer.report["failure"]["fallback_reason"] == rule


# What lands.


def command(kind: str, script: str, name: str | None = None) -> str:
    """Declare a command of the policy."""
    return f'[commands.{name or kind}]\nkind = "{kind}"\ncommand = ["sh", "-c", {json.dumps(script)}]\n'


def test_a_patch_lands_by_what_its_commands_saw_of_it_alone(repo: Repo) -> None:
    """A linter that fixes, tests that failed before, and then a patch that fits."""
    good = diff_of(repo, ("n + 1", "n + 10"))
    before = (repo.path / PRICE).read_text()
    lint = "sed -i '/^import/d' src/shop/*.py"
    for policy, patch, rules in (
        (command("lint", lint), diff_of(repo, ('"""\n', '"""\nimport json\n')), ["command-changed-files"]),
        (command("test", "echo test_tax failed; exit 1"), good, ["failed-before"]),
        (command("test", "! grep -q 'n + 10$' src/shop/price.py"), good, ["build-failed"]),
        (command("lint", lint), good[: good.rindex(b"@@")] + b"@@ -6,9 +6,9 @@\n", ["patch-truncated"]),
    ):
        repo.policy(policy)
        answer = sent(repo, "apply", patch)
        assert (answer.code, answer.errors) == (1, rules)
        assert (repo.path / PRICE).read_text() == before
    repo.policy(command("lint", "true") + command("test", "grep -q 'n + 10$' src/shop/price.py"))
    answer = sent(repo, "apply", good)
    assert (answer.code, answer.report["attempt"]["applied"], answer.report["retry"]) == (0, True, None)
    assert (repo.path / PRICE).read_text() == before.replace("n + 1\n", "n + 10\n")
    assert repo.git("status", "--porcelain") == f" M {PRICE}\n".encode()


def test_a_loop_that_never_says_what_it_retries_ends_all_the_same(repo: Repo) -> None:
    """Seven refused attempts are one chain of five, and no agent begins it anew."""
    repo.policy('[policy]\ndeny_prefixes = ["docs"]\n')
    denied = addition(b"docs/more.md")
    answers = [sent(repo, "apply", denied) for _ in range(7)]
    assert answers[0].errors == ["deny-prefix"]
    retries = [each.report["retry"] for each in answers]
    first = answers[0].report["attempt"]["id"]
    assert {each["chain"] for each in retries} == {first}
    assert [each["allowed"] for each in retries] == [True] * 4 + [False] * 3
    assert max(each["number"] for each in retries) == 5
    assert "retry-exhausted" in answers[-1].errors
    reason = "the plan names another folder now"
    for words in (("attempts", "reset", first), ("approve", "--last")):
        for marker in ("", "1"):
            answer = repo.cli(*words, "--reason", reason, CLAUDECODE=marker)
            assert (answer.code, "CLAUDECODE" in answer.err) == (2, marker == "1")
    # A patch of other files is another piece of work.
    assert sent(repo, "apply", diff_of(repo, ("n + 1", "n + 10"))).code == 0


def test_edits_whose_lines_have_moved_say_so_or_say_what_they_replace(repo: Repo) -> None:
    """Line numbers alone point at other lines then."""
    edits = edits_of((9, 9, "    return n + 10\n"), path=PRICE)
    assert sent(repo, "check", edits).code == 0
    repo.write(PRICE, "# A line more.\n" + (repo.path / PRICE).read_text())
    assert sent(repo, "apply", edits).errors == ["anchor-missing"]
    (edit,) = edits["patch"]["edits"]
    edit["old_text"] = "    return n + 1\n"
    answer = sent(repo, "check", edits)
    (found,) = answer.findings
    assert (found["rule"], found["path"], found["line"]) == ("anchor-mismatch", PRICE, 9)
    assert "line 10" in found["hint"]
    edit["start"] = edit["end"] = 10
    assert sent(repo, "check", edits).code == 0


def test_a_patch_for_an_older_commit_names_the_base_that_fits(repo: Repo) -> None:
    """The line that does not fit, and the commit on which the patch does."""
    patch = diff_of(repo, ("n + 1", "n + 10"))
    base = repo.head()
    later = (repo.path / PRICE).read_text().replace("def price_2(n)", "def price_2(m)")
    repo.commit({PRICE: later, "docs/more.md": "more\n"})
    answer = sent(repo, "check", patch)
    (found,) = answer.findings
    assert (answer.code, found["rule"], found["path"], found["line"]) == (1, "hunk-mismatch", PRICE, 12)
    (named,) = re.findall(r"--base (\w+)", found["hint"])
    assert repo.ask("rev-parse", named) == base
    answer = sent(repo, "apply", patch, "--base", named)
    assert (answer.code, (repo.path / PRICE).read_text()) == (0, later.replace("n + 1\n", "n + 10\n"))


# Whose regression it is.

SLOW = """\
import json, os, pathlib, sys, time
if os.path.exists(sys.argv[1]):
    os.remove(sys.argv[1])
    time.sleep(1.2)
results = []
for path in sorted(pathlib.Path("src").rglob("*.py")):
    for number, line in enumerate(path.read_text().splitlines(), 1):
        place = {"artifactLocation": {"uri": str(path)}, "region": {"startLine": number}}
        found = {"ruleId": "B1", "message": {"text": line}, "locations": [{"physicalLocation": place}]}
        results += [found] if "BAD" in line else []
run = {"tool": {"driver": {"name": "it"}}, "results": results}
print(json.dumps({"version": "2.1.0", "runs": [run]}))
"""


def analysis(repo: Repo) -> str:
    """Declare an analysis that is slow once where a file beside the repository says so."""
    words = [sys.executable, "-IS", "slow.py", str(repo.path.parent / "slow")]
    threshold = '[[thresholds]]\nname = "new"\nmetric = "findings:new"\nmax = 0\n'
    return f"[analyses.slow]\ncommand = {json.dumps(words)}\n{threshold}"


def intent(repo: Repo, *arguments: str, code: int = 0) -> dict[str, Any]:
    """Run a command about intents."""
    answer = repo.cli("intent", *arguments, "--format", "json")
    assert answer.code == code, answer.err
    return answer.report


def verified(repo: Repo, *arguments: str) -> dict[str, Any]:
    """Verify; the exit code is that of the verdict."""
    answer = repo.cli("verify", "--format", "json", *arguments)
    assert answer.code == {"accepted": 0, "rejected": 1, "undecided": 3}[answer.report["verdict"]]
    return answer.report


def test_two_agents_with_intents_answer_for_what_they_did(repo: Repo, tmp_path: Path) -> None:
    """Slow analyses, work while queued, and a file that another has declared."""
    repo.commit({"slow.py": SLOW})
    repo.policy(analysis(repo))
    repo.install()
    repo.git("worktree", "add", "-q", "-b", "second", "../second")
    one, two = repo, repo.at(tmp_path / "second")
    (tmp_path / "slow").touch()
    first = intent(one, "declare", "-m", "Round the cart", "--allow", CART, "--lazy")["intent"]["id"]
    one.write(CART, "cart = 1  # BAD\n")
    one.git("add", CART)
    found = verified(one)
    assert not (tmp_path / "slow").exists()
    assert (found["verdict"], found["status"], found["intent"]) == ("rejected", "violated", first)
    assert [(each["path"], each["line"]) for each in found["intent_regressions"]] == [(CART, 1)]
    one.git("reset", "-q", "--hard")
    # The second waits for the same file; what it has alone it may change.
    second = intent(two, "declare", "-m", "Round prices", "--allow", CART, "--allow", PRICE, "--queue")
    assert second["intent"]["state"] == "queued"
    for name in (CART, "CHANGES.md"):
        two.write(name, "value = 1\n")
        two.git("add", name)
        assert told(two.try_git("commit", "-q", "-m", "Change it")) == (False, [("scope-unexpected", name)])
        two.git("reset", "-q", "--hard")
    two.write(PRICE, "price = 1  # BAD\n")
    two.git("add", PRICE)
    assert told(two.try_git("commit", "-q", "-m", "Round prices")) == (True, [])
    name = second["intent"]["id"]
    assert two.ask("log", "-1", "--format=%(trailers:key=Patchgate-Intent,valueonly)") == name
    intent(one, "clear")
    (shown,) = intent(two, "show")["intents"]
    assert (shown["id"], shown["state"]) == (name, "active")
    found = verified(two)
    assert (found["verdict"], found["intent"]) == ("rejected", name)
    assert [(each["path"], each["line"]) for each in found["intent_regressions"]] == [(PRICE, 1)]
    # One that has declared nothing is told of the file.
    one.write(PRICE, "price = 2\n")
    one.git("add", PRICE)
    answer = one.check()
    assert (answer.code, [(each["rule"], each["path"]) for each in answer.findings]) == (
        0,
        [("intent-reserved", PRICE)],
    )
    assert answer.findings[0]["details"]["intent"] == name
    # A tree beside itself is no worse than itself, whatever it holds.
    intent(two, "clear")
    assert verified(two, "HEAD", "--base", "HEAD")["verdict"] == "accepted"


# Whether a reviewer is right.


def test_a_claim_is_not_confirmed_by_a_page_that_it_is_not_about(repo: Repo, tmp_path: Path) -> None:
    """A template in the documentation corroborates nothing about a module."""
    repo.commit({"docs/errors.md": "Put YOUR_DSN_HERE there.\n"})
    claim = (
        "claim",
        "--reason",
        "incomplete_deliverable_placeholder",
        "--deliverable",
        CART,
        "--format",
        "json",
    )
    answer = repo.cli(*claim)
    scan = answer.report["metadata"]
    assert (answer.code, answer.report["outcome"], scan["corroborated"]) == (1, "upheld", False)
    assert scan["samples"] == ["docs/errors.md:1"]
    repo.policy('[claims]\nexclude = ["docs/**"]\n')
    answer = repo.cli(*claim)
    assert (answer.code, answer.report["outcome"]) == (3, "contradicted")
    repo.write(CART, "# TODO: write this\n")
    answer = repo.cli(*claim)
    assert (answer.code, answer.report["metadata"]["corroborated"]) == (1, True)
    stats = repo.cli("claim", "stats", "--format", "json").report
    Draft202012Validator(repo.cli("schema", "claim-stats").report).validate(stats)
    counts = ("scans", "corroborated_count", "uncorroborated_count", "contradiction_downgrade_count")
    assert [stats[key] for key in counts] == [3, 1, 1, 1]


# What a loop reads.


def test_every_answer_fits_the_schema_that_the_program_prints(repo: Repo) -> None:
    """Also the document that comes where there is no verdict."""
    repo.commit({"slow.py": SLOW, **FILES})
    repo.policy(COMPONENTS + analysis(repo))
    repo.commit(capture(repo, COMPONENTS))
    refused = sent(repo, "apply", diff_of(repo, ("n + 1", "n + 10")).replace(b" def price_2", b" def p"))
    assert refused.errors == ["hunk-mismatch"]
    attempt = refused.report["attempt"]["id"]
    reply = repo.path.parent / "reply"
    reply.write_text("I have finished.\n")
    answers = {
        "attempts": ("attempts", "list"),
        "attempt": ("attempts", "show", attempt),
        "intent": ("intent", "declare", "-m", "Round prices", "--allow", PRICE),
        "intents": ("intent", "list"),
        "analysis": ("analyze",),
        "verification": ("verify",),
        "claim": ("claim", "--reason", "incomplete_deliverable_placeholder", "--deliverable", CART),
        "claim-stats": ("claim", "stats"),
        "components": ("component", "list"),
        "component-graph": ("component", "graph"),
        "baselines": ("baseline", "status"),
        "reply": ("agent", "reply", str(reply)),
        "error": ("check", "no-such-revision"),
    }
    found = {name: [repo.cli(*words, "--format", "json").report] for name, words in answers.items()}
    found["report"] = [refused.report, repo.check("HEAD").report]
    found["error"] += [repo.cli("intent", "declare", "--format", "json").report]
    repo.policy("[policy]\ndeny_prefix = 1\n")
    found["error"] += [repo.cli("analyze", "--format", "json").report]
    found["event"] = [json.loads(line) for line in repo.cli("log", "--format", "json").out.splitlines()]
    assert {"attempted", "intent", "adjudicated"} <= {each["kind"] for each in found["event"]}
    for name, documents in found.items():
        validator = Draft202012Validator(repo.cli("schema", name).report)
        for document in documents:
            validator.validate(document)


def test_an_agent_that_deletes_a_test_and_records_it_again_is_refused(repo: Repo) -> None:
    """A component cannot lose a test, with or without its baseline."""
    repo.policy(COMPONENTS)
    repo.commit(FILES)
    repo.commit(capture(repo, COMPONENTS))
    weaker = ("drift-tests-weakened", "error", TESTS)
    repo.stage({TESTS: TEXT_OF_TESTS.partition("\n\ndef test_side")[0]})
    for files, rules in (
        ({}, {weaker, ("drift-tests", "warning", TESTS)}),
        (capture(repo, COMPONENTS), {weaker}),
    ):
        repo.stage(files)
        answer = repo.check("--profile", "agent")
        found = {(each["rule"], each["level"], each["path"]) for each in answer.findings}
        assert (answer.code, found) == (1, rules)
