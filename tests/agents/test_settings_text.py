"""Settings are edited as text: everything else stays, and what was added goes again without a trace."""

from __future__ import annotations

import json
import tomllib
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from patchgate.agents.settings.clients import CLIENTS, MARK
from patchgate.agents.settings.json_text import JsonTextError, parse
from patchgate.agents.settings.settings_text import (
    SettingsError,
    add_to_json,
    add_to_toml,
    has_entries,
    new_settings,
    remove_from_json,
    remove_from_toml,
    without,
)
from tests.amount import often

COMMENTED = """// for all of us
{
    // which model
    "model": "opus", /* the best */
    "hooks": {
        // ours
        "Stop": [
            {"hooks": [{"type": "command", "command": "make lint"}]} // last
        ],
    },
    "permissions": {"deny": []} // end
}
"""
PLAIN = """{
  "model": "opus",
  "hooks": {
    "PreToolUse": [
      {
        "matcher": "Bash",
        "hooks": [
          {
            "type": "command",
            "command": "./check.sh"
          }
        ]
      }
    ]
  }
}
"""
TEXTS = {
    "empty object": "{}",
    "empty object on lines": "{\n}\n",
    "one line": '{"model": "opus"}\n',
    "nothing of hooks": '{\n  "model": "opus"\n}\n',
    "tabs": '{\n\t"model": "opus",\n\t"env": {\n\t\t"A": "b"\n\t}\n}\n',
    "crlf": '{\r\n  "model": "opus"\r\n}\r\n',
    "byte-order mark": '\ufeff{\n  "model": "opus"\n}\n',
    "no last newline": '{\n  "model": "opus"\n}',
    "trailing comma": '{\n  "model": "opus",\n}\n',
    "empty hooks": '{"hooks": {}}',
    "empty list": '{\n  "hooks": {\n    "Stop": []\n  }\n}\n',
    "hooks of others": PLAIN,
    "comments": COMMENTED,
    "letters of all kinds": '{\n  "name": "é\\u00e9 \\" // no comment"\n}\n',
}


def plain(text: str) -> Any:
    return parse(text).value


@pytest.mark.parametrize("name", CLIENTS)
@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS.keys())
def test_what_was_added_goes_again_byte_for_byte(name: str, text: str) -> None:
    client = CLIENTS[name]
    added, ranges = add_to_json(text, client, client.entries())
    assert has_entries(added)
    assert without(added, ranges) == text


@pytest.mark.parametrize("name", CLIENTS)
@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS.keys())
def test_adding_keeps_every_other_setting(name: str, text: str) -> None:
    client = CLIENTS[name]
    added, _ = add_to_json(text, client, client.entries())
    before, after = plain(text), plain(added)
    for event, entry in client.entries().items():
        assert after["hooks"][event][-1] == entry
        after["hooks"][event].pop()
        if event not in before.get("hooks", {}):
            assert after["hooks"].pop(event) == []
    for key in client.root or {}:
        if key not in before:
            del after[key]
    if "hooks" not in before:
        assert after.pop("hooks") == {}
    assert after == before


def test_every_comment_stays() -> None:
    added, _ = add_to_json(COMMENTED, CLIENTS["claude"], CLIENTS["claude"].entries())
    for comment in ("// for all of us", "// which model", "/* the best */", "// ours", "// last", "// end"):
        assert comment in added
        assert comment in remove_from_json(added)


@pytest.mark.parametrize("name", ["claude", "codex", "gemini"])
@pytest.mark.parametrize("kind", ["nothing of hooks", "tabs", "crlf", "hooks of others", "no last newline"])
def test_another_clone_without_the_record_removes_them_byte_for_byte_too(name: str, kind: str) -> None:
    client = CLIENTS[name]
    added, _ = add_to_json(TEXTS[kind], client, client.entries())
    assert remove_from_json(added) == TEXTS[kind]


def test_a_handler_beside_ours_stays_when_ours_is_removed() -> None:
    client = CLIENTS["claude"]
    made = json.loads(new_settings(client, client.entries()))
    made["hooks"]["Stop"][0]["hooks"].append({"type": "command", "command": "make"})
    left = json.loads(remove_from_json(json.dumps(made, indent=2)))
    assert left == {"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "make"}]}]}}


@pytest.mark.parametrize(
    "text",
    [
        *(
            "",
            "{",
            "[]",
            '"hooks"',
            '{"a": 1 "b": 2}',
            '{"a": 1, "a": 2}',
            "{'a': 1}",
            '{"hooks": []}',
            "{,}",
        ),
        *(
            '{"hooks": {"Stop": {}}}',
            '{"hooks": {"Stop": 1}}',
            "[" * 1000,
            '{"a": tru}',
            '{"a": "\n"}',
            "{} {}",
        ),
    ],
)
def test_settings_of_another_form_are_refused(text: str) -> None:
    with pytest.raises(SettingsError):
        add_to_json(text, CLIENTS["claude"], CLIENTS["claude"].entries())


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)
GROUP = st.fixed_dictionaries(
    {"hooks": st.lists(st.fixed_dictionaries({"type": st.just("command"), "command": st.text(max_size=6)}))}
)
OTHERS = st.dictionaries(st.sampled_from(["Stop", "PreToolUse", "Other"]), st.lists(GROUP, max_size=2))
SPACES = st.sampled_from([None, 1, 2, 4, "\t"])


@settings(max_examples=often(1000), deadline=None)
@given(st.dictionaries(st.text(max_size=5), JSON, max_size=4), st.none() | OTHERS, SPACES, st.booleans())
def test_any_settings_come_back(rest: dict[str, Any], hooks: Any, indent: Any, crlf: bool) -> None:
    rest.pop("hooks", None)
    made = rest if hooks is None else {**rest, "hooks": hooks}
    text = json.dumps(made, indent=indent)
    text = text.replace("\n", "\r\n") if crlf else text
    client = CLIENTS["claude"]
    added, ranges = add_to_json(text, client, client.entries())
    assert without(added, ranges) == text
    left = json.loads(remove_from_json(added))
    kept = {event: lists for event, lists in (hooks or {}).items() if lists or event not in client.matchers}
    assert {key: value for key, value in left.items() if key != "hooks"} == rest
    assert left.get("hooks", {}) == kept


@settings(max_examples=often(1000), deadline=None)
@given(JSON, SPACES)
def test_the_reader_reads_what_json_reads(value: Any, indent: Any) -> None:
    assert parse(json.dumps(value, indent=indent)).value == value


@settings(max_examples=often(2000), deadline=None)
@given(st.text(alphabet='{}[]",:\\ \n/*tru1ae', max_size=20))
def test_what_json_refuses_is_refused(text: str) -> None:
    try:
        found = parse(text).value
    except JsonTextError:
        return
    if "/" not in text and not any(each in text.replace(" ", "").replace("\n", "") for each in (",}", ",]")):
        assert json.loads(text) == found


CONFIG = '# mine\nmodel = "o"\n\n[[hooks.Stop]]\n[[hooks.Stop.hooks]]\ntype = "command"\ncommand = "make"\n'


@pytest.mark.parametrize("text", ["", "a = 1", "a = 1\n", CONFIG, CONFIG.replace("\n", "\r\n"), "\n\n"])
def test_toml_keeps_its_comments_and_comes_back(text: str) -> None:
    client = CLIENTS["codex"]
    added, ranges = add_to_toml(text, client.entries())
    assert added.startswith(text)
    hooks = tomllib.loads(added.replace("\r\n", "\n"))["hooks"]
    assert {event: entries[-1] for event, entries in hooks.items()} == dict(client.entries())
    assert has_entries(added, is_toml=True)
    assert without(added, ranges) == text
    if text.endswith("\n"):
        assert remove_from_toml(added) == text


@pytest.mark.parametrize("text", ["a = ", "hooks = 1\n", "hooks = {Stop = []}\n", '[hooks]\nStop = "x"\n'])
def test_toml_of_another_form_is_refused(text: str) -> None:
    with pytest.raises(SettingsError):
        add_to_toml(text, CLIENTS["codex"].entries())


def test_an_entry_outside_of_the_block_is_not_removed_silently() -> None:
    text = f'[[hooks.Stop]]\n[[hooks.Stop.hooks]]\ncommand = "{MARK}codex"\n'
    with pytest.raises(SettingsError):
        remove_from_toml(text)
