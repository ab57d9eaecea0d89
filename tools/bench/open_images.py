#!/usr/bin/env python3
"""Convolutions and pools of images whose height and width only a run tells, beside the same with both known and ONNX Runtime.

usage: open_images.py [--rounds N] [--library FILE] [--before FILE] [--models FOLDER] [ROW...]

One thread; each time is the least over rounds, in each of which everybody has a turn. FILE is build/libblockbuster.so, or that of
another build (--before: timed, too, with height and width open).  With --models nothing is timed: the models are written there, for others to time.
"""
import argparse
import os
import tempfile
import time

import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto, helper, numpy_helper

from library import Library, Model, Session

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
rng = np.random.default_rng(1)


class Net:
    def __init__(self, channels, size):
        self.shape, self.nodes, self.constants, self.last, self.channels = (1, channels, size, size), [], [], 'x', channels

    def node(self, op, *more, **attributes):
        self.nodes.append(helper.make_node(op, [self.last, *more], [f'v{len(self.nodes)}'], **attributes))
        self.last = f'v{len(self.nodes) - 1}'
        return self

    def convolution(self, maps, kernel, group=1, **attributes):
        inner, name = self.channels // group, f'w{len(self.nodes)}'
        weights = rng.standard_normal((maps, inner, kernel, kernel)) / np.sqrt(inner * kernel * kernel)
        self.constants += [numpy_helper.from_array(weights.astype(np.float32), name),
                           numpy_helper.from_array(rng.standard_normal(maps).astype(np.float32), name + 'b')]
        self.channels = maps
        return self.node('Conv', name, name + 'b', group=group, **attributes)

    def transposed(self, maps, kernel, **attributes):
        name, inner = f'w{len(self.nodes)}', self.channels
        weights = rng.standard_normal((inner, maps, kernel, kernel)) / np.sqrt(inner * kernel * kernel)
        self.constants.append(numpy_helper.from_array(weights.astype(np.float32), name))
        self.channels = maps
        return self.node('ConvTranspose', name, **attributes)

    def block(self, maps, stride):
        """Two convolutions and what goes around them, as in ResNet."""
        start, channels = self.last, self.channels
        self.convolution(maps, 3, pads=[1] * 4, strides=[stride] * 2).node('Relu').convolution(maps, 3, pads=[1] * 4)
        made, self.last, self.channels = self.last, start, channels
        if maps != channels or stride > 1:
            self.convolution(maps, 1, strides=[stride] * 2)
        return self.node('Add', made).node('Relu')

    def model(self, known):
        shape = self.shape if known else (*self.shape[:2], 'H', 'W')
        graph = helper.make_graph(self.nodes, 'net', [helper.make_tensor_value_info('x', TensorProto.FLOAT, shape)],
                                  [helper.make_empty_tensor_value_info(self.last)], self.constants)
        return helper.make_model(graph, ir_version=9, opset_imports=[helper.make_opsetid('', 19)])


def resnet():
    net = Net(3, 112).convolution(32, 7, pads=[3] * 4, strides=[2, 2]).node('Relu')
    net.node('MaxPool', kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
    for maps, stride in ((32, 1), (32, 1), (64, 2), (64, 1)):
        net.block(maps, stride)
    return net.node('GlobalAveragePool')


def mobile():
    net = Net(3, 112).convolution(16, 3, pads=[1] * 4, strides=[2, 2]).node('Relu')
    for maps, stride in ((32, 1), (64, 2), (64, 1), (128, 2), (128, 1)):
        net.convolution(net.channels, 3, net.channels, pads=[1] * 4, strides=[stride] * 2).node('Relu').convolution(maps, 1).node('Relu')
    return net.node('GlobalAveragePool')


SAME = dict(pads=[1] * 4)
ROWS = {
    '3x3': lambda: Net(64, 56).convolution(64, 3, **SAME),
    '3x3 by 2': lambda: Net(64, 56).convolution(64, 3, strides=[2, 2], **SAME),
    '3x3 by 2, SAME_UPPER': lambda: Net(64, 56).convolution(64, 3, strides=[2, 2], auto_pad='SAME_UPPER'),
    '3x3, taps 2 apart': lambda: Net(64, 56).convolution(64, 3, pads=[2] * 4, dilations=[2, 2]),
    '1x1 by 2': lambda: Net(64, 56).convolution(64, 1, strides=[2, 2]),
    '3x3 of each channel': lambda: Net(64, 56).convolution(64, 3, 64, **SAME),
    '3x3 of each channel by 2': lambda: Net(64, 56).convolution(64, 3, 64, strides=[2, 2], **SAME),
    'MaxPool 3x3 by 2': lambda: Net(64, 56).node('MaxPool', kernel_shape=[3, 3], strides=[2, 2], **SAME),
    'AveragePool 3x3': lambda: Net(64, 56).node('AveragePool', kernel_shape=[3, 3], **SAME),
    'transposed 2x2 by 2': lambda: Net(64, 56).transposed(64, 2, strides=[2, 2]),
    'transposed 4x4 by 2': lambda: Net(64, 56).transposed(64, 4, strides=[2, 2], **SAME),
    'a small ResNet': resnet,
    'a small MobileNet': mobile,
}


def spent(run):
    run()
    count, start = 0, time.perf_counter()
    while time.perf_counter() - start < 0.08:
        run()
        count += 1
    return (time.perf_counter() - start) / count


def row(name, rounds, library, before, folder):
    net, paths = ROWS[name](), [os.path.join(folder, f'{kind}.onnx') for kind in ('open', 'known')]
    for known, path in enumerate(paths):
        onnx.save(net.model(known), path)
    x, options = rng.standard_normal(net.shape, dtype=np.float32), ort.SessionOptions()
    options.intra_op_num_threads = 1
    peer = ort.InferenceSession(paths[0], options, providers=['CPUExecutionProvider'])
    sessions = [Session(Model(library, path), {'x': x}, 1) for path in paths]
    runs = [s.run for s in sessions] + [lambda: peer.run(None, {'x': x})]
    if before:
        sessions.append(Session(Model(before, paths[0]), {'x': x}, 1))
        runs.append(sessions[-1].run)
    least = [min(times) for times in zip(*([spent(run) for run in runs] for _ in range(rounds)))]
    sessions[0].run()
    want, got = peer.run(None, {'x': x})[0], list(sessions[0].outputs().values())[0]
    assert np.abs(want - got).max() < 1e-4 * (1 + np.abs(want).max()), name
    us = [f'{1e6 * t:.0f}' for t in least]
    print(f'| {name} | {us[0]} | {us[1]} ({least[1] / least[0]:.2f}) | {us[2]} ({least[2] / least[0]:.2f}) |'
          + (f' {us[3]} ({least[3] / least[0]:.1f}) |' if before else ''), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--rounds', type=int, default=5)
    parser.add_argument('--library', default=os.path.join(ROOT, 'build', 'libblockbuster.so'))
    parser.add_argument('--before')
    parser.add_argument('--models')
    parser.add_argument('rows', nargs='*', metavar='ROW')
    given = parser.parse_args()
    if given.models:
        for name in given.rows or ROWS:
            net = ROWS[name]()
            for known, kind in enumerate(('open', 'known')):
                onnx.save(net.model(known), os.path.join(given.models, f'{name}, {kind}.onnx'))
        return
    library, before = Library(given.library), Library(given.before) if given.before else None
    print('| row | open | known (times as fast) | ONNX Runtime |' + (' before |' if before else ''))
    print('|---|---|---|---|' + ('---|' if before else ''))
    with tempfile.TemporaryDirectory() as folder:
        for name in given.rows or ROWS:
            row(name, given.rounds, library, before, folder)


if __name__ == '__main__':
    main()
