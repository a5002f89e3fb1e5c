#!/bin/bash
# Installs (once) and starts the lab.  See README.md for the variables.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
export LAB_DIR=${LAB_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/openstack-lab}

# Debian 12, for the versions that the lab was tried with (LAB_ANY_SYSTEM=1: try
# elsewhere, at your own risk); root, for packages and MariaDB's account.
system=$(. "${LAB_OS_RELEASE:-/etc/os-release}" 2>/dev/null && echo "${ID:-unknown}${VERSION_ID:+ $VERSION_ID}") || system=unknown
if [ "$system" != "debian 12" ] && [ -z "${LAB_ANY_SYSTEM:-}" ]; then
  echo "the lab needs root on Debian 12; this is $system (LAB_ANY_SYSTEM=1 tries all the same)" >&2; exit 1
fi
[ "$(id -u)" = 0 ] || { echo "the lab needs root on Debian 12; this is user $(id -un)" >&2; exit 1; }

. "$here/lock.sh"
# Who starts it in person keeps it: no hold.sh stops it.
[ -n "${LAB_HELD:-}" ] || rm -f "$LAB_DIR/started-by-hold"

packages=(mariadb-server-core mariadb-client-core rabbitmq-server memcached openssl openssh-client)

# The stamps are written last: without its stamp the virtual environment may be half made.
stamp=$(cat "$here"/{constraints,requirements}.txt | sha256sum)
drivers=$(cat "$here"/labdrivers/*.toml "$here"/labdrivers/labdrivers/*.py | sha256sum)
complete() { [ -x "$LAB_DIR/venv/bin/python3" ] && [ "$(cat "$LAB_DIR/venv/.stamp" 2>/dev/null)" = "$stamp" ]; }

# A Python to build the virtual environment from: 3.11, 3.12 or 3.13.
usable() { [ -x "$1" ] && "$1" -c 'import venv, ensurepip' 2>/dev/null; }
python=${LAB_PYTHON:-}
if [ -z "$python" ] && ! complete; then
  for v in 3.12 3.13 3.11; do
    for c in "${PYENV_ROOT:-$HOME/.pyenv}"/versions/$v.*/bin/python$v /usr/bin/python$v; do
      if usable "$c"; then python=$c; break 2; fi
    done
  done
  if [ -z "$python" ]; then packages+=(python3 python3-venv); python=/usr/bin/python3; fi
fi

policy=/usr/sbin/policy-rc.d
if grep -qs "openstack-lab/up.sh" $policy; then rm -f $policy; fi   # of a start that was killed
missing=()
for p in "${packages[@]}"; do
  [ "$(dpkg-query -W -f '${db:Status-Status}' "$p" 2>/dev/null)" = installed ] || missing+=("$p")
done
if [ ${#missing[@]} -gt 0 ]; then
  began=$SECONDS
  echo "installing Debian packages: ${missing[*]}"
  # The packages must not start services of their own.
  made=
  if [ ! -e $policy ]; then
    printf '#!/bin/sh\n# Of openstack-lab/up.sh\nexit 101\n' >$policy; chmod +x $policy; made=1
    trap 'rm -f $policy' EXIT
  fi
  export DEBIAN_FRONTEND=noninteractive
  { dpkg --configure -a &&   # packages of an installation that was killed
    apt-get update -q &&
    apt-get -o DPkg::Lock::Timeout=300 install -qy --no-install-recommends "${missing[@]}"
  } >"$LAB_DIR/apt.log" 2>&1 || { tail -20 "$LAB_DIR/apt.log"; exit 1; }
  [ -z "$made" ] || { rm -f $policy; trap - EXIT; }
  echo "installed in $((SECONDS - began)) s"
fi

pip=("$LAB_DIR/venv/bin/pip" --disable-pip-version-check -q)
logged() { "$@" >>"$LAB_DIR/pip.log" 2>&1 || { tail -20 "$LAB_DIR/pip.log"; exit 1; }; }
if ! complete; then
  began=$SECONDS
  echo "installing Python packages (a minute or two)"
  "$python" "$here/labctl.py" down   # what runs is from the old environment
  rm -f "$LAB_DIR/venv/.stamp" "$LAB_DIR/pip.log"
  rm -rf "$LAB_DIR/venv"
  logged "$python" -m venv "$LAB_DIR/venv"
  logged "${pip[@]}" install -U pip setuptools wheel
  logged "${pip[@]}" install -c "$here/constraints.txt" -r "$here/requirements.txt"
  echo "$stamp" >"$LAB_DIR/venv/.stamp"
  echo "installed in $((SECONDS - began)) s"
fi
if [ "$(cat "$LAB_DIR/venv/.drivers" 2>/dev/null)" != "$drivers" ]; then
  src=$LAB_DIR/labdrivers   # pip builds in the source folder: give it a copy
  rm -rf "$src"
  cp -r "$here/labdrivers" "$src"
  logged "${pip[@]}" install --no-deps --no-build-isolation --force-reinstall "$src"
  rm -rf "$src"
  echo "$drivers" >"$LAB_DIR/venv/.drivers"
fi
exec "$LAB_DIR/venv/bin/python3" "$here/labctl.py" up
