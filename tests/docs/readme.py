#!/usr/bin/env python3
"""Holds README.md against the program.

In fenced blocks, a line `$ build/blockbuster ...` is run and what follows, up to the next such line
or the end of the block, must be what it prints; a line `...` stands for any number of lines, `...`
within a line for any text (figures that differ between machines).  The operator table must be the one that the reader's own table gives.

usage: readme.py README BUILD OPERATORS [--write]

--write puts in what the commands print now, but where a line `...` stands; read the difference.
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
    """Line by line; `...` matches any lines, or any text within a line."""
    pattern = ''
    for line in expected.rstrip().split('\n'):
        words = '.*'.join(re.escape(part) for part in line.rstrip().split('...'))
        pattern += r'(?:.*\n)*?' if line == '...' else words + r'\n'
    text = ''.join(line.rstrip() + '\n' for line in printed.rstrip().split('\n'))
    return re.fullmatch(pattern, text) is not None


def run(command, readme, build):
    words = [re.sub(r'^build/', f'{build}/', word) for word in shlex.split(command)]
    return subprocess.run(words, cwd=readme.parent, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True)


def main():
    readme, build, operators = (pathlib.Path(argument).resolve() for argument in sys.argv[1:4])
    write = sys.argv[4:] == ['--write']
    text = readme.read_text()
    wrong = ran = 0
    for command, expected in commands(text):
        if not command.startswith('build/'):
            continue
        result = run(command, readme, build)
        ran += 1
        if result.returncode == 0 and agrees(expected, result.stdout):
            continue
        if write and result.returncode == 0 and '...' not in expected:
            old, new = f'$ {command}\n{expected}', f'$ {command}\n{result.stdout}'
            text = text.replace(old, new)
            continue
        wrong += 1
        print(f'$ {command}\nexit status {result.returncode}\n{result.stdout}{result.stderr}')
    table = subprocess.run([operators], stdout=subprocess.PIPE, text=True, check=True).stdout
    if table not in text:
        if write:
            text = re.sub(r'^\| domain \|.*?\n(?=\n)', lambda _: table, text, flags=re.S | re.M)
        else:
            wrong += 1
            print('the operator table should be:\n' + table)
    if write:
        readme.write_text(text)
    print(f'{ran} commands, {wrong} differences')
    sys.exit(1 if wrong or not ran else 0)


if __name__ == '__main__':
    main()
