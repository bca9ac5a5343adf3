/* Tables: the configs, their losses by stage and domain, and the comparisons. */
function configsTable() {
  const to = part("configs"), above = data.entropy_known ? ", above best" : "";
  note(to, "Mean ± standard deviation over seeds, in nats. New domains are those after the first, each right after its own stage; " +
    "forgotten is what the domains before the last lost from their own stage to the end.");
  plainTable(to, [
    {label: "config", text: true, show: c => nameOf(c.name)}, {label: "what learns", text: true, show: choiceWords},
    {label: "seeds", show: c => c.new_loss.n}, {label: `new domains${above}`, show: c => withSpread(c.new_loss, nats)},
    {label: "learned", show: c => withSpread(c.learned, nats)}, {label: "forgotten", show: c => withSpread(c.forgotten_nats, nats)},
    {label: "forgotten, %", show: c => withSpread(c.forgotten_percent, percentOf)},
    {label: "back. transfer", show: c => withSpread(c.backward_transfer, signedNats)},
    {label: `all at the end${above}`, show: c => withSpread(c.end_loss, nats)}], data.configs);
  if (!data.configs.some(c => c.forgetting.length)) return;
  to.append("h3").attr("class", "apart").text("Forgotten, by domain");
  const of = (c, i, key) => (c.forgetting[i] || {})[key];
  const columns = data.domains.slice(0, -1).map((d, i) => [{label: d.name, show: c => withSpread(of(c, i, "nats"), nats)},
                                                           {label: `${d.name}, %`, show: c => withSpread(of(c, i, "percent"), percentOf)}]);
  plainTable(to, [{label: "config", text: true, show: c => nameOf(c.name)}].concat(...columns), data.configs);
}

/* ---- loss by stage and domain ---- */

function matrix(to, c, most) {
  const box = to.append("div");
  box.append("h3").text(nameOf(c.name));
  const table = box.append("div").attr("class", "scroll").append("table").attr("class", "heat losses");
  const head = table.append("thead").append("tr");
  head.append("th").attr("scope", "col").text("after");
  head.selectAll("th.domain").data(data.domains).enter().append("th").attr("scope", "col").attr("class", "domain").text(d => d.name);
  const row = table.append("tbody").selectAll("tr").data(c.matrix).enter().append("tr");
  row.append("th").attr("scope", "row").text((r, i) => i ? data.domains[i - 1].name : "no training");
  const size = cell => known(cell.above_entropy) ? cell.above_entropy : cell.loss;
  const td = row.selectAll("td").data((r, stage) => r.map((cell, domain) => ({cell, stage, domain}))).enter().append("td")
    .attr("class", "cell").classed("own", d => d.stage === d.domain + 1).classed("strong", d => size(d.cell) / most > 0.5)
    .style("background-color", d => heatColor(size(d.cell) / most)).text(d => nats(d.cell.loss));
  td.filter(d => known(d.cell.above_entropy)).append("small").text(d => signedNats(d.cell.above_entropy));
  withTip(td, d => [`${nameOf(c.name)}: ${data.domains[d.domain].name} after ${d.stage ? data.domains[d.stage - 1].name : "no training"}`,
    [["loss", nats(d.cell.loss) + (known(d.cell.sd) ? ` ± ${nats(d.cell.sd)}` : "")], ["above the best possible", nats(d.cell.above_entropy)],
     ["perplexity", plainNumber(d.cell.perplexity)]]]);
}

function matrices() {
  const to = part("matrices"), list = data.configs.filter(c => c.matrix);
  note(to, "Mean validation loss of each domain (columns) after each stage (rows), in nats per token" +
    (data.entropy_known ? "; below it its distance to the best possible one." : ".") +
    " Framed: a domain right after its own stage. Darker is worse.");
  if (!list.length) note(to, "No run is done.");
  const cells = [].concat(...list.map(c => [].concat(...c.matrix))), grid = to.append("div").attr("class", "multiples");
  const most = d3.max(cells, cell => known(cell.above_entropy) ? cell.above_entropy : cell.loss) || 1;
  list.forEach(c => matrix(grid, c, most));
}

/* ---- comparisons ---- */

const outcomeTexts = {beats: "beats it", ties: "no different within the spread", "no overlap": "not comparable: one learned more and forgot more"};

function comparisons() {
  const to = part("comparisons");
  if (!data.comparisons.length) {
    to.remove();
    return;
  }
  note(to, "Differences within seeds, with the interval that holds 95 %: below zero the first learned more, or forgot less. One beats the other where " +
    "one of the two is below zero outside the interval and the other is not above it.");
  plainTable(to, [
    {label: "config", text: true, show: c => nameOf(c.a)}, {label: "against", text: true, show: c => nameOf(c.b)},
    {label: "seeds", show: c => c.forgotten_nats.seeds},
    {label: "loss on new domains", show: c => signedNats(c.new_loss.mean)}, {label: "interval", show: c => intervalWords(c.new_loss)},
    {label: "forgotten", show: c => signedNats(c.forgotten_nats.mean)}, {label: "interval", show: c => intervalWords(c.forgotten_nats)},
    {label: "outcome", text: true, wrap: true, show: c => outcomeTexts[c.outcome] || c.outcome}], data.comparisons);
  for (const v of data.verdicts.filter(x => x.line)) {
    const d = v.line.forgotten_nats, where = `${percent(v.line.part_of_all)} of the way`;
    to.append("p").attr("class", "words").text(`On the line from ${nameOf(v.random)} to ${nameOf(v.all)}, where it learns as much as ` +
      `${nameOf(v.config)} (${where}): ${nameOf(v.config)} forgot ${signedNats(d.mean)} nats (${intervalWords(d)}): ` +
      `${outcomeTexts[v.line.outcome] || v.line.outcome}.`);
  }
}
