# The sources that know PETSc compile for one without CUDA, too, whatever this one has: its petscconf.h without all that names CUDA or devices comes first, and the compiler looks at each
# source without making anything of it.
#   cmake -DCOMPILER=cc -DINCLUDES=folder|folder -DCONF=petscconf.h -DROOT=folder -DWORK=folder -P check_without_cuda.cmake
cmake_minimum_required(VERSION 3.24)
file(REMOVE_RECURSE ${WORK})
file(READ ${CONF} text)
string(REGEX REPLACE "[^\n]*(CUDA|CUPM|DEVICE|NVCC|NVTX)[^\n]*\n" "" text "${text}")
file(WRITE ${WORK}/petscconf.h "${text}")
string(REPLACE "|" ";-I" includes "-I${WORK}|${INCLUDES}|${ROOT}/include")
file(GLOB sources ${ROOT}/src/petsc/*.c ${ROOT}/src/petsc/parallel/*.c ${ROOT}/src/petsc/solve/*.c ${ROOT}/tests/mat_*.c)
foreach(source ${sources})
  execute_process(COMMAND ${COMPILER} -fsyntax-only -std=gnu17 -Wall -Wextra -Werror ${includes} ${source} RESULT_VARIABLE status ERROR_VARIABLE output)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "${source} does not compile for a PETSc without CUDA:\n${output}")
  endif()
endforeach()
list(LENGTH sources num)
message("${num} sources compile for a PETSc without CUDA")
