"""Paths in JSON documents: text as it is, and anything else quoted, with its bytes beside."""

from __future__ import annotations

from base64 import b64decode, b64encode
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator

from patchgate.git.path import RepoPath
from patchgate.intents.document import intent_schema, intents_schema
from patchgate.report.json import path_list, path_member
from patchgate.report.schema import json_schema as report_schema
from patchgate.verify.verification_json import json_schema as verification_schema
from tests.verify.verify_world import Workshop

EXACT = ["ü", 'a "quoted" name', "back\\slash", "[id].tsx", "a b", '"']
NOT_EXACT = {
    b"tab\there": '"tab\\there"',
    b"lone\xff": '"lone\\377"',
    b"c1\xc2\x85": '"c1\\302\\205"',
    "bidi\u202e".encode(): '"bidi\\342\\200\\256"',
}


def base64(raw: bytes) -> str:
    return b64encode(raw).decode()


def test_a_path_is_text_where_that_says_all_of_it() -> None:
    for text in EXACT:
        assert path_member("path", RepoPath(text.encode())) == {"path": text}
    for raw, quoted in NOT_EXACT.items():
        assert path_member("path", RepoPath(raw)) == {"path": quoted, "path_b64": base64(raw)}
    assert path_member("path", None) == {"path": None}


def test_a_list_has_the_bytes_of_those_that_need_them_beside() -> None:
    plain = [RepoPath(text.encode()) for text in EXACT]
    assert path_list("files", plain) == {"files": EXACT}
    mixed = path_list("files", [plain[0], RepoPath(b"lone\xff")])
    assert mixed == {"files": ["ü", '"lone\\377"'], "files_b64": [None, base64(b"lone\xff")]}


def bytes_of(document: dict[str, Any], key: str) -> list[bytes]:
    """Read a list of paths back as a program does that wants their bytes."""
    texts = document[key]
    encoded = document.get(f"{key}_b64", [None] * len(texts))
    return [
        b64decode(raw) if raw is not None else text.encode() for text, raw in zip(texts, encoded, strict=True)
    ]


def test_every_document_gives_the_bytes_of_each_path(tmp_path: Path) -> None:
    names = [*(text.encode() for text in EXACT), *NOT_EXACT]
    shop = Workshop.open(tmp_path)
    words = [word for each in names[::2] for word in ("--allow", each.decode("utf-8", "surrogateescape"))]
    done = shop.cli("intent", "declare", "-m", "Odd names", "--format", "json", *words)
    Draft202012Validator(intent_schema()).validate(done.report)
    assert bytes_of(done.report["intent"], "allowed") == names[::2]
    for each in names:
        shop.write(each, "1\n")
    refused = shop.cli("intent", "declare", "-m", "Odd names", "--format", "json", *words)
    (conflict,) = refused.report["conflicts"]
    assert bytes_of(conflict, "entries") == names[::2]
    shown = shop.cli("intent", "show", "--format", "json")
    Draft202012Validator(intents_schema()).validate(shown.report)
    (intent,) = shown.report["intents"]
    assert bytes_of(intent, "allowed") == names[::2]
    assert intent["control_files"] == ["patchgate.toml", ".patchgate/"]
    assert intent["forbidden"] == intent["control_files"]

    shop.stage()
    told = shop.verify()
    Draft202012Validator(verification_schema()).validate(told)
    assert bytes_of(told["scope"], "unexpected_files") == sorted(names[1::2])
    report = shop.check()
    Draft202012Validator(report_schema()).validate(report.report)
    files = report.change["files"]
    assert [
        b64decode(each["path_b64"]) if "path_b64" in each else each["path"].encode() for each in files
    ] == (sorted(names))
    log = shop.cli("verify", "--format", "sarif", "-q").report["runs"][0]["properties"]
    assert bytes_of(log, "unexpected_files") == sorted(names[1::2])


def test_intent_show_names_the_control_files_beside_what_is_forbidden(tmp_path: Path) -> None:
    shop = Workshop.open(tmp_path)
    shop.commit({"pyproject.toml": "[tool.other]\n", ".pre-commit-config.yaml": "repos: []\n"})
    shop.declare("a.py", more=("--forbid", "docs/"))
    told = shop.cli("intent", "show").out.splitlines()
    assert [line.strip() for line in told if "forbidden:" in line] == [
        "forbidden: docs/",
        "forbidden: patchgate.toml (a control file)",
        "forbidden: .patchgate/ (control files, all except baselines/)",
    ]
    shop.git("mv", "patchgate.toml", "aside.toml")
    shop.commit({"pyproject.toml": "[tool.patchgate.policy]\nmax_file_bytes = 1000\n"})
    (intent,) = shop.cli("intent", "list", "--format", "json").report["intents"]
    assert intent["forbidden"] == ["docs/", "patchgate.toml", ".patchgate/", "pyproject.toml"]
