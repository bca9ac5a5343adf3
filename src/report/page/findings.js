/* What to do, ranked, as one card: each finding with its gain and cause, and behind a click its fix, to be copied, and its evidence. The one
 * that wins most is open. From five on, a map of impact against effort; then the roadmap and the list to check off. */
const severities = ["critical", "high", "medium", "low"], FIRST_FINDINGS = 5;

function impactMatrix(to) {
  const all = data.findings.map((f, i) => ({effort: f.effort, severity: f.severity, href: "#finding-" + i, name: nameOf(f.rule)}));
  effortMatrix(to, "impact", severities.map(s => ({head: th => th.append("span").attr("class", "chip " + s).text(s), items: all.filter(x => x.severity === s)})));
}

/* The expected speed-up with its interval; the left edge is "no faster". */
function speedupRange(to, low, mid, high, most) {
  if (![low, mid, high].every(known)) return;
  const at = x => across((x - 1) / (most - 1));
  const box = to.append("span").attr("class", "range").attr("aria-hidden", "true");
  box.append("i").style("left", at(low)).style("width", across((high - Math.max(1, low)) / (most - 1)));
  box.append("b").style("left", at(mid));
}

/* For a trace it is PyTorch code. */
const isCode = fix => data.kind === "trace" || fix.includes("\n");

/* What can be pasted stands in a box with a button, the rest of the sentence behind it. */
function fixOf(to, f) {
  if (isCode(f.fix)) {
    copyBox(to, f.fix);
    return;
  }
  if (f.option) copyBox(to, f.option);
  const rest = f.option ? f.fix.slice(f.option.length).replace(/^[\s:;,]+/, "") : f.fix;
  if (rest) to.append("p").text(rest);
}

/* The finding to fix first, as a link where it is in the list. */
function payAfter(to, rule) {
  const i = data.findings.findIndex(f => f.rule === rule);
  (i < 0 ? to : to.append("a").attr("href", "#finding-" + i)).text(rule);
}

function findingHead(to, f, i, most) {
  to.append("span").attr("class", "rank").text(i + 1);
  to.append("span").attr("class", "chip " + f.severity).text(f.severity);
  to.append("h3").text(nameOf(f.rule));
  const gain = to.append("span").attr("class", "gain");
  gain.append("b").text(times(f.expected_speedup));
  gain.append("span").attr("class", "muted").text(` ${times(f.expected_speedup_low)} to ${times(f.expected_speedup_high)}`);
  speedupRange(to, f.expected_speedup_low, f.expected_speedup, f.expected_speedup_high, most);
  to.append("p").text(f.cause || "");
}

/* The one that wins most; of a trace its causes may stand before it. */
const largestFinding = () => d3.scan(data.findings, (a, b) => b.expected_speedup - a.expected_speedup);

function finding(to, f, i, most) {
  const box = to.append("details").attr("class", "finding").attr("id", "finding-" + i).attr("open", i === largestFinding() ? "" : null);
  findingHead(box.append("summary"), f, i, most);
  const list = box.append("dl"), entry = label => {
    list.append("dt").text(label);
    return list.append("dd");
  };
  if (f.fix) fixOf(entry("Fix"), f);
  if (f.after) payAfter(entry("Pays after"), f.after);
  if (f.where) entry("Where").text(f.where);
  if (f.evidence) entry("Evidence").text(f.evidence);
  entry("Takes part in").text(`${percent(f.share)} of ${f.with_evaluation ? "steps with their evaluation" : "the step"}; ${f.effort} effort` + (f.pass ? `; pass ${f.pass}` : ""));
  if (data.run && f.saves_s > 0) entry("Whole run").text(`alone saves ${seconds(f.saves_s)} of ${seconds(data.run.seconds)}`);
  if (f.confidence) entry("Confidence").text(f.confidence + (f.raise ? `. To be surer: ${f.raise}` : ""));
}

/* A link to a finding opens it, and the list that it is in. */
function openTarget() {
  const target = location.hash.length > 1 && document.getElementById(location.hash.slice(1));
  for (let at = target; at; at = at.parentElement)
    if (at.tagName === "DETAILS") at.open = true;
  if (target) target.scrollIntoView();
}

/* The first ones; the others behind a click. */
function findingList(to) {
  const most = Math.max(1.1, d3.max(data.findings, f => f.expected_speedup_high) || 0), rest = data.findings.length - FIRST_FINDINGS;
  data.findings.slice(0, FIRST_FINDINGS).forEach((f, i) => finding(to, f, i, most));
  if (rest <= 0) return;
  const more = to.append("details").attr("class", "more-findings");
  more.append("summary").text(`${rest} more, each at most ${times(d3.max(data.findings.slice(FIRST_FINDINGS), f => f.expected_speedup))}`);
  data.findings.slice(FIRST_FINDINGS).forEach((f, i) => finding(more, f, i + FIRST_FINDINGS, most));
}

const countWords = () => severities.filter(s => data.counts[s]).map(s => `${data.counts[s]} ${s}`).join(", ");

/* What else one asks; what to do first is the first of the list. */
function answers(to) {
  const a = data.answers, r = data.run;
  facts(to.append("div").attr("class", "apart"), [["Bound by", a.bound_by], ["Largest", a.largest], ["All together", a.realistic_gain]]
    .concat(r ? [["Whole run", `at this speed ${many(r.steps, "step")} ${r.steps === 1 ? "takes" : "take"} ${seconds(r.seconds)}` + (r.evaluation_s > 0 ? `, ${seconds(r.evaluation_s)} of it evaluation` : "") +
      (r.rows_scale < 1 ? ` (${r.rows_scale.toFixed(2)} of what was measured${r.evaluation_s > 0 && r.evaluation_scale ? ` for steps and ${r.evaluation_scale.toFixed(2)} for evaluation` : ""}, as rows of the run are shorter)` : "")]] : []));
}

function findings() {
  const to = part("findings");
  if (!data.findings.length) {
    note(to, "No rule found time to win.");
    answers(to);
    return;
  }
  note(to, `${many(data.findings.length, "finding")}: ${countWords()}. ` +
    (data.kind === "trace" ? "In the order in which to take them, causes before what they look like. " : "Ranked by the time that would be won. ") +
    "The number is the expected speed-up of the step, with its interval; hone explain RULE tells more about a rule.");
  findingList(to);
  answers(to);
  if (data.findings.length >= FROM_MATRIX) {
    to.append("h3").attr("class", "apart").text("Impact against effort");
    note(to, "Top left is worth doing first.").classed("wide", true);
    impactMatrix(to);
  }
  addEventListener("hashchange", openTarget);
  openTarget();
}
