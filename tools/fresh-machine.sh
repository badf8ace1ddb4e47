#!/usr/bin/env bash
# Run a command in a clone of this repository on a bare Debian, where nothing was ever installed by
# hand: it has python3, venv, make and git. Usage, or `make fresh` with the same variables:
#
#   bash tools/fresh-machine.sh [COMMAND...]       default: make test
#   make fresh COMMAND='make demo'
#   make fresh PYTHON_VERSION=3.13                 3.11, 3.12 or 3.13
#   make fresh PYTHON=/path/to/python3.12          this interpreter, with the prefix it is in
#   make fresh FRESH_USER=tester                   as a user who is not root and can install nothing
#   make fresh KEEP=1                              leave the file system for a look
#
# Python 3.11 is the one of Debian 12, 3.13 the one of Debian 13. Debian has no 3.12: an
# interpreter of this machine is used (on the PATH, or of pyenv), and its prefix is readable at the
# same path. PYTHON names one.
#
# Commits are tested: what is not committed is not in the clone. The command sees how this machine
# reaches the network (apt, pip, certificates, proxies), and no more of it.
#
# Needs root and mmdebstrap. Bare systems are kept in ~/.cache/fresh-machine, and each run gets a
# copy. Delete that directory to build them again. Mounts are made in a namespace of the
# run, so they end with it, however it ends.
set -euo pipefail

fail() {
    echo "fresh-machine: $1" >&2
    exit 2
}
case ${1:-} in
-h | --help)
    sed -n '2,/^set /s/^# \{0,1\}//p' "$0"
    exit 0
    ;;
esac
[ $# -gt 0 ] || set -- make test
[ "$(id -u)" = 0 ] || fail "run it as root: it mounts file systems and changes its root directory"

top=$(git -C "$(dirname "$0")" rev-parse --show-toplevel)
cache="${XDG_CACHE_HOME:-$HOME/.cache}/fresh-machine"
mkdir -p "$cache"

# Which Debian, and which Python in it.
python=${PYTHON:-}
suite=bookworm
find_python() {
    local candidate
    for candidate in "python$1" "${PYENV_ROOT:-$HOME/.pyenv}/versions/$1".*/bin/"python$1"; do
        if "$candidate" -c '' 2>/dev/null; then
            command -v "$candidate"
            return
        fi
    done
    fail "no Python $1 on this machine: name one with PYTHON=/path/to/python$1"
}
if [ -z "$python" ]; then
    case ${PYTHON_VERSION:-3.11} in
    3.11) ;;
    3.13) suite=trixie ;;
    *) python=$(find_python "$PYTHON_VERSION") ;;
    esac
fi
prefix=""
if [ -n "$python" ]; then
    where=$("$python" -c 'import sys; print(sys.base_prefix, *sys.version_info[:2])') ||
        fail "PYTHON=$python does not run"
    read -r prefix major minor <<<"$where"
    [ "$prefix" != /usr ] || fail "$python belongs to this system: leave PYTHON out"
    python=$prefix/bin/python$major.$minor
fi

# The bare system, built once.
base="$cache/base-$suite"
build_base() {
    local sources file
    command -v mmdebstrap >/dev/null || fail "mmdebstrap is missing: apt-get install mmdebstrap"
    sources=$(mktemp -d "$cache/sources.XXXXXX")
    for file in /etc/apt/sources.list /etc/apt/sources.list.d/*.{list,sources}; do
        # Only Debian's own: others are set up with keys that a bare system does not have.
        [ -f "$file" ] && grep -qE 'debian-archive-keyring|[./]debian' "$file" || continue
        sed -E "s/\b$(. /etc/os-release && echo "$VERSION_CODENAME")\b/$suite/g" "$file" \
            >"$sources/${file##*/}"
    done
    echo "fresh-machine: building a bare Debian ($suite) in $base"
    rm -rf --one-file-system "$base"
    mmdebstrap --quiet --mode=root --variant=minbase \
        --include=python3,python3-venv,make,git,ca-certificates "$suite" "$base" "$sources"/*
    rm -r "$sources"
    touch "$base/.ready"
}
(
    flock 8
    [ -e "$base/.ready" ] || build_base
) 8>"$cache/lock"

# A copy for this run. Copies of runs that were killed have no lock any more.
for stale in "$cache"/run.*; do
    [ ! -d "$stale" ] || [ -e "$stale/kept" ] ||
        flock --nonblock "$stale" rm -rf --one-file-system "$stale" || true
done
run=$(mktemp -d "$cache/run.XXXXXX")
root=$run/root
exec 9<"$run"
flock 9
child=""
clean_up() {
    trap '' INT TERM HUP
    if [ -n "$child" ]; then
        # The namespace's first process: with it, all others in there end.
        pkill -KILL -P "$child" || true
        wait "$child" || true
    fi
    if [ -n "${KEEP:-}" ]; then
        touch "$run/kept"
        echo "fresh-machine: kept: $root"
    else
        rm -rf --one-file-system "$run"
    fi
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

echo "fresh-machine: Debian $suite, ${python:-its own Python}, user ${FRESH_USER:-root}: $*"
mkdir "$root"
chmod 755 "$run" # mktemp makes it private
cp -a --reflink=auto "$base/." "$root/"
rm -rf "$root/etc/ssl/certs"
cp -rL /etc/ssl/certs "$root/etc/ssl/"
cp /etc/resolv.conf /etc/hosts "$root/etc/"
cp /etc/apt/apt.conf.d/* "$root/etc/apt/apt.conf.d/"
[ ! -e /etc/pip.conf ] || cp /etc/pip.conf "$root/etc/"
user=${FRESH_USER:-root}
chroot "$root" id -u "$user" >/dev/null 2>&1 || chroot "$root" useradd --create-home "$user"
home=$(chroot "$root" getent passwd "$user" | cut -d: -f6)
[ -d "$root$home" ] || fail "the user $user has no home directory: choose another name"
if [ -d "$HOME/.config/pip" ]; then
    mkdir -p "$root$home/.config"
    cp -r "$HOME/.config/pip" "$root$home/.config/"
fi
git clone -q "$top" "$root/srv/project"
chroot "$root" chown -R "$user:" "$home" /srv/project

# Directories of this machine that are readable in there, at the same path: Python, and packages
# that pip is set up to use from a directory.
shared=()
[ -z "$prefix" ] || shared+=("$prefix")
packages=$(python3 -m pip config list 2>/dev/null | grep -oE "(file://)?/[^' ]+" || true)
for place in $packages; do
    place=${place#file://}
    place=${place%/simple}
    [ ! -d "$place" ] || shared+=("$place")
done
for place in "${shared[@]}"; do
    mkdir -p "$root$place"
    while [ "$place" != / ]; do # a user who is not root has to get there
        place=$(dirname "$place")
        chmod o+x "$root$place"
    done
done

settings=(
    HOME="$home" USER="$user" LANG=C.UTF-8 CI=true TERM="${TERM:-dumb}"
    PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
)
[ -z "$python" ] || settings+=(PYTHON="$python")
while IFS= read -r -d '' setting; do
    case $setting in
    PIP_* | SSL_* | REQUESTS_* | http_proxy=* | https_proxy=* | no_proxy=* | \
        HTTP_PROXY=* | HTTPS_PROXY=* | NO_PROXY=*) settings+=("$setting") ;;
    esac
done < <(env -0)

# In the namespace: mount, and run the command as a child of its first process, which reaps orphans.
inside='
    root=$1 user=$2 count=$3
    shift 3
    attach() { mount --rbind "$1" "$root$1"; }
    mount -t proc proc "$root/proc"
    attach /dev
    mount -t tmpfs -o mode=1777 tmpfs "$root/dev/shm"
    attach /sys
    while [ "$count" -gt 0 ]; do
        attach "$1"
        mount -o remount,bind,ro "$root$1"
        count=$((count - 1))
        shift
    done
    cd "$root/srv/project"
    settings=()
    while [ "$1" != -- ]; do
        settings+=("$1")
        shift
    done
    shift
    chroot --userspec="$user" "$root" env -i --default-signal=INT,QUIT "${settings[@]}" \
        bash -c "cd /srv/project && exec \"\$@\"" fresh-machine "$@"
    exit $?
'
# Started in the background, so that a signal ends it at once; without --default-signal above, the
# command would be deaf to Ctrl-C.
setpriv --pdeathsig KILL unshare --mount --propagation private --pid --fork --kill-child \
    bash -euc "$inside" fresh-machine "$root" "$user" "${#shared[@]}" "${shared[@]}" \
    "${settings[@]}" -- "$@" <&0 9<&- &
child=$!
status=0
wait "$child" || status=$?
child=""
[ $status = 0 ] || echo "fresh-machine: exit status $status" >&2
exit $status
