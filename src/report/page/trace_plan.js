/* The roadmap: phases in order of effort, each with the speed-up of everything up to it; then the trace itself. */
function roadmap() {
  const to = part("roadmap");
  if (!data.phases.length) {
    absent("roadmap");
    return;
  }
  note(to, "Findings to take together, the easy ones first. The speed-up is that of a phase with all before it, replayed " +
    "together, with its interval.");
  const most = Math.max(1.1, d3.max(data.phases, p => p.cumulative_speedup_high) || 0);
  const row = to.append("ol").attr("class", "phases").selectAll("li").data(data.phases).enter().append("li");
  row.append("b").text(p => nameOf(p.title));
  const gain = row.append("span").attr("class", "gain");
  gain.append("b").text(p => times(p.cumulative_speedup));
  gain.append("span").attr("class", "muted").text(p => ` (${times(p.cumulative_speedup_low)} to ${times(p.cumulative_speedup_high)})` +
    (estimate.step_us > 0 && p.cumulative_speedup > 0 ? ` · step ${time(estimate.step_us / p.cumulative_speedup)}` : ""));
  row.each(function (p) {
    speedupRange(d3.select(this), p.cumulative_speedup_low, p.cumulative_speedup, p.cumulative_speedup_high, most);
  });
  row.append("p").selectAll("a").data(p => p.findings).enter().append("a").attr("href", i => "#finding-" + i)
    .text(i => nameOf(data.findings[i].rule));
}

function aboutTrace() {
  const to = part("trace"), t = data.trace, has = x => x ? "recorded" : "not recorded";
  if (data.warnings.length) {
    to.append("h3").text("Warnings");
    to.append("ul").attr("class", "warnings").selectAll("li").data(data.warnings).enter().append("li").text(w => w);
  }
  facts(to, [["File", t.path], ["Device", data.device],
             ["Rank", t.rank === null ? "not said" : t.rank + (t.world_size ? ` of ${t.world_size}` : "")],
             ["Communication", t.backend || "no backend named"],
             ["Size", `${bytes(t.bytes)} of JSON` + (t.file_bytes !== t.bytes ? `, ${bytes(t.file_bytes)} in the file` : "") +
                      (t.truncated ? "; it ends too early" : "")],
             ["Events", `${count(t.events)} used, ${count(t.other_events)} of no use here, ${count(t.events_skipped)} malformed`],
             ["Stacks", has(t.has_stacks) + (t.has_stacks ? "" : "; with_stack=True lets findings name the line")],
             ["Shapes", has(t.has_shapes) + (t.has_shapes ? "" : "; record_shapes=True")],
             ["Memory", has(t.has_memory) + (t.has_memory ? "" : "; profile_memory=True")]]);
}
