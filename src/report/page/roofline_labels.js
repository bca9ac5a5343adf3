/* Names of the longest ops in the roofline, each beside its dot where no dot and no other name is; a line leads to one that is further away. */
const touches = (a, b) => a.x < b.x + b.w && b.x < a.x + a.w && a.y < b.y + b.h && b.y < a.y + a.h;

function touchesDot(box, dot) {
  const dx = dot.x - Math.max(box.x, Math.min(dot.x, box.x + box.w)), dy = dot.y - Math.max(box.y, Math.min(dot.y, box.y + box.h));
  return Math.hypot(dx, dy) < dot.r + 2;
}

/* Around a dot, near ones first: to the right and left, then above and below. */
function labelPlaces(dot, w, h) {
  const ways = [[1, 0], [-1, 0], [1, -1], [1, 1], [-1, -1], [-1, 1], [0, -1], [0, 1]], places = [];
  for (const far of [4, 14, 26, 40, 58, 80])
    for (const [x, y] of ways) {
      const reach = (dot.r + far) * (x && y ? Math.SQRT1_2 : 1), px = dot.x + x * reach, py = dot.y + y * reach;
      places.push({x: x > 0 ? px : x < 0 ? px - w : px - w / 2, y: py - h / 2 + y * h / 2, w, h, from: [px, py], far});
    }
  return places;
}

function placeLabel(svg, dot, name, dots, taken, plot) {
  const text = svgText(svg, "dot-label", 0, 0, "start", name), h = 13;
  const inside = b => b.x >= plot.left && b.x + b.w <= plot.right && b.y >= plot.top && b.y + b.h <= plot.bottom;
  const box = labelPlaces(dot, text.node().getComputedTextLength() + 4, h)
    .find(b => inside(b) && !dots.some(d => touchesDot(b, d)) && !taken.some(t => touches(b, t)));
  if (!box) {
    text.remove();
    return;
  }
  taken.push(box);
  text.attr("x", box.x + 2).attr("y", box.y + h - 3);
  if (box.far > 14) svgLine(svg, "dot-leader", dot.x, dot.y, ...box.from).lower();
}

/* Where names stand already: those of the ceilings. */
function ceilingBoxes(svg) {
  const frame = svg.node().getBoundingClientRect();
  return svg.selectAll(".ceiling-label").nodes().map(n => n.getBoundingClientRect())
    .map(b => ({x: b.left - frame.left, y: b.top - frame.top, w: b.width, h: b.height}));
}

function rooflineLabels(svg, dots, plot) {
  const all = [], taken = ceilingBoxes(svg);
  dots.filter(":not(.off)").each(function (op) { all.push({op, x: +this.getAttribute("cx"), y: +this.getAttribute("cy"), r: +this.getAttribute("r")}); });
  all.slice(0, LABELLED).forEach(d => placeLabel(svg, d, nameOf(d.op.name).slice(0, 40), all, taken, plot));
}
