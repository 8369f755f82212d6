/*
  tc_spmm - products of one matrix with dense blocks on one backend: which kernel multiplies n columns, in how many launches, and the memory that products need in
  between. It knows formats by name only; the caller brings the view of the one that was chosen.
*/
#pragma once
#include "../../kernels/tc_backend.h"
#include "cache.h"
#include "spmm_host.h"

typedef struct tc_spmm tc_spmm;

typedef struct {
  const char  *format;          // name of the format, NULL: choose; the host has few and does without where it has no kernel
  const char  *kernel;          // name of one of the kernels of the format, NULL: the first
  int          exact_nonfinite; // only kernels that multiply no structural zeros
  int          reordered;       // formats of tiles get their rows in an order of their own, of which a look at the pattern tells nothing: take them for many columns
  tc_precision precision;       // of products of the matrix with a block as it is; those with a transpose are in F64
  tc_scalar    scalar;          // of the blocks
} tc_spmm_options;

/* A product of any number of columns, all blocks column-major */
typedef struct {
  int32_t     rows_b, rows_c, n;
  const void *b; // [rows_b, n], or with b_transposed [n, rows_b]
  int64_t     ldb;
  void       *c; // [rows_c, n]
  int64_t     ldc;
  int         add;          // C += A B
  int         b_transposed; // b holds the transpose of B
  int         b_far, c_far; // in the memory of the host, not of the backend
} tc_spmm_product;

/* Nothing is allocated on the device before the first product. Errors: TC_ERR_MEMORY, TC_ERR_DEVICE */
tc_status tc_spmm_create(const tc_backend *backend, const tc_spmm_options *options, tc_spmm **spmm);
void      tc_spmm_destroy(tc_spmm **spmm);

/*
  Looks at the pattern unless it is that of `key` already, or of the key before: what the choice of a kernel depends on, and the lists of rows. `rows` is CSR where the backend is,
  without values. Waits for the device; on the host there is nothing to find out.
*/
tc_status tc_spmm_look(tc_spmm *spmm, const tc_key *key, const tc_csr_view *rows, tc_stream stream);

/* Enqueues what tc_spmm_look() is going to wait for, if it has anything to find out */
tc_status tc_spmm_look_ahead(tc_spmm *spmm, const tc_key *key, const tc_csr_view *rows, tc_stream stream);
int       tc_spmm_has_seen(const tc_spmm *spmm, const tc_key *key);

/* Has the pattern been looked at? Then it is the one last looked at from now on, of which two are known. What follows is about that one */
int tc_spmm_recall(tc_spmm *spmm, const tc_key *key);

/* Puts the lists of long columns and of the ends of their segments into the view, which has CSR of the pattern last looked at: host memory, made when first asked for. Errors: TC_ERR_MEMORY */
tc_status tc_spmm_list_ends(tc_spmm *spmm, tc_csr_transposed_view *view);

/* Puts the lists of rows, local, into the view of CSR */
void tc_spmm_list_rows(const tc_spmm *spmm, tc_csr_view *view);

/*
  The row of the backend's table for n columns of the pattern last looked at; what it wants to see is its format, in its precision: F64 if what may be chosen has no
  kernel in that of the options, or if B is given by its transpose. Errors: TC_ERR_UNSUPPORTED. The last: the row for a format in F64, asked for or not; NULL if there is
  none.
*/
tc_status             tc_spmm_choose(tc_spmm *spmm, int32_t n, int b_transposed, const tc_spmm_kernel **kernel);
const tc_spmm_kernel *tc_spmm_find(const tc_spmm *spmm, const char *format);

/*
  In F64, between `num` formats: what is asked for, if it is one of them, else the first of them that the rules name and that has a kernel, tiles only if they are allowed, else CSR.
  Errors: TC_ERR_UNSUPPORTED
*/
tc_status tc_spmm_choose_between(tc_spmm *spmm, int32_t n, const char *const formats[], int num, const tc_spmm_kernel **kernel);

/*
  Is the chosen kernel to multiply n columns now, or does its format cost more to pack than it has been missed by now, so that tc_spmm_instead() is to? Counts the product.
  `is_packed`: the format is there. Always now but in F64: products straight from CSR would be more exact than those that follow.
*/
int tc_spmm_pays(tc_spmm *spmm, const tc_spmm_kernel *kernel, int32_t n, int is_packed);

/* What is to multiply as long as the kernel that was chosen, or the one instead of it, does not pay: CSR in the end. tc_spmm_pays() is about that one then. */
const tc_spmm_kernel *tc_spmm_instead(tc_spmm *spmm);

/*
  Another kernel of the same format if that suits the packed matrix better, of those asked for by name if any was, unless it is that one, or B is given by its transpose. Tiles that were chosen for the sake of
  clusters, and have none that suit, are not chosen again for this pattern.
*/
const tc_spmm_kernel *tc_spmm_refine(tc_spmm *spmm, const tc_spmm_kernel *kernel, const void *view, int32_t n, int b_transposed);

/* Enqueues the product; waits for the device only if a block is far. `view` is what the kernel's format says. */
tc_status tc_spmm_multiply(tc_spmm *spmm, const tc_spmm_kernel *kernel, const void *view, const tc_spmm_product *product, tc_stream stream);

/* The last product and the number of them, for views: its kernel (NULL: none yet), why that one, and the memory held on the backend */
const tc_spmm_kernel *tc_spmm_last(const tc_spmm *spmm);
const char           *tc_spmm_why(tc_spmm *spmm);
int64_t               tc_spmm_count(const tc_spmm *spmm);
size_t                tc_spmm_bytes(const tc_spmm *spmm);
const tc_backend     *tc_spmm_backend(const tc_spmm *spmm);
