#!/bin/sh
# Run a command with patchgate installed, on a machine that has only Python >= 3.11 and git:
#
#     sh scripts/in-venv.sh WHAT COMMAND [ARGUMENT...]
#
# WHAT is what pip installs: `.` is patchgate, `.[dev]` everything that its tests need. The virtual
# environment lies in a temporary folder and goes when the command ends. PATCHGATE_VENV names one that is
# made if it is missing, and kept as it is; PYTHON names the interpreter.
set -eu

if [ $# -lt 2 ]; then
    echo "usage: sh scripts/in-venv.sh WHAT COMMAND [ARGUMENT...]" >&2
    exit 2
fi
cd "$(dirname "$0")/.."
what=$1
shift

find_python() {
    for candidate in ${PYTHON:-python3 python3.13 python3.12 python3.11}; do
        if "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
            echo "$candidate"
            return
        fi
    done
    echo "Python 3.11 or newer was not found; name it: PYTHON=/path/to/python3 $0 ..." >&2
    return 1
}

command -v git >/dev/null || { echo "git was not found; install git 2.39.2 or newer" >&2; exit 1; }
python=$(find_python)

if [ -n "${PATCHGATE_VENV:-}" ]; then
    venv=$PATCHGATE_VENV
else
    folder=$(mktemp -d "${TMPDIR:-/tmp}/patchgate-venv.XXXXXX")
    trap 'rm -rf "$folder"' EXIT
    trap 'exit 130' INT
    trap 'exit 143' TERM HUP
    venv=$folder/venv
fi
if [ ! -e "$venv/installed" ]; then
    echo "installing $what for $("$python" --version) into a virtual environment ..." >&2
    "$python" -m venv "$venv"
    "$venv/bin/python" -m pip install --quiet --disable-pip-version-check "$what"
    : >"$venv/installed"
fi

# Not exec: the trap has to run after the command.
PATH=$venv/bin:$PATH "$@"
