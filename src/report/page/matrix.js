/* Names by impact and effort. */
const efforts = ["low", "medium", "high"], FROM_MATRIX = 5;     /* of fewer a list says as much */

/* A table of names by row and effort; on a narrow screen its cells are lists, and empty ones take no room.
 * rows: [{head(th), items: [{effort, href, name, more, style}]}] */
function effortMatrix(to, corner, rows) {
  const table = to.append("div").attr("class", "scroll").append("table").attr("class", "matrix");
  const head = table.append("thead").append("tr");
  head.append("th").attr("scope", "col").text(corner);
  head.selectAll("th.effort").data(efforts).enter().append("th").attr("class", "effort").attr("scope", "col").text(e => e + " effort");
  const row = table.append("tbody").selectAll("tr").data(rows).enter().append("tr").classed("empty", r => !r.items.length);
  row.append("th").attr("scope", "row").each(function (r) { r.head(d3.select(this)); });
  const cell = row.selectAll("td").data((r, i) => efforts.map((e, j) => ({e, items: r.items.filter(x => x.effort === e), rank: i + j}))).enter().append("td")
    .attr("data-effort", d => d.e + " effort").classed("empty", d => !d.items.length).classed("first", d => d.rank <= 1).classed("then", d => d.rank === 2);
  const link = cell.selectAll("a").data(d => d.items).enter().append("a").attr("href", x => x.href).attr("class", x => x.style || null).text(x => x.name);
  link.filter(x => x.more).append("small").text(x => " " + x.more);
}
