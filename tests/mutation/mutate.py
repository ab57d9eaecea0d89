#!/usr/bin/env python3
"""Plants wrong conditions in the rules, one at a time, and shows that the random test catches each.

usage: mutate.py SOURCE BUILD [WORD [PROGRAMS]]

SOURCE is the checkout and BUILD a build folder of it.  The list is mutations.txt beside this file;
WORD picks the mutations whose title contains it ('' all, 'soon' those that are marked so); each meets
the first PROGRAMS random programs, 2000 unless told.  Nothing in SOURCE or BUILD is changed: the file
with the mutation is compiled apart and linked in front of the library.

Prints a table and exits 1 when a mutation survives that is not marked as equivalent (or one that is
does not), when one can no longer be planted, or when a rule refuses a match for a reason that no
mutation of the list takes away.
"""
import concurrent.futures
import json
import os
import pathlib
import re
import resource
import shlex
import signal
import subprocess
import sys
import tempfile

TEST = 'tests/random/random_test'
SECONDS = 200  # of processor time, more than twice what all programs take
FEW = 200  # programs that an equivalent mutation meets


class Mutation:
    """A paragraph: `RULES: what is wrong`, perhaps `soon` or `equivalent: REASON`, `in FILE`, lines
    `- old`, lines `+ new`."""

    def __init__(self, lines):
        self.rules, _, self.title = lines[0].partition(': ')
        self.soon = 'soon' in lines
        self.equivalent = any(line.startswith('equivalent: ') for line in lines)
        self.place = next(line[3:] for line in lines if line.startswith('in '))
        self.old, self.new = ('\n'.join(line[2:] for line in lines[1:] if line.startswith(sign))
                              for sign in ('- ', '+ '))

    def picked(self, word):
        flags = {'soon': self.soon, 'equivalent': self.equivalent}
        return flags.get(word, word in f'{self.rules}: {self.title}')


def mutations(path):
    for paragraph in path.read_text().split('\n\n'):
        lines = [line for line in paragraph.splitlines() if line and not line.startswith('#')]
        if lines:
            yield Mutation(lines)


def place_of(text, old):
    """The start and end of the one place that equals `old` up to white space; None if there is not
    just one."""
    found = list(re.finditer(r'\s+'.join(map(re.escape, old.split())), text))
    return found[0].span() if len(found) == 1 else None


# Conditions that no mutation has to take away: what was asked for, which only `--why` does; the
# anchor's kind, which the engine has looked at; and a bound of a table.
ASKED = re.compile(r'match->(partner|dim)\b|"not an? |not_a_producer|not_the_sibling|BB_LOOPS_DEPTH')


def unplanted(source, listed):
    """The statements of the rules that refuse a match and that no mutation changes."""
    for file in sorted((source / 'rules').glob('*.c')):
        text = file.read_text()
        changed = [place_of(text, mutation.old) for mutation in listed
                   if source / mutation.place == file]
        for refusal in re.finditer(r'return (bb_miss|fail)\(', text):
            start = max(text.rfind(end, 0, refusal.start()) for end in ';{}') + 1
            end = text.index(';', refusal.start())
            statement = ' '.join(text[start:end].split())
            if not ASKED.search(statement) and not any(
                    span and span[0] < end and start < span[1] for span in changed):
                yield f'{file.name}: {statement}'


class Build:
    """Compiles and links as the build folder does."""

    def __init__(self, source, folder):
        self.source, self.folder = source, folder
        self.compile = {}
        for entry in json.loads((folder / 'compile_commands.json').read_text()):
            file = (pathlib.Path(entry['directory']) / entry['file']).resolve()
            self.compile.setdefault(file, shlex.split(entry['command']))
        commands = self.quiet(['ninja', '-C', folder, '-t', 'commands', TEST]).stdout
        self.link = shlex.split(commands.strip().splitlines()[-1])

    def quiet(self, command, **more):
        return subprocess.run(list(map(str, command)), cwd=self.folder, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, errors='replace', **more)

    def test(self, place, text, work):
        """The random test with `text` in the place of a source file; None: it does not compile."""
        file = self.source / place
        mutated, test = work / file.name, work / 'random_test'
        mutated.write_text(text)
        command = [word for word in self.compile[file] if word not in ('-c', '-Werror')]
        for option in ('-o', '-MF', '-MQ'):
            at = command.index(option)
            del command[at:at + 2]
        command[command.index(os.path.relpath(file, self.folder))] = str(mutated)
        made = self.quiet([*command, '-w', '-iquote', file.parent, '-c', '-o', f'{mutated}.o',
                           '-MF', work / 'depend', '-MQ', 'mutated'])
        at = self.link.index('-o')
        if made.returncode == 0:
            made = self.quiet([*self.link[:at], '-o', test, f'{mutated}.o', *self.link[at + 2:]])
        return test if made.returncode == 0 else None


def limit():
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS + 1))
    resource.setrlimit(resource.RLIMIT_AS, (1 << 32, 1 << 32))


def verdict(build, mutation, programs):
    """What became of it, and whether that is as it should be."""
    text = (build.source / mutation.place).read_text()
    place = place_of(text, mutation.old)
    if place is None:
        return 'DOES NOT APPLY', False
    changed = text[:place[0]] + mutation.new + text[place[1]:]
    if mutation.equivalent:
        programs = str(min(int(programs), FEW))
    with tempfile.TemporaryDirectory() as work:
        test = build.test(mutation.place, changed, pathlib.Path(work))
        if test is None:
            return 'DOES NOT COMPILE', False
        run = build.quiet([test, '--first', '0', programs], preexec_fn=limit)
    if run.returncode == 0:
        return ('equivalent', True) if mutation.equivalent else ('SURVIVES', False)
    told = re.findall(r'^(?:seed (\d+) fails|(rule \S+ never fired))', run.stdout, re.M)
    if not told:
        how = 'running without end' if run.returncode == -signal.SIGXCPU else 'dying'
        return f'by {how}', not mutation.equivalent
    seed, never = told[0]
    return (f'by program {seed}' if seed else f'as {never}'), not mutation.equivalent


def main():
    if not 3 <= len(sys.argv) <= 5:
        sys.exit(__doc__)
    source, folder = (pathlib.Path(word).resolve() for word in sys.argv[1:3])
    word, programs = (sys.argv[3:] + ['', '2000'][len(sys.argv) - 3:])
    listed = list(mutations(source / 'tests/mutation/mutations.txt'))
    forgotten = list(unplanted(source, listed))
    for statement in forgotten:
        print(f'NOT PLANTED: {statement}')
    picked = [mutation for mutation in listed if mutation.picked(word)]
    if subprocess.run(['ninja', '-C', folder, TEST], stdout=subprocess.DEVNULL).returncode != 0:
        sys.exit('the unchanged program does not build')
    if subprocess.run([folder / TEST, '--first', '0', programs], stdout=subprocess.DEVNULL).returncode != 0:
        sys.exit('the unchanged program does not pass')
    build = Build(source, folder)
    print(f'{"rule":<18}{"mutation":<76}caught')
    survived = 0
    with concurrent.futures.ThreadPoolExecutor(min(2, os.cpu_count())) as pool:
        results = pool.map(lambda mutation: verdict(build, mutation, programs), picked)
        for mutation, (result, good) in zip(picked, results):
            survived += not good
            print(f'{mutation.rules + " ":<18}{mutation.title:<76}{result}', flush=True)
    same = sum(mutation.equivalent for mutation in picked)
    print(f'{len(picked)} mutations, {same} of them equivalent: {survived} not as it should be')
    sys.exit(1 if survived or forgotten or not picked else 0)


if __name__ == '__main__':
    main()
