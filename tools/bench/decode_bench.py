#!/usr/bin/env python3
"""A decoder on a GPU, token after token on caches that grow in place: ours beside the PyTorch module that it was exported from.

    decode_bench.py export FOLDER [--program build/blockbuster] [--target sm_90a]      here; needs onnxscript, no GPU
    decode_bench.py run FOLDER --library libblockbuster-rt.so [--json FILE]            where the GPU is

`export` writes the module as ONNX (float16, rows and past of any length) and compiles it into FOLDER/compiled with no GPU at
hand. `run` loads that folder by the run-time library alone, in a stream of PyTorch's. Ours: the caches are one array
each with room; a token's calls say how much is there, bind its row, work out what depends on the length, and launch. The peer: the module on caches of that
room, of which a mask shows what is there, by torch.compile(mode="max-autotune"), which replays CUDA graphs (its way to run
without a compilation for each length). Both: microseconds a token, where each is waited for and where none is, medians of
rounds in turn; and the largest difference of their outputs.
"""
import argparse, ctypes, json, os, statistics, subprocess, time
import torch
import torch.nn.functional as F

import library_torch
from library_torch import IN, OUT, i64, pointer, u32, view_of

LAYERS, HEADS, SIZE, INNER = 16, 16, 64, 4096
WIDTH = HEADS * SIZE
PROMPT, TOKENS, ROOM = 128, 256, 512


class Layer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        linear = lambda a, b: torch.nn.Linear(a, b, bias=False)
        self.before, self.between = torch.nn.RMSNorm(WIDTH, eps=1e-5), torch.nn.RMSNorm(WIDTH, eps=1e-5)
        self.q, self.k, self.v, self.o = (linear(WIDTH, WIDTH) for _ in range(4))
        self.gate, self.up, self.down = linear(WIDTH, INNER), linear(WIDTH, INNER), linear(INNER, WIDTH)

    def forward(self, x, join, seen):
        split = lambda y: y.view(1, -1, HEADS, SIZE).transpose(1, 2)
        z = self.before(x)
        keys, values = join(split(self.k(z)), split(self.v(z)))
        y = F.scaled_dot_product_attention(split(self.q(z)), keys, values, attn_mask=seen)
        x = x + self.o(y.transpose(1, 2).reshape(1, -1, WIDTH))
        z = self.between(x)
        return x + self.down(F.silu(self.gate(z)) * self.up(z)), keys, values


class Decoder(torch.nn.Module):
    """x, then the past keys and values of each layer; y, then the present ones."""

    def __init__(self):
        super().__init__()
        self.layers = torch.nn.ModuleList(Layer() for _ in range(LAYERS))

    def forward(self, x, *past):
        rows, there = x.shape[1], past[0].shape[2]
        place = torch.arange(there + rows, device=x.device)
        seen = place.view(1, -1) <= place[there:].view(-1, 1)
        present = []
        for i, layer in enumerate(self.layers):
            join = lambda k, v: (torch.cat([past[2 * i], k], 2), torch.cat([past[2 * i + 1], v], 2))
            x, *pair = layer(x, join, seen)
            present += pair
        return x, *present

    def on_room(self, x, at, *room):
        """The same where the caches are in their room, and `at` are the places of the rows."""
        seen = torch.arange(ROOM, device=x.device).view(1, -1) <= at.view(-1, 1)
        for i, layer in enumerate(self.layers):
            keys, values = room[2 * i], room[2 * i + 1]
            def join(k, v):
                keys.index_copy_(2, at, k)
                values.index_copy_(2, at, v)
                return keys, values
            x, _, _ = layer(x, join, seen)
        return x


def module():
    torch.manual_seed(1)
    return Decoder().half().eval().requires_grad_(False)


def export(options):
    os.makedirs(options.folder, exist_ok=True)
    path = os.path.join(options.folder, 'decoder.onnx')
    x = torch.randn(1, 3, WIDTH, dtype=torch.half)
    past = [torch.randn(1, HEADS, 5, SIZE, dtype=torch.half) for _ in range(2 * LAYERS)]
    S, P = torch.export.Dim('S', min=1, max=65536), torch.export.Dim('P', min=0, max=65536)
    names = [f'{n}{i}' for i in range(LAYERS) for n in ('k', 'v')]
    torch.onnx.export(module(), (x, *past), path, dynamo=True, opset_version=18, external_data=True,
                      input_names=['x'] + ['past_' + n for n in names], output_names=['y'] + ['present_' + n for n in names],
                      dynamic_shapes=({1: S}, tuple({2: P} for _ in past)))
    subprocess.run([options.program, 'compile', path, '--device', 'cuda', '--target', options.target, '--dims', options.dims,
                    '-o', os.path.join(options.folder, 'compiled')], check=True)


# --- ours ---

class Cache(ctypes.Structure):
    _fields_ = [('input', u32), ('output', u32), ('axis', u32)]


class Ours(library_torch.Session):
    def __init__(self, library, folder, stream):
        model = library_torch.Model(library, folder)
        super().__init__(model)
        self.stream, self.loaded = pointer(stream.cuda_stream), model.seconds
        self.rooms = [torch.zeros(1, HEADS, ROOM, SIZE, dtype=torch.half, device='cuda') for _ in range(2 * LAYERS)]
        caches, cache = 0, Cache()
        while self.lib.bb_model_get_cache(model.model, caches, ctypes.byref(cache)):
            caches += 1
        assert caches == 2 * LAYERS, f'{caches} caches'
        self.grow = self.lib.bb_session_set_caches
        self.lib.bb_session_bind_cache.argtypes, self.grow.argtypes = [pointer, u32, pointer, i64], [pointer, i64]
        for i, room in enumerate(self.rooms):
            model.check(self.lib.bb_session_bind_cache(self.session, i, ctypes.byref(view_of(room)), 0))

    def __call__(self, x, y, at):
        self.model.check(self.grow(self.session, at))
        self.bind(IN, 0, x)
        self.bind(OUT, 0, y)
        self.run(self.stream)


class Peer:
    def __init__(self, decoder):
        self.rooms = [torch.zeros(1, HEADS, ROOM, SIZE, dtype=torch.half, device='cuda') for _ in range(2 * LAYERS)]
        for room in self.rooms: # or what changes them is launched without graphs
            torch._dynamo.mark_static_address(room)
        self.eager = decoder.on_room
        self.compiled = torch.compile(decoder.on_room, mode='max-autotune', fullgraph=True, dynamic=False)
        self.places = torch.arange(ROOM, device='cuda')

    def __call__(self, x, y, at):
        call = self.compiled if x.shape[1] == 1 else self.eager
        y.copy_(call(x, self.places[at:at + x.shape[1]], *self.rooms))


def decode(run, x, y, waited, stream):
    """Seconds a token, and those of them in calls."""
    run(x[:, :PROMPT], y[:, :PROMPT], 0)
    stream.synchronize()
    began, calls = time.perf_counter(), 0.0
    for at in range(PROMPT, PROMPT + TOKENS):
        called = time.perf_counter()
        run(x[:, at:at + 1], y[:, at:at + 1], at)
        calls += time.perf_counter() - called
        if waited:
            stream.synchronize()
    stream.synchronize()
    return (time.perf_counter() - began) / TOKENS, calls / TOKENS


def profile(run, x, y, stream):
    """What the device does in a token, by kernel."""
    from torch.profiler import ProfilerActivity
    tokens, run_one = 20, lambda at: run(x[:, at:at + 1], y[:, at:at + 1], at)
    with torch.profiler.profile(activities=[ProfilerActivity.CUDA, ProfilerActivity.CPU]) as seen:
        for at in range(PROMPT, PROMPT + tokens):
            run_one(at)
        stream.synchronize()
    rows = [(e.self_device_time_total, e.count, e.key) for e in seen.key_averages() if e.self_device_time_total]
    for total, count, name in sorted(rows, reverse=True)[:24]:
        print(f'{total / tokens:8.1f} us a token, {count / tokens:6.1f} launches of {total / count:6.2f} us: {name[:100]}')


def run(options):
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream), torch.no_grad():
        decoder = module().cuda()
        torch.manual_seed(2)
        x = torch.randn(1, ROOM, WIDTH, dtype=torch.half, device='cuda')
        runs = {'ours': Ours(options.library, os.path.join(options.folder, 'compiled'), stream)}
        if not options.alone:
            runs['torch.compile'] = Peer(decoder)
        y = {name: torch.zeros_like(x) for name in runs}
        taken = {(name, waited): [] for name in runs for waited in (True, False)}
        for name, call in runs.items():
            decode(call, x, y[name], True, stream)
        for _ in range(options.rounds):
            for waited in (True, False):
                for name, call in runs.items():
                    taken[name, waited].append(decode(call, x, y[name], waited, stream))
        for name, call in runs.items() if options.profile else ():
            print(name)
            profile(call, x, y[name], stream)
    print(torch.cuda.get_device_name(), 'torch', torch.__version__, f'loading ours {runs["ours"].loaded * 1e3:.0f} ms')
    print('microseconds a token | each waited for (of it in calls) | none waited for (in calls)')
    rows = {}
    for name in runs:
        row = [statistics.median(t[i] for t in taken[name, w]) * 1e6 for w in (True, False) for i in (0, 1)]
        rows[name] = row
        print(f'{name} | {row[0]:.0f} ({row[1]:.0f}) | {row[2]:.0f} ({row[3]:.0f})')
    if len(runs) > 1:
        a, b = (y[n][:, :PROMPT + TOKENS].float() for n in ('ours', 'torch.compile'))
        print(f'largest difference {(a - b).abs().max().item():.2e} of {b.abs().max().item():.1f}')
    if options.json:
        with open(options.json, 'w') as file:
            json.dump(rows, file)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('what', choices=['export', 'run'])
    parser.add_argument('folder')
    parser.add_argument('--program', default='build/blockbuster')
    parser.add_argument('--target', default='sm_90a')
    parser.add_argument('--dims', default='S=1,P=256')
    parser.add_argument('--library')
    parser.add_argument('--rounds', type=int, default=5)
    parser.add_argument('--alone', action='store_true', help='without PyTorch beside')
    parser.add_argument('--profile', action='store_true')
    parser.add_argument('--json')
    options = parser.parse_args()
    {'export': export, 'run': run}[options.what](options)


if __name__ == '__main__':
    main()
