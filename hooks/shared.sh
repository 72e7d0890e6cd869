# POSIX sh, run by dash and bash. Nothing that git says is ever evaluated, or used as a pattern.
hook=@hook@
version=@version@
patchgate=@patchgate@
mend=@mend@
case $0 in
*/*) own=${0%/*}/$hook ;;
*) own=./$hook ;;
esac
previous=$own.patchgate-prev
nl='
'

# Is there a hook from before that git would run? Never ours; and none for doctor, which asks only who answers.
has_previous() {
    [ -f "$previous" ] && [ -x "$previous" ] && [ -z "${PATCHGATE_WITNESS-}" ] || return 1
    first= second=
    { IFS= read -r first && IFS= read -r second; } 2>/dev/null <"$previous"
    case $second in
    '# patchgate hook '*) return 1 ;;
    esac
    [ "${0##*/}" != "$hook" ] || return 0
    # Another tool moved this file away and runs it from its own. What that tool runs anyway is not run twice,
    # and nothing runs in a circle.
    [ "${PATCHGATE_CHAIN-}" != "$hook" ] && ! cmp -s "$previous" "$own"
}

# What was here before runs first, with git's arguments. A script for sh or bash keeps the name that it had,
# for husky finds its own by it; one that reads or runs itself by that name runs as it is.
run_previous() {
    program= option=
    case $first in
    '#!'*) split "${first#??}" ;;
    esac
    case $program in
    env | */env) split "${option#-S}" ;;
    esac
    case $option in
    '' | -) option= ;;
    [!-]* | ?*[!efuvx]*) program= ;;
    esac
    case $program in
    sh | */sh | dash | */dash | bash | */bash)
        if ! grep -Eq 'BASH_SOURCE|(exec|<)[^(]*[$][{]?0' "$previous"; then
            PATCHGATE_CHAIN=$hook "$program" ${option:+"$option"} -c '. "$0.patchgate-prev"' "$own" "$@"
            return
        fi
        ;;
    esac
    PATCHGATE_CHAIN=$hook "$previous" "$@"
}

# Part a first line into program and option as the kernel does.
split() {
    program=${1#"${1%%[! 	]*}"}
    option=${program#"${program%%[ 	]*}"}
    program=${program%%[ 	]*}
    option=${option#"${option%%[! 	]*}"}
    option=${option%"${option##*[! 	]}"}
}

# What git said on standard input, once more.
say_lines() {
    [ -z "$lines" ] || printf '%s\n' "${lines%"$nl"}" 2>/dev/null
}

# Let patchgate judge; 126 and 127 say that it could not be started.
judge() {
    if [ -x "$patchgate" ]; then
        code=0
        "$patchgate" hook "$hook" "$@" || code=$?
        is_missing "$code" || return "$code"
    fi
    command -v git-patchgate >/dev/null 2>&1 || return 127
    git-patchgate hook "$hook" "$@"
}

is_missing() {
    [ "$1" -eq 126 ] || [ "$1" -eq 127 ]
}

refuse_unjudged() {
    printf 'error: git-patchgate is neither where install found it nor on PATH, so %s\n' "$1" >&2
    printf 'help: pip install patchgate && %s\n' "$mend" >&2
    case $0 in
    *[[:cntrl:]]*) own=$hook file=$hook ;;
    *) file=$0 ;;
    esac
    if [ -e "$previous" ] || [ -L "$previous" ]; then
        printf 'help: to do without it, give %s.patchgate-prev the name %s\n' "$own" "$file" >&2
    else
        printf 'help: to do without it, remove the file %s\n' "$file" >&2
    fi
    exit 1
}
