/* mat_warm_pages.c, mat_warm_send.c */
#pragma once
#include "mat_util.h"

PetscErrorCode CheckHugePages(const char[], PetscBool);
PetscErrorCode CheckSending(PetscBool);
