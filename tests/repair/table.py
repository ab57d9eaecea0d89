#!/usr/bin/env python3
"""The table of all cases of repair: kernels, loads of each input, how much of the error allowed was used
in float64 and float32, the time of deriving.

usage: table.py PROGRAM [DERIVING]
"""

import sys

import harness
import programs
import repair
import spellings


def main():
    harness.MEASURED[0] = True
    harness.DERIVING[0] = sys.argv[2] if len(sys.argv) > 2 else None
    counts = [harness.run(sys.argv[1], tests.ALL) for tests in (repair, spellings, programs)]
    passed, failed = (sum(c) for c in zip(*counts))
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
