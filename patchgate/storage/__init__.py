"""Storage: the one way to lock, append, replace atomically and flush.

Belongs here: locks between processes, files that are replaced whole, the hash-chained append-only file, the
few calls that change a disk, each a numbered step that a test can make fail. Does not: what the bytes mean,
git, the environment, wording of verdicts. Public: `Value`, `lock.hold`, `replace.write_atomically`,
`replace.unbroken` (signals wait), `chain.append`, `chain.read`, `chain.verify`, `record`, `owner.Owner`,
`temporary.TemporaryFolder`, and, for protocols that are longer than one file, `filesystem` and
`folder.Folder` (the same calls below an open folder, no link followed).

Errors: an `OSError` passes through as the system gave it, for only the caller knows what it costs.
`UndecidedError` is for what this folder itself finds: a held lock, a damaged chain, a record that is too
large.

Decisions:

* **A lock is `flock`, its text is only a name.** The kernel drops it however the holder ends, so no lock is
  ever stale and none is broken by force. The owner record serves the refusal; a record whose process is
  gone, or whose pid now belongs to somebody else, names nobody. Price: lock files stay where they are.
* **A failed folder flush undoes the rename.** The file that is replaced keeps a second name until the
  folder is flushed, so that an error means “old”. Price: one hard link and one unlink, some 20 µs beside an
  fsync of milliseconds. Where hard links are refused there is no way back from that one failure.
* **Temporary names carry their owner** (pid, start time, boot), so that the next write in the folder can
  remove what a killed process left and nothing else. Price: a process in another pid namespace looks dead;
  at worst its write fails, and the file is whole.
* **Two names are exchanged by the system.** `renameat2` and `renameatx_np` leave no instant at which a name
  means nothing, and what came out can be looked at before it is let go. Price: `ctypes` (4 ms), and on file
  systems without it three moves, whose middle states `folder` tells.
* **A chain proves order and content, not length.** Records cut off at the end, whole, leave a whole chain.
  With `with_head` an append also names, in `<name>.head`, where its record ended: after the record's flush
  and without one of its own, so that the file may lag behind the chain after a crash and never leads. An
  append leaves a file alone that contradicts its chain. Price: 30 µs and no flush; once in 700 records one
  atomic replacement.
* **An append loads little, for hooks make it.** No `dataclasses`, `pathlib` or `typing` on its way (28 ms):
  paths are text there, values are a `Value`, and fault points are `filesystem.Steps`, which do nothing (tests
  have others); `replace` is loaded where a torn line is set aside. `TYPE_CHECKING` is each
  module's own name, for `typing` costs 2 to 7 ms. Price: what makes a value frozen is mypy alone.
"""

from __future__ import annotations


class Value:
    """The base of a plain value: equal, hashed and shown by what the fields in its `__slots__` hold.

    It stands in for a frozen dataclass in what recording one event loads: the import of `dataclasses` costs
    more than the record (8 ms: it loads `inspect`). The fields are `Final`, so that mypy refuses a change.
    """

    __slots__: tuple[str, ...] = ()

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return self._held() == other._held()

    def __hash__(self) -> int:
        return hash(self._held())

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={getattr(self, name)!r}" for name in self.__slots__)
        return f"{type(self).__name__}({shown})"

    def _held(self) -> tuple[object, ...]:
        return tuple(getattr(self, name) for name in self.__slots__)
