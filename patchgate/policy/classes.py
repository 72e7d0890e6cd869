"""The classes of files that `deny_classes` and `deny_new_classes` name: data, compared without case.

A class says what kind of thing a file is by its name; `binary` is also what git's own rule finds in the
bytes, unless the name is one of `media`. Names that people also give to sources (`build/`, `out/`) are
only in `output`, which is for what is new.
"""

from __future__ import annotations

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
"""Each lock file's name (in lower case), and the manifests from which it is made."""


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
