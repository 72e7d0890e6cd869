"""Recognise a boring change before a commit: exit code 99 is *accepted*, any other hands it on.

Started by two hooks. On standard input: a pinned `git diff-index` or `diff-tree`; then NUL and `whole`.
Each `require` is one condition; a change that fails one, or raises anything, goes to the full tier.
`policy.compiled_policy` describes a compiled policy, `hooks.fast.cache_files` what it is bound to.
"""

import posix
import sys
from _imp import source_hash
from marshal import loads

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Policy = dict[str, Any]
    Folders = dict[bytes, dict[bytes, str]]

ACCEPTED = 99
SEAL = 0x7061746368676174
PLAIN = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_+=,@%()[]{}!#$&;'^. -/"
MOST_BYTES, WHOLE_FILE, MOST_ASKED = 4 << 20, 256 << 10, 4096
LARGE_INDEX = 1 << 20
ENDED = b"whole"
FORMS = (b"000000 100644 A", b"100644 100644 M", b"100755 100755 M", b"100644 000000 D", b"100755 000000 D")
RECORDED = (b'"kind":"skipped"', b'"kind":"observed"', b'"kind":"unjudged"')
# As `os` reads the environment.
TEXT = (sys.getfilesystemencoding(), "surrogateescape")
KEPT = (b"HOME", b"PATH", b"TMPDIR", b"XDG_CONFIG_HOME")
PINNED = {b"LC_ALL": b"C", b"GIT_NO_REPLACE_OBJECTS": b"1", b"GIT_NO_LAZY_FETCH": b"1"}
SYSTEM = (b"/etc/gitconfig", b"/usr/local/etc/gitconfig", b"/opt/homebrew/etc/gitconfig")
CONFIG = ("--bare", "config", "--list", "--name-only")
TRUSTED = [b"contents refs/remotes/origin/%s^{tree}\n" % each for each in (b"HEAD", b"main", b"master")]
CAT_FILE = ("--bare", "-c", "protocol.allow=never", "cat-file", "--batch-command")


def require(fact: object) -> None:
    """Hand the change on unless this is so."""
    if not fact:
        raise ValueError


def listen(descriptor: int) -> bytearray:
    """Read to the end."""
    said = bytearray()
    while piece := posix.read(descriptor, 1 << 18):
        said += piece
        require(len(said) < MOST_BYTES)
    return said


def take(said: bytearray, with_content: bool = False) -> tuple[bytes, bytes, int, bytes]:
    """Take the first answer of cat-file: object id, type (`missing` if there is none), size, content."""
    words = bytes(said[: said.index(b"\n")]).split(b" ")
    del said[: said.index(b"\n") + 1]
    if words[-1] == b"missing":
        return b"", b"missing", 0, b""
    oid, kind, number = words
    size, content = int(number), b""
    if with_content:
        content = bytes(said[:size])
        require(said[size : size + 1] == b"\n")
        del said[: size + 1]
    return oid, kind, size, content


def ask(git_dir: str, requests: list[bytes], command: tuple[str, ...] = CAT_FILE) -> int:
    """Start git on requests in a pipe; return the descriptor on which it answers."""
    asked, asks = posix.pipe()
    hears, says = posix.pipe()
    raw = b"".join(requests)
    require(len(raw) < MOST_ASKED)
    posix.write(asks, raw)
    kept = {name: value for name, value in posix.environ.items() if name in KEPT}
    moves = ((posix.POSIX_SPAWN_DUP2, asked, 0), (posix.POSIX_SPAWN_DUP2, says, 1))
    posix.posix_spawnp("git", ("git", "--git-dir=" + git_dir, *command), kept | PINNED, file_actions=moves)
    for descriptor in (asked, asks, says):
        posix.close(descriptor)
    return hears


def read(path: str | bytes, most: int = 64 << 10, flags: int = posix.O_NOFOLLOW) -> bytes:
    """Read the last bytes of a file; nothing if it is missing."""
    try:
        descriptor = posix.open(path, posix.O_RDONLY | posix.O_CLOEXEC | flags)
        return posix.pread(descriptor, most, max(0, posix.fstat(descriptor).st_size - most))
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        return b""


def entries(tree: bytes, width: int) -> list[tuple[bytes, str]]:
    """Part a tree object that is sorted as git sorts it: each name, with mode and object id."""
    found, at, last = [], 0, b""
    while at < len(tree):
        space = tree.index(b" ", at)
        end = tree.index(b"\0", space)
        mode, oid = tree[at:space].decode("ascii"), tree[end + 1 : end + 1 + width].hex()
        require(mode in ("100644", "100755", "120000", "160000", "40000"))
        name = tree[space + 1 : end]
        key = name + b"/" if mode == "40000" else name
        require(last < key)
        require(b"/" not in name)
        found.append((name, f"{mode}.{oid}"))
        at, last = end + 1 + width, key
    require(len(dict(found)) == len(found))
    return found


def resulting(
    files: list[tuple[bytes, bytes, bytes]], trees: dict[bytes, dict[bytes, str]], width: int
) -> bytes:
    """Compute the tree that git writes for a change, from the folders that it touches; `trees` is used up."""
    try:
        # hashlib takes 3 ms to import; some builds have nothing else.
        from _sha1 import sha1
    except ImportError:
        from hashlib import sha1
    make = sha1
    if width == 32:
        from hashlib import sha256 as make
    for path, status, blob in files:
        folder, _, name = path.rpartition(b"/")
        mode = trees[folder].pop(name, "").partition(".")[0] if status != b"A" else "100644"
        if status != b"D":
            trees[folder][name] = f"{mode}.{blob.decode('ascii')}"
    oid = ""
    for folder in sorted(trees, key=len, reverse=True):
        rows = [(name, *each.encode("ascii").split(b".")) for name, each in trees[folder].items()]
        rows.sort(key=lambda row: row[0] + b"/" * (row[1] == b"40000"))
        tree = b"".join(
            [b"%s %s\0%b" % (mode, name, bytes.fromhex(new.decode())) for name, mode, new in rows]
        )
        oid = make(b"tree %d\0%b" % (len(tree), tree)).hexdigest()
        outer, _, name = folder.rpartition(b"/")
        if rows and folder:
            trees[outer][name] = f"40000.{oid}"
        elif folder and trees[outer].get(name, "").startswith("40000."):
            del trees[outer][name]
    return oid.encode("ascii")


def above(path: bytes) -> list[bytes]:
    """Name the folders above a path, but for the root."""
    parts = path.split(b"/")
    return [b"/".join(parts[:count]) for count in range(1, len(parts))]


def load_policy(folder: str, root: dict[bytes, str], version: str) -> "Policy":
    """Load what the full tier compiled from the policy of this root folder, for this very tool."""
    key = "{}-{}".format(*(root.get(name, "none") for name in (b"patchgate.toml", b"pyproject.toml")))
    return open_policy(f"{folder}/{version}/{key}", version)


def open_policy(path: str, version: str) -> "Policy":
    """Open a compiled policy, of this very tool."""
    kept = read(path, WHOLE_FILE)
    require(kept[:8] == source_hash(SEAL, kept[8:]))
    policy: Policy = loads(kept[8:])
    require(policy["tool"][::2] == (version, sys.hexversion))
    status = posix.stat(policy["stamp"][0])
    require(policy["stamp"][1:] == (status.st_mtime_ns, status.st_size, status.st_ino))
    return policy


def renamed(gone: list[bytes], new: list[bytes]) -> set[bytes]:
    """Choose the rows, of mode and blob, that are removed once and added once: an exact rename each."""
    return {row for row in new if gone.count(row) == new.count(row) == 1} if gone else set()


def without_moved(patch: bytes, rows: list[bytes], moved: set[bytes]) -> bytes:
    """Leave out the files of a patch that are exact renames."""
    # Every line of a text has a sign before it.
    sections = patch.split(b"\ndiff --git ")
    return b"\n".join([text for text, row in zip(sections, rows, strict=True) if row not in moved])


def read_difference(output: bytes) -> tuple[bytes, list[tuple[bytes, bytes, bytes]], int, bytes]:
    """Part git's answer: the raw part as it is, path, status, new blob of each file, added lines, patch.

    An exact rename adds no line, and the patch is without its text.
    """
    words = output.split(b"\0")
    require(words.pop() == ENDED and words[-1][-1:] in (b"", b"\n"))
    files, gone, rows, at = [], [], [], 0
    while words[at].startswith(b":"):
        old_mode, new_mode, old, new, status = words[at][1:].split(b" ")
        path = words[at + 1]
        require(b" ".join((old_mode, new_mode, status)) in FORMS and not path.translate(None, PLAIN))
        files.append((path, status, new))
        gone += [old_mode + old] if status == b"D" else []
        rows.append(new_mode + new if status == b"A" else b"")
        at += 2
    moved = renamed(gone, rows)
    raw = output[: sum(map(len, words[:at])) + at]
    added = 0
    for (path, _, _), row in zip(files, rows, strict=True):
        count, removed, name = words[at].split(b"\t", 2)
        require(count.isdigit() and removed.isdigit() and name == path)
        added += int(count) if row not in moved else 0
        at += 1
    require(len(words) == at + (2 if files else 1) and not words[at])
    return raw, files, added, without_moved(words[-1], rows, moved) if moved else words[-1]


def check_names(paths: list[bytes], policy: "Policy") -> None:
    """Require that no policy and no path rule applies to these names."""
    roots, prefixes = (tuple([each + "/" for each in policy[key] or ()]) for key in ("roots", "prefixes"))
    for raw in paths:
        path = raw.decode("ascii") + "/"
        # The questions about all folders of a path over 4,096 bytes would not fit into the pipe.
        require(policy["roots"] is None or path.startswith(roots))
        small = path.lower()
        require(not small.startswith(prefixes))
        for part in small[:-1].split("/"):
            require(
                part.rstrip(". ") not in ("", ".git") and len(part) <= 255 and part not in policy["names"]
            )
            require(not part.endswith(policy["endings"]) and not part.startswith(policy["beginnings"]))
            require(not any(each in part for each in policy["parts"]))


def check_collisions(names: list[bytes], listings: dict[bytes, list[bytes]]) -> None:
    """Require that no new name is that of a neighbour but for case."""
    kept = {name.lower(): name for name in names}
    require(len(kept) == len(names))
    for above, neighbours in listings.items():
        require(b"".join(neighbours).isascii())
        require(all(kept.get((above + each).lower(), above + each) == above + each for each in neighbours))


def check_answered(common_dir: str, head: bytes, ref: str, branch: bytes) -> None:
    """Require that hooks accepted all from HEAD down to what was here, is at origin or was reported."""
    width, state = len(head), common_dir + "/patchgate"
    receipts = {line[:width]: line.split(b" ") for line in read(state + "/receipts").split(b"\n")[:-1]}
    default = read(common_dir + "/refs/remotes/origin/HEAD").strip().decode()[18:]
    names = ("origin" + ref[10:], default if ".." not in default else "-")
    origin = [read(f"{common_dir}/refs/remotes/{name}").rstrip() for name in names]
    reported = [
        line[:width] for line in read(state + "/told").split(b"\n")[:-1] if line[width:] == b" " + branch
    ]
    stops = {*origin, *reported[-1:], *read(state + "/settled").split(b"\n"), b"-"}
    events = read(state + "/events.jsonl", WHOLE_FILE)
    has_records = len(events) == WHOLE_FILE or any(kind in events for kind in RECORDED)
    while head not in stops:
        oid, tree, parent, *merge = receipts.pop(head)
        require(len(oid) == len(tree) == width and (parent == b"-" or len(parent) == width))
        require(not (tree + parent.removeprefix(b"-")).translate(None, b"0123456789abcdef"))
        require(merge in ([], [b"merge"]))
        if not has_records:
            return
        require(not merge)
        head = parent


def check_trust(git_dir: str, common_dir: str) -> None:
    """Require that no config of git names a trusted ref; git reads it where one file includes another."""
    home, above = (posix.environ.get(name, b"") for name in (b"HOME", b"XDG_CONFIG_HOME"))
    places = (home + b"/.gitconfig", home + b"/.config/git/config", above + b"/git/config", *SYSTEM)
    files = [read(each, WHOLE_FILE) for each in (common_dir + "/config", git_dir + "/config.worktree")]
    # Config files at home are often symlinks.
    files += [read(each, WHOLE_FILE, posix.O_RDONLY) for each in places]
    require(files[0] and max(map(len, files)) < WHOLE_FILE)
    said = b"\n".join(files).lower()
    if b"include" in said:
        said = bytes(listen(ask(git_dir, [], CONFIG))).lower()
        require(b"core." in said)
    require(b"trustref" not in said)


def check_intents(common_dir: str) -> None:
    """Require that no worktree has an intent, which could declare a file of this change."""
    folder = common_dir + "/patchgate/intents"
    if posix.access(folder, posix.F_OK):
        require(not any(name.endswith(".json") for name in posix.listdir(folder)))


def leave(path: str, content: bytes | None) -> None:
    """Put a small file in its place whole, or take it away."""
    if content is not None:
        flags = posix.O_WRONLY | posix.O_CREAT | posix.O_TRUNC | posix.O_NOFOLLOW | posix.O_CLOEXEC
        descriptor = posix.open(path + ".new", flags, 0o600)
        require(posix.write(descriptor, content) == len(content))
        posix.close(descriptor)
        posix.replace(path + ".new", path)
    elif posix.access(path, posix.F_OK):
        posix.unlink(path)


def recognise(
    output: bytes, base: bytes, branch: bytes, *place: str, more: "list[bytes] | None" = None
) -> "tuple[Policy, bytes, bytes, bytes, Folders, list[tuple[bytes, bytes]]]":
    """Recognise a change on a commit that a branch has: policy, commit, resulting tree, difference.

    Then the folders of the commit above what is touched, and type and content of more objects.
    """
    git_dir, common_dir, version = place
    raw, files, added, patch = read_difference(output)
    new = [path for path, status, _ in files if status == b"A"]
    folders = list(dict.fromkeys(each for path in new for each in above(path)))
    blobs = [blob for _, status, blob in files if status != b"D"]
    # Of a malformed tree git and its readers see different files: none may be on the way to a change.
    touched = list(
        dict.fromkeys(folders) | dict.fromkeys(each for path, _, _ in files for each in above(path))
    )
    listed = [b"%s^{tree}" % base, *(b"%s:%s" % (base, folder) for folder in touched)]
    about = [b"info %s\n" % each for each in (base, *blobs, branch, base)]
    answers = ask(git_dir, about + [b"contents %s\n" % each for each in listed] + (more or []))
    check_trust(git_dir, common_dir)
    said = listen(answers)
    head, kind, _, _ = take(said)
    sizes = [take(said)[1:3] for _ in blobs]
    require(kind == b"commit" and [take(said)[0], take(said)[0]] == [head, head])
    root = dict(entries(take(said, with_content=True)[3], len(head) // 2))
    policy = load_policy(common_dir + "/patchgate/fast", root, version)
    check_names([path for path, _, _ in files], policy)
    require(not any(text in patch for text in policy["texts"]))
    require(not (small := policy["small_texts"]) or not any(map(patch.lower().__contains__, small)))
    require(policy["max_files"] is None or len(files) <= policy["max_files"])
    require(policy["max_added_lines"] is None or added <= policy["max_added_lines"])
    require(not policy["has_components"] or len(blobs) == len(files))
    for kind, size in sizes:
        require(kind == b"blob" and (policy["max_file_bytes"] is None or size <= policy["max_file_bytes"]))
    trees = {b"": root}
    listings = {b"": list(root)} if new else {}
    for folder in folders:
        _, kind, _, tree = take(said, with_content=True)
        require(kind in (b"tree", b"missing"))
        trees[folder] = dict(entries(tree, len(head) // 2))
        listings[folder + b"/"] = list(trees[folder])
    for folder in touched[len(folders) :]:
        _, kind, _, tree = take(said, with_content=True)
        require(kind == b"tree")
        trees[folder] = dict(entries(tree, len(head) // 2))
    others = [(kind, tree) for _, kind, _, tree in (take(said, with_content=True) for _ in more or ())]
    check_collisions(folders + new, listings)
    if policy["reads_contents"]:
        said = listen(ask(git_dir, [b"contents %s\n" % blob for blob in blobs]))
        require(not any(b"\0" in take(said, with_content=True)[3][:8000] for _ in blobs))
    before = {folder: dict(each) for folder, each in trees.items()}
    return policy, head, resulting(files, trees, len(head) // 2), raw, before, others


def hand_on(git_dir: str, version: str, output: bytes) -> None:
    """Leave git's answer for the full check where git takes long to give it again (`git.kept_answer`)."""
    status = posix.stat(posix.environ.get(b"GIT_INDEX_FILE") or git_dir + "/index")
    words = output.split(b"\0")
    if status.st_size > LARGE_INDEX and len(output) < WHOLE_FILE and words.pop() == ENDED:
        at = 0
        while words[at][:1] == b":" and words[at][-1:] in b"AM":
            at += 2
        *numbers, end = words[at : at + at // 2 + 1]
        # A deletion has no lines here, and a file that git calls binary is read in another way.
        if not end and all(b"\t" in each and each[:1] != b"-" for each in numbers):
            kept = b"" if not at else b"\0".join([*words[:at], b"", *words[at + at // 2 + 1 :]])
            about = (posix.getppid(), status.st_mtime_ns, status.st_size, status.st_ino, len(kept))
            first = "patchgate.asked/1 {} {} {} {} {} {}\n".format(version, *about).encode()
            leave(git_dir + "/patchgate-asked", first + kept)


def main(git_dir: str, common_dir: str, version: str, ref: str) -> None:
    """Recognise what is staged, and leave its pending receipt."""
    output = bytes(listen(0))
    try:
        recognise_staged(output, git_dir, common_dir, version, ref)
    except Exception:
        hand_on(git_dir, version, output)
        raise


def recognise_staged(output: bytes, git_dir: str, common_dir: str, version: str, ref: str) -> None:
    """Recognise what is staged on the commit of a branch, and leave its pending receipt."""
    branch = ref.encode("utf-8", "surrogateescape")
    policy, head, tree, raw, folders, trusted = recognise(
        output, b"HEAD", branch, git_dir, common_dir, version, more=TRUSTED
    )
    require(not posix.access(git_dir + "/MERGE_HEAD", posix.F_OK))
    require(not read(f"{common_dir}/{ref}").startswith(b"ref:"))
    check_answered(common_dir, head, ref, branch)
    if policy["reserves"]:
        check_intents(common_dir)
    if any(path.endswith(policy["commands"]) for path in raw.split(b"\0")[1::2]):
        find_rest(policy)
        from patchgate.hooks.fast.commit_commands import require_accepted

        environ = {name.decode(*TEXT): value.decode(*TEXT) for name, value in posix.environ.items()}
        require_accepted(
            sys.modules[__name__], policy, raw, tree, folders, trusted, environ, git_dir, common_dir
        )
    about = b"patchgate.pending/2 %s accepted %s\n%s %s\n- -\n" % (version.encode(), tree, head, branch)
    leave(git_dir + "/patchgate-pending", None if policy["refuses_messages"] else about + raw)
    leave(git_dir + "/patchgate-quiet", None if policy["judges_messages"] else version.encode() + b"\n")


def find_rest(policy: "Policy") -> None:
    """Let the rest of patchgate be imported, from where this policy was compiled."""
    sys.path.append(policy["stamp"][0].removesuffix("/patchgate/__init__.py"))


def recognise_merge(git_dir: str, common_dir: str, version: str, ref: str, ended: str) -> None:
    """Recognise a clean merge that git is about to commit, and leave its pending receipt."""
    folder = f"{common_dir}/patchgate/fast/{version}"
    # Any policy has been compiled by the patchgate that compiles them here.
    find_rest(open_policy(f"{folder}/{min(posix.listdir(folder))}", version))
    from patchgate.hooks.fast.clean_merge import recognise_merge

    recognise_merge(sys.modules[__name__], posix.environ, git_dir, common_dir, version, ref)


def recognise_commit(git_dir: str, common_dir: str, version: str, ref: str, commit: str, old: str) -> None:
    """Recognise the one commit that a branch gets, on what it has or in its place; leave its receipt."""
    wanted = [b"contents %s\n" % each.encode() for each in (commit, old, old + "^{tree}")]
    # Of a graft this is another parent than that which the commit names.
    first = commit.encode() + b"^1"
    policy, head, result, _, _, others = recognise(
        bytes(listen(0)), first, first, git_dir, common_dir, version, more=wanted
    )
    made, had, root = [content for _, content in others]
    # As git reads a commit: parents come after the tree, and nowhere else.
    tree, parent, author = made.split(b"\n", 3)[:3]
    require(parent == b"parent " + head and author[:7] == b"author ")
    require(head == old.encode() or parent == had.split(b"\n", 2)[1])
    # A tree that git did not write can be malformed: its difference may be wrong.
    require(tree == b"tree " + result)
    # The policy of the branch counts for a commit that had none before it.
    there = dict(entries(root, len(head) // 2))
    require(load_policy(common_dir + "/patchgate/fast", there, version) == policy)
    require(not policy["refuses_messages"])
    # A trailer of ours can ask for other limits, another encoding can hide one.
    require(b"\npatchgate-" not in made.lower())
    require(b"\nencoding " not in made.partition(b"\n\n")[0])
    require(not read(f"{common_dir}/{ref}").startswith(b"ref:"))
    check_answered(common_dir, old.encode(), ref, ref.encode("utf-8", "surrogateescape"))
    # An intent binds what its worktree pushes into this one too.
    check_intents(common_dir)
    leave(git_dir + "/patchgate-landing", b"%s %s %s\n" % (commit.encode(), result, head))


if __name__ == "__main__":
    sys.excepthook = lambda *_: posix._exit(1)
    if len(sys.argv) == 5:
        main(*sys.argv[1:])
    else:
        (recognise_merge if len(sys.argv) == 6 else recognise_commit)(*sys.argv[1:])
    posix._exit(ACCEPTED)
