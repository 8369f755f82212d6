#!/usr/bin/env bash
# PETSc's petscdiff, for everywhere.sh: the last argument is what a program has printed, from which the lines of our view are taken, and those about functions left on factors
# (docs/design.md). EVERYWHERE_PETSCDIFF is the real one.
printed=${*: -1}
arguments=("${@:1:$#-1}")
[ "$printed" = /dev/null ] || {
  sed -e '/aijtccusparse: backend/d' -e '/^ *format [a-z]*, kernel/d' -e '/slots and .* bytes per nonzero/d' -e '/^ *columns shift [0-9]*%, u8 /d' -e '/^ *transpose: \(hits\|format\|[0-9]\)/d' -e '/nothing packed yet/d' -e '/products\{0,1\} straight from CSR/d' -e '/dense blocks: /d' \
    -e '/function name: MatProductSetFromOptions_seqaij_seqdense/d' "$printed" >"$printed.plain"
  printed=$printed.plain
}
exec "$EVERYWHERE_PETSCDIFF" "${arguments[@]}" "$printed"
