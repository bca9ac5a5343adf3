/* The kernels and the host ops of an imported trace. */
const numberColumn = (key, label, show, more) => Object.assign({key, label, show: r => show(r[key])}, more);

/* Variants of one kernel differ at the ends of their names. */
const NAME_MOST = 42;
const cutMiddle = name => name.length > NAME_MOST ? name.slice(0, NAME_MOST - 16) + "…" + name.slice(-15) : name;

function kernelRows(k) {
  return [["op", nameOf(k.op)], ["kind", nameOf(k.kind)], ["stream", k.stream], ["in all", time(k.total_us)],
          ["shortest, longest", `${time(k.min_us)}, ${time(k.max_us)}`], ["share of kernel time", percent(k.share)]];
}

function kernels() {
  const to = part("kernels");
  if (!data.kernels.length) {
    absent("kernels");
    return;
  }
  note(to, "Of one name, launching op and stream together; times are sums over the trace." +
    (data.kernels_left_out ? ` ${data.kernels_left_out} more with less time are left out.` : ""));
  const occupancy = data.kernels.some(k => k.occupancy_percent > 0)
    ? [numberColumn("occupancy_percent", "occupancy", x => percent(x > 0 ? x / 100 : null), {title: "estimated by the profiler"})] : [];
  const stream = data.gpu.streams > 1 ? [numberColumn("stream", "stream", String)] : [];
  sortableTable(to, {views: {all: {rows: data.kernels, tip: k => [nameOf(k.name), kernelRows(k)], columns: [
    textColumn("short_name", "kernel", k => cutMiddle(nameOf(k.short_name))), numberColumn("total_us", "total", time), numberColumn("share", "share", percent, {bar: true}),
    numberColumn("count", "count", String), numberColumn("mean_us", "mean", time), ...occupancy, textColumn("kind", "kind"),
    cutColumn("op", "launched by"), ...stream]}},
    sort: "total_us", search: k => [k.name, k.op, k.kind], placeholder: "filter: words of name, op, kind",
    label: "Filter the kernels", summary: rows => `; ${percent(d3.sum(rows, k => k.share))} of kernel time`});
}

function hostOps() {
  const to = part("ops");
  if (!data.ops.length) {
    absent("ops");
    return;
  }
  note(to, "Of one name together; times are sums over the trace. Self is without the ops inside" +
    (data.ops.some(o => o.device_us > 0) ? "; on the GPU it is the time of what the op itself launched." : ".") + ` ${data.ops_note}` +
    (data.ops_left_out ? ` ${data.ops_left_out} more with less time are left out.` : ""));
  const onDevice = data.ops.some(o => o.device_us > 0);
  const device = onDevice ? [numberColumn("device_self_us", "GPU self", time), numberColumn("share", "share", percent, {bar: true}),
                             numberColumn("device_us", "GPU total", time)] : [numberColumn("share", "share", percent, {bar: true})];
  sortableTable(to, {views: {all: {rows: data.ops, tip: o => [nameOf(o.name), [["calls", o.count], ["launches", o.launches]]],
    columns: [textColumn("name", "op"), ...device, numberColumn("self_us", onDevice ? "host self" : "self", time),
              numberColumn("total_us", onDevice ? "host total" : "total", time), numberColumn("count", "calls", String),
              ...(onDevice ? [numberColumn("launches", "launches", String, {title: "by the op itself"})] : [])]}},
    sort: onDevice ? "device_self_us" : "self_us", search: o => [o.name], placeholder: "filter: words of the name",
    label: "Filter the ops", summary: () => ""});
}
