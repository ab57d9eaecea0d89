#!/usr/bin/env python3
"""Plants wrong conditions in the rules, one at a time, and shows that the random test catches each.

usage: mutate.py SOURCE WORK [WORD]

SOURCE is the checkout, WORK a folder for a copy of it and its build.  The list is mutations.txt
beside this file; WORD picks the mutations whose title contains it.  Prints a line for each and
exits 1 when one survives, or no longer applies.
"""
import os
import pathlib
import shutil
import subprocess
import sys

FOLDERS = ['graph', 'rules', 'fuse', 'select', 'runtime', 'tools', 'tests']
SEEDS = ['0', '2000']


def mutations(path):
    """Paragraphs of: a title, a line `in FILE`, lines `- old`, lines `+ new`."""
    for paragraph in path.read_text().split('\n\n'):
        lines = [line for line in paragraph.splitlines() if line and not line.startswith('#')]
        if not lines:
            continue
        title, place = lines[0], lines[1].removeprefix('in ')
        old = '\n'.join(line[2:] for line in lines[2:] if line.startswith('- '))
        new = '\n'.join(line[2:] for line in lines[2:] if line.startswith('+ '))
        yield title, place, old, new



def replace(text, old, new):
    """Replaces the one place that equals `old` up to white space; None if there is not just one."""
    words = old.split()
    found = []
    start = text.find(words[0])
    while start >= 0:
        end = start
        for word in words:
            while text[end:end + 1].isspace():
                end += 1
            if not text.startswith(word, end):
                end = -1
                break
            end += len(word)
        if end >= 0:
            found.append((start, end))
        start = text.find(words[0], start + 1)
    if len(found) != 1:
        return None
    return text[:found[0][0]] + new + text[found[0][1]:]


def quiet(command):
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def copy(source, work):
    """A fresh copy of the sources that keeps the times of files, so that a build is kept too."""
    target = work / 'source'
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    for name in ['meson.build', 'meson_options.txt']:
        shutil.copy2(source / name, target)
    for name in FOLDERS:
        if (source / name).exists():
            shutil.copytree(source / name, target / name)
    return target


def build(work):
    return quiet(['ninja', '-C', str(work / 'build'), 'tests/random/random_test'])


def test(work):
    try:
        run = subprocess.run([str(work / 'build/tests/random/random_test'), *SEEDS], timeout=600,
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                             errors='replace')
    except subprocess.TimeoutExpired:
        return 'ran into the time limit'
    if run.returncode == 0:
        return None
    told = [line for line in run.stdout.splitlines() if line.startswith(('seed ', 'rule '))]
    told = [line for line in told if 'fail' in line or 'never' in line]
    return told[0] if told else f'exit status {run.returncode}'


def main():
    if len(sys.argv) not in (3, 4):
        sys.exit(__doc__)
    source, work = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
    target = copy(source, work)
    if not (work / 'build/build.ninja').exists():
        shutil.rmtree(work / 'build', ignore_errors=True)
        subprocess.run(['meson', 'setup', '-Dwerror=false', str(work / 'build'), str(target)], check=True,
                       stdout=subprocess.DEVNULL)
    if build(work).returncode != 0 or test(work) is not None:
        sys.exit('the unchanged program does not pass')
    survived = 0
    for title, place, old, new in mutations(source / 'tests/mutation/mutations.txt'):
        if len(sys.argv) == 4 and sys.argv[3] not in title:
            continue
        file = target / place
        text = file.read_text() if file.exists() else ''
        changed = replace(text, old, new)
        if changed is None:
            result = 'DOES NOT APPLY'
        else:
            file.write_text(changed)
            made = build(work)
            result = test(work) if made.returncode == 0 else 'DOES NOT COMPILE'
            file.write_text(text)
            os.utime(file)
        bad = result is None or result.startswith('DOES')
        survived += bad
        print(f'{"SURVIVES" if result is None else "wrong   " if bad else "caught  "}  {title}'
              f'{"" if result is None else "  [" + result + "]"}', flush=True)
    print(f'{survived} of the mutations were not caught')
    sys.exit(1 if survived else 0)


if __name__ == '__main__':
    main()
