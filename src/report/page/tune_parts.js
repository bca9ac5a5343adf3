/* What several parts of tune's page use. */
const outcomeOf = s => s.outcome || "–";
/* What was given, in a sentence and over a column. */
const givenName = () => data.given || "the given config";
const givenLabel = () => data.given === "the program without passes" ? "without passes" : "as given";
const gatesWords = g => !g ? "–" : g.every(x => x.pass) ? "all hold" : g.filter(x => !x.pass).map(x => `${x.gate}: ${x.outcome}`).join(", ");
const passName = s => nameOf(s.pass).split("+").join(" + ");
const measuredWords = s => known(s.measured_speedup)
  ? `${times(s.measured_speedup)} (${plainNumber(s.measured_low)} to ${plainNumber(s.measured_high)})` : "–";
const signedPercent = x => known(x) ? (x < 0 ? "−" : "+") + (100 * Math.abs(x)).toFixed(Math.abs(x) < 0.0995 ? 1 : 0) + "\u00a0%" : "–";
const changeOf = (a, b) => known(a) && known(b) && a > 0 ? b / a - 1 : null;

/* A pass may change the numbers that are multiplied, and with them the peak that MFU is relative to. */
const mfuPeak = p => `${plainNumber(p.mfu_peak_gflops)} GFLOP/s in ${p.mfu_peak_type}`;
function mfuPeakWords() {
  const a = data.before, b = data.after;
  if (!known(a.mfu_percent) || !known(b.mfu_percent)) return null;
  return "of " + (a.mfu_peak_type === b.mfu_peak_type ? mfuPeak(b) : `${mfuPeak(a)} before, of ${mfuPeak(b)} after`);
}

const plannedBytes = p => bytes(p.planned_bytes) + (p.fits === false ? " (does not fit)" : "");

function outcomeChip(to, word) {
  return to.append("span").attr("class", "chip " + (word === "kept" ? "kept" : "other")).text(word);
}

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
