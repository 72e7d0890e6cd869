#!/bin/sh
# The main job, in a throw-away repository: a bad change is refused, a good one is accepted.
# Needs git-patchgate on PATH: sh scripts/in-venv.sh . sh examples/try.sh
set -eu

folder=$(mktemp -d "${TMPDIR:-/tmp}/patchgate-try.XXXXXX")
trap 'rm -rf "$folder"' EXIT
# A world of its own: nothing of your git config is read or written.
export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_NOSYSTEM=1
export GIT_AUTHOR_NAME=You GIT_AUTHOR_EMAIL=you@example.com
export GIT_COMMITTER_NAME=You GIT_COMMITTER_EMAIL=you@example.com

# Run a line as it is shown, and hold its exit code against the one that is expected.
run() {
    expected=$1
    shift
    printf '\n$ %s\n' "$*"
    code=0
    sh -c "$*" || code=$?
    if [ "$code" -ne "$expected" ]; then
        echo "expected exit code $expected, and got $code" >&2
        exit 1
    fi
}

git init -q -b main "$folder/shop"
cd "$folder/shop"
mkdir runs
echo 'total = 1 + 1' >shop.py
echo 'run 1: 2' >runs/record
git add -A
git commit -q -m 'Start the shop'

echo "# A policy: what lies in runs/ is a record, and nobody rewrites a record."
run 0 'git patchgate init --yes'
run 0 'sed -i.old "s/^deny_prefixes = .*/deny_prefixes = [\"runs\"]/" patchgate.toml && rm patchgate.toml.old'
run 0 'git add patchgate.toml && git commit -q -m "Protect the records"'

printf '\n# A bad change: it moves the record away, and leaves a key behind.\n'
run 0 'git mv runs/record shop.log && printf -- "-----BEGIN PRIVATE KEY-----\n" >notes.txt && git add -A'
run 1 'git patchgate check'

printf '\n# A good change.\n'
run 0 'git reset -q --hard && echo "total = 1 + 2" >shop.py && git add -A'
run 0 'git patchgate check'

printf '\nThe bad change was refused (exit code 1), the good one accepted (exit code 0).\n'
