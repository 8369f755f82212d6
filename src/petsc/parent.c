/*
  The parent types: their constructors and operations, and the propagation of our type to matrices that PETSc creates by the parent's name.
*/
#include "aijtccusparseimpl.h"

static PetscErrorCode MatDestroy_SeqAIJTC(Mat);
static PetscErrorCode MatDestroy_MPIAIJTC(Mat);
#if PetscDefined(HAVE_CUDA)
static PetscErrorCode MatDestroy_SeqAIJCUSPARSETC(Mat);
static PetscErrorCode MatDestroy_MPIAIJCUSPARSETC(Mat);
#endif

/* Indexed by 2 * cuda + mpi */
static MatTCParent parents[] = {
  {.type = MATSEQAIJ, .create = MatCreate_SeqAIJ, .destroy = MatDestroy_SeqAIJTC},
  {.type = MATMPIAIJ, .mpi = PETSC_TRUE, .create = MatCreate_MPIAIJ, .destroy = MatDestroy_MPIAIJTC},
#if PetscDefined(HAVE_CUDA)
  {.type = MATSEQAIJCUSPARSE, .cuda = PETSC_TRUE, .create = MatCreate_SeqAIJCUSPARSE, .destroy = MatDestroy_SeqAIJCUSPARSETC},
  {.type = MATMPIAIJCUSPARSE, .mpi = PETSC_TRUE, .cuda = PETSC_TRUE, .create = MatCreate_MPIAIJCUSPARSE, .destroy = MatDestroy_MPIAIJCUSPARSETC},
#endif
};

enum {
  NUM_PARENTS = PETSC_STATIC_ARRAY_LENGTH(parents)
};

static PetscErrorCode MatDestroy_SeqAIJTC(Mat A)
{
  return MatTCDestroy(A, &parents[0]);
}

static PetscErrorCode MatDestroy_MPIAIJTC(Mat A)
{
  return MatTCDestroy(A, &parents[1]);
}

#if PetscDefined(HAVE_CUDA)
static PetscErrorCode MatDestroy_SeqAIJCUSPARSETC(Mat A)
{
  return MatTCDestroy(A, &parents[2]);
}

static PetscErrorCode MatDestroy_MPIAIJCUSPARSETC(Mat A)
{
  return MatTCDestroy(A, &parents[3]);
}
#endif

/* Once per parent: its operations, unbound and bound to the CPU, from an object made by the parent's own constructor whatever is registered by its name */
static PetscErrorCode MatTCParentCapture(MatTCParent *parent)
{
  PetscOptions none;
  Mat          fresh;

  PetscFunctionBegin;
  if (parent->captured) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatCreate(PETSC_COMM_SELF, &fresh));
  PetscCall(PetscOptionsCreate(&none)); /* else -mat_seqaij_type would make it another type */
  PetscCall(PetscObjectSetOptions((PetscObject)fresh, none));
  ((PetscObject)fresh)->optionsprinted = PETSC_TRUE; /* what -help shows once is for a matrix of the program */
  PetscCall((*parent->create)(fresh));
  if (parent->cuda && !parent->mpi) PetscCall(MatTCCaptureSparseProduct(fresh, &parent->sparse_symbolic));
  PetscCall(PetscObjectQueryFunction((PetscObject)fresh, "MatSetPreallocationCOO_C", &parent->set_preallocation_coo)); /* unbound */
  PetscCall(PetscObjectQueryFunction((PetscObject)fresh, "MatSetValuesCOO_C", &parent->set_values_coo));
  for (int bound = 0; bound < 2; bound++) {
    if (bound) PetscCall(MatBindToCPU(fresh, PETSC_TRUE));
    for (int op = 0; op < MATTC_NUM_OPS; op++) PetscCall(MatGetOperation(fresh, (MatOperation)op, &parent->ops[bound][op]));
    parent->hermitian_transpose_add[bound] = *MatTCHermitianTransposeAddSlot(fresh);
    for (int dense = 0; dense < MATTC_NUM_DENSE; dense++) {
      char name[128];

      PetscCall(MatTCProductKey(parent, dense, name, sizeof(name)));
      PetscCall(PetscObjectQueryFunction((PetscObject)fresh, name, &parent->product[bound][dense]));
    }
  }
  parent->create_graph           = *MatTCCreateGraphSlot(fresh);
  parent->create_submatrices_mpi = *MatTCCreateSubMatricesMPISlot(fresh);
  PetscCall(PetscObjectQueryFunction((PetscObject)fresh, "MatStoreValues_C", &parent->store_values));
  PetscCall(PetscObjectQueryFunction((PetscObject)fresh, "MatRetrieveValues_C", &parent->retrieve_values));
  PetscCall(MatDestroy(&fresh));
  PetscCall(PetscOptionsDestroy(&none));
  parent->captured = PETSC_TRUE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatTCParentGet(PetscBool mpi, PetscBool cuda, const MatTCParent **parent)
{
  const int index = (cuda ? 2 : 0) + (mpi ? 1 : 0);

  PetscFunctionBegin;
  PetscCheck(index < NUM_PARENTS, PETSC_COMM_SELF, PETSC_ERR_PLIB, "No parent type on the GPU in a PETSc without CUDA");
  PetscCall(MatTCParentCapture(&parents[index]));
  *parent = &parents[index];
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  The parent whose type_name the object carries; NULL if it is none of ours. PETSc turns a matrix into one of a type derived from its parent's in place, MATSEQAIJPERM or
  MATSEQAIJSELL, and leaves operations of ours on it: the parent of such a matrix is the one it had.
*/
PetscErrorCode MatTCParentFind(Mat A, const MatTCParent **parent)
{
  Mat_AIJTCCUSPARSE *tc;

  PetscFunctionBegin;
  *parent = NULL;
  for (int i = 0; i < NUM_PARENTS; i++) {
    PetscBool same;

    PetscCall(PetscObjectTypeCompare((PetscObject)A, parents[i].type, &same));
    if (!same) continue;
    PetscCall(MatTCParentCapture(&parents[i]));
    *parent = &parents[i];
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(MatTCContextGet(A, &tc));
  if (tc) *parent = tc->parent;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The same where an operation of ours runs, so that there is one. Copies of a matrix of such a derived type have the operations but no context: theirs begins with the parent's name. */
PetscErrorCode MatTCParentOf(Mat A, const MatTCParent **parent)
{
  PetscFunctionBegin;
  PetscCall(MatTCParentFind(A, parent));
  for (int i = NUM_PARENTS - 1; i >= 0 && !*parent; i--) { /* the longer names first */
    PetscBool derived;

    PetscCall(PetscObjectBaseTypeCompare((PetscObject)A, parents[i].type, &derived));
    if (!derived) continue;
    PetscCall(MatTCParentCapture(&parents[i]));
    *parent = &parents[i];
  }
  PetscCheck(*parent, PetscObjectComm((PetscObject)A), PETSC_ERR_PLIB, "Type %s is no parent of %s", ((PetscObject)A)->type_name, MATAIJTCCUSPARSE);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The parent's operation for the object as it is now, bound to the CPU or not; may be NULL */
PetscErrorCode MatTCParentOp(Mat A, const MatTCParent *parent, MatOperation op, PetscErrorCodeFn **f)
{
  PetscBool bound;

  PetscFunctionBegin;
  PetscCall(MatBoundToCPU(A, &bound));
  *f = parent->ops[parent->cuda && bound][op];
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  Propagation. The coarse operators of multigrid, sparse products and submatrices are created by the type_name of the matrix they come from, which is the
  parent's. While propagation is on, the parents' names on the GPU are registered with the constructors below.
*/
static struct {
  PetscBool wanted, on;
} propagation = {PETSC_TRUE, PETSC_FALSE};

#if PetscDefined(HAVE_CUDA)
/*
  Converting to the parent's name stays PETSc's affair: our conversion asks for just that. Off-diagonal blocks are assembled once before their columns are renumbered (MatAssemblyEnd_MPI_Hash()),
  and nobody tells the GPU that they have been: where there are such blocks nothing is to be packed at an assembly but by that of the parallel matrix.
*/
static PetscErrorCode MatTCCreatePropagated(Mat A, const MatTCParent *parent)
{
  Mat_AIJTCCUSPARSE *tc;
  PetscMPIInt        world_size;

  PetscFunctionBegin;
  if (MatTCIsProduct(A)) {
    PetscCall(MatTCFinishLoading());
    MatTCProductComputesLater(A);
  }
  PetscCall((*parent->create)(A));
  PetscCall(MatTCInstall(A, NULL));
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &world_size));
  PetscCall(MatTCContextGet(A, &tc));
  if (tc && !parent->mpi && world_size > 1) tc->settings.eager = PETSC_FALSE;
  PetscCall(MatSetOperation(A, MATOP_CONVERT_FROM, NULL));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatCreate_SeqAIJCUSPARSE_Propagated(Mat A)
{
  return MatTCCreatePropagated(A, &parents[2]);
}

static PetscErrorCode MatCreate_MPIAIJCUSPARSE_Propagated(Mat A)
{
  return MatTCCreatePropagated(A, &parents[3]);
}
#endif

static PetscErrorCode MatTCRegisterParents(PetscBool on)
{
  PetscFunctionBegin;
#if PetscDefined(HAVE_CUDA)
  if (on != propagation.on) {
    PetscCall(MatRegister(MATSEQAIJCUSPARSE, on ? MatCreate_SeqAIJCUSPARSE_Propagated : MatCreate_SeqAIJCUSPARSE));
    PetscCall(MatRegister(MATMPIAIJCUSPARSE, on ? MatCreate_MPIAIJCUSPARSE_Propagated : MatCreate_MPIAIJCUSPARSE));
    PetscCall(PetscInfo(NULL, "aijtccusparse: matrices created as %s and %s from now on are %s\n", MATSEQAIJCUSPARSE, MATMPIAIJCUSPARSE, on ? "ours" : "PETSc's"));
  }
#endif
  propagation.on = on;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* By an option of a matrix. Others than all processes together cannot say what a name creates. */
PetscErrorCode MatTCSetPropagationFor(Mat A, PetscBool wanted)
{
  PetscMPIInt size, world_size;

  PetscFunctionBegin;
  PetscCallMPI(MPI_Comm_size(PetscObjectComm((PetscObject)A), &size));
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &world_size));
  if (size == world_size) PetscCall(MatTCSetPropagation(wanted));
  else PetscCall(PetscInfo(A, "-mat_aijtccusparse_propagate of a matrix of %d of %d processes is ignored\n", (int)size, (int)world_size));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatTCSetPropagation(PetscBool wanted)
{
  PetscFunctionBegin;
  propagation.wanted = wanted;
  if (!wanted) PetscCall(MatTCRegisterParents(PETSC_FALSE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  A matrix of our type has been asked for: on the GPU, propagate from now on. Only when all processes take part, because what a name creates has to be the same on
  all processes of later matrices.
*/
PetscErrorCode MatTCPropagateFrom(Mat A, PetscBool cuda)
{
  PetscOptions options;
  const char  *prefix;
  PetscBool    wanted, set;
  PetscMPIInt  size, world_size;

  PetscFunctionBegin;
  PetscCall(PetscObjectGetOptions((PetscObject)A, &options));
  PetscCall(PetscObjectGetOptionsPrefix((PetscObject)A, &prefix));
  PetscCall(PetscOptionsGetBool(options, prefix, "-mat_aijtccusparse_propagate", &wanted, &set));
  if (set) PetscCall(MatTCSetPropagationFor(A, wanted));
  PetscCallMPI(MPI_Comm_size(PetscObjectComm((PetscObject)A), &size));
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &world_size));
  if (cuda && propagation.wanted && size == world_size) PetscCall(MatTCRegisterParents(PETSC_TRUE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* If not, values must not be the GPU's alone where the parent would have them on the host, too: its products P^T A P are wrong then unless their results are created above (MatTCProductComputesLater()) */
PetscBool MatTCIsPropagating(void)
{
  return propagation.on;
}

void MatTCParentReset(void)
{
  for (int i = 0; i < NUM_PARENTS; i++) parents[i].captured = PETSC_FALSE;
  propagation.wanted = PETSC_TRUE;
  propagation.on     = PETSC_FALSE;
}
