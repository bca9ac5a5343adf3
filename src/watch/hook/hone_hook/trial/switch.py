"""What all switches have in common."""

COMPILE, CHANNELS_LAST, AUTOCAST = 1, 2, 3      # what goes around what in a model's call: compiled code innermost


def names_of(roots):
    """How many roots of each class there are: what hone_settings.py knows them by."""
    names = {}
    for root in roots:
        names[root.name] = names.get(root.name, 0) + 1
    return names


class Switch:
    name = rule = None                  # the name is the table's: switches.txt
    kind = "exact"
    group = None
    skip = 1                            # steps at the start of a turn that are not timed
    warm = 0                            # steps of a turn before the first that counts: the first use takes long
    settle = 0                          # steps behind the trial, before the program has its state back: what was built anew finds its shape in them
    shared = False                      # it stays on until a turn ends, as all ranks must have it in the same steps
    counterpart = None                  # what the other side of the comparison has on, where that is not just the program as it is

    def applies(self, facts):
        """None, or why there is nothing to do here."""

    def check(self, facts, state):
        """Gates of its own, before the first step with it; the state is put back by whoever calls."""
        return []
