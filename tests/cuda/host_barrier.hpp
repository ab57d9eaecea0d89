/* host_barrier.hpp - clusters, registers of roles, and barriers in shared memory on the processor: for kernels over sm90.cuh, in tests
 * (host.hpp includes it).
 *
 * A barrier has a phase, arrivals that it is waiting for, and bytes that are on their way, as PTX says of mbarriers.  What lies in shared
 * memory is its number, so that who writes there is found out.  More arrivals than were said at its beginning, phases that are not complete when its
 * block ends, and use by others before barrier_init_done() are errors, which say where the barrier lies.
 */
#pragma once

namespace tl {
void fewer_registers(int count);
void more_registers(int count);
template <int R> TL_DEV void fewer_registers() {
  fewer_registers(R);
}
template <int R> TL_DEV void more_registers() {
  more_registers(R);
}
TL_DEV void let_next() {}
TL_DEV void after_earlier() {}

int cluster_rank();
int cluster_size();
void cluster_sync();
void cluster_leave();
void cluster_arrive();
void cluster_wait();
const float *peer(const float *p, int rank);

void barrier_init(u64 *b, int count);
void barrier_init_done();
void barrier_expect(u64 *b, int bytes);
void barrier_arrive(u64 *b);
void barrier_arrive_at_mate(u64 *b);
void tell_mate(int *at, int value, u64 *b);
void barrier_wait(u64 *b, u32 parity); /* until the phase of this parity is complete */
void barrier_wait_cluster(u64 *b, u32 parity);
} // namespace tl
