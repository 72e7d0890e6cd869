"""A fixer without judgement: it reads the JSON of a refusal and what was sent, and mends in one step.

It knows three things of the JSON. `fix` replaces lines of the patch, or leaves them out. `details.split`
names parts, of which the first is sent. `details.found_at` says where a hunk stands. For the rules whose next
step is to leave a file, a line or a mode out, it does that by `path` and `line`. It asks for nothing else.
"""

from __future__ import annotations

import json
import re
from typing import Any

FILE_LEFT_OUT = frozenset(
    {
        *("path-empty", "path-absolute", "path-drive-letter", "path-traversal", "path-git-dir"),
        *("path-control", "path-symlink", "path-collision", "path-colon", "path-backslash", "path-too-long"),
        *("outside-allow-roots", "deny-prefix", "deny-pattern", "deny-suffix", "deny-class"),
        *("max-file-bytes", "symlink", "gitlink"),
    }
)
LINE_LEFT_OUT = frozenset({"conflict-marker", "deny-content"})
MODE_KEPT = frozenset({"mode-change"})
_HEADER = re.compile(rb"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@(.*)", re.DOTALL)

Edit = tuple[int, int, bytes | None]
"""Lines of the patch, first and last from 1, and what takes their place; None leaves them out."""


def mend(sent: bytes, report: dict[str, Any]) -> bytes:
    """Mend a patch by what its refusal says."""
    (change,) = report["changes"]
    findings = [finding for finding in change["findings"] if finding["level"] == "error"]
    lines = sent.split(b"\n")
    splits = [finding["details"]["split"] for finding in findings if finding["details"].get("split")]
    edits: list[Edit] = []
    for finding in findings:
        edits += _edits(lines, finding)
    if splits:
        kept = {path for section in _sections(lines) for path in section[2] if path in splits[0][0]}
        edits += [
            (first, last, None) for first, last, names in _sections(lines) if not kept.intersection(names)
        ]
    return _apply(lines, edits)


def mend_edits(sent: bytes, report: dict[str, Any]) -> bytes:
    """Mend structured edits: keep those of the first part."""
    document = json.loads(sent)
    for finding in report["changes"][0]["findings"]:
        if finding["details"].get("split"):
            part = finding["details"]["split"][0]
            document["patch"]["edits"] = [edit for edit in document["patch"]["edits"] if edit["path"] in part]
    return json.dumps(document).encode()


def _edits(lines: list[bytes], finding: dict[str, Any]) -> list[Edit]:
    fix, details = finding["fix"], finding["details"]
    if fix is not None:
        text = fix["replace_with"]
        return [(fix["patch_line"], fix["last_patch_line"], None if text is None else text.encode())]
    if details.get("split"):
        return []
    if finding["rule"] in FILE_LEFT_OUT:
        return [(first, last, None) for first, last, names in _sections(lines) if finding["path"] in names]
    if finding["rule"] in MODE_KEPT:
        return _kept_mode(lines, finding["path"])
    if finding["rule"] in LINE_LEFT_OUT:
        return _without_line(lines, finding["path"], finding["line"])
    if details.get("found_at") and len(details["found_at"]) == 1:
        return _moved(lines, details["patch_line"], details["found_at"][0])
    return []


def _sections(lines: list[bytes]) -> list[tuple[int, int, set[str]]]:
    """Find the sections: first and last line, and the names as the refusal writes them."""
    starts = [number for number, line in enumerate(lines, 1) if line.startswith(b"diff --git ")]
    found = []
    for start, stop in zip(starts, [*starts[1:], len(lines)], strict=True):
        last = stop - 1
        names: set[str] = set()
        for line in lines[start - 1 : last]:
            if line.startswith(b"@@"):
                break
            for prefix in (b"--- a/", b"+++ b/", b"rename from ", b"rename to "):
                if line.startswith(prefix):
                    names.add(line[len(prefix) :].rstrip(b"\t").decode())
            for prefix in (b'--- "a/', b'+++ "b/'):
                if line.startswith(prefix):
                    # JSON quotes a path only where it has to.
                    raw = line[len(prefix) : -1].decode("unicode_escape").encode("latin-1")
                    names.update({'"' + line[len(prefix) :].decode(), raw.decode("utf-8", "replace")})
        git_line = lines[start - 1][len(b"diff --git a/") :]
        names.add(git_line[: (len(git_line) - len(b" b/")) // 2].decode())
        found.append((start, last, names))
    return found


def _hunks(lines: list[bytes], first: int, last: int) -> list[tuple[int, int]]:
    starts = [number for number in range(first, last + 1) if lines[number - 1].startswith(b"@@ -")]
    return list(zip(starts, [*(start - 1 for start in starts[1:]), last], strict=True))


def _header(line: bytes) -> tuple[list[int], bytes]:
    match = _HEADER.match(line)
    assert match is not None
    return [int(number) if number else 1 for number in match.groups()[:4]], match[5]


def _written(numbers: list[int], rest: bytes) -> bytes:
    old_start, old, new_start, new = numbers
    return b"@@ -%d,%d +%d,%d @@%b" % (old_start, old, new_start, new, rest)


def _moved(lines: list[bytes], patch_line: int, found_at: int) -> list[Edit]:
    number = next(each for each in range(patch_line, 0, -1) if lines[each - 1].startswith(b"@@ -"))
    numbers, rest = _header(lines[number - 1])
    shift = found_at - numbers[0]
    return [(number, number, _written([found_at, numbers[1], numbers[2] + shift, numbers[3]], rest))]


def _without_line(lines: list[bytes], path: str, wanted: int) -> list[Edit]:
    """Leave one added line out, and count the hunk again."""
    edits: list[Edit] = []
    for first, last, names in _sections(lines):
        for start, end in _hunks(lines, first, last) if path in names else ():
            numbers, rest = _header(lines[start - 1])
            at = numbers[2]
            for number in range(start + 1, end + 1):
                if lines[number - 1].startswith(b"+") and at == wanted:
                    numbers[3] -= 1
                    edits += [(number, number, None), (start, start, _written(numbers, rest))]
                at += lines[number - 1].startswith((b"+", b" "))
    return edits


def _kept_mode(lines: list[bytes], path: str) -> list[Edit]:
    edits: list[Edit] = []
    for first, last, names in _sections(lines):
        for number in range(first, last + 1) if path in names else ():
            text = lines[number - 1]
            if text == b"new file mode 100755":
                edits.append((number, number, b"new file mode 100644"))
            if text.startswith((b"old mode ", b"new mode ")):
                edits.append((number, number, None))
    return edits


def _apply(lines: list[bytes], edits: list[Edit]) -> bytes:
    """Put every replacement in, then leave lines out, each with its LF."""
    texts = [line + b"\n" for line in lines[:-1]] + [lines[-1]]
    for first, last, text in edits:
        if text is not None:
            ended = b"\n" if texts[last - 1].endswith(b"\n") else b""
            texts[first - 1 : last] = [text + ended, *[b""] * (last - first)]
    for first, last, text in edits:
        if text is None:
            texts[first - 1 : last] = [b""] * (last - first + 1)
    return b"".join(texts)
