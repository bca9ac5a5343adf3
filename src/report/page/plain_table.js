/* What pages with plain tables and rows that the keyboard reaches use. */
/* A tooltip that the keyboard opens as well: Tab goes from one to the next. The page scrolls to it, which closes a tooltip, so that
 * it is opened again where that ends. */
function withTipAndFocus(selection, content) {
  withTip(selection, content);
  selection.attr("tabindex", 0).on("focus", function (d) {
    const show = () => {
      if (document.activeElement === this) showTip(...content(d), pointIn(this, 24, this.getBoundingClientRect().height - 8));
    };
    show();
    addEventListener("scrollend", show, {once: true});
  }).on("blur", hideTip);
}

/* columns: [{label, text, wrap, show(row)}]; text: left-aligned words; wrap: in several lines */
function plainTable(to, columns, rows) {
  const table = to.append("div").attr("class", "scroll").append("table").attr("class", "operations");
  table.append("thead").append("tr").selectAll("th").data(columns).enter().append("th").attr("scope", "col")
    .classed("text", c => c.text).text(c => c.label);
  const tr = table.append("tbody").selectAll("tr").data(rows).enter().append("tr");
  tr.selectAll("td").data(r => columns.map(c => ({r, c}))).enter().append("td").classed("text", d => d.c.text).classed("wrap", d => d.c.wrap)
    .text(d => d.c.show(d.r));
  return tr;
}
