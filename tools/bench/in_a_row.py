"""How long a run takes on a GPU among others that follow each other, by the host's clock."""
import statistics, time
import torch


def measure(run, rounds=51, row=20):
    """Microseconds of one of `row` runs, the median of `rounds` of them; the device is waited for behind each row."""
    for _ in range(5): run()
    torch.cuda.synchronize()
    took = []
    for _ in range(rounds):
        begin = time.perf_counter()
        for _ in range(row): run()
        torch.cuda.synchronize()
        took.append((time.perf_counter() - begin) / row * 1e6)
    return statistics.median(took)
