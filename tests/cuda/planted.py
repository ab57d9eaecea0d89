"""Faults planted into kernels for sm_90a are found out when those run on the processor (host_*.hpp), each for its reason.

    planted.py DEVICE_TEST TILE_DEVICE_TEST FAKE-DRIVER FAKE-COMPILER HOST.HPP OPERATORS TILE-PROGRAMS
"""
import concurrent.futures, os, re, shutil, subprocess, sys

test, tile_test, driver, compiler, host, operators, programs = sys.argv[1:]
if not shutil.which("c++"): sys.exit(77)
environment = {**os.environ, "BLOCKBUSTER_CUDA": driver, "BLOCKBUSTER_NVRTC": compiler, "BLOCKBUSTER_CACHE": "", "FAKE_CUDA": "host",
               "FAKE_HOST": host, "FAKE_SM": "90", "FAKE_PROCESSORS": "2"}
# A cluster of two blocks that take two tiles each, 7 parts of what is summed through rings of 4 buffers.
GATED = ("0", "product_gated", "M=256", "N=136", "K=400")
# Groups that take turns, one tile's end along with the next one's begin, tiles from a queue.
CAUSAL = ("0", "causal", "H=1", "N=700")
# Warps that copy for themselves, and merge what they have over a cluster.
DECODE = ("7", "decode", "G=2", "N=700")
# The same, with buffers that are filled again.
LONGER = ("7", "decode", "G=2", "N=1500")
# Parts of a product of few rows, which come to where tiles lay.
FEW = ("8", "heads_product", "M=16", "N=136", "H=12")
# One row and 8 columns beyond whole tiles.
EDGE = ("4", "product", "M=65", "N=136", "K=400")
# Two tiles of a queue at once for two blocks, which load for each other; the first passes over what the second begins with.
MATES = (None, "mates", "H=2", "N=512", "S=2", "P=2")
STUCK = "nobody can go on"
# what is wrong, what sed does, what is said
FAULTS = [
    ("nothing", "1s/^/ /", None),
    ("what threads wrote is put without a fence", "s/tl::fence_copies\\(\\);//", "without a fence"),
    ("a ring's buffer is released while products read it", "s/tl::mma_wait<2>\\(\\);/tl::mma_wait<6>();/", "is to come to byte .* which a product of thread"),
    ("a copier expects no bytes", "s/tl::ring_claim\\(sync.t2, t2_ring, .*\\);/tl::barrier_wait(\\&sync.t2.empty[t2_ring.at], t2_ring.phase ^ 1);/", STUCK),
    ("a copier expects too few bytes", "s/(tl::ring_claim\\(sync.t2, t2_ring, )(.*)\\);/\\1(\\2) \\/ 2);/; s/p.early >> 1/0/", STUCK),
    ("readers wait for the phase before", "s/tl::ring_wait\\(sync.t2, t2_ring\\);/tl::barrier_wait(\\&sync.t2.full[t2_ring.at], t2_ring.phase ^ 1);/",
     "where a box is on its way"),
    ("a copier waits for the parity of readers", "s/tl::ring_claim\\(sync.t2, t2_ring, (.*)\\);/tl::barrier_wait(\\&sync.t2.empty[t2_ring.at], t2_ring.phase), "
     "tl::barrier_expect(\\&sync.t2.full[t2_ring.at], \\1);/", STUCK),
    ("one tile has no copier", "s/threadIdx.x == 32\\)/threadIdx.x == 33000)/", STUCK),
    ("a barrier has a reader too few", "s/tl::ring_init\\(sync.t2, 8\\)/tl::ring_init(sync.t2, 7)/", "(is to come to byte|one arrival too many|not complete)"),
    ("a barrier has a reader too many", "s/tl::ring_init\\(sync.t2, 8\\)/tl::ring_init(sync.t2, 9)/", STUCK),
    ("a tile is not waited for", "s/tl::ring_wait\\(sync.t3, t3_ring\\);//", "where a box is on its way"),
    ("one group does not wait for a tile", "s/tl::ring_wait\\(sync.t3, t3_ring\\);/if (group == 0) tl::ring_wait(sync.t3, t3_ring);/",
     "(did not wait for|where a box is on its way)"),
    ("the last buffer is not released", "s/^      tl::ring_release_before\\(sync.t2, t2_ring, behind\\);//", STUCK),
    ("what is put is not waited for", "s/if \\(tl::lane\\(\\) == 0\\) tl::put_read\\(\\);//", "what it puts has not been read"),
    ("memory is written before it was put", "s/tl::put_read<1>\\(\\);/tl::put_read<9>();/", "puts and has not waited for"),
    ("products are not waited for", "s/tl::mma_wait<0>\\(\\);//", "(nobody waited for its products|which a product of thread)"),
    ("products without a fence for registers", "s/tl::mma_fence\\(\\);//", "without mma_fence"),
    ("sums are written while products run", "s/tl::mma_commit\\(\\); .. as many as products/tl::mma_commit(); t0[0] = 1.f;/", "sums were written"),
    ("barriers are not made for all to see", "s/tl::barrier_init_done\\(\\);//", "not made for all to see"),
    ("a block leaves its mate", "s/tl::cluster_leave\\(\\);//", "(which has ended|a phase is not complete)"),
    ("roles have too many registers", "s/tl::more_registers<232>/tl::more_registers<240>/", STUCK),
    ("a role keeps its registers", "s/tl::fewer_registers<[0-9]+>\\(\\);//", STUCK),
    ("a group reads beyond its tile", "s/group \\* 8192/group * 245760/", "of shared memory"),
]


FAULTS = [(GATED, *fault) for fault in FAULTS] + [
    (CAUSAL, "a group does not pass its turn on", "s/tl::named_arrive\\(2 - group, 256\\);//", STUCK),
    (CAUSAL, "a left operand is written while its product runs", "s/tl::mma_wait<1>\\(\\);/t22[0]++; tl::mma_wait<1>();/", "a left operand was written"),
    (CAUSAL, "sums are looked at before their product is made", "s/tl::mma_wait<1>\\(\\);//", "(error|which a product of thread)"),
    (CAUSAL, "nobody says that there is no tile more", "s/round\\+\\+, t = t < p.tiles [?] t : -1/round++, t); (void)(t = t < p.tiles ? t : -1/", "(nobody can go on|shared memory|error)"),
    (MATES, "nothing", "1s/^/ /", None),
    (MATES, "what comes for the mate alone is not passed over", "s/const int alone = .*/const int alone = 0;/", STUCK),
    (MATES, "readers of the mate are not counted", "s/ring_init\\(sync.k, 8 \\* mates\\)/ring_init(sync.k, 8)/", "(one arrival too many|on its way|which a product of thread)"),
    (MATES, "the mate is not told of a buffer that was read", "s/tl::ring_release\\(sync.v, v_ring, mates\\);/tl::ring_release(sync.v, v_ring);/", STUCK),
    (MATES, "each block's copier takes tiles for itself", "s/if \\(!mine\\) t = /t = /; s/if \\(mine\\) t = tl::mailbox_hear.*//; s/else tl::mailbox_put/tl::mailbox_put/",
     "(one arrival too many|nobody can go on)"),
    (MATES, "a copier begins with its own block", "s/ \\+ \\(mates - 1 - mine\\) \\* 128//", "(nobody can go on|bytes are missing)"),
    (DECODE, "blocks do not wait for each other's parts", "s/tl::barrier_wait_cluster\\(&sync.parts, 0\\);//", "(error|nobody waited for what is pushed)"),
    (DECODE, "blocks do not wait until others have begun", "s/tl::cluster_(arrive|wait)\\(\\);//", "may not have begun"),
    (DECODE, "a block expects the bytes of one part too few", "s/mine \\? 4 \\* blocks/mine ? 4 * (blocks - 1)/", STUCK),
    (DECODE, "parts are sent to the next block", "s/tl::away\\(hands, to\\)/tl::away(hands, (to + 1) % blocks)/", "(error|bytes are missing|nobody can go on)"),
    (LONGER, "a warp copies to where its loads may be on their way", "s/tl::fence_copies\\(\\);//", "which lane .* read without a fence"),
    (FEW, "parts come to where others still read tiles",
     "s/tl::cluster_(arrive|wait)\\(\\);//; s/TL_SHARED\\(tile_memory\\);/& tl::cluster_sync();/", "which may still read the box there"),
    (DECODE, "nobody says how many bytes come", "s/tl::barrier_expect\\(&sync.parts, .*//", STUCK),
    (DECODE, "warps do not wait for each other's parts", "s/__syncthreads\\(\\);//", "error"),
    (EDGE, "at an array's end whole boxes are expected", "s/tl::edge<([0-9]+)>\\([^()]*\\)/\\1/", STUCK),
    (EDGE, "at an array's end whole boxes come", "s/[^,]* < [0-9]+ \\? &p.x[0-9]+_edge : //", "(nobody can go on|bytes)"),
]


def run(fault):
    kernel, what, script, says = fault
    way, name, *extents = kernel
    command = [test, "cuda/" + way, "2e-3", os.path.join(operators, name + ".bb")] if way else [tile_test, os.path.join(programs, name + ".tile"), "2e-3"]
    ran = subprocess.run([*command, *extents], capture_output=True, text=True, timeout=300,
                         env={**environment, "FAKE_EDIT": script})
    said = ran.stdout + ran.stderr
    good = ran.returncode == 0 if says is None else ran.returncode == 1 and re.search(says, said)
    return f"{'ok   ' if good else 'WRONG'} {what}" + ("" if good else ": " + said[-1500:]), not good


with concurrent.futures.ThreadPoolExecutor(2) as pool:
    results = list(pool.map(run, FAULTS))
for line, _ in results: print(line)
sys.exit(any(bad for _, bad in results))
