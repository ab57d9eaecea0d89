/* host_group.cpp - products of warp groups on the processor (host_group.hpp). */
#include "host_cluster.hpp"

#include <algorithm>

namespace tl {
/* --- operands --- */

struct operand_in_memory {
  u32 start, next64, next8;
};
static operand_in_memory operand_of(u64 d) {
  const operand_in_memory o = {(u32)(d & 0x3fff) << 4, (u32)(d >> 16 & 0x3fff) << 4,
                               (u32)(d >> 32 & 0x3fff) << 4};
  if (d >> 62 != 1 || (d >> 49 & 7)) tl_fault("an operand that is not swizzled by 128 bytes");
  if (o.start & 0x380) tl_fault("an operand begins at byte %u, within 8 rows", o.start);
  return o;
}
/* Element k of 16 along what is summed, and x along the other axis, which `runs`, or not, along the memory's rows. */
TL_DEV u32 place_of_element(const operand_in_memory &o, bool runs, int x, int k) {
  if (runs)
    return swizzled(o.start + (u32)(x / 64) * o.next64 + (u32)(k / 8) * o.next8 +
                    (u32)(k % 8) * 128 + (u32)(x % 64) * 2);
  return swizzled(o.start + (u32)(x / 8) * o.next8 + (u32)(x % 8) * 128 + (u32)k * 2);
}
/* What all `count` along the other axis lie in. */
static void put_ranges(std::vector<range> *to, const operand_in_memory &o, bool runs, int count) {
  for (int x = 0; x < count; x += runs ? 64 : 8) {
    const u32 row = runs ? (u32)(x / 64) * o.next64 : (u32)(x / 8) * o.next8;
    const u32 from = (o.start + row) & ~127u;
    if (!runs) {
      if (!to->empty() && to->back().to == from)
        to->back().to = from + 1024;
      else
        to->push_back({from, from + 1024});
      continue;
    }
    for (int k = 0; k < 16; k += 8)
      to->push_back({from + (u32)(k / 8) * o.next8, from + (u32)(k / 8) * o.next8 + 1024});
  }
}

/* --- products --- */

struct sums { /* of a warp: 16 rows */
  float *part[TL_WARP][2];
  int columns, parts, runs; /* columns: of a part; runs: products that have not been made */
  std::vector<float> value; /* [16][parts * columns] */
};
struct begun_product {
  bool bf, left_turned, right_turned, keep, in_registers;
  operand_in_memory left, right;
  const u32 *from[TL_WARP][4]; /* a left operand in registers; what it was */
  u32 word[TL_WARP][4];
  std::vector<range> reads;
  sums *to;
  int thread; /* of the block, that began it first */
};
struct warp_products {
  std::deque<begun_product> begun;
  std::deque<size_t> ends; /* of groups: how many products there were before */
  size_t made, groups_made;
  size_t lane_begun[TL_WARP], lane_groups[TL_WARP];
  bool fenced[TL_WARP];
  std::deque<sums> sum;
};
static warp_products products[BB_FIBERS / TL_WARP];
static float wide[2][1 << 16]; /* of 16 bits, the value */

static const u32 no_sum = 0x7fc0dead;

/* Element (row, col) of an accumulator lies at this lane. */
TL_DEV int lane_at(int row, int col) {
  return row % 8 * 4 + col % 8 / 2;
}
TL_DEV int place_at(int row, int col) {
  return col / 8 * 4 + row / 8 * 2 + col % 2;
}

static void take_sums(sums *s, int lane) {
  const int all = s->columns * s->parts;
  for (int row = 0; row < 16; row++)
    for (int col = 0; col < all; col++)
      if (lane_at(row, col) == lane) {
        float *at = s->part[lane][col / s->columns] + place_at(row, col % s->columns);
        s->value[(size_t)(row * all + col)] = *at;
        memcpy(at, &no_sum, sizeof no_sum);
      }
}
static void give_sums(const sums *s) {
  const int all = s->columns * s->parts;
  for (int row = 0; row < 16; row++)
    for (int col = 0; col < all; col++) {
      float *at = s->part[lane_at(row, col)][col / s->columns] + place_at(row, col % s->columns);
      u32 held;
      memcpy(&held, at, sizeof held);
      if (held != no_sum) tl_fault("sums were written while their product ran");
      *at = s->value[(size_t)(row * all + col)];
    }
}

/* The sums that these registers are, if a product of theirs runs; else new ones. */
static sums *sums_of(warp_products *w, int lane, float *const (&part)[2], int columns, bool first,
                     sums *known) {
  if (!first) { /* as other lanes have it */
    if (known->part[lane][0] == NULL) {
      known->part[lane][0] = part[0], known->part[lane][1] = part[1];
      take_sums(known, lane);
    }
    if (known->part[lane][0] != part[0] || known->part[lane][1] != part[1])
      tl_fault("lanes of a warp begin other products");
    return known;
  }
  const int parts = part[1] ? 2 : 1;
  for (sums &s : w->sum) {
    if (!s.runs) continue;
    for (int i = 0; i < 2; i++)
      for (int j = 0; j < 2; j++)
        if (part[i] && part[i] == s.part[lane][j] &&
            (i != j || parts != s.parts || columns != s.columns))
          tl_fault("a product of another shape adds to sums whose product runs");
    if (part[0] == s.part[lane][0]) return &s;
  }
  w->sum.push_back({});
  sums *s = &w->sum.back();
  s->columns = columns, s->parts = parts;
  s->value.resize((size_t)(16 * columns * parts));
  s->part[lane][0] = part[0], s->part[lane][1] = part[1];
  take_sums(s, lane);
  return s;
}

static void begin(begun_product p, float *const (&part)[2], int columns, const u32 *const *from) {
  const int lane = bb_here.thread % TL_WARP;
  warp_products *w = &products[bb_here.me / TL_WARP];
  const size_t at = w->lane_begun[lane]++;
  const bool first = at == w->begun.size();
  if (!w->fenced[lane]) tl_fault("a product without mma_fence()");
  if (first) {
    const int all = columns * (part[1] ? 2 : 1);
    if (!p.in_registers) put_ranges(&p.reads, p.left, p.left_turned, 64);
    put_ranges(&p.reads, p.right, p.right_turned, all);
    for (range r : p.reads) {
      if (r.to > bb_here.shared)
        tl_fault("a product reads byte %u of %zu of shared memory", r.to - 1, bb_here.shared);
      check_read(r, "a product reads");
      check_fence(r, "a product reads");
    }
    p.thread = bb_here.thread;
    w->begun.push_back(p);
  }
  begun_product *b = &w->begun[at];
  if (b->left.start != p.left.start || b->right.start != p.right.start || b->keep != p.keep ||
      b->in_registers != p.in_registers)
    tl_fault("lanes of a warp begin other products");
  b->to = sums_of(w, lane, part, columns, first, b->to);
  b->to->runs += first;
  for (int i = 0; p.in_registers && i < 4; i++)
    b->from[lane][i] = from[i], b->word[lane][i] = *from[i];
}

/* The operands as numbers, and the sums with their product; `warp`: of the group. */
__attribute__((optimize("O3"))) static void multiply_add(float *to, const float *left,
                                                         const float *right, int columns) {
  for (int row = 0; row < 16; row++)
    for (int k = 0; k < 16; k++)
      for (int col = 0; col < columns; col++)
        to[row * columns + col] += left[row * 16 + k] * right[k * columns + col];
}
static void make(begun_product *p, int warp) {
  static float left[16 * 16], right[16 * 256];
  sums *s = p->to;
  const int all = s->columns * s->parts;
  const float *of = wide[p->bf];
  for (int row = 0; row < 16; row++)
    for (int k = 0; k < 16; k++) {
      if (p->in_registers) {
        const int lane = lane_at(row, k), word = row / 8 + k / 8 * 2;
        if (*p->from[lane][word] != p->word[lane][word])
          tl_fault("a left operand was written while its product ran");
        left[row * 16 + k] = of[(u16)(p->word[lane][word] >> k % 2 * 16)];
      } else {
        left[row * 16 + k] =
            of[at<u16>(place_of_element(p->left, p->left_turned, 16 * warp + row, k))];
      }
    }
  for (int col = 0; col < all; col++)
    for (int k = 0; k < 16; k++)
      right[k * all + col] = of[at<u16>(place_of_element(p->right, p->right_turned, col, k))];
  if (!p->keep) std::fill(s->value.begin(), s->value.end(), 0.f);
  multiply_add(s->value.data(), left, right, all);
  if (--s->runs == 0) give_sums(s);
}

void mma_fence() {
  products[bb_here.me / TL_WARP].fenced[bb_here.thread % TL_WARP] = true;
}
void mma_commit() {
  const int lane = bb_here.thread % TL_WARP;
  warp_products *w = &products[bb_here.me / TL_WARP];
  const size_t at = w->lane_groups[lane]++;
  w->fenced[lane] = false;
  if (at == w->ends.size()) w->ends.push_back(w->lane_begun[lane]);
  if (w->ends[at] != w->lane_begun[lane]) tl_fault("lanes of a warp end other groups of products");
}
void mma_wait(int left) {
  warp_products *w = &products[bb_here.me / TL_WARP];
  const int warp = bb_here.thread / TL_WARP;
  w->fenced[bb_here.thread % TL_WARP] = false;
  __syncwarp();
  for (int l = 0; l < TL_WARP; l++)
    if (w->lane_begun[l] != w->begun.size() || w->lane_groups[l] != w->ends.size())
      tl_fault("not all lanes of warp %d begin a product", warp);
  while (w->ends.size() - w->groups_made > (size_t)left)
    for (const size_t end = w->ends[w->groups_made++]; w->made < end; w->made++)
      make(&w->begun[w->made], warp % 4);
  if (w->made == w->begun.size() && w->groups_made == w->ends.size()) {
    w->begun.clear(), w->ends.clear(), w->sum.clear();
    w->made = w->groups_made = 0;
    memset(w->lane_begun, 0, sizeof w->lane_begun);
    memset(w->lane_groups, 0, sizeof w->lane_groups);
  }
  __syncwarp();
}

int product_reads(int block, range r) {
  const int warps = bb_here.threads / TL_WARP;
  for (int i = block * warps; i < (block + 1) * warps; i++)
    for (size_t k = products[i].made; k < products[i].begun.size(); k++)
      for (range x : products[i].begun[k].reads)
        if (meets(x, r)) return 1 + products[i].begun[k].thread;
  return 0;
}

/* --- as emitted kernels ask for them --- */

static begun_product product_of(product_kind kind, u64 right) {
  begun_product p = {};
  p.bf = kind.bf, p.left_turned = kind.left_turned, p.right_turned = kind.right_turned,
  p.keep = kind.keep;
  p.right = operand_of(right);
  return p;
}
void begin(product_kind kind, float *d, float *f, int columns, u64 left, u64 right) {
  begun_product p = product_of(kind, right);
  p.left = operand_of(left);
  begin(p, {d, f}, columns, NULL);
}
void begin(product_kind kind, float *d, float *f, int columns, const left_registers &left,
           u64 right) {
  begun_product p = product_of(kind, right);
  p.in_registers = true;
  begin(p, {d, f}, columns, left.at);
}

static void end_products() {
  if (!products[bb_here.me / TL_WARP].begun.empty())
    tl_fault("the thread ends and nobody waited for its products");
}
static const tl_with products_anew =
    tl_more{[] {
              for (int i = 0; wide[1][0xffff] == 0 && i < 1 << 16; i++)
                wide[0][i] = float_f16((u16)i), wide[1][i] = float_bf16((u16)i);
              for (int i = 0; i < tl_cluster.blocks * bb_here.threads / TL_WARP; i++)
                products[i] = {};
            },
            end_products, NULL, NULL};
} // namespace tl
