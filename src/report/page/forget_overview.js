/* The first screen: the answers, who learned most and forgot least, and what was run. */
const best = key => {
  const list = data.configs.filter(c => c[key] && known(c[key].mean));
  return list[d3.scan(list, (a, b) => a[key].mean - b[key].mean)];
};

/* What the config that chooses by gradient does; of several, how many do. */
function answerTile(title, key, rivals) {
  const all = data.verdicts, v = all[0];
  if (all.length > 1)
    tile(title, `${all.filter(a => a[key] === "yes").length} of ${all.length}`, "", "configs that choose by gradient").remove();
  else
    tile(title, v ? v[key] : "–", "", !v ? "no config chooses by gradient" : v[rivals] ? "against " + v[rivals] : "there is none to compare with").remove();
}

function bestTile(title, key, more) {
  const c = best(key);
  tile(title, c ? nats(c[key].mean) : "–", c ? "nats" : "", c ? nameOf(c.name) + more : "no run is done").remove();
}

function tiles() {
  const above = data.entropy_known ? ", above the best possible" : "";
  answerTile("Beats random choice?", "beats_random", "random");
  answerTile("Beats all nodes?", "beats_all", "all");
  bestTile("Learned most", "new_loss", above);
  bestTile("Forgot least", "forgotten_nats", "");
  bestTile("Best in the end", "end_loss", above);
}

function verdictList() {
  const list = part("verdicts");
  if (!data.verdicts.length) {
    list.append("dt").text("No config chooses nodes by gradient");
    list.append("dd").text("so there is nothing to judge.");
  }
  for (const v of data.verdicts) {
    const asked = [["as many nodes chosen at random", v.beats_random, v.random_words], ["all nodes", v.beats_all, v.all_words]];
    for (const [question, answer, words] of asked) {
      list.append("dt").text(`Does ${nameOf(v.config)} beat ${question}?`);
      const dd = list.append("dd");
      dd.append("b").text(answer[0].toUpperCase() + answer.slice(1) + ". ");
      dd.append("span").text(words ? words + "." : "");
    }
  }
}

function about() {
  const list = part("answers");
  const domain = d => d.name + (known(d.entropy) ? ` (best possible ${nats(d.entropy)})` : "");
  const rows = [["Domains, in this order", data.domains.map(domain).join(" → ")],
                ["Steps per domain", data.steps_per_domain ? String(data.steps_per_domain) : data.steps_per_domain === null ? "not the same in all" : null],
                ["Runs", `${data.runs_done} of ${data.runs_wanted} done: ${many(data.configs.length, "config")} with ${many(data.seeds, "seed")} each`],
                ["Numbers", "mean ± standard deviation over seeds; losses in nats per token, of validation text"],
                ["Backward transfer", "what the domains before the last won since their own stage; below zero, they were forgotten"]];
  for (const [label, text] of rows.filter(r => r[1])) {
    list.append("dt").text(label);
    list.append("dd").text(text);
  }
}

function overview() {
  part("where").append("b").text(data.name);
  part("where").append("span").text(data.domains.length ? " · " + data.domains.map(d => d.name).join(" → ") : "");
  if (data.warnings.length)
    part("warning").attr("hidden", null).text(data.warnings.join(" · "));
  tiles();
  verdictList();
  about();
}
