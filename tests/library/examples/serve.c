/* serve.c - runs a compiled model with the small library: what a runtime's back end looks like.
 *
 *   blockbuster compile model.onnx -o DIR
 *   cc serve.c $(pkg-config --cflags --libs blockbuster-rt) -lpthread -o serve
 *   ./serve DIR THREADS EXTENT=N...
 *
 * The model is loaded once; each thread has a context and a session of its own, whose memory is allocated before
 * the first request and never again.  Inputs here are all ones; what each thread answers is the same to
 * the bit.
 */
#include <blockbuster_rt.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_THREADS = 16, MOST_ARRAYS = 16, MOST_EXTENTS = 16, MOST_AXES = 16, REQUESTS = 10 };

static const size_t element_bytes[] = {[BB_F64] = 8, [BB_F32] = 4, [BB_F16] = 2, [BB_BF16] = 2,
                                       [BB_I64] = 8, [BB_I32] = 4, [BB_BOOL] = 1};

typedef struct worker {
  bb_model *model;
  uint32_t extents;
  bb_setting extent[MOST_EXTENTS];
  void *output; /* the first output of the last request */
  size_t bytes;
  const char *error; /* NULL: all went well */
} worker;

static void log_message(void *user, bb_log_level level, const char *message) {
  (void)user;
  if (level <= BB_LOG_WARNING) fprintf(stderr, "%s\n", message);
}

/* All ones, as far as the type goes. */
static void *ones(bb_dtype dtype, size_t count) {
  char *data = malloc(count * element_bytes[dtype] + 1);
  for (size_t i = 0; data && i < count; i++) {
    if (dtype == BB_F64) ((double *)data)[i] = 1;
    if (dtype == BB_F32) ((float *)data)[i] = 1;
    if (dtype == BB_F16) ((uint16_t *)data)[i] = 0x3c00;
    if (dtype == BB_BF16) ((uint16_t *)data)[i] = 0x3f80;
    if (dtype == BB_I64) ((int64_t *)data)[i] = 1;
    if (dtype == BB_I32) ((int32_t *)data)[i] = 1;
    if (dtype == BB_BOOL) data[i] = 1;
  }
  return data;
}

static size_t count_of(uint32_t rank, const int64_t *shape) {
  size_t count = 1;
  for (uint32_t i = 0; i < rank; i++) count *= (size_t)shape[i];
  return count;
}

/* Every input: its shape follows from the extents of run time, and nothing is compiled for it. */
static bb_status bind_inputs(const worker *w, bb_context *context, bb_session *session,
                             void **memory) {
  bb_tensor_info info;
  for (uint32_t i = 0; i < MOST_ARRAYS && bb_model_get_tensor(w->model, BB_INPUT, i, &info); i++) {
    int64_t shape[MOST_AXES];
    bb_status status =
        bb_model_get_shape(context, w->model, BB_INPUT, i, w->extents, w->extent, shape);
    if (status != BB_OK) return status;
    memory[i] = ones(info.dtype, count_of(info.rank, shape));
    if (!memory[i]) return BB_ERROR_MEMORY;
    bb_tensor_view view = {
        .dtype = info.dtype, .rank = info.rank, .shape = shape, .data = memory[i]};
    status = bb_session_bind(session, BB_INPUT, i, &view);
    if (status != BB_OK) return status;
  }
  return BB_OK;
}

static bb_status answer(worker *w, bb_context *context, bb_session *session, void **memory) {
  bb_tensor_view view;
  bb_status status = bind_inputs(w, context, session, memory);
  for (int i = 0; i < REQUESTS && status == BB_OK; i++) status = bb_session_run(session, NULL);
  if (status == BB_OK) status = bb_session_get(session, BB_OUTPUT, 0, &view);
  if (status != BB_OK) return status;
  w->bytes = count_of(view.rank, view.shape) * element_bytes[view.dtype];
  w->output = malloc(w->bytes + 1);
  if (!w->output) return BB_ERROR_MEMORY;
  memcpy(w->output, view.data, w->bytes);
  return BB_OK;
}

/* One thread for each session: parallel are the requests, not what one of them does. */
static void *work(void *argument) {
  worker *w = argument;
  bb_context_options options = {.version = BB_VERSION, .log = log_message};
  bb_session_options alone = {.version = BB_VERSION, .threads = 1};
  bb_context *context;
  bb_session *session = NULL;
  void *memory[MOST_ARRAYS] = {0};
  if (bb_context_create(&options, &context) != BB_OK) {
    w->error = "out of memory";
    return NULL;
  }
  bb_status status = bb_session_create(context, w->model, &alone, &session);
  if (status == BB_OK) status = answer(w, context, session, memory);
  if (status != BB_OK) {
    w->error = bb_status_text(status);
    fprintf(stderr, "%s\n", bb_context_message(context));
  }
  bb_session_destroy(session);
  bb_context_destroy(context);
  for (int i = 0; i < MOST_ARRAYS; i++) free(memory[i]);
  return NULL;
}

static int serve(bb_model *model, int threads, uint32_t extents, const bb_setting *extent) {
  static worker all[MOST_THREADS];
  pthread_t thread[MOST_THREADS];
  int bad = 0, started = 0;
  for (; started < threads; started++) {
    all[started] = (worker){.model = model, .extents = extents};
    memcpy(all[started].extent, extent, extents * sizeof *extent);
    if (pthread_create(&thread[started], NULL, work, &all[started]) != 0) break;
  }
  for (int i = 0; i < started; i++) pthread_join(thread[i], NULL);
  for (int i = 0; i < started; i++)
    bad |= all[i].error || all[i].bytes != all[0].bytes ||
           memcmp(all[i].output, all[0].output, all[0].bytes) != 0;
  if (!bad) printf("%d threads agree on %zu bytes\n", started, all[0].bytes);
  for (int i = 0; i < started; i++) free(all[i].output);
  return bad || started < threads;
}

int main(int argc, char **argv) {
  bb_setting extent[MOST_EXTENTS];
  uint32_t extents = 0;
  int threads = argc > 2 ? atoi(argv[2]) : 0;
  if (threads < 1 || threads > MOST_THREADS || argc - 3 > MOST_EXTENTS) {
    fprintf(stderr, "usage: serve DIR THREADS EXTENT=N...\n");
    return 2;
  }
  for (int i = 3; i < argc; i++) {
    char *equals = strchr(argv[i], '=');
    if (!equals) return 2;
    *equals = 0;
    extent[extents++] = (bb_setting){argv[i], strtoll(equals + 1, NULL, 10)};
  }
  bb_context_options options = {.version = BB_VERSION, .log = log_message};
  bb_context *context;
  bb_model *model;
  if (bb_context_create(&options, &context) != BB_OK) return 1;
  if (bb_model_load(context, argv[1], &model) != BB_OK) {
    fprintf(stderr, "%s\n", bb_context_message(context));
    bb_context_destroy(context);
    return 1;
  }
  bb_context_destroy(context); /* a model outlives it */
  int code = serve(model, threads, extents, extent);
  bb_model_release(model);
  return code;
}
