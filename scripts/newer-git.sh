#!/bin/sh
# Unpack a newer git than the system's into a folder, and print the folder to put first on PATH:
#
#     PATH=$(sh scripts/newer-git.sh FOLDER):$PATH
#
# The git, its C library and the libraries it needs are Debian packages of a newer suite, from the mirror that
# this system's own apt sources name. It needs no root and changes nothing of the system. Where there is no
# such git (another system, no apt, no network), it prints the reason to standard error and ends with 1.
set -eu

if [ $# -ne 1 ]; then
    echo "usage: sh scripts/newer-git.sh FOLDER" >&2
    exit 2
fi
mkdir -p "$1"
folder=$(cd "$1" && pwd)

none() {
    echo "no newer git: $1" >&2
    exit 1
}

for tool in apt-get apt-cache dpkg dpkg-deb; do
    command -v "$tool" >/dev/null || none "$tool is not here"
done
grep -qx 'ID=debian' /etc/os-release 2>/dev/null || none "this system is not Debian"

# Both forms of apt's sources: `URIs: MIRROR` and `deb [OPTIONS] MIRROR SUITE main`; a mirror of Debian ends so.
mirror=$(
    cat /etc/apt/sources.list /etc/apt/sources.list.d/* 2>/dev/null |
        sed -n -e 's/^URIs: *//p' -e 's/^deb  *\(\[[^]]*\]  *\)\{0,1\}//p' |
        sed -n -e 's/[ ].*//' -e '/\/debian\/*$/p' | head -n 1
)
[ -n "$mirror" ] || none "the apt sources name no mirror of Debian"
options=
for keyring in /usr/share/keyrings/debian-archive-keyring.gpg /usr/share/keyrings/debian-archive-keyring.pgp; do
    [ ! -e "$keyring" ] || options="[signed-by=$keyring]"
done

apt=$folder/apt
mkdir -p "$apt/lists/partial" "$apt/cache/archives/partial" "$apt/packages" "$folder/root"
cat >"$apt/config" <<CONFIG
Dir::Etc::SourceList "$apt/sources.list";
Dir::Etc::SourceParts "/dev/null";
Dir::State::Lists "$apt/lists";
Dir::Cache "$apt/cache";
APT::Sandbox::User "";
Acquire::Languages "none";
Acquire::http::Timeout "20";
Acquire::Retries "1";
CONFIG
export APT_CONFIG="$apt/config"

fetch() {
    echo "deb $options $mirror $1 main" >"$apt/sources.list"
    apt-get update >"$apt/log" 2>&1 || return 1
    # What is installed counts as available to apt; only what the suite itself offers is newer.
    offered=$(apt-cache madison git | sed -n 's/^ *git *| *\([^ ]*\) .*/\1/p' | head -n 1)
    [ -n "$offered" ] || return 1
    has=$(dpkg-query -W -f '${Version}' git 2>/dev/null || echo 0)
    dpkg --compare-versions "$offered" gt "$has" || return 1
    (cd "$apt/packages" && apt-get download "git=$offered" libc6 libpcre2-8-0 zlib1g) >>"$apt/log" 2>&1
}

fetch testing || fetch stable || none "apt found none: $(tail -n 1 "$apt/log")"
for package in "$apt"/packages/*.deb; do
    dpkg-deb -x "$package" "$folder/root" || none "$package cannot be unpacked"
done

# The programs run under their own C library, which their children must not inherit: so no LD_LIBRARY_PATH.
# git would look for its programs in /usr/lib/git-core, where the system's are: so GIT_EXEC_PATH.
loader=$(find "$folder/root" -name 'ld-linux*.so.*' | head -n 1)
real=$folder/root/usr/bin/git
[ -n "$loader" ] && [ -e "$real" ] || none "the packages hold no git"
libraries=$(dirname "$loader"):$(dirname "$(find "$folder/root" -name 'libc.so.6' | head -n 1)")
mkdir -p "$folder/bin" "$folder/core"
wrap() {
    cat >"$2" <<WRAPPER
#!/bin/sh
GIT_EXEC_PATH='$folder/core' exec '$loader' --library-path '$libraries' --argv0 "\$0" '$1' "\$@"
WRAPPER
    chmod 755 "$2"
}
wrap "$real" "$folder/core/git"
for place in "$folder"/root/usr/lib/git-core/*; do
    name=$(basename "$place")
    if [ "$(readlink "$place" || true)" = git ]; then
        ln -s git "$folder/core/$name"
    elif [ "$(head -c 4 "$place" 2>/dev/null | tail -c 3)" != ELF ]; then
        ln -s "$place" "$folder/core/$name"
    elif [ "$name" != git ]; then
        wrap "$place" "$folder/core/$name"
    fi
done
for name in git git-receive-pack git-upload-pack git-upload-archive; do
    ln -s ../core/git "$folder/bin/$name"
done
"$folder/bin/git" version >"$folder/version" 2>&1 || none "it does not run: $(tail -n 1 "$folder/version")"
rm -rf "$apt"
echo "$folder/bin"
