#!/usr/bin/env python3
"""Writes text files as arrays of characters in C: embed.py OUTPUT NAME=FILE..."""
import sys

with open(sys.argv[1], 'w') as out:
    for pair in sys.argv[2:]:
        name, path = pair.split('=', 1)
        data = open(path, 'rb').read() + b'\0'
        out.write(f'extern const char {name}[];\nconst char {name}[] = {{\n')
        for i in range(0, len(data), 20):
            out.write('  ' + ','.join(str(b) for b in data[i:i + 20]) + ',\n')
        out.write('};\n')
