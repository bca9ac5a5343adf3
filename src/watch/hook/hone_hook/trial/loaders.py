"""DataLoaders built anew, beside the program's own: with workers, and with pinned memory.

Nothing of the program's iterator changes. A second loader of the same dataset stands in for it during turns, with the setting on one side and
without it on the other, so that both load for real; what they load is used in the trial alone.
"""
import itertools

import torch
from torch.utils.data import DataLoader
from torch.utils.data.dataloader import _DatasetKind

from .cpus import allowed
from .state import Plain
from .switch import Switch

WORKERS_MOST, INDICES_MOST, PATIENCE_S = 8, 4096, 60
LOADS = 0.005                           # of a step, which loading must take for workers to be tried


def _samplers(sampler):
    """It, and the one that it asks, and so on."""
    found = []
    while sampler is not None and not any(s is sampler for s in found):
        found.append(sampler)
        sampler = getattr(sampler, "sampler", None)
    return found


def _is_used_up(sampler):
    """What it has given it does not give again."""
    return any(hasattr(type(s), "__next__") for s in _samplers(sampler))


class _Again:
    """Indices of the program's sampler, round and round. What it counts, and its random numbers, are put back."""

    def __init__(self, sampler):
        objects = [vars(s) for s in _samplers(sampler) if hasattr(s, "__dict__")]
        before = [Plain(o) for o in objects]
        generators = [(g, g.get_state()) for o in objects for g in o.values() if isinstance(g, torch.Generator)]
        self.indices = list(itertools.islice(iter(sampler), INDICES_MOST))
        for part in before:
            part.restore()
        for generator, state in generators:
            generator.set_state(state)

    def __iter__(self):
        return itertools.cycle(self.indices)

    def __len__(self):
        return len(self.indices)


def _build(iterator, **settings):
    """An iterator like this one, but with these settings."""
    given = dict(num_workers=iterator._num_workers, pin_memory=iterator._pin_memory, collate_fn=iterator._collate_fn,
                 worker_init_fn=getattr(iterator, "_worker_init_fn", None))
    given.update(settings)
    given["timeout"] = PATIENCE_S if given["num_workers"] else 0        # a worker that hangs ends this turn and not the program
    indices = _Again(iterator._index_sampler)
    which = dict(batch_sampler=indices) if iterator._auto_collation else dict(sampler=indices, batch_size=None)
    return iter(DataLoader(iterator._dataset, **which, **given))


class Loaders:
    """Which loaders stand in for those of the program just now."""

    def __init__(self, tapes):
        self.tapes = tapes
        self.changes = []               # iterator -> settings, of every switch that is on
        self.built = {}                 # by tape and settings; they live until the end of the trial, as workers take long to start

    def add(self, change):
        self.changes.append(change)
        for tape in self.tapes.all():
            iterator = tape.iterator()
            if iterator is not None and iterator._dataset_kind == _DatasetKind.Map:
                tape.source = self._of(tape, iterator)

    def _of(self, tape, iterator):
        settings = {k: v for change in self.changes for k, v in change(iterator).items()}
        key = (tape, tuple(sorted(settings.items())))
        if key not in self.built:
            self.built[key] = _build(iterator, **settings)
        return self.built[key]

    def clear(self):
        self.changes = []
        for tape in self.tapes.all():
            tape.source = None

    def loaded_ahead(self):
        """How many steps it takes until what was loaded before a turn is used up."""
        return max([2 * tape.source._num_workers for tape in self.tapes.all() if tape.source is not None], default=0)

    def close(self):
        self.clear()
        for built in self.built.values():
            getattr(built, "_shutdown_workers", lambda: None)()
        self.built = {}


class _AsItIs(Switch):
    """The other side: a loader that is built anew, too, but as the program has it."""
    name = "loader-as-it-is"

    def on(self, facts):
        facts.loaders.add(lambda iterator: {})

    def off(self, facts):
        facts.loaders.clear()


class _Loader(Switch):
    rule, kind = "data-stall", "exact"
    counterpart = _AsItIs()

    def on(self, facts):
        facts.loaders.add(self.change)

    def off(self, facts):
        facts.loaders.clear()

    def iterators(self, facts):
        found = [tape.iterator() for tape in facts.tapes.all()]
        return [i for i in found if i is not None]

    def _changes(self, facts):
        every = [self.change(i) for i in self.iterators(facts)]
        return {k: v for change in every for k, v in change.items()}

    def lines(self, facts):
        return ["loader = DataLoader(..., %s)" % ", ".join("%s=%s" % pair for pair in self._changes(facts).items())]

    def settings(self, facts):
        return "use_loader(%s)" % ", ".join("%s=%s" % pair for pair in self._changes(facts).items())


    def why_not(self, iterators):
        """No loader can stand in for these; None: one can."""
        if not iterators:
            return "no DataLoader was read"
        if any(i._dataset_kind != _DatasetKind.Map for i in iterators):
            return "its dataset is iterable, and has no indices to load again"
        if any(_is_used_up(i._index_sampler) for i in iterators):
            return "its sampler gives every index once, and the trial would take some"
        return None


class Workers(_Loader):
    def change(self, iterator):
        return {"num_workers": min(WORKERS_MOST, max(2, 2 * iterator._num_workers, self.cpus // 2))}

    def applies(self, facts):
        self.cpus = max(len(allowed()) // facts.ranks_here, 1)
        iterators = self.iterators(facts)
        why = self.why_not(iterators)
        if why:
            return why
        if facts.load_share < LOADS:
            return "loading takes %.1f %% of a step" % (100 * facts.load_share)
        return "it has as many as there are CPUs" if all(i._num_workers >= min(self.cpus, WORKERS_MOST) for i in iterators) else None


class PinnedMemory(_Loader):
    rule = "pageable-copies"

    def change(self, iterator):
        return {"pin_memory": True}

    def applies(self, facts):
        if facts.device.kind != "cuda":
            return "only for a GPU"
        iterators = self.iterators(facts)
        return self.why_not(iterators) or ("it is on" if all(i._pin_memory for i in iterators) else None)
