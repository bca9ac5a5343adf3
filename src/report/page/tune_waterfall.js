/* The waterfall: the step before and after each stage, one row each, from the given program to the tuned one. A row is
 * reached by Tab and says in words what its bar shows. */

/* Times where the step was measured, else parts of the step at the start. */
const firstStep = known(data.before.step_us) ? data.before.step_us : 1;
const stepWords = x => known(data.before.step_us) ? time(x) : percent(x);

function fallOf(s, before) {
  const by = known(s.measured_speedup) ? s.measured_speedup : s.predicted_speedup;
  const interval = known(s.measured_low) && known(s.measured_high);
  return {s, before, after: known(by) && by > 0 ? before / by : before,
          predicted: known(s.predicted_speedup) && s.predicted_speedup > 0 ? before / s.predicted_speedup : null,
          low: interval ? before / s.measured_high : null, high: interval ? before / s.measured_low : null};
}

function falls() {
  let at = firstStep;
  return data.stages.filter(s => !s.around).map(s => {
    const f = fallOf(s, at);
    if (s.kept) at = f.after;
    return f;
  });
}

function fallTip(f) {
  const s = f.s, rows = [["predicted", times(s.predicted_speedup)], ["measured", measuredWords(s)]];
  if (known(s.measured_speedup)) rows.push(["step", `${stepWords(f.before)} → ${stepWords(f.after)}`]);
  if (s.kept) rows.push(["so far", times(s.cumulative_speedup)]);
  if (s.change) rows.push(["writes", s.change]);
  return [`${passName(s)}: ${outcomeOf(s)}`, rows.concat([["why", s.why || "–"]])];
}

function fallLabel(f) {
  const [title, rows] = fallTip(f);
  return `${title}; ` + rows.map(r => r.join(" ")).join("; ");
}

function fallRow(li, name, share) {
  li.append("span").attr("class", "fall-name").text(name);
  const track = li.append("span").attr("class", "fall-track").attr("aria-hidden", "true");
  return {track, number: li.append("span").attr("class", "fall-number"),
          bar: (style, a, b) => track.append("i").attr("class", style).style("left", across(share(Math.min(a, b))))
            .style("width", across(share(Math.abs(b - a))))};
}

function drawFall(li, f, share) {
  const s = f.s, row = fallRow(li, passName(s), share);
  row.bar("rest", 0, Math.min(f.before, f.after));
  row.bar(s.kept ? "won" : "hollow", f.after, f.before);
  if (f.low !== null) row.bar("interval", f.low, Math.min(f.high, 1 / share(1)));
  if (f.predicted !== null) row.track.append("b").style("left", across(share(f.predicted)));
  row.number.append("b").text(times(known(s.measured_speedup) ? s.measured_speedup : s.predicted_speedup));
  row.number.append("span").attr("class", "muted")
    .text(s.kept ? `${stepWords(f.before)} → ${stepWords(f.after)}` : known(s.measured_speedup) ? outcomeOf(s) : "expected, not tried");
}

function drawWhole(li, name, us, style, number, more, share) {
  const row = fallRow(li, name, share);
  row.bar(style, 0, us);
  row.number.append("b").text(number);
  row.number.append("span").attr("class", "muted").text(more);
  li.attr("tabindex", 0).attr("aria-label", `${name}: ${number} ${more}`);
}

function fallLegend(to) {
  const items = [["won", "won, kept"], ["hollow", "tried or expected, not kept"], ["predicted", "predicted"],
                 ["interval", "interval of the measurement"]];
  const li = to.append("ul").attr("class", "legend falls-legend").selectAll("li").data(items).enter().append("li");
  li.append("span").attr("class", d => "mark " + d[0]);
  li.append("span").text(d => d[1]);
}

/* Ticks under the tracks. */
function fallAxis(li, most) {
  li.append("span");
  const track = li.append("span").attr("class", "fall-track fall-axis");
  const ticks = d3.scaleLinear().domain([0, most]).ticks(4).filter(x => x <= most * 0.97);
  track.selectAll("em").data(ticks).enter().append("em").style("left", x => across(x / most)).text(x => x ? stepWords(x) : "0");
}

function waterfall() {
  const to = part("waterfall"), rows = falls();
  if (!rows.length) {
    note(to, "There was nothing to try: no pass and no setting changes this program.");
    return;
  }
  note(to, `The time of a step, from ${givenName()} to the tuned one, in the order in which things were tried. What was ` +
    "not kept leaves the step as it was. Hover over a row, or reach it with Tab, for the reason.");
  fallLegend(to);
  const tuned = hasNewStep() && known(data.after.step_us) ? data.after.step_us : null;
  const most = Math.min(1.6 * firstStep, Math.max(firstStep, tuned || 0, d3.max(rows, f => Math.max(f.before, f.after))) * 1.03);
  const share = x => x / most, list = to.append("ol").attr("class", "falls");
  drawWhole(list.append("li"), givenLabel(), firstStep, "base", stepWords(firstStep),
            known(data.before.step_us) ? "measured" : "of itself", share);
  const li = list.selectAll("li.fall").data(rows).enter().append("li").attr("class", f => "fall" + (f.s.kept ? " kept" : ""))
    .attr("id", (f, i) => "stage-" + i).attr("aria-label", fallLabel);
  li.each(function (f) { drawFall(d3.select(this), f, share); });
  withTipAndFocus(li, fallTip);
  if (tuned !== null)
    drawWhole(list.append("li"), "tuned, all together", tuned, "tuned", time(tuned), `${times(data.speedup)} in turns`, share);
  fallAxis(list.append("li").attr("class", "axis-row").attr("aria-hidden", "true"), most);
  if (tuned !== null && rows.some(f => f.s.kept))
    to.append("p").attr("class", "words").text(`One by one, what was kept multiplies to ${times(lastGain())}; all together, measured in turns with ` +
      `${givenName()}, it is ${times(data.speedup)}. Where the two are far apart, the machine was busy with something else meanwhile.`);
}
