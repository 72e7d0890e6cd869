"""A run as an in-toto statement with SLSA provenance: which files it made, of what, for which works.

Made of the ledger and the object database, not of what stands beside the files. Sources: in-toto Attestation
Framework, Statement v1 and DigestSet; SLSA Provenance v1.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Mapping

from patchgate import __version__
from patchgate.apply.attempt_records import AttemptRecord, records
from patchgate.approvals.signatures import public_key_of, sign_bytes
from patchgate.errors import UndecidedError
from patchgate.git.model import Entry
from patchgate.git.objects import Objects
from patchgate.git.path import RepoPath
from patchgate.git.repository import Repository
from patchgate.ledger.ledger import Ledger
from patchgate.report.json import json_line, plain_json
from patchgate.runs.cost import recorded_spends, total
from patchgate.runs.run_state import RunState
from patchgate.storage.record import Json

STATEMENT = "https://in-toto.io/Statement/v1"
PREDICATE = "https://slsa.dev/provenance/v1"
BUILD = "urn:patchgate:run:1"
PAYLOAD = "application/vnd.in-toto+json"
NAMESPACE = "patchgate-run"
"""What the signature of a statement is for: it is no approval."""
_BUILDER = "urn:patchgate"


def statement_of(repository: Repository, state: RunState) -> str:
    """Write the statement about the files that a run has landed, each as the run left it.

    Raises:
        UndecidedError: the run has made no file, or the ledger or an object cannot be read.
    """
    attempts = [
        each
        for each in records(Ledger(repository.common_dir), f'"{state.id}/')
        if each.applied and (each.run or "").startswith(f"{state.id}/")
    ]
    made = _made(attempts)
    if not made:
        raise UndecidedError(f"the run {state.id} has made no file", f"git patchgate run show {state.id}")
    with Objects(repository) as objects:
        subjects: list[Json] = [
            {"name": _name(path), "digest": {"sha256": hashlib.sha256(objects.read(entry.oid)).hexdigest()}}
            for path, (entry, _) in sorted(made.items())
        ]
    spends = recorded_spends(repository.common_dir, state.id)
    parameters: Mapping[str, Json] = {**state.plan.plain(), "run": state.id}
    bases = dict.fromkeys(each.base for each in attempts if each.base is not None)
    policies = dict.fromkeys(each.policy for each in attempts if each.policy is not None)
    dependencies: list[Json] = [{"name": "base", "digest": {"gitTree": base}} for base in bases]
    dependencies += [{"name": "policy", "digest": _digest(policy)} for policy in policies]
    predicate: Mapping[str, Json] = {
        "buildDefinition": {
            "buildType": BUILD,
            "externalParameters": parameters,
            "resolvedDependencies": dependencies,
        },
        "runDetails": {
            "builder": {"id": _BUILDER, "version": {"patchgate": __version__}},
            "metadata": {"invocationId": state.id, "startedOn": state.began, "finishedOn": state.last},
            "byproducts": [
                {
                    "name": each.attempt,
                    "digest": {"sha256": each.patch_sha256},
                    "annotations": {"work": each.run, "at": each.at},
                }
                for each in attempts
            ],
        },
        # Fields of our own have the name of their maker in front (SLSA, “Extension fields”).
        "patchgate_cost": total(spends),
        "patchgate_models": sorted({each.usage.model for each in spends if each.usage.model is not None}),
    }
    statement = {"_type": STATEMENT, "subject": subjects, "predicateType": PREDICATE}
    return json_line({**statement, "predicate": predicate})


def signed(repository: Repository, statement: str, agent: str | None) -> str:
    """Put a statement in an envelope with a signature of `user.signingKey`, as approvals are signed.

    The signature is that of OpenSSH, in its armoured form. Source: DSSE (Dead Simple Signing Envelope), v1.

    Args:
        repository: whose config names the key.
        statement: what `statement_of` returned.
        agent: the socket of ssh-agent, if there is one.

    Raises:
        UsageError: no key is configured, or its file does not exist.
        UndecidedError: ssh-keygen is missing, or could not sign.
    """
    kind, payload = PAYLOAD.encode("ascii"), statement.encode("ascii")
    signed_bytes = b"DSSEv1 %d %s %d %s" % (len(kind), kind, len(payload), payload)
    signature = sign_bytes(repository, signed_bytes, NAMESPACE, agent)
    digest = hashlib.sha256(public_key_of(signature)).digest()
    fingerprint = base64.b64encode(digest).decode("ascii").rstrip("=")
    sig = base64.b64encode(signature.encode("ascii", "replace")).decode("ascii")
    return json_line(
        {
            "payload": base64.b64encode(payload).decode("ascii"),
            "payloadType": PAYLOAD,
            "signatures": [{"keyid": f"SHA256:{fingerprint}", "sig": sig}],
        }
    )


def _made(attempts: Iterable[AttemptRecord]) -> dict[RepoPath, tuple[Entry, AttemptRecord]]:
    """Return the files that are left of what attempts made, oldest first."""
    found: dict[RepoPath, tuple[Entry, AttemptRecord]] = {}
    for each in attempts:
        for file in each.files:
            found.pop(file.path, None)
            if file.new is not None and file.new.is_file:
                found[file.path] = (file.new, each)
    return found


def _name(path: RepoPath) -> str:
    return str(plain_json(path.quoted))


def _digest(text: str) -> Mapping[str, Json]:
    algorithm, colon, value = text.partition(":")
    return {algorithm: value} if colon else {"sha256": text}
