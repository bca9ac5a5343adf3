/* The iteration as two bars: by part of the step, and by what was done in it. */
function familiesAndGaps() {
  const gaps = data.recorded.gaps.filter(g => g.us > 0)
    .map(g => ({name: nameOf(g.name), us: g.us, color: "--gap", hatched: true}));
  const top = families.slice(0, FAMILY_COLORS).map(f => ({name: f.name, us: f.us, color: kindColor(f.name)}));
  const rest = d3.sum(families.slice(FAMILY_COLORS), f => f.us);
  return top.concat(rest > 0 ? [{name: "other ops", us: rest, color: "--other"}] : [], gaps);
}

function split() {
  const to = part("iteration"), r = data.recorded;
  const evaluates = r.split.some(s => s.name === "evaluation" && s.us > 0);
  const cost = data.step.recording_overhead_percent;
  note(to, `Of the step's ${time(r.us)}, ops work for ${time(r.op_self_us)}; the hatched parts are no op's work.` +
    (cost >= 0.05 ? ` What recording costs (${cost.toFixed(1)} %) is taken out.` : "") +
    " Gradients count as backward wherever they are computed." +
    (evaluates ? " Evaluation comes on top, as its time per training step." : ""));
  stackedBar(to, "Parts of the step", r.split.map(s => ({name: nameOf(s.name), us: s.us, color: phaseColor(s.name)})));
  stackedBar(to, "What was done (ops with their gradients)", familiesAndGaps());
  stackedBar(to, "Work of the ops by part of the model (with gradients)",
             r.parts.map((p, i) => ({name: nameOf(p.name), us: p.us, color: p.name === "other" ? "--other" : "--c" + i})));
}
