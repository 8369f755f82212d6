"""What programs do with a matrix between products: lines of usebench with both types."""
from report.rows import ratio, table


def uses(lines):
    """Lines of uses.tsv, both types' side by side: a row for each use of a case"""
    entries = {}
    for case, use, kind, ms in lines:
        entry = entries.setdefault((case, use), {'case': case, 'use': use})
        entry[f'{kind}_ms'] = min(float(ms), entry.get(f'{kind}_ms', float(ms)))
    return list(entries.values())


def section_uses(rows):
    if not rows:
        return []
    names = list(dict.fromkeys(row['use'] for row in rows))
    cells = []
    for case in dict.fromkeys(row['case'] for row in rows):
        of_case = {row['use']: row for row in rows if row['case'] == case}
        cells.append((case, *(speedup(of_case.get(name, {})) for name in names)))
    return ['## Between products', '', 'New values, made on the device, and one product or ten after them, a solve of 30 iterations with Jacobi, or a part or the transpose used again and a product with that (`usebench`): the host\'s clock, medians of groups, the lesser of two runs in turns; milliseconds, and how many times as fast as aijcusparse; losses bold.', ''] + \
        table(('case', *names), cells)


def speedup(row):
    ours, theirs = row.get('aijtccusparse_ms'), row.get('aijcusparse_ms')
    return f'{ours:.4f}, {ratio(theirs / ours)}' if ours and theirs else '-'
