"""Builders of raw replies, and what a reading says of them."""

from __future__ import annotations

from patchgate.patches.patch_model import Fault
from patchgate.patches.reply_actions import read_reply
from patchgate.patches.reply_grammar import ParsedReply


def parameter(name: str, value: str) -> str:
    """Write one parameter, its value as it is."""
    return f'<param name="{name}">{value}</param>\n'


def cdata(text: str) -> str:
    """Put a text that holds no `]]>` into one CDATA section."""
    return f"<![CDATA[{text}]]>"


def block(action: str, *parameters: str) -> str:
    """Write one block."""
    return f"<function={action}>\n{''.join(parameters)}</function>\n"


def read(reply: str | bytes) -> ParsedReply:
    """Read a reply."""
    return read_reply(reply.encode("utf-8") if isinstance(reply, str) else reply)


def holds(reply: str | bytes) -> ParsedReply:
    """Read a reply that has to hold."""
    reading = read(reply)
    assert reading.faults == ()
    return reading


def faults(reply: str | bytes) -> list[Fault]:
    """Read a reply that must not hold: it proposes nothing, and each fault has a next step."""
    reading = read(reply)
    assert reading.faults
    assert reading.proposal is None
    assert all(fault.hint and fault.line and fault.message for fault in reading.faults)
    return list(reading.faults)


def rules(reply: str | bytes) -> list[str]:
    """Give the rules that a reply breaks, in the order of its lines."""
    return [fault.rule for fault in faults(reply)]


def only(reply: str | bytes, rule: str) -> Fault:
    """Give the one fault of a reply."""
    (fault,) = faults(reply)
    assert fault.rule == rule
    return fault
