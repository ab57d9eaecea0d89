#!/usr/bin/env python3
"""How long the programs of tests/operators take from text to loaded kernels on a GPU.

    compile_bench.py TIME_CUDA [OPERATOR...] [--machine h200] [--json FILE]

Each is compiled by three processes and in an empty cache first, the cache that NVRTC has in the driver's being empty, too:
milliseconds to read, fuse and choose; to write and compile the kernels and load them, the driver's context included; the same from
the cache; and, in a process that has the device open, from text to loaded kernels, from the cache. Kernels serve every length: the
extents are those that prices are for.
"""
import argparse, json, os, pathlib, statistics, subprocess, tempfile

OPERATORS = pathlib.Path(__file__).resolve().parents[2] / 'tests/operators'
EXTENTS = {'H': 32, 'G': 8, 'R': 8, 'M': 64, 'D': 4096, 'K': 4096, 'N': 4096}
OTHERS = 64


def dims_of(path):
    line = next((l for l in path.read_text().splitlines() if l.startswith('dim ')), 'dim ')
    return [f'{d.strip()}={EXTENTS.get(d.strip(), OTHERS)}' for d in line[4:].split(',') if d.strip()]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('program')
    parser.add_argument('operators', nargs='*')
    parser.add_argument('--machine', default='h200')
    parser.add_argument('--json')
    options = parser.parse_args()
    rows = {}
    print('program | kernels | read, fused, chosen | compiled, cold | from the cache | all, device open')
    for path in [OPERATORS / (name + '.bb') for name in options.operators] or sorted(OPERATORS.glob('*.bb')):
        command = [options.program, str(path), '--machine', options.machine, *dims_of(path)]
        runs = []
        with tempfile.TemporaryDirectory() as ours, tempfile.TemporaryDirectory() as driver:
            caches = {'BLOCKBUSTER_CACHE': ours, 'CUDA_CACHE_PATH': driver}
            for _ in range(3):
                done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **caches})
                if done.returncode:
                    raise SystemExit(done.stderr)
                runs.append(json.loads(done.stdout))
        cold, warm = runs[0], runs[1:]
        least = lambda key: min(r[key] for r in warm)  # of the warm ones
        rows[path.stem] = row = dict(kernels=cold['kernels'], fuse_ms=statistics.median(r['fuse_ms'] for r in runs),
                                     cold_ms=cold['plan_ms'], warm_ms=least('plan_ms'), load_ms=least('again_ms'))
        print(f"{path.stem} | {row['kernels']} | {row['fuse_ms']:.0f} | {row['cold_ms']:.0f} | {row['warm_ms']:.0f} | {row['load_ms']:.1f}",
              flush=True)
    print('most |', ' | '.join(f'{max(r[k] for r in rows.values()):.1f}' for k in ('kernels', 'fuse_ms', 'cold_ms', 'warm_ms', 'load_ms')))
    if options.json:
        with open(options.json, 'w') as file:
            json.dump(rows, file, indent=1)


if __name__ == '__main__':
    main()
