#!/usr/bin/env python3
"""Models with run-time extents on the CPU: compiled for one value of them, run at others; and compiled for regions.

usage: extents.py [--threads N] [--program FILE] [--library FILE] [--seconds S] [ROW...]

Each row is a model. It is compiled into a folder for each of several points (`compile --dims`), for 1024 of everything (what is
assumed where nothing is said), and for all values (`compile` as it is). At each point all of them run in turn in one
process; a time is the lower fifth over all rounds, with one thread that thread's own time. Beside each time: how many times as
long it is as that of the folder for the point.
"""
import argparse
import ctypes
import os
import statistics
import subprocess
import tempfile
import time

import numpy as np
import onnx
from onnx import TensorProto, helper

from cpu import ROOT, constant, node, rng
from library import ContextOptions, Library, Model, Session, VERSION, pointer

FLOAT = TensorProto.FLOAT
draw = lambda a, b: rng.standard_normal((a, b), dtype=np.float32) * np.float32(a**-0.5)


def model(nodes, inputs, outputs, constants):
    wire = lambda name, shape, kind=FLOAT: helper.make_tensor_value_info(name, kind, list(shape))
    graph = helper.make_graph(nodes, 'g', [wire(*i) for i in inputs], [wire(*o) for o in outputs], constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid('', 17)], ir_version=8)


def norm(at, x, z, width, constants):
    constants.append(constant(at + 'gamma', np.float32(1) + np.float32(0.1) * rng.standard_normal(width, dtype=np.float32)))
    return [node('Mul', f'{x} {x}', at + 'xx'), node('ReduceMean', at + 'xx', at + 'm', axes=[-1]),
            node('Add', f'{at}m eps', at + 'e'), node('Sqrt', at + 'e', at + 'r'), node('Div', f'{x} {at}r', at + 'n'),
            node('Mul', f'{at}n {at}gamma', z)]


def gated(at, z, y, width, hidden, constants):
    constants += [constant(at + n, draw(*s)) for n, s in (('w', (width, hidden)), ('v', (width, hidden)), ('u', (hidden, width)))]
    return [node('MatMul', f'{z} {at}w', at + 'a'), node('Sigmoid', at + 'a', at + 'b'), node('Mul', f'{at}a {at}b', at + 'c'),
            node('MatMul', f'{z} {at}v', at + 'd'), node('Mul', f'{at}c {at}d', at + 'h'), node('MatMul', f'{at}h {at}u', y)]


def layernorm_matmul():
    constants = [constant('w', draw(1024, 1024)), constant('gamma', np.full(1024, 1.1, np.float32)),
                 constant('beta', np.full(1024, 0.1, np.float32))]
    nodes = [node('LayerNormalization', 'x gamma beta', 'z', axis=-1, epsilon=1e-5), node('MatMul', 'z w', 'y')]
    return model(nodes, [('x', ('M', 1024))], [('y', ('M', 1024))], constants)


def swiglu():
    constants = [constant('eps', np.float32(1e-5))]
    nodes = norm('', 'x', 'z', 1024, constants) + gated('', 'z', 'y', 1024, 2816, constants)
    return model(nodes, [('x', ('M', 1024))], [('y', ('M', 1024))], constants)


def attention():
    nodes = [node('Transpose', 'k', 'kt', perm=[0, 2, 1]), node('MatMul', 'q kt', 'a'), node('Mul', 'a s', 'b'),
             node('Softmax', 'b', 'p', axis=-1), node('MatMul', 'p v', 'y')]
    keys = (16, 'N', 64)
    return model(nodes, [('q', (16, 'M', 64)), ('k', keys), ('v', keys)], [('y', (16, 'M', 64))],
                 [constant('s', np.float32(0.125))])


def decoder():
    """Two layers of causal attention over a past and a gated net; 512 wide, 8 heads, 4096 words."""
    width, heads, words = 512, 8, 4096
    size, integers = width // heads, lambda *n: np.array(n, np.int64)
    constants = [constant('eps', np.float32(1e-5)), constant('s', np.float32(size**-0.5)), constant('table', draw(words, width)),
                 constant('heads', integers(1, -1, heads, size)), constant('flat', integers(1, -1, width)),
                 constant('least', np.float32(-np.inf)), constant('zero', np.array(0)), constant('one', np.array(1)),
                 constant('two', np.array(2)), constant('axis', integers(1)), constant('head', draw(width, words))]
    nodes = [node('Gather', 'table ids', 'x0'), node('Shape', 'ids', 'shape'), node('Gather', 'shape one', 'S'),
             node('Shape', 'pk0', 'past'), node('Gather', 'past two', 'P'), node('Add', 'P S', 'T'), node('Range', 'P T one', 'rows'),
             node('Range', 'zero T one', 'cols'), node('Unsqueeze', 'rows axis', 'row'), node('LessOrEqual', 'cols row', 'mask')]
    inputs, outputs = [('ids', (1, 'S'), TensorProto.INT64)], [('y', (1, 'S', words))]
    for i in range(2):
        l, x = f'l{i}', f'x{i}'
        constants += [constant(l + n, draw(width, width)) for n in 'QKVO']
        nodes += norm(l + 'a', x, l + 'z', width, constants)
        for n in 'qkv':
            nodes += [node('MatMul', f'{l}z {l}{n.upper()}', f'{l}{n}0'), node('Reshape', f'{l}{n}0 heads', f'{l}{n}1'),
                      node('Transpose', f'{l}{n}1', l + n, perm=[0, 2, 1, 3])]
        nodes += [node('Concat', f'pk{i} {l}k', f'nk{i}', axis=2), node('Concat', f'pv{i} {l}v', f'nv{i}', axis=2),
                  node('Transpose', f'nk{i}', l + 'kt', perm=[0, 1, 3, 2]), node('MatMul', f'{l}q {l}kt', l + 's'),
                  node('Mul', f'{l}s s', l + 't'), node('Where', f'mask {l}t least', l + 'm'),
                  node('Softmax', l + 'm', l + 'p', axis=-1), node('MatMul', f'{l}p nv{i}', l + 'y'),
                  node('Transpose', l + 'y', l + 'y1', perm=[0, 2, 1, 3]), node('Reshape', f'{l}y1 flat', l + 'y2'),
                  node('MatMul', f'{l}y2 {l}O', l + 'o'), node('Add', f'{x} {l}o', l + 'x')]
        nodes += norm(l + 'b', l + 'x', l + 'w', width, constants) + gated(l + 'g', l + 'w', l + 'f', width, 1408, constants)
        nodes.append(node('Add', f'{l}x {l}f', f'x{i + 1}'))
        inputs += [(f'p{n}{i}', (1, heads, 'P', size)) for n in 'kv']
        outputs += [(f'n{n}{i}', (1, heads, 'P + S', size)) for n in 'kv']
    nodes += norm('f', 'x2', 'fx', width, constants) + [node('MatMul', 'fx head', 'y')]
    return model(nodes, inputs, outputs, constants)


ROWS = {
    'LayerNorm+Matmul Mx1024x1024': (layernorm_matmul, [dict(M=m) for m in (1, 2, 8, 64, 512, 4096)]),
    'RMSNorm+SwiGLU Mx1024x2816': (swiglu, [dict(M=m) for m in (1, 8, 64, 512)]),
    'attention 16 heads of 64, M rows, N keys':
        (attention, [dict(M=m, N=n) for m, n in ((1, 1024), (1, 16384), (8, 1024), (64, 1024), (512, 1024))]),
    'decoder, S tokens behind P': (decoder, [dict(S=s, P=p) for s, p in ((1, 1024), (8, 512), (64, 64), (512, 1))]),
}


class Folder(Model):
    def __init__(self, library, path):
        self.lib, self.context, self.model = library.call, pointer(), pointer()
        options = ContextOptions(VERSION)
        assert self.lib.bb_context_create(ctypes.byref(options), ctypes.byref(self.context)) == 0
        self.check(self.lib.bb_model_load(self.context, os.fsencode(path), ctypes.byref(self.model)))


def inputs_of(made, point):
    found = {}
    for wire in made.graph.input:
        shape = [d.dim_value or point[d.dim_param] for d in wire.type.tensor_type.shape.dim]
        whole = wire.type.tensor_type.elem_type != FLOAT
        found[wire.name] = rng.integers(0, 4096, shape) if whole else rng.standard_normal(shape, dtype=np.float32)
    return found


def lower_fifths(sessions, options):
    clock = time.thread_time if options.threads == 1 else time.perf_counter
    taken = {name: [] for name in sessions}
    for s in sessions.values():
        s.run()
    first = next(iter(sessions.values()))
    start = time.perf_counter()
    first.run()
    once = time.perf_counter() - start
    inner = max(1, min(50, int(0.002 / once)))
    for _ in range(max(5, min(200, int(options.seconds / max(once, 1e-6))))):
        for name, session in sessions.items():
            session.run()
            start = clock()
            for _ in range(inner):
                session.run()
            taken[name].append((clock() - start) / inner)
    return {name: statistics.quantiles(t, n=5)[0] for name, t in taken.items()}


def bench(name, options, library, folder):
    build, points = ROWS[name]
    made, text = build(), lambda point: ','.join(f'{n}={v}' for n, v in point.items())
    path = os.path.join(folder, 'model.onnx')
    onnx.save(made, path)
    models = {}
    for label, dims in [('all', None), ('1024', {n: 1024 for n in points[0]})] + [(text(p), p) for p in points]:
        out = os.path.join(folder, str(len(models)) + name.split()[0])
        subprocess.run([options.program, 'compile', '-q', path, '-o', out] + (['--dims', text(dims)] if dims else []), check=True,
                       stdout=subprocess.DEVNULL)
        models[label] = Folder(library, out)
    print(f'| {name}: run at | own, ms | for all values | for 1024 |' + ''.join(f' {text(p)} |' for p in points))
    print('|---|' + '---|' * (len(points) + 3))
    for point in points:
        inputs = inputs_of(made, point)
        sessions = {label: Session(m, inputs, options.threads) for label, m in models.items()}
        times = lower_fifths(sessions, options)
        own = times[text(point)]
        print(f'| {text(point)} | {own * 1e3:.3f} | {times["all"] / own:.2f} | {times["1024"] / own:.2f} |' +
              ''.join(f' {times[text(p)] / own:.2f} |' for p in points), flush=True)
        for session in sessions.values():
            session.close()
    print()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('rows', nargs='*')
    parser.add_argument('--threads', type=int, default=1)
    parser.add_argument('--seconds', type=float, default=0.4)
    parser.add_argument('--program', default=f'{ROOT}/build/blockbuster')
    parser.add_argument('--library', default=f'{ROOT}/build/libblockbuster.so')
    options = parser.parse_args()
    library = Library(options.library)
    for name in ROWS:
        if not options.rows or any(word in name for word in options.rows):
            with tempfile.TemporaryDirectory() as folder:
                bench(name, options, library, folder)


if __name__ == '__main__':
    main()
