/* The trace itself: its file, what was recorded in it, and what is odd about it. */
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
