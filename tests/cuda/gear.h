/* gear.h - what tests of sessions on GPUs share: the device as a program that uses CUDA has it, a model, numbers for it and
 * what it is to give, arrays on the device.
 *
 * BLOCKBUSTER_CUDA names the driver; device memory is out of the program's reach (fake_memory.c).  With a real driver the
 * same runs on a real device, but for what only the tests' own can do.
 */
#ifndef GEAR_H
#define GEAR_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <blockbuster.h>
#include <cmocka.h>

enum { TABLE = 6, WIDTH = 8, TOP = 4, MOST = 40 };

/* A row of a table for each index, and what is made of it; `look_up` has a kernel on the device. */
#define PICK                                                                                       \
  "blockbuster 1\nprogram pick\ndim M\ninput X : f32[M,8]\ninput I : i64[M]\n"                     \
  "constant table : f32[6,8] = [0, 1, 2, 3, 4, 5, 6, 7, 1, 1, 1, 1, 1, 1, 1, 1, "                  \
  "7, 6, 5, 4, 3, 2, 1, 0, 2, 0, 2, 0, 2, 0, 2, 0, 1, 2, 1, 2, 1, 2, 1, 2, 3, 3, 3, 3, 0, 0, 0, "  \
  "0]\n"                                                                                           \
  "picked = misc \"Gather\" 13(table, I) {axis=0} : f32[M,8] @ \"look_up\"\n"                      \
  "x = elementwise X+picked\n"                                                                     \
  "weights = elementwise exp(0.25*x)\n"                                                            \
  "sum = reduce sum(weights, axis=-1, keep)\n"                                                     \
  "output Y = elementwise weights/sum\n"
/* The largest of each row, which no kernel of a GPU finds without their places. */
#define BEST                                                                                       \
  "constant k : i64[1] = [4]\n"                                                                    \
  "top = misc \"TopK\" 18(x, k) {axis=-1} of (f32[M,8], i64[1]) -> (f32[M,4]) : f32[M,4] @ "       \
  "\"best\"\n"                                                                                     \
  "output T = elementwise 2*top\n"

/* --- the device, as a program that uses CUDA has it --- */

typedef unsigned long long gpu_pointer;
struct gpu_driver {
  int (*push)(void *);
  int (*pop)(void **);
  int (*retain)(void **, int);
  int (*release)(int);
  int (*allocate)(gpu_pointer *, size_t);
  int (*free)(gpu_pointer);
  int (*in)(gpu_pointer, const void *, size_t, void *);
  int (*out)(void *, gpu_pointer, size_t, void *);
  int (*stream)(void **, unsigned);
  int (*end)(void *);
  int (*wait)(void *);
  int (*capture)(void *, int);
  int (*captured)(void *, void **);
  int (*make)(void **, void *, unsigned long long);
  int (*launch)(void *, void *);
  int (*drop)(void *), (*drop_made)(void *);
  int (*count)(int *);
  bool real;
  void (*fill_after)(long);
  long (*allocations)(void);
  long (*waiting)(void);
  long (*updates)(void); /* of graphs */
  long (*instances)(void);
  void (*refuse_graphs)(long);
  long (*launches)(void); /* of kernels that ran */
};
extern struct gpu_driver gpu;

/* Finds all of it; for cmocka: not 0 where there is none. */
int gpu_open(void **state);
/* Allocations of device memory that are held; 0 where the driver does not tell. */
long gpu_allocations(void);

typedef struct gpu_world {
  bb_context *context;
  bb_model *model;
  bb_session *session;
} gpu_world;

/* The model of a text, compiled for a device. */
bb_status gpu_compile(bb_context *context, const char *text, const char *device, bb_model **model);
gpu_world gpu_make(const char *text, const char *device);
void gpu_end(gpu_world *w);
/* The call did what it should; it was refused with that status, and the message has these words. */
void gpu_good(const gpu_world *w, bb_status status);
void gpu_refused(const gpu_world *w, bb_status status, bb_status want, const char *says);

/* Inputs of PICK. */
typedef struct gpu_numbers {
  int64_t rows;
  float x[MOST * WIDTH];
  int64_t index[MOST];
} gpu_numbers;

gpu_numbers gpu_draw(int64_t rows, int seed);
/* What is added up of a row. */
double gpu_x(const gpu_numbers *n, int64_t row, int col);
/* Is it what PICK makes of them? */
void gpu_check(const gpu_numbers *n, const float *y);
/* By the session's own memory. */
void gpu_write(const gpu_world *w, const gpu_numbers *n);
void gpu_read(const gpu_world *w, const gpu_numbers *n);

/* The caller's stream, and arrays with room for MOST rows. */
typedef struct gpu_place {
  void *context, *stream;
  gpu_pointer x, index, y;
} gpu_place;

/* The device's context is current from here on. */
gpu_place gpu_settle(int device);
void gpu_leave(gpu_place *p, int device);
void gpu_fill(const gpu_place *p, const gpu_numbers *n);
void gpu_bind(const gpu_world *w, const gpu_place *p, int64_t rows);
/* Waits for the stream, and checks. */
void gpu_take(const gpu_place *p, const gpu_numbers *n);
/* All that a request is: numbers in, a run in the place's stream, results out, and right. */
void gpu_serve(const gpu_world *w, const gpu_place *p, int64_t rows, int seed);

#endif
