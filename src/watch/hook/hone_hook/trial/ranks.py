"""The ranks of a job, which must do the same in the same step: what one of them has measured or decided is told to all, at boundaries that all reach.

They speak through the store by which torch.distributed found them. The program's own groups are not used: a message among its collectives could meet one
of those. Every rank tells something in every round (`gather`); one whose trial has ended says so in place of it (`leave`), and all others end theirs at the
same boundary.
"""
import json
from time import monotonic, sleep

import torch

PATIENCE_S, FIRST_PATIENCE_S, LAST_PATIENCE_S, POLL_S = 300, 60, 10, 2e-4


class Apart(Exception):
    """The other ranks cannot be reached, or have ended their trial; why."""


class Alone:
    """A program of one rank."""
    rank, is_alone = 0, True

    def gather(self, value, patience=None):
        return [value]

    def leave(self, why):
        pass


class Ranks:
    is_alone = False

    def __init__(self, store, rank, n):
        self.store, self.rank, self.n = store, rank, n
        self.round = 0

    def _key(self, number, what):
        return "hone/watch/%d/%s" % (number, what)

    def _tell(self, message):
        self.store.set(self._key(self.round, self.rank), json.dumps(message))
        self.store.add(self._key(self.round, "told"), 1)

    def _wait(self, patience):
        """Until all have told; a store that is asked for what is not there would wait by itself, with others of this process behind it."""
        end = monotonic() + patience
        while self.store.add(self._key(self.round, "told"), 0) < self.n:
            if monotonic() > end:
                raise Apart("not all ranks come to the same step: %.0f s were waited for them" % patience)
            sleep(POLL_S)

    def _forget(self, number):
        """Whoever is in this round has read all of the one before."""
        for what in [self.rank] + (["told"] if self.rank == 0 else []):
            try:
                self.store.delete_key(self._key(number, what))
            except (RuntimeError, NotImplementedError):
                return                  # a store of files keeps them

    def gather(self, value, patience=PATIENCE_S):
        """What every rank has told in this round, by rank."""
        self._tell({"value": value})
        try:
            self._wait(patience)
        except Apart as why:
            self.round += 1
            self.leave(str(why))        # who comes late is told
            raise
        told = [json.loads(self.store.get(self._key(self.round, rank))) for rank in range(self.n)]
        self._forget(self.round - 1)
        self.round += 1
        for rank, message in enumerate(told):
            if "left" in message:
                raise Apart("rank %d: %s" % (rank, message["left"]))
        return [message["value"] for message in told]

    def leave(self, why):
        """In place of the round that the others are in or will be; the next one finds all together again."""
        self._tell({"left": why})
        self.round += 1


def ranks_of(session):
    if session.world_size == 1:
        return Alone()
    distributed = torch.distributed
    if not (distributed.is_available() and distributed.is_initialized()):
        raise Apart("the ranks do not know each other: torch.distributed has no process group")
    from torch.distributed.distributed_c10d import _get_default_store
    store = _get_default_store()
    if store is None:
        raise Apart("the ranks have no store by which they could speak")
    return Ranks(store, session.rank, session.world_size)


def named(ranks, rank, text):
    """Who said it, where there are several."""
    return text if ranks.is_alone else "rank %d: %s" % (rank, text)


def first_word(ranks, words):
    """Of words of all ranks, each of which may be None: the first that is not, with who said it."""
    return next((named(ranks, rank, word) for rank, word in enumerate(words) if word is not None), None)
