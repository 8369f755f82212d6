"""A row of the report's JSON, one measurement: what is derived from it, and how it is written."""
import math

PARENTS = ('aij', 'aijcusparse', 'seqaij', 'seqaijcusparse')  # kernel of a row whose product was left to the parent type


def table(head, rows):
    lines = ['| ' + ' | '.join(head) + ' |', '|' + '---|' * len(head)]
    return lines + ['| ' + ' | '.join(str(cell) for cell in row) + ' |' for row in rows] + ['']


def listed(texts):
    return ', '.join(texts) or 'none'


def milliseconds(value):
    return f'{value:.4f}' if value else '-'


def ratio(value, least=1.0):
    """A quotient, bold below what it should be at least; a dash where there is none"""
    if not value or not math.isfinite(value):
        return '-'
    return f'{value:.2f}' if value >= least else f'**{value:.2f}**'


def percent(value, least=0.0):
    return ratio(value, least) if not value else f'{100 * value:.0f}%' if value >= least else f'**{100 * value:.0f}%**'


def geometric_mean(values):
    return math.exp(sum(map(math.log, values)) / len(values)) if values else float('nan')


def chosen(rows, *ops, rounded=False):
    """What the type does by itself, with the entries as they are or rounded"""
    return [row for row in rows if row['op'] in ops and not row.get('forced') and row['ms'] > 0 and (row['precision'] != 'fp64') == rounded]


def forced(rows, *ops):
    return [row for row in rows if row['op'] in ops and row.get('forced') and row['ms'] > 0 and row['precision'] == 'fp64']


def parent_ms(row):
    return next((ms for name, ms in row['baseline_ms'].items() if name in PARENTS), 0.0)


def cusparse_ms(row):
    """The best of cuSPARSE's algorithms, without PETSc; 0 where none was measured"""
    return min((ms for name, ms in row['baseline_ms'].items() if name.startswith('cusparse') and ms > 0), default=0.0)


def over_parent(row):
    return parent_ms(row) / row['ms']


def over_cusparse(row):
    """Both without PETSc where the kernel was timed alone"""
    return cusparse_ms(row) / (row.get('kernel_ms') or row['ms'])


def gbs(row):
    return row.get('bytes', 0) / row['ms'] / 1e6


def products(row, what):
    """What 'build' or 'refill' takes, in products"""
    return (row.get(what + '_ms') or 0) / row['ms']


def is_wrong(row):
    if row.get('error_over_bound') is not None and row['error_over_bound'] > 1:
        return True
    return row.get('same_bits_as_host') is False and row['kernel'] not in PARENTS


def error(row):
    """The largest error over its bound, bold if the product was wrong"""
    value = row.get('error_over_bound')
    return '-' if value is None else f'{value:.2f}' if value <= 1 else f'**{value:.3g}**'


def bits(row):
    if row['kernel'] in PARENTS or 'same_bits_as_host' not in row:
        return '-'
    return 'same' if row['same_bits_as_host'] else '**other**'


def kernel(row):
    name = row['kernel']
    for part in ('tc_', 'spmv_', 'spmm_', '_f64'):
        name = name.replace(part, '')
    return name


def kinds(row):
    """'columns shift 49%, u8 51%, u16 0%; values d8 0%, f64 100%' to 'shift 49% u8 51%; f64'"""
    groups = []
    for group in filter(None, row.get('kinds', '').split('; ')):
        words = [part.split()[-2:] for part in group.split(', ')]
        there = [(name, share) for name, share in words if share != '0%']
        groups.append(' '.join(name if share == '100%' else f'{name} {share}' for name, share in there))
    return '; '.join(groups) or '-'


def size_of(row):
    return row['case'], row['rows'], row['nnz']
