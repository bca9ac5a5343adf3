/* What to do: impact against effort, then each finding with its cause, fix and evidence. */
const severities = ["critical", "high", "medium", "low"], efforts = ["low", "medium", "high"];

function matrix(to) {
  const table = to.append("table").attr("class", "matrix");
  const head = table.append("thead").append("tr");
  head.append("th").attr("scope", "col").text("impact");
  head.selectAll("th.effort").data(efforts).enter().append("th").attr("class", "effort").attr("scope", "col")
    .text(e => e + " effort");
  const row = table.append("tbody").selectAll("tr").data(severities).enter().append("tr");
  row.append("th").attr("scope", "row").append("span").attr("class", s => "chip " + s).text(s => s);
  const cell = row.selectAll("td").data((s, i) => efforts.map((e, j) => ({s, e, rank: i + j}))).enter().append("td")
    .classed("first", d => d.rank <= 1).classed("then", d => d.rank === 2);
  const all = data.findings.map((f, i) => ({f, i}));
  cell.selectAll("a").data(d => all.filter(x => x.f.severity === d.s && x.f.effort === d.e)).enter()
    .append("a").attr("href", x => "#finding-" + x.i).text(x => nameOf(x.f.rule));
}

/* The expected speed-up with its interval; the left edge is "no faster". */
function speedupRange(to, low, mid, high, most) {
  if (![low, mid, high].every(known)) return;
  const at = x => across((x - 1) / (most - 1));
  const box = to.append("span").attr("class", "range").attr("aria-hidden", "true");
  box.append("i").style("left", at(low)).style("width", across((high - Math.max(1, low)) / (most - 1)));
  box.append("b").style("left", at(mid));
}

function finding(to, f, i, most) {
  const box = to.append("article").attr("class", "finding").attr("id", "finding-" + i), head = box.append("header");
  head.append("span").attr("class", "chip " + f.severity).text(f.severity);
  head.append("h3").text(nameOf(f.rule));
  head.append("span").attr("class", "muted").text((f.pass ? `pass ${f.pass} · ` : "") + `${percent(f.share)} of the step · ${f.effort} effort`);
  head.append("span").text(`expected ${times(f.expected_speedup)} ` +
    `(${times(f.expected_speedup_low)} to ${times(f.expected_speedup_high)})`);
  speedupRange(head, f.expected_speedup_low, f.expected_speedup, f.expected_speedup_high, most);
  const list = box.append("dl"), entry = label => {
    list.append("dt").text(label);
    return list.append("dd");
  };
  if (f.after) payAfter(entry("Pays after"), f.after);
  for (const [label, text] of [["Where", f.where], ["Cause", f.cause], ["Fix", f.fix], ["Evidence", f.evidence]])
    if (text) (label === "Fix" && isCode(text) ? entry(label).append("pre") : entry(label)).text(text);
  if (f.confidence) entry("Confidence").text(f.confidence + (f.raise ? `; it rises with ${f.raise}` : ""));
}

/* For a trace it is PyTorch code. */
const isCode = fix => data.kind === "trace" || fix.includes("\n");

/* The finding to fix first, as a link where it is in the list. */
function payAfter(to, rule) {
  const i = data.findings.findIndex(f => f.rule === rule);
  (i < 0 ? to : to.append("a").attr("href", "#finding-" + i)).text(rule);
}

function findings() {
  const to = part("findings");
  if (!data.findings.length) {
    note(to, "No rule found time to win.");
    return;
  }
  note(to, "Ranked by the time that would be won. Top left of the matrix is worth doing first. " +
    "hone explain RULE tells more about a rule.");
  matrix(to.append("div").attr("class", "scroll"));
  const most = Math.max(1.1, d3.max(data.findings, f => f.expected_speedup_high) || 0);
  data.findings.forEach((f, i) => finding(to, f, i, most));
}
