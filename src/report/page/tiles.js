/* What the first screen is made of: tiles of numbers, the largest bottlenecks, the answers. */
function tile(title, value, unit, more) {
  const box = part("tiles").append("div").attr("class", "tile");
  box.append("h3").text(title);
  const line = box.append("div").attr("class", "value").text(value);
  if (unit) line.append("small").text("\u00a0" + unit);
  const gauge = box.append("div").attr("class", "gauge").attr("aria-hidden", "true");
  box.append("p").text(more);
  return gauge;
}

/* A bar from a to b of a gauge, both from 0 to 1. */
function fillGauge(gauge, a, b) {
  if (known(a) && known(b)) gauge.append("i").style("left", across(a)).style("width", across(b - a));
}

function bottlenecks() {
  const list = part("bottlenecks"), top = data.findings.slice(0, 4);
  if (!top.length) list.append("p").attr("class", "muted").text("No rule found time to win.");
  top.forEach((f, i) => {
    const li = list.append("li");
    li.append("span").attr("class", "chip " + f.severity).text(f.severity);
    li.append("a").attr("href", "#finding-" + i).text(nameOf(f.rule));
    const gain = li.append("span").attr("class", "gain");
    gain.append("b").text(times(f.expected_speedup));
    gain.append("span").attr("class", "muted").text(` expected · ${percent(f.share)} of the step`);
    li.append("p").text(f.cause || "");
  });
}

function answers() {
  const a = data.answers, list = part("answers");
  for (const [label, text] of [["Bound by", a.bound_by], ["Largest", a.largest], ["Do first", a.first_action],
                               ["Realistic gain", a.realistic_gain]]) {
    list.append("dt").text(label);
    list.append("dd").text(text || "–");
  }
}
