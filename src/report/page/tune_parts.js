/* What several parts of tune's page use. */
const outcomeOf = s => s.outcome || "–";
const isMeasured = s => known(s.measured_speedup);
/* What was given, in a sentence and over a column. */
const givenName = () => data.given || "the given config";
const givenLabel = () => data.given === "the program without passes" ? "without passes" : "as given";
/* Something was kept: tuned.yaml is another program than the given one. */
const isTuned = () => data.stages.some(s => s.kept);
/* Its step is, too: else before and after are one measurement. */
const hasNewStep = () => data.stages.some(s => s.kept && !s.around);
const gatesWords = g => !g ? "–" : g.every(x => x.pass) ? "all hold" : g.filter(x => !x.pass).map(x => `${x.gate}: ${x.outcome}`).join(", ");
const passName = s => nameOf(s.pass).split("+").join(" + ");
const measuredWords = s => known(s.measured_speedup)
  ? `${times(s.measured_speedup)} (${times(s.measured_low)} to ${times(s.measured_high)})` : "–";
const signedPercent = x => known(x) ? (x < 0 ? "−" : "+") + (100 * Math.abs(x)).toFixed(Math.abs(x) < 0.0995 ? 1 : 0) + "\u00a0%" : "–";
const changeOf = (a, b) => known(a) && known(b) && a > 0 ? b / a - 1 : null;

/* A pass may change the numbers that are multiplied, and with them the peak that MFU is relative to. */
const mfuPeak = p => `${plainNumber(p.mfu_peak_gflops)} GFLOP/s in ${p.mfu_peak_type}`;
function mfuPeakWords() {
  const a = data.before, b = data.after;
  if (!known(a.mfu_percent) || !known(b.mfu_percent)) return null;
  return "of " + (a.mfu_peak_type === b.mfu_peak_type ? mfuPeak(b) : `${mfuPeak(a)} before, of ${mfuPeak(b)} after`);
}

/* Of the whole run. */
const savedWords = s => data.run && isTuned() && s.saved_s > 0 ? ` · saves ${seconds(s.saved_s)} of ${seconds(data.run.before_s)}` : "";

const plannedBytes = p => bytes(p.planned_bytes) + (p.fits === false ? " (does not fit)" : "");

function outcomeChip(to, word) {
  return to.append("span").attr("class", "chip " + (word === "kept" ? "kept" : "other")).text(word);
}
