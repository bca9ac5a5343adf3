"""The last phase: what was found is on disk, and the program goes on alone, or is ended as --stop asks."""


class Finish:
    at_once = True                      # nothing to wait for

    def __init__(self, stop):
        self.stop = stop

    def begin(self, session):
        session.result["finished"] = True
        session.result["stopped"] = self.stop
        session.result["device"] = session.device.describe()

    def boundary(self, session, steps=1):
        return True

    def end(self, session):
        pass
