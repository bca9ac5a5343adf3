/* What several parts of the page of hone forget use. A spread is {mean, sd, n} over seeds. */
const nats = x => known(x) ? x.toFixed(3) : "–";
const signedNats = x => known(x) ? (x < 0 ? "−" : "+") + Math.abs(x).toFixed(3) : "–";
const withSpread = (s, show) => s && known(s.mean) ? show(s.mean) + (known(s.sd) ? " ± " + show(s.sd).replace("+", "") : "") : "–";
const percentOf = x => known(x) ? x.toFixed(Math.abs(x) < 9.95 ? 1 : 0) : "–";
const aboveWords = () => data.entropy_known ? "nats above the best possible" : "nats";
const intervalWords = d => known(d.low) ? `${signedNats(d.low)} to ${signedNats(d.high)}` : "–";

/* Each config has a colour and a shape, so that one of them is enough. */
const CONFIG_COLORS = 8, configShapes = [d3.symbolCircle, d3.symbolSquare, d3.symbolTriangle, d3.symbolDiamond, d3.symbolCross,
                                         d3.symbolStar, d3.symbolWye];
const configColor = i => "--c" + i % CONFIG_COLORS;
const configSymbol = (i, size) => d3.symbol().type(configShapes[i % configShapes.length]).size(size)();

const howChosen = {gradient: ", by gradient", random: ", at random"};
const choiceWords = c => c.choice === "none" ? `${c.layers} blocks in a row` : c.choice === "all" ? `all ${c.nodes} nodes` :
  `${c.k} of ${c.nodes} nodes${howChosen[c.choice] || ""}${c.every > 1 ? `, kept for ${count(c.every)} steps` : ""}`;

/* Configs of which the nodes are known; the first that chooses by gradient is shown first. */
const treeConfigs = data.configs.filter(c => c.node_use && c.node_use.steps > 0);
const firstTree = treeConfigs.find(c => c.choice === "gradient") || treeConfigs[0];

/* Buttons for the configs with nodes; draw(config) at once and at every change. */
function chooseTree(controls, draw) {
  if (treeConfigs.length > 1)
    choose(controls, "Config", treeConfigs.map(c => [c, nameOf(c.name)]), firstTree, draw);
  draw(firstTree);
}

const heatColor = part => `rgba(var(--heat), ${0.06 + 0.94 * Math.max(0, Math.min(1, part))})`;

/* A scale of the heat, from `low` to `high`. */
function heatScale(to, low, high) {
  const row = to.append("p").attr("class", "heat-scale muted");
  row.append("span").text(low);
  row.append("i").attr("aria-hidden", "true");
  row.append("span").text(high);
}
