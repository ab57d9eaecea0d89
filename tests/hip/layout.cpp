// layout.cpp - which lane and element of a fragment holds what: as tables, "lane.element" by row and column.
#define BB_CONSTANT constexpr
#include <stdint.h>
#include <stdio.h>

#include "fragment.h"

static void print(const char *name, int (*row)(int, int), int (*col)(int, int)) {
  printf("%s\n", name);
  for (int i = 0; i < 16; i++)
    for (int j = 0; j < 16; j++) {
      int found = 0;
      for (int lane = 0; lane < bb_mfma::LANES; lane++)
        for (int e = 0; e < 4; e++)
          if (row(lane, e) == i && col(lane, e) == j && !found++) printf("%d.%d", lane, e);
      printf("%s", j < 15 ? " " : "\n");
    }
}

int main() {
  print("A", bb_mfma::a_row, bb_mfma::a_depth);
  print("B", bb_mfma::b_depth, bb_mfma::b_col);
  print("D", bb_mfma::row, bb_mfma::col);
}
