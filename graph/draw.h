/* draw.h - pictures of block programs: Graphviz's dot language, and the same facts as JSON.
 */
#ifndef BB_GRAPH_DRAW_H
#define BB_GRAPH_DRAW_H

#include "program.h"

typedef struct bb_picture {
  const bb_program *program;
  const bb_graph *graph;
  const char *title;
  uint32_t collapse; /* maps at this depth and below are drawn closed; 0: none */
  /* Nodes to mark as changed: by serial those of `marked`; and every node with a serial from
   * `new_from` on.  marked may be NULL; new_from is BB_NONE when nothing is new. */
  uint32_t marks;
  const uint32_t *marked;
  uint32_t new_from;
} bb_picture;

/* Maps are clusters with their dim in the corner; buffered edges are red and thick.  Ids are made
 * of serials, so that a node keeps its id from one picture to the next. */
void bb_draw(bb_buffer *out, const bb_picture *picture, bool json);

/* --- shared by draw.c and draw_json.c --- */

/* A name for every node of a graph and the levels inside: "n17", and "n17_2" for its copies. */
typedef struct bb_ids bb_ids;
bb_ids *bb_ids_create(bb_arena *arena, const bb_graph *graph);
const char *bb_id_of(const bb_ids *ids, const bb_node *node);

/* The picture as JSON: nodes and edges by name, maps as nodes that hold others. */
void bb_draw_json(bb_buffer *out, const bb_picture *picture, const bb_ids *ids);

bool bb_is_marked(const bb_picture *picture, const bb_node *node);
/* What is written in a node: "dot", "exp(a)", "Q[M,D]". */
void bb_put_node_label(bb_buffer *out, const bb_program *program, const bb_node *node);
/* "[M][N] f32 (M,N)" */
void bb_put_type(bb_buffer *out, const bb_program *program, const bb_type *type);
/* Text between double quotes, valid UTF-8 whatever the bytes are; dot and JSON escape alike. */
void bb_put_picture_text(bb_buffer *out, const char *text, bool json);

#endif
