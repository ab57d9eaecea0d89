/* code_write.c - what launches need as text: launches.json of a compiled folder. */
#include "make.h"

#include "../model/json.h"

static void put_formula(bb_buffer *out, const char *name, const bb_formula *formula) {
  bb_put(out, ", \"%s\": \"", name);
  bb_formula_print(out, formula);
  bb_put(out, "\"");
}

static void put_formulas(bb_buffer *out, const char *name, uint32_t count,
                         const bb_formula *formula) {
  bb_put(out, ", \"%s\": [", name);
  for (uint32_t i = 0; i < count; i++) {
    bb_put(out, "%s\"", i ? ", " : "");
    bb_formula_print(out, &formula[i]);
    bb_put(out, "\"");
  }
  bb_put(out, "]");
}

/* BB_NONE is null. */
static void put_numbers(bb_buffer *out, const char *name, uint32_t count, const uint32_t *number) {
  bb_put(out, "\"%s\": [", name);
  for (uint32_t i = 0; i < count; i++) {
    bb_put(out, i ? ", " : "");
    if (number[i] == BB_NONE)
      bb_put(out, "null");
    else
      bb_put(out, "%u", number[i]);
  }
  bb_put(out, "]");
}

static const char *word(bool is) {
  return is ? "true" : "false";
}

static void put_map(bb_buffer *out, const bb_gpu_map *map) {
  bb_put(out, "\n      {\"view\": %u, \"fold\": %u, \"edge\": %u, \"bf16\": %s, ", map->view,
         map->fold, map->edge, word(map->bf16));
  put_numbers(out, "box", map->rank, map->box);
  put_formulas(out, "extents", map->rank, map->extent);
  put_formulas(out, "strides", map->rank, map->stride);
  put_formula(out, "reads", &map->reads);
  bb_put(out, "}");
}

static void put_slices(bb_buffer *out, const bb_gpu_own *own, uint32_t views) {
  bb_put(out, ",\n    \"slices\": [");
  for (uint32_t i = 0; i < own->slices; i++) {
    const bb_gpu_slice *s = &own->slice[i];
    bb_put(out, "%s{\"extent\": %u, \"step\": %u", i ? ", " : "", s->extent, s->step);
    put_formulas(out, "by", views, s->by);
    bb_put(out, "}");
  }
  bb_put(out, "]");
}

static void put_own(bb_buffer *out, const bb_gpu_way *way) {
  const bb_gpu_own *own = &way->own;
  bb_put(out, ",\n    \"image\": %u, \"function\": ", own->image);
  bb_json_put(out, own->name);
  bb_put(
      out,
      ", \"threads\": %u, \"shared\": %u, \"resident\": %u, \"persistent\": %s, \"counter\": %s, "
      "\"ahead\": %s",
      own->threads, own->shared, own->resident, word(own->persistent), word(own->counter),
      word(own->ahead));
  put_formula(out, "tiles", &own->tiles);
  put_formula(out, "cluster", &own->cluster);
  put_formula(out, "mates", &own->mates);
  if (own->split) {
    put_formula(out, "splits", &own->splits);
    bb_put(out, ", \"part\": %u", own->part);
  }
  bb_put(out, ",\n    ");
  put_numbers(out, "pointers", own->pointers, own->pointer);
  bb_put(out, ", \"maps\": [");
  for (uint32_t i = 0; i < own->maps; i++) {
    bb_put(out, i ? "," : "");
    put_map(out, &own->map[i]);
  }
  bb_put(out, "]");
  put_slices(out, own, way->views);
  bb_put(out, ",\n    \"weight\": {\"groups\": %u, \"rows\": %u, \"few\": %s", own->weight.groups,
         own->weight.rows, word(own->weight.few));
  put_formulas(out, "steps", own->weight.steps, own->weight.step);
  put_formulas(out, "totals", BB_GPU_TOTALS, own->weight.total);
  bb_put(out, "}");
}

static void put_plain(bb_buffer *out, const bb_gpu_way *way) {
  bb_put(out, ",\n    \"nests\": [");
  for (uint32_t n = 0; n < way->plain.nests; n++) {
    const bb_gpu_nest *nest = &way->plain.nest[n];
    bb_put(out, "%s\n      {\"function\": ", n ? "," : "");
    bb_json_put(out, nest->name);
    bb_put(out, ", \"threads\": %u, \"shared\": %u, \"ahead\": %s, \"reads\": %u", nest->threads,
           nest->shared, word(nest->ahead), nest->reads);
    put_formula(out, "tasks", &nest->tasks);
    put_formula(out, "own", &nest->own);
    bb_put(out, "}");
  }
  bb_put(out, "]");
  put_formulas(out, "lists", way->views, way->plain.list);
}

static void put_way(bb_buffer *out, const bb_gpu_way *way) {
  bb_put(out, "\n   {");
  put_numbers(out, "extents", way->extents, way->extent);
  bb_put(out, ", ");
  put_numbers(out, "views", way->views, way->view);
  bb_put(out, ",\n    \"about\": [");
  for (uint32_t v = 0; v < way->views; v++) {
    const bb_gpu_view *view = &way->about[v];
    bb_put(out, "%s{\"written\": %s, \"scratch\": %s", v ? ", " : "", word(view->written),
           word(view->scratch));
    put_formula(out, "bytes", &view->bytes);
    bb_put(out, "}");
  }
  bb_put(out, "]");
  if (way->is_own) put_own(out, way);
  if (!way->is_own || way->plain.nests) put_plain(out, way);
  bb_put(out, "}");
}

void bb_gpu_code_write(bb_buffer *out, const bb_gpu_kernels *k, const bb_plan *plan) {
  bool any = false;
  bb_put(out, "{\"version\": %d, \"target\": ", BB_GPU_CODE_VERSION);
  bb_json_put(out, k->target);
  bb_put(out, ",\n \"images\": [");
  for (uint32_t i = 0; i < k->images; i++)
    bb_put(out, "%s[%llu, %llu]", i ? ", " : "", (unsigned long long)k->offset[i],
           (unsigned long long)k->size[i]);
  bb_put(out, "],\n \"moves\": %u, ", k->moves);
  if (k->plain != BB_NONE) bb_put(out, "\"plain\": %u, ", k->plain);
  bb_put(out, "\"misc\": [");
  for (uint32_t i = 0; i < plan->steps; i++)
    if (k->misc[i]) {
      bb_put(out, "%s%u", any ? ", " : "", i);
      any = true;
    }
  bb_put(out, "],\n \"kernels\": [");
  for (uint32_t i = 0; i < k->kernels; i++) {
    bb_put(out, "%s\n  [", i ? "," : "");
    for (uint32_t w = 0; w < k->kernel[i].count; w++) {
      bb_put(out, w ? "," : "");
      put_way(out, &k->kernel[i].way[w]);
    }
    bb_put(out, "]");
  }
  bb_put(out, "]}\n");
}
