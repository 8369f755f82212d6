"""Products with a vector: MatMult(), MatMultAdd() in place, MatMultTranspose()."""
from report.rows import (bits, chosen, cusparse_ms, error, forced, gbs, geometric_mean, kernel, kinds, listed, milliseconds, over_cusparse, over_parent, parent_ms, percent, products,
                         ratio, size_of, table)

# what is asked for
MEANS = {'aijcusparse': 2.0, 'best cuSPARSE': 1.5}
SLACK_OF_TARGET, SLACK_OF_IRREGULAR, OF_COPY = 1.1, 1.3, 0.9
IRREGULAR = ('circuit_3m', 'webbase_1m', 'rmat_20')  # of the fourteen first measurements: the power-law and dense-row matrices, one of them without a target
MOST_PRODUCTS = {'build': 10, 'again': 10, 'refill': 3}
MANY_NONZEROS = 1e6
L2_BYTES = 60e6  # of an H200


def summary(rows):
    """Means over all cases and over those where there is nothing to narrow but columns; every loss by name"""
    lines, cells = [], []
    for against, speedup in (('aijcusparse', over_parent), ('best cuSPARSE', over_cusparse)):
        for name, part in (('all', rows), ('random values', [row for row in rows if row['random_values']])):
            speedups = [speedup(row) for row in part if speedup(row) > 0]
            if speedups:
                cells.append((against, name, len(speedups), ratio(geometric_mean(speedups), MEANS[against]), MEANS[against], ratio(min(speedups)), sum(s < 1 for s in speedups)))
        slower = [f'{row["case"]} ({speedup(row):.2f}x)' for row in sorted(rows, key=speedup) if 0 < speedup(row) < 1]
        lines.append(f'- Slower than {against}: {listed(slower)}.')
    return table(('against', 'cases', 'number', 'geometric mean', 'aim', 'least', 'slower'), cells) + lines


def better_forced(rows, others):
    """Where another kernel is faster than the one that was chosen: work for the policy"""
    found = []
    for row in rows:
        best = min((other for other in others if other['case'] == row['case']), key=lambda other: other['ms'], default=row)
        if best['ms'] < 0.95 * row['ms']:
            found.append(f'{row["case"]} ({best["way"]} {row["ms"] / best["ms"]:.2f}x)')
    return [f'- A forced kernel more than 5% faster than the choice: {listed(found)}.']


def slow_setup(rows):
    lines = []
    for what, most in MOST_PRODUCTS.items():
        if not any(row.get(what + '_ms') for row in rows):
            continue
        over = [row for row in sorted(rows, key=lambda row: -products(row, what)) if row['nnz'] >= MANY_NONZEROS and products(row, what) > most]
        name = 'Build once more' if what == 'again' else what.capitalize()
        lines.append(f'- {name} above {most} products, of the {sum(row["nnz"] >= MANY_NONZEROS for row in rows)} cases with a million nonzeros: ' +
                     listed(f'{row["case"]} ({products(row, what):.1f})' for row in over) + '.')
    return lines


def cases(rows, copy_gbs):
    cells = []
    for row in rows:
        even = row.get('break_even')
        cells.append((*size_of(row), kernel(row), f'{milliseconds(row["ms"])} +- {row["ms_spread"]:.4f}', milliseconds(row.get('kernel_ms')), milliseconds(cusparse_ms(row)), milliseconds(parent_ms(row)),
                      ratio(over_parent(row)), ratio(over_cusparse(row)), f'{gbs(row):.0f}', percent(gbs(row) / copy_gbs if copy_gbs else 0), f'{products(row, "build"):.1f}', f'{products(row, "again"):.1f}',
                      f'{products(row, "refill"):.1f}', f'{even:.0f}' if even is not None else 'never', kinds(row), error(row), bits(row)))
    return table(('case', 'rows', 'nonzeros', 'kernel', 'MatMult', 'kernel alone', 'best cuSPARSE', 'aijcusparse', 'over aijcusparse', 'over cuSPARSE', 'GB/s', 'of copy', 'build', 'again', 'refill', 'even', 'columns; values',
                  'error/bound', 'bits of the host'), cells)


def targets(rows, others):
    """The fourteen first measurements: DASP's time, where it was forced, counts if it is the better one"""
    first = [row for row in rows if row.get('target_ms') or row['case'] in IRREGULAR]
    if not first:
        return []
    ways = list(dict.fromkeys(other['way'] for other in others if other['case'] in {row['case'] for row in first}))
    cells, met, asked = [], [], []
    for row in first:
        ms = {other['way']: other['ms'] for other in others if other['case'] == row['case']}
        judged, best = min([('auto', row['ms'])] + [(way, ms[way]) for way in ms if way.startswith('dasp')], key=lambda pair: pair[1])
        target = row.get('target_ms')
        if target:
            asked.append(row['case'])
            if best <= SLACK_OF_TARGET * target:
                met.append(row['case'])
        cells.append((row['case'], milliseconds(target), milliseconds(row['ms']), *(milliseconds(ms.get(way)) for way in ways), judged,
                      '-' if not target else f'{best / target:.2f}' if best <= SLACK_OF_TARGET * target else f'**{best / target:.2f}**', ratio(over_parent(row))))
    slow = [row['case'] for row in first if row['case'] in IRREGULAR and row['ms'] > SLACK_OF_IRREGULAR * parent_ms(row)]
    lines = ['### The first measurements', '', "Milliseconds of `MatMult()`. The target is the faster of the first packed kernel and DASP's own code; the faster of `auto` and forced DASP is judged against it, and named.", '']
    lines += table(('case', 'target', 'auto', *ways, 'judged', 'over target', 'auto over aijcusparse'), cells)
    return lines + [f'- Within 10% of the target on {len(met)} of {len(asked)}; not on: {listed(case for case in asked if case not in met)}.',
                    f'- Power-law and dense-row matrices slower than 1.3x aijcusparse: {listed(slow)}.', '']


def bandwidth(rows, copy_gbs):
    large = [row for row in rows if row['bytes'] > 3 * L2_BYTES]
    if not large or not copy_gbs:
        return []
    cells = [(row['case'], kernel(row), f'{row["bytes"] / 1e6:.0f}', f'{gbs(row):.0f}', percent(gbs(row) / copy_gbs, OF_COPY)) for row in sorted(large, key=gbs, reverse=True)]
    reached = sum(gbs(row) >= OF_COPY * copy_gbs for row in large)
    return ['### Bandwidth', '', f'Cases whose product really moves more than 3 times the L2 cache of {L2_BYTES / 1e6:.0f} MB; {reached} of {len(large)} reach 90% of the device copy ({copy_gbs:.0f} GB/s).', ''] + \
        table(('case', 'kernel', 'MB', 'GB/s', 'of copy'), cells)


def section_spmv(results, copy_gbs):
    rows, others = chosen(results, 'spmv'), forced(results, 'spmv')
    if not rows:
        return []
    lines = ['## MatMult', ''] + summary(rows) + better_forced(rows, others) + slow_setup(rows) + ['']
    lines += targets(rows, others) + bandwidth(rows, copy_gbs)
    lines += ['### All cases', '', 'Milliseconds, median of groups in turns with the baselines, and half the spread of the middle half. "kernel alone" and cuSPARSE are without PETSc, the latter with preprocessing, the',
              'better of its two algorithms. GB/s of the bytes really moved. "build", "again" (a build once more, with the kernels loaded and the memory there) and "refill" are in products, "even" is the number of products that pays for both. Losses are bold.', '']
    return lines + cases(rows, copy_gbs)


def section_precision(results):
    """Rounded entries, beside the same product with the entries as they are where that was measured, too"""
    rows, full = chosen(results, 'spmv', rounded=True), {row['case']: row['ms'] for row in chosen(results, 'spmv')}
    if not rows:
        return []
    cells = [(*size_of(row), row['precision'], kernel(row), f'{milliseconds(row["ms"])} +- {row["ms_spread"]:.4f}', milliseconds(full.get(row['case'])), milliseconds(parent_ms(row)), ratio(full.get(row['case'], 0) / row['ms']),
              ratio(over_parent(row)), f'{gbs(row):.0f}', f'{products(row, "build"):.1f}', f'{products(row, "refill"):.1f}', error(row), bits(row)) for row in sorted(rows, key=lambda row: (row['precision'], row['case']))]
    return ['## MatMult with rounded entries', '', 'Opt-in, `-mat_aijtccusparse_precision`; aijcusparse multiplies in double precision. The error is over the bound that rounding has.', ''] + \
        table(('case', 'rows', 'nonzeros', 'precision', 'kernel', 'MatMult', 'fp64', 'aijcusparse', 'over fp64', 'over aijcusparse', 'GB/s', 'build', 'refill', 'error/bound', 'bits of the host'), cells)


def section_operation(results, op, title):
    """MatMultAdd(), MatResidual() and MatMultTranspose(), of a few cases"""
    rows = chosen(results, op)
    if not rows:
        return []
    cells = [(*size_of(row), kernel(row), f'{milliseconds(row["ms"])} +- {row["ms_spread"]:.4f}', milliseconds(cusparse_ms(row)), milliseconds(parent_ms(row)), ratio(over_parent(row)), ratio(over_cusparse(row)),
              f'{gbs(row):.0f}', f'{products(row, "build"):.1f}', f'{products(row, "refill"):.1f}', error(row), bits(row)) for row in rows]
    return [f'## {title}', ''] + table(('case', 'rows', 'nonzeros', 'kernel', 'ms', 'best cuSPARSE', 'aijcusparse', 'over aijcusparse', 'over cuSPARSE', 'GB/s', 'build', 'refill', 'error/bound', 'bits of the host'), cells) + \
        [f'- Geometric mean over aijcusparse {geometric_mean([over_parent(row) for row in rows]):.2f}; slower: ' + listed(f'{row["case"]} ({over_parent(row):.2f}x)' for row in rows if over_parent(row) < 1) + '.', '']
