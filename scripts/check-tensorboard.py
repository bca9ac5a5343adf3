#!/usr/bin/env python3
"""Reads a folder of event files with TensorBoard's own code (PyPI: tensorboard) and prints what it would show.

usage: check-tensorboard.py FOLDER [TAG...]     fails when the folder has nothing to show or one of the tags is missing

HONE_KEEP_EVENTS=FOLDER test_tensorboard leaves a sample.
"""
import pathlib
import sys

from tensorboard.backend.event_processing import plugin_event_multiplexer
from tensorboard.compat.proto import event_pb2
from tensorboard.compat.tensorflow_stub import errors, pywrap_tensorflow
from tensorboard.util import tensor_util

if len(sys.argv) < 2:
    sys.exit(__doc__)
folder, wanted = sys.argv[1], sys.argv[2:]

read = plugin_event_multiplexer.EventMultiplexer()
read.AddRunsFromDirectory(folder)
read.Reload()
shown = set()
for run in sorted(read.Runs()):
    for plugin in ("scalars", "text"):
        for tag in sorted(read.PluginRunToTagToContent(plugin).get(run, {})):
            events = read.Tensors(run, tag)
            shown.add(tag)
            print(f"{plugin:8} {run}/{tag}: {len(events)} events")
            for e in events if len(events) < 4 else (events[0], events[-1]):
                value = tensor_util.make_ndarray(e.tensor_proto).item()
                print(f"    step {e.step}: {value.decode() if isinstance(value, bytes) else value!r}")

# The loader above stops in silence at a record it cannot read; here every checksum must hold to the end of each file.
records = 0
for path in sorted(pathlib.Path(folder).rglob("*tfevents*")):
    reader = pywrap_tensorflow.PyRecordReader_New(str(path))
    try:
        while True:
            reader.GetNext()
            event_pb2.Event.FromString(reader.record())
            records += 1
    except errors.OutOfRangeError:
        pass
    except errors.DataLossError as e:
        sys.exit(f"'{path}': {e}")
print(f"{records} records with right checksums")

missing = [tag for tag in wanted if tag not in shown]
if missing or not shown:
    sys.exit(f"'{folder}' does not show {', '.join(missing) or 'anything'}")
