/* The table of operations, by kind or by op: sorted by a click on a header, filtered by words. */
const FIRST_ROWS = 25, FEW_ROWS = 40;

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
const textColumn = (key, label, show) => ({key, label, text: true, show: show || (r => nameOf(r[key]))});

const opViews = {
  kind: {rows: data.kinds, columns: [
    textColumn("kind", "kind"), ...rateColumns.slice(0, 2), {key: "count", label: "ops", show: r => String(r.count)},
    ...rateColumns.slice(2)]},
  op: {rows: data.ops, columns: [
    textColumn("name", "op"), ...rateColumns.slice(0, 2),
    {key: "runs", label: "runs", title: "per step", show: r => String(r.runs)}, ...rateColumns.slice(2),
    textColumn("memory_bound", "bound", r => r.memory_bound ? "memory" : "compute"), textColumn("kind", "kind"),
    textColumn("phase", "phase"), {key: "layer", label: "layer", show: r => r.layer === null ? "–" : String(r.layer)}]},
};

const opsState = {view: "kind", sort: "self_us", down: true, words: [], all: false};

const searched = r => [r.name, r.kind, r.phase, r.kernel, r.made_by].map(x => (x || "").toLowerCase()).join(" ");

/* What is not known comes last, whichever way the rows are sorted. */
function compareRows(a, b) {
  const x = a[opsState.sort], y = b[opsState.sort];
  if (x === null || y === null || x === undefined || y === undefined) return (x == null) - (y == null);
  return opsState.down ? d3.descending(x, y) : d3.ascending(x, y);
}

function sortBy(column) {
  opsState.down = opsState.sort === column.key ? !opsState.down : !column.text;
  opsState.sort = column.key;
}

function drawOpsHead(table, view, redraw) {
  const th = table.append("thead").append("tr").selectAll("th").data(view.columns).enter().append("th").attr("scope", "col")
    .classed("text", c => c.text).attr("title", c => c.title || null)
    .attr("aria-sort", c => c.key === opsState.sort ? (opsState.down ? "descending" : "ascending") : "none");
  th.append("button").attr("type", "button").attr("data-key", c => c.key).text(c => c.label).on("click", c => {
    sortBy(c);
    redraw();
    part("operations").select(`th button[data-key="${c.key}"]`).node().focus();     /* that of the new table */
  });
}

function drawOpsRows(table, view, rows) {
  const most = d3.max(view.rows, r => r.share) || 1;
  const tr = table.append("tbody").selectAll("tr").data(rows).enter().append("tr");
  const td = tr.selectAll("td").data(r => view.columns.map(c => ({r, c}))).enter().append("td")
    .attr("class", d => (d.c.text ? "text" : "") + (d.c === view.columns[0] ? " name" : ""));
  td.filter(d => d.c.bar).append("span").attr("class", "share").append("i").style("width", d => across(d.r.share / most));
  td.append("span").text(d => d.c.show(d.r));
  if (opsState.view === "op") withTip(td.filter(d => d.c === view.columns[0]), d => [nameOf(d.r.name), opRows(d.r)]);
}

function operations() {
  const to = part("operations");
  note(to, "Self time is the mean over the threads of the time they worked on an op. Roofline: the least time that the " +
    "measured peaks allow for its FLOPs and bytes, over its self time; 100 % cannot be made faster without doing less.");
  const controls = to.append("div").attr("class", "controls");
  choose(controls, "Rows", [["kind", "By kind"], ["op", "By op"]], opsState.view, view => { opsState.view = view; draw(); });
  controls.append("input").attr("type", "search").attr("placeholder", "filter: words of name, kind, phase")
    .attr("aria-label", "Filter the operations").on("input", function () {
      opsState.words = this.value.toLowerCase().split(/\s+/).filter(w => w);
      draw();
    });
  const shown = controls.append("span").attr("class", "muted").attr("role", "status");
  const box = to.append("div").attr("class", "scroll");
  const more = to.append("button").attr("type", "button").attr("class", "plain").on("click", () => {
    opsState.all = !opsState.all;
    draw();
  });
  function draw() {
    const view = opViews[opsState.view];
    if (!view.columns.some(c => c.key === opsState.sort)) Object.assign(opsState, {sort: "self_us", down: true});
    const rows = view.rows.filter(r => opsState.words.every(w => searched(r).includes(w))).sort(compareRows);
    box.text("");
    const table = box.append("table").attr("class", "operations");
    drawOpsHead(table, view, draw);
    drawOpsRows(table, view, opsState.all || rows.length <= FEW_ROWS ? rows : rows.slice(0, FIRST_ROWS));
    shown.text(`${rows.length} of ${view.rows.length}; ${percent(d3.sum(rows, r => r.share))} of the step`);
    more.attr("hidden", rows.length > FEW_ROWS ? null : true)
      .text(opsState.all ? `Show the first ${FIRST_ROWS}` : `Show all ${rows.length}`);
  }
  draw();
}
