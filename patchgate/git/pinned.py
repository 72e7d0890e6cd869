"""What no git child of ours takes from the user's config: one list for the fast path and all others."""

from __future__ import annotations

import os

PINNED = (
    "core.fsmonitor=false",
    "core.hooksPath=/dev/null",
    "core.attributesFile=/dev/null",
    "core.pager=cat",
    # These three hid an agent's trailer from rev-list (measured).
    "core.commentChar=#",
    "i18n.logOutputEncoding=UTF-8",
    "trailer.separators=:",
    # Above this size git calls a file binary in a diff; such files are read separately, in pieces.
    "core.bigFileThreshold=32m",
    # Git's own limit (2.43); a lower one would leave every change undecided.
    "core.maxTreeDepth=2048",
    # With a split index git writes a shared one into the repository even for an index elsewhere (measured).
    "core.splitIndex=false",
    "protocol.allow=never",
    "submodule.recurse=false",
    "gc.auto=0",
    "advice.graftFileDeprecated=false",
    # Hooks in the config (git 2.54) run besides core.hooksPath; plumbing triggers these two.
    "hook.post-index-change.enabled=false",
    "hook.reference-transaction.enabled=false",
)
FIXED = {
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_GRAFT_FILE": os.devnull,
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_NO_LAZY_FETCH": "1",
}
_CHOSEN = (
    # These would hide a change, or keep a file from being written.
    "core.fileMode=true",
    "core.trustCTime=true",
    "core.checkStat=default",
    "core.ignoreStat=false",
    "core.sparseCheckout=false",
    "index.sparse=false",
    "core.untrackedCache=false",
    # As many as there are processors: the first checkout took 0.7 s instead of 1.1 (5,000 files).
    "checkout.workers=0",
)
CHECKOUT_FLAGS = tuple(part for setting in _CHOSEN for part in ("-c", setting))
