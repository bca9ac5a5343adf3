"""The device that a program trains on: how to wait for it, what it is called, how much of its memory was taken."""


class Device:
    """`kind` is cpu, cuda (also ROCm), mps, xpu or what else torch calls it."""

    def __init__(self, torch, optimizer):
        self.torch = torch
        self.device = _of_parameters(optimizer) or _of_process(torch)
        self.kind = self.device.type
        self._wait = _waiter(torch, self.device)

    def synchronize(self):
        """Until everything that was handed to the device is done. Nothing to wait for on a CPU."""
        if self._wait:
            self._wait()

    def describe(self):
        torch, words = self.torch, {"kind": self.kind}
        if self.kind == "cuda":
            words["name"] = torch.cuda.get_device_name(self.device)
            words["rocm"] = getattr(torch.version, "hip", None) is not None
            words["peak_bytes"] = int(torch.cuda.max_memory_allocated(self.device))
        elif self.kind == "cpu":
            words["threads"] = torch.get_num_threads()
        return words


def _of_parameters(optimizer):
    """Where the first parameter that is not on the CPU lives, else the first of all."""
    devices = [p.device for g in getattr(optimizer, "param_groups", []) for p in g["params"]]
    far = [d for d in devices if d.type != "cpu"]
    return (far or devices or [None])[0]


def _of_process(torch):
    """Without an optimizer: the GPU if the program has begun to use one."""
    if torch.cuda.is_available() and torch.cuda.is_initialized():
        return torch.device("cuda", torch.cuda.current_device())
    apple, intel = getattr(torch, "mps", None), getattr(torch, "xpu", None)
    if hasattr(apple, "current_allocated_memory") and torch.backends.mps.is_available() and apple.current_allocated_memory():
        return torch.device("mps")
    if hasattr(intel, "is_initialized") and intel.is_initialized():
        return torch.device("xpu", intel.current_device())
    return torch.device("cpu")


def _waiter(torch, device):
    if device.type == "cuda":
        return lambda: torch.cuda.synchronize(device)
    module = getattr(torch, device.type, None)
    return getattr(module, "synchronize", None) if device.type != "cpu" else None
