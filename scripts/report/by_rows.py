"""Products of blocks of floats by rows, as the publications measure them."""
from report.rows import geometric_mean, listed, milliseconds, ratio, size_of, table

AIM = 2.0


def cusparse(row):
    return row['baseline_ms']['cusparse_fp32']


def with_order(row):
    """In natural order or with rows reordered, whichever is faster"""
    return min(row['ms'], row['reordered_ms'] or row['ms'])


def section_by_rows(results):
    rows = [row for row in results if row['op'] == 'spmm_by_rows']
    if not rows:
        return []
    widths = sorted({row['n'] for row in rows})
    of = {(row['case'], row['n']): row for row in rows}
    means, cells = [], []
    for n in widths:
        there = [row for row in rows if row['n'] == n]
        mean = geometric_mean([cusparse(row) / row['ms'] for row in there])
        least = min(there, key=lambda row: cusparse(row) / row['ms'])
        means.append((n, len(there), f'{mean:.2f}' if mean >= AIM else f'**{mean:.2f}**', AIM, f'{geometric_mean([cusparse(row) / row["fastest_ms"] for row in there]):.2f}',
                      f'{geometric_mean([cusparse(row) / with_order(row) for row in there]):.2f}', f'{cusparse(least) / least["ms"]:.2f}, {least["case"]}'))
    for case in dict.fromkeys(row['case'] for row in rows):
        first = of[case, widths[0]]
        cells.append((*size_of(first), first['kernel'].removeprefix('tc_spmm_'), *(cell for n in widths for cell in (milliseconds(of[case, n]['ms']), milliseconds(cusparse(of[case, n])), ratio(cusparse(of[case, n]) / of[case, n]['ms']))),
                      milliseconds(first['reordered_ms'] or None), ratio(cusparse(first) / with_order(first))))
    lost = [f'{row["case"]} {row["n"]} ({cusparse(row) / row["ms"]:.2f})' for row in rows if cusparse(row) < row['ms']]
    return ['## Blocks by rows in TF32', '', 'Milliseconds from and to row-major floats, A in TF32 (straight from CSR in single precision), against the fastest algorithm of cuSPARSE in fp32 with the same layout, by the kernel that the rules take, in natural order; "fastest" by the fastest of our kernels;',
            '"reordered" with rows in the order of `bench/row_order.h`, made on the host, not timed, where that is faster.', ''] + \
        table(('columns', 'cases', 'geometric mean over cuSPARSE', 'aim', 'fastest', 'reordered', 'least'), means) + [f'- Slower than cuSPARSE: {listed(lost)}.', ''] + \
        table(('case', 'rows', 'nonzeros', 'kernel', *(cell for n in widths for cell in (f'{n} columns', 'cuSPARSE', 'over')), f'reordered, {widths[0]}', 'over, the faster'), cells)
