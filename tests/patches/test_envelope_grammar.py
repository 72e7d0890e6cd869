"""The envelope as its reference implementation publishes it: `apply_patch` of openai/codex, its scenarios.

The cases are restated with our own files. Where we differ, the reference writes over a file or leaves half of
a change behind: `test_what_the_reference_overwrites_or_guesses_is_refused` lists these.
"""

from __future__ import annotations

import pytest

from tests.patches.format_world import read

FILES = {
    "a.txt": b"one\ntwo\nthree\n",
    "b.txt": b"red\nblue\n",
    "deep/c.txt": b"c\n",
    "open.txt": b"no newline",
    "twice.py": b"class A:\n    def f():\n        pass\n\n\nclass B:\n    def f():\n        pass\n",
}


def envelope(*lines: str) -> bytes:
    return "".join(f"{line}\n" for line in ("*** Begin Patch", *lines, "*** End Patch")).encode()


def after(**changed: bytes | None) -> dict[str, bytes]:
    files = {name.replace("__", "/").replace("_", "."): text for name, text in changed.items()}
    return {name: text for name, text in {**FILES, **files}.items() if text is not None}


@pytest.mark.parametrize(
    ("lines", "wanted"),
    [
        (["*** Add File: new.md", "+# New"], after(new_md=b"# New\n")),
        (
            [
                "*** Add File: x/y.txt",
                "+y",
                "*** Delete File: b.txt",
                "*** Update File: a.txt",
                "@@",
                "-two",
                "+2",
            ],
            after(x__y_txt=b"y\n", b_txt=None, a_txt=b"one\n2\nthree\n"),
        ),
        (
            ["*** Update File: a.txt", "@@", "-one", "+1", "@@", "-three", "+3"],
            after(a_txt=b"1\ntwo\n3\n"),
        ),
        (
            ["*** Update File: deep/c.txt", "*** Move to: other/d.txt", "@@", "-c", "+d"],
            after(deep__c_txt=None, other__d_txt=b"d\n"),
        ),
        (["*** Update File: open.txt", "@@", "-no newline", "+a newline"], after(open_txt=b"a newline\n")),
        (["*** Update File: b.txt", "@@", "+green", "+grey"], after(b_txt=b"red\nblue\ngreen\ngrey\n")),
        (["  *** Update File: b.txt", "@@", "-red", "+pink"], after(b_txt=b"pink\nblue\n")),
        (["*** Update File: b.txt", "@@", "-red", "+röd ✓"], after(b_txt="röd ✓\nblue\n".encode())),
        (["*** Delete File: b.txt"], after(b_txt=None)),
        (["*** Update File: a.txt", "@@", " one", "-two", " three"], after(a_txt=b"one\nthree\n")),
        (
            ["*** Update File: b.txt", "@@", " red", "-blue", "+navy", "*** End of File"],
            after(b_txt=b"red\nnavy\n"),
        ),
        (
            ["*** Update File: a.txt", " one", "+one and a half"],
            after(a_txt=b"one\none and a half\ntwo\nthree\n"),
        ),
        (
            ["*** Update File: b.txt", "@@", "+green", "*** Add File: n.txt", "+n"],
            after(b_txt=b"red\nblue\ngreen\n", n_txt=b"n\n"),
        ),
        (
            [
                "*** Update File: twice.py",
                "@@ class B:",
                "     def f():",
                "-        pass",
                "+        go()",
            ],
            after(twice_py=FILES["twice.py"][:-13] + b"        go()\n"),
        ),
        (["*** Update File: b.txt", "@@", "-blue", "", "+navy"], ["hunk-mismatch"]),
        (["*** Update File: b.txt", "@@", "-blue", "+navy", ""], after(b_txt=b"red\nnavy\n")),
        ([], ["missing-hunk"]),
        (["*** Update File: b.txt", "@@", "-green", "+grey"], ["hunk-mismatch"]),
        (["*** Delete File: none.txt"], ["target-missing"]),
        (["*** Update File: b.txt"], ["missing-hunk"]),
        (["*** Update File: none.txt", "@@", "-a", "+b"], ["target-missing"]),
        (["*** Frob File: b.txt"], ["input-invalid"]),
        (["*** Update File: b.txt", "@@", "-red", "+pink", "@@"], ["missing-hunk"]),
        (["*** Update File: b.txt", "@@", "*** End of File"], ["missing-hunk"]),
        (["*** Update File: b.txt", "@@", "bad"], ["input-invalid"]),
        (["*** Update File: b.txt", "@@ nowhere", "-red", "+pink"], ["hunk-mismatch"]),
    ],
)
def test_the_published_cases(lines: list[str], wanted: dict[str, bytes] | list[str]) -> None:
    assert read(envelope(*lines), "envelope", FILES) == wanted


@pytest.mark.parametrize(
    "raw",
    [
        b" *** Begin Patch\n*** Update File: b.txt\n@@\n-red\n+pink\n*** End Patch \n",
        b"*** Begin Patch \n*** Update File: b.txt\n@@\n-red\n+pink\n *** End Patch\n",
        b"<<'EOF'\n*** Begin Patch\n*** Update File: b.txt\n@@\n-red\n+pink\n*** End Patch\nEOF\n",
        b"*** Begin Patch\n*** Update File: /home/someone/repository/b.txt\n@@\n-red\n+pink\n*** End Patch",
    ],
    ids=["padded begin", "padded end", "heredoc", "absolute name"],
)
def test_markers_may_be_padded_and_names_absolute(raw: bytes) -> None:
    assert read(raw, "envelope", FILES) == after(b_txt=b"pink\nblue\n")


@pytest.mark.parametrize("raw", [b"bad", b"*** Add File: x\n+x\n*** End Patch\n"])
def test_without_its_beginning_it_is_no_envelope(raw: bytes) -> None:
    assert read(raw, "envelope", FILES) == ["input-invalid"]


WHOLE = envelope("*** Add File: x.txt", "+x", "*** Update File: b.txt", "@@", " red", "-blue", "+navy")


@pytest.mark.parametrize("end", range(16, len(WHOLE) - 1))
def test_what_was_cut_anywhere_is_refused(end: int) -> None:
    """The reference has a streaming mode, whose results must not be applied either."""
    assert read(WHOLE[:end], "envelope", FILES) == ["patch-truncated"]


@pytest.mark.parametrize(
    ("lines", "rule"),
    [
        (["*** Add File: b.txt", "+other"], "already-exists"),
        (["*** Update File: deep/c.txt", "*** Move to: b.txt", "@@", "-c", "+d"], "already-exists"),
        (["*** Add File: x.txt", "+x", "*** Update File: none.txt", "@@", "-a", "+b"], "target-missing"),
        (["*** Update File: b.txt", "@@", "- red", "+pink"], "hunk-mismatch"),
        (["*** Update File: twice.py", "@@", "-        pass", "+        go()"], "hunk-ambiguous"),
        (["*** Update File: b.txt", "@@ red", "+pink"], "hunk-mismatch"),
        (
            ["*** Update File: twice.py", "@@ def f():", "-        pass", "+        go()"],
            "hunk-ambiguous",
        ),
    ],
    ids=["add", "move", "partial", "white space", "first of two", "added below an anchor", "anchor twice"],
)
def test_what_the_reference_overwrites_or_guesses_is_refused(lines: list[str], rule: str) -> None:
    assert read(envelope(*lines), "envelope", FILES) == [rule]
