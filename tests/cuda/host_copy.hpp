/* host_copy.hpp - copies of boxes on the processor, and what is amiss with memory that they share with threads: for kernels over
 * sm90.cuh, in tests (host.hpp includes it).
 *
 * Boxes, and values that another block pushes, count at a barrier as bytes.  A box comes when somebody waits for it and nobody else can go on, the youngest first; what is put is read when somebody waits for that.
 * Errors are: memory that is written while a box is on its way there, while what is put from there has not been read, or while a product that reads it runs; memory that
 * is read while a box is on its way there, or has come and this thread did not wait for it; what threads wrote, read by a copy or a product without fence_copies();
 * what a thread's warp read, written by a copy that it asks for, without fence_copies() either: its loads may still be on their way; boxes that nobody waited for and puts
 * that were not waited for when a block ends.
 */
#pragma once

namespace tl {
struct alignas(64) tensor_map {
  u64 bits[16];
};

void fence_copies();

/* `at`: the box's first element, innermost axis first. */
void ask_for(int mates, void *to, const tensor_map *m, u64 *barrier, const int *at, int axes);
template <class... C> TL_DEV void copy_box(void *to, const tensor_map *m, u64 *b, C... c) {
  const int at[] = {c...};
  ask_for(1, to, m, b, at, (int)sizeof...(c));
}
template <class... C>
TL_DEV void copy_box_to_all(int mates, void *to, const tensor_map *m, u64 *b, C... c) {
  const int at[] = {c...};
  ask_for(mates, to, m, b, at, (int)sizeof...(c));
}

/* An address of another block has its number above the bytes of a block's memory. */
TL_DEV u32 away(const void *, int rank) {
  return (u32)rank << 24;
}
void send(float *to, const float *value, u32 count, u64 *b, u32 there);
TL_DEV void push(float *to, float value, u64 *b, u32 there) {
  send(to, &value, 1, b, there);
}
TL_DEV void push(float *to, float x, float y, float z, float w, u64 *b, u32 there) {
  const float value[] = {x, y, z, w};
  send(to, value, 4, b, there);
}

void put(const tensor_map *m, const void *from, const int *at, int axes);
template <class... C> TL_DEV void put_box(const tensor_map *m, const void *from, C... c) {
  const int at[] = {c...};
  put(m, from, at, (int)sizeof...(c));
}
void put_commit();
void put_read_but(int left); /* all groups are read but so many */
template <int N = 0> TL_DEV void put_read() {
  put_read_but(N);
}
TL_DEV void prefetch_map(const tensor_map *) {}

/* Four matrices of 8 x 8 elements to where lanes 8 i to 8 i + 7 say for matrix i, as fragments hold them. */
void store_matrix(u32 a, u32 r0, u32 r1, u32 r2, u32 r3);
} // namespace tl
