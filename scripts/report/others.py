"""Tests, the host backend, solvers."""
from report.rows import chosen, error, geometric_mean, listed, milliseconds, over_parent, parent_ms, ratio, size_of, table

SLOWEST_ON_HOST = 1.5
SMALLEST_EVENT = 0.01
BLOCKS, NARROW, GRAPHS = 'ex2_', 'ex3_', 'ex4_'  # cases of our own tutorials


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
    """
    Lines of solvers.tsv: the solve with our type carries the baseline's time and iterations. That is the solve with the parent type, or for a preconditioner of fewer bits
    the one with all of them. Lines of our own tutorials tell columns, precision, seconds of the first time and kernel, too.
    """
    baseline, entries = {}, []
    for line in lines:
        case, np, kind, iterations, residual, seconds, counters, size, nnz = line[:9]
        n, precision, first, kernel = line[9:] if len(line) > 9 else ('1', 'fp64', '-', '-')
        solve = (case, np, n)
        if kind == 'aijcusparse':
            baseline[solve] = (kind, iterations, seconds, first)
            continue
        name, expected, base_seconds, base_first = baseline.get(solve, ('aijcusparse', '-', '0', '-'))
        entry = {'op': 'solve', 'case': case, 'rows': int(size), 'cols': int(size), 'nnz': int(nnz), 'n': int(n), 'ranks': int(np), 'precision': precision, 'kernel': 'auto' if kernel == '-' else kernel,
                 'ms': 1000 * float(seconds), 'ms_spread': 0.0, 'iterations': int(iterations) if iterations.isdigit() else -1, 'baseline_iterations': int(expected) if expected.isdigit() else -1, 'residual': residual,
                 'hits_refills_rebuilds': counters, 'baseline_ms': {name: 1000 * float(base_seconds)}}
        if first != '-':
            entry |= {'first_ms': 1000 * float(first), 'baseline_first_ms': 1000 * float(base_first) if base_first != '-' else 0.0}
        if case.startswith(GRAPHS):
            entry |= {'error': float(residual), 'recognised': counters}
        if case.startswith(NARROW) and precision == 'fp64':
            baseline[solve] = ('aijtccusparse_fp64', iterations, seconds, first)
            entry['baseline_ms'] = {}
        entries.append(entry)
    return entries


def processes(lines):
    """Lines of processes.tsv, both types' side by side: a row for each case"""
    entries = {}
    for case, np, kind, setup, whole in lines:
        entry = entries.setdefault((case, np), {'case': case, 'ranks': int(np)})
        entry[f'{kind}_process_ms'] = 1000 * float(whole)
        if setup != '-':
            entry[f'{kind}_setup_ms'] = 1000 * float(setup)
    return list(entries.values())


def section_processes(rows, solves):
    """Set-up where a program tells of it, set-up and solve, and all of a process; the least of the runs, each for itself"""
    cells = []
    for row in rows:
        solve = next((each for each in solves if (each['case'], each['ranks']) == (row['case'], row['ranks'])), None)
        setups = row.get('aijtccusparse_setup_ms'), row.get('aijcusparse_setup_ms')
        wholes = row.get('aijtccusparse_process_ms'), row.get('aijcusparse_process_ms')
        both = (setups[0] + solve['ms'], setups[1] + parent_ms(solve)) if all(setups) and solve else (None, None)
        cells.append((row['case'], row['ranks'], *(cell for ours, theirs in (setups, both, wholes) for cell in (('-', '-', '-') if not ours or not theirs else (f'{ours:.1f}', f'{theirs:.1f}', ratio(theirs / ours))))))
    return ['### Set-up, and processes', '', 'Of the same runs, milliseconds, the least of each type: set-up, where the program tells, that and the solve above, and the process from PetscInitialize() on, assembly and the start of CUDA included.', ''] + \
        table(('case', 'processes', 'set-up', 'aijcusparse', 'speedup', 'with the solve', 'aijcusparse', 'speedup', 'process', 'aijcusparse', 'speedup'), cells)


def events(lines):
    """Lines of events.tsv, both types' side by side: a row for each event of a case"""
    entries = {}
    for case, kind, event, calls, seconds in lines:
        entry = entries.setdefault((case, event), {'case': case, 'event': event})
        entry |= {f'{kind}_calls': int(calls), f'{kind}_ms': 1000 * float(seconds)}
    return list(entries.values())


def section_events(rows):
    cells = []
    for case in dict.fromkeys(row['case'] for row in rows):
        here = [row for row in rows if row['case'] == case]
        whole = max(row.get('aijcusparse_ms', 0) for row in here)
        shown = [row for row in here if max(row.get('aijcusparse_ms', 0), row.get('aijtccusparse_ms', 0)) > SMALLEST_EVENT * whole]
        for row in sorted(shown, key=lambda row: -row.get('aijcusparse_ms', 0)):
            ours, theirs = row.get('aijtccusparse_ms'), row.get('aijcusparse_ms')
            cells.append((case, row['event'], row.get('aijtccusparse_calls', '-'), '-' if ours is None else f'{ours:.2f}', row.get('aijcusparse_calls', '-'), '-' if theirs is None else f'{theirs:.2f}', ratio(theirs / ours) if ours and theirs else '-'))
    return ['### The same by event', '', '`-log_view -log_view_gpu_time`, which waits for the device at the end of every event, so all takes longer than above; milliseconds, first solve of a process. Events nest: MatMult lies in PCApply, that in',
            f'KSPSolve. Vec* is all events of vectors. What takes less than {100 * SMALLEST_EVENT:.0f}% of the longest event is left out.', ''] + \
        table(('case', 'event', 'calls', 'ms', 'aijcusparse calls', 'aijcusparse ms', 'speedup'), cells)


def section_petsc_tutorials(rows):
    cells = [(row['case'], row['rows'], row['ranks'], row['iterations'], row['baseline_iterations'], f'{row["ms"]:.1f}', f'{parent_ms(row):.1f}', ratio(over_parent(row) if row['ms'] else 0), row['residual'], row['hits_refills_rebuilds'])
             for row in rows]
    return ["PETSc's tutorials, unmodified; milliseconds of the first solve of a process, packing included. The types take turns; what counts is the fastest of three runs of each on one process, of seven if that takes less than 0.2 s, and the only one on two, which share a GPU; with two_gpus in the name each has its own, and three runs; aware: the MPI passes device memory on.",
            'Counters are those of the printed operator.', ''] + \
        table(('case', 'rows', 'processes', 'iterations', 'aijcusparse', 'ms', 'aijcusparse ms', 'speedup', 'residual', 'hits/refills/rebuilds'), cells)


def section_blocks(rows):
    cells = [(row['case'], row['rows'], row['n'], row['kernel'], row['iterations'], row['baseline_iterations'], f'{row["ms"]:.1f}', f'{parent_ms(row):.1f}',
              ratio(over_parent(row)), f'{row["first_ms"]:.1f}', f'{row["baseline_first_ms"]:.1f}',
              row['residual']) for row in rows]
    return ['### Blocks of right-hand sides', '', '`tutorials/ex2.c`: milliseconds of the second solve; "first" are those of the first one, packing included, and with the fewest columns the loading of libraries.',
            'The residual is that of the worst column, over its right-hand side.', ''] + \
        table(('case', 'rows', 'columns', 'kernel', 'iterations', 'aijcusparse', 'ms', 'aijcusparse ms', 'speedup', 'first', 'aijcusparse first', 'residual'), cells)


def section_narrow(rows):
    cells = [(row['case'], row['rows'], row['precision'], row['iterations'], f'{row["ms"]:.1f}', ratio(row['baseline_ms'].get('aijtccusparse_fp64', 0) / row['ms']), row['residual']) for row in rows]
    return ['### Preconditioners of fewer bits', '', '`tutorials/ex3.c`: the matrices of multigrid rounded, the solver in fp64; milliseconds of the second solve.', ''] + \
        table(('case', 'rows', 'preconditioner', 'iterations', 'ms', 'over fp64', 'residual'), cells)


def section_graphs(rows):
    full = {(row['case'], row['n']): row['ms'] for row in rows if row['precision'] == 'fp64'}
    cells = [(row['case'], row['rows'], row['n'], row['precision'], row['kernel'], milliseconds(row['ms']), milliseconds(parent_ms(row)), ratio(over_parent(row)), ratio(full.get((row['case'], row['n']), 0) / row['ms']), f'{row["error"]:.1e}',
              row['recognised']) for row in rows]
    return ['### Graph convolution', '', '`tutorials/ex4.c`: milliseconds of a product of a graph with the features of its vertices, the error over |A| |X|, and the vertices whose class is recognised.', ''] + \
        table(('case', 'vertices', 'features', 'precision', 'kernel', 'ms', 'aijcusparse ms', 'over aijcusparse', 'over fp64', 'error', 'recognised'), cells)


def section_solvers(results, by_process, by_event):
    rows = [row for row in results if row['op'] == 'solve']
    if not rows:
        return []
    petsc = [row for row in rows if not row['case'].startswith((BLOCKS, NARROW, GRAPHS))]
    blocks, narrow, graphs = ([row for row in rows if row['case'].startswith(prefix) and row['ms'] > 0] for prefix in (BLOCKS, NARROW, GRAPHS))
    return ['## Solves', ''] + (section_petsc_tutorials(petsc) if petsc else []) + (section_processes(by_process, petsc) if by_process else []) + (section_events(by_event) if by_event else []) + (section_blocks(blocks) if blocks else []) + (section_narrow(narrow) if narrow else []) + \
        (section_graphs(graphs) if graphs else [])
