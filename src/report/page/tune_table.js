/* Predictions against measurements, the gates, and what was not kept. */
function predictions() {
  const to = part("predictions");
  const measured = data.stages.filter(isMeasured), rest = data.stages.length - measured.length;
  if (!measured.length) {
    to.remove();
    return;
  }
  note(to, "Each against the step before it. The error is that of the prediction: above zero, more was promised than came." +
    (known(data.median_prediction_error) ? ` Its median over all of them is ${percent(data.median_prediction_error)}.` : "") +
    (rest ? ` ${many(rest, "stage")} that ${rest === 1 ? "was" : "were"} not measured ${rest === 1 ? "is" : "are"} below, with the reason.` : ""));
  const rows = plainTable(to, [
    {label: "move", text: true, show: passName}, {label: "predicted", show: s => times(s.predicted_speedup)},
    {label: "measured", show: s => times(s.measured_speedup)},
    {label: "interval", show: s => known(s.measured_low) ? `${times(s.measured_low)} to ${times(s.measured_high)}` : ""},
    {label: "turns (openings)", show: s => known(s.turns) ? `${count(s.turns)} (${count(s.openings)})` : ""},
    {label: "error", show: s => signedPercent(s.prediction_error)}, {label: "verdict", text: true, show: outcomeOf},
    {label: "so far", show: s => s.kept ? times(s.cumulative_speedup) : ""},
    {label: "effort", text: true, show: s => s.effort}, {label: "places", show: s => s.places},
    {label: "writes", text: true, wrap: true, show: s => s.change || ""}], measured);
  rows.classed("not-kept", s => !s.kept);
}

/* All that was kept, against what was given. */
function gates() {
  const to = part("gates");
  if (!data.gates) {
    to.remove();
    return;
  }
  note(to, `The tuned config (b) against ${givenName()} (a), by the gates of hone verify` +
    (data.taken_back ? "; as one does not hold, or nothing was won, it was taken back." : "."));
  const rows = plainTable(to, [
    {label: "gate", text: true, show: g => g.gate}, {label: "verdict", text: true, show: g => g.outcome},
    {label: "what was seen", text: true, wrap: true, show: g => g.words}], data.gates);
  rows.classed("not-kept", g => !g.pass);
}

function dropped() {
  const to = part("dropped"), rest = data.stages.filter(s => !s.kept);
  if (!rest.length) {
    note(to, data.stages.length ? "Nothing: whatever was tried was kept." : "Nothing was tried.");
    return;
  }
  const list = to.append("dl").attr("class", "facts reasons");
  for (const s of rest) {
    list.append("dt").text(passName(s));
    const dd = list.append("dd");
    dd.text(`${outcomeOf(s)}: ${s.why || "–"}`);
    dd.append("span").attr("class", "muted").text(` · predicted ${times(s.predicted_speedup)}` + (isMeasured(s) ? `, measured ${measuredWords(s)}` : ""));
  }
}
