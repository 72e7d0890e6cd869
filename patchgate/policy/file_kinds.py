"""The kind of a file, by its name: its classes, whether it is a control file or a suppression file.

The classes are those of `deny_classes` and `deny_new_classes`, compared without case. `binary` also includes
what git detects by content, unless the name is in `media`. Names that are also used for sources (`build/`,
`out/`) are only in `output`, which is meant for new files.
"""

from __future__ import annotations

import re

from patchgate.git.path import RepoPath

# Other control files (`pyproject.toml`, `.pre-commit-config.yaml`) are known by their content, which the
# caller checks.
CONFIG_FILE = RepoPath(b"patchgate.toml")
PYPROJECT_FILE = RepoPath(b"pyproject.toml")
PRE_COMMIT_FILE = RepoPath(b".pre-commit-config.yaml")
ALLOWED_SIGNERS = RepoPath(b".patchgate/allowed_signers")
_FOLDER = b".patchgate"
_BASELINES = b".patchgate/baselines/"
_STARTS = (CONFIG_FILE.raw, _FOLDER)
CONTROLS_BY_NAME = (CONFIG_FILE, RepoPath(_FOLDER + b"/"))
"""The control files by name, for messages: a file and a folder."""
POLICY_PATHS = "@policy"
"""The word for the control files, among the paths of `[[owners]]`."""
# Plain or escaped, but for a requirement ("patchgate>=1"): that is no key.
_TABLE = re.compile(rb"(?<![\"'])patchgate|patchgate(?! *[<>=~!\[;@])|\\[uUx]")


def may_have_table(project: bytes) -> bool:
    """Check whether something in a `pyproject.toml` may be the name of patchgate's table.

    Else it has none, also where it is no TOML.
    """
    return _TABLE.search(project) is not None


def is_control_by_name(path: RepoPath) -> bool:
    """Check whether a path is a control file by its name, or below that; baselines are not."""
    raw = path.raw
    # Called for every file of a range: most names fail the first comparison.
    if not raw.startswith(_STARTS):
        return False
    return path.is_within(CONFIG_FILE.raw) or (path.is_within(_FOLDER) and not raw.startswith(_BASELINES))


MANIFESTS: dict[str, tuple[str, ...]] = {
    "bun.lock": ("package.json",),
    "bun.lockb": ("package.json",),
    "cargo.lock": ("cargo.toml",),
    "composer.lock": ("composer.json",),
    "deno.lock": ("deno.json", "deno.jsonc", "package.json"),
    "flake.lock": ("flake.nix",),
    "gemfile.lock": ("gemfile",),
    "go.sum": ("go.mod",),
    "mix.lock": ("mix.exs",),
    "npm-shrinkwrap.json": ("package.json",),
    "package-lock.json": ("package.json",),
    "packages.lock.json": (),
    "pdm.lock": ("pyproject.toml",),
    "pipfile.lock": ("pipfile",),
    "pixi.lock": ("pixi.toml", "pyproject.toml"),
    "pnpm-lock.yaml": ("package.json", "pnpm-workspace.yaml"),
    "podfile.lock": ("podfile",),
    "poetry.lock": ("pyproject.toml",),
    "pubspec.lock": ("pubspec.yaml",),
    "pylock.toml": ("pyproject.toml",),
    "uv.lock": ("pyproject.toml",),
    "yarn.lock": ("package.json",),
}
"""The name of each lock file (in lower case), and its manifests."""


def _suffixes(words: str) -> tuple[str, ...]:
    return tuple(f"*.{suffix}" for suffix in words.split())


CLASSES: dict[str, tuple[str, ...]] = {
    "lock": (*MANIFESTS, ".terraform.lock.hcl", "conan.lock", "gradle.lockfile"),
    "binary": _suffixes(
        "7z a apk bin bz2 class com dat db dll dmg dylib ear exe gz iso jar lib msi o obj parquet pkl pyd "
        "rar so sqlite sqlite3 tar tgz war wasm xz zip zst"
    ),
    "media": _suffixes(
        "aac avi avif bmp eot flac gif heic ico jpeg jpg m4a m4v mkv mov mp3 mp4 mpeg ogg otf pdf png psd "
        "svgz tif tiff ttf wav webm webp wmv woff woff2"
    ),
    "artifact": (
        "__pycache__/",
        ".coverage",
        ".DS_Store",
        ".eggs/",
        ".gradle/",
        ".hypothesis/",
        ".mypy_cache/",
        ".next/",
        ".nox/",
        ".nuxt/",
        ".pytest_cache/",
        ".ruff_cache/",
        ".terraform/",
        ".tox/",
        ".venv/",
        "*.class",
        "*.egg-info/",
        "*.o",
        "*.obj",
        "*.orig",
        "*.pyc",
        "*.pyo",
        "*.rej",
        "*.swp",
        "*.tsbuildinfo",
        "*.whl",
        "bower_components/",
        "node_modules/",
        "Thumbs.db",
    ),
    "output": ("*.lock", "*.log", "build/", "dist/", "out/", "target/"),
}
"""Each class, and the gitignore patterns of the files in it."""


# Where Claude Code, Codex, Cursor and Gemini CLI read the hooks of a project; Codex reads a whole folder.
_AGENT_SETTINGS = re.compile(
    r"(?s)(?:.*/)?(?:\.claude/settings(?:\.local)?\.json|\.codex(?:/.*)?|\.cursor/hooks\.json"
    r"|\.gemini/settings\.json)"
)


def is_agent_settings(path: RepoPath) -> bool:
    """Check whether a coding agent reads its hooks from a file of this name, ignoring case."""
    return b"." in path.raw and _AGENT_SETTINGS.fullmatch(path.folded) is not None


# detect-secrets, gitleaks, RuboCop and similar, PHPStan, Psalm, detekt, ktlint, Android lint, mypy-baseline,
# ruff, ESLint, Betterer, bandit; basedpyright's is found by its folder.
_SUPPRESSION_NAMES = (
    rb"\.secrets\.baseline|\.gitleaksignore|\.betterer\.results|eslint-suppressions\.json"
    rb"|\.[a-z_-]{1,40}_todo\.yml|phpstan-baseline\.(?:neon|php)|mypy-baseline\.txt|\.ruff-baseline.{0,200}"
    rb"|.{1,200}-baseline\.(?:json|xml|ya?ml)"
)
_SUPPRESSION_PATHS = rb"(?s:.*/)?(?:\.basedpyright/baseline\.json|config/(?:detekt|ktlint)/baseline\.xml)"


def is_suppression_file(path: RepoPath) -> bool:
    """Check whether a path is a suppression file by its name; files of patchgate are not."""
    if is_control_by_name(path) or path.raw.startswith(b".patchgate/"):
        return False
    # Compiled here: a commit does not need it.
    return bool(re.fullmatch(_SUPPRESSION_NAMES, path.name) or re.fullmatch(_SUPPRESSION_PATHS, path.raw))
