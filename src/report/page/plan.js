/* The roadmap in phases, and the list to check off. */

/* The step that is left after a phase; of a trace without its profiler. */
const stepLeft = p => data.kind === "trace" ? data.corrected.step_us / p.cumulative_speedup : p.step_us;

function phaseGain(row, most) {
  const gain = row.append("span").attr("class", "gain");
  gain.append("b").text(p => times(p.cumulative_speedup));
  gain.append("span").attr("class", "muted").text(p => ` (${times(p.cumulative_speedup_low)} to ${times(p.cumulative_speedup_high)})` +
    (stepLeft(p) > 0 ? ` · step ${time(stepLeft(p))}` : ""));
  row.each(function (p) { speedupRange(d3.select(this), p.cumulative_speedup_low, p.cumulative_speedup, p.cumulative_speedup_high, most); });
}

function checkList(to) {
  to.append("h3").attr("class", "apart").text("Check list");
  const line = to.append("ul").attr("class", "checks").selectAll("li").data(data.checks).enter().append("li").append("label");
  line.append("input").attr("type", "checkbox");
  line.append("span").text(c => c.text);
  copyButton(to, () => data.checks.map(c => "- [ ] " + c.text).join("\n"), "Copy as Markdown");
}

function roadmap() {
  const to = part("roadmap");
  if (!data.phases.length && !data.checks.length) {
    to.remove();
    return;
  }
  note(to, "The easy ones first. The speed-up is that of a phase with all before it" + (data.kind === "trace" ? ", replayed together" : "") +
    (data.phases.some(p => p.with_evaluation) ? ", of steps with their evaluation" : "") +
    ", with its interval; of fixes that win the same time one counts.");
  const most = Math.max(1.1, d3.max(data.phases, p => p.cumulative_speedup_high) || 0);
  const row = to.append("ol").attr("class", "phases").selectAll("li").data(data.phases).enter().append("li");
  row.append("b").text(p => nameOf(p.title));
  phaseGain(row, most);
  row.append("p").selectAll("a").data(p => p.findings).enter().append("a").attr("href", i => "#finding-" + i)
    .text(i => nameOf(data.findings[i].rule));
  if (data.checks.length) checkList(to);
}
