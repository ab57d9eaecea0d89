#!/usr/bin/env python3
"""Holds the manual page against the program: its subcommands and options are those of --help, in the
same words.

usage: man.py PAGE PROGRAM [--write]      --write puts them in
"""
import pathlib
import re
import subprocess
import sys


def said(program, *words):
    return subprocess.run([program, *words], stdout=subprocess.PIPE, text=True, check=True).stdout


def escape(text):
    return text.replace('\\', '\\\\').replace('-', '\\-')


def subcommands(program):
    return re.findall(r'^  (\w+) +(.*)$', said(program, '--help'), re.M)


def options(program, commands):
    """Each spelling of an option with its text, and the subcommands that have it, in order."""
    found = {}
    for command, _ in commands:
        for line in said(program, command, '--help').split('\n'):
            match = re.match(r'  ((?:-\w, |    )--[\w-]+ ?\S*(?: \w)?) +(\S.*)$', line)
            if match:
                found.setdefault((match[1].strip(), match[2]), []).append(command)
    return found


def pages(program):
    commands = subcommands(program)
    first = ''.join(f'.TP\n.B {name}\n{escape(does)}\n' for name, does in commands)
    second = ''
    for (spelling, text), having in options(program, commands).items():
        where = 'all' if len(having) == len(commands) else ', '.join(having)
        second += f'.TP\n.B {escape(spelling)}\n{escape(text)}\n.br\n({where})\n'
    return {'subcommands': first, 'options': second}


def main():
    path, program = pathlib.Path(sys.argv[1]), sys.argv[2]
    page = path.read_text()
    for name, text in pages(program).items():
        pattern = rf'(\.\\" begin {name}\n).*?(\.\\" end {name}\n)'
        if not text or not re.search(pattern, page, re.S):
            sys.exit(f'{path}: nothing to hold {name} against')
        page = re.sub(pattern, lambda m: m[1] + text + m[2], page, flags=re.S)
    if sys.argv[3:] == ['--write']:
        path.write_text(page)
    elif page != path.read_text():
        sys.exit(f'{path} is not what --help says: tests/docs/man.py {path} {program} --write')


if __name__ == '__main__':
    main()
