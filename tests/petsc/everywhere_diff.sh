#!/usr/bin/env bash
# PETSc's petscdiff, for everywhere.sh and everywhere_gpu.sh. The last argument is what a program has printed, from which the lines of our view are taken, and those about functions left on
# factors (docs/design.md), and options of the environment; in it and in what is expected, the argument before, the names of types become those of the host. EVERYWHERE_PETSCDIFF is the real one.
expected=${*: -2:1} printed=${*: -1}
arguments=("${@:1:$#-2}")
types=(-e 's/aij\(tc\)\{0,1\}cusparse/aij/g' -e 's/densecuda/dense/g' -e 's/\(seq\|mpi\)cuda/\1/g')
if [ -f "$expected" ]; then
  sed "${types[@]}" "$expected" >"$PWD/$(basename "$expected").expected"
  expected=$PWD/$(basename "$expected").expected
fi
[ "$printed" = /dev/null ] || {
  # a line of ours and those below it, which begin further to the right
  awk '{ match($0, /^ */) } inside && RLENGTH >= inside { next } { inside = 0 } /^ *aijtccusparse: / { inside = RLENGTH + 1; next } { print }' "$printed" |
    sed -e '/function name: MatProductSetFromOptions_seqaij_seqdense/d' -e '/(source: environment)$/d' "${types[@]}" >"$printed.plain"
  printed=$printed.plain
}
exec "$EVERYWHERE_PETSCDIFF" "${arguments[@]}" "$expected" "$printed"
