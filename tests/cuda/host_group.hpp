/* host_group.hpp - products of warp groups on the processor: for kernels over sm90.cuh, in tests (host.hpp includes it).
 *
 * A product is begun by the threads of a warp, and made when its group is waited for: then it reads its operands, by their descriptors.  Until
 * then its sums are NaN, and who changes them, or a left operand in registers, is found out.  Errors are also: operands that boxes are on their way to, or
 * that threads wrote and did not fence; registers without mma_fence(); products that nobody waited for.
 */
#pragma once

namespace tl {
enum narrow { f16, bf16 };

void mma_fence();
void mma_commit();
void mma_wait(int left); /* until so many groups of products are left */
template <int N> TL_DEV void mma_wait() {
  mma_wait(N);
}

struct left_registers {
  const u32 *at[4];
};
struct product_kind {
  bool bf, left_turned, right_turned, keep; /* keep: the sums */
};
/* `columns` sums in rows of `d`, and as many in those of `f` where it is not NULL. */
void begin(product_kind kind, float *d, float *f, int columns, u64 left, u64 right);
void begin(product_kind kind, float *d, float *f, int columns, const left_registers &left,
           u64 right);
template <narrow E, bool LeftTurned, bool RightTurned, int N>
TL_DEV void product(float (&d)[N], u64 left, u64 right, int keep) {
  begin({E == bf16, LeftTurned, RightTurned, keep != 0}, d, NULL, 2 * N, left, right);
}
template <narrow E, bool LeftTurned, bool RightTurned, int N>
TL_DEV void product(float (&d)[N], float (&f)[N], u64 left, u64 right, int keep) {
  begin({E == bf16, LeftTurned, RightTurned, keep != 0}, d, f, 2 * N, left, right);
}
template <narrow E, bool LeftTurned, bool RightTurned, int N>
TL_DEV void product(float (&d)[N], const left_registers &left, u64 right, int keep) {
  begin({E == bf16, LeftTurned, RightTurned, keep != 0}, d, NULL, 2 * N, left, right);
}
template <narrow E, bool LeftTurned, bool RightTurned, int N>
TL_DEV void product(float (&d)[N], float (&f)[N], const left_registers &left, u64 right, int keep) {
  begin({E == bf16, LeftTurned, RightTurned, keep != 0}, d, f, 2 * N, left, right);
}
} // namespace tl
