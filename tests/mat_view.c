/*
  What a matrix and its view tell.
*/
#include "mat_util.h"
#include <stdlib.h>
#include <string.h>

PetscErrorCode MatTestIsCUDA(Mat A, PetscBool *cuda)
{
  MatAIJTCCUSPARSEBackend backend;

  PetscFunctionBeginUser;
  PetscCall(MatAIJTCCUSPARSEGetBackend(A, &backend));
  *cuda = (PetscBool)(backend == MAT_AIJTCCUSPARSE_BACKEND_CUDA);
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatTestHasCUDA(PetscBool *cuda)
{
  Mat A;

  PetscFunctionBeginUser;
  PetscCall(MatCreate(PETSC_COMM_WORLD, &A));
  PetscCall(MatSetSizes(A, 1, 1, PETSC_DETERMINE, PETSC_DETERMINE));
  PetscCall(MatSetType(A, MATAIJTCCUSPARSE));
  PetscCall(MatTestIsCUDA(A, cuda));
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatTestViewText(Mat A, PetscViewerFormat format, char **text)
{
  PetscViewer    viewer;
  size_t         size;
  FILE          *file = open_memstream(text, &size);
  PetscErrorCode code;

  PetscFunctionBeginUser;
  PetscCheck(file, PETSC_COMM_SELF, PETSC_ERR_MEM, "No memory for a text");
  PetscCall(PetscViewerASCIIOpenWithFILE(PETSC_COMM_WORLD, file, &viewer));
  PetscCall(PetscViewerPushFormat(viewer, format));
  PetscCall(PetscPushErrorHandler(PetscReturnErrorHandler, NULL));
  code = MatView(A, viewer);
  PetscCall(PetscPopErrorHandler());
  PetscCall(PetscViewerPopFormat(viewer));
  PetscCall(PetscViewerDestroy(&viewer));
  fclose(file);
  if (code != PETSC_SUCCESS) {
    free(*text);
    *text = NULL;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatTestViewHas(Mat A, const char text[], PetscBool *has)
{
  char *all;
  int   found;

  PetscFunctionBeginUser;
  PetscCall(MatTestViewText(A, PETSC_VIEWER_ASCII_INFO_DETAIL, &all));
  PetscCheck(all, PETSC_COMM_WORLD, PETSC_ERR_LIB, "MatView() failed");
  found = strstr(all, text) != NULL; /* the text is the first process's */
  free(all);
  PetscCallMPI(MPI_Bcast(&found, 1, MPI_INT, 0, PETSC_COMM_WORLD));
  *has = found ? PETSC_TRUE : PETSC_FALSE;
  PetscFunctionReturn(PETSC_SUCCESS);
}
