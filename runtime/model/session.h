/* session.h - what the files of a session share.
 */
#ifndef BB_MODEL_SESSION_H
#define BB_MODEL_SESSION_H

#include "model.h"

/* Where the array of a tensor lies in a run. */
typedef enum bb_home {
  BB_HOME_NONE,      /* nobody uses it */
  BB_HOME_MODEL,     /* constants, and what was computed at load */
  BB_HOME_CALLER,    /* bound, and dense */
  BB_HOME_OWN,       /* an output that is not bound */
  BB_HOME_WORKSPACE, /* passes between steps; or bound with strides, and copied */
  BB_HOME_WITHIN     /* part of another tensor's array */
} bb_home;

typedef struct bb_bound {
  bool given, strided;
  bool shares;  /* an output over memory of an input: it is written after the last step */
  bool open;    /* an output of a cache: its length along the cache's axis is what comes out ... */
  int64_t most; /* ... and may be so much */
  int64_t
      room;   /* an end of a cache: elements along its axis from one row outside it to the next; 0:
                 * dense */
  void *data; /* NULL: an output that lies in the session's memory */
  int64_t shape[BB_PLAN_RANK], stride[BB_PLAN_RANK];
} bb_bound;

typedef struct bb_place {
  bb_home home;
  uint32_t first, last; /* steps that use it; no step: first > last */
  size_t bytes, offset; /* offset: in the workspace, or in the tensor that it is part of */
  bool moved;           /* as pointers are found: it lay elsewhere before */
  void *own;            /* OWN, or an input that was written: its memory, of so many bytes */
  size_t own_bytes;
  void *mirror; /* what the lab works on where the device's memory is not the processor's */
  size_t mirror_bytes;
  bool mirrored; /* and it holds what never changes */
} bb_place;

/* A step of the device's, ready to be launched. */
typedef struct bb_ready {
  bool launched; /* it is one */
  bool idle;     /* of any device: there is nothing to do, what it brings together lies in place */
  int64_t *extent, *offset; /* of a kernel.  offset: by argument, in bytes */
  void **argument;
  size_t scratch;
  bb_prepared *prepared; /* the device's; NULL: it has none */
  bool known;            /* extents and offsets */
  bool stale;            /* it is to be prepared, for what it follows from changed */
  int64_t most; /* of one that tells an extent: the most that this can be, as it was prepared for */
} bb_ready;

/* Where arrays lie in the workspace of a variant: those of the last run of it, or at most as large as bb_session_reserve()
 * was told. */
typedef struct bb_arrangement {
  enum { BB_ARRANGED_NOT, BB_ARRANGED_FOR_RUN, BB_ARRANGED_AT_MOST } what;
  size_t arrays;          /* bytes of all, behind which scratch of kernels lies ... */
  size_t scratch;         /* ... AT_MOST: of so many bytes */
  size_t workspace;       /* AT_MOST: what any variant needs */
  size_t *bytes, *offset; /* by tensor: what lies in the workspace; 0 bytes: not there */
} bb_arrangement;

/* The bytes that a bound array spans; none: from == to. */
typedef struct bb_span {
  uintptr_t from, to;
  uint32_t tensor;
} bb_span;

struct bb_session {
  bb_context *ctx;
  bb_arena *arena;
  bb_model *model;
  bb_session_options options;
  bb_queue *queue;
  bb_lab *lab;
  bool once;        /* runs the steps of load time, and only them */
  bool tells;       /* a step tells an extent: no run is known before it ends */
  uint32_t variant; /* of the plan, that runs */
  int64_t *preset, *symbol;
  bb_bound *bound; /* by tensor, as all below */
  bb_place *place;
  void **data;
  bb_ready *ready;         /* by step */
  uint32_t *order;         /* tensors, for the workspace */
  bb_span *span;           /* of inputs and outputs, nearly in the order of memory */
  bool broken;             /* the last run ended before its end */
  bool prepared;           /* shapes are as they were laid out */
  bool placed;             /* and pointers are where arrays are */
  bool ran, noted;         /* since then; and the device has noted all launches of a run */
  int64_t *laid;           /* the symbols that the last layout was for ... */
  bool *told;              /* by symbol: a step has told it in this run */
  bb_plan_symbols changed; /* ... and those that it does not hold for, whatever they were */
  void **near;             /* by tensor: mirrors */
  bool arranged;           /* arrays of the workspace are as large as they were arranged for */
  size_t arrays, scratch;  /* bytes of the workspace: of arrays, then of kernels */
  size_t workspace;
  bb_arrangement *arrangement; /* by variant */
  void *at_scratch;            /* where kernels have theirs */
  void *
      late; /* memory for scratch of steps behind one that told an extent, where the workspace has too little */
  size_t late_bytes, late_need; /* what it has; what launches of extents that were told need */
  void *own, *lent;             /* the workspace: the session's, or the caller's */
  size_t own_bytes, lent_bytes;
};

/* Whatever it follows from. */
#define BB_ALL_SYMBOLS (~(bb_plan_symbols)0)
static inline bool bb_session_touches(bb_plan_symbols changed, bb_plan_symbols follows) {
  return changed == BB_ALL_SYMBOLS || changed & follows;
}

/* Whether a bound array is copied: into the workspace before the first step, or out of it at the end. */
static inline bool bb_bound_is_staged(const bb_bound *bound) {
  return bound->strided || bound->shares;
}

/* Whether a tensor's array is the session's business. */
static inline bool bb_session_has(const bb_session *s, uint32_t tensor) {
  bb_tensor_role role = s->model->plan->tensor[tensor].role;
  return role != BB_TENSOR_CONSTANT && !s->model->plan->tensor[tensor].once;
}

/* Whether a step is one of those that this session runs, as its extents are now. */
static inline bool bb_session_takes(const bb_session *s, uint32_t step) {
  const bb_plan_step *p = &s->model->plan->step[step];
  return p->once == s->once && (s->once || (p->variants >> s->variant & 1));
}

/* --- room.c --- */
/* How much room an array's strides leave along an axis: 0 where they are no row-major ones. */
int64_t bb_room_of(const bb_bound *bound, uint32_t rank, uint32_t axis);
/* Whether an output's array begins with an input's, both ends of a cache: it grows in place. */
bool bb_session_grows(const bb_session *session, uint32_t output, uint32_t input);
/* The rooms among the symbols, once the extents are known. */
void bb_session_find_rooms(bb_session *session);

/* An input or output by index; fails with BB_ERROR_ARGUMENT where there is none. */
uint32_t bb_session_tensor(const bb_session *session, bb_side side, uint32_t index);
/* What a view says of the tensor's array, once it is one of the tensor's type and rank; else fails with
 * BB_ERROR_ARGUMENT. */
void bb_session_view(const bb_session *session, uint32_t tensor, const bb_tensor_view *view,
                     bb_bound *made);
/* How it lies, from its shape and strides: in a row, or with room, or otherwise. */
void bb_session_see(const bb_session *session, uint32_t tensor, bb_bound *made);
/* Whether it lies as the device takes it, in memory that it reaches; else fails with BB_ERROR_ARGUMENT. */
void bb_session_meet(const bb_session *session, uint32_t tensor, bb_bound *made);
/* It is what is bound from now on. */
void bb_session_take(bb_session *session, uint32_t tensor, const bb_bound *made);
/* Binds an input or output, or frees an output (NULL); fails the context. */
void bb_session_bind_tensor(bb_session *session, uint32_t tensor, const bb_tensor_view *view);

/* --- sharing.c --- */
/* Marks outputs that share memory with an input; true: one of them did not before, or no longer does. */
bool bb_session_note_sharing(bb_session *session);

/* --- layout.c --- */
/* Extents, memory, and what kernels are called with; fails the context. */
void bb_session_lay_out(bb_session *session);
/* Sizes of arrays, and scratch of kernels, as far as they follow from symbols that changed.  to_come: of a run whose arrays may
 * not be bound yet. */
void bb_session_size(bb_session *session, bb_plan_symbols changed, bool to_come);
/* After the step told an extent: what follows from it is sized and prepared again, within the arrays that were laid out for the
 * most that it can be. */
void bb_session_follow(bb_session *session, uint32_t step);
/* Fails where a step's results have no room for what their shapes say now. */
void bb_session_check_most(const bb_session *session, uint32_t step);
/* Takes a variant, and finds which steps use which arrays. */
void bb_session_take_variant(bb_session *session, uint32_t variant);

/* --- workspace.c --- */
/* Arranges the arrays of the workspace, once sizes are known. */
void bb_session_arrange(bb_session *session);
/* Memory for a run with the extents that `symbol` has, which smaller ones then use as well, by whatever variant. */
void bb_session_hold(bb_session *session);
/* Where the workspace begins: of the caller's memory, or of the session's, which grows. */
char *bb_session_workspace_memory(bb_session *session);

/* --- place.c --- */
/* Pointers, after bindings moved, and what launches follow from them. */
void bb_session_place(bb_session *session);
/* Pointers to outputs of the session's own that have grown since. */
void bb_session_place_own(bb_session *session);
/* Launches from a step on, up to one that tells an extent: those whose extents or arrays are other ones than they were prepared
 * for. */
void bb_session_prepare_launches(bb_session *session, uint32_t from);
/* The launch of a step that tells an extent, which is the most that it can be now. */
void bb_session_prepare_telling(bb_session *session, uint32_t step);
/* Runs all steps, once it is prepared and placed. */
void bb_session_steps(bb_session *session);
/* A step of another device's than the processor, by the lab: arrays go there and back (mirror.c). */
void bb_session_mirror(bb_session *session, uint32_t step);
/* The same step as the device gets it. */
bb_launch bb_session_launch(const bb_session *session, uint32_t step, void *const *argument);
/* The bytes of the arrays that a kernel works on, each once, and the operations in it, at the extents of the run; 0, 0: it is no
 * kernel. */
void bb_session_measure(const bb_session *session, uint32_t step, double *bytes,
                        double *operations);
/* Memory of the device's for so many bytes at least; what it held is lost where it has to grow. */
void bb_session_grow(bb_session *session, void **memory, size_t *have, size_t need);
#endif
