#!/usr/bin/env python3
"""Draws what tcbench measured: roofline.png, what every case reaches of the device's copy bandwidth, and bars for every case: speedup.png, and speedup-spmm.png
for products with dense blocks where there are any.

  scripts/plot-benchmarks.py [JSON [FOLDER]]     default docs/gpu-report.json, and the folder of the JSON file

JSON is the GPU report's or tcbench's own. Needs matplotlib.
"""
import json
import os
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
OURS, CUSPARSE, LINE = '#2b6cb0', '#dd8a2f', '#555555'
OPERATIONS = {'spmv': 'MatMult', 'spmv_add': 'MatMultAdd', 'spmv_r': 'MatResidual', 'spmv_t': 'MatMultTranspose'}
BLOCK_OPERATIONS = {'spmm': 'MatMatMult', 'spmm_t': 'MatTransposeMatMult', 'spmm_abt': 'MatMatTransposeMult'}


def chosen(report, operations):
    """Rows of these operations by what the type chooses, entries not rounded: on the device, or on the host if there are no others"""
    rows = [row for row in report['benchmarks'] if row['op'] in operations and not row.get('forced') and row.get('ms', 0) > 0 and row['precision'] == 'fp64']
    return [row for row in rows if row.get('device')] or rows


def over_parent(row):
    baseline = row['baseline_ms']
    return baseline.get('aijcusparse', baseline.get('aij', 0)) / row['ms']


def over_cusparse(row):
    """Both without PETSc where that was measured; 0 without cuSPARSE"""
    times = [ms for name, ms in row['baseline_ms'].items() if name.startswith('cusparse')]
    return min(times) / (row.get('kernel_ms') or row['ms']) if times else 0


def label(row):
    if row['op'] in BLOCK_OPERATIONS:
        return f'{row["case"]}, {row["n"]} columns' + {'spmm_t': ', transposed', 'spmm_abt': ', block transposed'}.get(row['op'], '')
    return row['case'] if row['op'] == 'spmv' else f'{row["case"]} ({OPERATIONS[row["op"]]})'


def new_figure(plt, width, height):
    figure, axes = plt.subplots(figsize=(width, height), layout='constrained')
    axes.spines[['top', 'right']].set_visible(False)
    axes.grid(True, color='#e5e5e5', linewidth=0.6)
    axes.set_axisbelow(True)
    return figure, axes


def roofline(plt, report, rows, path):
    """Flops per byte really moved against flops per second; the roof is the copy bandwidth, since nothing else limits these products"""
    copy = report.get('copy_gbs', 0)
    figure, axes = new_figure(plt, 9, 6)
    points = [(2 * row['nnz'] / row['bytes'], 2 * row['nnz'] / row['ms'] / 1e6, row) for row in rows if row.get('bytes') and row['nnz'] > 0]
    for random_values, colour, name in ((True, OURS, 'random values'), (False, CUSPARSE, 'other values')):
        part = [(x, y) for x, y, row in points if row.get('random_values', True) == random_values]
        if part:
            axes.scatter(*zip(*part), s=26, color=colour, alpha=0.8, linewidths=0, label=name, zorder=3)
    if copy and points:
        ends = (min(x for x, _, _ in points) * 0.8, max(x for x, _, _ in points) * 1.25)
        axes.plot(ends, [copy * x for x in ends], color=LINE, label=f'device copy, {copy:.0f} GB/s')
        axes.plot(ends, [0.9 * copy * x for x in ends], color=LINE, linestyle='--', linewidth=0.8, label='90% of it')
        for x, y, row in sorted(points, key=lambda point: point[1] / point[0])[:6]:  # the farthest below the roof
            axes.annotate(label(row), (x, y), xytext=(5, -3), textcoords='offset points', fontsize=7, color=LINE)
    axes.set_xscale('log')
    axes.set_yscale('log')
    axes.set_xlabel('flops per byte really moved')
    axes.set_ylabel('GFlop/s')
    axes.set_title(f'Products with a vector on {report.get("device", "?")}', loc='left')
    axes.legend(frameon=False)
    figure.savefig(path, dpi=150)
    plt.close(figure)


def speedup(plt, report, rows, path, what):
    rows = sorted(rows, key=over_parent)
    figure, axes = new_figure(plt, 9, 1.5 + 0.24 * len(rows))
    places = range(len(rows))
    parent = 'aijcusparse' if any('aijcusparse' in row['baseline_ms'] for row in rows) else 'aij'
    with_cusparse = any(over_cusparse(row) for row in rows)
    height = 0.38 if with_cusparse else 0.7
    axes.barh([place + (height / 2 if with_cusparse else 0) for place in places], [over_parent(row) for row in rows], height, color=OURS, label=f'over {parent}')
    if with_cusparse:
        axes.barh([place - height / 2 for place in places], [over_cusparse(row) for row in rows], height, color=CUSPARSE, label='over the best of cuSPARSE, both without PETSc' if any(row.get('kernel_ms') for row in rows) else 'over the best of cuSPARSE, of any layout')
    axes.axvline(1, color=LINE, linewidth=1)
    axes.set_yticks(list(places), [label(row) + ('' if row.get('random_values', True) else ' *') for row in rows], fontsize=7)
    axes.set_ylim(-0.8, len(rows) - 0.2)
    axes.set_xlabel('times faster; * values that are not random')
    axes.set_title(f'Products with {what} on {report.get("device", "?")}', loc='left')
    axes.legend(frameon=False, loc='lower right')
    figure.savefig(path, dpi=150)
    plt.close(figure)


def main():
    if len(sys.argv) > 3 or '-h' in sys.argv or '--help' in sys.argv:
        sys.exit(__doc__)
    source = sys.argv[1] if len(sys.argv) > 1 else os.path.join(ROOT, 'docs', 'gpu-report.json')
    folder = sys.argv[2] if len(sys.argv) > 2 else os.path.dirname(os.path.abspath(source))
    try:
        import matplotlib
        matplotlib.use('Agg')
        import matplotlib.pyplot as plt
    except ImportError:
        sys.exit('plot-benchmarks.py needs matplotlib, which this Python does not have: python3 -m pip install matplotlib')
    with open(source) as file:
        report = json.load(file)
    vectors, blocks = chosen(report, OPERATIONS), chosen(report, BLOCK_OPERATIONS)
    if not vectors and not blocks:
        sys.exit(f'{source} holds no products')
    os.makedirs(folder, exist_ok=True)
    for name, draw, rows, *what in (('roofline.png', roofline, vectors), ('speedup.png', speedup, vectors, 'a vector'), ('speedup-spmm.png', speedup, blocks, 'dense blocks')):
        if rows:
            draw(plt, report, rows, os.path.join(folder, name), *what)
            print(os.path.join(folder, name))


if __name__ == '__main__':
    main()
