/* misc.cuh - operators that no block program has, on arrays as they lie: gathers, convolutions, what is moved or put behind
 * something, an element of the result to a thread at a time, or, where it is a sum, to a warp.  What is scattered goes to a copy of an array.
 *
 * An index from data that is out of range is counted from the other end; one that is none either way gives
 * its place, counted from 1, to `fault`, and reads element 0.
 */
#pragma once
#include "simt.cuh"

enum { BB_MISC_AXES = 8, BB_MISC_SPATIAL = 6, BB_MISC_LANES = 32, BB_MISC_SPAN = 4, BB_MISC_TOGETHER = 4, BB_MISC_NONE = -1 /* no place */ };

struct bb_misc_gather_call {
  const void *data, *index;
  void *out;
  int64_t *fault;
  int64_t total, count, extent, inner; /* of the result; indices; of the axis; elements at one */
};

/* What comes out is `rows` of `run` elements, each of `spans` that `width` threads side by side make, BB_MISC_SPAN each; and `again` times
 * that by the same indices, which a thread looks at once for `turns` of them. */
struct bb_misc_along_call {
  const void *data, *index;
  void *out;
  int64_t *fault;
  int64_t rows, run, spans, width, extent; /* extent: that indices count */
  int64_t data_step, index_step, step;     /* from one element of a run to the next; from one index to the next */
  int64_t again, turns, data_again, out_again;
  int64_t rank; /* of the rows' axes: */
  int64_t shape[BB_MISC_AXES], data_steps[BB_MISC_AXES], index_steps[BB_MISC_AXES];
};

/* Points: `depth` indices each, of the first axes behind those of a batch. */
struct bb_misc_points_call {
  const void *data, *index;
  void *out;
  int64_t *fault;
  int64_t total, per_batch, depth, inner; /* of the result; points of a batch; elements at one */
  int64_t extent[BB_MISC_AXES];           /* of the axes that are indexed */
};

/* What is put to points, or added there. */
struct bb_misc_scatter_call {
  const void *with, *index;
  void *out;
  int64_t *fault;
  int64_t total, depth, inner;  /* of what is put; indices of a point; elements at one */
  int64_t extent[BB_MISC_AXES]; /* of the axes that are indexed */
};

struct bb_misc_copy_call {
  const void *data;
  void *out;
  int64_t total, rank;
  int64_t extent[BB_MISC_AXES], from[BB_MISC_AXES], to[BB_MISC_AXES]; /* strides */
};

/* Rows behind those that are there: `length` says by batch how many there are with them, `most` how many the result has. */
struct bb_misc_append_call {
  const void *past, *rows; /* past: null: it is where the result is */
  const int64_t *length;
  void *out;
  int64_t *fault;
  int64_t batch, heads, most, fresh, width;  /* fresh: new rows; width: elements of a row */
  int64_t past_pitch, rows_pitch, out_pitch; /* rows from one head to the next */
};

struct bb_misc_window_call {
  const void *data, *weight, *bias; /* bias: null: none */
  void *out;
  int64_t total, groups, channels, maps, axes; /* channels, maps: of a group */
  int64_t in[BB_MISC_SPATIAL], places[BB_MISC_SPATIAL], kernel[BB_MISC_SPATIAL];
  int64_t stride[BB_MISC_SPATIAL], dilation[BB_MISC_SPATIAL], before[BB_MISC_SPATIAL];
};

#define BB_MISC_EACH(call)                                                                         \
  for (int64_t at = bb_block() * 256 + bb_thread(); at < (call).total; at += bb_blocks() * 256)

/* Negative ones count from the end.  W: has room for the extent. */
template <class I, class W> BB_DEVICE bool bb_misc_fits(I held, W extent) {
  return held < extent && held >= -extent;
}
template <class I, class W> BB_DEVICE W bb_misc_from(I held, W extent) {
  return (W)held + (held < 0 ? extent : 0);
}

template <class I> BB_DEVICE int64_t bb_misc_index(I held, int64_t extent, int64_t place, int64_t *fault) {
  if (bb_misc_fits(held, extent)) return bb_misc_from(held, extent);
  *fault = place + 1;
  return 0;
}

BB_DEVICE int64_t bb_misc_size(int64_t step) {
  return step < 0 ? -step : step;
}

/* The last place of several axes that `rest` counts, and what it counts of those before. */
BB_DEVICE int64_t bb_misc_last(int64_t *rest, int64_t extent) {
  const int64_t all = *rest;
  if (((uint64_t)all | (uint64_t)extent) >> 32) {
    *rest = all / extent;
    return all % extent;
  }
  const uint32_t before = (uint32_t)all / (uint32_t)extent; /* a third of a long division */
  *rest = before;
  return (uint32_t)all - before * (uint32_t)extent;
}

/* How many elements that lie side by side move at once: as many as 16 bytes hold, where runs of them begin and end at such. */
template <class T> BB_DEVICE int64_t bb_misc_together(const void *data, const void *out, int64_t run) {
  const bool whole = ((uint64_t)data | (uint64_t)out | (uint64_t)run * sizeof(T)) % 16 == 0;
  return whole ? 16 / (int64_t)sizeof(T) : 1;
}

/* Elements are moved as words of their size. */
template <class T, class I> BB_DEVICE void bb_misc_gather_words(const bb_misc_gather_call &call) {
  const T *data = (const T *)call.data;
  const I *index = (const I *)call.index;
  T *out = (T *)call.out;
  if (call.extent == 0) return;
  BB_MISC_EACH(call) {
    int64_t outer = at, inner = bb_misc_last(&outer, call.inner);
    int64_t place = bb_misc_last(&outer, call.count);
    int64_t from = bb_misc_index(index[place], call.extent, place, call.fault);
    out[at] = data[(outer * call.extent + from) * call.inner + inner];
  }
}

template <class T, class I> BB_DEVICE void bb_misc_gather(const bb_misc_gather_call &call) {
  const int64_t together = bb_misc_together<T>(call.data, call.out, call.inner);
  if (together == 1) return bb_misc_gather_words<T, I>(call);
  bb_misc_gather_call by = call;
  by.total /= together, by.inner /= together;
  bb_misc_gather_words<bb_16_bytes, I>(by);
}

/* Elements of RUNS runs that go by the same indices.  All are loaded before any is stored: a compiler cannot know that what is stored is nowhere
 * that others are loaded from. */
template <bool ENDS, int RUNS, class T, class W>
BB_DEVICE void bb_misc_along_move(const bb_misc_along_call &call, const T *data, const W (&from)[BB_MISC_SPAN], T *out, W first, W width, W run) {
  T held[RUNS][BB_MISC_SPAN];
  BB_UNROLL for (int g = 0; g < RUNS; g++)
    BB_UNROLL for (int e = 0; e < BB_MISC_SPAN; e++) held[g][e] = data[g * call.data_again + from[e]];
  BB_UNROLL for (int g = 0; g < RUNS; g++)
    BB_UNROLL for (int e = 0; e < BB_MISC_SPAN; e++)
      if (!ENDS || first + e * width < run) out[g * call.out_again + first + e * width] = held[g][e];
}

/* Elements of `turns` runs by one thread; ENDS: some of them may lie beyond one.  Indices first, then what they name: loads of a thread
 * wait for memory together.  W: holds every offset within a run. */
template <bool AGAIN, bool ENDS, class T, class I, class W>
BB_DEVICE void bb_misc_along_span(const bb_misc_along_call &call, const T *data, const I *index, T *out, W first, W width, W run, int64_t turns) {
  const W extent = (W)call.extent, data_step = (W)call.data_step, index_step = (W)call.index_step, step = (W)call.step;
  I place[BB_MISC_SPAN];
  W from[BB_MISC_SPAN];
  bool all = true;
  BB_UNROLL for (int e = 0; e < BB_MISC_SPAN; e++) {
    const W i = first + e * width;
    place[e] = ENDS && i >= run ? (I)0 : index[i * index_step];
  }
  BB_UNROLL for (int e = 0; e < BB_MISC_SPAN; e++) {
    const W i = ENDS && first + e * width >= run ? 0 : first + e * width;
    const bool fits = bb_misc_fits(place[e], extent);
    all = all && fits;
    from[e] = i * data_step + (fits ? bb_misc_from(place[e], extent) : 0) * step;
  }
  const T *data_now = data;
  T *out_now = out;
  int64_t turn = 0;
  if (!AGAIN) bb_misc_along_move<ENDS, 1>(call, data, from, out, first, width, run);
  BB_ROLLED for (; AGAIN && turn + BB_MISC_TOGETHER <= turns; turn += BB_MISC_TOGETHER) {
    bb_misc_along_move<ENDS, BB_MISC_TOGETHER>(call, data_now, from, out_now, first, width, run);
    data_now += BB_MISC_TOGETHER * call.data_again, out_now += BB_MISC_TOGETHER * call.out_again;
  }
  BB_ROLLED for (; AGAIN && turn < turns; turn++, data_now += call.data_again, out_now += call.out_again)
    bb_misc_along_move<ENDS, 1>(call, data_now, from, out_now, first, width, run);
  for (int e = 0; !all && e < BB_MISC_SPAN; e++)
    if (!ENDS || first + e * width < run)
      bb_misc_index(index[(first + e * width) * index_step], call.extent, out - (T *)call.out + first + e * width, call.fault);
}

/* AGAIN: indices are for several runs, call.again of them; else for one, and a kernel needs half the registers. */
template <bool AGAIN, class T, class I, class W> BB_DEVICE void bb_misc_along_runs(const bb_misc_along_call &call) {
  const int width = (int)call.width, beside = 256 / width;
  const W run = (W)call.run;
  const int64_t stride = bb_blocks() * beside, groups = AGAIN ? (call.again + call.turns - 1) / call.turns : 1;
  for (int64_t at = bb_block() * beside + bb_thread() / width; at < call.rows * call.spans * groups; at += stride) {
    int64_t row = at;
    const W first = (W)(bb_misc_last(&row, call.spans) * width * BB_MISC_SPAN) + bb_thread() % width;
    int64_t rest = row, from = 0, named = 0;
    for (int64_t axis = call.rank - 1; axis >= 0; axis--) {
      const int64_t here = AGAIN || axis ? bb_misc_last(&rest, call.shape[axis]) : rest;
      from += here * call.data_steps[axis], named += here * call.index_steps[axis];
    }
    const int64_t group = AGAIN ? rest : 0, done = group * call.turns, left = call.again - done;
    const int64_t turns = AGAIN ? (left < call.turns ? left : call.turns) : 1;
    const T *data = (const T *)call.data + from + done * call.data_again;
    const I *index = (const I *)call.index + named;
    T *out = (T *)call.out + (row - group * call.rows) * call.run + done * call.out_again;
    if (first + (BB_MISC_SPAN - 1) * width < run)
      bb_misc_along_span<AGAIN, false>(call, data, index, out, first, (W)width, run, turns);
    else
      bb_misc_along_span<AGAIN, true>(call, data, index, out, first, (W)width, run, turns);
  }
}

template <class T, class I> BB_DEVICE void bb_misc_along(const bb_misc_along_call &call) {
  const int64_t padded = call.spans * call.width * BB_MISC_SPAN; /* threads may be beyond a run's end */
  const int64_t far = padded * (1 + bb_misc_size(call.data_step) + bb_misc_size(call.index_step)) +
                      call.extent * (1 + bb_misc_size(call.step));
  if (far >> 31)
    bb_misc_along_runs<false, T, I, int64_t>(call);
  else
    bb_misc_along_runs<false, T, I, int32_t>(call);
}
/* Where every offset within a run fits in 32 bits. */
template <class T, class I> BB_DEVICE void bb_misc_again(const bb_misc_along_call &call) {
  bb_misc_along_runs<true, T, I, int32_t>(call);
}

template <class T, class I> BB_DEVICE void bb_misc_points_words(const bb_misc_points_call &call) {
  const T *data = (const T *)call.data;
  const I *index = (const I *)call.index;
  T *out = (T *)call.out;
  BB_MISC_EACH(call) {
    int64_t inner = at % call.inner, point = at / call.inner, from = point / call.per_batch;
    for (int64_t d = 0; d < call.depth; d++) {
      int64_t place = point * call.depth + d;
      from = from * call.extent[d] + bb_misc_index(index[place], call.extent[d], place, call.fault);
    }
    out[at] = data[from * call.inner + inner];
  }
}

template <class T, class I> BB_DEVICE void bb_misc_points(const bb_misc_points_call &call) {
  const int64_t together = bb_misc_together<T>(call.data, call.out, call.inner);
  if (together == 1) return bb_misc_points_words<T, I>(call);
  bb_misc_points_call by = call;
  by.total /= together, by.inner /= together;
  bb_misc_points_words<bb_16_bytes, I>(by);
}

/* The element that a point begins with; BB_MISC_NONE: an index is out of range. */
template <class I>
BB_DEVICE int64_t bb_misc_point(const bb_misc_scatter_call &call, const I *index, int64_t point) {
  int64_t to = 0;
  for (int64_t d = 0; d < call.depth; d++) {
    int64_t place = point * call.depth + d, here = (int64_t)index[place];
    if (here < 0) here += call.extent[d];
    if (here < 0 || here >= call.extent[d]) {
      *call.fault = place + 1;
      return BB_MISC_NONE;
    }
    to = to * call.extent[d] + here;
  }
  return to * call.inner;
}

/* Of a point that is named twice either is put. */
template <class T, class I> BB_DEVICE void bb_misc_scatter_words(const bb_misc_scatter_call &call) {
  const T *with = (const T *)call.with;
  T *out = (T *)call.out;
  BB_MISC_EACH(call) {
    int64_t point = at, inner = bb_misc_last(&point, call.inner);
    int64_t to = bb_misc_point(call, (const I *)call.index, point);
    if (to != BB_MISC_NONE) out[to + inner] = with[at];
  }
}

template <class T, class I> BB_DEVICE void bb_misc_scatter(const bb_misc_scatter_call &call) {
  const int64_t together = bb_misc_together<T>(call.with, call.out, call.inner);
  if (together == 1) return bb_misc_scatter_words<T, I>(call);
  bb_misc_scatter_call by = call;
  by.total /= together, by.inner /= together;
  bb_misc_scatter_words<bb_16_bytes, I>(by);
}

/* Adds to an element that others may add to meanwhile.  W: a word of its size. */
template <class W, class T> BB_DEVICE void bb_misc_add_by(T *to, float more) {
  W old = *(W *)to, was;
  do {
    W now = was = old;
    bb_put((T *)&now, bb_get<float>((T *)&now) + more);
    old = bb_exchange_if((W *)to, was, now);
  } while (old != was);
}
BB_DEVICE void bb_misc_add(float *to, float more) {
  bb_misc_add_by<uint32_t>(to, more);
}
template <class T> BB_DEVICE void bb_misc_add(T *to, float more) {
  bb_misc_add_by<uint16_t>(to, more);
}

template <class T, class I> BB_DEVICE void bb_misc_scatter_add(const bb_misc_scatter_call &call) {
  const T *with = (const T *)call.with;
  T *out = (T *)call.out;
  BB_MISC_EACH(call) {
    int64_t point = at, inner = bb_misc_last(&point, call.inner);
    int64_t to = bb_misc_point(call, (const I *)call.index, point);
    if (to != BB_MISC_NONE) bb_misc_add(out + to + inner, bb_get<float>(with + at));
  }
}

/* I: a type that counts the elements. */
template <class T, class I> BB_DEVICE void bb_misc_copy_by(const bb_misc_copy_call &call) {
  const T *data = (const T *)call.data;
  T *out = (T *)call.out;
  BB_MISC_EACH(call) {
    I rest = (I)at;
    int64_t from = 0, to = 0;
    /* Axes are few: unrolled as compilers like it, this loop takes each model's compilation a quarter of a second more. */
    BB_ROLLED
    for (int64_t axis = call.rank - 1; axis >= 0; axis--) {
      I here = rest % (I)call.extent[axis];
      rest /= (I)call.extent[axis];
      from += here * call.from[axis];
      to += here * call.to[axis];
    }
    out[to] = data[from];
  }
}

template <class T> BB_DEVICE void bb_misc_copy(const bb_misc_copy_call &call) {
  if (call.total < INT32_MAX)
    bb_misc_copy_by<T, uint32_t>(call);
  else
    bb_misc_copy_by<T, uint64_t>(call);
}

/* Where the rows of a result begin that it does not have already; BB_MISC_NONE: `length` says nonsense. */
BB_DEVICE int64_t bb_misc_kept(const bb_misc_append_call &call, int64_t batch) {
  int64_t kept = call.length[batch] - call.fresh;
  return kept >= 0 && kept + call.fresh <= call.most ? kept : (int64_t)BB_MISC_NONE;
}

/* A batch whose length is none stays as it is, and gives its place, counted from 1, to `fault`. */
template <class T> BB_DEVICE void bb_misc_append(const bb_misc_append_call &call) {
  const T *past = (const T *)call.past, *rows = (const T *)call.rows;
  T *out = (T *)call.out;
  int64_t least = past ? 0 : call.most, each = call.batch * call.heads * call.width;
  for (int64_t b = 0; b < call.batch; b++) {
    int64_t kept = bb_misc_kept(call, b);
    if (kept == BB_MISC_NONE) *call.fault = b + 1;
    if (kept != BB_MISC_NONE && kept < least) least = kept;
  }
  for (int64_t at = bb_block() * 256 + bb_thread(); at < (call.most - least) * each;
       at += bb_blocks() * 256) {
    int64_t col = at % call.width, head = at / call.width % (call.batch * call.heads);
    int64_t kept = bb_misc_kept(call, head / call.heads);
    int64_t row = at / each + (past || kept == BB_MISC_NONE ? 0 : kept);
    if (kept == BB_MISC_NONE || row >= call.most) continue;
    T *to = out + (head * call.out_pitch + row) * call.width + col;
    if (row < kept)
      *to = past[(head * call.past_pitch + row) * call.width + col];
    else if (row < kept + call.fresh)
      *to = rows[(head * call.rows_pitch + row - kept) * call.width + col];
    else
      *to = T();
  }
}

/* What lane `lane` adds to an element of a convolution: every 32nd product.  `place`: of the element. */
template <class T, class R>
BB_DEVICE R bb_misc_taps(const bb_misc_window_call &call, const int64_t *place, int64_t taps,
                         const T *data, const T *weight, int64_t inputs, int lane) {
  R sum = 0;
  for (int64_t term = lane; term < taps * call.channels; term += BB_MISC_LANES) {
    int64_t left = term % taps, offset = 0, step = 1;
    bool inside = true;
    for (int64_t i = call.axes - 1; i >= 0; i--) {
      int64_t x =
          place[i] * call.stride[i] - call.before[i] + left % call.kernel[i] * call.dilation[i];
      left /= call.kernel[i];
      inside = inside && x >= 0 && x < call.in[i];
      offset += x * step;
      step *= call.in[i];
    }
    if (inside) sum += bb_get<R>(data + term / taps * inputs + offset) * bb_get<R>(weight + term);
  }
  return sum;
}

/* T: elements in memory; R: sums.  An element to the 32 threads of a warp. */
template <class T, class R> BB_DEVICE void bb_misc_convolve(const bb_misc_window_call &call) {
  const T *data = (const T *)call.data, *weight = (const T *)call.weight;
  const T *bias = (const T *)call.bias;
  const int warp = bb_thread() / BB_MISC_LANES, lane = bb_thread() % BB_MISC_LANES;
  const int64_t step = bb_blocks() * (256 / BB_MISC_LANES);
  for (int64_t first = bb_block() * (256 / BB_MISC_LANES); first < call.total; first += step) {
    int64_t at = first + warp, rest = at, place[BB_MISC_SPATIAL], taps = 1, inputs = 1;
    for (int64_t i = call.axes - 1; i >= 0; i--) {
      place[i] = rest % call.places[i];
      rest /= call.places[i];
      taps *= call.kernel[i];
      inputs *= call.in[i];
    }
    int64_t map = rest % (call.groups * call.maps), sample = rest / (call.groups * call.maps);
    int64_t channel = (sample * call.groups + map / call.maps) * call.channels;
    R sum = 0;
    if (at < call.total)
      sum = bb_misc_taps<T, R>(call, place, taps, data + channel * inputs,
                               weight + map * call.channels * taps, inputs, lane);
    for (int half = BB_MISC_LANES / 2; half > 0; half /= 2) sum += bb_shuffle(sum, half);
    if (at >= call.total || lane) continue;
    bb_put(((T *)call.out) + at, bias ? sum + bb_get<R>(bias + map) : sum);
  }
}
