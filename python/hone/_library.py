"""The functions of hone.h that are about traces, through ctypes."""
import ctypes
import os
import pathlib

_lib = ctypes.CDLL(str(pathlib.Path(__file__).with_name("libhone_analyzer.so")))
_text = ctypes.POINTER(ctypes.c_char)


class _Options(ctypes.Structure):
    _fields_ = [("step_ms", ctypes.c_double), ("peak_tflops", ctypes.c_double), ("peak_gbps", ctypes.c_double)]


def _declare(name, result, *arguments):
    function = getattr(_lib, name)
    function.restype, function.argtypes = result, arguments
    return function


_version = _declare("hone_version", ctypes.c_char_p)
_message = _declare("hone_message", ctypes.c_char_p)
_free = _declare("hone_free", None, _text)
_analyze = _declare("hone_analyze", ctypes.c_int, ctypes.POINTER(ctypes.c_void_p), ctypes.POINTER(ctypes.c_char_p), ctypes.c_int, ctypes.POINTER(_Options))
_json = _declare("hone_analysis_json", ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(_text))
_markdown = _declare("hone_analysis_markdown", ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(_text))
_screen = _declare("hone_analysis_screen", ctypes.c_int, ctypes.c_void_p, ctypes.c_int, ctypes.POINTER(_text))
_write = _declare("hone_analysis_write", ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p)
_count = _declare("hone_analysis_count", ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p, ctypes.POINTER(ctypes.c_int))
_release = _declare("hone_analysis_free", None, ctypes.c_void_p)


class HoneError(Exception):
    """What was wrong, and what would be right. `status`: 2 wrong input, 3 the machine cannot."""

    def __init__(self, status, message):
        super().__init__(message)
        self.status = status


def version():
    return _version().decode()


def _need(status):
    if status:
        raise HoneError(status, _message().decode("utf-8", "replace"))


def _paths(traces):
    """One path or several, as the library takes them: a name that holds a NUL would end there."""
    paths = [os.fsencode(t) for t in ([traces] if isinstance(traces, (str, bytes)) or hasattr(traces, "__fspath__") else traces)]
    for path in paths:
        if b"\0" in path:
            raise ValueError(f"the path {path!r} holds a NUL")
    return paths


class Analysis:
    """Traces that were read and diagnosed. Closed by `with`, close(), or when it is no longer used."""

    def __init__(self, traces, step_ms=0, peak_tflops=0, peak_gbps=0):
        self._handle = ctypes.c_void_p()
        paths = _paths(traces)
        options = _Options(step_ms or 0, peak_tflops or 0, peak_gbps or 0)
        _need(_analyze(ctypes.byref(self._handle), (ctypes.c_char_p * len(paths))(*paths), len(paths), ctypes.byref(options)))

    def close(self):
        handle, self._handle = self._handle, ctypes.c_void_p()
        _release(handle)

    def __enter__(self):
        return self

    def __exit__(self, *why):
        self.close()

    def __del__(self):
        if getattr(self, "_handle", None):
            self.close()

    def _text(self, function, *arguments):
        out = _text()
        _need(function(self._handle, *arguments, ctypes.byref(out)))
        try:
            return ctypes.string_at(out).decode("utf-8", "replace")
        finally:
            _free(out)

    def json(self):
        return self._text(_json)

    def markdown(self):
        return self._text(_markdown)

    def screen(self, color=False):
        return self._text(_screen, 1 if color else 0)

    def write(self, folder):
        _need(_write(self._handle, os.fsencode(folder)))

    def count(self, severity):
        """How many findings are at least that severe: low, medium, high or critical."""
        n = ctypes.c_int()
        _need(_count(self._handle, severity.encode(), ctypes.byref(n)))
        return n.value
