/* Parts of mat_defer in files of their own */
#pragma once
#include "mat_util.h"

/* Short rows on the host: packed sooner where their lengths do not repeat */
PetscErrorCode MatDeferTestLengths(void);
