/* What the parts of mat_mpi do */
#pragma once
#include "mat_util.h"

/* mat_mpi_exchange.c */
PetscErrorCode TestExchange(void);
