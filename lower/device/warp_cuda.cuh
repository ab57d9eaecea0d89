// warp_cuda.cuh - the instructions of a warp, for warp.cuh and sm80.cuh: all their inline assembly.  For a C++ compiler of the host, the header
// that BB_HOST_DEVICE names says the same.
#pragma once

#define TL_DEV static __device__ __forceinline__
#define TL_UNROLL _Pragma("unroll")
#define TL_UNROLL_FOURS _Pragma("unroll 4")
#define TL_ROLLED _Pragma("unroll 1")
#define TL_INF __int_as_float(0x7f800000)
#define TL_NAN __int_as_float(0x7fffffff)
// A kernel of so many threads, and, behind a comma, how many blocks are to have room beside each other; the memory that a block's threads share.
#define TL_KERNEL(name, ...) extern "C" __global__ void __launch_bounds__(__VA_ARGS__) name(const __grid_constant__ Params p)
#define TL_SHARED(name) extern __shared__ __align__(1024) unsigned char name[]

namespace tl {
typedef unsigned int u32;
typedef unsigned long long u64;
typedef unsigned short u16;

TL_DEV u32 address(const void *p) { return (u32)__cvta_generic_to_shared(p); }
TL_DEV void named_sync(int id, int threads) { asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(threads) : "memory"); }
TL_DEV void named_arrive(int id, int threads) { asm volatile("bar.arrive %0, %1;" ::"r"(id), "r"(threads) : "memory"); }
TL_DEV void fence_device() { asm volatile("fence.acq_rel.gpu;" ::: "memory"); }
// Of so many blocks, is it the last to come?  The counter then begins anew.
TL_DEV bool is_last(unsigned *done, int blocks) { return atomicInc(done, blocks - 1) == (unsigned)blocks - 1; }

// ---- shared memory
TL_DEV void load_matrix(u32 a, u32 &r0, u32 &r1, u32 &r2, u32 &r3) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];" : "=r"(r0), "=r"(r1), "=r"(r2), "=r"(r3) : "r"(a) : "memory");
}
TL_DEV void load_matrix_transposed(u32 a, u32 &r0, u32 &r1, u32 &r2, u32 &r3) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];" : "=r"(r0), "=r"(r1), "=r"(r2), "=r"(r3) : "r"(a) : "memory");
}
TL_DEV uint4 load_piece(u32 a) {
  uint4 v;
  asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "r"(a) : "memory");
  return v;
}
TL_DEV void store_piece(u32 to, uint4 v) {
  asm volatile("st.shared.v4.u32 [%0], {%1, %2, %3, %4};" ::"r"(to), "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w) : "memory");
}
TL_DEV void store_word(u32 to, u32 v) { asm volatile("st.shared.u32 [%0], %1;" ::"r"(to), "r"(v) : "memory"); }

// ---- copies that are asked for: 16 bytes, of which those behind the first `bytes` become zeros
TL_DEV void copy_piece(u32 to, const u16 *from, int bytes) {
  asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(bytes) : "memory");
}
TL_DEV void copy_piece(u32 to, const u16 *from) {
  asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16;" ::"r"(to), "l"(from) : "memory");
}
// What a thread has asked for since the last time is one group; until all but the N youngest of its own are there.
TL_DEV void copies_end() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int N> TL_DEV void copies_wait() { asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory"); }

// ---- registers
// Registers that products in flight read or write: nothing of the compiler's moves across.
template <int N> TL_DEV void pin(float (&d)[N]) { TL_UNROLL for (int i = 0; i < N; i++) asm volatile("" : "+f"(d[i])::"memory"); }
template <int N> TL_DEV void pin(u32 (&d)[N]) { TL_UNROLL for (int i = 0; i < N; i++) asm volatile("" : "+r"(d[i])::"memory"); }
// The same of registers that keep what they hold, as no compiler can know: `nothing` is 0.
template <int N> TL_DEV void renew(u32 (&d)[N], int nothing) {
  TL_UNROLL for (int i = 0; i < N; i++) asm volatile("xor.b32 %0, %0, %1;" : "+r"(d[i]) : "r"(nothing) : "memory");
}

// ---- mma of one warp: 16 x 8 += 16 x 16 times 16 x 8
TL_DEV void mma_f16(float *d, u32 a0, u32 a1, u32 a2, u32 a3, u32 b0, u32 b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}
TL_DEV void mma_bf16(float *d, u32 a0, u32 a1, u32 a2, u32 a3, u32 b0, u32 b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}
TL_DEV u32 transpose_8x8(u32 x) { u32 y; asm("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(y) : "r"(x)); return y; }

// ---- arithmetic
TL_DEV float divide(float x, float y) { float z; asm("div.full.f32 %0, %1, %2;" : "=f"(z) : "f"(x), "f"(y)); return z; }  // to 2 ulp
TL_DEV float exp2(float x) { float y; asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x)); return y; }
TL_DEV float sin_of_turn(float x) { float y; asm("sin.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x)); return y; }
TL_DEV float cos_of_turn(float x) { float y; asm("cos.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x)); return y; }
TL_DEV float recip(float x) { float y; asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x)); return y; }
TL_DEV u32 pack_f16(float lo, float hi) { u32 r; asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(hi), "f"(lo)); return r; }
TL_DEV u32 pack_bf16(float lo, float hi) { u32 r; asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(hi), "f"(lo)); return r; }
TL_DEV float float_f16(u16 x) { float y; asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x)); return y; }
TL_DEV float float_bf16(u16 x) { return __uint_as_float((u32)x << 16); }
}  // namespace tl
