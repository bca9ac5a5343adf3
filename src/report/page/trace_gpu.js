/* The device: busy and idle with the reasons, kernel time by kind, communication; then the step without the profiler. */
function gpu() {
  const to = part("gpu"), g = data.gpu;
  if (!(g.total_us > 0)) {
    absent("gpu");
    return;
  }
  note(to, `As recorded, from the first event on the device to the last: ${time(g.total_us)} on ${many(g.streams, "stream")}. ` +
    "Idle while it waits for the host: nothing was launched yet. Between kernels: the next one was launched in time and " +
    "starts a little late. Other: it waits for another stream or an event." + (g.devices_note ? ` ${g.devices_note}` : ""));
  stackedBar(to, "Busy and idle", [
    {name: "busy", us: g.busy_us, color: "--c0"}, {name: "waits for the host", us: g.idle_host_us, color: "--c1"},
    {name: "between kernels", us: g.idle_kernel_us, color: "--c4"},
    {name: "other", us: g.idle_other_us, color: "--gap", hatched: true}]);
  const top = data.kinds.slice(0, KIND_COLORS).map(k => ({name: nameOf(k.name), us: k.us, color: kernelColor(k.name)}));
  stackedBar(to, "Kernel time by kind, per step",
             top.concat(restOfKinds > 0 ? [{name: "other kinds", us: restOfKinds, color: "--other"}] : []));
  facts(to, [["Computation", time(g.computation_us)],
             ["Copies", g.memcpy_us > 0 ? `${time(g.memcpy_us)}, ${time(g.exposed_memcpy_us)} of it not hidden` : "none"],
             ["Mean occupancy", known(data.mean_occupancy_percent) ? percent(data.mean_occupancy_percent / 100) : "not recorded"]]);
}

/* A row per kind and size; over several ranks also when they arrive, and who comes last. */
function collectives(to) {
  const some = (key, label, show, more) => numberColumn(key, label, x => known(x) ? show(x) : "–", more);
  const together = data.collectives.some(c => known(c.spread_us))
    ? [some("spread_us", "first to last arrival", time), textColumn("last_rank", "last rank", c => known(c.last_rank) ? String(c.last_rank) : c.last_name || "–"), some("last_share", "in", percent)] : [];
  note(to, "Per step, mean of the ranks. GB/s is that of the rank that came last, which waits for nobody.");
  sortableTable(to, {views: {all: {rows: data.collectives, columns: [
    textColumn("name", "kind"), some("bytes", "size", bytes), some("ranks", "ranks", String), numberColumn("per_step", "count", count),
    numberColumn("mean_us", "each", time), numberColumn("total_us", "total", time, {bar: true}), numberColumn("exposed_us", "exposed", time, {bar: true}),
    some("gb_per_s", "GB/s", count), ...together]}},
    sort: "total_us", search: c => [c.name], placeholder: "filter: kind", label: "Filter the collectives", summary: () => ""});
}

function communication() {
  const to = part("communication"), g = data.gpu;
  if (!(g.comm_us > 0)) {
    if (data.collectives.length)
      collectives(to);
    else
      absent("communication");
    return;
  }
  note(to, `Collectives take ${time(g.comm_us)} of the device's time. What is hidden runs beside computation and costs ` +
    "nothing; the exposed part makes the step longer.");
  stackedBar(to, "Overlap", [{name: "hidden", us: Math.max(0, g.comm_us - g.exposed_comm_us), color: "--c2"},
                             {name: "exposed", us: g.exposed_comm_us, color: "--c3"}]);
  if (data.collectives.length)
    collectives(to);
}

/* Bars for each quantity: as recorded where that is known, and without the profiler. rows: [{name, recorded, corrected, low, high}] */
function versus(to, rows) {
  const most = d3.max(rows, r => Math.max(r.recorded || 0, r.corrected || 0, r.high || 0)) || 1;
  const box = to.append("div").attr("class", "versus");
  for (const r of rows) {
    box.append("b").text(r.name);
    const bars = box.append("div");
    for (const [value, style] of [[r.recorded, "recorded"], [r.corrected, "corrected"]].filter(v => known(v[0]))) {
      const line = bars.append("div"), track = line.append("span").attr("class", "track");
      track.append("i").attr("class", style).style("width", across(value / most));
      if (style === "corrected" && r.high > r.low)
        track.append("u").style("left", across(r.low / most)).style("width", across((r.high - r.low) / most));
      line.append("span").text(time(value));
    }
  }
}

function corrected() {
  const to = part("corrected");
  if (!(estimate.recorded_us > 0)) {
    absent("corrected");
    return;
  }
  note(to, (estimate.given ? `The step takes ${time(estimate.step_us)} without the profiler, as ${data.watched ? "measured" : "given"}. ` :
    (data.gpu.total_us > 0 ? "Recording slows the host and leaves kernels as they are, so that a step bound by the GPU can look idle in its own trace. " : "Recording slows the host. ") +
    `Without the profiler the step is estimated at ${time(estimate.step_us)} (${time(estimate.low_us)} to ` +
    `${time(estimate.high_us)}); --step-ms gives the true one. `) +
    (estimate.cost_per_event_us >= 0.005 ?
      `The profiler costs about ${time(estimate.cost_per_event_us)} for each of ${count(estimate.events_per_step)} events that the host ` +
      "records per step. Findings are judged without it." : "") + (data.recorded_note ? " " + data.recorded_note : ""));
  versus(to, [{name: "Step", recorded: estimate.recorded_us, corrected: estimate.step_us, low: estimate.low_us, high: estimate.high_us},
              {name: "Host work", corrected: estimate.host_us}].concat(data.gpu.total_us > 0 ? [
              {name: "GPU busy", recorded: estimate.device_us, corrected: estimate.device_us},
              {name: "GPU idle", recorded: estimate.recorded_idle_us, corrected: estimate.idle_us}] : []));
  legend(to, [{name: "as recorded", color: "--gap"}, {name: "without the profiler", color: "--accent"}]);
}
