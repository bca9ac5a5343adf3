/* The table of a profile's operations, by kind or by op. */
const rateColumns = [
  {key: "self_us", label: "self time", show: r => time(r.self_us)},
  {key: "share", label: "share", show: r => percent(r.share), bar: true},
  {key: "flops", label: "FLOPs", show: r => count(r.flops)},
  {key: "bytes", label: "bytes", show: r => bytes(r.bytes)},
  {key: "gflops_per_s", label: "GFLOP/s", show: r => plainNumber(r.gflops_per_s)},
  {key: "gb_per_s", label: "GB/s", show: r => plainNumber(r.gb_per_s)},
  {key: "efficiency", label: "roofline", title: "least time that the measured peaks allow, over the self time",
   show: r => percent(r.efficiency)},
];

const targetColumn = textColumn("target", "target", r => r.target || "–");
targetColumn.title = "the largest finding that takes part in its time";

const opViews = {
  kind: {label: "By kind", rows: data.kinds, columns: [
    textColumn("kind", "kind"), ...rateColumns.slice(0, 2), {key: "count", label: "ops", show: r => String(r.count)},
    ...rateColumns.slice(2), targetColumn]},
  op: {label: "By op", rows: data.ops, tip: r => [nameOf(r.name), opRows(r)], columns: [
    textColumn("name", "op"), ...rateColumns.slice(0, 2),
    {key: "runs", label: "runs", title: "per step", show: r => String(r.runs)}, ...rateColumns.slice(2),
    targetColumn, textColumn("memory_bound", "bound", r => r.memory_bound ? "memory" : "compute"), textColumn("kind", "kind"),
    textColumn("part", "part"), textColumn("phase", "phase"), {key: "layer", label: "layer", show: r => r.layer === null ? "–" : String(r.layer)}]},
};

function operations() {
  const to = part("operations");
  note(to, (data.machine.gpu ? "Self time is that of an op's kernels; a moment in which several run is divided among them. "
                             : "Self time is the mean over the threads of the time they worked on an op. ") + "Roofline: the least time that the " +
    "measured peaks allow for its FLOPs and bytes, over its self time; 100 % cannot be made faster without doing less. Target: " +
    "the largest finding that takes part in its time.");
  sortableTable(to, {views: opViews, sort: "self_us", search: r => [r.name, r.kind, r.phase, r.kernel, r.made_by, r.part, r.target],
                     placeholder: "filter: words of name, kind, phase", label: "Filter the operations",
                     summary: rows => `; ${percent(d3.sum(rows, r => r.share))} of the step`});
}
