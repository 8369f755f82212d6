#pragma once
#include "mat_util.h"

/* What the options choose, what the view says about it, and the choice by time on a GPU */
PetscErrorCode CheckChoices(void);

/* Products of one matrix on streams that do not wait for each other */
PetscErrorCode CheckStreams(void);
