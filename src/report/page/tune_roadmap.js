/* What could be done at the start, before anything was tried: in phases, and gain against effort. */
const phaseTitles = {1: ["Quick wins", "little effort, nothing given for it"], 2: ["Rewrites", "more of the program changes"],
                     3: ["Trades", "something is given for the speed"]};
const gainBands = [[1.2, "1.2× and more"], [1.05, "1.05× to 1.2×"], [1.02, "1.02× to 1.05×"], [-Infinity, "below 1.02×"]];
const bandOf = d => gainBands.findIndex(b => (known(d.predicted_speedup) ? d.predicted_speedup : 1) >= b[0]);

function ideaItem(li, d) {
  li.attr("id", "idea-" + data.roadmap.indexOf(d));
  li.append("b").text(nameOf(d.name));
  li.append("span").text(times(d.predicted_speedup));
  outcomeChip(li, d.outcome);
  li.append("p").text(`${d.what || ""}${d.answers ? ` (answers ${d.answers})` : ""}`);
}

function phaseItem(li, phase, ideas) {
  const [title, words] = phaseTitles[phase] || ["Other", ""];
  li.append("b").text(title).append("span").attr("class", "muted").text(words ? `: ${words}` : "");
  const gain = li.append("span").attr("class", "gain");
  gain.append("b").text(times(ideas.reduce((x, d) => x * (known(d.predicted_speedup) ? d.predicted_speedup : 1), 1)));
  gain.append("span").attr("class", "muted").text(" expected, all of them");
  const list = li.append("ul").attr("class", "ideas");
  for (const d of ideas) ideaItem(list.append("li"), d);
}

function gainMatrix(to) {
  const all = data.roadmap.map((d, i) => ({effort: d.effort, band: bandOf(d), href: "#idea-" + i, name: nameOf(d.name), style: d.outcome === "kept" ? "kept" : null,
                                           more: times(d.predicted_speedup) + (d.outcome === "kept" ? " ✓" : "")}));
  effortMatrix(to, "predicted", gainBands.map((b, i) => ({head: th => th.text(b[1]), items: all.filter(x => x.band === i)})));
}

function roadmap() {
  const to = part("roadmap");
  if (!data.roadmap.length) {
    note(to, "No pass and no setting applies to this program.");
    return;
  }
  note(to, "What could be done at the start, with what it was expected to win then. Gains overlap, so that a later " +
    "prediction can be lower." + (data.roadmap.length >= FROM_MATRIX ? " A tick is what was kept." : ""));
  if (data.roadmap.length >= FROM_MATRIX) gainMatrix(to);
  const phases = [...new Set(data.roadmap.map(d => d.phase))].sort((a, b) => a - b);
  const list = to.append("ol").attr("class", "phases plan");
  for (const phase of phases) phaseItem(list.append("li"), phase, data.roadmap.filter(d => d.phase === phase));
}
