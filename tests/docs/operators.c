/* operators.c - prints the table of ONNX operators that README.md shows. */
#include "../../graph/onnx/onnx.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OPERATORS = 1024 };

static int by_name(const void *a, const void *b) {
  const bb_onnx_operator *x = a, *y = b;
  int order = strcmp(x->name, y->name);
  return order ? order : (x->since > y->since) - (x->since < y->since);
}

/* One row: the operators of a domain that run as block programs, or as reference kernels. */
static void print_row(const bb_onnx_operator *all, uint32_t count, const char *domain, bool misc) {
  const char *last = "";
  for (uint32_t i = 0; i < count; i++) {
    if (strcmp(all[i].domain, domain) != 0 || all[i].misc != misc) continue;
    if (strcmp(all[i].name, last) == 0) continue; /* a later form of the same operator */
    if (*last)
      printf(", ");
    else
      printf("| %s | %s | ", *domain ? domain : "ai.onnx", misc ? "misc" : "blocks, views");
    printf("%s", all[i].name);
    if (!*domain && all[i].since > 13) printf(" (%u)", all[i].since);
    last = all[i].name;
  }
  if (*last) printf(" |\n");
}

int main(void) {
  static bb_onnx_operator all[OPERATORS];
  uint32_t count = 0;
  while (count < OPERATORS && bb_onnx_operator_get(count, &all[count])) count++;
  qsort(all, count, sizeof *all, by_name);
  printf("| domain | runs as | operators (from which opset, if from a later one than 13) "
         "|\n|---|---|---|\n");
  static const char *const domains[] = {"", "ai.onnx.ml", "ai.onnx.preview", "com.microsoft"};
  uint32_t shown = 0;
  for (size_t d = 0; d < sizeof domains / sizeof *domains; d++) {
    for (int misc = 0; misc < 2; misc++) print_row(all, count, domains[d], misc);
    for (uint32_t i = 0; i < count; i++) shown += strcmp(all[i].domain, domains[d]) == 0;
  }
  return shown != count; /* a domain that has no rows here */
}
