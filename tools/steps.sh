# For scripts that run a list of steps: each is timed, all run, and a table ends the run.
#
#   . tools/steps.sh
#   step NAME COMMAND...     runs the command, notes its time and whether it succeeded
#   skip NAME REASON         notes a step that cannot run here
#   finish                   prints the table; fails if a step failed

declare -a step_table=()
step_failures=0

step() {
  local name=$1 start=$SECONDS result=passed
  shift
  echo "=== $name: $*"
  "$@" || { result=FAILED; step_failures=$((step_failures + 1)); }
  step_table+=("$(printf '%-34s %-8s %5d s' "$name" "$result" $((SECONDS - start)))")
  echo "=== ${step_table[-1]}"
}

skip() {
  step_table+=("$(printf '%-34s %-8s %s' "$1" skipped "$2")")
  echo "=== ${step_table[-1]}"
}

finish() {
  printf '\n'
  printf '%s\n' "${step_table[@]}"
  printf 'total %d s\n' "$SECONDS"
  ((step_failures == 0))
}
