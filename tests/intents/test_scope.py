"""The scope gate: exact membership, forbidden files, what was so before, and what is said of it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from patchgate.git.path import RepoPath
from patchgate.intents.intent import Intent, IntentScope, Moment, ScopeCheck, matches
from patchgate.intents.scope import (
    MOST_NAMED,
    check_scope,
    expired_finding,
    queued_finding,
    scope_findings,
    trailer_findings,
)
from patchgate.report.rules import Level


def path(name: str) -> RepoPath:
    return RepoPath(name.encode("utf-8"))


def paths(*names: str) -> tuple[RepoPath, ...]:
    return tuple(map(path, names))


def intent(scope: IntentScope, reason: str = "Make it right") -> Intent:
    return Intent(
        "i-0123456789", reason, scope, "/w", "/w/.git", None, "0" * 40, Moment(1000.0), ttl=3600, lease=300
    )


def test_what_is_allowed_and_touched_is_clean() -> None:
    check = check_scope(IntentScope(paths("a", "b")), paths("b", "a"))
    assert check == ScopeCheck()
    assert check.is_clean


def test_a_touched_related_file_expands_the_scope_and_is_clean() -> None:
    check = check_scope(IntentScope(paths("a"), paths("t")), paths("a", "t"))
    assert check == ScopeCheck(expanded=paths("t"))
    assert check.is_clean


def test_what_is_declared_nowhere_is_unexpected() -> None:
    check = check_scope(IntentScope(paths("a"), paths("t")), paths("z", "a", "c"))
    assert check == ScopeCheck(unexpected=paths("c", "z"))
    assert not check.is_clean


def test_allowed_files_that_were_not_touched_are_told() -> None:
    assert check_scope(IntentScope(paths("b", "a", "b"), paths("t")), paths("a")).untouched == paths("b")


@pytest.mark.parametrize("entry", ["src/a.py", "src/*.py", "src/?.py", "src/[a].py", "src/", "*", "s*/"])
def test_an_entry_is_a_path_a_folder_or_a_glob(entry: str) -> None:
    assert check_scope(IntentScope(paths(entry)), paths("src/a.py")) == ScopeCheck()
    related = check_scope(IntentScope(paths("b"), paths(entry)), paths("b", "src/a.py"))
    assert related == ScopeCheck(expanded=paths("src/a.py"))


@pytest.mark.parametrize("entry", ["SRC/a.py", "src", "src/*.pyc", "src/a.py/", "sr/", "[s]/"])
def test_what_an_entry_does_not_take_is_unexpected(entry: str) -> None:
    check = check_scope(IntentScope(paths(entry)), paths("src/a.py"))
    assert check == ScopeCheck(unexpected=paths("src/a.py"), untouched=paths(entry))


def test_what_another_intent_has_is_unexpected_to_one_that_waits_and_says_who() -> None:
    mine = intent(IntentScope(paths("a", "b")))
    check = check_scope(mine.scope, paths("a", "b"), taken={path("a"): "i-ff"})
    assert (check.unexpected, check.taken) == (paths("a"), ((path("a"), "i-ff"),))
    (found,) = scope_findings(mine, check)
    assert (found.rule, found.path) == ("scope-unexpected", path("a"))
    assert found.message.startswith("i-ff has ")
    assert " wait until i-ff " in (found.hint or "")


def test_a_name_like_a_pattern_allows_that_very_file() -> None:
    assert check_scope(IntentScope(paths("app/[id].tsx")), paths("app/[id].tsx")).is_clean


@pytest.mark.parametrize("entry", ["conf/*", "conf/a.toml", "*.toml"])
def test_what_is_forbidden_is_taken_as_a_pattern_and_told_once(entry: str) -> None:
    check = check_scope(IntentScope(paths("a", "conf/a.toml"), (), paths(entry)), paths("a", "conf/a.toml"))
    assert check == ScopeCheck(forbidden=paths("conf/a.toml"))
    assert not check.is_clean


def test_a_control_file_is_forbidden_though_it_was_allowed() -> None:
    control = paths("patchgate.toml")
    assert check_scope(IntentScope(control), control, frozenset(control)).forbidden == control


def test_what_is_as_it_was_before_counts_nowhere() -> None:
    scope = IntentScope(paths("a"), paths("t"), paths("f"))
    check = check_scope(scope, paths("z", "f", "t", "a"), frozenset(), frozenset(paths("z", "f", "t")))
    assert check == ScopeCheck()


NAMES = st.sampled_from(["a", "b", "dir/a", "dir/b", "*", "dir/*", "dir/", "[a]", "ü"])
SETS = st.lists(NAMES, max_size=5).map(lambda names: paths(*names))


@given(SETS, SETS, SETS, SETS, SETS, SETS)
def test_every_touched_file_is_exactly_one_of_five(
    allowed: tuple[RepoPath, ...],
    related: tuple[RepoPath, ...],
    forbidden: tuple[RepoPath, ...],
    touched: tuple[RepoPath, ...],
    controls: tuple[RepoPath, ...],
    dirty: tuple[RepoPath, ...],
) -> None:
    check = check_scope(
        IntentScope(allowed, related, forbidden), touched, frozenset(controls), frozenset(dirty)
    )
    scope = IntentScope(allowed, related, forbidden)
    clean = {each for each in touched if scope.allows(each)} - {*check.forbidden, *dirty}
    parts = [set(check.unexpected), set(check.forbidden), set(check.expanded), clean, {*touched} & {*dirty}]
    assert sum(map(len, parts)) == len(set[RepoPath]().union(*parts)) == len({*touched})
    counted = {*touched} - {*dirty}
    assert set(check.untouched) == {
        each for each in allowed if not any(matches(each, one) for one in counted)
    }
    for listed in (check.unexpected, check.forbidden, check.expanded):
        assert list(listed) == sorted(set(listed))


def test_each_file_is_named_with_the_command_that_takes_it_out() -> None:
    scope = IntentScope(paths("a"), (), paths("no"))
    found = list(
        scope_findings(
            intent(scope), check_scope(scope, paths("a b", "no", "c.toml"), frozenset(paths("c.toml")))
        )
    )
    assert [(each.rule, each.path, each.level) for each in found] == [
        ("scope-forbidden", path("c.toml"), Level.ERROR),
        ("scope-forbidden", path("no"), Level.ERROR),
        ("scope-unexpected", path("a b"), Level.ERROR),
    ]
    assert [each.message.split()[:2] for each in found] == [
        ["control", "files"],
        ["i-0123456789", "forbids"],
        ["i-0123456789", "does"],
    ]
    assert "(git restore --staged 'a b')" in (found[2].hint or "")


def test_a_name_that_a_terminal_would_obey_is_in_no_command() -> None:
    scope = IntentScope(paths("a"))
    (found,) = scope_findings(intent(scope), check_scope(scope, [RepoPath(b"x\x1b[31m\n")]))
    assert "(git restore --staged PATH)" in (found.hint or "")


def test_of_many_files_the_first_are_named_and_the_rest_are_counted() -> None:
    scope = IntentScope(paths("a"), (), paths("f*"))
    wrong = [f"{letter}{number:02}" for letter in "fu" for number in range(MOST_NAMED + 2)]
    found = list(scope_findings(intent(scope), check_scope(scope, paths(*wrong))))
    assert len(found) == 2 * (MOST_NAMED + 1)
    rest = [each for each in found if each.path is None]
    assert [each.rule for each in rest] == ["scope-forbidden", "scope-unexpected"]
    assert all(each.message.startswith("2 more files ") for each in rest)
    assert "i-0123456789" in rest[1].message
    one = list(scope_findings(intent(scope), check_scope(scope, paths(*wrong[: MOST_NAMED + 1]))))
    assert one[-1].rule == "scope-forbidden"
    assert one[-1].message.startswith("1 more file ")


def test_a_message_that_names_other_intents_as_well_is_told() -> None:
    mine = intent(IntentScope(paths("a")))
    assert list(trailer_findings(mine, [mine.id, mine.id])) == []
    (found,) = trailer_findings(mine, ["i-ff\x1b", mine.id, "i-ee"])
    assert (found.rule, found.level) == ("intent-trailer", Level.NOTE)
    assert " i-ff\\x1b" in found.message
    assert mine.id not in found.message
    assert "i-ee" not in found.message
    assert "remove " in (found.hint or "")


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (3600, "expired,"),
        (3605, "expired 5 seconds ago,"),
        (3600 + 61, "expired 1 minute ago,"),
        (3600 * 3, "expired 2 hours ago,"),
        (3600 + 86_400 * 2, "expired 2 days ago,"),
    ],
)
def test_an_intent_whose_time_is_over_is_told_with_both_ways_on(seconds: float, said: str) -> None:
    found = expired_finding(intent(IntentScope(paths("a")), "Red \x1b[31m"), Moment(1000.0 + seconds))
    assert (found.rule, found.level) == ("intent-expired", Level.WARNING)
    assert said in found.message
    assert "\x1b" not in found.message
    assert found.hint is not None
    assert "recover i-0123456789" in found.hint
    assert "clear i-0123456789" in found.hint


def test_a_clock_that_went_back_says_no_length_of_time() -> None:
    assert "expired," in expired_finding(intent(IntentScope(paths("a"))), Moment(10.0)).message


def test_an_intent_that_waits_is_told() -> None:
    found = queued_finding(intent(IntentScope(paths("a"))))
    assert (found.rule, found.level) == ("intent-queued", Level.WARNING)


def test_a_trailer_that_is_missing_or_another_is_a_note_and_a_right_one_is_none() -> None:
    mine = intent(IntentScope(paths("a")))
    (missing,) = trailer_findings(mine, [])
    (other,) = trailer_findings(mine, ["i-\x1b[31m"])
    assert (missing.rule, missing.level) == (other.rule, other.level) == ("intent-trailer", Level.NOTE)
    assert "\x1b" not in other.message
    assert "but i-\\x1b[31m" in other.message
    assert len(list(trailer_findings(mine, ["i-other", mine.id]))) == 1
