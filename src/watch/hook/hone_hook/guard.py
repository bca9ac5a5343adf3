"""What keeps the program whole: an exception in the hook is a line on stderr, and the end of the hook alone."""
import functools
import sys


def say(text):
    try:
        sys.stderr.write("hone: %s\n" % text)
        sys.stderr.flush()
    except Exception:
        pass                            # a closed stderr is the program's own choice


def guarded(function):
    """function, whose exceptions are said and not raised. SystemExit passes: it is how --stop ends the program."""
    @functools.wraps(function)
    def call(*args):
        try:
            return function(*args)
        except Exception as error:
            say("watch: %s: %s; the program goes on" % (type(error).__name__, error))
            return None
    return call
