"""The grammar of an agent's reply: bytes in, blocks with their parameters out, and the line of each fault.

It knows no action and reads no value. It is closed, its tags are exactly these bytes, and time is linear. In
a `text` nothing is decoded: `<` and `&amp;` stay as they are. The value of CDATA sections is their contents
joined, byte for byte, so `]]>` is written as `]]]]><![CDATA[>`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import TypeAlias

from patchgate.git.quoting import printable
from patchgate.patches.patch_model import MAX_FAULTS, Fault
from patchgate.values import dataclass, field

Value: TypeAlias = "bool | int | float | str | Sequence[Value] | Mapping[str, Value] | None"


class ParameterKind(StrEnum):
    """What a parameter takes. A patch and edits are proposals: they go through the gate."""

    TEXT = "text"
    STRINGS = "strings"
    NUMBER = "number"
    PATCH = "patch"
    EDITS = "edits"

    @property
    def is_json(self) -> bool:
        """Whether the value is JSON."""
        return self in {ParameterKind.STRINGS, ParameterKind.NUMBER, ParameterKind.EDITS}

    @property
    def is_proposal(self) -> bool:
        """Whether the value proposes a change."""
        return self in {ParameterKind.PATCH, ParameterKind.EDITS}

    @property
    def words(self) -> str:
        """What to write, in words."""
        return _WORDS[self]


_WORDS = {
    ParameterKind.TEXT: "text",
    ParameterKind.STRINGS: "a JSON list of strings",
    ParameterKind.NUMBER: "a whole number",
    ParameterKind.PATCH: "a unified diff",
    ParameterKind.EDITS: "structured edits in JSON",
}


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of an action.

    `least` and `most` are the bounds of a number: a smaller one is refused, a larger one is capped with a
    note. `default` is the value of a parameter that is not given; None: it is absent.
    """

    name: str
    kind: ParameterKind
    about: str
    required: bool = False
    default: int | None = None
    least: int = 0
    most: int = 0


@dataclass(frozen=True, slots=True)
class ReplyAction:
    """One row of the table: what a reply can ask for, and a valid example.

    Of each group in `one_of` exactly one parameter must be given.
    """

    name: str
    about: str
    parameters: tuple[Parameter, ...]
    example: Mapping[str, str]
    one_of: tuple[tuple[str, ...], ...] = ()

    def find(self, name: str) -> Parameter | None:
        """Find the parameter of a name."""
        return next((each for each in self.parameters if each.name == name), None)

    def needs(self, parameter: Parameter) -> bool:
        """Return whether a parameter must not be empty: it is required, or one of a required group."""
        return parameter.required or any(parameter.name in group for group in self.one_of)


@dataclass(frozen=True, slots=True)
class WrittenParameter:
    """A parameter as it was written: `line` of its tag, counted from 1, and the bytes of its value.

    `value` is None if it could not be read. `value_line` is the line on which the value begins, None if it is
    in several pieces.
    """

    name: str
    line: int
    value: bytes | None = field(repr=False)
    value_line: int | None
    in_cdata: bool


@dataclass(frozen=True, slots=True)
class Block:
    """A `<function=NAME>` block as it was written; `name` is None if its tag cannot be read.

    `is_whole` is false if a parameter may have been lost: then none is reported as missing.
    """

    name: str | None
    line: int
    parameters: tuple[WrittenParameter, ...]
    is_whole: bool


@dataclass(frozen=True, slots=True)
class Proposal:
    """What a reply proposes: `kind` is `patch` or `edits`, `raw` its exact bytes."""

    kind: str
    raw: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class ParsedReply:
    """A reply as it was read; it is valid if there is no fault.

    `params` are the values that could be read, defaults included. `notes` say which values were changed. They
    and the faults are safe for a terminal.
    """

    action: str | None
    params: Mapping[str, Value]
    notes: tuple[str, ...] = ()
    faults: tuple[Fault, ...] = ()
    proposal: Proposal | None = None


MAX_REPLY_BYTES = 16 * 1024 * 1024
MAX_BLOCKS = 16
MAX_PARAMETERS = 64
_MAX_SHOWN = 60

# reply     = space block space
# block     = "<function=" NAME ">" space (parameter space)* "</function>"
# parameter = '<param name="' NAME '">' value "</param>"
# value     = text | space (cdata space)+
# cdata     = "<![CDATA[" any bytes but "]]>" "]]>"
# space     = (" " | TAB | CR | LF)*
# A `text` may contain anything but these tags.
_FUNCTION, _END_FUNCTION = b"<function=", b"</function>"
_PARAM, _END_PARAM = b'<param name="', b"</param>"
_CDATA, _END_CDATA = b"<![CDATA[", b"]]>"
_TAG = re.compile(b"|".join(map(re.escape, (_FUNCTION, _END_FUNCTION, _PARAM, _END_PARAM, _CDATA))))
_FUNCTION_TAG = re.compile(rb"<function=([^<>\n]{0,200})>")
_PARAM_TAG = re.compile(rb'<param name="([^"<>\n]{0,200})">')
_TEXT = re.compile(rb"[^ \t\r\n]")
_ONE_BLOCK = "send one whole block: <function=NAME>, its parameters, </function>"
_INTO_CDATA = "put text that contains tags into <![CDATA[…]]>"


def read_blocks(raw: bytes) -> tuple[tuple[Block, ...], tuple[Fault, ...]]:
    """Split a reply into its blocks, and report every fault of its form that is certain.

    Without a fault there is exactly one block.
    """
    fault = _find_unreadable(raw)
    if fault is not None:
        return (), (fault,)
    reader = _ReplyReader(raw)
    reader.read()
    return tuple(reader.blocks), tuple(reader.faults)


def print_block(name: str, parameters: Iterable[tuple[str, bytes]], *, plain: bool = False) -> bytes:
    """Write a block, its values in CDATA; with `plain`, values that need no CDATA as they are."""
    lines = [b"<function=%b>\n" % name.encode("utf-8")]
    for key, value in parameters:
        is_plain = plain and b"<" not in value and b"\n" not in value and value == value.strip()
        text = value if is_plain else _CDATA + value.replace(b"]]>", b"]]]]><![CDATA[>") + _END_CDATA
        lines.append(b'<param name="%b">%b</param>\n' % (key.encode("utf-8"), text))
    return b"".join(lines) + b"</function>\n"


def _find_unreadable(raw: bytes) -> Fault | None:
    if len(raw) > MAX_REPLY_BYTES:
        message = f"the reply has more than {MAX_REPLY_BYTES} bytes"
        return Fault("patch-too-large", 1, message, hint="split the change into several replies")
    if raw.startswith((b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")):
        message = "the reply begins with a byte-order mark"
        return Fault("encoding-unsupported", 1, message, hint="send plain UTF-8 without it")
    try:
        raw.decode("utf-8")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        return Fault("encoding-unsupported", line, "the reply is not UTF-8", hint="send it in UTF-8")
    return None


class _ReplyReader:
    """Reads the bytes in one pass; offsets only grow, so every line is counted once."""

    def __init__(self, raw: bytes) -> None:
        self._raw = raw
        self._counted, self._line = 0, 1
        self._reports_second = True
        self._is_cut = False
        self.blocks: list[Block] = []
        self.faults: list[Fault] = []

    def read(self) -> None:
        """Read every block, and the text around them."""
        position = 0
        while len(self.blocks) < MAX_BLOCKS and not self._is_done:
            start = self._raw.find(_FUNCTION, position)
            if start < 0:
                break
            self._report_around(position, start)
            if self.blocks:
                self._report_second(start)
            position = self._read_block(start)
        if not self.blocks:
            self.faults = [self._no_block()]
        elif not self._is_done and self._raw.find(_FUNCTION, position) < 0:
            self._report_around(position, len(self._raw))

    @property
    def _is_done(self) -> bool:
        return len(self.faults) >= MAX_FAULTS

    def _read_block(self, start: int) -> int:
        """Read the block at `start`; return the offset after it."""
        line = self._line_at(start)
        tag = _FUNCTION_TAG.match(self._raw, start)
        name = None if tag is None else tag[1].decode("utf-8")
        position = start + len(_FUNCTION) if tag is None else tag.end()
        if tag is None:
            self._report(
                "missing-function-tag", line, "the tag `<function=` is not closed by `>`", _ONE_BLOCK
            )
        parameters: list[WrittenParameter] = []
        # The text after a tag that cannot be read is its rest, and reported with it.
        is_reported, is_whole, is_open = tag is None, tag is not None, True
        while is_open:
            found = _TAG.search(self._raw, position)
            text = self._text(position, found.start() if found else len(self._raw))
            if text is not None:
                is_whole &= not text[1].startswith("<")
                if not is_reported:
                    self._report_between(*text)
                is_reported = True
            word = b"" if found is None else found[0]
            if found is None:
                position, is_whole, is_open = len(self._raw), False, False
                if tag is not None and not self._is_cut:
                    message = f"`<function={self._shown(name)}>` of line {line} is not closed"
                    self._report("missing-function-tag", line, message, "end the block with </function>")
            elif word == _END_FUNCTION:
                position, is_open = found.end(), False
            elif word == _FUNCTION:
                position, is_whole, is_open = found.start(), False, False
            elif word == _PARAM and (match := _PARAM_TAG.match(self._raw, found.start())):
                is_reported = False
                if len(parameters) < MAX_PARAMETERS:
                    parameter, position = self._read_parameter(match)
                    parameters.append(parameter)
                else:
                    self._report_too_many(found.start())
                    position, is_whole, is_open = len(self._raw), False, False
            else:
                is_whole &= word != _PARAM
                if not is_reported:
                    self._report_between(self._line_at(found.start()), self._excerpt(found.start()))
                is_reported = word != _END_PARAM
                position = found.end() if word != _CDATA else self._end_of_cdata(found.end(), None)
            if self._is_done:
                is_whole = is_open = False
        self.blocks.append(Block(name, line, tuple(parameters), is_whole=is_whole))
        return position

    def _read_parameter(self, tag: re.Match[bytes]) -> tuple[WrittenParameter, int]:
        """Read the parameter whose tag was matched; return it and the offset after it."""
        name, line = tag[1].decode("utf-8"), self._line_at(tag.start())
        start = position = tag.end()
        value_line = self._line_at(start)
        pieces: list[bytes] = []
        loose: tuple[int, str] | None = None
        n_pieces = 0
        while True:
            found = _TAG.search(self._raw, position)
            end = found.start() if found else len(self._raw)
            loose = loose or self._text(position, end)
            if found is None or found[0] in {_PARAM, _END_FUNCTION}:
                self._report_unclosed(name, line, found)
                return WrittenParameter(name, line, None, value_line=None, in_cdata=False), end
            position = found.end()
            if found[0] == _END_PARAM:
                break
            if found[0] == _FUNCTION:
                self._report_second(found.start())
                loose = loose or (self._line, self._excerpt(found.start()))
            else:
                n_pieces += 1
                if n_pieces == 1:
                    value_line = self._line_at(position)
                position = self._end_of_cdata(position, name)
                pieces.append(self._raw[found.end() : position - len(_END_CDATA)])
                if self._is_cut:
                    return WrittenParameter(name, line, None, value_line=None, in_cdata=True), position
        if not n_pieces:
            return WrittenParameter(
                name, line, self._raw[start:end], value_line=value_line, in_cdata=False
            ), position
        if loose is not None:
            hint = "put the whole value into CDATA; write ]]> inside it as ]]]]><![CDATA[>"
            message = f"there is text next to the CDATA section of `{self._shown(name)}`: {loose[1]}"
            self._report("extra-text", loose[0], message, hint)
            return WrittenParameter(name, line, None, value_line=None, in_cdata=True), position
        where = value_line if n_pieces == 1 else None
        return WrittenParameter(name, line, b"".join(pieces), value_line=where, in_cdata=True), position

    def _end_of_cdata(self, start: int, name: str | None) -> int:
        """Find the offset after the section whose content begins at `start`."""
        end = self._raw.find(_END_CDATA, start)
        if end >= 0:
            return end + len(_END_CDATA)
        self._is_cut = True
        whose = "" if name is None else f" of `{self._shown(name)}`"
        message = f"the CDATA section{whose} is not closed"
        self._report(
            "missing-function-tag", self._line_at(start), message, "end it with ]]>, then close the tags"
        )
        return len(self._raw)

    def _report(self, rule: str, line: int, message: str, hint: str) -> None:
        self.faults.append(Fault(rule, line, message, hint=hint))

    def _report_around(self, start: int, end: int) -> None:
        text = self._text(start, end)
        if text is not None:
            message = f"there is text outside the block: {text[1]}"
            self._report("extra-text", text[0], message, "send the block alone: no prose, no Markdown fence")

    def _report_between(self, line: int, excerpt: str) -> None:
        hint = "put it into a parameter, or leave it out"
        if excerpt.startswith(("<param", "<arg")):
            hint = 'write a parameter as <param name="NAME">value</param>'
        self._report("extra-text", line, f"this belongs to no parameter: {excerpt}", hint)

    def _report_second(self, start: int) -> None:
        line = self._line_at(start)
        if self._reports_second:
            hint = f"send one block; {_INTO_CDATA}"
            self._report("invalid-multi-block", line, "a second `<function=` tag begins here", hint)
        self._reports_second = False

    def _report_too_many(self, start: int) -> None:
        message = f"there are more than {MAX_PARAMETERS} parameters"
        self._report("extra-text", self._line_at(start), message, "send each parameter once")

    def _report_unclosed(self, name: str, line: int, found: re.Match[bytes] | None) -> None:
        message = f"the parameter `{self._shown(name)}` is not closed"
        hint = "end it with </param>, and the block with </function>"
        if found is None:
            self._is_cut = True
        else:
            before = self._line_at(found.start())
            message += f" before the `{found[0].decode('ascii')}` of line {before}"
            hint = f"end it with </param>; {_INTO_CDATA}"
        self._report("missing-function-tag", line, message, hint)

    def _no_block(self) -> Fault:
        if _TEXT.search(self._raw) is None:
            return Fault("missing-function-tag", 1, "the reply is empty", hint=_ONE_BLOCK)
        start = self._raw.find(b"<function")
        line = 1 if start < 0 else self._raw.count(b"\n", 0, start) + 1
        return Fault("missing-function-tag", line, "there is no `<function=NAME>` tag", hint=_ONE_BLOCK)

    def _line_at(self, offset: int) -> int:
        self._line += self._raw.count(b"\n", self._counted, offset)
        self._counted = offset
        return self._line

    def _text(self, start: int, end: int) -> tuple[int, str] | None:
        """Find the first text in a stretch: its line and an excerpt, safe for a terminal."""
        found = _TEXT.search(self._raw, start, end)
        return None if found is None else (self._line_at(found.start()), self._excerpt(found.start(), end))

    def _excerpt(self, start: int, end: int | None = None) -> str:
        text = self._raw[start : min(start + 4 * _MAX_SHOWN + 4, end or len(self._raw))]
        return printable(text.split(b"\n", 1)[0].rstrip(), _MAX_SHOWN)

    def _shown(self, name: str | None) -> str:
        return printable(name or "", _MAX_SHOWN)
