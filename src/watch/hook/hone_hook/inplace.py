"""Other code for a function that keeps its identity, as others may hold it already, or know it by that: torch's compiler does."""
import types


class InPlace:
    """From now until close, a call of function runs the code of stand_in, which gets `named` and _hone_plain, what the function was, as keyword arguments.
    hidden: the code says that it is of the same file, so that whoever leaves out files leaves it out as well."""

    def __init__(self, function, stand_in, hidden=False, **named):
        self.function, self.code, self.defaults = function, function.__code__, function.__kwdefaults__
        plain = types.FunctionType(self.code, function.__globals__, function.__name__, function.__defaults__, function.__closure__)
        plain.__kwdefaults__ = self.defaults
        self.wrapped = hasattr(function, "__wrapped__")
        if not self.wrapped:
            function.__wrapped__ = plain                # for who asks for its signature or its source
        function.__kwdefaults__ = dict(self.defaults or {}, _hone_plain=plain, **named)
        same = {"co_filename": self.code.co_filename, "co_firstlineno": self.code.co_firstlineno, "co_name": self.code.co_name} if hidden else {}
        function.__code__ = stand_in.__code__.replace(co_freevars=self.code.co_freevars, **same)

    def close(self):
        self.function.__code__, self.function.__kwdefaults__ = self.code, self.defaults
        if not self.wrapped:
            del self.function.__wrapped__
