/* siblings.c - which maps over one dim use one value in one way, in topological order.
 *
 * A treap for each node, keyed by (port, list level, dim, place of the user): the users of a mask that
 * a thousand layers share stand side by side in it, and a map finds the user before it in
 * logarithmic time.
 */
#include "scope.h"

typedef struct member {
  uint32_t map;
  bb_value src;
  uint32_t level;
  bb_dim dim;
  uint32_t uses; /* in-ports of the map that are equal in all this */
  uint32_t priority;
  uint32_t left, right; /* 0: none */
} member;

struct bb_siblings {
  uint32_t count, capacity;
  member *member; /* [0] is not used */
  uint32_t unused;
  uint32_t random;
};

struct bb_siblings *bb_siblings_create(bb_arena *arena) {
  struct bb_siblings *set = BB_NEW(arena, struct bb_siblings, 1);
  set->count = 1;
  set->random = 0x9e3779b9u;
  return set;
}

static int compare_number(uint64_t a, uint64_t b) {
  return (a > b) - (a < b);
}

/* The group of users that two members of one treap belong to. */
static int compare_group(const member *a, const member *b) {
  int order = compare_number(a->src.port, b->src.port);
  if (!order) order = compare_number(a->level, b->level);
  return order ? order : compare_number(a->dim, b->dim);
}

static int compare(const bb_scope *scope, const member *a, const member *b) {
  int order = compare_group(a, b);
  return order ? order : compare_number(scope->place[a->map].label, scope->place[b->map].label);
}

static member key_of(const bb_scope *scope, uint32_t map, bb_value src, uint32_t level) {
  return (member){map, src, level, scope->graph->node[map]->dim, 1, 0, 0, 0};
}

static uint32_t *root_of(const bb_scope *scope, const member *key) {
  return &scope->place[key->src.node].users;
}

static uint32_t find(const bb_scope *scope, const member *key) {
  const struct bb_siblings *set = scope->siblings;
  uint32_t at = *root_of(scope, key);
  while (at) {
    int order = compare(scope, key, &set->member[at]);
    if (order == 0) break;
    at = order < 0 ? set->member[at].left : set->member[at].right;
  }
  return at;
}

static uint32_t new_member(bb_scope *scope, const member *key) {
  struct bb_siblings *set = scope->siblings;
  uint32_t at = set->unused;
  if (at) {
    set->unused = set->member[at].left;
  } else {
    at = set->count++;
    BB_GROW(scope->arena, set->member, set->capacity, set->count);
  }
  set->random ^= set->random << 13;
  set->random ^= set->random >> 17;
  set->random ^= set->random << 5;
  set->member[at] = *key;
  set->member[at].priority = set->random;
  return at;
}

/* Splits a treap into what is less than key and the rest. */
static void split(const bb_scope *scope, uint32_t at, const member *key, uint32_t *less,
                  uint32_t *rest) {
  member *all = scope->siblings->member;
  while (at) {
    if (compare(scope, &all[at], key) < 0) {
      *less = at;
      less = &all[at].right;
      at = *less;
    } else {
      *rest = at;
      rest = &all[at].left;
      at = *rest;
    }
  }
  *less = *rest = 0;
}

static uint32_t join(member *all, uint32_t less, uint32_t rest) {
  uint32_t root = 0, *hook = &root;
  while (less && rest) {
    if (all[less].priority > all[rest].priority) {
      *hook = less;
      hook = &all[less].right;
      less = *hook;
    } else {
      *hook = rest;
      hook = &all[rest].left;
      rest = *hook;
    }
  }
  *hook = less ? less : rest;
  return root;
}

/* The link to the place where a member of this priority belongs, or to an equal key. */
static uint32_t *link_to(const bb_scope *scope, const member *key, uint32_t priority) {
  struct bb_siblings *set = scope->siblings;
  uint32_t *link = root_of(scope, key);
  while (*link && set->member[*link].priority >= priority) {
    int order = compare(scope, key, &set->member[*link]);
    if (order == 0) break;
    link = order < 0 ? &set->member[*link].left : &set->member[*link].right;
  }
  return link;
}

static void insert(bb_scope *scope, const member *key) {
  struct bb_siblings *set = scope->siblings;
  uint32_t found = find(scope, key);
  if (found) {
    set->member[found].uses += key->uses;
    return;
  }
  uint32_t at = new_member(scope, key);
  uint32_t *link = link_to(scope, key, set->member[at].priority), less, rest;
  split(scope, *link, key, &less, &rest);
  set->member[at].left = less;
  set->member[at].right = rest;
  *link = at;
}

/* Takes out a member whatever its uses; gives their number, 0 if it is not there. */
static uint32_t take(bb_scope *scope, const member *key) {
  struct bb_siblings *set = scope->siblings;
  uint32_t *link = link_to(scope, key, 0), at = *link;
  if (!at) return 0;
  *link = join(set->member, set->member[at].left, set->member[at].right);
  set->member[at].left = set->unused;
  set->unused = at;
  return set->member[at].uses;
}

void bb_siblings_add(bb_scope *scope, uint32_t map, bb_value src, uint32_t level) {
  member key = key_of(scope, map, src, level);
  insert(scope, &key);
}

void bb_siblings_remove(bb_scope *scope, uint32_t map, bb_value src, uint32_t level) {
  member key = key_of(scope, map, src, level);
  uint32_t found = find(scope, &key);
  if (found && --scope->siblings->member[found].uses == 0) take(scope, &key);
}

void bb_siblings_lift(bb_scope *scope, uint32_t map) {
  const bb_node *node = scope->graph->node[map];
  for (uint32_t i = 0; i < node->nin; i++) {
    member key = key_of(scope, map, node->in[i].src, node->in[i].level);
    bb_siblings_wake(scope, map, key.src, key.level);
    take(scope, &key);
  }
}

void bb_siblings_drop(bb_scope *scope, uint32_t map) {
  const bb_node *node = scope->graph->node[map];
  for (uint32_t i = 0; i < node->nin; i++) {
    bb_siblings_add(scope, map, node->in[i].src, node->in[i].level);
    bb_siblings_wake(scope, map, node->in[i].src, node->in[i].level);
  }
}

/* The neighbour of a key in its own group. */
static uint32_t neighbour(const bb_scope *scope, const member *key, bool after) {
  const struct bb_siblings *set = scope->siblings;
  uint32_t best = 0, at = *root_of(scope, key);
  while (at) {
    int order = compare(scope, &set->member[at], key);
    if (after ? order > 0 : order < 0) {
      best = at;
      at = after ? set->member[at].left : set->member[at].right;
    } else {
      at = after ? set->member[at].right : set->member[at].left;
    }
  }
  return best && compare_group(&set->member[best], key) == 0 ? set->member[best].map : BB_NONE;
}

uint32_t bb_scope_sibling_before(const bb_scope *scope, uint32_t map, bb_value src,
                                 uint32_t level) {
  member key = key_of(scope, map, src, level);
  return neighbour(scope, &key, false);
}

uint32_t bb_scope_sibling_after(const bb_scope *scope, uint32_t map, bb_value src, uint32_t level) {
  member key = key_of(scope, map, src, level);
  return neighbour(scope, &key, true);
}

void bb_siblings_wake(bb_scope *scope, uint32_t map, bb_value src, uint32_t level) {
  if (scope->sibling_rule == BB_NONE) return;
  uint32_t after = bb_scope_sibling_after(scope, map, src, level);
  if (after != BB_NONE) bb_heap_push(scope, &scope->pending[scope->sibling_rule], after);
}
