#!/bin/sh
# Make sure a Chromium or Chrome is there for the tests that open pages.
set -e
for name in chromium chromium-browser google-chrome; do
  if command -v "$name" >/dev/null 2>&1; then exit 0; fi
done
[ -x "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome" ] && exit 0
if command -v apt-get >/dev/null 2>&1; then
  as_root=""
  [ "$(id -u)" = 0 ] || as_root="sudo"
  $as_root apt-get update -qq
  $as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium
  exit 0
fi
echo "no Chromium or Chrome found: install one (the report's tests open pages in a real browser)" >&2
exit 1
