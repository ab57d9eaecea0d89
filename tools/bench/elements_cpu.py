#!/usr/bin/env python3
"""Operators element by element, of rows, and pools, each a model, on the CPU beside ONNX Runtime.

usage: elements_cpu.py [--threads N] [--rounds N] [--seconds S] [--library FILE] [ROW...]

float32.  Rounds alternate and times are medians, as of cpu.py.
"""
import sys
import tempfile

import numpy as np

import cpu
from library import Library

MATRIX = (256, 1024)


def one(op, inputs=1, shape=MATRIX, **attributes):
    return [cpu.node(op, ' '.join(f'x{i}' for i in range(inputs)), 'y', **attributes)], inputs, shape, shape


def pool(op, channels, size, kernel, stride, pad):
    nodes, inputs, shape, _ = one(op, 1, (1, channels, size, size), kernel_shape=[kernel] * 2, strides=[stride] * 2, pads=[pad] * 4)
    left = (size + 2 * pad - kernel) // stride + 1
    return nodes, inputs, shape, (1, channels, left, left)


ROWS = {'Relu': one('Relu'), 'Max of two': one('Max', 2), 'Sigmoid': one('Sigmoid'), 'Exp': one('Exp'), 'Elu': one('Elu'), 'Tanh': one('Tanh'), 'Erf': one('Erf'),
        'x sigmoid(x)': ([cpu.node('Sigmoid', 'x0', 's'), cpu.node('Mul', 'x0 s', 'y')], 1, MATRIX, MATRIX),
        'Softmax': one('Softmax', axis=-1), 'LogSoftmax': one('LogSoftmax', axis=-1),
        'MaxPool 3x3 by 2, padded, 64 x 112 x 112': pool('MaxPool', 64, 112, 3, 2, 1), 'MaxPool 2x2 by 2, 64 x 112 x 112': pool('MaxPool', 64, 112, 2, 2, 0),
        'MaxPool 3x3, 64 x 58 x 58': pool('MaxPool', 64, 58, 3, 1, 0), 'MaxPool 5x5, padded, 256 x 20 x 20': pool('MaxPool', 256, 20, 5, 1, 2),
        'AveragePool 3x3, padded, 64 x 56 x 56': pool('AveragePool', 64, 56, 3, 1, 1)}


def models(nodes, inputs, shape, made):
    rng = np.random.default_rng(1)
    arrays = {f'x{i}': rng.standard_normal(shape, dtype=np.float32) for i in range(inputs)}
    return {'as it is': cpu.model(nodes, [(name, shape) for name in arrays], [('y', made)])}, arrays, 0


def main():
    options = cpu.shared_options(0.5).parse_args()
    library = Library(options.library)
    cpu.put_head(options, ['operator', 'ours, us', 'ONNX Runtime, us', 'ratio', 'error'])
    for name in options.rows or ROWS:
        cpu.ROWS[name] = lambda: models(*ROWS[name])
        with tempfile.TemporaryDirectory() as folder:
            row = cpu.bench(name, options, library, folder)
        print(f"| {name} | {row['ours'] * 1e6:.1f} | {row['theirs'] * 1e6:.1f} | {row['ratio']:.2f} | {row['error']:.1e} |", flush=True)
        cpu.put_steps(row)


if __name__ == '__main__':
    sys.exit(main())
