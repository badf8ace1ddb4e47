#!/bin/sh
# What tests of the HTML report need, as Debian packages: installed when run as root. Elsewhere, and
# where that fails, those tests are skipped and say what to install. Runs from `make test`.
set -eu

missing=""
for tool in chromium chromedriver; do
    command -v "$tool" >/dev/null || missing="$missing $tool"
done
[ -n "$missing" ] || exit 0
packages="chromium chromium-driver"
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    echo "installing$missing"
    { apt-get update -qq && apt-get install -y -qq --no-install-recommends $packages; } >/dev/null && exit 0
fi
echo "missing:$missing; tests of reports in a browser are skipped" >&2
echo "(apt-get install $packages)" >&2
