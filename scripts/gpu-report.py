#!/usr/bin/env python3
"""Turns the results of the GPU kit into docs/gpu-report.json, for programs, and docs/gpu-report.md, for people.

  scripts/gpu-report.py FOLDER [TO]     the folder that gpu-kit/run.sh wrote its results to; where the report goes, default docs

Where bench-host.json comes from `tcbench spmv -host` on another machine, a line "host_cpu TAB processor" in environment.txt says so.
"""
import csv
import json
import math
import os
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
# the rows of the benchmark's table whose time has a target (bench/bench_case.c), and what is asked of the power-law and dense-row matrices
SLACK_OF_TARGET, SLACK_OF_IRREGULAR, IRREGULAR = 1.1, 1.3, ('circuit_3m', 'webbase_1m', 'rmat_20')


def read_table(path):
    if not os.path.exists(path):
        return []
    with open(path, newline='', encoding='utf-8', errors='replace') as file:
        return list(csv.reader(file, delimiter='\t', quoting=csv.QUOTE_NONE))


def read_json(path):
    if not os.path.exists(path):
        return {'benchmarks': []}
    with open(path) as file:
        return json.load(file)


def current_digest():
    return subprocess.run([os.path.join(ROOT, 'scripts', 'report-digest.sh')], check=True, capture_output=True, text=True).stdout.strip()


def table(head, rows):
    lines = ['| ' + ' | '.join(head) + ' |', '|' + '---|' * len(head)]
    return lines + ['| ' + ' | '.join(str(cell) for cell in row) + ' |' for row in rows] + ['']


def number(value):
    return f'{value:.4g}' if value else '-'


def solves(rows):
    """Rows of solvers.tsv, paired: the solve with our type carries the baseline's time and iterations"""
    baseline, entries = {}, []
    for case, np, kind, iterations, residual, seconds, counters, size, nnz in rows:
        if kind == 'aijcusparse':
            baseline[case, np] = (iterations, float(seconds))
            continue
        expected, base_seconds = baseline.get((case, np), ('-', 0.0))
        entries.append({'op': 'solve', 'case': case, 'rows': int(size), 'cols': int(size), 'nnz': int(nnz), 'n': 1, 'ranks': int(np), 'precision': 'fp64', 'kernel': 'dasp', 'ms': 1000 * float(seconds), 'ms_spread': 0.0,
                        'iterations': int(iterations) if iterations.isdigit() else -1, 'baseline_iterations': int(expected) if expected.isdigit() else -1, 'residual': residual,
                        'hits_refills_rebuilds': counters, 'baseline_ms': {'aijcusparse': 1000 * base_seconds}})
    return entries


def geometric_mean(values):
    return math.exp(sum(map(math.log, values)) / len(values)) if values else float('nan')


def section_tests(tests):
    counts = {status: sum(test['status'] == status for test in tests) for status in ('passed', 'failed', 'skipped')}
    lines = ['## Tests', '', f'{counts["passed"]} passed, {counts["failed"]} failed, {counts["skipped"]} skipped.', '']
    bad = [(test['name'], test['status'], test['why']) for test in tests if test['status'] != 'passed']
    if bad:
        lines += table(('test', 'status', 'why'), bad)
    shown = [(test['name'], test['why']) for test in tests if test['status'] == 'passed' and not test['name'].startswith('petsc/')]
    petsc = sum(test['name'].startswith('petsc/') and test['status'] == 'passed' for test in tests)
    if petsc:
        shown.append(("PETSc's own test cases", f'{petsc} passed'))
    return lines + table(('passed', 'what it said'), shown)


def section_spmv(results):
    chosen = [row for row in results if row['op'] == 'spmv' and not row['forced']]
    forced = {row['case']: row for row in results if row['op'] == 'spmv' and row['forced']}
    setup = {(row['op'], row['case']): row for row in results if row['op'] in ('build', 'refresh')}
    rows, speedups = [], []
    for row in chosen:
        base = row['baseline_ms']['aijcusparse']
        speedup = base / row['ms']
        speedups.append(speedup)
        other = forced.get(row['case'])
        target = row['target_ms']
        build, refresh = (setup.get((op, row['case']), {'products': 0})['products'] for op in ('build', 'refresh'))
        rows.append((row['case'], row['rows'], row['nnz'], row['kernel'].replace('tc_spmv_', ''), f'{row["ms"]:.4f} +- {row["ms_spread"]:.4f}', f'{row["kernel_ms"]:.4f}', f'{other["kernel_ms"]:.4f}' if other else '-', f'{base:.4f}',
                     number(row['baseline_ms'].get('cusparse_alg2')), f'{speedup:.2f}' if speedup >= 1 else f'**{speedup:.2f}**', f'{row["bytes"] / row["ms"] / 1e6:.0f}', f'{row["floor_ms"]:.4f}',
                     f'{target:.4f}, {row["ms"] / target:.2f}' if target else '-', f'{build:.0f}, {refresh:.1f}', f'{row["error_over_bound"]:.2f}', 'same' if row['same_bits_as_host'] else '**other**'))
    table_rows = [row for row in chosen if row['target_ms'] or row['case'] in IRREGULAR]
    wins = sum(row['baseline_ms']['aijcusparse'] > row['ms'] for row in table_rows)
    met = [row for row in chosen if row['target_ms'] and row['ms'] <= SLACK_OF_TARGET * row['target_ms']]
    lost = [row for row in chosen if row['ms'] > row['baseline_ms']['aijcusparse']]
    slow = [row['case'] for row in chosen if row['case'] in IRREGULAR and row['ms'] > SLACK_OF_IRREGULAR * row['baseline_ms']['aijcusparse']]
    lines = ['## MatMult', '', 'Milliseconds per product, median of groups in turns with the baseline, and half the spread of the middle half. "kernel" is the kernel alone, without PETSc; "other" the other arithmetic.',
             '"floor" is CSR\'s bytes at the speed of a device copy; "target" the first packed kernels\' time and ours over it; "build, refresh" in products. Losses are bold.', '']
    lines += table(('case', 'rows', 'nonzeros', 'kernel', 'MatMult', 'kernel', 'other', 'aijcusparse', 'ALG2', 'speedup', 'GB/s', 'floor', 'target', 'build, refresh', 'error/bound', 'bits of the host'), rows)
    lines += [f'- Faster than aijcusparse on {wins} of the {len(table_rows)} generated matrices, on {sum(s > 1 for s in speedups)} of all {len(speedups)}; geometric mean {geometric_mean(speedups):.2f}.',
              f'- Within 10% of the target on {len(met)} of {sum(bool(row["target_ms"]) for row in chosen)}; not on: ' + (', '.join(row['case'] for row in chosen if row['target_ms'] and row not in met) or 'none') + '.',
              '- Slower than aijcusparse: ' + (', '.join(f'{row["case"]} ({row["baseline_ms"]["aijcusparse"] / row["ms"]:.2f}x)' for row in lost) or 'none') + '.',
              '- Power-law and dense-row matrices slower than 1.3x aijcusparse: ' + (', '.join(slow) or 'none') + '.', '']
    return lines if chosen else []


def section_host(results, where):
    chosen = [row for row in results if row['op'] == 'spmv']
    rows = [(row['case'], row['rows'], row['nnz'], f'{row["ms"]:.4f}', f'{row["baseline_ms"]["aij"]:.4f}', f'{row["ms"] / row["baseline_ms"]["aij"]:.2f}' if row['ms'] <= row['baseline_ms']['aij'] else f'**{row["ms"] / row["baseline_ms"]["aij"]:.2f}**', f'{row["error_over_bound"]:.2f}') for row in chosen]
    if not rows:
        return []
    return ['## MatMult of the host backend', '', f'{where}; milliseconds; time over that of MATAIJ, losses bold.', ''] + table(('case', 'rows', 'nonzeros', 'aijtccusparse', 'aij', 'time/aij', 'error/bound'), rows)


def section_solvers(results):
    rows = [(row['case'], row['rows'], row['ranks'], row['iterations'], row['baseline_iterations'], f'{row["ms"]:.1f}', f'{row["baseline_ms"]["aijcusparse"]:.1f}', f'{row["baseline_ms"]["aijcusparse"] / row["ms"]:.2f}' if row['ms'] else '-', row['residual'], row['hits_refills_rebuilds']) for row in results if row['op'] == 'solve']
    if not rows:
        return []
    return ['## Solves', '', "PETSc's tutorials, unmodified. Processes share one GPU; times are of the first solve of the process, packing included, in milliseconds. Counters are those of the printed operator.", ''] + table(('case', 'rows', 'processes', 'iterations', 'aijcusparse', 'ms', 'aijcusparse ms', 'speedup', 'residual', 'hits/refills/rebuilds'), rows)


def main():
    if len(sys.argv) not in (2, 3) or not os.path.isdir(sys.argv[1]):
        sys.exit(__doc__)
    folder, to = sys.argv[1], sys.argv[2] if len(sys.argv) == 3 else os.path.join(ROOT, 'docs')
    environment = {row[0]: row[1] for row in read_table(os.path.join(folder, 'environment.txt')) if len(row) == 2}
    bench, host = read_json(os.path.join(folder, 'bench.json')), read_json(os.path.join(folder, 'bench-host.json'))
    tests = [{'name': row[0], 'status': row[1], 'why': row[2] if len(row) > 2 else ''} for row in read_table(os.path.join(folder, 'results.tsv'))]
    report = {'digest': environment['digest'], 'date': environment['date'], 'device': environment['device'], 'driver': environment['driver'], 'cuda': bench.get('cuda', ''), 'cusparse': bench.get('cusparse', ''),
              'petsc': environment['petsc'], 'copy_gbs': bench.get('copy_gbs', 0.0), 'tests': tests, 'benchmarks': bench['benchmarks'] + host['benchmarks'] + solves(read_table(os.path.join(folder, 'solvers.tsv')))}
    if report['digest'] != current_digest():
        print('warning: include/, src/ or kernels/ changed since the kit was packed: the report is stale from the start', file=sys.stderr)
    on_device = [row for row in report['benchmarks'] if row.get('device')]
    lines = ['# GPU report', '', f'Made by `scripts/gpu-report.py` from a run of the GPU kit (`scripts/pack-gpu-kit.sh`) on {report["date"]}: {report["device"]}, driver {report["driver"]}, CUDA {report["cuda"]}, cuSPARSE {report["cusparse"]}, PETSc {report["petsc"]};',
             f'device copy {report["copy_gbs"]:.0f} GB/s. Sources: digest `{report["digest"][:16]}`.', '']
    lines += section_tests(tests) + section_spmv(on_device) + section_host([row for row in host['benchmarks']], f'Run apart from the kit, on one core of another machine, {environment["host_cpu"]}' if 'host_cpu' in environment else f'One core of {environment.get("cpu", "the machine")}') + section_solvers(report['benchmarks'])
    os.makedirs(to, exist_ok=True)
    with open(os.path.join(to, 'gpu-report.json'), 'w') as file:
        head = {key: value for key, value in report.items() if key not in ('tests', 'benchmarks')}
        text = json.dumps(head)[:-1]  # one line per test and per benchmark, so that changes can be read
        for key in ('tests', 'benchmarks'):
            text += f',\n "{key}": [\n' + ',\n'.join('  ' + json.dumps(item) for item in report[key]) + '\n ]'
        file.write(text + '}\n')
    with open(os.path.join(to, 'gpu-report.md'), 'w') as file:
        file.write('\n'.join(lines).rstrip('\n') + '\n')
    failed = [test['name'] for test in tests if test['status'] == 'failed']
    wrong = [row['case'] for row in report['benchmarks'] if row.get('error_over_bound', 0) > 1 or row.get('same_bits_as_host') is False]
    print(f'{to}/gpu-report.json, gpu-report.md: {len(tests)} tests, {len(failed)} failed; {len(report["benchmarks"])} measurements, {len(wrong)} wrong')
    return 1 if failed or wrong else 0


if __name__ == '__main__':
    sys.exit(main())
