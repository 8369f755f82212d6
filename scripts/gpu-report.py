#!/usr/bin/env python3
"""Turns the results of the GPU kit into docs/gpu-report.json, for programs, and docs/gpu-report.md, for people.

  scripts/gpu-report.py [-o TO] [-k REPORT] FOLDER ...     the folders that gpu-kit/run.sh wrote its results to; where the report goes, default docs; a gpu-report.json from before

Folders of several runs of one kit make one report; what is told of the machine is the first one's, of a test that ran several times the last one's, which says so if one before failed. Where bench-host.json comes from `tcbench spmv -host` on another machine, a line "host_cpu TAB processor" in environment.txt says so; a line "note TAB text" says what else
a reader has to know. The sources are the first folder's. A folder of other ones has to say what it is good for all the same, in a line "other_sources TAB text", which the report repeats with their digest.

With -k what no folder has is taken from a report before: tests, which say of which sources they are, solves, and of the rest whole kinds of measurements. What that is good for all the same says a line "kept TAB text".
"""
import csv
import json
import os
import subprocess
import sys

from report import by_rows, others, rows, sparse24, spmm, spmv, uses

LISTS = ('tests', 'benchmarks', 'processes', 'events', 'uses')
ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


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


def read_tables(folders, name):
    return [row for folder in folders for row in read_table(os.path.join(folder, name))]


def digest_of(folder, otherwise):
    """Of the sources that a folder's results are of"""
    return next((row[1] for row in read_table(os.path.join(folder, 'environment.txt')) if row[:1] == ['digest']), otherwise)


def last_results(folders, digest):
    """Of tests that ran several times the last folder's, with a word if that is of other sources; a failure in another one does not go without a word either"""
    tests, failures = {}, {}
    for folder in folders:
        own = digest_of(folder, digest)
        of = '' if own == digest else f'; of sources `{own[:16]}`'
        for name, status, *why in read_table(os.path.join(folder, 'results.tsv')):
            why = (why[0] if why else '') + of
            if status == 'failed':
                failures[name] = why
            elif name in failures:
                why = f'{why}; failed in another run: {failures[name]}'
            tests[name] = {'name': name, 'status': status, 'why': why}
    return [tests[name] for name in sorted(tests)]  # the kit has them in the order of their ends


def other_sources(folders, digest):
    """What the folders say that are not of these sources, a sentence each, for every digest"""
    said = {}
    for folder in folders:
        own = {row[0]: row[1] for row in read_table(os.path.join(folder, 'environment.txt')) if len(row) == 2}
        if own.get('digest', digest) == digest:
            continue
        if 'other_sources' not in own:
            sys.exit(f'{folder} is of other sources than {folders[0]}, and does not say why it may be used')
        said[f'{own["other_sources"]}: digest `{own["digest"][:16]}`.'] = True
    return list(said)


def read_report(folders, environment):
    """What goes to the JSON file"""
    benches, hosts = ([read_json(os.path.join(folder, name)) for folder in folders] for name in ('bench.json', 'bench-host.json'))
    bench = next((each for each in benches if any(row['op'] == 'spmv' for row in each['benchmarks'])), benches[0]) # shares of the copy's bandwidth are of products with vectors
    measured = [row for each in benches + hosts for row in each['benchmarks']]
    return {'digest': environment['digest'], 'date': environment['date'], 'device': environment['device'], 'driver': environment['driver'], 'cuda': bench.get('cuda', ''), 'cusparse': bench.get('cusparse', ''),
            'petsc': environment['petsc'], 'copy_gbs': bench.get('copy_gbs', 0.0), 'note': environment.get('note', ''), 'other_sources': environment['other_sources'],
            'tests': last_results(folders, environment['digest']),
            'benchmarks': measured + others.solves(read_tables(folders, 'solvers.tsv')), 'processes': others.processes(read_tables(folders, 'processes.tsv')), 'events': others.events(read_tables(folders, 'events.tsv')),
            'uses': uses.uses(read_tables(folders, 'uses.tsv'))}


def key_of(name, item):
    """What makes an item of one of the lists the same as another one: of measurements the kind, of solves the solve"""
    if name == 'tests':
        return item['name']
    if name == 'benchmarks':
        return (item['op'], item['case'], item['ranks'], item['n'], item['precision']) if item['op'] == 'solve' else (item['op'], item.get('device'))
    return tuple(item.get(part) for part in ('case', 'ranks', 'event', 'use'))


def keep(report, before, text):
    """Adds what the report before has and this one has not"""
    for name in LISTS:
        there = {key_of(name, item) for item in report[name]}
        kept = [item for item in before[name] if key_of(name, item) not in there]
        if name == 'tests':
            kept = [item if 'of sources' in item['why'] else item | {'why': f'{item["why"]}; of sources `{before["digest"][:16]}`'} for item in kept]
        report[name] += kept
    report['tests'].sort(key=lambda test: test['name'])
    for name in ('cuda', 'cusparse', 'copy_gbs'):
        report[name] = report[name] or before[name]
    report['other_sources'] += [f'{text}: digest `{before["digest"][:16]}`.'] + before['other_sources']


def write_json(report, path):
    head = {key: value for key, value in report.items() if key not in LISTS}
    text = json.dumps(head)[:-1]  # one line per test and per benchmark, so that changes can be read
    for key in LISTS:
        text += f',\n "{key}": [\n' + ',\n'.join('  ' + json.dumps(item) for item in report[key]) + '\n ]'
    with open(path, 'w') as file:
        file.write(text + '}\n')


def write_markdown(report, environment, path):
    results = report['benchmarks']
    on_device = [row for row in results if row.get('device')]
    on_host = [row for row in results if row.get('device') is False]
    if 'host_cpu' in environment:
        where = f'Run apart from the kit, on one core of another machine, {environment["host_cpu"]}'
    else:
        where = f'One core of {environment.get("cpu", "the machine")}' + (f', {environment["host_beside"]}' if 'host_beside' in environment else '')
    lines = ['# GPU report', '', f'Made by `scripts/gpu-report.py` from a run of the GPU kit (`scripts/pack-gpu-kit.sh`) on {report["date"]}: {report["device"]}, driver {report["driver"]}, CUDA {report["cuda"]}, cuSPARSE {report["cusparse"]}, PETSc {report["petsc"]};',
             f'device copy {report["copy_gbs"]:.0f} GB/s. Sources: digest `{report["digest"][:16]}`.', '']
    if report['note']:
        lines += [report['note'], '']
    if report['other_sources']:
        lines += [' '.join(report['other_sources']), '']
    counts = {status: sum(test['status'] == status for test in report['tests']) for status in ('passed', 'failed', 'skipped')}
    lines += [f'Tests, below: {counts["passed"]} passed, {counts["failed"]} failed, {counts["skipped"]} skipped.', '']
    lines += spmv.section_spmv(on_device, report['copy_gbs'])
    lines += spmv.section_operation(on_device, 'spmv_add', 'MatMultAdd in place') + spmv.section_operation(on_device, 'spmv_r', 'MatResidual') + spmv.section_operation(on_device, 'spmv_t', 'MatMultTranspose')
    lines += spmv.section_precision(on_device)
    for op in spmm.TITLES:
        lines += spmm.section_spmm(on_device, op)
    lines += spmm.section_few(on_device)
    lines += spmm.section_spmm_precision(on_device) + by_rows.section_by_rows(on_device) + sparse24.section_sparse24(on_device)
    lines += others.section_solvers(results, report['processes'], report['events']) + uses.section_uses(report['uses']) + others.section_host(on_host, where) + spmm.section_host(on_host, where) + others.section_tests(report['tests'])
    with open(path, 'w') as file:
        file.write('\n'.join(lines).rstrip('\n') + '\n')


def main():
    folders, asked = sys.argv[1:], {}
    while folders[:1] in (['-o'], ['-k']) and len(folders) > 1:
        asked[folders[0]] = folders[1]
        folders = folders[2:]
    to = asked.get('-o', os.path.join(ROOT, 'docs'))
    if not folders or not all(os.path.isdir(folder) for folder in folders):
        sys.exit(__doc__)
    for folder in folders:
        if not os.path.isfile(os.path.join(folder, 'environment.txt')):
            sys.exit(f'{folder} is no result of the kit: it has no environment.txt')
    told = [row for row in read_tables(folders, 'environment.txt') if len(row) == 2]
    environment = {row[0]: row[1] for row in reversed(told)}
    environment['other_sources'] = other_sources(folders, environment['digest'])
    report = read_report(folders, environment)
    if '-k' in asked:
        if 'kept' not in environment:
            sys.exit(f'no folder says, in a line "kept" of its environment.txt, what {asked["-k"]} is good for all the same')
        keep(report, read_json(asked['-k']), environment['kept'])
    if report['digest'] != current_digest():
        print('warning: include/, src/ or kernels/ changed since the kit was packed: the report is stale from the start', file=sys.stderr)
    os.makedirs(to, exist_ok=True)
    write_json(report, os.path.join(to, 'gpu-report.json'))
    write_markdown(report, environment, os.path.join(to, 'gpu-report.md'))
    failed = [test['name'] for test in report['tests'] if test['status'] == 'failed']
    wrong = [row['case'] for row in report['benchmarks'] if rows.is_wrong(row)]
    print(f'{to}/gpu-report.json, gpu-report.md: {len(report["tests"])} tests, {len(failed)} failed; {len(report["benchmarks"])} measurements, {len(wrong)} wrong')
    return 1 if failed or wrong else 0


if __name__ == '__main__':
    sys.exit(main())
