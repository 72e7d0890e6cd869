#!/bin/sh
# A run of six components in a throw-away repository: start, kill, resume; then a tool that hooks don't find.
# Needs git-patchgate on PATH: sh scripts/in-venv.sh . sh examples/run/try.sh
set -eu

here=$(cd "$(dirname "$0")" && pwd)
folder=$(mktemp -d "${TMPDIR:-/tmp}/patchgate-run.XXXXXX")
trap 'rm -rf "$folder"' EXIT
# Its own configuration: nothing of your git config is read or written.
export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_NOSYSTEM=1
export GIT_AUTHOR_NAME=You GIT_AUTHOR_EMAIL=you@example.com
export GIT_COMMITTER_NAME=You GIT_COMMITTER_EMAIL=you@example.com
short_path=$PATH
export PATH="$here/bin:$PATH"

# Run a line as it is shown, and compare its exit code with the expected one.
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
cp -R "$here/shop/." .
printf '__pycache__/\n' >.gitignore
git add -A
git commit -q -m 'Contracts and tests of six components'
git patchgate install >/dev/null

echo '# A run. It is killed when two files have landed.'
printf '\n$ git patchgate run start &\n'
git patchgate run start >"$folder/start" 2>&1 &
started=$!
while [ "$(find . -path "./src/*.py" | wc -l)" -lt 2 ]; do
    kill -0 "$started" || { cat "$folder/start"; exit 1; }
    sleep 0.1
done
pid=$(pgrep -P "$started" || echo "$started")
printf '\n$ kill -9 %s\n' "$pid"
kill -9 "$pid"
wait "$started" 2>/dev/null || true
cat "$folder/start"
run 0 'git patchgate run show'

printf '\n# It goes on where it was.\n'
run 0 'git patchgate run resume'
run 0 'git patchgate run cost'
run 0 'git patchgate explain --path src/cart.py'
run 0 'git add -A && git commit -q -m "Six implementations" && git patchgate status'

printf '\n# In another shell the test command is not on the PATH.\n'
PATH=$short_path
run 1 'git patchgate run start'
printf '\n$ # declare the tool, so that it is looked for before a run begins\n'
run 0 "printf '\\n[environment]\\nrequired_tools = [\"shop-test\"]\\n' >>patchgate.toml"
run 0 'git commit -q -m "Require the test command" patchgate.toml'
run 1 'git patchgate doctor'
run 3 'git patchgate run resume'
PATH="$here/bin:$PATH"
printf '\n# The tool is back.\n'
run 0 'git patchgate doctor'
run 0 'git patchgate run resume'
run 0 'git patchgate run retro'
