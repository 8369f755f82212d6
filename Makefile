# make demo    provides what is missing (packages, PETSc), builds, solves with PETSc's tutorials and compares with the parent types
# make check   the same preparation, then all tests
# make         the same preparation, then the build alone
#
# Variables: PETSC_DIR, PETSC_ARCH (use this PETSc, install nothing), PETSC_RELEASE=3.26.1, CUDA_ARCH=80,90, WITH_CUDA=0, JOBS, AIJTCCUSPARSE_CACHE,
# AIJTCCUSPARSE_MATRICES. CMake users: CMakePresets.json.
variables := PETSC_DIR PETSC_ARCH PETSC_RELEASE PETSC_CONFIGURE_EXTRA CUDA_ARCH WITH_CUDA JOBS AIJTCCUSPARSE_CACHE AIJTCCUSPARSE_MATRICES
export $(foreach v,$(variables),$(if $(filter-out undefined,$(origin $(v))),$(v)))

.PHONY: all check demo host sanitize clean
all: ; @scripts/all.sh
check: ; @scripts/check.sh
demo: ; @scripts/demo.sh

# the core and its unit tests, without PETSc; with sanitizers
host sanitize:
	cmake --preset $@ && cmake --build --preset $@ && ctest --preset $@

clean: ; rm -rf build
