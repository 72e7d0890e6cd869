"""What is known of public tools: how each checks without changing files, how it fixes, what it reads besides.

A command line of another manager becomes one that only checks (a linter) or one that writes (a formatter,
which passes if it would change nothing). A tool that is not known here is a linter, with the words as they
are.
"""

from __future__ import annotations

from collections.abc import Sequence

from patchgate.commands.importing.draft import Key, Surroundings, with_files
from patchgate.values import dataclass, field

_PYPROJECT = ("pyproject.toml",)
_RUFF = (*_PYPROJECT, "ruff.toml", ".ruff.toml")
_NODE = ("package.json", ".editorconfig", "tsconfig.json")
_ESLINT = (
    *_NODE,
    *(f"eslint.config.{ending}" for ending in ("js", "mjs", "cjs", "ts")),
    *(f".eslintrc{ending}" for ending in ("", ".js", ".cjs", ".json", ".yaml", ".yml")),
)
_PRETTIER = (
    *(*_NODE[:2], ".prettierignore"),
    *(f".prettierrc{ending}" for ending in ("", ".json", ".yaml", ".yml", ".toml", ".js", ".mjs", ".cjs")),
    *(f"prettier.config.{ending}" for ending in ("js", "mjs", "cjs", "ts")),
)
_RUNNERS = {
    *(("npx",), ("bunx",), ("yarn",), ("pnpm",), ("pnpm", "exec"), ("yarn", "run"), ("npm", "exec")),
    *(("uv", "run"), ("poetry", "run"), ("pdm", "run"), ("hatch", "run"), ("bundle", "exec")),
    *(("python", "-m"), ("python3", "-m")),
}
_OF_NODE = frozenset({"npx", "bunx", "yarn", "pnpm", "npm"})


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool.

    `kind` as in the policy. `drops` are the options that make a linter fix, or a formatter only check, and
    `values` those that are dropped with their value; `adds` is added to check, or for a formatter to write;
    `fixes` is what a linter's `fix` gets instead. `after` is how many words the options follow.
    """

    kind: str
    drops: frozenset[str] = frozenset()
    adds: tuple[str, ...] = ()
    fixes: tuple[str, ...] = ()
    values: frozenset[str] = frozenset()
    needs: tuple[str, ...] = ()
    after: int = 1
    keys: dict[str, Key] = field(default_factory=dict)


def _tool(kind: str, drops: str = "", adds: str = "", fixes: str = "", **more: object) -> Tool:
    values = frozenset(str(more.pop("values", "")).split())
    needs = more.pop("needs", ())
    after = more.pop("after", 1)
    assert isinstance(needs, tuple)
    assert isinstance(after, int)
    keys: dict[str, Key] = {name: value for name, value in more.items() if isinstance(value, str | bool)}
    return Tool(
        kind, frozenset(drops.split()), tuple(adds.split()), tuple(fixes.split()), values, needs, after, keys
    )


TOOLS: dict[tuple[str, ...], Tool] = {
    ("ruff", "check"): _tool(
        "lint",
        "--fix --no-fix --fix-only --exit-non-zero-on-fix --show-fixes --quiet -q",
        "--no-fix --output-format sarif",
        "--fix-only",
        values="--output-format",
        needs=_RUFF,
        after=2,
        output="sarif",
        new_only=True,
    ),
    ("ruff", "format"): _tool("format", "--check --diff", needs=_RUFF, after=2),
    ("black",): _tool("format", "--check --diff", needs=_PYPROJECT),
    ("isort",): _tool(
        "format", "--check --check-only -c --diff", needs=(*_PYPROJECT, ".isort.cfg", "setup.cfg")
    ),
    ("yapf",): _tool(
        "format", "-d --diff -q --quiet --in-place", "-i", needs=(*_PYPROJECT, ".style.yapf", "setup.cfg")
    ),
    ("autopep8",): _tool("format", "-d --diff", "-i", needs=(*_PYPROJECT, "setup.cfg")),
    ("pyupgrade",): _tool("format", "", "--exit-zero-even-if-changed"),
    ("docformatter",): _tool("format", "-c --check", "--in-place", needs=_PYPROJECT),
    ("flake8",): _tool("lint", needs=(".flake8", "setup.cfg", "tox.ini")),
    ("pylint",): _tool("lint", scope="tree"),
    ("bandit",): _tool("lint", needs=(*_PYPROJECT, ".bandit")),
    ("mypy",): _tool("lint", scope="tree"),
    ("pyright",): _tool("lint", scope="tree"),
    ("pytest",): _tool("test", scope="tree"),
    ("prettier",): _tool("format", "--check -c --list-different -l -w", "--write", needs=_PRETTIER),
    ("eslint",): _tool("lint", "--fix", "", "--fix", needs=_ESLINT),
    ("stylelint",): _tool("lint", "--fix", "", "--fix", needs=(*_NODE, ".stylelintrc", ".stylelintrc.json")),
    ("biome", "check"): _tool(
        "lint", "--write --fix --apply", "", "--write", needs=("biome.json", "biome.jsonc"), after=2
    ),
    ("biome", "lint"): _tool(
        "lint", "--write --fix --apply", "", "--write", needs=("biome.json", "biome.jsonc"), after=2
    ),
    ("biome", "format"): _tool("format", "--fix", "--write", needs=("biome.json", "biome.jsonc"), after=2),
    ("tsc",): _tool("lint", scope="tree"),
    ("jest",): _tool("test", scope="tree"),
    ("vitest",): _tool("test", scope="tree"),
    ("mocha",): _tool("test", scope="tree"),
    ("npm", "test"): _tool("test", scope="tree", after=2),
    ("markdownlint",): _tool(
        "lint", "--fix -f", "", "--fix", needs=(".markdownlint.json", ".markdownlint.yaml")
    ),
    ("markdownlint-cli2",): _tool(
        "lint",
        "--fix",
        "",
        "--fix",
        needs=(".markdownlint.json", ".markdownlint.yaml", ".markdownlint-cli2.yaml"),
    ),
    ("codespell",): _tool(
        "lint", "-w --write-changes", "", "-w", needs=(*_PYPROJECT, ".codespellrc", "setup.cfg")
    ),
    ("typos",): _tool(
        "lint", "-w --write-changes", "", "--write-changes", needs=("typos.toml", "_typos.toml")
    ),
    ("yamllint",): _tool("lint", needs=(".yamllint", ".yamllint.yaml", ".yamllint.yml")),
    ("shellcheck",): _tool("lint", needs=(".shellcheckrc",)),
    ("shfmt",): _tool("format", "-d --diff -l --list --write", "-w", needs=(".editorconfig",)),
    ("hadolint",): _tool("lint", needs=(".hadolint.yaml",)),
    ("clang-format",): _tool("format", "-n --dry-run --Werror", "-i", needs=(".clang-format",)),
    ("gofmt",): _tool("format", "-l -d", "-w"),
    ("goimports",): _tool("format", "-l -d", "-w"),
    ("go", "vet"): _tool("lint", scope="tree", after=2),
    ("go", "test"): _tool("test", scope="tree", after=2),
    ("rustfmt",): _tool("format", "--check", needs=("rustfmt.toml", ".rustfmt.toml")),
    ("cargo", "fmt"): _tool("format", "--check", scope="tree", after=2),
    ("cargo", "clippy"): _tool("lint", "--fix", scope="tree", after=2),
    ("cargo", "test"): _tool("test", scope="tree", after=2),
    ("rubocop",): _tool("lint", "-a -A --autocorrect --autocorrect-all", "", "-a", needs=(".rubocop.yml",)),
    ("taplo", "format"): _tool("format", "--check --diff", needs=("taplo.toml", ".taplo.toml"), after=2),
    ("taplo", "fmt"): _tool("format", "--check --diff", needs=("taplo.toml", ".taplo.toml"), after=2),
    ("uv", "lock"): _tool("lint", "", "--check", scope="tree", after=2),
}


def keys_of(
    words: Sequence[str], around: Surroundings, *, takes_files: bool, root: str = ""
) -> dict[str, Key]:
    """Make the keys of a command from a command line: kind, command, fix, scope, output, needs, provide.

    Args:
        words: the program and its arguments, without the files.
        around: the repository.
        takes_files: whether the file names are its last arguments.
        root: the folder where it runs; empty for the root of the repository.
    """
    around, below = around.below(root), f"{root}/" if root else ""
    program = _program(words, around)
    prefix, tool = _find(program)
    keys: dict[str, Key] = {"kind": "lint"}
    if tool is None:
        checking, fixing = program, None
    else:
        keys = {"kind": tool.kind, **tool.keys}
        start = prefix + tool.after
        rest = _without(program[start:], tool)
        checking = [*program[:start], *tool.adds, *rest]
        fixing = [*program[:start], *tool.fixes, *rest] if tool.fixes else None
    keys["command"] = with_files(checking) if takes_files else tuple(checking)
    if fixing is not None and takes_files:
        keys["fix"] = with_files(fixing)
    if not takes_files or (tool is None and any(around.is_folder(word) for word in program[1:])):
        keys["scope"] = "tree"
    if keys.get("scope") != "tree":
        known = tool.needs if tool is not None else ()
        # What is in `node_modules` is provided.
        named = [word.removeprefix("./") for word in program if "node_modules/" not in word]
        keys["needs"] = tuple(
            dict.fromkeys(below + each for each in (*known, *named) if around.is_file(each))
        )
    if uses_node(program) and around.is_folder("node_modules"):
        keys["provide"] = (f"{below}node_modules",)
    return keys


def uses_node(words: Sequence[str]) -> bool:
    """Whether a command line takes its program from `node_modules`."""
    return words[0] in _OF_NODE or "node_modules/" in words[0]


def _program(words: Sequence[str], around: Surroundings) -> list[str]:
    """Name the program of `npx NAME` and of a plain name by its file, if it is in `node_modules`."""
    found = list(words)
    if found[0] in {"npx", "bunx"} or found[:2] in (["pnpm", "exec"], ["npm", "exec"], ["yarn", "run"]):
        rest = found[1 if found[0] in {"npx", "bunx"} else 2 :]
        rest = rest[1:] if rest[:1] == ["--"] or rest[:1] == ["--no-install"] else rest
        if rest and around.is_file(f"node_modules/.bin/{rest[0]}"):
            return [f"node_modules/.bin/{rest[0]}", *rest[1:]]
    if "/" not in found[0] and around.is_file(f"node_modules/.bin/{found[0]}"):
        return [f"node_modules/.bin/{found[0]}", *found[1:]]
    return found


def _find(words: Sequence[str]) -> tuple[int, Tool | None]:
    """Find the tool of a command line, and how many words a runner takes before it."""
    for prefix in (2, 1, 0):
        if prefix and tuple(words[:prefix]) not in _RUNNERS:
            continue
        rest = words[prefix:]
        if not rest:
            continue
        name = rest[0].rpartition("/")[2]
        for key in ((name, *rest[1:2]), (name,)):
            if key in TOOLS:
                return prefix, TOOLS[key]
    return 0, None


def _without(words: Sequence[str], tool: Tool) -> list[str]:
    """Drop options: alone, with a value after `=`, or with the next word as their value."""
    kept: list[str] = []
    skips = False
    for word in words:
        option = word.partition("=")[0]
        if skips:
            skips = False
        elif option in tool.values:
            skips = "=" not in word
        elif word not in tool.drops and word not in tool.adds:
            kept.append(word)
    return kept
