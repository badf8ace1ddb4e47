#!/bin/sh
# Builds tcc from Debian's source, so that swarmtest sees which of its lines a test reaches:
#   sh tools/tcc.sh [DIRECTORY]     default: examples/csmith/build, where the example looks for it
# The source is fetched once, with the machine's own apt sources turned into deb-src in a directory
# of ours: the machine's configuration stays as it is. `swarmtest` must be on the PATH.
set -eu

here=$(cd "$(dirname "$0")/.." && pwd)
build=${1:-$here/examples/csmith/build}
mkdir -p "$build"
build=$(cd "$build" && pwd)
exec 9>"$build/lock"
! command -v flock >/dev/null || flock 9 # tests that need it may come at the same time
[ ! -x "$build/tcc" ] || exit 0

fail() {
    echo "tcc.sh: $1" >&2
    exit 1
}
for tool in apt-get dpkg-source gcc make swarmtest; do
    command -v "$tool" >/dev/null ||
        fail "$tool is missing (apt-get install dpkg-dev gcc make; source .venv/bin/activate)"
done

fetch() {
    mkdir -p "$build/apt/lists/partial" "$build/apt/sources"
    for file in /etc/apt/sources.list /etc/apt/sources.list.d/*; do
        [ -f "$file" ] || continue
        # Only Debian's own: others may need keys that apt has only for their packages.
        case $file in */sources.list) ;; *) grep -q debian-archive-keyring "$file" || continue ;; esac
        sed -e 's/^Types:.*/Types: deb-src/' -e 's/^deb[[:space:]]/deb-src /' "$file" \
            >"$build/apt/sources/$(basename "$file")"
    done
    set -- -q -o Dir::Etc::sourcelist=/dev/null -o "Dir::Etc::sourceparts=$build/apt/sources" \
        -o "Dir::State::lists=$build/apt/lists" -o "Dir::Cache=$build/apt"
    # An archive that does not answer is no matter, if another has the source.
    apt-get "$@" update >"$build/log" 2>&1 || true
    (cd "$build" && apt-get "$@" source tcc) >>"$build/log" 2>&1
}

source_directory() {
    find "$build" -maxdepth 1 -type d -name 'tcc-[0-9]*' | head -n 1
}

[ -n "$(source_directory)" ] || fetch || fail "no source: $(tail -n 1 "$build/log")"
source=$(source_directory)
cd "$source"
{
    ./configure --triplet="$(gcc -print-multiarch)" && make clean && make tcc libtcc1.a
} >"$build/log" 2>&1 || fail "the build failed, see $build/log"
# What tcc needs beside itself when it runs: its headers and its library.
mkdir -p "$build/lib"
cp -r include libtcc1.a "$build/lib/"
swarmtest cc gcc -g -O1 -w -I. -DONE_SOURCE=1 \
    -DCONFIG_TRIPLET="\"$(gcc -print-multiarch)\"" -o "$build/tcc.new" tcc.c -lm -ldl -lpthread \
    >>"$build/log" 2>&1 || fail "the build with coverage failed, see $build/log"
mv "$build/tcc.new" "$build/tcc"
echo "built $build/tcc from $(basename "$source")"
