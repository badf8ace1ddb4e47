#!/bin/sh
# What tests of native programs need, as Debian packages: installed when run as root. Elsewhere, and
# where that fails, those tests are skipped and say what to install. Runs from `make test`.
#
# Files are looked for, not only commands: a compiler may be there without the headers.
set -eu

python=${VENV:-.venv}/bin/python
headers=${SYSTEM_HEADERS:-/usr/include}
missing=""
packages=""

lacks() { # THING PACKAGE
    missing="$missing $1"
    case "$packages " in *" $2 "*) ;; *) packages="$packages $2" ;; esac
}

look_for_python_headers() {
    [ -x "$python" ] || return 0
    include=$("$python" -c 'import sysconfig; print(sysconfig.get_path("include"))')
    [ ! -e "$include/Python.h" ] || return 0
    version=$("$python" -c 'import sys; print(sys.base_prefix, "%d.%d" % sys.version_info[:2])')
    case $version in
    "/usr $(/usr/bin/python3 -c 'import sys; print("%d.%d" % sys.version_info[:2])')")
        lacks Python.h python3-dev
        ;;
    "/usr "*) lacks Python.h "python${version#* }-dev" ;;
    *) echo "$include has no Python.h: tests of the accelerator are skipped" >&2 ;;
    esac
}

look() {
    missing=""
    packages=""
    for pair in gcc:gcc g++:g++ addr2line:binutils make:make clang:clang tcc:tcc \
        csmith:csmith cvise:cvise dpkg-source:dpkg-dev; do
        command -v "${pair%:*}" >/dev/null || lacks "${pair%:*}" "${pair#*:}"
    done
    [ -e "$headers/stdio.h" ] || lacks stdio.h libc6-dev
    [ -e "$headers/csmith/csmith.h" ] || lacks csmith.h libcsmith-dev
    # Clang looks beside itself and on the PATH for the tool that names the functions of a crash.
    command -v llvm-symbolizer >/dev/null ||
        [ -x "$(clang -print-prog-name=llvm-symbolizer 2>/dev/null)" ] ||
        lacks llvm-symbolizer llvm
    look_for_python_headers
}

look
[ -n "$missing" ] || exit 0
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    echo "installing$packages"
    # shellcheck disable=SC2086 # names of packages, separated by blanks
    { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq $packages; } \
        >/dev/null || true
    look
    [ -n "$missing" ] || exit 0
fi
echo "missing:$missing; tests of native programs that need them are skipped" >&2
echo "(apt-get install$packages)" >&2
