/* Tiles of numbers, which the first screen begins with. */
function tile(title, value, unit, more) {
  const box = part("tiles").append("div").attr("class", "tile");
  box.append("h3").text(title);
  const line = box.append("div").attr("class", "value").classed("word", value.length > 9).text(value);
  if (unit) line.append("small").text("\u00a0" + unit);
  const gauge = box.append("div").attr("class", "gauge").attr("aria-hidden", "true");
  box.append("p").text(more);
  return gauge;
}

/* A bar from a to b of a gauge, both from 0 to 1. */
function fillGauge(gauge, a, b) {
  if (known(a) && known(b)) gauge.append("i").style("left", across(a)).style("width", across(b - a));
}
