/* layers.h - a decoder of any number of layers as text: x0 of S rows, of which each layer makes keys and values behind the P that are
 * in its caches; y. */
#ifndef LAYERS_H
#define LAYERS_H

enum {
  LAYERS_WIDTH = 128,
  LAYERS_HEADS = 2,
  LAYERS_SIZE = 64,
  LAYERS_WEIGHTS = 4,
  LAYERS_TEXT = 1 << 15
};

/* Inputs are x0, the weights of all layers (heads, size and width in some order), and each layer's past keys and values; type: "f16".
 * Up to ten layers. */
void layers_text(char text[LAYERS_TEXT], int layers, const char *type);

#endif
