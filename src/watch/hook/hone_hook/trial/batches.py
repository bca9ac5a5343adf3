"""The order of data: while a trial runs, every DataLoader hands out the same batches again in every turn.

A tape stands before each iterator. It keeps what the iterator gave since the trial began, and plays it again from the start; after the trial
it plays once more, so that the program meets the batches that it would have met, and then it is gone. What a loader without workers gives is loaded once
more then: its dataset may draw random numbers, the program's own, and others come behind them. A batch that a replay hands out costs no
time to load, so the tape waits as long as the loading took: a step that waits for data still does.

Batches are kept twice: the one that is handed out, and a copy with which it is put right if the program writes into it.
"""
import copy
import sys
import weakref
from time import perf_counter, sleep

import torch
from torch.utils.data.dataloader import _BaseDataLoaderIter, _DatasetKind, _SingleProcessDataLoaderIter

BYTES_MOST = 1 << 30                    # of all batches on a tape; a longer turn begins the tape again
READ_AHEAD = ("accelerate.data_loader",)        # modules that hold one batch in their hand while the program trains on the one before
WAITS = 0.03                            # of a step: a loader with workers that is waited for longer than this sets the pace


# ---- one batch

class _Tensor:
    def __init__(self, tensor):
        self.tensor, self.clean = tensor, tensor.detach().clone()
        self.version = tensor._version

    def give(self):
        if self.tensor._version != self.version:
            self.tensor.data.copy_(self.clean)
            self.version = self.tensor._version
        return self.tensor

    def bytes(self):
        return 2 * self.clean.numel() * self.clean.element_size()


class _Array:
    """Of numpy, which does not say whether it was written."""

    def __init__(self, array):
        self.array, self.clean = array, array.copy()

    def give(self):
        if self.array.flags.writeable:
            self.array[...] = self.clean
        return self.array

    def bytes(self):
        return 2 * self.clean.nbytes


class _Whole:
    """What cannot be taken apart is copied each time."""

    def __init__(self, value):
        self.clean = copy.deepcopy(value)

    def give(self):
        return copy.deepcopy(self.clean)

    def bytes(self):
        return 0


class _Several:
    def __init__(self, kept, build):
        self.kept, self.build = kept, build

    def give(self):
        return self.build([k.give() for k in self.kept])

    def bytes(self):
        return sum(k.bytes() for k in self.kept)


def _dict_like(value):
    """A mapping of any class that can be copied and set, key by key."""
    keys = list(value.keys())

    def build(values, empty=copy.copy(value)):
        new = copy.copy(empty)
        for key in [k for k in new.keys() if k not in keys]:
            del new[key]
        for key, v in zip(keys, values):
            new[key] = v
        return new
    return _Several([keep(value[k]) for k in keys], build)


def keep(value):
    if isinstance(value, torch.Tensor):
        return _Tensor(value)
    if type(value).__module__ == "numpy" and hasattr(value, "flags") and getattr(value, "dtype", None) is not None and value.dtype != object and value.ndim:
        return _Array(value)
    if type(value) is dict or (hasattr(value, "keys") and hasattr(value, "__setitem__") and hasattr(value, "__delitem__")):
        return _dict_like(value)
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return _Several([keep(v) for v in value], lambda values, kind=type(value): kind(*values))
    if type(value) in (list, tuple):
        return _Several([keep(v) for v in value], type(value))
    return _Whole(value)


# ---- the batches of one iterator

def _can_load_again(iterator):
    """In this process, by an index."""
    return isinstance(iterator, _SingleProcessDataLoaderIter) and iterator._dataset_kind == _DatasetKind.Map


def _noting_index(iterator, draw):
    """A batch, and which one that was."""
    plain, seen = iterator._next_index, []

    def next_index():
        seen.append(plain())
        return seen[-1]
    iterator._next_index = next_index
    try:
        return draw(), seen
    finally:
        del iterator._next_index


def _again(iterator, draw, index):
    iterator._next_index = lambda: index
    try:
        return draw()
    finally:
        del iterator._next_index


class Tape:
    def __init__(self, iterator):
        self.iterator = weakref.ref(iterator)
        self.workers = iterator._num_workers
        self.batches, self.at, self.bytes = [], 0, 0
        self.indices = [] if _can_load_again(iterator) else None        # of the batches
        self.ended = False              # the iterator has no more
        self.source = None              # another iterator that stands in for it (loaders.py)
        self.loads, self.draws, self.given_at = 0.0, 0, None
        self.wait_s, self.period_s = 0.0, 0.0
        self.held = None                # the batch in the hand of who reads ahead, when the trial began

    def survey(self, draw, is_ahead):
        start = perf_counter()
        batch = draw()
        self.loads += perf_counter() - start
        self.draws += 1
        self.held = keep(batch) if is_ahead else None
        return batch

    def set_pace(self, seconds):
        """From a survey that took so long: how long a batch takes to load here, or how often workers bring one."""
        if self.draws:
            load, period = self.loads / self.draws, seconds / self.draws
            if self.workers == 0:
                self.wait_s = load
            elif load > WAITS * period:
                self.period_s = period

    def rewind(self):
        self.at, self.given_at = 0, None

    def play(self, draw):
        if self.at == len(self.batches) and not self._record(draw):
            self.at = 0
        else:
            self._wait()
        self.at += 1
        return self.batches[self.at - 1].give()

    def _record(self, draw):
        """False: nothing more to record; the tape begins again. Without a batch on it that is the end of the data."""
        if self.ended or self.bytes > BYTES_MOST:
            return False
        try:
            self._append(draw)
        except StopIteration:
            self.ended = True
            if not self.batches:
                raise
            return False
        self.bytes += self.batches[-1].bytes()
        return True

    def _append(self, draw):
        if self.indices is None:
            self.batches.append(keep(draw()))
        else:
            batch, seen = _noting_index(self.iterator(), draw)
            self.batches.append(keep(batch))
            self.indices += seen

    def _wait(self):
        now = perf_counter()
        until = now + self.wait_s
        if self.period_s and self.given_at is not None:
            until = self.given_at + self.period_s
        if until > now:
            _wait_until(until)
        self.given_at = perf_counter()

    def drain(self, draw):
        """After the trial: what is on the tape, and then the iterator itself."""
        if self.at == len(self.batches):
            return draw()
        batch, self.batches[self.at] = self.batches[self.at].give(), None       # put right even if it is the dataset's own
        self.at += 1
        return batch if self.indices is None else _again(self.iterator(), draw, self.indices[self.at - 1])

    def begin_drain(self, iterator):
        """What is loaded again is counted again."""
        self.source = None
        if self.indices is not None:
            iterator._num_yielded -= len(self.batches)
        self.yielded = iterator._num_yielded

    def is_empty(self):
        return self.at >= len(self.batches)


def _wait_until(when):
    """To a few microseconds: sleeping alone comes back late."""
    while True:
        left = when - perf_counter()
        if left <= 0:
            return
        if left > 2e-3:
            sleep(left - 1e-3)


# ---- all of them

class Tapes:
    """Stands before the __next__ of all iterators of DataLoaders, from the survey until the last tape has played."""

    def __init__(self, broke):
        self.broke = broke              # is told of exceptions in a loader that stands in, and says whether it was ours
        self.tapes = weakref.WeakKeyDictionary()        # by iterator
        self.mode, self.plain = None, None
        self.closing = False            # the last step of a turn: who reads ahead takes what the next turn begins with
        self.live = False               # loaders that stand in are read; the first step of a turn has the tape's batch

    def begin_survey(self):
        self.plain, tapes = _BaseDataLoaderIter.__next__, self

        def __next__(iterator):
            return tapes.next(iterator)
        _BaseDataLoaderIter.__next__ = __next__
        self.mode = "survey"

    def next(self, iterator):
        if self.mode == "survey" and iterator not in self.tapes:
            self.tapes[iterator] = Tape(iterator)
        tape = self.tapes.get(iterator)
        if tape is None or self.mode is None:
            if self.mode == "drain":
                self._forget_empty()            # the program may have let go of the others
            return self.plain(iterator)         # made since the survey: of an evaluation
        if self.mode == "drain":
            return self._drain(iterator, tape)
        if self.mode == "play" and self.live and not self.closing and tape.source is not None:
            try:
                return next(tape.source)
            except Exception as error:
                if not self.broke(error):
                    raise
        def draw():
            return self.plain(iterator)
        if self.mode == "survey":
            return self._survey(iterator, tape, draw, sys._getframe(2).f_globals.get("__name__") in READ_AHEAD)
        return tape.held.give() if self.closing and tape.held else tape.play(draw)

    def _survey(self, iterator, tape, draw, is_ahead):
        """One that ends here may be that of an evaluation, which has to end in a trial, too; that of the next epoch gets a tape of its own."""
        try:
            return tape.survey(draw, is_ahead)
        except StopIteration:
            del self.tapes[iterator]
            raise

    def begin_trial(self, seconds):
        """Tapes of iterators that the survey's steps have read."""
        for tape in self.tapes.values():
            tape.set_pace(seconds)
        self.mode = "play"

    def close_turn(self):
        self.closing = True

    def rewind(self):
        self.live = self.closing = False
        for tape in self.tapes.values():
            tape.rewind()

    def begin_drain(self):
        if self.plain is None:
            return
        self.rewind()
        for iterator, tape in self.tapes.items():
            tape.begin_drain(iterator)
        self.mode = "drain"
        self._forget_empty()

    def _drain(self, iterator, tape):
        if iterator._num_yielded < tape.yielded:        # it was set back for another epoch: what is on the tape is of the one before
            del self.tapes[iterator]
            batch = self.plain(iterator)
        else:
            batch = tape.drain(lambda: self.plain(iterator))
        self._forget_empty()
        return batch

    def _forget_empty(self):
        for iterator in [i for i, tape in self.tapes.items() if tape.is_empty()]:
            del self.tapes[iterator]
        if not self.tapes:
            _BaseDataLoaderIter.__next__ = self.plain
            self.mode = None

    def all(self):
        return list(self.tapes.values())

    def kept(self):
        return sum(len(tape.batches) for tape in self.tapes.values())
