/* The timeline of the median step of an imported trace: calls on the host's threads, work on the device's streams. */
const eventKinds = {
  op: ["host op", "--c2"], runtime: ["runtime call", "--c5"], annotation: ["named range", "--c7"], kernel: ["kernel", "--c0"],
  memcpy: ["copy", "--c1"], memset: ["fill", "--c4"], overhead: ["profiler", "--other"], step: ["step", "--gap"],
};
const kindOfKernel = new Map(data.kernels.map(k => [k.name, k.kind]));

function eventColor(e, mode) {
  if (mode === "kind") return e.kind === "kernel" ? kernelColor(e.work) : e.kind === "memcpy" || e.kind === "memset" ? "--other" : "--gap";
  return e.work === "comm" ? "--c3" : (eventKinds[e.kind] || ["", "--other"])[1];
}

function eventLegend(mode) {
  if (mode === "kind")
    return data.kinds.slice(0, KIND_COLORS).map(k => ({name: nameOf(k.name), color: kernelColor(k.name)}))
      .concat([{name: "other kinds, copies, fills", color: "--other"}, {name: "host", color: "--gap"}]);
  const used = new Set(data.timeline.events.map(e => e[3]));
  return Object.keys(eventKinds).filter(k => used.has(k)).map(k => ({name: eventKinds[k][0], color: eventKinds[k][1]}))
    .concat(data.gpu.comm_us > 0 ? [{name: "communication", color: "--c3"}] : []);
}

function timeline() {
  const t = data.timeline;
  if (!t.events.length) {
    absent("timeline");
    return;
  }
  const trackOf = new Map(t.tracks.map(track => [track.track, track]));
  const events = t.events.map(e => ({track: e[0], start: e[1], us: e[2], kind: e[3], name: nameOf(t.names[e[4]]),
                                     work: e[3] === "kernel" ? kindOfKernel.get(t.names[e[4]]) : null}));
  drawTimelinePart(part("timeline"), {
    events, tracks: t.tracks, us: t.us, modes: [["category", "By category"], ["kind", "By kind of kernel"]],
    words: (data.trace.step_marks || data.trace.steps_by ? `Step ${t.step}, the one of median length, as recorded: ` : "The whole trace, as recorded: ") +
      time(t.us) + (data.gpu.total_us > 0 ? " until its last work on the GPU." : ".") +
      (t.left_out ? ` ${count(t.left_out)} events are left out, the shortest of each row.` : ""),
    color: eventColor, strong: (e, mode) => eventColor(e, mode) !== "--gap", legend: eventLegend,
    tip: e => [["is a", (eventKinds[e.kind] || [e.kind])[0]]].concat(e.work ? [["kind", e.work]] : [],
      [["on", (trackOf.get(e.track) || {}).label || (trackOf.get(e.track) || {}).name]]),
  });
}
