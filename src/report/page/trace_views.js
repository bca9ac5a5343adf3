/* An imported trace by ops against the device's peaks, by modules of the model, and by Python functions. */
function baseline() {
  const to = part("baseline"), b = data.baseline;
  if (!b) {
    absent("baseline");
    return;
  }
  note(to, `Against ${nameOf(b.path)}: a step takes ${time(b.after_us)}, and ${time(b.before_us)} before: ${percent(b.change)} more, ` +
    (b.slower ? "too slow" : "as allowed") + ` (at most ${percent(b.limit)}).` + (b.new_findings ? ` New findings: ${b.new_findings}.` : ""));
  if (b.longer.length)
    sortableTable(to, {views: {all: {rows: b.longer, columns: [textColumn("name", "takes longer"), textColumn("what", "what"),
      numberColumn("before_us", "before", time), numberColumn("after_us", "now", time, {bar: true})]}},
      sort: "after_us", search: r => [r.name, r.what], placeholder: "filter: words of the name", label: "Filter what takes longer", summary: () => ""});
}

function rooflineOps() {
  const to = part("peaks");
  if (!data.roofline.length) {
    absent("peaks");
    return;
  }
  const onDevice = data.gpu !== null && data.gpu.total_us > 0, scale = onDevice ? 1 : 1000, rate = (onDevice ? "T" : "G") + "FLOP/s";
  if (!onDevice) to.select("h2").text("Ops against the CPU's peaks");
  const p = data.peaks, peak = [known(p.tflops) && `${count(p.tflops * scale)} ${rate}` + (p.numbers ? ` (${p.numbers})` : ""), known(p.gbps) && `${count(p.gbps)} GB/s`]
    .filter(x => x).join(", ");
  note(to, "Ops on tensors of equal shapes, per step; arithmetic and bytes follow from recorded shapes, time is that of what an op launched itself, on a CPU its own without what is inside. " +
    (peak ? `The ${onDevice ? "device" : "CPU"}'s peaks${p.given ? ", as given" : ""}: ${peak}.` : "The peaks are not known; " + (data.watched && !onDevice ? "hone doctor measures them." : "--peak-tflops and --peak-gbps of hone analyze give them.")) +
    (known(data.mfu_percent) ? ` The step's products reach ${data.mfu_at_least ? "at least " : ""}${count(data.mfu_percent)} % of the peak${p.devices > 1 ? ` of ${p.devices} devices` : ""} (MFU).` : ""));
  sortableTable(to, {views: {all: {rows: data.roofline, tip: r => [nameOf(r.op), [["shapes", r.shapes], ["types", r.types], ["calls", count(r.count)]]],
    columns: [textColumn("op", "op"), cutColumn("shapes", "shapes"), numberColumn("device_us", onDevice ? "GPU" : "time", time, {bar: true}),
              numberColumn("tflops", rate, x => count(known(x) ? x * scale : null)), numberColumn("gbps", "GB/s", count),
              numberColumn("percent_of_peak", "of the peak", x => percent(known(x) ? x / 100 : null)), textColumn("limit", "which is that of")]}},
    sort: "device_us", search: r => [r.op, r.shapes, r.types], placeholder: "filter: words of op, shapes, types", label: "Filter the ops",
    summary: () => ""});
}

function modules() {
  const to = part("modules");
  if (!data.modules.length) {
    absent("modules");
    return;
  }
  if (data.modules_are === "ranges") to.select("h2").text("Ranges");
  const onDevice = data.modules.some(m => m.forward_us > 0 || m.backward_us > 0);
  note(to, "Per step, each with what is inside; " + (onDevice ? "the backward of an op counts where its forward was called. The host's time is as recorded." : "as recorded."));
  const device = onDevice ? [numberColumn("forward_us", "GPU forward", time), numberColumn("backward_us", "GPU backward", time), numberColumn("share", "share", percent, {bar: true})] : [];
  sortableTable(to, {views: {all: {rows: data.modules, columns: [
    textColumn("name", data.modules_are === "ranges" ? "range" : "module"), ...device, numberColumn("host_us", onDevice ? "host" : "time", time, {bar: !onDevice}),
    numberColumn("count", "calls", count)]}},
    sort: onDevice ? "share" : "host_us", search: m => [m.name], placeholder: "filter: words of the name", label: "Filter the modules", summary: () => ""});
}

function pythonFrames() {
  const to = part("python");
  if (!data.python.length) {
    absent("python");
    return;
  }
  note(to, "Per step, as recorded: the profiler's own cost is in it. Self is without the functions, ops and calls inside.");
  sortableTable(to, {views: {all: {rows: data.python, columns: [textColumn("name", "function"), numberColumn("self_us", "self", time, {bar: true}),
    numberColumn("total_us", "total", time), numberColumn("count", "calls", count)]}},
    sort: "self_us", search: f => [f.name], placeholder: "filter: words of the name", label: "Filter the functions", summary: () => ""});
}
