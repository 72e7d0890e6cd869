"""Which profile judges a commit. Only its trailers decide, so that hook, push, CI and server agree.

commit-msg writes what the environment says into the trailer `Patchgate-Profile`; pre-commit has no message
yet, and goes by the environment itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from patchgate.policy.policy import Policy, Profile

TRAILER = "Patchgate-Profile"
VARIABLE = "PATCHGATE_PROFILE"
AGENT = "agent"
MARKERS: Mapping[str, str] = {
    "CLAUDECODE": "Claude Code",
    "CURSOR_AGENT": "Cursor",
    "CODEX_SANDBOX": "Codex",
    "CODEX_THREAD_ID": "Codex",
    "GEMINI_CLI": "Gemini CLI",
}
"""What coding agents set in the environment of the programs that they start."""

_PERSONS = frozenset({"commit", "person"})
_OWN = frozenset({"patchgate-intent", "patchgate-run"})


def find_agent_trailer(trailers: Iterable[str], policy: Policy | None) -> str | None:
    """Return the trailer by which a commit is an agent's; None if there is none.

    Args:
        trailers: those of its message, each `Key: value`.
        policy: that which judges the commit, whose `[profile] agent_trailers` count too.
    """
    literal = () if policy is None else policy.config.profile.agent_trailers
    wanted = {_key_and_value(each) for each in literal}
    for trailer in trailers:
        key, value = _key_and_value(trailer)
        if (
            (key in _OWN and value)
            or (key, value.lower()) == (TRAILER.lower(), AGENT)
            or (key, value) in wanted
        ):
            return trailer
    return None


def find_agent_variable(environ: Mapping[str, str], policy: Policy | None) -> str | None:
    """Return the variable by which an agent commits here; None if there is none.

    Args:
        environ: the environment of the hook.
        policy: that of the commit; its `[profile] detect` says whether the variables of known agents count.
    """
    if environ.get(VARIABLE, "").strip().lower() == AGENT:
        return f"{VARIABLE}={AGENT}"
    if policy is None or not policy.config.profile.detect:
        return None
    return next((name for name in MARKERS if environ.get(name)), None)


def unknown_profile(environ: Mapping[str, str]) -> str | None:
    """Say that the environment names a profile that there is not; None if it does not."""
    value = environ.get(VARIABLE, "").strip()
    if value.lower() in {"", AGENT, *_PERSONS}:
        return None
    return f"{VARIABLE} is not {AGENT}, so it was ignored"


def judged_profiles(profile: Profile, reason: str) -> tuple[Profile, ...]:
    """List the profiles whose refusals count: an author who says that an agent commits is not freed by it.

    Args:
        profile: that of the change.
        reason: why it is an agent's; empty where nobody but the caller said so.
    """
    return (profile, Profile.COMMIT) if reason else (profile,)


def _key_and_value(trailer: str) -> tuple[str, str]:
    """Split a trailer; git compares keys without case (git-interpret-trailers)."""
    key, _, value = trailer.partition(":")
    return key.strip().lower(), value.strip()
