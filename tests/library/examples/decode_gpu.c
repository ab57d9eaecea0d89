/* decode_gpu.c - a compiled folder on a GPU, where there is no compiler: a prompt, then token after token, on caches that
 * grow in place in the device's memory, in a stream of the caller's.
 *
 *   blockbuster compile decoder.bb --device cuda -o decoder      here, or anywhere with --target sm_90a
 *   cc decode_gpu.c $(pkg-config --cflags --libs blockbuster-rt) -lcuda -lm -o decode_gpu && ./decode_gpu decoder [cuda:1]
 *
 * Each run appends rows to the caches of keys and values and weighs all rows that are there.  How many there are is an
 * extent of run time: bb_session_set_caches() says it, and nothing is compiled, moved or allocated from token to token.
 */
#include <blockbuster_rt.h>

#if __has_include(<cuda.h>)
#include <cuda.h>
#else /* what is used of it */
typedef unsigned long long CUdeviceptr;
typedef void *CUcontext, *CUstream;
typedef int CUdevice, CUresult;
CUresult cuInit(unsigned flags);
CUresult cuDeviceGet(CUdevice *device, int number);
CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device);
CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device);
CUresult cuCtxPushCurrent_v2(CUcontext context);
CUresult cuMemAlloc_v2(CUdeviceptr *memory, size_t bytes);
CUresult cuMemFree_v2(CUdeviceptr memory);
CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t bytes, CUstream stream);
CUresult cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t bytes, CUstream stream);
CUresult cuStreamCreate(CUstream *stream, unsigned flags);
CUresult cuStreamDestroy_v2(CUstream stream);
CUresult cuStreamSynchronize(CUstream stream);
#define cuDevicePrimaryCtxRelease cuDevicePrimaryCtxRelease_v2
#define cuCtxPushCurrent cuCtxPushCurrent_v2
#define cuMemAlloc cuMemAlloc_v2
#define cuMemFree cuMemFree_v2
#define cuMemcpyHtoDAsync cuMemcpyHtoDAsync_v2
#define cuMemcpyDtoHAsync cuMemcpyDtoHAsync_v2
#define cuStreamDestroy cuStreamDestroy_v2
#endif

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROOM = 48, WIDTH = 16, PROMPT = 8, TOKENS = 40, QUERY = 0, KEY, VALUE, INPUTS };
static const size_t row_bytes = WIDTH * sizeof(float);

typedef struct decoder {
  bb_context *context;
  bb_model *model;
  bb_session *session;
  CUstream stream;
  CUdeviceptr in[INPUTS], y, cache[2];
} decoder;

/* Element c of row `at` of q, k or v. */
static float drawn(int which, int64_t at, int64_t c) {
  uint32_t i = (uint32_t)(at * 100 + c + 16 * which);
  return (float)((i * 2654435761u >> 8) % 1000) / 500 - 1;
}

static bb_status bind(const decoder *d, bb_side side, const char *name, int64_t rows,
                      CUdeviceptr at) {
  uint32_t index;
  if (!bb_model_find_tensor(d->model, side, name, &index)) return BB_ERROR_ARGUMENT;
  bb_tensor_view view = {
      .dtype = BB_F32, .rank = 2, .shape = (int64_t[]){rows, WIDTH}, .data = (void *)(uintptr_t)at};
  return bb_session_bind(d->session, side, index, &view);
}

/* Once: they stay where they are. */
static bb_status bind_caches(const decoder *d) {
  bb_status status = BB_OK;
  for (uint32_t c = 0; c < 2 && !status; c++) {
    bb_tensor_view room = {.dtype = BB_F32,
                           .rank = 2,
                           .shape = (int64_t[]){ROOM, WIDTH},
                           .data = (void *)(uintptr_t)d->cache[c]};
    status = bb_session_bind_cache(d->session, c, &room, 0);
  }
  return status;
}

/* What a run over `rows` new rows works on, `used` being there already. */
static bb_status bind_rows(const decoder *d, int64_t used, int64_t rows) {
  bb_status status = bind(d, BB_INPUT, "q", rows, d->in[QUERY]);
  if (!status) status = bind(d, BB_INPUT, "k", rows, d->in[KEY]);
  if (!status) status = bind(d, BB_INPUT, "v", rows, d->in[VALUE]);
  if (!status) status = bind(d, BB_OUTPUT, "y", rows, d->y);
  return status ? status : bb_session_set_caches(d->session, used);
}

/* By the definition: all rows up to `at`, weighed. */
static int check(int64_t at, const float *y) {
  double weight[TOKENS], sum = 0;
  for (int64_t r = 0; r <= at; r++) {
    double dot = 0;
    for (int c = 0; c < WIDTH; c++) dot += (double)drawn(QUERY, at, c) * (double)drawn(KEY, r, c);
    sum += weight[r] = exp(dot / 4);
  }
  for (int c = 0; c < WIDTH; c++) {
    double want = 0;
    for (int64_t r = 0; r <= at; r++) want += weight[r] / sum * (double)drawn(VALUE, r, c);
    if (!(fabs((double)y[c] - want) < 1e-5)) return 0;
  }
  return 1;
}

/* Rows in, a run, rows out: all in the stream. */
static bb_status step(const decoder *d, int64_t at, int64_t rows) {
  float held[PROMPT * WIDTH];
  for (int i = 0; i < INPUTS; i++) {
    for (int64_t e = 0; e < rows * WIDTH; e++) held[e] = drawn(i, at + e / WIDTH, e % WIDTH);
    if (cuMemcpyHtoDAsync(d->in[i], held, (size_t)rows * row_bytes, d->stream)) return BB_ERROR_IO;
  }
  bb_status status = bind_rows(d, at, rows);
  if (!status) status = bb_session_run(d->session, d->stream);
  if (status) return status;
  if (cuMemcpyDtoHAsync(held, d->y, (size_t)rows * row_bytes, d->stream)) return BB_ERROR_IO;
  if (cuStreamSynchronize(d->stream)) return BB_ERROR_IO;
  for (int64_t r = 0; r < rows; r++)
    if (!check(at + r, held + r * WIDTH)) return BB_ERROR_MISMATCH;
  return BB_OK;
}

/* Memory for the longest run is taken ahead. */
static bb_status decode(const decoder *d) {
  bb_setting longest[] = {{"P", TOKENS}, {"S", PROMPT}};
  bb_status status = bind_caches(d);
  if (!status) status = bind_rows(d, 0, PROMPT);
  if (!status) status = bb_session_reserve(d->session, 2, longest);
  if (!status) status = step(d, 0, PROMPT);
  for (int64_t at = PROMPT; at < TOKENS && !status; at++) status = step(d, at, 1);
  return status;
}

static CUresult take_memory(decoder *d) {
  CUresult code = cuStreamCreate(&d->stream, 1);
  for (int i = 0; i < INPUTS && !code; i++) code = cuMemAlloc(&d->in[i], PROMPT * row_bytes);
  for (int i = 0; i < 2 && !code; i++) code = cuMemAlloc(&d->cache[i], ROOM * row_bytes);
  return code ? code : cuMemAlloc(&d->y, PROMPT * row_bytes);
}

static void give_memory(const decoder *d) {
  for (int i = 0; i < INPUTS; i++) cuMemFree(d->in[i]);
  for (int i = 0; i < 2; i++) cuMemFree(d->cache[i]);
  cuMemFree(d->y);
  cuStreamDestroy(d->stream);
}

int main(int argc, char **argv) {
  const char *name = argc > 2 ? argv[2] : "cuda", *colon = strchr(name, ':');
  decoder d = {0};
  CUdevice device;
  CUcontext primary; /* the model's device and the caller's are one */
  if (argc < 2 || cuInit(0) || cuDeviceGet(&device, colon ? atoi(colon + 1) : 0) ||
      cuDevicePrimaryCtxRetain(&primary, device) || cuCtxPushCurrent(primary) || take_memory(&d) ||
      bb_context_create(NULL, &d.context) != BB_OK)
    return 2;
  bb_status status = bb_model_load_on(d.context, argv[1], name, &d.model);
  if (!status) status = bb_session_create(d.context, d.model, NULL, &d.session);
  if (!status) status = decode(&d);
  if (!status) printf("%d tokens on %s, the caches in place\n", TOKENS, name);
  if (status) fprintf(stderr, "%s: %s\n", bb_status_text(status), bb_context_message(d.context));
  bb_session_destroy(d.session);
  bb_model_release(d.model);
  bb_context_destroy(d.context);
  give_memory(&d);
  cuDevicePrimaryCtxRelease(device);
  return status != BB_OK;
}
