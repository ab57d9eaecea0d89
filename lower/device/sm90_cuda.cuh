// sm90_cuda.cuh - the instructions that sm90.cuh is made of: all their inline assembly but the products' (their operand lists depend
// on the shape: an emitted kernel brings those it uses).  For a C++ compiler of the host, the header that BB_HOST_DEVICE names says the same.
#pragma once

namespace tl {
struct alignas(64) tensor_map { u64 bits[16]; };

// ---- registers of a role
template <int R> TL_DEV void fewer_registers() { asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(R)); }
template <int R> TL_DEV void more_registers() { asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(R)); }

// ---- launches, of which each may begin before the one before it has ended
// The next one may begin.
TL_DEV void let_next() { asm volatile("griddepcontrol.launch_dependents;"); }
// Until what earlier launches wrote is there, and they read no more; then the next one may begin, unless it may already.
TL_DEV void after_earlier() { asm volatile("griddepcontrol.wait;\n griddepcontrol.launch_dependents;" ::: "memory"); }

// ---- clusters
TL_DEV int cluster_rank() { u32 r; asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(r)); return r; }
TL_DEV void cluster_sync() {
  asm volatile("barrier.cluster.arrive.release.aligned;\n barrier.cluster.wait.acquire.aligned;" ::: "memory");
}
TL_DEV void cluster_leave() {  // when all are here: they have read what they wanted of each other's memory
  asm volatile("barrier.cluster.arrive.relaxed.aligned;\n barrier.cluster.wait.aligned;" ::: "memory");
}
TL_DEV void cluster_arrive() {  // what this thread wrote before need not be seen by who waits
  asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
}
TL_DEV void cluster_wait() { asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory"); }
TL_DEV int cluster_size() { u32 r; asm volatile("mov.u32 %0, %%cluster_nctaid.x;" : "=r"(r)); return r; }
TL_DEV const float *peer(const float *p, int rank) {  // the same place in another block's memory
  u64 a; asm("mapa.u64 %0, %1, %2;" : "=l"(a) : "l"(p), "r"(rank)); return (const float *)a;
}

// ---- barriers in shared memory
TL_DEV void barrier_init(u64 *b, int count) { asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(address(b)), "r"(count) : "memory"); }
TL_DEV void barrier_init_done() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }
TL_DEV void barrier_expect(u64 *b, int bytes) { asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(address(b)), "r"(bytes) : "memory"); }
TL_DEV void barrier_arrive(u64 *b) { asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(address(b)) : "memory"); }
TL_DEV void barrier_wait(u64 *b, u32 parity) {
  asm volatile("{\n.reg .pred p;\nAGAIN:\nmbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n@p bra DONE;\nbra AGAIN;\nDONE:\n}"
               ::"r"(address(b)), "r"(parity) : "memory");
}
TL_DEV void barrier_wait_cluster(u64 *b, u32 parity) {  // for what other blocks of the cluster sent
  asm volatile("{\n.reg .pred p;\nAGAIN:\nmbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%0], %1;\n@p bra DONE;\nbra AGAIN;\nDONE:\n}"
               ::"r"(address(b)), "r"(parity) : "memory");
}
// At the same barrier of the other block of a cluster of two.
TL_DEV void barrier_arrive_at_mate(u64 *b) {
  asm volatile("{\n.reg .b32 a;\nmapa.shared::cluster.u32 a, %0, %1;\nmbarrier.arrive.shared::cluster.b64 _, [a];\n}"
               ::"r"(address(b)), "r"(cluster_rank() ^ 1) : "memory");
}
// A number to the same place in its memory, and an arrival that shows it to who waits there by barrier_wait_cluster().
TL_DEV void tell_mate(int *at, int value, u64 *b) {
  asm volatile("{\n.reg .b32 a, b;\nmapa.shared::cluster.u32 a, %0, %3;\nmapa.shared::cluster.u32 b, %2, %3;\n"
               "st.shared::cluster.u32 [a], %1;\nmbarrier.arrive.release.cluster.shared::cluster.b64 _, [b];\n}"
               ::"r"(address(at)), "r"(value), "r"(address(b)), "r"(cluster_rank() ^ 1) : "memory");
}

// What is added to an address in this block's shared memory to name the same place in another's of the cluster.
TL_DEV u32 away(const void *here, int rank) {
  u32 there; asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(address(here)), "r"(rank)); return there - address(here);
}
// Values to where `to` is there; the barrier that is there where `b` is here counts their bytes.
TL_DEV void push(float *to, float value, u64 *b, u32 there) {
  asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.f32 [%0], %1, [%2];"
               ::"r"(address(to) + there), "f"(value), "r"(address(b) + there) : "memory");
}
TL_DEV void push(float *to, float x, float y, float z, float w, u64 *b, u32 there) {
  asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.f32 [%0], {%1, %2, %3, %4}, [%5];"
               ::"r"(address(to) + there), "f"(x), "f"(y), "f"(z), "f"(w), "r"(address(b) + there) : "memory");
}

// ---- copies of boxes by tensor map; coordinates innermost first
TL_DEV void copy_box(void *to, const tensor_map *m, u64 *b, int c0, int c1) {
  asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4}], [%2];"
               ::"r"(address(to)), "l"(m), "r"(address(b)), "r"(c0), "r"(c1) : "memory");
}
TL_DEV void copy_box(void *to, const tensor_map *m, u64 *b, int c0, int c1, int c2) {
  asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5}], [%2];"
               ::"r"(address(to)), "l"(m), "r"(address(b)), "r"(c0), "r"(c1), "r"(c2) : "memory");
}
TL_DEV void copy_box(void *to, const tensor_map *m, u64 *b, int c0, int c1, int c2, int c3) {
  asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5, %6}], [%2];"
               ::"r"(address(to)), "l"(m), "r"(address(b)), "r"(c0), "r"(c1), "r"(c2), "r"(c3) : "memory");
}
TL_DEV void copy_box(void *to, const tensor_map *m, u64 *b, int c0, int c1, int c2, int c3, int c4) {
  asm volatile("cp.async.bulk.tensor.5d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5, %6, %7}], [%2];"
               ::"r"(address(to)), "l"(m), "r"(address(b)), "r"(c0), "r"(c1), "r"(c2), "r"(c3), "r"(c4) : "memory");
}
// To the same place in the memories of all blocks of a cluster, whose barriers all hear of it.
TL_DEV void copy_box_to_all(int mates, void *to, const tensor_map *m, u64 *b, int c0, int c1) {
  if (mates == 1) return copy_box(to, m, b, c0, c1);
  asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1, {%4, %5}], [%2], %3;"
               ::"r"(address(to)), "l"(m), "r"(address(b)), "h"((u16)((1 << mates) - 1)), "r"(c0), "r"(c1) : "memory");
}
TL_DEV void copy_box_to_all(int mates, void *to, const tensor_map *m, u64 *b, int c0, int c1, int c2) {
  if (mates == 1) return copy_box(to, m, b, c0, c1, c2);
  asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1, {%4, %5, %6}], [%2], %3;"
               ::"r"(address(to)), "l"(m), "r"(address(b)), "h"((u16)((1 << mates) - 1)), "r"(c0), "r"(c1), "r"(c2) : "memory");
}
TL_DEV void copy_box_to_all(int mates, void *to, const tensor_map *m, u64 *b, int c0, int c1, int c2, int c3) {
  if (mates == 1) return copy_box(to, m, b, c0, c1, c2, c3);
  asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1, {%4, %5, %6, %7}], [%2], %3;"
               ::"r"(address(to)), "l"(m), "r"(address(b)), "h"((u16)((1 << mates) - 1)), "r"(c0), "r"(c1), "r"(c2), "r"(c3) : "memory");
}
TL_DEV void copy_box_to_all(int mates, void *to, const tensor_map *m, u64 *b, int c0, int c1, int c2, int c3, int c4) {
  if (mates == 1) return copy_box(to, m, b, c0, c1, c2, c3, c4);
  asm volatile("cp.async.bulk.tensor.5d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1, {%4, %5, %6, %7, %8}], [%2], %3;"
               ::"r"(address(to)), "l"(m), "r"(address(b)), "h"((u16)((1 << mates) - 1)), "r"(c0), "r"(c1), "r"(c2), "r"(c3), "r"(c4) : "memory");
}
TL_DEV void put_box(const tensor_map *m, const void *from, int c0, int c1) {
  asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%0, {%2, %3}], [%1];" ::"l"(m), "r"(address(from)), "r"(c0), "r"(c1) : "memory");
}
TL_DEV void put_box(const tensor_map *m, const void *from, int c0, int c1, int c2) {
  asm volatile("cp.async.bulk.tensor.3d.global.shared::cta.tile.bulk_group [%0, {%2, %3, %4}], [%1];"
               ::"l"(m), "r"(address(from)), "r"(c0), "r"(c1), "r"(c2) : "memory");
}
TL_DEV void put_box(const tensor_map *m, const void *from, int c0, int c1, int c2, int c3) {
  asm volatile("cp.async.bulk.tensor.4d.global.shared::cta.tile.bulk_group [%0, {%2, %3, %4, %5}], [%1];"
               ::"l"(m), "r"(address(from)), "r"(c0), "r"(c1), "r"(c2), "r"(c3) : "memory");
}
TL_DEV void put_box(const tensor_map *m, const void *from, int c0, int c1, int c2, int c3, int c4) {
  asm volatile("cp.async.bulk.tensor.5d.global.shared::cta.tile.bulk_group [%0, {%2, %3, %4, %5, %6}], [%1];"
               ::"l"(m), "r"(address(from)), "r"(c0), "r"(c1), "r"(c2), "r"(c3), "r"(c4) : "memory");
}
TL_DEV void prefetch_map(const tensor_map *m) { asm volatile("prefetch.tensormap [%0];" ::"l"(m) : "memory"); }
TL_DEV void put_commit() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }
// All but the last N sources may be written again.
template <int N = 0> TL_DEV void put_read() { asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(N) : "memory"); }
TL_DEV void fence_copies() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }  // ordinary stores and loads before copies, products

// ---- swizzled tiles
TL_DEV void store_matrix(u32 a, u32 r0, u32 r1, u32 r2, u32 r3) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(a), "r"(r0), "r"(r1), "r"(r2), "r"(r3) : "memory");
}

// ---- wgmma
TL_DEV void mma_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
TL_DEV void mma_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
template <int N> TL_DEV void mma_wait() { asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(N) : "memory"); }
}  // namespace tl
