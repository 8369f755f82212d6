"""Products with a block of vectors, for every number of columns."""
from report.rows import bits, chosen, cusparse_ms, error, forced, geometric_mean, kernel, listed, milliseconds, over_cusparse, over_parent, parent_ms, products, ratio, size_of, table

TITLES = {'spmm': 'MatMatMult', 'spmm_t': 'MatTransposeMatMult', 'spmm_abt': 'MatMatTransposeMult'}
# what is asked for: means over aijcusparse by number of columns, over the best of cuSPARSE's layouts and algorithms, the least of all cases, setup in products
MEANS, MEAN_OVER_CUSPARSE, LEAST = {8: 4.0, 32: 8.0, 128: 8.0}, 3.0, 1.5
MOST_PRODUCTS = {'build': 20, 'refill': 3}
MANY_NONZEROS = 1e6
PRECISIONS = ('fp32', 'tf32', 'bf16', 'fp16')
NODAL, NODAL_COLUMNS, NODAL_OVER_FLOOR = ('elasticity', 'ex56', 'stokes'), 128, 2.0  # finite elements with several unknowns a node


def over_floor(row):
    return row['ms'] / row['floor_ms'] if row.get('floor_ms') else 0.0


def over_parent_first(row):
    return row['baseline_first_ms'] / row['first_ms'] if row.get('first_ms') and row.get('baseline_first_ms') else 0.0


def first_speedup(row):
    return ratio(over_parent_first(row), LEAST) if over_parent_first(row) else '-'


def summary(widths):
    cells, lines = [], []
    for n, rows in widths.items():
        speedups = [over_parent(row) for row in rows if parent_ms(row)]
        cusparse = [over_cusparse(row) for row in rows if cusparse_ms(row)]
        floors = [over_floor(row) for row in rows if over_floor(row)]
        cells.append((n, len(rows), ratio(geometric_mean(speedups), MEANS.get(n, 1.0)), MEANS.get(n, '-'), ratio(min(speedups, default=0), LEAST), ratio(geometric_mean(cusparse), MEAN_OVER_CUSPARSE), MEAN_OVER_CUSPARSE,
                      ratio(geometric_mean(floors))))
        below = [f'{row["case"]} ({over_parent(row):.2f}x)' for row in sorted(rows, key=over_parent) if 0 < over_parent(row) < LEAST]
        lines.append(f'- Below {LEAST}x aijcusparse with {n} columns: {listed(below)}.')
        firsts = [over_parent_first(row) for row in rows if over_parent_first(row)]
        if firsts:
            lines.append(f'- First product with {n} columns over that of aijcusparse: geometric mean {geometric_mean(firsts):.2f}, least {min(firsts):.2f}; at least {LEAST} wanted.')
        for what, most in MOST_PRODUCTS.items():
            over = [f'{row["case"]} ({products(row, what):.1f})' for row in rows if row['nnz'] >= MANY_NONZEROS and products(row, what) > most]
            if over:
                lines.append(f'- {what.capitalize()} above {most} products with {n} columns, cases with a million nonzeros: {listed(over)}.')
    nodal = [f'{row["case"]} {over_floor(row):.2f}' for row in widths.get(NODAL_COLUMNS, []) if row['case'].startswith(NODAL) and over_floor(row)]
    if nodal:
        lines.append(f'- Time over floor with {NODAL_COLUMNS} columns where nodes have several unknowns, {NODAL_OVER_FLOOR} at most wanted: {listed(nodal)}.')
    return table(('columns', 'cases', 'geometric mean over aijcusparse', 'aim', 'least', 'over the best cuSPARSE', 'aim', 'time over floor'), cells) + lines + ['']


def cases(rows, others):
    ways = list(dict.fromkeys(other['way'] for other in others))
    cells = []
    for row in rows:
        ms = {other['way']: other['ms'] for other in others if other['case'] == row['case']}
        cells.append((*size_of(row), kernel(row), f'{milliseconds(row["ms"])} +- {row.get("ms_spread", 0):.4f}', *(milliseconds(ms.get(way)) for way in ways), milliseconds(cusparse_ms(row)), milliseconds(parent_ms(row)),
                      milliseconds(row.get('floor_ms')), ratio(over_floor(row)), ratio(over_parent(row), LEAST), ratio(over_cusparse(row)), f'{products(row, "build"):.1f}', f'{products(row, "refill"):.1f}',
                      milliseconds(row.get('first_ms')), milliseconds(row.get('baseline_first_ms')), first_speedup(row), row.get('straight', '-'), error(row), bits(row)))
    return table(('case', 'rows', 'nonzeros', 'kernel', 'auto', *ways, 'best cuSPARSE', 'aijcusparse', 'floor', 'over floor', 'over aijcusparse', 'over cuSPARSE', 'build', 'refill', 'first',
                  'aijcusparse first', 'first over aijcusparse', 'straight', 'error/bound', 'bits of the host'), cells)


def better_forced(rows, others):
    found = []
    for row in rows:
        best = min((other for other in others if (other['case'], other['n']) == (row['case'], row['n'])), key=lambda other: other['ms'], default=row)
        if best['ms'] < 0.95 * row['ms']:
            found.append(f'{row["case"]} n {row["n"]} ({best["way"]} {row["ms"] / best["ms"]:.2f}x)')
    return [f'- A forced kernel more than 5% faster than the choice: {listed(found)}.', '']


def section_spmm(results, op):
    rows, others = ([row for row in found if 'suite' not in row] for found in (chosen(results, op), forced(results, op)))
    if not rows:
        return []
    widths = {n: [row for row in rows if row['n'] == n] for n in sorted({row['n'] for row in rows})}
    lines = [f'## {TITLES[op]}', '', 'Dense matrices by columns, as PETSc has them. "floor" is CSR, B and C once each at the speed of a device copy, "first" the first product of a new matrix, C and what it packs included,',
             'CSR on the device before; "straight" how many products of `auto` were straight from CSR before it packed; "build" and "refill" those of what it comes to. Less than 1.5x aijcusparse is bold.', '']
    lines += summary(widths)[:-1] + better_forced(rows, others)
    for n, part in widths.items():
        lines += [f'### {n} columns', ''] + cases(part, [other for other in others if other['n'] == n])
    return lines


def section_few(results):
    """Matrices with few rows, and all with few columns"""
    rows = [row for row in chosen(results, 'spmm') if row.get('suite') == 'few']
    if not rows:
        return []
    widths, lines, cells = sorted({row['n'] for row in rows}), [], []
    for n in widths:
        these = [row for row in rows if row['n'] == n]
        slower = [f'{row["case"]} ({over_parent(row):.2f}x)' for row in sorted(these, key=over_parent) if over_parent(row) < 1]
        over = [over_cusparse(row) for row in these if cusparse_ms(row)]
        cells.append((n, len(these), ratio(geometric_mean([over_parent(row) for row in these])), ratio(min(map(over_parent, these))), ratio(geometric_mean(over)), ratio(min(over, default=0)), sum(each < 1 for each in over)))
        lines.append(f'- Slower than aijcusparse with {n} column{"s" if n > 1 else ""}: {listed(slower)}.')
    lines = table(('columns', 'cases', 'geometric mean over aijcusparse', 'least', 'over the best cuSPARSE', 'least', 'slower than it'), cells)[:-1] + lines + ['']
    cells = []
    for case in dict.fromkeys(row['case'] for row in rows):
        of = {row['n']: row for row in rows if row['case'] == case}
        cells.append((*size_of(next(iter(of.values()))), *(f'{kernel(of[n])} {1000 * of[n]["ms"]:.1f} ({1000 * parent_ms(of[n]):.1f}, {ratio(over_parent(of[n]))})' if n in of else '-' for n in widths),
                      error(max(of.values(), key=lambda row: row['error_over_bound'])), bits(min(of.values(), key=lambda row: row.get('same_bits_as_host', True)))))
    return ['## Blocks of few rows or few columns', '', 'MatMatMult, microseconds of `auto`, those of aijcusparse and the quotient behind them; one column is a vector. cuSPARSE is timed without PETSc, our kernels and aijcusparse with it,',
            'which takes a product that is as long as its launches 0.5 us and more.', ''] + lines + table(('case', 'rows', 'nonzeros', *(f'{n} columns' if n > 1 else '1 column' for n in widths), 'error/bound', 'bits of the host'), cells)


def section_host(results, where):
    """Of the host backend: means for every operation, all cases of A B"""
    by_op = {op: chosen(results, op) for op in TITLES}
    if not any(by_op.values()):
        return []
    means, lines, cells = [], [], []
    for op, rows in by_op.items():
        for n in sorted({row['n'] for row in rows}):
            speedups = [over_parent(row) for row in rows if row['n'] == n]
            slower = [f'{row["case"]} ({over_parent(row):.2f}x)' for row in sorted(rows, key=over_parent) if row['n'] == n and over_parent(row) < 1]
            means.append((TITLES[op], n, len(speedups), ratio(geometric_mean(speedups)), ratio(min(speedups)), len(slower)))
            lines.append(f'- Slower than MATAIJ, {TITLES[op]} with {n}: {listed(slower)}.')
    widths = sorted({row['n'] for row in by_op['spmm']})
    for case in dict.fromkeys(row['case'] for row in by_op['spmm']):
        of = {row['n']: row for row in by_op['spmm'] if row['case'] == case}
        cells.append((*size_of(next(iter(of.values()))), *(f'{of[n]["ms"]:.4g} ({parent_ms(of[n]):.4g}, {ratio(over_parent(of[n]))})' if n in of else '-' for n in widths), error(max(of.values(), key=lambda row: row['error_over_bound']))))
    return ['## Blocks of the host backend', '', f'{where}; dense matrices by columns. MatTransposeMatMult and MatMatTransposeMult are of the larger matrices alone.', ''] + \
        table(('operation', 'columns', 'cases', 'geometric mean over MATAIJ', 'least', 'slower'), means)[:-1] + lines + \
        ['', 'MatMatMult, milliseconds, those of MATAIJ and the quotient behind them:', ''] + table(('case', 'rows', 'nonzeros', *(f'{n} columns' if n > 1 else '1 column' for n in widths), 'error/bound'), cells)


def section_spmm_precision(results):
    rows, full = chosen(results, 'spmm', rounded=True), {(row['case'], row['n']): row['ms'] for row in chosen(results, 'spmm')}
    if not rows:
        return []
    means, cells = [], {}
    for row in rows:
        over_full = full.get((row['case'], row['n']), 0.0) / row['ms']
        cells.setdefault(row['n'], []).append((*size_of(row), row['precision'], kernel(row), f'{milliseconds(row["ms"])} +- {row.get("ms_spread", 0):.4f}', milliseconds(full.get((row['case'], row['n']))), ratio(over_full),
                                               milliseconds(cusparse_ms(row)), ratio(over_cusparse(row)), f'{products(row, "build"):.1f}', f'{row["error"]:.1e}', error(row)))
    for n in sorted(cells):
        for precision in PRECISIONS:
            these = [row for row in rows if (row['n'], row['precision']) == (n, precision)]
            over_full = [full[row['case'], n] / row['ms'] for row in these if (row['case'], n) in full]
            over = [over_cusparse(row) for row in these if cusparse_ms(row)]
            if these:
                means.append((n, precision, len(these), ratio(geometric_mean(over_full)), ratio(geometric_mean(over)), ratio(min(over, default=0)), f'{max(row["error"] for row in these):.1e}'))
    lines = ['## MatMatMult in narrow precisions', '', 'Opt-in, `-mat_aijtccusparse_precision`; B and C are dense matrices in double precision, by columns, as ever. "over fp64" is over `auto` in double precision, "over cuSPARSE" over the best of',
             "cuSPARSE's layouts and algorithms in the same precision (TF32: in FP32), whose A, B and C are in that precision already. The error is the largest of |C - A B| / (|A| |B|).", '']
    lines += table(('columns', 'precision', 'cases', 'geometric mean over fp64', 'over cuSPARSE', 'least', 'largest error'), means)
    for n in sorted(cells):
        lines += [f'### {n} columns, narrow', ''] + table(('case', 'rows', 'nonzeros', 'precision', 'kernel', 'ms', 'fp64 ms', 'over fp64', 'cuSPARSE ms', 'over cuSPARSE', 'build', 'error', 'error/bound'), cells[n])
    return lines
