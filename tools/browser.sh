#!/bin/sh
# What tests of pages in a browser need, as Debian packages: installed when run as root. Elsewhere,
# and where that fails, those tests are skipped and say what to install. Runs from `make test`.
set -eu

look() {
    missing=""
    for tool in chromium chromedriver; do
        command -v "$tool" >/dev/null || missing="$missing $tool"
    done
}

look
[ -n "$missing" ] || exit 0
packages="chromium chromium-driver"
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    echo "installing $packages"
    # shellcheck disable=SC2086 # names of packages, separated by blanks
    {
        apt-get update -qq &&
            DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $packages
    } >/dev/null || true
    look
    [ -n "$missing" ] || exit 0
fi
echo "missing:$missing; tests of pages in a browser are skipped" >&2
echo "(apt-get install $packages)" >&2
