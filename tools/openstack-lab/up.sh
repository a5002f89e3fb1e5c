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

mkdir -p "$LAB_DIR"
# One start at a time; the lock goes with this process and what it becomes.
exec 9>"$LAB_DIR/lock"
flock -n 9 || { echo "another start is under way, waiting for it"; flock 9; }

packages=(mariadb-server-core mariadb-client-core rabbitmq-server memcached openssl openssh-client)

# A Python to build the virtual environment from: 3.11, 3.12 or 3.13.
usable() { [ -x "$1" ] && "$1" -c 'import venv, ensurepip' 2>/dev/null; }
python=${LAB_PYTHON:-}
if [ -z "$python" ] && [ ! -x "$LAB_DIR/venv/bin/python3" ]; then
  for v in 3.12 3.13 3.11; do
    for c in "${PYENV_ROOT:-$HOME/.pyenv}"/versions/$v.*/bin/python$v /usr/bin/python$v; do
      if usable "$c"; then python=$c; break 2; fi
    done
  done
  if [ -z "$python" ]; then packages+=(python3 python3-venv); python=/usr/bin/python3; fi
fi

missing=()
for p in "${packages[@]}"; do
  [ "$(dpkg-query -W -f '${db:Status-Status}' "$p" 2>/dev/null)" = installed ] || missing+=("$p")
done
if [ ${#missing[@]} -gt 0 ]; then
  began=$SECONDS
  echo "installing Debian packages: ${missing[*]}"
  # The packages must not start services of their own.
  policy=/usr/sbin/policy-rc.d made=
  if [ ! -e $policy ]; then
    printf '#!/bin/sh\nexit 101\n' >$policy; chmod +x $policy; made=1
    trap 'rm -f $policy' EXIT
  fi
  { apt-get update -q &&
    DEBIAN_FRONTEND=noninteractive apt-get install -qy --no-install-recommends "${missing[@]}"
  } >"$LAB_DIR/apt.log" 2>&1 || { tail -20 "$LAB_DIR/apt.log"; exit 1; }
  [ -z "$made" ] || { rm -f $policy; trap - EXIT; }
  echo "installed in $((SECONDS - began)) s"
fi

stamp=$(cat "$here"/{constraints,requirements}.txt "$here"/labdrivers/*.toml "$here"/labdrivers/labdrivers/*.py | sha256sum)
if [ "$(cat "$LAB_DIR/venv/.stamp" 2>/dev/null)" != "$stamp" ]; then
  began=$SECONDS
  echo "installing Python packages (a minute or two)"
  [ -x "$LAB_DIR/venv/bin/python3" ] || "$python" -m venv "$LAB_DIR/venv"
  pip=("$LAB_DIR/venv/bin/pip" --disable-pip-version-check -q)
  src=$(mktemp -d)   # pip builds in the source folder: give it a copy
  cp -r "$here/labdrivers" "$src/"
  { "${pip[@]}" install -U pip setuptools wheel &&
    "${pip[@]}" install -c "$here/constraints.txt" -r "$here/requirements.txt" &&
    "${pip[@]}" install --no-deps --no-build-isolation --force-reinstall "$src/labdrivers"
  } >"$LAB_DIR/pip.log" 2>&1 || { tail -20 "$LAB_DIR/pip.log"; exit 1; }
  rm -rf "$src"
  echo "$stamp" >"$LAB_DIR/venv/.stamp"
  echo "installed in $((SECONDS - began)) s"
fi
exec "$LAB_DIR/venv/bin/python3" "$here/labctl.py" up
