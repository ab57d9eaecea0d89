/* layers.c - a decoder as text. */
#include "layers.h"

#include <stdio.h>
#include <string.h>

/* #: a layer's number, @: the next one's, $: the type of elements. */
#define GROWN "\"symbol(P)+symbol(S)\""
#define CACHE(name)                                                                                \
  "output present_" name "# = misc \"Concat\" 13(past_" name "#, " name "#) {axis=1} of "          \
  "($[2,P,64], $[2,S,64]) -> ($[2," GROWN ",64]) : $[2," GROWN ",64]\n"

static const char head[] =
    "blockbuster 1\nprogram layers\nsymbol P, S, " GROWN "\ninput x0 : $[S,128]\n"
    "input wq : $[2,64,128]\ninput wk : $[2,64,128]\ninput wv : $[2,64,128]\n"
    "input wo : $[128,2,64]\n";
static const char pasts[] = "input past_k# : $[2,P,64]\ninput past_v# : $[2,P,64]\n";
/* Keys and values of rows made in their caches, attention over them, and what is added. */
static const char layer[] =
    "square# = elementwise x#**2\nsum# = reduce sum(square#, axis=-1, keep)\n"
    "z# = elementwise x#*(sum#*0.0078125+0.00001)**(-0.5)\n"
    "q# = contract(z#[s,w], wq[h,d,w] -> [h,s,d])\n"
    "k# = contract(z#[s,w], wk[h,d,w] -> [h,s,d])\n"
    "v# = contract(z#[s,w], wv[h,d,w] -> [h,s,d])\n" CACHE("k") CACHE(
        "v") "score# = contract(q#[h,s,d], present_k#[h,t,d] -> [h,s,t])\n"
             "masked# = elementwise select(coord(axis 0)<=coord(axis "
             "1)+symbol(P),score#*0.125,-inf)\n"
             "top# = reduce max(masked#, axis=-1, keep)\nweight# = elementwise exp(masked#-top#)\n"
             "all# = reduce sum(weight#, axis=-1, keep)\nshare# = elementwise weight#/all#\n"
             "y# = contract(share#[h,s,t], present_v#[h,t,d] -> [h,s,d])\n"
             "o# = contract(y#[h,s,d], wo[w,h,d] -> [s,w])\n";
static const char next[] = "x@ = elementwise x#+o#\n", last[] = "output y = elementwise x#+o#\n";

static void add(char *text, const char *form, int number, const char *type) {
  size_t at = strlen(text);
  for (; *form; form++) switch (*form) {
    case '#': at += (size_t)sprintf(text + at, "%d", number); break;
    case '@': at += (size_t)sprintf(text + at, "%d", number + 1); break;
    case '$': at += (size_t)sprintf(text + at, "%s", type); break;
    default: text[at++] = *form;
    }
  text[at] = '\0';
}

void layers_text(char text[LAYERS_TEXT], int layers, const char *type) {
  *text = '\0';
  add(text, head, 0, type);
  for (int i = 0; i < layers; i++) add(text, pasts, i, type);
  for (int i = 0; i < layers; i++) {
    add(text, layer, i, type);
    add(text, i + 1 < layers ? next : last, i, type);
  }
}
