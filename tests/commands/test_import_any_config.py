"""Whatever another manager's config says, what is written of it is a policy that loads."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from patchgate.commands.importing.documents import read_document
from patchgate.commands.importing.draft import Surroundings, only_valid, without_repetition
from patchgate.commands.importing.known_hooks import PUBLIC_HOOKS
from patchgate.commands.importing.lefthook_config import read_lefthook
from patchgate.commands.importing.lint_staged_config import read_lint_staged
from patchgate.commands.importing.pre_commit_config import read_pre_commit
from patchgate.errors import UsageError
from patchgate.policy.config import parse
from tests.amount import often

EVERYTHING = Surroundings(bool, lambda path: "/" not in path)
TEXT = st.one_of(
    st.sampled_from(
        ["ruff check --fix", "a 'b", "x | y {staged_files}", "{files}", "{tests}", "", "é\u202e", "\x7f"]
    ),
    st.sampled_from(
        ["^src/.*\\.py$", "(?x)^(\n a|\n b)", "**", "*", "!a", "[", "a/**/b", "/", "..", "../x", "a b", "#"]
    ),
    st.sampled_from(
        ["true", "pre-push", "commit", "manual", "system", "script", "python", "text", "executable"]
    ),
    st.text(max_size=12).filter(lambda text: "\0" not in text),
)
VALUE = st.recursive(
    TEXT | st.booleans() | st.none(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=6,
)
REPOSITORIES = [
    *["local"] * 30,
    "meta",
    "https://example.com/a",
    *(f"https://example.com/{name}" for name in PUBLIC_HOOKS),
]
IDS = sorted({name for hooks in PUBLIC_HOOKS.values() for name in hooks})
LINE = st.sampled_from(
    ["ruff check --fix", "a 'b", "x | y {staged_files}", "npx eslint {staged_files}", "black ."]
)
PATHS = st.sampled_from(["^src/.*\\.py$", "\\.js$", "(?x)^(\n a|\n b)", "^vendor", "", "^$", "[ab]", "a b"])
GLOBS = st.sampled_from(
    ["*.js", "*.{js,ts}", "src/*.css", "**/*.go", "a/**/b", "/", "..", "!a", "#", "a b", "*"]
)
NAMES = st.lists(
    st.sampled_from(["python", "text", "executable", "javascript", "commit", "pre-push"]), max_size=2
)
PARTS: dict[str, st.SearchStrategy[Any]] = {
    "id": st.sampled_from(IDS),
    "entry": LINE,
    "args": st.lists(TEXT, max_size=3),
    "files": PATHS,
    "exclude": PATHS,
    "types": NAMES,
    "types_or": NAMES,
    "stages": NAMES,
    "language": TEXT,
    "pass_filenames": st.booleans(),
}
JOB_PARTS: dict[str, st.SearchStrategy[Any]] = {
    "run": LINE,
    "glob": GLOBS | st.lists(GLOBS, max_size=2),
    "exclude": GLOBS,
    "root": TEXT,
    "name": TEXT,
    "env": st.dictionaries(TEXT, TEXT, max_size=2),
    "skip": st.booleans(),
}


def odd(parts: dict[str, st.SearchStrategy[Any]], *first: str) -> st.SearchStrategy[dict[str, Any]]:
    """Tables with these keys, of which some have a value of any shape."""
    usual = {key: st.one_of(*[value] * 9, VALUE) for key, value in parts.items()}
    return st.fixed_dictionaries({key: usual.pop(key) for key in first}, optional=usual)


HOOK = odd(PARTS, "id", "entry")
JOB = odd(JOB_PARTS, "run")
PRE_COMMIT = st.fixed_dictionaries(
    {
        "repos": st.lists(
            st.fixed_dictionaries(
                {"repo": st.sampled_from(REPOSITORIES), "hooks": st.lists(HOOK, min_size=1, max_size=3)}
            ),
            max_size=3,
        )
    },
    optional={"exclude": TEXT, "files": TEXT, "default_stages": VALUE},
)
LEFTHOOK = st.dictionaries(
    st.sampled_from(["pre-commit", "pre-push", "commit-msg", "colors"]),
    st.fixed_dictionaries(
        {}, optional={"commands": st.dictionaries(TEXT, JOB, max_size=3), "jobs": st.lists(JOB, max_size=2)}
    )
    | VALUE,
    max_size=3,
)
LINT_STAGED = st.dictionaries(TEXT, TEXT | st.lists(TEXT, max_size=3) | VALUE, max_size=4)


@settings(max_examples=often(600), suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(PRE_COMMIT, LEFTHOOK, LINT_STAGED)
def test_what_is_written_is_a_policy(tmp_path: Path, first: Any, second: Any, third: Any) -> None:
    drafts = []
    for name, document, reader in (
        (".pre-commit-config.yaml", first, read_pre_commit),
        ("lefthook.json", second, read_lefthook),
        (".lintstagedrc.json", third, read_lint_staged),
    ):
        (tmp_path / name).write_text(json.dumps(document), encoding="utf-8")
        drafts.append(reader(read_document(str(tmp_path), name)[0], name, EVERYTHING))
    draft = without_repetition(only_valid(drafts[0] + drafts[1] + drafts[2]), {})
    text = "\n".join(each.toml("commands") for each in draft.commands)
    config = parse(text.encode(), "patchgate.toml")
    assert set(config.commands) == {each.name for each in draft.commands}


@settings(max_examples=often(600), suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    st.lists(
        st.sampled_from(
            [
                *"{}[]:,-&*!|>'\"#%@`?\n\t ",
                "a",
                "<<",
                "--- ",
                "...",
                "!!python/name:os.system",
                "\x85",
                "\ufeff",
            ]
        )
    )
)
def test_any_text_is_a_config_or_one_sentence(tmp_path: Path, parts: list[str]) -> None:
    (tmp_path / "lefthook.yml").write_text("".join(parts), encoding="utf-8")
    try:
        found, _ = read_document(str(tmp_path), "lefthook.yml")
    except UsageError:
        return
    read_lefthook(found, "lefthook.yml", EVERYTHING)


def test_yaml_tags_make_no_object(tmp_path: Path) -> None:
    (tmp_path / "lefthook.yml").write_text("a: !!python/object/apply:os.system [echo]\n", encoding="utf-8")
    assert read_document(str(tmp_path), "lefthook.yml")[0] == {"a": ["echo"]}


def test_without_pyyaml_one_sentence_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "lefthook.yml").write_text("a: [b]\n", encoding="utf-8")
    monkeypatch.setitem(__import__("sys").modules, "yaml", None)
    with pytest.raises(UsageError) as caught:
        read_document(str(tmp_path), "lefthook.yml")
    assert "patchgate[import]" in (caught.value.hint or "")
