#!/usr/bin/env python3
"""Compares the measurements of two GPU reports, case by case: what became slower, and the geometric means.

  scripts/compare-reports.py [-by PERCENT] BEFORE.json [AFTER.json]     default: by 5, docs/gpu-report.json

A time of `auto` counts against its own in BEFORE, the parent's beside it, since machines differ: where both changed alike it was the machine. Builds, repeated builds and
refills have no parent. BEFORE from an earlier commit: git show COMMIT:docs/gpu-report.json
"""
import argparse
import json
import math
import os

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
SETUP = ('build_ms', 'again_ms', 'refill_ms')


def chosen(path):
    """What `auto` took on the device, by operation, precision, columns, processes and case"""
    with open(path) as file:
        rows = json.load(file)['benchmarks']
    return {(f'{row["op"]} {row["suite"]}' if 'suite' in row else row['op'], row['precision'], row['n'], row.get('ranks', 1), row['case']): row for row in rows if row.get('device') and not row.get('forced') and row.get('baseline_ms') and row['ms'] > 0}


def parent(row):
    return next(iter(row['baseline_ms'].values()))


def report(title, changes, by):
    """changes: (time after over time before, that of the parent or None, case, before, after)"""
    mean = math.exp(sum(math.log(change[0]) for change in changes) / len(changes))
    print(f'{title}: {len(changes)} cases, time {mean:.3f} of what it was')
    for ours, theirs, case, before, after in sorted(changes, reverse=True, key=lambda change: change[0]):
        if ours > 1 + by / 100:
            print(f'  {case}: {1000 * before:.1f} to {1000 * after:.1f} us, {ours:.2f} times' + ('' if theirs is None else f'; the parent {theirs:.2f} times'))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument('-by', type=float, default=5)
    parser.add_argument('before')
    parser.add_argument('after', nargs='?', default=os.path.join(ROOT, 'docs', 'gpu-report.json'))
    arguments = parser.parse_args()
    before, after = chosen(arguments.before), chosen(arguments.after)
    groups = {}
    for key, row in after.items():
        was = before.get(key)
        if was is None:
            continue
        op, precision, columns = key[:3]
        title = f'{op} {precision}' + (f', {columns} columns' if columns > 1 else '')
        groups.setdefault(title, []).append((row['ms'] / was['ms'], parent(row) / parent(was), key[-1], was['ms'], row['ms']))
        for name in SETUP:
            if row.get(name, 0) > 0 and was.get(name, 0) > 0:
                groups.setdefault(f'{title}, {name[:-3]}', []).append((row[name] / was[name], None, key[-1], was[name], row[name]))
    for title, changes in groups.items():
        report(title, changes, arguments.by)
    missing = sorted({key[-1] for key in before} - {key[-1] for key in after})
    print('not in the later report: ' + (', '.join(missing) or 'none'))


if __name__ == '__main__':
    main()
