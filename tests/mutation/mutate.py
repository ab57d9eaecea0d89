#!/usr/bin/env python3
"""Plants faults one at a time, and shows that a test catches each.

usage: mutate.py [--find] [--jobs N] [--programs N] SOURCE BUILD [WORD]

SOURCE is the checkout and BUILD a build folder of it.  The lists are beside this file: rules.txt has
wrong conditions in the rules, which the random test has to catch; derivation.txt wrong steps in what
repair derives, which its proofs have to refuse; proof.txt, interval.txt and sign.txt faults in what
proves; golden.txt wrong conditions in rules that random programs have no casts or integers for, which the golden pairs of the
rules catch.  WORD picks the mutations whose title contains it ('rules.txt' those of that list, 'equivalent' those that are
marked so).

A mutation of a rule says which of the 2,000 random programs catches it, and only that one runs.
--find runs all of them (or the first N) for each mutation whose program does not catch it, or that
names none, and writes the one that does into the list: after a change of the programs, or with a new
mutation.

Nothing in BUILD is changed: the file with the mutation is compiled apart and linked in front of the
library.  N jobs run at once, one for each processor unless told.

Prints a table and exits 1 when a mutation survives that is not marked as equivalent (or one that is
does not), when one can no longer be planted, or when a rule refuses a match for a reason that no
mutation of the list takes away.
"""
import argparse
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
GOLDEN = 'tests/rules/rule_test'
LISTS = {'rules.txt': RANDOM, 'golden.txt': GOLDEN, 'derivation.txt': DERIVATION, 'proof.txt': 'tests/test_algebra_proof',
         'interval.txt': 'tests/test_interval', 'sign.txt': 'tests/test_algebra'}
FEW = 100  # programs that an equivalent mutation meets


def seconds(programs):
    """Of processor time: many times what that many programs take."""
    return 3 + programs // 25


class Mutation:
    """A paragraph: `RULES: what is wrong`, `caught by FIRST COUNT` (random programs) or `equivalent:
    REASON`, `in FILE`, lines `- old`, lines `+ new`."""

    def __init__(self, lines, name):
        self.rules, _, self.title = lines[0].partition(': ')
        self.list, self.test = name, LISTS[name]
        self.equivalent = any(line.startswith('equivalent: ') for line in lines)
        caught = [line.split()[2:] for line in lines if line.startswith('caught by ')]
        self.programs = caught[0] if caught else None
        self.found = None
        self.place = next(line[3:] for line in lines if line.startswith('in '))
        self.old, self.new = ('\n'.join(line[2:] for line in lines[1:] if line.startswith(sign))
                              for sign in ('- ', '+ '))

    def picked(self, word):
        flags = {'equivalent': self.equivalent,
                 'new': self.test == RANDOM and not self.equivalent and not self.programs,
                 **{name: self.list == name for name in LISTS}}
        return flags.get(word, word in f'{self.rules}: {self.title}')

    def to_meet(self):
        """The random programs that it meets: the first and how many; None for other tests."""
        if self.test != RANDOM:
            return None
        return ['0', str(FEW)] if self.equivalent else self.programs


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

    def words(self, test):
        """What a test that is no random one is called with."""
        return sorted((self.source / 'tests/rules').glob('*.bb')) if test == GOLDEN else []

    def test(self, name, place, text, work):
        """A test with `text` in the place of a source file; None: it does not compile."""
        file, link = self.source / place, self.link[name]
        mutated, test = work / file.name, work / pathlib.Path(name).name
        mutated.write_text(text)
        command = [word for word in self.compile[file] if word not in ('-c', '-g', '-Werror')]
        for option in ('-o', '-MF', '-MQ'):
            at = command.index(option)
            del command[at:at + 2]
        command[command.index(os.path.relpath(file, self.folder))] = str(mutated)
        made = self.quiet([*command, '-w', '-O1', '-iquote', file.parent, '-c', '-o', f'{mutated}.o',
                           '-MF', work / 'depend', '-MQ', 'mutated'])
        at = link.index('-o')
        if made.returncode == 0:
            made = self.quiet([*link[:at], '-Wl,-s', '-o', test, f'{mutated}.o', *link[at + 2:]])
        return test if made.returncode == 0 else None


def run(build, mutation, test, programs):
    """Runs a test with a mutation, a random one on these programs."""
    random = mutation.test == RANDOM
    most = seconds(int(programs[1])) if random else 60

    def limit():
        resource.setrlimit(resource.RLIMIT_CPU, (most, most + 1))
        resource.setrlimit(resource.RLIMIT_AS, (1 << 32, 1 << 32))

    words = ['--first', *programs] if random else build.words(mutation.test)
    return build.quiet([test, *words], preexec_fn=limit)


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
    if test == GOLDEN:
        told = re.findall(r'([\w-]+)\.bb:', run.stdout)
        return (f'by {told[0]}' if told else 'by dying'), True
    if test != RANDOM:
        told = re.findall(r'^\[  FAILED  \] (test_\w+)', run.stdout, re.M)
        return (f'by {told[0]}' if told else 'by dying'), True
    seed, never = re.findall(r'^(?:seed (\d+) fails|(rule \S+ never fired))', run.stdout, re.M)[0]
    return (f'by program {seed}' if seed else f'as {never}'), True


def found_by(told, programs):
    """What to note of a run that has caught a mutation: one program, or all up to a rule that never
    fired."""
    met = re.findall(r'^program (\d+)', told.stdout, re.M)
    return programs if 'never fired' in told.stdout else [met[-1], '1']


def search(build, mutation, test, programs):
    """The run that catches a mutation, and what it ran: ever more programs, as most need few."""
    first = 0
    for count in sorted({min(count, programs) for count in (200, 600, programs)}):
        met = [str(first), str(count - first)]
        told = run(build, mutation, test, met)
        if told.returncode != 0:
            return told, met
        first = count
    return told, met


def verdict(build, mutation, programs):
    """What became of it, and whether that is as it should be.  `programs`: how many to search for
    one that catches it, if the one that is noted does not."""
    text = (build.source / mutation.place).read_text()
    place = place_of(text, mutation.old)
    if place is None:
        return 'DOES NOT APPLY', False
    changed = text[:place[0]] + mutation.new + text[place[1]:]
    with tempfile.TemporaryDirectory(prefix='mutation') as work:
        test = build.test(mutation.test, mutation.place, changed, pathlib.Path(work))
        if test is None:
            return 'DOES NOT COMPILE', False
        random, met = mutation.test == RANDOM, mutation.to_meet()
        told = run(build, mutation, test, met) if met or not random else None
        if programs and random and not mutation.equivalent and (not told or told.returncode == 0):
            told, met = search(build, mutation, test, programs)
            mutation.found = found_by(told, met) if told.returncode else None
    if told is None:
        return 'NO PROGRAM NOTED', False
    if told.returncode == 0:
        return ('equivalent', True) if mutation.equivalent else ('SURVIVES', False)
    how, good = how_caught(mutation.test, told)
    return how, good and not mutation.equivalent


def note(folder, mutation):
    """Writes the programs that catch a mutation under its title."""
    path = folder / mutation.list
    lines = path.read_text().splitlines()
    title = lines.index(f'{mutation.rules}: {mutation.title}')
    if lines[title + 1].startswith('caught by '):
        del lines[title + 1]
    lines.insert(title + 1, f'caught by {" ".join(mutation.found)}')
    path.write_text('\n'.join(lines) + '\n')


def unchanged_passes(build, picked, pool):
    """Does every test pass on the program as it is, on all that the mutations meet?"""
    tests = sorted({mutation.test for mutation in picked})
    if build.quiet(['ninja', '-C', build.folder, *tests]).returncode:
        return False
    runs = {(mutation.test, *(mutation.to_meet() or ())) for mutation in picked}
    return all(pool.map(lambda words: passes(build, *words), sorted(runs)))


def passes(build, test, *programs):
    if test == RANDOM and not programs:
        return True
    words = ['--first', *programs] if programs else build.words(test)
    return build.quiet([build.folder / test, *words]).returncode == 0


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument('source', type=pathlib.Path)
    parser.add_argument('build', type=pathlib.Path)
    parser.add_argument('word', nargs='?', default='')
    parser.add_argument('--find', action='store_true')
    parser.add_argument('--jobs', type=int, default=os.cpu_count())
    parser.add_argument('--programs', type=int, default=2000)
    told = parser.parse_args()
    source, folder = told.source.resolve(), told.source.resolve() / 'tests/mutation'
    listed = list(mutations(folder))
    forgotten = list(unplanted(source, listed))
    for statement in forgotten:
        print(f'NOT PLANTED: {statement}')
    picked = [mutation for mutation in listed if mutation.picked(told.word)]
    build = Build(source, told.build.resolve())
    survived = 0
    with concurrent.futures.ThreadPoolExecutor(told.jobs) as pool:
        if not unchanged_passes(build, picked, pool):
            sys.exit('the unchanged program does not build and pass')
        print(f'{"rule":<18}{"mutation":<76}caught')
        results = pool.map(lambda m: verdict(build, m, told.find and told.programs), picked)
        for mutation, (result, good) in zip(picked, results):
            survived += not good
            print(f'{mutation.rules + " ":<18}{mutation.title:<76}{result}', flush=True)
            if mutation.found:
                note(folder, mutation)
    same = sum(mutation.equivalent for mutation in picked)
    print(f'{len(picked)} mutations, {same} of them equivalent: {survived} not as it should be')
    sys.exit(1 if survived or forgotten or not picked else 0)


if __name__ == '__main__':
    main()
