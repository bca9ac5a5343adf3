"""CPUs: how many cores there are, which are beside a GPU, which threads may run where, and what other programs take of them."""
import glob
import os
from time import perf_counter


def allowed():
    return os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set(range(os.cpu_count() or 1))


def parse_list(text):
    """"0-3,8" as a set."""
    cpus = set()
    for part in text.strip().split(","):
        if part:
            first, _, last = part.partition("-")
            cpus.update(range(int(first), int(last or first) + 1))
    return cpus


def _read(path):
    try:
        with open(path) as f:
            return f.read()
    except OSError:
        return None


def physical_cores():
    """Cores that this process may use: of threads that share one, one counts."""
    cores = set()
    for cpu in allowed():
        siblings = _read("/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list" % cpu)
        cores.add(frozenset(parse_list(siblings)) if siblings else cpu)
    return max(len(cores), 1)


def gpu_cpus(device):
    """The CPUs of the NUMA node that a GPU is on; empty where there is only one node, or where it is not known."""
    if device.kind != "cuda" or len(glob.glob("/sys/devices/system/node/node[0-9]*")) < 2:
        return set()
    import torch
    p = torch.cuda.get_device_properties(device.device)
    if not hasattr(p, "pci_bus_id"):
        return set()
    node = _read("/sys/bus/pci/devices/%04x:%02x:%02x.0/numa_node" % (p.pci_domain_id, p.pci_bus_id, p.pci_device_id))
    if node is None or int(node) < 0:
        return set()
    return parse_list(_read("/sys/devices/system/node/node%d/cpulist" % int(node)) or "") & allowed()


def set_affinity(cpus_of):
    """cpus_of(thread) for every thread of this process, None leaves one as it is; gives back what they had."""
    before = {}
    for name in os.listdir("/proc/self/task"):
        thread = int(name)
        try:
            before[thread] = os.sched_getaffinity(thread)
            cpus = cpus_of(thread)
            if cpus:
                os.sched_setaffinity(thread, cpus)
        except OSError:
            pass                        # it has ended
    return before


# ---- other programs

def busy_ticks(stat, cpus):
    """Of /proc/stat: what was done on these CPUs, by whomever, other systems included (steal)."""
    ticks = 0
    for line in stat.splitlines():
        name, *fields = line.split() or [""]
        if name[:3] == "cpu" and name[3:].isdigit() and int(name[3:]) in cpus:
            user, nice, system, _, _, irq, softirq, steal = map(int, (fields + ["0"] * 8)[:8])
            ticks += user + nice + system + irq + softirq + steal
    return ticks


def tree_ticks(stats, root):
    """Of texts of /proc/PID/stat by pid: what `root` did, those that it started, and those of them that have ended."""
    children, ticks = {}, {}
    for pid, text in stats.items():
        fields = text.rpartition(")")[2].split()
        children.setdefault(int(fields[1]), []).append(pid)
        ticks[pid] = sum(map(int, fields[11:15]))
    total, left = 0, [root]
    while left:
        pid = left.pop()
        total += ticks.get(pid, 0)
        left += children.get(pid, [])
    return total


class Others:
    """What other programs take of the CPUs that this one may use, from now on."""

    def __init__(self):
        self.before = self._look()

    def share(self):
        """None: not known."""
        now = self._look()
        if self.before is None or now is None or not now[0] > self.before[0]:
            return None
        wall, others = now[0] - self.before[0], now[1] - self.before[1]
        return max(others, 0) / os.sysconf("SC_CLK_TCK") / (wall * len(allowed()))

    @staticmethod
    def _look():
        stat, stats = _read("/proc/stat"), {}
        for path in glob.glob("/proc/[0-9]*/stat"):
            text = _read(path)
            if text:
                stats[int(path.split("/")[2])] = text
        return (perf_counter(), busy_ticks(stat, allowed()) - tree_ticks(stats, os.getpid())) if stat else None
