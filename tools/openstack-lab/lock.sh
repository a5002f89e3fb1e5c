# Sourced by up.sh and down.sh: one of them at a time, and none while hold.sh of another process uses the lab. The kernel
# releases the locks of a killed script; an apt or pip that outlives it still has them, so the next start waits for its end.
mkdir -p "$LAB_DIR"
if [ -z "${LAB_HELD:-}" ]; then
  exec 8>"$LAB_DIR/use.lock"
  flock -n 8 || { echo "the lab is in use, waiting for its end"; flock 8; }
fi
exec 9>"$LAB_DIR/lock"
flock -n 9 || { echo "another start or stop of the lab is under way, waiting for it"; flock 9; }
