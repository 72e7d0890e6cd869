"""The rules that a repository's policy sets: where, what kind, how much, how it may change itself."""

from __future__ import annotations

from patchgate.report.rules.rule import Level, Rule, Stage


def _rule(gate: str, name: str, level: Level, what: str, why: str, example: str, fix: str) -> Rule:
    return Rule(name, Stage.POLICY, gate, level, what, why, example, fix)


def _governance(name: str, what: str, why: str, example: str, fix: str) -> Rule:
    return Rule(name, Stage.POLICY, "governance", Level.ERROR, what, why, example, fix, invariant=True)


POLICY_RULES = (
    _rule(
        "policy",
        "outside-allow-roots",
        Level.ERROR,
        "A path lies outside every folder in `allow_roots`.",
        "The policy names the only places that changes may touch.",
        'allow_roots = ["src"] and a change to infra/main.tf',
        "Leave the path out of the change, or add its folder to `allow_roots`.",
    ),
    _rule(
        "policy",
        "deny-prefix",
        Level.ERROR,
        "A path is, or lies below, an entry of `deny_prefixes`; both sides of a change count.",
        "The policy protects that folder from being added to, changed, emptied, or renamed out of.",
        'deny_prefixes = ["runs"] and a change to runs/x',
        "Leave that path as it was, or take the entry out; `allow_delete` allows only its deletion.",
    ),
    _rule(
        "policy",
        "deny-pattern",
        Level.ERROR,
        "A path matches a pattern of `deny`; both sides of a change count.",
        "The policy protects the files that the pattern names.",
        'deny = ["*.pem"] and a change to keys/server.pem',
        "Leave that path as it was, or take the entry out; `allow_delete` allows only its deletion.",
    ),
    _rule(
        "policy",
        "deny-suffix",
        Level.ERROR,
        "An added or changed file ends in an entry of `deny_suffixes`, whatever its case.",
        "The policy keeps files of that kind out of the repository.",
        'deny_suffixes = [".exe"] and an added tool.EXE',
        "Leave the file out; removing one that is there is allowed.",
    ),
    _rule(
        "policy",
        "deny-class",
        Level.ERROR,
        "An added or changed file belongs to a class in `deny_classes`: lock, binary, media, artifact or "
        "output; or an added one to a class in `deny_new_classes`.",
        "Files of that class are made by a tool, or cannot be read in a review.",
        "dist/app.whl (artifact)",
        "Leave the file out of the change, or take the class out of the list that denies it.",
    ),
    _rule(
        "policy",
        "lock-without-manifest",
        Level.NOTE,
        "A lock file changes although none of the manifests beside it does.",
        "A lock file that changes alone is a plain upgrade, or was edited by hand.",
        "uv.lock without pyproject.toml",
        "Say in the message that the locked versions were upgraded, or change the manifest too.",
    ),
    _rule(
        "shape",
        "max-files",
        Level.WARNING,
        "The change touches more files than `max_files`.",
        "Large changes are not read. Exact renames, deletions, lock and generated files do not count.",
        "max_files = 5 and six changed files",
        "Split the change; `details.split` in the JSON report proposes how.",
    ),
    _rule(
        "shape",
        "max-added-lines",
        Level.WARNING,
        "The change adds more lines than `max_added_lines`.",
        "Large changes are not read. Exact renames, deletions, lock and generated files do not count.",
        "max_added_lines = 400 and 401 added lines",
        "Split the change; `details.split` in the JSON report proposes how.",
    ),
    _rule(
        "shape",
        "max-file-bytes",
        Level.WARNING,
        "An added or changed file is larger than `max_file_bytes`.",
        "Every clone carries it for ever.",
        "a video of 80 MB",
        "Leave the file out; keep large files elsewhere (Git LFS, a release, object storage).",
    ),
    _rule(
        "shape",
        "mode-change",
        Level.ERROR,
        "The executable bit is set or cleared, also on a new file, where `allow_modes` is false.",
        "An executable file is code that somebody will run.",
        "old mode 100644, new mode 100755",
        "Keep the mode as it was (git update-index --chmod=-x PATH).",
    ),
    _rule(
        "shape",
        "symlink",
        Level.ERROR,
        "A symlink is added or changed where `allow_symlinks` forbids it, or a symlink leads out of the "
        "repository, directly or through others.",
        "Tools that follow it read or write somewhere else.",
        "config -> /etc/passwd",
        "Use a regular file, or a relative target inside the repository, or leave the symlink out.",
    ),
    _rule(
        "shape",
        "gitlink",
        Level.ERROR,
        "A submodule's entry is added or changed where `allow_gitlinks` forbids it.",
        "It brings in another repository's code, which this gate has not seen.",
        "new file mode 160000",
        'Leave the submodule as it was; "bump" in the policy allows moving an existing one.',
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
    Rule(
        "policy-repaired",
        Stage.POLICY,
        "governance",
        Level.NOTE,
        "The policy before this change could not be read; the change alone mends it, judged by its own.",
        "A broken policy must not lock everybody out.",
        "a syntax error in patchgate.toml, mended",
        "Nothing to do.",
    ),
)
