/* fragment.h - how the lanes of a warp hold what a GPU's unit for products takes and gives: 16 x 16 results, sums of 16
 * products of 16-bit elements, f32 sums.
 *
 * Of an operand, and of the result, a lane has some elements, numbered e.  Which they are is all that differs between
 * devices here; each has besides bb_multiply(), which adds a product to a result, for both types of elements.
 * RUN of an operand's lie side by side along what is summed: they come by one load.
 */
#pragma once

struct bb_f16 {
  uint16_t bits;
};
struct bb_bf16 {
  uint16_t bits;
};

/* v_mfma_f32_16x16x16: gfx90a, gfx942. */
struct bb_mfma {
  static constexpr int LANES = 64, OPERAND = 4, RESULT = 4, RUN = 4;
  static BB_CONSTANT int a_row(int lane, int) { return lane % 16; }
  static BB_CONSTANT int a_depth(int lane, int e) { return lane / 16 * 4 + e; }
  static BB_CONSTANT int b_col(int lane, int) { return lane % 16; }
  static BB_CONSTANT int b_depth(int lane, int e) { return lane / 16 * 4 + e; }
  static BB_CONSTANT int row(int lane, int e) { return lane / 16 * 4 + e; }
  static BB_CONSTANT int col(int lane, int) { return lane % 16; }
};

/* mma.m16n8k16, twice: sm_80 and later. */
struct bb_mma {
  static constexpr int LANES = 32, OPERAND = 8, RESULT = 8, RUN = 2;
  static BB_CONSTANT int a_row(int lane, int e) { return lane / 4 + e / 2 % 2 * 8; }
  static BB_CONSTANT int a_depth(int lane, int e) { return lane % 4 * 2 + e % 2 + e / 4 * 8; }
  static BB_CONSTANT int b_col(int lane, int e) { return lane / 4 + e / 4 * 8; }
  static BB_CONSTANT int b_depth(int lane, int e) { return lane % 4 * 2 + e % 2 + e / 2 % 2 * 8; }
  static BB_CONSTANT int row(int lane, int e) { return lane / 4 + e / 2 % 2 * 8; }
  static BB_CONSTANT int col(int lane, int e) { return lane % 4 * 2 + e % 2 + e / 4 * 8; }
};

/* A device without such a unit. */
struct bb_no_unit {
  static constexpr int LANES = 0;
};
