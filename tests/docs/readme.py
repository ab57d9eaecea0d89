#!/usr/bin/env python3
"""Holds README.md against the program.

In fenced blocks, a line `$ build/blockbuster ...` is run and what follows, up to the next such line
or the end of the block, must be what it prints; a line `...` stands for any number of lines.  The
operator table must be the one that the reader's own table gives.

usage: readme.py README BUILD OPERATORS
"""
import pathlib
import re
import shlex
import subprocess
import sys


def blocks(text):
    return re.findall(r'^```[a-z]*\n(.*?)^```$', text, re.S | re.M)


def commands(text):
    for block in blocks(text):
        for part in re.split(r'^(?=\$ )', block, flags=re.M):
            if part.startswith('$ '):
                line, _, output = part.partition('\n')
                yield line[2:], output


def agrees(expected, printed):
    """Line by line; `...` matches any lines."""
    pattern = ''
    for line in expected.rstrip().split('\n'):
        pattern += r'(?:.*\n)*?' if line == '...' else re.escape(line.rstrip()) + r'\n'
    text = ''.join(line.rstrip() + '\n' for line in printed.rstrip().split('\n'))
    return re.fullmatch(pattern, text) is not None


def main():
    readme, build, operators = (pathlib.Path(argument) for argument in sys.argv[1:])
    text = readme.read_text()
    wrong = ran = 0
    for command, expected in commands(text):
        if not command.startswith('build/'):
            continue
        words = [re.sub(r'^build/', f'{build}/', word) for word in shlex.split(command)]
        run = subprocess.run(words, cwd=readme.parent, stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, text=True)
        ran += 1
        if run.returncode != 0 or not agrees(expected, run.stdout):
            wrong += 1
            print(f'$ {command}\nexit status {run.returncode}\n{run.stdout}{run.stderr}')
    table = subprocess.run([operators], stdout=subprocess.PIPE, text=True, check=True).stdout
    if table not in text:
        wrong += 1
        print('the operator table should be:\n' + table)
    print(f'{ran} commands, {wrong} differences')
    sys.exit(1 if wrong or not ran else 0)


if __name__ == '__main__':
    main()
