"""`agent install`, `uninstall` and `doctor`: the settings files of agents, of a project and of a user."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import pytest

from patchgate.agents.settings.clients import CLIENTS
from tests.agents.agent_world import governed
from tests.world import Repo

FILES = {name: client.file for name, client in CLIENTS.items()}
OWN = '{\n  // mine\n  "model": "opus"\n}\n'


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    return governed(tmp_path)


def home(repo: Repo) -> Path:
    return Path(repo.env["HOME"])


@pytest.mark.parametrize("name", CLIENTS)
@pytest.mark.parametrize("scope", ["--project", "--user"])
def test_a_new_file_is_made_and_goes_again_with_its_folder(repo: Repo, name: str, scope: str) -> None:
    base = repo.path if scope == "--project" else home(repo)
    place = base / FILES[name]
    assert repo.cli("agent", "install", name, scope).code == 0
    hooks = json.loads(place.read_text())["hooks"]
    assert set(hooks) == set(CLIENTS[name].matchers)
    assert f"agent hook --protocol {name} || exit 2" in place.read_text()
    assert repo.cli("agent", "uninstall", name, scope).code == 0
    assert not place.parent.exists()
    assert not (repo.path / ".git" / "patchgate" / "agents.json").exists()


@pytest.mark.parametrize("name", CLIENTS)
def test_a_file_of_the_user_comes_back_byte_for_byte(repo: Repo, name: str) -> None:
    place = repo.write(FILES[name], OWN)
    place.chmod(0o600)
    assert repo.cli("agent", "install", name).code == 0
    assert "// mine" in place.read_text()
    assert stat.S_IMODE(place.stat().st_mode) == 0o600
    assert repo.cli("agent", "uninstall").code == 0
    assert place.read_text() == OWN
    assert stat.S_IMODE(place.stat().st_mode) == 0o600


def test_what_was_changed_since_stays_when_the_hooks_go(repo: Repo) -> None:
    place = repo.write(FILES["claude"], OWN)
    repo.cli("agent", "install", "claude")
    place.write_text(place.read_text().replace("opus", "haiku"))
    assert repo.cli("agent", "uninstall", "claude").code == 0
    assert place.read_text() == OWN.replace("opus", "haiku")


def test_an_empty_list_of_the_user_stays_where_it_is_when_the_hooks_go(repo: Repo) -> None:
    own = '{\n  "hooks": {\n    "BeforeTool": [ /* mine */ ],\n    "other": []\n  },\n  "theme": "x"\n}\n'
    place = repo.write(FILES["gemini"], own)
    repo.cli("agent", "install", "gemini")
    place.write_text(place.read_text().replace('"x"', '"y"'))
    assert repo.cli("agent", "uninstall", "gemini").code == 0
    assert place.read_text().replace(" ", "") == own.replace('"x"', '"y"').replace(" ", "")


def test_the_record_has_no_text_of_the_settings(repo: Repo) -> None:
    repo.write(FILES["claude"], '{"env": {"KEY": "a secret value"}}')
    repo.cli("agent", "install", "claude")
    record = repo.path / ".git" / "patchgate" / "agents.json"
    assert "secret" not in record.read_text()
    record.write_text("{broken")
    assert repo.cli("agent", "uninstall", "claude").code == 0
    assert "patchgate" not in (repo.path / FILES["claude"]).read_text()


def test_installing_twice_changes_nothing_and_another_choice_replaces_the_first(repo: Repo) -> None:
    place = repo.path / FILES["claude"]
    repo.cli("agent", "install", "claude")
    once = place.read_bytes()
    assert "stays as it is" in repo.cli("agent", "install", "claude").out
    assert place.read_bytes() == once
    assert repo.cli("agent", "install", "claude", "--fail-open", "--seconds", "5").code == 0
    text = place.read_text()
    assert text.count("--fail-open") == len(CLIENTS["claude"].matchers)
    assert "exit 2" not in text
    assert repo.cli("agent", "install", "claude").code == 0
    assert place.read_bytes() == once


def test_a_dry_run_writes_nothing(repo: Repo) -> None:
    repo.write(FILES["claude"], OWN)
    before = {path: path.read_bytes() for path in repo.path.rglob("*") if path.is_file()}
    answer = repo.cli("agent", "install", "claude", "--dry-run")
    assert answer.code == 0
    assert '+        "matcher"' in answer.out.replace("  ", "  ") or '"matcher"' in answer.out
    assert {path: path.read_bytes() for path in repo.path.rglob("*") if path.is_file()} == before


@pytest.mark.parametrize("name", CLIENTS)
@pytest.mark.parametrize("text", ["", " \n\n"])
def test_an_empty_file_gets_the_hooks_and_is_empty_again_without_them(
    repo: Repo, name: str, text: str
) -> None:
    place = repo.write(FILES[name], text)
    assert f"{CLIENTS[name].title}: not installed" in repo.cli("agent", "doctor").out
    assert repo.cli("agent", "install", name).code == 0
    json.loads(place.read_text())
    assert repo.cli("agent", "uninstall", name).code == 0
    assert place.read_text() == text


@pytest.mark.parametrize("name", ["codex", "gemini"])
def test_what_is_to_do_next_is_said_where_the_hooks_of_a_project_were_installed(
    repo: Repo, name: str
) -> None:
    assert "next:" not in repo.cli("agent", "install", name, "--dry-run").out
    assert "next:" in repo.cli("agent", "install", name).out
    assert "next:" not in repo.cli("agent", "install", name).out


def test_codex_gets_its_hooks_where_it_has_others(repo: Repo) -> None:
    own = '# mine\n[[hooks.Stop]]\n[[hooks.Stop.hooks]]\ntype = "command"\ncommand = "make"\n'
    place = repo.write(".codex/config.toml", own)
    answer = repo.cli("agent", "install", "codex")
    assert "/hooks" in answer.out
    assert not (repo.path / ".codex/hooks.json").exists()
    assert place.read_text().startswith(own)
    assert repo.cli("agent", "uninstall", "codex").code == 0
    assert place.read_text() == own


def test_the_folder_that_an_agent_names_is_used(repo: Repo, tmp_path: Path) -> None:
    assert repo.cli("agent", "install", "claude", "--user", CLAUDE_CONFIG_DIR=str(tmp_path / "c")).code == 0
    assert (tmp_path / "c" / "settings.json").exists()


@pytest.mark.parametrize("what", ["file", "folder", "dangling"])
@pytest.mark.parametrize("command", ["install", "uninstall"])
def test_settings_behind_a_link_are_refused(repo: Repo, tmp_path: Path, what: str, command: str) -> None:
    target = tmp_path / "elsewhere"
    if what == "folder":
        target.mkdir()
        (target / "settings.json").write_text(OWN)
        repo.link(".claude", str(target))
    else:
        if what == "file":
            target.write_text(OWN)
        repo.link(".claude/settings.json", str(target))
    answer = repo.cli("agent", command, "claude")
    assert answer.code == 2
    assert "symbolic link" in answer.err
    if what == "file":
        assert target.read_text() == OWN


BROKEN = {
    "no JSON": b"{",
    "no UTF-8": b'{"a": "\xff"}',
    "a list": b"[]",
    "hooks of another form": b'{"hooks": []}',
    "larger than the limit": b'{"a": "' + b"x" * (1 << 20) + b'"}',
    "too deep": b"[" * 100_000,
    "NUL": b"{\0}",
}


@pytest.mark.parametrize("raw", BROKEN.values(), ids=BROKEN.keys())
def test_broken_settings_are_refused_and_stay(repo: Repo, raw: bytes) -> None:
    place = repo.write(FILES["claude"], raw)
    answer = repo.cli("agent", "install", "claude")
    assert answer.code == 2
    assert "help: " in answer.err
    assert place.read_bytes() == raw


def test_a_folder_in_place_of_the_settings_is_refused(repo: Repo) -> None:
    (repo.path / FILES["claude"]).mkdir(parents=True)
    assert repo.cli("agent", "install", "claude").code == 2


def test_broken_toml_of_codex_is_refused(repo: Repo) -> None:
    repo.write(".codex/config.toml", "a = ")
    assert repo.cli("agent", "install", "codex").code == 2


@pytest.mark.skipif(os.getuid() == 0, reason="root may write everywhere")
def test_a_folder_that_cannot_be_written_is_told(repo: Repo) -> None:
    (repo.path / ".claude").mkdir(mode=0o500)
    assert repo.cli("agent", "install", "claude").code == 2


@pytest.mark.parametrize("command", [("install", "claude"), ("uninstall", "claude")])
def test_an_agent_may_not_change_its_own_hooks(repo: Repo, command: tuple[str, str]) -> None:
    if command[0] == "uninstall":
        repo.cli("agent", "install", "claude")
    answer = repo.cli("agent", *command, CLAUDECODE="1")
    assert answer.code == 2
    assert "maintainers" in answer.err


@pytest.mark.parametrize("arguments", [("other",), (), ("claude", "--user", "--project")])
def test_wrong_arguments_of_install_are_refused(repo: Repo, arguments: tuple[str, ...]) -> None:
    assert repo.cli("agent", "install", *arguments).code == 2


def test_doctor_lets_each_installed_hook_answer(repo: Repo) -> None:
    assert "not installed" in repo.cli("agent", "doctor").out
    for name in CLIENTS:
        repo.cli("agent", "install", name)
    answer = repo.cli("agent", "doctor")
    assert answer.code == 0, answer.out
    assert answer.out.count("installed in") == len(CLIENTS)
    missing = repo.cli("agent", "doctor", PATH="/usr/bin:/bin")
    assert missing.code == 1
    assert missing.out.count("does not answer") == len(CLIENTS)


def test_doctor_says_the_same_as_json(repo: Repo) -> None:
    repo.cli("agent", "install", "claude")
    repo.cli("agent", "install", "cursor", "--user")
    repo.write(".gemini/settings.json", "{")
    answer = repo.cli("agent", "doctor", "--format", "json")
    found = {(each["agent"], each["scope"]): each for each in answer.report["agents"]}
    assert (answer.code, answer.report["works"], len(found)) == (1, False, 2 * len(CLIENTS))
    assert {key for key, each in found.items() if each["installed"]} == {
        ("claude", "project"),
        ("cursor", "user"),
    }
    assert found["claude", "project"]["file"] == str(repo.path / ".claude" / "settings.json")
    assert {key for key, each in found.items() if each["problems"]} == {("gemini", "project")}


@pytest.mark.parametrize(
    ("name", "file", "text"),
    [
        ("claude", ".claude/settings.json", '"disableAllHooks": true,\n  "hooks"'),
        ("claude", ".claude/settings.json", '"Other"'),
        ("codex", ".codex/config.toml", "[features]\nhooks = false\n"),
        ("gemini", ".gemini/settings.json", '"hooksConfig": {"enabled": false},\n  "hooks"'),
        (
            "gemini",
            ".gemini/settings.json",
            '"hooksConfig": {"disabled": ["git-patchgate agent hook --protocol gemini"]},\n  "hooks"',
        ),
    ],
)
def test_doctor_finds_hooks_that_are_switched_off(repo: Repo, name: str, file: str, text: str) -> None:
    repo.cli("agent", "install", name)
    place = repo.path / file
    if file.endswith(".toml"):
        repo.write(file, text)
    else:
        old = '"Stop"' if text == '"Other"' else '"hooks"'
        place.write_text(place.read_text().replace(old, text, 1))
    answer = repo.cli("agent", "doctor")
    assert answer.code == 1
    assert "problem: " in answer.out


def test_a_person_may_commit_the_settings_and_an_agent_may_not(repo: Repo) -> None:
    repo.cli("agent", "install", "claude")
    repo.stage()
    assert repo.check().code == 0
    refused = repo.check("--profile", "agent")
    assert refused.errors == ["agent-settings"]
