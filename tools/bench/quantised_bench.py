#!/usr/bin/env python3
"""Quantised models on the processor beside ONNX Runtime, one thread: as onnxruntime.quantization makes them, dynamically (dynamic), of
operators on integers (QOperator), and of QuantizeLinear and DequantizeLinear with one scale or one a channel (QDQ, by channel).

usage: quantised_bench.py [--library FILE] [--before FILE] [--rounds N] [ROW...]

Rounds alternate; times are the least, as others may use the machine. --before: a library of ours to measure beside, too. Errors are
the largest difference in steps of the output where it is quantised, and how many elements differ at all.
"""
import argparse
import logging
import os
import tempfile
import time

import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_dynamic, quantize_static

from library import Library, Model, Session

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
rng = np.random.default_rng(0)


def weight(*shape):
    terms = shape[0] if len(shape) == 2 else np.prod(shape[1:])
    return (rng.standard_normal(shape) / np.sqrt(terms)).astype(np.float32)


def layers(rows, *sizes):
    """Products with a bias, and a Relu between them."""
    nodes, constants, at = [], {}, 'x'
    for i, (k, n) in enumerate(zip(sizes, sizes[1:])):
        constants |= {f'w{i}': weight(k, n), f'b{i}': weight(1, n)[0]}
        last = i + 2 == len(sizes)
        nodes += [helper.make_node('MatMul', [at, f'w{i}'], [f'p{i}']),
                  helper.make_node('Add', [f'p{i}', f'b{i}'], ['y' if last else f's{i}'])]
        if not last:
            at = f'r{i}'
            nodes.append(helper.make_node('Relu', [f's{i}'], [at]))
    return nodes, constants, (rows, sizes[0]), (rows, sizes[-1])


def convolution(channels, size):
    nodes = [helper.make_node('Conv', ['x', 'w', 'b'], ['y'], pads=[1] * 4, kernel_shape=[3, 3])]
    shape = (1, channels, size, size)
    return nodes, {'w': weight(channels, channels, 3, 3), 'b': weight(1, channels)[0]}, shape, shape


ROWS = {'two layers of 512, 128 rows': lambda: layers(128, 512, 512, 512),
        'two layers of 512, 1 row': lambda: layers(1, 512, 512, 512),
        '768 to 3072, 128 rows': lambda: layers(128, 768, 3072),
        '768 to 3072, 1 row': lambda: layers(1, 768, 3072),
        'windows of 3 x 3, 64 channels of 56 x 56': lambda: convolution(64, 56)}


class Samples(CalibrationDataReader):
    def __init__(self, shape):
        self.left = [{'x': np.random.default_rng(i).standard_normal(shape).astype(np.float32)} for i in range(4)]

    def get_next(self):
        return self.left.pop() if self.left else None


def made(row, folder):
    """Files of the models of a row, by how they are quantised; an input."""
    nodes, constants, inner, outer = ROWS[row]()
    tensor = lambda name, shape: helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
    graph = helper.make_graph(nodes, 'quantised', [tensor('x', inner)], [tensor('y', outer)],
                              [numpy_helper.from_array(v, k) for k, v in constants.items()])
    whole = f'{folder}/float.onnx'
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid('', 17)], ir_version=8), whole)
    files = {how: f'{folder}/{how}.onnx' for how in ('dynamic', 'QOperator', 'QDQ', 'QDQ by channel')}
    signed = QuantType.QUInt8 if nodes[0].op_type == 'Conv' else QuantType.QInt8  # what ConvInteger runs with there
    quantize_dynamic(whole, files['dynamic'], weight_type=signed)
    for how in ('QOperator', 'QDQ', 'QDQ by channel'):
        channels = how == 'QDQ by channel'
        quantize_static(whole, files[how], Samples(inner), quant_format=QuantFormat[how.split()[0]], per_channel=channels,
                        activation_type=QuantType.QInt8 if channels else QuantType.QUInt8, weight_type=QuantType.QInt8)
    return files, np.random.default_rng(9).standard_normal(inner).astype(np.float32)


def least(run, seconds):
    run()
    best, end = 1e9, time.perf_counter() + seconds
    while time.perf_counter() < end:
        begin = time.perf_counter()
        run()
        best = min(best, time.perf_counter() - begin)
    return best


def bench(path, x, libraries, rounds):
    options = ort.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = 1, 3
    theirs = ort.InferenceSession(path, options, providers=['CPUExecutionProvider'])
    binding = theirs.io_binding()
    binding.bind_cpu_input('x', x)
    binding.bind_output('y')
    models = [Model(library, path) for library in libraries]
    sessions = [Session(model, {'x': x}, 1) for model in models]
    runs = [session.run for session in sessions] + [lambda: theirs.run_with_iobinding(binding)]
    times = [1e9] * len(runs)
    for _ in range(rounds):
        times = [min(t, least(run, 0.1)) for t, run in zip(times, runs)]
    want, got = theirs.run(None, {'x': x})[0], sessions[0].outputs()['y']
    differs = np.abs(got - want) > 1e-5 * (1 + np.abs(want))
    steps = np.unique(want)
    step = np.min(np.diff(steps)) if len(steps) <= 256 else 1
    error = f'{np.max(np.abs(got - want)) / step:.1e}, {100 * np.mean(differs):.3f} %'
    for session, model in zip(sessions, models):
        session.close()
        model.close()
    return times, error


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('rows', nargs='*')
    parser.add_argument('--library', default=f'{ROOT}/build/libblockbuster.so')
    parser.add_argument('--before')
    parser.add_argument('--rounds', type=int, default=5)
    options = parser.parse_args()
    logging.disable(logging.WARNING)
    libraries = [Library(path) for path in (options.library, options.before) if path]
    print(f'onnxruntime {ort.__version__}, 1 thread, load {os.getloadavg()[0]:.1f}, {time.strftime("%Y-%m-%d")}\n')
    print(f"| model | quantised | ours, ms |{' before |' if options.before else ''} ONNX Runtime, ms | ratio | error |")
    print('|---|---|---|---|---|---|' + ('---|' if options.before else ''))
    for row in ROWS:
        if options.rows and not any(row.startswith(r) for r in options.rows):
            continue
        with tempfile.TemporaryDirectory() as folder:
            files, x = made(row, folder)
            for how, path in files.items():
                times, error = bench(path, x, libraries, options.rounds)
                cells = [f'{1e3 * t:.4f}' for t in times] + [f'{times[-1] / times[0]:.2f}', error]
                print(f"| {row} | {how} | {' | '.join(cells)} |", flush=True)


if __name__ == '__main__':
    main()
