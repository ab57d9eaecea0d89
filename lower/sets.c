/* sets.c - a loop's iterations in stretches: those where masks may fail, those where they hold everywhere.
 *
 * Two sets are cut into intervals: S, the iterations that do anything, and C, those of them where the masks hold everywhere.
 * An interval of C divides what is left of S into what comes before and what comes after; what lies on either side is
 * an interval, or is taken apart into the parts that isl has it in, one after the other.  Beyond the most stretches that
 * are asked for, an interval of C counts as not clean, and then neighbours become one with what is between them.
 */
#include "sets_parts.h"

#include <isl/ctx.h>
#include <isl/map.h>
#include <isl/options.h>

enum { PIECES = 16, PARTS = 10, CLEAN = 3 };

typedef struct piece {
  isl_set *set;
  bool clean;
} piece;

typedef struct pieces {
  uint32_t count;
  piece at[PIECES];
  bool over; /* too many, or in no order */
} pieces;

bool bb_sets_is(bb_sets *s, isl_bool truth) {
  if (truth < 0) s->failed = true;
  return truth == isl_bool_true;
}

/* --- sets --- */

static isl_set *copy(isl_set *x) {
  return isl_set_copy(x);
}

static bool is_empty(bb_sets *s, isl_set *x) {
  return bb_sets_is(s, isl_set_is_empty(x));
}

/* Everything that stands in the relation to something of the set. */
static isl_set *related(isl_set *x, isl_map *of(isl_space *)) {
  return isl_set_apply(copy(x), of(isl_set_get_space(x)));
}

static isl_set *hull(isl_set *x) {
  return isl_set_intersect(related(x, isl_map_lex_le), related(x, isl_map_lex_ge));
}

static bool is_interval(bb_sets *s, isl_set *x) {
  if (isl_set_n_basic_set(x) <= 1) return true; /* no part has a hole: see within() */
  isl_set *all = hull(x);
  bool is = bb_sets_is(s, isl_set_is_subset(all, x));
  isl_set_free(all);
  return is;
}

/* Is nothing of b before something of a? */
static bool is_before(bb_sets *s, isl_set *a, isl_set *b) {
  isl_set *early = isl_set_intersect(copy(b), related(a, isl_map_lex_gt));
  bool is = is_empty(s, early);
  isl_set_free(early);
  return is;
}

static isl_set *tidy(isl_set *x) {
  return isl_set_coalesce(isl_set_remove_redundancies(x));
}

/* A part's iterations from the first to the last: as bounds that parameters give. */
static isl_stat fill_part(isl_basic_set *part, void *user) {
  isl_set **all = user, *x = isl_set_from_basic_set(part);
  isl_set *first = isl_set_lexmin(copy(x)), *last = isl_set_lexmax(x);
  x = isl_set_intersect(related(first, isl_map_lex_le), related(last, isl_map_lex_ge));
  isl_set_free(first);
  isl_set_free(last);
  *all = isl_set_union(*all, x);
  return isl_stat_ok;
}

/* Reads a set; where its parts have holes they are filled: it errs by being larger. */
static isl_set *read_set(bb_sets *s, const char *text) {
  isl_set *x = isl_set_read_from_str(s->ctx, text);
  x = s->domain ? isl_set_intersect(x, copy(s->domain))
                : isl_set_intersect_params(x, copy(s->context));
  x = isl_set_coalesce(isl_set_compute_divs(x));
  isl_set *plain = isl_set_remove_divs_involving_dims(copy(x), isl_dim_set, 0, 1);
  if (!bb_sets_is(s, isl_set_is_equal(plain, x))) {
    isl_set_free(plain);
    plain = isl_set_empty(isl_set_get_space(x));
    if (isl_set_foreach_basic_set(x, fill_part, &plain) < 0) s->failed = true;
    plain = isl_set_compute_divs(plain);
    plain = isl_set_remove_divs_involving_dims(plain, isl_dim_set, 0, 1);
  }
  isl_set_free(x);
  return tidy(isl_set_compute_divs(plain));
}

static isl_set *minus(isl_set *x, isl_set *y) {
  return tidy(isl_set_subtract(copy(x), copy(y)));
}

/* --- lists of pieces --- */

static void put(pieces *list, isl_set *x, bool clean) {
  if (list->count == PIECES) {
    isl_set_free(x);
    list->over = true;
    return;
  }
  list->at[list->count++] = (piece){x, clean};
}

static void clear(pieces *list) {
  while (list->count) isl_set_free(list->at[--list->count].set);
}

typedef struct parts {
  uint32_t count;
  isl_set *at[PARTS];
  bool over;
} parts;

static isl_stat note_part(isl_basic_set *part, void *user) {
  parts *p = user;
  if (p->count == PARTS) {
    isl_basic_set_free(part);
    p->over = true;
    return isl_stat_ok;
  }
  p->at[p->count++] = isl_set_from_basic_set(part);
  return isl_stat_ok;
}

static void drop_part(parts *p, uint32_t i) {
  isl_set_free(p->at[i]);
  p->at[i] = p->at[--p->count];
}

/* Parts whose union is an interval for all parameters become one. */
static void join_parts(bb_sets *s, parts *p) {
  for (uint32_t i = 0; i < p->count; i++)
    for (uint32_t k = i + 1; k < p->count; k++) {
      isl_set *both = tidy(isl_set_union(copy(p->at[i]), copy(p->at[k])));
      if (!is_interval(s, both)) {
        isl_set_free(both);
        continue;
      }
      isl_set_free(p->at[i]);
      p->at[i] = both;
      drop_part(p, k);
      k = i; /* what did not fit may do now */
    }
}

/* One that begins first, and ends before another has anything that is not also in it. */
static uint32_t first_part(bb_sets *s, const parts *p) {
  for (uint32_t i = 0; i < p->count; i++) {
    bool first = true;
    for (uint32_t k = 0; k < p->count && first; k++) {
      if (k == i) continue;
      isl_set *rest = minus(p->at[k], p->at[i]);
      first = is_before(s, p->at[i], rest);
      isl_set_free(rest);
    }
    if (first) return i;
  }
  return UINT32_MAX;
}

/* Adds a set's intervals to the list, in their order.  Takes the set. */
static void put_intervals(bb_sets *s, pieces *list, isl_set *x, bool clean) {
  parts p = {0};
  x = tidy(x);
  if (is_empty(s, x)) {
    isl_set_free(x);
    return;
  }
  if (is_interval(s, x)) {
    put(list, x, clean);
    return;
  }
  if (isl_set_foreach_basic_set(x, note_part, &p) < 0) s->failed = true;
  isl_set_free(x);
  if (!p.over) join_parts(s, &p);
  while (p.count && !p.over && !s->failed) {
    uint32_t i = first_part(s, &p);
    if (i == UINT32_MAX) {
      p.over = true;
      break;
    }
    isl_set *one = copy(p.at[i]);
    put(list, one, clean);
    drop_part(&p, i);
    for (uint32_t k = 0; k < p.count; k++) p.at[k] = tidy(isl_set_subtract(p.at[k], copy(one)));
    for (uint32_t k = p.count; k-- > 0;)
      if (is_empty(s, p.at[k])) drop_part(&p, k);
    for (uint32_t k = 0; k < p.count; k++)
      if (!is_interval(s, p.at[k])) p.over = true;
  }
  list->over |= p.over;
  while (p.count) drop_part(&p, 0);
}

/* --- stretches --- */

/* Takes what comes before `clean` out of what is left.  Where `clean` is empty either side will do. */
static isl_set *take_before(bb_sets *s, isl_set **left, isl_set *clean) {
  isl_set *from = bb_sets_side(s, clean, false), *there = isl_set_params(copy(clean));
  isl_set *surely = related(clean, isl_map_lex_le);
  isl_set *here = isl_set_intersect_params(copy(from), copy(there));
  bool exact = bb_sets_is(s, isl_set_is_subset(here, surely)); /* not below where it begins */
  isl_set_free(here);
  isl_set_free(exact ? surely : from);
  if (!exact) from = surely;
  isl_set *before = minus(*left, from);
  isl_set *really = isl_set_intersect_params(copy(before), there);
  if (is_empty(s, really)) {
    isl_set_free(before);
    before = isl_set_empty(isl_set_get_space(*left));
    isl_set_free(from);
  } else {
    *left = tidy(isl_set_intersect(*left, from));
  }
  isl_set_free(really);
  return before;
}

/* Neighbours that are not clean become one. */
static bool join_neighbours(pieces *list) {
  for (uint32_t i = 0; i + 1 < list->count; i++) {
    if (list->at[i].clean || list->at[i + 1].clean) continue;
    isl_set *both = isl_set_union(list->at[i].set, list->at[i + 1].set);
    list->at[i].set = tidy(hull(both));
    isl_set_free(both);
    for (uint32_t k = i + 1; k + 1 < list->count; k++) list->at[k] = list->at[k + 1];
    list->count--;
    return true;
  }
  return false;
}

static bool say(bb_sets *s, const pieces *list, bool choose) {
  bb_sets_answer *a = s->answer;
  a->nodes = 0;
  for (uint32_t i = 0; i < list->count; i++) {
    bb_sets_interval x = {list->at[i].set, i ? list->at[i - 1].set : NULL,
                          i + 1 < list->count ? list->at[i + 1].set : NULL};
    if (!bb_sets_bound(s, &x, choose, &a->stretch[i])) return false;
    a->stretch[i].clean = list->at[i].clean;
  }
  a->stretches = list->count;
  return !s->failed;
}

/* How stretches are looked for: choose, as bb_sets_bound() has it; join: neighbours may become one. */
typedef struct manner {
  uint32_t most;
  bool choose, join;
} manner;

/* The stretches with some intervals of C clean. */
static bool try_clean(bb_sets *s, const pieces *clean, uint32_t chosen, const manner *how) {
  isl_set *left = copy(s->all);
  pieces list = {0};
  for (uint32_t i = 0; i < clean->count; i++)
    if (chosen >> i & 1) left = isl_set_subtract(left, copy(clean->at[i].set));
  left = tidy(left);
  for (uint32_t i = 0; i < clean->count; i++) {
    if (!(chosen >> i & 1)) continue;
    put_intervals(s, &list, take_before(s, &left, clean->at[i].set), false);
    put(&list, copy(clean->at[i].set), true);
  }
  put_intervals(s, &list, left, false);
  while (how->join && list.count > how->most && join_neighbours(&list)) {
  }
  bool good = !list.over && !s->failed && list.count <= how->most && say(s, &list, how->choose);
  clear(&list);
  return good;
}

/* As many clean intervals as can be had, rather the last ones: `many` at most. */
static bool try_all(bb_sets *s, const pieces *clean, uint32_t many, const manner *how) {
  uint32_t choices = 1u << clean->count;
  for (uint32_t count = many + 1; count-- > 0 && !s->failed;)
    for (uint32_t chosen = choices; chosen-- > 0;)
      if ((uint32_t)__builtin_popcount(chosen) == count && try_clean(s, clean, chosen, how))
        return true;
  return false;
}

/* Rather no iteration too many than a clean one more. */
static bool cut(bb_sets *s, const pieces *clean, uint32_t most) {
  for (uint32_t way = 0; way < 4; way++) {
    manner how = {most, way & 1, way & 2};
    if (try_all(s, clean, how.join && clean->count ? 1 : clean->count, &how)) return true;
  }
  return false;
}

/* Those where all masks hold that hold everywhere in some iteration beside those before them. */
static isl_set *find_clean(bb_sets *s, const bb_sets_question *q, isl_set *all) {
  isl_set *clean = copy(all);
  for (uint32_t i = 0; i < q->masks; i++) {
    isl_set *less = isl_set_subtract(copy(clean), read_set(s, q->mask[i].fails));
    bool none = is_empty(s, less);
    isl_set_free(none ? less : clean);
    if (none) continue;
    clean = tidy(less);
    s->answer->clean |= 1u << i;
  }
  if (s->answer->clean) return clean;
  isl_set_free(clean);
  return isl_set_empty(isl_set_get_space(all));
}

static void put_clean(bb_sets *s, const bb_sets_question *q, pieces *clean) {
  s->answer->clean = 0;
  if (q->most > 1) put_intervals(s, clean, find_clean(s, q, s->all), true);
  if (clean->over || clean->count > CLEAN) clear(clean);
}

/* Iterations that are no few intervals, with those between them: in stretches if some are clean. */
static bool cut_around(bb_sets *s, const bb_sets_question *q) {
  isl_set *all = s->all;
  pieces clean = {0};
  s->all = isl_set_from_basic_set(isl_set_simple_hull(copy(all)));
  s->all = tidy(isl_set_intersect(s->all, copy(s->domain)));
  put_clean(s, q, &clean);
  bool good = clean.count && cut(s, &clean, q->most);
  clear(&clean);
  isl_set_free(s->all);
  s->all = all;
  if (good || s->failed) return good;
  s->answer->nodes = 0;
  s->answer->stretches = 1;
  s->answer->stretch[0].clean = false;
  return bb_sets_bound_around(s, s->all, &s->answer->stretch[0]);
}

/* A loop that does nothing. */
static void do_nothing(bb_sets *s) {
  s->answer->node[0] = (bb_sets_node){.kind = BB_SETS_SUM, .number = 0};
  s->answer->node[1] = (bb_sets_node){.kind = BB_SETS_SUM, .number = -1};
  s->answer->nodes = 2;
  s->answer->stretch[0] = (bb_sets_stretch){0, 1, false};
  s->answer->stretches = 1;
}

static void solve(bb_sets *s, const bb_sets_question *q) {
  isl_set *domain = s->domain = read_set(s, q->domain), *all = copy(domain);
  for (uint32_t i = 0; i < q->masks; i++)
    if (q->mask[i].idle) all = isl_set_intersect(all, read_set(s, q->mask[i].holds));
  all = s->all = tidy(all);
  pieces clean = {0};
  put_clean(s, q, &clean);
  bool same = !clean.count && bb_sets_is(s, isl_set_is_equal(domain, all));
  if (is_empty(s, all))
    do_nothing(s);
  else if (!same && !s->failed)
    s->answer->gave_up = !cut(s, &clean, q->most) && (s->failed || !cut_around(s, q));
  bool some = false;
  for (uint32_t i = 0; i < s->answer->stretches; i++) some |= s->answer->stretch[i].clean;
  if (!some) s->answer->clean = 0;
  clear(&clean);
  isl_set_free(all);
  isl_set_free(domain);
}

void bb_sets_solve(const bb_sets_question *question, bb_sets_answer *answer) {
  answer->stretches = answer->nodes = answer->clean = 0;
  answer->gave_up = false;
  bb_sets s = {.ctx = isl_ctx_alloc(), .answer = answer};
  if (!s.ctx) return;
  isl_options_set_on_error(s.ctx, ISL_ON_ERROR_CONTINUE);
  isl_ctx_set_max_operations(s.ctx, BB_SETS_WORK);
  s.context = isl_set_read_from_str(s.ctx, question->context);
  if (s.context) solve(&s, question);
  isl_set_free(s.context);
  answer->gave_up |= s.failed || isl_ctx_last_error(s.ctx) != isl_error_none;
  if (answer->gave_up) answer->stretches = 0;
  isl_ctx_free(s.ctx);
}
