"""The path rules: names that no tree of ours may gain. All are invariants."""

from __future__ import annotations

from patchgate.report.rules.rule import Level, Rule, Stage


def _path(name: str, what: str, why: str, example: str, fix: str) -> Rule:
    return Rule(name, Stage.POLICY, "paths", Level.ERROR, what, why, example, fix, invariant=True)


_OUTSIDE = "A tool that joins the name to a folder would write outside the repository."

PATH_RULES = (
    _path(
        "path-empty",
        "A path, or a component between two slashes, is empty.",
        "Tools normalise such names in different ways, so two of them would speak of different files.",
        "docs//page.md",
        "Write the path with exactly one slash between its components, or leave the file out.",
    ),
    _path(
        "path-absolute",
        "A path begins with a slash.",
        _OUTSIDE,
        "/etc/passwd",
        "Name the file relative to the repository's root, or leave it out.",
    ),
    _path(
        "path-drive-letter",
        "A path begins with a drive letter.",
        "On Windows it is an absolute path, or one on another drive.",
        "C:/Windows/system.ini",
        "Name the file relative to the repository's root, without a drive, or leave it out.",
    ),
    _path(
        "path-traversal",
        "A component of a path is `.` or `..`.",
        _OUTSIDE,
        "src/../../secret",
        "Write the path without `.` and `..`, or leave the file out.",
    ),
    _path(
        "path-git-dir",
        "A component is `.git`, or a name that some file system takes for it.",
        "A file in `.git` is configuration or a hook: it runs code (CVE-2014-9390, CVE-2019-1352).",
        ".GIT/hooks/post-checkout, git~1/config",
        "Rename the file, or leave it out; no component may be an alias of `.git` on any system.",
    ),
    _path(
        "path-control",
        "A path holds a control byte, such as a line feed or an escape.",
        "Lists of files are split at it, and terminals obey it.",
        '"docs/a\\nb.md"',
        "Rename the file without control characters, or leave it out.",
    ),
    _path(
        "path-symlink",
        "A path runs through something that is a symlink or a submodule.",
        "Writing it would follow the link, and land somewhere else.",
        "link/file where link points to /etc",
        "Change the file where it really lies, or leave it out; replace the link by a folder in a change "
        "of its own.",
    ),
    _path(
        "path-collision",
        "A path that the change introduces is the same as another on a file system that folds case or "
        "normalises Unicode, or a file and a folder share one name.",
        "One of the two would overwrite the other on macOS or Windows.",
        "README.md beside Readme.md",
        "Rename the new file so that it differs in more than case or accents' encoding, or leave it out.",
    ),
    _path(
        "path-colon",
        "A path in a patch or an edit holds a colon.",
        "On NTFS it names a hidden stream of another file.",
        "notes.txt:hidden",
        "Name the file without a colon, or leave it out.",
    ),
    _path(
        "path-backslash",
        "A path in a patch or an edit holds a backslash.",
        "On Windows it separates folders, so the path means another file there.",
        "src\\\\app.py",
        "Use forward slashes, or leave the file out.",
    ),
    _path(
        "path-too-long",
        "A component is longer than 255 bytes, or a path longer than 4,096.",
        "It cannot be checked out on common file systems.",
        "a component of 300 letters",
        "Shorten the name, or leave the file out.",
    ),
)
