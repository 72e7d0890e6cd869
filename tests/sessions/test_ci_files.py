"""action.yml and the templates: valid by the published schemas, and their commands do what the pages say.

The shell lines are taken out of the files and run in a clone, with the engine's variables. A `python` that
makes a virtual environment without a package index takes the place of the real one.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]

from tests.sessions.test_ci import BAD, GOOD, Host, host, laid_out
from tests.world import EXECUTABLE, Repo

pytestmark = pytest.mark.turns(3)

__all__ = ["host", "laid_out"]
ROOT = Path(__file__).parent.parent.parent
ACTION, GITLAB = ROOT / "action.yml", ROOT / "templates" / "gitlab-ci.yml"
PRE_RECEIVE = (ROOT / "templates" / "pre-receive.md").read_text(encoding="utf-8")
CI_PAGE = (ROOT / "docs" / "ci.md").read_text(encoding="utf-8")
# What `python -m venv FOLDER` and the pip in it leave behind; every other use fails.
PYTHON = f"""#!/bin/sh
case "$*" in
"-I -m venv "*)
    mkdir -p "$4/bin" && cp "$0" "$4/bin/python"
    ;;
"-I -m pip install "*)
    for last; do :; done
    echo "$last" >"${{0%/*}}/installed"
    env >"${{0%/*}}/environment"
    ;;
"-I -m patchgate "*)
    exec {sys.executable} "$@"
    ;;
*) exit 99 ;;
esac
"""


def workflow() -> str:
    found = re.search(r"<!-- workflow -->\n *```yaml\n(.*?)\n *```", CI_PAGE, re.DOTALL)
    assert found is not None
    return "\n".join(line.removeprefix("   ") for line in found[1].splitlines()) + "\n"


@pytest.mark.parametrize(
    ("schema", "file"),
    [
        ("vendor.github-actions", ACTION),
        ("vendor.gitlab-ci", GITLAB),
        ("vendor.github-workflows", None),
    ],
)
def test_each_file_for_an_engine_is_valid_by_its_published_schema(
    schema: str, file: Path | None, tmp_path: Path
) -> None:
    if file is None:
        file = tmp_path / "patchgate.yml"
        file.write_text(workflow())
    done = subprocess.run(
        [sys.executable, "-m", "check_jsonschema", "--builtin-schema", schema, str(file)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_action_that_is_used_is_pinned_by_its_commit() -> None:
    for text in (ACTION.read_text(encoding="utf-8"), CI_PAGE):
        used = re.findall(r"uses: (\S+)", text)
        assert used
        assert all(re.fullmatch(r"[\w-]+/[\w/-]+@[0-9a-f]{40}", each) for each in used)


def test_the_job_of_gitlab_installs_a_commit() -> None:
    job = yaml.safe_load(GITLAB.read_text(encoding="utf-8"))["patchgate"]
    assert re.search(r"@[0-9a-f]{40}$", job["variables"]["PATCHGATE"])


def test_a_step_of_the_action_puts_no_expression_into_its_script() -> None:
    for step in yaml.safe_load(ACTION.read_text(encoding="utf-8"))["runs"]["steps"]:
        assert "${{" not in step.get("run", "")


def test_python_imports_nothing_from_the_folder_that_is_checked_out() -> None:
    for text in (ACTION.read_text(encoding="utf-8"), GITLAB.read_text(encoding="utf-8")):
        assert re.findall(r"(?:python|PYTHON)\"? (\S+)", text).count("-I") == 3
        assert not re.search(r"(?:python|PYTHON)\"? -m", text)


def stub(folder: Path) -> Path:
    folder.mkdir()
    python = folder / "python"
    python.write_text(PYTHON)
    python.chmod(0o755)
    return python


def run(script: str, repo: Repo, variables: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["bash", "--noprofile", "--norc", "-e", "-o", "pipefail", "-c", script],
        cwd=repo.path,
        env=repo.env | dict(variables),
        capture_output=True,
        text=True,
        check=False,
    )


def run_action(host: Host, variables: Mapping[str, str], inputs: Mapping[str, str]) -> tuple[int, str]:
    """Run the steps of action.yml that have a script, as the runner does."""
    python = stub(host.ci.path.parent / "python")
    runner = host.ci.path.parent / "runner"
    known = {
        "${{ steps.python.outputs.python-path }}": str(python),
        "${{ github.event.pull_request.number }}": "1",
        "${{ inputs.sarif }}": inputs.get("sarif", ""),
        "${{ inputs.signers }}": inputs.get("signers", ""),
    }
    fixed = {"RUNNER_TEMP": str(runner), "GITHUB_ACTION_PATH": str(ROOT), **variables}
    said = ""
    for step in yaml.safe_load(ACTION.read_text(encoding="utf-8"))["runs"]["steps"]:
        if "run" not in step:
            continue
        condition = step.get("if", "true")
        if condition != "true":
            assert condition == "github.event_name == 'pull_request_target'"
            if variables["GITHUB_EVENT_NAME"] != "pull_request_target":
                continue
        own = {key: known[value] for key, value in step.get("env", {}).items()}
        done = run(step["run"], host.ci, fixed | own)
        said += done.stdout + done.stderr
        if done.returncode != 0:
            return done.returncode, said
    assert (runner / "patchgate" / "bin" / "installed").read_text().strip() == str(ROOT)
    return 0, said


def test_the_action_refuses_a_pull_request_in_the_workflow_of_its_base(host: Host) -> None:
    bad = host.push("feature", BAD)
    host.merge(bad)
    host.clone(host.main)
    summary = host.ci.path.parent / "summary.md"
    variables = host.pull(bad, host.main, GITHUB_EVENT_NAME="pull_request_target")
    code, said = run_action(
        host, variables | {"GITHUB_STEP_SUMMARY": str(summary)}, {"sarif": "patch gate.sarif"}
    )
    assert code == 1, said
    assert "::error title=deny-prefix" in said
    assert "deny-prefix" in summary.read_text()
    assert '"deny-prefix"' in (host.ci.path / "patch gate.sarif").read_text()


def test_the_action_imports_nothing_of_the_head_where_the_job_has_a_python_path(host: Host) -> None:
    bad = host.push("feature", BAD | {"src/sitecustomize.py": "import os\nos._exit(0)\n"})
    merge = host.merge(bad)
    host.clone(merge)
    code, said = run_action(host, host.pull(bad, merge) | {"PYTHONPATH": "src"}, {})
    assert (code, "deny-prefix" in said) == (1, True), said


HOSTILE = {
    "PYTHONPATH": "src",
    "PYTHONPYCACHEPREFIX": "cache",
    "PIP_CONSTRAINT": "constraints.txt",
    "PIP_CACHE_DIR": ".cache/pip",
    "PIP_CONFIG_FILE": "pip.conf",
    "PIP_INDEX_URL": "https://index.invalid/simple",
}


def kept(environment: Path) -> dict[str, str]:
    """Read which variables of Python and pip an installation had."""
    lines = [line.partition("=") for line in environment.read_text().splitlines()]
    names = ("PIP_", "PYTHON", "XDG_CONFIG", "HOME")
    return {name: value for name, _, value in lines if name.startswith(names) and name != "PYTHON"}


def test_pip_reads_no_variable_that_may_name_a_file_of_the_head(host: Host) -> None:
    after = host.land(GOOD)
    host.clone(after)
    places = {"HOME": str(host.ci.path), "XDG_CONFIG_HOME": str(host.ci.path / ".git")}
    places["XDG_CONFIG_DIRS"] = str(host.ci.path)
    runner = host.ci.path.parent / "runner"
    said_by = host.pushed("refs/heads/main", host.main, after) | HOSTILE | places
    code, said = run_action(host, said_by, {})
    assert code == 0, said
    wanted = {"PIP_INDEX_URL": HOSTILE["PIP_INDEX_URL"], "PIP_NO_CACHE_DIR": "1"}
    assert kept(runner / "patchgate/bin/environment") == wanted | {"HOME": str(runner)}
    job: dict[str, Any] = yaml.safe_load(GITLAB.read_text(encoding="utf-8"))["patchgate"]
    python = host.ci.path.parent / "python" / "python"
    variables = {"PATH": f"{python.parent}:{host.ci.env['PATH']}", "TMPDIR": str(host.ci.path.parent)}
    run("\n".join(job["script"][:4]), host.ci, variables | HOSTILE | places)
    (environment,) = host.ci.path.parent.glob("tmp.*/venv/bin/environment")
    assert kept(environment) == wanted | {"HOME": str(environment.parent.parent.parent)}


def test_a_summary_that_nobody_reads_is_a_warning(host: Host) -> None:
    after = host.land(GOOD)
    host.clone(after)
    pipe = host.ci.path.parent / "summary"
    os.mkfifo(pipe)
    answer = host.check(
        host.pushed("refs/heads/main", host.main, after) | {"GITHUB_STEP_SUMMARY": str(pipe)}, form=""
    )
    assert (answer.code, str(pipe) in answer.err) == (0, True)


def test_the_action_accepts_a_push_that_breaks_nothing(host: Host) -> None:
    after = host.land(GOOD)
    host.clone(after)
    code, said = run_action(host, host.pushed("refs/heads/main", host.main, after), {})
    assert (code, "accepted: 1 file" in said) == (0, True), said


@pytest.mark.parametrize(("files", "expected"), [(BAD, 1), (GOOD, 0)])
def test_the_job_of_gitlab_judges_a_merge_request_and_writes_its_report(
    host: Host, files: Mapping[str, str], expected: int
) -> None:
    head = host.push("feature", files)
    host.clone(head)
    job: dict[str, Any] = yaml.safe_load(GITLAB.read_text(encoding="utf-8"))["patchgate"]
    python = stub(host.ci.path.parent / "python")
    variables = {
        **job["variables"],
        "PATH": f"{python.parent}:{host.ci.env['PATH']}",
        "GITLAB_CI": "true",
        "CI": "true",
        "TMPDIR": str(host.ci.path.parent),
        "CI_PROJECT_DIR": str(host.ci.path),
        "CI_PIPELINE_SOURCE": "merge_request_event",
        "CI_COMMIT_SHA": head,
        "CI_DEFAULT_BRANCH": "main",
        "CI_PROJECT_ID": "1",
        "CI_MERGE_REQUEST_PROJECT_ID": "1",
        "CI_MERGE_REQUEST_TARGET_BRANCH_NAME": "main",
        "CI_MERGE_REQUEST_TARGET_BRANCH_PROTECTED": "true",
        "CI_MERGE_REQUEST_EVENT_TYPE": "detached",
        "CI_MERGE_REQUEST_DIFF_BASE_SHA": host.main,
    }
    done = run("\n".join(job["script"]), host.ci, variables)
    assert done.returncode == expected, done.stdout + done.stderr
    report = job["artifacts"]["reports"]["codequality"]
    assert ("deny-prefix" in (host.ci.path / report).read_text()) is (expected == 1)
    (installed,) = host.ci.path.parent.glob("tmp.*/venv/bin/installed")
    assert installed.read_text().strip() == job["variables"]["PATCHGATE"]


def test_approvals_that_cannot_be_fetched_end_no_job(host: Host) -> None:
    after = host.land(BAD)
    host.clone(after)
    host.ci.git("remote", "set-url", "origin", "/nowhere")
    code, said = run_action(host, host.pushed("refs/heads/main", host.main, after), {})
    assert (code, "::warning::signed approvals" in said) == (1, True), said
    assert "::error title=deny-prefix" in said


# --- pre-receive


def commands(name: str) -> str:
    found = re.search(rf"<!-- run {name} -->\n```sh\n(.*?)^```", PRE_RECEIVE, re.DOTALL | re.MULTILINE)
    assert found is not None
    return found[1].replace("/opt/patchgate/bin/git-patchgate", str(EXECUTABLE))


# As their own pages describe it: the hook of the host runs each file of a folder with what git gave it.
DISPATCHER = """#!/usr/bin/env bash
lines=$(cat)
for each in %s; do
    [ -x "$each" ] || continue
    printf '%%s\\n' "$lines" | "$each" || exit 1
done
"""


def lay_out(host: Host, name: str) -> None:
    """Lay out the repository as the host does, and run the commands of the page there."""
    hooks = host.server.path / "hooks"
    hooks.mkdir(exist_ok=True)
    folder = {"gitlab": "custom_hooks/pre-receive.d", "gitea": "hooks/pre-receive.d"}.get(name)
    if folder is not None:
        (hooks / "pre-receive").write_text(DISPATCHER % f"{folder}/*")
        (hooks / "pre-receive").chmod(0o755)
    if name == "gitea":
        (hooks / "pre-receive.d").mkdir()
    done = run(commands(name), host.server, {})
    assert done.returncode == 0, done.stderr
    if name == "gitlab":
        # What `gitaly hooks set` does with the archive.
        tar = ["tar", "-xf", "custom_hooks.tar"]
        subprocess.run(tar, cwd=host.server.path, check=True)


@pytest.mark.parametrize("name", ["plain", "gitlab", "gitea"])
def test_the_hook_of_a_host_refuses_what_the_policy_refuses(host: Host, name: str) -> None:
    lay_out(host, name)
    host.dev.commit(GOOD)
    assert host.dev.try_git("push", "-q", "origin", "main").returncode == 0
    host.dev.commit(BAD)
    refused = host.dev.try_git("push", "-q", "origin", "main")
    assert refused.returncode != 0
    assert b"deny-prefix" in refused.stderr
    assert b"pre-receive hook declined" in refused.stderr


def test_the_hook_reads_a_quarantine_that_only_its_objects_name(host: Host) -> None:
    lay_out(host, "gitlab")
    hook = host.server.path / "hooks" / "pre-receive"
    hook.write_text(hook.read_text().replace("lines=", "unset GIT_QUARANTINE_PATH\nlines="))
    host.dev.commit(GOOD)
    done = host.dev.try_git("push", "-q", "origin", "main")
    assert done.returncode == 0, done.stderr


def test_a_host_whose_hook_may_cut_the_list_of_refs_is_refused(host: Host) -> None:
    """The `echo` of dash ends at a backslash and a c, which a client may send in a name."""
    lay_out(host, "gitea")
    hook = host.server.path / "hooks" / "pre-receive"
    hook.write_text(hook.read_text().replace("bash", "sh"))
    host.dev.commit(GOOD)
    refused = host.dev.try_git("push", "-q", "origin", "main")
    assert (refused.returncode != 0, b"SCRIPT_TYPE" in refused.stderr) == (True, True)


def test_a_hook_whose_program_is_missing_refuses_the_push(host: Host) -> None:
    lay_out(host, "gitea")
    hook = host.server.path / "hooks" / "pre-receive.d" / "patchgate"
    hook.write_text(hook.read_text().replace(str(EXECUTABLE), "/nowhere/git-patchgate"))
    host.dev.commit(GOOD)
    assert host.dev.try_git("push", "-q", "origin", "main").returncode != 0
    assert os.access(hook, os.X_OK)
