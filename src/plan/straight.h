/*
  tc_straight - products of one matrix with vectors straight from CSR, as long as what they lose against packed ones is less than packing takes. A matrix that gets other values after every
  product, or that few products are made with, is never packed then; one that is multiplied often loses half a conversion more.
*/
#pragma once
#include "plan.h"

/*
  How the matrix is multiplied, on the host with rows that share their columns together, else told apart by how many of its rows are as long as one of the next two, half or fewer and three quarters or fewer; or its transpose, from its rows and a permutation of the values, or, on the host, from the rows of the matrix.
  Not known before tc_straight_look(), or tc_straight_keep_nodes()
*/
typedef enum { TC_STRAIGHT_FORWARD, TC_STRAIGHT_PERMUTED, TC_STRAIGHT_COLUMNS, TC_STRAIGHT_NODES, TC_STRAIGHT_IRREGULAR, TC_STRAIGHT_MIXED, TC_STRAIGHT_UNKNOWN } tc_straight_way;

/* What the host's clock is read for */
typedef enum { TC_STRAIGHT_PRODUCT, TC_STRAIGHT_PACKED, TC_STRAIGHT_REFILL, TC_STRAIGHT_NUM_TIMED } tc_straight_work;

typedef struct {
  tc_key            key;       // of the values last asked about
  int               asked, followed; // there are such, and there were others before
  int               seldom;    // values in a row that had so few products that it did not pay
  int64_t           products;  // straight from CSR with them
  int64_t           hits;      // counted when they came
  double            before_ms; // what packed products with the values before them gained, or would have
  double            missed_ms, cost_ms; // what products with these lose, and until when
  double            pattern_ms; // what products with values before lost beyond taking those over, as long as the pattern has not been packed
  int64_t           count;     // of all products, kept by tc_straight_reset()
  struct {
    double  least_ms; // as tc_straight_timed() was told; 0: not yet
    int64_t times;
  } timed[TC_STRAIGHT_NUM_TIMED];
  const tc_backend  *backend;  // of the memory between products, and what it is laid out for
  tc_spmv_csr_memory memory;
  tc_key             laid_out;
  int32_t            num_rows;
  struct {
    tc_key            key;
    const void       *row_ptr, *col, *val; // what it is prepared for
    void             *kept;                // NULL: nothing is
    const tc_backend *backend;
  } cusparse;
  struct {
    tc_key   key;
    int      known, serve;
    double  *sums; // of tc_csr_matrix
    uint8_t *kind;
  } columns;
  struct {
    tc_key  key;
    int     known;
    double  repeated;    // the share of rows as long as one of the next two
    int32_t num, *first; // of tc_csr_matrix; NULL: so few rows share their columns, or so short ones, or all have so many entries, that each is by itself
  } nodes;
} tc_straight;

/*
  Is what is asked of a plan, `verdict`, REFILL or REBUILD for `key`, to be done now, for a matrix of so many rows, or for its transpose? Once for each product whose values are not packed. `hits`: products so far that found
  their values packed. As the values before got so many products that packing paid, it is taken to pay at once; otherwise once the products straight from CSR have lost as much, those with values before among
  them, where taking those over would have paid.
*/
int tc_straight_pays(tc_straight *straight, const tc_backend *backend, const tc_key *key, tc_verdict verdict, int64_t hits, int32_t num_rows, tc_straight_way way);

/*
  On the host the least times that products straight from CSR, packed ones and new values took with a pattern take the place of prices, once all are known, where memory decides, with many entries: is it so with that number, and
  is there a time to be told?
*/
int  tc_straight_wants_times(const tc_backend *backend, int64_t nnz);
void tc_straight_timed(tc_straight *straight, tc_straight_work work, double ms);

/* Do these times say, after some packed products, that those straight from CSR are faster with that pattern, though it is packed? */
int tc_straight_is_faster(const tc_straight *straight, const tc_backend *backend, const tc_key *key);

/*
  How the host multiplies a matrix with that pattern; the second is called for each pattern, when it is not known, with the share of rows as long as one of the next two and the number of groups of rows that share their columns, and gives room for the first row of each and the
  number of rows, NULL if groups or rows are so small, or entries so many, that it does without. Errors: TC_ERR_MEMORY
*/
tc_straight_way tc_straight_multiplies(const tc_straight *straight, const tc_key *key);
tc_status       tc_straight_keep_nodes(tc_straight *straight, const tc_key *key, int32_t num_rows, double repeated, int32_t num, int32_t **first);

/* How the host multiplies the transpose of a matrix with that pattern; the second looks at the columns of its rows, and is called for each pattern. Errors: TC_ERR_MEMORY */
tc_straight_way tc_straight_transposes(const tc_straight *straight, const tc_key *key);
tc_status       tc_straight_look(tc_straight *straight, const tc_key *key, const tc_csr_local *rows);

/* Is there all that such a product with this pattern needs, so that it only enqueues launches? */
int tc_straight_is_ready(const tc_straight *straight, const tc_backend *backend, const tc_key *key);

/* Has it long rows, or others with so many entries together, as far as products have told? A device tells some products late */
int tc_straight_is_uneven(const tc_straight *straight, const tc_backend *backend, const tc_key *key);

/* Can that backend multiply so with vectors of that scalar? */
int tc_straight_serves(const tc_backend *backend, tc_scalar scalar);

/*
  z = A x (y == NULL) or z = y + sign A x, sign 1 or -1, y may be z, with the bits of packed products; all local. `key`: of the pattern. Memory is allocated once for each number of entries; no
  synchronisation else. Errors: TC_ERR_MEMORY, TC_ERR_DEVICE
*/
tc_status tc_straight_multiply(tc_straight *straight, const tc_backend *backend, const tc_key *key, const tc_csr_matrix *A, const void *x, const void *y, void *z, int sign, tc_stream stream);

/*
  The same by cuSPARSE, which does not count as such a product and has bits of its own. Prepares itself for each pattern, and for other arrays of it, which waits for the device and cannot be captured. Errors: TC_ERR_UNSUPPORTED, on
  the host, and where that would have to be captured
*/
tc_status tc_straight_multiply_cusparse(tc_straight *straight, const tc_backend *backend, const tc_key *key, const tc_csr_matrix *A, const void *x, const void *y, void *z, int sign, tc_stream stream);

/* Gives back what that has prepared */
void tc_straight_release_cusparse(tc_straight *straight);

/* Forgets all but the count of products, and gives the memory back */
void tc_straight_reset(tc_straight *straight);
