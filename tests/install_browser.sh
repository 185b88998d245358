#!/bin/sh
# Make sure that a Chromium or Chrome, and npm, are there for the tests that open pages.
set -e
missing=""
found() { command -v "$1" >/dev/null 2>&1; }
found chromium || found chromium-browser || found google-chrome ||
  [ -x "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome" ] || missing="chromium"
found npm || missing="$missing npm"
[ -z "$missing" ] && exit 0
if found apt-get; then
  as_root=""
  [ "$(id -u)" = 0 ] || as_root="sudo"
  $as_root apt-get update -qq
  # shellcheck disable=SC2086 -- one word for each package
  $as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing
  exit 0
fi
echo "not found: $missing. Install it: the tests of the report and of the service's page open them in a real browser" >&2
exit 1
