/* A whole as one bar of its parts, with a legend of those that are not 0.0 %. items: [{name, us, color, hatched}] */
function stackedBar(to, label, items) {
  if (!items.some(d => d.us > 0)) return;
  const whole = d3.sum(items, d => d.us), shown = items.filter(d => d.us > whole / 1000);
  to.append("h3").text(label);
  const bar = to.append("div").attr("class", "bar").attr("role", "img")
    .attr("aria-label", `${label}: ` + shown.map(d => `${d.name} ${percent(d.us / whole)}`).join(", "));
  const segment = bar.selectAll("span").data(shown).enter().append("span").classed("hatched", d => d.hatched)
    .style("flex", d => `${d.us / whole} 1 0`).style("background-color", d => paint(d.color));
  const name = segment.append("b").text(d => d.name);
  whenSized(bar.node(), () => name.style("visibility", function () { return this.scrollWidth > this.parentNode.clientWidth ? "hidden" : null; }));
  withTip(segment, d => [d.name, [["time", time(d.us)], ["share", percent(d.us / whole)]]]);
  legend(to, items.filter(d => d.us / whole >= 0.0005).map(d => Object.assign({more: `${time(d.us)} · ${percent(d.us / whole)}`}, d)));
}
