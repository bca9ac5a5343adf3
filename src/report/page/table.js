/* A table that is sorted by a click on a header, filtered by words, and shows its first rows until asked for all.
 * views: {key: {label, rows, columns, tip}}, the first one shown first; a column: {key, label, title, show, text, cut, bar}, where
 * bar draws it against the largest; tip(row) is what withTip takes, for the first column. */
const FIRST_ROWS = 12, FEW_ROWS = 16;

const textColumn = (key, label, show) => ({key, label, text: true, show: show || (r => nameOf(r[key]))});
const cutColumn = (key, label) => Object.assign(textColumn(key, label), {cut: true});       /* long ones end with an ellipsis, and have a tip */

/* What is not known comes last, whichever way the rows are sorted. */
function compareRows(state) {
  return (a, b) => {
    const x = a[state.sort], y = b[state.sort];
    if (x === null || y === null || x === undefined || y === undefined) return (x == null) - (y == null);
    return state.down ? d3.descending(x, y) : d3.ascending(x, y);
  };
}

function drawTableHead(to, table, columns, state, redraw) {
  const th = table.append("thead").append("tr").selectAll("th").data(columns).enter().append("th").attr("scope", "col")
    .classed("text", c => c.text).attr("title", c => c.title || null)
    .attr("aria-sort", c => c.key === state.sort ? (state.down ? "descending" : "ascending") : "none");
  th.append("button").attr("type", "button").attr("data-key", c => c.key).text(c => c.label).on("click", c => {
    state.down = state.sort === c.key ? !state.down : !c.text;
    state.sort = c.key;
    redraw();
    to.select(`th button[data-key="${c.key}"]`).node().focus();     /* that of the new table */
  });
}

function drawTableRows(table, view, rows) {
  const most = new Map(view.columns.filter(c => c.bar).map(c => [c, d3.max(view.rows, r => r[c.key]) || 1]));
  const tr = table.append("tbody").selectAll("tr").data(rows).enter().append("tr");
  const td = tr.selectAll("td").data(r => view.columns.map(c => ({r, c}))).enter().append("td")
    .attr("class", d => (d.c.text ? "text" : "") + (d.c === view.columns[0] ? " name" : d.c.cut ? " cut" : ""))
    .attr("title", d => d.c.cut ? d.c.show(d.r) : null);
  td.filter(d => d.c.bar).append("span").attr("class", "share").append("i")
    .style("width", d => across(d.r[d.c.key] / most.get(d.c)));
  td.append("span").classed("beside", d => d.c.bar).text(d => d.c.show(d.r));
  if (view.tip) withTip(td.filter(d => d.c === view.columns[0]), d => view.tip(d.r));
}

/* options: {views, sort, search(row): words, placeholder, label, summary(rows): text} */
function sortableTable(to, options) {
  const keys = Object.keys(options.views), state = {view: keys[0], sort: options.sort, down: true, words: [], all: false};
  const controls = to.append("div").attr("class", "controls");
  if (keys.length > 1)
    choose(controls, "Rows", keys.map(k => [k, options.views[k].label]), state.view, key => { state.view = key; draw(); });
  controls.append("input").attr("type", "search").attr("placeholder", options.placeholder).attr("aria-label", options.label)
    .on("input", function () {
      state.words = this.value.toLowerCase().split(/\s+/).filter(w => w);
      draw();
    });
  const shown = controls.append("span").attr("class", "muted").attr("role", "status");
  const box = to.append("div").attr("class", "scroll");
  const more = to.append("button").attr("type", "button").attr("class", "plain").on("click", () => {
    state.all = !state.all;
    draw();
  });
  function draw() {
    const view = options.views[state.view], has = r => options.search(r).map(x => (x || "").toLowerCase()).join(" ");
    if (!view.columns.some(c => c.key === state.sort)) Object.assign(state, {sort: options.sort, down: true});
    const rows = view.rows.filter(r => state.words.every(w => has(r).includes(w))).sort(compareRows(state));
    box.text("");
    const table = box.append("table").attr("class", "operations");
    drawTableHead(to, table, view.columns, state, draw);
    drawTableRows(table, view, state.all || rows.length <= FEW_ROWS ? rows : rows.slice(0, FIRST_ROWS));
    shown.text(`${rows.length} of ${view.rows.length}` + options.summary(rows));
    more.attr("hidden", rows.length > FEW_ROWS ? null : true)
      .text(state.all ? `Show the first ${FIRST_ROWS}` : `Show all ${rows.length}`);
  }
  draw();
}
