"""Tests, the host backend, solvers."""
from report.rows import chosen, error, geometric_mean, listed, over_parent, parent_ms, ratio, size_of, table

SLOWEST_ON_HOST = 1.5


def section_tests(tests):
    lines = ['## Tests', '']
    bad = [(test['name'], test['status'], test['why']) for test in tests if test['status'] != 'passed']
    if bad:
        lines += table(('test', 'status', 'why'), bad)
    shown = [(test['name'], test['why']) for test in tests if test['status'] == 'passed' and not test['name'].startswith('petsc/')]
    petsc = sum(test['name'].startswith('petsc/') and test['status'] == 'passed' for test in tests)
    if petsc:
        shown.append(("PETSc's own test cases", f'{petsc} passed'))
    return lines + table(('passed', 'what it said'), shown)


def section_host(results, where):
    rows = chosen(results, 'spmv')
    if not rows:
        return []
    cells = [(*size_of(row), f'{row["ms"]:.4f}', f'{parent_ms(row):.4f}', ratio(over_parent(row)), error(row)) for row in rows]
    slow = [f'{row["case"]} ({1 / over_parent(row):.2f})' for row in rows if over_parent(row) < 1 / SLOWEST_ON_HOST]
    return ['## MatMult of the host backend', '', f'{where}; milliseconds; losses bold.', '',
            f'- Geometric mean over MATAIJ {geometric_mean([over_parent(row) for row in rows]):.2f}; slower on {sum(over_parent(row) < 1 for row in rows)} of {len(rows)}, above {SLOWEST_ON_HOST} times its time: {listed(slow)}.', ''] + \
        table(('case', 'rows', 'nonzeros', 'aijtccusparse', 'aij', 'over aij', 'error/bound'), cells)


def solves(lines):
    """Lines of solvers.tsv, paired: the solve with our type carries the baseline's time and iterations"""
    baseline, entries = {}, []
    for case, np, kind, iterations, residual, seconds, counters, size, nnz in lines:
        if kind == 'aijcusparse':
            baseline[case, np] = (iterations, float(seconds))
            continue
        expected, base_seconds = baseline.get((case, np), ('-', 0.0))
        entries.append({'op': 'solve', 'case': case, 'rows': int(size), 'cols': int(size), 'nnz': int(nnz), 'n': 1, 'ranks': int(np), 'precision': 'fp64', 'kernel': 'auto', 'ms': 1000 * float(seconds), 'ms_spread': 0.0,
                        'iterations': int(iterations) if iterations.isdigit() else -1, 'baseline_iterations': int(expected) if expected.isdigit() else -1, 'residual': residual,
                        'hits_refills_rebuilds': counters, 'baseline_ms': {'aijcusparse': 1000 * base_seconds}})
    return entries


def section_solvers(results):
    rows = [row for row in results if row['op'] == 'solve']
    if not rows:
        return []
    cells = [(row['case'], row['rows'], row['ranks'], row['iterations'], row['baseline_iterations'], f'{row["ms"]:.1f}', f'{parent_ms(row):.1f}', ratio(over_parent(row) if row['ms'] else 0), row['residual'], row['hits_refills_rebuilds'])
             for row in rows]
    return ['## Solves', '', "PETSc's tutorials, unmodified; milliseconds of the first solve of a process, packing included, the faster of two processes for either type on one processor, of one on two, which share a GPU.",
            'Counters are those of the printed operator.', ''] + \
        table(('case', 'rows', 'processes', 'iterations', 'aijcusparse', 'ms', 'aijcusparse ms', 'speedup', 'residual', 'hits/refills/rebuilds'), cells)
