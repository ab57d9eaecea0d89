/* loop.c - Loop and Scan: the graph of a step is converted once for each step, so that steps fuse with what is around them;
 * how many there are at most has to be known as the model is read.
 */
#include "convert.h"
#include "formula.h"

#include <string.h>

/* What steps have in common: values that go from each to the next, and parts of results that are joined in the end. */
typedef struct steps {
  bb_onnx_node *n;
  const Onnx__GraphProto *graph;
  const bb_onnx_frame *frame;
  uint32_t states, parts;
  bb_onnx_value **state; /* after the last step */
  bb_onnx_value ***part; /* by step: of each result */
  uint32_t done, room;   /* steps; those that `part` has room for */
  const int64_t *axis;   /* along which parts of each result are joined; NULL: 0 */
  const bool *from_last; /* whether the last step's part comes first; NULL: no */
} steps;

static const Onnx__GraphProto *body_of(const bb_onnx_node *n) {
  const Onnx__AttributeProto *body =
      bb_onnx_attribute(n, "body", ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__GRAPH);
  if (!body) bb_onnx_refuse(n, "attribute body is missing");
  return body->g;
}

/* `inputs` and `outputs` are those of the graph. */
static void begin(steps *s, uint32_t inputs, uint32_t outputs) {
  bb_arena *arena = s->n->m->arena;
  s->graph = body_of(s->n);
  s->frame = bb_onnx_open_graph(s->n, s->graph, inputs, outputs);
  s->state = BB_NEW(arena, bb_onnx_value *, s->states);
}

/* The operator's operand; refuses one that is absent. */
static bb_onnx_value *operand(const bb_onnx_node *n, uint32_t i) {
  if (i >= n->nin || !n->in[i]) bb_onnx_refuse(n, "input %u is missing", i);
  return n->in[i];
}

static bool any_unsupported(uint32_t count, bb_onnx_value *const *v) {
  for (uint32_t i = 0; i < count; i++)
    if (v[i]->unsupported) return true;
  return false;
}

/* Converts the graph for one more step; its results from `first` on are states, then parts.  False: one of them was
 * reported as unsupported, and so are all results of the operator. */
static bool take_step(steps *s, bb_onnx_value *const *in, bb_onnx_value **out, uint32_t first) {
  bb_onnx_node *n = s->n;
  bb_onnx_convert_graph(n, s->frame, s->graph, in, out);
  if (any_unsupported(first + s->states + s->parts, out)) {
    bb_onnx_value *unknown = BB_NEW(n->m->arena, bb_onnx_value, 1);
    *unknown = (bb_onnx_value){.unsupported = true, .id = BB_NONE};
    for (uint32_t i = 0; i < n->nout; i++) n->out[i] = unknown;
    return false;
  }
  if (s->states) memcpy(s->state, out + first, s->states * sizeof *out);
  bb_onnx_value **part = BB_NEW(n->m->arena, bb_onnx_value *, s->parts);
  for (uint32_t i = 0; i < s->parts; i++) part[i] = out[first + s->states + i];
  BB_GROW(n->m->arena, s->part, s->room, s->done + 1u);
  s->part[s->done++] = part;
  return true;
}

/* v with an axis of extent 1 put before axis `at`. */
static bb_onnx_value *with_axis(const bb_onnx_node *n, bb_onnx_value *v, uint32_t at) {
  const bb_extent *shape[BB_ONNX_RANK + 1];
  if (v->rank >= BB_ONNX_RANK) bb_onnx_refuse(n, "a step's result has %u axes", v->rank);
  for (uint32_t a = 0; a <= v->rank; a++)
    shape[a] = a == at ? bb_onnx_number(n->m, 1) : v->shape[a - (a > at)];
  return bb_onnx_reshape(n, v, v->rank + 1, shape);
}

/* Element `at` along an axis, which goes. */
static bb_onnx_value *element_of(const bb_onnx_node *n, bb_onnx_value *v, uint32_t axis,
                                 int64_t at) {
  const bb_extent *shape[BB_ONNX_RANK];
  bb_onnx_value *one = bb_onnx_slice(n, v, axis, at, 1, 1);
  for (uint32_t a = 0; a + 1 < v->rank; a++) shape[a] = v->shape[a + (a >= axis)];
  return bb_onnx_reshape(n, one, v->rank - 1, shape);
}

/* The parts of a result joined. */
static bb_onnx_value *joined(const steps *s, uint32_t i) {
  const bb_onnx_node *n = s->n;
  bool back = s->from_last && s->from_last[i];
  bb_onnx_value **v = BB_NEW(n->m->arena, bb_onnx_value *, s->done);
  if (!s->done) bb_onnx_refuse(n, "there is no step, and output %u is empty", s->states + i);
  uint32_t axis = bb_onnx_axis(n, s->axis ? s->axis[i] : 0, s->part[0][i]->rank + 1);
  for (uint32_t k = 0; k < s->done; k++)
    v[k] = with_axis(n, s->part[back ? s->done - 1 - k : k][i], axis);
  return bb_onnx_concat(n, s->done, v, axis);
}

static void give_results(const steps *s) {
  bb_onnx_node *n = s->n;
  if (n->nout > s->states + s->parts)
    bb_onnx_refuse(n, "has %u outputs, its graph gives %u", n->nout, s->states + s->parts);
  for (uint32_t i = 0; i < n->nout; i++)
    n->out[i] = i < s->states ? s->state[i] : joined(s, i - s->states);
}

/* --- Loop --- */

/* Whether a condition (absent: true) can hold; `*goes` becomes one that only a run tells, else NULL. */
static bool may_hold(const bb_onnx_node *n, bb_onnx_value *v, bb_onnx_value **goes) {
  const bb_expr *e = v ? bb_onnx_scalar_expr(v) : NULL;
  *goes = NULL;
  if (!v) return true;
  if (v->dtype != BB_BOOL) bb_onnx_refuse(n, "the condition is %s", bb_dtype_name(v->stored));
  if (e && e->op == BB_X_CONST) return e->number != 0;
  if (bb_onnx_count(v->rank, v->shape) != 1)
    bb_onnx_refuse(n, "the condition has shape %s", bb_onnx_shape_text(n->m, v));
  *goes = bb_onnx_reshape(n, v, 0, NULL);
  return true;
}

/* Both conditions; NULL holds. */
static bb_onnx_value *both(const bb_onnx_node *n, bb_onnx_value *a, bb_onnx_value *b) {
  bb_onnx_value *v[2] = {a, b};
  if (!a || !b) return a ? a : b;
  return bb_onnx_map(n, f_and(n->m->program, bb_onnx_arg(n, 0, a), bb_onnx_arg(n, 1, b)), 2, v);
}

/* Of each state, a where the condition (NULL: always) holds, else b.  False: one has another shape, which is reported. */
static bool choose_states(const steps *s, bb_onnx_value *goes, bb_onnx_value *const *a,
                          bb_onnx_value *const *b, bb_onnx_value **chosen) {
  for (uint32_t i = 0; i < s->states; i++) {
    bb_onnx_value *v = goes ? bb_onnx_choose(s->n, goes, a[i], b[i]) : a[i];
    if (!v) {
      bb_onnx_unsupported(s->n,
                          "a number of steps that is computed at run time, by a condition, "
                          "while state %u changes its shape",
                          i);
      return false;
    }
    chosen[i] = v;
  }
  return true;
}

/* Why a condition that only a run tells may not end the loop; NULL: it may. */
static const char *never_ends(const steps *s, int64_t most) {
  if (most > BB_ONNX_STEPS) return "a number of steps that is computed at run time, by a condition";
  if (s->n->nout > s->states) return "as many results of steps as a condition at run time says";
  return NULL;
}

/* Operands: how often (absent: as long as the condition holds), whether at all, the first states.  The graph takes the
 * number of the step, the condition and the states, and gives the condition, states, and parts of results.
 *
 * A step that a condition may have ended before is taken all the same, on the states that the last one took, of which every
 * element is one that a step can meet; the states after it are those before it.  Its number goes on beyond those that steps have: what takes it for
 * a place behind an array's end is refused. */
void bb_onnx_loop(bb_onnx_node *n) {
  bb_onnx *m = n->m;
  const Onnx__GraphProto *graph = body_of(n);
  bb_onnx_value *count = n->nin ? n->in[0] : NULL, *condition = n->nin > 1 ? n->in[1] : NULL;
  steps s = {.n = n, .states = n->nin > 2 ? n->nin - 2 : 0};
  int64_t most = INT64_MAX;
  if (graph->n_output < 1 + s.states)
    bb_onnx_refuse(n, "its graph has %zu outputs for %u states", graph->n_output, s.states);
  s.parts = (uint32_t)graph->n_output - 1 - s.states;
  if (count && !bb_onnx_known_int(count, &most)) {
    bb_onnx_unsupported(n, "a number of steps that is computed at run time");
    return;
  }
  begin(&s, 2 + s.states, 1 + s.states + s.parts);
  bb_onnx_value **in = BB_NEW(m->arena, bb_onnx_value *, 2 + s.states), *now, *goes = NULL;
  bb_onnx_value **out = BB_NEW(m->arena, bb_onnx_value *, graph->n_output);
  bb_onnx_value **before = BB_NEW(m->arena, bb_onnx_value *, s.states);
  for (uint32_t i = 0; i < s.states; i++) s.state[i] = operand(n, 2 + i);
  while (s.done < most && may_hold(n, condition, &now)) {
    const char *why = now ? never_ends(&s, most)
                      : s.done < BB_ONNX_STEPS
                          ? NULL
                          : bb_arena_printf(m->arena, "more than %d steps", BB_ONNX_STEPS);
    if (why) {
      bb_onnx_unsupported(n, "%s", why);
      return;
    }
    goes = both(n, goes, now);
    in[0] = bb_onnx_scalar(m, BB_I64, s.done);
    in[1] = bb_onnx_scalar(m, BB_BOOL, 1);
    if (s.states) memcpy(before, s.state, s.states * sizeof *before);
    if (!choose_states(&s, goes, before, s.done ? in + 2 : before, in + 2)) return;
    if (!take_step(&s, in, out, 1)) return;
    if (!choose_states(&s, goes, s.state, before, s.state)) return;
    condition = out[0];
  }
  give_results(&s);
}

/* --- Scan --- */

/* An attribute of a number for each of `count` operands or results; NULL: absent. */
static const int64_t *each_of(const bb_onnx_node *n, const char *name, uint32_t count) {
  uint32_t given;
  const int64_t *list = bb_onnx_ints(n, name, &given);
  if (list && given != count) bb_onnx_refuse(n, "%s has %u numbers, not %u", name, given, count);
  return list;
}

static bool is_back(const bb_onnx_node *n, const int64_t *direction, uint32_t i) {
  if (direction && direction[i] != 0 && direction[i] != 1)
    bb_onnx_refuse(n, "a direction is %lld", (long long)direction[i]);
  return direction && direction[i];
}

/* Steps, by the length of the operands from `first` on along their axes, which are made non-negative; -1: only a run tells. */
static int64_t scan_length(const bb_onnx_node *n, uint32_t first, uint32_t count,
                           const int64_t *given, uint32_t *axis) {
  const bb_extent *length = NULL;
  for (uint32_t i = 0; i < count; i++) {
    bb_onnx_value *v = operand(n, first + i);
    if (!v->rank) bb_onnx_refuse(n, "input %u is a scalar", first + i);
    axis[i] = bb_onnx_axis(n, given ? given[i] : 0, v->rank);
    if (i && !bb_onnx_same_extent(n, length, v->shape[axis[i]]))
      bb_onnx_refuse(n, "inputs %u and %u differ in length", first, first + i);
    length = v->shape[axis[i]];
  }
  return bb_extent_value(length);
}

/* Operands: the first states, and tensors of which each step takes an element.  The graph gives states, and parts of results. */
void bb_onnx_scan(bb_onnx_node *n) {
  bb_onnx *m = n->m;
  const Onnx__GraphProto *graph = body_of(n);
  int64_t taken = bb_onnx_int(n, "num_scan_inputs", 0);
  if (taken < 1 || taken > n->nin) bb_onnx_refuse(n, "num_scan_inputs is %lld", (long long)taken);
  uint32_t count = (uint32_t)taken;
  steps s = {.n = n, .states = n->nin - count};
  if (graph->n_output < s.states)
    bb_onnx_refuse(n, "its graph has %zu outputs for %u states", graph->n_output, s.states);
  s.parts = (uint32_t)graph->n_output - s.states;
  uint32_t *axis = BB_NEW(m->arena, uint32_t, count);
  int64_t length = scan_length(n, s.states, count, each_of(n, "scan_input_axes", count), axis);
  const int64_t *back = each_of(n, "scan_input_directions", count);
  const int64_t *results_back = each_of(n, "scan_output_directions", s.parts);
  bool *from_last = BB_NEW(m->arena, bool, s.parts);
  for (uint32_t i = 0; i < s.parts; i++) from_last[i] = is_back(n, results_back, i);
  s.from_last = from_last;
  s.axis = each_of(n, "scan_output_axes", s.parts);
  if (length < 0 || length > BB_ONNX_STEPS) {
    if (length < 0)
      bb_onnx_unsupported(n, "a number of steps that is known only at run time");
    else
      bb_onnx_unsupported(n, "more than %d steps", BB_ONNX_STEPS);
    return;
  }
  begin(&s, n->nin, s.states + s.parts);
  bb_onnx_value **in = BB_NEW(m->arena, bb_onnx_value *, n->nin);
  bb_onnx_value **out = BB_NEW(m->arena, bb_onnx_value *, graph->n_output);
  for (uint32_t i = 0; i < s.states; i++) s.state[i] = operand(n, i);
  while (s.done < length) {
    if (s.states) memcpy(in, s.state, s.states * sizeof *in);
    for (uint32_t i = 0; i < count; i++) {
      int64_t at = is_back(n, back, i) ? length - 1 - s.done : s.done;
      in[s.states + i] = element_of(n, n->in[s.states + i], axis[i], at);
    }
    if (!take_step(&s, in, out, 0)) return;
  }
  give_results(&s);
}

/* The form of opset 8 has a batch, and lengths of its sequences. */
void bb_onnx_scan_of_batches(bb_onnx_node *n) {
  bb_onnx_unsupported(n, "the form of opset 8");
}
