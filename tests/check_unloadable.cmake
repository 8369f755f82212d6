# A CUDA library that cannot be used, one that is no library and one of another build: the front library, alone beside it, uses the host backend, says why, and the results are right.
#   cmake -DFRONT=libaijtccusparse.so -DOTHER=libother_build.so -DWORK=folder -DPROGRAM=mat_solve -P check_unloadable.cmake
file(REMOVE_RECURSE ${WORK})
file(MAKE_DIRECTORY ${WORK})
file(COPY ${FRONT} DESTINATION ${WORK} FOLLOW_SYMLINK_CHAIN)
set(beside ${WORK}/libaijtccusparse_cuda.so)
set(ENV{LD_LIBRARY_PATH} "${WORK}:$ENV{LD_LIBRARY_PATH}")

function(expect why)
  execute_process(COMMAND ${PROGRAM} -use_gpu_aware_mpi 0 -info OUTPUT_VARIABLE output ERROR_VARIABLE output RESULT_VARIABLE status)
  string(REGEX MATCH "aijtccusparse uses the host backend: [^\n]*" reason "${output}")
  message("${reason}")
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "status ${status}:\n${output}")
  elseif(NOT reason MATCHES "${why}|PETSc is configured without CUDA")
    message(FATAL_ERROR "expected: ${why}")
  endif()
endfunction()

file(WRITE ${beside} "this is no library")
expect("the CUDA library does not load: .*${beside}")
file(COPY_FILE ${OTHER} ${beside})
expect("${beside} is of another build than this library")
