"""The rules of what a repository accepts: paths, kinds of file, size, names, lines, and moves of refs.

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
        "A path is outside every folder in `allow_roots`.",
        "The policy allows changes only in those folders.",
        'allow_roots = ["src"] and a change to infra/main.tf',
        "Leave the path out of the change, or add its folder to `allow_roots`.",
    ),
    _policy(
        "deny-prefix",
        "A path is an entry of `deny_prefixes`, or is below one. Both sides of a rename or copy count.",
        "The policy protects that folder: nothing may be added, changed, deleted or renamed out of it.",
        'deny_prefixes = ["runs"] and a change to runs/x',
        "Leave that path unchanged, or remove the entry; `allow_delete` allows only its deletion.",
    ),
    _policy(
        "deny-pattern",
        "A path matches a pattern of `deny`. Both sides of a rename or copy count.",
        "The policy protects the files that match the pattern.",
        'deny = ["*.pem"] and a change to keys/server.pem',
        "Leave that path unchanged, or remove the entry; `allow_delete` allows only its deletion.",
    ),
    _policy(
        "agent-settings",
        "A change under the agent profile touches a file from which a coding agent reads its hooks: "
        "`.claude/settings.json`, `.claude/settings.local.json`, `.codex/`, `.cursor/hooks.json` or "
        "`.gemini/settings.json`, in any folder; or a control file, where a policy was there before. In the "
        "hooks of an agent also one of those settings of the user.",
        "An agent could switch off the hooks that check it, or the rules.",
        "an agent that removes the hooks from .claude/settings.json",
        "Leave that file unchanged; a maintainer may change it.",
    ),
    _policy(
        "deny-suffix",
        "The name of an added or changed file ends in an entry of `deny_suffixes`, ignoring case.",
        "The policy allows no files of that kind in the repository.",
        'deny_suffixes = [".exe"] and an added tool.EXE',
        "Leave the file out of the change; deleting an existing one is allowed.",
    ),
    _policy(
        "deny-class",
        "An added or changed file belongs to a class in `deny_classes`: lock, binary, media, artifact or "
        "output; or an added one belongs to a class in `deny_new_classes`.",
        "Files of that class are generated, or cannot be reviewed.",
        "dist/app.whl (artifact)",
        "Leave the file out of the change, or remove the class from the list that denies it.",
    ),
    _policy(
        "lock-without-manifest",
        "A lock file changes, but none of the manifests in its folder does.",
        "Then the lock file was either upgraded or edited by hand.",
        "uv.lock without pyproject.toml",
        "Say in the message that locked versions were upgraded, or change the manifest too.",
        level=Level.NOTE,
    ),
    _policy(
        "max-files",
        "The change has more files than `max_files` allows.",
        "Large changes are not reviewed well. Exact renames, deletions, lock files and generated files do "
        "not count.",
        "max_files = 5 and six changed files",
        "Split the change; `details.split` in the JSON report proposes how.",
        gate="shape",
        level=Level.WARNING,
    ),
    _policy(
        "max-added-lines",
        "The change adds more lines than `max_added_lines` allows.",
        "Large changes are not reviewed well. Exact renames, deletions, lock files and generated files do "
        "not count.",
        "max_added_lines = 400 and 401 added lines",
        "Split the change; `details.split` in the JSON report proposes how.",
        gate="shape",
        level=Level.WARNING,
    ),
    _policy(
        "max-file-bytes",
        "An added or changed file is larger than `max_file_bytes`.",
        "Every clone downloads it, even after it is deleted.",
        "a video of 80 MB",
        "Leave the file out; store large files elsewhere (Git LFS, a release, object storage).",
        gate="shape",
        level=Level.WARNING,
    ),
    _policy(
        "mode-change",
        "The executable bit is set or cleared where `allow_modes` is false; a new executable file counts.",
        "An executable file is code that others will run.",
        "old mode 100644, new mode 100755",
        "Restore the mode (git update-index --chmod=-x PATH).",
        gate="shape",
    ),
    _policy(
        "symlink",
        "A symlink is added or changed where `allow_symlinks` forbids it, or a symlink points outside the "
        "repository, directly or through other symlinks.",
        "Tools that follow it read or write somewhere else.",
        "config -> /etc/passwd",
        "Use a regular file or a relative target inside the repository, or leave the symlink out.",
        gate="shape",
    ),
    _policy(
        "gitlink",
        "A submodule is added or moved to another commit where `allow_gitlinks` forbids it.",
        "It adds code of another repository, which is not checked.",
        "new file mode 160000",
        'Leave the submodule unchanged; allow_gitlinks = "bump" allows moving an existing one.',
        gate="shape",
    ),
    _governance(
        "policy-change-not-alone",
        "A control file (the policy, `.patchgate/`, the hooks' config) changes together with other files.",
        "A change may not loosen the rules that it is checked by, so control files have their own commit.",
        "patchgate.toml and src/app.py in one commit",
        "Commit the control files first, in their own commit, then the rest.",
    ),
    Rule(
        "command-bypasses-hooks",
        "A shell command of a coding agent would skip or replace the git hooks: --no-verify, core.hooksPath, "
        "a write below `.git`, a variable of patchgate, a forced push to a protected ref.",
        "The hooks check what the agent commits, so the agent may not switch them off.",
        "git commit --no-verify",
        "Run the command without that, and fix what the hooks refuse.",
        stage=Stage.POLICY,
        gate="commands",
        invariant=True,
    ),
    Rule(
        "owner-approval-missing",
        "A change to paths that have owners lacks their signed approvals, and lands on a protected branch.",
        "`[[owners]]` names who must approve such a change; `.patchgate/allowed_signers` is always owned by "
        "the keys in it.",
        'paths = ["@policy"], signers = ["alice@example.com"] and a change to patchgate.toml by anyone',
        "Ask an owner to approve it: git patchgate approve COMMIT --for refs/heads/main --reason ... --sign.",
        stage=Stage.POLICY,
        gate="owners",
        invariant=True,
    ),
    _governance(
        "policy-removed",
        "The change removes the policy.",
        "Without it the next change is checked by the defaults.",
        "git rm patchgate.toml",
        "Keep the file; an empty [policy] switches off every rule of the policy.",
    ),
    _governance(
        "policy-invalid",
        "The change adds a policy that cannot be read, or a second one.",
        "The next change could not be checked.",
        'max_files = "five"',
        "Fix the line that the message names.",
    ),
    _policy(
        "policy-repaired",
        "The policy before this change could not be read. The change fixes it, and was checked by its own "
        "policy.",
        "A broken policy must not block everybody.",
        "a syntax error in patchgate.toml, fixed",
        "Nothing to do.",
        gate="governance",
        level=Level.NOTE,
    ),
)

_OUTSIDE = "A tool that joins the name to a folder would write outside the repository."

PATH_RULES = (
    _path(
        "path-empty",
        "A path is empty, or has two slashes in a row.",
        "Tools normalise such paths in different ways and may open different files.",
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
        "A component of a path is `.git`, or a name that some file system treats as `.git`.",
        "A file in `.git` is configuration or a hook: it runs code (CVE-2014-9390, CVE-2019-1352).",
        ".GIT/hooks/post-checkout, git~1/config",
        "Rename the file, or leave it out; no component may be an alias of `.git` on any system.",
    ),
    _path(
        "path-control",
        "A path has a control character, such as a line feed or an escape.",
        "It breaks lists of files and can control a terminal.",
        '"docs/a\\nb.md"',
        "Rename the file without control characters, or leave it out.",
    ),
    _path(
        "path-symlink",
        "A folder in a path is really a symlink or a submodule.",
        "A write would follow the symlink and change a file somewhere else.",
        "link/file where link points to /etc",
        "Change the file at its real path, or leave it out; replace the symlink with a folder in a separate "
        "change.",
    ),
    _path(
        "path-collision",
        "A new path is the same as another on a file system that ignores case or normalises Unicode, or a "
        "file and a folder have the same name.",
        "On macOS or Windows one of the two would overwrite the other.",
        "README.md beside Readme.md",
        "Rename the new file so that more than case or the encoding of accents differs, or leave it out.",
    ),
    _path(
        "path-colon",
        "A path in a patch or an edit has a colon.",
        "On NTFS it names a hidden stream of another file.",
        "notes.txt:hidden",
        "Name the file without a colon, or leave it out.",
    ),
    _path(
        "path-backslash",
        "A path in a patch or an edit has a backslash.",
        "On Windows it separates folders, so the path means another file there.",
        "src\\\\app.py",
        "Use forward slashes, or leave the file out.",
    ),
    _path(
        "path-too-long",
        "A component is longer than 255 bytes, or a path longer than 4,096.",
        "Common file systems cannot check it out.",
        "a component of 300 letters",
        "Shorten the name, or leave the file out.",
    ),
)

CONTENT_RULES = (
    _content(
        "secret",
        "An added line has what looks like a credential: a private key or a token of a known format.",
        "It stays in the history, and everybody who can read the repository can use it, also after it is "
        "removed.",
        "-----BEGIN PRIVATE KEY-----",
        "Remove it, revoke it if it was ever real, and read it from the environment or a secret store.",
    ),
    _content(
        "conflict-marker",
        "An added line is a conflict marker.",
        "The conflict is not resolved: both sides are in the file.",
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
        "Others build on it. `protected_refs` lists such refs; without it the default branch is protected.",
        "git push origin --delete main",
        "Leave the deletion out of the push.",
    ),
    _ref(
        "ref-forced",
        "A push moves a protected ref to a commit that does not contain the old one, or moves a tag.",
        "Commits that others have would be lost.",
        "git push --force origin main, after a rebase of published commits",
        "Fetch, merge or rebase onto what is there, and push without force.",
    ),
)
