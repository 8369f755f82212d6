#!/usr/bin/env python3
"""Stages PETSc's own test sources for another matrix type, and reports what PETSc's harness made of them.

  suite.py stage --petsc-dir DIR --mode MODE --to FOLDER [--only PATTERN]   copies gmakefile.test, the sources of the table and their expected outputs
  suite.py report --mode MODE --testdir FOLDER [--only PATTERN]             one line per test, then "petsc suite: N passed, N failed, N skipped"
  suite.py missing --mode MODE --to FOLDER [--only PATTERN]                 the cases of the table that belong to none of the tests on standard input, a line each

The table is cases.txt beside this file. A staged source keeps its code; of its TEST block only the cases of the table stay, with type names replaced
in their `args:` and, in the host modes, without what needs a device. Modes: run.sh.
"""
import argparse
import fnmatch
import os
import re
import shutil
import sys

TABLE = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'cases.txt')
HOST_MODES = ('host', 'parent-host')
MODES = HOST_MODES + ('cuda', 'parent')
STATUS = ('run', 'host', 'device', 'aware', 'skip')


class Case:
    def __init__(self, line, where):
        fields = line.split(None, 3)
        if len(fields) < 3 or not set(fields[2].split(',')) <= set(STATUS):
            sys.exit(f'{where}: expected "source suffix {"|".join(STATUS)} [why]", found: {line}')
        self.source, self.suffix = fields[:2]
        self.status = fields[2].split(',')
        self.why = fields[3] if len(fields) > 3 else ''
        self.without = {}
        while match := re.match(r'(host|cuda)-without=(\S+) *', self.why):
            self.without[match[1]], self.why = match[2], self.why[match.end():]
            if not self.why:
                sys.exit(f'{where}: {match[1]}-without needs a reason')
        if self.status != ['run'] and not self.why:
            sys.exit(f'{where}: a case that does not always run needs a reason')
        folder, name = os.path.split(self.source)
        self.target = f'{folder.replace("/", "_")}-{name.rsplit(".", 1)[0]}_{self.suffix}'

    def skipped(self, mode, gpu_aware):
        """Why this case does not run in this mode, or None"""
        host = mode in HOST_MODES
        if 'skip' in self.status or ('device' in self.status and host) or ('host' in self.status and not host) or ('aware' in self.status and not host and not gpu_aware):
            return self.why
        return None


def read_table(only):
    cases = []
    with open(TABLE) as table:
        for number, line in enumerate(table, 1):
            line = line.split('#')[0].strip()
            if line:
                cases.append(Case(line, f'{TABLE}:{number}'))
    return [case for case in cases if fnmatch.fnmatch(case.target, only)]


def write_if_changed(path, text):
    """Unchanged files keep their time, so nothing is compiled or generated again for them"""
    try:
        with open(path) as old:
            if old.read() == text:
                return
    except FileNotFoundError:
        pass
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, 'w') as new:
        new.write(text)


# --- the TEST block: a tree by indentation, as PETSc's config/testparse.py reads it


def split_block(lines):
    """Lines of one level -> [(header, body lines)]; header None for the lines before the first test, testset or build"""
    parts, indent = [(None, [])], None
    for line in lines:
        match = re.match(r'( *)(test|testset|build):\s*$', line)
        if match and (indent is None or len(match.group(1)) <= indent):
            indent = len(match.group(1))
            parts.append((line, []))
        else:
            parts[-1][1].append(line)
    return parts


def value_of(key, lines):
    for line in lines:
        if line.split(':')[0].strip() == key:
            return line.split(':', 1)[1].strip()
    return ''


# seqaij copies its composed functions to ILU(0) and ICC(0) factors and does not know those of ours when a factor goes, which -checkfunctionlist tells
LEFT_ON_FACTORS = 'sed "/function name: MatProductSetFromOptions_seqaij_seqdense/d"'


def filtered(attributes, filters):
    """The attributes of a case with these filters of its output"""
    indent = attributes[0][: len(attributes[0]) - len(attributes[0].lstrip())]
    return [line for line in attributes if line.split(':')[0].strip() != 'filter'] + [f'{indent}filter: {" | ".join(f for f in filters if f)}']


def filtered_for(case, mode, attributes, inherited_filter):
    """The attributes of a case in a mode: without the lines that its row of the table drops from its output and from the expected one there"""
    before = value_of('filter', attributes) or inherited_filter
    left = LEFT_ON_FACTORS if mode == 'host' else ''
    without = case.without.get('host' if mode in HOST_MODES else mode)
    if not without:
        return filtered(attributes, [before, left]) if left else attributes
    grep = f'grep -vE "{without}"'
    kept = filtered(attributes, [before, left, grep])
    return kept + [f'{kept[-1][: len(kept[-1]) - len(kept[-1].lstrip())]}filter_output: {grep}']


def select(lines, wanted, mode, prefix='', inherited_filter=''):
    """The lines of the cases in `wanted` (suffix -> Case), and the set of suffixes found"""
    kept, found = [], set()
    for header, body in split_block([line for line in lines if line.strip() and not line.lstrip().startswith('#')]):
        if header is None:
            kept += body
        elif header.strip() == 'build:':
            kept += [header] + body
        else:
            parts = split_block(body)
            attributes = parts[0][1]
            suffix = '_'.join(part for part in (prefix, value_of('suffix', attributes)) if part)
            if len(parts) == 1:
                if suffix in wanted:
                    kept += [header] + filtered_for(wanted[suffix], mode, attributes, inherited_filter)
                    found.add(suffix)
            else:
                inner, inner_found = select(body, wanted, mode, suffix, value_of('filter', attributes) or inherited_filter)
                if inner_found:
                    kept += [header] + inner
                    found |= inner_found
    return kept, found


# --- replacing types and dropping device requirements


def host_args(text):
    """Options without what needs a device: vectors and dense matrices become the standard ones, solvers of cuSPARSE PETSc's own"""
    text = re.sub(r'-\w*vec_type (seq|mpi)?cuda\b', '', text)
    text = re.sub(r'-(xgpu|bgpu)( \{\{[^}]*\}\}(separate output)?)?', '', text)
    text = re.sub(r'-\w*mat_solver_type cusparse\b', '', text)
    text = re.sub(r'-use_gpu_aware_mpi 0', '', text)
    text = re.sub(r'\b(seq|mpi)?densecuda\b', r'\1dense', text)

    def unique(match):
        values = list(dict.fromkeys(match.group(1).split()))
        return '{{' + ' '.join(values) + '}' + match.group(2) if len(values) > 1 else values[0]

    text = re.sub(r'\{\{([^}]*)\}((?:separate output|shared output)?\})', unique, text)
    return re.sub(r'(?<=\S)  +', ' ', text).rstrip()


NEW_TYPE = {'host': 'aijtccusparse', 'cuda': 'aijtccusparse', 'parent-host': 'aij', 'parent': 'aijcusparse'}


def edit(lines, mode):
    edited = []
    for line in lines:
        key = line.split(':')[0].strip()
        if key == 'args':
            line = re.sub(r'\baij,aij\b', 'aij', line.replace('aijcusparse', NEW_TYPE[mode]))
            if mode in HOST_MODES:
                line = host_args(line)
        elif key == 'requires' and mode in HOST_MODES:
            line = re.sub(r'(?<![\w!])(cuda\b|defined\(PETSC_HAVE_MPI_GPU_AWARE\)) *', '', line)
            if not line.split(':', 1)[1].strip():
                continue
        elif key == 'TODO' and mode != 'parent':  # PETSc's mark for cases it leaves out
            continue
        edited.append(line)
    return edited


def host_output(text):
    """What the parent prints on a device, as it prints it on the host"""
    for device, host in (('aijcusparse', 'aij'), ('seqcuda', 'seq'), ('mpicuda', 'mpi'), ('package used to perform factorization: cusparse', 'package used to perform factorization: petsc')):
        text = text.replace(device, host)
    return text


def stage(arguments):
    source_root, root = os.path.join(arguments.petsc_dir, 'src'), os.path.join(arguments.to, 'src')
    wanted, absent = {}, []
    for case in read_table(arguments.only):
        if case.skipped(arguments.mode, arguments.gpu_aware) is None:
            wanted.setdefault(case.source, {})[case.suffix] = case
    for folder, _, files in os.walk(root):
        for name in files:
            if name.endswith(('.c', '.cu')) and os.path.relpath(os.path.join(folder, name), root) not in wanted:
                os.remove(os.path.join(folder, name))
    for source, suffixes in wanted.items():
        original = os.path.join(source_root, source)
        if not os.path.exists(original):
            absent += [(source, suffix) for suffix in suffixes]
            continue
        with open(original) as file:
            text = file.read()
        code, block = text.split('/*TEST', 1)
        block, rest = block.split('TEST*/', 1)
        kept, found = select(block.split('\n'), suffixes, arguments.mode)
        absent += [(source, suffix) for suffix in set(suffixes) - found]
        write_if_changed(os.path.join(root, source), code + '/*TEST\n' + '\n'.join(edit(kept, arguments.mode)) + '\nTEST*/' + rest)
        folder, name = os.path.split(source)
        stem = name.rsplit('.', 1)[0]
        for output in sorted(os.listdir(os.path.join(source_root, folder, 'output'))):
            if output.startswith((stem + '_', stem + '.', 'empty.')):
                with open(os.path.join(source_root, folder, 'output', output)) as file:
                    text = file.read()
                # a test swept over types has their names in the name of its output
                write_if_changed(os.path.join(root, folder, 'output', output.replace('aijcusparse', NEW_TYPE[arguments.mode]) if '-' in output else output),
                                 host_output(text) if arguments.mode in HOST_MODES else text)
    shutil.copy2(os.path.join(arguments.petsc_dir, 'gmakefile.test'), os.path.join(arguments.to, 'gmakefile.test'))
    with open(os.path.join(arguments.to, 'absent.txt'), 'w') as file:
        file.writelines(f'{source} {suffix}\n' for source, suffix in sorted(absent))


def read_counts(folder):
    """PETSc's harness leaves one file of counts per test"""
    counts = {}
    for name in sorted(os.listdir(folder)) if os.path.isdir(folder) else []:
        if name.endswith('.counts'):
            with open(os.path.join(folder, name)) as file:
                fields = [line.split() for line in file if line.strip()]
            counts[name[: -len('.counts')]] = {key: values for key, *values in fields}
    return counts


def read_absent(folder):
    with open(os.path.join(folder, 'absent.txt')) as file:
        return {tuple(line.split()) for line in file}


def tests_of(cases, targets):
    """The harness's tests by the case that they belong to"""
    owners = {}
    for target in targets:
        # a sweep over nsize of an enclosing testset comes before the suffix, other sweeps after it
        name = re.sub(r'-(ex\w+?)_nsize-\d+', r'-\1', target)
        matching = [case for case in cases if name == case.target or name.startswith(case.target + '_')]
        if matching:
            owners.setdefault(max(matching, key=lambda case: len(case.target)).target, []).append(target)
    return owners


def missing(arguments):
    cases, absent = read_table(arguments.only), read_absent(arguments.to)
    owners = tests_of(cases, [line.strip() for line in sys.stdin])
    for case in cases:
        if case.skipped(arguments.mode, arguments.gpu_aware) is None and (case.source, case.suffix) not in absent and case.target not in owners:
            print(case.target)
    return 0


def report(arguments):
    cases, absent = read_table(arguments.only), read_absent(arguments.to)
    counts = read_counts(os.path.join(arguments.testdir, 'counts'))
    owners = tests_of(cases, counts)
    passed = failed = skipped = 0
    for case in cases:
        why = case.skipped(arguments.mode, arguments.gpu_aware)
        if why is None and (case.source, case.suffix) in absent:
            why = 'not in this PETSc release'
        if why is not None:
            skipped += 1
            print(f'[  SKIPPED ] {case.target}: {why}')
            continue
        if case.target not in owners:
            failed += 1
            print(f'[  FAILED  ] {case.target}: PETSc\'s harness did not run it')
        for target in owners.get(case.target, []):
            count = counts[target]
            total, bad, skips = (int((count.get(key) or ['0'])[0]) for key in ('total', 'failed', 'skip'))
            seconds = (count.get('time') or ['0'])[0]
            if bad or total == 0 and skips <= 0:
                failed += 1
                print(f'[  FAILED  ] {target}: {" ".join(count.get("failures", [])) or "nothing was run"}')
            elif skips > 0:
                skipped += 1
                print(f'[  SKIPPED ] {target}: by PETSc\'s harness, see the log')
            else:
                passed += 1
                print(f'[       OK ] {target} ({total} checks, {seconds} s)')
    print(f'petsc suite: {passed} passed, {failed} failed, {skipped} skipped')
    return 1 if failed else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('action', choices=('stage', 'report', 'missing'))
    parser.add_argument('--mode', choices=MODES, required=True)
    parser.add_argument('--petsc-dir')
    parser.add_argument('--to', required=True, help='the folder of the staged sources')
    parser.add_argument('--testdir', help='TESTDIR of the harness')
    parser.add_argument('--only', default='*', help='shell pattern of test names, mat_tests-ex5_*')
    parser.add_argument('--gpu-aware', action='store_true', help='MPI takes device pointers')
    arguments = parser.parse_args()
    return {'stage': stage, 'report': report, 'missing': missing}[arguments.action](arguments)


if __name__ == '__main__':
    sys.exit(main())
