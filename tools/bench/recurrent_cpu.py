#!/usr/bin/env python3
"""LSTM, GRU and RNN on the CPU beside ONNX Runtime: layers one above the other, as exporters of PyTorch have them.

usage: recurrent_cpu.py [--threads N] [--rounds N] [--seconds S] [--library FILE] [--steps] [ROW...]

A row is OP LAYERS DIRECTIONS BATCH STEPS HIDDEN; the inputs of the first layer are as wide as its states. Rounds alternate and times are
medians, as of cpu.py.
"""
import sys
import tempfile

import numpy as np
from onnx import helper

import cpu
from library import Library

GATES = {'LSTM': 4, 'GRU': 3, 'RNN': 1}
ROWS = ['LSTM 1 1 1 10 64', 'LSTM 3 1 1 1 640', 'LSTM 1 1 1 100 256', 'LSTM 2 2 1 100 256', 'LSTM 2 2 8 100 256', 'LSTM 1 1 64 50 256', 'LSTM 2 1 1 50 1024',
        'LSTM 1 2 16 500 128', 'LSTM 1 1 3 37 100', 'GRU 1 1 1 100 256', 'GRU 2 2 1 100 256', 'GRU 2 2 8 100 256', 'GRU 1 1 64 50 256',
        'GRU 2 1 1 50 1024', 'RNN 1 1 1 100 256', 'RNN 2 2 8 100 256', 'RNN 1 1 64 50 512']


def layers(op, count, directions, batch, steps, hidden):
    rng = np.random.default_rng(1)
    nodes, constants, x, wide = [], [cpu.constant('joined', np.array([0, 0, -1]))], 'x', hidden
    more = {'linear_before_reset': 1} if op == 'GRU' else {}
    for layer in range(count):
        for name, shape in (('w', (GATES[op] * hidden, wide)), ('r', (GATES[op] * hidden, hidden)), ('b', (2 * GATES[op] * hidden,))):
            array = rng.uniform(-1, 1, (directions, *shape)).astype(np.float32) * np.float32(hidden**-0.5)
            constants.append(cpu.constant(f'{name}{layer}', array))
        nodes.append(helper.make_node(op, [x, f'w{layer}', f'r{layer}', f'b{layer}'], [f'y{layer}'], hidden_size=hidden,
                                      direction='bidirectional' if directions == 2 else 'forward', **more))
        nodes.append(cpu.node('Transpose', f'y{layer}', f't{layer}', perm=[0, 2, 1, 3]))
        x, wide = f'z{layer}', directions * hidden
        nodes.append(cpu.node('Reshape', f't{layer} joined', x))
    made = cpu.model(nodes, [('x', (steps, batch, hidden))], [(x, (steps, batch, wide))], constants)
    return {'as it is': made}, {'x': rng.standard_normal((steps, batch, hidden), dtype=np.float32)}, 0


def main():
    options = cpu.shared_options(1.5).parse_args()
    library = Library(options.library)
    cpu.put_head(options, ['operator', 'layers', 'directions', 'batch', 'steps', 'hidden', 'ours, ms', 'ONNX Runtime, ms', 'ratio', 'error'])
    for name in options.rows or ROWS:
        op, *sizes = name.split()
        cpu.ROWS[name] = lambda: layers(op, *map(int, sizes))
        with tempfile.TemporaryDirectory() as folder:
            row = cpu.bench(name, options, library, folder)
        print(f"| {' | '.join([op] + sizes)} | {row['ours'] * 1e3:.3f} | {row['theirs'] * 1e3:.3f} | {row['ratio']:.2f} "
              f"| {row['error']:.1e} |", flush=True)
        cpu.put_steps(row)


if __name__ == '__main__':
    sys.exit(main())
