/* text_serial.c - the creation numbers of nodes in a text.
 *
 * %17 tells the serial of its node.  Outputs and results of maps have no name to tell it by, nor have
 * nodes that a person called by a word.  In a text that says where the next node's number goes on
 * (`serial N`) they get numbers below N that no node of the text has: there are as many, since every
 * node had one when the text was printed, so that what is created from here on is numbered as it would
 * have been without the text.  In any other text they come after all that is told.
 */
#include "text_form.h"

#include <stdlib.h>

bool bb_label_serial(const char *label, uint32_t *serial) {
  uint32_t value = 0;
  for (const char *at = label + 1; *at; at++) {
    if (*at < '0' || *at > '9' || value > BB_TEXT_SERIALS / 10) return false;
    value = value * 10 + (uint32_t)(*at - '0');
  }
  *serial = value;
  return value < BB_TEXT_SERIALS;
}

void bb_read_serial(bb_reader *r) {
  r->serial_told = true;
  r->next_serial = bb_read_index(r, BB_TEXT_SERIALS + 1, "the next node's number");
}

void bb_read_give_serial(bb_reader *r, bb_node *node, const char *label) {
  uint32_t serial;
  if (label && bb_label_serial(label, &serial)) {
    node->serial = serial;
    if (serial >= r->next_serial) r->next_serial = serial + 1;
    if (r->serial_told) bb_read_list_add(r, &r->told, serial);
    return;
  }
  BB_GROW(r->scratch, r->fresh, r->fresh_capacity, (size_t)r->fresh_count + 1);
  r->fresh[r->fresh_count++] = (bb_fresh){node, r->graphs};
}

static int ascending(const void *a, const void *b) {
  uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
  return (x > y) - (x < y);
}

/* Snapshots share nodes, and so numbers: each takes the gaps from the first on. */
static void fill_gaps(bb_reader *r) {
  const bb_read_list *told = &r->told;
  if (told->count) qsort(told->item, told->count, sizeof *told->item, ascending);
  uint32_t number = 0, at = 0;
  for (uint32_t i = 0; i < r->fresh_count; i++) {
    if (i && r->fresh[i].graph != r->fresh[i - 1].graph) number = at = 0;
    for (; at < told->count && told->item[at] <= number; at++)
      if (told->item[at] == number) number++;
    r->fresh[i].node->serial = number++;
    if (number > r->next_serial) r->next_serial = number;
  }
}

void bb_read_settle_serials(bb_reader *r) {
  if (r->serial_told)
    fill_gaps(r);
  else
    for (uint32_t i = 0; i < r->fresh_count; i++) r->fresh[i].node->serial = r->next_serial++;
  r->program->serial = r->next_serial;
}
