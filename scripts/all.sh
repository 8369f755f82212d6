#!/usr/bin/env bash
# Packages, PETSc, release build: prints the folder with lib/libaijtccusparse.so
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
"$root/scripts/packages.sh"
petsc=$("$root/scripts/petsc.sh" opt)
read -r PETSC_DIR PETSC_ARCH <<<"$petsc"
export PETSC_DIR PETSC_ARCH
"$root/scripts/build.sh" release
