#!/usr/bin/env python3
"""Plants faults one at a time, and shows that a test catches each.

usage: mutate.py SOURCE BUILD [WORD [PROGRAMS [JOBS]]]

SOURCE is the checkout and BUILD a build folder of it.  The lists are beside this file: rules.txt has
wrong conditions in the rules, which the random test has to catch; derivation.txt wrong steps in what
repair derives, which its proofs have to refuse; proof.txt, interval.txt and sign.txt faults in what proves.  WORD picks the mutations whose title contains
it ('' all, 'rules.txt' those of that list, 'equivalent' those that are marked so, 'sample' one of
eight); a random test meets the first PROGRAMS programs, 2000 unless told; JOBS run at once, 1 unless told.  Nothing in SOURCE or
BUILD is changed: the file with the mutation is compiled apart and linked in front of the library.

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

RANDOM = 'tests/random/random_test'
DERIVATION = 'tests/mutation/derivation_test'
LISTS = {'rules.txt': RANDOM, 'derivation.txt': DERIVATION, 'proof.txt': 'tests/test_algebra_proof',
         'interval.txt': 'tests/test_interval', 'sign.txt': 'tests/test_algebra'}
SAMPLE = 8
FEW = 200  # programs that an equivalent mutation meets


def seconds(programs):
    """Of processor time: more than twice what that many programs take."""
    return 30 + programs // 10


class Mutation:
    """A paragraph: `RULES: what is wrong`, perhaps `equivalent: REASON`, `in FILE`, lines `- old`,
    lines `+ new`."""

    def __init__(self, lines, name):
        self.rules, _, self.title = lines[0].partition(': ')
        self.list, self.test = name, LISTS[name]
        self.equivalent = any(line.startswith('equivalent: ') for line in lines)
        self.place = next(line[3:] for line in lines if line.startswith('in '))
        self.old, self.new = ('\n'.join(line[2:] for line in lines[1:] if line.startswith(sign))
                              for sign in ('- ', '+ '))

    def picked(self, word, number):
        flags = {'equivalent': self.equivalent, 'sample': number % SAMPLE == 0,
                 **{name: self.list == name for name in LISTS}}
        return flags.get(word, word in f'{self.rules}: {self.title}')


def mutations(folder):
    for name in LISTS:
        for paragraph in (folder / name).read_text().split('\n\n'):
            lines = [line for line in paragraph.splitlines() if line and not line.startswith('#')]
            if lines:
                yield Mutation(lines, name)


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
        self.link = {}
        for test in LISTS.values():
            commands = self.quiet(['ninja', '-C', folder, '-t', 'commands', test]).stdout
            self.link[test] = shlex.split(commands.strip().splitlines()[-1])

    def quiet(self, command, **more):
        return subprocess.run(list(map(str, command)), cwd=self.folder, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, errors='replace', **more)

    def test(self, name, place, text, work):
        """A test with `text` in the place of a source file; None: it does not compile."""
        file, link = self.source / place, self.link[name]
        mutated, test = work / file.name, work / pathlib.Path(name).name
        mutated.write_text(text)
        command = [word for word in self.compile[file] if word not in ('-c', '-Werror')]
        for option in ('-o', '-MF', '-MQ'):
            at = command.index(option)
            del command[at:at + 2]
        command[command.index(os.path.relpath(file, self.folder))] = str(mutated)
        made = self.quiet([*command, '-w', '-iquote', file.parent, '-c', '-o', f'{mutated}.o',
                           '-MF', work / 'depend', '-MQ', 'mutated'])
        at = link.index('-o')
        if made.returncode == 0:
            made = self.quiet([*link[:at], '-o', test, f'{mutated}.o', *link[at + 2:]])
        return test if made.returncode == 0 else None


def limit(programs):
    resource.setrlimit(resource.RLIMIT_CPU, (seconds(programs), seconds(programs) + 1))
    resource.setrlimit(resource.RLIMIT_AS, (1 << 32, 1 << 32))


def arguments(test, programs):
    return ['--first', '0', programs] if test == RANDOM else []


def how_caught(test, run):
    """How a test that fails has caught it, and whether that counts."""
    if run.returncode < 0:
        return ('by running without end' if run.returncode == -signal.SIGXCPU else 'by dying',
                test != DERIVATION)
    if test == DERIVATION:
        told = re.findall(r'^(proof refuses|proved but wrong|not derived) (.*?):', run.stdout, re.M)
        wrong = [name for how, name in told if how == 'proved but wrong']
        refused = [name for how, name in told if how == 'proof refuses']
        if wrong:
            return f'PROVED BUT WRONG: {wrong[0]}', False
        return (f'by the proof of {refused[0]}', True) if refused else ('BEFORE ANY PROOF', False)
    if test != RANDOM:
        told = re.findall(r'^\[  FAILED  \] (test_\w+)', run.stdout, re.M)
        return (f'by {told[0]}' if told else 'by dying'), True
    seed, never = re.findall(r'^(?:seed (\d+) fails|(rule \S+ never fired))', run.stdout, re.M)[0]
    return (f'by program {seed}' if seed else f'as {never}'), True


def verdict(build, mutation, programs):
    """What became of it, and whether that is as it should be."""
    text = (build.source / mutation.place).read_text()
    place = place_of(text, mutation.old)
    if place is None:
        return 'DOES NOT APPLY', False
    changed = text[:place[0]] + mutation.new + text[place[1]:]
    if mutation.equivalent:
        programs = str(min(int(programs), FEW))
    with tempfile.TemporaryDirectory(prefix='mutation') as work:
        test = build.test(mutation.test, mutation.place, changed, pathlib.Path(work))
        if test is None:
            return 'DOES NOT COMPILE', False
        run = build.quiet([test, *arguments(mutation.test, programs)], preexec_fn=lambda: limit(int(programs)))
    if run.returncode == 0:
        return ('equivalent', True) if mutation.equivalent else ('SURVIVES', False)
    how, good = how_caught(mutation.test, run)
    return how, good and not mutation.equivalent


def main():
    if not 3 <= len(sys.argv) <= 6:
        sys.exit(__doc__)
    source, folder = (pathlib.Path(word).resolve() for word in sys.argv[1:3])
    word, programs, jobs = sys.argv[3:] + ['', '2000', '1'][len(sys.argv) - 3:]
    listed = list(mutations(source / 'tests/mutation'))
    forgotten = list(unplanted(source, listed))
    for statement in forgotten:
        print(f'NOT PLANTED: {statement}')
    picked = [mutation for i, mutation in enumerate(listed) if mutation.picked(word, i)]
    for test in {mutation.test for mutation in picked}:
        unchanged = [folder / test, *arguments(test, programs)]
        for command in ['ninja', '-C', folder, test], unchanged:
            if subprocess.run(command, stdout=subprocess.DEVNULL).returncode != 0:
                sys.exit(f'{test}: the unchanged program does not build and pass')
    build = Build(source, folder)
    print(f'{"rule":<18}{"mutation":<76}caught')
    survived = 0
    with concurrent.futures.ThreadPoolExecutor(int(jobs)) as pool:
        results = pool.map(lambda mutation: verdict(build, mutation, programs), picked)
        for mutation, (result, good) in zip(picked, results):
            survived += not good
            print(f'{mutation.rules + " ":<18}{mutation.title:<76}{result}', flush=True)
    same = sum(mutation.equivalent for mutation in picked)
    print(f'{len(picked)} mutations, {same} of them equivalent: {survived} not as it should be')
    sys.exit(1 if survived or forgotten or not picked else 0)


if __name__ == '__main__':
    main()
