"""How far a process got, for the words that hone has when there is nothing to analyze: a line in OUT/processes/PID."""
import os

PYTHON, TORCH, STEP = "python", "torch", "step"


def tell(out, word):
    folder = os.path.join(out, "processes")
    try:
        os.mkdir(folder)
    except FileExistsError:
        pass
    except FileNotFoundError:
        return                          # hone has ended, and taken its folder away
    with open(os.path.join(folder, str(os.getpid())), "w") as f:
        f.write(word + "\n")
