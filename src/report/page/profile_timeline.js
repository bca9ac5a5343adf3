/* The timeline of a profile's step: ops by phase or kind, phases, waits, the loader. */
const timelineMinor = "--gap";

function profileEvents() {
  const t = data.timeline;
  return t.events.map(e => ({track: e[0], start: e[1], us: e[2], kind: e[3], op: e[4] >= 0 ? data.ops[e[4]] : null,
                             name: nameOf(t.names[e[5]])}));
}

function timelineColor(event, mode) {
  if (event.op) return mode === "phase" ? phaseColor(event.op.phase) : kindColor(event.op.kind);
  if (event.kind === "phase") return phaseColor(event.name);
  return event.kind === "loader" ? "--low" : timelineMinor;
}

function timelineLegend(mode) {
  const items = mode === "phase"
    ? Array.from(new Set(data.ops.map(op => op.phase))).map(p => ({name: p, color: phaseColor(p)}))
    : families.slice(0, FAMILY_COLORS).map(f => ({name: f.name, color: kindColor(f.name)}))
      .concat(families.length > FAMILY_COLORS ? [{name: "other ops", color: "--other"}] : []);
  if (data.timeline.events.some(e => e[3] === "loader")) items.push({name: "loader", color: "--low"});
  return items.concat([{name: "step, waiting", color: timelineMinor}]);
}

function timeline() {
  const t = data.timeline;
  drawTimelinePart(part("timeline"), {
    events: profileEvents(), tracks: t.tracks, us: t.us, modes: [["phase", "By phase"], ["kind", "By kind"]],
    words: `Recorded step ${t.step}, drawn to the length of the median step without recording: ${time(t.us)}. trace.json has every ` +
      "recorded step as it was, and opens in Perfetto." +
      (t.left_out ? ` The ${t.left_out} shortest events are left out here.` : ""),
    color: timelineColor, strong: e => e.op || e.kind === "phase" || e.kind === "loader", legend: timelineLegend,
    tip: e => e.op ? [["kind", nameOf(e.op.kind)], ["phase", e.op.phase], ["self time, mean", time(e.op.self_us)],
                      ["roofline efficiency", percent(e.op.efficiency)]] : [],
  });
}
