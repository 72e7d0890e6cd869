"""What holds for every change and every policy (hypothesis)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from patchgate.check.case import Case
from patchgate.check.gate import join_results, judge
from patchgate.git.model import EXECUTABLE, GITLINK, REGULAR, SYMLINK, Change, Entry, FileChange
from patchgate.git.path import fold
from patchgate.policy.policy import Profile
from patchgate.report.rules import Level
from patchgate.report.verdict import GateOutcome, Outcome, Verdict
from tests.amount import often
from tests.check.gate_cases import (
    Part,
    added,
    binary,
    case,
    chmod,
    deleted,
    findings,
    gitlink,
    modified,
    oid,
    policy,
    raw,
    rules,
    symlink,
    verdict,
)
from tests.check.rule_cases import KEY, MARKER

Settings = dict[str, dict[str, Any]]

NAMES = (
    "README.md",
    "readme.md",
    "src/a.py",
    "src/b.py",
    "Src/a.py",
    "src",
    "runs/x",
    "RUNS/y",
    "runs/deep/z.pem",
    "key.pem",
    "tool.EXE",
    "uv.lock",
    "pyproject.toml",
    "patchgate.toml",
    ".patchgate/allowed_signers",
    "logo.png",
    "gen/a.py",
    "docs/a.md",
    "docs/key.pem",
    "node_modules/x.js",
    "a\nb",
    ".git/config",
)
TEXTS = (
    b"fine",
    KEY,
    MARKER,
    b"TODO",
    b"FIXME",
    b"TODO patchgate: " + b"allow deny-content a reason",
    KEY + b" patchgate: " + b"allow secret a reason",
)
ROOTS = ["src", "docs", "runs", "gen"]
PREFIXES = ["runs", "src/a.py", "docs", "key.pem"]
PATTERNS = ["*.pem", "gen/", "readme.md", "**/deep/*", "tool.*"]
SUFFIXES = [".exe", ".py", ".md"]
CLASSES = ["lock", "binary", "media", "artifact"]
EXPRESSIONS = ["TODO", "FIXME", "fi?ne"]
LEVELED = [
    "deny-prefix",
    "deny-pattern",
    "outside-allow-roots",
    "max-files",
    "deny-suffix",
    "secret",
    "symlink",
]
WEIGHTS = ["off", "note", "warning", "error"]


def some(values: list[str]) -> st.SearchStrategy[list[str]]:
    return st.lists(st.sampled_from(values), max_size=3, unique=True)


def limits() -> st.SearchStrategy[int | str]:
    return st.integers(0, 8) | st.just("off")


@st.composite
def one_file(draw: st.DrawFn, name: str) -> FileChange:
    """Draw what happens to one path; every side is read whole."""
    mode = draw(st.sampled_from([REGULAR, EXECUTABLE]))
    kind = draw(st.integers(0, 8))
    text = b"\n".join(draw(st.lists(st.sampled_from(TEXTS), max_size=3)))
    before = Entry(draw(st.sampled_from([REGULAR, SYMLINK, GITLINK])), oid("before"))
    made: list[FileChange] = [
        added(name, text, mode=mode, size=draw(st.integers(0, 8))),
        modified(name, text, mode=mode, size=draw(st.integers(0, 8))),
        deleted(name, mode, draw(st.sampled_from("ab"))),
        added(name, content="moved", mode=mode),
        chmod(name, mode),
        binary(name, size=draw(st.integers(0, 8))),
        symlink(
            name, draw(st.sampled_from([b"a", b"../../..", b"/etc"])), draw(st.sampled_from([None, before]))
        ),
        gitlink(name, draw(st.sampled_from([None, before]))),
        added(name, text, old=before),
    ]
    chosen = made[kind]
    if kind == 3:
        # The same blob and mode as some deletions: an exact rename.
        chosen = replace(chosen, new=Entry(mode, oid(draw(st.sampled_from("ab")))))
    return chosen


@st.composite
def changes(draw: st.DrawFn) -> list[FileChange]:
    names = draw(st.lists(st.sampled_from(NAMES), max_size=7, unique=True))
    return [draw(one_file(name)) for name in names]


@st.composite
def configs(draw: st.DrawFn) -> Settings:
    """Draw a config, as the tables of its TOML."""
    found: Settings = {"policy": {}, "policy.commit": {}, "policy.agent": {}, "content": {}, "rules": {}}
    keys: dict[str, st.SearchStrategy[Any]] = {
        "allow_roots": some(ROOTS),
        "deny_prefixes": some(PREFIXES),
        "deny": some(PATTERNS),
        "allow_delete": some(PATTERNS),
        "deny_suffixes": some(SUFFIXES),
        "deny_classes": some(CLASSES),
        "generated": some(PATTERNS),
        "max_file_bytes": limits(),
    }
    for key in draw(some(list(keys))):
        found["policy"][key] = draw(keys[key])
    for section in ("policy.commit", "policy.agent"):
        found[section] = draw(
            st.fixed_dictionaries(
                {},
                optional={
                    "max_files": limits(),
                    "max_added_lines": limits(),
                    "deny_classes": some(CLASSES),
                    "allow_modes": st.booleans(),
                    "allow_symlinks": st.sampled_from([True, False, "inside"]),
                    "allow_gitlinks": st.sampled_from([True, False, "bump"]),
                },
            )
        )
    found["content"] = draw(
        st.fixed_dictionaries({}, optional={"secrets": st.booleans(), "deny": some(EXPRESSIONS)})
    )
    found["rules"] = draw(st.dictionaries(st.sampled_from(LEVELED), st.sampled_from(WEIGHTS), max_size=3))
    return found


def toml_of(given_settings: Mapping[str, Mapping[str, Any]]) -> str:
    """Write tables as TOML: the strings, lists and booleans of JSON are TOML's."""
    return "".join(
        f"[{table}]\n" + "".join(f"{key} = {json.dumps(value)}\n" for key, value in keys.items())
        for table, keys in given_settings.items()
    )


def lower(draw: st.DrawFn, current: int | str) -> int | str:
    return draw(limits() if current == "off" else st.integers(0, int(current)))


@st.composite
def tightened(draw: st.DrawFn, start: Settings, profile: Profile) -> Settings:
    """Draw a config that says the same as `start` in all things but one or more, in which it is stricter."""
    made: Settings = {table: dict(keys) for table, keys in start.items()}
    general, content, levels = made["policy"], made["content"], made["rules"]
    own = made[f"policy.{profile}"]
    defaults = getattr(policy().config.policy, profile.value)
    for step in draw(st.lists(st.integers(0, 9), min_size=1, max_size=3)):
        if step == 0:
            general["deny_prefixes"] = [*general.get("deny_prefixes", []), draw(st.sampled_from(PREFIXES))]
        elif step == 1:
            general["deny"] = [draw(st.sampled_from(PATTERNS)), *general.get("deny", [])]
        elif step == 2:
            general["deny_suffixes"] = [*general.get("deny_suffixes", []), draw(st.sampled_from(SUFFIXES))]
        elif step == 3:
            general["deny_classes"] = [*general.get("deny_classes", []), draw(st.sampled_from(CLASSES))]
        elif step == 4:
            general["allow_roots"] = [
                each for each in general.get("allow_roots", ROOTS) if draw(st.booleans())
            ]
        elif step == 5:
            for key in ("allow_delete", "generated"):
                general[key] = [each for each in general.get(key, []) if draw(st.booleans())]
        elif step == 6:
            for key in ("max_files", "max_added_lines"):
                own[key] = lower(draw, own.get(key, getattr(defaults, key)))
            general["max_file_bytes"] = lower(draw, general.get("max_file_bytes", 1024 * 1024))
        elif step == 7:
            own.update(dict.fromkeys(("allow_modes", "allow_symlinks", "allow_gitlinks"), False))
        elif step == 8:
            content["deny"] = [draw(st.sampled_from(EXPRESSIONS)), *content.get("deny", [])]
            content["secrets"] = True
        else:
            rule = draw(st.sampled_from(LEVELED))
            weight = max(WEIGHTS.index(levels.get(rule, "error")), WEIGHTS.index("warning"))
            if rule in levels:
                levels[rule] = draw(st.sampled_from(WEIGHTS[weight:]))
    return made


@st.composite
def cases(draw: st.DrawFn) -> Case:
    return case(
        *draw(changes()),
        toml=toml_of(draw(configs())),
        profile=draw(st.sampled_from(Profile)),
        beside=["docs/A.md"],
    )


@settings(max_examples=often(150), deadline=None)
@given(st.data())
def test_the_verdict_does_not_depend_on_the_order_of_the_files(data: st.DataObject) -> None:
    first = data.draw(cases())
    files: list[Part] = list(data.draw(st.permutations(first.change.files)))
    turned = case(*files, judged_by=first.policy, profile=first.profile, beside=["docs/A.md"])
    turned = replace(turned, folders={folder: names[::-1] for folder, names in first.folders.items()})
    assert judge(turned) == judge(first)
    assert verdict(turned).id == verdict(first).id


@settings(max_examples=often(200), deadline=None)
@given(changes(), configs(), st.sampled_from(Profile), st.sampled_from(PREFIXES))
def test_deny_beats_everything_that_allows(
    files: list[FileChange], start: Settings, profile: Profile, prefix: str
) -> None:
    start["policy"] |= {
        "deny_prefixes": [prefix],
        "generated": ["*"],
        "allow_roots": ["."],
        "allow_delete": [],
    }
    start["rules"] = {}
    lifted = '[[overrides]]\npaths = ["*"]\nallow_modes = true\ndeny_classes = []\nmax_files = "off"\n'
    judged = case(*files, toml=toml_of(start) + lifted, profile=profile)
    refused = {each.path for each in findings(judged) if each.rule in {"deny-prefix", "deny-pattern"}}
    for file in files:
        folded = fold(file.path.raw)
        if folded == fold(raw(prefix)) or folded.startswith(fold(raw(prefix)) + "/"):
            assert file.path in refused


@settings(max_examples=often(300), deadline=None)
@given(st.data(), changes(), configs(), st.sampled_from(Profile))
def test_a_stricter_policy_never_accepts_more(
    data: st.DataObject, files: list[FileChange], start: Settings, profile: Profile
) -> None:
    stricter = data.draw(tightened(start, profile))
    before = verdict(case(*files, toml=toml_of(start), profile=profile)).verdict
    after = verdict(case(*files, toml=toml_of(stricter), profile=profile)).verdict
    assert Verdict.UNDECIDED not in {before, after}
    if before is Verdict.REJECTED:
        assert after is Verdict.REJECTED


@settings(max_examples=often(150), deadline=None)
@given(cases())
def test_a_change_is_accepted_exactly_if_every_gate_passes_or_does_not_apply(judged: Case) -> None:
    found = verdict(judged)
    done = {Outcome.PASS, Outcome.NOT_APPLICABLE}
    is_accepted = all(gate.outcome in done for gate in found.gates)
    assert (found.verdict is Verdict.ACCEPTED) == is_accepted
    assert (found.verdict is Verdict.REJECTED) == any(each.level is Level.ERROR for each in found.findings)


@settings(max_examples=often(150), deadline=None)
@given(
    st.lists(st.sampled_from(Outcome), max_size=6),
    st.lists(st.sampled_from(Outcome), max_size=2),
    st.lists(st.sampled_from(Level), max_size=3),
)
def test_accepted_is_computed_from_evidence_alone(
    outcomes: list[Outcome], around: list[Outcome], levels: list[Level]
) -> None:
    known = findings(case(added("runs/x"), toml='policy.deny_prefixes = ["runs"]'))[0]
    made = replace(
        verdict(case()),
        gates=tuple(GateOutcome(f"gate {number}", each) for number, each in enumerate(outcomes)),
        context_gates=tuple(GateOutcome(f"fact {number}", each) for number, each in enumerate(around)),
        findings=tuple(replace(known, level=level) for level in levels),
    )
    done = {Outcome.PASS, Outcome.NOT_APPLICABLE}
    if Level.ERROR in levels:
        expected = Verdict.REJECTED
    elif outcomes and done.issuperset([*outcomes, *around]):
        expected = Verdict.ACCEPTED
    else:
        expected = Verdict.UNDECIDED
    assert made.verdict is expected


@settings(max_examples=often(100), deadline=None)
@given(cases())
def test_what_the_base_alone_holds_is_never_refused_for_its_kind(judged: Case) -> None:
    """Deleting is judged by where it happens, and by nothing else: an agent's, also in the policy."""
    gone = [FileChange(file.path, file.old, None) for file in judged.change.files if file.old is not None]
    allowed = {
        "deny-prefix",
        "deny-pattern",
        "outside-allow-roots",
        "policy-change-not-alone",
        "agent-settings",
    }
    assert allowed.issuperset(rules(case(*gone, judged_by=judged.policy, profile=judged.profile)))


@settings(max_examples=often(100), deadline=None)
@given(cases())
def test_a_change_built_twice_is_judged_alike(judged: Case) -> None:
    again = Change.of(judged.change.base, judged.change.after, judged.change.files, oid("empty"))
    assert again == judged.change
    assert judge(replace(judged, change=again)) == judge(judged)


def test_what_is_undecided_stays_so_beside_an_error() -> None:
    """The error may be approved."""
    results = [((GateOutcome("content", each),), ()) for each in (Outcome.FAIL, Outcome.UNDECIDED)]
    for one, other in (results, results[::-1]):
        (outcome,), _ = join_results(one, other)
        assert outcome.outcome is Outcome.UNDECIDED
