#!/usr/bin/env bash
# system-packages.sh PACKAGE...: installs the Debian packages that are not installed.
set -euo pipefail
dpkg -s "$@" >/dev/null 2>&1 && exit
sudo=
[ "$(id -u)" = 0 ] || sudo=sudo
export DEBIAN_FRONTEND=noninteractive
$sudo apt-get update -qq
$sudo apt-get -o DPkg::Lock::Timeout=600 install -y -qq --no-install-recommends "$@" >/dev/null
