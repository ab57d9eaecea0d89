/* weigh.c - what a kernel's tiles cost at given extents: of several ways to cut the same results, one is the
 * cheapest for these.
 *
 * The tile program was walked as it would run, trips of loops for trips (gpu/describe_weight.c): operations of products, bytes that
 * come to blocks, and turns of serial loops, in which the one and the other wait for each other.  Processors take blocks in
 * turn, so the time is that of the processor that has most of them.  Only differences between ways of one kernel count.
 */
#include "launch.h"

/* What follows is measured on Hopper.  "Processor" is one of the GPU's; rates are a second. */

/* Operations of products on a processor, as products of 4096 x 4096 with 1 to 4096 rows have it. */
static const double GROUPS_RATE = 6.6e12; /* by several warp groups */
static const double GROUP_RATE = 6e12;    /* by one */
static const double WARP_RATE = 2.4e12;   /* by warps */
/* By warps that make products of 32 rows each, or of 16, as products of 1024, 2048 and 4096 cubed have it. */
static const double TALL_RATE = 3e12, LOW_RATE = 2.3e12;
enum { TALL = 32 };

/* Arithmetic beside products. */
static const double ELEMENTS = 150e9; /* elements that a processor makes or folds */

/* What loads bring, in bytes.  First, to a processor: from the cache, and from memory, which takes longer to answer; the same
 * for parts of clusters and for results of few rows (gpu_few.c), which more processors share. */
static const double BYTES = 135e9, FAR_BYTES = 100e9;
static const double PART_BYTES = 92e9, FAR_PART_BYTES = 75e9;
/* Of one group: by turns of many bytes, as of results on their side (gpu_side.c), and of fewer, of which fewer are on their
 * way. */
static const double FAR_PART_OF_GROUP_BYTES = 84e9, FAR_SHORT_PART_OF_GROUP_BYTES = 59e9;
enum { SHORT = 26000 /* bytes of a turn */ };
static const double BEYOND = 65e9;      /* to a processor, filled in beyond an array's end */
static const double ALL_BYTES = 16e12;  /* to all processors */
static const double DIFFERENT = 4.4e12; /* to all, different ones, from memory */
static const double CACHED = 6.5e12;    /* to all, different ones, from the cache */
static const double CACHE = 40e6;       /* as many may have stayed there */
static const double MERGED = 20e9;      /* of parts that a cluster merges */

/* Seconds that something takes to begin or end. */
static const double TURN = 30e-9;    /* a turn of a loop */
static const double LAUNCH = 1.5e-6; /* a launch */
static const double BEGIN = 1.9e-6;  /* a block, until its first tile is there */
static const double AGAIN = 0.5e-6;  /* a block that persists, until its results left */
static const double MERGE = 1e-6;    /* a cluster's merge, if only of one part */

/* Of the shorter of a processor's work and what memory brings: how much the longer does not hide. */
static const double SHOWN = 0.08;

/* Blocks that persist and of which several share a processor, as two products with a fold of exps between them, of 128 to
 * 2048 rows, have it.  One that is alone takes so many times as long a turn: nothing else goes on while products wait for
 * arithmetic. */
static const double ALONE = 1.5;
/* Seconds until the first tile of such a block is there and its results left: half of another's. */
static const double SHARING_BEGIN = 0.5e-6;

/* What a processor has room for, and what a thread takes of it. */
enum {
  THREADS = 2048,
  REGISTERS = 64 << 10,
  HELD = 168,    /* registers of a thread */
  ALL_HELD = 256 /* of one by warps that make products of so many rows (above) */
};

static uint32_t least(uint32_t a, uint32_t b) {
  return a < b ? a : b;
}

static double most(double a, double b) {
  return a > b ? a : b;
}

/* Of what goes on at once, the longer; the shorter is not quite hidden behind it. */
static double beside(double a, double b) {
  return a > b ? a + SHOWN * b : b + SHOWN * a;
}

static double rounded_up(double a) {
  double whole = (double)(int64_t)a;
  return whole < a ? whole + 1 : whole;
}

/* Blocks of a kernel that a processor runs at once.  It has what the largest block may ask for, and what it keeps for that one. */
static uint32_t together(const bb_gpu_machine *m, const bb_gpu_own *p) {
  uint32_t by_room = (m->shared + BB_CUDA_OWN_SHARED) / (p->shared + BB_CUDA_OWN_SHARED),
           by_threads = THREADS / p->threads;
  uint32_t by_registers = REGISTERS / ((p->weight.rows ? ALL_HELD : HELD) * p->threads);
  uint32_t blocks = least(by_room, least(by_threads, by_registers));
  return p->persistent || !blocks ? 1 : blocks;
}

/* Steps, then totals. */
static void evaluate(const bb_gpu_machine *m, const bb_gpu_way *way, const int64_t *extent,
                     double *total) {
  const bb_gpu_weight *w = &way->own.weight;
  bb_arena *scratch = bb_scratch(m->ctx);
  int64_t *variable = BB_NEW(scratch, int64_t, way->extents + w->steps + 1);
  for (uint32_t i = 0; i < way->extents; i++) variable[i] = extent[i];
  for (uint32_t i = 0; i < w->steps; i++)
    variable[way->extents + i] = bb_gpu_value(m, &w->step[i], variable);
  for (uint32_t i = 0; i < BB_GPU_TOTALS; i++)
    total[i] = (double)bb_gpu_value(m, &w->total[i], variable);
  bb_scratch_end(scratch);
}

static double rate_of(const bb_gpu_weight *w) {
  if (w->rows) return w->rows >= TALL ? TALL_RATE : LOW_RATE;
  return w->groups > 1 ? GROUPS_RATE : w->groups ? GROUP_RATE : WARP_RATE;
}

/* How fast loads come to a processor. */
static double load_rate(const bb_gpu_weight *w, double cluster, double different, double turn) {
  bool parts = (w->groups && w->few) || cluster > 1, far = different > CACHE;
  if (parts && far && w->groups == 1 && !w->few)
    return turn < SHORT ? FAR_SHORT_PART_OF_GROUP_BYTES : FAR_PART_OF_GROUP_BYTES;
  return parts ? (far ? FAR_PART_BYTES : PART_BYTES) : (far ? FAR_BYTES : BYTES);
}

/* What blocks wait for before and behind their loops, rounds of them; where several share a processor, and wait for their copies, another
 * one's loop goes on meanwhile. */
static double begin_of(const bb_gpu_machine *m, const bb_gpu_own *p, double rounds) {
  if (p->persistent) return BEGIN + AGAIN * (rounds - 1);
  if (p->weight.rows) return together(m, p) > 1 ? BEGIN : 2 * BEGIN * rounds;
  return BEGIN * rounds;
}

typedef struct weighed {
  double seconds;
  uint32_t resident; /* blocks of a processor */
} weighed;

/* Of blocks that take tiles in turn, and may share a processor: seconds of all but loads, where a tile takes `tile` and the
 * longest so many times as much as the mean.  Which tiles meet on a processor is chance; alone, blocks that begin with the
 * longest end together. */
static weighed sharing(const bb_gpu_machine *m, const bb_gpu_own *p, double tiles, double tile,
                       double longest) {
  double each = rounded_up(tiles / m->processors), meet = each < p->resident ? each : p->resident;
  weighed alone = {ALONE * tile * most(each, longest) + AGAIN * (each - 1), 1};
  weighed shared = {tile * most(each, meet * longest) + AGAIN * (each - meet), p->resident};
  return each > 1 && shared.seconds < alone.seconds ? shared : alone;
}

static weighed weigh(const bb_gpu_machine *m, const bb_gpu_way *k, const int64_t *extent) {
  const bb_gpu_weight *w = &k->own.weight;
  double total[BB_GPU_TOTALS];
  evaluate(m, k, extent, total);
  double cluster = (double)bb_gpu_value(m, &k->own.cluster, extent);
  double blocks = (double)bb_gpu_value(m, &k->own.tiles, extent) * cluster;
  if (blocks < 1) return (weighed){0, 1};
  double each = rounded_up(blocks / m->processors),
         rounds = rounded_up(each / together(m, &k->own));
  double bytes = total[BB_GPU_BYTES], different = total[BB_GPU_DIFFERENT];
  double turn = bytes / most(total[BB_GPU_TURNS], 1);
  double loads = bytes / load_rate(w, cluster, different, turn);
  double busy = most(total[BB_GPU_OPERATIONS] / rate_of(w), loads) +
                total[BB_GPU_ELEMENTS] / ELEMENTS + TURN * total[BB_GPU_TURNS];
  double mean = most(total[BB_GPU_TURNS] / blocks, 1), longest = total[BB_GPU_LONGEST] / mean;
  double merge = total[BB_GPU_MERGED] > 0 ? MERGE + total[BB_GPU_MERGED] / MERGED : 0;
  double reading = most(bytes / ALL_BYTES, different / (different > CACHE ? DIFFERENT : CACHED));
  double filling = total[BB_GPU_BEYOND] / BEYOND / blocks * each;
  if (k->own.persistent && k->own.resident > 1) {
    weighed best = sharing(m, &k->own, blocks, busy / blocks, longest);
    best.seconds = LAUNCH + SHARING_BEGIN + beside(best.seconds, reading) + filling;
    return best;
  }
  double seconds = LAUNCH + begin_of(m, &k->own, rounds) + merge + filling +
                   beside(busy / blocks * most(each, longest), reading);
  return (weighed){seconds, 1};
}

double bb_cuda_weigh(const bb_gpu_machine *m, const bb_gpu_way *k, const int64_t *extent) {
  return weigh(m, k, extent).seconds;
}

double bb_cuda_weigh_launch(void) {
  return LAUNCH;
}

uint32_t bb_cuda_resident(const bb_gpu_machine *m, const bb_gpu_way *k, const int64_t *extent) {
  bool chosen = k->own.persistent && k->own.resident > 1;
  return chosen ? weigh(m, k, extent).resident : 1;
}
