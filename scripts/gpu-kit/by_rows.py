#!/usr/bin/env python3
"""The lines of `test_spmm_kernels -bench 1 -row-major N,N,... [-reorder]` as rows of a benchmark's JSON file: by_rows.py FILE"""
import json
import re
import sys

CASE = re.compile(r'(\S+) (\d+): (\d+) x (\d+), (\d+) entries')
RULE = re.compile(r'  rules for blocks by rows: n +(\d+)  (\S+)')
TIME = re.compile(r'  (\S+(?: fp32 alg\d)?) +n +(\d+) +([0-9.]+) ms .*row-major floats')


def read(lines):
    """A dictionary for each case: its size; and for each number of columns the rule's format, times of cuSPARSE, of our kernels, and of these with rows reordered"""
    cases, case, reordered = [], None, False
    for line in lines:
        if found := CASE.match(line):
            name, size, rows, cols, nnz = found.groups()
            case, reordered = {'case': f'{name}:{size}', 'rows': int(rows), 'cols': int(cols), 'nnz': int(nnz), 'columns': {}}, False
            cases.append(case)
        elif line.startswith('  rows reordered'):
            reordered = True
        elif found := RULE.match(line):
            case['columns'][int(found[1])] = {'format': found[2], 'cusparse': {}, 'ours': {}, 'reordered': {}}
        elif found := TIME.match(line):
            which = 'cusparse' if found[1].startswith('cuSPARSE') else 'reordered' if reordered else 'ours'
            case['columns'][int(found[2])][which][found[1]] = float(found[3])
    return cases


def chosen(times):
    """The kernel of the rule's format; of tiles the one for clusters where there are any"""
    of_format = [name for name in times['ours'] if times['format'] in name]
    return max(of_format, key=lambda name: 'cluster' in name)


def benchmarks(cases):
    for case in cases:
        for n, times in case['columns'].items():
            kernel = chosen(times)
            yield {'op': 'spmm_by_rows', 'case': case['case'], 'rows': case['rows'], 'cols': case['cols'], 'nnz': case['nnz'], 'n': n, 'ranks': 1, 'precision': 'tf32', 'kernel': kernel, 'device': True,
                   'ms': times['ours'][kernel], 'fastest_ms': min(times['ours'].values()), 'reordered_ms': min(times['reordered'].values(), default=0.0),
                   'baseline_ms': {'cusparse_fp32': min(times['cusparse'].values())} | {name.lower().replace(' ', '_'): ms for name, ms in times['cusparse'].items()}}


if __name__ == '__main__':
    with open(sys.argv[1]) as file:
        found = list(benchmarks(read(file)))
    json.dump({'benchmarks': found}, sys.stdout)
