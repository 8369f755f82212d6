/* mat_warm_pages.c */
#pragma once
#include "mat_util.h"

PetscErrorCode CheckHugePages(const char[], PetscBool);
