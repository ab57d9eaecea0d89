#!/usr/bin/env python3
"""Single operators and short chains of them at three sizes on the CPU, beside ONNX Runtime: where is it faster?

usage: sweep_cpu.py [--threads N] [--rounds N] [--seconds S] [--library FILE] [--sizes 13,17,23] [--below RATIO] [ROW...]

A row is a model; a size is the binary logarithm of how many elements its largest array has, about (13: in the first cache, 17: in the
second, 23: in none).  ROW is what names begin with.  float32 where a name says nothing else.  Rounds alternate and times are medians, as of cpu.py.  --below: only rows
with a lower ratio are printed.
"""
import sys
import tempfile

import numpy as np
import onnx

import cpu
from cpu import constant, node
from library import Library

FLOAT, INT64 = onnx.TensorProto.FLOAT, onnx.TensorProto.INT64
rng = np.random.default_rng(1)


def floats(*shape):
    return rng.standard_normal(shape, dtype=np.float32)


def made(nodes, inputs, out, constants=(), kind=FLOAT):
    """out: the shape of the result y, or None: it has one of any size."""
    types = {'float32': FLOAT, 'int64': INT64}
    wires = [onnx.helper.make_tensor_value_info(n, types[a.dtype.name], a.shape) for n, a in inputs.items()]
    graph = onnx.helper.make_graph(nodes, 'sweep', wires, [onnx.helper.make_tensor_value_info('y', kind, out)], list(constants))
    opsets = [onnx.helper.make_opsetid('', 20), onnx.helper.make_opsetid('com.microsoft', 1)]
    return {'as it is': onnx.helper.make_model(graph, ir_version=10, opset_imports=opsets)}, inputs, 0


def square(size):
    """Rows and columns of 2^size elements, at most 4096 columns."""
    cols = min(12, (size + 1) // 2 + 1)
    return 1 << (size - cols), 1 << cols


def cube(size):
    inner = size // 3
    return 1 << (size - 2 * inner), 1 << inner, 1 << inner


def unary(op, **attributes):
    def make(size):
        x = floats(*square(size))
        if op in ('Log', 'Sqrt'):
            x = np.abs(x)
        return made([node(op, 'x', 'y', **attributes)], {'x': x}, x.shape)
    return make


def along(op, axis, keeps, kind=FLOAT, **attributes):
    """Of a block of three axes; keeps: the result is as large as what it is made of."""
    def make(size):
        x = floats(*cube(size))
        shape = x.shape if keeps else [1 if a == axis else n for a, n in enumerate(x.shape)]
        if op.startswith('Reduce'):
            return made([node(op, 'x axes', 'y')], {'x': x}, shape, [constant('axes', np.array([axis]))])
        return made([node(op, 'x', 'y', axis=axis, **attributes)], {'x': x}, shape, kind=kind)
    return make


def norm(op):
    def make(size):
        x = floats(*square(size))
        scale, shift = floats(x.shape[1]), floats(x.shape[1])
        if op == 'RMS':
            nodes = [node('Mul', 'x x', 'a'), node('ReduceMean', 'a axes', 'b'), node('Add', 'b eps', 'c'), node('Sqrt', 'c', 'd'),
                     node('Div', 'x d', 'e'), node('Mul', 'e scale', 'y')]
            return made(nodes, {'x': x}, x.shape, [constant('axes', np.array([1])), constant('eps', np.float32(1e-5)), constant('scale', scale)])
        return made([node('LayerNormalization', 'x scale shift', 'y', axis=-1)], {'x': x}, x.shape,
                    [constant('scale', scale), constant('shift', shift)])
    return make


def image_norm(op, groups=8):
    def make(size):
        side = 1 << (size - 5) // 2
        x = floats(1, 1 << size - 2 * ((size - 5) // 2), side, side)
        parts = [constant('scale', floats(x.shape[1])), constant('shift', floats(x.shape[1]))]
        if op == 'BatchNormalization':
            parts += [constant('mean', floats(x.shape[1])), constant('var', floats(x.shape[1])**2)]
            return made([node(op, 'x scale shift mean var', 'y')], {'x': x}, x.shape, parts)
        if op == 'InstanceNormalization':
            return made([node(op, 'x scale shift', 'y')], {'x': x}, x.shape, parts)
        shapes = [constant('apart', np.array([1, groups, -1])), constant('whole', np.array(x.shape)),
                  constant('one', np.ones(groups, np.float32)), constant('none', np.zeros(groups, np.float32)),
                  constant('g', floats(x.shape[1], 1, 1)), constant('b', floats(x.shape[1], 1, 1))]
        nodes = [node('Reshape', 'x apart', 'a'), node('InstanceNormalization', 'a one none', 'n'), node('Reshape', 'n whole', 'c'),
                 node('Mul', 'c g', 'd'), node('Add', 'd b', 'y')]
        return made(nodes, {'x': x}, x.shape, shapes)
    return make


def chain(*steps, constants=()):
    """Operators one behind the other, each of x, of what was made before (t) and of constants."""
    def make(size):
        x, nodes = floats(*square(size)), []
        for i, (op, operands) in enumerate(steps):
            names = [f't{i - 1}' if n == 't' else n for n in operands.split()]
            nodes.append(onnx.helper.make_node(op, names, [f't{i}' if i + 1 < len(steps) else 'y']))
        return made(nodes, {'x': x}, x.shape, [constant(n, np.float32(v)) for n, v in constants])
    return make


def copies(what):
    def make(size):
        x = floats(*cube(size))
        a, b, c = x.shape
        if what.startswith('Transpose'):
            order = [int(d) for d in what.split()[1]]
            return made([node('Transpose', 'x', 'y', perm=order)], {'x': x}, [x.shape[d] for d in order])
        if what.startswith('Concat'):
            axis = int(what.split()[1])
            halves = np.split(x, 2, axis)
            return made([node('Concat', 'u v', 'y', axis=axis)], {'u': halves[0].copy(), 'v': halves[1].copy()}, x.shape)
        if what.startswith('Slice'):
            axis = int(what.split()[1])
            n = x.shape[axis]
            return made([node('Slice', 'x from to axes', 'y')], {'x': x}, [n - 2 if d == axis else k for d, k in enumerate(x.shape)],
                        [constant('from', np.array([1])), constant('to', np.array([n - 1])), constant('axes', np.array([axis]))])
        if what == 'Pad':
            return made([node('Pad', 'x pads', 'y')], {'x': x}, (a, b + 2, c + 2), [constant('pads', np.array([0, 1, 1, 0, 1, 1]))])
        if what == 'Expand':
            return made([node('Expand', 'v shape', 'y')], {'v': x[:, :1].copy()}, x.shape, [constant('shape', np.array(x.shape))])
        return made([node('Tile', 'v times', 'y')], {'v': x[:, :b // 2].copy()}, x.shape, [constant('times', np.array([1, 2, 1]))])
    return make


def gather(axis, width):
    def make(size):
        rows = 1 << size - width
        table = floats(rows, 1 << width)
        count = table.shape[axis]
        where = rng.integers(0, count, count)
        return made([node('Gather', 'x where', 'y', axis=axis)], {'x': table, 'where': where}, table.shape)
    return make


def gather_elements(size):
    x = floats(*square(size))
    where = rng.integers(0, x.shape[1], x.shape)
    return made([node('GatherElements', 'x where', 'y', axis=1)], {'x': x, 'where': where}, x.shape)


def top(share):
    """share: of a line, or how many."""
    def make(size):
        x = floats(*square(size))
        count = int(x.shape[1] * share) if share <= 1 else share
        return made([node('TopK', 'x k', 'y where', axis=1)], {'x': x}, (x.shape[0], count), [constant('k', np.array([count]))])
    return make


def resize(mode, **attributes):
    def make(size):
        side = 1 << (size - 5) // 2
        x = floats(1, 1 << size - 2 * ((size - 5) // 2), side // 2, side // 2)
        return made([node('Resize', 'x  scales', 'y', mode=mode, **attributes)], {'x': x}, (1, x.shape[1], side, side),
                    [constant('scales', np.array([1, 1, 2, 2], np.float32))])

    def without_roi(size):
        spelled, inputs, operations = make(size)
        spelled['as it is'].graph.node[0].input[:] = ['x', '', 'scales']
        return spelled, inputs, operations
    return without_roi


def product(rows, batch=False):
    """rows x K by K x K, weights the largest; or many small ones, each by its own."""
    def make(size):
        if batch:
            count = 1 << max(0, size - 2 * rows)
            x, w = floats(count, 1 << rows, 1 << rows), floats(count, 1 << rows, 1 << rows)
            return made([node('MatMul', 'x w', 'y')], {'x': x, 'w': w}, x.shape)
        width = 1 << size // 2
        return made([node('MatMul', 'x w', 'y')], {'x': floats(rows, width)}, (rows, width), [constant('w', floats(width, width))])
    return make


def dynamic(rows):
    """A product of bytes: what comes is quantised by its range."""
    def make(size):
        width = 1 << size // 2
        weight = constant('w', rng.integers(-127, 128, (width, width), dtype=np.int8))
        nodes = [node('DynamicQuantizeLinear', 'x', 'q s z'), node('MatMulInteger', 'q w z', 'p'), node('Cast', 'p', 'f', to=FLOAT),
                 node('Mul', 's scale', 't'), node('Mul', 'f t', 'y')]
        return made(nodes, {'x': floats(rows, width)}, (rows, width), [weight, constant('scale', np.float32(0.01))])
    return make


def window(op, channels, kernel, stride=1, group=None, pad=True, behind=None, **attributes):
    """behind: an operator that takes what a convolution makes."""
    def make(size):
        side = max(4, round((2**size / channels) ** 0.5))
        x, pads = floats(1, channels, side, side), kernel // 2 if pad else 0
        left = (side + 2 * pads - kernel) // stride + 1
        sizes = {'kernel_shape': [kernel] * 2, 'strides': [stride] * 2, 'pads': [pads] * 4, **attributes}
        if op == 'Conv':
            w = floats(channels, channels // group, kernel, kernel)
            nodes, parts = [node('Conv', 'x w', 'c' if behind else 'y', group=group, **sizes)], [constant('w', w)]
            if behind:
                nodes.append(node(behind, 'c low high' if behind == 'Clip' else 'c', 'y'))
                parts += [constant('low', np.float32(0)), constant('high', np.float32(6))]
            return made(nodes, {'x': x}, (1, channels, left, left), parts)
        return made([node(op, 'x', 'y', **sizes)], {'x': x}, (1, channels, left, left))
    return make


GELU_TANH = chain(('Mul', 'x x'), ('Mul', 't x'), ('Mul', 't a'), ('Add', 't x'), ('Mul', 't b'), ('Tanh', 't'), ('Add', 't one'), ('Mul', 't x'),
                  ('Mul', 't half'), constants=[('a', 0.044715), ('b', 0.7978845608), ('one', 1), ('half', 0.5)])
GELU = chain(('Mul', 'x r'), ('Erf', 't'), ('Add', 't one'), ('Mul', 't x'), ('Mul', 't half'), constants=[('r', 2**-0.5), ('one', 1), ('half', 0.5)])
ROWS = {op: unary(op) for op in ('Relu', 'Tanh', 'Erf', 'Exp', 'Log', 'Sigmoid', 'Softplus', 'Sin', 'Sqrt', 'Abs', 'Floor', 'HardSigmoid', 'HardSwish', 'Elu',
                                 'LeakyRelu', 'Neg', 'Reciprocal', 'Softsign', 'Gelu', 'Mish', 'Sign', 'Cos', 'Round', 'ThresholdedRelu')}
ROWS |= {'GELU by tanh': GELU_TANH, 'GELU by erf': GELU, 'Clip': chain(('Clip', 'x low high'), constants=[('low', -1), ('high', 1)]),
         'SiLU': chain(('Sigmoid', 'x'), ('Mul', 't x')), 'Pow 3': chain(('Pow', 'x three'), constants=[('three', 3)]), 'Div': chain(('Div', 'x x')),
         'Add, Mul, Relu': chain(('Add', 'x c'), ('Mul', 't x'), ('Relu', 't'), constants=[('c', 1.5)])}
for operator in ('Softmax', 'LogSoftmax', 'CumSum'):
    for at in range(3):
        if operator != 'CumSum':
            ROWS[f'{operator} along {at}'] = along(operator, at, True)
for operator in ('ReduceSum', 'ReduceMean', 'ReduceMax', 'ReduceL2', 'ReduceLogSumExp', 'ReduceProd'):
    for at in range(3):
        ROWS[f'{operator} along {at}'] = along(operator, at, False)
for at in range(3):
    ROWS[f'ArgMax along {at}'] = along('ArgMax', at, False, INT64)
ROWS |= {'LayerNorm': norm('Layer'), 'RMSNorm': norm('RMS'), 'GroupNorm': image_norm('Group'), 'InstanceNorm': image_norm('InstanceNormalization'),
         'BatchNorm': image_norm('BatchNormalization')}
for copy in ('Transpose 021', 'Transpose 102', 'Transpose 210', 'Transpose 120', 'Concat 0', 'Concat 1', 'Concat 2', 'Slice 0', 'Slice 1', 'Slice 2', 'Pad',
             'Expand', 'Tile'):
    ROWS[copy] = copies(copy)
ROWS |= {'Gather rows of 64': gather(0, 6), 'Gather rows of 8': gather(0, 3), 'Gather columns': gather(1, 6), 'GatherElements': gather_elements,
         'TopK 8': top(8), 'TopK half': top(0.5), 'TopK all': top(1.0),
         'Resize nearest': resize('nearest'), 'Resize linear': resize('linear'), 'Resize linear, corners': resize('linear', coordinate_transformation_mode='align_corners')}
for count in (1, 4, 16, 64):
    ROWS[f'MatMul of {count}'] = product(count)
    ROWS[f'MatMul of {count}, bytes'] = dynamic(count)
for bits in (3, 4, 5, 6):
    ROWS[f'MatMul many {1 << bits}x{1 << bits}'] = product(bits, True)
ROWS |= {'MaxPool 3x3 by 2': window('MaxPool', 64, 3, 2), 'MaxPool 3x3': window('MaxPool', 64, 3), 'MaxPool 2x2 by 2': window('MaxPool', 64, 2, 2, pad=False),
         'AveragePool 3x3': window('AveragePool', 64, 3), 'AveragePool 2x2 by 2': window('AveragePool', 64, 2, 2, pad=False),
         'Conv 3x3 each': window('Conv', 128, 3, group=128), 'Conv 3x3 each by 2': window('Conv', 128, 3, 2, group=128),
         'Conv 5x5 each': window('Conv', 128, 5, group=128), 'Conv 5x5 each by 2': window('Conv', 128, 5, 2, group=128),
         'Conv 3x3 each, Relu': window('Conv', 128, 3, group=128, behind='Relu'), 'Conv 3x3 each by 2, Clip': window('Conv', 128, 3, 2, group=128, behind='Clip'),
         'Conv 5x5 each, HardSwish': window('Conv', 128, 5, group=128, behind='HardSwish'),
         'Conv 7x7 each of 512': window('Conv', 512, 7, group=512), 'Conv 3x3 groups of 8': window('Conv', 128, 3, group=16), 'Conv 1x1': window('Conv', 64, 1, group=1),
         'Conv 3x3': window('Conv', 64, 3, group=1), 'Conv 3x3 by 2': window('Conv', 64, 3, 2, group=1)}


def main():
    parser = cpu.shared_options(0.1)
    parser.add_argument('--sizes', default='13,17,23')
    parser.add_argument('--below', type=float, default=float('inf'))
    options = parser.parse_args()
    library = Library(options.library)
    cpu.put_head(options, ['row', 'elements', 'ours, us', 'ONNX Runtime, us', 'ratio', 'error'])
    for name, make in ROWS.items():
        if options.rows and not any(name.startswith(r) for r in options.rows):
            continue
        for size in map(int, options.sizes.split(',')):
            cpu.ROWS[name] = lambda: make(size)
            with tempfile.TemporaryDirectory() as folder:
                row = cpu.bench(name, options, library, folder)
            if not row['ratio'] > options.below:
                print(f"| {name} | 2^{size} | {row['ours'] * 1e6:.1f} | {row['theirs'] * 1e6:.1f} | {row['ratio']:.2f} | {row['error']:.1e} |", flush=True)
                cpu.put_steps(row)


if __name__ == '__main__':
    sys.exit(main())
