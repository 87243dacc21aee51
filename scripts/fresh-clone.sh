#!/usr/bin/env bash
# What a newcomer waits for: clones HEAD into a folder of its own, runs `npm start` there until the first push is in its
# log, then `npm test`, and prints the seconds of both. Ends with 1 if either fails or takes too long, and takes the clone
# and every process of its own away. `fresh-clone.sh start` or `fresh-clone.sh test` does only that one.
# With npm_config_cache set to an empty folder the packages come over the network, as they do for a newcomer.
set -euo pipefail
# Gives each command in the background a process group, so that all of it can be ended and nothing else.
set -m

START_LIMIT_S=300
TEST_LIMIT_S=900
STOP_LIMIT_S=30

which=${1:-both}
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
folder=$(mktemp -d "${TMPDIR:-/tmp}/evenkeel-clone.XXXXXX")
group=

clean_up() {
  [ -z "$group" ] || stop
  rm -rf "$folder"
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# Asks the group to end, and kills it if it does not.
stop() {
  local waited=0
  # So that the shell does not report how it ended.
  disown "$group" 2>/dev/null || true
  kill -TERM "-$group" 2>/dev/null || true
  while kill -0 "-$group" 2>/dev/null && [ "$waited" -lt $((STOP_LIMIT_S * 10)) ]; do
    sleep 0.1
    waited=$((waited + 1))
  done
  kill -KILL "-$group" 2>/dev/null || true
  group=
}

# seconds_until LIMIT LOG CONDITION…: prints how long it takes until CONDITION holds; fails when that is too long, or when
# the command in the background has ended without it.
seconds_until() {
  local limit=$1 log=$2 from deadline
  shift 2
  from=$(now_ms)
  deadline=$((SECONDS + limit))
  while ! "$@"; do
    if [ "$SECONDS" -ge "$deadline" ] || { is_over && ! "$@"; }; then
      tail -n 40 "$log" >&2
      return 1
    fi
    sleep 0.05
  done
  local ms=$(($(now_ms) - from))
  printf '%d.%d\n' $((ms / 1000)) $((ms % 1000 / 100))
}

now_ms() {
  node -p 'Date.now()'
}

is_over() {
  ! kill -0 "-$group" 2>/dev/null
}

has_pushed() {
  grep -qs push.sent "$folder/start.log"
}

run() {
  (cd "$folder/evenkeel" && exec npm "$1" >"$folder/$1.log" 2>&1) &
  group=$!
}

time_start() {
  local seconds
  run start
  seconds=$(seconds_until "$START_LIMIT_S" "$folder/start.log" has_pushed) || fail "npm start showed no push"
  echo "npm start: first push after $seconds s"
  stop
}

time_test() {
  local seconds
  run test
  seconds=$(seconds_until "$TEST_LIMIT_S" "$folder/test.log" is_over) || fail "npm test took longer than $TEST_LIMIT_S s"
  if ! wait "$group"; then
    group=
    tail -n 80 "$folder/test.log" >&2
    fail "npm test failed after $seconds s"
  fi
  group=
  echo "npm test: $seconds s"
}

fail() {
  echo "fresh-clone: $1" >&2
  exit 1
}

git clone --quiet --no-hardlinks "$root" "$folder/evenkeel"
case $which in
  start) time_start ;;
  test) time_test ;;
  both)
    time_start
    time_test
    ;;
  *) fail "usage: fresh-clone.sh [start | test]" ;;
esac
