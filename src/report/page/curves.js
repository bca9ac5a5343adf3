/* Curves over steps, tokens or time: what the pages of hone compare and of a run that goes on share. */
const CURVE_FIELDS = ["step", "tokens", "seconds", "loss", "low", "high", "steps_per_s", "tokens_per_s", "memory_bytes"];
const curvePoints = curve => (curve ? curve.points : []).map(p => Object.fromEntries(CURVE_FIELDS.map((name, i) => [name, p[i]])));

const lossText = x => known(x) ? (Math.abs(x) < 1e4 ? x.toFixed(4) : x.toPrecision(4)) : "–";
const AXES = {step: ["steps", count], tokens: ["tokens", count], seconds: ["training time", seconds]};

/* Of many series: eight colours, then the same with dashes. */
const seriesColor = i => paint("--c" + i % 8);
const seriesDash = i => [null, "6 3", "2 3"][Math.floor(i / 8) % 3];

function curveScales(c, width, height, margin) {
  const all = [].concat(...c.series.map(s => s.points)), values = all.map(p => p[c.y]).filter(known), xs = all.map(p => p[c.x]).filter(known);
  const [low, high] = values.length ? d3.extent(values) : [0, 1], log = c.log && low > 0;
  const y = log ? d3.scaleLog().domain(low < high ? [low, high] : [low / 2, low * 2]) : d3.scaleLinear().domain(low < high ? [c.zero ? 0 : low, high] : [Math.min(0, low), high || 1]).nice();
  return {x: d3.scaleLinear().domain([0, d3.max(xs) || 1]).range([margin.left, width - margin.right]), y: y.range([height - margin.bottom, margin.top]), log};
}

function curveAxes(svg, c, {x, y, log}, width, height, margin) {
  const [label, show] = AXES[c.x], ticks = Math.max(2, Math.floor(width / 130));
  svg.append("g").attr("class", "axis").attr("transform", `translate(0,${height - margin.bottom})`).call(d3.axisBottom(x).ticks(ticks).tickFormat(show));
  const left = d3.axisLeft(y);
  if (log) {                                    /* a few values of its own: those of d3 are many or none, as the span has it */
    const [low, high] = y.domain();
    left.tickValues(d3.range(6).map(i => low * Math.pow(high / low, i / 5)));
  } else left.ticks(6);
  svg.append("g").attr("class", "axis").attr("transform", `translate(${margin.left},0)`).call(left.tickFormat(c.show));
  svgText(svg, "axis-label", width - margin.right, height - 4, "end", label);
  svgText(svg, "axis-label", 4, 12, "start", c.label);
}

function drawSeries(svg, c, s, {x, y}) {
  const good = p => known(p[c.x]) && known(p[c.y]) && (y.domain()[0] <= 0 || p[c.y] > 0), line = d3.line().defined(good).x(p => x(p[c.x])).y(p => y(p[c.y]));
  if (c.band && s.points.some(p => known(p.low) && p.low < p.high)) {
    const inside = v => Math.max(y.range()[1], Math.min(y.range()[0], y(Math.max(v, y.domain()[0]))));
    svg.append("path").attr("class", "curve-band").style("fill", s.color)
      .attr("d", d3.area().defined(good).x(p => x(p[c.x])).y0(p => inside(p.low)).y1(p => inside(p.high))(s.points));
  }
  svg.append("path").attr("class", "curve-line").style("stroke", s.color).style("stroke-dasharray", s.dash).attr("d", line(s.points));
  if (s.points.length < 60)
    svg.append("g").selectAll("circle").data(s.points.filter(good)).enter().append("circle").attr("cx", p => x(p[c.x])).attr("cy", p => y(p[c.y]))
      .attr("r", 2.2).style("fill", s.color);
}

/* The points of all series that are nearest to a place, by mouse or by arrow keys. */
function curveHover(svg, c, {x}, height, margin) {
  const cursor = svgLine(svg, "cursor", 0, margin.top, 0, height - margin.bottom).style("display", "none");
  const places = [...new Set([].concat(...c.series.map(s => s.points.map(p => p[c.x]).filter(known))))].sort((a, b) => a - b), nearest = d3.bisector(p => p[c.x]).left;
  let at = places.length - 1;
  const pointOf = (s, v) => {
    const list = s.points.filter(p => known(p[c.x])), i = nearest(list, v);
    return i === list.length ? list[i - 1] : i && v - list[i - 1][c.x] < list[i][c.x] - v ? list[i - 1] : list[i];
  };
  const show = where => {
    const v = places[at], rows = c.series.filter(s => s.points.length).map(s => [s.name, pointOf(s, v)]).filter(([, p]) => p && v <= p[c.x] * 1.02 + 1)
      .sort((a, b) => (known(a[1][c.y]) ? a[1][c.y] : Infinity) - (known(b[1][c.y]) ? b[1][c.y] : Infinity));
    cursor.style("display", null).attr("x1", x(v)).attr("x2", x(v));
    showTip(`${AXES[c.x][1](v)} ${AXES[c.x][0]}`, rows.slice(0, 16).map(([name, p]) => [name, c.show(p[c.y])]), where);
  };
  svg.on("mousemove", () => {
    if (!places.length) return;
    const v = x.invert(d3.mouse(svg.node())[0]), i = d3.bisectLeft(places, v);
    at = i === places.length || (i && v - places[i - 1] < places[i] - v) ? i - 1 : i;
    show(pointer());
  }).on("mouseleave blur", () => { cursor.style("display", "none"); hideTip(); }).on("keydown", () => {
    const step = {ArrowRight: 1, ArrowLeft: -1}[d3.event.key];
    if (!step || !places.length) return;
    d3.event.preventDefault();
    at = Math.max(0, Math.min(places.length - 1, at + step * Math.max(1, Math.round(places.length / 100))));
    show(pointIn(svg.node(), x(places[at]), height / 2));
  });
}

/* c: {series: [{name, color, dash, points}], x, y, label, show, log, band, zero, title} */
function drawCurves(box, width, c) {
  const height = Math.round(Math.max(240, Math.min(420, width * 0.42))), margin = {top: 26, right: 14, bottom: 36, left: 62};
  const svg = chart(box, width, height, c.title), scales = curveScales(c, width, height, margin);
  curveAxes(svg, c, scales, width, height, margin);
  c.series.forEach(s => drawSeries(svg, c, s, scales));
  curveHover(svg, c, scales, height, margin);
}
