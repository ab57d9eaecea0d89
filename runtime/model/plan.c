/* plan.c - what holds of every plan, and the extents of its arrays. */
#include "plan_text.h"

#include <string.h>

const char *const bb_plan_role_name[BB_PLAN_ROLES] = {[BB_TENSOR_INPUT] = "input",
                                                      [BB_TENSOR_OUTPUT] = "output",
                                                      [BB_TENSOR_CONSTANT] = "constant",
                                                      [BB_TENSOR_LOCAL] = "local"};

bool bb_plan_extent(const bb_extent *extent, const int64_t *symbol, int64_t *value) {
  *value = extent->factor;
  for (uint32_t i = 0; i < extent->count; i++)
    if (symbol[extent->symbol[i]] < 0 ||
        __builtin_mul_overflow(*value, symbol[extent->symbol[i]], value))
      return false;
  return true;
}

bool bb_plan_count(uint32_t rank, const bb_extent *const *shape, const int64_t *symbol,
                   size_t *count) {
  size_t product = 1;
  bool empty = false, fits = true;
  for (uint32_t i = 0; i < rank; i++) {
    int64_t value;
    if (!bb_plan_extent(shape[i], symbol, &value)) return false;
    empty |= value == 0;
    fits &= value == 0 || !__builtin_mul_overflow(product, (size_t)value, &product);
  }
  *count = empty ? 0 : product;
  return empty || (fits && product <= SIZE_MAX / 16);
}

uint32_t bb_plan_find_extent(bb_context *ctx, const bb_plan *p, const char *name, int64_t value) {
  uint32_t i = 0;
  bb_require(ctx, name, "the name of an extent");
  while (i < p->extents && strcmp(p->symbol[i], name) != 0) i++;
  if (i == p->extents) bb_fail(ctx, BB_ERROR_ARGUMENT, "there is no run-time extent %s", name);
  if (value < 0) bb_fail(ctx, BB_ERROR_ARGUMENT, "extent %s cannot be negative", name);
  return i;
}

void bb_plan_give_rooms(bb_plan *p) {
  for (uint32_t t = 0; t < p->tensors; t++) p->tensor[t].room = p->tensor[t].within = BB_NONE;
  for (uint32_t i = 0; i < 2 * p->caches; i++) {
    const bb_plan_cache *cache = &p->cache[i / 2];
    bb_plan_tensor *end = &p->tensor[i % 2 ? cache->output : cache->input];
    end->room = p->extents + i;
    end->room_axis = cache->axis;
  }
  for (uint32_t i = 0; i < p->caches; i++) {
    const bb_plan_cache *cache = &p->cache[i];
    if (cache->fresh == BB_NONE || cache->axis >= p->tensor[cache->input].rank) continue;
    bb_plan_tensor *fresh = &p->tensor[cache->fresh];
    fresh->room = p->tensor[cache->output].room;
    fresh->room_axis = cache->axis;
    fresh->within = cache->output;
    fresh->first = p->tensor[cache->input].shape[cache->axis];
  }
}

/* --- what follows from which symbols --- */

static bb_plan_symbols of_symbol(uint32_t symbol) {
  return (bb_plan_symbols)1 << symbol % 64;
}

static bb_plan_symbols of_extents(uint32_t count, const bb_extent *const *extent) {
  bb_plan_symbols all = 0;
  for (uint32_t i = 0; i < count; i++)
    for (uint32_t k = 0; k < extent[i]->count; k++) all |= of_symbol(extent[i]->symbol[k]);
  return all;
}

static bb_plan_symbols of_formula(const bb_formula *f) {
  bb_plan_symbols all = 0;
  for (uint32_t i = 0; i < f->count; i++)
    if (f->term[i].op == BB_T_VARIABLE) all |= of_symbol((uint32_t)f->term[i].number);
  return all;
}

static bb_plan_symbols of_operand(const bb_plan *p, const bb_plan_operand *o) {
  if (o->absent) return 0;
  bb_plan_symbols all = of_extents(o->rank, o->shape) | of_extents(o->axes, o->extent);
  for (uint32_t i = 0; i < o->pieces; i++) {
    const bb_plan_piece *piece = &o->piece[i];
    const bb_plan_tensor *t = &p->tensor[piece->tensor];
    all |= t->follows | of_formula(&piece->offset);
    if (t->room != BB_NONE) all |= of_symbol(t->room);
    for (uint32_t a = 0; a < o->axes; a++) all |= of_formula(&piece->stride[a]);
  }
  return all;
}

/* Formulas may be of symbols behind them. */
static void find_late(bb_plan *p) {
  p->told = BB_NEW(p->arena, bool, p->symbols + 1);
  p->late = BB_NEW(p->arena, bool, p->symbols + 1);
  for (uint32_t i = 0; i < p->steps; i++)
    if (p->step[i].tells != BB_NONE) p->told[p->step[i].tells] = p->late[p->step[i].tells] = true;
  for (bool more = true; more;) {
    more = false;
    for (uint32_t i = 0; i < p->symbols; i++) {
      const bb_formula *from = &p->derived[i];
      bool late = false;
      for (uint32_t k = 0; k < from->count; k++)
        late |= from->term[k].op == BB_T_VARIABLE && p->late[from->term[k].number];
      more |= late && !p->late[i];
      p->late[i] |= late;
    }
  }
}

void bb_plan_find_symbols(bb_plan *p) {
  for (uint32_t i = 0; i < p->tensors; i++)
    p->tensor[i].follows = of_extents(p->tensor[i].rank, p->tensor[i].shape);
  for (uint32_t i = 0; i < p->tensors; i++) {
    bb_plan_tensor *t = &p->tensor[i];
    if (t->within != BB_NONE) t->follows |= of_extents(1, &t->first) | p->tensor[t->within].follows;
  }
  find_late(p);
  for (uint32_t i = 0; i < p->steps; i++) {
    bb_plan_step *s = &p->step[i];
    s->follows = of_extents(s->extents, s->extent);
    for (uint32_t k = 0; k < s->nin; k++) s->follows |= of_operand(p, &s->in[k]);
    for (uint32_t k = 0; k < s->nout; k++) s->follows |= of_operand(p, &s->out[k]);
  }
}

void bb_plan_refuse_told(bb_context *ctx, const bb_plan *p, uint32_t symbol) {
  if (p->most[symbol].count)
    bb_fail(ctx, BB_ERROR_ARGUMENT, "a run tells extent %s: nobody else can", p->symbol[symbol]);
}

/* --- caches --- */

static bool same_extent(const bb_extent *a, const bb_extent *b) {
  bool same = a->factor == b->factor && a->count == b->count;
  for (uint32_t i = 0; same && i < a->count; i++) same = a->symbol[i] == b->symbol[i];
  return same;
}

static bool is_all_of(const bb_plan_operand *o, uint32_t tensor) {
  return !o->absent && o->whole && o->piece[0].tensor == tensor;
}

/* Of ends that are equally wide whatever the symbols are: then there is nothing to look at, but whether the ends are in their place. */
static bool brings_together(const bb_plan *p, const bb_plan_step *s, const bb_plan_cache *c) {
  const bb_plan_tensor *in = &p->tensor[c->input], *out = &p->tensor[c->output];
  bool does = c->fresh != BB_NONE && s->kernel == BB_NONE && s->misc && s->nin == 2 &&
              s->nout == 1 && is_all_of(&s->in[0], c->input) && is_all_of(&s->in[1], c->fresh) &&
              is_all_of(&s->out[0], c->output);
  for (uint32_t i = 0; does && i < out->rank; i++)
    does = i == c->axis || same_extent(in->shape[i], out->shape[i]);
  return does;
}

void bb_plan_find_joins(bb_plan *p) {
  for (uint32_t i = 0; i < p->steps; i++) {
    bb_plan_step *s = &p->step[i];
    s->joins = BB_NONE;
    uint32_t room =
        s->nout == 1 && !s->out[0].absent ? p->tensor[s->out[0].piece[0].tensor].room : BB_NONE;
    uint32_t cache = room == BB_NONE ? BB_NONE : (room - p->extents) / 2;
    if (cache != BB_NONE && brings_together(p, s, &p->cache[cache])) s->joins = cache;
  }
}

/* --- run-time extents --- */

bool bb_plan_derive(bb_context *ctx, const bb_plan *p, int64_t *symbol) {
  bool found = false;
  for (bool progress = true; progress;) {
    progress = false;
    for (uint32_t i = 0; i < p->symbols; i++) {
      int64_t value;
      bool bounded = p->most[i].count > 0;
      const bb_formula *formula = bounded ? &p->most[i] : &p->derived[i];
      if (bb_formula_is_open(formula, symbol) || (bounded && symbol[i] >= 0)) continue;
      if (!bb_formula_value(formula, symbol, &value))
        bb_fail(ctx, BB_ERROR_INPUT, "extent %s is too large", p->symbol[i]);
      if (value < 0)
        bb_fail(ctx, BB_ERROR_INPUT,
                "an axis, or what is left of one, would have %s = %lld elements", p->symbol[i],
                (long long)value);
      if (symbol[i] == value) continue;
      if (symbol[i] >= 0)
        bb_fail(ctx, BB_ERROR_INPUT, "extent %s is %lld, and follows from others as %lld",
                p->symbol[i], (long long)symbol[i], (long long)value);
      symbol[i] = value;
      found = progress = true;
    }
  }
  return found;
}

uint32_t bb_plan_variant_at(const bb_plan *p, const int64_t *symbol) {
  uint32_t cell = 0;
  for (uint32_t a = 0; a < p->table.axes; a++) {
    const bb_plan_axis *axis = &p->table.axis[a];
    uint32_t stretch = 0;
    while (stretch + 1 < axis->stretches && symbol[axis->symbol] > axis->limit[stretch]) stretch++;
    cell = cell * axis->stretches + stretch;
  }
  return p->table.cell[cell];
}

/* --- laws --- */

static bool is_known(uint32_t rank, const bb_extent *const *shape) {
  for (uint32_t i = 0; i < rank; i++)
    if (shape[i]->count) return false;
  return true;
}

/* Arrays are laid out for the most of what a run tells, which nothing else may say. */
static bool is_told(const bb_plan *p, const bb_plan_tensor *t) {
  bool told = false;
  for (uint32_t i = 0; i < t->rank; i++)
    for (uint32_t k = 0; k < t->shape[i]->count; k++) told |= p->most[t->shape[i]->symbol[k]].count;
  return told;
}

static const char *tensor_broken(const bb_plan *p, const bb_plan_tensor *t) {
  size_t count;
  if (t->role == BB_TENSOR_INPUT && is_told(p, t)) return "an input has an extent that a run tells";
  if (t->once && (t->role != BB_TENSOR_LOCAL || !is_known(t->rank, t->shape)))
    return "an array that is computed at load has to be local and of known size";
  if (t->role != BB_TENSOR_CONSTANT) return NULL;
  if (!is_known(t->rank, t->shape) || !bb_plan_count(t->rank, t->shape, NULL, &count) ||
      t->bytes != (uint64_t)count * bb_dtype_bytes(t->dtype))
    return "a constant has other bytes than its shape says";
  if (t->offset % 64 || t->offset > p->data_bytes || t->bytes > p->data_bytes - t->offset)
    return "a constant does not lie within the data";
  return NULL;
}

/* What is written is an output or local; a step that runs at load reads and writes what is there. */
static const char *access_broken(const bb_plan *p, const bb_plan_step *s, uint32_t tensor,
                                 bool written) {
  const bb_plan_tensor *t = &p->tensor[tensor];
  bool writable = t->role == BB_TENSOR_OUTPUT || t->role == BB_TENSOR_LOCAL;
  if (written && (!writable || t->once != s->once)) return "a step writes what is not its to write";
  if (s->once && !t->once && t->role != BB_TENSOR_CONSTANT)
    return "a step that runs at load depends on an input";
  return NULL;
}

static const char *operand_broken(const bb_plan *p, const bb_plan_step *s, const bb_plan_operand *o,
                                  bool written) {
  if (o->absent) return NULL;
  if (s->once && (!is_known(o->rank, o->shape) || !is_known(o->axes, o->extent)))
    return "a step that runs at load has extents of run time";
  if (o->pieces == 0 || (o->pieces > 1 && (o->joined == BB_NONE || o->whole)))
    return "an operand of no arrays, or of several that are not joined";
  if (written && !o->whole) return "a result is not a whole array";
  for (uint32_t i = 0; i < o->pieces; i++) {
    const bb_plan_piece *piece = &o->piece[i];
    if (p->tensor[piece->tensor].dtype != o->dtype) return "an operand of another type";
    const char *broken = access_broken(p, s, piece->tensor, written);
    if (broken) return broken;
  }
  return NULL;
}

static bool has_extent(const bb_plan_operand *o, uint32_t symbol) {
  for (uint32_t a = 0; !o->absent && a < o->rank; a++)
    if (o->shape[a]->factor == 1 && o->shape[a]->count == 1 && o->shape[a]->symbol[0] == symbol)
      return true;
  return false;
}

/* What a step tells it says by the shape of a result. */
static const char *telling_broken(const bb_plan *p, const bb_plan_step *s) {
  bool shown = false;
  for (uint32_t i = 0; i < s->nout; i++) shown |= has_extent(&s->out[i], s->tells);
  if (!shown || s->once || !p->most[s->tells].count || p->derived[s->tells].count)
    return "a step tells an extent that none of its results has, or that nothing bounds";
  for (const bb_plan_step *other = p->step; other < s; other++)
    if (other->tells == s->tells && other->variants & s->variants)
      return "two steps tell one extent";
  return NULL;
}

static const char *step_broken(const bb_plan *p, const bb_plan_step *s) {
  const char *broken = s->tells == BB_NONE ? NULL : telling_broken(p, s);
  if (s->kernel != BB_NONE && s->once && !is_known(s->extents, s->extent))
    broken = "a kernel that runs at load has extents of run time";
  for (uint32_t i = 0; i < s->arguments && !broken; i++)
    if (s->argument[i].tensor != BB_NONE)
      broken = access_broken(p, s, s->argument[i].tensor, s->argument[i].written);
  for (uint32_t i = 0; i < s->nin && !broken; i++) broken = operand_broken(p, s, &s->in[i], false);
  for (uint32_t i = 0; i < s->nout && !broken; i++) broken = operand_broken(p, s, &s->out[i], true);
  return broken;
}

static const char *cache_broken(const bb_plan *p, const bb_plan_cache *c) {
  const bb_plan_tensor *in = &p->tensor[c->input], *out = &p->tensor[c->output];
  bool fits = in->role == BB_TENSOR_INPUT && out->role == BB_TENSOR_OUTPUT &&
              in->dtype == out->dtype && in->rank == out->rank && c->axis < in->rank;
  for (uint32_t i = 0; fits && i < p->caches; i++)
    fits = &p->cache[i] == c || (p->cache[i].input != c->input && p->cache[i].output != c->output);
  return fits ? NULL : "a cache's two ends do not fit";
}

/* Where it lies follows from the cache's own extents, so that no step can write beyond the output. */
static const char *fresh_broken(const bb_plan *p, const bb_plan_cache *c) {
  if (c->fresh == BB_NONE) return NULL;
  const bb_plan_tensor *fresh = &p->tensor[c->fresh], *out = &p->tensor[c->output];
  bool fits = fresh->role == BB_TENSOR_LOCAL && !fresh->once && fresh->dtype == out->dtype &&
              fresh->rank == out->rank && fresh->within == c->output;
  for (uint32_t i = 0; fits && i < fresh->rank; i++)
    fits = i == c->axis || same_extent(fresh->shape[i], out->shape[i]);
  return fits ? NULL : "what a cache grows by does not fit its output";
}

static const char *table_broken(const bb_plan *p) {
  const bb_plan_table *t = &p->table;
  uint64_t cells = 1;
  if (p->variants < 1 || p->variants > BB_PLAN_VARIANTS) return "no variants, or too many";
  for (uint32_t a = 0; a < t->axes; a++) {
    const bb_plan_axis *axis = &t->axis[a];
    if (axis->symbol >= p->extents || axis->stretches < 1) return "the table has a wrong axis";
    for (uint32_t i = 0; i + 1 < axis->stretches; i++)
      if (axis->limit[i] < (i ? axis->limit[i - 1] + 1 : 0))
        return "the limits of an axis of the table do not ascend";
    cells *= axis->stretches;
    if (cells > t->cells) break;
  }
  if (cells != t->cells) return "the table has not one cell for each combination of stretches";
  for (uint32_t i = 0; i < t->cells; i++)
    if (t->cell[i] >= p->variants) return "the table names a variant that there is not";
  for (uint32_t i = 0; i < p->steps; i++) {
    const bb_plan_step *s = &p->step[i];
    if (!s->variants || s->variants & ~bb_plan_all(p) || (s->once && s->variants != bb_plan_all(p)))
      return "a step is part of no variant, or of one that there is not";
  }
  return NULL;
}

const char *bb_plan_verify(const bb_plan *p) {
  const char *broken = table_broken(p);
  for (uint32_t i = 0; i < p->caches && !broken; i++) broken = cache_broken(p, &p->cache[i]);
  for (uint32_t i = 0; i < p->caches && !broken; i++) broken = fresh_broken(p, &p->cache[i]);
  for (uint32_t i = 0; i < p->tensors && !broken; i++) broken = tensor_broken(p, &p->tensor[i]);
  for (uint32_t i = 0; i < p->steps && !broken; i++) broken = step_broken(p, &p->step[i]);
  return broken;
}
