#!/usr/bin/env python3
"""Kernels of the CPU beside ONNX Runtime: the same models, the same inputs, in turn, in one run.

usage: cpu.py [--threads N] [--rounds N] [--seconds S] [--json FILE] [--library FILE] [--machine NAME] [ROW...]

Every row is a model; where it has several spellings (decomposed into primitive operators, or with the operator that ONNX
or com.microsoft has for it) ONNX Runtime runs each and the fastest is its time; ours runs the first, in a session of
libblockbuster. Rounds alternate: each runs one library for a while, sleeps until its threads have stopped looking for work, then the
other. A row's time is the median over all rounds. "Of BLAS" is beside the same products alone, one after the other: numpy's OpenBLAS
and ONNX Runtime's MatMul, the better counts. The packages are those of tools/requirements.txt; FILE is
build/libblockbuster.so. A run of all rows takes minutes.
"""
import argparse
import json
import os
import statistics
import sys
import tempfile
import time

os.environ.setdefault('OPENBLAS_NUM_THREADS', '2')  # is read when numpy loads; --threads N wants N here

import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto, helper, numpy_helper

from library import Library, Model, Session

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
FLOAT = TensorProto.FLOAT
rng = np.random.default_rng(1)


def tensor(name, shape):
    return helper.make_tensor_value_info(name, FLOAT, list(shape))


def constant(name, array):
    return numpy_helper.from_array(np.asarray(array), name)


def model(nodes, inputs, outputs, constants=(), opset=17):
    graph = helper.make_graph(nodes, 'bench', [tensor(n, s) for n, s in inputs], [tensor(n, s) for n, s in outputs],
                              list(constants))
    made = helper.make_model(graph, ir_version=8 if opset < 23 else 11, opset_imports=[
        helper.make_opsetid('', opset), helper.make_opsetid('com.microsoft', 1)])
    return made


def node(op, inputs, outputs, **attributes):
    return helper.make_node(op, inputs.split(), outputs.split(), **attributes)


# --- the rows: (models by spelling, inputs, operations) ---


def attention(heads, length, size, causal):
    shape = (1, heads, length, size)
    inputs = {n: rng.standard_normal(shape, dtype=np.float32) for n in 'qkv'}
    scale = constant('scale', np.float32(size**-0.5))
    nodes = [node('Transpose', 'k', 'kt', perm=[0, 1, 3, 2]), node('MatMul', 'q kt', 's'), node('Mul', 's scale', 't')]
    constants = [scale]
    if causal:
        mask = np.triu(np.full((length, length), -np.inf, np.float32), 1)
        constants.append(constant('mask', mask))
        nodes.append(node('Add', 't mask', 'u'))
    nodes += [node('Softmax', 'u' if causal else 't', 'p', axis=-1), node('MatMul', 'p v', 'y')]
    wires = [(n, shape) for n in 'qkv']
    spelled = {'decomposed': model(nodes, wires, [('y', shape)], constants)}
    flat = (1, length, heads * size)
    spelled['Attention'] = model([node('Attention', 'q k v', 'y', is_causal=int(causal))], wires, [('y', shape)], opset=23)
    contrib = node('MultiHeadAttention', 'q k v', 'y', num_heads=heads, unidirectional=int(causal), domain='com.microsoft')
    spelled['MultiHeadAttention'] = model([contrib], [(n, flat) for n in 'qkv'], [('y', flat)])
    if causal:
        group = node('GroupQueryAttention', 'q k v   last total', 'y pk pv', num_heads=heads, kv_num_heads=heads,
                     domain='com.microsoft')
        group.input[:] = ['q', 'k', 'v', '', '', 'last', 'total']
        whole = [constant('last', np.array([length - 1], np.int32)), constant('total', np.array(length, np.int32))]
        spelled['GroupQueryAttention'] = model([group], [(n, flat) for n in 'qkv'],
                                               [('y', flat), ('pk', shape), ('pv', shape)], whole)
    share = (length + 1) / (2 * length) if causal else 1
    return spelled, inputs, 4 * heads * length * length * size * share


def layernorm_matmul(rows, width, out):
    inputs = {'x': rng.standard_normal((rows, width), dtype=np.float32)}
    weight = constant('w', rng.standard_normal((width, out), dtype=np.float32) * np.float32(width**-0.5))
    gamma = constant('gamma', np.float32(1) + rng.standard_normal(width, dtype=np.float32) * np.float32(0.1))
    beta = constant('beta', rng.standard_normal(width, dtype=np.float32) * np.float32(0.1))
    wires, result = [('x', (rows, width))], [('y', (rows, out))]
    parts = [node('ReduceMean', 'x', 'm', axes=[-1]), node('Sub', 'x m', 'd'), node('Mul', 'd d', 'dd'),
             node('ReduceMean', 'dd', 'v', axes=[-1]), node('Add', 'v eps', 'e'), node('Sqrt', 'e', 'r'),
             node('Div', 'd r', 'n'), node('Mul', 'n gamma', 'g'), node('Add', 'g beta', 'z'), node('MatMul', 'z w', 'y')]
    eps = constant('eps', np.float32(1e-5))
    whole = [node('LayerNormalization', 'x gamma beta', 'z', axis=-1, epsilon=1e-5), node('MatMul', 'z w', 'y')]
    return {'decomposed': model(parts, wires, result, [weight, gamma, beta, eps]),
            'LayerNormalization': model(whole, wires, result, [weight, gamma, beta])}, inputs, 2 * rows * width * out


def rmsnorm_swiglu(rows, width, hidden):
    inputs = {'x': rng.standard_normal((rows, width), dtype=np.float32)}
    draw = lambda a, b: rng.standard_normal((a, b), dtype=np.float32) * np.float32(a**-0.5)
    weights = [constant('w', draw(width, hidden)), constant('v', draw(width, hidden)), constant('u', draw(hidden, width)),
               constant('gamma', np.float32(1) + rng.standard_normal(width, dtype=np.float32) * np.float32(0.1))]
    wires, result = [('x', (rows, width))], [('y', (rows, width))]
    rest = [node('MatMul', 'z w', 'a'), node('Sigmoid', 'a', 'b'), node('Mul', 'a b', 'c'), node('MatMul', 'z v', 'd'),
            node('Mul', 'c d', 'h'), node('MatMul', 'h u', 'y')]
    parts = [node('Mul', 'x x', 'xx'), node('ReduceMean', 'xx', 'm', axes=[-1]), node('Add', 'm eps', 'e'),
             node('Sqrt', 'e', 'r'), node('Div', 'x r', 'n'), node('Mul', 'n gamma', 'z')] + rest
    whole = [node('SimplifiedLayerNormalization', 'x gamma', 'z', axis=-1, epsilon=1e-5)] + rest
    return {'decomposed': model(parts, wires, result, weights + [constant('eps', np.float32(1e-5))]),
            'SimplifiedLayerNormalization': model(whole, wires, result, weights)}, inputs, 6 * rows * width * hidden


def experts(rows, width, hidden, count, each):
    """A gated product for the rows that a product and the greatest of its results send there, as exporters write it."""
    inputs = {'x': rng.standard_normal((rows, width), dtype=np.float32)}
    draw = lambda a, b: rng.standard_normal((a, b), dtype=np.float32) * np.float32(a**-0.5)
    constants = [constant('gate', draw(width, count)), constant('each', np.array([each])), constant('one', np.array([1])),
                 constant('row', np.array(0))]
    nodes = [node('MatMul', 'x gate', 'logits'), node('Softmax', 'logits', 'shares', axis=-1), node('TopK', 'shares each', 'share which'),
             node('Shape', 'x', 'shape'), node('ConstantOfShape', 'shape', 'y0')]
    for e in range(count):
        constants += [constant(f'e{e}', np.array(e)), constant(f'w{e}', draw(width, hidden)), constant(f'v{e}', draw(width, hidden)),
                      constant(f'u{e}', draw(hidden, width))]
        step = [('Equal', f'which e{e}', 'is'), ('NonZero', 'is', 'at'), ('Gather', 'at row', 'rows'), ('Gather', 'x rows', 'z'), ('MatMul', f'z w{e}', 'a'),
                ('Sigmoid', 'a', 'b'), ('Mul', 'a b', 'c'), ('MatMul', f'z v{e}', 'd'), ('Mul', 'c d', 'h'), ('MatMul', f'h u{e}', 'o'), ('Transpose', 'at', 'places'),
                ('GatherND', 'share places', 's'), ('Unsqueeze', 's one', 'factor'), ('Mul', 'o factor', 'p'), ('Unsqueeze', 'rows one', 'index')]
        own = {made for _, _, made in step}
        local = lambda wires: ' '.join(f'{wire}_{e}' if wire in own else wire for wire in wires.split())
        nodes += [node(op, local(wires), f'{made}_{e}') for op, wires, made in step]
        nodes.append(node('ScatterND', f'y{e} index_{e} p_{e}', f'y{e + 1}' if e + 1 < count else 'y', reduction='add'))
    made = model(nodes, [('x', ('rows', width))], [('y', ('rows', width))], constants, opset=18)
    return {'decomposed': made}, inputs, 6 * rows * each * width * hidden


class Network:
    """Convolutions one after the other, as exporters write them: weights as constants, norms folded into them."""

    def __init__(self, channels, size):
        self.shape, self.nodes, self.constants, self.operations = [channels, size, size], [], [], 0
        self.begin = list(self.shape)

    def add(self, op, wires, **attributes):
        name = f't{len(self.nodes)}'
        self.nodes.append(node(op, wires, name, **attributes))
        return name

    def convolution(self, x, maps, kernel, stride=1, group=1, shape=None):
        channels, height, width = shape or self.shape
        per_group = channels // group
        weight = rng.standard_normal((maps, per_group, kernel, kernel), dtype=np.float32)
        weight *= np.float32((per_group * kernel * kernel) ** -0.5)
        number = len(self.constants)
        self.constants += [constant(f'w{number}', weight), constant(f'b{number}', rng.standard_normal(maps, dtype=np.float32))]
        out = [maps, (height + stride - 1) // stride, (width + stride - 1) // stride]
        self.operations += 2 * np.prod(out) * per_group * kernel * kernel
        if not shape:
            self.shape = out
        pads = kernel // 2
        return self.add('Conv', f'{x} w{number} b{number}', strides=[stride] * 2, pads=[pads] * 4, group=group,
                        kernel_shape=[kernel] * 2)

    def constant(self, name, value):
        self.constants.append(constant(f'{name}{len(self.constants)}', value))
        return f'{name}{len(self.constants) - 1}'

    def group_norm(self, x, groups):
        maps, height, width = self.shape
        scale, shift = (rng.standard_normal(shape, dtype=np.float32) for shape in [(maps, 1, 1)] * 2)
        ones = self.constant('s', np.ones(groups, np.float32)), self.constant('s', np.zeros(groups, np.float32))
        apart = self.add('Reshape', f'{x} {self.constant("to", np.array([1, groups, -1]))}')
        normal = self.add('InstanceNormalization', f'{apart} {ones[0]} {ones[1]}', epsilon=1e-5)
        whole = self.add('Reshape', f'{normal} {self.constant("to", np.array([1, maps, height, width]))}')
        scaled = self.add('Mul', f'{whole} {self.constant("g", scale)}')
        return self.add('Add', f'{scaled} {self.constant("g", shift)}')

    def model(self, result, images=1, name=1):
        """name: of the extent of images, where the run tells it."""
        inputs = {'image': rng.standard_normal((images, *self.begin), dtype=np.float32)}
        self.nodes.append(node('Identity', result, 'y'))
        self.operations *= images
        made = model(self.nodes, [('image', (name, *self.begin))], [('y', (name, *self.shape))], self.constants)
        return {'as it is': made}, inputs, self.operations


def convolution(channels, size, maps, kernel, group=1, stride=1):
    network = Network(channels, size)
    return network.model(network.convolution('image', maps, kernel, stride, group=group))


def inverted_residual(channels, size, times, kernel):
    """Channels widened, each convolved by itself, and narrowed again, beside what went in."""
    network = Network(channels, size)
    y = network.add('Relu', network.convolution('image', times * channels, 1))
    y = network.add('Relu', network.convolution(y, times * channels, kernel, group=times * channels))
    return network.model(network.add('Add', f'image {network.convolution(y, channels, 1)}'))


def residual_network(blocks, channels):
    network = Network(3, 224)
    x = network.add('Relu', network.convolution('image', channels[0], 7, 2))
    x = network.add('MaxPool', x, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    network.shape[1:] = [56, 56]
    for count, maps in zip(blocks, channels):
        for _ in range(count):
            stride = 2 if maps != network.shape[0] else 1
            before = list(network.shape)
            y = network.add('Relu', network.convolution(x, maps, 3, stride))
            y = network.convolution(y, maps, 3)
            if stride > 1:
                x = network.convolution(x, maps, 1, stride, shape=before)
            x = network.add('Relu', network.add('Add', f'{x} {y}'))
    return network.model(x)


def separable_network(blocks, channels):
    """A convolution of each channel by itself, then a product over channels, widened and narrowed."""
    network = Network(3, 224)
    x = network.convolution('image', channels[0], 4, 4)
    network.shape[1:] = [57, 57]
    for count, maps in zip(blocks, channels):
        if maps != network.shape[0]:
            x = network.convolution(x, maps, 3, 2)
        for _ in range(count):
            y = network.convolution(x, maps, 7, group=maps)
            y = network.convolution(y, 4 * maps, 1)
            y = network.add('Mul', f'{y} {network.add("Sigmoid", y)}')
            x = network.add('Add', f'{x} {network.convolution(y, maps, 1)}')
    return network.model(x)


def places_network(size):
    """Channels that become places, four of each."""
    network = Network(3, size)
    x = network.add('Relu', network.convolution('image', 32, 5))
    x = network.add('Relu', network.convolution(x, 32, 3))
    x = network.add('DepthToSpace', network.convolution(x, 12, 3), blocksize=2, mode='CRD')
    network.shape = [3, 2 * size, 2 * size]
    return network.model(x)


def groups_network(blocks, channels, each, size):
    """Convolutions in groups of a few channels between convolutions of all channels."""
    network = Network(channels, size)
    x = 'image'
    for _ in range(blocks):
        y = network.add('Relu', network.convolution(x, channels, 1))
        y = network.add('Relu', network.convolution(y, channels, 3, group=channels // each))
        x = network.add('Relu', network.add('Add', f'{x} {network.convolution(y, channels, 1)}'))
    return network.model(x)


def small_network(images, size):
    """Images whose number the run tells, by the convolutions of small networks and a product of all images."""
    network = Network(3, size)
    x = network.add('Relu', network.convolution('image', 32, 3, 2))
    for maps, stride in ((16, 1), (24, 2), (40, 2)):
        x = network.add('Relu', network.convolution(x, network.shape[0], 3, stride, network.shape[0]))
        x = network.add('Relu', network.convolution(network.convolution(x, maps, 1), 6 * maps, 1))
    x = network.add('Flatten', network.add('GlobalAveragePool', x))
    network.constants.append(constant('head', rng.standard_normal((network.shape[0], 1000), dtype=np.float32)))
    network.shape = [1000]
    return network.model(network.add('MatMul', f'{x} head'), images, 'images')


def diffusion_block(maps, size, groups):
    """Twice a norm over groups of channels, a gate and a convolution, and what went in."""
    network = Network(maps, size)
    x = 'image'
    for _ in range(2):
        x = network.group_norm(x, groups)
        x = network.add('Mul', f'{x} {network.add("Sigmoid", x)}')
        x = network.convolution(x, maps, 3)
    return network.model(network.add('Add', f'{x} image'))


def file_model(name):
    loaded = onnx.load(f'{ROOT}/tests/models/{name}.onnx')
    arrays = np.load(f'{ROOT}/tests/models/{name}.npz')
    wires = [i.name for i in loaded.graph.input]
    return {'as it is': loaded}, {n: arrays[n] for n in wires}, 0


ROWS = {
    'attention 1x16x2048x64': lambda: attention(16, 2048, 64, False),
    'causal attention 1x16x2048x64': lambda: attention(16, 2048, 64, True),
    'LayerNorm+Matmul 2048x1024x1024': lambda: layernorm_matmul(2048, 1024, 1024),
    'RMSNorm+SwiGLU 512x1024x2816': lambda: rmsnorm_swiglu(512, 1024, 2816),
    'RMSNorm+SwiGLU 1x1024x2816': lambda: rmsnorm_swiglu(1, 1024, 2816),
    'RMSNorm+SwiGLU 4x1024x2816': lambda: rmsnorm_swiglu(4, 1024, 2816),
    'RMSNorm+SwiGLU 16x1024x2816': lambda: rmsnorm_swiglu(16, 1024, 2816),
    'bert': lambda: file_model('bert'),
    'gpt2': lambda: file_model('gpt2'),
    'llama': lambda: file_model('llama'),
    'vit': lambda: file_model('vit'),
    'experts 256x512x1024, 2 of 8': lambda: experts(256, 512, 1024, 8, 2),
    'experts 16x512x1024, 2 of 8': lambda: experts(16, 512, 1024, 8, 2),
    'convolution 3x3 of 64x56x56': lambda: convolution(64, 56, 64, 3),
    'convolution 3x3 of 320x16x16': lambda: convolution(320, 16, 320, 3),
    'convolution 3x3 of 640x16x16': lambda: convolution(640, 16, 640, 3),
    'convolution 7x7 of 96x28x28, each channel': lambda: convolution(96, 28, 96, 7, 96),
    'convolution 7x7 of 96x56x56, each channel': lambda: convolution(96, 56, 96, 7, 96),
    'convolution 3x3 of 192x28x28, each channel': lambda: convolution(192, 28, 192, 3, 192),
    'convolution 3x3 of 96x112x112, each channel': lambda: convolution(96, 112, 96, 3, 96),
    'convolution 5x5 by 2 of 144x56x56, each channel': lambda: convolution(144, 56, 144, 5, 144, 2),
    'convolution 5x5 of 576x14x14, each channel': lambda: convolution(576, 14, 576, 5, 576),
    'inverted residual 24x56x56, 6 times, 3x3': lambda: inverted_residual(24, 56, 6, 3),
    'inverted residual 40x28x28, 6 times, 5x5': lambda: inverted_residual(40, 28, 6, 5),
    'inverted residual 160x7x7, 6 times, 3x3': lambda: inverted_residual(160, 7, 6, 3),
    'residual network, 18 layers, 224x224': lambda: residual_network([2, 2, 2, 2], [64, 128, 256, 512]),
    'separable network, 6 blocks, 224x224': lambda: separable_network([2, 2, 2], [48, 96, 192]),
    'places out of channels, 3 convolutions, 32x32': lambda: places_network(32),
    'groups of 8 of 208 channels, 4 blocks, 8x8': lambda: groups_network(4, 208, 8, 8),
    'small network, 2 images of any number, 96x96': lambda: small_network(2, 96),
    'diffusion block, 128x32x32, 32 groups': lambda: diffusion_block(128, 32, 32),
    'diffusion block, 320x16x16, 32 groups': lambda: diffusion_block(320, 16, 32),
}
PRODUCTS = {  # the product alone, for rows that are held against one
    'LayerNorm+Matmul 2048x1024x1024': [(2048, 1024, 1024)],
    **{f'RMSNorm+SwiGLU {m}x1024x2816': [(m, 1024, 2816), (m, 1024, 2816), (m, 2816, 1024)] for m in (512, 1, 4, 16)},
}

# --- who runs ---


def timed(call, count):
    taken = []
    for _ in range(count):
        start = time.perf_counter()
        call()
        taken.append(time.perf_counter() - start)
    return taken


class Ours:
    def __init__(self, library, made, inputs, options, folder):
        path = os.path.join(folder, 'model.onnx')
        onnx.save(made, path)
        start = time.perf_counter()
        block = {name: int(size) for name, size in (pair.split('=') for pair in options.block)}
        self.model = Model(library, path, options.machine, block)
        self.inputs = {name: np.ascontiguousarray(array) for name, array in inputs.items()}
        self.session = Session(self.model, self.inputs, options.threads)
        self.session.run()
        self.made = time.perf_counter() - start

    def run(self, count):
        return timed(self.session.run, count)

    def outputs(self):
        return self.session.outputs()

    def steps(self, threads):
        """Medians by step, in microseconds."""
        taken = {}

        def note(user, event):
            taken.setdefault(event.contents.name.decode(), []).append(event.contents.seconds * 1e6)
            return True

        session = Session(self.model, self.inputs, threads, note)
        timed(session.run, 20)
        session.close()
        return {name: statistics.median(times) for name, times in taken.items()}

    def close(self):
        self.session.close()
        self.model.close()


class Theirs:
    def __init__(self, made, inputs, options):
        settings = ort.SessionOptions()
        settings.intra_op_num_threads = options.threads
        settings.inter_op_num_threads = 1
        settings.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_ALL
        settings.log_severity_level = 3
        self.session = ort.InferenceSession(made.SerializeToString(), settings, providers=['CPUExecutionProvider'])
        wanted = {i.name: i for i in self.session.get_inputs()}
        self.inputs = {}
        for name, array in inputs.items():  # (1, heads, length, size) as (1, length, heads * size) where that is asked for
            if len(wanted[name].shape) != array.ndim:
                array = np.ascontiguousarray(array.transpose(0, 2, 1, 3)).reshape(wanted[name].shape)
            self.inputs[name] = ort.OrtValue.ortvalue_from_numpy(np.ascontiguousarray(array))
        self.binding = self.session.io_binding()
        for name, value in self.inputs.items():
            self.binding.bind_ortvalue_input(name, value)
        for out in self.session.get_outputs():
            self.binding.bind_output(out.name)
        self.session.run_with_iobinding(self.binding)  # outputs' memory is bound from here on
        values = self.binding.get_outputs()
        for out, value in zip(self.session.get_outputs(), values):
            self.binding.bind_ortvalue_output(out.name, value)

    def run(self, count):
        return timed(lambda: self.session.run_with_iobinding(self.binding), count)

    def outputs(self):
        return {o.name: v.numpy() for o, v in zip(self.session.get_outputs(), self.binding.get_outputs())}


class Product:
    """One product after the other, by numpy's BLAS or by ONNX Runtime's MatMul."""

    def __init__(self, shapes, options, runtime):
        self.parts = []
        for m, k, n in shapes:
            a, b = rng.standard_normal((m, k), dtype=np.float32), rng.standard_normal((k, n), dtype=np.float32)
            if runtime:
                made = model([node('MatMul', 'x w', 'y')], [('x', (m, k))], [('y', (m, n))], [constant('w', b)])
                self.parts.append(Theirs(made, {'x': a}, options))
            else:
                self.parts.append((a, b, np.empty((m, n), np.float32)))

    def all(self):
        for part in self.parts:
            if isinstance(part, Theirs):
                part.session.run_with_iobinding(part.binding)
            else:
                np.matmul(part[0], part[1], out=part[2])

    def run(self, count):
        return timed(self.all, count)


# --- rounds ---


def alternate(runners, options):
    """Medians in seconds of each, by name, and the spread: the quarter and three quarters."""
    counts, taken = {}, {name: [] for name in runners}
    for name, runner in runners.items():
        runner.run(2)
        once = min(runner.run(3))
        counts[name] = max(1, int(options.seconds / options.rounds / once))
    for _ in range(options.rounds):
        for name, runner in runners.items():
            time.sleep(0.03)
            runner.run(1)
            taken[name] += runner.run(counts[name])
    quarters = lambda t: statistics.quantiles(t, n=4) if len(t) > 1 else [t[0]] * 3
    return {name: quarters(t) for name, t in taken.items()}


def largest_error(ours, theirs):
    worst = 0.0
    for name, array in ours.items():
        other = theirs[name].reshape(array.shape)
        worst = max(worst, float(np.max(np.abs(array - other) / (1 + np.abs(other)))))
    return worst


def bench(name, options, library, folder):
    spelled, inputs, operations = ROWS[name]()
    first = next(iter(spelled))
    runners, refused = {'ours': Ours(library, spelled[first], inputs, options, folder)}, {}
    for spelling, made in spelled.items():
        try:
            runners[spelling] = Theirs(made, inputs, options)
        except Exception as error:  # a build of ONNX Runtime without the operator
            refused[spelling] = str(error).splitlines()[0][:120]
    error = largest_error(runners['ours'].outputs(), runners[first].outputs())
    if name in PRODUCTS:
        runners['BLAS numpy'] = Product(PRODUCTS[name], options, False)
        runners['BLAS MatMul'] = Product(PRODUCTS[name], options, True)
    times = alternate(runners, options)
    best = min((s for s in spelled if s in runners), key=lambda s: times[s][1])
    row = {'name': name, 'ours': times['ours'][1], 'theirs': times[best][1], 'spelling': best, 'error': error,
           'ratio': times[best][1] / times['ours'][1], 'rate': operations / times['ours'][1],
           'made': runners['ours'].made, 'all': times, 'refused': refused}
    if name in PRODUCTS:
        row['blas'] = operations / min(times['BLAS numpy'][1], times['BLAS MatMul'][1])
    if options.steps:
        row['steps'] = runners['ours'].steps(options.threads)
    runners['ours'].close()
    return row


def put_steps(row):
    for step, taken in row.get('steps', {}).items():
        print(f'    {step}: {taken:.1f} us')


def put(row, options):
    rate = f"{row['rate'] / 1e9:.1f}" if row['rate'] else ''
    blas = f"{100 * row['rate'] / row['blas']:.0f} %" if 'blas' in row else ''
    print(f"| {row['name']} | {row['ours'] * 1e3:.3f} | {row['theirs'] * 1e3:.3f} | {row['spelling']} | {row['ratio']:.2f} "
          f"| {rate} | {blas} | {row['error']:.1e} |", flush=True)
    put_steps(row)
    if options.verbose:
        for name, (low, middle, high) in row['all'].items():
            print(f'    {name}: {middle * 1e3:.3f} ms ({low * 1e3:.3f} to {high * 1e3:.3f})')
        print('    refused:', row['refused'], 'made in', round(row['made'], 2), 's')


def processor():
    with open('/proc/cpuinfo') as info:
        names = [line.split(':')[1].strip() for line in info if line.startswith('model name')]
    return f'{len(names)} x {names[0]}' if names else 'a processor'


def shared_options(seconds):
    """Of what times rows by bench()."""
    parser = argparse.ArgumentParser()
    parser.add_argument('rows', nargs='*')
    parser.add_argument('--threads', type=int, default=2)
    parser.add_argument('--rounds', type=int, default=5)
    parser.add_argument('--seconds', type=float, default=seconds, help='that each of a row runs for')
    parser.add_argument('--library', default=f'{ROOT}/build/libblockbuster.so')
    parser.add_argument('--machine', default='host', help='whose prices choose the kernels')
    parser.add_argument('--block', action='append', default=[], help='DIM=N: elements in a block')
    parser.add_argument('--steps', action='store_true', help='the time of each step of ours')
    return parser


def put_head(options, columns):
    print(f"{processor()}, load {os.getloadavg()[0]:.1f}; onnxruntime {ort.__version__}, numpy {np.__version__}, {options.threads} threads, "
          f"{time.strftime('%Y-%m-%d')}\n")
    print(f"| {' | '.join(columns)} |\n|{'---|' * len(columns)}")


def main():
    parser = shared_options(3.0)
    parser.add_argument('--json')
    parser.add_argument('--verbose', action='store_true')
    options = parser.parse_args()
    library = Library(options.library)
    put_head(options, ['row', 'ours, ms', 'ONNX Runtime, ms', 'its fastest spelling', 'ratio', 'GFLOP/s', 'of BLAS', 'error'])
    rows = []
    for name in ROWS:
        if options.rows and not any(name.startswith(r) for r in options.rows):
            continue
        with tempfile.TemporaryDirectory() as folder:
            rows.append(bench(name, options, library, folder))
        put(rows[-1], options)
    if options.json:
        with open(options.json, 'w') as out:
            json.dump({'onnxruntime': ort.__version__, 'threads': options.threads, 'rows': rows}, out, indent=1)


if __name__ == '__main__':
    sys.exit(main())
