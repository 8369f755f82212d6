/*
  Factors: those of small matrices on the GPU, and incomplete ones of others, are the host's and solve whatever vectors and blocks there are, and wherever the values were
  changed last; incomplete ones of larger matrices, of those that do not want the host's, and where rows do not wait for each other, are the GPU's, of ours; others, and all on the host, are the parent's.
*/
#include "mat_factor.h"

static char help[] = "Tests factors of MATAIJTCCUSPARSE.\n\n";

static const Kind kinds[] = {
  {"LU",         MAT_FACTOR_LU,       0, MATORDERINGND     },
  {"LU, as is",  MAT_FACTOR_LU,       0, MATORDERINGNATURAL},
  {"ILU(0)",     MAT_FACTOR_ILU,      0, MATORDERINGNATURAL},
  {"ILU(1)",     MAT_FACTOR_ILU,      1, MATORDERINGNATURAL},
  {"ILU(0) RCM", MAT_FACTOR_ILU,      0, MATORDERINGRCM    },
  {"ILU(0), halves", MAT_FACTOR_ILU,  0, HALVES            },
  {"ILU(2) RCM", MAT_FACTOR_ILU,      2, MATORDERINGRCM    },
  {"Cholesky",   MAT_FACTOR_CHOLESKY, 0, MATORDERINGND     },
  {"ICC(0)",     MAT_FACTOR_ICC,      0, MATORDERINGNATURAL},
  {"ICC(1)",     MAT_FACTOR_ICC,      1, MATORDERINGNATURAL},
  {"ICC(0) RCM", MAT_FACTOR_ICC,      0, MATORDERINGRCM    },
  {"ICC(2) RCM", MAT_FACTOR_ICC,      2, MATORDERINGRCM    },
};

/* Whose factors of a matrix are the host's? */
typedef struct {
  PetscBool complete, same_pattern, reordered, filled; /* those of ILU(0) and ICC(0), the same in other orders, and with fill */
} HostFactors;

/* Is one of that kind the host's, and if it is not, is it ours? */
static PetscErrorCode Whose(const Kind *kind, const HostFactors *hosts, PetscBool *host, PetscBool *own)
{
  PetscBool natural;

  PetscFunctionBeginUser;
  PetscCall(PetscStrcmp(kind->ordering, MATORDERINGNATURAL, &natural));
  *own  = (PetscBool)(kind->type == MAT_FACTOR_ILU || kind->type == MAT_FACTOR_ICC);
  *host = !*own ? hosts->complete : kind->levels > 0 ? hosts->filled : natural ? hosts->same_pattern : hosts->reordered;
  if (*host) *own = PETSC_FALSE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  A matrix whose factors are the host's, or are not: then solving in another order is what they may differ by, but for ILU, whose bits are the host's where that has no nodes; `bind`: bound to the CPU. On the GPU the
  former, and ours, give the same numbers wherever vectors are, those of the host included, which the parent's do not take.
*/
static PetscErrorCode TestMatrix(const char name[], PetscInt size, const char what[], HostFactors hosts, PetscBool bind)
{
  const PetscBool slow      = (PetscBool)(PetscDefined(USE_REAL_SINGLE) && strcmp(name, "stencil7") == 0 && size > 16); /* LU as is, half a minute: its fill goes down to denormal numbers; "pairs" have it with many rows */
  const PetscReal tolerance = 1000 * PETSC_MACHINE_EPSILON; /* the condition is below 10, so that two orders may differ by some 30 m of it */
  Mat             ours, plain, block, plain_block, numbers;
  PetscBool       cuda, block_is_ours, nodes;
  PetscInt        m;
  PetscRandom     random;

  PetscFunctionBeginUser;
  PetscCall(Generate(name, size, MATAIJTCCUSPARSE, &ours, &block));
  PetscCall(Generate(name, size, MATAIJ, &plain, &plain_block));
  PetscCall(PetscStrcmp(name, "elasticity", &nodes));
  PetscCall(MatIsAIJTCCUSPARSE(block, &block_is_ours));
  PetscCall(MatTestFact(block_is_ours, "%s, %s: the block of a process is ours before there is a product", name, what));
  if (bind) PetscCall(MatBindToCPU(ours, PETSC_TRUE));
  PetscCall(MatTestIsCUDA(ours, &cuda));
  PetscCall(MatGetSize(block, &m, NULL));
  PetscCall(MatCreateSeqDense(PETSC_COMM_SELF, m, COLUMNS, NULL, &numbers));
  PetscCall(PetscRandomCreate(PETSC_COMM_SELF, &random));
  PetscCall(MatSetRandom(numbers, random));
  PetscCall(PetscRandomDestroy(&random));
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(kinds); k++) {
    Mat               F, expected;
    PetscErrorCodeFn *solve_block;
    PetscReal         host[2] = {0, 0}, device[2] = {0, 0}, bits = 0;
    PetscBool         so = PETSC_TRUE, right_solver, small = PETSC_FALSE, own = PETSC_FALSE;
    MatSolverType     solver;

    if (slow && kinds[k].type == MAT_FACTOR_LU && strcmp(kinds[k].ordering, MATORDERINGNATURAL) == 0) continue;
    if (strcmp(kinds[k].ordering, HALVES) == 0 && strcmp(name, "pairs") != 0) continue; /* others have no diagonal then */
    PetscCall(Whose(&kinds[k], &hosts, &small, &own));
    if (!cuda) own = PETSC_FALSE;
    PetscCall(Factor(&kinds[k], NULL, block, &F));
    PetscCall(Factor(&kinds[k], NULL, plain_block, &expected));
    for (int again = 0; again < 2; again++) { /* the second time with values that were changed where the matrix is */
      if (again) {
        PetscCall(MatScale(ours, 1.5));
        PetscCall(MatScale(plain, 1.5));
        PetscCall(Numeric(&kinds[k], block, F));
        PetscCall(Numeric(&kinds[k], plain_block, expected));
      }
      if (!cuda || small || own) PetscCall(Solves(F, expected, numbers, VECSEQ, MATSEQDENSE, PETSC_TRUE, &host[again]));
      if (cuda) PetscCall(Solves(F, expected, numbers, VECSEQCUDA, MATSEQDENSECUDA, (PetscBool)(small || own || !again), &device[again]));
      if (cuda && (small || own) && device[again] != host[again]) so = PETSC_FALSE;
      if (own && !nodes && kinds[k].type == MAT_FACTOR_ILU) {
        PetscCall(Solves(F, expected, numbers, VECSEQCUDA, MATSEQDENSECUDA, PETSC_FALSE, &bits));
        if (bits != 0) so = PETSC_FALSE;
      }
      if (host[again] > tolerance || device[again] > tolerance) so = PETSC_FALSE;
    }
    PetscCall(MatGetOperation(F, MATOP_MAT_SOLVE, &solve_block));
    if (cuda && kinds[k].type == MAT_FACTOR_LU && (solve_block != NULL) != small) so = PETSC_FALSE;
    PetscCall(MatFactorGetSolverType(F, &solver));
    PetscCall(PetscStrcmp(solver, own ? MATSOLVERAIJTCCUSPARSE : cuda && !small ? MATSOLVERCUSPARSE : MATSOLVERPETSC, &right_solver));
    if (!right_solver) so = PETSC_FALSE;
    PetscCall(MatTestFact(so, "%s, %s: %s", name, what, kinds[k].name));
    if (!so) PetscCall(PetscPrintf(PETSC_COMM_SELF, "  vectors of the host %g, with new values %g, of the GPU %g, %g; to the bits of the host %g; factors of %s\n", (double)host[0], (double)host[1], (double)device[0], (double)device[1], (double)bits, solver));
    PetscCall(MatDestroy(&F));
    PetscCall(MatDestroy(&expected));
  }
  PetscCall(MatDestroy(&ours));
  PetscCall(MatDestroy(&plain));
  PetscCall(MatDestroy(&numbers));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Who names a solver gets that one */
static PetscErrorCode TestByName(const char name[], PetscInt size, MatFactorType type, MatSolverType asked)
{
  Mat           ours, block, F;
  PetscBool     cuda, same, host_means;
  MatSolverType solver;

  PetscFunctionBeginUser;
  PetscCall(Generate(name, size, MATAIJTCCUSPARSE, &ours, &block));
  PetscCall(MatTestIsCUDA(ours, &cuda));
  PetscCall(PetscStrcmp(asked, MATSOLVERPETSC, &same));
  PetscCall(PetscStrcmp(asked, MATSOLVERAIJTCCUSPARSE, &host_means));
  if (cuda || same || host_means) { /* the host has no other, but knows the name of ours */
    PetscCall(MatGetFactor(block, asked, type, &F));
    PetscCall(MatFactorGetSolverType(F, &solver));
    PetscCall(PetscStrcmp(solver, host_means && !cuda ? MATSOLVERPETSC : asked, &same));
    PetscCall(MatTestFact(same, "%s: factor of %s, asked for by name: of %s", name, asked, solver));
    PetscCall(MatDestroy(&F));
  }
  PetscCall(MatDestroy(&ours));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A chain with more rows than the host is looked at for beforehand: the GPU finds out, and leaves it to the host; who names ours has it there */
static PetscErrorCode TestChain(MatSolverType asked)
{
  const Kind    kind = {"", MAT_FACTOR_ILU, 0, MATORDERINGNATURAL};
  Mat           ours, plain, block, plain_block, F, expected, numbers;
  PetscBool     cuda, right;
  PetscInt      m;
  PetscReal     difference;
  MatSolverType solver;

  PetscFunctionBeginUser;
  PetscCall(Generate("chain", 60000, MATAIJTCCUSPARSE, &ours, &block));
  PetscCall(Generate("chain", 60000, MATAIJ, &plain, &plain_block));
  PetscCall(MatTestIsCUDA(ours, &cuda));
  PetscCall(MatGetSize(block, &m, NULL));
  PetscCall(MatCreateSeqDense(PETSC_COMM_SELF, m, COLUMNS, NULL, &numbers));
  PetscCall(MatSetRandom(numbers, NULL));
  PetscCall(Factor(&kind, asked, block, &F));
  PetscCall(Factor(&kind, NULL, plain_block, &expected));
  PetscCall(Solves(F, expected, numbers, VECSEQ, MATSEQDENSE, PETSC_FALSE, &difference));
  PetscCall(MatFactorGetSolverType(F, &solver));
  PetscCall(PetscStrcmp(solver, cuda && asked ? asked : MATSOLVERPETSC, &right));
  PetscCall(MatTestFact(right && difference == 0, "a chain of %" PetscInt_FMT " rows, %s: factors of %s, solutions differ by %g", m, asked ? "ours by name" : "nobody named", solver, (double)difference));
  PetscCall(MatDestroy(&F));
  PetscCall(MatDestroy(&expected));
  PetscCall(MatDestroy(&ours));
  PetscCall(MatDestroy(&plain));
  PetscCall(MatDestroy(&numbers));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **args)
{
  const char *const solvers[] = {PCILU, PCICC, PCLU, PCCHOLESKY};
  const HostFactors all = {PETSC_TRUE, PETSC_TRUE, PETSC_TRUE, PETSC_TRUE}, none = {PETSC_FALSE}, complete = {.complete = PETSC_TRUE}, incomplete = {PETSC_FALSE, PETSC_TRUE, PETSC_TRUE, PETSC_TRUE}, filled = {.filled = PETSC_TRUE};
  PetscMPIInt size;

  PetscCall(MatTestBegin(&argc, &args, help));
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  PetscCall(TestMatrix("stencil7", 6, "small", all, PETSC_FALSE));
  PetscCall(TestMatrix("elasticity", 4, "small", all, PETSC_FALSE));
  PetscCall(TestMatrix("pairs", 300, "rows that do not wait", complete, PETSC_FALSE));
  PetscCall(TestMatrix("stencil7", 6, "bound to the CPU", all, PETSC_TRUE));
  if (size == 1) { /* else blocks of the former are small, too */
    PetscCall(TestMatrix("stencil7", 18, "many rows", filled, PETSC_FALSE));
    PetscCall(TestMatrix("elasticity", 8, "many entries", incomplete, PETSC_FALSE));
    PetscCall(TestMatrix("pairs", 2600, "many rows that do not wait", none, PETSC_FALSE));
    PetscCall(TestChain(NULL));
    PetscCall(TestChain(MATSOLVERAIJTCCUSPARSE));
  }
  PetscCall(TestByName("stencil7", 6, MAT_FACTOR_LU, MATSOLVERCUSPARSE));
  PetscCall(TestByName("pairs", 300, MAT_FACTOR_ILU, MATSOLVERPETSC));
  PetscCall(TestByName("stencil7", 6, MAT_FACTOR_ILU, MATSOLVERAIJTCCUSPARSE));
  PetscCall(TestByName("stencil7", 6, MAT_FACTOR_ICC, MATSOLVERAIJTCCUSPARSE));
  for (size_t i = 0; i < PETSC_STATIC_ARRAY_LENGTH(solvers); i++) {
    PetscCall(TestBeforeAssembly(solvers[i], PETSC_FALSE));
    PetscCall(TestBeforeAssembly(solvers[i], PETSC_TRUE));
  }
  PetscCall(PetscOptionsSetValue(NULL, "-mat_aijtccusparse_host_factors", "false"));
  PetscCall(TestMatrix("stencil7", 6, "small, but the GPU's", none, PETSC_FALSE));
  PetscCall(TestMatrix("elasticity", 4, "small, but the GPU's", none, PETSC_FALSE));
  for (MatFactorShiftType shift = MAT_SHIFT_NONE; shift <= MAT_SHIFT_INBLOCKS; shift++) {
    for (PetscInt levels = 0; levels < 2; levels++) {
      PetscCall(TestPivots(MAT_FACTOR_ILU, levels, shift, 0.0));
      PetscCall(TestPivots(MAT_FACTOR_ILU, levels, shift, -3.0));
      PetscCall(TestPivots(MAT_FACTOR_ICC, levels, shift, 0.0));
      PetscCall(TestPivots(MAT_FACTOR_ICC, levels, shift, -3.0));
    }
  }
  for (int keep = 0; keep < 2; keep++) {
    for (int columns = 0; columns < 2; columns++) {
      PetscCall(TestZeroed(MAT_FACTOR_ILU, 0, (PetscBool)columns, (PetscBool)keep));
      PetscCall(TestZeroed(MAT_FACTOR_ILU, 1, (PetscBool)columns, (PetscBool)keep));
      PetscCall(TestZeroed(MAT_FACTOR_ICC, 0, (PetscBool)columns, (PetscBool)keep));
      PetscCall(TestZeroed(MAT_FACTOR_ICC, 1, (PetscBool)columns, (PetscBool)keep));
    }
  }
  PetscCall(TestBlocks(MAT_FACTOR_ILU, 0, MATORDERINGNATURAL, "stencil7", 8));
  PetscCall(TestBlocks(MAT_FACTOR_ILU, 1, MATORDERINGRCM, "stencil27", 6));
  PetscCall(TestBlocks(MAT_FACTOR_ILU, 1, MATORDERINGNATURAL, "elasticity", 5));
  PetscCall(TestBlocks(MAT_FACTOR_ICC, 0, MATORDERINGNATURAL, "stencil27", 6));
  PetscCall(TestBlocks(MAT_FACTOR_ICC, 1, MATORDERINGND, "stencil7", 8));
  PetscCall(TestHalves(0, MATORDERINGNATURAL, "stencil27", 6));
  PetscCall(TestHalves(1, MATORDERINGRCM, "stencil7", 8));
  PetscCall(PetscOptionsClearValue(NULL, "-mat_aijtccusparse_host_factors"));
  return MatTestEnd();
}
