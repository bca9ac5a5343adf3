"""What a rank has to say, as OUT/rankN/watch.json: written anew after every phase, so that a program that dies leaves what was known."""
import json
import os
import sys

FORMAT = 1


def _ranks_here(world_size):
    """Of the job's ranks, those that this launcher started on this machine."""
    here = os.environ.get("LOCAL_WORLD_SIZE", "")
    return int(here) if here.isdigit() else world_size


def new_result(torch, rank, world_size, device):
    return {"format": FORMAT, "rank": rank, "world_size": world_size, "ranks_here": _ranks_here(world_size), "pid": os.getpid(), "python": "%d.%d.%d" % sys.version_info[:3],
            "torch": str(torch.__version__), "device": device.describe(), "steps": 0, "recorded": [], "notes": [], "finished": False, "ended": False}


def write_result(folder, result):
    path = os.path.join(folder, "watch.json")
    new = "%s.%d" % (path, os.getpid())
    with open(new, "w") as f:
        json.dump(result, f, indent=1)
        f.write("\n")
    os.replace(new, path)
