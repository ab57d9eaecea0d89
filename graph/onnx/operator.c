/* operator.c - finds an operator's row in the table of operator.def. */
#include "convert.h"
#include "onnx.h"

#include <string.h>

#define MS "com.microsoft"
#define PREVIEW "ai.onnx.preview"
#define ML "ai.onnx.ml"
enum { MANY = 1 << 20 };

static const bb_onnx_row rows[] = {
#define BB_ONNX(domain, name, since, converter, least, most, outputs, detail)                      \
  {domain, name, since, bb_onnx_##converter, least, most, outputs, detail, false},
#define BB_ONNX_KERNEL(domain, name, since, converter, least, most, outputs)                       \
  {domain, name, since, bb_onnx_##converter, least, most, outputs, 0, true},
#include "operator.def"
#undef BB_ONNX
#undef BB_ONNX_KERNEL
};

static const struct {
  bb_onnx_row row;
  int64_t last;
} older[] = {
#define BB_ONNX_OLDER(name, last, converter, least, most, outputs, detail)                         \
  {{"", name, 7, bb_onnx_##converter, least, most, outputs, detail, false}, last},
#include "older.def"
#undef BB_ONNX_OLDER
};

static const bb_onnx_row *older_row(const char *name, int64_t version) {
  size_t best = sizeof older / sizeof *older, all = best;
  for (size_t i = 0; i < all; i++) {
    bool fits = strcmp(older[i].row.name, name) == 0 && version <= older[i].last;
    if (fits && (best == all || older[i].last < older[best].last)) best = i;
  }
  return best < all ? &older[best].row : NULL;
}

const bb_onnx_row *bb_onnx_row_find(const char *domain, const char *name, int64_t version) {
  const bb_onnx_row *best = NULL;
  if (!*domain && version < BB_ONNX_OPSET_OPERANDS) {
    best = older_row(name, version);
    if (best) return best;
    version = BB_ONNX_OPSET_OPERANDS;
  }
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    const bb_onnx_row *row = &rows[i];
    bool fits =
        strcmp(row->name, name) == 0 && strcmp(row->domain, domain) == 0 && row->since <= version;
    if (fits && (!best || row->since > best->since)) best = row;
  }
  return best;
}

bool bb_onnx_operator_get(uint32_t index, bb_onnx_operator *row) {
  if (index >= sizeof rows / sizeof *rows) return false;
  const bb_onnx_row *r = &rows[index];
  *row = (bb_onnx_operator){r->domain, r->name, r->since, r->misc};
  return true;
}
