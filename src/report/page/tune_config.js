/* What tuned.yaml changes, and how to use it. */
const shellWord = path => /^[\w@%+=:,.\/-]+$/.test(path) ? path : "'" + path.replace(/'/g, "'\\''") + "'";

/* base.yaml against tuned.yaml; what is equal is left out. */
function configDiff(to) {
  const pre = to.append("pre").attr("class", "diff").attr("aria-label", "base.yaml against tuned.yaml"), line = (style, text) =>
    pre.append("span").attr("class", style).text(text + "\n");
  let section = "";
  for (const c of data.changes) {
    const dot = c.key.indexOf("."), inside = dot < 0 ? "" : c.key.slice(0, dot), leaf = c.key.slice(dot + 1);
    if (inside !== section && inside) line("same", `  ${inside}:`);
    section = inside;
    const indent = inside ? "  " : "";
    line("gone", `- ${indent}${leaf}: ${c.before}`);
    line("came", `+ ${indent}${leaf}: ${c.after}`);
  }
}

/* Without the limits by which tune judged, hone verify asks for what verify.* of base.yaml says. It runs on one rank: what several proved it does not judge. */
function tunedConfig() {
  const to = part("config"), path = data.tuned_config || "tuned.yaml";
  if (data.changes.length) {
    note(to, "base.yaml (the config as given) against tuned.yaml. Checkpoints of the one load in the other.");
    configDiff(to);
  } else
    note(to, "tuned.yaml is base.yaml, the config as given: nothing was changed.");
  to.append("h3").attr("class", "apart").text("Use it");
  const launch = data.ranks > 1 ? `hone launch -n ${data.ranks} ` : "hone ";
  copyBox(to, `${launch}train ${shellWord(path)}` + (data.ranks > 1 ? "" :
    `\nhone verify ${shellWord(path.replace(/tuned\.yaml$/, "base.yaml"))} ${shellWord(path)} ${data.limits || ""}`.trimEnd()));
  if (!data.config_yaml) return;
  const details = to.append("details").attr("class", "apart");
  details.append("summary").text("The whole of tuned.yaml");
  details.append("pre").text(data.config_yaml);
}
