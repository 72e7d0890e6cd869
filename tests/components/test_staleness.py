"""How fresh a component is: the last day, what changed below it, notes, the ledger, shallow clones."""

from __future__ import annotations

import calendar
import time
from pathlib import Path

import pytest

from patchgate.components.attestations import VERIFIED_REF, Attestation
from patchgate.components.baseline_status import BaselineStatus, BaselineStatuses, baselines_of_head
from patchgate.components.component_cache import FactsCache
from patchgate.components.staleness import LastVerified, describe
from patchgate.components.staleness_gathering import dependency_digests
from patchgate.git.objects import Objects
from patchgate.git.path import RepoPath
from patchgate.git.tree_view import TreeView
from patchgate.ledger.ledger import Ledger
from tests import component_world
from tests.component_world import components, contract, files
from tests.components.dated_components import DAY, Componented, componented

pytestmark = pytest.mark.turns(3)

STRICT = "[baselines]\nrequire_fresh = true\nstaleness_window_days = 10\n"
TEN = "[baselines]\nstaleness_window_days = 10\n"


def status(repo: Componented, day: float) -> BaselineStatuses:
    """Look at everything on a day, twice: what was remembered says the same."""
    first = baselines_of_head(repo.opened, repo.at_day(day))
    assert baselines_of_head(repo.opened, repo.at_day(day)) == first
    return first


def told(repo: Componented, day: float, name: str = "a") -> BaselineStatus:
    (found,) = [each for each in status(repo, day).components if each.status.component.id == name]
    return found


def aged(repo: Componented, day: float, name: str = "a") -> list[tuple[str, str]]:
    """The findings of staleness about one component, with their levels."""
    return [
        (each.rule, each.level.value)
        for each in told(repo, day, name).findings
        if each.rule.startswith("baseline-")
    ]


def digests(repo: Componented, name: str, *names: str) -> dict[str, str]:
    """What a verification of a component today would hold of those below it."""
    every = components(repo.declare(*names))
    with Objects(repo.opened) as objects:
        view = TreeView(objects, repo.ask("rev-parse", "HEAD^{tree}"))
        with FactsCache(repo.opened.common_dir) as cache:
            return dependency_digests(every[name], every, view, cache)


def note(repo: Componented, name: str, day: float, below: dict[str, str]) -> None:
    """Note a verification as `baseline capture --reverify --commit-note` does."""
    oid = repo.ask("rev-parse", f"HEAD:.patchgate/baselines/{name}.json")
    line = Attestation(name, oid, int(repo.at_day(day)), below, "note").to_line()
    repo.git("notes", f"--ref={VERIFIED_REF}", "add", "-f", "-m", line.decode().rstrip("\n"), oid)


def test_the_last_day_of_the_window_still_counts(tmp_path: Path) -> None:
    """Requirement D 6.3: fresh within the window, whose last day counts; then stale."""
    repo = componented(tmp_path, "a", more=TEN)
    assert aged(repo, 0) == aged(repo, 10) == []
    # One second before the eleventh day is over, and that day itself.
    assert aged(repo, 11 - 1 / DAY) == []
    assert aged(repo, 11) == [("baseline-stale", "warning")]
    assert "11 days ago" in told(repo, 11).findings[0].message


def test_the_window_is_90_days_where_nothing_is_said(tmp_path: Path) -> None:
    repo = componented(tmp_path, "a")
    assert aged(repo, 90.9) == []
    assert aged(repo, 91) == [("baseline-stale", "warning")]


def test_what_is_not_fresh_is_an_error_where_that_is_required(tmp_path: Path) -> None:
    repo = componented(tmp_path, "a", "b", more=STRICT)
    assert not status(repo, 10).has_errors
    assert aged(repo, 11) == [("baseline-stale", "error")]
    assert status(repo, 11).has_errors
    repo.on(2, {"src/a/__init__.py": "def run(text):\n    return text + ''\n"})
    assert aged(repo, 3, "b") == [("baseline-aging", "error")]


def test_a_level_of_the_config_speaks_before_require_fresh(tmp_path: Path) -> None:
    repo = componented(
        tmp_path, "a", more=STRICT + '[rules]\nbaseline-stale = "note"\nbaseline-unknown = "off"\n'
    )
    assert aged(repo, 11) == [("baseline-stale", "note")]


@pytest.mark.parametrize("where", ["src/a/__init__.py", "src/a/more.py", "contracts/a/interface.json"])
def test_a_component_ages_where_what_it_depends_on_changed(tmp_path: Path, where: str) -> None:
    """Requirement D 6.3: aging where a dependency changed."""
    repo = componented(tmp_path, "a", "b", "c", more=TEN)
    repo.on(1, {where: contract("a", version="2.0")})
    assert aged(repo, 2, "b") == [("baseline-aging", "warning")]
    verified = told(repo, 2, "b").verified
    assert verified is not None
    assert (verified.verified_by, verified.changed) == ("commit", ("a",))
    # Neither the component itself ages, nor what depends on it only through another one.
    assert aged(repo, 2, "a") == aged(repo, 2, "c") == []


@pytest.mark.parametrize("where", ["tests/a/test_a.py", "src/d.py", "README"])
def test_what_others_do_not_see_of_a_component_ages_nobody(tmp_path: Path, where: str) -> None:
    repo = componented(tmp_path, "a", "b", more=TEN)
    repo.on(1, {where: "text\n"})
    assert aged(repo, 2, "b") == []


def test_a_dependency_that_is_as_it_was_again_ages_nobody(tmp_path: Path) -> None:
    repo = componented(tmp_path, "a", "b", more=TEN)
    before = (repo.path / "src/a/__init__.py").read_text()
    repo.on(1, {"src/a/__init__.py": "x = 1\n"})
    assert aged(repo, 2, "b") == [("baseline-aging", "warning")]
    repo.on(2, {"src/a/__init__.py": before})
    assert aged(repo, 2, "b") == []


def test_a_change_of_mode_of_a_dependency_is_a_change(tmp_path: Path) -> None:
    repo = componented(tmp_path, "a", "b", more=TEN)
    repo.git("update-index", "--chmod=+x", "src/a/__init__.py")
    repo.git("commit", "-q", "-m", "Mode")
    assert aged(repo, 2, "b") == [("baseline-aging", "warning")]


def test_a_dependency_by_another_spelling_is_that_component(tmp_path: Path) -> None:
    repo = componented(tmp_path, "shaping_rules", "b", more=TEN)
    repo.write("contracts/b/interface.json", contract("b", "Rules_Shaping"))
    repo.on(0, repo.captured("shaping_rules", "b"))
    repo.on(1, {"src/shaping_rules/__init__.py": "x = 1\n"})
    assert aged(repo, 2, "b") == [("baseline-aging", "warning")]


def without_a(repo: Componented, day: int) -> None:
    """Take the component `a` away by the two steps: the declaration first, then its files."""
    repo.on(day, {"patchgate.toml": repo.declare("b", more=TEN)})
    repo.git("rm", "-rq", "contracts/a", "src/a", "tests/a", ".patchgate/baselines/a.json")
    repo.on(day)


def test_a_dependency_that_is_gone_ages_what_names_it_still(tmp_path: Path) -> None:
    repo = componented(tmp_path, "a", "b", more=TEN)
    without_a(repo, 1)
    assert aged(repo, 2, "b") == [("baseline-aging", "warning")]
    found = told(repo, 2, "b")
    assert found.verified is not None
    assert (found.verified.changed, found.verified.gone) == ((), ("a",))
    (finding,) = found.findings
    assert " a (gone) " in finding.message
    assert (finding.hint or "").endswith(" git patchgate baseline capture b")
    assert {"a", "contract"} <= set((finding.hint or "").split())
    assert finding.details["changed_dependencies"] == ["a"]
    answer = repo.cli("baseline", "status", "--format", "json").report
    assert answer["components"][0]["changed_dependencies"] == ["a"]
    # Its tests passed without it: what is told of the name is told by the contracts alone.
    repo.write("src/b/__init__.py", "x = 1\n")
    repo.git("add", "-A")
    repo.on(3, component_world.capture(repo, repo.declare("b")))
    assert aged(repo, 4, "b") == []


def test_a_dependency_that_is_gone_ages_what_a_note_or_the_ledger_verified(tmp_path: Path) -> None:
    repo = componented(tmp_path, "a", "b", more=TEN)
    below = digests(repo, "b", "a", "b")
    without_a(repo, 1)
    note(repo, "b", 2, below)
    assert aged(repo, 3, "b") == [("baseline-aging", "warning")]
    note(repo, "b", 2, {})
    assert aged(repo, 3, "b") == []
    oid = repo.ask("rev-parse", "HEAD:.patchgate/baselines/b.json")
    ledger = Ledger(repo.opened.common_dir)
    assert ledger.record("verified", Attestation("b", oid, 0, below, "ledger").about()) is None
    (event,) = ledger.find_events({"verified"})
    now = calendar.timegm(time.strptime(event.at, "%Y-%m-%dT%H:%M:%SZ"))
    (found,) = baselines_of_head(repo.opened, now).components
    assert found.verified is not None
    assert (found.verified.verified_by, found.verified.gone) == ("ledger", ("a",))


def test_a_dependency_that_never_was_one_ages_nobody(tmp_path: Path) -> None:
    repo = componented(tmp_path, "a", "b", more=TEN)
    repo.write("contracts/b/interface.json", contract("b", "requests", "tools"))
    repo.write("tools/paths.py", "")
    repo.on(0, repo.captured("a", "b"))
    assert aged(repo, 1, "b") == []
    # A module that it names, which is no component, is missed where it goes.
    repo.git("rm", "-rq", "tools")
    repo.on(1)
    verified = told(repo, 2, "b").verified
    assert verified is not None
    assert verified.gone == ("tools",)


def test_where_the_policy_of_then_cannot_be_read_a_name_that_leads_nowhere_is_not_fresh(
    tmp_path: Path,
) -> None:
    repo = componented(tmp_path, "a", "b", more=TEN)
    repo.write("src/b/__init__.py", "x = 1\n")
    repo.on(1, {**repo.captured("a", "b"), "patchgate.toml": "what is this"})
    repo.on(1, {"patchgate.toml": repo.declare("a", "b", more=TEN)})
    assert aged(repo, 2, "b") == []
    without_a(repo, 2)
    assert aged(repo, 3, "b") == [("baseline-aging", "warning")]


def test_a_component_that_became_a_plain_module_is_not_gone(tmp_path: Path) -> None:
    repo = componented(tmp_path, "a", "b", more=TEN)
    repo.on(1, {"patchgate.toml": repo.declare("b", more=TEN)})
    assert aged(repo, 2, "b") == []


def test_names_of_what_is_gone_are_shown_safely_and_kept_short() -> None:
    names = ("\x1b[31m" + "x" * 200, *"abcdef")
    verified = LastVerified("b", RepoPath(b"b.json"), 0, "note", changed=("z",), gone=names)
    shown = describe(verified, 10, 0)
    assert shown.startswith("aging, verified today (a note); z, ")
    assert " 3 more " in shown
    assert "\x1b" not in shown
    assert len(shown) < 250


def test_a_recapture_makes_a_component_fresh_again(tmp_path: Path) -> None:
    repo = componented(tmp_path, "a", more=TEN)
    repo.write("src/a/__init__.py", "def run(text):\n    return str(text)\n")
    repo.on(20, repo.captured("a"))
    assert aged(repo, 30) == []
    assert aged(repo, 31) == [("baseline-stale", "warning")]


def test_a_commit_that_touches_other_files_makes_nothing_fresher(tmp_path: Path) -> None:
    repo = componented(tmp_path, "a", more=TEN)
    repo.on(20, {"README": "text\n"})
    assert aged(repo, 20) == [("baseline-stale", "warning")]


def test_a_note_counts_everywhere_and_the_newest_wins(tmp_path: Path) -> None:
    repo = componented(tmp_path, "a", "b", more=TEN)
    note(repo, "b", 20, digests(repo, "b", "a", "b"))
    assert aged(repo, 25, "b") == []
    verified = told(repo, 25, "b").verified
    assert verified is not None
    assert verified.verified_by == "note"
    assert describe(verified, 10, repo.at_day(25)) == "fresh, verified 5 days ago (a note)"
    # A note is about one component alone, and older than a commit it changes nothing.
    assert aged(repo, 25, "a") == [("baseline-stale", "warning")]
    repo.git("clone", "-q", str(repo.path), str(tmp_path / "clone"))
    clone = Componented(tmp_path / "clone", repo.env)
    assert aged(clone, 25, "b") == [("baseline-stale", "warning")]
    clone.git("fetch", "-q", "origin", f"{VERIFIED_REF}:{VERIFIED_REF}")
    assert aged(clone, 25, "b") == []
    note(repo, "b", -5, digests(repo, "b", "a", "b"))
    verified = told(repo, 5, "b").verified
    assert verified is not None
    assert verified.verified_by == "commit"


def test_what_changed_since_a_note_ages_a_component(tmp_path: Path) -> None:
    repo = componented(tmp_path, "a", "b", more=TEN)
    repo.on(1, {"src/a/__init__.py": "x = 1\n"})
    assert aged(repo, 2, "b") == [("baseline-aging", "warning")]
    # Its tests passed with the change below them, so they passed today.
    note(repo, "b", 2, digests(repo, "b", "a", "b"))
    assert aged(repo, 2, "b") == []
    repo.on(3, {"src/a/__init__.py": "x = 2\n"})
    assert aged(repo, 3, "b") == [("baseline-aging", "warning")]


def test_a_note_without_a_dependency_that_came_later_is_no_claim_about_it(tmp_path: Path) -> None:
    repo = componented(tmp_path, "a", "b", more=TEN)
    note(repo, "b", 2, {})
    assert aged(repo, 2, "b") == [("baseline-aging", "warning")]


def test_the_ledger_counts_on_this_machine_alone(tmp_path: Path) -> None:
    repo = componented(tmp_path, "a", more=TEN)
    oid = repo.ask("rev-parse", "HEAD:.patchgate/baselines/a.json")
    ledger = Ledger(repo.opened.common_dir)
    made = Attestation("a", oid, 0, {}, "ledger")
    assert ledger.record("verified", made.about()) is None
    (event,) = ledger.find_events({"verified"})
    # The ledger's own clock says when: it is long after the day of the commit.
    later = calendar.timegm(time.strptime(event.at, "%Y-%m-%dT%H:%M:%SZ")) + 10 * DAY
    (found,) = baselines_of_head(repo.opened, later).components
    assert found.verified is not None
    assert found.verified.verified_by == "ledger"
    assert describe(found.verified, 10, later) == "fresh, verified 10 days ago (this machine's ledger)"
    assert found.findings == ()
    repo.git("clone", "-q", str(repo.path), str(tmp_path / "clone"))
    clone = Componented(tmp_path / "clone", repo.env)
    (other,) = baselines_of_head(clone.opened, later).components
    assert [each.rule for each in other.findings] == ["baseline-stale"]


def test_a_shallow_history_is_unknown_and_never_fresh(tmp_path: Path) -> None:
    """Requirement D 6.3: what cannot be known is not fresh."""
    repo = componented(tmp_path, "a", more=TEN)
    repo.on(1, {"README": "text\n"})
    repo.git("clone", "-q", "--depth=1", f"file://{repo.path}", str(tmp_path / "clone"))
    clone = Componented(tmp_path / "clone", repo.env)
    assert aged(clone, 1) == [("baseline-unknown", "warning")]
    (finding,) = told(clone, 1).findings
    assert "shallow" in finding.message
    assert "--unshallow" in (finding.hint or "")
    clone.git("fetch", "-q", "--unshallow")
    # What a shallow history hid is not remembered.
    assert aged(clone, 1) == []


def test_a_shallow_history_is_an_error_where_freshness_is_required(tmp_path: Path) -> None:
    repo = componented(tmp_path, "a", more=STRICT)
    repo.git("clone", "-q", "--depth=1", f"file://{repo.path}", str(tmp_path / "clone"))
    clone = Componented(tmp_path / "clone", repo.env)
    assert aged(clone, 0) == [("baseline-unknown", "error")]


def test_a_commit_from_the_future_is_unknown(tmp_path: Path) -> None:
    repo = componented(tmp_path, "a", more=TEN)
    repo.write("src/a/__init__.py", "def run(text):\n    return str(text)\n")
    repo.on(50, repo.captured("a"))
    assert aged(repo, 48) == [("baseline-unknown", "warning")]
    # A clock may be behind a little.
    assert aged(repo, 49.5) == []
    assert told(repo, 49.5).verified is not None


def test_a_note_from_the_future_does_not_count(tmp_path: Path) -> None:
    repo = componented(tmp_path, "a", more=TEN)
    note(repo, "a", 50, {})
    assert aged(repo, 20) == [("baseline-stale", "warning")]


def test_a_component_without_a_baseline_has_no_age(tmp_path: Path) -> None:
    repo = componented(tmp_path, "a", more=TEN)
    repo.on(1, {"patchgate.toml": repo.declare("a", "b", more=TEN), **files("b", "a")})
    found = told(repo, 50, "b")
    assert found.verified is None
    assert [each.rule for each in found.findings] == ["no-baseline"]


def test_a_history_of_sha256_ids_is_read_alike(tmp_path: Path) -> None:
    repo = componented(tmp_path, "a", "b", more=TEN, git=("--object-format=sha256",))
    repo.on(1, {"src/a/__init__.py": "x = 1\n"})
    assert aged(repo, 2, "b") == [("baseline-aging", "warning")]
    assert aged(repo, 11, "a") == [("baseline-stale", "warning")]
