#!/bin/bash
# hold.sh COMMAND...: starts the lab, runs the command with no other hold.sh, up.sh or down.sh beside it, and stops the
# lab again, unless somebody had started it with up.sh. Ends with the command's status.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
export LAB_DIR=${LAB_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/openstack-lab}
[ -z "${LAB_HELD:-}" ] || exec "$@"

mkdir -p "$LAB_DIR"
exec 8>"$LAB_DIR/use.lock"   # no child gets it: what outlives this process must not hold it
flock -n 8 || { echo "another process uses the lab, waiting for its end"; flock 8; }
export LAB_HELD=1
mine=$LAB_DIR/started-by-hold command=

finish() {
  [ -z "$command" ] || { kill "$command" 2>/dev/null && wait "$command" || true; }
  [ ! -e "$mine" ] || "$here/down.sh" 8>&-
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

if [ -e "$mine" ]; then   # we have the lock, so whoever wrote it was killed
  echo "the lab was left by a process that was killed: deleting its data"
  "$here/down.sh" --wipe 8>&-
fi
python3 "$here/labctl.py" running || touch "$mine"
"$here/up.sh" 8>&-
setpriv --pdeathsig TERM "$@" <&0 8>&- & # without <&0 bash gives it /dev/null
command=$!
wait "$command" && status=0 || status=$?
command=
exit "$status"
