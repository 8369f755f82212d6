"""Products with a block of vectors by 2:4 sparse and by dense tiles."""
from report.rows import geometric_mean, listed, milliseconds, ratio, size_of, table

BASELINES = {'dense_tiles_fp16': 'dense tiles', 'bittcf_fp16': 'BitTCF', 'cusparse_csr_fp16': 'cuSPARSE CSR', 'cusparse_bsr_fp16': 'cuSPARSE BSR',
             'cusparselt_fp16': 'cuSPARSELt'}  # all in fp16


def over(row, name):
    return row['baseline_ms'].get(name, 0.0) / row['ms']


def summary(rows):
    lines = []
    for name, title in BASELINES.items():
        there = [row for row in rows if over(row, name)]
        lost = [f'{row["case"]} {row["n"]} ({over(row, name):.2f})' for row in sorted(there, key=lambda row: over(row, name)) if over(row, name) < 1]
        if there:
            lines.append(f'- Over {title}: geometric mean {geometric_mean([over(row, name) for row in there]):.2f}, least {min(over(row, name) for row in there):.2f}, most {max(over(row, name) for row in there):.2f}; slower: {listed(lost)}.')
    return lines + ['']


def section_sparse24(results):
    rows = [row for row in results if row['op'] == 'sparse24']
    if not rows:
        return []
    cells = []
    for row in rows:
        cells.append((*size_of(row), row['n'], milliseconds(row['ms']), milliseconds(row['bf16_ms']), milliseconds(row['baseline_ms'].get('csr_fp64')),
                      *(cell for name in BASELINES for cell in (milliseconds(row['baseline_ms'].get(name)), ratio(over(row, name))))))
    return ['## 2:4 tiles', '', 'Opt-in, `-mat_aijtccusparse_spmm sparse24` with `bf16` or `fp16`. Matrices `XdYs` in tiles of 16 x 32 at random places: X% of the tiles have three quarters of their entries, Y% two in each four of a row, the others none. Milliseconds without PETSc, in fp16 where nothing else is said;',
            'ours from and to column-major doubles, cuSPARSE from and to row-major fp16. "Dense tiles" is the same kernel over the same format without 2:4 tiles.',
            'cuSPARSELt multiplies the whole matrix as one in 2:4 form, whether tiles have entries or not; only where no tile breaks 2:4 (X = 0).', ''] + summary(rows) + \
        table(('case', 'rows', 'nonzeros', 'columns', '2:4', '2:4 bf16', 'csr fp64', *(cell for title in BASELINES.values() for cell in (title, 'over'))), cells)
