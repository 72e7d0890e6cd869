"""The statement about a run, read by the reference implementation of in-toto."""

from __future__ import annotations

import base64
import copy
import hashlib
import importlib
import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from patchgate.runs.attestation import NAMESPACE
from tests.runs.test_cost import made
from tests.runs.test_runs import World
from tests.signing import Key, needs_ssh_keygen

pytestmark = pytest.mark.turns(3)


def statement(world: World) -> dict[str, Any]:
    answer = world.repo.cli("run", "show", "--format", "in-toto")
    assert answer.code == 0, answer.err
    found: dict[str, Any] = json.loads(answer.out)
    return found


def test_a_statement_names_each_file_of_a_run_with_its_digest(tmp_path: Path) -> None:
    world = made(tmp_path)
    state = world.start("base", "left")
    found = statement(world)
    assert {each["name"]: each["digest"]["sha256"] for each in found["subject"]} == {
        name: hashlib.sha256((world.repo.path / name).read_bytes()).hexdigest()
        for name in ("src/base/code.txt", "src/left/code.txt")
    }
    details = found["predicate"]["runDetails"]
    assert details["metadata"]["invocationId"] == state.id
    assert {each["annotations"]["work"] for each in details["byproducts"]} == {
        f"{state.id}/{name}/implementation" for name in ("base", "left")
    }
    assert (found["predicate"]["patchgate_cost"], found["predicate"]["patchgate_models"]) == (0.5, ["m-1"])


def test_the_statement_is_of_what_landed_whatever_is_on_disk(tmp_path: Path) -> None:
    world = made(tmp_path)
    world.start("base")
    before = statement(world)
    (world.repo.path / "src/base/code.txt").write_text("edited\n")
    (world.repo.path / "src/base/code.txt.meta.json").unlink()
    assert statement(world) == before


def test_a_run_that_made_nothing_has_no_statement(tmp_path: Path) -> None:
    world = World.make(tmp_path, has_author=False, has_code=True)
    world.start("base")
    answer = world.repo.cli("run", "show", "--format", "in-toto")
    assert (answer.code, "has made no file" in answer.err) == (3, True)


def test_the_reference_implementation_accepts_it(tmp_path: Path) -> None:
    reference = importlib.import_module("in_toto_attestation.v1.statement")
    json_format = importlib.import_module("google.protobuf.json_format")
    slsa = importlib.import_module("in_toto_attestation.predicates.provenance.v1.provenance_pb2")
    world = made(tmp_path)
    world.start("base", "left")
    found = statement(world)
    message = json_format.ParseDict(found, reference.spb.Statement())
    reference.Statement.copy_from_pb(message).validate()
    predicate = {name: value for name, value in found["predicate"].items() if "_" not in name}
    # Every other key is one that the specification has.
    provenance = json_format.ParseDict(predicate, slsa.Provenance())
    assert provenance.build_definition.build_type == "urn:patchgate:run:1"


def signed(world: World, folder: Path, kind: str = "ed25519") -> tuple[Key, dict[str, Any]]:
    """Sign the statement about a run; return the key and the envelope."""
    world.start("base")
    key = Key.make(folder, kind=kind)
    world.repo.git("config", "user.signingKey", str(key.path))
    answer = world.repo.cli("run", "show", "--format", "in-toto", "--sign")
    assert answer.code == 0, answer.err
    envelope: dict[str, Any] = json.loads(answer.out)
    return key, envelope


def is_valid(key: Key, content: bytes, armoured: bytes, folder: Path, namespace: str = NAMESPACE) -> bool:
    """Ask ssh-keygen whether a key made a signature."""
    (folder / "sig").write_bytes(armoured)
    (folder / "signers").write_text(key.allowed("me"))
    files = ["-s", str(folder / "sig"), "-f", str(folder / "signers")]
    words = ["ssh-keygen", "-Y", "verify", "-n", namespace, "-I", "me", *files]
    return subprocess.run(words, input=content, capture_output=True, check=False).returncode == 0


@needs_ssh_keygen
@pytest.mark.parametrize("kind", ["ed25519", "rsa"])
def test_an_envelope_is_signed_for_runs_alone(tmp_path: Path, kind: str) -> None:
    world = made(tmp_path)
    key, envelope = signed(world, tmp_path, kind)
    payload = base64.b64decode(envelope["payload"])
    assert json.loads(payload) == statement(world)
    armoured = base64.b64decode(envelope["signatures"][0]["sig"])
    type_of = b"application/vnd.in-toto+json"
    content = b"DSSEv1 %d %s %d %s" % (len(type_of), type_of, len(payload), payload)
    assert is_valid(key, content, armoured, tmp_path)
    assert not is_valid(key, content, armoured, tmp_path, "patchgate")
    assert not is_valid(key, content + b" ", armoured, tmp_path)
    listed = subprocess.run(["ssh-keygen", "-l", "-f", key.path], capture_output=True, check=True, text=True)
    assert envelope["signatures"][0]["keyid"] == listed.stdout.split()[1]


@needs_ssh_keygen
def test_the_verifier_of_another_project_reads_the_envelope(tmp_path: Path) -> None:
    dsse = importlib.import_module("securesystemslib.dsse")
    signer = importlib.import_module("securesystemslib.signer")
    errors = importlib.import_module("securesystemslib.exceptions")
    key, envelope = signed(made(tmp_path), tmp_path)

    class SshKey(signer.Key):  # type: ignore[name-defined,misc]
        """A key of OpenSSH, for a library that has none."""

        def from_dict(self, keyid: str, key_dict: dict[str, Any]) -> Any:
            raise NotImplementedError

        def to_dict(self) -> dict[str, Any]:
            return {}

        def verify_signature(self, signature: Any, data: bytes) -> None:
            if not is_valid(key, data, bytes.fromhex(signature.signature), tmp_path):
                raise errors.UnverifiedSignatureError

    name = envelope["signatures"][0]["keyid"]
    own = SshKey(name, "ssh", "ssh-ed25519", {"public": key.public})
    # The library empties what it is given.
    other = {**copy.deepcopy(envelope), "payload": base64.b64encode(b"{}").decode()}
    assert list(dsse.Envelope.from_dict(envelope).verify([own], 1)) == [name]
    with pytest.raises(errors.VerificationError):
        dsse.Envelope.from_dict(other).verify([own], 1)


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("--sign",), 2, "--format in-toto"),
        (("--format", "in-toto", "--sign"), 2, "user.signingKey is not set"),
    ],
)
def test_what_cannot_be_signed_is_told(tmp_path: Path, words: tuple[str, ...], code: int, said: str) -> None:
    world = made(tmp_path)
    world.start("base")
    answer = world.repo.cli("run", "show", *words)
    assert (answer.code, said in answer.err, answer.out) == (code, True, "")
