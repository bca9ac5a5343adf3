/* How much faster W ranks are than one, and how much of it is lost: both over W, which doubles. */
function scalingAxes(svg, x, y, right, width, height, margin) {
  svg.append("g").attr("class", "axis").attr("transform", `translate(0,${height - margin.bottom})`)
    .call(d3.axisBottom(x).tickValues(data.points.map(p => p.ranks)).tickFormat(d3.format("d")));
  svg.append("g").attr("class", "axis").attr("transform", `translate(${margin.left},0)`).call(d3.axisLeft(y).ticks(6).tickFormat(n => `${count(n)}×`));
  svg.append("g").attr("class", "axis").attr("transform", `translate(${width - margin.right},0)`)
    .call(d3.axisRight(right).ticks(5).tickFormat(e => percent(e)));
  svgText(svg, "axis-label", width - margin.right, height - 4, "end", "ranks");
  svgText(svg, "axis-label", 4, 12, "start", "times one rank");
  svgText(svg, "axis-label", width - 4, 12, "end", "efficiency");
}

function scalingHover(svg, x, height, margin) {
  const cursor = svgLine(svg, "cursor", 0, margin.top, 0, height - margin.bottom).style("display", "none");
  let at = data.points.length - 1;
  const show = where => {
    const p = data.points[at];
    cursor.style("display", null).attr("x1", x(p.ranks)).attr("x2", x(p.ranks));
    showTip(many(p.ranks, "rank"), [["times one rank", times(p.speedup)], ["efficiency", percent(p.efficiency)], ["step", time(p.step_us)],
      ["exposed", time(p.exposed_us)], ["slowest", time(p.slowest_us)], ["best bucket", bucketSize(p.best_bucket_mb)]], where);
  };
  svg.on("mousemove", () => {
    const ranks = x.invert(d3.mouse(svg.node())[0]);
    at = d3.scan(data.points, (a, b) => Math.abs(Math.log(a.ranks / ranks)) - Math.abs(Math.log(b.ranks / ranks)));
    show(pointer());
  }).on("mouseleave blur", () => { cursor.style("display", "none"); hideTip(); }).on("keydown", () => {
    const step = {ArrowRight: 1, ArrowLeft: -1}[d3.event.key];
    if (!step) return;
    d3.event.preventDefault();
    at = Math.max(0, Math.min(data.points.length - 1, at + step));
    show(pointIn(svg.node(), x(data.points[at].ranks), height / 2));
  });
}

function drawScaling(box, width) {
  const height = 320, margin = {top: 26, right: 62, bottom: 36, left: 62}, points = data.points.slice().sort((a, b) => a.ranks - b.ranks);
  const last = points[points.length - 1].ranks;
  const x = d3.scaleLog().base(2).domain([1, Math.max(2, last)]).range([margin.left, width - margin.right]);
  const y = d3.scaleLog().base(2).domain([1, Math.max(2, last)]).range([height - margin.bottom, margin.top]);
  const right = d3.scaleLinear().domain([0, 1]).range([height - margin.bottom, margin.top]);
  const svg = chart(box, width, height, data.headline);
  scalingAxes(svg, x, y, right, width, height, margin);
  svg.append("path").attr("class", "ideal-line").attr("d", d3.line()([[x(1), y(1)], [x(last), y(last)]]));
  for (const [of, color] of [[p => y(Math.max(1, p.speedup)), "--accent"], [p => right(p.efficiency), "--c3"]]) {
    svg.append("path").attr("class", "scaling-line").style("stroke", paint(color)).attr("d", d3.line().x(p => x(p.ranks)).y(of)(points));
    svg.append("g").selectAll("circle").data(points).enter().append("circle").attr("cx", p => x(p.ranks)).attr("cy", of).attr("r", 3.5)
      .style("fill", paint(color));
  }
  scalingHover(svg, x, height, margin);
}

function scaling() {
  const to = part("scaling");
  note(to, "Samples per second of all ranks over those of one (left axis), and that over the number of ranks (right axis). Dashed: nothing is lost.");
  legend(to, [{name: "times one rank", color: "--accent"}, {name: "efficiency", color: "--c3"}, {name: "ideal", color: "--gap"}]);
  const box = to.append("div").attr("class", "scaling");
  whenSized(box.node(), width => drawScaling(box, width));
}
