# Sourced by pair.sh and stages.sh: stages of run.sh within a time, whose results are kept while they run and as each ends. Expects out, all (an empty folder) and limit (seconds after the start).
# shellcheck shell=bash disable=SC2154

# the stages that run.sh of that folder is given, into a folder of that name; those that come to their turn too late are left out
stages() { # name, folder of run.sh, seconds that it takes at least, stages
  local name=$1 folder=$2 least=$3
  shift 3
  mkdir -p "$all/$name"
  touch "$all/$name/results.tsv"
  if [ $((limit - SECONDS)) -le "$least" ]; then
    printf '%s: left out after %s s\n' "$name" "$SECONDS" | tee "$all/$name.log"
    printf '%s\n' "$name" >>"$all/missing"
    return
  fi
  while sleep 15; do keep; done >/dev/null 2>&1 & # should the machine go in the middle of a stage
  local keeper=$!
  OUT=$all/$name timeout -k 5 $((limit - SECONDS)) "$folder/run.sh" "$@" >"$all/$name.log" 2>&1 || printf '%s\n' "$name" >>"$all/missing"
  kill "$keeper" && wait "$keeper" 2>/dev/null
  printf '%s: until %s s; %s\n' "$name" "$SECONDS" "$(tail -n 1 "$all/$name.log")"
  keep
}

# what there is so far, should the machine go before the end; tar's status is 1 where another stage writes at the same time
keep() (
  flock 9
  { tar -czf "$all.tgz" -C "$all" . || [ $? = 1 ]; } && mv "$all.tgz" "$out/results.tgz"
) 9>"$all.lock"

# failures and means, and which stages failed, were cut off or left out; the status says whether there are any
tell() {
  grep -hP '\tfailed\t' "$all"/*/results.tsv | head -n 40
  grep -h ' times as fast as ' "$all"/*.log
  [ -e "$all/missing" ] || return 0
  printf 'failed, cut off or left out: %s\n' "$(paste -sd ' ' "$all/missing")"
  return 1
}
