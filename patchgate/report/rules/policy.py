"""The rules of what a repository takes: where, what kind, how much, which names, lines and moves of refs.

Names that no tree may gain, and how a policy may change itself, are invariants. The rules about content can
be allowed on the line, with a reason.
"""

from __future__ import annotations

from functools import partial

from patchgate.report.rules.rule import Level, Rule, Stage

_policy = partial(Rule, stage=Stage.POLICY, gate="policy")
_governance = partial(Rule, stage=Stage.POLICY, gate="governance", invariant=True)
_path = partial(Rule, stage=Stage.POLICY, gate="paths", invariant=True)
_content = partial(Rule, stage=Stage.POLICY, gate="content", inline=True)
_ref = partial(Rule, stage=Stage.POLICY, gate="refs")

POLICY_RULES = (
    _policy(
        "outside-allow-roots",
        "A path lies outside every folder in `allow_roots`.",
        "The policy names the only places that changes may touch.",
        'allow_roots = ["src"] and a change to infra/main.tf',
        "Leave the path out of the change, or add its folder to `allow_roots`.",
    ),
    _policy(
        "deny-prefix",
        "A path is, or lies below, an entry of `deny_prefixes`; both sides of a change count.",
        "The policy protects that folder from being added to, changed, emptied, or renamed out of.",
        'deny_prefixes = ["runs"] and a change to runs/x',
        "Leave that path as it was, or take the entry out; `allow_delete` allows only its deletion.",
    ),
    _policy(
        "deny-pattern",
        "A path matches a pattern of `deny`; both sides of a change count.",
        "The policy protects the files that the pattern names.",
        'deny = ["*.pem"] and a change to keys/server.pem',
        "Leave that path as it was, or take the entry out; `allow_delete` allows only its deletion.",
    ),
    _policy(
        "deny-suffix",
        "An added or changed file ends in an entry of `deny_suffixes`, whatever its case.",
        "The policy keeps files of that kind out of the repository.",
        'deny_suffixes = [".exe"] and an added tool.EXE',
        "Leave the file out; removing one that is there is allowed.",
    ),
    _policy(
        "deny-class",
        "An added or changed file belongs to a class in `deny_classes`: lock, binary, media, artifact or "
        "output; or an added one to a class in `deny_new_classes`.",
        "Files of that class are made by a tool, or cannot be read in a review.",
        "dist/app.whl (artifact)",
        "Leave the file out of the change, or take the class out of the list that denies it.",
    ),
    _policy(
        "lock-without-manifest",
        "A lock file changes although none of the manifests beside it does.",
        "A lock file that changes alone is a plain upgrade, or was edited by hand.",
        "uv.lock without pyproject.toml",
        "Say in the message that the locked versions were upgraded, or change the manifest too.",
        level=Level.NOTE,
    ),
    _policy(
        "max-files",
        "The change touches more files than `max_files`.",
        "Large changes are not read. Exact renames, deletions, lock and generated files do not count.",
        "max_files = 5 and six changed files",
        "Split the change; `details.split` in the JSON report proposes how.",
        gate="shape",
        level=Level.WARNING,
    ),
    _policy(
        "max-added-lines",
        "The change adds more lines than `max_added_lines`.",
        "Large changes are not read. Exact renames, deletions, lock and generated files do not count.",
        "max_added_lines = 400 and 401 added lines",
        "Split the change; `details.split` in the JSON report proposes how.",
        gate="shape",
        level=Level.WARNING,
    ),
    _policy(
        "max-file-bytes",
        "An added or changed file is larger than `max_file_bytes`.",
        "Every clone carries it for ever.",
        "a video of 80 MB",
        "Leave the file out; keep large files elsewhere (Git LFS, a release, object storage).",
        gate="shape",
        level=Level.WARNING,
    ),
    _policy(
        "mode-change",
        "The executable bit is set or cleared, also on a new file, where `allow_modes` is false.",
        "An executable file is code that somebody will run.",
        "old mode 100644, new mode 100755",
        "Keep the mode as it was (git update-index --chmod=-x PATH).",
        gate="shape",
    ),
    _policy(
        "symlink",
        "A symlink is added or changed where `allow_symlinks` forbids it, or a symlink leads out of the "
        "repository, directly or through others.",
        "Tools that follow it read or write somewhere else.",
        "config -> /etc/passwd",
        "Use a regular file, or a relative target inside the repository, or leave the symlink out.",
        gate="shape",
    ),
    _policy(
        "gitlink",
        "A submodule's entry is added or changed where `allow_gitlinks` forbids it.",
        "It brings in another repository's code, which this gate has not seen.",
        "new file mode 160000",
        'Leave the submodule as it was; "bump" in the policy allows moving an existing one.',
        gate="shape",
    ),
    _governance(
        "policy-change-not-alone",
        "A control file (the policy, `.patchgate/`, the hooks' config) changes together with other files.",
        "No change judges itself: rules are loosened in a commit of their own, or not at all.",
        "patchgate.toml and src/app.py in one commit",
        "Commit the control files by themselves, the rest after it.",
    ),
    _governance(
        "policy-removed",
        "The change removes the policy.",
        "Without it the next change would be judged by the defaults.",
        "git rm patchgate.toml",
        "Keep the file; an empty [policy] switches every rule of it off.",
    ),
    _governance(
        "policy-invalid",
        "The change brings a policy that cannot be read, or a second one.",
        "The next change could not be judged.",
        'max_files = "five"',
        "Fix the line that the message names.",
    ),
    _policy(
        "policy-repaired",
        "The policy before this change could not be read; the change alone mends it, judged by its own.",
        "A broken policy must not lock everybody out.",
        "a syntax error in patchgate.toml, mended",
        "Nothing to do.",
        gate="governance",
        level=Level.NOTE,
    ),
)

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

CONTENT_RULES = (
    _content(
        "secret",
        "An added line holds what looks like a credential: a private key or a token of a known form.",
        "History keeps it for ever: whoever can read the repository has it, also after it is removed.",
        "-----BEGIN PRIVATE KEY-----",
        "Remove it, revoke it if it was ever real, and read it from the environment or a secret store.",
    ),
    _content(
        "conflict-marker",
        "An added line is a left-over conflict marker.",
        "The conflict was not resolved: both sides are in the file.",
        "<<<<<<< HEAD",
        "Resolve the conflict and remove the markers.",
    ),
    _content(
        "deny-content",
        "An added line matches an expression in `[content] deny`.",
        "The repository's policy forbids this content.",
        'deny = ["DO NOT COMMIT"]',
        "Remove the matching text, or the line.",
    ),
)

REF_RULES = (
    _ref(
        "ref-deleted",
        "A push deletes a protected ref.",
        "Others build on it. `protected_refs` names such refs; without it the default branch is one.",
        "git push origin --delete main",
        "Leave the deletion out of the push.",
    ),
    _ref(
        "ref-forced",
        "A push moves a protected ref to a commit that does not hold what the ref has, or moves a tag.",
        "What others have already would be lost there.",
        "git push --force origin main, after a rebase of published commits",
        "Fetch, merge or rebase onto what is there, and push without force.",
    ),
)
