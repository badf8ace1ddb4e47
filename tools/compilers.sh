#!/bin/sh
# What tests of native coverage need, as Debian packages: installed when run as root. Elsewhere, and
# where that fails, those tests are skipped and say what to install. Runs from `make test`.
set -eu

missing=""
for tool in gcc g++ addr2line make clang csmith dpkg-source; do
    command -v "$tool" >/dev/null || missing="$missing $tool"
done
[ -n "$missing" ] || exit 0
packages="gcc g++ binutils make clang csmith dpkg-dev"
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    echo "installing$missing"
    { apt-get update -qq && apt-get install -y -qq $packages; } >/dev/null && exit 0
fi
echo "missing:$missing; tests of native coverage that need them are skipped" >&2
echo "(apt-get install $packages)" >&2
