/* stream.c - a model on a GPU, in a stream of the caller's: its arrays lie in the device's memory and stay there.
 *
 *   cc stream.c $(pkg-config --cflags --libs blockbuster) -lcuda -lm -o stream
 *   ./stream [DEVICE]                                             cuda, or cuda:1 ...
 *
 * Each request is a copy, a run and a copy in one stream, and waits for nothing in between.  The model compiles when
 * it is opened; kernels are kept on disk for the next time.
 */
#include <blockbuster.h>

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

enum { ROWS = 24, COLS = 100, REQUESTS = 10 };
static const size_t bytes = ROWS * COLS * sizeof(float);

/* Each row's shares of its sum. */
static const char text[] = "blockbuster 1\n"
                           "program shares\n"
                           "dim M, N\n"
                           "input X : f32[M,N]\n"
                           "weights = elementwise exp(X)\n"
                           "sum = reduce sum(weights, axis=-1, keep)\n"
                           "output Y = elementwise weights/sum\n";

typedef struct server {
  bb_session *session;
  CUdeviceptr x, y;
  CUstream stream;
} server;

static bb_status compile(bb_context *context, const char *device, bb_model **model) {
  bb_compile_options options = {.version = BB_VERSION, .device = device};
  bb_program *program;
  bb_status status = bb_program_parse(context, "shares", text, strlen(text), &program);
  if (status != BB_OK) return status;
  status = bb_program_compile(program, &options, model);
  bb_program_destroy(program);
  return status;
}

/* The arrays stay where they are: bound once, they serve all requests. */
static bb_status bind_arrays(const server *s) {
  int64_t shape[2] = {ROWS, COLS};
  bb_tensor_view view = {
      .dtype = BB_F32, .rank = 2, .shape = shape, .data = (void *)(uintptr_t)s->x};
  bb_status status = bb_session_bind(s->session, BB_INPUT, 0, &view);
  view.data = (void *)(uintptr_t)s->y;
  return status == BB_OK ? bb_session_bind(s->session, BB_OUTPUT, 0, &view) : status;
}

static bb_status answer(const server *s, const float *x, float *y) {
  if (cuMemcpyHtoDAsync(s->x, x, bytes, s->stream) != 0) return BB_ERROR_IO;
  bb_status status = bb_session_run(s->session, s->stream);
  if (status != BB_OK) return status;
  if (cuMemcpyDtoHAsync(y, s->y, bytes, s->stream) != 0) return BB_ERROR_IO;
  return cuStreamSynchronize(s->stream) == 0 ? BB_OK : BB_ERROR_IO;
}

static bb_status serve(const server *s) {
  static float x[ROWS * COLS], y[ROWS * COLS];
  bb_status status = bind_arrays(s);
  for (int r = 0; r < REQUESTS && status == BB_OK; r++) {
    for (int i = 0; i < ROWS * COLS; i++) x[i] = (float)((i * 7 + r * 13) % 29) / 8;
    status = answer(s, x, y);
    for (int row = 0; row < ROWS && status == BB_OK; row++) {
      double sum = 0;
      for (int i = 0; i < COLS; i++) sum += (double)y[row * COLS + i];
      if (fabs(sum - 1) > 1e-5) status = BB_ERROR_MISMATCH;
    }
  }
  return status;
}

/* The model's device and the caller's are one: both use its primary context. */
static bb_status use_device(bb_context *context, bb_model *model, int number) {
  server s = {0};
  CUdevice device;
  CUcontext primary;
  if (cuInit(0) != 0 || cuDeviceGet(&device, number) != 0 ||
      cuDevicePrimaryCtxRetain(&primary, device) != 0 || cuCtxPushCurrent(primary) != 0 ||
      cuMemAlloc(&s.x, bytes) != 0 || cuMemAlloc(&s.y, bytes) != 0 ||
      cuStreamCreate(&s.stream, 1) != 0)
    return BB_ERROR_UNSUPPORTED;
  bb_status status = bb_session_create(context, model, NULL, &s.session);
  if (status == BB_OK) status = serve(&s);
  bb_session_destroy(s.session);
  cuStreamDestroy(s.stream);
  cuMemFree(s.x);
  cuMemFree(s.y);
  cuDevicePrimaryCtxRelease(device);
  return status;
}

int main(int argc, char **argv) {
  const char *device = argc > 1 ? argv[1] : "cuda", *colon = strchr(device, ':');
  bb_context *context;
  bb_model *model = NULL;
  if (bb_context_create(NULL, &context) != BB_OK) return 1;
  bb_status status = compile(context, device, &model);
  if (status == BB_OK) status = use_device(context, model, colon ? atoi(colon + 1) : 0);
  if (status == BB_OK) printf("%d requests in a stream on %s\n", REQUESTS, device);
  if (status != BB_OK)
    fprintf(stderr, "%s: %s\n", bb_status_text(status), bb_context_message(context));
  bb_model_release(model);
  bb_context_destroy(context);
  return status != BB_OK;
}
